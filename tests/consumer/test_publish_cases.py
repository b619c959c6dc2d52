"""What `safe publish-cases` plans to write, what it refuses before anything is written, and what it leaves alone."""

import io
import json
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typing_extensions import override

from consumer.case_sources.source import ExpectationsKey
from consumer.case_sources.topic_index import TopicIndex
from consumer.cli.main import main
from consumer.errors import ConfigurationError, Fatal
from consumer.exit_codes import EXIT_ERROR
from consumer.files.publish_cases import (
    CasesPlan,
    Changes,
    StoredCases,
    changes_of,
    plan_cases,
    send_changes,
    stored_cases,
    summary_line,
)
from consumer.kafka.partitioner import partition_for
from consumer.kafka.publisher import TableRecord, TableWriter
from safe_core import TestCase
from tests.support.case_files import a_case, write_batch
from tests.support.tables import InMemoryTopic, StoredRecord

PATIENT = "An eight-year-old girl arrived by ambulance."
ROOMY = 8 * 1024 * 1024


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two batches, the first with a plan that names archetypes."""
    cases = tmp_path / "cases"
    cases.mkdir()
    document = {
        "batch_plan": {"scenarios": ["Case 1: [Safety_Signal] girl", "Handover_Reviewer case", "a plain one"]},
        "test_cases": [
            a_case("A-1", patient_payload=PATIENT, description="girl"),
            a_case("A-2", archetype="Consent_Checker", metric_id="asthma"),
            a_case("A/3", archetype="Unknown"),
        ],
    }
    (cases / "asthma_1.json").write_text(json.dumps(document), encoding="utf-8")
    write_batch(cases, "golden", a_case("A-1", ["stridor"], concern_id="K/08%"))
    return cases


def keys(plan: CasesPlan) -> list[str]:
    return [case.key.decode() for case in plan.cases]


def values(plan: CasesPlan) -> list[Any]:
    return [orjson.loads(case.value) for case in plan.cases]


# --- what is sent -----------------------------------------------------------------------------------------------------


def test_a_record_holds_what_scoring_reads_and_nothing_else(folder: Path) -> None:
    plan = plan_cases(folder)

    assert keys(plan) == ["K07/asthma_1/A-1", "K07/asthma_1/A-2", "K07/asthma_1/A%2F3", "K%2F08%25/golden/A-1"]
    assert len(plan.cases) == 4
    first, second, third, _ = values(plan)
    assert list(first.items()) == [
        ("test_id", "A-1"),
        ("concern_id", "K07"),
        ("archetype", "Safety_Signal"),
        ("patient_payload_digest", "sha256:" + sha256(PATIENT.encode()).hexdigest()),
        ("expectations", a_case("A-1")["expectations"]),
    ]
    assert (second["archetype"], second["metric_id"]) == ("Consent_Checker", "asthma")
    assert "archetype" not in third
    assert "patient_payload_digest" not in second, "it has no narrative"


def test_the_narrative_is_sent_only_where_it_is_asked_for(folder: Path) -> None:
    assert PATIENT not in str(values(plan_cases(folder)))

    first, second, third, _ = values(plan_cases(folder, with_narrative=True))

    assert first == a_case("A-1", patient_payload=PATIENT, description="girl", archetype="Safety_Signal")
    assert second == a_case("A-2", archetype="Consent_Checker", metric_id="asthma")
    assert third == a_case("A/3", archetype="Unknown")


def test_a_pattern_chooses_batches_and_all_of_the_folder_are_known(folder: Path) -> None:
    plan = plan_cases(folder, "gold*")

    assert list(plan.batches) == ["golden"]
    assert plan.in_folder == {"asthma_1", "golden"}


def test_a_test_case_that_stands_twice_alike_is_sent_once(tmp_path: Path) -> None:
    write_batch(tmp_path, "b", a_case("A-1", archetype="One"), a_case("A-2"), a_case("A-1", archetype="Two"))

    assert [(case["test_id"], case.get("archetype")) for case in values(plan_cases(tmp_path))] == [
        ("A-1", "One"),
        ("A-2", None),
    ]


@given(
    st.lists(
        st.builds(
            lambda test_id, terms, archetype: a_case(test_id, terms, archetype=archetype),
            st.sampled_from(["A-1", "A/2", "50%", "é"]),
            st.lists(st.sampled_from(["wheeze", "Straße", "a\u2028b", '"'])),
            st.sampled_from([None, "Unknown", "Safety_Signal"]),
        ),
        unique_by=lambda case: case["test_id"],
        min_size=1,
    )
)
def test_what_is_sent_is_read_as_the_test_case_of_the_file(cases: list[Any]) -> None:
    import tempfile  # noqa: PLC0415 - hypothesis and tmp_path do not go together

    with tempfile.TemporaryDirectory() as folder:
        write_batch(Path(folder), "b/x".replace("/", "%"), *cases)
        plans = [plan_cases(Path(folder), with_narrative=narrative) for narrative in (False, True)]
    index = TopicIndex()
    for plan in plans:
        index.fold(StoredRecord(0, 0, case.key, case.value) for case in plan.cases)
        for case in cases:
            found = index.find(ExpectationsKey("b%x", case["test_id"]))
            assert isinstance(found, TestCase)
            assert found.expectations.must_find_signals == tuple(
                case["expectations"]["signal_generation"]["must_find_signals"]
            )
            assert found.archetype == (None if case["archetype"] == "Unknown" else case["archetype"])
        assert index.survey({}).batches == ()


# --- refusals ---------------------------------------------------------------------------------------------------------

# The entries of a batch file (or its bytes), and the sentence.
REFUSED: list[tuple[object, str]] = [
    (b"{", "b.json: not valid JSON (line 1, column 2)"),
    (b"[]", "b.json: not an object"),
    (b'{"test_cases": {}}', "b.json: test_cases is not a list"),
    ([a_case("A-1"), a_case("A-2", [" "])], "b.json, test_cases[1]: signal_generation.must_find_signals[0] is blank"),
    ([{"concern_id": "K07"}], "b.json, test_cases[0]: test_id is missing"),
    (
        [a_case("A-1", concern_id=None)],
        "b.json, test_cases[0] has no concern_id, which is part of the key of its record",
    ),
    (
        [a_case("A-1"), a_case("A-2"), a_case("A-1", ["other"])],
        "b.json, test_cases[2] has the test_id of [0] but different expectations",
    ),
]


@pytest.mark.parametrize(("content", "sentence"), REFUSED, ids=[row[1] for row in REFUSED])
def test_what_could_not_be_scored_is_refused_with_its_file_and_place(
    tmp_path: Path, content: object, sentence: str
) -> None:
    raw = content if isinstance(content, bytes) else json.dumps({"test_cases": content}).encode()
    (tmp_path / "b.json").write_bytes(raw)
    write_batch(tmp_path, "good", a_case("A-1"))

    with pytest.raises(ConfigurationError, match=r"^nothing was published\. " + f".*{re.escape(sentence)}"):
        plan_cases(tmp_path)


def test_every_problem_is_named_up_to_ten(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"{")
    blank = ([*["x"] * number, " "] for number in range(20))  # each in another place, so that no two are told as one
    write_batch(tmp_path, "b", *(a_case(f"A-{number}", terms) for number, terms in enumerate(blank)))

    with pytest.raises(ConfigurationError) as refused:
        plan_cases(tmp_path)

    assert "a.json: not valid JSON" in str(refused.value)
    assert "test_cases[8]" in str(refused.value)
    assert "test_cases[9]" not in str(refused.value)
    assert str(refused.value).endswith("; and 11 more")


def test_test_cases_with_the_same_problem_are_told_together(tmp_path: Path) -> None:
    write_batch(tmp_path, "b", a_case("A-0"), *(a_case(f"A-{number}", concern_id=None) for number in range(2)))

    with pytest.raises(ConfigurationError) as refused:
        plan_cases(tmp_path)

    each = "b.json, each of 2 test cases (test_cases[1], [2]) has no concern_id, which is part of the key of its record"
    assert str(refused.value).endswith(each)


def test_what_json_cannot_hold_is_refused_where_it_would_be_sent(tmp_path: Path) -> None:
    raw = json.dumps({"test_cases": [a_case("A-1", note="\ud800"), a_case("A-2", number=2**70)]})
    (tmp_path / "b.json").write_text(raw, encoding="utf-8")

    assert keys(plan_cases(tmp_path)) == ["K07/b/A-1", "K07/b/A-2"]
    with pytest.raises(ConfigurationError, match=r"test_cases\[0\] cannot be written as JSON.*test_cases\[1\] cannot"):
        plan_cases(tmp_path, with_narrative=True)


def test_a_record_over_the_limit_of_the_topic_is_refused(folder: Path) -> None:
    plan = plan_cases(folder, with_narrative=True)
    largest = max(len(case.key) + len(case.value) for case in plan.cases)
    plan.check_sizes(ROOMY)
    plan.check_sizes(largest + 128)

    with pytest.raises(ConfigurationError, match=r"limit of \d+ bytes: .*asthma_1\.json, test_cases\[0\]$"):
        plan.check_sizes(largest + 127)


def test_a_record_that_no_worker_would_read_is_refused_whatever_the_topic_takes(tmp_path: Path) -> None:
    write_batch(tmp_path, "b", a_case("A-1", patient_payload="x" * ROOMY))

    with pytest.raises(ConfigurationError, match=f"limit of {ROOMY} bytes"):
        plan_cases(tmp_path, with_narrative=True).check_sizes(10 * ROOMY)


def test_a_folder_without_such_a_batch_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no batch matches --batch sepsis\* in .*; batches there: asthma_"):
        plan_cases(folder, "sepsis*")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        plan_cases(folder / "nowhere")


# --- what changes -----------------------------------------------------------------------------------------------------


def stored_of(*records: tuple[str, bytes | None]) -> StoredCases:
    stored = StoredCases(1)
    for key, value in records:
        stored.note(0, key.encode(), value)
    return stored


def counts(changes: Iterable[Changes]) -> list[tuple[int, int, int, int]]:
    return [(batch.new, batch.changed, batch.unchanged, batch.removed) for batch in changes]


def records(changes: Iterable[Changes]) -> dict[str, bytes | None]:
    return {record.key.decode(): record.value for batch in changes for record in batch.records}


def test_only_what_differs_is_written_batch_by_batch(folder: Path) -> None:
    plan = plan_cases(folder)
    first, second, *_ = plan.batches["asthma_1"]
    stored = stored_of(
        (first.key.decode(), first.value),
        (second.key.decode(), b"{}"),
        ("K07/asthma_1/A-9", b"{}"),  # no longer in the file
        ("K08/asthma_1/A-1", b"{}"),  # of another concern, and so one more test case of the batch
        ("K07/asthma_1", b"{}"),  # the whole file, as somebody else has published it
        ("K07/sepsis/S-1", b"{}"),  # a batch that the folder does not hold
        ("K07/sepsis/S-2", b"{}"),
        ("K07/sepsis/S-2", None),
        ("rubbish", b"{}"),
    )

    changes = changes_of(plan, stored, prune=False)
    pruned = changes_of(plan, stored, prune=True)

    assert counts(changes) == [(1, 1, 1, 3), (1, 0, 0, 0)]
    assert records(changes[:1]) == {
        "K07/asthma_1/A-2": second.value,
        "K07/asthma_1/A%2F3": plan.batches["asthma_1"][2].value,
        "K07/asthma_1": None,
        "K07/asthma_1/A-9": None,
        "K08/asthma_1/A-1": None,
    }
    assert counts(pruned[2:]) == [(0, 0, 0, 1)]
    assert records(pruned[2:]) == {"K07/sepsis/S-1": None}


def test_a_batch_that_a_pattern_leaves_out_is_not_pruned(folder: Path) -> None:
    stored = stored_of(("K07/asthma_1/A-1", b"{}"), ("K07/sepsis/S-1", b"{}"))

    changes = changes_of(plan_cases(folder, "golden"), stored, prune=True)

    assert [key for key, value in records(changes).items() if value is None] == ["K07/sepsis/S-1"]


def test_records_go_where_every_producer_puts_them_and_are_taken_away_where_they_stand(folder: Path) -> None:
    plan = plan_cases(folder)
    home = partition_for("K07/asthma_1/A-1", 8)
    stray = (home + 3) % 8
    stored = StoredCases(8)
    stored.note(stray, b"K07/asthma_1/A-1", plan.batches["asthma_1"][0].value)
    (changes, _) = changes_of(plan, stored, prune=False)

    places = {(record.key, record.partition): record.value for record in changes.records}
    assert places[b"K07/asthma_1/A-1", home] is not None
    assert places[b"K07/asthma_1/A-1", stray] is None


async def test_what_stands_is_read_to_the_end_with_what_is_committed() -> None:
    topic = InMemoryTopic()
    for number in range(10):
        topic.put(f"K07/b/A-{number}", b"{}")
    topic.put("K07/b/A-0", None)
    aborted = topic.begin()
    aborted.put("K07/b/B-1", b"{}")
    aborted.abort()

    stored = await stored_cases(topic.table(), "cases")

    assert stored.by_batch["b"].keys() == {(0, f"K07/b/A-{number}".encode()) for number in range(1, 10)}


async def test_an_open_transaction_of_somebody_else_is_not_waited_for_for_ever() -> None:
    topic = InMemoryTopic()
    topic.begin().put("K07/b/B-1", b"{}")

    with pytest.raises(Fatal, match="a transaction is open"):
        await stored_cases(topic.table(), "cases")


# --- sending ----------------------------------------------------------------------------------------------------------


class Written(TableWriter):
    """A writer that keeps what it is given; fails at the batch of that number."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.batches: list[tuple[Sequence[TableRecord], int]] = []
        self._fails_at = fails_at

    @override
    async def write(self, records: Iterable[TableRecord], now_ms: int) -> None:
        if len(self.batches) == self._fails_at:
            raise Fatal("another writer has taken over")
        self.batches.append((list(records), now_ms))


