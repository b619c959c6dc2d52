"""Found terms that the text may not say: within another word, denied, or with another value than the narrative's."""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple, get_args

from safe_core.diagnosis.alignment import term_of
from safe_core.diagnosis.conversions import is_either_order
from safe_core.diagnosis.diagnosis_types import Passage
from safe_core.diagnosis.lexicon import rows
from safe_core.diagnosis.numbers_in_text import rival, same
from safe_core.diagnosis.output_texts import READ_BY, JoinedText, OutputText, Piece, texts_of
from safe_core.diagnosis.reading import MAX_WORDS, Fact, Reading, is_negative, read
from safe_core.diagnosis.relations import key_of
from safe_core.diagnosis.words import fold, stem
from safe_core.matching_rule import normalise
from safe_core.outputs import Output
from safe_core.policy import Criterion
from safe_core.scoring import Details
from safe_core.scripts import is_within_word

DoubtfulKind = Literal["inside_word", "negated", "other_value"]
DOUBTFUL_KINDS: tuple[DoubtfulKind, ...] = get_args(DoubtfulKind)
"""The kinds of doubtful hits, in the order in which they are asked: the first that holds is said."""

Reader = Callable[[str, int], Reading]
"""read(), or what keeps its readings."""

_MOST_PLACES = 200  # of a term that are looked at; no real one is found as often
_WORK = 20_000  # places that are looked at, over all terms of a case
_MOST_BESIDE = 64  # facts of a clause on either side of a term
_NEAR = 4  # facts between a term and its value; one farther off is most often about something else


@dataclass(frozen=True, slots=True)
class DoubtfulHit:
    """A found term that holds the kind at every place where it was found; `passage` is the first."""

    criterion: Criterion
    term: str
    kind: DoubtfulKind
    passage: Passage


def doubtful_document(hit: DoubtfulHit) -> dict[str, Any]:
    """Give a doubtful hit as a report shows it: places, never the text of an output."""
    place = hit.passage
    return {
        "criterion": hit.criterion,
        "term": hit.term,
        "kind": hit.kind,
        "field": place.field,
        "element": place.element,
        "start": place.start,
        "end": place.end,
    }


