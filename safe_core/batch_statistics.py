"""The statistics of a batch's report, counted exactly and moved row by row (contract.md, "Exact sums")."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Self

from safe_core.case_row import CaseRow, SharedFields
from safe_core.exact import exact_mean, units
from safe_core.lenient_scores import MarksTotal
from safe_core.lowest import LowestNames
from safe_core.policy import CRITERIA, UNKNOWN_ARCHETYPE
from safe_core.scoring import LABELS, Label, Scores

WORST_NAMED = 5
"""How many worst performers, and how many common misses of a kind, a report names (contract.md, "Ties")."""

_FLAWLESS = (1.0, 1.0, 1.0, 1.0)
_besides_the_label = attrgetter("fingerprint", "vacuous", "empty_output", "input_matches")
"""What Aggregates counts of a kind besides its archetype, its label and what it passed."""


@lru_cache(maxsize=4096)  # few values, met again and again
def _signed_units(scores: Scores, step: int) -> tuple[int, ...]:
    """What counting a row in (step 1) or out (step -1) adds to the four sums."""
    return tuple(step * units(score) for score in scores)


@lru_cache(maxsize=4096)
def _difference(old: Scores, new: Scores) -> tuple[int, ...]:
    """What replacing a row adds to the four sums."""
    return tuple(units(after) - units(before) for before, after in zip(old, new, strict=True))


class Tally:
    """Counts and exact sums over a group of rows: the batch, or one archetype in it."""

    __slots__ = ("cases", "labels", "passed", "units")

    def __init__(self) -> None:
        self.cases = 0
        self.labels = dict.fromkeys(LABELS, 0)
        self.passed = (0, 0, 0)
        self.units: tuple[int, ...] = (0, 0, 0, 0)

    def move(self, row: CaseRow, step: int) -> None:
        """Count a row in (step 1) or out (step -1)."""
        shared = row.shared
        first = not self.cases
        self.cases += step
        self.labels[shared.label] += step
        cr, ah, ac = self.passed
        passed = shared.passed
        self.passed = (cr + step * passed[0], ah + step * passed[1], ac + step * passed[2])
        more = _signed_units(row.scores, step)
        if first:  # whole numbers of a thousand bits, which other batches have too
            self.units = more
            return
        self._add(more)

    def replace(self, old: CaseRow, new: CaseRow) -> None:
        """Count a row out and its successor in."""
        before, after = old.shared, new.shared
        if before.label != after.label:
            self.labels[before.label] -= 1
            self.labels[after.label] += 1
        if before.passed != after.passed:
            cr, ah, ac = self.passed
            less, more = before.passed, after.passed
            self.passed = (cr - less[0] + more[0], ah - less[1] + more[1], ac - less[2] + more[2])
        if old.scores != new.scores:
            self._add(_difference(old.scores, new.scores))

    def without(self, part: "Tally") -> tuple[int, ...]:
        """Give the sums of the rows that are not in a tally of some of them."""
        return (
            tuple(all_ - some for all_, some in zip(self.units, part.units, strict=True)) if part.cases else self.units
        )

    def _add(self, more: tuple[int, ...]) -> None:
        a, b, c, d = self.units
        self.units = (a + more[0], b + more[1], c + more[2], d + more[3])


_NONE: Final = Tally()


class _Counts(dict[str, int]):
    """How often each text was counted in, less how often out; at 0 it is forgotten."""

    __slots__ = ()

    def move(self, text: str, step: int) -> None:
        count = self.get(text, 0) + step
        if count:
            self[text] = count
        else:
            del self[text]

    def in_order(self) -> dict[str, int]:
        return dict(sorted(self.items()))


class _TermCounts:
    """How often each term was missed, or violated, and which most often."""

    __slots__ = ("_counts", "_ranking")

    def __init__(self) -> None:
        self._counts = _Counts()
        self._ranking = LowestNames()

    def move(self, terms: Iterable[str], step: int) -> None:
        for term in terms:
            self._counts.move(term, step)
            self._ranking.touch(term, self._counts)

    def named(self, text_key: str, count_key: str) -> list[dict[str, Any]]:
        """Give the most frequent terms: count descending, then text ascending by code point (contract.md, "Ties")."""
        counts = self._counts
        first = self._ranking.first(WORST_NAMED, counts, lambda term: (-counts[term], term))
        return [{text_key: term, count_key: counts[term]} for term in first]


@dataclass(frozen=True, slots=True)
class BatchSnapshot:
    """The numbers of a batch at one moment, to be shown later; ratios and means are worked out when asked.

    `labels` count Pass, Review, Fail; `passed` CR, AH, AC; `vacuous` CR, AH, AC, all; `units` are the exact sums of the
    scores; `archetypes` maps each archetype to its cases and, of these, the passing ones. The `answered` ones leave out
    the failed generations: how many pass, and the sums. `marks` are of the cases that have them.
    """

    total_cases: int
    labels: tuple[int, ...]
    passed: tuple[int, ...]
    units: tuple[int, ...]
    vacuous: tuple[int, ...]
    empty_outputs: int
    expected_present: int
    archetypes: Mapping[str, tuple[int, int]]
    failed_generations: int
    answered_passes: int
    answered_units: tuple[int, ...]
    marks: MarksTotal

    @property
    def label_distribution(self) -> dict[str, int]:
        return dict(zip(LABELS, self.labels, strict=True))

    @property
    def pass_ratio(self) -> float:
        return share(self.labels[0], self.total_cases)

    @property
    def pass_ratios(self) -> dict[str, float]:
        """The share of cases that passed each criterion by their own thresholds: CR, AH, AC."""
        return {c: share(count, self.total_cases) for c, count in zip(CRITERIA, self.passed, strict=True)}

    @property
    def mean_scores(self) -> dict[str, float]:
        """The means of CR, AH, AC and composite, each rounded once (contract.md, "Exact sums")."""
        return _means(self.units, self.total_cases)

    @property
    def answered_cases(self) -> int:
        return self.total_cases - self.failed_generations

    @property
    def answered_pass_ratio(self) -> float:
        return share(self.answered_passes, self.answered_cases)

    @property
    def answered_mean_scores(self) -> dict[str, float]:
        """The means over the cases that a model answered."""
        return _means(self.answered_units, self.answered_cases)


def _means(sums: tuple[int, ...], cases: int) -> dict[str, float]:
    return {name: exact_mean(total, cases) for name, total in zip(Scores._fields, sums, strict=True)}


class Aggregates:
    """Every aggregate of a report over some rows, moved row by row."""

    __slots__ = (
        "ac_misses", "ah_violations", "archetype_cases", "archetypes", "cr_misses", "empty_outputs", "failed",
        "fingerprints", "input_mismatches", "marks", "total", "vacuous", "worst",
    )  # fmt: skip

    def __init__(self) -> None:
        self.total = Tally()
        self.failed = _NONE  # of the rows in `total`, those of failed generations; most batches have none
        self.archetypes: dict[str, Tally] = {}
        self.archetype_cases: dict[str, tuple[int, int]] = {}
        self.fingerprints = _Counts()
        self.vacuous = [0, 0, 0, 0]
        self.empty_outputs = 0
        self.input_mismatches = 0
        self.marks = MarksTotal()
        self.worst = LowestNames()
        self.cr_misses = _TermCounts()
        self.ah_violations = _TermCounts()
        self.ac_misses = _TermCounts()

    @classmethod
    def over(cls, rows: Iterable[CaseRow]) -> Self:
        """Fold from scratch."""
        aggregates = cls()
        for row in rows:
            aggregates.move(row, 1)
        return aggregates

    def move(self, row: CaseRow, step: int) -> None:
        """Count a row in (step 1) or out (step -1) of every aggregate."""
        self._move_counts(row, step)
        self._move_marks(row, step)
        self._move_terms(row, step)

    def replace(self, old: CaseRow | None, new: CaseRow | None) -> None:
        """Count a row out and its successor in, None for no row; what both have alike moves nothing."""
        if old is None or new is None:
            if old is not None:
                self.move(old, -1)
            if new is not None:
                self.move(new, 1)
            return
        if old.marks != new.marks:
            self._move_marks(old, -1)
            self._move_marks(new, 1)
        before, after = old.shared, new.shared
        if before.archetype != after.archetype:
            self._move_counts(old, -1)
            self._move_counts(new, 1)
        elif before != after or old.scores != new.scores:
            self.total.replace(old, new)
            self._replace_in_archetype(old, new)
            self._move_failed(old, -1)
            self._move_failed(new, 1)
            if _besides_the_label(before) != _besides_the_label(after):
                self._move_shared(before, -1)
                self._move_shared(after, 1)
        if not old.has_details_of(new):
            self._move_terms(old, -1)
            self._move_terms(new, 1)

    def _move_counts(self, row: CaseRow, step: int) -> None:
        self.total.move(row, step)
        self._move_failed(row, step)
        self._move_in_archetype(row, step)
        self._move_shared(row.shared, step)

    def _move_marks(self, row: CaseRow, step: int) -> None:
        if row.marks is not None:
            self.marks = self.marks.moved(row.marks, step)

    def _move_failed(self, row: CaseRow, step: int) -> None:
        if row.shared.failed:
            if self.failed is _NONE:
                self.failed = Tally()
            self.failed.move(row, step)

    def _move_shared(self, shared: SharedFields, step: int) -> None:
        self.fingerprints.move(shared.fingerprint, step)
        if shared.empty_output:
            self.empty_outputs += step
        if shared.input_matches is False:
            self.input_mismatches += step
        if True in shared.vacuous:
            for position, vacuous in enumerate((*shared.vacuous, all(shared.vacuous))):
                self.vacuous[position] += step * vacuous

    def _move_terms(self, row: CaseRow, step: int) -> None:
        if row.scores != _FLAWLESS:  # otherwise no list has a term to count
            details = row.details
            self.cr_misses.move(details.cr_missing, step)
            self.ah_violations.move(details.ah_violations, step)
            self.ac_misses.move(details.ac_missing, step)

    def _move_in_archetype(self, row: CaseRow, step: int) -> None:
        name = row.shared.archetype or UNKNOWN_ARCHETYPE
        tally = self.archetypes.get(name)
        if tally is None:
            tally = self.archetypes[name] = Tally()
        tally.move(row, step)
        if tally.cases:
            self.archetype_cases[name] = tally.cases, tally.labels["Pass"]
        else:
            del self.archetypes[name], self.archetype_cases[name]

    def _replace_in_archetype(self, old: CaseRow, new: CaseRow) -> None:
        name = new.shared.archetype or UNKNOWN_ARCHETYPE
        tally = self.archetypes[name]
        tally.replace(old, new)
        self.archetype_cases[name] = tally.cases, tally.labels["Pass"]


class Standing:
    """What is asked of a batch after each record: labels, runs, expected test cases and failures of its rows."""

    __slots__ = ("expected", "failed", "labels", "runs")

    def __init__(self, rows: Iterable[CaseRow] = ()) -> None:
        self.labels = dict.fromkeys(LABELS, 0)
        self.runs = _Counts()
        self.expected = 0
        self.failed = 0
        for row in rows:
            self.move(row.shared, 1)

    def move(self, shared: SharedFields, step: int) -> None:
        """Count a row of this kind in (step 1) or out (step -1)."""
        self.labels[shared.label] += step
        self.runs.move(shared.run_id or "", step)
        if shared.expected:
            self.expected += step
        if shared.failed:
            self.failed += step


def share(part: int, whole: int) -> float:
    """Give a fraction in [0, 1]; 0.0 of nothing."""
    return part / whole if whole else 0.0


def summary(labels: Mapping[Label, int], cases: int) -> dict[str, Any]:
    """Give the `summary` of a report: how many cases have each label, and the share that passes."""
    return {
        "total_cases": cases,
        "pass": labels["Pass"],
        "review": labels["Review"],
        "fail": labels["Fail"],
        "overall_pass_rate": share(labels["Pass"], cases),
    }


def breakdown(tally: Tally) -> dict[str, Any]:
    """Give the line of an archetype in a report."""
    cr, ah, ac = (exact_mean(total, tally.cases) for total in tally.units[:3])
    return {
        "count": tally.cases,
        "mean_CR": cr,
        "mean_AH": ah,
        "mean_AC": ac,
        "pass_rate": share(tally.labels["Pass"], tally.cases),
    }
