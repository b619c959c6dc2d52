"""How a missed term could ask for the same in the narrative's own words (contract.md, "Proposals").

A rewording is one phrase of the narrative or a few, which hold together all that the term says and the narrative has.
Those that the output has too come first; then the place of the narrative that is nearest to the term, as it stands.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from safe_core.diagnosis.output_texts import elements
from safe_core.diagnosis.passages import Match, Term, nearest, term_of, weight
from safe_core.diagnosis.same_words import held_in_other_form
from safe_core.diagnosis.sentence_index import Sentence, Sentences
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.word_lists.grammar_words import WEAK_WORDS
from safe_core.matching_rule import normalise
from safe_core.outputs import Output
from safe_core.plain_values import plain
from safe_core.rewording.claims import are_kept, claims_of
from safe_core.rewording.whole_phrases import AUXILIARIES, Stretch, WholePhrases

MOST_PHRASES: Final = 3
_MOST_SENTENCES: Final = 16  # of the narrative that are compared with a term
_MOST_MATCHES: Final = 4  # the nearest of them, which may hold it together
_MOST_WORDS: Final = 24  # of one phrase
_LEAST_SHARE: Final = 0.5  # of a term stands in the narrative, or it says something else
_LEAST_WORDS: Final = 2  # of one phrase: a single word is in any output
_LONG_WORD: Final = 9  # letters of a single word that is no everyday one
_LEADING: Final = frozenset(("negation", "certainty"))  # what they are about follows them
_GRAMMAR: Final = frozenset(("connective", "lead-in"))
_WORD_EDGE: Final = re.compile(r"[^\W_]")
_ATTRIBUTES: Final = re.compile(
    r"\w+(?:al|ary|ed|ible|able|ic|ive|ous)|severe|mild|open|intact|acute|minor|major|late|old"
)


@dataclass(frozen=True)
class _Run:
    """The items `first` to `last` of a sentence of the narrative, and which of those that are wanted they hold."""

    sentence: Sentence
    first: int
    last: int
    held: frozenset[str]

    @property
    def items(self) -> Sequence[Item]:
        return self.sentence.items[self.first : self.last + 1]


class Narrative:
    """A narrative, cut once for all terms of its case."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._cut = Sentences(elements(Output(summary=text)))
        self._normalised = normalise(text)
        self._phrases = WholePhrases(text, self._cut)

    def rewordings(self, term: str, read: str) -> Iterator[tuple[Stretch, ...]]:
        """Give the rewordings of a term that keep what it claims, the best first, each once.

        `read` is what its criterion reads, normalised.
        """
        wanted = _Wanted(term_of(plain(term)), self._cut)
        if not wanted.keys or wanted.share < _LEAST_SHARE:
            return
        seen: set[tuple[Stretch, ...]] = set()
        for stretches in self._candidates(wanted, term, read):
            phrases = self.phrases(stretches)
            if phrases and stretches not in seen and self.keeps(term, phrases) and wanted.is_whole_in(phrases):
                yield stretches
            seen.add(stretches)

    def phrases(self, stretches: Sequence[Stretch]) -> tuple[str, ...]:
        """Give the texts of some stretches."""
        return tuple(self.text[each.start : each.end] for each in stretches)

    def keeps(self, term: str, phrases: Sequence[str]) -> bool:
        """Tell whether phrases keep each number, time and side of a term, and all that it denies or doubts."""
        return are_kept(term, phrases, self.text)

    def tells(self, phrase: str) -> bool:
        """Tell whether it says what another narrative says in these words, and does not deny it."""
        return self._phrases.tells(phrase)

    # --- candidates ---------------------------------------------------------------------------------------------------

    def _candidates(self, wanted: "_Wanted", term: str, read: str) -> Iterator[tuple[Stretch, ...]]:
        for trimmed in (True, False):
            yield self._cover(wanted, self._runs(wanted, read, trimmed=trimmed))
        if normalise(term) not in self._normalised:
            for most in (1, MOST_PHRASES):
                yield self._as_told(wanted, most)

    def _runs(self, wanted: "_Wanted", read: str, *, trimmed: bool) -> list[_Run]:
        """Give the longest stretches near the term that the output has word for word."""
        runs: list[_Run] = []
        for sentence in wanted.sentences:
            for run in _common(sentence, self.text, read, wanted.keys, trimmed=trimmed):
                last = _end_of_noun(sentence.items, run.last, self.text, read)
                whole = self._phrases.whole(sentence, run.first, last, denies=wanted.denies, scales=wanted.scales)
                if whole is not None and _is_phrase(sentence.items[whole[0] : whole[1] + 1], wanted.term):
                    runs.append(_Run(sentence, *whole, run.held))
        return runs

    def _cover(self, wanted: "_Wanted", runs: Sequence[_Run]) -> tuple[Stretch, ...]:
        """Choose a few stretches that hold all that is wanted, the largest first; nothing if they do not."""
        left: set[str] = set(wanted.keys)
        chosen: list[Stretch] = []
        while left and len(chosen) < MOST_PHRASES:
            best = max(runs, key=lambda run: (len(run.held & left), -(run.last - run.first)), default=None)
            stretch = self._phrases.stretch(best.items) if best is not None and best.held & left else None
            if best is None or stretch is None:
                return ()
            chosen.append(stretch)
            left -= best.held
        return () if left else _apart(chosen)

    def _as_told(self, wanted: "_Wanted", most: int) -> tuple[Stretch, ...]:
        """Give the narrative's own words, from the first word that is wanted to the last, sentence by sentence."""
        left: set[str] = set(wanted.keys)
        stretches: list[Stretch] = []
        for match in wanted.matches:
            held = match.keys.keys() & left
            if not held or len(stretches) == most:
                continue
            first, last = _with_rival(match, wanted.term)
            last = _end_of_phrase(match.items, last)
            whole = self._phrases.whole(match.sentence, first, last, denies=wanted.denies, scales=wanted.scales)
            told = match.items[whole[0] : whole[1] + 1] if whole is not None else ()
            if not told or not _is_phrase(told, wanted.term) or _runs_on(told, match):
                return ()
            if stretches and _tells_more(told, wanted.term):
                return ()
            stretch = self._phrases.stretch(told)
            if stretch is None:
                return ()
            stretches.append(stretch)
            left -= held
        return () if left else _apart(stretches)


