"""The report as a Markdown page in GitHub's flavour: the verdict first, then the evidence.

A text from outside stands in a code span, where neither Markdown nor GitHub looks for anything. Elsewhere GitHub finds
mentions, issues, addresses, formulas and emoji in the finished page, whatever was escaped.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from consumer.offline.pages.numbers import BRACKETS, pass_rate, percent, score
from consumer.offline.pages.report_content import (
    Table,
    archetypes,
    confidentiality,
    criteria,
    how_made,
    inputs,
    lost_terms,
    most_frequent_terms,
    score_of,
    why_missed,
    without_output,
    worth_knowing,
)
from consumer.offline.scored_run import CaseLine, Explanation, ScoredRun
from consumer.text import count_of, printable
from safe_core import Label

MARK: Final = "<!-- SAFE v0 report -->"
"""The first line of each such page; by it SAFE knows its own."""


def render_markdown(run: ScoredRun, *, max_bytes: int | None = None) -> str:
    """Give the page; where it would take more than `max_bytes` of UTF-8, without some detail, and saying so.

    First to go are the passing cases, last the verdict with the totals; where not even these fit, the text is empty.
    """
    top = _top(run)
    sections = list(_sections(run))
    page = top + "".join(section.text() for section in sections)
    if max_bytes is None or _size(page) <= max_bytes:
        return page
    shorter = _shortened(top, sections, max_bytes), top + _left_out(["all else"]), f"{MARK}\n{_verdict(run)}\n"
    return next((text for text in shorter if _size(text) <= max_bytes), "")


# --- Markdown ---------------------------------------------------------------------------------------------------------


def literal(text: str) -> str:
    """Give a code span that shows a text from outside as it is."""
    text = printable(text)
    taken = set(map(len, _BACKTICKS.findall(text)))
    fence = "`" * next(length for length in range(1, len(taken) + 2) if length not in taken)
    # A backtick must not touch the fence; and Markdown takes one space from each end if both have one.
    ends = text[:1] + text[-1:]
    edge = " " if "`" in ends or (ends == "  " and text.strip(" ")) else ""
    return f"{fence}{edge}{text}{edge}{fence}"


_BACKTICKS: Final = re.compile("`+")


def table_row(*cells: str) -> str:
    """Give a row of a table, where a bar parts cells even within a code span, unless it is escaped."""
    escaped = (cell.replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(escaped)} |\n"


def _head(*headings: str, texts: int) -> str:
    """Give the head of a table, whose columns of numbers, those after the texts, are set to the right."""
    rules = ["---" if column < texts else "---:" for column in range(len(headings))]
    return table_row(*headings) + table_row(*rules)


def _size(text: str) -> int:
    return len(text.encode())


# --- a page with less on it -------------------------------------------------------------------------------------------


class _Kind(Enum):
    """What a piece of the page is, and how the loss of some is told; those of the first kinds stay longest."""

    CRITERIA = "{} tables of criteria"
    REMARK = "{} remarks"
    MISS = "{} of the terms most often missed"
    MAKING = "{} lines on how it was made"
    ARCHETYPE = "{} archetypes"
    INPUT = "{} inputs"
    FAILING = "{} failing cases"
    TO_REVIEW = "{} cases to review"
    FAILING_TERMS = "the terms of {} failing cases"
    TO_REVIEW_TERMS = "the terms of {} cases to review"
    FURTHER_ARCHETYPE = "{} further archetypes"
    FURTHER_INPUT = "{} further inputs"
    PASSING = "{} passing cases"


_RANKS: Final = {kind: rank for rank, kind in enumerate(_Kind)}
_FURTHER: Final = 100
"""From this number on, archetypes and inputs are of less interest than cases."""


class _Piece(NamedTuple):
    """A line or more of a section; one that is `below` says nothing without the piece before it."""

    kind: _Kind
    text: str
    below: bool = False


@dataclass(frozen=True, slots=True)
class _Section:
    """Pieces under a heading; without any, it is not there."""

    opening: str
    pieces: Sequence[_Piece]
    closing: str = ""

    def text(self, kept: Collection[int] | None = None) -> str:
        """Give the section with all its pieces, or with those of the numbers kept."""
        texts = [piece.text for number, piece in enumerate(self.pieces) if kept is None or number in kept]
        return self.opening + "".join(texts) + self.closing if texts else ""


def _shortened(top: str, sections: Sequence[_Section], max_bytes: int) -> str:
    """Give the page with as many pieces as fit below the top, those of most interest first."""
    total = Counter(piece.kind for section in sections for piece in section.pieces)
    room = max_bytes - _size(top + _told(total, total))
    kept: list[set[int]] = [set() for _ in sections]
    missing: Counter[_Kind] = Counter()
    for _, place, number in _by_interest(sections):
        section, stays = sections[place], kept[place]
        piece = section.pieces[number]
        size = _size(piece.text if stays else section.opening + piece.text + section.closing)
        if size <= room and (number - 1 in stays or not piece.below):
            stays.add(number)
            room -= size
        else:
            missing[piece.kind] += 1
    return top + _told(missing, total) + "".join(map(_Section.text, sections, kept))


def _by_interest(sections: Sequence[_Section]) -> list[tuple[int, int, int]]:
    """List the rank of each piece, its section's place and its number there, in order."""
    return sorted(
        (_RANKS[piece.kind], place, number)
        for place, section in enumerate(sections)
        for number, piece in enumerate(section.pieces)
    )


