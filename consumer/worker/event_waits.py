"""Waiting for an event: no longer than some seconds, or while something else is done."""

import asyncio
import contextlib
from collections.abc import Coroutine
from math import inf
from typing import Any, TypeVar

T = TypeVar("T")


async def wait_until(event: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, but no longer than this many seconds; `inf` for no limit."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds if seconds < inf else None):
            await event.wait()


async def unless(event: asyncio.Event, steps: Coroutine[Any, Any, T]) -> T | None:
    """What the steps return; None if the event is set first, and then they are cancelled."""
    doing, waiting = asyncio.create_task(steps), asyncio.create_task(event.wait())
    try:
        await asyncio.wait({doing, waiting}, return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else None
    finally:
        for task in (doing, waiting):
            task.cancel()
        await asyncio.wait({doing, waiting})
        del doing  # an error that it raised keeps this frame: a cycle that would keep all of it in memory
