"""How much a transaction may hold follows the time that commits take, and comes to rest below the deadline."""

from dataclasses import dataclass

import pytest

from consumer.worker.slice_size import SliceSize

DEADLINE = 8.0


# seconds since the last change, seconds that the commit took, the share before and after
COMMITTED: list[tuple[float, float, float, float]] = [
    (100, 0.02, 1.0, 1.0),  # a full slice is never exceeded
    (100, 3.0, 1.0, 1.0),
    (100, 4.5, 1.0, 0.5),  # slow: better smaller now than lost later
    (1, 4.5, 0.5, 0.25),  # at once
    (100, 0.02, 0.25, 0.5),  # quick
    (100, 1.9, 0.75, 1.0),
    (0.9, 0.02, 0.25, 0.25),  # quick, but what the last change costs may not have shown yet
    (1.1, 0.02, 0.25, 0.5),
    (100, 3.0, 0.25, 0.25),  # twice as much could be slow
]


@pytest.mark.parametrize(("since", "took", "before", "after"), COMMITTED)
def test_the_time_of_a_commit_decides_about_the_next_one(
    since: float, took: float, before: float, after: float
) -> None:
    pace = SliceSize(DEADLINE)
    now = 1_000.0
    pace.gave_up(held=1.0, now=now)  # the last change was then
    pace.share = before

    pace.committed(now + since - took, now + since)

    assert pace.share == after


@pytest.mark.parametrize(("share", "held", "after"), [(1.0, 1.0, 0.5), (1.0, 0.1, 0.05), (0.25, 1.0, 0.125)])
def test_after_a_commit_that_was_given_up_the_next_holds_half_of_what_it_held(
    share: float, held: float, after: float
) -> None:
    pace = SliceSize(DEADLINE)
    pace.share = share
    pace.gave_up(held, now=0.0)
    assert pace.share == after


def test_however_often_commits_are_given_up_there_is_a_way_back() -> None:
    pace, now = SliceSize(DEADLINE), 0.0
    for _ in range(1_000):
        pace.gave_up(held=0.0, now=now)
    assert pace.share > 0
    for _ in range(14):
        now += DEADLINE * 2
        pace.committed(now, now)
    assert pace.share == 1.0


@dataclass
class Link:
    """Lets through so much of a full slice in a second, after a fixed time for each commit."""

    share_a_second: float
    fixed_seconds: float = 0.05

    def seconds(self, share: float) -> float:
        return self.fixed_seconds + share / self.share_a_second


@pytest.mark.parametrize("share_a_second", [10.0, 0.2, 0.1, 0.05, 0.01, 0.003, 0.001, 0.0003])
def test_on_a_link_of_any_speed_the_size_settles_and_no_commit_is_given_up_any_more(share_a_second: float) -> None:
    link, pace, now = Link(share_a_second), SliceSize(DEADLINE), 0.0
    given_up: list[float] = []
    shares: list[float] = []
    while now < 2_000:
        took = link.seconds(pace.share)
        now += min(took, DEADLINE)
        if took > DEADLINE:
            given_up.append(now)
            pace.gave_up(pace.share, now)
        else:
            pace.committed(now - took, now)
        shares.append(pace.share)
    assert not given_up or given_up[-1] < 15 * DEADLINE
    settled = shares[len(shares) // 2 :]
    assert len(set(settled)) == 1, "it goes up and down"
    # What gets through is most of what the link can carry, and not all of it the fixed time of commits.
    assert settled[0] / link.seconds(settled[0]) > 0.9 * min(share_a_second, 1.0 / link.seconds(1.0))


def test_without_a_deadline_nothing_changes() -> None:
    pace = SliceSize()
    pace.committed(0.0, 1_000.0)
    assert pace.share == 1.0
