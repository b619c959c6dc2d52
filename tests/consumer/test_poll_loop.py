"""The life of a role: partitions are taken up, served slice by slice and let go, and nothing is lost on the way."""

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

import pytest
from structlog.testing import capture_logs
from typing_extensions import override

from consumer.backoff import Backoff
from consumer.errors import Contradiction, Fatal, PartitionLost, Transient
from consumer.kafka.aiokafka_internals import size_of
from consumer.kafka.group_members import Stranger
from consumer.kafka.group_offsets import Committed, OutOfGroup
from consumer.kafka.protocol import Identity
from consumer.kafka.subscription import Fetched, OffsetOutOfRange, Subscription
from consumer.kafka.writer import Outgoing, PartitionWriter
from consumer.wire.record import Record
from consumer.worker import buffer as buffer_module
from consumer.worker import partition_loop as partition_module
from consumer.worker import partition_troubles as condition_module
from consumer.worker import poll_loop, repeated_fences, stranger_watch
from consumer.worker.buffer import Buffer, Shares
from consumer.worker.poll_loop import PollLoop
from consumer.worker.role import Role

WITHIN_SECONDS = 10.0


@dataclass
class Message:
    """A record as a client hands it over."""

    offset: int
    value: bytes | None = b"x"
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int = 0
    topic: str = "input"
    partition: int = 0


class Site:
    """What outlives a partition's owners: its log, its committed offset, and all that was done to it, in order."""

    def __init__(self) -> None:
        self.log: list[Message] = []
        self.end = 0
        self.committed: int | None = None
        self.commits: list[tuple[list[int], int]] = []
        self.steps: list[str] = []
        self.take: Callable[[int], int] = lambda count: count
        self.troubles: deque[Exception] = deque()  # raised by process(), one by one
        self.hold_process = False
        self.commit_failures: deque[Exception] = deque()
        self.epoch = 0
        self.epochs_a_start = 4  # as where another producer has had the transactional id in between
        self.restore_failures: deque[Exception] = deque()
        self.commit_gate = asyncio.Event()
        self.commit_gate.set()
        self.near_gate = asyncio.Event()  # while it is not set, no transaction is near
        self.near_gate.set()
        self.confirm_gate = asyncio.Event()
        self.confirm_gate.set()
        self.group_answers: deque[Exception | int | None] = deque()  # to questions about the offset, one by one
        self.bounds: tuple[int, int] | None = None
        self.contradictions: deque[Exception] = deque()  # raised by first_offset(), one by one
        self.committing = 0
        self.tried: list[tuple[int, float]] = []  # of each commit: how many records it held, and its share
        self.most_records: int | None = None  # a commit of more does not end in time
        self.chore_at = inf
        self.visible = False
        self.group: Group | None = None

    def publish(self, count: int = 1, *, markers: int = 0, size: int = 1) -> None:
        """Append records, and transaction markers behind them, and tell whoever polls."""
        for _ in range(count):
            self.log.append(Message(self.end, b"x" * size))
            self.end += 1
        self.end += markers
        if self.group is not None:
            self.group.news.set()

    def is_fetched(self, end: int) -> bool:
        """Whether all records before this offset have been polled."""
        return self.group is not None and self.group.position == end

    @property
    def processed(self) -> list[int]:
        """The offsets of all records whose outputs are visible, in order."""
        return [offset for offsets, _ in self.commits for offset in offsets]

    @property
    def everything(self) -> list[int]:
        return [message.offset for message in self.log]


def brought(records: Sequence[Message], next_offset: int) -> Fetched:
    """What a poll brings."""
    return Fetched(records, [size_of(record) for record in records], next_offset)


class Slice(Outgoing):
    """A slice that knows the offsets of the records behind it."""

    def __init__(self, share: float) -> None:
        super().__init__(0, share)
        self.offsets: list[int] = []


class Group(Subscription):
    """A subscription of one member: it owns what the test assigns, and reads the site's log."""

    def __init__(self, site: Site, stage: PollLoop, partitions: frozenset[int]) -> None:
        self.site = site
        self.stage = stage
        self.owned = partitions
        self.position: int | None = None
        self.paused = True
        self.news = asyncio.Event()
        self.failures: deque[Exception] = deque()  # raised by poll(), one by one; what it had fetched is gone
        self.last_heartbeat_at = time.monotonic()
        self.started_at = time.monotonic()
        self.fresh = True
        self.is_turned_away = False
        self.others: frozenset[Stranger] | Transient = frozenset()
        self.number = 0
        self.polls = 0
        self.polling = False
        self.broken = False
        self.unread: Transient | None = None  # told once, with whatever comes
        self.fails_once_stopped = False  # as a client does that is polled while, or after, it is stopped

    @override
    async def start(self) -> None:
        self.site.group = self
        self.site.steps.append("joined")
        self.deal()

    @override
    async def stop(self, deadline_seconds: float) -> None:
        self.site.steps.append("left")
        if self.fails_once_stopped:
            self.failures.append(Transient("no answer about topic input: ConsumerStoppedError"))
            self.news.set()
            await until(lambda: not (self.failures and self.polling), "the poll has failed, or none was under way")

    @property
    @override
    def is_broken(self) -> bool:
        return self.broken

    def deal(self, generations: int = 1) -> None:
        """The group assigns what is owned; more than one generation means that some were missed."""
        self.number += generations
        self.position, self.paused = None, True
        self.stage.on_assigned(self.owned, self.number)

    async def rebalance(self, partitions: frozenset[int] = frozenset({0}), generations: int = 1) -> None:
        await self.stage.on_revoked()
        self.owned = partitions
        self.deal(generations)

    @override
    async def strangers(self) -> frozenset[Stranger]:
        if isinstance(self.others, Transient):
            raise self.others
        return self.others

    @override
    def owns(self, partition: int) -> bool:
        return partition in self.owned

    @override
    def heartbeat_is_fresh(self) -> bool:
        return self.fresh

    @override
    async def confirm(self, partition: int) -> None:
        self.site.steps.append("confirms")
        await self.site.confirm_gate.wait()

    @override
    async def poll(self, timeout_seconds: float) -> dict[int, Fetched]:
        self.polls += 1
        self.polling = True
        try:
            return await self._polled(timeout_seconds)
        finally:
            self.polling = False

    async def _polled(self, timeout_seconds: float) -> dict[int, Fetched]:
        await asyncio.sleep(0)
        if not self._waiting():
            self.news.clear()
            try:
                async with asyncio.timeout(timeout_seconds):
                    await self.news.wait()
            except TimeoutError:
                pass
        fetched = self._fetch()
        if self.failures:
            raise self.failures.popleft()
        return fetched

    def _waiting(self) -> bool:
        return bool(self.failures) or (not self.paused and self.position is not None and self.position < self.site.end)

    def _fetch(self) -> dict[int, Fetched]:
        if 0 not in self.owned or self.position is None:
            return {}
        if self.paused:
            return {0: brought((), self.position)}
        if self.unread is not None:
            told, self.unread = self.unread, None
            return {0: Fetched((), (), self.position, told)}
        first, self.position = self.position, self.site.end
        return {0: brought([m for m in self.site.log if m.offset >= first], self.position)}

    @override
    def seek(self, partition: int, offset: int) -> None:
        if self.owns(partition):
            self.site.steps.append(f"seeks {offset}")
            self.position = offset

    @override
    def pause(self, partition: int) -> None:
        self.paused = True

    @override
    def resume(self, partition: int) -> None:
        if self.owns(partition):
            self.paused = False
            self.news.set()

    @override
    def end_seen(self, partition: int) -> int | None:
        return self.site.end

    @override
    async def end(self, partition: int) -> int:
        return self.site.bounds[1] if self.site.bounds else self.site.end

    @override
    async def committed(self, partition: int) -> Committed | None:
        self.site.steps.append("asks for the offset")
        answer = self.site.group_answers.popleft() if self.site.group_answers else self.site.committed
        if isinstance(answer, Exception):
            raise answer
        return None if answer is None else Committed(answer)

    @override
    async def refresh_metadata(self) -> None:
        self.site.steps.append("refreshes")

    @override
    async def beginning(self, partition: int) -> int:
        if self.site.bounds:
            return self.site.bounds[0]
        return self.site.log[0].offset if self.site.log else self.site.end


