"""Why a partition is not served at the moment, for `/readyz` and the log."""

import time

import structlog

from consumer.errors import PartitionLost, SafeError

_log = structlog.get_logger("safe.stage")

_TAKING_UP = "being prepared"
_LOG_AGAIN_SECONDS = 30.0


class PartitionTroubles:
    """The troubles of one partition, each logged when it begins and when it ends.

    `trouble` keeps it from being served, `unread` keeps it from being read further; None for none. To take a partition
    up again does not end a trouble, only a commit or reaching the end does: `is_proven` says whether that has happened.
    """

    def __init__(self, role: str, topic: str, partition: int) -> None:
        self.trouble: str | None = _TAKING_UP
        self.unread: str | None = None
        self.is_proven = True
        self._where = {"role": role, "topic": topic, "partition": partition}
        self._logged_reason: str | None = None
        self._logged_at = float("-inf")

    @property
    def told(self) -> list[str]:
        """All that is wrong with the partition; empty while it is read and served."""
        return [trouble for trouble in (self.trouble, self.unread) if trouble is not None]

    def note_waiting(self, error: SafeError) -> None:
        """The partition waits: log it once, and other reasons later, at most every 30 seconds."""
        why, now = str(error), time.monotonic()
        begins = self.trouble is None or self.trouble == _TAKING_UP
        if begins or (why != self._logged_reason and now - self._logged_at > _LOG_AGAIN_SECONDS):
            self._logged_reason, self._logged_at = why, now
            _log.warning("the partition waits", **self._where, why=why)
        self.trouble = why

    def note_unread(self, error: SafeError) -> None:
        """The partition cannot be read further; what was read before is still served."""
        if self.unread is None:
            _log.warning("the partition waits", **self._where, why=str(error))
        self.unread = str(error)

    def note_lost(self, error: PartitionLost) -> None:
        """The slice in hand was dropped, and the partition is taken up again."""
        self.is_proven = False
        self.trouble = f"being prepared again: {error}"
        _log.warning("the records in progress were dropped", **self._where, why=str(error))

    def note_attached(self) -> None:
        """The partition is read again."""
        self.unread = None
        if self.is_proven:
            self.trouble = None

    def note_served(self) -> None:
        """Something was committed, or the end was reached: the trouble is over."""
        if not self.is_proven:
            _log.info("the partition is served again", **self._where)
        self.is_proven = True
        self.trouble = None
