"""The rows of the state topic (contract.md, "State")."""

import re
from typing import Any, Self

import msgspec
from msgspec import UNSET, Struct

from consumer.wire.headers import Undecodable
from consumer.wire.scored_record import ScoredRecord


class _Row(Struct, frozen=True):
    """A row, written as a JSON object of its fields."""

    def encode(self) -> bytes:
        """The row's value."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Read a row's value; raises Undecodable."""
        try:
            return msgspec.json.decode(value, type=cls)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise Undecodable(f"not a row of the changelog: {type(error).__name__}") from error


class BatchRow(_Row, frozen=True):
    """What the changelog holds of a batch besides its cases.

    `last_scored_at` (ms) is the timestamp of its last scored record, winner or not; `cases` how many rows it has, so
    that a restore can tell when some are gone; `moved` is the next `scored` offset
    after the last record that changed it, `reported` the one that its last report covers (published at `reported_at`,
    ms): a report is owed while `moved` is greater. `stage` is live, forgetting (its rows are being tombstoned) or
    forgotten (they are gone). `folded_at` is the brokers' time (ms) at which its last record was folded; None if that
    time was not known, or an older SAFE wrote the row.
    """

    last_scored_at: int
    cases: int
    expected_cases: int | None
    moved: int
    reported: int
    reported_at: int
    fingerprint: str
    version: str
    stage: str
    folded_at: int | None = None


class InputTopic(Struct, frozen=True):
    """An input topic, by its name and the id that distinguishes it from a later one of that name.

    `is_in_result_ids` tells whether the id is part of the ce_id of results. Where nothing told the id or the name, it
    is None.
    """

    id: str | None
    is_in_result_ids: bool
    name: str | None = None

    @classmethod
    def of(cls, scored: ScoredRecord[Any]) -> Self:
        """The topic that a scored record came from."""
        if scored.source.topic_id is not UNSET:
            return cls(scored.source.topic_id, is_in_result_ids=True, name=scored.source.topic)
        topic_id = None if scored.input_topic_id is UNSET else scored.input_topic_id
        return cls(topic_id, is_in_result_ids=False, name=scored.source.topic)


_UNTOLD = InputTopic(None, is_in_result_ids=False)
_FIRST_SCHEMA_WITH_INPUT = 2


class ProgressRow(_Row, frozen=True):
    """How far a partition of `scored` is folded: `next_offset` is the next one to read.

    `topic_id` is the cluster's id of `scored`, None if the broker does not report it or an older SAFE wrote the row.
    `input` is the input topic that the last scored record came from, None if nothing was scored so far, or an older
    SAFE wrote the row (`last_input` tells the two apart).
    `transactions` counts those that have written the row: the committed offset repeats the count in its note, so that
    a row and an offset of different transactions differ even if the offset did not move. `first_seen_at` is the
    brokers' time (ms) from which on each owner of the partition has known that time: batches whose row says nothing
    are idle from then on.
    """

    group: str
    schema: int
    partitions: int
    next_offset: int
    topic_id: str | None = None
    transactions: int | None = None
    first_seen_at: int | None = None
    input: InputTopic | None = None

    @property
    def last_input(self) -> InputTopic | None:
        """The input topic that was scored last; None if nothing was scored so far.

        A row of an older SAFE counts as one after something was scored: it does not tell.
        """
        return _UNTOLD if self.input is None and self.schema < _FIRST_SCHEMA_WITH_INPUT else self.input

    @property
    def note(self) -> str:
        """What is committed with the offset."""
        return f"transactions={self.transactions}"


_NOTE = re.compile("transactions=([0-9]{1,18})")


def transactions_of(note: str) -> int | None:
    """The count that an offset's note repeats; None for a note that SAFE did not write."""
    match = _NOTE.fullmatch(note)
    return int(match[1]) if match else None
