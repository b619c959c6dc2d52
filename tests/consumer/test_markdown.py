"""The report as a Markdown page, read back through a Markdown parser."""

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from consumer.offline.pages.markdown_parts import literal, table_row
from consumer.offline.pages.report_page import render_markdown
from consumer.offline.scored_run import ScoredRun
from consumer.text import printable
from safe_core import EMPTY_OUTPUT, Expectations, Output, Policy
from tests.support.golden import matches_golden
from tests.support.pages import Page
from tests.support.scored_runs import NASTY, SMALL, Sample, nasty_samples, scored_run

# --- texts from outside


TEXTS = st.text(st.sampled_from("`|\\<>&*_~[]()#@$:-=!. ab1") | st.characters(), min_size=1).filter(str.strip)
TABLE = {"table", "thead", "tbody", "tr", "th", "td"}


@given(TEXTS)
@example("https://example.org www.example.org someone@example.org")
@example("@someone #12 GH-12 $x$ :smile: &amp; ~~gone~~")
@example("<b>bold</b> **bold** [a](b) ![a](b) <!-- -->")
@example(r"\| ` \` `` |")
@settings(max_examples=500)
def test_a_text_from_outside_is_shown_as_it_is_wherever_it_stands(text: str) -> None:
    paragraph = Page(f"before {literal(text)} after")
    assert (paragraph.tags, paragraph.code) == ({"p", "code"}, [printable(text)])
    assert paragraph.prose.strip() == "before  after"

    table = Page(table_row("a", "b") + table_row("---", "---:") + table_row(literal(text), "c"))
    assert (table.tags, table.code) == (TABLE | {"code"}, [printable(text)])
    assert table.prose.split() == ["a", "b", "c"]


def test_texts_that_try_to_break_out() -> None:
    markdown = render_markdown(scored_run(nasty_samples()))
    page = Page(markdown)
    assert page.tags <= TABLE | {"h1", "h2", "p", "ul", "li", "strong", "code"}
    assert {printable(text) for text in NASTY} <= set(page.code)
    assert not any(text in page.prose for text in NASTY)


def test_texts_outside_of_cases_are_no_markup_either() -> None:
    override = {"archetype": {"<i>x</i>": {"strictAH": True}}}
    run = scored_run(
        [replace(SMALL[0], batch_id="*b*")],
        concern_id="<b>c</b>",
        policy=Policy.from_document({"overrides": override}),
        decision="<u>gate</u>",
        inputs=[{"name": "_in_|.json", "sha256": "ab" * 32}],
    )
    page = Page(render_markdown(run))
    assert not page.tags & {"b", "i", "u", "em"}
    assert {"<b>c</b>", "*b*", "<i>x</i>", "<u>gate</u>", "_in_|.json"} <= set(page.code)


# --- what is said


def test_a_small_run() -> None:
    matches_golden("small.md", render_markdown(scored_run(SMALL, decision="gate NOT passed: 3 Fail among 7 cases")))


def test_the_verdict_stands_before_all_else() -> None:
    mark, title, _, verdict, _, gate, *_ = render_markdown(scored_run(SMALL, decision="gate passed")).splitlines()
    assert mark == "<!-- SAFE v0 report -->"
    assert title == "# SAFE v0: concern `S11`, batch `S11_combined`"
    assert verdict == "**Fail**: 7 cases, of these 3 Fail, 2 Review, 2 Pass; pass rate 28.6% (8.2–64.1%)."
    assert gate == "Gate: `gate passed`"


def headings(markdown: str) -> list[str]:
    return [line[3:] for line in markdown.splitlines() if line.startswith("## ")]


def test_only_what_there_is_has_a_section() -> None:
    passing = render_markdown(scored_run([SMALL[0]], inputs=[]))
    assert headings(passing) == ["Criteria", "Allowing for other words", "By archetype", "How it was made"]
    assert "Gate" not in passing
    reviewed = render_markdown(scored_run([SMALL[1]]))
    assert headings(reviewed) == [
        "Criteria",
        "Allowing for other words",
        "By archetype",
        "Cases to review",
        "Most often missed or used",
        "How it was made",
        "Inputs",
    ]
    assert "<details>" not in reviewed


