"""What is done to the cluster and its workers: each drill is one round of a scenario.

A drill leaves brokers down, frozen or cut off as it likes: the round is over when the field has been healed.
"""

import random
from collections.abc import Callable
from itertools import cycle, islice

from tests.certify.crew import TAKE_OVERS
from tests.certify.field import Field
from tests.support.kafka_cluster import Broker
from tests.support.waiting import wait_until

Drill = Callable[[Field, int], None]

# A broker that says nothing is missed after nine seconds, and its partitions are led by others right after.
MISSED_SECONDS = 9.0
TAKE_OVERS_OF_A_ZOMBIE = 3
FROZEN_SECONDS = 15.0
DOWN_SECONDS = 60.0
BELOW_MINIMUM_SECONDS = 120.0
FULL_SECONDS = 60.0
SMALL_DISK_MEGABYTES = 300


def coordinator_killed(field: Field, number: int) -> None:
    """Kill the broker that coordinates a group; partitions move just before and after another one takes its place."""
    rng = field.rng
    coordinator = field.coordinator(number)
    standby = field.cluster.next_coordinator(field.group(number))
    [other] = [each for each in field.cluster.followers_of(coordinator) if each is not standby]
    field.say(f"killing broker {coordinator.number}, coordinator of {field.group(number)}")
    field.later(rng.uniform(0.0, 2.0), field.take_over)
    field.later(rng.uniform(2.0, MISSED_SECONDS), field.take_over)
    if rng.random() < 0.6:  # what the dead one has acknowledged cannot be told for certain while a follower is silent
        _freeze(field, other, after=rng.uniform(4.0, 7.0), until=rng.uniform(11.0, 13.0))
    coordinator.kill()
    field.run(MISSED_SECONDS + rng.uniform(5.0, 8.0))


def zombie_coordinator(field: Field, number: int) -> None:
    """Cut the coordinator off from its fellows but not from clients; three take-overs while it answers as before."""
    rng = field.rng
    zombie = field.coordinator(number)
    field.say(f"cutting off broker {zombie.number}, coordinator of {field.group(number)}")
    zombie.cut_off()
    # Until it is missed, nothing can be committed that it does not know; after it, the others go on without it.
    field.run(MISSED_SECONDS + rng.uniform(1.0, 4.0))
    for kind in islice(cycle(rng.sample(TAKE_OVERS, len(TAKE_OVERS))), TAKE_OVERS_OF_A_ZOMBIE):
        field.take_over(kind, asking=zombie if rng.random() < 0.5 else None)
        field.run(rng.uniform(7.0, 10.0))


def broker_frozen(field: Field, number: int) -> None:
    """Suspend a broker for 15 seconds: when it wakes it takes itself for what it was."""
    rng = field.rng
    frozen = field.coordinator(number) if number % 3 else rng.choice(list(field.cluster.brokers.values()))
    field.say(f"freezing broker {frozen.number}")
    field.later(rng.uniform(1.0, MISSED_SECONDS), field.take_over)
    # These hang on the frozen broker, and are answered in the first moments after it wakes.
    field.later(rng.uniform(FROZEN_SECONDS - 4.0, FROZEN_SECONDS - 0.2), field.take_over)
    _freeze(field, frozen, after=0.0, until=FROZEN_SECONDS)
    field.run(FROZEN_SECONDS + rng.uniform(3.0, 6.0))


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
    field.later(field.rng.uniform(0.0, DOWN_SECONDS), lambda: field.take_over("kill"))
    field.later(field.rng.uniform(DOWN_SECONDS / 2, DOWN_SECONDS), lambda: field.take_over("freeze"))
    field.cluster.kill_brokers()
    field.run(DOWN_SECONDS)


def min_isr_broken(field: Field, number: int) -> None:
    """Leave one broker of three for two minutes: it may answer, but nothing can be acknowledged."""
    lost = field.rng.sample(list(field.cluster.brokers.values()), 2)
    field.say(f"{'freezing' if number % 2 else 'stopping'} brokers {[broker.number for broker in lost]}")
    for broker in lost:
        broker.freeze() if number % 2 else broker.stop()
    for _ in range(3):
        field.later(field.rng.uniform(0.0, BELOW_MINIMUM_SECONDS), field.take_over)
    field.run(BELOW_MINIMUM_SECONDS)


def disk_full(field: Field, _number: int) -> None:
    """Fill a broker's disk for a minute: it ends itself, and is started when there is room again."""
    broker = field.cluster.brokers[3]
    field.say(f"filling the disk of broker {broker.number}")
    broker.fill_disk()
    field.later(field.rng.uniform(0.0, FULL_SECONDS), field.take_over)
    field.run(FULL_SECONDS)
    field.say(f"broker {broker.number} has {'ended' if broker.has_ended else 'gone on'}")
    wait_until(lambda: broker.has_ended, within_seconds=FULL_SECONDS, what="the broker notices that its disk is full")
    broker.free_disk()


def _freeze(field: Field, broker: Broker, *, after: float, until: float) -> None:
    def freeze() -> None:
        field.say(f"freezing broker {broker.number}")
        broker.freeze()

    def thaw() -> None:
        field.say(f"broker {broker.number} goes on")
        broker.thaw()

    field.later(after, freeze)
    field.later(until, thaw)


def seeded(seed: int, name: str, run: int) -> random.Random:
    """Return the chance of one run: the same for the same seed, whatever ran before it."""
    return random.Random(f"{seed} {name} {run}")
