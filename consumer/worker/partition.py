"""The life of one partition, from its assignment to its loss."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from consumer.errors import Contradiction, Fatal, PartitionLost, SafeError, Transient
from consumer.kafka import (
    Committed,
    Fetched,
    Outgoing,
    OutOfGroup,
    PartitionWriter,
    ProducerEpoch,
    Subscription,
)
from consumer.wire.record import Record
from consumer.worker.backlog import Backlog, Backoff, Shares
from consumer.worker.pace import Pace
from consumer.worker.role import PartitionLogic, Role

_log = structlog.get_logger("safe.stage")

LOOK_AGAIN_SECONDS = 1.0
_MARKERS_SECONDS = 0.3
"""How long offsets of transaction markers wait for a record to be committed with."""
_FENCES_WITHIN_SECONDS = 60.0
_CONTRADICTION_SECONDS = 60.0
_BEYOND_QUIET_SECONDS = 5.0
_BEING_TAKEN_UP = "being taken up"
_TELL_AGAIN_SECONDS = 30.0


T = TypeVar("T")


class Runner:
    """One partition of a role, from its assignment to its loss."""

    def __init__(
        self,
        role: Role,
        partition: int,
        subscription: Subscription,
        now_ms: Callable[[], int],
        shares: "Shares",
        *,
        after: tuple["asyncio.Task[None]", ...],
    ) -> None:
        self.partition = partition
        self.position = 0
        self.trouble: str | None = _BEING_TAKEN_UP
        self._told_why: str | None = None
        self._told_at = float("-inf")
        self.unread: str | None = None
        self.quiet = asyncio.Event()
        self.quiet.set()
        self._role = role
        self._subscription = subscription
        self._now_ms = now_ms
        self._logic: PartitionLogic | None = None
        self._writer: PartitionWriter | None = None
        self._granted = asyncio.Event()
        self._granted.set()
        self._attached = False
        self._taken_up = False
        self._noted_end: int | None = None
        self._proven = True
        self._woken = asyncio.Event()
        self._backlog = Backlog(shares)
        self._pace = Pace(role.commit_seconds)  # outlives the writers: the same slice must not come again in full
        self._fenced_at: deque[float] = deque(maxlen=2)
        self._refused_as: ProducerEpoch | None = None
        self._has_committed: int | None = None
        self._contradicted_since: float | None = None
        self._beyond_since: float | None = None
        self._beyond_at = 0.0
        self._backoff = Backoff()
        self.task = asyncio.create_task(self._run(after), name=f"{role.name} {partition}")

    # --- called by the stage, never waiting ---------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        """Whether the runner is still at work."""
        return not self.task.done()

    def suspend(self) -> None:
        """The partition may be taken away: finish the slice in hand and start no other."""
        self._granted.clear()
        self._attached = False
        self._backlog.clear()
        self._woken.set()
        if self._logic is not None:
            self._logic.show(visible=False)

    def keep(self) -> None:
        """The partition came back in the very next generation: nobody else can have owned it in between."""
        self._granted.set()

    def offer(self, fetched: Fetched) -> None:
        """Take what a poll brought, or note why it brings no more."""
        self._forget_beyond()
        if self._attached and fetched.unread is not None:
            self._note_unread(fetched.unread)
        if not self._attached or fetched.next_offset <= self._backlog.fetched_to:
            return
        self.unread = self._beyond_since = None
        self._backlog.add(fetched)
        if self._backlog.is_full and not self._backlog.paused:
            self._backlog.paused = True
            self._subscription.pause(self.partition)
            if self.trouble is not None:
                self._close_batch()
        self._woken.set()

    def seek_back(self, subscription: Subscription) -> None:
        """Fetch again from behind the last record that arrived here."""
        if self._attached:
            subscription.seek(self.partition, self._backlog.fetched_to)

    def beyond(self, subscription: Subscription, offset: int, end: int) -> float:
        """Ask for `offset` again, which lies beyond the log's end; returns for how many seconds that has been so."""
        if not self._attached:
            return 0.0
        now = self._beyond_at = time.monotonic()
        self._beyond_since = since = now if self._beyond_since is None else self._beyond_since
        self._note_unread(Transient(f"offset {offset} lies beyond the end of the log, {end}"))
        subscription.seek(self.partition, offset)
        return now - since

    def _forget_beyond(self) -> None:
        """A leader that knows its end by now says nothing more, and may have no record to send."""
        if self._beyond_since is not None and time.monotonic() - self._beyond_at > _BEYOND_QUIET_SECONDS:
            self.unread = self._beyond_since = None

    def jump(self, subscription: Subscription, offset: int) -> None:
        """Go on at `offset`, past a gap in the log."""
        if self._attached:
            self.unread = None
            self._backlog.jump(offset)
            subscription.seek(self.partition, offset)

    @property
    def lag(self) -> int | None:
        """Records (and markers) between the committed position and the last stable offset; None if unknown."""
        seen = self._subscription.end_seen(self.partition) if self._attached else None
        ends = [end for end in (seen, self._noted_end) if end is not None]
        return max(0, max(ends) - self.position) if ends and self._taken_up else None

    @property
    def is_fetched(self) -> bool:
        """Whether polls tell where the partition ends."""
        return self._attached and not self._backlog.paused and self.unread is None

    async def note_end(self) -> None:
        """Ask where the partition ends; raises Fatal."""
        with contextlib.suppress(Transient):  # only a figure: it is asked for again
            self._noted_end = await self._subscription.end(self.partition)

    # --- the life of a partition --------------------------------------------------------------------------------------

    async def _run(self, after: tuple["asyncio.Task[None]", ...]) -> None:
        if after:
            await asyncio.wait(after)  # the writers that this process still has are closed before new ones fence
        try:
            while True:
                try:
                    await self._take_up()
                    await self._serve()
                except PartitionLost as error:
                    self._contradicted_since = None
                    await self._lost(error)
                except Transient as error:
                    self._contradicted_since = None  # a minute of asking, not of waiting for an answer
                    await self._wait_out(error)
                except Contradiction as error:
                    await self._contradicted(error)
        finally:
            await self._let_go()

    async def _take_up(self) -> None:
        await self._asked(self._subscription.confirm)
        self._logic = self._role.make_logic(self.partition)
        self._writer = self._role.make_writer(self.partition, self._subscription)
        await self._writer.start()
        self._count_fence(self._writer.epoch)
        await self._logic.restore(self._writer)
        committed = await self._asked(self._subscription.committed)
        self._check_not_less(committed)
        self.position = await self._logic.first_offset(self._subscription, committed)
        self._taken_up = True
        self._contradicted_since = None
        _log.debug(
            "partition taken up",
            role=self._role.name, topic=self._role.topic, partition=self.partition,
            committed=committed, position=self.position,
        )  # fmt: skip

    async def _asked(self, question: Callable[[int], Awaitable[T]]) -> T:
        """The group's answer about this partition; while the group deals its partitions again, what we hold is kept."""
        while True:
            await self._granted.wait()
            try:
                answer = await question(self.partition)
            except OutOfGroup as error:
                self.trouble = str(error)  # no warning: a rebalance is nothing out of the ordinary
            else:
                # It may be of before a rebalance, or of before the process was frozen: then it is asked for again.
                if self._granted.is_set() and self._subscription.heartbeat_is_fresh():
                    return answer
            await asyncio.sleep(self._backoff.next())

    def _check_not_less(self, committed: Committed | None) -> None:
        offset = None if committed is None else committed.offset
        if self._has_committed is not None and (offset is None or offset < self._has_committed):
            raise Contradiction(
                f"{self._role.topic}/{self.partition} was committed up to {self._has_committed} by this worker, but "
                f"the group's offset is now {'gone' if offset is None else offset}: it was set back. Start the worker "
                "again if that was meant"
            )

    async def _serve(self) -> None:
        while True:
            await self._granted.wait()
            self._attach()
            # Not `while granted`: a partition may be revoked and come back while one commit is under way.
            while self._attached:
                await self._wait_for_work()
                if self._attached:
                    await self._work()

    def _attach(self) -> None:
        assert self._logic is not None
        self.unread = None
        self._backlog.start(self.position)
        self._subscription.seek(self.partition, self.position)
        self._subscription.resume(self.partition)
        self._attached = True
        if self._proven:
            self.trouble = None
        self._logic.show(visible=True)

    async def _wait_for_work(self) -> None:
        assert self._logic is not None
        self._woken.clear()
        if self._backlog.records:
            return
        at_end = self._at_end()
        chore_at = self._logic.next_chore_at(at_end=at_end)
        markers_at = self._backlog.markers_since
        if markers_at is not None:
            markers_at += _MARKERS_SECONDS
        # That the end is reached may show in a fetch that brings nothing, and wakes nobody.
        look_again_at = None if at_end else time.monotonic() + LOOK_AGAIN_SECONDS
        due = min((at for at in (chore_at, markers_at, look_again_at) if at is not None), default=None)
        wait = None if due is None else due - time.monotonic()
        if wait is None or wait > 0:
            if at_end:
                self._prove()
            try:
                async with asyncio.timeout(wait):
                    await self._woken.wait()
            except TimeoutError:
                return

    def _at_end(self) -> bool:
        end = self._subscription.end_seen(self.partition)
        return end is not None and not self._backlog.records and self._backlog.fetched_to >= end

    async def _work(self) -> None:
        records, next_offset = self._backlog.take(self._pace.share)
        self._resume_when_lower()
        if not records and not self._something_due():
            return
        self.quiet.clear()
        try:
            await self._write(records, next_offset)
        finally:
            self.quiet.set()

    def _something_due(self) -> bool:
        assert self._logic is not None
        chore_at = self._logic.next_chore_at(at_end=self._at_end())
        # Only now: what is due at once, by an earlier reading of the clock, must count, else the loop spins.
        now = time.monotonic()
        markers = self._backlog.markers_since
        if markers is not None and markers + _MARKERS_SECONDS <= now:
            return True
        return chore_at is not None and chore_at <= now

    async def _write(self, records: Sequence[Record], next_offset: int) -> None:
        assert self._logic is not None
        assert self._writer is not None
        filled = await self._fill(records)
        if filled is None:
            return
        outgoing, taken = filled
        if taken < len(records):
            next_offset = records[taken].offset
            self._backlog.put_back(records[taken:])
        note = self._logic.finish(outgoing, next_offset, at_end=self._at_end())
        await self._commit(outgoing, records[:taken], next_offset, note)
        self.position = self._has_committed = next_offset
        self._backlog.committed(next_offset)
        self._logic.committed(next_offset)
        self._prove()

    async def _commit(self, outgoing: Outgoing, records: Sequence[Record], next_offset: int, note: str) -> None:
        """Commit; the time that it takes decides how much the next transaction may hold."""
        assert self._writer is not None
        began = time.monotonic()
        try:
            await self._writer.commit(outgoing, next_offset, note)
        except PartitionLost as lost:
            if not lost.timed_out:
                raise
            # Without records it was a chore, which has the share as its only measure.
            held = self._backlog.share_of(records) if records else 1.0
            self._pace.gave_up(held, time.monotonic())
            raise PartitionLost(f"{lost}, {self._remedy(records)}", timed_out=True) from lost
        self._pace.committed(began, time.monotonic())

    def _remedy(self, records: Sequence[Record]) -> str:
        if len(records) > 1:
            return f"with {len(records)} records: the next slice holds at most half of them"
        held = "one record" if records else "reports, or what is to be forgotten"
        return (
            f"with only {held}: if the brokers are up, the network or a quota lets too little through; raise it, "
            "or SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS"
        )

    async def _fill(self, records: Sequence[Record]) -> tuple[Outgoing, int] | None:
        """Process until it succeeds; None if the partition was taken away, whose next owner reads the records again."""
        assert self._logic is not None
        assert self._writer is not None
        while True:
            outgoing = self._writer.outgoing(self._now_ms())
            outgoing.narrow(self._pace.share)
            try:
                taken = await self._logic.process(records, outgoing)
            except Transient as error:
                if not self._attached:
                    return None
                self._proven = False
                if self.trouble is None and self._backlog.paused:
                    self._close_batch()
                self._note_trouble(error)
                self.quiet.set()
                if not await self._attached_for(self._backoff.next()):
                    return None
                self.quiet.clear()
            else:
                return outgoing, taken

    def _close_batch(self) -> None:
        """Let go of a batch that is not read on: while it is open, other partitions may wait for its memory."""
        self._subscription.seek(self.partition, self._backlog.fetched_to)

    def _prove(self) -> None:
        """What was in trouble has succeeded: taking a partition up again proves nothing, writing for it does."""
        if not self._proven:
            _log.info("the partition goes on", role=self._role.name, topic=self._role.topic, partition=self.partition)
        self._proven = True
        self.trouble = None
        self._backoff.reset()

    async def _attached_for(self, seconds: float) -> bool:
        """Wait; False as soon as the partition is suspended."""
        deadline = time.monotonic() + seconds
        while self._attached and (left := deadline - time.monotonic()) > 0:
            self._woken.clear()
            try:
                async with asyncio.timeout(left):
                    await self._woken.wait()
            except TimeoutError:
                break
        return self._attached

    def _resume_when_lower(self) -> None:
        if self._backlog.paused and self._backlog.is_low:
            self._backlog.paused = False
            self._subscription.resume(self.partition)

    # --- when something fails -----------------------------------------------------------------------------------------

    def _note_trouble(self, error: SafeError) -> None:
        """Say that the partition waits, and, if that becomes another one, why: at most so often."""
        why, now = str(error), time.monotonic()
        begins = self.trouble is None or self.trouble == _BEING_TAKEN_UP
        if begins or (why != self._told_why and now - self._told_at > _TELL_AGAIN_SECONDS):
            self._told_why, self._told_at = why, now
            _log.warning(
                "the partition waits",
                role=self._role.name, topic=self._role.topic, partition=self.partition, why=why,
            )  # fmt: skip
        self.trouble = why

    def _note_unread(self, error: Transient) -> None:
        """What was read before it is served on."""
        if self.unread is None:
            _log.warning(
                "the partition waits",
                role=self._role.name, topic=self._role.topic, partition=self.partition, why=str(error),
            )  # fmt: skip
        self.unread = str(error)

    async def _wait_out(self, error: Transient | Contradiction) -> None:
        self._refused_as = None  # a start that was not answered may have added to the epoch
        self._note_trouble(error)
        await self._let_go()
        await asyncio.sleep(self._backoff.next())

    async def _contradicted(self, error: Contradiction) -> None:
        """Take the partition up again: for a minute, what contradicts itself may be a cluster that is recovering."""
        now = time.monotonic()
        self._contradicted_since = since = self._contradicted_since or now
        if now - since > _CONTRADICTION_SECONDS:
            raise Fatal(str(error)) from error
        await self._wait_out(error)

    async def _lost(self, error: PartitionLost) -> None:
        """Drop everything, and take the partition up again: as always, once the group has confirmed that it is ours."""
        self._proven = False
        if error.fenced and self._writer is not None:
            self._refused_as = self._writer.epoch
        self.trouble = f"taking it up again: {error}"
        _log.warning(
            "the slice in hand was dropped",
            role=self._role.name, topic=self._role.topic, partition=self.partition, why=str(error),
        )  # fmt: skip
        await self._let_go()
        await asyncio.sleep(self._backoff.next())

    def _count_fence(self, now: ProducerEpoch | None) -> None:
        """Note that another writer took over a partition that the group has confirmed, since then, to be ours."""
        before, self._refused_as = self._refused_as, None
        if before is None or now is None or not now.tells_of_another_since(before):
            return
        self._fenced_at.append(time.monotonic())
        if len(self._fenced_at) == 2 and self._fenced_at[1] - self._fenced_at[0] < _FENCES_WITHIN_SECONDS:
            raise Fatal(
                f"another producer took over {self._role.topic}/{self.partition} twice within a minute although the "
                "group assigns it to this worker: something else uses its transactional ids; find it and stop it"
            )

    async def _let_go(self) -> None:
        if self._attached:
            self._close_batch()
        self._attached = False
        self.quiet.set()
        self._backlog.clear()
        self._subscription.pause(self.partition)
        logic, self._logic = self._logic, None
        if logic is not None:
            logic.drop()
        if self._writer is not None:
            await self._writer.dispose()  # if we are cancelled here, the next call awaits it
            self._writer = None
