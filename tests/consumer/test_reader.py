"""Reading a partition up to an offset: all before it, nothing behind it, and no waiting for ever."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import CorruptRecordException

from consumer.errors import Fatal, Transient
from consumer.kafka import reader
from consumer.kafka.connection import Connection
from consumer.kafka.reader import Span, read_back, read_partition, read_record, read_tail, scanning

WHERE = TopicPartition("state", 3)


@dataclass
class Fetched:
    """A record of which only the place and the key matter."""

    offset: int
    key: bytes | None = None


class Unconnected:
    """What a client has beneath it that has connected to nobody."""

    def __init__(self) -> None:
        self._conns: dict[str, object] = {}


@dataclass
class Log:
    """A client that brings what the test says, poll by poll: offsets, and the position after them."""

    beginning: int = 0
    end: int = 0
    polls: list[tuple[Sequence[int], int]] = field(default_factory=list)
    position: int = 0
    sought: list[int] = field(default_factory=list)
    keys: Mapping[int, bytes] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    stopped: bool = False
    _client: Any = field(default_factory=Unconnected)

    async def start(self) -> None:
        """Nobody to connect to."""

    async def stop(self) -> None:
        self.stopped = True

    async def beginning_offsets(self, wanted: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(wanted, self.beginning)

    async def end_offsets(self, wanted: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(wanted, self.end)

    def assign(self, wanted: Sequence[TopicPartition]) -> None:
        assert list(wanted) == [WHERE]

    def seek(self, where: TopicPartition, offset: int) -> None:
        assert where == WHERE
        self.position = offset
        self.sought.append(offset)

    async def getmany(self, *, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Fetched]]:
        assert timeout_ms
        assert max_records
        if not self.polls:
            return {}
        offsets, self.position = self.polls.pop(0)
        return {WHERE: [Fetched(offset, self.keys.get(offset)) for offset in offsets]} if offsets else {}


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    made = Log()

    def consumer(**options: Any) -> Log:
        made.options = options
        return made

    monkeypatch.setattr(reader, "AIOKafkaConsumer", consumer)
    monkeypatch.setattr(reader, "position_of", lambda client, _where: client.position)
    return made


async def read(end: int) -> list[int]:
    slices = read_partition(Connection("127.0.0.1:1", {}), "state", 3, end)
    return [record.offset async for records in slices for record in records]


async def test_all_is_read_from_the_beginning_that_is_left_up_to_the_end(log: Log) -> None:
    log.beginning = 2
    log.polls = [([2, 3], 4), ([], 4), ([5, 7], 8), ([8], 9)]
    assert await read(8) == [2, 3, 5, 7]
    assert log.stopped
    assert log.options["isolation_level"] == "read_committed"


async def test_what_was_written_behind_the_end_meanwhile_is_left_out(log: Log) -> None:
    log.polls = [([0, 1, 2, 3, 4, 5], 6)]
    assert await read(4) == [0, 1, 2, 3]
    log.polls = [([0, 1], 2), ([6, 7], 8)]  # the end was a mark that nobody sees
    assert await read(4) == [0, 1]


async def test_a_tail_without_records_is_an_end_too(log: Log) -> None:
    log.polls = [([0, 1], 2), ([], 9)]
    assert await read(9) == [0, 1]


async def test_a_broker_that_does_not_get_so_far_ends_it_with_the_offset(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "CALL_SECONDS", 0.05)
    log.polls = [([0, 1], 2)]
    with pytest.raises(Transient, match=r"state/3: no broker returns records after offset 2"):
        await read(9)
    assert log.stopped


async def test_an_empty_partition_needs_no_poll(log: Log) -> None:
    log.beginning = 5
    assert await read(5) == []


async def tail() -> list[int]:
    records = await read_tail(Connection("127.0.0.1:1", {}), "state", 3)
    return [record.offset for record in records]


async def test_the_tail_is_the_last_records_committed_or_not(log: Log) -> None:
    log.end = 1_000
    log.polls = [(range(936, 970), 970), (range(970, 999), 999), ([], 1_000)]
    assert await tail() == list(range(936, 999))
    assert log.options["isolation_level"] == "read_uncommitted"
    assert log.stopped


async def test_the_last_record_of_a_key_is_looked_for_behind_any_number_of_others(log: Log) -> None:
    log.beginning, log.end = 100, 2_000
    log.polls = [(range(1_936, 2_000), 2_000), ([976, 977, 1_000, 1_977], 2_000)]
    log.keys = {976: b"progress", 977: b"progress", 1_000: b"mark"}
    log.keys[1_940] = b"mark"  # it alone does not end the search
    found = await read_back(Connection("127.0.0.1:1", {}), "state", 3, b"progress", b"mark")
    assert [record.offset for record in found] == [976, 977, 1_000]
    log.polls = [([1_940], 2_000)] * 3
    assert [each.offset for each in await read_back(Connection("127.0.0.1:1", {}), "state", 3, b"none", b"mark")] == [
        1_940
    ]
    log.polls = [([1_940], 2_000)] * 3
    assert not await read_back(Connection("127.0.0.1:1", {}), "state", 3, b"none")
    assert log.sought[-3:] == [1_936, 976, 100]


async def test_a_tail_that_holds_no_records_is_looked_for_further_back_down_to_the_beginning(log: Log) -> None:
    log.beginning, log.end = 100, 2_000
    log.polls = [([], 2_000), ([977, 1_400], 1_401), ([], 2_000)]
    assert await tail() == [977, 1_400]
    assert log.sought == [1_936, 976]
    log.polls = [([], 2_000)] * 3
    assert await tail() == []
    assert log.sought[-3:] == [1_936, 976, 100]


async def test_the_tail_of_an_empty_partition_is_empty(log: Log) -> None:
    log.beginning = log.end = 7
    assert await tail() == []
    assert log.sought == []


async def test_one_record_is_read_only_where_a_committed_reader_would_find_it(log: Log) -> None:
    log.beginning, log.end = 2, 9
    log.polls = [([5], 6)]
    record = await read_record(Connection("127.0.0.1:1", {}), "state", 3, 5)
    assert record is not None
    assert record.offset == 5
    assert log.options["isolation_level"] == "read_committed"
    log.polls = [([], 6)]  # a marker, or a gap
    assert await read_record(Connection("127.0.0.1:1", {}), "state", 3, 5) is None
    for gone in (1, 9):
        assert await read_record(Connection("127.0.0.1:1", {}), "state", 3, gone) is None


async def test_one_record_is_not_waited_for_for_ever(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_RECORD_SECONDS", 0.05)
    log.end = 9
    with pytest.raises(Transient, match=r"^state/3: no answer within the time limit"):
        await read_record(Connection("127.0.0.1:1", {}), "state", 3, 5)
    assert log.stopped


async def scan(first: int, end: int) -> list[int]:
    async with scanning(Connection("127.0.0.1:1", {}), "state", 4) as topic:
        return [record.offset async for records in topic.read(Span(3, first, end)) for record in records]


async def test_a_scan_reads_a_span_and_passes_over_what_retention_removes(log: Log) -> None:
    log.polls = [([2, 3], 4), ([], 7), ([7, 8], 9)]
    assert await scan(2, 8) == [2, 3, 7]
    assert log.options["auto_offset_reset"] == "earliest"
    assert log.stopped


async def test_a_scan_that_brings_nothing_any_more_ends_with_its_topic(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_SCAN_SECONDS", 0.05)
    log.polls = [([2, 3], 4)]
    with pytest.raises(Transient, match="state has more records, but no broker sends them"):
        await scan(2, 8)


async def test_a_broken_batch_ends_a_restore_and_may_be_waited_for_by_a_scan(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(**_options: int) -> dict[TopicPartition, list[Fetched]]:
        raise CorruptRecordException

    monkeypatch.setattr(log, "getmany", broken)
    with pytest.raises(Fatal, match="state/3 fails its checksum: restore the topic"):
        await read(8)
    with pytest.raises(Transient, match=r"^state: a record batch fails its checksum"):
        await scan(2, 8)
