"""The scorecard that `safe score` prints: on a terminal, into a pipe, into a file.

A terminal gets what fits it: prose and terms are wrapped, archetypes are cut, ids never. Anything else gets each thing
whole and on one line. Colour only repeats what a word says.
"""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from consumer.offline.pages import report_content as content
from consumer.offline.pages.console_layout import BOLD, GREEN, LABEL_STYLES, RED, YELLOW, Layout, Line, section
from consumer.offline.pages.numbers import BRACKETS, mean_score, pass_rate, percent, rate_of, score
from consumer.offline.scored_run import CaseLine, Explanation, ScoredRun
from consumer.text import count_of, printable, quoted
from safe_core import CRITERIA, LABELS, UNKNOWN_ARCHETYPE
from safe_core.decimals import compare_decimals

_STYLES_OF_WORDS: Final = {label.upper(): style for label, style in LABEL_STYLES.items()}
_STATUS_STYLES: Final = {"OK": GREEN, "WARN": YELLOW, "FAIL": RED}

_PLAIN: Final = str.maketrans("═─║│╔╗╠╣╟╢╚╝╤╧┼┌┬┐├┤└┴┘", "=-||+++++++++++++++++++")

_NARROWEST, _WIDEST = 69, 96
"""The least width inside the box, in cells, and the greatest where text is wrapped, which is still easy to read."""


def print_scorecard(run: ScoredRun, console: Console, *, verbose: bool) -> None:
    """Print the scorecard; `verbose` adds the terms behind each case that does not pass.

    A closed pipe raises BrokenPipeError if the console is a PipedConsole.
    """
    layout = Layout.of(console)
    layout.print(_scorecard(run, layout, verbose=verbose))


def scorecard_text(run: ScoredRun, *, verbose: bool) -> str:
    """Give the scorecard as it is printed into a pipe."""
    file = io.StringIO()
    print_scorecard(run, Console(file=file, force_terminal=False, color_system=None), verbose=verbose)
    return file.getvalue()


def _scorecard(run: ScoredRun, layout: Layout, *, verbose: bool) -> Iterator[Line]:
    cases = run.worst_first()
    yield from _box(run, layout)
    told = [layout.shown(line) for line in content.lenient_in_words(run.report)]
    notes = [*told, content.LENIENT] if told else []
    lines = (line for note in notes for line in layout.hanging(Text("  "), note))
    yield from section([Text("Allowing For Other Words:", BOLD)], lines)
    yield from section([Text("Per-Case Breakdown:", BOLD)], _breakdown(cases, layout, by_batch=run.has_batches))
    if verbose:
        not_passed = (case for case in cases if case.label != "Pass")
        yield from section([Text("Cases That Do Not Pass:", BOLD)], _details(run, not_passed, layout))
    yield from section([Text("Top Issues:", BOLD)], _issues(run.report, layout))
    remarks = (sentence.written(printable) for sentence in (*content.why_missed(run), *content.worth_knowing(run)))
    yield from section([], (line for remark in remarks for line in layout.hanging(Text(), remark)))
    yield from _closing(run, layout)


def _drawn(frame: str, layout: Layout) -> str:
    """Give a frame in ASCII if the console can show nothing else."""
    return frame.translate(_PLAIN) if layout.ascii_only else frame


def _rule(corners: str, widths: Sequence[int], layout: Layout) -> Line:
    """Draw a line across columns: `corners` are its left end, its stroke, its joints and its right end."""
    left, stroke, joint, right = tuple(corners)
    return [Segment(_drawn(left + joint.join(stroke * (width + 2) for width in widths) + right, layout))]


def _cut(text: str, cells: int, layout: Layout) -> str:
    """Bring a text to a width; an ellipsis says that something is missing."""
    if cell_len(text) <= cells:
        return set_cell_size(text, cells)
    return set_cell_size(text, cells - len(layout.ellipsis)) + layout.ellipsis


# --- the box ----------------------------------------------------------------------------------------------------------

