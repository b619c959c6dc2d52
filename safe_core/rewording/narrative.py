"""How a missed term could ask for the same in the narrative's own words (contract.md, "Proposals").

A rewording is one phrase of the narrative or a few, which hold together all that the term says and the narrative has.
Those that the output has too come first; then the place of the narrative that is nearest to the term, as it stands.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from safe_core.diagnosis.alignment import Term, align, term_of
from safe_core.diagnosis.numbers_in_text import rival, same
from safe_core.diagnosis.reading import Clause, Fact, is_negative
from safe_core.diagnosis.relations import weak
from safe_core.matching_rule import normalise
from safe_core.rewording.claims import SIDES, answers_how_much, are_kept, clauses_of, is_held
from safe_core.rewording.phrases import Phrases, Sentence, Stretch

MOST_PHRASES: Final = 3
_MOST_SENTENCES: Final = 4  # of the narrative, which may hold a term together
_MOST_PLACES: Final = 32  # of a term's facts in one of them
_LEAST_SHARE: Final = 0.5  # of a term is in the narrative, or it says something else
_LEAST_NEEDED: Final = 0.9  # of what is there, without weak words
_LONG_WORD: Final = 9  # letters of a single word that is no everyday one
_MOST_OF_NOUN: Final = 2  # words by which a phrase goes on to its noun
_WORD: Final = re.compile(r"[^\W_]")


class _Window(NamedTuple):
    """A piece of a sentence, from one fact to another, and the numbers of the term's facts that it holds."""

    first: Fact
    last: Fact
    held: frozenset[int]
    stretch: Stretch | None = None  # the whole phrase around it


class Narrative:
    """A narrative, read once for all terms of its case."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._phrases = Phrases(text)

    def rewordings(self, term: str, read: str) -> Iterator[tuple[Stretch, ...]]:
        """Give the rewordings of a term that keep what it claims, the best first, each once.

        `read` is what its criterion reads, normalised.
        """
        wanted = _Wanted(term_of(term), self._phrases)
        if not wanted.held or wanted.share < _LEAST_SHARE:
            return
        seen: set[tuple[Stretch, ...]] = set()
        for stretches in self._candidates(wanted, term, read):
            phrases = self.phrases(stretches)
            are_apart = all(one.end <= other.start for one, other in pairwise(stretches))
            if (
                phrases
                and are_apart
                and stretches not in seen
                and self.keeps(term, phrases)
                and wanted.is_whole_in(phrases)
            ):
                yield stretches
            seen.add(stretches)

    def phrases(self, stretches: Sequence[Stretch]) -> tuple[str, ...]:
        """Give the texts of some stretches."""
        return tuple(self.text[each.start : each.end] for each in stretches)

    def keeps(self, term: str, phrases: Sequence[str]) -> bool:
        """Tell whether phrases keep each number, time and side of a term, and all that it denies or doubts."""
        return are_kept(term, phrases, self.text)

    def tells(self, phrase: str) -> bool:
        """Tell whether it says what another narrative says in these words, and does not deny it."""
        return self._phrases.tells(phrase)

    # --- candidates ---------------------------------------------------------------------------------------------------

    def _candidates(self, wanted: "_Wanted", term: str, read: str) -> Iterator[tuple[Stretch, ...]]:
        windows = [*self._in_output(wanted, read)]
        yield from (self._cover(needed, windows) for needed in (wanted.held, wanted.needed))
        if normalise(term) not in normalise(self.text):
            for most in (1, MOST_PHRASES):
                yield self._as_told(wanted, most)

    def _in_output(self, wanted: "_Wanted", read: str) -> Iterator[_Window]:
        """Give the phrases that hold something of the term and that the output has word for word, to a noun's end."""
        for sentence, window in ((each, window) for each in wanted.sentences for window in wanted.windows(each)):
            longer = self._end_of_noun(sentence, window.last)
            ends = (longer,) if _is_attribute(window.last) else dict.fromkeys((longer, window.last.end))
            wholes = (self._whole(wanted, sentence, window.first.start, end) for end in ends)
            found = next((whole for whole in wholes if whole and _stands_in(self._written(whole), read)), None)
            if found is not None:
                yield window._replace(stretch=found)

    def _cover(self, needed: frozenset[int], windows: Sequence[_Window]) -> tuple[Stretch, ...]:
        """Choose a few phrases that hold all that is needed, the largest first; nothing if they do not."""
        left, chosen = set(needed), list[Stretch]()
        while left and len(chosen) < MOST_PHRASES:
            best = max(
                windows, key=lambda each: (len(each.held & left), each.first.start - each.last.end), default=None
            )
            if best is None or best.stretch is None or not best.held & left:
                return ()
            chosen.append(best.stretch)
            left -= best.held
        return () if left else tuple(sorted(chosen))

    def _as_told(self, wanted: "_Wanted", most: int) -> tuple[Stretch, ...]:
        """Give the narrative's own words, from the first word that is wanted to the last, sentence by sentence."""
        left, stretches = set(wanted.held), list[Stretch]()
        for sentence in wanted.sentences:
            window = max(wanted.windows(sentence), key=lambda each: (len(each.held), each.first.start - each.last.end))
            if not window.held & left or len(stretches) == most:
                continue
            whole = self._whole(wanted, sentence, window.first.start, self._end_of_noun(sentence, window.last))
            if whole is None:
                return ()
            more = [fact for fact in self._phrases.facts(whole.start, whole.end) if wanted.is_more(fact)]
            if more and (stretches or "," in self._written(whole)):
                return ()  # no output says all this in one piece
            stretches.append(whole)
            left -= window.held
        return () if left else tuple(sorted(stretches))

    def _whole(self, wanted: "_Wanted", sentence: Sentence, start: int, end: int) -> Stretch | None:
        """Widen a place to a phrase that can stand alone: no mere values, no single everyday word."""
        whole = self._phrases.whole(sentence, start, end)
        if whole is None:
            return None
        words = [fact for fact in self._phrases.facts(whole.start, whole.end) if not answers_how_much(fact)]
        is_single = " " not in self._written(whole)
        is_everyday = is_single and (whole.end - whole.start < _LONG_WORD or wanted.words > 1)
        return None if is_everyday or not (is_single or any(fact.tells for fact in words)) else whole

    def _written(self, stretch: Stretch) -> str:
        return normalise(self.text[stretch.start : stretch.end])

    def _end_of_noun(self, sentence: Sentence, last: Fact) -> int:
        """Go on to the noun behind an adjective: "examination revealing normal capillary refill"."""
        facts, is_attribute = self._phrases.facts(last.end, sentence.end), _is_attribute(last)
        end = last.end
        for at, fact in enumerate(facts[:_MOST_OF_NOUN]):
            if self.text[end : fact.start] != " " or fact.value or not (fact.tells or (at == 0 and is_attribute)):
                break
            end = fact.end
        return end


