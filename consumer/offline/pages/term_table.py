"""The terms as a table for a spreadsheet (RFC 4180): a row for each term that was found, missed or used."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Final

from consumer.offline.pages.csv_table import cell, output_state
from consumer.offline.scored_run import CaseLine, ScoredRun
from safe_core import Criterion
from safe_core.diagnosis import Miss

HEADER: Final = (
    "concern_id", "batch_id", "test_id", "archetype", "label", "output", "input_matches",
    "criterion", "term", "outcome", "doubtful", "verdict", "kind", "in_narrative", "field", "element", "start", "end",
)  # fmt: skip
"""The first row of each such table. What `--explain` adds is empty without it."""


def render_terms(run: ScoredRun) -> str:
    """Give the rows in the order of the report's cases and their lists; forbidden terms only where they were used."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(HEADER)
    concern_id = cell(run.report["concern_id"])
    writer.writerows((concern_id, *row) for case in run.cases for row in _rows(run, case))
    return file.getvalue()


def _rows(run: ScoredRun, case: CaseLine) -> Iterator[tuple[str, ...]]:
    matches = {True: "yes", False: "no", None: ""}[case.input_matches]
    start = *map(cell, (case.batch_id, case.test_id, case.archetype or "")), case.label, output_state(case), matches
    explanation = run.explanation_of(case)
    told = () if explanation is None else explanation.diagnosis.misses
    misses: dict[tuple[Criterion, str], Miss] = {(miss.criterion, miss.term): miss for miss in told}
    doubtful = {(hit.criterion, hit.term): hit.kind for hit in case.doubtful}
    for criterion, outcome, terms in _outcomes(case):
        for term in terms:
            miss = misses.get((criterion, term)) if outcome == "missing" else None
            doubt = doubtful.get((criterion, term), "") if outcome == "found" else ""
            yield *start, criterion, cell(term), outcome, doubt, *_told(miss)


def _outcomes(case: CaseLine) -> Iterator[tuple[Criterion, str, Iterable[str]]]:
    details = case.row.details
    yield "CR", "found", details.cr_found
    yield "CR", "missing", details.cr_missing
    yield "AH", "used", details.ah_violations
    yield "AC", "found", details.ac_found
    yield "AC", "missing", details.ac_missing


def _told(miss: Miss | None) -> tuple[str, ...]:
    if miss is None:
        return ("",) * 7
    place = ("",) * 4
    if miss.passage is not None:
        element = "" if miss.passage.element is None else str(miss.passage.element)
        place = (miss.passage.field, element, str(miss.passage.start), str(miss.passage.end))
    return miss.verdict, miss.kind, miss.in_narrative, *place
