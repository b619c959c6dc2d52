"""The aggregator: restore → fold → publish → export, for one partition of `scored`.

`restore` rebuilds the state; `_follow` is the path of one record, from its bytes to the row and the result that are
published; `finish` adds what every transaction holds besides; `committed` exports. Rolling state is the fold of the
rows in `safe.v0.state`, which the partition's owner alone writes (contract.md, "State").
"""

import time
from collections import Counter
from collections.abc import Sequence
from math import inf
from sys import intern

import structlog
from msgspec import UNSET, Raw

from consumer.dead_letter_reasons import Poison
from consumer.errors import Fatal, Transient
from consumer.kafka.brokers_clock import BrokersClock
from consumer.kafka.group_offsets import Committed
from consumer.kafka.subscription import Subscription
from consumer.kafka.writer import Outgoing, PartitionWriter
from consumer.loop_budget import LoopBudget
from consumer.telemetry.metrics import BatchGauges, ExportedBatch, Metrics
from consumer.telemetry.rate_limited_warnings import RateLimitedWarning
from consumer.wire.changelog import BatchRow, InputTopic, ProgressRow
from consumer.wire.headers import SCHEMA, NewerSchema, Undecodable, ce_source, check_schema, group_of
from consumer.wire.keys import MARK_KEY, case_key
from consumer.wire.record import Record
from consumer.wire.result_event import encode_result, result_headers
from consumer.wire.scored_record import ScoredRecord, ToFold, decode_to_fold
from consumer.wire.trace_headers import passed_on
from consumer.worker.aggregator_state import AggregatorSettings, PartitionState
from consumer.worker.dead_letter_writing import append_dead_letter
from consumer.worker.forgetting import Forgetting
from consumer.worker.live_batch import LiveBatch
from consumer.worker.offset_check import check_same_topic, check_same_transaction
from consumer.worker.report_schedule import ReportSchedule
from consumer.worker.restore import ReadState, Restore
from consumer.worker.spans import SliceSpans

_log = structlog.get_logger("safe.aggregator")

_NO_ROW = BatchRow(0, 0, None, 0, 0, 0, "", "", "live")
"""The row of a new batch."""


