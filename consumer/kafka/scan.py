"""Reading a topic as it is now, partition by partition and outside any group: how dead letters are looked at."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition

from consumer.errors import Transient
from consumer.kafka.connection import Connection
from consumer.kafka.failures import FAILURES, answered, closed, translated
from consumer.kafka.internals import position_of
from consumer.wire.record import Record

_SLICE_RECORDS = 500
_POLL_MS = 500
_FETCH_BYTES = 4 * 1024 * 1024
_SILENT_POLLS = 60
"""Half a minute without a byte: with the brokers gone nothing raises, polls just return empty."""


class Span(NamedTuple):
    """Records of a partition from offset `first` up to, not including, `end`."""

    partition: int
    first: int
    end: int


class TopicScan:
    """The committed records of a topic; raises Transient, or Fatal, where the brokers do not answer as they should."""

    def __init__(self, consumer: Any, topic: str, partitions: int) -> None:
        self._consumer = consumer
        self._topic = topic
        self._partitions = partitions

    async def spans(self, since_ms: int | None = None) -> list[Span]:
        """What can be read at this moment of each partition, from its first record stamped so or later.

        Each ends at the last stable offset: what is behind an open transaction is not waited for.
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
        """Yield the records of a span in order; what retention removes meanwhile is passed over."""
        if span.first >= span.end:
            return
        where = TopicPartition(self._topic, span.partition)
        self._consumer.assign([where])
        self._consumer.seek(where, span.first)
        silent = 0
        while (before := position_of(self._consumer, where) or 0) < span.end:
            records = await self._poll(where)
            yield [record for record in records if record.offset < span.end]
            # A transaction's marker moves the position, too, and brings no record.
            silent = 0 if (position_of(self._consumer, where) or 0) > before else silent + 1
            if silent == _SILENT_POLLS:
                raise Transient(f"{self._topic} goes on, but no broker sends more of it")
            await asyncio.sleep(0)  # getmany returns without suspending while it has records in hand

    async def _poll(self, where: TopicPartition) -> Sequence[Record]:
        try:
            fetched = await self._consumer.getmany(timeout_ms=_POLL_MS, max_records=_SLICE_RECORDS)
        except FAILURES as error:
            raise translated(error, self._topic) from error
        records: Sequence[Record] = fetched.get(where, ())
        return records


@asynccontextmanager
async def scanning(connection: Connection, topic: str, partitions: int) -> AsyncIterator[TopicScan]:
    """Open a topic that exists, and has so many partitions, for reading."""
    consumer = AIOKafkaConsumer(
        **connection.client(
            group_id=None,
            enable_auto_commit=False,
            # For what retention removes between asking for the first offset and reading from it.
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            max_partition_fetch_bytes=_FETCH_BYTES,
        )
    )
    try:
        await answered(consumer.start(), "the brokers")
        yield TopicScan(consumer, topic, partitions)
    finally:
        await closed(consumer.stop(), 2.0)
