"""Three brokers under load, one of which is always in trouble: no input is lost, none is counted twice.

These are single rounds of what `make certify` repeats until the counts say something, on a cluster that misses a broker
after two seconds instead of nine.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certify import drills
from tests.certify.field import Field, Pace
from tests.certify.load import Load, under_load
from tests.conftest import missing
from tests.support.kafka_broker import BrokerUnavailableError
from tests.support.kafka_cluster import QUICK, KafkaCluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.cluster]

LOAD_SECONDS, EVENTS_A_SECOND = 60.0, 50.0
TOLD_SECONDS = 15.0
PACE = Pace(missed=2.0, frozen=5.0, down=5.0, below_minimum=6.0, full=5.0, calm=1.0)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Three brokers for the whole module; every test heals what it has done to them."""
    try:
        made = KafkaCluster(tmp_path_factory.mktemp("cluster") / "nodes", settings=QUICK)
    except BrokerUnavailableError as error:
        missing(f"no cluster: {error}")
    with made:
        yield made.start()
    assert made.left_behind() == []


@pytest.fixture
def field(cluster: KafkaCluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Field]:
    """Three workers under load; what is done to them is printed where a test fails."""
    load = Load(str(request.node.name), LOAD_SECONDS, session_seconds=4, events_a_second=EVENTS_A_SECOND, pace=PACE)
    with under_load(load, cluster, tmp_path, print) as loaded:
        yield loaded


def _problems(field: Field) -> list[str]:
    field.heal()
    _run, problems = field.conclude()
    deaths = [f"{death.worker} ended by itself: {death.last_words}" for death in field.crew.deaths]
    return [*problems, *field.crew.problems, *deaths]


def test_nothing_is_lost_or_doubled_when_the_coordinator_of_a_group_is_killed(field: Field) -> None:
    drills.coordinator_killed(field, 0)

    assert _problems(field) == []


def test_a_coordinator_that_is_cut_off_from_its_fellows_is_not_believed(field: Field) -> None:
    drills.zombie_coordinator(field, 0)

    assert _problems(field) == []


def test_workers_wait_while_too_few_brokers_are_left_to_acknowledge(field: Field) -> None:
    drills.min_isr_broken(field, 0)

    assert _problems(field) == []


def test_a_worker_says_which_partition_has_no_leader_and_serves_the_others(field: Field) -> None:
    topic, only = field.site.topics.input, field.cluster.brokers[3]
    field.cluster.place({(topic, 0): [only.number]})
    only.kill()
    field.cluster.await_missed(only)

    told = f"partition 0 of {topic} has no leader"
    wait_until(lambda: told in str(field.crew.readiness()), within_seconds=TOLD_SECONDS, what=f"a worker says: {told}")
    field.await_progress(without=[(topic, 0)])

    assert _problems(field) == []


def test_brokers_can_be_restarted_one_after_another(field: Field) -> None:
    drills.rolling_restart(field, 1)

    assert _problems(field) == []
