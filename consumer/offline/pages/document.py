"""What a command has to say, built once: the console, Markdown and HTML lay out the same document.

Texts from outside, such as ids and terms, are in it as they are: each format escapes them in its own way.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from rich.cells import cell_len, set_cell_size

from consumer.text import printable, quoted
from safe_core import Label


class Name(str):
    """An id, or the name of a file: a console shows it without quotation marks."""

    __slots__ = ()


class Table(NamedTuple):
    """Rows of cells below headings: the first `texts` columns hold texts, the others numbers."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int
    from_outside: Collection[int] = ()


class Sentence(NamedTuple):
    """A sentence with a {} for each text from outside."""

    template: str
    texts: tuple[str, ...] = ()

    def written(self, escaped: Callable[[str], str]) -> str:
        """Give the sentence with its texts as a page escapes them."""
        return self.template.format(*map(escaped, self.texts))


class Texts(NamedTuple):
    """Texts from outside that belong to an item, each perhaps with a remark on it, and what they are."""

    what: str
    texts: Sequence[Sentence]

    @classmethod
    def of(cls, what: str, texts: Iterable[str]) -> Self:
        """Give texts without remarks."""
        return cls(what, [Sentence("{}", (text,)) for text in texts])


class Item(NamedTuple):
    """A line of a list: a word to be seen first, the label of a case or both labels, and what belongs to it.

    One with an `anchor` can be folded and linked where the format knows how.
    """

    line: Sentence
    labels: Sequence[Label] = ()
    word: str = ""
    below: Sequence[Texts] = ()
    anchor: str = ""


class Section(NamedTuple):
    """A table or items under a heading, and sentences that belong to the items behind them.

    `left_out` names the parts where there is no room for all of them: "cases with a worse label"; those of the greatest
    `rank` go first, which is a section's place unless it is given. The console lists at `most` this many parts.
    """

    heading: Sentence
    parts: Sequence["Item | Sentence | Table"]
    is_folded: bool = False
    left_out: str = "items"
    rank: int | None = None
    most: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing under the heading."""
        return not any(part.rows if isinstance(part, Table) else part for part in self.parts)


@dataclass(frozen=True, slots=True)
class Document:
    """A whole page: what is known first, what a reader must be warned of, the numbers, then section by section.

    `kind` is what SAFE recognises its own pages by; the `headline` is good or bad news, or neither (None).
    """

    kind: str
    title: Sentence
    headline: str
    summary: str = ""
    is_good: bool | None = None
    decision: str | None = None
    warnings: Sequence[Sentence] = ()
    facts: Sequence[Sentence] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    sections: Sequence[Section] = ()

    @property
    def first_words(self) -> str:
        """What stands first on every page."""
        return f"{self.headline}: {self.summary}" if self.summary else self.headline


# --- the console ------------------------------------------------------------------------------------------------------


def _shown(text: str) -> str:
    return printable(text) if isinstance(text, Name) else quoted(text)


def _said(sentence: Sentence) -> str:
    """Give a sentence for the console; not every console has arrows."""
    return Sentence(sentence.template.replace("→", "->"), sentence.texts).written(_shown)


def console(document: Document) -> str:
    """Give a document as plain lines, of which each is as long as it is."""
    return "".join(f"{line}\n" for line in lines(document))


def lines(document: Document) -> Iterator[str]:
    """Yield the lines for a console; a decision comes last, where it is seen."""
    yield document.first_words
    yield from (f"  {_said(fact)}" for fact in document.facts)
    yield from (f"  ! {_said(warning)}" for warning in document.warnings)
    for table in document.tables:
        if table.rows:
            yield ""
            yield from columns(table)
    yield from ("", *document.notes) if document.notes else ()
    for section in document.sections:
        if not section.is_empty:
            yield from ("", _said(section.heading))
            yield from _parts(section)
    yield from () if document.decision is None else ("", printable(document.decision))


def _parts(section: Section) -> Iterator[str]:
    indent = "  "
    for part in section.parts[: section.most]:
        if isinstance(part, Table):
            yield from columns(part)
            continue
        if isinstance(part, Sentence):
            yield f"  {_said(part)}"
            indent = "    "
            continue
        yield indent + "  ".join(filter(None, (part.word, " -> ".join(part.labels), _said(part.line))))
        width = max((len(each.what) for each in part.below), default=0)
        yield from (f"{indent}  {each.what:{width}}  {_said(text)}" for each in part.below for text in each.texts)
    if section.most is not None and (more := len(section.parts) - section.most) > 0:
        yield f"  and {more} more, which the other formats list"


def columns(table: Table) -> Iterator[str]:
    """Lay out a table as plain lines; columns for which there is no room follow below, behind the first one again.

    A line that a terminal breaks can be read as a sentence, but not as a row.
    """
    columns = enumerate(zip(table.headings, *table.rows, strict=True))
    first, *others = (_aligned(cells, n < table.texts, n in table.from_outside) for n, cells in columns)
    shown: list[Sequence[str]] = []
    for column in others:
        if shown and sum(cell_len(each[0]) + 2 for each in (first, *shown, column)) > _WIDTH:
            yield from (*_rows(first, shown), "")
            shown = []
        shown.append(column)
    yield from _rows(first, shown)


_WIDTH, _LONGEST_CELL, _CUT = 80, 28, "..."


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
