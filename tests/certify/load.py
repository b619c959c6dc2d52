"""An installation of three workers on a cluster, under a steady load that is made for it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Literal, get_args

from tests.certify.crew import WORKERS, Crew
from tests.certify.field import Field, Pace
from tests.certify.vault import Vault, addresses
from tests.support.cases import WrittenBatch, event_stream, make_batches, write_batches
from tests.support.feeder import SteadyFeeder
from tests.support.kafka_broker import PROJECT
from tests.support.kafka_cluster import KafkaCluster
from tests.support.outside import Outside
from tests.support.site import Site

Delivery = Literal["exactly_once", "at_least_once"]
DELIVERIES: tuple[Delivery, ...] = get_args(Delivery)
PARTITIONS = 6
CASES_A_BATCH = 50
REPEATED, POISON = 0.1, 0.01
ENDLESS = 10_000_000


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent to whom: the seed makes cases and inputs, and decides what is done to brokers and workers.

    `seconds` is how long the load will last, about: there are as many cases as make one input in ten a repeated one.
    """

    seed: str
    seconds: float
    delivery: Delivery = "exactly_once"
    session_seconds: int = 10
    events_a_second: float = 100.0
    pace: Pace = field(default_factory=Pace)
    checkout: Path = PROJECT
    settings: Mapping[str, str] = field(default_factory=dict)

    def batches(self) -> tuple[WrittenBatch, ...]:
        """Make the test cases."""
        count = int(self.events_a_second * self.seconds * (1 - REPEATED) / CASES_A_BATCH) + 1
        return make_batches(Random(self.seed).randrange(2**31), batches=count, cases_a_batch=CASES_A_BATCH)


@contextmanager
def under_load(
    load: Load, cluster: KafkaCluster, folder: Path, say: Callable[[str], None], vault: Vault | None = None
) -> Iterator[Field]:
    """Start the workers and the load, and yield when all is well; nothing of it outlives the block.

    With a vault, the workers have to log in.
    """
    batches = load.batches()
    cluster.restore()
    with Outside(cluster.bootstrap_servers) as outside:
        site = _site(load, outside, folder, batches)
        if vault is not None:
            vault.open(cluster)
            told = site.installation
            settings = {**told.settings, **vault.worker_settings()}
            site.installation = replace(told, bootstrap_servers=addresses(cluster), settings=settings)
        seed = Random(load.seed).randrange(2**31)
        stream = event_stream(seed, batches, ENDLESS, partitions=PARTITIONS, repeated=REPEATED, poison=POISON)
        crew = Crew(site, Random(load.seed))
        try:
            feeding = SteadyFeeder(outside.bootstrap_servers, site.topics.input, stream, a_second=load.events_a_second)
            with feeding as feeder:
                for _ in range(WORKERS):
                    crew.hire()
                loaded = Field(
                    cluster,
                    site,
                    feeder,
                    crew,
                    crew.rng,
                    PARTITIONS,
                    float(load.session_seconds),
                    say,
                    load.pace,
                    vault,
                )
                loaded.heal()
                yield loaded
        finally:
            site.discard()


def _site(load: Load, outside: Outside, folder: Path, batches: tuple[WrittenBatch, ...]) -> Site:
    settings = {
        "SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS": str(load.session_seconds),
        "SAFE_V0_DELIVERY": load.delivery,
        "SAFE_V0_LOG_LEVEL": "debug",  # says of each take-up which offset was believed
        **load.settings,
    }
    cases = write_batches(folder / "cases", batches)
    site = Site.build(outside, folder, cases, partitions=PARTITIONS, replication_factor=3, settings=settings)
    site.installation = replace(site.installation, checkout=load.checkout)
    if load.delivery == "at_least_once":  # as `safe topics create` makes them
        for topic in (site.topics.scored, site.topics.state):
            outside.set_topic_config(topic, "message.timestamp.type", "LogAppendTime")
    return site
