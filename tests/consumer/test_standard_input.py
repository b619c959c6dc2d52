"""`-` in the place of a file of outputs or a report: standard input, read once."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from consumer.cli.main import main
from consumer.files.outputs import open_outputs
from consumer.files.publish_outputs import TargetBatches, plan_events
from tests.support.case_files import a_case, write_batch

GOOD = {"signals": ["wheeze"], "summary": "Salbutamol was given.", "followup_questions": []}
REPORT = json.dumps({"raw_results": [{"test_id": "A-1", "engine_output": GOOD}]})
EVENTS = "".join(json.dumps({"test_id": name, "output": GOOD}) + "\n" for name in ("A-1", "A-2"))

Typed = Callable[[str], None]

SCORE = ("score", "-c", "K07", "-b", "asthma_1", "-t", "cases")


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_batch(Path("cases"), "asthma_1", a_case("A-1"), a_case("A-2"))


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Typed:
    def come(text: str) -> None:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))

    return come


@pytest.mark.parametrize(("text", "name"), [(REPORT, "run.json"), (EVENTS, "run.jsonl")])
def test_outputs_score_as_those_of_a_file(
    text: str, name: str, typed: Typed, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_text(text)
    main([*SCORE, "-i", name, "-f", "json"])
    of_file = json.loads(capsys.readouterr().out)
    typed(text)
    main([*SCORE, "-i", "-", "-f", "json"])
    of_stream = json.loads(capsys.readouterr().out)
    assert of_stream["results"] == of_file["results"]
    assert of_stream["inputs"][-1] == {**of_file["inputs"][-1], "name": "standard input"}


def test_every_command_that_reads_a_file_takes_it(typed: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    typed(EVENTS)
    assert main([*SCORE, "-i", "-", "-o", "report.json"]) == 0
    report = Path("report.json").read_text()
    commands: list[tuple[str, list[str]]] = [
        (EVENTS, ["explain", "-c", "K07", "-b", "asthma_1", "-t", "cases", "-i", "-", "--all"]),
        (EVENTS, ["lint", "cases", "--outputs", "-", "--fail-on", "never"]),
        (EVENTS, ["verify", "report.json", "-t", "cases", "-i", "-"]),
        (report, ["verify", "-", "-t", "cases", "-i", "run.jsonl"]),
        (report, ["gate", "-", "--min-pass-rate", "0.5"]),
        (report, ["compare", "-", "report.json"]),
    ]
    Path("run.jsonl").write_text(EVENTS)
    for text, command in commands:
        typed(text)
        assert main(command) == 0, (command, capsys.readouterr())
    assert "standard input" in capsys.readouterr().out
    typed(EVENTS)
    plan = plan_events([open_outputs(Path("-"))], TargetBatches.of(None, Path("cases")))
    assert [event.key for event in plan] == [b"asthma_1/A-1", b"asthma_1/A-2"]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("", [*SCORE, "-i", "-"]),
        (EVENTS, [*SCORE, "-i", "-", "-i", "-"]),
        (" \n", ["gate", "-", "--min-pass-rate", "0.5"]),
    ],
)
def test_nothing_to_read_or_a_second_reading_is_refused(
    text: str, command: list[str], typed: Typed, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(text)
    assert main(command) == 3
    assert "standard input: is empty; check that the command that writes to it" in capsys.readouterr().err


def test_errors_name_standard_input(typed: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    typed('{"test_id": "A-1"}\n')
    assert main([*SCORE, "-i", "-"]) == 3
    assert "safe: error: standard input: line 1 has no output" in capsys.readouterr().err
    typed("{}")
    assert main(["gate", "-", "--min-pass-rate", "0.5"]) == 3
    assert "safe: error: standard input: is not a SAFE report, because it has no summary" in capsys.readouterr().err
    typed(REPORT.replace("{", '{"summary": {}, ', 1))
    assert main(["gate", "-", "--min-pass-rate", "0.5"]) == 3
    advice = "standard input: holds outputs, not a SAFE report; score them first: safe score --outputs -\n"
    assert capsys.readouterr().err.endswith(advice)
