"""How long a worker leaves a request unanswered: how long its event loop stalls, seen from outside.

A process of its own asks `/livez` every 10 ms, one request at a time. Requests that fell due while another one waited
count too, with what was left of its wait: else a long stall would be one bad answer among many good ones. The time in
which one of the two processes had no core counts as well, so that the loop itself stalls for less.
"""

import http.client
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from select import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.worker import Worker

EVERY_SECONDS = 0.01
TIMEOUT_SECONDS = 60.0
_FEWEST = 2  # that have quantiles


class Answers:
    """Asks a worker until it is told to `stop`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def stop(self) -> str:
        """Stop asking, and say how long answers took."""
        said, _ = self._process.communicate(timeout=TIMEOUT_SECONDS)
        if self._process.returncode:
            raise SystemExit("no answers were measured")
        return said.strip()


@contextmanager
def asking(worker: "Worker") -> Iterator[Answers]:
    """Ask a worker for as long as the block lasts, or until its answers are wanted."""
    command = [sys.executable, "-m", "bench.answers", worker.http_address]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Answers(process)
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    """Ask the worker at the address in the first argument until standard input ends."""
    connection = http.client.HTTPConnection(sys.argv[1], timeout=TIMEOUT_SECONDS)
    while True:
        with suppress(ConnectionRefusedError):
            connection.connect()  # a worker that has just been started does not listen yet
            break
        if _is_told_to_stop(EVERY_SECONDS):
            raise SystemExit("it never listened")
    taken: list[float] = []
    due = time.monotonic()
    while not _is_told_to_stop(due - time.monotonic()):
        asked = time.monotonic()
        connection.request("GET", "/livez")
        connection.getresponse().read()
        answered = time.monotonic()
        taken.append(answered - asked)
        due = asked + EVERY_SECONDS
        while due < answered:
            taken.append(answered - due)
            due += EVERY_SECONDS
    if len(taken) < _FEWEST:
        raise SystemExit("it was asked for too short a time")
    cuts = statistics.quantiles(taken, n=1_000, method="inclusive")
    shown = {"p50": cuts[499], "p99": cuts[989], "p99.9": cuts[998], "most": max(taken)}
    print(", ".join(f"{name} {seconds * 1e3:.0f} ms" for name, seconds in shown.items()))


def _is_told_to_stop(within_seconds: float) -> bool:
    return bool(select([sys.stdin], [], [], max(0.0, within_seconds))[0])


if __name__ == "__main__":
    main()
