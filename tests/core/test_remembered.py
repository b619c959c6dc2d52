"""What is remembered, and what is forgotten."""

from safe_core.remembered import Remembered


def test_it_forgets_everything_rather_than_hold_more_than_it_may() -> None:
    remembered: Remembered[int, str] = Remembered(3)
    for number in range(3):
        assert remembered.keep(number, str(number)) == str(number)
    assert remembered == {0: "0", 1: "1", 2: "2"}
    remembered.keep(3, "3")
    assert remembered == {3: "3"}
