"""What a run of `safe score` has found: verdict, order, and why a case did not pass."""

from collections.abc import Sequence

import pytest

from consumer.offline.scored_run import CaseLine, Judged
from safe_core import CRITERIA, DEFAULT_POLICY, EMPTY_OUTPUT, Expectations, Label, Output, Policy, Threshold
from tests.support.scored_runs import SMALL, Sample, nasty_samples, scored_run

TERMS = ("fever", "rash", "wheeze", "pallor")
NOTHING = Expectations((), (), ())
DEFAULT = Threshold(review=0.5, pass_=0.8)


def signals(found: int, *, archetype: str | None = "Handover_Reviewer", metric_id: str | None = None) -> Sample:
    """A case of which so many of four signals were found; AH and AC have nothing to check."""
    return Sample(
        f"S-{found}", Expectations(TERMS, (), ()), Output(TERMS[:found], "", ()), archetype, metric_id=metric_id
    )


PASS, REVIEW, FAIL = signals(4), signals(2), signals(1)


def only(sample: Sample, policy: Policy = DEFAULT_POLICY) -> CaseLine:
    (case,) = scored_run([sample], policy=policy).cases
    return case


# --- the verdict ------------------------------------------------------------------------------------------------------

VERDICTS: list[tuple[Sequence[Sample], Label]] = [
    # one of each
    ([PASS], "Pass"),
    ([REVIEW], "Review"),
    ([FAIL], "Fail"),
    # the worst decides, wherever it stands
    ([PASS, REVIEW], "Review"),
    ([FAIL, PASS], "Fail"),
    ([PASS, FAIL, REVIEW], "Fail"),
]


@pytest.mark.parametrize(("samples", "verdict"), VERDICTS)
def test_the_verdict_is_the_worst_label(samples: Sequence[Sample], verdict: Label) -> None:
    assert scored_run(samples).verdict == verdict


def test_the_worst_come_first_and_each_lot_in_the_order_of_the_report() -> None:
    run = scored_run(SMALL)
    assert [(case.label, case.test_id) for case in run.worst_first()] == [
        ("Fail", "S11-W1-003"),
        ("Fail", "S11-W2-002"),
        ("Fail", "S11-W2-003"),
        ("Review", "S11-W1-002"),
        ("Review", "S11-W2-001"),
        ("Pass", "S11-W1-001"),
        ("Pass", "S11-W2-004"),
    ]
    assert [case.test_id for case in run.cases] == [result["test_id"] for result in run.report["results"]]


def test_a_missing_output_is_told_from_an_empty_one() -> None:
    expectations = Expectations(TERMS, (), ())
    empty, missing = only(Sample("A", expectations, EMPTY_OUTPUT)), only(Sample("A", expectations, None))
    assert (empty.answered, missing.answered) == (True, False)
    assert empty.row.scores == missing.row.scores


# --- why --------------------------------------------------------------------------------------------------------------


def missed_by(case: CaseLine) -> list[tuple[str, float, str]]:
    return [(each.criterion, each.score, each.missed) for each in case.judged if each.missed]


AT_THE_BOUNDS: list[tuple[Sample, Threshold, Label, list[tuple[str, float, str]]]] = [
    # at `pass` it passes, just below it is to be reviewed
    (signals(3), Threshold(review=0.5, pass_=0.75), "Pass", []),
    (signals(3), Threshold(review=0.5, pass_=0.7500000000000001), "Review", [("CR", 0.75, "pass 0.7500000000000001")]),
    # at `review` it is to be reviewed, just below it fails
    (signals(2), Threshold(review=0.5, pass_=0.75), "Review", [("CR", 0.5, "pass 0.75")]),
    (signals(2), Threshold(review=0.5000000000000001, pass_=0.75), "Fail", [("CR", 0.5, "review 0.5000000000000001")]),
    # both bounds at the score, where nothing is ever reviewed
    (signals(2), Threshold(review=0.5, pass_=0.5), "Pass", []),
    (signals(1), Threshold(review=0.5, pass_=0.5), "Fail", [("CR", 0.25, "review 0.5")]),
    # bounds that everything reaches, and one that only all reach
    (signals(0), Threshold(review=0.0, pass_=0.0), "Pass", []),
    (signals(0), Threshold(review=0.0, pass_=1.0), "Review", [("CR", 0.0, "pass 1.0")]),
    (signals(3), Threshold(review=1.0, pass_=1.0), "Fail", [("CR", 0.75, "review 1.0")]),
]


