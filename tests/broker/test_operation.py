"""What an operator does to a running installation, and what time does: each leaves every count as it must be."""

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.support.cases import encoded, event_stream, make_batches, make_event, write_batches
from tests.support.checker import batches_of, canonical, quoted, result_source
from tests.support.feeder import Feeder
from tests.support.oracle import Dead, Ignored, Scored, latest, summary_of
from tests.support.outside import Outgoing, Outside, Record
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Series, Worker

pytestmark = pytest.mark.broker

SEED = 23
BATCHES = make_batches(SEED, batches=4, cases_a_batch=6)
BATCH = BATCHES[0]
KEY = quoted(BATCH.cases[0].concern_id, BATCH.batch_id)
EXIT_UNUSABLE = 3
SHUTDOWN_SECONDS = 25.0
# Clients look for new partitions this often, at the latest.
NEW_PARTITIONS_SECONDS = 45.0
# A worker that was killed, or stopped while it joined, is missed after this long.
QUICK = {"SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS": "3"}
Json = Any


def scored_input(at: int, *, quality: str = "pass", partition: int = 0, **more: Json) -> Outgoing:
    """An input record that answers the batch's case of that number."""
    event = make_event(random.Random(at), BATCH.cases[at], quality=quality, size=900)  # type: ignore[arg-type]
    return Outgoing(encoded(event | more), partition=partition)


def reconfigured(site: Site, **settings: str) -> Site:
    """The same installation with some settings changed: what a restart finds."""
    changed = replace(site.installation, settings={**site.installation.settings, **settings})
    return Site(site.outside, site.folder, changed, site.oracle, site.workers)


def results(site: Site) -> list[Json]:
    """The data of every result, in fold order."""
    return [record.json() for record in site.outside.read(site.topics.result)]


def last_report(site: Site) -> Json:
    """The data of the batch's last report, None before the first."""
    reports = [record for record in site.outside.read(site.topics.report) if record.key == KEY.encode()]
    return reports[-1].json() if reports else None


def await_report(site: Site, total_cases: int) -> Json:
    """Wait until the batch's last report counts so many cases."""

    def found() -> Json:
        report = last_report(site)
        return report if report is not None and report["total_cases"] == total_cases else None

    return wait_until(found, within_seconds=20, what=f"a report of {total_cases} cases", every_seconds=0.1)


def said(worker: Worker, words: str) -> list[dict[str, Any]]:
    """The log lines whose event holds these words."""
    return [line for line in worker.log_lines() if words in str(line.get("event", ""))]


@pytest.fixture
def site(site_over: Callable[..., Site], tmp_path: Path) -> Site:
    """One partition of everything, so that the order of results is the order of inputs."""
    return site_over(write_batches(tmp_path / "cases", BATCHES), partitions=1, settings=QUICK)


@pytest.fixture
def wide_site(site_over: Callable[..., Site], tmp_path: Path) -> Site:
    """Four partitions."""
    return site_over(write_batches(tmp_path / "cases", BATCHES), partitions=4, settings=QUICK)


# --- partitions that are added ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def grown(outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Worker]]:
    """An installation whose input was given a second partition while its worker ran.

    Made before the first test and judged by the last one: clients notice after up to half a minute, and nothing else
    has to wait for that.
    """
    folder = tmp_path_factory.mktemp("grown")
    made = Site.build(outside, folder, write_batches(folder / "cases", BATCHES), partitions=1)
    grown_site = reconfigured(made, SAFE_V0_INPUT_START="latest")
    with grown_site.worker() as worker:
        outside.add_partitions(made.topics.input, 2)
        wait_until(lambda: outside.partitions(made.topics.input) == 2, within_seconds=20, what="the second partition")
        made.send([scored_input(at, partition=1) for at in range(4)])
        yield grown_site, worker


# --- a change of thresholds -------------------------------------------------------------------------------------------


