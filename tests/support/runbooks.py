"""docs/how-to/runbooks.md: the head of each section is made from its alert; what to do is written in the page."""

import re
from collections.abc import Iterator

from consumer.alerts.source import Alert, Source
from tests.support.dashboard import dashboard
from tests.support.kafka_broker import PROJECT

PAGE = PROJECT / "docs" / "how-to" / "runbooks.md"
_SECTION = re.compile(r"^## (Safe\w+)\n\n(?:(?:> .*\n)+\n)?", re.MULTILINE)
_URGENCY = {"page": "Page", "ticket": "Ticket", "owner": "Ticket, or what the batches' owner chose"}


def runbooks(source: Source) -> str:
    """The page with the head of each alert's section as it would be made now."""
    text = PAGE.read_text(encoding="utf-8")
    return _SECTION.sub(lambda found: f"## {found[1]}\n\n{_head(source, found[1])}\n", text)


def _head(source: Source, name: str) -> str:
    return "".join(f"> {line}\n" for alert in source.alerts if alert.name == name for line in _lines(alert))


def _lines(alert: Alert) -> Iterator[str]:
    waits = f", after it has been true for {_spelt(alert.for_)}" if alert.for_ else ""
    yield f"**{_URGENCY[alert.severity]}**{waits}: *{_readable(alert.summary)}.*"
    panels = {panel["id"]: panel["title"] for panel in dashboard()["panels"]}
    grafana = f"Not in Grafana's own alerting: {alert.no_grafana}." if alert.no_grafana else ""
    panel = f"Panel of the dashboard: *{panels[alert.panel]}*." if alert.panel is not None else ""
    yield " ".join(filter(None, (panel, grafana)))


def _spelt(duration: str) -> str:
    return f"{duration[:-1]} {'h' if duration[-1] == 'h' else 'min'}"


def _readable(template: str) -> str:
    """A text with its labels as names; what it says of the installation is at its end, and is left out here."""
    text = re.sub(r"\{\{ if \.Labels\.(?:group|namespace|cluster) \}\}.*?\{\{ end \}\}", "", template)
    text = re.sub(r"\{\{ if [^}]*\}\}(.*?)\{\{ else \}\}(.*?)\{\{ end \}\}", r"\1, or: \2", text)
    return re.sub(r"\{\{ \.Labels\.(\w+) \}\}", r"\1", text)
