"""The scorecard that `safe score` prints: on a terminal, into a pipe, into a file.

A terminal gets what fits it: prose and terms are wrapped, archetypes are cut, ids never. Anything else gets each thing
whole and on one line. Colour only repeats what a word says.
"""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from consumer.offline.pages.kinds import misses_in_words, remarks_on
from consumer.offline.pages.rates import BRACKETS, pass_rate, rate_of
from consumer.offline.pages.words import count_of, own_rules, percent, score, why
from consumer.offline.scored_run import LABELS, CaseLine, Explanation, ScoredRun
from consumer.text import printable
from safe_core import CRITERIA, UNKNOWN_ARCHETYPE, Criterion, Label, Threshold, Thresholds

Line = list[Segment]

_BOLD: Final = Style(bold=True)
# Yellow letters are hard to read on a light terminal, and worse in bold; on a yellow ground black is on every one.
_GREEN, _YELLOW, _RED = Style(color="green"), Style(color="black", bgcolor="yellow"), Style(color="red")
_LABEL_STYLES: Final[Mapping[Label, Style]] = {"Pass": _GREEN, "Review": _YELLOW, "Fail": _RED}
_STYLES_OF_WORDS: Final = {label.upper(): style for label, style in _LABEL_STYLES.items()}
_STATUS_STYLES: Final = {"OK": _GREEN, "WARN": _YELLOW, "FAIL": _RED}

_PLAIN: Final = str.maketrans("═─║│╔╗╠╣╟╢╚╝╤╧┼┌┬┐├┤└┴┘", "=-||+++++++++++++++++++")

_NARROWEST, _WIDEST = 69, 96
"""Cells inside the box: at least so wide; where text is wrapped, at most what is easy to read."""

_LINES_AT_ONCE: Final = 1_000


def print_scorecard(run: ScoredRun, console: Console, *, verbose: bool) -> None:
    """Print the scorecard; `verbose` adds the terms behind each case that does not pass.

    A closed pipe raises BrokenPipeError if the console is a PipedConsole.
    """
    lines = _scorecard(run, _Page.of(console), verbose=verbose)
    while block := list(islice(lines, _LINES_AT_ONCE)):
        console.print(_Finished(block), soft_wrap=True)


def scorecard_text(run: ScoredRun, *, verbose: bool) -> str:
    """Give the scorecard as it goes into a pipe."""
    file = io.StringIO()
    print_scorecard(run, Console(file=file, force_terminal=False, color_system=None), verbose=verbose)
    return file.getvalue()


def _scorecard(run: ScoredRun, page: "_Page", *, verbose: bool) -> Iterator[Line]:
    cases = run.worst_first()
    by_batch = len({case.batch_id for case in cases}) > 1
    yield from _box(run, page)
    yield from _headed("Per-Case Breakdown:", _breakdown(cases, page, by_batch=by_batch))
    not_passed = [case for case in cases if case.label != "Pass"]
    if verbose and not_passed:
        yield from _headed("Cases That Do Not Pass:", _details(run, not_passed, page, by_batch=by_batch))
    yield from _headed("Top Issues:", _issues(run.report["failure_analysis"], page))
    yield from _remarks(run.report, page)
    yield from _closing(run, page)


def _headed(heading: str, lines: Iterable[Line]) -> Iterator[Line]:
    yield []
    yield [Segment(heading, _BOLD)]
    yield from lines


