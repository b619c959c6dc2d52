"""The shipped configuration of Prometheus and Alertmanager, installed for a test over workers that really run.

What a test changes in it is all here: addresses, the batches that are watched and their floors, where notifications go;
and, unless SAFE_TEST_AS_SHIPPED=1, how long everything waits.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.prometheus import CONFIG, Alertmanager, Prometheus, Webhook, serving, webhook
from tests.support.promql import RULE_FILES

AS_SHIPPED = os.environ.get("SAFE_TEST_AS_SHIPPED") == "1"
# Scrapes, evaluations, `for`, `keep_firing_for`, group wait and group interval.
HURRIED = "1s"
PATIENCE_SECONDS = 900.0 if AS_SHIPPED else 60.0
Json = Any


@dataclass(frozen=True, slots=True)
class Monitored:
    """A Prometheus that scrapes the workers, and what its Alertmanager has sent."""

    prometheus: Prometheus
    received: Webhook


@contextmanager
def monitored(
    folder: Path, workers: Sequence[str], *, batches: str, floors: Mapping[str, float]
) -> Iterator[Monitored]:
    """Watch the workers at these addresses, and the batches that a regular expression names, while the block lasts."""
    folder.mkdir(parents=True, exist_ok=True)
    with webhook() as received:
        manager = Alertmanager(folder, _alertmanager(folder, received.url))
        with serving(manager):
            for name in RULE_FILES:
                (folder / name).write_text(_rules(name, batches, floors), encoding="utf-8")
            prometheus = Prometheus(folder, _prometheus(folder, workers, manager.url))
            with serving(prometheus):
                yield Monitored(prometheus, received)


def _prometheus(folder: Path, workers: Sequence[str], manager: str) -> Path:
    document = _shipped("prometheus.yml")
    document["alerting"]["alertmanagers"] = [{"static_configs": [{"targets": [manager.removeprefix("http://")]}]}]
    [job] = document["scrape_configs"]
    del job["dns_sd_configs"]
    job["static_configs"] = [{"targets": list(workers)}]
    if not AS_SHIPPED:
        document["global"] = dict.fromkeys(document["global"], HURRIED)
    return _written(folder / "prometheus.yml", document)


def _alertmanager(folder: Path, url: str) -> Path:
    document = _shipped("alertmanager.yml")
    for receiver in document["receivers"]:
        receiver["webhook_configs"] = [{"url": url, "send_resolved": True}]
    if not AS_SHIPPED:
        document["route"] |= {"group_wait": HURRIED, "group_interval": HURRIED}
    return _written(folder / "alertmanager.yml", document)


def _rules(name: str, batches: str, floors: Mapping[str, float]) -> str:
    text = (CONFIG / name).read_text(encoding="utf-8").replace('batch_id=~""', f'batch_id=~"{batches}"')
    for measure, floor in floors.items():
        pattern = rf"vector\(0\)(\s+labels: {{owner: quality, measure: {measure}}})"
        text = re.sub(pattern, rf"vector({floor})\1", text)
    if AS_SHIPPED:
        return text
    text = re.sub(r"\b(for|keep_firing_for): \w+", rf"\1: {HURRIED}", text)
    return text.replace('up{job="safe"}[5m]', 'up{job="safe"}[5s]')


def _shipped(name: str) -> Json:
    return yaml.safe_load((CONFIG / name).read_text(encoding="utf-8"))


def _written(path: Path, document: Json) -> Path:
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path