def _told(missing: Mapping[_Kind, int], total: Mapping[_Kind, int]) -> str:
    return _left_out(kind.value.format(f"{missing[kind]} of {total[kind]}") for kind in _Kind if missing.get(kind))


def _left_out(things: Iterable[str]) -> str:
    return f"\n_Left out for want of room: {', '.join(things)}._\n"


# --- the page ---------------------------------------------------------------------------------------------------------


def _top(run: ScoredRun) -> str:
    """Give what stays however short the page must be."""
    report, summary = run.report, run.report["summary"]
    total = summary["total_cases"]
    parts = [
        f"{MARK}\n# SAFE v0: concern {literal(report['concern_id'])}, batch {literal(report['batch_id'])}\n",
        f"{_verdict(run)}\n",
        *([f"Gate: {literal(run.decision)}\n"] if run.decision is not None else []),
        _head("Cases", "Pass", "Review", "Fail", texts=0)
        + table_row(str(total), *(f"{count} ({percent(count / total)})" for count in _by_label(summary))),
        f"{BRACKETS} {confidentiality('report')}\n",
    ]
    return "\n".join(parts)


def _by_label(summary: Mapping[str, Any]) -> tuple[int, int, int]:
    return summary["pass"], summary["review"], summary["fail"]


def _verdict(run: ScoredRun) -> str:
    summary = run.report["summary"]
    passed, reviewed, failed = _by_label(summary)
    total = summary["total_cases"]
    counts = f"{count_of(total, 'case')}, of these {failed} Fail, {reviewed} Review, {passed} Pass"
    return f"**{run.verdict}**: {counts}; pass rate {pass_rate(passed, total)}."


