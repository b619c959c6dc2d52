"""One case explained: what differs is marked in signs, whatever the place, and no text from outside commands it."""

import io
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from consumer.offline.pages import miss_wording
from consumer.offline.pages.console import scorecard_text
from consumer.offline.pages.console_layout import print_document
from consumer.offline.pages.explanation import Explained, ExplainedCase, page
from consumer.offline.pages.miss_wording import KIND_LABELS, misses_in_words, reason
from consumer.offline.pages.quotes import differences, place_of
from consumer.offline.pages.report_page import render_markdown
from consumer.offline.scored_run import CaseLine, Explanation, ScoredRun
from consumer.terminal import PipedConsole
from safe_core import EMPTY_OUTPUT, Expectations, Output
from safe_core.diagnosis import KINDS, Miss, diagnose
from safe_core.diagnosis.tables import KIND_ROWS, VERDICT_ROWS, Example, KindRow, Row
from tests.support.golden import matches_golden
from tests.support.scored_runs import NASTY, SMALL, Sample, scored_run

ANSI = re.compile(r"\x1b\[[0-9;]*m")

NARRATIVE = (
    "Admitted on Tuesday at 07:40 after a fall from a ladder. The delay was due to the lack of a free bed. "
    "Signs of a developing chest infection were noted. No fracture of the left hip was seen. Seen by Dr Amsel at 11:15."
)
SAMPLE = Sample(
    "S11-W1-009",
    Expectations(
        (
            "the delay was due to the lack of a free bed",  # connectives
            "seen by Dr Amsel at 11:15",  # another value
            "admitted on Tuesday at 07:40",  # the time is lost
            "a fall from height",  # the narrative has it in other words
            "antibiotics were given",  # found
        ),
        ("or", "negligence", "blame"),
        ("signs of a developing chest infection", "no fracture of the left hip", "a pressure ulcer on the heel"),
    ),
    Output(
        (
            "Admitted on Tuesday after a fall from a ladder",
            "Delay was due to lack of a free bed",
            "Seen by Dr Amsel at 11:45",
            "Antibiotics were given",
        ),
        "The patient has a developing chest infection. No fracture of the  left hip.",
        ("Was there negligence in the way that the long delay before admission was communicated to the family?",),
    ),
    archetype="Delay_Finder",
)


def explained(sample: Sample, narrative: str | None = NARRATIVE) -> tuple[ScoredRun, Explanation]:
    output = sample.output or EMPTY_OUTPUT
    return scored_run([sample]), Explanation(diagnose(sample.expectations, output, narrative), output, narrative)


def shown(sample: Sample, narrative: str | None, console: Console) -> None:
    run, explanation = explained(sample, narrative)
    printed(run.cases[0], explanation, console)


def printed(case: CaseLine, explanation: Explanation, console: Console) -> None:
    cases = [ExplainedCase(case, explanation)]
    print_document(page(Explained(cases, include_text=True, verbose=True, are_named=True)), console)


def piped(sample: Sample, narrative: str | None = NARRATIVE) -> str:
    file = io.StringIO()
    shown(sample, narrative, Console(file=file, force_terminal=False, color_system=None, _environ={}))
    return file.getvalue()


def on_terminal(
    sample: Sample,
    *,
    width: int = 80,
    narrative: str | None = NARRATIVE,
    colour: Literal["standard"] | None = None,
    environ: Mapping[str, str] | None = None,
) -> str:
    file = io.StringIO()
    console = Console(
        file=file,
        force_terminal=True,
        width=width,
        color_system=colour,
        legacy_windows=False,
        _environ=environ or {},  # not that of whoever runs the tests
    )
    shown(sample, narrative, console)
    return file.getvalue()


# --- the whole --------------------------------------------------------------------------------------------------------


def test_a_case_in_a_pipe() -> None:
    matches_golden("explain.txt", piped(SAMPLE))


def test_a_case_on_a_terminal_of_sixty_columns() -> None:
    matches_golden("explain_60_columns.txt", on_terminal(SAMPLE, width=60))


NASTY_SAMPLES = [
    Sample(
        f"N-{number} [red]{term}"[:200],
        Expectations((f"expected {term}",), (f"blame {term}",), (f"said {term}",)),
        Output((f"{term} was expected",), f"said, {term}", (f"blame {term}",)),
        archetype=f"[bold]{term}",
        batch_id="B [link=x]",
    )
    for number, term in enumerate((*NASTY, "two\nlines", "zero\u200bwidth", "患者の訴え", "e\u0301 combined"))
]


def test_texts_that_try_to_break_out() -> None:
    matches_golden("explain_nasty.txt", "\n".join(piped(sample, narrative="") for sample in NASTY_SAMPLES))


