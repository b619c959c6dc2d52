"""Two signals that look into a running worker: SIGUSR1 logs where it stands, SIGUSR2 switches debug lines on or off.

Both work while the event loop is stuck: the handlers run between two instructions of the main thread, and what they log
is logged by a thread of its own, which waits for no lock that the main thread may hold.
"""

import asyncio
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Final

import structlog

from consumer.settings.fields import LogFormat, LogLevel
from consumer.telemetry.logs import code_location, configure

_MOST_FRAMES: Final = 30
_MOST_TASKS: Final = 500

_log = structlog.get_logger("safe.worker")


class Inspection:
    """What the signals do; `level` and `format` are those of the settings."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        level: LogLevel,
        format: LogFormat | None,  # noqa: A002 (the setting's name)
    ) -> None:
        self._loop = loop
        self._level: LogLevel = level
        self._format = format
        self._shows_debug = False

    def install(self) -> None:
        """Handle both signals; for the main thread."""
        self._handle(signal.SIGUSR1, self.log_stacks)
        self._handle(signal.SIGUSR2, self.switch_debug)

    def _handle(self, number: signal.Signals, act: Callable[[], None]) -> None:
        def handler(_number: int, _frame: FrameType | None) -> None:
            threading.Thread(target=act, name=number.name, daemon=True).start()

        signal.signal(number, handler)

    def log_stacks(self) -> None:
        """Log the frames of each thread and of each task, without any value of a variable."""
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        threads = {
            names.get(ident, str(ident)): _frames(traceback.walk_stack(frame))
            for ident, frame in sys._current_frames().items()  # noqa: SLF001 (documented for this purpose)
            if ident != threading.get_ident()
        }
        tasks = sorted(asyncio.all_tasks(self._loop), key=lambda task: task.get_name())
        _log.warning(
            "stacks of threads and tasks",
            threads=threads,
            tasks=[f"{task.get_name()}: {_waits_at(task)}" for task in tasks[:_MOST_TASKS]],
            tasks_not_shown=max(0, len(tasks) - _MOST_TASKS),
        )

    def switch_debug(self) -> None:
        """Log on the level debug, or on that of the settings again."""
        self._shows_debug = not self._shows_debug
        level: LogLevel = "debug" if self._shows_debug else self._level
        configure(level, self._format)
        _log.warning("the log level was changed", level_now=level)


def _frames(stack: Iterable[tuple[FrameType, int]]) -> list[str]:
    found = [f"{code_location(frame.f_code.co_filename, line)} in {frame.f_code.co_qualname}" for frame, line in stack]
    return found[:_MOST_FRAMES]


def _waits_at(task: "asyncio.Task[object]") -> str:
    """The innermost frame of a task's own coroutine that is suspended."""
    stack = task.get_stack(limit=None)
    return _frames([(stack[-1], stack[-1].f_lineno)])[0] if stack else "done"
