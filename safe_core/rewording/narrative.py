"""How a missed term could ask for the same in the narrative's own words (contract.md, "Proposals").

A rewording is one phrase of the narrative or a few, which hold together all that the term says. Those that the output
has too come first; then the nearest places of the narrative.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from safe_core.diagnosis.alignment import Term, align, term_of
from safe_core.diagnosis.answers import answer
from safe_core.diagnosis.reading import Clause, Fact, whole_words
from safe_core.diagnosis.relations import ends, going, triggers, weak
from safe_core.diagnosis.words import stem
from safe_core.matching_rule import normalise
from safe_core.rewording.claims import (
    answers_how_much,
    asks_more,
    counts,
    is_adjective,
    is_held,
    is_needed,
    is_weaker,
    is_written,
)
from safe_core.rewording.phrases import Phrases, Sentence, Stretch

MOST_PHRASES: Final = 3
_MOST_SENTENCES: Final = 4  # of the narrative, which may hold a term together
_MOST_PLACES: Final = 32  # of a term's facts in one of them
_MOST_TRIED: Final = 12  # places for a phrase
_ADJECTIVE: Final = re.compile(r"(?:al|ic|ar|ary|ous|ive|less|ful|ible|able)\Z")
_PARTS: Final = re.compile(r"[,;:()\[\]/–—]|\s-+\s|[.!?]\s|\b(?:and|or|nor|plus|but|(?<!ed )with)\b", re.IGNORECASE)
"""What parts a term into things that one phrase each may have; not "struggled with asthma"."""
_PRONOUN: Final = re.compile(r"^(?:it|they|this|these|those)\b|\b(?:done|do|did) so\b", re.IGNORECASE)
"""In a term: what stands for something that only its neighbours say."""
_NO_SUBJECT: Final = re.compile(r"(?:has|have|had|is|are|was|were)(?:n['’]t| not)?\b", re.IGNORECASE)
"""How a term begins that does not say of what it is so."""
_NEXT_NOUN: Final = re.compile(r" ((?![^\W\d_]+(?:ed|ing)\b)[^\W\d_]+)")
_VERB: Final = re.compile(r"\b(?:is|are|was|were|been|has|have|had|does|did)\b", re.IGNORECASE)
_MOST_OF_NOUN: Final = 3
_LONG_WORD: Final = 9  # letters of a single word that is no everyday one


class _Window(NamedTuple):
    """A piece of a sentence, from one fact to another, and the numbers of the term's facts that it holds."""

    sentence: Sentence
    first: Fact
    last: Fact
    held: frozenset[int]


