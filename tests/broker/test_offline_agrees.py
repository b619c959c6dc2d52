"""The same outputs through the worker and through `safe score`: the same bytes of results, the same aggregates."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.site import Site

pytestmark = pytest.mark.broker

Json = Any
BATCHES = make_batches(23, batches=3, cases_a_batch=12)
# What a report from Kafka cannot have, and what tells one report from another.
OFFLINE_ALONE = {
    *("generated_at", "results", "inputs", "doubtful_hits", "missing_test_ids", "selection"),
    *("mean_lenient", "mean_coverage", "lenient_cases", "lenient_terms"),  # a worker must be told to have them
    *("near_violations", "unsupported"),
}
OF_RESULTS_OFFLINE = ("batch_id", "doubtful", "lenient", "coverage", "near_violations", "unsupported")


def written(document: Json) -> str:
    """A document's bytes but for white space: key order and every digit count."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def test_the_same_cases_give_the_same_bytes_either_way(site_over: Callable[..., Site], tmp_path: Path) -> None:
    folder = write_batches(tmp_path / "cases", BATCHES)
    # In one partition the order of offsets is that of the lines, which decides between events of the same time.
    site = site_over(folder, partitions=1)
    records = list(event_stream(23, BATCHES, 200, partitions=1, repeated=0.5, late=0.3, poison=0.0, failed=0.3))
    (tmp_path / "events.jsonl").write_bytes(b"".join((record.value or b"") + b"\n" for record in records))
    site.send(records)
    with site.worker():
        site.await_rest()
        run, problems = site.seen()
    assert problems == []

    for batch in BATCHES:
        events = [data for data in (record.json() for record in run.results) if data["batch_id"] == batch.batch_id]
        (reported,) = [
            report
            for report in {record.key: record.json() for record in run.reports}.values()
            if report["batch_id"] == batch.batch_id
        ]
        offline = scored_offline(site, batch.cases[0].concern_id, batch.batch_id, folder, tmp_path)
        assert offline["summary"] == events[-1]["summary"]
        standing = {result["test_id"]: result for result in offline["results"]}
        more = ("input_matches", "generation")
        published = {written(event["result"] | {name: event[name] for name in more}) for event in events}
        assert {event["generation"] for event in events} == {"answered", "failed"}
        assert len(standing) == 12
        for result in standing.values():
            for name in OF_RESULTS_OFFLINE:
                result.pop(name, None)
        assert all(written(result) in published for result in standing.values())
        assert {name: offline[name] for name in offline.keys() - OFFLINE_ALONE} == {
            name: reported[name] for name in reported.keys() - OFFLINE_ALONE
        }


def scored_offline(site: Site, concern_id: str, batch_id: str, cases: Path, folder: Path) -> Json:
    done = site.installation.run(
        "score", "-c", concern_id, "-b", batch_id, "-t", str(cases), "-i", "events.jsonl", "-f", "json", folder=folder
    )
    assert done.returncode in {0, 1, 2}, done.stderr
    return json.loads(done.stdout)


def test_a_result_can_be_explained_by_the_record_that_it_names(site_over: Callable[..., Site], tmp_path: Path) -> None:
    folder = write_batches(tmp_path / "cases", BATCHES)
    site = site_over(folder, partitions=2)
    site.send(list(event_stream(29, BATCHES, 12, partitions=2, repeated=0.0, late=0.0, poison=0.0, failed=0.2)))
    with site.worker():
        site.await_rest()
        run, problems = site.seen()
    assert problems == []
    assert {record.json()["generation"] for record in run.results} == {"answered", "failed"}
    for result in (record.json() for record in run.results):
        source = result["source"]
        coordinates = f"{source['topic']}/{source['partition']}/{source['offset']}"
        explained = site.installation.run("explain", "--source", coordinates, "-t", str(folder), folder=tmp_path)
        assert (explained.returncode, explained.stderr) == (0, "")
        failed = result["generation"] == "failed"
        told = " ".join(explained.stdout.split())
        assert ("The call of the model failed, so there is nothing to explain: " in told) is failed
        if failed:
            continue
        warned = "Attention This output was made from another narrative" in told
        assert warned is (result["input_matches"] is False)
        assert f"{result['result']['test_id']}: {result['result']['label']}" in told
        for term in result["result"]["details"]["CR"]["missing"]:
            assert term in re.sub(r"\[-|-\]", "", explained.stdout)
    beyond = f"{site.topics.input}/0/1000"
    refused = site.installation.run("explain", "--source", beyond, "-t", str(folder), folder=tmp_path)
    assert refused.returncode == 3
    assert f"there is no record {beyond}: it was removed by retention, or never committed" in refused.stderr
