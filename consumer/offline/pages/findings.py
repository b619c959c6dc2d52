"""The findings of `safe lint`: a table for people, and annotations on the pages of a GitHub Actions run."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Final

from rich.console import Console
from rich.style import Style
from rich.text import Text

from consumer.offline.lint_files import Lint, Located
from consumer.offline.pages.console_layout import BOLD, RED, YELLOW, Layout, Line, signed
from consumer.offline.pages.quotes import around
from consumer.text import count_of, printable
from safe_core.ceiling import Ceiling
from safe_core.lint_rules import SEVERITIES, Severity

# --- the table --------------------------------------------------------------------------------------------------------

_STYLES: Final[Mapping[Severity, Style]] = {"error": RED, "warning": YELLOW, "info": Style()}
_INDENT: Final = Text(" " * 8)


def print_table(lint: Lint, console: Console) -> None:
    """Print the ceiling, then the findings file by file; sentences are wrapped only on a terminal, and nothing is cut.

    A closed pipe raises BrokenPipeError if the console is a PipedConsole.
    """
    layout = Layout.of(console)
    layout.print(_table(lint, layout))


def _table(lint: Lint, layout: Layout) -> Iterator[Line]:
    first, *others = ceiling_lines(lint.ceiling)
    yield Text(first, BOLD)
    yield from map(Text, others)
    for file, found in groupby(lint.new, key=lambda each: each.file):
        yield Text()
        yield Text(printable(str(file)), BOLD)
        for each, more in _gathered(found):
            yield from _finding(each, more, layout)
    yield from _mutation(lint)
    yield Text()
    yield Text(_closing(lint), BOLD)


def _mutation(lint: Lint) -> Iterator[Line]:
    """Say of each case how many errors it would let through, where that was asked for."""
    if not lint.mutation:
        return
    yield Text()
    yield Text("Dangerous errors that would still pass (safe mutate shows them)", BOLD)
    width = max(len(printable(each.test_id)) for each in lint.mutation)
    for each in sorted(lint.mutation, key=lambda each: -each.survived / (each.mutants or 1)):
        yield Text(f"  {printable(each.test_id):{width}}  {each.survived} of {each.mutants}")


def ceiling_lines(ceiling: Ceiling) -> Iterator[str]:
    """Say which scores a verbatim copy of the narrative can reach, and why not more."""
    sentence = ceiling.sentence
    yield f"Ceiling: {sentence}"
    if ceiling.terms:
        labels = f"{ceiling.passes} Pass, {ceiling.reviews} Review, {ceiling.fails} Fail"
        yield f"  a verbatim copy of each narrative gets {labels}"
        is_one = 1 in {ceiling.not_in_narrative, ceiling.terms}
        are = "is not in the narrative of its" if is_one else "are not in the narrative of their"
        yield f"  {ceiling.not_in_narrative} of {count_of(ceiling.terms, 'required term')} {are} case"


def _gathered(found: Iterable[Located]) -> Iterator[tuple[Located, int]]:
    """Give each finding of a file, and how many more places have it; mere information is given once."""
    places: dict[object, list[Located]] = {}
    for number, each in enumerate(found):
        finding = each.finding
        key = (finding.code, finding.sentence) if finding.severity == "info" else number
        places.setdefault(key, []).append(each)
    return ((first, len(more)) for first, *more in places.values())


def _finding(each: Located, more: int, layout: Layout) -> Iterator[Line]:
    finding = each.finding
    others = f" and {count_of(more, 'other place')}" if more else ""
    place = f"  {finding.code}  {printable(finding.place)}".rstrip() + others
    yield Text.assemble(f"{each.line:6}  ", (finding.severity, _STYLES[finding.severity]), place)
    yield from layout.hanging(_INDENT, printable(finding.sentence))
    if each.nearest is not None:
        passage = signed(around(each.narrative, each.nearest), layout)
        yield from layout.hanging(_INDENT, Text.assemble("the narrative says: ", passage))
    if each.decided:
        yield from layout.hanging(_INDENT, printable(f"decided: {each.decided}"))


def _closing(lint: Lint) -> str:
    looked = f"{count_of(lint.cases, 'test case')} of {count_of(lint.batches, 'batch', 'es')}"
    errors, warnings, infos = (lint.by_severity[severity] for severity in ("error", "warning", "info"))
    informed = f", {infos} info" if infos else ""
    informed += f", {lint.known} known" if lint.known else ""
    if lint.is_clean:
        return f"Clean: nothing to fix in {looked}{informed}"
    return f"{count_of(errors, 'error')}, {count_of(warnings, 'warning')}{informed} in {looked}"


# --- annotations ------------------------------------------------------------------------------------------------------

_SHOWN: Final = 10
"""How many annotations of a kind GitHub shows of one step."""

_ESCAPED_MESSAGE: Final = {ord("%"): "%25", ord("\r"): "%0D", ord("\n"): "%0A"}
_ESCAPED_PROPERTY: Final = {**_ESCAPED_MESSAGE, ord(":"): "%3A", ord(","): "%2C"}


def annotations(lint: Lint) -> Iterator[str]:
    """Give the workflow commands for the most important findings, as many of each kind as GitHub shows."""
    codes = list(SEVERITIES)
    ordered = sorted(lint.new, key=lambda each: codes.index(each.finding.code))
    for severity in ("error", "warning"):
        of_kind = (each for each in ordered if each.finding.severity == severity)
        yield from map(_annotation, islice(of_kind, _SHOWN))


def _annotation(each: Located) -> str:
    finding = each.finding
    where = f"{finding.place}: " if finding.place else ""
    file = printable(str(each.file)).translate(_ESCAPED_PROPERTY)
    title = f"safe lint: {finding.code}".translate(_ESCAPED_PROPERTY)
    message = printable(f"{where}{finding.sentence}").translate(_ESCAPED_MESSAGE)
    return f"::{finding.severity} file={file},line={each.line},title={title}::{message}"
