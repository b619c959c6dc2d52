"""The records of a compacted topic of test cases: their keys, their values, the look-up over all of them.

The value of `<concern>/<batch>/<test>` is a test case, that of `<concern>/<batch>` a whole batch file; in each part of
a key, `%` and `/` are written `%25` and `%2F`. A value of null removes what its key held. Nothing here reads or waits.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from consumer.case_sources.cases import (
    ConflictingCases,
    Holders,
    Row,
    UnusableRecords,
    among,
    as_one,
    case_or_poison,
    cases_in,
    compact,
    expect_the_same,
    move,
    nameless_count,
    names_of,
    parse_document,
    poison,
    rows_of,
    without_unused,
)
from consumer.case_sources.source import ExpectationsKey
from consumer.dead_letter_reasons import Poison
from consumer.text import count_of, named
from consumer.wire.headers import Undecodable
from consumer.wire.keys import key_of, parts_of
from consumer.wire.record import Record
from safe_core import BadTestCase, Expectations, InvalidBatch, TestCase, id_problem, parse_batch

RECORD_BYTES = 8 * 1024 * 1024
"""The largest value that is read: parsing one delays the event loop, though it is done in a thread."""


# --- keys -------------------------------------------------------------------------------------------------------------


class InvalidKey(ValueError):
    """A key that names no test case and no batch; the message follows the key's name."""


class RecordKey(NamedTuple):
    """What a record is about; `test_id` is None for a whole batch file."""

    concern_id: str
    batch_id: str
    test_id: str | None


def record_key(raw: bytes | None) -> RecordKey:
    """Read a record's key; raises InvalidKey, also for another spelling of a key: compaction would keep both."""
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


class Origin(NamedTuple):
    """Which records of a batch belong together; of equal test cases, the first in this order is chosen.

    One key may be in two partitions, if two producers choose them differently: neither record replaces the other.
    """

    concern_id: str
    of_single_cases: bool
    partition: int


@dataclass(slots=True)
class Part:
    """What one origin says about a batch.

    `nameless` counts entries without a usable test_id, `problem` says why a whole batch file cannot be read.
    """

    rows: dict[str, Row] = field(default_factory=dict)
    nameless: int = 0
    problem: str | None = None


@dataclass(slots=True)
class TopicBatch:
    """All parts of a batch; `test_ids` is how many distinct ones they have."""

    parts: dict[Origin, Part] = field(default_factory=dict)
    test_ids: int = 0


def _read(key: RecordKey, value: bytes) -> Part:
    """Read a record of one test case, or of a whole batch file; raises InvalidBatch."""
    if len(value) > RECORD_BYTES:
        raise InvalidBatch(f"larger than {RECORD_BYTES} bytes")
    document = parse_document(value)
    if key.test_id is None:
        batch = parse_batch(document)
        return Part(rows_of(batch), nameless_count(batch))
    (case,) = parse_batch({"test_cases": [document]}).cases
    if isinstance(case, BadTestCase):
        raise InvalidBatch(case.problem)
    if case.test_id != key.test_id:
        raise InvalidBatch("test_id is not that of its key")
    return Part({case.test_id: case})


def _unreadable(key: RecordKey, problem: str) -> Part:
    if key.test_id is None:
        return Part(problem=problem)
    refused = UnusableRecords("expectations_invalid", f"its record of the test case is unusable: {problem}")
    return Part({key.test_id: refused})


# --- the index --------------------------------------------------------------------------------------------------------


class Survey(NamedTuple):
    """What is wrong with a topic's records.

    `problems` says by name why records cannot be used; of these, `new` are the names that were not known to have that
    problem. `batches` names each batch with an unusable record, in order.
    """

    problems: Mapping[str, str]
    new: Sequence[str]
    batches: tuple[str, ...]


