"""The life of one partition, from its assignment to its loss.

| state       | what is held            | what happens                       | what comes next                     |
|-------------|-------------------------|------------------------------------|-------------------------------------|
| TAKING_UP   | from the fence on: all  | confirm, fence, restore, offset    | READY; after a failure BACKING_OFF  |
| READY       | logic, writer, position | waits until the group says "yours" | SERVING; BACKING_OFF                |
| SERVING     | logic, writer, position | records come, slices are committed | READY while the group rebalances;   |
|             |                         |                                    | after a failure BACKING_OFF         |
| BACKING_OFF | nothing                 | a pause, longer each time          | TAKING_UP                           |

The life cycle of the role says in any state whether the group says "yours" (`suspend`, `keep`). In any state the task
may also be cancelled, because the partition went to another member or the worker ends: then all that is held is let go.
What a poll returns counts only while SERVING; the path of a slice, from records to a commit, is
`PartitionLoop._write`.

Why a partition is taken up in this order:

- Confirm before the fence. A coordinator that was cut off from the other brokers goes on answering heartbeats. A member
  that believed it would fence the rightful owner again and again.
- Fence before the restore and before the offset. Until the former owner's transaction has ended, neither its rows nor
  its offset are final. What it may still send with the id of another partition, which it keeps, the group refuses since
  it has confirmed us (kafka/turns.py).
- The offset is asked for with proof (kafka/group_offsets.py), and the restore reads up to a mark of its own: a broker
  that is out of date can delay both, but never answer them.
- An offset below what was committed here, or an offset and a row of state that are not of one transaction, is a
  contradiction: SAFE asks again for a minute, and then the worker ends.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import structlog

from consumer.backoff import Backoff
from consumer.errors import Contradiction, Fatal, PartitionLost, Transient
from consumer.kafka.group_offsets import Committed, OutOfGroup
from consumer.kafka.subscription import Fetched, Subscription
from consumer.kafka.writer import Outgoing, PartitionWriter
from consumer.wire.record import Record
from consumer.worker.buffer import Buffer, Shares
from consumer.worker.event_waits import wait_until
from consumer.worker.partition_troubles import PartitionTroubles
from consumer.worker.repeated_fences import FenceWatch
from consumer.worker.role import PartitionLogic, Role
from consumer.worker.slice_size import SliceSize

_log = structlog.get_logger("safe.stage")

LOOK_AGAIN_SECONDS = 1.0
_MARKERS_SECONDS = 0.3
"""How long offsets of transaction markers wait for a record to be committed with."""

_CONTRADICTION_SECONDS = 60.0
_BEYOND_QUIET_SECONDS = 5.0

T = TypeVar("T")


class State(Enum):
    """Where a partition is in its life: see the table above."""

    TAKING_UP = "taking up"
    READY = "ready"
    SERVING = "serving"
    BACKING_OFF = "backing off"


TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.TAKING_UP: frozenset({State.READY, State.BACKING_OFF}),
    State.READY: frozenset({State.SERVING, State.BACKING_OFF}),
    State.SERVING: frozenset({State.READY, State.BACKING_OFF}),
    State.BACKING_OFF: frozenset({State.TAKING_UP}),
}


@dataclass(slots=True)
class Held:
    """What a partition holds while it is ours; after any failure it is thrown away, and made again.

    `position` is the next offset to read, and to commit.
    """

    logic: PartitionLogic
    writer: PartitionWriter
    position: int = 0


class PartitionLoop:
    """One partition of a role."""

    def __init__(
        self,
        role: Role,
        partition: int,
        subscription: Subscription,
        make_writer: Callable[[int], PartitionWriter],
        now_ms: Callable[[], int],
        shares: Shares,
        *,
        after: tuple["asyncio.Task[None]", ...],
    ) -> None:
        self.partition = partition
        self.troubles = PartitionTroubles(role.name, role.topic, partition)
        self.quiet = asyncio.Event()
        """Set while no slice is in hand."""
        self.quiet.set()
        self.log_end: int | None = None
        """Where the log of the partition ends, as its leader has said a moment ago; None if it has not."""
        self._role = role
        self._subscription = subscription
        self._make_writer = make_writer
        self._now_ms = now_ms
        self._state = State.TAKING_UP
        self._held: Held | None = None
        self._closing: PartitionWriter | None = None
        self._granted = asyncio.Event()
        self._granted.set()
        self._woken = asyncio.Event()
        self._buffer = Buffer(shares)
        self._slice_size = SliceSize(
            role.commit_seconds
        )  # outlives what is held: the same slice must not come again in full
        self._backoff = Backoff()
        self._committed_to: int | None = None
        self._reached: int | None = None
        self._fences = FenceWatch(f"{role.topic}/{partition}")
        self._contradicted_since: float | None = None
        self._beyond_since: float | None = None
        self._beyond_at = 0.0
        self.task = asyncio.create_task(self._run(after), name=f"{role.name} {partition}")

    # --- called by the poll loop, never waiting ----------------------------------------------------------------------

    @property
    def is_serving(self) -> bool:
        """Whether records are read and committed."""
        return self._state is State.SERVING

    @property
    def lag(self) -> int | None:
        """Records (and markers) between the committed position and the end of the log; None if either is unknown.

        What is behind an open transaction counts: it is there, and has no result yet.
        """
        return None if self.log_end is None or self._reached is None else max(0, self.log_end - self._reached)

    @property
    def producer_id(self) -> int | None:
        """The id of the transactional producer that writes for this partition; None if there is none just now."""
        producer = None if self._held is None else self._held.writer.identity
        return None if producer is None else producer.producer_id

    def suspend(self) -> None:
        """The partition may be taken away: finish the slice in hand and start no other."""
        self._granted.clear()
        if self.is_serving:
            self._enter(State.READY)
        self._buffer.clear()
        self._woken.set()
        if self._held is not None:
            self._held.logic.show(visible=False)

    def keep(self) -> None:
        """The partition came back in the very next generation: nobody else can have owned it in between."""
        self._granted.set()

    def offer(self, fetched: Fetched) -> None:
        """Take what a poll returned, or note why it returns no more."""
        self._forget_beyond()
        if self.is_serving and fetched.unread is not None:
            self.troubles.note_unread(fetched.unread)
        if not self.is_serving or fetched.next_offset <= self._buffer.fetched_to:
            return
        self.troubles.unread = self._beyond_since = None
        self._buffer.add(fetched)
        if self._buffer.is_full and not self._buffer.paused:
            self._buffer.paused = True
            self._subscription.pause(self.partition)
            if self.troubles.trouble is not None:
                self._close_batch()
        self._woken.set()

    def seek_back(self) -> None:
        """Fetch again from the end of the last record that arrived here."""
        if self.is_serving:
            self._subscription.seek(self.partition, self._buffer.fetched_to)

    def beyond(self, offset: int, end: int) -> float:
        """Ask again for `offset`, which is beyond the end of the log; returns for how many seconds it has been."""
        if not self.is_serving:
            return 0.0
        now = self._beyond_at = time.monotonic()
        self._beyond_since = since = now if self._beyond_since is None else self._beyond_since
        self.troubles.note_unread(Transient(f"offset {offset} lies beyond the end of the log, {end}"))
        self._subscription.seek(self.partition, offset)
        return now - since

    def _forget_beyond(self) -> None:
        """A leader that knows its end by now answers normally, perhaps without any record."""
        if self._beyond_since is not None and time.monotonic() - self._beyond_at > _BEYOND_QUIET_SECONDS:
            self.troubles.unread = self._beyond_since = None

    def jump(self, offset: int) -> None:
        """Go on at `offset`, past a gap in the log."""
        if self.is_serving:
            self.troubles.unread = None
            self._buffer.fetched_to = offset
            self._subscription.seek(self.partition, offset)

    # --- from state to state ------------------------------------------------------------------------------------------

    def _enter(self, state: State) -> None:
        if state is not self._state:
            assert state in TRANSITIONS[self._state], f"{self._state} to {state}"
            self._state = state

    async def _run(self, after: tuple["asyncio.Task[None]", ...]) -> None:
        if after:
            await asyncio.wait(after)  # the old writers of this process are closed before new ones fence
        try:
            while True:
                try:
                    self._enter(State.TAKING_UP)
                    held = await self._take_up()
                    self._enter(State.READY)
                    await self._serve(held)
                except (PartitionLost, Transient, Contradiction) as error:
                    self._note_failure(error)
                    await self._let_go()
                    await asyncio.sleep(self._backoff.next())
        finally:
            await self._let_go()

    async def _take_up(self) -> Held:
        await self._asked(self._subscription.confirm)
        logic = self._role.make_logic(self.partition)
        writer = self._make_writer(self.partition)
        held = self._held = Held(logic, writer)
        await writer.start()
        self._fences.count(writer.identity)
        await logic.restore(writer)
        committed = await self._asked(self._subscription.committed)
        self._check_not_less(committed)
        held.position = self._reached = await logic.first_offset(self._subscription, committed)
        self._contradicted_since = None
        _log.debug(
            "partition taken up",
            role=self._role.name, topic=self._role.topic, partition=self.partition,
            committed=committed, position=held.position,
        )  # fmt: skip
        return held

    async def _asked(self, question: Callable[[int], Awaitable[T]]) -> T:
        """The group's answer about this partition; what we hold is kept during a rebalance."""
        while True:
            await self._granted.wait()
            try:
                answer = await question(self.partition)
            except OutOfGroup as error:
                self.troubles.trouble = str(error)  # no warning: rebalances are normal
            else:
                # An answer from before a rebalance, or from before the process was frozen, is asked for again.
                if self._granted.is_set() and self._subscription.heartbeat_is_fresh():
                    return answer
            await asyncio.sleep(self._backoff.next())

    def _check_not_less(self, committed: Committed | None) -> None:
        offset = None if committed is None else committed.offset
        if self._committed_to is not None and (offset is None or offset < self._committed_to):
            now = "no longer exists" if offset is None else f"is now {offset}"
            raise Contradiction(
                f"this worker committed {self._role.topic}/{self.partition} up to {self._committed_to}, but the "
                f"group's offset {now}: somebody reset it. If that was intended, start the worker again"
            )

    async def _serve(self, held: Held) -> None:
        while True:
            await self._granted.wait()
            self._attach(held)
            # Not `while granted`: a partition may be revoked and come back during one commit.
            while self.is_serving:
                await self._wait_for_work(held)
                await held.writer.near()
                if self.is_serving:
                    await self._work(held)

    def _attach(self, held: Held) -> None:
        self._buffer.start(held.position)
        self._subscription.seek(self.partition, held.position)
        self._subscription.resume(self.partition)
        self._enter(State.SERVING)
        self.troubles.note_attached()
        held.logic.show(visible=True)

    async def _let_go(self) -> None:
        if self.is_serving:
            self._close_batch()
        self._enter(State.BACKING_OFF)
        self.quiet.set()
        self._buffer.clear()
        self._subscription.pause(self.partition)
        if self._held is not None:
            self._held.logic.drop()
            self._closing, self._held = self._held.writer, None
        if self._closing is not None:
            await self._closing.dispose()  # if we are cancelled here, the next call awaits it
            self._closing = None

    # --- slice by slice -----------------------------------------------------------------------------------------------

    async def _wait_for_work(self, held: Held) -> None:
        self._woken.clear()
        if self._buffer.records:
            return
        wait, at_end = self._due_at(held) - time.monotonic(), self._at_end()
        if not at_end:  # the fetch that reaches the end may be empty, and then wakes nothing
            wait = min(wait, LOOK_AGAIN_SECONDS)
        if wait > 0:
            if at_end:
                self._prove()
            await wait_until(self._woken, wait)

    def _at_end(self) -> bool:
        end = self._subscription.end_seen(self.partition)
        return end is not None and not self._buffer.records and self._buffer.fetched_to >= end

    async def _work(self, held: Held) -> None:
        records, next_offset = self._buffer.take(self._slice_size.share)
        if self._buffer.paused and self._buffer.is_low:
            self._buffer.paused = False
            self._subscription.resume(self.partition)
        if not records:
            due_at = self._due_at(held)
            # The clock is read after that: what became due a moment ago must count, else the loop spins.
            if due_at > time.monotonic():
                return
        self.quiet.clear()
        try:
            await self._write(held, records, next_offset)
        finally:
            self.quiet.set()

    def _due_at(self, held: Held) -> float:
        """When something must be committed even without records; `inf` for never."""
        markers_at = self._buffer.markers_since + _MARKERS_SECONDS
        return min(markers_at, held.logic.next_chore_at(at_end=self._at_end()))

    async def _write(self, held: Held, records: Sequence[Record], next_offset: int) -> None:
        """Process records, and commit the outputs with the offset after them: all of it, or nothing."""
        filled = await self._fill(held, records)
        if filled is None:
            return
        outgoing, taken = filled
        if taken < len(records):
            next_offset = records[taken].offset
            self._buffer.put_back(records[taken:])
        note = held.logic.finish(outgoing, next_offset, at_end=self._at_end())
        await self._commit(held.writer, outgoing, records[:taken], next_offset, note)
        held.position = self._reached = self._committed_to = next_offset
        self._buffer.committed(next_offset)
        held.logic.committed(next_offset)
        self._prove()

    async def _fill(self, held: Held, records: Sequence[Record]) -> tuple[Outgoing, int] | None:
        """Process until it succeeds; None if the partition was taken away, whose next owner reads the records again."""
        while True:
            outgoing = held.writer.outgoing(self._now_ms(), self._slice_size.share)
            try:
                taken = await held.logic.process(records, outgoing)
            except Transient as error:
                if not self.is_serving:
                    return None
                self.troubles.is_proven = False
                if self.troubles.trouble is None and self._buffer.paused:
                    self._close_batch()
                self.troubles.note_waiting(error)
                self.quiet.set()
                if not await self._served_for(self._backoff.next()):
                    return None
                self.quiet.clear()
            else:
                return outgoing, taken

    async def _commit(
        self, writer: PartitionWriter, outgoing: Outgoing, records: Sequence[Record], next_offset: int, note: str
    ) -> None:
        """Commit; how long that takes decides how much the next transaction may hold."""
        began = time.monotonic()
        try:
            await writer.commit(outgoing, next_offset, note)
        except PartitionLost as lost:
            if not lost.timed_out:
                raise
            # Without records it was a chore, whose size is known only as the share.
            share = self._buffer.share_of(records) if records else 1.0
            self._slice_size.gave_up(share, time.monotonic())
            raise PartitionLost(f"{lost}, {_remedy(records)}", timed_out=True) from lost
        self._slice_size.committed(began, time.monotonic())

    def _close_batch(self) -> None:
        """Let go of the client's batch that is not read further: other partitions may wait for its memory."""
        self._subscription.seek(self.partition, self._buffer.fetched_to)

    async def _served_for(self, seconds: float) -> bool:
        """Wait; False as soon as the partition is suspended."""
        deadline = time.monotonic() + seconds
        while self.is_serving and (left := deadline - time.monotonic()) > 0:
            self._woken.clear()
            await wait_until(self._woken, left)
        return self.is_serving

    def _prove(self) -> None:
        """The trouble is over: to take a partition up again proves nothing, to commit for it does."""
        self.troubles.note_served()
        self._backoff.reset()

    # --- when something fails -----------------------------------------------------------------------------------------

    def _note_failure(self, error: PartitionLost | Transient | Contradiction) -> None:
        """Note why the partition is taken up again; raises Fatal for a contradiction that lasts longer than a minute.

        Until then it may come from a cluster that is recovering.
        """
        if isinstance(error, Contradiction):
            now = time.monotonic()
            self._contradicted_since = since = self._contradicted_since or now
            if now - since > _CONTRADICTION_SECONDS:
                raise Fatal(str(error)) from error
        else:
            self._contradicted_since = None  # the minute counts only while the cluster answers
        if not isinstance(error, PartitionLost):
            self._fences.forget_refusal()  # a start without an answer may have raised the epoch
            self.troubles.note_waiting(error)
            return
        if error.fenced and self._held is not None:
            self._fences.note_refusal(self._held.writer.identity)
        self.troubles.note_lost(error)


def _remedy(records: Sequence[Record]) -> str:
    if len(records) > 1:
        return f"with {len(records)} records: the next transaction holds at most half of them"
    held = "one record" if records else "reports and deletions"
    return (
        f"although the transaction held only {held}: if the brokers are up, the network is too slow or a quota too "
        "low; raise the quota, or SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS"
    )
