"""How many mutants of `safe mutate` survived, and the worst of them, for people."""

from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from typing import Final

from rich.text import Text

from consumer.offline.mutate import Mutation
from consumer.offline.pages.console_layout import BOLD, Layout, Line, signed
from consumer.offline.pages.document import MarkedText
from consumer.offline.pages.quotes import around
from consumer.text import count_of, printable, quoted
from safe_core.diagnosis import Passage
from safe_core.expectations import PLACES
from safe_core.mutation import KINDS, Alteration, Mutant, MutantKind

MOST_SHOWN: Final = 10
"""Survivors of a case that are shown if not all are asked for."""

_INDENT: Final = Text(" " * 4)
_FURTHER: Final = Text(" " * 8)


def table(mutation: Mutation, layout: Layout, *, with_caught: bool) -> Iterator[Line]:
    """Show the counts by kind, then the worst survivors case by case, or every mutant if asked for."""
    yield from _counts(mutation)
    for each in mutation.tests:
        shown = each.mutants if with_caught else worst(each.survivors)
        if shown:
            yield Text()
            yield Text(f"{printable(each.test.test_id)}  {len(each.survivors)} survived", BOLD)
            for mutant in shown:
                yield from _mutant(each.test.case.narrative or "", mutant, layout)
            if (left := len(each.survivors) - len(shown)) > 0:
                yield _INDENT + Text(f"and {left} more: --all shows them")


def worst(mutants: Sequence[Mutant]) -> list[Mutant]:
    """Choose what people should see first: of each kind in turn the next, the worst kind first, one for each place."""
    by_kind: dict[MutantKind, list[Mutant]] = {kind: [] for kind in KINDS}
    places = set[int]()
    for mutant in mutants:
        if mutant.alteration.start not in places:
            by_kind[mutant.alteration.kind].append(mutant)
        places.add(mutant.alteration.start)
    turns = (each for turn in zip_longest(*by_kind.values()) for each in turn if each is not None)
    return list(islice(turns, MOST_SHOWN))


def _mutant(narrative: str, mutant: Mutant, layout: Layout) -> Iterator[Line]:
    outcome = "" if mutant.survived else ", caught"
    yield _INDENT + Text(f"{mutant.alteration.kind}{outcome}")
    yield from layout.hanging(_FURTHER, signed(_quoted(narrative, mutant.alteration), layout))
    if mutant.suggestion is not None:
        # Of two lists, a short one may miss a term where a long one passes with one miss.
        only = "" if len(mutant.lists) > 1 else f" in {PLACES[mutant.lists[0]][1]}"
        yield from layout.hanging(_FURTHER, f"this phrase would catch it{only}: {quoted(mutant.suggestion)}")
    elif mutant.one_miss_passes:
        yield from layout.hanging(
            _FURTHER, "no single added phrase would catch it: the lists are so long that a case passes with one miss"
        )
    elif mutant.survived:
        yield from layout.hanging(
            _FURTHER, "no phrase of its sentence would catch it: each is still in the altered text, or required already"
        )


def _quoted(narrative: str, alteration: Alteration) -> Sequence[MarkedText]:
    """Show what was altered in some of its context."""
    context = around(narrative, Passage("summary", None, alteration.start, alteration.end))
    at = next(number for number, text in enumerate(context) if text.mark == "pointed")
    altered = [MarkedText(context[at].text, "lacking"), MarkedText(alteration.after, "further")]
    return [*context[:at], *altered, *context[at + 1 :]]


def _counts(mutation: Mutation) -> Iterator[Line]:
    rows = [(kind, made, left) for kind, (made, left) in mutation.by_kind.items() if made]
    width = max((len(kind) for kind, _, _ in rows), default=0)
    yield Text(f"{'kind':{width}}  mutants  survived", BOLD)
    for kind, made, left in rows:
        yield Text(f"{kind:{width}}  {made:7}  {left:8}")
    made, left = len(mutation.mutants), mutation.survived
    share = f" ({left / made:.0%})" if made else ""
    cases = count_of(len(mutation.tests), "test case")
    yield Text(f"{left} of {count_of(made, 'mutant')}{share} of {cases} would pass", BOLD)
