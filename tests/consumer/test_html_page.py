"""The report as an HTML page, read back through a parser; what a browser makes of it was looked at by eye."""

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typing_extensions import override

from consumer.offline.explanations import counts_by_answer
from consumer.offline.pages.html import render_html
from consumer.offline.pages.html_parts import slug
from consumer.offline.pages.miss_wording import KIND_ADVICE, KIND_LABELS
from consumer.offline.pages.numbers import pass_rate
from consumer.offline.scored_run import Explanation, ScoredRun
from consumer.text import printable
from safe_core import EMPTY_OUTPUT, Expectations, Output, Policy
from safe_core.diagnosis import KINDS, Diagnosis, Evidence, Miss, Occurrence, Passage, diagnose
from tests.support.golden import matches_golden
from tests.support.scored_runs import NASTY, SMALL, Sample, nasty_samples, scored_run

GATE = "gate NOT passed: 3 Fail among 7 cases"
EMPTY_TAGS = {"meta", "input"}
OURS = {
    *("html", "head", "meta", "title", "style", "script", "body", "header", "main", "section", "footer", "h1", "h2"),
    *("h3", "p", "strong", "b", "small", "span", "div", "dl", "dt", "dd", "ul", "li", "svg", "rect", "table"),
    *("caption", "thead", "tbody", "tr", "th", "td", "form", "label", "select", "option", "input", "button"),
    *("output", "details", "summary", "a", "del", "ins", "mark"),
}


BLOCKS = {"p", "h1", "h2", "h3", "dt", "dd", "th", "td", "li", "option", "button"}


