"""Typed values in a text in one canonical form: "8:30 pm" is "20:30", "III" is 3 as a grade.

Which readings a word may begin, and in which order they are tried; each kind of value is read in a module of its own.
A comparison is read here, since it belongs to the value that follows it.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from safe_core.diagnosis.values.clock_times import PARTS_OF_HOUR, read_clock, read_clock_around_h, read_clock_in_words
from safe_core.diagnosis.values.dates import (
    DAY_WORDS,
    read_date,
    read_day,
    read_day_of_month,
    read_numbered_day,
    read_year,
)
from safe_core.diagnosis.values.fixed_values import (
    ANAESTHETICS,
    FIXED_LENGTHS,
    SIDE_LETTERS,
    read_anaesthetic,
    read_fixed,
    read_side_letter,
)
from safe_core.diagnosis.values.frequencies import RECURRING_WORDS, read_every, read_number_of_times, read_recurring
from safe_core.diagnosis.values.grades import (
    LETTERED,
    is_roman,
    read_grade_number,
    read_lettered,
    read_ordinal,
    read_roman_grade,
)
from safe_core.diagnosis.values.number_words import NUMBER_WORDS, ORDINALS, is_number
from safe_core.diagnosis.values.quantities import read_one_unit, read_out_of, read_plus, read_quantity
from safe_core.diagnosis.values.value_types import Spot, Value
from safe_core.diagnosis.words import Word, by_spelling, lengths_by_first_word

# What stands before a number and says on which side of it: the words, then the side.
_COMPARISONS = by_spelling(
    {
        "less": "<|<=|below|under|within|up to|less than|fewer than|lower than|at most|no more than|not more than|"
        "less than or equal to",
        "more": ">|>=|above|over|exceeding|more than|greater than|higher than|longer than|at least|no less than|"
        "not less than|no fewer than|greater than or equal to|more than or equal to",
    },
    separator="|",
)
_COMPARISON_LENGTHS = lengths_by_first_word(_COMPARISONS)


def value_at(text: str, cut: Sequence[Word], at: int) -> Value | None:
    """Give the value that begins with a word, if one does; the first reading that fits."""
    spot = Spot(text, cut, at)
    for reading in _readings(cut[at].folded):
        if value := reading(spot):
            return value
    return None


def may_begin_value(first: str) -> bool:
    """Tell whether a value may begin with a folded word."""
    return bool(_readings(first))


@lru_cache(maxsize=8192)
def _readings(first: str) -> "tuple[_Reading, ...]":
    """Give the readings that a word may begin, in the order in which they are tried."""
    if first[0].isdecimal():
        return _OF_DIGITS
    if first in NUMBER_WORDS or first in ORDINALS or first in PARTS_OF_HOUR:
        return _OF_NUMBER_WORDS
    return tuple(reading for reading, may_begin in _OF_WORDS if may_begin(first))


def _comparison(spot: Spot) -> Value | None:
    """Read the "below" of "below 90%", which belongs to that number; "90 over 60" compares nothing."""
    first = spot.folded()
    if first == "over" and spot.folded(-1)[:1].isdecimal():
        return None
    for length in _COMPARISON_LENGTHS[first]:
        side = _COMPARISONS.get(" ".join(spot.folded(step) for step in range(length)))
        if side and (number := _compared(spot.at_step(length))):
            return Value("comparison", f"than {number.key}", side, length)
    return None


def _compared(spot: Spot) -> Value | None:
    first = spot.folded()
    if not is_number(first):
        return None
    value = value_at(spot.text, spot.words, spot.at)
    return value if value and value.type in {"number", "grade"} and value.scale != "ordinal" else None


_Reading = Callable[[Spot], Value | None]
_OF_NUMBER_WORDS: tuple[_Reading, ...] = (
    read_day_of_month,
    read_clock_around_h,
    read_clock,
    read_clock_in_words,
    read_number_of_times,
    read_ordinal,
    read_numbered_day,
    read_plus,
    read_out_of,
    read_grade_number,
    read_quantity,
)
_OF_DIGITS = (read_date, read_year, *_OF_NUMBER_WORDS)
# Each with the test of the first word, without which it gives nothing.
_OF_WORDS: tuple[tuple[_Reading, Callable[[str], bool]], ...] = (
    (_comparison, _COMPARISON_LENGTHS.__contains__),
    (read_day, DAY_WORDS.__contains__),
    (read_roman_grade, is_roman),
    (read_fixed, FIXED_LENGTHS.__contains__),
    (read_lettered, LETTERED.__contains__),
    (read_anaesthetic, ANAESTHETICS.__contains__),
    (read_side_letter, SIDE_LETTERS.__contains__),
    (read_recurring, RECURRING_WORDS.__contains__),
    (read_every, frozenset(("every", "each")).__contains__),
    (read_one_unit, frozenset(("minute", "hour", "day", "week", "fortnight", "month", "year")).__contains__),
)
