"""The relations of `lexicon/`, as tables to look things up in; each is read once."""

from collections.abc import Mapping
from functools import cache
from typing import Generic, Literal, NamedTuple, TypeVar, get_args

from safe_core.diagnosis.lexicon import rows
from safe_core.diagnosis.words import stem, words

Status = Literal["denied", "undone", "unsure", "supposed", "past", "theirs", "stated", "nothing"]
Reach = Literal["after", "before", "both", "verb", "next", ""]
Class = Literal["grammar", "lead-in", "weak", "going", "modifier", "predicate", "affirming", "lasting"]
Beginning = Literal["clause", "aside", "question"]
Phrase = tuple[str, ...]


class Trigger(NamedTuple):
    """What a phrase says of the facts around it: which status they have, and on which side of it they stand."""

    status: Status
    reach: Reach


class Reading(NamedTuple):
    """How a phrase is read: the keys of its facts, all denied in "afebrile"."""

    keys: Phrase
    is_denied: bool


class InvalidLexicon(ValueError):
    """A line of the lexicon that cannot be taken, with its file and number."""


def folded(phrase: str) -> Phrase:
    """Cut a phrase into folded words."""
    return tuple(word.folded for word in words(phrase, 32))


def stems(phrase: str) -> Phrase:
    """Cut a phrase into the stems of its words."""
    return tuple(stem(word) for word in folded(phrase))


_Key = TypeVar("_Key")
_Entry = TypeVar("_Entry")


class Once(Generic[_Key, _Entry]):
    """A table that refuses a second entry for a key, naming both lines."""

    def __init__(self) -> None:
        self.table: dict[_Key, _Entry] = {}
        self._lines: dict[_Key, str] = {}

    def add(self, key: _Key, entry: _Entry, line: str) -> None:
        """Add an entry; the same entry twice is one too many as well, unless it is of the same line."""
        if self._lines.setdefault(key, line) != line:
            raise InvalidLexicon(f"{line}: {key!r} has an entry already, in {self._lines[key]}")
        self.table[key] = entry


_SIDES = frozenset(("left", "right"))


@cache
def same() -> Mapping[Phrase, Reading]:
    """Give, by the stems of a phrase, how it is read where another says the same."""
    found: Once[Phrase, Reading] = Once()
    first: dict[str, str] = {}  # the line of each canonical: further lines with it add to it
    for line, (canonical, *variants) in rows("same"):
        is_denied = canonical.startswith("no ")
        reading = Reading(stems(canonical.removeprefix("no ")), is_denied)
        is_side = (
            len(reading.keys) > 1 and reading.keys[0] in _SIDES
        )  # in full, a side is a fact with a place of its own
        for variant in variants if is_denied or is_side else (canonical, *variants):
            if stems(variant) != reading.keys or not is_denied:
                found.add(stems(variant), reading, first.setdefault(canonical, line) if variant == canonical else line)
    for line, (kind, *drugs) in rows("rival"):
        for name, *others in (drug.split(",") for drug in drugs if kind.startswith("drug ")):
            for other in others:
                found.add(stems(other), Reading(stems(name), is_denied=False), line)
    return found.table


@cache
def triggers() -> Mapping[Phrase, Trigger]:
    """Give, by the stems of a phrase, what it says of the facts around it."""
    found: Once[Phrase, Trigger] = Once()
    for line, cells in rows("status"):
        phrase, status, reach = (*cells, "", "")[:3]
        _check(line, "status", status, get_args(Status))
        _check(line, "reach", reach, get_args(Reach))
        found.add(stems(phrase), Trigger(status, reach), line)  # type: ignore[arg-type]
    return found.table


@cache
def ends() -> Mapping[Phrase, str]:
    """Give the phrases that begin another clause, and which: "aside" ends at a comma, "question" is asked."""
    found: Once[Phrase, str] = Once()
    for line, (phrase, *kind) in rows("ends"):
        beginning = (*kind, "clause")[0]
        _check(line, "beginning", beginning, get_args(Beginning))
        found.add(stems(phrase), beginning, line)
    return found.table


@cache
def weak() -> Mapping[Phrase, str]:
    """Give the class of each word or phrase that carries little, by the stems of its words."""
    found: Once[Phrase, str] = Once()
    for line, (kind, *members) in rows("weak"):
        _check(line, "class", kind, get_args(Class))
        for word in members:
            found.add(stems(word), kind, line)
    return found.table


