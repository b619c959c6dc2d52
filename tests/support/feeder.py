"""Writes inputs at a steady rate beside a test, as a producer that knows nothing of what happens to the workers."""

import threading
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, Message, Producer

from tests.support.outside import Outgoing, Outside

SLICE_SECONDS = 0.1
FLUSH_SECONDS = 120.0


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


class SteadyFeeder:
    """A thread that writes so many records a second until its block is left, whatever happens to the brokers.

    It never waits for one record before it sends the next: what brokers cannot take now, they get when they can.
    """

    def __init__(self, bootstrap_servers: str, topic: str, records: Iterator[Outgoing], *, a_second: float) -> None:
        self._topic, self._records = topic, records
        self._slice = max(1, round(a_second * SLICE_SECONDS))
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "log_level": 0,
                "enable.idempotence": True,
                "max.in.flight.requests.per.connection": 1,  # as for the client of tests.support.outside
                "linger.ms": 5,
                "message.timeout.ms": 900_000,
                # A leader that is gone, or that is none any more, is found out soon.
                "request.timeout.ms": 5_000,
                "reconnect.backoff.max.ms": 1_000,
                "topic.metadata.refresh.interval.ms": 3_000,
            }
        )
        self._stopped = threading.Event()
        self._going, self._sending = threading.Event(), threading.Lock()
        self._going.set()
        self._failures: list[str] = []
        self._thread = threading.Thread(target=self._feed, name="steady feeder")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def resume(self) -> None:
        """Go on after a pause."""
        self._going.set()

    def pause(self) -> None:
        """Send no more for now, and wait until all that was sent is acknowledged."""
        with self._sending:
            self._going.clear()
        unsent = self._producer.flush(FLUSH_SECONDS)
        assert not unsent, f"{unsent} inputs could not be written"
        assert not self._failures, f"{len(self._failures)} inputs could not be written: {self._failures[0]}"

    def _feed(self) -> None:
        due = time.monotonic()
        while not self._stopped.wait(max(0.0, due - time.monotonic())):
            with self._sending:
                for record in islice(self._records, self._slice if self._going.is_set() else 0):
                    self._send(record)
            self._producer.poll(0)
            due += SLICE_SECONDS

    def _send(self, record: Outgoing) -> None:
        assert record.partition is not None, "a steady load says where each record goes"
        self._producer.produce(
            self._topic,
            value=record.value,
            key=record.key,
            headers=list(record.headers),
            partition=record.partition,
            on_delivery=self._note,
        )

    def _note(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failures.append(str(error))
