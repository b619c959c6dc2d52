"""One example of each event, as its schema shows it; the numbers fit each other."""

from collections.abc import Mapping
from typing import Any, Final

from safe_core import DEFAULT_POLICY

_FINGERPRINT: Final = DEFAULT_POLICY.fingerprint
_SUMMARY: Final = {"total_cases": 2, "pass": 1, "review": 1, "fail": 0, "overall_pass_rate": 0.5}
_RESULT: Final = {
    "test_id": "ST-002",
    "archetype": "Delay_Driver_Profiler",
    "scores": {"CR": 0.5, "AH": 0.5, "AC": 1.0, "composite": 2 / 3},
    "details": {
        "CR": {"found": ["last known well 22:30"], "missing": ["CT after 55 minutes"]},
        "AH": {"violations": ["guideline"]},
        "AC": {"found": ["door-to-needle time"], "missing": []},
    },
    "terms": {"CR": 2, "AH": 2, "AC": 1},
    "label": "Review",
}

EVENT_EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "input": {
        "test_id": "ST-002",
        "batch_id": "stroke_1",
        "concern_id": "STROKE",
        "run_id": "r7",
        "generated_at": "2026-11-21T19:59:58Z",
        "output": {
            "signals": ["Last known well 22:30", "CT after 45 minutes"],
            "summary": "The door-to-needle time was 82 minutes.",
            "followup_questions": ["Which guideline was followed?"],
        },
    },
    "result": {
        "concern_id": "STROKE",
        "batch_id": "stroke_1",
        "timestamp": "2026-11-21T20:00:00.000Z",
        "summary": _SUMMARY,
        "expected_cases": 2,
        "complete": True,
        "run_id": "r7",
        "mixed_runs": False,
        "result": _RESULT,
        "source": {"topic": "factory.generation.output", "partition": 0, "offset": 41, "event_time": 1795291198000},
        "scorer": {"version": "0.1.0", "fingerprint": _FINGERPRINT},
        "expectations_digest": "sha256:2b1f0e6c4d7a93855a0c1f1e6b8d4c7f90a3e5d2c1b0a99887766554433221f0",
        "output_digest": "sha256:7c9e2d4b6a8f01325476980badcfe10123456789abcdeffedcba987654321012",
    },
    "report": {
        "report_type": "SAFE_v0",
        "generated_at": "2026-11-21T20:00:00.250Z",
        "batch_id": "stroke_1",
        "concern_id": "STROKE",
        "total_cases": 2,
        "summary": _SUMMARY,
        "mean_scores": {"CR": 0.75, "AH": 0.75, "AC": 1.0, "composite": 5 / 6},
        "pass_rates": {"CR": 0.5, "AH": 0.5, "AC": 1.0, "overall": 0.5},
        "label_distribution": {"Pass": 1, "Review": 1, "Fail": 0},
        "by_archetype": {
            "Delay_Driver_Profiler": {"count": 1, "mean_CR": 0.5, "mean_AH": 0.5, "mean_AC": 1.0, "pass_rate": 0.0},
            "Unknown": {"count": 1, "mean_CR": 1.0, "mean_AH": 1.0, "mean_AC": 1.0, "pass_rate": 1.0},
        },
        "failure_analysis": {
            "worst_performers": [
                _RESULT,
                {
                    "test_id": "ST-001",
                    "archetype": None,
                    "scores": {"CR": 1.0, "AH": 1.0, "AC": 1.0, "composite": 1.0},
                    "details": {
                        "CR": {"found": ["facial droop"], "missing": []},
                        "AH": {"violations": []},
                        "AC": {"found": [], "missing": []},
                    },
                    "terms": {"CR": 1, "AH": 1, "AC": 0},
                    "label": "Pass",
                },
            ],
            "common_CR_misses": [{"signal": "CT after 55 minutes", "miss_count": 1}],
            "common_AH_violations": [{"term": "guideline", "count": 1}],
            "common_AC_misses": [],
        },
        "scorer": {"version": "0.1.0", "fingerprint": _FINGERPRINT, "rule": "substring/1"},
        "configuration": DEFAULT_POLICY.configuration(),
        "vacuous": {"CR": 0, "AH": 0, "AC": 1, "all": 0},
        "empty_outputs": 0,
        "missing_outputs": 0,
        "expected_cases": 2,
        "complete": True,
        "fingerprints": {_FINGERPRINT: 2},
        "runs": {"r7": 2},
    },
    "dead-letter": {
        "safe.dlq.reason": "expectations_not_found",
        "safe.dlq.stage": "scorer",
        "safe.dlq.detail": "none of 3 batch files holds it",
        "safe.dlq.topic": "factory.generation.output",
        "safe.dlq.partition": "0",
        "safe.dlq.offset": "42",
        "safe.dlq.timestamp": "1795291198000",
        "safe.dlq.group": "safe-v0",
        "safe.dlq.version": "0.1.0",
        "safe.dlq.failed_at": "2026-11-21T20:00:00.000Z",
    },
}
"""By the name of the schema."""
