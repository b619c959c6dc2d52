"""A warning that repeats itself at most every ten seconds, with what has come together since."""

import time
from collections import Counter
from collections.abc import Mapping

import structlog

_log = structlog.get_logger("safe.worker")

_EVERY_SECONDS = 10.0


class Occasional:
    """Counts what happens in every slice, and warns of it now and then: a flood in the input is none in the log."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence
        self._counts: Counter[str] = Counter()
        self._said_at = float("-inf")

    def note(self, counts: int | Mapping[str, int], **context: object) -> None:
        """Count on, and warn if it is time; `counts` is a number, or numbers by reason."""
        self._counts.update({"records": counts} if isinstance(counts, int) else counts)
        now = time.monotonic()
        if self._counts.total() and now - self._said_at >= _EVERY_SECONDS:
            _log.warning(self._sentence, counts=dict(self._counts), **context)
            self._counts.clear()
            self._said_at = now
