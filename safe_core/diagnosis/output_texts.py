"""The texts of an output, cut into words and sentences once for any number of terms."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from safe_core.diagnosis.diagnosis_types import Field, Passage
from safe_core.diagnosis.sentences import sentences
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.words import Folded, Word, run_together, words
from safe_core.generations import OutputField
from safe_core.outputs import Output
from safe_core.policy import Criterion

MAX_WORDS = 50_000
"""How many words of an output are looked at; no real one comes near."""

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


@dataclass(frozen=True)
class Element(OutputText):
    """One text of an output; it is cut when somebody asks for its words."""

    most_words: int

    @cached_property
    def cut(self) -> list[Word]:
        """Its words, at most `most_words` of them."""
        return words(self.text, self.most_words)

    @cached_property
    def folded(self) -> Folded:
        """The same words without form."""
        return run_together(self.cut)

    @cached_property
    def sentences(self) -> list[list[Item]]:
        """The same words as items, sentence by sentence."""
        return list(sentences(self.text, self.cut))


def texts_of(output: Output) -> list[OutputText]:
    """Give all texts of an output, uncut, in the order in which they are joined."""
    return [
        *(OutputText("signals", number, text) for number, text in enumerate(output.signals)),
        OutputText("summary", None, output.summary),
        *(OutputText("followup_questions", number, text) for number, text in enumerate(output.followup_questions)),
    ]


def elements(output: Output) -> list[Element]:
    """Give all texts of an output, to be cut into at most MAX_WORDS words all in all."""
    texts = texts_of(output)
    made: list[Element] = []
    left = MAX_WORDS
    # A word has at least one character: only texts with more characters than that must be counted word by word.
    may_exceed = sum(len(text.text) for text in texts) > MAX_WORDS
    for text in texts:
        made.append(Element(text.field, text.element, text.text, left))
        left -= len(made[-1].cut) if may_exceed else 0
    return made
