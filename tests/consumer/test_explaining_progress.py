"""The bar of `safe explain` counts the cases that are explained, on a terminal only."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from consumer.files.outputs import open_all
from consumer.files.selection import select
from consumer.offline.scoring import score_files
from consumer.terminal import Bar, progress_bar
from safe_core import DEFAULT_POLICY, Expectations, Output
from safe_core.diagnosis import diagnose, reading
from safe_core.diagnosis.units import Unit, units_of
from tests.support.noting_bar import NotingBar

ASKED = Expectations(("CT after 55 minutes",))
PASSES = Output(("CT after 55 minutes",), "It took long.", ("Why?",))


def texts_read(monkeypatch: pytest.MonkeyPatch, output: Output, asked: Expectations = ASKED) -> list[str]:
    """Diagnose with nothing remembered of earlier cases, and give the texts that were read."""
    told: list[str] = []

    def noted(text: str, most: int) -> Iterator[Unit]:
        told.append(text)
        return units_of(text, most)

    monkeypatch.setattr(reading, "units_of", noted)
    reading.remembered.cache_clear()
    diagnose(asked, output, "CT after 55 minutes.")
    return told


def test_no_text_is_read_for_a_case_that_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert texts_read(monkeypatch, PASSES) == []


def test_fields_that_decide_nothing_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    told = texts_read(monkeypatch, Output(("CT, after 55 minutes",), "It took long.", ("Why?",)))
    assert told.count("CT, after 55 minutes") == 1
    assert "Why?" not in told


def test_a_text_that_both_criteria_read_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Expectations(("dry cough",), (), ("sore throat",))
    long = "It took long. " * 200  # what is short is remembered, however often it is asked for
    assert texts_read(monkeypatch, Output(summary=long), asked).count(long) == 1


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_bar_begins_again_with_the_cases_to_explain(*, is_terminal: bool) -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=is_terminal, width=80)
    with progress_bar(console, "reading", None) as bar:
        assert isinstance(bar, Bar)
        bar(7)
        bar.explaining(4)
        bar(3)
    assert ("explaining" in shown.getvalue() and "75%" in shown.getvalue()) is is_terminal


def test_scoring_says_how_many_cases_it_explains_and_counts_them(tmp_path: Path) -> None:
    names = ["ST-1", "ST-2", "ST-3"]
    expectations = {"signal_generation": {"must_find_signals": ["CT"]}}
    cases = [{"test_id": name, "concern_id": "STROKE", "expectations": expectations} for name in names]
    replies = [{"test_id": name, "engine_output": {"signals": [], "summary": ""}} for name in names[:2]]
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "stroke_1.json").write_text(json.dumps({"test_cases": cases}))
    (tmp_path / "run.json").write_text(json.dumps({"raw_results": replies}))
    bar = NotingBar()
    score_files(
        select(tmp_path / "cases", "STROKE", "*"),
        open_all([tmp_path / "run.json"]),
        DEFAULT_POLICY,
        generated_at="",
        explain="without text",
        bar=bar,
    )
    assert bar.told == [*[("read", 1)] * 2, ("explaining", 3), *[("read", 1)] * 3]
