"""What a new owner refuses: a state that is older than its offset, an offset set back, a topic that was made again.

Each of these once gave totals that were wrong for good, or results twice, and nobody was told.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from consumer.errors import Fatal
from consumer.kafka import cluster
from consumer.settings import load
from consumer.worker import partition_loop as partition_module
from consumer.worker import poll_loop
from consumer.worker.main import Worker
from tests.support.cases import encoded, make_batches, make_event, write_batches
from tests.support.outside import COMPACTED, Outgoing, Outside, Record, Topics
from tests.support.site import Site
from tests.support.waiting import wait_until

pytestmark = pytest.mark.broker

SEED = 29
BATCHES = make_batches(SEED, batches=1, cases_a_batch=8)
DEADLINE_SECONDS = 60.0
CALL_SECONDS = 20.0


@pytest.fixture
def site(site_over: Callable[..., Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """One partition of everything; what is asked about for a minute, is asked about for a second."""
    monkeypatch.setattr(partition_module, "_CONTRADICTION_SECONDS", 1.0)
    monkeypatch.setattr(poll_loop, "_BEYOND_SECONDS", 1.0)
    return site_over(
        write_batches(tmp_path / "cases", BATCHES),
        partitions=1,
        settings={"SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS": "3"},
    )


def feed(site: Site, numbers: Sequence[int]) -> None:
    """One input for each case of these numbers."""
    site.send(
        [Outgoing(encoded(make_event(random.Random(at), BATCHES[0].cases[at], quality="pass"))) for at in numbers]
    )


def served(site: Site, numbers: Sequence[int]) -> None:
    """Feed a worker, and stop it once all is done."""
    feed(site, numbers)
    with site.worker() as worker:
        site.await_rest()
        assert worker.stop() == 0


def aggregator_of(site: Site) -> str:
    return f"{site.group}.aggregator"


def set_offset(site: Site, offset: int) -> None:
    """Do what an operator does with Kafka's own tool."""
    where = [TopicPartition(site.topics.scored, 0, offset)]
    [future] = site.outside.admin.alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(aggregator_of(site), where)]
    ).values()
    future.result(CALL_SECONDS)


def with_topics(site: Site, topics: Topics, **settings: str) -> Site:
    changed = replace(site.installation, topics=topics, settings={**site.installation.settings, **settings})
    return Site(site.outside, site.folder, changed, site.oracle, site.workers)


def copied(outside: Outside, rows: Sequence[Record], topic: str) -> None:
    """Restore a copy of a topic of state."""
    outside.create_topic(topic, partitions=1, config=COMPACTED)
    outside.produce(topic, [Outgoing(row.value, row.key, row.headers, partition=0) for row in rows])


async def last_words(site: Site, environ: Mapping[str, str] | None = None) -> str:
    """Run an aggregator in this process until it ends, and return the sentence that it ends with."""
    given = {name: value for name, value in site.installation.environment().items() if name.startswith("SAFE_V0_")}
    given |= {"SAFE_V0_HTTP_ADDRESS": "127.0.0.1:0", **(environ or {})}
    worker = Worker(load({}, environ=given, cwd=site.folder), "aggregator")
    with pytest.raises(Fatal) as ended:
        await asyncio.wait_for(worker.run(), DEADLINE_SECONDS)
    return str(ended.value)


def results(site: Site) -> list[int]:
    """How many cases each result counts, in order."""
    return [record.json()["summary"]["total_cases"] for record in site.outside.read(site.topics.result)]


# --- a state and an offset that are not of one transaction ------------------------------------------------------------


async def test_a_state_restored_from_an_older_copy_is_refused_with_both_offsets(site: Site) -> None:
    served(site, range(3))
    older = site.outside.read(site.topics.state)
    reached = site.outside.committed(aggregator_of(site), site.topics.scored)[0]
    served(site, range(3, 5))
    feed(site, range(5, 8))
    copy = replace(site.topics, state=f"{site.topics.state}.copy")
    copied(site.outside, older, copy.state)
    was = site.outside.committed(aggregator_of(site), site.topics.scored)[0]

    said = await last_words(with_topics(site, copy))

    assert f"is committed up to {was} (transactions=" in said
    assert f"{copy.state} is older than the offset" in said
    assert f"set the group's offset to {reached}," in said
    assert results(site) == [1, 2, 3, 4, 5], "nothing may come of it"
    served(site, [])  # with the right one it goes on
    assert results(site) == list(range(1, 9))


