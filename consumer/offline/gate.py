"""Gates: whether a report is good enough to go on, and whether a change may pass (contract.md, "Gate")."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Self

from consumer.errors import ConfigurationError
from consumer.offline.compare import Comparison, Respect
from consumer.offline.stored_report import violations_of
from consumer.text import count_of, printable, visible
from safe_core import CRITERIA, Scores
from safe_core.ceiling import Ceiling, InvalidCeiling
from safe_core.decimals import compare_decimals
from safe_core.intervals import cases_needed, passes_needed, wilson
from safe_core.significance import CHANCE

FailOn = Literal["fail", "review", "never"]

_COUNTED_BY: Final[Mapping[FailOn, tuple[str, ...]]] = {"fail": ("fail",), "review": ("fail", "review"), "never": ()}


_NO_CONDITION: Final = "no condition was set (--fail-on never, no --min-pass-rate)"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the gate is passed, and the line that says which rule decided."""

    passed: bool
    line: str
    rules: Sequence[tuple[bool, str]] = ()
    """Each condition: whether it holds, and what it says."""
    note: str | None = None

    def document(self, remarks: Sequence[str]) -> dict[str, Any]:
        """As JSON (contract.md, "Gate")."""
        conditions = [{"holds": holds, "says": says} for holds, says in self.rules]
        return {"passed": self.passed, "conditions": conditions, "note": self.note, "remarks": [*remarks]}

    @classmethod
    def by(cls, rules: Iterable[tuple[bool, str]], note: str | None = None) -> Self:
        """Decide by rules, each with whether it holds and what it says; all must hold, and none passes nothing.

        A `note`, which decides nothing, comes last, unless a rule says the same.
        """
        told = [*rules]
        failed = [line for holds, line in told if not holds]
        # Of a gate that is not passed, only the rules that decided so are of interest.
        lines = failed or [line for _, line in told]
        has_note = note is not None and not any(line.startswith(note) for line in lines)
        noted = f". Note: {note}" if has_note else ""
        how = "" if not told else " NOT passed" if failed else " passed"
        return cls(not failed, f"gate{how}: {'; '.join(lines) or _NO_CONDITION}{noted}", tuple(told), note)


def _check_fraction(given: str, number: float, percent: str = "80 percent is 0.8") -> None:
    if not 0 <= number <= 1:
        more = f"; {percent}" if 1 < number < math.inf else ""
        raise ConfigurationError(f"{given} is not a fraction from 0 to 1{more}")


# --- conditions: bounds on numbers that a report holds ----------------------------------------------------------------

_Number = int | float


def _as_they_are(number: _Number, bound: _Number) -> int:
    return (number > bound) - (number < bound)


class _Kind(NamedTuple):
    """One kind of condition: the field of the report, how its number is read, and how that is said.

    With `names`, the option takes one of them before its bound, which is a lower one; without, it takes the highest
    count that is allowed. `read` gets the report's name and field for its errors, then what the field holds. `compare`
    tells how the number stands to its bound: a pass rate is one division, but a mean is rounded several times.
    `checks` says for how many cases or outputs a count could be taken: a count of none of them is no count.
    """

    field: str
    read: Callable[[str, str, object], _Number]
    said: str
    names: tuple[str, ...] = ()
    compare: Callable[[_Number, _Number], int] = _as_they_are
    checks: "_Checks | None" = None


class _Checks(NamedTuple):
    """How many cases or outputs could be checked, and how many not; and what to say if not all, or none could.

    `of` is given what counts a field of the report.
    """

    of: Callable[[Callable[[str], _Number]], tuple[_Number, _Number]]
    some: str
    none: str


def _compared(count: Callable[[str], _Number]) -> tuple[_Number, _Number]:
    return count("unsupported.checked"), count("unsupported.unchecked")


def _asked(count: Callable[[str], _Number]) -> tuple[_Number, _Number]:
    vacuous = count("vacuous.AH")
    return count("summary.total_cases") - vacuous, vacuous


_COMPARED: Final = _Checks(
    _compared,
    "{} of {} outputs could not be checked: no narrative of the case is known that they were made from",
    "no output could be checked, because no narrative is known that it was made from",
)
_ASKED: Final = _Checks(
    _asked,
    "{} of {} cases had nothing to check: no forbidden term is listed, or the output has no question",
    "no case could be checked, because none has both a forbidden term and a question",
)


