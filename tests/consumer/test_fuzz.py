"""Whatever a record and its expectations hold: one outcome, no stranger's exception, no word of the input repeated.

A short run of what `python -m bench.fuzz` does for hours; always the same inputs, and no clock.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, given, settings

from consumer.dead_letter_reasons import REASONS, Poison
from consumer.wire.input_event import InputEvent
from consumer.wire.input_event import decode as real_decode
from consumer.wire.scored_record import encode_result_of
from consumer.worker import scorer as scorer_module
from consumer.worker.dead_letter_writing import append_dead_letter
from consumer.worker.scoring_memory import EncodedScore, ScoringMemory
from safe_core import DEFAULT_POLICY, CaseScore, JudgedBy, Output, PreparedExpectations, score
from tests.support.drawing import cases
from tests.support.fuzzing import CANARY, NOW, Case, Examiner, Finding
from tests.support.mutation import Mutator, seeds

SEEDS = seeds(1)
GOOD = SEEDS[0]
BAD = replace(GOOD, value=CANARY.encode())
MUTATIONS = 600

NOT_OF_THESE_INPUTS = frozenset({"scorer_error"})
"""Reasons that no input may have."""


@pytest.fixture(scope="module")
def examiner() -> Iterator[Examiner]:
    examiner = Examiner(allowed_seconds=None)
    yield examiner
    examiner.close()


# --- what holds -------------------------------------------------------------------------------------------------------


def test_inputs_of_every_known_kind_and_what_mutations_make_of_them_come_to_one_outcome_each(
    examiner: Examiner,
) -> None:
    mutator = Mutator(random.Random(20260302))
    mutated = (mutator.mutated(SEEDS[at % len(SEEDS)], SEEDS) for at in range(MUTATIONS))
    outcomes = Counter(examiner.examine(case).outcome for case in (*SEEDS, *mutated))
    # Or the inputs would not reach what they are meant for.
    assert outcomes.keys() == {"scored", "ignored", *REASONS} - NOT_OF_THESE_INPUTS
    assert outcomes["scored"] > MUTATIONS / 10


@settings(max_examples=150, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_inputs_drawn_at_will_come_to_one_outcome_each(examiner: Examiner, case: Case) -> None:
    assert examiner.examine(case).outcome in {"scored", "ignored", *REASONS}


def test_the_same_seed_makes_the_same_inputs() -> None:
    once, again = (Mutator(random.Random(3)).mutated(GOOD, seeds(1)) for _ in range(2))
    assert once == again


# --- the fuzz sees what it looks for ----------------------------------------------------------------------------------


def defective_decode(defect: Callable[[Case], object]) -> Callable[..., InputEvent | None]:
    def decode(record: Any, rules: Any) -> InputEvent | None:
        defect(record)
        return real_decode(record, rules)

    return decode


def lost(_record: Case) -> None:
    raise KeyError("output")


def quoting(record: Case) -> None:
    raise Poison("invalid_json", f"not valid JSON: {(record.value or b'')[:10]!r}")


def unlisted(_record: Case) -> None:
    raise Poison("bad_luck", "no such reason")  # type: ignore[arg-type]  # which is the defect


def too_long(_record: Case) -> None:
    raise Poison("invalid_json", "ü" * 300)  # cut to 512 bytes by the dead letter, so no defect of its own


def refusing(_record: Case) -> None:
    raise Poison("invalid_json", "what another parser reads")


def logging(record: Case) -> None:
    structlog.get_logger("safe.scorer").warning("cannot decode", value=str(record.value))


# what is wrong, the input that shows it, the finding
DEFECTS: list[tuple[Callable[[Case], object], Case, str]] = [
    (lost, GOOD, "KeyError escaped"),
    (quoting, BAD, "safe.dlq.detail repeats the input"),
    (unlisted, GOOD, "a dead letter with the reason bad_luck"),
    (refusing, GOOD, "another parser would not say invalid_json"),
    (logging, GOOD, "the log repeats the input"),
]


@pytest.mark.parametrize(("defect", "case", "finding"), DEFECTS)
def test_a_defect_of_decoding_is_found(
    examiner: Examiner, monkeypatch: pytest.MonkeyPatch, defect: Callable[[Case], object], case: Case, finding: str
) -> None:
    monkeypatch.setattr(scorer_module, "decode", defective_decode(defect))
    with pytest.raises(Finding, match=finding):
        examiner.examine(case)


def test_a_long_detail_is_cut_and_no_finding(examiner: Examiner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorer_module, "decode", defective_decode(too_long))
    assert examiner.examine(BAD).outcome == "invalid_json"


def test_a_dead_letter_may_name_its_place_whatever_the_input_holds(examiner: Examiner) -> None:
    assert examiner.examine(replace(GOOD, value=f"[{NOW}]".encode(), timestamp=NOW)).outcome == "not_object"


def strange(_case: CaseScore) -> CaseScore:
    raise ZeroDivisionError


def generous(case: CaseScore) -> CaseScore:
    return case._replace(scores=case.scores._replace(CR=0.25))


def above_one(case: CaseScore) -> CaseScore:
    return case._replace(scores=case.scores._replace(AC=1.5))


def with_the_output(case: CaseScore) -> CaseScore:
    return case._replace(details=case.details._replace(ah_violations=(CANARY,)))


def without_a_term(case: CaseScore) -> CaseScore:
    details = case.details
    return case._replace(details=details._replace(cr_found=details.cr_found[1:], cr_missing=details.cr_missing[1:]))


# what is wrong, the finding
WRONG_SCORES: list[tuple[Callable[[CaseScore], CaseScore], str]] = [
    (strange, "a dead letter with the reason scorer_error"),
    (generous, "the oracle gives other scores"),
    (above_one, "Undecodable escaped"),
    (with_the_output, "a violation of a term that is not forbidden"),
    (without_a_term, "terms were lost or made up"),
]


@pytest.mark.parametrize(("defect", "finding"), WRONG_SCORES)
def test_a_defect_of_scoring_is_found(
    examiner: Examiner, monkeypatch: pytest.MonkeyPatch, defect: Callable[[CaseScore], CaseScore], finding: str
) -> None:
    def score_(
        _self: ScoringMemory, test_id: str, by: JudgedBy, expected: PreparedExpectations, output: Output, **_: bool
    ) -> EncodedScore:
        case = defect(score(expected, output, DEFAULT_POLICY.rules_for(by.metric_id, by.archetype)))
        return EncodedScore(case, encode_result_of(test_id, by.archetype, case))

    monkeypatch.setattr(ScoringMemory, "score", score_)
    with pytest.raises(Finding, match=finding):
        examiner.examine(GOOD)


def test_a_dead_letter_that_is_not_its_input_is_found(examiner: Examiner, monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(outgoing: Any, record: Case, *rest: Any) -> None:
        append_dead_letter(outgoing, replace(record, value=(record.value or b"")[:-1]), *rest)

    monkeypatch.setattr("consumer.worker.scorer.append_dead_letter", altered)
    with pytest.raises(Finding, match="the value was altered"):
        examiner.examine(BAD)


def test_a_dead_letter_written_twice_is_found(examiner: Examiner, monkeypatch: pytest.MonkeyPatch) -> None:
    def doubled(*given: Any) -> None:
        append_dead_letter(*given)
        append_dead_letter(*given)

    monkeypatch.setattr("consumer.worker.scorer.append_dead_letter", doubled)
    with pytest.raises(Finding, match="2 records were written"):
        examiner.examine(BAD)


# --- time -------------------------------------------------------------------------------------------------------------


def examined(*seconds: float) -> None:
    """Examine a case whose runs take so long by the clock."""
    readings = iter([reading for taken in seconds for reading in (0.0, taken)])
    examiner = Examiner(allowed_seconds=0.05, clock=lambda: next(readings))
    try:
        examiner.examine(GOOD)
    finally:
        examiner.close()


def test_a_case_that_is_slow_once_had_to_share_the_processor() -> None:
    examined(0.02)
    examined(0.9, 0.9, 0.01, 0.9)


def test_a_case_that_is_slow_four_times_is_a_finding() -> None:
    with pytest.raises(Finding, match="60 ms for each 64 KiB"):
        examined(0.9, 0.06, 0.07, 0.08)
