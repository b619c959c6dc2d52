"""The kinds that the diagnosis says of real misses, against labels that a person gave by eye.

The labels were halved by a hash before anything was tuned: the rules were worked out on one half, the other one counts.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.diagnosis import ALARMS, Judged, f1_of_kinds, judged, mean, real_cases
from safe_core.diagnosis import diagnose
from tests.support.real_cases import REAL, real_cases_only

pytestmark = real_cases_only
LABELS = Path(__file__).parent / "labels"
HALVES = ["real_misses_tune.json", "real_misses_final.json"]


def found(half: str) -> list[Judged]:
    labels: list[dict[str, Any]] = json.loads((LABELS / half).read_text(encoding="utf-8"))
    return judged(real_cases(REAL), labels)


@pytest.mark.parametrize("half", HALVES)
def test_the_kinds_agree_with_a_person(half: str) -> None:
    scores = f1_of_kinds([(each.settled, each.said) for each in found(half)])
    assert mean(scores) >= 0.85, scores


@pytest.mark.parametrize("half", HALVES)
def test_no_false_alarm_is_given_on_what_a_person_has_read(half: str) -> None:
    assert not [each.miss for each in found(half) if each.said in ALARMS and each.said not in each.allowed]


def test_every_labelled_miss_is_of_one_half() -> None:
    places = [
        (label["outputs"], label["test_id"], label["criterion"], label["place"])
        for half in HALVES
        for label in json.loads((LABELS / half).read_text(encoding="utf-8"))
    ]
    assert len(places) == len(set(places)) == 177


# ─── verdicts ───

VERDICTS = json.loads((LABELS / "real_verdicts.json").read_text(encoding="utf-8"))
"""The verdicts of two readers apart, who agreed on 100 of 101; nothing was tuned on them."""


def verdicts_found() -> list[tuple[str, list[str]]]:
    diagnoses = {
        (case.outputs, case.test_id): diagnose(case.expectations, case.output, case.narrative)
        for case in real_cases(REAL)
    }
    pairs = []
    for label in VERDICTS:
        misses = diagnoses[label["outputs"], label["test_id"]].misses
        miss = [each for each in misses if each.criterion == label["criterion"]][label["place"]]
        pairs.append((miss.verdict, label["verdicts"]))
    return pairs


def test_the_verdicts_are_those_of_the_readers() -> None:
    pairs = verdicts_found()
    assert sum(said in readers for said, readers in pairs) / len(pairs) >= 0.9
    assert not [pair for pair in pairs if pair[0] in {"term", "output"} and pair[0] not in pair[1]]
    assert sum(said == "look" for said, _ in pairs) / len(pairs) <= 0.15


def test_what_stands_word_for_word_in_another_field_is_said_so() -> None:
    for case in real_cases(REAL):
        for miss in diagnose(case.expectations, case.output, case.narrative).misses:
            unread = ["followup_questions"] if miss.criterion == "CR" else ["signals", "followup_questions"]
            holding = {
                field for field in unread if miss.term.lower().strip() in " ".join(getattr(case.output, field)).lower()
            }
            assert {place.field for place in miss.also_in} == holding
            assert not holding or miss.verdict == "prompt"
