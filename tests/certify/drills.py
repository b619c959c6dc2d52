"""What is done to the cluster and its workers: each drill is one round of a scenario.

A drill leaves brokers down, frozen or cut off as it likes: the round is over when the field has been healed.
"""

from collections.abc import Callable, Sequence

from tests.certify.field import TAKE_OVERS, Field
from tests.support.kafka_cluster import Broker
from tests.support.waiting import wait_until
from tests.support.wrong_clock import set_clock

Drill = Callable[[Field, int], None]

TAKE_OVERS_OF_A_ZOMBIE = 3
NAMED_SECONDS = 30.0
REFUSED = ("refuse the login", "refuses the login", "is not trusted", "no token")
SMALL_DISK_MEGABYTES = 300
KEPT_SECONDS = 1_800
"""Retention of topics, and time to live of batches, where clocks are wrong by an hour or more."""
CLOCK_SECONDS = 15.0
"""Retention is checked every five seconds."""
TOLD_SECONDS = 30.0


def coordinator_killed(field: Field, number: int) -> None:
    """Kill the broker that coordinates a group; partitions move just before and after another one takes its place."""
    rng, missed = field.rng, field.pace.missed
    coordinator = field.coordinator(number)
    successor = field.cluster.next_coordinator(field.group(number))
    [other] = [each for each in field.cluster.followers_of(coordinator) if each is not successor]
    field.say(f"killing broker {coordinator.number}, coordinator of {field.group(number)}")
    field.later(rng.uniform(0.0, 2.0), field.take_over)
    field.later(rng.uniform(2.0, missed), field.take_over)
    # The successor cannot tell for certain what the dead one has acknowledged until the third one has copied from it.
    delay = rng.choice(["none", "frozen", "held back", "held back"])
    if delay == "frozen":
        _freeze(field, other, after=missed * rng.uniform(0.5, 0.8), until=missed * rng.uniform(1.2, 1.4))
    if delay == "held back":
        field.say(f"broker {other.number} can no longer copy from broker {successor.number}")
        other.hold_back(successor)
        field.later(missed + rng.uniform(3.0, 6.0), other.let_go_on)
    coordinator.kill()
    field.run(missed + rng.uniform(6.0, 9.0))


def zombie_coordinator(field: Field, number: int) -> None:
    """Cut the coordinator off from its fellows but not from clients; three take-overs while it answers as before."""
    rng = field.rng
    zombie = field.coordinator(number)
    field.say(f"cutting off broker {zombie.number}, coordinator of {field.group(number)}")
    zombie.cut_off()
    # Until it is missed, nothing can be committed that it does not know; from then on the others leave it behind.
    field.run(field.pace.missed + rng.uniform(6.0, 10.0))
    for kind in rng.sample(TAKE_OVERS, TAKE_OVERS_OF_A_ZOMBIE):
        field.take_over(kind, asking=zombie if rng.random() < 0.3 else None)
        field.run(field.pace.between_take_overs * rng.uniform(0.75, 1.25))


def broker_frozen(field: Field, number: int) -> None:
    """Suspend a broker for 15 seconds: when it wakes it takes itself for what it was."""
    rng = field.rng
    frozen = field.coordinator(number) if number % 3 else rng.choice(list(field.cluster.brokers.values()))
    field.later(rng.uniform(1.0, field.pace.missed), field.take_over)
    # These hang on the frozen broker, and are answered in the first moments after it wakes.
    field.later(rng.uniform(field.pace.frozen - 4.0, field.pace.frozen - 0.2), field.take_over)
    _freeze(field, frozen, after=0.0, until=field.pace.frozen)
    field.run(field.pace.frozen + rng.uniform(3.0, 6.0))


def rolling_restart(field: Field, number: int) -> None:
    """Restart each broker in order, the next one when every replica is in sync; once with an empty disk."""
    for broker in field.cluster.brokers.values():
        field.say(f"restarting broker {broker.number}")
        field.later(field.rng.uniform(0.0, 2.0), field.take_over)
        broker.stop()
        if number == 0 and broker.number == 1:
            field.say(f"replacing the disk of broker {broker.number}")
            broker.replace_disk()
        field.run(field.rng.uniform(0.5, 3.0))
        field.cluster.start_broker(broker)
        field.cluster.await_in_sync()