# --- order and words --------------------------------------------------------------------------------------------------


def test_what_the_test_case_must_change_comes_first() -> None:
    words = re.findall(r"^  (\w+)  (?:CR|AH|AC) ", piped(SAMPLE), re.MULTILINE)
    assert [*dict.fromkeys(words)] == ["term", "prompt", "output", "used", "found"]


def test_how_the_narrative_words_a_term_is_shown_where_it_does_so_otherwise() -> None:
    text = piped(SAMPLE)
    section = text[text.index("a fall from [-height-]") :]
    assert re.search(r"narrative +\[.*after a fall from a ladder\]", section)
    assert "narrative: partly in other words)\n" in section


def test_without_a_narrative_it_is_said_that_nobody_can_tell() -> None:
    assert "The test case has no narrative, so SAFE cannot tell" in piped(SAMPLE, narrative=None)
    assert "has no narrative" not in piped(SAMPLE)


def test_a_case_that_passes_has_nothing_to_explain_but_where_its_terms_stand() -> None:
    text = piped(SMALL[0], narrative=None)
    assert {*re.findall(r"^  (\w+)  (?:CR|AH|AC) ", text, re.MULTILINE)} == {"found"}
    assert "CR a lactate of 4.1 mmol/L\n    where  signal 1, characters 1 to 23\n" in text


@pytest.mark.parametrize(
    ("sample", "said"), [(SMALL[4], ": Fail (empty output), "), (SMALL[5], ": Fail (no output), ")]
)
def test_where_there_was_nothing_to_score_it_is_said(sample: Sample, said: str) -> None:
    assert said in piped(sample, narrative=None)


def test_a_forbidden_term_inside_a_longer_word_is_pointed_at_with_a_hint() -> None:
    text = piped(SAMPLE)
    _, context, hint = text[text.index("AH or\n") : text.index("  used  AH negligence")].splitlines()
    assert "bef[or]e admission" in context
    assert "only inside longer words" in hint


def explained_example(example: Example) -> tuple[Miss, Explanation]:
    output = Output(example.signals, example.summary)
    diagnosis = diagnose(Expectations((), (), (example.term,)), output, example.narrative)
    [miss] = diagnosis.misses
    return miss, Explanation(diagnosis, output, example.narrative)


@pytest.mark.parametrize("table", ["KIND_LABELS", "KIND_ADVICE"])
def test_each_kind_has_a_label_and_advice(table: str) -> None:
    lacking = set(KINDS) - set(getattr(miss_wording, table))
    assert not lacking, f"{table} in consumer/offline/pages/miss_wording.py has no entry for {lacking}"


@pytest.mark.parametrize("row", [row for row in KIND_ROWS if row.example.term not in row.example.summary])
def test_each_kind_has_its_words(row: KindRow) -> None:
    miss, explanation = explained_example(row.example)
    file = io.StringIO()
    printed(scored_run([SMALL[2]]).cases[0], explanation, Console(file=file, width=200, _environ={}))
    words = " ".join(file.getvalue().split())
    assert KIND_LABELS[row.kind] in words or "in other words" in words
    assert reason(miss, explanation) in words
    assert f"(output: {miss.output_says}; narrative: {miss.narrative_says}" in words
    assert f"; {miss.row} (share: {miss.share} of 1000; remedy: {miss.remedy})" in words


# row of the table of verdicts → what follows its own sentence, where texts are quoted, and where they are not; that a
# reason begins with the sentence of its row is asked of each row
DETAILS = {
    "said": ("", ""),
    "said, not given": ("", ""),
    "said against the narrative": (
        'The narrative says "She denies shortness of breath".',
        "See the narrative, {narrative}.",
    ),
    "in another field": ("It is word for word in signal 1; AC checks the summary.",) * 2,
    "in another field, not given": ("It is word for word in signal 1; AC checks the summary.",) * 2,
    "left out": ("", ""),
    "never given": ("", ""),
    "case contradicts narrative": (
        'The narrative says "She denies a dry cough".',
        "See the narrative, {narrative}.",
    ),
    "output contradicts": (
        'The output says "Potassium was 3.6"; the term and the narrative say "5.6".',
        'The output says something else in {output}; the term and the narrative say "5.6".',
    ),
    "contradicted, not settled": (
        'The output says "Potassium was 3.6", and so does the narrative; the term says "potassium 5.6".',
        'The output says something else in {output}, and so does the narrative; the term says "potassium 5.6".',
    ),
    "both": (
        'The places: "Potassium of 5.6" and "The potassium was 3.6".',
        "The places: {first} and {output}.",
    ),
    "not read": ("", ""),
}


