"""The values and sides that a narrative tells, and which values of an output they support.

contract.md, "Unsupported values". Each value is read in every way that a clinician may read it: "12/03/2020" in both
orders, "6/12" as six months, "a third" as 33 %. What supports a value in none of these ways, but only if both are said
of the same thing, is at the end: "GCS 14" and "14/15".
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations, islice, takewhile
from typing import Final, Literal, NamedTuple, TypeVar

from safe_core.diagnosis import relations
from safe_core.diagnosis.conversions import in_celsius, is_converted, is_temperature
from safe_core.diagnosis.numbers_in_text import Value, same, values
from safe_core.diagnosis.reading import MAX_WORDS, read
from safe_core.diagnosis.units import units_of
from safe_core.diagnosis.words import stem
from safe_core.doses import Drugs, drugs_of
from safe_core.nearest_values import NearestValues
from safe_core.sides import Side, sides_in

_T = TypeVar("_T")
UnsupportedKind = Literal["nowhere", "of_something_else"]


@dataclass(frozen=True)
class Placed:
    """A value and the text in which it is."""

    value: Value
    text: str

    @cached_property
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


class Dose(NamedTuple):
    """A value and whose it may be: the drugs near each of its places, and the drug that it beyond doubt belongs to."""

    value: Value
    beside: frozenset[frozenset[str]]
    owners: frozenset[str]


_Key = tuple[str, str]
_Sized = Sequence[tuple[float, Value]]
_Degrees = Sequence[tuple[float, _Key]]
_MOST_DEGREES_OFF: Final = 0.6
"""How far apart in degrees Celsius two values may be that are one, rounded to whole ones: a little more."""


class Told(NamedTuple):
    """What a narrative says: its values, what supports others, its sides with their words, its doses.

    A text may be full of values, so each is found by what it has in common with a claim, and never by comparing all.
    `ends` are the values of each scale, of a range both ends; `alike` the values that may be one in two scales;
    `sized` those that can be converted, by size; `degrees` those that may be temperatures, in Celsius; `placed`
    those that may stand for another of the same thing; `doses` those of a size or an amount; `dosed` the drugs with
    the scales of their doses.
    """

    text: str
    ends: frozenset[_Key]
    alike: Mapping[str, Sequence[Value]]
    sized: Mapping[str, _Sized]
    open_sizes: Mapping[str, Sequence[Value]]
    degrees: Mapping[str, _Degrees]
    placed: Mapping[_Key, Sequence[Placed]]
    bare: frozenset[Fraction]
    numbers: frozenset[Fraction]
    sides: frozenset[_Key]
    doses: Mapping[_Key, Sequence[Dose]]
    dosed: frozenset[_Key]
    nearest: NearestValues

    def has(self, claim: Placed) -> bool:
        """Tell whether the narrative has a value, in any style."""
        return any(map(self._has, _readings(claim))) or self._has_of_same_thing(claim)

    def _has(self, claim: Value) -> bool:
        if all(end in self.ends for end in _ends(claim)):
            return True
        if claim.kind == "dimensions":
            return self._has_sizes(claim)
        if any(is_converted(claim, each) for each in _of_about_one_size(claim, self.sized.get(_scale(claim), ()))):
            return True
        alike = (each for key in _keys_of(claim) for each in self.alike.get(key, ()))
        if any(same(claim, each) or _is_part_of_date(claim, each) for each in alike):
            return True
        numbers = _numbers(claim)
        found = self.numbers if _is_open(claim) else frozenset() if claim.scale in _SPOKEN_WITH_UNITS else self.bare
        return bool(numbers) and numbers <= found

    def _has_sizes(self, claim: Value) -> bool:
        """Tell whether each of some dimensions is there, or all of them without their unit."""
        sizes = _sizes(claim)
        if all(("length", str(size)) in self.ends for size in sizes):
            return True
        open_ones = self.open_sizes.get(f"{len(sizes)} by bare", ())
        return any([size * unit for size in _sizes(each)] == sizes for each in open_ones for unit in (1, 10))

    def _has_of_same_thing(self, claim: Placed) -> bool:
        """Tell whether the narrative has what a value may stand for, of the same thing."""
        places = (each for key in self._keys_of_others(claim) for each in self.placed.get(key, ()))
        return any(not claim.around.isdisjoint(each.around) for each in places)

    def _keys_of_others(self, claim: Placed) -> Iterable[_Key]:
        """Give the values that support a claim if they are of the same thing."""
        value = claim.value
        if value.kind == "ratio" and value.scale in _MAXIMA:
            return [("number", value.canonical.partition("/")[0])]
        is_single = ".." not in value.canonical and value.kind in {"number", "quantity"}
        if not (is_single and value.scale in {"share", "temperature", "bare"}):
            return ()
        number = Fraction(value.canonical)
        if value.scale == "temperature":
            return (key for key in self._about("heat", number) if is_temperature(Fraction(key[1]), number))
        if value.scale == "bare" and _HEAT & claim.around:
            told = self._about("temperature", in_celsius(number))
            return (key for key in told if is_temperature(number, Fraction(key[1])))
        return [("number", str(number / 100)) if value.scale == "share" else ("share", str(number * 100))]

    def _about(self, sort: str, degrees: Fraction) -> Iterator[_Key]:
        """Give the values of a sort that are about as many degrees Celsius."""
        return _within(self.degrees[sort], float(degrees), _MOST_DEGREES_OFF)

    def gives_to_another(self, claim: Value, of_claims: Drugs, drug: str) -> bool:
        """Tell whether a dose is that of another drug.

        Either it is never near its own drug, and always near another; or it is another's wherever it is, beyond doubt,
        while its own has a dose of its own.
        """
        if claim.kind != "quantity":
            return False
        bare = claim._replace(bound="")
        doses = [each for key in _dose_keys(bare) for each in self.doses.get(key, ()) if same(bare, each.value)]
        beside = {near for each in doses for near in each.beside}
        if drug and beside and all(near and drug not in near for near in beside):
            return True
        owner = of_claims.owner(claim)
        owners = {each for dose in doses for each in dose.owners}
        return bool(owner and owners) and not owners & {"", owner} and (owner, claim.scale) in self.dosed

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
    every = {_anywhere(reading): None for each in placed for reading in _readings(each)}
    by_scale = _grouped((_scale(each), each) for each in every)
    may_stand = _that_may_stand_for_others(placed)
    drugs = drugs_of(narrative, facts)
    return Told(
        narrative,
        frozenset(end for each in every for end in _told_ends(each)),
        _grouped((key, each) for each in every for key in _keys_of(each)),
        {scale: _by_size(own) for scale, own in by_scale.items() if scale in _CONVERTED},
        {scale: own for scale, own in by_scale.items() if scale.endswith(" by bare")},
        _by_degrees(may_stand),
        may_stand,
        frozenset(number for each in found if each.kind == "number" for number in _numbers(each)),
        frozenset(number for each in found for number in _numbers(each)),
        frozenset(
            [(side.side, side.noun) for side in sides_in(narrative, facts)]
            + [("both", relations.key_of(both[1]) if both[1] else "") for both in _BOTH.finditer(narrative)]
        ),
        _doses(found, drugs),
        frozenset((drugs.owner(each), each.scale) for each in found),
        NearestValues(narrative, found),
    )


def _anywhere(value: Value) -> Value:
    return value._replace(start=0, end=0)


def _told_ends(value: Value) -> Iterator[tuple[str, str]]:
    yield from _ends(value)
    if value.kind == "dimensions":
        yield from (("length", str(size)) for size in _sizes(value) if "length" in value.scale)


def _grouped(every: Iterable[tuple[str, Value]]) -> Mapping[str, Sequence[Value]]:
    found: dict[str, list[Value]] = {}
    for key, each in every:
        found.setdefault(key, []).append(each)
    return {key: of_key[:_MOST_VALUES] for key, of_key in found.items()}


_CONVERTED: Final = {
    "mass": (0.03, 0.0), "length": (0.03, 0.0), "duration": (0.1, 0.0), "temperature": (0.0, 0.25)
}  # fmt: skip
"""How far apart two values may be that are one in two units, as a share and in the smallest unit: a little more."""


def _by_size(found: Iterable[Value]) -> _Sized:
    sized = ((size, each) for each in found if (size := _written_size(each)) is not None)
    return sorted(sized, key=lambda each: each[0])


def _written_size(value: Value) -> float | None:
    return None if ".." in value.canonical else float(Fraction(value.canonical))


def _of_about_one_size(claim: Value, among: _Sized) -> Iterator[Value]:
    """Give the values that a claim may be converted to."""
    size = _written_size(claim) if among else None
    if size is not None:
        share, most = _CONVERTED[_scale(claim)]
        reach = share * size + most
        yield from _within(among, size, reach)


def _within(among: Sequence[tuple[float, _T]], size: float, reach: float) -> Iterator[_T]:
    """Give what is of about a size, among some in the order of their sizes."""
    first = bisect_left(among, size - reach, key=lambda each: each[0])
    return (each for _, each in takewhile(lambda each: each[0] <= size + reach, islice(among, first, None)))


def _by_degrees(keys: Iterable[_Key]) -> Mapping[str, _Degrees]:
    found: dict[str, list[tuple[float, _Key]]] = {"heat": [], "temperature": []}
    for sort, canonical in keys:
        if sort in found:
            number = Fraction(canonical)
            found[sort].append((float(in_celsius(number) if sort == "heat" else number), (sort, canonical)))
    return {sort: sorted(of_sort) for sort, of_sort in found.items()}


def _dose_keys(value: Value) -> Iterator[_Key]:
    """Give what a value has in common with those that are the same."""
    yield _scale(value), value.canonical
    if value.amount:
        yield "", value.amount


def _doses(found: Iterable[Value], drugs: Drugs) -> Mapping[_Key, Sequence[Dose]]:
    places: dict[Value, list[Value]] = {}
    for each in found:
        places.setdefault(_anywhere(each), []).append(each)
    doses: dict[_Key, list[Dose]] = {}
    for value, of_value in places.items():
        beside = frozenset(frozenset(drugs.beside(each.start)) for each in of_value)
        dose = Dose(value, beside, frozenset(map(drugs.owner, of_value)))
        for key in _dose_keys(value):
            doses.setdefault(key, []).append(dose)
    return doses


def _keys_of(value: Value) -> Iterator[str]:
    """Give what values have in common that may be one though they differ in scale, or in what they leave open."""
    if value.kind == "time":
        yield f"time {value.canonical[2:5]}"
    elif value.kind == "date":  # two of year, month and day
        for written in filter(None, (value.canonical, value.other)):
            parts = [f"{at} {part}" for at, part in enumerate(written.split("-")) if part != "?"]
            yield from map(" ".join, combinations(parts, 2))
    else:
        yield value.amount


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


def _that_may_stand_for_others(placed: Iterable[Placed]) -> Mapping[_Key, Sequence[Placed]]:
    """Give values by their sort and number: "number" (which counts nothing), "heat", "temperature", "share"."""
    found: dict[_Key, list[Placed]] = {}
    for each in placed:
        value = each.value
        is_single = ".." not in value.canonical
        sorts = {
            "number": value.kind in {"number", "grade"} and not each.counts,
            "heat": value.kind == "number" and is_single,
            "temperature": value.scale == "temperature" and is_single,
            "share": value.scale == "share",
        }
        for sort in (sort for sort, is_of_sort in sorts.items() if is_of_sort):
            found.setdefault((sort, value.canonical), []).append(each)
    return found
