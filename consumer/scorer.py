"""The scorer: decode → find expectations → score → publish, for one partition of the input."""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from consumer.dead_letters import DeadLetterTopic, append_dead_letter
from consumer.decode import InputEvent, InputRules, Record, decode
from consumer.errors import Poison, Transient
from consumer.kafka import Outgoing, Subscription, partition_for
from consumer.metrics import Metrics
from consumer.occasional import Occasional
from consumer.ports import ExpectationsKey, ExpectationsSource, FoundExpectations
from consumer.records import batch_key, case_key, own_headers
from consumer.scored import ScoredBy, encode_scored
from safe_core import CaseScore, Policy, score

_log = structlog.get_logger("safe.scorer")

_RECORDS_PER_TURN = 200
"""Records scored between two turns of the event loop: heartbeats run on the same loop."""

_LARGE_BYTES = 64 * 1024

_RESULT_OVERHEAD_BYTES = 16 * 1024
"""What a result or a row adds to a scored record at most (contract, section 3)."""

_PLACEHOLDER_ARCHETYPE = "Unknown"


@dataclass(frozen=True, slots=True)
class ScorerSettings:
    """Everything that a scorer needs to know; `input_start` is None, "earliest" or "latest"."""

    group: str
    version: str
    policy: Policy
    input_rules: InputRules
    input_start: str | None
    expectations_grace_seconds: float
    scored_topic: str
    scored_partitions: int
    dead_letters: DeadLetterTopic


@dataclass(slots=True)
class _SliceCounts:
    """What a slice will have done once it is committed."""

    outcomes: Counter[str] = field(default_factory=Counter)
    cases: Counter[tuple[str, str]] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    empty_outputs: Counter[str] = field(default_factory=Counter)
    scoring_seconds: list[float] = field(default_factory=list)


