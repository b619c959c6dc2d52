"""Forgetting idle batches (contract.md, "Forgetting"): mark the batch, remove its rows one by one, then the mark.

How long a batch has been idle is measured with the monotonic clock, which nobody can set. What came before this process
took the partition up is known from the brokers' time in the rows, once, at the restore: `BrokersClock.age_seconds`.
"""

from collections.abc import Iterator
from itertools import islice, takewhile
from math import inf

import structlog
from msgspec.structs import replace

from consumer.kafka.brokers_clock import BrokersClock
from consumer.kafka.writer import Outgoing
from consumer.wire.changelog import BatchRow
from consumer.wire.keys import case_key
from consumer.worker.aggregator_state import AggregatorSettings, Mark, PartitionState
from consumer.worker.live_batch import LiveBatch

_log = structlog.get_logger("safe.aggregator")

_FORGET_RECORDS = 5_000
"""How many records one transaction of forgetting may have."""

_FORGET_EVERY_SECONDS = 0.05
_SHORTEST_MARK_SECONDS = 86_400.0
"""The mark of a forgotten batch, by which a late record is noticed, stays for a time to live, at least this long."""

_MOST_NAMED = 5
"""Of more batches that are forgotten together, the log has only the number."""

_LOG_EVERY_SECONDS = 10.0


class Forgetting:
    """Forgets the idle batches of a partition, a bounded number of records in each transaction."""

    def __init__(
        self, settings: AggregatorSettings, state: PartitionState, clock: BrokersClock, partition: int
    ) -> None:
        self._state = state
        self._clock = clock
        self._partition = partition
        self._ttl_seconds = float(settings.batch_ttl_seconds)
        self._mark_seconds = self._ttl_seconds + max(self._ttl_seconds, _SHORTEST_MARK_SECONDS)
        self._gone: list[LiveBatch] = []  # not logged yet
        self._gone_since = 0.0

    def resume(self, first_seen_at: int | None) -> None:
        """After a restore: work out how long each batch, and each mark, has been idle.

        A row without a time that brokers gave counts from `first_seen_at` on.
        """
        now, state = self._clock.monotonic(), self._state

        def idle_since(row: BatchRow | None) -> float:
            folded_at = None if row is None else row.folded_at
            return now - self._clock.age_seconds(first_seen_at if folded_at is None else folded_at)

        for batch in state.batches.values():
            batch.idle_since = idle_since(batch.row)
        state.batches = dict(sorted(state.batches.items(), key=lambda entry: entry[1].idle_since))
        marks = {key: mark._replace(idle_since=idle_since(mark.row)) for key, mark in state.forgotten.items()}
        state.forgotten = dict(sorted(marks.items(), key=lambda entry: entry[1].idle_since))

    def advance(self, outgoing: Outgoing) -> None:
        """Go on with the batches that have been idle for too long."""
        self._drop_old_marks(outgoing)
        budget = _most_records(outgoing)
        for batch in list(self._idle()):
            budget -= self._step(batch, outgoing, budget)
            if budget <= 0:
                return

    def _idle(self) -> Iterator[LiveBatch]:
        latest = self._clock.monotonic() - self._ttl_seconds
        for batch in self._state.batches.values():
            if batch.row is None or batch.idle_since > latest:
                return  # all that follow were scored later
            if batch.owed_at is None:  # its last report is published first
                yield batch

    def _step(self, batch: LiveBatch, outgoing: Outgoing, budget: int) -> int:
        """One step of one batch: first mark it, in later transactions remove its rows; returns the records written."""
        row = batch.row
        assert row is not None
        self._state.touched[batch.key] = None
        if row.stage == "live":
            batch.row = replace(row, stage="forgetting")
            return 1
        removed = self._remove_rows(batch, outgoing, budget)
        if not len(batch.fold):
            # The mark stays, so that a late record is known to reopen the batch.
            self._state.forgotten[batch.key] = Mark(replace(row, stage="forgotten"), batch.idle_since)
            del self._state.batches[batch.key]
            self._gone_since = self._gone_since if self._gone else self._clock.monotonic()
            self._gone.append(batch)
        return removed + 1

    def remove_rest(self, batch: LiveBatch, outgoing: Outgoing) -> bool:
        """Remove what is left of a batch before one of the same name begins; False if some of it must wait."""
        self._remove_rows(batch, outgoing, _most_records(outgoing))
        return not len(batch.fold)

    def _remove_rows(self, batch: LiveBatch, outgoing: Outgoing, most: int) -> int:
        names = list(islice(batch.fold, most))
        for test_id in names:
            batch.fold.remove(test_id)
            self._state.put_case(outgoing, case_key(batch.concern_id, batch.batch_id, test_id).encode(), None)
        return len(names)

    def _drop_old_marks(self, outgoing: Outgoing) -> None:
        forgotten, latest = self._state.forgotten, self._clock.monotonic() - self._mark_seconds
        old = takewhile(lambda key: forgotten[key].idle_since <= latest, forgotten)
        for key in list(islice(old, _most_records(outgoing))):
            del forgotten[key]
            self._state.put(outgoing, key.encode(), None)

    def next_at(self, committed_at: float) -> float:
        """Monotonic time at which the longest idle batch, or mark, is old enough; `inf` if there is none.

        A pause after each commit keeps the loop from spinning over what must wait, such as a batch that owes a report.
        """
        batches, marks = self._state.batches.values(), self._state.forgotten.values()
        times = [batch.idle_since + self._ttl_seconds for batch in islice(batches, 1) if batch.row]
        times += [mark.idle_since + self._mark_seconds for mark in islice(marks, 1)]
        return max(min(times, default=inf), committed_at + _FORGET_EVERY_SECONDS)

    def committed(self) -> None:
        """Log what was forgotten: a few batches by name, of many that go together only the number."""
        if not self._gone:
            return
        more_follow = next(self._idle(), None) is not None
        if not more_follow or self._clock.monotonic() - self._gone_since >= _LOG_EVERY_SECONDS:
            self.log()

    def log(self) -> None:
        """Log what has not been logged yet."""
        gone, self._gone = self._gone, []
        if len(gone) > _MOST_NAMED:
            _log.info("batches forgotten", partition=self._partition, count=len(gone))
            return
        for batch in gone:
            _log.info("batch forgotten", concern_id=batch.concern_id, batch_id=batch.batch_id)


def _most_records(outgoing: Outgoing) -> int:
    """How many records one transaction may forget: fewer where commits are slow."""
    return max(1, int(_FORGET_RECORDS * outgoing.share))