def rotated(field: Field, _number: int) -> None:
    """Change what brokers ask for, restart each of them, and let the files of the workers follow some seconds later."""
    vault = field.vault
    assert vault is not None, "the scenario has a login"
    vault.change(field.cluster)
    for broker in field.cluster.brokers.values():
        field.say(f"restarting broker {broker.number}, with another secret")
        broker.stop()
        field.run(field.rng.uniform(0.5, 2.0))
        field.cluster.start_broker(broker)
        wait_until(
            lambda: field.crew.names(REFUSED), within_seconds=NAMED_SECONDS, what="a worker names the refused login"
        )
        field.cluster.await_in_sync()
    field.run(field.rng.uniform(0.0, 10.0))
    vault.follow()
    field.say("the files of the workers follow")
    field.later(field.rng.uniform(0.0, 3.0), lambda: field.take_over(field.rng.choice(("kill", "stop"))))
    field.run(field.rng.uniform(5.0, 9.0))


def leaders_moved(field: Field, _number: int) -> None:
    """Move the leaders of `state` and `scored` to other brokers, twice, while both are being written."""
    for _ in range(2):
        if field.rng.random() < 0.5:
            field.take_over()
        field.cluster.move_leaders([field.site.topics.state, field.site.topics.scored])
        field.run(field.rng.uniform(1.0, 3.0))


def cluster_down(field: Field, _number: int) -> None:
    """Kill all brokers at once, and start them after a minute; a worker is harmed meanwhile."""
    field.say("killing all brokers")
    field.later(field.rng.uniform(0.0, field.pace.down), lambda: field.take_over("kill"))
    field.later(field.rng.uniform(field.pace.down / 2, field.pace.down), lambda: field.take_over("freeze"))
    field.cluster.kill_brokers()
    field.run(field.pace.down)


def min_isr_broken(field: Field, number: int) -> None:
    """Leave one broker of three for two minutes: it may answer, but nothing can be acknowledged."""
    lost = field.rng.sample(list(field.cluster.brokers.values()), 2)
    field.say(f"{'freezing' if number % 2 else 'stopping'} brokers {[broker.number for broker in lost]}")
    for broker in lost:
        broker.freeze() if number % 2 else broker.stop()
    for _ in range(3):
        field.later(field.rng.uniform(0.0, field.pace.below_minimum), field.take_over)
    field.run(field.pace.below_minimum)


def disk_full(field: Field, _number: int) -> None:
    """Fill a broker's disk for a minute: it ends itself, and is started when there is room again."""
    broker = field.cluster.brokers[3]
    field.say(f"filling the disk of broker {broker.number}")
    broker.fill_disk()
    field.later(field.rng.uniform(0.0, field.pace.full), field.take_over)
    field.run(field.pace.full)
    field.say(f"broker {broker.number} has {'ended' if broker.has_ended else 'gone on'}")
    wait_until(
        lambda: broker.has_ended, within_seconds=field.pace.full, what="the broker notices that its disk is full"
    )
    broker.free_disk()


def _clock_wrong_by(shifts: Sequence[float]) -> Drill:
    """A drill in which newcomers have a wrong clock, which changes each second if there are several shifts."""

    def drill(field: Field, number: int) -> None:
        topics, folder = field.site.topics, field.site.folder
        for topic in (topics.scored, topics.result, topics.dead_letter):
            field.site.outside.set_topic_config(topic, "retention.ms", str(KEPT_SECONDS * 1_000))
        clock = set_clock(folder / f"clock-{number}", field.rng.choice(shifts))

        def replace_one() -> None:
            field.say(field.crew.harm("kill"))
            newcomer = field.crew.hire(clock=clock)
            field.say(f"started {newcomer.name}, whose clock is ahead by one of {list(shifts)} s")

        for at in range(0, int(CLOCK_SECONDS), 5):  # they take over what others had, and more than once
            field.later(at, replace_one)
        for at in range(1, int(CLOCK_SECONDS)) if len(shifts) > 1 else ():
            field.later(at, lambda: set_clock(clock, field.rng.choice(shifts)))
        field.run(CLOCK_SECONDS)
        set_clock(clock, shifts[-1])
        field.crew.await_told("the clock of this machine is", within_seconds=TOLD_SECONDS)

    return drill


clock_an_hour_ahead = _clock_wrong_by([3_660.0])
clock_an_hour_behind = _clock_wrong_by([-3_660.0])
clock_ten_days_ahead = _clock_wrong_by([864_000.0])
clock_ten_days_behind = _clock_wrong_by([-864_000.0])
clock_jumping = _clock_wrong_by([0.0, 3_660.0, -3_660.0, 864_000.0, -864_000.0])


def _freeze(field: Field, broker: Broker, *, after: float, until: float) -> None:
    def freeze() -> None:
        field.say(f"freezing broker {broker.number}")
        broker.freeze()

    def thaw() -> None:
        field.say(f"broker {broker.number} goes on")
        broker.thaw()

    field.later(after, freeze)
    field.later(until, thaw)
