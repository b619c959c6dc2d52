"""Make topics and start a worker right behind: `python -m tests.cluster.fresh_topics [--tries N] [--brokers WHERE]`.

Brokers learn of new topics one after the other, and the two commands may each ask another one. Every try has a cluster
of its own, or, with --brokers, topics and a group of its own in a cluster that is there; and its bootstrap servers in
another order.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.support.cases import make_batches, write_batches
from tests.support.kafka_cluster import KafkaCluster
from tests.support.outside import Topics
from tests.support.worker import Installation, Worker

PARTITIONS, REPLICAS = 12, 3
READY_SECONDS = 60.0
TRIES = 30


def made_and_started(installation: Installation, folder: Path) -> str:
    """Make the topics of an installation and start a worker at once; returns what came of it, in a few words."""
    create = ("topics", "create", "--partitions", str(PARTITIONS), "--replication-factor", str(REPLICAS))
    done = installation.run(*create, folder=folder)
    if done.returncode != 0:
        return f"create ended with {done.returncode}: {done.stderr.strip()[-400:]}"
    if "warning:" in done.stdout:
        return f"create warned: {done.stdout[-400:]}"
    worker = Worker(installation, folder)
    try:
        worker.await_ready(within_seconds=READY_SECONDS)
        code = worker.stop()
    except AssertionError as error:
        return f"the worker did not start: {error}"
    else:
        return "started" if code == 0 else f"the worker ended with {code}"
    finally:
        worker.discard()


def fresh_installation(bootstrap_servers: str, cases: Path, *, checkout: Path | None = None) -> Installation:
    """An installation that nobody else has, which asks the brokers in any order."""
    topics = Topics.fresh()
    servers = bootstrap_servers.split(",")
    random.shuffle(servers)
    group = topics.input.partition(".")[0]
    installation = Installation(",".join(servers), topics, group, str(cases))
    return installation if checkout is None else replace(installation, checkout=checkout)


@contextmanager
def brokers_of(given: str | None, folder: Path) -> Iterator[str]:
    """Yield the addresses of the brokers that are there, or of a cluster that lasts as long as the block."""
    if given is not None:
        yield given
        return
    with KafkaCluster(folder) as cluster:
        yield cluster.start().bootstrap_servers


def main(arguments: Sequence[str]) -> int:
    """Try so often, a line for each; returns 1 if one did not end as it should."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.fresh_topics", description=__doc__)
    parser.add_argument("--tries", type=int, default=TRIES, metavar="N")
    parser.add_argument("--brokers", metavar="WHERE", help="of a cluster that is there; else each try starts one")
    parser.add_argument("--checkout", type=Path, metavar="PATH", help="run the commands of another checkout")
    options = parser.parse_args(arguments)
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        cases = write_batches(Path(name) / "cases", make_batches(7, batches=1, cases_a_batch=2))
        for number in range(1, options.tries + 1):
            folder = Path(name) / str(number)
            with brokers_of(options.brokers, folder / "cluster") as brokers:
                began = time.monotonic()
                outcome = made_and_started(fresh_installation(brokers, cases, checkout=options.checkout), folder)
                print(f"{number}/{options.tries}: {outcome} after {time.monotonic() - began:.1f} s", flush=True)
            outcomes[outcome] += 1
            shutil.rmtree(folder, ignore_errors=True)
    return int(outcomes["started"] < options.tries)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
