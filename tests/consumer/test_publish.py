"""What `safe publish` plans to send, and what it refuses before anything is sent."""

import io
import json
import re
from collections.abc import Mapping
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

import orjson
import pytest
from rich.console import Console
from typing_extensions import override

from consumer.cli.main import main
from consumer.errors import ConfigurationError
from consumer.exit_codes import EXIT_INTERRUPTED
from consumer.files import publish_outputs as publish
from consumer.files.outputs import OnDuplicate, open_outputs
from consumer.files.publish_outputs import OutgoingEvent, TargetBatches, plan_events, send, summary_line
from consumer.kafka.publisher import EventPublisher
from consumer.settings import Settings
from consumer.wire.keys import event_key
from tests.support.case_files import a_case, write_batch

ANSWER = {"signals": ["wheeze"], "summary": "Wheeze on arrival.", "followup_questions": ["When was salbutamol given?"]}
PATIENT = "An eight-year-old girl arrived by ambulance."
DIGEST = "sha256:" + sha256(PATIENT.encode()).hexdigest()
NARRATIVE = {"raw_input": PATIENT, "model_name": "m", "latency_ms": 10}


def batch(
    folder: Path,
    name: str,
    *test_ids: str,
    index: int | None = None,
    signal: object = "wheeze",
    concern: str | None = "K07",
) -> None:
    """A batch file whose cases all demand one signal."""
    expectations = {"signal_generation": {"must_find_signals": [signal]}}
    cases = [{"test_id": test_id, "concern_id": concern, "expectations": expectations} for test_id in test_ids]
    (folder / f"{name}.json").write_text(json.dumps({"batch_plan": {"batch_index": index}, "test_cases": cases}))


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """Two batches; the golden set repeats A-1 as it is, and A-3 with other expectations; A-4 is invalid."""
    folder = tmp_path / "cases"
    folder.mkdir()
    batch(folder, "asthma_1", "A-1", "A-2", "A-3", index=1)
    batch(folder, "golden", "A-1", index=6)
    batch(folder, "golden_2", "A-3", index=6, signal="stridor")
    batch(folder, "invalid", "A-4", signal=" ")
    return folder


def result(test_id: str, **more: object) -> dict[str, object]:
    """One of a report's raw_results."""
    return {"test_id": test_id, "concern_id": "K07", "engine_output": {**ANSWER, **NARRATIVE}, **more}


def report(tmp_path: Path, *results: dict[str, object], name: str = "run.json") -> Path:
    """A factory-cli report."""
    path = tmp_path / name
    path.write_text(json.dumps({"concern_id": "K07", "raw_results": results}, indent=1))
    return path


def jsonl(tmp_path: Path, *events: Mapping[str, object], name: str = "events.jsonl") -> Path:
    """A JSONL of input events."""
    path = tmp_path / name
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def planned(
    *paths: Path,
    batch: str | None = None,
    test_dir: Path | None = None,
    on_duplicate: OnDuplicate | None = None,
    whole_output: bool = False,
    run: str | None = None,
) -> list[OutgoingEvent]:
    """The events of a plan, which must be as many as it says, and the same when asked again."""
    destination = TargetBatches.of(batch, test_dir)
    made = plan_events(
        [open_outputs(path) for path in paths],
        destination,
        on_duplicate=on_duplicate,
        whole_output=whole_output,
        run=run,
    )
    events = list(made)
    assert made.count == len(events)
    assert list(made) == events
    return events


def values(events: list[OutgoingEvent]) -> list[dict[str, Any]]:
    """The events' values, parsed."""
    return [orjson.loads(event.value) for event in events]


def keys(events: list[OutgoingEvent]) -> list[str]:
    """The events' keys."""
    return [event.key.decode() for event in events]


# --- what is sent -----------------------------------------------------------------------------------------------------


