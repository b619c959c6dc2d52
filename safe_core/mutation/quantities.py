"""Alterations that put another value in the place of a number, a time or a day: a possible one, in the same writing."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final

from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.values.number_words import numbers_in, spelled
from safe_core.diagnosis.values.value_types import Value
from safe_core.diagnosis.words import word_set
from safe_core.mutation.alteration import Alteration, Cut, like


def _in_order(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_WORDS: Final = _in_order(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_TENS: Final = {"thirty": "sixty", "forty": "seventy", "fifty": "eighty", "sixty": "thirty", "seventy": "forty",
                "eighty": "fifty", "ninety": "sixty", "hundred": "thousand", "twice": "once"}  # fmt: skip
_COUNTED_BY_ORDINALS: Final = word_set(
    "degree day stage line dose trimester toe finger digit rib metacarpal metatarsal attempt episode injection cycle "
    "week month visit"
)
_ORDINALS: Final = {"first": "third", "second": "third", "third": "second", "fourth": "second", "fifth": "second"}
_ROMAN: Final = {"i": "II", "ii": "III", "iii": "II", "iv": "II", "v": "III", "vi": "IV"}
_ROMAN_GRADE = re.compile(r"(iv|vi|v|i{1,3})([a-d]?)")
_OTHER_LETTER: Final = {"a": "b", "b": "a", "c": "a", "d": "a"}
_DAYS: Final = _in_order("monday tuesday wednesday thursday friday saturday sunday")
_MONTHS: Final = _in_order("january february march april may june july august september october november december")
_SHORT_MONTHS: Final = frozenset(name[:3] for name in _MONTHS)
_DAYS_OF: Final = dict(zip(_MONTHS, (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), strict=True))
_NEAR_DAYS: Final = {"today": "yesterday", "yesterday": "today", "tomorrow": "today", "noon": "midnight",
                     "midday": "midnight", "midnight": "noon", "morning": "evening", "afternoon": "morning",
                     "evening": "morning"}  # fmt: skip
_DAYS_BY: Final = {"same": "next", "next": "same", "following": "same", "previous": "following"}
_NUMERAL = re.compile(r"\.\d+|\d+(?:,\d{3}(?!\d))*(?:[.,]\d+)?")
_DECIMAL_COMMA = re.compile(r"\d+,\d{1,2}")
_WHOLE = re.compile(r"\d{1,15}(?:\.\d{1,15})?")
_HALF_DAY = re.compile(r"[ap]\.? ?m\b", re.IGNORECASE)
_LONGEST_NUMERAL: Final = 15  # a longer one measures nothing
_FRACTIONS: Final = (  # each with what becomes of its matches
    (re.compile("[¼½¾]"), {"¼": "½", "½": "¼", "¾": "¼"}),
    (re.compile(r"\ba dozen\b", re.IGNORECASE), {"a dozen": "two dozen"}),
    (re.compile(r"\bhalf (?:of(?= the)|the|an?)\b", re.IGNORECASE), {
        "half of": "all of", "half the": "twice the", "half a": "a", "half an": "an",
    }),
)  # fmt: skip
_COMA_SCORE: Final = re.compile(r"\bE ?([1-4]),? ?V ?([1-5]),? ?M ?([1-6])\b")
_LEVELS: Final = re.compile(r"\b([CTLS])(\d{1,2})([-\u2013/])([CTLS]?)(\d{1,2})\b")
_YEARS: Final = range(1900, 2100)
_YEARS_ON: Final = 3
_BEFORE_YEAR: Final = word_set("in since year until by from")
_LEAST_DIASTOLIC: Final = 30
_STEP: Final = 3  # of the digit that is changed
_LEAST_CHANGE: Final = 0.2  # of a number, or it is no danger
_BODY_TEMPERATURE: Final = (30, 45)
_HOURS_ON: Final = 5
_LETTER = re.compile(r"[^\W\d_]")


def quantities(cut: Cut, items: Mapping[int, Item]) -> Iterator[Alteration]:
    """Put another value in the place of each number, time and day; `items` are by where they begin."""
    spelled_out = [*numbers_in(cut.text)]
    yield from _spelled_numbers(cut, spelled_out)
    yield from _parts_of_names(cut)
    for at, word in enumerate(cut.words):
        item = items.get(word.start)
        if item is None or item.value is None or _belongs_to_a_name(cut, at) or _is_raised(cut, at):
            continue
        if any(start <= word.start < end for start, end, _ in spelled_out):
            continue
        match item.value.type:
            case "number" | "grade":
                yield from _numbers(cut, at, item.value)
            case "time":
                yield from _times(cut, at, cut.text[item.start : item.end])
            case "day":
                yield from _days(cut, at, item.value.scale)


def _spelled_numbers(cut: Cut, spelled_out: Sequence[tuple[int, int, int]]) -> Iterator[Alteration]:
    """Put another number for "twenty-one" and the like, a fraction, a dozen and a half."""
    for start, end, number in spelled_out:
        yield Alteration("number", start, end, like(cut.text[start:end], spelled(int(_changed(float(number))))))
    for pattern, others in _FRACTIONS:
        for match in pattern.finditer(cut.text):
            other = others[match[0].lower()]
            yield Alteration("number", match.start(), match.end(), like(match[0], other))


def _parts_of_names(cut: Cut) -> Iterator[Alteration]:
    """Put another score for a part of "E4V5M6", and another level for "L4-L5"."""
    for match in _COMA_SCORE.finditer(cut.text):
        for group in (1, 2, 3):
            score = int(match[group])
            other = score - _STEP if score > _STEP else score + 1
            yield Alteration("number", match.start(group), match.end(group), str(other))
    for match in _LEVELS.finditer(cut.text):
        upper, lower = int(match[2]), int(match[5])
        step = -1 if upper > 1 else 1
        after = f"{match[1]}{upper + step}{match[3]}{match[4]}{lower + step}"
        if upper < lower:
            yield Alteration("number", match.start(), match.end(), after)


def _belongs_to_a_name(cut: Cut, at: int) -> bool:
    """Tell whether a digit is a part of a name: SpO2, C5, HbA1c."""
    start = cut.words[at].start
    return start > 0 and cut.folded(at)[:1].isdecimal() and _LETTER.match(cut.text[start - 1]) is not None


def _is_raised(cut: Cut, at: int) -> bool:
    """Tell whether a word reads as digits, but is written otherwise: the exponent of 10³, a ②, a ½."""
    return cut.folded(at)[:1].isdecimal() and not cut.written(at).lstrip(".")[:1].isdecimal()


def _has_exponent(cut: Cut, at: int) -> bool:
    """Tell whether a number is the base of a power, written 10^3 or 10³: no value of its own."""
    gap = cut.between(at + 1)
    return gap == "^" or (gap == "" and _is_raised(cut, at + 1))


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
    elif folded in _ORDINALS and cut.folded(at + 1) in _COUNTED_BY_ORDINALS:
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
    if numeral is None or len(numeral[0]) > _LONGEST_NUMERAL or written == "24/7" or _has_exponent(cut, at):
        return
    if value.scale == "ordinal":
        yield from _ordinals(cut, at)
        return
    if _is_year(cut, at):
        yield cut.altered("number", at, at, str(int(written) - _YEARS_ON))
        return
    rest = written[numeral.end() :]  # of 120/80
    _, _, whole = value.canonical.partition("/")
    most = float(whole) if _WHOLE.fullmatch(whole) else None
    other = _other_numeral(numeral[0], most, value.scale) + rest
    if _is_in_order(cut, at, other):
        yield from _counted(cut, at, other)
    if most is not None and _amount(numeral[0]) > most >= _LEAST_DIASTOLIC:
        yield cut.altered("number", at, at, f"{numeral[0]}/{_other_numeral(whole, _amount(numeral[0]) - 1, '')}")
    is_single = len(written) == 1 and value.type == "number" and cut.between(at) != "^"
    if is_single and written != "0" and _is_in_order(cut, at, f"1{written}"):
        yield from _counted(cut, at, f"1{written}")


def _amount(numeral: str) -> float:
    """Give the number that a numeral means: 1200 for "1,200", 3.5 for "3,5"."""
    return float(numeral.replace(",", "." if _DECIMAL_COMMA.fullmatch(numeral) else ""))


def _is_year(cut: Cut, at: int) -> bool:
    written = cut.written(at)
    if len(written) != 4 or not written.isdecimal() or int(written) not in _YEARS:
        return False
    before = cut.folded(at - 1), cut.folded(at - 2), cut.folded(at - 3)
    return before[0] in _BEFORE_YEAR or any(name[:3] in _SHORT_MONTHS for name in before)


def _ordinals(cut: Cut, at: int) -> Iterator[Alteration]:
    """Put "5th" for "2nd"."""
    number = int(_changed(float(cut.folded(at)))) if cut.folded(at).isdecimal() else 0
    if number and cut.between(at + 1) == "":
        yield cut.altered("number", at, at + 1, f"{number}{_ordinal_ending(number)}")


def _ordinal_ending(number: int) -> str:
    is_teen = number // 10 % 10 == 1
    return "th" if is_teen else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _is_in_order(cut: Cut, at: int, other: str) -> bool:
    """Tell whether a range still goes up with another number: "10-12 kg", not "10-9 kg"."""
    lower, upper = _bound_of_range(cut, at, -1), _bound_of_range(cut, at, 1)
    numeral = _NUMERAL.fullmatch(other)
    number = _amount(other) if numeral is not None and len(other) <= _LONGEST_NUMERAL else None
    return number is None or ((lower is None or lower < number) and (upper is None or number < upper))


def _bound_of_range(cut: Cut, at: int, step: int) -> float | None:
    """Give the other number of a range, written with a dash, "to", or "between" and "and"."""
    is_dashed = cut.between(max(at, at + step)) in {"-", "\u2013"}
    before = cut.folded(at - 1 if step > 0 else at - 3)
    is_worded = cut.folded(at + step) == "to" or (cut.folded(at + step) == "and" and before == "between")
    folded = cut.folded(at + step if is_dashed else at + 2 * step) if is_dashed or is_worded else ""
    return float(folded) if _WHOLE.fullmatch(folded) else None


def _other_numeral(numeral: str, most: float | None, scale: str) -> str:
    """Give another number in the same writing; a fraction below 1 becomes ten times as large."""
    if numeral[0] == ".":
        return numeral[1:]
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
    elif folded == "night" and cut.folded(at - 1) == "last":
        yield cut.altered("time", at - 1, at, "yesterday morning")
    elif folded == "night" and cut.folded(at - 1) in {"the", "that", "previous"}:
        yield cut.altered("time", at, at, "morning")
    elif folded == "overnight":
        yield cut.altered("time", at, at, "during the day")
    elif folded[:1].isdecimal():
        yield cut.altered("time", at, at, _other_hour(cut.written(at), whole))
        if cut.folded(at + 1) in _OTHER_HALF:
            yield cut.altered("time", at + 1, at + 1, _OTHER_HALF[cut.folded(at + 1)] + cut.written(at + 1)[1:])
    elif folded in _WORDS:
        yield cut.altered("time", at, at, _WORDS[(_WORDS.index(folded) + _HOURS_ON - 1) % 12 + 1])


_OTHER_HALF: Final = {"am": "p", "pm": "a"}


def _other_hour(written: str, whole: str) -> str:
    """Give another hour in the same writing: 20:30, 8.30 pm, 0830."""
    is_compact = len(written) == 4 and written.isdecimal()
    length = 2 if is_compact else sum(1 for _ in takewhile(str.isdecimal, written))
    hour = int(written[:length])
    half = _HALF_DAY.search(whole) is not None
    other = (hour + _HOURS_ON - 1) % 12 + 1 if half else (hour + _HOURS_ON) % 24
    has_two_digits = written.startswith("0") or not half
    return f"{other:0{length if has_two_digits else 1}}" + written[length:]


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
        other = _other_date(cut.written(at))
        has_ending = other.isdecimal() and cut.between(at + 1) == "" and cut.folded(at + 1) in _ORDINAL_ENDINGS
        yield cut.altered("time", at, at + has_ending, other + (_ordinal_ending(int(other)) if has_ending else ""))
    elif scale in {"date", "month"} and folded[:3] in _SHORT_MONTHS:
        numbers = (cut.folded(at + 1), cut.folded(at - 1), cut.folded(at - 2), cut.folded(at - 3))
        day = next((int(each) for each in numbers if each.isdecimal() and len(each) <= 2), 1)
        yield cut.altered(
            "time", at, at, _other_name(folded, [name for name in _MONTHS if _is_month(name, folded, day)])
        )


_ORDINAL_ENDINGS: Final = word_set("st nd rd th")


def _is_month(name: str, altered: str, day: int) -> bool:
    """Tell whether a month may stand in the place of another: it has such a day."""
    return name[:3] == altered[:3] or day <= _DAYS_OF[name]


def _other_name(folded: str, names: Sequence[str]) -> str:
    """Give the day or month three on, written as short as this one is."""
    place = next(place for place, name in enumerate(names) if name[:3] == folded[:3])
    other = names[(place + 3) % len(names)]
    is_short = folded not in names and folded.removesuffix("s") not in names
    return other[:3] if is_short else other + ("s" if folded in {f"{name}s" for name in names} else "")


def _other_date(written: str) -> str:
    """Change the day of a date: the last number of 2024-03-05, the second of 12/31/2024, else the first."""
    numbers = list(re.finditer(r"\d+", written))
    day, most = numbers[0], 28
    if len(numbers[0][0]) == 4:
        day = numbers[-1]
    elif len(numbers) > 1 and int(numbers[1][0]) > _MONTHS_OF_YEAR:
        day = numbers[1]
    elif len(numbers) > 1 and int(numbers[0][0]) <= _MONTHS_OF_YEAR:
        most = _MONTHS_OF_YEAR  # it may be the month
    number = int(day[0][:4])
    other = number + _STEP if number + _STEP <= most else number - _STEP
    return written[: day.start()] + f"{other:0{len(day[0])}}" + written[day.end() :]


_MONTHS_OF_YEAR: Final = 12
