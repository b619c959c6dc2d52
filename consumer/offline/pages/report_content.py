"""What a report says, before any page lays it out: its tables, its sentences, the terms of its cases.

The pages differ in what they draw, never in what they say. Texts from outside, such as terms and names, are left as
they are: each page escapes them in its own way, so a table says which of its columns hold them.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from consumer.offline.answers import wordings
from consumer.offline.pages.document import Sentence, Table
from consumer.offline.pages.miss_wording import (
    KIND_ADVICE,
    KIND_LABELS,
    answers_in_words,
    misses_in_words,
    remark_on,
)
from consumer.offline.pages.numbers import mean_score, percent, ranged, rate_of, score
from consumer.offline.scored_run import CaseLine, Explanation, Judged, Outcome, ScoredRun
from consumer.text import count_of
from safe_core import CRITERIA, DEFAULT_POLICY, LABELS, Criterion, Label, Policy
from safe_core.ceiling import Ceiling
from safe_core.diagnosis import DoubtfulHit, Kind
from safe_core.lenient_scores import Recall
from safe_core.near_violations import NearViolation

CRITERION_NAMES: Final[Mapping[Criterion, str]] = {
    "CR": "CR, correct recall",
    "AH": "AH, avoids harm",
    "AC": "AC, all content",
}

# --- tables -----------------------------------------------------------------------------------------------------------


def criteria(report: Mapping[str, Any]) -> Table:
    """The mean and the pass rate of each criterion, beside the bounds that judge it; last, the mean composite."""
    means, thresholds = report["mean_scores"], report["configuration"]["thresholds"]
    rows = []
    for criterion, name in CRITERION_NAMES.items():
        review, pass_ = thresholds[criterion]["review"], thresholds[criterion]["pass"]
        rate = rate_of(report["pass_rates"][criterion], report["total_cases"])
        rows.append((name, mean_score(means[criterion], review, pass_), rate, str(review), str(pass_)))
    rows.append(("composite", score(means["composite"]), "", "", ""))
    return Table("Criteria", ("Criterion", "Mean", "Pass rate", "Fails below", "Passes from"), rows, texts=1)


def totals(report: Mapping[str, Any]) -> Table:
    """How many cases there are, and how many of each label."""
    summary, total = report["summary"], report["summary"]["total_cases"]
    counts = [summary[label.lower()] for label in LABELS]
    row = (str(total), *(f"{count} ({percent(count / total)})" for count in counts))
    return Table("Cases", ("Cases", *LABELS), [row], texts=0)


def lenient(report: Mapping[str, Any]) -> Table:
    """What the outputs say of the required terms, word for word or not; no rows where the report does not tell."""
    rows = []
    for criterion, terms in report.get("lenient_terms", {}).items():
        means = (report[name][criterion] for name in ("mean_scores", "mean_lenient", "mean_coverage"))
        counts = (str(terms[name]) for name in ("terms", "found", "doubtful", "said", "accepted"))
        rows.append((criterion, *map(score, means), *counts, share_of_terms(terms)))
    headings = (
        "Criterion", "Mean", "Lenient mean", "Coverage", "Terms", "Found", "Of these in doubt", "Said in other words",
        "In accepted words", "Together",
    )  # fmt: skip
    return Table("Allowing for other words", headings, rows, texts=1)


def share_of_terms(terms: Mapping[str, Any]) -> str:
    """Give the share of terms that were found or said, with its interval; nothing of no terms."""
    return "" if terms["recall"] is None else ranged(terms["recall"], *terms["interval"])


def lenient_in_words(report: Mapping[str, Any]) -> Iterator[str]:
    """Say the same in a line for each criterion that has terms."""
    for criterion, terms in report.get("lenient_terms", {}).items():
        if terms["terms"]:
            doubtful = f" ({terms['doubtful']} in doubt)" if terms["doubtful"] else ""
            lenient_mean, coverage = (score(report[name][criterion]) for name in ("mean_lenient", "mean_coverage"))
            accepted = f", {terms['accepted']} in accepted words" if terms["accepted"] else ""
            yield (
                f"{criterion}: {terms['found']} of {count_of(terms['terms'], 'term')} found{doubtful}, {terms['said']} "
                f"said in other words{accepted}, together {share_of_terms(terms)}; lenient mean {lenient_mean}, "
                f"coverage {coverage}"
            )


LENIENT: Final = (
    "Coverage is the share of each term that the output has: none of a found term that it denies or has with another "
    "value, which lenient recall counts. Neither number changes a score. In brackets: 95 % confidence intervals over "
    "cases."
)
"""What the numbers beside CR and AC mean."""


def archetypes(report: Mapping[str, Any]) -> Table:
    """The means and the pass rate of each archetype."""
    rows = []
    for name, group in report["by_archetype"].items():
        means = (score(group[f"mean_{criterion}"]) for criterion in CRITERIA)
        rows.append((name, str(group["count"]), *means, rate_of(group["pass_rate"], group["count"])))
    headings = ("Archetype", "Cases", *(f"Mean {criterion}" for criterion in CRITERIA), "Pass rate")
    return Table("By archetype", headings, rows, texts=1, from_outside=(0,))


class Frequent(NamedTuple):
    """A term and how often it was missed or used; a case that lists it twice counts twice (contract.md, "Ties")."""

    criterion: Criterion
    how: Literal["missing", "used"]
    term: str
    times: int


def most_frequent(report: Mapping[str, Any]) -> Iterator[Frequent]:
    """Yield what was missed or used most often, criterion by criterion."""
    analysis = report["failure_analysis"]
    yield from (Frequent("CR", "missing", each["signal"], each["miss_count"]) for each in analysis["common_CR_misses"])
    yield from (Frequent("AH", "used", each["term"], each["count"]) for each in analysis["common_AH_violations"])
    yield from (Frequent("AC", "missing", each["phrase"], each["miss_count"]) for each in analysis["common_AC_misses"])


def most_frequent_terms(report: Mapping[str, Any]) -> Table:
    """The same as a table."""
    rows = [(f"{each.criterion} {each.how}", each.term, str(each.times)) for each in most_frequent(report)]
    return Table("Most often missed or used", ("Criterion", "Term", "Times"), rows, texts=2, from_outside=(1,))


def kinds_of_misses(report: Mapping[str, Any]) -> Table:
    """What to do about each kind of miss, and how many there are of it."""
    counts: Mapping[Kind, int] = report.get("miss_kinds") or {}
    rows = [(KIND_LABELS[kind], KIND_ADVICE[kind], str(count)) for kind, count in counts.items()]
    return Table("Kinds of misses", ("Kind", "What to do", "Misses"), rows, texts=2)


def inputs(report: Mapping[str, Any]) -> Table:
    """The files that the report was made from."""
    rows = [(each["name"], each["sha256"]) for each in report.get("inputs", ())]
    return Table("Inputs", ("Input", "SHA-256"), rows, texts=2, from_outside=(0, 1))


MISMATCH: Final = "made from another narrative"
_NAMED: Final = 10
"""How many cases or terms a remark names."""


# --- sentences --------------------------------------------------------------------------------------------------------


def a_few(texts: Sequence[str], most: int) -> str:
    """Give a {} for each of the first texts of a sentence, and how many more there are."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(["{}"] * min(len(texts), most)) + more


