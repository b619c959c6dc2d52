"""One alteration of a narrative: which words become which others, with the grammar around them kept."""

import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Final, Literal, NamedTuple, get_args

from safe_core.diagnosis.lexicon import rows
from safe_core.diagnosis.reading import Clause, Reading, read
from safe_core.diagnosis.units import units_of
from safe_core.diagnosis.words import Word, words

MutantKind = Literal[
    "number", "negation_removed", "negation_added", "side", "drug", "grade", "normal_abnormal", "time", "certainty"
]
KINDS: Final[tuple[MutantKind, ...]] = get_args(MutantKind)
"""What is altered, what people see first in front; `time` is clock times and days, a duration is a `number`."""

_MOST_WORDS: Final = 100_000
_SPOKEN: Final = re.compile(r"(?i)\b(?:I|you|we|me|us|my|your|our)\b")
_SPOKEN_WITH_VOWEL = ("8", "11", "18")  # eight, eleven, eighteen
_ARTICLES = ("a", "an")
_CONSONANT_SOUND = ("uni", "use", "usu", "eu", "one")
_MUTE_H = ("hour", "honest", "heir")


@cache
def usage() -> Mapping[str, frozenset[str]]:
    """Give the words of each class of `lexicon/usage.tsv`; a class of a context has its word in the name."""
    found: dict[str, set[str]] = {}
    for _, (kind, *cells) in rows("usage"):
        for name in cells[0].split(",") if len(cells) > 1 else ("",):
            found.setdefault(f"{kind} {name}".strip(), set()).update(cells[-1].lower().split())
    return {name: frozenset(members) for name, members in found.items()}


class Alteration(NamedTuple):
    """`narrative[start:end]`, in code points, becomes `after`."""

    kind: MutantKind
    start: int
    end: int
    after: str

    def applied(self, narrative: str) -> str:
        """Give the narrative with this one alteration."""
        return narrative[: self.start] + self.after + narrative[self.end :]


class Cut:
    """A narrative, cut into words; beyond its ends there are empty ones."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[Word] = words(text, _MOST_WORDS)

    @cached_property
    def _ends(self) -> list[int]:
        return [word.end for word in self.words]

    @cached_property
    def reading(self) -> Reading:
        """What it tells."""
        return read(self.text)

    @cached_property
    def _clause_ends(self) -> list[int]:
        return [clause.end for clause in self.reading.clauses]

    def clause(self, place: int) -> Clause | None:
        """Give the clause that a place is in; None where nothing is told."""
        number = bisect_right(self._clause_ends, place)
        clauses = self.reading.clauses[number : number + 1]
        return clauses[0] if clauses and clauses[0].start <= place else None

    def is_spoken(self, start: int, end: int) -> bool:
        """Tell whether a place is somebody's turn, or speaks to somebody."""
        return self.text[self.text.rfind("\n", 0, start) + 1 :][:1] == "[" or bool(
            _SPOKEN.search(self.text, start, end)
        )

    def at(self, place: int) -> int:
        """Give the number of the word at a place of the text, or of the first one behind it."""
        return bisect_right(self._ends, place)

    def folded(self, at: int) -> str:
        """Give a word without form."""
        return self.words[at].folded if 0 <= at < len(self.words) else ""

    def written(self, first: int, last: int | None = None) -> str:
        """Give the text from one word to another as it is written."""
        return self.text[self.words[first].start : self.words[first if last is None else last].end]

    def between(self, at: int) -> str:
        """Give what stands between a word and the one before it; a full stop beyond the ends."""
        inside = 0 < at < len(self.words)
        return self.text[self.words[at - 1].end : self.words[at].start] if inside else "."

    def touches(self, at: int) -> bool:
        """Tell whether a word and the one before it are parted by white space alone."""
        return self.between(at).isspace()

    def denies(self, at: int) -> bool:
        """Tell whether a phrase begins with a word that denies what is beside it, or with its "n't"; not "not only"."""
        places = (self.words[at].start, self.words[at].end - 3) if 0 <= at < len(self.words) else ()
        return any(self._triggers.get(place) == "denied" for place in places)

    @cached_property
    def _triggers(self) -> dict[int, str]:
        units = [*units_of(self.text, _MOST_WORDS)]
        denying = {unit.start: "denied" for unit in units if unit.folded.startswith("no ")}  # "no known allergies"
        return denying | {unit.start: unit.entry.trigger.status for unit in units if unit.entry.trigger}

    def is_short_not(self, at: int) -> bool:
        """Tell whether a word ends with a "not" in short: "couldn't"."""
        return 0 <= at < len(self.words) and self.written(at)[-3:].lower() in {"n't", "n\u2019t"}

    def sentence(self, at: int) -> range:
        """Give the numbers of the words of the sentence that a word is in."""
        clause = self.clause(self.words[at].start)
        own = self.reading.sentences[clause.sentence] if clause is not None else ()
        return range(self.at(own[0].start), self.at(own[-1].end - 1) + 1) if own else range(at, at + 1)

    def altered(self, kind: MutantKind, first: int, last: int, after: str) -> Alteration:
        """Put words in the place of `first` to `last`, with the capital of what they replace, and "a" or "an" before.

        Without any, the word before goes with them, so that no double space is left, or the one behind them.
        """
        if not after:
            return self._without(kind, first, last)
        return self.placed(kind, self.words[first].start, self.words[last].end, like(self.written(first, last), after))

    def placed(self, kind: MutantKind, start: int, end: int, after: str) -> Alteration:
        """Put a text in the place of another one, with "a" or "an" before it."""
        before = self.at(start) - 1
        if self.folded(before) in _ARTICLES and self.text[self.words[before].end : start].isspace():
            article = like(self.written(before), article_of(after))
            if article != self.written(before):
                start, after = self.words[before].start, f"{article}{self.text[self.words[before].end : start]}{after}"
        return Alteration(kind, start, end, after)

    def _without(self, kind: MutantKind, first: int, last: int) -> Alteration:
        if first > 0 and self.touches(first):
            return Alteration(kind, self.words[first - 1].start, self.words[last].end, self.written(first - 1))
        following = like(self.written(first), self.written(last + 1)) if last + 1 < len(self.words) else ""
        end = self.words[last + 1 if following else last].end
        return Alteration(kind, self.words[first].start, end, following)


def like(before: str, after: str) -> str:
    """Write a text with a capital where the one that it replaces has one, or in capitals; several words are not."""
    if len(before) > 1 and before.isupper():
        return after if " " in after and " " not in before else after.upper()
    return after[:1].upper() + after[1:] if before[:1].isupper() else after


def article_of(following: str) -> str:
    """Give "an" before what is spoken with a vowel, else "a"."""
    word = following.lower()
    if word[:1].isdecimal():
        number = word.split("-")[0].split(" ")[0].split(".")[0]
        spoken = number[:1] == "8" or number in _SPOKEN_WITH_VOWEL
        return "an" if spoken else "a"
    vowel = word.startswith(_MUTE_H) or (word[:1] in "aeiou" and not word.startswith(_CONSONANT_SOUND))
    return "an" if vowel else "a"
