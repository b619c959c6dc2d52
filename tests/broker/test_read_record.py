"""Reading one record by its coordinates: that one, or nothing, and never a wait for what may come."""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from consumer.errors import Transient
from consumer.kafka.connection import Connection
from consumer.kafka.reader import read_record
from tests.support.outside import Outgoing, Outside
from tests.support.waiting import wait_until

pytestmark = pytest.mark.broker

CALL_SECONDS = 20.0
# What takes longer has waited for something that does not come.
AT_ONCE_SECONDS = 8.0


@pytest.fixture
def topic(outside: Outside) -> Iterator[str]:
    """A topic of two partitions, which keeps records of whatever time."""
    name = f"t{uuid.uuid4().hex[:10]}.one-record"
    outside.create_topic(name, partitions=2, config={"retention.ms": "-1"})
    yield name
    outside.delete_topic(name)


async def at(outside: Outside, topic: str, offset: int, partition: int = 0) -> bytes | None:
    """The value of a record, None where there is no record; soon, in either case."""
    started = time.monotonic()
    record = await read_record(Connection(outside.bootstrap_servers, {}), topic, partition, offset)
    assert time.monotonic() - started < AT_ONCE_SECONDS
    if record is None:
        return None
    assert (record.topic, record.partition, record.offset) == (topic, partition, offset)
    return record.value


@contextmanager
def transaction(outside: Outside) -> Iterator[Producer]:
    """A producer with an open transaction, which is aborted if nobody ends it."""
    producer = Producer(
        {"bootstrap.servers": outside.bootstrap_servers, "transactional.id": uuid.uuid4().hex, "log_level": 2}
    )
    producer.init_transactions(CALL_SECONDS)
    producer.begin_transaction()
    yield producer


def write(producer: Producer, topic: str, value: bytes) -> None:
    """Write to partition 0, and wait until it is there."""
    failures: list[object] = []
    producer.produce(topic, value=value, partition=0, on_delivery=lambda error, _message: failures.append(error))
    producer.flush(CALL_SECONDS)
    assert failures == [None]


def await_end(outside: Outside, topic: str, stable: int) -> None:
    """Wait for the marker: the broker writes it a little after it has agreed to end a transaction."""
    wait_until(lambda: outside.ends(topic)[0].stable == stable, within_seconds=CALL_SECONDS, what="the marker is there")


async def test_exactly_the_record_asked_for_is_read(outside: Outside, topic: str) -> None:
    outside.produce(topic, [Outgoing(f"value {number}".encode(), partition=0) for number in range(700)])
    outside.produce(topic, [Outgoing(b"another", partition=1)])
    for offset in (0, 1, 350, 699):
        assert await at(outside, topic, offset) == f"value {offset}".encode()
    assert await at(outside, topic, 0, partition=1) == b"another"


async def test_key_headers_and_time_come_with_it(outside: Outside, topic: str) -> None:
    outside.produce(
        topic, [Outgoing(b"{}", key=b"a key", headers=(("name", b"content"),), timestamp=1_234_567, partition=0)]
    )
    record = await read_record(Connection(outside.bootstrap_servers, {}), topic, 0, 0)
    assert record is not None
    assert (record.key, record.timestamp, list(record.headers)) == (b"a key", 1_234_567, [("name", b"content")])


async def test_a_large_record_is_read_whole(outside: Outside, topic: str) -> None:
    outside.set_topic_config(topic, "max.message.bytes", "8388608")
    large = bytes(6_000_000)
    outside.produce(topic, [Outgoing(b"small", partition=0), Outgoing(large, partition=0)])
    assert await at(outside, topic, 1) == large


@pytest.mark.parametrize("offset", [2, 3, 10**12])
async def test_beyond_the_end_there_is_nothing(outside: Outside, topic: str, offset: int) -> None:
    outside.produce(topic, [Outgoing(b"one", partition=0), Outgoing(b"two", partition=0)])
    assert await at(outside, topic, offset) is None


async def test_in_an_empty_partition_there_is_nothing(outside: Outside, topic: str) -> None:
    assert await at(outside, topic, 0) is None


async def test_of_an_aborted_transaction_nothing_is_seen_but_what_comes_behind_it_is(
    outside: Outside, topic: str
) -> None:
    with transaction(outside) as producer:
        write(producer, topic, b"regretted")
        producer.abort_transaction(CALL_SECONDS)
    await_end(outside, topic, 2)
    outside.produce(topic, [Outgoing(b"kept", partition=0)])
    # offset 1 is the marker of the abort
    assert [await at(outside, topic, offset) for offset in range(3)] == [None, None, b"kept"]


async def test_an_open_transaction_is_not_waited_for(outside: Outside, topic: str) -> None:
    outside.produce(topic, [Outgoing(b"before", partition=0)])
    with transaction(outside) as producer:
        write(producer, topic, b"pending")
        assert [await at(outside, topic, offset) for offset in range(2)] == [b"before", None]
        producer.commit_transaction(CALL_SECONDS)
    await_end(outside, topic, 3)
    assert [await at(outside, topic, offset) for offset in range(3)] == [b"before", b"pending", None]


async def test_what_is_no_longer_kept_is_not_there(outside: Outside, topic: str) -> None:
    outside.produce(topic, [Outgoing(f"value {number}".encode(), partition=0) for number in range(4)])
    outside.delete_records(topic, 0, 2)
    assert [await at(outside, topic, offset) for offset in range(4)] == [None, None, b"value 2", b"value 3"]


COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "100",
}


async def test_where_compaction_has_left_a_gap_the_next_record_is_not_taken_for_it(
    outside: Outside, topic: str
) -> None:
    for name, value in COMPACTED.items():
        outside.set_topic_config(topic, name, value)
    outside.produce(topic, [Outgoing(value, key=b"one key", partition=0) for value in (b"first", b"second", b"third")])

    def is_compacted() -> bool:
        # The newest segment is never compacted, and only a record that comes later begins another.
        outside.produce(topic, [Outgoing(b"later", key=b"another key", partition=0)])
        return outside.read(topic)[0].offset > 0

    wait_until(is_compacted, within_seconds=60.0, what="the topic has been compacted", every_seconds=0.3)
    assert [await at(outside, topic, offset) for offset in range(3)] == [None, None, b"third"]


async def test_without_a_broker_it_says_so_in_time() -> None:
    with pytest.raises(Transient):
        await read_record(Connection("127.0.0.1:1", {}), "a-topic", 0, 0)


async def test_a_topic_that_is_not_there_is_said_and_not_created(outside: Outside) -> None:
    missing = f"t{uuid.uuid4().hex[:10]}.missing"
    with pytest.raises(Transient, match=missing):
        await read_record(Connection(outside.bootstrap_servers, {}), missing, 0, 0)
    assert outside.partitions(missing) == 0
