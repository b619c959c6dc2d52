"""What `safe history` shows: the runs, the noise of groups, the matrix of cases, and what changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from consumer.offline.destinations import Format
from consumer.offline.history import CaseHistory, Group, History, Run
from consumer.offline.pages import html_parts
from consumer.offline.pages.comparison_content import RESPECTS, differing_settings
from consumer.offline.pages.document import Document, Item, Name, Section, Sentence, Table, Texts
from consumer.offline.pages.formats import formats
from consumer.offline.pages.history_data import KINDS, index
from consumer.offline.pages.numbers import BRACKETS, pass_rate, percent, score
from consumer.offline.stored_report import LISTED, Listed
from consumer.text import count_of, named
from safe_core import LABELS, Label

LEGEND: Final = (
    "P Pass, R Review, F Fail, each with the number of required terms found; . no answer; "
    "* from another narrative, not compared."
)

_LETTERS: Final[dict[Label, str]] = {"Pass": "P", "Review": "R", "Fail": "F"}
_LISTED: Final = 20
_SETTINGS, _LONGEST_SETTING = 3, 60


def page(history: History) -> Document:
    """Give the runs, then each case over the runs, then what changed."""
    return Document(
        "history",
        Sentence("Test cases over several runs"),
        "SAFE v0 history",
        f"{count_of(len(history.runs), 'run')}, {count_of(len(history.cases), 'case')}",
        tables=[runs(history), groups(history)],
        notes=[LEGEND, BRACKETS],
        sections=[Section(Sentence("Cases"), [matrix(history)]), new_rules(history), *_changes(history)],
    )


# --- the tables -------------------------------------------------------------------------------------------------------


def runs(history: History) -> Table:
    """Give the runs with their numbers; of means and of what is listed beside the scores, those that any run has."""
    names = dict.fromkeys(name for run in history.runs for name in run.means)
    listed = [what for what in LISTED if any(run.listed(what) is not None for run in history.runs)]
    headings = ("Run", "Name", "Time", "Answered", *LABELS, "Pass rate", "Found terms")
    more = (*(f"Mean {name}" for name in names), *(RESPECTS[what] for what in listed))
    rows = [
        (
            *(str(number), run.name, run.when, _answered(run)),
            *(str(run.side.labelled(label)) for label in LABELS),
            *(pass_rate(run.passes, len(run.side.results)), f"{run.found} of {run.required}"),
            *(score(run.means[name]) if name in run.means else "-" for name in names),
            *(_listed(run, what) for what in listed),
        )
        for number, run in enumerate(history.runs, 1)
    ]
    return Table("Runs", (*headings, *more), rows, texts=3, from_outside=(1,))


def _answered(run: Run) -> str:
    return f"{run.answered} of {len(run.side.results)}" + (f" ({run.mismatches}*)" if run.mismatches else "")


def _listed(run: Run, what: Listed) -> str:
    """Count what is listed beside the scores, with in how many cases it was looked for if not in all that answer."""
    counted = run.listed(what)
    if counted is None:
        return "-"
    count, told = counted
    total = len(run.side.results)
    return str(count) if told == total else f"{count} ({told} of {total} cases checked)"


def matrix(history: History) -> Table:
    """Give a row for each case, and a column for each run."""
    numbers = range(len(history.runs))
    rows = [(case.test_id, *(_cell(case, number) for number in numbers)) for case in history.cases]
    headings = ("Case", *(str(number + 1) for number in numbers))
    return Table("Cases", headings, rows, texts=len(headings), from_outside=(0,))


def _cell(case: CaseHistory, number: int) -> str:
    """Give a case's label in a run as a letter and how many terms were found, with a star for another narrative."""
    label = case.labels[number]
    return "." if label is None else f"{_LETTERS[label]}{case.found[number]}" + "*" * case.mismatched[number]


def groups(history: History) -> Table:
    """Give what differs between repeats of one prompt."""
    passing = ("In every run (pass^k)", "In any run (pass@k)", "In some only")
    headings = ("Group", "Runs", "Cases", *passing, "Lowest rate", "Mean rate", "Highest rate")
    rows = [
        (
            *(group.name, str(len(group.runs)), str(len(group.cases))),
            *(_share(group, count) for count in (group.every, group.any, len(group.flipping))),
            *map(percent, group.rates),
        )
        for group in history.groups
    ]
    return Table("Repeats of one prompt, and the cases that pass", headings, rows, texts=1, from_outside=(0,))


