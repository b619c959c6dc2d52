"""What queries speak of: the metrics and labels that stand in them, and those that the worker really has."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.support.kafka_broker import PROJECT
from tests.support.prometheus import CONFIG

RULE_FILES = ("alerts-service.yml", "alerts-quality.yml", "alerts-settings.yml")
GOLDEN_PAGE = PROJECT / "tests" / "golden" / "monitoring" / "metrics.prom"
# What Prometheus adds to every series, Kubernetes to some, and Prometheus' own series have.
COMMON_LABELS = {"job", "instance", "namespace", "cluster", "alertname", "alertstate"}
OTHERS_METRICS = {
    "up", "ALERTS", "process_resident_memory_bytes", "process_cpu_seconds_total", "process_start_time_seconds",
    "process_max_fds", "process_open_fds", "process_virtual_memory_bytes",
}  # fmt: skip

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_GROUPING = re.compile(r"\b(?:by|on|group_left|group_right|without|ignoring) \(([^)]*)\)")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*(?=@)")
_METRIC = re.compile(r"\b(?:safe[_:][\w:]+|process_\w+|up|ALERTS)\b")


def metrics_in(expression: str) -> set[str]:
    """Name every metric of ours, and of Prometheus, that an expression reads."""
    return set(_METRIC.findall(_STRING.sub("@", expression)))


def labels_in(expression: str) -> set[str]:
    """Name every label that an expression matches, groups or joins by."""
    bare = _STRING.sub("@", expression)
    grouped = {label.strip() for found in _GROUPING.findall(bare) for label in found.split(",")}
    return (grouped | set(_MATCHER.findall(bare))) - {""}


def rules(name: str) -> list[Any]:
    """Return the rules of one file under config/."""
    document = yaml.safe_load((CONFIG / name).read_text(encoding="utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]


def alerts() -> dict[str, list[Any]]:
    """Return the rules of every alert by its name: one for each severity."""
    found: dict[str, list[Any]] = {}
    for rule in (rule for name in RULE_FILES for rule in rules(name) if "alert" in rule):
        found.setdefault(rule["alert"], []).append(rule)
    return found


def recorded() -> Iterator[Any]:
    """Yield every recording rule."""
    yield from (rule for name in RULE_FILES for rule in rules(name) if "record" in rule)


@cache
def known_metrics() -> frozenset[str]:
    """Name everything that a query may read: samples of the worker's page and what the rules record."""
    return frozenset(sample for samples in _page().values() for sample in samples) | {
        rule["record"] for rule in recorded()
    }


@cache
def known_labels() -> frozenset[str]:
    """Name every label that a query may use."""
    own = frozenset(label for samples in _page().values() for labels in samples.values() for label in labels)
    return own | {label for rule in recorded() for label in rule.get("labels", {})} | COMMON_LABELS


def _page() -> Mapping[str, Mapping[str, Iterable[str]]]:
    families = text_string_to_metric_families(GOLDEN_PAGE.read_text(encoding="utf-8"))
    return {family.name: {sample.name: sample.labels for sample in family.samples} for family in families}
