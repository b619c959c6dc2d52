"""What becomes of topics while a worker runs: what is believed at once, what after a second look, what is fatal."""

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from consumer.errors import Fatal
from consumer.kafka.cluster import TopicsSeen
from consumer.kafka.topics import no_leader
from consumer.worker.topic_watch import TopicWatch

COUNTS = {"input": 2, "scored": 8}
BROKERS = {1: "a:9092", 2: "b:9092", 3: "c:9092"}


def seen(
    leaderless: dict[str, set[int]] | None = None, refused: str = "", up: tuple[int, ...] = (1, 2, 3), **counts: int
) -> TopicsSeen:
    """An answer: everything is as it was, but for what is said."""
    places = {topic: frozenset(partitions) for topic, partitions in (leaderless or {}).items()}
    known = {topic: count for topic, count in {**COUNTS, **counts}.items() if count and topic != refused}
    return TopicsSeen(
        known, places, frozenset({refused} - {""}), {each: BROKERS[each] for each in up}, frozenset(BROKERS)
    )


@pytest.fixture
def watch() -> TopicWatch:
    return TopicWatch(COUNTS, may_grow="input")


def test_while_all_is_well_there_is_nothing_to_say(watch: TopicWatch) -> None:
    for _ in range(5):
        watch.note(seen())
    assert watch.trouble is None
    assert watch.topics == ["input", "scored"]
    assert not watch.leaderless("input")


def test_a_partition_is_without_a_leader_when_two_looks_say_so(watch: TopicWatch) -> None:
    watch.note(seen({"scored": {3, 5}}))
    assert not watch.leaderless("scored")
    watch.note(seen({"scored": {3}}))
    assert watch.leaderless("scored") == {3}
    assert not watch.leaderless("input")


def test_one_broker_that_is_behind_changes_nothing(watch: TopicWatch) -> None:
    behind = {"scored": {3}}
    for answer in (behind, None, behind, None, None):
        watch.note(seen(answer))
        assert not watch.leaderless("scored")
    for answer in (behind, behind, None, behind, None, behind):
        watch.note(seen(answer))
    assert watch.leaderless("scored") == {3}
    watch.note(seen())
    watch.note(seen())
    assert not watch.leaderless("scored")


def test_it_is_logged_once_when_it_begins_and_once_when_it_ends(watch: TopicWatch) -> None:
    with capture_logs() as logs:
        for answer in [{"scored": {3, 5}}] * 10 + [None] * 10:
            watch.note(seen(answer))
    assert [(each["log_level"], each["event"], each["topic"], each["partitions"]) for each in logs] == [
        ("warning", "partitions have no leader", "scored", [3, 5]),
        ("info", "partitions have a leader again", "scored", [3, 5]),
    ]


def test_a_broker_is_missing_when_two_looks_say_so_and_is_named_with_its_address(watch: TopicWatch) -> None:
    watch.note(seen())
    for up in [(1, 2), (1, 2, 3), (1, 2)]:
        watch.note(seen(up=up))
        assert watch.missing_brokers() is None
    with capture_logs() as logs:
        for up in [(1, 2)] * 5 + [(1,)] * 5:
            watch.note(seen(up=up))
    assert watch.missing_brokers() == "brokers 2 (b:9092), 3 (c:9092) are missing from the cluster"
    with capture_logs() as logs_of_the_end:
        for _ in range(5):
            watch.note(seen(up=(1, 3)))
    assert watch.missing_brokers() == "broker 2 (b:9092) is missing from the cluster"
    assert [(each["log_level"], each["event"], each["brokers"]) for each in (*logs, *logs_of_the_end)] == [
        ("warning", "brokers are missing from the cluster", ["3 (c:9092)"]),
        ("warning", "brokers are missing from the cluster", ["2 (b:9092)"]),
        ("info", "brokers are no longer missing", ["3 (c:9092)"]),
    ]


def test_a_broker_that_was_missing_from_the_start_has_no_address(watch: TopicWatch) -> None:
    for _ in range(2):
        watch.note(seen(up=(1, 3)))
    assert watch.missing_brokers() == "broker 2 is missing from the cluster"


