"""What the pages say alike of scores and cases."""

from collections.abc import Iterator
from decimal import ROUND_FLOOR, Decimal
from functools import lru_cache
from typing import Final

from consumer.offline.scored_run import CaseLine, Shortfall
from safe_core import Criterion

_ONE_PLACE: Final = Decimal("0.1")
_TWO_PLACES: Final = Decimal("0.01")


def percent(fraction: float) -> str:
    """Give a fraction as "28.5%", cut off and not rounded: what is below a bound must not read as having reached it."""
    text = str(_cut(Decimal(repr(fraction)) * 100, _ONE_PLACE))
    return f"{text.removesuffix('.0')}%"


@lru_cache(maxsize=1024)  # a run has few different scores
def score(value: float, *bounds: float) -> str:
    """Give a score to two places; cut off where rounding would reach one of the bounds, or 1, that it is below."""
    text = f"{value:.2f}"
    if any(value < bound <= float(text) for bound in (*bounds, 1.0)):
        return str(_cut(Decimal(repr(value)), _TWO_PLACES))
    return text


def _cut(number: Decimal, places: Decimal) -> Decimal:
    return number.quantize(places, ROUND_FLOOR)


def count_of(count: int, thing: str) -> str:
    """Give "1 case", or "2 cases"."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


def missed(shortfall: Shortfall) -> str:
    """Say which bound a criterion has missed, as "CR 0.33 below review 0.5"."""
    name, bound = shortfall.bound
    return f"{shortfall.criterion} {score(shortfall.score, bound)} below {name} {bound}"


def without_output(case: CaseLine) -> str | None:
    """Say that nothing was there to be scored, if so."""
    if not case.answered:
        return "no output"
    return "empty output" if case.row.empty_output else None


def terms_against(case: CaseLine) -> Iterator[tuple[Criterion, str, tuple[str, ...]]]:
    """Yield the terms that a case lost by: the criterion, what is wrong with them ("missing", "used"), the terms."""
    details = case.row.details
    lost: tuple[tuple[Criterion, str, tuple[str, ...]], ...] = (
        ("CR", "missing", details.cr_missing),
        ("AH", "used", details.ah_violations),
        ("AC", "missing", details.ac_missing),
    )
    return (entry for entry in lost if entry[2])
