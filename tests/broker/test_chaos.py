"""Workers killed, stopped and frozen under load: no input is lost, none is counted twice, and every sum is right.

Sizes come from SAFE_TEST_CHAOS_EVENTS, _ROUNDS and _SEED: `make chaos` is this code at full size.
"""

import os
import random
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.checker import Run, totals
from tests.support.feeder import Feeder
from tests.support.oracle import Scored, latest, summary_of
from tests.support.outside import Outside
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Worker, exported_twice

pytestmark = [pytest.mark.broker, pytest.mark.chaos]

EVENTS = int(os.environ.get("SAFE_TEST_CHAOS_EVENTS", "6000"))
ROUNDS = int(os.environ.get("SAFE_TEST_CHAOS_ROUNDS", "6"))
SEED = int(os.environ.get("SAFE_TEST_CHAOS_SEED", "20260302"))
PARTITIONS = 8
WORKERS = 3
# Nine in ten inputs are new cases; the batches grow with them, so that scraping them all stays quick.
BATCHES = max(6, min(200, EVENTS // 50))
CASES_A_BATCH = EVENTS * 9 // 10 // BATCHES + 1
SECONDS_A_ROUND = 3.0
SESSION_SECONDS = 4
# What the slowest round may take: a session, a join, a restore, and the backlog of all that.
HEAL_SECONDS = 60.0
STOP_SECONDS = 25.0


class Crew:
    """Three workers, of which one at a time comes to harm; every one that falls is replaced."""

    def __init__(self, site: Site, rng: random.Random) -> None:
        self._site, self._rng = site, rng
        self._hired = 0
        self._next_harms: list[str] = []
        self.active: list[Worker] = []
        self.problems: list[str] = []
        self.committed: list[Mapping[int, int]] = []
        self.harmed: list[str] = []

    def hire(self) -> None:
        """Start one more worker."""
        self._hired += 1
        self.active.append(self._site.spawn(f"worker-{self._hired}"))

    def disturb(self) -> None:
        """Do one thing to one worker; each kind comes once in three rounds."""
        if not self._next_harms:
            self._next_harms = self._rng.sample(["kill", "stop", "freeze"], 3)
        harm, victim = self._next_harms.pop(), self._rng.choice(self.active)
        begun = time.monotonic()
        {"kill": self._kill, "stop": self._stop, "freeze": self._freeze}[harm](victim)
        self.observe()
        self.harmed.append(f"{harm} {victim.name} ({time.monotonic() - begun:.1f} s)")

    def _kill(self, victim: Worker) -> None:
        self.active.remove(victim)
        victim.kill()
        self.hire()

    def _stop(self, victim: Worker) -> None:
        self.active.remove(victim)
        code = victim.stop(within_seconds=STOP_SECONDS)
        if code != 0:
            self.problems.append(f"shutdown: {victim.name} was asked to stop and exited {code}: {victim.last_words()}")
        self.hire()

    def _freeze(self, victim: Worker) -> None:
        """A zombie: it sleeps past its session, its partitions move, then it goes on where it was."""
        self._await_members(WORKERS)
        victim.freeze()
        try:
            self._await_members(WORKERS - 1)
            self._await_progress()
        finally:
            victim.thaw()

    def _await_members(self, count: int) -> None:
        """Wait until the group has so many members: the dead are missed, the new have joined."""
        wait_until(
            lambda: len(self._site.outside.members(self._site.group)) == count,
            within_seconds=HEAL_SECONDS,
            what=f"the group has {count} members",
            every_seconds=0.1,
        )

    def _await_progress(self) -> None:
        """Wait until the partitions have new owners: offsets move, or nothing is left to be read."""
        before = self._site.outside.committed(self._site.group, self._site.topics.input)
        wait_until(
            lambda: (
                self._site.outside.committed(self._site.group, self._site.topics.input) != before or self._is_idle()
            ),
            within_seconds=HEAL_SECONDS,
            what="the others go on",
            every_seconds=0.1,
        )

    def _is_idle(self) -> bool:
        return self._site.outside.lag(self._site.group, self._site.topics.input) == 0

    def observe(self) -> None:
        """Note the committed offsets, and what two processes show at once."""
        self.committed.append(self._site.outside.committed(self._site.group, self._site.topics.input))
        self.problems += [f"gauges: {twice}" for twice in exported_twice(self.active)]

    def check_alive(self) -> None:
        """Nobody may have ended by himself."""
        for worker in self.active:
            if worker.exit_code is not None:
                self.problems.append(f"{worker.name} ended by itself ({worker.exit_code}): {worker.last_words()}")


@pytest.fixture
def site(outside: Outside, tmp_path: Path) -> Iterator[Site]:
    """Eight partitions and workers with short sessions, over enough test cases for one in ten to come twice."""
    batches = make_batches(SEED, batches=BATCHES, cases_a_batch=CASES_A_BATCH)
    settings = {"SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS": str(SESSION_SECONDS)}
    cases = write_batches(tmp_path / "cases", batches)
    built = Site.build(outside, tmp_path, cases, partitions=PARTITIONS, settings=settings)
    yield built
    built.discard()


def pause(rng: random.Random) -> None:
    """Let the load run for a while of random length: the harm should come at any moment, not at a convenient one."""
    threading.Event().wait(rng.uniform(0.3, 1.0) * SECONDS_A_ROUND)


def test_no_input_is_lost_or_counted_twice_whatever_happens_to_the_workers(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(SEED)
    batches = make_batches(SEED, batches=BATCHES, cases_a_batch=CASES_A_BATCH)
    stream = list(event_stream(SEED, batches, EVENTS, partitions=PARTITIONS))
    crew = Crew(site, rng)
    for _ in range(WORKERS):
        crew.hire()
    for worker in crew.active:
        worker.await_ready()

    with Feeder(site.outside, site.topics.input, stream, records_a_second=EVENTS / ROUNDS / SECONDS_A_ROUND) as feeder:
        for _ in range(ROUNDS):
            pause(rng)
            crew.disturb()
        wait_until(lambda: feeder.is_done, within_seconds=HEAL_SECONDS + EVENTS / 200, what="all inputs are written")
    fed = time.monotonic()
    site.await_rest(within_seconds=HEAL_SECONDS + EVENTS / 500)
    healed_seconds = time.monotonic() - fed
    crew.check_alive()
    run, problems = site.seen(committed_history=crew.committed)
    problems += [*crew.problems, *_gauges_at_rest(crew, run, site)]

    with capsys.disabled():
        print(f"\nchaos: seed {SEED}, {totals(run, site.oracle)}, {len(run.results)} results")
        print(f"chaos: {', '.join(crew.harmed)}; at rest {healed_seconds:.1f} s after the last input")
    assert problems == []
    assert len(run.inputs) == EVENTS


def _gauges_at_rest(crew: Crew, run: Run, site: Site) -> Iterator[str]:
    """At rest every batch is shown by exactly one process, with the committed summary."""
    wanted = _summaries(run, site)
    try:
        wait_until(
            lambda: sorted(batch for worker in crew.active for batch in worker.shown_batches()) == sorted(wanted),
            within_seconds=15,
            what="every batch is shown by exactly one process",
        )
    except AssertionError as error:
        shown = [batch for worker in crew.active for batch in worker.shown_batches()]
        yield f"gauges: {error}: {len(shown)} shown, {len(set(shown))} different, {len(wanted)} wanted"
        return
    ratios = {
        labels: value for worker in crew.active for labels, value in worker.series("safe_batch_pass_ratio").items()
    }
    for (concern, batch), ratio in wanted.items():
        shown_ratio = ratios.get((("batch_id", batch), ("concern_id", concern)))
        if shown_ratio != ratio:
            yield f"gauges: {concern}/{batch} shows {shown_ratio}, committed is {ratio}"


def _summaries(run: Run, site: Site) -> dict[tuple[str, str], float]:
    scored: dict[tuple[str, str], list[Scored]] = {}
    for outcome in map(site.oracle.outcome, run.inputs):
        if isinstance(outcome, Scored):
            scored.setdefault((outcome.concern_id, outcome.batch_id), []).append(outcome)
    return {batch: summary_of(latest(results))["overall_pass_rate"] for batch, results in scored.items()}