class Logic:
    """A PartitionLogic that copies: its outputs are the offsets of its records."""

    def __init__(self, site: Site) -> None:
        self.site = site

    async def restore(self, writer: PartitionWriter) -> None:
        assert isinstance(writer, Writer)
        assert not writer.failed
        self.site.steps.append("restores")
        if self.site.restore_failures:
            raise self.site.restore_failures.popleft()

    async def first_offset(self, subscription: Subscription, committed: Committed | None) -> int:
        if self.site.contradictions:
            raise self.site.contradictions.popleft()
        return committed.offset if committed is not None else await subscription.beginning(0)

    async def process(self, records: Sequence[Record], outgoing: Outgoing) -> int:
        assert isinstance(outgoing, Slice)
        if records and self.site.troubles:
            raise self.site.troubles[0] if self.site.hold_process else self.site.troubles.popleft()
        taken = min(len(records), max(1, self.site.take(len(records)))) if records else 0
        outgoing.offsets = [record.offset for record in records[:taken]]
        await asyncio.sleep(0)
        return taken

    def finish(self, outgoing: Outgoing, next_offset: int, *, at_end: bool) -> str:  # noqa: ARG002 - the protocol's signature
        if self.site.chore_at <= time.monotonic():
            self.site.chore_at = inf
        return f"up to {next_offset}"

    def committed(self, next_offset: int) -> None:
        assert self.site.committed == next_offset

    def next_chore_at(self, *, at_end: bool) -> float:  # noqa: ARG002 - the protocol's signature
        return self.site.chore_at

    def show(self, *, visible: bool) -> None:
        self.site.visible = visible

    def drop(self) -> None:
        self.site.visible = False
        self.site.steps.append("drops")


