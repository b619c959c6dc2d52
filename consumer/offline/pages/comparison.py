"""A comparison as lines for a console, and as a Markdown page made for a pull request; the verdict first."""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final

from consumer.offline.compare import Change, Comparison, NotJudged
from consumer.offline.pages import comparison_content as content
from consumer.offline.pages.markdown_parts import Part, Section, fitted, literal, table_head, table_row
from consumer.offline.pages.numbers import BRACKETS
from consumer.offline.pages.report_content import confidentiality
from consumer.text import printable, quoted

MARK: Final = "<!-- SAFE v0 comparison -->"
"""The first line of each such page: SAFE recognises its own pages by it."""

FIRST_LINE: Final = re.compile(r"[\w ]{1,60}: of \d+ judged cases?, \d+ got a worse label, ")
"""How the text for a console begins."""

COMMENT_BYTES: Final = 65_536
"""The most that GitHub accepts as the text of a pull request or a comment (it counts characters)."""


# --- the console ------------------------------------------------------------------------------------------------------


def console_lines(comparison: Comparison, decision: str | None = None) -> Iterator[str]:
    """Yield the lines for a console; `decision` is the gate's line where one was asked for."""
    yield f"{content.verdict(comparison)}: {content.summary(comparison)}"
    for which, side in (("base", comparison.base), ("new ", comparison.new)):
        yield f"  {which}  {printable(side.name)}, {content.counts(side)}"
    for remark in content.remarks(comparison):
        yield f"  ! {remark.written(quoted)}"
    yield ""
    yield from _columns([("judged cases", "base", "new", "difference"), *content.measures(comparison)])
    yield ""
    yield from content.tests(comparison)
    yield content.term_totals(comparison)
    yield from _lists(comparison)
    yield from ("", BRACKETS, content.ONE_RUN_EACH)
    if decision is not None:
        yield printable(decision)


def _lists(comparison: Comparison) -> Iterator[str]:
    """Yield the lost cases, those that changed, and the others that are not judged."""
    by_batch = comparison.has_batches
    lost, others = (
        (heading, [[_unjudged_line(case, by_batch=by_batch)] for case in cases])
        for heading, cases in content.not_judged(comparison)
    )
    changed = (
        (heading, [[*_case_lines(case, by_batch=by_batch)] for case in cases])
        for heading, cases, _ in content.lists(comparison)
    )
    for heading, blocks in (lost, *changed, others):
        if blocks:
            yield from ("", f"{heading} ({len(blocks)}):")
        for lines in blocks:
            yield from lines


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *values in rows:
        cells = (value.rjust(width) for value, width in zip(values, widths[1:], strict=True))
        yield f"  {name:{widths[0]}}  {'  '.join(cells)}".rstrip()


def _named(case: Change | NotJudged, *, by_batch: bool) -> str:
    batch = f" (batch {printable(case.batch_id)})" if by_batch and case.batch_id is not None else ""
    return printable(case.test_id) + batch


def _case_lines(case: Change, *, by_batch: bool) -> Iterator[str]:
    name = _named(case, by_batch=by_batch)
    yield ", ".join([f"  {content.labels(case, '->')}  {name}", *content.scores(case, "->")])
    for what, terms in content.terms_of(case):
        yield from (f"    {what:17}  {quoted(term)}" for term in terms)


def _unjudged_line(case: NotJudged, *, by_batch: bool) -> str:
    return f"  {_named(case, by_batch=by_batch)}, {content.why_not(case)}"


# --- Markdown ---------------------------------------------------------------------------------------------------------


class _Kind(Enum):
    """What a part of the page is, and how to say that some are left out; the first kinds are kept longest."""

    LOST = "{} lost cases"
    WORSE = "{} cases with a worse label"
    LOWER = "{} cases with a lower composite"
    WORSE_TERMS = "the terms of {} cases with a worse label"
    LOWER_TERMS = "the terms of {} cases with a lower composite"
    BETTER = "{} cases with a better label"
    BETTER_TERMS = "the terms of {} cases with a better label"
    HIGHER = "{} cases with a higher composite"
    HIGHER_TERMS = "the terms of {} cases with a higher composite"
    NOT_JUDGED = "{} other cases that are not judged"
    MOVED = "{} cases with the same label and composite"
    MOVED_TERMS = "the terms of {} cases with the same label and composite"


