"""Record batches of the wire format, written byte by byte: exact boundaries, every codec, every attribute.

Clients decide themselves which records share a batch, and leave a small one uncompressed; here nothing is decided. A
batch may also be made wrong on purpose: another codec, another version, a checksum that fails.
"""

import gzip
import io
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import cramjam
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from confluent_kafka import KafkaException

from tests.support.outside import CALL_SECONDS, Outgoing, Outside
from tests.support.waiting import wait_until

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
"""Their places are their numbers in a batch's attributes."""

NO_TIMESTAMP = -1
_SNAPPY_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_SNAPPY_BLOCK = 32 * 1024
_BEFORE_CHECKSUM = struct.Struct(">qiib")
"""Base offset, length of what follows it, leader epoch, version."""
_CHECKSUM = struct.Struct(">I")
_CHECKED = struct.Struct(">hiqqqhii")
"""Attributes, last offset delta, first and greatest timestamp, producer's id, epoch and sequence, number of records."""
_BEFORE_LENGTH = 12
_CHECKED_AT = _BEFORE_CHECKSUM.size + _CHECKSUM.size


def encode_batch(records: Sequence[Outgoing], codec: Codec = "none", *, now_ms: int) -> bytes:
    """Write one batch; a record without a timestamp has the time given."""
    stamps = [now_ms if record.timestamp is None else record.timestamp for record in records]
    placed = enumerate(zip(records, stamps, strict=True))
    body = b"".join(_encode_record(record, at, stamp - stamps[0]) for at, (record, stamp) in placed)
    last = len(records) - 1
    checked = _CHECKED.pack(CODECS.index(codec), last, stamps[0], max(stamps), -1, -1, -1, len(records))
    return _sealed(checked + compressed(body, codec))


def _sealed(checked: bytes, *, base_offset: int = 0, leader_epoch: int = -1, version: int = 2) -> bytes:
    length = _CHECKED_AT - _BEFORE_LENGTH + len(checked)
    before = _BEFORE_CHECKSUM.pack(base_offset, length, leader_epoch, version)
    return before + _CHECKSUM.pack(calc_crc32c(checked)) + checked


def compressed(body: bytes, codec: Codec) -> bytes:
    """Compress as Kafka's own clients do."""
    match codec:
        case "none":
            return body
        case "gzip":
            return gzip.compress(body, compresslevel=1)
        case "snappy":
            blocks = [body[at : at + _SNAPPY_BLOCK] for at in range(0, len(body), _SNAPPY_BLOCK)]
            packed = [bytes(cramjam.snappy.compress_raw(block)) for block in blocks]
            return _SNAPPY_HEADER + b"".join(struct.pack(">i", len(block)) + block for block in packed)
        case "lz4":
            frame = cramjam.lz4.Compressor(level=1, content_checksum=False, block_linked=False)
            frame.compress(body)
            return bytes(frame.finish())
        case "zstd":
            return bytes(cramjam.zstd.compress(body, level=1))


def _encode_record(record: Outgoing, offset_delta: int, timestamp_delta: int) -> bytes:
    headers = [
        # Names that are not UTF-8 can be written too: Kafka's brokers take them.
        _sized(name.encode("utf-8", "surrogateescape")) + _sized(content)
        for name, content in record.headers
    ]
    body = b"".join(
        (
            b"\x00",
            _varint(timestamp_delta),
            _varint(offset_delta),
            _sized(record.key),
            _sized(record.value),
            _varint(len(headers)),
            *headers,
        )
    )
    return _varint(len(body)) + body


def _sized(content: bytes | None) -> bytes:
    return _varint(-1) if content is None else _varint(len(content)) + content


def _varint(number: int) -> bytes:
    zigzag = number << 1 if number >= 0 else (-number << 1) - 1
    octets = bytearray()
    while zigzag > 0x7F:
        octets.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    octets.append(zigzag)
    return bytes(octets)


# ----------------------------------------------------------------------------------------------------- damaging batches


def with_a_flipped_bit(batch: bytes) -> bytes:
    """Change the last octet and leave the checksum as it was."""
    return batch[:-1] + bytes([batch[-1] ^ 1])


def with_codec_number(batch: bytes, number: int) -> bytes:
    """Say of a batch, with a good checksum, that it is compressed by a codec that nobody has heard of."""
    base_offset, _, leader_epoch, version = _BEFORE_CHECKSUM.unpack_from(batch)
    attributes = int.from_bytes(batch[_CHECKED_AT : _CHECKED_AT + 2], "big") & ~7 | number
    checked = attributes.to_bytes(2, "big") + batch[_CHECKED_AT + 2 :]
    return _sealed(checked, base_offset=base_offset, leader_epoch=leader_epoch, version=version)


def with_version(batch: bytes, version: int) -> bytes:
    """Say of a batch that it is written in another format."""
    base_offset, _, leader_epoch, _ = _BEFORE_CHECKSUM.unpack_from(batch)
    return _sealed(batch[_CHECKED_AT:], base_offset=base_offset, leader_epoch=leader_epoch, version=version)


