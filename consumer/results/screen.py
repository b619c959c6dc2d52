"""How results look: a live scorecard on a terminal, plain lines without one, and the same closing for both.

Colour only repeats what a word or a number says.
"""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Literal

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from consumer.results.scorecard import Arrival, BatchCard, Outcome, Scorecard, most_frequent_terms, remarks
from consumer.text import printable
from safe_core import CRITERIA, LABELS

_STYLES = {"Pass": "green", "Review": "yellow", "Fail": "red", None: "magenta"}
_TERMS_SHOWN = 3
_OTHER_LINES = 15
"""Lines of the live screen that show neither batches nor the last results."""
_LEAST_BATCHES, _LEAST_RESULTS, _MOST_RESULTS = 3, 3, 8
_ROOM_FOR_RESULTS = 5

_WIDEST = 96
"""Columns beyond which a row is hard to follow."""


@dataclass(slots=True)
class Screen:
    """Where a command shows what happens: on a live screen or, without one, line by line."""

    console: Console
    card: Scorecard
    title: str
    live: Live | None
    status_text: str = ""

    def status(self, text: str, *, once: bool = True) -> None:
        """Show what is going on; without a live screen, print a line only if this is shown `once`."""
        self.status_text = text
        if self.live is None and once:
            print_line(self.console, Text(text))
        self.show()

    def note(self, arrival: Arrival) -> None:
        """Print one arrival, unless there is a live screen, which shows it with the next status()."""
        if self.live is None:
            print_line(self.console, _plain_line(arrival))

    def show(self) -> None:
        """Redraw the live screen."""
        if self.live is not None:
            self.live.update(_live_screen(self), refresh=True)


@contextmanager
def showing(console: Console, card: Scorecard, title: str) -> Iterator[Screen]:
    """Give a screen, which moves if standard output is a terminal, and is gone afterwards."""
    # Not console.is_terminal: FORCE_COLOR makes that true of a pipe, where nothing may move.
    can_move = sys.stdout.isatty() and not console.is_dumb_terminal
    live = Live(console=console, auto_refresh=False, transient=True) if can_move else None
    with live or nullcontext():
        yield Screen(console, card, title, live)


def closing(console: Console, card: Scorecard) -> None:
    """Print the final scorecard of each batch."""
    console.print()
    console.print(_final_table(card))
    print_line(console, Text("Rate: the share labelled Pass. CR, AH, AC: mean scores.", "dim"))
    for line in _closing_lines(card):
        print_line(console, line)


def print_line(console: Console, text: Text) -> None:
    """Print a line of prose."""
    if console.is_terminal:
        console.print(text)  # wrapped between words
    else:  # a pipe gets one line for each thing, as it is: to lay out thousands a second would take half a core
        print(text.plain, file=console.file, flush=True)


# --- the live screen --------------------------------------------------------------------------------------------------


def _live_screen(screen: Screen) -> RenderableType:
    console, card = screen.console, screen.card
    title = Text.assemble((screen.title, "bold"), "  ", screen.status_text, no_wrap=True, overflow="ellipsis")
    batches = card.newest_batches(max(_LEAST_BATCHES, console.height - _OTHER_LINES - _ROOM_FOR_RESULTS))
    rows = max(_LEAST_RESULTS, min(_MOST_RESULTS, console.height - _OTHER_LINES - len(batches)))
    width = min(console.width, _WIDEST)
    footnotes = _footnotes(card, batches.values())
    return Group(
        title,
        Text(),
        _batches(console, card, batches, width),
        Text(),
        _last_results(list(card.newest)[-rows:], rows, width),
        Text(),
        _terms(batches.values(), width),
        *(Text(remark, style="dim", no_wrap=True, overflow="ellipsis") for remark in footnotes),
    )


def _table(width: int, *columns: tuple[str, Literal["left", "right"], int | None]) -> Table:
    """A table without lines; each column has a heading, an alignment and a width, None for the rest of the line."""
    table = Table(box=None, padding=(0, 1, 0, 0), width=width, show_edge=False, header_style="bold")
    for heading, side, cells in columns:
        ratio = 1 if cells is None else None
        table.add_column(heading, justify=side, width=cells, ratio=ratio, no_wrap=True, overflow="ellipsis")
    return table


def _batches(console: Console, card: Scorecard, shown: Mapping[str, BatchCard], width: int) -> Table:
    table = _table(
        width,
        ("Batch", "left", 14), ("Cases", "right", 8), ("Pass", "right", 5),
        ("Review", "right", 6), ("Fail", "right", 5), (" Pass rate", "left", None),
    )  # fmt: skip
    cells = max(5, min(30, width - 54))
    for name, batch in shown.items():
        table.add_row(*_counts(name, [batch]), _bar(console, [batch], cells))
    everything = card.batches.values()
    of_all = "all" if len(shown) == len(everything) else f"all {len(everything)}"
    table.add_row(*_counts(of_all, everything), _bar(console, everything, cells), style="bold")
    return table


