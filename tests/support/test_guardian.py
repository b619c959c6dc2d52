"""A run that ends, by whatever, leaves no process behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.forked_commands import SafeProcess
from tests.support.guardian import MARK, marked
from tests.support.kafka_broker import PROJECT
from tests.support.waiting import wait_until

SOON_SECONDS = 20.0
# A run with a child, and a grandchild whose parent has ended already, in a session of its own.
RUN = """
import os, subprocess, sys, time
from tests.support.guardian import MARK, leave_nothing
leave_nothing()
leave_nothing()  # as a pytest in a test does
subprocess.Popen(["sleep", "600"])
subprocess.run(["sh", "-c", "setsid sleep 600 &"], stdin=subprocess.DEVNULL, check=True)
print(os.environ[MARK], flush=True)
if sys.argv[1] == "by itself":
    sys.exit(0)
time.sleep(600)
"""


@pytest.mark.parametrize("end", ["by itself", signal.SIGTERM, signal.SIGKILL, signal.SIGHUP], ids=str)
def test_nothing_outlives_a_run_however_it_ends(end: signal.Signals | str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    command = [sys.executable, "-c", RUN, str(end)]
    with subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        mark = run.stdout.readline().strip()
        if isinstance(end, signal.Signals):
            assert len(marked(mark)) == 2
            run.send_signal(end)
        run.wait(SOON_SECONDS)
        wait_until(lambda: not marked(mark), within_seconds=SOON_SECONDS, what="nothing is left of the run")


def test_all_processes_of_this_run_are_marked_the_forked_ones_too(tmp_path: Path) -> None:
    out = tmp_path / "out"
    environment = {"PATH": os.environ["PATH"]}
    asleep = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    forked = SafeProcess(["score", "--help"], folder=tmp_path, environment=environment, stdout=out, stderr=out)
    os.kill(forked.pid, signal.SIGSTOP)
    try:
        assert {asleep.pid, forked.pid} <= set(marked(os.environ[MARK]))
    finally:
        for process in (asleep, forked):
            process.kill()
            process.wait(SOON_SECONDS)
