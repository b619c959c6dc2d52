"""How soon `safe results --follow` shows a committed result, at a steady rate, and in how much memory.

    python -m bench.results [--rate 1000] [--minutes 10] [--shows json --shows lines --shows table]

Results as a worker writes them are committed in transactions of 100 ms each, and the report of each batch once a
second, by a client that is not SAFE's. Twenty times a second this looks at what the command has printed: how long ago
was the oldest result committed that is newer than the newest one shown? Its answer is 0 when nothing is outstanding.
The command's output is a pipe (`json`, `lines`) or a terminal (`table`). Needs the tests' broker, as bench.throughput
does.
"""

import argparse
import json
import os
import pty
import re
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from bench.processes import cpu_seconds
from bench.throughput import bootstrap_servers
from consumer.wire.event_schemas import event_schema
from tests.support.outside import Outside, Topics
from tests.support.worker import Installation, command_line

SHOWS = ("json", "lines", "table")
PARTITIONS, BATCHES, CASES = 4, 50, 500
TRANSACTION_SECONDS, LOOK_SECONDS, MEMORY_SECONDS = 0.1, 0.05, 1.0
WARM_UP_SECONDS = 15.0
PATIENCE_SECONDS = 30.0
_NUMBER = re.compile(rb"case-(\d+)")
Json = Any


@dataclass(slots=True)
class Followed:
    """What the command shows: the newest result's number, and how many bytes it has printed."""

    process: "subprocess.Popen[bytes]"
    source: int
    newest: int = -1
    printed: int = 0
    _rest: bytes = b""

    def read(self) -> None:
        """Read until nothing comes any more."""
        while True:
            try:
                block = os.read(self.source, 1 << 18)
            except OSError:  # a terminal whose other end is closed
                return
            if not block:
                return
            self.printed += len(block)
            block = self._rest + block
            self.newest = max([self.newest, *(int(number) for number in _NUMBER.findall(block[:-16]))])
            self._rest = block[-64:]

    def memory(self) -> int:
        """What it has in memory now, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))


@contextmanager
def following(installation: Installation, folder: Path, shows: str) -> Iterator[Followed]:
    """Run the command, with a thread that reads what it prints."""
    ours, theirs = pty.openpty() if shows == "table" else os.pipe()
    options = ["--format", "json"] if shows == "json" else []
    command = command_line("results", "--follow", *options)
    environment = installation.environment() | {"TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=theirs, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        followed = Followed(process, ours)
        reading = threading.Thread(target=followed.read)
        reading.start()
        try:
            yield followed
        finally:
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=PATIENCE_SECONDS)
            reading.join()
            os.close(ours)
            print(f"    ended with {process.returncode}{': ' + said.decode() if said else ''}", flush=True)


@dataclass(slots=True)
class Committed:
    """When each transaction was committed: the number after its last result, and the moment."""

    ends: list[int] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)
    _shown: int = 0

    def note(self, end: int) -> None:
        """A transaction has been committed."""
        self.moments.append(time.monotonic())
        self.ends.append(end)

    def outstanding_seconds(self, newest: int) -> float:
        """How long ago the first result after the newest one shown was committed; 0 if there is none."""
        ends = self.ends  # appended to last, by one other thread
        while self._shown < len(ends) and ends[self._shown] <= newest + 1:
            self._shown += 1
        return time.monotonic() - self.moments[self._shown] if self._shown < len(ends) else 0.0


class Source:
    """Writes results and reports as a worker does, but with numbers for ids."""

    def __init__(self, servers: str, topics: Topics) -> None:
        self._topics = topics
        self._result, self._report = (event_schema(kind)["examples"][0] for kind in ("result", "report"))
        self._producer = Producer(
            {"bootstrap.servers": servers, "transactional.id": topics.result, "linger.ms": 5, "log_level": 2}
        )
        self._producer.init_transactions(PATIENCE_SECONDS)

    def run(self, count: int, rate: float, committed: Committed) -> None:
        """Commit this many results, each at its moment."""
        began, sent, reported_at = time.monotonic(), 0, 0.0
        while sent < count:
            time.sleep(TRANSACTION_SECONDS)
            due = min(count, int((time.monotonic() - began) * rate))
            self._producer.begin_transaction()
            for number in range(sent, due):
                self._send(self._topics.result, "safe:v0:result", number % BATCHES, self._result_of(number))
            if time.monotonic() - reported_at >= 1:
                reported_at = time.monotonic()
                for batch in range(BATCHES):
                    self._send(self._topics.report, "safe:v0:report", batch, self._report | _name(batch))
            self._producer.commit_transaction(PATIENCE_SECONDS)
            sent = due
            committed.note(sent)

    def _result_of(self, number: int) -> Json:
        result = self._result["result"] | {"test_id": f"case-{number}"}
        source = self._result["source"] | {"offset": number}
        return self._result | _name(number % BATCHES) | {"result": result, "source": source}

    def _send(self, topic: str, type_: str, batch: int, document: Json) -> None:
        key, partition = "/".join(_name(batch).values()), batch % PARTITIONS
        self._producer.produce(topic, json.dumps(document), key, partition=partition, headers={"ce_type": type_})
        self._producer.poll(0)


def _name(batch: int) -> dict[str, str]:
    return {"concern_id": "BENCH", "batch_id": f"batch_{batch}"}


def main() -> None:
    """Follow the same results in each way that they can be shown, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=1_000)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--shows", action="append", choices=SHOWS)
    arguments = parser.parse_args()
    with bootstrap_servers() as servers, tempfile.TemporaryDirectory() as folder, Outside(servers) as outside:
        for shows in arguments.shows or SHOWS:
            topics = Topics.fresh()
            outside.create_contract_topics(topics, partitions=PARTITIONS)
            installation = Installation(servers, topics, "bench", folder)
            print(f"{shows}: {arguments.rate:,.0f} results/s for {arguments.minutes:g} min", flush=True)
            _measure(installation, Path(folder), shows, arguments.rate, arguments.minutes * 60)


