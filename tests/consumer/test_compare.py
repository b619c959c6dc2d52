"""What changed between two reports, in numbers, on a console and in a pull request."""

import html
import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.equal_runs import SEED, SHAPES, made_up, named, rate
from consumer.errors import ConfigurationError
from consumer.offline.compare import Change, Comparison, Mean, TermChange, compare
from consumer.offline.destinations import Format
from consumer.offline.gate import ComparisonGate, Decision
from consumer.offline.pages.comparison_content import ONE_RUN_EACH, RENDERED, headline, remarks
from consumer.offline.pages.comparison_content import page as page_of
from consumer.offline.pages.console_layout import console_text
from consumer.offline.pages.document import Item
from consumer.offline.pages.markdown_parts import markdown
from consumer.offline.stored_report import read_report
from consumer.text import printable
from safe_core import DEFAULT_POLICY, EMPTY_OUTPUT, Expectations, Output, Policy
from tests.support.golden import matches_golden
from tests.support.pages import Page
from tests.support.scored_runs import NASTY, Sample, nasty_samples, scored_run


def report(samples: Sequence[Sample], policy: Policy = DEFAULT_POLICY, **changes: Any) -> dict[str, Any]:
    """A report as `safe score` writes it, and as JSON carries it."""
    written = dict(scored_run(samples, policy=policy).report) | changes
    document: dict[str, Any] = json.loads(json.dumps(written))
    return document


def case(test_id: str, signals: str = "", summary: str = "", question: str = "", **changes: Any) -> Sample:
    """A case that wants two signals and two phrases and forbids two terms: each text says what of these it holds."""
    expected = Expectations(("one", "two"), ("blame", "fault"), ("three", "four"))
    output = Output((signals,), summary, (question,)) if signals or summary or question else EMPTY_OUTPUT
    return replace(Sample(test_id, expected, output), **changes)


ALL = ("one two", "three four", "what?")
BASE = [
    case("T-1", *ALL),
    case("T-2", *ALL),
    case("T-3", "one", "three", "what?"),
    case("T-4"),
    case("T-5", "one two", "three", "what?"),
    case("T-6", *ALL),
]
NEW = [
    # Pass to Fail
    case("T-1", "nothing", "three four", "what?"),
    # Pass to Review, by a forbidden term
    case("T-2", "one two", "three four", "whose blame?"),
    # Review to Pass
    case("T-3", *ALL),
    # Fail to Review
    case("T-4", "one", "three", "what?"),
    # Review as before, with the same scores but another phrase
    case("T-5", "one two", "four", "what?"),
    # as it was
    case("T-6", *ALL),
]


def compared(base: Sequence[Sample] = BASE, new: Sequence[Sample] = NEW) -> Comparison:
    return compare(report(base), report(new))


def ids(changes: Sequence[Change]) -> list[str]:
    return [change.test_id for change in changes]


# --- the numbers ------------------------------------------------------------------------------------------------------


def test_cases_fall_rise_or_move_within_their_label() -> None:
    comparison = compared()
    assert ids(comparison.fell) == ["T-1", "T-2"]
    assert ids(comparison.rose) == ["T-3", "T-4"]
    assert ids(comparison.moved) == ["T-5"]
    assert [change.step for change in comparison.cases] == [-2, -1, 1, 1, 0, 0]
    assert len(comparison.fell) == 2


def test_the_terms_behind_each_change_are_named() -> None:
    first, second, third, fourth, fifth, last = compared().cases
    assert first.terms == (TermChange("CR", ("one", "two"), ()),)
    assert second.terms == (TermChange("AH", ("blame",), ()),)
    assert third.terms == (TermChange("CR", (), ("two",)), TermChange("AC", (), ("four",)))
    assert fourth.terms == (TermChange("CR", (), ("one",)), TermChange("AC", (), ("three",)))
    assert fifth.terms == (TermChange("AC", ("three",), ("four",)),)
    assert last.terms == ()


