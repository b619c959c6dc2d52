"""Values that are spelled out or abbreviated, in the form in which `diagnosis.values` reads them.

"Fifty-five minutes" is 55 minutes, "a dozen" 12, "half of" 50 %, "L arm" the left arm, "b.i.d." twice daily.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from safe_core.diagnosis.values.number_words import HYPHENS, NUMBERS, ONE_TO_NINE, SPELLINGS

_SIDED: Final = (
    "sided arm arms leg legs hand hands foot feet eye eyes ear ears knee knees hip hips shoulder elbow wrist ankle "
    "thigh calf forearm finger fingers thumb toe toes lung lungs kidney breast side chest flank MCA ACA PCA ICA "
    "hemisphere upper lower femur femoral tibia tibial fibula humerus humeral radius radial ulna ulnar clavicle facial "
    "face"
).replace(" ", "|")
SIDE_LETTER: Final = re.compile(rf"(?<![\w.'’/{HYPHENS}])(?<!\d )([LR])(?=[ {HYPHENS}](?:{_SIDED})\b)")
"""The L or R of "L arm" and "R-sided"; not that of "5 L" and "L4"."""

_FRACTIONS: Final = {"¼": 0.25, "½": 0.5, "¾": 0.75}
_OFTEN: Final = {"qd": "daily", "bid": "twice daily", "tid": "3 times daily", "qid": "4 times daily"}


def _fraction(match: re.Match[str]) -> str:
    return f"{int(match[1] or 0) + _FRACTIONS[match[2]]:g}"


def _and_a_half(match: re.Match[str]) -> str:
    return f"{NUMBERS.get(match[1].lower(), match[1])}.5"


def _always(written: str) -> Callable[[re.Match[str]], str]:
    return lambda _: written


def _dotted(letters: str) -> re.Pattern[str]:
    """Find an abbreviation with its full stops or without: b.i.d., bid."""
    inside = r"\.?".join(letters)
    return re.compile(rf"(?<![\w.]){inside}(?:\b|\.)", re.I)


_Spelling = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]

# In this order; what one of them writes is not read by a later one.
_SPELLINGS: Final[tuple[_Spelling, ...]] = (
    (re.compile(rf"\b({ONE_TO_NINE}|\d{{1,3}}) and a half\b", re.I), _and_a_half),
    *SPELLINGS,
    (re.compile(r"(\d{0,3}) ?([¼½¾])"), _fraction),
    (re.compile(r"\bhalf a dozen\b", re.I), _always("6")),
    (re.compile(r"\b(?:a )?dozen\b", re.I), _always("12")),
    (re.compile(r"\bthree quarters of an?\b", re.I), _always("0.75")),
    (re.compile(r"\bhalf an?\b", re.I), _always("0.5")),
    (re.compile(r"\bhalf (?:of|the)\b", re.I), _always("50 percent of")),
    *((_dotted(letters), _always(written)) for letters, written in _OFTEN.items()),
    (SIDE_LETTER, lambda match: "left" if match[1] == "L" else "right"),
)


@lru_cache(maxsize=4096)
def plain(text: str) -> str:
    """Give a text with each spelled or abbreviated value as `diagnosis.values` reads it."""
    for pattern, written in _SPELLINGS:
        text = pattern.sub(written, text)
    return text


def spelled_in(text: str) -> Iterator[tuple[int, int]]:
    """Give where such values stand in a text, as start and end."""
    for pattern, _ in _SPELLINGS:
        yield from (match.span() for match in pattern.finditer(text))
