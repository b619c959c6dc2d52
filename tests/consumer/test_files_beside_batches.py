"""Files that lie beside the batches and are none: a wildcard leaves them out, a name asks for them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from consumer.case_sources.folder import FolderSource
from consumer.case_sources.source import ExpectationsKey as Key
from consumer.cli.main import main
from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError
from consumer.exit_codes import EXIT_ERROR, EXIT_OK
from consumer.files.publish_cases import plan_cases
from consumer.files.publish_outputs import TargetBatches
from tests.support.case_files import a_case, answer, write_batch, write_report

BESIDE = {
    "accountant_report.json": {"total_cost": 1.2, "calls": [{"test_id": "A-1", "tokens": 7}]},
    "generation_plan.json": {"test_case_count": 2, "planned_test_cases": [{"test_id": "A-1"}]},
    "generation_strategy.json": {"strategy": {"focus": "asthma"}},
}
NOTE = (
    "3 files are left out: they have no test_cases, so they are not batch files: accountant_report.json, "
    "generation_plan.json, generation_strategy.json"
)
CONTRACT: dict[str, Any] = {"test_id": "N-1", "concern_id": "K07", "expected_signals": [{"signal_id": "S1"}]}
IS_CONTRACT = "no expectations, but expected_signals: a contract case of factory-cli, which SAFE v0 does not score"

TEN = "test_cases[0], [1], [2], [3], [4], [5], [6], [7], [8], [9]"


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A live folder of factory-cli: a batch, and what else it writes there."""
    monkeypatch.chdir(tmp_path)
    write_batch(tmp_path / "cases", "asthma_1", a_case("A-1", patient_payload="Wheeze; salbutamol was given."))
    for name, document in BESIDE.items():
        (tmp_path / "cases" / name).write_text(json.dumps(document), encoding="utf-8")
    write_report(tmp_path / "run.json", answer("A-1"))
    return tmp_path / "cases"


SCORE = ("score", "-c", "K07", "-i", "run.json")


