"""The kinds that the diagnosis says of real misses, against labels that a person gave by eye.

The labels were halved by a hash before anything was tuned: the rules were worked out on one half, the other one counts.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.diagnosis import ALARMS, Judged, f1_of_kinds, judged, mean, real_cases
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
