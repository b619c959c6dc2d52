"""Following topics from the outside: what `safe demo` watches the results with."""

import asyncio
from collections.abc import Sequence
from types import TracebackType

from aiokafka import AIOKafkaConsumer

from consumer.errors import SafeError
from consumer.kafka.connection import Connection
from consumer.kafka.failures import FAILURES, answered, closed, translated
from consumer.wire.record import Record

_FETCH_WAIT_MS = 100


class Follower:
    """Reads every partition of some topics from its beginning, outside any group: it only looks, nothing is committed.

    The topics must exist. Raises Transient if the broker does not answer.
    """

    def __init__(self, connection: Connection, topics: Sequence[str]) -> None:
        self._consumer = AIOKafkaConsumer(
            *topics,
            **connection.client(
                group_id=None,
                enable_auto_commit=False,
                # Nothing is ever committed here, so this is where each partition begins.
                auto_offset_reset="earliest",
                isolation_level="read_committed",
                fetch_max_wait_ms=_FETCH_WAIT_MS,
            ),
        )

    async def __aenter__(self) -> "Follower":
        try:
            await answered(self._consumer.start(), "the topics")
        except SafeError:
            await self._stop()
            raise
        except asyncio.CancelledError:
            await self._stop()
            raise
        return self

    async def poll(self, timeout_seconds: float) -> list[Record]:
        """Whatever has arrived, in order within each partition; empty after the timeout."""
        try:
            fetched = await self._consumer.getmany(timeout_ms=int(timeout_seconds * 1_000))
        except FAILURES as error:
            raise translated(error, "the topics") from error
        return [record for records in fetched.values() for record in records]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def _stop(self) -> None:
        await closed(self._consumer.stop(), 2.0)
