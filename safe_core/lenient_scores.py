"""What stands beside a case's CR and AC, and never moves a label: recall allowing for wording, and coverage.

Lenient recall counts the found terms, also the doubtful ones, and those that the output says in other words, or in
words that people accept. Coverage is the mean share of each term that the output has, in whole thousandths
(contract.md, "Lenient recall").
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple, Self

from safe_core.exact import exact_mean, units
from safe_core.intervals import clustered_wilson

TermCriterion = Literal["CR", "AC"]
RECALLED: Final[tuple[TermCriterion, ...]] = ("CR", "AC")
"""The criteria that look for terms, in the order of every list here."""


class Recall(NamedTuple):
    """The terms of one criterion in one case: listed, found (`doubtful` of them in doubt), and said in other words.

    Those of `accepted` have an accepted wording in the output, and are not among the said ones. `shares` sums what the
    output has of each, 1000 for all of it.
    """

    terms: int
    found: int
    doubtful: int
    said: int
    accepted: int
    shares: int

    @property
    def recalled(self) -> int:
        """How many were found, said or accepted."""
        return self.found + self.said + self.accepted

    @property
    def lenient(self) -> float:
        """The share of the listed terms that were recalled; 1 where there are none, as the score is."""
        return self.recalled / self.terms if self.terms else 1.0

    @property
    def coverage(self) -> int:
        """The mean share in thousandths, cut off: only what is there in full reaches 1000."""
        return self.shares // self.terms if self.terms else 1000


class Lenient(NamedTuple):
    """Both criteria of a case that look for terms."""

    CR: Recall
    AC: Recall

    @property
    def marks(self) -> "Marks":
        return Marks(self.CR.lenient, self.AC.lenient, self.CR.coverage, self.AC.coverage)


class Marks(NamedTuple):
    """The numbers of a case: lenient recall from 0 to 1, coverage in thousandths."""

    lenient_cr: float
    lenient_ac: float
    coverage_cr: int
    coverage_ac: int

    @property
    def document(self) -> dict[str, dict[str, float]]:
        """Give them as a result has them."""
        return {
            "lenient": {"CR": self.lenient_cr, "AC": self.lenient_ac},
            "coverage": {"CR": self.coverage_cr / 1000, "AC": self.coverage_ac / 1000},
        }


class MarksTotal(NamedTuple):
    """The exact sums of the marks of some cases: of the lenient ones in units(), of coverage in thousandths."""

    cases: int = 0
    lenient: tuple[int, int] = (0, 0)
    coverage: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, marks: Iterable[Marks]) -> Self:
        total = cls()
        for each in marks:
            total = total.moved(each, 1)
        return total

    def moved(self, marks: Marks, step: int) -> Self:
        """Count a case in (step 1) or out (step -1)."""
        (cr, ac), (covered_cr, covered_ac) = self.lenient, self.coverage
        return type(self)(
            self.cases + step,
            (cr + step * units(marks.lenient_cr), ac + step * units(marks.lenient_ac)),
            (covered_cr + step * marks.coverage_cr, covered_ac + step * marks.coverage_ac),
        )

    def with_those_of(self, other: "MarksTotal") -> "MarksTotal":
        """Count the cases of both."""
        lenient, coverage = (
            (one[0] + two[0], one[1] + two[1])
            for one, two in ((self.lenient, other.lenient), (self.coverage, other.coverage))
        )
        return MarksTotal(self.cases + other.cases, lenient, coverage)

    @property
    def means(self) -> dict[str, Any]:
        """Give `mean_lenient` and `mean_coverage`, each rounded once, and of how many cases; nothing of no cases."""
        if not self.cases:
            return {}
        lenient = (exact_mean(total, self.cases) for total in self.lenient)
        coverage = (total / (1000 * self.cases) for total in self.coverage)
        return {
            "mean_lenient": dict(zip(RECALLED, lenient, strict=True)),
            "mean_coverage": dict(zip(RECALLED, coverage, strict=True)),
            "lenient_cases": self.cases,
        }


def by_term(recalls: Sequence[Recall]) -> dict[str, Any]:
    """Give the terms of a criterion over all cases, and the share of them that was recalled, with its interval.

    The terms of one output stand or fall together, so the interval is that of a sample by case.
    """
    total = Recall(*(sum(column) for column in zip(*recalls, strict=True)))
    low, high = clustered_wilson([(each.recalled, each.terms) for each in recalls])
    counts = total._asdict()
    del counts["shares"]
    return {
        **counts,
        "recall": total.lenient if total.terms else None,
        "interval": [low, high] if total.terms else None,
    }
