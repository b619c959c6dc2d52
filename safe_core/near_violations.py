"""Forbidden terms that a question evades: it has them in another spelling, or in words that mean the same.

contract.md, "Near violations". Terms and questions are compared after folding. Every output that is scored is asked, so
a cheap test comes first: places are looked for only if a form of a term, or a word of it, is in the questions at all.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from pkgutil import get_data
from typing import Any, Final, Literal, NamedTuple

from safe_core.scripts import is_letter_of_spaced_word

NearKind = Literal["spelling", "synonym"]
"""The term itself, spelled otherwise; or with a word in it that means the same."""

_MOST_FORMS = 64  # of a term
_MOST_WORDS = 24  # of a term in other words; for each stretch of it, the lexicon is asked
_APART = "\0"
"""Between two questions: no term goes from one to the next."""
_EDGES = frozenset(("", " ", "\t", "\n", "\r", "\u00a0", _APART))


@dataclass(frozen=True, slots=True)
class NearViolation:
    """A forbidden term that AH does not find, and the first place where a question has it all the same.

    The place is `text[start:end]` of a question, in code points; `element` is its number, from 0.
    """

    term: str
    kind: NearKind
    element: int
    start: int
    end: int
    criterion: Literal["AH"] = "AH"


Near = tuple[NearViolation, ...]


def near_document(near: NearViolation) -> dict[str, Any]:
    """Give a near violation as a report shows it: its place, never the text of an output."""
    place = {"element": near.element, "start": near.start, "end": near.end}
    return {"term": near.term, "kind": near.kind, "field": "followup_questions", **place}


def near_violations(forbidden: tuple[str, ...], used: Sequence[str], questions: Sequence[str]) -> Near:
    """Give the forbidden terms, without those that were `used`, that some question has in another form.

    Each is given once, in the order of the list.
    """
    if not forbidden or not questions:
        return ()
    forms = _forms_of(forbidden)
    if not _may_have(forms, _APART.join(questions)):
        return ()
    asked = [_Spelled(question) for question in questions]
    found = (_first(term, forms.by_term[term], asked) for term in dict.fromkeys(forbidden) if term not in used)
    return tuple(near for near in found if near is not None)


def _may_have(forms: "_Forms", text: str) -> bool:
    """Tell, at the cost of a search, whether a text may have one of the forms: mostly not."""
    if _may_be_emphasised(text):
        folded = fold(text)
        return any(each in folded for each in forms.all)
    if not text.isascii():
        for usual, plain in _USUAL:
            text = text.replace(usual, plain)
    if text.isascii():
        if not forms.anchors:
            return False
        looked_for, text = forms.anchors, text.lower()
    else:
        looked_for, text = forms.all, fold(text)
    for each in looked_for:  # noqa: SIM110  any() takes twice as long
        if each in text:
            return True
    return False


def _first(term: str, forms: Sequence["_Form"], asked: Sequence["_Spelled"]) -> NearViolation | None:
    for form in forms:
        for element, question in enumerate(asked):
            if place := question.find(form.text):
                return NearViolation(term, form.kind, element, *place)
    return None


# --- folding ----------------------------------------------------------------------------------------------------------

_PARTING = frozenset("'`´‘’‛ʹʻʼʽ′-⁃−")
"""Apostrophes, and what looks like a hyphen and is no dash by its category."""
_USUAL = (("’", "'"), ("‘", "'"), ("–", "-"), ("—", "-"), ("\u00a0", " "), ("“", '"'), ("”", '"'))
"""What models write otherwise than ASCII most often."""


_MOST_LETTERS = 8_192  # a few hundred are in use


class _Letters(dict[int, str]):
    """By code point: its compatibility form in lower case; a space for what only parts words; "" for what is unseen.

    A text in many scripts, or of garbage, cannot fill the memory: what is known of too many is forgotten.
    """

    def __missing__(self, code: int) -> str:
        if len(self) >= _MOST_LETTERS:
            self.clear()
        character = chr(code)
        self[code] = folded = "" if _is_unseen(character) else _decomposed(character)
        return folded


def _decomposed(character: str) -> str:
    if character in _PARTING or character.isspace() or unicodedata.category(character) == "Pd":
        return " "
    return unicodedata.normalize("NFKD", character).casefold()


def _is_unseen(character: str) -> bool:
    """Tell whether a character is not drawn, such as a soft hyphen or a zero-width space."""
    is_selector = unicodedata.name(character, "").startswith(("VARIATION SELECTOR", "COMBINING GRAPHEME JOINER"))
    return is_selector or unicodedata.category(character) == "Cf"


_letters = _Letters()


def fold(text: str) -> str:
    """Give a text without letter case, Unicode forms, unseen characters and the signs of Markdown's emphasis.

    White space, hyphens and apostrophes, one or several, are one space; there is none at the ends.
    """
    plain = _EMPHASIS.sub(_kept, text) if _may_be_emphasised(text) else text
    return " ".join(plain.translate(_letters).split())


_EMPHASIS = re.compile(r"[*_]+")


def _may_be_emphasised(text: str) -> bool:
    return "*" in text or "_" in text


def _kept(signs: re.Match[str]) -> str:
    """Give what is left of asterisks and underscores: nothing of those that Markdown takes for emphasis.

    Between spaces they are no emphasis, nor are underscores within a word.
    """
    start, end = signs.span()
    before, after = signs.string[max(0, start - 1) : start], signs.string[end : end + 1]
    is_alone = before in _EDGES and after in _EDGES
    is_within = before.isalnum() and after.isalnum() and "_" in signs[0]
    return signs[0] if is_alone or is_within else ""


class _Spelled:
    """A question and its folded form, with the place of each letter of it."""

    def __init__(self, question: str) -> None:
        letters, places = [" "], [0]
        dropped = {
            place for signs in _EMPHASIS.finditer(question) if not _kept(signs) for place in range(*signs.span())
        }
        for place, character in enumerate(question):
            if place in dropped:
                continue
            for letter in _letters[ord(character)]:
                if letter != " " or letters[-1] != " ":
                    letters.append(letter)
                    places.append(place)
        self._folded, self._places = "".join((*letters, " ")), places

    def find(self, form: str) -> tuple[int, int] | None:
        """Give the first place of a folded term that begins and ends at edges of words."""
        at = self._folded.find(form)
        while at >= 0:
            end = at + len(form)
            if not (self._is_inside_word(at) or self._is_inside_word(end)):
                return self._places[at], self._places[end - 1] + 1
            at = self._folded.find(form, at + 1)
        return None

    def _is_inside_word(self, at: int) -> bool:
        return _is_of_word(self._folded[at - 1]) and _is_of_word(self._folded[at])


def _is_of_word(character: str) -> bool:
    return is_letter_of_spaced_word(character) or unicodedata.combining(character) > 0


# --- the forms of a term ----------------------------------------------------------------------------------------------


class _Form(NamedTuple):
    """A folded form of a term, and what a question that has it is."""

    text: str
    kind: NearKind


class _Forms(NamedTuple):
    """The folded forms of the terms of a list, each as it is written first.

    In a text of ASCII, a single plain word cannot be spelled otherwise. `anchors` has a word of every other form.
    """

    by_term: dict[str, list[_Form]]
    all: list[str]
    anchors: list[str]


@lru_cache(maxsize=1024)  # the lists of most test cases are the same; 32 KiB for one of eight terms
def _forms_of(terms: tuple[str, ...]) -> _Forms:
    by_term = {term: _forms(fold(term)) for term in terms}
    forms = [*dict.fromkeys(form.text for own in by_term.values() for form in own)]
    further = (
        form.text
        for term, own in by_term.items()
        for at, form in enumerate(own)
        if at or " " in form.text or form.text != term.lower()
    )
    return _Forms(by_term, forms, [*dict.fromkeys(max(form.split(), key=len) for form in further)])


def _forms(folded: str) -> list[_Form]:
    """Give the forms of a folded term, each once: as it is, with other contractions, in other words."""
    found: dict[str, NearKind] = {folded: "spelling"}
    found |= dict.fromkeys(_contracted(folded), "spelling")
    for form in islice(_in_other_words(folded), _MOST_FORMS):
        found.setdefault(form, "synonym")
    return [_Form(text, kind) for text, kind in found.items() if text]


_Pairs = Sequence[tuple[str, str]]
_VERBS_OF_DENIALS: Final = ("do", "does", "did", "is", "are", "was", "were", "has", "have", "had", "would", "could",
                            "should", "must", "need")  # fmt: skip
_VERBS: Final[_Pairs] = ((" have ", " ve "), (" are ", " re "), (" will ", " ll "))
_DENIALS: Final[_Pairs] = (
    *((" can not ", " can t "), (" will not ", " won t "), (" shall not ", " shan t ")),
    *((f" {verb} not ", f" {verb}n t ") for verb in _VERBS_OF_DENIALS),
)
"""Words in full, and as they are contracted; in folded texts, where an apostrophe is a space."""


def _contracted(folded: str) -> Iterator[str]:
    """Give a folded term with its contractions undone, and with those that there can be: "should ve" is "should've"."""
    full = f" {folded} ".replace(" cannot ", " can not ")
    full = _replaced(full, [pair[::-1] for pair in (*_DENIALS, *_VERBS)])
    denied = _replaced(full, _DENIALS)
    together = full.replace(" can not ", " cannot ")
    for each in (full, together, denied, _replaced(full, _VERBS), _replaced(denied, _VERBS)):
        yield each.strip()


def _replaced(text: str, pairs: _Pairs) -> str:
    for one, other in pairs:
        text = text.replace(one, other)
    return text


def _in_other_words(folded: str) -> Iterator[str]:
    """Give a folded term with each phrase of the lexicon in it replaced by what means the same."""
    words = folded.split()
    if len(words) > _MOST_WORDS:
        return
    for begin in range(len(words)):
        for end in range(begin + 1, len(words) + 1):
            for other in _same().get(" ".join(words[begin:end]), ()):
                yield " ".join((*words[:begin], other, *words[end:]))


@cache
def _same() -> dict[str, list[str]]:
    """Give, by a folded phrase, all that the lexicon calls the same.

    A worker, which scores, loads the words but nothing of the diagnosis, which explains.
    """
    groups: dict[str, list[str]] = {}
    for line in (get_data("safe_core", "diagnosis/lexicon/same.tsv") or b"").decode().splitlines():
        if line.strip() and not line.startswith("#"):
            reading, *others = line.split("\t")
            groups.setdefault(reading, [fold(reading)]).extend(map(fold, others))
    return {phrase: [each for each in group if each != phrase] for group in groups.values() for phrase in group}
