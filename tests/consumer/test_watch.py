"""`safe watch`: what it prints when files change, are half written, vanish and come back."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main
from consumer.errors import ConfigurationError
from consumer.offline.watch import LOOK_SECONDS, SETTLED_SECONDS, Watch, WatchRequest, watch_command
from safe_core import DEFAULT_POLICY
from tests.support.case_files import GOOD, HARMFUL, a_case, answer, event, write_batch, write_events, write_report
from tests.support.documents import blocks_of, lines_of, text_of
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
SECONDS = 60.0
IDS = ("T1", "T2", "T3", "T4")
EMPTY = {**GOOD, "signals": [], "summary": ""}
Json = Any


@pytest.fixture
def request_(tmp_path: Path) -> WatchRequest:
    """Four cases, and a report in which one of them fails."""
    write_batch(tmp_path / "cases", "b1", *map(a_case, IDS))
    outputs(tmp_path, HARMFUL, GOOD, GOOD, GOOD)
    return WatchRequest([tmp_path / "run.json"], tmp_path / "cases")


def outputs(folder: Path, *answers: Json) -> None:
    """Replace the outputs, as an editor does: by another file."""
    written = write_report(folder / ".run.json", *(answer(*each) for each in zip(IDS, answers, strict=False)))
    written.replace(folder / "run.json")


def test_each_run_is_shown_with_what_changed_against_the_last_and_the_best(
    request_: WatchRequest, tmp_path: Path
) -> None:
    watch = Watch(DEFAULT_POLICY, request_)
    [line] = watch.look(0)
    assert line.startswith("run 1: 3 of 4 Pass, ")
    assert watch.look(1) == []
    outputs(tmp_path, GOOD, GOOD, GOOD, GOOD)
    first, against, better = watch.look(2)
    assert first.startswith("run 2: 4 of 4 Pass, ")
    assert against.startswith("  against run 1 (the last): ")
    assert "Pass rate +25.0 points" in against
    assert better == "    better  T1  Fail -> Pass  AH no longer used: blame"
    outputs(tmp_path, GOOD, EMPTY, HARMFUL, GOOD)
    third = watch.look(3)
    assert [line for line in third if "against" in line] == [third[1]]  # the last one is the best one
    outputs(tmp_path, GOOD, EMPTY, GOOD, GOOD)
    fourth = watch.look(4)
    heads = [line for line in fourth if "against" in line]
    assert [head.partition(":")[0] for head in heads] == [
        "  against run 3 (the last)",
        "  against run 2 (the best so far)",
    ]
    assert "    better  T3  Fail -> Pass  AH no longer used: blame" in fourth
    assert any(line.startswith("    worse   T2  Pass -> Fail  CR newly missed: wheeze") for line in fourth)


def test_a_lost_case_is_named(request_: WatchRequest, tmp_path: Path) -> None:
    watch = Watch(DEFAULT_POLICY, request_)
    watch.look(0)
    outputs(tmp_path, HARMFUL, GOOD, GOOD)
    assert any(line.startswith("    lost    T4  ") for line in watch.look(1))


def test_a_changed_test_case_is_scored_again_and_said_to_differ(request_: WatchRequest, tmp_path: Path) -> None:
    watch = Watch(DEFAULT_POLICY, request_)
    watch.look(0)
    write_batch(tmp_path / "cases", "b1", *(a_case(each, ["crackles"]) for each in IDS))
    lines = watch.look(1)
    assert lines[0].startswith("run 2: 0 of 4 Pass")
    assert any("The expectations of 4 judged cases differ" in line for line in lines)


def test_a_half_written_file_is_waited_for(request_: WatchRequest, tmp_path: Path) -> None:
    watch, run = Watch(DEFAULT_POLICY, request_), tmp_path / "run.json"
    watch.look(0)
    outputs(tmp_path, GOOD, GOOD, GOOD, GOOD)
    whole = run.read_text(encoding="utf-8")
    said: list[str] = []
    for number, end in enumerate(range(0, len(whole), len(whole) // 12)):
        run.write_text(whole[:end], encoding="utf-8")
        said += watch.look(1 + number * SETTLED_SECONDS * 0.9)
    assert said == []
    run.write_text(whole, encoding="utf-8")
    assert watch.look(100)[0].startswith("run 2: 4 of 4 Pass")


def test_a_file_that_stays_unusable_is_told_of_once_and_read_again_when_it_changes(
    request_: WatchRequest, tmp_path: Path
) -> None:
    watch, run = Watch(DEFAULT_POLICY, request_), tmp_path / "run.json"
    watch.look(0)
    whole = run.read_text(encoding="utf-8")
    run.write_text(whole[:40], encoding="utf-8")
    told = [watch.look(1 + at * LOOK_SECONDS) for at in range(10)]
    [[sentence]] = [lines for lines in told if lines]
    assert sentence.startswith(f"{run}: cannot be read: invalid_json") or str(run) in sentence
    assert sentence.endswith("; waiting for a change")
    assert told[0] == []
    run.write_text(whole, encoding="utf-8")
    assert watch.look(20) == ["scored again: nothing has changed since run 1"]


def test_what_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    watch = Watch(DEFAULT_POLICY, WatchRequest([tmp_path / "run.json"], tmp_path / "cases"))
    assert watch.look(0) == []
    [sentence] = watch.look(SETTLED_SECONDS)
    assert str(tmp_path / "cases") in sentence
    write_batch(tmp_path / "cases", "b1", *map(a_case, IDS))
    outputs(tmp_path, GOOD, GOOD, GOOD, GOOD)
    assert watch.look(10)[0].startswith("run 1: 4 of 4 Pass")


def test_a_new_file_in_a_folder_counts(tmp_path: Path) -> None:
    write_batch(tmp_path / "cases", "b1", *map(a_case, IDS))
    runs = tmp_path / "runs"
    runs.mkdir()
    write_events(runs / "one.jsonl", event("T1"))
    watch = Watch(DEFAULT_POLICY, WatchRequest([runs], tmp_path / "cases"))
    assert watch.look(0)[0].startswith("run 1: 1 of 4 Pass")
    write_events(runs / "two.jsonl", event("T2"))
    assert watch.look(1)[0].startswith("run 2: 2 of 4 Pass")
    (runs / "two.jsonl").unlink()
    assert watch.look(2)[0].startswith("run 3: 1 of 4 Pass")


def test_it_looks_twice_a_second_and_rests_between(request_: WatchRequest, capsys: pytest.CaptureFixture[str]) -> None:
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 5:
            raise KeyboardInterrupt

    assert watch_command(DEFAULT_POLICY, request_, wait) == 0
    assert waited == [LOOK_SECONDS] * 5
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_no_text_of_an_output_is_shown(request_: WatchRequest, tmp_path: Path) -> None:
    watch = Watch(DEFAULT_POLICY, request_)
    said = watch.look(0)
    canary = {**HARMFUL, "summary": "Kanarienvogel", "signals": ["Kanarienvogel"]}
    outputs(tmp_path, canary, canary, GOOD, GOOD)
    said += watch.look(1)
    assert len(said) > 3
    assert "Kanarienvogel" not in "\n".join(said)


REFUSED = [
    (["-i", "-", "-t", "cases"], "--outputs -: standard input cannot be watched; name files or folders"),
    (["-i", "run.json"], "no folder of test cases was given"),
    ([], "missing --outputs PATH"),
]


@pytest.mark.parametrize(("options", "sentence"), REFUSED)
def test_what_cannot_be_watched_is_refused(
    options: list[str], sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SAFE_V0_EXPECTATIONS", raising=False)
    assert main(["watch", *options]) == 3
    assert sentence in capsys.readouterr().err


def test_several_concerns_are_named(tmp_path: Path) -> None:
    write_batch(tmp_path / "cases", "b1", a_case("T1"), a_case("T2", concern_id="OTHER"))
    outputs(tmp_path, GOOD)
    watch = Watch(DEFAULT_POLICY, WatchRequest([tmp_path / "run.json"], tmp_path / "cases"))
    watch.look(0)
    [sentence] = watch.look(SETTLED_SECONDS)
    assert sentence.startswith("the test cases are of several concerns: K07, OTHER; score one of them")
    with pytest.raises(ConfigurationError, match="standard input"):
        WatchRequest([Path("-")], tmp_path)


# --- from outside -----------------------------------------------------------------------------------------------------


@contextmanager
def watching(folder: Path, *options: str) -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    """A `safe watch` in the background, and what it prints."""
    printed = folder / "printed"
    command = [sys.executable, "-m", "safe_scorer", "watch", *options]
    kept = {name: text for name, text in os.environ.items() if not name.startswith("SAFE_V0_")}
    environ = {**kept, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    with (
        printed.open("w", encoding="utf-8") as file,
        subprocess.Popen(command, cwd=folder, env=environ, stdout=file, stderr=subprocess.PIPE, text=True) as process,
    ):
        try:
            yield process, printed
        finally:
            process.kill()


def until(process: "subprocess.Popen[str]", printed: Path, words: str) -> str:
    def seen() -> str | None:
        assert process.poll() is None
        text = printed.read_text(encoding="utf-8")
        return text if words in text else None

    return wait_until(seen, within_seconds=SECONDS, what=f"it prints {words!r}")


def written_slowly(path: Path, text: str, process: "subprocess.Popen[str]", printed: Path) -> None:
    """Write a file in two parts, with time between them for a look that must say nothing."""
    before, half = printed.read_text(encoding="utf-8"), len(text) // 2
    path.write_text(text[:half], encoding="utf-8")
    with pytest.raises(AssertionError, match="not within"):
        wait_until(
            lambda: printed.read_text(encoding="utf-8") != before, within_seconds=2 * LOOK_SECONDS, what="it prints"
        )
    assert process.poll() is None
    path.write_text(text, encoding="utf-8")


def test_a_change_is_shown_and_ctrl_c_ends_it_without_a_word(request_: WatchRequest, tmp_path: Path) -> None:
    with watching(tmp_path, "-i", "run.json", "-t", "cases") as (process, printed):
        until(process, printed, "run 1: 3 of 4 Pass")
        better = json.dumps({"raw_results": [answer(each) for each in IDS]}, indent=1)
        written_slowly(request_.outputs[0], better, process, printed)
        text = until(process, printed, "run 2: 4 of 4 Pass")
        assert "cannot be read" not in text
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=SECONDS)
    assert (process.returncode, said) == (0, "")


def test_the_page_shows_what_its_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["example", "story", "."]) == 0
    command, shown = blocks_of(text_of("docs/how-to/watch.md"))
    with watching(tmp_path / "story", *lines_of(command)[0].split()[2:]) as (process, printed):
        text = until(process, printed, "run 1: ")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
    [line] = text.splitlines()
    assert line.partition("  ")[2] == shown.text.rstrip().partition("  ")[2]
