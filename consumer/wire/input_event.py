"""From a record's bytes to an input event, or to the one reason why not (contract.md, "Dead letters").

The first check that fails names the reason: empty_value, too_large, unsupported_version, not_utf8, then what the
parser meets, not_object, invalid_event, invalid_id. No message repeats a byte of the input.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from consumer.dead_letter_reasons import Poison
from consumer.text import is_utf8
from consumer.wire.record import KafkaHeaders, Record
from consumer.wire.strict_json import parse_json
from consumer.wire.times import milliseconds_of
from safe_core import InvalidDigest, InvalidOutput, Output, id_problem
from safe_core.misspelt_keys import EVENT_KEYS, OUTPUT_KEYS, look_alikes, resembling
from safe_core.narrative_digests import narrative_read
from safe_core.outputs import FAILURE_KEYS, not_an_object
from safe_core.remembered import Remembered

_STRUCTURED_CONTENT_TYPE = b"application/cloudevents+json"
_SPEC_VERSION = "1.0"


class InputEvent(NamedTuple):
    """One generation output as it was published; `event_time` in ms since 1970 decides which result is the latest.

    `narrative` is the digest of the narrative that the model read, None where it is not known; `event_id` the id of the
    CloudEvent, None for a plain record. `resembled` are keys that SAFE reads, and that others of the event resemble.
    `raw_input` is the text of the narrative, where the rules ask for it and the output has it.
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
    resembled: tuple[str, ...] = ()
    raw_input: str | None = None


@dataclass(frozen=True, slots=True)
class InputRules:
    """What is accepted as input: values up to `max_value_bytes`, CloudEvents of these `types` (empty: of any).

    Texts of narratives are kept in memory only if `keeps_narratives`.
    """

    max_value_bytes: int = 1_048_576
    types: frozenset[str] = frozenset()
    keeps_narratives: bool = False


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
        raise Poison("not_object", f"the top level is {not_an_object(document)}")
    event_id = envelope.id
    if envelope.structured:
        if _is_excluded(document, rules):
            return None
        stated = document.get("id")
        event_id = stated if isinstance(stated, str) else None
        document = _data(document)
    event = _event(document, record.timestamp, event_id)
    return event._replace(raw_input=_raw_input(document)) if rules.keeps_narratives else event


def document_of(record: Record) -> dict[str, Any]:
    """The data of a record that decode() has accepted, as its producer wrote them."""
    document = cast("dict[str, Any]", parse_json(record.value or b""))
    return _data(document) if _binary_envelope(record.headers).structured else document


def _raw_input(document: Mapping[str, Any]) -> str | None:
    output = document["output"]
    text = output.get("raw_input") if isinstance(output, Mapping) else None
    return text if isinstance(text, str) else None


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


def _binary_envelope(headers: KafkaHeaders) -> _Envelope:
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


def _data(envelope: dict[str, Any]) -> dict[str, Any]:
    """Give the event that a structured CloudEvent holds, as JSON or as JSON in base64."""
    data, name, encoded = envelope.get("data"), "data", envelope.get("data_base64")
    if data is None and isinstance(encoded, str):
        name = "data_base64"
        try:
            data = parse_json(base64.b64decode(encoded, validate=True))
        except ValueError:
            raise Poison("invalid_event", "data_base64 of the CloudEvent is not base64") from None
        except Poison as error:
            raise Poison("invalid_event", f"data_base64 of the CloudEvent: {error.detail}") from None
    if not isinstance(data, dict):
        what = "missing" if data is None else not_an_object(data)
        raise Poison("invalid_event", f"{name} of the CloudEvent is {what}")
    return data


# --- the event --------------------------------------------------------------------------------------------------------

_IDS = ("test_id", "batch_id", "concern_id", "archetype", "metric_id", "run_id")
_REQUIRED_IDS = 2
"""How many of _IDS, from the left, must be there."""

_FAILURE_KEYS = frozenset(FAILURE_KEYS)

_good_ids: Remembered[str | None, None] = Remembered(16_384)
"""Ids met lately that are good ones, and None for one that is not there."""


def _event(document: dict[str, Any], record_timestamp: int, event_id: str | None) -> InputEvent:
    get = document.get
    ids = (get("test_id"), get("batch_id"), get("concern_id"), get("archetype"), get("metric_id"), get("run_id"))
    test_id, batch_id, concern_id, archetype, metric_id, run_id = ids
    if type(test_id) is not str or type(batch_id) is not str:
        raise _not_a_string(ids, document)
    for identifier in ids:
        if type(identifier) is not str and identifier is not None:
            raise _not_a_string(ids, document)
    if "output" not in document:
        raise Poison("invalid_event", f"output is missing{_but_resembled('output', document)}")
    output = document["output"]
    try:
        parsed = Output.parse(output)
        if not _FAILURE_KEYS.isdisjoint(document):  # few have one
            parsed = parsed.with_failure_of(document)
        narrative = narrative_read(document, output)
    except (InvalidOutput, InvalidDigest) as error:
        what = "input_digest " if isinstance(error, InvalidDigest) else ""
        raise Poison("invalid_event", f"{what}{error}") from None
    generated_at = get("generated_at")
    event_time = record_timestamp if generated_at is None else milliseconds_of(generated_at)
    for name, identifier in zip(_IDS, ids):  # noqa: B905 - both are six, and this is done for each event
        if identifier not in _good_ids:
            _check_id(name, identifier)
    alike = look_alikes(document, EVENT_KEYS)
    if output is not None:
        alike += look_alikes(output, OUTPUT_KEYS)
    resembled = tuple(name for _, name in alike) if alike else ()
    return InputEvent(
        test_id, batch_id, concern_id, archetype, metric_id, run_id, event_time, parsed, narrative, event_id, resembled
    )


def _not_a_string(ids: Sequence[object], event: Mapping[str, object]) -> Poison:
    wrong = next(
        position
        for position, identifier in enumerate(ids)
        if type(identifier) is not str and (identifier is not None or position < _REQUIRED_IDS)
    )
    name = _IDS[wrong]
    return Poison("invalid_event", f"{name} is missing or not a string{_but_resembled(name, event)}")


def _but_resembled(name: str, event: Mapping[str, object]) -> str:
    """Add to a sentence about a missing key that another one resembles it, without repeating that one."""
    return "" if name in event or next(resembling(event, name), None) is None else "; another key resembles it"


def _check_id(name: str, identifier: str | None) -> None:
    if identifier is not None and (problem := id_problem(identifier)):
        raise Poison("invalid_id", f"{name} {problem}")
    _good_ids.keep(identifier, None)
