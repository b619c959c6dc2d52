"""Accepted wordings on every path: from a decision into the batch file, from there to reports, triage and a worker."""

import json
from pathlib import Path
from typing import Any

import pytest

from consumer.case_sources.cases import as_one
from consumer.cli.main import main
from consumer.errors import ConfigurationError
from consumer.files.outputs import open_all
from consumer.files.publish_cases import plan_cases
from consumer.offline.review import Review
from consumer.offline.triage import TriageRequest
from safe_core import DEFAULT_POLICY, TestCase, parse_batch
from tests.support.case_files import a_case, answer, write_batch, write_report

NARRATIVE = "A girl came with a broken arm. The left hand was warm, and she could move it."
TERM, WORDS = "the left hand was warm", "Her left hand is warm"
OUTPUT = {"signals": ["a broken arm"], "summary": f"{WORDS}."}


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    case = a_case("T1", ["a broken arm"], [], [TERM], patient_payload=NARRATIVE)
    write_batch(Path("cases"), "b1", case)
    write_batch(Path("cases"), "golden", case)
    write_report(Path("run.json"), answer("T1", OUTPUT))


def reviewed() -> Review:
    return Review(DEFAULT_POLICY, TriageRequest(Path("cases"), "b1"), open_all([Path("run.json")]))


def accept() -> list[str]:
    """Accept the output's words as a paraphrase, and apply that."""
    review = reviewed()
    [number] = [number for number, item in enumerate(review.cases[0].items) if item.term == TERM]
    at = "2026-01-02T03:04:05.678Z"
    review.decide(0, number, "paraphrase", by="ann", at=at, seen="")
    assert review.to_apply == 1
    return review.apply(at)


def report(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    main(["score", "-c", "K07", "-b", "b1", "-i", "run.json", "-t", "cases", "-f", "json", "--explain"])
    read: dict[str, Any] = json.loads(capsys.readouterr().out)
    return read


def test_a_paraphrase_is_written_beside_the_expectations_of_each_holder() -> None:
    before = json.loads(Path("cases/golden.json").read_text())
    assert accept() == ["b1.json", "golden.json"]
    for name in ("b1", "golden"):
        [case] = json.loads(Path(f"cases/{name}.json").read_text())["test_cases"]
        assert case.pop("accepted_wordings") == {TERM: [WORDS]}
        assert case == before["test_cases"][0]


def test_then_the_miss_nags_no_more_and_no_score_has_changed(capsys: pytest.CaptureFixture[str]) -> None:
    before = report(capsys)
    accept()
    after = report(capsys)
    assert after["mean_scores"] == before["mean_scores"]
    [miss] = after["results"][0]["misses"]
    assert (miss["verdict"], miss["remedy"], miss["output_says"]) == ("accepted", "none", "said")
    assert after["miss_verdicts"]["accepted"] == 1
    assert "accepted" not in before["miss_verdicts"]
    review = reviewed()
    assert (review.cases[0].items, review.to_apply) == ([], 0)
    main(["triage", "-i", "run.json", "-t", "cases", "-b", "b1", "--format", "json"])
    assert json.loads(capsys.readouterr().out)["proposals"] == []
    main(["explain", "-i", "run.json", "-t", "cases", "-b", "b1", "--all", "--verbose"])
    assert "The output has a wording that the test case accepts for this term" in capsys.readouterr().out.replace(
        "\n" + " " * 15, " "
    )
    main(["explain", "-i", "run.json", "-t", "cases", "-b", "b1", "--all", "--format", "markdown"])
    assert "- **accepted** AC" in capsys.readouterr().out
    main(["score", "-c", "K07", "-b", "b1", "-i", "run.json", "-t", "cases", "-o", "report.html", "--explain"])
    assert "accepted: the output has a wording that the test case accepts" in Path("report.html").read_text()


def test_what_was_accepted_is_published_with_the_case() -> None:
    accept()
    [planned] = plan_cases(Path("cases"), "b1").cases
    assert json.loads(planned.value)["accepted_wordings"] == {TERM: [WORDS]}


def test_holders_that_expect_the_same_are_one_case_whatever_each_accepts() -> None:
    cases = [
        parse_batch({"test_cases": [{"test_id": "T", "expectations": {}, "accepted_wordings": each}]}).cases[0]
        for each in ({"a": ["b"]}, {"a": ["c"]}, None)
    ]
    one = as_one([case for case in cases if isinstance(case, TestCase)])
    assert one.accepted_wordings == (("a", ("b", "c")),)


def test_triage_keeps_them_in_what_it_writes() -> None:
    accept()
    main(["triage", "-i", "run.json", "-t", "cases", "-b", "b1", "--write-cases", "new"])
    assert Path("new/b1.json").read_bytes() == Path("cases/b1.json").read_bytes()


def test_what_is_there_keeps_every_byte_and_what_nothing_can_be_added_to_is_named() -> None:
    path, other = Path("cases/golden.json"), Path("cases/b1.json")
    whole = path.read_text().replace('"expectations":', '"accepted_wordings": %s, "expectations":', 1)
    path.write_text(whole % f'{{"other":  ["x", 7 ],\n "{TERM}":["y"]}}')
    accept()
    assert path.read_text() == whole % f'{{"other":  ["x", 7 ],\n "{TERM}":["y", "{WORDS}"]}}'
    path.write_text(whole % "[]")
    Path("cases/safe.decisions.json").unlink()
    other.write_text(other.read_text().replace(WORDS, "z"))
    before = other.read_bytes()
    with pytest.raises(
        ConfigurationError, match=r"golden\.json: accepted_wordings of the test case T1 is not an object"
    ):
        accept()
    assert other.read_bytes() == before
