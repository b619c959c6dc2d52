"""How a missed term could ask for the same in the narrative's own words (contract.md, "Proposals").

A rewording is one phrase of the narrative or a few, which hold together all that the term says. Those that the output
has too come first; then the nearest places of the narrative.
"""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from safe_core.diagnosis.alignment import Term, align, term_of
from safe_core.diagnosis.answers import answer
from safe_core.diagnosis.reading import Clause, Fact, is_negative, whole_words
from safe_core.diagnosis.units import units_of
from safe_core.diagnosis.words import stem
from safe_core.matching_rule import normalise
from safe_core.rewording.claims import (
    answers_how_much,
    asks_more,
    clauses_of,
    is_adjective,
    is_held,
    is_needed,
    is_weaker,
    is_written,
)
from safe_core.rewording.phrases import Phrases, Sentence, Stretch

MOST_PHRASES: Final = 3
_MOST_SENTENCES: Final = 4  # of the narrative, which may hold a term together
_BOUND: Final = re.compile(
    r"\b(?:in|on|of|with|for|from|to|at|by)\b[^,;:]*\b(?:and|or)(?: the| an?| his| her)? \Z", re.IGNORECASE
)
"""Before a part of a term: what stands behind a preposition goes on, as in "for pain and | inflammation"."""
_ADJECTIVE: Final = re.compile(r"(?:ed|al|ic|ar|ary|ous|ive|less|ful|ible|able)\Z")
_MOST_WORDS: Final = 200  # of a term
_MOST_PLACES: Final = 32  # of a term's facts in one of them
_MOST_TRIED: Final = 12  # places for a phrase
_PARTS: Final = re.compile(r"[,;:()\[\]/–—]|\s-+\s|[.!?]\s|\b(?:and|or|nor|plus|but|(?<!ed )with)\b", re.IGNORECASE)
"""What parts a term into things that one phrase each may have; not "struggled with asthma"."""
_LISTED: Final = re.compile(r",(?! (?:which|who|\w+ing)\b)", re.IGNORECASE)
"""Between the members of a list: not "a rash, which itches", "a rash, indicating an allergy"."""
_PRONOUN: Final = re.compile(r"^(?:it|they|this|these|those)\b|\b(?:done|do|did) so\b", re.IGNORECASE)
"""In a term: what stands for something that only its neighbours say."""
_NO_SUBJECT: Final = re.compile(
    r"(?:has|have|had|is|are|was|were)(?:n['’]t| not)?\b|(?:do|does|did)(?:n['’]t| not) (?:help|hurt|work|change)\b",
    re.IGNORECASE,
)
"""How a term begins that does not say of what it is so."""
_VERB: Final = re.compile(r"\b(?:is|are|was|were|been|has|have|had|does|did)\b", re.IGNORECASE)
_GOES_ON: Final = re.compile(r"-| \w")
_SEVERAL_WORDS: Final = re.compile(r"[ -]")
_LONG_WORD: Final = 9  # letters of a single word that is no everyday one


class _Window(NamedTuple):
    """A piece of a sentence, from one fact to another, and the numbers of the term's facts that it holds."""

    sentence: Sentence
    first: Fact
    last: Fact
    held: frozenset[int]

    @property
    def length(self) -> int:
        return self.last.end - self.first.start


