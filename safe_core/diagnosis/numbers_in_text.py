"""Numbers in a text with what they measure: one lexer, in which a number in each of its styles is one value.

`number_atoms` finds the single numbers; here each is read with what stands around it, by the first row of a table whose
pattern fits: dates, times, ratios, frequencies, ages, ranges, grades, quantities.
"""

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from string import ascii_lowercase
from typing import Final, Literal, NamedTuple

from safe_core.diagnosis.conversions import is_converted
from safe_core.diagnosis.lexicon import rows
from safe_core.diagnosis.number_atoms import NUMBER, ORDINAL, Number, Shape, shape_of
from safe_core.diagnosis.words import word_set

Kind = Literal[
    "number", "quantity", "count", "grade", "ordinal", "ratio", "dimensions", "time", "date", "frequency", "age"
]


class Value(NamedTuple):
    """A number with what it measures, and its place in the original text, in code points."""

    start: int
    end: int
    kind: Kind
    scale: str  # what is measured; values of one scale answer the same question
    canonical: str  # the same for all styles and units of a scale: "1/2", "2..3", "?-08-03"
    amount: str = ""  # the number as it was written, without its unit
    bound: str = ""  # "<", "<=", ">" or ">="
    period: str = ""  # in which a frequency counts: "week" of "once a week"
    other: str = ""  # of a date in digits that may be read in two orders, what it is in the other one


class _Read(NamedTuple):
    """What a row reads: as in `Value`, and where the value ends in the folded text."""

    kind: Kind
    scale: str
    canonical: str
    end: int
    amount: str = ""
    bound: str = ""
    period: str = ""
    other: str = ""


class _Unit(NamedTuple):
    quantity: str
    size: Number  # of the smallest unit of its quantity


def _named(written: str) -> dict[str, str]:
    """Give what each name stands for: "2=bid bd|1=daily"."""
    rows = (row.split("=") for row in written.split("|"))
    return {name: meaning for meaning, names in rows for name in names.split()}


def _any(names: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))


_AREA: Final = _Unit("area", 1)
_UNITS: Final = {
    name: _Unit(quantity, int(size) if size.isdecimal() else Fraction(size))
    for _, (quantity, size, names) in rows("units")
    for name in names.split(", ")
}
_UNIT_NAMES: Final = rf"m{NUMBER}|{_any(_UNITS)}"  # of "kg/m2", the number has become a mark
_UNIT: Final = rf"(?:\s{{0,2}}|-|\sof\san?\s)(?P<unit>{_UNIT_NAMES})(?![a-z])"
_PERIODS: Final = {
    name: Fraction(days)
    for name, days in _named(
        "1/24=hour hours hourly hr hrs h|1=day days daily night nightly d morning evening bedtime|"
        "7=week weeks weekly wk wks|14=fortnight fortnightly|30.4375=month months monthly|"
        "365.25=year years yearly annually"
    ).items()
}
_PERIOD: Final = rf"(?P<period>{_any(_PERIODS)})\b"
_EACH: Final = r"(?:a|an|per|each|every)\s|/\s?"
# Latin and English for how often, in times a day; "at night" is another daily dose than "in the morning".
_OFTEN: Final = _named(
    "2=bid b.i.d bd|3=tid t.i.d tds|4=qid q.i.d qds|1=qd q.d daily everyday|1/2=qod q.o.d|2/7=biw|3/7=tiw|24=hourly|"
    "1 in the night=qhs q.h.s nightly|1 in the evening=qpm|1 in the morning=qam|1/7=weekly|1/14=fortnightly|"
    "16/487=monthly|4/1461=yearly annually"
)
_MONTHS: Final = _named(
    "1=january jan|2=february feb|3=march mar|4=april apr|5=may|6=june jun|7=july jul|8=august aug|"
    "9=september sept sep|10=october oct|11=november nov|12=december dec"
)
_MONTH: Final = rf"(?P<month>{_any(_MONTHS)})\b\.?"
_DAYS: Final = _named(
    "1=monday mon|2=tuesday tue tues|3=wednesday wed|4=thursday thu thurs|5=friday fri|6=saturday sat|7=sunday sun"
)
_NOT_ALONE: Final = word_set("mon wed sat sun fri tue thu may march mar")  # also words
_ROMANS: Final = _named("1=i|2=ii|3=iii|4=iv|5=v|6=vi|7=vii|8=viii|9=ix|10=x|11=xi|12=xii")
_GRADED: Final = (
    "type types grade grades stage stages class category level degree zone phase group tier score scale nyha asa ckd "
    "gold gcs apgar garden gustilo weber killip fitzpatrick mallampati ecog birads rads bishop"
)
_BOUNDS: Final = {
    name.replace("_", " "): bound
    for bound, names in (
        ("<=", "<= =< up_to at_most no_more_than not_more_than less_than_or_equal_to within a_maximum_of"),
        (">=", ">= => at_least no_less_than not_less_than no_fewer_than greater_than_or_equal_to a_minimum_of"),
        ("<", "< below under less_than fewer_than lower_than smaller_than"),
        (">", "> above over exceeding more_than greater_than higher_than longer_than larger_than"),
    )
    for name in names.split()
}
_ABOUT: Final = "about around approximately approx. approx roughly circa ca. nearly almost ~"
_BEFORE: Final = re.compile(
    rf"(?:(?<![a-z])(?:{_any(_ABOUT.split())})\s?)?(?:(?P<bound>(?<![a-z])(?:{_any(_BOUNDS)}))\s?)?\Z"
)
_BEFORE_ENDS: Final = frozenset((*_ABOUT.split(), *".<=>", *(name.split()[-1] for name in _BOUNDS)))
_AFTER: Final = re.compile(
    r"(?P<more>\s?\+(?=\s?[a-z])|\+|\s(?:or|and)\s(?:more|greater|higher|above|over|longer|older)\b)"
    r"|\s(?:or|and)\s(?:less|fewer|lower|below|under|younger)\b"
)
_FORMS: Final = word_set("tablet tab capsule cap pill dose drop puff spray patch bag stool drink pack")
_NOT_ONCE: Final = re.compile(r"\s(?:the|he|she|they|it|we|you|i|an?|your|his|her|my|this|that|all|there|again)\b")
_NOT_ONE: Final = word_set("this that the no which each every any another other only good bad new same")
_AFTER_ONE: Final = re.compile(
    r"\s(?:of|another|should|can|could|would|will|is|has|was|who|that|which|or)\b|'|\s?[.,;?]|\Z"
)
_PRESSURE: Final = re.compile(r"\s?mm\s?(?:of\s)?hg\b")
_LONGEST_BEFORE: Final = 34
_NEAR: Final = 24  # characters from a value to the "a day" that belongs to it


