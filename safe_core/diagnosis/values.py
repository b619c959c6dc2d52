"""Typed values in a text in one canonical form: "8:30 pm" is "20:30", "III" is 3 as a grade."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from safe_core.diagnosis.units import UNITS
from safe_core.diagnosis.words import Word, by_spelling, lengths_by_first_word, stem, word_set

ValueType = Literal["number", "time", "day", "grade", "side", "route", "comparison"]


class Value(NamedTuple):
    """A value and how many words it takes."""

    type: ValueType
    scale: str  # what is measured or counted: values of different scales are no alternatives
    canonical: str
    length: int
    amount: str = ""  # the number before a unit

    @property
    def key(self) -> str:
        """Give what makes two values the same; a bare number is the same whatever it counts."""
        return f"{'number' if self.scale in _BARE or self.scale.startswith('of ') else self.scale} {self.canonical}"

    def is_alternative(self, other: "Value") -> bool:
        """Tell whether two values answer the same question otherwise: "13 hours" and "3 hours", "2 g" and "2 mg"."""
        if self.key == other.key:
            return False
        if self.scale == other.scale:
            return True
        is_unfinished = self.scale.startswith(f"{other.scale} per") or other.scale.startswith(f"{self.scale} per")
        return self.amount != "" and self.amount == other.amount and not is_unfinished  # "5 mg" of "5 mg/kg"


def _fixed_values(*rows: tuple[ValueType, str, str]) -> dict[str, Value]:
    """Map spellings to values, from rows of type, scale and values: a word, or "canonical=spelling,two_words"."""
    return {
        spelling.replace("_", " "): Value(value_type, scale, canonical, 1 + spelling.count("_"))
        for value_type, scale, values in rows
        for canonical, _, spellings in (value.partition("=") for value in values.split())
        for spelling in (spellings or canonical).split(",")
    }


def _numbered(names: str, start: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), start)}


_DEGREES = word_set("degree degrees")
_BARE = frozenset(("bare", "ordinal", "grade", "numbered day", "ratio", "rate", "year"))

_NUMBERS = {
    "once": 1, "twice": 2, "thrice": 3, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90, "hundred": 100, "dozen": 12, "thousand": 1000,
}  # fmt: skip
_NUMBERS |= _numbered(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty",
    start=0,
)
NUMBER_WORDS = frozenset(_NUMBERS)
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
_DAYS_AND_LONGER = frozenset(name for name, seconds in _PERIODS.items() if seconds >= _DAY)
_BETWEEN = word_set("daily nightly weekly hourly further more additional extra separate")
_EACH = word_set("a per each every")
_BEFORE_DURATION = word_set("for within over after least most about nearly almost")
_AFTER_PERIOD = word_set("later after before ago earlier")
_LASTING = word_set("lasts takes stays needs was is has spends rests works")
_AFTER_TIMES = frozenset(("times", *_EACH, *_PERIODS))
_TIMES_A_DAY = {"bd": 2.0, "bid": 2.0, "tds": 3.0, "tid": 3.0, "qds": 4.0, "qid": 4.0}
_ORDINALS = _numbered(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth",
    start=1,
) | {"thirtieth": 30}
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
# Words that are a value by themselves; on one scale, each value stands against the others.
_FIXED = _fixed_values(
    ("day", "near day", "today yesterday tomorrow"),
    ("time", "clock", "12:00=noon,midday 00:00=midnight"),
    ("time", "part of the day", "morning afternoon evening night=night,nights,overnight,tonight"),
    ("grade", "severity", "mild=mild,mildly moderate=moderate,moderately severe=severe,severely minor major trivial"),
    ("grade", "depth", "superficial=superficial,superficially deep=deep,deeply"),
    ("grade", "course", "acute=acute,acutely chronic=chronic,chronically"),
    ("grade", "malignancy", "benign malignant"),
    ("grade", "completeness", "complete=complete,completely partial=partial,partially,incomplete,incompletely"),
    ("side", "left or right", "left=left,lt right=right,rt bilateral=both,bilateral,bilaterally unilateral"),
    ("side", "upper or lower", "upper lower"),
    ("side", "near or far", "proximal=proximal,proximally distal=distal,distally"),
    ("side", "inner or outer", "medial=medial,medially lateral=lateral,laterally"),
    ("side", "front or back", "anterior=anterior,anteriorly posterior=posterior,posteriorly"),
    ("side", "palm or back", "volar=volar,palmar dorsal=dorsal,dorsally"),
    ("side", "above or below", "above below=below,beneath,underneath,under_the"),
    ("side", "inside or outside", "inner=inner,internal outer=outer,external"),
    ("route", "route", "oral=oral,orally,by_mouth,per_os,po topical=topical,topically"),
    ("route", "route", "intravenous=intravenous,intravenously,iv,into_a_vein,into_the_vein"),
    ("route", "route", "intramuscular=intramuscular,intramuscularly,im,into_a_muscle,into_the_muscle"),
    ("route", "route", "subcutaneous=subcutaneous,subcutaneously,subcut,sc,under_the_skin"),
    ("route", "route", "sublingual=sublingual,sublingually,under_the_tongue"),
    ("route", "route", "rectal=rectal,rectally,per_rectum,by_the_back_passage"),
    ("route", "route", "inhaled=inhaled,inhalation nebulised=nebulised,nebulized vaginal=vaginally,per_vaginam"),
    ("route", "route", "intranasal=intranasal,intranasally intrathecal=intrathecal,intrathecally"),
    ("route", "anaesthesia", "general=ga"),
)
_FIXED_LENGTHS = lengths_by_first_word(_FIXED)
_ANAESTHETICS = word_set("general spinal epidural regional local")
_SIDE_LETTERS = {"l": _FIXED["left"], "r": _FIXED["right"]}
_GRADE_NOUNS = word_set(
    "type grade stage class category level degree zone phase group score tier priority triage grades types stages"
)
_LETTERED = word_set("group type class grade stage category hepatitis influenza vitamin weber pugh stanford")
_SCORES = word_set("score scores scale grade stage class level coma")
_ROMAN = re.compile(r"(x{0,3})(ix|iv|v?i{0,3})([a-d]?)")
_ROMAN_ONES = _numbered("i ii iii iv v vi vii viii ix", start=1)
_CLOCK = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)(?::[0-5]\d)?")
_PARTS_OF_HOUR = {"half": 30, "quarter": 15}
_COMPACT_CLOCK = re.compile(r"([01]\d|2[0-3])[.]?([0-5]\d)")
_HALF_CLOCK = re.compile(r"(\d\d?)(?:[.:](\d\d)?)?")
_HALVES = {"am": 0, "pm": 12}
_HOURS = word_set("h hr hrs hours")
_WEEKS = word_set("week weeks wk wks")
_SMALLER = {
    name: UNITS[smaller]
    for larger, smaller in (("hour", "minute"), ("week", "day"), ("year", "month"))
    for name, unit in UNITS.items()
    if unit == UNITS[larger]
}
_LATE = 20  # weeks of gestation that nobody takes for something else
_RANGES = word_set("to or and")
_DASHES = word_set("- \u2011 \u2013 \u2014")
_YEAR = re.compile(r"(?:19|20)\d\d")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_ORDINAL_ENDINGS = word_set("st nd rd th")
_BEFORE_LEAVING = word_set("he she they who was were had has been be")
_AFTER_LEAVING = word_set("for in on to as until open out behind by with")
_AFTER_RIGHT = word_set("away after before now then")


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


class Spot(NamedTuple):
    """A word among its neighbours."""

    text: str
    words: Sequence[Word]
    at: int

    def folded(self, step: int = 0) -> str:
        """Give the folded word `step` places on; nothing beyond the ends."""
        place = self.at + step
        return self.words[place].folded if 0 <= place < len(self.words) else ""

    @property
    def is_capitalised(self) -> bool:
        return self.text[self.words[self.at].start].isupper()

    @property
    def is_acronym(self) -> bool:
        word = self.words[self.at]
        return 2 < word.end - word.start < 7 and self.text[word.start : word.end].isupper() and word.folded not in UNITS

    def at_step(self, step: int) -> "Spot":
        return Spot(self.text, self.words, self.at + step)

    def before(self, step: int) -> str | None:
        """Give what parts the word `step` places on from the one before it; None beyond the ends."""
        place = self.at + step
        inside = 0 < place < len(self.words)
        return self.text[self.words[place - 1].end : self.words[place].start] if inside else None


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
    if first in _NUMBERS or first in _ORDINALS or first in _PARTS_OF_HOUR:
        return _OF_NUMBER_WORDS
    return tuple(reading for reading, may_begin in _OF_WORDS if may_begin(first))


def _is_roman(first: str) -> bool:
    return len(first) <= 6 and any(first.startswith(letter) for letter in "xvi") and _ROMAN.fullmatch(first) is not None


def _date(spot: Spot) -> Value | None:
    first = spot.folded()
    if first.count("-") == 2 or first.count("/") == 2:
        return Value("day", "date", first[:40], 1)
    return None


def _clock(spot: Spot) -> Value | None:
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


def _clock_around_h(spot: Spot) -> Value | None:
    """Read "14h15"; "14 h 15 min" is a duration."""
    hour, minute = spot.folded(), spot.folded(2)
    if spot.folded(1) != "h" or spot.before(1) or spot.before(2) or len(minute) != 2 or not minute.isdecimal():
        return None
    match = _CLOCK.fullmatch(f"{hour}:{minute}")
    return _time(int(match[1]), int(match[2]), 3) if match else None


def _clock_in_words(spot: Spot) -> Value | None:
    """Read "half past eight" and "at ten to nine"; "ten to nine days" is no clock."""
    after = spot.folded(1)
    if after != "past" and not (after == "to" and "at" in {spot.folded(-1), spot.folded(-2)}):
        return None
    first = spot.folded()
    minute, hour = _PARTS_OF_HOUR.get(first, whole_number(first)), whole_number(spot.folded(2))
    if not (minute and minute < 60 and hour and hour < 24):
        return None
    return _time(hour, minute, 3) if after == "past" else _time(hour - 1, 60 - minute, 3)


def whole_number(folded: str) -> int | None:
    """Give the number that a word is, in digits or in letters."""
    return _NUMBERS.get(folded, int(folded[:9]) if folded.isdecimal() else None)


def _time(hour: int, minute: int, length: int) -> Value:
    return Value("time", "clock", f"{hour % 24:02}:{minute:02}", length)


def _ordinal(spot: Spot) -> Value | None:
    first, after = spot.folded(), spot.folded(1)
    if first in _ORDINALS:
        number, length = _ORDINALS[first], 1
    elif first.isdecimal() and after in _ORDINAL_ENDINGS and spot.before(1) == "":
        number, length = int(first[:9]), 2
    else:
        return None
    if spot.folded(length) == "degree":
        return Value("grade", "grade", str(number), length)
    if "day" in (spot.folded(length), spot.folded(length + 1)):
        return Value("day", "numbered day", str(number), length)
    return Value("number", "ordinal", str(number), length)


def _numbered_day(spot: Spot) -> Value | None:
    """Read the 2 of "day 2" and "POD 2"."""
    number = whole_number(spot.folded())
    if spot.folded(-1) not in {"day", "pod"} or number is None or spot.folded(1) in UNITS:
        return None
    return Value("day", "numbered day", str(number), 1)


def _out_of(spot: Spot) -> Value | None:
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


def _grade_number(spot: Spot) -> Value | None:
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


def _times(spot: Spot) -> Value | None:
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


def _recurring(spot: Spot) -> Value | None:
    """Read "daily", "a day" after a number, "bd"."""
    first = spot.folded()
    if first in _TIMES_A_DAY:
        return _often(_TIMES_A_DAY[first], 1)
    is_recurring = first in _PERIODS and (first.endswith("ly") or _is_per(spot))
    return _often(_DAY / _PERIODS[first], 1) if is_recurring else None


def _every(spot: Spot) -> Value | None:
    """Read "every day" and "every other day"."""
    skips = spot.folded(1) in {"other", "second"}
    period = _PERIODS.get(spot.folded(1 + skips))
    return _often(_DAY / period / (1 + skips), 2 + skips) if period else None


def _one_unit(spot: Spot) -> Value | None:
    """Read the "day" of "for a day" and "within an hour" as one of them."""
    is_long = spot.folded() == "fortnight"  # which is two weeks wherever it stands
    is_one = spot.folded(-1) in {"a", "an"} and (is_long or spot.folded(-2) in _BEFORE_DURATION)
    return _measured(1, spot.folded(), 1) if is_one else None


def _is_per(spot: Spot) -> bool:
    """Tell whether a period is one for which something is counted: "2 litres a day", "30 mg/day", "stools a day"."""
    if spot.before(0) == "/" or spot.folded(-1) == "per":
        return True
    if spot.folded(-1) != "a" or spot.folded(1) in _AFTER_PERIOD:
        return False
    counted = spot.folded(-2)
    is_plural = counted.endswith("s") and not counted.endswith("ss") and counted not in _LASTING
    return is_plural or any(_is_number(spot.folded(step)) for step in (-5, -4, -3, -2))


def _often(times_a_day: float, length: int) -> Value:
    return Value("number", "times a day", f"{times_a_day:g}", length)


def _quantity(spot: Spot) -> Value | None:
    """Read a number with its unit, in the smallest unit of what it measures; without one, with the noun it counts."""
    first = spot.folded()
    if first in _PARTS_OF_HOUR:
        return _half(spot) if first == "half" else None
    if first in _NUMBERS and not _is_order(spot):
        number = float(_NUMBERS[first])
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


def _range_begin(spot: Spot, number: float) -> Value | None:
    """Read the 2 of "2 to 3 hours" and "2-3 hours"."""
    ahead = 3 if spot.folded(1) in _RANGES else 2
    is_range = ahead == 3 or (spot.before(1) or "").strip() in _DASHES
    unit = spot.folded(ahead)
    return _measured(number, unit, 1) if is_range and unit in UNITS and _is_number(spot.folded(ahead - 1)) else None


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


def _plus(spot: Spot) -> Value | None:
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


def _is_number(folded: str) -> bool:
    return folded[:1].isdecimal() or folded in _NUMBERS


def _rate_length(spot: Spot) -> int:
    """Give how many words a rate takes, such as "28/min", "28 bpm" and "28 beats per minute"; 0 if it is none."""
    if spot.folded(1) == "bpm":
        return 2
    at = 2 if spot.folded(1) in {"beats", "breaths"} else 1
    at += spot.folded(at) in {"per", "a"}
    is_rate = at > 1 or spot.before(1) == "/"
    return at + 1 if is_rate and spot.folded(at) in {"min", "minute"} else 0


def _measured(number: float, name: str, length: int) -> Value:
    unit = UNITS[name]
    return Value("number", unit.quantity, f"{number * unit.size:g} {unit.base}".rstrip(), length, f"{number:g}")


def _per(spot: Spot, measured: Value) -> Value:
    """Take in the second unit of "5.5 mmol/L" and "2 mg per kg"."""
    length = measured.length
    if spot.before(length) == "/":
        name, longer = spot.folded(length), 1
    else:
        name, longer = (spot.folded(length + 1), 2) if spot.folded(length) == "per" else ("", 0)
    if name not in UNITS or name in _DAYS_AND_LONGER:  # how often something is, is a value of its own
        return measured
    unit = UNITS[name]
    canonical = f"{measured.canonical} per {unit.size:g} {unit.base}".rstrip()
    return Value("number", f"{measured.scale} per {unit.quantity}", canonical, length + longer, measured.amount)


def _day(spot: Spot) -> Value | None:
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


def _year(spot: Spot) -> Value | None:
    """Read the year of "in 2015", "since 2015" and "March 2015"."""
    first = spot.folded()
    if len(first) != 4 or not _YEAR.fullmatch(first):  # as most
        return None
    before = spot.folded(-1)
    is_dated = before in _BEFORE_MONTH or before in _MONTHS
    is_alone = spot.folded(1) not in UNITS and (spot.before(1) or "").strip() not in _DASHES
    return Value("number", "year", first, 1) if is_dated and is_alone else None


def _day_of_month(spot: Spot) -> Value | None:
    """Read "12 March", "12th of March" and "twelfth of March"."""
    first = spot.folded()
    if spot.folded(1) not in _AFTER_DAY:  # as most
        return None
    day = _ORDINALS.get(first) or (int(first) if first.isdecimal() and len(first) <= 2 else None)
    if day is None:
        return None
    for step in (1, 2, 3):
        if spot.folded(step) in _MONTHS and spot.at_step(step).is_capitalised:
            return Value("day", "date", f"{day} {_MONTHS[spot.folded(step)]}", step + 1)
        if spot.folded(step) not in _ORDINAL_ENDINGS | {"of"}:
            return None
    return None


def _roman_grade(spot: Spot) -> Value | None:
    first = spot.folded()
    if len(first) > 6 or not spot.is_capitalised or spot.before(1) == "-" or not (match := _ROMAN.fullmatch(first)):
        return None
    numeral = match[1] + match[2]
    # "IV fluids" are no grade, and "I" is most often a person.
    if not numeral or ((len(numeral) == 1 or numeral == "iv") and not _follows_name(spot)):
        return None
    return Value("grade", "grade", f"{10 * len(match[1]) + _ROMAN_ONES.get(match[2], 0)}{match[3]}", 1)


def _follows_name(spot: Spot) -> bool:
    """Tell whether the noun of a grade stands before it, or a name, as in "Garden IV"."""
    if spot.at == 0 or spot.folded(-1) in _GRADE_NOUNS:
        return spot.at > 0
    before = spot.at_step(-1)
    return before.is_capitalised and not before.folded().endswith(("ed", "ing")) and len(before.folded()) > 2


def _fixed(spot: Spot) -> Value | None:
    first = spot.folded()
    if (first == "right" and spot.folded(1) in _AFTER_RIGHT) or _is_departure(spot):
        return None
    if first == "po" and spot.folded(1)[:1].isdecimal() and not spot.before(1):  # pO2
        return None
    if first == "both" and "and" in (spot.folded(2), spot.folded(3), spot.folded(4)):
        return None
    for length in _FIXED_LENGTHS[first]:
        phrase = first if length == 1 else " ".join([spot.folded(step) for step in range(length)])
        if value := _FIXED.get(phrase):
            return value
    return None


def _lettered(spot: Spot) -> Value | None:
    """Read "group B", "group was AB" and "hepatitis C"."""
    at = 2 if spot.folded(1) in {"is", "was"} else 1
    letter = spot.folded(at)
    is_one = len(letter) == 1 or letter == "ab"
    if not is_one or letter in "ivx" or spot.before(at) != " " or not spot.at_step(at).is_capitalised:
        return None  # "stage I" is a number
    is_alone = letter.isalpha() and (spot.before(at + 1) != "" or not spot.folded(at + 1)[:1].isdecimal())  # "B12"
    return Value("grade", f"{spot.folded()} letter", letter, at + 1) if is_alone else None


def _anaesthetic(spot: Spot) -> Value | None:
    """Read the "spinal" of "spinal anaesthesia" and "under spinal"."""
    is_one = spot.folded(1).startswith(("anaesth", "anesth")) or spot.folded(-1) == "under"
    return Value("route", "anaesthesia", spot.folded(), 1) if is_one else None


def _side_letter(spot: Spot) -> Value | None:
    """Read the capital of "L hip"; that of "2 L", "L4" and "mg/L" is no side."""
    is_alone = spot.before(0) in {None, " "} and spot.before(1) == " " and not spot.folded(-1)[:1].isdecimal()
    stands_before_noun = spot.folded(1)[:1].isalpha() and spot.folded(1) not in UNITS
    return _SIDE_LETTERS[spot.folded()] if spot.is_capitalised and is_alone and stands_before_noun else None


def _is_departure(spot: Spot) -> bool:
    """Tell the verb "left" from the side: "she left the hospital", "was left waiting", "a drain was left for a day"."""
    if spot.folded() != "left":
        return False
    before, after = spot.folded(-1), spot.folded(1)
    is_verb = before in _BEFORE_LEAVING and (after.endswith("ing") or after in _AFTER_LEAVING)
    return after in {"the", "without", "against", "at", "before", "open", "alone"} or is_verb


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
    if not _is_number(first):
        return None
    value = value_at(spot.text, spot.words, spot.at)
    return value if value and value.type in {"number", "grade"} and value.scale != "ordinal" else None


_Reading = Callable[[Spot], Value | None]
_OF_NUMBER_WORDS: tuple[_Reading, ...] = (
    *(
        _day_of_month,
        _clock_around_h,
        _clock,
        _clock_in_words,
        _times,
        _ordinal,
        _numbered_day,
        _plus,
        _out_of,
        _grade_number,
        _quantity,
    ),
)
_OF_DIGITS = (_date, _year, *_OF_NUMBER_WORDS)
# Each with the test of the first word, without which it gives nothing.
_OF_WORDS: tuple[tuple[_Reading, Callable[[str], bool]], ...] = (
    (_comparison, _COMPARISON_LENGTHS.__contains__),
    (_day, frozenset((*_DAYS, *_DAYS_BY, *_MONTHS)).__contains__),
    (_roman_grade, _is_roman),
    (_fixed, _FIXED_LENGTHS.__contains__),
    (_lettered, _LETTERED.__contains__),
    (_anaesthetic, _ANAESTHETICS.__contains__),
    (_side_letter, _SIDE_LETTERS.__contains__),
    (_recurring, frozenset((*_PERIODS, *_TIMES_A_DAY)).__contains__),
    (_every, frozenset(("every", "each")).__contains__),
    (_one_unit, frozenset(("minute", "hour", "day", "week", "fortnight", "month", "year")).__contains__),
)