_METRIC_COLUMNS: Final = ("Metric", "Mean Score", "Pass Rate")
_INTERVALS_FROM: Final = 78
"""A terminal with at least this many columns has room for the intervals of pass rates."""


def _has_intervals(layout: Layout) -> bool:
    return layout.width is None or layout.width >= _INTERVALS_FROM


def _metric_widths(layout: Layout) -> list[int]:
    return [6, 10, len("85.7% (48.7–97.4%)") if _has_intervals(layout) else 9]


def _box(run: ScoredRun, layout: Layout) -> Iterator[Line]:
    """Draw the sections of the box, each below its rule, as wide as the widest of their lines."""
    room = None if layout.width is None else min(layout.width - 4, _WIDEST)
    report = run.report
    names = f"SAFE v0 Scorecard - {printable(report['concern_id'])}", f"Batch: {printable(report['batch_id'])}"
    title = [line for name in names for line in layout.within(Text(layout.shown(name), BOLD), room)]
    totals = _packed(_totals(report["summary"]), room)
    heading, metrics = _metric_row(_METRIC_COLUMNS, Text("Status"), layout), _metrics(run, layout, room)
    composite = Text(f"Composite: {score(report['mean_scores']['composite'])}")

    least = _NARROWEST if room is None else min(_NARROWEST, room)
    inner = max(least, *(line.cell_len for line in (*title, *totals, heading, *metrics, composite)))
    centred = [Text(" " * ((inner - line.cell_len) // 2)) + line for line in title]
    widths = _metric_widths(layout)
    columns = [*widths, inner - sum(widths) - 3 * len(widths)]
    sections: tuple[tuple[str, list[int], Sequence[Text]], ...] = (
        ("╔══╗", [inner], centred),
        ("╠══╣", [inner], totals),
        ("╠═╤╣", columns, [heading]),
        ("╟─┼╢", columns, metrics),
        ("╠═╧╣", columns, [composite]),
        ("╚══╝", [inner], []),
    )
    left, right = _drawn("║ ", layout), _drawn(" ║", layout)
    for corners, across, lines in sections:
        yield _rule(corners, across, layout)
        yield from (Text.assemble(left, line, " " * (inner - line.cell_len), right) for line in lines)


def _totals(summary: Mapping[str, Any]) -> Iterator[Text]:
    total = summary["total_cases"]
    yield Text(f"Total Cases: {total}")
    for label in LABELS:
        count = summary[label.lower()]
        yield Text(f"{label}: {count} ({percent(count / total)})", LABEL_STYLES[label] if count else "")


def _packed(parts: Iterable[Text], room: int | None) -> Sequence[Text]:
    """Put the parts on one line, closer together if they need it; if they still do not fit, on several lines."""
    texts = list(parts)
    lines = _filled(texts, " " * 4, room)
    return lines if len(lines) == 1 else _filled(texts, " " * 2, room)


def _filled(parts: Iterable[Text], gap: str, room: int | None) -> list[Text]:
    lines: list[Text] = []
    for part in parts:
        longer = Text.assemble(lines[-1], gap, part) if lines else part
        if lines and (room is None or longer.cell_len <= room):
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


def _metric_row(cells: Sequence[str], status: Text, layout: Layout) -> Text:
    bar = _drawn(" │ ", layout)
    return Text.assemble(*(cell.center(n) + bar for cell, n in zip(cells, _metric_widths(layout), strict=True)), status)


def _metrics(run: ScoredRun, layout: Layout, room: int | None) -> list[Text]:
    lines: list[Text] = []
    report = run.report
    for criterion in CRITERIA:
        bounds, mean = report["configuration"]["thresholds"][criterion], report["mean_scores"][criterion]
        used = sum(len(case.row.details.ah_violations) for case in run.cases if case.row.scores.AH < 1)
        status, reason = _status(mean, bounds["review"], bounds["pass"], used if criterion == "AH" else 0)
        share, total = report["pass_rates"][criterion], report["total_cases"]
        if report["vacuous"][criterion] == total:
            reason = f"({content.NOTHING_TO_CHECK})"
        rate = rate_of(share, total) if _has_intervals(layout) else percent(share)
        cells = criterion, mean_score(mean, bounds["review"], bounds["pass"]), layout.shown(rate)
        lead, below = Text.assemble((status, _STATUS_STYLES[status]), " "), Text(" " * (len(status) + 1))
        taken = _metric_row(cells, lead, layout).cell_len
        first, *others = layout.within(Text(reason), None if room is None else room - taken)
        lines.append(_metric_row(cells, lead + first, layout))
        lines.extend(_metric_row(("", "", ""), below + other, layout) for other in others)
    return lines


def _status(mean: float, review: float, pass_: float, violations: int) -> tuple[str, str]:
    """Judge a mean by the default thresholds; a forbidden term is a warning however high the mean is."""
    used = [f"{count_of(violations, 'violation')} across batch"] if violations else []
    if compare_decimals(mean, review) < 0:
        reasons = [f"mean {mean_score(mean, review, pass_)} below review {review}", *used]
        return "FAIL", f"({', '.join(reasons)})"
    if used:
        return "WARN", f"({used[0]})"
    if compare_decimals(mean, pass_) < 0:
        return "WARN", f"(mean {mean_score(mean, review, pass_)} below pass {pass_})"
    return "OK", ""


# --- each case --------------------------------------------------------------------------------------------------------

_LEAST_ARCHETYPE: Final = 5
"""The least number of cells to which an archetype is cut."""


def _breakdown(cases: Sequence[CaseLine], layout: Layout, *, by_batch: bool) -> Iterator[Line]:
    columns = {
        name: [layout.shown(cell) for cell in cells] for name, cells in _columns(cases, by_batch=by_batch).items()
    }
    widths = {name: max(cell_len(name), *map(cell_len, cells)) for name, cells in columns.items()}
    if layout.width is not None:
        too_wide = max(0, sum(widths.values()) + 3 * len(widths) + 1 - layout.width)
        widths["Archetype"] -= too_wide
        if too_wide and widths["Archetype"] < _LEAST_ARCHETYPE:
            return _stacked(columns, widths, layout)
        columns["Archetype"] = [_cut(name, widths["Archetype"], layout) for name in columns["Archetype"]]
    return _table(columns, widths, layout)


def _columns(cases: Sequence[CaseLine], *, by_batch: bool) -> dict[str, list[str]]:
    return {
        "Test ID": [printable(case.test_id) for case in cases],
        **({"Batch": [printable(case.batch_id) for case in cases]} if by_batch else {}),
        "Archetype": [printable(case.archetype or UNKNOWN_ARCHETYPE) for case in cases],
        **{name: [content.score_of(case.judged[number]) for case in cases] for number, name in enumerate(CRITERIA)},
        "Label": [_label(case) for case in cases],
    }


_REMARKS: Final = {
    "no output": " (no output)",
    "empty output": " (empty)",
    content.FAILED_GENERATION: " (failed generation)",
    content.MISMATCH: " (mismatch)",
}


def _label(case: CaseLine) -> str:
    about = _REMARKS.get(content.about_output(case) or "", "")
    return case.label.upper() + about


def _table(columns: Mapping[str, Sequence[str]], widths: Mapping[str, int], layout: Layout) -> Iterator[Line]:
    left, between, right = (_drawn(bar, layout) for bar in ("│ ", " │ ", " │"))
    headings = [name.center(width) if name in CRITERIA else _cut(name, width, layout) for name, width in widths.items()]
    yield _rule("┌─┬┐", list(widths.values()), layout)
    yield [Segment(left + between.join(headings) + right)]
    yield _rule("├─┼┤", list(widths.values()), layout)
    padded = ([set_cell_size(cell, widths[name]) for cell in cells] for name, cells in columns.items())
    for *cells, label in zip(*padded, strict=True):
        yield [Segment(left + between.join(cells) + between), Segment(label, _style_of(label)), Segment(right)]
    yield _rule("└─┴┘", list(widths.values()), layout)


def _stacked(columns: Mapping[str, Sequence[str]], widths: Mapping[str, int], layout: Layout) -> Iterator[Line]:
    """Give each case its own lines, for a terminal too narrow for the table even with archetypes cut."""
    for test_id, *batch, archetype, cr, ah, ac, label in zip(*columns.values(), strict=True):
        names = "  ".join([test_id, *(f"({name})" for name in batch)])
        yield [Segment("  "), Segment(label.ljust(widths["Label"]), _style_of(label)), Segment(f"  {names}")]
        yield from layout.hanging(Text(f"    CR {cr}  AH {ah}  AC {ac}  "), archetype)


def _style_of(label: str) -> Style:
    return _STYLES_OF_WORDS[label.split(maxsplit=1)[0]]


# --- the terms behind them --------------------------------------------------------------------------------------------

_TERM_STYLES: Final = {"found": GREEN, "missing": RED, "used": RED}


def _details(run: ScoredRun, cases: Iterable[CaseLine], layout: Layout) -> Iterator[Line]:
    by_batch = run.has_batches
    for case in cases:
        batch = f"  ({printable(case.batch_id)})" if by_batch else ""
        yield Text()
        yield [Segment(_label(case), LABEL_STYLES[case.label]), Segment(f"  {printable(case.test_id)}{batch}")]
        yield from _criteria(case, run.explanation_of(case), layout)


def _criteria(case: CaseLine, explanation: Explanation | None, layout: Layout) -> Iterator[Line]:
    terms = content.terms_of(case, explanation)
    for judged in case.judged:
        line = [Segment(f"  {judged.criterion} {content.score_of(judged)}")]
        if judged.missed:
            line.append(Segment(f"  below {judged.missed}", LABEL_STYLES[judged.label]))
        elif getattr(case.row.vacuous, judged.criterion):
            line.append(Segment(f"  {content.NOTHING_TO_CHECK}"))
        if beside := content.lenient_of(case, judged.criterion):
            line.append(Segment(f"  ({beside})"))
        yield line
        for each in terms:
            if each.criterion == judged.criterion:
                lead = Text.assemble((f"    {each.how:9}", _TERM_STYLES[each.how]), "  ")
                for term in each.terms:
                    yield from layout.hanging(lead, term.written(quoted))


# --- the closing ------------------------------------------------------------------------------------------------------

_HEADINGS: Final = {"CR": "CR Misses:", "AH": "AH Violations:", "AC": "AC Misses:"}


def _issues(report: Mapping[str, Any], layout: Layout) -> Iterator[Line]:
    """Name what was missed or used most often."""
    lead = ""
    for criterion, issues in groupby(content.most_frequent(report), key=lambda each: each.criterion):
        lead = _HEADINGS[criterion]
        for issue in issues:
            verb = "used" if issue.how == "used" else "missed"
            times = "once" if issue.times == 1 else f"{issue.times} times"
            yield from layout.hanging(Text(f"  {lead:16}"), f"{quoted(issue.term)} ({verb} {times})")
            lead = " "
    if not lead:
        yield Text("  none")


def _closing(run: ScoredRun, layout: Layout) -> Iterator[Line]:
    summary, verdict = run.report["summary"], run.verdict
    total, passed = summary["total_cases"], summary["pass"]
    counts = ", ".join(f"{summary[label.lower()]} {label}" for label in LABELS)
    rate = layout.shown(pass_rate(passed, total))
    yield Text()
    yield from layout.hanging(Text(), f"{count_of(total, 'case')}: {counts}; pass rate {rate}")
    yield from layout.hanging(Text(), BRACKETS)
    yield Text.assemble(("Verdict: ", BOLD), (verdict.upper(), LABEL_STYLES[verdict]), f" - {content.why(run)}")
    if run.decision is not None:
        yield from layout.hanging(Text(), printable(run.decision))
