"""What the Markdown pages are made of: code spans, tables, and sections of which parts are left out to fit a limit.

A text from outside is put into a code span, in which neither Markdown nor GitHub looks for anything. Elsewhere GitHub
finds mentions, issues, addresses, formulas and emoji in the finished page, whatever was escaped.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from consumer.offline.pages.report_content import Table
from consumer.text import printable


def literal(text: str) -> str:
    """Give a code span that shows a text from outside as it is."""
    text = printable(text)
    taken = set(map(len, _BACKTICKS.findall(text)))
    fence = "`" * next(length for length in range(1, len(taken) + 2) if length not in taken)
    # A backtick must not touch the fence; and Markdown takes one space from each end if both have one.
    ends = text[:1] + text[-1:]
    edge = " " if "`" in ends or (ends == "  " and text.strip(" ")) else ""
    return f"{fence}{edge}{text}{edge}{fence}"


_BACKTICKS: Final = re.compile("`+")


def table_row(*cells: str) -> str:
    """Give a row of a table, where a bar separates cells even within a code span, unless it is escaped."""
    escaped = (cell.replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(escaped)} |\n"


def table_head(*headings: str, texts: int) -> str:
    """Give the head of a table whose first `texts` columns hold text, and the others numbers, aligned to the right."""
    rules = ["---" if column < texts else "---:" for column in range(len(headings))]
    return table_row(*headings) + table_row(*rules)


def table(table: Table) -> str:
    """Give a table with its head, nothing for one without rows."""
    return table_head(*table.headings, texts=table.texts) + "".join(table_rows(table)) if table.rows else ""


def table_rows(table: Table) -> Iterator[str]:
    """Give the rows of a table, texts from outside as code spans."""
    for row in table.rows:
        yield table_row(*(literal(cell) if n in table.from_outside else cell for n, cell in enumerate(row)))


def mark(kind: str) -> str:
    """Give the first line of a page, by which SAFE recognises its own."""
    return f"<!-- SAFE v0 {kind} -->"


# --- a page with less on it -------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A line or more of a section; one that is `below` says nothing without the part before it.

    `kind` is of an Enum whose values say what is left out; parts of its first members are kept longest.
    """

    kind: Enum
    text: str
    below: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """Parts under a heading; a section without parts is left out."""

    opening: str
    parts: Sequence[Part]
    closing: str = ""

    def text(self, kept: Collection[int]) -> str:
        """Give the section with the parts of these numbers."""
        texts = [part.text for number, part in enumerate(self.parts) if number in kept]
        return self.opening + "".join(texts) + self.closing if texts else ""


def fitted(top: str, sections: Sequence[Section], max_bytes: int | None = None) -> str:
    """Give the page, or if it takes more than `max_bytes` of UTF-8, the top and the parts for which there is room.

    Parts of the first kinds are kept longest. Below the top, the page says how many are left out.
    """
    page = top + "".join(section.text(range(len(section.parts))) for section in sections)
    if max_bytes is None or _size(page) <= max_bytes:
        return page
    total = Counter(part.kind for section in sections for part in section.parts)
    room = max_bytes - _size(top + _counted(total, total))
    kept: list[set[int]] = [set() for _ in sections]
    missing: Counter[Enum] = Counter()
    placed = [
        (section, stays, number, part)
        for section, stays in zip(sections, kept, strict=True)
        for number, part in enumerate(section.parts)
    ]
    for section, stays, number, part in sorted(placed, key=lambda each: _rank(each[3].kind)):
        size = _size(part.text if stays else section.opening + part.text + section.closing)
        if size <= room and (number - 1 in stays or not part.below):
            stays.add(number)
            room -= size
        else:
            missing[part.kind] += 1
    return top + _counted(missing, total) + "".join(map(Section.text, sections, kept))


def _rank(kind: Enum) -> int:
    return list(type(kind)).index(kind)


def _counted(missing: Counter[Enum], total: Counter[Enum]) -> str:
    kinds = sorted(missing, key=_rank)
    return left_out(str(kind.value).format(f"{missing[kind]} of {total[kind]}") for kind in kinds)


def left_out(things: Iterable[str]) -> str:
    """Give the line that says what a page leaves out."""
    return f"\n_Left out for want of room: {', '.join(things)}._\n"


def _size(text: str) -> int:
    return len(text.encode())