def test_a_batch_is_named_beside_its_cases_where_there_are_several() -> None:
    assert "batch `S11_wards_1`)" in render_markdown(scored_run(SMALL))
    assert "batch `S11_wards_1`)" not in render_markdown(scored_run(SMALL[:3]))


def test_a_case_shows_the_bounds_that_it_missed_and_the_terms_that_it_lost_by() -> None:
    expectations = Expectations(("a", "b"), ("blame",), ("x", "y", "z", "v", "w"))
    output = Output(("c",), "v w x y", ("whose blame?",))
    markdown = render_markdown(scored_run([Sample("T-1", expectations, output, archetype=None)]))
    assert (
        "- `T-1`: CR 0.00 below review 0.5 (lenient 0.00, coverage 0.00), AH 0.00 below review 0.5, "
        "AC 0.80 (lenient 0.80, coverage 0.80), composite 0.27\n"
        "  - CR missing: `a`, `b`\n"
        "  - AH used: `blame`\n"
        "  - AC missing: `z`\n"
    ) in markdown


def remarks(run: ScoredRun) -> list[str]:
    section = render_markdown(run).partition("## Worth knowing\n\n")[2].partition("\n\n")[0]
    return [line.removeprefix("- ") for line in section.splitlines()]


STRICT = Policy.from_document({"strictAH": True})
PARTLY_STRICT = Policy.from_document({"overrides": {"archetype": {"Escalation_Tracker": {"strictAH": True}}}})
PARTLY_HARDER = Policy.from_document(
    {"overrides": {"archetype": {"Escalation_Tracker": {"thresholds": {"CR": {"pass": 0.9}}}}}}
)
OTHER_THRESHOLDS = "Because of overrides, some cases have different thresholds from those in the table of criteria."
QUESTION = Output(("fever",), "fever", ("when?",))
FEVER = Expectations(("fever",), ("blame",), ("fever",))

REMARKS = [
    # (run, what a reader must know of it)
    (scored_run([Sample("T-1", FEVER, QUESTION)]), []),
    (
        scored_run([Sample("T-1", Expectations((), (), ()), QUESTION)]),
        ["Scored 1.00 because there was nothing to check: CR in 1 case, AH in 1 case, AC in 1 case, all in 1 case."],
    ),
    (
        scored_run([Sample("T-1", FEVER, EMPTY_OUTPUT), Sample("T-2", FEVER, None), Sample("T-3", FEVER, None)]),
        [
            "Scored 1.00 because there was nothing to check: AH in 3 cases.",
            "Empty outputs: 1 case.",
            "No output: 2 cases, scored as empty outputs.",
        ],
    ),
    (scored_run([Sample("T-1", FEVER, QUESTION)], policy=STRICT), ["Strict AH: one forbidden term makes AH 0."]),
    (
        scored_run(SMALL[:2], policy=PARTLY_STRICT),
        ["Strict AH for some cases: one forbidden term makes AH 0."],
    ),
    (scored_run(SMALL[:2], policy=PARTLY_HARDER), [OTHER_THRESHOLDS]),
]


@pytest.mark.parametrize(("run", "said"), REMARKS)
def test_what_a_reader_must_know_is_said(run: ScoredRun, said: list[str]) -> None:
    assert remarks(run) == said


def test_every_override_is_listed() -> None:
    document = {"overrides": {"metric_id": {"S11": {"thresholds": {"CR": {"pass": 0.9}}, "weights": {"AH": 2}}}}}
    markdown = render_markdown(scored_run(SMALL, policy=Policy.from_document(document)))
    assert "- Override for metric_id `S11`: thresholds.CR.pass 0.9, weights.AH 2.0\n" in markdown