# --- the page ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Page:
    """What the scorecard is printed on; `width` in cells, None where a line may be as long as it is."""

    console: Console
    width: int | None
    ascii_only: bool

    @classmethod
    def of(cls, console: Console) -> "_Page":
        return cls(console, console.width if console.is_terminal else None, console.options.ascii_only)

    def drawn(self, frame: str) -> str:
        """Give box drawing in the characters that can be shown."""
        return frame.translate(_PLAIN) if self.ascii_only else frame

    def plain(self, text: str) -> str:
        """Give the en dash of an interval as a hyphen, where there is none."""
        return text.replace("–", "-") if self.ascii_only else text

    def rule(self, corners: str, widths: Sequence[int]) -> Line:
        """Draw a line across columns: `corners` are its left end, its stroke, its joints and its right end."""
        left, stroke, joint, right = tuple(corners)
        return [Segment(self.drawn(left + joint.join(stroke * (width + 2) for width in widths) + right))]

    def cut(self, text: str, cells: int) -> str:
        """Bring a text to a width; an ellipsis says that something is missing."""
        if cell_len(text) <= cells:
            return set_cell_size(text, cells)
        ellipsis = "..." if self.ascii_only else "…"
        return set_cell_size(text, cells - len(ellipsis)) + ellipsis

    def folded(self, text: str, cells: int | None) -> list[str]:
        """Break a text between words, and within a word only where that alone is too wide."""
        if cells is None or cell_len(text) <= cells:
            return [text]
        # On a terminal too narrow for anything, a column of single letters would help nobody.
        return [line.plain.rstrip() for line in Text(text).wrap(self.console, max(cells, 10))]

    def hanging(self, lead: Line, text: str) -> Iterator[Line]:
        """Put a text behind a lead, what does not fit below itself."""
        indent = _cells(lead)
        first, *others = self.folded(text, None if self.width is None else self.width - indent)
        yield [*lead, Segment(first)]
        yield from ([Segment(" " * indent + other)] for other in others)


