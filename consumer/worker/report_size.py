"""A report must always be writable: what is left out, and how it says so (contract.md, "Report event")."""

from collections.abc import Callable
from typing import Any

import orjson

_KEPT = 100

Report = dict[str, Any]


def fit_report(report: Report, max_bytes: int) -> bytes:
    """Encode a report within the limit; `truncated` names what had to be left out, and is absent otherwise."""
    value = orjson.dumps(report)
    truncated: list[str] = []
    for name, leave_out in STEPS:
        if len(value) <= max_bytes:
            break
        shorter = leave_out(report)
        if shorter == report:
            continue
        report = shorter
        truncated.append(name)
        value = orjson.dumps({**report, "truncated": truncated})
    return value


def _without_worst_details(report: Report) -> Report:
    analysis = report["failure_analysis"]
    worst = [{**row, "details": _NO_DETAILS} for row in analysis["worst_performers"]]
    return {**report, "failure_analysis": {**analysis, "worst_performers": worst}}


def _with_largest_archetypes(report: Report) -> Report:
    return {**report, "by_archetype": _largest(report["by_archetype"], lambda group: int(group["count"]))}


def _with_largest_runs(report: Report) -> Report:
    return {**report, "runs": _largest(report["runs"], int), "fingerprints": _largest(report["fingerprints"], int)}


def _without_common_terms(report: Report) -> Report:
    analysis = report["failure_analysis"]
    return {**report, "failure_analysis": {key: analysis[key] if key == "worst_performers" else [] for key in analysis}}


def _largest(groups: dict[str, Any], size: Callable[[Any], int]) -> dict[str, Any]:
    kept = sorted(groups, key=lambda name: (-size(groups[name]), name))[:_KEPT]
    return {name: groups[name] for name in sorted(kept)}


_NO_DETAILS: dict[str, dict[str, list[str]]] = {
    "CR": {"found": [], "missing": []},
    "AH": {"violations": []},
    "AC": {"found": [], "missing": []},
}

# The contract names the first two; the others make the promise hold for a batch of very many runs or of very long
# terms.
STEPS: tuple[tuple[str, Callable[[Report], Report]], ...] = (
    ("worst_performers.details", _without_worst_details),
    ("by_archetype", _with_largest_archetypes),
    ("runs", _with_largest_runs),
    ("common_terms", _without_common_terms),
)