def _counts(name: str, batches: Collection[BatchCard]) -> list[str]:
    scored, expected = sum(batch.cases for batch in batches), sum(batch.expected for batch in batches)
    by_label = [str(sum(batch.count(label) for batch in batches)) for label in LABELS]
    known = all(batch.expected for batch in batches)
    return [printable(name), f"{scored} of {expected}" if known else str(scored), *by_label]


def _rate(batches: Collection[BatchCard]) -> float | None:
    scored = sum(batch.cases for batch in batches)
    return sum(batch.count("Pass") for batch in batches) / scored if scored else None


def _bar(console: Console, batches: Collection[BatchCard], cells: int) -> Text:
    rate = _rate(batches)
    full, rest = ("#", ".") if console.options.ascii_only else ("█", "░")
    filled = round((rate or 0.0) * cells)
    number = "  -" if rate is None else f"{rate:4.0%}"
    return Text.assemble(" ", (full * filled, "green"), (rest * (cells - filled), "dim"), " ", number)


def _last_results(arrivals: Sequence[Arrival], rows: int, width: int) -> Table:
    table = _table(
        width,
        ("Result", "left", 6), ("Test case", "left", 12), ("Archetype", "left", None),
        ("CR", "right", 4), ("AH", "right", 4), ("AC", "right", 4), ("", "left", 11),
    )  # fmt: skip
    for arrival in arrivals:
        table.add_row(*_cells(arrival))
    for _missing in range(rows - len(arrivals)):
        table.add_row("")
    return table


def _cells(arrival: Arrival) -> list[Text | str]:
    if arrival.scores is None:
        reason = (arrival.reason or "").partition(":")[0]
        return [Text("-", _STYLES[None]), printable(arrival.test_id), printable(reason), "", "", "", "dead letter"]
    was = f"was {arrival.was}" if arrival.was else ""
    scores = [f"{score:.2f}" for score in arrival.scores]
    label = Text(arrival.label or "", _STYLES[arrival.label])
    return [label, printable(arrival.test_id), printable(arrival.archetype), *scores, was]


def _terms(batches: Collection[BatchCard], width: int) -> Table:
    table = _table(width, (_HEADINGS["missing"], "left", None), (_HEADINGS["used"], "left", 28))
    missed, used = (_ranking(most_frequent_terms(batches, how)) for how in _HEADINGS)
    for row in range(_TERMS_SHOWN):
        table.add_row(missed[row], used[row])
    return table


def _ranking(ranked: Sequence[tuple[str, int]]) -> list[str]:
    lines = [f"{count}x {printable(text)}" for text, count in ranked[:_TERMS_SHOWN]]
    return lines + [""] * (_TERMS_SHOWN - len(lines))


def _footnotes(card: Scorecard, batches: Collection[BatchCard]) -> list[str]:
    said = "; ".join(remarks(batches))
    buried = [f"dead letter, {printable(reason)}" for reason in card.dead_letters]
    lines = ([said] if said else []) + buried[-1:]
    return lines + [""] * (2 - len(lines))  # so that the screen does not jump


# --- without a terminal -----------------------------------------------------------------------------------------------


def _plain_line(arrival: Arrival) -> Text:
    if arrival.scores is None:
        return Text(f"-       {printable(arrival.test_id):12}  dead letter, {printable(arrival.reason or '')}")
    scores = "  ".join(f"{name} {score:.2f}" for name, score in zip(CRITERIA, arrival.scores, strict=True))
    was = f"  (was {arrival.was})" if arrival.was else ""
    label = Text(f"{arrival.label:6}", _STYLES[arrival.label])
    return label + Text(f"  {printable(arrival.test_id):12}  {scores}  {printable(arrival.archetype)}{was}")


# --- the closing ------------------------------------------------------------------------------------------------------


def _final_table(card: Scorecard) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="bold")
    table.add_column("Batch", no_wrap=True, overflow="ellipsis")
    for heading in ("Cases", *LABELS, "Rate", *CRITERIA):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, batch in card.newest_batches(len(card.batches)).items():
        means = batch.report.means if batch.report else {}
        scores = [f"{means[name]:.2f}" if name in means else "-" for name in CRITERIA]
        table.add_row(*_counts(name, [batch]), _percent(_rate([batch])), *scores)
    everything = card.batches.values()
    table.add_row(*_counts("all", everything), _percent(_rate(everything)), style="bold")
    return table


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.0%}"


def _closing_lines(card: Scorecard) -> list[Text]:
    batches = card.batches.values()
    ranked = {how: most_frequent_terms(batches, how)[:_TERMS_SHOWN] for how in _HEADINGS}
    lines = [
        Text(f"{_HEADINGS[how]}: {', '.join(f'{printable(text)} ({count}x)' for text, count in terms)}")
        for how, terms in ranked.items()
        if terms
    ]
    lines += [Text(remark[0].upper() + remark[1:]) for remark in remarks(batches)]
    return lines + [Text(f"Dead letter: {printable(reason)}") for reason in card.dead_letters]


_HEADINGS: Mapping[Outcome, str] = {"missing": "Missed most", "used": "Forbidden terms used"}
