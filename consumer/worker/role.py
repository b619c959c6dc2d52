"""What a role is made of, and what it does with a partition."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, Protocol

from consumer.kafka.group_offsets import Committed
from consumer.kafka.subscription import GroupMember, Subscription
from consumer.kafka.writer import Outgoing, PartitionWriter
from consumer.wire.record import Record

RoleName = Literal["scorer", "aggregator"]


class PartitionLogic(Protocol):
    """What a role does with one partition, from the take-up until it is let go.

    If `process` raises, it must have changed nothing; after any failed commit the object is thrown away.
    """

    async def restore(self, writer: PartitionWriter) -> None:
        """Rebuild the state that earlier owners committed. Raises Transient, PartitionLost or Fatal."""

    async def first_offset(self, subscription: Subscription, committed: Committed | None) -> int:
        """The first offset to read, given what the group has committed. Raises Transient, Contradiction or Fatal."""

    async def process(self, records: Sequence[Record], outgoing: Outgoing) -> int:
        """Turn records into outputs; returns how many of them were taken. Raises Transient: try again later."""

    def finish(self, outgoing: Outgoing, next_offset: int, *, at_end: bool) -> str:
        """Add what belongs in every transaction, just before it is committed; return the note for its offset."""

    def committed(self, next_offset: int) -> None:
        """The slice is visible: counters and gauges may move."""

    def next_chore_at(self, *, at_end: bool) -> float:
        """Monotonic time at which finish() has something to write even without records; `inf` for never."""

    def show(self, *, visible: bool) -> None:
        """Export what the partition holds, or hide it while it may not be ours."""

    def drop(self) -> None:
        """The partition is let go, and this object with it."""


@dataclass(frozen=True, slots=True)
class Role:
    """What distinguishes the scorer from the aggregator.

    What is read of a partition of `topic` is written to the partition of the same number of the `aligned` topics, and
    to any partition of the `scattered` ones.
    """

    name: RoleName
    group: str
    topic: str
    exactly_once: bool
    offset_out_of_range: Literal["stop", "earliest"]
    make_subscription: Callable[[GroupMember], Subscription]
    make_logic: Callable[[int], PartitionLogic]
    make_writers: Callable[[Subscription], Callable[[int], PartitionWriter]]
    """For one membership in the group: what makes the writer of each partition."""
    restored_from: str | None = None
    """The topic that the state of a partition is read from when it is taken up, the partition of the same number."""
    aligned: frozenset[str] = frozenset()
    scattered: frozenset[str] = frozenset()
    commit_seconds: float = inf
    """A commit that takes longer costs its writer, whether it succeeds or not."""
