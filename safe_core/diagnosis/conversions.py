"""Values that are one in two units once they are rounded, as people write them: 38.4 °C and 101.1 °F, 70 kg and 154 lb.

In one unit, and between units of which one has whole numbers of the other, nothing is rounded: 1.25 g is not 1.3 g.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from safe_core.diagnosis.numbers_in_text import Value

_SECONDS: Final = {"day": 86_400, "week": 604_800, "month": 2_629_800, "year": 31_557_600}
_AS_SAID: Final[Mapping[tuple[Fraction | int, Fraction | int], tuple[int, int]]] = {
    (_SECONDS[long], _SECONDS[short]): (number, most)
    for long, short, number, most in (
        ("month", "week", 4, 3),
        ("month", "day", 30, 12),
        ("year", "week", 52, 10),
        ("year", "day", 365, 10),
    )
}
"""How many of a shorter unit people say for one of a longer one, and up to how many of the longer one."""
_ROUNDED: Final = frozenset(("mass", "length"))
_MOST_OFF: Final = Fraction(1, 50)
_MOST_DEGREES_OFF: Final = Fraction(1, 5)


def is_converted(one: "Value", other: "Value") -> bool:
    """Tell whether two values of one sort may be the same measurement in two units, or its sizes in another order."""
    scales = {one.scale, other.scale}
    if one.bound != other.bound or ".." in one.canonical + other.canonical:
        return False
    if one.kind == other.kind == "dimensions":
        return len(scales) == 1 and sorted(one.canonical.split(" x ")) == sorted(other.canonical.split(" x "))
    if scales == {"share", "bare"} and one.kind != "date" != other.kind:
        return _is_share(*((one, other) if one.scale == "share" else (other, one)))
    if scales <= {"duration", "age"}:
        return _is_as_said(one, other) or _is_as_said(other, one)
    if len(scales) > 1 or not (scales <= _ROUNDED or scales == {"temperature"}):
        return False
    left, right = Fraction(one.canonical), Fraction(other.canonical)
    most = _MOST_DEGREES_OFF if scales == {"temperature"} else _MOST_OFF * left
    return abs(left - right) <= most and _is_other_unit(one, other) and (_rounds(one, right) or _rounds(other, left))


def is_either_order(one: "Value", other: "Value") -> bool:
    """Tell whether two dates in digits are one if month and day change places: 12/03/2020 and 03/12/2020."""
    return one.kind == other.kind == "date" and one.other == other.canonical != ""


def is_temperature(number: Fraction, degrees: Fraction) -> bool:
    """Tell whether a number without a unit, in either one, is a temperature in degrees Celsius, rounded."""
    return abs(in_celsius(number) - degrees) <= _step(number) / 2


def in_celsius(number: Fraction) -> Fraction:
    """Give a temperature of a body that is written without its unit in degrees Celsius."""
    return number if number < 45 else (number - 32) * Fraction(5, 9)


def _is_share(share: "Value", part: "Value") -> bool:
    percent, written = Fraction(share.canonical), Fraction(part.canonical)
    return 0 < written <= 1 and abs(written * 100 - percent) <= _step(percent) / 2


def _is_as_said(long: "Value", short: "Value") -> bool:
    number, most = _AS_SAID.get((_size(long), _size(short)), (0, 0))
    return Fraction(long.amount or 0) <= most and Fraction(long.amount or 0) * number == Fraction(short.amount or 0) > 0


def _size(value: "Value") -> Fraction:
    """Give how many of the smallest unit the unit of a value is; 0 if it has no single one."""
    return Fraction(value.canonical) / Fraction(value.amount) if Fraction(value.amount or 0) else Fraction(0)


def _is_other_unit(one: "Value", other: "Value") -> bool:
    if one.scale == "temperature":
        return (one.amount == one.canonical) != (other.amount == other.canonical)
    small, large = sorted((_size(one), _size(other)))
    return small > 0 and (large / small).denominator > 1


def _rounds(written: "Value", canonical: Fraction) -> bool:
    """Tell whether a measurement in the smallest unit is what is written, rounded as that is."""
    amount = Fraction(written.amount)
    if written.scale == "temperature":
        exact = canonical if written.amount == written.canonical else canonical * Fraction(9, 5) + 32
    else:
        exact = canonical / _size(written)
    return abs(exact - amount) <= _step(amount) / 2


def _step(amount: Fraction) -> Fraction:
    """Give the step of the last place of a number that is written in decimals."""
    return next((Fraction(1, 10**places) for places in range(3) if (amount * 10**places).denominator == 1), Fraction(0))
