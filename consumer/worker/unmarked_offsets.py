"""Offsets of the input that SAFE has not committed: they have no note of its own (contract.md, "Ownership").

Any consumer with the group id of the scorers can commit an offset while no worker runs. The inputs before that offset
are then never scored, and nothing else would show it. A version of SAFE without notes commits such offsets too. What
tells the two apart:

| where the offset has no note                                         | who may have committed it  | what happens     |
|----------------------------------------------------------------------|----------------------------|------------------|
| the group is not guarded: a version without notes may be in it       | one of them                | accepted, warned |
| `scored` cannot be read                                              | nobody knows               | stops            |
| the partition was scored last by a worker that writes notes          | somebody else              | stops            |
| in a guarded group, such a worker has scored anything                | somebody else              | stops            |
| no partition had a note when this worker started, and it is the same | the version before         | accepted, warned |
| another partition has a note                                         | somebody else              | stops            |
| no partition has a note                                              | the version before         | accepted, warned |

The first row that applies counts. An accepted offset gets its note at once, before anything is read.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

import structlog

from consumer.errors import Fatal, Transient
from consumer.kafka.cluster import Cluster
from consumer.kafka.connection import Connection
from consumer.kafka.group_offsets import Committed
from consumer.kafka.reader import scanning
from consumer.kafka.scored_so_far import ScoredTo, SourceSearch
from consumer.settings import Settings
from consumer.text import count_of
from consumer.wire.offset_note import FIRST_SCHEMA_WITH_NOTES, is_noted

_log = structlog.get_logger("safe.stage")

MOST_RECORDS = 50_000
"""A worker reads at most this many records of `scored` to find the newest source: it takes about a second."""

_REMEDY = (
    "Stop whatever it was; `safe offsets accept` then says where to continue: 'Offsets that SAFE did not commit' in "
    "docs/how-to/operate.md"
)


class UnmarkedOffsets:
    """Judges the offsets without a note, for all partitions of a worker, once it has had a look.

    `committed` asks what the group has committed for every partition of the input, `search` how far each has been
    scored.
    """

    def __init__(
        self,
        group: str,
        committed: Callable[[], Awaitable[Mapping[int, Committed]]],
        search: Callable[[], Awaitable[Mapping[int, ScoredTo]]],
    ) -> None:
        self._group = group
        self._committed = committed
        self._search = search
        self._guarded = True
        self._notes_are_due = False
        self._before_notes: Mapping[int, int] = {}
        self._searching = asyncio.Lock()
        self._searched_at = float("-inf")
        self._scored: Mapping[int, ScoredTo] = {}
        self._unreadable: Fatal | None = None
        self._objections: dict[int, tuple[Committed, str]] = {}

    async def look(self, *, guarded: bool, notes_are_due: bool) -> None:
        """Remember the offsets of a group without any note, before this worker joins it; raises Transient or Fatal.

        In a group that is not `guarded`, there may be workers of versions that write no notes. `notes_are_due` if the
        state tells that the group is guarded, and that a worker has scored which writes notes: its first one was there
        before anything was scored, and no earlier version has been in the group since.
        """
        self._guarded, self._notes_are_due = guarded, notes_are_due
        committed = await self._committed()
        if not any(is_noted(*each) for each in committed.values()):
            self._before_notes = {partition: each.offset for partition, each in committed.items()}

    async def judge(self, partition: int, committed: Committed) -> None:
        """Return if reading may begin at an offset without a note; else raise Transient, which says what to do.

        Raises Transient or Fatal also if that cannot be found out. A partition waits until its offset is another one:
        until then the answer stays the same, and nothing is searched.
        """
        judged, objection = self._objections.pop(partition, (None, ""))
        if judged == committed:
            self._objections[partition] = committed, objection
            raise Transient(objection)
        scored = await self._scored_to(partition)
        if not await self._is_of_an_older_version(partition, committed, scored):
            objection = self._objection(committed.offset, scored)
            if self._unreadable is None:
                self._objections[partition] = committed, objection
            raise Transient(objection)
        _log.warning(
            "an offset without a note of SAFE is accepted",
            partition=partition, offset=committed.offset,
            scored_up_to=None if scored is None else scored.next_offset,
            inputs_between=None if scored is None else max(0, committed.offset - scored.next_offset),
        )  # fmt: skip

    async def _is_of_an_older_version(self, partition: int, committed: Committed, scored: ScoredTo | None) -> bool:
        if not self._guarded:
            return True
        if self._unreadable is not None:
            return False
        if self._notes_are_due or (scored is not None and scored.schema >= FIRST_SCHEMA_WITH_NOTES):
            return False
        if self._before_notes.get(partition) == committed.offset:
            return True
        return not any(is_noted(*each) for each in (await self._committed()).values())

    async def _scored_to(self, partition: int) -> ScoredTo | None:
        """What was scored, asked after this call began; partitions that wait at the same time share an answer."""
        called_at = time.monotonic()
        async with self._searching:
            if self._searched_at <= called_at:
                searched_at = time.monotonic()
                await self._look_at_scored()
                self._searched_at = searched_at
            return self._scored.get(partition)

    async def _look_at_scored(self) -> None:
        try:
            self._scored, self._unreadable = await self._search(), None
        except Fatal as error:  # a scorer may lack the permission to read what it writes: the partition waits for it
            self._scored, self._unreadable = {}, error

    def _objection(self, offset: int, scored: ScoredTo | None) -> str:
        who = f"offset {offset} has no note of SAFE: something else has committed it for group {self._group}"
        return f"{who}. {self._at_least(offset, scored)}. {_REMEDY}"

    def _at_least(self, offset: int, scored: ScoredTo | None) -> str:
        if scored is None:
            names = f"`scored` does not name the partition in {MOST_RECORDS:,} records"
            return f"How far SAFE had read is not known: {self._unreadable or names}"
        least = f"SAFE itself had read up to offset {scored.next_offset} at least"
        if offset <= scored.next_offset:
            return f"{least}, so nothing was skipped"
        return f"{least}, so {count_of(offset - scored.next_offset, 'input')} may have been skipped"


def unmarked_offsets(cluster: Cluster, connection: Connection, settings: Settings) -> UnmarkedOffsets:
    """Those of one installation."""
    group, topics = settings.kafka_group_id, (settings.input_topic, settings.scored_topic)
    exactly_once = settings.delivery == "exactly_once"
    sources = SourceSearch(group, settings.input_topic, exactly_once=exactly_once, most_records=MOST_RECORDS)

    async def partitions() -> tuple[int, int]:
        counts = await cluster.partition_counts(topics)
        return counts.get(settings.input_topic, 0), counts.get(settings.scored_topic, 0)

    async def committed() -> Mapping[int, Committed]:
        inputs, _ = await partitions()
        return await cluster.committed(group, settings.input_topic, range(inputs))

    async def search() -> Mapping[int, ScoredTo]:
        inputs, scored = await partitions()
        async with scanning(connection, settings.scored_topic, scored) as topic:
            return await sources.of(frozenset(range(inputs)), topic)

    return UnmarkedOffsets(group, committed, search)
