"""What a service that subscribes is told to write works: the examples of subscribe.md against a real broker."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from consumer.wire.event_schemas import event_schema
from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.cloud_events import decoded
from tests.support.json_schema import draft_2020_12
from tests.support.node import node_project, run
from tests.support.outside import Outgoing, Outside, Record, Topics
from tests.support.site import Site
from tests.support.waiting import wait_until

pytestmark = pytest.mark.broker

EXAMPLES = Path(__file__).parents[2] / "consumer" / "examples" / "subscriber"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
BATCHES = make_batches(23, batches=3, cases_a_batch=5)
COUNT = 25
SECONDS = 60.0


@pytest.fixture(scope="module")
def typescript() -> Path:
    """Where the TypeScript examples are, their types checked, compiled."""
    folder = node_project(EXAMPLES / "typescript")
    run(folder, "node_modules/.bin/tsc")
    return folder / "dist"


@pytest.fixture(scope="module")
def finished(outside: Outside, typescript: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Outputs that the TypeScript example has published, all of them scored by one worker."""
    folder = tmp_path_factory.mktemp("downstream")
    (folder / "cases").mkdir()
    site = Site.build(outside, folder, write_batches(folder / "cases", BATCHES))
    events = [record.value or b"" for record in event_stream(23, BATCHES, COUNT, partitions=1, poison=0.0)]
    run(
        typescript,
        "node",
        "publish-outputs.js",
        given=b"\n".join(events).decode(),
        KAFKA_BROKERS=outside.bootstrap_servers,
        INPUT_TOPIC=site.topics.input,
        TRACEPARENT=TRACE,
    )
    site.send([Outgoing(b"{}", headers=(("traceparent", b"\xff"),), partition=0), *_untraced()])
    with site.worker() as worker:
        site.await_rest()
        _run, problems = site.seen()
        assert problems == []
        assert worker.stop() == 0
    return site


def _untraced() -> Sequence[Outgoing]:
    """Two inputs more: one with a traceparent that is none, one without any."""
    rubbish, plain = event_stream(24, BATCHES, 2, partitions=1, poison=0.0)
    return [Outgoing(rubbish.value, headers=(("traceparent", b"rubbish"),)), Outgoing(plain.value)]


def lines_of(results: Sequence[Record]) -> list[str]:
    """What the receiving examples print of these results, in the order of their batches."""
    documents = [record.json() for record in results]
    return [
        f"{each['batch_id']} {each['result']['test_id']} {each['result']['label']} "
        f"{each['summary']['pass']} of {each['summary']['total_cases']}"
        for each in documents
    ]


@contextmanager
def receiving(command: Sequence[str], outside: Outside, topics: Topics, log: Path) -> Iterator[Callable[[], list[str]]]:
    """Run a receiving example; gives what it has printed so far."""
    environment = {
        "KAFKA_BROKERS": outside.bootstrap_servers,
        "RESULT_TOPIC": topics.result,
        "GROUP_ID": f"g{uuid.uuid4().hex[:10]}",
    }
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=os.environ | environment, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield lambda: log.read_text(encoding="utf-8").splitlines()
    finally:
        process.terminate()
        process.wait(SECONDS)


def abort(outside: Outside, producer: Producer, topic: str, values: Sequence[bytes]) -> None:
    """Write results in a transaction that is aborted, as that of a worker that dies is."""
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value=value, partition=0, headers=[("ce_type", b"safe:v0:result")])
    producer.flush(SECONDS)
    producer.abort_transaction(SECONDS)
    assert outside.ends(topic)[0].log >= len(values)


