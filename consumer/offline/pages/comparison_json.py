"""A comparison as JSON (contract.md, "Comparison"); no number is rounded."""

import re
from collections.abc import Iterable
from typing import Any, Final

import orjson

from consumer.offline.compare import Change, Comparison, NotJudged
from consumer.offline.stored_report import StoredResult
from safe_core import Criterion

MARK: Final = re.compile(r'\{\s*"judged":\s*\d+,\s*"worse":\s*\[')
"""How each such document begins: SAFE recognises its own by it."""


def comparison_json(comparison: Comparison) -> str:
    """Give the document as text, indented, with a line feed at its end."""
    return orjson.dumps(comparison_document(comparison), option=orjson.OPT_INDENT_2).decode() + "\n"


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """Give the document: of the judged cases those that got worse or better, and every case that is not judged."""
    return {
        "judged": len(comparison.cases),
        "worse": [_changed(case) for case in comparison.cases if case.direction < 0],
        "better": [_changed(case) for case in comparison.cases if case.direction > 0],
        "lost": [_lost(case) for case in comparison.lost],
        "mean_drop": comparison.mean_drop,
        "not_judged": [
            {"test_id": case.test_id, "side": case.side, "reason": case.reason} for case in comparison.not_judged
        ],
    }


def _changed(case: Change) -> dict[str, Any]:
    changes = case.terms
    return {
        "test_id": case.test_id,
        "batch_id": case.batch_id,
        "by": "label" if case.step else "score",
        "base": _judgement(case.before),
        "new": _judgement(case.after),
        "terms_lost": _terms((change.criterion, term) for change in changes for term in change.lost),
        "terms_gained": _terms((change.criterion, term) for change in changes for term in change.won),
    }


def _lost(case: NotJudged) -> dict[str, Any]:
    return {
        "test_id": case.test_id,
        "batch_id": case.batch_id,
        "reason": case.reason,
        "base": None if case.before is None else _judgement(case.before),
        "terms_lost": _terms(case.found_terms),
    }


def _judgement(result: StoredResult) -> dict[str, Any]:
    return {"label": result.label, "composite": result.scores.composite}


def _terms(terms: Iterable[tuple[Criterion, str]]) -> list[dict[str, str]]:
    return [{"criterion": criterion, "term": term} for criterion, term in terms]