def test_a_restart_with_other_thresholds_is_told_and_counted(site: Site) -> None:
    site.send([scored_input(0, quality="review"), scored_input(1, quality="review")])
    with site.worker(name="before") as before:
        site.await_rest()
        await_report(site, 2)
        assert before.stop() == 0
    lower = reconfigured(site, SAFE_V0_CR_PASS="0.6")  # noqa: S106 # a threshold, not a password

    lower.send([scored_input(2, quality="review")])
    with lower.worker(name="after") as worker:
        lower.await_rest()
        report = await_report(site, 3)
        [warning] = said(worker, "different configurations")

    first, _, last = results(site)
    old, new = first["scorer"]["fingerprint"], last["scorer"]["fingerprint"]
    assert [each["result"]["label"] for each in results(site)] == ["Review", "Review", "Pass"]
    assert report["fingerprints"] == warning["fingerprints"] == {old: 2, new: 1}
    assert report["summary"] == {"total_cases": 3, "pass": 1, "review": 2, "fail": 0, "overall_pass_rate": 1 / 3}
    assert report["scorer"]["fingerprint"] == new
    assert report["configuration"]["thresholds"]["CR"] == {"pass": 0.6, "review": 0.5}
    assert (warning["concern_id"], warning["batch_id"]) == (BATCH.cases[0].concern_id, BATCH.batch_id)


# --- records of others ------------------------------------------------------------------------------------------------


def test_a_scored_record_of_another_group_is_skipped_and_counted(site: Site) -> None:
    site.send([scored_input(0)])
    with site.worker() as worker:
        site.await_rest()
        [own] = site.outside.read(site.topics.scored)
        stranger = tuple((name, b"strangers" if name == "safe.group" else value) for name, value in own.headers)
        site.outside.produce(site.topics.scored, [Outgoing(own.value, own.key, stranger, partition=0)])
        wait_until(
            lambda: worker.total("safe_records_total", outcome="foreign") == 1,
            within_seconds=20,
            what="the foreign record is counted",
        )
        site.send([scored_input(1)])
        site.await_rest()
        assert said(worker, "another group")

    assert [each["summary"]["total_cases"] for each in results(site)] == [1, 2]
    assert site.outside.read(site.topics.dead_letter) == []


# --- batches past their time-to-live ----------------------------------------------------------------------------------

SHORT = {"SAFE_V0_BATCH_TTL_SECONDS": "2"}


def standing_rows(site: Site) -> dict[bytes, bytes]:
    """The rows of the batch and its cases that compaction would leave in the state topic."""
    rows = {record.key or b"": record.value for record in site.outside.read(site.topics.state)}
    own = (KEY.encode(), KEY.encode() + b"/")
    return {
        key: value for key, value in rows.items() if value is not None and (key == own[0] or key.startswith(own[1]))
    }


def case_rows(site: Site) -> dict[bytes, bytes]:
    """The rows of the batch's cases."""
    names = {quoted(case.concern_id, case.batch_id, case.test_id).encode() for case in BATCH.cases}
    return {key: value for key, value in standing_rows(site).items() if key in names}


def await_forgotten(site: Site, worker: Worker) -> None:
    """Wait until nothing of the batch is shown, and no row of it is left."""
    wait_until(lambda: not worker.shown_batches(), within_seconds=20, what="its series are gone", every_seconds=0.2)
    wait_until(lambda: not case_rows(site), within_seconds=20, what="its rows are gone", every_seconds=0.2)
    assert json.loads(standing_rows(site)[KEY.encode()])["stage"] == "forgotten"
    site.await_rest()


def assert_opened_anew(site: Site, worker: Worker) -> None:
    """The record that came late stands alone in its batch, and somebody was told.

    Not asked for are its row and its series: after two seconds they are gone again.
    """
    assert await_report(site, 1)["summary"]["total_cases"] == 1
    assert results(site)[-1]["summary"]["total_cases"] == 1
    assert worker.total("safe_batches_reopened_total") == 1
    assert len(said(worker, "reopened a forgotten batch")) == 1


def test_a_batch_past_its_time_to_live_is_forgotten_and_opened_anew_by_a_late_record(site: Site) -> None:
    short = reconfigured(site, **SHORT)
    short.send([scored_input(at) for at in range(3)])
    with short.worker() as worker:
        short.await_rest()
        assert await_report(site, 3)["summary"]["total_cases"] == 3
        await_forgotten(short, worker)
        assert last_report(site)["summary"]["total_cases"] == 3  # its last word

        short.send([scored_input(4)])
        short.await_rest()
        assert_opened_anew(site, worker)


