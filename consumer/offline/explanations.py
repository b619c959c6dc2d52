"""Explanations beside scores: never a score moves by them (contract.md, "Matching")."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from consumer.offline.decisions import Decisions
from consumer.offline.many_diagnoses import Question, diagnoses
from consumer.offline.pages.quotes import text_of
from consumer.offline.scored_run import LABELS, Explanation, ScoredRun
from consumer.offline.selection import Selection
from consumer.terminal import NO_BAR, Bar
from safe_core import EMPTY_OUTPUT, Label, Output
from safe_core.diagnosis import KINDS, VERDICTS, Miss, miss_document
from safe_core.lint import NarratedCase, ceiling
from safe_core.narratives import digest_of_narrative

FIELDS: Final = ("miss_verdicts", "miss_kinds", "misses_not_in_narrative", "ceiling")
"""What an explained report has more than another, besides the `misses` of each result."""


def explained(
    run: ScoredRun,
    outputs: Mapping[str, Output],
    selection: Selection,
    narratives: Mapping[str, str | None],
    *,
    include_text: bool = False,
    labels: Collection[Label] = LABELS,
    bar: Bar = NO_BAR,
) -> ScoredRun:
    """Diagnose every missed term of a run, or of its cases with certain labels.

    `outputs` are those that were scored and `narratives` what their cases tell, both by test_id. With `include_text`
    the report quotes the passages, which may hold patient data (contract.md, "Confidentiality").
    """
    explanations: dict[str, Explanation] = {}
    asked = [case for case in run.cases if case.label in labels]
    bar.explaining(len(asked))
    questions = [
        Question(
            selection.cases[case.test_id].test_case.expectations,
            outputs.get(case.test_id, EMPTY_OUTPUT),
            narratives.get(case.test_id),
        )
        for case in asked
    ]
    decisions = Decisions.read(selection.test_dir)
    for case, question, diagnosis in zip(asked, questions, diagnoses(questions), strict=True):
        told = decisions.of_case(case.test_id, digest_of_narrative(question.narrative))
        explanations[case.test_id] = Explanation(diagnosis, question.output, question.narrative, told)
        bar(1)
    judged = [explanations[case.test_id] for case in asked if case.has_reasons]
    report = _with_misses(run.report, explanations, judged, include_text=include_text)
    narrated = (
        NarratedCase(selection.cases[case.test_id].prepared, narratives.get(case.test_id), case.rules)
        for case in run.cases
    )
    report["ceiling"] = ceiling(narrated).document()
    return replace(run, report=report, explanations=explanations, shows_text=include_text)


def _with_misses(
    report: Mapping[str, Any],
    explanations: Mapping[str, Explanation],
    judged: Iterable[Explanation],
    *,
    include_text: bool,
) -> dict[str, Any]:
    """Add the misses of each case, and counts of those that have a reason: `judged` answer from their own narrative."""
    results = [
        {**result, "misses": misses_documents(explanations[result["test_id"]], include_text=include_text)}
        for result in report["results"]
        if result["test_id"] in explanations
    ]
    misses = [miss for explanation in judged for miss in explanation.diagnosis.misses]
    kinds, verdicts = Counter(miss.kind for miss in misses), Counter(miss.verdict for miss in misses)
    return {
        **report,
        "results": results,
        "miss_verdicts": {verdict: verdicts[verdict] for verdict in VERDICTS},
        "miss_kinds": {kind: kinds[kind] for kind in KINDS if kinds[kind]},
        "misses_not_in_narrative": sum(miss.in_narrative == "no" for miss in misses),
    }


def misses_documents(explanation: Explanation, *, include_text: bool) -> list[dict[str, Any]]:
    """Give the misses of a case as a report shows them; the passages are quoted only with `include_text`."""
    return [_document(miss, explanation.output, include_text=include_text) for miss in explanation.diagnosis.misses]


def _document(miss: Miss, output: Output, *, include_text: bool) -> dict[str, Any]:
    document = miss_document(miss)
    if include_text:
        document["text"] = None if miss.passage is None else text_of(output, miss.passage)
    return document
