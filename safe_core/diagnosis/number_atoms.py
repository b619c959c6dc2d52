"""The single numbers of a text, in digits or in words, before anything says what they measure.

The text is folded first: signs that look alike become one, full-width digits become plain ones. Each number is then
replaced by marks of the same length, so that the patterns of `numbers_in_text` see "N/N mg" and every place stays. A
name that has digits (T2, B12, COVID-19) gets marks of its own and is seen by no pattern.
"""

import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from string import ascii_lowercase
from typing import Final, NamedTuple

from safe_core.diagnosis.words import word_set

NUMBER: Final = "\ue000\ue00f*+"
"""A pattern of a number in a shape."""
ORDINAL: Final = "\ue001\ue00f*+"
"""A pattern of an ordinal ("3rd", "third") in a shape."""
_NAME_MARK, _REST_MARK = "\ue002", "\ue00f"

# What is folded by Unicode's own tables is missing here. A minus sign stays apart from dashes: it never joins a range.
_SIGNS = {
    sign: piece
    for piece, signs in (
        ("-", "\u2010\u2011\u2012\u2013\u2014\u2015\u2043\ufe63\uff0d"),
        ("/", "\u2044\u2215\u29f8\uff0f"),
        (".", "\u00b7\u2219\u22c5\u30fb"),
        ("°", "\u00ba\u02da\u2218"),
        ("'", "\u2018\u2019\u02bc\u2032\u0060\u00b4"),
        ('"', "\u201c\u201d\u2033"),
        ("\u00a0", "\u00a0\u2007\u2008\u2009\u200a\u202f"),  # may part groups of digits
        *(("x", "\u00d7\u2715"), ("<=", "\u2264"), (">=", "\u2265"), ("~", "\u2248"), ("", "\u00ad\u200b")),
        ("?", "\ue000\ue001\ue002\ue00f"),  # our own marks
    )
    for sign in signs
}

ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS = ("ten", "eleven", "twelve", *(f"{one}teen" for one in ("thir", "four", "fif", "six", "seven", "eigh", "nine")))
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SIZES = {"thousand": 1000, "million": 1_000_000}
_WORTH = {
    **{word: number for number, word in enumerate((*ONES, *TEENS), 1)},
    **{word: 10 * number for number, word in enumerate(TENS, 2)},
    **dict.fromkeys(("zero", "oh"), 0),
    "a": 1,
}
_IRREGULAR = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth"}
_ORDINALS = {
    _IRREGULAR.get(word, re.sub("ve$", "f", re.sub("y$", "ie", word)) + "th"): number
    for word, number in _WORTH.items()
    if number and word != "a"
}
_PARTS = {"half": Fraction(1, 2), "third": Fraction(1, 3), "quarter": Fraction(1, 4)}


def _any(words: Sequence[str]) -> str:
    return f"(?:{'|'.join(words)})"


