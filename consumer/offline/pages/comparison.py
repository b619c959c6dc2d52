"""A comparison in words: lines for a console, and a Markdown page made for a pull request; the verdict first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from consumer.offline.compare import ONE_RUN_EACH, Change, Comparison, Side, remarks
from consumer.offline.pages.markdown import literal, table_row
from consumer.offline.pages.numbers import BRACKETS, pass_rate, score
from consumer.offline.pages.report_content import confidentiality
from consumer.offline.scored_run import LABELS
from consumer.text import count_of, printable
from safe_core import Criterion, Scores

MARK: Final = "<!-- SAFE v0 comparison -->"
"""The first line of each such page; by it SAFE knows its own."""

COMMENT_BYTES: Final = 65_536
"""What GitHub takes as the text of a pull request or a comment at most (it counts characters)."""


# --- said alike on both -----------------------------------------------------------------------------------------------


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
    """Give two scores, as exactly as it takes to tell them apart."""
    texts = score(before), score(after)
    return texts if before == after or texts[0] != texts[1] else (repr(before), repr(after))


def _tests(comparison: Comparison) -> Iterator[str]:
    gained, lost = comparison.gained_and_lost
    rose, fell = len(comparison.rose), len(comparison.fell)
    yield f"Labels: {rose} rose, {fell} fell; {_p(comparison.sign_test_p)} (exact sign test, two-sided)"
    yield f"Pass: {gained} gained, {lost} lost; {_p(comparison.mcnemar_p)} (exact McNemar test, two-sided)"


def _p(value: float) -> str:
    return f"p = {value:.3f}" if value >= 0.001 else "p < 0.001"


class _Words(NamedTuple):
    lost: str
    won: str


_FOUND: Final = _Words("newly missed", "newly found")
_WORDS: Final[Mapping[Criterion, _Words]] = {"CR": _FOUND, "AH": _Words("newly used", "no longer used"), "AC": _FOUND}


def _term_totals(comparison: Comparison) -> str:
    told = (
        f"{criterion} {lost} {_WORDS[criterion].lost}, {won} {_WORDS[criterion].won}"
        for criterion, lost, won in comparison.terms
    )
    return f"Terms: {'; '.join(told)}"


def _terms(case: Change) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what happened to terms of a case, as "CR newly missed", and the terms."""
    for criterion, lost, won in case.terms:
        words = _WORDS[criterion]
        yield from ((f"{criterion} {what}", terms) for what, terms in ((words.lost, lost), (words.won, won)) if terms)


def _labels(case: Change, arrow: str) -> str:
    before, after = case.before.label, case.after.label
    return before if before == after else f"{before} {arrow} {after}"


def _scores(case: Change, arrow: str) -> Iterator[str]:
    for name in Scores._fields:
        before, after = getattr(case.before.scores, name), getattr(case.after.scores, name)
        if before != after:
            yield f"{name} {f' {arrow} '.join(_pair(before, after))}"


def _lots(comparison: Comparison) -> tuple[tuple[str, Sequence[Change]], ...]:
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
        yield f"  ! {remark.written(_quoted)}"
    yield ""
    yield from _columns([("common cases", "base", "new", "difference"), *_measures(comparison)])
    yield ""
    yield from _tests(comparison)
    yield _term_totals(comparison)
    for heading, cases in _lots(comparison):
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
        yield from (f"    {what:17}  {_quoted(term)}" for term in terms)


def _quoted(text: str) -> str:
    return f'"{printable(text)}"'


# --- Markdown ---------------------------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    """A case of a list, and below it the terms, which are the first to go where room is short."""

    line: str
    terms: str


def comparison_markdown(
    comparison: Comparison, decision: str | None = None, *, max_bytes: int | None = COMMENT_BYTES
) -> str:
    """Give the page; of lists that would take it beyond `max_bytes` of UTF-8 it says how much is left out."""
    page = "\n".join(_top(comparison, decision))
    for number, (heading, cases) in enumerate(_lots(comparison)):
        room = None if max_bytes is None else max_bytes - len(page.encode())
        page += _section(heading, [_entry(case) for case in cases], room, folded=number == 2)
    return page


def _top(comparison: Comparison, decision: str | None) -> Iterator[str]:
    """Yield what is there however short the page must be, block by block."""
    yield f"{MARK}\n# SAFE v0: comparison for concern {literal(comparison.new.concern_id)}\n"
    yield f"**{verdict(comparison)}**: {_summary(comparison)}\n"
    if decision is not None:
        yield f"Gate: {literal(decision)}\n"
    warned = [f"- **Attention**: {remark.written(literal)}\n" for remark in remarks(comparison)]
    if warned:
        yield "".join(warned)
    heads = table_row("Common cases", "Base", "New", "Difference") + table_row("---", "---:", "---:", "---:")
    yield heads + "".join(table_row(*row) for row in _measures(comparison))
    sides = (("Base", comparison.base), ("New", comparison.new))
    told = (*(f"{which}: {literal(side.name)}, {_counts(side)}" for which, side in sides), *_tests(comparison))
    yield "".join(f"- {line}\n" for line in (*told, _term_totals(comparison)))
    yield f"{BRACKETS} {ONE_RUN_EACH} {confidentiality('page')}\n"


def _entry(case: Change) -> _Entry:
    line = f"- {literal(case.test_id)}: {', '.join([_labels(case, '→'), *_scores(case, '→')])}\n"
    terms = (f"  - {what}: {', '.join(map(literal, terms))}\n" for what, terms in _terms(case))
    return _Entry(line, "".join(terms))


_TOLD_BYTES: Final = 120
"""Kept free for the line on what is left out."""


def _section(heading: str, entries: Sequence[_Entry], room: int | None, *, folded: bool) -> str:
    """Give the list of a lot of cases, as much of it as there is room for; nothing where not even that can be said."""
    if not entries:
        return ""
    title = f"{heading} ({len(entries)})"
    opening = f"\n<details>\n<summary>{title}</summary>\n\n" if folded else f"\n## {title}\n\n"
    closing = "\n</details>\n" if folded else ""
    if room is None:
        return opening + "".join(entry.line + entry.terms for entry in entries) + closing
    left = room - len((opening + closing).encode()) - _TOLD_BYTES
    return opening + _fitted(entries, left) + closing if left >= 0 else ""


def _fitted(entries: Iterable[_Entry], room: int) -> str:
    """Give the entries that fit, or their lines alone, and say how many are not there whole."""
    texts, cases, terms = [], 0, 0
    for entry in entries:
        whole = entry.line + entry.terms
        text = next((text for text in (whole, entry.line) if len(text.encode()) <= room), "")
        cases += not text
        terms += text == entry.line != whole
        room -= len(text.encode())
        texts.append(text)
    missing = [(cases, count_of(cases, "case")), (terms, f"the terms of {count_of(terms, 'case')}")]
    said = " and ".join(what for count, what in missing if count)
    return "".join(texts) + (f"\n_Left out for want of room: {said}._\n" if said else "")
