"""Workers of one installation that come to harm and are replaced; every one that ends by itself is noted."""

import random
import re
import signal
import time
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from tests.support import wrong_clock
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Worker

Harm = Literal["kill", "freeze", "stop"]
HARMS: tuple[Harm, ...] = get_args(Harm)
WORKERS = 3
STOP_SECONDS = 45.0
# A backlog of minutes has to be worked off before every partition is served again.
HEAL_SECONDS = 120.0
MOST_DEATHS = 12


class TooManyDeathsError(Exception):
    """Workers die as soon as they are replaced: to go on would tell nothing more."""


@dataclass(frozen=True, slots=True)
class Death:
    """A worker that ended by itself, and what it said last."""

    worker: str
    exit_code: int
    last_words: str


@dataclass(slots=True)
class Crew:
    """Three workers, and what has become of those before them; none of them may end by itself."""

    site: Site
    rng: random.Random
    active: list[Worker] = field(default_factory=list)
    leaving: list[Worker] = field(default_factory=list)
    frozen: dict[str, float] = field(default_factory=dict)
    deaths: list[Death] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    harms: Counter[str] = field(default_factory=Counter)

    def hire(self, *, bootstrap_servers: str | None = None, clock: Path | None = None) -> Worker:
        """Start one more worker, which may be told of other brokers first than the rest, or have a clock of its own."""
        site = self.site
        own = {} if clock is None else {wrong_clock.VARIABLE: str(clock)}
        installation = replace(
            site.installation,
            bootstrap_servers=bootstrap_servers or site.installation.bootstrap_servers,
            settings={**site.installation.settings, **own},
        )
        worker = Worker(installation, site.folder, name=f"worker-{len(site.workers) + 1}")
        site.workers.append(worker)
        self.active.append(worker)
        return worker

    def harm(self, kind: Harm, *, frozen_seconds: float = 0.0) -> str:
        """Kill, stop or suspend a worker, and say which; nothing is waited for."""
        self.bury()
        awake = [worker for worker in self.active if worker.name not in self.frozen]
        if not awake:
            return "all workers are frozen or gone already"
        victim = self.rng.choice(awake)
        self.harms[kind] += 1
        if kind == "freeze":
            victim.freeze()
            self.frozen[victim.name] = time.monotonic() + frozen_seconds
            return f"froze {victim.name} for {frozen_seconds:.1f} s"
        self.active.remove(victim)
        if kind == "kill":
            victim.kill()
            return f"killed {victim.name}"
        victim.terminate()
        self.leaving.append(victim)
        return f"asked {victim.name} to stop"

    def thaw(self, *, all_of_them: bool = False) -> None:
        """Let those frozen ones go on whose time has come."""
        for worker in self.active:
            due = self.frozen.get(worker.name)
            if due is not None and (all_of_them or time.monotonic() >= due):
                del self.frozen[worker.name]
                worker.thaw()

    def bury(self) -> None:
        """Note every worker that has ended by itself, and replace it."""
        for worker in [each for each in self.active if each.exit_code is not None]:
            self.active.remove(worker)
            self.frozen.pop(worker.name, None)
            self.deaths.append(Death(worker.name, worker.exit_code or 0, _reason(worker)))
            if len(self.deaths) >= MOST_DEATHS:
                raise TooManyDeathsError(f"{MOST_DEATHS} workers have ended by themselves")
            self.hire()

    def settle(self) -> None:
        """Come back to three workers that are all ready; one that was asked to stop must have done so in order."""
        self.thaw(all_of_them=True)
        self.bury()
        while len(self.active) < WORKERS:
            self.hire()
        while len(self.active) > WORKERS:
            leaving = self.active.pop(0)
            leaving.terminate()
            self.leaving.append(leaving)
        while self.leaving:
            self._see_off(self.leaving.pop())
        wait_until(self._are_ready, within_seconds=HEAL_SECONDS, what="all workers are ready again", every_seconds=0.2)

    def _see_off(self, worker: Worker) -> None:
        try:
            code = worker.wait(within_seconds=STOP_SECONDS)
        except AssertionError:
            worker.discard()
            self.problems.append(f"shutdown: {worker.name} did not stop within {STOP_SECONDS:g} s: {_end_of(worker)}")
            return
        too_early = code == -signal.SIGTERM and not worker.log_text()  # Python had not yet come as far as SAFE
        if code != 0 and not too_early:
            self.problems.append(f"shutdown: {worker.name} was asked to stop and exited {code}: {_end_of(worker)}")

    def _are_ready(self) -> bool:
        self.bury()
        return all(_readiness(worker)[0] == 200 for worker in self.active)

    def names(self, words: Collection[str]) -> bool:
        """Tell whether `/readyz` of a worker has some of these words."""
        self.bury()
        told = [_readiness(worker)[1] for worker in self.active]
        return any(each in text for each in words for text in told)

    def readiness(self) -> list[str]:
        """Say of each worker what it says of itself."""
        return [f"{worker.name}: {_readiness(worker)}" for worker in self.active]

    def await_told(self, told: str, *, within_seconds: float) -> None:
        """Wait until a worker gives this as a reason for not being ready."""
        said: list[str] = []

        def is_told() -> bool:
            said[:] = self.readiness()
            return told in str(said)

        try:
            wait_until(is_told, within_seconds=within_seconds, what=f"a worker says: {told}")
        except AssertionError as error:
            raise AssertionError(f"{error}; instead: {said}") from error


def _readiness(worker: Worker) -> tuple[int, str]:
    with suppress(OSError):
        status, text = worker.get("/readyz")
        return status, text[:300]
    return 0, "does not answer"


def _reason(worker: Worker) -> str:
    """Return the sentence that a worker ends with, or all of its last lines where it has ended without one."""
    lines = worker.log_text().splitlines()
    sentences = [line for line in lines if line.startswith("safe: error") or '"event": "the worker ends"' in line]
    return sentences[-1][:2000] if sentences else _end_of(worker)


def _end_of(worker: Worker) -> str:
    return re.sub(r"\s+", " ", worker.last_words(lines=4))[:1500]
