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
