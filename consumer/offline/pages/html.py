"""The report as one HTML page: the verdict first, then the evidence. It loads nothing, and opens from disk.

Whatever a template shows goes through printable() and is then escaped. If something should get by, the page's own
policy forbids every script and style but the two that it names by their hashes.
"""

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from consumer.offline.pages import report_content
from consumer.offline.pages.causes import why_missed
from consumer.offline.pages.misses import (
    FOUND,
    KIND_LABELS,
    MISSED,
    USED,
    VERDICT_LABELS,
    ExplainedTerm,
    Group,
    explained_terms,
)
from consumer.offline.pages.numbers import BRACKETS, pass_rate, percent, score
from consumer.offline.scored_run import LABELS, CaseLine, Explanation, ScoredRun
from consumer.text import count_of, printable
from safe_core import UNKNOWN_ARCHETYPE
from safe_core.diagnosis import KINDS, VERDICTS
from safe_core.lint import Ceiling

MARK: Final = '<meta name="generator" content="SAFE v0 report">'
"""It is in the first lines of each such page: SAFE recognises its own pages by it."""


def render_html(run: ScoredRun) -> str:
    """Give the page; it quotes outputs only where the run shows text."""
    style, script = _block("report.css"), _block("report.js")
    report = run.report
    return _template().render(
        mark=_ours(MARK),
        policy=_ours(_policy(style, script)),
        style=_ours(style),
        script=_ours(script),
        run=run,
        report=report,
        rate=pass_rate(report["summary"]["pass"], report["summary"]["total_cases"]),
        ceiling=Ceiling.parse(report["ceiling"]).sentence if "ceiling" in report else None,
        filters=_filters(run),
        cases=map(partial(_case, run), run.worst_first()),
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
    environment.filters |= {"percent": percent, "score": score, "written": _written}
    environment.globals |= {"brackets": BRACKETS, "content": report_content, "count_of": count_of, "labels": LABELS} | {
        "why_missed": why_missed
    }
    return environment.get_template("report.html.j2")


def _shown(value: object) -> object:
    """Escape what could fool a reader in anything that the template shows, unless it is markup already."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _written(sentence: report_content.Sentence) -> Markup:
    text = Markup('<span class="text">{}</span>')
    return _ours(sentence.template).format(*(text.format(printable(each)) for each in sentence.texts))


def _ours(markup: str) -> Markup:
    return Markup(markup)  # noqa: S704 (it holds no text from outside)


def _policy(style: str, script: str) -> str:
    """Give the content security policy: nothing may be loaded, and only this style and this script are allowed."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(block: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()}"


# --- the filters ------------------------------------------------------------------------------------------------------


class _Filter(NamedTuple):
    """A choice among cases; `name` is the attribute of a case that holds its values, `options` are values and texts."""

    name: str
    caption: str
    options: Sequence[tuple[str, str]]


_REASONS: Final[Mapping[str, str]] = {each: f"{each}: {VERDICT_LABELS[each]}" for each in VERDICTS} | {
    kind: KIND_LABELS[kind] for kind in KINDS
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
    """Give the verdicts on a case's misses and their kinds, each once."""
    misses = explanation.diagnosis.misses
    return sorted({miss.kind for miss in misses} | {miss.verdict for miss in misses})


# --- the cases --------------------------------------------------------------------------------------------------------


class _Case(NamedTuple):
    line: CaseLine
    slug: str
    kinds: Sequence[str]
    groups: Sequence[Group]


def _case(run: ScoredRun, case: CaseLine) -> _Case:
    explanation = run.explanation_of(case)
    if explanation is None:
        return _Case(case, slug(case.test_id), [], _listed(case))
    return _Case(case, slug(case.test_id), _kinds(explanation), explained_terms(explanation, shows_text=run.shows_text))


def slug(test_id: str) -> str:
    """Give the name of a case in an address: its test_id, or the characters that an address allows and a hash of it."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", test_id)[:_SLUG_LENGTH]
    if plain == test_id:
        return plain
    return f"{plain}-{hashlib.sha256(test_id.encode(errors='surrogatepass')).hexdigest()[:8]}"


_SLUG_LENGTH: Final = 64
_HEADINGS: Final = {"missing": MISSED, "used": USED, "found": FOUND}


def _listed(case: CaseLine) -> list[Group]:
    """Group the terms of a case that was not explained."""
    terms = report_content.terms_of(case)
    groups = []
    for how, heading in _HEADINGS.items():
        listed = [ExplainedTerm(each.criterion, term.text) for each in terms if each.how == how for term in each.terms]
        groups.append(Group(heading, listed))
    return [group for group in groups if group.terms]
