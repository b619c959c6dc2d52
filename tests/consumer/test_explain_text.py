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

from consumer.offline.pages.console import scorecard_text
from consumer.offline.pages.explanation import print_explanation
from consumer.offline.pages.markdown import render_markdown
from consumer.offline.pages.miss_wording import KIND_LABELS, misses_in_words, reason
from consumer.offline.pages.quotes import differences
from consumer.offline.scored_run import Explanation, ScoredRun
from consumer.terminal import PipedConsole
from safe_core import EMPTY_OUTPUT, Expectations, Output
from safe_core.diagnosis import KINDS, AbsentWord, Diagnosis, Kind, Miss, Passage, Verdict, diagnose
from safe_core.diagnosis.verdicts import BY_KIND
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
    print_explanation(run.cases[0], explanation, console)


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


def test_a_case_without_a_narrative_on_a_terminal_of_eighty_columns() -> None:
    matches_golden("explain_80_columns.txt", on_terminal(SAMPLE, narrative=None))


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


def test_what_the_narrative_itself_lacks_comes_first_with_how_the_narrative_words_it() -> None:
    text = piped(SAMPLE)
    first, *_ = (line for line in text.splitlines() if line.startswith("Missed"))
    assert "change the term" in first
    section = text[text.index(first) : text.index("Missed: ask for it")]
    assert re.search(r"expected +a fall from height\n", section)
    assert re.search(r"narrative +\S+ .*after a fall from a ladder", section)
    assert "fix the term, not the prompt" in section


def test_without_a_narrative_it_is_said_that_nobody_can_tell() -> None:
    assert "the test case has no narrative, so SAFE cannot tell" in piped(SAMPLE, narrative=None)
    assert "without a narrative" not in piped(SAMPLE)


def test_a_case_that_passes_has_nothing_to_explain_but_where_its_terms_stand() -> None:
    text = piped(SMALL[0], narrative=None)
    assert "Missed" not in text
    assert "Forbidden" not in text
    assert '"a lactate of 4.1 mmol/L"\n    where      signals[0], characters 0 to 23\n' in text


@pytest.mark.parametrize(("sample", "said"), [(SMALL[4], "FAIL  (empty output)"), (SMALL[5], "FAIL  (no output)")])
def test_where_there_was_nothing_to_score_it_is_said(sample: Sample, said: str) -> None:
    assert said in piped(sample, narrative=None)


def test_a_forbidden_term_inside_a_longer_word_is_pointed_at_with_a_hint() -> None:
    text = piped(SAMPLE)
    used = text[text.index('AH  "or"') : text.index('AH  "negligence"')]
    _, context, signs, _, hint = used.splitlines()[:5]
    assert context[signs.index("^^") :].startswith("ore admission")
    assert "only inside longer words" in hint


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_its_words(kind: Kind) -> None:
    passage = None if kind == "absent" else Passage("summary", None, 0, 5)
    absent = (AbsentWord("after", "reference point"),)
    miss = Miss("AC", "after a fall", kind, "yes", passage, 61.0, BY_KIND[kind], absent)
    run, explanation = explained(SMALL[2], None)
    file = io.StringIO()
    print_explanation(
        run.cases[0], replace(explanation, diagnosis=Diagnosis((miss,), ())), Console(file=file, _environ={})
    )
    words = " ".join(file.getvalue().split())
    assert f"AC {KIND_LABELS[kind]} expected after a fall" in words
    assert reason(miss, explanation) in words
    assert "missing after (reference point)" in words


@pytest.mark.parametrize(
    ("kind", "verdict", "said"),
    [
        ("part", "term", "in another form"),  # "haemolysis" for "haemolysed", CTPA spelled out
        ("part", "look", "in words of its own"),
        ("connectives", "look", "in words of its own"),
        ("value", "look", "which of the two is right"),
    ],
)
def test_the_reason_is_that_of_the_verdict_where_it_is_not_that_of_the_kind(
    kind: Kind, verdict: Verdict, said: str
) -> None:
    miss = Miss("AC", "after a fall", kind, "yes", Passage("summary", None, 0, 5), 61.0, verdict)
    assert said in reason(miss, None)


@pytest.mark.parametrize(
    ("signal", "verdict", "said"),
    [
        ("creatinine increased to 140", "term", "seems to say all of it in other words"),
        ("no vomiting for two days", "look", "the output contradicts the term"),
    ],
)
def test_what_is_said_in_other_words_is_shown_as_no_more_than_that(signal: str, verdict: Verdict, said: str) -> None:
    terms = ("creatinine rose to 140", "last vomited two days ago")
    narrative = "Her creatinine rose to 140. She last vomited two days ago."
    (miss,) = diagnose(Expectations((terms[verdict == "look"],), (), ()), Output((signal,), ""), narrative).misses
    assert (miss.verdict, miss.passage) == (verdict, Passage("signals", 0, 0, len(signal)))
    assert said in reason(miss, None)


