"""`exactly_once`: what a role of this worker writes, turn by turn. Each turn is one transaction of one producer.

A turn takes the slices that wait, from any of our partitions. It sends all that they hold, waits for every
acknowledgement, commits all their offsets in one request, and ends the transaction. So what brokers have to do does not
grow with the number of partitions.

Two things keep a worker that has lost a partition from writing for it:

- The group. The offsets are committed as the member, in the generation, under which the records were taken
  (KIP-447). The group refuses any other, and then the whole transaction is aborted.
- The transactional ids. Each partition has one. The producer has that of one partition that we own, and the next owner
  of a partition ends its id first. So every transaction that a former owner has left open is ended by the one living
  owner of that id, whatever the former owner still knew or wrote down.

What a failed turn leaves behind:

| how far it came                        | what is known                 | what becomes of its slices                |
|----------------------------------------|-------------------------------|-------------------------------------------|
| the end was not asked for              | it is not committed           | the same records are sent again           |
| the end was asked for, no answer       | nothing                       | the proven offset decides: done, or again |
| another producer has our id, the group | it is not committed; we may   | lost: the partitions are taken up again   |
| refuses us                             | not be the owner any more     |                                           |
| a broker refuses a record              | it is not committed           | lost are those that write there           |
| no success within the time that one    | as above                      | lost                                      |
| transaction may take                   |                               |                                           |

Nothing has to be undone before a slice is sent again: the state of a partition is ahead of its offset by this very
slice, which is either committed as it is, or lost together with that state. Requests of a failed turn may still be on
their way. So before the next one begins, a newer epoch of the same id ends what is open, and makes brokers refuse
whatever comes late: an abort alone would not.

Where the leader of a partition does not acknowledge what is written to it, that is tried again by itself, after a
pause, by turns with all else: it holds up others for one trial at a time.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
)

from consumer.backoff import Backoff
from consumer.errors import Fatal, PartitionLost, SafeError, Transient
from consumer.kafka import aiokafka_internals
from consumer.kafka.aiokafka_internals import Batch, CoordinatorLink, dispose
from consumer.kafka.brokers_clock import BrokersClock
from consumer.kafka.connection import Connection
from consumer.kafka.failures import FAILURES, answered
from consumer.kafka.group_offsets import Committed, OutOfGroup
from consumer.kafka.protocol import Identity, Member, MemberOffsetsRequest, codes_of
from consumer.kafka.reader import read_marker_time
from consumer.kafka.subscription import Subscription
from consumer.kafka.transactions import (
    GROUP_REFUSES,
    LOADING,
    NOT_NOW_FOR_OFFSETS,
    Unanswered,
    error_of,
)
from consumer.kafka.writer import (
    Outgoing,
    Place,
    ProducerEpoch,
    batches_of,
    meaning_of,
    new_producer,
    noted_time,
    send_in_order,
    without_frames,
    write_mark,
)
from consumer.wire.record import KafkaHeaders

_PAUSE_SECONDS = 0.05
_PAUSE_A_RECORD_SECONDS = 0.005
"""From one begin to the next, by what a turn wrote: at once while little comes, twenty a second while much does."""

_LEAD_SECONDS = 0.02
"""So long before a turn begins, partitions take what is to be part of it: what arrives until then is."""

_PATIENCE_SECONDS = 1.5
_LEAST_BYTES_A_SECOND = 256 * 1024
"""A broker that does not acknowledge for longer than it takes at this rate holds up only those that write to it."""

_SIT_OUT_SECONDS = 1.0
_LONGEST_SIT_OUT_SECONDS = 8.0
_ABORT_SECONDS = 1.0
_ANSWER_SECONDS = 3.0
_AGAIN_SECONDS = 0.02
_TIME_HOLDS_SECONDS = 5.0
"""A partition that is taken up this soon after a broker was asked for its time does not ask again."""

_PASSING = (
    Unanswered, OSError, KafkaConnectionError, NodeNotReadyError, RequestTimedOutError, KafkaTimeoutError, Transient
)  # fmt: skip
"""Failures that say nothing against the slices, nor against us."""


@dataclass(slots=True, eq=False)
class _Slice:
    """What one partition has to write, and what is committed with it."""

    partition: int
    outgoing: Outgoing
    after: Committed
    member: Member
    done: "asyncio.Future[None]"
    expires_at: float
    times_fenced: int


@dataclass(slots=True, eq=False)
class _Mark:
    """A record that is never committed, and the offset that it gets."""

    topic: str
    partition: int
    key: bytes
    headers: KafkaHeaders
    offset: "asyncio.Future[int]"
    written_at: int | None = None


@dataclass(slots=True)
class _Attempt:
    """How far a transaction has come."""

    has_begun: bool = False
    unanswered: int = 0
    end_is_out: bool = False
    unacknowledged: set[Place] = field(default_factory=set)
    late: frozenset[Place] = frozenset()
    refused: Place | None = None

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """A request is out; if this ends with an error, it counts as unanswered."""
        self.unanswered += 1
        yield
        self.unanswered -= 1


class _SitOut(NamedTuple):
    """Until when (monotonic) a partition is not written to that was not acknowledged, and how long the pause is."""

    until: float
    seconds: float


class _Ended(NamedTuple):
    """A start of a transactional id, by which all that was open with it has ended, and as which member we made it."""

    identity: Identity
    member: Member


class Turns:
    """The transactions of one role, from joining its group until it has to join again."""

    def __init__(
        self,
        connection: Connection,
        subscription: Subscription,
        clock: BrokersClock,
        *,
        topic: str,
        group: str,
        id_of: Callable[[int], str],
        timeout_seconds: float,
    ) -> None:
        self._connection = connection
        self._subscription = subscription
        self._transactions = subscription.transactions
        self._clock = clock
        self._topic = topic
        self._group = group
        self._id_of = id_of
        self._timeout_seconds = timeout_seconds
        self._slices: list[_Slice] = []
        self._marks: list[_Mark] = []
        self._joined = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._in_turn: Collection[int] = ()
        self._sit_outs: dict[Place, _SitOut] = {}
        self._one_at_a_time = asyncio.Lock()
        self._next_at = 0.0
        self._tried_one = False
        self._backoff = Backoff(0.05, 1.0)
        self._gained: set[int] = set()
        self._ended: dict[int, _Ended] = {}
        self._epochs: dict[int, tuple[Member, ProducerEpoch]] = {}
        self._committed: dict[int, Committed] = {}
        self._producer: AIOKafkaProducer | None = None
        self._writes_as: tuple[int, Identity] | None = None
        self._open: int | None = None
        """The partition with whose id a transaction may be open, or a request on its way."""
        self._ending = asyncio.Lock()
        self.times_fenced = 0
        """How often others have taken our ids: a writer that began before must ask again what is committed."""

    # --- for the writers of partitions --------------------------------------------------------------------------------

    def writer(self, partition: int) -> "TurnWriter":
        """The writer for one partition."""
        return TurnWriter(self, self._subscription, partition)

    def has(self, partition: int) -> bool:
        """Whether we write for the partition."""
        return partition in self._gained

    def epoch_of(self, partition: int) -> ProducerEpoch | None:
        """How the transaction coordinator knows the latest producer that we have started with the partition's id."""
        known = self._epochs.get(partition)
        return None if known is None else known[1]

    async def gain(self, partition: int) -> None:
        """End what a former owner may have left open with the partition's id; raises Transient or Fatal."""
        member = self._subscription.assigned_as
        if member is None:
            raise Transient("the consumer group is rebalancing")
        await answered(self._end_id(partition, member), f"the producer for {self._topic}", self._timeout_seconds)
        self._gained.add(partition)

    async def _end_id(self, partition: int, member: Member) -> None:
        if self._writes_as is not None and self._writes_as[0] == partition:
            async with self._one_at_a_time:  # given up a moment ago: others may write with its id to the end of a turn
                await self._retire()
        await self._end_open(member)
        known = self._ended.get(partition)
        if known is None or known.member != member:
            await self._start_id(partition, member)

    async def leave(self, partition: int) -> None:
        """Write no more for the partition; a turn that it is part of is given up. May be called again."""
        self._gained.discard(partition)
        running = self._running
        if running is not None and partition in self._in_turn:
            running.cancel()
            await asyncio.wait([running])
        if not self._gained:
            async with self._one_at_a_time:
                await self._retire()
        elif self._slices or self._marks:
            self._wake()

    async def mark(self, topic: str, partition: int, key: bytes, headers: KafkaHeaders) -> int:
        """See PartitionWriter."""
        sit_out = self._sit_outs.get((topic, partition))
        if sit_out is not None and time.monotonic() < sit_out.until:
            raise self._unacknowledged([(topic, partition)])
        mark = _Mark(topic, partition, key, headers, asyncio.get_running_loop().create_future())
        self._marks.append(mark)
        self._wake()
        offset = await mark.offset
        await self._learn_from_end(topic, partition, offset)
        return offset

    async def learn_time(self, topic: str, partition: int, key: bytes, headers: KafkaHeaders) -> None:
        """See PartitionWriter."""
        if not self._clock.was_asked_within(_TIME_HOLDS_SECONDS):  # not a moment ago, for another partition
            await self.mark(topic, partition, key, headers)

    async def _learn_from_end(self, topic: str, partition: int, offset: int) -> None:
        """Read what time the leader gave the end of a transaction that has just ended.

        Not to know it is no reason not to serve. Those that wait for an answer share it, also that there is none.
        """
        ended_at = time.monotonic()
        async with self._clock.asking[topic]:
            if self._clock.was_asked_within(_TIME_HOLDS_SECONDS):
                return
            try:
                told_ms = await read_marker_time(self._connection, topic, partition, offset)
            except (Transient, Fatal) as error:
                self._clock.note_silence(str(error))
            else:
                self._clock.note(told_ms, ended_at)

    async def near(self) -> None:
        """Return when the next turn is near."""
        left = self._next_at - _LEAD_SECONDS - time.monotonic()
        if left > 0:
            await asyncio.sleep(left)

    async def commit(self, partition: int, outgoing: Outgoing, after: Committed) -> None:
        """Join the next turn, and return when it is committed; raises PartitionLost or Fatal."""
        assert outgoing.member is not None
        done = asyncio.get_running_loop().create_future()
        expires_at = time.monotonic() + self._timeout_seconds
        joined = _Slice(partition, outgoing, after, outgoing.member, done, expires_at, self.times_fenced)
        self._slices.append(joined)
        self._wake()
        await done

    # --- turns --------------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        self._joined.set()
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run(), name=f"turns of {self._topic}")
            self._running.add_done_callback(self._note_defect)

    def _note_defect(self, task: "asyncio.Task[None]") -> None:
        """What nobody has foreseen ends the worker, and leaves nobody waiting."""
        if task.cancelled() or (defect := task.exception()) is None:
            return
        waiting: list[asyncio.Future[Any]] = [each.done for each in self._slices]
        waiting.extend(each.offset for each in self._marks)
        for each in waiting:
            if not each.done():
                each.set_exception(defect)

    async def _run(self) -> None:
        while self._slices or self._marks:
            await self._rest()
            async with self._one_at_a_time:
                if self._marks:
                    await self._mark_all()
                slices = self._next_slices()
                if slices:
                    await self._turn(slices)

    async def _rest(self) -> None:
        """Wait for the pace, and until a slice may be tried."""
        await asyncio.sleep(max(0.0, self._next_at - time.monotonic()))
        while self._slices and not self._marks:
            left = min(map(self._due_at, self._slices)) - time.monotonic()
            if left <= 0:
                return
            self._joined.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._joined.wait()

    def _due_at(self, each: _Slice) -> float:
        until = max((self._sit_outs[place].until for place in self._sit_outs.keys() & each.outgoing.records), default=0)
        return min(until, each.expires_at)

    def _next_slices(self) -> list[_Slice]:
        """Those that are due, all of one generation; one that has sat out is tried alone, by turns with the others."""
        now = time.monotonic()
        waiting = [each for each in self._slices if not each.done.done()]
        sitting = [each for each in waiting if self._sit_outs.keys() & each.outgoing.records]
        late = [each for each in sitting if each.expires_at <= now]
        for each in late:
            _lose([each], self._unacknowledged(self._sit_outs.keys() & each.outgoing.records))
        due = [each for each in sitting if each not in late and self._due_at(each) <= now][:1]
        sound = [each for each in waiting if each not in sitting]
        due = sound if sound and (self._tried_one or not due) else due
        self._tried_one = bool(due) and due != sound
        chosen = [each for each in due if each.member == due[0].member]
        self._slices = [each for each in waiting if each not in chosen and each not in late]
        return chosen

    def _unacknowledged(self, places: Collection[Place]) -> PartitionLost:
        topic, partition = min(places)
        return PartitionLost(f"the leader of {topic}/{partition} does not acknowledge what is written", timed_out=True)

    async def _turn(self, slices: Sequence[_Slice]) -> None:
        attempt = _Attempt()
        written = sum(each.outgoing.count for each in slices)
        self._next_at = time.monotonic() + min(_PAUSE_SECONDS, _PAUSE_A_RECORD_SECONDS * written)
        self._in_turn = [each.partition for each in slices]
        try:
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    await self._transact(slices, attempt)
            except Exception as error:  # noqa: BLE001 - those that wait for this turn must not wait for ever
                without_frames(error)
                await self._give_up(attempt)
                _raise_defect(error, [each.done for each in slices])
                await self._after_failure(slices, attempt, error)
            except asyncio.CancelledError:
                await self._give_up(attempt)
                raise
            else:
                self._backoff.reset()
                self._note_committed(slices)
        finally:
            self._in_turn = ()
            over = [each for each in slices if each not in self._slices]
            _lose(over, PartitionLost("the transaction was given up together with another partition"))

    def _note_committed(self, slices: Sequence[_Slice]) -> None:
        for each in slices:
            self._committed[each.partition] = each.after
            for place in self._sit_outs.keys() & each.outgoing.records:
                del self._sit_outs[place]
            if not each.done.done():
                each.done.set_result(None)

    async def _transact(self, slices: Sequence[_Slice], attempt: _Attempt) -> None:
        batches = await batches_of([each.outgoing for each in slices], is_transactional=True)
        producer, identity = await self._started(slices[0].member)
        if any(each.times_fenced != self.times_fenced for each in slices):  # while they waited
            raise PartitionLost("another producer has taken over a partition of this worker")
        await self._begin(producer, identity, batches, attempt)
        patience = _PATIENCE_SECONDS + sum(each.outgoing.size for each in slices) / _LEAST_BYTES_A_SECOND
        await self._send(producer, identity, batches, attempt, patience)
        await self._commit_offsets(identity, slices, attempt)
        attempt.end_is_out = True
        with attempt.asking():
            await self._transactions.end(identity, commit=True)
        aiokafka_internals.end(producer)

    async def _begin(
        self, producer: AIOKafkaProducer, identity: Identity, places: Collection[Place], attempt: _Attempt
    ) -> None:
        aiokafka_internals.begin(producer, places)
        attempt.has_begun = True
        if places:
            with attempt.asking():
                await self._transactions.add_partitions(identity, places)

    async def _send(
        self,
        producer: AIOKafkaProducer,
        identity: Identity,
        batches: Mapping[Place, Sequence[Batch]],
        attempt: _Attempt,
        patience: float,
    ) -> None:
        """Send all batches, and add the group to the transaction meanwhile; returns when all is acknowledged."""

        async def send(place: Place, of_place: Sequence[Batch]) -> None:
            attempt.unacknowledged.add(place)
            try:
                with attempt.asking():
                    await send_in_order(producer, place, of_place, partial(noted_time, self._clock))
            except PartitionLost:  # the broker does not accept this batch
                attempt.refused = place
                raise
            attempt.unacknowledged.discard(place)

        async def add_offsets() -> None:
            with attempt.asking():
                await self._transactions.add_offsets(identity, self._group)

        sending = [asyncio.create_task(send(*each)) for each in batches.items()]
        asked = [*sending, asyncio.create_task(add_offsets())]
        await _all_done(asked, attempt, patience)

    async def _commit_offsets(self, identity: Identity, slices: Sequence[_Slice], attempt: _Attempt) -> None:
        """Commit for every partition of the turn; raises OutOfGroup if the group has not us as it was then."""
        offsets = {each.partition: each.after for each in slices}
        request = MemberOffsetsRequest(identity, self._group, slices[0].member, self._topic, offsets)
        while True:
            codes = await self._asked(request, attempt)
            if codes.keys() != offsets.keys():
                raise KafkaError("the answer does not name every partition that was committed")
            wrong = {code for code in codes.values() if code}
            if not wrong:
                return
            if wrong & GROUP_REFUSES:
                raise OutOfGroup(f"group {self._group} has another generation")
            final = wrong - NOT_NOW_FOR_OFFSETS
            if final:
                raise error_of(self._topic, final.pop(), identity.transactional_id)
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _asked(self, request: MemberOffsetsRequest, attempt: _Attempt) -> Mapping[int, int]:
        """Ask the group's coordinator, once it is known; the code of each partition."""
        link = await self._link()
        with attempt.asking():
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    codes = codes_of(await link.ask(request))
            except FAILURES:
                link.distrust()
                raise
        if (set(codes.values()) & NOT_NOW_FOR_OFFSETS) - {LOADING}:
            link.distrust()
        return codes

    async def _link(self) -> CoordinatorLink:
        while True:
            try:
                return await self._subscription.link()
            except (GroupCoordinatorNotAvailableError, NodeNotReadyError, KafkaConnectionError):
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _mark_all(self) -> None:
        """Write the marks that wait, in a transaction that is aborted."""
        marks, self._marks = [each for each in self._marks if not each.offset.done()], []
        attempt = _Attempt()
        failure: SafeError = PartitionLost("the transaction was given up together with another partition")
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._write_marks(marks, attempt)
        except Exception as error:  # noqa: BLE001 - as in a turn
            without_frames(error)
            await self._give_up(attempt)
            _raise_defect(error, [each.offset for each in marks])
            failure = self._meaning(error)
            if isinstance(failure, PartitionLost) and failure.fenced:
                self._note_fence()
            for place in attempt.late:
                self._sit_out(place, time.monotonic())
            if attempt.late:  # only those fail that were not acknowledged
                self._marks.extend(each for each in marks if each.written_at is not None)
        except asyncio.CancelledError:
            await self._give_up(attempt)
            raise
        finally:
            for each in marks:
                if each not in self._marks and not each.offset.done():
                    each.offset.set_exception(_copy_of(failure))

    async def _write_marks(self, marks: Sequence[_Mark], attempt: _Attempt) -> None:
        member = self._subscription.assigned_as
        if member is None:
            raise OutOfGroup("the consumer group is rebalancing")
        producer, identity = await self._started(member)
        await self._begin(producer, identity, {(each.topic, each.partition) for each in marks}, attempt)

        async def write(mark: _Mark) -> None:
            place = (mark.topic, mark.partition)
            mark.written_at = None
            attempt.unacknowledged.add(place)
            with attempt.asking():
                written = await write_mark(producer, *place, mark.key, mark.headers)
            noted_time(self._clock, written)
            mark.written_at = int(written.offset)
            attempt.unacknowledged.discard(place)
            self._sit_outs.pop(place, None)

        await _all_done([asyncio.create_task(write(each)) for each in marks], attempt, _PATIENCE_SECONDS)
        attempt.end_is_out = True
        with attempt.asking():
            await self._transactions.end(identity, commit=False)
        aiokafka_internals.end(producer)
        for mark in marks:
            if mark.written_at is not None and not mark.offset.done():
                mark.offset.set_result(mark.written_at)

    # --- when a turn fails --------------------------------------------------------------------------------------------

    async def _give_up(self, attempt: _Attempt) -> None:
        """End the transaction if all that was asked has been answered; never use this producer again."""
        writes_as, producer = self._writes_as, self._producer
        self._writes_as = self._producer = None
        if writes_as is None or producer is None:
            return
        self._open = writes_as[0]
        try:
            if attempt.has_begun and not attempt.unanswered and not attempt.end_is_out:
                with contextlib.suppress(*FAILURES):
                    async with asyncio.timeout(_ABORT_SECONDS):
                        await self._transactions.end(writes_as[1], commit=False)
                        self._open = None
        finally:
            await asyncio.shield(asyncio.create_task(dispose(producer)))

    async def _after_failure(self, slices: Sequence[_Slice], attempt: _Attempt, error: Exception) -> None:
        failure = self._meaning(error)
        is_fenced = isinstance(failure, PartitionLost) and failure.fenced
        if is_fenced:
            self._note_fence()
        if is_fenced or isinstance(error, OutOfGroup):
            _lose(slices, failure)
            return
        if attempt.refused is not None:
            _lose([each for each in slices if attempt.refused in each.outgoing.records], failure)
            slices = [each for each in slices if attempt.refused not in each.outgoing.records]
        elif not isinstance(error, _PASSING):
            _lose(slices, failure)
            return
        if attempt.end_is_out:
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    slices = await self._not_committed(slices)
            except (SafeError, *FAILURES):
                _lose(slices, failure)
                return
        now = time.monotonic()
        self._next_at = now + self._backoff.next()
        for place in attempt.late:
            self._sit_out(place, now)
        _lose([each for each in slices if each.expires_at <= now], failure)
        self._slices.extend(each for each in slices if each.expires_at > now)

    def _sit_out(self, place: Place, now: float) -> None:
        before = self._sit_outs.get(place)
        seconds = _SIT_OUT_SECONDS if before is None else min(2 * before.seconds, _LONGEST_SIT_OUT_SECONDS)
        self._sit_outs[place] = _SitOut(now + seconds, seconds)

    async def _not_committed(self, slices: Sequence[_Slice]) -> Sequence[_Slice]:
        """Find out whether a turn was committed whose end was not answered; those to be sent again.

        Raises PartitionLost if the offsets are neither those of before the turn nor those of after it.
        """
        await self._end_open(slices[0].member)
        offsets = await asyncio.gather(*(self._subscription.committed(each.partition) for each in slices))
        if all(offset == each.after for offset, each in zip(offsets, slices, strict=True)):
            self._note_committed(slices)
            return ()
        if any(offset is None or offset != self._committed.get(each.partition)
               for offset, each in zip(offsets, slices, strict=True)):  # fmt: skip
            raise PartitionLost("it is not known whether a transaction was committed")
        return slices

    def _meaning(self, error: Exception) -> SafeError:
        if isinstance(error, TimeoutError):
            return PartitionLost(f"no answer within {self._timeout_seconds:g} s", timed_out=True)
        if isinstance(error, Transient):
            return PartitionLost(str(error))
        return meaning_of(error, f"the outputs of {self._topic}", self._clock)

    # --- the producer -------------------------------------------------------------------------------------------------

    async def _started(self, member: Member) -> tuple[AIOKafkaProducer, Identity]:
        """The producer, with the id of a partition that we own; raises PartitionLost, Transient or a KafkaError."""
        if self._writes_as is not None and self._writes_as[0] not in self._gained:
            await self._retire()
        if self._producer is not None and self._writes_as is not None:
            return self._producer, self._writes_as[1]
        await self._end_open(member)
        partition = min((each for each in self._gained if self._subscription.owns(each)), default=None)
        if partition is None:
            raise OutOfGroup("the consumer group is rebalancing")
        if partition not in self._ended:
            await self._confirm(partition, member)
            await self._start_id(partition, member)
        identity = self._ended.pop(partition).identity  # used: its sequence numbers begin only once
        producer = new_producer(
            self._connection,
            transactional_id=identity.transactional_id,
            transaction_timeout_ms=int(self._timeout_seconds * 1_000),
        )
        self._producer, self._writes_as = producer, (partition, identity)
        aiokafka_internals.set_identity(producer, identity.producer_id, identity.epoch)
        await producer.start()
        return producer, identity

    async def _end_open(self, member: Member) -> None:
        """End what one of our own failed turns may have left open; if its id is not ours any more, its owner does."""
        async with self._ending:
            partition = self._open
            if partition is None:
                return
            if self._subscription.assigned_as != member:  # nobody knows yet whose it will be
                raise OutOfGroup("the consumer group is rebalancing")
            if self._subscription.owns(partition):
                await self._confirm(partition, member)
                await self._start_id(partition, member)
            self._open = None

    async def _confirm(self, partition: int, member: Member) -> None:
        """Return if the group has us as this member: to start another's id would end what its rightful owner writes."""
        await self._subscription.confirm(partition)
        if self._subscription.assigned_as != member:
            raise OutOfGroup("the consumer group is rebalancing")

    async def _start_id(self, partition: int, member: Member) -> None:
        identity = await self._transactions.start(self._id_of(partition), int(self._timeout_seconds * 1_000))
        known, now = self._epochs.get(partition), ProducerEpoch(identity.producer_id, identity.epoch)
        # In an earlier generation, another owner has started it rightfully.
        if known is not None and known[0] == member and now.tells_of_another_since(known[1]):
            self._note_fence()
        self._ended[partition] = _Ended(identity, member)
        self._epochs[partition] = (member, now)

    def _note_fence(self) -> None:
        self.times_fenced += 1
        self._ended.clear()

    async def _retire(self) -> None:
        """Close a producer that has nothing open."""
        producer, self._producer, self._writes_as = self._producer, None, None
        if producer is not None:
            await asyncio.shield(asyncio.create_task(dispose(producer)))


