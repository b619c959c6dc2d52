"""One role's membership in its consumer group: polling, positions, rebalances, heartbeats.

Rebalances are eager: every partition is revoked and assigned again each time. Callbacks must not raise, aiokafka would
swallow it; they catch exceptions themselves.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, OffsetAndMetadata, TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.errors import CorruptRecordException, InconsistentGroupProtocolError, OffsetOutOfRangeError

from consumer.errors import SafeError, Transient
from consumer.kafka import aiokafka_internals
from consumer.kafka.assignors import OWN_NAMES, Assignor, is_marked, offered
from consumer.kafka.brokers_clock import BrokersClock
from consumer.kafka.connection import Connection
from consumer.kafka.decompression import BatchesInTheWay, BatchTooLarge
from consumer.kafka.failures import FAILURES, answered, closed, stopped, translated
from consumer.kafka.group_members import Stranger, strangers_in
from consumer.kafka.group_offsets import AbortedProof, Committed, GroupOffsets, PlainProof, Proof
from consumer.kafka.protocol import Member
from consumer.kafka.transactions import Transactions
from consumer.loop_budget import LoopBudget
from consumer.wire.record import Record

_HEARTBEAT_SECONDS = 1.0
_REBALANCE_TIMEOUT_MS = 60_000
_FETCH_WAIT_MS = 200
_PARTITION_FETCH_BYTES = 2 * 1024 * 1024
_FETCH_BYTES = 16 * 1024 * 1024
_FETCH_PAUSE_SECONDS = 0.02
_FETCH_PAUSE_A_RECORD_SECONDS = 0.005
"""From one fetch to the next, by what it brought: at once while little comes. Each names every partition."""

_FIRST_REST_SECONDS = 0.1
_LONGEST_REST_SECONDS = 30.0
"""The longest pause before the next try to read a batch that cannot be read: each try decompresses it again."""

_PATIENCE_SECONDS = 5.0
"""A large batch that has waited longer than this for others is reported."""


_NOTHING = aiokafka_internals.Taken()


class OffsetOutOfRange(SafeError):
    """The position of a partition is not in its log (any more)."""

    def __init__(self, partition: int, offset: int) -> None:
        super().__init__(f"offset {offset} of partition {partition} is not in its log")
        self.partition = partition
        self.offset = offset


class Fetched(NamedTuple):
    """What one poll brought for a partition: its records, and the next offset after them (markers included).

    `sizes` is about how many bytes each record takes up. `unread` says why the batch at the next offset cannot be read;
    it is tried again and again.
    """

    records: Sequence[Record]
    sizes: Sequence[int]
    next_offset: int
    unread: Transient | None = None


@dataclass(frozen=True, slots=True)
class Membership:
    """Which group to join, for which topic, and how long the group waits for a silent member.

    `witness_topic` is a topic that the group may read but never does: see group_offsets.py. `rack` is where this member
    stands: the topic is read from a replica there, if the brokers allow that. A group that is not `guarded` also takes
    members of an earlier version (see assignors.py).
    """

    topic: str
    witness_topic: str
    group: str
    assignor: Assignor
    session_timeout_seconds: float
    rack: str | None = None
    guarded: bool = True
    proof_id: str | None = None
    """The transactional id with which the coordinator is made to prove itself; None for plain commits."""


class GroupMember(Protocol):
    """What a subscription calls when the group rebalances."""

    async def on_revoked(self) -> None:
        """All partitions are about to be assigned again."""

    def on_assigned(self, partitions: frozenset[int], generation: int) -> None:
        """These partitions are ours from now on."""


class _Rest(NamedTuple):
    """A partition that is not read until some time (monotonic); how long the pause is, and when the first one began."""

    until: float
    seconds: float
    since: float


def _consumer(
    connection: Connection, membership: Membership, assignor: type[AbstractPartitionAssignor]
) -> AIOKafkaConsumer:
    session_ms = int(membership.session_timeout_seconds * 1_000)
    return AIOKafkaConsumer(
        **connection.client(
            group_id=membership.group,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            partition_assignment_strategy=[assignor],
            session_timeout_ms=session_ms,
            client_rack=membership.rack,
            heartbeat_interval_ms=min(int(_HEARTBEAT_SECONDS * 1_000), session_ms // 3),
            rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
            fetch_max_wait_ms=_FETCH_WAIT_MS,
            max_partition_fetch_bytes=_PARTITION_FETCH_BYTES,
            fetch_max_bytes=_FETCH_BYTES,
        )
    )


class Subscription(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka ships no types
    """A consumer that joins its group on start(); it never commits or resets an offset by itself."""

    def __init__(
        self, connection: Connection, membership: Membership, clock: BrokersClock, member: GroupMember
    ) -> None:
        self._membership = membership
        self._clock = clock
        self._member = member
        self._offered = offered(membership.assignor, guarded=membership.guarded)
        self._consumer = _consumer(connection, membership, self._offered[0])
        # A client of its own: while it connects to a broker that hangs, heartbeats and fetches must not wait.
        self._transactions_client = AIOKafkaClient(**connection.client())
        self.transactions = Transactions(self._transactions_client)
        self.assigned_as: Member | None = None
        """As which member, in which generation, we have the partitions; None while they may be assigned to others.

        It is that of the assignment. The client has the next generation as soon as it has joined, before it knows what
        is assigned to it: a commit in that generation would be accepted for any partition.
        """
        self._offsets = GroupOffsets(
            self.link, membership.group, membership.topic, TopicPartition(membership.witness_topic, 0), self._proof()
        )
        self.is_turned_away = False
        """Whether others than SAFE have the group: it refuses this member, or others have assigned the partitions."""
        self._assigned_by_others = False
        self.last_heartbeat_at = float("-inf")
        self._synced_at = float("-inf")
        self.started_at = time.monotonic()
        self._paused: set[int] = set()
        self._rests: dict[int, _Rest] = {}
        self._arrival: asyncio.Future[None] | None = None
        self._next_fetch_at = self._paused_since = 0.0
        self._failure: SafeError | None = None
        # What the current poll has found so far: a partition that gets another position meanwhile must not deliver it.
        self._taken: dict[int, aiokafka_internals.Taken] = {}
        self._unread: dict[int, Transient] = {}
        self._markers: dict[TopicPartition, aiokafka_internals.Marker] = {}

    def _proof(self) -> Proof:
        membership, witness = self._membership, TopicPartition(self._membership.witness_topic, 0)
        if membership.proof_id is None:
            return PlainProof(membership.group, witness)
        return AbortedProof(self.transactions, membership.proof_id, membership.group, witness)

    async def link(self) -> aiokafka_internals.CoordinatorLink:
        """A connection to the node that this member takes for its group's coordinator; raises KafkaError."""
        return await aiokafka_internals.coordinator_link(self._consumer)

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect and subscribe; the assignment follows by callback. Raises Transient while no broker answers."""
        about = f"topic {self._membership.topic}, group {self._membership.group}"
        try:
            if self._membership.proof_id is not None:
                await answered(self._transactions_client.bootstrap(), about)
            await answered(self._consumer.start(), about)
        except SafeError:
            await self.stop(0.5)
            raise
        aiokafka_internals.note_heartbeats(self._consumer, self._note_heartbeat)
        aiokafka_internals.note_syncs(self._consumer, self._note_sync)
        aiokafka_internals.join_at_once(self._consumer, self._offered)
        aiokafka_internals.note_assignments(self._consumer, self._note_assignment)
        aiokafka_internals.pace_fetches(self._consumer, self.seconds_to_fetch)
        self._consumer.subscribe([self._membership.topic], listener=self)

    async def stop(self, deadline_seconds: float) -> None:
        """Leave the group; does not wait longer than this for a broker that does not answer."""
        await stopped(self._consumer, deadline_seconds)  # the session timeout does the same, later
        await closed(self._transactions_client.close(), 1.0)

    @property
    def is_broken(self) -> bool:
        """Whether the client will never join a group again."""
        return aiokafka_internals.coordination_failed(self._consumer)

    # --- membership ---------------------------------------------------------------------------------------------------

    def owns(self, partition: int) -> bool:
        """Whether the current, settled assignment has the partition."""
        if self.is_turned_away or aiokafka_internals.is_rebalancing(self._consumer):
            return False
        return self._where(partition) in self._consumer.assignment()

    def heartbeat_is_fresh(self) -> bool:
        """Whether the coordinator has answered within the session timeout; then nobody else can own our partitions."""
        return time.monotonic() - self.last_heartbeat_at < self._membership.session_timeout_seconds

    def _note_heartbeat(self, sent_at: float) -> None:
        self.last_heartbeat_at = max(sent_at, self.last_heartbeat_at)

    def _note_sync(self, sent_at: float) -> None:
        self._synced_at = sent_at

    def _note_assignment(self, assignor: str, encoded: bytes) -> None:
        """Only SAFE knows its own assignors, and marks what it assigns by them."""
        self._assigned_by_others = assignor in OWN_NAMES and not is_marked(encoded)

    async def strangers(self) -> frozenset[Stranger]:
        """Who else is in the group, as far as its coordinator says so; raises Transient or Fatal."""
        return await answered(self._strangers(), f"group {self._membership.group}")

    async def _strangers(self) -> frozenset[Stranger]:
        return await strangers_in(await self.link(), self._membership.group)

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:  # noqa: ARG002 - all are revoked
        """Let go of every partition: aiokafka calls this, and the group waits until it returns."""
        self.assigned_as = None
        await self._member.on_revoked()

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Take what the group has assigned: aiokafka calls this, and polls bring nothing until it returns."""
        self._note_heartbeat(self._synced_at)
        self._taken.clear()
        self._unread.clear()
        for partition in assigned:
            # Paused, and given a position at once, so that the client does not look for a position itself.
            self._consumer.pause(partition)
            self._consumer.seek(partition, 0)
        self.is_turned_away = self._assigned_by_others
        partitions = frozenset(partition.partition for partition in assigned if not self.is_turned_away)
        generation = aiokafka_internals.generation_of(self._consumer)
        self.assigned_as = Member(aiokafka_internals.member_id_of(self._consumer), generation)
        self._member.on_assigned(partitions, generation)

    # --- records ------------------------------------------------------------------------------------------------------

    async def poll(self, timeout_seconds: float) -> dict[int, Fetched]:
        """What has been fetched, about 2 MiB of each partition at most; empty after the timeout. Never cancel this.

        Nothing comes to a member that is turned away. Raises Transient (positions may then be ahead of what was
        delivered: seek all partitions back), OffsetOutOfRange or Fatal; records of other partitions are not lost with
        them.
        """
        if self.is_broken:
            raise Transient("the group coordination of the client has ended")
        self._raise_failure()
        try:
            # For a partition that does not exist: raises errors of the group, waits for a rebalance, counts as a poll.
            await self._consumer.getmany(self._where(-1))
            if not self._ready():
                await self._wait_for_more(timeout_seconds)
        except InconsistentGroupProtocolError:  # from now on the client tries to join again, until the next poll
            self.is_turned_away = True
            return {}
        except FAILURES as error:
            raise translated(error, f"topic {self._membership.topic}, group {self._membership.group}") from error
        self._taken.clear()
        self._unread.clear()
        began = time.monotonic()
        if began >= self._next_fetch_at:
            self._paused_since = began  # a pause is no longer for what other brokers answer meanwhile
        budget = LoopBudget()
        for where in self._ready():
            await self._take(where)
            taken = sum(map(len, self._taken.values()))
            pause = min(_FETCH_PAUSE_SECONDS, _FETCH_PAUSE_A_RECORD_SECONDS * taken)
            self._next_fetch_at = max(self._next_fetch_at, self._paused_since + pause)
            if budget.is_spent:  # not after each take: where much is to do, others run for milliseconds each time
                await budget.renew()
        await asyncio.sleep(0)  # a take never suspends
        if not self._taken:
            self._raise_failure()
        return self._with_positions()

    def seconds_to_fetch(self) -> float:
        """For how long brokers are not yet asked for more; zero or less: at once."""
        return self._next_fetch_at - time.monotonic()

    async def _take(self, where: TopicPartition) -> None:
        """Take what one partition has; its failures do not concern the others."""
        try:
            records = await aiokafka_internals.take(self._consumer, where)
        except BatchesInTheWay:
            rest = self._rest(where, longest_seconds=_FIRST_REST_SECONDS)
            if time.monotonic() - rest.since > _PATIENCE_SECONDS:
                about = (
                    f"{where.topic}/{where.partition} at offset {aiokafka_internals.position_of(self._consumer, where)}"
                )
                self._unread[where.partition] = Transient(f"a large batch of {about} waits until others have been read")
        except (BatchTooLarge, CorruptRecordException) as error:
            self._rest(where)
            about = f"{where.topic}/{where.partition} at offset {aiokafka_internals.position_of(self._consumer, where)}"
            self._unread[where.partition] = Transient(str(translated(error, about)))
        except OffsetOutOfRangeError as error:
            self._failure = OffsetOutOfRange(where.partition, error.args[0][where])
        except FAILURES as error:
            self._failure = translated(error, f"topic {where.topic}")
        else:
            if records:
                self._taken[where.partition] = records
                self._rests.pop(where.partition, None)

    def _rest(self, where: TopicPartition, *, longest_seconds: float = _LONGEST_REST_SECONDS) -> _Rest:
        """Pause a partition; while the rest of its last fetch is not taken, the client fetches no more of it."""
        now, last = time.monotonic(), self._rests.get(where.partition)
        seconds = _FIRST_REST_SECONDS if last is None else min(2 * last.seconds, longest_seconds)
        rest = self._rests[where.partition] = _Rest(now + seconds, seconds, now if last is None else last.since)
        return rest

    def _raise_failure(self) -> None:
        """Raise the failure of a partition, which waited until the records of others had been handed over."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _ready(self) -> list[TopicPartition]:
        now = time.monotonic()
        resting = {partition for partition, rest in self._rests.items() if now < rest.until}
        left_alone = resting | self._paused
        fetched = aiokafka_internals.partitions_fetched(self._consumer)
        aiokafka_internals.let_wait(self._consumer, [where for where in fetched if where.partition in left_alone])
        return [where for where in fetched if where.partition not in left_alone]

    async def _wait_for_more(self, timeout_seconds: float) -> None:
        """Wait until more has been fetched, or a partition has been resumed."""
        arrival = self._arrival = aiokafka_internals.next_arrival(self._consumer)
        await asyncio.wait([arrival], timeout=timeout_seconds)
        self._arrival = None
        if arrival.done():
            arrival.result()
        else:
            arrival.cancel()

    def _with_positions(self) -> dict[int, Fetched]:
        fetched = {}
        for where in self._consumer.assignment():
            position = aiokafka_internals.position_of(self._consumer, where)
            marker = aiokafka_internals.marker_of(self._consumer, where)
            # Each one once: of an hour ago, one from the future would still be as good as new.
            if marker is not None and self._clock.is_known and self._markers.get(where) != marker:
                self._markers[where] = marker
                self._clock.note_least(marker.timestamp)
            if position is not None:
                partition = where.partition
                taken = self._taken.get(partition, _NOTHING)
                fetched[partition] = Fetched(taken, taken.sizes, position, self._unread.get(partition))
        return fetched

    def seek(self, partition: int, offset: int) -> None:
        """Continue reading at `offset`; does nothing for a partition that is no longer ours."""
        self._taken.pop(partition, None)
        self._unread.pop(partition, None)
        if self.owns(partition):
            self._rests.pop(partition, None)
            self._consumer.seek(self._where(partition), offset)

    def pause(self, partition: int) -> None:
        """Deliver no more for now; what has been fetched is kept, and no more is fetched."""
        self._paused.add(partition)

    def resume(self, partition: int) -> None:
        """Deliver again, from the position."""
        self._paused.discard(partition)
        if self.owns(partition):
            self._consumer.resume(self._where(partition))
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def end_seen(self, partition: int) -> int | None:
        """The last stable offset as of the latest fetch, None before the first."""
        if not self.owns(partition):
            return None
        stable = self._consumer.last_stable_offset(self._where(partition))
        return stable if stable is not None and stable >= 0 else None

    # --- offsets ------------------------------------------------------------------------------------------------------

    async def confirm(self, partition: int) -> None:  # noqa: ARG002 - what is confirmed is the membership
        """Return once the group's true coordinator, asked after this call began, has confirmed that we are a member.

        Only then may another writer be fenced: with an outdated coordinator, two members would fence each other in
        turn. No offset is asked for: one that a former owner has left pending would be waited for, and only the fence
        ends that. Raises Transient, OutOfGroup or Fatal.
        """
        await self._offsets.of(())
        self._note_heartbeat(self._offsets.proven_at)  # a proof of membership counts as a heartbeat

    async def committed(self, partition: int) -> Committed | None:
        """What the group has committed, None if nothing; asked after this call began, of no outdated coordinator.

        Raises Transient, OutOfGroup or Fatal.
        """
        owned = {where.partition for where in self._consumer.assignment()}
        answer = await self._offsets.of(owned | {partition})
        self._note_heartbeat(self._offsets.proven_at)  # a proof of membership counts as a heartbeat
        return answer[partition]

    async def commit(self, partition: int, next_offset: int, note: str) -> None:
        """Commit outside a transaction (`at_least_once`); raises what the client raises."""
        await self._consumer.commit({self._where(partition): OffsetAndMetadata(next_offset, note)})

    async def beginning(self, partition: int) -> int:
        """The earliest offset in the log; raises Transient or Fatal."""
        where = self._where(partition)
        offsets = await answered(self._consumer.beginning_offsets([where]), f"topic {where.topic}")
        return int(offsets[where])

    async def refresh_metadata(self) -> None:
        """Ask the cluster again which broker leads which partition; raises Transient or Fatal."""
        await answered(aiokafka_internals.refresh_metadata(self._consumer), f"topic {self._membership.topic}")

    async def end(self, partition: int) -> int:
        """The last stable offset; raises Transient or Fatal."""
        where = self._where(partition)
        offsets = await answered(self._consumer.end_offsets([where]), f"topic {where.topic}")
        return int(offsets[where])

    def _where(self, partition: int) -> TopicPartition:
        return TopicPartition(self._membership.topic, partition)