def test_the_terms_are_counted_in_all() -> None:
    assert compared().terms == [("CR", 2, 2), ("AH", 1, 0), ("AC", 1, 3)]
    assert compared(NEW, BASE).terms == [("CR", 2, 2), ("AH", 0, 1), ("AC", 3, 1)]


def test_a_term_listed_twice_is_lost_twice() -> None:
    twice = Expectations(("one", "one"), (), ())
    base, new = (Sample("T-1", twice, Output((text,), "", ())) for text in ("one", "nothing"))
    assert compared([base], [new]).cases[0].terms == (TermChange("CR", ("one", "one"), ()),)


def test_passes_and_means_are_those_of_the_judged_cases() -> None:
    comparison = compared([*BASE, case("T-7", *ALL)], [*NEW, case("T-8")])
    assert comparison.passes == (3, 2)
    assert comparison.gained_and_lost == (1, 2)
    assert comparison.means[:4] == [
        Mean("CR", 0.75, 4.5 / 6),
        Mean("AH", 1.0, 5.5 / 6),
        Mean("AC", 4 / 6, 5 / 6),
        Mean("composite", *(comparison.means[3][1:])),
    ]
    whole = report(BASE)["mean_scores"]
    assert {mean.name: mean.base for mean in compared().means[:4]} == whole
    beside = {mean.name: mean.base for mean in compared().means[4:]}
    lenient, coverage = report(BASE)["mean_lenient"], report(BASE)["mean_coverage"]
    assert beside == pytest.approx(
        {
            **{f"lenient {name}": value for name, value in lenient.items()},
            **{f"coverage {name}": value for name, value in coverage.items()},
        }
    )


def test_each_respect_is_tested_by_case() -> None:
    base = [case(f"T-{number}") for number in range(8)]
    # six rise, of which two to Pass, and nothing falls
    new = [
        *(case(f"T-{number}", "one", "three", "what?") for number in range(4)),
        *(case(f"T-{number}", *ALL) for number in (4, 5)),
        *base[6:],
    ]
    comparison = compared(base, new)
    assert comparison.gained_and_lost == (2, 0)
    assert [(test.respect, test.better, test.worse, test.p, test.holm) for test in comparison.tests] == [
        (respect, 6, 0, 0.03125, 0.125) for respect in ("labels", "composites", "lenient", "terms")
    ]
    assert comparison.change is None


def test_a_report_is_no_different_from_itself() -> None:
    comparison = compared(BASE, BASE)
    assert (comparison.fell, comparison.rose, comparison.moved) == ([], [], [])
    assert {(test.p, test.holm) for test in comparison.tests} == {(1.0, 1.0)}
    assert headline(comparison) == "Nothing changed beyond chance"
    assert not list(remarks(comparison))


FLOOR = [case(f"T-{number}", "one", "", "what?") for number in range(12)]  # each fails by AC, and has one term of four


def test_what_labels_cannot_show_is_named_by_the_strongest_respect() -> None:
    fallen = [*FLOOR[:2], *(case(f"T-{number}", "nothing", "", "what?") for number in range(2, 12))]
    comparison = compared(FLOOR, fallen)
    assert not comparison.fell
    assert not comparison.rose
    assert headline(comparison) == "Composites fell beyond chance (10 fell, 0 rose)"
    assert headline(compared(fallen, FLOOR)) == "Composites rose beyond chance (10 rose, 0 fell)"
    document = comparison.document()
    assert document["change"] == "composites"
    assert [test["respect"] for test in document["tests"]] == ["labels", "composites", "lenient", "terms"]


def test_a_case_counts_once_however_many_terms_it_lost() -> None:
    expected = Expectations(tuple(f"word{number}x" for number in range(8)), (), ())
    full = [
        Sample(f"T-{number}", expected, Output((" ".join(expected.must_find_signals),), "", ())) for number in (1, 2)
    ]
    none = [replace(sample, output=Output(("nothing",), "", ())) for sample in full]
    comparison = compared(full, none)
    assert comparison.terms[0] == ("CR", 16, 0)
    assert [(test.better, test.worse) for test in comparison.tests] == [(0, 2)] * 4
    assert comparison.change is None