class TurnWriter:
    """A PartitionWriter whose commits are parts of turns."""

    def __init__(self, turns: Turns, subscription: Subscription, partition: int) -> None:
        self._turns = turns
        self._subscription = subscription
        self._partition = partition
        self._times_fenced = 0

    @property
    def epoch(self) -> ProducerEpoch | None:
        return self._turns.epoch_of(self._partition)

    async def start(self) -> None:
        self._times_fenced = self._turns.times_fenced
        await self._turns.gain(self._partition)

    async def mark(self, topic: str, partition: int, key: bytes, headers: KafkaHeaders) -> int:
        return await self._turns.mark(topic, partition, key, headers)

    async def learn_time(self, topic: str, partition: int, key: bytes, headers: KafkaHeaders) -> None:
        await self._turns.learn_time(topic, partition, key, headers)

    async def near(self) -> None:
        await self._turns.near()

    def outgoing(self, now_ms: int, share: float = 1.0) -> Outgoing:
        member = self._subscription.assigned_as
        if member is None or not self._turns.has(self._partition):
            raise PartitionLost("the producer is gone")
        made = Outgoing(now_ms, share)
        made.member = member
        return made

    async def commit(self, outgoing: Outgoing, next_offset: int, note: str) -> None:
        if self._turns.times_fenced != self._times_fenced:  # another may have committed for this partition, too
            raise PartitionLost("another producer has taken over", fenced=True)
        await self._turns.commit(self._partition, outgoing, Committed(next_offset, note))

    async def dispose(self) -> None:
        await self._turns.leave(self._partition)


