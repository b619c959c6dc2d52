"""What a start says while it waits: each reason once, and none too often."""

from collections.abc import Iterator, MutableMapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from consumer.errors import ConfigurationError, Transient
from consumer.settings import load
from consumer.worker import startup_wait as module
from consumer.worker.startup_wait import StartupWait

AWAY, MUTE = Transient("127.0.0.1:1 refuses connections"), Transient("127.0.0.1:1 does not answer")
SECONDS = 600


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The time, which stands still."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


@pytest.fixture
def patience(clock: SimpleNamespace, tmp_path: Path) -> StartupWait:
    assert clock.seconds == 0.0  # before it begins
    environment = {
        "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "SAFE_V0_START_PATIENCE_SECONDS": str(SECONDS),
    }
    return StartupWait(load({}, environment, tmp_path).settings)


@pytest.fixture
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    with capture_logs() as captured:
        yield captured


def told(logs: list[MutableMapping[str, Any]]) -> list[str]:
    assert {each["event"] for each in logs} <= {"waiting for the brokers"}
    return [each["why"] for each in logs]


def test_one_reason_is_told_once(
    patience: StartupWait, clock: SimpleNamespace, logs: list[MutableMapping[str, Any]]
) -> None:
    for clock.seconds in range(SECONDS):
        patience.note_failure(AWAY)
    assert told(logs) == [str(AWAY)]


def test_another_reason_is_told_too_and_not_before_half_a_minute_has_passed(
    patience: StartupWait, clock: SimpleNamespace, logs: list[MutableMapping[str, Any]]
) -> None:
    patience.note_failure(AWAY)
    for clock.seconds in range(1, 30):
        patience.note_failure(MUTE)
    assert told(logs) == [str(AWAY)]
    clock.seconds = 30
    patience.note_failure(MUTE)
    assert told(logs) == [str(AWAY), str(MUTE)]
    for clock.seconds in range(31, SECONDS):
        patience.note_failure(MUTE)
    assert told(logs) == [str(AWAY), str(MUTE)]


def test_reasons_that_come_and_go_are_told_twice_a_minute(
    patience: StartupWait, clock: SimpleNamespace, logs: list[MutableMapping[str, Any]]
) -> None:
    for clock.seconds in range(120):
        patience.note_failure(MUTE if clock.seconds % 2 else AWAY)
    assert len(told(logs)) == 4


def test_whoever_comes_too_late_is_told_the_last_reason(patience: StartupWait, clock: SimpleNamespace) -> None:
    patience.note_failure(AWAY)
    clock.seconds = SECONDS + 1
    with pytest.raises(ConfigurationError, match="does not answer"):
        patience.note_failure(MUTE)
