"""Reading a partition outside any group: restores, looks at who wrote last, and at one record."""

import asyncio
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from operator import attrgetter
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CorruptRecordException

from consumer.errors import Fatal, Transient
from consumer.kafka.connection import Connection
from consumer.kafka.decompression import UndecodableBatch
from consumer.kafka.failures import CALL_SECONDS, FAILURES, answered, closed, translated
from consumer.kafka.internals import position_of
from consumer.wire.record import Record

_SLICE_RECORDS = 500
"""Records handed over between two turns of the event loop."""

_POLL_MS = 500
_FETCH_BYTES = 4 * 1024 * 1024
_TAIL_RECORDS = 64
_offset = attrgetter("offset")
_RECORD_SECONDS = 3 * CALL_SECONDS
"""For one record: to connect, to ask for the bounds, to fetch."""


async def read_partition(
    connection: Connection, topic: str, partition: int, end: int
) -> AsyncIterator[Sequence[Record]]:
    """Yield every committed record of a partition, from its beginning up to, not including, the offset `end`.

    The read ends when the position has reached that offset, whatever the tail holds: records, markers, an aborted
    transaction, a gap left by compaction. A leader of the past, which does not get so far, holds it up and never ends
    it. Raises Transient, also where nothing comes for 10 s.
    """
    async for records in _read(connection, TopicPartition(topic, partition), None, end, "read_committed"):
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


async def read_record(connection: Connection, topic: str, partition: int, offset: int) -> Record | None:
    """Read one record as any committed reader sees it.

    None where there is none to be seen: beyond the last stable offset, no longer kept, a gap left by compaction, a
    marker, or of an aborted transaction. Raises Transient or Fatal, a partition that does not exist as Transient.
    """
    where = TopicPartition(topic, partition)
    return await answered(_record_at(connection, where, offset), f"{topic}/{partition}", _RECORD_SECONDS)


async def _record_at(connection: Connection, where: TopicPartition, offset: int) -> Record | None:
    async with _client(connection, "read_committed", where) as consumer:
        start = (await consumer.beginning_offsets([where]))[where]
        end = (await consumer.end_offsets([where]))[where]  # to this client, the last stable offset
        if not start <= offset < end:
            return None
        consumer.assign([where])
        consumer.seek(where, offset)
        while (position_of(consumer, where) or 0) <= offset:
            fetched = await consumer.getmany(timeout_ms=_POLL_MS, max_records=1)
            for record in fetched.get(where, ()):
                return record if record.offset == offset else None
    return None


async def _bounds(connection: Connection, where: TopicPartition) -> tuple[int, int]:
    async with _client(connection, "read_uncommitted", where) as consumer:
        start = (await consumer.beginning_offsets([where]))[where]
        end = (await consumer.end_offsets([where]))[where]
    return start, end


async def _read(
    connection: Connection, where: TopicPartition, start: int | None, end: int, isolation: str
) -> AsyncIterator[Sequence[Record]]:
    """Read from `start`, or from the beginning, up to `end`."""
    async with _client(connection, isolation, where) as consumer:
        position = (await consumer.beginning_offsets([where]))[where] if start is None else start
        consumer.assign([where])
        consumer.seek(where, position)
        moved_at = time.monotonic()
        while position < end:
            fetched = await consumer.getmany(timeout_ms=_POLL_MS, max_records=_SLICE_RECORDS)
            for records in fetched.values():
                # A fetch brings what is there. What came behind the end, the new owner of a partition that was lost
                # meanwhile has written: half a transaction of it would look like a state that lacks rows.
                yield records[: bisect_left(records, end, key=_offset)]
            before, position = position, position_of(consumer, where) or 0
            now = time.monotonic()
            if position > before:
                moved_at = now
            elif now - moved_at > CALL_SECONDS:
                raise Transient(f"{where.topic}/{where.partition}: no broker sends what comes after offset {position}")
            await asyncio.sleep(0)  # getmany returns without suspending while it has records in hand


@asynccontextmanager
async def _client(connection: Connection, isolation: str, where: TopicPartition) -> AsyncIterator[Any]:
    about = f"{where.topic}/{where.partition}"
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
        wrong = "holds a batch that cannot be read" if isinstance(error, UndecodableBatch) else "fails its checksum"
        raise Fatal(f"{about} {wrong}: restore the topic, or start a new group on new topics") from error
    except FAILURES as error:
        raise translated(error, about) from error
    finally:
        await closed(consumer.stop(), 2.0)
