"""What the records of a compacted topic of test cases say: its keys, its values, the look-up over all of them.

A key is `<concern>/<batch>/<test>` with a test case, or `<concern>/<batch>` with a whole batch file; in each part `%`
and `/` stand as `%25` and `%2F`. A value of null takes away what its key held. Nothing here reads or waits.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from consumer.errors import Poison, Reason
from consumer.expectations.cases import (
    Holders,
    Row,
    among,
    case_count,
    compact,
    expect_the_same,
    hold,
    names_of,
    parse_document,
    poison,
    release,
    rows_of,
    verdict,
)
from consumer.expectations.port import ExpectationsKey
from consumer.text import named
from consumer.wire.headers import Undecodable
from consumer.wire.keys import key_of, parts_of
from consumer.wire.record import Record
from safe_core import BadTestCase, Expectations, InvalidBatch, TestCase, id_problem, parse_batch

RECORD_BYTES = 8 * 1024 * 1024
"""The largest value that is read: parsing one holds up the event loop, though it is done in a thread."""

_FILE_SUFFIX = ".json"
_OWN = "the batch's own record"


# --- keys -------------------------------------------------------------------------------------------------------------


class InvalidKey(ValueError):
    """A key that names no test case and no batch; the message follows the key's name."""


class RecordKey(NamedTuple):
    """What a record is about; `test_id` is None for a whole batch file."""

    concern_id: str
    batch_id: str
    test_id: str | None


def record_key(raw: bytes | None) -> RecordKey:
    """Read a record's key; raises InvalidKey, also for a second spelling of a key: a tombstone reaches but one."""
    try:
        parts = parts_of(raw or b"")
    except Undecodable as error:
        raise InvalidKey("is not UTF-8") from error
    if len(parts) not in (2, 3):
        raise InvalidKey("is neither <concern>/<batch>/<test> nor <concern>/<batch>")
    if key_of(*parts).encode() != (raw or b""):
        raise InvalidKey("is not escaped as it should be (% as %25, / as %2F, nothing else)")
    for what, part in zip(("concern", "batch", "test"), parts, strict=False):
        if problem := id_problem(part):
            raise InvalidKey(f"has a {what} that {problem}")
    return RecordKey(sys.intern(parts[0]), sys.intern(parts[1]), parts[2] if len(parts) == 3 else None)


# --- values -----------------------------------------------------------------------------------------------------------


class Refused(NamedTuple):
    """A test_id that cannot be answered; `problem` is the end of a sentence about what holds it."""

    reason: Reason
    problem: str


TopicRow = Row | Refused


class Origin(NamedTuple):
    """Which records of a batch stand together; in this order the first of equal test cases is chosen.

    One key may stand in two partitions, if two producers choose them differently: neither record replaces the other.
    """

    concern_id: str
    of_single_cases: bool
    partition: int


@dataclass(slots=True)
class Part:
    """What one origin says of a batch.

    `nameless` counts entries without a usable test_id, `problem` tells why a whole batch file cannot be read.
    """

    rows: dict[str, TopicRow] = field(default_factory=dict)
    nameless: int = 0
    problem: str | None = None


def _document(value: bytes) -> object:
    """Parse a record's value; raises InvalidBatch."""
    if len(value) > RECORD_BYTES:
        raise InvalidBatch(f"larger than {RECORD_BYTES} bytes")
    return parse_document(value)


def _single(key: RecordKey, value: bytes) -> TestCase:
    """Read a record of one test case; raises InvalidBatch."""
    (case,) = parse_batch({"test_cases": [_document(value)]}).cases
    if isinstance(case, BadTestCase):
        raise InvalidBatch(case.problem)
    if case.test_id != key.test_id:
        raise InvalidBatch("test_id is not that of its key")
    return case


def _whole(value: bytes) -> tuple[Mapping[str, Row], int]:
    """Read a record of a whole batch file: its rows, and how many entries have no usable test_id; InvalidBatch."""
    batch = parse_batch(_document(value))
    rows = rows_of(batch)
    return rows, case_count(batch) - len(rows)


# --- the index --------------------------------------------------------------------------------------------------------


class Survey(NamedTuple):
    """What is wrong with a topic's records.

    `changed` tells why each record cannot be used, by name, None for one that can be again: of those that have changed
    since the last survey, and of records whose names look the same one. `batches` has a name for each batch with an
    unusable record, in order.
    """

    changed: Mapping[str, str | None]
    batches: tuple[str, ...]


