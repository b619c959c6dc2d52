"""`safe dead-letters list`: a row for each dead letter, and how many there are of each reason; nothing of an input."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from consumer.dead_letters.progress import reading
from consumer.dead_letters.selection import Selection
from consumer.dead_letters.topic import ReadableTopic, Strangers, chosen_letters, dead_letter_topic, spans_of
from consumer.settings import Settings
from consumer.text import printable
from consumer.wire.dead_letter import Letter
from consumer.wire.times import rfc_3339

ListFormat = Literal["table", "json"]


@dataclass(frozen=True, slots=True)
class ListRequest:
    """What of the dead letters is to be listed, and how; `limit` counts rows."""

    selection: Selection
    format: ListFormat = "table"
    limit: int | None = None
    summary_alone: bool = False


@dataclass(slots=True)
class Tally:
    """How many dead letters of one reason there are; when the first and the last failed, in ms since 1970."""

    count: int
    first: int
    last: int


@dataclass(slots=True)
class Summary:
    """The dead letters by reason."""

    tallies: dict[str, Tally] = field(default_factory=dict)

    def note(self, letter: Letter) -> None:
        """Count one."""
        tally = self.tallies.setdefault(letter.reason, Tally(0, letter.failed_at, letter.failed_at))
        tally.count += 1
        tally.first = min(tally.first, letter.failed_at)
        tally.last = max(tally.last, letter.failed_at)

    @property
    def count(self) -> int:
        """How many there are in all."""
        return sum(tally.count for tally in self.tallies.values())

    def lines(self, format_: ListFormat) -> Iterator[str]:
        """A line for each reason, the most frequent first."""
        for reason, tally in sorted(self.tallies.items(), key=lambda item: (-item[1].count, item[0])):
            first, last = rfc_3339(tally.first), rfc_3339(tally.last)
            if format_ == "json":
                yield json.dumps({"reason": reason, "count": tally.count, "first": first, "last": last})
            else:
                yield f"{tally.count:>9}  {printable(reason):<22}  {first}  {last}"


async def list_letters(settings: Settings, request: ListRequest) -> int:
    """List the topic as it is now and return the exit code, 0; raises ConfigurationError, Transient or Fatal."""
    async with dead_letter_topic(settings) as topic:
        await print_letters(topic, request, width=len(settings.input_topic) + _NUMBERS)
    return 0


async def print_letters(topic: ReadableTopic, request: ListRequest, *, width: int) -> None:
    """Print the rows, or the summary alone, on standard output, everything else on standard error."""
    row, header = _ROWS[request.format](width)
    spans = await spans_of(topic, request.selection)
    summary, strangers = Summary(), Strangers()
    with reading(spans, quiet=not request.summary_alone) as advance:
        async with chosen_letters(topic, spans, request.selection, strangers, advance) as letters:
            async for letter in letters:
                if not request.summary_alone:
                    print(*([] if summary.tallies else header), row(letter), sep="\n")
                summary.note(letter)
                if summary.count == request.limit:
                    break
    for line in summary.lines(request.format if request.summary_alone else "table"):
        print(line, file=sys.stdout if request.summary_alone else sys.stderr)
    _print_remarks(summary, strangers, request)


def _print_remarks(summary: Summary, strangers: Strangers, request: ListRequest) -> None:
    remarks = [strangers.sentence()]
    if summary.count == 0:
        remarks.append("there are no dead letters" + ("" if request.selection.is_everything else " of this choice"))
    if summary.count == request.limit:
        remarks.append(f"these are the first {request.limit}: there may be more (--after shows the next ones)")
    for remark in filter(None, remarks):
        print(f"safe: {remark}", file=sys.stderr)


# --- rows -------------------------------------------------------------------------------------------------------------

_NUMBERS = 12
"""Room for /PARTITION/OFFSET behind the name of a topic."""

_Row = Callable[[Letter], str]


def _table_row(width: int) -> tuple[_Row, list[str]]:
    def row(letter: Letter) -> str:
        return (
            f"{letter.place!s:<10}  {rfc_3339(letter.failed_at)}  {printable(letter.reason):<22}  "
            f"{printable(letter.stage):<10}  {printable(str(letter.source)):<{width}}  {letter.value_bytes:>9}  "
            f"{printable(letter.detail)}"
        )

    names = (
        f"{'LETTER':<10}  {'FAILED_AT':<24}  {'REASON':<22}  {'STAGE':<10}  {'SOURCE':<{width}}  {'BYTES':>9}  DETAIL"
    )
    return row, [names]


def _json_row(_width: int) -> tuple[_Row, list[str]]:
    # Escaped throughout: nothing is left for a terminal to obey.
    return lambda letter: json.dumps(described(letter)), []


_ROWS: dict[ListFormat, Callable[[int], tuple[_Row, list[str]]]] = {"table": _table_row, "json": _json_row}


def described(letter: Letter) -> dict[str, Any]:
    """What a letter's own headers say, as JSON has it; nothing of the record that failed but its size."""
    return {
        "letter": str(letter.place),
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
