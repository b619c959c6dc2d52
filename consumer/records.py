"""What SAFE itself writes to Kafka: keys, headers, the changelog's rows (contract.md, "Topics and keys", "State").

The values of `scored` and of results stand in `scored.py`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple, get_type_hints

import orjson

from consumer.decode import Record
from consumer.errors import SafeError
from consumer.naming import is_utf8

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


# --- keys -------------------------------------------------------------------------------------------------------------


def _part(text: str) -> str:
    return text.replace("%", "%25").replace("/", "%2F") if "%" in text or "/" in text else text


@lru_cache(maxsize=4_096)
def batch_key(concern_id: str, batch_id: str) -> str:
    """Key of results and reports, `<concern>/<batch>`; it alone decides the partition."""
    return f"{_part(concern_id)}/{_part(batch_id)}"


def case_key(concern_id: str, batch_id: str, test_id: str) -> str:
    """Key of scored records and rows, `<concern>/<batch>/<test>`."""
    return f"{_part(concern_id)}/{_part(batch_id)}/{_part(test_id)}"


PROGRESS_KEY = b"progress"
"""Key of a partition's progress row: without a slash, so that no batch or case can have it."""

MARK_KEY = b"mark"
"""Key of the tombstone that a new owner of the changelog writes first, so that a restore knows where to end."""


def parts_of(key: bytes) -> tuple[str, ...]:
    """The parts of a key as they were before escaping: one for progress, two for a batch, three for a case."""
    try:
        text = key.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Undecodable("a key is not UTF-8") from error
    return tuple(part.replace("%2F", "/").replace("%25", "%") for part in text.split("/"))


