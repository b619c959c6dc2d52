"""How a partition's outputs reach Kafka: all of a slice, and its offset, or nothing.

A writer belongs to one input partition of one stage. After any failure it is finished: sequence numbers are burnt, or
an answer is still on its way that could end the next transaction. Whoever holds it drops it, starts another, restores.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeVar

from aiokafka import AIOKafkaProducer, OffsetAndMetadata, TopicPartition
from aiokafka.codec import zstd_encode
from aiokafka.errors import (
    InvalidProducerEpoch,
    KafkaError,
    KafkaTimeoutError,
    ProducerFenced,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
)
from typing_extensions import override

from consumer.errors import Fatal, PartitionLost, SafeError
from consumer.kafka.connection import Connection
from consumer.kafka.failures import answered, translated
from consumer.kafka.internals import compressed_batch, dispose, identity_of, note_lost_connections

T = TypeVar("T")

MAX_BATCH_BYTES = 512 * 1024
"""One produce request carries one batch of each partition: larger batches, fewer round trips."""

_COMPRESSIBLE_BYTES = 64 * 1024 * 1024
"""Compressing more than this would hold up the event loop, and copy what may be a bomb."""

_FULL_BYTES = 16 * 1024 * 1024
"""A slice that writes more is ended early: few bytes of input may come to very many of output."""

DOUBTFUL_COMMIT_SECONDS = 5.0
"""A commit that took longer may have been sent twice, and the second could end the next transaction (KIP-890)."""

FENCED = (ProducerFenced, InvalidProducerEpoch)
TIMED_OUT = (KafkaTimeoutError, RequestTimedOutError)

Headers = Sequence[tuple[str, bytes | None]]

_OWN_STEPS = 2
"""How much the epoch grows where a producer only follows itself: for ending what was left open, and for its start."""


class ProducerEpoch(NamedTuple):
    """What the transaction coordinator knows a producer by: each start, and each end that it forces, adds to the epoch.

    A refusal alone does not tell that another producer has taken over: a broker that is cut off may still lead the
    partition in its own view, know an older transaction of ours, and refuse the newer one. The epochs do tell.
    """

    producer_id: int
    epoch: int

    def tells_of_another_since(self, earlier: "ProducerEpoch") -> bool:
        """Whether somebody else surely had the transactional id in between."""
        return self.producer_id == earlier.producer_id and self.epoch - earlier.epoch > _OWN_STEPS


class Outgoing:
    """What one slice writes, gathered into batches by topic and partition."""

    def __init__(self, producer: AIOKafkaProducer, now_ms: int) -> None:
        self._producer = producer
        self._now_ms = now_ms
        self._batches: dict[tuple[str, int], list[Any]] = {}
        self._left = _FULL_BYTES
        self.share = 1.0

    def narrow(self, share: float) -> None:
        """Before the first record: hold only this share of what a slice may hold."""
        self.share = share
        self._left = int(_FULL_BYTES * share)

    def append(self, topic: str, partition: int, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        """Add one record, stamped with the time of writing: event times never stand in a record's timestamp."""
        where = (topic, partition)  # a plain pair: this is done four times for each input
        batches = self._batches.get(where)
        if batches is None:
            batches = self._batches[where] = [self._producer.create_batch()]
        headers = headers if type(headers) is list else list(headers)  # all that the client takes
        if batches[-1].append(timestamp=self._now_ms, key=key, value=value, headers=headers) is None:
            fresh = self._producer.create_batch()
            fresh.append(timestamp=self._now_ms, key=key, value=value, headers=headers)
            batches.append(fresh)
        if value is not None:
            self._left -= len(value)

    def append_compressed(
        self, topic: str, partition: int, key: bytes | None, value: bytes, headers: Headers, max_bytes: int
    ) -> bool:
        """Add one large record in a compressed batch of its own; False if even so it is over the topic's limit."""
        if len(value) > _COMPRESSIBLE_BYTES or len(zstd_encode(value)) > max_bytes:
            return False
        batch = compressed_batch(self._producer, MAX_BATCH_BYTES)
        batch.append(timestamp=self._now_ms, key=key, value=value, headers=list(headers))
        # The next record must not join it.
        self._batches.setdefault((topic, partition), []).extend((batch, self._producer.create_batch()))
        self._left -= len(value)
        return True

    @property
    def is_full(self) -> bool:
        """Whether it is time to commit: what comes next belongs into a transaction of its own."""
        return self._left <= 0

    async def send(self, last: str | None = None) -> None:
        """Send every batch and wait for each acknowledgement: a commit would not notice one that failed.

        What goes to the topic `last` is sent when all else is acknowledged.
        """
        for is_last in (False, True):
            async with asyncio.TaskGroup() as sending:
                for (topic, partition), batches in self._batches.items():
                    if (topic == last) is is_last:
                        sending.create_task(self._send_in_order(topic, partition, batches))

    async def _send_in_order(self, topic: str, partition: int, batches: list[Any]) -> None:
        for batch in batches:
            if batch.record_count() == 0:
                continue
            acknowledged = await self._producer.send_batch(batch, topic, partition=partition)
            with _named(topic):
                await acknowledged


@contextmanager
def _named(topic: str) -> Iterator[None]:
    """Name the topic that may not be written: the broker's error does not."""
    try:
        yield
    except TopicAuthorizationFailedError as error:
        raise translated(error, f"topic {topic}") from error


