"""Asking for stable offsets: a later version of the offset request than the client itself speaks.

Before Kafka 4.0 (KAFKA-17507) a coordinator may have written the end of a transaction and not yet know the offset that
the transaction committed. Version 7 of the request asks it to say so (UNSTABLE_OFFSET_COMMIT) instead of answering with
the offset before.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from aiokafka.errors import KafkaError
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.commit import OffsetFetchRequest_v3
from aiokafka.protocol.types import Boolean, CompactArray, CompactString, Int16, Int32, Int64, Schema, TaggedFields
from typing_extensions import override

UNSTABLE_OFFSET_COMMIT = 88


class UnstableOffset(KafkaError):  # type: ignore[misc]  # aiokafka ships no types
    """A transaction that committed an offset has not ended yet: ask again."""

    errno = UNSTABLE_OFFSET_COMMIT


class FoundOffset(NamedTuple):
    """What a coordinator answers for one partition; `code` is Kafka's error code, 0 for none."""

    topic: str
    partition: int
    offset: int
    note: str | None
    code: int


class OffsetFetchResponse_v7(Response):  # type: ignore[misc]  # noqa: N801 - named as the client names them
    """With the epoch of the leader, which nothing here needs."""

    API_KEY = 9
    API_VERSION = 7
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                        ("metadata", CompactString("utf-8")),
                        ("error_code", Int16),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("error_code", Int16),
        ("tags", TaggedFields),
    )


class OffsetFetchRequest_v7(RequestStruct):  # type: ignore[misc]  # noqa: N801 - as above
    """The first version that can ask for stable offsets."""

    API_KEY = 9
    API_VERSION = 7
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = OffsetFetchResponse_v7
    SCHEMA = Schema(
        ("consumer_group", CompactString("utf-8")),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")), ("partitions", CompactArray(Int32)), ("tags", TaggedFields)
            ),
        ),
        ("require_stable", Boolean),
        ("tags", TaggedFields),
    )


class StableOffsetsRequest(Request[OffsetFetchRequest_v3 | OffsetFetchRequest_v7]):  # type: ignore[misc]
    """What a group has committed for some partitions of a topic; stable where the broker can tell (Kafka 2.5)."""

    API_KEY = 9

    def __init__(self, group: str, topic: str, partitions: list[int]) -> None:
        self._group = group
        self._topic = topic
        self._partitions = partitions

    @override
    def build(self, request_struct_class: type[RequestStruct]) -> RequestStruct:
        if request_struct_class is OffsetFetchRequest_v7:
            no_tags: dict[int, bytes] = {}
            topics = [(self._topic, self._partitions, no_tags)]
            return OffsetFetchRequest_v7(self._group, topics, True, no_tags)  # noqa: FBT003 - the protocol's fields in order
        return request_struct_class(self._group, [(self._topic, self._partitions)])


def found_offsets(response: Any) -> Iterator[FoundOffset]:
    """What an answer says, in either version."""
    for topic in response.to_object()["topics"]:
        for each in topic["partitions"]:
            yield FoundOffset(topic["topic"], each["partition"], each["offset"], each["metadata"], each["error_code"])
