"""What `safe history` prints: the runs, the matrix of cases, what changed, and the noise of groups."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size

from consumer.files.json_text import json_text
from consumer.offline.destinations import Format
from consumer.offline.history import CaseHistory, Group, History, Run, TermHistory
from consumer.offline.pages.comparison_content import RESPECTS, differing_settings
from consumer.offline.pages.document import Table
from consumer.offline.pages.history_data import KINDS, index
from consumer.offline.pages.html_parts import data_block, page, page_with_scripts
from consumer.offline.pages.markdown_parts import literal, mark, table
from consumer.offline.pages.numbers import BRACKETS, pass_rate, percent, score
from consumer.offline.pages.report_content import CONFIDENTIAL
from consumer.offline.stored_report import LISTED, Listed
from consumer.text import count_of, named, printable, quoted
from safe_core import LABELS, Label

LEGEND: Final = (
    "P Pass, R Review, F Fail, each with the number of required terms found; . no answer; "
    "* from another narrative, not compared"
)

_LETTERS: Final[dict[Label, str]] = {"Pass": "P", "Review": "R", "Fail": "F"}
_LISTED: Final = 20
_SETTINGS, _LONGEST_SETTING = 3, 60
_WIDTH: Final = 80
_LONGEST_NAME: Final = 36
_CUT: Final = "..."


# --- content ----------------------------------------------------------------------------------------------------------


def headline(history: History) -> str:
    """Say how much there is."""
    return f"SAFE v0 history: {count_of(len(history.runs), 'run')}, {count_of(len(history.cases), 'case')}"


def runs(history: History) -> Table:
    """Give the runs with their numbers."""
    names = _mean_names(history)
    listed = [what for what in LISTED if any(run.listed(what) is not None for run in history.runs)]
    headings = (
        "Run",
        "Name",
        "Time",
        "Answered",
        *LABELS,
        "Pass rate",
        "Found terms",
        *(f"Mean {name}" for name in names),
        *(RESPECTS[what] for what in listed),
    )
    rows = [
        (
            *(str(number), *_run(run), _found_terms(run), *(_mean(run, name) for name in names)),
            *(_listed(run, what) or "-" for what in listed),
        )
        for number, run in enumerate(history.runs, 1)
    ]
    return Table("Runs", headings, rows, texts=3, from_outside=(1,))


def _mean_names(history: History) -> list[str]:
    """Give the names of the means that any run tells."""
    return [*dict.fromkeys(name for run in history.runs for name in run.means)]


def _mean(run: Run, name: str) -> str:
    return score(run.means[name]) if name in run.means else "-"


def _listed(run: Run, what: Listed) -> str:
    """Count what is listed beside the scores, with in how many cases it was looked for if not in all that answer."""
    counted = run.listed(what)
    if counted is None:
        return ""
    count, told = counted
    total = len(run.side.results)
    return str(count) if told == total else f"{count} ({told} of {total} cases checked)"


def _found_terms(run: Run) -> str:
    return f"{run.found} of {run.required}"


def _run(run: Run) -> tuple[str, ...]:
    total = len(run.side.results)
    answered = f"{run.answered} of {total}" + (f" ({run.mismatches}*)" if run.mismatches else "")
    labels = (str(run.side.labelled(label)) for label in LABELS)
    return run.name, run.when, answered, *labels, pass_rate(run.passes, total)


def cell(case: CaseHistory, number: int) -> str:
    """Give a case's label in a run as a letter and how many terms were found, with a star for another narrative."""
    label = case.labels[number]
    return "." if label is None else f"{_LETTERS[label]}{case.found[number]}" + "*" * case.mismatched[number]


class Change(NamedTuple):
    """A heading, and the cases or terms under it, each with what is to be said of it."""

    heading: str
    lines: Sequence[tuple[str, str]]


def changes(history: History) -> Iterator[Change]:
    """Give whose rules changed, what never passed, what flips, what got lost when, and which terms are found least."""
    never = [(case.test_id, "") for case in history.cases if case.never_passed]
    flips = [(case.test_id, count_of(case.flips, "change")) for case in history.cases if case.flips]
    lost = [(case.test_id, ", ".join(_losses(history, case))) for case in history.cases if case.losses]
    terms = sorted(history.terms, key=lambda term: (term.times_found / (term.asked or 1), -term.asked))
    missed = [(term.term, _found(term)) for term in terms if term.times_found < term.asked]
    yield Change("Scored by other rules than the run before", [*_new_rules(history)])
    yield Change("Never passed", never)
    yield Change("Changed between Pass and another label", flips)
    yield Change("Stopped passing, and in which run", lost)
    for what in LISTED:
        yield Change(f"New {_NAMES[what]}, and in which run", [*_newly_listed(history, what)])
    yield Change("Missed required terms, least found first (+ found, - missed, . neither)", missed)


