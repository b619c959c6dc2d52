"""The scorecard of `safe score`: whole in a pipe, fitting on a terminal, and never saying more than the numbers do."""

import io
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from consumer.offline.pages.console import print_scorecard, scorecard_text
from consumer.offline.scored_run import ScoredRun
from consumer.terminal import PipedConsole
from safe_core import EMPTY_OUTPUT, Expectations, Output, Policy, id_problem
from tests.support.golden import matches_golden
from tests.support.scored_runs import SMALL, Sample, nasty_samples, scored_run

Part = tuple[int, int]

FLAWLESS: Part = (1, 1)
LONG_ID = "S11-" + "W" * 60
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def sample(test_id: str = "T-1", *, cr: Part = FLAWLESS, ah: Part = (0, 1), ac: Part = FLAWLESS) -> Sample:
    """A case with so many of its terms found (of AH: used); the terms are numbered, and wide enough to be distinct."""

    def terms(name: str, count: int) -> tuple[str, ...]:
        return tuple(f"{name}{number:05}." for number in range(count))

    expectations = Expectations(terms("signal", cr[1]), terms("forbidden", ah[1]), terms("phrase", ac[1]))
    output = Output(terms("signal", cr[0]), " ".join(terms("phrase", ac[0])), (*terms("forbidden", ah[0]), "Why?"))
    return Sample(test_id, expectations, output)


def naming(test_id: str, *, term: str = "a term", archetype: str | None = "Archetype", batch_id: str = "B") -> Sample:
    """A case that uses `term` where it must not and misses it where it must."""
    expectations = Expectations((term,), (term,), (term,))
    return Sample(test_id, expectations, Output((), "", (term,)), archetype=archetype, batch_id=batch_id)


def on_terminal(
    run: ScoredRun,
    *,
    width: int = 80,
    colour: Literal["standard"] | None = None,
    environ: Mapping[str, str] | None = None,
    verbose: bool = True,
) -> str:
    console = Console(
        file=io.StringIO(),
        force_terminal=True,
        width=width,
        color_system=colour,
        legacy_windows=False,
        _environ=environ or {},  # not that of whoever runs the tests
    )
    print_scorecard(run, console, verbose=verbose)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def in_ascii(run: ScoredRun, *, terminal: bool = False) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii", errors="backslashreplace", write_through=True)
    console = Console(
        file=file, force_terminal=terminal, width=80, color_system=None, legacy_windows=False, _environ={}
    )
    print_scorecard(run, console, verbose=False)
    return raw.getvalue().decode("ascii")


def policy(**document: Any) -> Policy:
    return Policy.from_document(document)


# --- the whole --------------------------------------------------------------------------------------------------------


def test_a_small_run_in_a_pipe() -> None:
    matches_golden("scorecard.txt", scorecard_text(scored_run(SMALL), verbose=False))


def test_a_small_run_with_its_terms_and_a_gate() -> None:
    run = scored_run(SMALL, decision="gate NOT passed: 3 Fail among 7 cases (--fail-on fail)")
    matches_golden("scorecard_verbose.txt", scorecard_text(run, verbose=True))


def test_a_small_run_on_a_terminal_of_eighty_columns() -> None:
    matches_golden("scorecard_80_columns.txt", on_terminal(scored_run(SMALL), verbose=False))


def test_a_small_run_without_box_drawing() -> None:
    matches_golden("scorecard_ascii.txt", in_ascii(scored_run(SMALL)))


def test_texts_that_try_to_break_out() -> None:
    matches_golden("scorecard_nasty.txt", scorecard_text(scored_run(nasty_samples()), verbose=True))


# --- the metrics ------------------------------------------------------------------------------------------------------

