"""Publishing for other readers: input events, tables of test cases, and copies of earlier records (dead letters)."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import InvalidTimestampError, KafkaError

from consumer.errors import Fatal, SafeError, Transient, first_of
from consumer.kafka.aiokafka_internals import dispose, forget
from consumer.kafka.broker_errors import TOO_LARGE, sentence_of
from consumer.kafka.connection import Connection
from consumer.kafka.failures import CALL_SECONDS, answered, closed, translating
from consumer.kafka.reachability import reach, unusable
from consumer.kafka.writer import FENCED, MAX_BATCH_BYTES, Outgoing, causes
from consumer.settings import Settings
from consumer.wire.record import KafkaHeaders

_TIMEOUT_SECONDS = 30.0
_COURTESY_SECONDS = 2.0
_TRANSACTION_SECONDS = 60.0
"""For a transaction, and for each of its steps; the broker ends a transaction that takes longer."""

_LARGEST_REQUEST = 1024 * 1024 * 1024
"""The client must not refuse anything: it checks the size before compression, the broker after it."""

_DOUBTFUL_COMMIT_SECONDS = 5.0
"""The client may have sent a commit twice that took longer, and the second one could end the next transaction."""

_ACKNOWLEDGED_SECONDS = 3 * CALL_SECONDS
_REFUSALS = (InvalidTimestampError, *TOO_LARGE)


@asynccontextmanager
async def _producing(
    connection: Connection, wait: Callable[[Awaitable[Any]], Awaitable[Any]], **options: Any
) -> AsyncIterator[AIOKafkaProducer]:
    """Connect a producer, and in the end drop what it has not sent.

    `wait` sets a deadline for the connection, and names what goes wrong.
    """
    producer = AIOKafkaProducer(**connection.client(acks="all", **options))
    try:
        await wait(producer.start())
        yield producer
    finally:
        await dispose(producer)


# --- events -----------------------------------------------------------------------------------------------------------


class EventPublisher:
    """Publishes records, in order within each partition."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._producer = producer
        self._unacknowledged: set[asyncio.Future[object]] = set()
        self._failure: tuple[str, BaseException] | None = None

    async def publish(self, topic: str, key: bytes, value: bytes) -> None:
        """Hand over one record; returns when it is in the buffer. Raises Fatal once any record has failed."""
        self._raise_failure()
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                acknowledged = await self._producer.send(topic, value, key)
        except (KafkaError, TimeoutError) as error:
            raise Fatal(f"nothing can be published: {sentence_of(error, f'topic {topic}')}") from error
        self._unacknowledged.add(acknowledged)
        acknowledged.add_done_callback(partial(self._acknowledge, topic))

    async def wait_for_acknowledgements(self) -> None:
        """Return when every record is acknowledged; raises Fatal if one has failed, or takes too long."""
        if self._unacknowledged:
            _done, late = await asyncio.wait(self._unacknowledged, timeout=_TIMEOUT_SECONDS)
            if late:
                raise Fatal(f"{len(late)} records were not acknowledged within {_TIMEOUT_SECONDS:g} s")
        self._raise_failure()

    def _acknowledge(self, topic: str, acknowledged: "asyncio.Future[object]") -> None:
        self._unacknowledged.discard(acknowledged)
        error = None if acknowledged.cancelled() else acknowledged.exception()
        if error is not None:
            self._failure = self._failure or (topic, error)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            topic, error = self._failure
            raise Fatal(f"a record was not accepted: {sentence_of(error, f'topic {topic}')}") from error


@asynccontextmanager
async def publishing_events(settings: Settings) -> AsyncIterator[EventPublisher]:
    """Publish events; leaving the context waits until every one of them is acknowledged.

    Raises Fatal naming the remedy if no broker answers, or one refuses.
    """
    connection = Connection.from_settings(settings)
    async with AsyncExitStack() as stack:
        try:
            await reach(connection.client())
            producing = _producing(
                connection,
                partial(answered, about="the brokers", seconds=_TIMEOUT_SECONDS),
                linger_ms=5,
                max_batch_size=256 * 1024,
                max_request_size=8 * 1024 * 1024,
            )
            publisher = EventPublisher(await stack.enter_async_context(producing))
        except Transient as error:
            raise unusable(connection.bootstrap_servers, error) from error
        yield publisher
        await publisher.wait_for_acknowledgements()


# --- tables -----------------------------------------------------------------------------------------------------------


class TableRecord(NamedTuple):
    """A record of a compacted topic; a value of None deletes what the key had."""

    partition: int
    key: bytes
    value: bytes | None


