"""What a process believes of the time: the brokers' word, the monotonic clock, and its own clock only as a witness."""

from typing import Any

import pytest

from consumer.kafka.brokers_clock import BrokersClock

THEIRS = 1_795_291_200_000
SECOND, HOUR, DAY = 1_000, 3_600_000, 86_400_000


class Clocks:
    """Our own clock and the monotonic one, as a test moves them, and what is believed because of them."""

    def __init__(self, own_ahead_ms: int = 0) -> None:
        self.seconds = 500.0
        self.own = THEIRS + own_ahead_ms
        self.brokers = BrokersClock(lambda: self.own, lambda: self.seconds)

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        self.own += int(seconds * SECOND)


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []

    class Log:
        def warning(self, event: str, **_: Any) -> None:
            lines.append(event)

        info = warning

    monkeypatch.setattr("consumer.kafka.brokers_clock._log", Log())
    return lines


@pytest.mark.parametrize("ahead_ms", [0, 10 * DAY, -10 * DAY, HOUR])
def test_once_a_broker_has_told_its_time_our_own_clock_counts_no_more(ahead_ms: int) -> None:
    clocks = Clocks(ahead_ms)
    assert clocks.brokers.now_ms() == clocks.own
    assert clocks.brokers.known_ms() is None
    assert clocks.brokers.skew_seconds() is None
    clocks.brokers.note(THEIRS)
    assert clocks.brokers.known_ms() == THEIRS
    clocks.advance(2.5)
    clocks.own -= 3 * DAY  # somebody sets it
    assert clocks.brokers.now_ms() == THEIRS + 2_500
    assert clocks.brokers.skew_seconds() == ahead_ms / SECOND - 3 * DAY / SECOND


def test_a_stamp_counts_from_when_it_was_given() -> None:
    clocks = Clocks()
    clocks.brokers.note(THEIRS, clocks.seconds - 30)
    assert clocks.brokers.now_ms() == THEIRS + 30 * SECOND
    assert not clocks.brokers.was_noted_within(30)
    assert clocks.brokers.was_noted_within(31)


def test_the_time_never_runs_backwards_where_brokers_differ_a_little() -> None:
    clocks = Clocks()
    clocks.brokers.note(THEIRS + 5 * SECOND)
    assert clocks.brokers.now_ms() == THEIRS + 5 * SECOND
    clocks.brokers.note(THEIRS)  # by a broker that is five seconds behind the other
    assert clocks.brokers.now_ms() == THEIRS + 5 * SECOND
    clocks.advance(5.5)
    assert clocks.brokers.now_ms() == THEIRS + 5_500
    assert clocks.brokers.remarks() == []


@pytest.mark.parametrize(("first", "then"), [(0, 10 * DAY), (10 * DAY, 0), (0, -2 * HOUR), (-2 * HOUR, 0)])
def test_of_two_brokers_that_disagree_the_one_that_our_own_clock_agrees_with_counts(
    first: int, then: int, logged: list[str]
) -> None:
    clocks = Clocks()
    for _ in range(3):
        clocks.brokers.note(THEIRS + first)
        clocks.brokers.note(THEIRS + then)
        assert clocks.brokers.now_ms() == THEIRS
        assert clocks.brokers.has_jumped
    assert logged == ["the brokers disagree about the time"]
    [remark] = clocks.brokers.remarks()
    assert f"by {abs(first + then) / HOUR:.1f} h" in remark
    clocks.advance(3_601)
    assert clocks.brokers.remarks() == []


def test_an_old_stamp_says_what_the_time_cannot_be_any_more(logged: list[str]) -> None:
    clocks = Clocks()
    clocks.brokers.note_least(THEIRS)
    assert not clocks.brokers.is_known, "it may be from years ago"
    clocks.brokers.note(THEIRS)
    clocks.advance(60)
    clocks.brokers.note_least(THEIRS - 9 * DAY)
    assert clocks.brokers.now_ms() == THEIRS + 60 * SECOND
    clocks.brokers.note_least(THEIRS + 63 * SECOND)  # the monotonic clock is slow, or that broker is ahead
    assert clocks.brokers.now_ms() == THEIRS + 63 * SECOND
    assert not clocks.brokers.was_noted_within(5), "it may be older still"
    assert not logged
    clocks.brokers.note_least(THEIRS + 10 * DAY)
    assert clocks.brokers.now_ms() == THEIRS + 63 * SECOND
    assert logged == ["the brokers disagree about the time"]


