"""`safe offsets accept`: says where to continue after something that is not SAFE has committed an offset."""

from collections.abc import Collection, Sequence

from consumer.errors import ConfigurationError
from consumer.exit_codes import EXIT_OK
from consumer.kafka.connection import Connection
from consumer.kafka.offset_writing import Change, replace_fenced
from consumer.kafka.topics import connected_cluster
from consumer.offsets.input_offsets import InputOffset, chosen, look, noted
from consumer.settings import Settings
from consumer.terminal import print_message

NOTHING_WAS_CHANGED = "Nothing was changed; add --execute to do it"


async def accept_offsets(
    settings: Settings, partitions: Collection[int], *, to_last_result: bool, execute: bool
) -> int:
    """Give each offset without a note a note of SAFE and return the exit code, 0; workers may run meanwhile.

    With `to_last_result`, the offset after the newest result takes its place. Raises ConfigurationError, Transient or
    Fatal.
    """
    found = await look(settings)
    offsets = chosen(found, partitions)
    changes = planned(settings.input_topic, offsets, named=bool(partitions), to_last_result=to_last_result)
    if not changes:
        print_message("there is nothing to accept: SAFE has committed every offset")
        return EXIT_OK
    if execute:
        await _carry_out(settings, changes, [each.partition for each in found])
    else:
        print(*changes, sep="\n")
        print_message(NOTHING_WAS_CHANGED)
    return EXIT_OK


async def _carry_out(settings: Settings, changes: Sequence[Change], partitions: Sequence[int]) -> None:
    connection = Connection.from_settings(settings)
    async with connected_cluster(settings) as cluster:
        for change in changes:
            await replace_fenced(connection, cluster, settings.kafka_group_id, change, partitions)
            print(change)


def planned(topic: str, offsets: Sequence[InputOffset], *, named: bool, to_last_result: bool) -> Sequence[Change]:
    """What is to be committed; raises ConfigurationError for a partition that is `named` but has a note."""
    noted = [each for each in offsets if not each.is_strange]
    if named and noted:
        raise ConfigurationError(
            f"partition {noted[0].partition} of {topic} has no offset that SAFE did not commit: leave it out. To score "
            "inputs again, use safe offsets reset"
        )
    return [_change(topic, each, to_last_result=to_last_result) for each in offsets if each.is_strange]


def _change(topic: str, each: InputOffset, *, to_last_result: bool) -> Change:
    assert each.committed is not None
    if not to_last_result:
        return Change(topic, each.partition, each.committed, noted(each.committed.offset))
    if each.scored_up_to is None:
        raise ConfigurationError(
            f"no result of partition {each.partition} of {topic} was found, so it is not known how far SAFE had read: "
            "choose an offset with safe offsets reset --to-offset, or accept the committed one"
        )
    return Change(topic, each.partition, each.committed, noted(each.scored_up_to))
