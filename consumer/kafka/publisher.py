"""Publishing input events: what `safe publish` and the demo send with."""

import asyncio
from types import TracebackType

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from consumer.errors import Fatal
from consumer.kafka.connection import Connection
from consumer.kafka.internals import dispose
from consumer.settings import Settings

_TIMEOUT_SECONDS = 30.0


class EventPublisher:
    """Publishes records in order; leaving the context waits until every one of them is acknowledged.

    Raises Fatal naming the remedy if the broker does not answer or refuses.
    """

    def __init__(self, settings: Settings) -> None:
        self._connection = Connection.from_settings(settings)
        self._producer: AIOKafkaProducer | None = None
        self._unacknowledged: set[asyncio.Future[object]] = set()
        self._failure: BaseException | None = None

    async def __aenter__(self) -> "EventPublisher":
        self._producer = AIOKafkaProducer(
            **self._connection.client(
                acks="all", linger_ms=5, max_batch_size=256 * 1024, max_request_size=8 * 1024 * 1024
            )
        )
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                await self._producer.start()
        except (KafkaError, OSError, TimeoutError) as error:
            await dispose(self._producer)
            raise Fatal(
                f"no broker answers at {self._connection.bootstrap_servers}: check SAFE_V0_KAFKA_BOOTSTRAP_SERVERS"
            ) from error
        return self

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
