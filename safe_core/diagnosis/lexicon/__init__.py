"""Words as data: one relation a file, one entry a line (docs/explanation/diagnosis.md, "The lexicon")."""

from collections.abc import Iterator
from importlib.resources import files


def rows(relation: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Give the lines of a relation as `file:line` and their cells."""
    text = files(__name__).joinpath(f"{relation}.tsv").read_text("utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield f"{relation}.tsv:{number}", tuple(cell.strip() for cell in line.split("\t") if cell.strip())
