"""How long a start waits for brokers that do not answer, and what it logs meanwhile."""

import time

import structlog

from consumer.errors import Transient
from consumer.kafka.reachability import TurnedAway, unusable
from consumer.settings import Settings

_log = structlog.get_logger("safe.start")

_LOG_AGAIN_SECONDS = 30.0
"""A reason that differs from the last one is logged after this time."""

_TURNED_AWAY_SECONDS = 10.0
"""A broker that stops or starts may close connections for this long; with wrong settings it does so for ever."""


class StartupWait:
    """How long one start waits: it logs the first failure, and later ones with another reason, until time is up.

    `reason` is why it waits, None once the brokers have answered.
    """

    def __init__(self, settings: Settings) -> None:
        self.reason: str | None = None
        self._settings = settings
        self._seconds = settings.start_patience_seconds
        self._began = time.monotonic()
        self._turned_away_since: float | None = None
        self._logged_reason: str | None = None
        self._logged_at = float("-inf")

    def note_failure(self, error: Transient) -> None:
        """Note one more failure; raises ConfigurationError if time is up."""
        now, self.reason = time.monotonic(), str(error)
        since = self._turned_away_since = (self._turned_away_since or now) if isinstance(error, TurnedAway) else None
        settings_are_wrong = since is not None and now - since > _TURNED_AWAY_SECONDS
        if settings_are_wrong or now - self._began > self._seconds:
            raise unusable(self._settings.kafka_bootstrap_servers, error) from error
        if self.reason != self._logged_reason and now - self._logged_at >= _LOG_AGAIN_SECONDS:
            self._logged_reason, self._logged_at = self.reason, now
            servers = self._settings.kafka_bootstrap_servers
            _log.warning("waiting for the brokers", servers=servers, why=self.reason, up_to_seconds=self._seconds)

    def note_answer(self) -> None:
        """Note that the brokers have answered."""
        self.reason = None
        if self._logged_reason is not None:
            _log.info("the brokers answer", after_seconds=round(time.monotonic() - self._began, 1))
