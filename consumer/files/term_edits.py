"""Other terms in the text of a batch file, of which all else stays as it is, byte for byte."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from consumer.files.batches import LoadedBatch, read_again
from safe_core import Criterion, Expectations, TestCase
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


class _Literal(NamedTuple):
    """Where a string is written; `text[start:end]` is its literal, quotes included."""

    start: int
    end: int


def edited(batch: LoadedBatch, changes: Mapping[EditedCase, Sequence[Replacement]]) -> bytes:
    """Give the content of a batch file with the changed terms of its test cases replaced.

    Raises ConfigurationError if the file has changed since the batch was loaded.
    """
    raw, _ = read_again(batch)
    places = {
        TermPlace(position, criterion, at): terms
        for position, case in enumerate(batch.batch.cases)
        if isinstance(case, TestCase)
        for criterion, at, terms in changes.get((case.test_id, case.expectations), ())
    }
    return with_terms_replaced(raw, places)


def with_terms_replaced(raw: bytes, replacements: Mapping[TermPlace, Sequence[str]]) -> bytes:
    """Replace terms of a batch file, each by one or several; raises KeyError for a place that has no term."""
    text = raw.decode("utf-8")
    places = {_path(place): terms for place, terms in replacements.items()}
    literals = dict(_strings(text, places.keys() | {_neighbour(path) for path in places}))
    as_ascii = text.isascii()
    edits = [
        (
            literals[path],
            _separator(text, literals, path).join(json.dumps(term, ensure_ascii=as_ascii) for term in terms),
        )
        for path, terms in places.items()
    ]
    for literal, written in sorted(edits, reverse=True):
        text = text[: literal.start] + written + text[literal.end :]
    return text.encode("utf-8")


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


def _strings(text: str, wanted: "set[_Path]") -> Iterator[tuple[_Path, _Literal]]:
    """Walk through the JSON of a text and give the strings at some paths; of a key that is given twice, the last."""
    path: list[str | int] = []
    containers: list[str] = []
    expects_key = False
    start = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0
    for match in _PIECE.finditer(text, start):
        piece = match[0]
        if piece in "{[":
            containers.append(piece)
            path.append("" if piece == "{" else 0)
            expects_key = piece == "{"
        elif piece in "}]":
            containers.pop()
            path.pop()
            expects_key = False
        elif piece == ",":
            expects_key = containers[-1] == "{"
            last = path[-1]
            path[-1] = last + 1 if isinstance(last, int) else last
        elif expects_key and piece != ":":
            path[-1] = json.loads(piece)
            expects_key = False
        elif piece[0] == '"' and (here := tuple(path)) in wanted:
            yield here, _Literal(match.start(), match.end())