def _sections(run: ScoredRun) -> Iterator[_Section]:
    """Yield the sections in the order of the page."""
    report = run.report
    by_batch = len({case.batch_id for case in run.cases}) > 1
    cases: dict[Label, list[CaseLine]] = {"Pass": [], "Review": [], "Fail": []}
    for case in run.cases:
        cases[case.label].append(case)
    table = criteria(report)
    yield _Section(f"\n## Criteria\n\n{_headings(table)}", [_Piece(_Kind.CRITERIA, "".join(_rows(table)))])
    yield _tabled("\n## By archetype\n", archetypes(report), _Kind.ARCHETYPE, _Kind.FURTHER_ARCHETYPE)
    for heading, label, kinds in _LISTED:
        pieces = _evidence(cases[label], kinds, run.explanations or {}, by_batch=by_batch)
        yield _Section(f"\n## {heading}\n\n", [*pieces])
    yield _passing(cases["Pass"])
    yield _tabled("\n## Most often missed or used\n", most_frequent_terms(report), _Kind.MISS)
    remarks = (sentence.written(literal) for sentence in (*why_missed(report), *worth_knowing(run)))
    yield _Section("\n## Worth knowing\n\n", [_Piece(_Kind.REMARK, f"- {text}\n") for text in remarks])
    made = (sentence.written(literal) for sentence in how_made(report))
    yield _Section("\n## How it was made\n\n", [_Piece(_Kind.MAKING, f"- {text}\n") for text in made])
    yield _tabled("", inputs(report), _Kind.INPUT, _Kind.FURTHER_INPUT)


def _tabled(heading: str, table: Table, kind: _Kind, further: _Kind | None = None) -> _Section:
    """Give a table as a section whose pieces are its rows, those beyond the first hundred of a kind of their own."""
    kinds = (kind if further is None or number < _FURTHER else further for number in range(len(table.rows)))
    return _Section(f"{heading}\n{_headings(table)}", [*map(_Piece, kinds, _rows(table))])


def _headings(table: Table) -> str:
    return _head(*table.headings, texts=table.texts)


def _rows(table: Table) -> Iterator[str]:
    for row in table.rows:
        yield table_row(*(literal(cell) if n in table.from_outside else cell for n, cell in enumerate(row)))


_LISTED: Final[tuple[tuple[str, Label, tuple[_Kind, _Kind]], ...]] = (
    ("Failing cases", "Fail", (_Kind.FAILING, _Kind.FAILING_TERMS)),
    ("Cases to review", "Review", (_Kind.TO_REVIEW, _Kind.TO_REVIEW_TERMS)),
)


def _evidence(
    cases: Iterable[CaseLine],
    kinds: tuple[_Kind, _Kind],
    explanations: Mapping[str, Explanation],
    *,
    by_batch: bool,
) -> Iterator[_Piece]:
    """List cases with their scores and the bounds that they missed, and below each the terms that it lost by."""
    for case in cases:
        yield _Piece(kinds[0], _case_line(case, by_batch=by_batch))
        yield _Piece(kinds[1], "".join(_lost(case, explanations.get(case.test_id))), below=True)


def _lost(case: CaseLine, explanation: Explanation | None) -> Iterator[str]:
    for criterion, how, terms in lost_terms(case, explanation):
        listed = (literal(term) + ("" if remark is None else f" ({remark})") for term, remark in terms)
        yield f"  - {criterion} {how}: {', '.join(listed)}\n"


def _case_line(case: CaseLine, *, by_batch: bool) -> str:
    named = [literal(case.archetype)] if case.archetype is not None else []
    if by_batch:
        named.append(f"batch {literal(case.batch_id)}")
    about = f" ({', '.join(named)})" if named else ""
    told = list(_scores(case))
    if nothing := without_output(case):
        told.append(f"**{nothing}**")
    return f"- {literal(case.test_id)}{about}: {', '.join(told)}\n"


def _scores(case: CaseLine) -> Iterator[str]:
    for judged in case.judged:
        value = score_of(judged)
        yield (
            f"{judged.criterion} **{value}** below {judged.missed}" if judged.missed else f"{judged.criterion} {value}"
        )
    yield f"composite {score(case.row.scores.composite)}"


def _passing(cases: Sequence[CaseLine]) -> _Section:
    opening = f"\n<details>\n<summary>{count_of(len(cases), 'passing case')}</summary>\n\n"
    pieces = [_Piece(_Kind.PASSING, f"- {literal(case.test_id)}\n") for case in cases]
    return _Section(opening, pieces, closing="\n</details>\n")
