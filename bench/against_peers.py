"""SAFE beside other programs that do the same job, in rounds (A B C A B C …) on one broker; ratios to the bare copy.

    python -m bench.against_peers [--events 200000] [--rounds 3] [--only NAME …] [--other PATH]

The rate is the results by the time from the first to the last one, by their timestamps; the processor time is all that
the processes used, their start included. A run whose results are not as many as its inputs has no speed. Needs the
tests' broker: Java and Maven, or SAFE_TEST_BOOTSTRAP_SERVERS.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.peers import environments
from bench.processes import Running
from bench.throughput import SEED, bootstrap_servers
from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.kafka_broker import PROJECT
from tests.support.outside import Outside
from tests.support.site import Site
from tests.support.waiting import wait_until

PARTITIONS = 4
BATCHES, CASES_A_BATCH = 200, 5
REST_SECONDS = 600.0
BASE = "bare copy"
STREAM_THREADS = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: events a second, processor time an event in seconds, and peak memory of all processes in bytes."""

    name: str
    rate: float
    cpu: float
    memory: int


Variant = Callable[[Site], Iterator[Running]]
"""Starts a program over the input of an installation, and ends it when it is resumed."""


# --- what takes its turn ----------------------------------------------------------------------------------------------


def _safe(roles: Sequence[str], checkout: Path, settings: dict[str, str], source: Site) -> Iterator[Running]:
    site = _site(source, **settings)
    site.installation = replace(site.installation, checkout=checkout)
    with ExitStack() as stack:
        workers = [stack.enter_context(site.worker(role=role, name=f"bench-{role}")) for role in roles]
        yield Running([worker.pid for worker in workers], site.topics.result)
        for worker in workers:
            worker.stop()


def _site(source: Site, **settings: str) -> Site:
    """Give a program topics of its own; the broker stamps its results, for some programs hand on the input's time."""
    site = source.reading_the_same_input(**settings)
    site.outside.set_topic_config(site.topics.result, "message.timestamp.type", "LogAppendTime")
    return site


def _bare_copy(source: Site) -> Iterator[Running]:
    def command(site: Site) -> Sequence[str]:
        topics = site.topics
        where = (site.outside.bootstrap_servers, topics.input, topics.scored, topics.result, site.group)
        return (sys.executable, "-m", "bench.peers.bare_copy", *where, str(PARTITIONS))

    return _peer(source, command)


def _kafka_streams(source: Site) -> Iterator[Running]:
    return _peer(source, streams_command)


def streams_command(site: Site, commit_ms: int = 500) -> Sequence[str]:
    """The command line of the same job in Kafka Streams, over an installation's topics and test cases."""
    java = ("java", "-XX:+UseSerialGC", "-Xmx512m", "-cp", environments.kafka_streams(), "ScoringJob")
    cases, state = site.installation.expectations, str(site.folder / f"streams-{site.group}")
    partitions = site.outside.partitions(site.topics.input)
    return (*java, *_ends(site), str(partitions), cases, state, str(STREAM_THREADS), str(commit_ms))


def _quix(source: Site) -> Iterator[Running]:
    python = (str(environments.quix()), "bench/peers/quix_streams.py")

    def command(site: Site) -> Sequence[str]:
        return (*python, *_ends(site), site.installation.expectations, str(site.folder / f"quix-{site.group}"))

    return _peer(source, command, PYTHONPATH=str(PROJECT))


def _ends(site: Site) -> Sequence[str]:
    return (site.outside.bootstrap_servers, site.topics.input, site.topics.result, site.group)


def _peer(source: Site, command: Callable[[Site], Sequence[str]], **environment: str) -> Iterator[Running]:
    site = _site(source)
    with running(command(site), site, **environment) as run:
        yield run


@contextmanager
def running(command: Sequence[str], site: Site, **environment: str) -> Iterator[Running]:
    """Run a program, which is not SAFE, over an installation's topics for as long as the block lasts."""
    process = subprocess.Popen(command, cwd=PROJECT, env=os.environ | environment)
    try:
        yield Running([process.pid], site.topics.result)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def variants(other: Sequence[Path] = ()) -> dict[str, Variant]:
    """What can take its turn, by name; `other` are further checkouts of SAFE."""

    def safe(roles: Sequence[str], checkout: Path = PROJECT, **settings: str) -> Variant:
        return partial(_safe, roles, checkout, settings)

    return {
        BASE: _bare_copy,
        "SAFE": safe(["all"]),
        "SAFE, two processes": safe(["scorer", "aggregator"]),
        "SAFE, at_least_once": safe(["all"], SAFE_V0_DELIVERY="at_least_once"),
        "SAFE, two, at_least_once": safe(["scorer", "aggregator"], SAFE_V0_DELIVERY="at_least_once"),
        "Kafka Streams": _kafka_streams,
        "Quix Streams": _quix,
        **{f"SAFE of {path.name}": safe(["all"], path.resolve()) for path in other},
    }


