"""Time and memory of an aggregator that restores very many live cases, and of the worker that scored them.

    python -m bench.restore [--batches 1000] [--cases 1000]

Needs the tests' broker, as bench.throughput does, and about 6 GB of disk for a million cases.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.answers import asking
from bench.throughput import PARTITIONS, REST_SECONDS, SEED, bootstrap_servers
from tests.support.cases import WrittenBatch, encoded, make_batches, make_event, write_batches
from tests.support.outside import Outgoing, Outside
from tests.support.site import Site
from tests.support.worker import Worker

CHUNK = 50_000


def main() -> None:
    """Score the cases once, then start an aggregator anew over its changelog."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=1_000)
    parser.add_argument("--cases", type=int, default=1_000)
    arguments = parser.parse_args()
    with bootstrap_servers() as servers, tempfile.TemporaryDirectory() as folder, Outside(servers) as outside:
        pool = make_batches(SEED, batches=1, cases_a_batch=arguments.cases)
        site = Site.build(outside, Path(folder), write_batches(Path(folder) / "cases", pool), partitions=PARTITIONS)
        _measure(site, _load(site, pool, arguments.batches))


def _load(site: Site, pool: Sequence[WrittenBatch], batches: int) -> int:
    begun, sent = time.monotonic(), 0
    chunk: list[Outgoing] = []
    for record in _events(pool, batches):
        chunk.append(record)
        if len(chunk) == CHUNK:
            site.send(chunk)
            sent, chunk = sent + len(chunk), []
    site.send(chunk)
    sent += len(chunk)
    print(f"{sent:,} events of {batches:,} batches, {time.monotonic() - begun:.0f} s", flush=True)
    return sent


def _events(pool: Sequence[WrittenBatch], batches: int) -> Iterator[Outgoing]:
    """The same test cases answered in every batch: a batch of no file finds them by test_id alone."""
    rng = random.Random(SEED)
    events = [make_event(rng, case, run_id="r1") for case in pool[0].cases]
    for number in range(batches):
        for at, event in enumerate(events):
            yield Outgoing(encoded(event | {"batch_id": f"live_{number}"}), partition=at % PARTITIONS)


def _measure(site: Site, cases: int) -> None:
    begun = time.monotonic()
    with site.worker(name="scores") as worker:
        site.await_rest(within_seconds=REST_SECONDS)
        seconds = time.monotonic() - begun
        print(f"scored and folded: {cases / seconds:,.0f} events/s, {_memory(worker)}", flush=True)
        worker.stop()
    for role in ("aggregator", "all"):
        begun = time.monotonic()
        worker = site.spawn(f"restores-{role}", role=role)
        with asking(worker) as answers:
            worker.await_ready(within_seconds=REST_SECONDS, every_seconds=0.05)
            print(f"ready as {role} after {time.monotonic() - begun:.1f} s, {_memory(worker)}", flush=True)
            print(f"meanwhile /livez answered within: {answers.stop()}", flush=True)
        worker.stop()


def _memory(worker: Worker) -> str:
    now, peak = worker.memory_bytes(), worker.memory_bytes(peak=True)
    return f"{now / 2**20:,.0f} MiB, {peak / 2**20:,.0f} MiB at most"


if __name__ == "__main__":
    main()
