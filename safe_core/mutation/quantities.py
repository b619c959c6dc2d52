"""Alterations that put another value in the place of a number, a time or a day."""

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Final

from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.values import Value
from safe_core.mutation.alteration import Alteration, Cut


def _in_order(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_WORDS: Final = _in_order(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_TENS: Final = {"thirty": "sixty", "forty": "seventy", "fifty": "eighty", "sixty": "thirty", "seventy": "forty",
                "eighty": "fifty", "ninety": "sixty", "hundred": "thousand", "twice": "once"}  # fmt: skip
_ORDINALS: Final = {"first": "third", "second": "third", "third": "second", "fourth": "second", "fifth": "second"}
_ROMAN: Final = {"i": "II", "ii": "III", "iii": "II", "iv": "II", "v": "III", "vi": "IV"}
_ROMAN_GRADE = re.compile(r"(iv|vi|v|i{1,3})([a-d]?)")
_OTHER_LETTER: Final = {"a": "b", "b": "a", "c": "a", "d": "a"}
_DAYS: Final = _in_order("monday tuesday wednesday thursday friday saturday sunday")
_MONTHS: Final = _in_order("january february march april may june july august september october november december")
_NEAR_DAYS: Final = {"today": "yesterday", "yesterday": "today", "tomorrow": "today", "noon": "midnight",
                     "midday": "midnight", "midnight": "noon", "morning": "evening", "afternoon": "morning",
                     "evening": "morning"}  # fmt: skip
_DAYS_BY: Final = {"same": "next", "next": "same", "following": "same", "previous": "following"}
_NUMERAL = re.compile(r"\d+(?:,\d{3}(?!\d))*(?:[.,]\d+)?")
_DECIMAL_COMMA = re.compile(r"\d+,\d{1,2}")
_WHOLE = re.compile(r"\d{1,15}(?:\.\d{1,15})?")
_HALF_DAY = re.compile(r"[ap]\.? ?m\b", re.IGNORECASE)
_LONGEST_NUMERAL: Final = 15  # a longer one measures nothing
_STEP: Final = 3  # of the digit that is changed
_LEAST_CHANGE: Final = 0.2  # of a number, or it is no danger
_BODY_TEMPERATURE: Final = (30, 45)
_HOURS_ON: Final = 5
_LETTER = re.compile(r"[^\W\d_]")


def quantities(cut: Cut, items: Mapping[int, Item]) -> Iterator[Alteration]:
    """Put another value in the place of each number, time and day; `items` are by where they begin."""
    for at, word in enumerate(cut.words):
        item = items.get(word.start)
        if item is None or item.value is None or _belongs_to_a_name(cut, at):
            continue
        match item.value.type:
            case "number" | "grade":
                yield from _numbers(cut, at, item.value)
            case "time":
                yield from _times(cut, at, cut.text[item.start : item.end])
            case "day":
                yield from _days(cut, at, item.value.scale)


def _belongs_to_a_name(cut: Cut, at: int) -> bool:
    """Tell whether a digit is a part of a name: SpO2, C5, HbA1c."""
    start = cut.words[at].start
    return start > 0 and cut.folded(at)[:1].isdecimal() and _LETTER.match(cut.text[start - 1]) is not None


# --- numbers ----------------------------------------------------------------------------------------------------------


def _numbers(cut: Cut, at: int, value: Value) -> Iterator[Alteration]:
    folded = cut.folded(at)
    if folded[:1].isdecimal():
        yield from _digits(cut, at, value)
    elif folded in _WORDS:
        if folded != "one" or cut.folded(at + 1).startswith(("hour", "day", "week", "month", "year", "minute")):
            yield from _counted(cut, at, _WORDS[int(_changed(float(_WORDS.index(folded)), most=20))])
    elif folded in _TENS:
        yield cut.altered("number", at, at, _TENS[folded])
    elif folded in _ORDINALS and cut.folded(at + 1) in {"degree", "day", "stage", "line"}:
        yield cut.altered("number", at, at, _ORDINALS[folded])
    elif match := _ROMAN_GRADE.fullmatch(folded):
        other = match[1].upper() + _OTHER_LETTER[match[2]] if match[2] else _ROMAN[folded]
        yield cut.altered("number", at, at, other)


def _counted(cut: Cut, at: int, number: str) -> Iterator[Alteration]:
    """Put another number before what it counts, which is a plural then: "1 day", "4 days"."""
    if cut.folded(at) in {"1", "one"} and cut.touches(at + 1) and cut.folded(at + 1) + "s" in _PLURALS:
        yield cut.altered("number", at, at + 1, f"{number} {cut.written(at + 1)}s")
    else:
        yield cut.altered("number", at, at, number)


_PLURALS: Final = frozenset(("seconds", "minutes", "hours", "days", "weeks", "months", "years", "times"))


def _digits(cut: Cut, at: int, value: Value) -> Iterator[Alteration]:
    """Alter the digits of a number, and put one before a single digit, as substrings are found inside of others."""
    written = cut.written(at)
    numeral = _NUMERAL.match(written)
    if numeral is None or len(numeral[0]) > _LONGEST_NUMERAL:
        return
    rest = written[numeral.end() :]  # of 120/80
    _, _, whole = value.canonical.partition("/")
    most = float(whole) if _WHOLE.fullmatch(whole) else None
    other = _other_numeral(numeral[0], most, value.scale) + rest
    yield from _counted(cut, at, other)
    is_single = len(written) == 1 and value.type == "number" and value.scale != "ordinal"
    if is_single and written != "0":
        yield from _counted(cut, at, f"1{written}")


def _other_numeral(numeral: str, most: float | None, scale: str) -> str:
    """Give another number in the same writing; a fraction below 1 becomes ten times as large."""
    whole, sign, digits = numeral.partition(
        "." if "." in numeral else "," if _DECIMAL_COMMA.fullmatch(numeral) else " "
    )
    number, fraction = int(whole.replace(",", "")), sign + digits
    if number == 0 and digits:
        return f"{digits[0]}{sign}{digits[1:] or '0'}"
    is_ratio = most is not None and number > most  # of a blood pressure
    changed = int(_changed(number, most=None if is_ratio else most, scale=scale, up=is_ratio))
    return (f"{changed:,}" if "," in whole else str(changed)) + fraction


def _changed(number: float, *, most: float | None = None, scale: str = "", up: bool = False) -> float:
    """Give a number that differs by a fifth or more in one digit, where it can be by less than itself."""
    if scale == "heat or angle" and _BODY_TEMPERATURE[0] <= number <= _BODY_TEMPERATURE[1]:
        return number - _STEP if number > sum(_BODY_TEMPERATURE) / 2 else number + _STEP
    step = float(_STEP)
    while step < _LEAST_CHANGE * number:
        step *= 10
    if number - step > 1 and not up:
        return number - step
    if most is None or number + step <= most:
        return number + step
    return number // 2 if number >= 2 else number + 1


# --- times and days ---------------------------------------------------------------------------------------------------


def _times(cut: Cut, at: int, whole: str) -> Iterator[Alteration]:
    folded = cut.folded(at)
    if folded in _NEAR_DAYS:
        yield cut.altered("time", at, at, _NEAR_DAYS[folded])
    elif folded == "night" and cut.folded(at - 1) in {"the", "that", "last", "previous"}:
        yield cut.altered("time", at, at, "morning")
    elif folded == "overnight":
        yield cut.altered("time", at, at, "during the day")
    elif folded[:1].isdecimal():
        yield cut.altered("time", at, at, _other_hour(cut.written(at), whole))
    elif folded in _WORDS:
        yield cut.altered("time", at, at, _WORDS[(_WORDS.index(folded) + _HOURS_ON - 1) % 12 + 1])


def _other_hour(written: str, whole: str) -> str:
    """Give another hour in the same writing: 20:30, 8.30 pm, 0830."""
    is_compact = len(written) == 4 and written.isdecimal()
    length = 2 if is_compact else sum(1 for _ in takewhile(str.isdecimal, written))
    hour = int(written[:length])
    half = _HALF_DAY.search(whole) is not None
    other = (hour + _HOURS_ON - 1) % 12 + 1 if half else (hour + _HOURS_ON) % 24
    return f"{other:0{length}}" + written[length:]


def _days(cut: Cut, at: int, scale: str) -> Iterator[Alteration]:
    folded = cut.folded(at)
    if scale == "weekday":
        yield cut.altered("time", at, at, _other_name(folded, _DAYS))
    elif folded in _DAYS_BY:
        yield cut.altered("time", at, at, _DAYS_BY[folded])
    elif folded in _NEAR_DAYS:
        yield cut.altered("time", at, at, _NEAR_DAYS[folded])
    elif folded in _WORDS:
        yield cut.altered("time", at, at, _WORDS[int(_changed(float(_WORDS.index(folded)), most=20))])
    elif folded[:1].isdecimal():
        yield cut.altered("time", at, at, _other_date(cut.written(at)))
    elif scale in {"date", "month"}:
        yield cut.altered("time", at, at, _other_name(folded, _MONTHS))


def _other_name(folded: str, names: tuple[str, ...]) -> str:
    """Give the day or month three on, written as short as this one is."""
    place = next(place for place, name in enumerate(names) if name[:3] == folded[:3])
    other = names[(place + 3) % len(names)]
    is_short = folded not in names and folded.removesuffix("s") not in names
    return other[:3] if is_short else other + ("s" if folded in {f"{name}s" for name in names} else "")


def _other_date(written: str) -> str:
    """Change the day of a date: the last number of 2024-03-05, the first of 5/3/2024."""
    numbers = list(re.finditer(r"\d+", written))
    day = numbers[-1] if len(numbers[0][0]) == 4 else numbers[0]
    number = int(day[0][:4])
    other = number + _STEP if number + _STEP <= 28 else number - _STEP
    return written[: day.start()] + f"{other:0{len(day[0])}}" + written[day.end() :]
