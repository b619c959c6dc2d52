"""Which dead letters are meant: by what failed, where, when, or by name."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from consumer.errors import ConfigurationError, Poison
from consumer.kafka import Span
from consumer.text import shown
from consumer.wire.dead_letter import Letter, Name, Place, read_name
from consumer.wire.times import milliseconds_of

_UNITS_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

_SLICE_MS: Final = 3_600_000
"""More than a slice ever takes."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A choice of dead letters; what is empty or None does not restrict it.

    `partitions` are those of the source; `since` (included) and `until` (not included) bound the time of the failure,
    in ms since 1970; `after` is the last letter that is not wanted, in the order of partition and offset.
    """

    names: frozenset[Name] = frozenset()
    reasons: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()
    since: int | None = None
    until: int | None = None
    after: Place | None = None

    @property
    def is_everything(self) -> bool:
        """Whether it restricts nothing."""
        return self == Selection()

    @property
    def stamped_from(self) -> int | None:
        """From which record timestamp on the topic must be read: a letter is stamped when its slice was begun."""
        return None if self.since is None else self.since - _SLICE_MS

    def takes(self, letter: Letter) -> bool:
        """Whether a letter is meant."""
        if self.names:
            return letter.place in self.names or letter.source in self.names
        return (
            (not self.reasons or letter.reason in self.reasons)
            and (not self.partitions or letter.source.partition in self.partitions)
            and (self.since is None or letter.failed_at >= self.since)
            and (self.until is None or letter.failed_at < self.until)
            and (self.after is None or letter.place > self.after)
        )

    def narrowed(self, spans: Iterable[Span]) -> list[Span]:
        """What of the topic's partitions must be read, the partitions in order."""
        narrow = [self._named_part(self._later_part(span)) for span in sorted(spans)]
        return [span for span in narrow if span.first < span.end]

    def _later_part(self, span: Span) -> Span:
        if self.after is None or span.partition > self.after.partition:
            return span
        begins = self.after.offset + 1 if span.partition == self.after.partition else span.end
        return span._replace(first=max(span.first, begins))

    def _named_part(self, span: Span) -> Span:
        places = [name for name in self.names if isinstance(name, Place)]
        if len(places) < len(self.names) or not places:
            return span  # by its source, a letter may stand anywhere
        offsets = [place.offset for place in places if place.partition == span.partition]
        if not offsets:
            return span._replace(end=span.first)
        return span._replace(first=max(span.first, min(offsets)), end=min(span.end, max(offsets) + 1))


def read_selection(
    *,
    names: Sequence[str] = (),
    reasons: Sequence[str] = (),
    partitions: Sequence[int] = (),
    since: str | None = None,
    until: str | None = None,
    after: str | None = None,
    now_ms: int,
) -> Selection:
    """Read the options of a command; raises ConfigurationError."""
    chosen = Selection(
        names=frozenset(map(read_name, names)),
        reasons=frozenset(reasons),
        partitions=frozenset(partitions),
        since=None if since is None else moment_of("--since", since, now_ms),
        until=None if until is None else moment_of("--until", until, now_ms),
        after=None if after is None else _place_of("--after", after),
    )
    if names and chosen != Selection(names=chosen.names):
        raise ConfigurationError("a dead letter is named by itself: leave the other options that choose some out")
    return chosen


def _place_of(flag: str, text: str) -> Place:
    name = read_name(text)
    if not isinstance(name, Place):
        raise ConfigurationError(f"{flag} {shown(text)} is not PARTITION/OFFSET of the dead-letter topic")
    return name


def moment_of(flag: str, text: str, now_ms: int) -> int:
    """Milliseconds since 1970 of a time (RFC 3339 with a zone), or of a duration before now such as 2h."""
    duration = re.fullmatch("([0-9]{1,9})([smhd])", text, re.ASCII)
    if duration is not None:
        return now_ms - int(duration[1]) * _UNITS_MS[duration[2]]
    try:
        return milliseconds_of(text)
    except Poison as error:
        raise ConfigurationError(
            f"{flag} {shown(text)} is neither a time with a zone, such as 2026-03-02T08:00:00Z, nor how long ago, "
            "such as 90s, 30m, 2h or 7d"
        ) from error
