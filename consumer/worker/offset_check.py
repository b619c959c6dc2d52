"""Whether the state and the group's offset belong together, as they must (contract.md, "Take-over")."""

from consumer.errors import Contradiction, Fatal
from consumer.kafka.group_offsets import Committed
from consumer.text import count_of
from consumer.wire.changelog import ProgressRow, transactions_of
from consumer.worker.aggregator_state import AggregatorSettings


def check_same_topic(progress: ProgressRow, settings: AggregatorSettings) -> None:
    """Raise Fatal if the state was written for another scored topic."""
    if progress.partitions != settings.partitions:
        raise Fatal(
            f"the state was written for {count_of(progress.partitions, 'partition')} of the scored topic, which now "
            f"has {settings.partitions}: start a new group on new topics, as "
            "'Starting over' in docs/how-to/operate.md says"
        )
    known, current = progress.topic_id, settings.scored_topic_id
    if known is not None and current is not None and known != current:
        raise Fatal(
            f"the state was written for a scored topic with the id {known}, but the one there now has the id "
            f"{current}: it was deleted and created again, so the offsets in the state are not valid for it. "
            "Start over: 'Starting over' in docs/how-to/operate.md"
        )


def check_same_transaction(progress: ProgressRow, committed: Committed, where: str, state_topic: str) -> None:
    """Row and offset are written in one transaction: raise Contradiction unless they are equal."""
    ours, theirs = progress.transactions, transactions_of(committed.note)
    if ours is None or theirs is None:  # an older SAFE, or a person, wrote one of the two
        ours = theirs = 0
    row, offset = (progress.next_offset, ours), (committed.offset, theirs)
    if offset == row:
        return
    about = (
        f"{where} is committed up to {committed.offset} ({committed.note or 'no metadata'}), but its state "
        f"reaches up to {progress.next_offset} ({progress.note})"
    )
    if offset < row:
        raise Contradiction(
            f"{about}: the group's offset was set back. Set it to {progress.next_offset}, or delete the group's "
            "offsets on the topic: SAFE then continues where its state ends"
        )
    raise Contradiction(
        f"{about}: {state_topic} is older than the offset, perhaps because it was restored from a backup. Choose one: "
        "(1) restore the backup that belongs to the offset; "
        f"(2) set the group's offset to {progress.next_offset}, if the scored topic still has all records from there "
        "on (their results are published again); (3) start over: 'Starting over' in docs/how-to/operate.md"
    )
