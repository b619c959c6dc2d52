"""Outputs under keys that nothing reads: told for each run, and refused where nothing at all would be read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main
from consumer.errors import ConfigurationError
from consumer.exit_codes import EXIT_ERROR, EXIT_OK
from consumer.files.outputs import open_outputs
from consumer.files.publish_cases import plan_cases
from consumer.files.publish_outputs import TargetBatches, plan_events
from tests.support.case_files import GOOD, a_case, answer, event, write_batch, write_events, write_report
from tests.support.tables import StoredRecord

OTHER = {"Signals": GOOD["signals"], "event_summary": GOOD["summary"], "FollowUpQuestions": []}
NOTHING_READ = "no output has any of the keys that are scored (signals, summary, followup_questions), so every score"
COMMANDS = [
    ("score", "-c", "K07", "-b", "*", "-t", "cases", "-i"),
    ("explain", "-t", "cases", "-i"),
    ("explain", "--test", "A-1", "-t", "cases", "-i"),
    ("triage", "-t", "cases", "-i"),
]


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_batch(Path("cases"), "asthma_1", a_case("A-1"), a_case("A-2"), a_case("A-3"))


def files_of(*outputs: Any) -> list[str]:
    """Write the outputs of the test cases as a report and as events."""
    write_report(Path("run.json"), *(answer(f"A-{n}", output) for n, output in enumerate(outputs, 1)))
    write_events(Path("run.jsonl"), *(event(f"A-{n}", output) for n, output in enumerate(outputs, 1)))
    return ["run.json", "run.jsonl"]


def plan(file: str) -> Sequence[str]:
    return plan_events([open_outputs(Path(file))], TargetBatches.of(None, Path("cases"))).remarks


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_keys_that_nothing_reads_are_told_by_kind_with_a_count(
    command: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for file in files_of({**OTHER, "summary": "x"}, {**GOOD, "Signals": []}, GOOD):
        main([*command, file])

        told = capsys.readouterr().err.splitlines()
        assert 'safe: 2 outputs have the key "Signals", which nothing reads: did you mean signals?' in told
        assert (
            'safe: 1 output has the key "FollowUpQuestions", which nothing reads: did you mean followup_questions?'
            in told
        )
        assert not [line for line in told if "event_summary" in line], "its summary is there"
        assert len([line for line in told if "which nothing reads" in line]) == 2


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("other", [OTHER, {"answer": "Salbutamol was given."}, {"raw_input": "x", "model_name": "m"}])
def test_a_run_of_which_nothing_is_read_is_refused(
    command: Sequence[str], other: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    for file in files_of(other, None, {}):
        assert main([*command, file]) == EXIT_ERROR
        told = " ".join(capsys.readouterr().err.split())
        assert NOTHING_READ in told
        assert ('1 output has the key "event_summary", which nothing reads: did you mean summary?' in told) is (
            other is OTHER
        )


@pytest.mark.parametrize(
    "outputs",
    [
        [None, {}, None],  # empty outputs, which is what they say
        [{"summary": ""}, OTHER, OTHER],  # one that is read
        [{"error_message": "429"}, {"error_message": "429"}],  # failed generations
    ],
)
def test_other_runs_are_scored(outputs: list[Any]) -> None:
    for file in files_of(*outputs):
        assert main([*COMMANDS[0], file]) == 1


def test_a_failed_generation_does_not_speak_for_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    for file in files_of({"error_message": "429"}, OTHER):
        assert main([*COMMANDS[0], file]) == EXIT_ERROR
        assert NOTHING_READ in " ".join(capsys.readouterr().err.split())


def test_what_is_published_is_told_and_refused_too() -> None:
    for file in files_of(OTHER, GOOD):
        assert 'the key "event_summary", which nothing reads: did you mean summary?' in " ".join(plan(file))
    for file in files_of(OTHER, OTHER):
        with pytest.raises(ConfigurationError, match="no output has any of the keys that are scored"):
            plan(file)


def test_lint_tells_it_of_the_outputs_that_it_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    for file in files_of(OTHER, GOOD):
        main(["lint", "cases", "-i", file])
        assert 'the key "Signals", which nothing reads: did you mean signals?' in capsys.readouterr().err


def test_keys_of_the_event_or_entry_itself_are_told_too(capsys: pytest.CaptureFixture[str]) -> None:
    write_report(Path("run.json"), answer("A-1", batchIndex=1, scores={}))
    write_events(Path("run.jsonl"), event("A-1", generatedAt="2026-01-01T00:00:00Z", trace_id="t"))
    for file, key, name in [("run.json", "batchIndex", "batch_index"), ("run.jsonl", "generatedAt", "generated_at")]:
        main([*COMMANDS[0], file])
        told = capsys.readouterr().err
        assert f'safe: 1 output has the key "{key}", which nothing reads: did you mean {name}?\n' in told
        assert told.count("which nothing reads") == 1


def test_a_record_of_the_topic_tells_it_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    value = json.dumps({"test_id": "A-1", "batch_id": "asthma_1", "output": {"Summary": "x"}}).encode()

    async def read(*_where: object) -> StoredRecord:
        return StoredRecord(0, 1, None, value)

    monkeypatch.setattr("consumer.kafka.reader.read_record", read)

    assert main(["explain", "--source", "t/0/1", "-t", "cases", "--bootstrap-servers", "localhost:1"]) == EXIT_OK
    assert "the record has keys that nothing reads, but that resemble summary" in capsys.readouterr().err


def test_a_key_cannot_trick_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    for file in files_of({"Summary\x1f": "x"}, GOOD):
        main([*COMMANDS[0], file])
        assert "\x1f" not in capsys.readouterr().err


def test_very_many_kinds_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    files_of({f"summary{n}": "" for n in range(20)}, {"signals": []})
    main([*COMMANDS[0], "run.json"])
    told = capsys.readouterr().err
    assert told.count("which nothing reads") == 10
    assert "safe: 10 more keys that nothing reads resemble one that is read\n" in told


# --- the output of an entry -------------------------------------------------------------------------------------------


def test_an_entry_of_a_report_may_call_its_output_output(capsys: pytest.CaptureFixture[str]) -> None:
    write_report(Path("run.json"), *({"test_id": f"A-{n}", "concern_id": "K07", "output": GOOD} for n in (1, 2, 3)))

    assert main([*COMMANDS[0], "run.json"]) == EXIT_OK
    assert "its generation failed" not in capsys.readouterr().err
    assert len(plan_events([open_outputs(Path("run.json"))], TargetBatches.of(None, Path("cases"))).files) == 1


def test_engine_output_counts_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    write_report(Path("run.json"), *({**answer(f"A-{n}"), "output": {"summary": "rubbish"}} for n in (1, 2, 3)))

    assert main([*COMMANDS[0], "run.json"]) == EXIT_OK
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("key", ["engineOutput", "Engine Output", "engine_outputs", "Output", "outputs"])
def test_an_output_under_a_name_that_is_nearly_right_is_no_failed_generation(
    key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_report(Path("run.json"), {"test_id": "A-1", key: GOOD})

    assert main([*COMMANDS[0], "run.json"]) == EXIT_ERROR
    sentence = f'run.json: raw_results[0] has no engine_output; did you mean "{key}"?'
    assert sentence in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("name", "document", "sentence"),
    [
        ("run.json", {"raw_results": [{"testId": "A-1", "engine_output": GOOD}]}, 'no test_id; did you mean "testId"?'),
        ("run.json", {"rawResults": []}, 'nor a JSONL file of events; did you mean "rawResults"?'),
        ("run.jsonl", {"test_id": "A-1", "Output": GOOD}, 'line 1 has no output; did you mean "Output"?'),
        ("run.jsonl", {"TestID": "A-1", "output": GOOD}, 'line 1 has no test_id; did you mean "TestID"?'),
    ],
)
def test_what_is_missing_may_be_there_in_another_spelling(
    name: str, document: Any, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_text(json.dumps(document) + "\n", encoding="utf-8")

    assert main([*COMMANDS[0], name]) == EXIT_ERROR
    assert sentence in " ".join(capsys.readouterr().err.split())


# --- test cases -------------------------------------------------------------------------------------------------------

MISSPELT = {"signalGeneration": {"must_find_signals": ["wheeze"]}, "event_summary": {"mustContainPhrases": ["x"]}}
TOLD = {
    'unknown key "signalGeneration", which scoring ignores; did you mean "signal_generation"?': "2 test cases",
    'unknown key "mustContainPhrases", which scoring ignores; did you mean "must_contain_phrases"?': "2 test cases",
    '"forbidden_terms" is not read here, but in expectations.followup_questions': "1 test case",
}


@pytest.mark.parametrize("command", [*COMMANDS, ("mutate", "-t", "cases")], ids=" ".join)
def test_terms_under_a_key_that_is_not_read_are_told_before_anybody_trusts_the_score(
    command: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    files_of(GOOD)
    cases = [{"test_id": f"B-{n}", "concern_id": "K07", "expectations": MISSPELT, "x": 1} for n in (1, 2)]
    story = a_case("B-3", forbidden_terms=["blame"], patient_payload="Wheeze. Salbutamol was given.")
    write_batch(Path("cases"), "b", *cases, story)

    main([*command] if command[0] == "mutate" else [*command, "run.json"])

    told = " ".join(capsys.readouterr().err.split())
    lines = [f"safe: cases/b.json: {sentence} ({count}; safe lint shows where)" for sentence, count in TOLD.items()]
    assert [told.count(line) for line in lines] == [1, 1, 1]
    assert '"x"' not in told, "it resembles nothing"


def test_they_are_told_where_test_cases_are_published() -> None:
    write_batch(Path("cases"), "b", {"test_id": "B-1", "concern_id": "K07", "expectations": MISSPELT})

    assert [line.split(";")[0] for line in plan_cases(Path("cases")).remarks] == [
        'cases/b.json: unknown key "signalGeneration", which scoring ignores',
        'cases/b.json: unknown key "mustContainPhrases", which scoring ignores',
    ]
