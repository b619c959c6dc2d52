"""Scripts that put no space between words: there, no letter beside a term makes it a part of a longer word."""

import re
from typing import Final

UNSPACED: Final = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
"""Their characters, as a part of a class in a regular expression."""

_UNSPACED: Final = re.compile(f"[{UNSPACED}]")


def is_letter_of_spaced_word(character: str) -> bool:
    """Tell whether a character belongs to a word or number that ends only where another character stands."""
    return character.isalnum() and not _UNSPACED.match(character)


_NUMBER_SIGNS = ".,:"  # between two digits they make one number


def is_within_word(text: str, at: int) -> bool:
    """Tell whether no word ends at a place: letters or digits are on both sides, or "2.|5", "12|:45"."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if is_letter_of_spaced_word(before) and is_letter_of_spaced_word(after):
        return True
    inside_number = (text[at - 2 : at - 1] if before in _NUMBER_SIGNS else before, after)
    if before not in _NUMBER_SIGNS:
        inside_number = (before, text[at + 1 : at + 2] if after in _NUMBER_SIGNS else "")
    return all(side.isdecimal() for side in inside_number)