_NAMES: Final[Mapping[Listed, str]] = {what: RESPECTS[what].lower() for what in LISTED}


def _newly_listed(history: History, what: Listed) -> Iterator[tuple[str, str]]:
    for case in history.cases:
        if new := case.newly_listed(what):
            yield case.test_id, "; ".join(f"run {number + 1}: {', '.join(map(quoted, texts))}" for number, texts in new)


def _new_rules(history: History) -> Iterator[tuple[str, str]]:
    """Give the runs whose rules are not those of the run before, with the settings that differ."""
    for number, (before, run) in enumerate(pairwise(history.runs), 2):
        if before.side.fingerprint != run.side.fingerprint:
            differ = differing_settings(before.side.configuration, run.side.configuration)
            yield f"run {number}", named(differ, _SETTINGS, _LONGEST_SETTING)


def _losses(history: History, case: CaseHistory) -> Iterator[str]:
    """Say in which runs a case stopped passing, and what else than its output had changed."""
    for before, after in case.losses:
        changed = [] if case.asks_alike(before, after) else ["required terms changed"]
        if history.runs[before].side.fingerprint != history.runs[after].side.fingerprint:
            changed.append("other rules")
        yield f"run {after + 1}" + (f" ({', '.join(changed)})" if changed else "")


def _found(term: TermHistory) -> str:
    """Say in which runs a term was found: "+-." of three."""
    marks = "".join("." if found is None else "-+"[found] for found in term.found)
    return f"{term.test_id} {term.criterion} {marks} found in {term.times_found} of {term.asked}"


def groups(history: History) -> Table:
    """Give what differs between repeats of one prompt."""
    shares = ("Pass in every run (pass^k)", "Pass in at least one run (pass@k)", "Pass in some runs only")
    headings = ("Group", "Runs", "Cases", *shares, "Pass rate, low to high")
    rows = [_group(each) for each in history.groups]
    return Table("Repeats of one prompt", headings, rows, texts=1, from_outside=(0,))


def _group(group: Group) -> tuple[str, ...]:
    low, mean, high = group.rates
    shares = (_share(group, count) for count in (group.every, group.any, len(group.flipping)))
    rates = f"lowest {percent(low)}, mean {percent(mean)}, highest {percent(high)}"
    return group.name, str(len(group.runs)), str(len(group.cases)), *shares, rates


def _share(group: Group, count: int) -> str:
    share = group.share(count)
    return "-" if share is None else f"{count} ({percent(share)})"


# --- the console ------------------------------------------------------------------------------------------------------


def _lines(history: History) -> Iterator[str]:
    """Give what the console shows: ten runs fit into 80 columns."""
    yield headline(history)
    yield ""
    for number, run in enumerate(history.runs, 1):
        name, time, answered, *labels, rate = _run(run)
        before, behind = f"{number:3}  ", f"  {time}" if time else ""
        yield before + shortened(printable(name), _WIDTH - cell_len(before + behind)) + behind
        counts = ", ".join(f"{count} {label}" for label, count in zip(LABELS, labels, strict=True))
        yield from _indented(f"{answered} answered; {counts}; {rate}", 5)
        means = ", ".join(f"{name} {_mean(run, name)}" for name in run.means)
        yield from _indented(f"{_found_terms(run)} terms found; means: {means}", 5)
        listed = [f"{_NAMES[what]}: {counted}" for what in LISTED if (counted := _listed(run, what))]
        yield from _indented("; ".join(listed), 5) if listed else ()
    yield from ("", *_indented(LEGEND, 0), BRACKETS, "")
    yield from _matrix(history)
    for change in changes(history):
        if change.lines:
            yield from _changed(change)
    if history.groups:
        yield from _noise(history)


