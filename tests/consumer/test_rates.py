"""A pass rate as the pages show it."""

import pytest

from consumer.offline.pages.numbers import BRACKETS, CONFIDENCE, pass_rate

SHOWN = [
    (2, 7, "28.6% (8.2–64.1%)"),
    # the ends
    (0, 7, "0% (0–35.4%)"),
    (7, 7, "100% (64.6–100%)"),
    # many cases leave little open
    (90_000, 100_000, "90% (89.8–90.2%)"),
    # no cases leave everything open
    (0, 0, "0% (0–100%)"),
]


@pytest.mark.parametrize(("passes", "cases", "shown"), SHOWN)
def test_a_pass_rate_is_shown_with_its_interval(passes: int, cases: int, shown: str) -> None:
    assert pass_rate(passes, cases) == shown


def test_the_brackets_are_explained_with_the_confidence_that_they_have() -> None:
    assert f"{CONFIDENCE:.0%}".replace("%", " %") in BRACKETS
