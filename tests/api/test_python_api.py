"""`import safe_scorer`: what its page shows, from the wheel in an environment without Kafka; and its rows."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import safe_scorer
from consumer.cli.missing_libraries import LIBRARIES
from safe_core import DEFAULT_POLICY, Policy, prepare
from safe_core import score as score_by_rules
from tests.conftest import missing
from tests.support.kafka_broker import PROJECT

PYTHON = PROJECT / ".cache" / "api" / "bin" / "python"
PAGE = (PROJECT / "docs" / "how-to" / "python.md").read_text(encoding="utf-8")
STORY = PROJECT / "consumer" / "examples" / "story"
CASES: list[dict[str, Any]] = json.loads((STORY / "cases/stroke_story.json").read_text(encoding="utf-8"))["test_cases"]
RAW: list[dict[str, Any]] = json.loads((STORY / "run_1.json").read_text(encoding="utf-8"))["raw_results"]
EVENTS = [{"test_id": each["test_id"], "output": each["engine_output"]} for each in RAW]
TERMS = {
    criterion: [
        (case["test_id"], term) for case in CASES for term in case["expectations"].get(section, {}).get(name, [])
    ]
    for criterion, section, name in (
        ("CR", "signal_generation", "must_find_signals"),
        ("AH", "followup_questions", "forbidden_terms"),
        ("AC", "event_summary", "must_contain_phrases"),
    )
}


# --- from outside -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel alone is installed."""
    if not PYTHON.is_file():
        missing("import safe_scorer: no environment for it; run tests/api/tools.sh")
    folder = tmp_path_factory.mktemp("wheel")
    uv = PROJECT / ".cache" / "uv" / "bin" / "uv"
    subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", folder, PROJECT], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run(
        [uv, "pip", "install", "--quiet", "--no-deps", "--python", PYTHON, "--target", folder / "site", wheel],
        check=True,
    )
    return folder / "site"


def outside(installed: Path, folder: Path, program: str) -> str:
    """Run a program in the environment that has the wheel and no checkout; gives what it prints."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "SAFE_V0_"))}
    done = subprocess.run(
        [PYTHON, "-W", "error", "-c", program],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_examples_of_the_page_print_what_it_shows(installed: Path, tmp_path: Path) -> None:
    shutil.copytree(STORY, tmp_path / "story")
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks] == ["python", "text"] * 5
    programs, shown = ["".join(code for _, code in blocks[at::2]) for at in (0, 1)]
    assert outside(installed, tmp_path, programs) == shown


def test_it_loads_no_kafka_client_and_the_frames_have_a_row_for_each_case_and_each_term(
    installed: Path, tmp_path: Path
) -> None:
    program = f"""