STRICT = {"strictAH": True}
OWN_PASS = {"thresholds": {"AH": {"pass": 0.5}}}
STATUSES: list[tuple[str, Mapping[str, Any], Sequence[Sample], str]] = [
    # exactly on the bound is enough
    ("CR", {}, [sample(cr=(4, 5))], "0.80 100% OK"),
    ("CR", {}, [sample(cr=(2, 3))], "0.67 0% WARN (mean 0.67 below pass 0.8)"),
    ("AC", {}, [sample(ac=(1, 2))], "0.50 0% WARN (mean 0.50 below pass 0.8)"),
    ("AC", {}, [sample(ac=(1, 3))], "0.33 0% FAIL (mean 0.33 below review 0.5)"),
    # to the nearest these would be 0.80 and 0.50, which they are not
    ("CR", {}, [sample(cr=(799, 1000))], "0.79 0% WARN (mean 0.79 below pass 0.8)"),
    ("CR", {}, [sample(cr=(499, 1000))], "0.49 0% FAIL (mean 0.49 below review 0.5)"),
    # nor is this 1.00, although no bound of the configuration is missed by it
    ("CR", {}, [sample(cr=(999, 1000))], "0.99 100% OK"),
    # a bound of three decimals
    ("CR", {"thresholds": {"CR": {"pass": 0.805}}}, [sample(cr=(4, 5))], "0.80 0% WARN (mean 0.80 below pass 0.805)"),
    # an AH without a violation, and with the first one, however high the mean is
    ("AH", {}, [sample()], "1.00 100% OK"),
    ("AH", {}, [sample(ah=(1, 100))], "0.99 0% WARN (1 violation across batch)"),
    ("AH", OWN_PASS, [sample(ah=(1, 100))], "0.99 100% WARN (1 violation across batch)"),
    ("AH", {}, [sample(ah=(1, 1000))], "0.99 0% WARN (1 violation across batch)"),
    # what no case asks for is no achievement
    ("AH", {}, [sample(ah=(0, 0)), sample("T-2", ah=(0, 0))], "1.00 100% OK (nothing to check)"),
    ("AH", {}, [sample(ah=(0, 0)), sample("T-2")], "1.00 100% OK"),
    # violations are counted over all cases
    ("AH", {}, [sample("T-1", ah=(2, 8)), sample("T-2", ah=(1, 4))], "0.75 0% WARN (3 violations across batch)"),
    ("AH", {}, [sample(ah=(2, 3))], "0.33 0% FAIL (mean 0.33 below review 0.5, 2 violations across batch)"),
    # strictness makes one violation the worst
    ("AH", STRICT, [sample(ah=(1, 9))], "0.00 0% FAIL (mean 0.00 below review 0.5, 1 violation across batch)"),
    # one of 201 fails, which does not leave all of them
    ("CR", {}, [sample(f"T-{n}", cr=(min(n, 1), 1)) for n in range(201)], "0.99 99.5% OK"),
]  # fmt: skip


@pytest.mark.parametrize(("criterion", "configuration", "samples", "expected"), STATUSES)
def test_each_criterion_has_its_mean_its_pass_rate_and_its_status(
    criterion: str, configuration: Mapping[str, Any], samples: Sequence[Sample], expected: str
) -> None:
    text = scorecard_text(scored_run(samples, policy=policy(**configuration)), verbose=False)
    row = next(line for line in text.splitlines() if line.startswith(f"║   {criterion}   │"))
    without_interval = re.sub(r" \([\d.]+–[\d.]+%\)", "", row)
    assert without_interval != row
    assert " ".join(without_interval.strip("║").replace("│", " ").split()) == f"{criterion} {expected}"


def test_strictness_is_said_where_it_is_on() -> None:
    strict = "Strict AH: one forbidden term makes AH 0"
    assert strict in scorecard_text(scored_run(SMALL, policy=policy(strictAH=True)), verbose=False)
    assert "Strict AH" not in scorecard_text(scored_run(SMALL), verbose=False)


def test_what_an_override_changes_is_said_where_a_case_meets_it() -> None:
    overrides = {"archetype": {"Escalation_Tracker": {"strictAH": True, "thresholds": {"CR": {"pass": 0.9}}}}}
    text = scorecard_text(scored_run(SMALL, policy=policy(overrides=overrides)), verbose=False)
    assert "Strict AH for some cases: one forbidden term makes AH 0" in text
    assert "some cases have different thresholds" in text


def test_an_override_that_no_case_meets_is_not_mentioned() -> None:
    overrides = {"archetype": {"Nobody": {"strictAH": True, "thresholds": {"CR": {"pass": 0.9}}}}}
    run = scored_run(SMALL, policy=policy(overrides=overrides))
    assert scorecard_text(run, verbose=False) == scorecard_text(scored_run(SMALL), verbose=False)


# --- the cases --------------------------------------------------------------------------------------------------------


def test_cases_that_fail_come_first_and_passing_ones_last() -> None:
    samples = [sample("T-1"), sample("T-2", cr=(2, 3)), sample("T-3", cr=(0, 1)), sample("T-4", cr=(0, 1))]
    rows = re.findall(r"│ (T-\d) .* (PASS|REVIEW|FAIL)", scorecard_text(scored_run(samples), verbose=False))
    assert rows == [("T-3", "FAIL"), ("T-4", "FAIL"), ("T-2", "REVIEW"), ("T-1", "PASS")]


