"""`safe dead-letters` against letters that a real worker wrote: what is listed, shown and sent again."""

import json
import os
import pty
import random
import re
import subprocess
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from consumer.dead_letter_reasons import REASONS
from consumer.kafka.connection import Connection
from consumer.kafka.publisher import Copy, republishing
from tests.support.cases import encoded, make_batches, make_event, write_batches
from tests.support.checker import quoted
from tests.support.oracle import CaseBook, Oracle, Scored, latest, summary_of
from tests.support.outside import Isolation, Outgoing, Outside, Record
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import command_line

pytestmark = pytest.mark.broker

BATCHES = make_batches(31, batches=1, cases_a_batch=4)
BATCH = BATCHES[0]
KEY = quoted(BATCH.cases[0].concern_id, BATCH.batch_id).encode()
WITHHELD = BATCH.cases[3]
CANARY = "Kanarienvogel"
PARTITIONS = 2
CALL_SECONDS = 20.0
HOUR_MS = 3_600_000
EXIT_UNUSABLE = 3
Json = Any

POISON = {
    "invalid_json": f'{{"test_id": "{CANARY}", '.encode(),
    "not_utf8": CANARY.encode() + b"\xff\x1b[2J",
    "empty_value": b"",
    "invalid_event": f'{{"test_id": "{CANARY}", "batch_id": "b"}}'.encode(),
    "expectations_not_found": f'{{"test_id": "{CANARY}", "batch_id": "b", "output": {{}}}}'.encode(),
}


def now_ms() -> int:
    """The time, as records are stamped."""
    return time.time_ns() // 1_000_000


def poison(reason: str, *, partition: int = 0, timestamp: int | None = None) -> Outgoing:
    """An input that can never be scored, with a secret in its key, its value and a header."""
    headers = (("trace", f"{CANARY}\x1b[2J".encode()), ("trace", None), ("safe.dlq.reason", b"forged"))
    return Outgoing(POISON[reason], CANARY.encode(), headers, timestamp, partition)


def answer(at: int, *, quality: str = "pass", timestamp: int | None = None, seed: int = 0) -> Outgoing:
    """An output for the batch's case of that number, whose event time is the record's timestamp."""
    event = make_event(random.Random(seed), BATCH.cases[at], quality=quality, size=700)  # type: ignore[arg-type]
    return Outgoing(encoded(event), f"key {at}".encode(), (("producer", b"ours"),), timestamp, at % PARTITIONS)


