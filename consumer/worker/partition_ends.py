"""Where partitions end, and which ones an open transaction holds up: nobody reads committed records past its first one.

Where the first open transaction begins is a partition's last stable offset. Behind it a partition looks empty to such a
reader: nothing to read, nothing to wait for. But while this offset stays the same and records are behind it, it is the
same transaction that is open, for SAFE's own transactions a moment, for one whose producer hangs perhaps for ever. So
the leaders are asked for both ends of each partition again and again, whether it is being read or not.
"""

import time
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import structlog

from consumer.kafka.cluster import Ends, OpenTransaction, Place

_log = structlog.get_logger("safe.worker")

_HELD_UP_SECONDS = 30.0
"""SAFE's own transactions are over by then, also those of a worker that was killed: its successor ends them."""

_KNOWN_SECONDS = 10.0
"""What a leader has answered counts for this long: of a partition without an answer nothing is known."""

_ASK_AGAIN_SECONDS = 10.0
"""Whose transaction it is is asked for again after this long while nobody says it."""


class HeldUp(NamedTuple):
    """A partition that cannot be read past `offset`, where a transaction of the producer `by` has begun.

    The producer is None where the brokers do not name it (before Kafka 3.0).
    """

    place: Place
    offset: int
    by: OpenTransaction | None = None

    def told(self, own: Collection[int]) -> str:
        """The sentence for it; `own` are the ids of this worker's producers."""
        topic, partition = self.place
        held_up = f"partition {partition} of {topic} is held up at offset {self.offset} by an open transaction"
        if self.by is None:
            return held_up
        whose = "one of this worker's" if self.by.producer_id in own else "which is not this worker's"
        return f"{held_up} of producer {self.by.producer_id}, {whose}"


class _Known(NamedTuple):
    """What is known of a partition: its ends at a time, and since when they say that it is held up (monotonic)."""

    ends: Ends
    at: float
    since: float

    @property
    def seconds(self) -> float:
        return self.at - self.since


class PartitionEnds:
    """Follows where partitions end, for readers of committed records and for all; `clock` is monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[Place, _Known] = {}
        self._named: dict[Place, HeldUp] = {}
        self._asked_at: dict[Place, float] = {}

    def note(self, answers: Mapping[Place, Ends]) -> None:
        """Take what the leaders have answered by now; who has not answered for long is forgotten."""
        now = self._clock()
        for place, ends in answers.items():
            before = self._known.get(place)
            is_same = before is not None and before.ends.is_open and before.ends.stable == ends.stable
            self._known[place] = _Known(ends, now, before.since if before is not None and is_same else now)
        self._known = {place: known for place, known in self._known.items() if now - known.at < _KNOWN_SECONDS}
        for place, named in list(self._named.items()):
            known = self._known.get(place)
            if known is None or known.ends.stable != named.offset:
                del self._named[place]
                _log.info("a partition is no longer held up", topic=place[0], partition=place[1], offset=named.offset)

    def log_ends(self, topic: str) -> Mapping[int, int]:
        """Where the logs of a topic's partitions end, as far as that is known now."""
        return {place[1]: known.ends.log for place, known in self._known.items() if place[0] == topic}

    def unnamed(self) -> list[HeldUp]:
        """The partitions that are held up by a transaction for which it is time to call `name`.

        That is each one at first. A leader that did not say whose it is may say it later: one of them is asked again.
        """
        held_up = [HeldUp(place, known.ends.stable) for place, known in self._held_up()]
        asked = [each for each in held_up if each.place in self._named and self._named[each.place].by is None]
        again = min(asked, key=lambda each: self._asked_at[each.place], default=None)
        if again is not None and self._clock() - self._asked_at[again.place] < _ASK_AGAIN_SECONDS:
            again = None
        return [each for each in held_up if each.place not in self._named or each is again]

    def name(self, held_up: HeldUp, by: OpenTransaction | None, own: Collection[int]) -> None:
        """Note whose transaction it is, None where nobody says now, and log it."""
        topic, partition = held_up.place
        named, before = held_up._replace(by=by), self._named.get(held_up.place)
        self._named[held_up.place], self._asked_at[held_up.place] = named, self._clock()
        if named == before:
            return
        _log.warning(
            "an open transaction holds up a partition",
            topic=topic, partition=partition, offset=held_up.offset, why=named.told(own),
            producer_id=by and by.producer_id, producer_epoch=by and by.producer_epoch,
        )  # fmt: skip

    def held_up(self) -> Mapping[Place, HeldUp]:
        """The partitions whose stable offset has not moved for half a minute although records are behind it."""
        return {place: self._named.get(place, HeldUp(place, known.ends.stable)) for place, known in self._held_up()}

    def seconds(self) -> Mapping[Place, float]:
        """For how long each partition's stable offset has not moved although records are behind it; 0 if none are."""
        return {place: known.seconds for place, known in self._known.items()}

    def _held_up(self) -> list[tuple[Place, _Known]]:
        return [(place, known) for place, known in self._known.items() if known.seconds >= _HELD_UP_SECONDS]
