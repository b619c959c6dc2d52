"""`safe` in processes of their own that start at once.

An interpreter that starts imports the product for more than half a second, and these tests start hundreds. So they are
forked from one process that has imported it and has done nothing else: the standard library's fork server. What Python
and its libraries read of the environment when they start, that process has read: where it matters, start an
interpreter.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support import wrong_clock

_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(["consumer.cli.main", "consumer.worker.main", "consumer.dead_letters.replay"])


class SafeProcess:
    """One `safe` command with these arguments; its outputs are appended to files."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        stdout: Path,
        stderr: Path,
        altered: Mapping[str, float] | None = None,
    ) -> None:
        told = (list(arguments), str(folder), dict(environment), str(stdout), str(stderr), dict(altered or {}))
        self._process = _FORKING.Process(target=_become_safe, args=told)
        self._process.start()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """The exit code, None while it runs; minus the signal's number after a signal."""
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        """Wait for its end; raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("safe", timeout)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it without notice."""
        self.send_signal(signal.SIGKILL)


def run_safe(
    arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], timeout_seconds: float
) -> "subprocess.CompletedProcess[str]":
    """Run one command to its end, with nothing on its standard input, and return what it said."""
    with tempfile.TemporaryDirectory() as kept:
        stdout, stderr = Path(kept) / "stdout", Path(kept) / "stderr"
        process = SafeProcess(arguments, folder=folder, environment=environment, stdout=stdout, stderr=stderr)
        try:
            code = process.wait(timeout_seconds)
        finally:
            process.kill()
        return subprocess.CompletedProcess(
            ["safe", *arguments], code, stdout.read_text("utf-8"), stderr.read_text("utf-8")
        )


def _become_safe(
    arguments: list[str],
    folder: str,
    environment: dict[str, str],
    stdout: str,
    stderr: str,
    altered: dict[str, float],
) -> None:
    from consumer.cli.main import main  # noqa: PLC0415 - imported already, where this runs

    for where, value in altered.items():  # a limit that no test can wait for, as `module:NAME`
        module, _, name = where.partition(":")
        assert hasattr(sys.modules[module], name)
        setattr(sys.modules[module], name, value)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    shift = os.environ.pop(wrong_clock.VARIABLE, None)
    if shift is not None:
        wrong_clock.shift_clock(Path(shift))
    os.chdir(folder)
    appending = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for descriptor, path, flags in ((0, os.devnull, os.O_RDONLY), (1, stdout, appending), (2, stderr, appending)):
        opened = os.open(path, flags)
        os.dup2(opened, descriptor)
        os.close(opened)
    # As an interpreter with PYTHONUNBUFFERED makes them.
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1, errors="backslashreplace", closefd=False)
    sys.argv = ["safe", *arguments]
    sys.exit(main(arguments))
