"""How the demo looks: a live scorecard on a terminal, plain lines without one, and the same closing for both.

Colour only repeats what a word or a number says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from consumer.demo.scorecard import Arrival, BatchCard, Scorecard
from consumer.text import printable
from safe_core import CRITERIA, LABELS

_STYLES = {"Pass": "green", "Review": "yellow", "Fail": "red", None: "magenta"}
_TERMS_SHOWN = 3
_OTHER_LINES = 18
"""Lines of the live screen that do not show the last results."""

_WIDEST = 96
"""Columns beyond which a row is hard to follow."""


@dataclass(slots=True)
class Screen:
    """Where the demo shows what happens: on a live screen or, without one, line by line."""

    console: Console
    card: Scorecard
    live: Live | None
    _status: str = ""

    def status(self, text: str, *, once: bool = True) -> None:
        """Show what is going on; without a live screen, print a line only if this is shown `once`."""
        self._status = text
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
            self.live.update(_live_screen(self.console, self.card, self._status), refresh=True)


def closing(console: Console, card: Scorecard) -> None:
    """Print the final scorecard of each batch."""
    console.print()
    console.print(_final_table(card))
    print_line(console, Text("Rate: the share labelled Pass. CR, AH, AC: mean scores.", "dim"))
    for line in _closing_lines(card):
        print_line(console, line)


def print_line(console: Console, text: Text) -> None:
    """Print a line of prose."""
    # A pipe gets one line for each thing; on a screen a long line is wrapped between words.
    console.print(text, soft_wrap=not console.is_terminal)


# --- the live screen --------------------------------------------------------------------------------------------------


def _live_screen(console: Console, card: Scorecard, status: str) -> RenderableType:
    title = Text.assemble(("SAFE demo", "bold"), "  ", status, no_wrap=True, overflow="ellipsis")
    rows = max(3, min(8, console.height - _OTHER_LINES))
    width = min(console.width, _WIDEST)
    return Group(
        title,
        Text(),
        _batches(console, card, width),
        Text(),
        _last_results(card.arrivals[-rows:], rows, width),
        Text(),
        _terms(card, width),
        *(Text(remark, style="dim", no_wrap=True, overflow="ellipsis") for remark in _footnotes(card)),
    )


def _table(width: int, *columns: tuple[str, Literal["left", "right"], int | None]) -> Table:
    """A table without lines; each column has a heading, an alignment and a width, None for the rest of the line."""
    table = Table(box=None, padding=(0, 1, 0, 0), width=width, show_edge=False, header_style="bold")
    for heading, side, cells in columns:
        ratio = 1 if cells is None else None
        table.add_column(heading, justify=side, width=cells, ratio=ratio, no_wrap=True, overflow="ellipsis")
    return table


def _batches(console: Console, card: Scorecard, width: int) -> Table:
    table = _table(
        width,
        ("Batch", "left", 14), ("Cases", "right", 8), ("Pass", "right", 5),
        ("Review", "right", 6), ("Fail", "right", 5), (" Pass rate", "left", None),
    )  # fmt: skip
    cells = max(5, min(30, width - 54))
    for batch_id, batch in card.batches.items():
        table.add_row(*_counts(batch_id, [batch]), _bar(console, [batch], cells))
    everything = list(card.batches.values())
    table.add_row(*_counts("all", everything), _bar(console, everything, cells), style="bold")
    return table


def _counts(name: str, batches: Sequence[BatchCard]) -> list[str]:
    scored, expected = sum(batch.cases for batch in batches), sum(batch.expected for batch in batches)
    by_label = [str(sum(batch.count(label) for batch in batches)) for label in LABELS]
    return [printable(name), f"{scored} of {expected}", *by_label]


def _rate(batches: Sequence[BatchCard]) -> float | None:
    scored = sum(batch.cases for batch in batches)
    return sum(batch.count("Pass") for batch in batches) / scored if scored else None


def _bar(console: Console, batches: Sequence[BatchCard], cells: int) -> Text:
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


def _terms(card: Scorecard, width: int) -> Table:
    table = _table(width, ("Missed most", "left", None), ("Forbidden terms used", "left", 28))
    missed, used = _ranking(card.most_frequent("missing")), _ranking(card.most_frequent("used"))
    for row in range(_TERMS_SHOWN):
        table.add_row(missed[row], used[row])
    return table


def _ranking(ranked: Sequence[tuple[str, int]]) -> list[str]:
    lines = [f"{count}x {printable(text)}" for text, count in ranked[:_TERMS_SHOWN]]
    return lines + [""] * (_TERMS_SHOWN - len(lines))


def _footnotes(card: Scorecard) -> list[str]:
    remarks = "; ".join(card.remarks())
    buried = [f"dead letter, {printable(reason)}" for reason in card.dead_letters]
    lines = ([remarks] if remarks else []) + buried[-1:]
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
    for batch_id, batch in card.batches.items():
        means = batch.report.get("mean_scores", {})
        scores = [f"{means[name]:.2f}" if name in means else "-" for name in CRITERIA]
        table.add_row(*_counts(batch_id, [batch]), _percent(_rate([batch])), *scores)
    everything = list(card.batches.values())
    table.add_row(*_counts("all", everything), _percent(_rate(everything)), style="bold")
    return table


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.0%}"


def _closing_lines(card: Scorecard) -> list[Text]:
    missed = [f"{printable(text)} ({count}x)" for text, count in card.most_frequent("missing")[:_TERMS_SHOWN]]
    used = [f"{printable(text)} ({count}x)" for text, count in card.most_frequent("used")[:_TERMS_SHOWN]]
    lines = [Text(f"Missed most: {', '.join(missed)}")] if missed else []
    lines += [Text(f"Forbidden terms used: {', '.join(used)}")] if used else []
    lines += [Text(remark[0].upper() + remark[1:]) for remark in card.remarks()]
    return lines + [Text(f"Dead letter: {printable(reason)}") for reason in card.dead_letters]
