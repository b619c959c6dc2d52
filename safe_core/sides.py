"""The sides that a text names: left, right, both, in words and in abbreviations."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from safe_core.diagnosis import relations
from safe_core.diagnosis.lexicon import rows
from safe_core.diagnosis.reading import Fact
from safe_core.diagnosis.units import Unit
from safe_core.diagnosis.words import stem


class Side(NamedTuple):
    """A side, and the word that follows: "" if none does. It is "both" in whatever word."""

    start: int
    end: int
    side: str
    noun: str


_SIDES: Final = {"left": "left", "right": "right", "bilater": "both", "bilateral": "both"}
_WORDS: Final = {"left": "left", "right": "right"}
_SIDED: Final = {
    relations.key_of(names[0]): _WORDS[name.split()[0]]
    for _, names in rows("same")
    for name in names
    if name.split()[0] in _WORDS and len(relations.stems(names[0])) == 1 and relations.key_of(names[0]) not in _SIDES
}
"""Keys of what has a side in one of its names: RUQ, "right upper quadrant"."""
_NO_LETTER: Final = re.compile(r"\s?[:=/]|\s?\d|\.\s[A-Z]|\.\w")
_BEFORE_NO_LETTER: Final = re.compile(r"[\d/][\s-]?\Z|\bvitamin\s\Z", re.IGNORECASE)
_AGREEING: Final = re.compile(r"(?:\ball|\bthat(?:'s|\sis)|\babsolutely|\byou(?:'re|\sare))\s\Z", re.IGNORECASE)
_PAUSE: Final = re.compile(r"[\],.?]\s\Z")
_NEXT_WORD: Final = re.compile(r"\s+(\w+)")
_ELSEWHEN: Final = frozenset(("now", "here", "there", "away", "after", "before", "way"))
"""Words behind a "right" that is no side; before one, what agrees: "all right"."""
_AROUND: Final = 12


def sides_in(text: str, facts: Sequence[Fact | Unit]) -> Iterator[Side]:
    """Give the sides that the facts of a text name, each with the key of what follows at once."""
    for at, fact in enumerate(facts):
        written = text[fact.start : fact.end].lower()
        side = _SIDES.get(fact.key) or _SIDED.get(fact.key, "")
        if side and _is_side(text, fact, written):
            following = facts[at + 1] if at + 1 < len(facts) else None
            is_next = following is not None and following.start - fact.end <= 1 and following.tells
            noun = following.key if following is not None and is_next and following.value is None else ""
            noun = fact.key if fact.key in _SIDED else noun
            first = written.split()[0] if stem(written.split()[0]) in _SIDES else written
            yield Side(fact.start, fact.start + len(first), side, noun)


def _is_side(text: str, fact: Fact | Unit, written: str) -> bool:
    """Tell whether a word names a side: no "right" that agrees, and no letter that is a name or a unit."""
    before = text[max(0, fact.start - _AROUND) : fact.start]
    if len(written) == 1:
        is_other = _NO_LETTER.match(text, fact.end) or _BEFORE_NO_LETTER.search(before)
        return text[fact.start].isupper() and not is_other
    following = _NEXT_WORD.match(text, fact.end)
    return not (written == "right" and _agrees(before, following[1].lower() if following else ""))


def _agrees(before: str, noun: str) -> bool:
    """Tell whether a "right" is no side: behind a pause ("Right, so") it is one only of a word of content."""
    key = (stem(noun),)
    is_of_content = bool(noun) and key not in relations.weak() and key not in relations.ends()
    is_answer = _PAUSE.search(before) and not is_of_content
    return bool(noun in _ELSEWHEN or _AGREEING.search(before) or is_answer)
