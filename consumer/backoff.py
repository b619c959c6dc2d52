"""How long to wait after a failure before the next try; it neither sleeps nor reads a clock."""

import random
from collections.abc import Callable


class Backoff:
    """Delays that double up to a limit, with equal jitter: half of each delay is fixed, the other half random.

    The random half keeps those that failed together from coming back all at once.
    """

    def __init__(
        self,
        first_seconds: float = 0.1,
        longest_seconds: float = 5.0,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._first_seconds = first_seconds
        self._longest_seconds = longest_seconds
        self._uniform = uniform
        self._ceiling = first_seconds

    def next(self) -> float:
        """Seconds to wait before the next try; the one after it waits longer."""
        ceiling = self._ceiling
        self._ceiling = min(self._longest_seconds, ceiling * 2)
        return self._uniform(ceiling / 2, ceiling)

    def reset(self) -> None:
        """The last try succeeded."""
        self._ceiling = self._first_seconds
