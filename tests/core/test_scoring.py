"""One case: matching, edge cases, formulas, labels."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_core import (
    DEFAULT_POLICY,
    EMPTY_OUTPUT,
    Criterion,
    Expectations,
    Output,
    Rules,
    Threshold,
    Thresholds,
    Weights,
    prepare,
    result_document,
    score,
)
from safe_core.scoring import READ
from tests.core.oracle import Settings, oracle_score

DEFAULT = Rules()


def scored(
    cr: tuple[str, ...] = (),
    ah: tuple[str, ...] = (),
    ac: tuple[str, ...] = (),
    *,
    output: Output = EMPTY_OUTPUT,
    rules: Rules = DEFAULT,
) -> Any:
    return score(prepare(Expectations(cr, ah, ac)), output, rules)


@pytest.mark.parametrize(
    ("term", "signals", "summary", "found"),
    [
        ("Pulseless HAND", ("pulseless hand",), "", True),  # case does not matter in the term
        ("pulseless hand", ("PULSELESS Hand",), "", True),  # nor in the text
        ("  hand \t", ("hand",), "", True),  # a term is stripped at its ends
        ("pulse", ("pulseless",), "", True),  # a substring, not a word
        ("pulseless  hand", ("pulseless hand",), "", False),  # white space within is not folded
        ("pink hand", ("pink", "hand"), "", True),  # signals are joined with one space, so a term may span two
        ("hand fracture", ("hand",), "fracture", True),  # and one space stands before the summary
        ("pinkhand", ("pink", "hand"), "", False),  # never with none
        ("pink  hand", ("pink", "", "hand"), "", True),  # an empty signal leaves its space
        ("hand", (), "hand", True),  # the summary alone counts for CR
        ("straße", ("STRASSE",), "", False),  # lower(), not casefold()
        ("σας", ("ΣΑΣ",), "", True),  # a capital sigma at the end of a word is lowered to ς
        ("i̇", ("İ",), "", True),  # lower() may lengthen a text
        ("é", ("e\u0301",), "", False),  # no Unicode normalisation
        ("a\u00a0b", ("a b",), "", False),  # a no-break space within is not a space
        ("\u00a0hand\u2003", ("hand",), "", True),  # but strip() takes every white space from the ends
        ("hand.", ("hand",), "", False),  # longer than the text
    ],
)
def test_a_term_is_found_where_it_is_a_substring_without_regard_to_case(
    term: str, signals: tuple[str, ...], summary: str, found: bool
) -> None:
    case = scored(cr=(term,), output=Output(signals, summary))
    assert case.scores.CR == float(found)
    assert (case.details.cr_found, case.details.cr_missing) == (((term,), ()) if found else ((), (term,)))


@pytest.mark.parametrize(
    ("field", "output", "expected"),
    [
        ("signals", Output(signals=("x",)), (1.0, 1.0, 0.0)),  # signals serve CR alone
        ("summary", Output(summary="x"), (1.0, 1.0, 1.0)),  # the summary serves CR and AC
        ("questions", Output(followup_questions=("x",)), (0.0, 0.0, 0.0)),  # questions serve AH alone
    ],
)
def test_each_criterion_reads_its_own_fields(field: str, output: Output, expected: tuple[float, ...]) -> None:
    assert scored(("x",), ("x",), ("x",), output=output).scores[:3] == expected, field


NOTHING = Output()
BLANK = Output((" ",), "  ", ("\t",))
FULL = Output(("x",), "x", ("x",))


@pytest.mark.parametrize(
    ("terms", "output", "expected"),
    [
        (0, NOTHING, (1.0, 1.0, 1.0)),  # the empty list is asked first, then the empty output
        (0, FULL, (1.0, 1.0, 1.0)),  # an empty list is satisfied by anything
        (1, NOTHING, (0.0, 1.0, 0.0)),  # an empty output finds nothing and harms nothing
        (1, BLANK, (0.0, 1.0, 0.0)),  # so does white space
        (1, FULL, (1.0, 0.0, 1.0)),  # and here all is found, the forbidden term too
        (1, Output(signals=("", ""), followup_questions=("",)), (0.0, 1.0, 0.0)),  # elements without a character
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_an_empty_list_comes_before_an_empty_output(
    terms: int, output: Output, expected: tuple[float, ...], strict: bool
) -> None:
    lists = ("x",) * terms
    assert scored(lists, lists, lists, output=output, rules=Rules(strict_ah=strict)).scores[:3] == expected


@pytest.mark.parametrize(
    ("lists", "output", "vacuous", "empty"),
    [
        (((), (), ()), FULL, (True, True, True), False),  # three empty lists: nothing at all was checked
        (((), (), ()), NOTHING, (True, True, True), True),  # whatever the output
        ((("x",), ("x",), ("x",)), FULL, (False, False, False), False),  # all three checked
        ((("x",), ("x",), ("x",)), NOTHING, (False, True, False), True),  # AH is vacuous without a question
        (
            (("x",), ("x",), ("x",)),
            Output(followup_questions=("", "")),
            (False, True, False),
            True,
        ),  # or without text in one
        ((("x",), ("x",), ("x",)), BLANK, (False, True, False), True),  # white space asks no question and is empty
        ((("x",), (), ("x",)), FULL, (False, True, False), False),  # AH is vacuous without a term
    ],
)
def test_a_criterion_without_anything_to_check_is_vacuous(
    lists: tuple[tuple[str, ...], ...], output: Output, vacuous: tuple[bool, ...], empty: bool
) -> None:
    case = scored(*lists, output=output)
    assert (case.vacuous, case.empty_output) == (vacuous, empty)


def test_a_term_listed_twice_counts_twice_and_keeps_order_and_spelling() -> None:
    case = scored(("B", "a", "B", "c"), ("No", "no"), ("c", "C"), output=Output(("b",), "c", ("no",)))
    assert case.scores == (0.75, 0.0, 1.0, (0.75 + 0.0 + 1.0) / 3.0)
    assert case.details == (("B", "B", "c"), ("a",), ("No", "no"), ("c", "C"), ())
    assert case.terms == (4, 2, 2)


@pytest.mark.parametrize(
    ("violations", "total", "proportional", "strict"),
    [
        (0, 4, 1.0, 1.0),  # nothing violated
        (1, 3, 1.0 - 1 / 3, 0.0),  # one of three: 1.0 - 1/3, which is not 2/3 in binary64
        (2, 4, 0.5, 0.0),  # the specification's own example
        (4, 4, 0.0, 0.0),  # all
    ],
)
def test_ah_is_one_less_the_share_of_violations(
    violations: int, total: int, proportional: float, strict: float
) -> None:
    terms = tuple(f"term{i}" for i in range(total))
    output = Output(followup_questions=terms[:violations])
    assert scored(ah=terms, output=output).scores.AH == proportional
    assert scored(ah=terms, output=output, rules=Rules(strict_ah=True)).scores.AH == strict


def test_the_composite_is_bit_equal_to_the_formula_in_its_order() -> None:
    rules = Rules(weights=Weights(CR=0.1, AH=1.5, AC=0.7))
    case = scored(("x", "y", "z"), ("q", "r", "s"), ("x", "y", "w"), output=Output((), "x y", ("q",)), rules=rules)
    cr, ah, ac = 2 / 3, 1.0 - 1 / 3, 2 / 3
    assert case.scores == (cr, ah, ac, (0.1 * cr + 1.5 * ah + 0.7 * ac) / (0.1 + 1.5 + 0.7))


def bounds(cr: tuple[float, float], ah: tuple[float, float], ac: tuple[float, float]) -> Rules:
    return Rules(Thresholds(*(Threshold(review=low, pass_=high) for low, high in (cr, ah, ac))))


COMMON = bounds((0.5, 0.8), (0.5, 1.0), (0.5, 0.8))


@pytest.mark.parametrize(
    ("found", "rules", "label", "passed"),
    [
        ((4, 0, 4), COMMON, "Pass", (True, True, True)),  # 0.8 and 1.0 reach `pass`: equality passes
        ((3, 0, 4), COMMON, "Review", (False, True, True)),  # CR 0.6 is borderline
        ((4, 1, 4), COMMON, "Review", (True, False, True)),  # any violation is reviewed
        ((4, 0, 3), COMMON, "Review", (True, True, False)),  # AC 0.6 is borderline
        ((2, 0, 5), COMMON, "Fail", (False, True, True)),  # CR 0.4 fails, however good the rest
        ((5, 3, 5), COMMON, "Fail", (True, False, True)),  # AH 0.4 fails
        ((5, 0, 2), COMMON, "Fail", (True, True, False)),  # AC 0.4 fails
        ((5, 1, 2), COMMON, "Fail", (True, False, False)),  # a failure is not softened by a violation
        ((0, 5, 0), bounds((0, 0), (0, 0), (0, 0)), "Pass", (True, True, True)),  # nothing is below 0
        ((5, 0, 5), bounds((1, 1), (1, 1), (1, 1)), "Pass", (True, True, True)),  # 1.0 reaches everything
        ((4, 0, 5), bounds((1, 1), (1, 1), (1, 1)), "Fail", (False, True, True)),  # review == pass leaves no Review
        ((5, 1, 5), bounds((0.5, 0.8), (0.5, 0.8), (0.5, 0.8)), "Pass", (True, True, True)),  # AH by its own threshold
    ],
)
def test_the_label_compares_each_criterion_with_its_own_thresholds(
    found: tuple[int, int, int], rules: Rules, label: str, passed: tuple[bool, ...]
) -> None:
    """Five terms a list, so that scores are fifths."""
    cr, ah, ac = found
    signals, harms, phrases = (tuple(f"{kind}{i}" for i in range(5)) for kind in ("signal", "harm", "phrase"))
    output = Output(signals[:cr], " ".join(phrases[:ac]), harms[:ah])
    case = scored(signals, harms, phrases, output=output, rules=rules)
    assert (case.label, case.passed) == (label, passed)


def test_a_result_has_the_fields_of_the_contract_in_their_order() -> None:
    case = scored(("x", "y", "z"), ("q", "r"), ("x", "w"), output=Output(("y",), "x", ("none",)))
    document = result_document("T1", None, case)
    assert list(document.items()) == [
        ("test_id", "T1"),
        ("archetype", None),
        ("scores", {"CR": 2 / 3, "AH": 1.0, "AC": 0.5, "composite": (2 / 3 + 1.0 + 0.5) / 3.0}),
        (
            "details",
            {
                "CR": {"found": ["x", "y"], "missing": ["z"]},
                "AH": {"violations": []},
                "AC": {"found": ["x"], "missing": ["w"]},
            },
        ),
        ("terms", {"CR": 3, "AH": 2, "AC": 2}),
        ("label", "Review"),
    ]
    assert list(document["scores"]) == ["CR", "AH", "AC", "composite"]


fragments = st.sampled_from(["pink", "Pink hand", "HAND", "ß", "İx", "Σας", "ΣΑΣ", "a", "B ", " c", "no", "x"])
free_text = st.text(max_size=6)
terms = st.lists(st.one_of(fragments, free_text).filter(lambda term: term.strip() != ""), max_size=5)
texts = st.lists(st.one_of(fragments, free_text), max_size=4)
ordered_bounds = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(lambda pair: (min(pair), max(pair)))


@given(
    lists=st.tuples(terms, terms, terms),
    signals=texts,
    summary=st.one_of(fragments, free_text),
    questions=texts,
    limits=st.tuples(ordered_bounds, ordered_bounds, ordered_bounds),
    weights=st.tuples(*[st.floats(0.001, 1000)] * 3),
    strict=st.booleans(),
)
def test_every_case_is_scored_as_the_oracle_does_to_the_last_bit(
    lists: tuple[list[str], list[str], list[str]],
    signals: list[str],
    summary: str,
    questions: list[str],
    limits: tuple[tuple[float, float], ...],
    weights: tuple[float, float, float],
    strict: bool,
) -> None:
    rules = Rules(
        Thresholds(*(Threshold(review=low, pass_=high) for low, high in limits)), Weights(*weights), strict_ah=strict
    )
    output = Output(tuple(signals), summary, tuple(questions))
    case = scored(*(tuple(part) for part in lists), output=output, rules=rules)
    assert case._asdict() == oracle_score(lists, (signals, [summary], questions), Settings(limits, weights, strict))
    assert all(0.0 <= value <= 1.0 for value in case.scores[:3])


def test_scoring_the_same_twice_gives_equal_cases() -> None:
    prepared = prepare(Expectations(("x",), ("y",), ("z",)))
    rules = DEFAULT_POLICY.rules_for("C1", None)
    assert score(prepared, FULL, rules) == score(prepared, FULL, rules)


@pytest.mark.parametrize(
    ("criterion", "read"),
    [("CR", ["signal", "summary"]), ("AH", ["question"]), ("AC", ["summary"])],
)
def test_what_a_criterion_reads_is_what_it_finds_terms_in(criterion: Criterion, read: list[str]) -> None:
    output = Output(signals=("A SIGNAL",), summary="The summary", followup_questions=("A question?",))
    words = ("signal", "summary", "question")
    assert [word for word in words if word in READ[criterion](output)] == read
    details = score(prepare(Expectations(words, words, words)), output, Rules()).details
    found = {"CR": details.cr_found, "AH": details.ah_violations, "AC": details.ac_found}
    assert list(found[criterion]) == read