class Writer:
    """A PartitionWriter whose commits end in the site; one that has failed never writes again."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.failed = False
        self.identity: Identity | None = None

    async def start(self) -> None:
        self.site.steps.append("fences")
        self.site.epoch += self.site.epochs_a_start
        self.identity = Identity("id", 1, self.site.epoch)

    async def near(self) -> None:
        await self.site.near_gate.wait()

    def outgoing(self, now_ms: int, share: float = 1.0) -> Slice:  # noqa: ARG002 - the protocol's signature
        return Slice(share)

    async def mark(
        self,
        topic: str,  # noqa: ARG002 - the protocol's signature
        partition: int,  # noqa: ARG002
        key: bytes,  # noqa: ARG002
        headers: Sequence[tuple[str, bytes | None]],  # noqa: ARG002
    ) -> int:
        raise AssertionError("a copy has nothing to restore")

    async def learn_time(
        self,
        topic: str,  # noqa: ARG002 - the protocol's signature
        partition: int,  # noqa: ARG002
        key: bytes,  # noqa: ARG002
        headers: Sequence[tuple[str, bytes | None]],  # noqa: ARG002
    ) -> None:
        raise AssertionError("a copy does not ask for the time")

    async def commit(self, outgoing: Outgoing, next_offset: int, note: str) -> None:
        assert isinstance(outgoing, Slice)
        assert note == f"up to {next_offset}"
        assert not self.failed, "a writer was used after it had failed"
        self.site.tried.append((len(outgoing.offsets), outgoing.share))
        if self.site.most_records is not None and len(outgoing.offsets) > self.site.most_records:
            self.failed = True
            raise PartitionLost("no answer within 8 s", timed_out=True)
        self.site.committing += 1
        try:
            await self.site.commit_gate.wait()
        finally:
            self.site.committing -= 1
        if self.site.commit_failures:
            self.failed = True
            raise self.site.commit_failures.popleft()
        self.site.commits.append((outgoing.offsets, next_offset))
        self.site.committed = next_offset

    async def dispose(self) -> None:
        self.failed = True
        self.site.steps.append("disposes")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a stage waits for by the clock, it waits for briefly."""
    monkeypatch.setattr(poll_loop, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(partition_module, "_MARKERS_SECONDS", 0.01)
    for module in (poll_loop, partition_module):
        monkeypatch.setattr(module, "Backoff", partial(Backoff, 0.001, 0.002))


@pytest.fixture
async def site() -> Site:
    return Site()


def stage_of(site: Site, **changes: Any) -> PollLoop:
    role = {
        "name": "scorer",
        "group": "safe-v0",
        "topic": "input",
        "exactly_once": True,
        "offset_out_of_range": "stop",
        "make_subscription": lambda stage: Group(site, stage, frozenset({0})),
        "make_logic": lambda _partition: Logic(site),
        "make_writers": lambda _subscription: lambda _partition: Writer(site),
        **changes,
    }
    return PollLoop(Role(**role), shutdown_seconds=2.0, now_ms=lambda: 0)


@asynccontextmanager
async def running(stage: PollLoop) -> AsyncIterator["asyncio.Task[None]"]:
    """The stage at work; stopped at the end, and what it raised is raised."""
    task = asyncio.create_task(stage.run())
    try:
        yield task
        stage.stop()
        async with asyncio.timeout(WITHIN_SECONDS):
            await task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def until(condition: Callable[[], object], what: str = "") -> None:
    """Let everything else run until the condition holds; TimeoutError after the deadline."""
    deadline = time.monotonic() + WITHIN_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {WITHIN_SECONDS:g} s: {what}"
        await asyncio.sleep(0)


def group_of(site: Site) -> Group:
    assert site.group is not None
    return site.group


# --- a slice is taken when a transaction is near ---------------------------------------------------------------------


async def test_what_comes_until_a_transaction_is_near_is_part_of_it(site: Site) -> None:
    site.near_gate.clear()
    async with running(stage_of(site)):
        for end in (1, 2, 3):
            site.publish()
            await until(partial(site.is_fetched, end), "it is fetched")
        assert site.tried == []
        site.near_gate.set()
        await until(lambda: site.processed == [0, 1, 2], "all are committed")
    assert site.tried == [(3, 1.0)]


async def test_a_partition_that_is_taken_away_meanwhile_takes_nothing(site: Site) -> None:
    site.near_gate.clear()
    async with running(stage_of(site)):
        site.publish()
        await until(partial(site.is_fetched, 1), "it is fetched")
        await group_of(site).rebalance(frozenset())
        site.near_gate.set()
        await until(lambda: site.steps.count("disposes") == 1, "it is let go")
    assert site.tried == []


# --- taking up --------------------------------------------------------------------------------------------------------


async def test_a_partition_is_taken_up_in_one_order_only(site: Site) -> None:
    site.publish(3)
    site.committed = 1
    async with running(stage_of(site)):
        await until(lambda: site.processed)
    assert site.steps[:6] == ["joined", "confirms", "fences", "restores", "asks for the offset", "seeks 1"]
    assert site.processed == [1, 2]
    assert site.steps[-3:] == ["drops", "disposes", "left"]


async def test_nobody_is_fenced_before_the_group_has_confirmed_the_partition(site: Site) -> None:
    site.publish(1)
    site.confirm_gate.clear()
    async with running(stage_of(site)):
        await until(lambda: "confirms" in site.steps)
        polls = group_of(site).polls
        await until(lambda: group_of(site).polls > polls + 3)
        assert "fences" not in site.steps
        site.confirm_gate.set()
        await until(lambda: site.processed == [0])


async def test_an_answer_that_came_while_the_process_was_frozen_is_asked_for_again(site: Site) -> None:
    site.publish(1)
    site.confirm_gate.clear()
    async with running(stage_of(site)):
        await until(lambda: "confirms" in site.steps)
        group = group_of(site)
        group.fresh = False
        site.confirm_gate.set()
        await until(lambda: site.steps.count("confirms") > 2)
        assert "fences" not in site.steps
        group.fresh = True
        await until(lambda: site.processed == [0])


async def test_a_restore_outlasts_a_rebalance_that_gives_the_partition_back(site: Site) -> None:
    site.publish(2)
    site.group_answers.extend([OutOfGroup("the group is rebalancing")] * 3)
    async with running(stage_of(site)):
        await until(lambda: site.committed == 2)
    assert site.steps.count("asks for the offset") == 4
    assert site.steps.count("restores") == site.steps.count("fences") == 1


async def test_less_than_was_committed_here_is_never_accepted(site: Site) -> None:
    stage = stage_of(site)
    site.publish(4)
    async with running(stage):
        await until(lambda: site.committed == 4)
        site.commit_failures.append(PartitionLost("a write failed"))
        site.group_answers.extend([2, None])
        site.publish(1)
        await until(lambda: site.committed == 5)
    assert site.processed == site.everything
    assert site.steps.count("restores") == 4


async def test_what_contradicts_itself_is_taken_up_again_and_then_ends_the_run_with_both_sides(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.contradictions.extend([Contradiction("41 here, 146 there: set it to 146")] * 3)
    site.publish(1)
    async with running(stage_of(site)):
        await until(lambda: site.processed == [0])
    assert site.steps.count("restores") == 4

    monkeypatch.setattr(partition_module, "_CONTRADICTION_SECONDS", 0.05)
    site.contradictions.extend([Contradiction("41 here, 146 there: set it to 146")] * 1_000)

    async def serve() -> None:
        async with running(stage_of(site)) as task:
            await until(task.done)

    with pytest.raises(Fatal, match="41 here, 146 there"):
        await serve()
    assert len(site.contradictions) < 999


async def test_time_in_which_nobody_answered_does_not_count_as_asking(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_module, "_CONTRADICTION_SECONDS", 0.0)
    site.contradictions.extend([Contradiction("41 here, 146 there"), Transient("the brokers are away")] * 3)
    site.publish(1)
    async with running(stage_of(site)):
        await until(lambda: site.processed == [0])


async def test_a_restore_that_cannot_be_done_now_is_tried_again_with_a_new_writer(site: Site) -> None:
    site.publish(1)
    site.restore_failures.extend([Transient("the broker is away")] * 3)
    async with running(stage_of(site)):
        await until(lambda: site.processed == [0])
    assert site.steps.count("fences") == site.steps.count("restores") == 4
    assert site.steps.count("disposes") == 4


async def test_a_partition_shows_what_it_holds_while_it_is_served(site: Site) -> None:
    stage = stage_of(site)
    async with running(stage):
        await until(lambda: site.visible)
        assert stage.troubles() == []
        await stage.on_revoked()
        assert not site.visible
        group_of(site).deal()
        await until(lambda: site.visible)
    assert not site.visible


# --- slices -----------------------------------------------------------------------------------------------------------


async def test_what_arrives_during_a_commit_is_the_next_slice(site: Site) -> None:
    site.publish(1)
    site.commit_gate.clear()
    async with running(stage_of(site)):
        await until(lambda: site.committing)
        for _ in range(5):
            site.publish(2)
            polls = group_of(site).polls
            await until(lambda before=polls: group_of(site).polls > before + 1)  # type: ignore[misc]
        site.commit_gate.set()
        await until(lambda: site.committed == 11)
    assert [len(offsets) for offsets, _ in site.commits] == [1, 10]


async def test_a_slice_has_its_bounds(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer_module, "_SLICE_RECORDS", 4)
    monkeypatch.setattr(buffer_module, "_SLICE_BYTES", 1_000)
    site.publish(10)
    site.publish(3, size=600)
    async with running(stage_of(site)):
        await until(lambda: site.committed == 13)
    assert [offsets for offsets, _ in site.commits] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12]]


async def test_what_a_slice_did_not_take_is_the_beginning_of_the_next(site: Site) -> None:
    site.take = lambda count: count - 2
    site.publish(5)
    async with running(stage_of(site)):
        await until(lambda: site.committed == 5)
    assert site.commits == [([0, 1, 2], 3), ([3], 4), ([4], 5)]


