"""Reading reports, JSONL of events and the batches they answer, and whose case an entry answers."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from consumer.errors import ConfigurationError
from consumer.files.batches import Batches, chosen, differ, load_batch, load_batches, read_document
from consumer.files.join import answered_by
from consumer.files.outputs import Entry, open_outputs, output_files
from safe_core import EMPTY_OUTPUT, InvalidBatch, Output
from tests.support.case_files import a_case, write_batch

ANSWER = {"signals": ["wheeze"], "summary": "Wheeze on arrival.", "followup_questions": ["When was salbutamol given?"]}


def entry(test_id: str = "A-1", *, batch_id: str | None = None, batch_index: int | None = None) -> Entry:
    """An entry that says no more than whose case it answers."""
    return Entry("line 1", test_id, batch_index, batch_id, None, None, None, None, None, None, EMPTY_OUTPUT)


def report(path: Path, *results: object, **more: object) -> Path:
    """A factory-cli report."""
    path.write_text(json.dumps({"concern_id": "K07", "raw_results": list(results), **more}, indent=1))
    return path


def batch(
    folder: Path, name: str, *test_ids: str, index: object = None, signal: str = "wheeze", plan: str = "batch_plan"
) -> None:
    """A batch file whose cases all demand one signal."""
    expectations = {"signal_generation": {"must_find_signals": [signal]}}
    cases = [{"test_id": test_id, "concern_id": "K07", "expectations": expectations} for test_id in test_ids]
    (folder / f"{name}.json").write_text(json.dumps({plan: {"batch_index": index}, "test_cases": cases}))


# --- outputs ----------------------------------------------------------------------------------------------------------


def test_a_report_gives_an_entry_for_each_raw_result(tmp_path: Path) -> None:
    whole = {**ANSWER, "raw_input": "An eight-year-old …", "latency_ms": 10}
    first = {"test_id": "A-1", "batch_index": 3, "archetype": "Safety_Signal", "engine_output": whole, "scores": {}}
    second = {"test_id": "A-2", "concern_id": "K08", "batch_index": None, "archetype": " ", "engine_output": None}
    path = report(tmp_path / "run.json", first, second)

    file = open_outputs(path)
    one, two = file.entries()

    assert (file.kind, file.sha256) == ("report", hashlib.sha256(path.read_bytes()).hexdigest())
    assert (one.place, one.test_id, one.batch_index, one.archetype) == ("raw_results[0]", "A-1", 3, "Safety_Signal")
    assert one.concern_id == "K07", "a report may name its concern once"
    assert one.engine_output == whole
    assert one.output == Output(("wheeze",), "Wheeze on arrival.", ("When was salbutamol given?",))
    assert (two.place, two.concern_id, two.batch_index, two.archetype) == ("raw_results[1]", "K08", None, None)
    assert (two.engine_output, two.output) == (None, EMPTY_OUTPUT)


def test_a_jsonl_gives_an_entry_for_each_line_with_all_that_an_event_says(tmp_path: Path) -> None:
    event = {
        "test_id": "A-1",
        "batch_id": "asthma_1",
        "concern_id": "K07",
        "archetype": "Unknown",
        "metric_id": "asthma",
        "run_id": "r7",
        "generated_at": "2026-11-21T20:00:00Z",
        "output": {"summary": None},
    }
    path = tmp_path / "events.jsonl"
    path.write_text(f"{json.dumps(event)}\r\n\n{json.dumps({'test_id': 'A-2', 'output': None})}")

    file = open_outputs(path)
    one, two = file.entries()

    assert file.kind == "events"
    assert (one.place, one.batch_id, one.concern_id, one.metric_id) == ("line 1", "asthma_1", "K07", "asthma")
    assert (one.run_id, one.generated_at, one.output) == ("r7", "2026-11-21T20:00:00Z", EMPTY_OUTPUT)
    assert one.archetype is None, "Unknown is a placeholder"
    assert (two.place, two.batch_id, two.run_id, two.generated_at) == ("line 3", None, None, None)


KINDS = [
    ("run.json", '{"raw_results": []}', "report"),  # on one line
    ("run.txt", '{\n "raw_results": []\n}', "report"),  # the name does not matter
    ("events.json", '{"test_id": "A-1", "output": null}\n{"test_id": "A-2", "output": null}\n', "events"),
    ("events.ndjson", '\n{"test_id": "A-1", "output": null}', "events"),
    ("events.jsonl", "rubbish", "events"),  # so that the error names the line
]


@pytest.mark.parametrize(("name", "text", "kind"), KINDS, ids=[name for name, _, _ in KINDS])
def test_what_a_file_is_shows_in_its_first_line(tmp_path: Path, name: str, text: str, kind: str) -> None:
    (tmp_path / name).write_text(text)

    assert open_outputs(tmp_path / name).kind == kind


def test_lines_are_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"test_id": "A-1", "output": null}\nrubbish\n')
    entries = open_outputs(path).entries()

    assert next(entries).test_id == "A-1"
    with pytest.raises(ConfigurationError, match=r"events\.jsonl: line 2 cannot be read: not valid JSON"):
        next(entries)


GOOD = {"test_id": "A-1", "engine_output": ANSWER}
UNUSABLE = [
    ("no JSON", "run.json", "{", "the file cannot be read: not valid JSON at line 1, column 2"),
    ("an empty file", "run.json", "", "is empty; check that the step that writes it has succeeded"),
    ("not an object", "run.json", "[]", "the file is not a JSON object"),
    (
        "some other JSON",
        "run.json",
        '{\n"x": 1}',
        "is neither a factory-cli report, which has a list named raw_results, nor a JSONL file",
    ),
    ("a batch file", "run.json", '{\n"test_cases": []}', "holds test cases, not outputs"),
    ("a result that is no object", "run.json", [GOOD, "x"], "raw_results[1] is not an object"),
    ("no test_id", "run.json", [{"engine_output": None}], "raw_results[0] has no test_id"),
    (
        "a number as test_id",
        "run.json",
        [{"test_id": 7, "engine_output": None}],
        "raw_results[0]: test_id is not a string",
    ),
    (
        "a line feed in a test_id",
        "run.json",
        [GOOD | {"test_id": "A\n1"}],
        "test_id holds the control character U+000A",
    ),
    ("an archetype too long", "run.json", [GOOD | {"archetype": "x" * 257}], "archetype is longer than 256"),
    (
        "a text as output",
        "run.json",
        [GOOD | {"engine_output": "text"}],
        "raw_results[0]: engine_output is not an object",
    ),
    (
        "a number among the signals",
        "run.json",
        [GOOD | {"engine_output": {"signals": ["x", 1]}}],
        "raw_results[0]: engine_output.signals[1] is not a string",
    ),
    ("a text as batch_index", "run.json", [GOOD | {"batch_index": "1"}], "batch_index is not a whole number"),
    ("true as batch_index", "run.json", [GOOD | {"batch_index": True}], "batch_index is not a whole number"),
    ("a line that is no object", "e.jsonl", '{"test_id": "A", "output": null}\n7', "line 2 is not a JSON object"),
    (
        "a key twice",
        "e.jsonl",
        '{"test_id": "A", "test_id": "B", "output": null}',
        "line 1 cannot be read: a key appears",
    ),
    ("a text as an event's output", "e.jsonl", '{"test_id": "A", "output": "x"}', "line 1: output is not an object"),
    (
        "a byte order mark within the file",
        "e.jsonl",
        '{"test_id": "A", "output": null}\n\ufeff{"test_id": "B", "output": null}',
        "line 2 cannot be read: it begins with a byte order mark",
    ),
    ("no output", "e.jsonl", '{"test_id": "A"}', "line 1 has no output"),
    ("a blank batch_id", "e.jsonl", '{"test_id": "A", "batch_id": " ", "output": null}', "line 1: batch_id is blank"),
]


@pytest.mark.parametrize(
    ("name", "content", "problem"), [row[1:] for row in UNUSABLE], ids=[row[0] for row in UNUSABLE]
)
def test_what_cannot_be_used_is_named_with_file_and_place(
    tmp_path: Path, name: str, content: object, problem: str
) -> None:
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    else:
        path.write_text(json.dumps({"raw_results": content}, indent=1))

    with pytest.raises(ConfigurationError) as caught:
        list(open_outputs(path).entries())

    assert str(caught.value).startswith(f"{path}: ")
    assert problem in str(caught.value)


def test_a_path_that_cannot_be_read_twice_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "stream.jsonl")

    with pytest.raises(ConfigurationError, match=r"nowhere\.json: cannot be read \(No such file or directory\)"):
        open_outputs(tmp_path / "nowhere.json")
    with pytest.raises(ConfigurationError, match=r"stream\.jsonl: is not a regular file"):
        open_outputs(tmp_path / "stream.jsonl")


def test_a_folder_stands_for_the_outputs_in_it(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.json", "notes.md"):
        (tmp_path / name).write_text('{"raw_results": []}')
    (tmp_path / "deeper.json").mkdir()

    assert output_files(tmp_path) == [tmp_path / "a.json", tmp_path / "b.jsonl"]
    assert output_files(tmp_path / "notes.md") == [tmp_path / "notes.md"]
    with pytest.raises(ConfigurationError, match=r"holds neither reports \(\.json\) nor events \(\.jsonl\)"):
        output_files(tmp_path / "deeper.json")


# --- the batches they answer ------------------------------------------------------------------------------------------


def test_batches_are_loaded_by_name_with_their_index_and_hash(tmp_path: Path) -> None:
    batch(tmp_path, "asthma_1", "A-1", index=1)
    batch(tmp_path, "asthma_10", "A-10", index=10, plan="batch_strategy")
    batch(tmp_path, "golden", "A-1", index="6")

    loaded = load_batches(tmp_path, "asthma_*").all

    assert [(each.name, each.batch_index, list(each.rows)) for each in loaded] == [
        ("asthma_1", 1, ["A-1"]),
        ("asthma_10", 10, ["A-10"]),
    ]
    assert loaded[0].sha256 == hashlib.sha256((tmp_path / "asthma_1.json").read_bytes()).hexdigest()
    assert load_batches(tmp_path, "golden").all[0].batch_index is None, "a text is no index"
    assert [each.name for each in load_batches(tmp_path, "golden.json").all] == ["golden"]
    assert load_batches(tmp_path, "nightly").all == ()


def test_a_batch_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"test_cases": {}}')

    with pytest.raises(ConfigurationError, match=r"a\.json: test_cases is not a list"):
        load_batches(tmp_path)
    with pytest.raises(ConfigurationError, match=r"nowhere: cannot be read \(No such file or directory\)"):
        load_batches(tmp_path / "nowhere")


GLOBS = [
    ("*", "anything", True),
    ("I25_batch_*", "I25_batch_1", True),
    ("I25_batch_?", "I25_batch_10", False),
    ("a[1]", "a[1]", True),  # brackets stand for themselves
    ("a[1]", "a1", False),
    ("a.b", "axb", False),
    ("A*", "a1", False),
]


@pytest.mark.parametrize(("pattern", "name", "matches"), GLOBS)
def test_a_glob_knows_star_and_question_mark_alone(pattern: str, name: str, matches: bool) -> None:
    assert chosen(pattern, [name]) == ([name] if matches else [])


def test_a_glob_matches_the_names_of_files_too() -> None:
    assert chosen("a_?.json", ["a_1", "b_1", "a_2"]) == ["a_1", "a_2"]


UNREADABLE: list[tuple[str, Callable[[Path], object], str]] = [
    ("no JSON", lambda path: path.write_text("{"), "not valid JSON (line 1, column 2)"),
    ("gone", lambda path: path.unlink(), "is not there any more"),
]


@pytest.mark.parametrize(("change", "why"), [row[1:] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE])
def test_every_command_says_alike_why_a_batch_file_cannot_be_read(
    change: Callable[[Path], object], why: str, tmp_path: Path
) -> None:
    path = write_batch(tmp_path, "a", a_case("A-1"))
    raw, document = read_document(path)
    assert raw == path.read_bytes()
    assert document == json.loads(raw)
    change(path)
    with pytest.raises(InvalidBatch) as refused:
        read_document(path)
    assert str(refused.value) == why
    with pytest.raises(ConfigurationError) as unusable:
        load_batch(tmp_path, "a")
    assert str(unusable.value) == f"{path}: {why}"


@pytest.fixture
def batches(tmp_path: Path) -> Batches:
    """A-1 stands in three batches, A-2 in one; one batch has no index."""
    batch(tmp_path, "asthma_1", "A-1", "A-2", index=1)
    batch(tmp_path, "golden", "A-1", index=6)
    batch(tmp_path, "extra", "A-1")
    return load_batches(tmp_path)


WHOSE = [
    # no batch_index: the case in every batch
    (entry("A-1"), ["asthma_1", "extra", "golden"]),
    # the index of one holder: that one alone
    (entry("A-1", batch_index=6), ["golden"]),
    # an index of no holder says nothing
    (entry("A-1", batch_index=2), ["asthma_1", "extra", "golden"]),
    # the index of a batch that does not hold the test_id says nothing either
    (entry("A-2", batch_index=6), ["asthma_1"]),
    # an event's batch_id decides
    (entry("A-1", batch_id="extra"), ["extra"]),
    # unless that batch does not hold it: then the rule of look-ups
    (entry("A-1", batch_id="nightly"), ["asthma_1", "extra", "golden"]),
    (entry("A-9"), []),
]


@pytest.mark.parametrize(("asked", "names"), WHOSE)
def test_whose_case_an_entry_answers(batches: Batches, asked: Entry, names: list[str]) -> None:
    assert [each.name for each in answered_by(batches, asked)] == names


def test_holders_differ_where_any_expects_something_else(tmp_path: Path) -> None:
    batch(tmp_path, "a", "A-1", "A-2")
    batch(tmp_path, "b", "A-1")
    batch(tmp_path, "c", "A-2", signal="stridor")
    loaded = load_batches(tmp_path)

    assert not differ(each.rows["A-1"] for each in loaded.holders("A-1"))
    assert differ(each.rows["A-2"] for each in loaded.holders("A-2"))
