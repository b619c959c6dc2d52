"""Phrases of a narrative that are whole: read alone, they say the same as where they stand.

Those that do not are widened, word by word: "pain" to "free of pain", "needle time" to "door-to-needle time", "five
minutes" to "fifty-five minutes".
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from safe_core.diagnosis.reading import MAX_WORDS, Clause, Fact, read
from safe_core.diagnosis.words import words

_MOST_WIDER: Final = 10  # words by which a phrase is widened
_PARTS_WORDS: Final = re.compile(r"[\s,;:()\[\]\"“”]")
_BEGINS_SENTENCE: Final = re.compile(r"[.!?;\n•]\s+")
_NOT: Final = re.compile(r"\b(?:is|are|was|were|has|have|had|do|does|did|can|could|would|will|may|might|must) \Z", re.I)
_PART: Final = re.compile(
    r"[^\W_]+ (?:out )?of (?:(?:an?|the|his|her|their) )?\Z"
)  # "signs of | infection", "two of | five"
_BRACKETS: Final = {"(": ")", "[": "]"}
_QUOTES: Final = {'"': '"', "“": "”", "‘": "’", "«": "»", "'": "'"}
_APOSTROPHE: Final = re.compile(r"(?<=\w)['’](?=\w)|(?<=s)['’](?=\s)")


@dataclass(frozen=True, slots=True, order=True)
class Stretch:
    """A stretch of a narrative, in code points."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a narrative: its clauses, and its place."""

    clauses: tuple[Clause, ...]
    start: int
    end: int


class Phrases:
    """The phrases of a narrative."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._words = words(text, MAX_WORDS)
        self._starts = [word.start for word in self._words]
        self._ends = [word.end for word in self._words]

    @cached_property
    def sentences(self) -> list[Sentence]:
        """The sentences that have facts, with the grammar around these."""
        found: list[Sentence] = []
        cut = [own for own in read(self.text).sentences if own]
        for at, own in enumerate(cut):
            end = cut[at + 1][0].start if at + 1 < len(cut) else len(self.text)
            stop = _BEGINS_SENTENCE.search(self.text, own[-1].end, end)
            start = found[-1].end if found else 0
            found.append(Sentence(tuple(own), start, stop.end() if stop else end))
        return found

    @cached_property
    def _facts(self) -> list[Fact]:
        return [fact for sentence in self.sentences for clause in sentence.clauses for fact in clause.facts]

    def facts(self, start: int, end: int) -> list[Fact]:
        """Give the facts within a place."""
        first = bisect_left(self._facts, start, key=lambda fact: fact.start)
        last = bisect_left(self._facts, end, key=lambda fact: fact.start)
        return [fact for fact in self._facts[first:last] if fact.end <= end]

    def words(self, start: int, end: int) -> tuple[int, int]:
        """Give the numbers of the first word that reaches into a place, and of the last one."""
        return bisect_right(self._ends, start), bisect_left(self._starts, end) - 1

    def place(self, first: int, last: int) -> tuple[int, int]:
        """Give where some words are."""
        return self._starts[first], self._ends[last]

    def whole(self, sentence: Sentence, start: int, end: int) -> Stretch | None:
        """Widen a place of a sentence until it is whole; None where it does not get so."""
        least, most = self.words(sentence.start, sentence.end)
        first, last = self.words(start, end)
        for wider in range(_MOST_WIDER + 1):
            for left in range(wider, -1, -1):
                begin, finish = self._joined(max(least, first - left), min(most, last + wider - left))
                if self._is_whole(*self.place(begin, finish)):
                    return self._with_quotes(*self.place(begin, finish))
        return None

    def _joined(self, first: int, last: int) -> tuple[int, int]:
        """Take in what is written as one word with the first or last, "door-to-needle", and the "could" of "not"."""
        while first and not _PARTS_WORDS.search(self.text, self._ends[first - 1], self._starts[first]):
            first -= 1
        while last + 1 < len(self._words) and not _PARTS_WORDS.search(
            self.text, self._ends[last], self._starts[last + 1]
        ):
            last += 1
        begin = self.text[max(0, self._starts[first] - 40) : self._starts[first]]
        if self._words[first].folded == "not" and _NOT.search(begin):
            first -= 1
        elif part := _PART.search(begin):
            first = self.words(self._starts[first] - len(part[0]), self._starts[first])[0]
        return first, last

    def _is_whole(self, start: int, end: int) -> bool:
        """Tell whether a place says alone what it says in the narrative."""
        alone = [fact for clause in read(self.text[start:end]).clauses for fact in clause.facts]
        there = self.facts(start, end)
        return [*map(_said, alone)] == [*map(_said, there)]

    def _with_quotes(self, start: int, end: int) -> Stretch | None:
        """Take in a quotation mark beside a phrase whose mate is inside; None where one of a pair stays outside."""
        written = _APOSTROPHE.sub("_", self.text[start:end])
        if any(written.count(one) != written.count(other) for one, other in _BRACKETS.items()):
            return None
        for one, other in _QUOTES.items():
            is_open = written.count(one) % 2 if one == other else written.count(one) > written.count(other)
            is_closed = is_open if one == other else written.count(other) > written.count(one)
            if is_open and self.text[end : end + 1] == other:
                end += 1
            elif is_closed and start and self.text[start - 1] == one:
                start -= 1
            elif is_open or is_closed:
                return None
        return Stretch(start, end)

    def occurrences(self, phrase: str) -> Iterator[Stretch]:
        """Give where a phrase is, as whole words, in small letters or large ones."""
        text, needle = self.text.lower(), phrase.lower()
        at = text.find(needle) if len(text) == len(self.text) and needle else -1
        while at >= 0:
            first, last = self.words(at, at + len(needle))
            if first <= last and self.place(first, last) == (at, at + len(needle)):
                yield Stretch(at, at + len(needle))
            at = text.find(needle, at + 1)

    def tells(self, phrase: str) -> bool:
        """Tell whether it says what another narrative says in these words, and does not deny it."""
        return any(
            self.whole(sentence, place.start, place.end) == place
            for place in self.occurrences(phrase.strip("\"'“”‘’«»()[]"))
            for sentence in self.sentences
            if sentence.start <= place.start < sentence.end
        )


def _said(fact: Fact) -> tuple[object, ...]:
    value = (fact.value.scale, fact.value.canonical, fact.value.bound) if fact.value else ()
    return fact.key, value, fact.end - fact.start, fact.statuses if fact.tells else ()
