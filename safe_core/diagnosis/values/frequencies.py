"""How often something is, in times a day: "twice daily", "every other day", "bd" and "three times a week"."""

from safe_core.diagnosis.values.number_words import is_number, whole_number
from safe_core.diagnosis.values.value_types import Spot, Value
from safe_core.diagnosis.words import word_set

_COUNTS = word_set("once twice thrice")
_DAY = 86400.0  # seconds
_PERIODS = {
    name: seconds
    for seconds, names in (
        *((3600.0, "hour hourly h hr"), (_DAY, "day daily night nightly"), (7 * _DAY, "week weekly")),
        (14 * _DAY, "fortnight fortnightly"),
        *((2629800.0, "month monthly"), (31557600.0, "year yearly")),
    )
    for name in names.split()
}
DAYS_AND_LONGER = frozenset(name for name, seconds in _PERIODS.items() if seconds >= _DAY)
_EACH = word_set("a per each every")
_AFTER_PERIOD = word_set("later after before ago earlier")
_LASTING = word_set("lasts takes stays needs was is has spends rests works")
_AFTER_TIMES = frozenset(("times", *_EACH, *_PERIODS))
_TIMES_A_DAY = {"bd": 2.0, "bid": 2.0, "tds": 3.0, "tid": 3.0, "qds": 4.0, "qid": 4.0}
RECURRING_WORDS = frozenset((*_PERIODS, *_TIMES_A_DAY))


def read_number_of_times(spot: Spot) -> Value | None:
    """Read how often something is: "twice daily", "three times a week"."""
    if spot.folded(1) not in _AFTER_TIMES:  # as most
        return None
    number, length = whole_number(spot.folded()), 1
    length += spot.folded(length) == "times"
    if length == 1 and spot.folded() not in _COUNTS:  # "15 a day" are fifteen of something
        return None
    length += spot.folded(length) in _EACH
    period = _PERIODS.get(spot.folded(length))
    return _often(number * _DAY / period, length + 1) if number and period else None


def read_recurring(spot: Spot) -> Value | None:
    """Read "daily", "a day" after a number, "bd"."""
    first = spot.folded()
    if first in _TIMES_A_DAY:
        return _often(_TIMES_A_DAY[first], 1)
    is_recurring = first in _PERIODS and (first.endswith("ly") or _is_per(spot))
    return _often(_DAY / _PERIODS[first], 1) if is_recurring else None


def read_every(spot: Spot) -> Value | None:
    """Read "every day" and "every other day"."""
    skips = spot.folded(1) in {"other", "second"}
    period = _PERIODS.get(spot.folded(1 + skips))
    return _often(_DAY / period / (1 + skips), 2 + skips) if period else None


def _is_per(spot: Spot) -> bool:
    """Tell whether a period is one for which something is counted: "2 litres a day", "30 mg/day", "stools a day"."""
    if spot.before(0) == "/" or spot.folded(-1) == "per":
        return True
    if spot.folded(-1) != "a" or spot.folded(1) in _AFTER_PERIOD:
        return False
    counted = spot.folded(-2)
    is_plural = counted.endswith("s") and not counted.endswith("ss") and counted not in _LASTING
    return is_plural or any(is_number(spot.folded(step)) for step in (-5, -4, -3, -2))


def _often(times_a_day: float, length: int) -> Value:
    return Value("number", "times a day", f"{times_a_day:g}", length)
