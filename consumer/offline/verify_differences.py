"""Where a report and its recomputation differ, for `safe verify`.

There is no tolerance: scores are bit-equal wherever they are computed (contract.md, "Criteria", "Exact sums").
"""

import json
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from typing_extensions import override

from consumer.text import printable

ABSENT: Final = object()
"""Stands for the value on the side that has none; JSON's null is a value."""

# What tells one element of a list from another: a result, an input, a common miss.
_IDENTITIES: Final = ("test_id", "name", "signal", "term", "phrase")
_LONGEST_SHOWN: Final = 80
_SHOWN_BEFORE: Final = 20

_Identity = tuple[str, str | None]
"""The field that names an element of a list, "" if it is a text itself, and the name, None if it has none."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where both sides differ, `results[3] (I25-BATCH1-004) scores.CR`; ABSENT where a side has nothing."""

    place: str
    reported: object
    recomputed: object

    def document(self) -> dict[str, object]:
        """As JSON: what a side has not is left out."""
        sides = {"reported": self.reported, "recomputed": self.recomputed}
        return {"place": self.place, **{name: value for name, value in sides.items() if value is not ABSENT}}

    @override
    def __str__(self) -> str:
        if self.reported is ABSENT:
            recomputed = _shown_after("; recomputed: ", self.recomputed)
            return f"{printable(self.place)} is missing from the report{recomputed}"
        if self.recomputed is ABSENT:
            return f"{printable(self.place)} is only in the report{_shown_after(': ', self.reported)}"
        start = _start(self.reported, self.recomputed)
        reported, recomputed = _shown(self.reported, start), _shown(self.recomputed, start)
        how = "recomputed"
        if self.place.startswith("inputs["):
            if self.place.endswith(".name"):
                how = "given instead"
            elif self.place.endswith(" sha256"):
                how = "recomputed – the file has changed since"
        return f"{printable(self.place)}: {reported} in the report, {recomputed} {how}"


