"""What the pages say alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.offline.pages.numbers import percent, score
from consumer.text import count_of

PERCENTAGES = [
    # (fraction, as it is shown)
    (0.0, "0%"),
    (1.0, "100%"),
    (0.8, "80%"),
    (2 / 3, "66.7%"),
    (2 / 7, "28.6%"),
    (0.29, "29%"),  # 0.29 * 100 is 28.999999999999996
    (0.7999, "79.9%"),  # not 80%
    (0.9999999, "99.9%"),
    (0.80004, "80%"),
    (1e-7, "0%"),
]


@pytest.mark.parametrize(("fraction", "shown"), PERCENTAGES)
def test_a_percentage_is_rounded_but_never_up_to_a_whole_one(fraction: float, shown: str) -> None:
    assert percent(fraction) == shown


@given(st.integers(0, 10_000), st.integers(1, 10_000), st.integers(0, 100))
def test_a_rate_below_a_whole_percent_never_reads_as_having_reached_it(part: int, whole: int, bound: int) -> None:
    rate = min(part, whole) / whole
    assert (float(percent(rate)[:-1]) >= bound) == (rate >= bound / 100)


SCORES = [
    # (score, bounds, as it is shown)
    (2 / 3, (), "0.67"),
    (0.7999, (), "0.80"),
    (0.7999, (0.5, 0.8), "0.79"),
    (0.8, (0.5, 0.8), "0.80"),
    (0.999, (), "0.99"),  # 1.00 is for those without a miss
    (1.0, (1.0,), "1.00"),
    (0.0, (0.5,), "0.00"),
]


@pytest.mark.parametrize(("value", "bounds", "shown"), SCORES)
def test_a_score_is_rounded_but_never_up_to_a_bound(value: float, bounds: tuple[float, ...], shown: str) -> None:
    assert score(value, *bounds) == shown


def test_one_thing_is_not_several() -> None:
    assert [count_of(count, "case") for count in (0, 1, 2)] == ["0 cases", "1 case", "2 cases"]
