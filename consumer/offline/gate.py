"""`safe gate`: whether a report is good enough to go on (contract.md, "Gate")."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any, Final, Literal, Self

from consumer.errors import ConfigurationError
from consumer.offline.conditions import Condition, nothing_to_check
from consumer.text import count_of, printable
from safe_core.intervals import cases_needed, passes_needed, wilson

FailOn = Literal["fail", "review", "never"]

_COUNTED_BY: Final[Mapping[FailOn, tuple[str, ...]]] = {"fail": ("fail",), "review": ("fail", "review"), "never": ()}


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the gate is passed, and the line that says which rule decided."""

    passed: bool
    line: str

    @classmethod
    def by(cls, rules: Iterable[tuple[bool, str]], note: str | None = None) -> Self:
        """Decide by rules, each with whether it holds and what it says; all must hold. A `note` is said once."""
        told = [*rules]
        failed = [line for holds, line in told if not holds]
        # Of a gate that is not passed, only the rules that decided so are of interest.
        lines = failed or [line for _, line in told]
        if note is not None and not any(line.startswith(note) for line in lines):
            lines.append(note)
        return cls(not failed, f"gate {'NOT passed' if failed else 'passed'}: {'; '.join(lines)}")


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
        rate = self.min_pass_rate
        if rate is not None and not 0 <= rate <= 1:
            more = "; 80 percent is 0.8" if 1 < rate < math.inf else ""
            raise ConfigurationError(f"--min-pass-rate {rate} is not a fraction from 0 to 1{more}")
        if self.confidence is not None:
            _check_confidence(self.confidence, rate)

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
            return f"{asked} {needed} of {cases} passes"
        # A rate of 1, which would need more than any number of cases, was refused.
        return f"not enough cases: {asked} at least {cases_needed(self.min_pass_rate, self.confidence)}, all passing"

    def decide(self, report: Mapping[str, Any], place: str = "the report") -> Decision:
        """Decide by a report whose summary checked_summary() has found sound; errors call it `place`.

        Raises ConfigurationError for a report that lacks what a condition needs.
        """
        summary = report["summary"]
        rules = [rule for rule in (self._by_rate(summary), self._by_label(summary)) if rule is not None]
        rules += [condition.decide(report, place) for condition in self.conditions]
        none = (True, "no rule was set (--fail-on never, no --min-pass-rate)")
        return Decision.by(rules or [none], nothing_to_check(report))

    def _by_rate(self, summary: Mapping[str, Any]) -> tuple[bool, str] | None:
        if self.min_pass_rate is None:
            return None
        if self.confidence is not None:
            return self._by_bound(summary["pass"], summary["total_cases"], self.min_pass_rate, self.confidence)
        rate = summary["overall_pass_rate"]
        passed = rate >= self.min_pass_rate
        how = "is at least" if passed else "is below"
        # As exact as it was compared: 79.99 % must not read as 80 %.
        found = f"pass rate {rate} ({summary['pass']} of {count_of(summary['total_cases'], 'case')})"
        return passed, f"{found} {how} --min-pass-rate {self.min_pass_rate}"

    def _by_bound(self, passes: int, cases: int, rate: float, confidence: float) -> tuple[bool, str]:
        needed = passes_needed(cases, rate, confidence)
        if needed is None:
            return False, f"{self.needs(cases)}; the report has {cases}"
        bound = _as_compared(wilson(passes, cases, confidence).low, rate)
        return passes >= needed, f"{self.needs(cases)}; the report has {passes}: lower bound {bound}"

    def _by_label(self, summary: Mapping[str, Any]) -> tuple[bool, str] | None:
        counted = _COUNTED_BY[self.fail_on]
        if not counted:
            return None
        found = [f"{summary[name]} {name.capitalize()}" for name in counted if summary[name]]
        what = " and ".join(found) or f"no {' or '.join(name.capitalize() for name in counted)}"
        return not found, f"{what} among {count_of(summary['total_cases'], 'case')} (--fail-on {self.fail_on})"


NO_CASE_FAILS: Final = Gate(None, "fail")
"""What `safe gate` asks where nothing is asked of it."""


def _check_confidence(confidence: float, rate: float | None) -> None:
    if not 0.5 < confidence < 1:
        more = "; 95 percent is 0.95" if 1 < confidence < math.inf else ""
        raise ConfigurationError(f"--confidence {confidence} is not between 0.5 and 1{more}")
    if rate is None:
        raise ConfigurationError("--confidence needs --min-pass-rate: give that too")
    if rate == 1:
        raise ConfigurationError(
            "--min-pass-rate 1.0 cannot be reached with --confidence: however many cases pass, the lower end of the "
            "interval stays below 1; lower --min-pass-rate, or leave --confidence out"
        )


def _in_percent(confidence: float) -> str:
    return f"{(Decimal(repr(confidence)) * 100).normalize():f} %"


def _as_compared(bound: float, rate: float) -> str:
    """Give a bound to three places or, where cut off there it would read as below a rate that it reaches, in full."""
    cut = Decimal(repr(bound)).quantize(Decimal("0.001"), ROUND_FLOOR)
    return str(cut) if (float(cut) >= rate) == (bound >= rate) else repr(bound)


def check_borne_out(report: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigurationError where the rest of a report, as far as it is there, contradicts its summary."""
    summary = report["summary"]
    counted = {"Pass": summary["pass"], "Review": summary["review"], "Fail": summary["fail"]}
    told = {
        "total_cases": (report.get("total_cases"), summary["total_cases"]),
        "label_distribution": (report.get("label_distribution"), counted),
        "pass_rates.overall": (_member(report.get("pass_rates"), "overall"), summary["overall_pass_rate"]),
        "the labels of results": (_labels(report.get("results")), Counter(counted)),
    }
    for name, (other, own) in told.items():
        if other is not None and other != own:
            raise ConfigurationError(
                f"{printable(str(path))}: {name} contradicts its summary; safe verify shows details"
            )


def _member(document: object, name: str) -> object:
    return document.get(name) if isinstance(document, dict) else document


def _labels(results: object) -> object:
    """Count the labels of results; what are no results is given back, to be found different."""
    if not isinstance(results, list):
        return results
    return Counter(str(_member(result, "label")) for result in results)
