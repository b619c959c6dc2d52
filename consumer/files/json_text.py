"""JSON in files: as editors write it, perhaps behind a byte order mark, and as SAFE writes it.

Errors name line and column.
"""

from typing import Final

import orjson

from consumer.dead_letter_reasons import Poison
from consumer.text import without_tricks
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