def test_that_the_brokers_do_not_tell_the_time_is_said_once_until_they_do(logged: list[str]) -> None:
    clocks = Clocks()
    for _ in range(2):
        clocks.brokers.note_silence("no answer")
    assert logged == ["the brokers do not tell the time"]
    assert clocks.brokers.was_asked_within(5)
    assert not clocks.brokers.was_noted_within(5)
    clocks.advance(5)
    assert not clocks.brokers.was_asked_within(5)
    clocks.brokers.note(THEIRS)
    assert clocks.brokers.was_asked_within(5)
    clocks.brokers.note_silence("no answer")
    assert len(logged) == 2
    assert clocks.brokers.now_ms() == THEIRS, "it goes on to count"


def test_a_small_difference_may_be_the_fault_of_either(logged: list[str]) -> None:
    clocks = Clocks(600 * SECOND)
    clocks.brokers.note(THEIRS)
    [remark] = clocks.brokers.remarks()
    assert "600 s ahead of the brokers': one of the two is wrong" in remark
    assert logged == []


def test_after_the_machine_was_suspended_the_brokers_time_counts_again() -> None:
    clocks = Clocks()
    clocks.brokers.note(THEIRS)
    clocks.own += 9 * HOUR  # and the monotonic clock stood still
    clocks.brokers.note(THEIRS + 9 * HOUR)
    assert clocks.brokers.now_ms() == THEIRS + 9 * HOUR


def test_after_our_own_time_was_refused_records_have_none_until_a_broker_tells_its_own() -> None:
    clocks = Clocks(2 * HOUR)
    clocks.brokers.note_never_told()
    assert clocks.brokers.stamp_ms() == THEIRS + 2 * HOUR
    clocks.brokers.note_refusal()
    assert clocks.brokers.stamp_ms() == -1
    clocks.brokers.note(THEIRS)
    assert clocks.brokers.stamp_ms() == THEIRS
    clocks.brokers.note_refusal()
    assert clocks.brokers.stamp_ms() == THEIRS


def test_records_have_no_time_of_our_own_clock_while_a_broker_may_still_tell_its_own() -> None:
    clocks = Clocks(-10 * DAY)
    assert clocks.brokers.stamp_ms() == -1, "retention would delete what is ten days old"
    clocks.brokers.note(THEIRS)
    assert clocks.brokers.stamp_ms() == THEIRS


# our own clock, how long ago a broker gave the time, and the age that both agree on, in seconds
AGES = [
    (0, 8 * DAY, 8 * DAY / SECOND),
    (10 * DAY, 8 * DAY, 8 * DAY / SECOND),  # ahead: nothing is older for it
    (-3 * DAY, 8 * DAY, 5 * DAY / SECOND),  # behind: it objects
    (-10 * DAY, 8 * DAY, 0.0),
    (0, -8 * DAY, 0.0),  # given by a broker that was ahead then
]


@pytest.mark.parametrize(("own", "ago", "seconds"), AGES)
def test_an_age_is_what_two_clocks_agree_on(own: int, ago: int, seconds: float) -> None:
    clocks = Clocks(own)
    assert clocks.brokers.age_seconds(THEIRS - ago) == 0.0, "no broker has told its time"
    clocks.brokers.note(THEIRS)
    assert clocks.brokers.age_seconds(THEIRS - ago) == seconds
    assert clocks.brokers.age_seconds(None) == 0.0


def test_a_jump_between_two_brokers_is_no_age() -> None:
    clocks = Clocks(10 * DAY)
    clocks.brokers.note(THEIRS)
    clocks.brokers.note(THEIRS + 10 * DAY)  # our own clock agrees with the one that is wrong
    assert clocks.brokers.now_ms() == THEIRS + 10 * DAY
    assert clocks.brokers.age_seconds(THEIRS) == 0.0


@pytest.mark.parametrize(("own", "told"), [(0, None), (59, None), (-61, "61 s behind"), (864_000, "864000 s ahead of")])
def test_a_clock_that_is_wrong_by_a_minute_is_told(own: int, told: str | None, logged: list[str]) -> None:
    clocks = Clocks(own * SECOND)
    clocks.brokers.note(THEIRS)
    clocks.brokers.look()
    clocks.brokers.look()
    remarks = clocks.brokers.remarks()
    assert [told in remark for remark in remarks if told] == ([] if told is None else [True])
    assert len(logged) == len(remarks)
    clocks.own = THEIRS
    clocks.brokers.look()
    assert len(logged) == 2 * len(remarks)
