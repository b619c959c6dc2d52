"""The words of a narrative that a term asks for, and what stands around a word."""

from collections.abc import Collection, Iterable, Iterator
from itertools import dropwhile, islice, takewhile
from typing import Final, NamedTuple

from safe_core.diagnosis.denial_scope import Place, is_denied_at
from safe_core.diagnosis.passage_denials import is_lost
from safe_core.diagnosis.passages import Spot, Term, nearest
from safe_core.diagnosis.sentence_index import CALLED_OFF, ROOT, Sentence, Sentences
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.word_lists.denial_words import PRIVATIONS, REFUSALS
from safe_core.diagnosis.word_lists.grammar_words import WEAK_WORDS
from safe_core.diagnosis.word_lists.measures import MEASURES
from safe_core.diagnosis.words import word_set
from safe_core.matching_rule import normalise

TELLING: Final = frozenset(("content", "value"))
PARTING: Final = word_set("and but while whereas then")
_PARTING_CONTEXTS: Final = PARTING | word_set("or nor because as")
"""What is listed with a word, or why it is so, says little of it: "no rash or fever", "not given because …"."""
_PARTING_CLAUSES: Final = _PARTING_CONTEXTS | {"with"}  # "bulging with the uvula pushed to the left"
_COPULAS: Final = word_set("is are was were been")
_NO_ONE: Final = word_set("no neither none nobody nothing")
_HARDLY: Final = word_set(
    "poor poorly little less few hardly barely scarcely rarely reduced disturbed disturbs disturb trouble difficulty "
    "missing omitted"
)
_ENDED: Final = word_set(
    "stopped discontinued ceased gone vanished disappeared withdrawn withheld held paused resolved avoided averted "
    "prevented"
)
_ORDERS: Final = frozenset(("before", "after"))
_COMPARING: Final = frozenset(("than", "to"))
_TURNING_AWAY: Final = word_set("but while whilst whereas")
_STARTING: Final = word_set("from beginning begins began starting starts started")
_LESS: Final = word_set("less fewer least")
_NEAR: Final = 5  # words on each side of another that say what it is about
_SAME_CLAUSE, _SAME_SENTENCE = 2, 1  # how much such a word counts
_FEW: Final = 4  # one in so many words is no context
_MOST_SENTENCES: Final = 8  # of the narrative that are compared with a term which it has in other words
_LEAST_SHARE: Final = 0.6  # of that term stands in one of them

Around = dict[str, int]  # the words around another, and how much each counts


class Sides(NamedTuple):
    """The keys of the words on the two sides of "before", "than" or the "to" of "from … to"."""

    before: frozenset[str]
    after: frozenset[str]

    def in_common(self, other: "Sides") -> tuple[int, int]:
        """Say how many sides share a word with the same side of another one, and how many with the other side."""
        straight = bool(self.before & other.before) + bool(self.after & other.after)
        crossed = bool(self.before & other.after) + bool(self.after & other.before)
        return straight, crossed


