"""What the pages say of the kinds of misses."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from consumer.offline.scored_run import Explanation
from safe_core import Criterion
from safe_core.diagnosis import KINDS, Kind, Miss, Passage

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
"""What is said of such a miss first; the advice on its kind is not for it."""


def misses_in_words(report: Mapping[str, Any]) -> str | None:
    """Count a report's misses, as "of 152 misses: 43 not in the narrative; 76 only in part, 31 connectives".

    Every miss is of one kind, whether it stands in the narrative or not; None where there is nothing to count.
    """
    counts: Mapping[Kind, int] = report.get("miss_kinds") or {}
    total = sum(counts.values())
    if not total:
        return None
    alien = report.get("misses_not_in_narrative")
    first = f"{alien} not in the narrative; " if alien else ""
    commonest = sorted(counts, key=lambda kind: (-counts[kind], KINDS.index(kind)))
    told = ", ".join(f"{counts[kind]} {KIND_LABELS[kind]}" for kind in commonest)
    return f"of {total} {'miss' if total == 1 else 'misses'}: {first}{told}"


def remark_on(miss: Miss) -> str:
    """Say of a miss what can be said without the output's text: its kind, the narrative's word, and the place."""
    alien = ", not in the narrative" if miss.in_narrative == "no" else ""
    return f"{KIND_LABELS[miss.kind]}{alien}{_place(miss.passage)}"


def remarks_on(explanation: Explanation | None, criterion: Criterion, terms: Sequence[str]) -> list[str | None]:
    """Give the remark on each missing term of a criterion, in their order; None where nobody explained them."""
    if explanation is None:
        return [None] * len(terms)
    remarks = [remark_on(miss) for miss in explanation.diagnosis.misses if miss.criterion == criterion]
    return [*remarks] if len(remarks) == len(terms) else [None] * len(terms)


def _place(passage: Passage | None) -> str:
    if passage is None:
        return ""
    element = "" if passage.element is None else f"[{passage.element}]"
    return f", {passage.field}{element} {passage.start}-{passage.end}"
