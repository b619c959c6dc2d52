"""The cases as a table for a spreadsheet (RFC 4180): one row each, all scores exact."""

import csv
import io
import re
from collections.abc import Iterable
from typing import Final

from consumer.offline.scored_run import CaseLine, ScoredRun
from consumer.text import printable

HEADER: Final = (
    "concern_id", "batch_id", "test_id", "archetype", "label", "CR", "AH", "AC", "composite", "output",
    "CR_found", "CR_missing", "AH_violations", "AC_found", "AC_missing", "CR_terms", "AH_terms", "AC_terms",
)  # fmt: skip
"""The first row of each such table; SAFE recognises its own tables by it."""


def render_csv(run: ScoredRun) -> str:
    """Give a row for each case, in the order of the report; several terms in a cell are separated by "; "."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(HEADER)
    concern_id = cell(run.report["concern_id"])
    writer.writerows((concern_id, *_cells(case)) for case in run.cases)
    return file.getvalue()


def _cells(case: CaseLine) -> Iterable[str]:
    row = case.row
    yield from map(cell, (case.batch_id, case.test_id, row.archetype or ""))
    yield row.label
    yield from map(repr, row.scores)
    yield output_state(case)
    # Each term by itself: where a spreadsheet splits at semicolons, each becomes a cell.
    yield from ("; ".join(map(cell, terms)) for terms in row.details)
    yield from map(str, row.terms)


def output_state(case: CaseLine) -> str:
    """Say whether the case was answered."""
    if not case.answered:
        return "missing"
    return "empty" if case.row.empty_output else "answered"


# Excel and others take such a cell for a formula, some also behind spaces or in full-width characters.
_FORMULA: Final = re.compile(r"\s*[=+\-@＝＋－＠]")


def cell(text: str) -> str:
    """Make a text from outside safe in a cell: nothing invisible, and nothing that a spreadsheet would run."""
    text = printable(text)  # leaves no tab and no carriage return to begin with
    return f"'{text}" if _FORMULA.match(text) else text
