"""A compacted topic in memory, and the suite that it passes as the real one does."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from consumer.case_sources.topic import Table
from consumer.errors import Fatal, Transient
from consumer.kafka.table_reader import TableSlice

SLICE_RECORDS = 3


@dataclass(slots=True)
class StoredRecord:
    """A record as the product reads it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    topic: str = "cases"
    timestamp: int = 0
    headers: Sequence[tuple[str, bytes | None]] = ()


class Log(Protocol):
    """A topic as its writers see it: one partition is enough for the suite."""

    def put(self, key: str, value: bytes | None) -> None:
        """Write one record, outside any transaction."""
        ...

    def begin(self) -> "Transaction":
        """Open a transaction."""
        ...


class Transaction(Protocol):
    """An open transaction."""

    def put(self, key: str, value: bytes | None) -> None:
        """Write one record."""
        ...

    def commit(self) -> None:
        """Let readers see it."""
        ...

    def abort(self) -> None:
        """Let nobody see it ever."""
        ...


@dataclass(slots=True)
class _Fate:
    is_open: bool = True
    is_aborted: bool = False


@dataclass(slots=True)
class InMemoryTopic:
    """The log of a topic; `partitions` holds, by partition, each record with the fate of its transaction.

    None stands for a transaction's marker. `is_away` makes every call of its tables come to nothing or fail, as without
    brokers, `is_silent` only lets their polls bring nothing; `failure` is what the next call raises.
    """

    partitions: list[list[tuple[StoredRecord, _Fate] | None]] = field(default_factory=lambda: [[]])
    is_away: bool = False
    is_silent: bool = False
    failure: Exception | None = None
    asked: int = 0
    opened: int = 0

    def put(self, key: str | bytes | None, value: bytes | None, partition: int = 0) -> None:
        """Write one record."""
        self._append(key, value, partition, _Fate(is_open=False))

    def _append(self, key: str | bytes | None, value: bytes | None, partition: int, fate: _Fate) -> None:
        log = self.partitions[partition]
        raw = key.encode() if isinstance(key, str) else key
        log.append((StoredRecord(partition, len(log), raw, value), fate))

    def begin(self, partition: int = 0) -> "InMemoryTransaction":
        """Open a transaction."""
        return InMemoryTransaction(self, partition)

    def delete(self) -> None:
        """Take the topic away."""
        self.partitions = []

    def make_anew(self) -> None:
        """Make it, empty, with one partition."""
        self.partitions = [[]]

    def stable(self, partition: int) -> int:
        """The last stable offset."""
        log = self.partitions[partition]
        unstable = (at for at, entry in enumerate(log) if entry is not None and entry[1].is_open)
        return next(unstable, len(log))

    def table(self) -> "InMemoryTable":
        """A reader of it."""
        return InMemoryTable(self)


class InMemoryTransaction:
    """An open transaction over one partition."""

    def __init__(self, topic: InMemoryTopic, partition: int) -> None:
        self._topic, self._partition, self._fate = topic, partition, _Fate()

    def put(self, key: str, value: bytes | None) -> None:
        """Write one record."""
        self._topic._append(key, value, self._partition, self._fate)

    def commit(self) -> None:
        """Let readers see it."""
        self._end(is_aborted=False)

    def abort(self) -> None:
        """Let nobody see it ever."""
        self._end(is_aborted=True)

    def _end(self, *, is_aborted: bool) -> None:
        self._fate.is_open, self._fate.is_aborted = False, is_aborted
        self._topic.partitions[self._partition].append(None)


