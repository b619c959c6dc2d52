"""From a record's bytes to an input event, or to the one reason why not (contract.md, "Dead letters").

The first check that fails names the reason: empty_value, too_large, unsupported_version, not_utf8, then what the
parser meets, not_object, invalid_event, invalid_id. No message repeats a byte of the input.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isinf
from typing import Any, NamedTuple

import orjson

from consumer.errors import Poison
from consumer.text import is_utf8
from consumer.wire.record import Record
from consumer.wire.times import milliseconds_of
from safe_core import InvalidDigest, InvalidOutput, Output, digest_of_narrative, id_problem, stated_digest

DEPTH_LIMIT = 64
"""How deep objects and arrays may nest; the top-level object is depth 1."""

_TOO_LONG_FOR_AN_INT = 19
_INTEGER_BEYOND_INT64 = 2**64
_STRUCTURED_CONTENT_TYPE = b"application/cloudevents+json"
_SPEC_VERSION = "1.0"
_BYTE_ORDER_MARK = "\ufeff"


class InputEvent(NamedTuple):
    """One generation output as it was published; `event_time` in ms since 1970 decides which result is the latest.

    `narrative` is the digest of the narrative that the model read, None where it is not known; `event_id` the id of the
    CloudEvent, None for a plain record.
    """

    test_id: str
    batch_id: str
    concern_id: str | None
    archetype: str | None
    metric_id: str | None
    run_id: str | None
    event_time: int
    output: Output
    narrative: str | None = None
    event_id: str | None = None


@dataclass(frozen=True, slots=True)
class InputRules:
    """What is accepted as input: values up to `max_value_bytes`, CloudEvents of these `types` (empty: of any)."""

    max_value_bytes: int = 1_048_576
    types: frozenset[str] = frozenset()


def decode(record: Record, rules: InputRules) -> InputEvent | None:
    """Decode one record; None means it is to be ignored and counted.

    A tombstone is ignored, and so is a CloudEvent whose type the rules exclude. Raises Poison otherwise.
    """
    value = record.value
    if value is None:
        return None
    envelope = _binary_envelope(record.headers) if record.headers else _NO_ENVELOPE
    if envelope.excluded_by(rules):
        return None
    if not value:
        raise Poison("empty_value", "the value holds no bytes")
    if len(value) > rules.max_value_bytes:
        raise Poison("too_large", f"the value has {len(value)} bytes, the limit is {rules.max_value_bytes}")
    envelope.check_version()
    if not envelope.has_text_names:
        _refuse_unless_excluded(value, rules, structured=envelope.structured)
        return None
    document = parse_json(value)
    if not isinstance(document, dict):
        raise Poison("not_object", "the top level is not an object")
    event_id = envelope.id
    if envelope.structured:
        if _is_excluded(document, rules):
            return None
        stated = document.get("id")
        event_id = stated if isinstance(stated, str) else None
        document = document.get("data")
        if not isinstance(document, dict):
            raise Poison("invalid_event", "data of the CloudEvent is missing or not an object")
    return _event(document, record.timestamp, event_id)


def _refuse_unless_excluded(value: bytes, rules: InputRules, *, structured: bool) -> None:
    """A header's name is not UTF-8: that is poison, but a structured CloudEvent may say that it is not for us."""
    if structured:
        try:
            document = parse_json(value)
        except Poison:
            document = None
        if isinstance(document, dict) and _is_excluded(document, rules):
            return
    raise Poison("not_utf8", "the name of a header is not UTF-8")


# --- JSON -------------------------------------------------------------------------------------------------------------


class NotJson(Poison):
    """A text that is no JSON; `position` is in characters from 0."""

    def __init__(self, position: int) -> None:
        super().__init__("invalid_json", f"not valid JSON at character {position}")
        self.position = position


def parse_json(value: bytes) -> object:
    """Parse strict JSON: no duplicate keys, no NaN, no lone surrogates, at most DEPTH_LIMIT deep; raises Poison."""
    document = _parsed_quickly(value)
    return _parsed_with_care(value) if document is None else document


def _parsed_quickly(value: bytes) -> dict[str, object] | None:
    """Parse what is surely strict JSON, several times faster; None for all else, whatever it is.

    A fast parser keeps the last of several equal keys. So the keys and strings that it gives are counted: where no
    quote is escaped, the text has twice as many quotes, or something was dropped.
    """
    if b"\\" in value and b'\\"' in value:
        return None
    try:
        document = orjson.loads(value)
        if type(document) is dict and 2 * _count_texts(document, DEPTH_LIMIT) == value.count(b'"'):
            return document
    except (orjson.JSONDecodeError, _Unproven):
        pass
    return None


_SHORTER_THAN_19_DIGITS = 10**17


class _Unproven(Exception):
    """What the fast parser gives may be another value than the text has."""


def _count_texts(part: dict[str, Any] | list[Any], depth: int) -> int:
    """Count all keys and strings; raises _Unproven at a number that may be rounded, or below the depth."""
    if depth == 0:
        raise _Unproven
    count = 0
    members: Iterable[Any] = part
    if type(part) is dict:
        count, members = len(part), part.values()
    for each in members:
        kind = type(each)
        if kind is str:
            count += 1
        elif kind is dict or kind is list:
            count += _count_texts(each, depth - 1)
        elif kind is float or (kind is int and not -_SHORTER_THAN_19_DIGITS < each < _SHORTER_THAN_19_DIGITS):
            raise _Unproven
    return count


