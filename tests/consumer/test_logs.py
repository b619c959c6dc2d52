"""Logs: one shape, no secrets, no floods."""

import asyncio
import json
import logging
import ssl
import sys
import warnings
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
import structlog
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NotCoordinatorForGroupError,
)

from consumer import text
from consumer.dead_letter_reasons import Poison
from consumer.errors import Fatal
from consumer.settings.fields import LogFormat, LogLevel
from consumer.telemetry import logs

Written = Callable[[], str]

SECRET = "hunter2-never-shown"  # noqa: S105 (it is none)


class Colour(Enum):
    RED = "r"


class KafkaConnectionError(Exception):
    """Stands where the client's own class of this name does."""


KafkaConnectionError.__module__ = "aiokafka.errors"


@pytest.fixture(autouse=True)
def written(capsys: pytest.CaptureFixture[str]) -> Iterator[Written]:
    """What has been written to stderr since it was last asked for; logging is left as it was found."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield lambda: capsys.readouterr().err
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


def lines(written: Written) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written().splitlines()]


def only(written: Written) -> dict[str, Any]:
    (line,) = lines(written)
    return line


def caught(error: Exception) -> Exception:
    try:
        raise error
    except type(error) as raised:
        return raised


def test_our_records_and_those_of_libraries_have_one_shape(written: Written) -> None:
    logs.configure("info", "json")
    structlog.get_logger("consumer.worker.main").info("started", role="all", partitions=3)
    logging.getLogger("aiohttp.server").warning("slow: %d ms", 12)
    ours, theirs = lines(written)
    assert list(ours) == ["timestamp", "level", "event", "logger", "role", "partitions"]
    assert list(theirs) == ["timestamp", "level", "event", "logger"]
    assert ours["event"] == "started"
    assert (theirs["level"], theirs["event"], theirs["logger"]) == ("warning", "slow: 12 ms", "aiohttp.server")


def test_a_timestamp_is_utc_with_milliseconds(written: Written) -> None:
    logs.configure("info", "json")
    structlog.get_logger("consumer").info("x")
    timestamp = only(written)["timestamp"]
    assert len(timestamp) == len("2026-11-21T20:00:00.000Z")
    assert timestamp.endswith("Z")


def test_without_a_format_what_is_no_terminal_gets_json(written: Written) -> None:
    logs.configure("info", None)
    structlog.get_logger("consumer").info("x")
    assert only(written)["event"] == "x"


def test_without_a_format_a_terminal_gets_lines_for_people(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    logs.configure("info", None)
    structlog.get_logger("consumer").info("started", role="all")
    text = written()
    assert not text.startswith("{")
    assert "started" in text


def test_configuring_again_replaces_what_was_configured(written: Written) -> None:
    logger = structlog.get_logger("consumer")
    logs.configure("info", "json")
    logs.configure("error", "json")
    logger.warning("not wanted")
    logger.error("once")
    assert only(written)["event"] == "once"


def test_fields_bound_to_the_context_are_told(written: Written) -> None:
    logs.configure("info", "json")
    with structlog.contextvars.bound_contextvars(partition=7):
        structlog.get_logger("consumer").info("x")
    assert only(written)["partition"] == 7


def test_a_field_cannot_take_the_place_of_the_first_four(written: Written) -> None:
    logs.configure("info", "json")
    structlog.get_logger("consumer").info("x", timestamp=1, logger="other", level="none")
    line = only(written)
    assert (line["timestamp"] != 1, line["logger"], line["level"]) == (True, "consumer", "info")


FIELDS = [
    # (a field's value, as it is told)
    ("text", "text"),
    (1.5, 1.5),
    (float("nan"), "nan"),  # JSON knows none
    (None, None),
    (Colour.RED, "RED"),
    (Path("/a/b"), "/a/b"),
    ((1, "a"), [1, "a"]),
    ({"a": {1: b"x"}}, {"a": {"1": "<bytes>"}}),
    (SECRET.encode(), "<bytes>"),  # a record's value
    (object(), "<object>"),
    (ValueError(SECRET), "ValueError"),
    (Poison("too_deep", "depth 65"), "Poison: too_deep: depth 65"),
]


@pytest.mark.parametrize(("value", "told"), FIELDS, ids=[str(told) for _, told in FIELDS])
def test_a_field_is_told_as_a_plain_value(written: Written, value: object, told: object) -> None:
    logs.configure("info", "json")
    structlog.get_logger("consumer").info("x", field=value)
    assert only(written)["field"] == told


TRICKS = [
    "\x00",
    "\n",
    "\r",
    "\x1b[2J",
    "\x7f",
    "\x85",  # next line, of C1
    "\x9b31m",  # ESC [ in one character
    "\u202e",  # right-to-left override
    "\u2066",  # isolate
    "\u200f",  # mark
    "\u061c",
    "\u2028",  # line separator
    "\ud800",  # lone surrogate
]


@pytest.mark.parametrize("trick", TRICKS, ids=ascii)
@pytest.mark.parametrize("format_", ["json", "console"])
def test_no_character_that_a_terminal_obeys_is_written(written: Written, trick: str, format_: LogFormat) -> None:
    logs.configure("info", format_)
    structlog.get_logger("consumer").info(f"event{trick}", field=f"x{trick}", nested=[f"x{trick}"])
    logging.getLogger("library").info("argument %s", f"x{trick}")
    text = written()
    assert text.count("\n") == 2  # one for each record
    assert trick[0] not in text.replace("\n", "")


def test_letters_of_any_language_stay_for_a_person(written: Written) -> None:
    logs.configure("info", "console")
    structlog.get_logger("consumer").info("x", batch="Größe 大")
    assert "Größe 大" in written()


# --- exceptions

WORDS = [
    # (exception, what is said of it)
    (ValueError(SECRET), "ValueError"),
    (UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET), "UnicodeDecodeError"),
    (Fatal("topic x is missing"), "Fatal: topic x is missing"),
    (Fatal("id \x1b[2J"), "Fatal: id \\u001b[2J"),  # no trust even there
    (KafkaConnectionError("no connection to broker:9092"), "KafkaConnectionError: no connection to broker:9092"),
    (FileNotFoundError(2, "No such file", SECRET), "FileNotFoundError: No such file or directory"),
    (OSError(SECRET), "OSError"),
    (ssl.SSLError(1, f"[SSL] {SECRET}"), "SSLError: reason unknown"),  # only OpenSSL sets one
]


@pytest.mark.parametrize(("error", "words"), WORDS, ids=[words for _, words in WORDS])
def test_strangers_words_are_not_repeated(error: BaseException, words: str) -> None:
    assert logs.describe(error) == words


@pytest.mark.parametrize("format_", ["json", "console"])
@pytest.mark.parametrize("logger", ["consumer.worker.poll_loop", "aiokafka.consumer", "aiohttp.server"])
def test_an_exception_is_told_by_types_and_frames(written: Written, format_: LogFormat, logger: str) -> None:
    logs.configure("info", format_)
    error = Fatal("stopped")
    error.__cause__ = caught(ValueError(SECRET))
    logging.getLogger(logger).error("it failed", exc_info=caught(error))
    text = written()
    assert SECRET not in text
    assert "Fatal: stopped" in text
    assert "caused by ValueError" in text
    assert "at consumer/test_logs.py:" in text


def test_our_own_exception_is_told_with_the_event(written: Written) -> None:
    logs.configure("info", "json")
    error = caught(KeyError(SECRET))
    structlog.get_logger("consumer").error("it failed", exc_info=error)
    first, *frames = only(written)["exception"]
    assert first == "KeyError"
    assert frames == [frame for frame in frames if frame.startswith("  at consumer/test_logs.py:")]


def test_an_exception_as_an_argument_is_told_by_its_type(written: Written) -> None:
    logs.configure("info", "json")
    logging.getLogger("aiokafka").error("failed: %s, %r", ValueError(SECRET), KafkaConnectionError("gone"))
    logging.getLogger("aiokafka").error("failed: %(error)s", {"error": ValueError(SECRET)})
    assert [line["event"] for line in lines(written)] == [
        "failed: ValueError, 'KafkaConnectionError: gone'",
        "failed: ValueError",
    ]


def test_an_exception_nobody_awaited_is_not_quoted_by_asyncio(written: Written) -> None:
    logs.configure("debug", "json")
    loop = asyncio.new_event_loop()
    future: asyncio.Future[None] = loop.create_future()
    future.set_exception(ValueError(SECRET))
    del future
    loop.close()
    text = written()
    assert SECRET not in text
    assert json.loads(text)["event"] == "Future exception was never retrieved"


def test_a_group_of_exceptions_tells_each_member() -> None:
    group = caught(ExceptionGroup(SECRET, [caught(ValueError(SECRET)), caught(Fatal("stop"))]))
    told = [line for line in logs.exception_lines(group) if not line.startswith("  at ")]
    assert told == ["ExceptionGroup", "with ValueError", "with Fatal: stop"]


def test_a_circle_of_causes_and_a_deep_recursion_end() -> None:
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    assert len(logs.exception_lines(first)) == 200

    def deeper() -> None:
        deeper()

    with pytest.raises(RecursionError) as raised:
        deeper()
    assert len(logs.exception_lines(raised.value)) < 40


def test_the_place_of_a_defect_is_in_our_own_files() -> None:
    value: Any = 5
    with pytest.raises(TypeError) as raised:
        text.printable(value)  # fails there, called from here
    assert logs.raised_at(raised.value).startswith("consumer/text.py:")
    assert logs.raised_at(ValueError()) == "an unknown place"


def test_a_record_that_cannot_be_put_together_is_not_quoted(written: Written) -> None:
    logs.Stderr(logging.Formatter()).handle(record("library", "%d", SECRET))  # pytest's own handler would raise
    assert only(written)["event"] == "a record could not be logged"


def test_a_warning_is_logged_without_its_source_line(written: Written) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logs.configure("info", "json")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert only(written)["event"].endswith("DeprecationWarning: old")


# --- levels and floods

LEVELS = [
    # (configured, logger, level, whether it is written)
    ("debug", "consumer.worker.poll_loop", "debug", True),
    ("debug", "safe.stage", "debug", True),
    ("info", "consumer.worker.poll_loop", "debug", False),
    ("debug", "aiokafka.conn", "debug", False),  # passwords and payloads
    ("debug", "aiokafka.conn", "info", True),
    ("info", "aiokafka.conn", "info", False),
    ("info", "aiokafka.conn", "warning", False),  # each rebalance is one
    ("info", "aiokafka.conn", "error", True),
    ("error", "aiokafka.conn", "warning", False),
    ("debug", "kafka", "debug", False),
    ("debug", "asyncio", "debug", False),  # any library's
    ("debug", "aiohttp.access", "info", False),  # each scrape
    ("error", "aiohttp.access", "warning", False),
]


@pytest.mark.parametrize(("configured", "logger", "level", "wanted"), LEVELS)
def test_a_level_is_kept(written: Written, configured: LogLevel, logger: str, level: LogLevel, *, wanted: bool) -> None:
    logs.configure(configured, "json")
    logging.getLogger(logger).log(logging.getLevelNamesMapping()[level.upper()], "x")
    assert bool(written()) == wanted


def test_a_clients_debug_is_silent_even_where_its_logger_was_set_to_it(written: Written) -> None:
    logs.configure("debug", "json")
    chatty = logging.getLogger("aiokafka.test_chatty")
    chatty.setLevel(logging.DEBUG)
    chatty.debug("password %s", SECRET)
    assert written() == ""


def record(logger: str, message: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord(logger, logging.ERROR, "", 0, message, args, None)


def throttle_of(records: logs.ClientRecords | None = None) -> logs.Throttle:
    return logs.Throttle(records or logs.ClientRecords())


def test_a_client_says_the_same_once_and_then_how_often_more() -> None:
    throttle = throttle_of()
    alike = [throttle.admits(record("aiokafka.conn", "no node %d", n), now=n / 10) for n in range(4)]
    assert alike == [True, False, False, False]
    assert throttle.admits(record("aiokafka.conn", "another"), now=1)
    assert throttle.admits(record("aiokafka.client", "no node %d", 1), now=1)
    assert list(throttle.reports(now=59.9)) == []
    (report,) = throttle.reports(now=60)
    assert (report.name, report.levelno) == ("aiokafka.conn", logging.ERROR)
    assert report.getMessage() == "suppressed 3 repeats of: no node %d"
    assert throttle.admits(record("aiokafka.conn", "no node %d", 9), now=60)


def test_what_a_client_says_while_it_is_held_is_counted_and_not_told_later() -> None:
    records = logs.ClientRecords()
    throttle = throttle_of(records)
    assert [throttle.admits(record("aiokafka", "no node"), now=0) for _ in range(3)] == [True, False, False]
    records.hold()
    assert not any(throttle.admits(record("aiokafka", f"no {n}"), now=1) for n in range(5))
    assert throttle.admits(record("consumer.worker.main", "ours"), now=1)
    assert list(throttle.reports(now=70)) == []
    assert records.release() == 5 + 2  # with what was suppressed before
    assert list(throttle.reports(now=200)) == []
    assert throttle.admits(record("aiokafka", "no node"), now=200)


def of_a_coordinator(error: BaseException) -> logging.LogRecord:
    said = "Group Coordinator Request failed: %s"
    return logging.LogRecord("aiokafka.consumer.group_coordinator", logging.ERROR, "", 0, said, (error,), None)


def test_a_coordinator_that_is_missing_for_a_moment_is_no_error_and_one_that_stays_missing_is() -> None:
    for error in (GroupCoordinatorNotAvailableError(), GroupLoadInProgressError(), NotCoordinatorForGroupError()):
        throttle = throttle_of()
        assert not any(throttle.admits(of_a_coordinator(error), now=seconds) for seconds in range(10))
        assert throttle.admits(of_a_coordinator(error), now=10)
        assert not throttle.admits(of_a_coordinator(error), now=11)
        [report] = throttle.reports(now=60)
        assert report.getMessage().startswith("suppressed 11 repeats of: Group Coordinator")


def test_what_has_healed_is_not_told_afterwards() -> None:
    throttle = throttle_of()
    assert not throttle.admits(of_a_coordinator(GroupCoordinatorNotAvailableError()), now=0)
    assert list(throttle.reports(now=60)) == []


def test_a_coordinator_that_refuses_is_told_at_once() -> None:
    assert throttle_of().admits(of_a_coordinator(GroupAuthorizationFailedError()), now=0)


def test_our_own_records_are_never_suppressed() -> None:
    throttle = throttle_of()
    assert all(throttle.admits(record("consumer.worker.poll_loop", "x"), now=0) for _ in range(20))


def test_a_flood_of_different_messages_is_a_flood() -> None:
    throttle = throttle_of()
    admitted = [throttle.admits(record("aiokafka", f"message {n}"), now=0) for n in range(10_000)]
    assert sum(admitted) <= 261
    assert sum("suppressed" in report.getMessage() for report in throttle.reports(now=60)) == 1


def test_the_end_of_a_flood_is_told_by_the_next_record_of_anyone(written: Written) -> None:
    now = 0.0
    logs.configure("info", "json")
    handler = logs.Stderr(logging.Formatter("%(name)s %(message)s"), clock=lambda: now)
    for n in range(9):
        handler.handle(record("aiokafka", "no node %d", n))
    now = 61.0
    handler.handle(record("consumer.worker.poll_loop", "connected"))
    assert written().splitlines()[-2:] == [
        "aiokafka suppressed 8 repeats of: no node %d",
        "consumer.worker.poll_loop connected",
    ]
