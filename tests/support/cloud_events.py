"""Somebody else's decoder of CloudEvents, for what SAFE writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cloudevents.core.bindings.kafka import KafkaMessage, from_binary
from cloudevents.core.formats.json import JSONFormat


@dataclass(frozen=True, slots=True)
class Decoded:
    """An event as its decoder tells it."""

    id: str
    type: str
    source: str
    subject: str | None
    time: datetime | None
    content_type: str | None
    partition_key: Any
    payload: Any


def decoded(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]) -> Decoded:
    """Decode a record in binary mode; raises what the decoder raises at an event that is none."""
    names = [name for name, _ in headers]
    assert len(names) == len(set(names)), "a header stands twice"
    message = KafkaMessage({name: content or b"" for name, content in headers}, key, value or b"")
    event = from_binary(message, JSONFormat())
    assert event.get_specversion() == "1.0"
    return Decoded(
        event.get_id(),
        event.get_type(),
        event.get_source(),
        event.get_subject(),
        event.get_time(),
        event.get_datacontenttype(),
        event.get_extension("partitionkey"),
        event.get_data(),
    )
