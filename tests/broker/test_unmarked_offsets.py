"""Something that is not SAFE commits offsets for SAFE's group: no input is passed over unseen; and `safe offsets`."""

import json
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from tests.support.cases import encoded, make_batches, make_event, write_batches
from tests.support.outside import Outgoing
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Worker

pytestmark = pytest.mark.broker

BATCHES = make_batches(37, batches=2, cases_a_batch=8)
CASES = [case for batch in BATCHES for case in batch.cases]
PARTITIONS = 2
WITHIN_SECONDS = 60.0
QUICK = {"SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS": "3"}
WITHOUT_TRANSACTIONS = {**QUICK, "SAFE_V0_DELIVERY": "at_least_once"}
EXIT_UNUSABLE = 3


@pytest.fixture
def site(site_over: Callable[..., Site], tmp_path: Path) -> Site:
    """Two partitions."""
    cases = write_batches(tmp_path / "cases", BATCHES)
    return site_over(cases, partitions=PARTITIONS, settings=QUICK)


def feed(site: Site, numbers: Sequence[int], partition: int) -> None:
    """One input for each case of these numbers."""
    events = [make_event(random.Random(at), CASES[at], quality="pass", size=0) for at in numbers]
    site.send([Outgoing(encoded(event), b"any", partition=partition) for event in events])


def served(site: Site) -> None:
    """Have a worker deal with all there is, and stop it."""
    with site.worker() as worker:
        site.await_rest()
        assert worker.stop() == 0


def stranger(site: Site, records: int) -> None:
    """A consumer with librdkafka's defaults, but for the group id: it reads this many records, and leaves."""
    consumer = Consumer({"bootstrap.servers": site.outside.bootstrap_servers, "group.id": site.group, "log_level": 2})
    consumer.subscribe([site.topics.input])
    taken: list[int] = []

    def took_all() -> bool:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            taken.append(message.offset() or 0)
        return len(taken) >= records

    try:
        wait_until(took_all, within_seconds=WITHIN_SECONDS, what=f"the stranger reads {records} records")
    finally:
        consumer.close()


def safe(site: Site, *arguments: str, exit_code: int = 0) -> "subprocess.CompletedProcess[str]":
    """Run `safe offsets`."""
    done = site.installation.run("offsets", *arguments, folder=site.folder)
    assert done.returncode == exit_code, (done.returncode, done.stdout, done.stderr)
    return done


def shown(site: Site) -> list[Any]:
    return [json.loads(line) for line in safe(site, "show", "--format", "json").stdout.splitlines()]


def why_not_ready(worker: Worker) -> str:
    """What /readyz says, once it names an offset."""

    def told() -> str | None:
        try:
            text = worker.get("/readyz")[1]
        except OSError:
            return None
        return text if "has no note of SAFE" in text else None

    return wait_until(told, within_seconds=WITHIN_SECONDS, what="the worker names the offset")


def passed_over(site: Site) -> int:
    """How many inputs have neither a result nor a dead letter."""
    _, problems = site.seen()
    return sum("has (0, 0) results" in problem for problem in problems)


