"""Numbers with what they measure or count: "2 g" and "2000 mg" are one quantity, in the smallest unit of its kind.

Also numbers without a unit: rates ("28/min"), ratios ("22 out of 30") and what is counted ("three doses").
"""

import re

from safe_core.diagnosis.punctuation import DASHES
from safe_core.diagnosis.values.clock_times import PARTS_OF_HOUR
from safe_core.diagnosis.values.frequencies import DAYS_AND_LONGER
from safe_core.diagnosis.values.number_words import NUMBER_WORDS, is_number, whole_number
from safe_core.diagnosis.values.unit_table import UNITS
from safe_core.diagnosis.values.value_types import Spot, Value
from safe_core.diagnosis.words import stem, word_set

_DEGREES = word_set("degree degrees")
_BETWEEN = word_set("daily nightly weekly hourly further more additional extra separate")
_BEFORE_DURATION = word_set("for within over after least most about nearly almost")
_WEEKS = word_set("week weeks wk wks")
_SMALLER = {
    name: UNITS[smaller]
    for larger, smaller in (("hour", "minute"), ("week", "day"), ("year", "month"))
    for name, unit in UNITS.items()
    if unit == UNITS[larger]
}
_LATE = 20  # weeks of gestation that nobody takes for something else
_RANGES = word_set("to or and")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def read_quantity(spot: Spot) -> Value | None:
    """Read a number with its unit, in the smallest unit of what it measures; without one, with the noun it counts."""
    first = spot.folded()
    if first in PARTS_OF_HOUR:
        return _half(spot) if first == "half" else None
    if first in NUMBER_WORDS and not _is_order(spot):
        number = float(NUMBER_WORDS[first])
    elif _NUMBER.fullmatch(first) and len(first) <= 15:
        number = float(first)
    else:
        return Value("number", "ratio", first[:40], 1) if first[0].isdecimal() else None
    after = spot.folded(1)
    if length := _rate_length(spot):
        return Value("number", "rate", f"{number:g}", length)
    if after in UNITS and spot.before(1) != "/":
        length = 3 if after in _DEGREES and spot.folded(2) in UNITS else 2
        return _and_smaller(spot, number) or _per(spot, _measured(number, spot.folded(length - 1), length))
    return _range_begin(spot, number) or _counted(spot, number)


def _is_order(spot: Spot) -> bool:
    """Tell the "once" that counts from that of "at once" and "Once the fever fell, …"."""
    return spot.folded() == "once" and (spot.folded(-1) == "at" or (spot.before(0) != " " and spot.folded(1) != ""))


def _rate_length(spot: Spot) -> int:
    """Give how many words a rate takes, such as "28/min", "28 bpm" and "28 beats per minute"; 0 if it is none."""
    if spot.folded(1) == "bpm":
        return 2
    at = 2 if spot.folded(1) in {"beats", "breaths"} else 1
    at += spot.folded(at) in {"per", "a"}
    is_rate = at > 1 or spot.before(1) == "/"
    return at + 1 if is_rate and spot.folded(at) in {"min", "minute"} else 0


def _and_smaller(spot: Spot, number: float) -> Value | None:
    """Read "1 h 50 min", "1 hour and 50 minutes" and "41 weeks and 3 days"."""
    smaller = _SMALLER.get(spot.folded(1))
    if smaller is None:  # as most
        return None
    at = 3 if spot.folded(2) == "and" else 2
    further, name = whole_number(spot.folded(at)), spot.folded(at + 1)
    if further is None or UNITS.get(name) != smaller:
        return None
    return _measured(number * UNITS[spot.folded(1)].size / smaller.size + further, name, at + 2)


def _per(spot: Spot, measured: Value) -> Value:
    """Take in the second unit of "5.5 mmol/L" and "2 mg per kg"."""
    length = measured.length
    if spot.before(length) == "/":
        name, longer = spot.folded(length), 1
    else:
        name, longer = (spot.folded(length + 1), 2) if spot.folded(length) == "per" else ("", 0)
    if name not in UNITS or name in DAYS_AND_LONGER:  # how often something is, is a value of its own
        return measured
    unit = UNITS[name]
    canonical = f"{measured.canonical} per {unit.size:g} {unit.base}".rstrip()
    return Value("number", f"{measured.scale} per {unit.quantity}", canonical, length + longer, measured.amount)


def _range_begin(spot: Spot, number: float) -> Value | None:
    """Read the 2 of "2 to 3 hours" and "2-3 hours"."""
    ahead = 3 if spot.folded(1) in _RANGES else 2
    is_range = ahead == 3 or (spot.before(1) or "").strip() in DASHES
    unit = spot.folded(ahead)
    return _measured(number, unit, 1) if is_range and unit in UNITS and is_number(spot.folded(ahead - 1)) else None


def _counted(spot: Spot, number: float) -> Value:
    """Read a number of something: "three daily doses"; "x3" and "three times" name nothing."""
    after = spot.folded(1)
    if after == "times" or spot.folded(-1) == "x":
        return Value("number", "bare", f"{number:g}", 1 + (after == "times"))
    names = spot.before(1) in {" ", "-", "\u2011"}
    noun = (spot.folded(2) if after in _BETWEEN else after) if names else ""
    return Value("number", f"of {stem(noun)}" if noun else "bare", f"{number:g}", 1)


def _half(spot: Spot) -> Value | None:
    """Read "half an hour"."""
    length = 3 if spot.folded(1) in {"a", "an"} else 2
    return _measured(0.5, spot.folded(length - 1), length) if spot.folded(length - 1) in UNITS else None


def _measured(number: float, name: str, length: int) -> Value:
    unit = UNITS[name]
    return Value("number", unit.quantity, f"{number * unit.size:g} {unit.base}".rstrip(), length, f"{number:g}")


def read_one_unit(spot: Spot) -> Value | None:
    """Read the "day" of "for a day" and "within an hour" as one of them."""
    is_long = spot.folded() == "fortnight"  # which is two weeks wherever it stands
    is_one = spot.folded(-1) in {"a", "an"} and (is_long or spot.folded(-2) in _BEFORE_DURATION)
    return _measured(1, spot.folded(), 1) if is_one else None


def read_plus(spot: Spot) -> Value | None:
    """Read the "3+" of a dipstick, and the weeks and days of "41+3" and "9+5 weeks"; "3+ hours" is a duration."""
    end = spot.words[spot.at].end
    if "+" not in spot.text[end : end + 2]:  # as most
        return None
    first, days = spot.folded(), spot.folded(1)
    if not first.isdecimal() or len(first) > 2:
        return None
    if (spot.before(1) or "").strip() == "+" and len(days) == 1 and "0" <= days <= "6":
        has_unit = spot.folded(2) in _WEEKS
        return _measured(7 * int(first) + int(days), "days", 2 + has_unit) if has_unit or int(first) >= _LATE else None
    is_sign = spot.text[end] == "+" and days not in UNITS and not days[:1].isdecimal()
    return Value("grade", "plus", first, 1) if is_sign else None


def read_out_of(spot: Spot) -> Value | None:
    """Read the "22 out of 30" and the "120 over 80" that others write with a slash."""
    after = spot.folded(1)
    if after == "out" and spot.folded(2) == "of":
        length = 4
    elif after == "over" and spot.folded(3) not in UNITS:
        length = 3
    else:
        return None
    numbers = whole_number(spot.folded()), whole_number(spot.folded(length - 1))
    return None if None in numbers else Value("number", "ratio", f"{numbers[0]}/{numbers[1]}", length)
