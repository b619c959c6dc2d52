"""One warning for each time that a worker is not ready, and one line when it is again."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from consumer.telemetry.logs import ClientRecords
from consumer.worker.readiness_log import ReadinessLog


class Worker:
    """What `/readyz` says, in a time of its own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.troubles: list[str] = []
        self.records = ClientRecords()
        self.log = ReadinessLog(lambda: self.troubles, self.records, lambda: self.now)

    def says(self, *troubles: str, seconds: int) -> list[dict[str, Any]]:
        """Let it say this for so many seconds; returns what is logged, without the event's level of detail."""
        self.troubles = list(troubles)
        with capture_logs() as logged:
            for _ in range(seconds):
                self.log.note()
                self.now += 1
        return [dict(each) for each in logged]


def test_an_outage_is_two_lines() -> None:
    worker = Worker()
    assert worker.says(seconds=10) == []
    outage = "the cluster has not answered for 7 s"
    assert worker.says(outage, seconds=200) == [{"event": "not ready", "why": [outage], "log_level": "warning"}]
    assert worker.records.is_holding
    worker.records.held = 116
    (again,) = worker.says(seconds=10)
    assert again == {
        "event": "ready again", "not_ready_seconds": 200, "client_errors_not_shown": 116, "log_level": "info"
    }  # fmt: skip
    assert not worker.records.is_holding


def test_a_moment_is_worth_no_line() -> None:
    worker = Worker()
    worker.says(seconds=1)
    assert worker.says("scorer: not yet a member of its group", seconds=3) == []
    assert worker.says(seconds=5) == []


def test_a_long_outage_is_told_again_every_five_minutes() -> None:
    worker = Worker()
    worker.says(seconds=1)
    logged = worker.says("no answer", seconds=1_000)
    assert [each["event"] for each in logged] == ["not ready"] + ["still not ready"] * 3
    assert logged[1]["for_seconds"] == pytest.approx(303, abs=1)


def test_a_start_says_itself_what_it_waits_for() -> None:
    worker = Worker()
    assert worker.says("starting: reading the test cases", seconds=500) == []
    assert worker.says(seconds=5) == []


def test_of_many_reasons_the_first_are_told() -> None:
    worker = Worker()
    worker.says(seconds=1)
    (warning,) = worker.says(*(f"partition {at} waits" for at in range(100)), seconds=10)
    assert warning["why"] == [*(f"partition {at} waits" for at in range(5)), "and 95 more: see /readyz"]


def test_at_the_end_the_clients_records_are_written_again() -> None:
    worker = Worker()
    worker.says(seconds=1)
    worker.says("no answer", seconds=10)
    worker.log.stop()
    assert not worker.records.is_holding
