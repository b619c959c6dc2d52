"""Why a required term was not found: the nearest passage, its place, and one kind; no score depends on it."""

from collections.abc import Iterator
from typing import Literal

from safe_core.diagnosis.joined_text import occurrences
from safe_core.diagnosis.kinds import Evidence, decide
from safe_core.diagnosis.model import (
    KINDS,
    AbsentWord,
    Diagnosis,
    InNarrative,
    Kind,
    Miss,
    Occurrence,
    Passage,
    miss_document,
)
from safe_core.diagnosis.output_texts import READ_BY, Element, elements
from safe_core.diagnosis.passages import Term, similarity
from safe_core.diagnosis.sentences import Sentences
from safe_core.diagnosis.word_types import absent_word
from safe_core.expectations import Expectations, prepare
from safe_core.many_term_search import which_stand_in
from safe_core.matching_rule import normalise
from safe_core.outputs import Output
from safe_core.policy import DEFAULT_POLICY
from safe_core.scoring import score

__all__ = [
    "KINDS",
    "AbsentWord",
    "Diagnosis",
    "InNarrative",
    "Kind",
    "Miss",
    "Occurrence",
    "Passage",
    "diagnose",
    "miss_document",
]

_WORK = 2_000  # sentences that are compared with the missed terms of a case, all in all
_LEAST_SENTENCES, _MOST_SENTENCES = 2, 64  # for each of them


def diagnose(expectations: Expectations, output: Output, narrative: str | None) -> Diagnosis:
    """Explain every missed term of a case, and say where the others stand.

    What is missing is what score() finds missing. However large they are, at most MAX_WORDS words of the output are cut
    and some 2,000 sentences compared (two for each missed term, if that is more). Only the literal searches, as in
    score() a few for each term, take time by the number of terms times the length of the texts.
    """
    details = score(prepare(expectations), output, DEFAULT_POLICY.default).details
    texts = elements(output)
    missed: list[tuple[Literal["CR", "AC"], str]] = [
        *(("CR", term) for term in details.cr_missing),
        *(("AC", term) for term in details.ac_missing),
    ]
    return Diagnosis(tuple(_misses(missed, texts, narrative)), tuple(occurrences(details, texts)))


def _misses(
    missed: list[tuple[Literal["CR", "AC"], str]], texts: list[Element], narrative: str | None
) -> Iterator[Miss]:
    if not missed:
        return
    places = {
        criterion: (
            Sentences([text for text in texts if text.field in READ_BY[criterion]]),
            Sentences([text for text in texts if text.field not in READ_BY[criterion]]),
        )
        for criterion in {criterion for criterion, _ in missed}
    }
    most = min(_MOST_SENTENCES, max(_LEAST_SENTENCES, _WORK // len(missed)))
    stands = _in_narrative([term for _, term in missed], narrative)
    for (criterion, term), in_narrative in zip(missed, stands, strict=True):
        evidence = Evidence(Term(term), *places[criterion], most)
        yield _miss(criterion, evidence, in_narrative, texts)


def _in_narrative(terms: list[str], narrative: str | None) -> list[InNarrative]:
    if narrative is None:
        return ["no_narrative"] * len(terms)
    found = which_stand_in(normalise(narrative), [normalise(term) for term in terms])
    return ["yes" if stands else "no" for stands in found]


def _miss(criterion: Literal["CR", "AC"], evidence: Evidence, in_narrative: InNarrative, texts: list[Element]) -> Miss:
    kind, finding = decide(evidence)
    term, passage = evidence.term, finding.passage
    found = passage and next(
        text.text[passage.start : passage.end]
        for text in texts
        if (text.field, text.element) == (passage.field, passage.element)
    )
    return Miss(
        criterion=criterion,
        term=term.text,
        kind=kind,
        in_narrative=in_narrative,
        passage=passage,
        similarity=similarity(term.text, found) if found else 0.0,
        absent_words=tuple(absent_word(term.text, term.items, item) for item in finding.absent),
    )
