"""A comparison as lines for a console, as a Markdown page made for a pull request, and as HTML; the verdict first."""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Final

from consumer.files.json_text import json_text
from consumer.offline.compare import Change, Comparison, NotJudged
from consumer.offline.destinations import Format
from consumer.offline.pages import comparison_content as content
from consumer.offline.pages.console_layout import columns
from consumer.offline.pages.html_parts import page
from consumer.offline.pages.markdown_parts import Part, Section, fitted, literal, mark, table
from consumer.offline.pages.numbers import BRACKETS
from consumer.offline.pages.report_content import confidentiality
from consumer.text import printable, quoted

COMMENT_BYTES: Final = 65_536
"""The most that GitHub accepts as the text of a pull request or a comment (it counts characters)."""


def _named(comparison: Comparison, case: Change | NotJudged, escaped: Callable[[str], str]) -> str:
    batch = f" (batch {escaped(case.batch_id)})" if comparison.has_batches and case.batch_id is not None else ""
    return escaped(case.test_id) + batch


# --- the console ------------------------------------------------------------------------------------------------------


def console_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the lines for a console."""
    yield f"{content.headline(comparison)}: {content.summary(comparison)}"
    for which, side in (("base", comparison.base), ("new ", comparison.new)):
        yield f"  {which}  {printable(side.name)}, {content.counts(side)}"
    for remark in content.remarks(comparison):
        yield f"  ! {remark.written(quoted)}"
    yield ""
    for numbers in (content.measures(comparison), content.tests(comparison)):
        yield from columns([[f"{heading[0].lower()}{heading[1:]}" for heading in numbers.headings], *numbers.rows])
        yield ""
    yield from (content.passes(comparison), content.term_totals(comparison))
    yield from _listed_lines(comparison)
    yield from ("", BRACKETS, content.ONE_RUN_EACH)
    if comparison.decision is not None:
        yield printable(comparison.decision)


def _listed_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the lists of cases, those of what is newly listed first."""
    for listing in content.newly_listed(comparison):
        yield from ("", f"{listing.heading} ({len(listing.cases)}):")
        for changed, texts in listing.cases:
            yield f"  {_named(comparison, changed, printable)}: {', '.join(map(quoted, texts))}"
    for heading, cases, *_ in content.lists(comparison):
        if cases:
            yield from ("", f"{heading} ({len(cases)}):")
        for case in cases:
            yield from _lines(comparison, case)


def _lines(comparison: Comparison, case: Change | NotJudged) -> Iterator[str]:
    name = _named(comparison, case, printable)
    if isinstance(case, NotJudged):
        yield f"  {name}, {content.why_not(case)}"
        return
    yield ", ".join([f"  {content.labels(case, '->')}  {name}", *content.scores(case, "->")])
    for what, terms in content.terms_of(case):
        yield from (f"    {what:19}  {quoted(term)}" for term in terms)


# --- Markdown ---------------------------------------------------------------------------------------------------------


class _Kind(Enum):
    """What a part of the page is, and how to say that some are left out; the first kinds are kept longest."""

    LOST = "{} lost cases"
    LISTED = "{} cases with near violations or unsupported values that are new"
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
    (_Kind.LOST,),
    (_Kind.WORSE, _Kind.WORSE_TERMS),
    (_Kind.LOWER, _Kind.LOWER_TERMS),
    (_Kind.BETTER, _Kind.BETTER_TERMS),
    (_Kind.HIGHER, _Kind.HIGHER_TERMS),
    (_Kind.MOVED, _Kind.MOVED_TERMS),
    (_Kind.NOT_JUDGED,),
)
"""The kinds of parts in each list: the cases and, where they are judged, their terms."""


def comparison_markdown(comparison: Comparison, *, max_bytes: int | None = COMMENT_BYTES) -> str:
    """Give the page; what would take it beyond `max_bytes` of UTF-8 is left out, but never the part above the lists."""
    return fitted("\n".join(_top(comparison)), [*_sections(comparison)], max_bytes)


def _top(comparison: Comparison) -> Iterator[str]:
    """Yield what is never left out, block by block."""
    yield f"{mark('comparison')}\n# SAFE v0: comparison for concern {literal(comparison.new.concern_id)}\n"
    yield f"**{content.headline(comparison)}**: {content.summary(comparison)}\n"
    if comparison.decision is not None:
        yield f"Gate: {literal(comparison.decision)}\n"
    warned = [f"- **Attention**: {remark.written(literal)}\n" for remark in content.remarks(comparison)]
    if warned:
        yield "".join(warned)
    yield from (table(content.measures(comparison)), table(content.tests(comparison)))
    sides = (("Base", comparison.base), ("New", comparison.new))
    reports = (f"{which}: {literal(side.name)}, {content.counts(side)}" for which, side in sides)
    facts = (*reports, content.passes(comparison), content.term_totals(comparison))
    yield "".join(f"- {line}\n" for line in facts)
    yield f"{BRACKETS} {content.ONE_RUN_EACH} {confidentiality('page')}\n"


def _sections(comparison: Comparison) -> Iterator[Section]:
    for heading, listing in content.newly_listed(comparison):
        lines = (
            f"- {_named(comparison, case, literal)}: {', '.join(map(literal, texts))}\n" for case, texts in listing
        )
        yield Section(f"\n## {heading} ({len(listing)})\n\n", [Part(_Kind.LISTED, line) for line in lines])
    for (heading, cases, is_folded, _), kinds in zip(content.lists(comparison), _KINDS, strict=True):
        title = f"{heading} ({len(cases)})"
        parts = [
            Part(kind, text, below=kind is not kinds[0])
            for case in cases
            for kind, text in zip(kinds, _items(comparison, case), strict=True)
            if text
        ]
        if is_folded:
            yield Section(f"\n<details>\n<summary>{title}</summary>\n\n", parts, "\n</details>\n")
        else:
            yield Section(f"\n## {title}\n\n", parts)


def _items(comparison: Comparison, case: Change | NotJudged) -> Iterator[str]:
    """Yield the line of a case and, where it is judged, the lines of its terms."""
    name = _named(comparison, case, literal)
    if isinstance(case, NotJudged):
        yield f"- {name}: {content.why_not(case)}\n"
        return
    yield f"- {name}: {', '.join([content.labels(case, '→'), *content.scores(case, '→')])}\n"
    yield "".join(f"  - {what}: {', '.join(map(literal, terms))}\n" for what, terms in content.terms_of(case))


# --- the formats ------------------------------------------------------------------------------------------------------


def comparison_html(comparison: Comparison) -> str:
    """Give the HTML page; it loads nothing, and opens from disk."""
    return page("comparison.html.j2", "comparison", ["report.css"], comparison=comparison, words=content)


RENDERED: Final[Mapping[Format, Callable[[Comparison], str]]] = {
    "console": lambda comparison: "".join(f"{line}\n" for line in console_lines(comparison)),
    "json": lambda comparison: json_text(comparison.document()),
    "markdown": comparison_markdown,
    "html": comparison_html,
}
"""Each format, and what makes it."""