def change_batch(segment: Path, number: int, change: Callable[[bytes], bytes]) -> None:
    """Change one batch, counted from 0, in the segment of a broker that is not running."""
    octets = segment.read_bytes()
    start = 0
    for _ in range(number):
        start = _end_of_batch(octets, start)
    end = _end_of_batch(octets, start)
    segment.write_bytes(octets[:start] + change(octets[start:end]) + octets[end:])


def _end_of_batch(octets: bytes, start: int) -> int:
    return start + _BEFORE_LENGTH + int.from_bytes(octets[start + 8 : start + _BEFORE_LENGTH], "big")


# ----------------------------------------------------------------------------------------------------- storing batches

_PRODUCE = 0
_PRODUCE_VERSION = 7  # the first that may carry zstd
_ALL_REPLICAS = -1


_UNANSWERED = 8
"""Requests that may be under way at once: the broker takes them in their order."""


class BatchWriter:
    """Stores batches as they are in one topic of a broker that asks for no credentials and leads all its partitions."""

    def __init__(self, outside: Outside, topic: str) -> None:
        self._topic = topic
        wait_until(lambda: _is_led(outside, topic), within_seconds=CALL_SECONDS, what=f"{topic} is led")
        [broker] = outside.admin.list_topics(topic, timeout=CALL_SECONDS).brokers.values()
        self._connection = socket.create_connection((broker.host, broker.port), timeout=CALL_SECONDS)
        # Else the end of each request waits for the broker to acknowledge its beginning.
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def store(self, batch: bytes, partition: int = 0) -> int:
        """Store one batch; return the offset of its first record."""
        [offsets] = self.store_all([{partition: batch}])
        return offsets[partition]

    def store_all(self, calls: Iterable[Mapping[int, bytes]]) -> Iterator[dict[int, int]]:
        """Store a batch in each of some partitions, again and again; yield the offsets of their first records."""
        unanswered = 0
        for batches in calls:
            self._ask(batches)
            unanswered += 1
            if unanswered > _UNANSWERED:
                yield self._taken()
                unanswered -= 1
        for _ in range(unanswered):
            yield self._taken()

    def _taken(self) -> dict[int, int]:
        answer = self._answer()
        refused = [(partition, error) for partition, error, _ in answer if error]
        assert not refused, f"{self._topic}: partitions refused a batch, with their errors: {refused}"
        return {partition: offset for partition, _, offset in answer}

    def _ask(self, batches: Mapping[int, bytes]) -> None:
        head = struct.pack(">hhi", _PRODUCE, _PRODUCE_VERSION, 0) + _text("batches")
        call = struct.pack(">hhii", -1, _ALL_REPLICAS, int(CALL_SECONDS * 1000), 1) + _text(self._topic)
        partitions = [struct.pack(">ii", at, len(batch)) + batch for at, batch in batches.items()]
        request = b"".join((head, call, struct.pack(">i", len(batches)), *partitions))
        self._connection.sendall(struct.pack(">i", len(request)) + request)

    def _answer(self) -> list[tuple[int, int, int]]:
        """Partition, error and offset of the first record for each batch of the oldest request without an answer."""
        answer = io.BytesIO(self._received(int.from_bytes(self._received(4), "big")))
        _correlation, topics = struct.unpack(">ii", answer.read(8))
        assert topics == 1
        answer.read(int.from_bytes(answer.read(2), "big"))  # its name
        (partitions,) = struct.unpack(">i", answer.read(4))
        rows = [struct.unpack(">ihqqq", answer.read(30)) for _ in range(partitions)]
        return [(partition, error, offset) for partition, error, offset, _time, _start in rows]

    def _received(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._connection.recv(size - len(parts))
            assert part, "the broker closed the connection"
            parts += part
        return bytes(parts)


def _is_led(outside: Outside, topic: str) -> bool:
    """Whether the broker knows that it leads a topic: a little after others know, where it was just made."""
    try:
        return bool(outside.ends(topic))
    except KafkaException:
        return False


def _text(text: str) -> bytes:
    octets = text.encode()
    return struct.pack(">h", len(octets)) + octets


_IS_CONTROL_BATCH = 0x20


def marker(first_offset: int, at_ms: int, *, commits: bool = False) -> bytes:
    """A transaction marker as a broker keeps it: a control batch with the time of the partition's leader."""
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=1, producer_id=7, producer_epoch=0, base_sequence=-1,
        batch_size=1 << 30,
    )  # fmt: skip
    builder.append(0, timestamp=at_ms, key=struct.pack(">hh", 0, int(commits)), value=bytes(6), headers=[])
    built = bytearray(builder.build())
    built[22] |= _IS_CONTROL_BATCH
    built[17:21] = calc_crc32c(bytes(built[21:])).to_bytes(4, "big")
    return first_offset.to_bytes(8, "big") + bytes(built[8:])
