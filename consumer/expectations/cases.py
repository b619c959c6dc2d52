"""What a batch of test cases says of each test_id, and of those that several batches hold (contract.md, "Look-up").

Shared by every source that holds whole batches; nothing here reads or waits.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import orjson
from typing_extensions import override

from consumer.errors import Poison, Reason
from consumer.text import named
from safe_core import BadTestCase, Batch, Expectations, InvalidBatch, TestCase

_DETAIL_BYTES = 512


# --- one batch --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TwiceDifferently:
    """A test_id that one batch file holds twice with different expectations, at these places of `test_cases`."""

    first: int
    second: int


Row = TestCase | BadTestCase | TwiceDifferently
"""What a batch file says of a test_id; a TestCase is the only answer that can be scored."""


def rows_of(batch: Batch) -> dict[str, Row]:
    """What a batch says of each of its test_ids: twice with equal expectations is one case, the first."""
    rows: dict[str, Row] = {}
    places: dict[str, int] = {}
    for place, case in enumerate(batch.cases):
        if case.test_id is None:
            continue
        held = rows.get(case.test_id)
        if held is None:
            rows[case.test_id], places[case.test_id] = case, place
        else:
            rows[case.test_id] = _merged(held, case, TwiceDifferently(places[case.test_id], place))
    return rows


def _merged(held: Row, case: TestCase | BadTestCase, twice: TwiceDifferently) -> Row:
    if isinstance(held, BadTestCase) or isinstance(case, BadTestCase):
        return held if isinstance(held, BadTestCase) else case
    if isinstance(held, TwiceDifferently) or held.expectations == case.expectations:
        return held
    return twice


def case_count(batch: Batch) -> int:
    """How many test cases a batch has: distinct test_ids, and each entry without a usable one."""
    test_ids = {case.test_id for case in batch.cases if case.test_id is not None}
    return len(test_ids) + sum(case.test_id is None for case in batch.cases)


def verdict(row: Row, where: str) -> TestCase | Poison:
    """The test case, or why it cannot be scored; `where` names the batch file."""
    match row:
        case BadTestCase():
            return poison("expectations_invalid", f"{where}, test_cases[{row.position}]: {row.problem}")
        case TwiceDifferently():
            places = f"test_cases[{row.first}] and [{row.second}]"
            return poison("expectations_ambiguous", f"{where} holds it twice with different expectations: {places}")
        case _:
            return row


def compact(row: Row, shared: dict[Expectations, Expectations]) -> Row:
    """The same row with equal expectations held once, in `shared`: they repeat from case to case, and so do ids."""
    if not isinstance(row, TestCase):
        return row
    return TestCase(
        row.test_id,
        row.concern_id and sys.intern(row.concern_id),
        row.archetype and sys.intern(row.archetype),
        row.metric_id and sys.intern(row.metric_id),
        shared.setdefault(row.expectations, row.expectations),
    )


def poison(reason: Reason, detail: str) -> Poison:
    """Poison whose detail fits into a header."""
    return Poison(reason, detail.encode()[:_DETAIL_BYTES].decode(errors="ignore"))


# --- test_ids over all batches ----------------------------------------------------------------------------------------

Holders = dict[str, str | tuple[str, ...]]
"""test_id → the name of what holds it, or the names in order."""


def expect_the_same(cases: Sequence[TestCase]) -> bool:
    """Tell whether it does not matter which of several test cases an output is scored against."""
    return all(case.expectations == cases[0].expectations for case in cases)


def among(names: tuple[str, ...], said: Callable[[str], TestCase | Poison], what: str) -> TestCase | Poison:
    """The one answer of several holders: their first where all expect the same.

    `said` gives the verdict of each of them, `what` says in the plural what they are.
    """
    answers = [said(name) for name in names]
    for answer in answers:
        if isinstance(answer, Poison):
            return answer
    cases = [answer for answer in answers if isinstance(answer, TestCase)]
    if not expect_the_same(cases):
        detail = f"{len(names)} {what} hold it with different expectations: {named(names)}"
        return poison("expectations_ambiguous", detail)
    return cases[0]


def move(holders: Holders, name: str, before: Mapping[str, Row], after: Mapping[str, Row]) -> None:
    """Make `name` a holder of `after`, and no longer of the rest of `before`."""
    for test_id in before.keys() - after.keys():
        release(holders, name, test_id)
    for test_id in after.keys() - before.keys():
        hold(holders, name, test_id)


def hold(holders: Holders, name: str, test_id: str) -> None:
    """Make `name` a holder of one test_id."""
    others = holders.get(test_id)
    holders[test_id] = name if others is None else tuple(sorted((*names_of(others), name)))


def release(holders: Holders, name: str, test_id: str) -> None:
    """Make `name` no longer a holder of one test_id."""
    left = tuple(other for other in names_of(holders[test_id]) if other != name)
    if left:
        holders[test_id] = left if len(left) > 1 else left[0]
    else:
        del holders[test_id]


def names_of(holder: str | tuple[str, ...]) -> tuple[str, ...]:
    return (holder,) if isinstance(holder, str) else holder


# --- JSON -------------------------------------------------------------------------------------------------------------


def parse_document(raw: bytes) -> object:
    """Parse a batch file's bytes as JSON; raises InvalidBatch with words to follow "<file>: "."""
    try:
        return _json(raw)
    except json.JSONDecodeError as error:
        raise InvalidBatch(f"not valid JSON (line {error.lineno})") from error
    except UnicodeDecodeError as error:
        raise InvalidBatch("not UTF-8") from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, a list 10,000 deep
        raise InvalidBatch("not JSON that can be read") from error


def _json(raw: bytes) -> object:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        # Python's own parser lets pass what harms one case at most: a lone surrogate, a NaN that nobody reads.
        return json.loads(raw.decode("utf-8"))


# --- JSON in pieces ---------------------------------------------------------------------------------------------------

_LARGE_BYTES = 1024 * 1024


def parse_in_pieces(raw: bytes) -> object:
    """Parse a batch file as parse_document does, a large one so that no step of it is long.

    A parser lets no other thread run while it works. So the places of a large file's test cases are looked up, and each
    is parsed when it is walked past; what is wrong with one is raised then.
    """
    if len(raw) < _LARGE_BYTES:
        return parse_document(raw)
    end = raw[-100:].rstrip()
    if raw.startswith(b"{") and end and not end.endswith(b"}"):
        line = raw.count(b"\n") + 1
        raise InvalidBatch(f"not valid JSON (line {line})")  # it is cut off
    try:
        document = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        places = msgspec.json.decode(document.pop("test_cases", b"null"), type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return parse_document(raw)  # not a batch file, or with something in it that only Python's own parser lets pass
    others = {name: _piece(place, raw) for name, place in document.items()}
    return others | {"test_cases": _Pieces(places, raw)}


class _Pieces(list[object]):
    """Parts of a document that are parsed each time they are walked past."""

    def __init__(self, places: list[msgspec.Raw], whole: bytes) -> None:
        super().__init__(places)
        self._whole = whole

    @override
    def __iter__(self) -> Iterator[object]:
        return (_piece(place, self._whole) for place in super().__iter__())


def _piece(place: object, whole: bytes) -> object:
    try:
        return _json(bytes(place))  # type: ignore[call-overload]  # a Raw is a buffer, and says so nowhere
    except (ValueError, RecursionError):
        return parse_document(whole)  # says what is wrong, and in which line
