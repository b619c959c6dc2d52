"""Whether a text is in the language that can be read: what is not read says nothing, which is not the same as absent.

The lexicon is English, but for the names and abbreviations in it, which prove no language ("CRP", "ibuprofen") and are
not counted. Of the other longer words of an English text, however terse, it knows a third at the very least, and in
nearly all texts more than half; of one in German, French or Dutch, a fifth, or a little more where it is terse.
"""

import re
from functools import cache, lru_cache

from safe_core.diagnosis.lexicon import rows
from safe_core.diagnosis.relations import stems
from safe_core.diagnosis.words import stem, words

_RELATIONS = ("ends", "forms", "measure", "opposite", "perhaps", "rival", "same", "status", "units", "weak")
_LOOKED_AT = 2_000  # words at the beginning of a text, and ten times as many characters
_LONG = 3  # letters: shorter words are alike in many languages
_FEWEST = 15  # different long words: of fewer, nothing is said
_KNOWN = 0.3  # of the different long words
_LONGEST = 32  # words of an entry
_LETTER = re.compile(r"[^\W\d_]")
_OTHER_SCRIPT = re.compile(r"[^\W\d_\u0000-\u02ff\u1e00-\u1eff\ufb00-\ufb06\uff21-\uff5a]")
"""A letter that is not Latin."""


def is_read(text: str) -> bool:
    """Tell whether a text is in English, or too short to be anything else for certain."""
    return _is_english(text[: 10 * _LOOKED_AT])


@lru_cache(maxsize=512)  # each miss of an output asks about the same texts
def _is_english(beginning: str) -> bool:
    if not beginning.isascii() and 2 * len(_OTHER_SCRIPT.findall(beginning)) > len(_LETTER.findall(beginning)):
        return False
    cut = words(beginning, _LOOKED_AT)
    found = {stem(word.folded) for word in cut if len(word.folded) >= _LONG and word.folded.isalpha()}
    telling = found - _names()
    return len(found) < _FEWEST or len(telling & _known()) >= _KNOWN * len(telling)


def _cells(*, of_drugs: bool) -> list[str]:
    """Give the entries of the lexicon in whatever relation: the names of drugs, or the others."""
    return [
        cell
        for relation in _RELATIONS
        for _, cells in rows(relation)
        for cell in cells
        if (relation == "rival" and cells[0].startswith("drug ")) == of_drugs
    ]


@cache
def _known() -> frozenset[str]:
    """Give the stems of the words of the lexicon that are English: written small, and not the name of a drug."""
    cells = _cells(of_drugs=False)
    cut = [(cell[word.start : word.end], word.folded) for cell in cells for word in words(cell, _LONGEST)]
    drugs = {key for cell in _cells(of_drugs=True) for key in stems(cell)}
    return frozenset(stem(folded) for written, folded in cut if written.islower()) - drugs


@cache
def _names() -> frozenset[str]:
    """Give the stems of the other words, which are the same in all languages: drugs, abbreviations, proper names."""
    cells = [*_cells(of_drugs=False), *_cells(of_drugs=True)]
    return frozenset(key for cell in cells for key in stems(cell)) - _known()
