"""How a partition's outputs are written to Kafka: all of a slice and its offset, or nothing.

A writer belongs to one input partition of one stage. After any failure it cannot be used again: sequence numbers are
used up, or a late request could end the next transaction. Its owner drops it, starts another one, and restores.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeVar

from aiokafka import AIOKafkaProducer, OffsetAndMetadata, TopicPartition
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
from typing_extensions import override

from consumer.errors import Fatal, PartitionLost, SafeError, Transient
from consumer.kafka.aiokafka_internals import Batch, dispose, identity_of, new_batch, note_lost_connections
from consumer.kafka.broker_errors import TOO_LARGE
from consumer.kafka.brokers_clock import NO_TIMESTAMP, BrokersClock
from consumer.kafka.connection import Connection
from consumer.kafka.failures import answered, translated
from consumer.kafka.reader import read_marker_time
from consumer.wire.record import KafkaHeaders

T = TypeVar("T")

MAX_BATCH_BYTES = 512 * 1024
"""A produce request has one batch of each partition: larger batches need fewer round trips."""

_COMPRESSIBLE_BYTES = 64 * 1024 * 1024
"""Compressing more than this would block the event loop, and copy what may be a decompression bomb."""

_FULL_BYTES = 16 * 1024 * 1024
"""A slice that writes more is ended early: a small input may have a very large output."""

DOUBTFUL_COMMIT_SECONDS = 5.0
"""A commit that took longer may have been sent twice, and the second one could end the next transaction (KIP-890)."""

_LOG_APPEND_TIME = 1
_TIME_HOLDS_SECONDS = 5.0
"""A partition that is taken up this soon after a broker was asked for its time does not ask again."""

FENCED = (ProducerFenced, InvalidProducerEpoch)
TIMED_OUT = (KafkaTimeoutError, RequestTimedOutError)


_OWN_STEPS = 2
"""How much the epoch grows if no other producer came in between: once for ending what was open, once for the start."""


class ProducerEpoch(NamedTuple):
    """How the transaction coordinator identifies a producer; each start, and each end that it forces, raises the epoch.

    A refused write does not prove that another producer has taken over: a broker that is cut off may still lead the
    partition in its own view, know an older transaction of ours, and refuse the newer one. The epochs do prove it.
    """

    producer_id: int
    epoch: int

    def tells_of_another_since(self, earlier: "ProducerEpoch") -> bool:
        """Whether another producer has certainly used the transactional id in between."""
        return self.producer_id == earlier.producer_id and self.epoch - earlier.epoch > _OWN_STEPS


class Outgoing:
    """What one slice writes, collected into batches by topic and partition; `share` of what a slice may hold."""

    def __init__(
        self,
        producer: AIOKafkaProducer,
        now_ms: int,
        share: float = 1.0,
        acknowledged: Callable[[RecordMetadata], None] = lambda _: None,
    ) -> None:
        self._producer = producer
        self._now_ms = now_ms
        self._acknowledged = acknowledged
        self._batches: dict[tuple[str, int], list[Batch]] = {}
        self._left = int(_FULL_BYTES * share)
        self.share = share

    def append(self, topic: str, partition: int, key: bytes | None, value: bytes | None, headers: KafkaHeaders) -> None:
        """Add one record; its timestamp is the time of writing, never the time of the event."""
        where = (topic, partition)  # a plain pair for speed: this runs four times for each input
        batches = self._batches.get(where)
        if batches is None:
            batches = self._batches[where] = [new_batch(self._producer, MAX_BATCH_BYTES)]
        headers = headers if type(headers) is list else list(headers)  # the client takes nothing else
        if not batches[-1].add(self._now_ms, key, value, headers):
            batches.append(new_batch(self._producer, MAX_BATCH_BYTES))
            batches[-1].add(self._now_ms, key, value, headers)
        if value is not None:
            self._left -= len(value)

    def append_compressed(
        self, topic: str, partition: int, key: bytes | None, value: bytes, headers: KafkaHeaders, max_bytes: int
    ) -> bool:
        """Add one large record in a compressed batch of its own; False if this is still over the topic's limit."""
        if len(value) > _COMPRESSIBLE_BYTES or len(zstd_encode(value)) > max_bytes:
            return False
        batch = new_batch(self._producer, MAX_BATCH_BYTES, "zstd")
        batch.add(self._now_ms, key, value, list(headers))
        # The next record must not be added to it.
        fresh = new_batch(self._producer, MAX_BATCH_BYTES)
        self._batches.setdefault((topic, partition), []).extend((batch, fresh))
        self._left -= len(value)
        return True

    @property
    def is_full(self) -> bool:
        """Whether it is time to commit: the next record belongs in another transaction."""
        return self._left <= 0

    async def send(self, last: str | None = None) -> None:
        """Send every batch and wait for each acknowledgement: a commit would not notice one that failed.

        Records for the topic `last` are sent when all others are acknowledged.
        """
        for is_last in (False, True):
            async with asyncio.TaskGroup() as sending:
                for (topic, partition), batches in self._batches.items():
                    if (topic == last) is is_last:
                        sending.create_task(self._send_in_order(topic, partition, batches))

    async def _send_in_order(self, topic: str, partition: int, batches: list[Batch]) -> None:
        for batch in batches:
            if batch.record_count() == 0:
                continue
            acknowledged = await self._producer.send_batch(batch, topic, partition=partition)
            with _named(f"topic {topic}/{partition}, a batch of {batch.size():,} bytes"):
                self._acknowledged(await acknowledged)


