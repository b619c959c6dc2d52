"""Whose the topics are: what becomes of the looks at the other partitions when one of them fails."""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from consumer.errors import ConfigurationError, SafeError, Transient
from consumer.kafka.cluster import Cluster
from consumer.kafka.connection import Connection
from consumer.settings import Settings, load
from consumer.wire.headers import own_headers, owner_headers
from consumer.wire.keys import MARK_KEY, PROGRESS_KEY
from consumer.wire.record import Record
from consumer.worker import topic_ownership
from consumer.worker.topic_ownership import check_input_offsets, check_ownership, is_guarded

PARTITIONS: Mapping[Any, int] = {"input": 2, "scored": 8, "state": 8}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load({}, {"SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}, tmp_path).settings


async def test_where_one_partition_cannot_be_read_the_others_are_left_alone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading: set[int] = set()

    async def read_tail(_connection: Connection, topic: str, partition: int) -> Sequence[Record]:
        reading.add(partition)
        try:
            if len(reading) == PARTITIONS["state"]:
                raise Transient(f"no answer about {topic}/{partition}")
            await asyncio.get_running_loop().create_future()
        finally:
            reading.remove(partition)
        return ()

    monkeypatch.setattr(topic_ownership, "read_tail", read_tail)
    with pytest.raises(SafeError, match=r"^no answer about safe\.") as raised:
        await check_ownership(Connection("127.0.0.1:1", {}), settings, PARTITIONS)
    assert type(raised.value) is Transient
    assert not reading


@dataclass
class Row:
    """The last record of a partition of the state topic."""

    headers: Sequence[tuple[str, bytes | None]]
    topic: str = "state"
    partition: int = 0
    offset: int = 5
    timestamp: int = 0
    key: bytes | None = b"I25/b/1"
    value: bytes | None = b"{}"


class Recovering(Cluster):
    """Brokers that were all down: at first their coordinator knows of no offset."""

    def __init__(self, empty_answers: int) -> None:
        self.empty_answers = empty_answers

    @override
    async def committed_offsets(self, group: str, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        self.empty_answers -= 1
        return {} if self.empty_answers >= 0 else dict.fromkeys(partitions, 41)


@pytest.fixture
def scored_before(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state topic that holds a row of ours."""
    row = Row(headers=(("safe.group", settings.kafka_group_id.encode()),))

    async def read_tail(_connection: Connection, _topic: str, _partition: int) -> Sequence[Record]:
        return (row,)

    monkeypatch.setattr(topic_ownership, "read_tail", read_tail)
    monkeypatch.setattr(topic_ownership, "_ASK_AGAIN_SECONDS", 0.001)
    monkeypatch.setattr(topic_ownership, "_RECOVERING_SECONDS", 0.1)


@pytest.mark.usefixtures("scored_before")
async def test_offsets_have_expired_only_if_there_are_none_for_seconds(settings: Settings) -> None:
    connection = Connection("127.0.0.1:1", {})
    await check_input_offsets(connection, Recovering(3), settings, PARTITIONS)
    with pytest.raises(ConfigurationError, match="have expired or were deleted"):
        await check_input_offsets(connection, Recovering(1_000_000), settings, PARTITIONS)


@pytest.mark.parametrize(("key", "proves"), [(MARK_KEY, False), (PROGRESS_KEY, False), (b"S11/B", True)])
async def test_only_a_row_of_a_batch_or_a_case_proves_that_something_was_scored(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, scored_before: None, key: bytes, *, proves: bool
) -> None:
    assert scored_before is None
    row = Row(headers=(("safe.group", settings.kafka_group_id.encode()),), key=key)

    async def read_tail(_connection: Connection, _topic: str, _partition: int) -> Sequence[Record]:
        return (row,)

    monkeypatch.setattr(topic_ownership, "read_tail", read_tail)
    refused = pytest.raises(ConfigurationError, match="have expired") if proves else contextlib.nullcontext()
    with refused:
        await check_input_offsets(Connection("127.0.0.1:1", {}), Recovering(1_000_000), settings, PARTITIONS)


# --- whether the groups take workers of this version alone ------------------------------------------------------------

EARLIER = own_headers("safe-v0")
GUARDED = owner_headers("safe-v0", guarded=True)
UNGUARDED = owner_headers("safe-v0", guarded=False)
CASE = Row(EARLIER)


def progress(headers: Sequence[tuple[str, bytes | None]], partition: int = 0) -> Row:
    return Row(headers, key=PROGRESS_KEY, partition=partition)


def mark(headers: Sequence[tuple[str, bytes | None]], partition: int = 0) -> Row:
    return Row(headers, key=MARK_KEY, value=None, partition=partition)


# What stands last in the partitions of the state topic, and whether the group is guarded if no setting says so.
STATES: list[tuple[list[Row], bool]] = [
    ([], True),  # a new group
    ([mark(EARLIER)], False),  # an earlier version has taken up a partition, and written nothing yet
    ([CASE, progress(EARLIER)], False),
    ([CASE, progress(UNGUARDED)], False),  # this version has, but offers the earlier names
    ([mark(GUARDED)], True),
    ([CASE, progress(GUARDED)], True),
    ([progress(EARLIER), mark(GUARDED), CASE, progress(GUARDED), CASE], True),
    ([progress(GUARDED), mark(EARLIER)], False),  # back again
    ([progress(UNGUARDED), progress(GUARDED, 1)], True),  # one partition is enough: a worker is about to change
    ([CASE], False),
]


@pytest.mark.parametrize(("rows", "expected"), STATES)
async def test_a_group_is_guarded_that_is_new_or_whose_state_says_so(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, rows: list[Row], *, expected: bool
) -> None:
    async def read_tail(_connection: Connection, _topic: str, partition: int) -> Sequence[Record]:
        return [row for row in rows if row.partition == partition]

    monkeypatch.setattr(topic_ownership, "read_tail", read_tail)
    assert await is_guarded(Connection("127.0.0.1:1", {}), settings, PARTITIONS) is expected
    for given in (True, False):
        told = settings.model_copy(update={"kafka_group_guard": given})
        assert await is_guarded(Connection("127.0.0.1:1", {}), told, PARTITIONS) is given