def _matrix(history: History) -> Iterator[str]:
    """Give a row for each case; runs that do not fit go into a further block."""
    width = min(_LONGEST_NAME, max(cell_len(printable(case.test_id)) for case in history.cases))
    column = 1 + max(3, *(len(cell(case, number)) for case in history.cases for number in range(len(history.runs))))
    most = max(1, (_WIDTH - width - 1) // column)
    for first in range(0, len(history.runs), most):
        numbers = range(first, min(first + most, len(history.runs)))
        yield f"{'':{width}} " + "".join(f"{number + 1:{column}}" for number in numbers)
        for case in history.cases:
            name = set_cell_size(shortened(printable(case.test_id), width), width)
            yield f"{name} " + "".join(f"{cell(case, number):>{column}}" for number in numbers)
        yield ""


def _changed(change: Change) -> Iterator[str]:
    yield f"{change.heading} ({len(change.lines)})"
    for what, more in change.lines[:_LISTED]:
        text, said = printable(what), printable(more)
        if cell_len(text) + cell_len(said) + 4 <= _WIDTH:
            yield f"  {text}  {said}"
        else:
            yield f"  {shortened(text, _WIDTH - 2)}"
            yield from _indented(said, 6)
    if len(change.lines) > _LISTED:
        yield f"  and {len(change.lines) - _LISTED} more, which the other formats list"
    yield ""


def _noise(history: History) -> Iterator[str]:
    repeats = groups(history)
    yield repeats.caption
    for row in repeats.rows:
        yield f"  {shortened(printable(row[0]), _WIDTH - 2)}"
        yield from (f"    {heading}: {value}" for heading, value in zip(repeats.headings[1:], row[1:], strict=True))


def shortened(text: str, cells: int) -> str:
    """Give a text of at most this many columns on a console, cut in its middle: names often differ at the end."""
    if cell_len(text) <= cells:
        return text
    left = cells - len(_CUT)
    tail = set_cell_size(text[::-1], left // 2)[::-1]
    return set_cell_size(text, left - left // 2) + _CUT + tail


def _indented(text: str, indent: int) -> Iterator[str]:
    """Give a text in as many lines as it needs."""
    line = ""
    for word in text.split(" "):
        for part in chop_cells(word, _WIDTH - indent - 1):
            longer = f"{line} {part}" if line else part
            if cell_len(longer) > _WIDTH - indent:
                yield " " * indent + line
                longer = part
            line = longer
    yield " " * indent + line


# --- files ------------------------------------------------------------------------------------------------------------


def _blocks(history: History) -> Iterator[str]:
    yield f"{mark('history')}\n# {headline(history)}\n"
    yield from (table(runs(history)), table(groups(history)))
    yield f"{LEGEND}. {BRACKETS} {CONFIDENTIAL}\n"
    numbers = [str(number) for number in range(1, len(history.runs) + 1)]
    rows = [
        (case.test_id, *(cell(case, number).replace("*", r"\*") for number in range(len(history.runs))))
        for case in history.cases
    ]
    yield table(Table("Cases", ("Case", *numbers), rows, texts=len(numbers) + 1, from_outside=(0,)))
    for change in changes(history):
        if change.lines:
            items = (f"- {literal(what)}" + (f" {literal(more)}" if more else "") for what, more in change.lines)
            yield f"## {change.heading} ({len(change.lines)})\n\n" + "\n".join(items) + "\n"


def history_html(history: History, *, has_scripts: bool = False, shows_text: bool = False) -> str:
    """Give the HTML page: the line of the pass rate, the cases, and two runs side by side.

    It loads nothing or, with `has_scripts`, what run_script() gives of each run, when a case is opened.
    """
    rendered = page_with_scripts if has_scripts else page
    return rendered(
        "history.html.j2",
        "history",
        ["report.css", "history.css"],
        "history.js",
        headline=headline(history),
        history=history,
        tables=[runs(history), groups(history)],
        new_rules=[*_new_rules(history)],
        legend=LEGEND,
        kinds=KINDS,
        shows_text=shows_text,
        index=data_block(index(history) | {"scripts": has_scripts}),
    )


RENDERED: Final[Mapping[Format, Callable[[History], str]]] = {
    "console": lambda history: "".join(f"{line.rstrip()}\n" for line in _lines(history)),
    "json": lambda history: json_text(history.document()),
    "markdown": lambda history: "\n".join(_blocks(history)),
    "html": history_html,
}
"""Each format, and what makes it."""
