"""One warning when a worker is no longer ready, and one line when it is ready again."""

import time
from collections.abc import Callable, Sequence

import structlog

from consumer.telemetry.logs import ClientRecords

_log = structlog.get_logger("safe.worker")

_SETTLE_SECONDS = 3.0
"""A rebalance makes a worker not ready for a moment, which is worth no warning."""
_REMIND_SECONDS = 300.0


class ReadinessLog:
    """Follows what `/readyz` says; `note` is called about once a second.

    While the worker is not ready, what the Kafka client logs is counted and not written: in an outage it repeats, line
    by line, what the warning says once.
    """

    def __init__(
        self,
        not_ready: Callable[[], Sequence[str]],
        client_records: ClientRecords,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._not_ready = not_ready
        self._client_records = client_records
        self._clock = clock
        self._was_ready = False
        self._since: float | None = None
        self._warned_at: float | None = None

    def note(self) -> None:
        """Look at the troubles of this moment, and log what has changed."""
        troubles, now = self._not_ready(), self._clock()
        if not troubles:
            self._note_ready(now)
        elif self._was_ready:  # a start says itself what it waits for
            self._since = self._since if self._since is not None else now
            if now - self._since >= _SETTLE_SECONDS:
                self._warn(troubles, now)

    def stop(self) -> None:
        """Nothing follows readiness any more: the client's records are written again."""
        self._client_records.release()

    def _note_ready(self, now: float) -> None:
        self._was_ready = True
        if self._warned_at is not None and self._since is not None:
            seconds, held = round(now - self._since), self._client_records.release()
            _log.info("ready again", not_ready_seconds=seconds, client_errors_not_shown=held)
        self._since = self._warned_at = None

    def _warn(self, troubles: Sequence[str], now: float) -> None:
        assert self._since is not None
        if self._warned_at is None:
            self._client_records.hold()
            _log.warning("not ready", why=_in_short(troubles))
        elif now - self._warned_at >= _REMIND_SECONDS:
            held = self._client_records.held
            _log.warning(
                "still not ready",
                for_seconds=round(now - self._since), why=_in_short(troubles), client_errors_not_shown=held,
            )  # fmt: skip
        else:
            return
        self._warned_at = now


_MOST_REASONS = 5


def _in_short(troubles: Sequence[str]) -> list[str]:
    """The first reasons: a worker may have a hundred partitions, all with the same trouble."""
    more = len(troubles) - _MOST_REASONS
    return [*troubles[:_MOST_REASONS], *([f"and {more} more: see /readyz"] if more > 0 else [])]