def test_an_event_holds_what_scoring_reads_and_nothing_else(tmp_path: Path, cases: Path) -> None:
    path = report(tmp_path, result("A-1", archetype="Safety_Signal", batch_index=1, structural={"passed": True}))

    (event,) = planned(path, test_dir=cases)

    run_id = f"run.json-{open_outputs(path).sha256[:8]}"
    assert event.key == b"asthma_1/A-1"
    assert list(orjson.loads(event.value).items()) == [
        ("test_id", "A-1"),
        ("batch_id", "asthma_1"),
        ("concern_id", "K07"),
        ("archetype", "Safety_Signal"),
        ("run_id", run_id),
        ("input_digest", DIGEST),
        ("output", ANSWER),
    ]


def test_the_narrative_is_sent_only_where_it_is_asked_for(tmp_path: Path, cases: Path) -> None:
    path = report(tmp_path, result("A-2"))

    assert PATIENT not in planned(path, test_dir=cases)[0].value.decode()
    assert values(planned(path, test_dir=cases, whole_output=True))[0]["output"] == {**ANSWER, **NARRATIVE}


OUTPUTS = [
    ({"summary": "s", "model_name": "m"}, {"summary": "s"}),  # absent stays absent
    ({"summary": None, "signals": []}, {"summary": None, "signals": []}),  # null stays null
    ({"summary": "", "model_name": "m"}, {"summary": ""}),
    ({}, {}),
    (None, None),
]


@pytest.mark.parametrize(("engine_output", "sent"), OUTPUTS)
def test_an_output_is_sent_as_it_is(tmp_path: Path, cases: Path, engine_output: object, sent: object) -> None:
    for path in (
        report(tmp_path, result("A-2", engine_output=engine_output)),
        jsonl(tmp_path, {"test_id": "A-2", "output": engine_output}),
    ):
        assert values(planned(path, test_dir=cases))[0]["output"] == sent


@pytest.mark.parametrize("archetype", [None, "Unknown", "", " "])
def test_an_archetype_that_says_nothing_is_left_out(tmp_path: Path, cases: Path, archetype: str | None) -> None:
    assert "archetype" not in values(planned(report(tmp_path, result("A-2", archetype=archetype)), test_dir=cases))[0]


def test_an_event_keeps_what_it_says_and_is_given_only_what_it_lacks(tmp_path: Path, cases: Path) -> None:
    ids = {"concern_id": "K08", "metric_id": "asthma", "generated_at": "2026-11-21T20:00:00Z"}
    told = {"test_id": "A-2", "batch_id": "nightly", "run_id": "r7", **ids, "output": {**ANSWER, **NARRATIVE}}
    path = jsonl(tmp_path, told, {"test_id": "A-2", "output": None})

    first, second = values(planned(path, test_dir=cases, run="r8"))

    assert first == {**told, "input_digest": DIGEST, "output": ANSWER}
    assert second == {"test_id": "A-2", "batch_id": "asthma_1", "run_id": "r8", "output": None}


def test_a_batch_named_for_all_serves_only_events_without_one(tmp_path: Path, cases: Path) -> None:
    # Under "nightly" A-3 would be ambiguous; in its own batch it is not.
    path = jsonl(
        tmp_path, {"test_id": "A-3", "batch_id": "golden_2", "output": None}, {"test_id": "A-2", "output": None}
    )

    assert keys(planned(path, batch="nightly", test_dir=cases)) == ["golden_2/A-3", "nightly/A-2"]


def test_where_batches_differ_an_output_goes_to_the_one_that_tells_its_narrative(tmp_path: Path) -> None:
    hers, his = ({"raw_input": f"{who} wheezes."} for who in ("She", "He"))
    cases = write_batch(tmp_path / "cases", "asthma_1", a_case("A-2", patient_payload="She wheezes.")).parent
    write_batch(cases, "asthma_2", a_case("A-2", ["stridor"], patient_payload="He wheezes."))
    both = [result("A-2", engine_output={**ANSWER, **narrative}) for narrative in (his, hers)]

    assert keys(planned(report(tmp_path, *both), test_dir=cases)) == ["asthma_2/A-2", "asthma_1/A-2"]
    assert keys(planned(report(tmp_path, *both[:1]), batch="nightly", test_dir=cases)) == ["nightly/A-2"]
    with pytest.raises(ConfigurationError, match=r"1 test_id in several batches with different expectations"):
        planned(report(tmp_path, result("A-2", engine_output={**ANSWER, "raw_input": "They wheeze."})), test_dir=cases)


