"""Where a text is cut into sentences: a full stop ends one, but that of an abbreviation or an initial does not."""

import re
from collections.abc import Iterator, Sequence

from safe_core.diagnosis.punctuation import PAUSE, SENTENCE_END
from safe_core.diagnosis.tokens import Item, is_state, item_at, role_and_key_anywhere
from safe_core.diagnosis.values.number_words import has_number_words, with_numbers
from safe_core.diagnosis.word_lists.abbreviations import SHORT_FORMS, STOPPED
from safe_core.diagnosis.word_lists.exact_synonyms import EXACT_SYNONYMS
from safe_core.diagnosis.word_lists.grammar_words import STATES
from safe_core.diagnosis.words import Word

_LAST_WORD = re.compile(r"[^\W\d_]+\Z")
_STOPPED_OR_HALF_DAY = STOPPED | {"a", "p"}  # "8 p. m." goes on
_LONGEST_STOPPED = max(map(len, STOPPED)) + 1
_SPELLED_OUT = EXACT_SYNONYMS | SHORT_FORMS

MAX_ITEMS = 256
"""Longer sentences are cut; no real one comes near."""


def sentence_ends(text: str) -> list[int]:
    """Give where the sentences of a text end, without cutting it into words."""
    ends = []
    for match in SENTENCE_END.finditer(text):
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
            pause = PAUSE.search(text, end, start) is not None
            may_end = sentence and sentence[-1].folded not in STOPPED and SENTENCE_END.search(text, end, start)
            if may_end and not _is_initial(text, end, start):
                yield sentence
                sentence = []
        if len(sentence) == MAX_ITEMS:
            yield sentence
            sentence = []
        plain = role_and_key_anywhere(folded)
        is_name = plain and plain[0] == "connective" and text[stop - 1].isupper() and not shouts
        if plain and not is_name and not (folded in STATES and is_state(text, cut, at)):
            sentence.append(Item(plain[1], plain[0], folded, None, pause, start, stop))
            at, end = at + 1, stop
        else:
            item, length = item_at(text, cut, at, pause=pause, shouts=shouts)
            sentence.append(item)
            at, end = at + length, item.end
    if sentence:
        yield sentence
