"""Lays out text for a console: on a terminal it is wrapped to the width, elsewhere each item is on one line."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.segment import Segment, SegmentLines
from rich.style import Style
from rich.text import Text

from consumer.offline.pages.document import Document, Item, Mark, MarkedText, Name, Quote, Section, Sentence, Table
from consumer.text import printable, quoted
from safe_core import Label

Line = Text | Sequence[Segment]
"""Segments where there are many: they are printed as they are, and much faster."""

BOLD: Final = Style(bold=True)
# Yellow letters are hard to read on a light terminal, and worse in bold; black on yellow is readable on any.
GREEN, YELLOW, RED = Style(color="green"), Style(color="black", bgcolor="yellow"), Style(color="red")
LABEL_STYLES: Final[Mapping[Label, Style]] = {"Pass": GREEN, "Review": YELLOW, "Fail": RED}

_IN_ASCII: Final = str.maketrans({"–": "-", "…": "..."})
_LEAST_CELLS: Final = 10
_LINES_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True)
class Layout:
    """A console and its limits; `width` in cells, None if lines may have any length."""

    console: Console
    width: int | None
    ascii_only: bool

    @classmethod
    def of(cls, console: Console) -> "Layout":
        return cls(console, console.width if console.is_terminal else None, console.options.ascii_only)

    @property
    def ellipsis(self) -> str:
        return "..." if self.ascii_only else "…"

    def shown(self, text: str) -> str:
        """Give a text as the console will show it, before its width is reckoned with."""
        if not self.ascii_only or text.isascii():
            return text
        return text.translate(_IN_ASCII).encode("ascii", "backslashreplace").decode()

    def print(self, lines: Iterator[Line]) -> None:
        """Print lines as they come; a closed pipe raises BrokenPipeError if the console is a PipedConsole."""
        while block := list(islice(lines, _LINES_AT_ONCE)):
            segments = ([*line.render(self.console)] if isinstance(line, Text) else [*line] for line in block)
            self.console.print(SegmentLines(segments, new_lines=True), soft_wrap=True)

    def wrapped(self, text: Text, indent: int = 0) -> Sequence[Text]:
        """Break a text to fit the width less an indent."""
        return self.within(text, None if self.width is None else self.width - indent)

    def within(self, text: Text, cells: int | None) -> Sequence[Text]:
        """Break a text between words, and within a word only if the word alone is too wide."""
        if cells is None or text.cell_len <= cells:
            return [text]
        # On a terminal too narrow for anything, a column of single letters would help nobody.
        lines = [*text.wrap(self.console, max(cells, _LEAST_CELLS))]
        for line in lines:
            line.rstrip()
        return lines

    def hanging(self, lead: Text, text: Text | str) -> Iterator[Text]:
        """Give a text behind a lead; what does not fit continues below, indented if the lead leaves room for that."""
        text = Text(text) if isinstance(text, str) else text
        if self.width is not None and self.width - lead.cell_len < _LEAST_CELLS:
            lead, text = Text(), lead + text
        indent = Text(" " * lead.cell_len)
        for line in self.wrapped(text, lead.cell_len):
            line.rstrip()
            yield lead + line
            lead = indent


def section(heading: Iterable[Line], lines: Iterable[Line]) -> Iterator[Line]:
    """Give lines under a heading; without lines there is no heading."""
    for number, line in enumerate(lines):
        if not number:
            yield Text()
            yield from heading
        yield line


# --- a document -------------------------------------------------------------------------------------------------------

_STYLES: Final[Mapping[Mark, Style]] = {
    "lacking": Style(color="red", bold=True),
    "further": Style(color="green", bold=True),
    "pointed": BOLD,
}
_INDENT: Final = Text("  ")


def console_text(document: Document) -> str:
    """Lay out a document as it is printed into a pipe."""
    file = io.StringIO()
    print_document(document, Console(file=file, force_terminal=False, color_system=None, _environ={}))
    return file.getvalue()


def print_document(document: Document, console: Console) -> None:
    """Lay out a document; a closed pipe raises BrokenPipeError if the console is a PipedConsole."""
    layout = Layout.of(console)
    layout.print(_document(document, layout))


def _document(document: Document, layout: Layout) -> Iterator[Line]:
    """Give the lines; a decision comes last, where it is seen."""
    yield from layout.wrapped(Text(printable(document.first_words), BOLD))
    for fact in document.facts:
        yield from layout.hanging(_INDENT, _said(fact, layout))
    for warning in document.warnings:
        yield from layout.hanging(Text("  ! "), _said(warning, layout))
    for table in document.tables:
        if table.rows:
            yield from (Text(), *map(Text, columns(table)))
    yield from section([], (line for note in document.notes for line in layout.wrapped(Text(printable(note)))))
    for each in document.sections:
        if not each.is_empty:
            heading = _said(each.heading, layout)
            heading.stylize(BOLD)
            yield from (Text(), *layout.wrapped(heading), *_parts(each, layout))
    if document.decision is not None:
        yield from (Text(), *layout.wrapped(Text(printable(document.decision), BOLD)))


def _parts(section: Section, layout: Layout) -> Iterator[Line]:
    indent = _INDENT
    for part in section.parts[: section.most]:
        if isinstance(part, Table):
            yield from map(Text, columns(part))
        elif isinstance(part, Sentence):
            yield from layout.hanging(_INDENT, _said(part, layout))
            indent = _INDENT + _INDENT
        else:
            yield from _item(part, indent, layout)
    if section.most is not None and (more := len(section.parts) - section.most) > 0:
        yield Text(f"  and {more} more, which the other formats list")


def _item(item: Item, indent: Text, layout: Layout) -> Iterator[Line]:
    lead = indent.copy()
    if item.word:
        lead.append(f"{item.word}  ", BOLD)
    for number, label in enumerate(item.labels):
        lead.append(" -> " if number else "").append(label, LABEL_STYLES[label])
    yield from layout.hanging(lead.append("  " if item.labels else ""), _said(item.line, layout))
    width = max((len(each.what) for each in item.below), default=0)
    for each in item.below:
        for text in each.texts:
            yield from layout.hanging(indent + Text(f"  {each.what:{width}}  "), _said(text, layout))


def _said(sentence: Sentence, layout: Layout) -> Text:
    """Give a sentence; not every console has arrows."""
    said, *others = sentence.template.replace("→", "->").split("{}")
    texts = zip(sentence.texts, others, strict=True)
    return Text.assemble(said, *(part for text, said in texts for part in (_shown(text, layout), said)))


def _shown(text: str, layout: Layout) -> Text | str:
    if isinstance(text, Quote):
        return signed(text.parts, layout)
    return layout.shown(printable(text) if isinstance(text, Name) else quoted(text))


def signed(texts: Sequence[MarkedText], layout: Layout) -> Text:
    """Give a text with what differs in brackets, so that colour only repeats it."""
    parts = ((layout.shown(printable(each.in_brackets)), _STYLES.get(each.mark, "")) for each in texts)
    return Text.assemble(*parts)


# --- tables -----------------------------------------------------------------------------------------------------------

_WIDTH, _LONGEST_CELL, _CUT = 80, 28, "..."


def columns(table: Table) -> Iterator[str]:
    """Lay out a table as plain lines; columns for which there is no room follow below, behind the first one again.

    A line that a terminal breaks can be read as a sentence, but not as a row.
    """
    columns = enumerate(zip(table.headings, *table.rows, strict=True))
    first, *others = (_aligned(cells, n < table.texts, n in table.from_outside) for n, cells in columns)
    room = _WIDTH if 2 * cell_len(first[0]) < _WIDTH else 0
    shown: list[Sequence[str]] = []
    for column in others:
        if shown and room and sum(cell_len(each[0]) + 2 for each in (first, *shown, column)) > room:
            yield from (*_rows(first, shown), "")
            shown = []
        shown.append(column)
    yield from _rows(first, shown)


def _cut(text: str) -> str:
    """Cut a long text from outside in its middle: names often differ at the end."""
    if cell_len(text) <= _LONGEST_CELL:
        return text
    left = _LONGEST_CELL - len(_CUT)
    return set_cell_size(text, left - left // 2) + _CUT + set_cell_size(text[::-1], left // 2)[::-1]


def _aligned(cells: Sequence[str], is_text: bool, is_from_outside: bool) -> Sequence[str]:  # noqa: FBT001
    """Bring the cells of a column to one width."""
    shown = [_cut(printable(cell)) for cell in cells] if is_from_outside else cells
    width = max(map(cell_len, shown))
    blanks = (" " * (width - cell_len(cell)) for cell in shown)
    return [cell + blank if is_text else blank + cell for cell, blank in zip(shown, blanks, strict=True)]


def _rows(first: Sequence[str], others: Iterable[Sequence[str]]) -> Iterator[str]:
    return (f"  {'  '.join(row)}".rstrip() for row in zip(first, *others, strict=True))
