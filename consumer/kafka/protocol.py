"""Requests that the client does not know, or not in this version.

Topics with their ids, stable offsets, offsets committed by a member in a transaction, producers, and the members of a
group of the newer protocol.

A topic that is deleted and created again has the same name but another id: only the id distinguishes the two.

Before Kafka 4.0 (KAFKA-17507), a coordinator may have written the end of a transaction before it knows the offset that
this transaction committed. Version 7 of the offset request asks it to say so (UNSTABLE_OFFSET_COMMIT) instead of
answering with the earlier offset.

Since Kafka 3.0, the leader of a partition says which producers have a transaction open there.
"""

import base64
import uuid
from collections.abc import Mapping
from io import BytesIO
from typing import Any, NamedTuple

from aiokafka.errors import KafkaError
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.commit import OffsetFetchRequest_v3
from aiokafka.protocol.metadata import MetadataRequest_v4, MetadataRequest_v5
from aiokafka.protocol.types import (
    AbstractType,
    Boolean,
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)
from typing_extensions import override

_TEXT = CompactString("utf-8")
_TAGS = ("tags", TaggedFields)


def _schema(**types: Any) -> Schema:
    """The fields of a message in a flexible version, which tagged fields end."""
    return Schema(*types.items(), _TAGS)


def _array_of(**types: Any) -> CompactArray:
    """Entries with these fields; tagged fields end each."""
    return CompactArray(*types.items(), _TAGS)


# --- topics with their ids --------------------------------------------------------------------------------------------

_UUID_BYTES = 16
NO_ID = uuid.UUID(int=0)


def spelled_id(topic_id: str) -> str:
    """Spell a topic's id as Kafka's own tools do, in 22 characters."""
    return base64.urlsafe_b64encode(uuid.UUID(topic_id).bytes).decode().rstrip("=")


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
    SCHEMA = _schema(
        throttle_time_ms=Int32,
        brokers=_array_of(node_id=Int32, host=_TEXT, port=Int32, rack=_TEXT),
        cluster_id=_TEXT,
        controller_id=Int32,
        topics=_array_of(
            error_code=Int16,
            topic=_TEXT,
            topic_id=Uuid,
            is_internal=Boolean,
            partitions=_array_of(
                error_code=Int16,
                partition=Int32,
                leader=Int32,
                leader_epoch=Int32,
                replicas=CompactArray(Int32),
                isr=CompactArray(Int32),
                offline_replicas=CompactArray(Int32),
            ),
            authorized_operations=Int32,
        ),
        cluster_authorized_operations=Int32,
    )


class MetadataRequest_v10(RequestStruct):  # type: ignore[misc]  # noqa: N801 - as above
    """Topics by name: their ids are left at zero."""

    API_KEY = 3
    API_VERSION = 10
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = MetadataResponse_v10
    SCHEMA = _schema(
        topics=_array_of(topic_id=Uuid, topic=_TEXT),
        allow_auto_topic_creation=Boolean,
        include_cluster_authorized_operations=Boolean,
        include_topic_authorized_operations=Boolean,
    )


class TopicsMetadataRequest(Request[MetadataRequest_v4 | MetadataRequest_v5 | MetadataRequest_v10]):  # type: ignore[misc]
    """What the cluster knows about some topics, without creating missing ones; with ids if the broker has them."""

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


# --- offsets that are stable ------------------------------------------------------------------------------------------

UNSTABLE_OFFSET_COMMIT = 88


class UnstableOffset(KafkaError):  # type: ignore[misc]  # aiokafka ships no types
    """A transaction that commits an offset has not ended yet: ask again."""

    errno = UNSTABLE_OFFSET_COMMIT


class OffsetFetchResponse_v7(Response):  # type: ignore[misc]  # noqa: N801 - named as the client names them
    """With the epoch of the leader, which nothing here needs."""

    API_KEY = 9
    API_VERSION = 7
    SCHEMA = _schema(
        throttle_time_ms=Int32,
        topics=_array_of(
            topic=_TEXT,
            partitions=_array_of(partition=Int32, offset=Int64, leader_epoch=Int32, metadata=_TEXT, error_code=Int16),
        ),
        error_code=Int16,
    )


