"""A text as a sequence of items: words with the part they play, and typed values."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from safe_core.diagnosis.equal_words import EQUAL_PHRASES, EQUAL_WORDS
from safe_core.diagnosis.lexicon import (
    ABBREVIATIONS,
    AFFIRMATIONS,
    CONNECTIVES,
    LEAD_IN_WORDS,
    NEGATIONS,
    PHRASAL_VERBS,
    RELATION_WORDS,
    SAME_ORDER,
    SHORT_FORMS,
    STATES,
    STOPPED,
)
from safe_core.diagnosis.negation_words import certainty_at, is_negation, may_claim, may_negate
from safe_core.diagnosis.number_words import has_number_words, with_numbers
from safe_core.diagnosis.values import Value, may_begin_value, value_at
from safe_core.diagnosis.words import Word, lengths_by_first_word, stem

Role = Literal["connective", "lead-in", "relation", "affirmation", "negation", "certainty", "value", "content"]

_SENTENCE_END = re.compile(r"[.!?;](?=[\s\"'”’)\]])|[。！？；\n]")
_LAST_WORD = re.compile(r"[^\W\d_]+\Z")
_STOPPED_OR_HALF_DAY = STOPPED | {"a", "p"}  # "8 p. m." goes on
_LONGEST_STOPPED = max(map(len, STOPPED)) + 1
_PAUSE = re.compile(r"[,;:()\[\]–—，、：（）]")
_PAUSE_OR_END = re.compile(rf"{_PAUSE.pattern}|{_SENTENCE_END.pattern}")
_AFTER_STATE = frozenset(("and", "but", "when", "since", "while"))
_PHRASES = ABBREVIATIONS | EQUAL_PHRASES
_ABBREVIATED_LENGTHS = lengths_by_first_word(_PHRASES)
_SPELLED_OUT = EQUAL_WORDS | SHORT_FORMS


_LONGEST_NAME = 4  # letters of a name that is spelled like a connective, such as HER2

NEGATED = "¬"
"""The key of every negation; no stem is like it."""

MAX_ITEMS = 256
"""Longer sentences are cut; no real one comes near."""


class Item(NamedTuple):
    """A word or a value: `text[start:end]`; two are the same thing where their keys are equal."""

    key: str
    role: Role
    folded: str  # how it is written, without form
    value: Value | None
    pause: bool  # a comma or the like stands before it
    start: int
    end: int

    @property
    def wording(self) -> str:
        """Give what must agree for the same wording: one "no" is as good as another, one inflection is not."""
        return self.key if self.role in {"negation", "certainty"} else self.folded


def sentence_ends(text: str) -> list[int]:
    """Give where the sentences of a text end, without cutting it into words."""
    ends = []
    for match in _SENTENCE_END.finditer(text):
        word = _LAST_WORD.search(text, max(0, match.start() - _LONGEST_STOPPED), match.start())
        is_stopped = word is not None and word[0].lower() in _STOPPED_OR_HALF_DAY
        if not is_stopped and not _is_initial(text, match.start(), match.end() + 1):
            ends.append(match.end())
    return ends


def _is_initial(text: str, end: int, start: int) -> bool:
    """Tell whether a single capital ends at a full stop before a small letter: "E. coli"."""
    is_single = end > 0 and text[end - 1].isupper() and not text[end - 2 : end - 1].isalnum()
    return is_single and text[end : end + 1] == "." and text[start : start + 1].islower()


def sentences(text: str, cut: Sequence[Word], start: int = 0) -> Iterator[list[Item]]:
    """Give the items of a text, or of its words from `start` on, sentence by sentence."""
    sentence: list[Item] = []
    shouts = text.isupper()
    folded_words = [word.folded for word in cut]
    if has_number_words(folded_words):
        cut = with_numbers(text, cut)
    if not _SPELLED_OUT.keys().isdisjoint(folded_words):
        spelled = ((word, _SPELLED_OUT.get(word.folded, (word.folded,))) for word in cut)
        cut = [word._replace(folded=folded) for word, full in spelled for folded in full]
    at, end = 0, start
    while at < len(cut):
        folded, start, stop = cut[at]
        pause = False
        if start - end > 1 or text[end:start] not in {"", " "}:
            pause = _PAUSE.search(text, end, start) is not None
            may_end = sentence and sentence[-1].folded not in STOPPED and _SENTENCE_END.search(text, end, start)
            if may_end and not _is_initial(text, end, start):
                yield sentence
                sentence = []
        if len(sentence) == MAX_ITEMS:
            yield sentence
            sentence = []
        plain = _role_and_key_anywhere(folded)
        is_name = plain and plain[0] == "connective" and text[stop - 1].isupper() and not shouts
        if plain and not is_name and not (folded in STATES and _is_state(text, cut, at)):
            sentence.append(Item(plain[1], plain[0], folded, None, pause, start, stop))
            at, end = at + 1, stop
        else:
            item, length = _item(text, cut, at, pause=pause, shouts=shouts)
            sentence.append(item)
            at, end = at + length, item.end
    if sentence:
        yield sentence


def _item(text: str, cut: Sequence[Word], at: int, *, pause: bool, shouts: bool) -> tuple[Item, int]:
    """Give the item that begins with a word that is not the same wherever it stands, and how many words it takes."""
    word = cut[at]
    if word.folded in STATES and _is_state(text, cut, at):
        key = word.folded.upper()
        return Item(key, "content", key, None, pause, word.start, word.end), 1
    if value := value_at(text, cut, at):
        length = value.length
        return Item(value.key, "value", value.key, value, pause, word.start, cut[at + length - 1].end), length
    if word.folded in _ABBREVIATED_LENGTHS and (found := _abbreviated(cut, at)):
        key, length = found
        return Item(key, "content", key, None, pause, word.start, cut[at + length - 1].end), length
    if word.folded in CONNECTIVES and not shouts and _is_name(text, word):
        key = word.folded.upper()
        return Item(key, "content", key, None, pause, word.start, word.end), 1
    if word.folded == "non" and _describes(cut, at + 1):
        joined = word.folded + cut[at + 1].folded
        return Item(stem(joined), "content", joined, None, pause, word.start, cut[at + 1].end), 2
    role, key = _role_and_key(cut, at)
    return Item(key, role, word.folded, None, pause, word.start, word.end), 1


@lru_cache(maxsize=8192)
def _role_and_key_anywhere(folded: str) -> tuple[Role, str] | None:
    """Give the role and the key of a word that are the same wherever it stands; None if its neighbours decide."""
    if may_begin_value(folded) or folded in _ABBREVIATED_LENGTHS or may_negate(folded) or may_claim(folded):
        return None
    return _role_and_key_alone(folded)


def _describes(cut: Sequence[Word], at: int) -> bool:
    """Tell whether a word only describes the next one: a "non-blanching rash" is one."""
    if at + 1 >= len(cut) or cut[at + 1].start - cut[at].end > 1:
        return False
    return _role_and_key_anywhere(cut[at].folded) is not None and _is_content(cut[at + 1].folded)


def _is_content(folded: str) -> bool:
    found = _role_and_key_anywhere(folded)
    return found is not None and found[0] == "content"


def _is_state(text: str, cut: Sequence[Word], at: int) -> bool:
    """Tell whether a word such as "on" closes a clause, and belongs to no verb but "to be"."""
    before, end = cut[at - 1].folded if at else "", cut[at].end
    if not before or before in PHRASAL_VERBS or before.endswith(("ed", "ing")):
        return False
    after = cut[at + 1] if at + 1 < len(cut) else None
    parted = after is None or after.folded in _AFTER_STATE or bool(_PAUSE_OR_END.search(text, end, after.start + 1))
    return parted and not before[0].isdecimal()


def _is_name(text: str, word: Word) -> bool:
    """Tell the OR and HER2 from the words that they are spelled like."""
    is_code = text[word.end : word.end + 1].isdecimal()
    return 1 < len(word.folded) <= (_LONGEST_NAME if is_code else 2) and text[word.start : word.end].isupper()


def _abbreviated(cut: Sequence[Word], at: int) -> tuple[str, int] | None:
    """Give the key of the longest abbreviated phrase that begins with a word, and its length."""
    for length in _ABBREVIATED_LENGTHS[cut[at].folded]:
        key = _PHRASES.get(" ".join(word.folded for word in cut[at : at + length]))
        if key and at + length <= len(cut):
            return key, length
    return None


def _role_and_key(cut: Sequence[Word], at: int) -> tuple[Role, str]:
    folded = cut[at].folded
    if is_negation(cut, at):
        return "negation", NEGATED
    if certainty := certainty_at(cut, at):
        return "certainty", certainty
    return _role_and_key_alone(folded)


def _role_and_key_alone(folded: str) -> tuple[Role, str]:
    if folded in AFFIRMATIONS:
        return "affirmation", stem(folded)
    if folded in RELATION_WORDS:
        return "relation", SAME_ORDER.get(folded, folded)
    if folded in CONNECTIVES or folded in NEGATIONS:  # such as the "not" of "not … until"
        return "connective", folded
    return ("lead-in" if folded in LEAD_IN_WORDS else "content"), stem(folded)
