"""The further conditions of a gate: bounds on numbers that a report holds (contract.md, "Gate")."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from consumer.errors import ConfigurationError
from consumer.offline.stored_report import violations_of
from consumer.text import printable, visible
from safe_core import CRITERIA, Scores

_Number = int | float


class _Kind(NamedTuple):
    """One kind of condition: the field of the report, how its number is read, and how that is said.

    With `names`, the option takes one of them before its bound, which is a lower one; without, it takes the highest
    count that is allowed. `read` gets the report's name and field for its errors, then what the field holds.
    """

    field: str
    read: Callable[[str, str, object], _Number]
    said: str
    names: tuple[str, ...] = ()


def _count(place: str, field: str, found: object) -> _Number:
    if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
        return found
    raise ConfigurationError(f"{place}: {field} is not a count")


def _share(place: str, field: str, found: object) -> _Number:
    if isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found <= 1:
        return found
    raise ConfigurationError(f"{place}: {field} is not a number from 0 to 1")


def _violations(place: str, _field: str, found: object) -> _Number:
    return violations_of(found, place)


_RATES: Final = (*CRITERIA, "overall")
_KINDS: Final[Mapping[str, _Kind]] = {
    "--max-violations": _Kind("results", _violations, "AH violation{s}"),
    "--max-missing": _Kind("missing_outputs", _count, "case{s} without an output"),
    "--max-vacuous": _Kind("vacuous.all", _count, "case{s} with nothing at all to check"),
    "--max-mismatches": _Kind("input_mismatches", _count, "output{s} made from another narrative"),
    "--max-doubtful": _Kind("doubtful_hits", _count, "doubtful hit{s}"),
    "--min-mean": _Kind("mean_scores.{name}", _share, "mean {name}", Scores._fields),
    "--min-pass-rate-of": _Kind("pass_rates.{name}", _share, "pass rate of {name}", _RATES),
}
"""By option, in the order in which the gate says them."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One bound on one number of a report; `name` is that of a lower bound, such as CR. Equality holds."""

    option: str
    bound: _Number
    name: str = ""

    def decide(self, report: Mapping[str, Any], place: str) -> tuple[bool, str]:
        """Tell whether it holds, and say so; raises ConfigurationError for a report that does not have the number."""
        kind = _KINDS[self.option]
        field = kind.field.format(name=self.name)
        found = kind.read(place, field, self._value(report, place, field))
        if not kind.names:
            return found <= self.bound, f"{_counted(kind, found)}, {self.option} allows {self.bound}"
        holds = found >= self.bound
        how = "is at least" if holds else "is below"
        # As exact as it was compared: 0.7999 must not read as 0.8.
        return holds, f"{kind.said.format(name=self.name)} {found} {how} {self.option} {self.name}={self.bound}"

    def _value(self, report: Mapping[str, Any], place: str, field: str) -> object:
        value: object = report
        for part in field.split("."):
            if not isinstance(value, Mapping) or part not in value:
                raise ConfigurationError(f"{place}: has no {field}, which {self.option} needs: {_origin(report)}")
            value = value[part]
        return value


def _origin(report: Mapping[str, Any]) -> str:
    if "results" in report:
        return "an older SAFE wrote it; score the outputs again"
    return "an older SAFE wrote it, or it is a report event of the worker; score the outputs again with safe score"


def _counted(kind: _Kind, count: _Number) -> str:
    return f"{count} {kind.said.format(s='' if count == 1 else 's')}"


def nothing_to_check(report: Mapping[str, Any]) -> str | None:
    """Say how many cases have nothing at all to check; None if there are none, or the report does not say."""
    vacuous = report.get("vacuous")
    count = vacuous.get("all") if isinstance(vacuous, Mapping) else None
    if not isinstance(count, int) or isinstance(count, bool) or count <= 0:
        return None
    return _counted(_KINDS["--max-vacuous"], count)


# --- from the command line --------------------------------------------------------------------------------------------


Bound = int | Sequence[str] | None
"""The value of an option: a count, or all texts that it was given with."""

OPTIONS: Final = tuple(_KINDS)


def conditions(bounds: Sequence[Bound]) -> tuple[Condition, ...]:
    """Read the values of OPTIONS, in their order, None where one is not given; raises ConfigurationError."""
    found: list[Condition] = []
    for (option, kind), bound in zip(_KINDS.items(), bounds, strict=True):
        if isinstance(bound, int):
            found.append(_upper_bound(option, bound))
        elif bound is not None:
            found.extend(_lower_bounds(option, kind.names, bound))
    return tuple(found)


def _upper_bound(option: str, most: int) -> Condition:
    if most < 0:
        raise ConfigurationError(f"{option} {most} is below 0")
    return Condition(option, most)


def _lower_bounds(option: str, names: Sequence[str], texts: Sequence[str]) -> Iterator[Condition]:
    given: set[str] = set()
    for text in texts:
        name, equals, number = text.partition("=")
        if not equals:
            raise ConfigurationError(f"{option} {visible(text)} is not written as NAME=FRACTION, such as CR=0.7")
        if name not in names:
            known = ", ".join(names)
            raise ConfigurationError(f"{option} {visible(text)}: {visible(name)!r} is none of {known}")
        if name in given:
            raise ConfigurationError(f"{option} names {name} twice: give it once")
        given.add(name)
        yield Condition(option, _fraction(f"{option} {printable(text)}", number), name)


def _fraction(given: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        more = "; 80 percent is 0.8" if 1 < number < math.inf or text.endswith("%") else ""
        raise ConfigurationError(f"{given}: {printable(text)!r} is not a fraction from 0 to 1{more}")
    return number
