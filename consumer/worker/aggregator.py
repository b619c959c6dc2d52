"""The aggregator: restore → fold → publish → export, for one partition of `scored`.

Rolling state is the fold of the rows in `safe.v0.state`, which the partition's owner alone writes (contract.md,
"State"). Every transaction holds the results of a slice, the rows that won, the rows of the batches it touched, reports
that are due, the progress row and the offset.
"""

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from sys import intern
from typing import Any

import structlog

from consumer.errors import Contradiction, Fatal, Poison, Transient
from consumer.kafka import Committed, Outgoing, PartitionWriter, Subscription
from consumer.loop_budget import Turns
from consumer.telemetry.metrics import BatchGauges, ExportedBatch, Metrics
from consumer.telemetry.warnings import Occasional
from consumer.wire.changelog import BatchRow, ProgressRow, transactions_of
from consumer.wire.headers import (
    SCHEMA,
    NewerSchema,
    Undecodable,
    ce_source,
    check_schema,
    group_of,
    own_headers,
    report_headers,
    traced,
)
from consumer.wire.keys import MARK_KEY, PROGRESS_KEY, case_key
from consumer.wire.record import Record
from consumer.wire.scored import ScoredRecord, decode_scored, encode_result, result_headers, row_of
from consumer.wire.times import rfc_3339
from consumer.worker.dead_letters import DeadLetterTopic, append_dead_letter
from consumer.worker.report_size import fit_report
from consumer.worker.state import LiveBatch, PartitionState, ReadState
from safe_core import build_report

_log = structlog.get_logger("safe.aggregator")

_REPORT_EVERY_SECONDS = 1.0
_REPORT_COST_FACTOR = 20
"""A batch's next report waits at least this many times as long as its last one took to build."""

_REPORT_CREDIT_SECONDS = 0.03
"""How long one transaction may spend on reports, at most."""

_BUSY_REPORT_SHARE = 0.02
_IDLE_REPORT_SHARE = 0.5
"""Share of the time that a partition's reports may take, while results are waiting and while none are."""

_FORGET_RECORDS = 5_000
"""How many records one transaction of forgetting may have."""

_FORGET_EVERY_SECONDS = 0.05
_SHORTEST_MARK_MS = 86_400_000
"""The mark of a forgotten batch stays for one more time-to-live, and no shorter: else no reopening would be told."""


_NO_ROW = BatchRow(0, 0, None, 0, 0, 0, "", "")
"""What a new batch begins with."""


@dataclass(frozen=True, slots=True)
class AggregatorSettings:
    """Everything that an aggregator needs to know; `scored_topic_id` is None where the broker does not tell it."""

    group: str
    version: str
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


