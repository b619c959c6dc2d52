"""The aggregator: restore → fold → publish → export, for one partition of `scored`.

Rolling state is the fold of the rows in `safe.v0.state`, which this partition's owner alone writes (contract,
section 4).
Every transaction holds the results of a slice, the rows that won, the rows of the batches it touched, the reports that
are due, the progress row and the offset.
"""

import asyncio
import gc
import heapq
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import structlog

from consumer.dead_letters import DeadLetterTopic, append_dead_letter
from consumer.decode import Record
from consumer.errors import Fatal, Poison, Transient
from consumer.kafka import Outgoing, Subscription
from consumer.metrics import BatchGauges, ExportedBatch, Metrics
from consumer.records import (
    PROGRESS_KEY,
    SCHEMA,
    BatchRow,
    NewerSchema,
    ProgressRow,
    ScoredCase,
    Undecodable,
    batch_key,
    case_key,
    ce_source,
    check_schema,
    decode_batch_row,
    decode_progress_row,
    decode_scored,
    encode_result,
    group_of,
    own_headers,
    parts_of,
    report_headers,
    result_headers,
    rfc_3339,
)
from consumer.report_size import fit_report
from safe_core import BatchFold, build_report

_log = structlog.get_logger("safe.aggregator")

_RECORDS_PER_TURN = 150
"""Records folded between two turns of the event loop."""

_REPORT_EVERY_SECONDS = 1.0
_REPORT_SHARE = 20
"""A batch whose report took s seconds to build waits at least 20 s: reports cost at most a twentieth of the time."""

_IDLE_REPORT_SECONDS = 0.03
"""How long one transaction may spend on reports at most."""

_BUSY_REPORT_SHARE = 0.02
"""Share of a partition's time that reports may take while results are waiting."""

_FORGET_RECORDS = 5_000
"""How many records one transaction of forgetting may have."""

_FORGET_EVERY_SECONDS = 0.05
_RESTORE_LOG_EVERY = 100_000

ReadState = Callable[[int], AsyncIterator[Sequence[Record]]]


@dataclass(frozen=True, slots=True)
class AggregatorSettings:
    """Everything that an aggregator needs to know."""

    group: str
    version: str
    fingerprint: str
    configuration: Mapping[str, Any]
    exactly_once: bool
    partitions: int
    state_topic: str
    result_topic: str
    report_topic: str
    dead_letters: DeadLetterTopic
    max_value_bytes: int
    batch_ttl_seconds: float