_ONE, _TEEN, _TEN, _ORDER = _any(ONES), _any(TEENS), _any(TENS), _any([*_ORDINALS])
# "twenty one-litre bags" are twenty.
_SMALL = rf"(?:{_TEN}(?:-{_ONE}\b|\s{_ONE}\b(?!-[a-z]))?|{_TEEN}|{_ONE})\b"
_BELOW_THOUSAND = (  # two hundred and four, fifteen hundred, one oh four, one fifty
    rf"(?:(?:a|{_SMALL})\shundred\b(?:\s(?:and\s)?{_SMALL})?"
    rf"|{_ONE}[ -](?:oh\s{_ONE}\b|(?=t|[a-z]+teen|[a-z]+ty|eleven|twelve)(?!two|three){_SMALL})"
    rf"|{_SMALL})"
)
_YEAR = (  # "twenty thirty" may be two numbers
    rf"(?:nineteen\s(?:oh\s{_ONE}\b|(?=[a-z]*t[ey]|eleven|twelve){_SMALL})"
    rf"|twenty\s(?:oh\s{_ONE}|{_TEEN}|twenty(?:[ -]{_ONE})?)\b)"
)
_WHOLE = rf"(?:{_YEAR}|(?:a|{_BELOW_THOUSAND})\sthousand\b(?:,?\s(?:and\s)?{_BELOW_THOUSAND})?|{_BELOW_THOUSAND})"
_DIGIT_WORD = rf"(?:{_ONE}|zero|oh)\b"
_COUNTED_NEXT = r"(?!\s?-?(?:days?|weeks?|months?|years?|hours?|minutes?|of|more|pills?|tablets?|times?|\.\s[0-9])\b)"
_FRACTION_WORDS = r"\sand\s(?:an?|one)\s(?P<with>half|third|quarter)\b"
_SPOKEN = re.compile(
    rf"(?P<part>(?:an?\s|one[\s-])?half(?:\s(?:of\s)?an?\b|(?=\s(?:past|hour|tablet|tab|pill|dose)\b|-(?:hour|day|year|tablet|mile)))"
    rf"|one[\s-]half|half\sa\sdozen\b|(?:an?\s|one\s)?dozen\b|(?P<many>two|three)\s(?:thirds|quarters)\b"
    rf"|one\s(?:third|quarter)\b|a\sthird(?=\sof)|(?:a\s)?quarter(?=\s(?:past|to|of|after)\b))"
    rf"|(?P<order>(?:{_TEN}[ -])?{_ORDER})\b"
    rf"|(?P<whole>{_WHOLE}|zero\b)?(?:{_FRACTION_WORDS}|(?:(?:^|(?<=\w)\s|(?<!\w))point\s|(?<=\w)\s\.\s)"
    rf"(?P<decimals>{_DIGIT_WORD}(?:\s{_DIGIT_WORD})*){_COUNTED_NEXT})?"
)
_STARTS = frozenset((*_WORTH, *_ORDINALS, *_PARTS, "dozen", "point")) - {"oh", "a"}

