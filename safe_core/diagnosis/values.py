"""Typed values in a text in one canonical form: "8:30 pm" is "20:30", "III" is 3 as a grade."""

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from safe_core.diagnosis.words import Word, listed, stem

ValueType = Literal["number", "time", "day", "grade", "side", "comparison"]


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


class Unit(NamedTuple):
    """What a unit measures, and how many of the smallest one it is; units of another base cannot be converted."""

    quantity: str
    size: float
    base: str = ""


def _units(*rows: tuple[str, float, str]) -> dict[str, Unit]:
    return {name: Unit(quantity, size) for quantity, size, names in rows for name in names.split()}


UNITS = _units(
    ("duration", 1, "s sec secs second seconds"),
    ("duration", 60, "min mins minute minutes"),
    ("duration", 3600, "h hr hrs hour hours hourly"),
    ("duration", 86400, "day days"),
    ("duration", 604800, "wk wks week weeks"),
    ("duration", 2629800, "month months mo mos"),
    ("duration", 31557600, "year years yr yrs yo y"),
    ("mass", 1, "mcg µg μg ug microgram micrograms"),
    ("mass", 1e3, "mg milligram milligrams mgs"),
    ("mass", 1e6, "g gram grams gm"),
    ("mass", 1e9, "kg kilogram kilograms kgs"),
    ("mass", 453592370, "lb lbs pound pounds"),
    ("volume", 1, "ml millilitre millilitres milliliter milliliters cc"),
    ("volume", 1e2, "dl decilitre decilitres deciliter deciliters"),
    ("volume", 1e3, "l litre litres liter liters"),
    ("length", 1, "mm millimetre millimetres millimeter millimeters"),
    ("length", 10, "cm centimetre centimetres centimeter centimeters"),
    ("length", 1000, "m metre metres meter meters"),
    ("length", 25.4, "inch inches"),
    ("length", 304.8, "ft foot feet"),
    ("pressure", 1, "mmhg"),
    ("pressure", 7.50062, "kpa"),
    ("share", 1, "percent"),
    ("heat or angle", 1, "degree degrees c celsius centigrade"),
    ("activity", 1, "iu units unit"),
    ("substance", 1, "mmol mmols"),
    ("rate", 1, "bpm"),
) | {name: Unit("heat or angle", 1, "F") for name in ("f", "fahrenheit")}
_DEGREES = frozenset(("degree", "degrees"))
_BARE = frozenset(("bare", "ordinal", "grade", "numbered day"))

_NUMBERS = {
    name: number
    for number, name in enumerate(
        listed(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen twenty"
        )
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100}
_NUMBERS |= {"once": 1, "twice": 2, "thrice": 3}
_ORDINALS = {
    name: number
    for number, name in enumerate(listed("first second third fourth fifth sixth seventh eighth ninth tenth"), start=1)
}
_DAYS = {
    name: day
    for day, names in {
        "monday": "monday mondays mon",
        "tuesday": "tuesday tuesdays tue tues",
        "wednesday": "wednesday wednesdays wed",
        "thursday": "thursday thursdays thu thur thurs",
        "friday": "friday fridays fri",
        "saturday": "saturday saturdays sat",
        "sunday": "sunday sundays sun",
    }.items()
    for name in names.split()
}
_NEAR_DAYS = {name: name for name in ("today", "yesterday", "tomorrow")}
_MONTHS = {
    name: name[:3]
    for name in listed(
        "january february march april may june july august september october november december jan feb mar apr jun "
        "jul aug sep sept oct nov dec"
    )
}
_ONLY_MONTHS = frozenset(name for name in _MONTHS if len(name) > 4 and name != "march")
_BEFORE_MONTH = frozenset(listed("in of since until by last next from"))
_DAYS_BY = {"same": "same", "next": "next", "following": "next", "previous": "previous"}
_DAY_PARTS = {name: name for name in ("morning", "afternoon", "evening", "night", "overnight")}
_CLOCK_WORDS = {"noon": "12:00", "midday": "12:00", "midnight": "00:00"}
# One word of a line stands against the others of its line.
_SIDES = {
    name: (scale, side)
    for scale, sides in {
        "left or right": "left:left,lt right:right,rt bilateral:both,bilateral,bilaterally unilateral:unilateral",
        "upper or lower": "upper:upper lower:lower",
        "near or far": "proximal:proximal,proximally distal:distal,distally",
        "inner or outer": "medial:medial,medially lateral:lateral,laterally",
        "front or back": "anterior:anterior,anteriorly posterior:posterior,posteriorly",
        "palm or back": "volar:volar,palmar dorsal:dorsal,dorsally",
    }.items()
    for side, names in (pair.split(":") for pair in sides.split())
    for name in names.split(",")
}
_SEVERITIES = {
    "mild": "mild",
    "mildly": "mild",
    "moderate": "moderate",
    "moderately": "moderate",
    "severe": "severe",
    "severely": "severe",
    "minor": "minor",
    "major": "major",
}
_GRADE_NOUNS = frozenset(
    listed(
        "type grade stage class category level degree zone phase group score tier priority triage grades types stages"
    )
)
_SCORES = frozenset(listed("score scores scale grade stage class level coma"))
_ROMAN = re.compile(r"(x{0,3})(ix|iv|v?i{0,3})([a-d]?)")
_ROMAN_WORTH = {"i": 1, "v": 5, "x": 10}
_CLOCK = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)(?::[0-5]\d)?")
_COMPACT_CLOCK = re.compile(r"([01]\d|2[0-3])([0-5]\d)")
_HALVES = {"am": 0, "pm": 12}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_ORDINAL_ENDINGS = frozenset(("st", "nd", "rd", "th"))
_AFTER_RIGHT = frozenset(listed("away after before now then"))


