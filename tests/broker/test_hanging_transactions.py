"""A transaction that stays open: what is behind it is waited for, and everybody is told; nothing looks like rest."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.outside import Outside
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Worker

pytestmark = pytest.mark.broker

SEED = 73
PARTITIONS = 4
BATCHES = make_batches(SEED, batches=16, cases_a_batch=6)
CALL_SECONDS = 30.0
HELD_UP_SECONDS = 30.0
TOLD_SECONDS = 60.0  # of which half a minute is the rule, and the rest is for a busy machine
Place = tuple[str, int]


class HangingProducer:
    """A foreign client that writes into one transaction, and does not end it until it is told to."""

    def __init__(self, servers: str) -> None:
        self.places: set[Place] = set()
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": uuid.uuid4().hex,
                "transaction.timeout.ms": 300_000,
                "log_level": 2,
            }
        )
        self._producer.init_transactions(CALL_SECONDS)
        self._producer.begin_transaction()

    def write(self, *places: Place) -> None:
        """Write one record to each partition, and wait until it is there."""
        for topic, partition in places:
            self._producer.produce(topic, key=b"hanging", value=b"{}", partition=partition)
        assert self._producer.flush(CALL_SECONDS) == 0
        self.places |= set(places)

    def abort(self) -> None:
        self._producer.abort_transaction(CALL_SECONDS)


def by_place(worker: Worker, name: str) -> Mapping[Place, float]:
    """The samples of a gauge by topic and partition."""
    found = {tuple(dict(labels).values()): value for labels, value in worker.series(name).items()}
    return {(topic, int(partition)): value for (partition, topic), value in found.items()}


@pytest.fixture
def site(outside: Outside, tmp_path: Path) -> Iterator[Site]:
    """An installation whose test cases are in a topic, too."""
    cases = write_batches(tmp_path / "cases", BATCHES)
    name = f"t{uuid.uuid4().hex[:10]}.cases"
    outside.create_topic(name, config={"cleanup.policy": "compact"})
    site = Site.build(outside, tmp_path, cases, partitions=PARTITIONS, expectations=f"topic:{name}")
    published = site.installation.run("publish-cases", str(cases), folder=site.folder)
    assert published.returncode == 0, published.stderr
    yield site
    site.discard()
    outside.delete_topic(name)


@contextmanager
def serving_but(site: Site, *unserved: Place) -> Iterator[Worker]:
    """A worker that has begun to serve all partitions but these."""
    worker = site.spawn("worker")

    def serves() -> bool:
        waits = by_place(worker, "safe_partition_waiting_seconds") if worker.exit_code is None else {}
        return len(waits) == 2 * PARTITIONS and not any(waits[place] for place in waits.keys() - set(unserved))

    def answers_and_serves() -> bool:
        try:
            return serves()
        except OSError:
            return False

    wait_until(answers_and_serves, within_seconds=TOLD_SECONDS, what="it serves what nothing holds up")
    yield worker


def test_a_transaction_that_stays_open_is_named_wherever_it_hides_records_and_costs_none(
    outside: Outside, site: Site
) -> None:
    topics, cases = site.topics, site.installation.expectations.removeprefix("topic:")
    incoming, restored = (topics.input, 0), (topics.state, 2)
    passed_on, test_cases = (topics.scored, 1), (cases, 0)
    hanging = HangingProducer(outside.bootstrap_servers)
    hanging.write(incoming, restored)
    with serving_but(site, (topics.scored, 2), incoming) as worker:
        hanging.write(passed_on, test_cases)
        stream = list(event_stream(SEED, BATCHES, 200, partitions=PARTITIONS))
        site.send(stream)

        def all_named() -> str | None:
            said = worker.get("/readyz")[1]
            named = [f"partition {at} of {topic} is held up at offset" in said for topic, at in hanging.places]
            return said if all(named) else None

        said = wait_until(all_named, within_seconds=TOLD_SECONDS, what="each partition is named")
        assert said.count("by an open transaction of producer ") == len(hanging.places)
        assert said.count("which is not this worker's") == len(hanging.places)
        held_up = by_place(worker, "safe_partition_held_up_seconds")
        assert {place for place, seconds in held_up.items() if seconds >= HELD_UP_SECONDS} == hanging.places
        behind = sum(record.partition == incoming[1] for record in stream)
        assert by_place(worker, "safe_consumer_lag_records")[incoming] == behind + 1

        def waiting() -> set[Place]:
            waits = by_place(worker, "safe_partition_waiting_seconds")
            return {place for place, seconds in waits.items() if seconds}

        expected = {incoming, passed_on, (topics.scored, 2)}
        wait_until(lambda: waiting() == expected, within_seconds=CALL_SECONDS, what=f"these wait: {expected}")
        assert by_place(worker, "safe_consumer_lag_records")[passed_on] > 1

        hanging.abort()
        site.await_rest()
        worker.await_ready()
        wait_until(
            lambda: not any(by_place(worker, "safe_partition_held_up_seconds").values()),
            within_seconds=TOLD_SECONDS,
            what="nothing is held up any more",
        )
        _run, problems = site.seen()
    assert problems == []
    [ended] = [line for line in worker.log_lines() if line["event"] == "a partition is no longer held up"][-1:]
    assert ended["level"] == "info"


def test_scorers_do_not_wait_for_a_transaction_that_stays_open_in_what_they_write(outside: Outside, site: Site) -> None:
    hanging = HangingProducer(outside.bootstrap_servers)
    hanging.write(*((site.topics.scored, partition) for partition in range(PARTITIONS)))
    with site.worker(role="scorer") as worker:
        site.send(list(event_stream(SEED, BATCHES, 20, partitions=PARTITIONS)))
        wait_until(
            lambda: outside.lag(site.group, site.topics.input) == 0,
            within_seconds=CALL_SECONDS,
            what="all inputs are scored",
        )
        assert worker.series("safe_clock_skew_seconds"), "it knows the brokers' time"
        assert not [line for line in worker.log_lines() if line["event"] == "the brokers do not tell the time"]
    hanging.abort()
