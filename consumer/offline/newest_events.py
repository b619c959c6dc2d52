"""Whether one event of JSONL files is dated so far ahead of all others that its date must be wrong."""

from pathlib import Path
from typing import NamedTuple

from consumer.text import count_of, visible
from consumer.wire.times import rfc_3339

_DAY_MS = 86_400_000


class DatedEvent(NamedTuple):
    """When an event says that it was generated (ms since 1970), its test case, and its place in its file, in words."""

    event_time: int
    test_id: str
    path: Path
    place: str


class NewestEvents:
    """The newest two of all events that are noted."""

    def __init__(self) -> None:
        self._newest: list[DatedEvent] = []

    def note(self, event: DatedEvent) -> None:
        """Take in one event."""
        if len(self._newest) < 2 or event.event_time > self._newest[1].event_time:
            self._newest = sorted((*self._newest, event), key=lambda each: -each.event_time)[:2]

    def remark(self) -> str | None:
        """Say that the newest one is more than a day ahead of the others: it decides its case, whatever comes later."""
        if len(self._newest) < 2:
            return None
        newest, other = self._newest
        days, rest = divmod(newest.event_time - other.event_time, _DAY_MS)
        if (days, rest) <= (1, 0):
            return None
        where = f"{visible(str(newest.path))}, {newest.place}"
        return (
            f"{visible(newest.test_id)} ({where}): generated_at is {rfc_3339(newest.event_time)}, "
            f"{count_of(days, 'day')} after the newest of all other events. If that is wrong, the event hides later "
            "ones of its test case"
        )
