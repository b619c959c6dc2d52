"""From a producer's clock to a subscriber's: how long an output takes to be a visible result, at a steady rate.

    python -m bench.latency [--rate 500 --rate 5000] [--seconds 30] [--roles all] [--stalls]

The loop is open: each event has its moment, and is late from then on, however long the one before it took. A first part
of each run warms up and is not counted. Times are those of one process that produces and subscribes with a client of
its own (read_committed); its results must be as many as its events. Needs the tests' broker, as bench.throughput does.
"""

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Consumer, Producer

from bench.answers import asking
from bench.throughput import SEED, bootstrap_servers
from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.outside import Outgoing, Outside
from tests.support.site import Site

PARTITIONS = 4
BATCHES, CASES_A_BATCH = 200, 5
WARM_UP_SECONDS = 10.0
PATIENCE_SECONDS = 60.0
SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)


def main() -> None:
    """Run each rate on topics of its own, and print one line for each."""
    arguments = _arguments()
    print(f"{'events/s':>10}  {'events':>8}  " + "  ".join(f"{f'p{share * 100:g}':>8}" for share in SHARES))
    with bootstrap_servers() as servers, tempfile.TemporaryDirectory() as folder, Outside(servers) as outside:
        batches = make_batches(SEED, batches=BATCHES, cases_a_batch=CASES_A_BATCH)
        cases = write_batches(Path(folder) / "cases", batches)
        for rate in arguments.rate or (500, 5_000):
            site = Site.build(outside, Path(folder), cases, partitions=PARTITIONS)
            count = int(rate * (WARM_UP_SECONDS + arguments.seconds))
            stream = list(event_stream(SEED, batches, count, partitions=PARTITIONS, poison=0.0))
            with ExitStack() as stack:
                roles = arguments.roles
                workers = [stack.enter_context(site.worker(role=role, name=f"bench-{role}")) for role in roles]
                asked = [stack.enter_context(asking(worker)) for worker in workers if arguments.stalls]
                taken = _latencies(site, stream, rate)[int(rate * WARM_UP_SECONDS) :]
                answers = [each.stop() for each in asked]
            cuts = statistics.quantiles(taken, n=1_000, method="inclusive")
            shown = [max(taken) if share == 1 else cuts[round(share * 1_000) - 1] for share in SHARES]
            print(f"{rate:>10,}  {len(taken):>8,}  " + "  ".join(f"{each * 1e3:5.0f} ms" for each in shown), flush=True)
            for role, said in zip(roles, answers, strict=False):
                print(f"{'':>10}  /livez of {role}: {said}", flush=True)


def _latencies(site: Site, stream: Sequence[Outgoing], rate: int) -> list[float]:
    """Return the seconds that each event took, in the order of their moments."""
    moments: list[list[float]] = [[] for _ in range(PARTITIONS)]
    arrived: dict[tuple[int, int], float] = {}
    subscribed = threading.Event()
    reader = threading.Thread(target=_read, args=(site, len(stream), arrived, subscribed))
    reader.start()
    subscribed.wait()
    _produce(site, stream, rate, moments)
    reader.join()
    if len(arrived) != len(stream):
        raise SystemExit(f"{len(arrived)} results of {len(stream)} events: no latency can be told")
    timed = [
        (moment, arrived[partition, offset] - moment)
        for partition, of_partition in enumerate(moments)
        for offset, moment in enumerate(of_partition)
    ]
    return [latency for _, latency in sorted(timed)]


def _produce(site: Site, stream: Sequence[Outgoing], rate: int, moments: list[list[float]]) -> None:
    producer = Producer({"bootstrap.servers": site.outside.bootstrap_servers, "linger.ms": 0, "acks": "all"})
    begun = time.monotonic()
    for moment, record in _on_time(stream, begun, rate):
        partition = record.partition or 0
        moments[partition].append(moment)
        producer.produce(site.topics.input, value=record.value, key=record.key, partition=partition)
        producer.poll(0)
    producer.flush(PATIENCE_SECONDS)


def _on_time(stream: Sequence[Outgoing], begun: float, rate: int) -> Iterator[tuple[float, Outgoing]]:
    for number, record in enumerate(stream):
        moment = begun + number / rate
        rest = moment - time.monotonic()
        if rest > 0:
            time.sleep(rest)
        yield moment, record


def _read(site: Site, count: int, arrived: dict[tuple[int, int], float], subscribed: threading.Event) -> None:
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
        for message in consumer.consume(1_000, timeout=0.05):
            if message.error() is None:
                last = time.monotonic()
                source = json.loads(message.value() or b"")["source"]
                arrived[source["partition"], source["offset"]] = last
    consumer.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, action="append", help="events a second; repeats")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long is measured, after the warm-up")
    parser.add_argument("--roles", nargs="+", default=["all"], help="one worker for each: all, or scorer aggregator")
    parser.add_argument("--stalls", action="store_true", help="also ask each worker every 10 ms whether it is alive")
    return parser.parse_args()


if __name__ == "__main__":
    main()
