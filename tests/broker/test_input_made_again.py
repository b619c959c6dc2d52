"""An input topic that was deleted and created again: no two results have the same id."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from consumer.wire.keys import PROGRESS_KEY
from tests.support.cases import encoded, make_batches, write_batches
from tests.support.outside import CALL_SECONDS, Outgoing
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Worker

pytestmark = pytest.mark.broker

BATCHES = make_batches(83, batches=1, cases_a_batch=4)
CASES = BATCHES[0].cases
EXIT_UNUSABLE = 3
FROM_THE_BEGINNING = {"SAFE_V0_INPUT_START": "earliest"}
BY_NAME = {"SAFE_V0_RESULT_IDS": "topic_name"}
BY_ID = {"SAFE_V0_RESULT_IDS": "topic_id"}


@pytest.fixture
def site(site_over: Callable[..., Site], tmp_path: Path) -> Site:
    return site_over(write_batches(tmp_path / "cases", BATCHES), partitions=1)


def send(site: Site) -> None:
    """An output for each case."""
    site.send([Outgoing(encoded({"test_id": c.test_id, "batch_id": c.batch_id, "output": None})) for c in CASES])


def serve(site: Site, **settings: str) -> None:
    with told(site, **settings).worker():
        site.await_rest()


def told(site: Site, **settings: str) -> Site:
    changed = replace(site.installation, settings={**site.installation.settings, **settings})
    return Site(site.outside, site.folder, changed, site.oracle, site.workers)


def make_again(site: Site) -> None:
    site.outside.delete_topic(site.topics.input)
    wait_until(lambda: site.outside.partitions(site.topics.input) == 0, within_seconds=CALL_SECONDS, what="it is gone")
    site.outside.create_topic(site.topics.input)


def await_no_offsets(site: Site) -> None:
    """The brokers forget the offsets of a topic that is gone."""
    wait_until(
        lambda: not site.outside.committed(site.group, site.topics.input),
        within_seconds=CALL_SECONDS,
        what="the offsets are gone",
    )


def ids(site: Site) -> list[str]:
    return [str(record.header("ce_id")) for record in site.outside.read(site.topics.result)]


def words_of(worker: Worker) -> str:
    assert worker.wait() == EXIT_UNUSABLE
    return worker.log_text()


def test_results_of_a_topic_that_was_made_again_have_ids_of_their_own(site: Site) -> None:
    send(site)
    serve(site)
    before = site.outside.topic_id(site.topics.input)
    make_again(site)
    await_no_offsets(site)
    assert "SAFE_V0_INPUT_START" in words_of(site.spawn("without a word"))
    send(site)
    serve(site, **FROM_THE_BEGINNING)

    now = site.outside.topic_id(site.topics.input)
    assert len(set(ids(site))) == len(ids(site)) == 2 * len(CASES)
    assert [name.rpartition("/")[0] for name in ids(site)] == [
        f"{site.topics.input}@{topic_id}/0/{offset}" for topic_id in (before, now) for offset in range(len(CASES))
    ]
    shown = [record.json()["source"]["topic_id"] for record in site.outside.read(site.topics.result)]
    assert shown == [before] * len(CASES) + [now] * len(CASES)
    totals = [record.json()["summary"]["total_cases"] for record in site.outside.read(site.topics.result)]
    assert totals[-1] == len(CASES), "a case counts once, from whichever topic"


def test_what_is_written_before_anything_was_scored_decides_no_form_of_ids(site: Site) -> None:
    with site.worker(name="first"):
        wait_until(
            lambda: any(record.key == PROGRESS_KEY for record in site.outside.read(site.topics.state)),
            within_seconds=30,
            what="a progress row past the clock's mark",
        )
    with site.worker(name="second"):
        send(site)
        site.await_rest()
    assert len(ids(site)) == len(CASES)
    assert {f"@{site.outside.topic_id(site.topics.input)}/" in name for name in ids(site)} == {True}


def test_an_input_topic_of_another_name_is_another_topic(site: Site) -> None:
    send(site)
    serve(site, **BY_NAME)
    moved_to = f"{site.topics.input}.moved"
    site.outside.create_topic(moved_to)
    moved = {"SAFE_V0_INPUT_TOPIC": moved_to}
    assert "SAFE_V0_INPUT_START" in words_of(told(site, **moved).spawn("without a word"))
    with told(site, **moved, **FROM_THE_BEGINNING).worker(name="moved"):
        pass  # ready: it was not refused


def test_offsets_that_are_gone_are_missed_however_quiet_it_was_since(site: Site) -> None:
    send(site)
    serve(site)
    last = [record for record in site.outside.read(site.topics.state) if record.key == PROGRESS_KEY][-1]
    again = Outgoing(last.value, last.key, last.headers, partition=0)
    site.outside.produce(site.topics.state, [again] * 100)  # as take-ups and chores write them, one by one
    forget_offsets(site)
    assert "SAFE_V0_INPUT_START" in words_of(site.spawn("without a word"))
    assert len(ids(site)) == len(CASES)


def test_where_ids_go_by_the_name_it_is_refused_until_a_setting_says_otherwise(site: Site) -> None:
    send(site)
    serve(site, **BY_NAME)
    assert {"@" in name for name in ids(site)} == {False}
    make_again(site)
    send(site)
    await_no_offsets(site)
    for settings in (FROM_THE_BEGINNING, BY_NAME | FROM_THE_BEGINNING, {}):  # the form is kept without the setting
        said = words_of(told(site, **settings).spawn("refused"))
        assert f"{site.topics.input} was deleted and created again" in said
        assert "Starting over" in said
    assert len(ids(site)) == len(CASES), "nothing was written"

    serve(site, **BY_ID, **FROM_THE_BEGINNING)
    send(site)
    serve(site)  # what the state says now holds without the setting
    topic_id = site.outside.topic_id(site.topics.input)
    assert len(set(ids(site))) == len(ids(site)) == 3 * len(CASES)
    assert {f"@{topic_id}/" in name for name in ids(site)[len(CASES) :]} == {True}


def test_a_running_worker_notices_it_however_soon_it_happens(site: Site) -> None:
    worker = site.spawn("robbed").await_ready()
    make_again(site)
    assert f"deleted and created again while in use: {site.topics.input}" in words_of(worker)


def test_what_a_running_worker_commits_of_the_new_topic_hides_none_of_its_records(site: Site) -> None:
    send(site)
    worker = site.spawn("robbed").await_ready()
    site.await_rest()
    make_again(site)
    for _ in range(3):
        send(site)  # the worker may go on where it was: behind the first records of the new topic
    words_of(worker)
    assert "SAFE_V0_INPUT_START" in words_of(site.spawn("without a word"))
    forget_offsets(site)
    serve(site, **FROM_THE_BEGINNING)

    assert len(set(ids(site))) == len(ids(site))
    new = [name for name in ids(site) if f"@{site.outside.topic_id(site.topics.input)}/" in name]
    assert [int(name.split("/")[2]) for name in new] == [*range(3 * len(CASES))]


def test_offsets_of_a_topic_that_was_made_again_are_not_believed(site: Site) -> None:
    send(site)
    serve(site)
    make_again(site)
    send(site)
    await_no_offsets(site)
    commit(site, offset=2)  # as a worker may that was running meanwhile
    assert "has offsets on it" in words_of(site.spawn("refused"))


def commit(site: Site, *, offset: int) -> None:
    """Commit until it is seen: the brokers may still be forgetting the offsets of the earlier topic."""
    wanted = [TopicPartition(site.topics.input, 0, offset)]

    def is_committed() -> bool:
        asked = site.outside.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(site.group, wanted)])
        asked[site.group].result(CALL_SECONDS)
        return site.outside.committed(site.group, site.topics.input) == {0: offset}

    wait_until(is_committed, within_seconds=CALL_SECONDS, what=f"{site.group} is at {offset}")


def forget_offsets(site: Site) -> None:
    """As an operator does; nothing is left to delete where the brokers have done it."""
    wait_until(
        lambda: not site.outside.members(site.group), within_seconds=CALL_SECONDS, what=f"nobody is in {site.group}"
    )
    if site.outside.committed(site.group, site.topics.input):
        site.outside.admin.delete_consumer_groups([site.group])[site.group].result(CALL_SECONDS)
    await_no_offsets(site)