def ceiling(report: Mapping[str, Any]) -> str | None:
    """Say what copies of the narratives would reach, where the report has it: no prompt can do better."""
    return Ceiling.parse(report["ceiling"]).sentence if "ceiling" in report else None


def worth_knowing(run: ScoredRun) -> Iterator[Sentence]:
    """Yield what a reader must know to read the numbers."""
    report = run.report
    vacuous = [f"{name} in {count_of(count, 'case')}" for name, count in report["vacuous"].items() if count]
    if vacuous:
        yield Sentence(f"Scored 1.00 because there was nothing to check: {', '.join(vacuous)}.")
    if report["empty_outputs"]:
        yield Sentence(f"Empty outputs: {count_of(report['empty_outputs'], 'case')}.")
    if report["missing_outputs"]:
        yield Sentence(f"No output: {count_of(report['missing_outputs'], 'case')}, scored as empty outputs.")
    failed = [case.test_id for case in run.cases if case.generation == "failed"]
    if failed:
        yield Sentence(
            f"Failed generations: {count_of(len(failed), 'case')} that no model answered, scored as empty outputs, so "
            f"the scores say nothing about the prompt: {a_few(failed, _NAMED)}.",
            tuple(failed[:_NAMED]),
        )
    others = [case.test_id for case in run.cases if case.input_matches is False]
    if others:
        yield Sentence(
            f"Input mismatches: {count_of(len(others), 'case')} with an output that was made from a narrative other "
            f"than the case's own, so the scores say nothing about the prompt: {a_few(others, _NAMED)}.",
            tuple(others[:_NAMED]),
        )
    yield from _remarked(
        [(case.test_id, near) for case in run.cases for near in case.near],
        "Near violations: {} that a question has in another form, which AH does not find",
        "forbidden term",
    )
    yield from _unsupported(run)
    yield from _remarked(
        [(case.test_id, hit) for case in run.cases for hit in case.doubtful],
        "Doubtful hits: {} that the text may not mean",
        "found term",
    )
    rules = {case.rules for case in run.cases}
    strict = {each.strict_ah for each in rules}
    if True in strict:
        yield Sentence(f"Strict AH{' for some cases' if False in strict else ''}: one forbidden term makes AH 0.")
    if (differing := own_rules(report["configuration"], "thresholds", "weights")) is not None:
        yield Sentence("Not the default rules: {}.", (differing,))
    default = Policy.from_document(report["configuration"]).default
    if any(each.thresholds != default.thresholds for each in rules):
        yield Sentence(
            "Because of overrides, some cases have different thresholds from those in the table of criteria."
        )