def named_places(miss: Miss) -> dict[str, str]:
    """Name the places of a miss: the output's first, the one that contradicts, the narrative's."""
    output = [place_of(each.passage) for each in miss.evidence if each.passage]
    narrative = [f"characters {each.start + 1} to {each.end}" for each in miss.evidence if each.side == "narrative"]
    return {"first": "".join(output[:1]), "output": "".join(output[-1:]), "narrative": "".join(narrative)}


@pytest.mark.parametrize("row", VERDICT_ROWS, ids=lambda row: row.name)
def test_the_reason_is_that_of_the_row_with_what_is_missing_or_contradicted(row: Row) -> None:
    miss, explanation = explained_example(row.example)
    assert all(reason(miss, quoted).startswith(row.why) for quoted in (explanation, None))
    for said, quoted in zip(DETAILS.get(row.name, ()), (explanation, None), strict=False):
        assert reason(miss, quoted) == f"{row.why} {said.format(**named_places(miss))}".strip()


@pytest.mark.parametrize(
    ("term", "summary", "missing"),
    [
        ("she came to the emergency room after she slipped", "She slipped on the stairs.", '"emergency room"'),
        ("a limp, a rash and a dry cough", "There was a rash and a limp.", '"dry", "cough"'),
        ("dry cough for two weeks", "She has a dry cough.", '"two weeks"'),
    ],
)
def test_of_what_is_there_in_part_it_is_said_what_is_missing(term: str, summary: str, missing: str) -> None:
    miss, explanation = explained_example(Example(term, summary, f"She had: {term}."))
    assert (miss.verdict, miss.output_says) == ("prompt", "part")
    assert f"The nearest passage does not say {missing}" in reason(miss, explanation)


def test_punctuation_around_a_passage_is_not_taken_for_lost() -> None:
    sample = Sample("T-1", Expectations(("(the left hip)",), (), ()), Output(("pain in (left hip).",), ""))
    assert re.search(r"CR \(\[-the-\] left hip\)\n +nearest +signal 1, [^:]*: \(left hip\)\n", piped(sample))


def test_a_missed_term_is_called_found_only_where_another_field_has_all_of_it() -> None:
    sample = Sample("T-1", Expectations((), (), ("pain in the hip",)), Output(("Pain in the hip.",), "Fell."))
    assert re.search(r"AC pain in the hip\n +found +signal 1, [^:]*: Pain in the hip", piped(sample))


# --- differences ------------------------------------------------------------------------------------------------------

DIFFERENCES = [
    # (expected, what of it is lacking, found, what of it is further)
    ("the delay was long", ["the"], "Delay was long", []),
    ("seen at 08:30", ["08:30"], "seen at 09:30", ["09:30"]),  # a time is one word
    ("a lactate of 4.1 mmol", ["4.1"], "a lactate of 4.7 mmol", ["4.7"]),
    ("pain, swelling", [","], "pain swelling", []),
    ("the patient was seen", ["patient was"], "the nurse is seen", ["nurse is"]),  # neighbours are one stretch
    ("post-op fever", ["-"], "post op fever", []),
    ("left hip", [" "], "left  hip", ["  "]),  # where the words agree, the spaces count
    ("left hip", [], "Left Hip", []),
    ("hip pain", ["pain"], "pain hip", ["pain"]),  # only the order differs
    ("the delay from injury was 13 hours", ["the", "hours"], "was a 13-hour delay from injury", ["a", "-hour"]),
]


@pytest.mark.parametrize(("expected", "lacking", "found", "further"), DIFFERENCES)
def test_what_differs_is_marked_word_by_word(expected: str, lacking: list[str], found: str, further: list[str]) -> None:
    first, second = differences(expected, found)
    assert [expected[start:end] for start, end in first] == lacking
    assert [found[start:end] for start, end in second] == further


@given(st.text(max_size=60), st.text(max_size=60))
def test_stretches_that_differ_are_in_order_and_apart(expected: str, found: str) -> None:
    for text, stretches in zip((expected, found), differences(expected, found), strict=True):
        ends = [place for stretch in stretches for place in stretch]
        assert ends == sorted(ends)
        assert all(0 <= start < end <= len(text) for start, end in stretches)


# --- terminals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("sample", [SAMPLE, *NASTY_SAMPLES])
def test_no_line_is_wider_than_the_terminal(sample: Sample, width: int) -> None:
    assert all(cell_len(line) <= width for line in on_terminal(sample, width=width).splitlines())


@pytest.mark.parametrize("sample", NASTY_SAMPLES)
def test_nothing_from_outside_reaches_a_terminal_as_a_command(sample: Sample) -> None:
    text = ANSI.sub("", on_terminal(sample, colour="standard"))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_colour_says_nothing_that_signs_do_not() -> None:
    plain = on_terminal(SAMPLE)
    coloured = on_terminal(SAMPLE, colour="standard")
    assert ANSI.search(coloured)
    assert ANSI.sub("", coloured) == plain


