"""What a comparison says: the headline, the remarks, the numbers, the lists of cases."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from consumer.offline.compare import CaseTest, Change, Comparison, NotJudged, Reason, Respect, Side, without
from consumer.offline.pages.document import Document, Item, Name, Section, Sentence, Table, Texts
from consumer.offline.pages.formats import formats
from consumer.offline.pages.numbers import BRACKETS, pass_rate, score
from consumer.offline.pages.report_content import MISMATCH, a_few, settings_of
from consumer.offline.stored_report import LISTED
from consumer.text import count_of
from safe_core import LABELS, Criterion, Scores
from safe_core.significance import CHANCE

_NAMED: Final = 5
"""How many cases or settings a remark names."""

_LONGEST_SETTING: Final = 200

# --- what a reader must know ------------------------------------------------------------------------------------------


ONE_RUN_EACH: Final = (
    "Each report is one run: a second run of the same prompt could differ as much as these two. p says how often equal "
    "runs differ by as much in this respect, and p by Holm allows for the number of respects: from 0.05 down, a change "
    "is beyond chance. The terms of a case count as one change."
)


def remarks(comparison: Comparison) -> Iterator[Sentence]:
    """Yield why the two reports may not be alike enough to be compared."""
    base, new = comparison.base, comparison.new
    if base.concern_id != new.concern_id:
        yield Sentence("The concerns differ: base {}, new {}.", (base.concern_id, new.concern_id))
    for which, side in (("base", base), ("new", new)):
        if not side.complete:
            yield Sentence(f"The batch of the {which} report is not complete: more results may come.")
    for which, side in (("base", base), ("new", new)):
        if side.missing_outputs > len(side.unanswered):
            missing = count_of(side.missing_outputs, "case")
            is_one = side.missing_outputs == 1
            them = "it: it is judged as an empty output" if is_one else "them: they are judged as empty outputs"
            yield Sentence(f"The {which} report counts {missing} without an output, but does not name {them}.")
    yield from _unequal_sets(comparison)
    yield from _unequal_rules(base, new)
    changed = [case.test_id for case in comparison.cases if case.has_other_expectations]
    if changed:
        yield Sentence(
            f"The expectations of {count_of(len(changed), 'judged case')} differ ({a_few(changed, _NAMED)}): "
            "their scores may differ for that reason alone.",
            tuple(changed[:_NAMED]),
        )


def _unequal_sets(comparison: Comparison) -> Iterator[Sentence]:
    base, new = comparison.base.results, comparison.new.results
    lots = (("base", [each for each in base if each not in new]), ("new", [each for each in new if each not in base]))
    if any(test_ids for _, test_ids in lots):
        yield Sentence("The reports have different cases: only what is in both can be judged.")
    for which, test_ids in lots:
        if test_ids:
            named = f"{count_of(len(test_ids), 'case')}: {a_few(test_ids, _NAMED)}"
            yield Sentence(f"Only in the {which} report: {named}.", tuple(test_ids[:_NAMED]))


def _unequal_rules(base: Side, new: Side) -> Iterator[Sentence]:
    if base.rule != new.rule:
        yield Sentence("The match rules differ: base {}, new {}.", (base.rule or "none", new.rule or "none"))
    for which, side in (("base", base), ("new", new)):
        if side.fingerprint is None:
            yield Sentence(f"The {which} report has no fingerprint, so it is not certain that the rules are the same.")
    if base.fingerprint != new.fingerprint and None not in (base.fingerprint, new.fingerprint):
        differ = differing_settings(base.configuration, new.configuration)
        how = f" ({a_few(differ, _NAMED)})" if differ else ""
        yield Sentence(
            f"The fingerprints differ, so the two reports used different rules{how}: base {{}}, new {{}}.",
            (*differ[:_NAMED], str(base.fingerprint), str(new.fingerprint)),
        )
    strict = [side.configuration.get("strictAH") for side in (base, new)]
    if strict[0] != strict[1]:
        yield Sentence("Strict AH is {} in the base report and {} in the new one.".format(*map(_ON_OR_OFF.get, strict)))


def differing_settings(base: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Give the settings in which two configurations differ, as "thresholds.CR.pass 0.8 -> 0.5"."""
    before, after = dict(settings_of(base)), dict(settings_of(new))
    names = dict.fromkeys([*before, *after])  # in their order, each once
    told = (
        f"{name} {before.get(name, 'none')} -> {after.get(name, 'none')}"
        for name in names
        if before.get(name) != after.get(name)
    )
    return [text[:_LONGEST_SETTING] for text in told]


