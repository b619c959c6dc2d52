"""Where the found terms stand, and whether they are words there or only parts of longer ones."""

from collections.abc import Iterator, Sequence
from typing import Literal

from safe_core.diagnosis.elements import READ_BY, Element
from safe_core.diagnosis.model import Occurrence
from safe_core.diagnosis.stretch import Stretch
from safe_core.matching import normalise
from safe_core.scoring import Details

_LOOKS = 100_000  # occurrences that are asked whether they stand inside a word, over all terms of a case


def occurrences(details: Details, texts: Sequence[Element]) -> tuple[Occurrence, ...]:
    """Give the first occurrence of each term that was found or used, in the order CR, AH, AC."""
    return tuple(_occurrences(details, texts))


def _occurrences(details: Details, texts: Sequence[Element]) -> Iterator[Occurrence]:
    found: tuple[tuple[Literal["CR", "AH", "AC"], tuple[str, ...]], ...] = (
        ("CR", details.cr_found),
        ("AH", details.ah_violations),
        ("AC", details.ac_found),
    )
    looks = _LOOKS // max(100, sum(len(terms) for _, terms in found))
    for criterion, terms in found:
        if not terms:
            continue
        stretch = Stretch([text for text in texts if text.field in READ_BY[criterion]])
        for term in terms:
            needle = normalise(term)
            if passage := stretch.find(needle):
                yield Occurrence(criterion, term, passage, stretch.only_inside_words(needle, looks))
