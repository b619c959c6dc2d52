"""Reading without a group: a partition up to an offset, its tail, one record, a topic as it is now, and new records.

All of these use one client (`client`) and one loop (`_slices`). They differ in where they begin, at which offset they
end, whether open transactions count, and how long they may bring nothing.
"""

import asyncio
import math
import time
from bisect import bisect_left
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CorruptRecordException

from consumer.errors import Fatal, Transient
from consumer.kafka.aiokafka_internals import marker_of, position_of
from consumer.kafka.connection import Connection
from consumer.kafka.decompression import UndecodableBatch
from consumer.kafka.failures import CALL_SECONDS, answered, stopped, translating
from consumer.text import named
from consumer.wire.record import Record

SLICE_RECORDS = 500
"""The most records that are handed over before the event loop gets a turn."""

_RESTORED_RECORDS = 100
"""Fewer, since the rows of each partition are folded at the same time: 500 make the loop stall for up to 0.13 s."""

POLL_MS = 500
_FETCH_BYTES = 4 * 1024 * 1024
_MARKER_FETCH_BYTES = 64 * 1024
_MARKER_WAIT_MS = 10
_MARKER_SECONDS = 3.0
"""To connect, and to read a marker that was written a moment ago: what waits for it can go on without."""

_TAIL_RECORDS = 64
_offset = attrgetter("offset")
_RECORD_SECONDS = 3 * CALL_SECONDS
"""For one record: to connect, to ask for the first and the last offset, to fetch."""

_SCAN_SECONDS = 3 * CALL_SECONDS
_FOLLOW_WAIT_MS = 100

Isolation = Literal["read_committed", "read_uncommitted"]


# --- the client, and the loop -----------------------------------------------------------------------------------------


def client(connection: Connection, *topics: str, isolation: Isolation = "read_committed", **more: Any) -> Any:
    """A consumer, not yet started, that is in no group and commits nothing; raises if an offset no longer exists."""
    options = {
        "group_id": None,
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "isolation_level": isolation,
        "max_partition_fetch_bytes": _FETCH_BYTES,
    }
    return AIOKafkaConsumer(*topics, **connection.client(**options | more))


@asynccontextmanager
async def _started(consumer: Any, about: str = "the brokers") -> AsyncIterator[Any]:
    try:
        await answered(consumer.start(), about)
        yield consumer
    finally:
        await stopped(consumer, 2.0)


async def _slices(
    consumer: Any,
    where: TopicPartition,
    first: int,
    end: int,
    *,
    silent_seconds: float,
    silence: str = "{where.topic}/{where.partition}: no broker returns records after offset {position}",
    max_records: int = SLICE_RECORDS,
) -> AsyncGenerator[Sequence[Record], None]:
    """Yield the records from offset `first` up to, not including, `end`; stop when the position has reached `end`.

    While the brokers are down, polls raise nothing and return nothing. So this raises Transient, with the sentence
    `silence`, if the position has not moved for `silent_seconds`.
    """
    consumer.assign([where])
    consumer.seek(where, first)
    position, moved_at = first, time.monotonic()
    while position < end:
        fetched = await consumer.getmany(timeout_ms=POLL_MS, max_records=max_records)
        for records in fetched.values():
            # A fetch may bring records after the end. They are from the new owner of a partition that was lost
            # meanwhile: half a transaction of them would look like a state with missing rows.
            yield records[: bisect_left(records, end, key=_offset)]
        # A transaction marker moves the position, too, but brings no record.
        before, position = position, position_of(consumer, where) or 0
        now = time.monotonic()
        if position > before:
            moved_at = now
        elif now - moved_at > silent_seconds:
            raise Transient(silence.format(where=where, position=position))
        await asyncio.sleep(0)  # getmany does not suspend while it has records


# --- one partition ----------------------------------------------------------------------------------------------------


