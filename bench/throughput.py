"""Events a second of one `safe worker`, both stages, over inputs that are there before it starts.

    python -m bench.throughput [--events 100000] [--runs 3] [--other PATH] [--delivery exactly_once]

With `--other PATH`, a second checkout, the two take turns (A B A B …) over the same input. The time runs from the first
to the last result by their own stamps; the processor time is all that the worker used, its start included. Needs the
tests' broker: Java and Maven, or SAFE_TEST_BOOTSTRAP_SERVERS.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.kafka_broker import PROJECT, KafkaBroker, kafka_libs
from tests.support.outside import Outside
from tests.support.site import Site

SEED = 20260302
PARTITIONS = 8
BATCHES = 200
CASES_A_BATCH = 50
REST_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: rates in events a second, times in seconds, memory in bytes."""

    checkout: str
    results: int
    seconds: float
    wall_seconds: float
    cpu_seconds: float
    memory_bytes: int

    @property
    def events_a_second(self) -> float:
        """Results by the seconds between the first and the last."""
        return self.results / self.seconds if self.seconds else float("nan")

    def line(self) -> str:
        """Write the run on one line."""
        return (
            f"{self.checkout:>10}: {self.events_a_second:9,.0f} events/s  {self.seconds:6.2f} s  "
            f"(from start to rest {self.wall_seconds:6.2f} s)  cpu {self.cpu_seconds:6.2f} s  "
            f"{self.cpu_seconds / self.results * 1e6:6.1f} µs/event  rss {self.memory_bytes / 2**20:5.0f} MiB"
        )


def main() -> None:
    """Load the input once, let each checkout read it in turn, print every run and the medians."""
    arguments = _arguments()
    checkouts = {"this": PROJECT} | ({"other": arguments.other.resolve()} if arguments.other else {})
    with bootstrap_servers() as servers, tempfile.TemporaryDirectory() as folder, Outside(servers) as outside:
        source = _loaded(outside, Path(folder), arguments.events)
        settings = {"SAFE_V0_DELIVERY": arguments.delivery}
        measured: list[Measured] = []
        for _ in range(arguments.runs):
            for name, checkout in checkouts.items():
                measured.append(_measure(source, name, checkout, settings))
                print(measured[-1].line(), flush=True)
    for name in checkouts:
        rates = [each.events_a_second for each in measured if each.checkout == name]
        print(f"{name:>10}: median {statistics.median(rates):,.0f} events/s of {len(rates)} runs, seed {SEED}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--other", type=Path, help="a second checkout to compare with")
    parser.add_argument("--delivery", choices=("exactly_once", "at_least_once"), default="exactly_once")
    return parser.parse_args()


@contextmanager
def bootstrap_servers() -> Iterator[str]:
    given = os.environ.get("SAFE_TEST_BOOTSTRAP_SERVERS")
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        broker = KafkaBroker(Path(folder), libs=kafka_libs()).start()
        try:
            yield broker.bootstrap_servers
        finally:
            broker.stop(kill=True)


def _loaded(outside: Outside, folder: Path, events: int) -> Site:
    batches = make_batches(SEED, batches=BATCHES, cases_a_batch=CASES_A_BATCH)
    site = Site.build(outside, folder, write_batches(folder / "cases", batches), partitions=PARTITIONS)
    begun = time.monotonic()
    stream = list(event_stream(SEED, batches, events, partitions=PARTITIONS, poison=0.0))
    site.send(stream)
    mean_bytes = statistics.mean(len(record.value or b"") for record in stream)
    print(f"{events:,} events of {mean_bytes:,.0f} bytes in {PARTITIONS} partitions, {time.monotonic() - begun:.1f} s")
    return site


def _measure(source: Site, name: str, checkout: Path, settings: dict[str, str]) -> Measured:
    site = source.reading_the_same_input(**settings)
    site.installation = replace(site.installation, checkout=checkout)
    begun = time.monotonic()
    with site.worker(name=name) as worker:
        site.await_rest(within_seconds=REST_SECONDS)
        wall = time.monotonic() - begun
        used, memory = worker.cpu_seconds(), worker.memory_bytes(peak=True)
        worker.stop()
    stamps = [record.timestamp for record in site.outside.read(site.topics.result, within_seconds=REST_SECONDS)]
    return Measured(name, len(stamps), _seconds(stamps), wall, used, memory)


def _seconds(stamps: Sequence[int]) -> float:
    return (max(stamps) - min(stamps)) / 1000


if __name__ == "__main__":
    main()
