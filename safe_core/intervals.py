"""What a pass rate says beyond the cases at hand: Wilson's interval, and how many passes or cases a rate needs."""

from collections.abc import Callable, Sequence
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple


class Interval(NamedTuple):
    """The two ends of a confidence interval, each a share from 0 to 1."""

    low: float
    high: float


def wilson(passes: int, cases: int, confidence: float = 0.95) -> Interval:
    """Give the two-sided score interval of Wilson (1927) for a share of passes; (0, 1) for no cases.

    Raises ValueError for counts that contradict each other, or a confidence outside (0, 1).
    """
    if not 0 <= passes <= cases:
        raise ValueError(f"{passes} passes of {cases} cases")
    deviate = _normal_deviate(confidence)
    return Interval(_lower(passes, cases, deviate), 1.0 - _lower(cases - passes, cases, deviate))


def clustered_wilson(clusters: Sequence[tuple[int, int]], confidence: float = 0.95) -> Interval:
    """Give Wilson's interval for a share over clusters, each with its hits and its size.

    The more the shares of the clusters differ beyond chance, the smaller the number of observations that the interval
    is worked out for; it is never larger than the real one. The order of the clusters makes no difference.
    """
    hits, size = (sum(column) for column in zip(*clusters, strict=True)) if clusters else (0, 0)
    deviate = _normal_deviate(confidence)
    effect = 1.0
    if 0 < hits < size and len(clusters) > 1:
        spread = sum(
            (size * hit - hits * own) ** 2 for hit, own in clusters
        )  # squares of hit - share * own, times size²
        effect = max(1.0, len(clusters) / (len(clusters) - 1) * (spread / (size * hits * (size - hits))))
    fewer, all_ = hits / effect, size / effect
    return Interval(_lower(fewer, all_, deviate), 1.0 - _lower(all_ - fewer, all_, deviate))


def passes_needed(cases: int, rate: float, confidence: float = 0.95) -> int | None:
    """Give the fewest passes whose interval has its lower end at the rate or above it; None if all would not do.

    Raises ValueError for a rate that is none, or a confidence outside (0, 1).
    """
    deviate = _normal_deviate(confidence)
    if not _is_within_reach(rate) or _lower(cases, cases, deviate) < rate:
        return None
    return _fewest(lambda passes: _lower(passes, cases, deviate) >= rate, cases)


def cases_needed(rate: float, confidence: float = 0.95) -> int | None:
    """Give the fewest cases that, all passing, bring the lower end to the rate; None for a rate of 1, never reached.

    Raises ValueError for a rate that is none, or a confidence outside (0, 1).
    """
    deviate = _normal_deviate(confidence)
    if not _is_within_reach(rate):
        return None
    enough = 1
    while _lower(enough, enough, deviate) < rate:
        enough *= 2
    return _fewest(lambda cases: _lower(cases, cases, deviate) >= rate, enough)


def _normal_deviate(confidence: float) -> float:
    """Give the number of standard errors to each side, 1.96 for 0.95."""
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence of {confidence} is not between 0 and 1")
    # By the lower tail, which stays exact where a confidence near 1 would round to it.
    return -NormalDist().inv_cdf((1 - confidence) / 2)


def _lower(passes: float, cases: float, deviate: float) -> float:
    """Give the lower end by the form that cancels nothing; the upper one is that of the other cases, from 1 down."""
    if not passes:
        return 0.0
    spread = deviate * sqrt(passes * (cases - passes) / cases + deviate**2 / 4)
    return passes * passes / cases / (passes + deviate**2 / 2 + spread)


def _is_within_reach(rate: float) -> bool:
    """Tell whether any number of cases can show the rate: of 1 the bound only comes near, until binary64 rounds it."""
    if not 0 <= rate <= 1:
        raise ValueError(f"a rate of {rate} is not from 0 to 1")
    return rate < 1


def _fewest(suffices: Callable[[int], bool], most: int) -> int:
    """Find the least number that suffices, given that `most` does and more is never worse."""
    least = 0
    while least < most:
        middle = (least + most) // 2
        if suffices(middle):
            most = middle
        else:
            least = middle + 1
    return least
