"""`safe compare`: what changed between two reports over the same test cases, case by case and in all.

A case is judged if both reports hold an answer of a model to it, each made from the case's own narrative as far as
anyone knows. Every other case is listed with the reason. It is *lost* if the base report answers it and the new one
does not, unless the call of the model failed.

What chance may explain is tested by case, since the terms of one output are found or missed together: a case that got
better in some respect counts once for it, and a case that got worse once against it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from consumer.errors import ConfigurationError
from consumer.offline.scored_run import RANKS
from consumer.offline.stored_report import LISTED, Listed, StoredResult, StoredResults, checked_summary, part_of
from consumer.text import count_of, natural_order, printable
from safe_core import CRITERIA, LABELS, Criterion, Label, Scores
from safe_core.decimals import compare_decimals
from safe_core.exact import exact_mean, units
from safe_core.lenient_scores import RECALLED
from safe_core.significance import CHANCE, holm, sign_test

Reason = Literal["not_in_report", "no_output", "failed_generation", "input_mismatch"]
"""Why one of two reports does not answer a case; the first that applies."""

_REASONS: Final[tuple[Reason, ...]] = get_args(Reason)

Respect = Literal["labels", "composites", "lenient", "terms", "near_violations", "unsupported"]
"""In what cases may have got better or worse; of two that say as much, the first is named."""


# --- what is compared -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two reports; `fingerprint` and `rule` are None where it names none.

    `missing_outputs` counts the cases that no output answered: they scored as empty ones. `unanswered` are their
    test_ids, as far as the report names them.
    """

    name: str
    concern_id: str
    complete: bool
    missing_outputs: int
    unanswered: frozenset[str]
    fingerprint: str | None
    rule: str | None
    configuration: Mapping[str, Any]
    results: Mapping[str, StoredResult]

    def labelled(self, label: Label) -> int:
        """Count the cases with a label."""
        return sum(result.label == label for result in self.results.values())

    def lacks(self, test_id: str) -> Reason | None:
        """Say why the report does not answer a case, None if it does."""
        result = self.results.get(test_id)
        if result is None:
            return "not_in_report"
        if test_id in self.unanswered:
            return "no_output"
        if result.generation == "failed":
            return "failed_generation"
        return "input_mismatch" if result.input_matches is False else None


class TermChange(NamedTuple):
    """The terms of a criterion by which a case lost what it had (of AH: newly used), and those that it won back."""

    criterion: Criterion
    lost: tuple[str, ...]
    won: tuple[str, ...]


class ListChange(NamedTuple):
    """What both reports list of a case beside its scores, and what of it is new or gone."""

    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def new(self) -> tuple[str, ...]:
        return without(self.after, self.before)

    @property
    def gone(self) -> tuple[str, ...]:
        return without(self.before, self.after)


