"""`safe results --outputs`: what the input topic holds of some batches, as a file of events; it may be patient data."""

import asyncio
import json
import sys
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError
from consumer.exit_codes import EXIT_OK
from consumer.kafka.connection import Connection
from consumer.kafka.reader import scanning
from consumer.kafka.topics import existing_topics
from consumer.results.chosen import Batches
from consumer.settings import Loaded, Settings
from consumer.terminal import message_console, print_message, progress_bar
from consumer.text import count_of
from consumer.wire.input_event import InputRules, decode, document_of
from consumer.wire.record import Record
from consumer.wire.times import rfc_3339
from safe_core.result_version import believed_time


def print_outputs(loaded: Loaded, batches: Batches, since: int | None) -> int:
    """Print the outputs of some batches; raises ConfigurationError where there are none, Transient or Fatal."""
    asyncio.run(_print(loaded, batches, since))
    return EXIT_OK


async def _print(loaded: Loaded, batches: Batches, since: int | None) -> None:
    settings = loaded.settings
    topic, reading = settings.input_topic, _Reading(settings, batches)
    partitions = (await existing_topics(settings, ["input"]))[topic]
    connection = Connection.from_settings(settings, loaded.settings_now)
    async with scanning(connection, topic, partitions) as scan:
        spans = await scan.spans(since)
        total = sum(max(0, span.end - span.first) for span in spans)
        with progress_bar(message_console(), topic, total, is_hidden=sys.stdout.isatty()) as advance:
            async with aclosing(scan.records_of(spans, advance)) as records:
                async for record in records:
                    if (event := reading.event(record)) is not None:
                        print(json.dumps(event))
    if not reading.found:
        raise ConfigurationError(
            f"topic {topic} holds no outputs {batches.asked}: retention has removed them, or they never existed"
            f"{batches.there}"
        )
    print_message(
        f"{count_of(reading.found, 'output')} {batches.asked}; they may contain patient data", *reading.remarks
    )


@dataclass(slots=True)
class _Reading:
    """Reads the records of the input topic as a worker does."""

    settings: Settings
    batches: Batches
    found: int = 0
    unusable: int = 0
    _rules: InputRules = field(init=False)

    def __post_init__(self) -> None:
        self._rules = InputRules(self.settings.max_value_bytes, frozenset(self.settings.input_types))

    def event(self, record: Record) -> dict[str, Any] | None:
        """Give an event of one of the batches, with the time that decides which output of a case is the latest."""
        try:
            event = decode(record, self._rules)
        except Poison:
            self.unusable += 1
            return None
        if event is None or not self.batches.take(event.batch_id):
            return None
        self.found += 1
        document = document_of(record)
        believed = believed_time(event.event_time, record.timestamp, self.settings.event_time_ahead_seconds * 1_000)
        if document.get("generated_at") is None or believed != event.event_time:
            with suppress(OSError, OverflowError, ValueError):  # a producer may stamp a record with any number
                document["generated_at"] = rfc_3339(believed)
        return document

    @property
    def remarks(self) -> list[str]:
        """Say what else the topic holds."""
        if not self.unusable:
            return []
        return [f"{count_of(self.unusable, 'record')} can never be scored; `safe dead-letters list` says why"]