def test_a_batch_is_named_in_a_column_only_where_there_are_several() -> None:
    one, two = (scorecard_text(scored_run(samples), verbose=False) for samples in (SMALL[:3], SMALL[2:4]))
    assert "│ Batch " not in one
    assert "│ Batch " in two


def test_a_case_can_pass_without_an_output_and_says_so() -> None:
    nothing = Expectations((), (), ())
    text = scorecard_text(
        scored_run([Sample("T-1", nothing, None), Sample("T-2", nothing, EMPTY_OUTPUT)]), verbose=False
    )
    assert "│ PASS (no output) │" in text
    assert "│ PASS (empty)     │" in text


def test_the_score_of_a_case_keeps_clear_of_the_thresholds_of_its_own() -> None:
    overrides = {"archetype": {"Handover_Reviewer": {"thresholds": {"CR": {"pass": 0.67}}}}}
    run = scored_run([sample(cr=(2, 3))], policy=policy(overrides=overrides))
    assert "│ 0.66 │ 1.00 │ 1.00 │ REVIEW │" in scorecard_text(run, verbose=False)
    assert "CR 0.66  below pass 0.67" in scorecard_text(run, verbose=True)


def test_only_cases_that_do_not_pass_have_their_terms_listed() -> None:
    text = scorecard_text(scored_run(SMALL), verbose=True).partition("Cases That Do Not Pass:")[2]
    assert re.findall(r"^(?:FAIL|REVIEW)[ a-z()]*  (\S+)", text, re.MULTILINE) == [
        "S11-W1-003", "S11-W2-002", "S11-W2-003", "S11-W1-002", "S11-W2-001",
    ]  # fmt: skip


def test_where_all_pass_verbose_has_nothing_to_add() -> None:
    run = scored_run([sample()])
    assert scorecard_text(run, verbose=True) == scorecard_text(run, verbose=False)


# --- the closing ------------------------------------------------------------------------------------------------------


def test_issues_are_counted_by_term_and_not_by_case() -> None:
    twice = Expectations(("a fall", "a fall"), ("blame",), ("GCS",))
    text = scorecard_text(scored_run([Sample("T-1", twice, Output((), "", ("blame",)))]), verbose=False)
    assert '  CR Misses:      "a fall" (missed 2 times)\n' in text
    assert '  AH Violations:  "blame" (used once)\n' in text
    assert '  AC Misses:      "GCS" (missed once)\n' in text


def test_where_nothing_is_wrong_nothing_is_said() -> None:
    text = scorecard_text(scored_run([sample()]), verbose=True)
    assert "Top Issues:\n  none\n\n1 case: 1 Pass, 0 Review, 0 Fail; pass rate 100% (20.7–100%)\n" in text
    assert "nothing to check" not in text
    assert "outputs" not in text


REMARKS = [
    # a case without forbidden terms
    (Sample("T-1", Expectations(("a",), (), ("a",)), Output((), "a", ("Why?",))), ["AH in 1 case."]),
    # a case with nothing at all
    (
        Sample("T-1", Expectations((), (), ()), Output((), "a")),
        ["CR in 1 case, AH in 1 case, AC in 1 case, all in 1 case."],
    ),
    # an output of three empty fields
    (Sample("T-1", Expectations(("a",), ("b",), ("c",)), EMPTY_OUTPUT), ["AH in 1 case.", "Empty outputs: 1 case."]),
    # a missing output, which is not counted as an empty one too
    (
        Sample("T-1", Expectations(("a",), ("b",), ("c",)), None),
        ["AH in 1 case.", "No output: 1 case, scored as empty outputs."],
    ),
]


@pytest.mark.parametrize(("case", "remarks"), REMARKS)
def test_what_makes_scores_worth_less_is_counted_where_it_happened(case: Sample, remarks: Sequence[str]) -> None:
    text = scorecard_text(scored_run([case]), verbose=False)
    section = text.partition("Scored 1.00 because there was nothing to check: ")[2].partition("\n\n")[0]
    assert section.splitlines() == remarks


PASS, REVIEW, FAIL = FLAWLESS, (2, 3), (0, 1)
VERDICTS = [
    ([PASS], "Verdict: PASS - 1 of 1 case passes"),
    ([PASS, PASS], "Verdict: PASS - 2 of 2 cases pass"),
    ([PASS, REVIEW], "Verdict: REVIEW - 1 of 2 cases needs review"),
    ([REVIEW, REVIEW, PASS], "Verdict: REVIEW - 2 of 3 cases need review"),
    ([REVIEW, FAIL], "Verdict: FAIL - 1 of 2 cases fails"),
    ([FAIL, FAIL, REVIEW], "Verdict: FAIL - 2 of 3 cases fail"),
]