class _At(NamedTuple):
    """A place of a folded text where a value may begin, and what is before it."""

    shape: Shape
    start: int
    last: _Read | None  # the last value
    done: int  # where it ended
    word: str  # right before, or a sign
    noun: str  # the same, or what is before "of"

    def number(self, match: re.Match[str], group: str) -> Number:
        return self.shape.atoms[match.start(group)].number

    def written(self, match: re.Match[str], group: str) -> str:
        return self.shape.atoms[match.start(group)].written

    def is_capital(self, at: int) -> bool:
        return self.shape.cased[at : at + 1].isupper()

    @property
    def is_near(self) -> bool:
        """Whether a value is shortly before it, in the same sentence."""
        between = self.shape.marked[self.done : self.start]
        return self.done > 0 and len(between) <= _NEAR and "." not in between and "\n" not in between


def _at(shape: Shape, start: int, last: _Read | None) -> _At:
    done = last.end if last else 0
    head = shape.marked[max(done, start - _LONGEST_BEFORE) : start].rstrip(" \u00a0-#:")
    word = noun = head[len(head.rstrip(ascii_lowercase)) :] or head[-1:]
    if word == "of":
        head = head[:-2].rstrip()
        noun = head[len(head.rstrip(ascii_lowercase)) :]
    return _At(shape, start, last, done, word, noun)


# --- dates and times --------------------------------------------------------------------------------------------------


def _date(year: Number | None, month: Number, day: Number, end: int, *, is_open: bool = False) -> _Read | None:
    """Give a date in American order; what can only be the day is the day. An open one may be in the other order."""
    if month > 12:
        month, day = day, month
    if not (1 <= month <= 12 and 1 <= day <= 31) or month % 1 or day % 1:
        return None
    if year is not None and year < 100:
        year += 2000 if year <= 35 else 1900
    one, other = (
        f"{year or '?'}-{int(of_month):02}-{int(of_day):02}" for of_month, of_day in ((month, day), (day, month))
    )
    return _Read("date", "date", one, end, other=other if is_open and day <= 12 and one != other else "")


def _read_date(at: _At, match: re.Match[str]) -> _Read | None:
    first, second, third = (at.number(match, group) for group in "abc")
    if len(at.written(match, "a")) == 4:
        return _date(first, second, third, match.end())
    return _date(third, first, second, match.end(), is_open=True) if len(at.written(match, "c")) in {2, 4} else None


def _read_short_date(at: _At, match: re.Match[str]) -> _Read | None:
    """Read 04/2020, 2020-04 and, after "on", 8/3 and "24.12."."""
    if not match["sep"]:
        found = re.fullmatch(r"([0-9]{1,2})\.([0-9]{2})", at.written(match, "a"))
        return _date(None, int(found[1]), int(found[2]), match.end("a")) if found else None
    first, second = at.number(match, "a"), at.number(match, "b")
    year, month = (first, second) if match["sep"] == "-" else (second, first)
    if 1900 <= year < 2100 and 1 <= month <= 12 and year % 1 == month % 1 == 0:
        return _Read("date", "month", f"{year}-{month:02}", match.end())
    is_date = at.word in _DATED and match["sep"] != "-"
    return _date(None, first, second, match.end(), is_open=True) if is_date else None


def _read_day_of_month(at: _At, match: re.Match[str]) -> _Read | None:
    month, day = int(_MONTHS[match["month"]]), at.number(match, "day")
    is_named = at.is_capital(match.start("month")) or match["month"] != "may"
    if day % 1 or not (is_named or match["day"][0] == ORDINAL[0]):
        return None
    if day > 31:
        return _Read("date", "month", f"{day}-{month:02}", match.end("day")) if 1900 <= day < 2100 else None
    year = at.number(match, "year") if match["year"] else None
    is_year = year is not None and 1900 <= year < 2100
    return _date(year if is_year else None, month, day, match.end() if is_year or year is None else match.end("day"))


def _read_month(at: _At, match: re.Match[str]) -> _Read | None:
    name = match["month"]
    is_led = at.is_capital(at.start) and at.word in _IN_MONTH
    if (name in _NOT_ALONE or len(name) < 4) and not is_led:
        return None
    return _Read("date", "month", f"?-{int(_MONTHS[name]):02}", match.end("month"))


def _read_weekday(at: _At, match: re.Match[str]) -> _Read | None:
    if match[0] in _NOT_ALONE and not at.is_capital(at.start):
        return None
    return _Read("date", "weekday", _DAYS[match[0]], match.end())