@dataclass(frozen=True, slots=True)
class Desk:
    """Where an operator sits: a site, and its command line."""

    site: Site
    cases: Path
    whole: Path

    def safe(self, command: str, *arguments: str, exit_code: int = 0) -> "subprocess.CompletedProcess[str]":
        """Run `safe dead-letters`; another exit code fails the test with what was said."""
        installation = self.site.installation
        done = installation.run("dead-letters", command, *arguments, folder=self.site.folder)
        assert done.returncode == exit_code, (done.returncode, done.stdout, done.stderr)
        return done

    def rows(self, *arguments: str) -> list[Json]:
        """The objects of `list --format json`."""
        return [json.loads(line) for line in self.safe("list", "--format", "json", *arguments).stdout.splitlines()]

    def work(self, records: Sequence[Outgoing] = ()) -> None:
        """Send inputs, and let a worker of its own deal with everything there is."""
        if records:
            self.site.send(records)
        with self.site.worker() as worker:
            self.site.await_rest()
            assert worker.stop() == 0

    def bury(self, reasons: Sequence[str], inputs: Sequence[Outgoing]) -> None:
        """Send inputs and write their dead letters as the contract has them: quicker than a worker."""
        outside, topics = self.site.outside, self.site.topics
        places = self.site.send(inputs)
        for reason, each, (partition, offset) in zip(reasons, inputs, places, strict=True):
            told = {
                "reason": reason,
                "stage": "scorer",
                "detail": "buried by hand",
                "topic": topics.input,
                "partition": str(partition),
                "offset": str(offset),
                "timestamp": str(each.timestamp or now_ms()),
                "group": self.site.group,
                "version": "0",
                "failed_at": "2026-03-02T08:00:00.000Z",
            }
            headers = tuple((f"safe.dlq.{name}", text.encode()) for name, text in told.items())
            kept = tuple(header for header in each.headers if not header[0].startswith("safe.dlq."))
            outside.produce(topics.dead_letter, [Outgoing(each.value, each.key, kept + headers, None, partition)])

    def bury_poison(self, **partitions: int) -> None:
        """Bury one poison record of each reason named, from the partition given."""
        self.bury(list(partitions), [poison(reason, partition=at) for reason, at in partitions.items()])

    def letters(self) -> list[Record]:
        """What a foreign client reads of the dead-letter topic."""
        return self.site.outside.read(self.site.topics.dead_letter)

    def traces(self) -> str:
        """All that tells why a letter is not seen: what stands in the topics, who ended, and what the worker said."""
        outside, topics = self.site.outside, self.site.topics
        isolations: tuple[Isolation, ...] = ("read_committed", "read_uncommitted")
        letters = [
            f"{isolation}: {[(*each.source[1:], each.header('safe.dlq.reason')) for each in read]}"
            for isolation in isolations
            for read in [outside.read(topics.dead_letter, isolation=isolation)]
        ]
        inputs = [(*each.source[1:], each.value) for each in self.inputs()]
        committed = outside.committed(self.site.group, topics.input)
        logs = [log.read_text("utf-8") for log in self.site.folder.glob("worker-*.log")]
        return "\n".join([*letters, f"{outside.ends(topics.dead_letter)}", f"{inputs}", f"{committed}", *logs])

    def inputs(self) -> list[Record]:
        """What a foreign client reads of the input topic."""
        return self.site.outside.read(self.site.topics.input)

    def summary(self) -> Json:
        """The summary of the batch's last result."""
        return [each.json() for each in self.site.outside.read(self.site.topics.result) if each.key == KEY][-1][
            "summary"
        ]

    def mend(self) -> None:
        """Put the withheld test case where the worker looks."""
        write_batches(self.cases, BATCHES)

    def as_if_nothing_had_failed(self, sent: Sequence[Record]) -> Json:
        """The summary over inputs whose test cases are all there."""
        oracle = Oracle(CaseBook(self.whole))
        return summary_of(latest([each for each in map(oracle.outcome, sent) if isinstance(each, Scored)]))


@pytest.fixture
def desk(site_over: Callable[..., Site], tmp_path: Path) -> Desk:
    """A site that lacks one test case of its batch."""
    whole = write_batches(tmp_path / "whole", BATCHES)
    cases = write_batches(tmp_path / "cases", BATCHES)
    document = json.loads((cases / f"{BATCH.batch_id}.json").read_text("utf-8"))
    document["test_cases"] = [case for case in document["test_cases"] if case["test_id"] != WITHHELD.test_id]
    (cases / f"{BATCH.batch_id}.json").write_text(json.dumps(document), "utf-8")
    return Desk(site_over(cases, partitions=PARTITIONS), cases, whole)


def place(letter: Record) -> str:
    """The name of a letter."""
    return f"{letter.partition}/{letter.offset}"


# --- looking ----------------------------------------------------------------------------------------------------------


def test_letters_of_every_reason_are_listed_and_nothing_of_what_they_hold(desk: Desk) -> None:
    desk.work([poison(reason, partition=at % PARTITIONS) for at, reason in enumerate(POISON)])
    letters = desk.letters()
    assert {letter.header("safe.dlq.reason") for letter in letters} == set(POISON), desk.traces()

    table = desk.safe("list")
    rows = desk.rows()
    shown = [desk.safe("show", place(letter)) for letter in letters]

    assert [row["letter"] for row in rows] == [place(letter) for letter in letters]
    for row, letter, line in zip(rows, letters, table.stdout.splitlines()[1:], strict=True):
        told = {name.removeprefix("safe.dlq."): letter.header(name) for name, _ in letter.headers}
        source = f"{told['topic']}/{told['partition']}/{told['offset']}"
        assert [row[name] for name in ("reason", "stage", "detail", "failed_at", "group")] == [
            told[name] for name in ("reason", "stage", "detail", "failed_at", "group")
        ]
        assert row["source"] == {
            "topic": told["topic"],
            "partition": int(told["partition"] or -1),
            "offset": int(told["offset"] or -1),
            "timestamp": int(told["timestamp"] or -1),
        }
        assert row["value_bytes"] == len(letter.value or b"")
        cells = [place(letter), told["failed_at"], told["reason"], "scorer", source, str(row["value_bytes"])]
        assert line.split()[:6] == cells
        assert line.endswith(str(told["detail"]))
    assert [line.split()[:2] for line in table.stderr.splitlines()] == [["1", reason] for reason in sorted(POISON)]
    for said in (table.stdout, table.stderr, json.dumps(rows), *(each.stdout + each.stderr for each in shown)):
        assert CANARY not in said
        assert "\x1b" not in said


