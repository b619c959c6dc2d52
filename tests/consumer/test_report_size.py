"""A report is always writable, and says what it had to leave out."""

import json
from typing import Any

import pytest

from consumer.worker.report_size import fit_report

NO_DETAILS: dict[str, Any] = {
    "CR": {"found": [], "missing": []},
    "AH": {"violations": []},
    "AC": {"found": [], "missing": []},
}


def report(*, term: str = "fever", archetypes: int = 2, runs: int = 1) -> dict[str, Any]:
    details = {
        "CR": {"found": [], "missing": [term]},
        "AH": {"violations": [term]},
        "AC": {"found": [term], "missing": []},
    }
    return {
        "report_type": "SAFE_v0",
        "summary": {"total_cases": 3},
        "by_archetype": {f"A{n:04d}": {"count": 1_000 - n, "pass_rate": 0.5} for n in range(archetypes)},
        "failure_analysis": {
            "worst_performers": [{"test_id": f"T-{n}", "details": details, "label": "Fail"} for n in range(5)],
            "common_CR_misses": [{"signal": term, "miss_count": 5}],
            "common_AH_violations": [{"term": term, "count": 5}],
            "common_AC_misses": [],
        },
        "runs": {f"r{n:05d}": n + 1 for n in range(runs)},
        "fingerprints": {"sha256:0": 3},
    }


def fitted(document: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    value = fit_report(document, max_bytes)
    assert len(value) <= max_bytes
    written: dict[str, Any] = json.loads(value)
    return written


def test_a_report_within_the_limit_is_written_as_it_is() -> None:
    whole = report()
    size = len(json.dumps(whole, separators=(",", ":")))
    assert fitted(whole, size) == whole
    assert "truncated" in fitted(whole, size - 1)


def test_the_details_of_the_worst_performers_go_first() -> None:
    cut = fitted(report(term="x" * 1_000, archetypes=200), 15_000)
    assert cut["truncated"] == ["worst_performers.details"]
    assert [row["details"] for row in cut["failure_analysis"]["worst_performers"]] == [NO_DETAILS] * 5
    assert cut["failure_analysis"]["worst_performers"][0]["test_id"] == "T-0"
    assert len(cut["by_archetype"]) == 200


def test_then_all_but_the_hundred_largest_archetypes_go() -> None:
    cut = fitted(report(archetypes=10_000), 10_000)
    assert cut["truncated"] == ["worst_performers.details", "by_archetype"]
    assert list(cut["by_archetype"]) == [f"A{n:04d}" for n in range(100)]


def test_of_archetypes_of_one_size_the_first_by_name_stay() -> None:
    whole = report(archetypes=300)
    for group in whole["by_archetype"].values():
        group["count"] = 1
    assert list(fitted(whole, 9_000)["by_archetype"]) == [f"A{n:04d}" for n in range(100)]


LAST_RESORTS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("very many runs", report(runs=10_000), ["worst_performers.details", "runs"]),
    ("very long terms", report(term="x" * 20_000), ["worst_performers.details", "common_terms"]),
]


@pytest.mark.parametrize(("document", "truncated"), [row[1:] for row in LAST_RESORTS], ids=[r[0] for r in LAST_RESORTS])
def test_what_makes_it_too_large_goes_and_nothing_is_named_that_stayed(
    document: dict[str, Any], truncated: list[str]
) -> None:
    assert fitted(document, 10_000)["truncated"] == truncated


def test_the_report_that_was_given_is_left_alone() -> None:
    whole = report(term="x" * 20_000, archetypes=500, runs=500)
    before = json.dumps(whole)
    fit_report(whole, 5_000)
    assert json.dumps(whole) == before
