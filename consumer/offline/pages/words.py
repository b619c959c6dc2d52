"""What the pages say alike of scores and cases."""

import json
from collections.abc import Callable, Iterator, Mapping
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import Any, Final

from consumer.offline.scored_run import CaseLine, ScoredRun, Shortfall
from consumer.text import count_of as count_of  # noqa: PLC0414 - the pages take their words from here
from safe_core import DEFAULT_POLICY, Criterion, Label

_ONE_PLACE: Final = Decimal("0.1")
_TWO_PLACES: Final = Decimal("0.01")


def percent(fraction: float) -> str:
    """Give a fraction as "28.6%"; cut off where rounding would reach a whole percent that it is below.

    Bounds are whole percents nearly always, and what is below one must not read as having reached it.
    """
    exact = Decimal(repr(fraction)) * 100
    nearest = exact.quantize(_ONE_PLACE, ROUND_HALF_EVEN)
    if exact < nearest == nearest.to_integral_value():
        nearest = _cut(exact, _ONE_PLACE)
    return f"{str(nearest).removesuffix('.0')}%"


@lru_cache(maxsize=1024)  # a run has few different scores
def score(value: float, *bounds: float) -> str:
    """Give a score to two places; cut off where rounding would reach one of the bounds, or 1, that it is below."""
    text = f"{value:.2f}"
    if any(value < bound <= float(text) for bound in (*bounds, 1.0)):
        return str(_cut(Decimal(repr(value)), _TWO_PLACES))
    return text


def own_rules(configuration: Mapping[str, Any], *sections: str) -> str | None:
    """Say in which settings a report's rules are not the default ones, as "thresholds.CR.pass 0.9 (default 0.8)".

    Without `sections` of the configuration, all of them are looked at; None if there is nothing to say.
    """
    default = dict(settings_of(DEFAULT_POLICY.configuration()))
    differing = [
        f"{name} {value}{f' (default {default[name]})' if name in default else ''}"
        for name, value in settings_of(configuration)
        if value != default.get(name) and (not sections or name.partition(".")[0] in sections)
    ]
    return ", ".join(differing) or None


def settings_of(document: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    """Yield each setting of a nested configuration: its dotted name and its value as JSON."""
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from settings_of(value, f"{within}{key}.")
        else:
            yield f"{within}{key}", json.dumps(value)


def _cut(number: Decimal, places: Decimal) -> Decimal:
    return number.quantize(places, ROUND_FLOOR)


def why(run: ScoredRun) -> str:
    """Give the reason of a run's verdict, as "3 of 7 cases fail"."""
    summary, verdict = run.report["summary"], run.verdict
    number = summary[verdict.lower()]
    return f"{number} of {count_of(summary['total_cases'], 'case')} {_VERBS[verdict][number == 1]}"


_VERBS: Final[Mapping[Label, tuple[str, str]]] = {
    "Pass": ("pass", "passes"),
    "Review": ("need review", "needs review"),
    "Fail": ("fail", "fails"),
}


def missed(shortfall: Shortfall) -> str:
    """Say which bound a criterion has missed, as "CR 0.33 below review 0.5"."""
    name, bound = shortfall.bound
    return f"{shortfall.criterion} {score(shortfall.score, bound)} below {name} {bound}"


def without_output(case: CaseLine) -> str | None:
    """Say that nothing was there to be scored, if so."""
    if not case.answered:
        return "no output"
    return "empty output" if case.row.empty_output else None


def terms_against(case: CaseLine) -> Iterator[tuple[Criterion, str, tuple[str, ...]]]:
    """Yield the terms that a case lost by: the criterion, what is wrong with them ("missing", "used"), the terms."""
    details = case.row.details
    lost: tuple[tuple[Criterion, str, tuple[str, ...]], ...] = (
        ("CR", "missing", details.cr_missing),
        ("AH", "used", details.ah_violations),
        ("AC", "missing", details.ac_missing),
    )
    return (entry for entry in lost if entry[2])


def counted(case: CaseLine, criterion: Criterion) -> str:
    """Say how many terms a score is made of."""
    if getattr(case.row.vacuous, criterion):
        return "nothing to check"
    details, total = case.row.details, getattr(case.row.terms, criterion)
    if criterion == "AH":
        return f"{len(details.ah_violations)} of {total} forbidden used"
    return f"{len(details.cr_found if criterion == 'CR' else details.ac_found)} of {total} required found"


def worth_knowing(run: ScoredRun, quoted: Callable[[str], str] = str) -> Iterator[str]:
    """Yield what a reader must know to read the numbers; names from a configuration are `quoted`."""
    report = run.report
    vacuous = [f"{name} in {count_of(count, 'case')}" for name, count in report["vacuous"].items() if count]
    if vacuous:
        yield f"Nothing to check, which scores 1.00: {', '.join(vacuous)}."
    if report["empty_outputs"]:
        yield f"Empty outputs: {count_of(report['empty_outputs'], 'case')}."
    if report["missing_outputs"]:
        yield f"No output: {count_of(report['missing_outputs'], 'case')}, scored as empty outputs."
    strict = {case.rules.strict_ah for case in run.cases}
    if True in strict:
        yield f"Strict AH{' for some cases' if False in strict else ''}: one forbidden term makes AH 0."
    if (rules := own_rules(report["configuration"], "thresholds", "weights")) is not None:
        yield f"Not the default rules: {quoted(rules)}."
    if any(report["configuration"]["overrides"].values()):
        yield "Overrides of the configuration judge some cases by other rules than the table of criteria shows."
