"""What batches of test cases say about a test_id, one batch alone and all of them together (contract.md, "Look-up").

Shared by the sources that hold whole batches, and by the commands; nothing here reads or waits.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import msgspec
import orjson
from typing_extensions import override

from consumer.dead_letter_reasons import Poison, Reason
from consumer.text import named
from consumer.wire.other_formats import other_format
from safe_core import BadTestCase, Batch, Expectations, InvalidBatch, TestCase
from safe_core.accepted_wordings import merged

_DETAIL_BYTES = 512
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


# --- one batch --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConflictingCases:
    """Test cases under one test_id of one batch, with different expectations.

    `positions` are those of the first two that differ in a batch file's `test_cases`; None in records of a topic.
    """

    cases: tuple[TestCase, ...]
    positions: tuple[int, int] | None = None

    @property
    def problem(self) -> str:
        """The end of a sentence about the batch."""
        if self.positions is None:
            return ": several records of the batch contain this test case, with different expectations"
        first, second = self.positions
        return f" contains it twice, with different expectations: test_cases[{first}] and [{second}]"


@dataclass(frozen=True, slots=True)
class UnusableRecords:
    """A test_id that the records of a topic leave without an answer; `problem` is the end of a sentence about them."""

    reason: Reason
    problem: str


Row = TestCase | BadTestCase | ConflictingCases | UnusableRecords
"""What a batch says about a test_id; only a TestCase can be scored."""


def rows_of(batch: Batch) -> dict[str, Row]:
    """What a batch says about each of its test_ids: twice with equal expectations is one case, the first."""
    rows: dict[str, Row] = {}
    positions: dict[str, int] = {}
    for position, case in enumerate(batch.cases):
        if case.test_id is None:
            continue
        row = rows.setdefault(case.test_id, case)
        first = positions.setdefault(case.test_id, position)
        if isinstance(row, BadTestCase):
            continue
        if isinstance(case, BadTestCase):
            rows[case.test_id] = case
        elif isinstance(row, TestCase):
            rows[case.test_id] = (
                as_one([row, case])
                if expect_the_same([row, case])
                else ConflictingCases((row, case), (first, position))
            )
        elif isinstance(row, ConflictingCases):
            rows[case.test_id] = replace(row, cases=(*row.cases, case))
    return rows


def nameless_count(batch: Batch) -> int:
    """How many test cases of a batch have no usable test_id: they are expected too, and can never have a result."""
    return sum(case.test_id is None for case in batch.cases)


def case_or_poison(row: Row, where: str, narrative: str | None = None) -> TestCase | Poison:
    """The test case, or why it cannot be scored; `where` names the batch, `narrative` is the output's."""
    match row:
        case BadTestCase():
            return poison("expectations_invalid", f"{where}, test_cases[{row.position}]: {row.problem}")
        case ConflictingCases():
            return agreed(row.cases, narrative) or poison("expectations_ambiguous", where + row.problem)
        case UnusableRecords():
            return poison(row.reason, f"{where}: {row.problem}")
        case TestCase():
            return row


def cases_at(where: str, positions: Sequence[int]) -> str:
    """Name one test case of a file, or say how many have the same problem: the rest of the sentence fits both."""
    if len(positions) == 1:
        return f"{where}, test_cases[{positions[0]}]"
    places = named((f"[{position}]" for position in positions), 10)
    return f"{where}, each of {len(positions)} test cases (test_cases{places})"


def compact(row: Row, shared: dict[Expectations, Expectations], concern_id: str | None = None) -> Row:
    """The same row, its expectations taken from `shared` if equal ones are there: they repeat, and so do ids.

    `concern_id` is that of a test case that names none.
    """
    if isinstance(row, ConflictingCases):
        return replace(row, cases=tuple(_compact(case, shared, concern_id) for case in row.cases))
    return _compact(row, shared, concern_id) if isinstance(row, TestCase) else row


def _compact(row: TestCase, shared: dict[Expectations, Expectations], concern_id: str | None) -> TestCase:
    concern_id = concern_id if row.concern_id is None else row.concern_id
    return TestCase(
        row.test_id,
        concern_id and sys.intern(concern_id),
        row.archetype and sys.intern(row.archetype),
        row.metric_id and sys.intern(row.metric_id),
        shared.setdefault(row.expectations, row.expectations),
        row.narratives,
        row.accepted_wordings,
    )


def without_unused(
    shared: dict[Expectations, Expectations], holders: "Holders", used: Iterable[Mapping[str, Row]]
) -> dict[Expectations, Expectations]:
    """`shared`, or, once there are many more of them than test_ids, only those that some rows still use."""
    if len(shared) <= 2 * len(holders) + 1_000:
        return shared
    cases = (row for rows in used for row in rows.values() if isinstance(row, TestCase))
    return {case.expectations: case.expectations for case in cases}


def poison(reason: Reason, detail: str) -> Poison:
    """Poison whose detail fits into a header."""
    return Poison(reason, detail.encode()[:_DETAIL_BYTES].decode(errors="ignore"))


# --- test_ids over all batches ----------------------------------------------------------------------------------------

Holders = dict[str, str | tuple[str, ...]]
"""test_id → the name of the file or batch that holds it, or their names in order."""


def cases_in(row: Row) -> tuple[TestCase, ...]:
    """The test cases that a batch has under a test_id, as far as they can be used."""
    return (row,) if isinstance(row, TestCase) else row.cases if isinstance(row, ConflictingCases) else ()


