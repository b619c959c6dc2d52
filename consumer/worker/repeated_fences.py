"""Where a partition's producer is fenced again and again: another one with its transactional id has taken over.

That is how a partition changes its owner. It is a fault where the group goes on assigning the partition to this worker.
"""

import time
from collections import deque

from consumer.errors import Fatal
from consumer.kafka.protocol import Identity

_FENCES_WITHIN_SECONDS = 60.0
_TOO_OFTEN = 5
"""`safe offsets accept` takes the ids of all partitions, and may be called more than once."""


class FenceWatch:
    """Counts how often another producer takes over one partition; `partition` is its name, such as input/0."""

    def __init__(self, partition: str) -> None:
        self._partition = partition
        self._fenced_at: deque[float] = deque(maxlen=_TOO_OFTEN)
        self._refused_as: Identity | None = None

    def note_refusal(self, producer: Identity | None) -> None:
        """Note that the broker refused this producer as fenced."""
        self._refused_as = producer

    def forget_refusal(self) -> None:
        """Note that the next epoch says nothing of another producer."""
        self._refused_as = None

    def count(self, now: Identity | None) -> None:
        """Count a take-over by another producer, of a partition that the group has since confirmed to be ours.

        `now` is our producer as it started again. Raises Fatal for the fifth one within a minute.
        """
        before, self._refused_as = self._refused_as, None
        if before is None or now is None or not now.tells_of_another_since(before):
            return
        self._fenced_at.append(time.monotonic())
        if len(self._fenced_at) == _TOO_OFTEN and self._fenced_at[-1] - self._fenced_at[0] < _FENCES_WITHIN_SECONDS:
            raise Fatal(
                f"another producer took over {self._partition} {_TOO_OFTEN} times within a minute although the "
                "group assigns it to this worker: something else uses its transactional ids; find it and stop it"
            )
