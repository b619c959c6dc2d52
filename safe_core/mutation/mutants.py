"""Mutation testing of expectations: which dangerous alterations of a narrative would still pass.

A perfect output, the narrative itself with the required terms that it lacks, is altered in one place at a time and
scored again (contract.md, "Mutants").
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Final, NamedTuple

from safe_core.ceiling import NarratedCase
from safe_core.diagnosis.sentences import sentences
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.words import word_set, words
from safe_core.expectations import Expectations, PreparedExpectations, prepare
from safe_core.matching_rule import normalise
from safe_core.mutation.alteration import Alteration, Cut, MutantKind
from safe_core.mutation.negations import negations_added, negations_removed
from safe_core.mutation.opposites import opposites
from safe_core.mutation.quantities import quantities
from safe_core.outputs import Output
from safe_core.policy import Criterion, Rules
from safe_core.scoring import score

MOST_MUTANTS: Final = 2_000
"""Of one case: a narrative with more dangerous places is altered in the first of them alone."""

_MOST_WORDS: Final = 100_000
_ENDS_PHRASE: Final = word_set("and or but that which who although though while during with after before as by")
_NO_END: Final = word_set("a an the of in on at to for from no not was were is are his her their")
_LEAST_WORDS, _MOST_WORDS_ON = 3, 6
_STOP: Final = re.compile(r"[.!?;]")
_IN_NO_TEXT: Final = "\uffff"
_IN_LISTS: Final[frozenset[MutantKind]] = frozenset(("normal_abnormal", "grade"))


class Mutant(NamedTuple):
    """A perfect output that was altered in one place; it `survived` if it still passes.

    `suggestion` is a phrase that would catch it, None where it is caught or none would, and `lists` are the criteria to
    whose lists it would have to be added. `one_miss_passes`: it survives, and no added term at all would catch it.
    """

    alteration: Alteration
    before: str
    survived: bool
    suggestion: str | None
    lists: tuple[Criterion, ...] = ()
    one_miss_passes: bool = False


class MutatedCase:
    """A test case with a narrative, and its mutants. Raises ValueError for one without."""

    def __init__(self, case: NarratedCase) -> None:
        if case.narrative is None:
            raise ValueError("a case without a narrative has no mutants")
        self._narrative: str = case.narrative
        self._expected: PreparedExpectations = case.expected
        self._rules: Rules = case.rules
        self._lacking = _lacking(case.expected.expectations, case.narrative)

    @cached_property
    def alterations(self) -> list[Alteration]:
        """The dangerous places of the narrative with what they become, in its order; at most MOST_MUTANTS."""
        return list(islice(alterations(self._narrative), MOST_MUTANTS))

    @property
    def survivors(self) -> int:
        """How many mutants still pass."""
        return sum(self._passes(self._expected, each) for each in self.alterations)

    def mutants(self) -> Iterator[Mutant]:
        """Score each mutant."""
        for each in self.alterations:
            survived = self._passes(self._expected, each)
            suggestion = self.suggestion(each) if survived else None
            yield Mutant(
                each,
                self._narrative[each.start : each.end],
                survived,
                suggestion,
                lists=() if suggestion is None else self._catching(suggestion, each),
                one_miss_passes=survived and suggestion is None and not self._catching(_IN_NO_TEXT, each),
            )

    def output(self, alteration: Alteration) -> Output:
        """Give the perfect output with one alteration of its narrative."""
        return Output(summary="\n".join((alteration.applied(self._narrative), *self._lacking)))

    def suggestion(self, alteration: Alteration) -> str | None:
        """Give a phrase of the narrative, a sentence at most, with which one of the lists would catch a mutant."""
        place = _Place.of(self._narrative, self._sentences, alteration)
        if not any(self._catching(whole, alteration) for whole in place.wholes):
            return None  # and so does no part of it
        return next((phrase for phrase in place.phrases() if self._catching(phrase, alteration)), None)

    def _catching(self, phrase: str, alteration: Alteration) -> tuple[Criterion, ...]:
        """Give the criteria in whose lists, which must not have it already, a phrase catches a mutant."""
        if not normalise(phrase):
            return ()
        asked = self._expected.expectations
        longer: dict[Criterion, Expectations] = {}
        if normalise(phrase) not in map(normalise, asked.must_find_signals):
            longer["CR"] = replace(asked, must_find_signals=(*asked.must_find_signals, phrase))
        if normalise(phrase) not in map(normalise, asked.must_contain_phrases):
            longer["AC"] = replace(asked, must_contain_phrases=(*asked.must_contain_phrases, phrase))
        return tuple(name for name, each in longer.items() if not self._passes(prepare(each), alteration))

    def _passes(self, expected: PreparedExpectations, alteration: Alteration) -> bool:
        return score(expected, self.output(alteration), self._rules).label == "Pass"

    @cached_property
    def _sentences(self) -> list[list[Item]]:
        return list(sentences(self._narrative, words(self._narrative, _MOST_WORDS)))


def alterations(narrative: str) -> Iterator[Alteration]:
    """Give each dangerous alteration of a narrative once, in its order."""
    cut = Cut(narrative, words(narrative, _MOST_WORDS))
    items = {item.start: item for sentence in sentences(narrative, cut.words) for item in sentence}
    found = [*negations_removed(cut), *negations_added(cut), *quantities(cut, items), *opposites(cut, items)]
    unchanged = normalise(narrative)
    once = dict.fromkeys(sorted(found, key=lambda each: (each.start, each.end, each.kind, each.after)))
    return (each for each in once if normalise(each.applied(narrative)) != unchanged)


def _lacking(expectations: Expectations, narrative: str) -> tuple[str, ...]:
    """Give the required terms that a narrative lacks, CR then AC, each once."""
    text = normalise(narrative)
    required = (*expectations.must_find_signals, *expectations.must_contain_phrases)
    return tuple(dict.fromkeys(term for term in required if normalise(term) not in text))


# --- what would catch a survivor --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """The words `first` to `last` of a sentence, which are altered."""

    narrative: str
    items: list[Item]
    first: int
    last: int
    kind: MutantKind

    @classmethod
    def of(cls, narrative: str, cut: list[list[Item]], alteration: Alteration) -> "_Place":
        for items in cut:
            touched = [
                at for at, item in enumerate(items) if item.start < alteration.end and alteration.start < item.end
            ]
            if touched:
                return cls(narrative, items, touched[0], touched[-1], alteration.kind)
        raise ValueError("an alteration of no word")

    @property
    def wholes(self) -> tuple[str, str]:
        """The sentence, without its full stop and with it: "at 2." is not in "at 20."."""
        end = self.items[-1].end
        stop = _STOP.match(self.narrative, end)
        return self.text(0, len(self.items) - 1), self.narrative[self.items[0].start : stop.end() if stop else end]

    def text(self, first: int, last: int) -> str:
        """Give the words as they are written."""
        return self.narrative[self.items[first].start : self.items[last].end]

    def phrases(self) -> Iterator[str]:
        """Give the rest of the phrase from the place on, longer and longer before it, then all that hold the place."""
        last = self._end_of_phrase()
        first = self.first
        while last - first + 1 < _LEAST_WORDS and first > 0 and not self.items[first].pause:
            first -= 1
        yield from (self.text(begin, last) for begin in range(first, -1, -1))
        for length in range(max(_LEAST_WORDS, self.last - self.first + 1), len(self.items) + 1):
            for first in range(max(0, self.last - length + 1), min(self.first, len(self.items) - length) + 1):
                yield self.text(first, first + length - 1)
        yield self.wholes[1]

    def _end_of_phrase(self) -> int:
        last = self.last
        while last + 1 < len(self.items) and last - self.last < _MOST_WORDS_ON:
            following = self.items[last + 1]
            is_listed = last == self.last and self.kind in _IN_LISTS  # as in "a pink, warm hand"
            if (following.pause and not is_listed) or following.folded in _ENDS_PHRASE:
                break
            last += 1
        while last > self.last and self.items[last].folded in _NO_END:
            last -= 1
        return last
