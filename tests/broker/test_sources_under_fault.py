"""Each source of expectations, broken amid live traffic: nothing lost, nothing doubled, no undeserved dead letter."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.case_service import CaseService, Mode
from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.feeder import Feeder
from tests.support.oracle import Scored, latest, summary_of
from tests.support.outside import Outgoing, Outside
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Worker

pytestmark = pytest.mark.broker

SEED = 47
PARTITIONS = 4
BATCHES = make_batches(SEED, batches=6, cases_a_batch=8)
RECORDS_A_SECOND = 80
LONGEST_SECONDS = 90
NOTICED_SECONDS = 15.0
RECOVERED_SECONDS = 20.0
REMEMBERED_SECONDS = 2.5  # a refusal, for two seconds: an input that is sent again sooner meets it again

# Every look-up asks the service, so that a fault is met at once, and a try is over soon.
SETTINGS = {"SAFE_V0_EXPECTATIONS_CACHE_SECONDS": "0", "SAFE_V0_EXPECTATIONS_TIMEOUT_SECONDS": "2"}
OUTAGES: tuple[Mode, ...] = ("off", "hang", "500", "429", "rubbish", "huge", "redirect", "half_body", "flapping")


@cache
def stream() -> list[Outgoing]:
    """More than any fault lasts; what is not needed is not written."""
    return list(event_stream(SEED, BATCHES, LONGEST_SECONDS * RECORDS_A_SECOND, partitions=PARTITIONS))


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return write_batches(tmp_path / "cases", BATCHES)


@pytest.fixture
def service(cases: Path) -> Iterator[CaseService]:
    with CaseService(cases) as running:
        yield running


@dataclass
class Live:
    """A site with traffic on it."""

    site: Site
    worker: Worker
    feeder: Feeder

    def await_traffic(self) -> None:
        """Wait until some of it is scored."""
        before = self.worker.total("safe_records_total", outcome="scored")
        wait_until(
            lambda: self.worker.total("safe_records_total", outcome="scored") > before + 50,
            within_seconds=RECOVERED_SECONDS,
            what="traffic flows",
        )

    def await_not_ready(self) -> None:
        """Wait until /readyz tells of the expectations."""
        wait_until(
            lambda: "xpectations" in self.worker.get("/readyz")[1],
            within_seconds=NOTICED_SECONDS,
            what="the fault is told",
        )


def feeding(site: Site) -> Feeder:
    """Traffic for as long as its block lasts."""
    return Feeder(site.outside, site.topics.input, stream(), records_a_second=RECORDS_A_SECOND)


def broken_while_live(site: Site, *, fault: Callable[[Live], None]) -> None:
    """Run a worker under traffic, break its source and mend it, and hold what came out against the oracle."""
    with site.worker() as worker:
        with feeding(site) as feeder:
            live = Live(site, worker, feeder)
            live.await_traffic()
            fault(live)
            live.await_traffic()
        recovered(site, worker)
        _run, problems = site.seen()  # while it runs, since it may owe reports
    assert problems == []


def recovered(site: Site, worker: Worker) -> None:
    """Wait until all that was written has its outcome, and the worker is ready."""
    site.await_rest(within_seconds=RECOVERED_SECONDS)
    wait_until(worker.is_ready, within_seconds=RECOVERED_SECONDS, what="it is ready again")
    assert worker.get("/livez")[0] == 200


@pytest.mark.parametrize("mode", OUTAGES)
def test_an_outage_of_the_service_costs_time_and_nothing_else(
    mode: Mode, outside: Outside, service: CaseService, cases: Path, tmp_path: Path
) -> None:
    site = Site.build(outside, tmp_path, cases, partitions=PARTITIONS, settings=SETTINGS, expectations=service.url)

    def fault(live: Live) -> None:
        service.behave_as(mode)
        live.await_not_ready()
        service.behave_as("normal")
        live.await_traffic()

    broken_while_live(site, fault=fault)
    assert service.strayed == 0, "a redirect was followed"


def test_a_slow_service_holds_up_but_loses_nothing(
    outside: Outside, service: CaseService, cases: Path, tmp_path: Path
) -> None:
    settings = {**SETTINGS, "SAFE_V0_EXPECTATIONS_TIMEOUT_SECONDS": "5"}
    site = Site.build(outside, tmp_path, cases, partitions=PARTITIONS, settings=settings, expectations=service.url)

    def fault(live: Live) -> None:
        asked = service.requests
        service.behave_as("slow")
        wait_until(lambda: service.requests > asked, within_seconds=NOTICED_SECONDS, what="it is asked while slow")
        live.await_traffic()
        service.behave_as("normal")

    broken_while_live(site, fault=fault)


def test_wrong_answers_of_the_service_make_dead_letters_and_a_replay_makes_them_good(
    outside: Outside, service: CaseService, cases: Path, tmp_path: Path
) -> None:
    site = Site.build(outside, tmp_path, cases, partitions=PARTITIONS, settings=SETTINGS, expectations=service.url)
    with site.worker() as worker:
        with feeding(site) as feeder:
            live = Live(site, worker, feeder)
            live.await_traffic()
            service.behave_as("other_test_id")
            wait_until(
                lambda: worker.total("safe_dead_letters_total", reason="expectations_invalid") > 20,
                within_seconds=NOTICED_SECONDS,
                what="the wrong answers are refused",
            )
            service.behave_as("normal")
            forgotten_at = time.monotonic() + REMEMBERED_SECONDS
            live.await_traffic()
        recovered(site, worker)
        wait_until(lambda: time.monotonic() > forgotten_at, within_seconds=REMEMBERED_SECONDS, what="it is forgotten")
        before = len(site.outside.read(site.topics.result))
        replayed = site.installation.run("dead-letters", "replay", "--reason", "expectations_invalid", folder=tmp_path)
        assert replayed.returncode == 0, replayed.stderr
        site.await_rest()
    assert len(site.outside.read(site.topics.result)) > before + 20
    assert last_summaries(site) == wanted_summaries(site)


def last_summaries(site: Site) -> dict[bytes | None, Any]:
    """The summary of each batch as its last result has it."""
    return {record.key: record.json()["summary"] for record in site.outside.read(site.topics.result)}


def wanted_summaries(site: Site) -> dict[bytes | None, Any]:
    """The same, by the oracle: a replayed input has the event time and the content of the one that failed."""
    scored: dict[bytes | None, list[Scored]] = {}
    for record in site.outside.read(site.topics.input):
        outcome = site.oracle.outcome(record)
        if isinstance(outcome, Scored):
            scored.setdefault(f"{outcome.concern_id}/{outcome.batch_id}".encode(), []).append(outcome)
    return {key: summary_of(latest(outcomes)) for key, outcomes in scored.items()}


# --- the folder -------------------------------------------------------------------------------------------------------


def away(live: Live, cases: Path) -> None:
    """The folder is gone, as a mount that failed."""
    moved = cases.rename(cases.with_name("away"))
    live.await_not_ready()
    moved.rename(cases)


def emptied(live: Live, cases: Path) -> None:
    """The folder is there, and nothing in it: at once, for files that go one by one are test cases taken away."""
    full = cases.rename(cases.with_name("full"))
    cases.mkdir()
    live.await_not_ready()
    full.rename(cases)


def half_written(live: Live, cases: Path) -> None:
    """A file is written slowly, in place: its last good version stays."""
    for file in sorted(cases.iterdir()):
        content = file.read_bytes()
        with file.open("wb") as slow:
            slow.write(content[: len(content) // 2])
            slow.flush()
            live.await_traffic()
            slow.write(content[len(content) // 2 :])


def rubbish(live: Live, cases: Path) -> None:
    """A file is no batch any more, and stays so for longer than writing takes: its last good version stays."""
    file = min(cases.iterdir())
    content = file.read_bytes()
    file.write_bytes(b"<html>maintenance</html>")
    wait_until(
        lambda: live.worker.total("safe_expectations_unusable", source="folder", name=file.name) == 1,
        within_seconds=NOTICED_SECONDS,
        what="the bad file is named",
    )
    live.await_traffic()
    file.write_bytes(content)


def enormous(live: Live, cases: Path) -> None:
    """A file of 1 GiB stands where a batch was: it is not read, and its last good version stays."""
    file = min(cases.iterdir())
    content = file.read_bytes()
    with file.open("wb") as sparse:
        sparse.truncate(2**30)
    wait_until(
        lambda: live.worker.total("safe_expectations_unusable", source="folder", name=file.name) == 1,
        within_seconds=NOTICED_SECONDS,
        what="the bad file is named",
    )
    live.await_traffic()
    assert live.worker.memory_bytes(peak=True) < 512 * 1024 * 1024, "it was read"
    file.write_bytes(content)


def swapped(live: Live, cases: Path) -> None:
    """Files are replaced by equal ones, over and over, as a deployment does."""
    for turn in range(200):
        file = sorted(cases.iterdir())[turn % len(BATCHES)]
        fresh = file.with_suffix(".new")
        fresh.write_bytes(file.read_bytes())
        fresh.replace(file)
    live.await_traffic()


@pytest.mark.parametrize("damage", [away, emptied, half_written, rubbish, enormous, swapped])
def test_a_damaged_folder_costs_time_and_nothing_else(
    damage: Callable[[Live, Path], None], outside: Outside, cases: Path, tmp_path: Path
) -> None:
    site = Site.build(outside, tmp_path, cases, partitions=PARTITIONS)
    broken_while_live(site, fault=lambda live: damage(live, cases))
