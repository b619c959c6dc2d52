"""What the aggregator remembers of one partition, and how it writes that to `safe.v0.state` (contract.md, "State")."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec.structs import replace

from consumer.kafka.writer import Outgoing
from consumer.loop_budget import LoopBudget
from consumer.telemetry.metrics import ExportedBatch
from consumer.wire.changelog import BatchRow, ProgressRow
from consumer.wire.headers import own_headers, owner_headers
from consumer.wire.keys import PROGRESS_KEY, batch_key
from consumer.worker.dead_letter_writing import DeadLetterTopic
from consumer.worker.live_batch import LiveBatch
from consumer.worker.topic_limits import RESULT_OVERHEAD_BYTES, TopicLimits


@dataclass(frozen=True, slots=True)
class AggregatorSettings:
    """What an aggregator needs to know; `scored_topic_id` is None where the broker does not report it."""

    group: str
    fingerprint: str
    configuration: Mapping[str, Any]
    exactly_once: bool
    partitions: int
    scored_topic_id: str | None
    state_topic: str
    result_topic: str
    report_topic: str
    dead_letters: DeadLetterTopic
    max_value_bytes: int
    batch_ttl_seconds: float
    event_time_ahead_seconds: int
    guarded: bool = False
    limits: TopicLimits = field(default_factory=TopicLimits)

    @property
    def report_bytes(self) -> int:
        """How large a report may be."""
        return min(self.max_value_bytes, self.limits.of(self.report_topic) - RESULT_OVERHEAD_BYTES)


class Mark(NamedTuple):
    """What is kept of a forgotten batch, so that a late record is noticed; `idle_since` is monotonic."""

    row: BatchRow
    idle_since: float


class PartitionState:
    """The batches of one partition, in order of their last scored record, the most idle ones first.

    `forgotten` holds the marks of batches whose rows are gone, in the same order; `rewrite` the winning rows that a
    losing row follows in the changelog, by key; `touched` the batches whose rows change with the next commit. An event
    time is believed up to `ahead_ms` after its record's timestamp.
    """

    def __init__(self, partition: int, settings: AggregatorSettings) -> None:
        self.batches: dict[str, LiveBatch] = {}
        self.forgotten: dict[str, Mark] = {}
        self.progress: ProgressRow | None = None
        self.rewrite: dict[bytes, bytes] = {}
        self.touched: dict[str, None] = {}
        self.headers = own_headers(settings.group)
        self.ahead_ms = settings.event_time_ahead_seconds * 1_000
        self.owner_headers = owner_headers(settings.group, guarded=settings.guarded)
        self._partition = partition
        self._topic = settings.state_topic

    def batch(self, concern_id: str, batch_id: str) -> LiveBatch:
        """The batch of that name, made if it is new."""
        key = batch_key(concern_id, batch_id)
        batch = self.batches.get(key)
        if batch is None:
            batch = self.batches[key] = LiveBatch(key, concern_id, batch_id)
        return batch

    # --- writing ------------------------------------------------------------------------------------------------------

    def put(self, outgoing: Outgoing, key: bytes, value: bytes | None) -> None:
        """Add a row to the changelog; None is its tombstone."""
        outgoing.append(self._topic, self._partition, key, value, self.headers)

    def put_case(self, outgoing: Outgoing, key: bytes, value: bytes | None) -> None:
        """Add the row of a case; it replaces what was to be written again of that case."""
        self.rewrite.pop(key, None)
        self.put(outgoing, key, value)

    def put_progress(self, outgoing: Outgoing, progress: ProgressRow) -> None:
        """Add the progress row."""
        outgoing.append(self._topic, self._partition, PROGRESS_KEY, progress.encode(), self.owner_headers)

    def put_touched_rows(self, outgoing: Outgoing) -> None:
        """Add the rows of the batches that have changed."""
        for key in self.touched:
            batch = self.batches.get(key)
            row = batch.row if batch is not None else self.forgotten[key].row
            assert row is not None
            row = replace(row, cases=len(batch.fold) if batch is not None else 0)
            self.put(outgoing, key.encode(), row.encode())

    async def exported(self) -> dict[str, ExportedBatch]:
        """What the gauges show of every live batch."""
        exported = {}
        budget = LoopBudget()
        for key, batch in self.batches.items():
            if batch.is_live:
                exported[key] = batch.exported()
            if budget.is_spent:
                await budget.renew()
        return exported
