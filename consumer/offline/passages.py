"""The text that a diagnosis points at."""

from safe_core import Output
from safe_core.diagnosis import Passage


def element_of(output: Output, passage: Passage) -> str:
    """Give the whole element that a passage stands in."""
    if passage.field == "summary":
        return output.summary
    texts: tuple[str, ...] = getattr(output, passage.field)
    return texts[passage.element or 0]


def text_of(output: Output, passage: Passage) -> str:
    """Give the passage itself, as the output spells it."""
    return element_of(output, passage)[passage.start : passage.end]
