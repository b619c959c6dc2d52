"""The report as one HTML page: the verdict first, then the evidence. It loads nothing, and opens from disk.

Whatever a template shows goes through printable() and is then escaped; should something get by, the page's own policy
forbids every script and style but those two that it names by their hashes.
"""

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from consumer.offline.pages.kinds import KIND_ADVICE, KIND_LABELS, NOT_IN_NARRATIVE, misses_in_words
from consumer.offline.pages.quotes import around, differences, element_of, place_of, text_of
from consumer.offline.pages.rates import BRACKETS, pass_rate
from consumer.offline.pages.words import (
    count_of,
    counted,
    percent,
    score,
    settings_of,
    terms_against,
    why,
    without_output,
    worth_knowing,
)
from consumer.offline.scored_run import LABELS, CaseLine, Explanation, ScoredRun
from consumer.text import printable
from safe_core import CRITERIA, UNKNOWN_ARCHETYPE, Criterion, Output
from safe_core.diagnosis import KINDS, Kind, Miss, Occurrence, Passage
from safe_core.lint import Ceiling

MARK: Final = '<meta name="generator" content="SAFE v0 report">'
"""It stands in the first lines of each such page; by it SAFE knows its own."""


def render_html(run: ScoredRun) -> str:
    """Give the page; it quotes outputs only where the run shows text."""
    style, script = _block("report.css"), _block("report.js")
    explanations = run.explanations or {}
    return _template().render(
        mark=_ours(MARK),
        policy=_ours(_policy(style, script)),
        style=_ours(style),
        script=_ours(script),
        run=run,
        report=run.report,
        tables=_Tables.of(run),
        filters=_filters(run),
        cases=(_case(case, explanations.get(case.test_id), run) for case in run.worst_first()),
    )


@cache
def _block(name: str) -> str:
    return files("consumer.offline").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("consumer.offline"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "score": score}
    environment.globals |= {
        "brackets": BRACKETS,
        "count_of": count_of,
        "settings_of": settings_of,
        "why": why,
    }
    return environment.get_template("report.html.j2")


def _shown(value: object) -> object:
    """Escape what could fool a reader in anything that the template shows, unless it is markup already."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _ours(markup: str) -> Markup:
    return Markup(markup)  # noqa: S704 (it holds no text from outside)


def _policy(style: str, script: str) -> str:
    """Give the content security policy: nothing may be loaded, and of what stands in the page only these two count."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(block: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()}"


# --- the tables -------------------------------------------------------------------------------------------------------

_CRITERION_NAMES: Final[Mapping[Criterion, str]] = {
    "CR": "CR, correct recall",
    "AH": "AH, avoids harm",
    "AC": "AC, all content",
}
_COMMON: Final = (
    ("common_CR_misses", "signal", "miss_count", "CR missing"),
    ("common_AH_violations", "term", "count", "AH used"),
    ("common_AC_misses", "phrase", "miss_count", "AC missing"),
)


class _Total(NamedTuple):
    label: str
    cases: int
    share: str
    before: int  # cases of the labels before it: where its part of the bar begins


@dataclass(frozen=True, slots=True)
class _Tables:
    """What stands above the cases: rows of cells, and sentences; None where there is nothing to say."""

    totals: Sequence[_Total]
    rate: str
    criteria: Sequence[Sequence[str]]
    archetypes: Sequence[Sequence[str]]
    common: Sequence[Sequence[str]]
    misses: str | None
    kinds: Sequence[Sequence[str]]
    ceiling: str | None
    remarks: Sequence[str]

    @classmethod
    def of(cls, run: ScoredRun) -> "_Tables":
        report = run.report
        kinds: Mapping[Kind, int] = report.get("miss_kinds") or {}
        return cls(
            totals=[*_totals(report["summary"])],
            rate=pass_rate(report["summary"]["pass"], report["summary"]["total_cases"]),
            criteria=[*_criteria(run)],
            archetypes=[*_archetypes(run)],
            common=[*_common(report["failure_analysis"])],
            misses=misses_in_words(report),
            kinds=[(KIND_LABELS[kind], KIND_ADVICE[kind], str(count)) for kind, count in kinds.items()],
            ceiling=Ceiling.parse(report["ceiling"]).sentence if "ceiling" in report else None,
            remarks=[*worth_knowing(run)],
        )


