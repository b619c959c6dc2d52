"""Other terms and accepted wordings in the text of a batch file: all else stays as it is, byte for byte."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from consumer.files.batches import LoadedBatch, read_again
from safe_core import Criterion, Expectations, TestCase
from safe_core.accepted_wordings import KEY, Accepted, merged
from safe_core.expectations import PLACES

_PIECE: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_BYTE_ORDER_MARK: Final = "\ufeff"


class TermPlace(NamedTuple):
    """A term of a batch file: the position of its case in `test_cases`, its list, and its position there."""

    case: int
    criterion: Criterion
    position: int


EditedCase = tuple[str, Expectations]
"""A test case wherever it stands: its test_id and what was expected of it."""

Replacement = tuple[Criterion, int, Sequence[str]]
"""The list of a term, its position there, and the terms that replace it."""


Accepting = tuple[str, str]
"""A term, and another wording of it that is accepted from now on."""


class _Literal(NamedTuple):
    """Where a value is written; `text[start:end]` is its literal, quotes or brackets included."""

    start: int
    end: int


def edited(
    batch: LoadedBatch,
    changes: Mapping[EditedCase, Sequence[Replacement]],
    accepted: Mapping[EditedCase, Sequence[Accepting]] = MappingProxyType({}),
) -> bytes:
    """Give the content of a batch file with the changed terms of its test cases replaced, and wordings accepted.

    Raises ConfigurationError if the file has changed since the batch was loaded.
    """
    raw, _ = read_again(batch)
    places = {
        TermPlace(position, criterion, at): terms
        for position, case in enumerate(batch.batch.cases)
        if isinstance(case, TestCase)
        for criterion, at, terms in changes.get((case.test_id, case.expectations), ())
    }
    wordings = {
        position: merged((case.accepted_wordings, tuple((term, (words,)) for term, words in more)))
        for position, case in enumerate(batch.batch.cases)
        if isinstance(case, TestCase) and (more := accepted.get((case.test_id, case.expectations)))
    }
    return with_wordings(with_terms_replaced(raw, places), wordings)


def with_wordings(raw: bytes, accepted: Mapping[int, Accepted]) -> bytes:
    """Write the accepted wordings of some test cases, in place of those they have or behind their expectations."""
    text = raw.decode("utf-8")
    cases = {position: ("test_cases", position) for position in accepted}
    literals = dict(_values(text, {(*case, name) for case in cases.values() for name in ("expectations", KEY)}))
    edits: list[tuple[_Literal, str]] = []
    for position, case in cases.items():
        written = json.dumps(dict(accepted[position]), ensure_ascii=text.isascii())
        own, expectations = literals.get((*case, KEY)), literals[*case, "expectations"]
        before = re.search(r'\s*"expectations"\s*:\s*\Z', text[: expectations.start])
        space = " " if before is None else before[0].partition('"')[0]
        behind = _Literal(expectations.end, expectations.end)
        edits.append((own, written) if own else (behind, f',{space or " "}"{KEY}": {written}'))
    return _written_into(text, edits)


def _written_into(text: str, edits: Iterable[tuple[_Literal, str]]) -> bytes:
    for literal, written in sorted(edits, reverse=True):
        text = text[: literal.start] + written + text[literal.end :]
    return text.encode("utf-8")


def with_terms_replaced(raw: bytes, replacements: Mapping[TermPlace, Sequence[str]]) -> bytes:
    """Replace terms of a batch file, each by one or several; raises KeyError for a place that has no term."""
    text = raw.decode("utf-8")
    places = {_path(place): terms for place, terms in replacements.items()}
    literals = dict(_values(text, places.keys() | {_neighbour(path) for path in places}))
    as_ascii = text.isascii()
    edits = [
        (
            literals[path],
            _separator(text, literals, path).join(json.dumps(term, ensure_ascii=as_ascii) for term in terms),
        )
        for path, terms in places.items()
    ]
    return _written_into(text, edits)


_Path = tuple[str | int, ...]


def _path(place: TermPlace) -> _Path:
    return ("test_cases", place.case, "expectations", *PLACES[place.criterion], place.position)


def _neighbour(path: _Path) -> _Path:
    """Give the path of the next term of the list, or of the one before the last."""
    position = path[-1]
    return (*path[:-1], position + 1 if isinstance(position, int) else position)


def _separator(text: str, literals: Mapping[_Path, _Literal], path: _Path) -> str:
    """Give what stands between this term and the next, or else a comma and what stands before this one."""
    following = literals.get(_neighbour(path))
    if following is not None:
        return text[literals[path].end : following.start]
    start = literals[path].start
    before = re.search(r"[\s]*\Z", text[:start])
    space = before[0] if before is not None else ""
    return "," + (space if "\n" in space else " ")


def _values(text: str, wanted: "set[_Path]") -> Iterator[tuple[_Path, _Literal]]:
    """Walk through the JSON of a text and give the values at some paths; of a key that is given twice, the last."""
    path: list[str | int] = []
    containers: list[str] = []
    begins: list[int] = []
    expects_key = False
    start = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0
    for match in _PIECE.finditer(text, start):
        piece = match[0]
        if piece in "{[":
            containers.append(piece)
            begins.append(match.start())
            path.append("" if piece == "{" else 0)
            expects_key = piece == "{"
        elif piece in "}]":
            containers.pop()
            path.pop()
            expects_key = False
            begin = begins.pop()
            if (here := tuple(path)) in wanted:
                yield here, _Literal(begin, match.end())
        elif piece == ",":
            expects_key = containers[-1] == "{"
            last = path[-1]
            path[-1] = last + 1 if isinstance(last, int) else last
        elif expects_key and piece != ":":
            path[-1] = json.loads(piece)
            expects_key = False
        elif piece != ":" and (here := tuple(path)) in wanted:
            yield here, _Literal(match.start(), match.end())
