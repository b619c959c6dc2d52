"""Mutation testing of expectations: which dangerous alterations of a narrative would still pass.

A perfect output, the narrative itself with the required terms that it lacks, is altered in one place at a time and
scored again (contract.md, "Mutants").
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, islice
from typing import Final, NamedTuple

from safe_core.ceiling import NarratedCase
from safe_core.diagnosis.relations import known
from safe_core.expectations import Expectations, PreparedExpectations
from safe_core.matching_rule import normalise
from safe_core.mutation.alteration import Alteration, Cut, usage
from safe_core.mutation.negations import negations
from safe_core.mutation.quantities import quantities
from safe_core.mutation.turned import turned
from safe_core.outputs import Output
from safe_core.policy import Criterion, Rules
from safe_core.scoring import label_of_counts

MOST_MUTANTS: Final = 2_000
"""Of one case: a narrative with more dangerous places is altered in the first of them alone."""

_LEAST_WORDS: Final = 4
_STOP: Final = re.compile(r"[.!?;]")
_HEADING: Final = re.compile(r"\s*:\s*(?:\n|\Z)")
_IN_NO_TEXT: Final = "\uffff"


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
        self._lists: Mapping[Criterion, tuple[str, ...]] = {
            "CR": case.expected.CR.normalised,
            "AC": case.expected.AC.normalised,
        }
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
        return sum(self._passes(each) for each in self.alterations)

    def mutants(self) -> Iterator[Mutant]:
        """Score each mutant."""
        for each in self.alterations:
            survived = self._passes(each)
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
        cut, first = self._cut, self._cut.at(alteration.start)
        sentence = cut.sentence(first)
        whole = cut.written(sentence[0], sentence[-1])
        stop = _STOP.match(cut.text, cut.words[sentence[-1]].end)  # "at 2." is not in "at 20."
        wholes = [whole, whole + stop[0]] if stop else [whole]
        if not any(self._catching(each, alteration) for each in wholes):
            return None  # and so does no part of it
        last = max(first, min(cut.at(alteration.end - 1), sentence[-1]))
        phrases = chain(_phrases(cut, sentence, first, last), wholes)
        return next(phrase for phrase in phrases if self._catching(phrase, alteration))

    def _catching(self, phrase: str, alteration: Alteration) -> tuple[Criterion, ...]:
        """Give the criteria in whose lists, which must not have it already, a phrase catches a mutant."""
        needle = normalise(phrase)
        missing = [name for name, terms in self._lists.items() if needle and needle not in terms]
        return tuple(name for name in missing if not self._passes(alteration, name, needle))

    def _passes(self, alteration: Alteration, name: Criterion = "CR", *more: str) -> bool:
        """Tell whether a mutant passes, with more terms in a list."""
        cr, ac = ((*terms, *(more if each == name else ())) for each, terms in self._lists.items())
        found = (sum(self._has(term, alteration) for term in terms) for terms in (cr, ac))
        terms = self._expected.terms._replace(CR=len(cr), AC=len(ac))
        return label_of_counts(next(found), 0, next(found), terms, self._rules) == "Pass"

    def _has(self, term: str, alteration: Alteration) -> bool:
        """Tell whether a mutant has a term; of a long text, only the part around the alteration is searched again."""
        if len(self._lowered) != len(self._unaltered) or "\u03a3" in self._unaltered:  # a final sigma is another letter
            return term in normalise(self.output(alteration).summary)
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


def _phrases(cut: Cut, sentence: range, first: int, last: int) -> Iterator[str]:
    """Give all phrases of a sentence that hold some words, the shortest first, of these the one that begins there."""
    for length in range(max(_LEAST_WORDS, last - first + 1), len(sentence) + 1):
        for begin in range(min(first, sentence[-1] - length + 1), max(sentence[0], last - length + 1) - 1, -1):
            if cut.folded(begin + length - 1) not in usage()["no end"]:
                yield cut.written(begin, begin + length - 1)
