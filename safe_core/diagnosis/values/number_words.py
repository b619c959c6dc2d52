"""Numbers in words: "twenty", "third", "twenty-five" and "three hundred and fifty", each as one number, and back."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from safe_core.diagnosis.words import Word, word_set

_ONES: Final = "one two three four five six seven eight nine"
_TEENS: Final = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBERS: Final = {
    **{word: number for number, word in enumerate(f"{_ONES} {_TEENS}".split(), 1)},
    **{word: 10 * number for number, word in enumerate(_TENS.split(), 2)},
}
_WORDS: Final = {number: word for word, number in NUMBERS.items()}
HYPHENS: Final = r"\-\u2010\u2011"


def numbered(names: str, start: int) -> dict[str, int]:
    """Number the names of a list that is written as one text."""
    return {name: number for number, name in enumerate(names.split(), start)}


NUMBER_WORDS: Final = {
    **NUMBERS,
    **numbered("zero once twice thrice", start=0),
    "dozen": 12,
    "hundred": 100,
    "thousand": 1000,
}
"""A single word → the number that it is, or that it says how often something is."""
ORDINALS: Final = numbered(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth",
    start=1,
) | {"thirtieth": 30}
ORDINAL_ENDINGS: Final = word_set("st nd rd th")


def _any_of(words: str) -> str:
    return "|".join(words.split())


_BELOW_HUNDRED: Final = (
    rf"(?:{_any_of(_TENS)})(?:[{HYPHENS} ](?:{_any_of(_ONES)})(?![\w{HYPHENS}]))?|{_any_of(_TEENS)}|{_any_of(_ONES)}"
)
_COMPOUND: Final = re.compile(rf"\b({_any_of(_TENS)})([{HYPHENS}]| (?=\w+(?![\w{HYPHENS}])))({_any_of(_ONES)})\b", re.I)
"""A number of two words, "fifty-five" or "fifty five"; not the "twenty" of "twenty five-milligram tablets"."""
_HUNDREDS: Final = re.compile(
    rf"\b(?:({_any_of(_ONES)}|a) )?hundred(?: and)? ({_BELOW_HUNDRED})\b|\b({_any_of(_ONES)}) hundred\b", re.I
)
ONE_TO_NINE: Final = _any_of(_ONES)
"""A pattern of the words from one to nine."""
_MULTIPLES: Final = {"hundred": 100, "thousand": 1000, "million": 1000000, "dozen": 12}
_MARKS: Final = _MULTIPLES.keys() | word_set("twenty thirty forty fifty sixty seventy eighty ninety")
_MOST: Final = 999  # before "thousand", and after it
_THOUSANDS: Final = range(1000, 1000 * _MOST + 1, 1000)


def _compound(match: re.Match[str]) -> str:
    return str(NUMBERS[match[1].lower()] + NUMBERS[match[3].lower()])


def _hundreds(match: re.Match[str]) -> str:
    hundreds, rest = (match[1] or match[3] or "one").lower(), (match[2] or "").lower()
    number = 100 * NUMBERS.get(hundreds, 1)
    return str(number + sum(NUMBERS[word] for word in re.findall("[a-z]+", rest)))


SPELLINGS: Final = ((_HUNDREDS, _hundreds), (_COMPOUND, _compound))
"""The patterns of numbers of several words, each with what writes its match in digits; in this order."""


def whole_number(folded: str) -> int | None:
    """Give the number that a word is, in digits or in letters."""
    return NUMBER_WORDS.get(folded, int(folded[:9]) if folded.isdecimal() else None)


def is_number(folded: str) -> bool:
    """Tell whether a word is a number in letters, or begins with a digit."""
    return folded[:1].isdecimal() or folded in NUMBER_WORDS


def has_number_words(folded: Sequence[str]) -> bool:
    """Tell whether any of some words may be a part of a number in several words."""
    return not _MARKS.isdisjoint(folded)


def with_numbers(text: str, cut: Sequence[Word]) -> list[Word]:
    """Give the words of a text with each number in several words as one."""
    spelled = {start: (end, number) for start, end, number in reversed([*numbers_in(text)])}
    read: list[Word] = []
    for word in cut:
        if read and word.start < read[-1].end:
            continue  # a further word of a number
        end, number = spelled.get(word.start, (word.end, None))
        read.append(word if number is None else Word(str(number), word.start, end))
        _multiply(text, read)
    return read


def _multiply(text: str, read: list[Word]) -> None:
    """Read the last two words, such as "4 thousand" and the "4000" and "200" of "four thousand two hundred", as one."""
    if len(read) < 2 or text[read[-2].end : read[-1].start] != " ":
        return
    multiple = _MULTIPLES.get(read[-1].folded)
    if not multiple and " " not in text[read[-2].start : read[-2].end]:  # as most
        return
    before, last = whole_number(read[-2].folded), whole_number(read[-1].folded)
    if multiple and before and before <= _MOST:
        number = before * multiple
    elif before and last and before in _THOUSANDS and last <= _MOST:
        number = before + last
    else:
        return
    read[-2:] = [Word(str(number), read[-2].start, read[-1].end)]


def numbers_in(text: str) -> Iterator[tuple[int, int, int]]:
    """Give where numbers of several words are in a text, as start, end and the number."""
    for pattern, written in SPELLINGS:
        yield from ((*match.span(), int(written(match))) for match in pattern.finditer(text))


def spelled(number: int) -> str:
    """Spell a number from 1 to 999: "forty-two", "one hundred and ten"."""
    hundreds, rest = divmod(number, 100)
    words = [f"{_WORDS[hundreds]} hundred"] if hundreds else []
    if rest:
        tens = rest - rest % 10
        words.append(_WORDS[rest] if rest in _WORDS else f"{_WORDS[tens]}-{_WORDS[rest % 10]}")
    return " and ".join(words)
