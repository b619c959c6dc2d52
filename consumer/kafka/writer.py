"""How a partition's outputs are written to Kafka: what a slice holds, and the writer of `at_least_once`.

A writer belongs to one input partition of one stage. Once it has raised, it cannot be used again: its owner drops it,
starts another one, and restores. In `exactly_once` the writers of all partitions of a role share their transactions:
see turns.py.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeVar

from aiokafka import AIOKafkaProducer
from aiokafka.codec import zstd_encode
from aiokafka.errors import (
    InvalidProducerEpoch,
    InvalidTimestampError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFenced,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
)
from aiokafka.structs import RecordMetadata

from consumer.errors import Fatal, PartitionLost, SafeError
from consumer.kafka.aiokafka_internals import Batch, dispose, is_transactional, new_batch
from consumer.kafka.broker_errors import TOO_LARGE
from consumer.kafka.brokers_clock import NO_TIMESTAMP, BrokersClock
from consumer.kafka.connection import Connection
from consumer.kafka.failures import answered, translated
from consumer.kafka.protocol import NOBODY, Identity, Member
from consumer.loop_budget import LoopBudget
from consumer.wire.record import KafkaHeaders

T = TypeVar("T")
Acknowledged = Callable[[RecordMetadata], object]

MAX_BATCH_BYTES = 512 * 1024
"""A produce request has one batch of each partition: larger batches need fewer round trips."""

_COMPRESSIBLE_BYTES = 64 * 1024 * 1024
"""Compressing more than this would block the event loop, and copy what may be a decompression bomb."""

_FULL_BYTES = 16 * 1024 * 1024
"""A slice that writes more is ended early: a small input may have a very large output."""

_LOG_APPEND_TIME = 1

FENCED = (ProducerFenced, InvalidProducerEpoch)
TIMED_OUT = (KafkaTimeoutError, RequestTimedOutError)


class _Packed(NamedTuple):
    """A large record, which gets a compressed batch of its own."""

    timestamp: int
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes | None]]


_Plain = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
Place = tuple[str, int]
"""A topic and a partition; a plain pair for speed."""


class Outgoing:
    """What one slice writes, by topic and partition, in order; `share` of what a slice may hold.

    It is kept until it is committed: a transaction that failed is tried again with the same records.
    """

    def __init__(self, now_ms: int, share: float = 1.0, member: Member = NOBODY) -> None:
        self.records: dict[Place, list[_Plain | _Packed]] = {}
        self.member = member
        """As which member, in which generation, the records behind it were taken."""
        self._now_ms = now_ms
        self._left = int(_FULL_BYTES * share)
        self.share = share

    def append(self, topic: str, partition: int, key: bytes | None, value: bytes | None, headers: KafkaHeaders) -> None:
        """Add one record; its timestamp is the time of writing, never the time of the event."""
        where = (topic, partition)
        records = self.records.get(where)  # this runs four times for each input
        if records is None:
            records = self.records[where] = []
        # The client takes nothing else than a list.
        records.append((self._now_ms, key, value, headers if type(headers) is list else list(headers)))
        if value is not None:
            self._left -= len(value)

    def append_compressed(
        self, topic: str, partition: int, key: bytes | None, value: bytes, headers: KafkaHeaders, max_bytes: int
    ) -> bool:
        """Add one large record in a compressed batch of its own; False if this is still over the topic's limit."""
        if len(value) > _COMPRESSIBLE_BYTES or len(zstd_encode(value)) > max_bytes:
            return False
        self.records.setdefault((topic, partition), []).append(_Packed(self._now_ms, key, value, list(headers)))
        self._left -= len(value)
        return True

    @property
    def is_full(self) -> bool:
        """Whether it is time to commit: the next record belongs in another transaction."""
        return self._left <= 0

    @property
    def count(self) -> int:
        """How many records it writes."""
        return sum(map(len, self.records.values()))

    @property
    def size(self) -> int:
        """About how many bytes the values have."""
        return int(_FULL_BYTES * self.share) - self._left

    async def send(
        self, producer: AIOKafkaProducer, acknowledged: Acknowledged = lambda _: None, last: str | None = None
    ) -> None:
        """Send every record and wait for each acknowledgement: a commit would not notice one that failed.

        Records for the topic `last` are sent when all others are acknowledged.
        """
        batches = await batches_of([self], is_transactional=is_transactional(producer))
        for is_last in (False, True):
            async with asyncio.TaskGroup() as sending:
                for place, each in batches.items():
                    if (place[0] == last) is is_last:
                        sending.create_task(send_in_order(producer, place, each, acknowledged))


