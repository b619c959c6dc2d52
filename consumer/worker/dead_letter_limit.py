"""When a partition stops: a bad deployment must not turn a whole topic into dead letters."""

from collections import deque
from dataclasses import dataclass

WINDOW = 1_000
"""The share is measured over this many of the partition's most recent records."""

FEWEST = 100
"""The share of fewer records than this means nothing."""


@dataclass(frozen=True, slots=True)
class DeadLetterLimits:
    """The limits, None for none: `run` dead letters in a row, and a `share` of the last WINDOW records."""

    run: int | None = None
    share: float | None = None


class DeadLetterWatch:
    """Counts the dead letters among the records of one partition; records that are ignored do not count.

    A slice is counted on a copy, which replaces the original once the slice is committed.
    """

    def __init__(self, limits: DeadLetterLimits) -> None:
        self._limits = limits
        self._limited = limits != DeadLetterLimits()
        self._run = 0
        self._recent: deque[bool] = deque(maxlen=WINDOW)
        self._dead_letters = 0

    def copy(self) -> "DeadLetterWatch":
        """Another one with the same counts."""
        other = DeadLetterWatch(self._limits)
        other._run, other._recent, other._dead_letters = self._run, self._recent.copy(), self._dead_letters
        return other

    def note(self, *, is_dead_letter: bool) -> None:
        """Count one more record."""
        if not self._limited:
            return
        self._run = self._run + 1 if is_dead_letter else 0
        if len(self._recent) == WINDOW:
            self._dead_letters -= self._recent[0]
        self._recent.append(is_dead_letter)
        self._dead_letters += is_dead_letter

    def objection(self) -> str | None:
        """Why no other record may become a dead letter now, None if one may."""
        limits = self._limits
        if limits.run is not None and self._run >= limits.run:
            return f"{self._run} dead letters in a row, which is the limit (SAFE_V0_POISON_RUN_LIMIT)"
        count = len(self._recent)
        if limits.share is not None and count >= FEWEST and self._dead_letters > limits.share * count:
            return (
                f"{self._dead_letters} of the last {count} records became dead letters, "
                f"more than SAFE_V0_POISON_SHARE_LIMIT ({limits.share:g}) allows"
            )
        return None
