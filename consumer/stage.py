"""The life of a role: join the group, take up partitions, serve them slice by slice, let them go.

What both roles share is here; what a slice means is in `scorer.py` and `aggregator.py`. A partition is taken up in one
order only: have the group confirm that it is ours, fence the former owner, restore, ask for the committed offset, seek,
resume. One writer writes for it until anything fails; then everything in hand is dropped, and it is taken up again if
it is still ours.

Why each step comes where it does:

- Confirm before the fence. A coordinator that was cut off from the other brokers goes on answering heartbeats. A member
  that believed it would fence the rightful owner again and again.
- Fence before the restore and before the offset. Until the former owner's transaction has ended, neither its rows nor
  its offset are final.
- The offset is asked with proof (kafka/group_offsets.py), and the restore reads up to a mark of its own: a broker of
  the past can delay both, but never answer them.
- An offset below what was committed here, or an offset and a row of state that are not of one transaction, is a
  contradiction: it is asked about for a minute, and then ends the worker.
"""

import asyncio
import contextlib
import random
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, Protocol, TypeVar

import structlog

from consumer.decode import Record
from consumer.errors import Contradiction, Fatal, PartitionLost, SafeError, Transient
from consumer.kafka import (
    Committed,
    Fetched,
    OffsetOutOfRange,
    Outgoing,
    OutOfGroup,
    PartitionWriter,
    ProducerEpoch,
    Subscription,
    size_of,
)
from consumer.pace import Pace

_log = structlog.get_logger("safe.stage")

_POLL_SECONDS = 0.2
_SLICE_RECORDS = 2_000
_SLICE_BYTES = 8 * 1024 * 1024
_BACKLOG_RECORDS = 5_000
_BACKLOG_BYTES = 16 * 1024 * 1024
_ALL_SLICES_BYTES = 24 * 1024 * 1024
_ALL_BACKLOGS_BYTES = 56 * 1024 * 1024
"""What all partitions of a role may hold together: each has an even share, and no more than is its own limit."""
_LEAST_SHARE_BYTES = 512 * 1024
_REVOKE_SECONDS = 15.0
_MARKERS_SECONDS = 0.3
"""How long offsets of transaction markers wait for a record to be committed with."""
_LOOK_AGAIN_SECONDS = 1.0
_FENCES_WITHIN_SECONDS = 60.0
_CONTRADICTION_SECONDS = 60.0
_BEYOND_SECONDS = 30.0
"""How long an offset beyond the end of its log may be the word of a leader that does not know its end yet."""
_BEYOND_QUIET_SECONDS = 5.0
_FIRST_BACKOFF_SECONDS = 0.1
_LONGEST_BACKOFF_SECONDS = 5.0
_BEING_TAKEN_UP = "being taken up"
_TELL_AGAIN_SECONDS = 30.0
_SILENT_GROUP_SECONDS = 90.0
"""A member that hears nothing from its group for this long joins it anew."""
_POLL_TROUBLE_SECONDS = 10.0
"""How long a failed poll is remembered: polls that bring the other partitions' records succeed in between."""


T = TypeVar("T")

RoleName = Literal["scorer", "aggregator"]


class PartitionLogic(Protocol):
    """What a role does with one partition; one object from taking it up to letting it go.

    `process` must leave no trace when it raises; after any failed commit the object is thrown away.
    """

    async def restore(self, writer: PartitionWriter) -> None:
        """Rebuild the state that earlier owners committed. Raises Transient, PartitionLost or Fatal."""
        ...

    async def first_offset(self, subscription: Subscription, committed: Committed | None) -> int:
        """Where to read on, given what the group has committed. Raises Transient, Contradiction or Fatal."""
        ...

    async def process(self, records: Sequence[Record], outgoing: Outgoing) -> int:
        """Turn records into outputs; returns how many of them were taken. Raises Transient: try again later."""
        ...

    def finish(self, outgoing: Outgoing, next_offset: int, *, at_end: bool) -> str:
        """Add what belongs into every transaction, just before it is committed; return the note for its offset."""
        ...

    def committed(self, next_offset: int) -> None:
        """The slice is visible: counters and gauges may move."""
        ...

    def next_chore_at(self, *, at_end: bool) -> float | None:
        """Monotonic time at which finish() has something to write even without records."""
        ...

    def show(self, *, visible: bool) -> None:
        """Export what the partition holds, or hide it while it may not be ours."""
        ...

    def drop(self) -> None:
        """The partition is let go, and this object with it."""
        ...


