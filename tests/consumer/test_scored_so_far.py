"""How far an input has been scored, as `scored` says: the newest source is found from the end, with proof."""

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

import pytest
from typing_extensions import override

from consumer.kafka.reader import Span, TopicScan
from consumer.kafka.scored_so_far import ScoredTo, SourceSearch
from consumer.wire.headers import SCHEMA

GROUP, INPUT = "safe-v0", "input"
NOW = 1_795_291_200_000


@dataclass
class Kept:
    """A record of `scored`, with a timestamp that says nothing: a broker may have given it."""

    partition: int
    offset: int
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    topic: str = "scored"
    timestamp: int = -1
    key: bytes | None = b"any"


def scored(
    partition: int, offset: int, at: int, source: int, *, of: int = 0, topic: str = INPUT, schema: int = SCHEMA,
    group: str = GROUP,
) -> Kept:  # fmt: skip
    """A record of `scored` made from an input of partition `of`; `at` is when, counted from NOW."""
    where = {"topic": topic, "partition": of, "offset": source, "event_time": 1}
    value = {"source": where, "scored_at": NOW + at, "more": ["x"]}
    headers = [("safe.schema", str(schema).encode()), ("safe.group", group.encode())]
    return Kept(partition, offset, json.dumps(value).encode(), headers)


@dataclass
class Scored(TopicScan):
    """A topic in memory; it remembers what it was asked."""

    records: list[Kept]
    ends: dict[int, int] = field(default_factory=dict)
    asked: list[Span] = field(default_factory=list)

    @override
    async def spans(self, since_ms: int | None = None) -> list[Span]:
        partitions = {record.partition for record in self.records} | self.ends.keys()
        last = {
            each: max((r.offset + 1 for r in self.records if r.partition == each), default=0) for each in partitions
        }
        return [Span(each, 0, self.ends.get(each, last[each])) for each in sorted(partitions)]

    @override
    async def read(self, span: Span) -> AsyncGenerator[Sequence[Kept], None]:
        self.asked.append(span)
        found = [r for r in self.records if r.partition == span.partition and span.first <= r.offset < span.end]
        for at in range(0, len(found), 2):
            yield found[at : at + 2]
            yield []


async def found(records: list[Kept], *partitions: int, exactly_once: bool = True) -> dict[int, ScoredTo]:
    return dict(await SourceSearch(GROUP, INPUT, exactly_once=exactly_once).of(set(partitions), Scored(records)))


async def test_the_newest_source_counts_wherever_it_stands_and_of_one_slice_the_last() -> None:
    records = [
        scored(0, 0, 5, source=7),
        scored(0, 1, 9, source=11),
        scored(0, 2, 9, source=13),
        scored(1, 0, 9, source=12),
        scored(1, 1, 12, source=3, of=1),
    ]
    assert await found(records, 0, 1, 2) == {0: ScoredTo(14, SCHEMA), 1: ScoredTo(4, SCHEMA)}


async def test_after_a_replay_the_newest_counts_not_the_greatest() -> None:
    records = [scored(0, 0, 5, source=700), scored(1, 0, 9, source=11, schema=1)]
    assert await found(records, 0) == {0: ScoredTo(12, 1)}


async def test_with_at_least_once_the_newest_slice_may_not_be_committed() -> None:
    first = [scored(0, 0, 5, source=7), scored(1, 0, 5, source=8)]
    second = [scored(0, 1, 9, source=10), scored(1, 1, 9, source=12)]  # 9 became a dead letter, perhaps
    again = [scored(0, 2, 11, source=10)]
    assert await found(first, 0, exactly_once=False) == {0: ScoredTo(7, SCHEMA)}
    assert await found([*first, *second], 0, exactly_once=False) == {0: ScoredTo(9, SCHEMA)}
    assert await found([*first, *second, *again], 0, exactly_once=False) == {0: ScoredTo(10, SCHEMA)}


NOTHING = [
    scored(0, 0, 5, source=7, group="others"),
    scored(0, 0, 5, source=7, topic="another input"),
    scored(0, 0, 5, source=7, of=1),
    Kept(0, 0, b"{", [("safe.schema", b"2"), ("safe.group", GROUP.encode())]),
    Kept(0, 0, None, [("safe.schema", b"2"), ("safe.group", GROUP.encode())]),
    Kept(0, 0, scored(0, 0, 0, 7).value, [("safe.group", GROUP.encode())]),  # of what schema?
    Kept(0, 0, scored(0, 0, 0, 7).value, []),
]


@pytest.mark.parametrize("record", NOTHING)
async def test_what_says_nothing_of_this_input_is_passed_over(record: Kept) -> None:
    assert await found([record], 0) == {}
    assert await found([], 0) == {}


BUSY = [scored(0, offset, offset, source=offset, of=1) for offset in range(10_000)]


async def test_only_as_much_is_read_as_proves_that_nothing_is_newer() -> None:
    # Partition 1 of `scored` is quiet: what it holds of the input's partition 0 is older than much of partition 0.
    topic = Scored([*BUSY, scored(1, 0, 9_900, source=41), scored(2, 0, 7_000, source=5, of=2)])
    search = SourceSearch(GROUP, INPUT, exactly_once=True)
    assert await search.of({0, 1}, topic) == {0: ScoredTo(42, SCHEMA), 1: ScoredTo(10_000, SCHEMA)}
    assert sum(span.end - span.first for span in topic.asked) < 300
    topic.asked.clear()
    assert (await search.of({2}, topic))[2] == ScoredTo(6, SCHEMA)
    assert 3_000 < sum(span.end - span.first for span in topic.asked if span.partition == 0) < 10_000
    assert len(topic.asked) == len(set(topic.asked))


async def test_a_limit_ends_the_search() -> None:
    records = [scored(0, 0, 0, source=3), *(scored(0, at, at, source=at, of=1) for at in range(1, 10_000))]
    topic = Scored(records)
    assert await SourceSearch(GROUP, INPUT, exactly_once=True, most_records=2_000).of({0}, topic) == {}
    assert sum(span.end - span.first for span in topic.asked) < 6_000
    assert await SourceSearch(GROUP, INPUT, exactly_once=True).of({0}, topic) == {0: ScoredTo(4, SCHEMA)}


async def test_where_only_markers_stand_the_search_goes_on() -> None:
    topic = Scored([scored(0, 0, 0, source=3)], ends={0: 3_000})
    assert await SourceSearch(GROUP, INPUT, exactly_once=True).of({0}, topic) == {0: ScoredTo(4, SCHEMA)}
    assert await SourceSearch(GROUP, INPUT, exactly_once=True).of(set(), topic) == {}
