"""Several texts joined and lowered as the rule does, and where found terms are in the originals."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Literal

from safe_core.diagnosis.diagnosis_types import Occurrence, Passage
from safe_core.diagnosis.output_texts import READ_BY, OutputText
from safe_core.matching_rule import normalise
from safe_core.scoring import Details
from safe_core.scripts import is_letter_of_spaced_word

_LOOKS = 100_000  # occurrences that are asked whether they stand inside a word, over all terms of a case


def occurrences(details: Details, texts: Sequence[OutputText]) -> Iterator[Occurrence]:
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

    def __init__(self, texts: Sequence[OutputText]) -> None:
        self._texts = texts
        self._lowered = [text.text.lower() for text in texts]
        self._begins = [0, *accumulate(len(lowered) + 1 for lowered in self._lowered)][:-1]
        self._counted: dict[int, list[int]] = {}
        self.text = " ".join(self._lowered)

    def find(self, needle: str) -> Passage | None:
        """Give the original place of the first occurrence; it ends with the element where it starts."""
        at = next(self.places(needle, 1), None)
        return None if at is None else self.first_piece(at, at + len(needle))[1]

    def places(self, needle: str, most: int) -> Iterator[int]:
        """Give where the needle starts in the joined text, at most this many times."""
        at = self.text.find(needle)
        for _ in range(most):
            if at < 0:
                return
            yield at
            at = self.text.find(needle, at + 1)

    def first_piece(self, start: int, end: int) -> tuple[OutputText, Passage]:
        """Give the part of a stretch of the joined text that is in the text where it starts."""
        number = bisect_right(self._begins, start) - 1
        return self._piece(number, start - self._begins[number], end - self._begins[number])

    def last_piece(self, start: int, end: int) -> tuple[OutputText, Passage]:
        """Give the part of a stretch of the joined text that is in the text where it ends."""
        number = bisect_right(self._begins, end - 1) - 1
        return self._piece(number, max(0, start - self._begins[number]), end - self._begins[number])

    def _piece(self, number: int, start: int, end: int) -> tuple[OutputText, Passage]:
        text, lowered = self._texts[number], self._lowered[number]
        end = min(end, len(lowered))
        if len(lowered) == len(text.text):
            return text, text.passage(start, end)
        ends = self._ends(number)
        return text, text.passage(bisect_right(ends, start), bisect_left(ends, end) + 1)

    def _ends(self, number: int) -> list[int]:
        """Count, once for a text, where each letter ends when a letter or two grow when lowered ("İ")."""
        if number not in self._counted:
            self._counted[number] = [*accumulate(len(letter.lower()) for letter in self._texts[number].text)]
        return self._counted[number]

    def only_inside_words(self, needle: str, looks: int) -> bool:
        """Tell whether each of the first `looks` occurrences goes on, before or after, with a letter or digit."""
        return all(self._goes_on(at) or self._goes_on(at + len(needle)) for at in self.places(needle, looks))

    def _goes_on(self, at: int) -> bool:
        return 0 < at < len(self.text) and all(map(is_letter_of_spaced_word, self.text[at - 1 : at + 1]))