_ON_OR_OFF: Final = {True: "on", False: "off", None: "unknown"}


# --- the words of every page ------------------------------------------------------------------------------------------


def headline(comparison: Comparison) -> str:
    """Give the first words: how many cases are lost, and what changed most clearly beyond chance, if anything did."""
    change = comparison.change
    told = NOTHING_CHANGED if change is None else _in_words(change)
    lost = len(comparison.lost)
    return f"{count_of(lost, 'lost case')}; {told[0].lower()}{told[1:]}" if lost else told


NOTHING_CHANGED: Final = "Nothing changed beyond chance"
RESPECTS: Final[Mapping[Respect, str]] = {
    "labels": "Labels",
    "composites": "Composites",
    "lenient": "Lenient recall",
    "terms": "Found terms",
    "near_violations": "Near violations",
    "unsupported": "Unsupported values",
}


def _in_words(test: CaseTest) -> str:
    fewer_is_better = test.respect in LISTED
    more, fewer = ("fell", "rose") if test.is_worse != fewer_is_better else ("rose", "fell")
    counts = sorted((test.better, test.worse), reverse=True)
    return f"{RESPECTS[test.respect]} {more} beyond chance ({counts[0]} {more}, {counts[1]} {fewer})"


def summary(comparison: Comparison) -> str:
    """Give the sentences behind the headline."""
    fell, rose, moved = len(comparison.fell), len(comparison.rose), len(comparison.moved)
    total = len(comparison.cases)
    kept = f"{total - fell - rose} kept theirs" + (f" ({moved} with other scores or terms)" if moved else "")
    judged = f"of {count_of(total, 'judged case')}, {fell} got a worse label, {rose} a better one, {kept}."
    judged += "".join(f" {new}: in {count_of(len(cases), 'case')}." for new, cases in newly_listed(comparison))
    failed = sum(case.has_failed for case in comparison.not_judged)
    if failed:
        judged += f" {count_of(failed, 'case')} not judged: the generation failed."
    others = len(comparison.not_judged) - failed
    if not others:
        return judged
    lost = comparison.lost
    terms = sum(len(case.found_terms) for case in lost)
    are = "is" if len(lost) == 1 else "are"
    found = f"the base report had found {count_of(terms, 'required term')} there"
    how = f" Of these, {len(lost)} {are} lost; {found}." if lost else ""
    more = "Not judged for other reasons" if failed else "Not judged"
    return f"{judged} {more}: {count_of(others, 'case')}.{how}"


def counts(side: Side) -> str:
    """Give the labels of a whole report, judged or not."""
    total = len(side.results)
    counts = ", ".join(f"{side.labelled(label)} {label}" for label in LABELS)
    return f"{count_of(total, 'case')}: {counts}, pass rate {pass_rate(side.labelled('Pass'), total)}"


def measures(comparison: Comparison) -> Table:
    """Give the pass rates and the means of both reports, and by how much they differ."""
    total, (before, after) = len(comparison.cases), comparison.passes
    points = f"{_signed(100 * (after - before) / total, 1)} points" if after != before else "0"
    rows = [("Pass rate", pass_rate(before, total), pass_rate(after, total), points)]
    rows += [(f"Mean {name}", score(base), score(new), _signed(new - base, 2)) for name, base, new in comparison.means]
    found = [sum(result.found for result in side) for side in comparison.judged_results]
    listed = [(RESPECTS[what], each.base, each.new) for what, each in comparison.listed.items() if each is not None]
    counted: list[tuple[str, int, int]] = [("Required terms found", found[0], found[1]), *listed]
    rows += [(name, str(base), str(new), _signed(new - base, 0)) for name, base, new in counted]
    return Table("Judged cases", ("Judged cases", "Base", "New", "Difference"), rows, texts=1)