class _Wanted:
    """What a rewording of a term must hold: all that is essential and stands in the nearest places of the narrative."""

    def __init__(self, term: Term, narrative: Sentences) -> None:
        self.term = term
        self.matches: list[Match] = nearest(term, narrative, _MOST_SENTENCES)[:_MOST_MATCHES]
        # A further sentence counts only for what the nearest one lacks.
        self._near = self.matches[:1] + [match for match in self.matches[1:] if _adds(match, self.matches[0], term)]

    @cached_property
    def keys(self) -> frozenset[str]:
        held = {key for match in self._near for key in match.keys}
        return frozenset(item.key for item in self.term.essential if item.key in held)

    @cached_property
    def denies(self) -> bool:
        """Whether the term denies or doubts something."""
        return bool(claims_of(self.term.text).denied)

    @cached_property
    def scales(self) -> frozenset[str]:
        """The scales of its values."""
        return frozenset(item.value.scale for item in self.term.items if item.value is not None)

    @cached_property
    def share(self) -> float:
        """How much of the term the narrative has, or has with another value, 0 to 1."""
        telling = [item for item in self.term.items if item.role not in _GRAMMAR] or list(self.term.items)
        whole = sum(map(weight, telling))
        told = (item for item in telling if item.key in self.keys or self._has_rival(item))
        return sum(map(weight, told)) / whole if whole else 0.0

    def _has_rival(self, item: Item) -> bool:
        """Tell whether the nearest place has another value where the term has this one."""
        rivals = (other.value for match in self.matches[:1] for other in match.items)
        return item.value is not None and any(
            other is not None and item.value.is_alternative(other) for other in rivals
        )

    def is_whole_in(self, phrases: Sequence[str]) -> bool:
        """Tell whether phrases have each word of content that the term and the nearest sentences have, in any form."""
        cut = Sentences(elements(Output(signals=tuple(phrases))))
        return self._held(self.sentences) <= self._held(cut.sentences)

    def _held(self, sentences: Sequence[Sentence]) -> set[Item]:
        wanted = [item for item in self.term.items if item.role == "content" and item.key not in WEAK_WORDS]
        held: set[Item] = set()
        for sentence in sentences:
            keys = {item.key for item in sentence.items}
            held |= {item for item in wanted if item.key in keys} | held_in_other_form(self.term, wanted, sentence)
        return held

    @property
    def sentences(self) -> list[Sentence]:
        return list({match.sentence.number: match.sentence for match in self._near}.values())


def _adds(match: Match, best: Match, term: Term) -> bool:
    return any(item.key in match.keys and item.key not in best.keys for item in term.essential)


def _with_rival(match: Match, term: Term) -> tuple[int, int]:
    """Widen a match to the value that stands in the narrative where the term has another one."""
    first, last = match.first, match.last
    lacking = [item.value for item in match.absent if item.value is not None]
    for at, item in enumerate(match.items):
        rival = item.value
        if rival is not None and item.key not in term.core and any(each.is_alternative(rival) for each in lacking):
            first, last = min(first, at), max(last, at)
    return first, last


def _is_phrase(items: Sequence[Item], term: Term) -> bool:
    """Tell whether words can stand alone in the place of a term: no mere values, which say nothing of what happened.

    A single word only replaces a term that has but one word of content, and if it is no everyday one.
    """
    content = [item for item in items if item.role == "content"]
    if items[-1].role in _LEADING and (len(items) < _LEAST_WORDS or items[-2].folded not in AUXILIARIES):
        return False
    if len(items) < _LEAST_WORDS:
        has_one_word = len({item.key for item in term.essential if item.role == "content"}) <= 1
        return bool(content) and len(items[0].folded) >= _LONG_WORD and has_one_word
    return bool(content)


