"""Writes inputs at a steady rate beside a test, as a producer that knows nothing of what happens to the workers."""

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from tests.support.outside import Outgoing, Outside

SLICE_SECONDS = 0.1


class Feeder:
    """A thread that writes records in order, so many a second; leaving the block stops it early."""

    def __init__(self, outside: Outside, topic: str, records: Sequence[Outgoing], *, records_a_second: float) -> None:
        self._outside, self._topic, self._records = outside, topic, records
        self._slice = max(1, round(records_a_second * SLICE_SECONDS))
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._feed, name="feeder")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()

    @property
    def is_done(self) -> bool:
        """Whether everything has been written; a failure of the thread is raised here."""
        if self._failure is not None:
            raise AssertionError("the inputs could not be written") from self._failure
        return not self._thread.is_alive()

    def _feed(self) -> None:
        try:
            self._write()
        except BaseException as failure:  # noqa: BLE001 # the thread's outer edge: the test raises it
            self._failure = failure

    def _write(self) -> None:
        due = time.monotonic()
        for start in range(0, len(self._records), self._slice):
            self._outside.produce(self._topic, self._records[start : start + self._slice])
            due += SLICE_SECONDS
            if self._stopped.wait(max(0.0, due - time.monotonic())):
                return
