"""Numbers in several words, read as one: "twenty-five", "three hundred and fifty", "4 thousand"."""

from collections.abc import Iterator, Sequence
from typing import Final

from safe_core.diagnosis.words import Word

_ONES: Final = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL: Final = {name: number for number, name in enumerate(_ONES.split(), 1)} | {
    name: 10 * number for number, name in enumerate(_TENS.split(), 2)
}
_MULTIPLES: Final = {"hundred": 100, "thousand": 1000, "million": 1000000, "dozen": 12}
_FIRST: Final = frozenset((*_TENS.split(), *_MULTIPLES))
_MOST_DIGITS: Final = 6  # of a number before "thousand"


def has_number_words(folded: Sequence[str]) -> bool:
    """Tell whether any of some words may be a part of a number in several words."""
    return not _FIRST.isdisjoint(folded)


def with_numbers(text: str, cut: Sequence[Word]) -> Iterator[Word]:
    """Give the words of a text with each number in several words as one."""
    at = 0
    while at < len(cut):
        number, length = _number(text, cut, at)
        yield Word(str(number), cut[at].start, cut[at + length - 1].end) if length > 1 else cut[at]
        at += max(1, length)


def _number(text: str, cut: Sequence[Word], first: int) -> tuple[int, int]:
    """Give the number that begins with a word, and how many words it takes."""
    total = current = length = 0
    for at in range(first, len(cut)):
        if at > first and text[cut[at - 1].end : cut[at].start] not in {" ", "-"}:
            break
        folded = cut[at].folded
        if folded == "and" and current % 100 == 0 and length:
            continue  # "a hundred and two"
        small, multiple = _SMALL.get(folded, 0), _MULTIPLES.get(folded, 0)
        if at == first and folded.isdecimal() and len(folded) <= _MOST_DIGITS:
            current = int(folded)
        elif small and _fits(small, current) and not _begins_adjective(text, cut, at):
            current += small
        elif multiple > 100 or (multiple and current < 100):
            current = max(1, current) * multiple
            if multiple > 100:
                total, current = total + current, 0
        else:
            break
        length = at - first + 1
    return total + current, length


def _fits(small: int, current: int) -> bool:
    """Tell whether a number may follow one that is read: "two" follows "twenty" and "hundred", not "ten"."""
    return current % 100 == 0 or (small < 10 and current % 100 >= 20 and current % 10 == 0)


def _begins_adjective(text: str, cut: Sequence[Word], at: int) -> bool:
    """Tell whether a number belongs to the next word: the "one" of "twenty one-litre bags"."""
    is_apart = at > 0 and text[cut[at - 1].end : cut[at].start] == " " and cut[at - 1].folded in _SMALL
    return is_apart and text[cut[at].end : cut[at].end + 1] == "-" and at + 1 < len(cut)
