"""Explain the cases of `safe review` while its page is open: in other processes if there are many, else in a thread."""

import asyncio
import contextlib
from concurrent.futures import Executor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Final

from consumer.offline.many_diagnoses import new_processes
from consumer.offline.review import Review
from consumer.offline.review_cases import explain

_MANY: Final = 200
"""Fewer cases take less time than it takes to start processes."""

_NICENESS: Final = 5
"""The page is served first."""


async def explain_waiting(review: Review, waiting: asyncio.Event) -> None:
    """Explain what is not explained yet, each time that the event is set, until this task is cancelled."""
    while True:
        await waiting.wait()
        waiting.clear()
        if len(review.cases) - review.explained >= _MANY and (processes := new_processes(_NICENESS)) is not None:
            pool, size = processes
            with contextlib.suppress(BrokenProcessPool, OSError):
                await _explain_in(pool, review, size + 1)  # nobody waits for the next case
            review.wait_again()
        await _explain_in(ThreadPoolExecutor(1), review, 1)


async def _explain_in(executor: Executor, review: Review, at_once: int) -> None:
    explaining = [asyncio.create_task(_explain(executor, review)) for _ in range(at_once)]
    try:
        await asyncio.gather(*explaining)
    finally:
        # If one of them fails, no other may take a further case, which nobody would explain.
        for each in explaining:
            each.cancel()
        await asyncio.gather(*explaining, return_exceptions=True)
        executor.shutdown(wait=False, cancel_futures=True)


async def _explain(executor: Executor, review: Review) -> None:
    # One by one, so that the program ends soon when it is stopped: what has begun is always finished.
    while (case := review.next()) is not None:
        case.note(await asyncio.get_running_loop().run_in_executor(executor, explain, case.scored))