class ScorerPartition:
    """What the scorer does with one partition of the input; it keeps no state of its own."""

    def __init__(
        self,
        partition: int,
        settings: ScorerSettings,
        source: ExpectationsSource,
        metrics: Metrics,
        now_ms: Callable[[], int],
    ) -> None:
        self._partition = partition
        self._settings = settings
        self._source = source
        self._metrics = metrics
        self._now_ms = now_ms
        self._scored_by = ScoredBy(settings.version, settings.policy.fingerprint)
        self._headers = own_headers(settings.group)
        self._counts = _SliceCounts()
        self._missing_since: dict[ExpectationsKey, float] = {}
        self._begun_at: float | None = None
        self._buried = Occasional(
            "records became dead letters", partition=partition, dead_letter_topic=settings.dead_letters.name
        )

    # --- the life of a partition --------------------------------------------------------------------------------------

    async def restore(self) -> None:
        """Nothing to rebuild: scoring depends on the record and its expectations alone."""

    async def first_offset(self, subscription: Subscription, committed: int | None) -> int:
        """The committed offset, else what SAFE_V0_INPUT_START says, else the earliest record."""
        if committed is not None:
            return committed
        if self._settings.input_start == "latest":
            self._begun_at = time.monotonic()
            return await subscription.end(self._partition)
        return await subscription.beginning(self._partition)

    def finish(self, outgoing: Outgoing, next_offset: int, *, at_end: bool) -> None:
        """Nothing but the outputs and the offset belongs into a scorer's transaction."""

    def next_chore_at(self, *, at_end: bool) -> float | None:  # noqa: ARG002 - the protocol's signature
        """One chore: where reading began behind older records is committed at once, or a restart would skip more."""
        return self._begun_at

    def show(self, *, visible: bool) -> None:
        """A scorer exports nothing of its own."""

    def drop(self) -> None:
        """A scorer holds nothing but what it has not said yet."""
        self._buried.flush()

    # --- one slice ----------------------------------------------------------------------------------------------------

    async def process(self, records: Sequence[Record], outgoing: Outgoing) -> int:
        """Score a slice; raises Transient while expectations cannot be had."""
        self._counts = _SliceCounts()
        decoded = await self._decode(records)
        keys = {ExpectationsKey(event.batch_id, event.test_id) for event in decoded if isinstance(event, InputEvent)}
        found = await self._source.find(list(keys)) if keys else {}
        self._wait_for_missing(found)
        for turn, (record, event) in enumerate(zip(records, decoded, strict=True), start=1):
            if _is_large(record):
                await asyncio.to_thread(self._one, record, event, found, outgoing)
            else:
                self._one(record, event, found, outgoing)
            if turn % _RECORDS_PER_TURN == 0:
                await asyncio.sleep(0)
        return len(records)

    async def _decode(self, records: Sequence[Record]) -> list[InputEvent | Poison | None]:
        decoded: list[InputEvent | Poison | None] = []
        rules = self._settings.input_rules
        for turn, record in enumerate(records, start=1):
            if _is_large(record):
                decoded.append(await asyncio.to_thread(_decoded, record, rules))
            else:
                decoded.append(_decoded(record, rules))
            if turn % _RECORDS_PER_TURN == 0:
                await asyncio.sleep(0)
        return decoded

    def _wait_for_missing(self, found: Mapping[ExpectationsKey, FoundExpectations | Poison]) -> None:
        """An output may arrive before its test case: within the grace, the partition waits."""
        grace = self._settings.expectations_grace_seconds
        if not grace:
            return
        now = time.monotonic()
        missing = {
            key for key, answer in found.items()
            if isinstance(answer, Poison) and answer.reason == "expectations_not_found"
        }  # fmt: skip
        self._missing_since = {key: self._missing_since.get(key, now) for key in missing}
        if any(now - since < grace for since in self._missing_since.values()):
            raise Transient("a test case is not there yet; waiting for SAFE_V0_EXPECTATIONS_GRACE_SECONDS")

    def _one(
        self,
        record: Record,
        event: InputEvent | Poison | None,
        found: Mapping[ExpectationsKey, FoundExpectations | Poison],
        outgoing: Outgoing,
    ) -> None:
        if event is None:
            self._counts.outcomes["ignored"] += 1
            return
        try:
            if isinstance(event, Poison):
                raise event
            answer = found[ExpectationsKey(event.batch_id, event.test_id)]
            if isinstance(answer, Poison):
                raise answer
            self._score(record, event, answer, outgoing)
        except Poison as poison:
            self._bury(record, poison, outgoing)

    def _score(self, record: Record, event: InputEvent, found: FoundExpectations, outgoing: Outgoing) -> None:
        concern_id = event.concern_id or found.concern_id
        if concern_id is None:
            raise Poison("invalid_event", "neither the event nor its test case names a concern")
        archetype = event.archetype if event.archetype != _PLACEHOLDER_ARCHETYPE else None
        archetype = archetype or found.archetype
        started = time.perf_counter()
        case = self._scored(event, found, concern_id, archetype)
        value = encode_scored(
            record, event, concern_id, archetype, found, case,
            "sha256:" + hashlib.sha256(record.value or b"").hexdigest(), self._scored_by, self._now_ms(),
        )  # fmt: skip
        self._counts.scoring_seconds.append(time.perf_counter() - started)
        if len(value) > self._settings.input_rules.max_value_bytes - _RESULT_OVERHEAD_BYTES:
            raise Poison("result_too_large", f"the scored record has {len(value)} bytes")
        partition = partition_for(batch_key(concern_id, event.batch_id), self._settings.scored_partitions)
        key = case_key(concern_id, event.batch_id, event.test_id).encode()
        outgoing.append(self._settings.scored_topic, partition, key, value, self._headers)
        counts = self._counts
        counts.outcomes["scored"] += 1
        counts.cases[concern_id, case.label] += 1
        if case.empty_output:
            counts.empty_outputs[concern_id] += 1

    def _scored(self, event: InputEvent, found: FoundExpectations, concern_id: str, archetype: str | None) -> CaseScore:
        metric_id = event.metric_id or found.metric_id or concern_id
        try:
            return score(found.prepared, event.output, self._settings.policy.rules_for(metric_id, archetype))
        except Exception as error:  # a record must never stop its partition, whatever a defect of ours makes of it
            raise Poison("scorer_error", f"{type(error).__name__} while scoring") from error

    # --- dead letters -------------------------------------------------------------------------------------------------

    def _bury(self, record: Record, poison: Poison, outgoing: Outgoing) -> None:
        append_dead_letter(outgoing, record, poison, "scorer", self._settings.dead_letters, self._now_ms())
        self._counts.outcomes["dead_lettered"] += 1
        self._counts.reasons[poison.reason] += 1

    def committed(self, next_offset: int) -> None:  # noqa: ARG002 - the protocol's signature
        """Move the counters, and say once per slice what was buried."""
        self._begun_at = None
        counts, self._counts = self._counts, _SliceCounts()
        self._metrics.count_slice(
            counts.outcomes, counts.cases, counts.reasons, counts.empty_outputs, counts.scoring_seconds
        )
        self._buried.note(counts.reasons)


def _decoded(record: Record, rules: InputRules) -> InputEvent | Poison | None:
    try:
        return decode(record, rules)
    except Poison as poison:
        return poison


def _is_large(record: Record) -> bool:
    """Large values are decoded and scored in a thread: one of 1 MiB may take a quarter of a second."""
    return record.value is not None and len(record.value) > _LARGE_BYTES
