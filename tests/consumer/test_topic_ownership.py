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
from consumer.wire.changelog import InputTopic, ProgressRow
from consumer.wire.headers import own_headers, owner_headers
from consumer.wire.keys import MARK_KEY, PROGRESS_KEY
from consumer.wire.record import Record
from consumer.worker import group_state, topic_ownership
from consumer.worker.group_state import GroupState, Ownership, read_group_state
from consumer.worker.topic_ownership import check_input_offsets, check_ownership, is_guarded

PARTITIONS: Mapping[Any, int] = {"input": 2, "scored": 8, "state": 8}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load({}, {"SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}, tmp_path).settings


async def test_where_one_partition_cannot_be_read_the_others_are_left_alone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading: set[int] = set()

    async def read_back(_connection: Connection, topic: str, partition: int, *_keys: bytes) -> Sequence[Record]:
        reading.add(partition)
        try:
            if len(reading) == PARTITIONS["state"]:
                raise Transient(f"no answer about {topic}/{partition}")
            await asyncio.get_running_loop().create_future()
        finally:
            reading.remove(partition)
        return ()

    monkeypatch.setattr(group_state, "read_back", read_back)
    with pytest.raises(SafeError, match=r"^no answer about safe\.") as raised:
        await read_group_state(Connection("127.0.0.1:1", {}), settings.state_topic, PARTITIONS["state"])
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


def state(*rows: ProgressRow | None) -> GroupState:
    return GroupState([Ownership("safe-v0", is_guarded=True, progress=row) for row in rows])


def scored(topic_id: str | None) -> ProgressRow:
    return ProgressRow("safe-v0", 2, 8, 9, input=InputTopic(topic_id, is_in_result_ids=False))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_ownership, "_ASK_AGAIN_SECONDS", 0.001)
    monkeypatch.setattr(topic_ownership, "_RECOVERING_SECONDS", 0.1)


@pytest.mark.usefixtures("impatient")
async def test_offsets_have_expired_only_if_there_are_none_for_seconds(settings: Settings) -> None:
    await check_input_offsets(Recovering(3), settings, PARTITIONS, state(scored("one")))
    with pytest.raises(ConfigurationError, match="have expired or were deleted"):
        await check_input_offsets(Recovering(1_000_000), settings, PARTITIONS, state(scored("one")))


PROOFS = [
    ((), False),
    ((None,), False),  # a mark alone
    ((ProgressRow("safe-v0", 2, 8, 9),), False),  # past the mark in `scored` by which a scorer learns the time
    ((None, scored("one")), True),
    ((ProgressRow("safe-v0", 2, 8, 9), scored(None)), True),  # brokers that report no ids
    ((ProgressRow("safe-v0", 1, 8, 9),), True),  # an earlier version does not say
]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("rows", "proves"), PROOFS)
async def test_a_progress_row_proves_that_something_was_scored_if_it_says_so_or_cannot(
    settings: Settings, rows: Sequence[ProgressRow | None], *, proves: bool
) -> None:
    refused = pytest.raises(ConfigurationError, match="have expired") if proves else contextlib.nullcontext()
    with refused:
        await check_input_offsets(Recovering(1_000_000), settings, PARTITIONS, state(*rows))


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
]


@pytest.mark.parametrize(("rows", "expected"), STATES)
async def test_a_group_is_guarded_that_is_new_or_whose_state_says_so(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, rows: list[Row], *, expected: bool
) -> None:
    async def read_back(_connection: Connection, _topic: str, partition: int, *keys: bytes) -> Sequence[Record]:
        return [row for row in rows if row.partition == partition and row.key in keys]

    monkeypatch.setattr(group_state, "read_back", read_back)
    found = await read_group_state(Connection("127.0.0.1:1", {}), "state", PARTITIONS["state"])
    assert is_guarded(settings, found) is expected
    for given in (True, False):
        told = settings.model_copy(update={"kafka_group_guard": given})
        assert is_guarded(told, found) is given


async def test_the_owner_and_the_count_of_partitions_are_told_by_the_state(settings: Settings) -> None:
    connection = Connection("127.0.0.1:1", {})
    await check_ownership(connection, settings, PARTITIONS, state(None, scored("one")))
    foreign = GroupState([Ownership("others", is_guarded=True, progress=None)])
    with pytest.raises(ConfigurationError, match="belongs to group others"):
        await check_ownership(connection, settings, PARTITIONS, foreign)
    with pytest.raises(ConfigurationError, match="the state was written for 4 partitions"):
        await check_ownership(connection, settings, PARTITIONS, state(ProgressRow("safe-v0", 2, 4, 9)))


def test_notes_are_due_once_a_worker_has_scored_that_tells_the_topics_id() -> None:
    assert state(ProgressRow("safe-v0", 1, 8, 9), scored("one")).is_scored_with_notes
    assert not state(ProgressRow("safe-v0", 1, 8, 9), scored(None), None).is_scored_with_notes
