"""Several texts joined and lowered as the rule does, and where found terms are in the originals."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Literal

from safe_core.diagnosis.model import Occurrence, Passage
from safe_core.diagnosis.output_texts import READ_BY, Element
from safe_core.matching_rule import normalise
from safe_core.scoring import Details

_LOOKS = 100_000  # occurrences that are asked whether they stand inside a word, over all terms of a case


def occurrences(details: Details, texts: Sequence[Element]) -> Iterator[Occurrence]:
    """Give the first occurrence of each term that was found or used, in the order CR, AH, AC."""
    found: tuple[tuple[Literal["CR", "AH", "AC"], tuple[str, ...]], ...] = (
        ("CR", details.cr_found),
        ("AH", details.ah_violations),
        ("AC", details.ac_found),
    )
    looks = _LOOKS // max(100, sum(len(terms) for _, terms in found))
    for criterion, terms in found:
        if not terms:
            continue
        stretch = JoinedText([text for text in texts if text.field in READ_BY[criterion]])
        for term in terms:
            needle = normalise(term)
            if passage := stretch.find(needle):
                yield Occurrence(criterion, term, passage, stretch.only_inside_words(needle, looks))


class JoinedText:
    """What the rule searches; here without stripping, which moves places and finds the same."""

    def __init__(self, texts: Sequence[Element]) -> None:
        self._texts = texts
        self._lowered = [text.text.lower() for text in texts]
        self._begins = [0, *accumulate(len(lowered) + 1 for lowered in self._lowered)][:-1]
        self._counted: dict[int, list[int]] = {}
        self.text = " ".join(self._lowered)

    def find(self, needle: str) -> Passage | None:
        """Give the original place of the first occurrence; it ends with the element where it starts."""
        start = self.text.find(needle)
        return None if start < 0 else self._passage(start, needle)

    def find_all(self, needle: str, most: int) -> Iterator[Passage]:
        """Give the original places of the first `most` occurrences."""
        start = self.text.find(needle)
        for _ in range(most):
            if start < 0:
                return
            yield self._passage(start, needle)
            start = self.text.find(needle, start + len(needle))

    def _passage(self, start: int, needle: str) -> Passage:
        number = bisect_right(self._begins, start) - 1
        element, lowered = self._texts[number], self._lowered[number]
        start -= self._begins[number]
        end = min(start + len(needle), len(lowered))
        if len(lowered) == len(element.text):
            return element.passage(start, end)
        ends = self._ends(number)
        return element.passage(bisect_right(ends, start), bisect_left(ends, end) + 1)

    def _ends(self, number: int) -> list[int]:
        """Count, once for a text, where each letter ends when a letter or two grow when lowered ("İ")."""
        if number not in self._counted:
            self._counted[number] = [*accumulate(len(letter.lower()) for letter in self._texts[number].text)]
        return self._counted[number]

    def only_inside_words(self, needle: str, looks: int) -> bool:
        """Tell whether each of the first `looks` occurrences goes on, before or after, with a letter or digit."""
        at = self.text.find(needle)
        for _ in range(looks):
            if at < 0:
                return True
            if not (self._goes_on(at) or self._goes_on(at + len(needle))):
                return False
            at = self.text.find(needle, at + 1)
        return True

    def _goes_on(self, at: int) -> bool:
        return 0 < at < len(self.text) and self.text[at - 1].isalnum() and self.text[at].isalnum()
