"""`exactly_once` on other versions of Kafka: workers that are killed, poison and repeats, and every result is right.

SAFE_TEST_KAFKA_VERSIONS names other versions than those below, with commas between them.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing
from tests.support.broker_log import complaints, names_of
from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.kafka_broker import BrokerUnavailableError, KafkaBroker
from tests.support.kafka_versions import broker_of
from tests.support.outside import Outgoing, Outside
from tests.support.site import Site
from tests.support.waiting import wait_until

pytestmark = pytest.mark.broker

VERSIONS = os.environ.get("SAFE_TEST_KAFKA_VERSIONS", "2.5.1,3.9.1,4.4.0").split(",")
"""The oldest that works, the last one before 4.0, and the newest."""

SEED, EVENTS, PARTITIONS = 36, 2_000, 4
BATCHES = make_batches(SEED, batches=20, cases_a_batch=10)
SESSION = {"SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS": "3"}
SOON_SECONDS = 60.0


@pytest.fixture(params=VERSIONS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    folder = tmp_path_factory.mktemp(f"kafka-{request.param}")
    try:
        broker = broker_of(request.param, folder)
        broker.start()
    except BrokerUnavailableError as error:
        missing(f"no broker of Kafka {request.param}: {error}")
    yield broker
    broker.stop(kill=True)


def test_workers_that_are_killed_double_nothing_and_lose_nothing_and_no_broker_complains(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    with Outside(broker.bootstrap_servers) as outside:
        cases = write_batches(tmp_path / "cases", BATCHES)
        site = Site.build(outside, tmp_path, cases, partitions=PARTITIONS, settings=SESSION)
        stream = list(event_stream(SEED, BATCHES, EVENTS, partitions=PARTITIONS))
        halves = [stream[: EVENTS // 2], stream[EVENTS // 2 :]]
        first, _ = (killed_at_work(site, half, f"killed-{at}") for at, half in enumerate(halves))
        assert [line for line in first if line.get("level") == "error"] == []
        with site.worker(name="last") as last:
            site.await_rest()
            run, problems = site.seen()
            assert last.stop() == 0
        assert problems == []
        assert len(run.results) + len(run.dead_letters) == EVENTS
        assert outside.hanging(site.topics.outputs()) == []
    assert complaints(broker.log, names_of(site), of_any_client=True) == []


def killed_at_work(site: Site, stream: Sequence[Outgoing], name: str) -> list[dict[str, Any]]:
    """Have a worker read a part of the input, and kill it in the middle; returns its log."""
    before = results(site)
    with site.worker(name=name) as worker:
        site.send(stream)
        wait_until(lambda: results(site) > before, within_seconds=SOON_SECONDS, what="it works", every_seconds=0.02)
        worker.kill()
        return worker.log_lines()


def results(site: Site) -> int:
    return sum(ends.log for ends in site.outside.ends(site.topics.result).values())
