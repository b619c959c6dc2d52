"""The survivors of `safe mutate`, and how many there are, for people."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.text import Text

from consumer.offline.mutate import Mutation
from consumer.offline.pages.console_layout import BOLD, Layout, Line
from consumer.offline.pages.explanation import signed
from consumer.offline.pages.quotes import MarkedText, around
from consumer.text import count_of, printable, quoted
from safe_core.diagnosis import Passage
from safe_core.expectations import PLACES
from safe_core.mutation import Alteration, Mutant

_INDENT: Final = Text(" " * 4)
_FURTHER: Final = Text(" " * 8)


def table(mutation: Mutation, layout: Layout, *, with_caught: bool) -> Iterator[Line]:
    """Show the survivors case by case, with the mutants that were caught too if asked for, then the counts by kind."""
    for each in mutation.tests:
        if shown := each.mutants if with_caught else each.survivors:
            yield Text(f"{printable(each.test.test_id)}  {len(each.survivors)} survived", BOLD)
            for mutant in shown:
                yield from _mutant(each.test.case.narrative or "", mutant, layout)
            yield Text()
    yield from _counts(mutation)


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
