"""Values of an output that its narrative does not have: did it make something up? (contract.md, "Unsupported values")

The diagnosis reads numbers. A value that the narrative has in any style, in words or in another unit is supported.
What is in doubt is no claim, or supported: nobody reads a list of false alarms.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any, Final, Literal, NamedTuple, get_args

from safe_core.diagnosis import relations
from safe_core.diagnosis.diagnosis_types import Passage
from safe_core.diagnosis.numbers_in_text import Value, same, values
from safe_core.diagnosis.output_texts import OutputText, texts_of
from safe_core.diagnosis.reading import MAX_WORDS, Clause, read
from safe_core.diagnosis.words import stem, words
from safe_core.outputs import Output

UnsupportedKind = Literal["nowhere", "of_something_else"]
UNSUPPORTED_KINDS: tuple[UnsupportedKind, ...] = get_args(UnsupportedKind)
"""The narrative does not have the value at all; or it has it, but says it of another thing."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A value that the narrative does not have; `nearest` is the narrative's value of the same sort, if it has any."""

    kind: UnsupportedKind
    text: str
    passage: Passage
    nearest: str | None


def unsupported_document(value: Unsupported) -> dict[str, Any]:
    """Give an unsupported value as a report shows it: the value alone, and its place."""
    at = value.passage
    place = {"field": at.field, "element": at.element, "start": at.start, "end": at.end}
    return {"kind": value.kind, "text": value.text, **place, "nearest": value.nearest}


def unsupported_values(output: Output, narrative: str | None) -> tuple[Unsupported, ...]:
    """Give the values of signals and summary that the narrative does not have; nothing if there is no narrative.

    Questions claim nothing. They are in the order of the output.
    """
    if not narrative or not narrative.strip() or len(narrative) > _LONGEST:
        return ()
    told = _told(narrative)
    texts = [text for text in texts_of(output) if text.field != "followup_questions" and len(text.text) <= _LONGEST]
    return tuple(islice((found for text in texts for found in _of_text(text, told)), _MOST_TOLD))


_LONGEST: Final = (
    300_000  # characters of a text; nothing is said of a longer one, which no model is told and none writes
)
_MOST_TOLD: Final = 500  # of an output


def _of_text(text: OutputText, told: "_Told") -> Iterator[Unsupported]:
    """Give those of one text; of claims that overlap, the first."""
    clauses = read(text.text).clauses
    end = 0
    claims: list[Value | _Side] = [*_claims(text.text), *_sides(text.text, clauses)]
    for claim in sorted(claims, key=lambda each: each.start):
        if claim.start >= end and (kind := _judged(claim, clauses, told)):
            end = claim.end
            words = text.text[claim.start : claim.end]
            words = words[:-1] if words.find(".") == len(words) - 1 else words  # of the sentence
            passage = text.passage(claim.start, claim.start + len(words))
            yield Unsupported(kind, words, passage, told.nearest(claim) if isinstance(claim, Value) else None)


def _judged(claim: "Value | _Side", clauses: Sequence[Clause], told: "_Told") -> UnsupportedKind | None:
    if isinstance(claim, _Side):
        return told.lacks_side(claim)
    if not told.has(claim._replace(bound="")):
        return "nowhere"
    return "of_something_else" if told.gives_to_another(claim, _drug_of(claim, clauses)) else None


# --- what is claimed --------------------------------------------------------------------------------------------------


class _Side(NamedTuple):
    """A side, and the word that follows: "" if none does. It is "both" in whatever word."""

    start: int
    end: int
    side: str
    noun: str


_LISTED: Final = re.compile(r"(?:^|[\n.:;)\]]\s*|\s{2,})[\[(#]?\Z")
_LIST_ENDS: Final = re.compile(r"[.)\]:](?=\s|\[|\(|\Z|[),.;])")
"""Before and behind the number of a list or a section."""
_HALF_OF_DAY: Final = re.compile(r"\s?[ap]\.?m\b", re.IGNORECASE)
_GLUED: Final = re.compile(r"[^\W\d_]|[\u00b1\u2260_]")
_GARBLED: Final = re.compile(r"[^\x00-\u017f\u2010-\u2044\u20ac\u2212\u2248\u2264\u2265\u03bc]")
"""Signs that no note has around a number."""
_NOT_CLAIMED: Final = frozenset(("ordinal", "dimensions"))
_SPOKEN: Final = frozenset(("one", "a", "an", "once", "first", "two"))
"""Numbers that more often only count ("one of those")."""
_AROUND: Final = 12  # characters on either side of a number that are looked at


def _claims(text: str) -> Iterator[Value]:
    return (value for value in values(text) if _is_claim(text, value))


