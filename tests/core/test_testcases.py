"""Batch files as factory-cli writes them."""

from typing import Any

import pytest

from safe_core import (
    BadTestCase,
    Expectations,
    InvalidBatch,
    TestCase,
    known_archetype,
    parse_batch,
    scenario_archetype,
)

EXPECTATIONS = {"signal_generation": {"must_find_signals": ["x"]}}


def only(case: Any, **plans: Any) -> TestCase | BadTestCase:
    (read,) = parse_batch({"test_cases": [case], **plans}).cases
    return read


def test_a_test_case_is_read_with_its_ids_and_expectations() -> None:
    case = {"test_id": "T", "concern_id": "C", "archetype": "A", "metric_id": "M", "expectations": EXPECTATIONS, "x": 1}
    assert only(case) == TestCase("T", "C", "A", "M", Expectations(("x",)))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"x": ["y", "z"], "w": ["v"]}, (("x", ("y", "z")), ("w", ("v",)))),
        ({"x": ["y", " ", 3, None], "w": [], "v": "u"}, (("x", ("y",)),)),  # lint names what is left out
        (["x"], ()),
        (None, ()),
    ],
)
def test_accepted_wordings_are_read_and_a_bad_one_spoils_nothing(written: object, read: object) -> None:
    case = only({"test_id": "T", "expectations": EXPECTATIONS, "accepted_wordings": written})
    assert isinstance(case, TestCase)
    assert case.accepted_wordings == read
    assert case.expectations == Expectations(("x",)), "nothing that is scored depends on them"


@pytest.mark.parametrize("absent", [{}, {"concern_id": None, "archetype": None, "metric_id": None}])
def test_optional_ids_may_be_absent_or_null(absent: dict[str, Any]) -> None:
    assert only({"test_id": "T", "expectations": {}, **absent}) == TestCase("T", None, None, None, Expectations())


@pytest.mark.parametrize(
    ("case", "test_id", "problem"),
    [
        ("SECRET", None, "is not an object"),  # never repeats the text
        ({"expectations": {}}, None, "test_id is missing"),
        ({"test_id": None, "expectations": {}}, None, "test_id is missing"),
        ({"test_id": 7, "expectations": {}}, None, "test_id is not a string"),
        ({"test_id": "a\n", "expectations": {}}, None, "test_id holds the control character U+000A"),
        ({"test_id": "T"}, "T", "expectations are absent or null"),  # a good id is named with the problem
        ({"test_id": "T", "expectations": None}, "T", "expectations are absent or null"),
        ({"test_id": "T", "expectations": []}, "T", "expectations are not an object"),
        (
            {"test_id": "T", "expectations": {"event_summary": {"must_contain_phrases": [""]}}},
            "T",
            "event_summary.must_contain_phrases[0] is blank",
        ),
        ({"test_id": "T", "expectations": {}, "concern_id": " "}, "T", "concern_id is blank"),
        ({"test_id": "T", "expectations": {}, "concern_id": 25}, "T", "concern_id is not a string"),
        ({"test_id": "T", "expectations": {}, "metric_id": "x" * 257}, "T", "metric_id is longer than 256 characters"),
        ({"test_id": "T", "expectations": {}, "archetype": ["A"]}, "T", "archetype is not a string"),
        (
            {"test_id": "T", "expectations": {}, "archetype": "A\x00"},
            "T",
            "archetype holds the control character U+0000",
        ),
    ],
)
def test_a_bad_test_case_is_named_and_does_not_spoil_the_others(case: Any, test_id: str | None, problem: str) -> None:
    good = {"test_id": "G", "expectations": {}}
    batch = parse_batch({"test_cases": [good, case, good]})
    assert batch.cases[1] == BadTestCase(test_id, 1, problem)
    assert batch.cases[0] == batch.cases[2] == TestCase("G", None, None, None, Expectations())


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "not an object"),
        (None, "not an object"),
        ('{"test_cases": []}\n', "not an object, but a string that looks like one: it was encoded as JSON twice"),
        ({}, "test_cases is missing"),
        ({"testCases": [{"expectations": {}}]}, "test_cases is missing, and another key holds test cases"),
        ({"cases": {"T": {"expectations": {}}}}, "test_cases is missing, and another key holds test cases"),
        ({"batch": {"test_cases": [{"expectations": {}}]}}, "test_cases is missing, and another key holds test cases"),
        ({"TestCases": []}, "test_cases is missing, and another key holds test cases"),
        ({"test-cases": {}, "batches": []}, "test_cases is missing, and another key holds test cases"),
        ({"testCases": 3, "batches": [{"test_cases": ["T"]}]}, "^test_cases is missing$"),
        ({"test_id": "T", "expectations": {}}, "is a single test case; a batch file has a list named test_cases"),
        ({"test_cases": None}, "test_cases is not a list"),
        ({"test_cases": {}}, "test_cases is not a list"),
    ],
)
def test_what_is_no_batch_file_is_refused(document: Any, message: str) -> None:
    with pytest.raises(InvalidBatch, match=message):
        parse_batch(document)


