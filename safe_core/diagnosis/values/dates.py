"""Dates, days and years: "12 March", "March 12", "2021-03-04", "in 2015", "on Monday", "the next day" and "day 2"."""

import re

from safe_core.diagnosis.punctuation import DASHES
from safe_core.diagnosis.values.number_words import ORDINAL_ENDINGS, ORDINALS, whole_number
from safe_core.diagnosis.values.unit_table import UNITS
from safe_core.diagnosis.values.value_types import Spot, Value
from safe_core.diagnosis.words import by_spelling, word_set

_DAYS = by_spelling(
    {
        "monday": "monday mondays mon",
        "tuesday": "tuesday tuesdays tue tues",
        "wednesday": "wednesday wednesdays wed",
        "thursday": "thursday thursdays thu thur thurs",
        "friday": "friday fridays fri",
        "saturday": "saturday saturdays sat",
        "sunday": "sunday sundays sun",
    }
)
_MONTHS = {
    name: name[:3]
    for name in word_set(
        "january february march april may june july august september october november december jan feb mar apr jun "
        "jul aug sep sept oct nov dec"
    )
}
_ONLY_MONTHS = frozenset(name for name in _MONTHS if len(name) > 4 and name != "march")
_AFTER_DAY = frozenset(("of", "st", "nd", "rd", "th", *_MONTHS))
_BEFORE_MONTH = word_set("in of since until by last next from")
_DAYS_BY = {"same": "same", "next": "next", "following": "next", "previous": "previous"}
DAY_WORDS = frozenset((*_DAYS, *_DAYS_BY, *_MONTHS))
_YEAR = re.compile(r"(?:19|20)\d\d")


def read_date(spot: Spot) -> Value | None:
    """Read "2021-03-04" and "4/3/2021", as they are written."""
    first = spot.folded()
    if first.count("-") == 2 or first.count("/") == 2:
        return Value("day", "date", first[:40], 1)
    return None


def read_day(spot: Spot) -> Value | None:
    """Read "Monday", "the next day" and what begins with the name of a month."""
    first, after = spot.folded(), spot.folded(1)
    if first in _DAYS and (len(first) > 5 or spot.is_capitalised):
        return Value("day", "weekday", _DAYS[first], 1)
    if first in _DAYS_BY and after == "day":
        return Value("day", "near day", _DAYS_BY[first], 2)
    return _month(spot) if first in _MONTHS and spot.is_capitalised else None


def _month(spot: Spot) -> Value | None:
    """Read "March 12" and "in March"; alone, only a name that is nothing else."""
    first, after = spot.folded(), spot.folded(1)
    if after.isdecimal() and len(after) <= 2 and spot.before(1) == " ":  # "in January, 41% now"
        return Value("day", "date", f"{int(after)} {_MONTHS[first]}", 2)
    if (first in _ONLY_MONTHS) or spot.folded(-1) in _BEFORE_MONTH:
        return Value("day", "month", _MONTHS[first], 1)
    return None


def read_year(spot: Spot) -> Value | None:
    """Read the year of "in 2015", "since 2015" and "March 2015"."""
    first = spot.folded()
    if len(first) != 4 or not _YEAR.fullmatch(first):  # as most
        return None
    before = spot.folded(-1)
    is_dated = before in _BEFORE_MONTH or before in _MONTHS
    is_alone = spot.folded(1) not in UNITS and (spot.before(1) or "").strip() not in DASHES
    return Value("number", "year", first, 1) if is_dated and is_alone else None


def read_day_of_month(spot: Spot) -> Value | None:
    """Read "12 March", "12th of March" and "twelfth of March"."""
    first = spot.folded()
    if spot.folded(1) not in _AFTER_DAY:  # as most
        return None
    day = ORDINALS.get(first) or (int(first) if first.isdecimal() and len(first) <= 2 else None)
    if day is None:
        return None
    for step in (1, 2, 3):
        if spot.folded(step) in _MONTHS and spot.at_step(step).is_capitalised:
            return Value("day", "date", f"{day} {_MONTHS[spot.folded(step)]}", step + 1)
        if spot.folded(step) not in ORDINAL_ENDINGS | {"of"}:
            return None
    return None


def read_numbered_day(spot: Spot) -> Value | None:
    """Read the 2 of "day 2" and "POD 2"."""
    number = whole_number(spot.folded())
    if spot.folded(-1) not in {"day", "pod"} or number is None or spot.folded(1) in UNITS:
        return None
    return Value("day", "numbered day", str(number), 1)
