"""Projects for Node.js, installed from their locks into the project's cache; loud where there is no Node.js."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.conftest import missing
from tests.support.kafka_broker import PROJECT

INSTALL_SECONDS = 300.0
RUN_SECONDS = 120.0
_INSTALL = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
_MADE = shutil.ignore_patterns("node_modules", "dist")


def node_project(folder: Path) -> Path:
    """Give a copy of the folder with its packages; without Node.js the test is skipped, and in CI it fails."""
    absent = [program for program in ("node", "npm") if shutil.which(program) is None]
    if absent:
        missing(f"{folder.name}: {' and '.join(absent)} not found; install Node.js 20 or newer")
    lock = b"".join((folder / name).read_bytes() for name in ("package.json", "package-lock.json"))
    installed = PROJECT / ".cache" / "node" / f"{folder.name}-{hashlib.sha256(lock).hexdigest()[:12]}"
    if not installed.is_dir():
        _install(folder, installed)
    shutil.copytree(folder, installed, ignore=_MADE, dirs_exist_ok=True)
    return installed


def _install(folder: Path, installed: Path) -> None:
    installed.parent.mkdir(parents=True, exist_ok=True)
    # Renamed when complete, so that an interrupted install is never taken for one.
    with tempfile.TemporaryDirectory(dir=installed.parent) as unfinished:
        copy = Path(unfinished) / "project"
        shutil.copytree(folder, copy, ignore=_MADE)
        try:
            run(copy, *_INSTALL, timeout_seconds=INSTALL_SECONDS)
        except subprocess.TimeoutExpired as error:
            missing(f"{folder.name}: npm could not install it: {error}")
        try:
            copy.rename(installed)
        except OSError:
            if not installed.is_dir():  # another run was quicker, and its copy is as good
                raise


def run(
    folder: Path, *command: str, timeout_seconds: float = RUN_SECONDS, given: str = "", **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end in a folder; a failure of it is one of the test, with what it said."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done
