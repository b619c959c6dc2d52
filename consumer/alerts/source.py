"""Reads `alerts.toml`: records and alerts, with the lists of labels and the macros in their places."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

_NAME = re.compile(r"\$(\w+)(?:\((\w+(?:\{[^}]*\})?)\))?")
_RECORD = re.compile(r"(safe:\w+(?::\w+)*)(\[\w+\])?")
_STEP = "1m"
"""Of a record that Grafana works out over a range: a recorded one has a sample for each evaluation."""


@dataclass(frozen=True, slots=True)
class Record:
    """A series that Prometheus records; `grafana` is its expression where there are no settings to read."""

    file: str
    name: str
    expression: str
    grafana: str
    why: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert; severity `owner` means that of the batches' owner. A name may be there once for each severity."""

    file: str
    name: str
    severity: str
    expression: str
    grafana: str
    summary: str
    description: str
    why: str = ""
    for_: str = ""
    keep_firing_for: str = ""
    panel: int | None = None
    no_grafana: str = ""
    """Why Grafana's own alerting does not have it; empty if it does."""

    @property
    def runbook(self) -> str:
        """Its section of the runbooks."""
        return f"docs/how-to/runbooks.md#{self.name.lower()}"


@dataclass(frozen=True, slots=True)
class Source:
    """All that the rules are made of."""

    records: Sequence[Record]
    alerts: Sequence[Alert]

    def without_records(self, expression: str) -> str:
        """The expression with each record written out where it is read: Grafana's rules record nothing."""
        by_name = {record.name: record.grafana for record in self.records}

        def written_out(match: re.Match[str]) -> str:
            name, range_ = match[1], match[2]
            if name not in by_name:
                return match[0]
            inner = f"(\n{self.without_records(by_name[name])}\n)"
            return inner + (f"[{range_[1:-1]}:{_STEP}]" if range_ else "")

        return _indented(_RECORD.sub(written_out, expression))


def load(without: str = "") -> Source:
    """Read the file; `without` leaves one of the installation's labels out of every list: each must be missed."""
    document = tomllib.loads(resources.files(__package__).joinpath("alerts.toml").read_text(encoding="utf-8"))
    installation = [label for label in document["installation"] if label != without]
    names = _lists(installation) | {name: text.strip() for name, text in document["macros"].items()}
    records = [record for entry in document["records"] for record in _records(entry, names)]
    alerts = [_alert(entry, names, installation) for entry in document["alerts"]]
    return Source(records, alerts)


def _lists(installation: Sequence[str]) -> dict[str, str]:
    """What `job` joins: it is the same everywhere, and rules of one's own on other jobs stay apart by it."""
    place = [label for label in installation if label != "group"]
    return {
        "here": ", ".join([*place, "job", *(label for label in installation if label == "group")]),
        "place": ", ".join([*place, "job"]),
        "elsewhere": ", ".join(label for label in installation if label != "namespace"),
    }


def _records(entry: Mapping[str, Any], names: Mapping[str, str]) -> list[Record]:
    def record(range_: str) -> Record:
        expression = _expanded(entry["expression"].replace("RANGE", range_), names)
        return Record(
            file=entry["file"],
            name=entry["name"].replace("RANGE", range_),
            expression=expression,
            grafana=_expanded(entry["grafana"], names) if "grafana" in entry else expression,
            why=_one_line(entry.get("why", "")),
            labels=entry.get("labels", {}),
        )

    first, *others = [record(range_) for range_ in entry.get("ranges", [""])]
    return [first, *(Record(each.file, each.name, each.expression, each.grafana) for each in others)]


def _alert(entry: Mapping[str, Any], names: Mapping[str, str], installation: Sequence[str]) -> Alert:
    expression = _expanded(entry["expression"], names)
    return Alert(
        file=entry["file"],
        name=entry["name"],
        severity=entry["severity"],
        expression=expression,
        grafana=_expanded(entry["grafana"], names) if "grafana" in entry else expression,
        summary=_one_line(entry["summary"]) + _where(installation),
        description=_one_line(entry["description"]),
        why=_one_line(entry.get("why", "")),
        for_=entry.get("for", ""),
        keep_firing_for=entry.get("keep_firing_for", ""),
        panel=entry.get("panel"),
        no_grafana=entry.get("no_grafana", ""),
    )


def _where(installation: Sequence[str]) -> str:
    """Names the installation in a text; of a label that is not there, nothing is said."""
    return "".join(
        f"{{{{ if .Labels.{label} }}}}, {label} {{{{ .Labels.{label} }}}}{{{{ end }}}}"
        for label in reversed(installation)
    )


def _expanded(expression: str, names: Mapping[str, str]) -> str:
    """Put lists and macros into an expression, and into these what they name."""

    def named(match: re.Match[str]) -> str:
        text = names[match[1]]
        text = _expanded(text.replace("METRIC", match[2]) if match[2] else text, names)
        return f"\n{text}\n" if "\n" in text else text

    return _indented(_NAME.sub(named, expression))


def _indented(expression: str) -> str:
    """Each line as deep as the brackets around it."""
    lines: list[str] = []
    depth = 0
    for line in filter(None, map(str.strip, expression.splitlines())):
        closed = len(line) - len(line.lstrip(")"))
        lines.append("  " * (depth - closed) + line)
        depth += line.count("(") - line.count(")")
    return "\n".join(lines)


def _one_line(text: str) -> str:
    return " ".join(text.split())
