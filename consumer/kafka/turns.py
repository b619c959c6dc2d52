"""`exactly_once`: what a role of this worker writes, turn by turn. Each turn is one transaction of one producer.

A turn takes the slices that wait, from any of our partitions. It sends all that they hold, waits for every
acknowledgement, commits all their offsets in one request, and ends the transaction. So what brokers have to do does not
grow with the number of partitions. A mark is written likewise, in a turn that is aborted: it has no offset to commit.

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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from aiokafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
)

from consumer.backoff import Backoff
from consumer.errors import Fatal, PartitionLost, SafeError, Transient
from consumer.kafka.brokers_clock import NO_TIMESTAMP, BrokersClock
from consumer.kafka.connection import Connection
from consumer.kafka.failures import FAILURES, answered
from consumer.kafka.group_offsets import Committed, OutOfGroup
from consumer.kafka.open_transaction import OpenTransaction
from consumer.kafka.own_producer import OwnProducer
from consumer.kafka.protocol import NOBODY, Identity, Member
from consumer.kafka.reader import read_marker_time
from consumer.kafka.subscription import Subscription
from consumer.kafka.transactions import Unanswered
from consumer.kafka.writer import Outgoing, Place, batches_of, meaning_of, without_frames
from consumer.wire.record import KafkaHeaders

_PAUSE_SECONDS = 0.05
_PAUSE_A_RECORD_SECONDS = 0.005
"""From one begin to the next, by what a turn wrote: at once while little comes, twenty a second while much does."""

_LEAD_SECONDS = 0.02
"""This long before a turn begins, partitions take the records for it: what arrives until then is part of it."""

_PATIENCE_SECONDS = 1.5
_LEAST_BYTES_A_SECOND = 256 * 1024
"""A broker that does not acknowledge for longer than it takes at this rate holds up only those that write to it."""

_SIT_OUT_SECONDS, _LONGEST_SIT_OUT_SECONDS = 1.0, 8.0
_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 0.05, 1.0
_TIME_HOLDS_SECONDS = 5.0
"""A partition that is taken up this soon after a broker was asked for its time does not ask again."""

_PASSING = (
    Unanswered, OSError, KafkaConnectionError, NodeNotReadyError, RequestTimedOutError, KafkaTimeoutError, Transient
)  # fmt: skip
"""Failures that say nothing against the parts, nor against us."""


@dataclass(slots=True, eq=False)
class _Part:
    """What one partition has a turn write: a slice, with what is committed for it, or a mark, which never is."""

    partition: int
    outgoing: Outgoing
    after: Committed | None
    expires_at: float
    times_fenced: int
    done: "asyncio.Future[Mapping[Place, int]]"
    """By place, the offset of the first record that its turn wrote."""

    @property
    def is_mark(self) -> bool:
        return self.after is None


class _SitOut(NamedTuple):
    """Until when (monotonic) a place is not written to, and how long the next such pauses are."""

    until: float
    pauses: Backoff


class _SitOuts:
    """The places whose leaders did not acknowledge in time; each is left alone for a while, longer each time."""

    def __init__(self) -> None:
        self._places: dict[Place, _SitOut] = {}

    def places_of(self, part: _Part) -> Collection[Place]:
        """Where the part writes that is on this list."""
        return self._places.keys() & part.outgoing.records

    def due_at(self, part: _Part) -> float:
        """When the part may be written, or is given up."""
        until = max((self._places[place].until for place in self.places_of(part)), default=0.0)
        return min(until, part.expires_at)

    def note_late(self, place: Place, now: float) -> None:
        known = self._places.get(place)
        pauses = known.pauses if known else Backoff(_SIT_OUT_SECONDS, _LONGEST_SIT_OUT_SECONDS)
        self._places[place] = _SitOut(now + pauses.next(), pauses)

    def note_acknowledged(self, part: _Part) -> None:
        self.forget(self.places_of(part))

    def forget(self, acknowledged: Collection[Place]) -> None:
        for place in acknowledged:
            self._places.pop(place, None)

    def loss_of(self, part: _Part) -> PartitionLost:
        topic, partition = min(self.places_of(part))
        return PartitionLost(f"the leader of {topic}/{partition} does not acknowledge what is written", timed_out=True)


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
        self._clock = clock
        self._topic = topic
        self._group = group
        self._timeout_seconds = timeout_seconds
        self.own = OwnProducer(connection, subscription, id_of=id_of, timeout_seconds=timeout_seconds)
        self._waiting: list[_Part] = []
        self._joined = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._in_turn: Collection[int] = ()
        self._sit_outs = _SitOuts()
        self._next_at = 0.0
        self._tried_one = False
        self._retries = Backoff(_RETRY_SECONDS, _LONGEST_RETRY_SECONDS)
        self._committed: dict[int, Committed] = {}

    # --- for the writers of partitions --------------------------------------------------------------------------------

    def writer(self, partition: int) -> "TurnWriter":
        """The writer for one partition."""
        return TurnWriter(self, partition)

    async def gain(self, partition: int) -> None:
        """End what a former owner may have left open with the partition's id; raises Transient or Fatal."""
        await answered(self.own.gain(partition), f"the producer for {self._topic}", self._timeout_seconds)

    async def leave(self, partition: int) -> None:
        """Write no more for the partition; a turn that it is part of is given up. May be called again."""
        self.own.gained.discard(partition)
        running = self._running
        if running is not None and partition in self._in_turn:
            running.cancel()
            await asyncio.wait([running])
        if not self.own.gained:
            async with self.own.in_use:
                await self.own.retire()
        elif self._waiting:
            self._wake()

    def outgoing(self, partition: int, now_ms: int, share: float = 1.0) -> Outgoing:
        """An empty slice of the partition, as the member that has it; raises PartitionLost if nobody may have it."""
        member = self._subscription.assigned_as
        if member is None or partition not in self.own.gained:
            raise PartitionLost("the producer is gone")
        return Outgoing(now_ms, share, member)

    async def write(self, partition: int, outgoing: Outgoing, after: Committed | None) -> Mapping[Place, int]:
        """Join the next turn, and return when it is committed; or aborted, where there is nothing to commit.

        Returns the offset of the first record that the turn wrote, by topic and partition. Raises PartitionLost or
        Fatal.
        """
        assert outgoing.member != NOBODY, "the group would not check the generation"
        expires_at = time.monotonic() + self._timeout_seconds
        done: asyncio.Future[Mapping[Place, int]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Part(partition, outgoing, after, expires_at, self.own.times_fenced, done))
        self._wake()
        return await done

    def knows_the_time(self) -> bool:
        """Whether a broker was asked for its time a moment ago, for whichever partition."""
        return self._clock.was_asked_within(_TIME_HOLDS_SECONDS)

    async def learn_time(self, topic: str, partition: int, offset: int) -> None:
        """Read what time the leader gave the end of a transaction that has just ended, and that wrote this record.

        Not to know it is no reason not to serve. Those that wait for an answer share it, also that there is none.
        """
        ended_at = time.monotonic()
        async with self._clock.asking[topic]:
            if self.knows_the_time():
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

    # --- turns --------------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        self._joined.set()
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run(), name=f"turns of {self._topic}")
            self._running.add_done_callback(self._note_defect)

    def _note_defect(self, task: "asyncio.Task[None]") -> None:
        """What nobody has foreseen ends the worker, and leaves nobody waiting."""
        if task.cancelled():
            if self._waiting and not task.get_loop().is_closed():
                self._wake()
        elif (defect := task.exception()) is not None:
            _fail(self._waiting, defect)

    async def _run(self) -> None:
        while self._waiting:
            await self._rest()
            async with self.own.in_use:
                parts = self._next_parts()
                if parts:
                    await self._turn(parts)

    async def _rest(self) -> None:
        """Wait for the pace, and until a part may be tried."""
        await asyncio.sleep(max(0.0, self._next_at - time.monotonic()))
        while self._waiting:
            left = min(map(self._sit_outs.due_at, self._waiting)) - time.monotonic()
            if left <= 0:
                return
            self._joined.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._joined.wait()

    def _next_parts(self) -> list[_Part]:
        """Those that are due, of one kind and generation.

        A slice that has sat out is tried alone, marks that have are tried together, both by turns with all others.
        """
        now = time.monotonic()
        waiting = [each for each in self._waiting if not each.done.done()]
        sitting = [each for each in waiting if self._sit_outs.places_of(each)]
        late = [each for each in sitting if each.expires_at <= now]
        for each in late:
            _fail([each], self._sit_outs.loss_of(each))
        due = [each for each in sitting if each not in late and self._sit_outs.due_at(each) <= now][:1]
        if due and due[0].is_mark:  # to try more of them with it takes no longer
            due = [each for each in sitting if each.is_mark and each not in late]
        sound = [each for each in waiting if each not in sitting]
        due = sound if sound and (self._tried_one or not due) else due
        self._tried_one = bool(due) and due != sound
        chosen = [each for each in due if _kind(each) == _kind(due[0])]
        self._waiting = [each for each in waiting if each not in chosen and each not in late]
        return chosen

    async def _turn(self, parts: Sequence[_Part]) -> None:
        transaction = OpenTransaction(self._subscription, self._clock)
        written = sum(each.outgoing.count for each in parts)
        self._next_at = time.monotonic() + min(_PAUSE_SECONDS, _PAUSE_A_RECORD_SECONDS * written)
        self._in_turn = [each.partition for each in parts if not each.is_mark]
        try:
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    await self._transact(parts, transaction)
            except Exception as error:  # noqa: BLE001 - those that wait for this turn must not wait for ever
                without_frames(error)
                await self.own.give_up(abort=transaction.can_be_aborted)
                await self._after_failure(parts, transaction, error)
            except asyncio.CancelledError:
                await self.own.give_up(abort=transaction.can_be_aborted)
                raise
            else:
                self._retries.reset()
                self._note_done(parts, transaction)
        except Exception as defect:  # in judging a failure: not to be taken for a lost partition
            _fail(parts, defect)
            raise
        finally:
            self._in_turn = ()
            over = [each for each in parts if each not in self._waiting]
            _fail(over, PartitionLost("the transaction was given up together with another partition"))

    async def _transact(self, parts: Sequence[_Part], transaction: OpenTransaction) -> None:
        batches = await batches_of([each.outgoing for each in parts], is_transactional=True)
        member = parts[0].outgoing.member
        producer = await self.own.started(member)
        if any(each.times_fenced != self.own.times_fenced for each in parts):  # while they waited
            raise PartitionLost("another producer has taken over a partition of this worker")
        offsets = {each.partition: each.after for each in parts if each.after is not None}
        patience = _PATIENCE_SECONDS + sum(each.outgoing.size for each in parts) / _LEAST_BYTES_A_SECOND
        await transaction.begin(producer, batches)
        await transaction.send(batches, patience, self._group if offsets else None)
        if offsets:
            await transaction.commit_offsets(self._group, member, self._topic, offsets)
        await transaction.end(commit=bool(offsets))

    def _note_done(self, parts: Sequence[_Part], transaction: OpenTransaction) -> None:
        for each in parts:
            if each.after is not None:
                self._committed[each.partition] = each.after
            self._sit_outs.note_acknowledged(each)
            if not each.done.done():
                each.done.set_result(transaction.begins)

    # --- when a turn fails --------------------------------------------------------------------------------------------

    async def _after_failure(self, parts: Sequence[_Part], transaction: OpenTransaction, error: Exception) -> None:
        if not isinstance(error, (SafeError, AssertionError, ExceptionGroup, *FAILURES)):
            _fail(parts, error)  # a defect, neither Kafka's failure nor ours to treat: the worker ends
            raise error
        failure = self._meaning(error)
        is_fenced = isinstance(failure, PartitionLost) and failure.fenced
        if is_fenced:
            self.own.note_fence()
        refused = [each for each in parts if transaction.refused in each.outgoing.records]
        if is_fenced or isinstance(error, OutOfGroup) or not (refused or isinstance(error, _PASSING)):
            _fail(parts, failure)
            return
        _fail(refused, failure)
        parts = [each for each in parts if each not in refused]
        if transaction.end_is_out and not parts[0].is_mark:
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    parts = await self._not_committed(parts, transaction)
            except (SafeError, *FAILURES):
                _fail(parts, failure)
                return
        self._try_again(parts, transaction, failure)

    def _try_again(self, parts: Sequence[_Part], transaction: OpenTransaction, failure: SafeError) -> None:
        now = time.monotonic()
        self._sit_outs.forget(transaction.begins.keys() - transaction.late)
        self._next_at = now + self._retries.next()
        for place in transaction.late:
            self._sit_outs.note_late(place, now)
        for each in parts:
            if each.expires_at <= now:
                _fail([each], self._sit_outs.loss_of(each) if self._sit_outs.places_of(each) else failure)
        self._waiting.extend(each for each in parts if each.expires_at > now)

    async def _not_committed(self, parts: Sequence[_Part], transaction: OpenTransaction) -> Sequence[_Part]:
        """Find out whether a turn was committed whose end was not answered; those to be sent again.

        Raises PartitionLost if the offsets are neither those of before the turn nor those of after it.
        """
        await self.own.end_open(parts[0].outgoing.member)
        offsets = await asyncio.gather(*(self._subscription.committed(each.partition) for each in parts))
        if all(offset == each.after for offset, each in zip(offsets, parts, strict=True)):
            self._note_done(parts, transaction)
            return ()
        if any(offset is None or offset != self._committed.get(each.partition)
               for offset, each in zip(offsets, parts, strict=True)):  # fmt: skip
            raise PartitionLost("it is not known whether a transaction was committed")
        return parts

    def _meaning(self, error: Exception) -> SafeError:
        if isinstance(error, TimeoutError):
            return PartitionLost(f"no answer within {self._timeout_seconds:g} s", timed_out=True)
        if isinstance(error, Transient):
            return PartitionLost(str(error))
        return meaning_of(error, f"the outputs of {self._topic}", self._clock)