def test_events_that_name_their_batch_need_no_test_cases(tmp_path: Path) -> None:
    path = jsonl(tmp_path, *({"test_id": f"A-{n}", "batch_id": "nightly", "output": None} for n in (1, 2, 1)))

    assert keys(planned(path)) == ["nightly/A-1", "nightly/A-2", "nightly/A-1"]


def test_each_file_is_a_run_of_its_own(tmp_path: Path, cases: Path) -> None:
    one, two = report(tmp_path, result("A-2")), report(tmp_path, result("A-2", seed=2), name="again.json")

    first, second = values(planned(one, two, test_dir=cases))

    assert first["run_id"].startswith("run.json-")
    assert second["run_id"].startswith("again.json-")
    assert [event["run_id"] for event in values(planned(one, two, test_dir=cases, run="r"))] == ["r", "r"]


def test_slashes_and_percent_signs_are_escaped_in_keys_and_nothing_else_is() -> None:
    assert event_key("50%/a b", "Ä/é|2F") == "50%25%2Fa b/Ä%2Fé|2F".encode()


# --- which batch ------------------------------------------------------------------------------------------------------

BATCHES = [
    # equal in two batches: the first by file name
    (None, result("A-1"), "asthma_1/A-1"),
    ("*", result("A-1"), "asthma_1/A-1"),
    # the index chooses
    (None, result("A-1", batch_index=6), "golden/A-1"),
    # an index of no batch left says nothing
    ("golden", result("A-1", batch_index=1), "golden/A-1"),
    # a glob leaves one
    ("gold*", result("A-1"), "golden/A-1"),
    # the index tells two that differ apart
    (None, result("A-3", batch_index=6), "golden_2/A-3"),
    ("asthma_?", result("A-3"), "asthma_1/A-3"),
    # no such batch: a name for all
    ("nightly-7", result("A-2"), "nightly-7/A-2"),
]


@pytest.mark.parametrize(("pattern", "entry", "key"), BATCHES)
def test_the_batch_of_an_entry(
    tmp_path: Path, cases: Path, pattern: str | None, entry: dict[str, object], key: str
) -> None:
    assert keys(planned(report(tmp_path, entry), batch=pattern, test_dir=cases)) == [key]


def test_without_test_cases_one_name_serves_all(tmp_path: Path) -> None:
    path = report(tmp_path, result("Z-1"), result("Z-2", batch_index=4))

    assert keys(planned(path, batch="nightly")) == ["nightly/Z-1", "nightly/Z-2"]


# --- what is refused --------------------------------------------------------------------------------------------------

REFUSED = [
    # nobody holds it
    (None, [result("A-2"), result("A-9")], "1 test_id in no batch that --batch and --test-dir select: A-9"),
    # nobody left holds it
    ("golden", [result("A-2")], "1 test_id in no batch"),
    # two that are left expect different things
    (None, [result("A-3")], "in several batches with different expectations (choose with --batch): A-3"),
    # under a batch's name alone the scorer cannot tell them apart, whatever the index says
    ("nightly", [result("A-3", batch_index=6)], "in several batches with different expectations"),
    # its test case can never be scored
    (None, [result("A-4")], "1 test_id with a test case that is invalid: A-4"),
    # a case answered twice
    (None, [result("A-2"), result("A-1"), result("A-2", batch_index=1)], "1 test_id answered more than once"),
    ("nightly", [result("A-2"), result("A-2")], "1 test_id answered more than once"),
    # through the other batch that holds it
    (None, [result("A-1", batch_index=6), result("A-1")], "1 test_id answered more than once"),
]


