"""Peak memory of one `safe worker` with inputs that are made to need much memory, each under a hard limit.

    python -m bench.memory [--scale 1.0] [--only NAME …] [--list]

The limit is that of a memory cgroup, if this user may create one. Then everything that the process uses counts,
including its file pages. Otherwise it is RLIMIT_DATA. The table says which. Needs the tests' broker, as
bench.throughput does, and about 10 GB of disk at full scale.
"""

import argparse
import asyncio
import json
import random
import resource
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from aiokafka import AIOKafkaProducer

from bench.throughput import SEED, bootstrap_servers
from tests.support.cases import WrittenCase, encoded, make_batches, make_event, write_batches
from tests.support.outside import Outgoing, Outside
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Worker

MIB = 1024 * 1024
PARTITIONS = 8
CHUNK = 20_000
REST_SECONDS = 3_000.0
EVERY_SECONDS = 0.5
LARGEST_BATCH = {"max.message.bytes": str(64 * MIB)}
CODECS = ("gzip", "snappy", "lz4", "zstd")


# --- limits -----------------------------------------------------------------------------------------------------------


class Limit(Protocol):
    """A hard limit on the memory of one process."""

    kind: str

    def enter(self, pid: int) -> None:
        """Put a process under it."""
        ...

    def peak_bytes(self) -> int | None:
        """The highest value that it has measured, None if it does not measure."""
        ...

    def leave(self) -> None:
        """Remove the limit after the process has ended."""
        ...


class Cgroup:
    """A memory cgroup, of either version."""

    def __init__(self, parent: Path, names: tuple[str, str], limit_bytes: int) -> None:
        self.kind = "cgroup"
        self._folder = parent / f"safe_bench_{uuid.uuid4().hex[:8]}"
        limit, self._peak = names
        if not (parent / "cgroup.procs").exists():
            raise FileNotFoundError(f"{parent} is no cgroup")
        self._folder.mkdir()
        (self._folder / limit).write_text(str(limit_bytes))

    def enter(self, pid: int) -> None:
        (self._folder / "cgroup.procs").write_text(str(pid))

    def peak_bytes(self) -> int | None:
        file = self._folder / self._peak
        return int(file.read_text()) if file.exists() else None

    def leave(self) -> None:
        self._folder.rmdir()


class DataLimit:
    """RLIMIT_DATA limits the memory that the process reserves, used or not; allocations beyond it fail."""

    def __init__(self, limit_bytes: int) -> None:
        self.kind = "RLIMIT_DATA"
        self._limit_bytes = limit_bytes

    def enter(self, pid: int) -> None:
        resource.prlimit(pid, resource.RLIMIT_DATA, (self._limit_bytes, self._limit_bytes))

    def peak_bytes(self) -> int | None:
        return None

    def leave(self) -> None:
        pass


_CGROUPS = (
    (Path("/sys/fs/cgroup"), ("memory.max", "memory.peak")),
    (Path("/sys/fs/cgroup/memory"), ("memory.limit_in_bytes", "memory.max_usage_in_bytes")),
)


def limit_of(limit_bytes: int) -> Limit:
    """The hardest limit that this machine lets us set."""
    for parent, names in _CGROUPS:
        try:
            return Cgroup(parent, names, limit_bytes)
        except OSError:
            continue
    return DataLimit(limit_bytes)


# --- scenarios --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected outcome of an input."""

    results: int
    dead_letters: Mapping[str, int] = field(default_factory=dict)
    waiting: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Scenario:
    """An input, and the memory limit under which a worker must process it; `fill` writes the input."""

    name: str
    fill: Callable[[Site, float], Expected]
    settings: Mapping[str, str] = field(default_factory=dict)
    limit_mib: int = 512


def _ordinary(site: Site, scale: float) -> Expected:
    """A backlog of events of 1.3 KB."""
    count = int(1_000_000 * scale)
    rng, cases = random.Random(SEED), _cases()
    events = [encoded(make_event(rng, case, run_id="r1")) for case in cases]
    _send(site, (Outgoing(events[at % len(events)], partition=at % PARTITIONS) for at in range(count)))
    return Expected(count)


def _one_batch(site: Site, scale: float) -> Expected:
    """10^5 records in one compressed batch."""
    count = int(100_000 * scale)
    rng, case = random.Random(SEED), _cases()[0]
    values = [encoded(_small(case) | {"run_id": f"r{rng.random()}"}) for _ in range(count)]
    asyncio.run(_send_batch(site, 0, values, "zstd"))
    return Expected(count)