class TurnWriter:
    """A PartitionWriter whose commits and marks are parts of turns."""

    def __init__(self, turns: Turns, partition: int) -> None:
        self._turns = turns
        self._partition = partition
        self._times_fenced = 0

    @property
    def identity(self) -> Identity | None:
        return self._turns.own.identity_of(self._partition)

    async def start(self) -> None:
        self._times_fenced = self._turns.own.times_fenced
        await self._turns.gain(self._partition)

    async def mark(self, topic: str, partition: int, key: bytes, headers: KafkaHeaders) -> int:
        mark = self.outgoing(NO_TIMESTAMP)
        mark.append(topic, partition, key, None, headers)
        offset = (await self._turns.write(self._partition, mark, None))[topic, partition]
        await self._turns.learn_time(topic, partition, offset)
        return offset

    async def learn_time(self, topic: str, partition: int, key: bytes, headers: KafkaHeaders) -> None:
        if not self._turns.knows_the_time():
            await self.mark(topic, partition, key, headers)

    async def near(self) -> None:
        await self._turns.near()

    def outgoing(self, now_ms: int, share: float = 1.0) -> Outgoing:
        return self._turns.outgoing(self._partition, now_ms, share)

    async def commit(self, outgoing: Outgoing, next_offset: int, note: str) -> None:
        if self._turns.own.times_fenced != self._times_fenced:  # another may have committed for this partition, too
            raise PartitionLost("another producer has taken over", fenced=True)
        await self._turns.write(self._partition, outgoing, Committed(next_offset, note))

    async def dispose(self) -> None:
        await self._turns.leave(self._partition)


def _kind(part: _Part) -> tuple[Member, bool]:
    """What the parts of one turn have in common."""
    return part.outgoing.member, part.is_mark


def _fail(parts: Iterable[_Part], failure: BaseException) -> None:
    for each in parts:
        if not each.done.done():
            each.done.set_exception(_copy_of(failure))


def _copy_of(failure: BaseException) -> BaseException:
    """One error for each that waits: a traceback belongs to one task."""
    if isinstance(failure, PartitionLost):
        return PartitionLost(str(failure), fenced=failure.fenced, timed_out=failure.timed_out)
    return type(failure)(str(failure)) if isinstance(failure, SafeError) else failure
