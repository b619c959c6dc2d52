"""The doors of the README as a newcomer goes through them: `python -m bench.doors`.

Each door gets an empty folder and a clone of the last commit, and runs the README's own commands, the installation
included. It says how long each door takes, and fails if one takes longer than five minutes, does not show what the
README shows, or leaves anything behind in the clone. Packages come from wherever this machine's pip takes them.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.documents import blocks_of, section
from tests.support.kafka_broker import PROJECT

SECONDS = 300.0
GIT = shutil.which("git") or "git"
DOORS = ("1. Files", "2. Kafka", "3. Subscribe")
STILL_RUNNING = "Still running"
ACTIVATE = "[ ! -e .venv ] || . .venv/bin/activate"


@dataclass(frozen=True, slots=True)
class Passage:
    """How one door was gone through: how long installing and the rest took, and what was wrong."""

    door: str
    install_seconds: float
    door_seconds: float
    problems: tuple[str, ...]


@contextmanager
def started(command: str, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A block of commands, in a group of processes that ends with this one."""
    shell = f"set -e; {ACTIVATE}; {command}"
    variables = {name: text for name, text in os.environ.items() if not name.startswith(("SAFE_V0_", "VIRTUAL_ENV"))}
    process = subprocess.Popen(
        ["/bin/bash", "-c", shell],
        cwd=folder,
        env=variables | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    too_late = threading.Timer(SECONDS, os.killpg, (process.pid, signal.SIGKILL))
    too_late.start()
    try:
        yield process
    finally:
        too_late.cancel()
        with suppress(ProcessLookupError):  # it has ended by itself
            os.killpg(process.pid, signal.SIGTERM)
        process.communicate()


def read(process: "subprocess.Popen[str]", wanted: list[str]) -> list[str]:
    """The lines that are printed until all wanted ones were there, or until the end."""
    printed: list[str] = []
    missing = set(wanted)
    for line in process.stdout or ():
        printed.append(line.rstrip())
        missing -= {each for each in missing if each in printed[-1]}
        if wanted and not missing:
            break
    return printed


def finished(command: str, folder: Path) -> list[str]:
    """What a block of commands prints; a failure ends the program."""
    with started(command, folder) as process:
        printed = read(process, [])
        if process.wait() != 0:
            sys.exit(f"exit code {process.returncode}: {command}")
    return printed


def go_through(door: str, folder: Path) -> list[str]:
    """Run the commands of a door; gives the lines that it should have shown and did not."""
    blocks = blocks_of(section("README.md", door))
    commands = [block.text for block in blocks if block.language == "bash"]
    shown = [line.rstrip() for block in blocks if block.language == "text" for line in block.text.splitlines() if line]
    *first, last = commands
    with ExitStack() as terminals:
        for command in first:
            if "--keep" in command:  # it runs on in a terminal of its own
                read(terminals.enter_context(started(command, folder)), [STILL_RUNNING])
            else:
                finished(command, folder)
        printed = read(terminals.enter_context(started(last, folder)), shown)
    return [line for line in shown if line not in printed]


def passage(door: str, folder: Path) -> Passage:
    clone = folder / "safe"
    subprocess.run([GIT, "clone", "--quiet", str(PROJECT), str(clone)], check=True)
    begun = time.monotonic()
    for block in blocks_of(section("README.md", "Get it")):
        finished(block.text, folder)
    installed = time.monotonic()
    problems = [f"not shown: {line}" for line in go_through(door, folder)]
    ended = time.monotonic()
    status = [GIT, "-C", str(clone), "status", "--porcelain", "--ignored"]
    left = subprocess.run(status, capture_output=True, text=True, check=True).stdout.splitlines()
    problems += [f"left in the clone: {line}" for line in left]
    if ended - begun > SECONDS:
        problems.append(f"longer than {SECONDS:.0f} s")
    return Passage(door, installed - begun, ended - installed, tuple(problems))


def main() -> int:
    """Go through every door; the exit code is 1 if one of them does not open."""
    passages = []
    for door in DOORS:
        with tempfile.TemporaryDirectory(prefix="safe-door-") as folder:
            passages.append(passage(door, Path(folder)))
        last = passages[-1]
        print(f"{last.door:14} install {last.install_seconds:4.0f} s  door {last.door_seconds:4.0f} s", flush=True)
        for problem in last.problems:
            print(f"  {problem}", flush=True)
    return 1 if any(each.problems for each in passages) else 0


if __name__ == "__main__":
    sys.exit(main())
