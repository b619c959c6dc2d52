"""Waiting for something outside this process, with a deadline and words for what did not come."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T | None], *, within_seconds: float, what: str, every_seconds: float = 0.05
) -> T:
    """Ask until the answer is neither None nor False, and return it; AssertionError after the deadline."""
    deadline = time.monotonic() + within_seconds
    pause = threading.Event()
    while True:
        answer = condition()
        if answer is not None and answer is not False:
            return answer
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {within_seconds:g} s: {what}")
        pause.wait(every_seconds)