class TopicIndex:
    """All test cases of a topic; fold() changes it, from a thread if nothing else looks meanwhile.

    `records` counts those folded so far.
    """

    def __init__(self) -> None:
        self.records = 0
        self._batches: dict[str, dict[Origin, Part]] = {}
        self._holders: Holders = {}
        self._shared: dict[Expectations, Expectations] = {}
        self._counts: dict[str, int] = {}
        # Why records cannot be used, by partition and key; and those of which this has changed since the last survey.
        self._problems: dict[tuple[int, bytes | None], str] = {}
        self._changed: set[tuple[int, bytes | None]] = set()

    # --- look-ups

    def __len__(self) -> int:
        return len(self._holders)

    @property
    def batches(self) -> int:
        """How many batches there are."""
        return len(self._batches)

    def find(self, key: ExpectationsKey) -> TestCase | Poison:
        """Find a test case (contract.md, "Look-up")."""
        row = self._row(key.batch_id, key.test_id)
        if row is not None:
            return _verdict(row, _OWN)
        names = self._holders.get(key.test_id)
        if names is None:
            return self._not_found()
        # In the order in which a folder would have them, by the names of batch files.
        in_order = tuple(sorted(names_of(names), key=lambda name: name + _FILE_SUFFIX))
        return among(in_order, lambda name: self._said(name, key.test_id), "batches")

    def _said(self, name: str, test_id: str) -> TestCase | Poison:
        row = self._row(name, test_id)
        assert row is not None, "a holder without the test case"
        return _verdict(row, named([name]))

    def _not_found(self) -> Poison:
        unread = f", and {len(self._problems)} records cannot be used" if self._problems else ""
        return poison("expectations_not_found", f"none of {len(self._batches)} batches holds it{unread}")

    def _row(self, batch_id: str, test_id: str) -> TopicRow | None:
        """What all records of a batch together say of a test_id, None where they do not hold it."""
        parts = self._batches.get(batch_id)
        if parts is None:
            return None
        said = []
        for _origin, part in _in_order(parts):
            if part.problem is not None:
                return Refused("expectations_invalid", f"a record of the whole batch is unusable: {part.problem}")
            if test_id in part.rows:
                said.append(part.rows[test_id])
        return _together(said) if said else None

    def expected_cases(self, batch_id: str) -> int | None:
        """How many test cases the batch of that name has, None where nobody can tell."""
        parts = self._batches.get(batch_id)
        if parts is None or any(part.problem is not None for part in parts.values()):
            return None
        known = self._counts.get(batch_id)
        if known is None:
            known = self._counts[batch_id] = _count(list(parts.values()))
        return known

    def holds(self, key: ExpectationsKey) -> bool:
        """Tell whether the batch of that name itself holds the test case."""
        return any(key.test_id in part.rows for part in self._batches.get(key.batch_id, {}).values())

    # --- changes

    def fold(self, records: Iterable[Record]) -> set[str]:
        """Take in some records, in the order of their partitions; returns the names of the batches they may change."""
        touched = set()
        for record in records:
            self.records += 1
            try:
                key = record_key(record.key)
            except InvalidKey as error:
                self._note(record, None if record.value is None else f"its key {error}")
                continue
            touched.add(key.batch_id)
            self._counts.pop(key.batch_id, None)
            (self._fold_batch if key.test_id is None else self._fold_case)(key, record)
        if len(self._shared) > 2 * len(self._holders) + 1_000:
            self._shared = self._in_use()
        return touched

    def _note(self, record: Record, problem: str | None) -> None:
        where = (record.partition, record.key)
        if self._problems.get(where) == problem:
            return
        if problem is None:
            del self._problems[where]
        else:
            self._problems[where] = problem
        self._changed.add(where)

    @property
    def is_to_be_surveyed(self) -> bool:
        """Whether survey() would tell something."""
        return bool(self._changed)

    def survey(self) -> Survey:
        """Tell what has changed since the last survey; takes as long as there are unusable records."""
        changed = {_name(where[1]): self._problems.get(where) for where in self._changed}
        self._changed.clear()
        batches = {_batch_named(_name(key)) for _partition, key in self._problems}
        return Survey(changed, tuple(sorted(batches)))

    def _fold_case(self, key: RecordKey, record: Record) -> None:
        assert key.test_id is not None
        origin = Origin(key.concern_id, True, record.partition)  # noqa: FBT003 - a field, by its place
        parts = self._batches.setdefault(key.batch_id, {})
        part = parts.setdefault(origin, Part())
        held = part.rows.pop(key.test_id, None) is not None
        row = self._row_of_case(key, record)
        if row is not None:
            # One object for the row's and the holders' key.
            part.rows[row.test_id if isinstance(row, TestCase) else key.test_id] = row
        self._move(key.batch_id, {key.test_id} if held else set(), {key.test_id} if row is not None else set(), part)
        if not part.rows:
            self._drop(key.batch_id, origin)

    def _row_of_case(self, key: RecordKey, record: Record) -> TopicRow | None:
        try:
            row = None if record.value is None else self._kept(_single(key, record.value), key)
        except InvalidBatch as error:
            self._note(record, str(error))
            return Refused("expectations_invalid", f"its record of the test case is unusable: {error}")
        self._note(record, None)
        return row

    def _fold_batch(self, key: RecordKey, record: Record) -> None:
        origin = Origin(key.concern_id, False, record.partition)  # noqa: FBT003 - a field, by its place
        parts = self._batches.setdefault(key.batch_id, {})
        before = parts.pop(origin, Part())
        part = self._part(key, record)
        if part is not None:
            parts[origin] = part
        after = Part() if part is None else part
        self._move(key.batch_id, before.rows.keys(), after.rows.keys(), after)
        if not parts:
            del self._batches[key.batch_id]

    def _part(self, key: RecordKey, record: Record) -> Part | None:
        try:
            rows, nameless = _whole(record.value) if record.value is not None else ({}, 0)
        except InvalidBatch as error:
            self._note(record, str(error))
            return Part(problem=str(error))
        self._note(record, None)
        if record.value is None:
            return None
        return Part({test_id: self._kept(row, key) for test_id, row in rows.items()}, nameless)

    def _kept(self, row: Row, key: RecordKey) -> Row:
        """Take the key's concern for a test case that names none, and hold equal things once."""
        if isinstance(row, TestCase) and row.concern_id is None:
            row = replace(row, concern_id=key.concern_id)
        return compact(row, self._shared)

    def _move(self, batch_id: str, before: Iterable[str], after: Iterable[str], part: Part) -> None:
        """Make the batch a holder of what one part holds now, and no longer of what no part holds any more."""
        was, is_ = set(before), set(after)
        others = [other for other in self._batches.get(batch_id, {}).values() if other is not part]
        for test_id in was ^ is_:
            if any(test_id in other.rows for other in others):
                continue
            (hold if test_id in is_ else release)(self._holders, batch_id, test_id)

    def _drop(self, batch_id: str, origin: Origin) -> None:
        parts = self._batches[batch_id]
        del parts[origin]
        if not parts:
            del self._batches[batch_id]

    def _in_use(self) -> dict[Expectations, Expectations]:
        parts = (part for batch in self._batches.values() for part in batch.values())
        rows = (row for part in parts for row in part.rows.values())
        return {row.expectations: row.expectations for row in rows if isinstance(row, TestCase)}


