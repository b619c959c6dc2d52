"""What a slice writes, and when it is enough for one transaction."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, KafkaTimeoutError, ProducerFenced, RequestTimedOutError
from aiokafka.producer.message_accumulator import BatchBuilder

from consumer.errors import PartitionLost
from consumer.kafka.brokers_clock import BrokersClock
from consumer.kafka.connection import Connection
from consumer.kafka.writer import Outgoing, PlainWriter, batches_of

MIB = 1024 * 1024


@pytest.fixture
def outgoing() -> Outgoing:
    return Outgoing(0)


def test_a_slice_is_full_once_its_values_come_to_16_mib_wherever_they_go(outgoing: Outgoing) -> None:
    for partition in range(31):
        outgoing.append("scored", partition % 4, b"key", bytes(MIB // 2), [])
        outgoing.append("state", 0, b"key", None, [])
        assert not outgoing.is_full
    outgoing.append("scored", 0, b"key", bytes(MIB // 2), [])
    assert outgoing.is_full


def test_where_commits_are_slow_a_slice_is_full_earlier() -> None:
    outgoing = Outgoing(0, 1 / 8)
    outgoing.append("scored", 0, b"key", bytes(MIB), [])
    assert not outgoing.is_full
    outgoing.append("scored", 0, b"key", bytes(MIB), [])
    assert outgoing.is_full


def test_what_is_compressed_counts_as_it_was(outgoing: Outgoing) -> None:
    assert outgoing.append_compressed("dead", 0, b"key", bytes(16 * MIB), [], max_bytes=MIB)
    assert outgoing.is_full


def test_what_is_not_written_fills_nothing(outgoing: Outgoing) -> None:
    assert not outgoing.append_compressed("dead", 0, b"key", bytes(65 * MIB), [], max_bytes=MIB)
    assert not outgoing.is_full


# --- batches ----------------------------------------------------------------------------------------------------------


async def test_what_several_slices_write_to_one_partition_is_sent_together_and_in_order() -> None:
    slices = [Outgoing(0), Outgoing(0)]
    for at, outgoing in enumerate(slices):
        outgoing.append("scored", 0, b"%d" % at, b"x", [])
        outgoing.append("scored", at, b"k", b"x", [])
    batches = await batches_of(slices, is_transactional=True)
    counts = {place: [batch.record_count() for batch in each] for place, each in batches.items()}
    assert counts == {("scored", 0): [3], ("scored", 1): [1]}


async def test_a_compressed_record_has_a_batch_of_its_own_between_the_others(outgoing: Outgoing) -> None:
    outgoing.append("dead", 0, b"a", b"x", [])
    outgoing.append_compressed("dead", 0, b"b", bytes(MIB), [], max_bytes=MIB)
    outgoing.append("dead", 0, b"c", b"x", [])
    for _ in range(2):  # a transaction that failed is tried again with the same records
        [batches] = (await batches_of([outgoing], is_transactional=True)).values()
        assert [batch.record_count() for batch in batches] == [1, 1, 1]
        assert [len(batch._build()) < 200 for batch in batches] == [True, True, True]


# --- what a commit that failed leaves behind --------------------------------------------------------------------------


class FailingProducer:
    """A producer that fails, or that never answers."""

    _txn_manager = None

    def __init__(self, failure: Exception | None) -> None:
        self.failure = failure

    async def send_batch(self, batch: BatchBuilder, topic: str, *, partition: int) -> Any:  # noqa: ARG002 - as aiokafka
        if self.failure is not None:
            raise self.failure
        return asyncio.get_running_loop().create_future()


class Writer(PlainWriter):
    """A writer whose producer is the test's."""

    def __init__(self, producer: FailingProducer, commit_offset: Callable[[int, str], Awaitable[None]]) -> None:
        super().__init__(
            Connection("127.0.0.1:1", {}), "input", BrokersClock(),
            deadline_seconds=0.05, changelog="state", timed_topics=(), commit_offset=commit_offset,
        )  # fmt: skip
        self._producer = cast("AIOKafkaProducer", producer)


@pytest.fixture
def uncollected() -> Iterator[None]:
    """As while a worker runs: what is held in a circle may be held for ever."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("failure", [KafkaError("broken"), OSError("gone"), None], ids=["kafka", "socket", "silence"])
@pytest.mark.usefixtures("uncollected")
async def test_what_could_not_be_written_is_let_go_of(failure: Exception | None) -> None:
    async def never(_next_offset: int, _note: str) -> None:
        raise AssertionError("an offset was committed before its outputs")

    writer = Writer(FailingProducer(failure), never)
    outgoing = writer.outgoing(0)
    for topic in ("result", "report"):
        outgoing.append(topic, 0, b"key", b"value", [])
    gone = weakref.ref(outgoing)
    is_lost = False
    try:
        await writer.commit(outgoing, 1, "")
    except PartitionLost:
        is_lost = True
    del outgoing
    assert is_lost
    await asyncio.sleep(0)  # the tasks that sent end
    assert gone() is None


# what the producer does, whether the commit was given up for the time that it took
FAILURES: list[tuple[Exception | None, bool]] = [
    (None, True),
    (KafkaTimeoutError("no room for the batch"), True),
    (RequestTimedOutError("the broker"), True),
    (KafkaError("broken"), False),
    (OSError("gone"), False),
    (ProducerFenced("taken over"), False),
]


@pytest.mark.parametrize(("failure", "timed_out"), FAILURES)
async def test_a_commit_that_took_too_long_is_told_from_one_that_failed(
    failure: Exception | None, *, timed_out: bool
) -> None:
    async def never(_next_offset: int, _note: str) -> None:
        raise AssertionError("an offset was committed before its outputs")

    writer = Writer(FailingProducer(failure), never)
    outgoing = writer.outgoing(0)
    outgoing.append("result", 0, b"key", b"value", [])
    with pytest.raises(PartitionLost) as lost:
        await writer.commit(outgoing, 1, "")
    assert lost.value.timed_out is timed_out