def _count(place: str, field: str, found: object) -> _Number:
    if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
        return found
    raise ConfigurationError(f"{place}: {field} is not a count")


def _share(place: str, field: str, found: object) -> _Number:
    if isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found <= 1:
        return found
    raise ConfigurationError(f"{place}: {field} is not a number from 0 to 1")


_RATES: Final = (*CRITERIA, "overall")
_KINDS: Final[Mapping[str, _Kind]] = {
    "--max-violations": _Kind("results", lambda place, _, found: violations_of(found, place), "AH violation{s}"),
    "--max-missing": _Kind("missing_outputs", _count, "case{s} without an output"),
    "--max-failed-generations": _Kind("failed_generations", _count, "failed generation{s}"),
    "--max-vacuous": _Kind("vacuous.all", _count, "case{s} with nothing at all to check"),
    "--max-mismatches": _Kind("input_mismatches", _count, "output{s} made from another narrative"),
    "--max-near-violations": _Kind("near_violations", _count, "near violation{s}", checks=_ASKED),
    "--max-unsupported": _Kind(
        "unsupported.nowhere", _count, "value{s} that the narrative does not have", checks=_COMPARED
    ),
    "--max-doubtful": _Kind("doubtful_hits", _count, "doubtful hit{s}"),
    "--min-mean": _Kind("mean_scores.{name}", _share, "mean {name}", Scores._fields, compare_decimals),
    "--min-pass-rate-of": _Kind("pass_rates.{name}", _share, "pass rate of {name}", _RATES),
}
"""By option, in the order in which the gate says them."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One bound on one number of a report; `name` is that of a lower bound, such as CR. Equality holds."""

    option: str
    bound: _Number
    name: str = ""

    def decide(self, report: Mapping[str, Any], place: str) -> tuple[bool, str]:
        """Tell whether it holds, and say so; raises ConfigurationError for a report that does not have the number."""
        kind = _KINDS[self.option]
        field = kind.field.format(name=self.name)
        found = kind.read(place, field, self._value(report, place, field))
        if not kind.names:
            said = f"{_counted(kind.said, found)}, {self.option} allows {self.bound}"
            return self._checked(report, place, kind.checks, (found <= self.bound, said))
        holds = kind.compare(found, self.bound) >= 0
        how = "is at least" if holds else "is below"
        shown = _as_compared(found, self.bound, kind.compare)
        return holds, f"{kind.said.format(name=self.name)} {shown} {how} {self.option} {self.name}={self.bound}"

    def _checked(
        self, report: Mapping[str, Any], place: str, checks: _Checks | None, decided: tuple[bool, str]
    ) -> tuple[bool, str]:
        """Say how much could not be checked; a condition of which nothing could be checked does not hold."""
        if checks is None:
            return decided
        checked, unchecked = checks.of(lambda field: _count(place, field, self._value(report, place, field)))
        if checked <= 0:
            return False, f"{self.option} {self.bound}: {checks.none}"
        holds, said = decided
        return holds, f"{said} ({checks.some.format(unchecked, checked + unchecked)})" if unchecked else said

    def _value(self, report: Mapping[str, Any], place: str, field: str) -> object:
        value: object = report
        for part in field.split("."):
            if not isinstance(value, Mapping) or part not in value:
                raise ConfigurationError(f"{place}: has no {field}, which {self.option} needs: {_origin(report)}")
            value = value[part]
        return value


def _origin(report: Mapping[str, Any]) -> str:
    if "results" in report:
        return "an older SAFE wrote it; score the outputs again"
    return "an older SAFE wrote it, or it is a report event of the worker; score the outputs again with safe score"


def _counted(said: str, count: _Number) -> str:
    return f"{count} {said.format(s='' if count == 1 else 's')}"


def nothing_to_check(report: Mapping[str, Any]) -> str | None:
    """Say how many cases have nothing at all to check; None if there are none, or the report does not say."""
    vacuous = report.get("vacuous")
    count = vacuous.get("all") if isinstance(vacuous, Mapping) else None
    if not isinstance(count, int) or isinstance(count, bool) or count <= 0:
        return None
    return _counted(_KINDS["--max-vacuous"].said, count)


Bound = int | Sequence[str] | None
"""The value of an option: a count, or all texts that it was given with."""


