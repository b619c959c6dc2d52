"""Which dead letters a command is about: by reason, source partition, time of failure, or by name."""

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError
from consumer.kafka.reader import Span
from consumer.text import visible
from consumer.wire.dead_letter import Letter, LetterId, Name, read_name
from consumer.wire.times import milliseconds_of

_UNITS_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class Selection:
    """A choice of dead letters; what is empty or None does not restrict it: Selection() is all of them.

    `partitions` are those of the source; `since` (included) and `until` (not included) bound the time of the failure,
    in ms since 1970; `after` excludes that letter and all before it, in the order of partition and offset.
    """

    names: frozenset[Name] = frozenset()
    reasons: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()
    since: int | None = None
    until: int | None = None
    after: LetterId | None = None

    def takes(self, letter: Letter) -> bool:
        """Whether a letter is chosen."""
        if self.names:
            return not self.names.isdisjoint((letter.id, letter.source))
        return (
            (not self.reasons or letter.reason in self.reasons)
            and (not self.partitions or letter.source.partition in self.partitions)
            and (self.since is None or letter.failed_at >= self.since)
            and (self.until is None or letter.failed_at < self.until)
            and (self.after is None or letter.id > self.after)
        )

    def spans_to_read(self, spans: Iterable[Span]) -> list[Span]:
        """The part of each partition that must be read, in the order of partitions; those with none are left out."""
        narrow = [self._narrowed(span) for span in sorted(spans)]
        return [span for span in narrow if span.first < span.end]

    def _narrowed(self, span: Span) -> Span:
        first, end = span.first, span.end
        if self.after is not None and span.partition <= self.after.partition:
            first = max(first, self.after.offset + 1) if span.partition == self.after.partition else end
        ids = [name for name in self.names if isinstance(name, LetterId)]
        if ids and len(ids) == len(self.names):  # a letter that is named by its source may be anywhere
            offsets = [letter.offset for letter in ids if letter.partition == span.partition]
            first, end = max(first, min(offsets, default=end)), min(end, max(offsets, default=first) + 1)
        return Span(span.partition, first, end)


def _read_after(text: str) -> LetterId:
    with contextlib.suppress(ConfigurationError):
        if isinstance(name := read_name(text), LetterId):
            return name
    raise ConfigurationError(f"--after {visible(text)} is not PARTITION/OFFSET of the dead-letter topic")


def read_selection(
    names: Sequence[str] = (),
    reasons: Sequence[str] | None = None,
    partitions: Sequence[int] | None = None,
    since: str | None = None,
    until: str | None = None,
    after: str | None = None,
    *,
    now_ms: int,
) -> Selection:
    """Read the options of a command; raises ConfigurationError."""
    after_letter = None if after is None else _read_after(after)
    chosen = Selection(
        names=frozenset(map(read_name, names)),
        reasons=frozenset(reasons or ()),
        partitions=frozenset(partitions or ()),
        since=None if since is None else moment_of("--since", since, now_ms),
        until=None if until is None else moment_of("--until", until, now_ms),
        after=after_letter,
    )
    if names and chosen != Selection(names=chosen.names):
        raise ConfigurationError("choose dead letters by name or by options, not by both: leave one of them out")
    return chosen


def moment_of(flag: str, text: str, now_ms: int) -> int:
    """Milliseconds since 1970 of a time (RFC 3339 with a zone), or of a duration before now such as 2h."""
    duration = re.fullmatch("([0-9]{1,9})([smhd])", text, re.ASCII)
    if duration is not None:
        return now_ms - int(duration[1]) * _UNITS_MS[duration[2]]
    try:
        return milliseconds_of(text)
    except Poison as error:
        raise ConfigurationError(
            f"{flag} {visible(text)} is neither a time with a zone, such as 2026-03-02T08:00:00Z, nor how long ago, "
            "such as 90s, 30m, 2h or 7d"
        ) from error
