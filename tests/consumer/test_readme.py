"""What the README says of files and CI is run as it is written."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
STORY = README.partition("\n## What to change first")[2].partition("\n## ")[0]
SECTION = README.partition("\n## Score files\n")[2].partition("\n## ")[0]
Json = Any
BASH = shutil.which("bash") or "bash"


def blocks(language: str) -> list[str]:
    """The section's blocks of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the section shows, and a `safe` to run."""
    case, outputs = blocks("json")
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "stroke_1.json").write_text(case, encoding="utf-8")
    (tmp_path / "run.json").write_text(outputs, encoding="utf-8")
    with_program(tmp_path)
    return tmp_path


def with_program(folder: Path) -> None:
    """Put a `safe` into a folder."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "safe"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m safe_scorer "$@"\n', encoding="utf-8")
    program.chmod(0o755)


def shell(command: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SAFE_V0_", "GITHUB_"))}
    environ = {**kept, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [BASH, "-e", "-c", command],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def commands() -> list[str]:
    return [line for block in blocks("bash") for line in block.splitlines() if line.startswith("safe ")]


def test_the_commands_do_what_is_said_of_them(folder: Path) -> None:
    scorecard, explanation = blocks("text")
    done = [shell(command, folder) for command in commands()]
    show, write, gate, verify, explain, lint, page, compare, triage, mutate, history = done
    assert (show.returncode, show.stdout, show.stderr) == (2, scorecard, "")
    assert (write.returncode, write.stderr) == (2, "safe: wrote report.json\nsafe: wrote report.md\n")
    assert (gate.returncode, gate.stdout[:15]) == (1, "gate NOT passed")
    assert (verify.returncode, verify.stdout[:9]) == (0, "verified:")
    assert (explain.returncode, explain.stdout, explain.stderr) == (0, explanation, "")
    assert (lint.returncode, lint.stdout[:8]) == (1, "Ceiling:")
    assert (page.returncode, (folder / "report.html").is_file()) == (2, True)
    assert (compare.returncode, compare.stdout[:29]) == (0, "Nothing changed beyond chance")
    assert (triage.returncode, (folder / "better-cases" / "stroke_1.json").is_file()) == (0, True)
    assert (history.returncode, (folder / "history.html").is_file()) == (0, True)
    assert (mutate.returncode, "this phrase would catch it" in mutate.stdout) == (0, True)


def test_the_story_is_as_it_is_told(tmp_path: Path) -> None:
    """Each command of the story prints what the block behind it shows, word for word."""
    shutil.copytree(ROOT / "consumer" / "examples" / "story", tmp_path / "consumer" / "examples" / "story")
    with_program(tmp_path)
    told = re.findall(r"^```(bash|text)\n(.*?)^```$", STORY, re.MULTILINE | re.DOTALL)
    _, *rest = told  # the first block installs SAFE
    assert [language for language, _ in rest] == ["bash", "text"] * 4
    for (_, commands), (_, printed) in zip(rest[::2], rest[1::2], strict=True):
        assert shell(commands, tmp_path).stdout.strip() == printed.strip()
    assert (ROOT / "docs" / "review.png").is_file()


def test_the_github_workflow_scores_gates_and_keeps_the_reports(folder: Path) -> None:
    workflow: Json = yaml.safe_load(blocks("yaml")[0])
    steps = workflow["jobs"]["score"]["steps"]
    score, gate = (step["run"] for step in steps if step.get("run", "").startswith("safe "))
    (folder / "summary.md").touch()
    surroundings = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    assert shell(score, folder, **surroundings).returncode == 0
    assert shell(gate, folder, **surroundings).returncode == 1, "the sample is to be reviewed"
    assert json.loads((folder / "safe.json").read_bytes())["summary"]["review"] == 1
    assert (folder / "summary.md").read_text(encoding="utf-8").startswith("<!-- SAFE v0 report -->")
    assert (folder / "safe.xml").is_file()
    used = {step["uses"].partition("@")[0]: step for step in steps if "uses" in step}
    assert used["dorny/test-reporter"]["with"]["path"] == "safe.xml"
    assert used["actions/upload-artifact"]["if"] == "always()"


def test_the_gitlab_job_does_the_same(folder: Path) -> None:
    job: Json = yaml.safe_load(blocks("yaml")[1])["safe"]
    score, gate = (command for command in job["script"] if command.startswith("safe "))
    assert shell(score, folder).returncode == 0
    assert shell(gate, folder).returncode == 1
    kept = [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]
    assert all((folder / name).is_file() for name in kept)
