"""Whether chance alone may explain a change between two runs: exact sign tests."""


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


def mcnemar(gained: int, lost: int) -> float:
    """Give the exact p of McNemar's test on cases that pass in one of two runs alone: the sign test of these."""
    return sign_test(gained, lost)
