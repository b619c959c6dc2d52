"""Publishing what others read: input events, as `safe publish` and the demo send them, and tables of test cases."""

import asyncio
import time
from collections.abc import Awaitable, Iterable
from types import TracebackType
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from consumer.errors import Fatal, Transient
from consumer.kafka.connection import Connection
from consumer.kafka.failures import answered, closed
from consumer.kafka.internals import dispose
from consumer.kafka.reach import reach, unusable
from consumer.kafka.writer import DOUBTFUL_COMMIT_SECONDS, FENCED, MAX_BATCH_BYTES, Outgoing, causes
from consumer.settings import Settings

_TIMEOUT_SECONDS = 30.0
_COURTESY_SECONDS = 2.0
_TRANSACTION_SECONDS = 60.0
"""For one transaction, and for each of its steps: a broker ends one that takes longer."""


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
        producer = AIOKafkaProducer(
            **self._connection.client(
                acks="all", linger_ms=5, max_batch_size=256 * 1024, max_request_size=8 * 1024 * 1024
            )
        )
        try:
            await answered(producer.start(), "the brokers", _TIMEOUT_SECONDS)
        except (Fatal, Transient):
            await dispose(producer)
            raise
        self._producer = producer

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
        self._producer = AIOKafkaProducer(
            **self._connection.client(
                acks="all",
                linger_ms=0,
                max_batch_size=self._max_batch_bytes,
                **(transactional if self._transactional_id is not None else {}),
            )
        )
        try:
            await self._done(self._producer.start())
        except (Fatal, asyncio.CancelledError):
            await dispose(self._producer)
            raise
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