def test_lenient_recall_is_tested_only_where_both_reports_tell_of_it() -> None:
    base, new = report(FLOOR), report(FLOOR)
    for result in new["results"]:
        result["lenient"]["AC"] = 0.5
    told = {mean.name: (mean.base, mean.new) for mean in compare(base, new).means}
    assert told["lenient AC"] == (0.0, 0.5)
    assert headline(compare(base, new)) == "Lenient recall rose beyond chance (12 rose, 0 fell)"
    del base["results"][3]["lenient"]
    assert [test.respect for test in compare(base, new).tests] == ["labels", "composites", "terms"]
    assert headline(compare(base, new)) == "Nothing changed beyond chance"


def test_of_equal_runs_a_change_is_named_in_one_pair_of_twenty_at_most() -> None:
    rng = random.Random(SEED)
    assert [rate(named(made_up(shape, rng), 500, rng)) <= 0.05 for shape in SHAPES[:3]] == [True] * 3


SAMPLES = st.tuples(*(st.sampled_from(["", "one", "two", "one two"]) for _ in range(6)))


@given(SAMPLES, SAMPLES)
@settings(max_examples=50)
def test_back_again_is_the_mirror_image(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    base, new = ([case(f"T-{at}", text) for at, text in enumerate(texts)] for texts in (before, after))
    there, back = compared(base, new), compared(new, base)
    assert set(ids(there.fell)) == set(ids(back.rose))
    assert set(ids(there.rose)) == set(ids(back.fell))
    assert ids(there.moved) == ids(back.moved)
    assert [test.holm for test in there.tests] == [test.holm for test in back.tests]
    assert [(test.better, test.worse) for test in there.tests] == [(test.worse, test.better) for test in back.tests]
    assert there.terms == [(criterion, won, lost) for criterion, lost, won in back.terms]
    assert len(there.fell) + len(there.rose) + len(there.moved) <= len(there.cases) == 6


# --- the exit ---------------------------------------------------------------------------------------------------------


def decide(comparison: Comparison, max_regressions: int = 0) -> Decision:
    return ComparisonGate(max_regressions).decide(comparison)


@pytest.mark.parametrize(("max_regressions", "failed"), [(0, True), (1, True), (2, False), (3, False)])
def test_more_regressions_than_may_be_fail(max_regressions: int, failed: bool) -> None:
    verdict_ = "NOT passed" if failed else "passed"
    line = f"gate {verdict_}: 2 cases with a worse label, --max-regressions allows {max_regressions}"
    decision = decide(compared(), max_regressions)
    assert (decision.passed, decision.line) == (not failed, line)


BEYOND = [
    # (what falls in twelve cases, what the gate is asked of, whether it passes)
    ("nothing", "scores", True),
    ("nothing", "lenient", True),
    ("composites", "scores", False),
    ("composites", "labels", True),
    ("lenient", "lenient", False),
    ("lenient", "scores", True),
]


@pytest.mark.parametrize(("fallen", "of", "passes"), BEYOND)
def test_a_gate_may_ask_that_nothing_fell_beyond_chance(fallen: str, of: Any, passes: bool) -> None:
    base, new = report(FLOOR), report(FLOOR)
    for result in base["results"] if fallen == "lenient" else ():
        result["lenient"]["AC"] = 1.0
    for result in new["results"] if fallen == "composites" else ():
        result["scores"]["composite"] = 0.1
    gate = ComparisonGate.asked(of, None, None, None)
    assert gate is not None
    decision = gate.decide(compare(base, new))
    assert decision.passed is passes
    if not passes:
        said = {"scores": "composites", "lenient": "lenient recall"}[of]
        why = f"{said} fell beyond chance (0 rose, 12 fell, p by Holm 0.00048828125)"
        assert decision.line == f"gate NOT passed: {why} (--fail-on-regression {of})"


def test_a_gate_on_lenient_recall_needs_reports_that_tell_of_it() -> None:
    old = report(FLOOR)
    for result in old["results"]:
        del result["lenient"]
    with pytest.raises(ConfigurationError, match="score the outputs again"):
        ComparisonGate(respect="lenient").decide(compare(old, report(FLOOR)))


def test_a_lower_score_within_a_label_is_no_regression() -> None:
    worse = [case("T-1", "one", "three", "what?")]
    comparison = compared([case("T-1", "one two", "three", "what?")], worse)
    assert ids(comparison.moved) == ["T-1"]
    assert decide(comparison, 0).passed


# --- what is said aloud -----------------------------------------------------------------------------------------------


def said(base: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [remark.template.format(*remark.texts) for remark in remarks(compare(base, new))]


def test_unequal_sets_are_said_aloud() -> None:
    base, new = [*BASE, case("T-7"), case("T-8")], [*NEW, *(case(f"U-{number}") for number in range(7))]
    assert said(report(base), report(new)) == [
        "The reports have different cases: only what is in both can be judged.",
        "Only in the base report: 2 cases: T-7, T-8.",
        "Only in the new report: 7 cases: U-0, U-1, U-2, U-3, U-4 and 2 more.",
    ]


def test_other_rules_are_said_aloud_with_what_differs() -> None:
    strict = Policy.from_document({"strictAH": True, "thresholds": {"CR": {"pass": 0.9}}})
    assert said(report(BASE), report(BASE, strict)) == [
        (
            "The fingerprints differ, so the two reports used different rules (thresholds.CR.pass 0.8 -> 0.9, "
            f"strictAH false -> true): base {DEFAULT_POLICY.fingerprint}, new {strict.fingerprint}."
        ),
        "Strict AH is off in the base report and on in the new one.",
    ]


ALOUD: list[tuple[dict[str, Any], list[str]]] = [
    # another concern: the same test_ids by chance
    ({"concern_id": "S12"}, ["The concerns differ: base S11, new S12."]),
    # a batch that still runs
    ({"complete": False}, ["The batch of the new report is not complete: more results may come."]),
    # a run that broke off
    (
        {"missing_outputs": 4},
        ["The new report counts 4 cases without an output, but does not name them: they are judged as empty outputs."],
    ),
    # another match rule
    (
        {"scorer": {"fingerprint": DEFAULT_POLICY.fingerprint, "rule": "words/2"}},
        ["The match rules differ: base substring/1, new words/2."],
    ),
    # a report as in the specification, which tells nothing of its scorer
    (
        {"scorer": None},
        [
            "The match rules differ: base substring/1, new none.",
            "The new report has no fingerprint, so it is not certain that the rules are the same.",
        ],
    ),
    ({"configuration": None}, ["Strict AH is off in the base report and unknown in the new one."]),
]


@pytest.mark.parametrize(("changes", "sentences"), ALOUD)
def test_what_makes_reports_unlike_is_said_aloud(changes: dict[str, Any], sentences: list[str]) -> None:
    assert said(report(BASE), report(BASE, **changes)) == sentences


def test_changed_expectations_are_said_aloud_and_their_terms_are_nobodys_gain_or_loss() -> None:
    output = Output(("one",), "three", ("what?",))
    base = Sample("T-1", Expectations(("one", "old"), ("blame",), ("three",)), output)
    new = Sample("T-1", Expectations(("one", "new"), ("blame",), ("three",)), output)
    sentence = "The expectations of 1 judged case differ (T-1): their scores may differ for that reason alone."
    assert said(report([base]), report([new])) == [sentence]
    assert compared([base], [new]).cases[0].terms == ()


def test_another_number_of_forbidden_terms_is_another_expectation_where_both_reports_tell_it() -> None:
    base, new = report([case("T-1", *ALL)]), report([case("T-1", *ALL)])
    new["results"][0]["terms"]["AH"] = 3
    assert compare(base, new).cases[0].has_other_expectations
    del base["results"][0]["terms"]
    assert not compare(base, new).cases[0].has_other_expectations


# --- reports that cannot be used --------------------------------------------------------------------------------------


def refusal(base: dict[str, Any], new: dict[str, Any]) -> str:
    with pytest.raises(ConfigurationError) as refused:
        compare(base, new, "base.json", "new\x1b.json")
    return str(refused.value)


def without(name: str) -> Callable[[dict[str, Any]], None]:
    def remove(document: dict[str, Any]) -> None:
        del document[name]

    return remove


def first(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    return lambda document: change(document["results"][0])


UNUSABLE: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    # a report of the worker
    (without("results"), "has no results to compare; safe score --output report.json writes them"),
    # not what safe score writes
    (lambda d: d.update(results={}), "results is not a list"),
    (lambda d: d["results"].__setitem__(0, "T-1"), "results[0] is not an object"),
    (first(without("test_id")), "results[0].test_id is missing"),
    (first(lambda r: r.update(test_id=7)), "results[0].test_id is not a string"),
    (first(lambda r: r.update(test_id=" ")), "results[0].test_id is blank"),
    (first(lambda r: r.update(test_id="T\x1b")), "results[0].test_id holds the control character U+001B"),
    (first(without("label")), "results[0].label is missing"),
    (first(lambda r: r.update(generation="lost")), "results[0].generation is not one of answered, failed"),
    (first(lambda r: r.update(label="pass")), "results[0].label is not one of Pass, Review, Fail"),
    (first(lambda r: r.update(label=None)), "results[0].label is not a string"),
    (first(without("scores")), "results[0].scores is missing"),
    (first(lambda r: r.update(scores=[1, 1, 1, 1])), "results[0].scores is not an object"),
    (first(lambda r: r["scores"].pop("AC")), "results[0].scores.AC is missing"),
    (first(lambda r: r["scores"].update(CR=True)), "results[0].scores.CR is not a score from 0 to 1"),
    (first(lambda r: r["scores"].update(CR="1")), "results[0].scores.CR is not a score from 0 to 1"),
    (first(lambda r: r["scores"].update(AH=1.01)), "results[0].scores.AH is not a score from 0 to 1"),
    (first(lambda r: r["scores"].update(composite=-0.1)), "results[0].scores.composite is not a score from 0 to 1"),
    (first(lambda r: r["scores"].update(CR=float("nan"))), "results[0].scores.CR is not a score from 0 to 1"),
    (first(without("details")), "results[0].details is missing"),
    (first(lambda r: r["details"].pop("AH")), "results[0].details.AH is missing"),
    (first(lambda r: r["details"].update(AC=[])), "results[0].details.AC is not an object"),
    (first(lambda r: r["details"]["CR"].pop("missing")), "results[0].details.CR.missing is missing"),
    (first(lambda r: r["details"]["AH"].update(violations="blame")), "results[0].details.AH.violations is not a list"),
    (first(lambda r: r["details"]["AC"].update(found=["a", 1])), "results[0].details.AC.found[1] is not a string"),
    (first(lambda r: r.update(terms=3)), "results[0].terms is not an object"),
    (first(lambda r: r["terms"].update(AH=-1)), "results[0].terms.AH is not a count of terms"),
    (first(lambda r: r["terms"].update(AH=True)), "results[0].terms.AH is not a count of terms"),
    # two answers of one case
    (
        lambda d: d["results"].append(d["results"][1]),
        "results[6].test_id T-2 is in results[1] too: write the report again with safe score",
    ),
    # a part taken away, or labels changed by hand
    (lambda d: d["results"].pop(), "contradicts itself: summary.total_cases is 6, results say 5"),
    (first(lambda r: r.update(label="Review")), "contradicts itself: summary.pass is 3, results say 2"),
    (
        lambda d: d["summary"].update({"pass": 4}),
        "summary contradicts itself: 4 pass, 2 review and 1 fail are not 6 cases",
    ),
    # what stands beside the results
    (without("concern_id"), "concern_id is missing"),
    (lambda d: d.update(concern_id="x" * 257), "concern_id is longer than 256 characters"),
    (lambda d: d.update(missing_outputs="4"), "missing_outputs is not a count of cases"),
    (lambda d: d.update(complete="yes"), "complete is not a boolean (true or false)"),
    (lambda d: d.update(scorer="SAFE"), "scorer is not an object"),
    (lambda d: d["scorer"].update(fingerprint=7), "scorer.fingerprint is not a string"),
    (lambda d: d["scorer"].update(rule=""), "scorer.rule is empty"),
    (lambda d: d.update(configuration=[]), "configuration is not an object"),
    (lambda d: d["configuration"].update(strictAH="no"), "configuration.strictAH is not a boolean (true or false)"),
]


@pytest.mark.parametrize(("spoil", "why"), UNUSABLE, ids=[why for _, why in UNUSABLE])
def test_an_unusable_report_is_named_with_the_place(spoil: Callable[[dict[str, Any]], None], why: str) -> None:
    spoilt = report(BASE)
    spoil(spoilt)
    assert refusal(spoilt, report(BASE)) == f"base.json: {why}"
    assert refusal(report(BASE), spoilt) == f"new\\u001b.json: {why}"


def test_reports_without_a_common_case_are_refused_and_no_gate_passes_by_them() -> None:
    found = refusal(report([case("T-1")]), report([case("U-1")]))
    assert found == "base.json and new\\u001b.json have no test case in common: nothing to compare"


def test_the_smallest_report_of_the_specification_is_enough() -> None:
    needed = ("summary", "results", "concern_id")
    base, new = ({name: report(samples)[name] for name in needed} for samples in (BASE, NEW))
    for document in (base, new):
        for result in document["results"]:
            del result["terms"]
    assert len(compare(base, new).fell) == 2


def test_files_that_safe_score_writes_are_compared(tmp_path: Path) -> None:
    for name, samples in (("base.json", BASE), ("new.json", NEW)):
        (tmp_path / name).write_text(json.dumps(report(samples)))
    comparison = compare(read_report(tmp_path / "base.json"), read_report(tmp_path / "new.json"))
    assert len(comparison.fell) == 2


# --- the pages --------------------------------------------------------------------------------------------------------


def unlike() -> Comparison:
    """Two reports with every remark that there is."""
    strict = Policy.from_document({"strictAH": True, "overrides": {"archetype": {"a|`b`": {"strictAH": False}}}})
    base = report([*BASE, case("T-7|`<b>")], concern_id="S10")
    new = report([*NEW[1:], case("T-1", *ALL, expectations=Expectations(("one",), (), ())), case("T-9")], strict)
    return compare(base, new | {"complete": False}, "out/main [1].json", "out/`new`|.json")


def nasty() -> Comparison:
    """Ids and terms that try to break out, each lost or won."""
    base = nasty_samples()
    new = [replace(sample, output=Output((term,), term, ("what?",))) for sample, term in zip(base, NASTY, strict=True)]
    half = len(base) // 2
    return compare(report([*base[:half], *new[half:]]), report([*new[:half], *base[half:]]), "\x1b[2J.json", "<i>.json")


def decided(comparison: Comparison) -> Comparison:
    return replace(comparison, decision=decide(comparison, 0).line)


@pytest.mark.parametrize(("format_", "suffix"), [("console", "txt"), ("markdown", "md")])
def test_each_layout_is_as_kept(format_: Format, suffix: str) -> None:
    matches_golden(f"compare.{suffix}", RENDERED[format_](decided(compared())))


LAYOUTS: tuple[Format, ...] = ("console", "markdown", "html")


@pytest.mark.parametrize("format_", LAYOUTS)
def test_every_layout_says_all_that_the_document_says(format_: Format) -> None:
    comparison = decided(unlike())
    said = re.sub("<[^>]*>", "", html.unescape(RENDERED[format_](comparison)))
    document = page_of(comparison)
    parts = [part for section in document.sections for part in section.parts]
    sentences = [*document.warnings, *document.facts, *(part.line for part in parts if isinstance(part, Item))]
    sentences += [one for part in parts if isinstance(part, Item) for each in part.below for one in each.texts]
    texts = [text for sentence in sentences for text in sentence.texts]
    cells = [cell for table in document.tables for row in table.rows for cell in row]
    for text in (document.headline, document.summary, document.decision, *document.notes, *texts, *cells):
        assert text is not None
        assert re.sub("<[^>]*>", "", text) in said


def test_the_verdict_stands_first() -> None:
    start = "Nothing changed beyond chance: of 6 judged cases, 2 got a worse label, 2 a better one, 2 kept theirs"
    assert console_text(page_of(compared())).splitlines()[0].startswith(start)
    mark, title, _, words, *_ = RENDERED["markdown"](compared()).splitlines()
    assert (mark, title) == ("<!-- SAFE v0 comparison -->", "# SAFE v0: comparison for concern `S11`")
    assert words.startswith("**Nothing changed beyond chance**: of 6 judged cases")


def test_both_pages_say_that_one_run_each_tells_nothing_of_the_noise() -> None:
    assert ONE_RUN_EACH in console_text(page_of(compared())).splitlines()
    assert ONE_RUN_EACH in RENDERED["markdown"](compared())
    assert "a second run of the same prompt could differ as much" in ONE_RUN_EACH


def test_nothing_that_a_terminal_obeys_reaches_the_console() -> None:
    lines = console_text(page_of(nasty())).splitlines()
    assert lines == list(map(printable, lines))


def test_texts_from_outside_are_shown_as_they_are_and_make_no_markup() -> None:
    page = Page(markdown(page_of(nasty())))
    allowed = {"h1", "h2", "p", "strong", "em", "ul", "li", "code", "table", "thead", "tbody", "tr", "th", "td"}
    assert page.tags <= allowed | {"details", "summary"}
    for term in NASTY:
        assert printable(term) in page.code
    assert {sample.test_id for sample in nasty_samples()} <= set(page.code)


def test_scores_have_two_decimals_and_what_they_do_not_show_is_said() -> None:
    base, new = report([case("T-1", *ALL)]), report([case("T-1", *ALL)])
    base["results"][0]["scores"]["CR"], new["results"][0]["scores"]["CR"] = 0.9011, 0.9012
    for reports, how, difference in (((base, new), "higher", "+0.00"), ((new, base), "lower", "-0.00")):
        lines = console_text(page_of(compare(*reports))).splitlines()
        assert f"  Pass  T-1, CR 0.90 -> 0.90 ({how})" in lines
        row = next(line for line in lines if "Mean CR" in line)
        assert row.split()[2:] == ["0.90", "0.90", difference]


MANY = [case(f"T-{number:04}", *ALL) for number in range(2_000)]
MANY_WORSE = [case(f"T-{number:04}", question="blame") for number in range(2_000)]


@pytest.mark.parametrize("max_bytes", [4_096, 65_536])
def test_a_page_fits_where_it_is_posted_and_says_what_is_left_out(max_bytes: int) -> None:
    page = markdown(page_of(compared(MANY, MANY_WORSE)), max_bytes)
    assert 0.9 * max_bytes < len(page.encode()) <= max_bytes
    listed = len(re.findall("\n- .*`T-", page))
    assert f"_Left out for want of room: {2_000 - listed} of 2000 cases with a worse label" in page
    assert "**Labels fell beyond chance (2000 fell, 0 rose)**" in page


def test_a_case_that_is_too_large_hides_no_other() -> None:
    large = Sample("T-0", Expectations(("x" * 70_000,), (), ()), Output(("x" * 70_000,), "", ()))
    base, new = [large, case("T-1", *ALL)], [replace(large, output=EMPTY_OUTPUT), case("T-1")]
    page = RENDERED["markdown"](compared(base, new))
    assert len(page.encode()) <= 65_536
    assert "- Pass → Fail: `T-0`" in page
    assert "- Pass → Fail: `T-1`" in page
    assert "_Left out for want of room: the terms of 1 of 2 cases with a worse label._" in page


def test_without_a_limit_nothing_is_left_out() -> None:
    page = markdown(page_of(compared(MANY, MANY_WORSE)))
    assert len(re.findall("\n- .*`T-", page)) == 2_000
    assert "Left out" not in page


def test_where_there_is_no_room_for_lists_the_verdict_stays() -> None:
    page = markdown(page_of(compared()), 100)
    assert "**Nothing changed beyond chance**" in page
    assert "## Worse label" not in page