def _read_year(at: _At, match: re.Match[str]) -> _Read | None:
    number, written = at.number(match, "a"), at.written(match, "a")
    if not 1900 <= number < 2100 or number % 1:
        return None
    is_year = written.startswith(("twenty ", "nineteen ")) or (at.word in _IN_YEAR and len(written) == 4)
    return _Read("date", "year", str(number), match.end("a"), str(number)) if is_year else None


def _time(hour: Number, minute: Number, half: str | None, end: int, *, is_open: bool = False) -> _Read | None:
    """Give a time of day; "?" after one of either half of the day."""
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half[0] == "p" or half.endswith("n") or "eve" in half else 0)
    if not 0 <= hour <= 24 or not 0 <= minute <= 59 or hour % 1 or minute % 1:
        return None
    return _Read("time", "clock", f"{int(hour) % 24:02}:{int(minute):02}{'?' * (is_open and not half)}", end)


def _read_clock(at: _At, match: re.Match[str]) -> _Read | None:
    """Read 14:30, 2:30 pm, 14h15."""
    hours, minutes = at.written(match, "a"), at.written(match, "b")
    if not (len(hours) <= 2 and len(minutes) == 2 and (hours + minutes).isdecimal()):
        return None
    is_open = hours[0] != "0" and 1 <= int(hours) <= 11 and not match["hours"]
    return _time(int(hours), int(minutes), match["half"], match.end(), is_open=is_open)


