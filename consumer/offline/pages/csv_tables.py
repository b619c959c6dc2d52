"""Tables for a spreadsheet (RFC 4180): a row for each case, or for each term of each case."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from consumer.offline.scored_run import CaseLine, ScoredRun
from consumer.text import printable, quoted
from safe_core import UNKNOWN_ARCHETYPE, Criterion
from safe_core.diagnosis import Miss, miss_document
from safe_core.lenient_scores import RECALLED
from safe_core.near_violations import near_document
from safe_core.unsupported import unsupported_document

CASES: Final = (
    "concern_id", "batch_id", "test_id", "archetype", "label", "CR", "AH", "AC", "composite", "output",
    "CR_found", "CR_missing", "AH_violations", "AC_found", "AC_missing", "CR_terms", "AH_terms", "AC_terms",
    "input_matches", "doubtful_hits", "vacuous", "near_violations",
    "CR_lenient", "AC_lenient", "CR_coverage", "AC_coverage", "unsupported",
)  # fmt: skip
MISS_COLUMNS: Final = ("output_says", "narrative_says", "verbatim", "share", "remedy", "row", "evidence")
NEAREST: Final = "nearest"
"""The narrative's own value next to an unsupported one; the other columns tell such a value as they do a term."""
TERMS: Final = (
    "concern_id", "batch_id", "test_id", "archetype", "label", "output", "input_matches",
    "criterion", "term", "outcome", "doubtful", "verdict", "kind", "in_narrative", "field", "element", "start", "end",
    *MISS_COLUMNS, NEAREST,
)  # fmt: skip
"""The first rows. What `--explain` adds is empty without it."""
EXPLAINED: Final = (
    "batch_id", "test_id", "label", "output",
    "criterion", "term", "verdict", "kind", "in_narrative", "field", "element", "start", "end", "similarity",
    "missing_words", "also_in", "outcome", "doubtful", "decided", "in_other_words", *MISS_COLUMNS, NEAREST,
)  # fmt: skip
"""The first row of `safe explain`; with texts, they are one column more."""
FIRST_COLUMNS: Final = (",".join(CASES[:18]), ",".join(TERMS[:18]), ",".join(EXPLAINED[:18]))
"""How a table of SAFE begins, also one of an earlier version that had fewer columns."""
BYTE_ORDER_MARK: Final = "\ufeff"
"""Without it at the beginning, Excel takes UTF-8 for the code page of the machine."""
_FORMATS: Final = frozenset({"csv", "terms"})


def marked(text: str, format_: str, *, bom: bool) -> str:
    """Put a byte order mark before a table, if it is asked for and the format is one."""
    return BYTE_ORDER_MARK + text if bom and format_ in _FORMATS else text


def unneeded_mark(formats: Iterable[str], *, bom: bool) -> Iterator[str]:
    """Say so if a byte order mark is asked for, but no table is."""
    if bom and _FORMATS.isdisjoint(formats):
        yield "--bom changes nothing: only csv has a byte order mark"


def render_csv(run: ScoredRun) -> str:
    """Give a row for each case, in the order of the report; several terms in a cell are separated by "; "."""
    concern_id = cell(run.report["concern_id"])
    return csv_text([CASES, *((concern_id, *_of_case(case)) for case in run.cases)])


def render_terms(run: ScoredRun) -> str:
    """Give the rows in the order of the report's cases and their lists; forbidden terms that were avoided are last.

    Behind the terms of a case follow its near violations and unsupported values.
    """
    concern_id = cell(run.report["concern_id"])
    return csv_text([TERMS, *((concern_id, *row) for case in run.cases for row in _of_terms(run, case))])


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """Give a table as text."""
    file = io.StringIO()
    csv.writer(file).writerows(rows)
    return file.getvalue()


# Excel and others take such a cell for a formula, some also behind spaces or in full-width characters.
_FORMULA: Final = re.compile(r"\s*[=+\-@＝＋－＠]")


