"""Found terms that the text may not say: within another word, denied, or with another value than the narrative's."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from safe_core.diagnosis.bound_values import clauses
from safe_core.diagnosis.denial_scope import Place, is_denied_at
from safe_core.diagnosis.joined_text import JoinedText
from safe_core.diagnosis.model import Passage
from safe_core.diagnosis.output_texts import MAX_WORDS, READ_BY, OutputText, texts_of
from safe_core.diagnosis.tokens import Item, sentences
from safe_core.diagnosis.word_edges import is_inside_word
from safe_core.diagnosis.words import word_set, words
from safe_core.matching_rule import normalise
from safe_core.outputs import Output
from safe_core.policy import Criterion
from safe_core.scoring import Details

DoubtfulKind = Literal["inside_word", "negated", "other_value"]
DOUBTFUL_KINDS: tuple[DoubtfulKind, ...] = get_args(DoubtfulKind)
"""The kinds of doubtful hits, in the order in which they are asked: the first that holds is said."""

_MOST_PLACES = 200  # of a term that are looked at; no real one is found as often
_WORK = 20_000  # places that are looked at, over all terms of a case


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


def doubtful_hits(output: Output, narrative: str | None, details: Details) -> tuple[DoubtfulHit, ...]:
    """Give the doubtful ones of the terms that were found (CR, AC) or used (AH), each list in its order.

    `details` are those of score() for this output; a term that is listed twice is given twice. Without a narrative,
    the text alone says whether it denies a term, and no value is another.
    """
    found: tuple[tuple[Criterion, tuple[str, ...]], ...] = (
        ("CR", details.cr_found),
        ("AH", details.ah_violations),
        ("AC", details.ac_found),
    )
    texts = CutTexts()
    most = max(1, min(_MOST_PLACES, _WORK // max(1, sum(len(terms) for _, terms in found))))
    told = JoinedText([] if narrative is None else [OutputText("summary", None, narrative)])
    hits: list[DoubtfulHit] = []
    for criterion, terms in found:
        read = JoinedText([text for text in texts_of(output) if text.field in READ_BY[criterion]] if terms else [])
        for term in terms:
            hit = Hit(normalise(term), read, told, texts, most)
            if hit.places and (kind := next((kind for kind in _ASKED[criterion] if _RULES[kind](hit)), None)):
                hits.append(DoubtfulHit(criterion, term, kind, read.first_piece(*hit.places[0])[1]))
    return tuple(hits)


class CutTexts:
    """The sentences of texts, cut when they are first asked for, at most MAX_WORDS words of all."""

    def __init__(self) -> None:
        self._cut: dict[OutputText, list[list[Item]]] = {}
        self._left = MAX_WORDS

    def sentences(self, text: OutputText) -> list[list[Item]]:
        """Give the items of a text, sentence by sentence."""
        if text not in self._cut:
            cut = words(text.text, self._left)
            self._left -= len(cut)
            self._cut[text] = list(sentences(text.text, cut))
        return self._cut[text]

    def place(self, text: OutputText, passage: Passage, *, last: bool = False) -> Place | None:
        """Give the items at a passage in its first sentence, or in its last; None where there are no words."""
        inside = (items for items in self.sentences(text) if items[-1].end > passage.start)
        chosen: Place | None = None
        for items in inside:
            if items[0].start >= passage.end:
                break
            held = [at for at, item in enumerate(items) if item.end > passage.start and item.start < passage.end]
            if held:
                chosen = Place(text.text, items, held[0], held[-1])
                if not last:
                    break
        return chosen


@dataclass(frozen=True)
class Hit:
    """A term, where it was found, and where the narrative has it."""

    needle: str
    read: JoinedText
    told: JoinedText
    texts: CutTexts
    most: int

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Where the term starts and ends in the joined text."""
        return [(at, at + len(self.needle)) for at in self.read.places(self.needle, self.most)]

    @cached_property
    def told_places(self) -> list[tuple[int, int]]:
        """Where it starts and ends in the narrative."""
        return [(at, at + len(self.needle)) for at in self.told.places(self.needle, self.most)]


