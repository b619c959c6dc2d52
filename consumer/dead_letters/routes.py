"""Where a dead letter goes when it is sent again, and why some cannot be."""

from collections.abc import Mapping
from dataclasses import dataclass

from consumer.kafka import Copy, TopicDescription, partition_of_key
from consumer.settings import Settings
from consumer.text import shown
from consumer.wire.dead_letter import Letter


@dataclass(frozen=True, slots=True)
class Route:
    """The topic that a stage reads.

    `stamps` tells that its broker gives each record a time of its own; what is older than `retention_ms` may go at any
    moment, None for never.
    """

    topic: str
    partitions: int
    keeps_partition: bool
    stamps: bool = False
    retention_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Routes:
    """The topics that dead letters of one group may go back to, by the stage that wrote them."""

    group: str
    by_stage: Mapping[str, Route]

    @classmethod
    def of(cls, settings: Settings, described: Mapping[str, TopicDescription]) -> "Routes":
        """Read the settings; a topic that the cluster does not have is no route."""
        topics = {"scorer": settings.input_topic, "aggregator": settings.scored_topic}
        return cls(
            settings.kafka_group_id,
            {
                stage: _route(described[topic], keeps_partition=stage == "aggregator")
                for stage, topic in topics.items()
                if topic in described
            },
        )

    @property
    def remarks(self) -> list[str]:
        """What must be known of the topics before sending again."""
        return [
            f"{route.topic} has message.timestamp.type=LogAppendTime: what is sent again gets a new time there, and "
            "where it has no generated_at it stands before outputs that are newer"
            for route in self.by_stage.values()
            if route.stamps
        ]

    def objection(self, letter: Letter) -> str | None:
        """Why a letter cannot be sent again."""
        if letter.group != self.group:
            return f"the group {shown(letter.group)} wrote it (--group-id)"
        route = self.by_stage.get(letter.stage)
        if route is None:
            return f"there is no topic for the stage {shown(letter.stage)} to read it from"
        if route.topic != letter.source.topic:
            return f"it came from {shown(letter.source.topic)}, and the {letter.stage} reads {route.topic}"
        if route.keeps_partition and letter.source.partition >= route.partitions:
            return f"{route.topic} has no partition {letter.source.partition} any more"
        return None

    def is_outlived(self, copy: Copy, now_ms: int) -> bool:
        """Whether the broker may remove a copy as soon as it has it; one without a time counts as new there."""
        keeps = [route.retention_ms for route in self.by_stage.values() if route.topic == copy.topic]
        return copy.timestamp >= 0 and any(ms is not None and copy.timestamp < now_ms - ms for ms in keeps)

    def copy(self, letter: Letter, value: bytes | None, now_ms: int) -> Copy:
        """The record as it came, to where it stood: another partition, by its key, only where that one is gone.

        It keeps its time, which may serve as event time, so that it never stands before a newer output; but no later
        than now, or a broker would refuse it. A record without a time (-1) stays without.
        """
        route, source = self.by_stage[letter.stage], letter.source
        is_there = source.partition < route.partitions
        return Copy(
            topic=route.topic,
            partition=source.partition if is_there else partition_of_key(letter.record.key, route.partitions),
            timestamp=min(letter.timestamp, now_ms),
            key=letter.record.key,
            value=value,
            headers=letter.headers,
        )


def _route(topic: TopicDescription, *, keeps_partition: bool) -> Route:
    stamps = topic.settings.get("message.timestamp.type") == "LogAppendTime"
    retention_ms = int(topic.settings.get("retention.ms", -1))
    return Route(
        topic.name, topic.partitions, keeps_partition, stamps, None if stamps or retention_ms < 0 else retention_ms
    )
