"""Phrases of a narrative that are whole: read alone, they say the same as where they stand.

Those that do not are widened, word by word: "pain" to "free of pain", "needle time" to "door-to-needle time", "five
minutes" to "fifty-five minutes".
"""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from safe_core.diagnosis.reading import MAX_WORDS, Clause, Fact, read
from safe_core.diagnosis.words import words

_MOST_WIDER: Final = 10  # words by which a phrase is widened
_NOT_FIRST: Final = frozenset(
    ("not", "well", "able", "stable", "normal", "regular", "tender", "controlled", "symptomatic")
)
_BEFORE_VERBS: Final = frozenset(
    ("can", "cannot", "could", "may", "might", "must", "should", "would", "will", "shall", "do", "does", "did")
)
_BEFORE_TO: Final = frozenset(("able", "unable"))
"""What no phrase begins with or behind: "able" is in "unable", and "tolerate almonds" in "cannot tolerate almonds"."""
_PARTS_WORDS: Final = re.compile(r"[\s,;:()\[\]\"“”]")
_BEGINS_SENTENCE: Final = re.compile(r"[.!?;\n•]\s+")
_PART: Final = re.compile(r"[^\W_]+ (?:out )?of (?:(?:an?|the|his|her|their) )?\Z")  # "signs of", "two of"
_DIGIT: Final = re.compile(r"\d(?![\d.:/])")
_OPENS: Final = re.compile(r"[(\[“«]|(?<!\w)[\"'‘](?=\w)")
_CLOSES: Final = re.compile(r"[)\]”»]|(?<=\w)[\"'’](?!\w)")


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

    def whole(self, sentence: Sentence, start: int, end: int) -> Stretch | None:
        """Widen a place of a sentence until it is whole; None where it does not get so."""
        least, most = self._numbers(sentence.start, sentence.end)
        first, last = self._numbers(start, end)
        for wider in range(_MOST_WIDER + 1):
            for left in range(wider, -1, -1):
                begin, finish = self._joined(max(least, first - left), min(most, last + wider - left))
                if _DIGIT.match(self.text, self._starts[begin]):
                    begin -= 1  # "2-hour" is in "12-hour", too
                    if begin < least or any(fact.tells for fact in self.facts(self._starts[begin], self._ends[begin])):
                        return None
                if self._is_whole(self._starts[begin], self._ends[finish]):
                    return self._closed(self._starts[begin], self._ends[finish])
        return None

    def _numbers(self, start: int, end: int) -> tuple[int, int]:
        """Give the numbers of the first word that reaches into a place, and of the last one."""
        return bisect_right(self._ends, start), bisect_left(self._starts, end) - 1

    def _joined(self, first: int, last: int) -> tuple[int, int]:
        """Take in what is written as one word with the first or last, "door-to-needle", and what these need."""
        while first and not _PARTS_WORDS.search(self.text, self._ends[first - 1], self._starts[first]):
            first -= 1
        while last + 1 < len(self._words) and not _PARTS_WORDS.search(
            self.text, self._ends[last], self._starts[last + 1]
        ):
            last += 1
        if part := _PART.search(self.text[max(0, self._starts[first] - 40) : self._starts[first]]):
            first = self._numbers(self._starts[first] - len(part[0]), self._starts[first])[0]
        is_late = last + 1 < len(self._words) and self._words[last + 1].folded == "ago"
        while first and self._is_led(first):
            first -= 1
        return first, last + is_late

    def _is_led(self, first: int) -> bool:
        """Tell whether a word belongs to the one before it, without which it would say less."""
        if self.text[self._ends[first - 1] : self._starts[first]] != " ":
            return False
        own, before = self._words[first].folded, self._words[first - 1].folded
        is_able = "to" in {own, before} and self._words[max(0, first - 1 - (before == "to"))].folded in _BEFORE_TO
        return own in _NOT_FIRST or before in _BEFORE_VERBS or is_able

    def _is_whole(self, start: int, end: int) -> bool:
        """Tell whether a place says alone what it says in the narrative."""
        alone = [fact for clause in read(self.text[start:end]).clauses for fact in clause.facts]
        return [*map(_said, alone)] == [*map(_said, self.facts(start, end))]

    def _closed(self, start: int, end: int) -> Stretch | None:
        """Take in a quotation mark or bracket beside a phrase whose mate is inside; None where one stays outside."""
        places = ((begin, finish) for begin in (start, max(0, start - 1)) for finish in (end, end + 1))
        for begin, finish in places:
            if len(_OPENS.findall(self.text, begin, finish)) == len(_CLOSES.findall(self.text, begin, finish)):
                return Stretch(begin, min(finish, len(self.text)))
        return None


def _said(fact: Fact) -> tuple[object, ...]:
    value = (fact.value.scale, fact.value.canonical, fact.value.bound) if fact.value else ()
    return fact.key, value, fact.end - fact.start, fact.statuses if fact.tells else ()