class Narrative:
    """A narrative, read once for all terms of its case."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._phrases = Phrases(text)

    def rewordings(self, term: str, read: str) -> Iterator[tuple[Stretch, ...]]:
        """Give the rewordings of a term that weaken nothing, the best first, each once.

        `read` is what its criterion reads, normalised. A term that the narrative has is replaced only by words that the
        output has.
        """
        wanted = _Wanted(term_of(term), self._phrases)
        if wanted.lacking or not wanted.words or wanted.says_not_of_what:
            return
        seen: set[tuple[Stretch, ...]] = set()
        for among in (read,) if self.has(term) else (read, None):
            stretches = self._cover(wanted, among)
            phrases = self.phrases(stretches)
            is_apart = all(one.end <= other.start for one, other in pairwise(stretches))
            if phrases and is_apart and stretches not in seen and not is_weaker(wanted.term, phrases):
                yield stretches
            seen.add(stretches)

    def has(self, term: str) -> bool:
        """Tell whether it has a term word for word."""
        return normalise(term) in normalise(self.text)

    def lacks(self, term: str) -> tuple[str, ...]:
        """Give the words of a term that the narrative does not have near the others, or says otherwise."""
        return whole_words(term, _Wanted(term_of(term), self._phrases).lacking)

    def phrases(self, stretches: Sequence[Stretch]) -> tuple[str, ...]:
        """Give the texts of some stretches."""
        return tuple(self.text[each.start : each.end] for each in stretches)

    def tells(self, phrase: str) -> bool:
        """Tell whether it says what another narrative says in these words, and does not deny it."""
        return self.has(phrase) and answer(phrase, [self.text]).says == "said"

    def _cover(self, wanted: "_Wanted", read: str | None) -> tuple[Stretch, ...]:
        """Choose a few phrases that hold all that is needed, the largest first; nothing if they do not."""
        left, chosen = set(wanted.groups), list[Stretch]()
        while left and len(chosen) < MOST_PHRASES:
            useful = [(each, {group for group in left if group <= each.held}) for each in wanted.windows]
            useful.sort(key=lambda each: (-len(each[1]), -len(each[0].held), each[0].last.end - each[0].first.start))
            found = ((self._stretch(wanted, each, read), groups) for each, groups in useful[:_MOST_TRIED] if groups)
            stretch, groups = next((each for each in found if each[0]), (None, set()))
            if stretch is None:
                return ()
            chosen.append(stretch)
            left -= groups
        return () if left else tuple(sorted(chosen))

    def _stretch(self, wanted: "_Wanted", window: _Window, read: str | None) -> Stretch | None:
        """Give the whole phrase around a window, to the end of its noun; one that is `read`, if that is given."""
        end = self._end_of_noun(window.sentence, window.last)
        if not _is_attribute(window.last) and any(fact.tells for fact in self._phrases.facts(window.last.end, end)):
            return None  # the narrative speaks of another thing: "Lyme | titer"
        whole = self._phrases.whole(window.sentence, window.first.start, end)
        return whole if whole and self._may_replace(wanted, whole, read) else None

    def _may_replace(self, wanted: "_Wanted", whole: Stretch, read: str | None) -> bool:
        """Tell whether a phrase can stand alone: no mere values, no single everyday word, and no speech."""
        phrase = self.text[whole.start : whole.end]
        if " " not in phrase:
            has_word = len(phrase) >= _LONG_WORD and wanted.words == 1 and not wanted.is_statement
        else:
            facts = self._phrases.facts(whole.start, whole.end)
            has_word = any(fact.tells and not answers_how_much(fact) for fact in facts)
        is_there = read is None or _stands_in(normalise(phrase), read)
        is_fit = has_word and is_there and is_written(phrase)
        return is_fit and not asks_more(wanted.term, phrase, is_said=read is not None)

    def _end_of_noun(self, sentence: Sentence, last: Fact) -> int:
        """Go on to the last word of a noun: "examination revealing normal | tone"."""
        following = self._phrases.facts(last.end, sentence.end)[:_MOST_OF_NOUN]
        is_led = _is_attribute(last) or _ADJECTIVE.search(self.text, last.start, last.end) is not None
        for fact in following:
            noun = _NEXT_NOUN.match(self.text, last.end)
            is_noun = fact.value is None and noun is not None and noun.start(1) == fact.start
            is_of_it = (is_led and not counts(fact)) or (fact.tells and fact.key not in going())
            if not (is_noun and is_of_it):
                break
            last, is_led = fact, is_adjective(fact)
        following_word = _NEXT_NOUN.match(self.text, last.end) if is_led else None
        is_noun = following_word is not None and _is_no_grammar(following_word[1].lower())
        return following_word.end() if following_word is not None and is_noun else last.end


@dataclass(frozen=True)
class _Wanted:
    """What a rewording of a term must hold, and where the narrative has it."""

    term: Term
    phrases: Phrases

    @property
    def words(self) -> int:
        """How many words of content it has."""
        return sum(map(self._is_word, range(len(self.term.facts))))

    @property
    def says_not_of_what(self) -> bool:
        """Whether only what stands before it would say of what it is so: "they have not helped", "has stopped"."""
        return bool(_PRONOUN.search(self.term.text) or (self.words == 1 and _NO_SUBJECT.match(self.term.text)))

    @property
    def is_statement(self) -> bool:
        """Whether it says that somebody has something, or is so, and does not only name it."""
        return _VERB.search(self.term.text) is not None

    @cached_property
    def needed(self) -> frozenset[int]:
        """The numbers of the facts without which it would claim less; all of a part that has only weak words."""
        facts = self.term.facts
        return frozenset(
            at
            for part in self._parts
            for at in part
            if is_needed(facts[at]) or not (self._is_heading(part) or any(is_needed(facts[other]) for other in part))
        )

    def _is_heading(self, part: Sequence[int]) -> bool:
        return self.term.text.startswith(":", self.term.facts[part[-1]].end)

    @cached_property
    def _parts(self) -> list[list[int]]:
        """The facts between two pauses, conjunctions or "with"."""
        found: list[list[int]] = []
        end = 0
        for at, fact in enumerate(self.term.facts):
            if not found or _PARTS.search(self.term.text, end, fact.start):
                found.append([])
            found[-1].append(at)
            end = fact.end
        return found

    @cached_property
    def groups(self) -> frozenset[frozenset[int]]:
        """The needed facts that must be in one phrase: those of a part.

        A value or a side alone belongs to what is before it.
        """
        found: list[set[int]] = []
        for group in (self.needed.intersection(part) for part in self._parts):
            if found and not (any(map(self._is_word, group)) and any(map(self._is_word, found[-1]))):
                found[-1] |= group
            else:
                found.append({*group})
        return frozenset(map(frozenset, found))

    def _is_word(self, at: int) -> bool:
        return self.term.facts[at].tells and not answers_how_much(self.term.facts[at])

    @cached_property
    def lacking(self) -> list[Fact]:
        """The facts that the narrative does not have."""
        held = frozenset[int]().union(*(window.held for window in self.windows))
        return [self.term.facts[at] for at in sorted(self.needed - held)]

    @cached_property
    def _sentences(self) -> list[Sentence]:
        """The nearest sentence, and each further one that has what those before it lack."""
        ranked = sorted(
            ((self._held(sentence.clauses), sentence) for sentence in self.phrases.sentences),
            key=lambda each: (-sum(self.term.facts[at].weight for at in each[0]), each[1].start),
        )
        near: list[Sentence] = []
        seen: frozenset[int] = frozenset()
        for held, sentence in ranked[:_MOST_SENTENCES]:
            if held - seen or held >= self.needed:
                near.append(sentence)
                seen |= held
        return near

    def _held(self, clauses: Sequence[Clause]) -> frozenset[int]:
        return frozenset(at for at, edit in enumerate(align(self.term, clauses).edits) if is_held(edit))

    @cached_property
    def windows(self) -> list[_Window]:
        """The shortest pieces of sentences that hold some facts of the term."""
        return [window for sentence in self._sentences for window in self._windows(sentence)]

    def _windows(self, sentence: Sentence) -> Iterator[_Window]:
        facts = [
            (fact, self._held([clause._replace(facts=(fact,))])) for clause in sentence.clauses for fact in clause.facts
        ]
        hits = [(fact, held) for fact, held in facts if held][:_MOST_PLACES]
        for begin, (first, held) in enumerate(hits):
            inside: frozenset[int] = frozenset()
            for last, more in hits[begin:]:
                is_shortest = last is first or not (held <= inside | more or more <= held | inside)
                inside |= more if last is not first else frozenset()
                if is_shortest:
                    yield _Window(sentence, first, last, held | inside)


def _is_attribute(fact: Fact) -> bool:
    """Tell whether a word describes the noun behind it: "normal | status", "left | hand", "8-hour | wait"."""
    return answers_how_much(fact) or is_adjective(fact)


def _is_no_grammar(word: str) -> bool:
    return weak().get((stem(word),)) not in {"grammar", "weak"} and (stem(word),) not in {*ends(), *triggers()}


def _stands_in(needle: str, text: str) -> bool:
    """Tell whether a needle stands in a text as whole words."""
    return re.search(rf"(?<![^\W_]){re.escape(needle)}(?![^\W_])", text) is not None
