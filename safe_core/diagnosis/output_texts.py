"""The texts of an output, cut into words and sentences once for any number of terms."""

from dataclasses import dataclass
from typing import Literal

from safe_core.diagnosis.model import Field, Passage
from safe_core.diagnosis.tokens import Item, sentences
from safe_core.diagnosis.words import Word, words
from safe_core.outputs import Output

MAX_WORDS = 50_000
"""How many words of an output are looked at; no real one comes near."""

READ_BY: dict[Literal["CR", "AH", "AC"], tuple[Field, ...]] = {
    "CR": ("signals", "summary"),
    "AH": ("followup_questions",),
    "AC": ("summary",),
}
"""The fields that each criterion reads (contract.md, "Criteria")."""


@dataclass(frozen=True, slots=True)
class OutputText:
    """One text of an output: the summary or an element of a list."""

    field: Field
    element: int | None
    text: str

    def passage(self, start: int, end: int) -> Passage:
        """Give a place in this text."""
        return Passage(self.field, self.element, start, end)


@dataclass(frozen=True, slots=True)
class Element(OutputText):
    """One text of an output, its words and its sentences."""

    cut: list[Word]
    sentences: list[list[Item]]


def texts_of(output: Output) -> list[OutputText]:
    """Give all texts of an output, uncut, in the order in which they are joined."""
    return [
        *(OutputText("signals", number, text) for number, text in enumerate(output.signals)),
        OutputText("summary", None, output.summary),
        *(OutputText("followup_questions", number, text) for number, text in enumerate(output.followup_questions)),
    ]


def elements(output: Output) -> list[Element]:
    """Cut all texts of an output into words, at most MAX_WORDS of them."""
    made: list[Element] = []
    left = MAX_WORDS
    for text in texts_of(output):
        cut = words(text.text, left)
        left -= len(cut)
        made.append(Element(text.field, text.element, text.text, cut, list(sentences(text.text, cut))))
    return made
