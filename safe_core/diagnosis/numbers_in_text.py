"""Numbers in a text with what they measure: one lexer, in which a number in each of its styles is one value.

`number_atoms` finds the single numbers; here each is read with what stands around it, by the first row of a table whose
pattern fits: dates, times, ratios, frequencies, ages, ranges, grades, quantities.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from safe_core.diagnosis.lexicon import rows
from safe_core.diagnosis.number_atoms import NUMBER, ORDINAL, Shape, shape_of

Kind = Literal[
    "number", "quantity", "count", "grade", "ordinal", "ratio", "dimensions", "time", "date", "frequency", "age"
]


@dataclass(frozen=True, slots=True)
class Value:
    """A number with what it measures, and its place in the original text, in code points."""

    start: int
    end: int
    kind: Kind
    scale: str  # what is measured; values of one scale answer the same question
    canonical: str  # the same for all styles and units of a scale: "1/2", "2..3", "?-08-03"
    amount: str = ""  # the number as it was written, without its unit
    bound: str = ""  # "<", "<=", ">" or ">="
    is_about: bool = False


class _Read(NamedTuple):
    """What a row reads: as in `Value`, and where the value ends in the folded text."""

    kind: Kind
    scale: str
    canonical: str
    end: int
    amount: str = ""
    bound: str = ""


class _Unit(NamedTuple):
    quantity: str
    size: Fraction  # of the smallest unit of its quantity


_UNITS: Final = {
    name: _Unit(quantity, Fraction(size)) for _, (quantity, size, names) in rows("units") for name in names.split(", ")
} | {f"m{NUMBER}": _Unit("area", Fraction(1))}  # "m2", whose number has become a mark
_NAMES: Final = "|".join(map(re.escape, sorted(_UNITS, key=len, reverse=True)))
_UNIT: Final = rf"(?:\s{{0,2}}|-|\sof\san?\s)(?P<unit>{_NAMES})(?![a-z])"
_PER: Final = rf"(?:\s?/\s?|\sper\s|\sa\s(?=min))(?P<per>{_NAMES})(?![a-z])"
_PERIOD_NAMES: Final = (
    "1/24 hour hourly hr h|1 day daily night nightly d morning evening bedtime|7 week weekly wk|"
    "14 fortnight fortnightly|30.4375 month monthly|365.25 year yearly annually"
)
_PERIODS: Final = {name: Fraction(days) for days, *names in map(str.split, _PERIOD_NAMES.split("|")) for name in names}
_PERIOD: Final = rf"(?P<period>(?:{'|'.join(sorted(_PERIODS, key=len, reverse=True))})(?:(?<=[yrkh])s)?)\b"
_EACH: Final = r"(?:a|an|per|each|every)\s|/\s?"
# Latin and English for how often, in times a day; "at night" is another daily dose than "in the morning".
_OFTEN_NAMES: Final = (
    "2=bid b.i.d bd|3=tid t.i.d tds|4=qid q.i.d qds|1=qd q.d daily everyday|1/2=qod q.o.d|2/7=biw|3/7=tiw|24=hourly|"
    "1 in the night=qhs q.h.s nightly|1 in the evening=qpm|1 in the morning=qam|1/7=weekly|1/14=fortnightly|"
    "16/487=monthly|4/1461=yearly annually"
)
_OFTEN: Final = {
    name: often for row in _OFTEN_NAMES.split("|") for often, names in [row.split("=")] for name in names.split()
}
_MONTH_NAMES: Final = (
    "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sept sep|october oct|"
    "november nov|december dec"
)
_MONTHS: Final = {name: at for at, names in enumerate(_MONTH_NAMES.split("|"), 1) for name in names.split()}
_MONTH: Final = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b\.?"
_DAY_NAMES: Final = "monday mon|tuesday tue tues|wednesday wed|thursday thu thurs|friday fri|saturday sat|sunday sun"
_DAYS: Final = {name: day for day, names in enumerate(_DAY_NAMES.split("|"), 1) for name in names.split()}
_NOT_ALONE: Final = frozenset(("mon", "wed", "sat", "sun", "fri", "tue", "thu", "may", "march", "mar"))  # also words
_ROMAN_NAMES: Final = "i ii iii iv v vi vii viii ix x xi xii"
_ROMANS: Final = {name: str(number) for number, name in enumerate(_ROMAN_NAMES.split(), 1)}
_GRADED: Final = (
    r"(?:type|types|grade|grades|stage|stages|class|category|level|degree|zone|phase|group|tier|score|scale|nyha|asa|"
    r"ckd|gold|gcs|apgar|garden|gustilo|weber|killip|fitzpatrick|mallampati|ecog|birads|bi-rads|bishop)"
)
_BOUNDS: Final = {
    name: bound
    for bound, names in (
        ("<=", "<=|=<|up to|at most|no more than|not more than|less than or equal to|within|a maximum of"),
        (">=", ">=|=>|at least|no less than|not less than|no fewer than|greater than or equal to|a minimum of"),
        ("<", "<|below|under|less than|fewer than|lower than|smaller than"),
        (">", ">|above|over|exceeding|more than|greater than|higher than|longer than|larger than"),
    )
    for name in names.split("|")
}
_ABOUT: Final = r"(?P<about>~|\b(?:about|around|approximately|approx\.?|roughly|circa|ca\.|nearly|almost))"
_BEFORE: Final = re.compile(
    rf"(?:{_ABOUT}\s?)?(?:(?P<bound>(?<![a-z])(?:{'|'.join(sorted(_BOUNDS, key=len, reverse=True))}))\s?)?\Z"
)
_AFTER: Final = re.compile(
    r"(?P<more>\s?\+(?=\s?[a-z])|\+|\s(?:or|and)\s(?:more|greater|higher|above|over|longer|older)\b)"
    r"|\s(?:or|and)\s(?:less|fewer|lower|below|under|younger)\b"
)
_FORM_NAMES: Final = "tablet tab capsule cap pill dose drop puff spray patch bag stool drink pack"
_FORMS: Final = frozenset(_FORM_NAMES.split())
_BETWEEN_NOUN: Final = r"(?:\s(?:daily|nightly|weekly|further|more|additional|extra|separate|of))?"
_NOT_ONCE: Final = re.compile(r"\s(?:the|he|she|they|it|we|you|i|an?|your|his|her|my|this|that|all|there|again)\b")
_LONE_ONE: Final = re.compile(r"\b(?:this|that|the|no|which|each|every|any|another|other|only|good|bad|new|same)\s\Z")
_AFTER_ONE: Final = re.compile(
    r"\s(?:of|another|should|can|could|would|will|is|has|was|who|that|which|or)\b|'|\s?[.,;?]"
)


class _Context(NamedTuple):
    """A folded text while it is read, from left to right."""

    shape: Shape
    done: int = 0  # where the last value ended

    def number(self, match: re.Match[str], group: str) -> Fraction:
        return self.shape.atoms[match.start(group)].number

    def written(self, match: re.Match[str], group: str) -> str:
        return self.shape.atoms[match.start(group)].written

    def before(self, at: int, length: int = 34) -> str:
        return self.shape.marked[max(self.done, at - length) : at]

    def follows(self, words: str, match: re.Match[str]) -> bool:
        """Tell whether one of some words ("in|since") is right before a match."""
        return re.search(rf"(?<![a-z])(?:{words})\s?\Z", self.before(match.start(), 24)) is not None

    def is_capital(self, at: int) -> bool:
        return self.shape.cased[at : at + 1].isupper()


def _date(year: int | None, month: int, day: int, end: int) -> _Read | None:
    """Give a date in American order; what can only be the day is the day."""
    if month > 12:
        month, day = day, month
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    if year is not None and year < 100:
        year += 2000 if year <= 35 else 1900
    return _Read("date", "date", f"{year or '?'}-{month:02}-{day:02}", end)


def _read_date(context: _Context, match: re.Match[str]) -> _Read | None:
    first, second, third = (int(context.number(match, group)) for group in "abc")
    if any("." in context.written(match, group) for group in "abc"):
        return None
    if len(context.written(match, "a")) == 4:
        return _date(first, second, third, match.end())
    return _date(third, first, second, match.end()) if len(context.written(match, "c")) in {2, 4} else None


def _read_short_date(context: _Context, match: re.Match[str]) -> _Read | None:
    first, second = int(context.number(match, "a")), int(context.number(match, "b"))
    year, month = (first, second) if match["dash"] else (second, first)
    if 1900 <= year < 2100 and 1 <= month <= 12:
        return _Read("date", "month", f"{year}-{month:02}", match.end())
    is_dated = not match["dash"] and context.follows("on|since|dated|until", match)
    return _date(None, first, second, match.end()) if is_dated else None


def _read_day_of_month(context: _Context, match: re.Match[str]) -> _Read | None:
    month, day = _MONTHS[match["month"]], context.number(match, "day")
    is_named = context.is_capital(match.start("month")) or match["month"] != "may"
    if day.denominator != 1 or not (is_named or match["day"][0] == ORDINAL[0]):
        return None
    if day > 31:
        return _Read("date", "month", f"{day}-{month:02}", match.end("day")) if 1900 <= day < 2100 else None
    year = int(context.number(match, "year")) if match["year"] else None
    if year is not None and not 1900 <= year < 2100:
        return _date(None, month, int(day), match.end("day"))
    return _date(year, month, int(day), match.end())


def _read_month(context: _Context, match: re.Match[str]) -> _Read | None:
    name = match["month"]
    is_named = context.is_capital(match.start())
    follows = context.follows("in|of|since|until|by|last|next|from", match)
    if (name in _NOT_ALONE or len(name) < 4) and not (is_named and follows):
        return None
    return _Read("date", "month", f"?-{_MONTHS[name]:02}", match.end("month"))


def _read_weekday(context: _Context, match: re.Match[str]) -> _Read | None:
    if match[0] in _NOT_ALONE and not context.is_capital(match.start()):
        return None
    return _Read("date", "weekday", str(_DAYS[match[0]]), match.end())


def _read_year(context: _Context, match: re.Match[str]) -> _Read | None:
    number, written = context.number(match, "a"), context.written(match, "a")
    is_spoken = written.startswith(("twenty ", "nineteen "))
    follows = context.follows("in|since|until|by|from|of|year", match)
    if not (number.denominator == 1 and 1900 <= number < 2100 and (is_spoken or (follows and len(written) == 4))):
        return None
    return _Read("date", "year", str(number), match.end("a"), str(number))


def _read_numbered_day(context: _Context, match: re.Match[str]) -> _Read | None:
    is_after = re.search(r"\b(?:day|pod|hd)(?:\s|\s?#|-)?\Z", context.before(match.start(), 6))
    if not is_after and not (match["a"][0] == ORDINAL[0] and match["day"]):
        return None
    return _Read("date", "numbered day", str(context.number(match, "a")), match.end("a"))


def _time(hour: Fraction | int, minute: Fraction | int, half: str, end: int, *, is_open: bool = False) -> _Read | None:
    """Give a time of day; "?" after one of either half of the day."""
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half[0] == "p" or half.endswith("n") or "eve" in half else 0)
    if hour > 24 or minute > 59 or hour % 1 or minute % 1 or minute < 0 or hour < 0:
        return None
    return _Read("time", "clock", f"{int(hour) % 24:02}:{int(minute):02}{'?' * (is_open and not half)}", end)


def _read_clock(context: _Context, match: re.Match[str]) -> _Read | None:
    """Read 14:30, 2:30 pm, 14h15."""
    hours, minutes = context.written(match, "a"), context.written(match, "b")
    if not (len(hours) <= 2 and len(minutes) == 2 and (hours + minutes).isdecimal()):
        return None
    is_open = hours[0] != "0" and 1 <= int(hours) <= 11 and not match["hours"]
    return _time(int(hours), int(minutes), match["half"] or "", match.end(), is_open=is_open)


def _read_hour(context: _Context, match: re.Match[str]) -> _Read | None:
    """Read 2 pm, 2.30 pm, two thirty pm, 8 o'clock."""
    number, written = context.number(match, "a"), context.written(match, "a")
    half = match["half"] or ""
    if "." in written:
        minutes = written.partition(".")[2]
        return _time(number // 1, int(minutes), half, match.end()) if re.fullmatch("[0-9]{2}", minutes) else None
    hour, minute = divmod(number, 100) if number >= 100 else (number, 0)
    return _time(hour, minute, half, match.end(), is_open=True)


def _read_digits_clock(context: _Context, match: re.Match[str]) -> _Read | None:
    """Read 0915, "at 1430", "at 09.40", "1430 hours"; "CK 1915" is none."""
    written = context.written(match, "a")
    found = re.fullmatch(r"([01][0-9]|2[0-4])\.?([0-5][0-9])", written)
    if not found:
        return None
    is_after = context.follows("at|@", match)
    is_clock = match["hours"] or is_after or (written[0] == "0" and "." not in written)
    return _time(int(found[1]), int(found[2]), "", match.end()) if is_clock else None


def _read_spoken_clock(context: _Context, match: re.Match[str]) -> _Read | None:
    """Read "half past two"; "ten to nine" only after "at", "a quarter to nine" always."""
    part, hour = context.number(match, "a"), context.number(match, "b")
    minute = part * 60 if part in {Fraction(1, 2), Fraction(1, 4)} else part
    is_back = match["way"] in {"to", "before", "of"}
    if is_back and part >= 1 and not context.follows("at", match):
        return None
    if not 1 <= hour <= 24 or not 0 < minute < 60:
        return None
    if is_back:
        hour, minute = hour - 1 or Fraction(12), 60 - minute
    return _time(hour, minute, match["half"] or "", match.end(), is_open=hour <= 12)


def _read_ratio(context: _Context, match: re.Match[str]) -> _Read | None:
    first, second = context.number(match, "a"), context.number(match, "b")
    if first > second and 50 <= first <= 300 and 20 <= second <= 200:
        pressure = re.compile(r"\s?mm\s?(?:of\s)?hg\b").match(context.shape.marked, match.end())
        return _Read("ratio", "blood pressure", f"{first}/{second}", pressure.end() if pressure else match.end())
    if match["over"].strip() == "over" and not (first >= 50 or (first <= second and second in {4, 5, 6, 10})):
        return None
    scale = "acuity" if first == 20 else f"of {second}" if first <= second else "ratio"
    return _Read("ratio", scale, f"{first}/{second}", match.end())


def _read_ratio_range(context: _Context, match: re.Match[str]) -> _Read | None:
    """Read "6 to 7 out of 10" and "130-140/70-80"."""
    low, high, second = (context.number(match, group) for group in "abc")
    if match["d"]:
        is_pressure = low < high and second < context.number(match, "d")
        canonical = f"{low}..{high}/{second}..{context.number(match, 'd')}"
        return _Read("ratio", "blood pressure", canonical, match.end()) if is_pressure else None
    return _Read("ratio", f"of {second}", f"{low}..{high}/{second}", match.end()) if low < high <= second else None


def _read_ratio_of_decades(context: _Context, match: re.Match[str]) -> _Read:
    first, second = context.number(match, "a"), context.number(match, "b")
    return _Read("ratio", "blood pressure", f"{first}..{first + 9}/{second}..{second + 9}", match.end())


def _read_roman_ratio(_: _Context, match: re.Match[str]) -> _Read | None:
    first, second = _ROMANS.get(match["a"]), _ROMANS.get(match["b"])
    return _Read("ratio", f"of {second}", f"{first}/{second}", match.end()) if first and second else None


def _read_dimensions(context: _Context, match: re.Match[str]) -> _Read | None:
    if not match["unit"] and _UNIT_AT.match(context.shape.marked, match.end()):  # "2 x 500 mg"
        return None
    unit = _UNITS[match["unit"]] if match["unit"] in _UNITS else _Unit("bare", Fraction(1))
    sizes = [str(context.number(match, group) * unit.size) for group in "abc" if match[group]]
    return _Read("dimensions", f"{len(sizes)} by {unit.quantity}", " x ".join(sizes), match.end())


def _period(name: str) -> Fraction:
    return _PERIODS.get(name) or _PERIODS[name.removesuffix("s")]


def _read_times(context: _Context, match: re.Match[str]) -> _Read | None:
    """Read "twice daily", "3 times a week", "2x/day", and "three times" alone."""
    numbers = (
        [context.number(match, group) for group in "ab" if match[group]]
        if not match["once"]
        else [Fraction({"once": 1, "twice": 2, "thrice": 3}[match["once"]])]
    )
    if match["period"]:
        often = "..".join(str(number / _period(match["period"])) for number in numbers)
        return _Read("frequency", "times a day", often, match.end(), often)
    if match["once"] == "once" and (_NOT_ONCE.match(context.shape.marked, match.end()) or context.follows("at", match)):
        return None
    times = "..".join(map(str, numbers))
    return _Read("count", "times", times, match.end(), times)


def _read_every(context: _Context, match: re.Match[str]) -> _Read | None:
    """Read "every 8 hours", "q4-6h", "8-hourly", "every other day"; from a day on, as times a day."""
    lowest = Fraction(2) if match["other"] else context.number(match, "a") if match["a"] else Fraction(1)
    highest = context.number(match, "b") if match["b"] else lowest
    days = _period(match["period"])
    if not lowest > 0 or not highest > 0:
        return None
    often = [str(1 / (number * days)) for number in dict.fromkeys((lowest, highest))]
    is_hourly = match["period"][0] == "h" and lowest != 24
    canonical = "..".join(often)
    return _Read("frequency", "times a day", "every " * is_hourly + canonical, match.end(), canonical)


def _read_every_night(_: _Context, match: re.Match[str]) -> _Read:
    time = match["night"] if match["night"] in {"morning", "evening"} else "night"
    return _Read("frequency", "times a day", f"1 in the {time}", match.end(), "1")


def _read_x(context: _Context, match: re.Match[str]) -> _Read:
    """Read "x3" as three times and "x 3 days" as three days."""
    read = _measured(context, match, (context.number(match, "a"),))
    return read if read.kind == "quantity" else _Read("count", "times", read.canonical, read.end, read.amount)


def _read_noon(_: _Context, match: re.Match[str]) -> _Read:
    return _Read("time", "clock", "00:00" if match[0] == "midnight" else "12:00", match.end())


def _read_often(_: _Context, match: re.Match[str]) -> _Read | None:
    often = _OFTEN["".join(match["often"].split())]
    return _Read("frequency", "times a day", often, match.end("often"), often.split()[0])


def _read_per(context: _Context, match: re.Match[str]) -> _Read | None:
    """Read the "a day" of "2 drinks a day", and "a week" alone as the duration of one."""
    days, is_long = _period(match["period"]), match["period"] in _UNITS
    if match["more"]:
        return _Read("quantity", "duration", str(days * 129600), match.end("more"), "3/2")
    duration = str(days * 86400)
    is_one = match["ago"] or context.follows("for|within|over|after|least|most|about|nearly|almost|in", match)
    if match["each"][0] == "a" and is_long and is_one:
        return _Read("quantity", "duration", duration, match.end("period"), "1")
    is_near = context.done and match.start() - context.done <= 24
    if not is_near or re.search(r"[.\n]", context.shape.marked[context.done : match.start()]):
        return None
    return _Read("frequency", "times a day", str(1 / days), match.end("period"), str(1 / days))


def _read_age(context: _Context, match: re.Match[str]) -> _Read | None:
    number = context.number(match, "a")
    unit = _UNITS[match["unit"]].size if match["unit"] else _UNITS["year"].size
    if not match["old"]:
        is_aged = context.follows("aged|age|age of|age:", match)
        cased = context.shape.cased[match.end("a") : match.end("a") + 1]
        if not is_aged and not (match["sex"] and cased in {"M", "F"} and (cased == "M" or number < 90)):
            return None
    if number.denominator != 1 or number < 0 or number > 130:
        return None
    end = match.end() if match["old"] or match["unit"] else match.end("a")
    return _Read("age", "age", str(number * unit), end, str(number))


def _read_range(context: _Context, match: re.Match[str]) -> _Read | None:
    low, high = context.number(match, "a"), context.number(match, "b")
    is_between = match["to"].strip() != "and" or context.follows("between", match)
    if re.compile(r"\+(?!\w)").match(context.shape.marked, match.end()) and high <= 5:
        return _Read("grade", "plus", f"{low}..{high}", match.end() + 1)
    return _measured(context, match, (low, high)) if is_between and low < high else None


def _read_spread(context: _Context, match: re.Match[str]) -> _Read | None:
    first, second = context.number(match, "a"), context.number(match, "b")
    return _measured(context, match, (first - second, first + second))


def _read_decade(context: _Context, match: re.Match[str]) -> _Read | None:
    number = context.number(match, "a")
    is_one = match["mark"] or context.follows("the|h?is|her|their|my|low|mid|high|upper", match)
    if not (is_one or number >= 60) or number % 10 or number < 10 or context.written(match, "a").isalpha():
        return None
    return _Read("number", "bare", f"{number}..{number + 9}", match.end(), f"{number}..{number + 9}")


def _read_plus(context: _Context, match: re.Match[str]) -> _Read | None:
    """Read the 2+ of a finding and the weeks and days of 41+3."""
    number = context.number(match, "a")
    if match["b"]:
        days = number * 7 + context.number(match, "b")
        is_late = 20 <= number <= 43 and context.number(match, "b") <= 6
        return _Read("quantity", "duration", str(days * 86400), match.end(), str(days)) if is_late else None
    return _Read("grade", "plus", str(number), match.end()) if number <= 5 else None


def _read_grade(context: _Context, match: re.Match[str]) -> _Read | None:
    number = context.number(match, "a")
    if number.denominator != 1 or "." in context.written(match, "a") or match["unit"]:
        return None
    if not re.search(rf"\b{_GRADED}(?:\s|-|\sof\s)?\Z", context.before(match.start(), 18)):
        return None
    letter = match["letter"] or ""
    end = match.end("letter" if letter else "a")
    return _Read("grade", "grade", f"{number}{letter}", end, "" if letter else str(number))


def _read_roman(context: _Context, match: re.Match[str]) -> _Read | None:
    number, cased = _ROMANS.get(match["a"]), context.shape.cased[match.start() : match.end()]
    is_graded = re.search(rf"\b{_GRADED}[\s-]\Z", context.before(match.start(), 14))
    is_plain = len(match["a"]) > 1 and match["a"] not in {"iv", "xi"} and cased[: len(match["a"])].isupper()
    is_next = context.shape.marked[context.done : match.start()] == "-" and context.done > 0  # "class III-IV"
    if not number or not (is_graded or is_plain or is_next):
        return None
    letter = match["letter"] or ""
    return _Read("grade", "grade", number + letter, match.end(), "" if letter else number)


def _read_ordinal(context: _Context, match: re.Match[str]) -> _Read | None:
    if context.follows("at|the patient", match):
        return None
    return _Read("ordinal", "ordinal", str(context.number(match, "a")), match.end())


def _read_compound(context: _Context, match: re.Match[str]) -> _Read | None:
    """Read "1 h 50 min", "5 ft 4 in", "41 weeks and 3 days": the second unit is the smaller one of the first."""
    first, second = _UNITS[match["unit"]], _UNITS.get(match["small"]) or _UNITS["inch"]
    is_sum = first.quantity == second.quantity in {"duration", "length", "mass"} and second.size < first.size
    if not is_sum or (first.quantity == "mass" and match["small"][0] != "o") or match["unit"] in {"m", "cm"}:
        return None
    base = context.number(match, "a") * first.size + context.number(match, "b") * second.size
    return _Read("quantity", first.quantity, str(base), match.end(), str(base / second.size))


def _read_number(context: _Context, match: re.Match[str]) -> _Read | None:
    """Read a number with its unit, with the noun that it counts, or alone."""
    if context.written(match, "a") in {"one", "a"}:
        if _LONE_ONE.search(context.before(match.start(), 9)) or _AFTER_ONE.match(context.shape.marked, match.end("a")):
            return None
        if match.end("a") == len(context.shape.marked):
            return None
    return _measured(context, match, (context.number(match, "a"),))


def _measured(context: _Context, match: re.Match[str], numbers: tuple[Fraction, ...]) -> _Read:
    end = match.end("b") if len(numbers) > 1 else match.end("a")
    marked, amount = context.shape.marked, "..".join(map(str, numbers))
    kind: Kind = "number"
    scale, canonical, noun = "bare", amount, _NOUN.match(marked, end)
    unit = _UNIT_AT.match(marked, end)
    if unit and _is_unit(context, unit, numbers):
        kind, scale, canonical, end = _with_unit(context, numbers, unit)
    elif noun and (counted := _counted(noun["noun"], numbers)):
        kind, scale = "count", counted
    after = _AFTER.match(marked, end) if len(numbers) == 1 else None
    bound = "" if after is None else ">=" if after["more"] else "<="
    return _Read(kind, scale, canonical, after.end() if after else end, amount, bound)


def _is_unit(context: _Context, unit: re.Match[str], numbers: tuple[Fraction, ...]) -> bool:
    """Tell "38 C" from "grade 2 C", "2 m" from "49 M", "5'" from a quotation."""
    name, number = unit["unit"], numbers[-1]
    if name in {"c", "f"}:
        return number.denominator > 1 or (30 <= number <= 45 if name == "c" else 90 <= number <= 115)
    if name in {"'", "''", '"', "s"}:
        return unit.start("unit") == unit.start() and (name == "s" or number < 100)
    return not (name in {"m", "g", "y", "w", "d", "h"} and context.is_capital(unit.start("unit")))


def _with_unit(context: _Context, numbers: tuple[Fraction, ...], unit: re.Match[str]) -> tuple[Kind, str, str, int]:
    found, scale, end = _unit(unit["unit"]), "", unit.end()
    size, marked = found.size, context.shape.marked
    while (per := _PER_AT.match(marked, end)) and per["per"] not in _PERIODS_AND_LONGER:
        below = _unit(per["per"])
        size, scale, end = size / below.size, f"{scale} per {below.quantity}", per.end()
    if found.quantity == "Fahrenheit":
        return "quantity", "temperature", "..".join(str((number - 32) * 5 / 9) for number in numbers), end
    quantity = "temperature" if found.quantity == "Celsius" else found.quantity
    return "quantity", quantity + scale, "..".join(str(number * size) for number in numbers), end


def _unit(name: str) -> _Unit:
    return _UNITS.get(name) or _Unit("area", Fraction(1))  # the name of a square metre has a mark in it


def _counted(noun: str, numbers: tuple[Fraction, ...]) -> str:
    """Give the scale of what is counted: a plural, or the singular of a form of medicine; else nothing."""
    singular = noun.removesuffix("s")
    is_plural = noun != singular and len(singular) > 2 and not noun.endswith(("ss", "us", "is"))
    return f"of {singular}" if singular in _FORMS or (is_plural and numbers[-1] > 1) else ""


_N, _O = NUMBER, ORDINAL
_A, _B, _C = (rf"(?P<{name}>{NUMBER})" for name in "abc")
_HALF: Final = r"(?:\s?(?P<half>[ap]\.?\s?m\b|(?<!\w)in\sthe\s(?:morning|afternoon|evening)\b)\.?)"
_AGE_UNIT: Final = r"(?:years?|yrs?|y|months?|mo|weeks?|wk|days?)"
_UNIT_AT: Final = re.compile(_UNIT)
_PER_AT: Final = re.compile(_PER)
_NOUN: Final = re.compile(rf"(?:{_BETWEEN_NOUN}\s(?:(?:an?|the)\s)?|-)(?P<noun>[a-z]{{3,20}})\b")
_PERIODS_AND_LONGER: Final = frozenset(name for name, days in _PERIODS.items() if days >= 1)

_Row = tuple[re.Pattern[str], Callable[[_Context, re.Match[str]], _Read | None]]


def _row(pattern: str, read: Callable[[_Context, re.Match[str]], _Read | None]) -> _Row:
    return re.compile(pattern), read


_TO: Final = r"(?:\s?[-\u2212]\s?|\s(?:to|or)\s)"
_JOINT: Final = rf"(?:{_TO}{_B})?"
_BY: Final = r"(?:\s?(?:mm|cm|m))?\s?(?:x|by)\s?"
_OLD: Final = r"(?P<old>[\s-]{1,2}olds?\b|\sof\sage\b|/o\b|\.\s?o\b\.?|o\b)"
_OF_NUMBERS: Final[tuple[_Row, ...]] = (
    _row(rf"{_A}(?P<sep>\s?[/.-]\s?){_B}(?P=sep){_C}", _read_date),
    _row(rf"(?P<day>{_N})(?:\s|-)(?:of\s)?{_MONTH}(?:\s?[,\s-]\s?(?P<year>{_N}))?", _read_day_of_month),
    _row(rf"{_A}(?:\s?:\s?|h){_B}(?!\s?min)(?::{_N})?(?P<hours>\s?(?:hrs?|hours)\b)?{_HALF}?", _read_clock),
    _row(rf"{_A}(?:{_HALF}|\so'?\s?clock\b)", _read_hour),
    _row(rf"{_A}(?P<hours>\s?(?:h|hrs?|hours)\b)?", _read_digits_clock),
    _row(rf"{_A}\s(?P<way>past|after|to|before|of)\s{_B}{_HALF}?", _read_spoken_clock),
    _row(rf"{_A}(?:\s?/\s?|(?P<dash>-)){_B}(?!\s?[/-])", _read_short_date),
    _row(rf"{_A}(?P<over>\s?/\s?|[\s-]over[\s-]|\sout\sof\s(?:a\s)?|\s?:\s?){_B}", _read_ratio),
    _row(rf"{_A}{_TO}{_B}(?:\s?/\s?|\sover\s|\sout\sof\s){_C}(?:{_TO}(?P<d>{_N}))?", _read_ratio_range),
    _row(rf"{_A}{_BY}{_B}(?:{_BY}{_C})?(?:\s?(?P<unit>mm|cm|m|inch|inches)\b)?", _read_dimensions),
    _row(rf"(?P<once>){_A}{_JOINT}(?:\s?x(?!\s?\ue000)|\stimes?)(?![a-z])(?:\s?(?:{_EACH})?{_PERIOD})?", _read_times),
    _row(rf"{_A}{_JOINT}(?:\s|-)(?P<period>hourly)\b(?P<other>)", _read_every),
    _row(rf"{_A}\s?-?\s?(?P<unit>{_AGE_UNIT}){_OLD}(?P<sex>)", _read_age),
    _row(rf"{_A}(?:\s?(?P<unit>{_AGE_UNIT})\b)?(?P<old>)(?P<sex>[mf]\b)?", _read_age),
    _row(rf"{_A}(?P<to>\s?[-\u2212]\s?|\s(?:to|or|and)\s){_B}(?!{_HALF})", _read_range),
    _row(rf"{_A}\s?(?:±|\+\s?/\s?-)\s?{_B}", _read_spread),
    _row(rf"{_A}'?s(?:\s?/\s?|\sover\s){_B}'?s\b", _read_ratio_of_decades),
    _row(rf"{_A}(?P<mark>')?s\b", _read_decade),
    _row(rf"{_A}\s?\+(?:{_B}|(?!\s?(?:\ue000|[a-z]{{3,}}s\b|h)))", _read_plus),
    _row(rf"{_A}(?:\s?(?P<letter>[a-d])\b)?(?P<unit>\s?%)?", _read_grade),
    _row(rf"{_A}(?P<day>)", _read_numbered_day),
    _row(rf"{_A}{_UNIT}(?:\s?,?\s?(?:and\s)?){_B}(?:\s?-?(?P<small>{_NAMES}|in)(?![a-z]))?", _read_compound),
    _row(_A, _read_year),
    _row(_A, _read_number),
)
_OF_ORDINALS: Final = (
    _row(rf"(?P<day>{_O})(?:\s|-)(?:day\s)?(?:of\s)?{_MONTH}(?:\s?[,\s-]\s?(?P<year>{_N}))?", _read_day_of_month),
    _row(rf"(?P<a>{_O})\s(?P<day>(?:[a-z]+\s)?day\b)", _read_numbered_day),
    _row(rf"(?P<a>{_O})", _read_ordinal),
)
_OF_MONTHS: Final = (
    _row(rf"{_MONTH}\s(?:the\s|of\s)?(?P<day>{_N}|{_O})(?:(?:\s?,)?\s(?:of\s)?(?P<year>{_N}))?", _read_day_of_month),
    _row(_MONTH, _read_month),
)
_EVERY: Final = (
    _row(r"(?:every|each|at)\s(?P<night>night|bedtime|morning|evening)\b", _read_every_night),
    _row(rf"(?:every|each|q)\s?(?:(?P<other>other\b|{_O})\s|{_A}{_JOINT}[\s-]?)?{_PERIOD}", _read_every),
)
_ANY_OFTEN: Final = "|".join(sorted(_OFTEN, key=len, reverse=True)).replace(".", r"\.\s?")
_OFTEN_ROW: Final = _row(rf"(?P<often>{_ANY_OFTEN})(?![a-z])(?:(?<=\.[a-z])\.)?", _read_often)
_PER_ROW: Final = _row(
    rf"(?P<each>an?\s|per\s|each\s|/\s?){_PERIOD}(?P<more>\sand\sa\shalf)?(?P<ago>\s(?:ago|later|before|after))?",
    _read_per,
)
_ROMAN_ROW: Final = _row(r"(?P<a>[ivx]+)(?P<letter>[a-d])?\b", _read_roman)
_ROMAN_RATIO_ROW: Final = _row(r"(?P<a>[iv]+)\s?/\s?(?P<b>[iv]+)\b", _read_roman_ratio)
_ROWS: Final[dict[str, tuple[_Row, ...]]] = {
    NUMBER[0]: _OF_NUMBERS,
    ORDINAL[0]: _OF_ORDINALS,
    **dict.fromkeys(_MONTHS, _OF_MONTHS),
    **dict.fromkeys(_DAYS, (_row("[a-z]+", _read_weekday),)),
    **dict.fromkeys((f"{roman}{letter}" for roman in _ROMANS for letter in "abcd"), (_ROMAN_ROW,)),
    **dict.fromkeys(_ROMANS, (_ROMAN_RATIO_ROW, _ROMAN_ROW)),
    **dict.fromkeys(("noon", "midnight", "midday"), (_row("[a-z]+", _read_noon),)),
    **dict.fromkeys(
        ("once", "twice", "thrice"), (_row(rf"(?P<once>[a-z]+)(?:[\s-](?:{_EACH})?{_PERIOD})?", _read_times),)
    ),
    **dict.fromkeys((often.split(".")[0] for often in _OFTEN), (_OFTEN_ROW,)),
    **dict.fromkeys(("a", "an", "per", "/"), (_PER_ROW,)),
    **dict.fromkeys(("every", "each"), (*_EVERY, _PER_ROW)),
    "q": (*_EVERY, _OFTEN_ROW),
    "at": _EVERY[:1],
    "x": (_row(rf"x\s?{_A}", _read_x),),
}
_CANDIDATE: Final = re.compile(f"[a-z]+|[{NUMBER[0]}{ORDINAL[0]}/]")
_WITH_BOUND: Final = frozenset(("number", "quantity", "count", "grade", "age", "frequency", "ratio"))
_NUMERIC: Final = frozenset(("number", "quantity", "count", "grade", "age"))


def values(text: str) -> list[Value]:
    """Give the numbers of a text with what they measure, in order; none overlaps another."""
    shape = shape_of(text)
    context, found = _Context(shape), list[Value]()
    for candidate in _CANDIDATE.finditer(shape.marked):
        rows = _ROWS.get(candidate[0])
        if rows is None or candidate.start() < context.done:
            continue
        if read := _first(rows, context, candidate.start()):
            found.append(_value(context, read, candidate.start()))
            context = context._replace(done=read.end)
    return found


def _first(rows: tuple[_Row, ...], context: _Context, at: int) -> _Read | None:
    for pattern, reading in rows:
        if (match := pattern.match(context.shape.marked, at)) and (read := reading(context, match)):
            return read
    return None


def _value(context: _Context, read: _Read, start: int) -> Value:
    """Place a value in the original text, with the words before it that say on which side of it something is."""
    bound, is_about, places = read.bound, False, context.shape.places
    if read.kind in _WITH_BOUND and (before := _BEFORE.search(context.before(start))) and before[0]:
        bound, is_about = _BOUNDS.get(before["bound"] or "", bound), before["about"] is not None
        start -= len(before[0])
    return Value(
        places[start], places[read.end - 1] + 1, read.kind, read.scale, read.canonical, read.amount, bound, is_about
    )


def same(a: Value, b: Value) -> bool:
    """Tell whether two values are one: in any style and unit, and a bare number with any unit.

    Whether it is given as "about" does not count.
    """
    if a.bound != b.bound:
        return False
    if a.kind == b.kind in {"date", "time"}:
        return a.scale == b.scale and _fits(a.canonical, b.canonical)
    is_scale = a.scale == b.scale or {a.scale, b.scale} == {"age", "duration"}
    return (is_scale and a.canonical == b.canonical) or (a.amount == b.amount != "" and _is_open(a, b))


def rival(a: Value, b: Value) -> bool:
    """Tell whether two values answer the same question otherwise, so that not both can be true.

    What says less ("<5" beside 3, a range around the other value, "TID" beside "every 8 hours") is no rival.
    """
    if same(a, b) or not _is_one_question(a, b):
        return False
    is_one_number = a.amount == b.amount if a.kind == b.kind == "frequency" else a.canonical == b.canonical
    if is_one_number and "" in {a.bound, b.bound}:
        return False
    left, right = _reach(a), _reach(b)
    is_one_wide = left and right and (left[0] < left[1]) != (right[0] < right[1])
    return not (is_one_wide and left and right and left[0] <= right[1] and right[0] <= left[1])


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
