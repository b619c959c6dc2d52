"""The result event: a scored case, with its batch's summary as of that case (contract.md, "Result")."""

from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from consumer.wire.headers import RESULT_TYPE, cloudevent
from consumer.wire.record import KafkaHeaders
from consumer.wire.scored_record import ScoredBy, ScoredRecord, SourceShape
from consumer.wire.times import rfc_3339
from safe_core import Generation

_ENCODER = msgspec.json.Encoder()


class _ResultEvent(Struct):
    """The data of a result event, in the order of its members."""

    concern_id: str
    batch_id: str
    timestamp: str
    summary: dict[str, Any]
    expected_cases: int | None
    complete: bool
    run_id: str | None
    input_matches: bool | None
    generation: Generation
    mixed_runs: bool
    failed_generations: int
    result: Any
    source: SourceShape
    scorer: ScoredBy
    expectations_digest: str
    output_digest: str
    lenient: dict[str, float] | UnsetType = UNSET
    coverage: dict[str, float] | UnsetType = UNSET


def encode_result(
    scored: ScoredRecord[Any], summary: dict[str, Any], *, complete: bool, mixed_runs: bool, failed_generations: int
) -> bytes:
    """The result event of a scored case, with its batch's summary as of that case."""
    return _ENCODER.encode(
        _ResultEvent(
            scored.concern_id, scored.batch_id, rfc_3339(scored.scored_at), summary, scored.expected_cases, complete,
            scored.run_id, scored.input_matches, scored.generation, mixed_runs, failed_generations, scored.result,
            scored.source, scored.scorer,
            scored.expectations_digest, scored.output_digest,
            **({} if scored.marks is UNSET else scored.marks.marks.document),
        )
    )  # fmt: skip


_FINGERPRINT_DIGITS = slice(len("sha256:"), len("sha256:") + 16)


def result_headers(scored: ScoredRecord[Any], subject: bytes, ce_source: bytes) -> KafkaHeaders:
    """CloudEvents headers of a result; its id depends on its source alone, so a replay gives the same."""
    source = scored.source
    topic = source.topic if source.topic_id is UNSET else f"{source.topic}@{source.topic_id}"
    identity = f"{topic}/{source.partition}/{source.offset}/{scored.scorer.fingerprint[_FINGERPRINT_DIGITS]}"
    return cloudevent(RESULT_TYPE, identity.encode(), ce_source, rfc_3339(scored.scored_at).encode(), subject)