class At(NamedTuple):
    """One item of a sentence."""

    sentence: Sentence
    at: int

    @property
    def item(self) -> Item:
        return self.sentence.items[self.at]

    @property
    def spot(self) -> Spot:
        """Give the item with its place in the original text."""
        return Spot(self.item, self.sentence.element.passage(self.item.start, self.item.end))

    def around(self) -> Around:
        """Weigh the next words on both sides that tell something; those of the same clause count twice."""
        around: Around = {}
        for item, counts in (*self._outwards(-1), *self._outwards(1)):
            around[root(item)] = max(counts, around.get(root(item), 0))
        return around

    def company(self) -> set[str]:
        """Give the keys of the words that tell something in the same clause."""
        return {item.key for item in self.near()}

    def near(self) -> list[Item]:
        """Give the words that tell something in the same clause."""
        near = (*self._outwards(-1), *self._outwards(1))
        return [item for item, counts in near if counts == _SAME_CLAUSE]

    def whole_clause(self) -> list[Item]:
        """Give all items of the clause but this one, no further away than _NEAR."""
        return [*self._clause(-1), *self._clause(1)]

    def clause(self) -> Around:
        """Give the words of the clause alone; "164 on …" is the creatinine of "88 in June and 164 on …", too."""
        near = (*self._outwards(-1, _PARTING_CLAUSES), *self._outwards(1, _PARTING_CLAUSES))
        items = [item for item, counts in near if counts == _SAME_CLAUSE]
        keys = (*map(root, (*items, *self._head())), *self.verbs())
        return dict.fromkeys(keys, _SAME_CLAUSE)

    def verbs(self) -> set[str]:
        """Give the keys of the clause's words such as "reported": what happened, and what was said of it, are two."""
        return {item.key for step in (-1, 1) for item in self._clause(step) if item.role == "lead-in"}

    def _head(self) -> list[Item]:
        """Give what stands before the value of the clause before, if nothing stands before this one in its own."""
        items, start = self.sentence.items, self._clause_start(self.at)
        own = items[start : self.at]
        has_subject = any(item.role == "content" and item.key not in WEAK_WORDS for item in own)
        if has_subject and own[0].folded not in _COPULAS:  # "and was uploaded on 3 March" has none
            return []
        before = next((at for at in range(start - 1, max(-1, start - 1 - _NEAR), -1) if items[at].value), None)
        told = [] if before is None else items[self._clause_start(before) : before]
        return [item for item in told if item.role in TELLING]

    def _clause_start(self, at: int) -> int:
        items = self.sentence.items
        while at and not items[at].pause and items[at - 1].folded not in PARTING:
            at -= 1
        return at

    def sides(self) -> Sides | None:
        """Give what stands on the two sides of a word that says which was first, or more; None if it is none.

        "Once A, B" says B after A. What is denied or less so has no sides: "no food before the test".
        """
        items, start, at = self.sentence.items, self.at, self.at
        if not (items[at].key in _ORDERS or items[at].folded in _COMPARING):
            return None  # as most
        while start and not items[start].pause and items[start - 1].folded not in _TURNING_AWAY:
            start -= 1
        before = items[start:at]
        words = {item.folded for item in before}
        is_no_change = items[at].folded == "to" and words.isdisjoint(_STARTING)
        if is_no_change or any(item.role == "negation" or item.folded in _LESS for item in before):
            return None
        after = [*takewhile(lambda item: not item.pause, items[at + 1 :])]
        if not words:  # the main clause follows
            before = [*takewhile(lambda item: item.folded not in _TURNING_AWAY, items[at + 1 + len(after) :])]
        after = [*dropwhile(lambda item: item.role == "connective", after)]
        after = [*takewhile(lambda item: item.role != "connective", after)]
        return Sides(_telling(before), _telling(after))

    def _outwards(self, step: int, parting: Collection[str] = _PARTING_CONTEXTS) -> Iterator[tuple[Item, int]]:
        items, counts, left = self.sentence.items, _SAME_CLAUSE, _NEAR
        places = range(self.at + 1, len(items)) if step > 0 else range(self.at - 1, -1, -1)
        for place in places:
            item = items[place]
            if item.folded in parting or items[place if step > 0 else place + 1].pause:
                counts = _SAME_SENTENCE
            if item.role in TELLING and item.folded not in REFUSALS:
                yield item, counts
                left -= 1
            if not left:
                return

    def goes_on_from(self, other: "At", listed: Collection[str]) -> bool:
        """Tell whether a word is said of what an earlier one is said of: "of the radius and of the ulna", "… and fell".

        Further words of their list may stand between.
        """
        if self.sentence is not other.sentence or self.at <= other.at:
            return False
        between = self.sentence.items[other.at + 1 : self.at]
        if all(item.role == "connective" or item.key in listed for item in between):
            return True
        return not listed and between[-1].folded in PARTING

    def is_denied(self) -> bool:
        """Tell whether the sentence denies the word; with "no bed until 21:00" there was one.

        "A negative screen" says what "the screen was negative" says; of "neither was harmed" both words are denied.
        """
        items = self.sentence.items
        if not self.sentence.may_deny or any(item.folded == "until" for item in items[self.at :]):
            return False
        place = Place(self.sentence.element.text, items, self.at, self.at)
        return is_denied_at(place) or self._is_negative() or self._has_denied_subject() or self._is_called_off()

    def _is_negative(self) -> bool:
        """Tell whether "negative" stands near in the same clause."""
        return any(item.folded == "negative" for item in (*self._clause(-1), *self._clause(1)))

    def _is_called_off(self) -> bool:
        """Tell whether the clause goes on to say that it was cancelled, so that it did not take place."""
        return any(item.folded in CALLED_OFF for item in self._clause(1))

    def is_beside_denial(self) -> bool:
        """Tell whether something else in the clause is denied: "potassium was not replaced" is "no potassium given"."""
        after = takewhile(lambda item: item.folded != "with", self._clause(1))  # "a smoker with no cough"
        return any(item.role == "negation" for item in (*self._clause(-1), *after))

    def is_lost_or_ended(self) -> bool:
        """Tell whether there is no more of something: "loss of feeling", "the drug was stopped"."""
        before = {item.folded for item in self._clause(-1)}  # "loss of feeling in the feet" is one of the feet, too
        ended = not _ENDED.isdisjoint((*before, *(item.folded for item in self._clause(1))))
        return ended or not PRIVATIONS.isdisjoint(before) or is_lost(self.sentence.items, self.at)

    def is_hardly_so(self) -> bool:
        """Tell whether something is neither so nor not so: "poor sleep" denies no sleep, and does not claim it."""
        return any(item.folded in _HARDLY for item in (*self._clause(-1), *self._clause(1)))

    def is_plain(self) -> bool:
        """Tell whether the word is claimed itself: not what may be or is refused, nor the "pain" of "pain relief"."""
        after = next(self._clause(1), None)
        is_done = after is not None and (after.folded.endswith("ed") or after.folded in {"given", "taken"})
        is_attribute = after is not None and after.role == "content" and not is_done
        unsure = any(item.role == "certainty" or item.folded in REFUSALS for item in self._clause(-1))
        return not (is_attribute or unsure)

    def _has_denied_subject(self) -> bool:
        before = [item.folded for item in self._clause(-1)]
        return bool(before) and before[0] in _COPULAS and not _NO_ONE.isdisjoint(before)

    def _clause(self, step: int) -> Iterator[Item]:
        """Give the next items before or after the word, up to the end of its clause."""
        items = self.sentence.items
        places = range(self.at + 1, len(items)) if step > 0 else range(self.at - 1, -1, -1)
        for place in islice(places, _NEAR):
            if items[place].folded in PARTING or items[place if step > 0 else place + 1].pause:
                return
            yield items[place]


