"""An outage of the model in files: no command judges the prompt by calls of the model that failed."""

import csv
import io
import json
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main
from consumer.files.outputs import open_outputs
from consumer.offline.review import Review
from consumer.offline.triage import TriageRequest
from safe_core import DEFAULT_POLICY
from tests.support.case_files import GOOD, a_case, answer, event, write_batch, write_events, write_report
from tests.support.real_cases import REAL, load, real_cases_only

Json = Any
CANARY = "zebra-7Q"
ERROR = {
    "summary": "ENGINE_ERROR",
    "error_message": f"Unexpected token 'P', \"Patient {CANARY}\" is not valid JSON",
    "signals": [],
    "followup_questions": [],
}
LEAN = {**GOOD, "summary": "Summary skipped in lean mode"}
TWENTY = [f"A-{number:02}" for number in range(20)]
FAILED = TWENTY[::4]
NAMED = "A-00, A-04, A-08, A-12, A-16"


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty cases that pass, in a whole run and in one during which five calls of the model failed."""
    monkeypatch.chdir(tmp_path)
    narrative = "A boy came with wheeze. Salbutamol was given at once."
    write_batch(Path("cases"), "asthma_1", *(a_case(test_id, patient_payload=narrative) for test_id in TWENTY))
    write_report(Path("whole.json"), *map(answer, TWENTY))
    write_report(Path("outage.json"), *(answer(test_id, ERROR if test_id in FAILED else GOOD) for test_id in TWENTY))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(list(arguments))
    printed = capsys.readouterr()
    assert CANARY not in printed.err
    return code, printed.out, printed.err


def score(capsys: pytest.CaptureFixture[str], outputs: str, *more: str) -> tuple[Json, str]:
    where = ["-c", "K07", "-b", "*", "-i", outputs, "-t", "cases", "-f", "json"]
    _, out, err = run(capsys, "score", *where, *more)
    return json.loads(out), err


def written(capsys: pytest.CaptureFixture[str], *runs: str) -> list[str]:
    for name in runs:
        report, _ = score(capsys, f"{name}.json")
        Path(f"report_{name}.json").write_text(json.dumps(report))
    return [f"report_{name}.json" for name in runs]


# --- the report -------------------------------------------------------------------------------------------------------


def test_a_report_counts_them_apart_and_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    report, err = score(capsys, "outage.json")
    assert report["summary"] == {"total_cases": 20, "pass": 15, "review": 0, "fail": 5, "overall_pass_rate": 0.75}
    counted = ("failed_generations", "empty_outputs", "missing_outputs", "input_mismatches", "doubtful_hits")
    assert [report[name] for name in counted] == [5, 0, 0, 0, 0]
    generations = {result["test_id"]: result["generation"] for result in report["results"]}
    assert [test_id for test_id in TWENTY if generations[test_id] == "failed"] == FAILED
    assert {generations[test_id] for test_id in TWENTY if test_id not in FAILED} == {"answered"}
    assert (
        f"5 test cases have no answer, because the generation failed; each is scored as an empty output: {NAMED}" in err
    )


def test_a_case_without_an_output_has_no_generation(capsys: pytest.CaptureFixture[str]) -> None:
    write_report(Path("part.json"), answer("A-00"))
    report, _ = score(capsys, "part.json")
    assert [result["generation"] for result in report["results"]] == ["answered", *[None] * 19]
    assert (report["missing_outputs"], report["failed_generations"]) == (19, 0)


def test_the_pages_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    files = ("page.html", "page.md", "page.txt", "page.xml", "page.csv", "page.terms.csv")
    outputs = [option for name in files for option in ("-o", name)]
    where = ["-c", "K07", "-b", "*", "-i", "outage.json", "-t", "cases"]
    code, _, err = run(capsys, "score", *where, "--explain", *outputs)
    assert code == 1, err
    pages = {name: Path(name).read_text(encoding="utf-8") for name in files}
    for name in ("page.html", "page.md", "page.txt"):
        assert "Failed generations: 5 cases that no model answered" in " ".join(pages[name].split()), name
    assert pages["page.xml"].count('message="failed generation; CR 0.00 below review 0.5') == 5
    assert '<property name="failed_generations" value="5" />' in pages["page.xml"]
    for name in ("page.csv", "page.terms.csv"):
        rows = list(csv.DictReader(io.StringIO(pages[name])))
        assert {row["test_id"] for row in rows if row["output"] == "failed"} == set(FAILED)
    assert not [name for name, text in pages.items() if CANARY in text]


# --- which output counts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [*permutations([answer("A-00", ERROR), answer("A-00"), {"test_id": "A-00"}])])
def test_an_answer_goes_before_failed_generations_wherever_they_are(
    entries: Sequence[Json], capsys: pytest.CaptureFixture[str]
) -> None:
    write_report(Path("run.json"), *entries)
    report, err = score(capsys, "run.json")
    assert (report["results"][0]["label"], report["results"][0]["generation"]) == ("Pass", "answered")
    assert "passed over" not in err

    for number, entry in enumerate(entries):
        write_report(Path(f"run_{number}.json"), entry)
    files = ("run_0.json", "-i", "run_1.json", "-i", "run_2.json")
    assert score(capsys, *files)[0]["results"] == report["results"]


@pytest.mark.parametrize("answered_at", ["2026-03-02T08:00:00Z", "2026-03-02T10:00:00Z"])
def test_of_events_the_latest_answer_counts_not_a_later_failure(
    answered_at: str, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = event("A-00", ERROR, batch_id="asthma_1", concern_id="K07", generated_at="2026-03-02T09:00:00Z")
    answered = event("A-00", batch_id="asthma_1", concern_id="K07", generated_at=answered_at)
    for events in ([failure, answered], [answered, failure]):
        write_events(Path("run.jsonl"), *events)
        report, err = score(capsys, "run.jsonl")
        assert (report["results"][0]["generation"], report["failed_generations"]) == ("answered", 0)
        assert "a later event" not in err
        for number, each in enumerate(events):
            write_events(Path(f"run_{number}.jsonl"), each)
        assert score(capsys, "run_0.jsonl", "-i", "run_1.jsonl")[0]["results"] == report["results"]


def test_the_texts_of_another_engine_are_configured(capsys: pytest.CaptureFixture[str]) -> None:
    write_report(Path("run.json"), answer("A-00", {"summary": "QUOTA"}), answer("A-01", {"summary": "ENGINE_ERROR"}))
    Path("safe.config.json").write_text('{"errorTexts": ["QUOTA"]}')
    report, _ = score(capsys, "run.json")
    assert [result["generation"] for result in report["results"][:2]] == ["failed", "answered"]
    assert report["configuration"]["errorTexts"] == ["QUOTA"]
    Path("report.json").write_text(json.dumps(report))
    Path("safe.config.json").unlink()
    code, out, _ = run(capsys, "verify", "report.json", "-i", "run.json", "-t", "cases")
    assert (code, out.split(":")[0]) == (0, "verified")


# --- comparisons and gates --------------------------------------------------------------------------------------------


def test_an_outage_is_no_regression_and_the_failed_ones_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    whole, outage = written(capsys, "whole", "outage")
    code, out, _ = run(capsys, "compare", whole, outage, "--fail-on-regression", "--fail-on-score-drop", "0")
    assert code == 0
    told = " ".join(out.split())
    assert "Nothing changed beyond chance" in told
    assert "5 cases not judged: the generation failed." in told
    assert told.count("new: the generation failed") == 5

    document = json.loads(run(capsys, "compare", whole, outage, "--format", "json")[1])
    assert (document["judged"], document["worse"], document["lost"], document["mean_drop"]) == (15, [], [], 0.0)
    assert document["not_judged"] == [
        {"test_id": test_id, "side": "new", "reason": "failed_generation"} for test_id in FAILED
    ]


def test_on_the_side_of_the_base_they_are_no_gain(capsys: pytest.CaptureFixture[str]) -> None:
    outage, whole = written(capsys, "outage", "whole")
    document = json.loads(run(capsys, "compare", outage, whole, "--format", "json")[1])
    assert (document["judged"], document["better"], document["lost"]) == (15, [], [])
    assert {each["side"] for each in document["not_judged"]} == {"base"}
    both = json.loads(run(capsys, "compare", outage, outage, "--format", "json")[1])
    assert {each["side"] for each in both["not_judged"]} == {"both"}


def test_a_case_that_vanished_is_lost_beside_those_that_failed(capsys: pytest.CaptureFixture[str]) -> None:
    write_report(Path("part.json"), *(answer(test_id, ERROR if test_id in FAILED else GOOD) for test_id in TWENTY[:-1]))
    whole, part = written(capsys, "whole", "part")
    code, out, _ = run(capsys, "compare", whole, part, "--fail-on-regression")
    assert code == 1
    told = " ".join(out.split())
    assert (
        "5 cases not judged: the generation failed. Not judged for other reasons: 1 case. Of these, 1 is lost" in told
    )


def test_where_every_call_failed_nothing_can_be_judged(capsys: pytest.CaptureFixture[str]) -> None:
    write_report(Path("none.json"), *(answer(test_id, ERROR) for test_id in TWENTY))
    whole, none = written(capsys, "whole", "none")
    code, _, err = run(capsys, "compare", whole, none, "--fail-on-regression")
    assert code == 3
    assert "nothing can be judged: 20 cases whose generation failed in the new report" in " ".join(err.split())


@pytest.mark.parametrize(("most", "code"), [("4", 1), ("5", 0)])
def test_a_gate_bounds_them(most: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    [outage] = written(capsys, "outage")
    decided, out, err = run(capsys, "gate", outage, "--max-failed-generations", most)
    assert (decided, f"5 failed generations, --max-failed-generations allows {most}" in out) == (code, True)
    assert "failed generations, which say nothing about the prompt: 5 of 20 test cases" in err
    assert run(capsys, "gate", outage, "--max-missing", "0", "--max-mismatches", "0")[0] == 0
    where = ["-c", "K07", "-b", "*", "-i", "outage.json", "-t", "cases"]
    assert run(capsys, "score", *where, "--max-failed-generations", most)[0] == code


def test_a_run_with_an_outage_is_no_answer_in_a_history(capsys: pytest.CaptureFixture[str]) -> None:
    reports = written(capsys, "whole", "outage")
    document = json.loads(run(capsys, "history", *reports, "--as-given", "--format", "json")[1])
    assert [(each["answered"], each["failed_generations"]) for each in document["runs"]] == [(20, 0), (15, 5)]
    labels = {each["test_id"]: each["labels"] for each in document["cases"]}
    assert {test_id for test_id in TWENTY if labels[test_id] == ["Pass", None]} == set(FAILED)
    assert {found for each in document["terms"] for found in each["found"]} == {True, None}


# --- nobody is to blame -----------------------------------------------------------------------------------------------


def test_a_failed_generation_is_no_reason_for_a_proposal(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(capsys, "triage", "-i", "outage.json", "-t", "cases", "--format", "json")[1])
    assert (document["proposals"], document["causes"]) == ([], [])
    console = run(capsys, "triage", "-i", "outage.json", "-t", "cases")[1]
    assert "5 cases have a failed generation: nothing is proposed there." in " ".join(console.split())


def test_it_has_no_misses_to_explain(capsys: pytest.CaptureFixture[str]) -> None:
    report, _ = score(capsys, "outage.json", "--explain")
    assert {len(result["misses"]) for result in report["results"]} == {0}
    assert set(report["miss_verdicts"].values()) == {0}
    document = json.loads(run(capsys, "explain", "-i", "outage.json", "-t", "cases", "--format", "json")[1])
    assert (document["cases"], document["failed_generations"], document["misses"]) == (5, 5, 0)
    assert {(each["answered"], each["generation"], len(each["misses"])) for each in document["results"]} == {
        (False, "failed", 0)
    }
    assert CANARY not in json.dumps(document)


def test_the_console_of_explain_quotes_why_the_call_failed_where_the_case_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = run(capsys, "explain", "-i", "outage.json", "-t", "cases")[1]
    assert f"Failed generations: 5 cases\n  {NAMED}\n" in out
    assert CANARY not in out
    named = " ".join(run(capsys, "explain", "-i", "outage.json", "-t", "cases", "--test", "A-00")[1].split())
    assert f"so there is nothing to explain: Unexpected token 'P', \"Patient {CANARY}\" is not valid JSON" in named


def test_lint_learns_nothing_from_it(capsys: pytest.CaptureFixture[str]) -> None:
    write_report(Path("error.json"), answer("A-00", ERROR))
    for outputs in ("outage.json", "error.json"):
        findings = json.loads(run(capsys, "lint", "cases", "-i", outputs, "--format", "json")[1])["findings"]
        assert [each for each in findings if each["code"] == "never_found"] == []


def test_review_has_nothing_to_decide_on() -> None:
    review = Review(DEFAULT_POLICY, TriageRequest(Path("cases"), "*"), [open_outputs(Path("outage.json"))])
    assert {case.test_id: len(case.items) for case in review.cases if case.test_id in FAILED} == dict.fromkeys(
        FAILED, 0
    )


# --- not asked for ----------------------------------------------------------------------------------------------------


def test_the_misses_of_a_field_that_was_not_asked_for_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    write_report(Path("lean.json"), answer("A-00", {**LEAN, "signals": ["nothing"]}), *map(answer, TWENTY[1:]))
    report, _ = score(capsys, "lean.json", "--explain")
    result = report["results"][0]
    assert (result["generation"], result["scores"]["AC"], result["label"]) == ("answered", 0.0, "Fail")
    assert {(miss["criterion"], miss["verdict"]) for miss in result["misses"]} == {
        ("CR", "prompt"),  # the signals were asked for
        ("AC", "not_asked_for"),
    }
    assert report["miss_verdicts"] == {"term": 0, "prompt": 1, "output": 0, "look": 0, "not_asked_for": 1}

    console = run(capsys, "explain", "-i", "lean.json", "-t", "cases")[1]
    assert "not asked for  AC salbutamol" in console
    markdown = run(capsys, "explain", "-i", "lean.json", "-t", "cases", "--format", "markdown")[1]
    assert "- **not asked for** AC" in markdown

    found = json.loads(run(capsys, "triage", "-i", "lean.json", "-t", "cases", "--format", "json")[1])
    assert [(each["criterion"], each["verdict"]) for each in found["proposals"]] == [
        ("CR", "prompt"),
        ("AC", "not_asked_for"),
    ]
    assert "Change nothing: the model was not asked for this." in {each["change"] for each in found["proposals"]}
    assert [step["fail"] for step in found["steps"]] == [1, 1, 1]
    told = run(capsys, "triage", "-i", "lean.json", "-t", "cases")[1]
    assert "Not asked for: nothing to change (1)" in told


@pytest.mark.parametrize("name", ["page.html", "page.md", "page.xml", "page.terms.csv"])
def test_the_pages_say_not_asked_for(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_report(Path("lean.json"), answer("A-00", LEAN))
    where = ["-c", "K07", "-b", "*", "-i", "lean.json", "-t", "cases", "--explain", "-o", name]
    assert run(capsys, "score", *where)[0] == 1
    said = "not_asked_for" if name.endswith(".csv") else "not asked for"
    assert said in Path(name).read_text(encoding="utf-8")


def test_lint_does_not_blame_a_term_for_a_field_that_was_not_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    write_report(Path("lean.json"), answer("A-00", LEAN))
    findings = json.loads(run(capsys, "lint", "cases", "-i", "lean.json", "--format", "json")[1])["findings"]
    assert [each for each in findings if each["code"] == "never_found"] == []


# --- the real outputs -------------------------------------------------------------------------------------------------


@real_cases_only[0]
@real_cases_only[1]
def test_twenty_real_outputs_of_which_five_failed_are_no_regression(capsys: pytest.CaptureFixture[str]) -> None:
    entries = load(REAL / "outputs_loop1_report.json")["raw_results"][:20]
    failed = [entry["test_id"] for entry in entries[::4]]
    whole = {"concern_id": "I25", "raw_results": entries}
    outage = [entry | ({"engine_output": ERROR} if entry["test_id"] in failed else {}) for entry in entries]
    for name, run_ in (("whole", whole), ("outage", whole | {"raw_results": outage})):
        Path(f"{name}.json").write_text(json.dumps(run_))
        where = ["-c", "I25", "-b", "I25_batch_*", "-i", f"{name}.json", "-t", str(REAL / "testcases")]
        assert run(capsys, "score", *where, "-o", f"report_{name}.json", "--force")[0] == 1
    code, out, _ = run(capsys, "compare", "report_whole.json", "report_outage.json", "--fail-on-regression")
    assert code == 0
    assert "Nothing changed beyond chance" in out
    document = json.loads(run(capsys, "compare", "report_whole.json", "report_outage.json", "--format", "json")[1])
    assert (document["judged"], document["worse"], document["lost"]) == (15, [], [])
    not_judged = {each["test_id"] for each in document["not_judged"] if each["reason"] == "failed_generation"}
    assert not_judged == set(failed)
