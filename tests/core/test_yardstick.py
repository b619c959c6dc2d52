"""The yardstick of the diagnosis: its families have their sizes, and it catches an engine that is wrong."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bench.yardstick import bounds, families, labelled, numbers
from bench.yardstick.bounds import Bound, Measure
from bench.yardstick.cases import Case, Engine, Said, judged, shown, verdict_of
from safe_core.matching_rule import normalise

ENCOUNTERS = ("encounters.json", "foreign.json", "contradicted.json")


def as_labelled(case: Case) -> Said:
    """An engine that says what the label says."""
    return Said(*(sorted(part)[0] for part in (case.output_says, case.narrative_says, case.verdicts)))


def always(says: str, verdict: str) -> Engine:
    return lambda _: Said(says, "supported", verdict)


def measured(engine: Engine, cases: list[Case], measures: tuple[Measure, ...]) -> list[Bound]:
    each = judged(engine, cases)
    return [measure.measure("", each) for measure in measures]


def test_the_families_have_their_sizes() -> None:
    contradictions = families.contradictions()
    assert len({each.name for each in contradictions}) == 1020
    assert sum(not each.term.endswith(families.STARTED) for each in contradictions) == 935
    assert len({each.output for each in families.mirrors()}) == 340
    assert len(set(numbers.twins())) == len(set(numbers.differences())) == 50


@pytest.mark.parametrize("make", [families.contradictions, families.mirrors, numbers.twins, numbers.differences])
def test_no_term_of_a_family_is_found_word_for_word(make: Callable[[], list[Case]]) -> None:
    for case in make():
        texts = normalise(" ".join((*case.output.signals, case.output.summary)))
        assert normalise(case.term) not in texts, shown(judged(as_labelled, [case])[0])


def test_every_bound_is_kept_by_an_engine_that_says_what_the_labels_say() -> None:
    everything = [
        *measured(as_labelled, families.contradictions(), bounds.CONTRADICTIONS),
        *measured(as_labelled, families.mirrors(), bounds.MIRRORS),
        *measured(as_labelled, numbers.twins(), bounds.TWINS),
        *measured(as_labelled, numbers.differences(), bounds.DIFFERENCES),
    ]
    assert {each.verdict for each in everything} <= {"ok", ""}


@pytest.mark.parametrize(
    ("says", "verdict", "make", "measures"),
    [
        ("said", "term", families.contradictions, bounds.CONTRADICTIONS),
        ("contradicted", "output", families.mirrors, bounds.MIRRORS),
        ("contradicted", "output", numbers.twins, bounds.TWINS),
        ("part", "prompt", numbers.differences, bounds.DIFFERENCES),
    ],
)
def test_an_engine_that_always_says_the_same_falls_short(
    says: str, verdict: str, make: Callable[[], list[Case]], measures: tuple[Measure, ...]
) -> None:
    assert "short" in {each.verdict for each in measured(always(says, verdict), make(), measures)}


def test_one_wrong_answer_is_shown_with_its_texts() -> None:
    case = families.mirrors()[0]
    (bound, *_) = measured(always("contradicted", "output"), [case], bounds.MIRRORS)
    assert len(bound.wrong) == 1
    assert case.term in shown(bound.wrong[0])
    assert case.output.signals[0] in shown(bound.wrong[0])


def test_what_nobody_has_measured_keeps_no_bound() -> None:
    assert Bound("", (), (), least=0.5).verdict == "NOT MEASURED"


@pytest.mark.parametrize(
    ("output_says", "narrative_says", "verdict"),
    [
        ("said", "supported", "term"),
        ("said", "contradicts", "look"),
        ("elsewhere", "silent", "look"),
        ("part", "partly", "prompt"),
        ("absent", "silent", "term"),
        ("contradicted", "supported", "output"),
        ("contradicted", "partly", "look"),
        ("contradicted", "unknown", "look"),
        ("contradicted", "contradicts", "term"),
        ("both", "silent", "look"),
    ],
)
def test_the_table_of_verdicts(output_says: str, narrative_says: str, verdict: str) -> None:
    assert verdict_of(output_says, narrative_says) == verdict


def test_a_person_looks_where_the_narrative_has_it_too() -> None:
    assert verdict_of("contradicted", "supported", narrative_has_it_too=True) == "look"


def test_every_label_is_of_a_miss_of_its_set() -> None:
    read = [case for file in labelled.OLD for case in labelled.old(file)]
    real = [name for file, name in labelled.axes() if file == "real"]
    assert len(read) + len(real) == len(labelled.axes())
    assert len(real) == 101
    assert all(case.output_says and case.narrative_says and case.verdicts for case in read)


def test_what_is_kept_apart_is_of_encounters_that_nothing_else_is_of() -> None:
    apart = {name: labelled.load(labelled.LABELS / "apart" / name) for name in ENCOUNTERS}
    assert [len(rows) for rows in apart.values()] == [108, 24, 24]
    others = {row["id"] for name in ENCOUNTERS for row in labelled.load(labelled.LABELS / name)}
    assert others.isdisjoint(row["id"] for rows in apart.values() for row in rows)


def test_the_same_answer_counts_as_another_class_only_where_it_is() -> None:
    case = replace(families.mirrors()[0], output_says=frozenset({"part"}))
    (judgement,) = judged(always("absent", "prompt"), [case])
    assert bounds.class_is_right(judgement)
    assert not bounds.output_is_right(judgement)
