"""One case explained on a terminal, or in a pipe: what was missed and why, what was used, what was found and where.

What differs is marked beneath: `-` is expected and not there, `+` is there and not expected, `^` points at a term.
Colour only repeats that.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

from consumer.offline.pages.console_layout import BOLD, LABEL_STYLES, RED, Layout, Line, section
from consumer.offline.pages.misses import NOTHING_LIKE_IT, ExplainedTerm, explained_terms
from consumer.offline.pages.numbers import score
from consumer.offline.pages.quotes import ELLIPSIS, Mark, MarkedText
from consumer.offline.pages.report_content import MISMATCH, about_output, counted, score_of
from consumer.offline.scored_run import CaseLine, Explanation
from consumer.text import printable, quoted

_STYLES: Final[Mapping[Mark, Style | str]] = {
    "": "",
    "lacking": Style(color="red", bold=True),
    "further": Style(color="green", bold=True),
    "pointed": Style(bold=True),
}
_SIGNS: Final[Mapping[Mark, str]] = {"lacking": "-", "further": "+", "pointed": "^"}


def print_explanation(case: CaseLine, explanation: Explanation, console: Console, *, verbose: bool = True) -> None:
    """Print one case, text of its output included: in a few lines, or with `verbose` all that is known.

    A closed pipe raises BrokenPipeError if the console is a PipedConsole.
    """
    layout = Layout.of(console)
    layout.print((_explanation if verbose else _in_short)(case, explanation, layout))


# --- in a few lines ---------------------------------------------------------------------------------------------------

_SIGNED: Final[Mapping[Mark, tuple[str, str]]] = {
    "": ("", ""),
    "lacking": ("[-", "-]"),
    "further": ("{+", "+}"),
    "pointed": ("[", "]"),
}


def _in_short(case: CaseLine, explanation: Explanation, layout: Layout) -> Iterator[Line]:
    yield from _warning(case, layout)
    scores = "  ".join(
        f"{each.criterion} {score_of(each)}{f' below {each.missed}' if each.missed else ''}" for each in case.judged
    )
    about = f" ({nothing})" if (nothing := about_output(case)) else ""
    label = (case.label.upper(), LABEL_STYLES[case.label])
    yield from layout.hanging(Text.assemble((printable(case.test_id), BOLD), "  ", label, f"{about}  "), scores)
    if not case.answered:
        return
    for group in explained_terms(explanation, case.doubtful, shows_text=True):
        for each in group.terms:
            if each.verdict or each.is_doubtful or each.how == "used":
                yield from _term_in_short(each, layout)


def _term_in_short(term: ExplainedTerm, layout: Layout) -> Iterator[Line]:
    lead = Text.assemble(
        "  ", (f"{term.verdict or ('doubt' if term.is_doubtful else 'used'):7}", BOLD), f"{term.criterion}  "
    )
    indent = Text(" " * lead.cell_len)
    yield from layout.hanging(lead, signed(term.expected, layout) if term.expected else printable(term.text))
    if term.place:
        where = term.place.partition(",")[0]
        yield from layout.hanging(
            indent, Text.assemble(f"{term.how} in {where}: " if where else "", signed(term.found, layout))
        )
    if term.narrative and term.narrative != [MarkedText(NOTHING_LIKE_IT)]:
        yield from layout.hanging(indent, Text.assemble("the narrative says: ", signed(term.narrative, layout)))
    if term.advice:
        yield from layout.hanging(indent, printable(term.advice))
    if term.decided:
        yield from layout.hanging(indent, printable(f"decided: {term.decided}"))


def signed(texts: Sequence[MarkedText], layout: Layout) -> Text:
    """Give a text with what differs in brackets, so that colour only repeats it."""
    parts = []
    for each in texts:
        words, style = _styled(each, layout)
        before, after = _SIGNED[each.mark]
        parts.append((f"{before}{words}{after}", style))
    return Text.assemble(*parts)


# --- all that is known ------------------------------------------------------------------------------------------------


def _warning(case: CaseLine, layout: Layout) -> Iterator[Line]:
    if case.input_matches is False:
        warning = f"This output was {MISMATCH} than its test case tells: what follows says nothing about the prompt."
        yield from layout.wrapped(Text(warning, RED))


def _explanation(case: CaseLine, explanation: Explanation, layout: Layout) -> Iterator[Line]:
    yield from _heading(case, layout)
    for group in explained_terms(explanation, case.doubtful, shows_text=True):
        yield from section(layout.wrapped(Text(group.heading, BOLD)), _terms(group.terms, layout))


def _heading(case: CaseLine, layout: Layout) -> Iterator[Line]:
    title = Text.assemble((printable(case.test_id), BOLD), "  ", (case.label.upper(), LABEL_STYLES[case.label]))
    yield from _warning(case, layout)
    if nothing := about_output(case):
        title.append(f"  ({nothing})")
    yield from layout.wrapped(title)
    archetype = "" if case.archetype is None else f", archetype {printable(case.archetype)}"
    yield from layout.hanging(Text("  "), f"batch {printable(case.batch_id)}{archetype}")
    yield Text()
    for judged in case.judged:
        line = Text(f"{judged.criterion} {score_of(judged)}  {counted(case, judged.criterion)}")
        if judged.missed:
            line = Text.assemble(line, ", ", (f"below {judged.missed}", LABEL_STYLES[judged.label]))
        yield from layout.hanging(Text("  "), line)
    yield Text(f"  composite {score(case.row.scores.composite)}")


# --- its terms --------------------------------------------------------------------------------------------------------


def _terms(terms: Sequence[ExplainedTerm], layout: Layout) -> Iterator[Line]:
    for number, each in enumerate(terms):
        if number and each.kind:
            yield Text()
        yield from _term(each, layout)


def _term(term: ExplainedTerm, layout: Layout) -> Iterator[Line]:
    title = Text(term.kind, BOLD) if term.kind else Text(quoted(term.text))
    yield from layout.hanging(Text(f"  {term.criterion}  "), title)
    yield from _passage("expected", term.expected, layout)
    yield from _passage(term.how, term.found, layout)
    yield from _passage("narrative", term.narrative, layout)
    for name, text in (
        ("where", term.place),
        ("missing", term.lacks),
        ("advice", term.advice),
        ("decided", term.decided),
    ):
        if text:
            yield from layout.hanging(_lead(name), printable(text))


def _lead(name: str) -> Text:
    return Text.assemble((f"    {name:11}", Style(dim=True)))


# --- texts with signs -------------------------------------------------------------------------------------------------


def _passage(name: str, texts: Sequence[MarkedText], layout: Layout) -> Iterator[Line]:
    """Give a text behind its name, and signs below what is marked in it."""
    if not texts:
        return
    whole = Text.assemble(*(_styled(text, layout) for text in texts))
    lead = _lead(name)
    indent = Text(" " * lead.cell_len)
    for line in layout.wrapped(whole, lead.cell_len):
        yield lead + line
        lead = indent
        for mark, sign in _SIGNS.items():
            if signs := _signs(line, sign, _STYLES[mark]):
                yield indent + Text(signs, _STYLES[mark])


def _styled(marked: MarkedText, layout: Layout) -> tuple[str, Style | str]:
    return layout.ellipsis if marked == ELLIPSIS else printable(marked.text), _STYLES[marked.mark]


def _signs(line: Text, sign: str, style: Style | str) -> str:
    """Give the line of signs to print below a line; empty if nothing in it has this style."""
    marked = {at for span in line.spans if span.style == style for at in range(span.start, span.end)}
    return "".join((sign if at in marked else " ") * cell_len(char) for at, char in enumerate(line.plain)).rstrip()
