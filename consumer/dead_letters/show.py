"""`safe dead-letters show`: one dead letter; what the record itself held is shown only on request."""

import base64
import sys
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from consumer.dead_letters.list import ListFormat, as_document
from consumer.dead_letters.selection import Selection
from consumer.dead_letters.topic import ForeignRecords, chosen_letters, dead_letter_topic
from consumer.errors import ConfigurationError
from consumer.exit_codes import EXIT_OK
from consumer.kafka.reader import TopicScan
from consumer.settings import Settings
from consumer.terminal import print_json
from consumer.text import printable, visible
from consumer.wire.dead_letter import Letter, Name
from consumer.wire.times import rfc_3339


@dataclass(frozen=True, slots=True)
class ShowRequest:
    """Which dead letter to show, and how; `raw` writes the value's bytes and nothing else."""

    name: Name
    format: ListFormat = "console"
    include_value: bool = False
    raw: bool = False

    def __post_init__(self) -> None:
        if self.raw and not self.include_value:
            raise ConfigurationError("--raw writes the value, which may hold patient data: give --include-value too")
        if self.raw and self.format == "json":
            raise ConfigurationError(
                "--raw writes the value's bytes as they are, --format json writes JSON: give only one of the two"
            )


async def show_letter(settings: Settings, request: ShowRequest) -> int:
    """Show one dead letter and return the exit code, 0; raises ConfigurationError, Transient or Fatal."""
    async with dead_letter_topic(settings) as topic:
        letter = await find_letter(topic, request.name)
    if letter is None:
        raise ConfigurationError(
            f"there is no dead letter {visible(str(request.name))} in {settings.dead_letter_topic}: "
            "retention has removed it, or it never existed"
        )
    print_letter(letter, request)
    return EXIT_OK


def print_letter(letter: Letter, request: ShowRequest) -> None:
    """Print what is asked for; raises ConfigurationError for `raw` if the letter does not hold the value."""
    if request.raw:
        if letter.record.value is None:
            raise ConfigurationError(f"{letter.id} holds no value: {_value_of(letter)}")
        sys.stdout.buffer.write(letter.record.value)
        sys.stdout.buffer.flush()
    elif request.format == "json":
        print_json(_document(letter, include_value=request.include_value))
    else:
        print("\n".join(_lines(letter, include_value=request.include_value)))


async def find_letter(topic: TopicScan, name: Name) -> Letter | None:
    """The letter of that name; the last one if several have the same source."""
    found = None
    async with aclosing(chosen_letters(topic, Selection(names=frozenset([name])), ForeignRecords())) as letters:
        async for letter in letters:
            found = letter
    return found


# --- for a person -----------------------------------------------------------------------------------------------------


def _lines(letter: Letter, *, include_value: bool) -> Iterator[str]:
    document = as_document(letter)
    rows = {name: document[name] for name in ("letter", "failed_at", "reason", "stage", "detail")} | {
        "source": str(letter.source),
        "timestamp": _moment(letter.timestamp),
        "group": letter.group,
        "version": letter.version,
        "headers": ", ".join(name for name, _ in letter.headers) or "none",
        "key": "none" if letter.record.key is None else f"{len(letter.record.key)} bytes",
        "value": _value_of(letter),
    }
    yield from (f"{name:<10}  {printable(text)}" for name, text in rows.items())
    if include_value:
        yield ""
        yield from (f"header {printable(name)}: {_text(content)}" for name, content in letter.headers)
        yield f"key: {_text(letter.record.key)}"
        yield f"value: {_text(letter.record.value)}"


def _moment(timestamp: int) -> str:
    try:
        return f"{timestamp} ({rfc_3339(timestamp) if timestamp >= 0 else 'none'})"
    except (OSError, OverflowError, ValueError):  # a producer may write any number
        return str(timestamp)


def _value_of(letter: Letter) -> str:
    if letter.value_sha256 is None:
        return "none"
    return f"{'omitted: ' if letter.omitted else ''}{letter.value_bytes} bytes, sha256 {letter.value_sha256}"


def _text(content: bytes | None) -> str:
    return "none" if content is None else printable(content.decode("utf-8", "backslashreplace"))


# --- for a program ----------------------------------------------------------------------------------------------------


def _document(letter: Letter, *, include_value: bool) -> dict[str, Any]:
    key, value = letter.record.key, letter.record.value
    document = as_document(letter) | {
        "value_sha256": letter.value_sha256,
        "key_bytes": None if key is None else len(key),
        "headers": [name for name, _ in letter.headers],
    }
    if include_value:
        document |= {
            "headers": [{"name": name, **_content(content)} for name, content in letter.headers],
            "key": _content(key),
            "value": _content(value),
        }
    return document


def _content(content: bytes | None) -> dict[str, str | None]:
    """Bytes as JSON can hold them: as text if they are UTF-8, else in base64."""
    if content is None:
        return {"text": None}
    try:
        return {"text": content.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode("ascii")}
