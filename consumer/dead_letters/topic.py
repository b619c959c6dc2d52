"""The dead-letter topic as it is now."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from consumer.dead_letters.selection import Selection
from consumer.errors import ConfigurationError
from consumer.kafka import Connection, Span, TopicDescription, scanning
from consumer.kafka.topics import connected_cluster, no_leader
from consumer.settings import Settings
from consumer.wire.dead_letter import Letter, Place, read_letter
from consumer.wire.record import Record


class ReadableTopic(Protocol):
    """A topic whose committed records can be read, partition by partition."""

    async def spans(self, since_ms: int | None = None) -> list[Span]:
        """What there is at this moment of every partition, from its first record stamped so or later."""
        ...

    def read(self, span: Span) -> AsyncGenerator[Sequence[Record], None]:
        """Yield the records of a span in order; raises Transient."""
        ...


@dataclass(slots=True)
class Strangers:
    """Records of the topic that are no dead letters of SAFE's."""

    count: int = 0
    first: Place | None = None

    def note(self, record: Record) -> None:
        """Count one."""
        self.count += 1
        self.first = self.first or Place(record.partition, record.offset)

    def sentence(self) -> str | None:
        """What is to be said of them, None for none."""
        if self.count == 0:
            return None
        records = "record is no dead letter" if self.count == 1 else "records are no dead letters"
        return f"{self.count} {records} of SAFE's (the first is {self.first}): the safe.dlq headers are not there"


async def spans_of(topic: ReadableTopic, selection: Selection) -> list[Span]:
    """What of the topic as it is now must be read for a selection, the partitions in order."""
    return selection.narrowed(await topic.spans(selection.stamped_from))


def _unheard(_offsets: int) -> None:
    """Nobody waits long enough for a bar."""


@asynccontextmanager
async def chosen_letters(
    topic: ReadableTopic,
    spans: Iterable[Span],
    selection: Selection,
    strangers: Strangers | None = None,
    advance: Callable[[int], None] = _unheard,
) -> AsyncIterator[AsyncIterator[Letter]]:
    """Read the letters of a selection in order of partition and offset; `advance` hears how many offsets are read."""
    async with aclosing(_chosen(topic, spans, selection, strangers or Strangers(), advance)) as letters:
        yield letters


async def _chosen(
    topic: ReadableTopic,
    spans: Iterable[Span],
    selection: Selection,
    strangers: Strangers,
    advance: Callable[[int], None],
) -> AsyncGenerator[Letter, None]:
    for span in spans:
        next_offset = span.first
        async with aclosing(topic.read(span)) as blocks:
            async for records in blocks:
                for record in records:
                    letter = read_letter(record)
                    if letter is None:
                        strangers.note(record)
                    elif selection.takes(letter):
                        yield letter
                if records:
                    advance(records[-1].offset + 1 - next_offset)
                    next_offset = records[-1].offset + 1
        advance(span.end - next_offset)


@asynccontextmanager
async def dead_letter_topic(settings: Settings) -> AsyncIterator[ReadableTopic]:
    """Open the configured topic; raises ConfigurationError if it does not exist or no broker answers."""
    name = settings.dead_letter_topic
    found = await described(settings, [name])
    if name not in found:
        raise ConfigurationError(f"there is no topic {name} (SAFE_V0_DEAD_LETTER_TOPIC); `safe topics create` makes it")
    async with scanning(Connection.from_settings(settings), name, found[name].partitions) as scan:
        yield scan


async def described(settings: Settings, topics: Sequence[str]) -> dict[str, TopicDescription]:
    """What the cluster knows of some topics, those that it does not have left out.

    Raises ConfigurationError if a partition has no leader: nothing could be read from it or written to it.
    """
    async with connected_cluster(settings) as cluster:
        found = await cluster.describe(topics)
        leaderless = (await cluster.look(topics)).leaderless
    if leaderless:
        raise ConfigurationError("; ".join(no_leader(topic, partitions) for topic, partitions in leaderless.items()))
    return found