def _unsupported(run: ScoredRun) -> Iterator[Sentence]:
    """Name the cases whose outputs have values that their narratives do not have, with a few of the values."""
    made_up = {
        case.test_id: values
        for case in run.cases
        if (values := [each.text for each in case.unsupported if each.kind == "nowhere"])
    }
    if made_up:
        count = count_of(sum(map(len, made_up.values())), "value")
        listed = [
            f"{test_id} ({', '.join(values[:_SAME])}{', …' if len(values) > _SAME else ''})"
            for test_id, values in made_up.items()
        ]
        yield Sentence(
            f"Unsupported values: {count} in {count_of(len(made_up), 'case')} that the narrative does not have: "
            f"{a_few(listed, _NAMED)}.",
            tuple(listed[:_NAMED]),
        )


def _remarked(hits: Sequence[tuple[str, DoubtfulHit | NearViolation]], said: str, what: str) -> Iterator[Sentence]:
    """Name terms that a score does not judge as a person would; none is nothing to say."""
    if hits:
        listed = "; ".join(f"{{}} {hit.criterion} {{}} ({hit.kind})" for _, hit in hits[:_NAMED])
        more = f"; and {len(hits) - _NAMED} more" if len(hits) > _NAMED else ""
        texts = tuple(text for test_id, hit in hits[:_NAMED] for text in (test_id, f'"{hit.term}"'))
        yield Sentence(f"{said.format(count_of(len(hits), what))}: {listed}{more}.", texts)


