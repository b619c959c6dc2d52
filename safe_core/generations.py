"""Whether a model wrote an output, and which of its fields it was asked for (contract.md, "Failed generations")."""

from dataclasses import dataclass
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

    def __post_init__(self) -> None:
        if not all(text.strip() for text in (*self.errors, *self.placeholders)):
            raise ValueError("a text is blank")


DEFAULT_ENGINE_TEXTS = EngineTexts()


class OutputKind(NamedTuple):
    """What an output is: whether a model answered or its call failed, and the fields that it was not asked for."""

    generation: Generation
    not_asked_for: frozenset[OutputField] = frozenset()


_FAILED = OutputKind("failed")
_ANSWERED = OutputKind("answered")


def kind_of(output: Output, texts: EngineTexts) -> OutputKind:
    """Decide what an output is; nothing else in SAFE decides it."""
    if output.error_message or output.summary in texts.errors:
        return _FAILED
    texts_of: tuple[tuple[OutputField, tuple[str, ...]], ...] = (
        ("signals", output.signals), ("summary", (output.summary,)), ("followup_questions", output.followup_questions),
    )  # fmt: skip
    placeholders = texts.placeholders
    # Nearly always the first text of a field tells that it was asked for: to look at all of them would cost more.
    fields = [name for name, said in texts_of if said and said[0] in placeholders and placeholders.issuperset(said)]
    return OutputKind("answered", frozenset(fields)) if fields else _ANSWERED
