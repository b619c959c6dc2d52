"""The offsets of the scorers' group, each with how far its partition has been scored."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from consumer.errors import ConfigurationError
from consumer.kafka.connection import Connection
from consumer.kafka.group_offsets import Committed
from consumer.kafka.reader import scanning
from consumer.kafka.scored_so_far import ScoredTo, SourceSearch
from consumer.kafka.topics import connected_cluster, describe_topics
from consumer.settings import Settings
from consumer.text import count_of
from consumer.wire.offset_note import is_noted, note_of

_MOST_RECORDS = 1_000_000
"""A command reads at most this many records of `scored` to find the newest source: it takes about half a minute."""


@dataclass(frozen=True, slots=True)
class InputOffset:
    """One partition of the input.

    `scored_up_to` is the least that the offset of SAFE itself can have been, None if nothing says it; `first` and `end`
    are those of what can be read now.
    """

    partition: int
    committed: Committed | None
    scored_up_to: int | None
    first: int
    end: int

    @property
    def is_safes(self) -> bool:
        """Whether SAFE has committed the offset."""
        return self.committed is not None and is_noted(*self.committed)

    @property
    def is_strange(self) -> bool:
        """Whether there is an offset that SAFE has not committed."""
        return self.committed is not None and not self.is_safes


async def look(settings: Settings, *, scored: bool = True) -> Sequence[InputOffset]:
    """All partitions of the input; with how far they have been `scored`, which takes longer.

    Raises ConfigurationError, Transient or Fatal.
    """
    counts = await _partition_counts(settings, *([settings.scored_topic] if scored else []))
    inputs = range(counts[settings.input_topic])
    connection = Connection.from_settings(settings)
    async with connected_cluster(settings) as cluster:
        committed = await cluster.committed(settings.kafka_group_id, settings.input_topic, inputs)
    async with scanning(connection, settings.input_topic, len(inputs)) as topic:
        spans = await topic.spans()
    found: Mapping[int, ScoredTo] = {}
    if scored:
        search = SourceSearch(
            settings.kafka_group_id,
            settings.input_topic,
            exactly_once=settings.delivery == "exactly_once",
            most_records=_MOST_RECORDS,
        )
        async with scanning(connection, settings.scored_topic, counts[settings.scored_topic]) as topic:
            found = await search.of(frozenset(inputs), topic)
    return [
        InputOffset(
            span.partition,
            committed.get(span.partition),
            found[span.partition].next_offset if span.partition in found else None,
            span.first,
            span.end,
        )
        for span in spans
    ]


async def _partition_counts(settings: Settings, *more: str) -> dict[str, int]:
    """How many partitions the input and other topics have; raises ConfigurationError if one of them is missing."""
    wanted = (settings.input_topic, *more)
    described = await describe_topics(settings, wanted)
    missing = [topic for topic in wanted if topic not in described]
    if missing:
        raise ConfigurationError(f"there is no topic {missing[0]}, or this user may not see it")
    return {topic: described[topic].partitions for topic in wanted}


def chosen(offsets: Sequence[InputOffset], partitions: Collection[int]) -> Sequence[InputOffset]:
    """Those of some partitions, all if none is named; raises ConfigurationError for one that does not exist."""
    unknown = sorted(set(partitions) - {each.partition for each in offsets})
    if unknown:
        raise ConfigurationError(
            f"there is no partition {unknown[0]}: the input has {count_of(len(offsets), 'partition')}"
        )
    return [each for each in offsets if not partitions or each.partition in partitions]


def noted(offset: int) -> Committed:
    """An offset as SAFE commits it."""
    return Committed(offset, note_of(offset))
