"""The note (metadata) that a scorer commits with an offset of the input (contract.md, "Ownership").

It repeats the offset, so that a note which somebody copies to another offset proves nothing. Other consumers commit
without a note, and so does `kafka-consumer-groups.sh`.
"""

FIRST_SCHEMA_WITH_NOTES = 2
"""Workers that write scored records of this schema, or of a later one, write notes; those before them do not."""


def note_of(next_offset: int) -> str:
    """The note of an offset that SAFE commits."""
    return f"next_offset={next_offset}"


def is_noted(offset: int, note: str) -> bool:
    """Whether SAFE has committed this offset, as its note says."""
    return note == note_of(offset)