async def test_the_remedy_that_it_names_gives_the_right_totals(site: Site) -> None:
    served(site, range(3))
    older = site.outside.read(site.topics.state)
    reached = site.outside.committed(aggregator_of(site), site.topics.scored)[0]
    served(site, range(3, 5))
    copy = replace(site.topics, state=f"{site.topics.state}.copy")
    copied(site.outside, older, copy.state)
    said = await last_words(with_topics(site, copy))
    assert f"its state reaches up to {reached} " in said
    set_offset(site, reached)
    served(with_topics(site, copy), range(5, 8))
    assert results(site) == [1, 2, 3, 4, 5, 4, 5, 6, 7, 8]


async def test_an_offset_that_was_set_back_is_refused_and_named(site: Site) -> None:
    served(site, range(4))
    was = site.outside.committed(aggregator_of(site), site.topics.scored)[0]
    set_offset(site, 1)
    said = await last_words(site)
    assert f"is committed up to 1 (no metadata), but its state reaches up to {was}" in said
    assert f"Set it to {was}" in said
    assert results(site) == [1, 2, 3, 4]
    set_offset(site, was)
    served(site, [4])
    assert results(site) == [1, 2, 3, 4, 5]


async def test_a_copy_with_the_same_offset_and_fewer_transactions_is_refused_too(site: Site) -> None:
    """Reports and forgetting write state without moving the offset: the count alone tells."""
    served(site, range(3))
    rows = site.outside.read(site.topics.state)
    newest = [row for row in rows if row.key == b"progress"][-1]
    progress = newest.json()
    offset, count = progress["next_offset"], progress["transactions"]
    before = encoded({**progress, "transactions": count - 1})
    copy = replace(site.topics, state=f"{site.topics.state}.copy")
    copied(site.outside, [replace(row, value=before) if row is newest else row for row in rows], copy.state)
    said = await last_words(with_topics(site, copy))
    assert f"is committed up to {offset} (transactions={count})" in said
    assert f"reaches up to {offset} (transactions={count - 1})" in said


# --- a topic that was made again --------------------------------------------------------------------------------------


def made_again(site: Site, records: Sequence[Record]) -> None:
    """Delete the topic of scored records, and create it again with these in it."""
    site.outside.delete_topic(site.topics.scored)
    wait_until(lambda: site.outside.partitions(site.topics.scored) == 0, within_seconds=CALL_SECONDS, what="it is gone")
    site.outside.create_topic(site.topics.scored, partitions=1, config={"retention.ms": "604800000"})
    again = [Outgoing(record.value, record.key, record.headers, partition=0) for record in records]
    if again:
        site.outside.produce(site.topics.scored, again)


@pytest.mark.parametrize("setting", ["stop", "earliest"])
@pytest.mark.parametrize("copies", [0, 1, 20], ids=["empty", "shorter", "outgrown"])
async def test_a_scored_topic_that_was_made_again_is_refused_and_nothing_is_written(
    site: Site, copies: int, setting: str
) -> None:
    served(site, range(4))
    records = site.outside.read(site.topics.scored)
    state = site.outside.ends(site.topics.state)[0].log
    made_again(site, records[: max(1, copies)] * copies)
    said = await last_words(site, {"SAFE_V0_OFFSET_OUT_OF_RANGE": setting})
    assert "deleted and created again" in said
    assert "Starting over" in said
    assert results(site) == [1, 2, 3, 4]
    rows = [row for row in site.outside.read(site.topics.state) if row.offset >= state]
    assert rows == [], "a second start must say the same"


@pytest.mark.parametrize("setting", ["stop", "earliest"])
async def test_an_offset_beyond_the_end_is_refused_where_no_id_tells(
    site: Site, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = cluster._seen
    monkeypatch.setattr(cluster, "_seen", lambda metadata: replace(seen(metadata), ids={}))  # as before Kafka 2.8
    served(site, range(4))
    made_again(site, site.outside.read(site.topics.scored)[:1])
    state = site.outside.ends(site.topics.state)[0].log
    said = await last_words(site, {"SAFE_V0_OFFSET_OUT_OF_RANGE": setting})
    assert "is beyond the end of the partition, 1: the topic was deleted and created again" in said
    assert [row for row in site.outside.read(site.topics.state) if row.offset >= state] == []
