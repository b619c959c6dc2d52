"""Which event time counts, of the one that an output states and the timestamp of its record."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_core.result_version import believed_time

HOUR = 3_600_000
NOW = 1_795_291_200_000

TIMES = [
    # stated, recorded, what counts
    (NOW - 5, NOW, NOW - 5),
    (NOW, NOW, NOW),
    (NOW + HOUR, NOW, NOW + HOUR),
    (NOW + HOUR + 1, NOW, NOW),
    (NOW + 36 * 365 * 24 * HOUR, NOW, NOW),
    (-1, NOW, -1),
    # a timestamp that is wrong the other way counts too: nobody can tell which of the two is right
    (NOW, 0, 0),
    (HOUR, 0, HOUR),
    # no timestamp
    (NOW, -1, NOW),
    (-1, -1, -1),
    # what 64 bits hold
    (2**63 - 1, NOW, NOW),
    (-(2**63), 2**63 - 1, -(2**63)),
]


@pytest.mark.parametrize(("stated", "recorded", "counts"), TIMES)
def test_a_time_is_believed_up_to_an_hour_after_its_record(stated: int, recorded: int, counts: int) -> None:
    assert believed_time(stated, recorded, HOUR) == counts


times = st.integers(-(2**63), 2**63 - 1)


@given(stated=times, recorded=st.integers(-1, 2**63 - 1), ahead=st.integers(0, 10**13))
def test_judging_again_changes_nothing(stated: int, recorded: int, ahead: int) -> None:
    once = believed_time(stated, recorded, ahead)
    assert believed_time(once, recorded, ahead) == once
    assert once in {stated, recorded}
