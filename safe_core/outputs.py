"""What a prompt answered: signals, summary, follow-up questions (contract.md, "Input")."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


class InvalidOutput(ValueError):
    """An output that cannot be read; the message names the field, never the text."""


@dataclass(frozen=True, slots=True)
class Output:
    """The three fields that scoring reads; raises InvalidOutput where one is not of its type."""

    signals: tuple[str, ...] = ()
    summary: str = ""
    followup_questions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.summary, str):
            raise InvalidOutput("output.summary is not a string")
        _check_texts("signals", self.signals)
        _check_texts("followup_questions", self.followup_questions)

    @classmethod
    def parse(cls, document: object) -> Self:
        """Read factory-cli's engine output: null and absent fields are empty, so is null itself; others are ignored."""
        if document is None:
            return cls()
        if not isinstance(document, (dict, Mapping)):  # dict first: that is asked more quickly
            raise InvalidOutput("output is not an object")
        summary = document.get("summary")
        return cls(
            _texts("signals", document.get("signals")),
            "" if summary is None else summary,
            _texts("followup_questions", document.get("followup_questions")),
        )

    @property
    def is_empty(self) -> bool:
        """No element of any field holds a character; white space is not empty (contract.md, "Nothing to check")."""
        return not (self.summary or any(self.signals) or any(self.followup_questions))

    @property
    def asks_questions(self) -> bool:
        """Some follow-up question holds a character; otherwise AH has nothing to check."""
        return any(self.followup_questions)


def _texts(field: str, texts: object) -> tuple[Any, ...]:
    if texts is None:
        return ()
    if not isinstance(texts, (list, tuple)):
        raise InvalidOutput(f"output.{field} is not a list")
    return tuple(texts)


def _check_texts(field: str, texts: tuple[Any, ...]) -> None:
    try:
        "".join(texts)  # refuses all but strings, at the speed of C
    except TypeError:
        position = next(at for at, text in enumerate(texts) if not isinstance(text, str))
        raise InvalidOutput(f"output.{field}[{position}] is not a string") from None


EMPTY_OUTPUT = Output()
