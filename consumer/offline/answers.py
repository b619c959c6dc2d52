"""The two answers about missed terms: a choice by them, and how often terms are found by how a narrative words them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from consumer.offline.scored_run import CaseLine, Explanation, ScoredRun
from safe_core.diagnosis import NARRATIVE_SAYS, OUTPUT_SAYS, Miss, NarrativeSays, Occurrence

_FEWEST: Final = 10
"""Of fewer terms of either wording, nothing is said about how many were found."""
_HAS_IT: Final = frozenset[NarrativeSays](("supported", "partly"))


@dataclass(frozen=True, slots=True)
class AnswerFilter:
    """Which missed terms are shown: those of which output and narrative say one of these; none given is any."""

    output_says: Collection[str] = ()
    narrative_says: Collection[str] = ()

    def __bool__(self) -> bool:
        return bool(self.output_says or self.narrative_says)

    def has(self, miss: Miss) -> bool:
        """Tell whether a miss is one of them; nobody says anything of what the model was not asked for."""
        if miss.verdict == "not_asked_for":
            return not self
        return miss.output_says in (self.output_says or OUTPUT_SAYS) and (
            miss.narrative_says in (self.narrative_says or NARRATIVE_SAYS)
        )

    def narrowed(self, run: ScoredRun) -> ScoredRun:
        """Explain no other case than those with such a miss, and of these nothing else, if there is a choice."""
        if not self or run.explanations is None:
            return run
        kept: dict[str, Explanation] = {}
        for test_id, each in run.explanations.items():
            if misses := tuple(filter(self.has, each.diagnosis.misses)):
                kept[test_id] = replace(each, diagnosis=replace(each.diagnosis, misses=misses, occurrences=()))
        cases = [
            replace(case, doubtful=(), near=(), unsupported=()) if case.test_id in kept else case for case in run.cases
        ]
        return replace(run, cases=cases, explanations=kept)


ANY_ANSWER: Final = AnswerFilter()


# --- how often each wording is found ----------------------------------------------------------------------------------


class Wordings(NamedTuple):
    """How many terms were found, and of how many: those that the narrative words otherwise, and verbatim ones.

    A term that the narrative does not say at all is neither.
    """

    otherwise: int
    of_otherwise: int
    verbatim: int
    of_verbatim: int

    @property
    def in_words(self) -> str | None:
        """Say it, and what may be done about it; None where there are too few of either to compare."""
        if min(self.of_otherwise, self.of_verbatim) < _FEWEST:
            return None
        said = (
            f"{self.otherwise} of {self.of_otherwise} terms that the narrative words otherwise were found, "
            f"{self.verbatim} of {self.of_verbatim} verbatim ones."
        )
        is_rarer = self.otherwise * self.of_verbatim < self.verbatim * self.of_otherwise
        return said + (" To have such terms found more often, write them in the narrative's words." if is_rarer else "")


def wordings(explained: Sequence[tuple[CaseLine, Explanation]]) -> Wordings:
    """Count the required terms of explained cases by how their narratives word them."""
    found: Counter[bool] = Counter()
    missed: Counter[bool] = Counter()
    for case, explanation in explained:
        if not case.has_reasons or not explanation.narrative:
            continue
        found.update(_verbatim(explanation.diagnosis.occurrences))
        missed.update(_verbatim(explanation.diagnosis.misses))
    return Wordings(found[False], found[False] + missed[False], found[True], found[True] + missed[True])


def _verbatim(terms: Iterable[Miss | Occurrence]) -> Iterator[bool]:
    """Tell of each required term that the narrative says whether it is there word for word."""
    for each in terms:
        is_verbatim = each.in_narrative == "yes"
        if is_verbatim or each.narrative_says in _HAS_IT:
            yield is_verbatim
