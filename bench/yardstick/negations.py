"""Found terms that a text denies: our planted sentences, and the half of NegEx's corpus that may be read."""

import csv
from collections.abc import Iterator
from pathlib import Path

from bench.negation import compared, safe_says
from tests.core.planted_doubtful import PlantedHit

CORPUS = "negex_sentences.tsv"


def planted() -> list[PlantedHit]:
    return compared()


def corpus(folder: Path) -> Iterator[PlantedHit]:
    """Read NegEx's sentences: the sentence is the summary, the concept the required phrase."""
    with (folder / CORPUS).open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            kind = "negated" if row["polarity"] == "Negated" else None
            yield PlantedHit("negated", row["number"], kind, row["concept"], row["sentence"], None)


def is_wrong(hit: PlantedHit) -> bool:
    return safe_says(hit) != (hit.kind == "negated")


def shown(hit: PlantedHit) -> str:
    """Print a sentence, its term, and which of two mistakes was made."""
    return f"── {'not seen' if hit.kind else 'false alarm'}: {hit.term!r}\n   {hit.text}"