def _bombs(site: Site, scale: float) -> Expected:
    """A value of 512 MiB with each codec, with good records before and after it and in the other partitions."""
    count = int(800 * scale) // PARTITIONS * PARTITIONS
    _send(site, _some(count, run="before"))
    for partition, codec in enumerate(CODECS):
        asyncio.run(_send_batch(site, partition, [b" " * (512 * MIB)], codec))
    _send(site, _some(count, run="behind"))
    waiting = frozenset(range(len(CODECS)))
    return Expected(count + count * (PARTITIONS - len(waiting)) // PARTITIONS, waiting=waiting)


def _fitting_bombs(site: Site, scale: float) -> Expected:
    """Values just below the limit of a batch, several in each partition, with each codec in turn."""
    count = int(800 * scale) // PARTITIONS * PARTITIONS
    _send(site, _some(count, run="before"))
    value, each = b" " * (127 * MIB), 3
    for at in range(each):
        for partition in range(PARTITIONS):
            asyncio.run(_send_batch(site, partition, [value], CODECS[(at + partition) % len(CODECS)]))
    return Expected(count, {"too_large": each * PARTITIONS})


def _many_batches(site: Site, scale: float) -> Expected:
    """10^5 different batch_ids."""
    return _spread(site, (f"live_{at}" for at in range(int(100_000 * scale))))


def _random_batches(site: Site, scale: float) -> Expected:
    """A random batch_id of 200 characters in each record, forgotten soon after."""
    rng = random.Random(SEED)
    alphabet = "abcdefghijklmnopqrstuvwxyzäöü€"
    return _spread(site, ("".join(rng.choices(alphabet, k=200)) for _ in range(int(100_000 * scale))))


def _spread(site: Site, batch_ids: Iterator[str]) -> Expected:
    case, count = _cases()[0], 0

    def records() -> Iterator[Outgoing]:
        nonlocal count
        for count, batch_id in enumerate(batch_ids, start=1):
            yield Outgoing(encoded(_small(case) | {"batch_id": batch_id}), partition=count % PARTITIONS)

    _send(site, records())
    return Expected(count)


def _large_values(site: Site, scale: float) -> Expected:
    """Values of 1 MiB each, which is the limit."""
    count, case = int(800 * scale), _cases()[0]
    event = _small(case)
    room = 1_048_576 - len(encoded(event))
    event["output"]["summary"] += "é" * (room // 2)
    value = encoded(event)
    for begin in range(0, count, PARTITIONS):
        site.send([Outgoing(value, partition=at % PARTITIONS) for at in range(begin, begin + PARTITIONS)])
    return Expected(-(-count // PARTITIONS) * PARTITIONS)


def _one_large_batch(site: Site, scale: float) -> Expected:
    """A batch of 10^6 test cases, all in one file, each answered once."""
    count = int(1_000_000 * scale)
    with (Path(site.installation.expectations) / "whole.json").open("w", encoding="utf-8") as file:
        file.write('{"test_cases": [\n')
        for at in range(count):
            wanted = {"event_summary": {"must_contain_phrases": [_cases()[at % 50].terms[2][0], "a plan"]}}
            entry = {"test_id": f"W-{at:07}", "concern_id": "WHOLE", "expectations": wanted}
            file.write(json.dumps(entry) + (",\n" if at < count - 1 else "\n"))
        file.write("]}")

    def records() -> Iterator[Outgoing]:
        for at in range(count):
            event = _small(_cases()[at % 50])
            named = event | {"test_id": f"W-{at:07}", "batch_id": "whole", "concern_id": "WHOLE"}
            yield Outgoing(encoded(named), partition=at % PARTITIONS)

    _send(site, records())
    return Expected(count)


SCENARIOS = [
    Scenario("ordinary", _ordinary),
    Scenario("one_batch", _one_batch),
    Scenario("bombs", _bombs),
    Scenario("fitting_bombs", _fitting_bombs),
    Scenario("many_batches", _many_batches),
    Scenario("random_batches", _random_batches, {"SAFE_V0_BATCH_TTL_SECONDS": "10"}),
    Scenario("large_values", _large_values),
    Scenario("one_large_batch", _one_large_batch, limit_mib=1024),
]


_BATCHES = make_batches(SEED, batches=1, cases_a_batch=50)


def _cases() -> Sequence[WrittenCase]:
    return _BATCHES[0].cases


def _small(case: WrittenCase) -> dict[str, Any]:
    """An event of about 200 bytes."""
    return {
        "test_id": case.test_id,
        "batch_id": case.batch_id,
        "output": {"signals": [], "summary": case.terms[2][0], "followup_questions": []},
    }


def _some(count: int, run: str) -> Iterator[Outgoing]:
    cases = _cases()
    for at in range(count):
        yield Outgoing(encoded(_small(cases[at % len(cases)]) | {"run_id": run}), partition=at % PARTITIONS)


def _send(site: Site, records: Iterator[Outgoing]) -> None:
    chunk: list[Outgoing] = []
    for record in records:
        chunk.append(record)
        if len(chunk) == CHUNK:
            site.send(chunk)
            chunk = []
    site.send(chunk)


async def _send_batch(site: Site, partition: int, values: Sequence[bytes], codec: str) -> None:
    """Write records as exactly one batch, whatever its size."""
    producer = AIOKafkaProducer(
        bootstrap_servers=site.outside.bootstrap_servers,
        compression_type=codec,
        max_batch_size=2**30,
        max_request_size=2**30,
        request_timeout_ms=120_000,
    )
    await producer.start()
    try:
        batch = producer.create_batch()
        for value in values:
            batch.append(timestamp=None, key=None, value=value)
        await (await producer.send_batch(batch, site.topics.input, partition=partition))
    finally:
        await producer.stop()


# --- one run ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcome of a scenario."""

    scenario: Scenario
    kind: str
    peak_rss_bytes: int
    counted_bytes: int | None
    seconds: float
    outcome: str

    def line(self) -> str:
        """One row of the table."""
        counted = f"{self.counted_bytes / MIB:5.0f}" if self.counted_bytes is not None else "    –"
        return (
            f"{self.scenario.name:>16}  {self.scenario.limit_mib:5} ({self.kind})  {self.peak_rss_bytes / MIB:5.0f}  "
            f"{counted}  {self.seconds:6.0f}  {self.outcome}"
        )


HEADING = f"{'scenario':>16}  {'limit, MiB':>14}  {'RSS':>5}  {'all':>5}  {'s':>6}  outcome"


def run(scenario: Scenario, outside: Outside, folder: Path, scale: float) -> Measured:
    """Write the input, let a worker read it under the limit, and check the outcome."""
    folder.mkdir()
    cases = write_batches(folder / "cases", _BATCHES)
    site = Site.build(
        outside, folder, cases, partitions=PARTITIONS, settings=scenario.settings, input_config=LARGEST_BATCH
    )
    expected = scenario.fill(site, scale)
    limit = limit_of(scenario.limit_mib * MIB)
    begun = time.monotonic()
    worker = site.spawn(scenario.name)
    limit.enter(worker.pid)
    peaks = [0]
    try:
        outcome = _awaited(site, worker, expected, peaks)
    finally:
        seconds = time.monotonic() - begun
        site.discard()
        counted = limit.peak_bytes()
        limit.leave()
    return Measured(scenario, limit.kind, max(peaks), counted, seconds, outcome)


def _awaited(site: Site, worker: Worker, expected: Expected, peaks: list[int]) -> str:
    """Wait until everything that can be scored has been scored, sample the peak, and report how it ended."""

    def ended_or_done() -> bool:
        if worker.exit_code is not None:
            return True
        with suppress(ValueError):  # it has just been ended
            peaks.append(worker.memory_bytes(peak=True))
        # Of a group that nobody has joined yet the tests' own client may not be asked: it dies of the answer.
        return _has_joined(worker) and _is_done(site, expected)

    wait_until(ended_or_done, within_seconds=REST_SECONDS, what="the input is read", every_seconds=EVERY_SECONDS)
    if worker.exit_code is not None:
        return f"ended with {worker.exit_code}: {worker.last_words(lines=1)}"
    return _judged(site, worker, expected)


def _has_joined(worker: Worker) -> bool:
    with suppress(OSError):
        return "not yet a member" not in worker.get("/readyz")[1]
    return False


def _is_done(site: Site, expected: Expected) -> bool:
    ends = site.outside.ends(site.topics.input)
    committed = site.outside.committed(site.group, site.topics.input)
    unread = [at for at, end in ends.items() if at not in expected.waiting and committed.get(at, 0) < end.stable]
    scored = site.outside.ends(site.topics.scored)
    folded = site.outside.committed(f"{site.group}.aggregator", site.topics.scored)
    return not unread and all(folded.get(at, 0) >= end.stable for at, end in scored.items())


def _judged(site: Site, worker: Worker, expected: Expected) -> str:
    results = int(worker.total("safe_records_total", outcome="scored"))
    letters = {
        dict(labels)["reason"]: int(count)
        for labels, count in worker.series("safe_dead_letters_total").items()
        if count
    }
    said = worker.get("/readyz")[1]
    told = frozenset(at for at in range(PARTITIONS) if f"{site.topics.input}/{at} at offset" in said)
    if (results, letters, told) == (expected.results, dict(expected.dead_letters), expected.waiting):
        return f"survived; {results:,} scored, {sum(letters.values())} dead letters, {len(told)} partitions wait"
    return f"WRONG: {results:,} of {expected.results:,} scored, dead letters {letters}, waiting {sorted(told)}"


def main() -> None:
    """Run the scenarios one after the other and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", choices=[scenario.name for scenario in SCENARIOS])
    parser.add_argument("--list", action="store_true", help="say what each scenario is")
    arguments = parser.parse_args()
    if arguments.list:
        for scenario in SCENARIOS:
            print(f"{scenario.name:>16}  {scenario.fill.__doc__}")
        return
    print(HEADING, flush=True)
    with bootstrap_servers() as servers, tempfile.TemporaryDirectory() as folder, Outside(servers) as outside:
        for scenario in SCENARIOS:
            if not arguments.only or scenario.name in arguments.only:
                print(run(scenario, outside, Path(folder) / scenario.name, arguments.scale).line(), flush=True)


if __name__ == "__main__":
    main()
