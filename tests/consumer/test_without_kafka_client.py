"""Installed without a Kafka client: commands on files work, and the others name what is missing."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from consumer.cli.missing_libraries import LIBRARIES

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# The libraries are looked for, and not found, as where they are not installed.
PROGRAM = f"""
import sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {sorted(LIBRARIES)!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, NotInstalled())
from consumer.cli.main import main
sys.exit(main(sys.argv[1:]))
"""

CASE = {
    "test_id": "ST-001",
    "concern_id": "STROKE",
    "patient_payload": "CT after 55 minutes.",
    "expectations": {"signal_generation": {"must_find_signals": ["CT after 55 minutes"]}},
}
ANSWER = {"test_id": "ST-001", "engine_output": {"signals": ["CT after 45 minutes"], "summary": ""}}
FILES = ("--outputs", "run.json", "--test-dir", "cases")


def safe(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Test cases, outputs, and the report of a run: no command of these tests changes them."""
    made = tmp_path_factory.mktemp("files")
    (made / "cases").mkdir()
    (made / "cases" / "stroke_1.json").write_text(json.dumps({"test_cases": [CASE]}))
    (made / "run.json").write_text(json.dumps({"raw_results": [ANSWER]}))
    arguments = ("--concern", "STROKE", "--batch", "*", *FILES, "--explain", "--output", "r.json", "--fail-on", "never")
    done = safe(made, "score", *arguments)
    assert done.returncode == 0, done.stderr
    return made


ON_FILES = [
    (("--help",), 0),
    (("worker", "--help"), 0),
    (("gate", "r.json", "--fail-on", "never", "--min-pass-rate", "0"), 0),
    (("gate", "r.json", "--min-pass-rate", "1"), 1),
    (("explain", "--all", *FILES), 0),
    (("explain", "--test", "ST-001", "--format", "json", *FILES), 0),
    (("lint", "cases", "--outputs", "run.json"), 0),
    (("compare", "r.json", "r.json"), 0),
    (("verify", "r.json", "--outputs", "run.json", "--test-dir", "cases"), 0),
    (("config", "show"), 0),
    (("config", "page"), 0),
    (("config", "schema"), 0),
    (("schema", "result"), 0),
]


@pytest.mark.parametrize(("arguments", "code"), ON_FILES, ids=[" ".join(row[0][:2]) for row in ON_FILES])
def test_commands_on_files_need_no_kafka_client(folder: Path, arguments: tuple[str, ...], code: int) -> None:
    done = safe(folder, *arguments)
    assert (done.returncode, "error" in done.stderr) == (code, False), done.stderr


SERVER = ("--bootstrap-servers", "127.0.0.1:1")
ON_KAFKA: list[tuple[str, tuple[str, ...]]] = [
    ("worker", (*SERVER, "--expectations", "cases")),
    ("topics create", SERVER),
    ("publish", ("run.json", *SERVER)),
    ("publish-cases", ("cases", "--topic", "c", *SERVER)),
    ("dead-letters list", SERVER),
    ("dead-letters show", ("safe.v0.dead-letter/0/1", *SERVER)),
    ("dead-letters replay", ("--reason", "expectations_not_found", *SERVER)),
    ("explain", ("--source", "t/0/1", "--test-dir", "cases", *SERVER)),
    ("demo", ()),
]


@pytest.mark.parametrize(("command", "options"), ON_KAFKA, ids=[row[0] for row in ON_KAFKA])
def test_commands_that_need_kafka_say_so(folder: Path, command: str, options: tuple[str, ...]) -> None:
    done = safe(folder, *command.split(), *options)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        f"safe: error: safe {command} needs a Kafka client, which is not installed: install SAFE with all that it "
        "requires (in a checkout: pip install .)\n"
    )


def test_the_requirements_of_commands_on_files_are_all_others() -> None:
    lines = (ROOT / "requirements-offline.txt").read_text(encoding="utf-8").splitlines()
    listed = {line for line in lines if not line.startswith("#")}
    kafkas = {each for each in PROJECT["dependencies"] if re.split(r"[\[~>=<]", each)[0].replace("-", "_") in LIBRARIES}
    assert len(kafkas) == len(LIBRARIES)
    assert listed == set(PROJECT["dependencies"]) - kafkas
