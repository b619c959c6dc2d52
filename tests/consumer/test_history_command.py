"""`safe history`: runs in order, cases and terms over them, the noise of repeats, against a count of its own."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from consumer.cli.main import main
from tests.support.case_files import a_case, answer, write_batch, write_report
from tests.support.real_cases import REAL, real_cases_only

LABEL_OF = {True: "Pass", False: "Fail"}


def outcome(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["history", *arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def report(path: Path, results: dict[str, str | None], at: str = "2026-01-01T00:00:00Z", **more: Any) -> Path:
    """A report over some cases: the label of each, None for one without an output, a star for a mismatch."""
    labels = {test_id: (label or "Fail").rstrip("*") for test_id, label in results.items()}
    counts = {name: sum(label.lower() == name for label in labels.values()) for name in ("pass", "review", "fail")}
    rows = [
        {
            "test_id": test_id,
            "label": label,
            "scores": {"CR": 1.0, "AH": 1.0, "AC": 1.0, "composite": 1.0},
            "details": {
                "CR": {
                    "found": ["wheeze"] if label == "Pass" else [],
                    "missing": [] if label == "Pass" else ["wheeze"],
                },
                "AH": {"violations": []},
                "AC": {"found": [], "missing": []},
            },
            "input_matches": False if (results[test_id] or "").endswith("*") else None,
            "batch_id": "b1",
            **more,
        }
        for test_id, label in labels.items()
    ]
    total = len(rows)
    document = {
        "report_type": "SAFE_v0",
        "generated_at": at,
        "concern_id": "K07",
        "summary": {"total_cases": total, **counts, "overall_pass_rate": counts["pass"] / total},
        "missing_outputs": sum(label is None for label in results.values()),
        "missing_test_ids": [test_id for test_id, label in results.items() if label is None],
        "scorer": {"version": "1", "fingerprint": "sha256:1", "rule": "substring/1"},
        "results": rows,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_runs_are_in_order_of_their_times_or_as_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = report(tmp_path / "a.json", {"T1": "Pass"}, "2026-01-02T00:00:00+02:00")
    early = report(tmp_path / "b.json", {"T1": "Fail"}, "2026-01-01T21:00:00Z")
    same = report(tmp_path / "c.json", {"T1": "Review"}, "2026-01-01T22:00:00.000Z")
    document = outcome(capsys, str(late), str(early), str(same))
    assert [run["name"] for run in document["runs"]] == ["b.json", "a.json", "c.json"]
    assert document["cases"][0]["labels"] == ["Fail", "Pass", "Review"]
    given = outcome(capsys, str(late), str(early), str(same), "--as-given")
    assert [run["name"] for run in given["runs"]] == ["a.json", "b.json", "c.json"]


def test_a_time_that_its_zone_puts_out_of_the_calendar_is_shown_as_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, at in (("a.json", "0001-01-01T00:00:00+01:00"), ("b.json", "9999-12-31T23:59:59-01:00")):
        report(tmp_path / name, {"T1": "Pass"}, at)
    assert main(["history", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "a.json  0001-01-01T00:00Z " in printed
    assert "b.json  9999-12-31T23:59Z " in printed


def test_what_a_run_does_not_answer_is_null(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(tmp_path / "1.json", {"T1": "Pass", "T2": None}, "2026-01-01T00:00:00Z")
    report(tmp_path / "2.json", {"T1": "Fail*", "T3": "Pass"}, "2026-01-02T00:00:00Z")
    (tmp_path / "notes.json").write_text("{}", encoding="utf-8")  # no report, and passed over in a folder
    document = outcome(capsys, str(tmp_path))
    assert [(case["test_id"], case["labels"], case["mismatched"]) for case in document["cases"]] == [
        ("T1", ["Pass", "Fail"], [False, True]),
        ("T2", [None, None], [False, False]),
        ("T3", [None, "Pass"], [False, False]),
    ]
    assert [term["found"] for term in document["terms"]] == [[True, False], [None, None], [None, True]]
    first = document["runs"][0]
    assert (first["answered"], first["mismatches"], first["pass"], first["fail"]) == (1, 0, 1, 1)
    assert document["runs"][1]["mismatches"] == 1
    assert first["pass_rate"] == 0.5
    low, high = first["interval"]
    assert low == pytest.approx(0.0945, abs=1e-4)
    assert high == pytest.approx(0.9055, abs=1e-4)


def test_fifty_made_runs_are_counted_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dice = random.Random(20260101)
    ids = [f"T{number}" for number in range(30)]
    table = [
        {test_id: dice.choice(["Pass", "Pass", "Review", "Fail", "Fail*", None]) for test_id in ids} for _ in range(50)
    ]
    for number, results in enumerate(table):
        report(tmp_path / f"run_{number:02}.json", results, f"2026-01-01T00:{number:02}:00Z")
    document = outcome(capsys, str(tmp_path), "--group", "ten=run_0*", "--group", "all=run_*")
    for case in document["cases"]:
        expected = [results[case["test_id"]] for results in table]
        assert case["labels"] == [label and label.rstrip("*") for label in expected]
        assert case["mismatched"] == [(label or "").endswith("*") for label in expected]
    for run, results in zip(document["runs"], table, strict=True):
        assert run["answered"] == sum(label is not None for label in results.values())
        assert run["mismatches"] == sum(label == "Fail*" for label in results.values())
        assert run["pass"] == sum(label == "Pass" for label in results.values())
    ten, everything = document["groups"]
    shared = [
        [results[test_id] for results in table[:10]]
        for test_id in ids
        if all(results[test_id] not in {None, "Fail*"} for results in table[:10])
    ]
    assert (ten["k"], ten["cases"]) == (10, len(shared))
    assert everything["k"] == 50


def test_repeats_of_one_prompt_give_their_noise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(tmp_path / "p_1.json", {"T1": "Pass", "T2": "Pass", "T3": "Fail", "T4": "Pass", "T5": "Fail"})
    report(tmp_path / "p_2.json", {"T1": "Pass", "T2": "Fail", "T3": "Fail", "T4": "Pass*", "T5": None})
    report(tmp_path / "q_1.json", {"T1": "Fail"})
    [group] = outcome(capsys, str(tmp_path), "--group", "prompt p=p_*")["groups"]
    assert group == {
        "name": "prompt p",
        "runs": ["p_1.json", "p_2.json"],
        "k": 2,
        "cases": 3,
        "pass_hat_k": 1 / 3,
        "pass_at_k": 2 / 3,
        "flips": 1 / 3,
        "flipping": ["T2"],
        "pass_rate": {"min": 0.4, "mean": 0.5, "max": 0.6},
    }


def test_the_console_fits_ten_runs_into_80_columns_and_says_what_was_lost_when(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    label = ["Pass", "Pass", "Fail", "Pass*", "Fail", "Pass", "Review", "Pass", None, "Fail"]
    for number, each in enumerate(label):
        report(tmp_path / f"run_{number}.json", {"T1": each, "T" * 40: "Fail"}, f"2026-01-{number + 1:02}T00:00:00Z")
    assert main(["history", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    tables = lines[: lines.index("Never passed (1)")]
    assert [line for line in tables if line.startswith("  ") and len(line) > 80] == []
    row = next(line for line in lines if line.startswith("  T1 "))
    assert row.split()[1:] == ["P1", "P1", "F0", "P1*", "F0", "P1", "R0", "P1", ".", "F0"]
    assert lines[lines.index("Stopped passing, and in which run (1)") + 1] == "  T1: run 3, run 7, run 10"
    assert "  T1: 5 changes" in lines
    assert f"  {'T' * 40}" in lines[lines.index("Never passed (1)") :]


@pytest.mark.parametrize(
    ("fingerprint", "missing", "said"),
    [
        ("sha256:1", ["wheeze"], "T1: run 2"),
        ("sha256:1", ["wheeze", "cough"], "T1: run 2 (required terms changed)"),
        ("sha256:2", ["wheeze"], "T1: run 2 (other rules)"),
        ("sha256:2", ["cough"], "T1: run 2 (required terms changed, other rules)"),
    ],
)
def test_what_else_changed_when_a_case_stopped_passing_is_said(
    fingerprint: str, missing: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(tmp_path / "1.json", {"T1": "Pass"})
    second = report(tmp_path / "2.json", {"T1": "Fail"})
    document = json.loads(second.read_text(encoding="utf-8"))
    document["scorer"]["fingerprint"] = fingerprint
    document["results"][0]["details"]["CR"]["missing"] = missing
    second.write_text(json.dumps(document), encoding="utf-8")
    assert main(["history", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index("Stopped passing, and in which run (1)") + 1] == f"  {said}"
    assert ("Scored by other rules than the run before (1)" in lines) == (fingerprint != "sha256:1")


def test_the_rules_that_changed_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, bound in enumerate((0.8, 0.8, 0.5), 1):
        path = report(tmp_path / f"{number}.json", {"T1": "Pass"})
        document = json.loads(path.read_text(encoding="utf-8"))
        document["scorer"]["fingerprint"] = f"sha256:{bound}"
        document["configuration"] = {"thresholds": {"CR": {"pass": bound}}}
        path.write_text(json.dumps(document), encoding="utf-8")
    assert main(["history", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("Scored by other rules than the run before (1)")
    assert lines[at + 1] == "  run 3: thresholds.CR.pass 0.8 -> 0.5"


def test_the_same_test_id_of_another_batch_is_another_case_unless_it_asks_for_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(tmp_path / "1.json", {"T1": "Pass"})
    report(tmp_path / "2.json", {"T1": "Fail"}, batch_id="golden")
    other = json.loads((tmp_path / "1.json").read_text(encoding="utf-8"))
    other["results"][0] |= {
        "batch_id": "b2",
        "details": {**other["results"][0]["details"], "AC": {"found": ["x"], "missing": []}},
    }
    (tmp_path / "3.json").write_text(json.dumps(other), encoding="utf-8")
    cases = outcome(capsys, str(tmp_path))["cases"]
    assert [(case["batch_id"], case["labels"]) for case in cases] == [
        ("b1", ["Pass", "Fail", None]),
        ("b2", [None, None, "Pass"]),
    ]


def test_every_format_shows_the_matrix_and_loads_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reports = tmp_path / "reports"
    report(reports / "1.json", {"T1": "Pass", "<b>": "Fail"})
    report(reports / "2.json", {"T1": "Fail", "<b>": "Fail*"})
    pages = [tmp_path / f"page{suffix}" for suffix in (".txt", ".md", ".html", ".json")]
    for _ in range(2):  # its own pages may be replaced
        assert main(["history", str(reports), *(part for page in pages for part in ("-o", str(page)))]) == 0
    assert "SAFE v0 history: 2 runs, 2 cases" in capsys.readouterr().err
    html = pages[2].read_text(encoding="utf-8")
    assert "<b>" not in html
    assert "http" not in html.replace("http-equiv", "")
    assert html.count("<circle") == 2
    assert "| `T1` | P1 | F0 |" in pages[1].read_text(encoding="utf-8")
    assert "| `<b>` | F0 | F0* |" in pages[1].read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["empty"], "holds no reports of safe score"),
        (["1.json", "--group", "nonsense"], "is not NAME=GLOB"),
        (["1.json", "--group", "a=b*"], "no report has such a name; there are 1.json"),
        (["missing.json"], "missing.json: cannot be read"),
        (["broken.json"], "broken.json: generated_at"),
    ],
)
def test_what_cannot_be_used_is_named(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    report(tmp_path / "1.json", {"T1": "Pass"})
    report(tmp_path / "broken.json", {"T1": "Pass"}, "yesterday")
    assert main(["history", *arguments]) == 3
    assert message in capsys.readouterr().err


def test_reports_of_safe_score_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_batch(tmp_path / "cases", "b1", a_case("T1"), a_case("T2"))
    outputs = write_report(tmp_path / "run.json", answer("T1"))
    made = tmp_path / "report.json"
    main(["score", "-c", "K07", "-b", "*", "-i", str(outputs), "-t", str(tmp_path / "cases"), "-o", str(made)])
    capsys.readouterr()
    document = outcome(capsys, str(made))
    assert [(case["test_id"], case["labels"]) for case in document["cases"]] == [("T1", ["Pass"]), ("T2", [None])]


def test_a_report_that_is_named_twice_is_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = report(tmp_path / "runs" / "a.json", {"T1": "Pass"})
    report(tmp_path / "runs" / "b.json", {"T1": "Fail"})
    monkeypatch.chdir(run.parent)
    document = outcome(capsys, "b.json", str(run.parent), "./a.json", "--as-given")
    assert [each["name"] for each in document["runs"]] == ["b.json", "a.json"]


def test_a_report_of_a_folder_is_never_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = report(tmp_path / "runs" / "run.json", {"T1": "Pass"})
    before = run.read_bytes()
    for force in ([], ["--force"]):
        assert main(["history", str(run.parent), "-o", str(run), *force]) == 3
        assert "is an input" in capsys.readouterr().err
    assert run.read_bytes() == before


def test_what_a_folder_has_besides_reports_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(tmp_path / "run.json", {"T1": "Pass"})
    (tmp_path / "broken.json").write_text('{"report_ty', encoding="utf-8")
    assert main(["history", str(tmp_path)]) == 0
    assert (
        f"1 file skipped, because it is not a report of safe score: {tmp_path}/broken.json" in capsys.readouterr().err
    )


def test_tables_on_the_console_keep_to_80_columns_and_cut_names_in_the_middle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = {f"{'A-long-name-of-a-test-case-of-a-concern-' * 2}{number}": "Pass" for number in range(1, 4)}
    wide = {"一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十": "Fail"}
    for number in range(30):
        label = "Pass" if number % 2 else "Fail"
        report(
            tmp_path / f"{'report-of-the-nightly-run-of-a-prompt-' * 3}{number:02}.json",
            {**dict.fromkeys(cases, label), **wide},
            at=f"2026-01-{number + 1:02}T05:00:00+02:00",
        )
    assert main(["history", str(tmp_path), "--group", f"{'many words ' * 9}=*"]) == 0
    lines = capsys.readouterr().out.splitlines()
    tables = lines[: lines.index("Never passed (1)")]
    assert max(cell_len(line) for line in tables if line.startswith("  ")) <= 80
    assert lines[3].split() == ["1", "report-of-the...ompt-00.json", "2026-01-01T03:00Z", "4", "of", "4", "0", "0"]
    rows = [line.split() for line in tables if line.startswith("  A-long-name")]
    assert {row[0][-4:] for row in rows} == {"rn-1", "rn-2", "rn-3"}
    assert len(rows) == 3 * len([line for line in tables if line.startswith("  Case  ")])
    assert sum(len(row) - 1 for row in rows) == 3 * 30, "a row goes on below where there is no room"


def test_of_many_items_the_console_lists_the_first_and_other_formats_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(tmp_path / "run.json", {f"T{number}": "Fail" for number in range(25)})
    for format_, count, said in (("console", 20, True), ("markdown", 25, False)):
        assert main(["history", str(tmp_path), "--format", format_]) == 0
        never = capsys.readouterr().out.partition("Never passed (25)")[2].partition("Missed required terms")[0]
        assert never.count("T") == count
        assert ("  and 5 more, which the other formats list\n" in never) == said


@pytest.mark.real_cases
@real_cases_only[1]
def test_the_real_runs_are_as_their_reports_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for outputs in sorted(REAL.glob("outputs_*.json")):
        made = str(tmp_path / outputs.name)
        common = ["-t", str(REAL / "testcases"), "--on-duplicate", "first", "-o", made]
        main(["score", "-c", "I25", "-b", "*", "-i", str(outputs), *common])
    capsys.readouterr()
    document = outcome(capsys, str(tmp_path), "--as-given")
    reports = [json.loads((tmp_path / run["name"]).read_text(encoding="utf-8")) for run in document["runs"]]
    for case in document["cases"]:
        for label, each in zip(case["labels"], reports, strict=True):
            result = next(row for row in each["results"] if row["test_id"] == case["test_id"])
            assert label == (None if case["test_id"] in each["missing_test_ids"] else result["label"])
    for term in document["terms"]:
        for found, each in zip(term["found"], reports, strict=True):
            if found is not None:
                result = next(row for row in each["results"] if row["test_id"] == term["test_id"])
                assert (term["term"] in result["details"][term["criterion"]]["found"]) is found
