"""The passage of a text that is nearest to a term: the fewest words that hold the most of it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import NamedTuple

from rapidfuzz import fuzz

from safe_core.diagnosis.diagnosis_types import Passage
from safe_core.diagnosis.sentence_index import Sentence, Sentences
from safe_core.diagnosis.sentences import sentences
from safe_core.diagnosis.tokens import Item, Reading, Role
from safe_core.diagnosis.words import Folded, run_together, words

MAX_TERM_WORDS = 400
_MAX_COMPARED = 2_000  # characters of two texts whose similarity is measured
_MAX_SEARCHED = 20_000  # characters of all texts that are searched letter by letter
_LEAST_LIKENESS = 70.0  # of a passage that shares no word with the term


_WEIGHTS: dict[Role, float] = {
    "connective": 0.0,
    "lead-in": 0.25,
    "relation": 0.25,
    "affirmation": 0.5,
    "negation": 0.5,
    "certainty": 0.5,
    "value": 1.0,
    "content": 1.0,
}
_EXACT = 1.5  # a number, a time or a day says more than a word
_GRAMMAR: frozenset[Role] = frozenset(("connective", "lead-in"))


class Term:
    """A missing term and what a passage should hold of it."""

    def __init__(self, text: str, reading: Reading = list) -> None:
        self.text = text
        cut = words(text, MAX_TERM_WORDS)
        self.folded: Folded = run_together(cut)
        self.items: tuple[Item, ...] = tuple(item for sentence in sentences(text, cut) for item in reading(sentence))
        telling = tuple(item for item in self.items if item.role != "connective")
        essential = tuple(item for item in telling if item.role not in _GRAMMAR)
        self.essential: tuple[Item, ...] = essential or telling or self.items
        self.core: Counter[str] = Counter(item.key for item in self.essential)
        self.needed: Counter[str] = Counter(item.key for item in telling or self.items)
        self.weight: float = sum(map(weight, telling or self.items))
        self.worth: dict[str, float] = {item.key: weight(item) for item in self.items}


@lru_cache(maxsize=1024)
def term_of(text: str) -> Term:
    """Cut a term once for all cases in a row that miss it."""
    return Term(text)


def weight(item: Item) -> float:
    """Say how much an item of a term counts; a term of nothing but connectives counts them all alike."""
    if item.value and item.value.type in {"number", "time", "day"}:
        return _EXACT
    return _WEIGHTS[item.role] or 0.1


@dataclass(frozen=True)
class Match:
    """The items `first` to `last` of a sentence, the window that holds the most of a term in the fewest items."""

    term: Term
    sentence: Sentence
    first: int
    last: int
    share: float  # of the term's weight, 0 to 1

    @property
    def items(self) -> Sequence[Item]:
        """All items of the sentence."""
        return self.sentence.items

    @cached_property
    def window(self) -> Sequence[Item]:
        return self.sentence.items[self.first : self.last + 1]

    @cached_property
    def keys(self) -> Counter[str]:
        """What stands in the window, and how often."""
        return Counter(item.key for item in self.window)

    @cached_property
    def absent(self) -> tuple[Item, ...]:
        """The items of the term, other than connectives, that the window lacks, in the order of the term."""
        wanted = (item for item in self.term.items if item.role != "connective" or item.key in self.term.needed)
        return tuple(_left_over(wanted, self.keys))

    @cached_property
    def held(self) -> tuple[int, int]:
        """Give the places in the term of its first and last items that are not absent; an empty span if all are."""
        absent = set(self.absent)
        held = [number for number, item in enumerate(self.term.items) if item not in absent]
        return (held[0], held[-1]) if held else (len(self.term.items), -1)

    @cached_property
    def added(self) -> tuple[Item, ...]:
        """The items of the window that are neither in the term nor connectives or lead-in verbs."""
        left = _left_over(self.window, self.term.needed)
        return tuple(item for item in left if item.role not in {"connective", "lead-in", "relation"})

    @property
    def passage(self) -> Passage:
        """The place of the window in the original text."""
        return self.reaching()

    def spot(self, place: int) -> "Spot":
        """Give one item of the sentence with its place."""
        item = self.items[place]
        return Spot(item, self.sentence.element.passage(item.start, item.end))

    def reaching(self, *places: int) -> Passage:
        """Give the place of the window, made longer to reach further items of the sentence."""
        first, last = min((self.first, *places)), max((self.last, *places))
        return self.sentence.element.passage(self.items[first].start, self.items[last].end)


class Spot(NamedTuple):
    """An item of a text and its place."""

    item: Item
    passage: Passage


def _left_over(items: Iterable[Item], held: Counter[str]) -> Iterator[Item]:
    """Give the items that are left when each key takes away as many as are held of it, from the first on."""
    left = held.copy()
    for item in items:
        if left[item.key]:
            left[item.key] -= 1
        else:
            yield item


def nearest(term: Term, where: Sentences, most: int) -> list[Match]:
    """Give the matches of a term, best first, from at most `most` sentences, those that hold its rarest words."""
    candidates: dict[int, Sentence] = {}
    for key in sorted(term.needed, key=lambda key: len(where.holding.get(key, ()))):
        for sentence in islice(where.holding.get(key, ()), max(0, most - len(candidates))):
            candidates[sentence.number] = sentence
    matches = [match for sentence in candidates.values() if (match := _match(term, sentence))]
    return sorted(matches, key=_remoteness)


def _remoteness(match: Match) -> tuple[float, int, int, int]:
    """Order matches: the most of the term, the fewest other words, the most of its small words, the first sentence."""
    own = sum(item.key in match.term.worth for item in match.window)
    return -match.share, len(match.window) - own, -own, match.sentence.number


def _match(term: Term, sentence: Sentence) -> Match | None:
    """Slide over the sentence and keep the shortest of the windows that hold the most of what is essential."""
    hits = [(at, item) for at, item in enumerate(sentence.items) if item.key in term.core]
    if not hits:
        return None
    wanted: dict[str, int] = {}
    for _, item in hits:
        wanted[item.key] = min(wanted.get(item.key, 0) + 1, term.core[item.key])
    inside = dict.fromkeys(wanted, 0)
    lacking = sum(wanted.values())
    best = (0, len(sentence.items))  # wider than any window
    left = 0
    for at, item in hits:
        inside[item.key] += 1
        lacking -= inside[item.key] <= wanted[item.key]
        while lacking == 0:
            start, leaving = hits[left]
            if at - start < best[1] - best[0]:
                best = (start, at)
            inside[leaving.key] -= 1
            lacking += inside[leaving.key] < wanted[leaving.key]
            left += 1
    first, last = _widened(term, sentence.items, *best)
    return Match(term, sentence, first, last, _worth(term, sentence.items[first : last + 1]) / term.weight)


def _worth(term: Term, window: Sequence[Item]) -> float:
    """Say how much what a window holds of a term counts, each word as often as the term has it."""
    left = dict(term.needed)
    worth = 0.0
    for item in window:
        if left.get(item.key):
            left[item.key] -= 1
            worth += term.worth[item.key]
    return worth


def _widened(term: Term, items: Sequence[Item], first: int, last: int) -> tuple[int, int]:
    """Take in the lead-in verbs of the term that stand beside a window, with nothing but grammar between."""
    for at in range(first - 1, -1, -1):
        if items[at].role not in _GRAMMAR:
            break
        first = at if items[at].key in term.needed else first
    for at in range(last + 1, len(items)):
        if items[at].role not in _GRAMMAR:
            break
        last = at if items[at].key in term.needed else last
    return first, last


def similarity(term: str, passage: str) -> float:
    """Give the likeness of two texts from 0 to 100, letter by letter and whatever their case."""
    return round(fuzz.ratio(term[:_MAX_COMPARED].lower(), passage[:_MAX_COMPARED].lower()), 1)


def lookalike(term: str, where: Iterable[Sentence]) -> Passage | None:
    """Find, letter by letter, what looks like the term though it shares no word with it: a misspelling."""
    needle = term[:_MAX_COMPARED].lower()
    best, passage, left = _LEAST_LIKENESS, None, _MAX_SEARCHED
    for sentence in where:
        start, end = sentence.items[0].start, sentence.items[-1].end
        text = sentence.element.text[start:end]
        left -= len(text)
        if left < 0:
            break
        # lower() may change the length of a text; then its places are not those of the original
        if len(lowered := text.lower()) != len(text):
            lowered = text
        if len(needle) > len(lowered):
            continue
        found = fuzz.partial_ratio_alignment(needle, lowered, score_cutoff=best)
        if found and found.score > best:
            best = found.score
            passage = _whole_words(sentence, start + found.dest_start, start + found.dest_end)
    return passage


def _whole_words(sentence: Sentence, start: int, end: int) -> Passage:
    """Widen a place to the words that it touches; signs between words ("++/++") touch none."""
    inside: Sequence[Item] = [item for item in sentence.items if item.end > start and item.start < end]
    if not inside:
        return sentence.element.passage(start, end)
    return sentence.element.passage(min(start, inside[0].start), max(end, inside[-1].end))