def _telling(items: Iterable[Item]) -> frozenset[str]:
    """Give the keys of the words that tell something; of those that say little, only if there is no other."""
    keys = frozenset(item.key for item in items if item.role in TELLING)
    return keys - WEAK_WORDS.keys() or keys


def root(item: Item) -> str:
    """Give what the forms of a word have in common, by which contexts are compared; a finding is what was measured."""
    return item.key if item.value else MEASURES.get(item.key, item.key)[:ROOT]


def in_clause(around: Around) -> Around:
    """Give what stands around a place in its own clause; nothing in "…, but there was no fever"."""
    return {word: counts for word, counts in around.items() if counts == _SAME_CLAUSE}


def shared(around: Around, others: Around) -> int:
    """Say how much of what stands around two places is the same; a little of much is nothing."""
    common = sum(min(counts, others[word]) for word, counts in around.items() if word in others)
    return common if common * _FEW >= min(sum(around.values()), sum(others.values())) else 0


def told_words(term: Term, narrative: Sentences) -> list[At]:
    """Find the words that a term asks for where the narrative has it: word for word, or nearest to that."""
    needle = normalise(term.text)
    for at in narrative.joined.places(needle, 1):
        _, place = narrative.joined.first_piece(at, at + len(needle))
        return [
            At(sentence, number)
            for sentence in narrative.sentences
            if sentence.items[0].start < place.end and sentence.items[-1].end > place.start
            for number, item in enumerate(sentence.items)
            if item.start < place.end and item.end > place.start
        ]
    found = nearest(term, narrative, _MOST_SENTENCES)
    if not found or found[0].share < _LEAST_SHARE:
        return []
    window = range(found[0].first, found[0].last + 1)
    return [At(found[0].sentence, at) for at in window if found[0].items[at].key in term.needed]