class AggregatorPartition:
    """What the aggregator does with one partition of `scored`, and all that it remembers of it."""

    def __init__(
        self,
        partition: int,
        settings: AggregatorSettings,
        read_state: ReadState,
        gauges: BatchGauges,
        metrics: Metrics,
        clock: BrokersClock,
        spans: SliceSpans | None = None,
    ) -> None:
        self._spans = spans or SliceSpans()
        self._partition = partition
        self._settings = settings
        self._state = PartitionState(partition, settings)
        self._read_state = read_state
        self._reporting = ReportSchedule(partition, settings, self._state, clock.now_ms)
        self._forgetting = Forgetting(settings, self._state, clock, partition)
        self._gauges = gauges
        self._metrics = metrics
        self._clock = clock
        self._first_seen_at: int | None = None
        self._ce_source = ce_source(settings.group).encode()
        self._restored: dict[str, ExportedBatch] | None = None
        self._committed_at = 0.0
        self._transactions = 0
        self._input: InputTopic | None = None
        self._foreign = RateLimitedWarning("scored records of another group were skipped", partition=partition)
        self._undecodable = RateLimitedWarning(
            "scored records that cannot be read became dead letters", partition=partition
        )
        self._ahead = RateLimitedWarning(
            "event times too far ahead of their records were not believed", partition=partition
        )
        self._begin_slice()

    def _begin_slice(self) -> None:
        self._state.touched = {}
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._published_at: list[int] = []
        self._reopened: list[LiveBatch] = []
        self._mixed: list[LiveBatch] = []
        self._began_at, self._folded_at = self._clock.monotonic(), self._clock.known_ms()
        self._last: ScoredRecord[Raw] | None = None
        self._most_bytes = self._settings.limits.scored_bytes

    # --- restore ------------------------------------------------------------------------------------------------------

    async def restore(self, writer: PartitionWriter) -> None:
        """Rebuild the state from all that earlier owners wrote to the changelog.

        Raises Transient, PartitionLost or Fatal.
        """
        mark = await writer.mark(self._settings.state_topic, self._partition, MARK_KEY, self._state.owner_headers)
        restore = Restore(self._state, self._partition, self._settings.group, self._read_state)
        try:
            await restore.run(end=mark + 1)
        except Transient:
            self._metrics.count("safe_restore_failures")
            raise
        if self._settings.exactly_once:  # in at_least_once two owners at once may leave rows that neither has counted
            restore.check_counts()
        self._first_seen_at = self._first_seen()
        self._forgetting.resume(self._first_seen_at)
        self._reporting.resume()
        self._restored = await self._state.exported()

    def _first_seen(self) -> int | None:
        """From when on the owners of the partition have known the brokers' time; None while it is not known."""
        known_ms = self._clock.known_ms()
        earlier = self._state.progress.first_seen_at if self._state.progress is not None else None
        return known_ms if known_ms is None or earlier is None else earlier

    async def first_offset(self, subscription: Subscription, committed: Committed | None) -> int:
        """Where to read on.

        Neither a row of progress nor a committed offset: at the beginning. A row alone (offsets expire): where the row
        says. Otherwise both must be of the same transaction. Raises Fatal or Contradiction where they cannot be.
        """
        progress, state_topic = self._state.progress, self._settings.state_topic
        where = f"partition {self._partition} of the scored topic"
        if progress is None:
            if committed is None:
                return await subscription.beginning(self._partition)
            raise Fatal(
                f"{where} is committed up to {committed.offset}, but {state_topic} has no "
                "progress row: its state is gone. Restore it from a copy, or start over: 'Starting over' in "
                "docs/how-to/operate.md"
            )
        self._transactions = progress.transactions or 0
        self._input = progress.last_input
        check_same_topic(progress, self._settings)
        if committed is None:
            return progress.next_offset
        if (
            self._settings.exactly_once
        ):  # in at_least_once the row is written first, and a crash may come before the offset
            check_same_transaction(progress, committed, where, state_topic)
        return committed.offset

    # --- fold and publish ---------------------------------------------------------------------------------------------

    async def process(self, records: Sequence[Record], outgoing: Outgoing) -> int:
        """Fold a slice and publish a result for each record; raises Transient at a record of a newer SAFE."""
        self._begin_slice()
        self._spans.begin(records)
        taken = await self._fold(records, outgoing)
        self._spans.reached("fold")
        return taken

    async def _fold(self, records: Sequence[Record], outgoing: Outgoing) -> int:
        budget = LoopBudget()
        for taken, record in enumerate(records):
            try:
                is_folded = self._follow(record, outgoing)
            except NewerSchema as error:
                if taken == 0:
                    raise Transient(f"{error}: roll out aggregators first") from error
                return taken
            if not is_folded:
                return taken
            if outgoing.is_full:
                return taken + 1
            if budget.is_spent:
                await budget.renew()
        return len(records)

    def _follow(self, record: Record, outgoing: Outgoing) -> bool:
        """The path of one record: decode, fold, publish its row if it won, and its result.

        False if it must wait for the next transaction.
        """
        decoded = self._decoded(record, outgoing)
        if decoded is None:
            return True
        scored, test_id, row = decoded
        batch = self._live_batch(scored, outgoing)
        if batch is None:
            return False
        key = case_key(scored.concern_id, scored.batch_id, test_id).encode()
        won = batch.fold.offer(test_id, row)
        if won:
            self._state.put_case(outgoing, key, record.value)
        else:
            self._counts["safe_results_not_latest",] += 1
        if scored.source.stated_event_time is not UNSET:
            self._counts["safe_event_times_ahead",] += 1
        self._note_in_row(batch, record, scored, won=won)
        value = encode_result(
            scored,
            batch.fold.summary(),
            complete=batch.is_complete(scored.expected_cases),
            mixed_runs=batch.fold.mixed_runs,
            failed_generations=batch.fold.failed_generations,
        )
        headers = result_headers(scored, key, self._ce_source)
        if record.headers != self._state.headers:
            headers = passed_on(headers, record.headers)
        outgoing.append(self._settings.result_topic, self._partition, batch.key.encode(), value, headers)
        self._published_at.append(scored.published_at)
        self._last = scored
        return True

    def _decoded(self, record: Record, outgoing: Outgoing) -> ToFold | None:
        """Decode a record; None if another group wrote it, or if it becomes a dead letter."""
        try:
            if record.headers != self._state.headers:  # those of our own scorers, without a trace, are in order
                group = group_of(record.headers)
                if group is not None and group != self._settings.group:
                    self._counts["safe_records", "foreign"] += 1
                    return None
                check_schema(record.headers)
            if record.value is None or len(record.value) <= self._most_bytes:
                return decode_to_fold(record.value, self._state.ahead_ms)
            poison = self._settings.limits.result_too_large(len(record.value))
        except Undecodable as error:
            poison = Poison("invalid_event", str(error))
        append_dead_letter(outgoing, record, poison, "aggregator", self._settings.dead_letters, self._clock.now_ms())
        self._counts["safe_records", "dead_lettered"] += 1
        self._counts["safe_dead_letters", poison.reason] += 1
        self._spans.failed(record, poison.reason)
        return None

    def _live_batch(self, scored: ScoredRecord[Raw], outgoing: Outgoing) -> LiveBatch | None:
        """The batch to fold into; None while the rows of an earlier one of that name are still being removed."""
        batch = self._state.batch(scored.concern_id, scored.batch_id)
        if batch.is_live and (not self._state.forgotten or self._state.forgotten.pop(batch.key, None) is None):
            return batch
        if not self._forgetting.remove_rest(batch, outgoing):
            return None
        fresh = self._state.batches[batch.key] = LiveBatch(batch.key, scored.concern_id, scored.batch_id)
        self._reopened.append(fresh)
        return fresh

    def _note_in_row(self, batch: LiveBatch, record: Record, scored: ScoredRecord[Raw], *, won: bool) -> None:
        """Note in the batch's row what this record changes: one that lost changes only the time of the last record."""
        before = batch.row or _NO_ROW
        moved = won or before.expected_cases != scored.expected_cases
        scorer = scored.scorer if won or batch.row is None else before
        batch.row = row = BatchRow(
            max(record.timestamp, before.last_scored_at),
            before.cases,
            scored.expected_cases,
            record.offset + 1 if moved else before.moved,
            before.reported,
            before.reported_at,
            intern(scorer.fingerprint),  # nearly all rows, of which there may be millions, have the same
            intern(scorer.version),
            "live",
            self._folded_at,
        )
        batch.idle_since = self._began_at
        self._state.touched[batch.key] = None
        batches = self._state.batches
        batches[batch.key] = batches.pop(batch.key)  # the latest is kept last
        if row.moved > row.reported:
            self._reporting.owe(batch)
        if before.fingerprint not in ("", row.fingerprint) and not batch.warned_of_fingerprints:
            batch.warned_of_fingerprints = True
            self._mixed.append(batch)

    def finish(self, outgoing: Outgoing, next_offset: int, *, at_end: bool) -> str:
        """Add due reports, the rows of touched batches, tombstones for what is forgotten, and the progress row.

        Returns the note of the offset that is committed with them.
        """
        for key, value in self._state.rewrite.items():
            self._state.put(outgoing, key, value)
        self._reporting.publish_due(outgoing, busy=bool(self._published_at))
        if at_end:
            self._forgetting.advance(outgoing)
        self._state.put_touched_rows(outgoing)
        settings = self._settings
        if self._last is not None:
            came_from = InputTopic.of(self._last)
            if self._input is None or came_from.id is not None:  # an older scorer says nothing
                self._input = came_from
        progress = ProgressRow(
            settings.group, SCHEMA, settings.partitions, next_offset, settings.scored_topic_id, self._transactions + 1,
            self._first_seen_at,
            self._input,
        )  # fmt: skip
        self._state.put_progress(outgoing, progress)
        return progress.note

    def next_chore_at(self, *, at_end: bool) -> float:
        """When a report is due, or a batch may be forgotten."""
        now = time.monotonic()
        rewrite_at = now if self._state.rewrite else inf
        forget_at = self._forgetting.next_at(self._committed_at) if at_end else inf
        return min(rewrite_at, forget_at, self._reporting.next_at())

    # --- export -------------------------------------------------------------------------------------------------------

    def committed(self, next_offset: int) -> None:
        """The slice is visible: move gauges and counters, and log warnings."""
        self._transactions += 1
        self._state.rewrite.clear()
        self._committed_at = time.monotonic()
        self._count()
        self._warn()
        self._spans.committed(next_offset)
        for key in self._state.touched:
            batch = self._state.batches.get(key)
            if batch is None or not batch.is_live:
                self._gauges.remove(self._partition, key)
            else:
                self._gauges.put(self._partition, key, batch.exported())
        self._begin_slice()

    def _count(self) -> None:
        now_ms = self._clock.now_ms()
        self._metrics.count_all(self._counts)
        self._metrics.count("safe_batches_reopened", by=len(self._reopened))
        self._metrics.end_to_end.observe(
            max(0, now_ms - published_at) / 1_000 for published_at in self._published_at if published_at >= 0
        )

    def _warn(self) -> None:
        self._forgetting.committed()
        self._foreign.note(self._counts["safe_records", "foreign"])
        self._undecodable.note(self._counts["safe_records", "dead_lettered"])
        self._ahead.note(self._counts["safe_event_times_ahead",])
        for batch in self._reopened:
            _log.warning(
                "a late record reopened a forgotten batch", concern_id=batch.concern_id, batch_id=batch.batch_id
            )
        for batch in self._mixed:
            _log.warning(
                "the batch holds cases scored under different configurations",
                concern_id=batch.concern_id,
                batch_id=batch.batch_id,
                fingerprints=batch.fold.fingerprints,
            )

    def show(self, *, visible: bool) -> None:
        """Export the live batches, or none."""
        if not visible:
            self._gauges.hide(self._partition)
            return
        restored, self._restored = self._restored, None
        self._gauges.show(self._partition, restored)

    def drop(self) -> None:
        """The partition is let go: log what has not been logged yet, and export nothing of it any more."""
        self._foreign.flush()
        self._undecodable.flush()
        self._ahead.flush()
        self._forgetting.log()
        self._gauges.drop(self._partition)