async def test_markers_alone_are_committed_too_so_that_the_lag_is_zero(site: Site) -> None:
    stage = stage_of(site)
    site.publish(2, markers=1)
    async with running(stage):
        await until(lambda: site.committed == 3)
        site.publish(0, markers=4)
        await until(lambda: site.committed == 7)
        stage.note_ends({0: site.end})
        assert stage.lags() == {0: 0}
    assert site.commits == [([0, 1], 3), ([], 7)]


async def test_a_chore_is_done_without_a_record_when_it_is_due(site: Site) -> None:
    async with running(stage_of(site)):
        await until(lambda: site.visible)
        site.chore_at = time.monotonic() + 0.3  # by then the record has been committed, on a busy machine too
        due = site.chore_at
        site.publish(1)
        await until(lambda: site.chore_at == inf)
        assert time.monotonic() >= due
    assert site.processed == [0]
    assert site.commits[-1] == ([], 1)


async def test_a_full_buffer_pauses_fetching_and_loses_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer_module, "_BUFFER_RECORDS", 10)
    monkeypatch.setattr(buffer_module, "_SLICE_RECORDS", 3)
    site.publish(1)
    site.commit_gate.clear()
    async with running(stage_of(site)):
        await until(lambda: site.committing)
        site.publish(20)
        await until(lambda: group_of(site).paused)
        site.publish(20)
        site.commit_gate.set()
        await until(lambda: site.committed == 41)
    assert site.processed == site.everything


# --- waiting ----------------------------------------------------------------------------------------------------------


async def test_while_a_slice_waits_the_partition_is_in_trouble_and_nothing_is_committed(site: Site) -> None:
    stage = stage_of(site)
    site.publish(3)
    site.hold_process = True
    site.troubles.append(Transient("the folder is away"))
    async with running(stage):
        await until(lambda: stage.troubles() == ["scorer: partition 0 of input: the folder is away"])
        site.publish(2)
        assert site.commits == []
        site.troubles.clear()
        await until(lambda: site.committed == 5)
        assert stage.troubles() == []
    assert site.processed == site.everything


async def test_another_reason_to_wait_is_told_too_but_not_at_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = ["it answers with a web page", "it redirects", "it redirects", "it refuses the credentials"]
    for seconds, told in ((0.0, [reasons[0], reasons[1], reasons[3]]), (1_000.0, reasons[:1])):
        monkeypatch.setattr(condition_module, "_LOG_AGAIN_SECONDS", seconds)
        site.troubles.extend(map(Transient, reasons))
        with capture_logs() as logs:
            site.publish(1)
            async with running(stage_of(site)):
                await until(lambda: site.committed == site.end)
        assert [entry["why"] for entry in logs if entry["event"] == "the partition waits"] == told


async def test_a_partition_that_waits_is_given_away_at_once_and_its_slice_is_read_again(site: Site) -> None:
    stage = stage_of(site)
    site.publish(3)
    site.hold_process = True
    site.troubles.append(Transient("the folder is away"))
    async with running(stage):
        await until(lambda: "the folder is away" in "".join(stage.troubles()))
        async with asyncio.timeout(WITHIN_SECONDS):
            await stage.on_revoked()
        site.publish(1)
        site.troubles.clear()
        group_of(site).deal()
        await until(lambda: site.committed == 4)
    assert site.processed == site.everything
    assert site.steps.count("fences") == 1  # it came back at once: producer and state were kept


# --- rebalances -------------------------------------------------------------------------------------------------------


async def test_a_partition_that_comes_back_at_once_keeps_everything(site: Site) -> None:
    stage = stage_of(site)
    site.publish(2)
    async with running(stage):
        await until(lambda: site.committed == 2)
        for _ in range(3):
            await group_of(site).rebalance()
            site.publish(2)
        await until(lambda: site.committed == 8)
        assert site.steps.count("restores") == 1
    assert site.processed == site.everything


# exactly once, generations that went by
ANEW: list[tuple[bool, int]] = [
    (True, 2),  # another may have owned it in between
    (False, 1),  # nothing fences whoever did
]


@pytest.mark.parametrize(("exactly_once", "generations"), ANEW)
async def test_else_it_is_restored_by_a_new_writer_once_the_old_one_is_closed(
    site: Site, *, exactly_once: bool, generations: int
) -> None:
    site.publish(2)
    async with running(stage_of(site, exactly_once=exactly_once)):
        await until(lambda: site.committed == 2)
        await group_of(site).rebalance(generations=generations)
        site.publish(2)
        await until(lambda: site.committed == 4)
        lives = [step for step in site.steps if step in {"fences", "disposes"}]
        assert lives == ["fences", "disposes", "fences"]
    assert site.processed == site.everything


async def test_a_commit_under_way_is_waited_for_before_the_partition_is_given_away(site: Site) -> None:
    stage = stage_of(site)
    site.publish(3)
    site.commit_gate.clear()
    async with running(stage):
        await until(lambda: site.committing)
        revoking = asyncio.create_task(stage.on_revoked())
        await asyncio.sleep(0)
        assert not revoking.done()
        site.commit_gate.set()
        await revoking
        assert site.committed == 3
        group_of(site).owned = frozenset()
        group_of(site).deal()
        site.publish(3)
        await until(lambda: "disposes" in site.steps)
        assert stage.runners == {}
    assert site.commits == [([0, 1, 2], 3)]


async def test_a_partition_revoked_and_given_back_during_one_commit_reads_on_behind_it(site: Site) -> None:
    stage = stage_of(site)
    site.publish(3)
    site.commit_gate.clear()
    async with running(stage):
        await until(lambda: site.committing)
        runner = stage.runners[0]
        runner.suspend()
        site.publish(2)
        runner.keep()
        site.commit_gate.set()
        await until(lambda: site.committed == 5)
    assert site.processed == site.everything


async def test_what_a_cut_slice_left_is_not_lost_when_it_is_revoked_meanwhile(site: Site) -> None:
    stage = stage_of(site)
    site.take = lambda _count: 1
    site.publish(4)
    site.commit_gate.clear()
    async with running(stage):
        await until(lambda: site.committing)
        stage.runners[0].suspend()
        stage.runners[0].keep()
        site.commit_gate.set()
        await until(lambda: site.committed == 4)
    assert site.processed == site.everything


async def test_a_slice_that_outlasts_the_revocation_is_dropped(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poll_loop, "_REVOKE_SECONDS", 0.02)
    stage = stage_of(site)
    site.publish(3)
    site.commit_gate.clear()
    async with running(stage):
        await until(lambda: site.committing)
        await group_of(site).rebalance()
        site.commit_gate.set()
        await until(lambda: site.committed == 3)
        assert site.steps.count("fences") == 2
    assert site.processed == site.everything


# --- failures ---------------------------------------------------------------------------------------------------------


