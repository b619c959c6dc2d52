"""The tables of docs/explanation/diagnosis.md, from the code: what follows from both answers; the kinds of misses."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from safe_core.diagnosis.diagnosis_types import NARRATIVE_SAYS, OUTPUT_SAYS
from safe_core.diagnosis.tables import KIND_ROWS, VERDICT_ROWS, Example, Row


def diagnosis_page(page: str) -> str:
    """Give the page with its tables as they would be generated now; what is between the tables stays."""
    for name, table in _TABLES.items():
        before, begin, rest = page.partition(f"<!-- {name}: generated -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->\n")
        if not (begin and end):
            raise ValueError(f"the page has no place for the table {name!r}")
        page = before + begin + "".join(f"{line}\n" for line in table()) + end + after
    return page


def _verdicts() -> Iterator[str]:
    yield "| row | output says | narrative says | verdict | remedy | in words | example |"
    yield "|---|---|---|---|---|---|---|"
    for row in VERDICT_ROWS:
        output = _names(each for each in OUTPUT_SAYS if each in row.output)
        yield _line(
            row.name, output, _narrative(row), f"`{row.verdict}`", f"`{row.remedy}`", row.why, _shown(row.example)
        )


def _narrative(row: Row) -> str:
    says = _names(each for each in NARRATIVE_SAYS if each in row.narrative)
    if row.has_it_too is None:
        return says
    return f"{says}, and `narrative_has_it_too` is {'true' if row.has_it_too else 'false'}"


def _kinds() -> Iterator[str]:
    yield "| kind | in words | example |"
    yield "|---|---|---|"
    for row in KIND_ROWS:
        yield _line(f"`{row.kind}`", row.why, _shown(row.example))


def _names(names: Iterator[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _shown(example: Example) -> str:
    texts = {"term": [example.term], "signals": example.signals, "summary": [example.summary]}
    parts = [f'{name} "{text}"' for name, found in texts.items() for text in found]
    return "; ".join([*parts, *([f'narrative "{example.narrative}"'] if example.narrative else [])])


def _line(*cells: str) -> str:
    return f"| {' | '.join(re.sub(r'[|]', '&#124;', cell) for cell in cells)} |"


_TABLES: Final[Mapping[str, Callable[[], Iterator[str]]]] = {"verdicts": _verdicts, "kinds": _kinds}