@dataclass(frozen=True, slots=True)
class Change:
    """One judged test case, as both reports have it."""

    test_id: str
    before: StoredResult
    after: StoredResult

    @property
    def step(self) -> int:
        """By how many labels it rose (above 0) or fell (below 0), in the order Fail, Review, Pass."""
        return RANKS[self.after.label] - RANKS[self.before.label]

    @property
    def direction(self) -> int:
        """Whether it got better (above 0) or worse (below 0): by label, and within one label by composite."""
        return self.step or compare_decimals(self.after.scores.composite, self.before.scores.composite)

    def direction_of(self, respect: Respect) -> int:
        """Whether it got better (above 0) or worse (below 0) in some respect; 0 where a report does not say it."""
        if respect == "labels":
            return self.step
        if respect == "composites":
            return compare_decimals(self.after.scores.composite, self.before.scores.composite)
        if respect == "terms":
            return sum(len(change.won) - len(change.lost) for change in self.terms if change.criterion != "AH")
        if respect != "lenient":
            listed = self.listed(respect)
            return 0 if listed is None else len(listed.before) - len(listed.after)
        before, after = self.before.recalled, self.after.recalled
        if before is None or after is None:
            return 0
        # As shares of the terms that each run requires; whole numbers, so that equal ones are equal.
        return after * sum(self.before.required) - before * sum(self.after.required)

    def listed(self, what: Listed) -> ListChange | None:
        """Give what both reports list of it; None where one of them does not tell."""
        before, after = self.before.listed(what), self.after.listed(what)
        return None if before is None or after is None else ListChange(before, after)

    @property
    def evaded(self) -> tuple[str, ...]:
        """The forbidden terms that the new output no longer uses as they are written, but in another form."""
        near = self.listed("near_violations")
        used = {term for change in self.terms if change.criterion == "AH" for term in change.won}
        return () if near is None else tuple(term for term in near.new if term in used)

    @property
    def has_lenient(self) -> bool:
        """Whether both reports tell its lenient recall."""
        return None not in (self.before.lenient, self.after.lenient)

    @property
    def has_other_scores(self) -> bool:
        """Whether a score or the composite is another number, as a decimal."""
        before, after = self.before.scores, self.after.scores
        return any(compare_decimals(getattr(before, name), getattr(after, name)) for name in Scores._fields)

    @property
    def batch_id(self) -> str | None:
        """The batch of the case, None where neither report says."""
        return self.before.batch_id or self.after.batch_id

    @property
    def terms(self) -> tuple[TermChange, ...]:
        """The terms newly missed and newly found, a term listed twice twice; not those that only one side expects.

        Of forbidden terms a report names only those that were used.
        """
        old, new = self.before.details, self.after.details
        changes = (
            TermChange("CR", _within(new.CR.missing, old.CR.found), _within(new.CR.found, old.CR.missing)),
            TermChange(
                "AH", without(new.AH.violations, old.AH.violations), without(old.AH.violations, new.AH.violations)
            ),
            TermChange("AC", _within(new.AC.missing, old.AC.found), _within(new.AC.found, old.AC.missing)),
        )
        return tuple(change for change in changes if change.lost or change.won)

    @property
    def has_other_expectations(self) -> bool:
        """Tell whether the case itself was changed between the runs, as far as the reports show it."""
        old, new = self.before.details, self.after.details
        forbidden = {self.before.forbidden, self.after.forbidden} - {None}
        return (
            sorted(old.CR.found + old.CR.missing) != sorted(new.CR.found + new.CR.missing)
            or sorted(old.AC.found + old.AC.missing) != sorted(new.AC.found + new.AC.missing)
            or len(forbidden) > 1
        )

    def document(self) -> dict[str, Any]:
        """Give its entry in the JSON."""
        return {
            "test_id": self.test_id,
            "batch_id": self.batch_id,
            "by": "label" if self.step else "score",
            "base": _judgement(self.before),
            "new": _judgement(self.after),
            "terms_lost": _terms((change.criterion, term) for change in self.terms for term in change.lost),
            "terms_gained": _terms((change.criterion, term) for change in self.terms for term in change.won),
        }


def _judgement(result: StoredResult | None) -> dict[str, Any] | None:
    return None if result is None else {"label": result.label, "composite": result.scores.composite}


def _terms(terms: Iterable[tuple[Criterion, str]]) -> list[dict[str, str]]:
    return [{"criterion": criterion, "term": term} for criterion, term in terms]