def _common(analysis: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, term, times, what in _COMMON:
        yield from ((what, entry[term], str(entry[times])) for entry in analysis[name])


def _totals(summary: Mapping[str, Any]) -> Iterator[_Total]:
    before = 0
    for label in reversed(LABELS):
        cases = summary[label.lower()]
        yield _Total(label, cases, percent(cases / summary["total_cases"]), before)
        before += cases


def _criteria(run: ScoredRun) -> Iterator[tuple[str, ...]]:
    means, thresholds = run.report["mean_scores"], run.report["configuration"]["thresholds"]
    for criterion, name in _CRITERION_NAMES.items():
        review, pass_ = thresholds[criterion]["review"], thresholds[criterion]["pass"]
        passes = sum(getattr(case.row.passed, criterion) for case in run.cases)
        rate = pass_rate(passes, len(run.cases))
        yield name, score(means[criterion], review, pass_), rate, str(review), str(pass_)
    yield "composite", score(means["composite"]), "", "", ""


def _archetypes(run: ScoredRun) -> Iterator[tuple[str, ...]]:
    passes = Counter(case.archetype or UNKNOWN_ARCHETYPE for case in run.cases if case.label == "Pass")
    for name, group in run.report["by_archetype"].items():
        means = (score(group[f"mean_{criterion}"]) for criterion in CRITERIA)
        yield name, str(group["count"]), *means, pass_rate(passes[name], group["count"])


# --- the filters ------------------------------------------------------------------------------------------------------


class _Option(NamedTuple):
    value: str
    text: str


class _Filter(NamedTuple):
    """A choice among cases; `name` is that of the attribute of a case that holds its values."""

    name: str
    caption: str
    options: Sequence[_Option]


_ALIEN: Final = "not_in_narrative"
_KIND_WORDS: Final[Mapping[str, str]] = {_ALIEN: "not in the narrative"} | {kind: KIND_LABELS[kind] for kind in KINDS}


def _filters(run: ScoredRun) -> list[_Filter]:
    """Give the filters for which there is something to choose."""
    cases = run.worst_first()
    kinds = (kind for each in (run.explanations or {}).values() for kind in _kinds(each))
    labels = Counter(case.label for case in cases)
    archetypes = Counter(sorted(case.archetype or UNKNOWN_ARCHETYPE for case in cases))
    criteria = Counter(shortfall.criterion for case in cases for shortfall in case.shortfalls)
    filters = (
        _Filter("label", "Label", _options(labels, {label: label for label in labels})),
        _Filter("archetype", "Archetype", _options(archetypes, {name: name for name in archetypes})),
        _Filter("missed", "Missed", _options(criteria, _CRITERION_NAMES)),
        _Filter("kind", "Kind of miss", _options(Counter(kinds), _KIND_WORDS)),
    )
    return [each for each in filters if each.options]


def _options(cases: Mapping[Any, int], words: Mapping[Any, str]) -> list[_Option]:
    """Give the values that occur, in the order of the words for them, with the count of their cases."""
    return [_Option(value, f"{text} ({cases[value]})") for value, text in words.items() if cases.get(value)]


def _kinds(explanation: Explanation) -> list[str]:
    """Give the kinds of a case's misses, each once."""
    misses = explanation.diagnosis.misses
    kinds: set[str] = {miss.kind for miss in misses}
    return sorted(kinds | {_ALIEN for miss in misses if miss.in_narrative == "no"})


# --- the cases --------------------------------------------------------------------------------------------------------


class _Judged(NamedTuple):
    """A score, with the bound that it missed and what it is made of."""

    criterion: str
    score: str
    missed: str | None
    counted: str


class _Piece(NamedTuple):
    """A stretch of a text and the element that marks it, "" for none."""

    tag: str
    text: str


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of a case: how it stands there, and what is told of it where the run was explained.

    `expected` and `found` are the texts set against each other, only where the run shows text; `how` it was found.
    """

    criterion: str
    text: str
    place: str | None = None
    kind: str | None = None
    lacks: str | None = None
    advice: str | None = None
    expected: Sequence[_Piece] = ()
    found: Sequence[_Piece] = ()
    how: str = "found"


class _Group(NamedTuple):
    """Terms under a heading; those that are `loud` are the test's own fault."""

    heading: str
    terms: Sequence[_Term]
    loud: bool = False


@dataclass(frozen=True, slots=True)
class _Case:
    line: CaseLine
    slug: str
    nothing: str | None
    judged: Sequence[_Judged]
    missed: Sequence[str]
    kinds: Sequence[str]
    groups: Sequence[_Group]


def _case(line: CaseLine, explanation: Explanation | None, run: ScoredRun) -> _Case:
    groups = _listed(line) if explanation is None else _explained(explanation, shows_text=run.shows_text)
    return _Case(
        line=line,
        slug=slug(line.test_id),
        nothing=without_output(line),
        judged=_judged(line),
        missed=[shortfall.criterion for shortfall in line.shortfalls],
        kinds=[] if explanation is None else _kinds(explanation),
        groups=[group for group in groups if group.terms],
    )


def slug(test_id: str) -> str:
    """Give the name of a case in an address: its test_id, or what of it an address takes with a hash of the whole."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", test_id)[:_SLUG_LENGTH]
    if plain == test_id:
        return plain
    return f"{plain}-{hashlib.sha256(test_id.encode(errors='surrogatepass')).hexdigest()[:8]}"


_SLUG_LENGTH: Final = 64


def _judged(case: CaseLine) -> list[_Judged]:
    bounds = {shortfall.criterion: shortfall for shortfall in case.shortfalls}
    rows = []
    for criterion in CRITERIA:
        shortfall = bounds.get(criterion)
        shown = score(getattr(case.row.scores, criterion), *([shortfall.bound[1]] if shortfall else []))
        below = "below {} {}".format(*shortfall.bound) if shortfall else None
        rows.append(_Judged(criterion, shown, below, counted(case, criterion)))
    return rows


# --- the terms of a case ----------------------------------------------------------------------------------------------

_MISSED, _USED, _FOUND = "Missed", "Forbidden, and used", "Found"


def _listed(case: CaseLine) -> list[_Group]:
    """Give the terms of a case of which nobody asked why."""
    details = case.row.details
    return [
        _Group(
            _MISSED, [_Term(c, term) for c, how, terms in terms_against(case) if how == "missing" for term in terms]
        ),
        _Group(_USED, [_Term("AH", term) for term in details.ah_violations]),
        _Group(_FOUND, [*(_Term("CR", t) for t in details.cr_found), *(_Term("AC", t) for t in details.ac_found)]),
    ]


def _explained(explanation: Explanation, *, shows_text: bool) -> list[_Group]:
    diagnosis = explanation.diagnosis
    output = explanation.output if shows_text else None
    misses = [(miss, _miss(miss, output)) for miss in diagnosis.misses]
    occurrences = [(each, _occurrence(each, output)) for each in diagnosis.occurrences]
    return [
        _Group(f"{_MISSED}, and {NOT_IN_NARRATIVE}", [t for miss, t in misses if miss.in_narrative == "no"], loud=True),
        _Group(f"{_MISSED}, though the narrative has it", [t for miss, t in misses if miss.in_narrative == "yes"]),
        _Group(
            f"{_MISSED}, and there is no narrative", [t for miss, t in misses if miss.in_narrative == "no_narrative"]
        ),
        _Group(_USED, [t for each, t in occurrences if each.criterion == "AH"]),
        _Group(_FOUND, [t for each, t in occurrences if each.criterion != "AH"]),
    ]


def _miss(miss: Miss, output: Output | None) -> _Term:
    expected, found = ((), ()) if output is None else _side_by_side(miss, output)
    return _Term(
        miss.criterion,
        miss.term,
        place=f"{place_of(miss.passage)}, {miss.similarity:.0f}% alike" if miss.passage else None,
        kind=KIND_LABELS[miss.kind],
        lacks=", ".join(f"{absent.word} ({absent.type})" for absent in miss.absent_words) or None,
        # the heading says already what to do about a term that the narrative has not
        advice=None if miss.in_narrative == "no" else KIND_ADVICE[miss.kind],
        expected=expected,
        found=found,
        how="nearest" if miss.kind == "absent" else "found",
    )


def _occurrence(occurrence: Occurrence, output: Output | None) -> _Term:
    advice = "It appears only inside longer words, and may not be meant." if occurrence.inside_word else None
    shown = occurrence.criterion == "AH" or occurrence.inside_word
    return _Term(
        occurrence.criterion,
        occurrence.term,
        place=place_of(occurrence.passage),
        advice=advice,
        found=_in_context(occurrence.passage, output) if output and shown else (),
        how="used" if occurrence.criterion == "AH" else "found",
    )


# --- text of outputs --------------------------------------------------------------------------------------------------

Pieces = Sequence[_Piece]


def _side_by_side(miss: Miss, output: Output) -> tuple[Pieces, Pieces]:
    """Give the term and what was found, marked where the two have more in common than not."""
    expected = miss.term.strip()
    if miss.passage is None:
        return _pieces(expected, (), ""), ()
    found = text_of(output, miss.passage)
    lacking, further = ([], []) if miss.kind == "absent" else differences(expected, found)
    return _pieces(expected, lacking, "del"), _pieces(found, further, "ins")


def _in_context(passage: Passage, output: Output) -> Pieces:
    text = element_of(output, passage)
    first, last = around(text, passage)
    shown = _pieces(text[first:last], [(passage.start - first, passage.end - first)], "mark")
    before, after = ([_Piece("", "…")] if cut else [] for cut in (first > 0, last < len(text)))
    return [*before, *shown, *after]


def _pieces(text: str, stretches: Iterable[tuple[int, int]], tag: str) -> Pieces:
    pieces, at = [], 0
    for start, end in stretches:
        pieces += [_Piece("", _on_one_line(text[at:start])), _Piece(tag, _visible(text[start:end]))]
        at = end
    return [*pieces, _Piece("", _on_one_line(text[at:]))]


def _on_one_line(text: str) -> str:
    """Give a text that is not marked with its line breaks, which make no difference there, as spaces."""
    return re.sub(r"[ \t]*[\r\n\t][ \t\r\n]*", " ", text)


def _visible(text: str) -> str:
    """Give a marked text with nothing in it that nobody could see: a no-break space may be all that differs."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
