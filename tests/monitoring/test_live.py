"""A worker on a real broker, scraped by a real Prometheus, whose real Alertmanager notifies a webhook."""

import json
import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import POISON, Quality, WrittenBatch, encoded, make_batches, make_event, write_batches
from tests.support.dashboard import Query, dashboard, queries
from tests.support.monitored import AS_SHIPPED, PATIENCE_SECONDS, Monitored, monitored
from tests.support.outside import Outgoing, Outside
from tests.support.prometheus import Prometheus, asked, run
from tests.support.promql import alerts
from tests.support.site import Site
from tests.support.worker import Worker

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("watchers")]

GOOD, HALF, BAD = make_batches(71, batches=3, cases_a_batch=6)
FLOORS = {"pass_ratio": 0.8, "mean_CR": 0.7}
RUNBOOKS = "docs/how-to/runbooks.md#"
Answers = dict[tuple[str, str], list[Any]]


@dataclass(frozen=True, slots=True)
class Scene:
    """An installation with one worker, and whoever watches it."""

    site: Site
    worker: Worker
    watched: Monitored

    def publish(self, batch: WrittenBatch, quality: Quality, *, cases: int = 99) -> None:
        """Write outputs of that quality for the batch's cases, dated now."""
        rng = random.Random(cases)
        now = datetime.now(UTC)
        events = [make_event(rng, case, quality=quality, generated_at=now) for case in batch.cases[:cases]]
        self.site.send([Outgoing(encoded(event)) for event in events])


