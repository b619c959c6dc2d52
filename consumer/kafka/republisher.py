"""Publishing records as they once stood: partition, time and headers given, none of them chosen anew."""

import asyncio
from collections.abc import Awaitable, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    InvalidTimestampError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)

from consumer.errors import SafeError
from consumer.kafka.connection import Connection
from consumer.kafka.failures import CALL_SECONDS, FAILURES, answered, translated
from consumer.kafka.internals import dispose

_LARGEST_REQUEST = 1024 * 1024 * 1024
"""The broker decides what is too large, after compression; the client would ask before it."""

_ACKNOWLEDGED_SECONDS = 3 * CALL_SECONDS
_REFUSALS = (InvalidTimestampError, MessageSizeTooLargeError, RecordListTooLargeError)


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
        self._producer = AIOKafkaProducer(
            **self._connection.client(
                acks="all", linger_ms=5, compression_type="zstd", max_request_size=_LARGEST_REQUEST
            )
        )
        try:
            await answered(self._producer.start(), "the brokers")
        except SafeError:
            await dispose(self._producer)
            raise
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
    try:
        async with asyncio.timeout(_ACKNOWLEDGED_SECONDS):
            await sent
    except _REFUSALS as error:
        raise Refused(f"the broker refuses it for {topic} ({type(error).__name__})") from error
    except FAILURES as error:
        raise translated(error, topic) from error