class _Finished:
    """Lines printed as they are: not cut, not wrapped, not read as markup, and much faster than rich's own tables."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> Iterator[Segment]:
        end = Segment.line()
        for line in self._lines:
            yield from line
            yield end


def _cells(line: Line) -> int:
    return sum(segment.cell_length for segment in line)


# --- the box ----------------------------------------------------------------------------------------------------------

_METRIC_COLUMNS: Final = ("Metric", "Mean Score", "Pass Rate")
_INTERVALS_FROM: Final = 78
"""The columns of a terminal from which on there is room for the intervals of pass rates."""


def _has_intervals(page: _Page) -> bool:
    return page.width is None or page.width >= _INTERVALS_FROM


def _metric_widths(page: _Page) -> list[int]:
    return [6, 10, len("85.7% (48.7–97.4%)") if _has_intervals(page) else 9]


def _box(run: ScoredRun, page: _Page) -> Iterator[Line]:
    """Draw the sections of the box, each below its rule, as wide as the widest of their lines."""
    room = None if page.width is None else min(page.width - 4, _WIDEST)
    title = [line for words in _title(run.report) for line in page.folded(words, room)]
    totals = _packed(_totals(run.report["summary"]), room)
    heading, metrics = _metrics_heading(page), _metrics(run, page, room)
    remarks = [[Segment(line)] for words in _below_metrics(run) for line in page.folded(words, room)]

    least = _NARROWEST if room is None else min(_NARROWEST, room)
    inner = max(least, *map(cell_len, title), *map(_cells, (*totals, heading, *metrics, *remarks)))
    centred = [[Segment(" " * ((inner - cell_len(line)) // 2)), Segment(line, _BOLD)] for line in title]
    widths = _metric_widths(page)
    columns = [*widths, inner - sum(widths) - 3 * len(widths)]
    sections: tuple[tuple[str, list[int], list[Line]], ...] = (
        ("╔══╗", [inner], centred),
        ("╠══╣", [inner], totals),
        ("╠═╤╣", columns, [heading]),
        ("╟─┼╢", columns, metrics),
        ("╠═╧╣", columns, remarks),
        ("╚══╝", [inner], []),
    )
    for corners, across, lines in sections:
        yield page.rule(corners, across)
        yield from (_framed(line, inner, page) for line in lines)


def _framed(line: Line, inner: int, page: _Page) -> Line:
    return [Segment(page.drawn("║ ")), *line, Segment(" " * (inner - _cells(line)) + page.drawn(" ║"))]


def _title(report: Mapping[str, Any]) -> tuple[str, str]:
    return f"SAFE v0 Scorecard - {printable(report['concern_id'])}", f"Batch: {printable(report['batch_id'])}"


def _totals(summary: Mapping[str, Any]) -> list[Segment]:
    total = summary["total_cases"]
    counts = [(label, summary[label.lower()]) for label in LABELS]
    return [
        Segment(f"Total Cases: {total}"),
        *(Segment(f"{label}: {n} ({percent(n / total)})", _LABEL_STYLES[label] if n else None) for label, n in counts),
    ]


def _packed(parts: Sequence[Segment], room: int | None) -> list[Line]:
    """Put the parts on one line, if need be closer together, or else as many on each line as there is room for."""
    lines = _filled(parts, " " * 4, room)
    return lines if len(lines) == 1 else _filled(parts, " " * 2, room)


def _filled(parts: Sequence[Segment], gap: str, room: int | None) -> list[Line]:
    lines: list[Line] = [[]]
    for part in parts:
        longer = [*lines[-1], Segment(gap), part] if lines[-1] else [part]
        if room is None or _cells(longer) <= room:
            lines[-1] = longer
        else:
            lines.append([part])
    return lines


def _metrics_heading(page: _Page) -> Line:
    names = [name.center(width) for name, width in zip(_METRIC_COLUMNS, _metric_widths(page), strict=True)]
    return [Segment(page.drawn(" │ ").join([*names, "Status"]))]


def _metrics(run: ScoredRun, page: _Page, room: int | None) -> list[Line]:
    lines: list[Line] = []
    report = run.report
    for criterion in CRITERIA:
        bounds, mean = report["configuration"]["thresholds"][criterion], report["mean_scores"][criterion]
        violations = _violations(run.cases) if criterion == "AH" else 0
        status, reason = _status(mean, bounds["review"], bounds["pass"], violations)
        share, total = report["pass_rates"][criterion], report["total_cases"]
        rate = rate_of(share, total) if _has_intervals(page) else percent(share)
        shown = criterion, score(mean, bounds["review"], bounds["pass"]), rate
        before, below = (_metric_cells(cells, page) for cells in (shown, ("", "", "")))
        below += " " * (len(status) + 1)
        first, *others = page.folded(reason, None if room is None else room - len(below))
        lines.append([Segment(before), Segment(status, _STATUS_STYLES[status]), Segment(f" {first}")])
        lines.extend([Segment(below + other)] for other in others)
    return lines


def _metric_cells(cells: Sequence[str], page: _Page) -> str:
    widths = _metric_widths(page)
    return "".join(cell.center(width) + page.drawn(" │ ") for cell, width in zip(cells, widths, strict=True))


def _violations(cases: Iterable[CaseLine]) -> int:
    return sum(len(case.row.details.ah_violations) for case in cases if case.row.scores.AH < 1)


def _status(mean: float, review: float, pass_: float, violations: int) -> tuple[str, str]:
    """Judge a mean by the default thresholds; a forbidden term is a warning however high the mean is."""
    used = [f"{count_of(violations, 'violation')} across batch"] if violations else []
    if mean < review:
        reasons = [f"mean {score(mean, review, pass_)} below review {review}", *used]
        return "FAIL", f"({', '.join(reasons)})"
    if used:
        return "WARN", f"({used[0]})"
    if mean < pass_:
        return "WARN", f"(mean {score(mean, review, pass_)} below pass {pass_})"
    return "OK", ""


def _below_metrics(run: ScoredRun) -> Iterator[str]:
    yield f"Composite: {score(run.report['mean_scores']['composite'])}"
    rules = {case.rules for case in run.cases}
    strict = {each.strict_ah for each in rules}
    if True in strict:
        yield f"Strict AH{' for some cases' if False in strict else ''}: one forbidden term makes AH 0"
    default = run.report["configuration"]["thresholds"]
    if any(_differ(each.thresholds, default) for each in rules):
        yield "Some cases have thresholds of their own; the status goes by the default ones"


def _differ(thresholds: Thresholds, document: Mapping[Criterion, Mapping[str, float]]) -> bool:
    own = {c: {"pass": getattr(thresholds, c).pass_, "review": getattr(thresholds, c).review} for c in CRITERIA}
    return own != document


# --- each case --------------------------------------------------------------------------------------------------------

_LEAST_ARCHETYPE: Final = 5
"""Cells that an archetype keeps when it is cut."""


def _breakdown(cases: Sequence[CaseLine], page: _Page, *, by_batch: bool) -> Iterator[Line]:
    columns = _columns(cases, by_batch=by_batch)
    widths = {name: max(cell_len(name), *map(cell_len, cells)) for name, cells in columns.items()}
    if page.width is not None:
        too_wide = max(0, sum(widths.values()) + 3 * len(widths) + 1 - page.width)
        widths["Archetype"] -= too_wide
        if too_wide and widths["Archetype"] < _LEAST_ARCHETYPE:
            return _stacked(columns, widths, page)
        columns["Archetype"] = [page.cut(name, widths["Archetype"]) for name in columns["Archetype"]]
    return _table(columns, widths, page)


def _columns(cases: Sequence[CaseLine], *, by_batch: bool) -> dict[str, list[str]]:
    return {
        "Test ID": [printable(case.test_id) for case in cases],
        **({"Batch": [printable(case.batch_id) for case in cases]} if by_batch else {}),
        "Archetype": [printable(case.archetype or UNKNOWN_ARCHETYPE) for case in cases],
        **{criterion: [_score_of(case, criterion) for case in cases] for criterion in CRITERIA},
        "Label": [_label(case) for case in cases],
    }


def _score_of(case: CaseLine, criterion: Criterion) -> str:
    threshold: Threshold = getattr(case.rules.thresholds, criterion)
    return score(getattr(case.row.scores, criterion), threshold.review, threshold.pass_)


def _label(case: CaseLine) -> str:
    remark = "" if not case.row.empty_output else " (empty)" if case.answered else " (no output)"
    return case.label.upper() + remark


def _table(columns: Mapping[str, Sequence[str]], widths: Mapping[str, int], page: _Page) -> Iterator[Line]:
    left, between, right = (page.drawn(bar) for bar in ("│ ", " │ ", " │"))
    headings = [name.center(width) if name in CRITERIA else page.cut(name, width) for name, width in widths.items()]
    yield page.rule("┌─┬┐", list(widths.values()))
    yield [Segment(left + between.join(headings) + right)]
    yield page.rule("├─┼┤", list(widths.values()))
    padded = ([set_cell_size(cell, widths[name]) for cell in cells] for name, cells in columns.items())
    for *cells, label in zip(*padded, strict=True):
        yield [Segment(left + between.join(cells) + between), Segment(label, _style_of(label)), Segment(right)]
    yield page.rule("└─┴┘", list(widths.values()))


def _stacked(columns: Mapping[str, Sequence[str]], widths: Mapping[str, int], page: _Page) -> Iterator[Line]:
    """Give each case lines of its own, where a table would be wider than the terminal even with archetypes cut."""
    for test_id, *batch, archetype, cr, ah, ac, label in zip(*columns.values(), strict=True):
        names = "  ".join([test_id, *(f"({name})" for name in batch)])
        yield [Segment("  "), Segment(label.ljust(widths["Label"]), _style_of(label)), Segment(f"  {names}")]
        yield from page.hanging([Segment(f"    CR {cr}  AH {ah}  AC {ac}  ")], archetype)


def _style_of(label: str) -> Style:
    return _STYLES_OF_WORDS[label.split(maxsplit=1)[0]]


# --- the terms behind them --------------------------------------------------------------------------------------------

_TERMS: Final[Mapping[Criterion, Sequence[tuple[str, str, Style]]]] = {
    "CR": (("found", "cr_found", _GREEN), ("missing", "cr_missing", _RED)),
    "AH": (("violation", "ah_violations", _RED),),
    "AC": (("found", "ac_found", _GREEN), ("missing", "ac_missing", _RED)),
}


def _details(run: ScoredRun, cases: Iterable[CaseLine], page: _Page, *, by_batch: bool) -> Iterator[Line]:
    for case in cases:
        batch = f"  ({printable(case.batch_id)})" if by_batch else ""
        yield []
        yield [Segment(_label(case), _LABEL_STYLES[case.label]), Segment(f"  {printable(case.test_id)}{batch}")]
        yield from _criteria(case, run.explanation_of(case), page)


def _criteria(case: CaseLine, explanation: Explanation | None, page: _Page) -> Iterator[Line]:
    details, vacuous = case.row.details, case.row.vacuous
    missed = {shortfall.criterion: shortfall for shortfall in case.shortfalls}
    for criterion in CRITERIA:
        line = [Segment(f"  {criterion} {_score_of(case, criterion)}")]
        if criterion in missed:
            name, bound = missed[criterion].bound
            line.append(
                Segment(f"  below {name} {bound}", _LABEL_STYLES["Fail" if missed[criterion].fails else "Review"])
            )
        elif getattr(vacuous, criterion):
            line.append(Segment("  nothing to check"))
        yield line
        for word, field, style in _TERMS[criterion]:
            terms = getattr(details, field)
            remarks = remarks_on(explanation if word == "missing" else None, criterion, terms)
            for term, remark in zip(terms, remarks, strict=True):
                told = _quoted(term) + ("" if remark is None else f" ({remark})")
                yield from page.hanging([Segment(f"    {word:9}", style), Segment("  ")], told)


# --- the closing ------------------------------------------------------------------------------------------------------

_ISSUES: Final = (
    ("CR Misses:", "common_CR_misses", "signal", "miss_count", "missed"),
    ("AH Violations:", "common_AH_violations", "term", "count", "used"),
    ("AC Misses:", "common_AC_misses", "phrase", "miss_count", "missed"),
)


def _issues(analysis: Mapping[str, Any], page: _Page) -> Iterator[Line]:
    """Name what was missed or used most often; a term that a case lists twice counts twice (contract.md, "Ties")."""
    for heading, kind, text, count, verb in _ISSUES:
        lead = heading
        for issue in analysis[kind]:
            times = "once" if issue[count] == 1 else f"{issue[count]} times"
            yield from page.hanging([Segment(f"  {lead:16}")], f"{_quoted(issue[text])} ({verb} {times})")
            lead = ""
    if not any(analysis[kind] for _, kind, *_ in _ISSUES):
        yield [Segment("  none")]


def _remarks(report: Mapping[str, Any], page: _Page) -> Iterator[Line]:
    vacuous = [f"{name if name != 'all' else 'all three'} {n}" for name, n in report["vacuous"].items() if n]
    remarks = (
        ("Why terms were missed: ", misses_in_words(report)),
        ("Scored 1.00 with nothing to check: ", ", ".join(vacuous)),
        ("Empty outputs: ", report["empty_outputs"]),
        ("Missing outputs, scored as empty: ", report["missing_outputs"]),
        ("Not the default rules: ", own_rules(report["configuration"], "thresholds", "weights")),
    )
    said = [(what, shown) for what, shown in remarks if shown]
    if said:
        yield []
    for what, shown in said:
        yield from page.hanging([], printable(f"{what}{shown}"))


def _closing(run: ScoredRun, page: _Page) -> Iterator[Line]:
    summary, verdict = run.report["summary"], run.verdict
    total, passed = summary["total_cases"], summary["pass"]
    counts = ", ".join(f"{summary[label.lower()]} {label}" for label in LABELS)
    yield []
    yield from page.hanging(
        [], page.plain(f"{count_of(total, 'case')}: {counts}; pass rate {pass_rate(passed, total)}")
    )
    yield from page.hanging([], BRACKETS)
    yield [
        Segment("Verdict: ", _BOLD),
        Segment(verdict.upper(), _LABEL_STYLES[verdict]),
        Segment(f" - {why(run)}"),
    ]
    if run.decision is not None:
        yield from page.hanging([], printable(run.decision))


def _quoted(term: str) -> str:
    return f'"{printable(term)}"'
