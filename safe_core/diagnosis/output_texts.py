"""The texts of an output, and which criterion reads which."""

from collections.abc import Collection
from dataclasses import dataclass

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


def texts_of(output: Output) -> list[OutputText]:
    """Give all texts of an output, uncut, in the order in which they are joined."""
    return [
        *(OutputText("signals", number, text) for number, text in enumerate(output.signals)),
        OutputText("summary", None, output.summary),
        *(OutputText("followup_questions", number, text) for number, text in enumerate(output.followup_questions)),
    ]
