"""Who owns the topics: one group owns its `scored`, `state`, `result` and `report` (contract.md, "Ownership")."""

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence

from consumer.errors import ConfigurationError, SafeError, first_of
from consumer.kafka.cluster import Cluster
from consumer.kafka.connection import Connection
from consumer.kafka.reader import read_tail
from consumer.kafka.topics import Name, topic_specs
from consumer.settings import Settings
from consumer.text import count_of
from consumer.wire.changelog import ProgressRow
from consumer.wire.headers import Undecodable, ce_source, group_of, says_guarded, text_of
from consumer.wire.keys import MARK_KEY, PROGRESS_KEY
from consumer.wire.record import Record

_RECOVERING_SECONDS = 6.0
"""After all brokers were down, a coordinator that is only behind may say for seconds that there is no offset."""

_ASK_AGAIN_SECONDS = 0.5


async def check_ownership(connection: Connection, settings: Settings, partitions: Mapping[Name, int]) -> None:
    """Raise ConfigurationError if another group wrote the last record of one of our topics; raises Transient."""
    specs = topic_specs(settings)
    for name in ("state", "result", "report"):
        if name not in partitions:
            continue
        spec = specs[name]
        tails = await _tails(connection, spec.name, partitions[name])
        owners = {group_of(record.headers) if name == "state" else _event_owner(record) for record in tails}
        if name == "state":
            _check_counts(tails, partitions["scored"], specs["scored"].name)
        others = owners - {settings.kafka_group_id, None}
        if others:
            raise ConfigurationError(
                f"{spec.name} belongs to group {sorted(map(str, others))[0]}, but this worker is in group "
                f"{settings.kafka_group_id}: two groups cannot share a topic; set SAFE_V0_KAFKA_GROUP_ID to that "
                f"group, or {spec.variable} to another topic"
            )


def _check_counts(state_tails: Sequence[Record], partitions: int, topic: str) -> None:
    """With another count, keys would be in other partitions than their state."""
    for record in state_tails:
        if record.key == PROGRESS_KEY and record.value is not None:
            with contextlib.suppress(Undecodable):  # the restore reports it
                written_for = ProgressRow.decode(record.value).partitions
                if written_for != partitions:
                    raise ConfigurationError(
                        f"the state was written for {count_of(written_for, 'partition')} of {topic}, which now has "
                        f"{partitions}: create {topic} with {count_of(written_for, 'partition')} again, or start a new "
                        "group on new topics"
                    )


async def is_guarded(connection: Connection, settings: Settings, partitions: Mapping[Name, int]) -> bool:
    """Whether the groups take workers of this version alone (contract.md, "Ownership"); raises Transient.

    If no setting says so, the state does: its owners write it there with every commit and take-over, where no stranger
    writes. A group without any state is new. Offsets would prove nothing: a stranger commits them too.
    """
    if settings.kafka_group_guard is not None:
        return settings.kafka_group_guard
    tails = await _tails(connection, settings.state_topic, partitions["state"])
    written = {record.partition: record for record in tails if record.key in (MARK_KEY, PROGRESS_KEY)}  # the last ones
    return not tails or any(says_guarded(record.headers) for record in written.values())


async def check_input_offsets(
    connection: Connection, cluster: Cluster, settings: Settings, partitions: Mapping[Name, int]
) -> None:
    """Raise ConfigurationError if the group has scored before, but no input partition has an offset any more."""
    if settings.input_start is not None:
        return
    # The state is read first: an offset is committed before the aggregator can read what was scored.
    tails = await _tails(connection, settings.state_topic, partitions["state"])
    # What is written before anything was scored proves nothing: the mark of a partition that is taken up, and the
    # progress past the mark in `scored` by which a scorer learns the time.
    scored = (record for record in tails if record.key not in {MARK_KEY, PROGRESS_KEY})
    if not any(group_of(record.headers) == settings.kafka_group_id for record in scored):
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