def _signed(difference: float, places: int) -> str:
    """Give a difference with its sign: 0 only where there is none, since +0.00 is one too small to be shown."""
    return f"{difference:+.{places}f}" if difference else "0"


def tests(comparison: Comparison) -> Table:
    """Give how many cases got better and worse in each respect, and how likely that is by chance."""
    rows = [
        (RESPECTS[test.respect], str(test.better), str(test.worse), _p(test.p), _p(test.holm))
        for test in comparison.tests
    ]
    return Table("Change by case", ("Change by case", "Better", "Worse", "p (sign test)", "p by Holm"), rows, texts=1)


def newly_listed(comparison: Comparison) -> Iterator[tuple[str, Sequence[tuple[Change, Sequence[str]]]]]:
    """Give what the new report lists beside the scores that base does not, by heading and case."""
    for what, totals in comparison.listed.items():
        cases = [] if totals is None else [(case, each.new) for case, each in totals.changed if each.new]
        if cases:
            yield f"{RESPECTS[what]} that are new", cases


def passes(comparison: Comparison) -> str:
    """Say how many cases began or ceased to pass."""
    gained, lost = comparison.gained_and_lost
    return f"Newly Pass: {gained}, no longer Pass: {lost}"


def _p(value: float) -> str:
    """Give a p to two places, or to four where it would read as CHANCE."""
    text = f"{value:.2f}"
    return "< 0.01" if value < 0.01 else f"{value:.4f}" if text == f"{CHANCE:.2f}" else text


_LOST: Final[Mapping[Criterion, str]] = {"CR": "newly missed", "AH": "newly used", "AC": "newly missed"}
_WON: Final[Mapping[Criterion, str]] = {"CR": "newly found", "AH": "no longer used", "AC": "newly found"}


def term_totals(comparison: Comparison) -> str:
    """Give how many terms the judged cases lost and won back."""
    evaded = sum(len(case.evaded) for case in comparison.cases)
    rest = {"AH": f" ({evaded} in another form)"} if evaded else {}
    totals = (
        f"{name} {lost} {_LOST[name]}, {won} {_WON[name]}{rest.get(name, '')}" for name, lost, won in comparison.terms
    )
    return f"Terms: {'; '.join(totals)}"


