"""Following topics from the outside: what `safe demo` watches the results with."""

import asyncio
from collections.abc import Sequence
from types import TracebackType

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from consumer.decode import Record
from consumer.errors import Transient
from consumer.kafka.connection import Connection

_CALL_TIMEOUT_SECONDS = 10.0
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
            async with asyncio.timeout(_CALL_TIMEOUT_SECONDS):
                await self._consumer.start()
        except (KafkaError, OSError, TimeoutError) as error:
            await self._stop()
            raise Transient(f"the broker does not answer a reader: {type(error).__name__}") from error
        except asyncio.CancelledError:
            await self._stop()
            raise
        return self

    async def poll(self, timeout_seconds: float) -> list[Record]:
        """Whatever has arrived, in order within each partition; empty after the timeout."""
        try:
            fetched = await self._consumer.getmany(timeout_ms=int(timeout_seconds * 1_000))
        except KafkaError as error:
            raise Transient(f"following failed: {type(error).__name__}") from error
        return [record for records in fetched.values() for record in records]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def _stop(self) -> None:
        stopping = asyncio.ensure_future(self._consumer.stop())
        await asyncio.wait([stopping], timeout=2.0)
        if not stopping.done():
            stopping.cancel()