def _inside_word(hit: Hit) -> bool:
    return all(_is_inside_word(hit, place) for place in hit.places)


def _is_inside_word(hit: Hit, place: tuple[int, int]) -> bool:
    begins, begin = hit.read.first_piece(*place)
    ends, end = hit.read.last_piece(*place)
    return is_inside_word(begins.text, begin.start, begin.end) or is_inside_word(ends.text, end.start, end.end)


def _negated(hit: Hit) -> bool:
    if not all(_is_negated(hit.read, place, hit.texts) for place in hit.places):
        return False
    return not any(_is_negated(hit.told, place, hit.texts) for place in hit.told_places)


def _is_negated(joined: JoinedText, place: tuple[int, int], texts: CutTexts) -> bool:
    """Tell whether a sentence denies a place."""
    begins = texts.place(*joined.first_piece(*place))
    ends = texts.place(*joined.last_piece(*place), last=True)
    if begins is None or ends is None:
        return False
    return is_denied_at(begins) or is_denied_at(ends)


def _other_value(hit: Hit) -> bool:
    """Tell whether no place has the narrative's value, where both give one of the same kind."""
    if not hit.told_places:
        return False
    told = _values_of(hit.told, hit.told_places, hit.texts)
    return bool(told) and all(
        any(found.isdisjoint(told.get(kind, found)) for kind, found in _values_of(hit.read, [place], hit.texts).items())
        for place in hit.places
    )


def _values_of(joined: JoinedText, places: list[tuple[int, int]], texts: CutTexts) -> dict[str, set[str]]:
    """Give the values beside a term in the clauses that have it, by kind."""
    values: dict[str, set[str]] = {}
    for start, end in places:
        text, passage = joined.first_piece(start, end)
        if place := texts.place(text, passage):
            for kind, key in _values_beside(place):
                values.setdefault(kind, set()).add(key)
    return values


def _values_beside(place: Place) -> Iterator[tuple[str, str]]:
    own = place.items[place.first : place.last + 1]
    at = 0
    for clause in clauses(place.items):
        if at <= place.last and at + len(clause) > place.first:
            for number, item in enumerate(clause):
                if item.value and item not in own and (kind := _kind(clause, number)):
                    yield kind, item.key
        at += len(clause)


_SCALES_BESIDE_A_WORD = frozenset(("bare", "grade", "ordinal"))
_LEADING_TO_NUMBERS = word_set("of was is at to a an the score scored")
_YEAR = 31557600
_NOT_COMPARED = frozenset(("comparison",))


def _kind(clause: list[Item], at: int) -> str | None:
    """Say what a value is of, so that two of one kind answer the same question; None where nothing is sure."""
    value = clause[at].value
    if value is None or value.type in _NOT_COMPARED or value.scale == "near day":
        return None
    if value.scale in _SCALES_BESIDE_A_WORD:
        named = next((item.key for item in reversed(clause[:at]) if item.folded not in _LEADING_TO_NUMBERS), "")
        return f"{value.scale} {named}"
    if value.scale == "duration":
        return "years" if float(value.canonical) >= _YEAR else "duration"
    if value.scale == "ratio":
        parts = value.canonical.partition("/")
        return f"ratio of {parts[2]}" if len(parts[2]) < 3 and len(parts[0]) < 3 else "ratio"
    return value.scale


_RULES: Mapping[DoubtfulKind, Callable[[Hit], bool]] = {
    "inside_word": _inside_word,
    "negated": _negated,
    "other_value": _other_value,
}
_ASKED: Mapping[Criterion, tuple[DoubtfulKind, ...]] = {
    "CR": DOUBTFUL_KINDS,
    "AH": ("inside_word",),  # a biased word that is denied still biases
    "AC": DOUBTFUL_KINDS,
}
