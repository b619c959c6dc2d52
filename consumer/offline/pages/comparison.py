"""A comparison in words: lines for a console, and a Markdown page made for a pull request; the verdict first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final

from consumer.offline.compare import ONE_RUN_EACH, Change, Comparison, Side, remarks
from consumer.offline.pages.markdown_parts import Part, Section, fitted, literal, table_head, table_row
from consumer.offline.pages.numbers import BRACKETS, pass_rate, score
from consumer.offline.pages.report_content import confidentiality
from consumer.offline.scored_run import LABELS
from consumer.text import count_of, printable, quoted
from safe_core import Criterion, Scores

MARK: Final = "<!-- SAFE v0 comparison -->"
"""The first line of each such page: SAFE recognises its own pages by it."""

COMMENT_BYTES: Final = 65_536
"""The most that GitHub accepts as the text of a pull request or a comment (it counts characters)."""


# --- the same words for both ------------------------------------------------------------------------------------------


def verdict(comparison: Comparison) -> str:
    """Give the first words: how many common cases have a worse label."""
    count = comparison.regressions
    return count_of(count, "regression") if count else "No regression"


def _summary(comparison: Comparison) -> str:
    fell, rose, moved = len(comparison.fell), len(comparison.rose), len(comparison.moved)
    total = len(comparison.cases)
    kept = f"{total - fell - rose} kept theirs" + (f" ({moved} with other scores or terms)" if moved else "")
    return f"of {count_of(total, 'common case')}, {fell} got a worse label, {rose} a better one, {kept}."


def _counts(side: Side) -> str:
    total = len(side.results)
    counts = ", ".join(f"{side.labelled(label)} {label}" for label in LABELS)
    return f"{count_of(total, 'case')}: {counts}, pass rate {pass_rate(side.labelled('Pass'), total)}"


def _measures(comparison: Comparison) -> Iterator[tuple[str, str, str, str]]:
    """Yield the rows of the table: a name, the base report's value, the new one's, the difference."""
    total, (before, after) = len(comparison.cases), comparison.passes
    points = _signed(100 * (after - before) / total, 1)
    yield "Pass rate", pass_rate(before, total), pass_rate(after, total), f"{points} points" if after != before else "0"
    for name, base, new in comparison.means:
        yield f"Mean {name}", *_pair(base, new), _signed(new - base, 2)


def _signed(difference: float, places: int) -> str:
    """Give a difference with its sign; what is not 0 never reads as 0."""
    text = f"{difference:+.{places}f}"
    if difference and not float(text):
        return f"{difference:+.0e}"
    return text if difference else "0"


def _pair(before: float, after: float) -> tuple[str, str]:
    """Give two scores; if they differ only beyond two places, give all their digits."""
    texts = score(before), score(after)
    return texts if before == after or texts[0] != texts[1] else (repr(before), repr(after))


def _tests(comparison: Comparison) -> Iterator[str]:
    gained, lost = comparison.gained_and_lost
    rose, fell = len(comparison.rose), len(comparison.fell)
    yield f"Labels: {rose} rose, {fell} fell; {_p(comparison.sign_test_p)} (exact sign test, two-sided)"
    yield f"Pass: {gained} gained, {lost} lost; {_p(comparison.mcnemar_p)} (exact McNemar test, two-sided)"


def _p(value: float) -> str:
    return f"p = {value:.3f}" if value >= 0.001 else "p < 0.001"


_LOST: Final[Mapping[Criterion, str]] = {"CR": "newly missed", "AH": "newly used", "AC": "newly missed"}
_WON: Final[Mapping[Criterion, str]] = {"CR": "newly found", "AH": "no longer used", "AC": "newly found"}


def _term_totals(comparison: Comparison) -> str:
    totals = (f"{name} {lost} {_LOST[name]}, {won} {_WON[name]}" for name, lost, won in comparison.terms)
    return f"Terms: {'; '.join(totals)}"


def _terms(case: Change) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what happened to terms of a case, as "CR newly missed", and the terms."""
    for criterion, lost, won in case.terms:
        changes = ((_LOST[criterion], lost), (_WON[criterion], won))
        yield from ((f"{criterion} {what}", terms) for what, terms in changes if terms)


def _labels(case: Change, arrow: str) -> str:
    before, after = case.before.label, case.after.label
    return before if before == after else f"{before} {arrow} {after}"