@pytest.mark.parametrize(("pattern", "entries", "words"), REFUSED)
def test_what_could_never_be_scored_is_refused_as_a_whole(
    tmp_path: Path, cases: Path, pattern: str | None, entries: list[dict[str, object]], words: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        planned(report(tmp_path, *entries), batch=pattern, test_dir=cases)

    assert str(caught.value).startswith("nothing was published. ")
    assert words in str(caught.value)


NAMELESS: list[tuple[dict[str, str], dict[str, str], str | None, str]] = [
    # what the output says, what its report says for all, --batch, the test_ids that are refused
    ({}, {}, "nameless", "N-1, N-2"),
    ({}, {"concern_id": "K07"}, "nameless", ""),
    ({"concern_id": "K07"}, {}, "nameless", ""),
    # N-1 is sent to the first batch that holds it, which names a concern
    ({}, {}, None, "N-2"),
    # of a batch that the folder lacks, the first holder decides
    ({}, {}, "nightly", "N-2"),
]


@pytest.mark.parametrize("kind", ["report", "events"])
@pytest.mark.parametrize(("own", "of_all", "pattern", "test_ids"), NAMELESS)
def test_an_event_that_would_have_no_concern_is_refused(
    tmp_path: Path, kind: str, own: dict[str, str], of_all: dict[str, str], pattern: str | None, test_ids: str
) -> None:
    folder = tmp_path / "cases"
    folder.mkdir()
    batch(folder, "named", "N-1")
    batch(folder, "nameless", "N-1", "N-2", concern=None)
    answers = [{"test_id": test_id, "output": ANSWER, "engine_output": ANSWER, **own} for test_id in ("N-1", "N-2")]
    path = jsonl(tmp_path, *({**answer, **of_all} for answer in answers))
    if kind == "report":
        path = tmp_path / "run.json"
        path.write_text(json.dumps({"raw_results": answers, **of_all}))

    if not test_ids:
        assert len(planned(path, batch=pattern, test_dir=folder)) == 2
        return
    with pytest.raises(ConfigurationError) as caught:
        planned(path, batch=pattern, test_dir=folder)
    sentence = "without a concern (neither the output nor its test case has a concern_id)"
    assert str(caught.value).endswith(
        f"{len(test_ids.split())} test_id{'s' * (',' in test_ids)} {sentence}: {test_ids}"
    )


def test_failed_generations_are_named_before_anything_is_sent(
    tmp_path: Path, cases: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = ({"test_id": test_id, "concern_id": "K07", "error": "timeout"} for test_id in ("A-1", "A-2", "A-1"))
    path = report(tmp_path, *map(dict[str, object], failed), result("A-2"))
    plan = plan_events([open_outputs(path)], TargetBatches.of(None, cases))
    monkeypatch.setattr(publish, "publishing_events", lambda _settings: nullcontext(Buffer()))

    assert publish.publish_events(Settings(input_topic="in"), plan) == 0

    first, second = capsys.readouterr().err.splitlines()
    sentence = "1 test_id has no answer, because the call of the model failed; that is what is published for: A-1"
    assert first == f"safe: {sentence}"
    assert second.startswith("published 2 events from 1 file to in ")


def test_all_refused_test_ids_are_named_up_to_ten_of_a_kind(tmp_path: Path, cases: Path) -> None:
    unknown = [result(f"Z-{number}") for number in range(13)]
    one = report(tmp_path, *unknown, result("A-3"))
    other = jsonl(tmp_path, {"test_id": "Y-1", "output": None}, {"test_id": "A-4", "batch_id": "b", "output": None})

    with pytest.raises(ConfigurationError) as caught:
        planned(one, other, test_dir=cases)

    told = str(caught.value)
    assert "run.json: 13 test_ids in no batch" in told
    assert "Z-8, Z-9 and 3 more; " in told
    assert "Z-10" not in told
    for test_id in ("A-3", "Y-1", "A-4"):
        assert test_id in told


def test_one_of_two_answers_is_chosen_where_asked(tmp_path: Path, cases: Path) -> None:
    path = report(
        tmp_path,
        result("A-2", engine_output={"summary": "first"}),
        result("A-1"),
        result("A-2", engine_output={"summary": "last"}),
    )

    first = values(planned(path, test_dir=cases, on_duplicate="first"))
    last = values(planned(path, test_dir=cases, on_duplicate="last"))

    assert [(event["test_id"], event["output"]["summary"]) for event in first] == [
        ("A-2", "first"),
        ("A-1", ANSWER["summary"]),
    ]
    assert [(event["test_id"], event["output"]["summary"]) for event in last] == [
        ("A-2", "last"),
        ("A-1", ANSWER["summary"]),
    ]


def test_a_test_id_is_answered_twice_where_two_entries_answer_the_same_case(tmp_path: Path, cases: Path) -> None:
    apart = report(tmp_path, result("A-1", batch_index=1), result("A-1", batch_index=6), result("A-2"))
    assert keys(planned(apart, test_dir=cases)) == ["asthma_1/A-1", "golden/A-1", "asthma_1/A-2"]

    twice = report(tmp_path, result("A-2"), result("A-1"), result("A-1", batch_index=6), result("A-2"))
    with pytest.raises(ConfigurationError, match=r"2 test_ids answered more than once \(.*\): A-2, A-1$"):
        planned(twice, test_dir=cases)


def test_an_entry_that_answers_several_cases_is_sent_once(tmp_path: Path, cases: Path) -> None:
    path = report(tmp_path, result("A-1"), result("A-1", batch_index=6))

    assert keys(planned(path, test_dir=cases, on_duplicate="first")) == ["asthma_1/A-1"]
    assert keys(planned(path, test_dir=cases, on_duplicate="last")) == ["asthma_1/A-1", "golden/A-1"]


def test_of_events_all_are_sent_since_the_latest_stands(tmp_path: Path, cases: Path) -> None:
    path = jsonl(tmp_path, *({"test_id": "A-2", "output": {"summary": text}} for text in ("first", "last")))

    assert [event["output"]["summary"] for event in values(planned(path, test_dir=cases))] == ["first", "last"]


USAGE: list[tuple[dict[str, Any], str]] = [
    ({"batch": "asthma_*"}, "needs a folder of batches: give --test-dir"),
    ({}, "1 test_id without a batch (give --batch or --test-dir): A-2"),
    ({"batch": "a\nb"}, "--batch holds the control character U+000A"),
    ({"batch": "nightly", "run": "r" * 257}, "--run is longer than 256 characters"),
]


@pytest.mark.parametrize(("options", "words"), USAGE)
def test_options_that_cannot_be_used_say_why(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        planned(report(tmp_path, result("A-2")), **options)

    assert words in str(caught.value)


def test_a_pattern_that_leaves_no_batch_is_refused(tmp_path: Path, cases: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"no batch matches --batch copd_\* in .*; batches there: asthma_1, golden"
    ):
        planned(report(tmp_path, result("A-2")), batch="copd_*", test_dir=cases)


UNSENDABLE = [
    ({"generated_at": "yesterday"}, "line 1 can never be scored: generated_at is not an RFC 3339 time with a zone"),
    ({"output": {"summary": "x" * 1_048_576}}, "line 1 can never be scored: the value has"),
]


@pytest.mark.parametrize(("member", "words"), UNSENDABLE, ids=["time", "size"])
def test_an_event_that_the_scorer_would_refuse_is_refused_here(
    tmp_path: Path, member: dict[str, object], words: str
) -> None:
    path = jsonl(tmp_path, {"test_id": "A-1", "batch_id": "b", "output": None} | member)

    with pytest.raises(ConfigurationError) as caught:
        planned(path)

    assert words in str(caught.value)


def test_a_file_name_that_makes_no_run_id_asks_for_one(tmp_path: Path, cases: Path) -> None:
    path = report(tmp_path, result("A-2"), name="a\nb.json")

    with pytest.raises(ConfigurationError, match="name the run with --run"):
        planned(path, test_dir=cases)
    assert values(planned(path, test_dir=cases, run="r"))[0]["run_id"] == "r"


# --- sending ----------------------------------------------------------------------------------------------------------


class Buffer(EventPublisher):
    """A publisher that keeps what it was given."""

    def __init__(self) -> None:
        self.records: list[tuple[str, bytes, bytes]] = []

    @override
    async def publish(self, topic: str, key: bytes, value: bytes) -> None:
        self.records.append((topic, key, value))


@pytest.mark.parametrize(("is_terminal", "says"), [(False, False), (True, True)])
async def test_events_are_sent_in_order_and_a_bar_is_drawn_on_a_terminal_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool, says: bool
) -> None:
    events = ({"test_id": f"A-{number}", "batch_id": "b", "output": None} for number in range(5))
    made = plan_events([open_outputs(jsonl(tmp_path, *events))], TargetBatches.of(None, None))
    publisher, written = Buffer(), io.StringIO()

    monkeypatch.setattr(publish, "publishing_events", lambda _settings: nullcontext(publisher))
    await send(made, Settings(input_topic="in"), Console(file=written, force_terminal=is_terminal))

    assert publisher.records == [("in", event.key, event.value) for event in made]
    assert ("100%" in written.getvalue()) is says


def test_the_last_line_says_what_was_published_where_and_as_which_run(tmp_path: Path) -> None:
    one = jsonl(tmp_path, {"test_id": "A-1", "batch_id": "b", "output": None})
    two = jsonl(tmp_path, {"test_id": "A-1", "batch_id": "b", "output": {}}, name="more.jsonl")
    destination = TargetBatches.of(None, None)

    first = summary_line(plan_events([open_outputs(one)], destination, run="r7"), "in")
    both = summary_line(plan_events([open_outputs(one), open_outputs(two)], destination), "in")

    assert first == "published 1 event from 1 file to in (run r7)"
    assert re.fullmatch(
        r"published 2 events from 2 files to in \(run events\.jsonl-[0-9a-f]{8}, more\.jsonl-[0-9a-f]{8}\)", both
    )


@pytest.mark.parametrize(
    ("while_", "said"),
    [
        ("plan_events", ""),
        ("send", "safe: interrupted: some of the 1 events may have been published; publishing all of them again"),
    ],
)
def test_ctrl_c_ends_it_at_once_and_says_whether_something_may_have_been_sent(
    while_: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_arguments: object, **_options: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(publish, while_, interrupted)
    events = jsonl(tmp_path, {"test_id": "A-1", "batch_id": "b", "output": None})
    assert main(["publish", str(events), "--bootstrap-servers", "127.0.0.1:1"]) == EXIT_INTERRUPTED
    err = capsys.readouterr().err
    assert err.startswith(said)
    assert bool(err) is bool(said)


# --- the real cases ---------------------------------------------------------------------------------------------------


@pytest.mark.real_cases
@pytest.mark.parametrize("name", ["outputs_I25_report.json", "outputs_loop1_report.json"])
def test_the_real_reports_give_fifty_events_five_in_each_batch(real_cases: Path, name: str) -> None:
    events = planned(real_cases / name, batch="I25_batch_*", test_dir=real_cases / "testcases")

    assert sorted(keys(events)) == sorted(
        f"I25_batch_{number}/I25-BATCH{number}-00{place}" for number in range(1, 11) for place in range(1, 6)
    )
    assert keys(events) == keys(planned(real_cases / name, test_dir=real_cases / "testcases")), "all batches: as well"


@pytest.mark.real_cases
def test_of_the_real_report_that_answers_twice_the_first_twelve_can_be_published(
    real_cases: Path, tmp_path: Path
) -> None:
    whole = real_cases / "outputs_refinery_v9.json"
    first_twelve = report(tmp_path, *json.loads(whole.read_bytes())["raw_results"][:12])
    test_dir = real_cases / "testcases"

    assert len(planned(first_twelve, batch="I25_batch_*", test_dir=test_dir)) == 12
    kept = planned(whole, batch="I25_batch_*", test_dir=test_dir, run="r")
    assert kept[:12] == planned(first_twelve, batch="I25_batch_*", test_dir=test_dir, run="r")
    assert len(kept) == 15, "three cases are answered only from another narrative"