def test_a_broker_that_holds_nothing_of_the_topics_is_not_missed(watch: TopicWatch) -> None:
    for _ in range(3):
        watch.note(replace(seen(up=(1,)), holders=frozenset({1})))
    assert watch.missing_brokers() is None


def test_a_topic_that_is_missing_is_told_at_once_and_fatal_the_third_time(watch: TopicWatch) -> None:
    watch.note(seen(scored=0))
    assert watch.trouble == "missing topic: scored"
    watch.note(seen(scored=0))
    with pytest.raises(Fatal, match="scored disappeared while in use"):
        watch.note(seen(scored=0))


def test_a_topic_that_comes_back_was_never_gone(watch: TopicWatch) -> None:
    for _ in range(5):
        watch.note(seen(scored=0))
        watch.note(seen(scored=0))
        watch.note(seen())
    assert watch.trouble is None


def test_a_topic_that_was_made_again_is_fatal_the_third_time_though_it_never_was_missing(watch: TopicWatch) -> None:
    for _ in range(2):
        watch.note(replace(seen(), ids={"scored": "one", "input": "two"}))
    for _ in range(2):
        for _ in range(2):
            watch.note(replace(seen(), ids={"scored": "another", "input": "two"}))
        watch.note(replace(seen(), ids={"scored": "one"}))  # one broker was behind, or ahead
    watch.note(seen())  # an older broker does not tell
    for _ in range(2):
        watch.note(replace(seen(), ids={"scored": "another"}))
    with pytest.raises(Fatal, match="deleted and created again while in use: scored"):
        watch.note(replace(seen(), ids={"scored": "another"}))


def test_a_topic_that_was_made_again_before_the_first_look_is_known_by_the_id_of_the_start() -> None:
    watch = TopicWatch(COUNTS, {"scored": "one"})
    for _ in range(2):
        watch.note(replace(seen(), ids={"scored": "another"}))
    with pytest.raises(Fatal, match="deleted and created again while in use: scored"):
        watch.note(replace(seen(), ids={"scored": "another"}))


def test_an_id_that_was_not_known_at_the_start_is_believed_when_it_was_seen_twice(watch: TopicWatch) -> None:
    watch.note(replace(seen(), ids={"scored": "of old"}))  # the first broker that is asked may be the one behind
    for _ in range(5):
        watch.note(replace(seen(), ids={"scored": "of now"}))


def test_a_right_that_is_taken_away_is_no_topic_that_disappears(watch: TopicWatch) -> None:
    for _ in range(2):
        watch.note(seen(refused="input"))
        assert watch.trouble == "not authorised for the topic: input"
    with pytest.raises(Fatal, match="input: not authorised for the topic any more; grant DESCRIBE") as fatal:
        watch.note(seen(refused="input"))
    assert "disappeared" not in str(fatal.value)


def test_the_input_may_grow_and_nothing_else(watch: TopicWatch) -> None:
    for _ in range(5):
        watch.note(seen(input=4))
        for _ in range(2):
            watch.note(seen(scored=9))  # one broker is behind
    watch.note(seen(input=4))
    for _ in range(2):
        watch.note(seen(scored=9))
    with pytest.raises(Fatal, match="scored now has 9 partitions instead of 8"):
        watch.note(seen(scored=9))


def test_a_topic_whose_records_may_be_anywhere_asks_for_a_restart_alone() -> None:
    watch = TopicWatch(COUNTS, keyless="scored")
    watch.note(seen(scored=9))
    watch.note(seen(scored=9))
    with pytest.raises(Fatal) as refused:
        watch.note(seen(scored=9))
    assert str(refused.value) == "scored now has 9 partitions instead of 8: start the worker again"


def test_the_sentence_names_topic_and_partitions() -> None:
    assert no_leader("scored", {3}) == "partition 3 of scored has no leader: too few of its brokers are up"
    assert no_leader("in", {12, 3}).startswith("partitions 3, 12 of in have no leader: ")
    assert len(no_leader("in", range(1_000))) < 200
