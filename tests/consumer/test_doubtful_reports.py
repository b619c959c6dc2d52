"""Found terms that the text may not mean, in every report; and explanations in bulk."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from consumer import __version__
from consumer.cli.main import main
from consumer.offline.explanations import ANSWER_FIELDS
from consumer.offline.pages import quotes
from safe_core import Expectations, Output
from safe_core.diagnosis import Diagnosis, diagnose

NARRATIVE = "She had signs of sepsis at noon. She waited 12 hours for a bed. The pain was severe."
DENIED = {"signals": ["no signs of sepsis", "waited 12 hours"], "summary": "Severe pain.", "followup_questions": []}
MISSED = {"signals": ["signs of sepsis"], "summary": "She waited 2 hours for a bed.", "followup_questions": ["severe?"]}
TOLD = "She waited 12 hours"

ANSWERS = (
    "output_says", "narrative_says", "verbatim", "narrative_has_it_too", "share", "remedy", "row", "evidence",
)  # fmt: skip


def case(test_id: str, signals: list[str], phrases: list[str], **more: Any) -> dict[str, Any]:
    return {
        "test_id": test_id,
        "concern_id": "K",
        "patient_payload": NARRATIVE,
        "expectations": {
            "signal_generation": {"must_find_signals": signals},
            "event_summary": {"must_contain_phrases": phrases},
        },
        **more,
    }


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four cases: a denied hit that passes; two misses; no output; another patient's."""
    monkeypatch.chdir(tmp_path)
    cases = [
        case("A", ["signs of sepsis", "2 hours", "signs of sepsis"], []),
        case("B", ["signs of sepsis"], ["severe", "She waited 12 hours"]),
        case("C", ["signs of sepsis"], []),
        case("D", ["signs of sepsis"], []),
    ]
    entries = [("A", DENIED), ("B", MISSED), ("D", {"summary": "", "raw_input": "Another story."})]
    Path("cases").mkdir()
    Path("cases/b.json").write_text(json.dumps({"test_cases": cases}))
    results = [{"test_id": name, "engine_output": output} for name, output in entries]
    Path("run.json").write_text(json.dumps({"raw_results": results}))


def score(*options: str) -> int:
    return main(["score", "-c", "K", "-b", "*", "-i", "run.json", "-t", "cases", *options])


def explain(*options: str) -> int:
    return main(["explain", "-i", "run.json", "-t", "cases", *options])


# --- doubtful hits ----------------------------------------------------------------------------------------------------


def test_a_report_lists_doubtful_hits_and_counts_them(capsys: pytest.CaptureFixture[str]) -> None:
    score("-f", "json")
    report = json.loads(capsys.readouterr().out)
    by_case = {result["test_id"]: result["doubtful"] for result in report["results"]}
    denied = {
        "criterion": "CR", "term": "signs of sepsis", "kind": "negated",
        "field": "signals", "element": 0, "start": 3, "end": 18,
    }  # fmt: skip
    inside = {
        "criterion": "CR", "term": "2 hours", "kind": "inside_word",
        "field": "signals", "element": 1, "start": 8, "end": 15,
    }  # fmt: skip
    assert by_case == {"A": [denied, inside, denied], "B": [], "C": [], "D": []}
    assert report["doubtful_hits"] == 3
    assert report["results"][0]["scores"]["CR"] == 1.0, "no score moves"


def test_every_page_names_doubtful_hits(capsys: pytest.CaptureFixture[str]) -> None:
    for format_ in ("console", "markdown", "html", "junit"):
        score("-f", format_, "-o", f"report.{format_}")
        page = Path(f"report.{format_}").read_text()
        assert "signs of sepsis" in page, format_
        assert "negated" in page, format_
    capsys.readouterr()
    explain("--all")
    printed = capsys.readouterr().out
    assert "  doubt  CR signs of sepsis\n" in printed
    assert "The text denies it; neither the term nor the narrative does." in printed


