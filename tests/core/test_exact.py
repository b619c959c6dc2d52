"""Sums that do not round."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_core.exact import exact_mean, units

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


@given(st.lists(finite, min_size=1), st.lists(finite))
def test_a_mean_is_the_exact_sum_divided_once(kept: list[float], passing: list[float]) -> None:
    total = sum(map(units, (*passing, *kept))) - sum(map(units, passing))
    assert exact_mean(total, len(kept)) == float(sum(map(Fraction, kept)) / len(kept))


def test_the_mean_of_nothing_is_zero() -> None:
    assert exact_mean(0, 0) == 0.0


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises((ValueError, OverflowError)):
        units(value)
