"""What the foreign client says of where its records have come to stand."""

import pytest

from tests.support.outside import Deliveries

Places = list[tuple[int, int | None]]


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ([(0, 3), (1, 0), (0, 4)], [(0, 3), (1, 0), (0, 4)]),
        ([(0, None), (0, 4), (0, None)], [(0, 3), (0, 4), (0, 5)]),
        ([(0, 7), (1, 2), (0, None), (1, None)], [(0, 7), (1, 2), (0, 8), (1, 3)]),
    ],
)
def test_a_record_acknowledged_without_an_offset_stands_beside_its_neighbour(told: Places, meant: Places) -> None:
    assert Deliveries([*told]).all_places() == meant


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ([(0, None), (0, 0), (0, 1)], "stands nowhere"),
        ([(0, 5), (0, None), (0, 6)], "the same offset"),
        ([(0, 5), None], "never acknowledged"),
    ],
)
def test_a_record_that_was_lost_is_noticed(told: list[tuple[int, int | None] | None], why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        Deliveries([*told]).all_places()
