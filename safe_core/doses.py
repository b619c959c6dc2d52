"""The drugs of a text, and which one a dose belongs to."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from safe_core.diagnosis import relations
from safe_core.diagnosis.numbers_in_text import Value
from safe_core.diagnosis.reading import Fact
from safe_core.diagnosis.units import Unit

_FAR, _NEAR = 180, 60  # characters before and behind a dose in which its drug may be
_CLOSE: Final = 30  # in which it is, if nothing else is between
_PARTED: Final = re.compile(r"[.?!;\]\n](?=\s|\Z)|\[")
_LISTED: Final = re.compile(r"\s?(?:,|/|and|or|,\sand|,\sor|instead\sof|for|with|to)\s?")
_OF: Final = re.compile(r"\sof\s(?:the\s|her\s|his\s|your\s)?")


class Drugs(NamedTuple):
    """The drugs of a text with their places, and its doses."""

    text: str
    named: Sequence[tuple[int, int, str]]
    doses: Sequence[int]

    def beside(self, place: int) -> set[str]:
        """Give the drugs anywhere near a place."""
        first = bisect_left(self.named, (place - _FAR,))
        return {key for _, _, key in self.named[first : bisect_left(self.named, (place + _NEAR + 1,))]}

    def owner(self, dose: Value) -> str:
        """Give the drug whose dose a value is beyond doubt; "" if there is none.

        It is right before the dose, or after its "of". Of two drugs in a row nobody knows which the dose belongs to.
        """
        at = bisect_left(self.named, (dose.start,))
        if at < len(self.named) and _OF.fullmatch(self.text, dose.end, self.named[at][0]):
            return self.named[at][2]
        if not at:
            return ""
        start, end, key = self.named[at - 1]
        gap = self.text[end : dose.start]
        has_dose = bisect_left(self.doses, end) < bisect_left(self.doses, dose.start)
        is_listed = at > 1 and _LISTED.fullmatch(self.text, self.named[at - 2][1], start)
        is_close = len(gap) <= _CLOSE and not _PARTED.search(gap)
        return key if is_close and not has_dose and not is_listed else ""


def drugs_of(text: str, facts: Sequence[Fact | Unit]) -> Drugs:
    """Find the drugs and the doses among the facts of a text."""
    known = relations.drugs()
    return Drugs(
        text,
        [(fact.start, fact.end, fact.key) for fact in facts if fact.key in known],
        [fact.start for fact in facts if fact.value is not None and fact.value.kind == "quantity"],
    )