@pytest.mark.parametrize(("sample", "threshold", "label", "missed"), AT_THE_BOUNDS)
def test_the_bound_that_was_missed_is_named(
    sample: Sample, threshold: Threshold, label: Label, missed: list[tuple[str, float, str]]
) -> None:
    policy = Policy.from_document({"thresholds": {"CR": {"pass": threshold.pass_, "review": threshold.review}}})
    case = only(sample, policy)
    assert (case.label, missed_by(case)) == (label, missed)


def test_criteria_are_judged_each_by_its_own_thresholds() -> None:
    expectations = Expectations(TERMS, TERMS[:2], TERMS)
    case = only(Sample("A", expectations, Output(("fever",), "a rash", ("Was it a fever?",))))
    assert case.judged == (
        Judged("CR", 0.5, DEFAULT),
        Judged("AH", 0.5, Threshold(review=0.5, pass_=1.0)),
        Judged("AC", 0.25, DEFAULT),
    )
    assert [each.label for each in case.judged] == ["Review", "Review", "Fail"]


def test_a_criterion_with_nothing_to_check_misses_no_bound() -> None:
    assert [each.missed for each in only(Sample("A", NOTHING, None)).judged] == [None, None, None]


@pytest.mark.parametrize("sample", [*SMALL, *nasty_samples(), *(signals(n) for n in range(5))], ids=lambda s: s.test_id)
def test_the_worst_judged_criterion_labels_the_case(sample: Sample) -> None:
    case = only(sample)
    labels = {each.criterion: each.label for each in case.judged}
    assert case.label == next(label for label in ("Fail", "Review", "Pass") if label in labels.values())
    passed = {criterion: getattr(case.row.passed, criterion) for criterion in CRITERIA}
    assert passed == {criterion: label == "Pass" for criterion, label in labels.items()}


# --- overrides --------------------------------------------------------------------------------------------------------

OVERRIDES = Policy.from_document(
    {
        "overrides": {
            "metric_id": {"lenient": {"thresholds": {"CR": {"pass": 0.25, "review": 0.1}}}},
            "archetype": {
                "Strict": {"thresholds": {"CR": {"pass": 1.0}}},
                "Unknown": {"thresholds": {"CR": {"pass": 0.5}}},
            },
        }
    }
)

OVERRIDDEN: list[tuple[Sample, Label, list[tuple[str, float, str]]]] = [
    # the default layer
    (signals(3), "Review", [("CR", 0.75, "pass 0.8")]),
    # its metric_id's
    (signals(1, metric_id="lenient"), "Pass", []),
    # its archetype's
    (signals(3, archetype="Strict"), "Review", [("CR", 0.75, "pass 1.0")]),
    # of both: `pass` by the archetype, `review` by the metric_id
    (signals(1, metric_id="lenient", archetype="Strict"), "Review", [("CR", 0.25, "pass 1.0")]),
    # no archetype is the group Unknown
    (signals(2, archetype=None), "Pass", []),
]


@pytest.mark.parametrize(("sample", "label", "missed"), OVERRIDDEN)
def test_a_case_is_judged_and_explained_by_its_own_rules(
    sample: Sample, label: Label, missed: list[tuple[str, float, str]]
) -> None:
    case = only(sample, OVERRIDES)
    assert (case.label, missed_by(case)) == (label, missed)
