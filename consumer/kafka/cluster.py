"""What the cluster says of itself: topics, their settings, whether it answers at all."""

import asyncio
import contextlib
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    KafkaError,
    NodeNotReadyError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)

from consumer.errors import Fatal, Transient
from consumer.kafka.connection import Connection
from consumer.kafka.failures import CALL_SECONDS, FAILURES, answered, closed
from consumer.kafka.internals import find_nodes, metadata_of, nodes_of
from consumer.kafka.protocol import NO_ID
from consumer.kafka.reach import reach
from consumer.text import named

_RETRY_SECONDS = 0.05
_NODE_SECONDS = 2.0
"""How long one node is waited for that is asked on its own."""

_SETTINGS_SECONDS = 3.0
"""How long settings are asked for again where one broker is down, or behind the others."""

_NODES_ASKED = 3
"""Of a large cluster no more: each must have time to let us in."""

_NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as the cluster has it; `settings` may be empty, and `topic_id` None, where the broker does not tell.

    The id tells a topic from an earlier one of the same name.
    """

    name: str
    partitions: int
    replication_factor: int
    settings: Mapping[str, str]
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class TopicsSeen:
    """What one broker says of some topics: brokers learn of changes one after the other.

    `partitions` counts those of each topic that exists, `leaderless` names those without a leader; `refused` are topics
    that this user may not see. `brokers` are those that are up, with their addresses, and `holders` those that hold a
    replica of these topics, up or not. `ids` tell a topic from an earlier one of the same name; older brokers do not
    say them.
    """

    partitions: Mapping[str, int]
    leaderless: Mapping[str, frozenset[int]]
    refused: frozenset[str]
    brokers: Mapping[int, str]
    holders: frozenset[int] = frozenset()
    ids: Mapping[str, str] = field(default_factory=dict)

    def lacks(self, topics: Sequence[str]) -> str | None:
        """What is not there yet of these topics, in words; None if all is that this user may see."""
        missing = [topic for topic in topics if topic not in self.partitions and topic not in self.refused]
        if missing:
            return f"does not know {named(missing)}"
        if self.leaderless:
            return f"knows no leader for {named(f'{topic}/{min(at)}' for topic, at in self.leaderless.items())}"
        return None


def _seen(metadata: Mapping[str, Any]) -> TopicsSeen:
    existing = _existing(metadata)
    leaderless = {
        name: frozenset(each["partition"] for each in partitions if each["leader"] == _NO_LEADER)
        for name, partitions in existing.items()
    }
    return TopicsSeen(
        {name: len(partitions) for name, partitions in existing.items()},
        {name: partitions for name, partitions in leaderless.items() if partitions},
        frozenset(
            topic["topic"] for topic in metadata["topics"] if topic["error_code"] == TopicAuthorizationFailedError.errno
        ),
        {broker["node_id"]: f"{broker['host']}:{broker['port']}" for broker in metadata["brokers"]},
        frozenset(node for partitions in existing.values() for each in partitions for node in each["replicas"]),
        _ids(metadata),
    )


def _ids(metadata: Mapping[str, Any]) -> dict[str, str]:
    told = {topic["topic"]: topic.get("topic_id", NO_ID) for topic in metadata["topics"] if topic["error_code"] == 0}
    return {name: str(topic_id) for name, topic_id in told.items() if topic_id != NO_ID}


def _existing(metadata: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {
        topic["topic"]: topic["partitions"]
        for topic in metadata["topics"]
        if topic["error_code"] == 0 and topic["partitions"]
    }


class Cluster:
    """An administrative client; raises Transient whenever the cluster does not answer in time."""

    def __init__(self, connection: Connection) -> None:
        self._options = connection.client()
        self._admin = AIOKafkaAdminClient(**self._options)

    async def connect(self) -> None:
        """Start, and say why that fails: Fatal where the settings are at fault, else Transient (see reach.py)."""
        await reach(self._options)
        await self.start()

    async def start(self) -> None:
        """Connect, also once more after stop(); raises Transient if no broker answers, whatever the reason."""
        self._admin = AIOKafkaAdminClient(**self._options)
        try:
            await answered(self._admin.start(), "the cluster")
        except (Fatal, Transient):
            await self.stop()
            raise

    async def stop(self) -> None:
        """Close the connections."""
        await closed(self._admin.close(), 1.0)

    async def start_again(self) -> None:
        """Ask the servers that we were told of, as at first: all brokers known by now may be away. Raises Transient.

        The client keeps asking the brokers of its last answer alone. Where that was given while all others were down,
        and then the one that gave it goes, it would never hear that they are back.
        """
        await self.stop()
        await self.start()

    async def look(self, topics: Sequence[str], timeout_seconds: float = CALL_SECONDS) -> TopicsSeen:
        """What a broker says of some topics; a cheap question that also tells whether the cluster answers."""
        return _seen(await self._metadata(topics, timeout_seconds))

    async def partition_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """Partitions of each topic that exists."""
        return (await self.look(topics)).partitions

    async def lacking(self, topics: Sequence[str]) -> dict[str, str]:
        """Ask each broker for some topics: which of them do not have them yet with all leaders, and what they lack."""
        await answered(find_nodes(self._admin), "the cluster")
        nodes = nodes_of(self._admin)
        found = await asyncio.gather(*(self._lacking(topics, node) for node in nodes))
        labels = [f"broker {node} ({address})" for node, address in nodes.items()]
        return {label: lack for label, lack in zip(labels, found, strict=True) if lack is not None}

    async def _lacking(self, topics: Sequence[str], node: int) -> str | None:
        try:
            async with asyncio.timeout(_NODE_SECONDS):
                return _seen(await metadata_of(self._admin, topics, node)).lacks(topics)
        except FAILURES:
            return "does not answer"

    async def _metadata(self, topics: Sequence[str], timeout_seconds: float) -> dict[str, Any]:
        return await answered(self._first_answer(topics, timeout_seconds), "the topics", timeout_seconds)

    async def _first_answer(self, topics: Sequence[str], timeout_seconds: float) -> dict[str, Any]:
        """Ask one broker after the other, in any order: one that is down or frozen must not speak for the cluster."""
        known = list(nodes_of(self._admin))
        if not known:
            raise NodeNotReadyError("no broker is known")
        nodes = random.sample(known, min(_NODES_ASKED, len(known)))
        for node in nodes[:-1]:
            with contextlib.suppress(*FAILURES):
                async with asyncio.timeout(timeout_seconds / len(nodes)):
                    return await metadata_of(self._admin, topics, node)
        return await metadata_of(self._admin, topics, nodes[-1])

    async def committed_offsets(self, group: str, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """What a group has committed (the next offset to read), by partition; those without an offset are left out."""
        wanted = [TopicPartition(topic, partition) for partition in partitions]
        offsets = await answered(self._offsets(group, wanted), f"group {group}")
        return {where.partition: offsets[where].offset for where in wanted if offsets[where].offset >= 0}

    async def _offsets(self, group: str, wanted: Sequence[TopicPartition]) -> Mapping[TopicPartition, Any]:
        """Ask until every partition is answered for.

        A coordinator that is loading or moving says so in a place where aiokafka does not look, the consumer's
        `committed()` no more than this client: that answer names no partition, as if nothing had ever been committed.
        """
        while True:
            try:
                offsets: Mapping[TopicPartition, Any] = await self._admin.list_consumer_group_offsets(
                    group, partitions=list(wanted)
                )
            except KafkaError as error:
                if not error.retriable:
                    raise
            else:
                if offsets.keys() >= set(wanted):
                    return offsets
            await asyncio.sleep(_RETRY_SECONDS)

    async def describe(self, topics: Sequence[str]) -> dict[str, TopicDescription]:
        """Each topic that exists, with its settings."""
        metadata = await self._metadata(topics, CALL_SECONDS)
        existing, ids = _existing(metadata), _ids(metadata)
        settings = await self._settings(list(existing)) if existing else {}
        return {
            name: TopicDescription(
                name,
                len(partitions),
                min(len(partition["replicas"]) for partition in partitions),
                settings.get(name, {}),
                ids.get(name),
            )
            for name, partitions in existing.items()
        }

    async def _settings(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        """The settings of topics that exist: a broker that does not know of one yet is not believed at once."""
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in topics]
        deadline = time.monotonic() + _SETTINGS_SECONDS
        found: dict[str, dict[str, str]] = {}
        while found.keys() < set(topics):
            try:
                answers = await answered(self._admin.describe_configs(resources), "the topics")
            except Fatal:
                break  # not for us: partition counts are what matters
            except Transient:
                answers = []  # a broker may not offer it at all
            described = [resource for answer in answers for resource in answer.resources]
            found |= {each[3]: {entry[0]: entry[1] for entry in each[4]} for each in described if each[0] == 0}
            behind = any(each[0] == UnknownTopicOrPartitionError.errno for each in described)
            if (described and not behind) or time.monotonic() >= deadline:
                break
            await asyncio.sleep(_RETRY_SECONDS)
        return found

    async def create(self, topic: str, partitions: int, replication_factor: int, settings: Mapping[str, str]) -> bool:
        """Create a topic; False if it is already there. Raises Fatal with the broker's reason."""
        request = NewTopic(topic, partitions, replication_factor, topic_configs=dict(settings))
        answer = await answered(self._admin.create_topics([request]), f"topic {topic}")
        for _name, code, *message in answer.topic_errors:
            error = for_code(code)
            if error is TopicAlreadyExistsError:
                return False
            if code != 0:
                reason = message[0] if message and message[0] else error.__name__
                raise Fatal(f"topic {topic} cannot be created: {reason}")
        return True
