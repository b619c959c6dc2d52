"""Reading a partition up to an offset: all before it, nothing behind it, and no waiting for ever."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiokafka import TopicPartition

from consumer.errors import Transient
from consumer.kafka import Connection, read_partition, reader

WHERE = TopicPartition("state", 3)


@dataclass
class Fetched:
    """A record of which only the place matters."""

    offset: int


@dataclass
class Log:
    """A client that brings what the test says, poll by poll: offsets, and the position after them."""

    beginning: int = 0
    polls: list[tuple[Sequence[int], int]] = field(default_factory=list)
    position: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    stopped: bool = False

    async def start(self) -> None:
        """Nobody to connect to."""

    async def stop(self) -> None:
        self.stopped = True

    async def beginning_offsets(self, wanted: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(wanted, self.beginning)

    def assign(self, wanted: Sequence[TopicPartition]) -> None:
        assert list(wanted) == [WHERE]

    def seek(self, where: TopicPartition, offset: int) -> None:
        assert where == WHERE
        self.position = offset

    async def getmany(self, *, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Fetched]]:
        assert timeout_ms
        assert max_records
        if not self.polls:
            return {}
        offsets, self.position = self.polls.pop(0)
        return {WHERE: [Fetched(offset) for offset in offsets]} if offsets else {}


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
    with pytest.raises(Transient, match=r"state/3: no broker sends what comes after offset 2"):
        await read(9)
    assert log.stopped


async def test_an_empty_partition_needs_no_poll(log: Log) -> None:
    log.beginning = 5
    assert await read(5) == []
