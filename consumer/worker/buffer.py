"""How much a partition holds: the records that are fetched and not yet processed, and the size of a slice."""

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from math import inf

from consumer.kafka.aiokafka_internals import size_of
from consumer.kafka.subscription import Fetched
from consumer.wire.record import Record

_SLICE_RECORDS = 2_000
_LEAST_SLICE_RECORDS = 200
_ALL_SLICES_RECORDS = 12_800
_SLICE_BYTES = 8 * 1024 * 1024
_BUFFER_RECORDS = 5_000
_BUFFER_BYTES = 16 * 1024 * 1024
_ALL_SLICES_BYTES = 24 * 1024 * 1024
_ALL_BUFFERS_BYTES = 56 * 1024 * 1024
"""What all partitions of a role may hold together: each has an equal share, up to its own limit.

So where there are many, a slice is small: the others wait until it is processed, and for the transaction with it.
"""
_LEAST_SHARE_BYTES = 512 * 1024


class Shares:
    """How much each partition of a role may hold: with more partitions less."""

    def __init__(self) -> None:
        self.partitions = 1

    @property
    def buffer_bytes(self) -> int:
        """How much may be fetched and not yet processed."""
        return min(_BUFFER_BYTES, max(_LEAST_SHARE_BYTES, _ALL_BUFFERS_BYTES // self.partitions))

    @property
    def slice_bytes(self) -> int:
        """How much may be processed at once; the last record may exceed it."""
        return min(_SLICE_BYTES, max(_LEAST_SHARE_BYTES, _ALL_SLICES_BYTES // self.partitions))

    @property
    def slice_records(self) -> int:
        """How many records may be processed at once."""
        return min(_SLICE_RECORDS, max(_LEAST_SLICE_RECORDS, _ALL_SLICES_RECORDS // self.partitions))


class Buffer:
    """Records that have been fetched and not yet processed, and how far fetching has come."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self.records: deque[Record] = deque()
        self._sizes: deque[int] = deque()
        self.fetched_to = 0
        self.paused = False
        self.markers_since = inf
        self._bytes = 0

    def start(self, position: int) -> None:
        """Begin at `position`, with nothing fetched."""
        self.clear()
        self.fetched_to = position

    def clear(self) -> None:
        """Forget what was fetched."""
        self.records.clear()
        self._sizes.clear()
        self._bytes = 0
        self.paused = False
        self.markers_since = inf

    def add(self, fetched: Fetched) -> None:
        """Append what a poll brought."""
        known = bisect_left(fetched.records, self.fetched_to, key=lambda record: record.offset)
        self.records.extend(fetched.records[known:])
        self._sizes.extend(fetched.sizes[known:])
        self._bytes += sum(fetched.sizes[known:])
        self.fetched_to = fetched.next_offset
        if not self.records:
            self.markers_since = min(self.markers_since, time.monotonic())

    @property
    def is_full(self) -> bool:
        """Whether fetching should pause."""
        return len(self.records) > _BUFFER_RECORDS or self._bytes > self._shares.buffer_bytes

    @property
    def is_low(self) -> bool:
        """Whether a paused partition should be fetched again."""
        return len(self.records) < _BUFFER_RECORDS // 2 and self._bytes < self._shares.buffer_bytes // 2

    def take(self, share: float = 1.0) -> tuple[list[Record], int]:
        """The next slice (all that was fetched, up to its bounds) and the offset to commit with it.

        `share` is the part of its bounds that a slice may fill; it has at least one record. The offset is past the
        transaction markers too if no record is left before them: else the group's lag would never become zero.
        """
        taken: list[Record] = []
        size, most = 0, max(1, int(self._shares.slice_bytes * share))
        most_records = max(1, int(self._shares.slice_records * share))
        while self.records and len(taken) < most_records and size < most:
            taken.append(self.records.popleft())
            size += self._sizes.popleft()
        self._bytes -= size
        return taken, self.records[0].offset if self.records else self.fetched_to

    def share_of(self, records: Sequence[Record]) -> float:
        """The share of a full slice that these are, by number or by bytes, whichever is more."""
        size = sum(map(size_of, records))
        return max(len(records) / self._shares.slice_records, size / self._shares.slice_bytes)

    def put_back(self, records: Sequence[Record]) -> None:
        """Put back what a slice did not take."""
        sizes = [size_of(record) for record in records]
        self.records.extendleft(reversed(records))
        self._sizes.extendleft(reversed(sizes))
        self._bytes += sum(sizes)

    def committed(self, next_offset: int) -> None:
        """Everything before `next_offset` is committed."""
        if next_offset >= self.fetched_to:
            self.markers_since = inf
        elif not self.records:
            self.markers_since = min(self.markers_since, time.monotonic())