_VULGAR = "\u00bc-\u00be\u2150-\u215e"
_FORMS = r"(?:tab|cap|pill|dose|bag|vial|puff)"
_GROUP_UNITS = r"(?=\s?(?:mg|mcg|ml|units?|iu|cells|platelets|steps|/))"
_PLAIN = (  # a whole number with nothing behind it that could be a part of it
    rf"[0-9]{{1,12}}+(?![\w^]|[.,'\u00a0/-][0-9]|\s?[/{_VULGAR}]"
    rf"|\s(?:[0-9.x]|and\s|point\s|{_any([*_SIZES])}|hundred|dozen))"
)
_PLAIN_AT = re.compile(_PLAIN)
_ALONE = re.compile(rf"(?<![\w.,/\u2212-])(?<!(?:id|ca)\s){_PLAIN}(?![.)-])")
_DIGITS = re.compile(
    rf"(?:(?P<mixed>[0-9]+)(?:\s?(?P<sign>[{_VULGAR}])|[ -](?P<over>[1-7])/(?P<under>[2-8])(?![0-9/]|\s/)"
    rf"|{_FRACTION_WORDS})"
    rf"|(?P<vulgar>[{_VULGAR}])"
    rf"|(?P<fraction>(?:1/[2348]|2/3|[35]/[48](?=\s(?:tab|cap|of|cup|inch|mile))|3/4)(?![0-9/]|\s/\s?[0-9]))"
    r"|(?P<grouped>[1-9][0-9]{0,2}(?:(?:,[0-9]{3}){1,8}|(?:['\u00a0][0-9]{3}){1,8}|(?:\.[0-9]{3}){2,8}"
    rf"|(?:\s000){{1,8}}|(?:\s[0-9]{{3}}){{1,8}}{_GROUP_UNITS}(?!\s?[a-z]+\s{_FORMS}))"
    r"(?![0-9]|,[0-9])(?:\.(?P<after>[0-9]+))?)"
    rf"|(?P<plain>(?<![0-9][.,])[0-9]+(?:\.|\s\.\s(?=[0-9](?![0-9])){_COUNTED_NEXT}|\spoint\s(?=[0-9])"
    r"|,(?=[0-9]{1,2}(?![0-9,])|[0-9]{4})|(?<=(?<![0-9])0),(?=[0-9]{3}))[0-9]++(?!\.[0-9])"
    r"|(?<![\w.])\.[0-9]+|[0-9]+))"
    r"(?P<power>[\u00b2\u00b3\u00b9\u2070-\u2079]+|\^[0-9]{1,2}(?![0-9]))?"
    r"(?:\s?x\s?10(?P<times>[\u00b2\u00b3\u00b9\u2070-\u2079]+|\^[0-9]{1,2}))?"
)
_MULTIPLE = re.compile(r"\s(hundred|thousand|million|dozen)\b")
_ORDER_ENDING = re.compile(r"(?:st|nd|rd|th)\b")
_CANDIDATE = re.compile(
    rf"[0-9{_VULGAR}]|\.(?=[0-9])|(?<![a-z])(?:{_any(sorted(_STARTS))}(?![a-z])"
    r"|an?(?=\s(?:hundred|thousand|half|dozen|third|quarter)))"
)
_LIST_NUMBER = re.compile(r"[0-9]{1,2}[.)]\s+(?![\s0-9])")  # "1. Gout"
_NAME = re.compile(r"[a-z]+-?[0-9]+(?:-?[a-z]{0,3}[0-9]+)*(?:(?<=[0-9])[a-z]{1,3}\b)?(?:[-/][a-z]{0,2}[0-9]+)*")
_NAME_OF_DIGITS = re.compile(r"[0-9]+(?:(?![hwxd][0-9])[A-Za-z]{1,4}[0-9]+|-(?:FU|ASA|MP|HT|OH|HIAA)\w*|[DP]\b)")
_CODE = re.compile(r"(?![0-9]+\.[0-9]+-[0-9]+\.[0-9]+(?![.-]?[0-9]))[0-9]+(?:[.-][0-9]+){3,}|1-[0-9]{3}-[0-9]+")
_SPACED_NAME = re.compile(r"covid 19\b|ca 19-9\b|ca 125\b")
_HYPHENED_NAMES = frozenset(("covid", "omega", "il", "ca", "tc"))
# Glued to a number, these are no part of a name: "x3", "q8h", "GCS15", "POD2", "kg/m2", "Hb92".
_GLUED = word_set(
    "x q pod hd day gcs bp hr rr ef age stage grade type class bmi wt ht temp inr wbc hgb plt cr bun na k "
    "sbp dbp map tmax sat sats hb hct wcc crp esr tsh psa alt ast alp ldh bnp ldl hdl gfr egfr ph bm lactate glucose"
)
_TEMPERATURE = re.compile(r"t(?:3[3-9]|4[0-3]|9[3-9]|10[0-8])(?![0-9a-z])")
"""No vertebra: those end at T12."""
_COUNTING = re.compile(
    r"[\s-](?:(?!is\b|was\b|has\b|as\b|this\b)[a-z]{2,}s\b"
    r"|(?:of|or|to|more|point|hundred|thousand|percent|mg|ml|day|week|month|year|hour|minute|tablet|pill|dose|unit)\b)"
)
"""After a number: "TWO tablets"."""
_LONGEST_NAME = 24


Number = int | Fraction


class Atom(NamedTuple):
    """A number without what it measures, with its places in the folded text."""

    start: int
    end: int
    number: Number
    written: str  # folded, in small letters


class Shape(NamedTuple):
    """A folded text whose numbers are marks."""

    cased: str
    marked: str
    atoms: dict[int, Atom]  # by their start
    places: Sequence[int]  # of each folded character, and of the end, in the original


