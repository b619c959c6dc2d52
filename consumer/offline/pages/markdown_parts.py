"""What the Markdown pages are made of: code spans, tables, and blocks of which parts are left out to fit a limit.

A text from outside is put into a code span, in which neither Markdown nor GitHub looks for anything. Elsewhere GitHub
finds mentions, issues, addresses, formulas and emoji in the finished page, whatever was escaped.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from consumer.offline.pages.document import Document, Item, Section, Sentence, Table
from consumer.offline.pages.report_content import CONFIDENTIAL
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
    """A line or more of a block; one that is `below` says nothing without the part before it.

    `kind` says what is left out, with a {} for how many.
    """

    kind: str
    text: str
    below: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """Parts under a heading; a block without parts is left out."""

    opening: str
    parts: Sequence[Part]
    closing: str = ""

    def text(self, kept: Collection[int]) -> str:
        """Give the block with the parts of these numbers."""
        texts = [part.text for number, part in enumerate(self.parts) if number in kept]
        return self.opening + "".join(texts) + self.closing if texts else ""


def fitted(top: str, blocks: Sequence[Block], kinds: Iterable[str] = (), max_bytes: int | None = None) -> str:
    """Give the page, or if it takes more than `max_bytes` of UTF-8, the top and the parts for which there is room.

    Parts of the first `kinds` are kept longest. Below the top, the page says how many are left out.
    """
    page = top + "".join(block.text(range(len(block.parts))) for block in blocks)
    if max_bytes is None or _size(page) <= max_bytes:
        return page
    ranks = {kind: rank for rank, kind in enumerate(kinds)}
    total = Counter(part.kind for block in blocks for part in block.parts)
    room = max_bytes - _size(top + _counted(total, total, ranks))
    kept: list[set[int]] = [set() for _ in blocks]
    missing: Counter[str] = Counter()
    placed = [
        (block, stays, number, part)
        for block, stays in zip(blocks, kept, strict=True)
        for number, part in enumerate(block.parts)
    ]
    for block, stays, number, part in sorted(placed, key=lambda each: ranks[each[3].kind]):
        size = _size(part.text if stays else block.opening + part.text + block.closing)
        if size <= room and (number - 1 in stays or not part.below):
            stays.add(number)
            room -= size
        else:
            missing[part.kind] += 1
    return top + _counted(missing, total, ranks) + "".join(map(Block.text, blocks, kept))


def _counted(missing: Counter[str], total: Counter[str], ranks: Mapping[str, int]) -> str:
    kinds = sorted(missing, key=ranks.__getitem__)
    return left_out(kind.format(f"{missing[kind]} of {total[kind]}") for kind in kinds)


def left_out(things: Iterable[str]) -> str:
    """Give the line that says what a page leaves out."""
    return f"\n_Left out for want of room: {', '.join(things)}._\n"


def _size(text: str) -> int:
    return len(text.encode())


# --- a document -------------------------------------------------------------------------------------------------------


def markdown(document: Document, max_bytes: int | None = None) -> str:
    """Lay out a document; if it takes more than `max_bytes` of UTF-8, parts of its sections are left out.

    Those of folded sections go first, then the further rows of long tables, then those of the last sections.
    """
    kinds: dict[str, tuple[int, int]] = {}
    for place, section in enumerate(document.sections):
        rank = 2 * (place if section.rank is None else section.rank)
        kinds |= {f"{{}} {section.left_out}": (2 * section.is_folded, rank), _terms(section): (0, rank + 3)}
        kinds[_further(section)] = 1, rank
    ordered = sorted(kinds, key=lambda kind: kinds[kind])
    return fitted(markdown_top(document), [*map(_block, document.sections)], ordered, max_bytes)


def _terms(section: Section) -> str:
    return f"the terms of {{}} {section.left_out}"


def _further(section: Section) -> str:
    return f"{{}} further {section.left_out}"


_MOST_ROWS: Final = 100
"""From this number on, the rows of a table are of less interest than cases."""


def markdown_top(document: Document) -> str:
    """Give what is never left out."""
    return "\n".join(_top(document))


def _top(document: Document) -> Iterator[str]:
    yield f"{mark(document.kind)}\n# {document.title.written(literal)}\n"
    yield f"{markdown_headline(document)}\n"
    if document.decision is not None:
        yield f"Gate: {literal(document.decision)}\n"
    if warned := [f"- **Attention**: {each.written(literal)}\n" for each in document.warnings]:
        yield "".join(warned)
    if facts := [f"- {each.written(literal)}\n" for each in document.facts]:
        yield "".join(facts)
    yield from filter(None, map(table, document.tables))
    yield f"{' '.join((*document.notes, CONFIDENTIAL))}\n"


def markdown_headline(document: Document) -> str:
    """Give the first words."""
    return f"**{document.headline}**{f': {document.summary}' if document.summary else ''}"


def _block(section: Section) -> Block:
    heading, first = section.heading.written(literal), next(iter(section.parts), None)
    head = table_head(*first.headings, texts=first.texts) if isinstance(first, Table) else ""
    parts = [part for number, each in enumerate(section.parts) for part in _parts(section, each, number)]
    if section.is_folded:
        return Block(f"\n<details>\n<summary>{heading}</summary>\n\n{head}", parts, "\n</details>\n")
    return Block(f"\n## {heading}\n\n{head}", parts)


def _parts(section: Section, part: Item | Sentence | Table, place: int) -> Iterator[Part]:
    kind, above = f"{{}} {section.left_out}", "\n" if place else ""
    if isinstance(part, Table):
        kinds = (kind if number < _MOST_ROWS else _further(section) for number in range(len(part.rows)))
        yield from map(Part, kinds, table_rows(part))
    elif isinstance(part, Sentence):
        below = "" if place == len(section.parts) - 1 else "\n"
        yield Part(kind, f"{above}{part.written(literal)}\n{below}")
    else:
        yield Part(kind, f"- {_line(part)}\n")
        if part.below:
            lines = ((each.what, ", ".join(text.written(literal) for text in each.texts)) for each in part.below)
            yield Part(_terms(section), "".join(f"  - {what}: {texts}\n" for what, texts in lines), below=True)


def _line(item: Item) -> str:
    word = f"**{item.word}** " if item.word else ""
    labels = f"{' → '.join(item.labels)}: " if item.labels else ""
    return word + labels + item.line.written(literal)
