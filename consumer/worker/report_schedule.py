"""Reports of batches: which ones are owed, when each is due, and how much time they may take."""

import heapq
import time
from collections.abc import Callable
from math import inf

from msgspec.structs import replace

from consumer.kafka.writer import Outgoing
from consumer.wire.headers import ce_source, report_headers
from consumer.wire.times import rfc_3339
from consumer.worker.aggregator_state import AggregatorSettings, PartitionState
from consumer.worker.live_batch import LiveBatch
from consumer.worker.report_size import fit_report
from safe_core import build_report

_REPORT_EVERY_SECONDS = 1.0
_REPORT_COST_FACTOR = 20
"""A batch's next report waits at least this many times as long as its last one took to build."""

_REPORT_CREDIT_SECONDS = 0.03
"""How long one transaction may spend on reports, at most."""

_BUSY_REPORT_SHARE = 0.02
_IDLE_REPORT_SHARE = 0.5
"""Share of the time that a partition's reports may take, while results are waiting and while none are."""


class ReportSchedule:
    """The reports that a partition owes: the longest owed is published first. All times are monotonic."""

    def __init__(
        self, partition: int, settings: AggregatorSettings, state: PartitionState, now_ms: Callable[[], int]
    ) -> None:
        self._partition = partition
        self._settings = settings
        self._state = state
        self._now_ms = now_ms
        self._ce_source = ce_source(settings.group).encode()
        self._owed: list[tuple[float, str]] = []
        self._credit = 0.0
        self._credited_at = time.monotonic()

    def resume(self) -> None:
        """Owe what the last owner of the partition did not publish, but no sooner than it would have."""
        for batch in self._state.batches.values():
            if batch.is_live and batch.row is not None:
                # Whatever clock wrote that time: no report waits longer than it would have.
                since_report = max(0.0, (self._now_ms() - batch.row.reported_at) / 1_000)
                batch.report_not_before = time.monotonic() + max(0.0, _REPORT_EVERY_SECONDS - since_report)
                if batch.row.moved > batch.row.reported:
                    self.owe(batch)

    def owe(self, batch: LiveBatch) -> None:
        """A report is due at once, or a second after the last one."""
        if batch.owed_at is None:
            batch.owed_at = max(time.monotonic(), batch.report_not_before)
            heapq.heappush(self._owed, (batch.owed_at, batch.key))

    def next_at(self) -> float:
        """When the next report may be published, if nothing else is; `inf` if none is owed."""
        if not self._owed:
            return inf
        paid_at = self._credited_at - self._credit / _IDLE_REPORT_SHARE
        return max(self._owed[0][0], paid_at)

    def publish_due(self, outgoing: Outgoing, *, busy: bool) -> None:
        """Publish what is due as far as the time allows: results come first, and unused time is not saved up."""
        now = time.monotonic()
        share = _BUSY_REPORT_SHARE if busy else _IDLE_REPORT_SHARE
        self._credit = min(_REPORT_CREDIT_SECONDS, self._credit + (now - self._credited_at) * share)
        self._credited_at = now
        while self._owed and self._owed[0][0] <= now and self._credit > 0:
            _due, key = heapq.heappop(self._owed)
            batch = self._state.batches.get(key)
            if batch is not None and batch.is_live and batch.owed_at is not None:
                self._publish(batch, outgoing)
            if outgoing.is_full or outgoing.share < 1:
                return  # at least one: reports must also come while every slice is full, or commits are slow

    def _publish(self, batch: LiveBatch, outgoing: Outgoing) -> None:
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
            # Another process may score under another policy, of which this one knows only the fingerprint.
            configuration=dict(self._settings.configuration) if same_policy else None,
            expected_cases=row.expected_cases,
            complete=batch.is_complete(row.expected_cases),
        )
        value = fit_report(report, self._settings.report_bytes)
        headers = report_headers(batch.key, self._partition, row.moved, generated_at, self._ce_source)
        outgoing.append(self._settings.report_topic, self._partition, batch.key.encode(), value, headers)
        batch.row = replace(row, reported=row.moved, reported_at=now_ms)
        self._state.touched[batch.key] = None
        batch.owed_at = None
        cost = time.monotonic() - began
        self._credit -= cost
        batch.report_not_before = began + max(_REPORT_EVERY_SECONDS, cost * _REPORT_COST_FACTOR)
