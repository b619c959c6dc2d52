"""The dead-letter topic as it is now."""

import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from consumer.dead_letters.selection import Selection
from consumer.kafka.connection import Connection
from consumer.kafka.reader import TopicScan, scanning
from consumer.kafka.topics import existing_topics
from consumer.settings import Settings
from consumer.terminal import message_console, progress_bar
from consumer.text import count_of
from consumer.wire.dead_letter import Letter, LetterId, read_letter
from consumer.wire.record import Record

_SLICE_MS = 3_600_000
"""Longer than any slice takes."""


@dataclass(slots=True)
class ForeignRecords:
    """Counts the records of the topic that SAFE did not write as dead letters."""

    count: int = 0
    first: LetterId | None = None

    def note(self, record: Record) -> None:
        """Count one."""
        self.count += 1
        self.first = self.first or LetterId(record.partition, record.offset)

    def remark(self) -> str | None:
        """The sentence about them, None if there are none."""
        if not self.count:
            return None
        return f"ignored {count_of(self.count, 'record')} without the safe.dlq headers (the first is {self.first})"


async def chosen_letters(
    topic: TopicScan, selection: Selection, foreign: ForeignRecords, *, prints_rows: bool = False
) -> AsyncGenerator[Letter, None]:
    """Yield the letters of a selection, by partition and offset, with a progress bar on a terminal.

    Only what the topic holds when this begins is read, so a letter that fails again meanwhile does not come back.
    Rows that are printed to the same terminal (`prints_rows`) replace the bar.
    """
    # A letter carries the time when its slice began, which is before the failure.
    since_ms = None if selection.since is None else selection.since - _SLICE_MS
    spans = selection.spans_to_read(await topic.spans(since_ms))
    total = sum(span.end - span.first for span in spans)
    is_hidden = prints_rows and sys.stdout.isatty()
    with progress_bar(message_console(), "dead letters", total, is_hidden=is_hidden) as advance:
        async with aclosing(topic.records_of(spans, advance)) as records:
            async for record in records:
                letter = read_letter(record)
                if letter is None:
                    foreign.note(record)
                elif selection.takes(letter):
                    yield letter


@asynccontextmanager
async def dead_letter_topic(settings: Settings) -> AsyncIterator[TopicScan]:
    """Open the configured topic; raises ConfigurationError if it does not exist or no broker answers."""
    name = settings.dead_letter_topic
    partitions = (await existing_topics(settings, ["dead_letter"]))[name]
    async with scanning(Connection.from_settings(settings), name, partitions) as scan:
        yield scan
