"""Offsets of the input that SAFE has not committed: which stop their partition, and what is said of them."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from consumer.errors import Fatal, SafeError, Transient
from consumer.kafka.group_offsets import Committed
from consumer.kafka.scored_so_far import ScoredTo
from consumer.worker.unmarked_offsets import UnmarkedOffsets
from tests.support.offsets import noted

GROUP = "safe-v0"
NONE = Committed(120)
EVENT = "an offset without a note of SAFE is accepted"


@dataclass
class Group:
    """What is committed and what is scored, as a worker finds it."""

    committed: dict[int, Committed]
    scored: dict[int, ScoredTo] = field(default_factory=dict)
    failure: SafeError | None = None
    searches: int = 0

    async def ask(self) -> Mapping[int, Committed]:
        return dict(self.committed)

    async def search(self) -> Mapping[int, ScoredTo]:
        self.searches += 1
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        return dict(self.scored)

    async def worker(self, *, guarded: bool = True, notes_are_due: bool = False) -> UnmarkedOffsets:
        """A worker that starts now."""
        offsets = UnmarkedOffsets(GROUP, self.ask, self.search)
        await offsets.look(guarded=guarded, notes_are_due=notes_are_due)
        return offsets


def old(offset: int) -> ScoredTo:
    """Scored last by a version without notes."""
    return ScoredTo(offset, 1)


def new(offset: int) -> ScoredTo:
    """Scored last by one with notes."""
    return ScoredTo(offset, 2)


# what the group has committed when the worker starts, what is scored, what happens to partition 0 with offset 120
AT_START: list[tuple[dict[int, Committed], dict[int, ScoredTo], str | None]] = [
    ({0: NONE, 1: noted(7)}, {0: new(88)}, "up to offset 88 at least, so 32 inputs may have been skipped"),
    ({0: NONE, 1: noted(7)}, {0: new(119)}, "so 1 input may have been skipped"),
    ({0: NONE, 1: noted(7)}, {0: new(120)}, "up to offset 120 at least, so nothing was skipped"),
    ({0: NONE, 1: noted(7)}, {0: new(500)}, "so nothing was skipped"),  # somebody set it back
    ({0: NONE, 1: noted(7)}, {}, "is not known: `scored` does not name the partition in 50,000 records"),
    ({0: NONE, 1: noted(7)}, {0: old(88)}, "32 inputs may have been skipped"),  # its note was written at its take-up
    ({0: NONE, 1: Committed(9)}, {0: new(88)}, "32 inputs may have been skipped"),  # a stranger has read all of it
    ({0: NONE}, {0: new(88), 1: new(3)}, "32 inputs may have been skipped"),
    ({0: NONE, 1: Committed(9)}, {0: old(88)}, None),  # an upgrade
    ({0: NONE, 1: Committed(9, "next_offset=8")}, {}, None),  # the note is copied
    ({0: NONE}, {}, None),
]


@pytest.mark.parametrize(("committed", "scored", "objection"), AT_START)
async def test_an_offset_without_a_note_stops_its_partition_unless_the_group_is_upgraded(
    committed: dict[int, Committed], scored: dict[int, ScoredTo], objection: str | None
) -> None:
    worker = await Group(committed, scored).worker()
    if objection is None:
        await worker.judge(0, NONE)
        return
    with pytest.raises(Transient) as stopped:
        await worker.judge(0, NONE)
    assert f"offset 120 has no note of SAFE: something else has committed it for group {GROUP}" in str(stopped.value)
    assert objection in str(stopped.value)
    assert "safe offsets accept" in str(stopped.value)


async def test_an_upgrade_is_accepted_once_for_all_partitions_and_the_gaps_are_told() -> None:
    group = Group({0: NONE, 1: Committed(9)}, {0: old(88)})
    worker = await group.worker()
    with capture_logs() as logs:
        await worker.judge(0, NONE)
        group.committed[0] = noted(120)
        await worker.judge(1, Committed(9))  # of which nothing is scored any more
    assert [{**each, "event": each["event"] == EVENT} for each in logs] == [
        {
            "event": True, "log_level": "warning",
            "partition": 0, "offset": 120, "scored_up_to": 88, "inputs_between": 32,
        },
        {
            "event": True, "log_level": "warning",
            "partition": 1, "offset": 9, "scored_up_to": None, "inputs_between": None,
        },
    ]  # fmt: skip
    group.committed[1] = Committed(11)
    with pytest.raises(Transient):
        await worker.judge(1, Committed(11))
    with pytest.raises(Transient):
        await (await group.worker()).judge(1, Committed(11))


@pytest.mark.parametrize(("committed", "scored", "_objection"), AT_START)
async def test_once_a_guarded_group_has_scored_with_notes_no_offset_is_taken_for_an_upgrade(
    committed: dict[int, Committed], scored: dict[int, ScoredTo], _objection: str | None
) -> None:
    worker = await Group(committed, scored).worker(notes_are_due=True)
    with pytest.raises(Transient, match="has no note of SAFE"):
        await worker.judge(0, NONE)


@pytest.mark.parametrize(("committed", "scored", "_objection"), AT_START)
async def test_while_older_versions_may_be_in_the_group_everything_is_accepted(
    committed: dict[int, Committed], scored: dict[int, ScoredTo], _objection: str | None
) -> None:
    with capture_logs() as logs:
        await (await Group(committed, scored).worker(guarded=False, notes_are_due=True)).judge(0, NONE)
    assert [each["event"] for each in logs] == [EVENT]


@pytest.mark.parametrize("guarded", [True, False])
async def test_where_the_brokers_do_not_answer_nothing_is_decided(guarded: bool) -> None:
    worker = await Group({0: NONE}, failure=Transient("no answer")).worker(guarded=guarded)
    with pytest.raises(Transient, match="no answer"):
        await worker.judge(0, NONE)


async def test_a_worker_that_may_not_read_what_was_scored_waits_until_it_may() -> None:
    group = Group({0: NONE}, failure=Fatal("scored: not authorised"))
    worker = await group.worker()
    with pytest.raises(Transient, match="How far SAFE had read is not known: scored: not authorised"):
        await worker.judge(0, NONE)
    group.failure = None
    await worker.judge(0, NONE)
    await (await Group({0: NONE}, failure=Fatal("not authorised")).worker(guarded=False)).judge(0, NONE)


async def test_while_an_offset_stays_the_same_nothing_is_searched_again() -> None:
    group = Group({0: NONE, 1: noted(7)}, {0: new(88)})
    worker = await group.worker()
    for _ in range(3):
        with pytest.raises(Transient, match="32 inputs"):
            await worker.judge(0, NONE)
    assert group.searches == 1
    with pytest.raises(Transient, match="33 inputs"):
        await worker.judge(0, Committed(121))
    assert group.searches == 2


async def test_partitions_that_ask_at_the_same_time_share_a_search_and_later_ones_have_their_own() -> None:
    group = Group({0: NONE, 1: NONE, 2: NONE})
    worker = await group.worker()
    await asyncio.gather(*(worker.judge(partition, NONE) for partition in range(3)))
    assert group.searches <= 2
    before = group.searches
    await worker.judge(0, NONE)
    assert group.searches == before + 1
