"""One line on stderr for each thing that happened, of one shape for our records and for those of libraries.

What a line may say is limited (contract.md, "Confidentiality"): an exception that is not ours may quote an input or
a password, so it is logged by its type and its frames; a field is a plain value, never the repr of an object.
"""

import contextlib
import json
import logging
import math
import os
import socket
import ssl
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from itertools import islice
from pathlib import PurePath
from types import NoneType
from typing import Any, Final

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger
from typing_extensions import override

from consumer.errors import SafeError
from consumer.settings.fields import LogFormat, LogLevel
from consumer.text import printable

_OURS: Final = ("safe", "consumer", "safe_core")
# At DEBUG a Kafka client prints passwords and payloads; at INFO it comments on each join, so ask for debug to see that.
_CLIENTS: Final = ("aiokafka", "kafka", "opentelemetry")
_CLIENT_LEVELS: Final[Mapping[LogLevel, int]] = {"debug": logging.INFO, "info": logging.ERROR}
_REQUESTS: Final = "aiohttp.access"  # at INFO a line for each scrape and probe


def configure(level: LogLevel, format: LogFormat | None) -> None:  # noqa: A002 (the name of the setting)
    """Send every record of the process to stderr; no format means console on a terminal, else JSON."""
    console = sys.stderr.isatty() if format is None else format == "console"
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, Stderr)]:
        root.removeHandler(handler)
    root.addHandler(Stderr(_formatter(console=console), is_json=format == "json"))
    root.setLevel(level.upper())
    for client in _CLIENTS:
        logging.getLogger(client).setLevel(_CLIENT_LEVELS.get(level, root.level))
    logging.getLogger(_REQUESTS).setLevel(max(root.level, logging.WARNING))
    logging.captureWarnings(capture=True)
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,  # a second configure() must reach the loggers of every module
    )


def writes_json() -> bool:
    """Tell whether configure() was asked for JSON by name."""
    return any(isinstance(handler, Stderr) and handler.is_json for handler in logging.getLogger().handlers)


# --- what may be logged of an exception


def describe(error: BaseException) -> str:
    """Name an exception: with its message if that is known not to quote an input, else only by its type."""
    name = type(error).__name__
    if isinstance(error, SafeError) or type(error).__module__.partition(".")[0] in _CLIENTS:
        return printable(f"{name}: {error}")
    if isinstance(error, ssl.SSLError):
        return f"{name}: {getattr(error, 'reason', 'reason unknown')}"
    if isinstance(error, socket.gaierror):  # its numbers are the resolver's own
        return f"{name}: {error.strerror}"
    if isinstance(error, OSError) and error.errno is not None:  # without the file's name, which may hold a test_id
        return f"{name}: {os.strerror(error.errno)}"
    return name


def exception_lines(error: BaseException) -> list[str]:
    """Describe an exception, its frames and its causes; never source lines, variables or a library's messages."""
    return list(islice(_lines(error, ""), 200))  # causes can form a circle


def _lines(error: BaseException, prefix: str) -> Iterator[str]:
    yield prefix + describe(error)
    for frame, line in deque(traceback.walk_tb(error.__traceback__), maxlen=30):
        yield f"  at {code_location(frame.f_code.co_filename, line)} in {frame.f_code.co_qualname}"
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions:
            yield from _lines(member, "with ")
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _lines(cause, "caused by ")


def raised_at(error: BaseException) -> str:
    """Name the innermost line of SAFE's own files that an exception passed through, as consumer/worker/main.py:41."""
    frames = list(traceback.walk_tb(error.__traceback__))
    ours = [(frame, line) for frame, line in frames if _belongs_to(frame.f_globals.get("__name__", ""), _OURS)]
    for frame, line in reversed(ours or frames):
        return code_location(frame.f_code.co_filename, line)
    return "an unknown place"


def code_location(file: str, line: int) -> str:
    """Name a line of a file by the package that it belongs to, as consumer/worker/main.py:41."""
    parts = PurePath(file).parts
    begins = max((at for at, part in enumerate(parts) if part in _OURS), default=len(parts) - 2)
    return f"{'/'.join(parts[begins:])}:{line}"


# --- from a record to a line


