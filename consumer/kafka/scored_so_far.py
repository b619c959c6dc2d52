"""How far an input has been scored, as `scored` itself says: each of its records names the input that it was made from.

The search goes backwards from the end of all partitions of `scored`, in steps, and ends as soon as it proves that what
it found is the newest: what is not read yet is older than the oldest record that was read of its partition. A record's
age is when it was scored, as it says itself: all records of a slice say the same, and no broker replaces it.
"""

from collections.abc import Mapping, Set
from contextlib import aclosing
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from consumer.kafka.reader import Span, TopicScan
from consumer.wire.headers import Undecodable, group_of, schema_of
from consumer.wire.record import Record
from consumer.wire.scored_record import decode_source

_FIRST_STEP = 256
_STEP_GROWTH = 4


class ScoredTo(NamedTuple):
    """What `scored` says of one partition of the input.

    The group's offset was `next_offset` or more when the newest record was written; `schema` is that of this record.
    """

    next_offset: int
    schema: int


@dataclass(slots=True)
class _Slice:
    """The records of one input partition that were scored together."""

    first: int
    last: int
    schema: int


@dataclass(slots=True)
class _Newest:
    """The two newest slices of one input partition that have been found, by when they were scored."""

    slices: dict[int, _Slice] = field(default_factory=dict)

    def note(self, scored_at: int, offset: int, schema: int) -> None:
        """Take a record into account."""
        known = self.slices.get(scored_at)
        if known is None:
            self.slices[scored_at] = _Slice(offset, offset, schema)
            if len(self.slices) > 2:
                del self.slices[min(self.slices)]
        else:
            known.first, known.last = min(known.first, offset), max(known.last, offset)

    @property
    def scored_at(self) -> int:
        """When the newest slice was scored."""
        return max(self.slices)

    def scored_to(self, *, exactly_once: bool) -> ScoredTo:
        """How far the input was read at least.

        With `at_least_once`, a slice is written before its offset is: the newest one may have no offset yet.
        """
        newest = self.slices[self.scored_at]
        if exactly_once:
            return ScoredTo(newest.last + 1, newest.schema)
        ends = [each.last + 1 for each in self.slices.values() if each is not newest]
        return ScoredTo(min([newest.first, *ends]), newest.schema)


@dataclass(frozen=True, slots=True)
class SourceSearch:
    """Looks for the newest source of some partitions of an input, among what one group has scored.

    It reads about `most_records` at most, None for no limit: it then reads all of `scored` if it must.
    """

    group: str
    input_topic: str
    exactly_once: bool
    most_records: int | None = None

    async def of(self, partitions: Set[int], topic: TopicScan) -> Mapping[int, ScoredTo]:
        """What `scored` says of these partitions; one of which nothing was found is left out.

        Raises Transient or Fatal.
        """
        found: dict[int, _Newest] = {}
        unread = {span.partition: span for span in await topic.spans() if span.first < span.end}
        step, left = _FIRST_STEP, inf if self.most_records is None else self.most_records
        while unread and left > 0 and partitions:
            oldest_read: dict[int, float] = {}
            for span in list(unread.values()):
                part = Span(span.partition, max(span.first, span.end - step), span.end)
                oldest_read[span.partition] = await self._read(topic, part, found)
                left -= part.end - part.first
                unread[span.partition] = Span(span.partition, span.first, part.first)
                if part.first == span.first:
                    del unread[span.partition], oldest_read[span.partition]
            horizon = max(oldest_read.values(), default=-inf)
            if all(each in found and found[each].scored_at > horizon for each in partitions):
                break
            step *= _STEP_GROWTH
        return {each: found[each].scored_to(exactly_once=self.exactly_once) for each in partitions & found.keys()}

    async def _read(self, topic: TopicScan, span: Span, found: dict[int, _Newest]) -> float:
        """Take a span into account; returns when its first record was scored, `inf` if it has none of this group."""
        first = inf
        async with aclosing(topic.read(span)) as slices:
            async for records in slices:
                for record in records:
                    scored_at = self._note(record, found)
                    first = scored_at if first == inf else first
        return first

    def _note(self, record: Record, found: dict[int, _Newest]) -> float:
        schema = schema_of(record.headers)
        if schema is None or group_of(record.headers) != self.group:
            return inf
        try:
            scored = decode_source(record.value)
        except Undecodable:
            return inf  # the aggregator makes a dead letter of it
        if scored.source.topic == self.input_topic:
            newest = found.setdefault(scored.source.partition, _Newest())
            newest.note(scored.scored_at, scored.source.offset, schema)
        return scored.scored_at