# --- measuring --------------------------------------------------------------------------------------------------------


def main() -> None:
    """Load the input once, run the rounds, print every run and then the ratios."""
    arguments = _arguments()
    known = variants(arguments.other)
    chosen = {name: known[name] for name in known if name in {BASE, *(arguments.only or known)}}
    with bootstrap_servers() as servers, tempfile.TemporaryDirectory() as folder, Outside(servers) as outside:
        measured = []
        for number, run in in_turns(outside, Path(folder), chosen, events=arguments.events, rounds=arguments.rounds):
            measured.append(run)
            print(
                f"round {number}  {run.name:>24}: {run.rate:9,.0f} events/s  {run.cpu * 1e6:6.1f} µs/event  "
                f"{run.memory / 2**20:5.0f} MiB", flush=True
            )  # fmt: skip
    for line in _table(list(chosen), measured):
        print(line)


def in_turns(
    outside: Outside, folder: Path, variants: Mapping[str, Variant], *, events: int, rounds: int
) -> Iterator[tuple[int, Measured]]:
    """Run every variant in every round, all over the same input; gives the round, from 1, and what was measured."""
    source = _loaded(outside, folder, events)
    for number in range(1, rounds + 1):
        for name, variant in variants.items():
            yield number, _measured(name, variant, source, events)


def cpu_ratios(name: str, measured: Sequence[Measured]) -> list[float]:
    """Give the processor time an event of a variant, as a ratio to the bare copy's of the same round, in order."""
    runs, base = ([run for run in measured if run.name == each] for each in (name, BASE))
    return sorted(run.cpu / copy.cpu for run, copy in zip(runs, base, strict=True))


def _loaded(outside: Outside, folder: Path, events: int) -> Site:
    batches = make_batches(SEED, batches=BATCHES, cases_a_batch=CASES_A_BATCH)
    site = Site.build(outside, folder, write_batches(folder / "cases", batches), partitions=PARTITIONS)
    stream = list(event_stream(SEED, batches, events, partitions=PARTITIONS, poison=0.0))
    site.send(stream)
    mean_bytes = statistics.mean(len(record.value or b"") for record in stream)
    print(
        f"{events:,} events of {mean_bytes:,.0f} bytes, {BATCHES} batches of {CASES_A_BATCH}, {PARTITIONS} partitions"
    )
    return site


def _measured(name: str, variant: Variant, source: Site, events: int) -> Measured:
    deadline = time.monotonic() + REST_SECONDS
    with contextmanager(variant)(source) as run:
        while True:
            wait_until(
                lambda: _committed_offsets(source.outside, run.results) >= events,
                within_seconds=REST_SECONDS, what=f"{name} has {events} results", every_seconds=0.2,
            )  # fmt: skip
            cpu, memory = run.cpu_seconds(), run.memory()
            results = source.outside.read(run.results, within_seconds=REST_SECONDS)
            if len(results) >= events or time.monotonic() > deadline:
                break
    if len(results) != events:
        raise SystemExit(f"{name} wrote {len(results)} results for {events} inputs: it has no speed")
    stamps = [record.timestamp for record in results]
    return Measured(name, events / (max(stamps) - min(stamps)) * 1000, cpu / events, memory)


def _committed_offsets(outside: Outside, topic: str) -> int:
    """All offsets of a topic once its transactions are decided, else 0: its records, and a marker a transaction."""
    ends = outside.ends(topic).values()
    return 0 if outside.undecided([topic]) else sum(each.log for each in ends)


def _table(names: Sequence[str], measured: Sequence[Measured]) -> Iterator[str]:
    """Give the ratios to the bare copy of the same round: minimum, median and maximum."""
    yield f"{'':>24}  rate: min  median   max   cpu: min  median   max   MiB"
    base = [each for each in measured if each.name == BASE]
    for name in names:
        runs = [each for each in measured if each.name == name]
        rates = sorted(run.rate / copy.rate for run, copy in zip(runs, base, strict=True))
        cpus = cpu_ratios(name, measured)
        memory = statistics.median(run.memory for run in runs) / 2**20
        yield (
            f"{name:>24}       {rates[0]:5.2f}   {statistics.median(rates):5.2f} {rates[-1]:5.2f}"
            f"       {cpus[0]:5.2f}   {statistics.median(cpus):5.2f} {cpus[-1]:5.2f}  {memory:4.0f}"
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a variant; repeats")
    parser.add_argument("--other", type=Path, action="append", default=[], help="another checkout of SAFE; repeats")
    return parser.parse_args()


if __name__ == "__main__":
    main()