async def lost_and_unconfirmed(site: Site, error: PartitionLost) -> None:
    """Let the commit under way fail, and the group be silent about whose the partition is."""
    await until(lambda: site.committing)
    site.commit_failures.append(error)
    site.confirm_gate.clear()
    site.commit_gate.set()
    await until(lambda: site.steps[-1] == "confirms")


async def test_a_failed_commit_drops_everything_until_the_group_confirms_the_partition(site: Site) -> None:
    stage = stage_of(site)
    site.publish(3)
    site.commit_gate.clear()
    async with running(stage):
        await lost_and_unconfirmed(site, PartitionLost("a write failed"))
        assert site.steps[-3:] == ["drops", "disposes", "confirms"]
        assert "a write failed" in stage.troubles()[0]
        polls = group_of(site).polls
        await until(lambda: group_of(site).polls > polls + 3)
        assert site.steps.count("fences") == 1
        site.confirm_gate.set()
        await until(lambda: site.committed == 3)
        assert site.steps.count("restores") == 2
        assert stage.troubles() == []
    assert site.processed == site.everything


async def test_a_partition_lost_and_meanwhile_given_away_is_not_taken_up_again(site: Site) -> None:
    stage = stage_of(site)
    site.publish(3)
    site.commit_gate.clear()
    async with running(stage):
        await lost_and_unconfirmed(site, PartitionLost("fenced", fenced=True))
        await group_of(site).rebalance(frozenset())
        site.confirm_gate.set()
        polls = group_of(site).polls
        await until(lambda: group_of(site).polls > polls + 3)
        assert stage.runners == {}
    assert site.steps.count("fences") == 1
    assert site.commits == []


async def test_five_fences_within_a_minute_on_a_partition_that_is_ours_are_fatal(site: Site) -> None:
    site.publish(3)
    site.commit_failures.extend([PartitionLost("fenced", fenced=True)] * 5)

    async def serve() -> None:
        async with running(stage_of(site)) as task:
            await until(task.done)

    with pytest.raises(Fatal, match=r"took over input/0 5 times within a minute"):
        await serve()
    assert site.steps[-1] == "left"


async def test_refusals_that_no_other_producer_can_explain_are_not_fatal(site: Site) -> None:
    # A broker that is cut off may still lead the partition in its own view, and know an older transaction of ours.
    site.epochs_a_start = 2
    site.publish(3)
    site.commit_failures.extend([PartitionLost("fenced", fenced=True)] * 5)
    async with running(stage_of(site)):
        await until(lambda: site.committed == 3)
    assert site.processed == site.everything


async def test_one_fence_or_any_number_of_other_failures_are_not(site: Site) -> None:
    site.publish(3)
    lost = PartitionLost("a write failed")
    site.commit_failures.extend([lost, PartitionLost("fenced", fenced=True), lost, lost])
    async with running(stage_of(site)):
        await until(lambda: site.committed == 3)
    assert site.processed == site.everything


async def test_fences_a_minute_apart_are_not(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_fences, "_FENCES_WITHIN_SECONDS", 0.0)
    site.publish(3)
    site.commit_failures.extend([PartitionLost("fenced", fenced=True)] * 3)
    async with running(stage_of(site)):
        await until(lambda: site.committed == 3)
    assert site.processed == site.everything


# --- commits that take too long ---------------------------------------------------------------------------------------


async def served(site: Site, next_offset: int) -> None:
    """Until all is committed."""
    await until(lambda: site.committed == next_offset, f"committed {site.committed} of {next_offset}: {site.tried}")


async def test_what_could_not_be_committed_in_time_is_tried_again_in_halves(site: Site) -> None:
    site.publish(64)
    site.most_records = 10
    async with running(stage_of(site)):
        await served(site, 64)
    assert [records for records, _ in site.tried] == [64, 32, 16, *[8] * 8]
    assert site.steps.count("restores") == 4
    assert site.processed == site.everything


async def test_its_bytes_are_halved_too(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer_module, "_SLICE_BYTES", 16_000)
    site.publish(16, size=1_000)
    site.most_records = 5
    async with running(stage_of(site)):
        await served(site, 16)
    assert [records for records, _ in site.tried][:3] == [16, 8, 4]


async def test_a_single_record_that_takes_too_long_is_tried_again_and_says_what_would_help(site: Site) -> None:
    stage = stage_of(site)
    site.publish(2)
    site.most_records = 0
    async with running(stage):
        await until(lambda: len(site.tried) >= 4)
        await until(stage.troubles)
        [trouble] = stage.troubles()
        assert "no answer within 8 s, although the transaction held only one record: if the brokers are up" in trouble
        assert "SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS" in trouble
        site.most_records = None
        await served(site, 2)
        assert stage.troubles() == []
    assert [records for records, _ in site.tried][:4] == [2, 1, 1, 1]
    assert site.processed == site.everything


async def test_the_log_says_how_many_records_were_too_many(site: Site) -> None:
    site.publish(64)
    site.most_records = 40
    with capture_logs() as logs:
        async with running(stage_of(site)):
            await served(site, 64)
    [why] = [entry["why"] for entry in logs if entry["event"] == "the records in progress were dropped"]
    assert why == "no answer within 8 s, with 64 records: the next transaction holds at most half of them"


async def test_a_commit_that_failed_for_another_reason_is_tried_again_in_full(site: Site) -> None:
    site.publish(64)
    site.commit_failures.append(PartitionLost("a write failed"))
    async with running(stage_of(site)):
        await served(site, 64)
    assert [records for records, _ in site.tried] == [64, 64]


async def test_what_a_chore_may_write_is_halved_like_a_slice(site: Site) -> None:
    site.committed = 0
    site.commit_failures.extend([PartitionLost("no answer within 8 s", timed_out=True)] * 2)
    site.chore_at = time.monotonic()
    async with running(stage_of(site)):
        for times in (1, 2):
            await until(lambda n=times: site.steps.count("disposes") == n)  # type: ignore[misc]
            site.chore_at = time.monotonic()  # it is still due
        await until(lambda: site.commits)
    assert site.tried == [(0, 1.0), (0, 0.5), (0, 0.25)]


async def test_slow_commits_make_slices_smaller_before_any_is_lost(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer_module, "_SLICE_RECORDS", 4)
    stage = stage_of(site, commit_seconds=0.02)
    site.publish(4)
    site.commit_gate.clear()
    async with running(stage):
        await until(lambda: site.committing)
        began = time.monotonic()
        await until(lambda: time.monotonic() - began > 0.01)
        site.publish(4)
        site.commit_gate.set()
        await until(lambda: site.committed == 8)
        assert [records for records, _ in site.tried][:2] == [4, 2]
        assert site.steps.count("restores") == 1
        # And larger again, as soon as they are quick.
        async with asyncio.timeout(WITHIN_SECONDS):
            while site.tried[-1][0] < 4:
                site.publish(4)
                await until(lambda: site.committed == site.end)
    assert site.processed == site.everything


