"""What is said of others in a consumer group, and for how long a worker waits for them to leave."""

import pytest
from structlog.testing import capture_logs

from consumer.errors import Fatal
from consumer.kafka.group_members import Stranger
from consumer.worker.stranger_watch import LASTS_SECONDS, StrangerWatch

NOBODY: frozenset[Stranger] = frozenset()
A, B = Stranger("a", "/10.0.0.1"), Stranger("b\n", "/10.0.0.2")


class Clock:
    """A monotonic clock that the test moves."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_it_lasts_ten_minutes() -> None:
    assert LASTS_SECONDS == 600


def test_a_worker_ends_ten_minutes_after_it_was_first_turned_away_and_says_by_whom(clock: Clock) -> None:
    watch = StrangerWatch("safe-v0", clock)
    watch.note(frozenset({A}))
    clock.now += LASTS_SECONDS
    watch.note(frozenset({B}))
    clock.now += 1
    with pytest.raises(Fatal) as raised:
        watch.note(NOBODY)
    assert str(raised.value) == (
        "group safe-v0 has had members that are not SAFE of this version for 10 minutes (client id "
        '"b\\u000a" on 10.0.0.2): stop them, or choose another SAFE_V0_KAFKA_GROUP_ID. If they are workers of an '
        "earlier version, see 'Upgrade' in docs/how-to/operate.md"
    )


def test_time_in_which_the_brokers_do_not_answer_does_not_count(clock: Clock) -> None:
    watch = StrangerWatch("safe-v0", clock)
    watch.note(frozenset({A}))
    for silent in (watch.note_turned_away, watch.note_silence):
        clock.now += 1
        silent()
        clock.now += LASTS_SECONDS
        watch.note(NOBODY)
    clock.now += LASTS_SECONDS
    watch.note(NOBODY)
    clock.now += 1
    with pytest.raises(Fatal, match="for 10 minutes"):
        watch.note(NOBODY)


def test_whoever_is_turned_away_says_so_even_if_nobody_says_by_whom(clock: Clock) -> None:
    watch = StrangerWatch("safe-v0", clock)
    watch.note_silence()
    assert not watch.trouble, "an outage tells of nobody"
    watch.note_turned_away()
    assert "the brokers do not say who" in str(watch.trouble)


def test_the_time_begins_again_once_they_have_left(clock: Clock) -> None:
    watch = StrangerWatch("safe-v0", clock)
    watch.note(frozenset({A}))
    clock.now += LASTS_SECONDS
    watch.note_gone()
    assert (watch.trouble, watch.count) == (None, 0)
    clock.now += 1
    watch.note(NOBODY)
    assert watch.count == 1, "somebody is there, whoever it is"
    assert watch.trouble is not None
    assert "the brokers do not say who" in watch.trouble


def test_it_is_logged_when_it_begins_when_others_come_and_when_it_ends(clock: Clock) -> None:
    watch = StrangerWatch("safe-v0", clock)
    with capture_logs() as logs:
        for found in (frozenset({A}), NOBODY, frozenset({A}), frozenset({A, B}), frozenset({A, B})):
            watch.note(found)
        watch.note_gone()
        watch.note_gone()
    assert [(each["log_level"], each.get("members")) for each in logs] == [
        ("warning", [str(A)]),
        ("warning", [str(A), str(B)]),
        ("info", None),
    ]