def _read_hour(at: _At, match: re.Match[str]) -> _Read | None:
    """Read 2 pm, 2.30 pm, two thirty pm, 8 o'clock."""
    number, (_, point, minutes) = at.number(match, "a"), at.written(match, "a").partition(".")
    hour, minute = divmod(number, 100) if number >= 100 else (number // 1 if point else number, 0)
    if point and not (len(minutes) == 2 and minutes.isdecimal()):
        return None
    return _time(hour, int(minutes) if point else minute, match["half"], match.end(), is_open=True)


def _read_digits_clock(at: _At, match: re.Match[str]) -> _Read | None:
    """Read 0915, "at 1430", "at 09.40", "1430 hours"; "CK 1915" is none."""
    written = at.written(match, "a")
    found = re.fullmatch(r"([01][0-9]|2[0-4])\.?([0-5][0-9])", written)
    is_clock = match["hours"] or at.word in {"at", "@"} or (written[0] == "0" and "." not in written)
    return _time(int(found[1]), int(found[2]), "", match.end()) if found and is_clock else None


def _read_spoken_clock(at: _At, match: re.Match[str]) -> _Read | None:
    """Read "half past two"; "ten to nine" only after "at", "a quarter to nine" always."""
    minute, hour = at.number(match, "a"), at.number(match, "b")
    is_back = match["way"] in {"to", "before", "of"}
    if (is_back and minute >= 1 and at.word != "at") or not 1 <= hour <= 24:
        return None
    minute = minute * 60 if minute in {Fraction(1, 2), Fraction(1, 4)} else minute
    if not 0 < minute < 60:
        return None
    if is_back:
        hour, minute = hour - 1 or 12, 60 - minute
    return _time(hour, minute, match["half"], match.end(), is_open=hour <= 12)


def _read_noon(_: _At, match: re.Match[str]) -> _Read | None:
    return _time(0 if match["midnight"] else 12, 0, "", match.end())


def _read_ratio(at: _At, match: re.Match[str]) -> _Read | None:
    first, second = at.number(match, "a"), at.number(match, "b")
    part = _PART_OF.get(str(second)) if match["over"].strip() == "/" and first < second else None
    if part and (part == "week" or at.word in _FOR):
        return _measured_in(part, first, match.end())
    if first > second and 50 <= first <= 300 and 20 <= second <= 200:
        pressure = _PRESSURE.match(at.shape.marked, match.end())
        return _Read("ratio", "blood pressure", f"{first}/{second}", pressure.end() if pressure else match.end())
    if match["over"].strip() == "over" and not (first >= 50 or (first <= second and second in {4, 5, 6, 10})):
        return None
    scale = "acuity" if first == 20 else f"of {second}" if first <= second else "ratio"
    return _Read("ratio", scale, f"{first}/{second}", match.end())


def _measured_in(unit: str, number: Number, end: int) -> _Read:
    return _Read("quantity", _UNITS[unit].quantity, str(number * _UNITS[unit].size), end, str(number))


def _read_ratio_range(at: _At, match: re.Match[str]) -> _Read | None:
    """Read "6 to 7 out of 10" and "130-140/70-80"."""
    low, high, second = (at.number(match, group) for group in "abc")
    if match["d"]:
        fourth = at.number(match, "d")
        canonical = f"{low}..{high}/{second}..{fourth}"
        return _Read("ratio", "blood pressure", canonical, match.end()) if low < high and second < fourth else None
    return _Read("ratio", f"of {second}", f"{low}..{high}/{second}", match.end()) if low < high <= second else None


def _read_decades(at: _At, match: re.Match[str]) -> _Read | None:
    """Read "in the 120s" and "130s/80s"."""
    first = at.number(match, "a")
    if match["b"]:
        second = at.number(match, "b")
        return _Read("ratio", "blood pressure", f"{first}..{first + 9}/{second}..{second + 9}", match.end())
    is_one = match["mark"] or at.word in _DECADES or first >= 60
    if not is_one or first % 10 or first < 10 or at.written(match, "a").isalpha():
        return None
    return _Read("number", "bare", f"{first}..{first + 9}", match.end(), f"{first}..{first + 9}")


def _read_dimensions(at: _At, match: re.Match[str]) -> _Read | None:
    if not match["unit"] and _UNIT_AT.match(at.shape.marked, match.end()):  # "2 x 500 mg"
        return None
    unit = _UNITS.get(match["unit"], _Unit("bare", 1))
    sizes = [str(at.number(match, group) * unit.size) for group in "abc" if match[group]]
    return _Read("dimensions", f"{len(sizes)} by {unit.quantity}", " x ".join(sizes), match.end())


def _read_plus(at: _At, match: re.Match[str]) -> _Read | None:
    """Read the 2+ of a finding and the weeks and days of 41+3."""
    number = at.number(match, "a")
    if not match["b"]:
        return _Read("grade", "plus", str(number), match.end()) if number <= 5 else None
    days = number * 7 + at.number(match, "b")
    is_late = 20 <= number <= 43 and at.number(match, "b") <= 6
    return _Read("quantity", "duration", str(days * 86400), match.end(), str(days)) if is_late else None


def _read_grade(at: _At, match: re.Match[str]) -> _Read | None:
    number, letter = at.number(match, "a"), match["letter"] or ""
    if number % 1 or "." in at.written(match, "a") or match["unit"]:
        return None
    end = match.end("letter" if letter else "a")
    return _Read("grade", "grade", f"{number}{letter}", end, "" if letter else str(number))


def _read_roman(at: _At, match: re.Match[str]) -> _Read | None:
    """Read "grade II", "III", the IV of "III-IV", and II/VI; "IV" alone is no number."""
    roman, number, letter = match["a"], _ROMANS.get(match["a"]), match["letter"] or ""
    if match["b"]:
        second = _ROMANS.get(match["b"])
        return _Read("ratio", f"of {second}", f"{number}/{second}", match.end()) if number and second else None
    is_plain = len(roman) > 1 and roman not in {"iv", "xi"} and at.shape.cased[at.start : match.end("a")].isupper()
    is_next = at.done > 0 and at.shape.marked[at.done : at.start] == "-"  # "class III-IV"
    if not number or not (at.word in _GRADES or is_plain or is_next):
        return None
    return _Read("grade", "grade", number + letter, match.end(), "" if letter else number)


def _read_ordinal(at: _At, match: re.Match[str]) -> _Read | None:
    number, is_adverb = str(at.number(match, "a")), at.word in {"at", "patient"}  # "at first"
    return None if is_adverb else _Read("ordinal", "ordinal", number, match.end())


def _read_numbered_day(at: _At, match: re.Match[str]) -> _Read:
    return _Read("date", "numbered day", str(at.number(match, "a")), match.end("a"))


def _read_age(at: _At, match: re.Match[str]) -> _Read | None:
    """Read 49-year-old, 49M and 67F; "98F" is warm."""
    number, sex = at.number(match, "a"), at.shape.cased[match.end("a") : match.end()] if match["sex"] else "M"
    if number % 1 or not 0 <= number <= 130 or not (sex == "M" or (sex == "F" and number < 90)):
        return None
    end = match.end("a" if match["sex"] else 0)
    return _Read("age", "age", str(number * _UNITS[match["unit"] or "year"].size), end, str(number))


def _often(numbers: Iterable[Number], days: Fraction, end: int, every: str = "") -> _Read:
    often = "..".join(str(number / days) for number in numbers)
    return _Read("frequency", "times a day", every + often, end, often, period=str(days))


def _read_times(at: _At, match: re.Match[str]) -> _Read | None:
    """Read "twice daily", "3 times a week", "2x/day", and "three times" alone."""
    once = match["once"]
    numbers = [_ONCE[once]] if once else [at.number(match, group) for group in "ab" if match[group]]
    if match["period"]:
        return _often(numbers, _PERIODS[match["period"]], match.end())
    if once == "once" and (_NOT_ONCE.match(at.shape.marked, match.end()) or at.word == "at"):
        return None
    times = "..".join(map(str, numbers))
    return _Read("count", "times", times, match.end(), times)


def _read_every(at: _At, match: re.Match[str]) -> _Read | None:
    """Read "every 8 hours", "q4-6h", "8-hourly", "every other day"; from a day on, as times a day."""
    lowest = 2 if match["other"] else at.number(match, "a") if match["a"] else 1
    highest = at.number(match, "b") if match["b"] else lowest
    if lowest <= 0 or highest <= 0:
        return None
    is_hourly = match["period"][0] == "h" and lowest != 24
    numbers = [Fraction(1) / number for number in dict.fromkeys((lowest, highest))]
    return _often(numbers, _PERIODS[match["period"]], match.end(), "every " * is_hourly)


def _read_every_night(at: _At, match: re.Match[str]) -> _Read | None:
    """Read "every night", and the "at night" of a dose: "pain at night" says nothing of how often."""
    time = match["night"] if match["night"] in {"morning", "evening"} else "night"
    is_often = match["every"] != "at" or at.is_near
    return _Read("frequency", "times a day", f"1 in the {time}", match.end(), "1", period="1") if is_often else None


def _read_often(at: _At, match: re.Match[str]) -> _Read:
    name = "".join(match["often"].split())
    often = _OFTEN[name]
    if name in _PERIODS and " " not in often:
        return _rate(at, _PERIODS[name], match.end("often"))
    return _Read("frequency", "times a day", often, match.end("often"), often.split()[0], period="1")


def _read_per(at: _At, match: re.Match[str]) -> _Read | None:
    """Read the "a day" of "2 drinks a day" and "4 attacks a week", and "a week" alone as the duration of one."""
    days, is_alone = _PERIODS[match["period"]], match["each"][0] == "a" and match["period"] in _UNITS
    if match["more"]:
        return _Read("quantity", "duration", str(days * 129600), match.end("more"), "3/2")
    if is_alone and (match["ago"] or at.word in _FOR):
        return _Read("quantity", "duration", str(days * 86400), match.end("period"), "1")
    return _rate(at, days, match.end("period")) if at.is_near else None


def _rate(at: _At, days: Fraction, end: int) -> _Read:
    """Give a frequency: once in `days`, or, where events are counted, their number in `days`."""
    last, often = at.last, _often([1], days, end)
    if last is None or not at.is_near or last.kind != "count" or last.scale.removeprefix("of ") in {*_FORMS, "times"}:
        return often
    amount = "..".join(str(Fraction(number) / days) for number in last.canonical.split(".."))
    return often._replace(amount=amount, period=f"{days} of events")


def _read_range(at: _At, match: re.Match[str]) -> _Read | None:
    """Read "2-3 days", "1 to 2+" and "5 ± 2"."""
    low, high = at.number(match, "a"), at.number(match, "b")
    if not match["to"]:
        return _measured(at, match.end("b"), low - high, low + high)
    if _PLUS.match(at.shape.marked, match.end()) and high <= 5:
        return _Read("grade", "plus", f"{low}..{high}", match.end() + 1)
    is_range = low < high and (match["to"].strip() != "and" or at.word == "between")
    return _measured(at, match.end("b"), low, high) if is_range else None


def _read_compound(at: _At, match: re.Match[str]) -> _Read | None:
    """Read "1 h 50 min", "5 ft 4 in", "41 weeks and 3 days": the second unit is the smaller one of the first."""
    name, small = match["unit"], match["small"] or ""
    first, second = _UNITS[name], _UNITS.get(small) or _UNITS["pound" if name == "stone" else "inch"]
    is_sum = first.quantity == second.quantity in {"duration", "length", "mass"} and second.size < first.size
    is_metric = name in {"m", "cm"} or (first.quantity == "mass" and name != "stone" and small[:1] != "o")
    if not is_sum or is_metric:
        return None
    base = at.number(match, "a") * first.size + at.number(match, "b") * second.size
    return _Read("quantity", first.quantity, str(base), match.end(), str(Fraction(base) / second.size))


def _read_x(at: _At, match: re.Match[str]) -> _Read:
    """Read "x3" as three times and "x 3 days" as three days."""
    read = _measured(at, match.end("a"), at.number(match, "a"))
    return read if read.kind == "quantity" else _Read("count", "times", read.canonical, read.end, read.amount)


def _read_number(at: _At, match: re.Match[str]) -> _Read | None:
    """Read a number with its unit, with the noun that it counts, or alone; "one" alone may be a pronoun."""
    is_one = at.written(match, "a") in {"one", "a"}
    if is_one and (at.word in _NOT_ONE or _AFTER_ONE.match(at.shape.marked, match.end())):
        return None
    return _measured(at, match.end("a"), at.number(match, "a"))


def _measured(at: _At, end: int, *numbers: Number) -> _Read:
    marked, amount = at.shape.marked, "..".join([str(number) for number in numbers])
    kind: Kind = "number"
    scale, canonical, bound = "bare", amount, ""
    unit = _UNIT_AT.match(marked, end)
    if unit and _is_unit(at, unit, numbers[-1]):
        kind = "quantity"
        scale, canonical, end = _with_unit(marked, numbers, unit)
    elif (noun := _NOUN.match(marked, end)) and (counted := _counted(noun["noun"], numbers[-1])):
        kind, scale = "count", counted
    if len(numbers) == 1 and (after := _AFTER.match(marked, end)):
        bound, end = (">=" if after["more"] else "<="), after.end()
    return _Read(kind, scale, canonical, end, amount, bound)


def _is_unit(at: _At, unit: re.Match[str], number: Number) -> bool:
    """Tell "38 C" from "grade 2 C", "2 m" from "49 M", "5'" from a quotation."""
    name = unit["unit"]
    if name in {"c", "f"}:
        return number % 1 != 0 or (30 <= number <= 45 if name == "c" else 90 <= number <= 115)
    if name == "stone":  # not of a kidney
        return 4 <= number <= 50
    if name in {"'", "''", '"', "s"}:
        return unit.start("unit") == unit.start() and (name == "s" or number < 100)
    return not (name in {"m", "g", "y", "w", "d", "h"} and at.is_capital(unit.start("unit")))


def _with_unit(marked: str, numbers: Iterable[Number], unit: re.Match[str]) -> tuple[str, str, int]:
    """Give the scale of a unit, the numbers in the smallest one of it, and where it ends."""
    found, per_what, end = _UNITS.get(unit["unit"], _AREA), "", unit.end()
    size = found.size
    while (per := _PER_AT.match(marked, end)) and per["per"] not in _LONG_PERIODS:
        below = _UNITS.get(per["per"], _AREA)
        size, per_what, end = size / Fraction(below.size), f"{per_what} per {below.quantity}", per.end()
    if found.quantity == "Fahrenheit":
        return "temperature", "..".join([str((number - 32) * Fraction(5, 9)) for number in numbers]), end
    quantity = "temperature" if found.quantity == "Celsius" else found.quantity
    return quantity + per_what, "..".join([str(number * size) for number in numbers]), end


def _counted(noun: str, number: Number) -> str:
    """Give the scale of what is counted: a plural, or the singular of a form of medicine; else nothing."""
    singular = noun.removesuffix("s")
    is_plural = noun != singular and len(singular) > 2 and not noun.endswith(("ss", "us", "is"))
    return f"of {singular}" if singular in _FORMS or (is_plural and number > 1) else ""


# --- the table --------------------------------------------------------------------------------------------------------

_ONCE: Final = {"once": 1, "twice": 2, "thrice": 3}
_PLUS: Final = re.compile(r"\+(?!\w)")
_GRADES: Final = word_set(_GRADED)
_DATED: Final = word_set("on since dated until")
_IN_MONTH: Final = word_set("in of since until by last next from")
_IN_YEAR: Final = word_set("in since until by from of year")
_PART_OF: Final = {"7": "day", "12": "month", "52": "week"}
"""British: "3/52" is three weeks, always; "6/12" is six months where a duration is due."""
_FOR: Final = word_set("for within over after least most about nearly almost in")
_DECADES: Final = word_set("the his is her their my low mid high upper")
_UNIT_AT: Final = re.compile(_UNIT)
_PER_AT: Final = re.compile(rf"(?:\s?/\s?|\sper\s|\sa\s(?=min))(?P<per>{_UNIT_NAMES})(?![a-z])")
_NOUN: Final = re.compile(
    r"(?:(?:\s(?:daily|nightly|weekly|further|more|additional|extra|separate|of))?\s(?:(?:an?|the)\s)?|-)"
    r"(?P<noun>[a-z]{3,20})\b"
)
_LONG_PERIODS: Final = frozenset(name for name, days in _PERIODS.items() if days >= 1)

_Reader = Callable[[_At, re.Match[str]], _Read | None]


class _Row(NamedTuple):
    pattern: re.Pattern[str]
    read: _Reader
    led: frozenset[str]  # words one of which must be before it, if any
    next: frozenset[str]  # signs and words one of which must follow the first number, if any


def _row(pattern: str, read: _Reader, next_: str = "", led: str = "") -> _Row:
    return _Row(re.compile(pattern), read, word_set(led), word_set(next_))


_N, _O = NUMBER, ORDINAL
_A, _B, _C = (rf"(?P<{name}>{NUMBER})" for name in "abc")
_HALF: Final = r"(?:\s?(?P<half>[ap]\.?\s?m\b|(?<!\w)in\sthe\s(?:morning|afternoon|evening)\b)\.?)"
_AGE_UNIT: Final = r"(?P<unit>years?|yrs?|y|months?|mo|weeks?|wk|days?)"
_TO: Final = r"(?:\s?[-\u2212]\s?|\s(?:to|or)\s)"
_JOINT: Final = rf"(?:{_TO}{_B})?"
_LENGTHS: Final = _any(name for name, unit in _UNITS.items() if unit.quantity == "length" and name.isalpha())
_BY: Final = rf"(?:\s?(?:{_LENGTHS})\b)?\s?(?:x|by)\s?"
_OLD: Final = r"(?:[\s-]{1,2}olds?\b|\sof\sage\b|/o\b|\.\s?o\b\.?|o\b)"
_YEAR: Final = rf"(?:\s?[,\s-]\s?(?P<year>{_N}))?"
_RANGED: Final = "- \u2212 to or"
_AGED: Final = "- y yo yr yrs year years mo month months wk week weeks day days"
_SIZED: Final = "x by " + " ".join(
    name for name, unit in _UNITS.items() if unit.quantity == "length" and name.isalpha()
)
_SUMMED_UNITS: Final = (
    " ".join(name.split()[0] for name, unit in _UNITS.items() if unit.quantity in {"duration", "length", "mass"}) + " '"
)
_OF_NUMBERS: Final = (
    _row(rf"{_A}(?P<sep>\s?[/.-]\s?){_B}(?P=sep){_C}", _read_date, "/ . -"),
    _row(rf"(?P<day>{_N})(?:\s|-)(?:of\s)?{_MONTH}{_YEAR}", _read_day_of_month, f"{' '.join(_MONTHS)} of -"),
    _row(rf"{_A}(?:\s?:\s?|h){_B}(?!\s?min)(?::{_N})?(?P<hours>\s?(?:hrs?|hours)\b)?{_HALF}?", _read_clock, ": h"),
    _row(rf"{_A}(?:{_HALF}|\so'?\s?clock\b)", _read_hour, "am pm a p in o"),
    _row(r"(?P<a>\ue000\ue00f{3,4}+)(?P<hours>\s?(?:h|hrs?|hours)\b)?", _read_digits_clock),
    _row(rf"{_A}\s(?P<way>past|after|to|before|of)\s{_B}{_HALF}?", _read_spoken_clock, "past after to before of"),
    _row(rf"{_A}\s?(?P<sep>/|(?<!\s)-)(?(sep)\s?){_B}(?!\s?[/-])", _read_short_date, "/ -"),
    _row(rf"{_A}(?P<sep>)\.", _read_short_date, ".", "on since until"),
    _row(rf"{_A}(?P<over>\s?/\s?|[\s-]over[\s-]|\sout\sof\s(?:a\s)?|\s?:\s?){_B}", _read_ratio, "/ over - out :"),
    _row(rf"{_A}{_TO}{_B}(?:\s?/\s?|\sover\s|\sout\sof\s){_C}(?:{_TO}(?P<d>{_N}))?", _read_ratio_range, _RANGED),
    _row(rf"{_A}{_BY}{_B}(?:{_BY}{_C})?(?:\s?(?P<unit>{_LENGTHS})\b)?", _read_dimensions, _SIZED),
    _row(
        rf"(?P<once>){_A}{_JOINT}(?:\s?x(?!\s?{_N})|\stimes?)(?![a-z])(?:\s?(?:{_EACH})?{_PERIOD})?",
        _read_times,
        f"x time times {_RANGED}",
    ),
    _row(rf"{_A}{_JOINT}(?:\s|-)(?P<period>hourly)\b(?P<other>)", _read_every, f"hourly {_RANGED}"),
    _row(rf"{_A}\s?-?\s?{_AGE_UNIT}{_OLD}(?P<sex>)", _read_age, _AGED),
    _row(rf"{_A}(?:\s?{_AGE_UNIT}\b)?(?P<sex>)", _read_age, "", "aged age"),
    _row(rf"{_A}(?P<unit>)(?P<sex>[mf])\b", _read_age, "m f"),
    _row(rf"{_A}(?P<to>\s?[-\u2212]\s?|\s(?:to|or|and)\s){_B}(?!{_HALF})", _read_range, f"and {_RANGED}"),
    _row(rf"{_A}(?P<to>)\s?(?:±|\+\s?/\s?-)\s?{_B}", _read_range, "± +"),
    _row(rf"{_A}'?s(?:\s?/\s?|\sover\s){_B}'?s\b", _read_decades, "s '"),
    _row(rf"{_A}(?P<mark>')?s\b(?P<b>)", _read_decades, "s '"),
    _row(rf"{_A}\s?\+(?:{_B}|(?!\s?(?:\ue000|[a-z]{{3,}}s\b|h)))", _read_plus, "+"),
    _row(rf"{_A}(?:\s?(?P<letter>[a-d])\b)?(?P<unit>\s?%)?", _read_grade, "", _GRADED),
    _row(_A, _read_numbered_day, "", "day pod hd"),
    _row(
        rf"{_A}(?=[^\ue000]{{1,16}}\ue000){_UNIT}(?:\s?,?\s?(?:and\s)?){_B}"
        rf"(?:\s?-?(?P<small>{_UNIT_NAMES}|in)(?![a-z]))?",
        _read_compound,
        _SUMMED_UNITS,
    ),
    _row(r"(?P<a>\ue000\ue00f{3,}+)", _read_year),
    _row(_A, _read_number),
)
_OF_ORDINALS: Final = (
    _row(rf"(?P<day>{_O})(?:\s|-)(?:day\s)?(?:of\s)?{_MONTH}{_YEAR}", _read_day_of_month),
    _row(rf"(?P<a>{_O})(?=\s(?:[a-z]+\s)?day\b)", _read_numbered_day),
    _row(rf"(?P<a>{_O})", _read_numbered_day, "", "day pod hd"),
    _row(rf"(?P<a>{_O})", _read_ordinal),
)
_OF_MONTHS: Final = (
    _row(rf"{_MONTH}\s(?:the\s|of\s)?(?P<day>{_N}|{_O})(?:(?:\s?,)?\s(?:of\s)?(?P<year>{_N}))?", _read_day_of_month),
    _row(_MONTH, _read_month),
)
_EVERY: Final = (
    _row(r"(?P<every>every|each|at)\s(?P<night>night|bedtime|morning|evening)\b", _read_every_night),
    _row(rf"(?:every|each|q)\s?(?:(?P<other>other\b|{_O})\s|{_A}{_JOINT}[\s-]?)?{_PERIOD}", _read_every),
)
_ANY_OFTEN: Final = _any(_OFTEN).replace(r"\.", r"\.\s?")
_OFTEN_ROW: Final = _row(rf"(?P<often>{_ANY_OFTEN})(?![a-z])(?:(?<=\.[a-z])\.)?", _read_often)
_PER_ROW: Final = _row(
    rf"(?P<each>an?\s|per\s|each\s|/\s?){_PERIOD}(?P<more>\sand\sa\shalf)?(?P<ago>\s(?:ago|later|before|after))?",
    _read_per,
)
_ROMAN_ROWS: Final = (_row(r"(?P<a>[ivx]+)(?:\s?/\s?(?P<b>[ivx]+)|(?P<letter>[a-d]))?\b", _read_roman),)
_ROWS: Final[dict[str, tuple[_Row, ...]]] = {
    name: found
    for names, found in (
        (ORDINAL[0], _OF_ORDINALS),
        (_MONTHS, _OF_MONTHS),
        (_DAYS, (_row("[a-z]+", _read_weekday),)),
        ([roman + letter for roman in _ROMANS for letter in ("", *"abcd")], _ROMAN_ROWS),
        (["noon", "midday", "midnight"], (_row("(?P<midnight>midn)?[a-z]+", _read_noon),)),
        (_ONCE, (_row(rf"(?P<once>[a-z]+)(?:[\s-](?:{_EACH})?{_PERIOD})?", _read_times),)),
        ([often.split(".")[0] for often in _OFTEN], (_OFTEN_ROW,)),
        (["a", "an", "per", "/"], (_PER_ROW,)),
        (["every", "each"], (*_EVERY, _PER_ROW)),
        ("q", (*_EVERY, _OFTEN_ROW)),
        (["at"], _EVERY[:1]),
        ("x", (_row(rf"x\s?{_A}", _read_x),)),
    )
    for name in names
}
_BY_NEXT: Final = {
    following: tuple(row for row in _OF_NUMBERS if not row.next or following in row.next)
    for following in frozenset(("",)).union(*(row.next for row in _OF_NUMBERS))
}
_NEXT: Final = re.compile(rf"{NUMBER}\s?([a-z]+|[^a-z])?")
_CANDIDATE: Final = re.compile(f"[a-z]+|[{NUMBER[0]}{ORDINAL[0]}/]")
_WITH_BOUND: Final = frozenset(("number", "quantity", "count", "grade", "age", "frequency", "ratio"))
_NUMERIC: Final = frozenset(("number", "quantity", "count", "grade", "age"))
_SLACK: Final = Fraction(6, 5)


def values(text: str) -> list[Value]:
    """Give the numbers of a text with what they measure, in order; none overlaps another."""
    shape, last, done = shape_of(text), None, 0
    found: list[Value] = []
    for candidate in _CANDIDATE.finditer(shape.marked):
        start, key = candidate.start(), candidate[0]
        if start < done or not (key == NUMBER[0] or key in _ROWS):
            continue
        following = _NEXT.match(shape.marked, start)
        rows = _BY_NEXT.get(following[1] or "", _BY_NEXT[""]) if following else _ROWS[key]
        if read := _read(shape, start, last, rows):
            at, last = read
            found.append(_value(at, last))
            done = last.end
    return found


def _read(shape: Shape, start: int, last: _Read | None, rows: tuple[_Row, ...]) -> tuple[_At, _Read] | None:
    at = None
    for pattern, reader, led, _ in rows:
        if led:
            at = at or _at(shape, start, last)
        if (not at or not led or at.noun in led) and (match := pattern.match(shape.marked, start)):
            at = at or _at(shape, start, last)
            if read := reader(at, match):
                return at, read
    return None


def _value(at: _At, read: _Read) -> Value:
    """Place a value in the original text, with the words before it that say on which side of it something is."""
    start, bound, places = at.start, read.bound, at.shape.places
    if at.word in _BEFORE_ENDS and read.kind in _WITH_BOUND:
        before = _BEFORE.search(at.shape.marked, max(at.done, start - _LONGEST_BEFORE), start)
        if before:
            bound, start = _BOUNDS.get(before["bound"] or "", bound), start - len(before[0])
    end = places[read.end - 1] + 1
    return Value(places[start], end, read.kind, read.scale, read.canonical, read.amount, bound, read.period, read.other)


def same(a: Value, b: Value) -> bool:
    """Tell whether two values are one: in any style and unit, about or not, and a bare number with any unit."""
    if a.bound != b.bound:
        return False
    if a.kind == b.kind in {"date", "time"}:
        orders = [] if a.other and b.other else [each for each in (a.other, b.other) if each]
        return a.scale == b.scale and (
            _fits(a.canonical, b.canonical)
            or any(_fits(each, b.canonical if each == a.other else a.canonical) for each in orders)
        )
    is_scale = a.scale == b.scale or {a.scale, b.scale} == {"age", "duration"}
    return (is_scale and a.canonical == b.canonical) or (a.amount == b.amount != "" and _is_open(a, b))


def rival(a: Value, b: Value) -> bool:
    """Tell whether two values answer the same question otherwise, so that not both can be true.

    What says less ("<5" beside 3, ">90" beside "at least 90", a range around the other value, "TID" beside "every 8
    hours") is no rival; nor is what may be the same in another unit, nor about the same number in another period ("4
    attacks a month", "once a week").
    """
    if same(a, b) or not _is_one_question(a, b) or is_converted(a, b):
        return False
    is_one_number = a.amount == b.amount if a.kind == b.kind == "frequency" else a.canonical == b.canonical
    if is_one_number and ("" in {a.bound, b.bound} or a.bound[0] == b.bound[0]):
        return False
    left, right = _reach(a), _reach(b)
    if left is None or right is None:
        return True
    slack = _SLACK if a.period != b.period else 1
    is_one_wide = slack > 1 or (left[0] < left[1]) != (right[0] < right[1])
    return not (is_one_wide and left[0] <= right[1] * slack and right[0] <= left[1] * slack)


def _is_open(a: Value, b: Value) -> bool:
    """Tell whether one of two values leaves open what it measures or counts."""
    scales = {a.scale, b.scale}
    if "bare" in scales:
        return all(value.kind in _NUMERIC or value.scale == "year" for value in (a, b))
    return all(scale.startswith("of ") for scale in scales) or scales == {"degree", "temperature"}


def _is_one_question(a: Value, b: Value) -> bool:
    if a.scale == b.scale:
        return a.kind == b.kind or a.kind in _NUMERIC
    scales = {a.scale, b.scale}
    if a.kind not in _NUMERIC or b.kind not in _NUMERIC:
        return False
    is_part = any(f"{a.scale} per" in scale or f"{b.scale} per" in scale for scale in scales)
    is_other_unit = a.kind == b.kind == "quantity" and a.amount == b.amount and not is_part
    return is_other_unit or "bare" in scales


def _fits(canonical: str, other: str) -> bool:
    """Tell whether two dates or times are one where neither leaves its year or its half of the day open."""
    if canonical.endswith("?") or other.endswith("?"):
        hours = {int(time[:2]) % 12 for time in (canonical, other)}
        return len(hours) == 1 and canonical[2:5] == other[2:5]
    left, right = canonical.partition("-"), other.partition("-")
    return canonical == other or (left[2] == right[2] != "" and "?" in {left[0], right[0]})


def _reach(value: Value) -> tuple[Fraction, Fraction] | None:
    """Give the lowest and the highest number that a value allows."""
    if value.kind not in _NUMERIC | {"frequency"}:
        return None
    written = value.amount if value.scale == "bare" or value.kind == "frequency" else value.canonical
    return _ends(written, value.bound[:1])


@lru_cache(maxsize=4096)
def _ends(written: str, bound: str) -> tuple[Fraction, Fraction] | None:
    if not written.replace("..", "").replace("/", "").replace("-", "").isdecimal():  # "3b"
        return None
    ends = [Fraction(end) for end in written.split("..")]
    far = Fraction(10) ** 100
    return (-far if bound == "<" else min(ends)), (far if bound == ">" else max(ends))