def terms_of(case: Change) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what happened to terms of a case, as "CR newly missed", and the terms; then which were found in doubt."""
    for criterion, lost, won in case.terms:
        # Of forbidden terms, those that are newly used are the ones that were found.
        in_base, in_new = (won, lost) if criterion == "AH" else (lost, won)
        evaded = case.evaded if criterion == "AH" else ()
        changes = (
            (_LOST[criterion], lost),
            (_WON[criterion], without(won, evaded)),
            ("now in another form", evaded),
            ("doubtful in base", case.before.doubts(criterion, in_base)),
            ("doubtful in new", case.after.doubts(criterion, in_new)),
        )
        yield from ((f"{criterion} {what}", terms) for what, terms in changes if terms)


def scores(case: Change) -> Iterator[str]:
    """Yield the scores that changed; where two decimals do not show how, in words."""
    for name in Scores._fields:
        before, after = getattr(case.before.scores, name), getattr(case.after.scores, name)
        texts = score(before), score(after)
        alike = f" ({'higher' if after > before else 'lower'})" if texts[0] == texts[1] else ""
        if before != after:
            yield f"{name} {' → '.join(texts)}{alike}"


# --- the page ---------------------------------------------------------------------------------------------------------


def page(comparison: Comparison) -> Document:
    """Give the verdict first, then the numbers, then the cases, the worst first."""
    sides = (("Base", comparison.base), ("New", comparison.new))
    reports = (Sentence(f"{which}: {{}}, {counts(side)}", (Name(side.name),)) for which, side in sides)
    return Document(
        "comparison",
        Sentence("SAFE v0: comparison for concern {}", (Name(comparison.new.concern_id),)),
        headline(comparison),
        summary(comparison),
        is_good=not (comparison.lost or (comparison.change and comparison.change.is_worse)),
        decision=comparison.decision,
        warnings=[*remarks(comparison)],
        facts=[*reports, Sentence(passes(comparison)), Sentence(term_totals(comparison))],
        tables=[measures(comparison), tests(comparison)],
        notes=[BRACKETS, ONE_RUN_EACH],
        sections=[*_listed(comparison), *_cases(comparison)],
    )


def _listed(comparison: Comparison) -> Iterator[Section]:
    for heading, cases in newly_listed(comparison):
        named = ((*_name(comparison, case), texts) for case, texts in cases)
        items = [
            Item(Sentence(f"{name}: {', '.join(['{}'] * len(texts))}", (*names, *texts)))
            for name, names, texts in named
        ]
        what = "cases with near violations or unsupported values that are new"
        yield Section(Sentence(f"{heading} ({len(cases)})"), items, left_out=what)


def _cases(comparison: Comparison) -> Iterator[Section]:
    """Give the lost cases, the judged ones that changed, the worse ones first, and the others that are not judged."""
    moved = comparison.moved
    lower, higher = ([case for case in moved if case.direction * sign > 0] for sign in (-1, 1))
    same = [case for case in moved if case.direction == 0]
    others = [case for case in comparison.not_judged if not case.is_lost]
    not_judged = "Others that are not judged" if comparison.lost else "Not judged"
    lists: tuple[tuple[str, Sequence[Change | NotJudged], str], ...] = (
        ("Lost: base answers them, new does not", comparison.lost, "lost cases"),
        ("Worse label", comparison.fell, "cases with a worse label"),
        ("Same label, lower composite", lower, "cases with a lower composite"),
        ("Better label", comparison.rose, "cases with a better label"),
        ("Same label, higher composite", higher, "cases with a higher composite"),
        ("Same label and composite, other scores or terms", same, "cases with the same label and composite"),
        (not_judged, others, "other cases that are not judged"),
    )
    for heading, cases, left_out in lists:
        items = [_item(comparison, case) for case in cases]
        is_folded = cases is higher or cases is same
        yield Section(Sentence(f"{heading} ({len(cases)})"), items, is_folded=is_folded, left_out=left_out)


def _item(comparison: Comparison, case: Change | NotJudged) -> Item:
    name, names = _name(comparison, case)
    if isinstance(case, NotJudged):
        return Item(Sentence(f"{name}: {why_not(case)}", names))
    return Item(
        Sentence(", ".join((name, *scores(case))), names),
        [*dict.fromkeys((case.before.label, case.after.label))],
        below=[Texts.of(*each) for each in terms_of(case)],
        anchor=case.test_id,
    )


def _name(comparison: Comparison, case: Change | NotJudged) -> tuple[str, tuple[str, ...]]:
    """Give a case's test_id, and its batch where there are several, as the beginning of a sentence."""
    if comparison.has_batches and case.batch_id is not None:
        return "{} (batch {})", (Name(case.test_id), Name(case.batch_id))
    return "{}", (Name(case.test_id),)


# --- cases that are not judged ----------------------------------------------------------------------------------------

_REASONS: Final[Mapping[Reason, str]] = {
    "not_in_report": "not in the report",
    "no_output": "no output",
    "failed_generation": "the generation failed",
    "input_mismatch": MISMATCH,
}


def why_not(case: NotJudged) -> str:
    """Say why a case is not judged, as "base: no output; new: not in the report", and of a lost one what base had."""
    if case.base == case.new and case.base is not None:
        return f"both: {_REASONS[case.base]}"
    had = f"{case.before.label}, {count_of(len(case.found_terms), 'required term')} found" if case.before else None
    sides = (("base", case.base, had if case.is_lost else None), ("new", case.new, None))
    told = ((which, answer if reason is None else _REASONS[reason]) for which, reason, answer in sides)
    return "; ".join(f"{which}: {what}" for which, what in told if what is not None)


COMMENT_BYTES: Final = 65_536
"""The most that GitHub accepts as the text of a pull request or a comment (it counts characters)."""
RENDERED: Final = formats(page, Comparison.document, COMMENT_BYTES)
