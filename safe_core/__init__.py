"""The rule book of SAFE v0: from expectations and an output to scores, a label, a report; all computation."""

from safe_core.batch_statistics import BatchSnapshot
from safe_core.case_row import CaseRow, result_document
from safe_core.expectations import MAX_TERMS, Expectations, InvalidExpectations, PreparedExpectations, Terms, prepare
from safe_core.ids import MAX_ID_LENGTH, id_problem
from safe_core.judges import JudgedBy, is_of_concern, judged_by
from safe_core.latest_results import LatestResults
from safe_core.matching_rule import RULE, normalise
from safe_core.narrative_digests import InvalidDigest, digest_of_narrative, do_inputs_match, narrative_of, stated_digest
from safe_core.outputs import EMPTY_OUTPUT, InvalidOutput, Output
from safe_core.policy import (
    CRITERIA,
    DEFAULT_POLICY,
    UNKNOWN_ARCHETYPE,
    Criterion,
    InvalidPolicy,
    Override,
    Policy,
    Rules,
    Threshold,
    Thresholds,
    Weights,
)
from safe_core.report import REPORT_TYPE, build_report
from safe_core.scoring import (
    LABELS,
    CaseScore,
    Details,
    Hits,
    Label,
    Passed,
    Scores,
    Vacuous,
    hits_in,
    score,
    score_of_hits,
)
from safe_core.testcases import (
    BadTestCase,
    Batch,
    InvalidBatch,
    NoBatch,
    TestCase,
    known_archetype,
    parse_batch,
    scenario_archetype,
)

__all__ = [
    "CRITERIA",
    "DEFAULT_POLICY",
    "EMPTY_OUTPUT",
    "LABELS",
    "MAX_ID_LENGTH",
    "MAX_TERMS",
    "REPORT_TYPE",
    "RULE",
    "UNKNOWN_ARCHETYPE",
    "BadTestCase",
    "Batch",
    "BatchSnapshot",
    "CaseRow",
    "CaseScore",
    "Criterion",
    "Details",
    "Expectations",
    "Hits",
    "InvalidBatch",
    "InvalidDigest",
    "InvalidExpectations",
    "InvalidOutput",
    "InvalidPolicy",
    "JudgedBy",
    "Label",
    "LatestResults",
    "NoBatch",
    "Output",
    "Override",
    "Passed",
    "Policy",
    "PreparedExpectations",
    "Rules",
    "Scores",
    "Terms",
    "TestCase",
    "Threshold",
    "Thresholds",
    "Vacuous",
    "Weights",
    "build_report",
    "digest_of_narrative",
    "do_inputs_match",
    "hits_in",
    "id_problem",
    "is_of_concern",
    "judged_by",
    "known_archetype",
    "narrative_of",
    "normalise",
    "parse_batch",
    "prepare",
    "result_document",
    "scenario_archetype",
    "score",
    "score_of_hits",
    "stated_digest",
]