@cache
def going() -> frozenset[str]:
    """Give the keys of the words that say that something is done, or goes on."""
    return frozenset(phrase[-1] for phrase, kind in weak().items() if kind == "going")


@cache
def affirming() -> frozenset[str]:
    """Give the keys of the words that say that something is there, which any denial takes back."""
    return frozenset(phrase[-1] for phrase, kind in weak().items() if kind == "affirming")


@cache
def lasting() -> frozenset[str]:
    """Give the keys of the conditions and operations that somebody with a history of them still has."""
    return frozenset(phrase[-1] for phrase, kind in weak().items() if kind == "lasting")


@cache
def _groups() -> Mapping[str, frozenset[str]]:
    found: Once[str, frozenset[str]] = Once()
    for line, cells in rows("perhaps"):
        keys = frozenset(key_of(word) for word in cells)
        for key in keys:
            found.add(key, keys - {key}, line)
    return found.table


def near(key: str) -> frozenset[str]:
    """Give the keys of the words that may stand for one."""
    return _groups().get(key, frozenset())


@cache
def opposites() -> Mapping[str, frozenset[str]]:
    """Give, by key, the keys that exclude it."""
    found: Once[str, frozenset[str]] = Once()
    for line, cells in rows("opposite"):
        if len(cells) != 2:
            raise InvalidLexicon(f"{line}: not two sides, parted by one tab")
        ones, others = cells
        sides = frozenset(_members(ones)), frozenset(_members(others))
        for side, other in (sides, sides[::-1]):
            for key in side:
                found.add(key, other - {key}, line)
    return found.table


@cache
def rivals() -> Mapping[str, frozenset[str]]:
    """Give, by key, the keys of what is another thing of its kind."""
    kinds: dict[str, set[str]] = {}
    things: Once[str, tuple[str, frozenset[str]]] = Once()  # the kind of a word, and what is no rival of it
    for line, (kind, *cells) in rows("rival"):
        for thing in map(frozenset, map(_members, cells)):
            kinds.setdefault(kind, set()).update(thing)
            for key in thing:
                things.add(key, (kind, thing), line)
    return {key: frozenset(kinds[kind] - thing) for key, (kind, thing) in things.table.items()}


@cache
def sides() -> frozenset[str]:
    """Give the keys of the words for a side of the body."""
    return frozenset(
        key for _, (kind, *things) in rows("rival") if kind == "side" for thing in things for key in _members(thing)
    )


@cache
def drugs() -> frozenset[str]:
    """Give the keys of all drugs: one in the place of another is another treatment, whatever their classes."""
    return frozenset(
        key
        for _, (kind, *things) in rows("rival")
        if kind.startswith("drug ")
        for thing in things
        for key in _members(thing)
    )


@cache
def medication() -> str:
    """Give the key of what every drug is: who is denied any has none of them."""
    return key_of("medication")


@cache
def measures() -> Mapping[str, str]:
    """Give, by the key of a finding or a name, the key of what is measured."""
    found: Once[str, str] = Once()
    for line, (measure, *names) in rows("measure"):
        for name in (measure, *names):
            found.add(key_of(name), key_of(measure), line)
    return found.table


@cache
def _measured() -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for key, measure in measures().items():
        found.setdefault(measure, set()).add(key)
    return {measure: frozenset(keys) for measure, keys in found.items()}


def measured_as(measure: str) -> frozenset[str]:
    """Give the keys of the findings and names of what is measured."""
    return _measured().get(measure, frozenset())


@cache
def known() -> frozenset[str]:
    """Give the keys of all words that a relation knows as more than grammar."""
    synonyms = (key for reading in same().values() for key in reading.keys)
    related = (*rivals(), *measures(), *_groups(), *synonyms)
    return frozenset(related) - frozenset(phrase[-1] for phrase, kind in weak().items() if kind != "modifier")


def key_of(phrase: str) -> str:
    """Give the key of the only fact that a phrase of the lexicon is read as; its last one if there are several."""
    own = stems(phrase)
    reading = same().get(own)
    return (reading.keys if reading else own)[-1]


def _check(line: str, what: str, name: str, names: tuple[str, ...]) -> None:
    """Refuse a line that uses a name that nobody knows."""
    if name not in names:
        raise InvalidLexicon(f"{line}: no {what} {name!r}; there are {', '.join(filter(None, names))}")


def _members(cell: str) -> list[str]:
    return [key_of(word) for word in cell.split(",")]
