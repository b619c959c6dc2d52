"""Decompression with a bound: what fits is what the client itself makes of it; what does not fit is refused."""

import mmap
import struct
from collections.abc import Callable

import cramjam
import pytest
from aiokafka import codec as client
from hypothesis import given
from hypothesis import strategies as st

from consumer.kafka.decompression import (
    CODECS,
    BatchesInTheWay,
    BatchTooLarge,
    Decompression,
    UndecodableBatch,
)

LIMIT = 4 * 1024 * 1024
LARGE = 3 * 1024 * 1024
Encoder = Callable[[bytes], bytes]


def one_snappy_block(text: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(text))


ENCODERS: dict[str, tuple[str, Encoder]] = {
    "gzip": ("gzip", client.gzip_encode),
    "snappy in blocks, as Java's clients write it": ("snappy", client.snappy_encode),
    "snappy in one block, as librdkafka writes it": ("snappy", one_snappy_block),
    "lz4": ("lz4", client.lz4_encode),
    "zstd": ("zstd", client.zstd_encode),
}
each_codec = pytest.mark.parametrize(("codec", "encode"), ENCODERS.values(), ids=ENCODERS.keys())


@each_codec
@given(text=st.binary(min_size=1, max_size=2_000), times=st.integers(1, 300))
def test_what_fits_comes_out_as_it_went_in(codec: str, encode: Encoder, text: bytes, times: int) -> None:
    assert bytes(Decompression(LIMIT).decompress(codec, encode(text * times))) == text * times


@each_codec
@pytest.mark.parametrize(
    ("size", "fits"),
    [
        (1, True),
        (LIMIT - 1, True),
        (LIMIT, True),  # the limit itself
        (LIMIT + 1, False),
        (8 * LIMIT, False),
    ],
)
def test_a_batch_may_be_as_large_as_the_limit_and_no_larger(
    codec: str, encode: Encoder, *, size: int, fits: bool
) -> None:
    decompression = Decompression(LIMIT)
    payload = encode(b"\0" * size)
    if fits:
        assert len(memoryview(decompression.decompress(codec, payload))) == size
    else:
        with pytest.raises(BatchTooLarge, match=str(LIMIT)):
            decompression.decompress(codec, payload)


@each_codec
def test_a_bomb_writes_nowhere_but_into_the_buffer_it_is_given(codec: str, encode: Encoder) -> None:
    """The guard itself: cramjam stops at the end of the room, and says so in the words that are looked for."""
    payload, room = encode(b"\xff" * (8 * LIMIT)), bytearray(LIMIT + 1)
    with pytest.raises(Exception, match=r"^$"):  # no room
        CODECS[codec](memoryview(payload), memoryview(room)[:LIMIT])
    assert room[LIMIT] == 0


@each_codec
def test_what_the_codec_did_not_make_is_named(codec: str, encode: Encoder) -> None:
    payload = encode(b"some text, some text, some text")
    for broken in (b"", b"rubbish" * 9, payload[:-3], payload[:5] + b"\xff\x00" * 9):
        with pytest.raises(UndecodableBatch):
            Decompression(LIMIT).decompress(codec, broken)


@pytest.mark.parametrize(
    "length",
    [
        0x7FFFFFFF,  # far beyond the end
        0xFFFFFFFF,  # negative to whoever reads it as signed: a step back, for ever
        0,
    ],
)
def test_the_length_of_a_snappy_block_is_not_believed(length: int) -> None:
    payload = client.snappy_encode(b"x" * 100)
    with pytest.raises(UndecodableBatch):
        Decompression(LIMIT).decompress("snappy", payload[:16] + struct.pack(">I", length) + payload[20:])


def test_a_snappy_block_that_claims_too_much_is_refused_unread() -> None:
    with pytest.raises(BatchTooLarge):
        Decompression(LIMIT).decompress("snappy", b"\xff\xff\xff\xff\x0f" + b"x")


def test_small_batches_share_one_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    make = mmap.mmap

    def noted(*arguments: int, **options: int) -> mmap.mmap:
        made.append(arguments[1])
        return make(*arguments, **options)

    decompression = Decompression(LIMIT)
    monkeypatch.setattr(mmap, "mmap", noted)
    first = decompression.decompress("zstd", client.zstd_encode(b"first"))
    second = decompression.decompress("lz4", client.lz4_encode(b"second"))
    assert (bytes(first), bytes(second)) == (b"first", b"second"), "the second stands where the first stood"
    assert made == [LIMIT]


def test_large_batches_that_are_being_read_keep_others_waiting_and_small_ones_go_by() -> None:
    decompression = Decompression(LIMIT)
    payload = client.zstd_encode(b"x" * LARGE)
    open_ = decompression.decompress("zstd", payload)
    assert decompression.open_bytes == LARGE
    with pytest.raises(BatchesInTheWay):
        decompression.decompress("zstd", payload)
    assert bytes(decompression.decompress("zstd", client.zstd_encode(b"small"))) == b"small"
    del open_
    assert decompression.open_bytes == 0
    assert len(memoryview(decompression.decompress("zstd", payload))) == LARGE


def test_a_failure_leaves_nothing_open() -> None:
    decompression = Decompression(LIMIT)
    with pytest.raises(BatchTooLarge):
        decompression.decompress("zstd", client.zstd_encode(b"x" * (LIMIT + 1)))
    with pytest.raises(UndecodableBatch):
        decompression.decompress("zstd", b"rubbish")
    assert decompression.open_bytes == 0
    assert bytes(decompression.decompress("zstd", client.zstd_encode(b"next"))) == b"next"
