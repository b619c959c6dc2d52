"""Times of day as 24-hour clock times: "8:30 pm", "half past eight" and "14h15"."""

import re

from safe_core.diagnosis.values.number_words import whole_number
from safe_core.diagnosis.values.unit_table import UNITS
from safe_core.diagnosis.values.value_types import Spot, Value
from safe_core.diagnosis.words import word_set

_CLOCK = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)(?::[0-5]\d)?")
_COMPACT_CLOCK = re.compile(r"([01]\d|2[0-3])[.]?([0-5]\d)")
_HALF_CLOCK = re.compile(r"(\d\d?)(?:[.:](\d\d)?)?")
_HALVES = {"am": 0, "pm": 12}
_HOURS = word_set("h hr hrs hours")
PARTS_OF_HOUR = {"half": 30, "quarter": 15}


def read_clock(spot: Spot) -> Value | None:
    """Read 20:30, 8:30 pm, 8.30 pm, 8 pm, 0830, at 1230, 12.30 after "@", 1230 hours, 8 o'clock."""
    first, after = spot.folded(), spot.folded(1)
    if after in _HALVES:
        match = _HALF_CLOCK.fullmatch(first)
        is_hour = match and 0 < int(match[1]) <= 12
        return _time(int(match[1]) % 12 + _HALVES[after], int(match[2] or 0), 2) if match and is_hour else None
    length = 2 if after in _HOURS else 1
    if match := _CLOCK.fullmatch(first):
        return _time(int(match[1]), int(match[2]), length)
    if after == "oclock" and first.isdecimal() and int(first[:3]) <= 24:
        return _time(int(first), 0, 2)
    if match := _COMPACT_CLOCK.fullmatch(first):
        is_clock = (after not in UNITS and (first[0] == "0" or _follows_at(spot))) or (length > 1 and "." not in first)
        return _time(int(match[1]), int(match[2]), length) if is_clock else None
    return None


def _follows_at(spot: Spot) -> bool:
    return spot.folded(-1) == "at" or "@" in (spot.before(0) or "")


def read_clock_around_h(spot: Spot) -> Value | None:
    """Read "14h15"; "14 h 15 min" is a duration."""
    hour, minute = spot.folded(), spot.folded(2)
    if spot.folded(1) != "h" or spot.before(1) or spot.before(2) or len(minute) != 2 or not minute.isdecimal():
        return None
    match = _CLOCK.fullmatch(f"{hour}:{minute}")
    return _time(int(match[1]), int(match[2]), 3) if match else None


def read_clock_in_words(spot: Spot) -> Value | None:
    """Read "half past eight" and "at ten to nine"; "ten to nine days" is no clock."""
    after = spot.folded(1)
    if after != "past" and not (after == "to" and "at" in {spot.folded(-1), spot.folded(-2)}):
        return None
    first = spot.folded()
    minute, hour = PARTS_OF_HOUR.get(first, whole_number(first)), whole_number(spot.folded(2))
    if not (minute and minute < 60 and hour and hour < 24):
        return None
    return _time(hour, minute, 3) if after == "past" else _time(hour - 1, 60 - minute, 3)


def _time(hour: int, minute: int, length: int) -> Value:
    return Value("time", "clock", f"{hour % 24:02}:{minute:02}", length)
