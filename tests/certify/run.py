"""One run: a cluster, an installation under steady load, the rounds of a drill, and the oracle's verdict."""

import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.certify.field import Field
from tests.certify.load import Delivery, Load, under_load
from tests.certify.scenarios import Scenario
from tests.certify.vault import vault_of
from tests.support.kafka_cluster import KafkaCluster

START_SECONDS = 20.0
# The default of the product, and one so short that partitions move before the cluster has noticed anything.
SESSION_SECONDS = (10, 4)
# Many records in a transaction, which then writes to all partitions; and few, which leaves most of them out of it.
EVENTS_A_SECOND = (100.0, 15.0)
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

    def load(self) -> Load:
        """Return the load of this run: the same for the same seed, whatever ran before it."""
        return Load(
            f"{self.seed} {self.scenario.name} {self.number}",
            START_SECONDS + self.rounds * self.scenario.round_seconds,
            self.delivery,
            SESSION_SECONDS[self.number // 2 % 2],
            EVENTS_A_SECOND[self.number % 2],
            checkout=self.checkout,
            settings=self.scenario.worker_settings,
        )


def carry_out(order: Order, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Make one run and return its line of the results; whatever goes wrong is a problem of the run."""
    begun, load = time.monotonic(), order.load()
    line: dict[str, Any] = {
        "scenario": order.scenario.name,
        "delivery": order.delivery,
        "run": order.number,
        "seed": order.seed,
        "asked": order.rounds,
        "session_seconds": load.session_seconds,
        "events_a_second": load.events_a_second,
        "rounds": 0,
        "round_seconds": [],
        "problems": [],
    }
    scenario = order.scenario
    with ExitStack() as stack:
        vault = stack.enter_context(vault_of(scenario.login, folder / "vault")) if scenario.login else None
        settings = {**scenario.settings, **(vault.broker_settings() if vault else {})}
        cluster = stack.enter_context(
            KafkaCluster(
                folder / "cluster",
                settings=settings,
                disk_megabytes=scenario.disk_megabytes,
                guarded=scenario.login,
            )
        )
        if vault:
            vault.prepare(cluster)
        cluster.start()
        try:
            with under_load(load, cluster, folder, say, vault) as field:
                _rounds(order, field, line)
        except Exception as error:  # noqa: BLE001 - a run that cannot be finished is a problem of its own, with its words
            line["problems"].append(f"run: {type(error).__name__}: {str(error)[:3000]}")
            say("".join(traceback.format_exception_only(error))[:600])
    return line | {"seconds": round(time.monotonic() - begun, 1)}


def _rounds(order: Order, field: Field, line: dict[str, Any]) -> None:
    try:
        for number in range(order.rounds):
            begun = time.monotonic()
            order.scenario.drill(field, order.number * order.scenario.rounds_a_run + number)
            field.heal()
            line["rounds"] += 1
            line["round_seconds"].append(round(time.monotonic() - begun, 1))
            field.say(f"round {number + 1} of {order.rounds} took {line['round_seconds'][-1]} s")
        _judge(order, field, line)
    except Exception:
        line["problems"] += field.crew.readiness()
        raise
    finally:
        line["problems"] += field.crew.problems
        line["deaths"] = [asdict(death) for death in field.crew.deaths]
        line["workers"] = dict(field.crew.harms)


def _judge(order: Order, field: Field, line: dict[str, Any]) -> None:
    run, problems = field.conclude(repeats_allowed=order.delivery == "at_least_once")
    line |= {"inputs": len(run.inputs), "results": len(run.results), "dead_letters": len(run.dead_letters)}
    line["problem_counts"] = dict(Counter(problem.partition(":")[0].partition(" of ")[0] for problem in problems))
    line["problems"] += problems[:PROBLEMS_KEPT]
