"""A growing pause between attempts to connect to a broker that is away, as Kafka's own clients have one.

aiokafka attempts again whenever anything asks for a connection, and pauses for `retry_backoff_ms` in between, which has
to be short for transactions: without this, a worker that lost its brokers made hundreds of attempts a second.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

from consumer.backoff import Backoff

T = TypeVar("T")

_FIRST_SECONDS = 0.05
_LONGEST_SECONDS = 2.0


class _Away:
    """A place that could not be reached: how often not, and when the next attempt may begin (monotonic)."""

    def __init__(self) -> None:
        self.failures = 0
        self.next_at = float("-inf")
        self.turn = asyncio.Lock()
        self._backoff = Backoff(_FIRST_SECONDS, _LONGEST_SECONDS)

    def note_failure(self, now: float) -> None:
        """Count a failure; those of attempts that began together count as one."""
        self.failures += 1
        if now >= self.next_at:
            self.next_at = now + self._backoff.next()


class Reconnects:
    """When the clients of one event loop may attempt again to connect to places that could not be reached."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._away: dict[Hashable, _Away] = {}

    async def attempt(self, where: Hashable, connect: Callable[[], Awaitable[T | None]]) -> T | None:
        """Connect, not before the pause is over; None if that fails.

        Of several that wait for the same place, one makes the attempt; if it fails, the others have their answer too.
        """
        away = self._away.get(where)
        if away is None:
            return await self._noted(where, connect)
        failures = away.failures
        async with away.turn:
            if self._away.get(where) is not away:
                return await self._noted(where, connect)  # another attempt has succeeded meanwhile
            if away.failures != failures:
                return None
            await self._sleep(away.next_at - self._clock())
            return await self._noted(where, connect)

    async def _noted(self, where: Hashable, connect: Callable[[], Awaitable[T | None]]) -> T | None:
        connection = await connect()
        if connection is None:
            self._away.setdefault(where, _Away()).note_failure(self._clock())
        else:
            self._away.pop(where, None)
        return connection
