"""Forbidden terms in another form, in every report and on every page."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.desk import explain, lay_out, score, table, verify

QUESTIONS = ["Who was at\u00a0fault?", "Any pyrexia?"]
NEAR = [
    {
        "term": "at fault", "kind": "spelling",
        "field": "followup_questions", "element": 0, "start": 8, "end": 16,
    },
    {
        "term": "fever", "kind": "synonym",
        "field": "followup_questions", "element": 1, "start": 4, "end": 11,
    },
]  # fmt: skip


def case(test_id: str) -> dict[str, Any]:
    forbidden = {"followup_questions": {"forbidden_terms": ["at fault", "fever", "breach"]}}
    return {"test_id": test_id, "concern_id": "K", "patient_payload": "He was febrile.", "expectations": forbidden}


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that evades, one that uses a term, one whose generation failed."""
    monkeypatch.chdir(tmp_path)
    outputs = {
        "A": {"followup_questions": QUESTIONS},
        "B": {"followup_questions": ["A breach?"]},
        "C": {"followup_questions": QUESTIONS, "error_message": "429"},
    }
    lay_out([case("A"), case("B"), case("C")], outputs)


def test_a_report_lists_them_and_counts_them_and_no_score_moves(capsys: pytest.CaptureFixture[str]) -> None:
    score("-f", "json")
    report = json.loads(capsys.readouterr().out)
    assert {result["test_id"]: result["near_violations"] for result in report["results"]} == {
        "A": NEAR,
        "B": [],
        "C": [],
    }
    assert report["near_violations"] == 2
    assert report["results"][0]["scores"]["AH"] == 1.0


def test_every_page_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    for suffix in ("txt", "md", "html", "junit.xml"):
        score("-o", f"report.{suffix}")
        score("-o", f"explained.{suffix}", "--explain")
        for page in (f"report.{suffix}", f"explained.{suffix}"):
            assert "at fault" in Path(page).read_text(), page
    capsys.readouterr()
    for page in ("report.html", "explained.html"):
        assert "Forbidden terms in another form, which AH does not find" in Path(page).read_text()
    said = "Near violations: 2 forbidden terms that a question has in another form, which AH does not find: "
    assert said in Path("report.md").read_text()


def test_a_table_has_them(capsys: pytest.CaptureFixture[str]) -> None:
    score("-f", "csv")
    rows = table(capsys.readouterr().out)
    assert [row["near_violations"] for row in rows] == ["at fault; fever", "", ""]
    score("-o", "report.terms.csv")
    rows = table(Path("report.terms.csv").read_text())
    told = [(row["term"], row["outcome"], row["kind"], row["element"]) for row in rows if row["test_id"] == "A"]
    told = [row for row in told if row[1] != "avoided"]
    assert told == [("at fault", "near", "spelling", "0"), ("fever", "near", "synonym", "1")]


def test_an_explanation_quotes_them_on_the_console_alone(capsys: pytest.CaptureFixture[str]) -> None:
    explain()
    printed = capsys.readouterr().out
    assert "  near  AH fever\n" in printed
    assert "Any [pyrexia]?" in printed
    explain("--verbose")
    assert "  near  AH fever\n    where  question 2, characters " in capsys.readouterr().out
    explain("-f", "markdown")
    assert "- **near** AH" in capsys.readouterr().out
    explain("-f", "json")
    document = json.loads(capsys.readouterr().out)
    assert document["near_violations"] == 2
    assert document["results"][0]["near_violations"] == NEAR
    explain("-f", "json", "--include-text")
    document = json.loads(capsys.readouterr().out)
    assert [near["text"] for near in document["results"][0]["near_violations"]] == ["at\u00a0fault", "pyrexia"]
    explain("-f", "csv")
    rows = table(capsys.readouterr().out)
    assert [row["outcome"] for row in rows] == ["near", "near", "used"]
    explain("-f", "csv", "--include-text")
    assert [row["text"] for row in table(capsys.readouterr().out)] == ["at\u00a0fault", "pyrexia", "breach"]


def test_the_gate_counts_them_and_says_where_there_was_nothing_to_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert score("--max-near-violations", "2") == 0
    said = "1 of 3 cases had nothing to check: no forbidden term is listed, or the output has no question"
    assert f"2 near violations, --max-near-violations allows 2 ({said})" in capsys.readouterr().out
    assert score("--max-near-violations", "1") == 1


NOTHING_TO_ASK: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"expectations": {}}, {"followup_questions": ["Whose fault?"]}),
    ({}, {"summary": "He is febrile.", "followup_questions": []}),
    ({}, {"followup_questions": QUESTIONS, "error_message": "429"}),
]


@pytest.mark.parametrize(("changes", "output"), NOTHING_TO_ASK)
def test_a_gate_that_had_nothing_to_check_is_not_passed(
    changes: dict[str, Any], output: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out([case("A") | changes], {"A": output})
    assert score("--max-near-violations", "9") == 1
    assert "because none has both a forbidden term and a question" in capsys.readouterr().out


def test_verify_computes_them_again(capsys: pytest.CaptureFixture[str]) -> None:
    score("-o", "report.json")
    assert verify() == 0
    report = json.loads(Path("report.json").read_text())
    Path("report.json").write_text(json.dumps(report | {"near_violations": 3}))
    assert verify() == 1
    assert "near_violations" in capsys.readouterr().out
