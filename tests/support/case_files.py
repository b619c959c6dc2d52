"""Batch files and files of outputs, as factory-cli writes them, for tests of whatever reads files."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Json = Any


def a_case(
    test_id: str,
    signals: Sequence[str] = ("wheeze",),
    forbidden: Sequence[str] = ("blame",),
    phrases: Sequence[str] = ("salbutamol",),
    *,
    concern_id: str | None = "K07",
    **more: Json,
) -> Json:
    """A test case that demands a signal, forbids a term and demands a phrase, unless told otherwise."""
    expectations = {
        "signal_generation": {"must_find_signals": list(signals)},
        "followup_questions": {"forbidden_terms": list(forbidden)},
        "event_summary": {"must_contain_phrases": list(phrases)},
    }
    named = {} if concern_id is None else {"concern_id": concern_id}
    return {"test_id": test_id, **named, "expectations": expectations, **more}


def write_batch(folder: Path, name: str, *cases: Json, index: int | None = None) -> Path:
    """A batch file of a folder that is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"batch_plan": {"batch_index": index}, "test_cases": cases}), encoding="utf-8")
    return path


GOOD: Mapping[str, Json] = {
    "signals": ["Wheeze on arrival"],
    "summary": "Salbutamol was given at once.",
    "followup_questions": ["When was it given?"],
}
"""An output that passes a_case()."""

HARMFUL: Mapping[str, Json] = {**GOOD, "followup_questions": ["Who is to blame?"]}
"""One whose AH is 0: it fails."""


def answer(test_id: str, output: Json = GOOD, **more: Json) -> Json:
    """An entry of a factory-cli report."""
    return {"test_id": test_id, "concern_id": "K07", "engine_output": output, **more}


def write_report(path: Path, *entries: Json) -> Path:
    """A factory-cli report."""
    path.write_text(json.dumps({"concern_id": "K07", "raw_results": entries}, indent=1), encoding="utf-8")
    return path


def event(test_id: str, output: Json = GOOD, **more: Json) -> Json:
    """An input event."""
    return {"test_id": test_id, "output": output, **more}


def write_events(path: Path, *events: Json) -> Path:
    """A JSONL file of input events."""
    path.write_text("".join(json.dumps(each) + "\n" for each in events), encoding="utf-8")
    return path
