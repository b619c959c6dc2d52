"""Asking for topics with their ids: a later version of the metadata request than the client itself speaks.

A topic that is deleted and created again has the same name and another id: the id alone tells the two apart.
"""

import uuid
from io import BytesIO

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.metadata import MetadataRequest_v4, MetadataRequest_v5
from aiokafka.protocol.types import (
    AbstractType,
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)
from typing_extensions import override

_UUID_BYTES = 16
NO_ID = uuid.UUID(int=0)


class Uuid(AbstractType[uuid.UUID]):  # type: ignore[misc]  # aiokafka ships no types
    """Sixteen bytes, as they are."""

    @classmethod
    @override
    def encode(cls, value: uuid.UUID) -> bytes:
        return value.bytes

    @classmethod
    @override
    def decode(cls, data: BytesIO) -> uuid.UUID:
        return uuid.UUID(bytes=data.read(_UUID_BYTES))


class MetadataResponse_v10(Response):  # type: ignore[misc]  # noqa: N801 - named as the client names them
    """The first version with topic ids."""

    API_KEY = 3
    API_VERSION = 10
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString("utf-8")),
                ("port", Int32),
                ("rack", CompactString("utf-8")),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", CompactString("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("topic", CompactString("utf-8")),
                ("topic_id", Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_authorized_operations", Int32),
        ("tags", TaggedFields),
    )


class MetadataRequest_v10(RequestStruct):  # type: ignore[misc]  # noqa: N801 - as above
    """Topics by name: their ids are left at zero."""

    API_KEY = 3
    API_VERSION = 10
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = MetadataResponse_v10
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", Uuid), ("topic", CompactString("utf-8")), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class TopicsMetadataRequest(Request[MetadataRequest_v4 | MetadataRequest_v5 | MetadataRequest_v10]):  # type: ignore[misc]
    """What the cluster knows of some topics, without creating those that are missing; with ids where it can."""

    API_KEY = 3

    def __init__(self, topics: list[str]) -> None:
        self._topics = topics

    @override
    def build(self, request_struct_class: type[RequestStruct]) -> RequestStruct:
        if request_struct_class is MetadataRequest_v10:
            no_tags: dict[int, bytes] = {}
            named = [(NO_ID, topic, no_tags) for topic in self._topics]
            return MetadataRequest_v10(named, False, False, False, no_tags)  # noqa: FBT003 - the protocol's fields in order
        return request_struct_class(self._topics, False)  # noqa: FBT003 - as above
