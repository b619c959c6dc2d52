"""How a missed term could ask for the same in the narrative's own words (contract.md, "Proposals").

A rewording is one phrase of the narrative or a few, which hold together all that the term says. Those that the output
has too come first; then the nearest places of the narrative.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from safe_core.diagnosis.alignment import Term, align, term_of
from safe_core.diagnosis.answers import answer
from safe_core.diagnosis.reading import Clause, Fact
from safe_core.diagnosis.relations import sides, weak
from safe_core.matching_rule import normalise
from safe_core.rewording.claims import answers_how_much, asks_more, is_held, is_needed, is_weaker, is_written
from safe_core.rewording.phrases import Phrases, Sentence, Stretch

MOST_PHRASES: Final = 3
_MOST_SENTENCES: Final = 4  # of the narrative, which may hold a term together
_MOST_PLACES: Final = 32  # of a term's facts in one of them
_MOST_TRIED: Final = 12  # places for a phrase
_ADJECTIVE: Final = re.compile(r"(?:al|ic|ar|ary|ous|ive)\Z")
_WITH: Final = re.compile(r"\bwith\b", re.IGNORECASE)
_LONG_WORD: Final = 9  # letters of a single word that is no everyday one


class _Window(NamedTuple):
    """A piece of a sentence, from one fact to another, and the numbers of the term's facts that it holds."""

    sentence: Sentence
    first: Fact
    last: Fact
    held: frozenset[int]


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
        if wanted.lacking or not wanted.words:
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
        wanted = _Wanted(term_of(term), self._phrases)
        return tuple(dict.fromkeys(term[fact.start : fact.end] for fact in wanted.lacking))

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
            useful = [(each, {group for group in left if group <= each.held}) for each in wanted.windows]
            useful.sort(key=lambda each: (-len(each[1]), -len(each[0].held), each[0].last.end - each[0].first.start))
            found = ((self._stretch(wanted, each, read), groups) for each, groups in useful[:_MOST_TRIED] if groups)
            stretch, groups = next((each for each in found if each[0]), (None, set()))
            if stretch is None:
                return ()
            chosen.append(stretch)
            left -= groups
        return () if left else tuple(sorted(chosen))

    def _stretch(self, wanted: "_Wanted", window: _Window, read: str | None) -> Stretch | None:
        """Give the whole phrase around a window, to the end of its noun; one that is `read`, if that is given."""
        end = self._end_of_noun(window.sentence, window.last)
        whole = self._phrases.whole(window.sentence, window.first.start, end)
        return whole if whole and self._may_replace(wanted, whole, read) else None

    def _may_replace(self, wanted: "_Wanted", whole: Stretch, read: str | None) -> bool:
        """Tell whether a phrase can stand alone: no mere values, no single everyday word, and no speech."""
        phrase = self.text[whole.start : whole.end]
        if " " not in phrase:
            has_word = len(phrase) >= _LONG_WORD and wanted.words == 1
        else:
            facts = self._phrases.facts(whole.start, whole.end)
            has_word = any(fact.tells and not answers_how_much(fact) for fact in facts)
        is_there = read is None or _stands_in(normalise(phrase), read)
        is_fit = has_word and is_there and is_written(phrase)
        return is_fit and not asks_more(wanted.term, phrase, is_said=read is not None)

    def _end_of_noun(self, sentence: Sentence, last: Fact) -> int:
        """Go on from an adjective to its noun: "examination revealing normal | tone"."""
        following = self._phrases.facts(last.end, sentence.end)[:1]
        is_noun = following and following[0].value is None and self.text[last.end : following[0].start] == " "
        is_led = _is_attribute(last) or _ADJECTIVE.search(self.text, last.start, last.end)
        return following[0].end if is_noun and is_led else last.end


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
    def needed(self) -> frozenset[int]:
        """The numbers of the facts without which it would claim less."""
        return frozenset(at for at, fact in enumerate(self.term.facts) if is_needed(fact))

    @cached_property
    def groups(self) -> frozenset[frozenset[int]]:
        """The needed facts that must be in one phrase: those between two pauses, conjunctions or "with".

        A value or a side alone belongs to what is before it.
        """
        places: dict[tuple[int, int], set[int]] = {}
        for at in sorted(self.needed):
            fact = self.term.facts[at]
            places.setdefault((fact.segment, len(_WITH.findall(self.term.text, 0, fact.start))), set()).add(at)
        found: list[set[int]] = []
        for group in places.values():
            if found and not (any(map(self._is_word, group)) and any(map(self._is_word, found[-1]))):
                found[-1] |= group
            else:
                found.append(group)
        return frozenset(map(frozenset, found))

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
            ((self._held(sentence.clauses), sentence) for sentence in self.phrases.sentences),
            key=lambda each: (-sum(self.term.facts[at].weight for at in each[0]), each[1].start),
        )
        near: list[Sentence] = []
        seen: frozenset[int] = frozenset()
        for held, sentence in ranked[:_MOST_SENTENCES]:
            if held - seen or held >= self.needed:
                near.append(sentence)
                seen |= held
        return near

    def _held(self, clauses: Sequence[Clause]) -> frozenset[int]:
        return frozenset(at for at, edit in enumerate(align(self.term, clauses).edits) if is_held(edit))

    @cached_property
    def windows(self) -> list[_Window]:
        """The shortest pieces of sentences that hold some facts of the term."""
        return [window for sentence in self._sentences for window in self._windows(sentence)]

    def _windows(self, sentence: Sentence) -> Iterator[_Window]:
        facts = [
            (fact, self._held([clause._replace(facts=(fact,))])) for clause in sentence.clauses for fact in clause.facts
        ]
        hits = [(fact, held) for fact, held in facts if held][:_MOST_PLACES]
        for begin, (first, held) in enumerate(hits):
            inside: frozenset[int] = frozenset()
            for last, more in hits[begin:]:
                is_shortest = last is first or not (held <= inside | more or more <= held | inside)
                inside |= more if last is not first else frozenset()
                if is_shortest:
                    yield _Window(sentence, first, last, held | inside)


def _is_attribute(fact: Fact) -> bool:
    """Tell whether a word describes the noun behind it: "normal | status", "left | hand", "8-hour | wait"."""
    return fact.value is not None or fact.key in sides() or weak().get((fact.key,)) in {"predicate", "modifier"}


def _stands_in(needle: str, text: str) -> bool:
    """Tell whether a needle stands in a text as whole words."""
    return re.search(rf"(?<![^\W_]){re.escape(needle)}(?![^\W_])", text) is not None