async def batches_of(outgoings: Iterable[Outgoing], *, is_transactional: bool) -> Mapping[Place, list[Batch]]:
    """Join the records of several slices into batches, by topic and partition; large ones are few round trips."""
    batches: dict[Place, list[Batch]] = {}
    budget = LoopBudget()
    for outgoing in outgoings:
        for place, records in outgoing.records.items():
            into = batches.setdefault(place, [])
            for record in records:
                # Nearly always a plain record goes into the last batch: this runs four times for each input.
                if type(record) is not tuple or not into or not into[-1].add(*record):
                    _begin_batch(into, record, is_transactional=is_transactional)
            if budget.is_spent:
                await budget.renew()
    return batches


def _begin_batch(batches: list[Batch], record: _Plain | _Packed, *, is_transactional: bool) -> None:
    """Begin another batch with a record; one with a large record takes no other."""
    is_packed = isinstance(record, _Packed)
    batches.append(new_batch(MAX_BATCH_BYTES, "zstd" if is_packed else "none", is_transactional=is_transactional))
    batches[-1].add(*record)
    if is_packed:
        batches[-1].close()


async def send_in_order(
    producer: AIOKafkaProducer, place: Place, batches: Sequence[Batch], acknowledged: Acknowledged
) -> None:
    """Send the batches of one partition and wait for each acknowledgement; names the topic that we may not write."""
    topic, partition = place
    for batch in batches:
        sent = await producer.send_batch(batch, topic, partition=partition)
        with _named(f"topic {topic}/{partition}, a batch of {batch.size():,} bytes"):
            acknowledged(await sent)


@contextmanager
def _named(about: str) -> Iterator[None]:
    """Name what the broker's error does not: the topic that we may not write, and the batch that it does not accept."""
    try:
        yield
    except (TopicAuthorizationFailedError, *TOO_LARGE) as error:
        meaning = translated(error, about)
        raise (meaning if isinstance(meaning, Fatal) else PartitionLost(str(meaning))) from error


class PartitionWriter(Protocol):
    """Writes for one input partition, from start() until its first failure."""

    @property
    def identity(self) -> Identity | None:
        """How the coordinator knows the producer with the partition's transactional id; None without transactions."""

    async def start(self) -> None:
        """Take over the right to write, ending what a former owner left open; raises Transient or Fatal."""

    async def mark(self, topic: str, partition: int, key: bytes, headers: KafkaHeaders) -> int:
        """Write a tombstone without meaning, once, before any commit; return its offset when it is replicated.

        Everything that an earlier owner wrote has a smaller offset, and a stale leader never has this record: a reader
        that has reached it has read all of that. Afterwards the brokers' time is known, if they tell it at once. Raises
        PartitionLost (then the writer cannot be used again), Transient or Fatal.
        """

    async def learn_time(self, topic: str, partition: int, key: bytes, headers: KafkaHeaders) -> None:
        """Have a broker tell its time before the first commit, unless one has just done so; raises what `mark` raises.

        It takes a mark that is never committed. Without transactions, the first acknowledgement has to tell it.
        """

    async def near(self) -> None:
        """Wait until the next transaction is near: what arrives until then can be part of it."""

    def outgoing(self, now_ms: int, share: float = 1.0) -> Outgoing:
        """An empty slice to fill, up to this share of what a slice may hold."""

    async def commit(self, outgoing: Outgoing, next_offset: int, note: str) -> None:
        """Make the slice, its offset and the offset's note visible together.

        Raises PartitionLost; then the writer cannot be used again.
        """

    async def dispose(self) -> None:
        """Drop everything that is unsent and close; waits only briefly for the broker. May be called again."""


def noted_time(clock: BrokersClock, acknowledged: RecordMetadata) -> bool:
    """Where the topic has LogAppendTime, an acknowledgement tells the broker's time; returns whether it has."""
    tells = acknowledged.timestamp_type == _LOG_APPEND_TIME and acknowledged.timestamp is not None
    if tells:
        clock.note(acknowledged.timestamp)
    return tells


def meaning_of(error: BaseException, about: str, clock: BrokersClock) -> Fatal | PartitionLost:
    """What a failed commit means; of several failures at once, the one that waiting does not help."""
    if isinstance(error, BaseExceptionGroup):
        failures = [meaning_of(part, about, clock) for part in error.exceptions]
        return next((failure for failure in failures if isinstance(failure, Fatal)), failures[0])
    if isinstance(error, Fatal | PartitionLost):
        return error
    names_topic = isinstance(error, TopicAuthorizationFailedError) and error.args
    meaning = translated(error, f"topic {error.args[0]}" if names_topic else about)
    if isinstance(meaning, Fatal):
        return meaning
    if any(isinstance(cause, FENCED) for cause in causes(error)):
        return PartitionLost("another producer has taken over", fenced=True)
    if any(isinstance(cause, InvalidTimestampError) for cause in causes(error)):
        clock.note_refusal()
        return PartitionLost("the brokers refuse the time of the records")
    timed_out = any(isinstance(cause, TIMED_OUT) for cause in causes(error))
    return PartitionLost(str(meaning), timed_out=timed_out)


