"""docs/reference/metrics.md: every metric that a worker exports, and what the shipped alerts read of it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.support.dashboard import dashboard
from tests.support.promql import GOLDEN_PAGE, RULE_FILES, metrics_in, rules

LABELS: Mapping[str, str] = {
    "archetype": "the archetype of a case, or `Unknown`; all but the 20 largest archetypes of a batch count as `other`",
    "batch_id": "the batch, as the input names it",
    "concern_id": "the concern; beyond the first 100 of a process, `other`",
    "fingerprint": "`sha256:` and the hash of the scoring rules: thresholds, weights, overrides",
    "consumer_group": "the consumer group that strangers have: that of the scorers, or that of the aggregators",
    "group": "the consumer group of the installation (`SAFE_V0_KAFKA_GROUP_ID`)",
    "key": "the key that SAFE reads, such as `summary` or `test_id`; never the key that an event had in its place",
    "label": "`Pass`, `Review` or `Fail`",
    "le": "the upper bound of a bucket, in seconds",
    "metric": "`CR`, `AH` or `AC`; for means also `composite`",
    "name": "the batch file, or the key of the record, that cannot be used; beyond the first 20, `other`",
    "file": "the path of the file, as the settings name it",
    "outcome": "of records: `scored`, `dead_lettered`, `ignored` (a tombstone, or an event of an excluded type), "
    "`foreign` (a scored record of another group); "
    "of look-ups: `found`, `not_found`, `ambiguous`, `invalid`, `transient`",
    "partition": "the partition of the topic",
    "reason": "why a record became a dead letter: [contract.md](../contract.md#dead-letters) lists the reasons",
    "source": "`folder`, `http` or `topic`",
    "topic": "the topic",
    "version": "the version of SAFE",
}
_INTRODUCTION = """# Metrics

This page lists what a worker exports at `/metrics`: in Prometheus' text format or in OpenMetrics, and compressed if the
client accepts that. Nothing else is exported. Counters begin at 0 with each start of a process. The series of a batch
disappear while its partition changes hands, and when the batch is forgotten.

Every series has the label `group`, also those of the process: installations of SAFE in one namespace differ by it. Let
no scrape add a target label `group`: Prometheus would rename the exported one to `exported_group`, which no rule reads.
The scrape adds the labels `cluster` and `namespace`; the alerts work without them where there is only one.

The column "alerts" names the alerts of `config/alerts-*.yml` that read the metric, directly or through a recording
rule. The column "panels" names the panels of the dashboard *SAFE* that read it.

"""


def metrics_page() -> str:
    """Write the page."""
    families = list(text_string_to_metric_families(GOLDEN_PAGE.read_text(encoding="utf-8")))
    lines = ["| metric | type | labels | meaning | alerts | panels |", "|---|---|---|---|---|---|"]
    lines += [_row(family) for family in sorted(families, key=_name)]
    used = {label for family in families for sample in family.samples for label in sample.labels}
    lines += ["", "## Labels", "", "| label | values |", "|---|---|"]
    lines += [f"| `{label}` | {LABELS[label]} |" for label in sorted(used)]
    lines += ["", "## The process", "", "| metric | type | meaning |", "|---|---|---|"]
    lines += [f"| `{_name(each)}` | {each.type} | {each.documentation} |" for each in _of_the_process()]
    return _INTRODUCTION + "\n".join(lines) + "\n"


def _of_the_process() -> list[Metric]:
    return sorted(ProcessCollector(registry=None).collect(), key=_name)


def _name(family: Metric) -> str:
    return family.name + ("_total" if family.type == "counter" else "")


def _row(family: Metric) -> str:
    labels = sorted({label for sample in family.samples for label in sample.labels} - {"group"})
    names = {sample.name for sample in family.samples} | {family.name}
    cells = (
        f"`{_name(family)}`",
        family.type,
        ", ".join(f"`{label}`" for label in labels),
        family.documentation,
        ", ".join(f"[{name}](../how-to/runbooks.md#{name.lower()})" for name in _alerts_on(names)),
        ", ".join(_panels_on(names)),
    )
    return "| " + " | ".join(cell or "–" for cell in cells) + " |"


def _alerts_on(names: set[str]) -> Iterator[str]:
    """Name the alerts that read a metric, also through what is recorded of it."""
    every = [rule for file in RULE_FILES for rule in rules(file)]
    recorded = [rule for rule in every if "record" in rule]
    reached = set(names)
    while more := {rule["record"] for rule in recorded if metrics_in(rule["expr"]) & reached} - reached:
        reached |= more
    yield from sorted({rule["alert"] for rule in every if "alert" in rule and metrics_in(rule["expr"]) & reached})


def _panels_on(names: set[str]) -> list[str]:
    def expressions(panel: Any) -> str:
        return " ".join(target.get("expr", "") for target in panel.get("targets", []))

    return [panel["title"] for panel in dashboard()["panels"] if _reads(expressions(panel), names)]


def _reads(expression: str, names: set[str]) -> bool:
    return any(re.search(rf"\b{re.escape(name)}\b", expression) for name in names)
