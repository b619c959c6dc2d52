"""What a slice writes, and when it is enough for one transaction."""

from typing import cast

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.producer.message_accumulator import BatchBuilder

from consumer.kafka import Outgoing

MIB = 1024 * 1024


class Producer:
    """All that a slice asks of a producer before it is sent."""

    _txn_manager = None

    def create_batch(self) -> BatchBuilder:
        return BatchBuilder(MIB, 0, is_transactional=True)


@pytest.fixture
def outgoing() -> Outgoing:
    return Outgoing(cast("AIOKafkaProducer", Producer()), 0)


def test_a_slice_is_full_once_its_values_come_to_16_mib_wherever_they_go(outgoing: Outgoing) -> None:
    for partition in range(31):
        outgoing.append("scored", partition % 4, b"key", bytes(MIB // 2), [])
        outgoing.append("state", 0, b"key", None, [])
        assert not outgoing.is_full
    outgoing.append("scored", 0, b"key", bytes(MIB // 2), [])
    assert outgoing.is_full


def test_what_is_compressed_counts_as_it_was(outgoing: Outgoing) -> None:
    assert outgoing.append_compressed("dead", 0, b"key", bytes(16 * MIB), [], max_bytes=MIB)
    assert outgoing.is_full


def test_what_is_not_written_fills_nothing(outgoing: Outgoing) -> None:
    assert not outgoing.append_compressed("dead", 0, b"key", bytes(65 * MIB), [], max_bytes=MIB)
    assert not outgoing.is_full
