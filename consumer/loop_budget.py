"""Long work in the event loop, in turns: heartbeats run on the same loop."""

import asyncio
import time

_TURN_SECONDS = 0.01


class Turns:
    """Tells a loop when others have waited long enough: `if turns.is_over: await turns.next()`."""

    def __init__(self) -> None:
        self._ends_at = time.monotonic() + _TURN_SECONDS

    @property
    def is_over(self) -> bool:
        """Whether others should run now."""
        return time.monotonic() > self._ends_at

    async def next(self) -> None:
        """Let others run."""
        await asyncio.sleep(0)
        self._ends_at = time.monotonic() + _TURN_SECONDS