async def _all_done(tasks: Sequence["asyncio.Task[None]"], attempt: _Attempt, patience: float) -> None:
    """Wait for all; raises what one of them raises, or TimeoutError once none has ended for too long."""
    pending = set(tasks)
    try:
        while pending:
            done, pending = await asyncio.wait(pending, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                attempt.late = frozenset(attempt.unacknowledged)
                raise TimeoutError
            for task in done:
                task.result()
    finally:
        for task in tasks:
            aiokafka_internals.forget(task)


def _raise_defect(error: Exception, waiting: Sequence["asyncio.Future[Any]"]) -> None:
    """Raise what is neither Kafka's failure nor ours to treat, here and where somebody waits: the worker ends."""
    if isinstance(error, (SafeError, AssertionError, ExceptionGroup, *FAILURES)):
        return
    for each in waiting:
        if not each.done():
            each.set_exception(error)
    raise error


def _lose(slices: Sequence[_Slice], failure: SafeError) -> None:
    for each in slices:
        if not each.done.done():
            each.done.set_exception(_copy_of(failure))


def _copy_of(failure: SafeError) -> SafeError:
    """One error for each that waits: a traceback belongs to one task."""
    if isinstance(failure, PartitionLost):
        return PartitionLost(str(failure), fenced=failure.fenced, timed_out=failure.timed_out)
    return type(failure)(str(failure))