def _formatter(*, console: bool) -> logging.Formatter:
    rendering: list[Processor] = [_json_line]
    if console:
        rendering = [_for_a_person, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    return structlog.stdlib.ProcessorFormatter(
        processors=[
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.contextvars.merge_contextvars,
            _with_exception,
            _with_plain_values,
            _in_order,
            *rendering,
        ]
    )


def _with_exception(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    given = event.pop("exc_info", None)
    event.pop("stack_info", None)
    error = given[1] if isinstance(given, tuple) else given
    if error is True:
        error = sys.exc_info()[1]
    if isinstance(error, BaseException):
        event["exception"] = exception_lines(error)
    # Further lines of asyncio contain the repr of a task, which quotes its exception; those of a warning, source code.
    if event["logger"] in {"asyncio", "py.warnings"}:
        event["event"] = str(event["event"]).partition("\n")[0]
    return event


def _with_plain_values(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {name: _plain(value) for name, value in event.items()}


def _plain(value: object) -> object:
    for types, convert in _CONVERSIONS:
        if isinstance(value, types):
            return convert(value)
    return f"<{type(value).__name__}>"


_CONVERSIONS: Final[tuple[tuple[type | tuple[type, ...], Callable[[Any], object]], ...]] = (
    (Enum, lambda value: value.name),
    (float, lambda value: value if math.isfinite(value) else str(value)),  # JSON knows no NaN
    ((NoneType, int, str), lambda value: value),
    (BaseException, describe),
    (PurePath, str),
    (Mapping, lambda value: {str(key): _plain(member) for key, member in value.items()}),
    ((tuple, list, set, frozenset), lambda value: [_plain(member) for member in value]),
)


def _in_order(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    timestamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    first = {"timestamp": timestamp, **{name: event.pop(name) for name in ("level", "event", "logger")}}
    return {**first, **event, **first}  # a field cannot take the place of one of these


def _json_line(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    # Pure ASCII: valid whatever encoding stderr has, and nothing is left for a terminal to obey.
    return json.dumps(event).replace("\x7f", "\\u007f")


def _for_a_person(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    event = {name: printable(value) if isinstance(value, str) else value for name, value in event.items()}
    if "exception" in event:
        event["exception"] = "\n".join(event["exception"])
    return event


# --- from a line to stderr


_WINDOW_SECONDS: Final = 60.0
_HEAL_SECONDS: Final = 10.0
_COORDINATOR_CODES: Final = (14, 15, 16)
"""Kafka's codes for a coordinator that is loading, not available yet, or moving: the client asks again at once."""


class ClientRecords:
    """Whether what the Kafka clients log is written, or only counted: one for the process, as their loggers are."""

    def __init__(self) -> None:
        self.is_holding = False
        self.held = 0

    def hold(self) -> None:
        """From now on, count."""
        self.is_holding = True

    def release(self) -> int:
        """From now on, write; returns how many records were not written."""
        held, self.is_holding, self.held = self.held, False, 0
        return held


CLIENT_RECORDS: Final = ClientRecords()


@dataclass(slots=True)
class _Window:
    begun: float
    level: int
    records: int = 0
    is_told: bool = False

    @property
    def suppressed(self) -> int:
        """How many of its records were not let through, though others were."""
        return self.records - 1 if self.is_told else 0


class Throttle:
    """Lets through the first of a Kafka client's similar records: in an outage it writes 130 lines a second.

    Of a coordinator that is not available, as in the first seconds of a new cluster, nothing is let through unless it
    lasts.
    While its records are held, none is let through, and what was suppressed is part of what is held.
    """

    def __init__(self, client_records: ClientRecords) -> None:
        self._client_records = client_records
        self._windows: dict[tuple[str, str], _Window] = {}

    def admits(self, record: logging.LogRecord, now: float) -> bool:
        """Count a record with those of the same logger and message template; `now` is monotonic, in seconds."""
        if not _belongs_to(record.name, _CLIENTS):
            return True
        if self._client_records.is_holding:
            self._client_records.held += 1
            return False
        template = str(record.msg) if len(self._windows) < 256 else "(further messages)"
        window = self._windows.setdefault((record.name, template), _Window(now, record.levelno))
        window.records += 1
        if window.is_told or (_may_heal(record) and now - window.begun < _HEAL_SECONDS):
            return False
        window.is_told = True
        return True

    def reports(self, now: float) -> Iterator[logging.LogRecord]:
        """Forget the windows that have ended; give a record for each that suppressed something."""
        if self._client_records.is_holding:
            self._client_records.held += sum(window.suppressed for window in self._windows.values())
            self._windows.clear()
        for logger, template in [key for key, window in self._windows.items() if window.begun + _WINDOW_SECONDS <= now]:
            window = self._windows.pop((logger, template))
            if window.suppressed:
                args = (window.suppressed, template)
                yield logging.LogRecord(logger, window.level, "", 0, "suppressed %d repeats of: %s", args, None)


def _may_heal(record: logging.LogRecord) -> bool:
    args = record.args if isinstance(record.args, tuple) else ()
    return any(getattr(arg, "retriable", False) and getattr(arg, "errno", None) in _COORDINATOR_CODES for arg in args)


class Stderr(logging.StreamHandler):  # type: ignore[type-arg]  # generic in the stubs alone
    """The only handler of the process; `clock` is monotonic, in seconds. `is_json`: it was asked for by name."""

    def __init__(
        self, formatter: logging.Formatter, clock: Callable[[], float] = time.monotonic, *, is_json: bool = False
    ) -> None:
        super().__init__(sys.stderr)
        self.is_json = is_json
        self.setFormatter(formatter)
        self._throttle = Throttle(CLIENT_RECORDS)
        self._clock = clock

    @override
    def emit(self, record: logging.LogRecord) -> None:
        now = self._clock()
        for report in list(self._throttle.reports(now)):  # to log one may itself log something
            super().emit(report)
        # A library's DEBUG is never wanted, whatever level one of its loggers was given.
        wanted = record.levelno >= logging.INFO or _belongs_to(record.name, _OURS)
        if wanted and self._throttle.admits(record, now):
            super().emit(record)

    @override
    def format(self, record: logging.LogRecord) -> str:
        if not record.args:
            return super().format(record)
        kept = logging.makeLogRecord(record.__dict__)  # other handlers see the record as it was
        kept.args = _with_described_errors(record.args)
        return super().format(kept)

    @override
    def handleError(self, record: logging.LogRecord) -> None:
        """Report that a record was lost; logging's own handler would print its arguments."""
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(
                '{"level": "error", "event": "a record could not be logged", "logger": "consumer.telemetry.logs"}\n'
            )


def _with_described_errors(args: tuple[object, ...] | Mapping[str, object]) -> tuple[object, ...] | dict[str, object]:
    if isinstance(args, Mapping):
        return {name: describe(arg) if isinstance(arg, BaseException) else arg for name, arg in args.items()}
    return tuple(describe(arg) if isinstance(arg, BaseException) else arg for arg in args)


def _belongs_to(logger: str, packages: tuple[str, ...]) -> bool:
    return logger.partition(".")[0] in packages
