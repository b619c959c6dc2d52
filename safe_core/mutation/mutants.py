"""Mutation testing of expectations: which dangerous alterations of a narrative would still pass.

A perfect output, the narrative itself with the required terms that it lacks, is altered in one place at a time and
scored again (contract.md, "Mutants").
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from typing import Final, NamedTuple

from safe_core.ceiling import NarratedCase
from safe_core.diagnosis.relations import known
from safe_core.expectations import Expectations, PreparedExpectations, prepare
from safe_core.matching_rule import normalise
from safe_core.mutation.alteration import Alteration, Cut, MutantKind, usage
from safe_core.mutation.negations import negations
from safe_core.mutation.quantities import quantities
from safe_core.mutation.turned import turned
from safe_core.outputs import Output
from safe_core.policy import Criterion, Rules
from safe_core.scoring import label_of_counts, score

MOST_MUTANTS: Final = 2_000
"""Of one case: a narrative with more dangerous places is altered in the first of them alone."""

_LEAST_WORDS, _MOST_WORDS_ON = 3, 6
_STOP: Final = re.compile(r"[.!?;]")
_HEADING: Final = re.compile(r"\s*:\s*(?:\n|\Z)")
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
        self._places: dict[str, tuple[int, int]] = {}  # of a term, where it is first and last

    @property
    def alterations(self) -> Sequence[Alteration]:
        """The dangerous places of the narrative with what they become, in its order; at most MOST_MUTANTS."""
        return _first_alterations(self._narrative)

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
        place = _Place.of(self._cut, alteration)
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
        """Tell whether a mutant passes; of a long text, only what is around the alteration is searched anew."""
        if len(self._lowered) != len(self._unaltered) or "\u03a3" in self._unaltered:  # a final sigma is another letter
            return score(expected, self.output(alteration), self._rules).label == "Pass"
        found = (
            sum(self._has(term, alteration) for term in terms)
            for terms in (expected.CR.normalised, expected.AC.normalised)
        )
        return label_of_counts(next(found), 0, next(found), expected.terms, self._rules) == "Pass"

    def _has(self, term: str, alteration: Alteration) -> bool:
        if term not in self._places:
            self._places[term] = self._lowered.find(term), self._lowered.rfind(term)
        first, last = self._places[term]
        if (0 <= first <= alteration.start - len(term)) or last >= alteration.end:
            return True
        before = self._lowered[max(0, alteration.start - len(term)) : alteration.start]
        return term in before + alteration.after.lower() + self._lowered[alteration.end : alteration.end + len(term)]

    @cached_property
    def _unaltered(self) -> str:
        return "\n".join((self._narrative, *self._lacking))

    @cached_property
    def _lowered(self) -> str:
        return self._unaltered.lower()

    @cached_property
    def _cut(self) -> Cut:
        return Cut(self._narrative)


@lru_cache(maxsize=16)
def _first_alterations(narrative: str) -> tuple[Alteration, ...]:
    return tuple(islice(alterations(narrative), MOST_MUTANTS))


def alterations(narrative: str) -> Iterator[Alteration]:
    """Give each dangerous alteration of a narrative once, in its order: none of headings, questions and small talk."""
    cut = Cut(narrative)
    found = (each for each in (*negations(cut), *quantities(cut), *turned(cut)) if _matters(cut, each))
    unchanged = normalise(narrative)
    once = dict.fromkeys(sorted(found, key=lambda each: (each.start, each.end, each.kind, each.after)))
    return (each for each in once if normalise(each.applied(narrative)) != unchanged)


def _matters(cut: Cut, alteration: Alteration) -> bool:
    """Tell whether a text tells something clinical where it is altered; of what is spoken, beside what is altered."""
    clause = cut.clause(alteration.start) or cut.clause(alteration.end - 1)
    place = clause or alteration
    line = cut.text[cut.text.rfind("\n", 0, place.start) + 1 : place.end]
    is_spoken = cut.is_spoken(place.start, place.end)
    if clause is None:
        return not is_spoken  # a denial alone: "none"
    is_heading = _HEADING.match(cut.text, clause.end) or (line.isupper() and cut.text[clause.end :][:1] == "\n")
    if is_heading or any("asked" in fact.statuses for fact in clause.facts):
        return False
    beside = (fact.key for fact in clause.facts if not alteration.start <= fact.start < alteration.end)
    return not is_spoken or not known().isdisjoint(beside)


def _lacking(expectations: Expectations, narrative: str) -> tuple[str, ...]:
    """Give the required terms that a narrative lacks, CR then AC, each once."""
    text = normalise(narrative)
    required = (*expectations.must_find_signals, *expectations.must_contain_phrases)
    return tuple(dict.fromkeys(term for term in required if normalise(term) not in text))


# --- what would catch a survivor --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """The words `first` to `last` of a sentence, which are altered."""

    cut: Cut
    sentence: range
    first: int
    last: int
    kind: MutantKind

    @classmethod
    def of(cls, cut: Cut, alteration: Alteration) -> "_Place":
        first = cut.at(alteration.start)
        if first == len(cut.words):
            raise ValueError("an alteration of no word")
        sentence = cut.sentence(first)
        last = max(first, min(cut.at(alteration.end - 1), sentence[-1]))
        return cls(cut, sentence, first, last, alteration.kind)

    @property
    def wholes(self) -> tuple[str, str]:
        """The sentence, without its full stop and with it: "at 2." is not in "at 20."."""
        start, end = self.cut.words[self.sentence[0]].start, self.cut.words[self.sentence[-1]].end
        stop = _STOP.match(self.cut.text, end)
        return self.cut.text[start:end], self.cut.text[start : stop.end() if stop else end]

    def phrases(self) -> Iterator[str]:
        """Give the rest of the phrase from the place on, longer and longer before it, then all that hold the place."""
        least, most = self.sentence[0], self.sentence[-1]
        last = self._end_of_phrase()
        first = self.first
        while last - first + 1 < _LEAST_WORDS and first > least and not self.cut.pauses(first):
            first -= 1
        yield from (self.cut.written(begin, last) for begin in range(first, least - 1, -1))
        for length in range(max(_LEAST_WORDS, self.last - self.first + 1), len(self.sentence) + 1):
            for first in range(max(least, self.last - length + 1), min(self.first, most - length + 1) + 1):
                yield self.cut.written(first, first + length - 1)
        yield self.wholes[1]

    def _end_of_phrase(self) -> int:
        last = self.last
        while last < self.sentence[-1] and last - self.last < _MOST_WORDS_ON:
            is_listed = last == self.last and self.kind in _IN_LISTS  # as in "a pink, warm hand"
            is_parted = self.cut.pauses(last + 1) and not is_listed
            if is_parted or self.cut.folded(last + 1) in usage()["parts phrase"]:
                break
            last += 1
        while last > self.last and self.cut.folded(last) in usage()["no end"]:
            last -= 1
        return last
