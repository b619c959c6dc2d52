"""The cases as a JUnit report."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from consumer.offline.pages.junit import render_junit
from safe_core import Expectations, Output
from safe_core.diagnosis import DoubtfulHit, Passage
from tests.support.golden import matches_golden
from tests.support.scored_runs import NASTY, SMALL, Sample, nasty_samples, scored_run


def report(samples: list[Sample] | tuple[Sample, ...], *, review_fails: bool = False) -> ET.Element:
    text = render_junit(scored_run(samples), review_fails=review_fails)
    return ET.fromstring(text.encode())  # noqa: S314 (it is our own)


def case(root: ET.Element, test_id: str) -> ET.Element:
    (found,) = [test for test in root.iter("testcase") if test.get("name") == test_id]
    return found


def only(parent: ET.Element) -> ET.Element:
    (child,) = parent
    return child


def told_by(suite: ET.Element) -> dict[str, str]:
    return {entry.get("name", ""): entry.get("value", "") for entry in suite.iterfind("properties/property")}


def test_a_small_run() -> None:
    matches_golden("small.junit.xml", render_junit(scored_run(SMALL)))


def test_texts_that_try_to_break_out() -> None:
    matches_golden("nasty.junit.xml", render_junit(scored_run(nasty_samples())))


def test_it_begins_with_what_safe_knows_it_by() -> None:
    declaration, root, *_ = render_junit(scored_run(SMALL)).splitlines()
    assert declaration == '<?xml version="1.0" encoding="UTF-8"?>'
    assert root.startswith('<testsuites name="SAFE v0 ')


def test_each_batch_is_a_suite_that_counts_its_cases() -> None:
    counts = ("name", "tests", "failures", "errors", "skipped")
    assert [[suite.get(name) for name in counts] for suite in report(SMALL)] == [
        ["S11.S11_wards_1", "3", "1", "0", "1"],
        ["S11.S11_wards_2", "4", "2", "0", "1"],
    ]


def test_cases_of_a_batch_are_together_wherever_they_stand() -> None:
    root = report((*SMALL[:4], Sample("late", SMALL[0].expectations, SMALL[0].output)))
    assert [(suite.get("name"), suite.get("tests")) for suite in root] == [
        ("S11.S11_wards_1", "4"),
        ("S11.S11_wards_2", "1"),
    ]


def test_a_suite_tells_how_it_was_judged() -> None:
    suite = report(SMALL)[0]
    run = scored_run(SMALL).report
    assert told_by(suite) == {
        "verdict": "Fail",
        "pass_rate": "0.2857142857142857",
        "version": "0.1.0",
        "rule": "substring/1",
        "fingerprint": run["scorer"]["fingerprint"],
        "failed_generations": "0",
        "input_mismatches": "0",
        "near_violations": "0",
        "unsupported": "0",
        "doubtful_hits": "0",
        "vacuous.CR": "0",
        "vacuous.AH": "0",
        "vacuous.AC": "0",
        "vacuous.all": "0",
    }
    assert suite.get("timestamp") == "2026-03-02T08:00:00"


def test_a_pass_is_nothing_but_a_test() -> None:
    passed = case(report(SMALL), "S11-W1-001")
    assert (passed.get("classname"), passed.get("time"), list(passed)) == ("S11.S11_wards_1", "0", [])


def test_a_suite_counts_what_its_own_scores_do_not_say() -> None:
    hit = DoubtfulHit("CR", "fever", "negated", Passage("signals", 0, 0, 5))
    run = scored_run(
        [
            Sample("T-1", Expectations((), (), ()), Output(("fever",))),
            Sample("T-2", Expectations(("fever",), (), ()), Output(("fever",))),
            Sample("T-3", Expectations((), (), ()), Output(("fever",)), batch_id="S11_wards_2"),
        ]
    )
    row = run.cases[1].row
    foreign = replace(row, shared=row.shared._replace(input_matches=False))
    run = replace(run, cases=[run.cases[0], replace(run.cases[1], doubtful=(hit, hit), row=foreign), run.cases[2]])
    counts = ("input_mismatches", "doubtful_hits", "vacuous.CR", "vacuous.AH", "vacuous.AC", "vacuous.all")
    suites = ET.fromstring(render_junit(run).encode())  # noqa: S314 (it is our own)
    assert [[told_by(suite)[name] for name in counts] for suite in suites] == [
        ["1", "2", "1", "2", "2", "1"],
        ["0", "0", "1", "1", "1", "1"],
    ]


def test_a_case_with_nothing_to_check_says_so() -> None:
    passed = case(report([Sample("T-1", Expectations((), (), ()), Output(("fever",)))]), "T-1")
    assert only(passed).tag == "system-out"
    assert only(passed).text == "nothing was checked: no term is listed, or for AH no question was asked"


def test_a_fail_names_the_bounds_and_the_terms() -> None:
    failure = only(case(report(SMALL), "S11-W1-003"))
    assert (failure.tag, failure.get("type")) == ("failure", "Fail")
    assert failure.get("message") == "CR 0.00 below review 0.5; AC 0.00 below review 0.5"
    assert (failure.text or "").splitlines() == [
        "CR 0.00 below review 0.5",
        "AC 0.00 below review 0.5",
        "CR 0.00, AH 1.00, AC 0.00, composite 0.33",
        "archetype: Escalation_Tracker",
        "CR missing: an unwitnessed fall from bed",
        "AC missing: a GCS of 14",
        "AC missing: a head CT was ordered",
    ]


def test_a_review_is_skipped_and_says_why_to_every_reader() -> None:
    skipped, output = case(report(SMALL), "S11-W1-002")
    assert (skipped.tag, output.tag) == ("skipped", "system-out")
    assert skipped.get("message") == "Review: AH 0.50 below pass 1.0"
    assert skipped.text == output.text
    assert "AH used: negligence" in (output.text or "").splitlines()


def test_a_review_fails_where_that_is_asked_for() -> None:
    root = report(SMALL, review_fails=True)
    failure = only(case(root, "S11-W1-002"))
    assert (failure.tag, failure.get("type"), failure.get("message")) == ("failure", "Review", "AH 0.50 below pass 1.0")
    assert (root.get("tests"), root.get("failures")) == ("7", "5")
    assert [suite.get("skipped") for suite in root] == ["0", "0"]


NOTHING_THERE = [
    # (test case, what is said first)
    ("S11-W2-002", "empty output; CR 0.00"),
    ("S11-W2-003", "no output; CR 0.00"),
]


@pytest.mark.parametrize(("test_id", "said"), NOTHING_THERE)
def test_a_case_without_an_output_says_so(test_id: str, said: str) -> None:
    assert only(case(report(SMALL), test_id)).get("message", "").startswith(said)


def test_every_text_survives_in_its_own_line() -> None:
    terms = [text.replace("\x1b", r"\u001b").replace("\u202e", r"\u202e") for text in NASTY]
    failures = [only(test).text or "" for test in report(nasty_samples()).iter("testcase")]
    assert [f"AC missing: {term}" for term in terms] == [text.splitlines()[-1] for text in failures]


def test_characters_that_xml_cannot_hold_are_spelled_out() -> None:
    expectations = Expectations(("a\ufffeb\uffffc\x00d\u0085e\tf",), (), ())
    # A file's name may hold bytes that are no text.
    (suite,) = report([Sample("T-1", expectations, Output(("x",), ""), batch_id="b\udcff")])
    assert suite.get("name") == r"S11.b\udcff"
    failure = only(case(suite, "T-1"))
    assert (failure.text or "").splitlines()[-1] == r"CR missing: a\ufffeb\uffffc\u0000d\u0085e\u0009f"
