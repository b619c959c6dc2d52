"""Cases that only one report answers, or answers from another narrative: listed, never judged, and perhaps lost.

What changed among the judged cases is in test_compare.py.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main
from consumer.errors import ConfigurationError
from consumer.offline.compare import Comparison, compare
from consumer.offline.gate import ComparisonGate
from consumer.offline.pages.comparison_content import RENDERED, headline, terms_of
from consumer.offline.pages.comparison_content import page as page_of
from consumer.offline.pages.console_layout import console_text
from consumer.text import natural_order
from tests.consumer.test_compare import ALL, case, nasty, report
from tests.consumer.test_html_page import OURS, Page
from tests.support.golden import matches_golden
from tests.support.scored_runs import NASTY, Sample, nasty_samples

Report = dict[str, Any]
HALF = ("one", "three", "what?")


def answered(
    samples: Sequence[Sample], *, mismatches: Sequence[str] = (), batches: Mapping[str, str] | None = None
) -> Report:
    """A report as today's `safe score` writes it: it names cases without an output, mismatches and batches."""
    document = report(samples)
    document["missing_test_ids"] = [sample.test_id for sample in samples if sample.output is None]
    for result in document["results"]:
        result["input_matches"] = False if result["test_id"] in mismatches else None
        if batches is not None:
            result["batch_id"] = batches[result["test_id"]]
    return document


def unanswered(test_id: str) -> Sample:
    return case(test_id, output=None)


# --- which cases are judged -------------------------------------------------------------------------------------------

BASE = answered(
    [case("T-1", *ALL), case("T-2", *ALL), case("T-3", *HALF), unanswered("T-4"), case("T-5", *ALL), case("T-6", *ALL)],
    mismatches=["T-5"],
)
NEW = answered(
    [case("T-1", *ALL), unanswered("T-2"), case("T-3", *ALL), unanswered("T-4"), case("T-5", *ALL), case("T-7", *ALL)],
)


def listed(comparison: Comparison) -> list[tuple[str, str, str]]:
    return [(case.test_id, case.side, case.reason) for case in comparison.not_judged]


def test_cases_that_one_side_does_not_answer_are_listed_and_not_judged() -> None:
    comparison = compare(BASE, NEW)
    assert [change.test_id for change in comparison.cases] == ["T-1", "T-3"]
    assert listed(comparison) == [
        ("T-2", "new", "no_output"),
        ("T-4", "both", "no_output"),
        ("T-5", "base", "input_mismatch"),
        ("T-6", "new", "not_in_report"),
        ("T-7", "base", "not_in_report"),
    ]
    assert [lost.test_id for lost in comparison.lost] == ["T-2", "T-6"]


def test_a_report_that_answers_less_is_no_report_without_a_regression() -> None:
    comparison = compare(BASE, NEW)
    assert comparison.fell == []
    assert headline(comparison) == "2 lost cases; nothing changed beyond chance"
    assert console_text(page_of(comparison)).splitlines()[0] == (
        "2 lost cases; nothing changed beyond chance: of 2 judged cases, 0 got a worse label, 1 a better one, "
        "1 kept theirs. "
        "Not judged: 5 cases. Of these, 2 are lost; the base report had found 8 required terms there."
    )


ONE_CASE = [
    # (base, new; None is a missing output, "other" one from another narrative), side, reason, lost
    (ALL, None, ("new", "no_output"), True),
    (ALL, "other", ("new", "input_mismatch"), True),
    (ALL, "absent", ("new", "not_in_report"), True),
    (None, ALL, ("base", "no_output"), False),
    ("other", ALL, ("base", "input_mismatch"), False),
    ("absent", ALL, ("base", "not_in_report"), False),
    (None, None, ("both", "no_output"), False),
    ("other", "other", ("both", "input_mismatch"), False),
    # two reasons: the one that says more
    (None, "other", ("base", "no_output"), False),
    ("other", None, ("new", "no_output"), False),
    ("other", "absent", ("new", "not_in_report"), False),
    ("absent", None, ("base", "not_in_report"), False),
]


