"""`safe explain` and `safe triage` without `--concern`: every test case once, and nothing is passed over in silence."""

import json
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main
from consumer.files.selection import ANY_CONCERN, selections
from tests.support.case_files import GOOD, HARMFUL, a_case, answer, write_batch, write_report

NARRATIVE, OTHER = "A boy of 6 came with wheeze.", "A girl of 9 came with a rash."


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explained(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[list[str], str]:
    """The test_ids that are explained, and what is said on stderr."""
    which = options or ("--all",)
    assert main(["explain", *which, "-i", "run.json", "-t", "cases", "-f", "json"]) == 0
    printed = capsys.readouterr()
    return [result["test_id"] for result in json.loads(printed.out)["results"]], printed.err


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main([*argv, "-i", "run.json", "-t", "cases"]) == 3
    return capsys.readouterr().err


def two_concerns() -> None:
    """A case of each of two concerns, and one that names none."""
    write_batch(Path("cases"), "b1", a_case("T"), a_case("N", concern_id=None), a_case("U", concern_id="D"))
    write_report(Path("run.json"), answer("T"), answer("N", concern_id="E"), answer("U", concern_id="d"))


# --- each case once ---------------------------------------------------------------------------------------------------


def test_a_case_without_a_concern_is_explained_once_and_no_output_is_called_ignored(
    capsys: pytest.CaptureFixture[str],
) -> None:
    two_concerns()
    assert explained(capsys) == (["T", "U", "N"], "")


def test_triage_counts_it_once(capsys: pytest.CaptureFixture[str]) -> None:
    two_concerns()
    assert main(["triage", "-i", "run.json", "-t", "cases", "-f", "json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert (document["cases"], document["now"]) == (3, {"pass": 3, "review": 0, "fail": 0})
    assert printed.err == ""


def test_an_output_that_answers_no_concern_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    two_concerns()
    write_report(Path("run.json"), answer("T"), answer("U", concern_id="E"), answer("Z-1"))
    test_ids, told = explained(capsys)
    assert test_ids == ["T", "U", "N"]
    assert told.splitlines() == [
        "safe: 1 output ignored: it is for a selected test case, but the output names another concern: E",
        "safe: 1 output ignored: no test case has its test_id: Z-1",
        "safe: concern D: no output answers any selected test case: is --outputs the right file?",
        "safe: no concern: no output answers any selected test case: is --outputs the right file?",
    ]


@pytest.mark.parametrize(
    ("batches", "concerns"),
    [
        # the only concern that there is takes those without one
        ([[("T", "K07"), ("N", None)]], {"K07": ["T", "N"]}),
        # no concern at all
        ([[("T", None), ("N", None)]], {ANY_CONCERN: ["T", "N"]}),
        # another batch says which
        ([[("T", None), ("U", "D")], [("T", "K07")]], {"D": ["U"], "K07": ["T"]}),
        # one test_id may be a case of either
        ([[("T", "K07"), ("T", "D"), ("N", None)]], {"K07": ["T"], "D": ["T"], ANY_CONCERN: ["N"]}),
        # upper and lower case are one concern
        ([[("T", "K07"), ("U", "k07"), ("N", None)]], {"K07": ["T", "U", "N"]}),
    ],
)
def test_every_case_is_of_one_concern(
    batches: list[list[tuple[str, str | None]]], concerns: dict[str, list[str]]
) -> None:
    for number, cases in enumerate(batches):
        write_batch(Path("cases"), f"b{number}", *(a_case(test_id, concern_id=concern) for test_id, concern in cases))
    found = selections(Path("cases"), "*", None)
    assert {each.concern_id: [*each.cases] for each in found} == concerns


# --- what cannot be used ----------------------------------------------------------------------------------------------

INVALID: dict[str, Any] = {"test_id": "B", "concern_id": "D", "expectations": None}


@pytest.mark.parametrize("command", ["explain", "triage"])
@pytest.mark.parametrize("others", [[], [a_case("T")]])
def test_an_invalid_case_is_refused_as_in_score(
    capsys: pytest.CaptureFixture[str], command: str, others: list[dict[str, Any]]
) -> None:
    write_batch(Path("cases"), "b1", *others, INVALID)
    write_report(Path("run.json"), answer("T"), answer("B"))
    said = refused(capsys, command)
    assert said == refused(capsys, "score", "-c", "D", "-b", "*")
    assert "B: cases/b1.json, test_cases[" in said


@pytest.mark.parametrize("command", ["explain", "triage"])
def test_a_batch_that_is_not_there_is_answered_with_those_that_are(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    two_concerns()
    sentence = "no batch matches --batch nope in cases; batches there: b1"
    assert sentence in refused(capsys, command, "--batch", "nope")
    assert sentence in refused(capsys, "explain", "--test", "T", "--batch", "nope")
    assert sentence in refused(capsys, "score", "-c", "K07", "-b", "nope")


@pytest.mark.parametrize("command", ["explain", "triage"])
def test_batches_without_a_test_case_are_said_to_have_none(capsys: pytest.CaptureFixture[str], command: str) -> None:
    write_batch(Path("cases"), "b1")
    write_report(Path("run.json"), answer("T"))
    assert refused(capsys, command) == "safe: error: there are no test cases in b1.json\n"


# --- one case ---------------------------------------------------------------------------------------------------------


def test_a_named_case_is_explained_for_each_of_its_concerns(capsys: pytest.CaptureFixture[str]) -> None:
    write_batch(Path("cases"), "b1", a_case("T"), a_case("T", ["stridor"], concern_id="D"))
    write_report(Path("run.json"), answer("T"))
    assert explained(capsys, "--test", "T")[0] == ["T", "T"]


def test_the_outputs_that_a_named_case_passes_over_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    write_batch(Path("cases"), "b1", a_case("T", patient_payload=NARRATIVE), a_case("U"))
    right = answer("T", {**GOOD, "raw_input": NARRATIVE})
    write_report(Path("run.json"), answer("T", {**HARMFUL, "raw_input": OTHER}), right, right, answer("U"))
    _, told = explained(capsys, "--test", "T", "--on-duplicate", "last")
    passed_over, twice = told.splitlines()
    assert passed_over.startswith("safe: 1 output is passed over, because a different output for the same case is")
    assert passed_over.endswith(": T (raw_results[0])")
    assert twice == "safe: 1 test_id answered more than once, and only the last answer counts: T"
