"""The administrative client: which topics and brokers there are, what a group has committed, creating topics."""

import asyncio
import contextlib
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
from consumer.kafka.aiokafka_internals import (
    ends_of,
    metadata_of,
    nodes_of,
    producers_of,
    refresh_metadata,
    request_versions_of,
)
from consumer.kafka.broker_errors import words_of
from consumer.kafka.connection import Connection
from consumer.kafka.failures import CALL_SECONDS, FAILURES, answered, closed, translated
from consumer.kafka.group_offsets import Committed
from consumer.kafka.protocol import NO_ID
from consumer.kafka.reachability import reach
from consumer.text import named

_RETRY_SECONDS = 0.05
_NODE_SECONDS = 2.0
"""How long to wait for a broker that is asked by itself."""

_SETTINGS_SECONDS = 3.0
"""How long to ask again for settings while a broker is down, or behind the others."""

_NODES_ASKED = 3
"""At most this many brokers of a large cluster are asked, so that each has time to answer."""

_NO_LEADER = -1
_KAFKA_DEFAULT_MESSAGE_BYTES = 1_048_588


Place = tuple[str, int]
"""A topic and a partition of it."""


class Ends(NamedTuple):
    """Where a partition ends: `stable` is where its first open transaction begins, `log` the offset after all records.

    A reader of committed records gets as far as `stable` (the last stable offset). Without an open transaction both are
    the same, the high watermark.
    """

    stable: int
    log: int

    @property
    def is_open(self) -> bool:
        """Whether there are records that such a reader does not get yet."""
        return self.stable < self.log


class OpenTransaction(NamedTuple):
    """Who has a transaction open in a partition, and where it begins."""

    producer_id: int
    producer_epoch: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as the cluster describes it.

    If the broker does not report them, `settings` is empty and `topic_id` is None. The id distinguishes a topic from an
    earlier one of the same name.
    """

    name: str
    partitions: int
    replication_factor: int
    settings: Mapping[str, str]
    topic_id: str | None = None

    @property
    def max_message_bytes(self) -> int:
        """The largest batch of records that the topic accepts; Kafka's default if the broker does not report it."""
        return int(self.settings.get("max.message.bytes", _KAFKA_DEFAULT_MESSAGE_BYTES))


@dataclass(frozen=True, slots=True)
class TopicsSeen:
    """What one broker reports about some topics; brokers learn of changes one after another.

    `partitions` is the number of partitions of each topic that exists, `leaderless` has the partitions without a
    leader. `refused` are topics that this user may not see. `brokers` are the brokers that are up, with their
    addresses; `holders` are the brokers that have a replica of these topics, up or not. `ids` distinguish a topic from
    an earlier one of the same name; older brokers do not report them. `replicas` is the replication factor of each
    topic that exists, the smallest one of its partitions.
    """

    partitions: Mapping[str, int]
    leaderless: Mapping[str, frozenset[int]]
    refused: frozenset[str]
    brokers: Mapping[int, str]
    holders: frozenset[int] = frozenset()
    ids: Mapping[str, str] = field(default_factory=dict)
    replicas: Mapping[str, int] = field(default_factory=dict)

    def lacks(self, topics: Sequence[str]) -> str | None:
        """What is still missing of these topics, in words; None if all that this user may see is there."""
        missing = [topic for topic in topics if topic not in self.partitions and topic not in self.refused]
        if missing:
            return f"does not know {named(missing)}"
        if self.leaderless:
            return f"knows no leader for {named(f'{topic}/{min(at)}' for topic, at in self.leaderless.items())}"
        return None


def _seen(metadata: Mapping[str, Any]) -> TopicsSeen:
    known = [topic for topic in metadata["topics"] if topic["error_code"] == 0]
    existing = {topic["topic"]: topic["partitions"] for topic in known if topic["partitions"]}
    leaderless = {
        name: frozenset(each["partition"] for each in partitions if each["leader"] == _NO_LEADER)
        for name, partitions in existing.items()
    }
    forbidden = TopicAuthorizationFailedError.errno
    ids = {topic["topic"]: topic.get("topic_id", NO_ID) for topic in known}
    return TopicsSeen(
        {name: len(partitions) for name, partitions in existing.items()},
        {name: partitions for name, partitions in leaderless.items() if partitions},
        frozenset(topic["topic"] for topic in metadata["topics"] if topic["error_code"] == forbidden),
        {broker["node_id"]: f"{broker['host']}:{broker['port']}" for broker in metadata["brokers"]},
        frozenset(node for partitions in existing.values() for each in partitions for node in each["replicas"]),
        {name: str(topic_id) for name, topic_id in ids.items() if topic_id != NO_ID},
        {name: min(len(each["replicas"]) for each in partitions) for name, partitions in existing.items()},
    )


