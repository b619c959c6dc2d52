"""Reading records whose headers have names that are not UTF-8.

Kafka's own clients write names as UTF-8, but brokers accept any bytes, and the client's parser gives up the whole batch
at the first such name. The rest of the batch is then parsed here, in Python. Such a name is returned with its bytes as
lone surrogates (PEP 383); no valid UTF-8 decodes to these, so it cannot be confused with another name.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any

from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecord
from aiokafka.record.util import decode_varint
from typing_extensions import Buffer

Decompress = Callable[[int, memoryview], Buffer]
"""Takes the number of a codec and what that codec has compressed."""

# Attributes, last offset delta, first and greatest timestamp, producer's id, epoch and sequence, number of records.
_CHECKED = struct.Struct(">hiqqqhii")
_CHECKED_AT = struct.calcsize(">qiibI")
_RECORDS_AT = _CHECKED_AT + _CHECKED.size
_CODEC, _LOG_APPEND_TIME = 0x07, 0x08


class TolerantBatch:
    """Replaces `batch`, one of the client's own; `content` is the batch as it was fetched, all bytes of it."""

    is_control_batch = False

    def __init__(self, batch: Any, content: memoryview, decompress: Decompress) -> None:
        self.base_offset: int = batch.base_offset
        self.next_offset: int = batch.next_offset
        self.producer_id: int | None = batch.producer_id
        self.is_transactional: bool = batch.is_transactional
        self._batch = batch
        self._content = content
        self._decompress = decompress

    def validate_crc(self) -> bool:
        """Whether the batch has the checksum that its producer wrote."""
        return bool(self._batch.validate_crc())

    def __iter__(self) -> Iterator[Any]:
        """Yield each record; only once. Raises whatever reading a malformed batch raises."""
        passed = 0
        try:
            for record in self._batch:
                passed += 1
                yield record
        except UnicodeDecodeError:
            self._batch = None  # frees what it has decompressed, before the same is decompressed again
        else:
            return
        yield from _records(self._content, self._decompress, passed)


def _records(batch: memoryview, decompress: Decompress, passed: int) -> Iterator[DefaultRecord]:
    """The records of a batch, without the first `passed` ones."""
    (first_offset,) = struct.unpack_from(">q", batch)
    attributes, _, first_time, greatest_time, _, _, _, count = _CHECKED.unpack_from(batch, _CHECKED_AT)
    packed, codec = batch[_RECORDS_AT:], attributes & _CODEC
    broker_time = greatest_time if attributes & _LOG_APPEND_TIME else None
    reader = _Reader(memoryview(decompress(codec, packed)) if codec else packed)
    for number in range(count):
        record = reader.take(reader.number())
        if number >= passed:
            yield _record(_Reader(record), first_offset, first_time, broker_time)
    reader.check_end()


def _record(reader: "_Reader", first_offset: int, first_time: int, broker_time: int | None) -> DefaultRecord:
    reader.take(1)  # its attributes, which Kafka does not use
    time = first_time + reader.number()
    offset = first_offset + reader.number()
    key, value = reader.sized(), reader.sized()
    headers = [(reader.name(), reader.sized()) for _ in range(reader.count())]
    reader.check_end()
    timestamp, timestamp_type = (time, 0) if broker_time is None else (broker_time, 1)
    return DefaultRecord(offset, timestamp, timestamp_type, key, value, headers)


class _Reader:
    """Reads bytes from their start."""

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self._at = 0

    def number(self) -> int:
        number, self._at = decode_varint(self._content, self._at)
        return int(number)

    def count(self) -> int:
        count = self.number()
        if count < 0:
            raise CorruptRecordException("an impossible count")
        return count

    def take(self, size: int) -> memoryview:
        start, self._at = self._at, self._at + size
        if size < 0 or self._at > len(self._content):
            raise CorruptRecordException("an impossible size")
        return self._content[start : self._at]

    def sized(self) -> bytes | None:
        size = self.number()
        return None if size < 0 else self.take(size).tobytes()

    def name(self) -> str:
        return self.take(self.number()).tobytes().decode("utf-8", "surrogateescape")

    def check_end(self) -> None:
        if self._at != len(self._content):
            raise CorruptRecordException("bytes that belong to no record")
