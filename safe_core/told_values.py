"""The values and sides that a narrative tells, and which values of an output they support.

contract.md, "Unsupported values". Each value is read in every way that a clinician may read it: "12/03/2020" in both
orders, "6/12" as six months, "a third" as 33 %. What supports a value in none of these ways, but only if both are said
of the same thing, is at the end: "GCS 14" and "14/15".
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from safe_core.diagnosis import relations
from safe_core.diagnosis.conversions import is_converted, is_temperature
from safe_core.diagnosis.numbers_in_text import Value, same, values
from safe_core.diagnosis.reading import MAX_WORDS, read
from safe_core.diagnosis.units import units_of
from safe_core.diagnosis.words import stem
from safe_core.doses import Drugs, drugs_of
from safe_core.sides import Side, sides_in

UnsupportedKind = Literal["nowhere", "of_something_else"]


class Placed(NamedTuple):
    """A value and the text in which it is."""

    value: Value
    text: str

    @property
    def around(self) -> frozenset[str]:
        """The keys of what is said around it."""
        return _around(self.text, self.value.start, self.value.end)

    @property
    def counts(self) -> bool:
        """Whether a word follows at once that it may count: "seven grandchildren"."""
        following = _COUNTED.match(self.text, self.value.end)
        return following is not None and (stem(following[0].strip()),) not in relations.weak()


_HEAT: Final = frozenset(map(relations.key_of, ("temperature", "fever", "T", "Tmax", "hot")))
_COUNTED: Final = re.compile(r"\s(?!(?:left|right|bilat)|[a-z]{1,3}\b)[a-z]+")
_BEFORE, _BEHIND = 60, 30  # characters around a value that may say what it is of
_SENTENCE_END: Final = re.compile(r"[.?!]\s|\n|\]")


def _around(text: str, start: int, end: int) -> frozenset[str]:
    head, tail = text[max(0, start - _BEFORE) : start], text[end : end + _BEHIND]
    head = head[max((found.end() for found in _SENTENCE_END.finditer(head)), default=0) :]
    tail = _SENTENCE_END.split(tail, maxsplit=1)[0]
    facts = (fact for part in (head, tail) for clause in read(part).clauses for fact in clause.facts)
    keys = frozenset(fact.key for fact in facts if fact.tells and fact.value is None)
    return keys | _HEAT if keys & _HEAT else keys


# --- readings ---------------------------------------------------------------------------------------------------------

_SEEN: Final = frozenset(map(relations.key_of, ("vision", "acuity", "eye", "visual", "VA", "Snellen")))
_PARTS_OF: Final = {"of 7": ("day", 7, 86_400), "of 12": ("month", 12, 2_629_800)}
"""British: 2/7 is two days, 6/12 six months, but for an eye."""


def _readings(placed: Placed) -> Iterator[Value]:
    """Give a value in every way that it may be read."""
    value = placed.value._replace(bound="")
    yield value._replace(other="")
    if value.other:
        yield value._replace(canonical=value.other, other="")
    if value.kind == "ratio" and value.scale in _PARTS_OF and not _SEEN & placed.around:
        number = value.canonical.partition("/")[0]
        if number.isdecimal():
            size = _PARTS_OF[value.scale][2]
            yield value._replace(kind="quantity", scale="duration", canonical=str(int(number) * size), amount=number)
    if value.kind == "number" and not any(map(str.isdigit, placed.text[value.start : value.end])):
        yield from (
            value._replace(kind="quantity", scale="share", canonical=each, amount=each) for each in _share(value)
        )


def _share(value: Value) -> frozenset[str]:
    """Give a part as a percentage, cut off and rounded: "two thirds" is 66 % and 67 %."""
    share = Fraction(value.amount) * 100 if ".." not in value.amount else Fraction(0)
    return (
        frozenset(map(str, (int(share), round(share), Fraction(round(share * 10), 10))))
        if 0 < share < 100
        else frozenset()
    )


def _sizes(value: Value) -> list[Fraction]:
    return sorted(map(Fraction, value.canonical.split(" x ")))


def _ends(value: Value) -> Iterator[tuple[str, str]]:
    """Give what the narrative must have of a value, by scale: both ends of a range, dimensions in any order."""
    if value.kind == "dimensions":
        yield value.scale, " x ".join(map(str, _sizes(value)))
        return
    yield from ((_scale(value), end) for end in value.canonical.split(".."))


def _scale(value: Value) -> str:
    return "duration" if value.scale == "age" else value.scale


# --- what is told -----------------------------------------------------------------------------------------------------

_MEASURED: Final = "litre|liter|gram|kilo|kilogram|pound|stone|mile|inch"
_WORDINGS: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    (re.compile(r"\b(?:days|nights|mornings|evenings)(?=\s(?:per|a|each)\sweek)", re.IGNORECASE), "times"),
    (re.compile(r"\b(?:a\s)?couple(?:\sof)?(?=\s\w)", re.IGNORECASE), "two"),
    (re.compile(r"(?<!ce\s)(?<!times\s)\ban?(?=\s(?:minute|hour|day|week|month|year)\b)", re.IGNORECASE), "one"),
    (re.compile(rf"(?<!half\s)\ban?(?=\s(?:{_MEASURED})\b)", re.IGNORECASE), "one"),
    (re.compile(r"\bhalf(?=\s(?:of|the|his|her|my|your|their)\b)", re.IGNORECASE), "50%"),
    (re.compile(r"(?<=\bhundred)s\b", re.IGNORECASE), ""),
    (
        re.compile(r"\bE\s?([1-4])[\s,]*V\s?([1-5])[\s,]*M\s?([1-6])\b"),
        lambda parts: f"GCS {sum(map(int, parts.groups()))}",
    ),
)
"""Other wordings of how many and how often, one after the other."""
_OPEN_KINDS: Final = frozenset(("number", "count", "grade", "ratio"))
_SPOKEN_WITH_UNITS: Final = frozenset(("duration", "age", "times a day", "month"))
"""What is measured in units that nobody leaves out, so that a bare number is something else."""
_MAXIMA: Final = frozenset(f"of {most}" for most in (4, 5, 6, 10, 15, 21, 27, 30, 42, 100))
"""The highest numbers of usual scores (power, GCS, MMSE, PHQ-9 ...), which need not be said."""
_MOST_VALUES: Final = 1_000  # that are compared one by one; no real narrative comes near
_BOTH: Final = re.compile(r"\bboth\b(?:\s(?:of\s)?(?:(?:the|her|his|my|your|their)\s)?([a-z]+))?", re.IGNORECASE)
_FARTHEST: Final = 1_000  # times larger
_BODIES: Final = {"mass": 10**8, "length": 500}  # micrograms, millimeters
"""From here on, a mass is a body's weight and no dose, and a length is a body's height and no finding's size."""


