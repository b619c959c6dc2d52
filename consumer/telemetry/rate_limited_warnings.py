"""Rate-limited warnings: the first few are logged at once, repeats are counted and logged together."""

import time
from collections import Counter
from collections.abc import Mapping

import structlog

_log = structlog.get_logger("safe.worker")

_WINDOW_SECONDS = 10.0
_WARNINGS_PER_WINDOW = 5


class RateLimitedWarning:
    """Counts what may happen in every slice, and logs it so rarely that a flood in the input is not one in the log."""

    def __init__(self, sentence: str, **context: object) -> None:
        self._sentence = sentence
        self._context = context
        self._counts: Counter[str] = Counter()
        self._since = float("-inf")
        self._logged = 0

    def note(self, counts: int | Mapping[str, int]) -> None:
        """Add to the counts, and log them if the limit allows; `counts` is a number, or numbers by reason."""
        self._counts.update({"records": counts} if isinstance(counts, int) else counts)
        now = time.monotonic()
        if now - self._since >= _WINDOW_SECONDS:
            self._since, self._logged = now, 0
        if self._logged < _WARNINGS_PER_WINDOW:
            self.flush()

    def flush(self) -> None:
        """Log what has been counted since the last warning."""
        if self._counts.total():
            _log.warning(self._sentence, counts=dict(+self._counts), **self._context)
            self._counts.clear()
            self._logged += 1
