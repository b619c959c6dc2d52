"""A record of the dead-letter topic as its headers describe it, read and written (contract.md, "Dead letters")."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from typing_extensions import override

from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError
from consumer.text import is_utf8, visible
from consumer.wire.record import KafkaHeaders, Record
from consumer.wire.times import milliseconds_of, rfc_3339

_NUMBER: Final = re.compile("-?[0-9]{1,19}", re.ASCII)
_BEYOND_INT64: Final = 2**63
_PREFIX: Final = "safe.dlq."
_DETAIL_LIMIT: Final = 512


class LetterId(NamedTuple):
    """Partition and offset of a dead letter in its own topic; written 3/41, it is the letter's name."""

    partition: int
    offset: int

    @override
    def __str__(self) -> str:
        return f"{self.partition}/{self.offset}"


class Source(NamedTuple):
    """Topic, partition and offset of the record that became a dead letter."""

    topic: str
    partition: int
    offset: int

    @override
    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


class Omitted(NamedTuple):
    """What is known of a value that did not fit into the topic."""

    value_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter; times are in ms since 1970, `timestamp` is the one of the record that failed, -1 for none."""

    id: LetterId
    reason: str
    stage: str
    detail: str
    source: Source
    timestamp: int
    group: str
    version: str
    failed_at: int
    omitted: Omitted | None
    record: Record

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """The headers that the record came with."""
        return came_with(self.record.headers)

    @property
    def value_bytes(self) -> int:
        """How many bytes the record's value had."""
        return self.omitted.value_bytes if self.omitted else len(self.record.value or b"")

    @property
    def value_sha256(self) -> str | None:
        """The SHA-256 of the record's value in hexadecimal, None if it had none."""
        return self.omitted.sha256 if self.omitted else sha256_of(self.record.value)


def sha256_of(value: bytes | None) -> str | None:
    """The SHA-256 of a value in hexadecimal, None for none."""
    return None if value is None else hashlib.sha256(value).hexdigest()


def read_letter(record: Record) -> Letter | None:
    """Read a record of the topic; None if it is no dead letter of SAFE's."""
    fields = _own_fields(record.headers)
    try:
        return Letter(
            id=LetterId(record.partition, record.offset),
            reason=fields["reason"],
            stage=fields["stage"],
            detail=fields["detail"],
            source=Source(fields["topic"], _number(fields["partition"], least=0), _number(fields["offset"], least=0)),
            timestamp=_number(fields["timestamp"], least=1 - _BEYOND_INT64),
            group=fields["group"],
            version=fields["version"],
            failed_at=_moment(fields["failed_at"]),
            omitted=_omitted(fields),
            record=record,
        )
    except (KeyError, ValueError, OverflowError, OSError, Poison):
        return None


def _own_fields(headers: KafkaHeaders) -> dict[str, str]:
    return {
        name.removeprefix(_PREFIX): content.decode("utf-8", "replace")
        for name, content in headers
        if name.startswith(_PREFIX) and content is not None
    }


def _number(text: str, *, least: int) -> int:
    if not _NUMBER.fullmatch(text) or not least <= int(text) < _BEYOND_INT64:
        raise ValueError("not a number of Kafka's")
    return int(text)


def _moment(text: str) -> int:
    milliseconds = milliseconds_of(text)
    rfc_3339(milliseconds)  # others may have written one that no calendar has
    return milliseconds


def _omitted(fields: Mapping[str, str]) -> Omitted | None:
    if fields.get("value_omitted") != "true":
        return None
    return Omitted(_number(fields["value_bytes"], least=0), fields["value_sha256"])


# --- how a person names one -------------------------------------------------------------------------------------------

Name = LetterId | Source


def read_name(text: str) -> Name:
    """Read PARTITION/OFFSET of the dead-letter topic, or TOPIC/PARTITION/OFFSET of the source."""
    *topic, partition, offset = text.split("/") if text.count("/") in {1, 2} else ("", "", "")
    numeric = all(re.fullmatch("[0-9]{1,18}", number, re.ASCII) for number in (partition, offset))
    if not numeric or topic == [""]:
        raise ConfigurationError(
            f"{visible(text)} is not the name of a dead letter: give PARTITION/OFFSET, as safe dead-letters list "
            "prints it, or its source as TOPIC/PARTITION/OFFSET"
        )
    return Source(topic[0], int(partition), int(offset)) if topic else LetterId(int(partition), int(offset))


# --- written ----------------------------------------------------------------------------------------------------------


def dead_letter_headers(
    record: Record, poison: Poison, *, stage: str, group: str, version: str, failed_at: int
) -> list[tuple[str, bytes | None]]:
    """The record's own headers, except `safe.dlq.*` and those whose name is not UTF-8, and ours."""
    ours = {
        "reason": poison.reason,
        "stage": stage,
        "detail": poison.detail.encode()[:_DETAIL_LIMIT].decode("utf-8", "ignore"),
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "timestamp": str(record.timestamp),
        "group": group,
        "version": version,
        "failed_at": rfc_3339(failed_at),
    }
    return came_with(record.headers) + [(_PREFIX + name, text.encode()) for name, text in ours.items()]


def value_omitted(value: bytes) -> list[tuple[str, bytes | None]]:
    """Headers of a dead letter whose value does not fit into its topic."""
    return [
        (_PREFIX + "value_omitted", b"true"),
        (_PREFIX + "value_bytes", str(len(value)).encode()),
        (_PREFIX + "value_sha256", hashlib.sha256(value).hexdigest().encode()),
    ]


def came_with(headers: KafkaHeaders) -> list[tuple[str, bytes | None]]:
    """The headers of a record that a dead letter keeps: none of SAFE's own, and none that cannot be written."""
    return [header for header in headers if not header[0].startswith(_PREFIX) and is_utf8(header[0])]
