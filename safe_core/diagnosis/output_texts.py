"""The texts of an output, which criterion reads which, and where a stretch of joined texts is in the originals."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from safe_core.diagnosis.diagnosis_types import Field, Passage
from safe_core.generations import OutputField
from safe_core.outputs import Output
from safe_core.policy import Criterion
from safe_core.scripts import is_letter_of_spaced_word

READ_BY: dict[Criterion, tuple[Field, ...]] = {
    "CR": ("signals", "summary"),
    "AH": ("followup_questions",),
    "AC": ("summary",),
}
"""The fields that each criterion reads (contract.md, "Criteria")."""


def asked_criteria(not_asked_for: Collection[OutputField]) -> list[Criterion]:
    """Give the criteria that read a field for which the model was asked (contract.md, "Failed generations")."""
    return [criterion for criterion, fields in READ_BY.items() if not set(fields) <= set(not_asked_for)]


@dataclass(frozen=True)
class OutputText:
    """One text of an output: the summary or an element of a list."""

    field: Field
    element: int | None
    text: str

    def passage(self, start: int, end: int) -> Passage:
        """Give a place in this text."""
        return Passage(self.field, self.element, start, end)


def texts_of(output: Output) -> list[OutputText]:
    """Give all texts of an output, uncut, in the order in which they are joined."""
    return [
        *(OutputText("signals", number, text) for number, text in enumerate(output.signals)),
        OutputText("summary", None, output.summary),
        *(OutputText("followup_questions", number, text) for number, text in enumerate(output.followup_questions)),
    ]


Piece = tuple[OutputText, Passage]
"""A part of a joined text: the text that it is in, and where."""


class JoinedText:
    """Texts joined by spaces and lowered, as the rule searches them, but for stripping: it moves places."""

    def __init__(
        self, texts: Sequence[OutputText], joint: str = " ", written: Callable[[str], str] = str.lower
    ) -> None:
        self._texts = texts
        self._written = [written(text.text) for text in texts]
        self._begins = [0, *accumulate(len(text) + len(joint) for text in self._written)][:-1]
        self._counted: dict[int, list[int]] = {}
        self.text = joint.join(self._written)

    def places(self, needle: str, most: int) -> Iterator[int]:
        """Give where the needle starts in the joined text, at most this many times."""
        at = self.text.find(needle)
        for _ in range(most):
            if at < 0:
                return
            yield at
            at = self.text.find(needle, at + 1)

    def pieces(self, start: int, end: int) -> list[Piece]:
        """Give the parts of a stretch of the joined text, text by text."""
        found: list[Piece] = []
        for number in range(bisect_right(self._begins, start) - 1, bisect_left(self._begins, end)):
            begin, length = self._begins[number], len(self._written[number])
            if max(start, begin) < min(end, begin + length):
                found.append(self._piece(number, max(0, start - begin), min(end - begin, length)))
        return found

    def _piece(self, number: int, start: int, end: int) -> Piece:
        text = self._texts[number]
        if len(self._written[number]) != len(text.text):
            ends = self._ends(number)
            start, end = bisect_right(ends, start), bisect_left(ends, end) + 1
        return text, text.passage(start, end)

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
