"""From a producer's clock to a subscriber's: how long an output takes to be a visible result, at a steady rate.

    python -m bench.latency [--rate 500 …] [--partitions 4 …] [--minutes 1] [--warm-up 60] [--turns 1]
        [--beside-streams] [--other PATH …] [--roles all] [--stalls] [--beside-backlog 300000]

The loop is open: each event has its moment, and is late from then on, however long the one before it took. A first part
of each run warms up and is not counted. Times are those of one process that produces and subscribes with a client of
its own (read_committed); its results must be as many as its events. Programs take turns (A B A B …) on one broker, each
run with topics of its own. Beside the times, a line has the processor cores that the broker, the program and everything
else on the machine (this process, too) used while it was counted, and the program's sockets and peak memory. Needs the
tests' broker, as bench.throughput does; `--beside-streams` also needs what bench.against_peers does.

With `--beside-backlog N`, N events wait in the first partition before a program starts, and the events at the steady
rate, whose times are measured, go to all others. The last column says how many of the N had results per second.
"""

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, Producer

from bench import against_peers
from bench.answers import Answers, asking
from bench.processes import Running, cpu_seconds, machine_cpu_seconds
from bench.throughput import SEED, broker
from tests.support.cases import WrittenBatch, event_stream, make_batches, write_batches
from tests.support.kafka_broker import PROJECT
from tests.support.outside import Outgoing, Outside
from tests.support.site import Site

RATES, PARTITIONS = (500, 5_000), (4,)
BATCHES, CASES_A_BATCH = 200, 5
STREAMS_COMMIT_MS = 100
PATIENCE_SECONDS = 60.0
SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)


