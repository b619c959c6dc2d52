"""The words of a text with their places in it, and what is the same in two spellings of a word."""

import re
import unicodedata
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

_JOINERS = "\u00ad\u200b-\u200d\u2060\ufeff"  # invisible inside a word
_MARKS = "\u0300-\u036f"
_LETTER = rf"[^\W\d_][{_MARKS}{_JOINERS}]*"

_TOKEN = re.compile(
    r"\d{4}-\d\d-\d\d(?!\d)"  # a date
    r"|(?<![^\W_])\.\d+"  # .5
    r"|(?<![\d,])\d+,\d{1,2}(?![\d,.:/]*\d)"  # 38,5
    r"|\d+(?:,\d{3}(?!\d))*(?:[.:/]\d+)*"  # a number, a time, a ratio
    rf"|[ap]\.\ ?m\.?(?![^\W\d_])"  # a.m., p.m.
    rf"|(?:{_LETTER})+(?:['’ʼ](?:{_LETTER})+)*"  # a word, perhaps with apostrophes
    r"|[<>≤≥%°]",
    re.IGNORECASE,
)
_DECIMAL_COMMA = re.compile(r"\d+,\d{1,2}")
_NOT_WORD = re.compile(r"[\W_]+")
_SIGNS = {"%": "percent", "°": "degree", "≤": "<=", "≥": ">="}
_MAX_TOKEN = 64  # longer ones are cut for comparison: they are no words


def listed(text: str) -> tuple[str, ...]:
    """Give the words of a list that is written as one text."""
    return tuple(text.split())


class Word(NamedTuple):
    """One word, number or sign: `text[start:end]`, and its folded form."""

    folded: str
    start: int
    end: int


def words(text: str, most: int) -> list[Word]:
    """Cut a text into words; what stands between them (space, punctuation, quotes, dashes) is form."""
    return [Word(fold(match[0]), match.start(), match.end()) for match in islice(_TOKEN.finditer(text), most)]


@lru_cache(maxsize=8192)
def fold(token: str) -> str:
    """Give a word without case, accents, apostrophes and compatibility forms; "patient's" is "patient"."""
    token = token[:_MAX_TOKEN]
    if token.isascii() and token.isalnum():
        return token.lower()
    if token in _SIGNS:
        return _SIGNS[token]
    plain = unicodedata.normalize("NFKD", token.replace("ʼ", "'").replace("’", "'")).casefold()
    if plain[:1] == ".":
        return f"0{plain}"
    if plain[:1].isdecimal():
        return plain.replace(",", "." if _DECIMAL_COMMA.fullmatch(plain) else "")
    return _NOT_WORD.sub("", plain.removesuffix("'s")) or plain


# the forms of common verbs that no ending explains
_IRREGULAR = {
    form: verb
    for verb, forms in {
        "begin": "began begun",
        "break": "broke broken",
        "bring": "brought",
        "come": "came",
        "fall": "fell fallen",
        "feel": "felt",
        "find": "found",
        "get": "got gotten",
        "give": "gave given",
        "go": "went gone",
        "hold": "held",
        "keep": "kept",
        "know": "knew known",
        "leave": "left_",
        "lose": "lost loss",
        "run": "ran",
        "say": "said",
        "see": "saw seen",
        "send": "sent",
        "show": "shown",
        "speak": "spoke spoken",
        "take": "took taken",
        "tell": "told",
        "think": "thought",
        "write": "wrote written",
        "child": "children",
        "foot": "feet",
        "tooth": "teeth",
        "man": "men",
        "woman": "women",
    }.items()
    for form in forms.split()
}
_ENDINGS = (
    # ending, what stands in its place, how much must be left of the word
    ("ifications", "ify", 3),
    ("ification", "ify", 3),
    ("ational", "ate", 4),
    ("ations", "", 4),
    ("ation", "", 4),
    ("ments", "", 4),
    ("ment", "", 4),
    ("abilities", "able", 3),
    ("ability", "able", 3),
    ("ibilities", "ible", 3),
    ("ibility", "ible", 3),
    ("ities", "", 4),
    ("ity", "", 4),
    ("nesses", "", 4),
    ("ness", "", 4),
    ("ions", "", 4),
    ("ion", "", 4),
    ("ances", "", 4),
    ("ance", "", 4),
    ("ences", "", 4),
    ("ence", "", 4),
    ("ically", "ic", 3),
    ("ily", "y", 3),
    ("ly", "", 4),
    ("ies", "y", 2),
    ("ied", "y", 2),
    ("ings", "", 3),
    ("ing", "", 3),
    ("ed", "", 3),
    ("als", "", 5),
    ("al", "", 5),
    ("ive", "", 5),
    ("sses", "ss", 2),
    ("xes", "x", 2),
    ("ches", "ch", 2),
    ("shes", "sh", 2),
    ("es", "e", 3),
    ("s", "", 3),
)
_KEPT = ("ss", "us", "is", "ous")  # endings whose last s is no plural


@lru_cache(maxsize=8192)
def stem(folded: str) -> str:
    """Give what the inflections of a word have in common: light, and only for English."""
    if folded in _IRREGULAR:
        return _IRREGULAR[folded]
    if len(folded) < 4 or not folded.isalpha() or (folded.endswith(_KEPT) and not folded.endswith("ness")):
        return folded
    for ending, instead, left in _ENDINGS:
        if folded.endswith(ending) and len(folded) - len(ending) >= left:
            return _bare(folded[: -len(ending)] + instead)
    return _bare(folded)


def _bare(word: str) -> str:
    """Drop a final e and the second of two consonants ("referred", "refer"); y and i are one."""
    if len(word) > 3 and word[-1] == "e":
        word = word[:-1]
    if len(word) > 5 and word.endswith("at"):  # evaluate, evaluation
        word = word[:-2]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiousl":
        word = word[:-1]
    return word[:-1] + "i" if word[-1] == "y" and len(word) > 3 else word


class Folded(NamedTuple):
    """A text without form: its words run together, and where each begins there (shape: as many as words)."""

    text: str
    begins: list[int]


def run_together(cut: list[Word]) -> Folded:
    """Join folded words without anything between, except where two numbers would become one."""
    pieces: list[str] = []
    begins: list[int] = []
    at = 0
    for number, word in enumerate(cut):
        if number and word.folded[0].isdecimal() and pieces[-1][-1].isdecimal():
            pieces.append("|")
            at += 1
        begins.append(at)
        pieces.append(word.folded)
        at += len(word.folded)
    return Folded("".join(pieces), begins)
