"""Whether chance alone may explain a change between two runs: exact sign tests, and several of them at once."""

from collections.abc import Sequence
from typing import Final

CHANCE: Final = 0.05
"""How often, at most, a change is named between runs of which neither is better."""


def sign_test(better: int, worse: int) -> float:
    """Give the exact two-sided p of so uneven a split, or a more uneven one, by fair coins; 1.0 of nothing.

    Whole numbers up to the last division, which rounds once; 100,000 in all take about half a second.
    """
    changed = better + worse
    term = tail = 1
    for taken in range(min(better, worse)):
        term = term * (changed - taken) // (taken + 1)
        tail += term
    # Of an even split both tails hold the middle, which would make more than 1.
    return min(2 * tail, 1 << changed) / (1 << changed)


def holm(splits: Sequence[tuple[int, int]]) -> list[float]:
    """Give the p of several sign tests by Holm (1979): as if each were the only one, it may be compared with CHANCE.

    A test with so few changes that no split of them reaches CHANCE can name nothing, so it takes nothing from the
    others (Tarone 1990), and keeps its own p.
    """
    found = [sign_test(*split) for split in splits]
    able = [number for number, split in enumerate(splits) if sign_test(sum(split), 0) <= CHANCE]
    largest = 0.0
    for rank, number in enumerate(sorted(able, key=found.__getitem__)):
        largest = max(largest, min(1.0, (len(able) - rank) * found[number]))
        found[number] = largest
    return found
