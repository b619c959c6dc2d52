"""Where a dead letter is sent again, and why some cannot be sent."""

from collections.abc import Mapping
from dataclasses import dataclass

from consumer.kafka.cluster import TopicDescription
from consumer.kafka.partitioner import partition_of_key
from consumer.kafka.publisher import Copy
from consumer.settings import Settings
from consumer.text import visible
from consumer.wire.dead_letter import Letter


@dataclass(frozen=True, slots=True)
class Targets:
    """The topics that dead letters of one group are sent to again, by the stage that wrote them and reads the topic."""

    group: str
    by_stage: Mapping[str, TopicDescription]

    @classmethod
    def of(cls, settings: Settings, described: Mapping[str, TopicDescription]) -> "Targets":
        """Read the settings; a topic that the cluster does not have is no target."""
        topics = {"scorer": settings.input_topic, "aggregator": settings.scored_topic}
        by_stage = {stage: described[topic] for stage, topic in topics.items() if topic in described}
        return cls(settings.kafka_group_id, by_stage)

    def warnings(self) -> list[str]:
        """What the user must know of the topics before anything is sent."""
        return [
            f"{topic.name} has message.timestamp.type=LogAppendTime: what is sent again gets the time of writing, so "
            "an output without generated_at replaces a newer one"
            for topic in self.by_stage.values()
            if _replaces_timestamps(topic)
        ]

    def objection(self, letter: Letter) -> str | None:
        """Why a letter cannot be sent again."""
        if letter.group != self.group:
            return f"the group {visible(letter.group)} wrote it: choose that group with --group-id"
        topic = self.by_stage.get(letter.stage)
        if topic is None:
            return f"its header safe.dlq.stage is {visible(letter.stage)}, which this version does not know"
        if topic.name != letter.source.topic:
            return f"it came from {visible(letter.source.topic)}, but the {letter.stage} reads {topic.name}"
        # The partition of a scored record decides which aggregator counts it; an input may go to any.
        if letter.stage == "aggregator" and not self.has_partition(letter):
            return f"{topic.name} has no partition {letter.source.partition} any more"
        return None

    def has_partition(self, letter: Letter) -> bool:
        """Whether the partition that a letter came from still exists."""
        return letter.source.partition < self.by_stage[letter.stage].partitions

    def is_expired(self, letter: Letter, now_ms: int) -> bool:
        """Whether the broker may remove a letter's copy at once; without a timestamp (-1) it counts as new there."""
        topic = self.by_stage[letter.stage]
        retention_ms = int(topic.settings.get("retention.ms", -1))
        has_limit = retention_ms >= 0 and not _replaces_timestamps(topic)
        return has_limit and 0 <= letter.timestamp < now_ms - retention_ms

    def copy(self, letter: Letter, value: bytes | None, now_ms: int) -> Copy:
        """The record as it came, for the partition that it came from; if that is gone, its key decides.

        It keeps its timestamp, which may be its event time, so that it never replaces a newer output; but none later
        than now, which a broker would refuse. A record without a timestamp (-1) stays without.
        """
        topic, record = self.by_stage[letter.stage], letter.record
        partition = letter.source.partition
        if not self.has_partition(letter):
            partition = partition_of_key(record.key, topic.partitions)
        timestamp = min(letter.timestamp, now_ms)
        return Copy(topic.name, partition, timestamp, record.key, value, letter.headers)


def _replaces_timestamps(topic: TopicDescription) -> bool:
    """Whether its broker gives each record a timestamp of its own."""
    return topic.settings.get("message.timestamp.type") == "LogAppendTime"