def _is_claim(text: str, value: Value) -> bool:
    """Tell whether a value says something: not the number of a list, a citation, a name, nor what is garbled."""
    words = text[value.start : value.end]
    before, after = text[max(0, value.start - _AROUND) : value.start], text[value.end : value.end + _AROUND]
    is_name = words.isalpha() and words.isupper() and "-" in before[-1:] + after[:1]  # "CN II-XII"
    if value.kind in _NOT_CLAIMED or is_name:
        return False
    if value.scale != "bare":
        return True
    is_listed = len(words) < 3 and words.isdecimal() and _LISTED.search(before) and _LIST_ENDS.match(after)
    is_glued = _GLUED.match(after) or _GLUED.match(before[-1:]) or _GARBLED.search(before[-4:] + words + after[:4])
    return not (is_listed or is_glued or before[-1:] == "[" or _HALF_OF_DAY.match(after) or words.lower() in _SPOKEN)


_SIDES: Final = {"left": "left", "right": "right", "bilater": "both", "bilateral": "both"}


def _sides(text: str, clauses: Sequence[Clause]) -> Iterator[_Side]:
    """Give the sides that are said of something; "both" more often joins two things."""
    for clause in clauses:
        for fact, following in zip(clause.facts, (*clause.facts[1:], None), strict=False):
            side = _SIDES.get(fact.key, "")
            if side and not text[fact.start : fact.end].lower().startswith("both"):
                is_next = following is not None and following.tells and following.start - fact.end <= 1
                noun = following.key if following is not None and is_next and following.value is None else ""
                if side == "both" or noun:
                    yield _Side(fact.start, fact.end, side, noun)


def _drug_of(claim: Value, clauses: Sequence[Clause]) -> str:
    """Give the key of the drug whose dose a claim is: the last one before it in its clause; "" if there is none."""
    clause = next((each for each in clauses if each.start <= claim.start < each.end), None)
    named = [fact.key for fact in clause.facts if fact.start < claim.start] if clause else []
    return next((key for key in reversed(named) if key in relations.drugs()), "")


# --- what is told -----------------------------------------------------------------------------------------------------

_WORDINGS: Final = (
    (re.compile(r"\b(?:days|nights|mornings|evenings)(?=\s(?:per|a|each)\sweek)", re.IGNORECASE), "times"),
    (re.compile(r"\b(?:a\s)?couple(?:\sof)?(?=\s\w)", re.IGNORECASE), "two"),
    (re.compile(r"(?<!ce\s)(?<!times\s)\ban?(?=\s(?:minute|hour|day|week|month|year)\b)", re.IGNORECASE), "one"),
    (re.compile(r"(?<=\bhundred)s\b", re.IGNORECASE), ""),
)
"""Other wordings of how many and how often, one after the other."""
_SIDE: Final = re.compile(r"\b(left|right|both|bilateral(?:ly)?)\b(?:\s+(\w+))?", re.IGNORECASE)
_AGREEING: Final = re.compile(r"(?:\ball|\bthat(?:'s|\sis)|\babsolutely|\byou(?:'re|\sare))\s\Z", re.IGNORECASE)
_PAUSE: Final = re.compile(r"[\],.?]\s\Z")
_ELSEWHEN: Final = frozenset(("now", "here", "there", "away", "after", "before", "way"))
"""Words behind a "right" that is no side; before one, what agrees: "all right"."""


class _Told(NamedTuple):
    """What a narrative says: its values, what supports others, its sides with their words, its drugs with their places.

    `ends` are the values of each scale, of a range both ends; `alike` has the values of an amount, or all dates.
    """

    text: str
    values: Sequence[Value]
    ends: frozenset[tuple[str, str]]
    alike: Mapping[str, Sequence[Value]]
    bare: frozenset[Fraction]
    numbers: frozenset[Fraction]
    sides: frozenset[tuple[str, str]]
    drugs: Sequence[tuple[int, str]]

    def has(self, claim: Value) -> bool:
        """Tell whether the narrative has a value, in any style."""
        if all((claim.scale, end) in self.ends for end in claim.canonical.split("..")):
            return True
        if any(same(claim, each) or _is_part_of_date(claim, each) for each in self.alike.get(_alike(claim), ())):
            return True
        numbers = _numbers(claim)
        if not numbers:
            return False
        if _is_open(claim):
            return numbers <= self.numbers
        return claim.scale not in _SPOKEN_WITH_UNITS and numbers <= self.bare

    def gives_to_another(self, claim: Value, drug: str) -> bool:
        """Tell whether a dose is that of another drug: it never stands near its own, and always near another."""
        if not drug or claim.kind != "quantity":
            return False
        bare, is_given = claim._replace(bound=""), False
        for each in self.values:
            if same(bare, each):
                is_given, beside = True, self._drugs_beside(each.start)
                if drug in beside or not beside:
                    return False
        return is_given

    def _drugs_beside(self, place: int) -> set[str]:
        first = bisect_left(self.drugs, (place - 3 * _NEAR,))
        return {key for _, key in self.drugs[first : bisect_left(self.drugs, (place + _NEAR + 1,))]}

    def lacks_side(self, claim: _Side) -> UnsupportedKind | None:
        """Say how the narrative lacks a side: it has none such, or only the other one for the same thing."""
        has = {side for side, _ in self.sides}
        if claim.side == "both":
            return None if "both" in has or {"left", "right"} <= has else "nowhere"
        if not {claim.side, "both"} & has:
            return "nowhere"
        own = {side for side, noun in self.sides if noun == claim.noun}
        return "of_something_else" if own and not {claim.side, "both"} & own else None

    def nearest(self, claim: Value) -> str | None:
        """Give the narrative's value of the same sort that is nearest in size."""
        numbers = _numbers(claim)
        rivals = [each for each in self.values if each.scale == claim.scale != "bare" and _numbers(each)]
        if not numbers or not rivals:
            return None
        best = min(rivals, key=lambda each: abs(max(_numbers(each)) - max(numbers)))
        return self.text[best.start : best.end]