def expect_the_same(cases: Sequence[TestCase]) -> bool:
    """Tell whether it makes no difference which of several test cases an output is scored against."""
    return all(case.expectations == cases[0].expectations for case in cases)


def as_one(cases: Sequence[TestCase]) -> TestCase:
    """The first of several test cases that expect the same, with the narratives and accepted wordings of all."""
    if len(cases) == 1:
        return cases[0]
    narratives = tuple(dict.fromkeys(digest for case in cases for digest in case.narratives))
    accepted = merged(case.accepted_wordings for case in cases)
    return replace(cases[0], narratives=narratives, accepted_wordings=accepted)


def agreed(cases: Sequence[TestCase], narrative: str | None) -> TestCase | None:
    """The test case that an output answers, of several under its test_id (contract.md, "Look-up").

    All of them are one if they expect the same. Otherwise the output's narrative decides: those that tell it are the
    output's own, if they expect the same. None where that settles nothing; `narrative` is a digest, None if not known.
    """
    own = cases if expect_the_same(cases) else [case for case in cases if narrative in case.narratives]
    return as_one(own) if own and expect_the_same(own) else None


def undecided(narrative: str | None) -> str:
    """Say why an output's narrative does not decide."""
    return f"the output's narrative {'is not known (input_digest)' if narrative is None else 'does not decide either'}"


def among(rows: Iterable[tuple[str, Row]], holders: str, narrative: str | None) -> TestCase | Poison:
    """The one answer of several holders, each with its name, to an output of that narrative.

    `holders` says in the plural what they are.
    """
    known = dict(rows)
    verdicts = {name: case_or_poison(row, named([name])) for name, row in known.items()}
    poisons = [answer for answer in verdicts.values() if isinstance(answer, Poison)]
    unusable = [answer for answer in poisons if answer.reason != "expectations_ambiguous"]
    if unusable:
        return unusable[0]
    case = agreed([case for row in known.values() for case in cases_in(row)], narrative)
    if case is not None:
        return case
    if poisons:
        return poisons[0]
    detail = f"{len(known)} {holders} contain it, with different expectations: {named(known)}"
    return poison("expectations_ambiguous", f"{detail}; {undecided(narrative)}")


def move(holders: Holders, name: str, before: Set[str], after: Set[str]) -> None:
    """Make `name` a holder of the test_ids of `after`, and no longer of the other ones of `before`."""
    for test_id in before - after:
        left = tuple(other for other in names_of(holders[test_id]) if other != name)
        if left:
            holders[test_id] = left if len(left) > 1 else left[0]
        else:
            del holders[test_id]
    for test_id in after - before:
        others = holders.get(test_id)
        holders[test_id] = name if others is None else tuple(sorted((*names_of(others), name)))


def names_of(holder: str | tuple[str, ...]) -> tuple[str, ...]:
    """The names of what holds a test_id."""
    return (holder,) if isinstance(holder, str) else holder


# --- JSON -------------------------------------------------------------------------------------------------------------


def parse_document(raw: bytes) -> object:
    """Parse a batch file's bytes as JSON; raises InvalidBatch, whose words follow "<file>: "."""
    try:
        return _json(raw)
    except json.JSONDecodeError as error:
        raise InvalidBatch(
            other_format(raw) or f"not valid JSON (line {error.lineno}, column {error.colno})"
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidBatch(other_format(raw) or "not UTF-8") from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, a list 10,000 deep
        raise InvalidBatch("not JSON that can be read") from error


def _json(raw: bytes) -> object:
    raw = raw.removeprefix(_BYTE_ORDER_MARK)  # editors on Windows write it
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        # Python's own parser accepts what harms one case at most: a lone surrogate, a NaN that nobody reads.
        return json.loads(raw.decode("utf-8"))


# --- JSON in pieces ---------------------------------------------------------------------------------------------------

_LARGE_BYTES = 1024 * 1024


def parse_in_pieces(raw: bytes) -> object:
    """Parse a batch file as parse_document does, but a large one in short steps.

    A parser lets no other thread run while it works. So a large file is only split into its test cases, and each is
    parsed when the list is iterated; what is wrong with one is raised then.
    """
    if len(raw) < _LARGE_BYTES:
        return parse_document(raw)
    raw = raw.removeprefix(_BYTE_ORDER_MARK)
    end = raw[-100:].rstrip()
    if raw.startswith(b"{") and end and not end.endswith(b"}"):
        line = raw.count(b"\n") + 1
        raise InvalidBatch(f"not valid JSON (line {line})")  # it is cut off
    try:
        document = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        entries = msgspec.json.decode(document.pop("test_cases", b"null"), type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return parse_document(raw)  # not a batch file, or one that only Python's own parser accepts
    others = {name: _parsed(part, raw) for name, part in document.items()}
    return others | {"test_cases": _Unparsed(entries, raw)}


class _Unparsed(list[object]):
    """Parts of a document that are parsed each time they are iterated over."""

    def __init__(self, parts: list[msgspec.Raw], whole: bytes) -> None:
        super().__init__(parts)
        self._whole = whole

    @override
    def __iter__(self) -> Iterator[object]:
        return (_parsed(part, self._whole) for part in super().__iter__())


def _parsed(part: object, whole: bytes) -> object:
    try:
        return _json(bytes(part))  # type: ignore[call-overload]  # a Raw is a buffer, though its type does not say so
    except (ValueError, RecursionError):
        return parse_document(whole)  # says what is wrong, and in which line
