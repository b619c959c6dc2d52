"""A Kafka record, as far as SAFE reads one."""

from collections.abc import Sequence
from typing import Protocol

KafkaHeaders = Sequence[tuple[str, bytes | None]]


class Record(Protocol):
    """A Kafka record as it was fetched; `timestamp` in ms since 1970, or -1."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: KafkaHeaders
