"""Which value of a narrative is nearest to one that it does not have (contract.md, "Unsupported values")."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Final

from safe_core.diagnosis.numbers_in_text import Value

_FARTHEST: Final = 1_000  # times larger
_BODIES: Final = {"mass": 10**8, "length": 500}  # micrograms, millimeters
"""From here on, a mass is a body's weight and no dose, and a length is a body's height and no finding's size."""
_WRITTEN: Final = re.compile(r"\d+(?:/[1-9]\d*)?")
_PARTING: Final = re.compile("[-/:]")
_WEIGHTS: Final = {"date": (365, 30, 1), "time": (60, 1), "ratio": (1, 1)}
"""What a difference of one in each part counts, of values that have parts."""

_Unit = Fraction | None
_Sizes = Sequence[tuple[Fraction, Value]]


class NearestValues:
    """The values of a text by what they measure, each at its last place; ordered when somebody asks for the nearest."""

    def __init__(self, text: str, found: Iterable[Value]) -> None:
        self._text = text
        self._found = tuple(found)

    def to(self, claim: Value) -> str | None:
        """Give the value of the same sort that is nearest in size, of the same unit if there is one."""
        if claim.scale == "bare":
            return None
        if claim.kind in _WEIGHTS:
            rivals = ((_apart(each, claim), -each.start, each) for each in self._by_scale.get(claim.scale, ()))
            best = min(rivals, key=lambda each: each[:2], default=None)
            return best and self._text[best[2].start : best[2].end]
        units: tuple[_Unit, ...] = (_unit(claim), None) if claim.kind == "quantity" else (None,)
        near = (_closest(self._by_size.get((claim.scale, unit), ()), claim) for unit in units)
        found = next((each for each in near if each is not None), None)
        return found and self._text[found.start : found.end]

    @cached_property
    def _by_scale(self) -> dict[str, list[Value]]:
        found: dict[str, dict[Value, Value]] = {}
        for each in self._found:
            found.setdefault(each.scale, {})[each._replace(start=0, end=0)] = each
        return {scale: [*own.values()] for scale, own in found.items()}

    @cached_property
    def _by_size(self) -> dict[tuple[str, _Unit], _Sizes]:
        found: dict[tuple[str, _Unit], dict[Fraction, Value]] = {}
        for scale, own in self._by_scale.items():
            for each in sorted(own, key=lambda value: value.start):
                for unit in (None, _unit(each)) if each.kind == "quantity" else (None,):
                    found.setdefault((scale, unit), {})[_largest(each.canonical)] = each
        return {key: sorted(own.items()) for key, own in found.items()}


def _closest(sizes: _Sizes, claim: Value) -> Value | None:
    """Give the one of which the claim, or which of the claim, is the smallest multiple."""
    size = _largest(claim.canonical)
    at = bisect_left(sizes, size, key=lambda each: each[0])
    near = ((times, -each.start, each) for other, each in sizes[max(0, at - 1) : at + 1]
            for times in _times_larger(claim.scale, *sorted((size, other))))  # fmt: skip
    best = min(near, key=lambda each: each[:2], default=None)
    return best and best[2]


def _times_larger(scale: str, small: Fraction, large: Fraction) -> Iterator[Fraction]:
    """Give how many times larger one is, unless that says nothing."""
    is_other_family = small < _BODIES.get(scale, 0) <= large
    if small > 0 and not is_other_family and large / small <= _FARTHEST:
        yield large / small


@lru_cache(maxsize=8192)
def _largest(canonical: str) -> Fraction:
    return max(map(Fraction, _WRITTEN.findall(canonical)), default=Fraction(0))


def _unit(value: Value) -> Fraction:
    """Give how many of the smallest unit the unit of a quantity is."""
    amount, canonical = (Fraction(each.partition("..")[0]) for each in (value.amount, value.canonical))
    return canonical / amount if amount else Fraction(0)


def _apart(one: Value, other: Value) -> int:
    """Give how far apart two values that have parts are: dates, times of day, ratios."""
    pairs = zip(_parts(one.canonical), _parts(other.canonical), _WEIGHTS[one.kind], strict=False)
    return sum(abs(left - right) * weight for left, right, weight in pairs if left >= 0 <= right)


@lru_cache(maxsize=8192)
def _parts(canonical: str) -> tuple[int, ...]:
    """Give the numbers of a value that has parts; -1 for one that is open or no whole number."""
    return tuple(int(each) if each.isdecimal() else -1 for each in _PARTING.split(canonical))
