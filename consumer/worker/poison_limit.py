"""When a partition stops rather than go on burying: a bad deployment must not drain a topic into the dead letters."""

from collections import deque
from dataclasses import dataclass

WINDOW = 1_000
"""The share is measured over this many of the partition's most recent records."""

FEWEST = 100
"""A share of fewer records says nothing."""


@dataclass(frozen=True, slots=True)
class PoisonLimits:
    """What is too much, None for no limit: `run` dead letters in a row, more than a `share` of the last WINDOW."""

    run: int | None = None
    share: float | None = None


class PoisonWatch:
    """Follows how the records of one partition end; what is ignored counts for nothing.

    A slice is tried on a copy, which takes the place of the original once it is committed.
    """

    def __init__(self, limits: PoisonLimits) -> None:
        self._limits = limits
        self._limited = limits != PoisonLimits()
        self._run = 0
        self._last: deque[bool] = deque(maxlen=WINDOW)
        self._buried = 0

    def copy(self) -> "PoisonWatch":
        """The same history, to go on from."""
        other = PoisonWatch(self._limits)
        other._run, other._last, other._buried = self._run, self._last.copy(), self._buried
        return other

    def note(self, *, buried: bool) -> None:
        """One more record has come to its end."""
        if not self._limited:
            return
        self._run = self._run + 1 if buried else 0
        if len(self._last) == WINDOW:
            self._buried -= self._last[0]
        self._last.append(buried)
        self._buried += buried

    def objection(self) -> str | None:
        """Why no other record may become a dead letter now, None if one may."""
        limits = self._limits
        if limits.run is not None and self._run >= limits.run:
            return f"the last {self._run} records became dead letters, which is SAFE_V0_POISON_RUN_LIMIT"
        if limits.share is not None and len(self._last) >= FEWEST and self._buried > limits.share * len(self._last):
            return (
                f"{self._buried} of the last {len(self._last)} records became dead letters, "
                f"more than SAFE_V0_POISON_SHARE_LIMIT ({limits.share:g}) allows"
            )
        return None