@dataclass(frozen=True, slots=True)
class Role:
    """What distinguishes the scorer from the aggregator.

    What is read of a partition of `topic` is written to the partition of the same number of the `aligned` topics, and
    to any partition of the `scattered` ones.
    """

    name: RoleName
    topic: str
    exactly_once: bool
    offset_out_of_range: Literal["stop", "earliest"]
    make_subscription: "Callable[[Stage], Subscription]"
    make_logic: Callable[[int], PartitionLogic]
    make_writer: Callable[[int, Subscription], PartitionWriter]
    aligned: frozenset[str] = frozenset()
    scattered: frozenset[str] = frozenset()
    commit_seconds: float = inf
    """A commit that takes longer costs its writer, whether it succeeds or not."""


class Stage:
    """One role of this process; run() returns after stop() and raises Fatal."""

    def __init__(self, role: Role, *, shutdown_seconds: float, now_ms: Callable[[], int]) -> None:
        self.role = role
        self.runners: dict[int, Runner] = {}
        self.joined = False
        self.polled_at = time.monotonic()
        self.subscription: Subscription | None = None
        self.leaderless: frozenset[int] = frozenset()
        """Partitions of the topic that have no leader, as the cluster says: nothing of them can be read."""
        self._shutdown_seconds = shutdown_seconds
        self._now_ms = now_ms
        self._generation: int | None = None
        self._stopping = asyncio.Event()
        self._failure: BaseException | None = None
        self._disposals: set[asyncio.Task[None]] = set()
        self._told_serving = False
        self._poll_trouble: str | None = None
        self._poll_failed_at = float("-inf")
        self._shares = Shares()
        self._waiting_since: dict[int, float] = {}

    # --- running ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve until stop(); whatever is transient is waited out here."""
        backoff = Backoff()
        while not self._stopping.is_set():
            try:
                await self._membership(backoff)
            except Transient as error:
                _log.warning("the group was left; joining again", role=self.role.name, why=str(error))
                await self._stop_or(backoff.next())

    def stop(self) -> None:
        """Ask run() to drain and return; may be called twice."""
        self._stopping.set()

    async def _membership(self, backoff: "Backoff") -> None:
        self.subscription = subscription = self.role.make_subscription(self)
        await subscription.start()
        self.polled_at = time.monotonic()
        polling = asyncio.create_task(self._poll_until_stopped(subscription, backoff), name=f"{self.role.name} poll")
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({polling, stopped}, return_when=asyncio.FIRST_COMPLETED)
            # A poll may hang in a rebalance that never ends; only a process that is ending may cancel it.
            await asyncio.wait({polling}, timeout=2 * _POLL_SECONDS if not polling.done() else 0)
        except asyncio.CancelledError:
            self.stop()  # the process ends: polls that fail while the group is left are no news
            raise
        finally:
            stopped.cancel()
            await self._leave(subscription)
            polling.cancel()
            await asyncio.wait({polling})
        if not polling.cancelled():
            polling.result()

    async def _poll_until_stopped(self, subscription: Subscription, backoff: "Backoff") -> None:
        while not self._stopping.is_set():
            self._note_waits()
            try:
                fetched = await self._poll(subscription)
            except Transient as error:
                self._raise_failure()  # why the role ends is said; that its polls fail too would point elsewhere
                if self._stopping.is_set():
                    return
                self._note_failed_poll(error)
                self._seek_back(subscription)
                if subscription.is_broken:
                    raise
                await self._stop_or(backoff.next())
                continue
            finally:
                self._raise_failure()
            self.polled_at = time.monotonic()
            for partition, batch in fetched.items():
                runner = self.runners.get(partition)
                if runner is not None:
                    runner.offer(batch)
            if any(batch.records for batch in fetched.values()):
                backoff.reset()
            self._check_silence(subscription)
            self._tell_serving()

    async def _poll(self, subscription: Subscription) -> dict[int, Fetched]:
        """What has been fetched, nothing where a partition's offset is not in its log; raises Transient or Fatal."""
        try:
            return await subscription.poll(_POLL_SECONDS)
        except OffsetOutOfRange as gap:
            await self._out_of_range(subscription, gap)
            return {}

    def _tell_serving(self) -> None:
        """Say once for each assignment that all of it is served."""
        if self.joined and not self._told_serving and not self.troubles():
            self._told_serving = True
            _log.info("serving", role=self.role.name, topic=self.role.topic, partitions=sorted(self.runners))

    def _note_failed_poll(self, error: Transient) -> None:
        if not self._polling_fails():
            _log.warning("polling fails", role=self.role.name, topic=self.role.topic, why=str(error))
        self._poll_trouble = str(error)
        self._poll_failed_at = time.monotonic()

    def _polling_fails(self) -> bool:
        return time.monotonic() - self._poll_failed_at < _POLL_TROUBLE_SECONDS

    def _check_silence(self, subscription: Subscription) -> None:
        silent = time.monotonic() - max(subscription.last_heartbeat_at, subscription.started_at)
        if silent > _SILENT_GROUP_SECONDS:
            raise Transient(f"the group has not answered for {silent:.0f} s")

    def _seek_back(self, subscription: Subscription) -> None:
        """After a failed poll positions may stand behind records that were never delivered."""
        for runner in self.runners.values():
            runner.seek_back(subscription)

    async def _out_of_range(self, subscription: Subscription, gap: OffsetOutOfRange) -> None:
        """A broker does not have the offset that is to be read next: it was deleted, or there is no such offset yet."""
        await subscription.refresh_metadata()
        beginning, end = await subscription.bounds(gap.partition)
        if gap.offset < beginning:
            self._deleted_unread(subscription, gap, beginning)
        else:
            self._beyond_the_end(subscription, gap, end)
            await self._stop_or(_LOOK_AGAIN_SECONDS)  # the answer would be the same at once

    def _deleted_unread(self, subscription: Subscription, gap: OffsetOutOfRange, beginning: int) -> None:
        if self.role.offset_out_of_range == "stop":
            raise Fatal(
                f"offset {gap.offset} of {self.role.topic}/{gap.partition} is no longer in its log, which begins at "
                f"{beginning}: records were deleted before they were read. Set SAFE_V0_OFFSET_OUT_OF_RANGE=earliest "
                "to go on with what is there"
            ) from gap
        _log.warning(
            "the next offset to read is not in the log; going on with the earliest",
            topic=self.role.topic, partition=gap.partition, offset=gap.offset, earliest=beginning,
        )  # fmt: skip
        runner = self.runners.get(gap.partition)
        if runner is not None:
            runner.jump(subscription, beginning)

    def _beyond_the_end(self, subscription: Subscription, gap: OffsetOutOfRange, end: int) -> None:
        """Never a reason to jump. A leader that has just been elected may not know its end yet: ask it again."""
        runner = self.runners.get(gap.partition)
        if runner is None:
            return
        waits = runner.beyond(subscription, gap.offset, end)
        if waits > _BEYOND_SECONDS:
            raise Fatal(
                f"offset {gap.offset} of {self.role.topic}/{gap.partition} lies beyond its end, {end}: the topic was "
                "deleted and created again, or restored from an older copy. See 'Starting over' in docs/operate.md"
            ) from gap

    async def _stop_or(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    # --- rebalances ---------------------------------------------------------------------------------------------------

    async def on_revoked(self) -> None:
        """The group is about to deal anew: finish or abandon what is in hand, fetch nothing, show nothing."""
        try:
            for runner in self.runners.values():
                runner.suspend()
            late = await self._quiet(_REVOKE_SECONDS)
            for partition in late:
                self._drop(partition)
        except Exception as error:  # noqa: BLE001 - aiokafka logs and swallows it; a half-done revoke must stop us
            self._failure = self._failure or error

    def on_assigned(self, partitions: frozenset[int], generation: int) -> None:
        """The group has dealt: keep what came back in the very next generation, take up what is new, drop the rest."""
        try:
            unbroken = self.role.exactly_once and self._generation is not None and generation == self._generation + 1
            self._generation = generation
            self._shares.partitions = max(1, len(partitions))
            for partition in list(self.runners):
                if unbroken and partition in partitions and self.runners[partition].alive:
                    self.runners[partition].keep()
                else:
                    self._drop(partition)
            for partition in sorted(partitions - self.runners.keys()):
                self._take_up(partition)
            self.joined = True
            self._told_serving = False
            _log.info(
                "partitions assigned",
                role=self.role.name, topic=self.role.topic, partitions=sorted(partitions), generation=generation,
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001 - as above
            self._failure = self._failure or error

    def _take_up(self, partition: int) -> None:
        assert self.subscription is not None
        after = tuple(self._disposals)
        runner = Runner(self.role, partition, self.subscription, self._now_ms, self._shares, after=after)
        self.runners[partition] = runner
        runner.task.add_done_callback(self._runner_ended)

    def _runner_ended(self, task: "asyncio.Task[None]") -> None:
        self._disposals.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = self._failure or task.exception()

    def _drop(self, partition: int) -> None:
        runner = self.runners.pop(partition)
        runner.suspend()
        if not runner.task.done():
            self._disposals.add(runner.task)
            runner.task.cancel()

    async def _quiet(self, seconds: float) -> list[int]:
        """Wait until no runner has a slice in hand; returns the partitions that still have."""
        waits = {asyncio.create_task(runner.quiet.wait()): partition for partition, runner in self.runners.items()}
        if not waits:
            return []
        _done, late = await asyncio.wait(waits, timeout=seconds)
        for task in late:
            task.cancel()
        return [waits[task] for task in late]

    async def _leave(self, subscription: Subscription) -> None:
        """Finish the slices in hand, close the writers, leave the group: all within one deadline."""
        deadline = time.monotonic() + self._shutdown_seconds
        for runner in self.runners.values():
            runner.suspend()
        await self._quiet(max(0.5, self._shutdown_seconds * 0.6))
        for partition in list(self.runners):
            self._drop(partition)
        if self._disposals:
            await asyncio.wait(self._disposals, timeout=max(0.5, deadline - time.monotonic()))
        self.joined = False
        self._generation = None
        await subscription.stop(max(0.5, min(5.0, deadline - time.monotonic())))

    # --- what health asks ---------------------------------------------------------------------------------------------

    def troubles(self) -> list[str]:
        """Why the role cannot serve all of its partitions just now; empty when it does."""
        if not self.joined or self.subscription is None:
            return [f"{self.role.name}: not yet a member of its group"]
        if not self.subscription.heartbeat_is_fresh():
            return [f"{self.role.name}: the group coordinator does not answer"]
        polling = [f"{self.role.name}: polling fails: {self._poll_trouble}"] if self._polling_fails() else []
        return polling + [
            f"{self.role.name}: partition {partition} of {self.role.topic}: {trouble}"
            for partition, runner in sorted(self.runners.items())
            for trouble in (runner.trouble, runner.unread)
            if trouble is not None
        ]

    def _note_waits(self) -> None:
        """Looked at with every poll, so that a partition taken up anew in between does not begin to wait anew."""
        now = time.monotonic()
        waiting = [
            at
            for at, runner in self.runners.items()
            if runner.trouble is not None or runner.unread is not None or at in self.leaderless
        ]
        self._waiting_since = {partition: self._waiting_since.get(partition, now) for partition in waiting}

    def waiting_seconds(self) -> dict[int, float]:
        """How long each partition has been waiting, 0 for those that are served."""
        now = time.monotonic()
        return {partition: now - self._waiting_since.get(partition, now) for partition in self.runners}

    def lags(self) -> dict[int, int]:
        """The lag of each partition whose lag is known: without a leader nobody can tell where one ends."""
        known = {at: runner.lag for at, runner in self.runners.items() if at not in self.leaderless}
        return {partition: lag for partition, lag in known.items() if lag is not None}

    def needs(self, topic: str, partition: int) -> bool:
        """Whether the partitions that are ours cannot be served without this one."""
        if topic in self.role.scattered:
            return bool(self.runners)
        return partition in self.runners and (topic == self.role.topic or topic in self.role.aligned)

    async def note_ends(self) -> None:
        """Ask where the partitions end that are not being fetched: their lag must not stand still while they wait."""
        await asyncio.gather(
            *(
                runner.note_end()
                for partition, runner in self.runners.items()
                if not runner.is_fetched and partition not in self.leaderless
            )
        )


class Backoff:
    """Exponential with full jitter."""

    def __init__(self) -> None:
        self._ceiling = _FIRST_BACKOFF_SECONDS

    def next(self) -> float:
        """Seconds to wait before the next attempt."""
        ceiling = self._ceiling
        self._ceiling = min(_LONGEST_BACKOFF_SECONDS, ceiling * 2)
        return random.uniform(ceiling / 2, ceiling)  # noqa: S311 - spreads load, guards nothing

    def reset(self) -> None:
        """The last attempt succeeded."""
        self._ceiling = _FIRST_BACKOFF_SECONDS


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
        look_again_at = None if at_end else time.monotonic() + _LOOK_AGAIN_SECONDS
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


class Shares:
    """How much each partition of a role may hold, in bytes: the more partitions, the less."""

    def __init__(self) -> None:
        self.partitions = 1

    @property
    def backlog_bytes(self) -> int:
        """What may have been fetched and not yet processed."""
        return min(_BACKLOG_BYTES, max(_LEAST_SHARE_BYTES, _ALL_BACKLOGS_BYTES // self.partitions))

    @property
    def slice_bytes(self) -> int:
        """What may be processed at once, the last record to be completed."""
        return min(_SLICE_BYTES, max(_LEAST_SHARE_BYTES, _ALL_SLICES_BYTES // self.partitions))


class Backlog:
    """Records that have been fetched and not yet processed, and how far fetching has come."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self.records: deque[Record] = deque()
        self._sizes: deque[int] = deque()
        self.fetched_to = 0
        self.paused = False
        self.markers_since: float | None = None
        self._bytes = 0

    def start(self, position: int) -> None:
        """Begin at `position`, with nothing fetched."""
        self.clear()
        self.fetched_to = position

    def clear(self) -> None:
        """Forget what was fetched."""
        self.records.clear()
        self._sizes.clear()
        self._bytes = 0
        self.paused = False
        self.markers_since = None

    def add(self, fetched: Fetched) -> None:
        """Append what a poll brought."""
        known = bisect_left(fetched.records, self.fetched_to, key=lambda record: record.offset)
        self.records.extend(fetched.records[known:])
        self._sizes.extend(fetched.sizes[known:])
        self._bytes += sum(fetched.sizes[known:])
        self.fetched_to = fetched.next_offset
        if not self.records and self.markers_since is None:
            self.markers_since = time.monotonic()

    @property
    def is_full(self) -> bool:
        """Enough to work on for a while."""
        return len(self.records) > _BACKLOG_RECORDS or self._bytes > self._shares.backlog_bytes

    @property
    def is_low(self) -> bool:
        """Time to fetch again."""
        return len(self.records) < _BACKLOG_RECORDS // 2 and self._bytes < self._shares.backlog_bytes // 2

    def take(self, share: float = 1.0) -> tuple[list[Record], int]:
        """The next slice (everything there is, up to its bounds) and the offset to commit with it.

        `share` is how much of its bounds a slice may have; it holds one record at the least.

        That offset is behind the markers too once nothing is left in between: a group that only ever commits behind
        records never shows a lag of zero.
        """
        taken: list[Record] = []
        size, most = 0, max(1, int(self._shares.slice_bytes * share))
        most_records = max(1, int(_SLICE_RECORDS * share))
        while self.records and len(taken) < most_records and size < most:
            taken.append(self.records.popleft())
            size += self._sizes.popleft()
        self._bytes -= size
        return taken, self.records[0].offset if self.records else self.fetched_to

    def share_of(self, records: Sequence[Record]) -> float:
        """What share of a full slice these are, by number or by bytes, whichever is more."""
        size = sum(map(size_of, records))
        return max(len(records) / _SLICE_RECORDS, size / self._shares.slice_bytes)

    def put_back(self, records: Sequence[Record]) -> None:
        """Return what a slice did not take."""
        sizes = [size_of(record) for record in records]
        self.records.extendleft(reversed(records))
        self._sizes.extendleft(reversed(sizes))
        self._bytes += sum(sizes)

    def committed(self, next_offset: int) -> None:
        """Everything below `next_offset` is done with."""
        if next_offset >= self.fetched_to:
            self.markers_since = None
        elif not self.records and self.markers_since is None:
            self.markers_since = time.monotonic()

    def jump(self, offset: int) -> None:
        """Go on behind a gap."""
        self.fetched_to = offset
