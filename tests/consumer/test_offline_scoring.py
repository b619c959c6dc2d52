"""From files of outputs to a scored run: whose answer stands, what is missing or refused."""

import hashlib
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from consumer import __version__
from consumer.errors import ConfigurationError
from consumer.files.outputs import OnDuplicate, open_outputs
from consumer.files.selection import select
from consumer.files.unused_outputs import passed_over_line
from consumer.offline.scored_run import ScoredRun
from consumer.offline.scoring import moment, score_files
from safe_core import DEFAULT_POLICY, Policy
from tests.support.case_files import HARMFUL, a_case, answer, event, write_batch, write_events, write_report
from tests.support.noting_bar import NotingBar

AT = "2026-03-02T08:00:00.000Z"


def scored(
    folder: Path,
    *files: Path,
    pattern: str = "*",
    on_duplicate: OnDuplicate | None = None,
    policy: Policy = DEFAULT_POLICY,
) -> tuple[ScoredRun, Sequence[str]]:
    selection = select(folder, "K07", pattern)
    opened = [open_outputs(file) for file in files]
    return score_files(selection, opened, policy, generated_at=AT, on_duplicate=on_duplicate)


def labels(run: ScoredRun) -> dict[str, str]:
    return {case.test_id: case.label for case in run.cases}


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """Two cases in a batch, one of them in a golden set too."""
    folder = tmp_path / "cases"
    write_batch(folder, "asthma_1", a_case("A-1"), a_case("A-2"), index=1)
    write_batch(folder, "golden", a_case("A-2"), index=6)
    return folder


# --- the report -------------------------------------------------------------------------------------------------------