def _end_of_noun(items: Sequence[Item], last: int, narrative: str, read: str) -> int:
    """Go on to the noun where words end with what describes one, "revealing normal | status", or the output goes on."""
    value = items[last].value
    longer = _end_of_phrase(items, last)
    describes = _ATTRIBUTES.fullmatch(items[last].folded) or (value is not None and value.type in {"side", "grade"})
    goes_on = _stands_in(normalise(narrative[items[last].start : items[longer].end]), read)
    return longer if describes or goes_on else last


def _end_of_phrase(items: Sequence[Item], last: int) -> int:
    """Go on to the noun behind an adjective: "examination revealing normal capillary refill"."""
    for at in range(last + 1, min(len(items), last + 3)):
        if items[at].pause or items[at].role != "content":
            break
        last = at
    return last


def _tells_more(items: Sequence[Item], term: Term) -> bool:
    """Tell whether words hold a value that the term has not, and so may be about something else."""
    return any(item.value is not None and item.key not in term.core for item in items)


def _runs_on(items: Sequence[Item], match: Match) -> bool:
    """Tell whether words go on over a comma to a value that the term does not ask for.

    "delayed until 11:30, accounting for a 1.5-hour wait" for "1.5-hour delay": no output says all this in one piece.
    """
    if not any(item.pause for item in items[1:]):
        return False
    lacking = [item.value for item in match.absent if item.value is not None]
    others = (item.value for item in items if item.value is not None and item.key not in match.term.core)
    return any(not any(each.is_alternative(other) for each in lacking) for other in others)


def _common(sentence: Sentence, narrative: str, read: str, wanted: frozenset[str], *, trimmed: bool) -> Iterator[_Run]:
    """Give the longest stretches of a sentence that stand in a text, each with something that is wanted.

    Trimmed ones begin and end with what is wanted.
    """
    items, reached = sentence.items, -1
    for first in range(len(items)):
        last = _reach(items, first, narrative, read)
        if last <= reached:
            continue  # inside the one before
        reached = last
        begin, end = _trim(items, first, last, wanted, trimmed=trimmed)
        held = frozenset(item.key for item in items[begin : end + 1]) & wanted
        if held:
            yield _Run(sentence, begin, end, held)


def _reach(items: Sequence[Item], first: int, narrative: str, read: str) -> int:
    """Give the last item up to which a sentence goes on as a text does somewhere; one before the first if not."""
    last = first - 1
    for at in range(first, min(len(items), first + _MOST_WORDS)):
        if not _stands_in(normalise(narrative[items[first].start : items[at].end]), read):
            break
        last = at
    return last


def _stands_in(needle: str, text: str) -> bool:
    """Tell whether a needle stands in a text as whole words."""
    at = text.find(needle)
    while at >= 0:
        end = at + len(needle)
        before = at > 0 and _WORD_EDGE.match(text[at - 1]) and _WORD_EDGE.match(needle[0])
        after = end < len(text) and _WORD_EDGE.match(text[end]) and _WORD_EDGE.match(needle[-1])
        if not before and not after:
            return True
        at = text.find(needle, at + 1)
    return False


def _trim(items: Sequence[Item], first: int, last: int, wanted: frozenset[str], *, trimmed: bool) -> tuple[int, int]:
    """Leave out what begins or ends a stretch: all but what is wanted, or only other clauses and small words."""
    held = [at for at in range(first, last + 1) if items[at].key in wanted]
    if not held:
        return first, last
    begin, end = _shortest([(at, items[at].key) for at in held]) if trimmed else (held[0], held[-1])
    while items[end].role in _LEADING and end < last:  # "showed no" says nothing without "bleeding"
        end += 1
    if not trimmed:
        begin = next((at for at in range(begin, first, -1) if items[at].pause), first)
        end = next((at - 1 for at in range(end + 1, last + 1) if items[at].pause), last)
        while items[begin].role == "connective":
            begin += 1
        while items[end].role == "connective":
            end -= 1
    return begin, end


def _shortest(held: Sequence[tuple[int, str]]) -> tuple[int, int]:
    """Give the nearest two places between which every key is that has a place at all."""
    best = held[0][0], held[-1][0]
    count = len({key for _, key in held})
    latest: dict[str, int] = {}
    for at, key in held:
        latest[key] = at
        first = min(latest.values())
        if len(latest) == count and at - first < best[1] - best[0]:
            best = first, at
    begin, places = best[0], {at for at, _ in held}
    while begin - 1 in places:  # the "early" of "early signs" doubts as these do
        begin -= 1
    return begin, best[1]


def _apart(stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """Give stretches in their order; nothing if two of them overlap."""
    ordered = sorted(stretches)
    return tuple(ordered) if all(one.end <= other.start for one, other in pairwise(ordered)) else ()
