"""What SAFE itself writes to Kafka: keys, headers and values of its six topics (contract, sections 3 and 4).

A scored record and the row of the changelog have the same value, so that the aggregator copies what won byte for byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple, get_args, get_type_hints

import orjson

from consumer.decode import InputEvent, Record
from consumer.errors import SafeError
from consumer.ports import FoundExpectations
from safe_core import CaseRow, CaseScore, Details, Label, Passed, Scores, Terms, Vacuous, result_document

SCHEMA = 1
"""Version of the values in `scored` and `state`; a reader takes its own and the one before."""

RESULT_TYPE = "safe:v0:result"
REPORT_TYPE = "safe:v0:report"
_RESULT_TYPE = RESULT_TYPE.encode()
_REPORT_TYPE = REPORT_TYPE.encode()

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
    for name, content in headers:
        if name == _SCHEMA_HEADER and content is not None and content.isdigit() and len(content) <= _LONGEST_SCHEMA:
            if int(content) > SCHEMA:
                raise NewerSchema(f"schema {int(content)} was written by a newer SAFE; this one reads up to {SCHEMA}")
            if int(content) >= SCHEMA - 1:
                return
            raise Undecodable(f"schema {int(content)} is older than this SAFE reads")
    raise Undecodable("the header safe.schema is missing or not a number")


# --- scored -----------------------------------------------------------------------------------------------------------


class ScoredBy(NamedTuple):
    """Who scored: version of the package and fingerprint of the policy."""

    version: str
    fingerprint: str


def encode_scored(
    record: Record,
    event: InputEvent,
    concern_id: str,
    archetype: str | None,
    found: FoundExpectations,
    case: CaseScore,
    output_digest: str,
    scored_by: ScoredBy,
    scored_at: int,
) -> bytes:
    """One scored case as the repartition topic and the changelog hold it."""
    return orjson.dumps(
        {
            "concern_id": concern_id,
            "batch_id": event.batch_id,
            "run_id": event.run_id,
            "result": result_document(event.test_id, archetype, case),
            "source": {
                "topic": record.topic,
                "partition": record.partition,
                "offset": record.offset,
                "event_time": event.event_time,
            },
            "scorer": {"version": scored_by.version, "fingerprint": scored_by.fingerprint},
            "expectations_digest": found.prepared.digest,
            "output_digest": output_digest,
            "expected_cases": found.expected_cases,
            "in_batch": found.in_batch,
            "passed": [*case.passed],  # orjson refuses named tuples
            "vacuous": [*case.vacuous],
            "empty_output": case.empty_output,
            "published_at": record.timestamp,
            "scored_at": scored_at,
        }
    )


@dataclass(slots=True)
class ScoredCase:
    """A decoded scored record: what the fold keeps, and the document that its result event is made of."""

    concern_id: str
    batch_id: str
    test_id: str
    expected_cases: int | None
    row: CaseRow
    document: dict[str, Any]


def decode_scored(value: bytes | None) -> ScoredCase:
    """Read a scored record or a row of the changelog; raises Undecodable."""
    try:
        document = orjson.loads(value or b"")
        result = document["result"]
        source = document["source"]
        details, scores, terms = result["details"], result["scores"], result["terms"]
        recall, harm, content = details["CR"], details["AH"], details["AC"]
        case = CaseScore(
            scores=Scores(scores["CR"], scores["AH"], scores["AC"], scores["composite"]),
            details=Details(
                tuple(recall["found"]),
                tuple(recall["missing"]),
                tuple(harm["violations"]),
                tuple(content["found"]),
                tuple(content["missing"]),
            ),
            terms=Terms(terms["CR"], terms["AH"], terms["AC"]),
            passed=Passed(*document["passed"]),
            vacuous=Vacuous(*document["vacuous"]),
            empty_output=document["empty_output"],
            label=result["label"],
        )
        _check_case(case)
        _check_document(document)
        row = CaseRow.of(
            version=(source["event_time"], source["partition"], source["offset"]),
            archetype=result["archetype"],
            run_id=document["run_id"],
            fingerprint=document["scorer"]["fingerprint"],
            expected=document["in_batch"],
            case=case,
        )
        # Rebuilt from what was checked: a stranger's members, however deep, go no further.
        document["result"] = result_document(result["test_id"], result["archetype"], case)
        document["source"] = {name: source[name] for name in ("topic", "partition", "offset", "event_time")}
        document["scorer"] = {name: document["scorer"][name] for name in ("version", "fingerprint")}
        return ScoredCase(
            document["concern_id"], document["batch_id"], result["test_id"], document["expected_cases"], row, document
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Undecodable(f"not a scored record: {type(error).__name__}") from error


_LABELS = frozenset(get_args(Label))
_END_OF_YEAR_9999_MS = 253_402_300_800_000


def _check_case(case: CaseScore) -> None:
    """Raise TypeError or ValueError for what the fold would choke on: it must not meet it halfway through a slice."""
    "".join(term for terms in case.details for term in terms)  # nothing but text can be joined
    if {*map(type, case.scores)} != {float} or not 0.0 <= min(case.scores) <= max(case.scores) <= 1.0:
        raise ValueError("a score is not a number in [0, 1]")
    if {*map(type, (*case.passed, *case.vacuous, case.empty_output))} != {bool} or {*map(type, case.terms)} != {int}:
        raise TypeError("a flag or a count is of another type")
    if case.label not in _LABELS:
        raise ValueError("an unknown label")


def _check_document(document: dict[str, Any]) -> None:
    """Raise KeyError, TypeError or ValueError for what a result event could not be made of."""
    result, source, scorer = document["result"], document["source"], document["scorer"]
    "".join((document["concern_id"], document["batch_id"], result["test_id"], source["topic"], scorer["version"]))
    "".join((scorer["fingerprint"], document["expectations_digest"], document["output_digest"]))
    "".join(text for text in (result["archetype"], document["run_id"]) if text is not None)
    expected = document["expected_cases"]
    numbers = (document["scored_at"], document["published_at"], 0 if expected is None else expected)
    if {*map(type, numbers)} != {int} or type(document["in_batch"]) is not bool:
        raise TypeError("a number or a flag is of another type")
    if not 0 <= document["scored_at"] < _END_OF_YEAR_9999_MS:
        raise ValueError("scored_at is no time")


# --- results and reports ----------------------------------------------------------------------------------------------


def encode_result(
    scored: ScoredCase, summary: dict[str, Any], expected_cases: int | None, *, complete: bool, mixed_runs: bool
) -> bytes:
    """Data of `safe:v0:result`: the case, and its batch's summary as of that case."""
    document = scored.document
    return orjson.dumps(
        {
            "concern_id": scored.concern_id,
            "batch_id": scored.batch_id,
            "timestamp": rfc_3339(document["scored_at"]),
            "summary": summary,
            "expected_cases": expected_cases,
            "complete": complete,
            "run_id": document["run_id"],
            "mixed_runs": mixed_runs,
            "result": document["result"],
            "source": document["source"],
            "scorer": document["scorer"],
            "expectations_digest": document["expectations_digest"],
            "output_digest": document["output_digest"],
        }
    )


