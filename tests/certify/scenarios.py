"""The scenarios: which drill, how many rounds, how many of them over one installation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.certify import drills
from tests.certify.drills import Drill
from tests.certify.load import Delivery
from tests.certify.vault import Way


@dataclass(frozen=True, slots=True)
class Scenario:
    """A drill with the rounds that it is repeated for in `exactly_once`; `round_seconds` is what one takes, about."""

    name: str
    drill: Drill
    rounds: int
    rounds_a_run: int
    round_seconds: float
    settings: Mapping[str, str] = field(default_factory=dict)
    disk_megabytes: Mapping[int, int] = field(default_factory=dict)
    worker_settings: Mapping[str, str] = field(default_factory=dict)
    login: Way | None = None

    def rounds_in(self, delivery: Delivery) -> int:
        """Return how many rounds are asked for: an eighth, rounded up, where transactions take no part."""
        return self.rounds if delivery == "exactly_once" else -(-self.rounds // 8)

    def runs_in(self, delivery: Delivery) -> Iterator[tuple[int, int]]:
        """Yield the number of each run and its rounds."""
        rounds = self.rounds_in(delivery)
        for number, first in enumerate(range(0, rounds, self.rounds_a_run)):
            yield number, min(self.rounds_a_run, rounds - first)


# A dead broker is missed nine seconds after its last heartbeat. With one each half second instead of every two seconds,
# that is always later than the eight seconds after which a worker gives up a commit: it takes its partitions up again
# just when a new coordinator begins to answer.
MISSED_LATE = {"broker.heartbeat.interval.ms": "500"}


def _wrong_clock(name: str, drill: Drill) -> Scenario:
    """Retention looks at `scored` every few seconds; an hour is more than what it keeps, and than what may be idle."""
    return Scenario(
        name, drill, 10, 5, 40.0,
        settings={"log.retention.check.interval.ms": "5000", "log.initial.task.delay.ms": "1000"},
        worker_settings={"SAFE_V0_BATCH_TTL_SECONDS": str(drills.KEPT_SECONDS)},
    )  # fmt: skip


SCENARIOS = (
    Scenario("coordinator_killed", drills.coordinator_killed, 60, 5, 35.0, settings=MISSED_LATE),
    Scenario("zombie_coordinator", drills.zombie_coordinator, 15, 3, 60.0),
    Scenario("broker_frozen", drills.broker_frozen, 15, 5, 35.0),
    Scenario("rolling_restart", drills.rolling_restart, 10, 5, 35.0),
    Scenario("leaders_moved", drills.leaders_moved, 10, 5, 20.0),
    Scenario("cluster_down", drills.cluster_down, 3, 3, 90.0),
    Scenario("min_isr_broken", drills.min_isr_broken, 2, 2, 150.0),
    Scenario("password_rotated", drills.rotated, 10, 5, 70.0, login="PASSWORD"),
    Scenario("certificate_rotated", drills.rotated, 10, 5, 70.0, login="CERTIFICATE"),
    Scenario("token_rotated", drills.rotated, 10, 5, 70.0, login="TOKEN"),
    Scenario("disk_full", drills.disk_full, 1, 1, 90.0, disk_megabytes={3: drills.SMALL_DISK_MEGABYTES}),
    _wrong_clock("clock_an_hour_ahead", drills.clock_an_hour_ahead),
    _wrong_clock("clock_an_hour_behind", drills.clock_an_hour_behind),
    _wrong_clock("clock_ten_days_ahead", drills.clock_ten_days_ahead),
    _wrong_clock("clock_ten_days_behind", drills.clock_ten_days_behind),
    _wrong_clock("clock_jumping", drills.clock_jumping),
)