class Narrative:
    """A narrative, read once for all terms of its case."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._phrases = Phrases(text)

    def rewordings(self, term: str, read: str) -> Iterator[tuple[Stretch, ...]]:
        """Give the rewordings of a term that weaken nothing, the best first, each once.

        `read` is what its criterion reads, normalised. A term that the narrative has is replaced only by words that the
        output has.
        """
        wanted = _Wanted(term_of(term), self._phrases)
        if wanted.lacking or not wanted.words or wanted.says_not_of_what:
            return
        seen: set[tuple[Stretch, ...]] = set()
        for among in (read,) if self.has(term) else (read, None):
            stretches = self._cover(wanted, among)
            phrases = self.phrases(stretches)
            is_apart = all(one.end <= other.start for one, other in pairwise(stretches))
            if phrases and is_apart and stretches not in seen and not is_weaker(wanted.term, phrases):
                yield stretches
            seen.add(stretches)

    def has(self, term: str) -> bool:
        """Tell whether it has a term word for word."""
        return normalise(term) in normalise(self.text)

    def lacks(self, term: str) -> tuple[str, ...]:
        """Give the words of a term that the narrative does not have near the others, or says otherwise."""
        return whole_words(term, _Wanted(term_of(term), self._phrases).lacking)

    def phrases(self, stretches: Sequence[Stretch]) -> tuple[str, ...]:
        """Give the texts of some stretches."""
        return tuple(self.text[each.start : each.end] for each in stretches)

    def tells(self, phrase: str) -> bool:
        """Tell whether it says what another narrative says in these words, and does not deny it."""
        return self.has(phrase) and answer(phrase, [self.text]).says == "said"

    def _cover(self, wanted: "_Wanted", read: str | None) -> tuple[Stretch, ...]:
        """Choose a few phrases that hold all that is needed, the largest first; nothing if they do not."""
        left, chosen = set(wanted.groups), list[Stretch]()
        while left and len(chosen) < MOST_PHRASES:
            useful = [each for each in wanted.windows if any(group <= each.held for group in left)]
            useful.sort(key=lambda each: (-sum(group <= each.held for group in left), -len(each.held), each.length))
            found = {self._stretch(wanted, each, read) for each in useful[:_MOST_TRIED]} - {None}
            ranked = sorted((*self._worth(wanted, left, each), each) for each in found if each)
            if not ranked:
                return ()
            chosen.append(ranked[0][-1])
            left -= wanted.groups_of(self.text[chosen[-1].start : chosen[-1].end])
        return () if left else tuple(sorted(chosen))

    def _worth(self, wanted: "_Wanted", left: Set[frozenset[int]], stretch: Stretch) -> tuple[int, int, int, int]:
        """Rank a phrase by what it has of the term, then by how little it adds."""
        phrase, facts = self.text[stretch.start : stretch.end], self._phrases.facts(stretch.start, stretch.end)
        has = len(left & wanted.groups_of(phrase)), len(wanted.held(clauses_of(phrase)))
        return -has[0], -has[1], sum(fact.tells for fact in facts), len(phrase)

    def _stretch(self, wanted: "_Wanted", window: _Window, read: str | None) -> Stretch | None:
        """Give the best whole phrase around a window; one that is `read`, if that is given."""
        wholes = self._phrases.wholes(window.sentence, window.first.start, window.last.end, wanted.kept)
        return next((whole for whole in wholes if self._may_replace(wanted, whole, read)), None)

    def _may_replace(self, wanted: "_Wanted", whole: Stretch, read: str | None) -> bool:
        """Tell whether a phrase can stand alone: no mere values, no single everyday word, and no speech."""
        phrase = self.text[whole.start : whole.end]
        if not _SEVERAL_WORDS.search(phrase):
            has_word = len(phrase) >= _LONG_WORD and wanted.words == 1 and not wanted.is_statement
        else:
            facts = self._phrases.facts(whole.start, whole.end)
            has_word = any(fact.tells and not answers_how_much(fact) for fact in facts)
        is_there = read is None or _stands_in(normalise(phrase), read)
        is_fit = has_word and is_there and is_written(phrase) and not wanted.is_of_another(phrase)
        return is_fit and not asks_more(wanted.term, phrase, is_said=read is not None)


@dataclass(frozen=True)
class _Wanted:
    """What a rewording of a term must hold, and where the narrative has it."""

    term: Term
    phrases: Phrases

    @property
    def words(self) -> int:
        """How many words of content it has."""
        return sum(map(self._is_word, range(len(self.term.facts))))

    @cached_property
    def kept(self) -> frozenset[str]:
        """The keys and stems of its words, except for those of grammar."""
        units = (unit for unit in units_of(self.term.text, _MOST_WORDS) if unit.entry.kind not in {"grammar", "end"})
        stems = (stem(word) for unit in units for word in unit.folded.split())
        return frozenset((*(fact.key for fact in self.term.facts), *stems))

    @property
    def says_not_of_what(self) -> bool:
        """Whether only what stands before it would say of what it is so: "they have not helped", "has stopped"."""
        return bool(_PRONOUN.search(self.term.text) or (self.words == 1 and _NO_SUBJECT.match(self.term.text)))

    @property
    def is_statement(self) -> bool:
        """Whether it says that somebody has something, or is so, and does not only name it."""
        return _VERB.search(self.term.text) is not None

    @cached_property
    def needed(self) -> frozenset[int]:
        """The numbers of the facts without which it would claim less; all of a part that has only weak words.

        Subject and predicate are parts, too: "the typing is difficult", "the depression has been going well".
        """
        facts = self.term.facts
        found: set[int] = set()
        for part in self._parts:
            verb = _VERB.search(self.term.text, facts[part[0]].start, facts[part[-1]].end)
            place = verb.start() if verb else 0
            sides = [[at for at in part if (facts[at].start < place) is is_before] for is_before in (True, False)]
            for side in filter(None, [part] if self._is_heading(part) else sides):
                needed = {at for at in side if is_needed(facts[at])}
                found |= needed or (set() if self._is_heading(part) else {*side})
        return frozenset(found)

    def _is_heading(self, part: Sequence[int]) -> bool:
        return self.term.text.startswith(":", self.term.facts[part[-1]].end)

    @cached_property
    def _parts(self) -> list[list[int]]:
        """The facts between two pauses, conjunctions or "with"."""
        found: list[list[int]] = []
        end = 0
        for at, fact in enumerate(self.term.facts):
            if not found or _PARTS.search(self.term.text, end, fact.start):
                found.append([])
            found[-1].append(at)
            end = fact.end
        return found

    @cached_property
    def groups(self) -> frozenset[frozenset[int]]:
        """The needed facts that must be in one phrase: those of a part, with its heading.

        What names nothing, but is a value, a side or an adjective, belongs to what is before it.
        """
        found: list[set[int]] = []
        is_headed = False
        for part in self._parts:
            group = self.needed.intersection(part)
            if found and (is_headed or self._belongs(group, found[-1])):
                found[-1] |= group
            else:
                found.append({*group})
            is_headed = self._is_heading(part)
        return frozenset(map(frozenset, found))

    def is_of_another(self, phrase: str) -> bool:
        """Tell whether a noun of the term is only a part of another one: "asthma control | test"."""
        edits = align(term_of(phrase), clauses_of(self.term.text)).edits
        return any(
            is_held(own)
            and (other.fact.tells and not is_held(other) and not is_negative(other.fact))
            and phrase[own.fact.end : other.fact.start] == " "
            and not (self._describes(own.fact, phrase) or _GOES_ON.match(phrase, other.fact.end))
            for own, other in pairwise(edits)
        )

    def _describes(self, fact: Fact, phrase: str) -> bool:
        """Tell whether a word describes the noun behind it: "normal | status", "left | hand", "8-hour | wait"."""
        is_by_form = _ADJECTIVE.search(phrase, fact.start, fact.end) is not None
        return answers_how_much(fact) or is_adjective(fact) or is_by_form

    def groups_of(self, phrase: str) -> frozenset[frozenset[int]]:
        """Give the parts that a phrase has, each with its words in one member of a list: not "joints, body aches"."""
        edits = align(self.term, clauses_of(phrase)).edits
        held = {at: edits[at].other for at in range(len(edits)) if is_held(edits[at])}
        found = set()
        for group in self.groups:
            names = [other for at in group if self._names(at) and (other := held.get(at)) and not other.is_context]
            starts = [other.start for other in names if not is_adjective(other)]
            if group <= held.keys() and not (starts and _LISTED.search(phrase, min(starts), max(starts))):
                found.add(group)
        return frozenset(found)

    def _belongs(self, group: Set[int], before: Set[int]) -> bool:
        """Tell whether a part says more of what is before it: a value, a side, an adjective, or a further object."""
        if not (any(map(self._is_word, group)) and any(map(self._is_word, before))):
            return True
        facts = self.term.facts
        first, last = facts[min(group)], facts[max(before)]
        is_added = self.term.text[last.end : first.start] == ", " and not any(map(self._names, group))
        is_bound = _BOUND.search(self.term.text, facts[min(before)].end, first.start) is not None
        return is_added or (is_bound and not self.term.text[: first.end].endswith("ing"))

    def _names(self, at: int) -> bool:
        fact = self.term.facts[at]
        return self._is_word(at) and not _ADJECTIVE.search(self.term.text, fact.start, fact.end)

    def _is_word(self, at: int) -> bool:
        return self.term.facts[at].tells and not answers_how_much(self.term.facts[at])

    @cached_property
    def lacking(self) -> list[Fact]:
        """The facts that the narrative does not have."""
        held = frozenset[int]().union(*(window.held for window in self.windows))
        return [self.term.facts[at] for at in sorted(self.needed - held)]

    @cached_property
    def _sentences(self) -> list[Sentence]:
        """The nearest sentence, and each further one that has what those before it lack."""
        ranked = sorted(
            ((self.held(sentence.clauses), sentence) for sentence in self.phrases.sentences),
            key=lambda each: (-sum(self.term.facts[at].weight for at in each[0]), each[1].start),
        )
        near: list[Sentence] = []
        seen: frozenset[int] = frozenset()
        for held, sentence in ranked[:_MOST_SENTENCES]:
            if held - seen or held >= self.needed:
                near.append(sentence)
                seen |= held
        return near

    def held(self, clauses: Sequence[Clause]) -> frozenset[int]:
        """Give the numbers of the facts that some clauses have."""
        return frozenset(at for at, edit in enumerate(align(self.term, clauses).edits) if is_held(edit))

    @cached_property
    def windows(self) -> list[_Window]:
        """The shortest pieces of sentences that hold some facts of the term."""
        return [window for sentence in self._sentences for window in self._windows(sentence)]

    def _windows(self, sentence: Sentence) -> Iterator[_Window]:
        facts = [
            (fact, self.held([clause._replace(facts=(fact,))])) for clause in sentence.clauses for fact in clause.facts
        ]
        hits = [(fact, held) for fact, held in facts if held][:_MOST_PLACES]
        for begin, (first, held) in enumerate(hits):
            inside: frozenset[int] = frozenset()
            for last, more in hits[begin:]:
                is_shortest = last is first or not (held <= inside | more or more <= held | inside)
                inside |= more if last is not first else frozenset()
                if is_shortest:
                    yield _Window(sentence, first, last, held | inside)


def _stands_in(needle: str, text: str) -> bool:
    """Tell whether a needle stands in a text as whole words."""
    return re.search(rf"(?<![^\W_]){re.escape(needle)}(?![^\W_])", text) is not None
