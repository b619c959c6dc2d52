"""A client that is not SAFE in its consumer groups: it gets nothing, or SAFE serves nothing and says who is there.

And the way there: the versions before this one share their groups with any client, and are exchanged one by one.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from consumer.wire.keys import PROGRESS_KEY
from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.feeder import SteadyFeeder
from tests.support.kafka_broker import PROJECT
from tests.support.outside import CALL_SECONDS
from tests.support.site import Site
from tests.support.stranger import CLIENT_ID, Stranger
from tests.support.waiting import wait_until
from tests.support.worker import Worker, why_it_ended

pytestmark = pytest.mark.broker

SEED = 71
BATCHES = make_batches(SEED, batches=4, cases_a_batch=4)
PARTITIONS = 4
WITHIN_SECONDS = 60.0
EXIT_UNUSABLE = 3
QUICK = {"SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS": "3"}

CLIENTS: dict[str, dict[str, Any]] = {
    "defaults": {},  # range, roundrobin
    "round robin": {"partition_assignment_strategy": "roundrobin"},
    "newer protocol": {"group_protocol": "consumer"},
}


@pytest.fixture
def site(site_over: Callable[..., Site], tmp_path: Path) -> Site:
    return site_over(write_batches(tmp_path / "cases", BATCHES), partitions=PARTITIONS, settings=QUICK)


def stranger(site: Site, client: str, role: str = "scorer", **more: Any) -> Stranger:
    """A client that wants what one role reads."""
    group = site.group if role == "scorer" else f"{site.group}.aggregator"
    topic = site.topics.input if role == "scorer" else site.topics.scored
    return Stranger(site.outside.bootstrap_servers, group, topic, **CLIENTS[client], **more)


def told(site: Site, **settings: str) -> Site:
    """The same installation with other settings."""
    changed = replace(site.installation, settings={**site.installation.settings, **settings})
    return Site(site.outside, site.folder, changed, site.oracle, site.workers)


def with_code(site: Site, name: str, code: str, **settings: str) -> Site:
    """The same installation by a SAFE that this code has changed."""
    folder = site.folder / name
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(code, encoding="utf-8")
    return told(site, PYTHONPATH=f"{folder}{os.pathsep}{PROJECT}", **settings)


def assignors(site: Site) -> tuple[str, str]:
    """What the groups of both roles use."""
    groups = [site.group, f"{site.group}.aggregator"]
    found = site.outside.admin.describe_consumer_groups(groups)
    scorer, aggregator = (found[group].result(CALL_SECONDS).partition_assignor for group in groups)
    return scorer, aggregator


OWN = ("safe-roundrobin", "safe-sticky")
EARLIER = ("roundrobin", "sticky")


def shares(site: Site) -> list[int]:
    """How many partitions each member of the scorers' group has."""
    return sorted(len(partitions) for partitions in site.outside.members(site.group).values())


def await_refusal(other: Stranger) -> None:
    wait_until(lambda: other.is_refused, within_seconds=WITHIN_SECONDS, what="the stranger is refused")


# --- who comes second is kept out -------------------------------------------------------------------------------------


@pytest.mark.provokes_warnings
def test_a_stranger_that_comes_later_gets_nothing_and_disturbs_nobody(site: Site) -> None:
    stream = list(event_stream(SEED, BATCHES, 90, partitions=PARTITIONS, repeated=0.5))
    with site.worker() as worker:
        generations = worker.log_text().count("partitions assigned")
        for at, client in enumerate(CLIENTS):
            site.send(stream[30 * at : 30 * at + 30])
            with stranger(site, client) as of_the_input, stranger(site, client, "aggregator") as of_scored:
                for other in (of_the_input, of_scored):
                    await_refusal(other)
                assert worker.is_ready()
            assert of_the_input.partitions is of_scored.partitions is None
        site.await_rest()
        assert shares(site) == [PARTITIONS]
        assert assignors(site) == OWN
        assert worker.log_text().count("partitions assigned") == generations
        assert worker.total("safe_group_strangers") == 0
        run, problems = site.seen()
    assert problems == []
    assert len(run.inputs) == len(stream)


