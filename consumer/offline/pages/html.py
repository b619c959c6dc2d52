"""The report as one HTML page: the verdict first, then the evidence. It loads nothing, and opens from disk."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from consumer.offline.decisions import NO_DECISIONS
from consumer.offline.pages import report_content
from consumer.offline.pages.html_parts import page
from consumer.offline.pages.miss_wording import (
    FOUND,
    IN_WORDS,
    KIND_LABELS,
    MISSED,
    NEAR,
    UNSUPPORTED,
    USED,
    VERDICT_LABELS,
    ExplainedTerm,
    Group,
    explained_terms,
    near_term,
    value_in_words,
    with_decisions,
)
from consumer.offline.pages.quotes import SideBySide, side_by_side
from consumer.offline.pages.report_page import figures, how_made, missed, why_missed
from consumer.offline.scored_run import CaseLine, Explanation, ScoredRun
from safe_core import UNKNOWN_ARCHETYPE
from safe_core.diagnosis import NARRATIVE_SAYS, OUTPUT_SAYS, VERDICTS


def render_html(run: ScoredRun) -> str:
    """Give the page; it quotes outputs only where the run shows text."""
    report = run.report
    return page(
        "report.html.j2",
        "report",
        ["report.css"],
        "report.js",
        run=run,
        report=report,
        ceiling=report_content.ceiling(report),
        filters=_filters(run),
        unsupported_heading=UNSUPPORTED,
        value_in_words=value_in_words,
        cases=map(partial(_case, run), run.worst_first()),
        why=why_missed(run),
        figures=[*figures(run), *missed(run)],
        made=how_made(run),
    )


# --- the filters ------------------------------------------------------------------------------------------------------


class _Filter(NamedTuple):
    """A choice among cases; `name` is the attribute of a case that holds its values, `options` are values and texts."""

    name: str
    caption: str
    options: Sequence[tuple[str, str]]


_REASONS: Final[Mapping[str, str]] = {
    **{each: f"{IN_WORDS[each]}: {VERDICT_LABELS[each]}" for each in VERDICTS},
    **{f"output-{each}": f"output: {each}" for each in OUTPUT_SAYS},
    **{f"narrative-{each}": f"narrative: {each}" for each in NARRATIVE_SAYS},
    **{str(kind): label for kind, label in KIND_LABELS.items()},
}


def _filters(run: ScoredRun) -> list[_Filter]:
    """Give the filters that offer a choice."""
    cases = run.worst_first()
    kinds = (kind for each in (run.explanations or {}).values() for kind in _kinds(each))
    labels = Counter(case.label for case in cases)
    archetypes = Counter(sorted(case.archetype or UNKNOWN_ARCHETYPE for case in cases))
    criteria = Counter(judged.criterion for case in cases for judged in case.judged if judged.missed)
    filters = (
        _Filter("label", "Label", _options(labels, {label: label for label in labels})),
        _Filter("archetype", "Archetype", _options(archetypes, {name: name for name in archetypes})),
        _Filter("missed", "Missed", _options(criteria, report_content.CRITERION_NAMES)),
        _Filter("kind", "Why missed", _options(Counter(kinds), _REASONS)),
    )
    return [each for each in filters if each.options]


def _options(cases: Mapping[Any, int], words: Mapping[Any, str]) -> list[tuple[str, str]]:
    """Give the values that occur, in the order of the words for them, with the count of their cases."""
    return [(value, f"{text} ({cases[value]})") for value, text in words.items() if cases.get(value)]


def _kinds(explanation: Explanation) -> list[str]:
    """Give the verdicts on a case's misses, both answers about them and their kinds, each once."""
    misses = explanation.diagnosis.misses
    said = {f"output-{miss.output_says}" for miss in misses} | {f"narrative-{miss.narrative_says}" for miss in misses}
    return sorted({miss.kind for miss in misses} | {miss.verdict for miss in misses} | said)


# --- the cases --------------------------------------------------------------------------------------------------------


class _Case(NamedTuple):
    line: CaseLine
    decided: str
    kinds: Sequence[str]
    groups: Sequence[Group]
    explanation: Explanation | None = None
    texts: SideBySide | None = None


def _case(run: ScoredRun, case: CaseLine) -> _Case:
    explanation, decisions = run.explanation_of(case), run.decisions.get(case.test_id, NO_DECISIONS)
    judged = "" if decisions.verdict is None else decisions.verdict.in_words(shows_text=run.shows_text)
    if explanation is None:
        groups = [with_decisions(group, decisions, shows_text=run.shows_text) for group in _listed(case)]
        return _Case(case, judged, [], groups)
    return _Case(
        case,
        judged,
        _kinds(explanation),
        explained_terms(explanation, case.remarked, shows_text=run.shows_text),
        explanation,
        side_by_side(explanation, case.remarked) if run.shows_text else None,
    )


_HEADINGS: Final = {"missing": MISSED, "used": USED, "found": FOUND}


def _listed(case: CaseLine) -> list[Group]:
    """Group the terms of a case that was not explained."""
    groups = [
        Group(
            heading,
            [ExplainedTerm(name, term) for name, outcome, terms in case.outcomes if outcome == how for term in terms],
        )
        for how, heading in _HEADINGS.items()
    ]
    groups.insert(2, Group(NEAR, [*map(near_term, case.near)]))
    return [group for group in groups if group.terms]
