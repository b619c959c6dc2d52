"""Sums of binary64 numbers without rounding, so that the order of adding cannot matter (contract.md, "Exact sums")."""

from functools import lru_cache

_UNITS_PER_ONE_BITS = 1074
"""Every finite binary64 number is a whole multiple of 2**-1074, the smallest one above 0."""


@lru_cache(maxsize=4096)  # scores are quotients of small numbers: few values, met again and again
def units(value: float) -> int:
    """Give a finite number as a whole number of 2**-1074; raises OverflowError or ValueError for one that is not."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (_UNITS_PER_ONE_BITS + 1 - denominator.bit_length())


def exact_mean(total: int, count: int) -> float:
    """Give a sum of units() divided by a count, rounded once to binary64; 0.0 for a count of 0."""
    return total / (count << _UNITS_PER_ONE_BITS) if count else 0.0
