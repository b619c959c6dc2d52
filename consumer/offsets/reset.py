"""`safe offsets reset`: has inputs scored again (a replay), or passes over some, from offsets with a note of SAFE."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from consumer.errors import ConfigurationError
from consumer.exit_codes import EXIT_OK
from consumer.kafka.connection import Connection
from consumer.kafka.offset_writing import Change, commit_without_members, fence_all, has_members
from consumer.kafka.reader import scanning
from consumer.kafka.topics import connected_cluster
from consumer.offsets.accept import NOTHING_WAS_CHANGED
from consumer.offsets.input_offsets import InputOffset, chosen, look, noted
from consumer.settings import Settings
from consumer.terminal import print_message


@dataclass(frozen=True, slots=True)
class Goal:
    """Where to continue: at the `earliest` or `latest` record, at an `offset`, or at the first record of a `time`.

    `value` is the offset, or the time in ms since 1970.
    """

    kind: Literal["earliest", "latest", "offset", "time"]
    value: int = 0


async def reset_offsets(settings: Settings, partitions: Collection[int], goal: Goal, *, execute: bool) -> int:
    """Print each change, carry it out if told so, and return the exit code, 0.

    Raises ConfigurationError, also if the group has members, Transient or Fatal.
    """
    offsets = await look(settings, scored=False)
    since = await _first_of_time(settings, goal.value, len(offsets)) if goal.kind == "time" else {}
    topic = settings.input_topic
    changes = [
        Change(topic, each.partition, each.committed, noted(target(each, goal, since)))
        for each in chosen(offsets, partitions)
    ]
    if execute:
        await _carry_out(settings, changes, [each.partition for each in offsets])
    for change in changes:
        print(change)
    if not execute:
        print_message(NOTHING_WAS_CHANGED)
    return EXIT_OK


async def _carry_out(settings: Settings, changes: Sequence[Change], partitions: Sequence[int]) -> None:
    connection, group, topic = Connection.from_settings(settings), settings.kafka_group_id, settings.input_topic
    wanted = {change.partition: change.after for change in changes}
    async with connected_cluster(settings) as cluster:
        if await cluster.has_members(group):
            raise has_members(group)
    if settings.delivery == "exactly_once":
        await fence_all(connection, group, topic, partitions)  # an owner may write with the id of any of its own
    await commit_without_members(connection, group, topic, wanted)  # refused if one has joined meanwhile


async def _first_of_time(settings: Settings, since_ms: int, partitions: int) -> dict[int, int]:
    async with scanning(Connection.from_settings(settings), settings.input_topic, partitions) as scan:
        return {span.partition: span.first for span in await scan.spans(since_ms)}


def target(each: InputOffset, goal: Goal, since: dict[int, int]) -> int:
    """The offset at which a partition is to continue; raises ConfigurationError if it does not have that offset."""
    match goal.kind:
        case "earliest":
            return each.first
        case "latest":
            return each.end
        case "time":
            return since[each.partition]
        case "offset":
            if not each.first <= goal.value <= each.end:
                raise ConfigurationError(
                    f"partition {each.partition} has the offsets {each.first} to {each.end}, not {goal.value}: choose "
                    "another one, or the partitions with --partition"
                )
            return goal.value
