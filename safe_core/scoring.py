"""The scores and the label of one case (contract.md, "Scoring")."""

from collections.abc import Callable, Mapping
from itertools import compress
from typing import Final, Literal, NamedTuple, get_args

from safe_core.expectations import PreparedExpectations, Terms
from safe_core.matching_rule import joined, normalise, which_occur
from safe_core.outputs import Output
from safe_core.policy import Criterion, Rules, Thresholds, Weights

Label = Literal["Pass", "Review", "Fail"]
LABELS: tuple[Label, ...] = get_args(Label)


class Scores(NamedTuple):
    """The three criteria and the composite, each in [0, 1]."""

    CR: float
    AH: float
    AC: float
    composite: float


class Details(NamedTuple):
    """The terms behind the scores, in the order and spelling of the expectations."""

    cr_found: tuple[str, ...]
    cr_missing: tuple[str, ...]
    ah_violations: tuple[str, ...]
    ac_found: tuple[str, ...]
    ac_missing: tuple[str, ...]


class Passed(NamedTuple):
    """Whether each criterion reached its own `pass` threshold (contract.md, "Label")."""

    CR: bool
    AH: bool
    AC: bool


class Vacuous(NamedTuple):
    """Whether each criterion had nothing to check (contract.md, "Nothing to check")."""

    CR: bool
    AH: bool
    AC: bool


class CaseScore(NamedTuple):
    """One scored case."""

    scores: Scores
    details: Details
    terms: Terms
    passed: Passed
    vacuous: Vacuous
    empty_output: bool
    label: Label


def _read_for_cr(output: Output) -> str:
    return joined((*output.signals, output.summary))


def _read_for_ah(output: Output) -> str:
    return joined(output.followup_questions)


def _read_for_ac(output: Output) -> str:
    return normalise(output.summary)


READ: Final[Mapping[Criterion, Callable[[Output], str]]] = {"CR": _read_for_cr, "AH": _read_for_ah, "AC": _read_for_ac}
"""What each criterion reads of an output, as terms are looked for in it (contract.md, "Criteria")."""


class Hits(NamedTuple):
    """All of an output that scores depend on: which terms of each list it holds, and whether it says anything."""

    CR: tuple[bool, ...]
    AH: tuple[bool, ...]
    AC: tuple[bool, ...]
    asks_questions: bool
    is_empty: bool


def score(expected: PreparedExpectations, output: Output, rules: Rules) -> CaseScore:
    """Score one output against the expectations of its test case (contract.md, "Scoring")."""
    return score_of_hits(expected, hits_in(output, expected), rules)


def hits_in(output: Output, expected: PreparedExpectations) -> Hits:
    """Look for each term in what its criterion reads (contract.md, "Matching")."""
    cr, ah, ac = expected.CR.normalised, expected.AH.normalised, expected.AC.normalised
    return Hits(
        tuple(which_occur(_read_for_cr(output), cr)) if cr else (),
        tuple(which_occur(_read_for_ah(output), ah)) if ah else (),
        tuple(which_occur(_read_for_ac(output), ac)) if ac else (),
        output.asks_questions,
        output.is_empty,
    )


def hits_of_failure(expected: PreparedExpectations) -> Hits:
    """Give what a failed generation holds: nothing, as an empty output, but it is not counted as one."""
    cr, ah, ac = expected.terms
    return Hits((False,) * cr, (False,) * ah, (False,) * ac, asks_questions=False, is_empty=False)


def score_of_hits(expected: PreparedExpectations, hits: Hits, rules: Rules) -> CaseScore:
    """Score an output by what was found in it (contract.md, "Criteria", "Composite", "Label")."""
    cr_found, cr_missing = _parted(expected.CR.terms, hits.CR)
    ah_violations, _ = _parted(expected.AH.terms, hits.AH)
    ac_found, ac_missing = _parted(expected.AC.terms, hits.AC)
    terms = expected.terms
    cr = _found_share(len(cr_found), terms.CR)
    ah = _avoided_share(len(ah_violations), terms.AH, strict=rules.strict_ah)
    ac = _found_share(len(ac_found), terms.AC)
    passed = _passed(cr, ah, ac, rules.thresholds)
    return CaseScore(
        scores=Scores(cr, ah, ac, _composite(cr, ah, ac, rules.weights)),
        details=Details(cr_found, cr_missing, ah_violations, ac_found, ac_missing),
        terms=terms,
        passed=passed,
        vacuous=Vacuous(terms.CR == 0, terms.AH == 0 or not hits.asks_questions, terms.AC == 0),
        empty_output=hits.is_empty,
        label=_label(cr, ah, ac, rules.thresholds, passed),
    )


def label_of_counts(cr_found: int, ah_violations: int, ac_found: int, terms: Terms, rules: Rules) -> Label:
    """Give the label for these numbers of found terms and violations, of all terms that the lists have."""
    cr, ac = _found_share(cr_found, terms.CR), _found_share(ac_found, terms.AC)
    ah = _avoided_share(ah_violations, terms.AH, strict=rules.strict_ah)
    return _label(cr, ah, ac, rules.thresholds, _passed(cr, ah, ac, rules.thresholds))


def _parted(terms: tuple[str, ...], hits: tuple[bool, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Part the terms into found and missing ones; a term listed twice counts twice (contract.md, "Matching")."""
    if False not in hits:
        return terms, ()
    if True not in hits:
        return (), terms
    return tuple(compress(terms, hits)), tuple([term for term, hit in zip(terms, hits, strict=True) if not hit])


def _found_share(found: int, total: int) -> float:
    """Give CR or AC: 1.0 for an empty list, else the share of terms found (contract.md, "Criteria").

    An empty output needs no rule of its own: no term stands in it, which makes 0.0 (contract.md, "Nothing to check").
    """
    return found / total if total else 1.0


def _avoided_share(violations: int, total: int, *, strict: bool) -> float:
    """Give AH (contract.md, "Criteria"); no question violates anything, which makes 1.0."""
    if not total:
        return 1.0
    if strict:
        return 0.0 if violations else 1.0
    return 1.0 - violations / total


def _composite(cr: float, ah: float, ac: float, weights: Weights) -> float:
    """Give the weighted mean, in exactly this order of operations (contract.md, "Composite")."""
    return (weights.CR * cr + weights.AH * ah + weights.AC * ac) / (weights.CR + weights.AH + weights.AC)


def _passed(cr: float, ah: float, ac: float, thresholds: Thresholds) -> Passed:
    return Passed(cr >= thresholds.CR.pass_, ah >= thresholds.AH.pass_, ac >= thresholds.AC.pass_)


def _label(cr: float, ah: float, ac: float, thresholds: Thresholds, passed: Passed) -> Label:
    """Give the label (contract.md, "Label"): below `review` fails, else below `pass` is to be reviewed."""
    if cr < thresholds.CR.review or ah < thresholds.AH.review or ac < thresholds.AC.review:
        return "Fail"
    return "Pass" if passed == (True, True, True) else "Review"