def _within(terms: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    known = set(others)
    return tuple(term for term in terms if term in known)


def without(terms: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Give the terms that are not among others, in their order."""
    known = set(others)
    return tuple(term for term in terms if term not in known)


class NotJudged(NamedTuple):
    """A case that one report or both do not answer: what each has of it, and why not an answer."""

    test_id: str
    before: StoredResult | None
    after: StoredResult | None
    base: Reason | None
    new: Reason | None

    @property
    def reason(self) -> Reason:
        """The reason; of two different ones the first of _REASONS."""
        return next(reason for reason in _REASONS if reason in {self.base, self.new})

    @property
    def side(self) -> Literal["base", "new", "both"]:
        """The report that the reason is about."""
        if self.base == self.new:
            return "both"
        return "base" if self.base == self.reason else "new"

    @property
    def is_lost(self) -> bool:
        """Whether base answers it and new does not, unless no model did: of that, the prompt is not to blame."""
        return self.base is None and self.new != "failed_generation"

    @property
    def has_failed(self) -> bool:
        """Whether it is not judged because its generation failed."""
        return "failed_generation" in {self.base, self.new}

    @property
    def batch_id(self) -> str | None:
        """The batch of the case, None where neither report says."""
        batches = (result.batch_id for result in (self.before, self.after) if result is not None)
        return next((batch for batch in batches if batch is not None), None)

    @property
    def found_terms(self) -> list[tuple[Criterion, str]]:
        """The required terms that base found in it."""
        if self.before is None:
            return []
        details = self.before.details
        return [*(("CR", term) for term in details.CR.found), *(("AC", term) for term in details.AC.found)]

    def document(self) -> dict[str, Any]:
        """Give the entry of a lost case in the JSON."""
        return {
            "test_id": self.test_id,
            "batch_id": self.batch_id,
            "reason": self.reason,
            "base": _judgement(self.before),
            "terms_lost": _terms(self.found_terms),
        }


class CaseTest(NamedTuple):
    """How many judged cases got better and worse in some respect, and what chance says of it: `p`, and by Holm."""

    respect: Respect
    better: int
    worse: int
    p: float
    holm: float

    @property
    def is_beyond_chance(self) -> bool:
        return self.holm <= CHANCE

    @property
    def is_worse(self) -> bool:
        """Whether it got worse beyond chance."""
        return self.is_beyond_chance and self.worse > self.better


class Mean(NamedTuple):
    """The mean of a criterion, or of the composite, over the judged cases of both reports."""

    name: str
    base: float
    new: float


class ListTotals(NamedTuple):
    """What is listed of the judged cases of which both reports tell: how many cases, what is listed, what changed."""

    cases: int
    base: int
    new: int
    changed: Sequence[tuple[Change, ListChange]]

    def document(self) -> dict[str, Any]:
        """Give its entry in the JSON."""
        changed = [
            {"test_id": case.test_id, "batch_id": case.batch_id, "new": list(each.new), "gone": list(each.gone)}
            for case, each in self.changed
        ]
        return {**self._asdict(), "changed": changed}


@dataclass(frozen=True)
class Comparison:
    """Two reports side by side: the judged `cases`, and the others; both by batch, then in the order of the reports.

    `decision` is the gate's line where one was asked for.
    """

    base: Side
    new: Side
    cases: Sequence[Change]
    not_judged: Sequence[NotJudged] = ()
    decision: str | None = None

    @property
    def fell(self) -> list[Change]:
        """The cases with a worse label."""
        return [case for case in self.cases if case.step < 0]

    @property
    def rose(self) -> list[Change]:
        """The cases with a better label."""
        return [case for case in self.cases if case.step > 0]

    @property
    def moved(self) -> list[Change]:
        """The cases with the same label but other scores, or other terms behind the same scores."""
        still = (case for case in self.cases if case.step == 0)
        return [case for case in still if case.has_other_scores or case.terms]

    @property
    def lost(self) -> list[NotJudged]:
        """The cases that base answers, from their own narrative, and new does not."""
        return [case for case in self.not_judged if case.is_lost]

    @cached_property
    def has_batches(self) -> bool:
        """Whether the cases are of more than one batch."""
        return len({case.batch_id for case in self.cases} | {case.batch_id for case in self.not_judged}) > 1

    @property
    def passes(self) -> tuple[int, int]:
        """How many judged cases pass in the base report, and in the new one."""
        before = sum(case.before.label == "Pass" for case in self.cases)
        return before, sum(case.after.label == "Pass" for case in self.cases)

    @property
    def gained_and_lost(self) -> tuple[int, int]:
        """How many judged cases pass in the new report alone, and how many in the base report alone."""
        pairs = [(case.before.label == "Pass", case.after.label == "Pass") for case in self.cases]
        return pairs.count((False, True)), pairs.count((True, False))

    @cached_property
    def has_lenient(self) -> bool:
        """Whether both reports tell the lenient recall of all judged cases."""
        return all(case.has_lenient for case in self.cases)

    @cached_property
    def tests(self) -> tuple[CaseTest, ...]:
        """The respects in which both reports have values, each with its sign test over the judged cases."""
        respects = [each for each in get_args(Respect) if self._tells(each)]
        directions = [[case.direction_of(respect) for case in self.cases] for respect in respects]
        splits = [(sum(each > 0 for each in row), sum(each < 0 for each in row)) for row in directions]
        return tuple(
            CaseTest(respect, *split, sign_test(*split), p)
            for respect, split, p in zip(respects, splits, holm(splits), strict=True)
        )

    def _tells(self, respect: Respect) -> bool:
        """Whether both reports have values in a respect; of what is listed, for any judged case."""
        return self.has_lenient if respect == "lenient" else respect not in LISTED or self.listed[respect] is not None

    @property
    def change(self) -> CaseTest | None:
        """The strongest of the changes beyond chance, None if there is none.

        If near violations or unsupported values rose beyond chance, nothing that got better is named before them.
        """
        beyond = [test for test in self.tests if test.is_beyond_chance]
        worse = [test for test in beyond if test.is_worse]
        is_bought = any(test.respect in LISTED for test in worse)
        return min(worse if is_bought else beyond, key=lambda test: test.p, default=None)

    @cached_property
    def listed(self) -> Mapping[Listed, ListTotals | None]:
        """What the judged cases list beside their scores; None where no case has it in both reports."""
        return {what: self._listed(what) for what in LISTED}

    def _listed(self, what: Listed) -> ListTotals | None:
        told = [(case, each) for case in self.cases if (each := case.listed(what)) is not None]
        if not told:
            return None
        base, new = sum(len(each.before) for _, each in told), sum(len(each.after) for _, each in told)
        return ListTotals(len(told), base, new, [(case, each) for case, each in told if each.new or each.gone])

    @cached_property
    def means(self) -> list[Mean]:
        """The means over the judged cases."""
        return means_of(*self.judged_results)

    @property
    def judged_results(self) -> tuple[list[StoredResult], list[StoredResult]]:
        """The judged cases as base has them, and as new has them."""
        return [case.before for case in self.cases], [case.after for case in self.cases]

    @property
    def mean_drop(self) -> float:
        """By how much the mean composite of the judged cases fell; below 0 it rose."""
        composite = next(mean for mean in self.means if mean.name == "composite")
        return composite.base - composite.new

    @property
    def terms(self) -> list[tuple[Criterion, int, int]]:
        """For each criterion how many terms were lost, and how many won back, over the judged cases."""
        lost: Counter[Criterion] = Counter()
        won: Counter[Criterion] = Counter()
        for change in (change for case in self.cases for change in case.terms):
            lost[change.criterion] += len(change.lost)
            won[change.criterion] += len(change.won)
        return [(criterion, lost[criterion], won[criterion]) for criterion in CRITERIA]

    def document(self) -> dict[str, Any]:
        """Give what `--format json` prints (contract.md, "Comparison"); no number is rounded."""
        return {
            "judged": len(self.cases),
            "worse": [case.document() for case in self.cases if case.direction < 0],
            "better": [case.document() for case in self.cases if case.direction > 0],
            "lost": [case.document() for case in self.lost],
            "mean_drop": self.mean_drop,
            "change": None if self.change is None else self.change.respect,
            "tests": [test._asdict() for test in self.tests],
            "means": [mean._asdict() for mean in self.means],
            **{what: None if each is None else each.document() for what, each in self.listed.items()},
            "not_judged": [
                {"test_id": case.test_id, "side": case.side, "reason": case.reason} for case in self.not_judged
            ],
        }


_Numbers = tuple[tuple[str, Callable[[StoredResult], float]], ...]

_MEANS: Final[_Numbers] = tuple((name, attrgetter(f"scores.{name}")) for name in Scores._fields)
_LENIENT_MEANS: Final[_Numbers] = tuple(
    (f"{name} {criterion}", attrgetter(f"{name}.{criterion}"))
    for name in ("lenient", "coverage")
    for criterion in RECALLED
)


def means_of(base: Sequence[StoredResult], new: Sequence[StoredResult]) -> list[Mean]:
    """Give the means of the scores, then of lenient recall and coverage if they are known of every result."""
    is_known = all(None not in (result.lenient, result.coverage) for result in (*base, *new))
    return [
        Mean(name, _mean(base, of), _mean(new, of)) for name, of in (*_MEANS, *(_LENIENT_MEANS if is_known else ()))
    ]


def _mean(results: Sequence[StoredResult], of: Callable[[StoredResult], float]) -> float:
    return exact_mean(sum(units(of(result)) for result in results), len(results))


def compare(
    base: Mapping[str, Any], new: Mapping[str, Any], base_name: str = "base.json", new_name: str = "new.json"
) -> Comparison:
    """Compare two reports as read_report() gives them; the names are their files'.

    Raises ConfigurationError, which names file and place, for a report whose results cannot be used, and where no case
    is answered by both reports.
    """
    sides = side_of(base, base_name), side_of(new, new_name)
    before, after = sides[0].results, sides[1].results
    names = f"{printable(base_name)} and {printable(new_name)}"
    if before.keys().isdisjoint(after):
        raise ConfigurationError(f"{names} have no test case in common: nothing to compare")
    cases: list[Change] = []
    others: list[NotJudged] = []
    for test_id in dict.fromkeys([*before, *after]):  # in their order, each once
        why = [side.lacks(test_id) for side in sides]
        if why == [None, None]:
            cases.append(Change(test_id, before[test_id], after[test_id]))
        else:
            others.append(NotJudged(test_id, before.get(test_id), after.get(test_id), *why))
    if not cases:
        raise ConfigurationError(f"{names}: nothing can be judged: {'; '.join(_why_none(others))}")
    return Comparison(*sides, sorted(cases, key=_batch_order), sorted(others, key=_batch_order))


def _batch_order(case: Change | NotJudged) -> tuple[tuple[str, int], ...]:
    return natural_order(case.batch_id or "")


def _why_none(others: Sequence[NotJudged]) -> Iterator[str]:
    """Yield how many cases are left out for each reason, most often first."""
    for (reason, side), count in Counter((case.reason, case.side) for case in others).most_common():
        which = "both reports" if side == "both" else f"the {side} report"
        yield f"{count_of(count, 'case')} {_IN_WORDS[reason]} {which}"


_IN_WORDS: Final[Mapping[Reason, str]] = {
    "not_in_report": "not in",
    "no_output": "without an output in",
    "failed_generation": "whose generation failed in",
    "input_mismatch": "answered from another narrative in",
}


# --- from a report to a side ------------------------------------------------------------------------------------------


def side_of(report: Mapping[str, Any], name: str) -> Side:
    """Read what is compared of a report; raises ConfigurationError naming what cannot be used."""
    place = printable(name)
    if "results" not in report:
        raise ConfigurationError(f"{place}: has no results to compare; safe score --output report.json writes them")
    summary = checked_summary(report, Path(name))
    said = part_of(report, StoredResults, name)
    results = _by_test_id(said.results, place)
    _check_counts(results, summary, place)
    return Side(
        name=name,
        concern_id=said.concern_id,
        complete=said.complete is not False,
        missing_outputs=said.missing_outputs or 0,
        unanswered=frozenset(said.missing_test_ids or ()),
        fingerprint=None if said.scorer is None else said.scorer.fingerprint,
        rule=None if said.scorer is None else said.scorer.rule,
        configuration=report.get("configuration") or {},
        results=results,
    )


def _by_test_id(listed: Sequence[StoredResult], place: str) -> dict[str, StoredResult]:
    results: dict[str, StoredResult] = {}
    for number, result in enumerate(listed):
        if results.setdefault(result.test_id, result) is not result:
            first = list(results).index(result.test_id)
            raise ConfigurationError(
                f"{place}: results[{number}].test_id {printable(result.test_id)} is in results[{first}] too: "
                "write the report again with safe score"
            )
    return results


def _check_counts(results: Mapping[str, StoredResult], summary: Mapping[str, Any], place: str) -> None:
    """Raise for a report of which a part was taken away, or whose labels were changed by hand."""
    counts = Counter(result.label for result in results.values())
    for name, found in (("total_cases", len(results)), *((label.lower(), counts[label]) for label in LABELS)):
        if found != summary[name]:
            raise ConfigurationError(
                f"{place}: contradicts itself: summary.{name} is {summary[name]}, results say {found}"
            )
