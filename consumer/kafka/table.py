"""A compacted topic as a table: read from its beginning to its end outside any group, then followed."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition

from consumer.errors import Transient
from consumer.kafka.cluster import Cluster
from consumer.kafka.connection import Connection
from consumer.kafka.failures import answered, closed, translating
from consumer.kafka.internals import position_of
from consumer.kafka.reader import POLL_MS, SLICE_RECORDS, client
from consumer.wire.record import Record


class TableSlice(NamedTuple):
    """What one poll brought: records in the order of their partitions, and the next offset to read of each partition.

    `is_whole` tells that all that was committed as of the latest fetch has been delivered: in one partition, no
    transaction is cut in two.
    """

    records: Sequence[Record]
    positions: Mapping[int, int]
    is_whole: bool


class TableReader:
    """Reads all partitions of a topic, of transactions what is committed; it belongs to no group and commits nothing.

    Raises Transient where the brokers do not answer in time, or what is to be read next is gone, and Fatal where no
    waiting helps. After either, open() begins again; while the brokers are away, poll() only brings nothing.
    """

    def __init__(self, connection: Connection, topic: str) -> None:
        self._connection = connection
        self._topic = topic
        self._about = f"topic {topic}"
        self._clients: _Clients | None = None
        # A client that is closed under a question answers with whatever it trips over.
        self._in_use = asyncio.Lock()

    async def open(self) -> Mapping[int, int]:
        """Begin at the beginning; returns where each partition ends, nothing if there is no such topic."""
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
        """Give what has come since, at once if there is something; waits for half a second at most."""
        reader = self._opened().reader
        with translating(self._about):
            fetched = await reader.getmany(timeout_ms=POLL_MS, max_records=SLICE_RECORDS)
        records = [record for records in fetched.values() for record in records]
        assigned = reader.assignment()
        positions = {where.partition: position_of(reader, where) or 0 for where in assigned}
        return TableSlice(records, positions, all(_is_at_the_stable_end(reader, where) for where in assigned))

    async def ends(self) -> Mapping[int, int]:
        """Ask where each partition ends, open transactions included; nothing if there is no such topic."""
        async with self._in_use:
            return await self._ends_by(self._opened())

    async def _ends_by(self, clients: "_Clients") -> Mapping[int, int]:
        # Of the metadata first: a consumer waits for ever for a topic that is gone.
        partitions = (await clients.cluster.partition_counts([self._topic])).get(self._topic, 0)
        if not partitions:
            return {}
        where = [TopicPartition(self._topic, partition) for partition in range(partitions)]
        ends = await answered(clients.asker.end_offsets(where), self._about)
        return {each.partition: int(ends[each]) for each in where}

    async def close(self) -> None:
        """Let go of the brokers; may be called twice."""
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
    """Three clients: one that reads, one that asks for ends, one that asks what topics there are.

    To a consumer that reads what is committed, a partition ends at its first open transaction; and one that waits for
    records lets questions wait.
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
        await closed(self.reader.stop(), 2.0)
        await closed(self.asker.stop(), 2.0)


def _is_at_the_stable_end(reader: AIOKafkaConsumer, where: TopicPartition) -> bool:
    stable = reader.last_stable_offset(where)
    if stable is None or stable < 0:  # before the first fetch, or of a broker without transactions
        stable = reader.highwater(where)
    return stable is not None and (position_of(reader, where) or 0) >= stable
