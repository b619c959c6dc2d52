"""Forgetting idle batches (contract.md, "Forgetting"): mark the batch, remove its rows one by one, then the mark."""

from collections.abc import Callable, Iterator
from itertools import islice, takewhile
from math import inf

import structlog
from msgspec.structs import replace

from consumer.kafka.writer import Outgoing
from consumer.wire.keys import case_key
from consumer.worker.aggregator_state import AggregatorSettings, PartitionState
from consumer.worker.live_batch import LiveBatch

_log = structlog.get_logger("safe.aggregator")

_FORGET_RECORDS = 5_000
"""How many records one transaction of forgetting may have."""

_FORGET_EVERY_SECONDS = 0.05
_SHORTEST_MARK_MS = 86_400_000
"""The mark of a forgotten batch, by which a late record is noticed, stays for a time to live, at least this long."""


class Forgetting:
    """Forgets the idle batches of a partition, a bounded number of records in each transaction."""

    def __init__(self, settings: AggregatorSettings, state: PartitionState, now_ms: Callable[[], int]) -> None:
        self._state = state
        self._now_ms = now_ms
        self._ttl_ms = int(settings.batch_ttl_seconds * 1_000)
        self._mark_ms = self._ttl_ms + max(self._ttl_ms, _SHORTEST_MARK_MS)

    def advance(self, outgoing: Outgoing) -> None:
        """Go on with the batches that have been idle for too long."""
        self._drop_old_marks(outgoing)
        budget = _most_records(outgoing)
        for batch in list(self._idle()):
            budget -= self._step(batch, outgoing, budget)
            if budget <= 0:
                return

    def _idle(self) -> Iterator[LiveBatch]:
        oldest = self._now_ms() - self._ttl_ms
        for batch in self._state.batches.values():
            if batch.row is None or batch.row.last_scored_at >= oldest:
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
            self._state.forgotten[batch.key] = replace(row, stage="forgotten")
            del self._state.batches[batch.key]
            _log.info("batch forgotten", concern_id=batch.concern_id, batch_id=batch.batch_id)
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
        forgotten, oldest = self._state.forgotten, self._now_ms() - self._mark_ms
        old = takewhile(lambda key: forgotten[key].last_scored_at < oldest, forgotten)
        for key in list(islice(old, _most_records(outgoing))):
            del forgotten[key]
            self._state.put(outgoing, key.encode(), None)

    def next_at(self, now: float, committed_at: float) -> float:
        """Monotonic time at which the longest idle batch, or mark, is old enough; `inf` if there is none.

        A pause after each commit keeps the loop from spinning over what must wait, such as a batch that owes a report.
        """
        batches, marks = self._state.batches.values(), self._state.forgotten.values()
        times = [batch.row.last_scored_at + self._ttl_ms for batch in islice(batches, 1) if batch.row]
        times += [row.last_scored_at + self._mark_ms for row in islice(marks, 1)]
        due_in = max(0.0, (min(times, default=inf) - self._now_ms() + 1) / 1_000)
        return max(now + due_in, committed_at + _FORGET_EVERY_SECONDS)


def _most_records(outgoing: Outgoing) -> int:
    """How many records one transaction may forget: fewer where commits are slow."""
    return max(1, int(_FORGET_RECORDS * outgoing.share))