class TopicIndex:
    """All test cases of a topic; fold() changes it, from a thread if nothing else uses it meanwhile.

    `records` counts those folded so far. `has_new_problems` tells that a survey would differ from the last one.
    """

    def __init__(self) -> None:
        self.records = 0
        self.has_new_problems = False
        self._batches: dict[str, TopicBatch] = {}
        self._holders: Holders = {}
        self._shared: dict[Expectations, Expectations] = {}
        # Why records cannot be used, by partition and key.
        self._problems: dict[tuple[int, bytes | None], str] = {}

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
            return case_or_poison(row, "the batch's own record", key.narrative)
        names = self._holders.get(key.test_id)
        if names is None:
            unread = f", and {count_of(len(self._problems), 'record')} cannot be used" if self._problems else ""
            read = f"{count_of(len(self._batches), 'batch', 'es')} read"
            return poison("expectations_not_found", f"no batch holds it ({read}){unread}")
        # In the order that their files would have in a folder.
        in_order = sorted(names_of(names), key=lambda name: name + ".json")
        rows = ((name, self._row(name, key.test_id)) for name in in_order)
        return among(((name, row) for name, row in rows if row is not None), "batches", key.narrative)

    def _row(self, batch_id: str, test_id: str) -> Row | None:
        """What all records of a batch together say about a test_id, None where they do not hold it.

        Equal test cases are one, the first; anything unusable takes precedence.
        """
        rows: list[Row] = []
        parts = self._parts(batch_id)
        for part in (parts[origin] for origin in sorted(parts)):
            if part.problem is not None:
                return UnusableRecords(
                    "expectations_invalid", f"a record of the whole batch is unusable: {part.problem}"
                )
            if test_id in part.rows:
                rows.append(part.rows[test_id])
        cases: list[TestCase] = []
        for row in rows:
            if isinstance(row, BadTestCase | UnusableRecords):
                return row
            cases += cases_in(row)
        if len(rows) < 2:
            return rows[0] if rows else None
        return as_one(cases) if expect_the_same(cases) else ConflictingCases(tuple(cases))

    def expected_cases(self, batch_id: str) -> int | None:
        """How many test cases the batch of that name has, None if there is none or it cannot be read."""
        batch = self._batches.get(batch_id)
        if batch is None or any(part.problem is not None for part in batch.parts.values()):
            return None
        return batch.test_ids + sum(part.nameless for part in batch.parts.values())

    def holds(self, key: ExpectationsKey) -> bool:
        """Tell whether the batch of that name itself holds the test case."""
        return any(key.test_id in part.rows for part in self._parts(key.batch_id).values())

    def _parts(self, batch_id: str) -> Mapping[Origin, Part]:
        batch = self._batches.get(batch_id)
        return {} if batch is None else batch.parts

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
            self._fold(key, record)
        used = (part.rows for batch in self._batches.values() for part in batch.parts.values())
        self._shared = without_unused(self._shared, self._holders, used)
        return touched

    def _note(self, record: Record, problem: str | None) -> None:
        where = (record.partition, record.key)
        self.has_new_problems |= self._problems.get(where) != problem
        if problem is None:
            self._problems.pop(where, None)
        else:
            self._problems[where] = problem

    def survey(self, known: Mapping[str, str]) -> Survey:
        """Compare what is wrong with what was known to be; takes time for each unusable record."""
        self.has_new_problems = False
        problems = {_name(key): problem for (_, key), problem in self._problems.items()}
        new = sorted(name for name, problem in problems.items() if known.get(name) != problem)
        return Survey(problems, new, tuple(sorted(set(map(_batch_named, problems)))))

    def _fold(self, key: RecordKey, record: Record) -> None:
        origin = Origin(key.concern_id, key.test_id is not None, record.partition)
        batch = self._batches.setdefault(key.batch_id, TopicBatch())
        part = batch.parts.setdefault(origin, Part())
        others = [other for other in batch.parts.values() if other is not part]
        fresh = self._part(key, record)
        before = set(part.rows) if key.test_id is None else part.rows.keys() & {key.test_id}
        self._move(key.batch_id, before, fresh.rows.keys(), others)
        for test_id in before:
            del part.rows[test_id]
        part.rows.update(fresh.rows)
        part.nameless, part.problem = fresh.nameless, fresh.problem
        if record.value is None and not part.rows:
            del batch.parts[origin]
        if not batch.parts:
            del self._batches[key.batch_id]

    def _part(self, key: RecordKey, record: Record) -> Part:
        """What a record says about its batch, and a note of what is wrong with it."""
        problem = None
        try:
            part = Part() if record.value is None else _read(key, record.value)
        except InvalidBatch as error:
            problem = str(error)
            part = _unreadable(key, problem)
        self._note(record, problem)
        part.rows = {test_id: compact(row, self._shared, key.concern_id) for test_id, row in part.rows.items()}
        return part

    def _move(self, batch_id: str, before: Set[str], after: Set[str], others: Sequence[Part]) -> None:
        """Make the batch a holder of what one part holds now, and no longer of what no part holds any more."""
        moved = {test_id for test_id in before ^ after if not any(test_id in other.rows for other in others)}
        move(self._holders, batch_id, before & moved, after & moved)
        self._batches[batch_id].test_ids += len(after & moved) - len(before & moved)


def _name(key: bytes | None) -> str:
    return "a record without a key" if key is None else named([key.decode("utf-8", "backslashreplace")])


def _batch_named(key: str) -> str:
    """What a metric may name of a record: neither a test_id nor an invalid key."""
    parts = key.split("/")
    return "/".join(parts[:2]) if len(parts) in {2, 3} else "no usable key"
