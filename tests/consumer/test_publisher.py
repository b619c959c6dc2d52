"""What is published is acknowledged or named as a failure; transactions end, and the producer is dropped."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.errors import InvalidTimestampError, KafkaError, ProducerFenced, UnknownTopicOrPartitionError
from aiokafka.producer.message_accumulator import BatchBuilder
from typing_extensions import override

from consumer.errors import Fatal, Transient
from consumer.kafka import publisher
from consumer.kafka.connection import Connection
from consumer.kafka.publisher import (
    Copy,
    Refused,
    TableRecord,
    TableWriter,
    publishing_events,
    republishing,
    writing_table,
)
from consumer.settings import Settings
from tests.support.producer import RecordingProducer

NOWHERE = Connection("127.0.0.1:1", {})
SETTINGS = Settings(kafka_bootstrap_servers="127.0.0.1:1")
ROWS = [TableRecord(0, b"c/b/1", b"{}"), TableRecord(1, b"c/b/2", None)]


class StartedProducer(RecordingProducer):
    """A producer that is started, too, with some options; and that sends single records."""

    def __init__(self) -> None:
        super().__init__()
        self.options: dict[str, Any] = {}

    def made(self, **options: Any) -> "StartedProducer":
        self.options = options
        return self

    async def start(self) -> None:
        await self._step("start")

    async def send(self, topic: str, *record: Any) -> "asyncio.Future[Any]":
        await self._step(f"send {topic} {record!r}")
        return asyncio.ensure_future(self._acknowledged(topic, 0))

    @override
    def create_batch(self) -> BatchBuilder:
        self.steps.append("batch")
        return super().create_batch()


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> StartedProducer:
    recording = StartedProducer()

    async def dispose(given: Any) -> None:
        assert given is recording
        recording.steps.append("dispose")

    async def reach(_options: Any) -> None:
        recording.steps.append("reach")

    monkeypatch.setattr(publisher, "AIOKafkaProducer", recording.made)
    monkeypatch.setattr(publisher, "dispose", dispose)
    monkeypatch.setattr(publisher, "reach", reach)
    return recording


# --- events -----------------------------------------------------------------------------------------------------------


def nothing() -> None:
    """The caller's own part, where it has none."""


def fail() -> None:
    raise ZeroDivisionError


async def publish(count: int, then: Callable[[], None] = nothing) -> None:
    async with publishing_events(SETTINGS) as events:
        for number in range(count):
            await events.publish("input", b"k", b"%d" % number)
        then()


async def test_events_are_published_in_order_and_all_acknowledged_in_the_end(producer: StartedProducer) -> None:
    await publish(2)
    assert producer.steps == [
        "reach", "start", "send input (b'0', b'k')", "send input (b'1', b'k')",
        "acknowledged input/0", "acknowledged input/0", "dispose",
    ]  # fmt: skip
    assert producer.options["acks"] == "all"


async def test_an_event_that_is_refused_is_told_with_the_next_one_or_in_the_end(producer: StartedProducer) -> None:
    producer.failures["acknowledged"] = KafkaError("refused")

    async def publish_again() -> None:
        async with publishing_events(SETTINGS) as events:
            await events.publish("input", b"k", b"1")
            for _ in range(5):
                await asyncio.sleep(0)
            await events.publish("input", b"k", b"2")

    with pytest.raises(Fatal, match="a record was not accepted: topic input: Kafka reports KafkaError"):
        await publish(1)
    with pytest.raises(Fatal, match="a record was not accepted: topic input: Kafka reports KafkaError"):
        await publish_again()
    assert producer.steps.count("dispose") == 2


async def test_an_event_that_cannot_be_sent_names_the_topic_and_the_remedy(producer: StartedProducer) -> None:
    producer.failures["send"] = UnknownTopicOrPartitionError()
    with pytest.raises(Fatal, match=r"nothing can be published: topic input: .*`safe topics create`"):
        await publish(1)
    assert producer.steps[-1] == "dispose"


async def test_what_is_not_acknowledged_in_time_is_counted(
    producer: StartedProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "_TIMEOUT_SECONDS", 0.01)
    producer.acknowledge.clear()
    with pytest.raises(Fatal, match=r"2 records were not acknowledged within 0\.01 s"):
        await publish(2)
    assert producer.steps[-1] == "dispose"
    producer.acknowledge.set()


async def test_after_an_error_of_the_caller_nothing_is_waited_for(producer: StartedProducer) -> None:
    producer.acknowledge.clear()
    with pytest.raises(ZeroDivisionError):
        await publish(1, fail)
    assert producer.steps[-1] == "dispose"
    producer.acknowledge.set()


async def test_a_producer_that_does_not_start_is_dropped_and_the_servers_are_named(producer: StartedProducer) -> None:
    producer.failures["start"] = KafkaError("nobody there")
    with pytest.raises(
        Fatal, match=r"the brokers at 127\.0\.0\.1:1 cannot be used \(the brokers: Kafka reports KafkaError"
    ):
        await publish(0)
    assert producer.steps == ["reach", "start", "dispose"]


# --- tables -----------------------------------------------------------------------------------------------------------


def writing(own_id: str | None = "publish:cases") -> Any:
    return writing_table(NOWHERE, "cases", own_id, max_batch_bytes=1_000)


