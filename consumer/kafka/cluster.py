"""What the cluster says of itself: topics, their settings, whether it answers at all."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from consumer.errors import Fatal, Transient
from consumer.kafka.connection import Connection
from consumer.kafka.failures import CALL_SECONDS, answered, closed
from consumer.kafka.internals import topics_metadata

_RETRY_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as the cluster has it; `settings` may be empty where the broker does not tell."""

    name: str
    partitions: int
    replication_factor: int
    settings: Mapping[str, str]


class Cluster:
    """An administrative client; raises Transient whenever the cluster does not answer in time."""

    def __init__(self, connection: Connection) -> None:
        self._admin = AIOKafkaAdminClient(**connection.client())

    async def start(self) -> None:
        """Connect; raises Transient if no broker answers."""
        try:
            await answered(self._admin.start(), "the cluster")
        except (Fatal, Transient):
            await self.stop()
            raise

    async def stop(self) -> None:
        """Close the connections."""
        await closed(self._admin.close(), 1.0)

    async def partition_counts(self, topics: Sequence[str], timeout_seconds: float = CALL_SECONDS) -> dict[str, int]:
        """Partitions of each topic that exists; a cheap question that also tells whether the cluster answers."""
        return {name: len(partitions) for name, partitions in (await self._existing(topics, timeout_seconds)).items()}

    async def _existing(self, topics: Sequence[str], timeout_seconds: float = CALL_SECONDS) -> dict[str, list[Any]]:
        described = await answered(topics_metadata(self._admin, topics), "the topics", timeout_seconds)
        return {
            topic["topic"]: topic["partitions"]
            for topic in described
            if topic["error_code"] == 0 and topic["partitions"]
        }

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
        existing = await self._existing(topics)
        if not existing:
            return {}
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in existing]
        try:
            answers = await answered(self._admin.describe_configs(resources), "the topics")
        except (Fatal, Transient):
            answers = []  # a broker may not offer it, or not to us: partition counts are what matters
        settings = {
            resource[3]: {entry[0]: entry[1] for entry in resource[4]}
            for answer in answers
            for resource in answer.resources
            if resource[0] == 0
        }
        return {
            name: TopicDescription(
                name,
                len(partitions),
                min(len(partition["replicas"]) for partition in partitions),
                settings.get(name, {}),
            )
            for name, partitions in existing.items()
        }

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
