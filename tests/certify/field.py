"""One installation on one cluster, and a clock by which things are done to both."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka import KafkaException

from tests.certify.crew import TAKE_OVERS, Crew, TakeOver
from tests.support.kafka_cluster import Broker, KafkaCluster
from tests.support.site import Site
from tests.support.waiting import wait_until

TICK_SECONDS = 0.05
PROGRESS_SECONDS = 120.0
# Between two rounds the load runs undisturbed: offsets are committed and copied, so that a past can go stale.
CALM_SECONDS = (2.0, 5.0)


@dataclass(slots=True)
class Field:
    """What a drill works with: the cluster, the workers, chance, and a list of what is due when."""

    cluster: KafkaCluster
    site: Site
    crew: Crew
    rng: random.Random
    partitions: int
    session_seconds: float
    say: Callable[[str], None]
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
        frozen_seconds = self.session_seconds + self.rng.uniform(1.0, 4.0)
        bootstrap = asking.address if asking else None
        self.say(self.crew.take_over(chosen, frozen_seconds=frozen_seconds, bootstrap_servers=bootstrap))

    def heal(self) -> None:
        """Undo what was done to brokers and workers, and wait until everything is as it was before the round."""
        self._due.clear()
        self.cluster.restore()
        self.crew.settle()
        self._await_progress()
        self.run(self.rng.uniform(*CALM_SECONDS))

    def _await_progress(self) -> None:
        known = wait_until(self._committed, within_seconds=PROGRESS_SECONDS, what="both groups have committed")
        wait_until(
            lambda: all(value > known[place] for place, value in (self._committed() or known).items()),
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