def test_a_forgotten_batch_is_known_as_such_after_a_restart(site: Site) -> None:
    short = reconfigured(site, **SHORT)
    short.send([scored_input(at) for at in range(3)])
    with short.worker(name="first") as first:
        short.await_rest()
        await_forgotten(short, first)
        assert first.stop() == 0

    with short.worker(name="second") as second:
        assert second.shown_batches() == set()
        # The marks of forgotten batches outlive them by far.
        wait_until(
            lambda: time.time() * 1000 - site.outside.read(site.topics.scored)[-1].timestamp > 5_000,
            within_seconds=20,
            what="more than twice the time-to-live has passed",
        )
        short.send([scored_input(4)])
        short.await_rest()
        assert_opened_anew(site, second)


def half_forgotten(site: Site) -> None:
    """Leave the state as a worker does that is killed between two transactions of forgetting.

    The mark on the batch's row is written, the first case's row is a tombstone, the others stand.
    """
    rows = standing_rows(site)
    [headers] = {record.headers for record in site.outside.read(site.topics.state) if record.key == KEY.encode()}
    marked = json.loads(rows[KEY.encode()]) | {"stage": "forgetting"}
    buried = min(case_rows(site))
    site.outside.produce(
        site.topics.state,
        [
            Outgoing(json.dumps(marked).encode(), KEY.encode(), headers, partition=0),
            Outgoing(None, buried, headers, partition=0),
        ],
    )


@pytest.mark.parametrize("comes", ["after the rest was forgotten", "before anything else"])
def test_a_forgetting_that_was_cut_short_is_finished_by_whoever_takes_over(comes: str, site: Site) -> None:
    site.send([scored_input(at) for at in range(4)])
    with site.worker(name="killed") as killed:
        site.await_rest()
        await_report(site, 4)
        killed.kill()
    half_forgotten(site)
    short = reconfigured(site, **SHORT)

    if comes == "before anything else":
        short.send([scored_input(5)])
        with short.worker(name="heir") as heir:
            short.await_rest()
            assert_opened_anew(site, heir)
        return
    with short.worker(name="heir") as heir:
        await_forgotten(short, heir)
        short.send([scored_input(5)])
        short.await_rest()
        assert_opened_anew(site, heir)


def test_a_batch_that_was_opened_anew_stays_open_after_a_restart(site: Site) -> None:
    short = reconfigured(site, **SHORT)
    short.send([scored_input(0)])
    with short.worker(name="first") as first:
        short.await_rest()
        await_forgotten(short, first)
        first.kill()
    site.send([scored_input(1)])
    with site.worker(name="second") as second:  # with a long time-to-live
        site.await_rest()
        assert_opened_anew(site, second)
        assert second.total("safe_batch_cases") == 1
        assert len(case_rows(site)) == 1
        second.kill()

    site.send([scored_input(2)])
    with site.worker(name="third") as third:
        site.await_rest()
        assert results(site)[-1]["summary"]["total_cases"] == 2
        assert third.total("safe_batches_reopened_total") == 0


# --- times ------------------------------------------------------------------------------------------------------------

DATES = ("1970-01-01T00:00:00Z", "2027-06-01T12:00:00+02:00", "9999-12-31T23:59:59.999Z")


def test_whatever_date_an_event_has_what_is_written_is_stamped_now(site: Site) -> None:
    began = time.time() * 1000 - 1000
    dated = [scored_input(at, generated_at=date) for at, date in enumerate(DATES)]
    # Stamps of the records themselves, as a replay or a wrong clock makes them; a broker refuses those far ahead.
    stamped = [replace(scored_input(3), timestamp=1), Outgoing(b"poison", timestamp=1, partition=0)]
    site.outside.set_topic_config(site.topics.input, "retention.ms", "-1")  # else the broker may remove the old ones
    site.send([*dated, *stamped])

    with site.worker():
        site.await_rest()
        run, problems = site.seen()

    assert problems == []
    assert len(run.results) == 4
    written = [record for topic in site.topics.outputs() for record in site.outside.read(topic)]
    assert {record.topic for record in written} == set(site.topics.outputs())
    assert all(began <= record.timestamp <= time.time() * 1000 + 1000 for record in written)
    assert [each["source"]["event_time"] for each in results(site)][-1] == 1


