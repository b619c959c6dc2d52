"""A warning that floods neither the log nor is lost: the first few at once, the rest together every ten seconds."""

import time
from collections import Counter
from collections.abc import Mapping

import structlog

_log = structlog.get_logger("safe.worker")

_EVERY_SECONDS = 10.0
_AT_ONCE = 5
"""Warnings that are given at once in any ten seconds."""


class Occasional:
    """Counts what happens in every slice, and warns of it: a flood in the input is none in the log."""

    def __init__(self, sentence: str, **context: object) -> None:
        self._sentence = sentence
        self._context = context
        self._counts: Counter[str] = Counter()
        self._since = float("-inf")
        self._said = 0

    def note(self, counts: int | Mapping[str, int]) -> None:
        """Count on, and warn if it is time; `counts` is a number, or numbers by reason."""
        self._counts.update({"records": counts} if isinstance(counts, int) else counts)
        now = time.monotonic()
        if now - self._since >= _EVERY_SECONDS:
            self._since, self._said = now, 0
        if self._said < _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Say what has not been said yet."""
        if self._counts.total():
            _log.warning(self._sentence, counts=dict(+self._counts), **self._context)
            self._counts.clear()
            self._said += 1