async def test_each_batch_is_written_at_once_and_one_without_changes_not_at_all(folder: Path) -> None:
    plan = plan_cases(folder)
    golden = plan.batches["golden"][0]
    changes = changes_of(plan, stored_of((golden.key.decode(), golden.value)), prune=False)
    writer = Written()

    await send_changes(changes, writer, Console(file=io.StringIO()), "cases", lambda: 42)

    assert [(len(batch), now_ms) for batch, now_ms in writer.batches] == [(3, 42)]


async def test_progress_is_shown_on_a_terminal(folder: Path) -> None:
    screen = io.StringIO()
    changes = changes_of(plan_cases(folder), stored_of(), prune=False)

    await send_changes(changes, Written(), Console(file=screen, force_terminal=True), "cases", lambda: 42)

    assert "to cases" in screen.getvalue()


def test_the_last_line_says_what_was_done(folder: Path) -> None:
    plan = plan_cases(folder)
    changes = [Changes((), 12, 3, 35, 1), Changes((), 1, 0, 0, 0)]

    still = [Changes((), 0, 0, 4, 0)]
    assert summary_line(plan, still, "cases", dry_run=False) == "cases is up to date: 4 test cases of 2 batches"
    counted = "4 test cases of 2 batches to cases: 13 new, 3 changed, 35 unchanged, 1 removed"
    assert summary_line(plan, changes, "cases", dry_run=False) == f"published {counted}"
    assert summary_line(plan, changes, "cases", dry_run=True) == f"would publish {counted}"
    one = plan_cases(folder, "golden")
    assert summary_line(one, changes[1:], "cases", dry_run=False).startswith(
        "published 1 test case of 1 batch to cases: "
    )