class AggregatorPartition:
    """What the aggregator does with one partition of `scored`, and all that it remembers of it."""

    def __init__(
        self,
        partition: int,
        settings: AggregatorSettings,
        read_state: ReadState,
        gauges: BatchGauges,
        metrics: Metrics,
        now_ms: Callable[[], int],
    ) -> None:
        self._partition = partition
        self._settings = settings
        self._state = PartitionState(partition, settings.group, read_state)
        self._gauges = gauges
        self._metrics = metrics
        self._now_ms = now_ms
        self._headers = own_headers(settings.group)
        self._ce_source = ce_source(settings.group).encode()
        self._restored: dict[str, ExportedBatch] | None = None
        self._owed: list[tuple[float, str]] = []
        self._report_credit = 0.0
        self._credited_at = time.monotonic()
        self._ttl_ms = int(settings.batch_ttl_seconds * 1_000)
        self._mark_ms = self._ttl_ms + max(self._ttl_ms, _SHORTEST_MARK_MS)
        self._committed_at = 0.0
        self._transactions = 0
        self._foreign = Occasional("scored records of another group were skipped", partition=partition)
        self._undecodable = Occasional("scored records that cannot be read became dead letters", partition=partition)
        self._begin_slice()

    def _begin_slice(self) -> None:
        self._touched: dict[str, None] = {}
        self._outcomes: Counter[str] = Counter()
        self._published_at: list[int] = []
        self._reopened: list[LiveBatch] = []
        self._mixed: list[LiveBatch] = []

    # --- take-over ----------------------------------------------------------------------------------------------------

    async def restore(self, writer: PartitionWriter) -> None:
        """Rebuild the state from all that earlier owners wrote to the changelog.

        Raises Transient, PartitionLost or Fatal.
        """
        mark = await writer.mark(self._settings.state_topic, self._partition, MARK_KEY, self._headers)
        try:
            await self._state.restore(end=mark + 1)
        except Transient:
            self._metrics.count("safe_restore_failures")
            raise
        if self._settings.exactly_once:  # otherwise two owners at once may leave rows that neither has counted
            self._state.check_counts()
        for batch in self._state.batches.values():
            if batch.is_live and batch.row is not None:
                since_report = (self._now_ms() - batch.row.reported_at) / 1_000
                batch.report_not_before = time.monotonic() + max(0.0, _REPORT_EVERY_SECONDS - since_report)
                if batch.row.moved > batch.row.reported:
                    self._owe(batch)
        self._restored = await self._state.exported()

    async def first_offset(self, subscription: Subscription, committed: Committed | None) -> int:
        """Where to read on.

        Neither a row of progress nor a committed offset: at the beginning. A row alone (offsets expire): where the row
        says. Otherwise both must be of the same transaction. Raises Fatal or Contradiction where they cannot be.
        """
        progress = self._state.progress
        if progress is None:
            if committed is None:
                return await subscription.beginning(self._partition)
            raise Fatal(
                f"{self._where} is committed up to {committed.offset}, but {self._settings.state_topic} has no "
                "progress row: its state is gone. Restore it from a copy, or start over: 'Starting over' in "
                "docs/operate.md"
            )
        self._transactions = progress.transactions or 0
        self._check_same_topic(progress)
        if committed is None:
            return progress.next_offset
        if self._settings.exactly_once:  # otherwise the row is written first, and a crash may come between
            self._check_same_transaction(progress, committed)
        return committed.offset

    @property
    def _where(self) -> str:
        return f"partition {self._partition} of the scored topic"

    def _check_same_topic(self, progress: ProgressRow) -> None:
        if progress.partitions != self._settings.partitions:
            raise Fatal(
                f"the state was written for {progress.partitions} partitions of the scored topic, which now has "
                f"{self._settings.partitions}: start a new group on new topics, as "
                "'Starting over' in docs/operate.md says"
            )
        known, current = progress.topic_id, self._settings.scored_topic_id
        if known is not None and current is not None and known != current:
            raise Fatal(
                f"the state was written for a scored topic with the id {known}, but the one there now has the id "
                f"{current}: it was deleted and created again, so the offsets in the state are not valid for it. "
                "Start over: 'Starting over' in docs/operate.md"
            )

    def _check_same_transaction(self, progress: ProgressRow, committed: Committed) -> None:
        """Row and offset are written in one transaction: anything but equality means that one of them is not ours."""
        ours, theirs = progress.transactions, transactions_of(committed.note)
        if ours is None or theirs is None:  # an older SAFE, or a person, wrote one of the two
            ours = theirs = 0
        row, offset = (progress.next_offset, ours), (committed.offset, theirs)
        if offset == row:
            return
        about = (
            f"{self._where} is committed up to {committed.offset} ({committed.note or 'no note'}), but its state "
            f"reaches up to {progress.next_offset} ({progress.note})"
        )
        if offset < row:
            raise Contradiction(
                f"{about}: the group's offset was set back. Set it to {progress.next_offset}, or delete the group's "
                "offsets on the topic: the state knows where to go on"
            )
        raise Contradiction(
            f"{about}: {self._settings.state_topic} is older than the offset, as after it was restored from a copy. "
            "Restore the copy that belongs to the offset; or, while the scored topic still holds everything from "
            f"{progress.next_offset} on, set the group's offset to that (results from there on are published again); "
            "or start over: 'Starting over' in docs/operate.md"
        )

    # --- one slice ----------------------------------------------------------------------------------------------------

    async def process(self, records: Sequence[Record], outgoing: Outgoing) -> int:
        """Fold a slice and publish a result for each record; raises Transient at a record of a newer SAFE."""
        self._begin_slice()
        turns = Turns()
        for taken, record in enumerate(records):
            try:
                is_folded = self._one(record, outgoing)
            except NewerSchema as error:
                if taken == 0:
                    raise Transient(f"written by a newer SAFE ({error}): roll out aggregators first") from error
                return taken
            if not is_folded:
                return taken
            if outgoing.is_full:
                return taken + 1
            if turns.is_over:
                await turns.next()
        return len(records)

    def _one(self, record: Record, outgoing: Outgoing) -> bool:
        """Fold one record; False if it must wait for the next transaction."""
        group = group_of(record.headers)
        if group is not None and group != self._settings.group:
            self._outcomes["foreign"] += 1
            return True
        try:
            check_schema(record.headers)
            scored = decode_scored(record.value)
        except Undecodable as error:
            poison = Poison("invalid_event", str(error))
            append_dead_letter(outgoing, record, poison, "aggregator", self._settings.dead_letters, self._now_ms())
            self._outcomes["dead_lettered"] += 1
            return True
        batch = self._live_batch(scored, outgoing)
        if batch is not None:
            self._fold(batch, record, scored, outgoing)
        return batch is not None

    def _live_batch(self, scored: ScoredRecord, outgoing: Outgoing) -> LiveBatch | None:
        """The batch to fold into; None while an earlier one of that name is still being buried."""
        batch = self._state.batch(scored.concern_id, scored.batch_id)
        if batch.is_live and (not self._state.forgotten or self._state.forgotten.pop(batch.key, None) is None):
            return batch
        for test_id in list(islice(batch.fold, _most_forgotten(outgoing))):
            self._bury_case(batch, test_id, outgoing)
        if len(batch.fold):
            return None
        fresh = self._state.batches[batch.key] = LiveBatch(batch.key, scored.concern_id, scored.batch_id)
        self._reopened.append(fresh)
        return fresh

    def _fold(self, batch: LiveBatch, record: Record, scored: ScoredRecord, outgoing: Outgoing) -> None:
        test_id = scored.result.test_id
        won = batch.fold.offer(test_id, row_of(scored))
        key = case_key(scored.concern_id, scored.batch_id, test_id).encode()
        if won:
            self._state.rewrite.pop(key, None)
            outgoing.append(self._settings.state_topic, self._partition, key, record.value, self._headers)
        self._touch(batch, record, scored, won=won)
        value = encode_result(
            scored,
            batch.fold.summary(),
            complete=batch.is_complete(scored.expected_cases),
            mixed_runs=batch.fold.mixed_runs,
        )
        headers = traced(result_headers(scored, key, self._ce_source), record.headers)
        outgoing.append(self._settings.result_topic, self._partition, batch.key.encode(), value, headers)
        self._published_at.append(scored.published_at)

    def _touch(self, batch: LiveBatch, record: Record, scored: ScoredRecord, *, won: bool) -> None:
        """Note what the batch's row says after this record; a loser changes the time of its last record alone."""
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
            intern(scorer.fingerprint),  # the same in nearly all of very many rows
            intern(scorer.version),
        )
        self._touched[batch.key] = None
        batches = self._state.batches
        batches[batch.key] = batches.pop(batch.key)  # the latest stands last
        if row.moved > row.reported:
            self._owe(batch)
        if before.fingerprint not in ("", row.fingerprint) and not batch.warned_of_fingerprints:
            batch.warned_of_fingerprints = True
            self._mixed.append(batch)

    def finish(self, outgoing: Outgoing, next_offset: int, *, at_end: bool) -> str:
        """Add due reports, the rows of touched batches, tombstones for what is forgotten, and the progress row.

        Returns the note of the offset that is committed with them.
        """
        for winner, value in self._state.rewrite.items():
            self._put_state(outgoing, winner, value)
        self._publish_due_reports(outgoing)
        if at_end:
            self._forget_idle(outgoing)
        for key in self._touched:
            batch = self._state.batches.get(key)
            row = batch.row if batch is not None else self._state.forgotten.get(key)
            assert row is not None
            row = row._replace(cases=len(batch.fold) if batch is not None else 0)
            self._put_state(outgoing, key.encode(), row.encode())
        settings = self._settings
        progress = ProgressRow(
            settings.group, SCHEMA, settings.partitions, next_offset, settings.scored_topic_id, self._transactions + 1
        )
        self._put_state(outgoing, PROGRESS_KEY, progress.encode())
        return progress.note

    def _put_state(self, outgoing: Outgoing, key: bytes, value: bytes | None) -> None:
        outgoing.append(self._settings.state_topic, self._partition, key, value, self._headers)

    def committed(self, next_offset: int) -> None:  # noqa: ARG002 - the protocol's signature
        """The slice is visible: move gauges and counters, and say what deserves it."""
        self._transactions += 1
        self._state.rewrite.clear()
        self._committed_at = time.monotonic()
        self._count()
        self._warn()
        for key in self._touched:
            batch = self._state.batches.get(key)
            if batch is None or not batch.is_live:
                self._gauges.remove(self._partition, key)
            else:
                self._gauges.put(self._partition, key, batch.exported())
        self._begin_slice()

    def _count(self) -> None:
        now_ms = self._now_ms()
        for outcome, count in self._outcomes.items():
            self._metrics.count("safe_records", outcome, by=count)
        if self._outcomes["dead_lettered"]:
            self._metrics.count("safe_dead_letters", "invalid_event", by=self._outcomes["dead_lettered"])
        if self._reopened:
            self._metrics.count("safe_batches_reopened", by=len(self._reopened))
        self._metrics.end_to_end.observe(
            max(0, now_ms - published_at) / 1_000 for published_at in self._published_at if published_at >= 0
        )

    def _warn(self) -> None:
        self._foreign.note(self._outcomes["foreign"])
        self._undecodable.note(self._outcomes["dead_lettered"])
        for batch in self._reopened:
            _log.warning(
                "a late record opened a forgotten batch anew", concern_id=batch.concern_id, batch_id=batch.batch_id
            )
        for batch in self._mixed:
            _log.warning(
                "the batch holds cases scored under different configurations",
                concern_id=batch.concern_id,
                batch_id=batch.batch_id,
                fingerprints=batch.fold.fingerprints,
            )

    # --- reports ------------------------------------------------------------------------------------------------------

    def _owe(self, batch: LiveBatch) -> None:
        """A report is due at once, or a second after the last one; the longest owed is published first."""
        if batch.owed_at is None:
            batch.owed_at = max(time.monotonic(), batch.report_not_before)
            heapq.heappush(self._owed, (batch.owed_at, batch.key))

    def _publish_due_reports(self, outgoing: Outgoing) -> None:
        """Publish what is due as far as the time allows: results come first, and no time is saved up."""
        now = time.monotonic()
        self._report_credit = min(_REPORT_CREDIT_SECONDS, self._credit_at(now))
        self._credited_at = now
        while self._owed and self._owed[0][0] <= now and self._report_credit > 0:
            _due, key = heapq.heappop(self._owed)
            batch = self._state.batches.get(key)
            if batch is not None and batch.is_live and batch.owed_at is not None:
                self._publish_report(batch, outgoing)
            if outgoing.is_full or outgoing.share < 1:
                return  # one at least: where every slice is full, or commits are slow, reports are still due

    def _credit_at(self, now: float) -> float:
        share = _BUSY_REPORT_SHARE if self._published_at else _IDLE_REPORT_SHARE
        return self._report_credit + (now - self._credited_at) * share

    def _publish_report(self, batch: LiveBatch, outgoing: Outgoing) -> None:
        row = batch.row
        assert row is not None
        began, now_ms = time.monotonic(), self._now_ms()
        generated_at = rfc_3339(now_ms)
        same_policy = row.fingerprint == self._settings.fingerprint
        report = build_report(
            batch.fold,
            concern_id=batch.concern_id,
            batch_id=batch.batch_id,
            generated_at=generated_at,
            scorer_version=row.version,
            fingerprint=row.fingerprint,
            # Another process may score under another policy: this one can tell its own alone.
            configuration=dict(self._settings.configuration) if same_policy else None,
            expected_cases=row.expected_cases,
            complete=batch.is_complete(row.expected_cases),
        )
        value = fit_report(report, self._settings.max_value_bytes)
        headers = report_headers(batch.key, self._partition, row.moved, generated_at, self._ce_source)
        outgoing.append(self._settings.report_topic, self._partition, batch.key.encode(), value, headers)
        batch.row = row._replace(reported=row.moved, reported_at=now_ms)
        self._touched[batch.key] = None
        batch.owed_at = None
        cost = time.monotonic() - began
        self._report_credit -= cost
        batch.report_not_before = began + max(_REPORT_EVERY_SECONDS, cost * _REPORT_COST_FACTOR)

    # --- forgetting ---------------------------------------------------------------------------------------------------

    def _forget_idle(self, outgoing: Outgoing) -> None:
        """Advance the forgetting of idle batches by a bounded number of records."""
        self._drop_old_marks(outgoing)
        budget = _most_forgotten(outgoing)
        for batch in list(self._idle()):
            budget -= self._forget_step(batch, outgoing, budget)
            if budget <= 0:
                return

    def _idle(self) -> Iterator[LiveBatch]:
        oldest = self._now_ms() - self._ttl_ms
        for batch in self._state.batches.values():
            if batch.row is None or batch.row.last_scored_at >= oldest:
                return  # the rest was scored later
            if batch.owed_at is None:  # its last report goes first
                yield batch

    def _forget_step(self, batch: LiveBatch, outgoing: Outgoing, budget: int) -> int:
        """One step of one batch: first mark it, in later transactions bury its rows; returns the records written."""
        row = batch.row
        assert row is not None
        self._touched[batch.key] = None
        if row.stage == "live":
            batch.row = row._replace(stage="forgetting")
            return 1
        names = list(islice(batch.fold, budget))
        for test_id in names:
            self._bury_case(batch, test_id, outgoing)
        if not len(batch.fold):
            # The mark stays, so that a late record is known to reopen the batch.
            self._state.forgotten[batch.key] = row._replace(stage="forgotten")
            del self._state.batches[batch.key]
            _log.info("batch forgotten", concern_id=batch.concern_id, batch_id=batch.batch_id)
        return len(names) + 1

    def _drop_old_marks(self, outgoing: Outgoing) -> None:
        forgotten, oldest = self._state.forgotten, self._now_ms() - self._mark_ms
        old = takewhile(lambda key: forgotten[key].last_scored_at < oldest, forgotten)
        for key in list(islice(old, _most_forgotten(outgoing))):
            del forgotten[key]
            self._put_state(outgoing, key.encode(), None)

    def _bury_case(self, batch: LiveBatch, test_id: str, outgoing: Outgoing) -> None:
        batch.fold.remove(test_id)
        key = case_key(batch.concern_id, batch.batch_id, test_id).encode()
        self._state.rewrite.pop(key, None)
        self._put_state(outgoing, key, None)

    def _next_forgetting_in(self) -> float | None:
        """Seconds until the longest idle batch, or mark, is old enough."""
        batches, marks = self._state.batches.values(), self._state.forgotten.values()
        times = [batch.row.last_scored_at + self._ttl_ms for batch in islice(batches, 1) if batch.row]
        times += [row.last_scored_at + self._mark_ms for row in islice(marks, 1)]
        return max(0.0, (min(times) - self._now_ms() + 1) / 1_000) if times else None

    # --- chores and gauges --------------------------------------------------------------------------------------------

    def next_chore_at(self, *, at_end: bool) -> float | None:
        """When a report is due, or a batch may be forgotten."""
        now = time.monotonic()
        times = [now] if self._state.rewrite else []
        if self._owed:
            paid_at = self._credited_at - self._report_credit / _IDLE_REPORT_SHARE
            times.append(max(self._owed[0][0], paid_at))
        forgetting_in = self._next_forgetting_in() if at_end else None
        if forgetting_in is not None:
            # An owed report comes before the end of its batch, and what cannot be done at once must not spin.
            times.append(max(now + forgetting_in, self._committed_at + _FORGET_EVERY_SECONDS))
        return min(times, default=None)

    def show(self, *, visible: bool) -> None:
        """Export the live batches, or none."""
        if not visible:
            self._gauges.hide(self._partition)
            return
        restored, self._restored = self._restored, None
        self._gauges.show(self._partition, restored)

    def drop(self) -> None:
        """The partition is let go: nothing of it is exported any more, and nothing left unsaid."""
        self._foreign.flush()
        self._undecodable.flush()
        self._gauges.drop(self._partition)


def _most_forgotten(outgoing: Outgoing) -> int:
    """How many records one transaction may forget: fewer where commits are slow."""
    return max(1, int(_FORGET_RECORDS * outgoing.share))
