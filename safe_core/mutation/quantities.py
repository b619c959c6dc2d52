"""Alterations that put another value in the place of a number, a time or a day.

A value is changed in one of its numbers, which is written as the old one was, and read again: it must be another value
of the same kind in the same place, so that a range still goes up.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import takewhile
from typing import Final, NamedTuple

from safe_core.diagnosis.number_atoms import ONES, TEENS, TENS, Atom, Number, shape_of
from safe_core.diagnosis.numbers_in_text import Value, values
from safe_core.mutation.alteration import Alteration, Cut, MutantKind, like, usage
from safe_core.mutation.turned import pairs

_WORDS: Final = ("zero", *ONES, *TEENS)
_NAME: Final = re.compile(r"[A-Za-z]{3,}")
_GROUPED: Final = re.compile(r"\d{1,3}(?:([,.'’ \u00a0\u2007-\u200a\u202f])\d{3})(?:\1\d{3})*(?!\d)")
_POWER: Final = re.compile(r"\s?[\^⁻⁺⁰-⁹²³¹]")
_CLOCK: Final = re.compile(r"\d\d?(?:[:.]\d\d)*")  # of 0830 the hour
_HALF_DAY: Final = re.compile(r"[ap]\.? ?m\b", re.IGNORECASE)
_OTHER_HALF: Final = str.maketrans("apAP", "paPA")
_COMA_SCORE: Final = re.compile(r"\bE ?([1-4]),? ?V ?([1-5]),? ?M ?([1-6])\b")
_LEVELS: Final = re.compile(r"\b([CTLS])(\d{1,2})([-\u2013/])([CTLS]?)(\d{1,2})\b")
_LONGEST_NUMERAL: Final = 15  # a longer one measures nothing
_YEARS: Final = range(1900, 2100)
_STEP: Final = 3  # of the digit that is changed, of years and of days
_HOURS_ON: Final = 5
_LEAST_CHANGE: Final = 0.2  # of a number, or it is no danger
_LEAST_DIASTOLIC: Final = 30
_LEAST_DILUTION: Final = 100  # the 100 in "1:100"
_MOST_GRADES: Final = 5
_BODY_TEMPERATURE: Final = (30, 45)
_AROUND: Final = 48  # characters beside a value that are read with it again
_COUNTED: Final = frozenset(("number", "quantity", "count", "age", "frequency"))


class _Change(NamedTuple):
    start: int
    end: int
    after: str
    kind: MutantKind = "number"


_Changes = Iterator[_Change]


def quantities(cut: Cut) -> Iterator[Alteration]:
    """Put another value in the place of each number, time and day."""
    yield from _parts_of_names(cut.text)
    numbers = _numbers(cut.text)
    starts = [number.start for number in numbers]
    for value in values(cut.text):
        inside = numbers[bisect_left(starts, value.start) : bisect_left(starts, value.end)]
        for change in _BY_KIND.get(value.kind, _in_numbers)(cut, value, inside):
            if _is_another(cut.text, value, change):
                after = like(cut.text[change.start : change.end], change.after)
                yield cut.placed(change.kind, change.start, change.end, after)


def _numbers(text: str) -> list[Atom]:
    """Give the single numbers of a text, as they are written and where."""
    shape = shape_of(text)
    places = [(shape.places[atom.start], shape.places[atom.end - 1] + 1, atom.number) for atom in shape.atoms.values()]
    return [Atom(start, end, number, text[start:end]) for start, end, number in sorted(places)]


def _is_another(text: str, value: Value, change: _Change) -> bool:
    """Tell whether an altered text has another value of the same kind in the same place."""
    begin, end = max(0, value.start - _AROUND), min(len(text), value.end + _AROUND)
    if begin:
        begin = text.find(" ", begin, value.start) + 1 or value.start
    if end < len(text):
        end = max(text.rfind(" ", value.end, end), value.end, change.end)
    altered = text[begin : change.start] + change.after + text[change.end : end]
    found = next((other for other in values(altered) if other.start + begin == value.start), None)
    if found is None or found.kind != value.kind or found.canonical == value.canonical:
        return False
    return found.scale == value.scale or value.kind in {"ratio", "count"}


def _parts_of_names(text: str) -> Iterator[Alteration]:
    """Put another score for a part of "E4V5M6", and another level for "L4-L5"."""
    for match in _COMA_SCORE.finditer(text):
        for group in (1, 2, 3):
            score = int(match[group])
            other = score - _STEP if score > _STEP else score + 1
            yield Alteration("number", match.start(group), match.end(group), str(other))
    for match in _LEVELS.finditer(text):
        upper, lower = int(match[2]), int(match[5])
        step = -1 if upper > 1 else 1
        after = f"{match[1]}{upper + step}{match[3]}{match[4]}{lower + step}"
        if upper < lower:
            yield Alteration("number", match.start(), match.end(), after)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _in_numbers(cut: Cut, value: Value, inside: list[Atom]) -> _Changes:
    """Change each number; a digit also gets a 1 before it, as substrings are found inside of others."""
    is_sum = len(inside) > 1 and value.kind == "quantity" and ".." not in value.canonical  # "4 h 30 min"
    for number in inside[-1:] if value.kind == "frequency" else inside[:1] if is_sum else inside:
        is_warm = value.scale == "temperature" and _BODY_TEMPERATURE[0] <= number.number <= _BODY_TEMPERATURE[1]
        yield from _rewritten(cut, value, number, _by_three if is_warm else _changed)
        is_digit = number.written.isdecimal() and len(number.written) == 1
        if is_digit and number.number and value.kind in _COUNTED and not _POWER.match(cut.text, number.end):
            yield from _counted(cut, value, number, f"1{number.written}")


def _in_ratio(cut: Cut, value: Value, inside: list[Atom]) -> _Changes:
    """Change both parts of a pressure, the first of "8/10", the second of 1:1,000 and 20/40."""
    if len(inside) != 2 or cut.text[value.start : value.end] == "24/7":
        return
    first, second = (number.number for number in inside)
    if first == 1 and second >= _LEAST_DILUTION:
        tenfold = int(second / 10 if second >= 100 * _LEAST_DILUTION else second * 10)
        yield from _rewritten(cut, value, inside[1], lambda _: tenfold)
    elif value.scale == "acuity":
        yield from _rewritten(cut, value, inside[1], _changed)
    elif first <= second:
        yield from _rewritten(cut, value, inside[0], lambda number: _changed(number, most=second))
    else:
        yield from _rewritten(cut, value, inside[0], lambda number: _changed(number, up=True))
        if second >= _LEAST_DIASTOLIC:
            yield from _rewritten(cut, value, inside[1], lambda number: _changed(number, most=first - 1))


def _in_grade(cut: Cut, value: Value, inside: list[Atom]) -> _Changes:
    """Put the grade beside it: "type I" for "type II", "IIa" for "IIb"."""
    for number in inside:
        is_low = number.number <= _MOST_GRADES
        yield from _rewritten(cut, value, number, (lambda low: low - 1 if low > 1 else 2) if is_low else _changed)
    whole = cut.text[value.start : value.end]
    first = whole.rstrip("abcdABCD")
    if not inside and whole != first:
        yield _Change(value.start, value.end, first + pairs("roman")[whole[-1].lower()])
    elif not inside and first.lower() in pairs("roman"):
        yield _Change(value.start, value.end, pairs("roman")[first.lower()])


def _in_ordinal(cut: Cut, value: Value, inside: list[Atom]) -> _Changes:
    for number in inside:
        if not number.written[0].isalpha() or cut.folded(cut.at(number.end)) in usage()["counted in order"]:
            yield from _rewritten(cut, value, number, _changed)


def _rewritten(cut: Cut, value: Value, number: Atom, change: Callable[[int], int]) -> _Changes:
    after = None if _POWER.match(cut.text, number.end) else _written(number, change)
    if after is not None:
        yield from _counted(cut, value, number, after)


def _counted(cut: Cut, value: Value, number: Atom, after: str) -> _Changes:
    """Put another number before what it counts, which is a plural then: "1 day", "4 days"."""
    noun = cut.at(number.end)
    folded = cut.folded(noun)
    is_one = number.written.lower() in {"1", "one"} and cut.touches(noun)
    if is_one and (folded in usage()["period"] or value.scale == f"of {folded}"):
        yield _Change(number.start, cut.words[noun].end, f"{after} {cut.written(noun)}s")
    elif not is_one or number.written == "1" or value.kind == "age":
        yield _Change(number.start, number.end, after)


def _written(number: Atom, change: Callable[[int], int]) -> str | None:
    """Write a changed number as the old one is written; None where that is not known."""
    old = number.written
    if old[0].isalpha():
        return _spelled(number, change)
    if old in pairs("fraction"):
        return pairs("fraction")[old]
    digits = "".join(takewhile(str.isdecimal, old))
    grouped = _GROUPED.match(old)
    separator = grouped[1] if grouped and int(re.sub(r"\D", "", grouped[0])) == int(number.number) else ""
    whole = grouped[0] if grouped and separator else digits
    rest = old[len(whole) :]
    if len(old) > _LONGEST_NUMERAL or _POWER.match(rest) or rest[:1] == "/" or not re.match(r"[\d.]", old):
        return None
    amount = int(re.sub(r"\D", "", whole) or 0)
    if not amount and rest[:1] in {".", ",", "·"}:
        return _ten_times(rest, is_bare=not whole)
    changed = change(amount)
    if rest.lower() in {"st", "nd", "rd", "th"}:
        return f"{changed}{_ordinal_ending(changed)}"
    return (
        f"{changed:,}".replace(",", separator) if separator else f"{changed:0{len(digits) if digits[:1] == '0' else 1}}"
    ) + rest


def _ten_times(decimals: str, *, is_bare: bool) -> str | None:
    """Make 5 of .5, 5 of 0.5 and 2.5 of 0.25."""
    sign, digits = decimals[0], decimals[1:]
    if not digits.isdecimal() or not int(digits):
        return None
    return digits if is_bare or len(digits) == 1 else digits[0] + sign + digits[1:]


def _spelled(number: Atom, change: Callable[[int], int]) -> str | None:
    word = number.written.lower()
    if word in pairs("ordinal"):
        return pairs("ordinal")[word]
    is_plain = number.number.denominator == 1 and 0 < number.number < 1000 and "dozen" not in word
    is_cardinal = is_plain and not word.endswith(("st", "nd", "rd", "th"))
    return spelled(change(int(number.number))) if is_cardinal else None


def spelled(number: int) -> str:
    """Write a whole number below ten thousand in words."""
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if number >= size:
            whole, rest = divmod(number, size)
            return f"{spelled(whole)} {name}" + (f" and {spelled(rest)}" if rest else "")
    tens, ones = divmod(number, 10)
    return _WORDS[number] if tens < 2 else TENS[tens - 2] + (f"-{_WORDS[ones]}" if ones else "")


def _ordinal_ending(number: int) -> str:
    return "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _by_three(number: int) -> int:
    return number - _STEP if number > sum(_BODY_TEMPERATURE) / 2 else number + _STEP


def _changed(number: int, *, most: Number | None = None, up: bool = False) -> int:
    """Give a number that differs by a fifth or more in one digit, where it can be by less than itself."""
    step = _STEP
    while step < _LEAST_CHANGE * number:
        step *= 10
    if number - step > 1 and not up:
        return number - step
    if most is None or number + step <= most:
        return number + step
    return number // 2 if number >= 2 else number + 1


# --- times and days ---------------------------------------------------------------------------------------------------


def _in_time(cut: Cut, value: Value, inside: list[Atom]) -> _Changes:
    """Put the hour five hours on, and the other half of the day."""
    whole = cut.text[value.start : value.end]
    half = _HALF_DAY.search(whole)
    hours = inside[-1:] if re.search(r"[a-z] (?:past|after|to|before) ", whole, re.IGNORECASE) else inside[:1]
    for hour in hours:
        clock = _CLOCK.match(cut.text, hour.start)
        if clock:
            yield _Change(hour.start, clock.end(), _other_hour(clock[0], is_half=half is not None), "time")
        elif hour.written[0].isalpha() and 1 <= hour.number <= 12:
            yield _Change(hour.start, hour.end, _WORDS[(int(hour.number) + _HOURS_ON - 1) % 12 + 1], "time")
    if half:
        other = half[0][0].translate(_OTHER_HALF) + half[0][1:]
        yield _Change(value.start + half.start(), value.start + half.end(), other, "time")


def _other_hour(written: str, *, is_half: bool) -> str:
    """Give another hour in the same writing: 20:30, 8.30 pm, 08."""
    digits = "".join(takewhile(str.isdecimal, written))
    other = (int(digits) + _HOURS_ON - 1) % 12 + 1 if is_half else (int(digits) + _HOURS_ON) % 24
    return f"{other:0{len(digits) if written[0] == '0' or not is_half else 1}}" + written[len(digits) :]


def _in_date(cut: Cut, value: Value, inside: list[Atom]) -> _Changes:
    """Change the day, the name of the month and, of a date that has one, the year."""
    day = int(value.canonical[-2:]) if value.scale == "date" else 0
    names = list(_NAME.finditer(cut.text[value.start : value.end]))
    is_ambiguous = not names and sum(number.number <= 12 for number in inside) > 1
    most = 12 if is_ambiguous else 28
    for number in inside if value.scale == "numbered day" else [each for each in inside if each.number == day][-1:]:
        after = _written(number, (lambda old: old + _STEP if old + _STEP <= most else old - _STEP) if day else _changed)
        if after:
            yield _Change(
                number.start, number.end, after if names or not day else after.zfill(len(number.written)), "time"
            )
    for number in inside:
        if number.number in _YEARS and number.written.isdecimal() and day != 29 and (names or not day):
            yield _Change(number.start, number.end, str(int(number.number) - _STEP))
    for name in names:
        word = name[0].lower().removesuffix("s" if name[0].lower() not in _other_names() else "")
        if word in _other_names():  # of "Saturdays", the s stays
            start = value.start + name.start()
            yield _Change(start, start + len(word), _other_names()[word], "time")


@cache
def _other_names() -> Mapping[str, str]:
    return {**pairs("weekday"), **pairs("month")}


_BY_KIND: Final[dict[str, Callable[[Cut, Value, list[Atom]], _Changes]]] = {
    "ratio": _in_ratio,
    "grade": _in_grade,
    "ordinal": _in_ordinal,
    "time": _in_time,
    "date": _in_date,
}
