"""What a diagnosis says: kinds, places, misses, occurrences."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from safe_core.generations import OutputField

Kind = Literal["form", "connectives", "rearranged", "value", "polarity", "split", "part", "other_field", "absent"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds of misses, in the order in which they are asked: the first that holds is said."""

Verdict = Literal["term", "prompt", "output", "look", "not_asked_for"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""Who must act on a miss: the expectation must change; the output lacks it, so the prompt should ask for it; the output
contradicts the narrative; only a person can tell (contract.md, "Verdicts"). Nobody, where the model was not asked."""

InNarrative = Literal["yes", "no", "no_narrative"]
Field = OutputField
WordType = Literal[
    "time", "day", "side", "grade", "certainty", "event", "mechanism", "reference point", "other"
]  # of absent words, for people


@dataclass(frozen=True, slots=True)
class Passage:
    """A place in an output: `text[start:end]` of the original text of the field or its element, in code points."""

    field: Field
    element: int | None  # place in the list, from 0; None for the summary
    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError("a passage ends before it starts")
        if (self.element is None) != (self.field == "summary"):
            raise ValueError("element must be None for the summary, and a number for every other field")


@dataclass(frozen=True, slots=True)
class AbsentWord:
    """A word of the term, as the term spells it, that the passage lacks or says otherwise."""

    word: str
    type: WordType


@dataclass(frozen=True, slots=True)
class Miss:
    """Why a required term was not found."""

    criterion: Literal["CR", "AC"]
    term: str
    kind: Kind
    in_narrative: InNarrative
    passage: Passage | None  # the nearest one; None where there is none worth showing
    similarity: float  # 0 to 100, of the passage to the term; 0 without a passage
    verdict: Verdict
    absent_words: tuple[AbsentWord, ...] = ()  # what the passage lacks or says otherwise
    missing_words: tuple[str, ...] = ()  # of the term, where the verdict is that the output lacks or contradicts it
    also_in: tuple[Passage, ...] = ()  # the places in fields that the criterion does not read that hold the whole term
    partly_in: Passage | None = None  # a place in a field that is not read with most of the missing words
    instead: Passage | None = None  # the words of the output that contradict the term
    in_other_words: bool = False  # the passage says all of the term, but only where both are read plainly
    unsaid_words: tuple[str, ...] = ()  # of the term, all that is not said with the rest of it
    apart_words: tuple[str, ...] = ()  # of the term, that the criterion's fields have, but not with the rest of it
    is_swapped: bool = False  # contradicted by the words that the output has, which it says of something else
    has_other_forms: bool = False  # the passage lacks a telling word of the term as it is written


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Where a term was found (CR, AC) or used (AH): its first occurrence."""

    criterion: Literal["CR", "AH", "AC"]
    term: str
    passage: Passage
    inside_word: bool  # every occurrence sits inside a longer word ("or" in "for")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The misses and the occurrences of one case, each in the order of the expectations."""

    misses: tuple[Miss, ...]
    occurrences: tuple[Occurrence, ...]


def miss_document(miss: Miss) -> dict[str, Any]:
    """Give a miss as a report shows it: places, never the text of an output."""
    place = miss.passage
    return {
        "criterion": miss.criterion,
        "term": miss.term,
        "kind": miss.kind,
        "in_narrative": miss.in_narrative,
        "field": place and place.field,
        "element": place and place.element,
        "start": place and place.start,
        "end": place and place.end,
        "similarity": miss.similarity,
        "verdict": miss.verdict,
        "also_in": [_document(each) for each in miss.also_in],
        "missing_words": list(miss.missing_words),
        "in_other_words": miss.in_other_words,
    }


def _document(place: Passage) -> dict[str, Any]:
    return {"field": place.field, "element": place.element, "start": place.start, "end": place.end}
