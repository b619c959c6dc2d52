"""A client that is not SAFE and joins its consumer group: librdkafka, which reads and commits as any service would."""

import threading
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, TopicPartition

POLL_SECONDS = 0.1
CLIENT_ID = "another-service"
REFUSALS = ("INCONSISTENT_GROUP_PROTOCOL", "The group id does not exist")
"""What a classic member is told by a group that has no assignor in common with it, and one of the newer protocol."""


class Stranger:
    """A consumer in a group from the beginning of a block to its end, in a thread of its own.

    `partitions` is what it has been assigned, None before the first time; `errors` are those that it was told.
    """

    def __init__(self, servers: str, group: str, topic: str, **settings: Any) -> None:
        self.errors: list[str] = []
        self.partitions: tuple[int, ...] | None = None
        self.read = 0
        options = {
            "bootstrap.servers": servers,
            "group.id": group,
            "client.id": CLIENT_ID,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
        self._consumer = Consumer(options | {name.replace("_", "."): value for name, value in settings.items()})
        self._consumer.subscribe([topic], on_assign=self._note, on_revoke=self._forget)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._poll)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.leave()

    @property
    def is_refused(self) -> bool:
        """Whether the group has said that it takes no such member."""
        return any(refusal in error for error in self.errors for refusal in REFUSALS)

    def leave(self) -> None:
        """Leave the group; may be called again."""
        self._ends.set()
        self._thread.join()

    def _note(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.partitions = tuple(sorted(each.partition for each in partitions))

    def _forget(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self.partitions = ()

    def _poll(self) -> None:
        try:
            while not self._ends.is_set():
                message = self._consumer.poll(POLL_SECONDS)
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    self.read += 1
                else:
                    self.errors.append(str(error))
        finally:
            self._consumer.close()
