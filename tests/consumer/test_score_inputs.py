"""What `safe score` says of outputs that failed, that answer nothing, and of overrides that judge nothing."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main
from consumer.files.outputs import open_outputs
from consumer.files.publish_outputs import TargetBatches, failed_line, plan_events
from tests.support.case_files import a_case, answer, write_batch

GOOD = {"signals": ["wheeze"], "summary": "Salbutamol was given.", "followup_questions": []}


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_batch(Path("cases"), "asthma_1", a_case("A-1"), a_case("A-2"))
    write_batch(Path("cases"), "asthma_2", a_case("A-3"))


def run(*results: dict[str, Any]) -> None:
    Path("run.json").write_text(json.dumps({"raw_results": results}))


def score(*options: str) -> int:
    return main(["score", "-c", "K07", "-b", "asthma_1", "-i", "run.json", "-t", "cases", "-f", "json", *options])


def test_an_entry_without_an_output_is_a_failed_generation_named_with_its_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run({"test_id": "A-1", "engine_output": GOOD}, {"test_id": "A-2", "error": "rate limit\x1b[31m reached"})
    assert score() == 1
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert (report["missing_outputs"], report["failed_generations"], report["empty_outputs"]) == (0, 1, 0)
    line = "safe: 1 test case has no answer, because the generation failed; it is scored as an empty output: A-2 "
    assert f"{line}(rate limit\\u001b[31m reached)\n" in printed.err


def test_where_all_generations_failed_the_file_is_not_doubted(capsys: pytest.CaptureFixture[str]) -> None:
    run({"test_id": "A-1", "error": "timeout"}, {"test_id": "A-2"})
    assert score() == 1
    told = capsys.readouterr().err
    why = "A-1 (timeout), A-2 (its entry in the report has no engine_output)"
    assert (
        f"2 test cases have no answer, because the generation failed; each is scored as an empty output: {why}" in told
    )
    assert "right file" not in told


def test_a_failed_generation_beside_an_answer_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    run({"test_id": "A-1"}, {"test_id": "A-1", "engine_output": GOOD}, {"test_id": "A-2", "engine_output": None})
    score()
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert (report["missing_outputs"], report["failed_generations"], report["empty_outputs"]) == (0, 0, 1)
    assert "generation failed" not in printed.err


def test_an_empty_output_with_an_error_beside_it_is_a_failed_generation(capsys: pytest.CaptureFixture[str]) -> None:
    failed = {"test_id": "A-1", "engine_output": None, "error": "time\x1bout"}
    run(failed, {"test_id": "A-2", "engine_output": {"summary": ""}, "message": "done"})
    score()
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert (report["failed_generations"], report["empty_outputs"]) == (1, 1)
    assert printed.err.splitlines()[0].endswith(": A-1 (time\\u001bout)")
    assert "A-2" not in printed.err

    run(failed, {"test_id": "A-1", "engine_output": GOOD, "error": "none worth mentioning"})
    assert score() == 1, "no --on-duplicate is needed: the failed one gives way"
    assert "failed" not in capsys.readouterr().err, "another answer counts"


@pytest.mark.parametrize("name", ["error", "engine_error", "error_message"])
@pytest.mark.parametrize(
    ("said", "told"),
    [("429 rate", "429 rate"), ({"code": 429}, '{"code": 429}'), (["", "late"], '["", "late"]'), (7, "7")],
)
def test_every_key_and_type_of_a_failure_counts_in_reports_and_in_events(
    name: str, said: Any, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    others = {"test_id": "A-2", "batch_id": "asthma_1", "concern_id": "K07"}
    run({"test_id": "A-1", "engine_output": {}, name: said}, {"test_id": "A-2", "engine_output": GOOD})
    Path("run.jsonl").write_text(
        json.dumps({**others, "test_id": "A-1", "output": None, name: said})
        + "\n"
        + json.dumps(others | {"output": GOOD})
    )
    for file in ("run.json", "run.jsonl"):
        assert main(["score", "-c", "K07", "-b", "asthma_1", "-i", file, "-t", "cases", "-f", "json"]) == 1
        printed = capsys.readouterr()
        report = json.loads(printed.out)
        assert (report["failed_generations"], report["empty_outputs"]) == (1, 0)
        assert f"A-1 ({told})" in printed.err


@pytest.mark.parametrize(
    "said", [None, "", " ", False, 0, [], [""], [[" "], {}], {"code": None}, {"code": 0, "why": ""}]
)
def test_what_holds_nothing_tells_of_no_failure(said: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(
        {
            "test_id": "A-1",
            "engine_output": {"summary": "", "error_message": said},
            "error_message": said,
            "error": said,
        }
    )
    score()
    report = json.loads(capsys.readouterr().out)
    assert (report["failed_generations"], report["empty_outputs"]) == (0, 1)


@pytest.mark.parametrize("empty", [None, {}, {"summary": " ", "signals": []}])
def test_of_two_keys_the_one_that_holds_something_has_the_output(
    empty: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run({"test_id": "A-1", "engine_output": empty, "output": GOOD}, {"test_id": "A-2", "engine_output": GOOD})
    score()
    report = json.loads(capsys.readouterr().out)
    assert (report["failed_generations"], report["empty_outputs"]) == (0, 0)


def test_answers_under_a_key_that_nothing_reads_are_no_failed_generations(capsys: pytest.CaptureFixture[str]) -> None:
    run({"test_id": "A-1", "response": GOOD}, {"test_id": "A-2", "response": GOOD})
    assert score() == 3
    told = capsys.readouterr().err
    assert '2 entries have no engine_output, but "response", which nothing reads' in told
    run({"test_id": "A-1", "error": "timeout", "status": 500}, {"test_id": "A-2", "semantic": {}})
    assert score() == 1, "an outage, told or not"


def test_other_documents_in_a_folder_of_outputs_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    Path("outputs").mkdir()
    run({"test_id": "A-1", "engine_output": GOOD}, {"test_id": "A-2", "engine_output": GOOD})
    Path("run.json").rename("outputs/run.json")
    Path("outputs/generation_plan.json").write_text('{"batches": [{"batch_index": 1}]}')
    Path("outputs/asthma_1.json").write_text(Path("cases/asthma_1.json").read_text())
    score_of = ("score", "-c", "K07", "-b", "asthma_1", "-t", "cases", "-f", "json", "-i")
    main([*score_of, "outputs"])
    printed = capsys.readouterr()
    assert json.loads(printed.out)["missing_outputs"] == 0
    left_out = (
        "2 files are left out: they have no raw_results, so they hold no outputs: asthma_1.json, generation_plan.json"
    )
    assert f"safe: {left_out}\n" in printed.err
    assert main([*score_of, "outputs/generation_plan.json"]) == 3, "asked for by name"
    assert "is neither a factory-cli report" in capsys.readouterr().err
    Path("outputs/run.json").rename("run.json")
    assert main([*score_of, "outputs"]) == 3
    assert "holds neither reports (.json) nor events (.jsonl): 2 files are left out" in capsys.readouterr().err
    for unread in ('{"rawResults": []}', "[]", "{"):  # one that is nearly right, or cannot be read, is an error
        Path("outputs/run.json").write_text(unread)
        assert main([*score_of, "outputs"]) == 3
        assert "run.json" in capsys.readouterr().err


def test_the_console_names_failed_generations(capsys: pytest.CaptureFixture[str]) -> None:
    run({"test_id": "A-1", "error": "timeout"}, {"test_id": "A-2", "engine_output": GOOD})
    main(["score", "-c", "K07", "-b", "asthma_1", "-i", "run.json", "-t", "cases", "-v"])
    assert capsys.readouterr().out.count("FAIL (failed generation)") == 2, "in the table, and among what does not pass"


def test_lint_refuses_outputs_of_which_nothing_is_read_and_tells_failed_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run({"test_id": "A-1", "response": GOOD})
    assert main(["lint", "cases", "-i", "run.json"]) == 3
    run({"test_id": "A-1", "error": "429"})
    capsys.readouterr()
    main(["lint", "cases", "-i", "run.json"])
    assert "1 output is a failed generation and tells nothing of the terms" in capsys.readouterr().err


def test_a_failed_generation_is_published_as_such() -> None:
    error = {"summary": "ENGINE_ERROR", "signals": [], "followup_questions": [], "error_message": "429", "latency": 3}
    run(
        {"test_id": "A-1", "engine_output": error},
        {"test_id": "A-1", "engine_output": GOOD},
        {"test_id": "A-2", "error": "timeout"},
        {"test_id": "A-3", "engine_output": error},
    )
    plan = plan_events([open_outputs(Path("run.json"))], TargetBatches.of(None, Path("cases")))
    sent = {event.key: json.loads(event.value)["output"] for event in plan}
    assert sent == {
        b"asthma_1/A-1": GOOD,  # an answer goes before it
        b"asthma_1/A-2": {"error_message": "timeout"},  # what the report says beside the output
        b"asthma_2/A-3": {name: error[name] for name in error if name != "latency"},
    }
    assert [(file.failed, file.passed_over) for file in plan.files] == [(("A-2", "A-3"), ())]
    assert failed_line(plan.files[0].failed) == (
        "2 test_ids have no answer, because the call of the model failed; that is what is published for: A-2, A-3"
    )


def test_outputs_of_another_concern_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    run({"test_id": "Z-1", "concern_id": "Z99", "engine_output": GOOD})
    assert score() == 3
    told = capsys.readouterr().err
    assert (
        "any selected test case of concern K07: the outputs (1 in all) name concern Z99, test_ids such as Z-1" in told
    )
    assert "--allow-empty" in told
    assert score("--allow-empty") == 1
    assert json.loads(capsys.readouterr().out)["missing_outputs"] == 2


def test_outputs_for_other_batches_take_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    run(*({"test_id": test_id, "engine_output": GOOD} for test_id in ("A-1", "A-3", "Z-1", "Z-2", "Z-3", "Z-4")))
    score()
    told = capsys.readouterr().err.splitlines()
    assert "safe: 1 output ignored: for a test case that is in the folder but not selected" in told
    assert "safe: 4 outputs ignored: no test case has their 4 test_ids: Z-1, Z-2, Z-3 and 1 more" in told


def test_an_override_that_judges_no_case_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    run({"test_id": "A-1", "engine_output": GOOD})
    rule = {"strictAH": True}
    overrides = {"archetype": {"Saftey_Signal": rule}, "metric_id": {"K07": rule, "K70": rule}}
    Path("safe.config.json").write_text(json.dumps({"overrides": overrides}))
    score()
    told = capsys.readouterr().err
    assert "overrides by archetype that match no selected test case: Saftey_Signal\n" in told
    assert "overrides by metric_id that match no selected test case: K70\n" in told


def test_a_byte_order_mark_and_windows_line_ends_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    batch = Path("cases/asthma_1.json")
    run({"test_id": "A-1", "engine_output": GOOD})
    events = [json.dumps({"test_id": "A-1", "output": GOOD}), json.dumps({"test_id": "A-2", "output": GOOD})]
    for path, text in ((batch, batch.read_text()), (Path("run.json"), Path("run.json").read_text())):
        path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    Path("run.jsonl").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(events).encode())
    score("-o", "report.json")
    assert main(["score", "-c", "K07", "-b", "asthma_1", "-i", "run.jsonl", "-t", "cases"]) == 0
    Path("report.json").write_bytes(b"\xef\xbb\xbf" + Path("report.json").read_bytes())
    assert main(["gate", "report.json", "--fail-on", "never"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("run.json", '{"raw_results": [\n  {"test_id": oops}]}', "line 2, column 15"),
        (
            "run.jsonl",
            '{"test_id": "A-1", "output": {}}\n{"test_id": oops}',
            "not valid JSON at line 2, column 13",
        ),
        ("cases/asthma_1.json", '{"test_cases": [\n oops]}', "line 2, column 2"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_by_line_and_column(
    capsys: pytest.CaptureFixture[str], name: str, text: str, place: str
) -> None:
    run({"test_id": "A-1", "engine_output": GOOD})
    Path(name).write_text(text)
    outputs = name if name.startswith("run") else "run.json"
    assert main(["score", "-c", "K07", "-b", "asthma_1", "-i", outputs, "-t", "cases"]) == 3
    assert place in capsys.readouterr().err


AS_JSON = json.dumps({"raw_results": [answer("A-1")]})


@pytest.mark.parametrize(
    ("name", "raw", "sentence"),
    [
        ("run.json", AS_JSON.encode("utf-16"), "run.json: the file cannot be read: it is UTF-16: write it as UTF-8"),
        (
            "run.json",
            gzip.compress(AS_JSON.encode()),
            "the file cannot be read: it is compressed with gzip: write it uncompressed",
        ),
        (
            "run.json",
            json.dumps(AS_JSON).encode(),
            "the file is not a JSON object, but a string that looks like one: it was",
        ),
        (
            "run.jsonl",
            '{"test_id": "A-1"}'.encode("utf-16"),
            "run.jsonl: line 1 cannot be read: it is UTF-16: write it",
        ),
        (
            "run.jsonl",
            b"\n" + json.dumps('{"test_id": "A-1"}').encode(),
            "line 2 is not a JSON object, but a string that",
        ),
        (
            "run.json",
            json.dumps({"raw_results": [answer("A-1", json.dumps(GOOD))]}).encode(),
            "raw_results[0]: engine_output is not an object, but a string that looks like one: it was",
        ),
        (
            "run.json",
            json.dumps({"raw_results": [json.dumps(answer("A-1"))]}).encode(),
            "raw_results[0] is not an object,",
        ),
    ],
)
def test_what_is_no_plain_json_is_named(
    name: str, raw: bytes, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_bytes(raw)
    assert main(["score", "-c", "K07", "-b", "asthma_1", "-i", name, "-t", "cases"]) == 3
    assert sentence in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("formats", "silent"),
    [
        (["-f", "console"], "console"),
        (["-o", "r.json", "-o", "t.csv", "-o", "r.md"], "csv, markdown"),
        (["-o", "r.json"], None),
        (["-o", "r.html"], None),
    ],
)
def test_a_format_that_quotes_nothing_says_so(
    formats: list[str], silent: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    run({"test_id": "A-1", "engine_output": GOOD})
    main(["score", "-c", "K07", "-b", "asthma_1", "-i", "run.json", "-t", "cases", "--include-text", *formats])
    said = [line for line in capsys.readouterr().err.splitlines() if "--include-text" in line]
    whole = f"safe: --include-text changes nothing in {silent}: only json and html quote outputs"
    assert said == ([whole] if silent else [])


def test_explained_cases_without_an_output_share_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    write_batch(Path("cases"), "asthma_1", a_case("A-1", ["stridor"]), a_case("A-2"), a_case("A-4"))
    run({"test_id": "A-1", "engine_output": GOOD})
    explain = ["explain", "-b", "asthma_1", "-i", "run.json", "-t", "cases"]
    assert main(explain) == 0
    text = capsys.readouterr().out
    assert "\n\nA-1: Fail" in text
    assert text.endswith("\n\nNo output: 2 cases\n  A-2, A-4\n")
    assert main([*explain, "--test", "A-2"]) == 0  # whoever names it wants to see it
    assert capsys.readouterr().out.startswith("1 case explained\n\nA-2: Fail (no output)")


def test_a_report_shows_no_text_in_another_order_than_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    tricks = "\u202e\u2028\u2029\u2066\u061c\u200f\x85\x7f"
    test_id, term = "A-1\u202ex", f'sa\u00e9 "\\ {tricks}'
    write_batch(Path("cases"), "asthma_1", a_case(test_id, [term]))
    run({"test_id": test_id, "engine_output": {"summary": term}})
    score()
    printed = capsys.readouterr().out
    (result,) = json.loads(printed)["results"]
    assert (result["test_id"], result["details"]["CR"]["found"]) == (test_id, [term])
    assert "\u00e9" in printed, "letters stay as they are"
    assert not set(tricks) & set(printed)
    assert r'"A-1\u202ex"' in printed