class PartitionWriter(Protocol):
    """Writes for one input partition, from start() until its first failure.

    `epoch` is what start() was given, None without transactions.
    """

    epoch: ProducerEpoch | None

    async def start(self) -> None:
        """Take the right to write, ending whatever a former owner left open; raises Transient or Fatal."""
        ...

    async def mark(self, topic: str, partition: int, key: bytes, headers: Headers) -> int:
        """Write a tombstone that means nothing, once, before any commit; return its offset when it is replicated.

        Everything that an earlier owner wrote has a smaller offset, and a leader of the past will never show this one:
        a reader that has reached it has read all of that. Raises PartitionLost, after which the writer is finished.
        """
        ...

    def outgoing(self, now_ms: int) -> Outgoing:
        """An empty slice to fill."""
        ...

    async def commit(self, outgoing: Outgoing, next_offset: int, note: str) -> None:
        """Make the slice, its offset and the offset's note visible together.

        Raises PartitionLost, after which the writer is finished.
        """
        ...

    async def dispose(self) -> None:
        """Drop everything unsent and close; never waits for the broker for long, may be called twice."""
        ...


class _ProducerOwner:
    """What both writers share: a producer with deadlines on every call."""

    def __init__(
        self, connection: Connection, topic: str, partition: int, deadline_seconds: float, **options: Any
    ) -> None:
        self._connection = connection
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

    def outgoing(self, now_ms: int) -> Outgoing:
        return Outgoing(self._running(), now_ms)

    def _running(self) -> AIOKafkaProducer:
        if self._producer is None:
            raise PartitionLost("the producer is gone")
        return self._producer

    async def dispose(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            self._disposal = asyncio.create_task(dispose(producer))
        if self._disposal is not None:
            # Shielded: a caller that is cancelled while waiting must not leave a producer half closed.
            await asyncio.shield(self._disposal)

    async def _marked(self, topic: str, partition: int, key: bytes, headers: Headers) -> int:
        with _named(topic):
            written = await self._running().send_and_wait(
                topic, key=key, value=None, partition=partition, headers=list(headers)
            )
        return int(written.offset)

    async def _guarded(self, steps: Awaitable[T]) -> T:
        """Run the steps of a commit under the deadline; whatever goes wrong, the partition is lost to this writer."""
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
        """What a failed commit means; of several failures at once, that which no waiting helps."""
        if isinstance(error, BaseExceptionGroup):
            failures = [self._failure(part) for part in error.exceptions]
            return next((failure for failure in failures if isinstance(failure, Fatal)), failures[0])
        if isinstance(error, Fatal):
            return error
        meaning = translated(error, f"the outputs of {self._source.topic}")
        if isinstance(meaning, Fatal):
            return meaning
        if any(isinstance(cause, FENCED) for cause in causes(error)):
            return PartitionLost("another producer has taken over", fenced=True)
        timed_out = any(isinstance(cause, TIMED_OUT) for cause in causes(error))
        return PartitionLost(f"a write failed: {type(error).__name__}", timed_out=timed_out)


def without_frames(error: BaseException | None) -> None:
    """Let an error, and whatever led to it, go of the frames that it came through.

    A frame of a TaskGroup keeps what it raises: in that circle all that was to be written would stay, perhaps for ever.
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
        *,
        transactional_id: str,
        consumer_group: str,
        transaction_timeout_seconds: float,
    ) -> None:
        super().__init__(
            connection,
            topic,
            partition,
            transaction_timeout_seconds,
            transactional_id=transactional_id,
            transaction_timeout_ms=int(transaction_timeout_seconds * 1_000),
        )
        self._consumer_group = consumer_group

    @override
    async def start(self) -> None:
        await super().start()
        self.epoch = ProducerEpoch(*identity_of(self._running()))

    async def mark(self, topic: str, partition: int, key: bytes, headers: Headers) -> int:
        offset, in_doubt = await self._ended(self._aborted_mark(topic, partition, key, headers))
        if in_doubt:
            raise PartitionLost("the transaction before the restore ended in doubt")
        return offset

    async def commit(self, outgoing: Outgoing, next_offset: int, note: str) -> None:
        _, in_doubt = await self._ended(self._transaction(outgoing, next_offset, note))
        if in_doubt:
            await self.dispose()

    async def _ended(self, steps: Awaitable[T]) -> tuple[T, bool]:
        """Run a transaction to its end, and say whether that is in doubt.

        A second EndTxn may then be under way: it must meet a newer epoch, not our next transaction.
        """
        lost_before = self._lost_connections
        started_at = time.monotonic()
        outcome = await self._guarded(steps)
        took_long = time.monotonic() - started_at > DOUBTFUL_COMMIT_SECONDS
        return outcome, took_long or self._lost_connections > lost_before

    async def _aborted_mark(self, topic: str, partition: int, key: bytes, headers: Headers) -> int:
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
    """`at_least_once`: outputs first, then the offset; a crash between the two repeats outputs, and loses none.

    The changelog comes between: its progress row says, as the offset does, that all before it has been published.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        partition: int,
        *,
        deadline_seconds: float,
        changelog: str,
        commit_offset: Callable[[int, str], Awaitable[None]],
    ) -> None:
        super().__init__(connection, topic, partition, deadline_seconds)
        self._changelog = changelog
        self._commit_offset = commit_offset

    async def mark(self, topic: str, partition: int, key: bytes, headers: Headers) -> int:
        return await self._guarded(self._marked(topic, partition, key, headers))

    async def commit(self, outgoing: Outgoing, next_offset: int, note: str) -> None:
        await self._guarded(self._send_then_commit(outgoing, next_offset, note))

    async def _send_then_commit(self, outgoing: Outgoing, next_offset: int, note: str) -> None:
        self._running()
        await outgoing.send(last=self._changelog)
        await self._commit_offset(next_offset, note)
