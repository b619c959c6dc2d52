"""Recall allowing for wording, and coverage: what stands beside CR and AC, and never moves them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_core import DEFAULT_POLICY, EMPTY_OUTPUT, Expectations, Output, prepare, score
from safe_core.diagnosis import diagnose
from safe_core.lenient import beside_scores
from safe_core.lenient_scores import Lenient, Marks, MarksTotal, Recall, by_term


def judged(output: Output, signals: tuple[str, ...] = (), phrases: tuple[str, ...] = ()) -> Lenient:
    details = score(prepare(Expectations(signals, (), phrases)), output, DEFAULT_POLICY.default).details
    return beside_scores(output, NARRATIVE, details).lenient


NARRATIVE = "The nurse gave metoprolol 50 mg at 10:15. She denied chest pain. The left ankle was swollen."

SHARES = [
    # (term, summary, whether it counts as recalled, what of it is there)
    ("swollen left ankle", "A swollen left ankle.", True, 1000),
    # said in other words, and in full
    ("swollen left ankle", "Her left ankle had edema.", True, 1000),
    # a part of it
    ("swollen left ankle", "The ankle was seen.", False, 333),
    # the contrary
    ("swollen left ankle", "The left ankle was not swollen.", False, 0),
    ("metoprolol 50 mg", "She took metoprolol 25 mg.", False, 0),
    # found, but denied, while the narrative does not deny it: the score counts it, so recall does; it is not there
    ("swollen", "The ankle was not swollen.", True, 0),
    # found, but with another value than the narrative's
    ("metoprolol", "She took metoprolol 25 mg.", True, 0),
    # found within a longer word, which may still mean it
    ("swollen", "A reswollen ankle.", True, 1000),
    ("swollen left ankle", "", False, 0),
]


@pytest.mark.parametrize(("term", "summary", "recalled", "share"), SHARES)
def test_what_counts_of_a_term(term: str, summary: str, recalled: bool, share: int) -> None:
    found = judged(Output(("a signal",), summary, ()), phrases=(term,)).AC
    assert found.recalled == recalled
    assert found.shares == share


def test_each_criterion_asks_the_fields_that_it_reads() -> None:
    found = judged(
        Output(("Her left ankle had edema.",), "Nothing else.", ()), ("swollen left ankle",), ("left ankle",)
    )
    assert (found.CR.said, found.CR.coverage) == (1, 1000)
    assert (found.AC.said, found.AC.coverage) == (0, 0)


def test_a_term_that_is_listed_twice_counts_twice_and_without_terms_all_is_there() -> None:
    found = judged(
        Output((), "Her left ankle had edema.", ()), (), ("swollen left ankle", "swollen left ankle", "cough")
    )
    assert found.AC == Recall(terms=3, found=0, doubtful=0, said=2, accepted=0, shares=2000)
    assert (found.AC.lenient, found.AC.coverage) == (2 / 3, 666)
    assert found.CR == Recall(0, 0, 0, 0, 0, 0)
    assert (found.CR.lenient, found.CR.coverage) == (1.0, 1000)


def test_what_people_accept_counts_and_is_not_asked_about() -> None:
    output = Output((), "The ankle was puffed up. Her left ankle had edema.", ())
    terms = ("joint effusion", "swollen left ankle")
    details = score(prepare(Expectations(terms, (), terms)), output, DEFAULT_POLICY.default).details
    accepted = (("Joint effusion", ("puffed up",)), ("swollen left ankle", ("left ankle had edema",)))
    alone = beside_scores(output, None, details).lenient
    found = beside_scores(output, None, details, accepted[:1]).lenient
    assert (alone.AC.said, alone.AC.accepted) == (1, 0)
    assert found.AC == found.CR == Recall(terms=2, found=0, doubtful=0, said=1, accepted=1, shares=2000)
    assert beside_scores(output, None, details, accepted).lenient.AC.accepted == 2


def test_an_empty_output_says_nothing() -> None:
    assert judged(EMPTY_OUTPUT, ("fever",), ("fever",)).marks == Marks(0.0, 0.0, 0, 0)


SOME = "no left ankle was swollen denies chest pain metoprolol 50 25 mg . and the possible"
WORDS = st.sampled_from(SOME.split())
TEXTS = st.lists(WORDS, max_size=14).map(" ".join)
TERMS = st.lists(st.lists(WORDS, min_size=1, max_size=4).map(" ".join), max_size=4).map(tuple)


@given(TEXTS, TEXTS, TERMS, TERMS)
def test_lenient_recall_is_never_below_the_score_and_says_what_the_diagnosis_says(
    signal: str, summary: str, signals: tuple[str, ...], phrases: tuple[str, ...]
) -> None:
    expected, output = Expectations(signals, (), phrases), Output((signal,), summary, ())
    judged = score(prepare(expected), output, DEFAULT_POLICY.default)
    lenient = beside_scores(output, NARRATIVE, judged.details).lenient
    misses = diagnose(expected, output, NARRATIVE).misses
    for criterion in ("CR", "AC"):
        recall: Recall = getattr(lenient, criterion)
        own = [miss for miss in misses if miss.criterion == criterion]
        if recall.terms:
            assert recall.lenient >= getattr(judged.scores, criterion)
        assert recall.said == sum(miss.output_says == "said" for miss in own)
        assert 0 <= recall.coverage <= 1000


# --- over cases -------------------------------------------------------------------------------------------------------

RECALLS = st.integers(0, 8).flatmap(
    lambda terms: st.integers(0, terms).map(lambda found: Recall(terms, found, 0, terms - found, 0, 700 * terms))
)
MANY = st.lists(st.builds(Lenient, RECALLS, RECALLS), min_size=1, max_size=30)


@given(MANY, st.randoms(use_true_random=False))
def test_means_are_exact_in_any_order(cases: list[Lenient], order: random.Random) -> None:
    marks = [case.marks for case in cases]
    means = MarksTotal.of(marks).means
    order.shuffle(marks)
    assert MarksTotal.of(marks).means == means
    more = MarksTotal.of([*marks, *marks])
    for each in marks:
        more = more.moved(each, -1)
    assert more == MarksTotal.of(marks)


def test_the_terms_of_all_cases_are_counted_with_an_interval() -> None:
    counted = by_term([Recall(4, 1, 1, 1, 1, 3000), Recall(4, 0, 0, 0, 0, 400), Recall(0, 0, 0, 0, 0, 0)])
    low, high = counted.pop("interval")
    assert counted == {"terms": 8, "found": 1, "doubtful": 1, "said": 1, "accepted": 1, "recall": 3 / 8}
    assert 0 < low < 3 / 8 < high < 1
    assert by_term([Recall(0, 0, 0, 0, 0, 0)])["recall"] is None
    assert MarksTotal.of([]).means == {}