def test_a_partition_that_a_stranger_has_read_stops_and_goes_on_from_the_last_result(site: Site) -> None:
    feed(site, [0, 1, 2], partition=0)
    feed(site, [3, 4, 5], partition=1)
    served(site)
    at = site.outside.committed(site.group, site.topics.input)[0]
    feed(site, [6, 7, 8, 9], partition=0)
    stranger(site, 4)
    assert site.outside.committed(site.group, site.topics.input)[0] == at + 4
    feed(site, [10, 11], partition=0)
    feed(site, [12, 13], partition=1)
    worker = site.spawn("worker")
    why = why_not_ready(worker)
    assert f"partition 0 of {site.topics.input}: offset {at + 4} has no note of SAFE" in why
    assert f"SAFE itself had read up to offset {at} at least, so 4 inputs may have been skipped" in why
    assert f"partition 1 of {site.topics.input}" not in why
    end = site.outside.ends(site.topics.input)[1].log
    wait_until(
        lambda: site.outside.committed(site.group, site.topics.input)[1] == end,
        within_seconds=WITHIN_SECONDS,
        what="the other partition goes on",
    )
    [row, other] = shown(site)
    assert (row["partition"], row["offset"], row["note"], row["scored_up_to"]) == (0, at + 4, "", at)
    assert (other["is_safes"], row["is_safes"]) == (True, False)

    assert "--execute" in safe(site, "accept", "--to-last-result").stderr
    assert "has no note of SAFE" in worker.get("/readyz")[1]
    done = safe(site, "accept", "--to-last-result", "--execute")
    assert f"{site.topics.input}/0: {at + 4} -> {at}" in done.stdout
    worker.await_ready()
    site.await_rest()
    _, problems = site.seen()
    assert problems == []
    assert worker.stop() == 0


def test_also_where_the_stranger_has_read_all_partitions_and_it_can_be_accepted_as_it_is(site: Site) -> None:
    feed(site, [0, 1], partition=0)
    feed(site, [2, 3], partition=1)
    served(site)
    feed(site, [4, 5], partition=0)
    feed(site, [6], partition=1)
    stranger(site, 3)
    worker = site.spawn("worker")
    why = why_not_ready(worker)
    wait_until(lambda: why_not_ready(worker).count("no note") == PARTITIONS, within_seconds=WITHIN_SECONDS, what="both")
    safe(site, "accept", "--partition", "0", "--execute")
    wait_until(lambda: why_not_ready(worker).count("no note") == 1, within_seconds=WITHIN_SECONDS, what="one is served")
    safe(site, "accept", "--execute")
    worker.await_ready()
    feed(site, [7], partition=0)
    site.await_rest()
    assert passed_over(site) == 3
    assert worker.stop() == 0
    assert "2 inputs may have been skipped" in why
    assert "nothing to accept" in safe(site, "accept", "--execute").stderr


def test_without_transactions_nothing_is_passed_over_either(site: Site) -> None:
    plain = replace(site, installation=replace(site.installation, settings=WITHOUT_TRANSACTIONS))
    feed(plain, [0, 1], partition=0)
    feed(plain, [2], partition=1)
    served(plain)
    feed(plain, [3, 4], partition=0)
    stranger(plain, 2)
    worker = plain.spawn("worker")
    assert f"partition 0 of {plain.topics.input}: offset 4 has no note of SAFE" in why_not_ready(worker)
    safe(plain, "accept", "--to-last-result", "--execute")
    worker.await_ready()
    plain.await_rest()
    _, problems = plain.seen(repeats_allowed=True)
    assert problems == []
    assert worker.stop() == 0


def test_a_replay_refuses_while_workers_run_and_is_no_stranger(site: Site) -> None:
    feed(site, [0, 1, 2], partition=0)
    feed(site, [3], partition=1)
    with site.worker() as worker:
        site.await_rest()
        refused = safe(site, "reset", "--to-earliest", "--execute", exit_code=EXIT_UNUSABLE)
        assert "has members" in refused.stderr
        assert worker.stop() == 0
    before = site.outside.committed(site.group, site.topics.input)
    planned = safe(site, "reset", "--to-earliest")
    assert "Nothing was changed" in planned.stderr
    assert site.outside.committed(site.group, site.topics.input) == before
    done = safe(site, "reset", "--partition", "0", "--to-offset", "1", "--execute")
    assert done.stdout.splitlines()[-1] == f"{site.topics.input}/0: {before[0]} -> 1"
    with site.worker() as worker:
        site.await_rest()
        assert worker.stop() == 0
    run, problems = site.seen(repeats_allowed=True)
    assert problems == []
    assert Counter(Counter(record.header("ce_id") for record in run.results).values()) == {1: 2, 2: 2}