class TableWriter:
    """Writes records of a compacted topic; `atomic` says that those of one call are in one transaction.

    Raises Fatal naming the remedy; what earlier calls have written stays.
    """

    def __init__(
        self, producer: AIOKafkaProducer, topic: str, wait: Callable[[Awaitable[Any]], Awaitable[Any]], *, atomic: bool
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._wait = wait
        self._atomic = atomic

    async def write(self, records: Iterable[TableRecord], now_ms: int) -> None:
        """Write some records, stamped with `now_ms`, and wait until every one of them is acknowledged."""
        outgoing = Outgoing(now_ms)
        for record in records:
            outgoing.append(self._topic, record.partition, record.key, record.value, [])
        if not self._atomic:
            await self._wait(outgoing.send(self._producer))
            return
        await self._wait(self._producer.begin_transaction())
        try:
            await self._wait(outgoing.send(self._producer))
        except BaseException:  # a cancellation too: readers would wait until the transaction times out
            # A producer that was fenced has nothing to abort, hence closed().
            await closed(self._producer.abort_transaction(), _COURTESY_SECONDS)
            raise
        began = time.monotonic()  # from here on an abort would be a second end of the same transaction
        await self._wait(self._producer.commit_transaction())
        if time.monotonic() - began > _DOUBTFUL_COMMIT_SECONDS:
            raise Fatal(
                f"the broker took too long to commit to {self._topic}: what is committed stays; run the command again"
            )


@asynccontextmanager
async def writing_table(
    connection: Connection, topic: str, transactional_id: str | None, *, max_batch_bytes: int
) -> AsyncIterator[TableWriter]:
    """Write a compacted topic, in transactions if there is an id for them.

    Entering the context ends what an earlier writer with this id left open. Raises Fatal naming the remedy.
    """
    wait = partial(_written, topic=topic, servers=connection.bootstrap_servers)
    producing = _producing(
        connection,
        wait,
        linger_ms=0,
        max_batch_size=min(max_batch_bytes, MAX_BATCH_BYTES),
        transactional_id=transactional_id,
        transaction_timeout_ms=int(_TRANSACTION_SECONDS * 1_000),
    )
    async with producing as producer:
        yield TableWriter(producer, topic, wait, atomic=transactional_id is not None)


async def _written(call: Awaitable[object], topic: str, servers: str) -> None:
    """Await a step of writing a table; raises Fatal naming the remedy."""
    try:
        async with asyncio.timeout(_TRANSACTION_SECONDS):
            await call
    except (ExceptionGroup, KafkaError, OSError, TimeoutError, AssertionError) as error:
        # aiokafka reports misuse of a fenced producer as an AssertionError.
        first = first_of(error) if isinstance(error, ExceptionGroup) else error
        if any(isinstance(cause, FENCED) for cause in causes(first)):
            raise Fatal(
                f"another writer of {topic} took over, and this one stopped: run only one writer at a time"
            ) from error
        raise Fatal(
            f"{sentence_of(first, f'topic {topic} at {servers}')}. What is committed stays: run the command again"
        ) from error


# --- copies of earlier records ----------------------------------------------------------------------------------------


class Refused(SafeError):
    """The broker will never accept this one record; it may accept others."""


class Copy(NamedTuple):
    """A record to write; `timestamp` in ms since 1970, or -1 for none."""

    topic: str
    partition: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: KafkaHeaders


class Republisher:
    """Writes copies, in order within each partition; raises Transient or Fatal if it cannot go on."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._producer = producer
        self._acknowledgements: set[asyncio.Task[None]] = set()

    async def publish(self, copy: Copy) -> "asyncio.Task[None]":
        """Hand over a copy, waiting for buffer space; the task ends when it is acknowledged, or raises Refused."""
        sent = await answered(self._sent(copy), copy.topic, _ACKNOWLEDGED_SECONDS)
        acknowledgement = asyncio.create_task(_acknowledged(sent, copy.topic))
        self._acknowledgements.add(acknowledgement)
        acknowledgement.add_done_callback(self._settle)
        return acknowledgement

    def _settle(self, acknowledgement: "asyncio.Task[None]") -> None:
        self._acknowledgements.discard(acknowledgement)
        forget(acknowledgement)

    def cancel(self) -> None:
        """Stop waiting for acknowledgements."""
        for acknowledgement in self._acknowledgements:
            acknowledgement.cancel()

    async def _sent(self, copy: Copy) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any]
        headers = list(copy.headers)
        if copy.timestamp >= 0 and (copy.key, copy.value) != (None, None):
            future = await self._producer.send(
                copy.topic, copy.value, copy.key, copy.partition, copy.timestamp, headers
            )
            return future
        # send() refuses a record with neither key nor value. And where a batch begins with a record that has no
        # timestamp (-1), it gives this record the timestamp of the next one.
        batch = self._producer.create_batch()
        batch.append(timestamp=copy.timestamp, key=copy.key, value=copy.value, headers=headers)
        batch.close()  # no other record may be added
        future = await self._producer.send_batch(batch, copy.topic, partition=copy.partition)
        return future


@asynccontextmanager
async def republishing(connection: Connection) -> AsyncIterator[Republisher]:
    """Write copies of records; leaving the context drops what is not acknowledged. Raises Transient or Fatal."""
    # Compressed: a record that was sent compressed may be too large for its own topic otherwise.
    producing = _producing(
        connection,
        partial(answered, about="the brokers"),
        linger_ms=5,
        compression_type="zstd",
        max_request_size=_LARGEST_REQUEST,
    )
    async with producing as producer:
        publisher = Republisher(producer)
        try:
            yield publisher
        finally:
            publisher.cancel()


async def _acknowledged(sent: Awaitable[Any], topic: str) -> None:
    with translating(topic):
        try:
            async with asyncio.timeout(_ACKNOWLEDGED_SECONDS):
                await sent
        except _REFUSALS as error:
            raise Refused(f"the broker refuses the record: {sentence_of(error, f'topic {topic}')}") from error
