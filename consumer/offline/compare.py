"""`safe compare`: what changed between two reports over the same test cases, case by case and in all."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from consumer.errors import ConfigurationError
from consumer.offline.gate import Decision
from consumer.offline.pages.report_content import Sentence, settings_of
from consumer.offline.scored_run import LABELS
from consumer.offline.stored_report import StoredResult, StoredResults, checked_summary, part_of
from consumer.text import count_of, printable
from safe_core import CRITERIA, Criterion, Label, Scores
from safe_core.exact import exact_mean, units
from safe_core.intervals import mcnemar, sign_test

_RANKS: Final[Mapping[Label, int]] = {label: rank for rank, label in enumerate(reversed(LABELS))}
_NAMED: Final = 5
"""How many cases or settings a remark names."""

_LONGEST_SETTING: Final = 200


# --- what is compared -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two reports; `fingerprint` and `rule` are None where it names none.

    `missing_outputs` counts the cases that no output answered: they scored as empty ones.
    """

    name: str
    concern_id: str
    complete: bool
    missing_outputs: int
    fingerprint: str | None
    rule: str | None
    configuration: Mapping[str, Any]
    results: Mapping[str, StoredResult]

    def labelled(self, label: Label) -> int:
        """Count the cases with a label."""
        return sum(result.label == label for result in self.results.values())


class TermChange(NamedTuple):
    """The terms of a criterion by which a case lost what it had (of AH: newly used), and those that it won back."""

    criterion: Criterion
    lost: tuple[str, ...]
    won: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One test case in both reports."""

    test_id: str
    before: StoredResult
    after: StoredResult

    @property
    def step(self) -> int:
        """By how many labels it rose (above 0) or fell (below 0), in the order Fail, Review, Pass."""
        return _RANKS[self.after.label] - _RANKS[self.before.label]

    @property
    def terms(self) -> tuple[TermChange, ...]:
        """The terms newly missed and newly found, a term listed twice twice; not those that only one side expects.

        Of forbidden terms a report names only those that were used.
        """
        old, new = self.before.details, self.after.details
        changes = (
            TermChange("CR", _within(new.CR.missing, old.CR.found), _within(new.CR.found, old.CR.missing)),
            TermChange(
                "AH", _without(new.AH.violations, old.AH.violations), _without(old.AH.violations, new.AH.violations)
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


def _within(terms: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    known = set(others)
    return tuple(term for term in terms if term in known)


def _without(terms: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    known = set(others)
    return tuple(term for term in terms if term not in known)


class Mean(NamedTuple):
    """The mean of a criterion, or of the composite, over the common cases of both reports."""

    name: str
    base: float
    new: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two reports side by side; `cases` are those in both, in the order of the base report."""

    base: Side
    new: Side
    cases: Sequence[Change]

    @property
    def regressions(self) -> int:
        """How many of the common cases have a worse label."""
        return len(self.fell)

    @property
    def fell(self) -> list[Change]:
        """The cases with a worse label, the deepest falls first."""
        return sorted((case for case in self.cases if case.step < 0), key=_steepness)

    @property
    def rose(self) -> list[Change]:
        """The cases with a better label, the highest rises first."""
        return sorted((case for case in self.cases if case.step > 0), key=_steepness, reverse=True)

    @property
    def moved(self) -> list[Change]:
        """The cases with the same label but other scores, or other terms behind the same scores."""
        still = (case for case in self.cases if case.step == 0)
        return [case for case in still if case.before.scores != case.after.scores or case.terms]

    @property
    def only_base(self) -> list[str]:
        """The cases that the new report lacks."""
        return [test_id for test_id in self.base.results if test_id not in self.new.results]

    @property
    def only_new(self) -> list[str]:
        """The cases that the base report lacks."""
        return [test_id for test_id in self.new.results if test_id not in self.base.results]

    @property
    def passes(self) -> tuple[int, int]:
        """How many common cases pass in the base report, and in the new one."""
        before = sum(case.before.label == "Pass" for case in self.cases)
        return before, sum(case.after.label == "Pass" for case in self.cases)

    @property
    def gained_and_lost(self) -> tuple[int, int]:
        """How many common cases pass in the new report alone, and how many in the base report alone."""
        pairs = [(case.before.label == "Pass", case.after.label == "Pass") for case in self.cases]
        return pairs.count((False, True)), pairs.count((True, False))

    @property
    def sign_test_p(self) -> float:
        """The p of rises against falls, over the common cases."""
        return sign_test(len(self.rose), len(self.fell))

    @property
    def mcnemar_p(self) -> float:
        """The p of passes gained against passes lost, over the common cases."""
        return mcnemar(*self.gained_and_lost)

    @property
    def means(self) -> list[Mean]:
        """The means of the criteria and of the composite, over the common cases."""
        before, after = ([case.before for case in self.cases], [case.after for case in self.cases])
        return [Mean(name, _mean(before, name), _mean(after, name)) for name in Scores._fields]

    @property
    def terms(self) -> list[tuple[Criterion, int, int]]:
        """For each criterion how many terms were lost, and how many won back, over the common cases."""
        changes = [change for case in self.cases for change in case.terms]
        totals = []
        for criterion in CRITERIA:
            own = [change for change in changes if change.criterion == criterion]
            totals.append((criterion, sum(len(each.lost) for each in own), sum(len(each.won) for each in own)))
        return totals


