"""`python -m tests.certify.zombies`: workers frozen, killed, or overtaken by their own requests, in a transaction.

Each round has one worker that is trapped at one place of a transaction, and an heir that takes its partitions over.
`--frozen` lets the first one go on afterwards: nothing may be there twice. `--killed` measures how long readers are
held back by what it has left open. `--late` holds one of its requests back until it has begun anew, `--unanswered` an
answer for ever. Workers may be of other checkouts or lack a guard, and the broker may be of another version of Kafka.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.certify.mutants import MUTANTS, copied, named
from tests.support import trapped
from tests.support.broker_log import complaints, names_of
from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.guardian import leave_nothing
from tests.support.kafka_broker import PROJECT
from tests.support.kafka_versions import broker_of
from tests.support.outside import Outgoing, Outside
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Worker

SEED, PARTITIONS, EVENTS = 36, 3, 60
BATCHES = make_batches(SEED, batches=4, cases_a_batch=6)
SESSION = "SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS"
WITHIN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Rounds:
    """What is done in every round: of which checkouts the two workers are, and where everything is."""

    outside: Outside
    folder: Path
    cases: Path
    victims: Path
    heirs: Path

    def site(self, session_seconds: str) -> Site:
        """Make topics and a group for one round."""
        settings = {SESSION: session_seconds}
        return Site.build(self.outside, self.folder, self.cases, partitions=PARTITIONS, settings=settings)

    def worker(self, site: Site, name: str, checkout: Path, trap: Path | None = None) -> Worker:
        """Start one scorer, and wait until it is ready."""
        more = {} if trap is None else {trapped.VARIABLE: str(trap)}
        told = replace(site.installation, checkout=checkout, settings={**site.installation.settings, **more})
        worker = Worker(told, self.folder, role="scorer", name=name)
        site.workers.append(worker)
        return worker.await_ready()

    def stream(self, at: int) -> list[Outgoing]:
        """Return the inputs of one round."""
        return list(event_stream(SEED + at, BATCHES, EVENTS, partitions=PARTITIONS))


def frozen(rounds: Rounds, site: Site, place: str, at: int) -> tuple[list[str], str]:
    """Freeze a worker at a place until its heir has written everything, and let it go on."""
    trap = rounds.folder / f"trap-{at}"
    zombie = rounds.worker(site, "zombie", rounds.victims, trap)
    trapped.set_trap(trap, place)
    site.send(rounds.stream(at))
    wait_until(lambda: is_stopped(zombie), within_seconds=WITHIN_SECONDS, what=f"it is frozen: {place}")
    rounds.worker(site, "heir", rounds.heirs)
    await_scored(site)
    zombie.thaw()
    wait_until(lambda: len(members(site)) == 2, within_seconds=WITHIN_SECONDS, what="it has joined again")
    zombie.await_ready()
    return problems(site, EVENTS), ""


def killed(rounds: Rounds, site: Site, place: str, at: int) -> tuple[list[str], str]:
    """Kill a worker at a place, with another one in the group; says how long readers are held back."""
    trap = rounds.folder / f"trap-{at}"
    victim = rounds.worker(site, "victim", rounds.victims, trap)
    rounds.worker(site, "heir", rounds.heirs)
    wait_until(lambda: all(members(site).values()) and len(members(site)) == 2, within_seconds=WITHIN_SECONDS,
               what="both have partitions")  # fmt: skip
    trapped.set_trap(trap, place)
    site.send(rounds.stream(at))
    wait_until(lambda: is_stopped(victim), within_seconds=WITHIN_SECONDS, what=f"it is frozen: {place}")
    wait_until(lambda: bool(site.outside.undecided([site.topics.scored])), within_seconds=1.0, what="one is open")
    held = site.outside.undecided([site.topics.scored])
    victim.kill()
    began = time.monotonic()
    wait_until(
        lambda: all(site.outside.ends(site.topics.scored)[at].stable >= ends.log for (_, at), ends in held.items()),
        within_seconds=WITHIN_SECONDS, what="readers go on", every_seconds=0.05,
    )  # fmt: skip
    took = time.monotonic() - began
    await_scored(site)
    return problems(site, EVENTS), f"{took:.2f}"


def late(rounds: Rounds, site: Site, place: str, at: int) -> tuple[list[str], str]:
    """Hold a request back until its worker has begun, or ended, another transaction; says what the broker answers."""
    trap = rounds.folder / f"trap-{at}"
    rounds.worker(site, "worker", rounds.victims, trap)
    answer = trapped.set_trap(trap, place)
    stream = rounds.stream(at)
    site.send(stream[: EVENTS // 2])
    wait_until(answer.exists, within_seconds=WITHIN_SECONDS, what=f"{place}: the late request is answered")
    site.send(stream[EVENTS // 2 :])
    await_scored(site)
    return problems(site, EVENTS), answer.read_text("utf-8")


def unanswered(rounds: Rounds, site: Site, place: str, at: int) -> tuple[list[str], str]:
    """Hold an answer back for ever: whether the request had its effect has to be found out."""
    trap = rounds.folder / f"trap-{at}"
    rounds.worker(site, "worker", rounds.victims, trap)
    trapped.set_trap(trap, place)
    site.send(rounds.stream(at))
    wait_until(lambda: not trap.exists(), within_seconds=WITHIN_SECONDS, what=f"the trap is sprung: {place}")
    await_scored(site)
    return problems(site, EVENTS), ""


MODES: dict[str, tuple[Callable[[Rounds, Site, str, int], tuple[list[str], str]], Sequence[str]]] = {
    "frozen": (frozen, tuple(trapped.FREEZES)),
    "killed": (killed, ("all sent", "offsets sent", "offsets acknowledged")),
    "late": (late, tuple(trapped.LATE)),
    "unanswered": (unanswered, tuple(trapped.UNANSWERED)),
}


def is_stopped(worker: Worker) -> bool:
    """Tell whether the process is frozen; one that has ended fails the round with its last words."""
    if worker.exit_code is not None:
        raise AssertionError(f"{worker.name} ended with {worker.exit_code}:\n{worker.last_words()}")
    return Path(f"/proc/{worker.pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] == "T"


def members(site: Site) -> dict[str, tuple[int, ...]]:
    """Return who is in the scorers' group."""
    return site.outside.members(site.group)