# --- ends in order ----------------------------------------------------------------------------------------------------


def test_a_worker_asked_to_stop_under_load_loses_and_doubles_nothing(wide_site: Site) -> None:
    site = wide_site
    stream = list(event_stream(SEED, BATCHES, 4000, partitions=4, repeated=0.5))
    with (
        site.worker(name="stopped") as stopped,
        Feeder(site.outside, site.topics.input, stream, records_a_second=2000) as feeder,
    ):
        wait_until(lambda: len(site.outside.read(site.topics.result)) > 200, within_seconds=30, what="results come")
        began = time.monotonic()
        assert stopped.stop(within_seconds=SHUTDOWN_SECONDS) == 0
        assert time.monotonic() - began < SHUTDOWN_SECONDS
        with site.worker(name="heir") as heir:
            wait_until(lambda: feeder.is_done, within_seconds=60, what="all inputs are written")
            site.await_rest()
            run, problems = site.seen()
            assert_at_rest(site, heir)

    assert problems == []
    assert len(run.inputs) == 4000


def handles_sigterm(worker: Worker) -> bool:
    """Whether the process has come so far that SIGTERM is more than its end."""
    status = Path(f"/proc/{worker.pid}/status").read_text(encoding="ascii")
    [mask] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
    return bool(int(mask, 16) & 1 << 14)


# When the signal comes.
STARTING: Mapping[str, Callable[[Worker], bool]] = {
    "while it looks at its topics": handles_sigterm,
    "while it joins its groups": lambda worker: bool(said(worker, "starts as all")),
    "while it restores": lambda worker: bool(said(worker, "partitions assigned")),
    "as soon as it has restored": lambda worker: bool(said(worker, "restored")),
}


def test_a_worker_asked_to_stop_while_it_starts_ends_in_order(wide_site: Site) -> None:
    site = wide_site
    stream = list(event_stream(SEED, BATCHES, 600, partitions=4, repeated=0.5))
    site.send(stream[:300])
    with site.worker(name="before") as before:
        site.await_rest()
        assert before.stop() == 0
    site.send(stream[300:])

    for number, (moment, has_come) in enumerate(STARTING.items()):
        worker = site.spawn(f"starting-{number}")
        wait_until(lambda: has_come(worker), within_seconds=30, what=moment, every_seconds=0.002)  # noqa: B023 # called at once
        assert worker.stop(within_seconds=SHUTDOWN_SECONDS) == 0, f"{moment}: {worker.last_words()}"

    with site.worker(name="after"):
        site.await_rest()
        _, problems = site.seen()
    assert problems == []


# --- at rest ----------------------------------------------------------------------------------------------------------


def assert_at_rest(site: Site, worker: Worker) -> None:
    """Both groups have passed everything, markers included, and no transaction hangs."""
    groups = {site.group: site.topics.input, f"{site.group}.aggregator": site.topics.scored}
    for group, topic in groups.items():
        wait_until(
            lambda: site.outside.lag(group, topic) == 0,  # noqa: B023 # called at once
            within_seconds=20,
            what=f"the lag of {group} on {topic} is zero",
        )
    assert site.outside.hanging([site.topics.input, *site.topics.outputs()]) == []

    def none_shown() -> Series | None:
        found = worker.series("safe_consumer_lag_records")
        return found if found and not any(found.values()) else None

    lags = wait_until(none_shown, within_seconds=20, what="the worker shows no lag")
    partitions = {(dict(labels)["topic"], int(dict(labels)["partition"])) for labels in lags}
    assert partitions == {(topic, at) for topic in groups.values() for at in range(site.outside.partitions(topic))}


