"""One installation on one cluster, and a clock by which things are done to both."""

import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Literal

from confluent_kafka import KafkaException

from tests.certify.crew import HARMS, Crew, Harm
from tests.certify.vault import Vault
from tests.support.checker import Run
from tests.support.feeder import SteadyFeeder
from tests.support.kafka_cluster import Broker, KafkaCluster
from tests.support.site import Site
from tests.support.waiting import wait_until

TakeOver = Harm | Literal["start"]
TAKE_OVERS: tuple[TakeOver, ...] = (*HARMS, "start")
TICK_SECONDS = 0.05
PROGRESS_SECONDS = 120.0
REST_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things are left broken, in seconds; a broker is missed when it has said nothing for `missed`."""

    missed: float = 9.0
    frozen: float = 15.0
    down: float = 60.0
    below_minimum: float = 120.0
    full: float = 60.0
    between_take_overs: float = 8.0
    # Between two rounds the load runs undisturbed: offsets are committed and copied, so that a past can go stale.
    calm: float = 4.0


@dataclass(slots=True)
class Field:
    """What a drill works with: the cluster, the workers, chance, and a list of what is due when."""

    cluster: KafkaCluster
    site: Site
    feeder: SteadyFeeder
    crew: Crew
    rng: random.Random
    partitions: int
    session_seconds: float
    say: Callable[[str], None]
    pace: Pace = field(default_factory=Pace)
    vault: Vault | None = None
    _due: list[tuple[float, Callable[[], object]]] = field(default_factory=list)

    def group(self, number: int) -> str:
        """Return the scorer's group for even numbers and the aggregator's for odd ones."""
        return self.site.group if number % 2 == 0 else f"{self.site.group}.aggregator"

    def coordinator(self, number: int) -> Broker:
        """Return the broker that coordinates the group of that number."""
        return self.cluster.coordinator_of(self.group(number))

    def later(self, seconds: float, action: Callable[[], object]) -> None:
        """Do something while the clock runs, so many seconds from now."""
        self._due.append((time.monotonic() + seconds, action))

    def run(self, seconds: float) -> None:
        """Let time pass, and do what is due meanwhile."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            now = time.monotonic()
            for each in sorted((each for each in self._due if each[0] <= now), key=lambda each: each[0]):
                self._due.remove(each)
                each[1]()
            self.crew.thaw()
            time.sleep(TICK_SECONDS)

    def take_over(self, kind: TakeOver | None = None, *, asking: Broker | None = None) -> None:
        """Make partitions move between workers now; a newcomer may be told of one broker only to begin with."""
        chosen: TakeOver = kind if kind is not None else self.rng.choice(TAKE_OVERS)
        if chosen == "start":
            self._hire(asking)
            return
        frozen_seconds = self.session_seconds + self.rng.uniform(1.0, 4.0)
        self.say(self.crew.harm(chosen, frozen_seconds=frozen_seconds))
        if chosen != "freeze":  # the partitions go to a newcomer, or first to those that are left
            after = self.rng.choice([0.0, self.session_seconds + self.rng.uniform(1.0, 4.0)])
            self.later(after, lambda: self._hire(asking))

    def _hire(self, asking: Broker | None) -> None:
        newcomer = self.crew.hire(bootstrap_servers=asking.address if asking else None)
        self.say(f"started {newcomer.name}{f', told of broker {asking.number} only' if asking else ''}")

    def heal(self) -> None:
        """Undo what was done to brokers and workers, and wait until everything is as it was before the round."""
        self._due.clear()
        self.cluster.restore()
        self.crew.settle()
        self.await_progress()
        self.run(self.rng.uniform(0.5, 1.0) * self.pace.calm)

    def conclude(self, *, repeats_allowed: bool = False) -> tuple[Run, list[str]]:
        """Pause the load, wait until all is read, and return the run with what the oracle finds wrong with it."""
        self.feeder.pause()
        self.site.await_rest(within_seconds=REST_SECONDS)
        self.crew.settle()
        return self.site.seen(repeats_allowed=repeats_allowed)

    def await_progress(self, *, without: Collection[tuple[str, int]] = ()) -> None:
        """Wait until both groups have gone on in every partition, but for those named."""
        known = wait_until(self._committed, within_seconds=PROGRESS_SECONDS, what="both groups have committed")
        wait_until(
            lambda: all(
                value > known[place] for place, value in (self._committed() or known).items() if place not in without
            ),
            within_seconds=PROGRESS_SECONDS,
            what=f"both groups go on in every partition from {known}",
            every_seconds=0.3,
        )

    def _committed(self) -> dict[tuple[str, int], int] | None:
        """Return where both groups are in each partition, None where one of them cannot be told."""
        places: dict[tuple[str, int], int] = {}
        for number, topic in enumerate((self.site.topics.input, self.site.topics.scored)):
            try:
                committed = self.site.outside.committed(self.group(number), topic)
            except KafkaException:
                return None
            places |= {(topic, partition): offset for partition, offset in committed.items()}
        return places if len(places) == 2 * self.partitions else None
