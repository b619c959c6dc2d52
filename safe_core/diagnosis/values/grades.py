"""Grades and ordinals: "type 3a", "score of 3", "grade III", "group B" and "third"."""

import re

from safe_core.diagnosis.values.number_words import ORDINAL_ENDINGS, ORDINALS, numbered, whole_number
from safe_core.diagnosis.values.unit_table import UNITS
from safe_core.diagnosis.values.value_types import Spot, Value
from safe_core.diagnosis.words import word_set

_GRADE_NOUNS = word_set(
    "type grade stage class category level degree zone phase group score tier priority triage grades types stages"
)
LETTERED = word_set("group type class grade stage category hepatitis influenza vitamin weber pugh stanford")
_SCORES = word_set("score scores scale grade stage class level coma")
_ROMAN = re.compile(r"(x{0,3})(ix|iv|v?i{0,3})([a-d]?)")
_ROMAN_ONES = numbered("i ii iii iv v vi vii viii ix", start=1)


def read_grade_number(spot: Spot) -> Value | None:
    """Read the 3 of "type 3", "type 3a", "score of 3" and "GCS 3"."""
    first, letter = spot.folded(), spot.folded(1)
    if not _follows_grade_noun(spot) or letter in UNITS:
        return None
    number = whole_number(first)
    if number is None:
        return Value("grade", "grade", first[:40], 1)
    if len(letter) == 1 and letter in "abcd" and spot.before(1) == "":
        return Value("grade", "grade", f"{number}{letter}", 2)
    return Value("grade", "grade", str(number), 1)


def _follows_grade_noun(spot: Spot) -> bool:
    before = spot.folded(-1)
    if before == "of":
        return spot.folded(-2) in _SCORES
    return before in _GRADE_NOUNS or (spot.at > 0 and spot.at_step(-1).is_acronym)


def read_roman_grade(spot: Spot) -> Value | None:
    """Read "III", "IIIa" and the "IV" of "grade IV" and "Garden IV"."""
    first = spot.folded()
    if len(first) > 6 or not spot.is_capitalised or spot.before(1) == "-" or not (match := _ROMAN.fullmatch(first)):
        return None
    numeral = match[1] + match[2]
    # "IV fluids" are no grade, and "I" is most often a person.
    if not numeral or ((len(numeral) == 1 or numeral == "iv") and not _follows_name(spot)):
        return None
    return Value("grade", "grade", f"{10 * len(match[1]) + _ROMAN_ONES.get(match[2], 0)}{match[3]}", 1)


def is_roman(first: str) -> bool:
    """Tell whether a folded word may be a Roman numeral, perhaps with a letter after it."""
    return len(first) <= 6 and any(first.startswith(letter) for letter in "xvi") and _ROMAN.fullmatch(first) is not None


def _follows_name(spot: Spot) -> bool:
    """Tell whether the noun of a grade stands before it, or a name, as in "Garden IV"."""
    if spot.at == 0 or spot.folded(-1) in _GRADE_NOUNS:
        return spot.at > 0
    before = spot.at_step(-1)
    return before.is_capitalised and not before.folded().endswith(("ed", "ing")) and len(before.folded()) > 2


def read_lettered(spot: Spot) -> Value | None:
    """Read "group B", "group was AB" and "hepatitis C"."""
    at = 2 if spot.folded(1) in {"is", "was"} else 1
    letter = spot.folded(at)
    is_one = len(letter) == 1 or letter == "ab"
    if not is_one or letter in "ivx" or spot.before(at) != " " or not spot.at_step(at).is_capitalised:
        return None  # "stage I" is a number
    is_alone = letter.isalpha() and (spot.before(at + 1) != "" or not spot.folded(at + 1)[:1].isdecimal())  # "B12"
    return Value("grade", f"{spot.folded()} letter", letter, at + 1) if is_alone else None


def read_ordinal(spot: Spot) -> Value | None:
    """Read "third" and "3rd", the grade of "third degree" and the day of "third day"."""
    first, after = spot.folded(), spot.folded(1)
    if first in ORDINALS:
        number, length = ORDINALS[first], 1
    elif first.isdecimal() and after in ORDINAL_ENDINGS and spot.before(1) == "":
        number, length = int(first[:9]), 2
    else:
        return None
    if spot.folded(length) == "degree":
        return Value("grade", "grade", str(number), length)
    if "day" in (spot.folded(length), spot.folded(length + 1)):
        return Value("day", "numbered day", str(number), length)
    return Value("number", "ordinal", str(number), length)
