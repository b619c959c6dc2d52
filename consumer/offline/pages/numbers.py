"""How every page writes its numbers: nothing is rounded up to a bound that it has not reached."""

from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import Final

from safe_core.decimals import compare_decimals
from safe_core.intervals import wilson

CONFIDENCE: Final = 0.95

BRACKETS: Final = "In brackets: the 95 % confidence interval (Wilson) of the pass rate."
"""Said once on each page: what the numbers in brackets mean."""

_ONE_PLACE: Final = Decimal("0.1")
_TWO_PLACES: Final = Decimal("0.01")


def percent(fraction: float) -> str:
    """Give a fraction as "28.6%"; cut off where rounding would reach a whole percent that it is below.

    Bounds are nearly always whole percents, and what is below one must not read as having reached it.
    """
    exact = Decimal(repr(fraction)) * 100
    nearest = exact.quantize(_ONE_PLACE, ROUND_HALF_EVEN)
    if exact < nearest == nearest.to_integral_value():
        nearest = exact.quantize(_ONE_PLACE, ROUND_FLOOR)
    return f"{str(nearest).removesuffix('.0')}%"


@lru_cache(maxsize=1024)  # a run has few different scores
def score(value: float, *bounds: float) -> str:
    """Give a score to two places; cut off where rounding would reach one of the bounds, or 1, that it is below."""
    text = f"{value:.2f}"
    if any(value < bound <= float(text) for bound in (*bounds, 1.0)):
        return str(Decimal(repr(value)).quantize(_TWO_PLACES, ROUND_FLOOR))
    return text


def mean_score(value: float, *bounds: float) -> str:
    """The same for a mean, which has reached a bound if it is the same decimal."""
    return score(value, *(bound for bound in bounds if compare_decimals(value, bound) < 0))


def pass_rate(passes: int, cases: int) -> str:
    """Give "28.6% (8.2–64.1%)", each number as percent() writes it; without cases "0% (0–100%)"."""
    return ranged(passes / cases if cases else 0.0, *wilson(passes, cases, CONFIDENCE))


def ranged(share: float, low: float, high: float) -> str:
    """Give a share and its interval in the same way."""
    return f"{percent(share)} ({percent(low).removesuffix('%')}–{percent(high)})"


def rate_of(share: float, cases: int) -> str:
    """The same for a rate in a report, which is a whole number of cases divided by the number of cases."""
    return pass_rate(round(share * cases), cases)
