"""Waiting for something outside this process, with a deadline and words for what did not come."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
SOON_SECONDS, SELDOM_SECONDS = 0.05, 0.25
# What has taken two seconds may be seen a fifth of a second late.
LATE_SHARE = 0.1


def wait_until(
    condition: Callable[[], T | None], *, within_seconds: float, what: str, every_seconds: float | None = None
) -> T:
    """Ask until the answer is neither None nor False, and return it; AssertionError after the deadline.

    Unless told how often, it asks less often the longer it waits: an answer costs a worker or a broker some work.
    """
    began = time.monotonic()
    pause = threading.Event()
    while True:
        answer = condition()
        if answer is not None and answer is not False:
            return answer
        waited = time.monotonic() - began
        if waited >= within_seconds:
            raise AssertionError(f"not within {within_seconds:g} s: {what}")
        pause.wait(every_seconds or min(max(SOON_SECONDS, waited * LATE_SHARE), SELDOM_SECONDS))