@contextmanager
def _named(about: str) -> Iterator[None]:
    """Name what the broker's error does not: the topic that we may not write, and the batch that it does not accept."""
    try:
        yield
    except (TopicAuthorizationFailedError, *TOO_LARGE) as error:
        raise translated(error, about) from error


class PartitionWriter(Protocol):
    """Writes for one input partition, from start() until its first failure.

    `epoch` is what start() got from the coordinator; None without transactions.
    """

    epoch: ProducerEpoch | None

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

    def outgoing(self, now_ms: int, share: float = 1.0) -> Outgoing:
        """An empty slice to fill, up to this share of what a slice may hold."""

    async def commit(self, outgoing: Outgoing, next_offset: int, note: str) -> None:
        """Make the slice, its offset and the offset's note visible together.

        Raises PartitionLost; then the writer cannot be used again.
        """

    async def dispose(self) -> None:
        """Drop everything that is unsent and close; waits only briefly for the broker. May be called again."""


class _ProducerOwner:
    """What both writers share: a producer, and a deadline on every call."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        partition: int,
        clock: BrokersClock,
        deadline_seconds: float,
        **options: Any,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._source = TopicPartition(topic, partition)
        self._deadline_seconds = deadline_seconds
        self._options = options
        self._producer: AIOKafkaProducer | None = None
        self._disposal: asyncio.Task[None] | None = None
        self._lost_connections = 0
        self.epoch: ProducerEpoch | None = None

    async def start(self) -> None:
        producer = AIOKafkaProducer(
            **self._connection.client(acks="all", max_batch_size=MAX_BATCH_BYTES, linger_ms=0, **self._options)
        )
        note_lost_connections(producer, self._note_lost_connection)
        self._producer = producer
        try:
            await answered(producer.start(), f"the producer for {self._source.topic}", self._deadline_seconds)
        except (SafeError, asyncio.CancelledError):
            await self.dispose()
            raise

    def _note_lost_connection(self) -> None:
        self._lost_connections += 1

    def outgoing(self, now_ms: int, share: float = 1.0) -> Outgoing:
        return Outgoing(self._running(), now_ms, share, self._note_time)

    def _note_time(self, acknowledged: RecordMetadata) -> None:
        """Where the topic has LogAppendTime, an acknowledgement tells the broker's time."""
        if acknowledged.timestamp_type == _LOG_APPEND_TIME and acknowledged.timestamp is not None:
            self._clock.note(acknowledged.timestamp)
        else:
            self._note_no_time(acknowledged.topic)

    def _note_no_time(self, topic: str) -> None:
        """An acknowledgement of this topic has not told the time."""

    def _running(self) -> AIOKafkaProducer:
        if self._producer is None:
            raise PartitionLost("the producer is gone")
        return self._producer

    async def dispose(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            self._disposal = asyncio.create_task(dispose(producer))
        if self._disposal is not None:
            # Shielded: if the caller is cancelled while it waits, the producer must still be closed completely.
            await asyncio.shield(self._disposal)

    async def _marked(self, topic: str, partition: int, key: bytes, headers: KafkaHeaders) -> int:
        with _named(f"topic {topic}/{partition}"):
            written = await self._running().send_and_wait(
                topic, key=key, value=None, partition=partition, headers=list(headers), timestamp_ms=NO_TIMESTAMP
            )
        self._note_time(written)
        return int(written.offset)

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
            raise self._failure(error) from error

    def _failure(self, error: BaseException) -> Fatal | PartitionLost:
        """What a failed commit means; of several failures at once, the one that waiting does not help."""
        if isinstance(error, BaseExceptionGroup):
            failures = [self._failure(part) for part in error.exceptions]
            return next((failure for failure in failures if isinstance(failure, Fatal)), failures[0])
        if isinstance(error, SafeError):
            return error if isinstance(error, Fatal) else PartitionLost(str(error))
        meaning = translated(error, f"the outputs of {self._source.topic}")
        if isinstance(meaning, Fatal):
            return meaning
        if any(isinstance(cause, FENCED) for cause in causes(error)):
            return PartitionLost("another producer has taken over", fenced=True)
        if any(isinstance(cause, InvalidTimestampError) for cause in causes(error)):
            self._clock.note_refusal()
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


class TransactionalWriter(_ProducerOwner):
    """`exactly_once`: one transaction per slice; start() fences the former owner of the transactional id."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        partition: int,
        clock: BrokersClock,
        *,
        transactional_id: str,
        consumer_group: str,
        transaction_timeout_seconds: float,
    ) -> None:
        super().__init__(
            connection,
            topic,
            partition,
            clock,
            transaction_timeout_seconds,
            transactional_id=transactional_id,
            transaction_timeout_ms=int(transaction_timeout_seconds * 1_000),
        )
        self._consumer_group = consumer_group

    @override
    async def start(self) -> None:
        await super().start()
        self.epoch = ProducerEpoch(*identity_of(self._running()))

    async def mark(self, topic: str, partition: int, key: bytes, headers: KafkaHeaders) -> int:
        offset, in_doubt = await self._ended(self._aborted_mark(topic, partition, key, headers))
        if in_doubt:
            raise PartitionLost("the request to end the marker transaction before the restore may have been sent twice")
        await self._learn_from_end(topic, partition, offset)
        return offset

    async def learn_time(self, topic: str, partition: int, key: bytes, headers: KafkaHeaders) -> None:
        if self._clock.was_asked_within(_TIME_HOLDS_SECONDS):
            return  # a moment ago, for another partition
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

    async def commit(self, outgoing: Outgoing, next_offset: int, note: str) -> None:
        _, in_doubt = await self._ended(self._transaction(outgoing, next_offset, note))
        if in_doubt:
            await self.dispose()

    async def _ended(self, steps: Awaitable[T]) -> tuple[T, bool]:
        """Run a transaction to its end, and return whether that end is in doubt.

        If so, a second EndTxn may be on its way: it must find a newer epoch, not our next transaction.
        """
        lost_before = self._lost_connections
        started_at = time.monotonic()
        outcome = await self._guarded(steps)
        took_long = time.monotonic() - started_at > DOUBTFUL_COMMIT_SECONDS
        return outcome, took_long or self._lost_connections > lost_before

    async def _aborted_mark(self, topic: str, partition: int, key: bytes, headers: KafkaHeaders) -> int:
        producer = self._running()
        await producer.begin_transaction()
        offset = await self._marked(topic, partition, key, headers)
        await producer.abort_transaction()
        return offset

    async def _transaction(self, outgoing: Outgoing, next_offset: int, note: str) -> None:
        producer = self._running()
        await producer.begin_transaction()
        await outgoing.send()
        offset = {self._source: OffsetAndMetadata(next_offset, note)}
        await producer.send_offsets_to_transaction(offset, self._consumer_group)
        await producer.commit_transaction()


class PlainWriter(_ProducerOwner):
    """`at_least_once`: first the outputs, then the offset; a crash in between repeats outputs, and loses none.

    The changelog is written between the two: its progress row, like the offset, says that all before it is published.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        partition: int,
        clock: BrokersClock,
        *,
        deadline_seconds: float,
        changelog: str,
        timed_topics: Collection[str],
        commit_offset: Callable[[int, str], Awaitable[None]],
    ) -> None:
        super().__init__(connection, topic, partition, clock, deadline_seconds)
        self._changelog = changelog
        self._timed_topics = timed_topics
        self._commit_offset = commit_offset

    @override
    def _note_no_time(self, topic: str) -> None:
        if topic in self._timed_topics:
            self._clock.note_never_told()

    async def mark(self, topic: str, partition: int, key: bytes, headers: KafkaHeaders) -> int:
        return await self._guarded(self._marked(topic, partition, key, headers))

    async def learn_time(self, topic: str, partition: int, key: bytes, headers: KafkaHeaders) -> None:
        """A mark would be seen by readers of this topic: the first acknowledgement of one that has LogAppendTime,
        among `timed_topics`, has to tell the time.
        """

    async def commit(self, outgoing: Outgoing, next_offset: int, note: str) -> None:
        await self._guarded(self._send_then_commit(outgoing, next_offset, note))

    async def _send_then_commit(self, outgoing: Outgoing, next_offset: int, note: str) -> None:
        self._running()
        await outgoing.send(last=self._changelog)
        await self._commit_offset(next_offset, note)