@pytest.mark.parametrize(
    ("scenario", "archetype"),
    [
        ("Generated Case 1: [Process_Auditor] 6yo male, Borderline.", "Process_Auditor"),  # the first [Name]
        ("[A] then [B]", "A"),  # the first of several
        ("Safety_Signal case for [Other]", "Other"),  # brackets before the first word
        ("[ Process Auditor ] x", "Process Auditor"),  # a name may hold a space
        ("[] [ ] Safety_Signal", None),  # empty brackets name nothing, and the first word is no name
        ("Safety_Signal case for a 4yo", "Safety_Signal"),  # else the first word with an underscore
        ("  Safety_Signal: a case", "Safety_Signal"),  # without the punctuation after it
        ("Safety_Signal", "Safety_Signal"),  # alone
        ("Case for Safety_Signal", None),  # not the first word
        ("Generated case", None),  # no underscore
        ("", None),
        ("[Unknown] case", None),  # the placeholder names nothing
        ({"description": "[B] x", "archetype": "A"}, "A"),  # an object by its archetype
        ({"description": "[B] x"}, None),  # and by nothing else
        ({"archetype": "Unknown"}, None),
        ({"archetype": " "}, None),
        ({"archetype": 7}, None),
        ({"archetype": "A\n"}, None),  # what is no id names nothing
        (7, None),
        (None, None),
    ],
)
def test_a_scenario_names_its_archetype_or_none(scenario: Any, archetype: str | None) -> None:
    assert scenario_archetype(scenario) == archetype


@pytest.mark.parametrize(
    ("own", "plans", "archetype"),
    [
        ("A", {"batch_plan": {"scenarios": ["[B] x"]}}, "A"),  # the test case before its scenario
        (None, {"batch_plan": {"scenarios": ["[B] x"]}}, "B"),
        ("Unknown", {"batch_plan": {"scenarios": ["[B] x"]}}, "B"),  # a placeholder is missing
        (" ", {"batch_strategy": {"scenarios": [{"archetype": "B"}]}}, "B"),  # so is a blank one
        (
            None,
            {"batch_plan": {"scenarios": ["none"]}, "batch_strategy": {"scenarios": ["[B] x"]}},
            "B",
        ),  # plan, then strategy
        (None, {"batch_plan": {"scenarios": ["[A] x"]}, "batch_strategy": {"scenarios": ["[B] x"]}}, "A"),
        (None, {"batch_plan": {"scenarios": []}}, None),  # no scenario at this position
        (None, {"batch_plan": {"scenarios": "[B] x"}}, None),  # a plan of another shape is no plan
        (None, {"batch_plan": ["[B] x"]}, None),
        (None, {"batch_plan": None}, None),
        ("Unknown", {}, None),
    ],
)
def test_the_archetype_is_the_test_cases_own_or_its_scenarios(
    own: str | None, plans: Any, archetype: str | None
) -> None:
    case = only({"test_id": "T", "archetype": own, "expectations": {}}, **plans)
    assert isinstance(case, TestCase)
    assert case.archetype == archetype


def test_scenarios_belong_to_test_cases_by_position() -> None:
    cases = [{"test_id": f"T{i}", "expectations": {}} for i in range(3)]
    batch = parse_batch({"test_cases": cases, "batch_plan": {"scenarios": ["[A]", "none", "[C]", "[D]"]}})
    assert [case.archetype for case in batch.cases if isinstance(case, TestCase)] == ["A", None, "C"]


@pytest.mark.parametrize(
    ("name", "known"), [("A", "A"), (None, None), ("Unknown", None), ("", None), ("unknown", "unknown")]
)
def test_a_placeholder_is_a_missing_archetype(name: str | None, known: str | None) -> None:
    assert known_archetype(name) == known
