"""Workers whose clock is wrong: nothing is forgotten for it, nothing is stamped with it, and it is said."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.broker.test_operation import BATCH, KEY, last_report, reconfigured, scored_input, standing_rows
from tests.support.cases import write_batches
from tests.support.outside import Outgoing, Record
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Worker
from tests.support.wrong_clock import VARIABLE, set_clock

pytestmark = pytest.mark.broker

HOUR, DAY = 3_600, 86_400
NEVER = str(2**63 - 1)
TOLD_SECONDS = 30.0
STAMPED_WITHIN_MS = 60_000
# Brokers before 4.0 accept any time; so does a topic with this setting.
AS_BEFORE_KAFKA_4 = {"message.timestamp.after.max.ms": NEVER}


def with_clock(site: Site, folder: Path, seconds_ahead: float, **settings: str) -> Site:
    """The same installation, for workers whose clock is ahead by this much."""
    path = set_clock(folder / f"clock{seconds_ahead:+.0f}", seconds_ahead)
    return reconfigured(site, **{VARIABLE: str(path)}, **settings)


def remarks(worker: Worker) -> str:
    """What /readyz says besides."""
    return worker.get("/readyz")[1]


def written(site: Site) -> list[Record]:
    """All that SAFE has written and whose time readers see; marks without a meaning have none."""
    return [
        record
        for topic in site.topics.outputs()
        for record in site.outside.read(topic)
        if record.key != b"mark" and record.timestamp != -1
    ]


@pytest.fixture
def site(site_over: Any, tmp_path: Path) -> Site:
    built: Site = site_over(write_batches(tmp_path / "cases", [BATCH]), partitions=2)
    return built


@pytest.mark.parametrize(
    ("seconds_ahead", "topics"),
    [
        (10 * DAY, AS_BEFORE_KAFKA_4),  # forgot all batches at once
        (2 * HOUR, {}),  # had every write refused
        (-10 * DAY, {}),  # wrote what retention deletes unread
    ],
    ids=["ten days ahead", "two hours ahead", "ten days behind"],
)
@pytest.mark.parametrize("roles", [("all",), ("aggregator", "scorer")], ids=" and ".join)
def test_a_worker_with_a_wrong_clock_does_as_any_other(
    site: Site, tmp_path: Path, seconds_ahead: int, topics: Mapping[str, str], roles: tuple[str, ...]
) -> None:
    for topic in site.topics.outputs():
        for name, value in topics.items():
            site.outside.set_topic_config(topic, name, value)
    site.send([scored_input(at) for at in range(3)])
    with site.worker(name="right") as right:
        site.await_rest()
        wait_until(lambda: last_report(site), within_seconds=20, what="a report")
        assert right.stop() == 0
    began_ms = time.time() * 1_000

    wrong = with_clock(site, tmp_path, seconds_ahead)
    workers = [wrong.spawn(f"wrong {role}", role=role) for role in roles]
    for worker in workers:
        worker.await_ready()
    # Only a worker that has seen the end of `scored` forgets: by then it would have.
    [aggregator] = [worker for worker in workers if worker.role != "scorer"]
    ends = {("topic", site.topics.scored)}
    wait_until(
        lambda: (
            aggregator.total("safe_consumer_lag_records", topic=site.topics.scored) == 0
            and len([series for series in aggregator.series("safe_consumer_lag_records") if ends <= set(series)]) == 2
        ),
        within_seconds=20,
        what="it has read all of scored",
    )
    site.send([Outgoing(b"{}", partition=1)])
    site.await_rest()
    site.send([scored_input(3)])
    site.await_rest()
    wait_until(
        lambda: last_report(site)["summary"]["total_cases"] == 4,
        within_seconds=20,
        what="the report counts the cases of before",
    )
    for worker in workers:
        wait_until(
            lambda worker=worker: "the clock of this machine is" in remarks(worker),  # type: ignore[misc]
            within_seconds=TOLD_SECONDS,
            what="it says that its clock is wrong",
        )
        assert worker.is_ready()
        [skew] = worker.series("safe_clock_skew_seconds").values()
        assert abs(skew - seconds_ahead) < 60
        assert worker.total("safe_batches_reopened_total") == 0
    assert len(standing_rows(site)) == 1 + 4, f"no row of {KEY} is gone"
    now_ms = time.time() * 1_000
    stamps = {record.timestamp for record in written(site)}
    assert min(stamps) > began_ms - 10 * STAMPED_WITHIN_MS
    assert max(stamps) < now_ms + STAMPED_WITHIN_MS
    assert site.seen()[1] == []


def test_without_transactions_acknowledgements_tell_the_time(site: Site, tmp_path: Path) -> None:
    for topic in (site.topics.scored, site.topics.state):
        site.outside.set_topic_config(topic, "message.timestamp.type", "LogAppendTime")
    wrong = with_clock(site, tmp_path, 2 * HOUR, SAFE_V0_DELIVERY="at_least_once")
    site.send([Outgoing(b"{}", partition=0)])  # the first that it writes, whose acknowledgement tells no time
    scorer = wrong.spawn("scorer", role="scorer")
    wait_until(lambda: site.outside.read(site.topics.dead_letter), within_seconds=30, what="a dead letter")
    aggregator = wrong.spawn("aggregator", role="aggregator")
    site.send([scored_input(at) for at in range(3)])
    site.await_rest()
    wait_until(lambda: last_report(site), within_seconds=20, what="a report")
    for worker in (scorer, aggregator):
        assert worker.await_ready().series("safe_clock_skew_seconds")[()] == pytest.approx(2 * HOUR, abs=60)
    stamps = [record.timestamp for record in written(site)]
    [dead_letter] = site.outside.read(site.topics.dead_letter)
    assert dead_letter.timestamp == -1, "it came before any acknowledgement that tells the time"
    assert max(stamps) < time.time() * 1_000 + STAMPED_WITHIN_MS
    assert site.seen()[1] == []
