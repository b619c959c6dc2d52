"""Rebuilds what the aggregator remembers of one partition from `safe.v0.state` (contract.md, "State").

The changelog holds the latest row of each case, a row for each batch, and the partition's progress row. A tombstone
removes a row; a batch's row says whether it is live, being forgotten, or forgotten.
"""

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import cast

import structlog

from consumer.errors import Fatal
from consumer.wire.changelog import BatchRow, ProgressRow
from consumer.wire.headers import NewerSchema, Undecodable, check_schema, group_of
from consumer.wire.keys import PROGRESS_KEY, batch_key, parts_of
from consumer.wire.record import KafkaHeaders, Record
from consumer.wire.scored_record import ResultShape, ScoredRecord, decode_scored, row_of, with_believed_time
from consumer.worker.aggregator_state import Mark, PartitionState

_log = structlog.get_logger("safe.aggregator")

_LOG_EVERY_ROWS = 100_000

ReadState = Callable[[int, int], AsyncIterator[Sequence[Record]]]
"""Reads a partition of the changelog up to, not including, an offset."""


class Restore:
    """Folds the rows of a partition into its state, which is empty before; once."""

    def __init__(self, state: PartitionState, partition: int, group: str, read: ReadState) -> None:
        self._state = state
        self._partition = partition
        self._group = group
        self._read = read
        self._end = 0
        self._losers: set[bytes] = set()
        self._sound_headers: KafkaHeaders | None = None

    async def run(self, end: int) -> None:
        """Fold the changelog's rows before the offset `end`: the latest output of each test case wins.

        Raises Transient, and Fatal for a row that cannot be understood.
        """
        self._end = end
        started, rows = time.monotonic(), 0
        async for records in self._slices():
            for record in records:
                self._restore(record)
            if rows // _LOG_EVERY_ROWS != (rows + len(records)) // _LOG_EVERY_ROWS:
                _log.info("restoring", partition=self._partition, rows=rows, seconds=_since(started))
            rows += len(records)
        if self._losers:
            await self._find_winners()
        self._set_marks_apart()
        cases = sum(len(batch.fold) for batch in self._state.batches.values())
        _log.log(
            logging.INFO if rows else logging.DEBUG,
            "restored",
            partition=self._partition,
            rows=rows,
            batches=len(self._state.batches),
            cases=cases,
            seconds=_since(started),
        )

    def check_counts(self) -> None:
        """Raise Fatal where a batch does not have as many rows as its own row says: the topic has lost some."""
        for batch in self._state.batches.values():
            if batch.row is not None and batch.is_live and batch.row.cases != len(batch.fold):
                raise Fatal(
                    f"the state of batch {batch.key} has only {len(batch.fold)} of its {batch.row.cases} rows: the "
                    "state topic was emptied or recreated; restore it, or start a new group on new topics, which "
                    "scores everything again"
                )

    async def _slices(self) -> AsyncIterator[Sequence[Record]]:
        # A generator that is left half-way must close its client now, not when it happens to be collected as garbage.
        reading = cast("AsyncGenerator[Sequence[Record], None]", self._read(self._partition, self._end))
        async with aclosing(reading) as slices:
            async for records in slices:
                yield records

    def _restore(self, record: Record) -> None:
        try:
            if record.headers != self._sound_headers:  # nearly all rows have the same
                self._check_headers(record)
            self._restore_row(parts_of(record.key or b""), record)
        except (Undecodable, NewerSchema, ValueError) as error:
            raise Fatal(
                f"row {record.offset} of {record.topic}/{record.partition} cannot be read ({error}): run the version "
                "of SAFE that wrote it, or start a new group on new topics"
            ) from error

    def _restore_row(self, parts: tuple[str, ...], record: Record) -> None:
        match parts:
            case (_,):
                if record.key == PROGRESS_KEY and record.value is not None:
                    self._state.progress = ProgressRow.decode(record.value)
            case (concern_id, batch_id):
                self._restore_batch(concern_id, batch_id, record)
            case (concern_id, batch_id, test_id):
                self._restore_case(concern_id, batch_id, test_id, record)
            case _:
                raise Undecodable("its key has too many parts")

    def _check_headers(self, record: Record) -> None:
        group = group_of(record.headers)
        if group != self._group:
            raise Fatal(
                f"{record.topic} belongs to group {group or 'unknown'}, this is group {self._group}: "
                "two groups cannot share it; set SAFE_V0_KAFKA_GROUP_ID or SAFE_V0_STATE_TOPIC"
            )
        check_schema(record.headers)
        self._sound_headers = record.headers

    def _restore_batch(self, concern_id: str, batch_id: str, record: Record) -> None:
        if record.value is None:
            self._state.batches.pop(batch_key(concern_id, batch_id), None)
            return
        batch, row = self._state.batch(concern_id, batch_id), BatchRow.decode(record.value)
        # A late row of a former owner (possible in `at_least_once`) must not replace a newer one.
        if batch.row is None or row.moved >= batch.row.moved:
            batch.row = row

    def _restore_case(self, concern_id: str, batch_id: str, test_id: str, record: Record) -> None:
        fold = self._state.batch(concern_id, batch_id).fold
        assert record.key is not None
        if record.value is None:
            self._losers.discard(record.key)
            if test_id in fold:
                fold.remove(test_id)
        elif fold.offer(test_id, row_of(self._decoded(record.value))):
            self._losers.discard(record.key)
        else:
            self._losers.add(record.key)  # compaction would keep this losing row

    def _decoded(self, value: bytes) -> ScoredRecord[ResultShape]:
        return with_believed_time(decode_scored(value), self._state.ahead_ms)

    async def _find_winners(self) -> None:
        """Note the winning rows that a losing row follows, as two owners in `at_least_once` may leave them."""
        async for records in self._slices():
            for record in records:
                if record.key in self._losers and record.value is not None:
                    scored = self._decoded(record.value)
                    fold = self._state.batch(scored.concern_id, scored.batch_id).fold
                    test_id = scored.result.test_id
                    if test_id in fold and fold.row(test_id).version == scored.version:
                        self._state.rewrite[record.key] = record.value
        self._losers.clear()

    def _set_marks_apart(self) -> None:
        rows = {key: batch.row for key, batch in self._state.batches.items() if batch.row is not None}
        now = time.monotonic()
        self._state.forgotten = {key: Mark(row, now) for key, row in rows.items() if row.stage == "forgotten"}
        self._state.batches = {key: self._state.batches[key] for key in rows if key not in self._state.forgotten}


def _since(started: float) -> float:
    return round(time.monotonic() - started, 3)