class Told(NamedTuple):
    """What a narrative says: its values, what supports others, its sides with their words, its drugs with their places.

    `ends` are the values of each scale, of a range both ends; `alike` has the values of an amount, or all dates.
    """

    text: str
    values: Sequence[Value]
    placed: Sequence[Placed]
    ends: frozenset[tuple[str, str]]
    alike: Mapping[str, Sequence[Value]]
    by_scale: Mapping[str, Sequence[Value]]
    bare: frozenset[Fraction]
    numbers: frozenset[Fraction]
    sides: frozenset[tuple[str, str]]
    drugs: Drugs

    def has(self, claim: Placed) -> bool:
        """Tell whether the narrative has a value, in any style."""
        return any(map(self._has, _readings(claim))) or self._has_of_same_thing(claim)

    def _has(self, claim: Value) -> bool:
        if all(end in self.ends for end in _ends(claim)):
            return True
        if claim.kind == "dimensions":
            return self._has_sizes(claim)
        if any(is_converted(claim, each) for each in self.by_scale.get(_scale(claim), ())):
            return True
        if any(same(claim, each) or _is_part_of_date(claim, each) for each in self.alike.get(_alike(claim), ())):
            return True
        numbers = _numbers(claim)
        found = self.numbers if _is_open(claim) else frozenset() if claim.scale in _SPOKEN_WITH_UNITS else self.bare
        return bool(numbers) and numbers <= found

    def _has_sizes(self, claim: Value) -> bool:
        """Tell whether each of some dimensions is there, or all of them without their unit."""
        sizes = _sizes(claim)
        if all(("length", str(size)) in self.ends for size in sizes):
            return True
        open_ones = self.by_scale.get(f"{len(sizes)} by bare", ())
        return any([size * unit for size in _sizes(each)] == sizes for each in open_ones for unit in (1, 10))

    def _has_of_same_thing(self, claim: Placed) -> bool:
        """Tell whether the narrative has what a value may stand for, of the same thing."""
        fits = _stands_for(claim)
        return fits is not None and any(fits(each) and not claim.around.isdisjoint(each.around) for each in self.placed)

    def gives_to_another(self, claim: Value, of_claims: Drugs, drug: str) -> bool:
        """Tell whether a dose is that of another drug.

        Either it is never near its own drug, and always near another; or it is another's wherever it is, beyond doubt,
        while its own has a dose of its own.
        """
        bare = claim._replace(bound="")
        places = [each for each in self.values if same(bare, each)]
        if not places or claim.kind != "quantity":
            return False
        beside = [self.drugs.beside(each.start) for each in places]
        if drug and all(each and drug not in each for each in beside):
            return True
        owner = of_claims.owner(claim)
        owners = {self.drugs.owner(each) for each in places}
        return bool(owner) and not owners & {"", owner} and self._has_dose(owner, claim.scale)

    def _has_dose(self, drug: str, scale: str) -> bool:
        return any(each.scale == scale and self.drugs.owner(each) == drug for each in self.values)

    def lacks_side(self, claim: Side) -> UnsupportedKind | None:
        """Say how the narrative lacks a side: it has none such, or only the other one for the same thing."""
        has = {side for side, _ in self.sides}
        if claim.side == "both":
            return None if "both" in has or {"left", "right"} <= has else "nowhere"
        if not {claim.side, "both"} & has:
            return "nowhere"
        own = {side for side, noun in self.sides if noun == claim.noun}
        is_said_of_something = (claim.side, "") not in self.sides  # "on the left one"
        return "of_something_else" if own and is_said_of_something and not {claim.side, "both"} & own else None

    def nearest(self, claim: Value) -> str | None:
        """Give the narrative's value of the same sort that is nearest in size, of the same unit if there is one."""
        rivals = [
            (not _is_one_unit(each, claim), off, -each.start, each)
            for each in self.values
            if each.scale == claim.scale != "bare" and (off := _apart(each, claim)) is not None and off <= _FARTHEST
        ]
        best = min(rivals, key=lambda each: each[:3])[3] if rivals else None
        return self.text[best.start : best.end] if best else None


