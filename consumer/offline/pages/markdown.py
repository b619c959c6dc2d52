"""The report as a Markdown page in GitHub's flavour: the verdict first, then the evidence."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from typing import Final

from consumer.offline.pages import report_content as content
from consumer.offline.pages.markdown_parts import (
    Part,
    Section,
    fitted,
    left_out,
    literal,
    mark,
    table_head,
    table_row,
    table_rows,
)
from consumer.offline.pages.numbers import BRACKETS, pass_rate, percent, score
from consumer.offline.scored_run import CaseLine, Explanation, ScoredRun
from consumer.text import count_of
from safe_core import LABELS, Label


def render_markdown(run: ScoredRun, *, max_bytes: int | None = None) -> str:
    """Give the page; if it would take more than `max_bytes` of UTF-8, leave out some details and say so.

    First to go are the passing cases, last the verdict with the totals; where not even these fit, the text is empty.
    """
    top, sections = _top(run), list(_sections(run))
    if max_bytes is None:
        return fitted(top, sections)
    pages = fitted(top, sections, max_bytes), top + left_out(["all else"]), f"{mark('report')}\n{_verdict(run)}\n"
    return next((page for page in pages if len(page.encode()) <= max_bytes), "")


# --- the page ---------------------------------------------------------------------------------------------------------


class _Kind(Enum):
    """What a part of the page is, and how to say that some are left out; the first kinds are kept longest."""

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


_FURTHER: Final = 100
"""From this number on, archetypes and inputs are of less interest than cases."""


def _top(run: ScoredRun) -> str:
    """Give what is never left out."""
    report, summary = run.report, run.report["summary"]
    total, counts = summary["total_cases"], [summary[label.lower()] for label in LABELS]
    ceiling = content.ceiling(report)
    parts = [
        f"{mark('report')}\n# SAFE v0: concern {literal(report['concern_id'])}, batch {literal(report['batch_id'])}\n",
        f"{_verdict(run)}\n",
        *([f"Gate: {literal(run.decision)}\n"] if run.decision is not None else []),
        *([f"Ceiling: {ceiling}.\n"] if ceiling else []),
        table_head("Cases", "Pass", "Review", "Fail", texts=0)
        + table_row(str(total), *(f"{count} ({percent(count / total)})" for count in counts)),
        f"{BRACKETS} {content.confidentiality('report')}\n",
    ]
    return "\n".join(parts)


def _verdict(run: ScoredRun) -> str:
    summary = run.report["summary"]
    total, passed = summary["total_cases"], summary["pass"]
    counts = f"{summary['fail']} Fail, {summary['review']} Review, {passed} Pass"
    return f"**{run.verdict}**: {count_of(total, 'case')}, of these {counts}; pass rate {pass_rate(passed, total)}."


def _sections(run: ScoredRun) -> Iterator[Section]:
    """Yield the sections in the order of the page."""
    report = run.report
    table, by_batch = content.criteria(report), run.has_batches
    yield Section(
        f"\n## Criteria\n\n{table_head(*table.headings, texts=table.texts)}",
        [Part(_Kind.CRITERIA, "".join(table_rows(table)))],
    )
    yield _lenient(content.lenient(report))
    yield _tabled("\n## By archetype\n", content.archetypes(report), _Kind.ARCHETYPE, _Kind.FURTHER_ARCHETYPE)
    for heading, label, kind, terms_kind in _LISTED:
        parts = []
        for case in run.labelled(label):
            parts.append(Part(kind, _case_line(case, by_batch=by_batch)))
            parts.append(Part(terms_kind, "".join(_lost(case, run.explanation_of(case))), below=True))
        yield Section(f"\n## {heading}\n\n", parts)
    yield _passing(run.labelled("Pass"))
    yield _tabled("\n## Most often missed or used\n", content.most_frequent_terms(report), _Kind.MISS)
    yield _bullets("Worth knowing", (*content.why_missed(run), *content.worth_knowing(run)), _Kind.REMARK)
    yield _bullets("How it was made", content.how_made(report), _Kind.MAKING)
    yield _tabled("", content.inputs(report), _Kind.INPUT, _Kind.FURTHER_INPUT)


def _lenient(table: content.Table) -> Section:
    section = _tabled(f"\n## {table.caption}\n", table, _Kind.CRITERIA)
    return replace(section, closing=f"\n{content.LENIENT}\n")


def _tabled(heading: str, table: content.Table, kind: _Kind, further: _Kind | None = None) -> Section:
    """Give a table as a section whose parts are its rows; those beyond the first hundred have the kind `further`."""
    kinds = (kind if further is None or number < _FURTHER else further for number in range(len(table.rows)))
    return Section(
        f"{heading}\n{table_head(*table.headings, texts=table.texts)}", [*map(Part, kinds, table_rows(table))]
    )


def _bullets(heading: str, sentences: Iterable[content.Sentence], kind: _Kind) -> Section:
    return Section(f"\n## {heading}\n\n", [Part(kind, f"- {each.written(literal)}\n") for each in sentences])


_LISTED: Final[tuple[tuple[str, Label, _Kind, _Kind], ...]] = (
    ("Failing cases", "Fail", _Kind.FAILING, _Kind.FAILING_TERMS),
    ("Cases to review", "Review", _Kind.TO_REVIEW, _Kind.TO_REVIEW_TERMS),
)


def _lost(case: CaseLine, explanation: Explanation | None) -> Iterator[str]:
    for criterion, how, terms in content.lost_terms(case, explanation):
        yield f"  - {criterion} {how}: {', '.join(term.written(literal) for term in terms)}\n"


def _case_line(case: CaseLine, *, by_batch: bool) -> str:
    named = [literal(case.archetype)] if case.archetype is not None else []
    if by_batch:
        named.append(f"batch {literal(case.batch_id)}")
    about = f" ({', '.join(named)})" if named else ""
    results = list(_scores(case))
    if nothing := content.about_output(case):
        results.append(f"**{nothing}**")
    return f"- {literal(case.test_id)}{about}: {', '.join(results)}\n"


def _scores(case: CaseLine) -> Iterator[str]:
    for judged in case.judged:
        value, beside = content.score_of(judged), content.lenient_of(case, judged.criterion)
        marked = f"**{value}** below {judged.missed}" if judged.missed else value
        yield f"{judged.criterion} {marked}" + (f" ({beside})" if beside else "")
    yield f"composite {score(case.row.scores.composite)}"


def _remark(case: CaseLine) -> str:
    return f": **{about}**" if (about := content.about_output(case)) else ""


def _passing(cases: Sequence[CaseLine]) -> Section:
    opening = f"\n<details>\n<summary>{count_of(len(cases), 'passing case')}</summary>\n\n"
    parts = [Part(_Kind.PASSING, f"- {literal(case.test_id)}{_remark(case)}\n") for case in cases]
    return Section(opening, parts, closing="\n</details>\n")
