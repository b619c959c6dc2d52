"""Whether the id of the input topic is part of the ids (ce_id) of results (contract.md, "Result").

Without it, a topic that was deleted and created again gives its records the offsets of earlier ones, and their results
the ids of earlier results. Versions before this one went by the name of the topic alone, and subscribers may rely on
it that a record which is scored again gets the same id. So the state decides, whose progress rows repeat which topic
was scored last, and how:

| the setting  | progress rows            | ids have                    | a topic that was created again |
|--------------|--------------------------|-----------------------------|--------------------------------|
| `topic_id`   | any                      | the topic's id              | is another topic               |
| `topic_name` | any                      | the name alone              | is refused                     |
| unset        | none: a new installation | the topic's id, if reported | –                              |
| unset        | one with the id          | the topic's id              | is another topic               |
| unset        | others                   | the name alone              | is refused                     |
"""

import asyncio
import contextlib
from collections.abc import Collection, Sequence
from typing import Literal

from consumer.errors import ConfigurationError, SafeError, Transient, first_of
from consumer.kafka.cluster import Cluster
from consumer.kafka.connection import Connection
from consumer.kafka.protocol import spelled_id
from consumer.kafka.reader import read_last
from consumer.kafka.topics import Verified
from consumer.settings import Settings
from consumer.wire.changelog import InputTopic, ProgressRow
from consumer.wire.headers import Undecodable
from consumer.wire.keys import PROGRESS_KEY

ResultIds = Literal["topic_name", "topic_id"]


async def input_topic(
    connection: Connection, cluster: Cluster, settings: Settings, verified: Verified
) -> InputTopic | None:
    """The input topic as scored records name it, None if the brokers report no ids.

    Raises ConfigurationError if it was created again, and its results would get the ids of earlier ones, or some of its
    records might be skipped; Transient.
    """
    rows = await _progress_rows(connection, settings.state_topic, verified.partitions["state"])
    topic_id = verified.topic_ids.get("input")
    spelled = None if topic_id is None else spelled_id(topic_id)
    named = named_input_topic(settings.input_topic, spelled, settings.result_ids, rows)
    if named is not None and settings.input_start is None and was_created_again(named, rows):
        partitions = range(verified.partitions["input"])
        if await cluster.committed_offsets(settings.kafka_group_id, settings.input_topic, partitions):
            raise ConfigurationError(
                f"{settings.input_topic} was deleted and created again, but group {settings.kafka_group_id} has "
                "offsets on it. A worker that was running meanwhile may have committed them: then the records before "
                "them were never scored. Delete the offsets, and set SAFE_V0_INPUT_START: 'Starting over' in "
                "docs/operate.md"
            )
    return named


def was_created_again(topic: InputTopic, rows: Collection[ProgressRow]) -> bool:
    """Whether other topics of that name were scored, but nothing yet of this one."""
    scored = {row.input.id for row in rows if row.input is not None}
    return bool(scored) and topic.id not in scored


def named_input_topic(
    topic: str, topic_id: str | None, chosen: ResultIds | None, rows: Collection[ProgressRow]
) -> InputTopic | None:
    """Decide by the table above; `topic_id` is None if the brokers report none. Raises as input_topic() does."""
    scored = [row.input for row in rows if row.input is not None]
    goes_on_with_ids = any(each.is_in_result_ids for each in scored)
    if chosen == "topic_id" or (chosen is None and (goes_on_with_ids or not rows)):
        if topic_id is not None:
            return InputTopic(topic_id, is_in_result_ids=True)
        if chosen is None and not goes_on_with_ids:
            return None
        why = f"the ids of results have the id of {topic}, but the brokers do not report it"
        if chosen is None:
            raise Transient(why)
        raise ConfigurationError(f"{why}: Kafka before 2.8 cannot; SAFE_V0_RESULT_IDS=topic_name goes by its name")
    if topic_id is None:
        return None
    others = sorted({each.id for each in scored} - {topic_id})
    if others:
        raise ConfigurationError(
            f"{topic} was deleted and created again: SAFE has scored records of the topic with the id {others[0]}, the "
            f"one there now has the id {topic_id}. Its results would get the ids (ce_id) of earlier results. Start "
            "over: 'Starting over' in docs/operate.md. Or set SAFE_V0_RESULT_IDS=topic_id: results then get ids that "
            "no earlier result has"
        )
    return InputTopic(topic_id, is_in_result_ids=False)


async def _progress_rows(connection: Connection, state_topic: str, partitions: int) -> Sequence[ProgressRow]:
    try:
        async with asyncio.TaskGroup() as reading:  # if one fails, the others are cancelled
            rows = [
                reading.create_task(read_last(connection, state_topic, partition, PROGRESS_KEY))
                for partition in range(partitions)
            ]
    except* SafeError as group:
        raise first_of(group) from None
    found = []
    for row in rows:
        record = row.result()
        if record is not None and record.value is not None:
            with contextlib.suppress(Undecodable):  # the restore reports it
                found.append(ProgressRow.decode(record.value))
    return found
