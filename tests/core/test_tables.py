"""The tables of verdicts and kinds: each row decides its example and the answers that it lists."""

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
    diagnose,
    misses,
)
from safe_core.diagnosis.tables import KIND_ROWS, VERDICT_ROWS, Example, KindRow, Nearest, Row, kind_row, verdict_row


def miss_of(example: Example) -> Miss:
    expectations = Expectations((), (), (example.term,))
    (miss,) = diagnose(expectations, Output(example.signals, example.summary), example.narrative).misses
    return miss


# ─── verdicts ───


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


def test_a_row_lists_only_the_answers_that_it_decides() -> None:
    for row in VERDICT_ROWS:
        for output, narrative in product(row.output, row.narrative):
            deciding = {verdict_row(output, narrative, has_it_too=too).name for too in (False, True)}
            assert row.name in deciding, (
                f"{row.name!r} lists {output} with {narrative}, but earlier rows decide it: {deciding}"
            )


def test_only_a_term_that_is_said_gives_a_wording_to_accept() -> None:
    for output, narrative in product(OUTPUT_SAYS, NARRATIVE_SAYS):
        row = verdict_row(output, narrative, has_it_too=False)
        assert row.remedy != "accept_wording" or output == "said"


# ─── kinds ───


@pytest.mark.parametrize("row", KIND_ROWS, ids=lambda row: f"{row.kind}: {row.example.term}")
def test_the_example_of_a_kind_is_decided_by_its_row(row: KindRow, monkeypatch: pytest.MonkeyPatch) -> None:
    decided: list[KindRow] = []

    def noted(found: Nearest) -> KindRow:
        decided.append(kind_row(found))
        return decided[-1]

    monkeypatch.setattr(misses, "kind_row", noted)
    miss_of(row.example)
    assert decided == [row], f"the row {decided[0].why!r} decides it: give this one another example"


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
