"""Several texts joined and lowered as the rule does, with the way back to places in the originals."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from safe_core.diagnosis.elements import Element
from safe_core.diagnosis.model import Passage


class Stretch:
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
        if start < 0:
            return None
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
