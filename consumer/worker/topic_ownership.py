"""Who owns the topics: one group owns its `scored`, `state`, `result` and `report` (contract.md, "Ownership")."""

import asyncio
import time
from collections.abc import Mapping, Sequence

from consumer.errors import ConfigurationError, SafeError, first_of
from consumer.kafka.cluster import Cluster
from consumer.kafka.connection import Connection
from consumer.kafka.reader import read_tail
from consumer.kafka.topics import Name, topic_specs
from consumer.settings import Settings
from consumer.text import count_of
from consumer.wire.headers import ce_source, text_of
from consumer.wire.record import Record
from consumer.worker.group_state import GroupState

_RECOVERING_SECONDS = 6.0
"""After all brokers were down, a coordinator that is only behind may say for seconds that there is no offset."""

_ASK_AGAIN_SECONDS = 0.5


async def check_ownership(
    connection: Connection, settings: Settings, partitions: Mapping[Name, int], state: GroupState
) -> None:
    """Raise ConfigurationError if another group wrote the last record of one of our topics; raises Transient."""
    specs = topic_specs(settings)
    for name in ("state", "result", "report"):
        if name not in partitions:
            continue
        spec = specs[name]
        if name == "state":
            owners = {each.group for each in state.owners}
            _check_counts(state, partitions["scored"], specs["scored"].name)
        else:
            owners = {_event_owner(record) for record in await _tails(connection, spec.name, partitions[name])}
        others = owners - {settings.kafka_group_id, None}
        if others:
            raise ConfigurationError(
                f"{spec.name} belongs to group {sorted(map(str, others))[0]}, but this worker is in group "
                f"{settings.kafka_group_id}: two groups cannot share a topic; set SAFE_V0_KAFKA_GROUP_ID to that "
                f"group, or {spec.variable} to another topic"
            )


def _check_counts(state: GroupState, partitions: int, topic: str) -> None:
    """With another count, keys would be in other partitions than their state."""
    for row in state.progress:
        if row.partitions != partitions:
            raise ConfigurationError(
                f"the state was written for {count_of(row.partitions, 'partition')} of {topic}, which now has "
                f"{partitions}: create {topic} with {count_of(row.partitions, 'partition')} again, or start a new "
                "group on new topics"
            )


def is_guarded(settings: Settings, state: GroupState) -> bool:
    """Whether the groups take workers of this version alone (contract.md, "Ownership").

    If no setting says so, the state does: its owners write it there with every commit and take-over, where no stranger
    writes. A group without any state is new. Offsets would prove nothing: a stranger commits them too.
    """
    if settings.kafka_group_guard is not None:
        return settings.kafka_group_guard
    return state.is_new or state.says_guarded


async def check_input_offsets(
    cluster: Cluster, settings: Settings, partitions: Mapping[Name, int], state: GroupState
) -> None:
    """Raise ConfigurationError if the group has scored before, but no input partition has an offset any more.

    The state must be read before: an offset is committed before the aggregator can read what was scored. It says more
    than that something was written: a mark, or the progress past the mark in `scored` by which a scorer learns the
    time, comes before anything is scored.
    """
    if settings.input_start is not None or not state.inputs:
        return
    deadline = time.monotonic() + _RECOVERING_SECONDS
    while not await _input_offsets(cluster, settings, partitions):
        if time.monotonic() >= deadline:
            raise ConfigurationError(
                f"group {settings.kafka_group_id} has state, but no committed offset on {settings.input_topic}: its "
                "offsets have expired or were deleted. Set SAFE_V0_INPUT_START=earliest to read everything again, or "
                "latest to go on from now"
            )
        await asyncio.sleep(_ASK_AGAIN_SECONDS)


async def input_start(cluster: Cluster, settings: Settings, partitions: Mapping[Name, int]) -> str:
    """Where input partitions without an offset begin; raises Transient.

    SAFE_V0_INPUT_START=latest is for a group without any offset. Later, a partition without one was added, or has not
    had a record yet: what it holds now was never read.
    """
    if settings.input_start != "latest" or await _input_offsets(cluster, settings, partitions):
        return "earliest"
    return "latest"


async def _input_offsets(cluster: Cluster, settings: Settings, partitions: Mapping[Name, int]) -> Mapping[int, int]:
    return await cluster.committed_offsets(settings.kafka_group_id, settings.input_topic, range(partitions["input"]))


async def _tails(connection: Connection, topic: str, partitions: int) -> Sequence[Record]:
    try:
        async with asyncio.TaskGroup() as reading:  # if one fails, the others are cancelled
            tails = [reading.create_task(read_tail(connection, topic, partition)) for partition in range(partitions)]
    except* SafeError as group:
        raise first_of(group) from None
    return [record for tail in tails for record in tail.result()]


def _event_owner(record: Record) -> str | None:
    source = text_of(record.headers, "ce_source")
    return None if source is None else source.removeprefix(ce_source(""))
