"""Why a required term was not found, and which found ones the text may not mean; no score depends on it."""

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
from safe_core.diagnosis.misses import diagnose
from safe_core.diagnosis.output_texts import asked_criteria

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
