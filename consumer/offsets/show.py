"""`safe offsets show`: where each partition of the input continues, who committed that, and how far it was scored."""

import json
from typing import Literal

from consumer.exit_codes import EXIT_OK
from consumer.offsets.input_offsets import InputOffset, look
from consumer.settings import Settings
from consumer.terminal import print_message
from consumer.text import count_of

ShowFormat = Literal["console", "json"]

_ROW = "{:>9}  {:>12}  {:<12}  {:>12}  {:>12}"
_NOBODY = "-"


async def show_offsets(settings: Settings, format_: ShowFormat) -> int:
    """Print a row for each partition and return the exit code, 0; raises ConfigurationError, Transient or Fatal."""
    offsets = await look(settings)
    if format_ == "console":
        print(_ROW.format("PARTITION", "OFFSET", "COMMITTED_BY", "SCORED_UP_TO", "END"))
    for each in offsets:
        print(_row(each) if format_ == "console" else json.dumps(as_document(each)))
    strange = sum(each.is_strange for each in offsets)
    if strange:
        have = "has" if strange == 1 else "have"
        print_message(f"{count_of(strange, 'offset')} {have} no note of SAFE: see `safe offsets accept --help`")
    return EXIT_OK


def _row(each: InputOffset) -> str:
    offset = _NOBODY if each.committed is None else each.committed.offset
    by = _NOBODY if each.committed is None else "SAFE" if each.is_safes else "not SAFE"
    scored = _NOBODY if each.scored_up_to is None else each.scored_up_to
    return _ROW.format(each.partition, offset, by, scored, each.end)


def as_document(each: InputOffset) -> dict[str, object]:
    """A partition, for JSON; `offset` and `note` are null without an offset."""
    return {
        "partition": each.partition,
        "offset": None if each.committed is None else each.committed.offset,
        "note": None if each.committed is None else each.committed.note,
        "is_safes": each.is_safes,
        "scored_up_to": each.scored_up_to,
        "end": each.end,
    }
