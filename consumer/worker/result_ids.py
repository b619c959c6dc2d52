"""Whether the id of the input topic is part of the ids (ce_id) of results (contract.md, "Result").

Without it, a topic that was deleted and created again gives its records the offsets of earlier ones, and their results
the ids of earlier results. Versions before this one went by the name of the topic alone, and subscribers may rely on
it that a record which is scored again gets the same id. So the state decides, whose progress rows repeat which topic
was scored last, and how:

| the setting  | scored so far             | ids have                    | a topic that was created again |
|--------------|---------------------------|-----------------------------|--------------------------------|
| `topic_id`   | anything                  | the topic's id              | is another topic               |
| `topic_name` | anything                  | the name alone              | is refused                     |
| unset        | nothing: an installation  | the topic's id, if reported | –                              |
|              | that is new               |                             |                                |
| unset        | something, with the id    | the topic's id              | is another topic               |
| unset        | something, but without it | the name alone              | is refused                     |

A topic with another name is another topic in any case. A row without the name counts as one of this topic.
"""

from collections.abc import Collection
from typing import Literal

from consumer.errors import ConfigurationError, Transient
from consumer.kafka.cluster import Cluster
from consumer.kafka.protocol import spelled_id
from consumer.kafka.topics import Verified
from consumer.settings import Settings
from consumer.wire.changelog import InputTopic
from consumer.worker.group_state import GroupState

ResultIds = Literal["topic_name", "topic_id"]


async def input_topic(cluster: Cluster, settings: Settings, verified: Verified, state: GroupState) -> InputTopic:
    """The input topic as scored records name it, without an id if the brokers report none.

    Raises ConfigurationError if it was created again, and its results would get the ids of earlier ones, or some of its
    records might be skipped; Transient.
    """
    topic_id = verified.topic_ids.get("input")
    spelled = None if topic_id is None else spelled_id(topic_id)
    named = named_input_topic(settings.input_topic, spelled, settings.result_ids, state.inputs)
    if settings.input_start is None and was_created_again(named, state.inputs):
        partitions = range(verified.partitions["input"])
        if await cluster.committed_offsets(settings.kafka_group_id, settings.input_topic, partitions):
            raise ConfigurationError(
                f"{settings.input_topic} was deleted and created again, but group {settings.kafka_group_id} has "
                "offsets on it. A worker that was running meanwhile may have committed them: then the records before "
                "them were never scored. Delete the offsets, and set SAFE_V0_INPUT_START: 'Starting over' in "
                "docs/how-to/operate.md. If you have set them yourself with `safe offsets reset`, keep them, and set "
                "SAFE_V0_INPUT_START all the same: it does not change them"
            )
    return named


def was_created_again(topic: InputTopic, scored: Collection[InputTopic]) -> bool:
    """Whether other topics of that name were scored, but nothing yet of this one."""
    ids = _ids_of(topic.name, scored)
    return topic.id is not None and bool(ids) and topic.id not in ids


def _ids_of(name: str | None, scored: Collection[InputTopic]) -> set[str]:
    return {each.id for each in scored if each.id is not None and each.name in (name, None)}


def named_input_topic(
    topic: str, topic_id: str | None, chosen: ResultIds | None, scored: Collection[InputTopic]
) -> InputTopic:
    """Decide by the table above; `topic_id` is None if the brokers report none. Raises as input_topic() does."""
    by_name = InputTopic(topic_id, is_in_result_ids=False, name=topic)
    goes_on_with_ids = any(each.is_in_result_ids for each in scored)
    if chosen == "topic_id" or (chosen is None and (goes_on_with_ids or not scored)):
        if topic_id is not None:
            return InputTopic(topic_id, is_in_result_ids=True, name=topic)
        if chosen is None and not goes_on_with_ids:
            return by_name
        why = f"the ids of results have the id of {topic}, but the brokers do not report it"
        if chosen is None:
            raise Transient(why)
        raise ConfigurationError(f"{why}: Kafka before 2.8 cannot; SAFE_V0_RESULT_IDS=topic_name goes by its name")
    others = sorted(_ids_of(topic, scored) - {topic_id})
    if topic_id is not None and others:
        raise ConfigurationError(
            f"{topic} was deleted and created again: SAFE has scored records of the topic with the id {others[0]}, the "
            f"one there now has the id {topic_id}. Its results would get the ids (ce_id) of earlier results. Start "
            "over: 'Starting over' in docs/how-to/operate.md. Or set SAFE_V0_RESULT_IDS=topic_id: results then get ids "
            "that no earlier result has"
        )
    return by_name
