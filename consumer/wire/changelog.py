"""The rows of the state topic (contract.md, "State")."""

from typing import Any, NamedTuple, get_type_hints

import orjson

from consumer.wire.headers import Undecodable


class BatchRow(NamedTuple):
    """What the changelog notes of a batch besides its cases.

    `last_scored_at` (ms) is the timestamp of its last scored record, winner or not; `cases` how many rows it has, so
    that a restore can tell when some are gone; `moved` is the next `scored` offset
    after the last record that changed it, `reported` the one that its last report covers (published at `reported_at`,
    ms): a report is owed while `moved` is greater. `stage` is live, forgetting (its rows are being tombstoned) or
    forgotten (they are gone).
    """

    last_scored_at: int
    cases: int
    expected_cases: int | None
    moved: int
    reported: int
    reported_at: int
    fingerprint: str
    version: str
    stage: str = "live"

    def encode(self) -> bytes:
        """The row's value."""
        return orjson.dumps(self._asdict())


class ProgressRow(NamedTuple):
    """How far a partition of `scored` is folded: `next_offset` is the next one to read.

    `topic_id` is the cluster's id of `scored`, None where the broker does not tell or an older SAFE wrote the row.
    `transactions` counts those that have written the row: the committed offset repeats the count in its note, so that
    a row and an offset that are not of the same transaction can be told apart even where the offset did not move.
    """

    group: str
    schema: int
    partitions: int
    next_offset: int
    topic_id: str | None = None
    transactions: int | None = None

    def encode(self) -> bytes:
        """The row's value."""
        return orjson.dumps(self._asdict())

    @property
    def note(self) -> str:
        """What is committed with the offset."""
        return f"{_TRANSACTIONS}{self.transactions}"


_TRANSACTIONS = "transactions="


def transactions_of(note: str) -> int | None:
    """The count that an offset's note repeats; None of a note that SAFE did not write."""
    count = note.removeprefix(_TRANSACTIONS)
    return (
        int(count) if note != count and count.isascii() and count.isdigit() and len(count) <= _LONGEST_COUNT else None
    )


_LONGEST_COUNT = 18


def decode_batch_row(value: bytes) -> BatchRow:
    """Read a batch's row; raises Undecodable."""
    return BatchRow(**_members(value, BatchRow))


def decode_progress_row(value: bytes) -> ProgressRow:
    """Read a partition's progress row; raises Undecodable."""
    return ProgressRow(**_members(value, ProgressRow))


_ADDED = frozenset({"topic_id", "transactions"})
"""Members that rows of the same schema may lack, since an older SAFE wrote them."""


def _members(value: bytes, row: type[BatchRow | ProgressRow]) -> dict[str, Any]:
    try:
        document = orjson.loads(value)
        members = {name: document.get(name) if name in _ADDED else document[name] for name in row._fields}
    except (KeyError, TypeError, ValueError) as error:
        raise Undecodable(f"not a row of the changelog: {type(error).__name__}") from error
    for name, type_ in get_type_hints(row).items():
        if not isinstance(members[name], type_):
            raise Undecodable(f"not a row of the changelog: {name} is of another type")
    return members
