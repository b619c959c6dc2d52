"""Reading a partition outside any group: restores, and looks at who wrote last."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CorruptRecordException

from consumer.decode import Record
from consumer.errors import Fatal
from consumer.kafka.connection import Connection
from consumer.kafka.failures import FAILURES, answered, closed, translated
from consumer.kafka.internals import position_of

_SLICE_RECORDS = 500
"""Records handed over between two turns of the event loop."""

_POLL_MS = 500
_FETCH_BYTES = 4 * 1024 * 1024
_TAIL_RECORDS = 64


async def read_partition(connection: Connection, topic: str, partition: int) -> AsyncIterator[Sequence[Record]]:
    """Yield every committed record of a partition, from its beginning to the end that it has now.

    The end is asked without regard to transactions: behind another producer's open transaction the last stable offset
    would end the read at once, with nothing. The read ends when the position has reached that end, whatever the tail
    holds: records, markers, an aborted transaction, a gap left by compaction. Raises Transient.
    """
    where = TopicPartition(topic, partition)
    start, end = await _bounds(connection, where)
    if start < end:
        async for records in _read(connection, where, start, end, "read_committed"):
            yield records


async def read_tail(connection: Connection, topic: str, partition: int) -> Sequence[Record]:
    """The last few records of a partition, committed or not; empty if it never held any. Raises Transient."""
    where = TopicPartition(topic, partition)
    start, end = await _bounds(connection, where)
    span = _TAIL_RECORDS
    while start < end:
        first = max(start, end - span)
        tail = [record async for batch in _read(connection, where, first, end, "read_uncommitted") for record in batch]
        if tail or first == start:
            return tail[-_TAIL_RECORDS:]
        span *= 16  # nothing but markers and gaps so far: look further back
    return ()


async def _bounds(connection: Connection, where: TopicPartition) -> tuple[int, int]:
    async with _client(connection, "read_uncommitted") as consumer:
        start = (await consumer.beginning_offsets([where]))[where]
        end = (await consumer.end_offsets([where]))[where]
    return start, end


async def _read(
    connection: Connection, where: TopicPartition, start: int, end: int, isolation: str
) -> AsyncIterator[Sequence[Record]]:
    async with _client(connection, isolation) as consumer:
        consumer.assign([where])
        consumer.seek(where, start)
        while (position_of(consumer, where) or 0) < end:
            fetched = await consumer.getmany(timeout_ms=_POLL_MS, max_records=_SLICE_RECORDS)
            for records in fetched.values():
                yield records
            await asyncio.sleep(0)  # getmany returns without suspending while it has records in hand


@asynccontextmanager
async def _client(connection: Connection, isolation: str) -> AsyncIterator[Any]:
    consumer = AIOKafkaConsumer(
        **connection.client(
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level=isolation,
            max_partition_fetch_bytes=_FETCH_BYTES,
        )
    )
    try:
        await answered(consumer.start(), "the brokers")
        yield consumer
    except CorruptRecordException as error:
        raise Fatal("the state fails its checksum: restore the topic, or start a new group on new topics") from error
    except FAILURES as error:
        raise translated(error, "the state") from error
    finally:
        await closed(consumer.stop(), 2.0)