class OffsetFetchRequest_v7(RequestStruct):  # type: ignore[misc]  # noqa: N801 - as above
    """The first version that can ask for stable offsets."""

    API_KEY = 9
    API_VERSION = 7
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = OffsetFetchResponse_v7
    SCHEMA = _schema(
        consumer_group=_TEXT,
        topics=_array_of(topic=_TEXT, partitions=CompactArray(Int32)),
        require_stable=Boolean,
    )


class StableOffsetsRequest(Request[OffsetFetchRequest_v3 | OffsetFetchRequest_v7]):  # type: ignore[misc]
    """What a group has committed for some partitions of a topic; only stable offsets since Kafka 2.5."""

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


# --- offsets that a member commits in a transaction (KIP-447) ---------------------------------------------------------


class TxnOffsetCommitResponse_v3(Response):  # type: ignore[misc]  # noqa: N801 - named as the client names them
    """An error code for each partition."""

    API_KEY = 28
    API_VERSION = 3
    SCHEMA = _schema(
        throttle_time_ms=Int32,
        topics=_array_of(topic=_TEXT, partitions=_array_of(partition=Int32, error_code=Int16)),
    )


class TxnOffsetCommitRequest_v3(RequestStruct):  # type: ignore[misc]  # noqa: N801 - as above
    """The first version with the member and its generation, which the group checks; since Kafka 2.5."""

    API_KEY = 28
    API_VERSION = 3
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = TxnOffsetCommitResponse_v3
    SCHEMA = _schema(
        transactional_id=_TEXT,
        consumer_group=_TEXT,
        producer_id=Int64,
        producer_epoch=Int16,
        generation=Int32,
        member_id=_TEXT,
        instance_id=_TEXT,
        topics=_array_of(
            topic=_TEXT,
            partitions=_array_of(partition=Int32, offset=Int64, leader_epoch=Int32, metadata=_TEXT),
        ),
    )


class Member(NamedTuple):
    """A member of a group in one generation, as the group has assigned partitions to it."""

    member_id: str
    generation: int


_OWN_STEPS = 2
"""How much the epoch grows if no other producer came in between: once for ending what was open, once for the start."""


class Identity(NamedTuple):
    """A producer as its transaction coordinator knows it; each start, and each end that it forces, raises the epoch.

    A refused write does not prove that another producer has taken over: a broker that is cut off may still lead the
    partition in its own view, know an older transaction of ours, and refuse the newer one. The epochs do prove it.
    """

    transactional_id: str
    producer_id: int
    epoch: int

    def tells_of_another_since(self, earlier: "Identity") -> bool:
        """Whether another producer has certainly used the transactional id in between."""
        return self.producer_id == earlier.producer_id and self.epoch - earlier.epoch > _OWN_STEPS


NOBODY = Member("", -1)
"""Commits as a member of no group: the group does not check it."""


class MemberOffsetsRequest(Request[TxnOffsetCommitRequest_v3]):  # type: ignore[misc]
    """Commit offsets of one topic, (offset, note) by partition, in a transaction, as a member of the group."""

    API_KEY = 28

    def __init__(
        self, producer: Identity, group: str, member: Member, topic: str, offsets: Mapping[int, tuple[int, str]]
    ) -> None:
        self.member = member
        self._producer = producer
        self._group = group
        self._topic = topic
        self._offsets = offsets

    @override
    def build(self, request_struct_class: type[RequestStruct]) -> RequestStruct:
        no_tags: dict[int, bytes] = {}
        partitions = [(at, offset, -1, note, no_tags) for at, (offset, note) in sorted(self._offsets.items())]
        return request_struct_class(
            self._producer.transactional_id, self._group, self._producer.producer_id, self._producer.epoch,
            self.member.generation, self.member.member_id, None,
            [(self._topic, partitions, no_tags)], no_tags,
        )  # fmt: skip


def codes_of(response: Any) -> dict[int, int]:
    """The error code of each partition in the answer to a commit for one topic."""
    return {each["partition"]: each["error_code"] for at in response.to_object()["topics"] for each in at["partitions"]}


# --- the producers of a partition -------------------------------------------------------------------------------------


