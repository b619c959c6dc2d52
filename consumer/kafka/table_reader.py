"""A compacted topic as a table: read without a group, from the beginning to the end, and then on with new records."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition

from consumer.errors import Transient
from consumer.kafka.aiokafka_internals import position_of
from consumer.kafka.cluster import Cluster
from consumer.kafka.connection import Connection
from consumer.kafka.failures import answered, stopped, translating
from consumer.kafka.reader import POLL_MS, SLICE_RECORDS, client
from consumer.wire.record import Record


class TableSlice(NamedTuple):
    """What one poll brought: records, in order within each partition, and the next offset to read of each partition.

    `is_whole` says that everything committed as of the latest fetch has been delivered: then, in a topic with one
    partition, no transaction has been delivered in part.
    """

    records: Sequence[Record]
    positions: Mapping[int, int]
    is_whole: bool


class TableReader:
    """Reads all committed records of a topic; it is in no group and commits nothing.

    Raises Transient if the brokers do not answer in time, or the next offset no longer exists, and Fatal if waiting
    does not help. After either, open() starts over. While the brokers are down, poll() just brings nothing.
    """

    def __init__(self, connection: Connection, topic: str) -> None:
        self._connection = connection
        self._topic = topic
        self._about = f"topic {topic}"
        self._clients: _Clients | None = None
        # A client that is closed during a request may raise anything.
        self._in_use = asyncio.Lock()

    async def open(self) -> Mapping[int, int]:
        """Start over at the beginning; returns where each partition ends, nothing if the topic does not exist."""
        async with self._in_use:
            await self._close()
            clients = self._clients = _Clients(self._connection)
            await clients.start()
            ends = await self._ends_by(clients)
            where = [TopicPartition(self._topic, partition) for partition in ends]
            if where:
                first = await answered(clients.asker.beginning_offsets(where), self._about)
                clients.reader.assign(where)
                for each in where:
                    clients.reader.seek(each, first[each])
            return ends

    async def poll(self) -> TableSlice:
        """Return what has come since the last poll; waits for half a second at most if nothing has."""
        reader = self._opened().reader
        with translating(self._about):
            fetched = await reader.getmany(timeout_ms=POLL_MS, max_records=SLICE_RECORDS)
        records = [record for records in fetched.values() for record in records]
        assigned = reader.assignment()
        positions = {where.partition: position_of(reader, where) or 0 for where in assigned}
        return TableSlice(records, positions, all(_is_at_the_stable_end(reader, where) for where in assigned))

    async def ends(self) -> Mapping[int, int]:
        """Where each partition ends, open transactions included; nothing if the topic does not exist."""
        async with self._in_use:
            return await self._ends_by(self._opened())

    async def _ends_by(self, clients: "_Clients") -> Mapping[int, int]:
        # The metadata comes first: a consumer waits for ever for a topic that is gone.
        partitions = (await clients.cluster.partition_counts([self._topic])).get(self._topic, 0)
        if not partitions:
            return {}
        where = [TopicPartition(self._topic, partition) for partition in range(partitions)]
        ends = await answered(clients.asker.end_offsets(where), self._about)
        return {each.partition: int(ends[each]) for each in where}

    async def close(self) -> None:
        """Close the connections; may be called again."""
        async with self._in_use:
            await self._close()

    async def _close(self) -> None:
        clients, self._clients = self._clients, None
        if clients is not None:
            await clients.stop()

    def _opened(self) -> "_Clients":
        if self._clients is None:
            raise Transient(f"{self._about} is not open")
        return self._clients


class _Clients:
    """Three clients: one reads, one asks for ends, one asks which topics exist.

    The reader cannot ask for ends: with `read_committed`, a partition ends at its first open transaction, and while it
    waits for records, its other requests wait, too.
    """

    def __init__(self, connection: Connection) -> None:
        self.cluster = Cluster(connection)
        self.reader = client(connection)
        self.asker = client(connection, isolation="read_uncommitted")

    async def start(self) -> None:
        await self.cluster.start()
        await answered(self.reader.start(), "the brokers")
        await answered(self.asker.start(), "the brokers")

    async def stop(self) -> None:
        await self.cluster.stop()
        await stopped(self.reader, 2.0)
        await stopped(self.asker, 2.0)


def _is_at_the_stable_end(reader: AIOKafkaConsumer, where: TopicPartition) -> bool:
    stable = reader.last_stable_offset(where)
    if stable is None or stable < 0:  # before the first fetch, or from a broker without transactions
        stable = reader.highwater(where)
    return stable is not None and (position_of(reader, where) or 0) >= stable
