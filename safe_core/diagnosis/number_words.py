"""Numbers in several words, read as one: "twenty-five", "three hundred and fifty", "4 thousand"."""

from collections.abc import Sequence
from typing import Final

from safe_core.diagnosis.values import whole_number
from safe_core.diagnosis.words import Word, word_set
from safe_core.spelled_values import numbers_in

_MULTIPLES: Final = {"hundred": 100, "thousand": 1000, "million": 1000000, "dozen": 12}
_MARKS: Final = _MULTIPLES.keys() | word_set("twenty thirty forty fifty sixty seventy eighty ninety")
_MOST: Final = 999  # before "thousand", and after it
_THOUSANDS: Final = range(1000, 1000 * _MOST + 1, 1000)


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
