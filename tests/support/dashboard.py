"""The dashboard as its queries: what each panel asks, with Grafana's variables filled in."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.support.prometheus import CONFIG

DASHBOARD = CONFIG / "grafana" / "dashboards" / "safe.json"
# As Grafana fills them in where everything is chosen; ranges as long as a test has run.
CHOSEN = ("$cluster", "$namespace", "$group", "$job", "$instance", "$concern", "$batch")
VARIABLES = dict.fromkeys(CHOSEN, ".*") | {"$__rate_interval": "5m", "$__range": "1h"}


class Query(NamedTuple):
    """One query of one panel."""

    panel: str
    ref: str
    expression: str

    @property
    def filled(self) -> str:
        """The query as Prometheus gets it."""
        expression = self.expression
        for variable, value in VARIABLES.items():
            expression = expression.replace(variable, value)
        return expression


def dashboard() -> Any:
    """Return the dashboard's document."""
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))


def panels() -> list[Any]:
    """Return every panel that asks for something, without rows, text and the list of alerts."""
    return [panel for panel in dashboard()["panels"] if panel["type"] not in {"row", "text", "alertlist"}]


def queries() -> Iterator[Query]:
    """Yield every query of every panel."""
    for panel in panels():
        yield from (Query(panel["title"], target["refId"], target["expr"]) for target in panel["targets"])