async def test_after_a_failed_poll_fetching_goes_back_to_the_last_record_received(site: Site) -> None:
    site.publish(2)
    async with running(stage_of(site)):
        await until(lambda: site.committed == 2)
        group_of(site).failures.extend([Transient("a checksum fails")] * 2)
        site.publish(3)
        await until(lambda: site.committed == 5)
    assert site.processed == site.everything


async def test_a_broken_client_joins_its_group_anew(site: Site) -> None:
    site.publish(2)
    async with running(stage_of(site)):
        await until(lambda: site.committed == 2)
        group = group_of(site)
        group.broken = True
        group.failures.append(Transient("the coordination has ended"))
        site.publish(2)
        await until(lambda: site.committed == 4)
        assert group_of(site) is not group
    assert site.steps.count("joined") == 2
    assert site.processed == site.everything


async def test_a_group_that_is_silent_for_long_is_joined_anew(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = stage_of(site)
    async with running(stage):
        await until(lambda: site.visible)
        monkeypatch.setattr(poll_loop, "_SILENT_GROUP_SECONDS", 0.05)
        await until(lambda: site.steps.count("joined") > 1)
        monkeypatch.setattr(poll_loop, "_SILENT_GROUP_SECONDS", 90.0)


async def test_a_gap_in_the_log_stops_the_service_and_names_the_setting(site: Site) -> None:
    async def serve() -> None:
        async with running(stage_of(site)) as task:
            await until(lambda: site.visible)
            site.bounds = (9, 12)
            group_of(site).failures.append(OffsetOutOfRange(0, 7))
            await until(task.done)

    with pytest.raises(Fatal, match=r"offset 7 of input/0 is no longer in its log.*SAFE_V0_OFFSET_OUT_OF_RANGE=earl"):
        await serve()


@pytest.mark.parametrize("setting", ["stop", "earliest"])
async def test_an_offset_beyond_the_end_is_no_reason_to_jump_whatever_the_setting(
    site: Site, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setattr(poll_loop, "_BEYOND_SECONDS", 0.05)
    monkeypatch.setattr(poll_loop, "LOOK_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(partition_module, "LOOK_AGAIN_SECONDS", 0.01)

    async def serve() -> None:
        async with running(stage_of(site, offset_out_of_range=setting)) as task:
            await until(lambda: site.visible)
            site.bounds = (0, 3)
            group_of(site).failures.extend([OffsetOutOfRange(0, 7)] * 100)
            await until(task.done)

    with pytest.raises(
        Fatal, match=r"offset 7 of input/0 is beyond the end of the partition, 3: the topic was deleted and created"
    ):
        await serve()
    assert "seeks 0" in site.steps
    assert site.steps.count("seeks 7") > 1
    assert site.steps.count("refreshes") > 1


async def test_a_leader_that_learns_its_end_in_time_is_read_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poll_loop, "LOOK_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(partition_module, "LOOK_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(partition_module, "_BEYOND_QUIET_SECONDS", 0.05)
    stage = stage_of(site)
    site.publish(2)
    async with running(stage):
        await until(lambda: site.committed == 2)
        site.bounds = (0, 1)
        group_of(site).failures.extend([OffsetOutOfRange(0, 2)] * 3)
        await until(lambda: "beyond the end" in " ".join(stage.troubles()))
        await until(lambda: stage.troubles() == [])
        site.publish(2)
        await until(lambda: site.committed == 4)
    assert site.processed == site.everything


async def test_where_the_setting_allows_it_reading_goes_on_behind_the_gap(site: Site) -> None:
    async with running(stage_of(site, offset_out_of_range="earliest")):
        await until(lambda: site.visible)
        site.end = 7  # deleted unread
        site.log.append(Message(7))
        site.end = 8
        group = group_of(site)
        group.position = 0
        site.bounds = (7, 8)
        group.failures.append(OffsetOutOfRange(0, 0))
        group.news.set()
        await until(lambda: site.committed == 8)
    assert site.processed == [7]


@pytest.mark.parametrize("error", [Fatal("the state is gone"), ZeroDivisionError("a defect of ours")])
async def test_what_no_waiting_helps_ends_the_run_and_leaves_the_group(site: Site, error: Exception) -> None:
    site.restore_failures.append(error)

    async def serve() -> None:
        async with running(stage_of(site)) as task:
            await until(task.done)

    with pytest.raises(type(error)):
        await serve()
    assert site.steps[-1] == "left"
    assert "disposes" in site.steps


# --- strangers in the group -------------------------------------------------------------------------------------------

STRANGER = Stranger("their-service", "/10.0.0.7")


async def test_a_member_that_is_turned_away_serves_nothing_names_who_is_there_and_goes_on_once_they_have_left(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll_loop, "LOOK_AGAIN_SECONDS", 0.001)
    site.publish(2)
    stage = stage_of(site)
    with capture_logs() as logs:
        async with running(stage):
            await until(lambda: site.processed == [0, 1])
            group = group_of(site)
            group.is_turned_away, group.others = True, frozenset({STRANGER})
            await group.rebalance(frozenset())
            monkeypatch.setattr(poll_loop, "_SILENT_GROUP_SECONDS", 0.0)  # no heartbeats, but the group does answer
            site.publish(2)
            await until(lambda: stage.strangers.count == 1)
            [trouble] = stage.troubles()
            assert trouble == (
                'scorer: group safe-v0 has members that are not SAFE of this version (client id "their-service" on '
                "10.0.0.7): nothing is served until they leave"
            )
            polled_at = stage.polled_at
            await until(lambda: stage.polled_at > polled_at, "else it would be restarted as stalled")
            group.others = Transient("the coordinator does not answer")
            polled_at = stage.polled_at
            await until(lambda: stage.polled_at > polled_at)
            assert "their-service" in stage.troubles()[0], "what is known is still said"
            assert site.processed == [0, 1]
            monkeypatch.undo()
            group.is_turned_away = False
            await group.rebalance()
            await until(lambda: site.processed == [0, 1, 2, 3])
            assert stage.troubles() == []
            assert stage.strangers.count == 0
    told = [each["event"] for each in logs if "consumer group" in each["event"]]
    assert told == ["others have the consumer group", "the consumer group has SAFE's workers alone again"]
    assert site.steps.count("joined") == 1


async def test_a_role_whose_group_stays_with_others_ends_with_their_names(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll_loop, "LOOK_AGAIN_SECONDS", 0.001)
    monkeypatch.setattr(stranger_watch, "LASTS_SECONDS", 0.05)
    stage = stage_of(site)
    task = asyncio.create_task(stage.run())
    await until(lambda: site.visible)
    group = group_of(site)
    group.is_turned_away, group.others = True, frozenset({STRANGER})
    await group.rebalance(frozenset())
    with pytest.raises(Fatal, match=r"their-service.*SAFE_V0_KAFKA_GROUP_ID"):
        await asyncio.wait_for(task, WITHIN_SECONDS)


# --- stopping ---------------------------------------------------------------------------------------------------------


async def test_stopping_finishes_the_slice_in_hand_and_starts_no_other(site: Site) -> None:
    stage = stage_of(site)
    site.publish(3)
    site.commit_gate.clear()
    async with running(stage):
        await until(lambda: site.committing)
        stage.stop()
        stage.stop()
        site.publish(5)
        await until(lambda: not site.visible)
        site.commit_gate.set()
    assert site.commits == [([0, 1, 2], 3)]
    assert site.steps[-3:] == ["drops", "disposes", "left"]


async def test_before_it_has_joined_a_stage_says_so(site: Site) -> None:
    assert stage_of(site).troubles() == ["scorer: not yet a member of its group"]


async def test_a_coordinator_that_does_not_answer_is_a_trouble(site: Site) -> None:
    stage = stage_of(site)
    async with running(stage):
        await until(lambda: site.visible)
        group_of(site).fresh = False
        assert stage.troubles() == ["scorer: the group coordinator does not answer"]


# --- everything at once -----------------------------------------------------------------------------------------------


async def disturb(site: Site, stage: PollLoop, dice: random.Random) -> None:
    """One thing that may happen at any time."""
    group = group_of(site)
    match dice.randrange(8):
        case 0:
            group.failures.append(Transient("polling failed"))
        case 1:
            site.commit_failures.append(PartitionLost("a write failed"))
        case 2:
            site.troubles.append(Transient("the folder is away"))
        case 3:
            await group.rebalance(generations=dice.choice([1, 1, 2]))
        case 4:
            if 0 in stage.runners:
                stage.runners[0].suspend()
                stage.runners[0].keep()
        case 5:
            await group.rebalance(frozenset())
            await group.rebalance()
        case _:
            site.publish(dice.randrange(6), markers=dice.randrange(2))


@pytest.mark.parametrize("seed", range(25))
async def test_whatever_happens_each_record_is_processed_once_and_in_order(
    site: Site, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(buffer_module, "_BUFFER_RECORDS", 6)
    monkeypatch.setattr(buffer_module, "_SLICE_RECORDS", 5)
    dice = random.Random(seed)
    site.take = lambda count: dice.randint(1, count)
    site.publish(5)
    stage = stage_of(site)
    async with running(stage):
        await until(lambda: site.group is not None)
        for _ in range(60):
            await disturb(site, stage, dice)
            for _ in range(dice.randrange(12)):
                await asyncio.sleep(0)
        site.publish(1)

        def at_rest() -> bool:
            return site.committed == site.end

        await until(at_rest, f"committed {site.committed} of {site.end}")
    assert site.processed == site.everything


# --- what cannot be read ----------------------------------------------------------------------------------------------


async def test_a_partition_whose_next_batch_cannot_be_read_serves_what_came_before_and_says_why(site: Site) -> None:
    site.publish(3)
    async with running(stage_of(site)) as _:
        await until(lambda: site.committed == 3)
        stage = group_of(site).stage
        group_of(site).unread = Transient("the batch at offset 3 is too large")
        await until(stage.troubles)
        assert stage.troubles() == ["scorer: partition 0 of input: the batch at offset 3 is too large"]
        site.publish(2)
        await until(lambda: site.committed == 5)
        assert stage.troubles() == [], "it was read after all"
    assert site.processed == site.everything


async def test_a_partition_that_is_taken_up_anew_forgets_what_could_not_be_read(site: Site) -> None:
    async with running(stage_of(site)):
        await until(lambda: site.visible)
        stage, group = group_of(site).stage, group_of(site)
        group.unread = Transient("the batch at offset 0 is too large")
        await until(stage.troubles)
        group.unread = None
        await group.rebalance()
        await until(lambda: site.visible)
        assert stage.troubles() == []


# --- the small parts --------------------------------------------------------------------------------------------------


def test_a_buffer_ignores_what_it_has_and_counts_markers_as_fetched() -> None:
    buffer = Buffer(Shares())
    buffer.start(2)
    buffer.add(brought([Message(1), Message(2), Message(3)], 5))
    assert [record.offset for record in buffer.records] == [2, 3]
    taken, next_offset = buffer.take()
    assert ([record.offset for record in taken], next_offset) == ([2, 3], 5)
    buffer.put_back(taken[1:])
    assert buffer.take() == ([taken[1]], 5)


@pytest.mark.parametrize(
    ("partitions", "buffer_mib", "slice_mib", "slice_records"),
    [
        (1, 16, 8, 2_000),  # its own limits
        (8, 7, 3, 1_600),  # an even share
        (40, 1.4, 0.6, 320),
        (1_000, 0.5, 0.5, 200),  # something must go on
    ],
)
def test_partitions_share_what_a_role_may_hold(
    partitions: int, buffer_mib: float, slice_mib: float, slice_records: int
) -> None:
    shares = Shares()
    shares.partitions = partitions
    assert shares.slice_records == slice_records
    assert shares.buffer_bytes == pytest.approx(buffer_mib * 2**20)
    assert shares.slice_bytes == pytest.approx(slice_mib * 2**20)


@pytest.mark.parametrize(
    "message",
    [
        Message(0, b"x" * 300_000),
        Message(0, b"", key=b"k" * 300_000),
        Message(0, None, headers=[("h", b"x" * 300_000)]),
        Message(0, b"", headers=[("h", None)] * 3_000),
    ],
    ids=["value", "key", "a large header", "many headers"],
)
def test_whatever_makes_records_large_bounds_a_slice(message: Message) -> None:
    shares = Shares()
    shares.partitions = 1_000
    buffer = Buffer(shares)
    buffer.start(0)
    buffer.add(brought([replace(message, offset=at) for at in range(10)], 10))
    assert buffer.is_full
    assert len(buffer.take()[0]) == 2


def test_a_slice_of_one_of_many_partitions_has_few_records() -> None:
    shares = Shares()
    shares.partitions = 64
    buffer = Buffer(shares)
    buffer.start(0)
    buffer.add(brought([Message(at) for at in range(500)], 500))
    assert len(buffer.take()[0]) == 200
    assert buffer.share_of(buffer.take()[0]) == 1.0


# --- how long partitions wait -----------------------------------------------------------------------------------------


async def test_a_partition_waits_from_its_first_trouble_until_it_is_served_whoever_takes_it_up_in_between(
    site: Site,
) -> None:
    stage = stage_of(site)
    async with running(stage):
        await until(lambda: stage.waiting_seconds() == {0: 0.0}, "it is served")
        site.hold_process = True
        site.troubles.append(Transient("the store is down"))
        site.publish(2)
        await until(lambda: stage.waiting_seconds()[0] > 0, "it waits")
        before = stage.waiting_seconds()[0]
        assert site.group is not None
        await site.group.rebalance(generations=2)  # one was missed: it is let go and taken up anew
        await until(lambda: site.steps.count("restores") == 2, "it was taken up again")
        assert stage.waiting_seconds()[0] > before

        site.hold_process = False
        await until(lambda: site.processed == site.everything and stage.waiting_seconds() == {0: 0.0}, "it is served")
        await site.group.rebalance(frozenset())
        assert stage.waiting_seconds() == {}


async def test_a_partition_whose_records_cannot_be_read_waits_too(site: Site) -> None:
    stage = stage_of(site)
    async with running(stage):
        await until(lambda: stage.waiting_seconds() == {0: 0.0}, "it is served")
        assert site.group is not None
        site.group.unread = Transient("a batch is too large")
        site.publish(1)
        await until(lambda: stage.waiting_seconds()[0] > 0, "it waits")


@pytest.mark.parametrize("why", ["leaderless", "held_up"])
async def test_a_partition_that_cannot_be_read_waits(site: Site, why: str) -> None:
    stage = stage_of(site)
    async with running(stage):
        await until(lambda: stage.waiting_seconds() == {0: 0.0}, "it is served")
        setattr(stage, why, frozenset({0, 7}))
        await until(lambda: stage.waiting_seconds()[0] > 0, "it waits")
        setattr(stage, why, frozenset())
        await until(lambda: stage.waiting_seconds() == {0: 0.0}, "it is served")


async def test_a_partition_waits_while_the_group_rebalances_or_polls_fail(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = stage_of(site)
    async with running(stage):
        await until(lambda: stage.waiting_seconds() == {0: 0.0}, "it is served")
        await stage.on_revoked()
        assert stage.waiting_seconds().keys() == {0}
        await until(lambda: stage.waiting_seconds()[0] > 0, "it waits, whether the client polls or not")
        group_of(site).deal()
        await until(lambda: stage.waiting_seconds() == {0: 0.0}, "it is served")
        monkeypatch.setattr(poll_loop, "_POLL_TROUBLE_SECONDS", 0.2)
        group_of(site).failures.append(Transient("no answer"))
        site.publish(1)
        await until(lambda: stage.waiting_seconds()[0] > 0, "it waits")
        await until(lambda: stage.waiting_seconds() == {0: 0.0}, "it is served")


async def test_lag_counts_to_the_end_of_the_log_and_is_unknown_where_nobody_tells_it(site: Site) -> None:
    stage = stage_of(site)
    site.publish(3, markers=1)
    async with running(stage):
        await until(lambda: site.committed == 4)
        assert stage.lags() == {}, "nobody has told the end"
        stage.note_ends({0: 4, 7: 20})
        assert stage.lags() == {0: 0}
        stage.note_ends({0: 9})  # what an open transaction hides; nothing of it is fetched
        assert stage.lags() == {0: 5}
        stage.note_ends({})
        assert stage.lags() == {}


async def test_a_member_without_an_answer_of_its_group_shows_no_partition(site: Site) -> None:
    stage = stage_of(site)
    async with running(stage):
        await until(lambda: stage.waiting_seconds() == {0: 0.0}, "it is served")
        stage.note_ends({0: 0})
        group_of(site).fresh = False
        assert (stage.lags(), stage.waiting_seconds()) == ({}, {})
        group_of(site).fresh = True
        assert (stage.lags(), stage.waiting_seconds()) == ({0: 0}, {0: 0.0})


async def test_of_the_state_a_partition_waits_only_until_it_is_served(site: Site) -> None:
    stage = stage_of(site, restored_from="state")
    site.confirm_gate.clear()
    places = [("input", 0), ("state", 0), ("input", 1), ("state", 1), ("other", 0)]
    async with running(stage):
        await until(lambda: "confirms" in site.steps, "it is taken up")
        assert [place for place in places if stage.waits_for(*place)] == [("input", 0), ("state", 0)]
        assert stage.producer_ids() == frozenset()
        site.confirm_gate.set()
        await until(lambda: site.visible, "it is served")
        assert [place for place in places if stage.waits_for(*place)] == [("input", 0)]
        assert [place for place in places if stage.reads(*place)] == [("input", 0), ("state", 0)]
        assert stage.producer_ids() == {1}


async def test_what_a_role_reads_and_writes_for_its_partitions_is_what_it_needs(site: Site) -> None:
    stage = stage_of(site, aligned=frozenset({"state"}), scattered=frozenset({"scored"}))
    assert not any(stage.needs(topic, 0) for topic in ("input", "state", "scored")), "it has no partition yet"
    async with running(stage):
        await until(lambda: site.visible)
        needed = {
            (topic, at) for topic in ("input", "state", "scored", "other") for at in (0, 7) if stage.needs(topic, at)
        }
    assert needed == {("input", 0), ("state", 0), ("scored", 0), ("scored", 7)}


# --- how a role ends --------------------------------------------------------------------------------------------------


def polls_that_failed(logs: Sequence[Any]) -> list[Any]:
    return [each for each in logs if each["event"] == "polling fails"]


class Falling(Group):
    """A client whose polls fail as soon as the role has failed."""

    @override
    async def poll(self, timeout_seconds: float) -> dict[int, Fetched]:
        fetched = await super().poll(timeout_seconds)
        if self.stage._failure is not None:
            raise Transient("no answer about topic input")
        return fetched


async def test_why_a_role_ends_is_said_without_the_polls_that_fail_with_it(site: Site) -> None:
    site.restore_failures.append(Fatal("not authorised"))
    stage = stage_of(site, make_subscription=lambda stage: Falling(site, stage, frozenset({0})))
    with capture_logs() as logs, pytest.raises(Fatal, match="not authorised"):
        await stage.run()
    assert not polls_that_failed(logs)


async def test_a_role_that_is_cancelled_leaves_without_a_word_about_polls(site: Site) -> None:
    """As when the other role of the process ends: the client is stopped while it is polled."""
    stage = stage_of(site)
    task = asyncio.create_task(stage.run())
    await until(lambda: site.visible)
    group = group_of(site)
    with capture_logs() as logs:
        group.fails_once_stopped = True
        task.cancel()
        await asyncio.wait({task})
    assert task.cancelled()
    assert site.steps[-1] == "left"
    assert not polls_that_failed(logs)
