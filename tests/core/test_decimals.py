"""Computed numbers are compared as the decimals that people mean: never otherwise than exact fractions are."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_core.decimals import compare_decimals
from safe_core.exact import exact_mean, units

COUNTS = st.integers(1, 12).flatmap(lambda listed: st.tuples(st.integers(0, listed), st.just(listed)))
BOUNDS = st.integers(0, 10_000).map(lambda places: f"{places / 10_000}")


def composite(criteria: list[tuple[int, int]]) -> float:
    """The composite of three criteria, as scoring computes it."""
    (cr, cr_listed), (ah, ah_listed), (ac, ac_listed) = criteria
    return (cr / cr_listed + (1.0 - ah / ah_listed) + ac / ac_listed) / 3


def exact_composite(criteria: list[tuple[int, int]]) -> Fraction:
    cr, ah, ac = (Fraction(*counts) for counts in criteria)
    return (cr + (1 - ah) + ac) / 3


CASES = st.lists(st.lists(COUNTS, min_size=3, max_size=3), min_size=1, max_size=30)


@given(CASES, BOUNDS)
def test_a_mean_stands_to_a_bound_as_the_exact_mean_of_the_counts_does(
    cases: list[list[tuple[int, int]]], bound: str
) -> None:
    mean = exact_mean(sum(units(composite(case)) for case in cases), len(cases))
    exact = sum(exact_composite(case) for case in cases) / len(cases) - Fraction(bound)
    assert compare_decimals(mean, float(bound)) == (exact > 0) - (exact < 0)


def test_three_scores_of_a_decimal_have_that_decimal_as_their_composite() -> None:
    missed = 0
    for tenths in range(11):
        mean = composite([(tenths, 10), (10 - tenths, 10), (tenths, 10)])
        missed += mean != tenths / 10
        assert compare_decimals(mean, tenths / 10) == 0
    assert missed  # else this shows nothing


DROPS = [(Fraction(base, 10), Fraction(new, 10)) for base in range(11) for new in range(base)]


@pytest.mark.parametrize(("base", "new"), DROPS)
def test_a_drop_is_what_it_is_in_decimals(base: Fraction, new: Fraction) -> None:
    drop = float(base) - float(new)
    assert compare_decimals(drop, float(base - new)) == 0
    assert compare_decimals(drop, float(base - new) - 0.0001) == 1
    assert compare_decimals(drop, float(base - new) + 0.0001) == -1
