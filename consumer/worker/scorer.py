"""The scorer: decode → find expectations → score → publish, for one partition of the input."""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from msgspec import UNSET, Raw, UnsetType

from consumer.case_sources.source import ExpectationsKey, ExpectationsSource, FoundExpectations
from consumer.dead_letter_reasons import Poison
from consumer.errors import Transient
from consumer.kafka.group_offsets import Committed
from consumer.kafka.partitioner import partition_for
from consumer.kafka.subscription import Subscription
from consumer.kafka.writer import Outgoing, PartitionWriter
from consumer.loop_budget import LoopBudget
from consumer.telemetry.metrics import Metrics
from consumer.telemetry.rate_limited_warnings import RateLimitedWarning
from consumer.wire.changelog import InputTopic
from consumer.wire.headers import own_headers
from consumer.wire.input_event import InputEvent, InputRules, decode
from consumer.wire.keys import MARK_KEY, batch_key, case_key
from consumer.wire.offset_note import is_noted, note_of
from consumer.wire.record import Record
from consumer.wire.scored_record import MarksShape, ScoredBy, ScoredRecord, SourceShape, encode_scored
from consumer.wire.trace_headers import caused_by, traced
from consumer.worker.dead_letter_limit import DeadLetterLimits, DeadLetterWatch
from consumer.worker.dead_letter_writing import DeadLetterTopic, append_dead_letter
from consumer.worker.event_waits import unless
from consumer.worker.scoring_memory import EncodedScore, ScoringMemory
from consumer.worker.spans import SliceSpans
from consumer.worker.topic_limits import RESULT_OVERHEAD_BYTES, TopicLimits
from safe_core import (
    EMPTY_OUTPUT,
    CaseScore,
    Details,
    Generation,
    JudgedBy,
    Output,
    Policy,
    do_inputs_match,
    judged_by,
    kind_of,
)
from safe_core.accepted_wordings import Accepted
from safe_core.lenient_scores import Marks
from safe_core.near_violations import near_violations

_LARGE_BYTES = 64 * 1024

_ALL = 1_000_000
"""More records than a slice ever has."""

_MOST_COMPARED = 20_000_000
"""Of the characters of a narrative, times the bytes of its output: what comparing their values may cost."""

_MOST_JUDGED_BYTES = 400_000
"""Of an output, times the terms that it misses: what lenient recall may cost, which is about a second."""


@dataclass(frozen=True, slots=True)
class ScorerSettings:
    """What a scorer needs to know; `input_start`, for partitions without an offset, is None, "earliest" or "latest".

    `input_topic` is None if the brokers do not report ids.
    """

    group: str
    version: str
    policy: Policy
    input_rules: InputRules
    input_start: str | None
    expectations_grace_seconds: float
    scored_topic: str
    scored_partitions: int
    input_topic: InputTopic | None
    dead_letters: DeadLetterTopic
    dead_letter_limits: DeadLetterLimits
    limits: TopicLimits = field(default_factory=TopicLimits)


class TopicIds(NamedTuple):
    """The id of the input topic, at the one of two places in a scored record where it belongs, if it is known."""

    in_result_ids: str | UnsetType = UNSET
    beside: str | UnsetType = UNSET

    @classmethod
    def of(cls, topic: InputTopic | None) -> "TopicIds":
        if topic is None or topic.id is None:
            return cls()
        return cls(in_result_ids=topic.id) if topic.is_in_result_ids else cls(beside=topic.id)


_Decoded = InputEvent | Poison | None
"""What a record holds, or why it holds nothing that can be scored; None for one that is ignored."""

_Found = Mapping[Any, FoundExpectations | Poison]
"""By batch_id and test_id: an ExpectationsKey, or the plain pair, which is equal to it and made more quickly."""

_Answer = FoundExpectations | Poison | None
"""The test case of a decoded record, or why it becomes a dead letter; None for one that is ignored."""


JudgeUnmarked = Callable[[int, Committed], Awaitable[None]]
"""Returns if a partition may begin at an offset that SAFE did not commit; raises Transient."""


JudgeMarks = Callable[[Output, Details, Accepted], Marks]
"""Gives lenient recall and coverage, and takes milliseconds: an output with marks is scored in a thread."""


