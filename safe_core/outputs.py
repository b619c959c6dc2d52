"""What a prompt answered: signals, summary, follow-up questions (contract.md, "Input")."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

FAILURE_KEYS: Final = ("error", "engine_error", "error_message")
"""Where an event or an entry of a report says, beside an output that is empty, why there is none."""


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
            "" if error is None else failure_text(error),
        )

    def with_failure_of(self, document: Mapping[str, object]) -> Self:
        """Give an empty output the failure that stands beside it, if any. An output that is not empty is an answer."""
        text = failure_in(document, FAILURE_KEYS) if self.is_empty else ""
        return replace(self, error_message=text) if text else self

    @property
    def is_empty(self) -> bool:
        """No element of any field holds more than white space (contract.md, "Nothing to check")."""
        return not (
            self.summary.strip() or any(map(str.strip, self.signals)) or any(map(str.strip, self.followup_questions))
        )

    @property
    def asks_questions(self) -> bool:
        """Some follow-up question holds more than white space; otherwise AH has nothing to check."""
        return any(map(str.strip, self.followup_questions))


def not_an_object(value: object, wanted: str = "an object") -> str:
    """Say so of a value that should be one, and whether it was encoded twice: JSON in a string."""
    text = value.strip() if isinstance(value, str) else ""
    if text[:1] == "{" and text[-1:] == "}":
        return f"not {wanted}, but a string that looks like one: it was encoded as JSON twice"
    return f"not {wanted}"


def failure_text(error: object) -> str:
    """Give what a member says of a failed call, an object or a list as JSON: "" where it holds nothing.

    Nothing else in SAFE decides what a failure text is.
    """
    if holds_nothing(error):
        return ""
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)


def failure_in(document: Mapping[str, object], names: Collection[str]) -> str:
    """Give what the first of these members that says something says of a failed call."""
    return next((text for name in names if (text := failure_text(document.get(name)))), "")


def holds_nothing(value: object) -> bool:
    """Whether a value is null, false, 0, blank, or a list or an object of nothing else."""
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, (dict, Mapping)):
        return all(map(holds_nothing, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(holds_nothing, value))
    return not value


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
