"""Values that a narrative does not have, in every report and on every page."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main

NARRATIVE = "A 74-year-old man fell. His left hip hurts. He takes ramipril 5 mg daily."
MADE_UP = "He is 74 years old, his blood pressure is 138/86, and he takes ramipril 10 mg daily."
VALUES = [
    {
        "kind": "nowhere", "text": "138/86", "field": "summary", "element": None,
        "start": 42, "end": 48, "nearest": None,
    },
    {
        "kind": "nowhere", "text": "10 mg", "field": "summary", "element": None,
        "start": 72, "end": 77, "nearest": "5 mg",
    },
]  # fmt: skip


def case(test_id: str, **more: Any) -> dict[str, Any]:
    signals = {"signal_generation": {"must_find_signals": ["fell"]}}
    return {"test_id": test_id, "concern_id": "K", "patient_payload": NARRATIVE, "expectations": signals, **more}


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case with values that were made up; the same without a narrative, of another patient, and a failed one."""
    monkeypatch.chdir(tmp_path)
    cases = [case("A"), case("B", patient_payload=None), case("C"), case("D"), case("E")]
    Path("cases").mkdir()
    Path("cases/b.json").write_text(json.dumps({"test_cases": cases}))
    output = {"signals": ["fell"], "summary": MADE_UP, "followup_questions": ["Since 9 days?"]}
    outputs = {
        "A": output,
        "B": output,
        "C": {**output, "raw_input": "Another story."},
        "D": {**output, "error_message": "429"},
        "E": {**output, "summary": "He is seventy-four and takes 5000 mcg of ramipril."},
    }
    results = [{"test_id": name, "engine_output": each} for name, each in outputs.items()]
    Path("run.json").write_text(json.dumps({"raw_results": results}))


def score(*options: str) -> int:
    return main(["score", "-c", "K", "-b", "*", "-i", "run.json", "-t", "cases", *options])


def explain(*options: str) -> int:
    return main(["explain", "-i", "run.json", "-t", "cases", "--all", *options])


def test_a_report_lists_them_where_the_narrative_is_known_and_no_score_moves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    score("-f", "json")
    report = json.loads(capsys.readouterr().out)
    listed = {result["test_id"]: result["unsupported"] for result in report["results"]}
    assert listed == {"A": VALUES, "B": [], "C": [], "D": [], "E": []}
    assert report["unsupported"] == {"nowhere": 2, "of_something_else": 0}
    assert report["results"][0]["scores"]["composite"] == 1.0


def test_every_page_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    for suffix in ("txt", "md", "html", "junit.xml"):
        score("-o", f"report.{suffix}")
        score("-o", f"explained.{suffix}", "--explain", "--include-text")
        for page in (f"report.{suffix}", f"explained.{suffix}"):
            assert "138/86" in Path(page).read_text(), page
    assert "Values that the narrative does not have" in Path("report.html").read_text()
    assert '<mark class="unsupported">138/86</mark>' in Path("explained.html").read_text()
    said = "Unsupported values: 2 values in 1 case that the narrative does not have: A (138/86, 10 mg)."
    assert said in " ".join(Path("report.txt").read_text().split())
    capsys.readouterr()
    score("-f", "csv")
    rows = [*csv.DictReader(io.StringIO(capsys.readouterr().out))]
    assert [row["unsupported"] for row in rows] == ["138/86; 10 mg", "", "", "", ""]


def test_an_explanation_says_what_the_narrative_has_instead(capsys: pytest.CaptureFixture[str]) -> None:
    explain()
    printed = " ".join(capsys.readouterr().out.split())
    assert "value 10 mg not in the narrative, summary, characters 73 to 77; the narrative has 5 mg" in printed
    explain("--verbose")
    assert "Values that the narrative does not have" in capsys.readouterr().out
    explain("-f", "markdown")
    assert "- **value**" in capsys.readouterr().out
    explain("-f", "json")
    assert json.loads(capsys.readouterr().out)["results"][0]["unsupported"] == VALUES


def test_the_gate_counts_those_that_are_nowhere() -> None:
    assert score("--max-unsupported", "2") == 0
    assert score("--max-unsupported", "1") == 1


def test_verify_computes_them_again(capsys: pytest.CaptureFixture[str]) -> None:
    score("-o", "report.json")
    verify = ["verify", "report.json", "-i", "run.json", "-t", "cases"]
    assert main(verify) == 0
    report = json.loads(Path("report.json").read_text())
    report["unsupported"]["nowhere"] = 0
    Path("report.json").write_text(json.dumps(report))
    assert main(verify) == 1
    del report["unsupported"], report["near_violations"]
    for result in report["results"]:
        del result["unsupported"], result["near_violations"]
    Path("report.json").write_text(json.dumps(report))
    capsys.readouterr()
    assert main(verify) == 0, "an earlier build wrote it"
    assert "before SAFE listed near_violations, unsupported" in capsys.readouterr().err