def cell(text: str) -> str:
    """Make a text from outside safe in a cell: nothing invisible, and nothing that a spreadsheet would run."""
    text = printable(text)  # leaves no tab and no carriage return to begin with
    return f"'{text}" if _FORMULA.match(text) else text


def _named(case: CaseLine) -> Iterator[str]:
    yield from map(cell, (case.batch_id, case.test_id, case.archetype or UNKNOWN_ARCHETYPE))
    yield case.label


def _output_state(case: CaseLine) -> str:
    if case.generation != "answered":
        return "missing" if case.generation is None else "failed"
    return "empty" if case.row.empty_output else "answered"


_MATCHES: Final = {True: "yes", False: "no", None: ""}


def _of_case(case: CaseLine) -> Iterator[str]:
    yield from _named(case)
    yield from map(repr, case.row.scores)
    yield _output_state(case)
    # Each term by itself: where a spreadsheet splits at semicolons, each becomes a cell.
    yield from ("; ".join(map(cell, terms)) for terms in case.row.details)
    yield from map(str, case.row.terms)
    yield _MATCHES[case.input_matches]
    yield str(len(case.doubtful))
    yield "; ".join(name for name, is_vacuous in case.row.vacuous._asdict().items() if is_vacuous)
    yield "; ".join(cell(near.term) for near in case.near)
    marks = {} if case.lenient is None else case.lenient.marks.document
    yield from (repr(marks[name][each]) if marks else "" for name in ("lenient", "coverage") for each in RECALLED)
    yield "; ".join(cell(value.text) for value in case.unsupported if value.kind == "nowhere")


def _of_terms(run: ScoredRun, case: CaseLine) -> Iterator[tuple[str, ...]]:
    start = *_named(case), _output_state(case), _MATCHES[case.input_matches]
    explanation = run.explanation_of(case)
    told = () if explanation is None else explanation.diagnosis.misses
    misses: dict[tuple[Criterion, str], Miss] = {(miss.criterion, miss.term): miss for miss in told}
    doubtful = {(hit.criterion, hit.term): hit.kind for hit in case.doubtful}
    for criterion, outcome, terms in (*case.outcomes, ("AH", "avoided", case.avoided)):
        for term in terms:
            miss = misses.get((criterion, term)) if outcome == "missing" else None
            doubt = doubtful.get((criterion, term), "") if outcome != "missing" else ""
            yield *start, criterion, cell(term), outcome, doubt, *_told({} if miss is None else miss_document(miss))
    for beside in beside_terms(case):
        yield *start, beside["criterion"], cell(beside["term"]), beside["outcome"], "", *_told(beside)


def beside_terms(case: CaseLine) -> Iterator[dict[str, Any]]:
    """Give what the rows behind those of the terms tell: near violations, then unsupported values."""
    for near in case.near:
        yield near_document(near) | {"criterion": near.criterion, "outcome": "near"}
    for value in case.unsupported:
        yield unsupported_document(value) | {"criterion": "", "outcome": "unsupported", "term": value.text}


def _told(document: dict[str, Any]) -> Iterator[str]:
    if "evidence" in document:
        document["evidence"] = evidence_in_words(document["evidence"])
    for name in TERMS[11:]:
        value = document.get(name)
        yield "" if value is None else cell(str(value))


def evidence_in_words(evidence: Iterable[Mapping[str, Any]]) -> str:
    """List places that decide, as "output signals[0] 0-19; narrative 5-30", with their texts where they have any."""
    listed = []
    for each in evidence:
        element = "" if each["element"] is None else f"[{each['element']}]"
        field = "" if each["field"] is None else f" {each['field']}{element}"
        text = f" {quoted(each['text'])}" if "text" in each else ""
        listed.append(f"{each['side']}{field} {each['start']}-{each['end']}{text}")
    return "; ".join(listed)
