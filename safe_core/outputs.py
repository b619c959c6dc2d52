"""What a prompt answered: signals, summary, follow-up questions (contract.md, "Input")."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


class InvalidOutput(ValueError):
    """An output that cannot be read; the message names the field, never the text."""


@dataclass(frozen=True, slots=True)
class Output:
    """The three fields that scoring reads; raises InvalidOutput where one is not of its type.

    `error_message` is what the engine says went wrong, "" where it says nothing.
    """

    signals: tuple[str, ...] = ()
    summary: str = ""
    followup_questions: tuple[str, ...] = ()
    error_message: str = ""

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
            raise InvalidOutput(f"output is {not_an_object(document)}")
        summary, error = document.get("summary"), document.get("error_message")
        return cls(
            _texts("signals", document.get("signals")),
            "" if summary is None else summary,
            _texts("followup_questions", document.get("followup_questions")),
            "" if error is None else _message(error),
        )

    @property
    def is_empty(self) -> bool:
        """No element of any field holds more than white space (contract.md, "Nothing to check")."""
        return all(map(_is_blank, (self.summary, *self.signals, *self.followup_questions)))

    @property
    def asks_questions(self) -> bool:
        """Some follow-up question holds more than white space; otherwise AH has nothing to check."""
        return not all(map(_is_blank, self.followup_questions))


def not_an_object(value: object, wanted: str = "an object") -> str:
    """Say so of a value that should be one, and whether it was encoded twice: JSON in a string."""
    text = value.strip() if isinstance(value, str) else ""
    if text[:1] == "{" and text[-1:] == "}":
        return f"not {wanted}, but a string that looks like one: it was encoded as JSON twice"
    return f"not {wanted}"


def _is_blank(text: str) -> bool:
    return not text or text.isspace()  # as strip() would make it empty, without making a copy


def _message(error: object) -> str:
    """Give what `error_message` says: nothing where it is blank, false, 0 or holds nothing."""
    if isinstance(error, str):
        return "" if _is_blank(error) else error
    return str(error) if error else ""


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
