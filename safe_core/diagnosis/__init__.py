"""Why a required term was not found, and which found ones the text may not mean; no score depends on it."""

from collections.abc import Collection
from dataclasses import replace
from functools import cache, partial
from typing import Literal

from safe_core.accepted_wordings import Accepted, is_accepted
from safe_core.diagnosis.answers import contradicts
from safe_core.diagnosis.diagnosis_types import (
    KINDS,
    NARRATIVE_SAYS,
    OUTPUT_SAYS,
    REMEDIES,
    VERDICTS,
    Diagnosis,
    Evidence,
    InNarrative,
    Kind,
    Miss,
    NarrativeSays,
    Occurrence,
    OutputSays,
    Passage,
    Remedy,
    Verdict,
    miss_document,
)
from safe_core.diagnosis.doubtful_hits import (
    DOUBTFUL_KINDS,
    DoubtfulHit,
    DoubtfulKind,
    doubtful_document,
    doubtful_hits,
)
from safe_core.diagnosis.joined_text import occurrences
from safe_core.diagnosis.misses import Fields, ReadNarrative, explain, with_narrative
from safe_core.diagnosis.output_texts import asked_criteria, texts_of
from safe_core.diagnosis.reading import read
from safe_core.expectations import Expectations, prepare
from safe_core.generations import OutputField
from safe_core.outputs import Output
from safe_core.policy import DEFAULT_POLICY
from safe_core.scoring import score

__all__ = [
    "DOUBTFUL_KINDS",
    "KINDS",
    "NARRATIVE_SAYS",
    "OUTPUT_SAYS",
    "REMEDIES",
    "VERDICTS",
    "Diagnosis",
    "DoubtfulHit",
    "DoubtfulKind",
    "Evidence",
    "InNarrative",
    "Kind",
    "Miss",
    "NarrativeSays",
    "Occurrence",
    "OutputSays",
    "Passage",
    "Remedy",
    "Verdict",
    "asked_criteria",
    "diagnose",
    "doubtful_document",
    "doubtful_hits",
    "miss_document",
]


def diagnose(
    expectations: Expectations,
    output: Output,
    narrative: str | None,
    not_asked_for: Collection[OutputField] = (),
    accepted: Accepted = (),
) -> Diagnosis:
    """Explain every missed term of a case, and say where the others stand.

    The misses of a criterion have no other reason where the model was asked for none of the fields that it reads; nor
    has a miss of which the output has an accepted wording.
    What is missing is what score() finds missing. Each text is read once; a term is compared with a bounded number of
    sentences.
    """
    details = score(prepare(expectations), output, DEFAULT_POLICY.default).details
    texts = texts_of(output)
    told = ReadNarrative(narrative)
    reader = cache(read)  # both criteria read the summary
    asked = asked_criteria(not_asked_for)
    fields: dict[Literal["CR", "AC"], Fields] = {
        "CR": Fields("CR", texts, reader),
        "AC": Fields("AC", texts, reader),
    }
    missed: list[tuple[Literal["CR", "AC"], str]] = [
        *(("CR", term) for term in details.cr_missing),
        *(("AC", term) for term in details.ac_missing),
    ]
    misses = [
        explain(criterion, term, fields[criterion], told)
        if criterion in asked
        else Miss(criterion, term, "absent", told.holds(term), None, 0.0, "not_asked_for")
        for criterion, term in missed
    ]
    if accepted:
        misses = [
            replace(miss, verdict="accepted", remedy="none", row="", missing_words=())
            if is_accepted(
                accepted, miss.criterion, miss.term, output, partial(contradicts, fields[miss.criterion].facts)
            )
            else miss
            for miss in misses
        ]
    return Diagnosis(tuple(misses), tuple(with_narrative(each, told) for each in occurrences(details, texts)))
