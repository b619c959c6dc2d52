"""In which order a slice is written without transactions: the outputs, the changelog, then the offset."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from aiokafka.errors import InvalidTimestampError, KafkaError

from consumer.errors import PartitionLost
from consumer.kafka.brokers_clock import BrokersClock
from consumer.kafka.connection import Connection
from consumer.kafka.protocol import Identity
from consumer.kafka.writer import PlainWriter
from tests.support.producer import RecordingProducer

WITHIN_SECONDS = 10.0
THEIRS = 1_795_291_200_000
OURS = THEIRS - 10 * 86_400_000
HEADERS = [("safe.group", b"safe-v0")]


@pytest.fixture
def producer() -> RecordingProducer:
    return RecordingProducer()


@pytest.fixture
def clock() -> BrokersClock:
    return BrokersClock(own_ms=lambda: OURS)


def plain(producer: RecordingProducer, clock: BrokersClock | None = None) -> PlainWriter:
    async def commit_offset(offset: int, note: str) -> None:
        producer.steps.append(f"offset {offset} {note!r}")

    made = PlainWriter(
        Connection("127.0.0.1:1", {}), "input", clock or BrokersClock(),
        deadline_seconds=5.0, changelog="state", timed_topics=("scored", "state"), commit_offset=commit_offset,
    )  # fmt: skip
    made._producer = cast("Any", producer)
    return made


# the epochs before and after, and whether somebody else must have had the transactional id in between
EPOCHS = [
    ((7, 4), (7, 5), False),  # started again, nothing was open
    ((7, 4), (7, 6), False),  # ended what was open, or that was ended because it took too long
    ((7, 4), (7, 7), True),
    ((7, 4), (7, 12), True),
    ((7, 32_766), (8, 0), False),  # the epochs were used up: nobody can tell
]


@pytest.mark.parametrize(("before", "after", "another"), EPOCHS)
def test_epochs_tell_whether_another_producer_has_been_there(
    before: tuple[int, int], after: tuple[int, int], *, another: bool
) -> None:
    assert Identity("id", *after).tells_of_another_since(Identity("id", *before)) is another


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_SECONDS):
        while not condition():  # noqa: ASYNC110 - the writer offers no event for it
            await asyncio.sleep(0)


def filled(made: PlainWriter) -> Any:
    """A slice with records for three partitions, the changelog's among them."""
    outgoing = made.outgoing(0)
    for topic, partition in (("state", 1), ("result", 1), ("report", 2), ("result", 1)):
        outgoing.append(topic, partition, b"key", b"value", HEADERS)
    return outgoing


@pytest.mark.parametrize("append_time", [None, THEIRS])
async def test_without_transactions_an_acknowledgement_tells_the_time_if_the_topic_has_the_brokers(
    producer: RecordingProducer, clock: BrokersClock, append_time: int | None
) -> None:
    made = plain(producer, clock)
    producer.append_time = append_time
    await made.learn_time("scored", 1, b"mark", HEADERS)
    assert producer.steps == [], "a mark would be seen"
    await made.commit(filled(made), 42, "")
    assert clock.is_known is (append_time is not None)
    assert clock.now_ms() // 60_000 == (append_time or OURS) // 60_000


async def test_a_time_that_the_brokers_refuse_is_named(producer: RecordingProducer) -> None:
    producer.failures["acknowledged"] = InvalidTimestampError()
    made = plain(producer)
    with pytest.raises(PartitionLost, match="the brokers refuse the time of the records"):
        await made.commit(filled(made), 42, "")


async def test_without_transactions_outputs_come_first_then_the_changelog_then_the_offset(
    producer: RecordingProducer,
) -> None:
    made = plain(producer)
    producer.acknowledge.clear()
    committing = asyncio.create_task(made.commit(filled(made), 42, "transactions=7"))
    await until(lambda: len(producer.steps) == 2)
    for _ in range(20):
        await asyncio.sleep(0)
    assert sorted(producer.steps) == ["send report/2 x1", "send result/1 x2"]
    producer.acknowledge.set()
    await committing
    assert producer.steps[4:] == ["send state/1 x1", "acknowledged state/1", "offset 42 'transactions=7'"]


@pytest.mark.parametrize("step", ["send", "acknowledged"])
async def test_without_transactions_too_no_offset_follows_a_failed_send(producer: RecordingProducer, step: str) -> None:
    made = plain(producer)
    producer.failures[step] = KafkaError("refused")
    with pytest.raises(PartitionLost):
        await made.commit(filled(made), 42, "")
    assert not [each for each in producer.steps if each.startswith(("offset", "send state"))]


async def test_without_transactions_a_mark_is_a_plain_record(producer: RecordingProducer) -> None:
    assert await plain(producer).mark("state", 1, b"mark", HEADERS) == 70
    assert producer.steps == ["send state/1 x1", "acknowledged state/1"]
    assert producer.written == [("state", 1, -1, b"mark", None)], "no broker refuses a record without a time"
