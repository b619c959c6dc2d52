"""The report of a batch (contract.md, "Report")."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from safe_core.latest_results import LatestResults
from safe_core.matching_rule import RULE

REPORT_TYPE = "SAFE_v0"


def build_report(
    fold: LatestResults,
    *,
    concern_id: str,
    batch_id: str,
    generated_at: str,
    scorer_version: str,
    fingerprint: str | None,
    configuration: dict[str, Any] | None,
    expected_cases: int | None,
    complete: bool,
    missing_outputs: int = 0,
    inputs: Sequence[dict[str, Any]] | None = None,
    results: Sequence[dict[str, Any]] | None = None,
    lenient: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Give the report with its fields in a fixed order; `inputs` and `results` only where given.

    `missing_outputs` counts the rows that stand for no output at all: scored as empty, they are among the fold's
    empty outputs, and are counted in the report as missing only. `configuration` is Policy.configuration(), `lenient`
    what stands beside the mean scores, by default the means of the rows that have marks.
    Raises ValueError if more outputs are missing than empty.
    """
    if not 0 <= missing_outputs <= fold.empty_outputs:
        raise ValueError(f"{missing_outputs} missing outputs, but {fold.empty_outputs} empty ones")
    summary, snapshot = fold.summary(), fold.snapshot()
    return {
        "report_type": REPORT_TYPE,
        "generated_at": generated_at,
        "batch_id": batch_id,
        "concern_id": concern_id,
        "total_cases": summary["total_cases"],
        "summary": summary,
        "mean_scores": snapshot.mean_scores,
        **(lenient or snapshot.marks.means),
        "pass_rates": {**snapshot.pass_ratios, "overall": snapshot.pass_ratio},
        "label_distribution": snapshot.label_distribution,
        "by_archetype": fold.by_archetype(),
        "failure_analysis": fold.failure_analysis(),
        **({} if results is None else {"results": list(results)}),
        "scorer": {"version": scorer_version, "fingerprint": fingerprint, "rule": RULE},
        "configuration": configuration,
        **({} if inputs is None else {"inputs": list(inputs)}),
        "vacuous": fold.vacuous(),
        "empty_outputs": fold.empty_outputs - missing_outputs,
        "missing_outputs": missing_outputs,
        "failed_generations": fold.failed_generations,
        "input_mismatches": fold.input_mismatches,
        "expected_cases": expected_cases,
        "complete": complete,
        "fingerprints": fold.fingerprints,
        "runs": fold.runs,
    }