def received(command: Sequence[str], site: Site, tmp_path: Path) -> list[str]:
    """All that a receiving example prints until it has seen the last record of the topic."""
    mark = uuid.uuid4().hex
    result = {"test_id": mark, "label": "-"}
    end = {"batch_id": "END", "result": result, "summary": {"pass": 0, "total_cases": 0}}
    partitions = site.outside.partitions(site.topics.result)
    headers = (("ce_type", b"safe:v0:result"),)
    site.outside.produce(
        site.topics.result,
        [Outgoing(json.dumps(end).encode(), headers=headers, partition=each) for each in range(partitions)],
    )
    with receiving(command, site.outside, site.topics, tmp_path / "example.log") as printed:
        wait_until(
            lambda: sum(mark in line for line in printed()) == partitions,
            within_seconds=SECONDS,
            what="the example has printed every result",
        )
        return [line for line in printed() if not line.startswith("END ")]


def test_every_published_output_is_read_as_an_event_with_its_trace(finished: Site) -> None:
    inputs = finished.outside.read(finished.topics.input)
    published = [record for record in inputs if record.header("ce_type") == "factory:generation:output"]
    assert len(published) == COUNT
    for record in published:
        event = decoded(record.key, record.value, record.headers)
        assert (event.type, event.source) == ("factory:generation:output", "/factory-cli")
        draft_2020_12()(event_schema("input")).validate(event.payload)


@pytest.mark.parametrize("kind", ["result", "report"])
def test_somebody_elses_decoder_reads_every_event_and_its_schema_fits(finished: Site, kind: str) -> None:
    schema = draft_2020_12()(event_schema(kind))
    records = _events(finished, kind)
    assert len(records) >= len(BATCHES)
    for record in records:
        event = decoded(record.key, record.value, record.headers)
        assert (event.type, event.source) == (f"safe:v0:{kind}", f"/safe/{finished.group}")
        schema.validate(event.payload)


def _events(site: Site, kind: str) -> list[Record]:
    """What the worker wrote; the tests' own marks have no id."""
    return [record for record in site.outside.read(getattr(site.topics, kind)) if record.header("ce_id")]


def test_a_trace_goes_from_the_input_to_its_result_and_rubbish_goes_nowhere(finished: Site) -> None:
    traced = {record.source for record in finished.outside.read(finished.topics.input) if record.header("ce_id")}
    results = _events(finished, "result")
    assert len(results) == COUNT + 2
    for record in results:
        source = record.json()["source"]
        came_with_one = (source["topic"], source["partition"], source["offset"]) in traced
        assert record.header("traceparent") == (TRACE if came_with_one else None)
    (letter,) = finished.outside.read(finished.topics.dead_letter)
    assert dict(letter.headers)["traceparent"] == b"\xff"  # a dead letter keeps what came


RECEIVERS = ["python", "typescript"]


@pytest.mark.parametrize("language", RECEIVERS)
def test_a_receiving_example_prints_every_result_and_nothing_that_was_aborted(
    finished: Site, typescript: Path, tmp_path: Path, language: str
) -> None:
    site = finished
    results = _events(site, "result")
    # Aborted twice by one producer, and once more than a fetch may hold: clients are known to stumble over both.
    phantom = json.dumps(results[0].json() | {"batch_id": "ABORTED"}).encode()
    producer = Producer(
        {"bootstrap.servers": site.outside.bootstrap_servers, "transactional.id": uuid.uuid4().hex, "log_level": 2}
    )
    producer.init_transactions(SECONDS)
    abort(site.outside, producer, site.topics.result, [phantom])
    abort(site.outside, producer, site.topics.result, [phantom, phantom])
    abort(site.outside, producer, site.topics.result, [phantom + b" " * 900_000] * 14)
    command = {
        "python": [sys.executable, "-u", str(EXAMPLES / "receive_results.py")],
        "typescript": ["node", str(typescript / "receive-results.js")],
    }[language]

    printed = received(command, site, tmp_path)

    assert sorted(printed) == sorted(lines_of(results))
    for batch in BATCHES:
        in_order = [line for line in lines_of(results) if line.startswith(f"{batch.batch_id} ")]
        assert [line for line in printed if line.startswith(f"{batch.batch_id} ")] == in_order
