"""`safe explain`, `score --explain`, `lint` and `compare` as from a shell."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main
from consumer.offline.explanations import FIELDS
from safe_core.diagnosis import KINDS
from tests.support.case_files import GOOD, HARMFUL, a_case, answer, event, write_batch, write_events, write_report
from tests.support.tables import StoredRecord

Json = Any
CANARY = "zebra-7Q"
NARRATIVE = "A boy of 6 came at 08:30 on Saturday with wheeze. Salbutamol was given at once."


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a batch of three cases, and outputs that miss in several ways."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("SAFE_V0_", "GITHUB_", "SOURCE_DATE_"))]:
        monkeypatch.delenv(name)
    write_batch(
        tmp_path / "cases",
        "asthma_1",
        a_case("A-1", signals=["came at 08:30 on Saturday", "wheeze"], patient_payload=NARRATIVE),
        a_case("A-2", phrases=["the salbutamol was given"], patient_payload=NARRATIVE),
        a_case("A-3", signals=["a peak flow of 180"], patient_payload=NARRATIVE),
    )
    write_report(
        tmp_path / "run.json",
        answer("A-1", {**GOOD, "signals": [f"came at 08:30, {CANARY}", "wheeze"]}),
        answer("A-2", {**GOOD, "summary": f"Salbutamol was given. {CANARY}"}),
        answer("A-3"),
    )
    return tmp_path


def score(*more: str, outputs: str = "run.json") -> Json:
    arguments = ["score", "-c", "K07", "-b", "*", "-i", outputs, "-t", "cases", "-o", "report.json", *more]
    assert main(arguments) in {0, 1, 2}
    return json.loads(Path("report.json").read_bytes())


def test_an_explained_report_says_of_each_miss_what_kind_it_is_and_where(capsys: pytest.CaptureFixture[str]) -> None:
    report = score("--explain")
    misses = {result["test_id"]: result["misses"] for result in report["results"]}
    (part,), (connectives,), (absent,) = misses["A-1"], misses["A-2"], misses["A-3"]
    names = ["criterion", "term", "kind", "in_narrative", "field", "element", "start", "end", "similarity"]
    names += ["verdict", "also_in", "missing_words", "in_other_words"]
    names += ["output_says", "narrative_says", "verbatim", "narrative_has_it_too", "share", "remedy", "row", "evidence"]
    assert [list(miss) for miss in (part, connectives, absent)] == [names] * 3
    assert (part["kind"], part["field"], part["element"], part["in_narrative"]) == ("part", "signals", 0, "yes")
    assert (connectives["kind"], connectives["field"], connectives["element"]) == ("connectives", "summary", None)
    assert (absent["kind"], absent["in_narrative"]) == ("absent", "no")
    assert report["miss_kinds"] == {"connectives": 1, "part": 1, "absent": 1}
    assert list(report["miss_kinds"]) == [kind for kind in KINDS if kind in report["miss_kinds"]]
    assert report["misses_not_in_narrative"] == 2
    assert report["miss_verdicts"] == {"term": 2, "prompt": 1, "output": 0, "look": 0}
    assert report["miss_output_says"] == {
        "both": 0, "said": 1, "contradicted": 0, "elsewhere": 0, "part": 1, "absent": 1, "not_read": 0,
    }  # fmt: skip
    assert report["miss_narrative_says"] == {"supported": 2, "partly": 0, "unknown": 0, "silent": 1, "contradicts": 0}
    assert [miss["verdict"] for miss in (part, connectives, absent)] == ["prompt", "term", "term"]
    assert [miss["remedy"] for miss in (part, connectives, absent)] == ["ask", "accept_wording", "correct_case"]
    assert [miss["row"] for miss in (part, connectives, absent)] == ["left out", "said", "never given"]
    assert [miss["verbatim"] for miss in (part, connectives, absent)] == [True, False, False]
    assert [entry["side"] for entry in part["evidence"]] == ["output", "narrative"]
    assert set(part["evidence"][0]) == {"side", "start", "end", "field", "element"}, "no text where none is asked for"
    assert (part["also_in"], part["missing_words"]) == ([], ["Saturday"])
    assert report["ceiling"] == {
        "cases": 3, "pass": 1, "review": 0, "fail": 2, "terms": 7, "not_in_narrative": 2, "without_narrative": 0,
    }  # fmt: skip
    assert "3 misses: 2 term (change the term), 1 prompt (ask for it in the prompt)" in capsys.readouterr().out


def test_explaining_moves_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1772438400")
    plain, explained = score(), score("--explain")
    for result in explained["results"]:
        del result["misses"]
    for name in FIELDS:
        del explained[name]
    assert explained == plain


@pytest.mark.parametrize("options", [["--explain"], ["--include-text"]])
def test_an_explained_report_is_verified_and_its_changes_are_found(
    capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    report = score(*options)
    verify = ["verify", "report.json", "-i", "run.json", "-t", "cases"]
    assert main(verify) == 0
    report["results"][0]["misses"][0]["kind"] = "absent"
    Path("report.json").write_text(json.dumps(report))
    capsys.readouterr()
    assert main(verify) == 1
    assert 'misses[0] (came at 08:30 on Saturday) kind: "absent" in the report, "part" recomputed' in (
        capsys.readouterr().out
    )


FILES = ["page.md", "page.xml", "page.csv", "page.html", "page.txt"]


def test_no_page_quotes_an_output_unless_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    written = [part for name in FILES for part in ("-o", name)]
    score("--explain", "--verbose", *written)
    printed = capsys.readouterr()
    pages = [Path(name).read_text(encoding="utf-8") for name in ("report.json", *FILES)]
    assert not [page for page in (*pages, printed.out, printed.err) if CANARY in page]
    report = score("--explain", "--include-text")
    miss = report["results"][0]["misses"][0]
    texts = {"output": f"came at 08:30, {CANARY}", "narrative": NARRATIVE}
    assert miss["text"] == texts["output"][miss["start"] : miss["end"]] != ""
    for place in miss["evidence"]:
        assert place["text"] == texts[place["side"]][place["start"] : place["end"]] != ""


def test_a_case_is_explained_with_what_its_output_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--test", "A-1", "-i", "run.json", "-t", "cases"]) == 0
    printed = capsys.readouterr().out
    assert "  prompt  CR came at 08:30 [-on Saturday-]\n" in printed
    assert "Saturday" in printed
    assert "A-2" not in printed


EXPLAIN = ["explain", "--all", "-i", "run.json", "-t", "cases"]
FORMAT_OF = {"x.json": "json", "x.csv": "csv", "x.md": "markdown", "x.html": "html", "x.txt": "console"}


def test_an_explanation_is_written_in_every_format_and_may_be_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    files = [part for name in FORMAT_OF for part in ("-o", name)]
    for _ in range(2):
        assert main([*EXPLAIN, *files]) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("wrote x.")) == ("", 2 * len(FORMAT_OF))
    assert "safe: 3 cases explained\n" in printed.err
    for name, format_ in FORMAT_OF.items():
        page = Path(name).read_bytes().decode()
        assert "the salbutamol was given" in page
        assert CANARY not in page, "a file quotes outputs only if that is asked for, the console always"
        assert main([*EXPLAIN, "--format", format_]) == 0
        out = capsys.readouterr().out
        assert CANARY in out if format_ == "console" else out == page
    assert main([*EXPLAIN, *files, "--include-text", "--bom"]) == 0
    assert all(CANARY in Path(name).read_text(encoding="utf-8") for name in ("x.json", "x.csv"))
    assert Path("x.csv").read_bytes().startswith(b"\xef\xbb\xbfbatch_id,")


def test_an_explanation_replaces_nothing_that_somebody_needs(capsys: pytest.CaptureFixture[str]) -> None:
    Path("notes.txt").write_text("mine")
    for file, why in [
        ("notes.txt", "already exists, and SAFE did not write it"),
        ("run.json", "is an input"),
        ("cases/asthma_1.json", "is an input"),
        ("cases/why.json", "is in the folder of the test cases"),
        ("x.xml", "unknown suffix"),
    ]:
        assert main([*EXPLAIN, "-o", file]) == 3
        assert why in capsys.readouterr().err
    assert Path("notes.txt").read_text() == "mine"
    assert main([*EXPLAIN, "-o", "notes.txt", "--force"]) == 0
    assert Path("notes.txt").read_text().startswith("3 cases explained\n")


def test_a_record_of_the_topic_is_explained_in_every_format(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    value = json.dumps({"test_id": "A-2", "batch_id": "asthma_1", "output": {**GOOD, "summary": CANARY}}).encode()

    async def read(*_where: object) -> StoredRecord:
        return StoredRecord(0, 1, None, value)

    monkeypatch.setattr("consumer.kafka.reader.read_record", read)
    asked = ["explain", "--source", "t/0/1", "-t", "cases", "--bootstrap-servers", "localhost:1"]
    assert main([*asked, "-o", "x.json", "-o", "x.md"]) == 0
    document, page = (Path(name).read_text(encoding="utf-8") for name in ("x.json", "x.md"))
    assert [result["test_id"] for result in json.loads(document)["results"]] == ["A-2"]
    assert CANARY not in document + page
    assert main(asked) == 0
    assert "batch asthma_1" in capsys.readouterr().out


def test_several_cases_are_explained_in_the_order_asked_for_and_events_too(capsys: pytest.CaptureFixture[str]) -> None:
    write_events(Path("run.jsonl"), event("A-3"), event("A-1"), event("A-3", {**GOOD, "summary": "Oxygen."}))
    assert main(["explain", "--test", "A-3", "--test", "A-1", "-i", "run.jsonl", "-t", "cases"]) == 0
    printed = capsys.readouterr().out
    assert -1 < printed.index("A-3") < printed.index("A-1")
    assert "salbutamol" in printed, "the later event stands, which does not hold it"


def test_a_case_with_nothing_to_check_says_so_where_it_passes(capsys: pytest.CaptureFixture[str]) -> None:
    write_batch(Path("cases"), "empty", a_case("V-1", signals=[], forbidden=[], phrases=[]))
    write_report(Path("run.json"), answer("V-1"))
    assert main(["explain", "--test", "V-1", "-i", "run.json", "-t", "cases"]) == 0
    assert capsys.readouterr().out == (
        "1 case explained\n\nV-1: Pass (nothing to check), CR 1.00, AH 1.00, AC 1.00\n  Nothing to explain.\n"
    )


WRONG = [
    (["--test", "A-9", "-i", "run.json"], "there is no test case A-9 in the batches of cases; did you mean A-"),
    (["--test", "a-1", "-i", "run.json"], "there is no test case a-1 in the batches of cases; did you mean A-1?"),
    (
        ["--test", "A-9", "-b", "asthma_1", "-i", "run.json"],
        " in the batches of cases that match --batch asthma_1; did ",
    ),
    (["--test", "A-1", "-c", "S11", "-i", "run.json"], "the test case A-1 is not of --concern S11, but of K07"),
    (["--test", "A-1"], "nothing to explain was given: give --outputs, or --source"),
    (["--source", "t/0/1", "--test", "A-1"], "--source explains every term of one record: leave test_ids out"),
    (["--source", "t/0/1", "--all", "-i", "run.json"], "--source explains every term of one record: leave --all and "),
    (["--source", "t/0/1", "--on-duplicate", "last", "-b", "b"], "leave --batch and --on-duplicate out"),
    (["--source", "t/0/1", "--opinions", "o.json", "-c", "K07"], "leave --concern and --opinions out"),
    (["--source", "t/0/1"], "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS is not set"),
    (["--source", "t/0"], "--source t/0 is not TOPIC/PARTITION/OFFSET, such as"),
    (["--source", "t/x/1"], "--source t/x/1 is not TOPIC/PARTITION/OFFSET"),
    (["--source", f"t/0/{'9' * 5000}"], "is not TOPIC/PARTITION/OFFSET"),
]


@pytest.mark.parametrize(("options", "sentence"), WRONG)
def test_what_cannot_be_explained_is_refused(
    capsys: pytest.CaptureFixture[str], options: list[str], sentence: str
) -> None:
    assert main(["explain", "-t", "cases", *options]) == 3
    assert sentence in capsys.readouterr().err


def test_a_case_that_stands_in_batches_with_different_expectations_is_no_one_case(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_batch(Path("cases"), "asthma_2", a_case("A-1", signals=["stridor"]))
    asked = ["explain", "--test", "A-1", "-i", "run.json", "-t", "cases"]
    assert main(asked) == 3
    assert "in several batches with different expectations (choose with --batch)" in capsys.readouterr().err
    assert main([*asked, "--batch", "asthma_2"]) == 0
    assert "stridor" in capsys.readouterr().out


def test_a_case_without_a_concern_is_explained_under_the_one_that_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    write_batch(Path("cases"), "asthma_1", a_case("A-1", signals=["stridor"], concern_id=None))
    asked = ["explain", "--test", "A-1", "-i", "run.json", "-t", "cases"]
    assert main(asked) == 3
    assert "the test case A-1 names no concern; give --concern" in capsys.readouterr().err
    assert main([*asked, "--concern", "K07"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "", "the output of that concern answers it"
    assert "stridor" in printed.out


def test_a_flaw_elsewhere_in_the_batch_keeps_no_case_from_being_explained() -> None:
    write_batch(Path("cases"), "asthma_1", a_case("A-1"), {"test_id": "A-2", "concern_id": "K07"})
    assert main(["explain", "--test", "A-1", "-i", "run.json", "-t", "cases"]) == 0


def test_a_case_that_nothing_answers_is_explained_as_empty_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    write_report(Path("other.json"), answer("A-1", concern_id="Z99"))
    assert main(["explain", "--test", "A-1", "--test", "A-1", "-i", "other.json", "-t", "cases"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "safe: no output answers A-1: the case is explained as if its output were empty\n"
    assert printed.out.count("A-1") == 1


def test_the_narrative_is_that_of_the_batch_that_was_answered(capsys: pytest.CaptureFixture[str]) -> None:
    """Two batches hold one case, with equal expectations, and tell its story differently."""
    day = ["came at 08:30 on Saturday"]
    write_batch(Path("twins"), "a", a_case("A-1", day, patient_payload="Wheeze."), a_case("A-2", day), index=1)
    write_batch(Path("twins"), "b", a_case("A-1", day, patient_payload=NARRATIVE), index=2)
    write_batch(Path("twins"), "c", a_case("A-2", day, patient_payload=NARRATIVE), index=3)
    for index, stands in ((1, "no"), (2, "yes")):
        write_report(Path("twin.json"), answer("A-1", batch_index=index), answer("A-2", batch_index=1))
        arguments = ["-c", "K07", "-b", "*", "-i", "twin.json", "-t", "twins", "--explain", "-f", "json"]
        capsys.readouterr()
        assert main(["score", *arguments]) in {0, 1, 2}
        report = json.loads(capsys.readouterr().out)
        first, second = (result["misses"][0]["in_narrative"] for result in report["results"])
        assert (first, second) == (stands, "yes"), "where the answered batch tells nothing, another's story serves"
        assert report["misses_not_in_narrative"] == (1 if stands == "no" else 0)
        assert main(["explain", "--test", "A-1", "-i", "twin.json", "-t", "twins"]) == 0
        assert ("the case asks for what the model was not given" in capsys.readouterr().out) is (stands == "no")


def test_a_case_without_a_narrative_is_not_counted_as_one_that_lacks_the_term() -> None:
    write_batch(Path("cases"), "asthma_1", a_case("A-1", signals=["stridor"]), a_case("A-2"))
    report = score("--explain")
    assert report["results"][0]["misses"][0]["in_narrative"] == "no_narrative"
    assert "misses_not_in_narrative" in report
    assert report["misses_not_in_narrative"] == 0
    assert report["ceiling"]["without_narrative"] == 2


def test_the_ceiling_goes_by_the_rules_in_force() -> None:
    Path("lax.json").write_text('{"thresholds": {"CR": {"pass": 0, "review": 0}, "AC": {"pass": 0, "review": 0}}}')
    assert (score()["summary"]["pass"], score("--explain")["ceiling"]["pass"]) == (0, 1)
    assert score("--explain", "--config", "lax.json")["ceiling"]["pass"] == 3


def test_the_ceiling_is_said_before_the_cases() -> None:
    score("--explain", "-o", "page.md", "-o", "page.html")
    sentence = "Ceiling: at most 1 of 3 cases would pass even if each output were a copy of its narrative."
    for name, cases in (("page.md", "\n## "), ("page.html", "<main>")):
        assert sentence in Path(name).read_text(encoding="utf-8").partition(cases)[0], name


def test_every_page_tells_the_kind_and_the_place_of_a_miss(capsys: pytest.CaptureFixture[str]) -> None:
    score("--explain", "--verbose", "-o", "page.md", "-o", "page.xml")
    told = r"prompt: only in part, signal 1, characters \d+ to \d+; output: part; narrative: supported"
    pages = [Path(name).read_text(encoding="utf-8") for name in ("page.md", "page.xml")]
    assert all(re.search(told, page) for page in (*pages, capsys.readouterr().out))


def test_the_gate_says_what_copying_can_reach(capsys: pytest.CaptureFixture[str]) -> None:
    score("--explain")
    capsys.readouterr()
    for rate, told in (("0.8", True), ("0.3", False)):
        main(["gate", "report.json", "--min-pass-rate", rate])
        beside = (
            "is out of reach: at most 1 of 3 cases would pass even if each output were a copy of its narrative; "
            "see safe lint"
        )
        assert (beside in capsys.readouterr().err) is told


def test_a_gate_may_ask_how_sure_one_can_be(capsys: pytest.CaptureFixture[str]) -> None:
    score()
    capsys.readouterr()
    assert main(["gate", "report.json", "--min-pass-rate", "0.5", "--confidence", "0.95"]) == 1
    assert (
        "not enough cases: --min-pass-rate 0.5 at 95 % confidence needs at least 4 cases that all pass, "
        "but the report has 3"
    ) in capsys.readouterr().out


def test_lint_begins_with_the_ceiling_and_exits_by_its_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "cases"]) == 1
    assert capsys.readouterr().out.startswith(
        "Ceiling: at most 1 of 3 cases would pass even if each output were a copy of its narrative\n"
    )
    write_batch(Path("clean"), "b", a_case("A-1", ["wheeze"], phrases=["salbutamol"], patient_payload=NARRATIVE))
    assert main(["lint", "clean", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["ceiling"]["pass"] == 1
    assert main(["lint", "nowhere"]) == 3


def test_lint_annotates_in_github_actions(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert main(["lint", "cases"]) == 1
    assert "::warning file=cases/asthma_1.json,line=1" in capsys.readouterr().err


def test_two_runs_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    score()
    Path("report.json").rename("base.json")
    better = {**GOOD, "summary": "At once the salbutamol was given."}
    write_report(Path("new.json"), answer("A-1", HARMFUL), answer("A-2", better))
    score(outputs="new.json")
    capsys.readouterr()
    compare = ["compare", "base.json", "report.json"]
    assert main(compare) == 0
    assert capsys.readouterr().out.startswith(
        "1 lost case; nothing changed beyond chance: of 2 judged cases, 1 got a worse label, "
    )
    assert main([*compare, "--fail-on-regression", "-o", "comparison.md"]) == 1
    allowed = ["--max-regressions", "1", "--allow-lost", "1"]
    assert main([*compare, "--fail-on-regression", *allowed, "-o", "comparison.md"]) == 0
    assert Path("comparison.md").read_text(encoding="utf-8").startswith("<!-- SAFE v0 comparison -->")
    assert main([*compare, "--max-regressions", "1"]) == 3
    assert main([*compare, "-o", "base.json"]) == 3
    assert main([*compare, "-o", "comparison.csv"]) == 3
    assert main(["compare", "base.json", "run.json"]) == 3
