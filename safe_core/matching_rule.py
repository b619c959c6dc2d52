"""When a term counts as found in a text (contract.md, "Matching")."""

from collections.abc import Iterable, Sequence

RULE = "substring/1"
"""The name of the rule, shown in every report: a found term is a case-insensitive substring of the text."""

_FEW_NEEDLES = 256
_LITTLE_WORK = 1 << 25  # needles times characters; the plain search takes about 3 ns for each at most
_GRAM = 8


def normalise(text: str) -> str:
    """Lower a text and strip white space from its ends, the form in which all is compared."""
    return text.lower().strip()


def joined(parts: Iterable[str]) -> str:
    """Join the parts of a text with one space each, normalised."""
    return normalise(" ".join(parts))


def which_occur(text: str, needles: Sequence[str]) -> list[bool]:
    """Tell for each needle, none of them empty, whether it occurs in the text: as `in` does, but in bounded time."""
    if len(needles) <= _FEW_NEEDLES or len(needles) * len(text) <= _LITTLE_WORK:
        return [needle in text for needle in needles]
    return _search_by_grams(text, needles)


def _search_by_grams(text: str, needles: Sequence[str]) -> list[bool]:
    """Walk through the text once for each length of gram; search it only for needles all of whose grams it holds."""
    first = _first_positions(text, (gram for needle in needles for _, gram in _grams(needle)))
    return [_occurs(text, needle, first) for needle in needles]


def _grams(needle: str) -> list[tuple[int, str]]:
    """Cut a needle into pieces of equal length, at most eight characters, each with its place; the last may overlap."""
    length = min(len(needle), _GRAM)
    places = [*range(0, len(needle) - length, length), len(needle) - length]
    return [(place, needle[place : place + length]) for place in places]


def _first_positions(text: str, grams: Iterable[str]) -> dict[str, int]:
    """Give the first position of each gram that occurs in the text."""
    wanted: dict[int, set[str]] = {}
    for gram in grams:
        wanted.setdefault(len(gram), set()).add(gram)
    first: dict[str, int] = {}
    for length, missing in wanted.items():
        for position in range(len(text) - length + 1):
            gram = text[position : position + length]
            if gram in missing:
                missing.remove(gram)
                first[gram] = position
    return first


def _occurs(text: str, needle: str, first: dict[str, int]) -> bool:
    earliest = 0
    for place, gram in _grams(needle):
        position = first.get(gram)
        if position is None:
            return False
        earliest = max(earliest, position - place)  # the needle cannot begin before its grams allow
    return text.find(needle, earliest) >= 0