class InMemoryTable:
    """A Table over an InMemoryTopic; gives a few records at a time."""

    def __init__(self, topic: InMemoryTopic) -> None:
        self._topic = topic
        self._positions: dict[int, int] = {}

    async def open(self) -> Mapping[int, int]:
        """Begin at the beginning."""
        self._topic.opened += 1
        ends = await self.ends()
        self._positions = dict.fromkeys(ends, 0)
        return ends

    async def poll(self) -> TableSlice:
        """Give a few records; after a tick nothing, if there are none."""
        self._raise_failure()
        records: list[StoredRecord] = []
        if not self._topic.is_away and not self._topic.is_silent:
            for partition in self._positions:
                records += self._next(partition)
        if not records:
            await asyncio.sleep(0.001)
        is_whole = self._topic.is_away or all(at >= self._stable(p) for p, at in self._positions.items())
        return TableSlice(records, dict(self._positions), is_whole)

    def _stable(self, partition: int) -> int:
        return self._topic.stable(partition) if partition < len(self._topic.partitions) else 0

    def _next(self, partition: int) -> list[StoredRecord]:
        if partition >= len(self._topic.partitions):
            return []
        records: list[StoredRecord] = []
        log, stable = self._topic.partitions[partition], self._topic.stable(partition)
        while self._positions[partition] < stable and len(records) < SLICE_RECORDS:
            entry = log[self._positions[partition]]
            self._positions[partition] += 1
            if entry is not None and not entry[1].is_aborted:
                records.append(entry[0])
        return records

    async def ends(self) -> Mapping[int, int]:
        """Where each partition ends."""
        self._topic.asked += 1
        self._raise_failure()
        if self._topic.is_away:
            raise Transient("no answer about topic cases: TimeoutError")
        return {partition: len(log) for partition, log in enumerate(self._topic.partitions)}

    def _raise_failure(self) -> None:
        failure, self._topic.failure = self._topic.failure, None
        if failure is not None:
            raise failure

    async def close(self) -> None:
        """There is nothing to let go of."""


# --- the suite --------------------------------------------------------------------------------------------------------


async def read_to(table: Table, ends: Mapping[int, int]) -> tuple[list[tuple[bytes | None, bytes | None]], TableSlice]:
    """Poll until the positions have reached some ends; returns what came, and the last slice."""
    seen: list[tuple[bytes | None, bytes | None]] = []
    async with asyncio.timeout(30):
        while True:
            read = await table.poll()
            seen += [(record.key, record.value) for record in read.records]
            if all(read.positions.get(partition, 0) >= end for partition, end in ends.items()) and read.is_whole:
                return seen, read


async def everything_is_read_from_the_beginning_and_then_followed(table: Table, log: Log) -> None:
    """Records come in order, tombstones too, more than one slice of them, and those that are written later."""
    for number in range(8):
        log.put(f"c/b/{number}", b"%d" % number)
    log.put("c/b/0", None)

    ends = await table.open()
    seen, read = await read_to(table, ends)
    log.put("c/b/9", b"9")
    later, _ = await read_to(table, await table.ends())

    assert seen == [*((b"c/b/%d" % number, b"%d" % number) for number in range(8)), (b"c/b/0", None)]
    assert dict(read.positions) == dict(ends) == {0: 9}
    assert later == [(b"c/b/9", b"9")]


async def an_open_transaction_is_not_seen_but_belongs_to_the_end(table: Table, log: Log) -> None:
    """What is behind it is not seen either; once it is over, both are."""
    log.put("c/b/1", b"1")
    transaction = log.begin()
    transaction.put("c/b/2", b"2")
    log.put("c/b/3", b"3")

    ends = await table.open()
    seen, read = await read_to(table, {0: 1})
    transaction.commit()
    after, _ = await read_to(table, await table.ends())

    assert ends[0] >= 3
    assert (seen, read.positions[0]) == ([(b"c/b/1", b"1")], 1)
    assert after == [(b"c/b/2", b"2"), (b"c/b/3", b"3")]


async def an_aborted_transaction_is_never_seen_and_its_end_is_reached(table: Table, log: Log) -> None:
    """A tail of nothing but what was aborted, and its marker, holds nobody up."""
    transaction = log.begin()
    transaction.put("c/b/1", b"1")
    transaction.abort()

    seen, _ = await read_to(table, await table.open())

    assert seen == []


async def what_is_opened_again_begins_again(table: Table, log: Log) -> None:
    """As after a failure."""
    log.put("c/b/1", b"1")
    await read_to(table, await table.open())

    seen, _ = await read_to(table, await table.open())

    assert seen == [(b"c/b/1", b"1")]


SUITE: Sequence[Callable[[Table, Log], Awaitable[None]]] = (
    everything_is_read_from_the_beginning_and_then_followed,
    an_open_transaction_is_not_seen_but_belongs_to_the_end,
    an_aborted_transaction_is_never_seen_and_its_end_is_reached,
    what_is_opened_again_begins_again,
)

__all__ = ["SUITE", "Fatal", "InMemoryTable", "InMemoryTopic", "Log", "StoredRecord", "Transaction"]
