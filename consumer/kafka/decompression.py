"""Decompression with a bound: a few kilobytes on the wire may hold gigabytes.

The client decompresses a whole record batch at once, whatever comes of it. Here a batch is decompressed into a room of
fixed size, and one that does not fit is refused; and while large batches are being read, no other one is begun.
"""

import mmap
import struct
import weakref
from collections.abc import Callable, Iterator, Mapping

import cramjam
from aiokafka.errors import CorruptRecordException, KafkaError
from typing_extensions import Buffer

_SMALL_BYTES = 1024 * 1024
"""A batch that becomes no larger is copied out, and its room used again; a larger one keeps its room."""

_XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
"""What a snappy stream of blocks begins with; each block follows its length. Without it there is one block."""

_FULL = "failed to write whole buffer"
"""What cramjam says when the room is too small."""


class BatchTooLarge(KafkaError):  # type: ignore[misc]  # aiokafka ships no types
    """A batch would be larger than `limit_bytes`, decompressed."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"a batch is larger than {limit_bytes} bytes decompressed")
        self.limit_bytes = limit_bytes


class UndecodableBatch(CorruptRecordException):  # type: ignore[misc]  # as above
    """A batch whose checksum is right holds no records that can be read."""


class BatchesInTheWay(KafkaError):  # type: ignore[misc]  # as above
    """Large batches are being read just now; once they are, this one can be."""


class _NoRoom(Exception):
    pass


def _streamed(decompress_into: Callable[[Buffer, memoryview], int]) -> Callable[[memoryview, memoryview], int]:
    def decompress(payload: memoryview, room: memoryview) -> int:
        try:
            return decompress_into(payload, room)
        except cramjam.DecompressionError as error:
            raise _NoRoom if str(error) == _FULL else error from None

    return decompress


def _snappy(payload: memoryview, room: memoryview) -> int:
    """Each block tells its size, and does not decompress to any other: what is too large is refused unread."""
    blocks = list(_snappy_blocks(payload))
    if sum(map(cramjam.snappy.decompress_raw_len, blocks)) > len(room):
        raise _NoRoom
    size = 0
    for block in blocks:
        size += cramjam.snappy.decompress_raw_into(block, room[size:])
    return size


def _snappy_blocks(payload: memoryview) -> Iterator[memoryview]:
    if payload[: len(_XERIAL)] != _XERIAL:
        yield payload
        return
    at = len(_XERIAL)
    while at < len(payload):
        (length,) = struct.unpack_from(">I", payload, at)
        at += 4 + length
        if at > len(payload):
            raise struct.error("a block ends behind its batch")
        yield payload[at - length : at]


CODECS: Mapping[str, Callable[[memoryview, memoryview], int]] = {
    "gzip": _streamed(cramjam.gzip.decompress_into),
    "snappy": _snappy,
    "lz4": _streamed(cramjam.lz4.decompress_into),
    "zstd": _streamed(cramjam.zstd.decompress_into),
}
"""Each fills a room from its start and returns how much it wrote."""


class Decompression:
    """How the batches of a process are decompressed: each to `limit_bytes` at most, and a few large ones at a time.

    `open_bytes` is what large batches, and large records, take up that somebody still reads.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.open_bytes = 0
        self._room: mmap.mmap | None = None

    def decompress(self, codec: str, payload: Buffer) -> Buffer:
        """Decompress a batch; raises BatchTooLarge, UndecodableBatch, or BatchesInTheWay: try again later.

        At most one and a half times the limit is open at once; a small batch is never in the way of anything.
        """
        crowded = self.open_bytes > self.limit_bytes // 2
        # Of pages that are never touched nothing but the address is used.
        room = self._room or mmap.mmap(-1, self.limit_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._room = None
        view = memoryview(room)[: _SMALL_BYTES if crowded else self.limit_bytes]
        try:
            size = CODECS[codec](memoryview(payload), view)
        except _NoRoom:
            _give_back(view, room)
            raise BatchesInTheWay if crowded else BatchTooLarge(self.limit_bytes) from None
        except (cramjam.DecompressionError, struct.error) as error:
            cause = error.with_traceback(None)  # whose frames would keep the room
            _give_back(view, room)
            raise UndecodableBatch(f"a batch is not what {codec} made") from cause
        if size <= _SMALL_BYTES:
            self._room = room
            return bytes(view[:size])
        large = view[:size]
        self.note_open(large, size)
        return large

    def note_open(self, large: object, size: int) -> None:
        """Count something that takes up this many bytes until nobody holds it any more."""
        self.open_bytes += size
        weakref.finalize(large, self._closed, size).atexit = False

    def _closed(self, size: int) -> None:
        self.open_bytes -= size


def _give_back(view: memoryview, room: mmap.mmap) -> None:
    view.release()
    room.close()
