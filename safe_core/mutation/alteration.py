"""One alteration of a narrative: which words become which others, with the grammar around them kept."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, get_args

from safe_core.diagnosis.words import Word

MutantKind = Literal[
    "negation_removed",
    "negation_added",
    "number",
    "time",
    "side",
    "normal_abnormal",
    "grade",
    "certainty",
]
KINDS: Final[tuple[MutantKind, ...]] = get_args(MutantKind)
"""What is altered; `time` is clock times and days, while durations are a `number` (contract.md, "Mutants")."""

_SPOKEN_WITH_VOWEL = ("8", "11", "18")  # eight, eleven, eighteen
_ARTICLES = ("a", "an")
_CONSONANT_SOUND = ("uni", "use", "usu", "eu", "one")
_MUTE_H = ("hour", "honest", "heir")


class Alteration(NamedTuple):
    """`narrative[start:end]`, in code points, becomes `after`."""

    kind: MutantKind
    start: int
    end: int
    after: str

    def applied(self, narrative: str) -> str:
        """Give the narrative with this one alteration."""
        return narrative[: self.start] + self.after + narrative[self.end :]


class Cut(NamedTuple):
    """A narrative, cut into words."""

    text: str
    words: Sequence[Word]

    def folded(self, at: int) -> str:
        """Give a word without form; nothing beyond the ends."""
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

    def altered(self, kind: MutantKind, first: int, last: int, after: str) -> Alteration:
        """Put words in the place of `first` to `last`, with the capital of what they replace, and "a" or "an" before.

        Without any, the word before goes with them, so that no double space is left, or the one behind them.
        """
        if not after:
            return self._without(kind, first, last)
        after = like(self.written(first), after)
        if self.folded(first - 1) in _ARTICLES and self.touches(first):
            article = like(self.written(first - 1), article_of(after))
            if article != self.written(first - 1):
                first, after = first - 1, f"{article} {after}"
        return Alteration(kind, self.words[first].start, self.words[last].end, after)

    def _without(self, kind: MutantKind, first: int, last: int) -> Alteration:
        if first > 0 and self.touches(first):
            return Alteration(kind, self.words[first - 1].start, self.words[last].end, self.written(first - 1))
        following = like(self.written(first), self.written(last + 1)) if last + 1 < len(self.words) else ""
        end = self.words[last + 1 if following else last].end
        return Alteration(kind, self.words[first].start, end, following)


def like(before: str, after: str) -> str:
    """Write a text with a capital where the one that it replaces has one, or in capitals."""
    if len(before) > 1 and before.isupper():
        return after.upper()
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
