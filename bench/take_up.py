"""Seconds between an assignment and the first record that may be read: the cost of a take-over at each rebalance.

    python -m bench.take_up [--turns 9] [--other PATH]

A worker is started on an idle installation with eight partitions and some live cases. For each role, the slowest
partition counts. With `--other PATH`, the path of another checkout, the two checkouts take turns (A B A B …). Needs the
tests' broker, as bench.throughput does.
"""

import argparse
import statistics
import tempfile
from collections import defaultdict
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from bench.throughput import PARTITIONS, SEED, bootstrap_servers
from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.kafka_broker import PROJECT
from tests.support.outside import Outside
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Worker

EVENTS = 10_000
START_SECONDS = 60.0


def main() -> None:
    """Let each checkout take up all partitions in turn, print every turn and the medians."""
    arguments = _arguments()
    checkouts = [PROJECT, *(path.resolve() for path in arguments.other)]
    taken: dict[tuple[str, str], list[float]] = defaultdict(list)
    with bootstrap_servers() as servers, tempfile.TemporaryDirectory() as folder, Outside(servers) as outside:
        site = _at_rest(outside, Path(folder))
        for _ in range(arguments.turns):
            for checkout in checkouts:
                for role, seconds in _turn(site, checkout).items():
                    taken[checkout.name, role].append(seconds)
                    print(f"{checkout.name:>10} {role:>10}: {seconds:.3f} s", flush=True)
    for (name, role), times in taken.items():
        print(
            f"{name:>10} {role:>10}: median {statistics.median(times):.3f} s of {len(times)}, most {max(times):.3f} s"
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument(
        "--other", type=Path, action="append", default=[], help="another checkout to compare with; repeats"
    )
    return parser.parse_args()


def _at_rest(outside: Outside, folder: Path) -> Site:
    batches = make_batches(SEED, batches=100, cases_a_batch=50)
    settings = {"SAFE_V0_LOG_LEVEL": "debug"}
    cases = write_batches(folder / "cases", batches)
    site = Site.build(outside, folder, cases, partitions=PARTITIONS, settings=settings)
    site.send(list(event_stream(SEED, batches, EVENTS, partitions=PARTITIONS)))
    with site.worker() as worker:
        site.await_rest()
        worker.stop()
    return site


def _turn(site: Site, checkout: Path) -> dict[str, float]:
    site.installation = replace(site.installation, checkout=checkout)
    with site.worker(name=checkout.name) as worker:
        wait_until(
            lambda: len(_events(worker, "partition taken up")) == 2 * PARTITIONS,
            within_seconds=START_SECONDS,
            what="all partitions are taken up",
        )
        worker.stop()
        assigned = dict(_events(worker, "partitions assigned"))
        last: dict[str, float] = {}
        for role, at in _events(worker, "partition taken up"):
            last[role] = max(at, last.get(role, at))
    return {role: at - assigned[role] for role, at in last.items()}


def _events(worker: Worker, event: str) -> list[tuple[str, float]]:
    """The role and time of each log line with this event."""
    lines = [line for line in worker.log_lines() if line.get("event") == event and line.get("partitions") != []]
    return [(line["role"], datetime.fromisoformat(line["timestamp"]).timestamp()) for line in lines]


if __name__ == "__main__":
    main()