class DescribeProducersResponse_v0(Response):  # type: ignore[misc]  # noqa: N801 - named as the client names them
    """The producers that the leader of a partition remembers; -1 as the first offset is no open transaction."""

    API_KEY = 61
    API_VERSION = 0
    SCHEMA = _schema(
        throttle_time_ms=Int32,
        topics=_array_of(
            topic=_TEXT,
            partitions=_array_of(
                partition=Int32,
                error_code=Int16,
                error_message=_TEXT,
                producers=_array_of(
                    producer_id=Int64,
                    producer_epoch=Int32,
                    last_sequence=Int32,
                    last_timestamp=Int64,
                    coordinator_epoch=Int32,
                    first_offset=Int64,
                ),
            ),
        ),
    )


class DescribeProducersRequest_v0(RequestStruct):  # type: ignore[misc]  # noqa: N801 - as above
    """The only version; it needs READ on the topic."""

    API_KEY = 61
    API_VERSION = 0
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = DescribeProducersResponse_v0
    SCHEMA = _schema(topics=_array_of(topic=_TEXT, partitions=CompactArray(Int32)))


class ProducersRequest(Request[DescribeProducersRequest_v0]):  # type: ignore[misc]
    """Which producers write to a partition; to be asked of its leader."""

    API_KEY = 61

    def __init__(self, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = partition

    @override
    def build(self, request_struct_class: type[RequestStruct]) -> RequestStruct:
        no_tags: dict[int, bytes] = {}
        return request_struct_class([(self._topic, [self._partition], no_tags)], no_tags)


# --- the members of a group of the newer protocol (KIP-848) -----------------------------------------------------------

_ASSIGNED = _schema(partitions=_array_of(topic_id=Uuid, topic=_TEXT, partitions=CompactArray(Int32)))
_MEMBER_V0 = {
    "member_id": _TEXT,
    "instance_id": _TEXT,
    "rack_id": _TEXT,
    "member_epoch": Int32,
    "client_id": _TEXT,
    "client_host": _TEXT,
    "topics": CompactArray(_TEXT),
    "topic_regex": _TEXT,
    "assignment": _ASSIGNED,
    "target_assignment": _ASSIGNED,
}


def _described_groups(**member: Any) -> Schema:
    return _schema(
        throttle_time_ms=Int32,
        groups=_array_of(
            error_code=Int16,
            error_message=_TEXT,
            group=_TEXT,
            state=_TEXT,
            group_epoch=Int32,
            assignment_epoch=Int32,
            assignor=_TEXT,
            members=_array_of(**member),
            authorized_operations=Int32,
        ),
    )


class ConsumerGroupDescribeResponse_v0(Response):  # type: ignore[misc]  # noqa: N801 - named as the client names them
    """It does not say which protocol a member speaks."""

    API_KEY = 69
    API_VERSION = 0
    SCHEMA = _described_groups(**_MEMBER_V0)


class ConsumerGroupDescribeResponse_v1(Response):  # type: ignore[misc]  # noqa: N801 - as above
    """Since Kafka 4.0: each member has a type, 0 for the classic protocol and 1 for the newer one."""

    API_KEY = 69
    API_VERSION = 1
    SCHEMA = _described_groups(**_MEMBER_V0, member_type=Int8)


class ConsumerGroupDescribeRequest_v0(RequestStruct):  # type: ignore[misc]  # noqa: N801 - as above
    """Groups by name."""

    API_KEY = 69
    API_VERSION = 0
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = ConsumerGroupDescribeResponse_v0
    SCHEMA = _schema(groups=CompactArray(_TEXT), include_authorized_operations=Boolean)


class ConsumerGroupDescribeRequest_v1(RequestStruct):  # type: ignore[misc]  # noqa: N801 - as above
    """The same question, for the fuller answer."""

    API_KEY = 69
    API_VERSION = 1
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = ConsumerGroupDescribeResponse_v1
    SCHEMA = ConsumerGroupDescribeRequest_v0.SCHEMA


class ConsumerGroupDescribeRequest(Request[ConsumerGroupDescribeRequest_v0 | ConsumerGroupDescribeRequest_v1]):  # type: ignore[misc]
    """Who is in a group of the newer protocol."""

    API_KEY = 69

    def __init__(self, group: str) -> None:
        self._group = group

    @override
    def build(self, request_struct_class: type[RequestStruct]) -> RequestStruct:
        no_tags: dict[int, bytes] = {}
        return request_struct_class([self._group], False, no_tags)  # noqa: FBT003 - the protocol's fields in order