@pytest.fixture(scope="module")
def scene(watchers: None, outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:  # noqa: ARG001 # without them nothing need start
    """Everything that these tests look at, in the order in which they stand here."""
    folder = tmp_path_factory.mktemp("live")
    cases = write_batches(folder / "cases", (GOOD, HALF, BAD))
    site = Site.build(
        outside, folder, cases, partitions=2, settings={"SAFE_V0_LENIENT": "true", "SAFE_V0_UNSUPPORTED": "true"}
    )
    (cases / "torn.json").write_text('{"test_cases": [', encoding="utf-8")
    with (
        site.worker() as worker,
        monitored(folder / "watch", [worker.http_address], batches=BAD.batch_id, floors=FLOORS) as watched,
    ):
        watched.prometheus.await_answer("safe_ready == 1", within_seconds=PATIENCE_SECONDS)
        yield Scene(site, worker, watched)


# --- the dashboard ----------------------------------------------------------------------------------------------------

# What answers nothing while all is well.
EMPTY_IS_GOOD = {
    "Waiting partitions A",
    "Waiting partitions B",
    "Ready B",
    "Next certificate to expire A",
    "Batches with alerts A",
}


@pytest.fixture(scope="module")
def traffic(scene: Scene) -> Scene:
    """What fills the panels: a whole and half a batch, empty, mismatched, failed and evasive outputs, dead letters."""
    scene.publish(GOOD, "pass")
    scene.publish(HALF, "review", cases=3)
    scene.publish(HALF, "empty", cases=1)
    scene.publish(HALF, "fail", cases=1)  # made from another narrative
    scene.publish(HALF, "failed", cases=4)  # three cases keep their answers
    again = make_event(random.Random(1), GOOD.cases[0], quality="pass", generated_at=datetime.now(UTC))
    forbidden = GOOD.cases[0].terms[1][0]
    again["output"]["followup_questions"].append(f"Was it {forbidden[0]}\u00ad{forbidden[1:]}?")  # a soft hyphen
    again["output"]["summary"] += " A dose of 987 mg was given."  # of which its narrative says nothing
    scene.site.send([Outgoing(encoded(again | {"runId": "r1"}))])  # which nothing reads
    scene.site.send([Outgoing(value) for value in POISON])
    scene.site.await_rest()
    committed = f'safe_records_total{{outcome="scored"}} == {len(GOOD.cases) + 10}'
    scene.watched.prometheus.await_answer(committed, within_seconds=PATIENCE_SECONDS)
    # A scrape may come between the two stages; the empty output answers a case that has another one.
    folded = f"sum(safe_batch_cases) == {len(GOOD.cases) + 4} and sum(safe_batch_failed_generations) == 1"
    scene.watched.prometheus.await_answer(folded, within_seconds=PATIENCE_SECONDS)
    scene.site.send([Outgoing(encoded(again | {"runId": "r2"}))])  # a rate is that of a series that was there before
    once_more = f'safe_records_total{{outcome="scored"}} == {len(GOOD.cases) + 11}'
    scene.watched.prometheus.await_answer(once_more, within_seconds=PATIENCE_SECONDS)
    return scene


@pytest.fixture(scope="module")
def answers(traffic: Scene) -> Answers:
    """What each query of the dashboard answers, by panel and query; `pytest -s` lists it."""
    found: Answers = {}
    for query in queries():
        samples = found[query.panel, query.ref] = answer(traffic.watched.prometheus, query)
        shown = ", ".join(f"{_labels(each['metric'])} {float(each['value'][1]):.4g}" for each in samples[:4])
        print(f"{query.panel} {query.ref}: {len(samples)} series: {shown}")
    return found


def answer(prometheus: Prometheus, query: Query) -> list[Any]:
    """The samples of a query; asked again where a scrape has just failed, as it may on a machine that is busy."""
    if f"{query.panel} {query.ref}" in EMPTY_IS_GOOD:
        return prometheus.query(query.filled)
    return prometheus.await_answer(query.filled, within_seconds=PATIENCE_SECONDS)


def _labels(metric: dict[str, str]) -> str:
    return "/".join(value[:24] for name, value in metric.items() if name not in {"__name__", "job", "instance"}) or "·"


@pytest.mark.parametrize("query", list(queries()), ids=lambda query: f"{query.panel} {query.ref}")
def test_each_query_of_the_dashboard_has_an_answer(query: Query, answers: Answers) -> None:
    samples = answers[query.panel, query.ref]
    if f"{query.panel} {query.ref}" in EMPTY_IS_GOOD:
        assert samples == []
        return
    assert samples
    assert any(math.isfinite(float(sample["value"][1])) for sample in samples)


def test_the_numbers_are_those_of_what_was_published(
    answers: dict[tuple[str, str], list[dict[str, list[str]]]],
) -> None:
    def one(panel: str, ref: str = "A") -> float:
        [sample] = answers[panel, ref]
        return float(sample["value"][1])

    assert one("Cases") == 10
    assert one("Pass rate") == 6 / 10
    assert (one("Complete batches"), one("Complete batches", "B")) == (1, 2)
    assert one("Incomplete batches", "B") == 4
    assert sorted(float(sample["value"][1]) for sample in answers["Worst batches", "G"]) == [0, 1]
    assert one("Test cases that cannot be used") == 1
    assert {float(sample["value"][1]) for sample in answers["Worst batches", "A"]} == {0, 1}


def test_what_can_be_chosen_are_the_concerns_and_batches_that_are_live(traffic: Scene) -> None:
    offered = {
        variable["name"]: traffic.watched.prometheus.get(
            f"label/{variable['name']}_id/values", **{"match[]": "safe_batch_pass_ratio"}
        )
        for variable in dashboard()["templating"]["list"][2:]
    }
    assert offered["batch"] == sorted([GOOD.batch_id, HALF.batch_id])
    assert len(offered["concern"]) == 2


def test_promtool_objects_to_nothing_on_the_page_of_a_busy_worker(traffic: Scene) -> None:
    page = asked(f"http://{traffic.worker.http_address}/metrics").decode()
    said = run("promtool", "check", "metrics", given=page)
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")


def test_prometheus_evaluates_every_rule_without_an_error(traffic: Scene) -> None:
    groups = traffic.watched.prometheus.get("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["name"] for rule in rules if rule["type"] == "alerting"} == alerts().keys()
    assert [(rule["name"], rule["lastError"]) for rule in rules if rule["health"] == "err"] == []


def test_nobody_is_told_of_batches_that_nobody_watches(traffic: Scene) -> None:
    assert [each for each in traffic.watched.received.notices if "batch_id" in each.labels] == []


# --- while something is out of reach ----------------------------------------------------------------------------------


def test_test_cases_out_of_reach_show_in_readiness_and_in_the_partitions_that_wait(scene: Scene) -> None:
    prometheus, cases = scene.watched.prometheus, Path(scene.site.installation.expectations)
    away = cases.rename(cases.with_name("away"))
    scene.publish(HALF, "pass", cases=2)
    prometheus.await_answer("safe_ready == 0", within_seconds=PATIENCE_SECONDS)
    waiting = prometheus.await_answer("safe_partition_waiting_seconds > 1", within_seconds=PATIENCE_SECONDS)
    assert {each["metric"]["topic"] for each in waiting} == {scene.site.topics.input}
    away.rename(cases)
    prometheus.await_answer("safe_ready == 1", within_seconds=PATIENCE_SECONDS)
    prometheus.await_answer("sum(safe_partition_waiting_seconds) == 0", within_seconds=PATIENCE_SECONDS)


# --- to be paged ------------------------------------------------------------------------------------------------------


def test_a_bad_batch_in_kafka_becomes_a_ticket_that_ends_once_the_batch_is_better(scene: Scene) -> None:
    began = time.monotonic()
    scene.publish(BAD, "harm")
    scene.publish(BAD, "fail", cases=4)
    labels = {"alertname": "SafeBatchBelowFloor", "batch_id": BAD.batch_id, "measure": "pass_ratio"}
    told = scene.watched.received.await_notice("firing", within_seconds=PATIENCE_SECONDS, **labels)

    how = "as shipped" if AS_SHIPPED else "scrapes, `for` and group wait of 1 s"
    print(f"{told.at - began:.1f} s from publishing a bad batch to its notification ({how})")
    concern = BAD.cases[0].concern_id
    group = scene.site.installation.group
    common = {"job": "safe", "group": group, "severity": "ticket", "owner": "quality", "concern_id": concern}
    assert told.labels == {**labels, **common}
    assert told.receiver == "tickets"
    assert told.annotations == {
        "summary": f"Batch {BAD.batch_id}: pass_ratio is below its floor, group {group}",
        "description": f"Its pass_ratio is 0.000 (concern {concern}). "
        "The batch is complete, or has enough cases to judge it by.",
        "runbook_url": RUNBOOKS + "safebatchbelowfloor",
    }
    used = {"alertname": "SafeForbiddenTermUsed", "batch_id": BAD.batch_id}
    word = scene.watched.received.await_notice("firing", within_seconds=PATIENCE_SECONDS, **used)
    assert word.annotations["runbook_url"] == RUNBOOKS + "safeforbiddentermused"

    began = time.monotonic()
    scene.publish(BAD, "pass")
    ended = scene.watched.received.await_notice("resolved", within_seconds=PATIENCE_SECONDS, **labels)
    print(f"{ended.at - began:.1f} s from publishing better outputs to the end of it")
    scene.watched.received.await_notice("resolved", within_seconds=PATIENCE_SECONDS, **used)


def test_the_only_worker_that_is_killed_pages(scene: Scene) -> None:
    began = time.monotonic()
    scene.worker.kill()
    told = scene.watched.received.await_notice(
        "firing", within_seconds=PATIENCE_SECONDS, alertname="SafeDown", job="safe"
    )
    print(f"{told.at - began:.1f} s from the end of the worker to the page")
    group = scene.site.installation.group
    assert told.labels == {"alertname": "SafeDown", "severity": "page", "job": "safe", "group": group}
    assert told.receiver == "pager"
    assert told.annotations["runbook_url"] == RUNBOOKS + "safedown"
    page = json.dumps([dict(each.annotations) for each in scene.watched.received.notices])
    assert "patient" not in page.lower()