def test_of_a_case_without_a_narrative_nothing_is_said_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    untold = case("A", ["signs of sepsis"], [], patient_payload=None)
    Path("cases/b.json").write_text(json.dumps({"test_cases": [untold]}))
    explain("--all")
    printed = capsys.readouterr().out
    assert "The text denies it; the term does not." in printed
    assert "narrative" not in printed


def test_verify_recomputes_doubtful_hits_and_mismatches(capsys: pytest.CaptureFixture[str]) -> None:
    score("-f", "json", "-o", "report.json")
    verify = ["verify", "report.json", "-i", "run.json", "-t", "cases"]
    assert main(verify) == 0
    report = json.loads(Path("report.json").read_text())
    for changed in ({"doubtful_hits": 2}, {"input_mismatches": 0}):
        Path("report.json").write_text(json.dumps(report | changed))
        assert main(verify) == 1
        assert next(iter(changed)) in capsys.readouterr().out


def test_a_report_of_an_earlier_version_is_verified_by_what_it_tells(capsys: pytest.CaptureFixture[str]) -> None:
    score("--explain", "-f", "json", "-o", "report.json")
    report = json.loads(Path("report.json").read_text())
    for name in (
        "input_mismatches",
        "doubtful_hits",
        "miss_verdicts",
        "failed_generations",
        "near_violations",
        "mean_lenient",
        "mean_coverage",
        "lenient_cases",
        "lenient_terms",
        "unsupported",
        *ANSWER_FIELDS,
    ):
        del report[name]
    del report["configuration"]["errorTexts"], report["configuration"]["placeholderTexts"]
    added = ("batch_id", "input_matches", "doubtful", "generation", "near_violations", "lenient", "coverage")
    for result in report["results"]:
        for name in (*added, "unsupported"):
            del result[name]
        for miss in result["misses"]:
            del miss["verdict"], miss["also_in"], miss["missing_words"], miss["in_other_words"]
            for name in ANSWERS:
                del miss[name]
    verify = ["verify", "report.json", "-i", "run.json", "-t", "cases"]
    for version, code in ((__version__, 1), ("9.0.0", 1), ("unknown", 1), ("0.0.9", 0)):
        report["scorer"]["version"] = version
        Path("report.json").write_text(json.dumps(report))
        assert main(verify) == code, "only a version that did not know the fields may lack them"
        printed = capsys.readouterr()
        assert ("an older SAFE wrote the report" in printed.err) is (code == 0)
        assert ("input_matches is missing from the report" in printed.out) is (code == 1)
        assert ("an older SAFE with the same version number" in printed.err) is (code == 1)
    report["results"][0]["scores"]["CR"] = 0.5
    Path("report.json").write_text(json.dumps(report))
    assert main(verify) == 1


def test_a_report_from_before_there_were_two_answers_is_verified_by_what_it_tells(
    capsys: pytest.CaptureFixture[str],
) -> None:
    score("--explain", "-f", "json", "-o", "report.json")
    report = json.loads(Path("report.json").read_text())
    for name in ANSWER_FIELDS:
        del report[name]
    misses = [miss for result in report["results"] for miss in result["misses"]]
    for miss in misses:
        for name in ANSWERS:
            del miss[name]
    verify = ["verify", "report.json", "-i", "run.json", "-t", "cases"]
    for kind, code in ((misses[0]["kind"], 0), ("form", 1)):
        misses[0]["kind"] = kind
        Path("report.json").write_text(json.dumps(report))
        assert main(verify) == code, "what it does tell is compared"
        assert "before SAFE gave two answers for each missed term" in capsys.readouterr().err


def test_the_gate_counts_them() -> None:
    assert score("--max-doubtful", "3") == 0
    assert score("--max-doubtful", "2") == 1
    assert score("--max-mismatches", "0") == 1
    assert score("--max-mismatches", "1") == 0


# --- explanations in bulk ---------------------------------------------------------------------------------------------


