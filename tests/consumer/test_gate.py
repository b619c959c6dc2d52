"""Whether a report is good enough to go on, and what is said of one that cannot be used."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.errors import ConfigurationError
from consumer.offline.gate import Decision, FailOn, Gate
from consumer.offline.stored_report import checked_summary, read_report
from safe_core.intervals import wilson
from tests.support.scored_runs import SMALL, scored_run


def summary(passes: int, reviews: int, fails: int) -> dict[str, Any]:
    total = passes + reviews + fails
    return {
        "total_cases": total,
        "pass": passes,
        "review": reviews,
        "fail": fails,
        "overall_pass_rate": passes / total if total else 0.0,
    }


def decided(gate: Gate, of: Mapping[str, Any]) -> Decision:
    """The decision on a report of which nothing is known but its summary."""
    return gate.decide({"summary": of})


# --- the options ------------------------------------------------------------------------------------------------------

ASKED: list[tuple[float | None, FailOn | None, Gate | None]] = [
    # no gate at all: `safe score` then exits by the labels, `safe gate` has a rule of its own
    (None, None, None),
    # a rate alone does not look at the labels
    (0.8, None, Gate(0.8, "never")),
    (0.0, None, Gate(0.0, "never")),
    # one rule alone
    (None, "fail", Gate(None, "fail")),
    (None, "review", Gate(None, "review")),
    (None, "never", Gate(None, "never")),
    # both
    (0.8, "fail", Gate(0.8, "fail")),
    (1.0, "never", Gate(1.0, "never")),
]


@pytest.mark.parametrize(("min_pass_rate", "fail_on", "gate"), ASKED)
def test_what_is_asked_follows_from_the_options(
    min_pass_rate: float | None, fail_on: FailOn | None, gate: Gate | None
) -> None:
    assert Gate.asked(min_pass_rate, fail_on) == gate


BAD_RATES: list[tuple[float, str]] = [
    (math.nan, "--min-pass-rate nan is not a fraction from 0 to 1"),
    (-math.inf, "--min-pass-rate -inf is not a fraction from 0 to 1"),
    (math.inf, "--min-pass-rate inf is not a fraction from 0 to 1"),
    (-0.1, "--min-pass-rate -0.1 is not a fraction from 0 to 1"),
    (1.1, "--min-pass-rate 1.1 is not a fraction from 0 to 1; 80 percent is 0.8"),
    # percent
    (80.0, "--min-pass-rate 80.0 is not a fraction from 0 to 1; 80 percent is 0.8"),
    # it must not read as 1
    (math.nextafter(1, 2), "--min-pass-rate 1.0000000000000002 is not a fraction from 0 to 1; 80 percent is 0.8"),
]


@pytest.mark.parametrize(("rate", "message"), BAD_RATES)
def test_a_rate_that_is_no_fraction_is_refused(rate: float, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Gate.asked(rate, None)
    assert str(refused.value) == message


@pytest.mark.parametrize("confidence", [0.500001, 0.95, 0.9999])
def test_a_confidence_goes_with_a_rate(confidence: float) -> None:
    assert Gate.asked(0.8, None, confidence) == Gate(0.8, "never", confidence)
    assert Gate.asked(0.8, "fail", confidence) == Gate(0.8, "fail", confidence)


REVIEWED = "1 Review among 3 cases (--fail-on review)"
NEEDS_A_RATE = "--confidence has no effect without --min-pass-rate: give both"
BAD_CONFIDENCES: list[tuple[float | None, FailOn | None, float, str]] = [
    # no rate to be sure of
    (None, None, 0.95, NEEDS_A_RATE),
    (None, "fail", 0.95, NEEDS_A_RATE),
    # the ends, and what is rather the risk
    (0.8, None, 0.5, "--confidence 0.5 is not between 0.5 and 1"),
    (0.8, None, 1.0, "--confidence 1.0 is not between 0.5 and 1"),
    (0.8, None, 0.05, "--confidence 0.05 is not between 0.5 and 1"),
    # percent
    (0.8, None, 95.0, "--confidence 95.0 is not between 0.5 and 1; 95 percent is 0.95"),
    # no numbers to be between any
    (0.8, None, math.nan, "--confidence nan is not between 0.5 and 1"),
    (0.8, None, math.inf, "--confidence inf is not between 0.5 and 1"),
    # what no report could ever reach
    (
        1.0,
        None,
        0.95,
        (
            "--min-pass-rate 1.0 cannot be reached with --confidence: however many cases pass, the lower end of the "
            "interval stays below 1; lower --min-pass-rate, or leave --confidence out"
        ),
    ),
    # of two wrong things the rate comes first
    (80.0, None, 95.0, "--min-pass-rate 80.0 is not a fraction from 0 to 1; 80 percent is 0.8"),
]


@pytest.mark.parametrize(("rate", "fail_on", "confidence", "message"), BAD_CONFIDENCES)
def test_a_confidence_that_cannot_be_is_refused(
    rate: float | None, fail_on: FailOn | None, confidence: float, message: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Gate.asked(rate, fail_on, confidence)
    assert str(refused.value) == message


# --- the decision -----------------------------------------------------------------------------------------------------

DECISIONS: list[tuple[Gate, dict[str, Any], bool, str]] = [
    # the rate alone: above, equal, below
    (Gate(0.8, "never"), summary(9, 0, 1), True, "pass rate 0.9 (9 of 10 cases) is at least --min-pass-rate 0.8"),
    (Gate(0.8, "never"), summary(4, 0, 1), True, "pass rate 0.8 (4 of 5 cases) is at least --min-pass-rate 0.8"),
    (Gate(0.8, "never"), summary(3, 2, 0), False, "pass rate 0.6 (3 of 5 cases) is below --min-pass-rate 0.8"),
    # equality where binary64 has no exact fraction
    (Gate(0.1, "never"), summary(1, 9, 0), True, "pass rate 0.1 (1 of 10 cases) is at least --min-pass-rate 0.1"),
    # both ends
    (Gate(0.0, "never"), summary(0, 0, 1), True, "pass rate 0.0 (0 of 1 case) is at least --min-pass-rate 0.0"),
    (Gate(1.0, "never"), summary(1, 0, 0), True, "pass rate 1.0 (1 of 1 case) is at least --min-pass-rate 1.0"),
    (Gate(1.0, "never"), summary(999, 1, 0), False, "pass rate 0.999 (999 of 1000 cases) is below --min-pass-rate 1.0"),
    # rounded, but never to the other side of the bound
    (Gate(0.8, "never"), summary(2, 1, 0), False, "pass rate 0.667 (2 of 3 cases) is below --min-pass-rate 0.8"),
    (
        Gate(0.667, "never"),
        summary(2, 1, 0),
        False,
        "pass rate 0.6666666666666666 (2 of 3 cases) is below --min-pass-rate 0.667",
    ),
    (
        Gate(0.3333, "never"),
        summary(1, 2, 0),
        True,
        "pass rate 0.3333333333333333 (1 of 3 cases) is at least --min-pass-rate 0.3333",
    ),
    # nor to none or all
    (
        Gate(0.9, "never"),
        summary(9_996, 4, 0),
        True,
        "pass rate 0.9996 (9996 of 10000 cases) is at least --min-pass-rate 0.9",
    ),
    (
        Gate(0.9, "never"),
        summary(4, 9_996, 0),
        False,
        "pass rate 0.0004 (4 of 10000 cases) is below --min-pass-rate 0.9",
    ),
    # the labels alone: fail looks at Fail, review at both
    (Gate(None, "fail"), summary(1, 2, 0), True, "no Fail among 3 cases (--fail-on fail)"),
    (Gate(None, "fail"), summary(8, 1, 1), False, "1 Fail among 10 cases (--fail-on fail)"),
    (Gate(None, "review"), summary(3, 0, 0), True, "no Fail or Review among 3 cases (--fail-on review)"),
    (Gate(None, "review"), summary(2, 1, 0), False, "1 Review among 3 cases (--fail-on review)"),
    (Gate(None, "review"), summary(0, 0, 1), False, "1 Fail among 1 case (--fail-on review)"),
    (Gate(None, "review"), summary(2, 1, 3), False, "3 Fail and 1 Review among 6 cases (--fail-on review)"),
    # both must hold, and both are said where they do
    (
        Gate(0.5, "fail"),
        summary(1, 1, 0),
        True,
        "pass rate 0.5 (1 of 2 cases) is at least --min-pass-rate 0.5; no Fail among 2 cases (--fail-on fail)",
    ),
    # else only what decided
    (Gate(0.5, "fail"), summary(9, 0, 1), False, "1 Fail among 10 cases (--fail-on fail)"),
    (Gate(0.5, "fail"), summary(1, 4, 0), False, "pass rate 0.2 (1 of 5 cases) is below --min-pass-rate 0.5"),
    (
        Gate(0.5, "review"),
        summary(1, 4, 0),
        False,
        "pass rate 0.2 (1 of 5 cases) is below --min-pass-rate 0.5; 4 Review among 5 cases (--fail-on review)",
    ),
]


AT_95 = "--min-pass-rate 0.8 at 95 % confidence needs"
DECISIONS_BY_BOUND: list[tuple[Gate, dict[str, Any], bool, str]] = [
    # a rate of 0.9 found is not enough to be sure of 0.8; one case more is
    (
        Gate(0.8, "never", 0.95),
        summary(45, 5, 0),
        False,
        f"{AT_95} 46 of 50 cases to pass (in the report 45 pass, lower end of the interval 0.786)",
    ),
    (
        Gate(0.8, "never", 0.95),
        summary(46, 0, 4),
        True,
        f"{AT_95} 46 of 50 cases to pass (in the report 46 pass, lower end of the interval 0.811)",
    ),
    # all that there are, and just enough
    (
        Gate(0.8, "never", 0.95),
        summary(16, 0, 0),
        True,
        f"{AT_95} 16 of 16 cases to pass (in the report 16 pass, lower end of the interval 0.806)",
    ),
    # not enough cases, whether they pass or not
    (
        Gate(0.8, "never", 0.95),
        summary(15, 0, 0),
        False,
        f"not enough cases: {AT_95} at least 16 cases that all pass, but the report has 15",
    ),
    (
        Gate(0.8, "never", 0.95),
        summary(0, 0, 1),
        False,
        f"not enough cases: {AT_95} at least 16 cases that all pass, but the report has 1",
    ),
    # another confidence, as it was written
    (
        Gate(0.9, "never", 0.999),
        summary(97, 0, 0),
        False,
        (
            "not enough cases: --min-pass-rate 0.9 at 99.9 % confidence needs at least 98 cases that all pass, "
            "but the report has 97"
        ),
    ),
    # 0 is always reached
    (
        Gate(0.0, "never", 0.9),
        summary(0, 0, 3),
        True,
        (
            "--min-pass-rate 0.0 at 90 % confidence needs 0 of 3 cases to pass "
            "(in the report 0 pass, lower end of the interval 0.0)"
        ),
    ),
    # the labels beside it
    (
        Gate(0.8, "fail", 0.95),
        summary(49, 0, 1),
        False,
        "1 Fail among 50 cases (--fail-on fail)",
    ),
    (
        Gate(0.8, "review", 0.95),
        summary(2, 1, 0),
        False,
        f"not enough cases: {AT_95} at least 16 cases that all pass, but the report has 3; {REVIEWED}",
    ),
]


@pytest.mark.parametrize(("gate", "of", "passed", "why"), [*DECISIONS, *DECISIONS_BY_BOUND])
def test_the_gate_decides_and_says_by_which_rule(gate: Gate, of: dict[str, Any], passed: bool, why: str) -> None:
    decision = decided(gate, of)
    assert (decision.passed, decision.line) == (passed, f"gate {'passed' if passed else 'NOT passed'}: {why}")


def test_a_gate_without_a_condition_says_so_and_not_that_anything_passed() -> None:
    line = "gate: no condition was set (--fail-on never, no --min-pass-rate)"
    decision = decided(Gate(None, "never"), summary(0, 0, 3))
    assert (decision.passed, decision.line, decision.rules) == (True, line, ())


@given(st.integers(1, 10**9).flatmap(lambda total: st.tuples(st.integers(1, total), st.just(total))))
def test_the_nearest_rate_above_is_not_reached_and_reads_so(counts: tuple[int, int]) -> None:
    passes, total = counts
    found = summary(passes, total - passes, 0)
    rate = found["overall_pass_rate"]
    assert decided(Gate(rate, "never"), found).passed
    above = math.nextafter(rate, 2)
    if above <= 1:
        decision = decided(Gate(above, "never"), found)
        assert not decision.passed
        shown, _, asked = decision.line.removeprefix("gate NOT passed: pass rate ").partition(" ")
        assert float(shown) < above == float(asked.split("--min-pass-rate ")[1])
        assert float(shown) == pytest.approx(rate, abs=0.00051)


@given(passes=st.integers(0, 10_000), per_ten_thousand=st.integers(0, 10_000))
def test_a_rate_written_as_a_decimal_is_reached_exactly_when_the_counts_say_so(
    passes: int, per_ten_thousand: int
) -> None:
    gate = Gate(float(f"{per_ten_thousand / 10_000:.4f}"), "never")
    assert decided(gate, summary(passes, 0, 10_000 - passes)).passed is (passes >= per_ten_thousand)


@given(st.integers(0, 400), st.integers(0, 400), st.floats(0, 0.99), st.floats(0.51, 0.999))
def test_the_lower_bound_decides_and_never_reads_otherwise(
    passes: int, others: int, rate: float, confidence: float
) -> None:
    cases = passes + others or 1
    found = summary(passes, cases - passes, 0)
    decision = decided(Gate(rate, "never", confidence), found)
    assert decision.passed is (wilson(passes, cases, confidence).low >= rate)
    _, told, bound = decision.line.partition(", lower end of the interval ")
    if told:
        assert bound.endswith(")")
        assert (float(bound[:-1]) >= rate) is decision.passed
    else:
        assert wilson(cases, cases, confidence).low < rate


def test_what_a_confidence_takes_is_known_beforehand() -> None:
    gate = Gate(0.8, "never", 0.95)
    assert gate.needs(50) == "--min-pass-rate 0.8 at 95 % confidence needs 46 of 50 cases to pass"
    assert gate.needs(10) == (
        "not enough cases: --min-pass-rate 0.8 at 95 % confidence needs at least 16 cases that all pass"
    )
    assert Gate(0.8, "never").needs(50) is None
    assert Gate(None, "fail").needs(50) is None


# --- the report -------------------------------------------------------------------------------------------------------


def written(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


def with_summary(path: Path, **changes: object) -> Path:
    """A sound report but for some fields of its summary; ... leaves a field out."""
    merged = summary(4, 0, 1) | changes
    kept = {name: value for name, value in merged.items() if value is not ...}
    return written(path, {"report_type": "SAFE_v0", "summary": kept})


def refusal(path: Path) -> str:
    """What is said of a report that cannot be used, behind its name."""
    with pytest.raises(ConfigurationError) as refused:
        checked_summary(read_report(path), path)
    return str(refused.value).removeprefix(f"{path}: ")


def test_a_report_that_safe_score_writes_is_decided_on(tmp_path: Path) -> None:
    path = written(tmp_path / "report.json", scored_run(SMALL).report)
    found = read_report(path)
    assert checked_summary(found, path) == found["summary"]
    line = (
        "gate NOT passed: pass rate 0.286 (2 of 7 cases) is below --min-pass-rate 0.8. "
        "Note: 1 case with nothing at all to check"
    )
    decision = Gate(0.8, "never").decide(found)
    assert (decision.passed, decision.line) == (False, line)
    rate = "pass rate 0.286 (2 of 7 cases) is below --min-pass-rate 0.8"
    assert decision.document(["a remark"]) == {
        "passed": False,
        "conditions": [{"holds": False, "says": rate}],
        "note": "1 case with nothing at all to check",
        "remarks": ["a remark"],
    }


SOUND: list[tuple[str, Mapping[str, Any]]] = [
    # as jq writes numbers
    ("1 for 1.0", {"pass": 5, "fail": 0, "overall_pass_rate": 1}),
    ("0 for 0.0", {"pass": 0, "fail": 5, "overall_pass_rate": 0}),
    # more than SAFE knows today
    ("another field", {"skipped": 3}),
]


@pytest.mark.parametrize("changes", [row[1] for row in SOUND], ids=[row[0] for row in SOUND])
def test_a_report_that_another_tool_has_rewritten_is_decided_on(changes: Mapping[str, Any], tmp_path: Path) -> None:
    path = with_summary(tmp_path / "report.json", **changes)
    assert checked_summary(read_report(path), path)["total_cases"] == 5


def test_a_report_of_the_specification_without_a_type_is_decided_on(tmp_path: Path) -> None:
    path = written(tmp_path / "report.json", {"summary": summary(1, 0, 0)})
    assert checked_summary(read_report(path), path) == summary(1, 0, 0)


WRITES_ONE = "safe score --output report.json writes a report"

UNREADABLE: list[tuple[bytes, str]] = [
    # what a failed `safe score > report.json` leaves behind
    (b"", "is empty; check that the step that writes it has succeeded"),
    (b" \n", "is empty; check that the step that writes it has succeeded"),
    # a scorecard instead of JSON
    ("╔═══╗".encode(), "cannot be read: not valid JSON at line 1, column 1"),
    (b'{"summary": ', "cannot be read: not valid JSON at line 1, column 13"),
    # a shell that writes UTF-16
    ('{"summary": {}}'.encode("utf-16"), "cannot be read: it is UTF-16: write it as UTF-8"),
    (
        b"\xef\xbb\xbf{}",
        "is not a SAFE report, because it has no summary; safe score --output report.json writes a report",
    ),
    # a reader of JSON may take either of two
    (b'{"summary": {}, "summary": {}}', "cannot be read: a key appears twice in one object"),
    (b"[" * 65 + b"]" * 65, "cannot be read: nested deeper than 64 at character 64"),
    (b'{"summary": {"overall_pass_rate": NaN}}', "cannot be read: NaN and Infinity are not JSON"),
    # JSON, but no report
    (b"[]", f"is not a SAFE report; {WRITES_ONE}"),
    (b"0.8", f"is not a SAFE report; {WRITES_ONE}"),
    (b"null", f"is not a SAFE report; {WRITES_ONE}"),
    (b'{"report_type": "SAFE_v1", "summary": {}}', f"is not a SAFE report; {WRITES_ONE}"),
    (b'{"report_type": null, "summary": {}}', f"is not a SAFE report; {WRITES_ONE}"),
    (b"{}", f"is not a SAFE report, because it has no summary; {WRITES_ONE}"),
    # a batch file, say
    (b'{"test_cases": []}', f"is not a SAFE report, because it has no summary; {WRITES_ONE}"),
]


@pytest.mark.parametrize(("content", "why"), UNREADABLE)
def test_a_file_that_is_no_report_is_refused(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(content)
    assert refusal(path) == why


def test_outputs_in_place_of_a_report_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = written(tmp_path / "run.json", {"raw_results": [], "summary": {}})
    assert refusal(path) == f"holds outputs, not a SAFE report; score them first: safe score --outputs {path}"


def test_a_report_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "report.json") == "cannot be read (No such file or directory)"


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "cannot be read (Is a directory)"


def test_the_name_of_a_file_cannot_harm_a_terminal(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"\\u001b\[2J\\u202e\.json: cannot be read"):
        read_report(tmp_path / "\x1b[2J\u202e.json")


UNSOUND: list[tuple[Mapping[str, Any], str]] = [
    # no counts
    ({"total_cases": ...}, ".total_cases is missing"),
    ({"pass": ...}, ".pass is missing"),
    ({"pass": -1, "fail": 6}, ".pass is not a count of cases"),
    ({"review": True}, ".review is not a count of cases"),
    ({"fail": 1.0}, ".fail is not a count of cases"),
    ({"fail": "1"}, ".fail is not a count of cases"),
    ({"total_cases": None}, ".total_cases is not a count of cases"),
    # nothing to decide on
    (summary(0, 0, 0), ".total_cases is 0: nothing was scored, so there is nothing to decide on"),
    # counts of which one must be wrong
    ({"total_cases": 6}, " contradicts itself: 4 pass, 0 review and 1 fail are not 6 cases"),
    ({"total_cases": 0}, ".total_cases is 0: nothing was scored, so there is nothing to decide on"),
    # the rate
    ({"overall_pass_rate": ...}, ".overall_pass_rate is missing"),
    ({"overall_pass_rate": None}, ".overall_pass_rate is not a number"),
    ({"overall_pass_rate": "0.8"}, ".overall_pass_rate is not a number"),
    ({"pass": 5, "fail": 0, "overall_pass_rate": True}, ".overall_pass_rate is not a number"),
    ({"overall_pass_rate": 1.0}, " contradicts itself: overall_pass_rate is 1.0, but 4 of 5 cases pass, which is 0.8"),
    # percent, and rounded
    ({"overall_pass_rate": 80}, " contradicts itself: overall_pass_rate is 80, but 4 of 5 cases pass, which is 0.8"),
    (
        summary(2, 0, 1) | {"overall_pass_rate": 0.67},
        " contradicts itself: overall_pass_rate is 0.67, but 2 of 3 cases pass, which is 0.6666666666666666",
    ),
    # counts beyond binary64, which no division may trip over
    (
        {"pass": 10**400, "fail": 0, "total_cases": 10**400, "overall_pass_rate": 0.5},
        ".total_cases is not a count of cases",
    ),
]


@pytest.mark.parametrize(("changes", "why"), UNSOUND)
def test_a_summary_that_cannot_be_true_is_refused(changes: Mapping[str, Any], why: str, tmp_path: Path) -> None:
    path = with_summary(tmp_path / "report.json", **changes)
    assert refusal(path) == f"summary{why}"


@pytest.mark.parametrize("found", [None, [], "80 %", 0.8])
def test_a_summary_that_is_no_object_is_refused(found: object, tmp_path: Path) -> None:
    assert refusal(written(tmp_path / "report.json", {"summary": found})) == "summary is not an object"


def test_a_rate_that_is_no_number_at_all_is_refused() -> None:
    unsound = summary(4, 0, 1) | {"overall_pass_rate": math.nan}
    with pytest.raises(ConfigurationError, match="overall_pass_rate is nan, but 4 of 5 cases pass"):
        checked_summary({"summary": unsound}, Path("report.json"))