def _leaders(metadata: Mapping[str, Any]) -> dict[Place, int]:
    """The leader of each partition that has one."""
    return {
        (topic["topic"], each["partition"]): each["leader"]
        for topic in metadata["topics"]
        for each in topic["partitions"]
        if each["leader"] != _NO_LEADER
    }


class Cluster:
    """An administrative client; every call raises Transient if the cluster does not answer in time."""

    def __init__(self, connection: Connection) -> None:
        self._options = connection.client()
        self._admin = AIOKafkaAdminClient(**self._options)

    async def connect(self) -> None:
        """Connect; raises Fatal if the settings are wrong, else Transient (see reachability.py), and says why."""
        await reach(self._options)
        await self.start()

    async def start(self) -> None:
        """Connect, the first time or after stop(); raises Transient if no broker answers, for whatever reason."""
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
        """Connect to the configured servers again: all brokers known by now may be down. Raises Transient.

        The client only asks the brokers that the last answer named. If that answer came from the only broker that was
        up, and this one goes down too, the client would never learn that the others are back.
        """
        await self.stop()
        await self.start()

    async def look(self, topics: Sequence[str], timeout_seconds: float = CALL_SECONDS) -> TopicsSeen:
        """What one broker reports about some topics; a cheap way to find out whether the cluster answers."""
        return _seen(await answered(self._first_answer(topics, timeout_seconds), "the topics", timeout_seconds))

    async def partition_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """The number of partitions of each topic that exists."""
        return (await self.look(topics)).partitions

    async def brokers_lacking(self, topics: Sequence[str]) -> dict[str, str]:
        """Ask every broker about some topics; returns what is missing, by broker, where something still is."""
        await answered(refresh_metadata(self._admin), "the cluster")
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

    async def request_versions(self) -> Mapping[str, Mapping[int, int]]:
        """The latest version of each request, by its number, that each broker which answers in time knows."""
        await answered(refresh_metadata(self._admin), "the cluster")
        nodes = nodes_of(self._admin)
        found = await asyncio.gather(*map(self._request_versions, nodes))
        return {
            f"broker {node} ({address})": versions
            for (node, address), versions in zip(nodes.items(), found, strict=True)
            if versions
        }

    async def _request_versions(self, node: int) -> Mapping[int, int]:
        try:
            async with asyncio.timeout(_NODE_SECONDS):
                return await request_versions_of(self._admin, node)
        except FAILURES:
            return {}

    async def _first_answer(self, topics: Sequence[str], timeout_seconds: float) -> dict[str, Any]:
        """Ask brokers one after another, in random order: one that is down or frozen must not stop the others."""
        known = list(nodes_of(self._admin))
        if not known:
            raise NodeNotReadyError("no broker is known")
        nodes = random.sample(known, min(_NODES_ASKED, len(known)))
        for node in nodes[:-1]:
            with contextlib.suppress(*FAILURES):
                async with asyncio.timeout(timeout_seconds / len(nodes)):
                    return await metadata_of(self._admin, topics, node)
        return await metadata_of(self._admin, topics, nodes[-1])

    async def ends(self, topics: Sequence[str], is_wanted: Callable[[Place], bool]) -> Mapping[Place, Ends]:
        """Where the partitions of some topics end that are wanted; without an answer of its leader, one is left out.

        Raises Transient where no broker knows the leaders.
        """
        metadata = await answered(self._first_answer(topics, CALL_SECONDS), "the topics")
        by_leader: defaultdict[int, list[Place]] = defaultdict(list)
        for place, leader in _leaders(metadata).items():
            if is_wanted(place):
                by_leader[leader].append(place)
        if not by_leader.keys() <= nodes_of(self._admin).keys():
            await answered(refresh_metadata(self._admin), "the cluster")
        found = await asyncio.gather(*(self._ends_at(leader, places) for leader, places in by_leader.items()))
        return {place: ends for answer in found for place, ends in answer.items()}

    async def _ends_at(self, leader: int, places: Sequence[Place]) -> Mapping[Place, Ends]:
        try:
            async with asyncio.timeout(_NODE_SECONDS):
                found = await ends_of(self._admin, places, leader)
        except FAILURES:
            return {}
        return {place: Ends(*ends) for place, ends in found.items()}

    async def open_transaction(self, place: Place, first_offset: int) -> OpenTransaction | None:
        """Whose transaction begins at this offset; None if the leader does not say, as before Kafka 3.0."""
        topic, partition = place
        try:
            async with asyncio.timeout(_NODE_SECONDS):
                leader = _leaders(await self._first_answer([topic], _NODE_SECONDS))[place]
                producers = await producers_of(self._admin, topic, partition, leader)
        except (*FAILURES, KeyError):
            return None
        open_ones = (
            OpenTransaction(each["producer_id"], each["producer_epoch"], each["first_offset"]) for each in producers
        )
        return next((each for each in open_ones if each.first_offset == first_offset), None)

    async def committed_offsets(self, group: str, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """The offsets that a group has committed (the next to read), by partition; without an offset, left out."""
        committed = await self.committed(group, topic, partitions)
        return {partition: each.offset for partition, each in committed.items()}

    async def committed(self, group: str, topic: str, partitions: Iterable[int]) -> dict[int, Committed]:
        """The same, with the note of each offset."""
        wanted = [TopicPartition(topic, partition) for partition in partitions]
        found = await answered(self._offsets(group, wanted), f"group {group}")
        return {
            where.partition: Committed(found[where].offset, found[where].metadata or "")
            for where in wanted
            if found[where].offset >= 0
        }

    async def _offsets(self, group: str, wanted: Sequence[TopicPartition]) -> Mapping[TopicPartition, Any]:
        """Ask until the answer has every partition.

        A coordinator that is loading or moving reports that in a field that aiokafka ignores, here and in the
        consumer's `committed()`. Its answer has no partitions, as if nothing had ever been committed.
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

    async def has_members(self, group: str) -> bool:
        """Whether a group has members at the moment; one of the newer protocol (KIP-848) always says no."""
        answers = await answered(self._admin.describe_consumer_groups([group]), f"group {group}")
        found = [each for answer in answers for each in answer.to_object()["groups"]]
        for each in found:
            if each["error_code"]:
                raise translated(for_code(each["error_code"])(), f"group {group}")
        return any(each["members"] for each in found)

    async def describe(self, topics: Sequence[str]) -> dict[str, TopicDescription]:
        """The topics that exist, with their settings."""
        seen = await self.look(topics)
        settings = await self._settings(list(seen.partitions)) if seen.partitions else {}
        return {
            name: TopicDescription(name, count, seen.replicas[name], settings.get(name, {}), seen.ids.get(name))
            for name, count in seen.partitions.items()
        }

    async def _settings(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        """The settings of topics that exist; asks again while a broker does not know one of them yet."""
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in topics]
        deadline = time.monotonic() + _SETTINGS_SECONDS
        found: dict[str, dict[str, str]] = {}
        while found.keys() < set(topics):
            try:
                answers = await answered(self._admin.describe_configs(resources), "the topics")
            except Fatal:
                break  # we may not read settings; the partition counts are what matters
            except Transient:
                answers = []  # a broker may not support the request at all
            described = [resource for answer in answers for resource in answer.resources]
            found |= {each[3]: {entry[0]: entry[1] for entry in each[4]} for each in described if each[0] == 0}
            behind = any(each[0] == UnknownTopicOrPartitionError.errno for each in described)
            if (described and not behind) or time.monotonic() >= deadline:
                break
            await asyncio.sleep(_RETRY_SECONDS)
        return found

    async def create(self, topic: str, partitions: int, replication_factor: int, settings: Mapping[str, str]) -> bool:
        """Create a topic; returns False if it already exists. Raises Fatal with the broker's reason."""
        request = NewTopic(topic, partitions, replication_factor, topic_configs=dict(settings))
        answer = await answered(self._admin.create_topics([request]), f"topic {topic}")
        for _name, code, *message in answer.topic_errors:
            error = for_code(code)
            if error is TopicAlreadyExistsError:
                return False
            if code != 0:
                told = str(message[0]).rstrip(". ") if message and message[0] else ""
                raise Fatal(f"topic {topic} cannot be created: {told or words_of(error())}")
        return True