class Page(HTMLParser):
    """A page that was read back: its tags must be balanced; `cases` are the texts of these by their anchors."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, Mapping[str, str | None]]] = []
        self.texts: list[str] = []
        self.ours: dict[str, str] = {"style": "", "script": ""}
        self.marked: list[tuple[str, str]] = []
        self.cases: dict[str, str] = {}
        self._open: list[str] = []
        self._case: str | None = None
        self.feed(html)
        self.close()
        assert self._open == []

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.append((tag, named))
        if tag not in EMPTY_TAGS:
            self._open.append(tag)
        if named.get("class") == "case":
            self._case = str(named["id"])
            assert self._case not in self.cases
            self.cases[self._case] = ""

    @override
    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "details":
            self._case = None
        elif tag in BLOCKS:
            self.handle_data(" ")

    @override
    def handle_data(self, data: str) -> None:
        within = self._open[-1] if self._open else ""
        if within in self.ours:
            self.ours[within] += data
            return
        self.texts.append(data)
        if within in {"del", "ins", "mark"}:
            self.marked.append((within, data))
        if self._case is not None:
            self.cases[self._case] += data

    @property
    def text(self) -> str:
        return words("".join(self.texts))

    def case(self, test_id: str) -> str:
        return words(self.cases[f"case-{test_id}"])

    def all(self, tag: str) -> list[Mapping[str, str | None]]:
        """The attributes of each such element."""
        return [attributes for name, attributes in self.tags if name == tag]


def words(text: str) -> str:
    return " ".join(text.split())


# --- runs that were explained


CANARY = "zebra-7Q"


def with_explanations(run: ScoredRun, explanations: Mapping[str, Explanation], *, shows_text: bool) -> ScoredRun:
    misses = [miss for each in explanations.values() for miss in each.diagnosis.misses]
    counts = {kind: sum(miss.kind == kind for miss in misses) for kind in KINDS}
    report = {
        **run.report,
        "miss_verdicts": dict(Counter(miss.verdict for miss in misses)),
        "miss_kinds": {kind: count for kind, count in counts.items() if count},
        **counts_by_answer(misses),
        "misses_not_in_narrative": sum(miss.in_narrative == "no" for miss in misses),
        "ceiling": {
            "cases": len(run.cases), "pass": len(run.cases), "review": 0, "fail": 0,
            "terms": 9, "not_in_narrative": 1, "without_narrative": 0,
        },
    }  # fmt: skip
    return replace(run, report=report, explanations=explanations, shows_text=shows_text)


def diagnosed(samples: Sequence[Sample], *, shows_text: bool, narrative: str | None = "") -> ScoredRun:
    explanations = {
        each.test_id: Explanation(
            diagnose(each.expectations, each.output or EMPTY_OUTPUT, narrative), each.output or EMPTY_OUTPUT
        )
        for each in samples
    }
    return with_explanations(scored_run(samples), explanations, shows_text=shows_text)


WARD_CLOCK = Sample(
    "S12-001",
    Expectations(("arrived at 08:30 on Saturday", "the delay was due to staffing"), ("or",), ("a GCS of 14",)),
    Output(
        (f"He arrived at 09:30 on Saturday. {CANARY}", "delay due to staffing"),
        "Nothing of it.",
        ("Was it for the night team?",),
    ),
)
WHY = Diagnosis(
    misses=(
        Miss(
            *("CR", WARD_CLOCK.expectations.must_find_signals[0], "value", "yes"),
            *(Passage("signals", 0, 3, 31), 96.4, "output", ("08:30",)),
            output_says="contradicted",
            narrative_says="supported",
            verbatim=True,
            share=750,
            remedy="fix_output",
            row="output contradicts",
            evidence=(Evidence("output", 3, 31, "signals", 0), Evidence("narrative", 3, 31)),
        ),
        Miss(
            *("CR", WARD_CLOCK.expectations.must_find_signals[1], "connectives", "no"),
            *(Passage("signals", 1, 0, 21), 84.0, "term"),
            output_says="said",
            narrative_says="partly",
            share=1000,
            remedy="accept_wording",
            row="said",
            evidence=(Evidence("output", 0, 21, "signals", 1), Evidence("narrative", 38, 70)),
        ),
        Miss("AC", "a GCS of 14", "absent", "no_narrative", None, 0.0, "prompt", remedy="ask", row="left out"),
    ),
    occurrences=(Occurrence("AH", "or", Passage("followup_questions", 0, 8, 10), inside_word=True),),
)


def explained(*, shows_text: bool, why: Diagnosis = WHY) -> ScoredRun:
    """One case, explained by hand: no change to what a diagnosis finds changes this page."""
    output = WARD_CLOCK.output
    assert output is not None
    return with_explanations(
        scored_run([WARD_CLOCK]), {WARD_CLOCK.test_id: Explanation(why, output)}, shows_text=shows_text
    )


WHOLE = [("mark", "arrived at 09:30 on Saturday"), ("mark", "delay due to staffing"), ("mark", "or")]
LEGEND = [("del", "like this"), ("ins", "like this"), ("mark", "this mark")]


# --- what it is


def test_a_small_run() -> None:
    matches_golden("small.html", render_html(scored_run(SMALL, decision=GATE)))


def test_an_explained_run() -> None:
    matches_golden("explained.html", render_html(explained(shows_text=True)))


RUNS = [
    scored_run(SMALL, decision=GATE),
    scored_run(nasty_samples(), decision="<u>gate</u>"),
    explained(shows_text=True),
    explained(shows_text=False),
    diagnosed(nasty_samples(), shows_text=True),
    diagnosed(SMALL, shows_text=True, narrative=None),
]


@pytest.mark.parametrize("run", RUNS)
def test_the_page_is_known_by_its_first_lines(run: ScoredRun) -> None:
    doctype, *lines = render_html(run).splitlines()
    assert doctype == "<!doctype html>"
    assert '<meta name="generator" content="SAFE v0 report">' in lines[:5]
    assert len("\n".join([doctype, *lines[:5]])) < 1024


@pytest.mark.parametrize("run", RUNS)
def test_nothing_is_loaded_and_only_our_own_style_and_script_count(run: ScoredRun) -> None:
    page = Page(render_html(run))
    (policy,) = (meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    hashes = {
        name: base64.b64encode(hashlib.sha256(block.encode()).digest()).decode() for name, block in page.ours.items()
    }
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert len(page.all("style")) == len(page.all("script")) == 1
    names = {name for _, attributes in page.tags for name in attributes}
    assert not {name for name in names if name.startswith("on")} | (names & {"style", "src", "srcset", "action"})
    assert all(str(link["href"]).startswith("#case-") for link in page.all("a"))
    assert "url(" not in page.ours["style"]
    assert "@import" not in page.ours["style"]


@pytest.mark.parametrize("run", RUNS)
def test_every_element_is_one_of_ours(run: ScoredRun) -> None:
    assert {tag for tag, _ in Page(render_html(run)).tags} <= OURS


# --- texts from outside


TEXTS = st.text(
    st.sampled_from("<>&\"'/=!-{}%# ab1\u00a0\u202e\n") | st.characters(exclude_categories=["Cs"]), min_size=1
).filter(str.strip)


@given(TEXTS, st.booleans())
@example("</script><script>alert(1)</script>", True)  # noqa: FBT003 (as hypothesis gives it)
@example("{{ 7 * 7 }}{% raw %}{# #}", True)  # noqa: FBT003
@example('" onmouseover="alert(1)', False)  # noqa: FBT003
@example("<!-- ]]> &lt; &#0;", True)  # noqa: FBT003
@settings(max_examples=200)
def test_a_text_from_outside_is_shown_as_it_is_and_is_never_markup(text: str, shows_text: bool) -> None:
    expectations = Expectations((text, f"{text} and more"), ("blame",), ("nothing else",))
    archetype = re.sub(r"\s", "", printable(text)) or None
    sample = Sample("T-1", expectations, Output((f"it says {text}",), text), archetype=archetype)
    html = render_html(replace(diagnosed([sample], shows_text=shows_text), decision=text))
    page = Page(html)
    assert {tag for tag, _ in page.tags} <= OURS
    assert len(page.all("script")) == 1
    assert printable(text) in page.texts
    assert printable(html.replace("\n", "")) == html.replace("\n", "")


def test_texts_that_try_to_break_out() -> None:
    page = Page(render_html(scored_run(nasty_samples(), decision="<u>gate</u>")))
    assert {printable(text) for text in NASTY} <= set(page.texts)
    assert {printable(f"blame {text}") for text in NASTY} <= set(page.texts)
    assert "<u>gate</u>" in page.texts
    assert {str(case["data-archetype"]) for case in page.all("details") if case.get("class")} == {"Archetype|`<i>*x*"}


def test_what_differs_but_cannot_be_seen_is_spelt_out() -> None:
    samples = [Sample("T-1", Expectations(("5 mg given",), (), ()), Output(("5\u00a0mg given",), ""))]
    page = Page(render_html(diagnosed(samples, shows_text=True)))
    assert page.marked == [*LEGEND, ("del", " "), ("ins", r"\u00a0"), ("mark", r"5\u00a0mg given")]


# --- what is said


def test_the_verdict_stands_before_all_else() -> None:
    page = Page(render_html(scored_run(SMALL, decision=GATE)))
    _, _, text = page.text.partition(" SAFE v0 ")
    assert text.startswith(f"Concern S11, batch S11_combined Fail 3 of 7 cases fail {GATE} Cases 7 Fail 3 42.9%")
    assert f"Pass rate {pass_rate(2, 7)}" in text
    assert "treat this page as confidentially as the test cases" in text


def test_every_pass_rate_has_its_interval() -> None:
    text = Page(render_html(scored_run(SMALL))).text
    assert f"CR, correct recall 0.57 {pass_rate(4, 7)} 0.5 0.8" in text
    assert f"Escalation_Tracker 2 0.50 0.75 0.50 {pass_rate(0, 2)}" in text


def test_the_worst_cases_come_first_each_with_the_bounds_that_it_missed() -> None:
    page = Page(render_html(scored_run(SMALL)))
    assert list(page.cases) == [f"case-S11-{name}" for name in ORDER]
    assert "CR 0.00 below review 0.5 AH 1.00 AC 0.00 below review 0.5" in page.case("S11-W1-003")
    review = page.case("S11-W1-002")
    assert "Review S11-W1-002 Escalation_Tracker CR 1.00 AH 0.50 below pass 1.0 AC 1.00" in review
    assert "Batch S11_wards_1" in review
    assert "Forbidden terms that were used AH negligence Required terms that were found" in review
    assert "no output" in page.case("S11-W2-003")


ORDER = ("W1-003", "W2-002", "W2-003", "W1-002", "W2-001", "W1-001", "W2-004")


def test_the_filters_offer_what_there_is_and_count_it() -> None:
    page = Page(render_html(scored_run(SMALL)))
    assert [each["name"] for each in page.all("select")] == ["label", "archetype", "missed"]
    offered = [text for text in page.texts if re.fullmatch(r".+ \(\d+\)", text)]
    assert offered == [
        *("Fail (3)", "Review (2)", "Pass (2)"),
        *("Escalation_Tracker (2)", "Handover_Reviewer (4)", "Unknown (1)"),
        *("CR, correct recall (3)", "AH, avoids harm (1)", "AC, all content (4)"),
    ]
    assert "hidden" in page.all("form")[0]  # until the script is there to obey it


def test_what_a_case_is_filtered_by() -> None:
    page = Page(render_html(explained(shows_text=False)))
    (case,) = (each for each in page.all("details") if each.get("class") == "case")
    assert case["data-label"] == "Fail"
    assert case["data-archetype"] == "Handover_Reviewer"
    assert case["data-missed"] == "CR AH AC"
    assert case["data-kind"] == (
        "absent connectives narrative-partly narrative-supported narrative-unknown output output-absent "
        "output-contradicted output-said prompt term value"
    )
    assert [each["name"] for each in page.all("select")] == ["label", "archetype", "missed", "kind"]


def test_a_run_without_explanations_says_nothing_of_them() -> None:
    text = Page(render_html(scored_run(SMALL))).text
    assert not [word for word in ("own narrative", "Ceiling", "Kind", "advice", "alike") if word in text]


def test_each_miss_is_explained_and_what_the_test_case_must_change_comes_first() -> None:
    page = Page(render_html(explained(shows_text=False)))
    case = page.case("S12-001")
    alien = case.index(
        "Missed: change the term (term) CR term small words or endings differ the delay was due to staffing"
    )
    unknown = case.index("Missed: ask for it in the prompt (prompt) AC prompt not there a GCS of 14")
    known = case.index("(output) CR output value differs arrived at 08:30 on Saturday")
    assert alien < unknown < known
    assert "signal 1, characters 4 to 31, 96% alike" in case
    assert 'signal 1, characters 4 to 31; the term and the narrative say "08:30"' in case
    assert (
        "answers output: said; narrative: partly in other words row said (share: 1000 of 1000; remedy: accept" in case
    )
    assert "The test case has no narrative, so SAFE cannot tell whether the model was told this" in case
    assert "question 1, characters 9 to 10" in case
    assert "It appears only inside longer words, and may not be meant." in case


def test_the_kinds_of_misses_are_counted() -> None:
    text = Page(render_html(explained(shows_text=False))).text
    said = "3 misses: 1 said, 1 contradicted, 1 absent; narrative: 1 supported, 1 partly, 1 unknown."
    assert f"What output and narrative say of the missed terms: {said}" in text
    assert "3 misses: 1 term (change the term), 1 prompt (ask for it in the prompt), 1 output (the output" in text
    assert f"{KIND_LABELS['value']} {KIND_ADVICE['value']} 1" in text
    assert "Ceiling: at most 1 of 1 case would pass even if each output were a copy of its narrative." in text


# --- text of outputs


def test_no_text_of_an_output_stands_in_a_page_that_does_not_ask_for_it() -> None:
    for run in (explained(shows_text=False), diagnosed([WARD_CLOCK, *SMALL], shows_text=False)):
        html = render_html(run)
        assert CANARY not in html
        assert "night team" not in html
        assert "09:30" not in html
        assert not {tag for tag, _ in Page(html).tags} & {"ins", "del", "mark"}


def test_text_that_is_asked_for_stands_below_the_term_with_the_differences_marked() -> None:
    page = Page(render_html(explained(shows_text=True)))
    case = page.case("S12-001")
    assert "expected arrived at 08:30 on Saturday nearest arrived at 09:30 on Saturday where" in case
    assert "used Was it for the night team? where" in case
    assert page.marked == [
        *LEGEND,
        ("del", "the"),
        ("del", "was"),
        ("del", "08:30"),
        ("ins", "09:30"),
        ("mark", "or"),
        *WHOLE,
    ]
    assert page.text.count(CANARY) == 1  # in the whole output, beside the passage
    assert "This page quotes the outputs too." in page.text


def test_the_nearest_passage_of_a_term_that_is_not_there_is_no_find() -> None:
    nearest = Miss("AC", "a GCS of 14", "absent", "yes", Passage("summary", None, 0, 7), 31.0, "prompt", row="left out")
    page = Page(render_html(explained(shows_text=True, why=Diagnosis((nearest,), ()))))
    assert "expected a GCS of 14 nearest Nothing where summary, characters 1 to 7" in page.case("S12-001")
    assert page.marked == [*LEGEND, ("mark", "Nothing")]


def test_narrative_and_output_stand_side_by_side_with_what_is_spoken_of_marked() -> None:
    told = "He arrived at 08:30 on Saturday.\n\nThe delay was due to a lack of staff."
    run = explained(shows_text=True)
    (explanation,) = (run.explanations or {}).values()
    named = replace(run, explanations={WARD_CLOCK.test_id: replace(explanation, narrative=told)})
    page = Page(render_html(named))
    _, _, texts = page.case("S12-001").partition(" Narrative ")
    assert texts.startswith("He arrived at 08:30 on Saturday. The delay was due to a lack of staff. Output: signals He")
    assert texts.endswith("Output: summary Nothing of it. Output: follow-up questions Was it for the night team?")
    narratives = [text for tag, text in page.marked if tag == "mark" and text in told]
    assert narratives == ["arrived at 08:30 on Saturday", "delay was due to a lack of staff"]


def test_without_text_no_narrative_stands_in_the_page() -> None:
    page = Page(render_html(explained(shows_text=False)))
    assert "Narrative" not in page.text


def test_empty_texts_and_a_missing_narrative_are_said() -> None:
    samples = [Sample("T-1", Expectations(("fever",), (), ()), Output(("", "x"), "", ()))]
    _, _, texts = Page(render_html(diagnosed(samples, shows_text=True))).case("T-1").partition(" Narrative ")
    assert (
        texts
        == "The test case has none. Output: signals empty x Output: summary empty Output: follow-up questions none"
    )


# --- addresses


SLUGS = [
    # an id that an address can hold is its own name
    ("S11-W1-003", "S11-W1-003"),
    # any other, and a long one, keeps what can be kept, and is told from its like by a hash
    ("a b", "a-b-c8687a08"),
    ("a/b", "a-b-c14cddc0"),
]


@pytest.mark.parametrize(("test_id", "name"), SLUGS)
def test_a_case_has_a_name_in_an_address(test_id: str, name: str) -> None:
    assert slug(test_id) == name


@given(st.lists(st.text(st.sampled_from("ab -/<ä"), min_size=1, max_size=4), unique=True))
def test_no_two_cases_share_an_address(test_ids: list[str]) -> None:
    slugs = [slug(test_id) for test_id in test_ids]
    assert len(set(slugs)) == len(slugs)
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", each) for each in slugs)


def test_a_long_id_has_a_short_address() -> None:
    assert len(slug("x" * 256)) < 80
    assert slug("x" * 256) != slug("x" * 255)


def test_every_override_and_input_is_named() -> None:
    policy = Policy.from_document({"overrides": {"archetype": {"<i>x</i>": {"strictAH": True}}}})
    inputs = [{"name": "<in>.json", "sha256": "ab" * 32}]
    text = Page(render_html(scored_run([replace(SMALL[0], batch_id="<b>")], policy=policy, inputs=inputs))).text
    assert "Override for archetype <i>x</i>: strictAH true" in text
    assert f"<in>.json {'ab' * 32}" in text