def _parsed_with_care(value: bytes) -> object:
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Poison("not_utf8", f"byte {error.start} is not UTF-8") from None
    if text.startswith(_BYTE_ORDER_MARK):
        raise Poison("invalid_json", "the value begins with a byte order mark")
    # Counting brackets is quick and can only overstate the depth: nearly every document needs no closer look.
    if text.count("{") + text.count("[") > DEPTH_LIMIT:
        _check_depth(text)
    try:
        document = _parsed(text)
    except json.JSONDecodeError as error:
        raise NotJson(error.pos) from None
    # One character is looked for far quicker than three, and few texts hold it.
    if "\\" in text and ("\\ud" in text or "\\uD" in text):
        _check_surrogates(document)
    return document


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
        raise Poison("invalid_number", "a number is beyond binary64")
    return number


def _integer(digits: str) -> int:
    # No number of an event is ever read: only its being a number counts, and 5,000 digits are not worth converting.
    return int(digits) if len(digits) < _TOO_LONG_FOR_AN_INT else _INTEGER_BEYOND_INT64


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


# --- CloudEvents ------------------------------------------------------------------------------------------------------


class _Envelope(NamedTuple):
    """What a CloudEvent says of itself; all None for a plain record. `has_text_names`: of the record's headers."""

    present: bool
    version: str | None
    type: str | None
    structured: bool = False
    has_text_names: bool = True
    id: str | None = None

    def excluded_by(self, rules: InputRules) -> bool:
        return self.present and bool(rules.types) and self.type not in rules.types

    def check_version(self) -> None:
        if self.present and self.version != _SPEC_VERSION:
            raise Poison("unsupported_version", f"the CloudEvents version is not {_SPEC_VERSION}")


_NO_ENVELOPE = _Envelope(present=False, version=None, type=None)


def _binary_envelope(headers: Sequence[tuple[str, bytes | None]]) -> _Envelope:
    version = type_ = id_ = None
    structured, has_text_names = False, True
    for name, content in headers:
        if not (name.isascii() or is_utf8(name)):
            has_text_names = False
        if name == "ce_specversion":
            version = _text(content)
        elif name == "ce_type":
            type_ = _text(content)
        elif name == "ce_id":
            id_ = _text(content)
        elif name.lower() == "content-type" and content is not None:
            structured = content.strip().lower().startswith(_STRUCTURED_CONTENT_TYPE)
    present = version is not None and not structured
    return _Envelope(present, version, type_, structured, has_text_names, id_ if present else None)


def _text(content: bytes | None) -> str:
    return "" if content is None else content.decode("utf-8", "replace")


def _is_excluded(document: dict[str, Any], rules: InputRules) -> bool:
    """Whether the rules exclude a structured CloudEvent; raises Poison for another version of CloudEvents."""
    version, type_ = document.get("specversion"), document.get("type")
    envelope = _Envelope(present=True, version=version, type=type_ if isinstance(type_, str) else None)
    is_excluded = envelope.excluded_by(rules)
    if not is_excluded:
        envelope.check_version()
    return is_excluded


# --- the event --------------------------------------------------------------------------------------------------------

_IDS = ("test_id", "batch_id", "concern_id", "archetype", "metric_id", "run_id")
_REQUIRED_IDS = 2
"""How many of _IDS, from the left, must be there."""


def _event(document: dict[str, Any], record_timestamp: int, event_id: str | None) -> InputEvent:
    get = document.get
    ids = (get("test_id"), get("batch_id"), get("concern_id"), get("archetype"), get("metric_id"), get("run_id"))
    for position, identifier in enumerate(ids):
        if type(identifier) is not str and (identifier is not None or position < _REQUIRED_IDS):
            raise Poison("invalid_event", f"{_IDS[position]} is missing or not a string")
    if "output" not in document:
        raise Poison("invalid_event", "output is missing")
    try:
        output = Output.parse(document["output"])
        narrative = narrative_read(document, document["output"])
    except (InvalidOutput, InvalidDigest) as error:
        what = "input_digest " if isinstance(error, InvalidDigest) else ""
        raise Poison("invalid_event", f"{what}{error}") from None
    generated_at = get("generated_at")
    event_time = record_timestamp if generated_at is None else milliseconds_of(generated_at)
    for position, identifier in enumerate(ids):
        if identifier is not None:
            problem = id_problem(identifier)
            if problem is not None:
                raise Poison("invalid_id", f"{_IDS[position]} {problem}")
    test_id, batch_id, concern_id, archetype, metric_id, run_id = ids
    assert isinstance(test_id, str)
    assert isinstance(batch_id, str)
    return InputEvent(
        test_id, batch_id, concern_id, archetype, metric_id, run_id, event_time, output, narrative, event_id
    )


def narrative_read(event: Mapping[str, object], output: object) -> str | None:
    """Give the digest of the narrative that a model read: of the output's `raw_input`, else the event's `input_digest`.

    None where neither tells; raises InvalidDigest.
    """
    stated = stated_digest(event.get("input_digest"))
    if isinstance(output, Mapping) and "raw_input" in output:
        return digest_of_narrative(output["raw_input"]) or stated
    return stated
