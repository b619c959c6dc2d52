"""A role as a member of its group: join, poll, take up partitions, let them go at a rebalance, leave.

It is the same for both roles: the life of one partition is in `partition_loop.py`, and what a slice of records
means is in `scorer.py` and `aggregator.py`. One writer writes for a partition until anything fails; then everything in
hand is dropped, and the partition is taken up again if it is still ours.
"""

import asyncio
import time
from collections.abc import Callable, Mapping

import structlog

from consumer.backoff import Backoff
from consumer.errors import Fatal, Transient
from consumer.kafka.subscription import Fetched, OffsetOutOfRange, Subscription
from consumer.kafka.writer import PartitionWriter
from consumer.worker.buffer import Shares
from consumer.worker.event_waits import wait_until
from consumer.worker.partition_loop import LOOK_AGAIN_SECONDS, PartitionLoop
from consumer.worker.role import Role
from consumer.worker.stranger_watch import StrangerWatch

_log = structlog.get_logger("safe.stage")

_POLL_SECONDS = 0.2
_REVOKE_SECONDS = 15.0
_BEYOND_SECONDS = 30.0
"""For this long, an offset beyond the end of the log may be due to a leader that does not know its end yet."""
_SILENT_GROUP_SECONDS = 90.0
"""A member that gets no answer from its group for this long joins it again."""
_POLL_TROUBLE_SECONDS = 10.0
"""A failed poll counts as trouble for this long: polls for other partitions succeed in between."""