_NEAR: Final = 60  # characters from a dose to its drug
_SPOKEN_WITH_UNITS: Final = frozenset(("duration", "age", "times a day", "month"))
"""What is measured in units that nobody leaves out, so that a bare number is something else."""
_OPEN_KINDS: Final = frozenset(("number", "count", "grade", "ratio"))


@lru_cache(maxsize=64)  # several outputs are made from one narrative
def _told(narrative: str) -> _Told:
    found = [each._replace(bound="") for each in values(narrative)]
    wording = narrative
    for pattern, instead in _WORDINGS:
        wording = pattern.sub(instead, wording)
    every = [*found, *(each._replace(bound="") for each in values(wording) if wording != narrative)]
    alike: dict[str, dict[tuple[str, str, str], Value]] = {}
    for each in every:
        alike.setdefault(_alike(each), {})[each.kind, each.scale, each.canonical] = each
    return _Told(
        narrative,
        found[:_MOST_VALUES],
        frozenset((each.scale, end) for each in every for end in each.canonical.split("..")),
        {key: [*of_key.values()][:_MOST_VALUES] for key, of_key in alike.items()},
        frozenset(number for each in found if each.kind == "number" for number in _numbers(each)),
        frozenset(number for each in found for number in _numbers(each)),
        frozenset(_sides_told(narrative)),
        [*_drugs_told(narrative)],
    )


_MOST_VALUES: Final = 1_000  # that are compared one by one; no real narrative comes near


def _alike(value: Value) -> str:
    """Give what values have in common that may be one though they differ in scale."""
    return value.kind if value.kind in {"date", "time"} else value.amount


def _drugs_told(narrative: str) -> Iterator[tuple[int, str]]:
    for word in words(narrative, MAX_WORDS):
        own = stem(word.folded)
        reading = relations.same().get((own,))
        key = reading.keys[-1] if reading else own
        if key in relations.drugs():
            yield word.start, key


def _sides_told(narrative: str) -> Iterator[tuple[str, str]]:
    """Give the sides of a narrative, each with the key of the word that follows; no "right" that agrees."""
    for match in _SIDE.finditer(narrative):
        side, noun = match[1].lower(), (match[2] or "").lower()
        if not (side == "right" and _agrees(narrative[max(0, match.start() - _AROUND) : match.start()], noun)):
            yield side if side in {"left", "right"} else "both", relations.key_of(noun) if noun else ""


def _agrees(before: str, noun: str) -> bool:
    """Tell whether a "right" is no side: behind a pause ("Right, so") it is one only of a word of content."""
    key = (stem(noun),)
    is_of_content = bool(noun) and key not in relations.weak() and key not in relations.ends()
    is_answer = _PAUSE.search(before) and not is_of_content
    return bool(noun in _ELSEWHEN or _AGREEING.search(before) or is_answer)


def _is_open(value: Value) -> bool:
    """Tell whether a value does not say in which unit it is."""
    return value.kind in _OPEN_KINDS or value.scale in {"bare", "degree", "temperature"}


def _is_part_of_date(claim: Value, told: Value) -> bool:
    """Tell whether a date says no more than another one, and nothing else."""
    if claim.kind == told.kind == "date":
        pairs = zip(claim.canonical.split("-"), told.canonical.split("-"), strict=False)
        said = [one == other for one, other in pairs if "?" not in {one, other}]
        return len(said) > 1 and all(said)  # a year alone, or a day without its month, is too little
    return False


@lru_cache(maxsize=8192)
def _numbers(value: Value) -> frozenset[Fraction]:
    """Give the numbers that a value is made of, as they are written."""
    if value.kind in {"ratio", "date", "time"}:
        return frozenset(map(Fraction, re.findall(r"\d+(?:\.\d+)?", value.canonical)))
    return frozenset(Fraction(each) for each in re.findall(r"\d+(?:/[1-9]\d*)?", value.amount))