import sys, safe_scorer
assert "consumer" not in sys.modules, "importing it loads nothing before it is needed"
run = safe_scorer.score_run({str(STORY / "cases")!r}, [{str(STORY / "run_1.json")!r}])
cases, terms = run.to_frame(), run.to_frame("terms")
print([*cases.columns] == [*safe_scorer.Case._fields], [*terms.columns] == [*safe_scorer.Term._fields])
print(sorted(cases.test_id), [str(cases.CR.dtype), str(terms.criterion.dtype)])
print(sorted(map(tuple, terms[["criterion", "test_id", "term"]].values.tolist())))
print({set(LIBRARIES)!r} & sys.modules.keys())
"""
    same, cases, terms, loaded = outside(installed, tmp_path, program).splitlines()
    assert same == "True True"
    assert cases == f"{sorted(case['test_id'] for case in CASES)} ['float64', 'str']"
    assert terms == str(sorted((criterion, *each) for criterion, listed in TERMS.items() for each in listed))
    assert loaded == "set()"


# --- the functions ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run() -> safe_scorer.Run:
    return safe_scorer.score_run(STORY / "cases", STORY / "run_1.json", explain=True)


def test_every_name_that_is_promised_is_there() -> None:
    assert {*dir(safe_scorer)} == {*safe_scorer.__all__}
    assert all(getattr(safe_scorer, name) for name in safe_scorer.__all__)
    with pytest.raises(AttributeError, match="has no attribute nothing"):
        _ = safe_scorer.nothing


def test_one_output_is_scored_as_in_a_run(run: safe_scorer.Run) -> None:
    for case, event, row in zip(CASES, EVENTS, run.cases(), strict=True):
        scored = safe_scorer.score(case, event["output"])
        assert (case["test_id"], scored.label, *scored.scores) == (row.test_id, row.label, *row[5:9])
        alone = safe_scorer.Expectations.parse(case["expectations"])
        output, rules = safe_scorer.Output.parse(event["output"]), DEFAULT_POLICY.rules_for(None, None)
        expected = score_by_rules(prepare(alone), output, rules)
        assert safe_scorer.score(alone, event["output"]) == safe_scorer.score(case["expectations"], event["output"])
        assert safe_scorer.score(alone, event["output"]) == expected


def test_a_score_follows_the_policy_the_concern_and_the_failure_of_a_call() -> None:
    expectations = {"signal_generation": {"must_find_signals": ["a", "b"]}}
    strict = Policy.from_document({"overrides": {"metric_id": {"X": {"thresholds": {"CR": {"review": 0.6}}}}}})
    case = {"concern_id": "X", "expectations": expectations}
    assert [safe_scorer.score(each, {"signals": ["a"]}, policy=strict).label for each in (expectations, case)] == [
        "Review",
        "Fail",
    ]
    failed = {"signals": ["a", "b"], "error_message": "429"}
    assert safe_scorer.score(case, failed).scores == safe_scorer.score(case, None).scores
    with pytest.raises(ValueError, match="is blank"):
        safe_scorer.score({"signal_generation": {"must_find_signals": [" "]}}, None)
    with pytest.raises(ValueError, match="signals"):
        safe_scorer.score(case, {"signals": "secret"})


@pytest.mark.parametrize("holder", ["output", "engine_output"])
def test_what_would_score_as_empty_because_it_is_something_else_is_refused(holder: str) -> None:
    case = {"test_id": "A-1", "expectations": {"signal_generation": {"must_find_signals": ["wheeze"]}}}
    output = {"signals": ["wheeze"]}
    assert safe_scorer.score(case, output).label == "Pass"
    with pytest.raises(ValueError, match=f"give what it has as {holder}"):
        safe_scorer.score(case, {"test_id": "A-1", holder: output})
    with pytest.raises(ValueError, match="the test case has no expectations"):
        safe_scorer.score({"test_id": "A-1", "expectation": case["expectations"]}, output)


def test_lists_in_memory_give_the_same_run_as_files(run: safe_scorer.Run) -> None:
    same = safe_scorer.score_run(CASES, EVENTS, concern="stroke", explain=True)
    assert [row._replace(batch_id=None, input_matches=None) for row in same.cases()] == [
        row._replace(batch_id=None, input_matches=None) for row in run.cases()
    ]
    assert [row._replace(batch_id=None) for row in same.terms()] == [row._replace(batch_id=None) for row in run.terms()]


def test_every_term_has_a_row_and_misses_have_their_verdicts(run: safe_scorer.Run) -> None:
    rows = run.terms()
    for criterion, listed in TERMS.items():
        named = [(row.test_id, row.term) for row in rows if row.criterion == criterion]
        assert Counter(named) == Counter(listed)
    assert {row.outcome for row in rows if row.criterion == "AH"} == {"avoided"}
    assert all((row.verdict is not None) == (row.outcome == "missing") for row in rows)
    twice = {"followup_questions": {"forbidden_terms": ["late", "late", "never"]}}
    case = {"test_id": "T", "concern_id": "C", "expectations": twice}
    output = {"test_id": "T", "output": {"followup_questions": ["Why so late?"]}}
    outcomes = [(row.term, row.outcome) for row in safe_scorer.score_run([case], [output]).terms()]
    assert outcomes == [("late", "used"), ("late", "used"), ("never", "avoided")]


def test_a_stored_report_gives_the_same_rows_but_does_not_name_what_was_avoided(
    run: safe_scorer.Run, tmp_path: Path
) -> None:
    (tmp_path / "report.json").write_text(json.dumps(run.report), encoding="utf-8")
    stored = safe_scorer.read_report(str(tmp_path / "report.json"))
    assert stored.cases() == run.cases()
    assert stored.terms() == [row._replace(term=None) if row.outcome == "avoided" else row for row in run.terms()]
    (tmp_path / "report.json").write_text('{"report_type": "SAFE_v0", "summary": {}}', encoding="utf-8")
    with pytest.raises(safe_scorer.ConfigurationError, match=r"report\.json: concern_id is missing"):
        safe_scorer.read_report(tmp_path / "report.json")


def test_what_cannot_be_scored_is_refused_with_a_remedy(tmp_path: Path) -> None:
    other = [*CASES, {**CASES[0], "test_id": "O-1", "concern_id": "OTHER"}]
    with pytest.raises(safe_scorer.ConfigurationError, match=r"several concerns: STROKE, OTHER; score one of them"):
        safe_scorer.score_run(other, EVENTS)
    assert len(safe_scorer.score_run(other, EVENTS, concern="OTHER").cases()) == 1
    with pytest.raises(safe_scorer.ConfigurationError, match="nowhere"):
        safe_scorer.score_run(tmp_path / "nowhere", EVENTS)


def test_events_beside_paths_are_not_left_out_in_silence() -> None:
    mixed: Any = [STORY / "run_1.json", *EVENTS]
    with pytest.raises(safe_scorer.ConfigurationError, match="outputs mix paths and events"):
        safe_scorer.score_run(CASES, mixed)


def test_an_error_in_what_is_in_memory_names_the_argument() -> None:
    with pytest.raises(safe_scorer.ConfigurationError, match=r"^outputs: line 2"):
        safe_scorer.score_run(CASES, [EVENTS[0], {"test_id": "S-2", "output": 7}])


def test_one_case_and_one_event_need_no_list() -> None:
    alone = safe_scorer.score_run(CASES[0], EVENTS[0])
    assert alone.cases() == safe_scorer.score_run(CASES[:1], EVENTS[:1]).cases()
    assert alone.cases()[0].generation == "answered"


def test_remarks_say_what_was_not_used() -> None:
    run = safe_scorer.score_run(CASES, EVENTS[:-1])
    assert [remark for remark in run.remarks if "1 of 6 test cases" in remark]
    assert run.cases()[-1].generation is None


def test_the_command_starts_without_the_functions() -> None:
    program = "import safe_scorer.__main__, sys; print('safe_scorer.runs' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
