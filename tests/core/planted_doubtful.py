"""Found terms that a text denies, holds inside a word or gives with another value, and look-alikes that are none.

Every sentence is invented, and was written before the rules that it tests. A hash halves them: the rules were worked
out on one half, the other one counts.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from safe_core import Expectations, Output, Rules, prepare, score
from safe_core.diagnosis import DoubtfulHit, doubtful_hits

Half = Literal["tune", "final"]
_FILE = Path(__file__).with_suffix(".json")


class PlantedHit(NamedTuple):
    """A term that is found in a text; `kind` is what it is by eye, None for a look-alike."""

    family: str
    sort: str
    kind: str | None
    term: str
    text: str
    narrative: str | None

    @property
    def half(self) -> Half:
        digest = hashlib.sha256(f"{self.term}|{self.text}".encode()).digest()
        return "tune" if digest[0] % 2 else "final"

    def kind_said(self) -> str | None:
        """Give what SAFE says of the term in a summary that is this text."""
        hits = said(Expectations(must_contain_phrases=(self.term,)), Output(summary=self.text), self.narrative)
        return hits[0].kind if hits else None


def said(expectations: Expectations, output: Output, narrative: str | None) -> tuple[DoubtfulHit, ...]:
    """Score an output and give its doubtful hits."""
    return doubtful_hits(output, narrative, score(prepare(expectations), output, Rules()).details)


def planted_hits() -> Iterator[PlantedHit]:
    groups: list[dict[str, Any]] = json.loads(_FILE.read_text(encoding="utf-8"))
    for group in groups:
        for term, text, *narrative in group["rows"]:
            yield PlantedHit(
                group["family"], group["sort"], group["kind"], term, text, narrative[0] if narrative else None
            )