@lru_cache(maxsize=16)  # several outputs are made from one narrative
def told_by(narrative: str) -> Told:
    """Read what a narrative tells."""
    facts = [unit for unit in units_of(narrative, MAX_WORDS) if unit.key]
    found = [fact.value._replace(bound="") for fact in facts if fact.value is not None]
    wording = narrative
    for pattern, instead in _WORDINGS:
        wording = pattern.sub(instead, wording)
    placed = [Placed(each, narrative) for each in found]
    placed += [Placed(each, wording) for each in values(wording) if wording != narrative]
    every = {reading: None for each in placed for reading in _readings(each)}
    return Told(
        narrative,
        found[:_MOST_VALUES],
        placed[: 2 * _MOST_VALUES],
        frozenset(end for each in every for end in _told_ends(each)),
        _grouped(every, _alike),
        _grouped(every, _scale),
        frozenset(number for each in found if each.kind == "number" for number in _numbers(each)),
        frozenset(number for each in found for number in _numbers(each)),
        frozenset(
            [(side.side, side.noun) for side in sides_in(narrative, facts)]
            + [("both", relations.key_of(both[1]) if both[1] else "") for both in _BOTH.finditer(narrative)]
        ),
        drugs_of(narrative, facts),
    )


def _told_ends(value: Value) -> Iterator[tuple[str, str]]:
    yield from _ends(value)
    if value.kind == "dimensions":
        yield from (("length", str(size)) for size in _sizes(value) if "length" in value.scale)