def why_missed(run: ScoredRun) -> Iterator[Sentence]:
    """Say why terms were missed, the causes that many cases share first; nothing of a run that is not explained."""
    if run.explanations is None:
        return
    judged = [case for case in run.cases if case.has_reasons]
    explained = {case.test_id: run.explanations[case.test_id] for case in judged}
    yield from _in_another_field(explained.values())
    yield from _same_summary(explained)
    if answers := answers_in_words(run.report):
        yield Sentence(f"What output and narrative say of the missed terms: {answers}.")
    if misses := misses_in_words(run.report):
        yield Sentence(f"Why terms were missed: {misses}.")
    found = wordings([(case, explained[case.test_id]) for case in judged]).in_words
    if found is not None:
        yield Sentence(f"In this run, {found}")
    uncounted = len(run.cases) - len(judged)
    if uncounted:
        yield Sentence(
            f"Not counted: {count_of(uncounted, 'case')} without an output, with a failed generation, or with an "
            "output that was made from another narrative."
        )


def _in_another_field(explanations: Iterable[Explanation]) -> Iterator[Sentence]:
    """Say how many misses of a criterion stand word for word in a field that it does not read."""
    missed: Counter[str] = Counter()
    elsewhere: Counter[tuple[str, str]] = Counter()
    for miss in (miss for each in explanations for miss in each.diagnosis.misses):
        missed[miss.criterion] += 1
        elsewhere.update({(miss.criterion, place.field) for place in miss.also_in})
    for (criterion, field), count in sorted(elsewhere.items(), key=lambda each: (-each[1], each[0])):
        misses = count_of(missed[criterion], f"missed {criterion} term")
        are = "is" if count == 1 else "are"
        yield Sentence(f"{count} of {misses} {are} word for word in {field}, which {criterion} does not read.")


def _same_summary(explanations: Mapping[str, Explanation]) -> Iterator[Sentence]:
    """Name the cases that one and the same summary answers, where they are several."""
    by_summary: dict[str, list[str]] = {}
    for test_id, each in explanations.items():
        if summary := each.output.summary.strip():
            by_summary.setdefault(summary, []).append(test_id)
    for test_ids in by_summary.values():
        if len(test_ids) > 1:
            listed = a_few(test_ids, _SAME)
            yield Sentence(f"{len(test_ids)} cases have one and the same summary: {listed}.", tuple(test_ids[:_SAME]))


_SAME: Final = 5
"""How many cases with the same summary are named."""


def how_made(report: Mapping[str, Any]) -> Iterator[Sentence]:
    """Yield what made the report: the version, the rule, the settings that judged."""
    scorer, configuration = report["scorer"], report["configuration"]
    yield Sentence(f"SAFE {scorer['version']}, rule {{}}, at {report['generated_at']}", (scorer["rule"],))
    weights = ", ".join(f"{criterion} {weight}" for criterion, weight in configuration["weights"].items())
    yield Sentence(f"Weights: {weights}; strict AH: {'on' if configuration['strictAH'] else 'off'}")
    for kind, overrides in configuration["overrides"].items():
        for name, override in overrides.items():
            changes = ", ".join(f"{setting} {value}" for setting, value in settings_of(override))
            yield Sentence(f"Override for {kind} {{}}: {changes}", (name,))
    yield Sentence("Fingerprint of the configuration: {}", (scorer["fingerprint"],))


def own_rules(configuration: Mapping[str, Any], *sections: str) -> str | None:
    """Say in which settings a report's rules are not the default ones, as "thresholds.CR.pass 0.9 (default 0.8)".

    Without `sections` of the configuration, all of them are looked at; None if there is nothing to say.
    """
    default = dict(settings_of(DEFAULT_POLICY.configuration()))
    differing = [
        f"{name} {value}{f' (default {default[name]})' if name in default else ''}"
        for name, value in settings_of(configuration)
        if value != default.get(name) and (not sections or name.partition(".")[0] in sections)
    ]
    return ", ".join(differing) or None


