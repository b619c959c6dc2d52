"""What the state says of the group as a whole, read once when a worker starts.

The owner of a partition of `state` writes a mark when it takes the partition over, and a progress row with each commit.
Each partition is read back as far as its last progress row, however many marks, or rows of an open transaction, stand
behind it: what the last few records do not hold proves nothing.
"""

import asyncio
import contextlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from consumer.errors import SafeError, first_of
from consumer.kafka.connection import Connection
from consumer.kafka.reader import read_back
from consumer.wire.changelog import InputTopic, ProgressRow
from consumer.wire.headers import Undecodable, group_of, says_guarded
from consumer.wire.keys import MARK_KEY, PROGRESS_KEY
from consumer.wire.record import Record


@dataclass(frozen=True, slots=True)
class Ownership:
    """What the owners of one partition have written last: a mark or a progress row, and the last progress row."""

    group: str | None
    is_guarded: bool
    progress: ProgressRow | None

    @classmethod
    def of(cls, records: Sequence[Record]) -> "Ownership":
        """From marks and progress rows, at least one, the newest of which are at the end."""
        last, progress = records[-1], None
        for record in records:
            if record.key == PROGRESS_KEY and record.value is not None:
                with contextlib.suppress(Undecodable):  # the restore reports it
                    progress = ProgressRow.decode(record.value)
        return cls(group_of(last.headers), says_guarded(last.headers), progress)


@dataclass(frozen=True, slots=True)
class GroupState:
    """What the owners of all partitions have written last; partitions without an owner so far are left out."""

    owners: Collection[Ownership]

    @property
    def is_new(self) -> bool:
        """Whether nobody has owned a partition so far."""
        return not self.owners

    @property
    def says_guarded(self) -> bool:
        """Whether a worker of a guarded group has owned a partition; one is enough, as others are about to follow."""
        return any(each.is_guarded for each in self.owners)

    @property
    def progress(self) -> Sequence[ProgressRow]:
        """The progress rows."""
        return [each.progress for each in self.owners if each.progress is not None]

    @property
    def inputs(self) -> Sequence[InputTopic]:
        """The input topic that was scored last, of each partition; none if nothing was scored so far."""
        return [row.last_input for row in self.progress if row.last_input is not None]

    @property
    def is_scored_with_notes(self) -> bool:
        """Whether a worker has scored something that writes a note with each offset: it tells the topic's id, too."""
        return any(each.id is not None for each in self.inputs)


async def read_group_state(connection: Connection, topic: str, partitions: int) -> GroupState:
    """Read the end of each partition of the state topic; raises Transient or Fatal."""
    try:
        async with asyncio.TaskGroup() as reading:  # if one fails, the others are cancelled
            ends = [
                reading.create_task(read_back(connection, topic, partition, PROGRESS_KEY, MARK_KEY))
                for partition in range(partitions)
            ]
    except* SafeError as group:
        raise first_of(group) from None
    return GroupState([Ownership.of(end.result()) for end in ends if end.result()])