def _grouped(every: Mapping[Value, None], by: Callable[[Value], str]) -> Mapping[str, Sequence[Value]]:
    """Group values, each once wherever it is."""
    found: dict[str, dict[Value, None]] = {}
    for each in every:
        found.setdefault(by(each), {})[each._replace(start=0, end=0)] = None
    return {key: [*of_key][:_MOST_VALUES] for key, of_key in found.items()}


def _alike(value: Value) -> str:
    """Give what values have in common that may be one though they differ in scale."""
    return value.kind if value.kind in {"date", "time"} else value.amount


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


_Fits = Callable[[Placed], bool]


def _stands_for(claim: Placed) -> _Fits | None:
    """Give which values support a claim if they are of the same thing; None where nothing more can."""
    value = claim.value
    if value.kind == "ratio" and value.scale in _MAXIMA:
        return _is_number(value.canonical.partition("/")[0])
    if ".." in value.canonical or value.kind not in {"number", "quantity"}:
        return None
    number = Fraction(value.canonical)
    if value.scale == "share":
        return _is_number(str(number / 100))
    if value.scale == "temperature":
        return lambda each: each.value.kind == "number" and _is_heat(each.value, number)
    return _of_bare(number, is_heat=bool(_HEAT & claim.around)) if value.scale == "bare" else None


def _is_number(number: str) -> _Fits:
    return lambda each: each.value.kind in {"number", "grade"} and each.value.canonical == number and not each.counts


def _of_bare(number: Fraction, *, is_heat: bool) -> _Fits:
    if is_heat:
        return lambda each: each.value.scale == "temperature" and is_temperature(number, Fraction(each.value.canonical))
    return lambda each: each.value.scale == "share" and each.value.canonical == str(number * 100)


def _is_heat(number: Value, degrees: Fraction) -> bool:
    return ".." not in number.canonical and is_temperature(Fraction(number.canonical), degrees)


def _is_one_unit(one: Value, other: Value) -> bool:
    return one.kind == other.kind == "quantity" and _size(one) == _size(other)


def _size(value: Value) -> Fraction:
    amount, canonical = (Fraction(re.split(r"\.\.", each)[0]) for each in (value.amount, value.canonical))
    return canonical / amount if amount else Fraction(0)


_WEIGHTS: Final = {"date": (365, 30, 1), "time": (60, 1), "ratio": (1, 1)}


def _apart(one: Value, other: Value) -> Fraction | None:
    """Give how far apart two values of one scale are: how many times larger, or for what has parts the difference."""
    if one.kind in _WEIGHTS:
        parts = zip(*(re.split("[-/:]", each.canonical) for each in (one, other)), _WEIGHTS[one.kind], strict=False)
        return sum(
            (
                abs(Fraction(left) - Fraction(right)) * weight
                for left, right, weight in parts
                if (left + right).isdecimal()
            ),
            Fraction(0),
        ) / (365 * _FARTHEST)
    small, large = sorted(
        max(map(Fraction, _WRITTEN.findall(each.canonical)), default=Fraction(0)) for each in (one, other)
    )
    is_other_family = small < _BODIES.get(one.scale, 0) <= large
    return large / small if small > 0 and not is_other_family else None


_WRITTEN: Final = re.compile(r"\d+(?:/[1-9]\d*)?")