async def test_the_rows_of_one_call_are_in_one_transaction(producer: StartedProducer) -> None:
    async with writing() as table:
        await table.write(ROWS, 1)
    steps = [step for step in producer.steps if step != "batch"]
    assert (steps[:2], steps[-2:]) == (["start", "begin"], ["commit", "dispose"])
    assert sorted(steps[2:-2]) == [
        "acknowledged cases/0", "acknowledged cases/1", "send cases/0 x1", "send cases/1 x1",
    ]  # fmt: skip
    options = producer.options
    assert (options["transactional_id"], options["transaction_timeout_ms"]) == ("publish:cases", 60_000)
    assert options["max_batch_size"] == 1_000


async def test_without_an_id_there_is_no_transaction(producer: StartedProducer) -> None:
    async with writing(None) as table:
        await table.write(ROWS, 1)
    assert not {"begin", "commit", "abort"} & set(producer.steps)
    assert producer.options["transactional_id"] is None


async def write(then: Callable[[], None] = nothing) -> None:
    async with writing() as table:
        assert isinstance(table, TableWriter)
        await table.write(ROWS, 1)
        then()


# the step that fails, whether the transaction is then aborted
FAILING = [("start", False), ("begin", False), ("send", True), ("acknowledged", True), ("commit", False)]


@pytest.mark.parametrize(("step", "aborted"), FAILING)
async def test_a_transaction_that_cannot_be_written_is_aborted_but_not_one_whose_end_was_asked_for(
    producer: StartedProducer, step: str, *, aborted: bool
) -> None:
    producer.failures[step] = KafkaError("away")
    with pytest.raises(
        Fatal, match=r"^topic cases at 127\.0\.0\.1:1: Kafka reports KafkaError.*: run the command again$"
    ):
        await write()
    assert ("abort" in producer.steps) is aborted
    assert producer.steps[-1] == "dispose"
    assert step == "commit" or "commit" not in producer.steps


async def test_a_transaction_that_is_interrupted_is_aborted(producer: StartedProducer) -> None:
    producer.acknowledge.clear()
    writing_it = asyncio.create_task(write())
    while not [step for step in producer.steps if step.startswith("send")]:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0)
    writing_it.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing_it
    assert producer.steps[-2:] == ["abort", "dispose"]
    producer.acknowledge.set()


async def test_a_writer_that_another_one_has_replaced_says_so(producer: StartedProducer) -> None:
    producer.failures["acknowledged"] = ProducerFenced()
    with pytest.raises(Fatal, match="another writer of cases took over"):
        await write()


async def test_after_a_commit_that_took_too_long_nothing_more_is_written(
    producer: StartedProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "_DOUBTFUL_COMMIT_SECONDS", -1.0)
    with pytest.raises(Fatal, match="took too long to commit to cases"):
        await write()
    assert producer.steps[-2:] == ["commit", "dispose"]


async def test_an_error_of_the_caller_after_a_commit_aborts_nothing(producer: StartedProducer) -> None:
    with pytest.raises(ZeroDivisionError):
        await write(fail)
    assert producer.steps[-2:] == ["commit", "dispose"]


# --- copies of earlier records ----------------------------------------------------------------------------------------

# time, key, value, whether the client's own way would alter or refuse it
COPIES = [
    (5, b"k", b"v", False),
    (0, None, b"v", False),
    (5, b"k", None, False),
    (-1, b"k", b"v", True),
    (5, None, None, True),
]


@pytest.mark.parametrize(("timestamp", "key", "value", "alone"), COPIES)
async def test_a_copy_that_the_client_would_alter_or_refuse_goes_in_a_batch_of_its_own(
    producer: StartedProducer, timestamp: int, key: bytes | None, value: bytes | None, *, alone: bool
) -> None:
    async with republishing(NOWHERE) as copies:
        await (await copies.publish(Copy("input", 3, timestamp, key, value, [("n", b"")])))
    own_way = f"send input {(value, key, 3, timestamp, [('n', b'')])!r}"
    assert producer.steps[1:-2] == (["batch", "send input/3 x1"] if alone else [own_way])
    assert producer.steps[-1] == "dispose"
    assert producer.options["compression_type"] == "zstd"


async def test_a_copy_that_the_broker_will_never_take_is_refused_alone(producer: StartedProducer) -> None:
    async with republishing(NOWHERE) as copies:
        producer.failures["acknowledged"] = InvalidTimestampError()
        refused = await copies.publish(Copy("input", 0, 5, b"k", b"v", []))
        with pytest.raises(
            Refused, match="the broker refuses the record: topic input: the brokers refuse the time of the records"
        ):
            await refused
        producer.failures["acknowledged"] = KafkaError("away")
        late = await copies.publish(Copy("input", 0, 5, b"k", b"v", []))
        with pytest.raises(Transient, match=r"^input: Kafka reports KafkaError"):
            await late


async def test_leaving_waits_for_no_acknowledgement(producer: StartedProducer) -> None:
    producer.acknowledge.clear()
    async with republishing(NOWHERE) as copies:
        waiting = await copies.publish(Copy("input", 0, 5, b"k", b"v", []))
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    producer.acknowledge.set()


async def test_a_refused_time_says_what_to_set_right(producer: StartedProducer) -> None:
    producer.failures["acknowledged"] = InvalidTimestampError()
    with pytest.raises(Fatal, match=r"topic cases.*set the clock of this machine right, or the brokers'"):
        await write()
