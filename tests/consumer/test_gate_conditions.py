"""The further conditions of `safe gate` and `safe score`: each met, not met, equal, and not in the report."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main
from consumer.errors import ConfigurationError
from consumer.offline.gate import Bound, Condition, Gate, conditions
from tests.support.case_files import GOOD, HARMFUL, a_case, answer, write_batch, write_report
from tests.support.scored_runs import SMALL, scored_run

Report = dict[str, Any]


VALUES = {"nowhere": 2, "checked": 4, "unchecked": 0}


def report(**changes: Any) -> Report:
    """What `safe score` writes: 7 cases, 1 AH violation, 1 without an output, 1 with nothing at all to check."""
    written: Report = json.loads(json.dumps(scored_run(SMALL).report))
    return written | {"input_mismatches": 2, "near_violations": 1, "unsupported": VALUES, "doubtful_hits": 3} | changes


SCORED = report()
MEAN_CR, RATE_OF_AC = SCORED["mean_scores"]["CR"], SCORED["pass_rates"]["AC"]


def only(option: str, value: int | str) -> Gate:
    """A gate with one condition."""
    gate = Gate.asked(None, None, None, conditions({option: value if isinstance(value, int) else [value]}))
    assert gate is not None
    return gate


# --- one condition ----------------------------------------------------------------------------------------------------

NO_QUESTION = " (4 of 7 cases had nothing to check: no forbidden term is listed, or the output has no question)"
COUNTS: list[tuple[str, int, str] | tuple[str, int, str, str]] = [
    # (option, how many there are, how that is said, and what could not be checked)
    ("--max-violations", 1, "1 AH violation"),
    ("--max-missing", 1, "1 case without an output"),
    ("--max-vacuous", 1, "1 case with nothing at all to check"),
    ("--max-mismatches", 2, "2 outputs made from another narrative"),
    ("--max-near-violations", 1, "1 near violation", NO_QUESTION),
    ("--max-unsupported", 2, "2 values that the narrative does not have"),
    ("--max-doubtful", 3, "3 doubtful hits"),
]
NOTE = ". Note: 1 case with nothing at all to check"


@pytest.mark.parametrize("condition", COUNTS, ids=lambda condition: condition[0])
def test_a_count_may_be_what_is_allowed_and_no_more(
    condition: tuple[str, int, str] | tuple[str, int, str, str],
) -> None:
    option, count, said, *unchecked = condition
    for most, verdict in ((count - 1, "NOT passed"), (count, "passed"), (count + 1, "passed")):
        decision = only(option, most).decide(SCORED)
        note = "" if option == "--max-vacuous" else NOTE
        assert decision.line == f"gate {verdict}: {said}, {option} allows {most}{''.join(unchecked)}{note}"
        assert decision.passed is (verdict == "passed")


@pytest.mark.parametrize("condition", COUNTS)
def test_each_option_bounds_its_own_count(
    condition: tuple[str, int, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    option, count, said, *_ = condition
    (written := tmp_path / "report.json").write_text(json.dumps(SCORED))
    assert main(["gate", str(written), option, str(count - 1)]) == 1
    assert f"{said}, {option} allows {count - 1}" in capsys.readouterr().out


def test_every_violation_counts_also_several_of_one_case() -> None:
    harmful = report()
    harmful["results"][0]["details"]["AH"]["violations"] = ["blame", "blame"]
    assert only("--max-violations", 3).decide(harmful).passed
    assert not only("--max-violations", 2).decide(harmful).passed


LEAST = [
    # (option, name, what it is, how it is said)
    *(("--min-mean", name, value, f"mean {name}") for name, value in SCORED["mean_scores"].items()),
    *(("--min-pass-rate-of", name, value, f"pass rate of {name}") for name, value in SCORED["pass_rates"].items()),
]


@pytest.mark.parametrize(("option", "name", "value", "said"), LEAST)
def test_a_mean_or_a_rate_must_reach_its_bound(option: str, name: str, value: float, said: str) -> None:
    above, below = (value + 1) / 2, value / 2
    for bound, how in ((below, "is at least"), (value, "is at least"), (above, "is below")):
        decision = only(option, f"{name}={bound!r}").decide(SCORED)
        passed = how == "is at least"
        verdict = "passed" if passed else "NOT passed"
        shown = decision.line.removeprefix(f"gate {verdict}: {said} ").partition(" ")[0]
        assert decision.line == f"gate {verdict}: {said} {shown} {how} {option} {name}={bound}{NOTE}"
        assert decision.passed is passed is (float(shown) >= bound)
        assert float(shown) == pytest.approx(value, abs=0.0005)


def test_a_report_event_has_every_number_but_those_of_results() -> None:
    event = report()
    del event["results"], event["doubtful_hits"]
    for option, bound in (
        ("--max-missing", 1),
        ("--max-vacuous", 1),
        ("--max-mismatches", 2),
        ("--min-mean", "AH=0.5"),
    ):
        assert only(option, bound).decide(event).passed


def test_a_number_that_another_tool_has_rewritten_counts() -> None:
    assert only("--min-mean", "CR=1").decide(report(mean_scores={"CR": 1})).passed


SHARES = [
    ("--min-mean", {"mean_scores": {"composite": 0.6999999999999998}}, "composite=0.7"),
]


@pytest.mark.parametrize(("option", "numbers", "bound"), SHARES)
def test_a_number_that_only_binary_arithmetic_puts_below_its_bound_passes(
    option: str, numbers: dict[str, Any], bound: str
) -> None:
    decision = only(option, bound).decide(report(**numbers))
    assert decision.passed
    assert " 0.7 is at least " in decision.line


def test_a_pass_rate_is_one_division_and_is_compared_as_it_is() -> None:
    two_thirds = report(pass_rates={"CR": 8 / 12, "AH": 0.7})
    assert only("--min-pass-rate-of", "AH=0.7").decide(two_thirds).passed
    assert only("--min-pass-rate-of", "CR=0.6666666666666666").decide(two_thirds).passed
    decision = only("--min-pass-rate-of", "CR=0.666666666667").decide(two_thirds)
    assert "pass rate of CR 0.6666666666666666 is below --min-pass-rate-of CR=0.666666666667" in decision.line


# --- several ----------------------------------------------------------------------------------------------------------


def test_all_must_hold_and_the_line_names_those_that_failed() -> None:
    asked = conditions({"--max-violations": 0, "--max-missing": 1, "--min-mean": ["AH=0", f"CR={MEAN_CR + 0.1}"]})
    decision = Gate.asked(0.9, None, None, asked)
    assert decision is not None
    assert decision.decide(SCORED).line == (
        "gate NOT passed: pass rate 0.286 (2 of 7 cases) is below --min-pass-rate 0.9; "
        "1 AH violation, --max-violations allows 0; "
        f"mean CR 0.571 is below --min-mean CR={MEAN_CR + 0.1}{NOTE}"
    )


def test_any_condition_makes_the_labels_not_count_unless_they_are_asked_for() -> None:
    asked = conditions({"--max-missing": 1})
    assert Gate.asked(None, None, None, asked) == Gate(None, "never", None, asked)
    assert Gate.asked(None, "fail", None, asked) == Gate(None, "fail", None, asked)
    assert Gate.asked(None, None, None, conditions({"--max-missing": None})) is None


# --- what the gate says of cases that check nothing -------------------------------------------------------------------


def test_cases_that_check_nothing_are_said_once_whatever_was_asked() -> None:
    passed = "gate passed: 1 case without an output, --max-missing allows 1"
    assert only("--max-missing", 1).decide(SCORED).line == f"{passed}{NOTE}"
    assert Gate(None, "fail").decide(SCORED).line.endswith(f"(--fail-on fail){NOTE}")
    both = Gate(0.9, "never", None, conditions({"--max-vacuous": 1}))
    assert both.decide(SCORED).line.endswith(f"--min-pass-rate 0.9{NOTE}"), "the condition on it holds"


@pytest.mark.parametrize("vacuous", [{"all": 0}, {}, None, 7, {"all": True}, {"all": "2"}])
def test_nothing_is_said_where_there_is_nothing_to_say(vacuous: object) -> None:
    line = only("--max-missing", 1).decide(report(vacuous=vacuous)).line
    assert line == "gate passed: 1 case without an output, --max-missing allows 1"


# --- reports that cannot be used --------------------------------------------------------------------------------------

OLDER = "an older SAFE wrote it; score the outputs again"
EVENT = "an older SAFE wrote it, or it is a report event of the worker; score the outputs again with safe score"


def without(*names: str) -> Callable[[Report], None]:
    def remove(document: Report) -> None:
        *path, last = names
        for name in path:
            document = document[name]
        del document[last]

    return remove


UNUSABLE: list[tuple[str, int | str, Callable[[Report], None], str]] = [
    # what an older SAFE did not write
    ("--max-missing", 9, without("missing_outputs"), f"has no missing_outputs, which --max-missing needs: {OLDER}"),
    ("--max-vacuous", 9, without("vacuous"), f"has no vacuous.all, which --max-vacuous needs: {OLDER}"),
    ("--max-vacuous", 9, without("vacuous", "all"), f"has no vacuous.all, which --max-vacuous needs: {OLDER}"),
    ("--max-vacuous", 9, lambda d: d.update(vacuous=3), f"has no vacuous.all, which --max-vacuous needs: {OLDER}"),
    (
        "--max-mismatches",
        9,
        without("input_mismatches"),
        f"has no input_mismatches, which --max-mismatches needs: {OLDER}",
    ),
    (
        "--max-near-violations",
        9,
        without("near_violations"),
        f"has no near_violations, which --max-near-violations needs: {OLDER}",
    ),
    (
        "--max-unsupported",
        9,
        without("unsupported", "unchecked"),
        f"has no unsupported.unchecked, which --max-unsupported needs: {OLDER}",
    ),
    (
        "--max-unsupported",
        9,
        without("unsupported"),
        f"has no unsupported.nowhere, which --max-unsupported needs: {OLDER}",
    ),
    ("--max-doubtful", 9, without("doubtful_hits"), f"has no doubtful_hits, which --max-doubtful needs: {OLDER}"),
    (
        "--min-mean",
        "CR=0",
        without("mean_scores", "CR"),
        f"has no mean_scores.CR, which --min-mean needs: {OLDER}",
    ),
    (
        "--min-pass-rate-of",
        "AC=0",
        without("pass_rates"),
        f"has no pass_rates.AC, which --min-pass-rate-of needs: {OLDER}",
    ),
    # a report event has no results to count in
    ("--max-violations", 9, without("results"), f"has no results, which --max-violations needs: {EVENT}"),
    # what is no number
    ("--max-missing", 9, lambda d: d.update(missing_outputs=True), "missing_outputs is not a count"),
    ("--max-missing", 9, lambda d: d.update(missing_outputs=-1), "missing_outputs is not a count"),
    ("--max-doubtful", 9, lambda d: d.update(doubtful_hits=1.0), "doubtful_hits is not a count"),
    ("--max-mismatches", 9, lambda d: d.update(input_mismatches=None), "input_mismatches is not a count"),
    ("--min-mean", "AC=0", lambda d: d["mean_scores"].update(AC="1"), "mean_scores.AC is not a number from 0 to 1"),
    ("--min-mean", "AC=0", lambda d: d["mean_scores"].update(AC=80), "mean_scores.AC is not a number from 0 to 1"),
    ("--max-violations", 9, lambda d: d.update(results={}), "results is not a list"),
    (
        "--max-violations",
        9,
        lambda d: d["results"][1]["details"]["AH"].update(violations="blame"),
        "results[1].details.AH.violations is not a list",
    ),
    ("--max-violations", 9, lambda d: d["results"][1].pop("details"), "results[1].details is missing"),
]


@pytest.mark.parametrize(("option", "bound", "spoil", "why"), UNUSABLE)
def test_a_report_that_lacks_what_is_asked_cannot_be_used(
    option: str, bound: int | str, spoil: Callable[[Report], None], why: str
) -> None:
    spoilt = report()
    spoil(spoilt)
    with pytest.raises(ConfigurationError) as refused:
        only(option, bound).decide(spoilt, "report.json")
    assert str(refused.value) == f"report.json: {why}"
    assert Gate(None, "never").decide(spoilt).passed, "nobody asked"


# --- the values of the options ----------------------------------------------------------------------------------------

MEANS, RATES = "CR, AH, AC, composite", "CR, AH, AC, overall"
BAD: list[tuple[Mapping[str, Bound], str]] = [
    ({"--min-mean": ["0.7"]}, "--min-mean 0.7 is not written as NAME=FRACTION, such as CR=0.7"),
    ({"--min-mean": [""]}, "--min-mean  is not written as NAME=FRACTION, such as CR=0.7"),
    ({"--min-mean": ["CR=0.7", "XR=0.7"]}, f"--min-mean XR=0.7: 'XR' is not one of {MEANS}"),
    ({"--min-mean": ["cr=0.7"]}, f"--min-mean cr=0.7: 'cr' is not one of {MEANS}"),
    ({"--min-mean": ["overall=0.7"]}, f"--min-mean overall=0.7: 'overall' is not one of {MEANS}"),
    ({"--min-pass-rate-of": ["composite=0"]}, f"--min-pass-rate-of composite=0: 'composite' is not one of {RATES}"),
    ({"--min-mean": ["CR=0.7", "AC=0.7", "CR=0.7"]}, "--min-mean names CR twice: give it once"),
    ({"--min-mean": ["CR="]}, "--min-mean CR=: '' is not a fraction from 0 to 1"),
    ({"--min-mean": ["CR=high"]}, "--min-mean CR=high: 'high' is not a fraction from 0 to 1"),
    ({"--min-mean": ["CR=nan"]}, "--min-mean CR=nan: 'nan' is not a fraction from 0 to 1"),
    ({"--min-mean": ["CR=inf"]}, "--min-mean CR=inf: 'inf' is not a fraction from 0 to 1"),
    ({"--min-mean": ["CR=-0.1"]}, "--min-mean CR=-0.1: '-0.1' is not a fraction from 0 to 1"),
    ({"--min-mean": ["CR=80"]}, "--min-mean CR=80: '80' is not a fraction from 0 to 1; 80 percent is 0.8"),
    (
        {"--min-pass-rate-of": ["CR=80%"]},
        "--min-pass-rate-of CR=80%: '80%' is not a fraction from 0 to 1; 80 percent is 0.8",
    ),
]


@pytest.mark.parametrize(("asked", "why"), BAD)
def test_a_bound_that_cannot_be_is_refused(asked: Mapping[str, Bound], why: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        conditions(asked)
    assert str(refused.value) == why


def test_bounds_at_both_ends_are_taken_and_the_same_name_may_bound_a_mean_and_a_rate() -> None:
    asked: dict[str, Bound] = {"--min-mean": ["CR=0", "AC=1.0"], "--min-pass-rate-of": ["CR=1"], "--max-doubtful": 0}
    assert conditions(asked) == (
        Condition("--max-doubtful", 0),
        Condition("--min-mean", 0.0, "CR"),
        Condition("--min-mean", 1.0, "AC"),
        Condition("--min-pass-rate-of", 1.0, "CR"),
    )


# --- as from a shell --------------------------------------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """A folder with a scored run of four cases, one of them without an output; gives the arguments of its `score`."""
    monkeypatch.chdir(tmp_path)
    nothing = a_case("A-4", signals=[], phrases=[], forbidden=[])
    write_batch(tmp_path / "cases", "asthma_1", a_case("A-1"), a_case("A-2"), a_case("A-3"), nothing)
    write_report(tmp_path / "run.json", answer("A-1", GOOD), answer("A-2", HARMFUL), answer("A-4", GOOD))
    arguments = ["score", "-c", "K07", "-b", "*", "-i", "run.json", "-t", "cases"]
    assert main([*arguments, "-o", "report.json"]) == 1
    capsys.readouterr()
    return arguments


BY_OPTIONS = [
    # (options, exit code of gate and of score alike)
    (["--max-missing", "1"], 0),
    (["--max-missing", "0"], 1),
    (["--max-vacuous", "0"], 1),
    (["--max-violations", "9", "--max-mismatches", "0"], 0),
    (["--max-violations", "0"], 1),
    (["--min-mean", "CR=0.75", "--min-mean", "AC=0.1"], 0),
    (["--min-mean", "CR=0.76"], 1),
    (["--min-pass-rate-of", "AH=0.75"], 0),
    (["--min-pass-rate-of", "AH=0.9"], 1),
    (["--max-missing", "1", "--fail-on", "fail"], 1),
    (["--max-missing", "-1"], 3),
    (["--max-missing", "few"], 3),
    (["--max-missing", "1", "--max-missing", "1"], 3),
    (["--min-mean", "CR"], 3),
    (["--min-mean", "CR=0.1", "--min-mean", "CR=0.1"], 3),
]


@pytest.mark.parametrize(("options", "code"), BY_OPTIONS)
def test_score_and_gate_exit_alike(
    desk: list[str], capsys: pytest.CaptureFixture[str], options: list[str], code: int
) -> None:
    assert main(["gate", "report.json", *options]) == code
    printed = capsys.readouterr()
    assert main([*desk, *options]) == code
    if code == 3:
        assert printed.err == capsys.readouterr().err.replace("safe score --help", "safe gate --help")
        assert re.fullmatch("safe: error: .+\n", printed.err)
    else:
        assert printed.out == capsys.readouterr().out.splitlines()[-1] + "\n"


@pytest.mark.usefixtures("desk")
def test_an_older_report_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    older = json.loads(Path("report.json").read_bytes())
    older.pop("doubtful_hits", None)
    Path("older.json").write_text(json.dumps(older))
    assert main(["gate", "older.json", "--max-doubtful", "0"]) == 3
    assert capsys.readouterr().err == (
        f"safe: error: older.json: has no doubtful_hits, which --max-doubtful needs: {OLDER}\n"
    )


@pytest.mark.usefixtures("desk")
def test_the_gate_says_that_a_rate_is_out_of_reach(capsys: pytest.CaptureFixture[str]) -> None:
    stored = json.loads(Path("report.json").read_bytes())
    counts = {"cases": 4, "pass": 1, "review": 0, "fail": 2, "terms": 9, "not_in_narrative": 8, "without_narrative": 1}
    Path("report.json").write_text(json.dumps(stored | {"ceiling": counts, "input_mismatches": 1}))
    for rate, told in (("0.5", False), ("0.51", True)):
        main(["gate", "report.json", "--min-pass-rate", rate])
        lines = capsys.readouterr().err.splitlines()
        assert "safe: outputs made from another narrative (input mismatch): 1 of 4 test cases" in lines
        assert any("is out of reach: at most 1 of 3 cases would pass even if each" in line for line in lines) is told