def differences(reported: Mapping[str, Any], recomputed: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield every difference: those of `inputs` first, since they explain the rest, then in the order of `recomputed`.

    The order of keys is of no importance, that of lists is. 1 and 1.0 are one number, as other tools rewrite them; true
    is none. The time of the report and the version of the scorer are not compared.
    """
    theirs, ours = _timeless(reported), _timeless(recomputed)
    inputs = [{"inputs": report.pop("inputs")} if "inputs" in report else {} for report in (theirs, ours)]
    yield from _fields("", *inputs)
    yield from _fields("", theirs, ours)


def _timeless(report: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what may differ between two runs over the same inputs."""
    kept = {name: value for name, value in report.items() if name != "generated_at"}
    if isinstance(scorer := kept.get("scorer"), dict):
        kept["scorer"] = {name: value for name, value in scorer.items() if name != "version"}
    return kept


# --- the walk ---------------------------------------------------------------------------------------------------------
# It goes down only where both sides do, so never deeper than SAFE's own reports, however deep the one at hand is.


def _compared(place: str, reported: object, recomputed: object, joint: str = ".") -> Iterator[Difference]:
    """Compare two values; `joint` parts the place from the name of a field within."""
    if isinstance(reported, dict) and isinstance(recomputed, dict):
        yield from _fields(place + joint, reported, recomputed)
    elif isinstance(reported, list) and isinstance(recomputed, list):
        yield from _elements(place, reported, recomputed)
    elif not _same(reported, recomputed):
        yield Difference(place, reported, recomputed)


def _same(reported: object, recomputed: object) -> bool:
    # True == 1 to Python; NaN equals nothing.
    return isinstance(reported, bool) == isinstance(recomputed, bool) and reported == recomputed


def _fields(before: str, reported: Mapping[str, Any], recomputed: Mapping[str, Any]) -> Iterator[Difference]:
    for name, value in recomputed.items():
        yield from _compared(before + name[:_LONGEST_SHOWN], reported.get(name, ABSENT), value)
    for name, value in reported.items():
        if name not in recomputed:
            yield Difference(before + name[:_LONGEST_SHOWN], value, ABSENT)


def _elements(place: str, reported: Sequence[Any], recomputed: Sequence[Any]) -> Iterator[Difference]:
    """Compare two lists so that an element missing, one too many, and another order are each one difference."""
    theirs, ours = list(map(_identity, reported)), list(map(_identity, recomputed))
    partners = _namesakes(theirs, ours)
    yield from _order(place, theirs, ours, partners)
    partners |= _in_the_same_gap(len(theirs), len(ours), partners)
    for at, element in enumerate(reported):
        if at in partners:
            yield from _element(f"{place}[{at}]", element, recomputed[partners[at]])
        else:
            yield Difference(f"{place}[{at}]{_label(element)}", element, ABSENT)
    found = set(partners.values())
    for at, element in enumerate(recomputed):
        if at not in found:
            yield Difference(f"{place}[{at}]{_label(element)}", ABSENT, element)


def _element(place: str, reported: object, recomputed: object) -> Iterator[Difference]:
    field, ours = _identity(recomputed)
    if field and isinstance(reported, dict) and (theirs := reported.get(field, ABSENT)) != ours:
        # It is another test case, file or term, so whatever else it says is bound to differ.
        yield Difference(f"{place}.{field}", theirs, ours)
        return
    label = _label(recomputed)
    yield from _compared(place + label, reported, recomputed, " " if label else ".")


def _order(
    place: str, theirs: Sequence[_Identity], ours: Sequence[_Identity], partners: Mapping[int, int]
) -> Iterator[Difference]:
    """Yield at most one difference, at the first element that does not stand where it should among those of both."""
    found = sorted(partners.items())
    for (at, partner), due in zip(found, sorted(partners.values()), strict=True):
        if partner != due:
            yield Difference(f"{place} (the order differs from [{at}] on)", theirs[at][1], ours[due][1])
            return


def _identity(element: object) -> _Identity:
    if isinstance(element, str):
        return "", element
    if isinstance(element, dict):
        for field in _IDENTITIES:
            if isinstance(name := element.get(field), str):
                return field, name
    return "", None


def _namesakes(theirs: Sequence[_Identity], ours: Sequence[_Identity]) -> dict[int, int]:
    """Find by name who is who, as positions; of a name that stands there n times, the n-th is the n-th.

    Where both lists begin or end alike it goes by place: a text that is there twice must not look moved.
    """
    start = _alike(theirs, ours)
    end = _alike(theirs[start:][::-1], ours[start:][::-1])
    partners = {at: at for at in range(start)}
    waiting: defaultdict[_Identity, deque[int]] = defaultdict(deque)
    for at in range(start, len(ours) - end):
        waiting[ours[at]].append(at)
    for at in range(start, len(theirs) - end):
        if theirs[at][1] is not None and waiting[theirs[at]]:
            partners[at] = waiting[theirs[at]].popleft()
    return partners | {len(theirs) - back: len(ours) - back for back in range(1, end + 1)}


def _alike(theirs: Sequence[object], ours: Sequence[object]) -> int:
    """Count the elements, or characters, by which two sequences begin alike."""
    pairs = enumerate(zip(theirs, ours, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(theirs), len(ours)))


def _in_the_same_gap(theirs: int, ours: int, partners: Mapping[int, int]) -> dict[int, int]:
    """Pair the nameless and the renamed: those that both lists, of these lengths, have after the same namesake."""
    found = set(partners.values())
    gaps: defaultdict[int, deque[int]] = defaultdict(deque)
    namesake = -1
    for at in range(ours):
        if at in found:
            namesake = at
        else:
            gaps[namesake].append(at)
    pairs: dict[int, int] = {}
    namesake = -1
    for at in range(theirs):
        namesake = partners.get(at, namesake)
        if at not in partners and gaps[namesake]:
            pairs[at] = gaps[namesake].popleft()
    return pairs


# --- in words ---------------------------------------------------------------------------------------------------------


def _label(element: object) -> str:
    field, name = _identity(element)
    return f" ({name[:_LONGEST_SHOWN]})" if field and name else ""


def _shown_after(words: str, value: object) -> str:
    return "" if isinstance(value, dict | list) else f"{words}{_shown(value)}"


def _shown(value: object, start: int = 0) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if not isinstance(value, str):
        return json.dumps(value)
    end = start + _LONGEST_SHOWN
    cut = ("…" if start else "") + value[start:end] + ("…" if end < len(value) else "")
    return printable(json.dumps(cut, ensure_ascii=False))


def _start(reported: object, recomputed: object) -> int:
    """Where to begin to show two texts, so that what differs is seen."""
    if not isinstance(reported, str) or not isinstance(recomputed, str):
        return 0
    alike = _alike(reported, recomputed)
    return alike - _SHOWN_BEFORE if alike > _LONGEST_SHOWN - _SHOWN_BEFORE else 0