def test_letters_are_chosen_by_reason_partition_time_and_number(desk: Desk) -> None:
    desk.work([poison("invalid_json", partition=0), poison("not_utf8", partition=1), poison("empty_value")])
    between = now_ms()
    desk.work([poison("invalid_json", partition=1), poison("invalid_event", partition=1)])
    first = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(between // 1000)) + f".{between % 1000:03}Z"

    def chosen(*arguments: str) -> list[str]:
        return [f"{row['source']['partition']} {row['reason']}" for row in desk.rows(*arguments)]

    assert chosen() == ["0 invalid_json", "0 empty_value", "1 not_utf8", "1 invalid_json", "1 invalid_event"]
    assert chosen("--reason", "not_utf8", "--reason", "empty_value") == ["0 empty_value", "1 not_utf8"]
    assert chosen("--partition", "0") == ["0 invalid_json", "0 empty_value"]
    assert chosen("--since", first) == ["1 invalid_json", "1 invalid_event"]
    assert chosen("--until", first) == ["0 invalid_json", "0 empty_value", "1 not_utf8"]
    assert chosen("--since", "1h", "--reason", "invalid_json") == ["0 invalid_json", "1 invalid_json"]
    assert chosen("--until", "1h") == []
    assert chosen("--limit", "2") == ["0 invalid_json", "0 empty_value"]
    last = desk.rows("--limit", "2")[-1]["letter"]
    assert chosen("--limit", "2", "--after", last) == ["1 not_utf8", "1 invalid_json"]
    summary = desk.safe("list", "--summary").stdout.splitlines()
    assert [line.split()[:2] for line in summary[:1]] == [["2", "invalid_json"]]
    assert len(summary) == 4


def test_a_letter_is_shown_whole_where_that_is_asked_for(desk: Desk) -> None:
    desk.bury_poison(not_utf8=1)
    [letter] = desk.letters()
    source = f"{desk.site.topics.input}/1/0"

    for name in (place(letter), source):
        shown = json.loads(desk.safe("show", name, "--include-value", "--format", "json").stdout)
        assert shown["letter"] == place(letter)
        assert shown["key"] == {"text": CANARY}
        assert "base64" in shown["value"]
        assert shown["headers"] == [
            {"name": "trace", "text": f"{CANARY}\x1b[2J"},
            {"name": "trace", "text": None},
        ]
    table = desk.safe("show", source, "--include-value").stdout
    assert f"value: {CANARY}\\xff\\u001b[2J" in table
    assert "\x1b" not in table

    raw = subprocess.run(
        command_line("dead-letters", "show", source, "--include-value", "--raw"),
        env=desk.site.installation.environment(),
        cwd=desk.site.folder,
        capture_output=True,
        check=True,
    )
    assert (raw.stdout, raw.stderr) == (POISON["not_utf8"], b"")
    missing = desk.safe("show", "1/99", exit_code=EXIT_UNUSABLE)
    assert "there is no dead letter 1/99" in missing.stderr


def test_an_empty_topic_is_no_error(desk: Desk) -> None:
    assert desk.rows() == []
    assert "there are no dead letters" in desk.safe("list").stderr
    assert "replayed 0 of 0 dead letters" in desk.safe("replay", "--all").stderr


def test_a_topic_that_is_not_there_is_said_in_one_sentence_and_not_made(desk: Desk) -> None:
    topic = desk.site.topics.dead_letter
    desk.site.outside.delete_topic(topic)
    wait_until(lambda: desk.site.outside.partitions(topic) == 0, within_seconds=CALL_SECONDS, what="it is gone")
    for arguments in (["list"], ["show", "0/0"], ["replay", "--all"]):
        done = desk.safe(*arguments, exit_code=EXIT_UNUSABLE)
        [line] = done.stderr.splitlines()
        assert line.startswith(f"safe: error: there is no topic {topic} (SAFE_V0_DEAD_LETTER_TOPIC)")
        assert done.stdout == ""
    assert desk.site.outside.partitions(topic) == 0


def test_a_broker_that_is_not_there_is_said_in_one_sentence(desk: Desk) -> None:
    done = desk.safe("list", "--bootstrap-servers", "127.0.0.1:1", exit_code=EXIT_UNUSABLE)
    assert "the brokers at 127.0.0.1:1 cannot be used" in done.stderr.splitlines()[-1]


def test_records_of_strangers_are_counted_and_named(desk: Desk) -> None:
    desk.bury_poison(invalid_json=0)
    [letter] = desk.letters()
    halved = tuple(header for header in letter.headers if header[0] != "safe.dlq.offset")
    desk.site.outside.produce(
        letter.topic,
        [Outgoing(CANARY.encode(), partition=0), Outgoing(letter.value, letter.key, halved, partition=0)],
    )
    done = desk.safe("list")
    assert len(done.stdout.splitlines()) == 2
    assert f"ignored 2 records without the safe.dlq headers (the first is 0/{letter.offset + 1})" in done.stderr
    assert CANARY not in done.stdout + done.stderr


def test_what_stands_behind_an_open_transaction_is_not_waited_for(desk: Desk) -> None:
    desk.bury_poison(invalid_json=0)
    producer = Producer(
        {
            "bootstrap.servers": desk.site.outside.bootstrap_servers,
            "transactional.id": uuid.uuid4().hex,
            "log_level": 2,
        }
    )
    producer.init_transactions(CALL_SECONDS)
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        producer.produce(desk.site.topics.dead_letter, b"pending", partition=partition)
    producer.flush(CALL_SECONDS)
    assert len(desk.rows()) == 1
    assert "replayed 1 of 1" in desk.safe("replay", "--all").stderr
    producer.abort_transaction(CALL_SECONDS)


# --- sending again ----------------------------------------------------------------------------------------------------


def test_what_has_been_mended_and_sent_again_stands_as_if_it_had_never_failed(desk: Desk) -> None:
    begun = now_ms() - HOUR_MS
    desk.work([answer(at, timestamp=begun + at, seed=at) for at in range(4)] + [poison("invalid_json")])
    sent = desk.inputs()
    assert desk.summary()["total_cases"] == 3

    desk.mend()
    for _ in range(2):  # the second time nothing moves
        done = desk.safe("replay", "--reason", "expectations_not_found")
        assert done.stderr.splitlines()[-1] == f"replayed 1 of 1 dead letter to {desk.site.topics.input}"
        assert done.stdout == ""
        desk.work()
        assert desk.summary() == desk.as_if_nothing_had_failed(sent)
        assert desk.summary()["total_cases"] == 4

    original = sent[-1]
    copies = [each for each in desk.inputs() if each not in sent]
    assert len(copies) == 2
    for copy in copies:
        assert (copy.partition, copy.key, copy.value, copy.headers, copy.timestamp) == (
            original.partition,
            original.key,
            original.value,
            original.headers,
            original.timestamp,
        )


def test_a_record_that_fails_again_does_not_grow_and_is_sent_once_however_often_it_failed(desk: Desk) -> None:
    desk.work([poison("invalid_event", timestamp=now_ms() - HOUR_MS)])
    for count in (2, 3):
        done = desk.safe("replay", "--all")
        assert f"replayed 1 of 1 dead letter to {desk.site.topics.input}" in done.stderr
        desk.work()
        letters = desk.letters()
        assert len(letters) == count
        assert len({tuple(name for name, _ in letter.headers) for letter in letters}) == 1
        assert len({(letter.key, letter.value, letter.header("safe.dlq.timestamp")) for letter in letters}) == 1
    assert len(desk.inputs()) == 3
    # None of the names came in: SAFE's own are dropped, a forged one included.
    first, *again = desk.inputs()
    assert [name for name, _ in first.headers] == ["trace", "trace", "safe.dlq.reason"]
    assert {tuple(name for name, _ in each.headers) for each in again} == {("trace", "trace")}


async def stamped(site: Site, records: Sequence[Outgoing]) -> None:
    """Send records with exactly these timestamps, -1 included, which the foreign client would replace."""
    async with republishing(Connection(site.outside.bootstrap_servers, {})) as publisher:
        for each in records:
            copy = Copy(
                site.topics.input, each.partition or 0, each.timestamp or 0, each.key, each.value, list(each.headers)
            )
            await (await publisher.publish(copy))


@pytest.mark.parametrize("age_ms", [HOUR_MS, None], ids=["an hour old", "without a time"])
async def test_what_is_sent_again_never_replaces_a_newer_output(desk: Desk, age_ms: int | None) -> None:
    then = -1 if age_ms is None else now_ms() - age_ms
    await stamped(desk.site, [answer(3, quality="fail", timestamp=then)])
    desk.work()
    desk.mend()
    desk.work([answer(3, quality="pass", timestamp=now_ms() - HOUR_MS // 2, seed=1)])
    before = desk.summary()
    assert before["pass"] == 1

    # Beside others, so that it may stand first in a batch of records.
    desk.safe("replay", "--all")
    desk.work()
    assert desk.inputs()[-1].timestamp == then
    assert desk.summary() == before
    assert len(desk.site.outside.read(desk.site.topics.result)) == 2


async def published(desk: Desk, records: Sequence[tuple[int, bytes | None]]) -> list[Record]:
    """Publish copies, given by time and value, all at once, and return what a foreign client reads."""
    topic = desk.site.topics.input
    # Else the broker may remove what seems to be from 1970 before it is read.
    desk.site.outside.set_topic_config(topic, "retention.ms", "-1")
    async with republishing(Connection(desk.site.outside.bootstrap_servers, {})) as publisher:
        copies = [Copy(topic, 1, stamp, None, value, [("n", None), ("n", b"")]) for stamp, value in records]
        for each in [await publisher.publish(copy) for copy in copies]:
            await each
    return desk.inputs()


async def test_records_with_and_without_a_time_that_are_sent_together_keep_it(desk: Desk) -> None:
    hour_ago = now_ms() - HOUR_MS
    times = [-1, 5, hour_ago, -1, -1, hour_ago, 7, -1, 9] * 5
    records = await published(desk, [(stamp, b"v") for stamp in times])
    assert [record.timestamp for record in records] == times
    assert {record.headers for record in records} == {(("n", None), ("n", b""))}


async def test_a_record_with_neither_key_nor_value_is_written_as_one(desk: Desk) -> None:
    records = await published(desk, [(1, b"v"), (2, None), (3, b""), (4, None), (5, None)])
    assert [(record.timestamp, record.key, record.value) for record in records] == [
        (1, None, b"v"),
        (2, None, None),
        (3, None, b""),
        (4, None, None),
        (5, None, None),
    ]


def test_a_dry_run_says_what_it_would_send_and_sends_nothing(desk: Desk) -> None:
    desk.bury_poison(invalid_json=1, not_utf8=0, empty_value=0)
    ends = desk.site.outside.ends(desk.site.topics.input)
    done = desk.safe("replay", "--dry-run", "--reason", "invalid_json", "--reason", "not_utf8")
    letters = {letter.header("safe.dlq.reason"): letter for letter in desk.letters()}
    topic = desk.site.topics.input
    assert [line.split() for line in done.stdout.splitlines()] == [
        [place(letters["not_utf8"]), "not_utf8", "to", f"{topic}/0"],
        [place(letters["invalid_json"]), "invalid_json", "to", f"{topic}/1"],
    ]
    assert done.stderr.splitlines()[-1] == f"would replay 2 of 2 dead letters to {topic}"
    assert desk.site.outside.ends(topic) == ends


@pytest.mark.parametrize(("answered", "exit_code", "inputs"), [(b"n\n", 130, 2), (b"y\n", 0, 4)])
def test_whoever_sits_at_a_terminal_is_asked(desk: Desk, answered: bytes, exit_code: int, inputs: int) -> None:
    desk.bury_poison(invalid_json=1, not_utf8=0)
    keyboard, terminal = pty.openpty()
    try:
        os.write(keyboard, answered)
        done = subprocess.run(
            command_line("dead-letters", "replay", "--all"),
            env=desk.site.installation.environment(),
            cwd=desk.site.folder,
            stdin=terminal,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        os.close(keyboard)
        os.close(terminal)
    assert done.returncode == exit_code, done.stderr
    assert "Send 2 dead letters again? [y/N]" in done.stderr
    assert done.stdout == ""
    assert len(desk.inputs()) == inputs


def test_letters_are_sent_by_name_and_one_that_is_not_there_is_named(desk: Desk) -> None:
    desk.bury_poison(invalid_json=0, not_utf8=0, empty_value=1)
    by_reason = {letter.header("safe.dlq.reason"): letter for letter in desk.letters()}
    topic = desk.site.topics.input
    done = desk.safe("replay", place(by_reason["not_utf8"]), f"{topic}/1/0", "0/77", exit_code=1)
    assert "there is no dead letter 0/77" in done.stderr
    assert done.stderr.splitlines()[-1] == f"replayed 2 of 2 dead letters to {topic}"
    assert [record.value for record in desk.inputs()] == [
        POISON["invalid_json"],
        POISON["not_utf8"],
        POISON["not_utf8"],
        POISON["empty_value"],
        POISON["empty_value"],
    ]


def test_letters_of_another_group_are_left_alone(desk: Desk) -> None:
    desk.bury_poison(invalid_json=0)
    [letter] = desk.letters()
    theirs = tuple((name, b"theirs" if name == "safe.dlq.group" else text) for name, text in letter.headers)
    desk.site.outside.produce(letter.topic, [Outgoing(b"[]", letter.key, theirs, partition=0)])

    assert [row["group"] for row in desk.rows()] == [desk.site.group, "theirs"]
    done = desk.safe("replay", "--all")
    assert "skipped 1 dead letter of other groups: theirs (1)" in done.stderr
    assert "replayed 1 of 1" in done.stderr
    done = desk.safe("replay", "--all", "--group-id", "theirs")
    assert "replayed 1 of 1" in done.stderr
    assert [record.value for record in desk.inputs()] == [POISON["invalid_json"], POISON["invalid_json"], b"[]"]


def test_a_letter_from_a_topic_that_is_not_configured_is_named_and_not_sent(desk: Desk) -> None:
    desk.bury_poison(invalid_json=0, not_utf8=1)
    letter = desk.letters()[0]
    elsewhere = tuple(
        (name, desk.site.topics.state.encode() if name == "safe.dlq.topic" else text) for name, text in letter.headers
    )
    desk.site.outside.produce(letter.topic, [Outgoing(b"{}", letter.key, elsewhere, partition=0)])
    before = desk.site.outside.ends(desk.site.topics.state)

    done = desk.safe("replay", "--all", exit_code=1)
    assert f"cannot be sent again: it came from {desk.site.topics.state}, but the scorer reads" in done.stderr
    assert done.stderr.splitlines()[-1] == f"replayed 2 of 3 dead letters to {desk.site.topics.input}"
    assert desk.site.outside.ends(desk.site.topics.state) == before


def test_a_letter_of_the_aggregator_goes_back_to_the_same_partition_of_scored(desk: Desk) -> None:
    garbage = [
        Outgoing(b"garbage", b"a/b/c", (("safe.schema", b"0"), ("n", b"1")), partition=1),
        Outgoing(None, None, (("n", b"2"),), partition=0),
    ]
    outside, scored = desk.site.outside, desk.site.topics.scored
    desk.site.outside.produce(scored, garbage)
    desk.work([answer(0), answer(1)])
    assert {letter.header("safe.dlq.stage") for letter in desk.letters()} == {"aggregator"}
    before = outside.read(scored)
    originals = [record for record in before if record.header("n")]

    done = desk.safe("replay", "--all")
    assert done.stderr.splitlines()[-1] == f"replayed 2 of 2 dead letters to {scored}"
    copies = [record for record in outside.read(scored) if record not in before]

    def told(record: Record) -> tuple[object, ...]:
        return (record.partition, record.key, record.value, record.headers, record.timestamp)

    assert list(map(told, copies)) == list(map(told, originals))
    desk.work()
    assert len(desk.letters()) == 4


def test_a_value_that_was_too_large_for_the_topic_is_fetched_from_where_it_came(desk: Desk) -> None:
    outside, topic = desk.site.outside, desk.site.topics.input
    outside.set_topic_config(topic, "max.message.bytes", "16777216")
    large = random.Random(5).randbytes(9_000_000)
    desk.work([Outgoing(large, b"large", partition=1)])
    [letter] = desk.letters()
    assert letter.value is None
    assert desk.rows()[0]["value_bytes"] == len(large)
    assert desk.rows()[0]["value_omitted"] is True
    assert f"omitted: {len(large)} bytes" in desk.safe("show", place(letter)).stdout
    refused = desk.safe("show", place(letter), "--include-value", "--raw", exit_code=EXIT_UNUSABLE)
    assert "holds no value" in refused.stderr

    assert "replayed 1 of 1" in desk.safe("replay", "--all").stderr
    assert [record.value == large for record in desk.inputs()] == [True, True]

    outside.delete_records(topic, 1, 2)
    gone = desk.safe("replay", "--all", exit_code=1)
    why = f"its value was too large for a dead letter, and {topic}/1/0 no longer holds it"
    assert f"{place(letter)} cannot be sent again: {why}" in gone.stderr
    assert gone.stderr.splitlines()[-1] == "replayed 0 of 1 dead letter"


def test_a_value_that_only_compression_makes_fit_goes_back_where_it_came_from(desk: Desk) -> None:
    large = b" " * 3_000_000
    desk.site.send([Outgoing(large, b"large", partition=0)], compression="zstd")
    desk.work()
    assert desk.rows()[0]["reason"] == "too_large"
    assert "replayed 1 of 1" in desk.safe("replay", "--all").stderr
    assert [record.value == large for record in desk.inputs()] == [True, True]


def test_a_record_that_its_topic_refuses_now_is_named_and_the_others_are_sent(desk: Desk) -> None:
    noise = random.Random(6).randbytes(400_000)
    desk.bury(["too_large", "not_utf8"], [Outgoing(noise, b"large", partition=0), poison("not_utf8")])
    desk.site.outside.set_topic_config(desk.site.topics.input, "max.message.bytes", "100000")
    done = desk.safe("replay", "--all", exit_code=1)
    assert "cannot be sent again: the broker refuses the record" in done.stderr
    assert done.stderr.splitlines()[-1] == f"replayed 1 of 2 dead letters to {desk.site.topics.input}"


def test_a_topic_that_gives_its_own_times_is_warned_of(desk: Desk) -> None:
    desk.site.outside.set_topic_config(desk.site.topics.input, "message.timestamp.type", "LogAppendTime")
    assert "message.timestamp.type=LogAppendTime" in desk.safe("replay", "--all").stderr


def test_what_fails_again_meanwhile_is_not_chased(desk: Desk) -> None:
    with desk.site.worker():
        begun = now_ms() - HOUR_MS  # each has a time of its own: none is another one again
        desk.site.send([poison("invalid_json", partition=at % PARTITIONS, timestamp=begun + at) for at in range(30)])
        desk.site.await_rest()
        done = desk.safe("replay", "--all", "--rate", "20")
        assert done.stderr.splitlines()[-1] == f"replayed 30 of 30 dead letters to {desk.site.topics.input}"
        desk.site.await_rest()
    assert len(desk.letters()) == 60


def test_the_topic_that_is_made_keeps_dead_letters_for_seven_days(outside: Outside, desk: Desk) -> None:
    made = f"t{uuid.uuid4().hex[:10]}"
    names = {name: f"{made}.{name.split('_')[2].lower()}" for name in desk.site.topics.environment()}
    installation = desk.site.installation
    done = subprocess.run(
        command_line("topics", "create", "--partitions", "1"),
        env=installation.environment() | names,
        cwd=desk.site.folder,
        capture_output=True,
        check=True,
        text=True,
    )
    [topic] = re.findall(rf"({made}\.dead\S*):", done.stdout)
    assert outside.topic_config(topic)["retention.ms"] == str(7 * 24 * HOUR_MS)


def test_every_reason_can_be_asked_for(desk: Desk) -> None:
    assert desk.rows(*(part for reason in REASONS for part in ("--reason", reason))) == []
    refused = desk.safe("list", "--reason", "bad_luck", exit_code=EXIT_UNUSABLE)
    assert f"'bad_luck' is not a reason; choose from {', '.join(REASONS)}" in refused.stderr
