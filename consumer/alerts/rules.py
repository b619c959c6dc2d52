"""Writes the alerts as rules for Prometheus, and as rules that Grafana itself evaluates."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from textwrap import indent, wrap

from consumer.alerts.source import Alert, Record, Source

_WIDTH = 118
_HEADS = {
    "service": "Does the service work? A page needs somebody now, a ticket within days. docs/how-to/runbooks.md has a "
    "section for each alert. The scrape job must be called `safe`. Each runbook_url is relative to the repository of "
    "SAFE, unless its web address was given.",
    "quality": "Are the outputs of the models good enough? These alerts make tickets for the owner of the batches, or "
    "whatever severity alerts-settings.yml gives to an owner. Except for SafeInputMismatch and SafeFailedGenerations, "
    "they are off until that file names batches (and floors, for the alerts about scores below a floor). "
    "docs/how-to/runbooks.md has a section for each alert.",
}
_GRAFANA_HEAD = (
    "Alert rules that Grafana itself evaluates. They need only the metrics of the workers in a Prometheus data source, "
    "none of the rules for Prometheus: use one or the other, or you are told twice. Grafana lets nobody edit "
    "provisioned rules in its pages: print them again instead. Each data source needs rules of its own, in a folder of "
    "its own. Each runbook_url is relative to the repository of SAFE, unless its web address was given."
)
_MADE = "Made from consumer/alerts/alerts.toml: changes belong there."
_GRAFANA_VALUE = ".Values.value.Value"
_BELOW_EVERYTHING = -1_000_000_000_000
"""Whatever a query answers fires, also the time since a certificate has expired."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What the person who installs Grafana's rules has to choose."""

    datasource: str
    floor: str
    folder: str = "SAFE"
    batches: str = ".+"
    receiver: str = ""

    @property
    def suffix(self) -> str:
        """Ends each uid: the rules for a second data source, in a folder of their own, must not replace the first ones.

        The uid of the data source is not part of it: when that changes, the rules are changed, not doubled.
        """
        return hashlib.sha256(self.folder.encode()).hexdigest()[:8]


def settings_file() -> str:
    """The file of rules that people edit: which batches are watched, and their floors."""
    return resources.files(__package__).joinpath("alerts-settings.yml").read_text(encoding="utf-8")


def with_runbooks(text: str, address: str) -> str:
    """Put the web address of a repository before each runbook_url, where one is given."""
    return text.replace("runbook_url: docs/", f"runbook_url: {address.rstrip('/')}/docs/") if address else text


def prometheus_rules(source: Source, file: str) -> str:
    """One file of rules for Prometheus: `service` or `quality`."""
    return "\n".join([*_comment(_HEADS[file]), *_comment(_MADE), "groups:", _group(source, file)])


def every_prometheus_rule(source: Source) -> str:
    """The rules of both files as one."""
    heads = [line for file in _HEADS for line in _comment(_HEADS[file])]
    return "\n".join([*heads, "groups:", *(_group(source, file) for file in _HEADS)])


def _group(source: Source, file: str) -> str:
    records = [_record(record) for record in source.records if record.file == file]
    alerts = [_alert(alert) for alert in source.alerts if alert.file == file]
    return "\n".join([f"  - name: safe-{file}", "    rules:", "\n\n".join([*records, *alerts])]) + "\n"


def grafana_template(source: Source) -> str:
    """The rules of Grafana with @NAMES@ where somebody chooses; the chart ships this text, and fills it in likewise."""
    rules = [_grafana_rule(source, alert) for alert in source.alerts if not alert.no_grafana]
    head = [
        *_comment(_GRAFANA_HEAD),
        *_comment(_MADE),
        "apiVersion: 1",
        "groups:",
        "  - orgId: 1",
        "    name: SAFE",
        '    folder: "@FOLDER@"',
        "    interval: 1m",
        "    rules:",
    ]
    return "\n".join([*head, "\n".join(rules)]) + "\n"


def grafana_rules(source: Source, choices: Choices) -> str:
    """The rules of Grafana as they are provisioned."""
    text = grafana_template(source)
    if not choices.receiver:
        text = re.sub(r"^ *notification_settings: .*\n", "", text, flags=re.MULTILINE)
    filled = {
        "@DATASOURCE@": _quoted(choices.datasource)[1:-1],
        "@FLOOR@": choices.floor,
        "@FOLDER@": _quoted(choices.folder)[1:-1],
        "@RECEIVER@": _quoted(choices.receiver)[1:-1],
        "@BATCHES@": _quoted(choices.batches)[1:-1],
        "@SUFFIX@": choices.suffix,
    }
    for name, value in filled.items():
        text = text.replace(name, value)
    return text


