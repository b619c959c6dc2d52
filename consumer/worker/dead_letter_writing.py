"""Writes input that can never be scored as dead letters, with the reason in headers (contract.md, "Dead letters")."""

from dataclasses import dataclass

from consumer.dead_letter_reasons import Poison
from consumer.kafka.writer import Outgoing
from consumer.wire.dead_letter import dead_letter_headers, value_omitted
from consumer.wire.record import Record
from consumer.worker.topic_limits import TopicLimits

_OVERHEAD_BYTES = 16 * 1024
"""Room for key, headers and framing below the topic's limit."""


@dataclass(frozen=True, slots=True)
class DeadLetterTopic:
    """The topic as it was verified at the start, the limit of its batches, and who writes to it."""

    name: str
    partitions: int
    limits: TopicLimits
    group: str
    version: str


def append_dead_letter(
    outgoing: Outgoing, record: Record, poison: Poison, stage: str, topic: DeadLetterTopic, now_ms: int
) -> None:
    """Add the record unchanged, with the reason in headers, to its source's partition modulo the topic's count."""
    headers = dead_letter_headers(
        record, poison, stage=stage, group=topic.group, version=topic.version, failed_at=now_ms
    )
    value = record.value
    partition = record.partition % topic.partitions
    headers_size = sum(len(name) * 4 + len(content or b"") for name, content in headers)
    room = topic.limits.of(topic.name) - _OVERHEAD_BYTES - headers_size - len(record.key or b"")
    if value is not None and len(value) > room:
        if outgoing.append_compressed(topic.name, partition, record.key, value, headers, room):
            return
        headers += value_omitted(value)
        value = None
    outgoing.append(topic.name, partition, record.key, value, headers)
