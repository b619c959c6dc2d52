"""The time as the brokers give it: no record, and nothing that cannot be undone, depends on a worker's own clock.

A broker tells its time in two ways. In `exactly_once`, each transaction ends with markers, which the leaders of the
partitions stamp. In `at_least_once`, it is in the acknowledgement of each write to a topic with
message.timestamp.type=LogAppendTime. From the latest stamp on, time passes as the monotonic clock says.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable

import structlog

from consumer.wire.times import now_ms

_log = structlog.get_logger("safe.worker")

_JUMP_MS = 3_600_000
"""Two brokers whose clocks are right are never this far apart."""

_JUMP_COUNTS_SECONDS = 3_600.0
"""For this long after such a jump, the brokers count as disagreeing."""

NO_TIMESTAMP = -1
"""The timestamp of a record that has none: no broker refuses it, whatever its clock and ours say."""

_TOLD_SECONDS = 60.0
"""A smaller difference between our own clock and the brokers' is not worth a word."""


class BrokersClock:
    """What a process knows of the brokers' time; all that writes in it shares one.

    Until a broker has told its time, `now_ms` is the process's own clock, and records get no timestamp. In
    `at_least_once` without LogAppendTime no broker ever tells it. Once that is seen, records get the time of our own
    clock; they are only as right as this clock, but nothing is old because of it.
    """

    def __init__(self, own_ms: Callable[[], int] = now_ms, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By topic: held while a broker is asked for its time, so that many partitions at once ask only once."""
        self.monotonic = monotonic
        self._own_ms = own_ms
        self._ahead_ms: float | None = None  # brokers' time, less the monotonic clock
        self._given_ms = 0
        self._noted_at = self._silent_at = float("-inf")
        self._is_silent = False
        self._jump_ms = 0.0
        self._jumped_at = float("-inf")
        self._is_told = False
        self._is_never_told = self._own_is_refused = False

    def note(self, stamp_ms: int, at: float | None = None) -> None:
        """A broker has stamped something with this time at `at` (monotonic), just now if None.

        The latest stamp counts. If it is over an hour away from what brokers have said so far, one of them is wrong, or
        this machine was suspended: then our own clock is the third witness, and the one nearer to it counts.
        """
        self._noted_at = self.monotonic() if at is None else at
        self._is_silent = False
        self._believe(stamp_ms - 1_000 * self._noted_at)

    def note_least(self, stamp_ms: int) -> None:
        """A broker has stamped something with this time at some time or other: it cannot be any earlier there now."""
        if self._ahead_ms is not None and stamp_ms > self.now_ms():
            self._believe(stamp_ms - 1_000 * self.monotonic())

    def _believe(self, ahead_ms: float) -> None:
        if self._ahead_ms is not None and abs(ahead_ms - self._ahead_ms) > _JUMP_MS:
            self._note_jump(ahead_ms - self._ahead_ms)
            own_ahead_ms = self._own_ms() - 1_000 * self.monotonic()
            if abs(own_ahead_ms - self._ahead_ms) <= abs(own_ahead_ms - ahead_ms):
                return
            self._given_ms = 0
        self._ahead_ms = ahead_ms

    def note_silence(self, why: str) -> None:
        """A broker was asked for its time and has not told it; what was known before goes on to count."""
        self._silent_at = self.monotonic()
        if not self._is_silent:
            self._is_silent = True
            _log.warning("the brokers do not tell the time", why=why, is_known=self.is_known)

    def note_never_told(self) -> None:
        """A topic whose acknowledgements could tell the time is not set up for it."""
        self._is_never_told = True

    def note_refusal(self) -> None:
        """A broker has refused a record because of its time."""
        self._own_is_refused = not self.is_known

    def _note_jump(self, jump_ms: float) -> None:
        if not self.has_jumped:
            _log.warning("the brokers disagree about the time", hours=round(abs(jump_ms) / _JUMP_MS, 1))
        self._jump_ms, self._jumped_at = jump_ms, self.monotonic()

    # --- what is known ------------------------------------------------------------------------------------------------

    @property
    def is_known(self) -> bool:
        """Whether a broker has told its time."""
        return self._ahead_ms is not None

    @property
    def has_jumped(self) -> bool:
        """Whether two stamps of brokers were over an hour apart, within the last hour."""
        return self.monotonic() - self._jumped_at < _JUMP_COUNTS_SECONDS

    def was_asked_within(self, seconds: float) -> bool:
        """Whether a broker has been asked for its time this recently, and has told it or not."""
        return self.was_noted_within(seconds) or self.monotonic() - self._silent_at < seconds

    def was_noted_within(self, seconds: float) -> bool:
        """Whether a broker has told its time this recently."""
        return self.monotonic() - self._noted_at < seconds

    def now_ms(self) -> int:
        """The time in milliseconds since 1970; it never runs backwards while the brokers agree."""
        if self._ahead_ms is None:
            return self._own_ms()
        self._given_ms = max(self._given_ms, int(self._ahead_ms + 1_000 * self.monotonic()))
        return self._given_ms

    def stamp_ms(self) -> int:
        """The timestamp for a record that is written now.

        It is none at all while a broker may still tell its time, and after our own was refused: retention deletes a
        record with a wrong time, and brokers may refuse it, but not one without a time.
        """
        if self.is_known or (self._is_never_told and not self._own_is_refused):
            return self.now_ms()
        return NO_TIMESTAMP

    def known_ms(self) -> int | None:
        """The brokers' time in milliseconds since 1970; None if it is not known."""
        return self.now_ms() if self.is_known else None

    def age_seconds(self, given_ms: int | None) -> float:
        """How long ago it was what this clock gave, perhaps in another process: as long as two clocks agree on.

        It is zero where the brokers' time is not known, or is in doubt.
        """
        if given_ms is None or not self.is_known or self.has_jumped:
            return 0.0
        return max(0.0, (min(self.now_ms(), self._own_ms()) - given_ms) / 1_000)

    # --- what is told -------------------------------------------------------------------------------------------------

    def skew_seconds(self) -> float | None:
        """How far our own clock is ahead of the brokers'; negative if it is behind, None if their time is not known."""
        return None if self._ahead_ms is None else (self._own_ms() - self.now_ms()) / 1_000

    def remarks(self) -> list[str]:
        """What is wrong with the clocks, in words; no reason not to serve."""
        found = []
        skew = self.skew_seconds()
        if skew is not None and abs(skew) > _TOLD_SECONDS:
            found.append(
                f"the clock of this machine is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the brokers': "
                "one of the two is wrong, set it right. Until then, records get the brokers' time"
            )
        if self.has_jumped:
            found.append(
                f"the brokers disagree about the time by {abs(self._jump_ms) / _JUMP_MS:.1f} h: set their clocks right"
            )
        return found

    def look(self) -> None:
        """Log when our own clock begins to differ from the brokers', and when it no longer does."""
        skew = self.skew_seconds()
        is_skewed = skew is not None and abs(skew) > _TOLD_SECONDS
        if is_skewed is not self._is_told:
            self._is_told = is_skewed
            if is_skewed:
                _log.warning("the clock of this machine differs from the brokers'", ahead_seconds=round(skew or 0))
            else:
                _log.info("the clock of this machine agrees with the brokers' again")
