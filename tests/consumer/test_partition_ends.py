"""Where partitions end, and which ones an open transaction holds up."""

from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from consumer.kafka.cluster import Ends, OpenTransaction, Place
from consumer.worker.partition_ends import HeldUp, PartitionEnds

INPUT, OTHER = ("input", 0), ("input", 1)
EVERY_SECONDS = 1.5


class Watch:
    """The ends of partitions as a worker asks for them, at a time that the test decides."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.ends = PartitionEnds(lambda: self.now)

    def ask(self, answers: Mapping[Place, Ends], *, for_seconds: float = 0.0) -> None:
        """Take the same answers for this long, again and again."""
        until = self.now + for_seconds
        self.ends.note(answers)
        while self.now + EVERY_SECONDS <= until:
            self.now += EVERY_SECONDS
            self.ends.note(answers)


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_a_stable_offset_that_has_not_moved_for_half_a_minute_with_records_behind_it_is_held_up(watch: Watch) -> None:
    watch.ask({INPUT: Ends(1, 2)}, for_seconds=27)
    assert (watch.ends.held_up(), watch.ends.seconds()) == ({}, {INPUT: 27.0})
    watch.ask({INPUT: Ends(1, 9)}, for_seconds=3)
    assert watch.ends.held_up() == {INPUT: HeldUp(INPUT, 1)}
    assert watch.ends.seconds() == {INPUT: 30.0}
    assert watch.ends.log_ends("input") == {0: 9}


QUIET: Mapping[str, list[Ends]] = {
    "nothing comes": [Ends(5, 5)],
    "a busy topic always has one open, each time another": [Ends(at, at + 3) for at in range(40)],
    "one is open for a moment, then nothing comes": [Ends(5, 7), *[Ends(8, 8)] * 39],
    "nothing comes for long, then one opens": [*[Ends(5, 5)] * 39, Ends(5, 6)],
}


@pytest.mark.parametrize("what", QUIET)
def test_a_stable_offset_that_moves_or_has_nothing_behind_it_is_not(watch: Watch, what: str) -> None:
    for answer in QUIET[what] * (40 // len(QUIET[what])):
        watch.ask({INPUT: answer})
        watch.now += EVERY_SECONDS
        assert watch.ends.held_up() == {}
    assert watch.ends.seconds() == {INPUT: 0.0}


def test_of_a_partition_whose_leader_has_not_answered_for_long_nothing_is_known(watch: Watch) -> None:
    watch.ask({INPUT: Ends(1, 2), OTHER: Ends(0, 0)}, for_seconds=60)
    watch.ask({OTHER: Ends(0, 0)}, for_seconds=7.5)
    assert watch.ends.held_up().keys() == {INPUT}, "one answer may be missing"
    watch.ask({OTHER: Ends(0, 0)}, for_seconds=3)
    assert (watch.ends.held_up(), watch.ends.seconds(), watch.ends.log_ends("input")) == ({}, {OTHER: 0.0}, {1: 0})
    watch.ask({INPUT: Ends(1, 2)}, for_seconds=27)
    assert watch.ends.held_up() == {}, "nobody knows what was between"


def test_whose_transaction_it_is_is_asked_once_and_told_and_logged(watch: Watch) -> None:
    ours, theirs = OpenTransaction(7, 3, 1), OpenTransaction(4001, 0, 5)
    with capture_logs() as logs:
        watch.ask({INPUT: Ends(1, 2), OTHER: Ends(5, 9)}, for_seconds=30)
        first, second = watch.ends.unnamed()
        watch.ends.name(first, ours, {7})
        watch.ends.name(second, theirs, {7})
        assert watch.ends.unnamed() == []
        told = [held_up.told({7}) for held_up in watch.ends.held_up().values()]
        watch.ask({INPUT: Ends(1, 2), OTHER: Ends(10, 10)})
    by = "by an open transaction of producer"
    assert told == [
        f"partition 0 of input is held up at offset 1 {by} 7, one of this worker's",
        f"partition 1 of input is held up at offset 5 {by} 4001, which is not this worker's",
    ]
    assert [(each["event"], each["log_level"], each["partition"], each.get("producer_id")) for each in logs] == [
        ("an open transaction holds up a partition", "warning", 0, 7),
        ("an open transaction holds up a partition", "warning", 1, 4001),
        ("a partition is no longer held up", "info", 1, None),
    ]
    assert [each["why"] for each in logs[:2]] == told


def test_the_next_transaction_at_once_is_another(watch: Watch) -> None:
    watch.ask({INPUT: Ends(1, 3)}, for_seconds=30)
    [held_up] = watch.ends.unnamed()
    watch.ends.name(held_up, OpenTransaction(9, 0, 1), ())
    watch.ask({INPUT: Ends(2, 3)}, for_seconds=30)
    assert watch.ends.unnamed() == [HeldUp(INPUT, 2)]


def test_brokers_that_do_not_name_the_producer_leave_the_sentence_shorter(watch: Watch) -> None:
    watch.ask({INPUT: Ends(1, 2)}, for_seconds=30)
    [held_up] = watch.ends.unnamed()
    watch.ends.name(held_up, None, ())
    assert watch.ends.unnamed() == []
    [named] = watch.ends.held_up().values()
    assert named.told({7}) == "partition 0 of input is held up at offset 1 by an open transaction"


def test_while_nobody_says_whose_it_is_that_is_asked_again_every_ten_seconds_and_logged_once(watch: Watch) -> None:
    watch.ask({INPUT: Ends(1, 2)}, for_seconds=30)
    with capture_logs() as logs:
        for _ in range(3):
            [held_up] = watch.ends.unnamed()
            watch.ends.name(held_up, None, ())
            watch.ask({INPUT: Ends(1, 2)}, for_seconds=9)
            assert watch.ends.unnamed() == []
            watch.ask({INPUT: Ends(1, 2)}, for_seconds=1.5)
            watch.now += 1.0
        watch.ends.name(HeldUp(INPUT, 1), OpenTransaction(9, 0, 1), ())
        watch.now += 11.0
        assert watch.ends.unnamed() == []
    assert [each["producer_id"] for each in logs] == [None, 9]


def test_of_many_that_nobody_names_one_at_a_time_is_asked_again(watch: Watch) -> None:
    both = {INPUT: Ends(1, 2), OTHER: Ends(1, 2)}
    watch.ask(both, for_seconds=30)
    for held_up in watch.ends.unnamed():
        watch.ends.name(held_up, None, ())
    watch.ask(both, for_seconds=12)
    for place in (INPUT, OTHER):
        assert watch.ends.unnamed() == [HeldUp(place, 1)]
        watch.ends.name(HeldUp(place, 1), None, ())
    assert watch.ends.unnamed() == []
