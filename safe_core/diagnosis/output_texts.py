"""The texts of an output, and which criterion reads which."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from safe_core.diagnosis.diagnosis_types import Field, Passage
from safe_core.generations import OutputField
from safe_core.outputs import Output
from safe_core.policy import Criterion

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


class FieldText:
    """The elements of a field as one text, each in a line of its own: neighbours are neighbouring sentences."""

    def __init__(self, elements: Sequence[OutputText]) -> None:
        self.text = "\n".join(each.text for each in elements)
        self._begins = [0, *accumulate(len(each.text) + 1 for each in elements)]
        self._elements = elements

    def passages(self, start: int, end: int) -> list[Passage]:
        """Give a stretch element by element."""
        return [
            each.passage(max(0, start - begin), min(len(each.text), end - begin))
            for begin, each in zip(self._begins, self._elements, strict=False)
            if max(start, begin) < min(end, begin + len(each.text))
        ]


def field_texts(texts: Sequence[OutputText]) -> list[FieldText]:
    """Join the texts of each field."""
    return [FieldText([*elements]) for _, elements in groupby(texts, key=lambda each: each.field)]


def texts_of(output: Output) -> list[OutputText]:
    """Give all texts of an output, uncut, in the order in which they are joined."""
    return [
        *(OutputText("signals", number, text) for number, text in enumerate(output.signals)),
        OutputText("summary", None, output.summary),
        *(OutputText("followup_questions", number, text) for number, text in enumerate(output.followup_questions)),
    ]
