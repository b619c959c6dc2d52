"""The items of a text: words with the part they play, and typed values."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from safe_core.diagnosis.denials_in_context import certainty_at, is_negation, may_claim, may_negate
from safe_core.diagnosis.punctuation import PAUSE, SENTENCE_END
from safe_core.diagnosis.values.value_reader import may_begin_value, value_at
from safe_core.diagnosis.values.value_types import Value
from safe_core.diagnosis.word_lists.abbreviations import ABBREVIATIONS
from safe_core.diagnosis.word_lists.denial_words import AFFIRMATIONS, NEGATIONS
from safe_core.diagnosis.word_lists.exact_synonyms import SYNONYM_PHRASES
from safe_core.diagnosis.word_lists.grammar_words import (
    CONNECTIVES,
    LEAD_IN_WORDS,
    PHRASAL_VERBS,
    RELATION_WORDS,
    SAME_ORDER,
    STATES,
)
from safe_core.diagnosis.words import Word, lengths_by_first_word, stem

Role = Literal["connective", "lead-in", "relation", "affirmation", "negation", "certainty", "value", "content"]

_PAUSE_OR_END = re.compile(rf"{PAUSE.pattern}|{SENTENCE_END.pattern}")
_AFTER_STATE = frozenset(("and", "but", "when", "since", "while"))
_PHRASES = ABBREVIATIONS | SYNONYM_PHRASES
_ABBREVIATED_LENGTHS = lengths_by_first_word(_PHRASES)


_LONGEST_NAME = 4  # letters of a name that is spelled like a connective, such as HER2

NEGATED = "¬"
"""The key of every negation; no stem is like it."""


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


Reading = Callable[[list[Item]], list[Item]]
"""How the items of a sentence are read; `list` leaves them as they are."""


def item_at(text: str, cut: Sequence[Word], at: int, *, pause: bool, shouts: bool) -> tuple[Item, int]:
    """Give the item that begins with a word that is not the same wherever it stands, and how many words it takes."""
    word = cut[at]
    if word.folded in STATES and is_state(text, cut, at):
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
def role_and_key_anywhere(folded: str) -> tuple[Role, str] | None:
    """Give the role and the key of a word that are the same wherever it stands; None if its neighbours decide."""
    if may_begin_value(folded) or folded in _ABBREVIATED_LENGTHS or may_negate(folded) or may_claim(folded):
        return None
    return _role_and_key_alone(folded)


def _describes(cut: Sequence[Word], at: int) -> bool:
    """Tell whether a word only describes the next one: a "non-blanching rash" is one."""
    if at + 1 >= len(cut) or cut[at + 1].start - cut[at].end > 1:
        return False
    return role_and_key_anywhere(cut[at].folded) is not None and _is_content(cut[at + 1].folded)


def _is_content(folded: str) -> bool:
    found = role_and_key_anywhere(folded)
    return found is not None and found[0] == "content"


def is_state(text: str, cut: Sequence[Word], at: int) -> bool:
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