def shape_of(text: str) -> Shape:
    """Fold a text and replace its numbers by marks."""
    cased, places = _folded(text)
    lower, done = cased.lower(), 0
    pieces: list[str] = []
    atoms: dict[int, Atom] = {}
    for candidate in _CANDIDATE.finditer(lower):
        at, mark = candidate.start(), _NAME_MARK
        if at < done or (candidate[0] == "second" and at - done == 1 and pieces):  # the unit of "one second"
            continue
        is_word = candidate[0].isalpha()
        start, end = at, 0
        if not is_word and (alone := _ALONE.match(lower, at)):  # as most numbers are
            mark, end = NUMBER[0], alone.end()
            atoms[at] = Atom(at, end, int(alone[0]), alone[0])
        elif not is_word:
            start, end = _name_at(cased, lower, at, done)
        elif _is_abbreviation(cased, candidate):
            continue
        if not end and (atom := _spoken(lower, at) if is_word else _in_digits(lower, at)):
            atom, mark = _marked(lower, atom, done)
            start, end = atom.start, atom.end
            atoms[start] = atom
        if end:
            pieces += (lower[done:start], mark, _REST_MARK * (end - start - 1))
            done = end
    return Shape(cased, "".join((*pieces, lower[done:])), atoms, places)


def _folded(text: str) -> tuple[str, Sequence[int]]:
    if text.isascii():
        return text, range(len(text) + 1)
    pieces = [char if char.isascii() else _folded_sign(char) for char in text]
    places = [at for at, piece in enumerate(pieces) for _ in piece]
    return "".join(pieces), [*places, len(text)]


@lru_cache(maxsize=1024)
def _folded_sign(char: str) -> str:
    """Fold a character; superscripts and vulgar fractions stay apart from the digits beside them."""
    if char in _SIGNS:
        return _SIGNS[char]
    piece = char if unicodedata.category(char) == "No" else unicodedata.normalize("NFKC", char)
    return piece if len(piece.lower()) == len(piece) else "?"


def _name_at(cased: str, lower: str, at: int, done: int) -> tuple[int, int]:
    """Give where a name or the number of a list is that has a digit here; its end is 0 if there is none."""
    head = lower[max(done, at - _LONGEST_NAME) : at]
    joined = head[-1:] if head[-1:] in {" ", "-"} else ""
    start = max(done, at - _LONGEST_NAME) + len(head.removesuffix(joined).rstrip(ascii_lowercase))
    if start < at - len(joined) and not lower[max(0, start - 1) : start].isdecimal():
        match = (_SPACED_NAME if joined == " " else _NAME).match(lower, start)
        is_measured = _TEMPERATURE.match(lower, start)
        if (
            match
            and not is_measured
            and _may_be_named(cased[start : at - len(joined)], joined, lower[start - 1 : start])
        ):
            return start, match.end()
    line = head[head.rfind("\n") + 1 :]
    match = _NAME_OF_DIGITS.match(cased, at) or _CODE.match(lower, at)
    if not match and not line.strip() and (len(line) < len(head) or at == len(head)):
        match = _LIST_NUMBER.match(lower, at)
    return at, match.end() if match else 0


def _may_be_named(word: str, joined: str, before: str) -> bool:
    """Tell whether a word may begin a name that goes on with a digit: "T2", "COVID-19", but not "x3"."""
    folded = word.lower()
    if joined:
        return joined == " " or folded in _HYPHENED_NAMES or (len(word) < 7 and word[-1].isupper())
    return folded not in _GLUED and not (folded == "m" and before == "/")


def _is_abbreviation(cased: str, candidate: re.Match[str]) -> bool:
    """Tell whether a number in capitals is a name: "TEN", the rash, amid words in small letters, and counts nothing."""
    start, end = candidate.span()
    around = cased[max(0, start - _LONGEST_NAME) : start] + cased[end : end + _LONGEST_NAME]
    is_amid_small = any(map(str.islower, around))
    return end - start > 2 and cased[start:end].isupper() and is_amid_small and not _COUNTING.match(cased.lower(), end)


