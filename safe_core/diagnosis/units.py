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
FULL = 12
"""The weight of a word of content or a value, and of those that say little (lexicon/weak.tsv)."""

_KINDS = {"going": "weak", "affirming": "fact", "lasting": "fact"}  # how the classes that only say more are read
_POLAR = frozenset(("denied", "undone", "nothing"))
_DENIED = frozenset(("denied",))


class Entry(NamedTuple):
    """What a phrase of the lexicon is, and any other word: a fact of full weight."""

    kind: str = "fact"  # "fact", "predicate", "modifier", "weak", "trigger", "grammar", "lead-in", "end"
    weight: int = FULL
    trigger: relations.Trigger | None = None
    is_polar: bool = False  # says whether something is so: such triggers end each other's scopes, others add up
    is_stated: bool = False  # says that something is so
    begins: str = ""  # a clause: "clause", "aside", "question"
    facts: tuple[tuple[str, "Entry"], ...] | None = None  # for which a synonym stands, by their keys
    statuses: frozenset[str] = frozenset()


class Unit(NamedTuple):
    """What a segment is made of: a fact, which has a key, or something else."""

    entry: Entry
    start: int
    end: int
    folded: str
    key: str = ""
    value: Value | None = None

    @property
    def tells(self) -> bool:
        """Whether it is a fact, and more than a weak word."""
        return self.key != "" and self.entry.weight > WEIGHTS["weak"]


class _Token(NamedTuple):
    folded: str
    stem: str
    start: int
    end: int
    value: Value | None = None


_ANY = Entry()
_BARE = frozenset(("trigger", "end", "grammar", "lead-in"))
_BEYOND = Value(1 << 60, 1 << 60, "number", "", "")  # behind every text
_CONTRACTED = re.compile(r"(?<=\w)['’](?:m|ve|ll|re|d)\Z")
_NOT = frozenset(("n't", "n’t"))


def units_of(text: str, most: int) -> Iterator[Unit]:
    """Give the units of the first `most` words of a text."""
    tokens = _tokens(text, most)
    stems = [token.stem for token in tokens]
    entries, lengths = _entries(), _lengths()
    at = 0
    while at < len(tokens):
        folded, key, start, end, value = tokens[at]
        entry, length = _ANY, 1
        for size in lengths.get(key, ()) if value is None else ():
            found = entries.get((key,) if size == 1 else tuple(stems[at : at + size]))
            if found is not None:
                entry, length = found, min(size, len(tokens) - at)
                break
        at += length
        if length > 1:
            folded, end = " ".join([token.folded for token in tokens[at - length : at]]), tokens[at - 1].end
        if value is not None:
            yield Unit(_ANY, start, end, "", f"{value.scale} {value.canonical}", value)
        elif entry.facts is not None:
            for name, own in entry.facts:
                yield Unit(own, start, end, folded, name)
        else:
            yield Unit(entry, start, end, folded, "" if entry.kind in _BARE else key)


def _tokens(text: str, most: int) -> list[_Token]:
    """Give words and values in order; a value takes the place of the words within it."""
    found: list[_Token] = []
    cut = words(text, most)
    numbers = iter((*values(text if len(cut) < most else text[: cut[-1].end if cut else 0]), _BEYOND))
    number = next(numbers)
    for folded, start, end in cut:
        while number.end <= start:
            found.append(_number(text, number))
            number = next(numbers)
        if end > number.start:
            continue
        if end - start == len(folded):
            found.append(_Token(folded, stem(folded), start, end))
        else:
            found += _spelled_out(folded, text[start:end].lower(), start, end)
    found += [_number(text, each) for each in (number, *numbers) if each is not _BEYOND]
    return found


def _number(text: str, number: Value) -> _Token:
    """Keep how a bare number is written, by which a phrase may have it: "type 2 diabetes", "type II diabetes"."""
    written = text[number.start : number.end]
    return _Token("", written.lower() if written.isalnum() else "", number.start, number.end, number)


def _spelled_out(folded: str, written: str, start: int, end: int) -> list[_Token]:
    """Cut "didn't", and "did n't", into "did" and "n't"; "I'm" is "I", not the "IM" of an injection."""
    if folded[-2:] != "nt" or written[-3:] not in _NOT:
        bare = _CONTRACTED.sub("", written)
        bare = folded if bare == written else bare
        return [_Token(bare, stem(bare), start, end)]
    verb, cut = folded[:-2], max(start, end - 3)
    return [*([_Token(verb, stem(verb), start, cut)] if start < cut else []), _Token("nt", "nt", cut, end)]


@cache
def _entries() -> Mapping[relations.Phrase, Entry]:
    """Give, by the stems of a phrase, what it is."""
    begins = relations.ends()
    return {
        **{phrase: _weak(kind) for phrase, kind in relations.weak().items()},
        **{phrase: Entry("end", begins=clause) for phrase, clause in begins.items()},
        **{phrase: Entry(facts=_facts(reading)) for phrase, reading in relations.same().items()},
        **{
            phrase: Entry("trigger", 0, each, each.status in _POLAR, each.status == "stated", begins.get(phrase, ""))
            for phrase, each in relations.triggers().items()
        },
    }


def _weak(kind: str) -> Entry:
    return Entry(_KINDS.get(kind, kind), WEIGHTS.get(kind, FULL), is_stated=kind == "predicate")


def _facts(reading: relations.Reading) -> tuple[tuple[str, Entry], ...]:
    """Give the facts of a phrase: they share its weight, and "afebrile" denies its own."""
    statuses = _DENIED if reading.is_denied else frozenset[str]()
    entries = {key: _weak(relations.weak().get((key,), "fact")) for key in reading.keys}
    telling = {key: entry for key, entry in entries.items() if entry.weight}
    most = FULL if len(telling) == 1 else 3 * FULL // (2 * max(1, len(telling)))
    return tuple(
        (key, entry._replace(weight=min(most, entry.weight), statuses=statuses)) for key, entry in telling.items()
    )


@cache
def _lengths() -> Mapping[str, tuple[int, ...]]:
    """Give, for each first word of a phrase, how many words those that begin with it have, longest first."""
    found: dict[str, set[int]] = {}
    for phrase in _entries():
        found.setdefault(phrase[0], set()).add(len(phrase))
    return {first: tuple(sorted(each, reverse=True)) for first, each in found.items()}
