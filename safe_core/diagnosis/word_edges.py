"""Whether a place begins or ends inside a longer word or number; an inflection is no longer word."""

import re
from collections.abc import Mapping
from functools import cache

from safe_core.diagnosis.lexicon import rows
from safe_core.diagnosis.words import fold, stem
from safe_core.scripts import is_within_word

_BEFORE = re.compile(r"[^\W_]+\Z")
_WORD_AFTER = re.compile(r"[^\W_]+")
_LONGEST = 64  # letters of a word beside an edge that are looked at
_INFLECTIONS = frozenset(("s", "es", "d", "ed", "ing", "ings", "ful", "fully"))
_SHORTEST = 4  # letters of a word that may take any of these endings


def is_inside_word(text: str, start: int, end: int) -> bool:
    """Tell whether `text[start:end]` is a part of a longer word or number at one of its edges."""
    return is_within_word(text, start) or (is_within_word(text, end) and not _is_inflected(text, start, end))


def _is_inflected(text: str, start: int, end: int) -> bool:
    """Tell whether the text has the last word of the term with another ending, or its last number with a unit."""
    own = _BEFORE.search(text, max(start, end - _LONGEST), end)
    rest = _WORD_AFTER.match(text, end, end + _LONGEST)
    if not own or not rest:
        return False
    begins, ends = fold(own[0]), fold(rest[0])
    units = _units()
    if begins[-1:].isdecimal():
        return ends in units
    whole = fold(own[0] + rest[0])
    if begins in units or whole in units:
        return begins in units and units[begins] == units.get(whole)
    return stem(whole) == stem(begins) or (ends in _INFLECTIONS and len(begins) >= _SHORTEST)


@cache
def _units() -> Mapping[str, tuple[str, ...]]:
    """Give, by its name, what a unit measures and how much of it."""
    return {fold(name.strip()): tuple(unit) for _, (*unit, names) in rows("units") for name in names.split(",")}
