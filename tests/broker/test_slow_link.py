"""Brokers that let little through: a backlog is worked off in smaller transactions, instead of never.

What a transaction that was given up has sent counts against the quota all the same. `bench.slow_link` is the same at
full size.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.kafka_broker import KafkaBroker
from tests.support.outside import Outside
from tests.support.site import Site

pytestmark = pytest.mark.broker

SEED = 41
BATCHES = make_batches(SEED, batches=4, cases_a_batch=6)
EVENTS = 300
PARTITIONS = 1  # so that one poll brings all of it, and the first slice holds it
CLIENT_ID = "safe"
# A transaction has 2.4 s. To score all at once would take 5 s, to fold it 12 s more.
BYTES_A_SECOND = 64 * 1024
SETTINGS = {"SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS": "3"}
# Kafka counts what was written in the last ten seconds: so much could be written at once before any delay.
BROKER = {"quota.window.num": "2"}
DRAINED_SECONDS = 90.0


@pytest.fixture
def site(own_broker: Callable[..., KafkaBroker], tmp_path: Path) -> Iterator[Site]:
    """A backlog, on a broker that from now on lets little through."""
    broker = own_broker(**BROKER)
    with Outside(broker.bootstrap_servers) as outside:
        cases = write_batches(tmp_path / "cases", BATCHES)
        built = Site.build(outside, tmp_path, cases, partitions=PARTITIONS, settings=SETTINGS)
        built.send(list(event_stream(SEED, BATCHES, EVENTS, partitions=PARTITIONS, repeated=0.5)))
        broker.limit_producers(CLIENT_ID, BYTES_A_SECOND)
        yield built


def test_a_backlog_that_cannot_be_written_at_once_is_written_in_parts(site: Site) -> None:
    with site.worker() as worker:
        site.await_rest(within_seconds=DRAINED_SECONDS)
        run, problems = site.seen()
        dropped = [
            line["why"] for line in worker.log_lines() if line.get("event") == "the records in progress were dropped"
        ]

    assert problems == []
    assert len(run.inputs) == EVENTS
    assert any("the next transaction holds at most half of them" in why for why in dropped), "the limit was never felt"