@pytest.mark.parametrize(("parts", "verdict"), VERDICTS)
def test_the_verdict_is_that_of_the_worst_case(parts: Sequence[Part], verdict: str) -> None:
    samples = [sample(f"T-{number}", cr=part) for number, part in enumerate(parts)]
    assert scorecard_text(scored_run(samples), verbose=False).splitlines()[-1] == verdict


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_gate_has_the_last_word(width: int) -> None:
    run = scored_run(SMALL, decision="gate passed: no Fail")
    for text in (scorecard_text(run, verbose=True), on_terminal(run, width=width)):
        assert text.endswith("\ngate passed: no Fail\n")


# --- a pipe -----------------------------------------------------------------------------------------------------------


def test_nothing_is_cut_or_wrapped_in_a_pipe() -> None:
    texts = {
        "id": "i" * 256,
        "archetype": "Archetype " * 25 + "end",
        "batch": "b" * 200,
        "term": "term " * 2_000 + "end",
    }
    odd = naming(texts["id"], term=texts["term"], archetype=texts["archetype"], batch_id=texts["batch"])
    run = scored_run([odd, naming("other")], concern_id="c" * 150, decision="gate " * 60 + "end")
    text = scorecard_text(run, verbose=True)
    assert f"│ {texts['id']} │ {texts['batch']} │ {texts['archetype']} │ 0.00 │" in text
    assert f'used       "{texts["term"]}"\n' in text
    assert f'  "{texts["term"]}" (missed once)\n' in text
    assert f"SAFE v0 Scorecard - {'c' * 150}" in text
    assert text.endswith(f"\n{'gate ' * 60}end\n")


def test_a_file_looks_the_same_whatever_the_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    before = scorecard_text(scored_run(SMALL), verbose=True)
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "30", "TERM": "xterm-256color"}.items():
        monkeypatch.setenv(name, value)
    assert scorecard_text(scored_run(SMALL), verbose=True) == before


def test_a_closed_pipe_is_the_business_of_the_caller() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    file = os.fdopen(writer, "w", encoding="utf-8")
    with pytest.raises(BrokenPipeError):
        print_scorecard(scored_run(SMALL), PipedConsole(file=file, force_terminal=False), verbose=False)
    with suppress(BrokenPipeError):  # what could not be written is still there to be flushed
        file.close()


# --- a terminal -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 79, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    nasty = [naming(f"N-{n}", term=odd.expectations.must_find_signals[0]) for n, odd in enumerate(nasty_samples())]
    policies = policy(strictAH=True, overrides={"archetype": {"Archetype": {"thresholds": {"CR": {"pass": 0.9}}}}})
    run = scored_run([*SMALL, *nasty], policy=policies, concern_id="C" * 90, decision="gate NOT passed: " + "why " * 50)
    assert max(map(cell_len, on_terminal(run, width=width).splitlines())) <= width


def test_the_box_stays_narrow_enough_to_read() -> None:
    lines = on_terminal(scored_run(SMALL, concern_id="C" * 256), width=300).splitlines()
    assert max(len(line) for line in lines if line.startswith("║")) == 100


def test_an_archetype_is_cut_before_anything_else_is() -> None:
    text = on_terminal(scored_run([naming("T-" + "1" * 30, archetype="Delay_Driver_Profiler")]), verbose=False)
    assert f"│ T-{'1' * 30} │ Delay_Dri" in text
    assert "…" in text
    assert "Profiler" not in text


@pytest.mark.parametrize("width", [30, 60, 80, 120])
@pytest.mark.parametrize("test_id", [LONG_ID, LONG_ID * 3, "長" * 40], ids=["64", "192", "wide"])
def test_an_id_is_whole_on_one_line_however_narrow_the_terminal(test_id: str, width: int) -> None:
    run = scored_run([naming(test_id, batch_id="B" * 40), naming("T-1", batch_id="B2")])
    text = on_terminal(run, width=width)
    assert len(re.findall(rf"(?<!\w){test_id}(?!\w)", text)) == 2
    assert "(" + "B" * 40 + ")" in text


@pytest.mark.parametrize("width", [1, 5, 20])
def test_a_terminal_too_narrow_for_anything_still_gets_its_scorecard(width: int) -> None:
    text = on_terminal(scored_run([*SMALL, *nasty_samples()]), width=width)
    assert text.endswith("Verdict: FAIL - 13 of 17 cases fail\n")