@pytest.mark.parametrize(
    "arguments",
    [
        (*SCORE, "-b", "*"),
        (*SCORE, "-b", "*", "-f", "json"),
        ("explain", "-b", "*", "-i", "run.json"),
        ("explain", "--test", "A-1", "-i", "run.json"),
        ("triage", "-b", "*", "-i", "run.json"),
        ("mutate", "-b", "*"),
        ("lint", "cases", "--fail-on", "error"),
    ],
    ids=" ".join,
)
def test_a_wildcard_leaves_them_out_with_one_note(
    cases: Path, arguments: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = () if arguments[0] == "lint" else ("-t", str(cases))

    code = main([*arguments, *folder])

    told = " ".join(capsys.readouterr().err.split())
    assert (code, told.count(NOTE)) == (EXIT_OK, 1), told


def test_one_such_file_is_named_by_itself(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in [*BESIDE][1:]:
        (cases / name).unlink()

    assert main([*SCORE, "-b", "*", "-t", "cases"]) == EXIT_OK

    told = " ".join(capsys.readouterr().err.split())
    assert "accountant_report.json is left out: it has no test_cases, so it is not a batch file" in told


@pytest.mark.parametrize(
    "arguments",
    [
        (*SCORE, "-b", "generation_plan", "-t", "cases"),
        (*SCORE, "-b", "generation_plan.json", "-t", "cases"),
        ("mutate", "-b", "generation_plan", "-t", "cases"),
        ("explain", "-b", "generation_plan", "-i", "run.json", "-t", "cases"),
        ("publish", "run.json", "-b", "generation_plan", "-t", "cases", "--bootstrap-servers", "localhost:1"),
    ],
    ids=" ".join,
)
def test_one_that_is_asked_for_by_name_is_an_error(
    cases: Path, arguments: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == EXIT_ERROR
    assert "cases/generation_plan.json: test_cases is missing" in " ".join(capsys.readouterr().err.split()), cases


@pytest.mark.parametrize(
    "arguments", [("lint", "cases/generation_plan.json"), ("lint", "cases", "-b", "generation_plan")]
)
def test_lint_says_so_too(cases: Path, arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 1, cases
    assert "test_cases is missing" in capsys.readouterr().out


@pytest.mark.parametrize("command", [(*SCORE, "-t", "cases"), ("lint", "cases")])
def test_a_pattern_that_matches_nothing_else_is_an_error(
    cases: Path, command: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = (
        "cases has no batch files (<batch_id>.json) that match --batch generation_*: 2 files are left out: they "
        "have no test_cases, so they are not batch files: generation_plan.json, generation_strategy.json"
    )
    assert main([*command, "-b", "generation_*"]) == EXIT_ERROR, cases
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_a_pattern_that_one_of_them_alone_matches_names_it(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SCORE, "-b", "*_plan", "-t", "cases"]) == EXIT_ERROR, cases
    assert capsys.readouterr().err == "safe: error: cases/generation_plan.json: test_cases is missing\n"


def test_what_is_published_leaves_them_out_too(cases: Path) -> None:
    plan = plan_cases(cases)
    target = TargetBatches.of(None, cases)

    assert [*plan.batches] == ["asthma_1"]
    assert [*plan.remarks] == [NOTE]
    assert target.batches is not None
    assert target.batches.beside == (*BESIDE,)
    with pytest.raises(
        ConfigurationError, match=r"nothing was published\. .*generation_plan\.json: test_cases is missing"
    ):
        plan_cases(cases, "generation_plan")
    with pytest.raises(ConfigurationError, match=r"has no batch files .* that match --batch g"):
        plan_cases(cases, "g*")


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"testCases": [a_case("A-2")]}, "test_cases is missing, and another key holds test cases: they belong"),
        (a_case("A-2"), "is a single test case; a batch file has a list named test_cases"),
        ([a_case("A-2")], "not an object"),
        ({"test_cases": a_case("A-2")}, "test_cases is not a list"),
    ],
)
def test_test_cases_that_a_person_meant_are_never_left_out(
    cases: Path, document: Any, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (cases / "asthma_2.json").write_text(json.dumps(document), encoding="utf-8")

    assert main([*SCORE, "-b", "*", "-t", "cases"]) == EXIT_ERROR
    assert f"cases/asthma_2.json: {sentence}" in " ".join(capsys.readouterr().err.split())


def test_outputs_beside_the_batches_are_left_out(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_report(cases / "a_run.json", answer("A-1"))

    assert main([*SCORE, "-b", "*", "-t", "cases"]) == EXIT_OK
    assert "a_run.json" in capsys.readouterr().err


# --- the folder of a worker -------------------------------------------------------------------------------------------


async def test_a_worker_leaves_them_out_with_one_line(cases: Path) -> None:
    source = FolderSource(cases)

    with capture_logs() as logs:
        await source.start()

    assert source.unusable == ()
    assert [(each["event"], each["log_level"]) for each in logs] == [
        ("files without test_cases are left out", "info"),
        ("batch files were read", "info"),
    ]
    assert (logs[0]["files"], logs[0]["named"], logs[1]["files"]) == (3, ", ".join(BESIDE), 1)
    unknown, own = (await source.find([Key("asthma_1", "A-9"), Key("generation_plan", "A-1")])).values()
    assert isinstance(unknown, Poison)
    assert unknown.detail == "no batch file contains it (1 file read)"
    assert isinstance(own, Poison), "it was asked for by name"
    assert (own.reason, own.detail) == ("expectations_invalid", "the batch's own file: test_cases is missing")


async def test_a_batch_file_that_loses_its_test_cases_is_no_such_file(cases: Path) -> None:
    now = [0.0]
    source = FolderSource(cases, clock=lambda: now[0])
    await source.start()
    (cases / "asthma_1.json").write_text('{"strategy": "none"}', encoding="utf-8")
    (cases / "generation_plan.json").write_text('{"test_cases": [', encoding="utf-8")

    now[0] += 60
    await source.find([Key("asthma_1", "A-1")])

    assert source.unusable == ("asthma_1.json", "generation_plan.json")


# --- contract cases ---------------------------------------------------------------------------------------------------


def test_contract_cases_are_named_in_one_sentence_for_each_file(
    cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(2):
        write_batch(cases, f"new_{number}", *({**CONTRACT, "test_id": f"N-{n}"} for n in range(200)))

    assert main([*SCORE, "-b", "*", "-t", "cases"]) == EXIT_ERROR

    told = " ".join(capsys.readouterr().err.split())
    each = f"each of 200 test cases ({TEN} and 190 more): {IS_CONTRACT}"
    assert told == f"safe: error: test cases that cannot be used: cases/new_0.json, {each}; cases/new_1.json, {each}"


def test_lint_names_them_once_for_each_file(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_batch(cases, "new_0", a_case("A-1"), *({**CONTRACT, "test_id": f"N-{n}"} for n in range(20)))

    assert main(["lint", "cases/new_0.json", "--format", "json"]) == 1

    found = [each for each in json.loads(capsys.readouterr().out)["findings"] if each["severity"] == "error"]
    assert [(each["code"], each["place"], each["sentence"]) for each in found] == [
        ("invalid_case", "test_cases[1] (N-0)", f"20 of 21 test cases cannot be scored: {IS_CONTRACT}")
    ]


def test_they_cannot_be_published(cases: Path) -> None:
    write_batch(cases, "new_0", *({**CONTRACT, "test_id": f"N-{n}"} for n in range(20)))

    with pytest.raises(ConfigurationError) as caught:
        plan_cases(cases)

    each = f"each of 20 test cases ({TEN} and 10 more): {IS_CONTRACT}"
    assert str(caught.value) == f"nothing was published. {cases}/new_0.json, {each}"
