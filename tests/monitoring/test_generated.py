"""What is made from the files of consumer/alerts is what it would be now: a rule edited by hand turns this red."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from consumer.alerts.rules import grafana_template, prometheus_rules, settings_file
from consumer.alerts.source import load
from tests.support.golden import UPDATE
from tests.support.kafka_broker import PROJECT
from tests.support.runbooks import runbooks

SOURCE = load()
MADE: Mapping[str, Callable[[], str]] = {
    "config/alerts-service.yml": partial(prometheus_rules, SOURCE, "service"),
    "config/alerts-quality.yml": partial(prometheus_rules, SOURCE, "quality"),
    "charts/safe/files/grafana-alerts.yml": partial(grafana_template, SOURCE),
    "config/alerts-settings.yml": settings_file,
    "docs/how-to/runbooks.md": partial(runbooks, SOURCE),
}


@pytest.mark.parametrize("name", MADE)
def test_a_generated_file_is_what_its_source_makes_of_it(name: str) -> None:
    file, made = PROJECT / name, MADE[name]()
    if os.environ.get(UPDATE) == "1":
        file.write_text(made, encoding="utf-8")
        pytest.fail(f"{name} was rewritten: read what `git diff` shows, then run without {UPDATE}")
    assert differs_at(file, made) == "", f"{name}: change its source in consumer/alerts, and run this with {UPDATE}=1"


def differs_at(file: Path, made: str) -> str:
    """The first line of a file that is another one than would be made now; empty if there is none."""
    kept = file.read_text(encoding="utf-8").splitlines()
    lines = made.splitlines()
    for number, (is_, wanted) in enumerate(zip(kept, lines, strict=False), start=1):
        if is_ != wanted:
            return f"line {number}: {is_!r} instead of {wanted!r}"
    return "" if len(kept) == len(lines) else f"{len(kept)} lines instead of {len(lines)}"


@pytest.mark.parametrize("name", MADE)
def test_a_change_by_hand_is_found(name: str, tmp_path: Path) -> None:
    text = MADE[name]()
    edited = tmp_path / "edited"
    words = {"config/alerts-service.yml": "No SAFE worker is up", "config/alerts-settings.yml": "vector(0)"}
    edited.write_text(text.replace(words.get(name, "is below its floor"), "Well"), encoding="utf-8")
    assert differs_at(edited, text) != ""
