"""The tables of verdicts and kinds: each row decides its example, and each pair of answers has a verdict."""

from itertools import product
from typing import Final

import pytest

from safe_core import Expectations, Output
from safe_core.diagnosis import (
    KINDS,
    NARRATIVE_SAYS,
    OUTPUT_SAYS,
    REMEDIES,
    VERDICTS,
    Miss,
    NarrativeSays,
    OutputSays,
    diagnose,
)
from safe_core.diagnosis.tables import KIND_ROWS, VERDICT_ROWS, Example, KindRow, Row, verdict_row

TABLE: Final = """
             | supported         | partly            | unknown           | silent            | contradicts
said         | term accept       | term accept       | term accept       | term accept       | look read
elsewhere    | prompt in_field   | prompt in_field   | prompt in_field   | look read         | look read
part         | prompt ask        | prompt ask        | prompt ask        | term case         | term case
absent       | prompt ask        | prompt ask        | prompt ask        | term case         | term case
contradicted | output fix        | look read         | look read         | look read         | term case
both         | look read         | look read         | look read         | look read         | look read
not_read     | look read         | look read         | look read         | look read         | look read
"""
"""What follows from both answers, cell by cell, and the remedy."""

SHORT: Final = {
    "accept": "accept_wording",
    "in_field": "ask_in_field",
    "ask": "ask",
    "case": "correct_case",
    "fix": "fix_output",
    "read": "read",
}


def cells() -> list[tuple[str, str, str, str]]:
    head, *lines = TABLE.strip("\n").splitlines()
    columns = [cell.strip() for cell in head.split("|")[1:]]
    found = []
    for line in lines:
        output, *verdicts = (cell.strip() for cell in line.split("|"))
        for column, cell in zip(columns, verdicts, strict=True):
            verdict, remedy = cell.split()
            found.append((output, column, verdict, SHORT[remedy]))
    return found


def miss_of(example: Example) -> Miss:
    expectations = Expectations((), (), (example.term,))
    (miss,) = diagnose(expectations, Output(example.signals, example.summary), example.narrative).misses
    return miss


# ─── verdicts ───


def test_the_table_has_a_cell_for_each_pair_of_answers() -> None:
    assert [cell[:2] for cell in cells()] == [
        (output, narrative)
        for output, narrative in product(
            ("said", "elsewhere", "part", "absent", "contradicted", "both", "not_read"),
            ("supported", "partly", "unknown", "silent", "contradicts"),
        )
    ]
    assert {cell[0] for cell in cells()} == set(OUTPUT_SAYS)
    assert {cell[1] for cell in cells()} == set(NARRATIVE_SAYS)


@pytest.mark.parametrize(("output", "narrative", "verdict", "remedy"), cells())
def test_each_pair_of_answers_has_the_verdict_of_its_cell(
    output: OutputSays, narrative: NarrativeSays, verdict: str, remedy: str
) -> None:
    row = verdict_row(output, narrative, has_it_too=False)
    assert (row.verdict, row.remedy) == (verdict, remedy)


@pytest.mark.parametrize("narrative", NARRATIVE_SAYS)
def test_nothing_is_called_wrong_that_the_narrative_says_too(narrative: NarrativeSays) -> None:
    row = verdict_row("contradicted", narrative, has_it_too=True)
    assert (row.verdict, row.remedy) == (("term", "correct_case") if narrative == "contradicts" else ("look", "read"))


@pytest.mark.parametrize("row", VERDICT_ROWS, ids=lambda row: row.name)
def test_the_example_of_a_row_is_decided_by_it(row: Row) -> None:
    miss = miss_of(row.example)
    assert miss.row == row.name
    assert (miss.verdict, miss.remedy) == (row.verdict, row.remedy)
    assert miss.output_says in row.output
    assert miss.narrative_says in row.narrative


def test_rows_have_names_of_their_own_and_a_sentence_why() -> None:
    names = [row.name for row in VERDICT_ROWS]
    assert len(set(names)) == len(names)
    assert all(row.why.endswith(".") for row in VERDICT_ROWS)
    assert {row.verdict for row in VERDICT_ROWS} == set(VERDICTS) - {"not_asked_for", "accepted"}
    assert {row.remedy for row in VERDICT_ROWS} == set(REMEDIES) - {"none"}


def test_each_row_decides_something() -> None:
    asked = product(OUTPUT_SAYS, NARRATIVE_SAYS, (False, True))
    assert {verdict_row(output, narrative, has_it_too=too).name for output, narrative, too in asked} == {
        row.name for row in VERDICT_ROWS
    }


def test_only_a_term_that_is_said_gives_a_wording_to_accept() -> None:
    for output, narrative in product(OUTPUT_SAYS, NARRATIVE_SAYS):
        row = verdict_row(output, narrative, has_it_too=False)
        assert row.remedy != "accept_wording" or output == "said"


# ─── kinds ───


@pytest.mark.parametrize("row", KIND_ROWS, ids=lambda row: f"{row.kind}: {row.example.term}")
def test_the_example_of_a_kind_is_of_that_kind(row: KindRow) -> None:
    assert miss_of(row.example).kind == row.kind


def test_there_is_a_row_for_each_kind() -> None:
    assert {row.kind for row in KIND_ROWS} == set(KINDS)


KINDS_OF: Final = [
    ("follow-up", "Follow up in two weeks.", "form"),
    ("x-ray", "An x ray was taken.", "form"),
    ("potassium 5.6", "Potassium was 3.6.", "value"),
    ("pain in the left knee", "Pain in the right knee.", "value"),
    ("lisinopril 10 mg daily", "Enalapril 10 mg daily.", "value"),
    ("no fever", "He had a fever.", "polarity"),
    ("had a fever", "No fever.", "polarity"),
    ("surgery was done", "The surgery was cancelled.", "polarity"),
    ("cough with a fever", "She has a cough, possibly with a fever.", "polarity"),
    ("dry cough and swollen ankles", "She has a dry cough. The ankles are swollen.", "split"),
    ("pain in the left knee", "Pain of his left knee.", "connectives"),
    ("left knee pain", "Pain in the left knee.", "rearranged"),
    ("dry cough for two weeks", "She has a dry cough.", "part"),
    ("dry cough", "The case was reviewed.", "absent"),
]


@pytest.mark.parametrize(("term", "summary", "kind"), KINDS_OF)
def test_the_kind_of_a_miss(term: str, summary: str, kind: str) -> None:
    assert miss_of(Example(term, summary, None)).kind == kind
