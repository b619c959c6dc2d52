"""What a command has to say, built once: the console, Markdown and HTML lay out the same document.

Texts from outside, such as ids and terms, are in it as they are: each format escapes them in its own way.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Self

from safe_core import Label


class Name(str):
    """An id, or the name of a file: a console shows it without quotation marks."""

    __slots__ = ()


Mark = Literal["", "lacking", "further", "pointed", "unsupported"]
"""What a page marks: `lacking` is expected and not there, `further` is there and not expected, `pointed` is found.

`unsupported` is a value that the narrative does not have.
"""
BRACKETS_OF: Final[Mapping[Mark, tuple[str, str]]] = {
    "lacking": ("[-", "-]"),
    "further": ("{+", "+}"),
    "pointed": ("[", "]"),
}
"""What is around a mark where there is no colour, or not only that."""


class MarkedText(NamedTuple):
    """A stretch of a text; in one that is marked, invisible characters are escaped."""

    text: str
    mark: Mark = ""

    @property
    def in_brackets(self) -> str:
        """The text with brackets for its mark."""
        before, after = BRACKETS_OF.get(self.mark, ("", ""))
        return f"{before}{self.text}{after}"


class Quote(Name):
    """A text of which parts are marked: by brackets, unless the format has more for it."""

    parts: Sequence[MarkedText]

    def __new__(cls, parts: Sequence[MarkedText]) -> Self:
        quote = super().__new__(cls, "".join(each.in_brackets for each in parts))
        quote.parts = parts
        return quote


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
