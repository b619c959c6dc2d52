"""Whether a text is in the language that can be read: what is not read says nothing, which is not the same as absent.

The lexicon is English. Of the longer words of an English text, however terse, it knows a third at the very least, and
in nearly all texts more than half; of one in German, French or Dutch, a fifth, or a little more where it is terse.
"""

import re
from functools import cache

from safe_core.diagnosis.lexicon import rows
from safe_core.diagnosis.relations import stems
from safe_core.diagnosis.words import stem, words

_RELATIONS = ("ends", "forms", "measure", "opposite", "perhaps", "rival", "same", "status", "units", "weak")
_LOOKED_AT = 2_000  # words at the beginning of a text, and ten times as many characters
_LONG = 3  # letters: shorter words are alike in many languages
_FEWEST = 15  # different long words: of fewer, nothing is said
_KNOWN = 0.3  # of the different long words
_LETTER = re.compile(r"[^\W\d_]")
_OTHER_SCRIPT = re.compile(r"[^\W\d_\u0000-\u02ff\u1e00-\u1eff\ufb00-\ufb06\uff21-\uff5a]")
"""A letter that is not Latin."""


def is_read(text: str) -> bool:
    """Tell whether a text is in English, or too short to be anything else for certain."""
    beginning = text[: 10 * _LOOKED_AT]
    if 2 * len(_OTHER_SCRIPT.findall(beginning)) > len(_LETTER.findall(beginning)):
        return False
    found = {
        word.folded for word in words(beginning, _LOOKED_AT) if len(word.folded) >= _LONG and word.folded.isalpha()
    }
    return len(found) < _FEWEST or sum(stem(word) in _known() for word in found) >= _KNOWN * len(found)


@cache
def _known() -> frozenset[str]:
    """Give the stems of all words of the lexicon, in whatever relation."""
    return frozenset(key for name in _RELATIONS for _, cells in rows(name) for cell in cells for key in stems(cell))