# What stands before a number and says on which side of it: the words, then the side.
_COMPARISONS = {
    tuple(phrase.split()): side
    for side, phrases in {
        "less": "<|<=|below|under|within|up to|less than|fewer than|lower than|at most|no more than|not more than|"
        "less than or equal to",
        "more": ">|>=|above|over|exceeding|more than|greater than|higher than|longer than|at least|no less than|"
        "not less than|no fewer than|greater than or equal to|more than or equal to",
    }.items()
    for phrase in phrases.split("|")
}
_LONGEST_COMPARISON = max(map(len, _COMPARISONS))
_COMPARISON_FIRST = frozenset(phrase[0] for phrase in _COMPARISONS)


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

    def is_slash_before(self, step: int) -> bool:
        """Tell whether only a slash parts the word `step` places on from the one before it."""
        place = self.at + step
        return 0 < place < len(self.words) and self.text[self.words[place - 1].end : self.words[place].start] == "/"

    def touches(self, step: int) -> bool:
        """Tell whether nothing stands between this word and the one `step` places on."""
        place = self.at + step
        return 0 <= place < len(self.words) and self.words[place - 1].end == self.words[place].start


def value_at(text: str, cut: Sequence[Word], at: int) -> Value | None:
    """Give the value that begins with a word, if one does; the first reading that fits."""
    spot = Spot(text, cut, at)
    first = spot.folded()
    if first[0].isdecimal():
        readings = _OF_DIGITS
    elif first in _NUMBERS or first in _ORDINALS:
        readings = _OF_NUMBER_WORDS
    else:
        readings = _OF_WORDS
    return next((value for reading in readings if (value := reading(spot))), None)


def _date(spot: Spot) -> Value | None:
    first = spot.folded()
    if first.count("-") == 2 or first.count("/") == 2:
        return Value("day", "date", first[:40], 1)
    return None


def _clock(spot: Spot) -> Value | None:
    """Read 20:30, 8:30 pm, 8.30 pm, 8 pm, 0830 hours, 8 o'clock."""
    first, after = spot.folded(), spot.folded(1)
    if after in _HALVES:
        hour, minute = _hour_and_minute(first)
        return _time(hour % 12 + _HALVES[after], minute, 2) if hour is not None and 0 < hour <= 12 else None
    if match := _CLOCK.fullmatch(first):
        return _time(int(match[1]), int(match[2]), 2 if after in {"h", "hrs", "hours", "hr"} else 1)
    if after == "oclock" and first.isdecimal() and int(first[:3]) <= 24:
        return _time(int(first), 0, 2)
    match = _COMPACT_CLOCK.fullmatch(first)
    if match and (after in {"h", "hrs", "hours", "hr"} or (spot.folded(-1) == "at" and after not in UNITS)):
        return _time(int(match[1]), int(match[2]), 2 if after in {"h", "hrs", "hours", "hr"} else 1)
    return None


def _clock_after_at(spot: Spot) -> Value | None:
    """Read "at 09.40" and "at half past eight"."""
    first = spot.folded()
    if spot.folded(-1) == "at" and len(first) == 5 and _CLOCK.fullmatch(first.replace(".", ":")):
        return None if spot.folded(1) in UNITS else _time(int(first[:2]), int(first[3:]), 1)
    if (spot.folded(-2), spot.folded(-1)) == ("half", "past"):
        hour = _NUMBERS.get(first, int(first[:9]) if first.isdecimal() else 24)
        return _time(hour, 30, 1) if hour < 24 else None
    return None