def _measure(installation: Installation, folder: Path, shows: str, rate: float, seconds: float) -> None:
    source, committed = Source(installation.bootstrap_servers, installation.topics), Committed()
    waits: list[float] = []
    memory: list[int] = []
    with following(installation, folder, shows) as followed:
        time.sleep(WARM_UP_SECONDS / 3)  # it follows from now on; what came before would never be shown
        count = int(rate * seconds)
        writing = threading.Thread(target=source.run, args=(count, rate, committed))
        writing.start()
        began, looks = time.monotonic(), 0
        while writing.is_alive():
            time.sleep(LOOK_SECONDS)
            if time.monotonic() - began < WARM_UP_SECONDS:
                continue
            waits.append(committed.outstanding_seconds(followed.newest))
            if looks % int(MEMORY_SECONDS / LOOK_SECONDS) == 0:
                memory.append(followed.memory())
            looks += 1
        writing.join()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while followed.newest < count - 1 and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        used = cpu_seconds(followed.process.pid)
        print(
            f"    {_line(waits, memory)}; {used / seconds:.2f} cores; shown up to {followed.newest + 1:,} of {count:,}"
        )


def _line(waits: Sequence[float], memory: Sequence[int]) -> str:
    ordered = sorted(waits)
    shares = {"p50": statistics.median(ordered), "p99": ordered[int(len(ordered) * 0.99)], "max": ordered[-1]}
    tenth = max(1, len(memory) // 10)
    first, last = (statistics.mean(part) / 2**20 for part in (memory[:tenth], memory[-tenth:]))
    return (
        f"{', '.join(f'{name} {share:.2f} s' for name, share in shares.items())}; memory {first:.0f} MiB in the first "
        f"tenth, {last:.0f} MiB in the last, {max(memory) / 2**20:.0f} MiB at most"
    )


if __name__ == "__main__":
    main()