def conditions(bounds: Mapping[str, Bound]) -> tuple[Condition, ...]:
    """Read the options that are bounds on one number, of all that are given by name; raises ConfigurationError."""
    found: list[Condition] = []
    for option, kind in _KINDS.items():
        bound = bounds.get(option)
        if isinstance(bound, int):
            found.append(Condition(option, bound))
        elif bound is not None:
            found.extend(_lower_bounds(option, kind.names, bound))
    return tuple(found)


def _lower_bounds(option: str, names: Sequence[str], texts: Sequence[str]) -> Iterator[Condition]:
    given: set[str] = set()
    for text in texts:
        name, equals, number = text.partition("=")
        if not equals:
            raise ConfigurationError(f"{option} {visible(text)} is not written as NAME=FRACTION, such as CR=0.7")
        if name not in names:
            known = ", ".join(names)
            raise ConfigurationError(f"{option} {visible(text)}: {visible(name)!r} is not one of {known}")
        if name in given:
            raise ConfigurationError(f"{option} names {name} twice: give it once")
        given.add(name)
        yield Condition(option, _fraction(f"{option} {printable(text)}", number), name)


def _fraction(given: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 100.0 if text.endswith("%") else math.nan
    _check_fraction(f"{given}: {printable(text)!r}", number)
    return number


# --- the gate of a report ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gate:
    """What is asked of a report; all that is asked must hold. Equality passes.

    With a `confidence`, not the pass rate itself must reach the rate but the lower end of its Wilson interval.
    Raises ConfigurationError for a rate or a confidence that is none, or that no report can reach.
    """

    min_pass_rate: float | None
    fail_on: FailOn
    confidence: float | None = None
    conditions: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        if self.min_pass_rate is not None:
            _check_fraction(f"--min-pass-rate {self.min_pass_rate}", self.min_pass_rate)
        if self.confidence is not None:
            _check_confidence(self.confidence, self.min_pass_rate)

    @classmethod
    def asked(
        cls,
        min_pass_rate: float | None,
        fail_on: FailOn | None,
        confidence: float | None = None,
        conditions: tuple[Condition, ...] = (),
    ) -> Self | None:
        """Read the options: `fail_on` is "never" unless it is given; None if no option is given."""
        if min_pass_rate is None and fail_on is None and confidence is None and not conditions:
            return None
        return cls(min_pass_rate, fail_on or "never", confidence, conditions)

    def needs(self, cases: int) -> str | None:
        """Say how many of the cases must pass for the confidence, known before any is scored; None without one."""
        if self.min_pass_rate is None or self.confidence is None:
            return None
        asked = f"--min-pass-rate {self.min_pass_rate} at {_in_percent(self.confidence)} confidence needs"
        needed = passes_needed(cases, self.min_pass_rate, self.confidence)
        if needed is not None:
            return f"{asked} {needed} of {count_of(cases, 'case')} to pass"
        # A rate of 1, which would need more than any number of cases, was refused.
        needed = cases_needed(self.min_pass_rate, self.confidence)
        return f"not enough cases: {asked} at least {needed} cases that all pass"

    def decide(self, report: Mapping[str, Any], place: str = "the report") -> Decision:
        """Decide by a report whose summary checked_summary() has found sound; errors call it `place`.

        Raises ConfigurationError for a report that lacks what a condition needs.
        """
        summary = report["summary"]
        rules = [rule for rule in (self._by_rate(summary), self._by_label(summary)) if rule is not None]
        rules += [condition.decide(report, place) for condition in self.conditions]
        return Decision.by(rules, nothing_to_check(report))

    def _by_rate(self, summary: Mapping[str, Any]) -> tuple[bool, str] | None:
        if self.min_pass_rate is None:
            return None
        if self.confidence is not None:
            return self._by_bound(summary["pass"], summary["total_cases"], self.min_pass_rate, self.confidence)
        rate = summary["overall_pass_rate"]
        passed = rate >= self.min_pass_rate  # one division, rounded once: it meets every decimal that it equals
        how = "is at least" if passed else "is below"
        cases = f"{summary['pass']} of {count_of(summary['total_cases'], 'case')}"
        shown = _as_compared(rate, self.min_pass_rate, _as_they_are)
        return passed, f"pass rate {shown} ({cases}) {how} --min-pass-rate {self.min_pass_rate}"

    def _by_bound(self, passes: int, cases: int, rate: float, confidence: float) -> tuple[bool, str]:
        needed = passes_needed(cases, rate, confidence)
        if needed is None:
            return False, f"{self.needs(cases)}, but the report has {cases}"
        bound = _as_compared(wilson(passes, cases, confidence).low, rate, at_least=True)
        found = f"in the report {passes} {'passes' if passes == 1 else 'pass'}, lower end of the interval {bound}"
        return passes >= needed, f"{self.needs(cases)} ({found})"

    def _by_label(self, summary: Mapping[str, Any]) -> tuple[bool, str] | None:
        counted = _COUNTED_BY[self.fail_on]
        if not counted:
            return None
        found = [f"{summary[name]} {name.capitalize()}" for name in counted if summary[name]]
        what = " and ".join(found) or f"no {' or '.join(name.capitalize() for name in counted)}"
        return not found, f"{what} among {count_of(summary['total_cases'], 'case')} (--fail-on {self.fail_on})"

    def out_of_reach(self, report: Mapping[str, Any]) -> Iterator[str]:
        """Say so if more is asked for than a copy of the narratives could reach: then the test cases need a look."""
        if self.min_pass_rate is None or "ceiling" not in report:
            return
        try:
            found = Ceiling.parse(report["ceiling"])
        except InvalidCeiling:
            yield "the report's ceiling cannot be read"
            return
        if found.pass_rate < self.min_pass_rate:
            yield f"--min-pass-rate {self.min_pass_rate} is out of reach: {found.sentence}; see safe lint"


NO_CASE_FAILS: Final = Gate(None, "fail")
"""What `safe gate` asks where nothing is asked of it."""


def _check_confidence(confidence: float, rate: float | None) -> None:
    if not 0.5 < confidence < 1:
        more = "; 95 percent is 0.95" if 1 < confidence < math.inf else ""
        raise ConfigurationError(f"--confidence {confidence} is not between 0.5 and 1{more}")
    if rate is None:
        raise ConfigurationError("--confidence has no effect without --min-pass-rate: give both")
    if rate == 1:
        raise ConfigurationError(
            "--min-pass-rate 1.0 cannot be reached with --confidence: however many cases pass, the lower end of the "
            "interval stays below 1; lower --min-pass-rate, or leave --confidence out"
        )


def _in_percent(confidence: float) -> str:
    return f"{(Decimal(repr(confidence)) * 100).normalize():f} %"


def _as_compared(
    number: float,
    bound: float,
    compare: Callable[[_Number, _Number], int] = compare_decimals,
    *,
    at_least: bool = False,
) -> float:
    """Round to three places, unless it would then read as none or all, or stand otherwise to the bound.

    0.7999 is not 0.8, and 0.9999 is not 1. What is proven `at_least` is cut off there: 0.8116 does not prove 0.812.
    """
    rounded = math.floor(number * 1_000) / 1_000 if at_least else round(number, 3)
    stands_alike = compare(rounded, bound) == compare(number, bound)
    return rounded if 0 < rounded < 1 and stands_alike else number


def check_borne_out(report: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigurationError where the rest of a report, as far as it is there, contradicts its summary."""
    summary = report["summary"]
    counted = {"Pass": summary["pass"], "Review": summary["review"], "Fail": summary["fail"]}
    told = {
        "total_cases": (report.get("total_cases"), summary["total_cases"]),
        "label_distribution": (report.get("label_distribution"), counted),
        "pass_rates.overall": (_member(report.get("pass_rates"), "overall"), summary["overall_pass_rate"]),
        "results[].label": (_labels(report.get("results")), Counter(counted)),
    }
    if "failed_generations" in report and (failed := _failed(report.get("results"))) is not None:
        told["failed_generations"] = (report["failed_generations"], failed)
    for name, (other, own) in told.items():
        if other is not None and other != own:
            by = _OTHERS.get(name, "the report's summary")
            raise ConfigurationError(f"{printable(str(path))}: {name} contradicts {by}; safe verify shows details")


_OTHERS: Final = {"failed_generations": "the report's results"}
"""What told against a field, where it was not the summary."""


def _failed(results: object) -> int | None:
    """Count the results whose generation failed, None where they do not say."""
    told = [_member(result, "generation") for result in results] if isinstance(results, list) else []
    is_said = any(each in ("answered", "failed") for each in told)
    return told.count("failed") if is_said else None


def _member(document: object, name: str) -> object:
    return document.get(name) if isinstance(document, dict) else document


def _labels(results: object) -> object:
    """Count the labels of results; what are no results is given back, to be found different."""
    if not isinstance(results, list):
        return results
    return Counter(str(_member(result, "label")) for result in results)


# --- the gate of a comparison -----------------------------------------------------------------------------------------

RegressionsOf = Literal["labels", "scores", "lenient"]
_RESPECTS: Final[Mapping[RegressionsOf, Respect]] = {"scores": "composites", "lenient": "lenient"}
_SAID: Final[Mapping[Respect, tuple[str, RegressionsOf]]] = {
    "composites": ("composites", "scores"),
    "lenient": ("lenient recall", "lenient"),
}


@dataclass(frozen=True, slots=True)
class ComparisonGate:
    """How much may be worse: cases with a worse label, cases lost, the mean composite; None asks for nothing.

    In `respect`, if any, nothing may be worse beyond chance. What is exactly as bad as allowed passes. Raises
    ConfigurationError for a drop that is no fraction.
    """

    max_regressions: int | None = None
    allow_lost: int | None = None
    max_drop: float | None = None
    respect: Respect | None = None

    def __post_init__(self) -> None:
        if self.max_drop is not None:
            _check_fraction(f"--fail-on-score-drop {self.max_drop}", self.max_drop, "5 percent is 0.05")

    @classmethod
    def asked(
        cls,
        regressions_of: RegressionsOf | None,
        max_regressions: int | None,
        allow_lost: int | None,
        max_drop: float | None,
    ) -> Self | None:
        """Read the options; None where none is given. Raises ConfigurationError for one that needs another."""
        if regressions_of == "labels":
            return cls(max_regressions or 0, allow_lost or 0, max_drop)
        if regressions_of is not None and max_regressions is not None:
            raise ConfigurationError(
                f"--max-regressions counts labels: it has no effect with --fail-on-regression {regressions_of}"
            )
        if regressions_of is not None:
            return cls(None, allow_lost or 0, max_drop, _RESPECTS[regressions_of])
        for option, value in (("--max-regressions", max_regressions), ("--allow-lost", allow_lost)):
            if value is not None:
                raise ConfigurationError(f"{option} has no effect without --fail-on-regression: give both")
        return None if max_drop is None else cls(max_drop=max_drop)

    def decide(self, comparison: Comparison) -> Decision:
        """Decide; chance has a say only on a respect. Raises ConfigurationError where the reports do not say it."""
        return Decision.by(self._rules(comparison))

    def _rules(self, comparison: Comparison) -> Iterator[tuple[bool, str]]:
        """Yield each rule: whether it holds, and what it says."""
        if self.respect is not None:
            yield _respect_rule(comparison, self.respect)
        counts = (
            (len(comparison.fell), "case{s} with a worse label", "--max-regressions", self.max_regressions),
            (len(comparison.lost), "lost case{s}", "--allow-lost", self.allow_lost),
        )
        for count, said, option, most in counts:
            if most is not None:
                yield count <= most, f"{_counted(said, count)}, {option} allows {most}"
        if self.max_drop is not None:
            yield _drop_rule(comparison.mean_drop, self.max_drop)


def _respect_rule(comparison: Comparison, respect: Respect) -> tuple[bool, str]:
    test = next((each for each in comparison.tests if each.respect == respect), None)
    if test is None:
        raise ConfigurationError(
            "--fail-on-regression lenient: the reports do not tell the lenient recall of every judged case; "
            "score the outputs again"
        )
    said, option = _SAID[respect]
    counts = f"{test.better} rose, {test.worse} fell, p by Holm {_as_compared(test.holm, CHANCE)}"
    how = "fell" if test.is_worse else "did not fall"
    return not test.is_worse, f"{said} {how} beyond chance ({counts}) (--fail-on-regression {option})"


def _drop_rule(drop: float, most: float) -> tuple[bool, str]:
    holds = compare_decimals(drop, most) <= 0
    limit = f"--fail-on-score-drop {most}"
    direction = compare_decimals(drop, 0)
    if direction > 0:
        how = "is not more" if holds else "is more"
        return holds, f"the mean composite dropped by {_as_compared(drop, most)}, which {how} than {limit}"
    moved = f"rose by {_as_compared(-drop, 0)}" if direction < 0 else "is the same"
    return holds, f"the mean composite {moved} ({limit})"