def without_frames(error: BaseException | None) -> None:
    """Remove the frames from an error and from all that led to it.

    A frame of a TaskGroup refers to what it raises: in that cycle, all that was to be written might stay for ever.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = None
        for part in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
            without_frames(part)
        error = error.__cause__ or error.__context__


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error itself and what caused it."""
    while error is not None:
        yield error
        error = error.__cause__


class PlainWriter:
    """`at_least_once`: first the outputs, then the offset; a crash in between repeats outputs, and loses none.

    The changelog is written between the two: its progress row, like the offset, says that all before it is published.
    """

    identity: Identity | None = None

    def __init__(
        self,
        connection: Connection,
        topic: str,
        clock: BrokersClock,
        *,
        deadline_seconds: float,
        changelog: str,
        timed_topics: Collection[str],
        commit_offset: Callable[[int, str], Awaitable[None]],
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._clock = clock
        self._deadline_seconds = deadline_seconds
        self._changelog = changelog
        self._timed_topics = timed_topics
        self._commit_offset = commit_offset
        self._producer: AIOKafkaProducer | None = None
        self._disposal: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._producer = producer = new_producer(self._connection)
        try:
            await answered(producer.start(), f"the producer for {self._topic}", self._deadline_seconds)
        except (SafeError, asyncio.CancelledError):
            await self.dispose()
            raise

    async def mark(self, topic: str, partition: int, key: bytes, headers: KafkaHeaders) -> int:
        mark, written = Outgoing(NO_TIMESTAMP), list[RecordMetadata]()
        mark.append(topic, partition, key, None, headers)
        await self._guarded(mark.send(self._running(), written.append))
        self._note_time(written[0])
        return int(written[0].offset)

    async def learn_time(self, topic: str, partition: int, key: bytes, headers: KafkaHeaders) -> None:
        """A mark would be seen by readers of this topic: the first acknowledgement of one that has LogAppendTime,
        among `timed_topics`, has to tell the time.
        """

    async def near(self) -> None:
        """Each partition commits by itself."""

    def outgoing(self, now_ms: int, share: float = 1.0) -> Outgoing:
        self._running()
        return Outgoing(now_ms, share)

    async def commit(self, outgoing: Outgoing, next_offset: int, note: str) -> None:
        await self._guarded(self._send_then_commit(outgoing, next_offset, note))

    async def dispose(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            self._disposal = asyncio.create_task(dispose(producer))
        if self._disposal is not None:
            # Shielded: if the caller is cancelled while it waits, the producer must still be closed completely.
            await asyncio.shield(self._disposal)

    async def _send_then_commit(self, outgoing: Outgoing, next_offset: int, note: str) -> None:
        await outgoing.send(self._running(), self._note_time, last=self._changelog)
        await self._commit_offset(next_offset, note)

    def _running(self) -> AIOKafkaProducer:
        if self._producer is None:
            raise PartitionLost("the producer is gone")
        return self._producer

    def _note_time(self, acknowledged: RecordMetadata) -> None:
        if not noted_time(self._clock, acknowledged) and acknowledged.topic in self._timed_topics:
            self._clock.note_never_told()

    async def _guarded(self, steps: Awaitable[T]) -> T:
        """Run the steps of a commit under the deadline; if anything goes wrong, this writer has lost the partition."""
        try:
            async with asyncio.timeout(self._deadline_seconds):
                return await steps
        except TimeoutError as error:
            without_frames(error)
            raise PartitionLost(f"no answer within {self._deadline_seconds:g} s", timed_out=True) from error
        except (ExceptionGroup, KafkaError, OSError, AssertionError) as error:
            without_frames(error)
            # aiokafka reports misuse of a fenced producer as an AssertionError.
            raise meaning_of(error, f"the outputs of {self._topic}", self._clock) from error


def new_producer(connection: Connection, **options: Any) -> AIOKafkaProducer:
    """A producer, not yet started, that sends at once and waits for all replicas."""
    return AIOKafkaProducer(**connection.client(acks="all", max_batch_size=MAX_BATCH_BYTES, linger_ms=0, **options))
