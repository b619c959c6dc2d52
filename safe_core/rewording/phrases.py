"""Phrases of a narrative that are whole: read alone, they say the same as where they stand.

A phrase is a constituent: it begins and ends at an edge. A border is the best edge: a pause, or a word that begins
another clause. Within a clause, few places are edges (`_begins`, `_ends`): what follows a left-out subject, a verb that
only says that something is there ("has", "shows"), or an article after one of these; and what comes before a further
member of a list or a preposition. So a phrase is never a noun without its verb ("No imaging | was done"), a part of a
compound ("abnormal lab | finding"), an object without its verb ("smokes | tobacco"), what hangs on another noun
("concern for | a fracture"), or what only holds on a condition ("swim | once it is better").
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from safe_core.diagnosis.lexicon import rows
from safe_core.diagnosis.reading import MAX_WORDS, Clause, Fact, is_negative, read
from safe_core.diagnosis.units import Unit, units_of
from safe_core.diagnosis.words import stem, word_set

_MOST_WIDER: Final = 12  # words by which a phrase is widened on either side
_MOST_EDGES: Final = 3  # of either side that are tried
_BREAK: Final = re.compile(r"[,.;:!?()\[\]\n•–—\"“”]|\s[-*/]+\s")
_APART: Final = re.compile(r"[\s,;:()\[\]\"“”]")
_BEGINS_SENTENCE: Final = re.compile(r"[.!?;\n•]\s+")
_DIGIT: Final = re.compile(r"\d(?![\d.:/])")
_PAIRS: Final = (
    (re.compile(r"[(\[]"), re.compile(r"[)\]]")),
    (re.compile(r"[“«]|(?<!\w)[\"'‘](?=\w)"), re.compile(r"[”»]|(?<=\w)[.,]?[\"'’](?!\w)")),
)
"""What opens and closes a bracket, and a quotation."""
_CONTRACTED: Final = re.compile(r"['’](?:m|re|ve)\Z")

_RESULTING: Final = word_set("resulting leading causing")
_TITLES: Final = word_set("dr mr mrs ms st")
_ARTICLES: Final = word_set("a an the his her their its my your our this these those any some such")
_PREPOSITIONS: Final = word_set("in on at for from by as during about upon regarding")
_BEFORE_ADJUNCTS: Final = word_set("in on at with from during upon within over through throughout since after without")
_HAVING: Final = word_set("be am is are was were been being has have had having")
_SUBJECTS: Final = word_set("he she they it who there patient pt")
_PEOPLE: Final = word_set("girl boy man woman child male female lady gentleman")
_SPEAKERS: Final = word_set("i you we")
_FILLERS: Final = word_set("okay ok um uh oh yeah so well alright hey hi hello mm-hmm uh-huh like know")
_AROUND: Final = word_set("also then now today here too")
_INTRODUCING: Final = _HAVING | _SUBJECTS | _PEOPLE | _AROUND | {"and", "gon na"}
_CONDITIONS: Final = word_set("if unless once until except when where in")
"""How "if", "in case" and the like begin: what stands behind is a condition."""
_MODALS: Final = word_set("can cannot could may might must should would will shall")
_VERBS: Final = _HAVING | _MODALS | word_set("do does did doing")
_NOT_FIRST: Final = word_set("not nt well able stable normal regular tender controlled symptomatic little bit")
"""What a phrase does not begin with, unless after a pause: "able" is in "unable"."""
_LINKS: Final = word_set("including regarding addition")
_OF_ONE: Final = word_set("did am are")
_PAST: Final = word_set("could can was were had no should would will must may might") | frozenset(
    form for _, forms in rows("forms") for form in forms[1:] if not form.endswith(("s", "ing")) and form not in _OF_ONE
)
"""Forms of verbs that are the same for "I" and "she"."""


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
        by_place = {unit.start: unit for unit in units_of(text, MAX_WORDS)}
        self._units = [by_place[start] for start in sorted(by_place)]
        self._starts = [unit.start for unit in self._units]
        self._ends_at = [unit.end for unit in self._units]

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

    def wholes(self, sentence: Sentence, start: int, end: int, kept: Set[str]) -> Iterator[Stretch]:
        """Give the whole phrases around a place of a sentence, the best first: those that cut no adjunct off.

        No word of `kept`, as a stem or key, is cut off from it.
        """
        least, most = self._numbers(sentence.start, sentence.end)
        first, last = self._with_kept(*self._numbers(start, end), kept)
        begins = [at for at in range(first, max(least, first - _MOST_WIDER) - 1, -1) if self._begins(at)]
        ends = [at for at in range(last, min(most, last + _MOST_WIDER) + 1) if self._ends(at)]
        for finish in sorted(ends[:_MOST_EDGES], key=self._is_adjunct):
            for begin in begins[:_MOST_EDGES]:
                whole = self._closed(self._starts[begin], self._ends_at[finish])
                if whole and not self._is_asked(whole, sentence) and self._is_whole(whole.start, whole.end):
                    yield whole

    def _numbers(self, start: int, end: int) -> tuple[int, int]:
        """Give the numbers of the first unit that reaches into a place, and of the last one."""
        return bisect_right(self._ends_at, start), bisect_left(self._starts, end) - 1

    def _with_kept(self, first: int, last: int, kept: Set[str]) -> tuple[int, int]:
        """Go on to the furthest words on either side, within the borders, that may not be cut off."""
        kept = kept - {word for at in range(first, last + 1) for word in self._said_by(at)}
        left = right = 0
        while first > left and left < _MOST_WIDER and not self._is_border(first - left):
            left += 1
            if kept & self._said_by(first - left):
                first, left = first - left, 0
        while last + right + 1 < len(self._units) and right < _MOST_WIDER and not self._is_border(last + right + 1):
            right += 1
            if kept & self._said_by(last + right):
                last, right = last + right, 0
        return first, last

    def _said_by(self, at: int) -> set[str]:
        """Give the key of a unit, and the stems of its words."""
        unit = self._units[at]
        words = unit.folded.split() if unit.entry.kind not in {"grammar", "end"} else ()
        return {unit.key, *map(stem, words)}

    def _between(self, at: int) -> str:
        """Give what stands before a unit."""
        return self.text[self._ends_at[at - 1] if at else 0 : self._starts[at]]

    def _is_border(self, at: int) -> bool:
        """Tell whether a unit is the first one after a pause, or begins another clause."""
        if at in {0, len(self._units)}:
            return True
        unit, before = self._units[at], self._units[at - 1]
        is_pause = _BREAK.search(self._between(at)) is not None and before.folded not in _TITLES
        begins_clause = unit.entry.begins != "" and unit.folded.partition(" ")[0] not in _CONDITIONS
        is_turn = unit.folded in _FILLERS | {"i", "we"} or before.folded in _FILLERS  # "you" may be an object
        return is_pause or begins_clause or is_turn

    # --- edges --------------------------------------------------------------------------------------------------------

    def _begins(self, at: int) -> bool:
        """Tell whether a phrase may begin with a unit."""
        unit, behind = self._units[at], at
        if not _APART.search(self._between(at)) and at:
            return False
        if _DIGIT.match(self.text, unit.start):
            return False  # "2-hour" is in "12-hour", too
        if (unit.folded in _NOT_FIRST and self._between(at) == " ") or unit.folded in _LINKS:
            return False
        is_number = at + 1 < len(self._units) and _DIGIT.match(self.text, self._starts[at + 1])
        if unit.entry.kind in {"grammar", "end"} and unit.folded not in _VERBS and not is_number:
            return False
        while behind and self._units[behind - 1].folded in _ARTICLES and not self._is_border(behind):
            behind -= 1
        if behind > 1 and self._units[behind - 1].folded == "with" and not self._is_border(behind):
            return not self._units[behind - 2].folded.endswith("ed")  # "treated with aspirin"
        if behind and self._units[behind - 1].folded in _PREPOSITIONS and not self._is_border(behind):
            behind -= 1
        return self._is_border(behind) or self._introduces(self._units[behind - 1], unit)

    def _introduces(self, before: Unit, unit: Unit) -> bool:
        """Tell whether a unit only introduces what begins behind it, and may be left out."""
        if before.folded in _SPEAKERS:
            if self._at(before) and self._units[self._at(before) - 1].folded in _VERBS | _CONDITIONS:
                return False  # "are you taking aspirin", "when you wake"
            has_form = unit.folded.endswith("ed") or unit.folded in _PAST
            return has_form or _CONTRACTED.search(self.text[before.start : before.end]) is not None
        if before.entry.begins:
            return before.folded.partition(" ")[0] not in _CONDITIONS
        ahead = self._units[self._at(before) - 1]
        if before.folded == "to":
            return ahead.folded == "going"
        if before.folded == "that":
            return ahead.entry.kind == "lead-in" or ahead.folded in {
                "him",
                "her",
            }  # "she notes that", not "makes that pain worse"
        is_verb = before.entry.kind == "lead-in" and not before.folded.endswith((" of", " for"))
        is_name = ahead.folded in _TITLES or (before.value is not None and before.value.kind == "age")
        is_result = before.folded.partition(" ")[0] in _RESULTING
        return is_verb or is_name or is_result or before.folded in _INTRODUCING

    def _ends(self, at: int) -> bool:
        """Tell whether a phrase may end with a unit."""
        unit = self._units[at]
        if self._is_border(at + 1):
            return unit.entry.kind not in {"grammar", "end"} or unit.folded in {"there", "here", "off", "up", "down"}
        following = self._units[at + 1]
        is_said = unit.key or unit.entry.trigger or unit.folded in _SUBJECTS
        if not is_said or not _APART.search(self._between(at + 1)):
            return False
        is_denied = any(map(is_negative, self.facts(unit.start, unit.end)))
        further = {"and", "or"} if is_denied else {"and", *_BEFORE_ADJUNCTS}
        is_place = following.folded in {"there", "here"} and self._is_border(at + 2)  # "working there"
        is_seen = not is_denied and self._is_seen(at + 1)
        return is_seen or (following.folded in {"who", "there"} | _AROUND | further and not is_place)

    def _is_adjunct(self, at: int) -> bool:
        """Tell whether what follows a unit says where, when or with what it is, or only that it was seen."""
        is_adjunct = at + 1 < len(self._units) and self._units[at + 1].folded in _BEFORE_ADJUNCTS
        return not self._is_border(at + 1) and (is_adjunct or self._is_seen(at + 1))

    def _is_seen(self, at: int) -> bool:
        """Tell whether a unit and the one behind it only say that something is there: "was noted"."""
        be, verb = (*self._units[at : at + 2], None, None)[:2]
        return be is not None and be.folded in {"was", "were"} and verb is not None and verb.entry.kind == "lead-in"

    def _at(self, unit: Unit) -> int:
        return bisect_left(self._starts, unit.start)

    def _is_asked(self, whole: Stretch, sentence: Sentence) -> bool:
        return self.text.find("?", whole.end, sentence.end) >= 0

    def _is_whole(self, start: int, end: int) -> bool:
        """Tell whether a place says alone what it says in the narrative."""
        alone = [fact for clause in read(self.text[start:end]).clauses for fact in clause.facts]
        return [*map(_said, alone)] == [*map(_said, self.facts(start, end))]

    def _closed(self, start: int, end: int) -> Stretch | None:
        """Take in a quotation mark or bracket beside a phrase whose mate is inside; None where one stays outside."""
        places = ((begin, finish) for begin in (start, max(0, start - 1)) for finish in (end, end + 1))
        for begin, finish in places:
            if all(
                len(opens.findall(self.text, begin, finish)) == len(closes.findall(self.text, begin, finish))
                for opens, closes in _PAIRS
            ):
                return Stretch(begin, min(finish, len(self.text)))
        return None


def _said(fact: Fact) -> tuple[object, ...]:
    value = (fact.value.scale, fact.value.canonical, fact.value.bound) if fact.value else ()
    return fact.key, value, fact.end - fact.start, fact.statuses if fact.tells else ()
