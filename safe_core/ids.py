"""What an id may look like: test_id, batch_id, concern_id, archetype, metric_id, run_id (contract.md, "Input")."""

import re

MAX_ID_LENGTH = 256
"""The greatest length of an id, in characters; nothing is trimmed or normalised."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def id_problem(text: str) -> str | None:
    """Say what makes a text unfit as an id, in words that never repeat it; None for a good one."""
    if not text or text.isspace():
        return "is blank" if text else "is empty"
    if len(text) > MAX_ID_LENGTH:
        return f"is longer than {MAX_ID_LENGTH} characters"
    if text.isprintable():  # the common case: no control character and no surrogate is printable
        return None
    if control := _CONTROL.search(text):
        return f"holds the control character U+{ord(control[0]):04X}"
    return "holds a lone surrogate" if _SURROGATE.search(text) else None
