"""Make topics and start a worker right behind, again and again: `python -m tests.cluster.fresh_topics BROKERS [TRIES]`.

Brokers learn of new topics one after the other, and the two commands may each ask another one. Every try has topics and
a group of its own, and its bootstrap servers in another order.
"""

import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from tests.support.cases import make_batches, write_batches
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


def main(bootstrap_servers: str, tries: int = TRIES, checkout: Path | None = None) -> int:
    """Try so often, a line for each; returns how many did not end as they should."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = write_batches(folder / "cases", make_batches(7, batches=1, cases_a_batch=2))
        for number in range(1, tries + 1):
            began = time.monotonic()
            outcome = made_and_started(fresh_installation(bootstrap_servers, cases, checkout=checkout), folder)
            print(f"{number}/{tries}: {outcome} after {time.monotonic() - began:.1f} s", flush=True)
            outcomes[outcome] += 1
    return tries - outcomes["started"]


if __name__ == "__main__":
    servers, *rest = sys.argv[1:]
    sys.exit(main(servers, int(rest[0]) if rest else TRIES, Path(rest[1]) if rest[1:] else None))
