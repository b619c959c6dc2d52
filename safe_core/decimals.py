"""Comparing computed numbers as the decimals that people mean (contract.md, "Gate").

Binary arithmetic misses most decimals by a little: the mean of three scores of 0.7 is 0.6999999999999998, and a drop
from 0.8 to 0.7 is 0.10000000000000009. A person who types 0.7 or 0.1 does not mean that difference.
"""

from typing import Final

_SAME: Final = 5e-13
"""Numbers from -1 to 1 that are nearer than this are the same decimal.

Scores, rates and their means come from whole counts in a few operations, so they are off by less than 1e-14. Different
numbers are further apart: by 1 / (q * 10**d) or more, where q is the denominator of the computed one, and d is how many
decimal places a person typed.
"""


def compare_decimals(number: float, other: float) -> int:
    """Give -1, 0 or 1: the number is below the other, is the same decimal, or is above it."""
    difference = number - other
    if abs(difference) < _SAME:
        return 0
    return 1 if difference > 0 else -1
