"""Headers of the records that SAFE writes, and what it reads of them (contract.md, "Topics and keys", "State")."""

from consumer.errors import SafeError
from consumer.text import is_utf8
from consumer.wire.record import KafkaHeaders

SCHEMA = 2
"""Version of the values in `scored` and `state`; a reader takes its own and the one before."""

RESULT_TYPE = "safe:v0:result"
REPORT_TYPE = "safe:v0:report"

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


_GUARD_HEADER = "safe.guard"


def owner_headers(group: str, *, guarded: bool) -> KafkaHeaders:
    """Headers of the mark and of the progress row, which say whether their writer's group is guarded."""
    return [*own_headers(group), *([(_GUARD_HEADER, b"1")] if guarded else [])]


def says_guarded(headers: KafkaHeaders) -> bool:
    """Whether the writer of a mark or of a progress row was in a guarded group."""
    return text_of(headers, _GUARD_HEADER) is not None


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
    schema = schema_of(headers)
    if schema is None:
        raise Undecodable("the header safe.schema is missing or not a number")
    if schema > SCHEMA:
        raise NewerSchema(f"schema {schema} was written by a newer SAFE; this one reads up to {SCHEMA}")
    if schema < SCHEMA - 1:
        raise Undecodable(f"schema {schema} is older than this SAFE reads")


def schema_of(headers: KafkaHeaders) -> int | None:
    """The schema of a record of `scored` or `state`; None without one."""
    for name, content in headers:
        if name == _SCHEMA_HEADER and content is not None and content.isdigit() and len(content) <= _LONGEST_SCHEMA:
            return int(content)
    return None


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