FELL = "presented to the emergency room after she slipped on the stairs"


@pytest.mark.parametrize(
    ("narrative", "term", "summary", "said"),
    [
        (
            "Lactate 4.2. Potassium 6.8.",
            "potassium 6.8",
            "Lactate 6.8, potassium 4.2.",
            'The output says "6.8" of something else than the narrative does.',
        ),
        (
            "He has pain in the leg.",
            "pain in the leg",
            "The leg is not painful.",
            "The output and the narrative disagree: one denies what the other says, or is more sure of it.",
        ),
        (
            "Surgery at 14:00.",
            "surgery at 14:00",
            "Surgery at 2 pm.",
            (
                "All of it is there, some in another form: use words that every correct output has, "
                "but do not leave out a denial, a number or a name."
            ),
        ),
        (
            "The arm was swollen.",
            "the arm was swollen",
            "Arm swollen.",
            "All its content words are there: shorten the term to these words.",
        ),
    ],
)
def test_the_reason_says_what_happened_to_the_words_of_the_term(
    narrative: str, term: str, summary: str, said: str
) -> None:
    output = Output((), summary)
    diagnosis = diagnose(Expectations((), (), (term,)), output, narrative)
    [miss] = diagnosis.misses
    assert reason(miss, Explanation(diagnosis, output, narrative)) == said


@pytest.mark.parametrize(
    ("term", "summary", "missing", "said"),
    [
        (
            FELL,
            "She presented with pain after a fall. Then she slipped on the stairs.",
            ("emergency room",),
            'does not contain "emergency room", and has "presented", "after" only away from the rest: ask',
        ),
        (
            FELL,
            "She slipped on the stairs.",
            ("presented", "emergency room", "after"),
            'does not contain "presented", "emergency room", "after": ask',
        ),
        (
            "home oxygen 1 litre",
            "A woman on home oxygen is improving. SpO2 was 84% on 1 litre.",
            ("1 litre",),
            'has "1 litre" only away from the rest of the term: ask',
        ),
        (  # the term has "no" three times, and the text once, with the rest
            "no fever, no chills and no cough",
            "There was no fever.",
            ("chills", "cough"),
            'does not contain "chills", "cough": ask',
        ),
        (  # what no space separates is one word
            "患者出现胸痛和呼吸困难",
            "患者出现发热。胸片正常。",
            ("胸痛和呼吸困难",),
            'does not contain "胸痛和呼吸困难": ask',
        ),
    ],
)
def test_words_that_stand_elsewhere_are_not_said_to_be_missing(
    term: str, summary: str, missing: tuple[str, ...], said: str
) -> None:
    (miss,) = diagnose(Expectations((), (), (term,)), Output((), summary, ()), f"She had: {term}.").misses
    assert (miss.verdict, miss.missing_words) == ("prompt", missing)
    assert said in reason(miss, None)


def test_punctuation_around_a_passage_is_not_taken_for_lost() -> None:
    sample = Sample("T-1", Expectations(("(the left hip)",), (), ()), Output(("pain in (left hip).",), ""))
    assert re.search(r"expected +\(the left hip\)\n +---\n +nearest +\(left hip\)\n", piped(sample))


def test_a_missed_term_is_called_found_only_where_another_field_has_all_of_it() -> None:
    sample = Sample("T-1", Expectations((), (), ("pain in the hip",)), Output(("Pain in the hip.",), "Fell."))
    assert re.search(r"expected +pain in the hip\n +found +Pain in the hip", piped(sample))


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
    counted = {"miss_verdicts": {"term": 2, "prompt": 3}}
    run = replace(run, report={**run.report, **counted}, explanations={SAMPLE.test_id: explanation})
    said = "5 misses: 2 term (change the term), 3 prompt (ask for it in the prompt)"
    assert f"\nWhy terms were missed: {said}.\n" in scorecard_text(run, verbose=False)
    page = render_markdown(run)
    assert f"- Why terms were missed: {said}.\n" in page
    assert (
        "`the delay was due to the lack of a free bed` (term: small words or endings differ, signals[1], "
        "characters 0 to 35), `seen by Dr Amsel at"
    ) in page
    assert ", not in the narrative" in page
