"""Whether a model wrote an output, and which of its fields it was asked for (contract.md, "Failed generations")."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from safe_core.outputs import Output

Generation = Literal["answered", "failed"]
OutputField = Literal["signals", "summary", "followup_questions"]


@dataclass(frozen=True, slots=True)
class EngineTexts:
    """What an engine writes in place of a model's words: where its call failed, and where it did not ask for a field.

    The defaults are what factory-cli writes. Raises ValueError for a blank text, which would be in every empty output.
    """

    errors: frozenset[str] = frozenset({"ENGINE_ERROR"})
    placeholders: frozenset[str] = frozenset({"Summary skipped in lean mode", "N/A - Signal Task"})
    longest: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not all(text.strip() for text in (*self.errors, *self.placeholders)):
            raise ValueError("a text is blank")
        object.__setattr__(self, "longest", max(map(len, (*self.errors, *self.placeholders)), default=0))


DEFAULT_ENGINE_TEXTS = EngineTexts()


class OutputKind(NamedTuple):
    """What an output is: whether a model answered or its call failed, and the fields that it was not asked for."""

    generation: Generation
    not_asked_for: frozenset[OutputField] = frozenset()


_FAILED = OutputKind("failed")
_ANSWERED = OutputKind("answered")


def kind_of(output: Output, texts: EngineTexts) -> OutputKind:
    """Decide what an output is; nothing else in SAFE decides it."""
    summary, signals, questions = output.summary, output.signals, output.followup_questions
    is_short = len(summary) <= texts.longest  # nearly every real one is longer, and need not be hashed
    if output.error_message or (is_short and summary in texts.errors):
        return _FAILED
    placeholders = texts.placeholders
    fields: list[OutputField] = []
    if is_short and summary in placeholders:
        fields.append("summary")
    # Nearly always the first text of a list tells that it was asked for.
    if signals and signals[0] in placeholders and placeholders.issuperset(signals):
        fields.append("signals")
    if questions and questions[0] in placeholders and placeholders.issuperset(questions):
        fields.append("followup_questions")
    return OutputKind("answered", frozenset(fields)) if fields else _ANSWERED
