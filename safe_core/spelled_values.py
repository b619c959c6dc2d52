"""Values that are spelled out or abbreviated, in the form in which `diagnosis.values` reads them.

"Fifty-five minutes" is 55 minutes, "a dozen" 12, "half of" 50 %, "L arm" the left arm, "b.i.d." twice daily.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

_ONES: Final = "one two three four five six seven eight nine"
_TEENS: Final = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
_NUMBERS: Final = {
    **{word: number for number, word in enumerate(f"{_ONES} {_TEENS}".split(), 1)},
    **{word: 10 * number for number, word in enumerate(_TENS.split(), 2)},
}
_WORDS: Final = {number: word for word, number in _NUMBERS.items()}
_HYPHENS: Final = r"\-\u2010\u2011"


def _any_of(words: str) -> str:
    return "|".join(words.split())


_BELOW_HUNDRED: Final = (
    rf"(?:{_any_of(_TENS)})(?:[{_HYPHENS} ](?:{_any_of(_ONES)})(?![\w{_HYPHENS}]))?|{_any_of(_TEENS)}|{_any_of(_ONES)}"
)
COMPOUND: Final = re.compile(
    rf"\b({_any_of(_TENS)})([{_HYPHENS}]| (?=\w+(?![\w{_HYPHENS}])))({_any_of(_ONES)})\b", re.I
)
"""A number of two words, "fifty-five" or "fifty five"; not the "twenty" of "twenty five-milligram tablets"."""
_HUNDREDS: Final = re.compile(
    rf"\b(?:({_any_of(_ONES)}|a) )?hundred(?: and)? ({_BELOW_HUNDRED})\b|\b({_any_of(_ONES)}) hundred\b", re.I
)
_SIDED: Final = _any_of(
    "sided arm arms leg legs hand hands foot feet eye eyes ear ears knee knees hip hips shoulder elbow wrist ankle "
    "thigh calf forearm finger fingers thumb toe toes lung lungs kidney breast side chest flank MCA ACA PCA ICA "
    "hemisphere upper lower femur femoral tibia tibial fibula humerus humeral radius radial ulna ulnar clavicle facial "
    "face"
)
SIDE_LETTER: Final = re.compile(rf"(?<![\w.'’/{_HYPHENS}])(?<!\d )([LR])(?=[ {_HYPHENS}](?:{_SIDED})\b)")
"""The L or R of "L arm" and "R-sided"; not that of "5 L" and "L4"."""

_FRACTIONS: Final = {"¼": 0.25, "½": 0.5, "¾": 0.75}
_OFTEN: Final = {"qd": "daily", "bid": "twice daily", "tid": "3 times daily", "qid": "4 times daily"}


def _compound(match: re.Match[str]) -> str:
    return str(_NUMBERS[match[1].lower()] + _NUMBERS[match[3].lower()])


def _hundreds(match: re.Match[str]) -> str:
    hundreds, rest = (match[1] or match[3] or "one").lower(), (match[2] or "").lower()
    number = 100 * _NUMBERS.get(hundreds, 1)
    return str(number + sum(_NUMBERS[word] for word in re.findall("[a-z]+", rest)))


def numbers_in(text: str) -> Iterator[tuple[int, int, int]]:
    """Give where numbers of several words are in a text, as start, end and the number."""
    for pattern, written in ((_HUNDREDS, _hundreds), (COMPOUND, _compound)):
        yield from ((*match.span(), int(written(match))) for match in pattern.finditer(text))


def spelled(number: int) -> str:
    """Spell a number from 1 to 999: "forty-two", "one hundred and ten"."""
    hundreds, rest = divmod(number, 100)
    words = [f"{_WORDS[hundreds]} hundred"] if hundreds else []
    if rest:
        tens = rest - rest % 10
        words.append(_WORDS[rest] if rest in _WORDS else f"{_WORDS[tens]}-{_WORDS[rest % 10]}")
    return " and ".join(words)


def _fraction(match: re.Match[str]) -> str:
    return f"{int(match[1] or 0) + _FRACTIONS[match[2]]:g}"


def _and_a_half(match: re.Match[str]) -> str:
    return f"{_NUMBERS.get(match[1].lower(), match[1])}.5"


def _always(written: str) -> Callable[[re.Match[str]], str]:
    return lambda _: written


def _dotted(letters: str) -> re.Pattern[str]:
    """Find an abbreviation with its full stops or without: b.i.d., bid."""
    inside = r"\.?".join(letters)
    return re.compile(rf"(?<![\w.]){inside}(?:\b|\.)", re.I)


_Spelling = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]

# In this order; what one of them writes is not read by a later one.
_SPELLINGS: Final[tuple[_Spelling, ...]] = (
    (re.compile(rf"\b({_any_of(_ONES)}|\d{{1,3}}) and a half\b", re.I), _and_a_half),
    (_HUNDREDS, _hundreds),
    (COMPOUND, _compound),
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