def test_a_producer_with_transactions_leaves_no_lag_behind(site: Site) -> None:
    producer = Producer(
        {"bootstrap.servers": site.outside.bootstrap_servers, "transactional.id": site.group, "log_level": 2}
    )
    producer.init_transactions(30)
    with site.worker() as worker:
        for at in range(3):
            producer.begin_transaction()
            producer.produce(site.topics.input, scored_input(at).value, partition=0)
            producer.flush(30)
            # The second one was never meant.
            (producer.abort_transaction if at == 1 else producer.commit_transaction)(30)
        site.await_rest()
        await_report(site, 2)  # a second after the first one, in a transaction of its own
        assert_at_rest(site, worker)

    assert [each["source"]["offset"] for each in results(site)] == [0, 4]


# --- without transactions ---------------------------------------------------------------------------------------------


def written(site: Site, topic: str) -> int:
    """How many offsets of a topic are taken."""
    return sum(ends.log for ends in site.outside.ends(topic).values())


@pytest.mark.parametrize("just_after", ["scored", "result"])
def test_at_least_once_comes_to_the_same_state_after_a_kill(just_after: str, wide_site: Site) -> None:
    site = reconfigured(wide_site, SAFE_V0_DELIVERY="at_least_once")
    topic = getattr(site.topics, just_after)
    site.send(list(event_stream(SEED, BATCHES, 4000, partitions=4, repeated=0.5)))
    killed = site.spawn("killed")
    wait_until(lambda: written(site, topic) > 0, within_seconds=40, what="it has begun", every_seconds=0.001)
    killed.kill()
    with site.worker(name="heir"):
        site.await_rest()
        run, problems = site.seen()

    # What may come again is no problem here, nor is a summary ahead of what was said before a kill.
    assert [each for each in problems if not each.startswith("coverage") and ": event " not in each] == []
    assert_same_state(site, run.inputs, run.results, run.dead_letters)


def assert_same_state(site: Site, inputs: Sequence[Record], found: Sequence[Record], letters: Sequence[Record]) -> None:
    """Every input has its outcome at least once, what came twice has one id, and the last word of a batch is right."""
    outcomes = {record.source: site.oracle.outcome(record) for record in inputs}
    ids: dict[tuple[str, int, int], set[str | None]] = {}
    for record in found:
        ids.setdefault(result_source(record), set()).add(record.header("ce_id"))
    assert set(ids) == {source for source, outcome in outcomes.items() if isinstance(outcome, Scored)}
    assert all(len(names) == 1 for names in ids.values())
    dead = {
        tuple(int(letter.header(f"safe.dlq.{name}") or -1) for name in ("partition", "offset")) for letter in letters
    }
    assert dead == {source[1:] for source, outcome in outcomes.items() if isinstance(outcome, Dead)}
    assert not [source for source, outcome in outcomes.items() if isinstance(outcome, Ignored) and source in ids]
    last = {record.key: record.json()["summary"] for record in found}
    for (concern, batch), scored in batches_of(outcomes).items():
        assert canonical(last[quoted(concern, batch).encode()]) == canonical(summary_of(latest(scored)))


# --- the two roles ----------------------------------------------------------------------------------------------------


def test_an_aggregator_needs_no_expectations_and_restores_its_gauges_alone(wide_site: Site) -> None:
    site = wide_site
    without = reconfigured(site, SAFE_V0_EXPECTATIONS="")
    site.send(list(event_stream(SEED, BATCHES, 400, partitions=4, repeated=0.5)))
    with site.worker(role="scorer", name="scorer") as scorer:
        with without.worker(role="aggregator", name="first") as first:
            site.await_rest()
            _, problems = site.seen()
            before = shown(first)
            assert first.stop() == 0
        with without.worker(role="aggregator", name="second") as second:
            wait_until(lambda: shown(second) == before, within_seconds=20, what="the gauges are back")
            site.send(list(event_stream(SEED + 1, BATCHES, 200, partitions=4)))
            site.await_rest()
            _, after = site.seen()
        assert scorer.exit_code is None
        assert not scorer.shown_batches()

    assert problems == after == []
    assert len({labels for name, labels in before if name == "safe_batch_pass_ratio"}) == len(BATCHES)


def shown(worker: Worker) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every gauge of a batch, by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in worker.metrics().values()
        for sample in family.samples
        if sample.name.startswith("safe_batch_")
    }


