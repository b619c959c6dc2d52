"""What is read again while a process runs, above all secrets: a reading that fails leaves the last good one in place.

A file may be half written, or gone for a moment, just when it is read. So a failure is logged and tried again, and
never takes away what works.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import structlog

from consumer.errors import ConfigurationError

_log = structlog.get_logger("safe.secrets")

T = TypeVar("T")


class LastGood(Generic[T]):
    """The last good value of something that is read from files; `what` names it in the log.

    `trouble` says why the latest reading failed, None if it did not. The first reading raises ConfigurationError.
    """

    def __init__(self, what: str, read: Callable[[], T]) -> None:
        self.value = read()
        self.trouble: str | None = None
        self._what = what
        self._read = read
        self._turn = asyncio.Lock()
        self._begun = 0

    async def read_again(self) -> T:
        """Read in a thread, since a file may be on a slow disk; returns the value that counts now.

        Hundreds of connections may be made at once: those that wait share a reading that began after they asked.
        """
        begun = self._begun
        async with self._turn:
            if self._begun > begun:
                return self.value
            self._begun += 1
            try:
                value = await asyncio.to_thread(self._read)
            except ConfigurationError as error:
                self._note_failure(str(error))
            else:
                self._note(value)
        return self.value

    def _note_failure(self, why: str) -> None:
        if why != self.trouble:
            _log.warning("cannot be read again; what was read before stays in use", what=self._what, why=why)
        self.trouble = why

    def _note(self, value: T) -> None:
        if value != self.value:
            _log.info("has changed, and is used from now on", what=self._what)
        elif self.trouble is not None:
            _log.info("can be read again", what=self._what)
        self.value, self.trouble = value, None