_KINDS: Final = (
    (_Kind.WORSE, _Kind.WORSE_TERMS),
    (_Kind.LOWER, _Kind.LOWER_TERMS),
    (_Kind.BETTER, _Kind.BETTER_TERMS),
    (_Kind.HIGHER, _Kind.HIGHER_TERMS),
    (_Kind.MOVED, _Kind.MOVED_TERMS),
)
"""The kinds of parts in each list: the cases, and their terms."""


def comparison_markdown(
    comparison: Comparison, decision: str | None = None, *, max_bytes: int | None = COMMENT_BYTES
) -> str:
    """Give the page; what would take it beyond `max_bytes` of UTF-8 is left out, but never the part above the lists."""
    return fitted("\n".join(_top(comparison, decision)), [*_sections(comparison)], max_bytes)


def _top(comparison: Comparison, decision: str | None) -> Iterator[str]:
    """Yield what is never left out, block by block."""
    yield f"{MARK}\n# SAFE v0: comparison for concern {literal(comparison.new.concern_id)}\n"
    yield f"**{content.verdict(comparison)}**: {content.summary(comparison)}\n"
    if decision is not None:
        yield f"Gate: {literal(decision)}\n"
    warned = [f"- **Attention**: {remark.written(literal)}\n" for remark in content.remarks(comparison)]
    if warned:
        yield "".join(warned)
    heads = table_head("Judged cases", "Base", "New", "Difference", texts=1)
    yield heads + "".join(table_row(*row) for row in content.measures(comparison))
    sides = (("Base", comparison.base), ("New", comparison.new))
    reports = (f"{which}: {literal(side.name)}, {content.counts(side)}" for which, side in sides)
    facts = (*reports, *content.tests(comparison), content.term_totals(comparison))
    yield "".join(f"- {line}\n" for line in facts)
    yield f"{BRACKETS} {content.ONE_RUN_EACH} {confidentiality('page')}\n"


def _sections(comparison: Comparison) -> Iterator[Section]:
    (lost, lost_cases), (others, other_cases) = content.not_judged(comparison)
    by_batch = comparison.has_batches
    yield _section(lost, len(lost_cases), _unjudged_parts(lost_cases, _Kind.LOST, by_batch=by_batch))
    for (heading, cases, is_folded), (kind, terms_kind) in zip(content.lists(comparison), _KINDS, strict=True):
        parts = _parts(cases, kind, terms_kind, by_batch=by_batch)
        yield _section(heading, len(cases), parts, is_folded=is_folded)
    yield _section(others, len(other_cases), _unjudged_parts(other_cases, _Kind.NOT_JUDGED, by_batch=by_batch))


def _section(heading: str, count: int, parts: Iterable[Part], *, is_folded: bool = False) -> Section:
    title = f"{heading} ({count})"
    if is_folded:
        return Section(f"\n<details>\n<summary>{title}</summary>\n\n", [*parts], "\n</details>\n")
    return Section(f"\n## {title}\n\n", [*parts])


def _parts(cases: Iterable[Change], kind: _Kind, terms_kind: _Kind, *, by_batch: bool) -> Iterator[Part]:
    for case in cases:
        scores = ", ".join([content.labels(case, "→"), *content.scores(case, "→")])
        yield Part(kind, f"- {_literal_name(case, by_batch=by_batch)}: {scores}\n")
        terms = "".join(f"  - {what}: {', '.join(map(literal, terms))}\n" for what, terms in content.terms_of(case))
        if terms:
            yield Part(terms_kind, terms, below=True)


def _unjudged_parts(cases: Iterable[NotJudged], kind: _Kind, *, by_batch: bool) -> Iterator[Part]:
    for case in cases:
        yield Part(kind, f"- {_literal_name(case, by_batch=by_batch)}: {content.why_not(case)}\n")


def _literal_name(case: Change | NotJudged, *, by_batch: bool) -> str:
    batch = f" (batch {literal(case.batch_id)})" if by_batch and case.batch_id is not None else ""
    return literal(case.test_id) + batch
