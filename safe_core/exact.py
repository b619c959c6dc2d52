"""Sums of binary64 numbers without rounding, so that the order of adding cannot matter (contract.md, "Exact sums")."""

from functools import lru_cache

_UNITS_PER_ONE_BITS = 1074
"""Every finite binary64 number is a whole multiple of 2**-1074, the smallest one above 0."""


@lru_cache(maxsize=4096)  # scores are quotients of small numbers: few values, met again and again
def units(value: float) -> int:
    """Give a finite number as a whole number of 2**-1074; raises OverflowError or ValueError for one that is not."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (_UNITS_PER_ONE_BITS + 1 - denominator.bit_length())


class ExactSum:
    """A sum of binary64 numbers, kept as a whole number of units of 2**-1074."""

    __slots__ = ("units",)

    def __init__(self, units: int = 0) -> None:
        self.units = units

    def add(self, value: float, times: int = 1) -> None:
        """Add a finite number, `times` over; raises OverflowError or ValueError for one that is not finite."""
        self.units += times * units(value)

    def subtract(self, value: float) -> None:
        """Take back what add() was given."""
        self.add(value, -1)

    def mean(self, count: int) -> float:
        """Give the sum divided by a count, rounded once to binary64; 0.0 for a count of 0."""
        if not count:
            return 0.0
        return self.units / (count << _UNITS_PER_ONE_BITS)
