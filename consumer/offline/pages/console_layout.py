"""Lays out text for a console: on a terminal it is wrapped to the width, elsewhere each item is on one line."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from rich.console import Console
from rich.segment import Segment, SegmentLines
from rich.style import Style
from rich.text import Text

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
