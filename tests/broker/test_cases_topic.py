"""Test cases in a compacted topic: published batch by batch, read to the end, followed, and never seen in part."""

import json
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from consumer.case_sources.topic import Table
from consumer.errors import Fatal
from consumer.kafka.connection import Connection
from consumer.kafka.publisher import TableRecord, TableWriter, writing_table
from consumer.kafka.table_reader import TableReader
from tests.support.case_files import GOOD, a_case, event, write_batch
from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.feeder import Feeder
from tests.support.kafka_broker import KafkaBroker
from tests.support.outside import Outgoing, Outside, Record
from tests.support.site import Site
from tests.support.tables import SUITE, Log
from tests.support.waiting import wait_until
from tests.support.worker import Worker

pytestmark = pytest.mark.broker

SEED = 61
PARTITIONS = 4
BATCHES = make_batches(SEED, batches=4, cases_a_batch=6)
CALL_SECONDS = 30.0
SOON_SECONDS = 20.0
OUTAGE_SECONDS = 4.0
RECORDS_A_SECOND = 40
EXIT_UNUSABLE = 3


# --- the reader -------------------------------------------------------------------------------------------------------


class KafkaTransaction:
    """An open transaction of a foreign client, over partition 0."""

    def __init__(self, servers: str, topic: str, own_id: str | None = None) -> None:
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": servers, "transactional.id": own_id or uuid.uuid4().hex, "log_level": 2}
        )
        self._producer.init_transactions(CALL_SECONDS)
        self._producer.begin_transaction()

    def put(self, key: str, value: bytes | None) -> None:
        """Write one record, and wait until it is there."""
        self._producer.produce(self._topic, key=key, value=value, partition=0)
        assert self._producer.flush(CALL_SECONDS) == 0

    def commit(self) -> None:
        """Let readers see it."""
        self._producer.commit_transaction(CALL_SECONDS)

    def abort(self) -> None:
        """Let nobody see it ever."""
        self._producer.abort_transaction(CALL_SECONDS)


class KafkaLog:
    """A topic on a real broker, as the suite writes it."""

    def __init__(self, outside: Outside, topic: str) -> None:
        self._outside, self._topic = outside, topic

    def put(self, key: str, value: bytes | None) -> None:
        """Write one record, outside any transaction."""
        self._outside.produce(self._topic, [Outgoing(value, key.encode(), partition=0)])

    def begin(self) -> KafkaTransaction:
        """Open a transaction."""
        return KafkaTransaction(self._outside.bootstrap_servers, self._topic)


@pytest.fixture
def topic(outside: Outside) -> Iterator[str]:
    """An empty compacted topic."""
    name = f"t{uuid.uuid4().hex[:10]}.cases"
    outside.create_topic(name, config={"cleanup.policy": "compact"})
    yield name
    outside.delete_topic(name)


@pytest.mark.parametrize("behaviour", SUITE, ids=lambda behaviour: behaviour.__name__)
async def test_the_reader_behaves_as_the_one_in_memory(
    behaviour: Callable[[Table, Log], Awaitable[None]], outside: Outside, topic: str
) -> None:
    table = TableReader(Connection(outside.bootstrap_servers, {}), topic)
    try:
        await behaviour(table, KafkaLog(outside, topic))
    finally:
        await table.close()


async def test_a_topic_that_is_not_there_has_no_ends_and_is_not_made_by_asking(outside: Outside) -> None:
    table = TableReader(Connection(outside.bootstrap_servers, {}), "nowhere.cases")
    try:
        assert dict(await table.open()) == {}
    finally:
        await table.close()
    assert outside.partitions("nowhere.cases") == 0


# --- the writer -------------------------------------------------------------------------------------------------------


def writer_of(outside: Outside, topic: str, own_id: str) -> AbstractAsyncContextManager[TableWriter]:
    return writing_table(Connection(outside.bootstrap_servers, {}), topic, own_id, max_batch_bytes=1_048_588)


