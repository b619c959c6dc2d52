"""Headers of the records that SAFE writes, and what it reads of them (contract.md, "Topics and keys", "State")."""

import re
from collections.abc import Sequence

from consumer.errors import SafeError
from consumer.text import is_utf8

SCHEMA = 1
"""Version of the values in `scored` and `state`; a reader takes its own and the one before."""

RESULT_TYPE = "safe:v0:result"
REPORT_TYPE = "safe:v0:report"

KafkaHeaders = Sequence[tuple[str, bytes | None]]

_SCHEMA_HEADER = "safe.schema"
_GROUP_HEADER = "safe.group"


class Undecodable(SafeError):
    """A record that only SAFE writes cannot be read."""


class NewerSchema(SafeError):
    """A record was written by a newer SAFE."""


# --- headers of our own topics ----------------------------------------------------------------------------------------


def own_headers(group: str) -> KafkaHeaders:
    """Headers of every record in `scored` and `state`."""
    return [(_SCHEMA_HEADER, str(SCHEMA).encode()), (_GROUP_HEADER, group.encode())]


def group_of(headers: KafkaHeaders) -> str | None:
    """The group that wrote a record of `scored` or `state`."""
    return text_of(headers, _GROUP_HEADER)


def text_of(headers: KafkaHeaders, wanted: str) -> str | None:
    """The first value of the wanted header; None if there is none."""
    for name, content in headers:
        if name == wanted and content is not None:
            return content.decode("utf-8", "replace")
    return None


_LONGEST_SCHEMA = 20
"""Digits of a schema: no version of ours has more, and Python refuses to read thousands of them."""


def check_schema(headers: KafkaHeaders) -> None:
    """Raise NewerSchema or Undecodable unless the record's schema is ours or the one before."""
    for name, _ in headers:
        if not (name.isascii() or is_utf8(name)):  # nearly every name is ASCII: this spares a call for each
            raise Undecodable("the name of a header is not UTF-8")
    for name, content in headers:
        if name == _SCHEMA_HEADER and content is not None and content.isdigit() and len(content) <= _LONGEST_SCHEMA:
            schema = int(content)
            if schema > SCHEMA:
                raise NewerSchema(f"schema {schema} was written by a newer SAFE; this one reads up to {SCHEMA}")
            if schema < SCHEMA - 1:
                raise Undecodable(f"schema {schema} is older than this SAFE reads")
            return
    raise Undecodable("the header safe.schema is missing or not a number")


# --- traces -----------------------------------------------------------------------------------------------------------

_TRACEPARENT = "traceparent"
_TRACESTATE = "tracestate"
_CAUSATION = "ce_causationid"
# W3C Trace Context: version (not ff), trace and parent (neither all 0), flags. What a later version may add after these
# is unknown, and not carried.
_VALID_PARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
# Up to 32 members `key=value`, in printable ASCII without further commas and equals signs, at most 512 bytes in all.
_MEMBER = rb"[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{1,256}"
_VALID_STATE = re.compile(_MEMBER + rb"(?:[ \t]*,[ \t]*" + _MEMBER + rb"){0,31}")
_LONGEST_STATE = 512
_LONGEST_ID = 256


def traced(headers: KafkaHeaders, source: KafkaHeaders) -> KafkaHeaders:
    """The headers, with the trace of the source record: its `traceparent`, and its `tracestate` beside a valid one.

    An invalid header is dropped. Of several of a name, the last counts.
    """
    trace = {name: content for name, content in source if name in (_TRACEPARENT, _TRACESTATE)}
    parent, state = trace.get(_TRACEPARENT), trace.get(_TRACESTATE)
    if parent is None or _VALID_PARENT.fullmatch(parent) is None:
        return headers
    if state is None or len(state) > _LONGEST_STATE or _VALID_STATE.fullmatch(state) is None:
        return [*headers, (_TRACEPARENT, parent)]
    return [*headers, (_TRACEPARENT, parent), (_TRACESTATE, state)]


def caused_by(headers: KafkaHeaders, event_id: str | None) -> KafkaHeaders:
    """The headers, with the id of the CloudEvent that a record was made of; None, or an odd one, adds nothing."""
    if not event_id or len(event_id) > _LONGEST_ID or not event_id.isprintable():
        return headers
    return [*headers, (_CAUSATION, event_id.encode())]


def passed_on(headers: KafkaHeaders, scored: KafkaHeaders) -> KafkaHeaders:
    """The headers of a result, with the trace and the cause that its scored record has."""
    return caused_by(traced(headers, scored), text_of(scored, _CAUSATION))


# --- results and reports ----------------------------------------------------------------------------------------------


def report_headers(key: str, partition: int, covers: int, generated_at: str, ce_source: bytes) -> KafkaHeaders:
    """CloudEvents headers of a report that covers `scored` up to, not including, offset `covers`."""
    identity = f"{key}@{partition}/{covers}"
    return cloudevent(REPORT_TYPE, identity.encode(), ce_source, generated_at.encode(), key.encode())


_SPEC_VERSION = ("ce_specversion", b"1.0")
_JSON = ("content-type", b"application/json")
_TYPES = {type_: ("ce_type", type_.encode()) for type_ in (RESULT_TYPE, REPORT_TYPE)}
_DATASCHEMAS = {type_: ("ce_dataschema", f"urn:{type_}".encode()) for type_ in _TYPES}
"""The `$id`s of the schemas."""


def cloudevent(type_: str, identity: bytes, source: bytes, time: bytes, subject: bytes) -> KafkaHeaders:
    """Headers of a CloudEvent in binary mode."""
    return [
        _SPEC_VERSION,
        ("ce_id", identity),
        _TYPES[type_],
        ("ce_source", source),
        ("ce_time", time),
        ("ce_subject", subject),
        _DATASCHEMAS[type_],
        _JSON,
    ]


def ce_source(group: str) -> str:
    """`ce_source` of everything a group publishes."""
    return f"/safe/{group}"