_FINGERPRINT_DIGITS = slice(len("sha256:"), len("sha256:") + 16)


def result_headers(scored: ScoredCase, subject: bytes, ce_source: bytes) -> KafkaHeaders:
    """CloudEvents headers of a result; its id depends on its source alone, so a replay gives the same."""
    document = scored.document
    source = document["source"]
    digits = document["scorer"]["fingerprint"][_FINGERPRINT_DIGITS]
    identity = f"{source['topic']}/{source['partition']}/{source['offset']}/{digits}"
    return _cloudevent(_RESULT_TYPE, identity.encode(), ce_source, rfc_3339(document["scored_at"]).encode(), subject)


def report_headers(key: str, partition: int, covers: int, generated_at: str, ce_source: bytes) -> KafkaHeaders:
    """CloudEvents headers of a report that covers `scored` up to, not including, offset `covers`."""
    identity = f"{key}@{partition}/{covers}"
    return _cloudevent(_REPORT_TYPE, identity.encode(), ce_source, generated_at.encode(), key.encode())


_SPEC_VERSION = ("ce_specversion", b"1.0")
_JSON = ("content-type", b"application/json")


def _cloudevent(type_: bytes, identity: bytes, source: bytes, time: bytes, subject: bytes) -> KafkaHeaders:
    return [
        _SPEC_VERSION,
        ("ce_id", identity),
        ("ce_type", type_),
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

    `last_scored_at` (ms) is the timestamp of its last scored record, winner or not; `moved` is the next `scored` offset
    after the last record that changed it, `reported` the one that its last report covers (published at `reported_at`,
    ms): a report is owed while `moved` is greater. `stage` is live, forgetting (its rows are being tombstoned) or
    forgotten (they are gone).
    """

    last_scored_at: int
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
    """How far a partition of `scored` is folded: `next_offset` is the next one to read."""

    group: str
    schema: int
    partitions: int
    next_offset: int

    def encode(self) -> bytes:
        """The row's value."""
        return orjson.dumps(self._asdict())


def decode_batch_row(value: bytes) -> BatchRow:
    """Read a batch's row; raises Undecodable."""
    return BatchRow(**_members(value, BatchRow))


def decode_progress_row(value: bytes) -> ProgressRow:
    """Read a partition's progress row; raises Undecodable."""
    return ProgressRow(**_members(value, ProgressRow))


def _members(value: bytes, row: type[BatchRow | ProgressRow]) -> dict[str, Any]:
    try:
        document = orjson.loads(value)
        members = {name: document[name] for name in row._fields}
    except (KeyError, TypeError, ValueError) as error:
        raise Undecodable(f"not a row of the changelog: {type(error).__name__}") from error
    for name, type_ in get_type_hints(row).items():
        if not isinstance(members[name], type_):
            raise Undecodable(f"not a row of the changelog: {name} is of another type")
    return members


# --- dead letters -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Why a record became a dead letter, as its headers tell (contract, section 3)."""

    reason: str
    detail: str
    stage: str
    group: str
    version: str
    failed_at: int

    def headers(self, record: Record) -> list[tuple[str, bytes | None]]:
        """The record's own headers without any `safe.dlq.*` that came in, and ours."""
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
        kept = [header for header in record.headers if not header[0].startswith(_DLQ_PREFIX)]
        return kept + [(_DLQ_PREFIX + name, text.encode()) for name, text in told.items()]


def value_omitted(value: bytes, sha256: str) -> list[tuple[str, bytes | None]]:
    """Headers of a dead letter whose value does not fit into its topic."""
    return [
        (_DLQ_PREFIX + "value_omitted", b"true"),
        (_DLQ_PREFIX + "value_bytes", str(len(value)).encode()),
        (_DLQ_PREFIX + "value_sha256", sha256.encode()),
    ]


_DLQ_PREFIX = "safe.dlq."
_DETAIL_LIMIT = 512