def test_failing_cases_are_explained_where_none_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain() == 0
    printed = capsys.readouterr().out
    headline, head, cases = printed.split("\n\n", 2)
    assert headline == "3 cases explained"
    assert head.splitlines() == [
        "2 misses: 1 contradicted, 1 elsewhere; narrative: 2 supported",
        "2 misses: 1 prompt (ask for it in the prompt), 1 output (the output is wrong)",
    ]
    assert [line[0] for line in cases.splitlines() if line[1:2] == ":"] == ["B", "D"]
    assert printed.endswith("\n\nNo output: 1 case\n  C\n")
    assert printed.index("D: Fail") < printed.index("Attention  This output was made from another narrative")
    assert len(cases.split("\n\n")[0].splitlines()) <= 15


def test_a_contradiction_is_the_outputs_and_another_field_the_prompts(capsys: pytest.CaptureFixture[str]) -> None:
    explain("--test", "B")
    printed = capsys.readouterr().out
    assert "  prompt  AC severe\n" in printed
    assert "ask for it in the right field. It is word for word in question 1; AC checks the summary." in printed
    assert 'waited 2 hours for a bed"; the term and the narrative say "12 hours".' in printed


@pytest.mark.parametrize(
    ("options", "cases"),
    [([], "BCD"), (["--failing"], "BCD"), (["--label", "Pass"], "A"), (["--all"], "ABCD"), (["--label", "review"], "")],
)
def test_filters(options: list[str], cases: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(*options, "-f", "json") == 0
    printed = capsys.readouterr()
    assert "".join(result["test_id"] for result in json.loads(printed.out)["results"]) == cases
    assert ("no case has the chosen label" in printed.err) == (not cases)


def test_counts_by_verdict_add_up_to_the_misses_that_have_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    explain("--all", "-f", "json")
    document = json.loads(capsys.readouterr().out)
    assert document["miss_verdicts"] == {"term": 0, "prompt": 1, "output": 1, "look": 0}
    with_reasons = [each for each in document["results"] if each["answered"] and each["input_matches"] is not False]
    assert sum(len(each["misses"]) for each in with_reasons) == document["misses"] == 2
    assert (document["missing_outputs"], document["input_mismatches"], document["doubtful_hits"]) == (1, 1, 3)
    score("--explain", "-f", "json")
    assert json.loads(capsys.readouterr().out)["miss_verdicts"] == document["miss_verdicts"]


def test_csv_has_a_row_for_each_miss(capsys: pytest.CaptureFixture[str]) -> None:
    explain("-f", "csv")
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["test_id"], row["verdict"], row["output"]) for row in rows if row["outcome"] == "missing"] == [
        ("B", "prompt", "answered"),
        ("B", "output", "answered"),
        ("C", "prompt", "no output"),
        ("D", "prompt", "made from another narrative"),
    ]
    assert rows[0]["also_in"] == "followup_questions[0]"
    names = ("output_says", "narrative_says", "verbatim", "remedy", "row")
    assert [rows[1][name] for name in names] == [
        "contradicted",
        "supported",
        "True",
        "fix_output",
        "output contradicts",
    ]
    assert 0 < int(rows[1]["share"]) < 1000
    assert re.fullmatch(r"(output summary \d+-\d+; ){1,2}narrative \d+-\d+", rows[1]["evidence"])
    explain("-f", "csv", "--include-text")
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert re.search(r'output summary \d+-\d+ ".*2 hours.*"; narrative \d+-\d+ ".*12 hours.*"$', rows[1]["evidence"])


BLAMED: dict[str, Any] = {"signals": ["no signs of sepsis"], "summary": "", "followup_questions": ["Who is to blame?"]}


def only_harmful() -> None:
    """A case that fails by its questions alone, whose hit is denied; one forbidden term is only part of a word."""
    harmful = case("H", ["signs of sepsis"], [])
    harmful["expectations"]["followup_questions"] = {"forbidden_terms": ["blame", "ho"]}
    Path("cases/b.json").write_text(json.dumps({"test_cases": [harmful]}))
    Path("run.json").write_text(json.dumps({"raw_results": [{"test_id": "H", "engine_output": BLAMED}]}))


