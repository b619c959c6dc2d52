"""`safe results` against results that a real worker wrote, beside what a foreign client reads."""

import itertools
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cloudevents.core.formats.json import JSONFormat
from confluent_kafka import Producer

from tests.support.cases import encoded, event_stream, make_batches, write_batches
from tests.support.documents import Block, blocks_of, lines_of, text_of
from tests.support.forked_commands import SafeProcess
from tests.support.kafka_broker import KafkaBroker
from tests.support.outside import Outgoing, Outside, Record, Topics
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Installation, command_line

pytestmark = pytest.mark.broker

BATCHES = make_batches(41, batches=3, cases_a_batch=4)
EVENTS = 60
EXIT_UNUSABLE = 3
SOON_SECONDS = 60.0
Json = Any


@pytest.fixture(scope="module")
def scored(outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Outputs of three batches, scored by a worker that has ended."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "cases").mkdir()
    site = Site.build(outside, folder, write_batches(folder / "cases", BATCHES), partitions=2)
    site.send(list(event_stream(5, BATCHES, EVENTS, partitions=2, poison=0.1)))
    with site.worker() as worker:
        site.await_rest()
        _run, problems = site.seen()
        assert problems == []
        assert worker.stop() == 0
    return site


def safe(site: Site, *arguments: str, exit_code: int = 0) -> "subprocess.CompletedProcess[str]":
    done = site.installation.run("results", *arguments, folder=site.folder)
    assert done.returncode == exit_code, (done.returncode, done.stdout, done.stderr)
    return done


def newest_reports(site: Site) -> dict[str, Json]:
    """The last report of each batch, as a foreign client reads them."""
    return {record.json()["batch_id"]: record.json() for record in site.outside.read(site.topics.report)}


@dataclass(frozen=True, slots=True)
class Following:
    """A `safe results --follow` in the background."""

    process: SafeProcess
    stdout: Path
    stderr: Path

    def until(self, words: str, *, said: bool = False) -> str:
        """Wait until it has printed (or said on standard error) these words; returns all that it has."""
        path = self.stderr if said else self.stdout

        def seen() -> str | None:
            assert self.process.poll() is None, self.stderr.read_text("utf-8")
            text = path.read_text("utf-8") if path.exists() else ""
            return text if words in text else None

        return wait_until(seen, within_seconds=SOON_SECONDS, what=f"it prints {words!r}")

    def await_begun(self, outside: Outside, topic: str, model: Record) -> str:
        """Produce results, each of another source, until one of them is printed: from then on it follows."""
        offsets = itertools.count(1)

        def printed() -> str | None:
            outside.produce(topic, [result_of(model, offset=next(offsets))])
            return self.stdout.read_text("utf-8") if self.stdout.exists() else None

        return wait_until(lambda: printed() or None, within_seconds=SOON_SECONDS, what="it follows", every_seconds=0.3)

    def interrupt(self) -> int:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(SOON_SECONDS)


@contextmanager
def following(installation: Installation, folder: Path, *arguments: str) -> Iterator[Following]:
    stdout, stderr = folder / "followed", folder / "said"
    told = ("results", "--follow", *arguments)
    process = SafeProcess(told, folder=folder, environment=installation.environment(), stdout=stdout, stderr=stderr)
    try:
        yield Following(process, stdout, stderr)
    finally:
        process.kill()
        process.wait(SOON_SECONDS)


# --- what is there ----------------------------------------------------------------------------------------------------


def test_the_table_has_each_batch_as_its_last_report(scored: Site) -> None:
    done = safe(scored)
    rows = {words[0]: words[1:] for line in done.stdout.splitlines() if " of " in line and (words := line.split())}
    for batch_id, report in newest_reports(scored).items():
        summary = report["summary"]
        labels = [str(summary[label]) for label in ("pass", "review", "fail")]
        counted = [str(summary["total_cases"]), "of", str(report["expected_cases"])]
        means = [f"{report['mean_scores'][name]:.2f}" for name in ("CR", "AH", "AC")]
        assert rows.pop(batch_id) == [*counted, *labels, f"{summary['overall_pass_rate']:.0%}", *means]
    assert list(rows) == ["all"]
    assert done.stderr == ""


def test_every_committed_result_is_a_cloud_event_on_a_line(scored: Site) -> None:
    read = scored.outside.read(scored.topics.result)
    lines = safe(scored, "--format", "json").stdout.splitlines()
    events = [JSONFormat().read(None, line) for line in lines]
    assert [(each.get_id(), each.get_type(), each.get_subject()) for each in events] == [
        (record.header("ce_id"), "safe:v0:result", record.header("ce_subject")) for record in read
    ]
    assert [each.get_data() for each in events] == [record.json() for record in read]
    assert len(events) > EVENTS // 2


def test_reports_and_one_batch_can_be_chosen(scored: Site) -> None:
    batch = BATCHES[0].batch_id
    reports = [json.loads(line) for line in safe(scored, "--format", "json", "--reports").stdout.splitlines()]
    assert {each["data"]["batch_id"] for each in reports} == {each.batch_id for each in BATCHES}
    assert {each["type"] for each in reports} == {"safe:v0:report"}
    chosen = [json.loads(line) for line in safe(scored, "--format", "json", "-b", batch).stdout.splitlines()]
    assert {each["data"]["batch_id"] for each in chosen} == {batch}
    assert batch in (said := safe(scored, "--batch", "none_*").stderr)
    assert said.startswith("safe: there are no reports of none_*; batches there: ")


def test_since_leaves_out_what_is_older(scored: Site) -> None:
    newest = max(record.timestamp for record in scored.outside.read(scored.topics.result))
    later = datetime.fromtimestamp(newest // 1_000 + 3_600, UTC)
    assert safe(scored, "--format", "json", "--since", "1d").stdout != ""
    done = safe(scored, "--format", "json", "--since", later.isoformat())
    assert (done.stdout, done.stderr) == ("", "safe: there are no results of any batch\n")


def test_no_consumer_group_is_left_behind(scored: Site) -> None:
    def groups() -> set[str]:
        listed = scored.outside.admin.list_consumer_groups().result(SOON_SECONDS).valid
        return {each.group_id for each in listed or ()}

    before = groups()
    safe(scored)
    safe(scored, "--format", "json")
    safe(scored, "--outputs", "--batch", "*")
    with following(scored.installation, scored.folder, "--since", "1d") as followed:
        followed.until("Pass")
        assert groups() <= before
        assert followed.interrupt() == 0
    assert groups() <= before


# --- what comes -------------------------------------------------------------------------------------------------------


def result_of(record: Record, **changes: Json) -> Outgoing:
    """A result as a worker wrote it, of another source."""
    document = record.json()
    document["source"] |= changes
    return Outgoing(json.dumps(document).encode(), record.key, record.headers, None, record.partition)


def test_a_result_that_is_not_committed_is_not_shown_and_holds_nothing_up(scored: Site, tmp_path: Path) -> None:
    model = scored.outside.read(scored.topics.result)[0]
    site = fresh(scored, tmp_path)
    producer = Producer({"bootstrap.servers": site.outside.bootstrap_servers, "transactional.id": site.group})
    producer.init_transactions(SOON_SECONDS)
    with following(site.installation, tmp_path, "--format", "json") as followed:
        followed.await_begun(site.outside, site.topics.result, model)
        for number, ending in enumerate((producer.abort_transaction, producer.commit_transaction)):
            producer.begin_transaction()
            each = result_of(model, offset=1_000 + number)
            producer.produce(site.topics.result, each.value, each.key, headers=list(each.headers), partition=0)
            producer.flush(SOON_SECONDS)
            ending(SOON_SECONDS)
        lines = followed.until("1001").splitlines()
        assert followed.interrupt() == 0
        assert followed.stderr.read_text("utf-8") == ""
    offsets = [json.loads(line)["data"]["source"]["offset"] for line in lines]
    assert [offset for offset in offsets if offset >= 1_000] == [1_001]


def fresh(scored: Site, folder: Path) -> Site:
    """The same installation with empty topics."""
    return Site.build(scored.outside, folder, Path(scored.installation.expectations), partitions=2)


def test_a_line_for_each_result_comes_without_a_terminal(scored: Site, tmp_path: Path) -> None:
    results = scored.outside.read(scored.topics.result)
    site = fresh(scored, tmp_path)
    with following(site.installation, tmp_path) as followed:
        followed.await_begun(site.outside, site.topics.result, results[0])
        site.outside.produce(site.topics.result, [result_of(each, topic="another") for each in results])
        expected = [[each["label"], each["test_id"]] for each in (record.json()["result"] for record in results)]

        def printed() -> bool:
            rows = [line.split()[:2] for line in followed.stdout.read_text("utf-8").splitlines()]
            return sorted(rows[-len(expected) :]) == sorted(expected)

        wait_until(printed, within_seconds=SOON_SECONDS, what="there is a line for each result")
        assert followed.interrupt() == 0


def test_a_terminal_sees_the_table_move(scored: Site) -> None:
    ours, theirs = pty.openpty()
    environment = scored.installation.environment() | {"TERM": "xterm", "COLUMNS": "80", "LINES": "30"}
    command = command_line("results", "--follow")
    with subprocess.Popen(
        command, env=environment, cwd=scored.folder, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = ""
        while "until Ctrl-C" not in shown:
            shown += os.read(ours, 65_536).decode()
        process.send_signal(signal.SIGINT)
        with suppress(OSError):  # how Linux says that nobody holds the other end any more
            while block := os.read(ours, 65_536):
                shown += block.decode()
        assert process.wait(SOON_SECONDS) == 0
    os.close(ours)
    summaries = {name: report["summary"] for name, report in newest_reports(scored).items()}
    assert all(f"{each['total_cases']} of 4" in shown for each in summaries.values())
    assert "SAFE results" in shown
    assert "Missed most" in shown
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l")  # the cursor is back


# --- the outputs of a batch -------------------------------------------------------------------------------------------


def test_the_outputs_of_a_batch_can_be_explained(scored: Site) -> None:
    batch = BATCHES[1].batch_id
    done = safe(scored, "--outputs", "--batch", batch)
    (scored.folder / "outputs.jsonl").write_text(done.stdout, encoding="utf-8")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert {each["batch_id"] for each in events} == {batch}
    assert "may contain patient data" in done.stderr
    explained = scored.installation.run(
        *("score", "--concern", BATCHES[1].cases[0].concern_id, "--batch", batch, "--format", "json"),
        *("--outputs", "outputs.jsonl", "--test-dir", scored.installation.expectations, "--on-duplicate", "last"),
        folder=scored.folder,
    )
    report = json.loads(explained.stdout)
    live = newest_reports(scored)[batch]
    assert (report["summary"], report["mean_scores"]) == (live["summary"], live["mean_scores"])


def test_an_output_without_a_time_gets_that_of_its_record(scored: Site, tmp_path: Path) -> None:
    site = fresh(scored, tmp_path)
    case = BATCHES[0].cases[0]
    bare = {"test_id": case.test_id, "batch_id": "alone", "output": {"summary": "\u2028</script>"}}
    future = bare | {"generated_at": "2200-01-01T00:00:00Z"}
    other = bare | {"batch_id": "other", "output": {"summary": "not asked for"}}
    now = time.time_ns() // 1_000_000_000
    site.send([Outgoing(encoded(each), timestamp=now * 1_000, partition=0) for each in (bare, future, other)])
    site.send([Outgoing(b"{", partition=1), Outgoing(None, b"a tombstone", partition=1)])
    done = safe(site, "--outputs", "--batch", "alone")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        bare | {"generated_at": f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H:%M:%S}.000Z"}
    ] * 2
    assert "not asked for" not in done.stdout + done.stderr
    assert "1 record can never be scored" in done.stderr
    missing = safe(site, "--outputs", "--batch", "none", exit_code=EXIT_UNUSABLE).stderr
    assert missing.startswith(f"safe: error: topic {site.topics.input} holds no outputs of none: ")
    assert missing.endswith("; batches there: alone, other\n")


PAGE = blocks_of(text_of("docs/how-to/results.md"))


@pytest.mark.parametrize("block", PAGE, ids=lambda block: block.text.split("\n")[0][:40])
def test_the_commands_of_the_page_do_what_it_says(scored: Site, tmp_path: Path, block: Block) -> None:
    """As they are written, but for the name of the batch; what is followed is interrupted."""
    batch = next(name for name, report in newest_reports(scored).items() if report["summary"]["fail"])
    model = scored.outside.read(scored.topics.result)[0]
    program = tmp_path / "safe"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m safe_scorer "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "cases").symlink_to(scored.installation.expectations)
    environment = scored.installation.environment()
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    for line in lines_of(block):
        if line.endswith("--follow"):
            site = fresh(scored, tmp_path)
            with following(site.installation, tmp_path) as followed:
                followed.await_begun(site.outside, site.topics.result, model)
                assert followed.interrupt() == 0
            continue
        command = f"set -eo pipefail; {line.replace('stroke_1', batch).replace('stroke_', batch[:3])}"
        done = subprocess.run(
            ["/bin/bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout != "" or ">" in line


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_what_safe_did_not_write_is_counted_and_left_out(scored: Site, tmp_path: Path) -> None:
    site = fresh(scored, tmp_path)
    model = scored.outside.read(scored.topics.result)[0]
    typed = (("ce_type", b"safe:v0:result"),)
    foreign = [Outgoing(b"{}", b"a/b"), Outgoing(b"{", b"a/b", typed), Outgoing(model.value, b"a", typed)]
    site.outside.produce(site.topics.result, [*foreign, result_of(model)])
    done = safe(site, "--format", "json")
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == f"safe: ignored 3 records that SAFE did not write to {site.topics.result}\n"


def test_empty_topics_are_said_to_be_empty(scored: Site, tmp_path: Path) -> None:
    site = fresh(scored, tmp_path)
    assert safe(site).stderr == "safe: there are no reports of any batch\n"
    assert safe(site, "--format", "json").stderr == "safe: there are no results of any batch\n"


@pytest.mark.parametrize(
    ("arguments", "variable"), [((), "REPORT"), (("--format", "json"), "RESULT"), (("--outputs", "-b", "b"), "INPUT")]
)
def test_a_topic_that_is_missing_is_named_with_the_remedy(
    outside: Outside, tmp_path: Path, arguments: tuple[str, ...], variable: str
) -> None:
    topics = Topics.fresh()
    installation = Installation(outside.bootstrap_servers, topics, "g", str(tmp_path))
    done = installation.run("results", *arguments, folder=tmp_path)
    name = getattr(topics, variable.lower())
    assert (done.returncode, done.stdout, done.stderr) == (
        EXIT_UNUSABLE,
        "",
        f"safe: error: there is no topic {name} (SAFE_V0_{variable}_TOPIC); `safe topics create` makes it\n",
    )


def test_brokers_that_stop_are_named_once_and_results_go_on_when_they_are_back(
    scored: Site, own_broker: Callable[..., KafkaBroker], tmp_path: Path
) -> None:
    model = scored.outside.read(scored.topics.result)[0]
    broker, topics = own_broker(), Topics.fresh()
    installation = Installation(broker.bootstrap_servers, topics, "g", str(tmp_path))
    with Outside(broker.bootstrap_servers) as outside:
        outside.create_contract_topics(topics, partitions=2)
        with following(installation, tmp_path) as followed:
            followed.await_begun(outside, topics.result, model)
            broker.stop(kill=True)
            followed.until("check the brokers; results come again as soon as they answer", said=True)
            broker.start()
            followed.until("answer again", said=True)
            before = len(followed.stdout.read_text("utf-8").splitlines())
            outside.produce(topics.result, [result_of(model, offset=1_099)])
            wait_until(
                lambda: len(followed.stdout.read_text("utf-8").splitlines()) > before,
                within_seconds=SOON_SECONDS,
                what="the result after the outage is printed",
            )
            assert followed.interrupt() == 0
    said = followed.stderr.read_text("utf-8").splitlines()
    assert [line.startswith("safe: ") for line in said] == [True, True]
    assert broker.bootstrap_servers in said[0]


def test_without_a_broker_the_servers_and_the_setting_are_named(tmp_path: Path) -> None:
    installation = Installation("127.0.0.1:9", Topics.fresh(), "g", str(tmp_path))
    done = installation.run("results", "--follow", folder=tmp_path)
    assert (done.returncode, done.stdout) == (EXIT_UNUSABLE, "")
    assert done.stderr.startswith("safe: error: the brokers at 127.0.0.1:9 cannot be used (")
    assert len(done.stderr.splitlines()) == 1
