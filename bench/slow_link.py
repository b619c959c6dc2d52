"""How long a worker needs for a backlog when a quota limits how many bytes per second it may write.

    python -m bench.slow_link [--events 12000] [--kib 256 64] [--other PATH]

Each rate, in KiB/s, is a quota that all producers of the worker share. With `--other PATH`, the path of another
checkout, the two checkouts take turns with the same input. A run is given up if after `--most` seconds it has committed
nothing or has not ended. Needs the tests' broker: Java and Maven.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.support import kafka_jvm
from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.kafka_broker import PROJECT, KafkaBroker, kafka_libs
from tests.support.outside import Isolation, Outside
from tests.support.site import Site

SEED = 20260302
CLIENT_ID = "safe"
BATCHES = 40
CASES_A_BATCH = 50
LOOK_SECONDS = 1.0
ISOLATIONS: tuple[Isolation, ...] = ("read_uncommitted", "read_committed")


def main() -> None:
    """Let each checkout read the same input at each rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=12_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--kib", type=int, nargs="+", default=[256, 64], help="what may be written in a second")
    parser.add_argument("--other", type=Path, action="append", default=[], help="another checkout to compare with")
    parser.add_argument("--delivery", choices=("exactly_once", "at_least_once"), default="exactly_once")
    parser.add_argument("--most", type=float, default=1_200.0, help="seconds after which a run is given up")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        broker = KafkaBroker(Path(folder) / "kafka", libs=kafka_libs(), jvm=kafka_jvm.LASTING).start()
        try:
            with Outside(broker.bootstrap_servers) as outside:
                _measure_all(broker, outside, Path(folder), arguments)
        finally:
            broker.stop(kill=True)


def _measure_all(broker: KafkaBroker, outside: Outside, folder: Path, arguments: argparse.Namespace) -> None:
    batches = make_batches(SEED, batches=BATCHES, cases_a_batch=CASES_A_BATCH)
    cases = write_batches(folder / "cases", batches)
    source = Site.build(outside, folder, cases, partitions=arguments.partitions)
    stream = list(event_stream(SEED, batches, arguments.events, partitions=arguments.partitions))
    source.send(stream)
    size = sum(len(record.value or b"") for record in stream)
    print(f"{arguments.events:,} inputs, {size / 2**20:.1f} MiB, {arguments.partitions} partitions", flush=True)
    for kib in arguments.kib:
        broker.limit_producers(CLIENT_ID, kib * 1024)
        for checkout in [PROJECT, *(path.resolve() for path in arguments.other)]:
            site = source.reading_the_same_input(SAFE_V0_DELIVERY=arguments.delivery)
            site.installation = replace(site.installation, checkout=checkout)
            print(f"{kib:5} KiB/s  {checkout.name:>12}: {_run(site, arguments.most)}", flush=True)


def _run(site: Site, most_seconds: float) -> str:
    """Start a worker and describe how it came through its backlog."""
    with site.worker() as worker:
        begun = time.monotonic()
        first, left = None, [1, 1]
        while any(left) and time.monotonic() - begun < most_seconds:
            time.sleep(LOOK_SECONDS)
            left = _lags(site)
            if first is None and site.outside.committed(site.group, site.topics.input):
                first = time.monotonic() - begun
        took = time.monotonic() - begun
        dropped = worker.log_text().count("the records in progress were dropped")
        problems = _problems(site) if not any(left) else []  # before the end of the worker, who may be writing a report
        worker.kill()
    drained = f"drained in {took:.0f} s" if not any(left) else f"not drained in {took:.0f} s, {left} left"
    shown = "nothing committed" if first is None else f"first commit after {first:.0f} s"
    return f"{shown}, {drained}, {dropped} slices dropped, problems: {problems or 'none'}; {_written(site)}"


def _written(site: Site) -> str:
    """What was written to each topic, in MiB of keys and values, and how much of it was given up."""
    sizes = {}
    for topic in site.topics.outputs():
        every, kept = (
            sum(
                len(record.key or b"") + len(record.value or b"") for record in site.outside.read(topic, isolation=each)
            )
            for each in ISOLATIONS
        )
        sizes[topic.partition(".")[2]] = f"{every / 2**20:.1f} ({(every - kept) / 2**20:.1f} in vain)"
    return "written " + ", ".join(f"{name} {size}" for name, size in sizes.items())


def _lags(site: Site) -> list[int]:
    """What the scorer and the aggregator have still to read."""
    groups = {site.group: site.topics.input, f"{site.group}.aggregator": site.topics.scored}
    return [site.outside.lag(group, topic) for group, topic in groups.items()]


def _problems(site: Site) -> Sequence[str]:
    """What the oracle finds wrong; reports may still be owed."""
    return [problem for problem in site.seen()[1] if not problem.startswith("report")][:5]


if __name__ == "__main__":
    main()
