"""Records whose headers have names that are not UTF-8, read all the same.

Kafka's own clients write names as UTF-8, but brokers take any octets, and the client's parser gives the whole batch up
at the first such name. From there on the batch is read once more, in Python. Such a name comes with its octets as lone
surrogates (PEP 383), which no UTF-8 decodes to: so it can be told from every other name.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any

from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecord
from aiokafka.record.util import decode_varint
from typing_extensions import Buffer

Decompress = Callable[[int, memoryview], Buffer]
"""Takes the number of a codec and the octets that it made."""

# Attributes, last offset delta, first and greatest timestamp, producer's id, epoch and sequence, number of records.
_CHECKED = struct.Struct(">hiqqqhii")
_CHECKED_AT = struct.calcsize(">qiibI")
_RECORDS_AT = _CHECKED_AT + _CHECKED.size
_CODEC, _LOG_APPEND_TIME = 0x07, 0x08


class TolerantBatch:
    """A batch of records in place of the client's own, `batch`, of which `octets` are the whole."""

    is_control_batch = False

    def __init__(self, batch: Any, octets: memoryview, decompress: Decompress) -> None:
        self.base_offset: int = batch.base_offset
        self.next_offset: int = batch.next_offset
        self.producer_id: int | None = batch.producer_id
        self.is_transactional: bool = batch.is_transactional
        self._batch = batch
        self._octets = octets
        self._decompress = decompress

    def validate_crc(self) -> bool:
        """Whether the batch is what its producer wrote."""
        return bool(self._batch.validate_crc())

    def __iter__(self) -> Iterator[Any]:
        """Yield each record, to be read once only; raises whatever reading a malformed batch raises."""
        passed = 0
        try:
            for record in self._batch:
                passed += 1
                yield record
        except UnicodeDecodeError:
            self._batch = None  # what it has decompressed makes room for the same once more
        else:
            return
        yield from _records(self._octets, self._decompress, passed)


def _records(batch: memoryview, decompress: Decompress, passed: int) -> Iterator[DefaultRecord]:
    """The records of a batch behind those that have passed already."""
    (first_offset,) = struct.unpack_from(">q", batch)
    attributes, _, first_time, greatest_time, _, _, _, count = _CHECKED.unpack_from(batch, _CHECKED_AT)
    packed, codec = batch[_RECORDS_AT:], attributes & _CODEC
    broker_time = greatest_time if attributes & _LOG_APPEND_TIME else None
    reader = _Reader(memoryview(decompress(codec, packed)) if codec else packed)
    for number in range(count):
        octets = reader.octets(reader.number())
        if number >= passed:
            yield _record(_Reader(octets), first_offset, first_time, broker_time)
    reader.check_end()


def _record(reader: "_Reader", first_offset: int, first_time: int, broker_time: int | None) -> DefaultRecord:
    reader.octets(1)  # its attributes: none is in use
    time = first_time + reader.number()
    offset = first_offset + reader.number()
    key, value = reader.sized(), reader.sized()
    headers = [(reader.name(), reader.sized()) for _ in range(reader.count())]
    reader.check_end()
    timestamp, timestamp_type = (time, 0) if broker_time is None else (broker_time, 1)
    return DefaultRecord(offset, timestamp, timestamp_type, key, value, headers)


class _Reader:
    """Octets, read from their beginning on."""

    def __init__(self, octets: memoryview) -> None:
        self._octets = octets
        self._at = 0

    def number(self) -> int:
        number, self._at = decode_varint(self._octets, self._at)
        return int(number)

    def count(self) -> int:
        count = self.number()
        if count < 0:
            raise CorruptRecordException("a count that cannot be")
        return count

    def octets(self, size: int) -> memoryview:
        start, self._at = self._at, self._at + size
        if size < 0 or self._at > len(self._octets):
            raise CorruptRecordException("a size that cannot be")
        return self._octets[start : self._at]

    def sized(self) -> bytes | None:
        size = self.number()
        return None if size < 0 else bytes(self.octets(size))

    def name(self) -> str:
        return bytes(self.octets(self.number())).decode("utf-8", "surrogateescape")

    def check_end(self) -> None:
        if self._at != len(self._octets):
            raise CorruptRecordException("octets that belong to no record")