@dataclass(slots=True)
class LiveBatch:
    """One batch in memory: its fold, and what its row in the changelog says besides."""

    key: str
    concern_id: str
    batch_id: str
    fold: BatchFold = field(default_factory=BatchFold)
    row: BatchRow | None = None
    report_not_before: float = 0.0
    owed_at: float | None = None

    @property
    def is_live(self) -> bool:
        """Neither being forgotten nor forgotten."""
        return self.row is None or self.row.stage == "live"

    @property
    def expected_cases(self) -> int | None:
        """What the source held for the batch when its last case was scored."""
        return self.row.expected_cases if self.row is not None else None

    def is_complete(self, expected_cases: int | None) -> bool:
        """Whether each of the batch's test cases has a result."""
        return expected_cases is not None and self.fold.expected_present >= expected_cases


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
        self._read_state = read_state
        self._gauges = gauges
        self._metrics = metrics
        self._now_ms = now_ms
        self._headers = own_headers(settings.group)
        self._ce_source = ce_source(settings.group).encode()
        # In order of their last scored record, so that the idle ones stand first.
        self._batches: dict[str, LiveBatch] = {}
        self._forgotten: dict[str, BatchRow] = {}
        self._owed: list[tuple[float, str]] = []
        self._touched: dict[str, None] = {}
        self._progress: ProgressRow | None = None
        self._rewrite: dict[bytes, bytes] = {}
        self._outcomes: Counter[str] = Counter()
        self._published_at: list[int] = []
        self._reopened = 0
        self._ttl_ms = int(settings.batch_ttl_seconds * 1_000)
        self._committed_at = 0.0
        self._report_credit = 0.0
        self._credited_at = time.monotonic()
        self._exported_once = False

    # --- restore ------------------------------------------------------------------------------------------------------

    async def restore(self) -> None:
        """Fold the changelog's rows by ruling 16; raises Transient, and Fatal for a row that cannot be understood."""
        started = time.monotonic()
        rows = 0
        behind: set[bytes] = set()
        async with aclosing(self._read_state(self._partition)) as slices:  # type: ignore[type-var]
            async for records in slices:
                for record in records:
                    self._restore_row(record, behind)
                rows += len(records)
                if rows // _RESTORE_LOG_EVERY != (rows - len(records)) // _RESTORE_LOG_EVERY:
                    _log.info("restoring", partition=self._partition, rows=rows, seconds=time.monotonic() - started)
        if behind:
            await self._find_winners(behind)
        self._put_in_order()
        gc.freeze()  # rows hold no cycles: looking through a million of them would hold up heartbeats for nothing
        _log.info(
            "restored",
            partition=self._partition, rows=rows, batches=len(self._batches),
            cases=sum(len(batch.fold) for batch in self._batches.values()), seconds=round(time.monotonic() - started,
            3),
        )  # fmt: skip

    def _restore_row(self, record: Record, behind: set[bytes]) -> None:
        self._check_writer(record)
        try:
            check_schema(record.headers)
            parts = parts_of(record.key or b"")
            if len(parts) == 1:
                self._restore_progress(record)
            elif len(parts) == 2:
                self._restore_batch_row(parts, record)
            else:
                self._restore_case(parts, record, behind)
        except (Undecodable, NewerSchema, ValueError) as error:
            raise Fatal(
                f"row {record.offset} of {record.topic}/{record.partition} cannot be read ({error}): run the version "
                "of SAFE "
                "that wrote it, or give this group an empty state topic"
            ) from error

    def _check_writer(self, record: Record) -> None:
        group = group_of(record.headers)
        if group != self._settings.group:
            raise Fatal(
                f"{record.topic} belongs to group {group or 'unknown'}, this is group {self._settings.group}: "
                "one group owns its topics; set SAFE_V0_KAFKA_GROUP_ID or SAFE_V0_STATE_TOPIC"
            )

    def _restore_progress(self, record: Record) -> None:
        if record.key == PROGRESS_KEY and record.value is not None:
            self._progress = decode_progress_row(record.value)

    def _restore_batch_row(self, parts: tuple[str, ...], record: Record) -> None:
        key = batch_key(*parts)
        if record.value is None:
            self._batches.pop(key, None)
        else:
            self._batch(*parts).row = decode_batch_row(record.value)

    def _restore_case(self, parts: tuple[str, ...], record: Record, behind: set[bytes]) -> None:
        concern_id, batch_id, test_id = parts
        batch = self._batch(concern_id, batch_id)
        assert record.key is not None
        if record.value is None:
            if test_id in batch.fold:
                batch.fold.remove(test_id)
            return
        if not batch.fold.offer(test_id, decode_scored(record.value).row):
            behind.add(record.key)  # the compacted topic would keep the loser
        else:
            behind.discard(record.key)

    async def _find_winners(self, behind: set[bytes]) -> None:
        """A loser stands behind its winner, as two writers in `at_least_once` may leave it: the winner is written
        again."""
        async with aclosing(self._read_state(self._partition)) as slices:  # type: ignore[type-var]
            async for records in slices:
                for record in records:
                    if record.key in behind and record.value is not None:
                        scored = decode_scored(record.value)
                        fold = self._batch(scored.concern_id, scored.batch_id).fold
                        if fold.row(scored.test_id).version == scored.row.version:
                            self._rewrite[record.key] = record.value

    def _put_in_order(self) -> None:
        rows = {key: batch.row for key, batch in self._batches.items() if batch.row is not None}
        in_order = sorted(rows, key=lambda key: rows[key].last_scored_at)
        self._forgotten = {key: rows[key] for key in in_order if rows[key].stage == "forgotten"}
        self._batches = {key: self._batches[key] for key in in_order if key not in self._forgotten}
        for batch in self._batches.values():
            if batch.is_live and batch.row is not None and batch.row.moved > batch.row.reported:
                self._owe(batch)

    def _batch(self, concern_id: str, batch_id: str) -> LiveBatch:
        key = batch_key(concern_id, batch_id)
        batch = self._batches.get(key)
        if batch is None:
            batch = self._batches[key] = LiveBatch(key, concern_id, batch_id)
        return batch

    # --- take-over ----------------------------------------------------------------------------------------------------

    async def first_offset(self, subscription: Subscription, committed: int | None) -> int:
        """Where to read on (contract, section 4, "Take-over"); raises Fatal where offsets and state contradict."""
        progress, where = self._progress, f"partition {self._partition}"
        if progress is not None and progress.partitions != self._settings.partitions:
            raise Fatal(
                f"the state was written for {progress.partitions} partitions of the scored topic, which now has "
                f"{self._settings.partitions}: restore the count, or start a new group on new topics"
            )
        if committed is None:
            return await subscription.beginning(self._partition) if progress is None else progress.next_offset
        if progress is None:
            raise Fatal(
                f"{where} of the scored topic is committed up to {committed}, but {self._settings.state_topic} has "
                "no progress "
                "row: its state is gone; reset the group's offsets on the scored topic to the earliest, or start a "
                "new group"
            )
        if self._settings.exactly_once and committed < progress.next_offset:
            raise Fatal(
                f"{where} of the scored topic is committed up to {committed}, but its state already holds everything "
                "up to "
                f"{progress.next_offset}: reset the group's offset there to {progress.next_offset}"
            )
        return committed

    # --- one slice ----------------------------------------------------------------------------------------------------

    async def process(self, records: Sequence[Record], outgoing: Outgoing) -> int:
        """Fold a slice and publish a result for each record; raises Transient at a record of a newer SAFE."""
        self._begin_slice()
        for turn, record in enumerate(records):
            try:
                self._one(record, outgoing)
            except NewerSchema as error:
                if turn == 0:
                    raise Transient(f"written by a newer SAFE ({error}): roll out aggregators first") from error
                return turn
            if turn % _RECORDS_PER_TURN == _RECORDS_PER_TURN - 1:
                await asyncio.sleep(0)
        return len(records)

    def _begin_slice(self) -> None:
        self._touched = {}
        self._outcomes = Counter()
        self._published_at = []
        self._reopened = 0

    def _one(self, record: Record, outgoing: Outgoing) -> None:
        group = group_of(record.headers)
        if group is not None and group != self._settings.group:
            self._outcomes["foreign"] += 1
            return
        try:
            check_schema(record.headers)
            scored = decode_scored(record.value)
        except Undecodable as error:
            poison = Poison("invalid_event", str(error))
            append_dead_letter(outgoing, record, poison, "aggregator", self._settings.dead_letters, self._now_ms())
            self._outcomes["dead_lettered"] += 1
            return
        self._fold(record, scored, outgoing)

    def _fold(self, record: Record, scored: ScoredCase, outgoing: Outgoing) -> None:
        batch = self._live_batch(scored, outgoing)
        won = batch.fold.offer(scored.test_id, scored.row)
        key = case_key(scored.concern_id, scored.batch_id, scored.test_id).encode()
        if won:
            outgoing.append(self._settings.state_topic, self._partition, key, record.value, self._headers)
        moved = won or batch.expected_cases != scored.expected_cases
        self._touch(batch, record, scored, moved=moved)
        value = encode_result(
            scored,
            batch.fold.summary(),
            scored.expected_cases,
            complete=batch.is_complete(scored.expected_cases),
            mixed_runs=batch.fold.mixed_runs,
        )
        outgoing.append(
            self._settings.result_topic, self._partition, batch.key.encode(), value,
            result_headers(scored, key, self._ce_source),
        )  # fmt: skip
        self._published_at.append(scored.document["published_at"])

    def _live_batch(self, scored: ScoredCase, outgoing: Outgoing) -> LiveBatch:
        batch = self._batch(scored.concern_id, scored.batch_id)
        if batch.is_live and (not self._forgotten or self._forgotten.pop(batch.key, None) is None):
            return batch
        # Being forgotten, or forgotten: what is left of it goes first, then the batch begins anew.
        for test_id in batch.fold.test_ids():
            self._bury_case(batch, test_id, outgoing)
        self._reopened += 1
        _log.warning(
            "a late record opened a forgotten batch anew", concern_id=scored.concern_id, batch_id=scored.batch_id
        )
        fresh = self._batches[batch.key] = LiveBatch(batch.key, scored.concern_id, scored.batch_id)
        return fresh

    def _touch(self, batch: LiveBatch, record: Record, scored: ScoredCase, *, moved: bool) -> None:
        key, before, document = batch.key, batch.row, scored.document
        batch.row = BatchRow(
            last_scored_at=max(record.timestamp, before.last_scored_at if before is not None else 0),
            expected_cases=scored.expected_cases,
            moved=record.offset + 1 if moved or before is None else before.moved,
            reported=before.reported if before is not None else 0,
            fingerprint=document["scorer"]["fingerprint"],
            version=document["scorer"]["version"],
        )
        self._touched[key] = None
        self._batches[key] = self._batches.pop(key)  # the latest stands last
        if batch.row.moved > batch.row.reported:
            self._owe(batch)
        if before is not None and before.fingerprint != batch.row.fingerprint and len(batch.fold.fingerprints) > 1:
            _log.warning(
                "the batch holds cases scored under different configurations",
                concern_id=batch.concern_id, batch_id=batch.batch_id, fingerprints=batch.fold.fingerprints,
            )  # fmt: skip

    def finish(self, outgoing: Outgoing, next_offset: int, *, at_end: bool) -> None:
        """Add due reports, the rows of touched batches, whatever is to be forgotten, and the progress row."""
        for winner, value in self._rewrite.items():
            self._put_state(outgoing, winner, value)
        self._publish_due_reports(outgoing)
        if at_end:
            self._forget_idle(outgoing)
        for key in self._touched:
            batch = self._batches.get(key)
            row = batch.row if batch is not None else self._forgotten.get(key)
            assert row is not None
            self._put_state(outgoing, key.encode(), row.encode())
        progress = ProgressRow(self._settings.group, SCHEMA, self._settings.partitions, next_offset)
        self._put_state(outgoing, PROGRESS_KEY, progress.encode())

    def _put_state(self, outgoing: Outgoing, key: bytes, value: bytes | None) -> None:
        outgoing.append(self._settings.state_topic, self._partition, key, value, self._headers)

    def committed(self, next_offset: int) -> None:  # noqa: ARG002 - the protocol's signature
        """The slice is visible: move gauges and counters."""
        self._rewrite.clear()
        self._committed_at = time.monotonic()
        now_ms = self._now_ms()
        for outcome, count in self._outcomes.items():
            self._metrics.count("safe_records", outcome, by=count)
        if self._outcomes["dead_lettered"]:
            self._metrics.count("safe_dead_letters", "invalid_event", by=self._outcomes["dead_lettered"])
        if self._outcomes["foreign"]:
            _log.warning("scored records of another group were skipped", count=self._outcomes["foreign"])
        if self._reopened:
            self._metrics.count("safe_batches_reopened", by=self._reopened)
        self._metrics.end_to_end.observe(
            max(0, now_ms - published_at) / 1_000 for published_at in self._published_at if published_at >= 0
        )
        for key in self._touched:
            batch = self._batches.get(key)
            if batch is None or not batch.is_live:
                self._gauges.remove(self._partition, key)
            else:
                self._gauges.put(self._partition, key, _exported(batch))
        self._begin_slice()

    # --- reports ------------------------------------------------------------------------------------------------------

    def _owe(self, batch: LiveBatch) -> None:
        """A report is due at once, or a second after the last one; the longest owed is published first."""
        if batch.owed_at is None:
            batch.owed_at = max(time.monotonic(), batch.report_not_before)
            heapq.heappush(self._owed, (batch.owed_at, batch.key))

    def _publish_due_reports(self, outgoing: Outgoing) -> None:
        """Results come first: while there are any, reports have a small share of the time, and none to spare is
        saved up."""
        now = time.monotonic()
        idle = not self._published_at
        earned = _IDLE_REPORT_SECONDS if idle else (now - self._credited_at) * _BUSY_REPORT_SHARE
        self._report_credit = min(_IDLE_REPORT_SECONDS, self._report_credit + earned)
        self._credited_at = now
        while self._owed and self._owed[0][0] <= now and self._report_credit > 0:
            _due, key = heapq.heappop(self._owed)
            batch = self._batches.get(key)
            if batch is not None and batch.is_live and batch.owed_at is not None and batch.row is not None:
                self._publish_report(batch, outgoing)

    def _publish_report(self, batch: LiveBatch, outgoing: Outgoing) -> None:
        row = batch.row
        assert row is not None
        began = time.monotonic()
        generated_at = rfc_3339(self._now_ms())
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
        batch.row = row._replace(reported=row.moved)
        self._touched[batch.key] = None
        batch.owed_at = None
        cost = time.monotonic() - began
        self._report_credit -= cost
        batch.report_not_before = began + max(_REPORT_EVERY_SECONDS, cost * _REPORT_SHARE)

    # --- forgetting ---------------------------------------------------------------------------------------------------

    def _forget_idle(self, outgoing: Outgoing) -> None:
        """Advance the forgetting of idle batches by a bounded number of records."""
        self._drop_old_marks(outgoing)
        budget = _FORGET_RECORDS
        for key in list(self._idle(self._now_ms())):
            budget -= self._forget_step(self._batches[key], outgoing, budget)
            if budget <= 0:
                return

    def _idle(self, now_ms: int) -> Iterator[str]:
        oldest = now_ms - self._ttl_ms
        for key, batch in self._batches.items():
            if batch.row is None or batch.row.last_scored_at >= oldest:
                return  # the rest was scored later
            if batch.owed_at is None:  # its last report goes first
                yield key

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
            # The mark stays for one more time-to-live, so that a late record is known to reopen the batch.
            self._forgotten[batch.key] = row._replace(stage="forgotten")
            del self._batches[batch.key]
            _log.info("batch forgotten", concern_id=batch.concern_id, batch_id=batch.batch_id)
        return len(names) + 1

    def _drop_old_marks(self, outgoing: Outgoing) -> None:
        oldest = self._now_ms() - 2 * self._ttl_ms
        old = list(
            islice((key for key, row in self._forgotten.items() if row.last_scored_at < oldest), _FORGET_RECORDS)
        )
        for key in old:
            del self._forgotten[key]
            self._put_state(outgoing, key.encode(), None)

    def _bury_case(self, batch: LiveBatch, test_id: str, outgoing: Outgoing) -> None:
        batch.fold.remove(test_id)
        self._put_state(outgoing, case_key(batch.concern_id, batch.batch_id, test_id).encode(), None)

    def _next_forgetting_in(self) -> float | None:
        """Seconds until the longest idle batch, or mark, is old enough."""
        times = [batch.row.last_scored_at + self._ttl_ms for batch in islice(self._batches.values(), 1) if batch.row]
        times += [row.last_scored_at + 2 * self._ttl_ms for row in islice(self._forgotten.values(), 1)]
        return max(0.0, (min(times) - self._now_ms() + 1) / 1_000) if times else None

    # --- chores and gauges --------------------------------------------------------------------------------------------

    def next_chore_at(self, *, at_end: bool) -> float | None:
        """When a report is due, or a batch may be forgotten."""
        now = time.monotonic()
        times = [self._owed[0][0]] if self._owed else []
        forgetting_in = self._next_forgetting_in() if at_end else None
        if forgetting_in is not None:
            # An owed report comes before the end of its batch, and what cannot be done at once must not spin.
            times.append(max(now + forgetting_in, self._committed_at + _FORGET_EVERY_SECONDS))
        if self._rewrite:
            times.append(now)
        return min(times, default=None)

    def show(self, *, visible: bool) -> None:
        """Export the live batches, or none."""
        if not visible:
            self._gauges.hide(self._partition)
            return
        if not self._exported_once:
            self._exported_once = True
            for key, batch in self._batches.items():
                if batch.is_live and batch.row is not None:
                    self._gauges.put(self._partition, key, _exported(batch))
        self._gauges.show(self._partition)

    def drop(self) -> None:
        """The partition is let go: nothing of it is exported any more."""
        self._gauges.drop(self._partition)


def _exported(batch: LiveBatch) -> ExportedBatch:
    assert batch.row is not None
    return ExportedBatch(
        batch.concern_id, batch.batch_id, batch.fold.snapshot(), batch.row.expected_cases, batch.row.last_scored_at
    )
