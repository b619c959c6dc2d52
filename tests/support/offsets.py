"""Offsets that a scorer finds committed."""

from consumer.kafka.group_offsets import Committed
from consumer.wire.offset_note import note_of


def noted(offset: int) -> Committed:
    """An offset as SAFE commits it."""
    return Committed(offset, note_of(offset))


async def never_judged(partition: int, committed: Committed) -> None:
    """Stands where a scorer asks about an offset that SAFE has not committed."""
    raise AssertionError(f"every offset here has its note, but {partition} has {committed}")
