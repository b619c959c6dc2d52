"""What every page says about a miss, and about a term that was found: its kind, its place, its text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from consumer.offline.pages import quotes
from consumer.offline.scored_run import Explanation
from consumer.text import count_of
from safe_core import Criterion, Expectations, Output
from safe_core.diagnosis import KINDS, InNarrative, Kind, Miss, Occurrence, diagnose

KIND_LABELS: Final[Mapping[Kind, str]] = {
    "form": "form",
    "connectives": "connectives",
    "rearranged": "rearranged",
    "value": "value differs",
    "polarity": "polarity or certainty differs",
    "split": "split over elements",
    "part": "only in part",
    "other_field": "in another field",
    "absent": "not there",
}

KIND_ADVICE: Final[Mapping[Kind, str]] = {
    "form": "Only case, spaces, punctuation or special characters differ: no content is lost.",
    "connectives": "Only small words differ, such as articles and prepositions: shorten the term to its content words.",
    "rearranged": "The same words are there in another order or inflection: split the term, or expect its core.",
    "value": "A number, time, day, grade, side or unit is different: check which of the two is right.",
    "polarity": "It is negated, or more or less certain than expected: check which of the two is right.",
    "split": "The output gives this in several elements: split the term into one term per finding.",
    "part": "Only part of it is there: see what the output says instead; ask for it in the prompt or shorten the term.",
    "other_field": "It is in a field that this criterion does not check: ask for it in the right field.",
    "absent": "Nothing like it was found: ask for it in the prompt.",
}

NOT_IN_NARRATIVE: Final = "not in the case's own narrative: fix the term, not the prompt"
"""The advice on such a miss, instead of the advice on its kind."""


def misses_in_words(report: Mapping[str, Any]) -> str | None:
    """Count a report's misses, as "of 152 misses: 121 only in part, 31 connectives; 43 of them not in the narrative".

    Every miss has one kind, whether or not the narrative has the term; None if there is nothing to count.
    """
    counts: Mapping[Kind, int] = report.get("miss_kinds") or {}
    total = sum(counts.values())
    if not total:
        return None
    not_in_narrative = report.get("misses_not_in_narrative")
    last = f"; {not_in_narrative} of them not in the narrative" if not_in_narrative else ""
    commonest = sorted(counts, key=lambda kind: (-counts[kind], KINDS.index(kind)))
    kinds = ", ".join(f"{counts[kind]} {KIND_LABELS[kind]}" for kind in commonest)
    return f"of {count_of(total, 'miss', 'es')}: {kinds}{last}"


def remark_on(miss: Miss) -> str:
    """Describe a miss without quoting the output: its kind, whether the narrative has the term, and the place."""
    narrative = ", not in the narrative" if miss.in_narrative == "no" else ""
    found = miss.passage
    place = f", {found.field}{quotes.index_of(found)} {found.start}-{found.end}" if found else ""
    return f"{KIND_LABELS[miss.kind]}{narrative}{place}"


# --- the terms of a case ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExplainedTerm:
    """A term of a case and what an explanation says of it; what it says nothing of is empty.

    `expected` (the term), `found` (the output's words) and `narrative` (the narrative's words) are filled only where
    text of outputs may be shown. `how` is the name under which a page shows `found`.
    """

    criterion: Criterion
    text: str
    kind: str = ""
    place: str = ""
    lacks: str = ""
    advice: str = ""
    expected: Sequence[quotes.MarkedText] = ()
    found: Sequence[quotes.MarkedText] = ()
    narrative: Sequence[quotes.MarkedText] = ()
    how: str = "found"


class Group(NamedTuple):
    """Terms under a heading; `loud` marks a fault of the test itself, which a page shows most prominently."""

    heading: str
    terms: Sequence[ExplainedTerm]
    loud: bool = False


MISSED, USED, FOUND = "Missed", "Forbidden terms that were used", "Required terms that were found"
_HEADINGS: Final[Mapping[InNarrative, str]] = {
    "no": f"{MISSED}, and {NOT_IN_NARRATIVE}",
    "yes": f"{MISSED}, though the narrative has it",
    "no_narrative": f"{MISSED}; without a narrative nobody can tell whether it was there to be found",
}
NOTHING_LIKE_IT: Final = "nothing like it"


def explained_terms(explanation: Explanation, *, shows_text: bool) -> list[Group]:
    """Group what an explanation says about each term: first the faults of the test itself, last what was found.

    With `shows_text` the output and the narrative are quoted (contract.md, "Confidentiality").
    """
    diagnosis = explanation.diagnosis
    quoted = explanation if shows_text else None
    groups = [
        Group(
            heading, [_miss(miss, quoted) for miss in diagnosis.misses if miss.in_narrative == answer], answer == "no"
        )
        for answer, heading in _HEADINGS.items()
    ]
    used = [_occurrence(each, quoted) for each in diagnosis.occurrences if each.criterion == "AH"]
    found = [_occurrence(each, quoted) for each in diagnosis.occurrences if each.criterion != "AH"]
    return [group for group in (*groups, Group(USED, used), Group(FOUND, found)) if group.terms]


def _miss(miss: Miss, quoted: Explanation | None) -> ExplainedTerm:
    expected, found = ((), ()) if quoted is None else _side_by_side(miss, quoted.output)
    not_in_narrative = miss.in_narrative == "no"
    place = "" if quoted else NOTHING_LIKE_IT
    if miss.passage:
        place = f"{quotes.place_of(miss.passage)}, {miss.similarity:.0f}% alike"
    return ExplainedTerm(
        miss.criterion,
        miss.term,
        kind=KIND_LABELS[miss.kind],
        place=place,
        lacks=", ".join(f"{absent.word} ({absent.type})" for absent in miss.absent_words),
        advice="" if not_in_narrative else KIND_ADVICE[miss.kind],  # else the heading says what to do
        expected=expected,
        found=found,
        narrative=_in_narrative(miss.term, quoted.narrative) if not_in_narrative and quoted else (),
        how="nearest" if miss.kind == "absent" and miss.passage else "found",
    )


def _side_by_side(miss: Miss, output: Output) -> tuple[Sequence[quotes.MarkedText], Sequence[quotes.MarkedText]]:
    """Give the term and what was found; differences are marked if the two have more in common than not."""
    expected = miss.term.strip()
    if miss.passage is None:
        return quotes.marked_texts(expected), quotes.marked_texts(NOTHING_LIKE_IT)
    found = quotes.with_punctuation_of(expected, quotes.element_of(output, miss.passage), miss.passage)
    lacking, further = ([], []) if miss.kind == "absent" else quotes.differences(expected, found)
    return quotes.marked_texts(expected, lacking, "lacking"), quotes.marked_texts(found, further, "further")


def _in_narrative(term: str, narrative: str | None) -> Sequence[quotes.MarkedText]:
    """Quote how the narrative words a term, if at all."""
    if narrative is None:
        return ()
    asked = diagnose(Expectations((term,), (), ()), Output((narrative,), "", ()), None)
    nearest = next((each.passage for each in asked.misses if each.kind != "absent"), None)
    return quotes.marked_texts(NOTHING_LIKE_IT) if nearest is None else quotes.around(narrative, nearest)


def _occurrence(occurrence: Occurrence, quoted: Explanation | None) -> ExplainedTerm:
    used = occurrence.criterion == "AH"
    found: Sequence[quotes.MarkedText] = ()
    if quoted and (used or occurrence.inside_word):
        found = quotes.around(quotes.element_of(quoted.output, occurrence.passage), occurrence.passage)
    return ExplainedTerm(
        occurrence.criterion,
        occurrence.term,
        place=quotes.place_of(occurrence.passage),
        advice="It appears only inside longer words, and may not be meant." if occurrence.inside_word else "",
        found=found,
        how="used" if used else "found",
    )