@dataclass(frozen=True, slots=True)
class Load:
    """A steady rate of events, over this many partitions, for so long; the first seconds are not counted.

    With a backlog, this many other events wait in partition 0, and the steady ones go to all others.
    """

    rate: int
    partitions: int
    warm_up_seconds: float
    seconds: float
    backlog: int = 0

    @property
    def uncounted(self) -> int:
        """The events of the warm-up."""
        return int(self.rate * self.warm_up_seconds)

    def stream(self, batches: Sequence[WrittenBatch]) -> list[Outgoing]:
        """The events, those of the warm-up included."""
        count, first = self.uncounted + int(self.rate * self.seconds), self.first_partition
        records = event_stream(SEED, batches, count, partitions=self.partitions - first, poison=0.0)
        return [replace(record, partition=first + (record.partition or 0)) for record in records]

    @property
    def first_partition(self) -> int:
        """The first partition of the steady events."""
        return 1 if self.backlog else 0

    def waiting(self, batches: Sequence[WrittenBatch]) -> list[Outgoing]:
        """The events of the backlog."""
        return list(event_stream(SEED + 1, batches, self.backlog, partitions=1, poison=0.0))


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: seconds at SHARES; cores of broker (None: not ours), program and all else; sockets; peak bytes.

    `backlog_rate` is results of the backlog per second.
    """

    taken: Sequence[float]
    broker_cores: float | None
    cores: float
    other_cores: float
    sockets: int
    memory: int
    backlog_rate: float = 0.0

    def cells(self) -> str:
        """The figures of a line."""
        times = "  ".join(f"{each * 1e3:5.0f} ms" for each in self.taken)
        of_broker = "     –" if self.broker_cores is None else f"{self.broker_cores:6.2f}"
        used = f"{self.cores:7.2f}  {self.other_cores:5.2f}  {self.sockets:7}  {self.memory / 2**20:5.0f}"
        return f"{times}  {of_broker}  {used}  {self.backlog_rate:9,.0f}"


HEADING = (
    f"{'events/s':>8}  {'partitions':>10}  {'program':>16}  "
    + "  ".join(f"{f'p{share * 100:g}':>8}" for share in SHARES)
    + f"  {'broker':>6}  {'program':>7}  {'other':>5}  {'sockets':>7}  {'MiB':>5}  {'backlog/s':>9}"
)


def median(runs: Sequence[Measured]) -> Measured:
    """The median of each figure."""
    of_broker = [run.broker_cores for run in runs if run.broker_cores is not None]
    return Measured(
        [statistics.median(each) for each in zip(*(run.taken for run in runs), strict=True)],
        statistics.median(of_broker) if of_broker else None,
        statistics.median(run.cores for run in runs),
        statistics.median(run.other_cores for run in runs),
        int(statistics.median(run.sockets for run in runs)),
        int(statistics.median(run.memory for run in runs)),
        statistics.median(run.backlog_rate for run in runs),
    )


# --- what takes its turn ----------------------------------------------------------------------------------------------

Program = Callable[[Site, list[Answers]], AbstractContextManager[Running]]
"""Runs over an installation for as long as a block lasts, and adds what also asks its workers."""


@contextmanager
def _safe(
    site: Site, asked: list[Answers], *, roles: Sequence[str], checkout: Path, is_asked: bool
) -> Iterator[Running]:
    site.installation = replace(site.installation, checkout=checkout)
    with ExitStack() as stack:
        workers = [stack.enter_context(site.worker(role=role, name=f"bench-{role}")) for role in roles]
        if is_asked:
            asked += [stack.enter_context(asking(worker)) for worker in workers]
        yield Running([worker.pid for worker in workers], site.topics.result)


@contextmanager
def _streams(site: Site, _: list[Answers]) -> Iterator[Running]:
    with against_peers.running(against_peers.streams_command(site, STREAMS_COMMIT_MS), site) as run:
        yield run


def _programs(arguments: argparse.Namespace) -> Mapping[str, Program]:
    safe = {"SAFE": PROJECT} | {f"SAFE of {path.name}": path.resolve() for path in arguments.other}
    programs: dict[str, Program] = {
        name: partial(_safe, roles=arguments.roles, checkout=checkout, is_asked=arguments.stalls)
        for name, checkout in safe.items()
    }
    return programs | ({"Kafka Streams": _streams} if arguments.beside_streams else {})


# --- measuring --------------------------------------------------------------------------------------------------------


def main() -> None:
    """Run each program at each load in turns; print one line for each run, and the medians of several turns."""
    arguments = _arguments()
    programs = _programs(arguments)
    print(HEADING, flush=True)
    with broker() as (servers, pid), tempfile.TemporaryDirectory() as folder, Outside(servers) as outside:
        for rate in arguments.rate or RATES:
            for partitions in arguments.partitions or PARTITIONS:
                load = Load(rate, partitions, arguments.warm_up, arguments.minutes * 60, arguments.beside_backlog)
                _in_turns(load, programs, arguments.turns, Bench(outside, Path(folder), pid))


@dataclass(frozen=True, slots=True)
class Bench:
    """Where runs are measured: a broker, with its process id if it is ours, and the test cases of all runs."""

    outside: Outside
    folder: Path
    broker_pid: int | None
    batches: Sequence[WrittenBatch] = field(
        default_factory=lambda: make_batches(SEED, batches=BATCHES, cases_a_batch=CASES_A_BATCH)
    )

    @contextmanager
    def site(self, partitions: int) -> Iterator[Site]:
        """An installation with topics of its own, which are deleted with all that a program has added."""
        cases = self.folder / "cases"
        if not cases.exists():
            write_batches(cases, self.batches)
        site = Site.build(self.outside, self.folder, cases, partitions=partitions)
        try:
            yield site
        finally:
            added = [name for name in self.outside.admin.list_topics(timeout=30).topics if site.group in name]
            for topic in (site.topics.input, *site.topics.outputs(), *added):
                self.outside.delete_topic(topic)


def _in_turns(load: Load, programs: Mapping[str, Program], turns: int, bench: Bench) -> None:
    measured: dict[str, list[Measured]] = {name: [] for name in programs}
    for _ in range(turns):
        for name, program in programs.items():
            with bench.site(load.partitions) as site:
                measured[name].append(_measured(load, program, site, bench))
            print(_line(load, name, measured[name][-1]), flush=True)
    if turns > 1:
        print(f"medians of {turns} turns:")
        for name, runs in measured.items():
            print(_line(load, name, median(runs)), flush=True)


def _line(load: Load, name: str, run: Measured) -> str:
    return f"{load.rate:>8,}  {load.partitions:>10}  {name:>16}  {run.cells()}"


def _measured(load: Load, program: Program, site: Site, bench: Bench) -> Measured:
    stream, asked = load.stream(bench.batches), list[Answers]()
    site.send(load.waiting(bench.batches))
    with program(site, asked) as run:
        window = Window(run, bench.broker_pid)
        taken = _latencies(site, stream, load, window)[load.uncounted :]
        answers, memory = [each.stop() for each in asked], run.memory()
    for said in answers:
        print(f"/livez: {said}", flush=True)
    cuts = statistics.quantiles(taken, n=1_000, method="inclusive")
    shown = [max(taken) if share == 1 else cuts[round(share * 1_000) - 1] for share in SHARES]
    return Measured(shown, *window.cores(), window.sockets, memory, window.backlog_rate())


@dataclass(slots=True)
class Window:
    """What is used between the first event that counts and the last one."""

    running: Running
    broker_pid: int | None
    sockets: int = 0
    results_of_backlog: int = 0
    _noted: list[tuple[float, ...]] = field(default_factory=list)
    _backlog: list[int] = field(default_factory=list)

    def note(self) -> None:
        """Read all counters: at its begin, and at its end."""
        of_broker = 0.0 if self.broker_pid is None else cpu_seconds(self.broker_pid)
        self._noted.append((time.monotonic(), of_broker, self.running.cpu_seconds(), machine_cpu_seconds()))
        self.sockets = self.running.sockets()
        self._backlog.append(self.results_of_backlog)

    def cores(self) -> tuple[float | None, float, float]:
        """Those of the broker, of the program, and of all else."""
        (begun, *before), (ended, *after) = self._noted
        of_broker, own, machine = ((late - early) / (ended - begun) for early, late in zip(before, after, strict=True))
        return (None if self.broker_pid is None else of_broker), own, machine - of_broker - own

    def backlog_rate(self) -> float:
        """Results of the backlog per second."""
        return (self._backlog[-1] - self._backlog[0]) / (self._noted[-1][0] - self._noted[0][0])


def _latencies(site: Site, stream: Sequence[Outgoing], load: Load, window: Window) -> list[float]:
    """Return the seconds that each event took, in the order of their moments."""
    moments: list[list[float]] = [[] for _ in range(load.partitions)]
    arrived: dict[tuple[int, int], float] = {}
    subscribed = threading.Event()
    reader = threading.Thread(target=_read, args=(site, len(stream), load, arrived, window, subscribed))
    reader.start()
    subscribed.wait()
    _produce(site, stream, load, moments, window)
    if load.backlog and window.results_of_backlog >= load.backlog:
        raise SystemExit("all of the backlog had results before the end: ask for a longer one")
    reader.join()
    if len(arrived) != len(stream):
        raise SystemExit(f"{len(arrived)} results of {len(stream)} events: no latency can be told")
    timed = [
        (moment, arrived[partition, offset] - moment)
        for partition, of_partition in enumerate(moments)
        for offset, moment in enumerate(of_partition)
    ]
    return [latency for _, latency in sorted(timed)]


def _produce(site: Site, stream: Sequence[Outgoing], load: Load, moments: list[list[float]], window: Window) -> None:
    producer = Producer({"bootstrap.servers": site.outside.bootstrap_servers, "linger.ms": 0, "acks": "all"})
    begun = time.monotonic()
    for number, (moment, record) in enumerate(_on_time(stream, begun, load.rate)):
        if number == load.uncounted:
            window.note()
        partition = record.partition or 0
        moments[partition].append(moment)
        producer.produce(site.topics.input, value=record.value, key=record.key, partition=partition)
        producer.poll(0)
    window.note()
    producer.flush(PATIENCE_SECONDS)


def _on_time(stream: Sequence[Outgoing], begun: float, rate: int) -> Iterator[tuple[float, Outgoing]]:
    for number, record in enumerate(stream):
        moment = begun + number / rate
        rest = moment - time.monotonic()
        if rest > 0:
            time.sleep(rest)
        yield moment, record


def _read(
    site: Site,
    count: int,
    load: Load,
    arrived: dict[tuple[int, int], float],
    window: Window,
    subscribed: threading.Event,
) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": site.outside.bootstrap_servers,
            "group.id": f"{site.group}-latency",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([site.topics.result], on_assign=lambda *_: subscribed.set())
    last = time.monotonic()
    while len(arrived) < count and (not subscribed.is_set() or time.monotonic() - last < PATIENCE_SECONDS):
        # One at a time: asked for several, the client waits for all of them, or until the time is over.
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            last = time.monotonic()
            source = json.loads(message.value() or b"")["source"]
            if source["partition"] >= load.first_partition:
                arrived[source["partition"], source["offset"]] = last
            else:
                window.results_of_backlog += 1
    consumer.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--rate", type=int, action="append", help="events a second; repeats; default: 500 and 5000")
    add("--partitions", type=int, action="append", help="partitions of each topic; repeats; default: 4")
    add("--minutes", type=float, default=1.0, help="how long is counted; default: 1")
    add("--warm-up", type=float, default=60.0, metavar="SECONDS", help="not counted before that; default: 60")
    add("--turns", type=int, default=1, help="how often each program runs; medians follow; default: 1")
    add("--beside-streams", action="store_true", help=f"also in Kafka Streams, commits every {STREAMS_COMMIT_MS} ms")
    add("--other", type=Path, action="append", default=[], metavar="PATH", help="another checkout; repeats")
    add("--roles", nargs="+", default=["all"], help="one worker for each: all, or scorer aggregator")
    add("--beside-backlog", type=int, default=0, metavar="EVENTS", help="so many events wait in the first partition")
    add("--stalls", action="store_true", help="also ask each worker every 10 ms whether it is alive")
    return parser.parse_args()


if __name__ == "__main__":
    main()