def of_one_case(answer: str | tuple[str, ...] | None, *, alone: bool = False) -> Report:
    """A report of a case T, unless it is alone beside one that all reports answer."""
    samples = [] if alone else [case("S", *ALL)]
    if answer != "absent":
        samples.append(case("T", *ALL) if answer is not None else unanswered("T"))
    return answered(samples, mismatches=["T"] if answer == "other" else [])


@pytest.mark.parametrize(("base", "new", "why", "is_lost"), ONE_CASE)
def test_each_case_has_one_reason(base: Any, new: Any, why: tuple[str, str], is_lost: bool) -> None:
    comparison = compare(of_one_case(base), of_one_case(new))
    assert listed(comparison) == [("T", *why)]
    assert [lost.test_id for lost in comparison.lost] == (["T"] if is_lost else [])
    assert len(comparison.cases) == 1


def test_a_known_match_is_an_answer_like_an_unknown_one() -> None:
    base, new = answered([case("T", *ALL)]), answered([case("T", *ALL)])
    base["results"][0]["input_matches"] = True
    assert compare(base, new).not_judged == []


def test_an_older_report_that_names_no_missing_outputs_is_judged_as_it_stands() -> None:
    old = report([case("T-1", *ALL), unanswered("T-2")])
    comparison = compare(old, answered([case("T-1", *ALL), case("T-2", *ALL)]))
    assert [change.test_id for change in comparison.cases] == ["T-1", "T-2"]
    assert (
        "The base report counts 1 case without an output, but does not name it: it is judged as an empty output."
        in console_text(page_of(comparison))
    )


def test_two_reasons_of_one_case_are_both_shown() -> None:
    lines = console_text(page_of(compare(of_one_case("other"), of_one_case(None)))).splitlines()
    assert "  T: base: made from another narrative; new: no output" in lines


NOTHING_JUDGED = [
    (None, ALL, "1 case without an output in the base report"),
    (ALL, "other", "1 case answered from another narrative in the new report"),
    ("other", "other", "1 case answered from another narrative in both reports"),
]