def await_scored(site: Site) -> None:
    """Wait until every input has its outcome, as readers see it."""
    wait_until(lambda: site.outside.lag(site.group, site.topics.input) == 0, within_seconds=WITHIN_SECONDS,
               what="all is scored")  # fmt: skip
    site.outside.await_decided(site.topics.outputs(), within_seconds=WITHIN_SECONDS)


def problems(site: Site, expected: int) -> list[str]:
    """Say which inputs have no outcome or more than one, and what still hangs."""
    await_scored(site)
    found = [_source(record.json()["source"]) for record in site.outside.read(site.topics.scored)]
    found += [
        (int(record.header("safe.dlq.partition") or -1), int(record.header("safe.dlq.offset") or -1))
        for record in site.outside.read(site.topics.dead_letter)
    ]
    twice = sorted(each for each in set(found) if found.count(each) > 1)
    wrong = [f"{len(twice)} doubled: {twice[:5]}"] if twice else []
    wrong += [f"{expected - len(set(found))} lost"] if len(set(found)) != expected else []
    return wrong + site.outside.hanging(site.topics.outputs())


def _source(source: dict[str, int]) -> tuple[int, int]:
    return source["partition"], source["offset"]


@contextmanager
def on_a_broker(version: str, victims: Path, heirs: Path) -> Iterator[tuple[Rounds, Path]]:
    """Start a broker of a version; also gives its log."""
    leave_nothing()
    with tempfile.TemporaryDirectory(prefix="safe-zombies-") as name:
        folder = Path(name)
        broker = broker_of(version, folder / "broker")
        broker.start()
        try:
            with Outside(broker.bootstrap_servers) as outside:
                cases = write_batches(folder / "cases", BATCHES)
                yield Rounds(outside, folder, cases, victims, heirs), broker.log
        finally:
            broker.stop(kill=True)


def main(arguments: Sequence[str]) -> int:
    """Return how many rounds were broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.certify.zombies", description=__doc__)
    for mode in MODES:
        parser.add_argument(f"--{mode}", dest="modes", action="append_const", const=mode)
    parser.add_argument("--rounds", type=int, default=1, help="of each place")
    parser.add_argument("--place", action="append", help="only this one; may be repeated")
    parser.add_argument("--victims", type=Path, help="the checkout of the trapped workers")
    parser.add_argument("--heirs", type=Path, help="the checkout of the others")
    parser.add_argument("--without", action="append", choices=[each.name for each in MUTANTS], metavar="GUARD",
                        help="workers of this checkout lack this guard: it must go red")  # fmt: skip
    parser.add_argument("--kafka", default="4.1.1", metavar="VERSION")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="safe-without-") as name:
        ours = copied(Path(name), named(options.without)) if options.without else PROJECT
        return _play(options, (options.victims or ours).resolve(), (options.heirs or ours).resolve())


def _play(options: argparse.Namespace, victims: Path, heirs: Path) -> int:
    broken = 0
    random.seed(SEED)
    with on_a_broker(options.kafka, victims, heirs) as (rounds, log):
        names: list[str] = []
        for mode in options.modes or list(MODES):
            play, places = MODES[mode]
            for place in options.place or places:
                broken += _repeat(rounds, play, f"{mode}: {place}", place, options.rounds, names)
        if complaints(log, names):
            print(*complaints(log, names), sep="\n")
    print(f"{broken} rounds were broken on Kafka {options.kafka}")
    return broken


def _repeat(rounds: Rounds, play: Callable[[Rounds, Site, str, int], tuple[list[str], str]], about: str, place: str,
            count: int, names: list[str]) -> int:  # fmt: skip
    broken, said = 0, []
    for at in range(count):
        # Within three seconds a transaction is given up before an answer is missed, and its partition taken up again.
        site = rounds.site("10" if play is unanswered else "3")
        names.extend(names_of(site))
        try:
            wrong, told = play(rounds, site, place, at)
        except AssertionError as error:
            wrong, told = [str(error)], ""
        finally:
            site.discard()
        said.append(told)
        broken += bool(wrong)
        for each in wrong:
            print(f"  {about}, round {at}: {each[:2000]}", flush=True)
    numbers = [float(each) for each in said if each.replace(".", "").isdigit()]
    told = f"median {statistics.median(numbers):.2f} s, longest {max(numbers):.2f} s" if numbers else ""
    told = told or "; ".join(sorted({each for each in said if each}))
    print(f"{about}: {count} rounds, {broken} broken {told}", flush=True)
    return broken


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 100))