# --- the command ------------------------------------------------------------------------------------------------------

# arguments after the folder, environment, the one sentence
FAILURES: list[tuple[list[str], dict[str, str], str]] = [
    ([], {}, "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS is not set"),
    (["--bootstrap-servers", "b:1"], {}, "no topic was named: give --topic, or set SAFE_V0_EXPECTATIONS to topic:NAME"),
    (
        ["--bootstrap-servers", "b:1"],
        {"SAFE_V0_EXPECTATIONS": "./cases"},
        "no topic was named: give --topic, or set SAFE_V0_EXPECTATIONS to topic:NAME",
    ),
    (["--bootstrap-servers", "b:1", "--topic", "a:b"], {}, "colon"),
    # the input of the worker would be filled with test cases
    (["--bootstrap-servers", "b:1", "--topic", "factory.generation.output"], {}, "is the same topic as"),
]


@pytest.mark.parametrize(("arguments", "environ", "sentence"), FAILURES)
def test_wrong_options_are_one_sentence_and_code_3(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    environ: dict[str, str],
    sentence: str,
) -> None:
    monkeypatch.chdir(folder)
    for name in ("SAFE_V0_EXPECTATIONS", "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    assert main(["publish-cases", str(folder), *arguments]) == EXIT_ERROR
    said_on_stderr = capsys.readouterr().err
    assert sentence in said_on_stderr
    assert said_on_stderr.count("\n") == 1


def test_the_help_says_that_a_narrative_is_patient_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["publish-cases", "--help"]) == 0
    assert "patient data" in " ".join(capsys.readouterr().out.split())
