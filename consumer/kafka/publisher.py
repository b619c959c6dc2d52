"""Publishing what others read: input events, tables of test cases, and records as they once were (dead letters)."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import InvalidTimestampError, KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

from consumer.errors import Fatal, SafeError, Transient
from consumer.kafka.connection import Connection
from consumer.kafka.failures import CALL_SECONDS, answered, closed, translating
from consumer.kafka.internals import dispose
from consumer.kafka.reach import reach, unusable
from consumer.kafka.writer import DOUBTFUL_COMMIT_SECONDS, FENCED, MAX_BATCH_BYTES, Outgoing, causes
from consumer.settings import Settings

_TIMEOUT_SECONDS = 30.0
_COURTESY_SECONDS = 2.0
_TRANSACTION_SECONDS = 60.0
"""For one transaction, and for each of its steps: a broker ends one that takes longer."""

_LARGEST_REQUEST = 1024 * 1024 * 1024
"""The broker decides what is too large, after compression; the client would ask before it."""

_ACKNOWLEDGED_SECONDS = 3 * CALL_SECONDS
_REFUSALS = (InvalidTimestampError, MessageSizeTooLargeError, RecordListTooLargeError)


async def _started(
    connection: Connection, wait: Callable[[Awaitable[Any]], Awaitable[Any]], **options: Any
) -> AIOKafkaProducer:
    """A producer that has connected; `wait` puts a deadline to that, and names what goes wrong."""
    producer = AIOKafkaProducer(**connection.client(acks="all", **options))
    try:
        await wait(producer.start())
    except (SafeError, asyncio.CancelledError):
        await dispose(producer)
        raise
    return producer


class EventPublisher:
    """Publishes records in order; leaving the context waits until every one of them is acknowledged.

    Raises Fatal naming the remedy if no broker answers, or one refuses.
    """

    def __init__(self, settings: Settings) -> None:
        self._connection = Connection.from_settings(settings)
        self._producer: AIOKafkaProducer | None = None
        self._unacknowledged: set[asyncio.Future[object]] = set()
        self._failure: BaseException | None = None

    async def __aenter__(self) -> "EventPublisher":
        try:
            await self._start()
        except Transient as error:
            raise unusable(self._connection.bootstrap_servers, error) from error
        return self

    async def _start(self) -> None:
        await reach(self._connection.client())
        self._producer = await _started(
            self._connection,
            partial(answered, about="the brokers", seconds=_TIMEOUT_SECONDS),
            linger_ms=5,
            max_batch_size=256 * 1024,
            max_request_size=8 * 1024 * 1024,
        )

    async def publish(self, topic: str, key: bytes, value: bytes) -> None:
        """Hand one record over; returns when it is in the buffer. Raises Fatal once any record has failed."""
        self._raise_failure(topic)
        assert self._producer is not None
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                acknowledged = await self._producer.send(topic, value, key)
        except (KafkaError, TimeoutError) as error:
            raise Fatal(
                f"nothing can be published to {topic} ({type(error).__name__}): if it does not exist, "
                "`safe topics create` makes it"
            ) from error
        self._unacknowledged.add(acknowledged)
        acknowledged.add_done_callback(self._acknowledge)

    def _acknowledge(self, acknowledged: "asyncio.Future[object]") -> None:
        self._unacknowledged.discard(acknowledged)
        if not acknowledged.cancelled() and acknowledged.exception() is not None:
            self._failure = self._failure or acknowledged.exception()

    def _raise_failure(self, topic: str) -> None:
        if self._failure is not None:
            raise Fatal(f"the broker refused a record for {topic}: {type(self._failure).__name__}") from self._failure

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._producer is not None
        try:
            if kind is None and self._unacknowledged:
                _done, late = await asyncio.wait(self._unacknowledged, timeout=_TIMEOUT_SECONDS)
                if late:
                    raise Fatal(f"{len(late)} records were not acknowledged within {_TIMEOUT_SECONDS:g} s")
            if kind is None:
                self._raise_failure("the topic")
        finally:
            await dispose(self._producer)


class TableRecord(NamedTuple):
    """A record of a compacted topic; a value of None takes away what the key held."""

    partition: int
    key: bytes
    value: bytes | None


class TableWriter:
    """Writes records of a compacted topic, those of one call at once: in one transaction, if it has an id for them.

    Entering the context ends what a former writer of that id left open. Raises Fatal naming the remedy; what earlier
    calls have written stays.
    """

    def __init__(
        self, connection: Connection, topic: str, transactional_id: str | None, *, max_batch_bytes: int
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._transactional_id = transactional_id
        self._max_batch_bytes = min(max_batch_bytes, MAX_BATCH_BYTES)
        self._is_in_transaction = False
        self._producer: AIOKafkaProducer | None = None

    async def __aenter__(self) -> "TableWriter":
        transactional = {
            "transactional_id": self._transactional_id,
            "transaction_timeout_ms": int(_TRANSACTION_SECONDS * 1_000),
        }
        self._producer = await _started(
            self._connection,
            self._done,
            linger_ms=0,
            max_batch_size=self._max_batch_bytes,
            **(transactional if self._transactional_id is not None else {}),
        )
        return self

    async def write(self, records: Iterable[TableRecord], now_ms: int) -> None:
        """Write some records, stamped with `now_ms`, and wait until every one of them is acknowledged."""
        assert self._producer is not None
        outgoing = Outgoing(self._producer, now_ms)
        for record in records:
            outgoing.append(self._topic, record.partition, record.key, record.value, [])
        if self._transactional_id is None:
            await self._done(outgoing.send())
            return
        await self._done(self._producer.begin_transaction())
        self._is_in_transaction = True
        await self._done(outgoing.send())
        self._is_in_transaction = False  # once its end is asked for, nothing else may be
        began = time.monotonic()
        await self._done(self._producer.commit_transaction())
        if time.monotonic() - began > DOUBTFUL_COMMIT_SECONDS:
            # A second request to end it may be under way, and would end the next transaction instead.
            raise Fatal(f"the broker took too long to commit to {self._topic}: what is there stays; run it again")

    async def _done(self, call: Awaitable[object]) -> None:
        try:
            async with asyncio.timeout(_TRANSACTION_SECONDS):
                await call
        except (ExceptionGroup, KafkaError, OSError, TimeoutError, AssertionError) as error:
            # aiokafka reports misuse of a fenced producer as an AssertionError.
            raise Fatal(self._sentence(error)) from error

    def _sentence(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if any(isinstance(cause, FENCED) for cause in causes(error)):
            return (
                f"another writer of {self._topic} has begun and taken over: nothing more was published by this one; "
                "run one at a time"
            )
        return (
            f"{self._topic} cannot be written ({type(error).__name__}): see that "
            f"{self._connection.bootstrap_servers} answers and may be written to, and run it again"
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._producer is not None
        if self._is_in_transaction and kind is not None:
            # A courtesy to readers, who would wait for its end; a producer that was fenced has nothing to end.
            await closed(self._producer.abort_transaction(), _COURTESY_SECONDS)
        await dispose(self._producer)


class Refused(SafeError):
    """The broker will never take this one record; others it may."""


class Copy(NamedTuple):
    """A record to be written; `timestamp` in ms since 1970, or -1 for one that has none."""

    topic: str
    partition: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


class Republisher:
    """Writes copies, in order within a partition; use it as a context. Raises Transient or Fatal if it cannot go on."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._producer: AIOKafkaProducer | None = None
        self._acknowledgements: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Republisher":
        # Compressed: what a producer sent compressed may be too large for its own topic without.
        self._producer = await _started(
            self._connection,
            partial(answered, about="the brokers"),
            linger_ms=5,
            compression_type="zstd",
            max_request_size=_LARGEST_REQUEST,
        )
        return self

    async def publish(self, copy: Copy) -> "asyncio.Task[None]":
        """Hand a copy over, waiting for room; the task ends when it is acknowledged, or raises Refused."""
        sent = await answered(self._sent(copy), copy.topic, _ACKNOWLEDGED_SECONDS)
        acknowledgement = asyncio.create_task(_acknowledged(sent, copy.topic))
        self._acknowledgements.add(acknowledgement)
        acknowledgement.add_done_callback(self._settle)
        return acknowledgement

    def _settle(self, acknowledgement: "asyncio.Task[None]") -> None:
        self._acknowledgements.discard(acknowledgement)
        if not acknowledgement.cancelled():
            acknowledgement.exception()  # retrieved: after the first failure nobody asks for the others

    async def _sent(self, copy: Copy) -> "asyncio.Future[Any]":
        assert self._producer is not None
        future: asyncio.Future[Any]
        if copy.timestamp < 0 or (copy.key is None and copy.value is None):
            future = await self._sent_alone(self._producer, copy)
        else:
            future = await self._producer.send(
                copy.topic, copy.value, copy.key, copy.partition, copy.timestamp, list(copy.headers)
            )
        return future

    async def _sent_alone(self, producer: AIOKafkaProducer, copy: Copy) -> "asyncio.Future[Any]":
        """Send what the client's own way would alter or refuse.

        A batch that begins with a record without a time (-1) gives it the time of the next one; and a record with
        neither key nor value is refused.
        """
        batch = producer.create_batch()
        batch.append(timestamp=copy.timestamp, key=copy.key, value=copy.value, headers=list(copy.headers))
        batch.close()  # no other record may join it
        future: asyncio.Future[Any] = await producer.send_batch(batch, copy.topic, partition=copy.partition)
        return future

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._producer is not None
        for acknowledgement in self._acknowledgements:
            acknowledgement.cancel()
        await dispose(self._producer)


async def _acknowledged(sent: Awaitable[Any], topic: str) -> None:
    with translating(topic):
        try:
            async with asyncio.timeout(_ACKNOWLEDGED_SECONDS):
                await sent
        except _REFUSALS as error:
            raise Refused(f"the broker refuses it for {topic} ({type(error).__name__})") from error