class PollLoop:
    """One role of this process; run() returns after stop() and raises Fatal."""

    def __init__(self, role: Role, *, shutdown_seconds: float, now_ms: Callable[[], int]) -> None:
        self.role = role
        self.runners: dict[int, PartitionLoop] = {}
        self.polled_at = time.monotonic()
        self.subscription: Subscription | None = None
        self.strangers = StrangerWatch(role.group)
        self.leaderless: frozenset[int] = frozenset()
        """The partitions of the topic that have no leader, as the cluster says: they cannot be read."""
        self.held_up: frozenset[int] = frozenset()
        """The partitions of the topic that an open transaction holds up: they cannot be read further."""
        self._make_writer: Callable[[int], PartitionWriter] | None = None
        self._shutdown_seconds = shutdown_seconds
        self._now_ms = now_ms
        self._generation: int | None = None
        self._stopping = asyncio.Event()
        self._failure: BaseException | None = None
        self._disposals: set[asyncio.Task[None]] = set()
        self._logged_serving = False
        self._left_because: str | None = None
        self._poll_trouble: str | None = None
        self._poll_failed_at = float("-inf")
        self._shares = Shares()
        self._waiting_since: dict[int, float] = {}

    # --- running ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve until stop(); transient failures are waited out here."""
        backoff = Backoff()
        while not self._stopping.is_set():
            try:
                await self._membership(backoff)
            except Transient as error:
                self._note_left(error)
                await wait_until(self._stopping, backoff.next())

    def _note_left(self, error: Transient) -> None:
        """Log that the group must be joined again: once, until the role serves again or the reason is another."""
        self.strangers.note_silence()
        if str(error) != self._left_because:
            self._left_because = str(error)
            _log.warning("not in the consumer group; joining it again", role=self.role.name, why=str(error))

    def stop(self) -> None:
        """Ask run() to drain and return; may be called twice."""
        self._stopping.set()

    async def _membership(self, backoff: Backoff) -> None:
        self.subscription = subscription = self.role.make_subscription(self)
        self._make_writer = self.role.make_writers(subscription)
        await subscription.start()
        self.polled_at = time.monotonic()
        polling = asyncio.create_task(self._poll_until_stopped(subscription, backoff), name=f"{self.role.name} poll")
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({polling, stopped}, return_when=asyncio.FIRST_COMPLETED)
            # A poll may hang in a rebalance that never ends; only a process that is ending may cancel it.
            await asyncio.wait({polling}, timeout=2 * _POLL_SECONDS if not polling.done() else 0)
        except asyncio.CancelledError:
            self.stop()  # the process ends: polls that fail while it leaves the group are not worth a log entry
            raise
        finally:
            stopped.cancel()
            await self._leave(subscription)
            polling.cancel()
            await asyncio.wait({polling})
        if not polling.cancelled():
            polling.result()

    async def _poll_until_stopped(self, subscription: Subscription, backoff: Backoff) -> None:
        while not self._stopping.is_set():
            self._note_waits()
            try:
                fetched = await self._poll(subscription)
            except Transient as error:
                self._raise_failure()  # this is why the role ends; a failing poll would be the wrong reason
                if self._stopping.is_set():
                    return
                self._note_failed_poll(error)
                for runner in self.runners.values():  # positions may be past records that did not arrive
                    runner.seek_back()
                if subscription.is_broken:
                    raise
                await wait_until(self._stopping, backoff.next())
                continue
            finally:
                self._raise_failure()
            self.polled_at = time.monotonic()
            if subscription.is_turned_away:
                await self._look_for_strangers(subscription)
                continue
            for partition, batch in fetched.items():
                if partition in self.runners:
                    self.runners[partition].offer(batch)
            if any(batch.records for batch in fetched.values()):
                backoff.reset()
            self._check_silence(subscription)
            self._log_serving()

    async def _poll(self, subscription: Subscription) -> dict[int, Fetched]:
        """What has been fetched, nothing where a partition's offset is not in its log; raises Transient or Fatal."""
        try:
            return await subscription.poll(_POLL_SECONDS)
        except OffsetOutOfRange as gap:
            await self._out_of_range(subscription, gap)
            return {}

    async def _look_for_strangers(self, subscription: Subscription) -> None:
        """Find out who has the group, and wait before it is tried again; raises Fatal if it lasts."""
        try:
            found = await subscription.strangers()
        except Transient:
            self.strangers.note_turned_away()
        else:
            self.strangers.note(found)
        await wait_until(self._stopping, LOOK_AGAIN_SECONDS)

    def _log_serving(self) -> None:
        """Log once for each assignment that all of it is served."""
        if not self._logged_serving and not self.troubles():
            self._logged_serving, self._left_because = True, None
            _log.info("serving", role=self.role.name, topic=self.role.topic, partitions=sorted(self.runners))

    def _note_failed_poll(self, error: Transient) -> None:
        if not self._polling_fails():
            _log.warning("polling fails", role=self.role.name, topic=self.role.topic, why=str(error))
        self.strangers.note_silence()
        self._poll_trouble = str(error)
        self._poll_failed_at = time.monotonic()

    def _polling_fails(self) -> bool:
        return time.monotonic() - self._poll_failed_at < _POLL_TROUBLE_SECONDS

    def _check_silence(self, subscription: Subscription) -> None:
        silent = time.monotonic() - max(subscription.last_heartbeat_at, subscription.started_at)
        if silent > _SILENT_GROUP_SECONDS:
            raise Transient(f"the group has not answered for {silent:.0f} s")

    async def _out_of_range(self, subscription: Subscription, gap: OffsetOutOfRange) -> None:
        """A broker does not have the next offset to read: it was deleted, or does not exist yet."""
        await subscription.refresh_metadata()
        beginning, end = await subscription.beginning(gap.partition), await subscription.end(gap.partition)
        if gap.offset < beginning:
            self._deleted_unread(gap, beginning)
        else:
            self._beyond_the_end(gap, end)
            await wait_until(self._stopping, LOOK_AGAIN_SECONDS)  # the answer would be the same at once

    def _deleted_unread(self, gap: OffsetOutOfRange, beginning: int) -> None:
        if self.role.offset_out_of_range == "stop":
            raise Fatal(
                f"offset {gap.offset} of {self.role.topic}/{gap.partition} is no longer in its log, which begins at "
                f"{beginning}: records were deleted before they were read. Set SAFE_V0_OFFSET_OUT_OF_RANGE=earliest "
                "to continue with what is there"
            ) from gap
        _log.warning(
            "the next offset to read is not in the log; continuing with the earliest",
            topic=self.role.topic, partition=gap.partition, offset=gap.offset, earliest=beginning,
        )  # fmt: skip
        if gap.partition in self.runners:
            self.runners[gap.partition].jump(beginning)

    def _beyond_the_end(self, gap: OffsetOutOfRange, end: int) -> None:
        """Never a reason to skip. A leader that has just been elected may not know its end yet: ask it again."""
        if gap.partition not in self.runners:
            return
        if self.runners[gap.partition].beyond(gap.offset, end) > _BEYOND_SECONDS:
            raise Fatal(
                f"offset {gap.offset} of {self.role.topic}/{gap.partition} is beyond the end of the partition, {end}: "
                "the topic was deleted and created again, or restored from an older copy. See 'Starting over' in "
                "docs/how-to/operate.md"
            ) from gap

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    # --- rebalances ---------------------------------------------------------------------------------------------------

    async def on_revoked(self) -> None:
        """The group is about to rebalance: finish or abandon what is in hand, fetch nothing, export nothing."""
        try:
            for runner in self.runners.values():
                runner.suspend()
            self._note_waits()  # until the rebalance ends, no poll does
            for partition in await self._quiet(_REVOKE_SECONDS):
                self._drop(partition)
        except Exception as error:  # noqa: BLE001 - aiokafka logs and swallows it; a half-done revoke must stop us
            self._failure = self._failure or error

    def on_assigned(self, partitions: frozenset[int], generation: int) -> None:
        """After a rebalance: keep what came back in the very next generation, take up what is new, drop the rest."""
        try:
            if self.subscription is not None and not self.subscription.is_turned_away:
                self.strangers.note_gone()
            unbroken = self.role.exactly_once and self._generation is not None and generation == self._generation + 1
            self._generation = generation
            self._shares.partitions = max(1, len(partitions))
            for partition in list(self.runners):
                if unbroken and partition in partitions and not self.runners[partition].task.done():
                    self.runners[partition].keep()
                else:
                    self._drop(partition)
            for partition in sorted(partitions - self.runners.keys()):
                self._take_up(partition)
            self._note_waits()
            self._logged_serving = False
            _log.info(
                "partitions assigned",
                role=self.role.name, topic=self.role.topic, partitions=sorted(partitions), generation=generation,
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001 - as above
            self._failure = self._failure or error

    def _take_up(self, partition: int) -> None:
        assert self.subscription is not None
        assert self._make_writer is not None
        runner = PartitionLoop(
            self.role, partition, self.subscription, self._make_writer, self._now_ms, self._shares,
            after=tuple(self._disposals),
        )  # fmt: skip
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
        """Finish the slices in hand, close the writers, and leave the group, all within one deadline."""
        deadline = time.monotonic() + self._shutdown_seconds
        for runner in self.runners.values():
            runner.suspend()
        await self._quiet(max(0.5, self._shutdown_seconds * 0.6))
        for partition in list(self.runners):
            self._drop(partition)
        if self._disposals:
            await asyncio.wait(self._disposals, timeout=max(0.5, deadline - time.monotonic()))
        self._generation = None
        await subscription.stop(max(0.5, min(5.0, deadline - time.monotonic())))

    # --- what health asks ---------------------------------------------------------------------------------------------

    def troubles(self) -> list[str]:
        """Why the role does not serve all of its partitions at the moment; empty when it does."""
        if self.strangers.trouble is not None:
            return [f"{self.role.name}: {self.strangers.trouble}"]
        if self._generation is None or self.subscription is None:
            return [f"{self.role.name}: not yet a member of its group"]
        if not self.subscription.heartbeat_is_fresh():
            return [f"{self.role.name}: the group coordinator does not answer"]
        polling = [f"{self.role.name}: polling fails: {self._poll_trouble}"] if self._polling_fails() else []
        return polling + [
            f"{self.role.name}: partition {partition} of {self.role.topic}: {trouble}"
            for partition, runner in sorted(self.runners.items())
            for trouble in runner.troubles.told
        ]

    def _note_waits(self) -> None:
        """Sampled on every poll, so that taking a partition up again does not reset how long it has been waiting."""
        now = time.monotonic()
        self._waiting_since = {partition: self._waiting_since.get(partition, now) for partition in self._waiting()}

    def _waiting(self) -> list[int]:
        """The partitions that are not being served."""
        unreadable = self.runners.keys() if self._polling_fails() else self.leaderless | self.held_up
        return [
            partition
            for partition, runner in self.runners.items()
            if not runner.is_serving or runner.troubles.told or partition in unreadable
        ]

    def waiting_seconds(self) -> dict[int, float]:
        """How long each partition has been waiting, 0 for those that are served."""
        now = time.monotonic()
        return {partition: now - self._waiting_since.get(partition, now) for partition in self._surely_ours()}

    def lags(self) -> dict[int, int]:
        """The lag of each partition whose lag is known."""
        known = {at: runner.lag for at, runner in self._surely_ours().items()}
        return {partition: lag for partition, lag in known.items() if lag is not None}

    def _surely_ours(self) -> Mapping[int, PartitionLoop]:
        """Our partitions, none while the group does not answer: they may be another's by now, which shows them."""
        is_sure = self.subscription is not None and self.subscription.heartbeat_is_fresh()
        return self.runners if is_sure else {}

    def note_ends(self, ends: Mapping[int, int]) -> None:
        """Take where the logs of partitions end; where one is missing, its end is not known now."""
        for partition, runner in self.runners.items():
            runner.log_end = ends.get(partition)

    def reads(self, topic: str, partition: int) -> bool:
        """Whether the partition is ours, or a part of the state that ours were restored from."""
        return partition in self.runners and topic in (self.role.topic, self.role.restored_from)

    def waits_for(self, topic: str, partition: int) -> bool:
        """Whether one of our partitions cannot be served while this one cannot be read."""
        if topic == self.role.restored_from:
            return partition in self.runners and not self.runners[partition].is_serving
        return self.reads(topic, partition)

    def producer_ids(self) -> frozenset[int]:
        """The ids of the transactional producers that write for our partitions."""
        return frozenset(runner.producer_id for runner in self.runners.values() if runner.producer_id is not None)

    def needs(self, topic: str, partition: int) -> bool:
        """Whether the partitions that are ours cannot be served without this one."""
        if topic in self.role.scattered:
            return bool(self.runners)
        return partition in self.runners and (topic == self.role.topic or topic in self.role.aligned)
