"""One run: a cluster, an installation under steady load, the rounds of a drill, and the oracle's verdict."""

import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tests.certify.crew import WORKERS, Crew
from tests.certify.drills import seeded
from tests.certify.field import Field
from tests.certify.scenarios import Delivery, Scenario
from tests.support.cases import WrittenBatch, event_stream, make_batches, write_batches
from tests.support.feeder import SteadyFeeder
from tests.support.kafka_cluster import KafkaCluster
from tests.support.outside import Outside
from tests.support.site import Site

PARTITIONS = 6
EVENTS_A_SECOND = 100.0
CASES_A_BATCH = 50
REPEATED = 0.1
ENDLESS = 10_000_000
START_SECONDS, REST_SECONDS = 20.0, 180.0
# The default of the product, and one so short that partitions move before the cluster has noticed anything.
SESSION_SECONDS = (10, 4)
PROBLEMS_KEPT = 12


@dataclass(frozen=True, slots=True)
class Order:
    """Which run is to be made, of which code."""

    scenario: Scenario
    delivery: Delivery
    number: int
    rounds: int
    seed: int
    checkout: Path

    @property
    def name(self) -> str:
        """What a person calls this run."""
        return f"{self.scenario.name} {self.delivery} run {self.number}"


def carry_out(order: Order, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Make one run and return its line of the results; whatever goes wrong is a problem of the run."""
    begun = time.monotonic()
    verdict: dict[str, Any] = {
        "scenario": order.scenario.name,
        "delivery": order.delivery,
        "run": order.number,
        "rounds": 0,
        "seed": order.seed,
        "problems": [],
    }
    with KafkaCluster(folder / "cluster", disk_megabytes=order.scenario.disk_megabytes) as cluster:
        cluster.start()
        with Outside(cluster.bootstrap_servers) as outside:
            _rounds_and_verdict(order, folder, cluster, outside, say, verdict)
    return verdict | {"seconds": round(time.monotonic() - begun, 1)}


def _rounds_and_verdict(
    order: Order,
    folder: Path,
    cluster: KafkaCluster,
    outside: Outside,
    say: Callable[[str], None],
    verdict: dict[str, Any],
) -> None:
    batches = _batches(order)
    session_seconds = SESSION_SECONDS[order.number % len(SESSION_SECONDS)]
    site = _site(order, folder, outside, batches, session_seconds)
    rng = seeded(order.seed, order.scenario.name, order.number)
    crew = Crew(site, rng)
    try:
        _drill(order, Field(cluster, site, crew, rng, PARTITIONS, session_seconds, say), batches, verdict)
        _judge(order, site, verdict)
    except Exception as error:  # noqa: BLE001 - a run that cannot be finished is a problem of its own, with its words
        verdict["problems"].append(f"run: {type(error).__name__}: {str(error)[:3000]}")
        verdict["problems"] += crew.readiness()
        say("".join(traceback.format_exception_only(error))[:600])
    finally:
        crew.thaw(all_of_them=True)
        site.discard()
    verdict["session_seconds"] = session_seconds
    verdict["problems"] += crew.problems
    verdict["deaths"] = [asdict(death) for death in crew.deaths]
    verdict["workers"] = dict(crew.harms)


def _batches(order: Order) -> tuple[WrittenBatch, ...]:
    """Make as many cases as the load will need, so that one input in ten is a repeated one."""
    events = EVENTS_A_SECOND * (START_SECONDS + order.rounds * order.scenario.round_seconds)
    count = int(events * (1 - REPEATED) / CASES_A_BATCH) + 1
    return make_batches(order.seed, batches=count, cases_a_batch=CASES_A_BATCH)


def _site(
    order: Order, folder: Path, outside: Outside, batches: tuple[WrittenBatch, ...], session_seconds: float
) -> Site:
    settings = {
        "SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS": str(session_seconds),
        "SAFE_V0_DELIVERY": order.delivery,
    }
    cases = write_batches(folder / "cases", batches)
    site = Site.build(outside, folder, cases, partitions=PARTITIONS, replication_factor=3, settings=settings)
    site.installation = replace(site.installation, checkout=order.checkout)
    return site


def _drill(order: Order, field: Field, batches: tuple[WrittenBatch, ...], verdict: dict[str, Any]) -> None:
    for _ in range(WORKERS):
        field.crew.hire()
    topic = field.site.topics.input
    stream = event_stream(order.seed + order.number, batches, ENDLESS, partitions=PARTITIONS, repeated=REPEATED)
    verdict["round_seconds"] = []
    with SteadyFeeder(field.cluster.bootstrap_servers, topic, stream, a_second=EVENTS_A_SECOND):
        field.heal()
        for number in range(order.rounds):
            begun = time.monotonic()
            order.scenario.drill(field, order.number * order.scenario.rounds_a_run + number)
            field.heal()
            verdict["rounds"] += 1
            verdict["round_seconds"].append(round(time.monotonic() - begun, 1))
            field.say(f"round {number + 1} of {order.rounds} took {verdict['round_seconds'][-1]} s")
    field.site.await_rest(within_seconds=REST_SECONDS)
    field.crew.bury()


def _judge(order: Order, site: Site, verdict: dict[str, Any]) -> None:
    run, problems = site.seen(repeats_allowed=order.delivery == "at_least_once")
    verdict["inputs"], verdict["results"] = len(run.inputs), len(run.results)
    verdict["dead_letters"] = len(run.dead_letters)
    verdict["problem_counts"] = dict(Counter(problem.partition(":")[0].partition(" of ")[0] for problem in problems))
    verdict["problems"] += problems[:PROBLEMS_KEPT]
