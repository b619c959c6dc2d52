"""A typed value in a text, such as a time or a side, and the spot in the text at which one is read."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from safe_core.diagnosis.values.unit_table import UNITS
from safe_core.diagnosis.words import Word

ValueType = Literal["number", "time", "day", "grade", "side", "route", "comparison"]
_BARE = frozenset(("bare", "ordinal", "grade", "numbered day", "ratio", "rate", "year"))


class Value(NamedTuple):
    """A value and how many words it takes."""

    type: ValueType
    scale: str  # what is measured or counted: values of different scales are no alternatives
    canonical: str
    length: int
    amount: str = ""  # the number before a unit

    @property
    def key(self) -> str:
        """Give what makes two values the same; a bare number is the same whatever it counts."""
        return f"{'number' if self.scale in _BARE or self.scale.startswith('of ') else self.scale} {self.canonical}"

    def is_alternative(self, other: "Value") -> bool:
        """Tell whether two values answer the same question otherwise: "13 hours" and "3 hours", "2 g" and "2 mg"."""
        if self.key == other.key:
            return False
        if self.scale == other.scale:
            return True
        is_unfinished = self.scale.startswith(f"{other.scale} per") or other.scale.startswith(f"{self.scale} per")
        return self.amount != "" and self.amount == other.amount and not is_unfinished  # "5 mg" of "5 mg/kg"


class Spot(NamedTuple):
    """A word among its neighbours."""

    text: str
    words: Sequence[Word]
    at: int

    def folded(self, step: int = 0) -> str:
        """Give the folded word `step` places on; nothing beyond the ends."""
        place = self.at + step
        return self.words[place].folded if 0 <= place < len(self.words) else ""

    @property
    def is_capitalised(self) -> bool:
        return self.text[self.words[self.at].start].isupper()

    @property
    def is_acronym(self) -> bool:
        word = self.words[self.at]
        return 2 < word.end - word.start < 7 and self.text[word.start : word.end].isupper() and word.folded not in UNITS

    def at_step(self, step: int) -> "Spot":
        return Spot(self.text, self.words, self.at + step)

    def before(self, step: int) -> str | None:
        """Give what parts the word `step` places on from the one before it; None beyond the ends."""
        place = self.at + step
        inside = 0 < place < len(self.words)
        return self.text[self.words[place - 1].end : self.words[place].start] if inside else None