def _hour_and_minute(first: str) -> tuple[int | None, int]:
    hour, _, minute = first.replace(".", ":").partition(":")
    if not (hour.isdecimal() and len(hour) <= 2) or (minute and not (minute.isdecimal() and len(minute) == 2)):
        return None, 0
    return int(hour), int(minute or 0)


def _time(hour: int, minute: int, length: int) -> Value:
    return Value("time", "clock", f"{hour % 24:02}:{minute:02}", length)


def _ordinal(spot: Spot) -> Value | None:
    first, after = spot.folded(), spot.folded(1)
    if first in _ORDINALS:
        number, length = _ORDINALS[first], 1
    elif first.isdecimal() and after in _ORDINAL_ENDINGS and spot.touches(1):
        number, length = int(first[:9]), 2
    else:
        return None
    if spot.folded(length) == "degree":
        return Value("grade", "grade", str(number), length)
    if "day" in (spot.folded(length), spot.folded(length + 1)):
        return Value("day", "numbered day", str(number), length)
    return Value("number", "ordinal", str(number), length)


def _numbered_day(spot: Spot) -> Value | None:
    """Read the 2 of "day 2"."""
    first = spot.folded()
    number = _NUMBERS.get(first, int(first[:9]) if first.isdecimal() else None)
    if spot.folded(-1) != "day" or number is None or spot.folded(1) in UNITS:
        return None
    return Value("day", "numbered day", str(number), 1)


def _grade_number(spot: Spot) -> Value | None:
    """Read the 3 of "type 3", "type 3a", "score of 3" and "GCS 3"."""
    first = spot.folded()
    number = _NUMBERS.get(first, int(first[:9]) if first.isdecimal() else None)
    if not _follows_grade_noun(spot) or spot.folded(1) in UNITS:
        return None
    if number is None:
        return Value("grade", "grade", first[:40], 1)
    letter = spot.folded(1)
    if len(letter) == 1 and letter in "abcd" and spot.touches(1):
        return Value("grade", "grade", f"{number}{letter}", 2)
    return Value("grade", "grade", str(number), 1)


def _follows_grade_noun(spot: Spot) -> bool:
    before = spot.folded(-1)
    if before == "of":
        return spot.folded(-2) in _SCORES
    return before in _GRADE_NOUNS or (spot.at > 0 and spot.at_step(-1).is_acronym)


def _quantity(spot: Spot) -> Value | None:
    """Read a number with its unit, in the smallest unit of what it measures; without one, with the noun it counts."""
    first = spot.folded()
    if first in _NUMBERS:
        number = float(_NUMBERS[first])
    elif _NUMBER.fullmatch(first) and len(first) <= 15:
        number = float(first)
    else:
        return Value("number", "ratio", first[:40], 1)
    after = spot.folded(1)
    if after in UNITS:
        length = 3 if after in _DEGREES and spot.folded(2) in UNITS else 2
        return _per(spot, _measured(number, spot.folded(length - 1), length))
    for ahead in (2, 3):  # the 2 of "2 to 3 hours"
        if spot.folded(ahead) in UNITS and spot.folded(ahead - 1)[:1].isdecimal():
            return _measured(number, spot.folded(ahead), 1)
    return Value("number", f"of {stem(after)}" if after else "bare", f"{number:g}", 1)


def _measured(number: float, name: str, length: int) -> Value:
    unit = UNITS[name]
    return Value("number", unit.quantity, f"{number * unit.size:g} {unit.base}".rstrip(), length, f"{number:g}")


def _per(spot: Spot, measured: Value) -> Value:
    """Take in the second unit of "5.5 mmol/L" and "2 mg per kg"."""
    length = measured.length
    if spot.is_slash_before(length):
        name, longer = spot.folded(length), 1
    else:
        name, longer = (spot.folded(length + 1), 2) if spot.folded(length) == "per" else ("", 0)
    if name not in UNITS:
        return measured
    unit = UNITS[name]
    canonical = f"{measured.canonical} per {unit.size:g} {unit.base}".rstrip()
    return Value("number", f"{measured.scale} per {unit.quantity}", canonical, length + longer, measured.amount)


def _day(spot: Spot) -> Value | None:
    first, after = spot.folded(), spot.folded(1)
    if first in _DAYS and (len(first) > 5 or spot.is_capitalised):
        return Value("day", "weekday", _DAYS[first], 1)
    if first in _NEAR_DAYS:
        return Value("day", "near day", first, 1)
    if first in _DAYS_BY and after == "day":
        return Value("day", "near day", _DAYS_BY[first], 2)
    return _month(spot) if first in _MONTHS and spot.is_capitalised else None