def test_no_colour_is_respected() -> None:
    text = on_terminal(SAMPLE, colour="standard", environ={"NO_COLOR": "1"})
    # bold and dim remain, which are no colours
    assert set(ANSI.findall(text)) <= {"\x1b[0m", "\x1b[1m", "\x1b[2m"}


def test_without_other_characters_than_ascii_all_of_ours_are() -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii", errors="strict", write_through=True)
    shown(SAMPLE, NARRATIVE, Console(file=file, force_terminal=True, width=80, color_system=None, _environ={}))
    assert b"..." in raw.getvalue()


def test_a_pipe_cuts_and_wraps_nothing() -> None:
    term = "word " * 2_000 + "end"
    sample = Sample("T-1", Expectations((term,), (), ()), Output((term.replace("word", "words", 1),), ""))
    assert any(line.endswith(term) for line in piped(sample).splitlines())


def test_a_closed_pipe_is_told_to_the_caller() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    file = os.fdopen(writing, "w", buffering=1)
    with pytest.raises(BrokenPipeError):
        shown(SAMPLE, NARRATIVE, PipedConsole(file=file, _environ={}))
    with suppress(BrokenPipeError):
        file.close()


# --- in the reports ---------------------------------------------------------------------------------------------------


COUNTS = [
    # (miss_kinds, not in the narrative, what is said)
    ({"prompt": 31, "term": 121}, "152 misses: 121 term (change the term), 31 prompt (ask for it in the prompt)"),
    ({"output": 1}, "1 miss: 1 output (the output is wrong)"),
    ({"term": 0, "look": 0}, None),  # nothing was missed
    ({}, None),  # of a report without explanations
]


@pytest.mark.parametrize(("verdicts", "said"), COUNTS)
def test_misses_are_counted_in_words(verdicts: Mapping[str, int], said: str | None) -> None:
    assert misses_in_words({"miss_verdicts": verdicts}) == said


MISMATCH = {"input_matches": False, "misses": [{"verdict": "term", "in_other_words": True}]}
"""Its misses have no reasons, and are not counted by verdict."""


def test_terms_that_are_there_in_other_words_are_counted_as_what_must_be_compared() -> None:
    misses = [
        {"verdict": "term", "in_other_words": True},
        {"verdict": "term", "in_other_words": False},
        {"verdict": "look", "in_other_words": True},
        {"verdict": "term"},  # of an earlier build
    ]
    report = {"miss_verdicts": {"term": 3, "look": 1}, "results": [{"misses": misses}, {}, MISMATCH]}
    said = "3 term (change the term; compare 1 of them with the output first), 1 look (look at it yourself)"
    assert misses_in_words(report) == f"4 misses: {said}"


def test_a_report_that_explains_nothing_says_nothing_of_misses() -> None:
    run = scored_run([SAMPLE])
    assert misses_in_words(run.report) is None
    assert "missed:" not in render_markdown(run) + scorecard_text(run, verbose=True)


def test_scorecard_and_page_tell_the_kinds_of_the_misses() -> None:
    run, explanation = explained(SAMPLE)
    counted = {
        "miss_verdicts": {"term": 2, "prompt": 3},
        "miss_output_says": {"said": 2, "part": 3, "absent": 0},
        "miss_narrative_says": {"supported": 4, "silent": 1},
    }
    run = replace(run, report={**run.report, **counted}, explanations={SAMPLE.test_id: explanation})
    said = "5 misses: 2 term (change the term), 3 prompt (ask for it in the prompt)"
    answers = (
        "What output and narrative say of the missed terms: 5 misses: 3 part, 2 said; narrative: 4 supported, 1 silent."
    )
    assert f"\n{answers}\nWhy terms were missed: {said}.\n" in scorecard_text(run, verbose=False)
    page = render_markdown(run)
    assert f"- {answers}\n- Why terms were missed: {said}.\n" in page
    assert (
        "`the delay was due to the lack of a free bed` (term: small words or endings differ, signal 2, "
        "characters 1 to 35; output: said; narrative: supported), `seen by Dr Amsel at"
    ) in page
    assert "; output: absent; narrative: silent)" in page


def test_of_a_denial_that_is_contradicted_the_whole_term_is_said() -> None:
    output = Output(("The patient was intubated.",), "", ())
    narrative = "She was not intubated."
    diagnosis = diagnose(Expectations(("not intubated",), (), ()), output, narrative)
    said = reason(diagnosis.misses[0], Explanation(diagnosis, output, narrative))
    assert said.endswith('the term and the narrative say "not intubated".')
