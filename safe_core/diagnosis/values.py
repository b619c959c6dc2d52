"""Typed values in a text in one canonical form: "8:30 pm" is "20:30", "III" is 3 as a grade."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from safe_core.diagnosis.words import Word, by_spelling, stem, word_set

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


def _fixed_values(*rows: tuple[ValueType, str, str]) -> dict[str, Value]:
    """Map spellings to values, from rows of type, scale and values: a word, or "canonical=spelling,spelling"."""
    return {
        spelling: Value(value_type, scale, canonical, 1)
        for value_type, scale, values in rows
        for canonical, _, spellings in (value.partition("=") for value in values.split())
        for spelling in (spellings or canonical).split(",")
    }


def _numbered(names: str, start: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), start)}


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
_DEGREES = word_set("degree degrees")
_BARE = frozenset(("bare", "ordinal", "grade", "numbered day", "ratio"))

_NUMBERS = {
    "once": 1, "twice": 2, "thrice": 3, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90, "hundred": 100,
}  # fmt: skip
_NUMBERS |= _numbered(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty",
    start=0,
)
_ORDINALS = _numbered("first second third fourth fifth sixth seventh eighth ninth tenth", start=1)
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
_BEFORE_MONTH = word_set("in of since until by last next from")
_DAYS_BY = {"same": "same", "next": "next", "following": "next", "previous": "previous"}
# Words that are a value by themselves; on one scale, each value stands against the others.
_FIXED = _fixed_values(
    ("day", "near day", "today yesterday tomorrow"),
    ("time", "clock", "12:00=noon,midday 00:00=midnight"),
    ("time", "part of the day", "morning afternoon evening night=night,nights,overnight"),
    ("grade", "severity", "mild=mild,mildly moderate=moderate,moderately severe=severe,severely minor major"),
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
)
_GRADE_NOUNS = word_set(
    "type grade stage class category level degree zone phase group score tier priority triage grades types stages"
)
_SCORES = word_set("score scores scale grade stage class level coma")
_ROMAN = re.compile(r"(x{0,3})(ix|iv|v?i{0,3})([a-d]?)")
_ROMAN_ONES = _numbered("i ii iii iv v vi vii viii ix", start=1)
_CLOCK = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)(?::[0-5]\d)?")
_COMPACT_CLOCK = re.compile(r"([01]\d|2[0-3])([0-5]\d)")
_HALF_CLOCK = re.compile(r"(\d\d?)(?:[.:](\d\d)?)?")
_HALVES = {"am": 0, "pm": 12}
_HOURS = word_set("h hr hrs hours")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_ORDINAL_ENDINGS = word_set("st nd rd th")
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
_LONGEST_COMPARISON = max(len(phrase.split()) for phrase in _COMPARISONS)
_COMPARISON_FIRST = frozenset(phrase.partition(" ")[0] for phrase in _COMPARISONS)


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
    readings = _readings(cut[at].folded)
    if not readings:  # as for most words
        return None
    spot = Spot(text, cut, at)
    return next((value for reading in readings if (value := reading(spot))), None)


@lru_cache(maxsize=8192)
def _readings(first: str) -> "tuple[_Reading, ...]":
    """Give the readings that a word may begin, in the order in which they are tried."""
    if first[0].isdecimal():
        return _OF_DIGITS
    if first in _NUMBERS or first in _ORDINALS:
        return _OF_NUMBER_WORDS
    return tuple(reading for reading, may_begin in _OF_WORDS if may_begin(first))


def _is_roman(first: str) -> bool:
    return len(first) <= 6 and _ROMAN.fullmatch(first) is not None


def _date(spot: Spot) -> Value | None:
    first = spot.folded()
    if first.count("-") == 2 or first.count("/") == 2:
        return Value("day", "date", first[:40], 1)
    return None


def _clock(spot: Spot) -> Value | None:
    """Read 20:30, 8:30 pm, 8.30 pm, 8 pm, 0830 hours, 8 o'clock."""
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
    match = _COMPACT_CLOCK.fullmatch(first)
    if match and (after in _HOURS or (spot.folded(-1) == "at" and after not in UNITS)):
        return _time(int(match[1]), int(match[2]), length)
    return None


def _clock_after_at(spot: Spot) -> Value | None:
    """Read "at 09.40" and "at half past eight"."""
    first = spot.folded()
    if spot.folded(-1) == "at" and len(first) == 5 and _CLOCK.fullmatch(first.replace(".", ":")):
        return None if spot.folded(1) in UNITS else _time(int(first[:2]), int(first[3:]), 1)
    if (spot.folded(-2), spot.folded(-1)) == ("half", "past"):
        hour = _whole_number(first)
        return _time(hour, 30, 1) if hour is not None and hour < 24 else None
    return None


def _whole_number(folded: str) -> int | None:
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
    """Read the 2 of "day 2"."""
    number = _whole_number(spot.folded())
    if spot.folded(-1) != "day" or number is None or spot.folded(1) in UNITS:
        return None
    return Value("day", "numbered day", str(number), 1)


def _out_of(spot: Spot) -> Value | None:
    """Read the "22 out of 30" that others write "22/30"."""
    numbers = _whole_number(spot.folded()), _whole_number(spot.folded(3))
    if (spot.folded(1), spot.folded(2)) != ("out", "of") or None in numbers:
        return None
    return Value("number", "ratio", f"{numbers[0]}/{numbers[1]}", 4)


def _grade_number(spot: Spot) -> Value | None:
    """Read the 3 of "type 3", "type 3a", "score of 3" and "GCS 3"."""
    first, letter = spot.folded(), spot.folded(1)
    if not _follows_grade_noun(spot) or letter in UNITS:
        return None
    number = _whole_number(first)
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
    if spot.before(length) == "/":
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


def _roman_grade(spot: Spot) -> Value | None:
    first = spot.folded()
    if len(first) > 6 or not spot.is_capitalised or not (match := _ROMAN.fullmatch(first)):
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
    if first == "both" and "and" in (spot.folded(2), spot.folded(3), spot.folded(4)):
        return None
    return _FIXED.get(first)


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
        side = _COMPARISONS.get(" ".join(spot.folded(step) for step in range(length)))
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
_OF_NUMBER_WORDS: tuple[_Reading, ...] = (
    *(_clock, _clock_after_at, _ordinal, _numbered_day, _out_of, _grade_number, _quantity),
)
_OF_DIGITS = (_date, _day_of_month, *_OF_NUMBER_WORDS)
# Each with the test of the first word, without which it gives nothing.
_OF_WORDS: tuple[tuple[_Reading, Callable[[str], bool]], ...] = (
    (_comparison, _COMPARISON_FIRST.__contains__),
    (_day, frozenset((*_DAYS, *_DAYS_BY, *_MONTHS)).__contains__),
    (_roman_grade, _is_roman),
    (_fixed, _FIXED.__contains__),
)
