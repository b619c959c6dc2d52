"""Values that a narrative does not have, in every report and on every page."""

import json
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main
from tests.support.desk import explain, lay_out, score, table, verify

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
    output = {"signals": ["fell"], "summary": MADE_UP, "followup_questions": ["Since 9 days?"]}
    outputs = {
        "A": output,
        "B": output,
        "C": {**output, "raw_input": "Another story."},
        "D": {**output, "error_message": "429"},
        "E": {**output, "summary": "He is seventy-four and takes 5000 mcg of ramipril."},
    }
    lay_out(cases, outputs)


def test_a_report_lists_them_where_the_narrative_is_known_and_no_score_moves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    score("-f", "json")
    report = json.loads(capsys.readouterr().out)
    listed = {result["test_id"]: result["unsupported"] for result in report["results"]}
    assert listed == {"A": VALUES, "B": None, "C": None, "D": [], "E": []}
    assert report["unsupported"] == {"nowhere": 2, "of_something_else": 0, "checked": 2, "unchecked": 2}
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
    rows = table(capsys.readouterr().out)
    assert [row["unsupported"] for row in rows] == ["138/86; 10 mg", "", "", "", ""]


def test_an_explanation_says_what_the_narrative_has_instead(capsys: pytest.CaptureFixture[str]) -> None:
    explain()
    printed = " ".join(capsys.readouterr().out.split())
    assert 'value "10 mg": not in the narrative, summary, characters 73 to 77; the narrative has 5 mg' in printed
    explain("--verbose")
    assert '  value  "10 mg": not in the narrative, summary, characters 73 to 77' in capsys.readouterr().out
    explain("-f", "markdown")
    assert "- **value**" in capsys.readouterr().out
    explain("-f", "json")
    results = json.loads(capsys.readouterr().out)["results"]
    assert [result["unsupported"] for result in results] == [VALUES, None, None, [], []]


def test_tables_of_terms_have_a_row_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    score("-o", "report.terms.csv")
    capsys.readouterr()
    explain("-f", "csv")
    told = Path("report.terms.csv").read_text(), capsys.readouterr().out
    for text in told:
        rows = [row for row in table(text) if row["outcome"] == "unsupported"]
        assert [(row["test_id"], row["criterion"], row["term"], row["kind"], row["nearest"]) for row in rows] == [
            ("A", "", "138/86", "nowhere", ""),
            ("A", "", "10 mg", "nowhere", "5 mg"),
        ]
        assert [(row["field"], row["start"], row["end"]) for row in rows] == [
            ("summary", "42", "48"),
            ("summary", "72", "77"),
        ]


def test_the_gate_counts_those_that_are_nowhere_and_says_what_could_not_be_checked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert score("--max-unsupported", "2") == 0
    said = "2 of 4 outputs could not be checked: no narrative of the case is known that they were made from"
    expected = f"2 values that the narrative does not have, --max-unsupported allows 2 ({said})"
    assert expected in capsys.readouterr().out
    assert score("--max-unsupported", "1") == 1


@pytest.mark.parametrize("test_id", ["B", "C", "D"])
def test_a_gate_that_could_check_no_output_is_not_passed(test_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    kept = [each for each in json.loads(Path("run.json").read_text())["raw_results"] if each["test_id"] == test_id]
    lay_out([case("B", patient_payload=None), case("C"), case("D")], {test_id: kept[0]["engine_output"]})
    assert score("--max-unsupported", "9", "-o", "report.json") == 1
    assert main(["gate", "report.json", "--max-unsupported", "9"]) == 1
    said = "gate NOT passed: --max-unsupported 9: no output could be checked, because no narrative is known"
    assert capsys.readouterr().out.count(said) == 2


def test_verify_computes_them_again(capsys: pytest.CaptureFixture[str]) -> None:
    score("-o", "report.json")
    assert verify() == 0
    report = json.loads(Path("report.json").read_text())
    report["unsupported"]["nowhere"] = 0
    Path("report.json").write_text(json.dumps(report))
    assert verify() == 1
    del report["unsupported"], report["near_violations"]
    for result in report["results"]:
        del result["unsupported"], result["near_violations"]
    Path("report.json").write_text(json.dumps(report))
    capsys.readouterr()
    assert verify() == 0, "an earlier build wrote it"
    assert "before SAFE listed near_violations, unsupported" in capsys.readouterr().err
