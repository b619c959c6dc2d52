"""Strict JSON: no duplicate keys, no NaN, no lone surrogates, bounded depth (contract.md, "Dead letters")."""

import json
import re
from math import isinf
from typing import Any, Union

import msgspec
import orjson

from consumer.dead_letter_reasons import Poison, Reason
from consumer.wire.other_formats import other_format

DEPTH_LIMIT = 64
"""How deep objects and arrays may nest; the top-level object is depth 1."""

_BYTE_ORDER_MARK = "\ufeff"


class NotJson(Poison):
    """A text that is no JSON; `position` is in characters from 0."""

    def __init__(self, position: int) -> None:
        super().__init__("invalid_json", f"not valid JSON at character {position}")
        self.position = position


class OtherFormat(Poison):
    """Not JSON, but something that is known; `what` is the end of a sentence about it."""

    def __init__(self, reason: Reason, what: str) -> None:
        super().__init__(reason, f"the value {what}")
        self.what = what


def parse_json(value: bytes) -> object:
    """Parse strict JSON, at most DEPTH_LIMIT deep; raises Poison.

    Of a number of more than 20 digits, only that it is a number can be relied on.
    """
    document = _parsed_quickly(value)
    return _parsed_with_care(value) if document is None else document


# --- the quick way, for nearly all events -----------------------------------------------------------------------------


def _members_nested(levels: int) -> Any:  # noqa: ANN401 - a type made while running
    """Give the type of what JSON may hold, with at most this many levels of objects and arrays."""
    scalar = member = str | int | float | bool | None
    for _ in range(levels):
        member = Union[scalar, list[member], dict[str, member]]  # type: ignore[valid-type]  # noqa: UP007
    return member


_QUICK = msgspec.json.Decoder(dict[str, _members_nested(levels=7)])  # type: ignore[misc]  # as above


def _parsed_quickly(value: bytes) -> dict[str, object] | None:
    """Parse what is surely strict JSON, several times faster; None for all else, whatever it is.

    This parser is strict but in one respect: of equal keys it keeps the last. It has dropped nothing if the document,
    written again, is the same text; or if both texts have as many quotes, where none of these is part of a string.
    """
    try:
        document: dict[str, object] = _QUICK.decode(value)
        written = orjson.dumps(document)
    except (msgspec.MsgspecError, UnicodeDecodeError, orjson.JSONEncodeError):
        return None
    if written == value:
        return document
    has_quotes_in_strings = b"\\" in value and (b'\\"' in value or b"\\u0022" in value)
    if not has_quotes_in_strings and written.count(b'"') == value.count(b'"'):
        return document
    return None


# --- the careful way, which finds what is wrong -----------------------------------------------------------------------


def _parsed_with_care(value: bytes) -> object:
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse_other_format("not_utf8", value)
        raise Poison("not_utf8", f"byte {error.start} is not UTF-8") from None
    if text.startswith(_BYTE_ORDER_MARK):
        raise OtherFormat("invalid_json", "begins with a byte order mark")
    # Counting brackets is quick and can only overstate the depth: nearly every document needs no closer look.
    if text.count("{") + text.count("[") > DEPTH_LIMIT:
        _check_depth(text)
    try:
        document = _parsed(text)
    except json.JSONDecodeError as error:
        _refuse_other_format("invalid_json", value)
        raise NotJson(error.pos) from None
    # One character is looked for far quicker than three, and few texts hold it.
    if "\\" in text and ("\\ud" in text or "\\uD" in text):
        _check_surrogates(document)
    return document


def _refuse_other_format(reason: Reason, value: bytes) -> None:
    if what := other_format(value):
        raise OtherFormat(reason, what) from None


# A string that is never closed counts to its end: to look for brackets inside it again and again would take for ever.
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


def _check_depth(text: str) -> None:
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        symbol = token.group()
        if symbol in "[{":
            depth += 1
            if depth > DEPTH_LIMIT:
                raise Poison("too_deep", f"nested deeper than {DEPTH_LIMIT} at character {token.start()}")
        elif symbol in "]}":
            depth -= 1


def _check_surrogates(document: object) -> None:
    """Python's parser lets `\\ud800` alone pass; no such text can be written as UTF-8 again."""
    try:
        json.dumps(document, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise Poison("invalid_json", "an escape names a lone surrogate") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Poison("duplicate_key", "a key appears twice in one object")
    return members


def _float(digits: str) -> float:
    number = float(digits)
    if isinf(number):
        raise Poison("invalid_number", "a number is outside the range of binary64")
    return number


_MOST_DIGITS = 20
_BEYOND_64_BITS = 2**64


def _integer(digits: str) -> int:
    # No number of an event is ever read: only its being a number counts, and 5,000 digits are not worth converting.
    return int(digits) if len(digits) <= _MOST_DIGITS else _BEYOND_64_BITS


def _constant(_name: str) -> float:
    raise Poison("invalid_json", "NaN and Infinity are not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_int=_integer, parse_constant=_constant)


def _parsed(text: str) -> object:
    # raw_decode is decode without its care for white space around the document, which few producers write.
    if text.startswith("{"):
        document, end = _DECODER.raw_decode(text)
        if end == len(text):
            return document
    return _DECODER.decode(text)