def _month(spot: Spot) -> Value | None:
    """Read "March 12" and "in March"; alone, only a name that is nothing else."""
    first, after = spot.folded(), spot.folded(1)
    if after.isdecimal() and len(after) <= 2:
        return Value("day", "date", f"{int(after)} {_MONTHS[first]}", 2)
    if (first in _ONLY_MONTHS) or spot.folded(-1) in _BEFORE_MONTH:
        return Value("day", "month", _MONTHS[first], 1)
    return None


def _day_of_month(spot: Spot) -> Value | None:
    """Read "12 March" and "12th of March"."""
    first = spot.folded()
    if not first.isdecimal() or len(first) > 2:
        return None
    for step in (1, 2, 3):
        if spot.folded(step) in _MONTHS and spot.at_step(step).is_capitalised:
            return Value("day", "date", f"{int(first)} {_MONTHS[spot.folded(step)]}", step + 1)
        if spot.folded(step) not in _ORDINAL_ENDINGS | {"of"}:
            return None
    return None


def _day_part(spot: Spot) -> Value | None:
    first = spot.folded()
    if first in _CLOCK_WORDS:
        return Value("time", "clock", _CLOCK_WORDS[first], 1)
    return Value("time", "part of the day", first, 1) if first in _DAY_PARTS else None


def _roman_grade(spot: Spot) -> Value | None:
    first = spot.folded()
    if len(first) > 6 or not spot.is_capitalised or not (match := _ROMAN.fullmatch(first)):
        return None
    numeral = match[1] + match[2]
    # "IV fluids" are no grade, and "I" is most often a person.
    if not numeral or ((len(numeral) == 1 or numeral == "iv") and not _follows_name(spot)):
        return None
    return Value("grade", "grade", f"{_worth(numeral)}{match[3]}", 1)


def _follows_name(spot: Spot) -> bool:
    """Tell whether the noun of a grade stands before it, or a name, as in "Garden IV"."""
    if spot.at == 0 or spot.folded(-1) in _GRADE_NOUNS:
        return spot.at > 0
    before = spot.at_step(-1)
    return before.is_capitalised and not before.folded().endswith(("ed", "ing")) and len(before.folded()) > 2


def _worth(numeral: str) -> int:
    worths = [_ROMAN_WORTH[letter] for letter in numeral]
    return sum(
        -worth if worth < following else worth for worth, following in zip(worths, [*worths[1:], 0], strict=True)
    )


def _severity(spot: Spot) -> Value | None:
    first = spot.folded()
    return Value("grade", "severity", _SEVERITIES[first], 1) if first in _SEVERITIES else None


def _side(spot: Spot) -> Value | None:
    first = spot.folded()
    if first not in _SIDES or (first == "right" and spot.folded(1) in _AFTER_RIGHT) or _is_departure(spot):
        return None
    if first == "both" and "and" in (spot.folded(2), spot.folded(3), spot.folded(4)):
        return None
    scale, side = _SIDES[first]
    return Value("side", scale, side, 1)


def _is_departure(spot: Spot) -> bool:
    """Tell the verb "left" from the side: "she left the hospital", "was left waiting"."""
    return spot.folded() == "left" and (
        spot.folded(1) in {"the", "without", "against", "at", "before"}
        or (
            spot.folded(-1) in {"he", "she", "they", "who", "was", "were", "had", "has"}
            and spot.folded(1).endswith("ing")
        )
    )


def _comparison(spot: Spot) -> Value | None:
    """Read the "below" of "below 90%", which belongs to that number; "90 over 60" compares nothing."""
    first = spot.folded()
    if first not in _COMPARISON_FIRST or (first == "over" and spot.folded(-1)[:1].isdecimal()):
        return None
    for length in range(_LONGEST_COMPARISON, 0, -1):
        side = _COMPARISONS.get(tuple(spot.folded(step) for step in range(length)))
        if side and (number := _compared(spot.at_step(length))):
            return Value("comparison", f"than {number.key}", side, length)
    return None


def _compared(spot: Spot) -> Value | None:
    first = spot.folded()
    if not (first[:1].isdecimal() or first in _NUMBERS):
        return None
    value = value_at(spot.text, spot.words, spot.at)
    return value if value and value.type in {"number", "grade"} and value.scale != "ordinal" else None


_Reading = Callable[[Spot], Value | None]
_OF_DIGITS: tuple[_Reading, ...] = (
    _date,
    _day_of_month,
    _clock,
    _clock_after_at,
    _ordinal,
    _numbered_day,
    _grade_number,
    _quantity,
)
_OF_NUMBER_WORDS: tuple[_Reading, ...] = (_clock, _clock_after_at, _ordinal, _numbered_day, _grade_number, _quantity)
_OF_WORDS: tuple[_Reading, ...] = (_comparison, _day, _day_part, _roman_grade, _severity, _side)