def test_json_lists_the_forbidden_terms_that_were_used(capsys: pytest.CaptureFixture[str]) -> None:
    only_harmful()
    explain("-f", "json")
    (result,) = json.loads(capsys.readouterr().out)["results"]
    place = {"field": "followup_questions", "element": 0}
    assert result["misses"] == []
    assert result["violations"] == [
        {"criterion": "AH", "term": "blame", **place, "start": 10, "end": 15},
        {"criterion": "AH", "term": "ho", **place, "start": 1, "end": 3},
    ]
    explain("-f", "json", "--include-text")
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert [each["text"] for each in result["violations"]] == ["blame", "ho"]


def test_csv_has_a_row_for_each_violation_and_each_doubtful_hit(capsys: pytest.CaptureFixture[str]) -> None:
    only_harmful()
    explain("-f", "csv", "--include-text")
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    names = ("test_id", "criterion", "term", "outcome", "doubtful", "verdict", "kind", "field", "start", "text")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("H", "AH", "blame", "used", "", "", "", "followup_questions", "10", "blame"),
        ("H", "AH", "ho", "used", "inside_word", "", "", "followup_questions", "1", "ho"),
        ("H", "CR", "signs of sepsis", "found", "negated", "", "", "signals", "3", "signs of sepsis"),
    ]


def test_markdown_lists_violations_and_doubtful_hits(capsys: pytest.CaptureFixture[str]) -> None:
    only_harmful()
    explain("-f", "markdown")
    bullets = [line for line in capsys.readouterr().out.splitlines() if line.lstrip().startswith("- ")]
    assert bullets == [
        "- **doubt** CR `signs of sepsis`",
        "  - found: signal 1, characters 4 to 18",
        "  - why: `The text denies it; neither the term nor the narrative does.`",
        "- **doubt** AH `ho`",
        "  - found: question 1, characters 2 to 3",
        "  - why: `It is found only inside a longer word or number.`",
        "- **used** AH `blame`",
        "  - where: question 1, characters 11 to 15",
        "- **used** AH `ho`",
        "  - where: question 1, characters 2 to 3",
        "  - why: `It appears only inside longer words, and may not be meant.`",
    ]


@pytest.mark.parametrize("format_", ["json", "csv", "markdown"])
def test_texts_are_quoted_in_files_only_where_that_is_asked_for(
    format_: str, capsys: pytest.CaptureFixture[str]
) -> None:
    explain("-f", format_)
    assert "2 hours for a bed" not in capsys.readouterr().out.replace(TOLD, "")
    explain("-f", format_, "--include-text")
    assert "2 hours" in capsys.readouterr().out.replace(TOLD, "")


def test_only_one_choice_of_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain("--all", "--label", "pass") == 3
    assert "give only one of test_ids, --failing, --label and --all" in capsys.readouterr().err


def test_a_test_id_in_other_letters_is_suggested_once(capsys: pytest.CaptureFixture[str]) -> None:
    Path("cases/c.json").write_text(json.dumps({"test_cases": [case("Stroke-001", ["a"], [])]}))
    assert explain("--test", "stroke-001") == 3
    assert capsys.readouterr().err.count("Stroke-001") == 1


def test_the_narratives_own_words_are_shown_for_a_term_that_it_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    Path("cases/b.json").write_text(json.dumps({"test_cases": [case("B", ["sepsis signs at noon"], [])]}))
    explain("--test", "B")
    printed = capsys.readouterr().out
    assert re.search(r"narrative  .*sepsis at noon\]", printed)
    assert re.search("narrative: (supported|partly) in other words", printed)


@pytest.mark.parametrize("command", ["explain", "score"])
def test_a_narrative_is_not_searched_again_for_what_the_diagnosis_has_found_in_it(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = [f"{command} a peak flow of {number}" for number in range(180, 185)]
    Path("cases/b.json").write_text(json.dumps({"test_cases": [case("A", foreign, foreign)]}))
    searched: list[str] = []

    def noted(expectations: Expectations, output: Output, narrative: str | None) -> Diagnosis:
        searched.extend(output.signals)
        return diagnose(expectations, output, narrative)

    monkeypatch.setattr(quotes, "diagnose", noted)
    if command == "explain":
        explain("--test", "A")
    else:
        score("--explain", "--include-text", "-o", "page.html")
    assert not searched