def test_a_long_term_goes_on_below_itself() -> None:
    text = on_terminal(scored_run([naming("T-1", term="word " * 60 + "end")]))
    block = text[text.index('"word') :].partition('end"')[0].splitlines()
    assert len(block) > 3
    assert all(line.startswith(" " * 15 + "word") for line in block[1:])


def test_colour_repeats_what_the_words_say() -> None:
    run = scored_run(SMALL)
    coloured = on_terminal(run, colour="standard")
    assert coloured != on_terminal(run)
    assert ANSI.sub("", coloured) == on_terminal(run)


def test_no_color_is_respected() -> None:
    codes = set(ANSI.findall(on_terminal(scored_run(SMALL), colour="standard", environ={"NO_COLOR": "1"})))
    assert codes <= {"\x1b[1m", "\x1b[0m"}  # bold is no colour


# --- texts from outside -----------------------------------------------------------------------------------------------

INERT = [
    "[bold red]text[/bold red]",
    "[/]",
    ":smile: :warning:",
    "True 12.5 /etc https://x.org 'x'",  # what rich would highlight
    "\\[escaped]",
    "a  b   c",  # blanks are part of a term
]


@pytest.mark.parametrize("text", INERT)
def test_a_text_from_outside_is_only_a_text(text: str) -> None:
    run = scored_run([naming(text, term=text, archetype=text, batch_id=text)], concern_id=text, decision=text)
    shown = on_terminal(run, width=120, colour="standard")
    for place in (f"- {text}", f"Batch: {text}", f"  {text}\n", f'"{text}"', f"\n{text}\n"):
        assert place in shown
    assert re.search(rf"│ {re.escape(text)} +│ {re.escape(text)} +│ 0.00", shown)


def test_columns_of_wide_characters_line_up() -> None:
    samples = [
        naming("T-1", archetype="Handover"),
        naming("症例-2", archetype="引き継ぎ"),
        naming("e\u0301-3", archetype=None),
    ]
    for text in (scorecard_text(scored_run(samples), verbose=False), on_terminal(scored_run(samples), verbose=False)):
        table = [line for line in text.splitlines() if line[:1] in {"┌", "│", "├", "└"}]
        assert len(table) == 7
        assert len({cell_len(line) for line in table}) == 1


def test_without_box_drawing_texts_stay_as_they_are() -> None:
    run = scored_run([naming("Fälle ═ 1", term="║ GCS ≥ 14", archetype="Übergabe")])
    text = in_ascii(run)
    assert "| F\\xe4lle \\u2550 1 | \\xdcbergabe |" in text
    assert '"\\u2551 GCS \\u2265 14" (missed once)' in text


def test_without_box_drawing_an_ellipsis_is_three_dots() -> None:
    text = in_ascii(scored_run([naming("T-" + "1" * 30, archetype="Delay_Driver_Profiler")]), terminal=True)
    assert re.search(r"\| Delay\w*\.\.\. \|", text)


ids = st.text(min_size=1, max_size=40).filter(lambda text: id_problem(text) is None)


@given(test_id=ids, archetype=ids, term=st.text(min_size=1, max_size=60).filter(lambda text: bool(text.strip())))
def test_whatever_a_text_holds_the_lines_are_the_same(test_id: str, archetype: str, term: str) -> None:
    text = scorecard_text(scored_run([naming(test_id, term=term, archetype=archetype)]), verbose=True)
    plain = scorecard_text(scored_run([naming("T-1", term="a term")]), verbose=True)
    assert len(text.splitlines()) == len(plain.splitlines())
    assert len({cell_len(line) for line in text.splitlines() if line[:1] == "│"}) == 1


def test_an_ascii_console_keeps_its_tables_straight_whatever_stands_in_them() -> None:
    run = scored_run([naming("Zürich–1", archetype="Überwachung…"), naming("T-2", archetype=None)], concern_id="Ö1")
    lines = in_ascii(run).splitlines()
    drawn = [line for line in lines if line.startswith(("|", "+"))]
    assert {len(line) for line in drawn[: drawn.index(drawn[0], 1) + 1]} == {len(drawn[0])}
    table = [line for line in drawn if line.count("|") == 7 or line.startswith("+-")]
    assert "| Z\\xfcrich-1 | \\xdcberwachung... |" in "\n".join(table)
    assert len({len(line) for line in table if "Label" in line or "rich" in line or "T-2" in line}) == 1
    assert not [line for line in lines if "\\u" in line]