def test_a_group_stays_guarded_whatever_an_open_transaction_has_left_at_the_end_of_its_state(site: Site) -> None:
    with site.worker(name="first"):
        site.send(list(event_stream(SEED, BATCHES, 30, partitions=PARTITIONS)))
        site.await_rest()
    state = site.topics.state
    row = [record for record in site.outside.read(state) if record.key == PROGRESS_KEY][-1]
    killed = [transaction_of_the_aggregator(site, partition) for partition in range(PARTITIONS)]
    for partition, producer in enumerate(killed):
        for number in range(100):
            producer.produce(state, row.value, f"S1/B/{number}".encode(), partition, headers=list(row.headers))
        assert producer.flush(CALL_SECONDS) == 0
    for name in ("second", "third"):
        with site.worker(name=name) as worker:
            assert "the consumer group is not guarded" not in worker.log_text()
            assert assignors(site) == OWN


def transaction_of_the_aggregator(site: Site, partition: int) -> Producer:
    """One that it has begun, and was killed in."""
    name = f"{site.group}:{site.topics.scored}:{partition}"
    producer = Producer({"bootstrap.servers": site.outside.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(CALL_SECONDS)
    producer.begin_transaction()
    return producer


# --- who was first has the group, and that is said --------------------------------------------------------------------

FIRST = [
    ("defaults", "scorer"),
    ("round robin", "aggregator"),
    ("newer protocol", "scorer"),
    ("newer protocol", "aggregator"),
]


@pytest.mark.parametrize(("client", "role"), FIRST)
def test_where_a_stranger_was_first_nothing_is_served_until_it_has_left(site: Site, client: str, role: str) -> None:
    stream = list(event_stream(SEED, BATCHES, 30, partitions=PARTITIONS, repeated=0.5))
    with stranger(site, client, role, enable_auto_commit=False) as other:
        wait_until(lambda: other.partitions, within_seconds=WITHIN_SECONDS, what="the stranger has partitions")
        site.send(stream)
        worker = site.spawn("worker")
        wait_until(lambda: CLIENT_ID in readiness(worker), within_seconds=WITHIN_SECONDS, what="it is named")
        group = site.group if role == "scorer" else f"{site.group}.aggregator"
        assert f"{role}: group {group} has members that are not SAFE of this version" in readiness(worker)
        assert f'client id \\"{CLIENT_ID}\\" on 127.0.0.1' in readiness(worker)
        assert worker.series("safe_group_strangers")[(("consumer_group", group),)] == 1
        assert worker.total("safe_group_strangers") == 1, "the other group is SAFE's own"
        read = site.topics.input if role == "scorer" else site.topics.scored
        assert site.outside.committed(group, read) == {}
        assert other.partitions is not None
    worker.await_ready()
    site.await_rest()
    run, problems = site.seen()
    assert problems == []
    assert len(run.inputs) == len(stream)
    assert assignors(site) == OWN
    assert worker.total("safe_group_strangers") == 0
    assert worker.stop() == 0
    said = [line["event"] for line in worker.log_lines() if "consumer group" in str(line.get("event"))]
    assert said == ["others have the consumer group", "the consumer group has SAFE's workers alone again"]


def readiness(worker: Worker) -> str:
    """What /readyz says, nothing while nobody answers."""
    try:
        return worker.get("/readyz")[1]
    except OSError:
        return ""


SOON = "import consumer.worker.stranger_watch as watch\n\nwatch.LASTS_SECONDS = 3.0\n"


def test_a_worker_whose_group_stays_with_a_stranger_ends_with_its_name(site: Site) -> None:
    with stranger(site, "defaults") as other:
        wait_until(lambda: other.partitions, within_seconds=WITHIN_SECONDS, what="the stranger has partitions")
        worker = with_code(site, "soon", SOON).spawn("worker")
        assert worker.wait(within_seconds=WITHIN_SECONDS) == EXIT_UNUSABLE
    sentence = why_it_ended(worker.log_text())
    assert f"group {site.group} has had members that are not SAFE of this version" in sentence
    assert f'client id "{CLIENT_ID}" on 127.0.0.1' in sentence
    assert "SAFE_V0_KAFKA_GROUP_ID" in sentence


@pytest.mark.provokes_warnings
def test_a_group_that_a_stranger_had_while_no_worker_ran_is_ours_alone_afterwards(site: Site) -> None:
    site.send(list(event_stream(SEED, BATCHES, 12, partitions=PARTITIONS, repeated=0.5)))
    with stranger(site, "newer protocol") as other:
        wait_until(lambda: other.read == 12, within_seconds=WITHIN_SECONDS, what="the stranger has read everything")
    with site.worker(), stranger(site, "newer protocol") as again:
        await_refusal(again)
        assert assignors(site) == OWN
        assert shares(site) == [PARTITIONS]


# --- the roll ---------------------------------------------------------------------------------------------------------

# A SAFE of before: it has the client's own assignors, and marks nothing.
BEFORE = """
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

import consumer.kafka.assignors as assignors

plain = {"sticky": StickyPartitionAssignor, "round_robin": RoundRobinPartitionAssignor}
assignors.offered = lambda assignor, *, guarded: (plain[assignor],)
"""
GUARD: Mapping[bool, Mapping[str, str]] = {
    guarded: {"SAFE_V0_KAFKA_GROUP_GUARD": str(guarded).lower()} for guarded in (True, False)
}


class Crew:
    """Two workers of an installation, which are exchanged one by one while records come."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._workers: list[Worker] = []

    def become(self, name: str, version: Site) -> None:
        """Exchange each worker for one of another version or with other settings."""
        for number in (1, 2):
            if len(self._workers) == 2:
                assert self._workers.pop(0).stop() == 0
            self._workers.append(version.spawn(f"{name} {number}").await_ready())
        half = PARTITIONS // 2
        wait_until(
            lambda: shares(self._site) == [half, half], within_seconds=WITHIN_SECONDS, what="they share the input"
        )


def test_workers_of_an_earlier_version_are_exchanged_in_two_steps_and_back_under_load(site: Site) -> None:
    before = with_code(site, "before", BEFORE, **GUARD[False])
    stream = list(event_stream(SEED, BATCHES, 20_000, partitions=PARTITIONS, repeated=0.5))
    crew = Crew(site)
    crew.become("before", before)
    assert assignors(site) == EARLIER
    load = SteadyFeeder(site.outside.bootstrap_servers, site.topics.input, iter(stream), a_second=100)
    with load:
        crew.become("step one", site)  # nothing is set: the state says that an earlier version had the group
        assert assignors(site) == OWN
        crew.become("step two", told(site, **GUARD[True]))
        crew.become("nothing set", site)  # the state says that the group was guarded
        assert assignors(site) == OWN
        with stranger(site, "defaults") as other:
            await_refusal(other)
        crew.become("step one again", told(site, **GUARD[False]))
        crew.become("before again", before)
        assert assignors(site) == EARLIER
        load.pause()
        site.await_rest()
        run, problems = site.seen()
    assert not other.partitions
    assert problems == []
    assert 1_000 < len(run.inputs) < len(stream), "the load has lasted as long as the exchange"


def test_a_guarded_worker_waits_for_those_of_an_earlier_version_and_says_what_to_do(site: Site) -> None:
    before = with_code(site, "before", BEFORE, **GUARD[False])
    with before.worker(name="before"):
        early = told(site, **GUARD[True]).spawn("early")
        wait_until(
            lambda: "not SAFE of this version" in readiness(early), within_seconds=WITHIN_SECONDS, what="it waits"
        )
        assert shares(site) == [PARTITIONS]
    early.await_ready()
