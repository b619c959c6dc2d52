"""What README and docs tell people to run is run as it is written, and prints what the pages show.

A page is run in a folder that has nothing but what the page itself has asked for. What needs a broker, a cluster or a
registry is run by what `ELSEWHERE` names; of all pages, every command is one that can be given.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from consumer.cli.main import app
from tests.support.documents import (
    Block,
    blocks_of,
    documents,
    lines_of,
    safe_commands,
    saved_files,
    section,
    text_of,
)
from tests.support.kafka_broker import PROJECT

BASH = shutil.which("bash") or "bash"
Json = Any


@dataclass(frozen=True, slots=True)
class Walk:
    """Pages, or one section of a page, that a reader works through in one folder."""

    parts: tuple[tuple[str, str | None], ...]
    written: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(section(page, only) if only else text_of(page) for page, only in self.parts)


HOW_TO = "docs/how-to"
WALKS = {
    "files": Walk((("README.md", "1. Files"),)),
    "story": Walk((("docs/tutorials/what-to-change-first.md", None),)),
    "own files": Walk(
        tuple((f"{HOW_TO}/{name}.md", None) for name in ("score-files", "explain-misses", "compare-runs", "ci")),
        (
            "report.json",
            "report.md",
            "report.html",
            "history.html",
            "runs/index.html",
            "comparison.md",
            "better-cases/stroke_1.json",
        ),
    ),
}
# Who runs the blocks of the other pages, and why they are not run here.
ELSEWHERE = {
    "README.md": ("bench/doors.py", "installs, and starts a broker"),
    "CONTRIBUTING.md": ("Makefile", "the targets of make"),
    "docs/tutorials/kafka.md": ("tests/broker/test_tutorial.py", "needs a broker"),
    "docs/how-to/subscribe.md": ("tests/broker/test_downstream_examples.py", "needs a broker"),
    "docs/how-to/python.md": ("tests/api/test_python_api.py", "needs an environment of its own"),
    "docs/how-to/watch.md": ("tests/consumer/test_watch.py", "runs until Ctrl-C"),
    "docs/how-to/results.md": ("tests/broker/test_results.py", "needs a broker"),
    "docs/how-to/dead-letters.md": ("tests/broker/test_dead_letters.py", "needs a broker"),
    "docs/how-to/install.md": ("tests/charts/test_documentation.py", "needs a registry and a cluster"),
    "docs/how-to/monitoring.md": ("tests/charts/test_monitoring_page.py", "needs a cluster"),
    "docs/how-to/judge.md": ("tests/consumer/test_judge.py", "asks a model"),
    "docs/how-to/operate.md": ("tests/broker/test_operation.py", "needs a broker"),
    "docs/how-to/release.md": ("tests/image/test_release.py", "builds"),
    "docs/how-to/runbooks.md": ("tests/monitoring/test_situations.py", "needs a cluster"),
    "docs/reference/clusters.md": ("tests/broker/test_broker_errors.py", "needs a broker"),
    "docs/reference/permissions.md": ("tests/broker/test_permissions.py", "needs a broker with an authorizer"),
    "docs/reference/expectations.md": ("tests/broker/test_cases_topic.py", "needs a broker"),
    "docs/develop.md": ("Makefile", "takes hours"),
    "docs/explanation/diagnosis.md": ("tests/core/test_diagnosis_page.py", "changes the lexicon"),
    "bench/README.md": ("Makefile", "measures"),
    "charts/safe/README.md": ("tests/charts/test_values.py", "needs a cluster"),
}


def shell(command: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a command where `safe` is this one, under none of the settings of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SAFE_V0_", "GITHUB_"))}
    environ = {**kept, "PATH": f"{program_in(folder)}:{os.environ['PATH']}", "PYTHONPATH": str(PROJECT), **variables}
    return subprocess.run(
        [BASH, "-c", f"set -e; {command}"],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def program_in(folder: Path) -> Path:
    """A folder with a `safe`, beside the one in which commands are run."""
    programs = folder.parent / f"{folder.name}-bin"
    programs.mkdir(exist_ok=True)
    program = programs / "safe"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m safe_scorer "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return programs


NOT_HERE = ("pip ", "git ")
"""Commands that install something: bench/doors.py runs them."""

# What the pages say of a command beyond what they show: its exit code, and how its output begins.
SAID = {
    "safe score --outputs run.json --test-dir cases --verbose": (2, "╔═"),
    "safe gate report.json --min-pass-rate 0.8 --fail-on fail": (1, "gate NOT passed"),
    "safe verify report.json --outputs run.json --test-dir cases": (0, "verified:"),
    "safe explain ST-001 --outputs run.json --test-dir cases": (0, "1 case explained"),
    "safe lint cases --outputs run.json": (1, "Ceiling:"),
    "safe compare report.json report.json --output comparison.md --fail-on-regression": (0, "Nothing changed beyond"),
}


def walked(walk: Walk, folder: Path) -> dict[str, "subprocess.CompletedProcess[str]"]:
    """Do what the pages say, in their order; gives what each command, or each block whose output is shown, has done."""
    done: dict[str, subprocess.CompletedProcess[str]] = {}
    text = walk.text
    for block, following in zip(found := blocks_of(text), [*found[1:], None], strict=True):
        for name, content in saved_files(text).items():
            if block.text == content:
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(content, encoding="utf-8")
        if block.language == "bash":
            done |= run_block(block, following, folder)
    return done


def run_block(block: Block, following: Block | None, folder: Path) -> dict[str, "subprocess.CompletedProcess[str]"]:
    lines = [line for line in lines_of(block) if not line.startswith(NOT_HERE)]
    done = {line: shell(line, folder) for line in lines}
    for line, result in done.items():
        assert result.returncode in {0, 1, 2}, f"{line}: {result.stderr}"
        code, beginning = SAID.get(line, (result.returncode, ""))
        assert (result.returncode, result.stdout[: len(beginning)]) == (code, beginning), line
    if following is not None and following.language == "text":
        assert "".join(result.stdout for result in done.values()).strip() == following.text.strip()
    return done


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_the_commands_of_a_page_print_what_it_shows(walk: Walk, tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    done = walked(walk, folder)
    assert done
    assert [name for name in walk.written if not (folder / name).is_file()] == []
    assert ["this phrase would catch it" in done[line].stdout for line in done if "mutate" in line] in ([], [True])


def test_what_is_said_of_a_command_is_said_of_one_that_a_page_has() -> None:
    lines = {line for walk in WALKS.values() for block in blocks_of(walk.text) for line in lines_of(block)}
    assert set(SAID) <= lines


def test_pictures_are_there() -> None:
    assert (PROJECT / "docs" / "review.png").is_file()


def test_the_readme_is_short() -> None:
    assert len(text_of("README.md").splitlines()) <= 200


# --- every page -------------------------------------------------------------------------------------------------------


def name_of(page: Path) -> str:
    return page.relative_to(PROJECT).as_posix()


def test_of_every_page_with_commands_it_is_known_who_runs_them() -> None:
    walked_whole = {page for walk in WALKS.values() for page, only in walk.parts if only is None}
    with_commands = {name_of(page) for page in documents() if "\n```bash\n" in text_of(page)}
    assert with_commands <= walked_whole | set(ELSEWHERE)
    assert [by for by, _why in ELSEWHERE.values() if not (PROJECT / by).is_file()] == []


COMMANDS = [
    pytest.param(words, id=f"{page.name}: {' '.join(words)}"[:100])
    for page in documents()
    for words in safe_commands(text_of(page))
]


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_of_a_page_is_one_that_can_be_given(words: list[str]) -> None:
    """Its name, its options and what they need are what the program takes; nothing is run."""
    command: Any = typer.main.get_command(app)
    context = None
    rest = list(words)
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    command.make_context("safe", rest, parent=context)


SPANS = sorted(
    {
        (name_of(page), span)
        for page in documents()
        if page.name != "CHANGELOG.md"
        for span in re.findall(r"`(safe [a-z][^`…]*)`", text_of(page).replace("\n", " "))
    }
)


@pytest.mark.parametrize(("page", "span"), SPANS)
def test_every_command_in_a_sentence_has_a_name_and_options_that_there_are(page: str, span: str) -> None:
    command: Any = typer.main.get_command(app)
    _safe, *rest = span.split()
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        assert rest[0] in command.commands, f"{page}: `{span}`"
        command = command.commands[rest.pop(0)]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}
    named = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
    assert named <= known, f"{page}: `{span}`"


# --- CI ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the page of files asks for, and nothing else."""
    reader = tmp_path / "reader"
    for name, content in saved_files(text_of(f"{HOW_TO}/score-files.md")).items():
        (reader / name).parent.mkdir(parents=True, exist_ok=True)
        (reader / name).write_text(content, encoding="utf-8")
    return reader


def pipelines() -> list[Json]:
    return [yaml.safe_load(block.text) for block in blocks_of(text_of(f"{HOW_TO}/ci.md")) if block.language == "yaml"]


def test_the_gitlab_job_scores_gates_and_keeps_the_reports(folder: Path) -> None:
    job = pipelines()[0]["safe"]
    score, gate = (command for command in job["script"] if command.startswith("safe "))
    assert shell(score, folder).returncode == 0
    assert shell(gate, folder).returncode == 1
    kept = [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]
    assert all((folder / name).is_file() for name in kept)
