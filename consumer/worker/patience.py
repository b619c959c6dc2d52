"""How long a start waits for brokers that do not answer, and what it says meanwhile."""

import time

import structlog

from consumer.errors import Transient
from consumer.kafka import TurnedAway, unusable
from consumer.settings import Settings

_log = structlog.get_logger("safe.start")

_TOLD_AGAIN_SECONDS = 30.0
"""How soon another reason is logged."""

_TURNED_AWAY_SECONDS = 10.0
"""A broker that stops or starts may close connections for as long as this; wrong settings do for ever."""


class Patience:
    """Of one start. The first failure is logged, then each that has another reason; the one that is too late raises.

    `reason` is what it waits for just now, None once the brokers have answered.
    """

    def __init__(self, settings: Settings) -> None:
        self.reason: str | None = None
        self._settings = settings
        self._seconds = settings.start_patience_seconds
        self._began = time.monotonic()
        self._turned_away_since: float | None = None
        self._told: str | None = None
        self._told_at = float("-inf")

    def note_failure(self, error: Transient) -> None:
        """Note one more failure; raises ConfigurationError if that is enough."""
        now, self.reason = time.monotonic(), str(error)
        since = self._turned_away_since = (self._turned_away_since or now) if isinstance(error, TurnedAway) else None
        settings_are_wrong = since is not None and now - since > _TURNED_AWAY_SECONDS
        if settings_are_wrong or now - self._began > self._seconds:
            raise unusable(self._settings.kafka_bootstrap_servers, error) from error
        if self.reason != self._told and now - self._told_at >= _TOLD_AGAIN_SECONDS:
            self._told, self._told_at = self.reason, now
            servers = self._settings.kafka_bootstrap_servers
            _log.warning("waiting for the brokers", servers=servers, why=self._told, up_to_seconds=self._seconds)

    def note_answer(self) -> None:
        """Note that the brokers have answered."""
        self.reason = None
        if self._told is not None:
            _log.info("the brokers answer", after_seconds=round(time.monotonic() - self._began, 1))