# --- times ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4_096)  # a slice has few distinct times, and formatting one costs as much as scoring a case
def rfc_3339(milliseconds: int) -> str:
    """`2026-11-21T20:00:00.000Z` of milliseconds since 1970."""
    seconds, rest = divmod(milliseconds, 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"


# --- headers of our own topics ----------------------------------------------------------------------------------------


def own_headers(group: str) -> KafkaHeaders:
    """Headers of every record in `scored` and `state`."""
    return [(_SCHEMA_HEADER, str(SCHEMA).encode()), (_GROUP_HEADER, group.encode())]


def group_of(headers: KafkaHeaders) -> str | None:
    """The group that wrote a record of `scored` or `state`."""
    for name, content in headers:
        if name == _GROUP_HEADER and content is not None:
            return content.decode("utf-8", "replace")
    return None


_LONGEST_SCHEMA = 20
"""Digits of a schema: more are no version of ours, and Python refuses to read thousands of them."""


def check_schema(headers: KafkaHeaders) -> None:
    """Raise NewerSchema or Undecodable unless the record's schema is ours or the one before."""
    for name, _ in headers:
        if not (name.isascii() or is_utf8(name)):
            raise Undecodable("the name of a header is not UTF-8")
    for name, content in headers:
        if name == _SCHEMA_HEADER and content is not None and content.isdigit() and len(content) <= _LONGEST_SCHEMA:
            if int(content) > SCHEMA:
                raise NewerSchema(f"schema {int(content)} was written by a newer SAFE; this one reads up to {SCHEMA}")
            if int(content) >= SCHEMA - 1:
                return
            raise Undecodable(f"schema {int(content)} is older than this SAFE reads")
    raise Undecodable("the header safe.schema is missing or not a number")


# --- traces -----------------------------------------------------------------------------------------------------------

_TRACE_HEADER = "traceparent"
# W3C Trace Context: version (ff is none), trace and parent (neither all 0), flags. What a later version may add behind
# these is unknown, and not carried.
_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def traced(headers: KafkaHeaders, source: KafkaHeaders) -> KafkaHeaders:
    """Give the headers, and with them the traceparent of the record that they come from; an invalid one is dropped."""
    parent = None
    for name, content in source:
        if name == _TRACE_HEADER:
            parent = content
    if parent is None or _TRACEPARENT.fullmatch(parent) is None:
        return headers
    return [*headers, (_TRACE_HEADER, parent)]


# --- results and reports ----------------------------------------------------------------------------------------------


def report_headers(key: str, partition: int, covers: int, generated_at: str, ce_source: bytes) -> KafkaHeaders:
    """CloudEvents headers of a report that covers `scored` up to, not including, offset `covers`."""
    identity = f"{key}@{partition}/{covers}"
    return cloudevent(REPORT_TYPE, identity.encode(), ce_source, generated_at.encode(), key.encode())


_SPEC_VERSION = ("ce_specversion", b"1.0")
_JSON = ("content-type", b"application/json")


def cloudevent(type_: str, identity: bytes, source: bytes, time: bytes, subject: bytes) -> KafkaHeaders:
    """Headers of a CloudEvent in binary mode."""
    return [
        _SPEC_VERSION,
        ("ce_id", identity),
        ("ce_type", type_.encode()),
        ("ce_source", source),
        ("ce_time", time),
        ("ce_subject", subject),
        _JSON,
    ]


def ce_source(group: str) -> str:
    """`ce_source` of everything a group publishes."""
    return f"/safe/{group}"


# --- rows of the changelog --------------------------------------------------------------------------------------------


class BatchRow(NamedTuple):
    """What the changelog notes of a batch besides its cases.

    `last_scored_at` (ms) is the timestamp of its last scored record, winner or not; `cases` how many rows it has, so
    that a restore can tell when some are gone; `moved` is the next `scored` offset
    after the last record that changed it, `reported` the one that its last report covers (published at `reported_at`,
    ms): a report is owed while `moved` is greater. `stage` is live, forgetting (its rows are being tombstoned) or
    forgotten (they are gone).
    """

    last_scored_at: int
    cases: int
    expected_cases: int | None
    moved: int
    reported: int
    reported_at: int
    fingerprint: str
    version: str
    stage: str = "live"

    def encode(self) -> bytes:
        """The row's value."""
        return orjson.dumps(self._asdict())


class ProgressRow(NamedTuple):
    """How far a partition of `scored` is folded: `next_offset` is the next one to read.

    `topic_id` is the cluster's id of `scored`, None where the broker does not tell or an older SAFE wrote the row.
    `transactions` counts those that have written the row: the committed offset repeats the count in its note, so that
    a row and an offset that are not of the same transaction can be told apart even where the offset did not move.
    """

    group: str
    schema: int
    partitions: int
    next_offset: int
    topic_id: str | None = None
    transactions: int | None = None

    def encode(self) -> bytes:
        """The row's value."""
        return orjson.dumps(self._asdict())

    @property
    def note(self) -> str:
        """What is committed with the offset."""
        return f"{_TRANSACTIONS}{self.transactions}"


_TRANSACTIONS = "transactions="


def transactions_of(note: str) -> int | None:
    """The count that an offset's note repeats; None of a note that SAFE did not write."""
    count = note.removeprefix(_TRANSACTIONS)
    return (
        int(count) if note != count and count.isascii() and count.isdigit() and len(count) <= _LONGEST_COUNT else None
    )


_LONGEST_COUNT = 18


def decode_batch_row(value: bytes) -> BatchRow:
    """Read a batch's row; raises Undecodable."""
    return BatchRow(**_members(value, BatchRow))


def decode_progress_row(value: bytes) -> ProgressRow:
    """Read a partition's progress row; raises Undecodable."""
    return ProgressRow(**_members(value, ProgressRow))


_ADDED = frozenset({"topic_id", "transactions"})
"""Members that rows of the same schema may lack, since an older SAFE wrote them."""


def _members(value: bytes, row: type[BatchRow | ProgressRow]) -> dict[str, Any]:
    try:
        document = orjson.loads(value)
        members = {name: document.get(name) if name in _ADDED else document[name] for name in row._fields}
    except (KeyError, TypeError, ValueError) as error:
        raise Undecodable(f"not a row of the changelog: {type(error).__name__}") from error
    for name, type_ in get_type_hints(row).items():
        if not isinstance(members[name], type_):
            raise Undecodable(f"not a row of the changelog: {name} is of another type")
    return members


# --- dead letters -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Why a record became a dead letter, as its headers tell (contract.md, "Dead letters")."""

    reason: str
    detail: str
    stage: str
    group: str
    version: str
    failed_at: int

    def headers(self, record: Record) -> list[tuple[str, bytes | None]]:
        """The record's own headers without any `safe.dlq.*` that came in, or whose name is not UTF-8, and ours."""
        told = {
            "reason": self.reason,
            "stage": self.stage,
            "detail": self.detail.encode()[:_DETAIL_LIMIT].decode("utf-8", "ignore"),
            "topic": record.topic,
            "partition": str(record.partition),
            "offset": str(record.offset),
            "timestamp": str(record.timestamp),
            "group": self.group,
            "version": self.version,
            "failed_at": rfc_3339(self.failed_at),
        }
        kept = came_with(record.headers)
        return kept + [(DLQ_PREFIX + name, text.encode()) for name, text in told.items()]


def value_omitted(value: bytes, sha256: str) -> list[tuple[str, bytes | None]]:
    """Headers of a dead letter whose value does not fit into its topic."""
    return [
        (DLQ_PREFIX + "value_omitted", b"true"),
        (DLQ_PREFIX + "value_bytes", str(len(value)).encode()),
        (DLQ_PREFIX + "value_sha256", sha256.encode()),
    ]


def came_with(headers: KafkaHeaders) -> list[tuple[str, bytes | None]]:
    """The headers of a record that a dead letter keeps: no name of SAFE's own, and none that cannot be written."""
    return [header for header in headers if not header[0].startswith(DLQ_PREFIX) and is_utf8(header[0])]


DLQ_PREFIX = "safe.dlq."
_DETAIL_LIMIT = 512
