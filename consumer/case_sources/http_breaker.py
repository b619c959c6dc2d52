"""When a service of test cases that fails is left alone, and when it is tried again."""

import random
from collections.abc import Callable, Hashable

from consumer.backoff import Backoff


class Breaker:
    """Leaves a service that does not answer alone for a while, then has it asked once; time is an argument.

    It is closed while all is well, and opens when `limit` different keys have failed with no success between. One key
    that always fails is no reason to keep the others waiting, and few keys do no harm, since each waits longer from try
    to try. Once it has cooled, one caller at a time may try. `failures` counts requests since the last success.
    """

    def __init__(self, limit: int = 5, uniform: Callable[[float, float], float] = random.uniform) -> None:
        self.failures = 0
        self._limit = limit
        self._backoff = Backoff(0.5, 4.0, uniform)
        self._failed: set[Hashable] = set()
        self._cool_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether requests are held back, except for one at a time once it has cooled."""
        return self._cool_at is not None

    def cools(self, now: float) -> bool:
        """Whether it is open and nothing at all may be asked yet."""
        return self._cool_at is not None and now < self._cool_at

    def succeeded(self) -> None:
        """An answer came, whatever it says: all may ask again."""
        self.failures = 0
        self._failed.clear()
        self._backoff.reset()
        self._cool_at = None

    def failed(self, key: Hashable, now: float) -> None:
        """No answer came; a request that was under way when it opened does not keep it open for longer."""
        self.failures += 1
        if len(self._failed) < self._limit:
            self._failed.add(key)
        if len(self._failed) >= self._limit and not self.cools(now):
            self._cool_at = now + self._backoff.next()
