"""Events per second of one `safe worker` with both stages. All inputs are in the topic before it starts.

    python -m bench.throughput [--events 100000] [--runs 3] [--other PATH] [--sources] [--delivery exactly_once]

`--other PATH` compares with another checkout, `--sources` compares the sources of expectations. They take turns (A B A
B …) with the same input. The time runs from the first to the last result, by the timestamps of the results; with
`--sources` it starts when every test case has been requested. The processor time is everything that the worker used,
including its start. Needs the tests' broker: Java and Maven, or SAFE_TEST_BOOTSTRAP_SERVERS.
"""

import argparse
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support import kafka_jvm
from tests.support.case_service import CaseService
from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.kafka_broker import PROJECT, KafkaBroker, kafka_libs
from tests.support.outside import Outside
from tests.support.site import Site

SEED = 20260302
PARTITIONS = 8
BATCHES = 200
CASES_A_BATCH = 50
REST_SECONDS = 600.0
COLD_RESULTS = BATCHES * CASES_A_BATCH * 3 // 2
"""By then the stream has asked for every test case."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What takes its turn: a checkout, and where it finds test cases (None: the folder)."""

    name: str
    checkout: Path
    expectations: str | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: rates in events a second, times in seconds, memory in bytes, transactions of scorer and aggregator."""

    variant: str
    results: int
    seconds: float
    wall_seconds: float
    cpu_seconds: float
    memory_bytes: int
    transactions: tuple[int, int]

    @property
    def events_a_second(self) -> float:
        """Results by the seconds between the first and the last."""
        return self.results / self.seconds if self.seconds else float("nan")

    def line(self) -> str:
        """Write the run on one line."""
        return (
            f"{self.variant:>10}: {self.events_a_second:9,.0f} events/s  {self.seconds:6.2f} s  "
            f"(from start to rest {self.wall_seconds:6.2f} s)  cpu {self.cpu_seconds:6.2f} s  "
            f"{self.cpu_seconds / self.results * 1e6:6.1f} µs/event  rss {self.memory_bytes / 2**20:5.0f} MiB  "
            f"transactions {self.transactions[0]} + {self.transactions[1]}"
        )


def main() -> None:
    """Load the input once, let each variant read it in turn, print every run and the medians."""
    arguments = _arguments()
    with bootstrap_servers() as servers, tempfile.TemporaryDirectory() as folder, Outside(servers) as outside:
        site = _loaded(outside, Path(folder), arguments.events)
        with _variants(arguments, site) as variants:
            measured = _in_turns(variants, site, arguments)
    for name in [variant.name for variant in variants]:
        rates = [each.events_a_second for each in measured if each.variant == name]
        print(f"{name:>10}: median {statistics.median(rates):,.0f} events/s of {len(rates)} runs, seed {SEED}")


def _in_turns(variants: Sequence[Variant], site: Site, arguments: argparse.Namespace) -> list[Measured]:
    settings = {"SAFE_V0_DELIVERY": arguments.delivery}
    measured = []
    for _ in range(arguments.runs):
        for variant in variants:
            measured.append(_measure(site, variant, settings, skip=COLD_RESULTS if arguments.sources else 0))
            print(measured[-1].line(), flush=True)
    return measured


@contextmanager
def _variants(arguments: argparse.Namespace, site: Site) -> Iterator[list[Variant]]:
    if not arguments.sources:
        yield [Variant("this", PROJECT), *(Variant(path.name, path.resolve()) for path in arguments.other)]
        return
    folder = Path(site.installation.expectations)
    topic = f"cases-{uuid.uuid4().hex[:8]}"
    site.outside.create_topic(topic, config={"cleanup.policy": "compact", "max.message.bytes": str(8 * 1024 * 1024)})
    published = site.installation.run("publish-cases", str(folder), "--topic", topic, folder=folder)
    published.check_returncode()
    with CaseService(folder) as service:
        sources = {"folder": None, "http": service.url, "topic": f"topic:{topic}"}
        yield [Variant(name, PROJECT, where) for name, where in sources.items()]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--other", type=Path, action="append", default=[], help="another checkout to compare with; repeats"
    )
    parser.add_argument("--sources", action="store_true", help="compare the sources of expectations instead")
    parser.add_argument("--delivery", choices=("exactly_once", "at_least_once"), default="exactly_once")
    return parser.parse_args()


@contextmanager
def bootstrap_servers() -> Iterator[str]:
    with broker() as (servers, _):
        yield servers


@contextmanager
def broker() -> Iterator[tuple[str, int | None]]:
    """The servers that are measured with, and the process id of a broker that was started for it."""
    given = os.environ.get("SAFE_TEST_BOOTSTRAP_SERVERS")
    if given:
        yield given, None
        return
    with tempfile.TemporaryDirectory() as folder:
        started = KafkaBroker(Path(folder), libs=kafka_libs(), jvm=kafka_jvm.LASTING).start()
        try:
            yield started.bootstrap_servers, started.pid
        finally:
            started.stop(kill=True)


def _loaded(outside: Outside, folder: Path, events: int) -> Site:
    batches = make_batches(SEED, batches=BATCHES, cases_a_batch=CASES_A_BATCH)
    site = Site.build(outside, folder, write_batches(folder / "cases", batches), partitions=PARTITIONS)
    begun = time.monotonic()
    stream = list(event_stream(SEED, batches, events, partitions=PARTITIONS, poison=0.0))
    site.send(stream)
    mean_bytes = statistics.mean(len(record.value or b"") for record in stream)
    print(f"{events:,} events of {mean_bytes:,.0f} bytes in {PARTITIONS} partitions, {time.monotonic() - begun:.1f} s")
    return site


def _measure(source: Site, variant: Variant, settings: dict[str, str], *, skip: int) -> Measured:
    site = source.reading_the_same_input(**settings)
    where = variant.expectations or site.installation.expectations
    site.installation = replace(site.installation, checkout=variant.checkout, expectations=where)
    begun = time.monotonic()
    with site.worker(name=variant.name) as worker:
        site.await_rest(within_seconds=REST_SECONDS)
        wall = time.monotonic() - begun
        used, memory = worker.cpu_seconds(), worker.memory_bytes(peak=True)
        worker.stop()
    results = site.outside.read(site.topics.result, within_seconds=REST_SECONDS)
    stamps = sorted(record.timestamp for record in results)[skip:]
    return Measured(variant.name, len(stamps), _seconds(stamps), wall, used, memory, _transactions(site))


def _transactions(site: Site) -> tuple[int, int]:
    """How many the scorer and the aggregator have made, by the markers in what they write."""
    scored, state = (
        sum(ends.log for ends in site.outside.ends(topic).values()) - len(site.outside.read(topic))
        for topic in (site.topics.scored, site.topics.state)
    )
    return (
        scored // PARTITIONS,
        state,
    )  # a slice of the scorer goes to every partition, one of the aggregator to its own


def _seconds(stamps: Sequence[int]) -> float:
    return (max(stamps) - min(stamps)) / 1000


if __name__ == "__main__":
    main()
