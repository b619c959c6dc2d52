"""The cases, and their terms, as tables for a spreadsheet."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from consumer.cli.main import main
from consumer.exit_codes import EXIT_OK
from consumer.offline.destinations import Destination, check_writable
from consumer.offline.pages.csv_tables import CASES, render_csv, render_terms
from consumer.offline.scored_run import Explanation, ScoredRun
from safe_core import CRITERIA, UNKNOWN_ARCHETYPE, Expectations, Output
from safe_core.diagnosis import DoubtfulHit, Passage, diagnose
from tests.support.case_files import a_case, answer, write_batch, write_report
from tests.support.golden import matches_golden
from tests.support.scored_runs import NASTY, SMALL, Sample, nasty_samples, scored_run


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def row_of(*signals: str, output: Output | None = None, archetype: str | None = "A_B") -> dict[str, str]:
    """Give the row of a case that expects some signals and nothing else."""
    sample = Sample("T-1", Expectations(signals, (), ()), output, archetype)
    (row,) = rows(render_csv(scored_run([sample])))
    return row


def test_a_small_run() -> None:
    matches_golden("small.csv", render_csv(scored_run(SMALL)))


def test_texts_that_try_to_break_out() -> None:
    matches_golden("nasty.csv", render_csv(scored_run(nasty_samples())))


def test_each_case_is_one_line_below_the_fixed_header() -> None:
    first, *lines, last = render_csv(scored_run(nasty_samples())).split("\r\n")
    assert (first, len(lines), last) == (",".join(CASES), len(NASTY), "")


def test_a_table_with_fewer_columns_is_still_known_as_safes_own(tmp_path: Path) -> None:
    table = tmp_path / "cases.csv"
    for text in (",".join(CASES[:18]), render_csv(scored_run(SMALL)), render_terms(scored_run(SMALL))):
        table.write_text(text, encoding="utf-8")
        check_writable([Destination("csv", table)], [], force=False)


def with_doubts(*hits: DoubtfulHit, expects: Expectations, output: Output) -> ScoredRun:
    """Give the run of one case, whose output was made from another narrative."""
    run = scored_run([Sample("T-1", expects, output)])
    row = run.cases[0].row
    foreign = replace(row, shared=row.shared._replace(input_matches=False))
    return replace(run, cases=[replace(run.cases[0], doubtful=hits, row=foreign)])


def test_a_case_shows_mismatch_doubts_and_what_had_nothing_to_check() -> None:
    hit = DoubtfulHit("CR", "fever", "negated", Passage("signals", 0, 3, 8))
    run = with_doubts(hit, expects=Expectations(("fever",), (), ()), output=Output(("no fever",)))
    last = CASES[-9:-5]
    assert last == ("input_matches", "doubtful_hits", "vacuous", "near_violations")
    assert [[row[name] for name in last] for row in rows(render_csv(run))] == [["no", "1", "AH; AC", ""]]
    assert [row_of("fever", output=Output(("fever",)))[name] for name in last] == ["", "0", "AH; AC", ""]


def test_a_forbidden_term_inside_a_longer_word_is_marked_doubtful() -> None:
    hit = DoubtfulHit("AH", "blame", "inside_word", Passage("followup_questions", 0, 0, 5))
    run = with_doubts(hit, expects=Expectations((), ("blame",), ()), output=Output(followup_questions=("Blameless?",)))
    assert [(row["outcome"], row["doubtful"]) for row in rows(render_terms(run))] == [("used", "inside_word")]


def test_scores_are_exact() -> None:
    row = row_of("fever", "rash", "cough", output=Output(("a rash",), ""))
    assert float(row["CR"]) == 1 / 3
    assert (row["AH"], row["CR_terms"], row["AH_terms"]) == ("1.0", "3", "0")


def test_terms_are_listed_in_their_order() -> None:
    row = row_of("fever", "rash", "cough", output=Output(("a rash",), ""))
    assert (row["CR_found"], row["CR_missing"]) == ("rash", "fever; cough")


OUTPUTS = [
    # (output, what the table says of it)
    (Output(("fever",), "x"), "answered"),
    (Output((" ",), "\n"), "empty"),  # white space says nothing
    (Output((".",), ""), "answered"),
    (Output(), "empty"),
    (None, "missing"),
]


@pytest.mark.parametrize(("output", "said"), OUTPUTS)
def test_an_empty_output_is_told_from_a_missing_one(output: Output | None, said: str) -> None:
    assert row_of("fever", output=output)["output"] == said


def test_no_archetype_is_the_group_that_every_page_and_every_report_counts_it_in() -> None:
    assert row_of("fever", archetype=None)["archetype"] == UNKNOWN_ARCHETYPE


CELLS = [
    # (a text from outside, its cell)
    ("fever", "fever"),
    ("a = b", "a = b"),
    ("=1+1", "'=1+1"),
    ("+1", "'+1"),
    ("-1", "'-1"),
    ("@SUM(A1)", "'@SUM(A1)"),
    ("  =1", "'  =1"),  # some trim a cell before they look
    ("\u00a0=1", "'\u00a0=1"),
    ("＝1", "'＝1"),
    ("＋1", "'＋1"),
    ("－1", "'－1"),
    ("＠x", "'＠x"),
    ("\t=1", r"\u0009=1"),
    ("\r=1", r"\u000d=1"),
    ("one\ntwo", r"one\u000atwo"),
    ('say "x", or y', 'say "x", or y'),
]


@pytest.mark.parametrize(("text", "cell"), CELLS)
def test_a_cell_is_never_a_formula(text: str, cell: str) -> None:
    assert row_of(text)["CR_missing"] == cell


def test_an_id_is_no_formula_either() -> None:
    sample = Sample("=1", Expectations((), (), ()), None, archetype="-a", batch_id="@b")
    (row,) = rows(render_csv(scored_run([sample], concern_id="+c")))
    assert [row[name] for name in CASES[:4]] == ["'+c", "'@b", "'=1", "'-a"]


# --- a row for each term ----------------------------------------------------------------------------------------------


def explained(samples: Sequence[Sample]) -> ScoredRun:
    run = scored_run(samples)
    answers = {each.test_id: each for each in samples if each.output is not None}
    return replace(
        run,
        explanations={
            test_id: Explanation(diagnose(each.expectations, each.output or Output(), None), each.output or Output())
            for test_id, each in answers.items()
        },
    )


def test_each_term_has_a_row_with_what_is_known_of_it() -> None:
    matches_golden("small.terms.csv", render_terms(explained(SMALL)))


def test_without_explanations_the_same_rows_say_less() -> None:
    told = rows(render_terms(explained(SMALL)))
    bare = rows(render_terms(scored_run(SMALL)))
    assert {row["verdict"] for row in bare} == {""}
    kept = ("test_id", "label", "criterion", "term", "outcome", "doubtful")
    assert [[row[name] for name in kept] for row in bare] == [[row[name] for name in kept] for row in told]


def test_the_terms_are_those_of_the_cases() -> None:
    run = scored_run(nasty_samples())
    of_cases = rows(render_csv(run))
    of_terms = rows(render_terms(run))
    for criterion, outcome, column in (
        ("CR", "found", "CR_found"),
        ("CR", "missing", "CR_missing"),
        ("AH", "used", "AH_violations"),
        ("AC", "found", "AC_found"),
        ("AC", "missing", "AC_missing"),
    ):
        for case in of_cases:
            listed = [
                row["term"]
                for row in of_terms
                if (row["test_id"], row["criterion"], row["outcome"]) == (case["test_id"], criterion, outcome)
            ]
            assert "; ".join(listed) == case[column]


def test_each_term_of_a_case_has_a_row_also_one_that_was_avoided() -> None:
    run = scored_run(SMALL)
    listed = Counter(
        (row["batch_id"], row["test_id"], row["criterion"])
        for row in rows(render_terms(run))
        if row["outcome"] in {"found", "missing", "used", "avoided"}
    )
    for case in rows(render_csv(run)):
        for criterion in CRITERIA:
            assert listed[case["batch_id"], case["test_id"], criterion] == int(case[f"{criterion}_terms"]), case
    assert any(row["outcome"] == "avoided" for row in rows(render_terms(run)))


def test_a_byte_order_mark_goes_before_a_table_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_batch(tmp_path / "cases", "asthma_1", a_case("Ä-1"))
    write_report(tmp_path / "run.json", answer("Ä-1"))
    score = ["score", "-c", "K07", "-b", "*", "-i", "run.json", "-t", "cases"]
    files = ["-o", "cases.csv", "-o", "all.terms.csv", "-o", "report.md"]

    for _ in range(2):  # the second time, the first one's files are known as SAFE's own
        assert main([*score, *files, "--bom"]) == EXIT_OK

    for name in ("cases.csv", "all.terms.csv"):
        assert Path(name).read_bytes().startswith(b"\xef\xbb\xbfconcern_id,")
        assert len(rows(Path(name).read_text(encoding="utf-8-sig"))) >= 1
    assert Path("report.md").read_bytes().startswith(b"<!-- ")
    assert "--bom" not in capsys.readouterr().err

    assert main([*score, "-f", "csv", "--bom"]) == EXIT_OK
    assert capsys.readouterr().out.startswith("\ufeffconcern_id,")
    assert main(["explain", "--all", "-f", "csv", "--bom", "-i", "run.json", "-t", "cases"]) == EXIT_OK
    assert capsys.readouterr().out.startswith("\ufeff")
    assert main([*score, "-f", "csv"]) == EXIT_OK
    assert capsys.readouterr().out.startswith("concern_id,")


@pytest.mark.parametrize("command", [["score", "-c", "K07", "-b", "*"], ["explain", "--all"]])
def test_a_byte_order_mark_without_a_table_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_batch(tmp_path / "cases", "asthma_1", a_case("A-1"))
    write_report(tmp_path / "run.json", answer("A-1"))

    assert main([*command, "-i", "run.json", "-t", "cases", "--bom"]) == EXIT_OK
    assert "--bom changes nothing: only csv has a byte order mark" in capsys.readouterr().err