def _share(group: Group, count: int) -> str:
    share = group.share(count)
    return "-" if share is None else f"{count} ({percent(share)})"


# --- what changed -----------------------------------------------------------------------------------------------------


def _section(heading: str, items: Sequence[Item]) -> Section:
    return Section(Sentence(f"{heading} ({len(items)})"), items, most=_LISTED)


def new_rules(history: History) -> Section:
    """Give the runs whose rules are not those of the run before, with the settings that differ."""
    items = []
    for number, (before, run) in enumerate(pairwise(history.runs), 2):
        if before.side.fingerprint != run.side.fingerprint:
            differ = differing_settings(before.side.configuration, run.side.configuration)
            settings = Name(named(differ, _SETTINGS, _LONGEST_SETTING))
            items.append(Item(Sentence(f"run {number}: {{}}", (settings,))))
    return _section("Scored by other rules than the run before", items)


def _changes(history: History) -> Iterator[Section]:
    """Give what never passed, what flips, what got lost when, what is new, and which terms are found least."""
    cases = history.cases
    yield _section("Never passed", [_item(case) for case in cases if case.never_passed])
    flips = [_item(case, count_of(case.flips, "change")) for case in cases if case.flips]
    yield _section("Changed between Pass and another label", flips)
    lost = [_item(case, ", ".join(_losses(history, case))) for case in cases if case.losses]
    yield _section("Stopped passing, and in which run", lost)
    for what in LISTED:
        told = ((case, case.newly_listed(what)) for case in cases)
        new = [_item(case, below=[Texts.of(f"run {n + 1}", texts) for n, texts in each]) for case, each in told if each]
        yield _section(f"New {RESPECTS[what].lower()}, and in which run", new)
    yield _section("Missed required terms, least found first (+ found, - missed, . neither)", _missed(history))


def _item(case: CaseHistory, said: str = "", below: Sequence[Texts] = ()) -> Item:
    return Item(Sentence(f"{{}}: {said}" if said else "{}", (Name(case.test_id),)), below=below)


def _losses(history: History, case: CaseHistory) -> Iterator[str]:
    """Say in which runs a case stopped passing, and what else than its output had changed."""
    for before, after in case.losses:
        changed = [] if case.asks_alike(before, after) else ["required terms changed"]
        if history.runs[before].side.fingerprint != history.runs[after].side.fingerprint:
            changed.append("other rules")
        yield f"run {after + 1}" + (f" ({', '.join(changed)})" if changed else "")


def _missed(history: History) -> list[Item]:
    """Give the terms that some run misses, and in which runs each was found: "+-." of three."""
    items = []
    for term in sorted(history.terms, key=lambda term: (term.times_found / (term.asked or 1), -term.asked)):
        if term.times_found < term.asked:
            marks = "".join("." if found is None else "-+"[found] for found in term.found)
            how = f"{term.criterion} {marks} found in {term.times_found} of {term.asked}"
            items.append(Item(Sentence(f"{{}} {{}} {how}", (term.term, Name(term.test_id)))))
    return items


# --- the formats ------------------------------------------------------------------------------------------------------


def history_html(history: History, *, has_scripts: bool = False, shows_text: bool = False) -> str:
    """Give the HTML page: the line of the pass rate, the cases, and two runs side by side.

    It loads nothing or, with `has_scripts`, what run_script() gives of each run, when a case is opened.
    """
    return html_parts.page(
        "history.html.j2",
        "history",
        ["report.css", "history.css"],
        "history.js",
        html_parts.SCRIPTS_BESIDE if has_scripts else "",
        history=history,
        tables=[runs(history), groups(history)],
        new_rules=new_rules(history),
        legend=LEGEND,
        kinds=KINDS,
        shows_text=shows_text,
        index=html_parts.data_block(index(history) | {"scripts": has_scripts}),
    )


RENDERED: Final[Mapping[Format, Callable[[History], str]]] = {
    **formats(page, History.document),
    "html": history_html,
}
"""Each format, and what makes it; the HTML page is one to work with, and has a layout of its own."""