def test_the_report_says_what_was_scored_by_what_and_from_which_files(cases: Path, tmp_path: Path) -> None:
    outputs = write_report(tmp_path / "run.json", answer("A-2", HARMFUL), answer("A-1", run_id="r7"))

    run, remarks = scored(cases, outputs, pattern="asthma_*")

    report: dict[str, Any] = dict(run.report)
    assert [result["test_id"] for result in report["results"]] == ["A-1", "A-2"], "in the order of the batch file"
    assert (report["batch_id"], report["concern_id"], report["generated_at"]) == ("asthma_1", "K07", AT)
    assert report["summary"] == {"total_cases": 2, "pass": 1, "review": 0, "fail": 1, "overall_pass_rate": 0.5}
    assert (report["expected_cases"], report["complete"], report["missing_outputs"]) == (2, True, 0)
    assert report["scorer"] == {
        "version": __version__,
        "fingerprint": DEFAULT_POLICY.fingerprint,
        "rule": "substring/1",
    }
    assert report["inputs"] == [
        {"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for path in (cases / "asthma_1.json", outputs)
    ]
    assert report["selection"] == {"concern_id": "K07", "batches": ["asthma_1"], "on_duplicate": None}
    assert report["runs"] == {"": 1, "r7": 1}
    assert report["missing_test_ids"] == []
    assert labels(run) == {"A-1": "Pass", "A-2": "Fail"}
    assert remarks == ["the outputs come from 2 runs: no run_id (1 case), r7 (1 case)"]
    assert run.verdict == "Fail"


def test_a_case_without_an_output_is_scored_as_an_empty_one_and_counted_as_missing(cases: Path, tmp_path: Path) -> None:
    outputs = write_report(tmp_path / "run.json", answer("A-1", None))

    run, _ = scored(cases, outputs, pattern="asthma_1")

    assert (run.report["empty_outputs"], run.report["missing_outputs"]) == (1, 1)
    assert [(case.test_id, case.label, case.answered) for case in run.cases] == [
        ("A-1", "Fail", True),
        ("A-2", "Fail", False),
    ]
    assert run.report["results"][0]["scores"] == run.report["results"][1]["scores"]


def test_outputs_that_answer_nothing_are_named_and_never_scored(cases: Path, tmp_path: Path) -> None:
    outputs = write_report(tmp_path / "run.json", answer("A-1"), answer("A-2"), answer("Z-1"), answer("Z-2"))

    run, remarks = scored(cases, outputs, pattern="asthma_1")

    assert run.report["summary"]["total_cases"] == 2
    assert remarks == ["2 outputs ignored: no test case has their 2 test_ids: Z-1, Z-2"]


def test_of_many_outputs_that_answer_nothing_the_first_are_named(cases: Path, tmp_path: Path) -> None:
    outputs = write_report(tmp_path / "run.json", *(answer(f"Z-{number}") for number in range(60)))

    _, remarks = scored(cases, outputs, pattern="asthma_1")

    assert remarks[0] == "60 outputs ignored: no test case has their test_ids (more than 50): Z-0, Z-1, Z-2 …"
    assert remarks[1] == "no output answers any selected test case: is --outputs the right file?"


def test_outputs_of_one_unknown_test_id_are_counted_beside_it(cases: Path, tmp_path: Path) -> None:
    outputs = write_report(tmp_path / "run.json", answer("A-1"), answer("A-2"), answer("Z-1"), answer("Z-1"))

    _, remarks = scored(cases, outputs, pattern="asthma_1")

    assert remarks == ["2 outputs ignored: no test case has their test_id: Z-1"]


def test_files_without_any_output_are_refused(cases: Path, tmp_path: Path) -> None:
    outputs = write_report(tmp_path / "run.json")

    with pytest.raises(ConfigurationError, match=r"run\.json: no outputs, so there is nothing to score"):
        scored(cases, outputs)


def test_rules_go_by_the_metric_and_archetype_of_the_answer_then_of_the_case(tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    write_batch(folder, "b", *(a_case(f"A-{n}", metric_id="m-case", archetype="of_the_case") for n in range(4)))
    outputs = write_report(
        tmp_path / "run.json",
        answer("A-0"),
        answer("A-1", metric_id="m-event"),
        answer("A-2", archetype="of_the_event"),
        answer("A-3", archetype="Unknown"),
    )
    policy = Policy.from_document({
        "overrides": {
            "metric_id": {"m-case": {"weights": {"CR": 2}}, "m-event": {"weights": {"CR": 3}}},
            "archetype": {"of_the_event": {"weights": {"CR": 4}}},
        }
    })  # fmt: skip

    run, _ = scored(folder, outputs, policy=policy)

    assert [case.rules.weights.CR for case in run.cases] == [2, 3, 4, 2]
    assert [case.archetype for case in run.cases] == ["of_the_case", "of_the_case", "of_the_event", "of_the_case"]


def test_without_a_metric_the_concern_is_the_metric(tmp_path: Path) -> None:
    write_batch(tmp_path / "cases", "b", a_case("A-1"), a_case("A-2"))
    outputs = write_report(tmp_path / "run.json", answer("A-1", concern_id="k07"))
    policy = Policy.from_document({"overrides": {"metric_id": {"K07": {"strictAH": True}}}})

    run, _ = scored(tmp_path / "cases", outputs, policy=policy)

    assert [case.rules.strict_ah for case in run.cases] == [False, True], (
        "the event's concern, as it spells it, beats the test case's"
    )


@pytest.mark.parametrize("concern", ["K07", "k07"])
def test_the_spelling_of_the_concern_asked_for_makes_no_difference(tmp_path: Path, concern: str) -> None:
    write_batch(tmp_path / "cases", "b", a_case("A-1", concern_id=None))
    file = write_events(tmp_path / "run.jsonl", event("A-1"))
    policy = Policy.from_document({"overrides": {"metric_id": {"K07": {"strictAH": True}}}})

    selection = select(tmp_path / "cases", concern, "*")
    run, remarks = score_files(selection, [open_outputs(file)], policy, generated_at=AT)

    assert [case.rules.strict_ah for case in run.cases] == [True]
    assert remarks == [], "no override is left that judges no case"


def test_an_output_of_another_concern_answers_nothing(cases: Path, tmp_path: Path) -> None:
    """In the stream it counts in a batch of that concern."""
    outputs = write_report(tmp_path / "run.json", answer("A-1", concern_id="Z99"), answer("A-2", concern_id=None))

    run, remarks = scored(cases, outputs, pattern="asthma_1")

    assert labels(run) == {"A-1": "Fail", "A-2": "Pass"}
    assert remarks[0] == "1 output ignored: it is for a selected test case, but the output names another concern: Z99"


def test_several_are_told_in_the_plural(cases: Path, tmp_path: Path) -> None:
    write_batch(cases, "asthma_1", a_case("A-1"), a_case("A-2"), a_case("A-3"), index=1)
    others = (answer("A-1", concern_id="Z99"), answer("A-2", concern_id="Z99"))
    outputs = write_report(tmp_path / "run.json", *others, answer("A-3"))

    _, remarks = scored(cases, outputs, pattern="asthma_1")

    assert remarks == [
        "2 outputs ignored: they are for selected test cases, but the outputs name another concern: Z99",
        "2 of 3 test cases have no output; each is scored as if its output were empty",
    ]


def test_several_outputs_are_passed_over_in_the_plural() -> None:
    assert passed_over_line(["T (raw_results[0])", "U (raw_results[1])"]) == (
        "2 outputs are passed over, because for each of them a different output for the same case is more likely to "
        "have come from the case's own narrative: T (raw_results[0]), U (raw_results[1])"
    )


def test_a_test_id_of_two_concerns_is_scored_in_either(tmp_path: Path) -> None:
    write_batch(tmp_path / "cases", "b", a_case("A-1", concern_id="Z99"), a_case("A-1"), a_case("A-2"))
    outputs = write_report(tmp_path / "run.json", answer("A-1"), answer("A-2"))

    assert labels(scored(tmp_path / "cases", outputs)[0]) == {"A-1": "Pass", "A-2": "Pass"}


def test_the_metric_of_a_case_without_an_output_is_its_own(tmp_path: Path) -> None:
    write_batch(tmp_path / "cases", "b", a_case("A-1"), a_case("A-2", metric_id="m"))
    outputs = write_report(tmp_path / "run.json", answer("A-1"))
    policy = Policy.from_document({"overrides": {"metric_id": {"m": {"weights": {"CR": 3}}}}})

    run, _ = scored(tmp_path / "cases", outputs, policy=policy)

    assert [case.rules.weights.CR for case in run.cases] == [1, 3]


# --- answered twice ---------------------------------------------------------------------------------------------------


def test_a_report_that_answers_a_case_twice_is_refused_with_the_ids(cases: Path, tmp_path: Path) -> None:
    outputs = write_report(tmp_path / "run.json", *(answer(test_id) for test_id in ("A-2", "A-1", "A-2", "Z", "Z")))

    with pytest.raises(ConfigurationError) as caught:
        scored(cases, outputs, pattern="asthma_1")

    assert str(caught.value) == "more than one output for 1 test_id: A-2; choose with --on-duplicate first or last"


CHOICES: list[tuple[OnDuplicate, str]] = [("first", "Fail"), ("last", "Pass")]


@pytest.mark.parametrize(("on_duplicate", "label"), CHOICES)
def test_it_can_be_said_which_answer_counts(cases: Path, tmp_path: Path, on_duplicate: OnDuplicate, label: str) -> None:
    outputs = write_report(tmp_path / "run.json", answer("A-1", HARMFUL), answer("A-2"), answer("A-1"))

    run, remarks = scored(cases, outputs, pattern="asthma_1", on_duplicate=on_duplicate)

    assert labels(run) == {"A-1": label, "A-2": "Pass"}
    assert remarks == [f"1 test_id answered more than once, and only the {on_duplicate} answer counts: A-1"]
    assert run.report["selection"]["on_duplicate"] == on_duplicate


def test_entries_for_two_batches_that_hold_a_case_are_no_duplicates(cases: Path, tmp_path: Path) -> None:
    """The answer for the first batch by file name counts, wherever it stands."""
    later, earlier = answer("A-2", HARMFUL, batch_index=6), answer("A-2", batch_index=1)

    for entries in ((later, earlier), (earlier, later)):
        run, _ = scored(cases, write_report(tmp_path / "run.json", *entries))
        assert labels(run)["A-2"] == "Pass"


def test_an_entry_that_answers_a_case_in_several_batches_answers_it_once(cases: Path, tmp_path: Path) -> None:
    run, remarks = scored(cases, write_report(tmp_path / "run.json", answer("A-1"), answer("A-2", batch_index=4)))

    assert labels(run) == {"A-1": "Pass", "A-2": "Pass"}
    (counted_once,) = remarks
    assert counted_once.startswith("1 test_id is in several batches with equal expectations and counts only once, in")


def test_what_was_answered_for_a_batch_that_was_not_selected_serves_where_there_is_no_other(
    cases: Path, tmp_path: Path
) -> None:
    """The golden set repeats a case of the first batch: whichever is selected, the answer for its own index counts."""
    entries = answer("A-2", HARMFUL, batch_index=6), answer("A-2", batch_index=1)

    for order in (entries, entries[::-1]):
        for pattern, label in (("asthma_1", "Pass"), ("golden", "Fail"), ("*", "Pass")):
            run, remarks = scored(cases, write_report(tmp_path / "run.json", *order), pattern=pattern)
            assert labels(run)["A-2"] == label
            both = "an output for an earlier batch (by file name) already answers the case"
            one = "the batch is not selected, and another output already answers the case"
            assert f"1 output ignored: {both if pattern == '*' else one}" in remarks
    only = write_report(tmp_path / "run.json", entries[1])
    assert labels(scored(cases, only, pattern="golden")[0]) == {"A-2": "Pass"}


def test_an_answer_for_the_second_batch_counts_where_there_is_no_other(cases: Path, tmp_path: Path) -> None:
    run, _ = scored(cases, write_report(tmp_path / "run.json", answer("A-2", batch_index=6)))

    assert labels(run) == {"A-1": "Fail", "A-2": "Pass"}


def test_two_reports_that_answer_the_same_case_are_two_answers(cases: Path, tmp_path: Path) -> None:
    one = write_report(tmp_path / "a.json", answer("A-1", HARMFUL), answer("A-2"))
    other = write_report(tmp_path / "b.json", answer("A-1"))

    with pytest.raises(ConfigurationError, match="more than one output for 1 test_id"):
        scored(cases, one, other, pattern="asthma_1")
    assert labels(scored(cases, one, other, pattern="asthma_1", on_duplicate="first")[0])["A-1"] == "Fail"
    assert labels(scored(cases, one, other, pattern="asthma_1", on_duplicate="last")[0])["A-1"] == "Pass"


def test_a_report_and_an_event_that_answer_the_same_case_are_two_answers(cases: Path, tmp_path: Path) -> None:
    one = write_report(tmp_path / "a.json", answer("A-1", HARMFUL))
    other = write_events(tmp_path / "b.jsonl", event("A-1", generated_at="2026-03-02T08:00:00Z"))

    with pytest.raises(ConfigurationError, match="more than one output for 1 test_id"):
        scored(cases, one, other, pattern="asthma_1")
    assert labels(scored(cases, one, other, pattern="asthma_1", on_duplicate="last")[0])["A-1"] == "Pass"


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_answers_that_a_better_one_sets_aside_are_no_duplicates_in_any_order(
    cases: Path, tmp_path: Path, order: tuple[int, ...]
) -> None:
    """Two answers to the second batch, and one to the first, which goes before both."""
    entries = [answer("A-2"), answer("A-2", HARMFUL, batch_index=6), answer("A-2", HARMFUL, batch_index=6)]
    whole = write_report(tmp_path / "run.json", *(entries[place] for place in order))
    parts = [write_report(tmp_path / f"{place}.json", entries[place]) for place in order]
    for files in ([whole], parts):
        run, remarks = scored(cases, *files)
        assert labels(run)["A-2"] == "Pass"
        assert not any("more than once" in remark for remark in remarks)


# --- events -----------------------------------------------------------------------------------------------------------

EIGHT, NINE = "2026-03-02T08:00:00Z", "2026-03-02T10:00:00+01:00"
LATEST = [
    # without a time it is 0, and the later line stands
    ([event("A-1", HARMFUL), event("A-1")], "Pass"),
    ([event("A-1"), event("A-1", HARMFUL)], "Fail"),
    # the later time stands, wherever its line is
    ([event("A-1", generated_at=NINE), event("A-1", HARMFUL, generated_at=EIGHT)], "Pass"),
    # any time is later than none
    ([event("A-1", generated_at=EIGHT), event("A-1", HARMFUL)], "Pass"),
    # the same moment in two zones: by line
    ([event("A-1", HARMFUL, generated_at="2026-03-02T09:00:00Z"), event("A-1", generated_at=NINE)], "Pass"),
]


@pytest.mark.parametrize(("events", "label"), LATEST)
def test_of_events_for_one_case_the_latest_stands(cases: Path, tmp_path: Path, events: list[Any], label: str) -> None:
    whole = write_events(tmp_path / "run.jsonl", *events)
    parts = [write_events(tmp_path / f"{number}.jsonl", each) for number, each in enumerate(events)]

    for files in ([whole], parts):
        run, remarks = scored(cases, *files, pattern="asthma_1")
        assert labels(run)["A-1"] == label, "in one file or in several"
        assert remarks[0] == "1 event ignored: a later event has the same test_id"


AHEAD = [
    # of two others, by more than a day
    ([EIGHT, NINE, "2062-03-02T10:00:00Z"], "13149 days"),
    # in a year that has no four digits where it is shown
    ([EIGHT, "9999-12-31T23:59:59-01:00"], "2912382 days"),
    # exactly a day is not more
    ([EIGHT, "2026-03-03T08:00:00Z"], None),
    ([EIGHT, "2026-03-03T08:00:00.001Z"], "1 day"),
    # one alone, and one beside others that say nothing, is ahead of none
    (["2062-03-02T10:00:00Z"], None),
    (["2062-03-02T10:00:00Z", None], None),
]


@pytest.mark.parametrize(("times", "days"), AHEAD)
def test_an_event_that_is_dated_far_ahead_of_all_others_is_told(
    cases: Path, tmp_path: Path, times: list[str | None], days: str | None
) -> None:
    path = write_events(tmp_path / "run.jsonl", *(event("A-1", generated_at=time) for time in times))
    told = [remark for remark in scored(cases, path, pattern="asthma_1")[1] if "after the newest of all" in remark]
    assert len(told) == (days is not None)
    for remark in told:
        assert remark.startswith(f"A-1 ({path}, line {len(times)}): generated_at is ")
        assert f"Z, {days} after the newest of all other events. If that is wrong, the event hides later ones" in remark


def test_an_event_for_the_first_of_two_batches_counts_wherever_it_stands(cases: Path, tmp_path: Path) -> None:
    other, own = event("A-2", HARMFUL, batch_id="golden", generated_at=NINE), event("A-2", batch_id="asthma_1")

    for number, order in enumerate([(other, own), (own, other)]):
        run, _ = scored(cases, write_events(tmp_path / f"{number}.jsonl", *order))
        assert labels(run)["A-2"] == "Pass"
    assert labels(scored(cases, write_events(tmp_path / "run.jsonl", event("A-2", batch_id="x")))[0])["A-2"] == "Pass"


def test_an_exact_batch_name_goes_before_another_form_even_if_its_batch_was_not_selected(tmp_path: Path) -> None:
    one_form, other_form = "th\u00e9_1", "the\u0301_1"
    write_batch(tmp_path / "cases", one_form, a_case("A-1"))
    write_batch(tmp_path / "cases", other_form, a_case("A-1"))
    for number, (answered, label) in enumerate([(one_form, "Pass"), (other_form, "Fail")]):
        path = write_events(tmp_path / f"{number}.jsonl", event("A-1", batch_id=answered))
        run, _ = scored(tmp_path / "cases", path, pattern=one_form)
        assert labels(run)["A-1"] == label, "an answer to the other batch answers no selected case"


def test_events_of_one_moment_in_several_files_go_by_file_then_line(cases: Path, tmp_path: Path) -> None:
    first = write_events(tmp_path / "a.jsonl", event("Z"), event("Z"), event("A-1", HARMFUL))
    second = write_events(tmp_path / "b.jsonl", event("A-1"))

    assert labels(scored(cases, first, second, pattern="asthma_1")[0])["A-1"] == "Pass"
    assert labels(scored(cases, second, first, pattern="asthma_1")[0])["A-1"] == "Fail"


def test_the_rules_shown_for_a_replaced_answer_are_those_of_the_later_one(cases: Path, tmp_path: Path) -> None:
    policy = Policy.from_document({"overrides": {"archetype": {"later": {"weights": {"CR": 4}}}}})
    one = write_report(tmp_path / "a.json", answer("A-1"), answer("A-2"))
    other = write_report(tmp_path / "b.json", answer("A-1", archetype="later"))

    run, _ = scored(cases, one, other, pattern="asthma_1", policy=policy, on_duplicate="last")

    assert [case.rules.weights.CR for case in run.cases] == [4, 1]


def test_a_file_that_changes_while_it_is_read_is_refused(cases: Path, tmp_path: Path) -> None:
    for path in (
        write_events(tmp_path / "run.jsonl", event("A-1")),
        write_report(tmp_path / "run.json", answer("A-1")),
    ):
        file = open_outputs(path)
        path.write_text(path.read_text().replace("Wheeze", "Cough"))
        with pytest.raises(ConfigurationError, match="has changed while it was being read; try again"):
            score_files(select(cases, "K07", "asthma_1"), [file], DEFAULT_POLICY, generated_at=AT)


def test_the_rules_shown_for_a_case_are_those_of_the_answer_that_stands(cases: Path, tmp_path: Path) -> None:
    policy = Policy.from_document({"overrides": {"archetype": {"loser": {"weights": {"CR": 4}}}}})
    events = [event("A-1", generated_at=NINE), event("A-1", HARMFUL, generated_at=EIGHT, archetype="loser")]

    run, _ = scored(cases, write_events(tmp_path / "run.jsonl", *events), pattern="asthma_1", policy=policy)

    assert run.cases[0].rules.weights.CR == 1


def test_a_time_that_is_none_is_named_with_file_and_line(cases: Path, tmp_path: Path) -> None:
    path = write_events(tmp_path / "run.jsonl", event("A-2"), event("A-1", generated_at="yesterday"))

    with pytest.raises(ConfigurationError) as caught:
        scored(cases, path)
    assert str(caught.value) == f"{path}: line 2: generated_at is not an RFC 3339 time with a zone"


def test_an_event_of_another_batch_is_not_scored(cases: Path, tmp_path: Path) -> None:
    events = [event("A-2", batch_id="golden"), event("A-1", batch_id="asthma_1")]

    run, remarks = scored(cases, write_events(tmp_path / "run.jsonl", *events), pattern="asthma_1")

    assert labels(run) == {"A-1": "Pass", "A-2": "Fail"}
    assert remarks == [
        "1 output ignored: for a test case that is in the folder but not selected",
        "1 of 2 test cases has no output; it is scored as if its output were empty",
    ]
    assert run.report["missing_test_ids"] == ["A-2"]


def test_every_entry_is_told_to_whoever_shows_progress(cases: Path, tmp_path: Path) -> None:
    bar = NotingBar()
    file = open_outputs(write_events(tmp_path / "run.jsonl", event("A-1"), event("A-1"), event("Z")))

    score_files(select(cases, "K07", "*"), [file], DEFAULT_POLICY, generated_at=AT, bar=bar)

    assert len(bar.told) == file.lines == 3


def test_the_moment_of_a_report_can_be_fixed() -> None:
    assert moment(0) == "1970-01-01T00:00:00.000Z"
    assert moment(1_772_438_400) == AT
    assert moment(None) > AT
