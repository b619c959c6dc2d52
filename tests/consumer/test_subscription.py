"""What one poll brings: each partition its own, and no trouble of one partition is another's.

The client is the real one, with nothing behind it: what a fetch brings is put where the client keeps it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer import fetcher as fetcher_module
from aiokafka.consumer.fetcher import Fetcher, FetchError, FetchResult
from aiokafka.errors import InconsistentGroupProtocolError, OffsetOutOfRangeError, TopicAuthorizationFailedError
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from consumer import loop_budget
from consumer.errors import Fatal
from consumer.kafka import aiokafka_internals, subscription
from consumer.kafka.brokers_clock import BrokersClock
from consumer.kafka.connection import Connection
from consumer.kafka.decompression import CODECS, Decompression
from consumer.kafka.protocol import Member
from consumer.kafka.subscription import Membership, OffsetOutOfRange, Subscription
from tests.support.batches import marker

NOW = 1_795_291_200_000
LIMIT = 2 * 1024 * 1024
ZSTD = 4
WITHIN_SECONDS = 10.0
AT_ONCE = 0.0


class Coordinator:
    """Of a group that is settled."""

    generation = 1
    member_id = "me"
    _coordination_task: "asyncio.Future[None]"

    def __init__(self) -> None:
        self._coordination_task = asyncio.get_running_loop().create_future()
        self.failure: Exception | None = None

    def check_errors(self) -> None:
        """Raise what the group has answered, once."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure


class Group:
    """A subscription to partitions 0 and 1, and a hand that puts there what fetches bring."""

    def __init__(self) -> None:
        self.decompression = Decompression(LIMIT)
        nobody = cast("Any", None)
        membership = Membership("input", "state", "g", "round_robin", 10.0)
        self.clock = BrokersClock(lambda: NOW)
        self.clock.note(NOW)
        self.subscription = Subscription(Connection("127.0.0.1:1", {}), membership, self.clock, nobody)
        consumer: Any = self.subscription._consumer
        consumer._subscription.subscribe({"input"})
        consumer._subscription.assign_from_subscribed([TopicPartition("input", 0), TopicPartition("input", 1)])
        consumer._coordinator = Coordinator()
        consumer._fetcher = Fetcher(consumer._client, consumer._subscription)
        self.consumer = consumer
        for partition in (0, 1):
            self.subscription.seek(partition, 0)

    def bring(self, partition: int, *batches: bytes) -> None:
        """A fetch has brought these batches."""
        where, assignment = TopicPartition("input", partition), self.consumer._subscription.subscription.assignment
        position = assignment.state_value(where).position
        records = fetcher_module.PartitionRecords(
            where, MemoryRecords(b"".join(batches)), [], position, None, None, check_crcs=True, isolation_level=1
        )
        self._arrived(where, FetchResult(where, assignment=assignment, partition_records=records, backoff=0.0))

    def fail(self, partition: int, error: Exception) -> None:
        """A fetch has failed."""
        self._arrived(TopicPartition("input", partition), FetchError(error=error, backoff=0.0))

    def _arrived(self, where: TopicPartition, what: Any) -> None:
        self.consumer._fetcher._records[where] = what
        for waiter in list(self.consumer._fetcher._fetch_waiters):
            self.consumer._fetcher._notify(waiter)

    async def poll(self, timeout_seconds: float = AT_ONCE) -> dict[int, tuple[list[bytes | None], int, str | None]]:
        """Values, next offset and trouble of each partition."""
        async with asyncio.timeout(WITHIN_SECONDS):
            fetched = await self.subscription.poll(timeout_seconds)
        return {
            partition: (
                [record.value for record in each.records],
                each.next_offset,
                str(each.unread) if each.unread else None,
            )
            for partition, each in sorted(fetched.items())
        }


@pytest.fixture
async def group(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Group]:
    for module in aiokafka_internals.DECODING_MODULES:
        for codec in CODECS:
            if hasattr(module, f"{codec}_decode"):
                monkeypatch.setattr(module, f"{codec}_decode", getattr(module, f"{codec}_decode"))
    monkeypatch.setattr(FetchResult, "getall", FetchResult.getall)
    monkeypatch.setattr(fetcher_module, "PartitionRecords", fetcher_module.PartitionRecords)
    made = Group()
    aiokafka_internals.bound_memory(made.decompression)
    yield made
    await made.consumer._fetcher.close()
    made.consumer._closed = True