def doubtful_hits(
    output: Output, narrative: str | None, details: Details, reader: Reader = read
) -> tuple[DoubtfulHit, ...]:
    """Give the doubtful ones of the terms that were found (CR, AC) or used (AH), each list in its order.

    `details` are those of score() for this output; a term that is listed twice is given twice. Without a narrative,
    the text alone says whether it denies a term, and no value is another.
    """
    found: tuple[tuple[Criterion, tuple[str, ...]], ...] = (
        ("CR", details.cr_found),
        ("AH", details.ah_violations),
        ("AC", details.ac_found),
    )
    facts = Facts(reader)
    most = max(1, min(_MOST_PLACES, _WORK // max(1, sum(len(terms) for _, terms in found))))
    story = OutputText("summary", None, narrative or "")
    told = JoinedText([story])
    hits: list[DoubtfulHit] = []
    for criterion, terms in found:
        texts = JoinedText([text for text in texts_of(output) if text.field in READ_BY[criterion]] if terms else [])
        for term in terms:
            hit = Hit(term, places_of(term, texts, facts, most), places_of(term, told, facts, most), facts.of(story)[0])
            if hit.places and (kind := next((each for each in _ASKED[criterion] if _RULES[each](hit)), None)):
                hits.append(DoubtfulHit(criterion, term, kind, hit.places[0].pieces[0][1]))
    return tuple(hits)


class Spot(NamedTuple):
    """A stretch of the facts of a text: `facts[first:end]`, none of which are its neighbours in another clause."""

    facts: Sequence["Told"]
    first: int
    end: int

    @property
    def own(self) -> Sequence["Told"]:
        return self.facts[self.first : self.end]

    def beside(self, most: int) -> list["Told"]:
        """Give the facts of the same clauses, from `most` before it to `most` after it."""
        clauses = {each.clause for each in self.own}
        around = (*self.facts[max(0, self.first - most) : self.first], *self.facts[self.end : self.end + most])
        return [each for each in around if each.clause in clauses]


class Told(NamedTuple):
    """A fact, and the number of its clause."""

    fact: Fact
    clause: int


class Facts:
    """The facts of texts, each read when it is first asked for, at most MAX_WORDS of all."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._read: dict[OutputText, tuple[list[Told], list[int]]] = {}
        self._left = MAX_WORDS

    def of(self, text: OutputText) -> tuple[list[Told], list[int]]:
        """Give the facts of a text, and where each ends."""
        if text not in self._read:
            clauses = self._reader(text.text, max(0, self._left)).clauses
            facts = [Told(fact, number) for number, clause in enumerate(clauses) for fact in clause.facts]
            self._left -= len(facts)
            self._read[text] = facts, [each.fact.end for each in facts]
        return self._read[text]

    def at(self, text: OutputText, passage: Passage) -> Spot:
        """Give the facts at a passage; none where it has no words."""
        facts, ends = self.of(text)
        first = end = bisect_right(ends, passage.start)
        while end < len(facts) and facts[end].fact.start < passage.end:
            end += 1
        return Spot(facts, first, end)


@dataclass(frozen=True, slots=True)
class Found:
    """Where a term was found: in one text, or from the end of one to the beginning of another, and its facts."""

    pieces: Sequence[Piece]
    spots: tuple[Spot, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A term, where it was found, and where the narrative has it."""

    term: str
    places: Sequence[Found]
    told: Sequence[Found]
    narrative: Sequence[Told]


def places_of(term: str, texts: JoinedText, facts: Facts, most: int) -> list[Found]:
    """Give where a term is in some texts, with the facts that are there."""
    needle = normalise(term)
    found = [texts.pieces(at, at + len(needle)) for at in texts.places(needle, most)]
    return [Found(pieces, tuple(facts.at(*piece) for piece in pieces)) for pieces in found]


# --- within a longer word ---------------------------------------------------------------------------------------------

_BEFORE = re.compile(r"[^\W_]+\Z")
_WORD_AFTER = re.compile(r"[^\W_]+")
_LONGEST = 64  # letters of a word beside an edge that are looked at
_INFLECTIONS = frozenset(("s", "es", "d", "ed", "ing", "ings", "ful", "fully"))
_SHORTEST = 4  # letters of a word that may take any of these endings


def _inside_word(hit: Hit) -> bool:
    return all(
        _is_inside_word(text.text, passage.start, passage.end)
        for place in hit.places
        for text, passage in (place.pieces[0], place.pieces[-1])
    )


def _is_inside_word(text: str, start: int, end: int) -> bool:
    """Tell whether `text[start:end]` is a part of a longer word or number at one of its edges."""
    return is_within_word(text, start) or (is_within_word(text, end) and not _is_inflected(text, start, end))


def _is_inflected(text: str, start: int, end: int) -> bool:
    """Tell whether the text has the last word of the term with another ending, or its last number with a unit."""
    own = _BEFORE.search(text, max(start, end - _LONGEST), end)
    rest = _WORD_AFTER.match(text, end, end + _LONGEST)
    if not own or not rest:
        return False
    begins, ends = fold(own[0]), fold(rest[0])
    units = _units()
    if begins[-1:].isdecimal():
        return ends in units
    whole = fold(own[0] + rest[0])
    if begins in units or whole in units:
        return begins in units and units[begins] == units.get(whole)
    return stem(whole) == stem(begins) or (ends in _INFLECTIONS and len(begins) >= _SHORTEST)


@cache
def _units() -> Mapping[str, tuple[str, ...]]:
    """Give, by its name, what a unit measures and how much of it."""
    return {fold(name.strip()): tuple(unit) for _, (*unit, names) in rows("units") for name in names.split(",")}


# --- denied, and with another value -----------------------------------------------------------------------------------


def _negated(hit: Hit) -> bool:
    """Tell whether the text denies every place, and neither the term itself nor the narrative does."""
    if not all(map(_is_denied, hit.places)) or any(map(is_negative, term_of(hit.term).facts)):
        return False
    return not (any(map(_is_denied, hit.told)) if hit.told else _denies_in_other_words(hit))


def _denies_in_other_words(hit: Hit) -> bool:
    """Tell whether a clause of the narrative denies all that a term tells, in whatever order."""
    wanted = {fact.key for fact in term_of(hit.term).facts if fact.tells}
    denied: dict[int, set[str]] = {}
    for fact, clause in hit.narrative:
        if fact.key in wanted and is_negative(fact):
            denied.setdefault(clause, set()).add(fact.key)
    return bool(wanted) and any(keys == wanted for keys in denied.values())


def _is_denied(place: Found) -> bool:
    """Tell whether a whole place is denied, and not only something larger that it is a part of."""
    return any(_all_denied([each.fact for each in spot.own]) and not _is_attribute(spot) for spot in place.spots)


def _is_attribute(spot: Spot) -> bool:
    """Tell whether a noun follows at once: "no postoperative infection" denies an infection, not an operation."""
    own, following = spot.own[-1].fact, spot.facts[spot.end : spot.end + 1]
    return any(each.fact.tells and not each.fact.value and each.fact.start == own.end + 1 for each in following)


_OPEN = frozenset(("supposed", "asked"))
"""What is said to be so or not so is not denied."""


def _all_denied(facts: Sequence[Fact]) -> bool:
    heads = [fact for fact in facts if not fact.is_context]
    telling = [fact for fact in heads if fact.tells] or heads
    return bool(telling) and all(is_negative(fact) and _OPEN.isdisjoint(fact.statuses) for fact in telling)


def _other_value(hit: Hit) -> bool:
    """Tell whether no place has the narrative's value, where both give one of the same kind."""
    near = _beside(hit.told, _NEAR)
    told = _beside(hit.told, _MOST_BESIDE) if near else []
    return bool(near) and all(_has_other_value(_beside([place], _NEAR), near, told) for place in hit.places)


def _beside(places: Sequence[Found], most: int) -> list[Fact]:
    return [each.fact for place in places for spot in place.spots for each in spot.beside(most)]


def _has_other_value(own: Sequence[Fact], near: Sequence[Fact], told: Sequence[Fact]) -> bool:
    """Tell whether a value has rivals near a term in the narrative, and is not there, nor is another of its kind."""
    return any(
        any(_are_rivals(fact, other) for other in near)
        and not any(_are_same(each, other) for each in own if each is fact or _are_rivals(each, fact) for other in told)
        for fact in own
    )


def _are_rivals(one: Fact, other: Fact) -> bool:
    if one.value is not None and other.value is not None:
        return rival(one.value, other.value) and not is_either_order(one.value, other.value)
    kind = _graded().get(one.key)
    return kind is not None and kind == _graded().get(other.key) and one.key != other.key


def _are_same(one: Fact, other: Fact) -> bool:
    if one.value is not None and other.value is not None:
        return same(one.value, other.value)
    return one.key == other.key


_GRADES = frozenset(("side", "nearness", "midline", "front", "depth", "height", "severity", "onset", "part of the day"))


@cache
def _graded() -> Mapping[str, str]:
    """Give, by key, the kind of each word that is a side or a grade (lexicon/rival.tsv)."""
    return {
        key_of(word): kind
        for _, (kind, *cells) in rows("rival")
        if kind in _GRADES
        for cell in cells
        for word in cell.split(",")
    }


_RULES: Mapping[DoubtfulKind, Callable[[Hit], bool]] = {
    "inside_word": _inside_word,
    "negated": _negated,
    "other_value": _other_value,
}
_ASKED: Mapping[Criterion, tuple[DoubtfulKind, ...]] = {
    "CR": DOUBTFUL_KINDS,
    "AH": ("inside_word",),  # a forbidden word is wrong even where it is denied
    "AC": DOUBTFUL_KINDS,
}
