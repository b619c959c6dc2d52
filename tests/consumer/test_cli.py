"""The command line: what it answers, with which code, and how it fails."""

import json
import logging
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from consumer import __version__
from consumer.cli.main import app, main
from consumer.exit_codes import EXIT_BROKEN_PIPE, EXIT_ERROR, EXIT_INTERRUPTED

ROOT = Path(__file__).parents[2]
SECRET = "hunter2-never-shown"  # noqa: S105 (it is none)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory without a configuration file, and an environment without SAFE's variables."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("SAFE_V0_"):
            monkeypatch.delenv(name)
    return tmp_path


def fresh(arguments: Sequence[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the program as users do, in an interpreter of its own."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **variables}
    return subprocess.run(
        [sys.executable, "-m", "safe_scorer", *arguments],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


HELP = [
    # (arguments, what the help names)
    ([], "Usage: safe [OPTIONS] COMMAND"),
    (["--help"], "safe worker --bootstrap-servers"),
    (["-h"], "Commands:"),
    (["topics"], "create"),
    (["config"], "show"),
    (["worker", "--help"], "--role"),
    (["publish", "-h"], "--on-duplicate"),
    (["topics", "create", "--help"], "--replication-factor"),
    (["config", "show", "--help"], "console|json"),
    (["demo", "--help"], "--keep"),
]


@pytest.mark.parametrize(("arguments", "named"), HELP)
def test_help_is_printed_on_stdout(capsys: pytest.CaptureFixture[str], arguments: list[str], named: str) -> None:
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert named in printed.out
    assert printed.err == ""


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"safe {__version__}\n"


def test_the_distribution_whose_version_is_told_is_ours() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == "safe-scorer"
    assert project["scripts"]["safe"] == "safe_scorer.__main__:main"


HIDING = [
    # (what hides ours, what is named)
    ("consumer/__init__.py", "consumer"),
    ("safe_core/__init__.py", "safe_core"),
    ("consumer.py", "consumer.py"),
]


@pytest.mark.parametrize(("hiding", "named"), HIDING)
def test_another_package_of_the_same_name_is_named_and_what_to_do(elsewhere: Path, hiding: str, named: str) -> None:
    other = elsewhere / hiding
    other.parent.mkdir(exist_ok=True)
    other.touch()
    ended = fresh(["--version"], elsewhere)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr.startswith(f"safe: {elsewhere / named} is imported as ")
    assert f"Take {elsewhere} off Python's path (PYTHONPATH)" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_folder_of_the_same_name_that_is_no_package_hides_nothing(elsewhere: Path) -> None:
    (elsewhere / "consumer").mkdir()
    assert fresh(["--version"], elsewhere).stdout == f"safe {__version__}\n"


FAILURES = [
    # (arguments, environment, the one sentence)
    (["wroker"], {}, "No such command 'wroker'. Did you mean 'worker'?; see safe --help"),
    (["worker", "--rôle", "all"], {}, "No such option: --rôle"),
    (["worker", "extra"], {}, "Got unexpected extra argument(s) (extra); see safe worker --help"),
    (
        ["score", "-c", "K", "-i", "run.json", "-b", "b_1.json", "b_2.json"],
        {},
        "(b_2.json); files are given by options; if the shell expanded a pattern, quote it ('stroke_*'); see",
    ),
    (["worker", "--role"], {}, "Option '--role' requires an argument; see safe"),
    (["worker", "--role", "reader"], {}, "Invalid value for '--role'"),
    (["publish"], {}, "missing PATHS; see safe publish --help"),
    (["topics", "create", "--partitions", "0"], {}, "Invalid value for '--partitions'"),
    (["topics", "create", "--partitions", "eight"], {}, "Invalid value for '--partitions'"),
    (["topics", "make"], {}, "No such command 'make'"),
    (
        ["worker"],
        {},
        "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS is not set; set it to host:port,host:port,…, or give the value as",
    ),
    (["topics", "create"], {}, "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS is not set"),
    (["publish", "report.json"], {}, "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS is not set"),
    (
        ["worker", "--bootstrap-servers", "b:1"],
        {},
        "SAFE_V0_EXPECTATIONS is not set; set it to a folder, an http(s)://",
    ),
    (["worker", "--bootstrap-servers", "b"], {}, "--bootstrap-servers=b is not host:port; write host:port,host:port,…"),
    (["worker", "--delivery", "never"], {}, "--delivery=never cannot be used; write exactly_once or at_least_once"),
    (["worker", "--config", "none.json"], {}, "--config none.json cannot be read: No such file or directory"),
    (["config", "show"], {"SAFE_V0_CR_PAS": "1"}, "SAFE_V0_CR_PAS is not a variable that SAFE knows; did you mean"),
    (["config", "show"], {"SAFE_V0_AH_PASS": "\x1b[2J"}, 'SAFE_V0_AH_PASS="\\u001b[2J" cannot be used; write a number'),
    (["worker", "--\x1b[2J"], {}, "No such option: --\\x1b[2J"),
]


@pytest.mark.parametrize(("arguments", "environ", "sentence"), FAILURES)
def test_a_failure_is_one_sentence_on_stderr_and_code_3(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    environ: dict[str, str],
    sentence: str,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert main(arguments) == EXIT_ERROR
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("safe: error: ")
    assert sentence in printed.err
    assert printed.err.count("\n") == 1


def test_the_settings_are_shown_with_their_origins(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, elsewhere: Path
) -> None:
    monkeypatch.setenv("SAFE_V0_CR_PASS", "0.9")
    (elsewhere / "safe.config.json").write_text(
        '{"kafkaGroupId": "g", "overrides": {"archetype": {"X": {"strictAH": true}}}}'
    )
    assert main(["config", "show"]) == 0
    table = capsys.readouterr().out
    assert re.search(r"^SAFE_V0_CR_PASS +0\.9 +SAFE_V0_CR_PASS$", table, re.MULTILINE)
    assert re.search(r"^SAFE_V0_KAFKA_GROUP_ID +g +safe\.config\.json: kafkaGroupId$", table, re.MULTILINE)
    assert re.search(r"^SAFE_V0_AC_PASS +0\.8 +default$", table, re.MULTILINE)
    assert re.search(r'^overrides\.archetype\.X +\{"strictAH": true\} +configuration file$', table, re.MULTILINE)
    assert "Overrides beat the general settings, no matter where those were set" in table


def test_the_settings_are_shown_to_programs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAFE_V0_INPUT_TYPES", "a,b")
    assert main(["config", "show", "--format", "json", "--strict-ah"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["settings"]["SAFE_V0_INPUT_TYPES"] == {"value": ["a", "b"], "origin": "SAFE_V0_INPUT_TYPES"}
    assert document["settings"]["SAFE_V0_AH_STRICT"] == {"value": True, "origin": "--strict-ah"}
    assert document["settings"]["SAFE_V0_INPUT_START"] == {"value": None, "origin": "default"}
    assert document["overrides"] == {"metric_id": {}, "archetype": {}}
    assert document["notes"] == ["--strict-ah beats all: AH is strict for every case, whatever an override says."]


@pytest.mark.parametrize("format_", ["console", "json"])
def test_a_secret_is_shown_as_set_and_never_itself(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    monkeypatch.setenv("SAFE_V0_KAFKA_SECURITY_PROTOCOL", "SASL_SSL")
    monkeypatch.setenv("SAFE_V0_KAFKA_SASL_MECHANISM", "PLAIN")
    monkeypatch.setenv("SAFE_V0_KAFKA_SASL_USERNAME", "safe")
    monkeypatch.setenv("SAFE_V0_KAFKA_SASL_PASSWORD", SECRET)
    monkeypatch.setenv("SAFE_V0_EXPECTATIONS", f"https://user:{SECRET}@store/")
    assert main(["config", "show", "--format", format_]) == 0
    printed = capsys.readouterr()
    assert SECRET not in printed.out + printed.err
    assert "********" in printed.out


# --- the edge, in an interpreter of its own


def test_help_comes_without_loading_what_only_commands_need(elsewhere: Path) -> None:
    heavy = "{'aiokafka', 'aiohttp', 'pydantic', 'rich', 'structlog', 'safe_core'}"
    program = f"import sys; from consumer.cli.main import main; main(['--help']); print({heavy} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "set()"


def test_the_program_exits_as_main_says(elsewhere: Path) -> None:
    assert fresh([], elsewhere).returncode == 0
    assert fresh(["config", "show"], elsewhere).returncode == 0
    assert fresh(["nonsense"], elsewhere).returncode == EXIT_ERROR
    failed = fresh(["worker"], elsewhere, SAFE_V0_LOG_LEVEL="debug")
    assert (failed.returncode, failed.stdout) == (EXIT_ERROR, "")
    assert "Traceback" not in failed.stderr


def test_a_terminal_that_knows_only_ascii_gets_help_too(elsewhere: Path) -> None:
    done = fresh([], elsewhere, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_goes_away_is_no_error(elsewhere: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "safe_scorer", "config", "show"],
            cwd=elsewhere,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (EXIT_BROKEN_PIPE, b"")


# Commands that only these tests have, each ending in its own way.


@app.command(hidden=True)
def interrupted() -> None:
    raise KeyboardInterrupt


@app.command(hidden=True)
def defective() -> None:
    raise KeyError(SECRET)


@app.command(hidden=True)
def verdict() -> int:
    return 1


def test_an_interrupted_command_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["interrupted"]) == EXIT_INTERRUPTED
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("environ", "arguments", "is_json"),
    [
        ({"SAFE_V0_LOG_FORMAT": "json"}, ["worker"], True),
        ({"SAFE_V0_LOG_FORMAT": "json"}, ["worker", "--nonsense"], True),
        ({"SAFE_V0_LOG_FORMAT": "json", "SAFE_V0_BATCH_TTL_SECONDS": "soon"}, ["worker"], True),
        ({}, ["worker", "--log-format", "json"], True),
        ({}, ["worker", "--log-format=json"], True),
        ({"SAFE_V0_LOG_FORMAT": "json"}, ["worker", "--log-format", "console"], False),
        ({}, ["worker"], False),
        ({"SAFE_V0_LOG_FORMAT": "json"}, ["score"], False),
    ],
)
def test_the_last_line_of_a_worker_that_logs_json_is_json(
    environ: dict[str, str],
    arguments: list[str],
    is_json: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert main(arguments) == EXIT_ERROR
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("safe: error: ") is not is_json
    if is_json:
        document = json.loads(line)
        assert (document["level"], document["event"], document["exit_code"]) == ("error", "the worker ends", 3)
        assert "SAFE_V0_" in document["why"] or "--nonsense" in document["why"]


def test_the_code_that_a_command_returns_is_the_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verdict"]) == 1
    assert capsys.readouterr().err == ""


def test_a_defect_is_told_by_type_and_place_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["defective"]) == EXIT_ERROR
    told = capsys.readouterr().err
    assert re.fullmatch(
        r"safe: error: unexpected KeyError at consumer/\S+\.py:\d+; SAFE_V0_LOG_LEVEL=debug shows the traceback\n",
        told,
    )


def test_a_defect_shows_its_frames_to_who_asks_for_debug(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAFE_V0_LOG_LEVEL", "debug")
    assert main(["defective"]) == EXIT_ERROR
    told = capsys.readouterr().err
    assert re.search(r"^  at consumer/test_cli\.py:\d+ in defective$", told, re.MULTILINE)
    assert SECRET not in told


# --- options


TWICE = [
    (["score", "-c", "K07", "-b", "a", "-b", "c", "-i", "run.json"], "Invalid value for --batch: it is given twice"),
    (
        ["gate", "report.json", "--fail-on", "fail", "--fail-on", "never"],
        "Invalid value for --fail-on: it is given twic",
    ),
    (["topics", "create", "--partitions", "1", "--partitions", "2"], "Invalid value for --partitions: it is given twi"),
    (["gate", "report.json", "--min-pass-rate", "80%"], "'80%' is not a fraction from 0 to 1; 80 percent is 0.8"),
]


@pytest.mark.parametrize(("arguments", "sentence"), TWICE)
def test_an_option_that_cannot_be_heard_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(arguments) == EXIT_ERROR
    assert sentence in capsys.readouterr().err


def test_an_output_that_is_full_or_closed_is_told_as_such(elsewhere: Path) -> None:
    command = f'exec "{sys.executable}" -m safe_scorer config show'
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    full, closed = (
        subprocess.run(
            ["/bin/sh", "-c", f"{command} {redirection}"],
            cwd=elsewhere,
            env=environ,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        for redirection in ("> /dev/full", ">&-")
    )
    sentence = "safe: error: standard output cannot be written: No space left on device\n"
    assert (full.returncode, full.stderr) == (EXIT_ERROR, sentence)
    assert (closed.returncode, closed.stderr) == (0, "")
