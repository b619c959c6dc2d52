"""Values of an output that its narrative does not have: did it make something up? (contract.md, "Unsupported values")

The diagnosis reads numbers. A value that the narrative has in any style, in words or in another unit is supported.
What is in doubt is no claim, or supported: nobody reads a list of false alarms.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, get_args

from safe_core.diagnosis import relations
from safe_core.diagnosis.diagnosis_types import Passage
from safe_core.diagnosis.numbers_in_text import Value, values
from safe_core.diagnosis.output_texts import OutputText, texts_of
from safe_core.diagnosis.reading import Clause, read
from safe_core.doses import Drugs, drugs_of
from safe_core.outputs import Output
from safe_core.sides import Side, sides_in
from safe_core.told_values import Placed, Told, UnsupportedKind, told_by

__all__ = ["UNSUPPORTED_KINDS", "Unsupported", "UnsupportedKind", "unsupported_document", "unsupported_values"]

UNSUPPORTED_KINDS: tuple[UnsupportedKind, ...] = get_args(UnsupportedKind)
"""The narrative does not have the value at all; or it has it, but says it of another thing."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A value that the narrative does not have; `nearest` is the narrative's value of the same sort, if it has any."""

    kind: UnsupportedKind
    text: str
    passage: Passage
    nearest: str | None


def unsupported_document(value: Unsupported) -> dict[str, Any]:
    """Give an unsupported value as a report shows it: the value alone, and its place."""
    at = value.passage
    place = {"field": at.field, "element": at.element, "start": at.start, "end": at.end}
    return {"kind": value.kind, "text": value.text, **place, "nearest": value.nearest}


def unsupported_values(output: Output, narrative: str | None) -> tuple[Unsupported, ...]:
    """Give the values of signals and summary that the narrative does not have; nothing if there is no narrative.

    Questions claim nothing. They are in the order of the output.
    """
    if narrative is None or not can_be_checked(narrative):
        return ()
    told = told_by(narrative)
    texts = [text for text in texts_of(output) if text.field != "followup_questions" and len(text.text) <= _LONGEST]
    return tuple(islice((found for text in texts for found in _of_text(text, told)), _MOST_TOLD))


def count_unsupported(output: Output, narrative: str) -> int:
    """Count the values of an output that its narrative has nowhere."""
    return sum(value.kind == "nowhere" for value in unsupported_values(output, narrative))


def can_be_checked(narrative: str | None) -> bool:
    """Tell whether values can be compared with a narrative: there is one, of a length that is read."""
    return bool(narrative and narrative.strip()) and len(narrative or "") <= _LONGEST


_LONGEST: Final = (
    300_000  # characters of a text; nothing is said of a longer one, which no model is told and none writes
)
_MOST_TOLD: Final = 500  # of an output


def _of_text(text: OutputText, told: Told) -> Iterator[Unsupported]:
    """Give those of one text; of claims that overlap, the first."""
    clauses = read(text.text).clauses
    facts = [fact for clause in clauses for fact in clause.facts]
    drugs, end = drugs_of(text.text, facts), 0
    claims: list[Value | Side] = [*_claims(text.text), *_sides(text.text, clauses)]
    for claim in sorted(claims, key=lambda each: each.start):
        if claim.start >= end and (kind := _judged(claim, drugs, clauses, told)):
            end = claim.end
            words = text.text[claim.start : claim.end]
            words = words[:-1] if words.find(".") == len(words) - 1 else words  # of the sentence
            passage = text.passage(claim.start, claim.start + len(words))
            yield Unsupported(kind, words, passage, told.nearest.to(claim) if isinstance(claim, Value) else None)


def _judged(claim: Value | Side, drugs: Drugs, clauses: Sequence[Clause], told: Told) -> UnsupportedKind | None:
    if isinstance(claim, Side):
        return told.lacks_side(claim)
    if not told.has(Placed(claim, drugs.text)):
        return "nowhere"
    return "of_something_else" if told.gives_to_another(claim, drugs, _drug_of(claim, clauses)) else None


# --- what is claimed --------------------------------------------------------------------------------------------------


_LISTED: Final = re.compile(r"(?:^|[\n.:;)\]]\s*|\s{2,})[\[(#]?\Z")
_LIST_ENDS: Final = re.compile(r"[.)\]:](?=\s|\[|\(|\Z|[),.;])")
"""Before and behind the number of a list or a section."""
_HALF_OF_DAY: Final = re.compile(r"\s?[ap]\.?m\b", re.IGNORECASE)
_GLUED: Final = re.compile(r"[^\W\d_]|[\u00b1\u2260_]")
_GLUED_BEFORE: Final = re.compile(r"[\u00b1\u2260_]|(?<![A-Za-z])m\Z")
_GARBLED: Final = re.compile(r"[^\x00-\u017f\u2010-\u2044\u20ac\u2212\u2248\u2264\u2265\u03bc]")
"""Signs that no note has around a number."""
_NOT_CLAIMED: Final = frozenset(("ordinal",))
_SPOKEN: Final = frozenset(("one", "a", "an", "once", "first", "two"))
"""Numbers that more often only count ("one of those")."""
_AROUND: Final = 12  # characters on either side of a number that are looked at


def _claims(text: str) -> Iterator[Value]:
    return (value for value in values(text) if _is_claim(text, value))


def _is_claim(text: str, value: Value) -> bool:
    """Tell whether a value says something: not the number of a list, a citation, a name, nor what is garbled."""
    words = text[value.start : value.end]
    before, after = text[max(0, value.start - _AROUND) : value.start], text[value.end : value.end + _AROUND]
    is_name = words.isalpha() and words.isupper() and "-" in before[-1:] + after[:1]  # "CN II-XII"
    if value.kind in _NOT_CLAIMED or is_name or value.scale.endswith(" by bare"):
        return False
    if value.scale != "bare":
        return True
    is_listed = len(words) < 3 and words.isdecimal() and _LISTED.search(before) and _LIST_ENDS.match(after)
    is_glued = (
        _GLUED.match(after) or _GLUED_BEFORE.search(before[-2:]) or _GARBLED.search(before[-4:] + words + after[:4])
    )
    return not (is_listed or is_glued or before[-1:] == "[" or _HALF_OF_DAY.match(after) or words.lower() in _SPOKEN)


def _sides(text: str, clauses: Sequence[Clause]) -> Iterator[Side]:
    """Give the sides that are said of something; "both" more often joins two things."""
    for clause in clauses:
        for side in sides_in(text, clause.facts):
            if (
                text[side.start].lower() in "lrb"
                and not text.startswith(("both", "Both"), side.start)
                and (side.noun or side.side == "both")
            ):
                yield side


def _drug_of(claim: Value, clauses: Sequence[Clause]) -> str:
    """Give the key of the drug whose dose a claim is: the last one before it in its clause; "" if there is none."""
    clause = next((each for each in clauses if each.start <= claim.start < each.end), None)
    named = [fact.key for fact in clause.facts if fact.start < claim.start] if clause else []
    return next((key for key in reversed(named) if key in relations.drugs()), "")
