"""Phrases of a narrative that are whole: cut neither out of a denial nor out of a word, a number or a quotation.

Words that are not are widened to what they are cut out of: "pain" of "free of pain", "needle time" of "door-to-needle
time", "arm" of "L arm", "five minutes" of "fifty-five minutes".
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from safe_core.diagnosis.denial_scope import Place, is_denied_at
from safe_core.diagnosis.passage_denials import doubts_beside
from safe_core.diagnosis.sentence_index import Sentence, Sentences
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.words import word_set
from safe_core.plain_values import spelled_in
from safe_core.rewording.claims import DOUBTS, Denial, denials

_MOST_WORDS: Final = 24  # of one phrase
_WORD_EDGE: Final = re.compile(r"[^\W_]")
_PARTS_WORDS: Final = re.compile(r"[\s,;:()\[\]\"“”]")
AUXILIARIES: Final = word_set(
    "is are was were be been being has have had do does did can could will would shall should may might must"
)
_AFTER_AUXILIARIES: Final = word_set("not hardly scarcely barely")
_RELATIVES: Final = word_set("family maternal paternal mother father")
_PAIRS: Final = {"(": ")", "[": "]", "“": "”", "‘": "’", "«": "»"}
_OPENED_BY: Final = {closing: opening for opening, closing in _PAIRS.items()}
_MARKS: Final = "".join((*_PAIRS, *_OPENED_BY, "\"'"))
_MOST_QUOTES: Final = 4


@dataclass(frozen=True, slots=True, order=True)
class Stretch:
    """A stretch of a narrative, in code points."""

    start: int
    end: int


class WholePhrases:
    """The phrases of a narrative."""

    def __init__(self, text: str, cut: Sentences) -> None:
        self._text = text
        self._cut = cut
        self._spelled = sorted(spelled_in(text))
        self._denials: dict[int, list[Denial]] = {}

    def tells(self, phrase: str) -> bool:
        """Tell whether it says what another narrative says in these words, and does not deny it."""
        needle = phrase.strip(_MARKS).lower()
        return any(
            self.whole(sentence, *place) == place
            for sentence in self._cut.sentences
            for place in _places(sentence.items, self._text, needle)
        )

    def whole(
        self, sentence: Sentence, first: int, last: int, *, denies: bool = False, scales: Collection[str] = ()
    ) -> tuple[int, int] | None:
        """Widen the items `first` to `last` to a whole phrase; `scales` are those of which a value must not be cut off.

        None where a denial reaches them, unless what they are to replace `denies` something too, or where they get too
        many.
        """
        items = sentence.items
        while last - first < _MOST_WORDS:
            begin, end = self._joined(items, first, last)
            begin -= begin > 0 and _belongs_to(items, begin, scales)
            doubts = [at for at in doubts_beside(items, begin, end) if items[at].key in DOUBTS]
            begin, end = min((begin, *doubts)), max((end, *doubts))
            begin, end = _whole_range(items, begin, end)
            for denial in self._denials_of(sentence):
                inside = begin <= denial.at <= end
                about = [at for at in denial.about if begin <= at <= end]
                if not inside and about:
                    if denial.of_another or not (denies or denial.kind == "delayed"):
                        return None
                    begin, end = min(begin, denial.at), max(end, denial.at)
                elif inside and denial.about and not about:
                    begin, end = min(begin, denial.about[0]), max(end, denial.about[0])
            if (begin, end) == (first, last):
                is_denied = is_denied_at(Place(self._text, items, first, last))
                return None if is_denied else (first, last)
            first, last = begin, end
        return None

    def _denials_of(self, sentence: Sentence) -> list[Denial]:
        if sentence.number not in self._denials:
            self._denials[sentence.number] = denials(sentence.items)
        return self._denials[sentence.number]

    def _joined(self, items: Sequence[Item], first: int, last: int) -> tuple[int, int]:
        """Take in what is written as one word with the first or last, "door-to-needle", and whole spelled values."""
        while first and not self._are_parted(items, first):
            first -= 1
        while last + 1 < len(items) and not self._are_parted(items, last + 1):
            last += 1
        for start, end in self._spelled:
            leads_to = items[first].start - 1 <= end <= items[first].start  # "a dozen | stitches"
            if leads_to or (start < items[last].end and items[first].start < end):
                while first and start < items[first].start:
                    first -= 1
                while last + 1 < len(items) and items[last].end < end:
                    last += 1
        return first, last

    def _are_parted(self, items: Sequence[Item], at: int) -> bool:
        return _PARTS_WORDS.search(self._text, items[at - 1].end, items[at].start) is not None

    def stretch(self, items: Sequence[Item]) -> Stretch | None:
        """Give the place of words with their quotation marks; None if one of a pair stays outside."""
        start, end = items[0].start, items[-1].end
        for _ in range(_MOST_QUOTES):
            unpaired = _unpaired(self._text, start, end)
            if unpaired is None:
                return Stretch(start, end)
            if unpaired in "()[]":  # "(AIN) palsy" is no phrase
                break
            if unpaired == self._text[end : end + 1]:
                end += 1
            elif start and unpaired == self._text[start - 1]:
                start -= 1
            else:
                break
        return None


def _belongs_to(items: Sequence[Item], begin: int, scales: Collection[str]) -> bool:
    """Tell whether the word before a phrase changes what it says.

    It does in "could | not", "more than | 90", "family | history", and in "left | arm" if the term has a side, too.
    """
    if items[begin].pause:
        return False
    before, first = items[begin - 1], items[begin]
    if before.value is not None and (before.value.scale in scales or before.value.type == "comparison"):
        return True
    is_told_of_others = first.folded == "history" and before.folded in _RELATIVES
    return is_told_of_others or (first.folded in _AFTER_AUXILIARIES and before.folded in AUXILIARIES)


def _whole_range(items: Sequence[Item], begin: int, end: int) -> tuple[int, int]:
    """Take in the other end of "10 to 12 kg" and "two of five", and of "neither red nor tender"."""
    if begin > 1 and items[begin - 1].folded in {"to", "of"} and _are_alike(items[begin - 2], items[begin]):
        begin -= 2
    if end + 2 < len(items) and items[end + 1].folded == "to" and _are_alike(items[end], items[end + 2]):
        end += 2
    if end + 2 < len(items) and items[end + 1].folded == "nor":
        end += 2
    return begin, end


def _are_alike(one: Item, other: Item) -> bool:
    return one.value is not None and other.value is not None and one.value.type == other.value.type


def _places(items: Sequence[Item], text: str, needle: str) -> Iterator[tuple[int, int]]:
    """Give where a text in small letters is in a sentence, as whole words."""
    ends = {item.end: at for at, item in enumerate(items)}
    for first, item in enumerate(items):
        end = item.start + len(needle)
        if end in ends and text[item.start : end].lower() == needle:
            yield first, ends[end]


def _unpaired(text: str, start: int, end: int) -> str | None:
    """Give the quotation mark or bracket that a stretch of a text lacks, the first one; None if it lacks none."""
    awaited: list[str] = []
    for at in range(start, end):
        mark = text[at]
        if awaited and mark == awaited[-1] and not _is_apostrophe(text, at):
            awaited.pop()
        elif mark in _PAIRS:
            awaited.append(_PAIRS[mark])
        elif mark in _OPENED_BY:
            if mark != "’" or text[start - 1 : start] == "‘":
                return _OPENED_BY[mark]
        elif mark == '"' or (mark == "'" and not _is_apostrophe(text, at) and _WORD_EDGE.match(text, at + 1)):
            awaited.append(mark)
        elif mark == "'" and start and text[start - 1] == mark and not _is_apostrophe(text, at):
            return mark
    return awaited[-1] if awaited else None


def _is_apostrophe(text: str, at: int) -> bool:
    """Tell the apostrophe of "patient's" from a quotation mark."""
    return at > 0 and _WORD_EDGE.match(text, at - 1) is not None and _WORD_EDGE.match(text, at + 1) is not None
