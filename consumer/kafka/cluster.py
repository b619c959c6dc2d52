"""What the cluster says of itself: topics, their settings, whether it answers at all."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from consumer.errors import Fatal, Transient
from consumer.kafka.connection import Connection

_CALL_TIMEOUT_SECONDS = 10.0
_UNKNOWN_TOPIC = 3


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as the cluster has it; `settings` may be empty where the broker does not tell."""

    name: str
    partitions: int
    settings: Mapping[str, str]


class Cluster:
    """An administrative client; raises Transient whenever the cluster does not answer in time."""

    def __init__(self, connection: Connection) -> None:
        self._admin = AIOKafkaAdminClient(**connection.client())

    async def start(self) -> None:
        """Connect; raises Transient if no broker answers."""
        try:
            await self._answered(self._admin.start())
        except Transient:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Close the connections."""
        closing = asyncio.ensure_future(self._admin.close())
        await asyncio.wait([closing], timeout=1.0)
        if not closing.done():
            closing.cancel()

    async def partition_counts(
        self, topics: Sequence[str], timeout_seconds: float = _CALL_TIMEOUT_SECONDS
    ) -> dict[str, int]:
        """Partitions of each topic that exists; a cheap question that also tells whether the cluster answers."""
        described = await self._answered(self._admin.describe_topics(list(topics)), timeout_seconds)
        return {
            topic["topic"]: len(topic["partitions"])
            for topic in described
            if topic["error_code"] == 0 and topic["partitions"]
        }

    async def committed_offsets(self, group: str, topic: str) -> dict[int, int]:
        """What a group has committed for a topic, by partition; partitions without an offset are left out."""
        offsets = await self._answered(self._admin.list_consumer_group_offsets(group))
        return {
            where.partition: entry.offset
            for where, entry in offsets.items()
            if where.topic == topic and entry.offset >= 0
        }

    async def describe(self, topics: Sequence[str]) -> dict[str, TopicDescription]:
        """Each topic that exists, with its settings."""
        counts = await self.partition_counts(topics)
        if not counts:
            return {}
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in counts]
        try:
            answers = await self._answered(self._admin.describe_configs(resources))
        except Transient:
            answers = ()  # a broker may not offer it, or not to us: partition counts are what matters
        settings = {
            resource[3]: {entry[0]: entry[1] for entry in resource[4]}
            for answer in answers
            for resource in answer.resources
            if resource[0] == 0
        }
        return {name: TopicDescription(name, count, settings.get(name, {})) for name, count in counts.items()}

    async def create(self, topic: str, partitions: int, replication_factor: int, settings: Mapping[str, str]) -> bool:
        """Create a topic; False if it is already there. Raises Fatal with the broker's reason."""
        request = NewTopic(topic, partitions, replication_factor, topic_configs=dict(settings))
        answer = await self._answered(self._admin.create_topics([request]))
        for _name, code, *message in answer.topic_errors:
            error = for_code(code)
            if error is TopicAlreadyExistsError:
                return False
            if code != 0:
                reason = message[0] if message and message[0] else error.__name__
                raise Fatal(f"topic {topic} cannot be created: {reason}")
        return True

    async def _answered(self, call: Awaitable[Any], timeout_seconds: float = _CALL_TIMEOUT_SECONDS) -> Any:
        try:
            async with asyncio.timeout(timeout_seconds):
                return await call
        except (KafkaError, OSError, TimeoutError, AttributeError, AssertionError) as error:
            # aiokafka's admin client trips over its own missing metadata while no broker is known.
            raise Transient(f"the cluster does not answer: {type(error).__name__}") from error
