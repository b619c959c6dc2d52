"""Which cases the list of `safe review` shows, and in which order; the address of each page says it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from consumer.offline.answers import ANY_ANSWER, AnswerFilter
from consumer.offline.review_cases import ReviewedCase
from consumer.offline.scored_run import RANKS
from safe_core import LABELS
from safe_core.diagnosis import NARRATIVE_SAYS, OUTPUT_SAYS


class Totals(NamedTuple):
    """How many terms of the listed cases are decided, of how many; and how many of these cases have a verdict."""

    decided: int
    terms: int
    verdicts: int


@dataclass(frozen=True, slots=True)
class Listing:
    """A choice among the cases; `search` is looked for in names and terms, `label` "" is any."""

    label: str = ""
    answers: AnswerFilter = ANY_ANSWER
    search: str = ""
    is_undecided: bool = False
    in_file_order: bool = False

    @classmethod
    def of_query(cls, query: Iterable[tuple[str, str]]) -> "Listing":
        """Read the query of an address; what is unknown there chooses nothing."""
        asked = [*query]

        def among(name: str, known: Sequence[str]) -> tuple[str, ...]:
            return tuple(value for value in known if (name, value) in asked)

        answers = AnswerFilter(among("output_says", OUTPUT_SAYS), among("narrative_says", NARRATIVE_SAYS))
        return cls(
            next(iter(among("label", LABELS)), ""),
            answers,
            next((value.strip() for name, value in asked if name == "search"), ""),
            ("undecided", "1") in asked,
            ("order", "files") in asked,
        )

    @property
    def query(self) -> str:
        """The query of an address, with its question mark; "" for all cases in the usual order."""
        chosen = [
            ("label", self.label),
            ("search", self.search),
            *(("output_says", each) for each in self.answers.output_says),
            *(("narrative_says", each) for each in self.answers.narrative_says),
            ("undecided", "1" if self.is_undecided else ""),
            ("order", "files" if self.in_file_order else ""),
        ]
        told = urlencode([(name, value) for name, value in chosen if value])
        return f"?{told}" if told else ""

    def numbers(self, cases: Sequence[ReviewedCase]) -> list[int]:
        """Give the numbers of the chosen cases in their order: those that fail come first, unless asked otherwise."""
        return sorted((at for at, case in enumerate(cases) if self._has(case)), key=lambda at: self._place(cases, at))

    def around(self, cases: Sequence[ReviewedCase], number: int) -> tuple[list[int], list[int]]:
        """Give the chosen cases before a case and after it, which need not be one of them itself."""
        chosen, here = self.numbers(cases), self._place(cases, number)
        before = [each for each in chosen if self._place(cases, each) < here]
        return before, [each for each in chosen if self._place(cases, each) > here]

    def is_open(self, case: ReviewedCase) -> bool:
        """Tell whether a case has a chosen term that nobody has decided on."""
        return any(not item.is_decided for _, item in case.items_with(self.answers))

    def totals(self, cases: Iterable[ReviewedCase]) -> Totals:
        """Count what is decided about some cases, as far as they are explained."""
        known = [*cases]
        items = [item for case in known if case.is_explained for _, item in case.items_with(self.answers)]
        verdicts = sum(case.decision is not None for case in known)
        return Totals(sum(item.is_decided for item in items), len(items), verdicts)

    def _has(self, case: ReviewedCase) -> bool:
        """Tell whether a case is chosen; by its answers only once it is explained."""
        if self.label not in {"", case.line.label} or self.search.casefold() not in case.searched:
            return False
        if not case.is_explained:
            return not self.answers
        return bool(not self.answers or case.items_with(self.answers)) and (not self.is_undecided or self.is_open(case))

    def _place(self, cases: Sequence[ReviewedCase], number: int) -> tuple[int, int]:
        return (0 if self.in_file_order else RANKS[cases[number].line.label], number)
