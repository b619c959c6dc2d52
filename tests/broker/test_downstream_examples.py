"""What a service that subscribes is told to write works: the examples of subscribe.md against a real broker."""

import json
import os
import random
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from consumer import __version__
from consumer.wire.event_schemas import event_schema
from safe_core import digest_of_narrative
from tests.support.cases import (
    QUALITIES,
    QUALITY_WEIGHTS,
    WrittenCase,
    event_stream,
    make_batches,
    make_output,
    write_batches,
)
from tests.support.cloud_events import decoded
from tests.support.json_schema import draft_2020_12
from tests.support.node import node_project, run
from tests.support.outside import Outgoing, Outside, Record, Topics
from tests.support.schema_changes import resolved
from tests.support.site import Site
from tests.support.typescript import CLIENT, NODES, VERSIONS, Users, packed, users_of
from tests.support.waiting import wait_until

PROJECT = Path(__file__).parents[2]
EXAMPLES = PROJECT / "consumer" / "examples" / "subscriber"
STORY = PROJECT / "consumer" / "examples" / "story"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
BATCHES = make_batches(23, batches=3, cases_a_batch=5)
Json = Any
SECONDS = 60.0


@pytest.fixture(scope="module")
def typescript(tmp_path_factory: pytest.TempPathFactory) -> Users:
    """Two projects in TypeScript that have installed the package from its tarball."""
    folder = tmp_path_factory.mktemp("typescript")
    return users_of(packed(folder), folder / "users")