async def read_partition(
    connection: Connection, topic: str, partition: int, end: int
) -> AsyncIterator[Sequence[Record]]:
    """Yield every committed record of a partition, from its beginning up to, not including, the offset `end`.

    It ends when the position has reached that offset, whatever comes before it: records, markers, an aborted
    transaction, a gap left by compaction. A stale leader, which does not have this offset, can delay it but cannot make
    it end early. Raises Transient, also if nothing comes for 10 s.
    """
    where = TopicPartition(topic, partition)
    async with _partition_client(connection, where) as consumer:
        first = (await consumer.beginning_offsets([where]))[where]
        slices = _slices(consumer, where, first, end, silent_seconds=CALL_SECONDS, max_records=_RESTORED_RECORDS)
        async for records in slices:
            yield records


async def read_marker_time(connection: Connection, topic: str, partition: int, after: int) -> int:
    """The time in ms that the partition's leader gave the first transaction marker after an offset.

    For a transaction that has just ended: it waits a few seconds for the marker. It reads uncommitted: while somebody
    else's transaction is open, readers of committed records see no later one end. Raises Transient or Fatal.
    """
    where = TopicPartition(topic, partition)
    about = f"{topic}/{partition}"
    consumer = client(
        connection, isolation="read_uncommitted",
        max_partition_fetch_bytes=_MARKER_FETCH_BYTES, fetch_max_wait_ms=_MARKER_WAIT_MS,
    )  # fmt: skip
    with translating(about):
        async with asyncio.timeout(_MARKER_SECONDS), _started(consumer):
            consumer.assign([where])
            consumer.seek(where, after)
            while (marker := marker_of(consumer, where)) is None or marker.offset <= after:
                await consumer.getmany(timeout_ms=_MARKER_WAIT_MS)
            return marker.timestamp


async def read_tail(connection: Connection, topic: str, partition: int) -> Sequence[Record]:
    """The last few records of a partition, committed or not; empty if it never had any. Raises Transient."""
    return (await _tail(connection, TopicPartition(topic, partition), None))[-_TAIL_RECORDS:]


async def read_back(connection: Connection, topic: str, partition: int, key: bytes, *more: bytes) -> Sequence[Record]:
    """The end of a partition, committed or not, as far back as the last record with a key; raises Transient.

    Of that, the records with this key or one of `more`. If none has the key, the whole partition is read.
    """
    return await _tail(connection, TopicPartition(topic, partition), key, *more)


async def _tail(connection: Connection, where: TopicPartition, key: bytes | None, *more: bytes) -> Sequence[Record]:
    """Records of the end of a partition, at least one with the key if there is any; None stands for any key."""
    wanted = {key, *more}
    async with _partition_client(connection, where, "read_uncommitted") as consumer:
        start, end = await _bounds(consumer, where)
        span = _TAIL_RECORDS
        while start < end:
            first = max(start, end - span)
            slices = _slices(consumer, where, first, end, silent_seconds=CALL_SECONDS)
            tail = [record async for records in slices for record in records if key is None or record.key in wanted]
            if first == start or any(key is None or record.key == key for record in tail):
                return tail
            span *= 16  # only markers, gaps and other keys so far: look further back
    return ()


async def read_record(connection: Connection, topic: str, partition: int, offset: int) -> Record | None:
    """Read one record as any reader with `read_committed` sees it.

    None if there is none: after the last stable offset, no longer kept, a gap left by compaction, a marker, or a record
    of an aborted transaction. Raises Transient (also if the partition does not exist) or Fatal.
    """
    where = TopicPartition(topic, partition)
    with translating(f"{topic}/{partition}"):
        async with asyncio.timeout(_RECORD_SECONDS), _partition_client(connection, where) as consumer:
            start, end = await _bounds(consumer, where)  # to this client, the end is the last stable offset
            if not start <= offset < end:
                return None
            slices = _slices(consumer, where, offset, offset + 1, silent_seconds=math.inf, max_records=1)
            return next(iter([record async for records in slices for record in records]), None)


async def _bounds(consumer: Any, where: TopicPartition) -> tuple[int, int]:
    start: int = (await consumer.beginning_offsets([where]))[where]
    end: int = (await consumer.end_offsets([where]))[where]
    return start, end


@asynccontextmanager
async def _partition_client(
    connection: Connection, where: TopicPartition, isolation: Isolation = "read_committed"
) -> AsyncIterator[Any]:
    about = f"{where.topic}/{where.partition}"
    with translating(about):
        async with _started(client(connection, isolation=isolation)) as consumer:
            try:
                yield consumer
            except CorruptRecordException as error:
                wrong = (
                    "holds a batch that cannot be read" if isinstance(error, UndecodableBatch) else "fails its checksum"
                )
                raise Fatal(f"{about} {wrong}: restore the topic, or start a new group on new topics") from error