# --- topics that change while running ---------------------------------------------------------------------------------


@pytest.mark.provokes_warnings
def test_more_partitions_of_scored_stop_the_worker_with_the_remedy(site: Site) -> None:
    site.send([scored_input(0)])
    with site.worker() as worker:
        site.await_rest()
        site.outside.add_partitions(site.topics.scored, 2)

        assert worker.wait(within_seconds=15) == EXIT_UNUSABLE
        sentence = worker.log_text().splitlines()[-1]

    assert f"{site.topics.scored} now has 2 partitions instead of 1" in sentence
    assert "start a new group on new topics" in sentence
    assert "Traceback" not in worker.log_text()


def test_partitions_added_to_the_input_are_read_from_their_first_record(grown: tuple[Site, Worker]) -> None:
    site, worker = grown

    wait_until(
        lambda: len(results(site)) == 4,
        within_seconds=NEW_PARTITIONS_SECONDS,
        what="they are scored",
        every_seconds=0.5,
    )

    assert [each["source"]["partition"] for each in results(site)] == [1, 1, 1, 1]
    assert [each["source"]["offset"] for each in results(site)] == [0, 1, 2, 3]
    site.await_rest()
    await_report(site, 4)
    assert_at_rest(site, worker)


# --- a look into a running worker -------------------------------------------------------------------------------------


def test_a_running_worker_tells_where_it_stands_and_logs_more_when_asked(site: Site) -> None:
    def told(event: str, at_least: int = 1) -> list[Json] | None:
        lines = [line for line in worker.log_lines() if line.get("event") == event]
        return lines if len(lines) >= at_least else None

    with site.worker() as worker:
        os.kill(worker.pid, signal.SIGUSR1)
        [stands] = wait_until(
            lambda: told("stacks of threads and tasks"), within_seconds=10, what="it tells where it is"
        )
        assert any("run_forever" in frame for frame in stands["threads"]["MainThread"])
        assert {"scorer 0", "aggregator 0"} <= {task.partition(": ")[0] for task in stands["tasks"]}
        assert stands["tasks_not_shown"] == 0

        os.kill(worker.pid, signal.SIGUSR2)
        changed = "the log level was changed"
        wait_until(lambda: told(changed), within_seconds=10, what="it logs on the level debug")
        os.kill(worker.pid, signal.SIGUSR2)
        both = wait_until(lambda: told(changed, 2), within_seconds=10, what="it logs as before")
        assert [line["level_now"] for line in both] == ["debug", "info"]
        assert worker.stop() == 0


# --- a topic that disappears ------------------------------------------------------------------------------------------


def test_a_state_topic_that_disappears_under_a_running_worker_ends_it(
    site_over: Callable[..., Site], tmp_path: Path
) -> None:
    site = site_over(write_batches(tmp_path / "cases", BATCHES), partitions=1)
    site.send([scored_input(0)])
    worker = site.spawn("robbed").await_ready()
    site.await_rest()
    site.outside.delete_topic(site.topics.state)
    assert worker.wait() == EXIT_UNUSABLE
    assert f"{site.topics.state} disappeared while in use" in worker.log_text()


def test_a_state_topic_that_was_emptied_behind_a_running_worker_is_refused_by_whoever_restores_it(
    site_over: Callable[..., Site], tmp_path: Path
) -> None:
    site = site_over(write_batches(tmp_path / "cases", BATCHES), partitions=1)
    with site.worker() as worker:
        site.send([scored_input(0), scored_input(1)])
        site.await_rest()
        ends = site.outside.ends(site.topics.state)[0]
        site.outside.set_topic_config(site.topics.state, "cleanup.policy", "delete")  # else no record can be deleted
        site.outside.delete_records(site.topics.state, 0, ends.log)
        site.outside.set_topic_config(site.topics.state, "cleanup.policy", "compact")
        site.send([scored_input(2)])
        site.await_rest()
        worker.stop()
    again = site.spawn("again")
    assert again.wait() == EXIT_UNUSABLE
    assert f"the state of batch {KEY} has only 1 of its 3 rows" in again.log_text()
