"""Input records in, events out: the flows of the contract, seen by a foreign client of a real broker."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from safe_core import digest_of_narrative
from tests.support.cases import Quality, WrittenCase, encoded, event_stream, make_batches, make_event, write_batches
from tests.support.checker import DLQ, Run, compare_replay, dead_letter_source, quoted, result_source
from tests.support.oracle import Dead, Scored, latest, summary_of
from tests.support.outside import Headers, Outgoing, Outside, Record, Topics
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Installation

pytestmark = pytest.mark.broker

PARTITIONS = 4
SEED = 11
BATCHES = make_batches(SEED, batches=6, cases_a_batch=8)
CASE = BATCHES[0].cases[0]
Json = Any


def expectations(*, find: object = (), forbid: object = (), contain: object = ()) -> Json:
    """The three lists where factory-cli puts them."""
    return {
        "signal_generation": {"must_find_signals": find},
        "followup_questions": {"forbidden_terms": forbid},
        "event_summary": {"must_contain_phrases": contain},
    }


def entry(test_id: str, wanted: Json, concern_id: str | None = "X/1%", told: str | None = None) -> Json:
    """A test case with as little as scoring needs, and the narrative that it tells, if any."""
    named = {"concern_id": concern_id, "patient_payload": told}
    return {"test_id": test_id, "expectations": wanted} | {name: text for name, text in named.items() if text}


SPECIAL: dict[str, list[Json]] = {
    "twin_a": [
        entry("SAME", expectations(find=["pain"])),
        entry("DIFFERENT", expectations(find=["pain"]), told="A pain."),
    ],
    "twin_b": [
        entry("SAME", expectations(find=["pain"])),
        entry("DIFFERENT", expectations(find=["fever"]), told="Heat."),
    ],
    "odd_lists": [
        entry("NOTHING", {}),
        entry("NULLS", {"signal_generation": None, "event_summary": {"must_contain_phrases": None}}),
        entry("TWICE", expectations(find=["Fever", "fever ", "rash"], contain=["Straße", "ÅNGSTRÖM"])),
    ],
    "broken": [entry("BLANK", expectations(forbid=["blame", "  "])), {"test_id": "NONE", "concern_id": "X"}],
    "no_concern": [entry("HOMELESS", expectations(find=["pain"]), None)],
    "huge": [entry("HUGE", expectations(find=["x" * 1_100_000]))],
}


def event(test_id: str = CASE.test_id, batch_id: str = CASE.batch_id, **more: object) -> Json:
    """A plain event; `output` is an engine output that finds little."""
    return {"test_id": test_id, "batch_id": batch_id, "output": {"summary": "Fever and rash, no pain."}} | more


def deep(levels: int) -> bytes:
    """An event that nests exactly so deep; the object itself is the first level."""
    return encoded(event())[:-1] + b',"deep":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


def cloud_event(**attributes: str) -> Headers:
    """The headers of a CloudEvent in binary mode."""
    texts = {"specversion": "1.0", "id": "1", "type": "factory:output", "source": "/factory"} | attributes
    return (*((f"ce_{name}", text.encode()) for name, text in texts.items()), ("content-type", b"application/json"))


STRUCTURED: Headers = (("content-type", b"application/cloudevents+json; charset=utf-8"),)
ENVELOPE = {"specversion": "1.0", "id": "1", "type": "factory:output", "source": "/factory"}

# What is accepted, by the sentence that it stands for.
ACCEPTED: dict[str, Outgoing] = {
    "a plain event": Outgoing(encoded(event())),
    "a CloudEvent in binary mode": Outgoing(encoded(event()), headers=cloud_event()),
    "a CloudEvent in structured mode": Outgoing(encoded(ENVELOPE | {"data": event()}), headers=STRUCTURED),
    "an output that is null": Outgoing(encoded(event(output=None))),
    "absent and null fields of the output": Outgoing(encoded(event(output={"signals": None}))),
    "unknown fields": Outgoing(encoded(event(more={"a": [1.5, 2**70]}, output={"summary": "x", "other": 1}))),
    "optional fields that are null": Outgoing(encoded(event(concern_id=None, archetype=None, run_id=None))),
    "a depth of 64": Outgoing(deep(64)),
    "a null key, another partition": Outgoing(encoded(event()), key=None, partition=3),
    "an archetype of the event's own": Outgoing(encoded(event(archetype="Own_Archetype"))),
    "the placeholder for an archetype": Outgoing(encoded(event(archetype="Unknown"))),
    "an event time in another zone, with fractions": Outgoing(
        encoded(event(generated_at="2026-03-02T09:30:00.1239+05:30"))
    ),
    "an event time far ahead": Outgoing(encoded(event(generated_at="9999-12-31T23:59:59Z"))),
    "an event time before 1970": Outgoing(encoded(event(generated_at="1969-07-20T20:17:40Z"))),
    "a concern in another spelling": Outgoing(encoded(event(concern_id=CASE.concern_id.lower()))),
    "slashes and per cent signs in ids": Outgoing(encoded(event("SAME", "a/b%2F c", concern_id="c/%d"))),
    "a test_id that other batches hold alike": Outgoing(encoded(event("SAME", "unheard_of"))),
    "a test_id that batches hold differently, one of them with the output's narrative": Outgoing(
        encoded(event("DIFFERENT", "other", output={"summary": "Fever, no pain.", "raw_input": " Heat."}))
    ),
    "a test_id that batches hold differently, one of them with the narrative of the event's digest": Outgoing(
        encoded(event("DIFFERENT", "other", input_digest=digest_of_narrative("A pain.")))
    ),
    "no lists at all": Outgoing(encoded(event("NOTHING", "odd_lists"))),
    "null lists": Outgoing(encoded(event("NULLS", "odd_lists"))),
    "repeated and odd terms": Outgoing(
        encoded(event("TWICE", "odd_lists", output={"summary": "STRASSE straße fever ångström"}))
    ),
    "white space for an output": Outgoing(
        encoded(event("TWICE", "odd_lists", output={"summary": "  ", "signals": [" "]}))
    ),
    "look-alike ids": Outgoing(encoded(event(batch_id=CASE.batch_id + "\u200d"))),
    "headers that nobody expects": Outgoing(
        encoded(event()),
        headers=(("traceparent", b"rubbish"), ("x", None), ("x", b"\xff"), (DLQ + "reason", b"spoofed")),
    ),
}
# What can never be scored, with the reason that its dead letter must give.
REJECTED: dict[str, tuple[str, Outgoing]] = {
    "an empty value": ("empty_value", Outgoing(b"")),
    "bytes that are no UTF-8": ("not_utf8", Outgoing(b'{"test_id": "\xff"}')),
    "white space": ("invalid_json", Outgoing(b" \n ")),
    "a byte order mark": ("invalid_json", Outgoing(b"\xef\xbb\xbf" + encoded(event()))),
    "two documents": ("invalid_json", Outgoing(encoded(event()) * 2)),
    "an escaped lone surrogate": ("invalid_json", Outgoing(encoded(event())[:-1] + b',"x":"\\ud800"}')),
    "an array": ("not_object", Outgoing(b"[]")),
    "null as JSON": ("not_object", Outgoing(b"null")),
    "a depth of 65": ("too_deep", Outgoing(deep(65))),
    "a value over the limit": ("too_large", Outgoing(encoded(event(pad="x" * 1_048_576)))),
    "the same key twice, deep inside": (
        "duplicate_key",
        Outgoing(encoded(event())[:-1] + b',"x":[{"a":1,"a":1}]}'),
    ),
    "no output": ("invalid_event", Outgoing(b'{"test_id":"a","batch_id":"b"}')),
    "no test_id": ("invalid_event", Outgoing(b'{"batch_id":"b","output":{}}')),
    "a number for a text": ("invalid_event", Outgoing(encoded(event(output={"summary": 5})))),
    "a time without a zone": ("invalid_event", Outgoing(encoded(event(generated_at="2026-03-02T09:30:00")))),
    "no concern anywhere": ("invalid_event", Outgoing(encoded(event("HOMELESS", "no_concern")))),
    "a blank id": ("invalid_id", Outgoing(encoded(event("  ")))),
    "an id of 257 characters": ("invalid_id", Outgoing(encoded(event("x" * 257)))),
    "a line feed in an id": ("invalid_id", Outgoing(encoded(event(batch_id="a\nb")))),
    "CloudEvents 0.3": ("unsupported_version", Outgoing(encoded(event()), headers=cloud_event(specversion="0.3"))),
    "an unknown test case": ("expectations_not_found", Outgoing(encoded(event("../../etc/passwd")))),
    "a test_id that batches hold differently": (
        "expectations_ambiguous",
        Outgoing(encoded(event("DIFFERENT", "other"))),
    ),
    "a blank term": ("expectations_invalid", Outgoing(encoded(event("BLANK", "broken")))),
    "a test case without expectations": ("expectations_invalid", Outgoing(encoded(event("NONE", "broken")))),
    "terms that fill a record": ("result_too_large", Outgoing(encoded(event("HUGE", "huge")))),
    "strange headers, a key, spoofed words": (
        "not_object",
        Outgoing(
            b"1", key=b"\xff\x00", headers=(("x", b"\xff"), ("x", None), (DLQ + "reason", b"spoofed")), partition=2
        ),
    ),
}


def write_cases(folder: Path) -> Path:
    """Write the ordinary batches and the special ones."""
    write_batches(folder, BATCHES)
    for batch_id, cases in SPECIAL.items():
        (folder / f"{batch_id}.json").write_text(json.dumps({"test_cases": cases}), encoding="utf-8")
    return folder


class Finished:
    """A site at rest with everything that was sent to it."""

    def __init__(self, site: Site, places: dict[str, tuple[int, int]], run: Run, problems: list[str]) -> None:
        self.site, self.run, self.problems = site, run, problems
        self._sources = {sentence: (site.topics.input, *place) for sentence, place in places.items()}

    def result_of(self, sentence: str) -> Record:
        """The one result of an input."""
        [found] = [record for record in self.run.results if result_source(record) == self._sources[sentence]]
        return found

    def source_of(self, sentence: str) -> tuple[str, int, int]:
        """The topic, partition and offset of an input."""
        return self._sources[sentence]

    def letter_of(self, sentence: str) -> Record:
        """The one dead letter of an input."""
        [found] = [record for record in self.run.dead_letters if dead_letter_source(record) == self._sources[sentence]]
        return found


@pytest.fixture(scope="module")
def finished(outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """One worker has read ordinary traffic, every special input and a tombstone, and has stopped in order."""
    folder = tmp_path_factory.mktemp("end-to-end")
    cases = write_cases(_made(folder / "cases"))
    # The topic must take what the worker must refuse.
    generous = {"max.message.bytes": str(4 * 1024 * 1024)}
    site = Site.build(outside, folder, cases, partitions=PARTITIONS, input_config=generous)
    often = {"repeated": 0.5, "late": 0.2, "failed": 0.2}
    site.send(list(event_stream(SEED, BATCHES, 200, partitions=PARTITIONS, poison=0.0, **often)))
    special = ACCEPTED | {sentence: record for sentence, (_, record) in REJECTED.items()}
    places = dict(zip(special, site.send(list(special.values())), strict=True))
    site.send([Outgoing(None, key=b"tombstone", partition=0)])
    with site.worker() as worker:
        site.await_rest()
        run, problems = site.seen()
        assert worker.total("safe_records_total", outcome="scored") == len(run.results)
        assert worker.total("safe_records_total", outcome="dead_lettered") == len(run.dead_letters)
        assert worker.total("safe_records_total", outcome="ignored") == 1
        assert worker.stop() == 0
    return Finished(site, places, run, problems)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_a_finished_run_breaks_no_invariant(finished: Finished) -> None:
    assert finished.problems == []
    assert len(finished.run.results) == 200 + len(ACCEPTED)
    assert len(finished.run.dead_letters) == len(REJECTED)


@pytest.mark.parametrize("sentence", ACCEPTED)
def test_what_the_contract_accepts_is_scored(sentence: str, finished: Finished) -> None:
    data = finished.result_of(sentence).json()

    assert data["result"]["label"] in {"Pass", "Review", "Fail"}


@pytest.mark.parametrize("sentence", REJECTED)
def test_what_can_never_be_scored_is_a_dead_letter_with_its_reason(sentence: str, finished: Finished) -> None:
    reason, _ = REJECTED[sentence]

    letter = finished.letter_of(sentence)

    assert letter.header(DLQ + "reason") == reason
    assert letter.header(DLQ + "stage") == "scorer"
    assert b"spoofed" not in [value for _, value in letter.headers]


def test_no_text_of_an_input_stands_in_what_is_said_about_it(finished: Finished) -> None:
    details = " ".join(letter.header(DLQ + "detail") or "" for letter in finished.run.dead_letters)

    for text in ("passwd", "\\n", "HOMELESS", "DIFFERENT", "spoofed", "Fever"):
        assert text not in details


def test_a_result_is_written_field_by_field_as_the_contract_shows_it(finished: Finished) -> None:
    record = finished.result_of("repeated and odd terms")

    data = record.json()

    assert list(data) == [
        *("concern_id", "batch_id", "timestamp", "summary", "expected_cases", "complete", "run_id", "input_matches"),
        *("generation", "mixed_runs", "failed_generations", "result", "source", "scorer", "expectations_digest"),
        "output_digest",
    ]
    assert list(data["summary"]) == ["total_cases", "pass", "review", "fail", "overall_pass_rate"]
    assert data["result"] == {
        "test_id": "TWICE",
        "archetype": None,
        "scores": {"CR": 2 / 3, "AH": 1.0, "AC": 1.0, "composite": (1.0 * (2 / 3) + 1.0 * 1.0 + 1.0 * 1.0) / 3.0},
        "details": {
            "CR": {"found": ["Fever", "fever "], "missing": ["rash"]},
            "AH": {"violations": []},
            "AC": {"found": ["Straße", "ÅNGSTRÖM"], "missing": []},
        },
        "terms": {"CR": 3, "AH": 0, "AC": 2},
        "label": "Review",
    }
    assert data["expected_cases"] == 3
    assert data["source"]["topic"] == finished.site.topics.input
    assert set(data["scorer"]) == {"version", "fingerprint"}
    assert record.key == b"X%2F1%25/odd_lists"
    assert record.header("ce_subject") == "X%2F1%25/odd_lists/TWICE"


def test_a_batch_that_the_source_does_not_know_is_never_complete(finished: Finished) -> None:
    data = finished.result_of("a test_id that other batches hold alike").json()

    assert (data["concern_id"], data["expected_cases"], data["complete"]) == ("X/1%", None, False)


def test_ids_with_slashes_are_quoted_in_keys_and_nowhere_else(finished: Finished) -> None:
    record = finished.result_of("slashes and per cent signs in ids")

    assert record.key == b"c%2F%25d/a%2Fb%252F c"
    assert record.json()["batch_id"] == "a/b%2F c"


def test_an_event_time_far_ahead_of_its_record_is_not_believed_and_both_are_told(finished: Finished) -> None:
    source = finished.result_of("an event time far ahead").json()["source"]
    _, partition, offset = finished.source_of("an event time far ahead")
    [stamp] = [record.timestamp for record in finished.run.inputs if record.source[1:] == (partition, offset)]

    assert (source["event_time"], source["stated_event_time"]) == (stamp, 253_402_300_799_000)


def test_event_times_are_those_of_the_event_and_serve_no_record_stamp(finished: Finished) -> None:
    times = {
        "an event time in another zone, with fractions": 1_772_424_000_123,
        "an event time before 1970": -14_182_940_000,
    }
    for sentence, time in times.items():
        record = finished.result_of(sentence)
        assert record.json()["source"]["event_time"] == time
        assert 0 < record.timestamp < 4_102_444_800_000  # written now, not then


def test_a_replay_into_empty_topics_gives_the_same_ids_and_results(finished: Finished) -> None:
    replay = finished.site.reading_the_same_input()

    with replay.worker(name="replay"):
        replay.await_rest()
        run, problems = replay.seen()

    assert problems == []
    assert compare_replay(finished.run.results, run.results) == []


def test_at_least_once_comes_to_the_same_state(finished: Finished) -> None:
    other = finished.site.reading_the_same_input(SAFE_V0_DELIVERY="at_least_once")

    with other.worker(name="at-least-once"):
        other.await_rest()
        run, problems = other.seen()

    assert problems == []
    assert compare_replay(finished.run.results, run.results) == []


def test_the_two_roles_work_apart(finished: Finished) -> None:
    apart = finished.site.reading_the_same_input()

    with apart.worker(role="scorer", name="scorer"), apart.worker(role="aggregator", name="aggregator") as aggregator:
        apart.await_rest()
        _, problems = apart.seen()
        assert aggregator.shown_batches()

    assert problems == []


def test_gauges_show_the_committed_summary_of_each_batch(finished: Finished) -> None:
    site = finished.site.reading_the_same_input()
    with site.worker(name="gauges") as worker:
        site.await_rest()
        run, _ = site.seen()
        cases = worker.series("safe_batch_cases")
        ratios = worker.series("safe_batch_pass_ratio")

    scored = [outcome for outcome in map(site.oracle.outcome, run.inputs) if isinstance(outcome, Scored)]
    for batch in {(each.concern_id, each.batch_id) for each in scored}:
        labels = (("batch_id", batch[1]), ("concern_id", batch[0]))
        wanted = summary_of(latest(each for each in scored if (each.concern_id, each.batch_id) == batch))
        assert ratios[labels] == wanted["overall_pass_rate"]
        for label in ("Pass", "Review", "Fail"):
            assert cases.get((*labels, ("label", label)), 0.0) == wanted[label.lower()]


def test_a_worker_that_was_asked_to_stop_is_followed_without_a_gap(
    site_over: Callable[..., Site], tmp_path: Path
) -> None:
    site = site_over(write_batches(tmp_path / "cases", BATCHES), partitions=PARTITIONS)
    stream = list(event_stream(3, BATCHES, 1500, partitions=PARTITIONS, repeated=0.5, failed=0.2))
    site.send(stream[:500])
    with site.worker(name="first") as first:
        site.send(stream[500:1000])
        assert first.stop(within_seconds=25) == 0
    with site.worker(name="second"):
        site.send(stream[1000:])
        site.await_rest()
        run, problems = site.seen()

    assert problems == []
    assert len(run.inputs) == 1500


def test_a_batch_keeps_its_good_results_through_an_outage_of_the_model(
    site_over: Callable[..., Site], tmp_path: Path
) -> None:
    """Twenty answers, then later failures for five of them, and a case that no model has answered yet."""
    [batch] = make_batches(SEED, batches=1, cases_a_batch=21)
    site = site_over(write_batches(tmp_path / "cases", [batch]), partitions=1)
    rng, start = random.Random(SEED), datetime(2026, 3, 2, 8, tzinfo=UTC)
    *answered, new = batch.cases

    def publish(cases: Sequence[WrittenCase], quality: Quality, hours: int) -> None:
        moment = start + timedelta(hours=hours)
        site.send([Outgoing(encoded(make_event(rng, each, quality=quality, generated_at=moment))) for each in cases])

    with site.worker(name="before") as worker:
        publish(answered, "pass", 0)
        publish([*answered[::4], new], "failed", 2)
        site.await_rest()
        assert worker.total("safe_failed_generations_total") == 6
        worker.kill()
    with site.worker(name="after") as worker:  # its state is restored
        publish(answered[::4], "failed", 3)
        site.await_rest()
        run, problems = site.seen()
        gauges = {
            name: sum(worker.series(f"safe_batch_{name}").values())
            for name in ("failed_generations", "answered_pass_ratio")
        }
        publish([new], "pass", 1)  # from before the outage, but published after it
        site.await_rest()
        after, more = site.seen()

    assert (problems, more) == ([], [])
    shown = [(event["generation"], event["failed_generations"]) for event in map(Record.json, run.results)]
    assert shown == [("answered", 0)] * 20 + [("failed", 0)] * 5 + [("failed", 1)] * 6
    last = run.results[-1].json()
    assert last["summary"] == {"total_cases": 21, "pass": 20, "review": 0, "fail": 1, "overall_pass_rate": 20 / 21}
    assert gauges == {"failed_generations": 1, "answered_pass_ratio": 1}
    assert after.results[-1].json()["summary"]["pass"] == 21
    assert after.results[-1].json()["failed_generations"] == 0


def test_inputs_repaired_and_sent_again_count_as_if_they_had_never_failed(
    site_over: Callable[..., Site], tmp_path: Path
) -> None:
    cases = write_batches(tmp_path / "cases", BATCHES[:1])
    site = site_over(cases, partitions=1)
    late = BATCHES[1].cases[0]
    site.send([Outgoing(encoded(event(case.test_id, case.batch_id))) for case in (*BATCHES[0].cases, late)])
    with site.worker(name="before"):
        site.await_rest()
    [letter] = site.outside.read(site.topics.dead_letter)
    assert letter.header(DLQ + "reason") == "expectations_not_found"

    write_batches(cases, BATCHES[1:2])
    kept = tuple((name, value) for name, value in letter.headers if not name.startswith(DLQ))
    site.send([Outgoing(letter.value, letter.key, kept)] * 2)
    with site.worker(name="after"):
        site.await_rest()

    *_, once, twice = site.outside.read(site.topics.result)
    assert once.key == twice.key == quoted(late.concern_id, late.batch_id).encode()
    assert once.json()["summary"] == twice.json()["summary"]
    assert twice.json()["summary"]["total_cases"] == 1


@pytest.fixture
def real_site(outside: Outside, real_cases: Path, tmp_path: Path) -> Iterator[Site]:
    site = Site.build(outside, tmp_path, real_cases / "testcases", partitions=PARTITIONS)
    yield site
    site.discard()


@pytest.mark.real_cases
def test_the_real_outputs_published_from_their_reports_score_as_in_factory_cli(
    real_site: Site, real_cases: Path, tmp_path: Path
) -> None:
    expected = json.loads((real_cases / "expected_scores.json").read_text("utf-8"))
    for name in sorted({row["outputs"] for row in expected}):
        batches = ("--test-dir", str(real_cases / "testcases"), "--batch", "I25_batch_*", "--on-duplicate", "first")
        done = real_site.installation.run("publish", str(real_cases / name), *batches, "--run", name, folder=tmp_path)
        assert done.returncode == 0, done.stderr

    with real_site.worker():
        real_site.await_rest()
        run, problems = real_site.seen()

    assert problems == []
    results = {
        (data["run_id"], data["batch_id"], data["result"]["test_id"]): data["result"]
        for data in (record.json() for record in run.results)
    }
    for row in expected:
        result = results[row["outputs"], row["batch_id"], row["test_id"]]
        wanted = {name: row[name] for name in ("test_id", "archetype", "scores", "details", "label")}
        assert {name: result[name] for name in wanted} == wanted


def test_topics_are_created_as_the_contract_wants_them_by_two_at_once(outside: Outside, tmp_path: Path) -> None:
    installation = Installation(outside.bootstrap_servers, Topics.fresh(), "creator", str(tmp_path))

    first = installation.run("topics", "create", "--partitions", "3", folder=tmp_path)
    again = installation.run("topics", "create", "--partitions", "3", folder=tmp_path)

    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    topics = installation.topics
    assert {outside.partitions(topic) for topic in (topics.input, *topics.outputs())} == {3}
    wanted = {
        topics.state: {"cleanup.policy": "compact", "segment.bytes": "52428800", "min.compaction.lag.ms": "600000"},
        topics.report: {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.2",
            "delete.retention.ms": "86400000",
        },
        topics.scored: {"cleanup.policy": "delete", "retention.ms": "604800000"},
        topics.result: {"cleanup.policy": "delete"},
        topics.dead_letter: {"max.message.bytes": str(8 * 1024 * 1024)},
    }
    for topic, config in wanted.items():
        found = outside.topic_config(topic)
        assert {name: found[name] for name in config} == config


def test_a_missing_topic_ends_the_worker_with_its_name(outside: Outside, tmp_path: Path) -> None:
    installation = Installation(outside.bootstrap_servers, Topics.fresh(), "lonely", str(tmp_path))

    done = installation.run("worker", folder=tmp_path, timeout_seconds=60)

    assert done.returncode == 3
    assert installation.topics.input in done.stderr


def test_readiness_is_false_until_the_partitions_are_ours_and_metrics_answer(
    site_over: Callable[..., Site], tmp_path: Path
) -> None:
    site = site_over(write_batches(tmp_path / "cases", BATCHES[:1]), partitions=2)
    worker = site.spawn("probed")

    wait_until(worker.is_ready, within_seconds=60, what="ready")

    assert worker.get("/livez")[0] == 200
    assert "safe_build_info" in worker.get("/metrics")[1]
    held = site.outside.members(site.group)
    assert sorted(partition for partitions in held.values() for partition in partitions) == [0, 1]


def test_the_oracle_rejects_what_these_tables_reject(tmp_path: Path, outside: Outside) -> None:
    oracle = Site.build(outside, tmp_path, write_cases(_made(tmp_path / "cases")), partitions=1).oracle

    for sentence, (reason, sent) in REJECTED.items():
        outcome = oracle.outcome(Record("t", 0, 0, sent.key, sent.value, sent.headers, 1))
        assert isinstance(outcome, Dead), sentence
        assert reason in outcome.reasons, sentence
    for sentence, sent in ACCEPTED.items():
        assert isinstance(oracle.outcome(Record("t", 0, 0, sent.key, sent.value, sent.headers, 1)), Scored), sentence


def test_a_key_is_quoted_part_by_part() -> None:
    assert quoted("a/b", "c%d", "e") == "a%2Fb/c%25d/e"
