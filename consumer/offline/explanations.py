"""Explanations beside scores: never a score moves by them (contract.md, "Matching")."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from consumer.offline.decisions import NO_DECISIONS
from consumer.offline.many_diagnoses import Question, diagnoses
from consumer.offline.pages.quotes import evidence_text, text_of
from consumer.offline.scored_run import Explanation, OpinionAbout, ScoredRun, ShownOpinion
from consumer.terminal import Bar
from safe_core import Expectations
from safe_core.ceiling import NarratedCase, ceiling
from safe_core.diagnosis import KINDS, NARRATIVE_SAYS, OUTPUT_SAYS, VERDICTS, Miss, Verdict, miss_document

NO_EXPECTATIONS: Final = Expectations()
ANSWER_FIELDS: Final = ("miss_output_says", "miss_narrative_says")
FIELDS: Final = ("miss_verdicts", "miss_kinds", *ANSWER_FIELDS, "misses_not_in_narrative", "ceiling")
"""What an explained report has more than another, besides the `misses` of each result."""


def explained(
    run: ScoredRun,
    questions: Mapping[str, Question],
    narrated: Iterable[NarratedCase],
    *,
    include_text: bool,
    bar: Bar,
) -> ScoredRun:
    """Diagnose every missed term of the cases of a run that there are questions about, by test_id.

    `narrated` are all its cases. With `include_text` the report quotes the passages, which may hold patient data
    (contract.md, "Confidentiality").
    """
    asked = [case for case in run.cases if case.test_id in questions]
    bar.explaining(len(asked))
    explanations: dict[str, Explanation] = {}
    for (test_id, question), diagnosis in zip(questions.items(), diagnoses([*questions.values()]), strict=True):
        told = run.decisions.get(test_id, NO_DECISIONS)
        explanations[test_id] = Explanation(diagnosis, question.output, question.narrative, told)
        bar(1)
    misses = [miss for case in asked if case.has_reasons for miss in explanations[case.test_id].diagnosis.misses]
    kinds = Counter(miss.kind for miss in misses)
    report = {
        **run.report,
        "results": [
            {**result, "misses": misses_documents(explanations[result["test_id"]], include_text=include_text)}
            for result in run.report["results"]
            if result["test_id"] in explanations
        ],
        "miss_verdicts": counts_by_verdict(misses),
        "miss_kinds": {kind: kinds[kind] for kind in KINDS if kinds[kind]},
        **counts_by_answer(misses),
        "misses_not_in_narrative": sum(miss.in_narrative == "no" for miss in misses),
        "ceiling": ceiling(narrated).document(),
    }
    return replace(run, report=report, explanations=explanations, shows_text=include_text)


_RARE: Final = frozenset[Verdict](("not_asked_for", "accepted"))
"""Verdicts that most reports have none of, and then do not count."""


def counts_by_verdict(misses: Iterable[Miss]) -> dict[Verdict, int]:
    """Count the misses of each verdict."""
    counts = Counter(miss.verdict for miss in misses)
    return {verdict: counts[verdict] for verdict in VERDICTS if verdict not in _RARE or counts[verdict]}


def counts_by_answer(misses: Collection[Miss]) -> dict[str, dict[str, int]]:
    """Count the misses by what the output says of them, and by what the narrative says, if the model was asked."""
    asked = [miss for miss in misses if miss.verdict != "not_asked_for"]
    output = Counter(miss.output_says for miss in asked)
    narrative = Counter(miss.narrative_says for miss in asked)
    return {
        "miss_output_says": {each: output[each] for each in OUTPUT_SAYS},
        "miss_narrative_says": {each: narrative[each] for each in NARRATIVE_SAYS},
    }


_OPINED: Final = {
    "misses": "miss",
    "doubtful": "doubtful_hit",
    "near_violations": "near_violation",
    "unsupported": "unsupported_value",
}
"""The lists of a result whose entries a model may have an opinion on, and the kind of that opinion."""


def with_opinions(result: Mapping[str, Any], opinions: Mapping[OpinionAbout, ShownOpinion]) -> dict[str, Any]:
    """Give a result with the opinion beside each of its entries that there is one on."""

    def noted(kind: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        start = entry["start"] if kind == "unsupported_value" else -1
        criterion = "AH" if kind == "near_violation" else entry.get("criterion")
        opinion = opinions.get((kind, criterion, entry.get("term", entry.get("text")), start))
        return entry if opinion is None else {**entry, "opinion": opinion.document}

    listed = {name: [noted(kind, each) for each in result.get(name) or ()] for name, kind in _OPINED.items()}
    return {**result, **{name: entries for name, entries in listed.items() if entries}}


def misses_documents(explanation: Explanation, *, include_text: bool) -> list[dict[str, Any]]:
    """Give the misses of a case as a report shows them; passages and evidence are quoted only with `include_text`."""
    documents = [miss_document(miss) for miss in explanation.diagnosis.misses]
    if include_text:
        for miss, document in zip(explanation.diagnosis.misses, documents, strict=True):
            document["text"] = None if miss.passage is None else text_of(explanation.output, miss.passage)
            for place, entry in zip(miss.evidence, document["evidence"], strict=True):
                entry["text"] = evidence_text(explanation, place)
    return documents