def _record(record: Record) -> str:
    lines = [*_comment(record.why, 6), f"      - record: {record.name}", *_block("expr", record.expression, 8)]
    if record.labels:
        lines.append(f"        labels: {{{', '.join(f'{name}: {value}' for name, value in record.labels.items())}}}")
    return "\n".join(lines)


def _alert(alert: Alert) -> str:
    severity = "'{{ or .Labels.severity \"ticket\" }}'" if alert.severity == "owner" else alert.severity
    return "\n".join(
        [
            *_comment(alert.why, 6),
            f"      - alert: {alert.name}",
            *_block("expr", alert.expression, 8),
            *_given("for", alert.for_),
            *_given("keep_firing_for", alert.keep_firing_for),
            f"        labels: {{severity: {severity}}}",
            "        annotations:",
            *_text("summary", _with_value(alert.summary, ".Value")),
            *_text("description", _with_value(alert.description, ".Value")),
            f"          runbook_url: {alert.runbook}",
        ]
    )


def _grafana_rule(source: Source, alert: Alert) -> str:
    severity = "ticket" if alert.severity == "owner" else alert.severity
    same_name = [other for other in source.alerts if other.name == alert.name]
    return "\n".join(
        [
            f"      - uid: {grafana_uid(alert, same_name)}-@SUFFIX@",
            f"        title: {alert.name}{f' ({severity})' if len(same_name) > 1 else ''}",
            "        condition: fires",
            f"        for: {alert.for_ or '0s'}",
            *_given("keepFiringFor", alert.keep_firing_for),
            # A query that answers nothing says that all is well.
            "        noDataState: OK",
            "        execErrState: Error",
            "        isPaused: false",
            '        notification_settings: {receiver: "@RECEIVER@"}',
            f"        labels: {{severity: {severity}}}",
            "        annotations:",
            *_text("summary", _with_value(alert.summary, _GRAFANA_VALUE)),
            *_text("description", _with_value(alert.description, _GRAFANA_VALUE)),
            f"          runbook_url: {alert.runbook}",
            "          __dashboardUid__: safe-v0",
            f'          __panelId__: "{alert.panel}"',
            "        data:",
            "          - refId: value",
            '            datasourceUid: "@DATASOURCE@"',
            "            relativeTimeRange: {from: 600, to: 0}",
            "            model:",
            "              refId: value",
            "              instant: true",
            *_block("expr", source.without_records(alert.grafana), 14),
            "          - refId: fires",
            "            datasourceUid: __expr__",
            "            relativeTimeRange: {from: 600, to: 0}",
            "            model: {refId: fires, type: threshold, expression: value,",
            f"              conditions: [{{evaluator: {{type: gt, params: [{_BELOW_EVERYTHING}]}}}}]}}",
        ]
    )


def grafana_uid(alert: Alert, same_name: Sequence[Alert]) -> str:
    """Begins the uid of a rule, by which Grafana knows it again: it stays as long as the alert has its name."""
    words = re.findall("[A-Z][a-z]+", alert.name) + ([alert.severity] if len(same_name) > 1 else [])
    return "-".join(words).lower()


# --- YAML -------------------------------------------------------------------------------------------------------------


def _comment(text: str, depth: int = 0) -> Iterator[str]:
    yield from (f"{' ' * depth}# {line}" for line in wrap(text, _WIDTH - depth, break_on_hyphens=False))


def _block(name: str, text: str, depth: int) -> Iterator[str]:
    yield f"{' ' * depth}{name}: |-"
    yield indent(text, " " * (depth + 2))


def _given(name: str, value: str) -> list[str]:
    return [f"        {name}: {value}"] if value else []


def _text(name: str, text: str) -> Iterator[str]:
    """A text of one or more lines, which YAML reads as one."""
    if len(text) < _WIDTH - 24:
        yield f"          {name}: {_quoted(text)}"
        return
    yield f"          {name}: >-"
    yield from (
        f"            {line}" for line in wrap(text, _WIDTH - 12, break_long_words=False, break_on_hyphens=False)
    )


def _with_value(text: str, value: str) -> str:
    return text.replace("$value", value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