def test_every_page_asks_for_confidence() -> None:
    assert "treat this page as confidentially as the test cases." in render_markdown(scored_run(SMALL))


# --- a page that may not be large


MANY = scored_run([replace(sample, test_id=f"{sample.test_id}-{n}") for n in range(30) for sample in SMALL])
WHOLE = render_markdown(MANY)


def left_out(page: str) -> str:
    """Give what a page says to have left out; nothing if it does not."""
    return page.partition("\n_Left out for want of room: ")[2].partition("._\n")[0]


@given(st.integers(0, len(WHOLE) + 10))
def test_a_page_never_takes_more_than_it_may(room: int) -> None:
    page = render_markdown(MANY, max_bytes=room)
    assert len(page.encode()) <= room
    if room >= 150:
        assert page.startswith("<!-- SAFE v0 report -->")
        assert "**Fail**: 210 cases, of these 90 Fail, 60 Review, 60 Pass; pass rate 28.6% (22.9–35%)." in page
    if room >= 600:  # below that, the verdict alone fits, and no word of what is left out
        assert (page == WHOLE) != bool(left_out(page))


def test_a_page_that_fits_is_whole() -> None:
    assert render_markdown(MANY, max_bytes=len(WHOLE.encode())) == WHOLE


NO_FAILING, PASSING = "the terms of 90 of 90 failing cases", "60 of 60 passing cases"
NO_REVIEW = f"the terms of 60 of 60 cases to review, {PASSING}"
SHORTER = [
    # (bytes fewer than the whole page has, what is left out); what is small may fit where what is larger does not
    (0, ""),
    (500, "49 of 60 passing cases"),
    (1_500, f"the terms of 22 of 60 cases to review, {PASSING}"),
    (10_000, f"the terms of 72 of 90 failing cases, the terms of 58 of 60 cases to review, {PASSING}"),
    (
        15_000,
        f"25 of 60 cases to review, {NO_FAILING}, the terms of 59 of 60 cases to review, {PASSING}",
    ),
    (
        30_000,
        f"52 of 90 failing cases, 60 of 60 cases to review, the terms of 89 of 90 failing cases, {NO_REVIEW}",
    ),
    (40_200, "all else"),
]


@pytest.mark.parametrize(("fewer", "said"), SHORTER)
def test_passing_cases_are_left_out_first_and_failing_ones_last(fewer: int, said: str) -> None:
    assert left_out(render_markdown(MANY, max_bytes=len(WHOLE.encode()) - fewer)) == said


def test_what_is_left_out_of_a_section_does_not_spoil_the_rest() -> None:
    page = render_markdown(MANY, max_bytes=len(WHOLE.encode()) - 500)
    assert page.count("\n- `S11-W1-001-") + page.count("\n- `S11-W2-004-") == 60 - 49
    assert "<summary>60 passing cases</summary>" in page
    assert "\n</details>\n\n## Most often missed or used\n" in page
    assert "Cases to review" not in headings(render_markdown(MANY, max_bytes=len(WHOLE.encode()) - 30_000))


def test_a_case_that_is_too_large_hides_no_other() -> None:
    giant = Sample("giant", Expectations(("word " * 10_000,), (), ()), Output(("x",), "x"))
    page = render_markdown(scored_run([giant, *SMALL]), max_bytes=10_000)
    assert left_out(page) == "1 of 5 of the terms most often missed, the terms of 1 of 4 failing cases"
    assert "- `giant`" in page
    assert page.count("  - CR missing: `an unwitnessed fall from bed`") == 3


def test_countless_archetypes_and_inputs_hide_no_case() -> None:
    samples = [replace(SMALL[2], test_id=f"T-{n}", archetype=f"A_{n:04}") for n in range(300)]
    inputs = [{"name": f"input {n}", "sha256": "ab" * 32} for n in range(300)]
    page = render_markdown(scored_run(samples, inputs=inputs), max_bytes=100_000)
    assert left_out(page) == "93 of 200 further archetypes, 200 of 200 further inputs"