def _steepness(case: Change) -> tuple[int, float]:
    return case.step, case.after.scores.composite - case.before.scores.composite


def _mean(results: Sequence[StoredResult], name: str) -> float:
    return exact_mean(sum(units(getattr(result.scores, name)) for result in results), len(results))


def compare(
    base: Mapping[str, Any], new: Mapping[str, Any], base_name: str = "base.json", new_name: str = "new.json"
) -> Comparison:
    """Compare two reports as read_report() gives them; the names are their files'.

    Raises ConfigurationError, which names file and place, for a report whose results cannot be used, and where the
    reports have no case in common.
    """
    sides = _side(base, base_name), _side(new, new_name)
    before, after = sides[0].results, sides[1].results
    cases = [Change(test_id, before[test_id], after[test_id]) for test_id in before if test_id in after]
    if not cases:
        raise ConfigurationError(
            f"{printable(base_name)} and {printable(new_name)} have no test case in common: nothing to compare"
        )
    return Comparison(*sides, cases)


def decide(comparison: Comparison, max_regressions: int) -> Decision:
    """Fail where more common cases have a worse label than may be; p has no say."""
    failed = comparison.regressions > max_regressions
    found = f"{count_of(comparison.regressions, 'case')} with a worse label"
    verdict = "NOT passed" if failed else "passed"
    return Decision(not failed, f"gate {verdict}: {found}, --max-regressions allows {max_regressions}")


# --- what a reader must know ------------------------------------------------------------------------------------------


ONE_RUN_EACH: Final = (
    "Each report is one run: a second run of the same prompt could differ as much as these two. "
    "The p-values are for information; the gate does not use them."
)


def remarks(comparison: Comparison) -> Iterator[Sentence]:
    """Yield why the two reports may not be alike enough to be compared."""
    base, new = comparison.base, comparison.new
    if base.concern_id != new.concern_id:
        yield Sentence("The concerns differ: base {}, new {}.", (base.concern_id, new.concern_id))
    for which, side in (("base", base), ("new", new)):
        if not side.complete:
            yield Sentence(f"The batch of the {which} report is not complete: more results may come.")
    if base.missing_outputs or new.missing_outputs:
        counts = f"base {base.missing_outputs}, new {new.missing_outputs}"
        yield Sentence(f"Cases without an output, scored as empty ones: {counts}.")
    yield from _unequal_sets(comparison)
    yield from _unequal_rules(base, new)
    changed = [case.test_id for case in comparison.cases if case.has_other_expectations]
    if changed:
        yield Sentence(
            f"The expectations of {count_of(len(changed), 'common case')} differ ({_places(changed)}): "
            "their scores may differ for that reason alone.",
            tuple(changed[:_NAMED]),
        )


def _unequal_sets(comparison: Comparison) -> Iterator[Sentence]:
    lots = (("base", comparison.only_base), ("new", comparison.only_new))
    if any(test_ids for _, test_ids in lots):
        yield Sentence(
            f"The reports have different cases: what is in both is compared, {count_of(len(comparison.cases), 'case')}."
        )
    for which, test_ids in lots:
        if test_ids:
            named = f"{count_of(len(test_ids), 'case')}: {_places(test_ids)}"
            yield Sentence(f"Only in the {which} report: {named}.", tuple(test_ids[:_NAMED]))


def _places(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return ", ".join(["{}"] * min(len(texts), _NAMED)) + more


def _unequal_rules(base: Side, new: Side) -> Iterator[Sentence]:
    if base.rule != new.rule:
        yield Sentence("The match rules differ: base {}, new {}.", (base.rule or "none", new.rule or "none"))
    for which, side in (("base", base), ("new", new)):
        if side.fingerprint is None:
            yield Sentence(
                f"The {which} report names no fingerprint, so nobody can tell whether the rules are the same."
            )
    if base.fingerprint != new.fingerprint and None not in (base.fingerprint, new.fingerprint):
        differ = _differing_settings(base.configuration, new.configuration)
        how = f" ({_places(differ)})" if differ else ""
        yield Sentence(
            f"The fingerprints differ, so the cases were judged by other rules{how}: base {{}}, new {{}}.",
            (*differ[:_NAMED], str(base.fingerprint), str(new.fingerprint)),
        )
    strict = [side.configuration.get("strictAH") for side in (base, new)]
    if strict[0] != strict[1]:
        yield Sentence("Strict AH is {} in the base report and {} in the new one.".format(*map(_ON_OR_OFF.get, strict)))


def _differing_settings(base: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    before, after = dict(settings_of(base)), dict(settings_of(new))
    names = dict.fromkeys([*before, *after])  # in their order, each once
    told = (
        f"{name} {before.get(name, 'none')} -> {after.get(name, 'none')}"
        for name in names
        if before.get(name) != after.get(name)
    )
    return [text[:_LONGEST_SETTING] for text in told]


_ON_OR_OFF: Final = {True: "on", False: "off", None: "not told"}


# --- from a report to a side ------------------------------------------------------------------------------------------


def _side(report: Mapping[str, Any], name: str) -> Side:
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
                "which of them counts?"
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
