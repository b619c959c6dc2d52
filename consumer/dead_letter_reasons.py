"""Why a record becomes a dead letter (contract.md, "Dead letters")."""

from typing import Literal, get_args

from consumer.errors import SafeError

Reason = Literal[
    "empty_value",
    "not_utf8",
    "invalid_json",
    "not_object",
    "too_deep",
    "too_large",
    "duplicate_key",
    "invalid_event",
    "invalid_id",
    "invalid_number",
    "unsupported_version",
    "expectations_not_found",
    "expectations_ambiguous",
    "expectations_invalid",
    "scorer_error",
    "result_too_large",
]
REASONS: tuple[Reason, ...] = get_args(Reason)


class Poison(SafeError):
    """The record alone is at fault: it becomes a dead letter.

    `detail` says what is wrong in words of ours, at most 512 bytes: it never repeats the input.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason: Reason = reason
        self.detail = detail
