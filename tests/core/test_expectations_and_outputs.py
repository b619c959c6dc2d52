"""Reading expectations and outputs."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_core import (
    EMPTY_OUTPUT,
    MAX_ID_LENGTH,
    MAX_TERMS,
    Expectations,
    InvalidExpectations,
    InvalidOutput,
    Output,
    id_problem,
    prepare,
)


def lists(cr: Any, ah: Any, ac: Any) -> dict[str, Any]:
    return {
        "signal_generation": {"must_find_signals": cr, "min_signal_count": 3},
        "followup_questions": {"forbidden_terms": ah, "required_themes": ["x"]},
        "event_summary": {"must_contain_phrases": ac},
    }


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (lists(["a"], ["b"], ["c", "c"]), Expectations(("a",), ("b",), ("c", "c"))),  # as factory-cli writes them
        (lists([], [], []), Expectations()),  # three empty lists are scored as the specification says
        (lists(None, None, None), Expectations()),  # a null list is an empty one
        ({}, Expectations()),  # so is an absent section
        ({"signal_generation": None, "event_summary": {}}, Expectations()),  # a null one, and an absent list
        (lists([" a "], [], []), Expectations((" a ",))),  # the spelling stays
        ({"extra": 1, **lists(["a"], [], [])}, Expectations(("a",))),  # unknown fields are ignored
    ],
)
def test_expectations_are_read_leniently_where_the_contract_says_so(document: Any, expected: Expectations) -> None:
    assert Expectations.parse(document) == expected


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "expectations are absent or null"),  # absent altogether
        ([], "expectations are not an object"),  # a list
        ("SECRET", "expectations are not an object"),  # a text, which is not repeated
        ({"signal_generation": []}, "signal_generation is not an object"),  # a section of the wrong type
        ({"event_summary": "SECRET"}, "event_summary is not an object"),  # likewise
        ({"followup_questions": False}, "followup_questions is not an object"),  # false is not null
        (lists("SECRET", [], []), "signal_generation.must_find_signals is not a list"),  # a text is no list of letters
        (lists([], {}, []), "followup_questions.forbidden_terms is not a list"),  # nor is an object
        (lists([], [], 0), "event_summary.must_contain_phrases is not a list"),  # nor zero
        (lists(["a", ""], [], []), "signal_generation.must_find_signals[1] is blank"),  # an empty term
        (lists([], ["a", "b", "  "], []), "followup_questions.forbidden_terms[2] is blank"),  # white space
        (lists([], [], ["\u00a0\t\u2003"]), "event_summary.must_contain_phrases[0] is blank"),  # of any kind
        (lists([1], [], []), "signal_generation.must_find_signals[0] is not a string"),  # a number
        (lists([None], [], []), "signal_generation.must_find_signals[0] is not a string"),  # null in a list
        (lists([], [["x"]], []), "followup_questions.forbidden_terms[0] is not a string"),  # a list in a list
        (lists([], [], ["\ud800"]), "event_summary.must_contain_phrases[0] holds a lone surrogate"),  # no UTF-8 for it
        (lists(["x"] * MAX_TERMS, ["y"], []), "expectations hold more than 10000 terms"),  # over the three lists
    ],
)
def test_bad_expectations_are_refused_with_the_place_and_never_the_text(document: Any, message: str) -> None:
    with pytest.raises(InvalidExpectations) as caught:
        Expectations.parse(document)
    assert str(caught.value) == message


def test_a_blank_term_makes_the_expectations_invalid_also_without_parsing() -> None:
    with pytest.raises(InvalidExpectations, match=r"must_find_signals\[0\] is blank"):
        Expectations(must_find_signals=(" ",))


def test_as_many_terms_as_allowed_are_accepted() -> None:
    assert prepare(Expectations.parse(lists(["x"] * (MAX_TERMS - 1), ["y"], []))).terms == (MAX_TERMS - 1, 1, 0)


def test_the_digest_is_that_of_the_canonical_json_of_the_three_lists() -> None:
    expected = Expectations(('a"\\\n\x1f\x7f',), ("é\u2028",), ("𝛼",))
    canonical = '[["a\\"\\\\\\n\\u001f\x7f"],["é\u2028"],["𝛼"]]'
    assert expected.digest == prepare(expected).digest == "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


@given(st.lists(st.lists(st.text(min_size=1).filter(lambda t: t.strip() != ""), max_size=3), min_size=3, max_size=3))
def test_equal_lists_have_equal_digests_and_others_do_not(terms: list[list[str]]) -> None:
    one = Expectations.parse(lists(*terms))
    assert one.digest == Expectations.parse(json.loads(json.dumps(lists(*terms)))).digest
    assert (
        one.digest != Expectations((*one.must_find_signals, "x"), one.forbidden_terms, one.must_contain_phrases).digest
    )


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"signals": ["a"], "summary": "b", "followup_questions": ["c"]}, Output(("a",), "b", ("c",))),  # whole
        (None, EMPTY_OUTPUT),  # null is an empty output
        ({}, EMPTY_OUTPUT),  # so is one without fields
        ({"signals": None, "summary": None, "followup_questions": None}, EMPTY_OUTPUT),  # or with null ones
        ({"summary": "b", "raw_input": 1, "latency_ms": 3}, Output(summary="b")),  # what is not read may be anything
    ],
)
def test_an_output_may_lack_fields(document: Any, expected: Output) -> None:
    assert Output.parse(document) == expected


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("SECRET", "output is not an object"),  # a text, which is not repeated
        ([], "output is not an object"),  # a list
        (
            '{"summary": "SECRET"}',
            "output is not an object, but a string that looks like one: it was encoded as JSON twice",
        ),
        ({"signals": "SECRET"}, "output.signals is not a list"),  # a text is no list of letters
        ({"signals": ["a", 1]}, "output.signals[1] is not a string"),  # a number for a string
        ({"signals": [None]}, "output.signals[0] is not a string"),  # null in a list
        ({"summary": ["SECRET"]}, "output.summary is not a string"),  # a list for a string
        ({"summary": 0}, "output.summary is not a string"),  # zero is not null
        ({"followup_questions": {"a": 1}}, "output.followup_questions is not a list"),  # an object for a list
        ({"followup_questions": [True]}, "output.followup_questions[0] is not a string"),  # a claim for a string
    ],
)
def test_a_bad_output_is_refused_with_the_field_and_never_the_text(document: Any, message: str) -> None:
    with pytest.raises(InvalidOutput) as caught:
        Output.parse(document)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("output", "empty", "asks"),
    [
        (EMPTY_OUTPUT, True, False),  # nothing at all
        (Output(("", ""), "", ("",)), True, False),  # elements without a character
        (Output((" ",)), True, False),  # white space says nothing
        (Output((), "\n"), True, False),  # in the summary neither
        (Output((), "", ("", " \t\u2003\u3000\x1c")), True, False),  # and asks nothing, whatever white space it is
        (Output((), "\u200b"), False, False),  # no white space, though nobody sees it
        (Output((" ", ".")), False, False),
        (Output((), " ", ("\n", "?")), False, True),
    ],
)
def test_an_output_is_empty_where_no_element_holds_more_than_white_space(
    output: Output, empty: bool, asks: bool
) -> None:
    assert (output.is_empty, output.asks_questions) == (empty, asks)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("I25-BATCH1-001", None),  # the usual kind
        ("x" * MAX_ID_LENGTH, None),  # the longest
        (" x ", None),  # nothing is trimmed
        ("../../etc/passwd", None),  # a path is an id like any other; no file is opened by it
        ("a/b%2Fc", None),  # quoting is the business of keys
        ("\u202eabc\u200d", None),  # bidi override and joiner are escaped where shown
        ("e\u0301😀", None),  # any script
        ("a\u00a0b", None),  # the first character after C1
        ("", "is empty"),
        (" \u00a0\t", "is blank"),  # of white space alone
        ("x" * (MAX_ID_LENGTH + 1), "is longer than 256 characters"),
        ("a\nb", "holds the control character U+000A"),  # C0
        ("a\x00", "holds the control character U+0000"),
        ("\x1b[31m", "holds the control character U+001B"),
        ("a\x7f", "holds the control character U+007F"),  # DEL
        ("a\x9b", "holds the control character U+009B"),  # C1
        ("a\ud800", "holds a lone surrogate"),  # no UTF-8 could carry it
    ],
)
def test_an_id_is_good_unless_empty_blank_long_or_with_a_control_character(text: str, problem: str | None) -> None:
    assert id_problem(text) == problem
