"""The units of a text in order: facts, triggers of a status, words that begin a clause, words of grammar.

Of the phrases of the lexicon that begin with a word, the longest one counts; of two of one length the trigger, then the
synonym, then the beginning of a clause, then the word that carries little.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from safe_core.diagnosis import relations
from safe_core.diagnosis.numbers_in_text import Value, values
from safe_core.diagnosis.words import stem, words

WEIGHTS = {"grammar": 0, "lead-in": 0, "weak": 3, "going": 3, "modifier": 6}
_KINDS = {"going": "weak", "affirming": "fact", "lasting": "fact"}  # how the classes that only say more are read
FULL = 12
"""The weight of a word of content or a value, and of those that say little (lexicon/weak.tsv)."""

_POLAR = frozenset(("denied", "undone", "nothing"))
"""The statuses that say whether something is so; their triggers end each other's scopes, others add up."""


class Fact(NamedTuple):
    """A word or a value of a text: `text[start:end]`, and what the text says of it."""

    key: str
    start: int
    end: int
    weight: int
    statuses: frozenset[str] = frozenset()
    value: Value | None = None
    is_context: bool = False  # stands behind a preposition: "chest" in "no pain in the chest"
    segment: int = 0

    @property
    def tells(self) -> bool:
        """Whether it is more than a weak word."""
        return self.weight > WEIGHTS["weak"]


class Unit(NamedTuple):
    """What a segment is made of: a fact, a trigger, an end of a clause, or a word of grammar."""

    kind: str  # "fact", "predicate", "modifier", "weak", "trigger", "grammar", "lead-in", "end"
    start: int
    end: int
    folded: str
    fact: Fact | None = None
    trigger: relations.Trigger | None = None
    begins: str = ""  # a clause: "clause", "aside", "question"

    @property
    def is_polar(self) -> bool:
        return self.trigger is not None and self.trigger.status in _POLAR


class _Token(NamedTuple):
    folded: str
    stem: str
    start: int
    end: int
    value: Value | None = None


def _tokens(text: str, most: int) -> list[_Token]:
    """Give words and values in order; a value takes the place of the words within it."""
    found: list[_Token] = []
    cut = words(text, most)
    numbers = iter(values(text if len(cut) < most else text[: cut[-1].end if cut else 0]))
    number = next(numbers, None)
    begin = number.start if number else _NOWHERE
    for folded, start, end in cut:
        while number is not None and number.end <= start:
            found.append(_number(text, number))
            number = next(numbers, None)
            begin = number.start if number else _NOWHERE
        if end <= begin:
            if end - start == len(folded):
                found.append(_Token(folded, stem(folded), start, end))
            elif folded[-2:] == "nt" and text[end - 3 : end].lower() in _NOT:
                found += _without(folded, start, end)
            else:
                bare = _uncontracted(folded, text[start:end])
                found.append(_Token(bare, stem(bare), start, end))
    found += [_number(text, each) for each in (number, *numbers) if each is not None]
    return found


def _number(text: str, number: Value) -> _Token:
    """Keep how a bare number is written, by which a phrase may have it: "type 2 diabetes", "type II diabetes"."""
    written = text[number.start : number.end]
    return _Token("", written.lower() if written.isalnum() else "", number.start, number.end, number)


_NOWHERE = 1 << 60
_CONTRACTED = re.compile(r"(?<=\w)['’](?:m|ve|ll|re|d)\Z")
"""What a word loses: "I'm" is "I", not the "IM" of an injection."""
_NOT = frozenset(("n't", "n’t"))


def _uncontracted(folded: str, written: str) -> str:
    bare = _CONTRACTED.sub("", written.lower())
    return folded if bare == written.lower() else bare


def _without(folded: str, start: int, end: int) -> list[_Token]:
    """Cut "didn't", and "did n't", into "did" and "n't"."""
    bare, cut = folded.removesuffix("nt"), max(start, end - 3)
    verb = [_Token(bare, stem(bare), start, cut)] if start < cut else []
    return [*verb, _Token("nt", "nt", cut, end)]


class _Entry(NamedTuple):
    """What a phrase of the lexicon is."""

    kind: str = "fact"
    trigger: relations.Trigger | None = None
    reading: relations.Reading | None = None
    begins: str = ""
    weight: int = FULL


_CONTENT = _Entry()


@cache
def _entries() -> Mapping[relations.Phrase, _Entry]:
    """Give, by the stems of a phrase, what it is."""
    found = {
        phrase: _Entry(_KINDS.get(kind, kind), weight=WEIGHTS.get(kind, FULL))
        for phrase, kind in relations.weak().items()
    }
    found |= {phrase: _Entry("end", begins=begins) for phrase, begins in relations.ends().items()}
    found |= {phrase: _Entry("same", reading=reading) for phrase, reading in relations.same().items()}
    begins = relations.ends()
    found |= {
        phrase: _Entry("trigger", trigger, begins=begins.get(phrase, ""))
        for phrase, trigger in relations.triggers().items()
    }
    return found


@cache
def _lengths() -> Mapping[str, tuple[int, ...]]:
    return relations.lengths(_entries())


def units_of(text: str, most: int) -> Iterator[Unit]:
    """Give the units of the first `most` words of a text."""
    tokens = _tokens(text, most)
    stems = [token.stem for token in tokens]
    entries, lengths = _entries(), _lengths()
    at = 0
    while at < len(tokens):
        folded, key, start, end, value = tokens[at]
        entry, length = _CONTENT, 1
        for size in lengths.get(key, ()) if value is None else ():
            found = entries.get((key,) if size == 1 else tuple(stems[at : at + size]))
            if found is not None:
                entry, length = found, min(size, len(tokens) - at)
                break
        at += length
        if length > 1:
            folded, end = " ".join([token.folded for token in tokens[at - length : at]]), tokens[at - 1].end
        if value is not None:
            fact = Fact(f"{value.scale} {value.canonical}", start, end, FULL, frozenset(), value)
            yield Unit("fact", start, end, "", fact)
        elif entry.reading is not None:
            yield from _phrase(entry.reading, folded, (start, end))
        elif entry.kind in _BARE:
            yield Unit(entry.kind, start, end, folded, None, entry.trigger, entry.begins)
        else:
            yield Unit(entry.kind, start, end, folded, Fact(key, start, end, entry.weight))


_BARE = frozenset(("trigger", "end", "grammar", "lead-in"))


def _phrase(reading: relations.Reading, folded: str, place: tuple[int, int]) -> Iterator[Unit]:
    """Give the facts of a phrase; they share its place, and "afebrile" denies its own."""
    statuses = frozenset(("denied",)) if reading.is_denied else frozenset()
    kinds = {key: relations.weak().get((key,), "fact") for key in reading.keys}
    weights = {key: WEIGHTS.get(kind, FULL) for key, kind in kinds.items()}
    telling = [key for key, weight in weights.items() if weight]
    most = FULL if len(telling) == 1 else 3 * FULL // (2 * max(1, len(telling)))
    for key in telling:
        kind = _KINDS.get(kinds[key], kinds[key])
        yield Unit(kind, *place, folded, Fact(key, *place, min(most, weights[key]), statuses))
