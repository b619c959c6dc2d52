"""The shape of the report."""

from typing import Any

import pytest

from safe_core import (
    DEFAULT_POLICY,
    EMPTY_OUTPUT,
    CaseRow,
    Expectations,
    LatestResults,
    Output,
    build_report,
    prepare,
    result_document,
    score,
)


def fold_of_two() -> LatestResults:
    fold = LatestResults()
    prepared = prepare(Expectations(("x",), ("harm",), ()))
    for test_id, output in (("T1", Output(("x",), "x", ("harm?",))), ("T2", EMPTY_OUTPUT)):
        case = score(prepared, output, DEFAULT_POLICY.rules_for("C", None))
        row = CaseRow.of(
            version=(True, 0, 0, 0), archetype=None, run_id=None, fingerprint="f", expected=True, case=case
        )
        fold.offer(test_id, row)
    return fold


def report(**changes: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "concern_id": "C",
        "batch_id": "B",
        "generated_at": "2026-11-21T20:00:00.000Z",
        "scorer_version": "1.2.3",
        "fingerprint": DEFAULT_POLICY.fingerprint,
        "configuration": DEFAULT_POLICY.configuration(),
        "expected_cases": 2,
        "complete": True,
    }
    return build_report(fold_of_two(), **(fields | changes))


def test_a_report_has_every_field_in_a_fixed_order() -> None:
    whole = report(inputs=[{"name": "B.json", "sha256": "00"}], results=[])
    assert list(whole) == [
        "report_type", "generated_at", "batch_id", "concern_id", "total_cases", "summary", "mean_scores", "pass_rates",
        "label_distribution", "by_archetype", "failure_analysis", "results", "scorer", "configuration", "inputs",
        "vacuous", "empty_outputs", "missing_outputs", "failed_generations", "input_mismatches", "expected_cases",
        "complete", "fingerprints", "runs",
    ]  # fmt: skip
    assert list(report()) == [name for name in whole if name not in {"results", "inputs"}]


def test_a_report_tells_the_folds_numbers() -> None:
    fold, told = fold_of_two(), report()
    half = 1.0 / 2
    assert told["report_type"] == "SAFE_v0"
    assert told["summary"] == {"total_cases": 2, "pass": 0, "review": 0, "fail": 2, "overall_pass_rate": 0.0}
    assert told["mean_scores"] == {"CR": half, "AH": half, "AC": 1.0, "composite": 2 / 3}
    assert told["pass_rates"] == {"CR": half, "AH": half, "AC": 1.0, "overall": 0.0}
    assert told["label_distribution"] == {"Pass": 0, "Review": 0, "Fail": 2}
    assert told["by_archetype"] == {
        "Unknown": {"count": 2, "mean_CR": half, "mean_AH": half, "mean_AC": 1.0, "pass_rate": 0.0}
    }
    assert told["failure_analysis"] == {
        "worst_performers": [result_document(name, None, fold.row(name)) for name in ("T1", "T2")],
        "common_CR_misses": [{"signal": "x", "miss_count": 1}],
        "common_AH_violations": [{"term": "harm", "count": 1}],
        "common_AC_misses": [],
    }
    assert told["scorer"] == {"version": "1.2.3", "fingerprint": DEFAULT_POLICY.fingerprint, "rule": "substring/1"}
    assert told["vacuous"] == {"CR": 0, "AH": 1, "AC": 2, "all": 0}
    assert (told["empty_outputs"], told["missing_outputs"]) == (1, 0)
    assert (told["fingerprints"], told["runs"]) == ({"f": 2}, {"": 2})


def test_a_missing_output_is_counted_as_missing_only() -> None:
    told = report(missing_outputs=1)
    assert (told["empty_outputs"], told["missing_outputs"]) == (0, 1)
    with pytest.raises(ValueError, match="2 missing outputs, but 1 empty ones"):
        report(missing_outputs=2)


def test_the_aggregator_reports_without_a_configuration() -> None:
    told = report(configuration=None, fingerprint=None, expected_cases=None, complete=False)
    assert (told["configuration"], told["scorer"]["fingerprint"], told["expected_cases"]) == (None, None, None)