def _scores(case: Change, arrow: str) -> Iterator[str]:
    for name in Scores._fields:
        before, after = getattr(case.before.scores, name), getattr(case.after.scores, name)
        if before != after:
            yield f"{name} {f' {arrow} '.join(_pair(before, after))}"


def _lists(comparison: Comparison) -> tuple[tuple[str, Sequence[Change]], ...]:
    return (
        ("Worse label", comparison.fell),
        ("Better label", comparison.rose),
        ("Same label, other scores or terms", comparison.moved),
    )


# --- the console ------------------------------------------------------------------------------------------------------


def console_lines(comparison: Comparison, decision: str | None = None) -> Iterator[str]:
    """Yield the lines for a console; `decision` is the gate's line where one was asked for."""
    yield f"{verdict(comparison)}: {_summary(comparison)}"
    for which, side in (("base", comparison.base), ("new ", comparison.new)):
        yield f"  {which}  {printable(side.name)}, {_counts(side)}"
    for remark in remarks(comparison):
        yield f"  ! {remark.written(quoted)}"
    yield ""
    yield from _columns([("common cases", "base", "new", "difference"), *_measures(comparison)])
    yield ""
    yield from _tests(comparison)
    yield _term_totals(comparison)
    for heading, cases in _lists(comparison):
        if cases:
            yield from ("", f"{heading} ({len(cases)}):")
        for case in cases:
            yield from _case_lines(case)
    yield from ("", BRACKETS, ONE_RUN_EACH)
    if decision is not None:
        yield printable(decision)


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *values in rows:
        cells = (value.rjust(width) for value, width in zip(values, widths[1:], strict=True))
        yield f"  {name:{widths[0]}}  {'  '.join(cells)}".rstrip()


def _case_lines(case: Change) -> Iterator[str]:
    yield ", ".join([f"  {_labels(case, '->')}  {printable(case.test_id)}", *_scores(case, "->")])
    for what, terms in _terms(case):
        yield from (f"    {what:17}  {quoted(term)}" for term in terms)


# --- Markdown ---------------------------------------------------------------------------------------------------------


class _Kind(Enum):
    """What a part of the page is, and how to say that some are left out; the first kinds are kept longest."""

    WORSE = "{} cases with a worse label"
    WORSE_TERMS = "the terms of {} cases with a worse label"
    BETTER = "{} cases with a better label"
    BETTER_TERMS = "the terms of {} cases with a better label"
    MOVED = "{} cases with the same label"
    MOVED_TERMS = "the terms of {} cases with the same label"


_KINDS: Final = (
    (_Kind.WORSE, _Kind.WORSE_TERMS),
    (_Kind.BETTER, _Kind.BETTER_TERMS),
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
    yield f"**{verdict(comparison)}**: {_summary(comparison)}\n"
    if decision is not None:
        yield f"Gate: {literal(decision)}\n"
    warned = [f"- **Attention**: {remark.written(literal)}\n" for remark in remarks(comparison)]
    if warned:
        yield "".join(warned)
    heads = table_head("Common cases", "Base", "New", "Difference", texts=1)
    yield heads + "".join(table_row(*row) for row in _measures(comparison))
    sides = (("Base", comparison.base), ("New", comparison.new))
    facts = (*(f"{which}: {literal(side.name)}, {_counts(side)}" for which, side in sides), *_tests(comparison))
    yield "".join(f"- {line}\n" for line in (*facts, _term_totals(comparison)))
    yield f"{BRACKETS} {ONE_RUN_EACH} {confidentiality('page')}\n"


def _sections(comparison: Comparison) -> Iterator[Section]:
    for (heading, cases), (kind, terms_kind) in zip(_lists(comparison), _KINDS, strict=True):
        title = f"{heading} ({len(cases)})"
        opening, closing = f"\n## {title}\n\n", ""
        if kind is _Kind.MOVED:
            opening, closing = f"\n<details>\n<summary>{title}</summary>\n\n", "\n</details>\n"
        yield Section(opening, [*_parts(cases, kind, terms_kind)], closing)


def _parts(cases: Iterable[Change], kind: _Kind, terms_kind: _Kind) -> Iterator[Part]:
    for case in cases:
        scores = ", ".join([_labels(case, "→"), *_scores(case, "→")])
        yield Part(kind, f"- {literal(case.test_id)}: {scores}\n")
        terms = "".join(f"  - {what}: {', '.join(map(literal, terms))}\n" for what, terms in _terms(case))
        if terms:
            yield Part(terms_kind, terms, below=True)