def batch(values: Sequence[bytes], first_offset: int = 0, codec: int = 0) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1 << 30,
    )  # fmt: skip
    for at, value in enumerate(values):
        builder.append(at, timestamp=0, key=None, value=value, headers=[])
    return first_offset.to_bytes(8, "big") + bytes(builder.build())[8:]


def bomb(first_offset: int = 0) -> bytes:
    return batch([b" " * (LIMIT + 1)], first_offset, ZSTD)


TOO_LARGE = f"is larger than {LIMIT} bytes decompressed"


async def test_the_markers_that_it_passes_tell_what_time_it_is_at_least(group: Group) -> None:
    group.bring(0, batch([b"a"]), marker(1, NOW - 9_000_000), batch([b"b"], 2))
    group.bring(1, batch([b"c"]), marker(1, NOW + 600_000))
    assert await group.poll() == {0: ([b"a", b"b"], 3, None), 1: ([b"c"], 2, None)}
    assert 600_000 <= group.clock.now_ms() - NOW < 660_000


async def test_a_marker_from_the_future_is_noted_once_however_long_it_stays_the_last_one(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[int] = []
    group.clock.note(NOW)
    monkeypatch.setattr(group.clock, "note_least", noted.append)
    group.bring(0, batch([b"a"]), marker(1, NOW + 99 * 86_400_000))
    group.bring(1)
    for _ in range(3):
        await group.poll()
    assert noted == [NOW + 99 * 86_400_000]


async def test_a_batch_that_is_too_large_takes_nothing_from_other_partitions(group: Group) -> None:
    group.bring(0, bomb())
    group.bring(1, batch([b"a", b"b"]))
    polled = await group.poll()
    assert polled[1] == ([b"a", b"b"], 2, None)
    values, next_offset, trouble = polled[0]
    assert (values, next_offset) == ([], 0)
    assert trouble is not None
    assert trouble.startswith("input/0 at offset 0: a compressed batch " + TOO_LARGE)


@pytest.mark.parametrize(("rest_seconds", "is_left_alone"), [(1_000.0, True), (0.0, False)])
async def test_it_is_left_alone_for_a_while_and_then_fetched_again(
    group: Group, monkeypatch: pytest.MonkeyPatch, *, rest_seconds: float, is_left_alone: bool
) -> None:
    monkeypatch.setattr(subscription, "_FIRST_REST_SECONDS", rest_seconds)
    group.bring(0, bomb())
    assert (await group.poll())[0][2] is not None
    group.bring(1, batch([b"a"]))
    assert await group.poll() == {0: ([], 0, None), 1: ([b"a"], 1, None)}
    # What is left of its fetch keeps a partition from being fetched.
    assert bool(group.consumer._fetcher._records) is is_left_alone


async def test_a_large_batch_that_waits_for_others_is_told_of_once_that_takes_long(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "_FIRST_REST_SECONDS", 0.0)
    value = b" " * (LIMIT - 1_000)
    large = batch([value], codec=ZSTD)
    group.decompression.open_bytes = LIMIT  # of other partitions
    group.bring(0, large)
    assert (await group.poll())[0] == ([], 0, None)
    monkeypatch.setattr(subscription, "_PATIENCE_SECONDS", -1.0)
    group.bring(0, large)
    told = "a large batch of input/0 at offset 0 waits until others have been read"
    assert (await group.poll())[0] == ([], 0, told)
    group.decompression.open_bytes = 0
    group.bring(0, large)
    assert (await group.poll())[0] == ([value], 1, None)


async def test_a_partition_goes_on_once_its_batch_can_be_read(group: Group) -> None:
    group.bring(0, bomb())
    await group.poll()
    group.subscription.seek(0, 1)
    group.bring(0, batch([b"behind"], first_offset=1))
    assert (await group.poll())[0] == ([b"behind"], 2, None)


async def test_a_paused_partition_keeps_what_was_fetched_and_delivers_it_when_resumed(group: Group) -> None:
    group.bring(0, batch([b"a"]))
    group.subscription.pause(0)
    assert (await group.poll())[0] == ([], 0, None)
    polling = asyncio.create_task(group.poll(WITHIN_SECONDS))
    await asyncio.sleep(0)
    group.subscription.resume(0)
    assert (await polling)[0] == ([b"a"], 1, None), "the poll under way would go on waiting"


async def test_a_poll_ends_as_soon_as_something_arrives(group: Group) -> None:
    polling = asyncio.create_task(group.poll(WITHIN_SECONDS))
    await asyncio.sleep(0)
    group.bring(1, batch([b"a"]))
    assert (await polling)[1] == ([b"a"], 1, None)


async def test_the_next_fetch_waits_the_longer_the_more_a_poll_has_brought(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "_FETCH_PAUSE_A_RECORD_SECONDS", 100.0)
    monkeypatch.setattr(subscription, "_FETCH_PAUSE_SECONDS", 350.0)
    assert await group.poll()
    assert group.subscription.seconds_to_fetch() <= 0, "nothing came: at once"
    group.bring(0, batch([b"a"]))
    await group.poll()
    assert 50 < group.subscription.seconds_to_fetch() <= 100
    group.bring(0, batch([b"b", b"c"], 1))
    group.bring(1, batch([b"d"]))
    await group.poll()
    assert 250 < group.subscription.seconds_to_fetch() <= 300, "of all partitions"
    group.bring(1, batch([b"e"] * 1_000, 1))
    await group.poll()
    assert 300 < group.subscription.seconds_to_fetch() <= 350


async def test_what_other_brokers_answer_meanwhile_makes_the_pause_no_longer(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000.0
    monkeypatch.setattr(subscription, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(subscription, "_FETCH_PAUSE_A_RECORD_SECONDS", 100.0)
    monkeypatch.setattr(subscription, "_FETCH_PAUSE_SECONDS", 350.0)
    group.bring(0, batch([b"a"]))
    await group.poll()
    assert group.subscription.seconds_to_fetch() == 100
    now += 90
    group.bring(1, batch([b"b"]))
    await group.poll()
    assert group.subscription.seconds_to_fetch() == 10
    now += 20
    group.bring(0, batch([b"c", b"d"], 1))
    await group.poll()
    assert group.subscription.seconds_to_fetch() == 200


async def test_others_do_not_run_between_takes_that_are_quick(group: Group) -> None:
    """In a busy loop, each time that others run takes milliseconds, and there may be a hundred partitions."""
    for partition in (0, 1):
        group.bring(partition, batch([b"a"]))
    polling = asyncio.create_task(group.poll())
    await asyncio.sleep(0)
    assert aiokafka_internals.position_of(group.consumer, TopicPartition("input", 0)) == 1
    assert aiokafka_internals.position_of(group.consumer, TopicPartition("input", 1)) == 1
    assert not polling.done(), "they run once, however little there is"
    await polling


async def test_what_was_taken_before_a_partition_was_sent_elsewhere_is_not_delivered(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another task may move a partition while a poll, which takes long, takes from the next one."""
    monkeypatch.setattr(loop_budget, "_SECONDS", -1.0)
    group.bring(0, batch([b"a", b"b"]))
    group.bring(1, batch([b"c"]))
    polling = asyncio.create_task(group.poll())
    await asyncio.sleep(0)  # partition 0 has been taken from, and nothing else
    assert aiokafka_internals.position_of(group.consumer, TopicPartition("input", 0)) == 2
    assert aiokafka_internals.position_of(group.consumer, TopicPartition("input", 1)) == 0
    group.subscription.seek(0, 1)
    assert await polling == {0: ([], 1, None), 1: ([b"c"], 1, None)}


async def test_a_gap_in_one_partition_is_told_after_what_the_others_brought(group: Group) -> None:
    group.fail(0, OffsetOutOfRangeError({TopicPartition("input", 0): 7}))
    group.bring(1, batch([b"a"]))
    assert (await group.poll())[1] == ([b"a"], 1, None)
    with pytest.raises(OffsetOutOfRange) as gap:
        await group.poll()
    assert (gap.value.partition, gap.value.offset) == (0, 7)


async def test_what_no_waiting_helps_is_fatal(group: Group) -> None:
    group.fail(0, TopicAuthorizationFailedError("input"))
    with pytest.raises(Fatal, match="not authorised"):
        await group.poll()


async def test_a_membership_is_confirmed_without_asking_for_offsets(group: Group) -> None:
    """One that a former owner has left pending would hold up the fence that ends it."""
    asked: list[frozenset[int]] = []

    async def of(partitions: Sequence[int]) -> dict[int, None]:
        asked.append(frozenset(partitions))
        return {}

    group.subscription._offsets = cast("Any", SimpleNamespace(of=of, proven_at=5.0))
    await group.subscription.confirm(0)
    assert asked == [frozenset()]
    assert group.subscription.last_heartbeat_at == 5.0


# --- how old an assignment is -----------------------------------------------------------------------------------------


async def test_an_assignment_is_as_old_as_the_request_for_it_not_as_its_arrival(group: Group) -> None:
    """A process that was frozen in between must not take for fresh what others have been given meanwhile."""
    dealt: list[tuple[frozenset[int], int]] = []
    made = group.subscription
    member: Any = SimpleNamespace(on_assigned=lambda partitions, generation: dealt.append((partitions, generation)))
    made._member = member

    made._note_sync(time.monotonic() - 60.0)
    await made.on_partitions_assigned(group.consumer.assignment())

    assert dealt == [(frozenset({0, 1}), 1)]
    assert not made.heartbeat_is_fresh()
    made._note_sync(time.monotonic())
    await made.on_partitions_assigned(group.consumer.assignment())
    assert made.heartbeat_is_fresh()


# --- strangers in the group -------------------------------------------------------------------------------------------

MARKED = b"an assignment SAFE"
PLAIN = b"an assignment"


async def test_a_group_that_refuses_our_assignors_is_no_failure_but_turns_us_away(group: Group) -> None:
    group.consumer._coordinator.failure = InconsistentGroupProtocolError()
    group.bring(0, batch([b"a"]))
    assert await group.poll() == {}
    assert group.subscription.is_turned_away
    assert not group.subscription.owns(0)


# By which assignor the partitions came, whether with our mark, and whether we then have them.
ASSIGNMENTS: list[tuple[str, bytes, bool]] = [
    ("safe-roundrobin", MARKED, True),
    ("safe-roundrobin", PLAIN, False),  # a group of the newer protocol: the broker has assigned them
    ("safe-sticky", PLAIN, False),
    ("roundrobin", PLAIN, True),  # the leader is of an earlier version
    ("sticky", MARKED, True),
]


@pytest.mark.parametrize(("assignor", "encoded", "ours"), ASSIGNMENTS)
async def test_what_others_have_assigned_is_not_taken(
    group: Group, assignor: str, encoded: bytes, *, ours: bool
) -> None:
    dealt: list[frozenset[int]] = []
    made = group.subscription
    made._member = cast("Any", SimpleNamespace(on_assigned=lambda partitions, _generation: dealt.append(partitions)))

    made._note_assignment(assignor, encoded)
    await made.on_partitions_assigned(group.consumer.assignment())

    assert dealt == [frozenset({0, 1} if ours else {})]
    assert made.is_turned_away is not ours
    assert made.owns(0) is ours
    made._note_assignment("safe-roundrobin", MARKED)
    await made.on_partitions_assigned(group.consumer.assignment())
    assert dealt[-1] == {0, 1}
    assert made.owns(0)


async def test_a_member_commits_as_what_it_was_when_its_partitions_were_assigned(group: Group) -> None:
    """In the next generation as soon as it has joined, it does not know yet which partitions are its own."""
    made = group.subscription
    seen: list[Member | None] = []

    async def on_revoked() -> None:
        seen.append(made.assigned_as)

    made._member = cast(
        "Any", SimpleNamespace(on_assigned=lambda *_: seen.append(made.assigned_as), on_revoked=on_revoked)
    )
    made._note_assignment("safe-roundrobin", MARKED)
    await made.on_partitions_assigned(group.consumer.assignment())
    group.consumer._coordinator.generation = 2  # it has joined, and nothing is assigned yet
    assert made.assigned_as == Member("me", 1)
    await made.on_partitions_revoked(())
    assert seen == [Member("me", 1), None]
