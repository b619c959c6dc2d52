"""`safe dead-letters list`: a row for each dead letter, and a count for each reason; nothing of an input."""

import json
import sys
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal

from consumer.dead_letters.selection import Selection
from consumer.dead_letters.topic import ForeignRecords, chosen_letters, dead_letter_topic
from consumer.exit_codes import EXIT_OK
from consumer.kafka.reader import TopicScan
from consumer.settings import Settings
from consumer.terminal import print_message
from consumer.text import printable
from consumer.wire.dead_letter import Letter
from consumer.wire.times import rfc_3339

ListFormat = Literal["console", "json"]

_NUMBERS_WIDTH = 12
"""Columns for /PARTITION/OFFSET after the name of a topic."""

_ROW = "{:<10}  {:<24}  {:<22}  {:<10}  {:<{source_width}}  {:>9}  {}"


@dataclass(frozen=True, slots=True)
class ListRequest:
    """Which dead letters to list, and how; `limit` counts rows."""

    selection: Selection
    format: ListFormat = "console"
    limit: int | None = None
    summary_alone: bool = False


@dataclass(slots=True)
class Summary:
    """For each reason, how many dead letters there are, and when the first and the last failed, in ms since 1970."""

    by_reason: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many dead letters there are of all reasons."""
        return sum(count for count, _, _ in self.by_reason.values())

    def note(self, letter: Letter) -> None:
        """Count one."""
        failed_at = letter.failed_at
        count, first, last = self.by_reason.get(letter.reason, (0, failed_at, failed_at))
        self.by_reason[letter.reason] = (count + 1, min(first, failed_at), max(last, failed_at))

    def lines(self, format_: ListFormat) -> Iterator[str]:
        """A line for each reason, the most frequent first."""
        for reason, (count, *span) in sorted(self.by_reason.items(), key=lambda item: (-item[1][0], item[0])):
            first, last = map(rfc_3339, span)
            if format_ == "json":
                yield json.dumps({"reason": reason, "count": count, "first": first, "last": last})
            else:
                yield f"{count:>9}  {printable(reason):<22}  first {first}, last {last}"


async def list_letters(settings: Settings, request: ListRequest) -> int:
    """List the topic as it is now and return the exit code, 0; raises ConfigurationError, Transient or Fatal."""
    async with dead_letter_topic(settings) as topic:
        await print_letters(topic, request, source_width=len(settings.input_topic) + _NUMBERS_WIDTH)
    return EXIT_OK


async def print_letters(topic: TopicScan, request: ListRequest, *, source_width: int) -> None:
    """Print the rows, or the summary alone, to standard output, and everything else to standard error."""
    summary, foreign = Summary(), ForeignRecords()
    has_rows = not request.summary_alone
    async with aclosing(chosen_letters(topic, request.selection, foreign, prints_rows=has_rows)) as letters:
        async for letter in letters:
            if has_rows and request.format == "console" and not summary.total:
                names = ("LETTER", "FAILED_AT", "REASON", "STAGE", "SOURCE", "BYTES", "DETAIL")
                print(_ROW.format(*names, source_width=source_width))
            if has_rows:  # json.dumps escapes all that a terminal would obey
                print(_row(letter, source_width) if request.format == "console" else json.dumps(as_document(letter)))
            summary.note(letter)
            if summary.total == request.limit:
                break
    for line in summary.lines("console" if has_rows else request.format):
        print(line, file=sys.stderr if has_rows else sys.stdout)
    for remark in _remarks(summary, foreign, request):
        print_message(remark)


def _row(letter: Letter, source_width: int) -> str:
    texts = (letter.reason, letter.stage, str(letter.source))
    cells = (str(letter.id), rfc_3339(letter.failed_at), *map(printable, texts), letter.value_bytes)
    return _ROW.format(*cells, printable(letter.detail), source_width=source_width)


def _remarks(summary: Summary, foreign: ForeignRecords, request: ListRequest) -> Iterator[str]:
    if remark := foreign.remark():
        yield remark
    if not summary.total:
        yield "there are no dead letters" if request.selection == Selection() else "no dead letters match these options"
    if summary.total == request.limit:
        yield f"the list stops at --limit {request.limit}; if there are more, --after shows the next ones"


def as_document(letter: Letter) -> dict[str, Any]:
    """What a letter's own headers say, for JSON; of the record that failed only its size."""
    return {
        "letter": str(letter.id),
        "failed_at": rfc_3339(letter.failed_at),
        "reason": letter.reason,
        "stage": letter.stage,
        "detail": letter.detail,
        "source": {**letter.source._asdict(), "timestamp": letter.timestamp},
        "group": letter.group,
        "version": letter.version,
        "value_bytes": letter.value_bytes,
        "value_omitted": letter.omitted is not None,
    }
