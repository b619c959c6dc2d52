"""The words of a text with their places in it, and what is the same in two spellings of a word."""

import re
import unicodedata
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from safe_core.diagnosis.lexicon import rows
from safe_core.scripts import UNSPACED

_JOINERS = "\u00ad\u200b-\u200d\u2060\ufeff"  # invisible inside a word
_MARKS = "\u0300-\u036f"
_LETTER = rf"[^\W\d_{UNSPACED}][{_MARKS}{_JOINERS}]*"

_TOKEN = re.compile(
    r" {0,4}+("  # spaces are passed over at once, for speed; a bound keeps long runs of them cheap
    rf"(?![ap]\.)[a-z]++(?![^\W\d_]|['’ʼ{_MARKS}{_JOINERS}])"  # a plain word, as most are
    r"|\d{4}-\d\d-\d\d(?!\d)"  # a date
    r"|(?<![^\W_])\.\d+"  # .5
    r"|(?<![\d,])\d+,\d{1,2}(?![\d,.:/]*\d)"  # 38,5
    r"|\d+(?:,\d{3}(?!\d))*(?:[.:/]\d+)*"  # a number, a time, a ratio
    rf"|[ap]\.\ ?m\.?(?![^\W\d_])"  # a.m., p.m.
    rf"|[{UNSPACED}]"  # of a script that does not separate words: each character
    rf"|(?:{_LETTER})+(?:['’ʼ](?:{_LETTER})+)*"  # a word, perhaps with apostrophes
    r"|[<≤≥%°]|(?<!-)>)",  # "->" is an arrow
    re.IGNORECASE,
)
_DECIMAL_COMMA = re.compile(r"\d+,\d{1,2}")
_NOT_WORD = re.compile(r"[\W_]+")
_SIGNS = {"%": "percent", "°": "degree", "≤": "<=", "≥": ">="}
_MAX_TOKEN = 64  # longer ones are cut for comparison: they are no words


def word_set(text: str) -> frozenset[str]:
    """Give the words of a list that is written as one text."""
    return frozenset(text.split())


class Word(NamedTuple):
    """One word, number or sign: `text[start:end]`, and its folded form."""

    folded: str
    start: int
    end: int


def words(text: str, most: int, start: int = 0, end: int | None = None) -> list[Word]:
    """Cut `text[start:end]` into words; what stands between them (space, punctuation, quotes, dashes) is form."""
    found = _TOKEN.finditer(text, start, len(text) if end is None else end)
    return [Word(fold(match[1][:_MAX_TOKEN]), *match.span(1)) for match in islice(found, most)]


@lru_cache(maxsize=8192)
def fold(token: str) -> str:
    """Give a word without case, accents, apostrophes and compatibility forms; "patient's" is "patient"."""
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


_IRREGULAR = {form: base for _, (base, *forms) in rows("forms") for form in forms}
"""The forms of common words that no ending explains."""

# Endings are tried in this order: what replaces them, how many letters must be left before them, the endings.
_ENDINGS = tuple(
    (ending, instead, left)
    for instead, left, endings in (
        ("ify", 3, "ifications ification"),
        ("ate", 4, "ational"),
        ("", 4, "ations ation ments ment"),
        ("able", 3, "abilities ability"),
        ("ible", 3, "ibilities ibility"),
        ("", 4, "ities ity nesses ness ions ion ances ance ences ence"),
        ("ic", 3, "ically"),
        ("y", 3, "ily"),
        ("", 4, "ly"),
        ("y", 2, "ies ied"),
        ("", 3, "ings ing ed"),
        ("", 5, "als al ive"),
        ("ss", 2, "sses"),
        ("x", 2, "xes"),
        ("ch", 2, "ches"),
        ("sh", 2, "shes"),
        ("e", 3, "es"),
        ("", 3, "s"),
    )
    for ending in endings.split()
)
_AMERICAN = ("iz", "yz")  # mobilized, paralyzed
_KEPT = ("ss", "us", "is", "ous", "eed")  # endings whose last s is no plural, and whose "ed" is no past ("bleed")


_WHOLE = (
    dict.fromkeys(("note", "noted", "notes", "noting"), "note")
    | dict.fromkeys(("missed", "missing"), "missed")
    | {word: word for word in ("none", "likely", "unlikely", "quite", "rule", "medical")}
)
"""Words whose stems would be those of "not", "Miss", "non", "like", "unlike", "quit", "ruled" and "medication"."""


_CAPITALS = re.compile(r"[A-Z]{2,6}")
_ABBREVIATIONS = {
    cell.lower() for _, cells in (*rows("same"), *rows("rival")) for cell in cells if _CAPITALS.fullmatch(cell)
}
"""Words in capitals: of one, there is a plural and nothing else."""


@lru_cache(maxsize=8192)
def stem(folded: str) -> str:
    """Give what the inflections of a word have in common: light, and only for English.

    Of an abbreviation, only the plural is one: "sobbing" is not "SOB", nor is "rules" the "RUL" of a lung, but "sobbed"
    and "ruled".
    """
    found = _stem(folded)
    return f"{found}-" if found in _ABBREVIATIONS and folded not in {found, f"{found}s"} else found


def _stem(folded: str) -> str:
    if folded in _WHOLE:
        return _WHOLE[folded]
    if folded in _IRREGULAR:
        return _bare(_IRREGULAR[folded])
    if len(folded) < 4 or not folded.isalpha() or (folded.endswith(_KEPT) and not folded.endswith("ness")):
        return folded
    for ending, instead, left in _ENDINGS:
        if folded.endswith(ending) and len(folded) - len(ending) >= left:
            return _bare(folded[: -len(ending)] + instead)
    return _bare(folded)


def _bare(word: str) -> str:
    """Drop a final e and the second of two consonants ("referred", "refer"); y and i, and two spellings, are one."""
    if len(word) > 4:  # oedema, edema
        word = word.replace("ae", "e").replace("oe", "e")
    if len(word) > 3 and word[-1] == "e":
        word = word[:-1]
    if len(word) > 4 and word.endswith(_AMERICAN):
        word = word[:-1] + "s"
    if len(word) > 4 and word.endswith("our"):  # labour, labor
        word = word[:-2] + "r"
    if len(word) > 5 and word.endswith("at"):  # evaluate, evaluation
        word = word[:-2]
    if len(word) > 3 and word[-1] == word[-2] and (word[-1] not in "aeiousl" or (len(word) > 5 and word[-1] == "l")):
        word = word[:-1]
    return word[:-1] + "i" if word[-1] == "y" and len(word) > 3 else word


def run_together(cut: list[Word]) -> str:
    """Join folded words without anything between, except where two numbers would become one."""
    joined = ""
    for word in cut:
        joined += "|" * (joined[-1:].isdecimal() and word.folded[0].isdecimal()) + word.folded
    return joined
