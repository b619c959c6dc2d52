"""A circuit breaker: what does not answer is left alone for a while, then asked once; pure, time is an argument."""

import random
from collections.abc import Callable, Hashable


class Breaker:
    """Closed while all is well, open after failures in a row; once it has cooled, one caller at a time may try.

    It opens when `limit` different keys have failed with no success between: one key that always fails is no reason to
    keep the others waiting, and few keys do no harm, since each waits longer from try to try.
    """

    def __init__(
        self,
        *,
        limit: int = 5,
        first_seconds: float = 0.5,
        longest_seconds: float = 4.0,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.failures = 0
        """How many requests have failed since the last success."""
        self._limit = limit
        self._first_seconds = first_seconds
        self._longest_seconds = longest_seconds
        self._uniform = uniform
        self._failed: set[Hashable] = set()
        self._seconds = first_seconds
        self._cool_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether requests are held back, but for one at a time once it has cooled."""
        return self._cool_at is not None

    def cools(self, now: float) -> bool:
        """Whether it is open and nothing at all may be asked yet."""
        return self._cool_at is not None and now < self._cool_at

    def succeeded(self) -> None:
        """An answer came, whatever it says: all may ask again."""
        self.failures = 0
        self._failed.clear()
        self._seconds = self._first_seconds
        self._cool_at = None

    def failed(self, key: Hashable, now: float) -> None:
        """No answer came; what was already under way when it opened does not prolong it."""
        self.failures += 1
        if len(self._failed) < self._limit:
            self._failed.add(key)
        if len(self._failed) >= self._limit and not self.cools(now):
            self._open(now)

    def _open(self, now: float) -> None:
        # Half of it is chance, so that the workers of one installation do not return all at once.
        self._cool_at = now + self._uniform(self._seconds / 2, self._seconds)
        self._seconds = min(self._longest_seconds, self._seconds * 2)
