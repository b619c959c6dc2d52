"""JSON in files: as editors write it, perhaps behind a byte order mark or with a key twice, and as SAFE writes it.

Errors name line and column.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from consumer.dead_letter_reasons import Poison
from consumer.text import named, printable, visible, without_tricks
from consumer.wire.strict_json import NotJson, OtherFormat, parse_json

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def parse_json_of_file(raw: bytes, first_line: int = 1) -> object:
    """Parse as strictly as an event, but for a byte order mark at the file's beginning; raises Poison.

    `raw` begins at a line of the file.
    """
    plain = raw.removeprefix(BYTE_ORDER_MARK) if first_line == 1 else raw
    try:
        return parse_json(plain)
    except OtherFormat as error:
        raise Poison(error.reason, f"it {error.what}") from error
    except NotJson as error:
        before = plain.decode("utf-8")[: error.position]
        line, column = before.count("\n") + first_line, len(before) - (before.rfind("\n") + 1) + 1
        raise Poison("invalid_json", f"not valid JSON at line {line}, column {column}") from error


def json_text(document: object) -> str:
    """Write a document, indented, with a line feed at its end.

    Characters that a terminal would obey or be fooled by are written as escapes, which any parser reads as the same.
    """
    return without_tricks(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")


# --- keys that appear twice in one object -----------------------------------------------------------------------------
#
# Parsers keep the last one, and the first is lost in silence.

_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],]', re.DOTALL)
_NAMED: Final = 5


class RepeatedKey(NamedTuple):
    """A key that its object has already; `line` is that of the repetition."""

    line: int
    key: str


def repeated_keys(raw: bytes, document: object) -> Sequence[RepeatedKey]:
    """Find the repeated keys of a JSON text that was parsed as `document`, in their order."""
    return () if _has_lost_nothing(raw, document) else [*_walk(raw.decode("utf-8"))]


def repeated_keys_line(path: Path, keys: Sequence[RepeatedKey]) -> str:
    """Say which keys of a file are lost."""
    listed = named((f'"{printable(each.key)}" (line {each.line})' for each in keys), _NAMED, longest=100)
    what = "a key appears" if len(keys) == 1 else f"{len(keys)} keys appear"
    return f"{visible(str(path))}: {what} twice in one object, and only the last one counts: {listed}"


def repeated_keys_lines(files: Iterable[tuple[Path, Sequence[RepeatedKey]]]) -> Iterator[str]:
    """Say so of each file that has any."""
    return (repeated_keys_line(path, keys) for path, keys in files if keys)


def _has_lost_nothing(raw: bytes, document: object) -> bool:
    """Tell quickly, for nearly all files: written again, a document has all quotes of its text unless a key is lost.

    That holds for texts that write a quote within a string as `\\"`, as the document written again does.
    """
    try:
        return b"\\u0022" not in raw and orjson.dumps(document).count(b'"') == raw.count(b'"')
    except orjson.JSONEncodeError:  # a lone surrogate, a number beyond 64 bits
        return False


def _walk(text: str) -> Iterator[RepeatedKey]:
    """Walk through valid JSON, object by object."""
    open_: list[set[str] | None] = []  # the keys so far of each object around; None for a list
    is_key = False
    line, counted = 1, 0
    for token in _TOKEN.finditer(text):
        symbol = token[0]
        if symbol in "{[":
            open_.append(set() if symbol == "{" else None)
            is_key = symbol == "{"
        elif symbol in "}]":
            open_.pop()
        elif symbol == ",":
            is_key = open_[-1] is not None
        elif is_key and (keys := open_[-1]) is not None:
            is_key = False
            key = json.loads(symbol)
            if key in keys:
                line, counted = line + text.count("\n", counted, token.start()), token.start()
                yield RepeatedKey(line, key)
            keys.add(key)
