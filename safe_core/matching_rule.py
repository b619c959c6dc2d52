"""When a term counts as found in a text (contract.md, "Matching")."""

from collections.abc import Iterable

RULE = "substring/1"
"""The name of the rule, shown in every report: a found term is a case-insensitive substring of the text."""


def normalise(text: str) -> str:
    """Lower a text and strip white space from its ends, the form in which all is compared."""
    return text.lower().strip()


def joined(parts: Iterable[str]) -> str:
    """Join the parts of a text with one space each, normalised."""
    return normalise(" ".join(parts))
