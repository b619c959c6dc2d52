"""Decompression with a limit: a few kilobytes on the wire may become gigabytes.

The client decompresses a whole record batch at once, whatever its size. Here a batch is decompressed into a buffer of
fixed size, and refused if it does not fit. While large batches are being read, no further large one is decompressed.
"""

import mmap
import struct
import weakref
from collections.abc import Callable, Iterator, Mapping

import cramjam
from aiokafka.errors import CorruptRecordException, KafkaError
from typing_extensions import Buffer

_SMALL_BYTES = 1024 * 1024
"""A batch of at most this size is copied out of the buffer, which is used again; a larger batch keeps its buffer."""

_XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
"""The start of a snappy stream of blocks, each preceded by its length. Without it there is a single block."""

_FULL = "failed to write whole buffer"
"""What cramjam says when the buffer is too small."""


class BatchTooLarge(KafkaError):  # type: ignore[misc]  # aiokafka ships no types
    """A batch is larger than `limit_bytes` when decompressed."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"a batch is larger than {limit_bytes} bytes decompressed")
        self.limit_bytes = limit_bytes


class UndecodableBatch(CorruptRecordException):  # type: ignore[misc]  # as above
    """A batch has the right checksum, but its records cannot be read."""


class BatchesInTheWay(KafkaError):  # type: ignore[misc]  # as above
    """Large batches are being read; this one has to wait until they are done."""


class _BufferFull(Exception):
    pass


def _streamed(decompress_into: Callable[[Buffer, memoryview], int]) -> Callable[[memoryview, memoryview], int]:
    def decompress(payload: memoryview, buffer: memoryview) -> int:
        try:
            return decompress_into(payload, buffer)
        except cramjam.DecompressionError as error:
            raise _BufferFull if str(error) == _FULL else error from None

    return decompress


def _snappy(payload: memoryview, buffer: memoryview) -> int:
    """Each block states its decompressed size, which cannot be exceeded: what is too large is refused unread."""
    blocks = list(_snappy_blocks(payload))
    if sum(map(cramjam.snappy.decompress_raw_len, blocks)) > len(buffer):
        raise _BufferFull
    size = 0
    for block in blocks:
        size += cramjam.snappy.decompress_raw_into(block, buffer[size:])
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
            raise struct.error("a block goes beyond the end of its batch")
        yield payload[at - length : at]


CODECS: Mapping[str, Callable[[memoryview, memoryview], int]] = {
    "gzip": _streamed(cramjam.gzip.decompress_into),
    "snappy": _snappy,
    "lz4": _streamed(cramjam.lz4.decompress_into),
    "zstd": _streamed(cramjam.zstd.decompress_into),
}
"""Each writes from the start of a buffer and returns the number of bytes written."""


class Decompression:
    """Decompresses the batches of a process: each to at most `limit_bytes`, and only a few large ones at a time.

    `open_bytes` is the memory of large batches and large records that are still being read.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.open_bytes = 0
        self._spare: mmap.mmap | None = None

    def decompress(self, codec: str, payload: Buffer) -> Buffer:
        """Decompress a batch; raises BatchTooLarge, UndecodableBatch, or BatchesInTheWay (then try again later).

        At most one and a half times the limit is open at once. Small batches neither count nor wait.
        """
        crowded = self.open_bytes > self.limit_bytes // 2
        # Pages that are never written take up addresses only, no memory.
        buffer = self._spare or mmap.mmap(-1, self.limit_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._spare = None
        view = memoryview(buffer)[: _SMALL_BYTES if crowded else self.limit_bytes]
        try:
            size = CODECS[codec](memoryview(payload), view)
        except _BufferFull:
            _release(view, buffer)
            raise BatchesInTheWay if crowded else BatchTooLarge(self.limit_bytes) from None
        except (cramjam.DecompressionError, struct.error) as error:
            cause = error.with_traceback(None)  # its frames would keep the buffer alive
            _release(view, buffer)
            raise UndecodableBatch(f"a batch is not what {codec} made") from cause
        if size <= _SMALL_BYTES:
            small = bytes(view[:size])
            self._spare = buffer
            return small
        large = view[:size]
        self.note_open(large, size)
        return large

    def note_open(self, large: object, size: int) -> None:
        """Count an object of this many bytes as open until its last reference is gone."""
        self.open_bytes += size
        weakref.finalize(large, self._closed, size).atexit = False

    def _closed(self, size: int) -> None:
        self.open_bytes -= size


def _release(view: memoryview, buffer: mmap.mmap) -> None:
    view.release()
    buffer.close()
