"""Other terms and accepted wordings in the text of a batch file: all else stays as it is, byte for byte."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from consumer.errors import ConfigurationError
from consumer.files.batches import LoadedBatch, read_again
from consumer.text import visible
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


_Path = tuple[str | int, ...]


class _Literal(NamedTuple):
    """Where a value is written; `text[start:end]` is its literal, quotes or brackets included."""

    start: int
    end: int


_Edit = tuple[_Literal, str]
"""What is written in the place of a literal."""


class MalformedWordings(ValueError):
    """Accepted wordings that none can be added to; `position` is that of their case in `test_cases`."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


def edited(
    batch: LoadedBatch,
    changes: Mapping[EditedCase, Sequence[Replacement]],
    accepted: Mapping[EditedCase, Sequence[Accepting]] = MappingProxyType({}),
) -> bytes:
    """Give the content of a batch file with the changed terms of its test cases replaced, and wordings accepted.

    Raises ConfigurationError if the file has changed since the batch was loaded, or if wordings cannot be added to it.
    """
    raw = read_again(batch)
    cases = {position: case for position, case in enumerate(batch.batch.cases) if isinstance(case, TestCase)}
    places = {
        TermPlace(position, criterion, at): terms
        for position, case in cases.items()
        for criterion, at, terms in changes.get((case.test_id, case.expectations), ())
    }
    wordings = {
        position: more
        for position, case in cases.items()
        if (more := _unknown(case, accepted.get((case.test_id, case.expectations), ())))
    }
    try:
        return with_wordings(with_terms_replaced(raw, places), wordings)
    except MalformedWordings as error:
        raise ConfigurationError(
            f"{visible(str(batch.path))}: {KEY} of the test case {visible(cases[error.position].test_id)} is not an "
            "object with lists of texts, so no wording can be added; correct it by hand"
        ) from error


def _unknown(case: TestCase, wordings: Sequence[Accepting]) -> Accepted:
    """Give the wordings that a case does not have yet, by their terms."""
    known = dict(merged([case.accepted_wordings]))
    return merged(((term, (words,)),) for term, words in wordings if words not in known.get(term, ()))


def with_wordings(raw: bytes, accepted: Mapping[int, Accepted]) -> bytes:
    """Add accepted wordings to some test cases, behind those they have, or else behind their expectations.

    Raises MalformedWordings where a case has something else in their place.
    """
    if not accepted:
        return raw
    text = raw.decode("utf-8")
    wanted = {path for position, added in accepted.items() for path in _paths_of_wordings(position, added)}
    literals = dict(_values(text, wanted))
    edits = [
        edit for position, added in accepted.items() for edit in _edits_of_wordings(text, literals, position, added)
    ]
    return _written_into(text, edits)


def _paths_of_wordings(position: int, added: Accepted) -> Iterator[_Path]:
    case = ("test_cases", position)
    yield from (case, (*case, "expectations"), (*case, KEY))
    yield from ((*case, KEY, term) for term, _ in added)


def _edits_of_wordings(
    text: str, literals: Mapping[_Path, _Literal], position: int, added: Accepted
) -> Iterator[_Edit]:
    case = ("test_cases", position)
    own = _within(literals.get((*case, KEY)), literals[case])
    if own is None:
        behind = literals[*case, "expectations"].end
        written = f',{_space_of_expectations(text, literals[*case, "expectations"])}"{KEY}": {_json(text, dict(added))}'
        yield _Literal(behind, behind), written
    elif text[own.start : own.end] == "null":
        yield own, _json(text, dict(added))
    elif text[own.start] != "{":
        raise MalformedWordings(position)
    else:
        lists = {term: _within(literals.get((*case, KEY, term)), own) for term, _ in added}
        if any(each is not None and text[each.start] != "[" for each in lists.values()):
            raise MalformedWordings(position)
        for term, wordings in added:
            if (known := lists[term]) is not None:
                yield _appended(text, known, [_json(text, each) for each in wordings])
        if new := [f"{_json(text, term)}: {_json(text, texts)}" for term, texts in added if lists[term] is None]:
            yield _appended(text, own, new)


def _within(inner: _Literal | None, outer: _Literal) -> _Literal | None:
    """Give a literal if it is in another one: of a key that is given twice, only what the last one holds counts."""
    return inner if inner is not None and outer.start <= inner.start and inner.end <= outer.end else None


def _appended(text: str, container: _Literal, written: Sequence[str]) -> _Edit:
    """Add elements at the end of a list or object, each on a line of its own if the first one is."""
    inside = text[container.start + 1 : container.end - 1]
    kept = inside.rstrip()
    space = inside[: len(inside) - len(inside.lstrip())]
    separator = "," + (space if "\n" in space else " ")
    end = container.start + 1 + len(kept)
    return _Literal(end, end), (separator if kept else "") + separator.join(written)


def _json(text: str, value: object) -> str:
    return json.dumps(value, ensure_ascii=text.isascii())


def _space_of_expectations(text: str, expectations: _Literal) -> str:
    """Give the white space before the key of the expectations, or else a space."""
    colon = expectations.start - len(_space_before(text, expectations.start)) - 1
    key = '"expectations"'
    end = colon - len(_space_before(text, colon))
    space = _space_before(text, end - len(key)) if text.endswith(key, 0, end) else ""
    return space or " "


def _space_before(text: str, end: int) -> str:
    """Give the white space in front of a position; the text before it is not looked at."""
    start = end
    while start and text[start - 1].isspace():
        start -= 1
    return text[start:end]


def _written_into(text: str, edits: Iterable[_Edit]) -> bytes:
    parts, end = list[str](), 0
    for literal, written in sorted(edits):
        parts += text[end : literal.start], written
        end = literal.end
    return "".join((*parts, text[end:])).encode("utf-8")


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
    space = _space_before(text, start)
    return "," + (space if "\n" in space else " ")


def _values(text: str, wanted: set[_Path]) -> Iterator[tuple[_Path, _Literal]]:
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
