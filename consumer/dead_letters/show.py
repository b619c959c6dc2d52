"""`safe dead-letters show`: one dead letter; of what the record itself held, only where that is asked for."""

import base64
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from consumer.dead_letters.list import ListFormat, described
from consumer.dead_letters.selection import Selection
from consumer.dead_letters.topic import ReadableTopic, chosen_letters, dead_letter_topic, spans_of
from consumer.errors import ConfigurationError
from consumer.settings import Settings
from consumer.text import printable, shown
from consumer.wire.dead_letter import Letter, Name
from consumer.wire.times import rfc_3339


@dataclass(frozen=True, slots=True)
class ShowRequest:
    """Which dead letter is to be shown, and how; `raw` is the value's bytes and nothing else."""

    name: Name
    format: ListFormat = "table"
    include_value: bool = False
    raw: bool = False

    def __post_init__(self) -> None:
        if self.raw and not self.include_value:
            raise ConfigurationError("--raw writes the value, which may hold patient data: give --include-value too")
        if self.raw and self.format == "json":
            raise ConfigurationError(
                "--raw writes the value's bytes as they are, which is no JSON: leave one of them out"
            )


async def show_letter(settings: Settings, request: ShowRequest) -> int:
    """Show one dead letter and return the exit code, 0; raises ConfigurationError, Transient or Fatal."""
    async with dead_letter_topic(settings) as topic:
        letter = await find_letter(topic, request.name)
    if letter is None:
        raise ConfigurationError(
            f"there is no dead letter {shown(str(request.name))} in {settings.dead_letter_topic}: "
            "it was removed by retention, or never was"
        )
    print_letter(letter, request)
    return 0


def print_letter(letter: Letter, request: ShowRequest) -> None:
    """Print what is asked for; raises ConfigurationError where it is a value that the letter does not hold."""
    if request.raw:
        _write_value(letter)
    else:
        print("\n".join(_FORMATS[request.format](letter, request)))


async def find_letter(topic: ReadableTopic, name: Name) -> Letter | None:
    """The letter of that name; of several with the same source, the last."""
    selection = Selection(names=frozenset([name]))
    found = None
    async with chosen_letters(topic, await spans_of(topic, selection), selection) as letters:
        async for letter in letters:
            found = letter
    return found


def _write_value(letter: Letter) -> None:
    if letter.record.value is None:
        raise ConfigurationError(f"{letter.place} holds no value: {_value_of(letter)}")
    sys.stdout.buffer.write(letter.record.value)
    sys.stdout.buffer.flush()


# --- for a person -----------------------------------------------------------------------------------------------------


def _table(letter: Letter, request: ShowRequest) -> Iterator[str]:
    rows = {
        "letter": str(letter.place),
        "failed_at": rfc_3339(letter.failed_at),
        "reason": letter.reason,
        "stage": letter.stage,
        "detail": letter.detail,
        "source": str(letter.source),
        "timestamp": _moment(letter.timestamp),
        "group": letter.group,
        "version": letter.version,
        "headers": ", ".join(name for name, _ in letter.headers) or "none",
        "key": "none" if letter.record.key is None else f"{len(letter.record.key)} bytes",
        "value": _value_of(letter),
    }
    yield from (f"{name:<10}  {printable(text)}" for name, text in rows.items())
    if request.include_value:
        yield from _content(letter)


def _content(letter: Letter) -> Iterator[str]:
    yield ""
    yield from (f"header {printable(name)}: {_text(content)}" for name, content in letter.headers)
    yield f"key: {_text(letter.record.key)}"
    yield f"value: {_text(letter.record.value)}"


def _moment(timestamp: int) -> str:
    try:
        return f"{timestamp} ({rfc_3339(timestamp)})" if timestamp >= 0 else f"{timestamp} (none)"
    except (OSError, OverflowError, ValueError):  # a producer may write any number
        return str(timestamp)


def _value_of(letter: Letter) -> str:
    if letter.value_sha256 is None:
        return "none"
    return f"{'omitted: ' if letter.omitted else ''}{letter.value_bytes} bytes, sha256 {letter.value_sha256}"


def _text(content: bytes | None) -> str:
    return "none" if content is None else printable(content.decode("utf-8", "backslashreplace"))


# --- for a program ----------------------------------------------------------------------------------------------------


def _json(letter: Letter, request: ShowRequest) -> Iterator[str]:
    key, value = letter.record.key, letter.record.value
    document = described(letter) | {
        "value_sha256": letter.value_sha256,
        "key_bytes": None if key is None else len(key),
        "headers": [name for name, _ in letter.headers],
    }
    if request.include_value:
        document |= {
            "headers": [{"name": name, **_member(content)} for name, content in letter.headers],
            "key": _member(key),
            "value": _member(value),
        }
    yield json.dumps(document, indent=2)


def _member(content: bytes | None) -> dict[str, Any]:
    """Bytes as JSON can hold them: a text where they are one, else in base64."""
    if content is None:
        return {"text": None}
    try:
        return {"text": content.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode("ascii")}


_FORMATS: dict[ListFormat, Callable[[Letter, ShowRequest], Iterator[str]]] = {"table": _table, "json": _json}
