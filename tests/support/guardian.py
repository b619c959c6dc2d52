"""However a run of tests ends, also by a signal that no program hears: no process that it has started outlives it.

Every process of a run inherits a variable of the environment. A guardian beside the run waits for its end. It then
kills every process that was started with this variable. So nothing has to be registered, and it makes no difference who
has started a process, or whether its parent still lives.

Processes of a run that run tests themselves (the workers of pytest-xdist, a pytest in a test) belong to the same run.
"""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

MARK = "SAFE_TEST_RUN"
_PROCESSES = Path("/proc")
_AGAIN_SECONDS = 0.1


def leave_nothing() -> None:
    """Mark all that this process starts from now on, and have a guardian wait for its end; once for each run."""
    if MARK in os.environ or not _PROCESSES.is_dir():
        return
    unmarked = dict(os.environ)
    mark = os.environ[MARK] = uuid.uuid4().hex
    guardian = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, mark, str(os.getpid())],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        cwd="/", env=unmarked, start_new_session=True,
    )  # fmt: skip
    guardian.returncode = 0  # nobody waits for it: it ends after this process


def marked(mark: str) -> list[int]:
    """The processes that were started with this mark in their environment, and have not ended."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for process in _PROCESSES.iterdir():
        if process.name.isdigit():
            try:
                variables = (process / "environ").read_bytes()
            except OSError:  # it has ended meanwhile, or is another user's
                continue
            if wanted in variables.split(b"\0"):
                found.append(int(process.name))
    return found


def _guard(mark: str, run: int) -> None:
    """Wait for the end of the run, and kill what is left of it, also what that starts meanwhile."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.getppid() == run:
        time.sleep(_AGAIN_SECONDS)
    while left := marked(mark):
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(_AGAIN_SECONDS)


if __name__ == "__main__":
    _guard(sys.argv[1], int(sys.argv[2]))