# --- a topic as it is now ---------------------------------------------------------------------------------------------


class Span(NamedTuple):
    """Records of a partition from offset `first` up to, not including, `end`."""

    partition: int
    first: int
    end: int


class TopicScan:
    """The committed records of a topic; raises Transient or Fatal if the brokers do not answer."""

    def __init__(self, consumer: Any, topic: str, partitions: int) -> None:
        self._consumer = consumer
        self._topic = topic
        self._partitions = partitions

    async def spans(self, since_ms: int | None = None) -> list[Span]:
        """What can be read now of each partition, from its first record with this timestamp or a later one.

        Each span ends at the last stable offset: nothing waits for open transactions.
        """
        where = [TopicPartition(self._topic, partition) for partition in range(self._partitions)]
        first = await answered(self._consumer.beginning_offsets(where), self._topic)
        end = await answered(self._consumer.end_offsets(where), self._topic)
        if since_ms is not None:
            times = dict.fromkeys(where, max(0, since_ms))
            later = await answered(self._consumer.offsets_for_times(times), self._topic)
            first = {each: end[each] if later[each] is None else later[each].offset for each in where}
        return [Span(each.partition, first[each], end[each]) for each in where]

    async def read(self, span: Span) -> AsyncGenerator[Sequence[Record], None]:
        """Yield the records of a span in order; skips what retention removes meanwhile."""
        if span.first >= span.end:
            return
        where = TopicPartition(self._topic, span.partition)
        silence = f"{self._topic} has more records, but no broker sends them"
        slices = _slices(self._consumer, where, span.first, span.end, silent_seconds=_SCAN_SECONDS, silence=silence)
        with translating(self._topic):
            async with aclosing(slices):
                async for records in slices:
                    yield records

    async def records_of(self, spans: Iterable[Span], advance: Callable[[int], None]) -> AsyncGenerator[Record, None]:
        """Yield the records of some spans, one span after the other; `advance` is told how many offsets were read."""
        for span in spans:
            next_offset = span.first
            async with aclosing(self.read(span)) as blocks:
                async for records in blocks:
                    for record in records:
                        yield record
                    if records:
                        advance(records[-1].offset + 1 - next_offset)
                        next_offset = records[-1].offset + 1
            advance(max(0, span.end - next_offset))


@asynccontextmanager
async def scanning(connection: Connection, topic: str, partitions: int) -> AsyncIterator[TopicScan]:
    """Open an existing topic, with this many partitions, for reading."""
    # "earliest", as retention may remove records between asking for the first offset and reading from it.
    async with _started(client(connection, auto_offset_reset="earliest")) as consumer:
        yield TopicScan(consumer, topic, partitions)


# --- what comes -------------------------------------------------------------------------------------------------------

Poll = Callable[[float], Awaitable[list[Record]]]
"""Waits up to this many seconds for records of some topics, in order within each partition; raises Transient."""


@asynccontextmanager
async def following(
    connection: Connection, topics: Sequence[str], first: Mapping[tuple[str, int], int] | None = None
) -> AsyncIterator[Poll]:
    """Read existing topics from the beginning of every partition, and go on with new records.

    With `first`, read those partitions instead, each from its offset.
    """

    about = f"the topics {named(topics)}"

    async def arrived(timeout_seconds: float) -> list[Record]:
        with translating(about):
            fetched = await consumer.getmany(timeout_ms=int(timeout_seconds * 1_000), max_records=SLICE_RECORDS)
        return [record for records in fetched.values() for record in records]

    # Nothing is ever committed here, so "earliest" is where each partition begins.
    subscribed = topics if first is None else ()
    following_client = client(connection, *subscribed, auto_offset_reset="earliest", fetch_max_wait_ms=_FOLLOW_WAIT_MS)
    async with _started(following_client, about) as consumer:
        if first is not None:
            consumer.assign([TopicPartition(*place) for place in first])
            for place, offset in first.items():
                consumer.seek(TopicPartition(*place), offset)
        yield arrived