@pytest.fixture(scope="module")
def finished(outside: Outside, typescript: Users, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Outputs that the TypeScript package has published, half with each Node.js, all of them scored by one worker."""
    folder = tmp_path_factory.mktemp("downstream")
    (folder / "cases").mkdir()
    site = Site.build(outside, folder, write_batches(folder / "cases", BATCHES))
    for at, version in enumerate(VERSIONS):
        done = run(
            typescript.root,
            *typescript.command(version, "publish-outputs.ts"),
            given="\n".join(json.dumps(each) for each in PUBLISHED[at::2]),
            KAFKA_BROKERS=outside.bootstrap_servers,
            INPUT_TOPIC=site.topics.input,
            TRACEPARENT=TRACE,
        )
        assert done.stdout == f"{len(PUBLISHED[at::2])} outputs published\n"
    site.send([Outgoing(b"{}", headers=(("traceparent", b"\xff"),), partition=0), *_untraced()])
    with site.worker() as worker:
        site.await_rest()
        _run, problems = site.seen()
        assert problems == []
        assert worker.stop() == 0
    return site


def _published(case: WrittenCase, event: Json, at: int) -> Json:
    """Give what a caller of the package has: an answer or a failure, and the narrative that the model read."""
    output = event["output"] or {}
    told = [case.entry["patient_payload"].replace(" ", "\u3000\n"), "Another patient.", None][at % 3]
    texts = {name: output[name] for name in ("signals", "summary", "followup_questions") if output.get(name)}
    said = {"failure": "429 Too Many Requests"} if at % 5 == 4 else {"output": texts or None}
    return {"test_id": case.test_id, "batch_id": case.batch_id, "run_id": "r1", "narrative": told, **said}


def _all_published() -> list[Json]:
    """One output for each test case, every kind of narrative with an answer and with a failure."""
    rng = random.Random(23)
    cases = [case for batch in BATCHES for case in batch.cases]
    qualities = [rng.choices(QUALITIES, QUALITY_WEIGHTS)[0] for _ in cases]
    outputs = [make_output(rng, case, quality) for case, quality in zip(cases, qualities, strict=True)]
    return [
        _published(case, {"output": output}, at) for at, (case, output) in enumerate(zip(cases, outputs, strict=True))
    ]


PUBLISHED = _all_published()
COUNT = len(PUBLISHED)


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


@pytest.mark.broker
def test_every_published_output_is_an_event_that_fits_its_schema(finished: Site) -> None:
    inputs = finished.outside.read(finished.topics.input)
    published = [record for record in inputs if record.header("ce_type") == "factory:generation:output"]
    assert len(published) == COUNT
    ids = [record.header("ce_id") for record in published]
    assert len(set(ids)) == COUNT
    for record in published:
        event = decoded(record.key, record.value, record.headers)
        assert (event.type, event.source) == ("factory:generation:output", "/factory-cli")
        draft_2020_12()(event_schema("input")).validate(event.payload)
        assert record.key == f"{event.payload['batch_id']}/{event.payload['test_id']}".encode()


@pytest.mark.broker
def test_the_worker_sees_whose_narrative_was_read_and_which_calls_failed(finished: Site) -> None:
    said = {
        (event["result"]["test_id"], event["input_matches"], event["generation"])
        for event in (record.json() for record in _events(finished, "result") if record.header("ce_causationid"))
    }
    matches = [True, False, None]
    assert said == {
        (each["test_id"], *((None, "failed") if "failure" in each else (matches[at % 3], "answered")))
        for at, each in enumerate(PUBLISHED)
    }
    assert {(matches, generation) for _, matches, generation in said} == {
        *((each, "answered") for each in matches),
        (None, "failed"),
    }


@pytest.mark.broker
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


@pytest.mark.broker
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


RECEIVERS = ["python", *VERSIONS]


@pytest.mark.broker
@pytest.mark.parametrize("receiver", RECEIVERS)
def test_a_receiving_example_prints_every_result_and_nothing_that_was_aborted(
    finished: Site, typescript: Users, tmp_path: Path, receiver: str
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
    python = [sys.executable, "-u", str(EXAMPLES / "receive_results.py")]
    command = python if receiver == "python" else typescript.command(receiver, "receive-results.ts")

    printed = received(command, site, tmp_path)

    assert sorted(printed) == sorted(lines_of(results))
    for batch in BATCHES:
        in_order = [line for line in lines_of(results) if line.startswith(f"{batch.batch_id} ")]
        assert [line for line in printed if line.startswith(f"{batch.batch_id} ")] == in_order


@pytest.mark.broker
def test_every_report_comes_in_order_and_again_where_the_handler_has_failed(finished: Site, typescript: Users) -> None:
    source = """
        const { Kafka, logLevel } = require('kafkajs');
        const { onReport } = require('safe-scorer');
        const [server, topic, groupId, wanted] = JSON.parse(process.argv[1]);
        const kafka = new Kafka({ brokers: [server], logLevel: logLevel.NOTHING });
        (async () => {
          const seen = [];
          let [failures, all] = [0, undefined];
          const enough = new Promise((resolve) => (all = resolve));
          const reports = await onReport(kafka, { groupId, topic }, ({ batch_id, summary }, { id, source }) => {
            if (failures++ === 0) throw new Error('once');
            seen.push([batch_id, id, source, summary]);
            if (seen.length === wanted) all();
          });
          await enough;
          await reports.stop();
          await reports.finished;
          console.log(JSON.stringify(seen));
        })();
    """
    reports = _events(finished, "report")
    given = [finished.outside.bootstrap_servers, finished.topics.report, f"g{uuid.uuid4().hex[:10]}", len(reports)]
    seen = json.loads(run(typescript.root, str(typescript.nodes["22"]), "-e", source, json.dumps(given)).stdout)
    for batch in BATCHES:
        assert [each for each in seen if each[0] == batch.batch_id] == [
            [batch.batch_id, record.header("ce_id"), record.header("ce_source"), record.json()["summary"]]
            for record in reports
            if record.json()["batch_id"] == batch.batch_id
        ]


# --- the package, without a broker ------------------------------------------------------------------------------------


def test_the_types_are_those_of_the_schemas() -> None:
    """Refresh with SAFE_TEST_UPDATE_GOLDEN=1."""
    schemas = str(PROJECT / "consumer" / "wire" / "schemas")
    made = run(node_project(CLIENT), "node", "scripts/generate-types.mjs", schemas).stdout
    written = CLIENT / "src" / "types.ts"
    if os.environ.get("SAFE_TEST_UPDATE_GOLDEN"):
        written.write_text(made, encoding="utf-8")
    assert written.read_text(encoding="utf-8") == made
    assert not re.findall(r"\b(?:CR|AH|AC)\d|\[string(?:, string)*\]", made)


def test_the_package_has_the_version_of_safe_and_needs_no_client_but_kafkajs() -> None:
    package = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == __version__
    assert package["peerDependencies"].keys() == {"kafkajs"}
    assert "dependencies" not in package
    locks = [CLIENT / "package-lock.json", NODES / "package-lock.json"]
    assert not [lock for lock in locks if '"resolved"' in lock.read_text(encoding="utf-8")]


def test_the_examples_fit_the_types_under_strict_rules_as_a_module(typescript: Users) -> None:
    run(typescript.root / "esm", "../node_modules/.bin/tsc", "-p", ".")


NARRATIVES = [
    "A patient.",
    " \t two\x1cwords\x85and\xa0more\u2003\u3000here\r\n\x0b",
    "\ufeffa byte order mark is a letter here",
    "\u200bso is this \U0001f600",
    "  \n ",
    "",
]


@pytest.mark.parametrize("version", VERSIONS)
def test_both_forms_load_in_every_version_and_give_the_digest_of_safe(typescript: Users, version: str) -> None:
    program = "console.log(JSON.stringify(JSON.parse(process.argv[1]).map(narrativeDigest)))"
    loads = {
        "commonjs": f"const {{ narrativeDigest }} = require('safe-scorer'); {program}",
        "module": f"import {{ narrativeDigest }} from 'safe-scorer'; {program}",
    }
    for kind, source in loads.items():
        node = [str(typescript.nodes[version]), f"--input-type={kind}", "-e", source, json.dumps(NARRATIVES)]
        digests = json.loads(run(typescript.root, *node).stdout)
        assert digests == [digest_of_narrative(each) for each in NARRATIVES]


def scored(typescript: Users, version: str, *arguments: str, args: Sequence[str] = ()) -> Json:
    """What safeScore() gives in Node.js."""
    source = """
        const { safeScore } = require('safe-scorer');
        const [command, args, concern, batch, outputs, testDir] = JSON.parse(process.argv[1]);
        safeScore({ concern, batch, outputs, testDir, command, args }).then(
          (run) => console.log(JSON.stringify(run)), (error) => console.log(JSON.stringify(error.message)));
    """
    given = json.dumps([[sys.executable, "-m", "safe_scorer"], args, *arguments])
    node = [str(typescript.nodes[version]), "-e", source, given]
    return json.loads(run(typescript.root, *node, PYTHONPATH=str(PROJECT), SOURCE_DATE_EPOCH="0").stdout)


RUN_1 = ["STROKE", "*", str(STORY / "run_1.json"), str(STORY / "cases")]
EXIT_CODES: list[tuple[str, list[str], list[str], int]] = [
    ("a case fails", RUN_1, [], 1),
    ("a condition holds", RUN_1, ["--min-pass-rate", "0"], 0),
    ("a condition does not hold", RUN_1, ["--min-pass-rate", "0.9"], 1),
    ("files are wrong", ["STROKE", "*", "nowhere.json", str(STORY / "cases")], [], 3),
]


@pytest.mark.parametrize(("case", "arguments", "args", "code"), EXIT_CODES, ids=[each[0] for each in EXIT_CODES])
def test_score_keeps_the_exit_code_and_gives_the_report(
    typescript: Users, case: str, arguments: list[str], args: list[str], code: int
) -> None:
    done = scored(typescript, VERSIONS[0], *arguments, args=args)
    assert (done["exitCode"], done["report"] is None) == (code, code == 3)
    assert done["messages"], case
    if done["report"] is not None:
        draft_2020_12()(resolved(event_schema("report"))).validate(done["report"])
        for result in done["report"]["results"]:
            draft_2020_12()(resolved(event_schema("result"))["properties"]["result"]).validate(result)
            assert result.keys() >= {"batch_id", "input_matches", "generation"}


def test_a_run_that_needs_review_has_the_exit_code_of_that(typescript: Users, tmp_path: Path) -> None:
    (batch,) = (STORY / "cases").glob("*.json")
    cases = json.loads(batch.read_text(encoding="utf-8"))["test_cases"]
    (tmp_path / "cases").mkdir()
    to_review = [case for case in cases if case["test_id"] == "ST-102"]
    (tmp_path / "cases" / "one.json").write_text(json.dumps({"test_cases": to_review}), encoding="utf-8")
    done = scored(typescript, VERSIONS[1], "STROKE", "one", str(STORY / "run_1.json"), str(tmp_path / "cases"))
    assert (done["exitCode"], done["report"]["summary"]["review"]) == (2, 1)


def test_the_example_that_scores_exits_as_safe_does(typescript: Users, tmp_path: Path) -> None:
    program = tmp_path / "safe"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m safe_scorer "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    done = subprocess.run(
        [*typescript.command("24", "score-run.ts"), *RUN_1],
        cwd=typescript.root,
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "safe: FAIL: 3 of 6 cases fail\n")
    assert done.stdout.startswith("ST-101 Fail last known well 21:15; ")
    assert len(done.stdout.splitlines()) == 6


def test_what_cannot_be_published_or_started_is_refused_with_a_remedy(typescript: Users) -> None:
    source = """
        const { OutputPublisher, onReport, onResult, safeScore } = require('safe-scorer');
        const told = (promise) => promise.then(() => 'taken', (error) => error.message);
        const publisher = new OutputPublisher({ producer: () => { throw new Error('no broker'); } });
        const ids = { test_id: 'T', batch_id: 'B' };
        const never = { on() {}, events: {}, connect: () => new Promise(() => {}) };
        const kafka = { consumer: () => never };
        void onResult(kafka, { groupId: 'g' }, () => {});
        Promise.all([
          told(publisher.publishOutput({ ...ids, narrative: null, failure: ' ' })),
          told(publisher.publishOutput({ ...ids, narrative: ' ', output: null })),
          told(publisher.publishOutput({ ...ids, narrative: null, output: null })),
          told(onReport(kafka, { groupId: 'g' }, () => {})),
          told(safeScore({ command: ['no-such-program'], concern: 'C', batch: '*', outputs: 'o', testDir: 't' })),
        ]).then((all) => console.log(all.join('\\n')));
    """
    said = run(typescript.root, str(typescript.nodes["22"]), "-e", source).stdout.splitlines()
    assert said == [
        "T: failure is blank; SAFE would take it for an answer without any text",
        "T: narrative is blank; give the one that the model read, or null",
        "no broker",
        "group g already reads safe.v0.result: give the subscription of safe.v0.report a group of its own",
        'no-such-program cannot be started: install SAFE, or name it with the option "command"',
    ]


def test_never_more_than_one_request_is_in_flight_and_a_failed_producer_is_not_used_again(typescript: Users) -> None:
    source = """
        const { OutputPublisher } = require('safe-scorer');
        const log = []; let made = 0, inFlight = 0;
        const producer = () => { const id = ++made; return {
          connect: async () => {}, disconnect: async () => { log.push(`end ${id}`); },
          send: async ({ messages }) => {
            log.push(`${id}: ${messages.length} (${++inFlight})`);
            await new Promise(setImmediate);
            inFlight--;
            if (log.length === 2) throw new Error('timed out');
          } }; };
        const publisher = new OutputPublisher({ producer });
        const ids = { test_id: 'T', batch_id: 'B', narrative: null };
        const event = (size) => ({ ...ids, output: { summary: 'x'.repeat(size) } });
        const one = (size) => publisher.publishOutput(event(size)).then(() => 1, () => 0);
        (async () => {
          const first = one(1);
          await new Promise(setImmediate);
          const more = [1, 1, 1].map(one);
          const done = [await first, ...(await Promise.all(more))];
          const last = await Promise.all([600_000, 600_000, 1].map(one));
          await publisher.close();
          console.log(JSON.stringify([done, last, log]));
        })();
    """
    done, last, log = json.loads(run(typescript.root, str(typescript.nodes["24"]), "-e", source).stdout)
    assert log == ["1: 1 (1)", "1: 3 (1)", "end 1", "2: 1 (1)", "2: 2 (1)", "end 2"]
    assert (done, last) == ([1, 0, 0, 0], [1, 1, 1])