def _spoken(lower: str, at: int) -> Atom | None:
    match = _SPOKEN.match(lower, at)
    if match is None or match[0] in {"", "a"}:
        return None
    number: Number
    if words := match["part"]:
        whole = {"half": 6}.get(words[:4], 12)
        part = next((part for name, part in _PARTS.items() if name in words), Fraction(1))
        number = whole if words.endswith("dozen") else part * _WORTH[match["many"] or "one"]
    elif match["order"]:
        *tens, last = match["order"].replace("-", " ").split()
        number = _ORDINALS[last] + sum(_WORTH[word] for word in tens)
    else:
        number = _worth(re.findall("[a-z]+", match["whole"] or "")) + _PARTS.get(match["with"] or "", 0)
        if match["decimals"]:
            number += Fraction("0." + "".join(str(_WORTH[word]) for word in match["decimals"].split()))
    return Atom(at, match.end(), number, match[0])


def _worth(words: Sequence[str]) -> int:
    """Add up the words of a number; "one fifty" and "nineteen ninety" leave out the hundred."""
    total = part = 0
    for word in words:
        if word in _SIZES:
            total, part = total + max(part, 1) * _SIZES[word], 0
        elif word == "hundred":
            part = max(part, 1) * 100
        elif word == "oh" or (_WORTH.get(word, 0) >= 10 and part % 100):
            part = part * 100 + _WORTH[word]
        else:
            part += _WORTH.get(word, 0)
    return total + part


def _in_digits(lower: str, at: int) -> Atom | None:
    if plain := _PLAIN_AT.match(lower, at):
        return Atom(at, plain.end(), int(plain[0]), plain[0])
    match = _DIGITS.match(lower, at)
    if match is None:
        return None
    number: Number
    if match["mixed"]:
        part = Fraction(int(match["over"]), int(match["under"])) if match["over"] else _PARTS.get(match["with"] or "")
        number = int(match["mixed"]) + (part or _vulgar(match["sign"]))
    elif match["vulgar"]:
        number = _vulgar(match["vulgar"])
    elif match["grouped"]:
        whole = match["grouped"].removesuffix(f".{match['after']}")
        number = Fraction(f"{re.sub('[^0-9]', '', whole)}.{match['after'] or 0}")
    else:
        plainly = match["fraction"] or re.sub(r"\s?(?:[.,]|point)\s?", ".", match["plain"][:40])
        number = int(plainly) if plainly.isdecimal() else Fraction(plainly)
    if match["power"]:
        number **= _power(match["power"])
    if match["times"]:
        number *= 10 ** _power(match["times"])
    return Atom(at, match.end(), number, match[0])


def _vulgar(sign: str) -> Fraction:
    return Fraction(unicodedata.numeric(sign)).limit_denominator(10)


def _power(written: str) -> int:
    return min(99, int(unicodedata.normalize("NFKC", written).lstrip("^")[:2]))


def _marked(lower: str, atom: Atom, done: int) -> tuple[Atom, str]:
    """Take in the "thousand" of "5 thousand", a minus before a number, and the ending of an ordinal."""
    start, end, number, written = atom
    if many := _MULTIPLE.match(lower, end):
        end, number = many.end(), number * {"hundred": 100, "dozen": 12, **_SIZES}[many[1]]
    before = lower[max(done, start - 2) : start]
    is_minus = before.endswith("\u2212") and not before[:-1].isdecimal()
    is_dash = before == "-" and start == 1 and "." in written  # at the beginning, where a list has dashes too
    if is_minus or is_dash or (before[-1:] == "-" and before[:1] in {" ", "(", "=", ":"}):
        start, number = start - 1, -number
    ending = _ORDER_ENDING.match(lower, end)
    is_order = ending or (
        Fraction(number).denominator == 1 and _ORDINALS.keys() & {written.replace("-", " ").rpartition(" ")[2]}
    )
    mark = ORDINAL[0] if is_order else NUMBER[0]
    return Atom(start, ending.end() if ending else end, number, written), mark
