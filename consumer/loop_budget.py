"""Long work in the event loop, in parts: heartbeats run on the same loop."""

import asyncio
import time

_SECONDS = 0.003
"""What waits for a broker gets on by one step each time that others run, and has to take a dozen of them."""


class LoopBudget:
    """Tells a loop when others have waited long enough: `if budget.is_spent: await budget.renew()`."""

    def __init__(self) -> None:
        self._ends_at = time.monotonic() + _SECONDS

    @property
    def is_spent(self) -> bool:
        """Whether others should run now."""
        return time.monotonic() > self._ends_at

    async def renew(self) -> None:
        """Let others run."""
        await asyncio.sleep(0)
        self._ends_at = time.monotonic() + _SECONDS