async def test_the_second_of_two_writers_takes_over_and_the_first_says_so(outside: Outside, topic: str) -> None:
    async def written_twice() -> None:
        async with writer_of(outside, topic, f"publish:{topic}") as first:
            await first.write([TableRecord(0, b"c/b/1", b"{}")], 1)
            async with writer_of(outside, topic, f"publish:{topic}") as second:
                await second.write([TableRecord(0, b"c/b/2", b"{}")], 2)
                await first.write([TableRecord(0, b"c/b/3", b"{}")], 3)

    with pytest.raises(Fatal, match=r"another writer of .* took over"):
        await written_twice()

    assert [record.key for record in outside.read(topic)] == [b"c/b/1", b"c/b/2"]
    assert outside.hanging([topic]) == []


# --- a site whose test cases are in a topic ---------------------------------------------------------------------------


@contextmanager
def site_with_a_topic(outside: Outside, folder: Path, cases: Path, **settings: str) -> Iterator[Site]:
    """An installation whose topic of test cases is made by `safe topics create`, and still empty."""
    name = f"t{uuid.uuid4().hex[:10]}.cases"
    site = Site.build(outside, folder, cases, partitions=PARTITIONS, settings=settings, expectations=f"topic:{name}")
    made = site.installation.run("topics", "create", "--partitions", str(PARTITIONS), folder=folder)
    assert made.returncode == 0, made.stderr
    assert f"{name}: created with 1 partition" in made.stdout.splitlines()
    assert not [line for line in made.stdout.splitlines() if line.startswith(f"warning: {name}")]
    yield site
    site.discard()


def topic_of(site: Site) -> str:
    return site.installation.expectations.removeprefix("topic:")


def published(site: Site, cases: Path, *arguments: str) -> str:
    """Publish a folder, and return what was said of what was sent, else all of it."""
    done = site.installation.run("publish-cases", str(cases), *arguments, folder=site.folder)
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()[-1]
    return said.partition(f" to {topic_of(site)}: ")[2] or said.removeprefix(f"{topic_of(site)} ")


def standing(site: Site) -> Mapping[str, bytes]:
    """What the topic holds, by key."""
    latest: dict[str, bytes | None] = {}
    for record in site.outside.read(topic_of(site)):
        assert record.key is not None
        latest[record.key.decode()] = record.value
    return {key: value for key, value in latest.items() if value is not None}


def scored(site: Site, *events: Any) -> None:
    """Send events to partition 0, and wait until each has its outcome."""
    site.send([Outgoing(json.dumps(each).encode(), partition=0) for each in events])
    site.await_rest(within_seconds=SOON_SECONDS)


def results(site: Site) -> list[Any]:
    return [record.json()["result"] for record in site.outside.read(site.topics.result)]


def dead_letters(site: Site) -> list[Record]:
    return site.outside.read(site.topics.dead_letter)


def test_a_worker_scores_by_a_topic_as_by_the_folder_it_was_filled_from(outside: Outside, tmp_path: Path) -> None:
    cases = write_batches(tmp_path / "cases", BATCHES)
    stream = list(event_stream(SEED, BATCHES, 400, partitions=PARTITIONS))
    with site_with_a_topic(outside, tmp_path, cases) as site:
        assert published(site, cases) == "24 new, 0 changed, 0 unchanged, 0 removed"
        assert published(site, cases) == "is up to date: 24 test cases of 4 batches"
        with site.worker() as worker:
            site.send(stream)
            site.await_rest()
            run, problems = site.seen()
            found = worker.total("safe_expectations_requests_total", source="topic", outcome="found")
            worker.stop()
        assert problems == []
        assert len(run.inputs) == len(stream)
        assert found > 0
        narrative = BATCHES[0].cases[0].entry["patient_payload"].encode()
        assert not [key for key, value in standing(site).items() if b'"patient_payload"' in value or narrative in value]

        with site.worker(name="heir"):  # reads the topic once more
            site.send(stream[:50])
            site.await_rest()
            _run, problems = site.seen()
        assert problems == []


