"""Whether a place begins or ends inside a longer word or number; an inflection is no longer word."""

import re
from collections.abc import Mapping
from functools import cache

from safe_core.diagnosis.lexicon import rows
from safe_core.diagnosis.words import fold, stem
from safe_core.scripts import is_letter_of_spaced_word

_BEFORE = re.compile(r"[^\W_]+\Z")
_WORD_AFTER = re.compile(r"[^\W_]+")
_LONGEST = 64  # letters of a word beside an edge that are looked at
_NUMBER_SIGNS = ".,:"  # between two digits they make one number
_INFLECTIONS = frozenset(("s", "es", "d", "ed", "ing", "ings", "ful", "fully"))
_SHORTEST = 4  # letters of a word that may take any of these endings


def is_inside_word(text: str, start: int, end: int) -> bool:
    """Tell whether `text[start:end]` is a part of a longer word or number at one of its edges."""
    return _is_inside(text, start) or (_is_inside(text, end) and not _is_inflected(text, start, end))


def _is_inside(text: str, at: int) -> bool:
    """Tell whether no word ends at an edge: letters or digits on both sides, or "2.|5", "12|:45"."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if is_letter_of_spaced_word(before) and is_letter_of_spaced_word(after):
        return True
    inside_number = (text[at - 2 : at - 1] if before in _NUMBER_SIGNS else before, after)
    if before not in _NUMBER_SIGNS:
        inside_number = (before, text[at + 1 : at + 2] if after in _NUMBER_SIGNS else "")
    return all(side.isdecimal() for side in inside_number)


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
