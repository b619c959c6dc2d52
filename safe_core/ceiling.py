"""The ceiling of test cases: what an output that copies each narrative word for word would get."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from safe_core.expectations import PreparedExpectations
from safe_core.matching_rule import normalise, which_occur
from safe_core.outputs import Output
from safe_core.policy import Rules
from safe_core.scoring import Label, score

_COUNTS = ("cases", "pass", "review", "fail", "terms", "not_in_narrative", "without_narrative")


class InvalidCeiling(ValueError):
    """A document that is no ceiling."""


class NarratedCase(NamedTuple):
    """A test case with the narrative that a prompt is given of it, None where it has none, and the rules in force."""

    expected: PreparedExpectations
    narrative: str | None
    rules: Rules


class Ceiling(NamedTuple):
    """What a verbatim copy of each narrative would get, as signals and as summary, no question asked.

    The labels are those of the cases with a narrative, `terms` their required terms; `without_narrative` counts the
    others, of which nobody knows.
    """

    cases: int
    passes: int
    reviews: int
    fails: int
    terms: int
    not_in_narrative: int
    without_narrative: int

    @classmethod
    def parse(cls, document: object) -> Self:
        """Read what document() gives; raises InvalidCeiling."""
        if not isinstance(document, Mapping):
            raise InvalidCeiling("not an object")
        stated = (document.get(name) for name in _COUNTS)
        counts = [each for each in stated if isinstance(each, int) and not isinstance(each, bool) and each >= 0]
        if len(counts) != len(_COUNTS):
            raise InvalidCeiling("a count is missing, or is not a whole number from 0 up")
        found = cls(*counts)
        copied = found.passes + found.reviews + found.fails
        if copied + found.without_narrative != found.cases or found.not_in_narrative > found.terms:
            raise InvalidCeiling("the counts contradict each other")
        return found

    def document(self) -> dict[str, int]:
        """Give the `ceiling` of a report."""
        return dict(zip(_COUNTS, self, strict=True))

    @property
    def pass_rate(self) -> float:
        """The highest pass rate that copying can reach; a case without a narrative counts as if it could pass."""
        return (self.passes + self.without_narrative) / self.cases if self.cases else 1.0

    @property
    def sentence(self) -> str:
        """Say it, as "at most 24 of 50 cases would pass even if each output were a copy of its narrative"."""
        copied = self.cases - self.without_narrative
        if not copied:
            return "no case that can be scored has a narrative"
        cases = "case" if copied == 1 else "cases"
        one = self.without_narrative == 1
        without = (
            f"{self.without_narrative} {'case without a narrative is' if one else 'cases without a narrative are'}"
        )
        left = f" ({without} not counted)" if self.without_narrative else ""
        most = f"at most {self.passes} of {copied} {cases} would pass"
        return f"{most} even if each output were a copy of its narrative{left}"


def ceiling(cases: Iterable[NarratedCase]) -> Ceiling:
    """Work out what copying can reach; the same policy judges as judges the outputs."""
    labels: Counter[Label] = Counter()
    total = terms = absent = without = 0
    for case in cases:
        total += 1
        if case.narrative is None:
            without += 1
            continue
        verbatim = Output(signals=(case.narrative,), summary=case.narrative)
        labels[score(case.expected, verbatim, case.rules).label] += 1
        required = (*case.expected.CR.normalised, *case.expected.AC.normalised)
        terms += len(required)
        absent += which_occur(normalise(case.narrative), required).count(False)
    return Ceiling(total, labels["Pass"], labels["Review"], labels["Fail"], terms, absent, without)