CountUnsupported = Callable[[Output, str], int]
"""Counts the values of an output that a narrative does not have, and takes tens of milliseconds."""


class Beside(NamedTuple):
    """What is said beside the scores, where it is asked for: it takes long, so outputs are then scored in a thread."""

    judge_marks: JudgeMarks | None = None
    count_unsupported: CountUnsupported | None = None


class ScorerPartition:
    """What the scorer does with one partition of the input; it keeps no state of its own."""

    def __init__(
        self,
        partition: int,
        settings: ScorerSettings,
        source: ExpectationsSource,
        metrics: Metrics,
        now_ms: Callable[[], int],
        judge_unmarked: JudgeUnmarked,
        spans: SliceSpans | None = None,
        memory: ScoringMemory | None = None,
        beside: Beside | None = None,
    ) -> None:
        self._beside = beside or Beside()
        self._judge_unmarked = judge_unmarked
        self._spans = spans or SliceSpans()
        self._memory = memory or ScoringMemory(settings.policy)
        self._partition = partition
        self._settings = settings
        self._source = source
        self._metrics = metrics
        self._now_ms = now_ms
        self._scored_by = ScoredBy(settings.version, settings.policy.fingerprint)
        self._headers = own_headers(settings.group)
        self._topic_ids = TopicIds.of(settings.input_topic)
        self._missing_since: dict[tuple[str, str, str | None], float] = {}
        self._most_records = _ALL
        self._hidden = asyncio.Event()
        self._watch = self._trial_watch = DeadLetterWatch(settings.dead_letter_limits)
        self._begun_at = inf
        self._scored_at = 0
        self._writer: PartitionWriter | None = None
        self._dead_letter_warning = RateLimitedWarning(
            "records became dead letters", partition=partition, dead_letter_topic=settings.dead_letters.name
        )
        self._misspelt_warning = RateLimitedWarning(
            "scored events have keys that nothing reads, but that resemble keys that are read", partition=partition
        )
        self._begin_slice()

    def _begin_slice(self) -> None:
        """Forget what is counted only once a slice is committed."""
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._reasons: Counter[str] = Counter()
        self._resembled: Counter[str] = Counter()
        self._scoring_seconds: list[float] = []
        room = self._settings.input_rules.max_value_bytes - RESULT_OVERHEAD_BYTES
        self._most_bytes = min(room, self._settings.limits.scored_bytes)

    # --- the life of a partition --------------------------------------------------------------------------------------

    async def restore(self, writer: PartitionWriter) -> None:
        """Nothing to rebuild: scoring depends on the record and its expectations alone."""
        self._writer = writer

    async def first_offset(self, subscription: Subscription, committed: Committed | None) -> int:
        """The committed offset, else what SAFE_V0_INPUT_START says, else the earliest record.

        Raises Transient if SAFE did not commit that offset, nor a version of it without notes. What time it is is asked
        last: a partition that waits for its offset is taken up again and again, and must not write a mark each time.
        """
        offset = await self._offset_after(subscription, committed)
        if self._writer is not None:
            settings = self._settings
            partition = self._partition % settings.scored_partitions
            await self._writer.learn_time(settings.scored_topic, partition, MARK_KEY, self._headers)
        return offset

    async def _offset_after(self, subscription: Subscription, committed: Committed | None) -> int:
        if committed is not None:
            if not is_noted(*committed):
                await self._judge_unmarked(self._partition, committed)
                self._begun_at = time.monotonic()
            return committed.offset
        if self._settings.input_start == "latest":
            self._begun_at = time.monotonic()
            return await subscription.end(self._partition)
        return await subscription.beginning(self._partition)

    def finish(self, outgoing: Outgoing, next_offset: int, *, at_end: bool) -> str:  # noqa: ARG002 - the protocol's signature
        """A scorer's transaction holds only the outputs and the offset, whose note says that SAFE committed it."""
        return note_of(next_offset)

    def next_chore_at(self, *, at_end: bool) -> float:  # noqa: ARG002 - the protocol's signature
        """One chore: to commit where reading began, if it was at the end or at an offset without a note.

        It comes before any record: after a restart, more would be skipped, or the offset would be judged again.
        """
        return self._begun_at

    def show(self, *, visible: bool) -> None:
        """A scorer exports nothing of its own; but a partition that may be taken away does not wait for a look-up."""
        if visible:
            self._hidden.clear()
        else:
            self._hidden.set()

    def drop(self) -> None:
        """A scorer holds nothing but warnings that it has not logged yet."""
        self._dead_letter_warning.flush()
        self._misspelt_warning.flush()

    # --- one slice ----------------------------------------------------------------------------------------------------

    async def process(self, records: Sequence[Record], outgoing: Outgoing) -> int:
        """Score a slice; raises Transient while test cases cannot be read, or a limit of dead letters is met."""
        if self._begun_at < inf:
            return 0  # the chore comes first
        self._begin_slice()
        self._trial_watch = self._watch.copy()
        records = records[: self._most_records]
        self._spans.begin(records)
        events = await self._decode(records)
        self._spans.reached("decode")
        answers = await self._find(events)
        self._spans.reached("expectations")
        taken = await self._publish(records, events, answers, outgoing)
        self._spans.reached("score")
        return taken

    async def _decode(self, records: Sequence[Record]) -> list[_Decoded]:
        decoded: list[_Decoded] = []
        rules = self._settings.input_rules
        budget = LoopBudget()
        for record in records:
            if _is_large(record):
                decoded.append(await asyncio.to_thread(_decoded, record, rules))
            else:
                decoded.append(_decoded(record, rules))
            if budget.is_spent:
                await budget.renew()
        return decoded

    async def _find(self, events: Sequence[_Decoded]) -> list[_Answer]:
        """Look up a slice; after a failure the next one is smaller, so that a slow source lets some pass."""
        asked = [
            (event.batch_id, event.test_id, event.narrative) if isinstance(event, InputEvent) else None
            for event in events
        ]
        keys = [ExpectationsKey(*key) for key in set(asked) if key is not None]
        try:
            found = await self._look_up(keys) if keys else {}
        except Transient:
            self._most_records = max(1, len(events) // 2)
            raise
        self._wait_for_missing(found)
        return [
            found[key] if key is not None else event if isinstance(event, Poison) else None
            for key, event in zip(asked, events, strict=True)
        ]

    async def _look_up(self, keys: Sequence[ExpectationsKey]) -> _Found:
        try:
            found = await unless(self._hidden, self._source.find(keys))
        except Transient as error:
            # A new one: the source may keep its own, whose traceback would keep the slice in memory.
            raise Transient(str(error)) from None
        if found is None:
            raise Transient("the consumer group is rebalancing: another worker may get the partition")
        return found

    def _wait_for_missing(self, found: _Found) -> None:
        """An output may arrive before its test case: within the grace, the partition waits."""
        grace = self._settings.expectations_grace_seconds
        if not grace:
            return
        now = time.monotonic()
        self._missing_since = {
            key: self._missing_since.get(key, now)
            for key, answer in found.items()
            if isinstance(answer, Poison) and answer.reason == "expectations_not_found"
        }
        if any(now - since < grace for since in self._missing_since.values()):
            raise Transient(
                f"a test case is not there yet; waiting up to {grace} s for it (SAFE_V0_EXPECTATIONS_GRACE_SECONDS)"
            )

    async def _publish(
        self, records: Sequence[Record], events: Sequence[_Decoded], answers: Sequence[_Answer], outgoing: Outgoing
    ) -> int:
        """Score and publish as far as one transaction can hold; returns how many records were taken."""
        budget = LoopBudget()
        self._scored_at = self._now_ms()
        for taken, (record, event, answer) in enumerate(zip(records, events, answers, strict=True), start=1):
            try:
                if _is_large(record) or any(self._beside):
                    await asyncio.to_thread(self._publish_one, record, event, answer, outgoing)
                else:
                    self._publish_one(record, event, answer, outgoing)
            except Transient:  # the next dead letter would be one too many: what came before it is taken
                if taken == 1:
                    raise
                return taken - 1
            if outgoing.is_full:
                self._most_records = taken  # the rest of the slice was decoded and looked up for nothing
                return taken
            if budget.is_spent:
                await budget.renew()
        self._most_records = min(_ALL, self._most_records * 2)
        return len(records)

    def _publish_one(self, record: Record, event: _Decoded, answer: _Answer, outgoing: Outgoing) -> None:
        if isinstance(event, InputEvent) and isinstance(answer, FoundExpectations):
            try:
                self._score(record, event, answer, outgoing)
            except Poison as poison:
                self._add_dead_letter(record, poison, outgoing)
            else:
                self._trial_watch.note(is_dead_letter=False)
        elif isinstance(answer, Poison):
            # Not raised again: its traceback would keep this frame, and so the record, in memory for ever.
            self._add_dead_letter(record, answer, outgoing)
        else:
            self._counts["safe_records", "ignored"] += 1

    def _score(self, record: Record, event: InputEvent, found: FoundExpectations, outgoing: Outgoing) -> None:
        by = judged_by(found, event)
        concern_id = by.concern_id
        if concern_id is None:
            raise Poison("invalid_event", "neither the event nor its test case names a concern")
        started = time.perf_counter()
        kind = kind_of(event.output, self._settings.policy.engine_texts)
        failed = kind.generation == "failed"
        encoded = self._encoded_score(event, found, by, failed=failed)
        near = 0 if failed else _near_violations(event, found, encoded.case)
        marks = self._marks(record, event, found, encoded.case, failed=failed)
        input_matches = None if failed else do_inputs_match(event.narrative, found.narratives)
        invented = self._invented(record, event, input_matches=input_matches)
        value = encode_scored(
            scored_record(
                record, event, concern_id, found, encoded,
                input_matches=input_matches, generation=kind.generation, marks=marks,
                scored_by=self._scored_by, scored_at=self._scored_at,
                topic_ids=self._topic_ids,
            )
        )  # fmt: skip
        self._scoring_seconds.append(time.perf_counter() - started)
        if len(value) > self._most_bytes:
            raise self._settings.limits.result_too_large(len(value))
        partition = partition_for(batch_key(concern_id, event.batch_id), self._settings.scored_partitions)
        key = case_key(concern_id, event.batch_id, event.test_id).encode()
        headers = self._headers
        if record.headers:
            headers = caused_by(traced(headers, record.headers), event.event_id)
        outgoing.append(self._settings.scored_topic, partition, key, value, headers)
        self._count(concern_id, encoded.case, input_matches=input_matches, failed=failed)
        if near:
            self._counts["safe_near_violations", concern_id] += near
        if invented is not None:
            self._counts["safe_outputs_with_checked_values", concern_id] += 1
            self._counts["safe_unsupported_values", concern_id] += invented
        for name in event.resembled:
            self._counts["safe_misspelt_keys", name] += 1
            self._resembled[name] += 1

    def _count(self, concern_id: str, case: CaseScore, *, input_matches: bool | None, failed: bool) -> None:
        counts = self._counts
        counts["safe_records", "scored"] += 1
        counts["safe_cases", concern_id, case.label] += 1
        if case.empty_output:
            counts["safe_empty_outputs", concern_id] += 1
        if input_matches is False:
            counts["safe_input_mismatches", concern_id] += 1
        if failed:
            counts["safe_failed_generations", concern_id] += 1

    def _encoded_score(
        self, event: InputEvent, found: FoundExpectations, by: JudgedBy, *, failed: bool
    ) -> EncodedScore:
        try:
            return self._memory.score(event.test_id, by, found.prepared, event.output, failed=failed)
        except Exception as error:  # even a defect in the scorer must not stop the partition
            raise Poison("scorer_error", f"{type(error).__name__} while scoring") from error

    def _marks(
        self, record: Record, event: InputEvent, found: FoundExpectations, case: CaseScore, *, failed: bool
    ) -> Marks | None:
        """Give lenient recall and coverage, if asked for, but not of an output that would take seconds."""
        judge_marks = self._beside.judge_marks
        if judge_marks is None or _is_large(record):
            return None
        missed = len(case.details.cr_missing) + len(case.details.ac_missing)
        if missed * len(record.value or b"") > _MOST_JUDGED_BYTES:
            return None
        try:
            return judge_marks(EMPTY_OUTPUT if failed else event.output, case.details, found.accepted_wordings)
        except Exception:  # noqa: BLE001 (a defect of what only informs must not cost a result)
            return None

    def _invented(self, record: Record, event: InputEvent, *, input_matches: bool | None) -> int | None:
        """Count the values that the case's own narrative lacks; None if it is not known, or would take seconds."""
        narrative, count_unsupported = event.raw_input, self._beside.count_unsupported
        if count_unsupported is None or narrative is None or not input_matches or _is_large(record):
            return None
        if len(narrative) * len(record.value or b"") > _MOST_COMPARED:
            return None
        try:
            return count_unsupported(event.output, narrative)
        except Exception:  # noqa: BLE001 (a defect of what is only counted must not cost a result)
            return None

    # --- dead letters -------------------------------------------------------------------------------------------------

    def _add_dead_letter(self, record: Record, poison: Poison, outgoing: Outgoing) -> None:
        objection = self._trial_watch.objection()
        if objection is not None:
            raise Transient(
                f"{objection}; the next record cannot be scored either ({poison.reason}). Fix the cause "
                "(safe dead-letters list --summary shows it): the partition then continues by itself. "
                "Or raise the limit and restart"
            )
        self._trial_watch.note(is_dead_letter=True)
        append_dead_letter(outgoing, record, poison, "scorer", self._settings.dead_letters, self._now_ms())
        self._counts["safe_records", "dead_lettered"] += 1
        self._counts["safe_dead_letters", poison.reason] += 1
        self._reasons[poison.reason] += 1
        self._spans.failed(record, poison.reason)

    def committed(self, next_offset: int) -> None:
        """Move the counters, and log once per slice what became a dead letter."""
        self._begun_at = inf
        self._watch = self._trial_watch
        self._metrics.count_all(self._counts)
        self._metrics.scoring.observe(self._scoring_seconds)
        self._dead_letter_warning.note(self._reasons)
        self._misspelt_warning.note(self._resembled)
        self._spans.committed(next_offset)
        self._begin_slice()


def _decoded(record: Record, rules: InputRules) -> _Decoded:
    try:
        return decode(record, rules)
    except Poison as poison:
        # A new one: the traceback of the one that was raised would keep the record in memory, in a cycle.
        return Poison(poison.reason, poison.detail)


def _near_violations(event: InputEvent, found: FoundExpectations, case: CaseScore) -> int:
    forbidden = found.prepared.expectations.forbidden_terms
    try:
        return len(near_violations(forbidden, case.details.ah_violations, event.output.followup_questions))
    except Exception:  # noqa: BLE001 (a defect of what is only counted must not cost a result)
        return 0


def _is_large(record: Record) -> bool:
    """Large values are decoded and scored in a thread: one of 1 MiB may take a quarter of a second."""
    return record.value is not None and len(record.value) > _LARGE_BYTES


def scored_record(
    record: Record,
    event: InputEvent,
    concern_id: str,
    found: FoundExpectations,
    encoded: EncodedScore,
    *,
    input_matches: bool | None,
    generation: Generation,
    marks: Marks | None = None,
    scored_by: ScoredBy,
    scored_at: int,
    topic_ids: TopicIds,
) -> ScoredRecord[Raw]:
    """The record of one scored case: where it came from, what judged it, and its scores; `scored_at` in ms."""
    case = encoded.case
    return ScoredRecord(
        concern_id=concern_id,
        batch_id=event.batch_id,
        run_id=event.run_id,
        result=encoded.result,
        source=SourceShape(
            record.topic, record.partition, record.offset, event.event_time, topic_id=topic_ids.in_result_ids
        ),
        scorer=scored_by,
        expectations_digest=found.prepared.digest,
        output_digest="sha256:" + hashlib.sha256(record.value or b"").hexdigest(),
        expected_cases=found.expected_cases,
        in_batch=found.in_batch,
        passed=case.passed,
        vacuous=case.vacuous,
        empty_output=case.empty_output,
        input_matches=input_matches,
        generation=generation,
        marks=UNSET if marks is None else MarksShape(*marks),
        published_at=record.timestamp,
        scored_at=scored_at,
        input_topic_id=topic_ids.beside,
    )  # fmt: skip