@pytest.mark.parametrize(("base", "new", "why"), NOTHING_JUDGED)
def test_where_nothing_is_judged_nothing_is_decided(base: Any, new: Any, why: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        compare(of_one_case(base, alone=True), of_one_case(new, alone=True))
    assert str(refused.value) == f"base.json and new.json: nothing can be judged: {why}"


UNUSABLE: list[tuple[Report, Report, str]] = [
    # (changes of the report, changes of its first result, what is said)
    ({"missing_test_ids": "T"}, {}, "missing_test_ids is not a list"),
    ({"missing_test_ids": [1]}, {}, "missing_test_ids[0] is not a string"),
    ({}, {"input_matches": "no"}, "results[0].input_matches is not a boolean (true or false)"),
    ({}, {"batch_id": 7}, "results[0].batch_id is not a string"),
    ({}, {"batch_id": "b\n"}, "results[0].batch_id holds the control character U+000A"),
]


@pytest.mark.parametrize(("changes", "of_result", "why"), UNUSABLE)
def test_what_a_report_says_of_answers_is_checked(changes: Report, of_result: Report, why: str) -> None:
    spoilt = answered([case("T-1", *ALL)]) | changes
    spoilt["results"][0] |= of_result
    with pytest.raises(ConfigurationError) as refused:
        compare(BASE, spoilt)
    assert str(refused.value) == f"new.json: {why}"


# --- the order --------------------------------------------------------------------------------------------------------


def test_numbers_in_names_are_ordered_as_numbers() -> None:
    names = ["", "7", "10", "I25_batch_1", "I25_batch_2", "I25_batch_2b", "I25_batch_9", "I25_batch_10", "golden_set"]
    assert sorted(set(names), key=natural_order) == names
    assert sorted(["b_1", "b_01", "b_1"], key=natural_order) == ["b_01", "b_1", "b_1"], (
        "a fixed order for equal numbers"
    )


def test_the_tenth_batch_follows_the_ninth_and_within_one_the_report_decides() -> None:
    batches = {"T-1": "b_10", "T-2": "b_2", "T-3": "b_9", "T-4": "b_2", "T-5": "b_10", "T-6": "b_9"}
    base = answered([*(case(name, *ALL) for name in sorted(batches, reverse=True))], batches=batches)
    worse = [*(case(f"T-{number}") for number in range(1, 5)), unanswered("T-5"), unanswered("T-6")]
    comparison = compare(base, answered(worse, batches=batches))
    document = comparison.document()
    assert [each["test_id"] for each in document["worse"]] == ["T-4", "T-2", "T-3", "T-1"]
    assert [each["batch_id"] for each in document["worse"]] == ["b_2", "b_2", "b_9", "b_10"]
    assert [each["test_id"] for each in document["lost"]] == ["T-6", "T-5"]
    assert [each["test_id"] for each in document["not_judged"]] == ["T-6", "T-5"]
    text = console_text(page_of(comparison))
    assert text.index("T-4 (batch b_2)") < text.index("T-3 (batch b_9)") < text.index("T-1 (batch b_10)")
    page = RENDERED["markdown"](comparison)
    assert page.index("`T-4` (batch `b_2`)") < page.index("`T-1` (batch `b_10`)")


# --- JSON -------------------------------------------------------------------------------------------------------------


def test_the_json_document_has_this_shape() -> None:
    base = answered([case("T-1", *ALL), case("T-2", *HALF), case("T-3", *ALL), case("T-4", *HALF)])
    new = answered(
        [case("T-1", "two", "three four", "what?"), case("T-2", *ALL), unanswered("T-3"), case("T-4", *HALF)]
    )
    new["results"][3]["scores"]["composite"] -= 0.1
    document = compare(base, new).document()
    listed = ["near_violations", "unsupported"]
    fields = ["judged", "worse", "better", "lost", "mean_drop", "change", "tests", "means", *listed, "not_judged"]
    assert list(document) == fields
    assert document["change"] is None
    assert document["tests"][0] == {"respect": "labels", "better": 1, "worse": 1, "p": 1.0, "holm": 1.0}
    assert document["means"][3]["name"] == "composite"
    assert document["judged"] == 3
    composites = [result["scores"]["composite"] for result in new["results"]]
    assert document["worse"] == [
        {
            "test_id": "T-1",
            "batch_id": None,
            "by": "label",
            "base": {"label": "Pass", "composite": 1.0},
            "new": {"label": "Review", "composite": composites[0]},
            "terms_lost": [{"criterion": "CR", "term": "one"}],
            "terms_gained": [],
        },
        {
            "test_id": "T-4",
            "batch_id": None,
            "by": "score",
            "base": {"label": "Review", "composite": 2 / 3},
            "new": {"label": "Review", "composite": composites[3]},
            "terms_lost": [],
            "terms_gained": [],
        },
    ]
    (better,) = document["better"]
    assert (better["test_id"], better["by"], better["new"]) == ("T-2", "label", {"label": "Pass", "composite": 1.0})
    assert better["terms_gained"] == [{"criterion": "CR", "term": "two"}, {"criterion": "AC", "term": "four"}]
    (lost,) = document["lost"]
    assert lost == {
        "test_id": "T-3",
        "batch_id": None,
        "reason": "no_output",
        "base": {"label": "Pass", "composite": 1.0},
        "terms_lost": [
            *({"criterion": "CR", "term": term} for term in ("one", "two")),
            *({"criterion": "AC", "term": term} for term in ("three", "four")),
        ],
    }
    assert document["not_judged"] == [{"test_id": "T-3", "side": "new", "reason": "no_output"}]


def test_the_mean_drop_is_that_of_the_judged_cases_and_positive_is_worse() -> None:
    base, new = [case("T-1", *ALL), case("T-2", *ALL)], [case("T-1", *HALF), unanswered("T-2")]
    drop = compare(answered(base), answered(new)).mean_drop
    assert drop == 1 - 2 / 3
    assert compare(answered(new), answered(base)).mean_drop == -drop
    assert compare(answered(base), answered(base)).mean_drop == 0


def test_terms_that_were_found_in_doubt_are_named() -> None:
    base, new = answered([case("T-1", *ALL)]), answered([case("T-1", *HALF)])
    change, *_ = compare(base, new).fell[0].terms
    found, (missed, *_) = change.criterion, change.lost
    base["results"][0]["doubtful"] = [
        {"criterion": found, "term": missed, "kind": "negated"},
        {"criterion": found, "term": "another", "kind": "negated"},
    ]
    told = dict(terms_of(compare(base, new).fell[0]))
    assert missed in told[f"{found} newly missed"]
    assert told[f"{found} doubtful in base"] == (missed,)
    back = dict(terms_of(compare(new, base).rose[0]))
    assert missed in back[f"{found} newly found"]
    assert back[f"{found} doubtful in new"] == (missed,)
    assert f"{found} doubtful in base" not in back


def test_a_composite_that_only_binary_arithmetic_makes_lower_is_the_same() -> None:
    base, new = answered([case("T-1", *ALL)]), answered([case("T-1", *ALL)])
    base["results"][0]["scores"]["composite"], new["results"][0]["scores"]["composite"] = 0.7, 0.6999999999999998
    comparison = compare(base, new)
    assert (comparison.document()["worse"], comparison.moved) == ([], [])


# --- the exit ---------------------------------------------------------------------------------------------------------

BETTER = answered([case("T-1", *ALL), case("T-2", *ALL), case("T-3", *ALL)])
WORSE = answered([case("T-1", *HALF), case("T-2", *ALL), unanswered("T-3")])
DROP = compare(BETTER, WORSE).mean_drop

REGRESSED = "1 case with a worse label, --max-regressions allows"
LOST = "1 lost case, --allow-lost allows"
DROPPED = "the mean composite dropped by 0.167, which is"
GATES: list[tuple[ComparisonGate, bool, str]] = [
    (ComparisonGate(1, 1), True, f"{REGRESSED} 1; {LOST} 1"),
    (ComparisonGate(1, 0), False, f"{LOST} 0"),
    (ComparisonGate(0, 1), False, f"{REGRESSED} 0"),
    (ComparisonGate(0, 0, 0.0), False, f"{REGRESSED} 0; {LOST} 0; {DROPPED} more than --fail-on-score-drop 0.0"),
    # the drop alone: less, equal, more
    (ComparisonGate(max_drop=0.2), True, f"{DROPPED} not more than --fail-on-score-drop 0.2"),
    (
        ComparisonGate(max_drop=DROP),
        True,
        f"the mean composite dropped by {DROP}, which is not more than --fail-on-score-drop {DROP}",
    ),
    (ComparisonGate(max_drop=0.16), False, f"{DROPPED} more than --fail-on-score-drop 0.16"),
    # so near that a rounded number would read as the bound itself
    (
        ComparisonGate(max_drop=0.167),
        True,
        f"the mean composite dropped by {DROP}, which is not more than --fail-on-score-drop 0.167",
    ),
    (ComparisonGate(max_drop=0.1666), False, f"{DROPPED} more than --fail-on-score-drop 0.1666"),
]


@pytest.mark.parametrize(("gate", "passed", "line"), GATES)
def test_a_gate_says_what_it_did_not_allow(gate: ComparisonGate, passed: bool, line: str) -> None:
    decision = gate.decide(compare(BETTER, WORSE))
    assert (decision.passed, decision.line) == (passed, f"gate {'passed' if passed else 'NOT passed'}: {line}")


def test_a_drop_that_only_binary_arithmetic_makes_more_than_allowed_passes() -> None:
    base, new = answered([case("T-1", *ALL)]), answered([case("T-1", *ALL)])
    base["results"][0]["scores"]["composite"], new["results"][0]["scores"]["composite"] = 0.8, 0.7
    comparison = compare(base, new)
    assert comparison.mean_drop > 0.1
    assert ComparisonGate(max_drop=0.1).decide(comparison).passed
    assert not ComparisonGate(max_drop=0.0999).decide(comparison).passed


def test_a_rise_and_no_change_are_no_drop() -> None:
    gate = ComparisonGate(max_drop=0.0)
    rose, same = (gate.decide(compare(base, new)).line for base, new in ((WORSE, BETTER), (BASE, BASE)))
    assert rose == "gate passed: the mean composite rose by 0.167 (--fail-on-score-drop 0.0)"
    assert same == "gate passed: the mean composite is the same (--fail-on-score-drop 0.0)"


# --- HTML -------------------------------------------------------------------------------------------------------------


def test_the_page_shows_it_as_kept() -> None:
    comparison = compare(BASE, NEW)
    line = ComparisonGate(0, 0).decide(comparison).line
    matches_golden("compare.html", RENDERED["html"](replace(comparison, decision=line)))


def test_the_page_has_the_verdict_the_numbers_and_every_list() -> None:
    page = Page(RENDERED["html"](replace(compare(BASE, NEW), decision="gate NOT passed")))
    for said in (
        "2 lost cases; nothing changed beyond chance of 2 judged cases",
        "gate NOT passed",
        "Mean composite 0.83 1.00 +0.17",
        "Lost: base answers them, new does not (2)",
        "T-2: base: Pass, 4 required terms found; new: no output",
        "Better label (1)",
        "CR newly found two",
        "Others that are not judged (3)",
        "T-4: both: no output",
    ):
        assert said in page.text


def test_texts_from_outside_are_never_markup() -> None:
    html = RENDERED["html"](replace(nasty(), decision="<u>gate</u>"))
    page = Page(html)
    assert {tag for tag, _ in page.tags} <= OURS - {"script"}
    assert "<u>gate</u>" in page.texts
    assert {sample.test_id for sample in nasty_samples()} <= set(page.texts)
    assert not [term for term in NASTY if term.startswith("<") and term in html]
    (policy,) = (meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert str(policy).startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in str(policy)


# --- as from a shell --------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two reports in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name, document in (("base.json", BASE), ("new.json", NEW), ("same.json", BASE)):
        Path(name).write_text(json.dumps(document))


EXITS = [
    # (options, exit code)
    ([], 0),
    (["--fail-on-regression"], 1),
    (["--fail-on-regression", "--allow-lost", "1"], 1),
    (["--fail-on-regression", "labels", "--allow-lost", "1"], 1),
    (["--fail-on-regression", "scores"], 1),
    (["--fail-on-regression=scores", "--allow-lost", "2"], 0),
    (["--fail-on-regression", "lenient", "--allow-lost", "2"], 0),
    (["--fail-on-regression", "terms"], 3),
    (["--fail-on-regression", "scores", "--max-regressions", "1"], 3),
    (["--fail-on-regression", "--fail-on-regression"], 3),
    (["--fail-on-regression", "--allow-lost", "2"], 0),
    (["--fail-on-score-drop", "0"], 0),
    (["--allow-lost", "1"], 3),
    (["--max-regressions", "1"], 3),
    (["--fail-on-regression", "--allow-lost", "-1"], 3),
    (["--fail-on-score-drop", "-0.1"], 3),
    (["--fail-on-score-drop", "5"], 3),
    (["--fail-on-score-drop", "nan"], 3),
    (["--fail-on-score-drop", "5%"], 3),
    (["--format", "csv"], 3),
    (["--format", "junit"], 3),
    (["--output", "out.csv"], 3),
    (["--output", "out.pdf"], 3),
    (["--format", "json", "--output", "out.csv"], 3),
    (["--format", "json", "--output", "out"], 0),
    (["--output", "base.json"], 3),
    (["--output", "new.json", "--force"], 3),
    (["--format", "json", "--output", "out.md"], 3),
    (["--output", ""], 3),
]


@pytest.mark.parametrize(("options", "code"), EXITS)
def test_what_the_exit_code_says(options: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "base.json", "new.json", *options]) == code
    printed = capsys.readouterr()
    assert (printed.out == "") is (code == 3 or "out" in options)
    assert (printed.err.startswith("safe: error: ") and printed.err.count("\n") == 1) is (code == 3)


def test_nothing_judged_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty.json").write_text(json.dumps(answered([unanswered("T-1"), unanswered("T-2")])))
    assert main(["compare", "base.json", "empty.json", "-o", "out.json"]) == 3
    assert "base.json and empty.json: nothing can be judged: " in capsys.readouterr().err
    assert not Path("out.json").exists()


@pytest.mark.parametrize("format_", ["json", "markdown", "html", "console"])
def test_a_format_goes_to_stdout_and_what_else_is_to_be_said_to_stderr(
    format_: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "base.json", "new.json", "--format", format_, "--fail-on-regression"]) == 1
    printed = capsys.readouterr()
    begins = {
        "json": "{",
        "markdown": "<!-- SAFE",
        "html": "<!doctype html>",
        "console": "2 lost cases; nothing changed beyond chance: ",
    }
    assert printed.out.startswith(begins[format_])
    assert ("gate NOT passed: 2 lost cases, --allow-lost allows 0" in printed.err) is (format_ != "console")
    assert sorted(path.name for path in Path().iterdir()) == ["base.json", "new.json", "same.json"]