@dataclass(frozen=True)
class _Wanted:
    """What a rewording of a term must hold: all of it that is in the nearest places of the narrative."""

    term: Term
    phrases: Phrases

    @property
    def words(self) -> int:
        """How many words of content it has."""
        return sum(fact.tells and not answers_how_much(fact) for fact in self.term.facts)

    @cached_property
    def sentences(self) -> list[Sentence]:
        """The nearest sentence, and each further one that has what those before it lack."""
        ranked = sorted(
            self.phrases.sentences,
            key=lambda sentence: (-self._weight(self._held(sentence.clauses)), sentence.start),
        )
        near: list[Sentence] = []
        held: frozenset[int] = frozenset()
        for sentence in ranked[:_MOST_SENTENCES]:
            own = self._held(sentence.clauses)
            if own - held:
                near.append(sentence)
                held |= own
        return near

    @cached_property
    def held(self) -> frozenset[int]:
        """The numbers of the term's facts that are there."""
        return frozenset[int]().union(*(self._held(sentence.clauses) for sentence in self.sentences))

    @cached_property
    def needed(self) -> frozenset[int]:
        """Those that a phrase must have: a weak word may be left out of many, as in "resulting in a fracture"."""
        telling = frozenset(at for at in self.held if self.term.facts[at].tells or is_negative(self.term.facts[at]))
        return telling if self._weight(telling) >= _LEAST_NEEDED * self._weight(self.held) else self.held

    @property
    def share(self) -> float:
        """How much of the term the narrative has, or has with another value, 0 to 1."""
        whole = self.term.weight
        return self._weight(self.held) / whole if whole else 0.0

    def _held(self, clauses: Sequence[Clause]) -> frozenset[int]:
        edits = align(self.term, clauses).edits
        return frozenset(at for at, edit in enumerate(edits) if is_held(edit))

    def _weight(self, held: frozenset[int]) -> int:
        return sum(self.term.facts[at].weight for at in held)

    def windows(self, sentence: Sentence) -> list[_Window]:
        """Give the shortest pieces of a sentence that hold some facts of the term."""
        facts = [
            (fact, self._held([clause._replace(facts=(fact,))])) for clause in sentence.clauses for fact in clause.facts
        ]
        hits = [(fact, held) for fact, held in facts if held][:_MOST_PLACES]
        found = []
        for begin, (first, held) in enumerate(hits):
            inside: frozenset[int] = frozenset()
            for last, more in hits[begin:]:
                is_shortest = last is first or not (held <= inside | more or more <= held | inside)
                inside |= more if last is not first else frozenset()
                if is_shortest:
                    found.append(_Window(first, last, held | inside))
        return found

    def is_more(self, fact: Fact) -> bool:
        """Tell whether a fact is a value that the term does not ask for, nor has another one in its place."""
        value = fact.value
        values = [other.value for other in self.term.facts if other.value]
        return value is not None and not any(same(other, value) or rival(other, value) for other in values)

    def is_whole_in(self, phrases: Sequence[str]) -> bool:
        """Tell whether phrases have what the term and the nearest sentences have, in any form."""
        return self.needed <= self._held(clauses_of(*phrases))


def _is_attribute(fact: Fact) -> bool:
    """Tell whether a word describes the noun behind it: "normal | status", "left | hand"."""
    return fact.key in SIDES or weak().get((fact.key,)) in {"predicate", "modifier"}


def _stands_in(needle: str, text: str) -> bool:
    """Tell whether a needle stands in a text as whole words."""
    at = text.find(needle) if needle else -1
    while at >= 0:
        end = at + len(needle)
        before = at > 0 and _WORD.match(text[at - 1]) and _WORD.match(needle[0])
        after = end < len(text) and _WORD.match(text[end]) and _WORD.match(needle[-1])
        if not before and not after:
            return True
        at = text.find(needle, at + 1)
    return False
