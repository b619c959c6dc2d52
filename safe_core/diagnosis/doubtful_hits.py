"""Found terms that the text may not say: within another word, denied, or with another value than the narrative's."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from safe_core.diagnosis.bound_values import clauses
from safe_core.diagnosis.comparison import is_denied
from safe_core.diagnosis.denial_scope import Place, is_denied_at
from safe_core.diagnosis.diagnosis_types import Passage
from safe_core.diagnosis.joined_text import JoinedText
from safe_core.diagnosis.output_texts import MAX_WORDS, READ_BY, OutputText, elements, texts_of
from safe_core.diagnosis.passages import Match, Term, nearest
from safe_core.diagnosis.sentence_index import Sentences
from safe_core.diagnosis.sentences import MAX_ITEMS, sentence_ends, sentences
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.word_edges import is_inside_word
from safe_core.diagnosis.words import word_set, words
from safe_core.matching_rule import normalise
from safe_core.outputs import Output
from safe_core.policy import Criterion
from safe_core.scoring import Details

DoubtfulKind = Literal["inside_word", "negated", "other_value"]
DOUBTFUL_KINDS: tuple[DoubtfulKind, ...] = get_args(DoubtfulKind)
"""The kinds of doubtful hits, in the order in which they are asked: the first that holds is said."""

Values = dict[str, set[str]]  # what is measured or named → its values

_MOST_PLACES = 200  # of a term that are looked at; no real one is found as often
_MOST_SENTENCES = 16  # of the narrative that are compared with a term that it has in other words
_WORK = 20_000  # places that are looked at, over all terms of a case


_BESIDE_A_WORD = word_set("bare grade ordinal")  # scales of numbers that only the word before them names
_LEADING_TO_NUMBERS = word_set("of was is at to a an the score scored")
_NEAR = 7  # items between a term and its value; a value farther off is most often about something else
_YEAR = 31557600  # seconds; ages are no waiting times


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
        self._ends: dict[OutputText, list[int]] = {}
        self._cut: dict[tuple[OutputText, int, int], list[list[Item]]] = {}
        self._left = MAX_WORDS

    @property
    def is_used_up(self) -> bool:
        """Tell whether no more words may be cut."""
        return self._left <= 0

    def place(self, text: OutputText, passage: Passage, *, last: bool = False) -> Place | None:
        """Give the items at a passage in its first sentence, or in its last; None where there are no words."""
        edge = passage.end - 1 if last else passage.start
        for items in self._sentences(text, edge):
            held = [at for at, item in enumerate(items) if item.end > passage.start and item.start < passage.end]
            if held and items[-1].end > edge:
                return Place(text.text, items, held[0], held[-1])
        return None

    def _sentences(self, text: OutputText, at: int) -> list[list[Item]]:
        """Give the sentence around a place; one that is longer than MAX_ITEMS is several."""
        if text not in self._ends:
            self._ends[text] = [0, *sentence_ends(text.text), len(text.text)]
        ends = self._ends[text]
        number = min(bisect_right(ends, at), len(ends) - 1)
        start, end = ends[number - 1], ends[number]
        if (text, start, end) not in self._cut:
            cut = words(text.text, self._left, start, end)
            self._left -= len(cut)
            self._cut[text, start, end] = list(sentences(text.text, cut, start))
        return self._cut[text, start, end]


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

    @cached_property
    def told_values(self) -> Values:
        """The values that the narrative gives in a clause with it, of the kinds that it gives near it."""
        near = _values_of(self.told, self.told_places, self.texts, _NEAR)
        values = _values_of(self.told, self.told_places, self.texts, MAX_ITEMS) if near else {}
        return {kind: keys for kind, keys in values.items() if kind in near}


def _inside_word(hit: Hit) -> bool:
    return all(_is_inside_word(hit, place) for place in hit.places)


def _is_inside_word(hit: Hit, place: tuple[int, int]) -> bool:
    begins, begin = hit.read.first_piece(*place)
    ends, end = hit.read.last_piece(*place)
    return is_inside_word(begins.text, begin.start, begin.end) or is_inside_word(ends.text, end.start, end.end)


def _negated(hit: Hit) -> bool:
    """Tell whether the text denies every place, and the narrative none."""
    if not all(_is_negated(hit.read, place, hit.texts) for place in hit.places):
        return False
    if hit.told_places:
        return not (hit.texts.is_used_up or any(_is_negated(hit.told, place, hit.texts) for place in hit.told_places))
    return not any(map(is_denied, _told_in_other_words(hit)))


def _told_in_other_words(hit: Hit) -> Iterator[Match]:
    """Give the passages of the narrative that hold every word of a term, in whatever order."""
    told = elements(Output(summary=hit.told.text)) if hit.told.text else []
    matches = nearest(Term(hit.needle), Sentences(told), _MOST_SENTENCES) if told else []
    return (match for match in matches if match.term.core <= match.keys)


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
    return all(_has_other_value(hit, _values_of(hit.read, [place], hit.texts, _NEAR)) for place in hit.places)


def _has_other_value(hit: Hit, found: Values) -> bool:
    return any(keys.isdisjoint(hit.told_values.get(kind, keys)) for kind, keys in found.items())


def _values_of(joined: JoinedText, places: list[tuple[int, int]], texts: CutTexts, reach: int) -> Values:
    """Give the values, by kind, in the clauses that have a term and at most `reach` items from it."""
    values: Values = {}
    for start, end in places:
        text, passage = joined.first_piece(start, end)
        if place := texts.place(text, passage):
            for kind, key in _values_beside(place, reach):
                values.setdefault(kind, set()).add(key)
    return values


def _values_beside(place: Place, reach: int) -> Iterator[tuple[str, str]]:
    """Give the kind and the key of each value around a place in the clauses that it is in, its own apart."""
    begin = 0
    for clause in clauses(place.items):
        end = begin + len(clause)
        if begin <= place.last and end > place.first:
            for number, item in enumerate(clause):
                apart = max(place.first - begin - number, begin + number - place.last)
                if item.value and 0 < apart <= reach and (kind := _kind(clause, number)):
                    yield kind, item.key
        begin = end


def _kind(clause: list[Item], at: int) -> str | None:
    """Say what a value is of: two of one kind answer the same question; None for what is never compared."""
    value = clause[at].value
    if value is None or value.type in {"comparison", "route"} or value.scale == "near day":
        return None
    if value.scale in _BESIDE_A_WORD:
        named = next((item.key for item in reversed(clause[:at]) if item.folded not in _LEADING_TO_NUMBERS), "")
        return f"{value.scale} {named}"
    if value.scale == "duration":
        return "years" if float(value.canonical) >= _YEAR else "duration"
    if value.scale == "ratio":
        score, _, most = value.canonical.partition("/")
        return f"ratio of {most}" if len(score) < 3 and len(most) < 3 else "ratio"
    return value.scale


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