def test_each_suffix_picks_its_format_and_own_files_are_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["out/r.json", "out/r.md", "out/r.html", "out/r.txt"]
    arguments = ["compare", "base.json", "new.json", *(part for name in names for part in ("-o", name))]
    for _ in range(2):
        assert main(arguments) == 0
        assert capsys.readouterr().err.splitlines()[-4:] == [f"safe: wrote {name}" for name in names]
    assert json.loads(Path("out/r.json").read_bytes())["judged"] == 2
    Path("out/r.json").write_text('{"judged": 2}')
    assert main(arguments) == 3
    assert "SAFE did not write it" in capsys.readouterr().err
    assert main([*arguments, "--force"]) == 0


def test_the_console_is_printed_beside_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "base.json", "same.json", "-o", "out.json"]) == 0
    assert capsys.readouterr().out.startswith("Nothing changed beyond chance: of 4 judged cases, 0 got")
    assert main(["compare", "base.json", "same.json", "-o", "out.json", "-f", "json"]) == 0
    assert capsys.readouterr().out == ""


def test_every_number_on_a_screen_has_two_decimals_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    samples = [case(f"T-{number}", *(ALL if number % 3 else HALF)) for number in range(7)]
    base, new = answered(samples), answered(samples)
    for result, number in zip(new["results"], count(), strict=False):
        result["scores"]["composite"] *= 0.9871 + number / 1000
    for name, document in (("base.json", base), ("new.json", new)):
        Path(name).write_text(json.dumps(document))
    for format_ in ("console", "markdown", "html"):
        main(["compare", "base.json", "new.json", "--format", format_])
        shown = Page(capsys.readouterr().out).text if format_ == "html" else capsys.readouterr().out
        assert not [
            word for word in shown.split() if word.replace(".", "").isdigit() and len(word.partition(".")[2]) > 2
        ]