def _in_order(parts: dict[Origin, Part]) -> Iterable[tuple[Origin, Part]]:
    return parts.items() if len(parts) == 1 else sorted(parts.items(), key=_origin_of)


def _origin_of(item: tuple[Origin, Part]) -> Origin:
    return item[0]


def _together(said: Sequence[TopicRow]) -> TopicRow:
    """Merge what several records say: equal test cases are one, the first; whatever is unusable beats the others."""
    cases = [row for row in said if isinstance(row, TestCase)]
    if len(cases) < len(said):
        return next(row for row in said if not isinstance(row, TestCase))
    if not expect_the_same(cases):
        return Refused("expectations_ambiguous", "several of its records hold it, with different expectations")
    return cases[0]


def _verdict(row: TopicRow, where: str) -> TestCase | Poison:
    if isinstance(row, Refused):
        return poison(row.reason, f"{where}: {row.problem}")
    return verdict(row, where)


def _count(parts: Sequence[Part]) -> int:
    rows = parts[0].rows.keys() if len(parts) == 1 else set().union(*(part.rows for part in parts))
    return len(rows) + sum(part.nameless for part in parts)


def _name(key: bytes | None) -> str:
    return "a record without a key" if key is None else named([key.decode("utf-8", "backslashreplace")])


def _batch_named(key: str) -> str:
    """What a metric may name of a record: neither a test_id nor a key that is none."""
    parts = key.split("/")
    return "/".join(parts[:2]) if len(parts) in {2, 3} else "no usable key"