def settings_of(document: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    """Yield each setting of a nested configuration: its dotted name and its value as JSON."""
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from settings_of(value, f"{within}{key}.")
        else:
            yield f"{within}{key}", json.dumps(value)


def why(run: ScoredRun) -> str:
    """Give the reason of a run's verdict, as "3 of 7 cases fail"."""
    summary, verdict = run.report["summary"], run.verdict
    number = summary[verdict.lower()]
    return f"{number} of {count_of(summary['total_cases'], 'case')} {_VERBS[verdict][number == 1]}"


_VERBS: Final[Mapping[Label, tuple[str, str]]] = {
    "Pass": ("pass", "passes"),
    "Review": ("need review", "needs review"),
    "Fail": ("fail", "fails"),
}


CONFIDENTIAL: Final = "Terms often quote the patient's narrative: treat this page as confidentially as the test cases."
"""Said once on each page."""


# --- a case -----------------------------------------------------------------------------------------------------------


def score_of(judged: Judged) -> str:
    """Give the score of a criterion; it never reads as having reached a bound that it missed."""
    return score(judged.score, judged.threshold.review, judged.threshold.pass_)


def shortfalls(case: CaseLine) -> list[str]:
    """Say which bounds a case missed, as "CR 0.33 below review 0.5"."""
    return [f"{each.criterion} {score_of(each)} below {each.missed}" for each in case.judged if each.missed]


NOTHING_TO_CHECK: Final = "nothing to check"
FAILED_GENERATION: Final = "failed generation"


def about_output(case: CaseLine) -> str | None:
    """Say that nothing was there to be scored, or something that was not about the case, if so."""
    if case.generation != "answered":
        return "no output" if case.generation is None else FAILED_GENERATION
    if case.input_matches is False:
        return MISMATCH
    return "empty output" if case.row.empty_output else None


def counted(case: CaseLine, criterion: Criterion) -> str:
    """Say how many terms a score is made of."""
    if getattr(case.row.vacuous, criterion):
        return NOTHING_TO_CHECK
    details, total = case.row.details, getattr(case.row.terms, criterion)
    if criterion == "AH":
        return f"{len(details.ah_violations)} of {total} forbidden used"
    return f"{len(details.cr_found if criterion == 'CR' else details.ac_found)} of {total} required found"


def lenient_of(case: CaseLine, criterion: Criterion) -> str:
    """Say how much of the terms of a case was found or said; nothing where the score leaves nothing to be told."""
    recall: Recall | None = getattr(case.lenient, criterion, None)
    if recall is None or (recall.found == recall.terms and recall.shares == 1000 * recall.terms):
        return ""
    doubtful = f", {recall.doubtful} found in doubt" if recall.doubtful else ""
    return f"lenient {score(recall.lenient)}, coverage {score(recall.coverage / 1000)}{doubtful}"


class Terms(NamedTuple):
    """The terms of a criterion that were found, missing, or used though forbidden; behind each what is said of it."""

    criterion: Criterion
    how: Outcome
    terms: Sequence[Sentence]


def _term(text: str, remark: str | None = None) -> Sentence:
    return Sentence(f"{{}} ({remark})" if remark else "{}", (text,))


def terms_of(case: CaseLine, explanation: Explanation | None = None) -> list[Terms]:
    """List the terms of a case, those that it lost by with what an explanation says of them without quoting outputs."""
    doubts = {(hit.criterion, hit.term): f"doubtful: {hit.kind}" for hit in case.doubtful}
    return [
        Terms(
            criterion,
            how,
            _missing(terms, criterion, explanation)
            if how == "missing"
            else [_term(term, doubts.get((criterion, term))) for term in terms],
        )
        for criterion, how, terms in case.outcomes
        if terms
    ]


def lost_terms(case: CaseLine, explanation: Explanation | None = None) -> list[Terms]:
    """List only the terms that a case lost by."""
    return [each for each in terms_of(case, explanation) if each.how != "found"]


def _missing(terms: Iterable[str], criterion: Criterion, explanation: Explanation | None) -> list[Sentence]:
    if explanation is None or not explanation.diagnosis.misses:  # of a failed generation, none is explained
        return [*map(_term, terms)]
    misses = (miss for miss in explanation.diagnosis.misses if miss.criterion == criterion)
    return [_term(term, remark_on(miss)) for term, miss in zip(terms, misses, strict=True)]