def test_a_changed_test_case_is_followed_and_one_that_is_taken_away_is_not_found(
    outside: Outside, tmp_path: Path
) -> None:
    cases = tmp_path / "cases"
    write_batch(cases, "asthma_1", a_case("A-1"), a_case("A-2"))
    write_batch(cases, "asthma_2", a_case("A-3"))
    with site_with_a_topic(outside, tmp_path, cases) as site, site.worker():
        published(site, cases)
        scored(site, event("A-1", batch_id="asthma_1"))

        write_batch(cases, "asthma_1", a_case("A-1", ["stridor"]))
        assert published(site, cases) == "0 new, 1 changed, 1 unchanged, 1 removed"
        scored(site, event("A-1", batch_id="asthma_1"), event("A-2", batch_id="asthma_1"))

        (cases / "asthma_2.json").unlink()
        assert published(site, cases) == "is up to date: 1 test case of 1 batch"
        assert published(site, cases, "--prune") == "0 new, 0 changed, 1 unchanged, 1 removed"
        scored(site, event("A-3", batch_id="asthma_2"))

        first, second = results(site)
        assert (first["scores"]["CR"], first["label"]) == (1.0, "Pass")
        assert (second["scores"]["CR"], second["label"]) == (0.0, "Fail")
        reasons = [record.header("safe.dlq.reason") for record in dead_letters(site)]
        assert reasons == ["expectations_not_found", "expectations_not_found"]
        assert [record.json()["expected_cases"] for record in outside.read(site.topics.result)] == [2, 1]


