"""What a diagnosis says: kinds, places, misses, occurrences."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from safe_core.generations import OutputField

Kind = Literal["form", "connectives", "rearranged", "value", "polarity", "split", "part", "other_field", "absent"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds of misses, in the order in which reports list them; `tables.KIND_ROWS` says which one holds."""

Verdict = Literal["term", "prompt", "output", "look", "not_asked_for", "accepted"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""Who must act on a miss: the expectation must change; the output lacks it, so the prompt should ask for it; the output
contradicts the narrative; only a person can tell (contract.md, "Verdicts"). Nobody, where the model was not asked, or
where the test case accepts the output's wording."""

OutputSays = Literal["both", "said", "contradicted", "elsewhere", "part", "absent", "not_read"]
OUTPUT_SAYS: tuple[OutputSays, ...] = get_args(OutputSays)
"""What an output says of a missed term, in the order in which it is asked (contract.md, "Two answers").

Not read: in another language than English, nothing that is like it was found."""

NarrativeSays = Literal["supported", "partly", "unknown", "silent", "contradicts"]
NARRATIVE_SAYS: tuple[NarrativeSays, ...] = get_args(NarrativeSays)
"""What the narrative of the case says of it; unknown where there is none."""

Remedy = Literal["accept_wording", "ask_in_field", "ask", "correct_case", "fix_output", "read", "none"]
REMEDIES: tuple[Remedy, ...] = get_args(Remedy)
"""What to do about a miss; none where the model was not asked for the field."""

InNarrative = Literal["yes", "no", "no_narrative"]
Field = OutputField


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
class Evidence:
    """A place that decides an answer, in the output or in the narrative, in code points of its text."""

    side: Literal["output", "narrative"]
    start: int
    end: int
    field: Field | None = None  # None for the narrative
    element: int | None = None

    @property
    def passage(self) -> Passage | None:
        """The place in the output; None for the narrative's."""
        return None if self.field is None else Passage(self.field, self.element, self.start, self.end)


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
    missing_words: tuple[str, ...] = ()  # of the term, where the verdict is that the output lacks or contradicts it
    also_in: tuple[Passage, ...] = ()  # the places in fields that the criterion does not read that hold the whole term
    in_other_words: bool = False  # the passage says all of the term, but not with the same words
    output_says: OutputSays = "absent"
    narrative_says: NarrativeSays = "unknown"
    verbatim: bool = False  # the narrative has the term word for word, neither denied nor asked
    narrative_has_it_too: bool = False  # the narrative also says what the output says instead
    share: int = 0  # thousandths of the term that the nearest place says
    remedy: Remedy = "none"
    row: str = ""  # of the table of verdicts, which decided
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Where a term was found (CR, AC) or used (AH): its first occurrence."""

    criterion: Literal["CR", "AH", "AC"]
    term: str
    passage: Passage
    inside_word: bool  # every occurrence sits inside a longer word ("or" in "for")
    in_narrative: InNarrative = "no_narrative"
    narrative_says: NarrativeSays = "unknown"  # of a required term


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
        "output_says": miss.output_says,
        "narrative_says": miss.narrative_says,
        "verbatim": miss.verbatim,
        "narrative_has_it_too": miss.narrative_has_it_too,
        "share": miss.share,
        "remedy": miss.remedy,
        "row": miss.row,
        "evidence": [asdict(each) for each in miss.evidence],
    }


def _document(place: Passage) -> dict[str, Any]:
    return {"field": place.field, "element": place.element, "start": place.start, "end": place.end}