def test_a_worker_is_ready_only_when_it_has_read_to_the_end(outside: Outside, tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    write_batch(cases, "asthma_1", a_case("A-1"))
    with site_with_a_topic(outside, tmp_path, cases) as site:
        published(site, cases)
        transaction = KafkaTransaction(outside.bootstrap_servers, topic_of(site))
        transaction.put("K07/asthma_2/A-2", json.dumps(a_case("A-2")).encode())
        worker = site.spawn("early")
        wait_until(lambda: answers(worker), within_seconds=CALL_SECONDS, what="it answers at all")
        reading = f"reading the test cases of {topic_of(site)}: 1 records so far, held up by an open transaction"
        wait_until(
            lambda: reading in worker.get("/readyz")[1], within_seconds=SOON_SECONDS, what="it says how far it has come"
        )
        site.send([Outgoing(json.dumps(event("A-1", batch_id="asthma_1")).encode(), partition=0)])
        assert not worker.is_ready()
        transaction.commit()
        worker.await_ready(within_seconds=SOON_SECONDS)
        site.await_rest(within_seconds=SOON_SECONDS)

        assert [result["label"] for result in results(site)] == ["Pass"]
        assert dead_letters(site) == []


def answers(worker: Worker) -> bool:
    try:
        return worker.get("/livez")[0] == 200
    except OSError:
        return False


def test_a_half_published_batch_is_never_seen(outside: Outside, tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    write_batch(cases, "asthma_1", a_case("A-1"))
    with site_with_a_topic(outside, tmp_path, cases) as site, site.worker() as worker:
        published(site, cases)
        transaction = KafkaTransaction(outside.bootstrap_servers, topic_of(site))
        transaction.put("K07/asthma_2/B-1", json.dumps(a_case("B-1")).encode())
        site.send([Outgoing(json.dumps(event("B-1", batch_id="asthma_2")).encode(), partition=1)])
        scored_elsewhere = event("A-1", batch_id="asthma_1")
        site.send([Outgoing(json.dumps(scored_elsewhere).encode(), partition=0)])
        wait_until(lambda: len(results(site)) == 1, within_seconds=SOON_SECONDS, what="the other partition goes on")
        wait_until(
            lambda: worker.total("safe_expectations_requests_total", source="topic", outcome="transient") > 0,
            within_seconds=SOON_SECONDS,
            what="the partition waits for the end of the transaction",
        )
        assert dead_letters(site) == []
        transaction.put("K07/asthma_2/B-2", json.dumps(a_case("B-2")).encode())
        transaction.commit()
        site.await_rest(within_seconds=SOON_SECONDS)

        assert {record.json()["expected_cases"] for record in outside.read(site.topics.result)} == {1, 2}
        assert dead_letters(site) == []


def test_a_worker_answers_while_it_reads_its_test_cases_for_the_first_time(outside: Outside, tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    write_batch(cases, "asthma_1", a_case("A-1"))
    with site_with_a_topic(outside, tmp_path, cases) as site:
        transaction = KafkaTransaction(outside.bootstrap_servers, topic_of(site))
        transaction.put("K07/asthma_1/A-1", json.dumps(a_case("A-1")).encode())
        worker = site.spawn("starting")
        wait_until(lambda: answers(worker), within_seconds=CALL_SECONDS, what="it answers at all")
        statuses = {path: worker.get(path)[0] for path in ("/livez", "/readyz", "/metrics")}
        assert statuses == {"/livez": 200, "/readyz": 503, "/metrics": 200}
        assert " starts as " not in worker.log_text(), "it has read them"
        transaction.commit()
        wait_until(lambda: worker.get("/readyz")[0] == 200, within_seconds=SOON_SECONDS, what="it is ready")


def test_what_a_killed_publisher_left_open_is_ended_by_the_next_one(outside: Outside, tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    write_batch(cases, "asthma_1", a_case("A-1"))
    with site_with_a_topic(outside, tmp_path, cases) as site:
        name = topic_of(site)
        killed = KafkaTransaction(outside.bootstrap_servers, name, own_id=f"safe-publish-cases:{name}")
        killed.put("K07/asthma_1/A-9", json.dumps(a_case("A-9")).encode())

        assert published(site, cases) == "1 new, 0 changed, 0 unchanged, 0 removed"
        assert standing(site).keys() == {"K07/asthma_1/A-1"}
        assert outside.hanging([name]) == []


def test_compaction_changes_no_answer(outside: Outside, tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    with site_with_a_topic(outside, tmp_path, cases) as site:
        name = topic_of(site)
        for setting, value in {
            "min.compaction.lag.ms": "0",
            "min.cleanable.dirty.ratio": "0.01",
            "segment.ms": "100",
            "delete.retention.ms": "0",
        }.items():
            outside.set_topic_config(name, setting, value)
        for version in range(6):
            write_batch(cases, "asthma_1", a_case("A-1", [f"wheeze {version}"]), a_case(f"B-{version}"))
            published(site, cases)
        write_batch(cases, "asthma_1", a_case("A-1"))
        published(site, cases)
        rounds = count()

        def compacted() -> bool:
            """Only what stands before the last segment is compacted, and only a new record begins another."""
            write_batch(cases, "other_1", a_case(f"O-{next(rounds)}"))
            published(site, cases)
            return sum(b"asthma_1" in (record.key or b"") for record in outside.read(name)) <= 5

        wait_until(compacted, within_seconds=90, what="the topic has been compacted", every_seconds=1.0)
        with site.worker():
            scored(site, event("A-1", batch_id="asthma_1"), event("B-3", batch_id="asthma_1"))

        assert [result["label"] for result in results(site)] == ["Pass"]
        assert [record.header("safe.dlq.reason") for record in dead_letters(site)] == ["expectations_not_found"]


def test_a_topic_that_vanishes_is_an_outage_and_no_reason_for_dead_letters(outside: Outside, tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    write_batch(cases, "asthma_1", a_case("A-1"))
    with site_with_a_topic(outside, tmp_path, cases) as site, site.worker() as worker:
        published(site, cases)
        scored(site, event("A-1", batch_id="asthma_1"))
        outside.delete_topic(topic_of(site))
        site.send([Outgoing(json.dumps(event("A-2", batch_id="asthma_1")).encode(), partition=0)])
        wait_until(
            lambda: "xpectations: the topic" in worker.get("/readyz")[1],
            within_seconds=SOON_SECONDS,
            what="the outage is told",
        )
        # As a broker would that makes topics of its own accord, or as an operator by mistake: empty.
        outside.create_topic(topic_of(site), config={"cleanup.policy": "compact"})
        wait_until(
            lambda: "has lost all of its test cases" in worker.get("/readyz")[1],
            within_seconds=SOON_SECONDS,
            what="the loss is told",
        )
        assert dead_letters(site) == []
        write_batch(cases, "asthma_1", a_case("A-1"), a_case("A-2"))
        published(site, cases)
        site.await_rest(within_seconds=SOON_SECONDS)
        worker.await_ready(within_seconds=SOON_SECONDS)

        assert [result["label"] for result in results(site)] == ["Pass", "Pass"]
        assert dead_letters(site) == []


def test_a_broker_that_goes_and_comes_back_costs_time_and_nothing_else(
    own_broker: Callable[..., KafkaBroker], tmp_path: Path
) -> None:
    broker = own_broker()
    first, second = BATCHES[:2], BATCHES[2:]
    early = list(event_stream(SEED, first, int((OUTAGE_SECONDS + 4) * RECORDS_A_SECOND), partitions=PARTITIONS))
    late = list(event_stream(SEED, second, 300, partitions=PARTITIONS))
    with Outside(broker.bootstrap_servers) as outside:
        cases = write_batches(tmp_path / "cases", BATCHES)
        with site_with_a_topic(outside, tmp_path, cases) as site, site.worker() as worker:
            for batch in first:
                published(site, cases, "--batch", batch.batch_id)
            with Feeder(outside, site.topics.input, early, records_a_second=RECORDS_A_SECOND) as feeder:
                wait_until(
                    lambda: worker.total("safe_records_total") > RECORDS_A_SECOND,
                    within_seconds=30,
                    what="traffic flows",
                )
                broker.stop(kill=True)  # to a reader, one that ends in order does the same
                lost_at = time.monotonic()
                wait_until(
                    lambda: time.monotonic() - lost_at > OUTAGE_SECONDS,
                    within_seconds=OUTAGE_SECONDS + 10,
                    what="the outage is over",
                )
                broker.start()
                wait_until(worker.is_ready, within_seconds=60, what="it is ready again")
                wait_until(lambda: feeder.is_done, within_seconds=60, what="all inputs are written")
            for batch in second:  # it still follows
                published(site, cases, "--batch", batch.batch_id)
            site.send(late)
            site.await_rest()
            run, problems = site.seen()
    assert problems == []
    assert len(run.inputs) == len(early) + len(late)


# --- what is wrong at start -------------------------------------------------------------------------------------------


def test_a_missing_topic_ends_worker_and_publisher_with_the_remedy(outside: Outside, tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    write_batch(cases, "asthma_1", a_case("A-1"))
    with site_with_a_topic(outside, tmp_path, cases) as site:
        gone = f"{topic_of(site)}.gone"
        installation = replace(site.installation, expectations=f"topic:{gone}")
        worker = installation.run("worker", folder=tmp_path)
        publisher = installation.run("publish-cases", str(cases), folder=tmp_path)

    assert (worker.returncode, publisher.returncode) == (EXIT_UNUSABLE, EXIT_UNUSABLE)
    missing = (
        f"missing topic: {gone} (SAFE_V0_EXPECTATIONS). If it has never existed, create it with `safe topics create`."
    )
    assert missing in worker.stderr.splitlines()[-1]
    assert f"there is no topic {gone}" in publisher.stderr.splitlines()[-1]
    assert "safe topics create" in publisher.stderr.splitlines()[-1]


def test_a_dry_run_says_the_same_and_writes_nothing(outside: Outside, tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    write_batch(cases, "asthma_1", a_case("A-1", patient_payload="An eight-year-old girl."))
    with site_with_a_topic(outside, tmp_path, cases, SAFE_V0_DELIVERY="at_least_once") as site:
        assert published(site, cases, "--dry-run") == "1 new, 0 changed, 0 unchanged, 0 removed"
        assert standing(site) == {}
        assert published(site, cases, "--with-narrative") == "1 new, 0 changed, 0 unchanged, 0 removed"
        assert published(site, cases) == "0 new, 1 changed, 0 unchanged, 0 removed"
        assert published(site, cases, "--dry-run") == "is up to date: 1 test case of 1 batch"
        assert outside.topic_config(topic_of(site))["cleanup.policy"] == "compact"
        with site.worker():
            scored(site, event("A-1", GOOD, batch_id="asthma_1"))
        assert [result["label"] for result in results(site)] == ["Pass"]
