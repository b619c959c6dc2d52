"""Whether an output was made from its own case's narrative: offline, in what is published, and in the stream."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main
from consumer.dead_letter_reasons import Poison
from consumer.files.outputs import open_outputs
from consumer.files.publish_outputs import TargetBatches, plan_events
from consumer.wire.input_event import InputRules, decode
from tests.support.chain import Written

OWN, OTHER = "A girl of eight fell from a swing.", "A man of eighty could not speak."
FEVER = {"signal_generation": {"must_find_signals": ["fever"]}}


def digest(text: str) -> str:
    return "sha256:" + sha256(text.encode()).hexdigest()


def case(test_id: str = "T", narrative: str | None = OWN, **more: Any) -> dict[str, Any]:
    told = {} if narrative is None else {"patient_payload": narrative}
    return {"test_id": test_id, "concern_id": "K", "expectations": FEVER, **told, **more}


def entry(summary: str, narrative: object = None, **more: Any) -> dict[str, Any]:
    read = {} if narrative is None else {"raw_input": narrative}
    return {"test_id": "T", "engine_output": {"summary": summary, **read}, **more}


class Desk:
    """A folder of test cases, files of outputs, and `safe score` over them."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.cases = folder / "cases"
        self.cases.mkdir()
        self.files: list[Path] = []
        self.told = ""

    def batch(self, name: str, *cases: dict[str, Any], index: int | None = None) -> None:
        text = json.dumps({"batch_plan": {"batch_index": index}, "test_cases": cases})
        (self.cases / f"{name}.json").write_text(text)

    def report(self, *entries: dict[str, Any]) -> Path:
        self.files.append(self.folder / f"run{len(self.files)}.json")
        self.files[-1].write_text(json.dumps({"raw_results": entries}))
        return self.files[-1]

    def events(self, *events: dict[str, Any]) -> Path:
        self.files.append(self.folder / f"run{len(self.files)}.jsonl")
        self.files[-1].write_text("".join(json.dumps(event) + "\n" for event in events))
        return self.files[-1]

    def score(self, *options: str, pattern: str = "*") -> dict[str, Any]:
        """The report; {} where the command refuses."""
        outputs = [argument for file in self.files for argument in ("--outputs", str(file))]
        argv = ["score", "-c", "K", "-b", pattern, *outputs, "-t", str(self.cases), "--format", "json", *options]
        code = main(argv)
        printed, self.told = self.capsys.readouterr()
        report: dict[str, Any] = {} if code == 3 else json.loads(printed)
        return report

    def result(self, *options: str, pattern: str = "*") -> tuple[float, bool | None]:
        """CR and input_matches of the only case."""
        (result,) = self.score(*options, pattern=pattern)["results"]
        return result["scores"]["CR"], result["input_matches"]


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, capsys)


# --- one answer -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "read", "matches"),
    [
        (OWN, OWN, True),
        (OWN, f"  {OWN.replace(' ', chr(10))}", True),
        (OWN, OTHER, False),
        (None, OTHER, None),
        (OWN, None, None),
        (OWN, "  ", None),
        (OWN, 7, None),
    ],
)
def test_a_mismatch_is_flagged_and_scored(desk: Desk, told: str | None, read: object, matches: bool | None) -> None:
    desk.batch("b", case(narrative=told))
    desk.report(entry("fever", read))
    report = desk.score()
    assert report["results"][0]["input_matches"] is matches
    assert report["results"][0]["scores"]["CR"] == 1.0
    assert report["input_mismatches"] == (matches is False)
    assert ("another narrative (input mismatch): T" in desk.told) == (matches is False)


def test_a_case_without_an_output_matches_nothing(desk: Desk) -> None:
    desk.batch("b", case(), case("U"))
    desk.report(entry("fever", OWN))
    assert [result["input_matches"] for result in desk.score()["results"]] == [True, None]


def test_digests_stand_for_both_narratives(desk: Desk) -> None:
    desk.batch("b", case(narrative=None, patient_payload_digest=digest(OWN)))
    desk.events({"test_id": "T", "input_digest": digest(OTHER), "output": {"summary": "fever"}})
    assert desk.result() == (1.0, False)


def test_the_narrative_itself_goes_before_the_digest(desk: Desk) -> None:
    desk.batch("b", case())
    desk.events({"test_id": "T", "input_digest": digest(OTHER), "output": {"summary": "fever", "raw_input": OWN}})
    assert desk.result() == (1.0, True)


def test_a_malformed_digest_is_named_with_its_place(desk: Desk) -> None:
    desk.batch("b", case())
    desk.events({"test_id": "T", "output": None}, {"test_id": "T", "input_digest": "md5:0", "output": None})
    assert desk.score() == {}
    assert 'run0.jsonl: line 2: input_digest is not "sha256:" followed by 64' in desk.told


def test_any_holders_narrative_will_do(desk: Desk) -> None:
    desk.batch("a", case())
    desk.batch("b", case(narrative=OTHER))
    desk.report(entry("fever", OTHER))
    assert desk.result() == (1.0, True)


# --- which narrative judges an output ---------------------------------------------------------------------------------

FIVE, SEVEN = "He got morphine 5 mg at noon.", "He got morphine 7 mg at noon."
DOSE = {"event_summary": {"must_contain_phrases": ["morphine", "morphine 5 mg"]}}


def dosed(narrative: str | None, **more: Any) -> dict[str, Any]:
    return case(narrative=narrative, **{"expectations": DOSE, **more})


def judged(desk: Desk, *, pattern: str = "*") -> tuple[bool | None, list[str], list[str]]:
    """Of the only case: input_matches, the kinds of its doubtful hits, and the verdicts of its misses."""
    (result,) = desk.score("--explain", pattern=pattern)["results"]
    kinds = [hit["kind"] for hit in result["doubtful"]]
    return result["input_matches"], kinds, [miss["verdict"] for miss in result["misses"]]


SEVEN_OF_ITS_OWN: tuple[bool, list[str], list[str]] = (True, [], ["term"])
"""The output says 7 mg, and so does the narrative it was made from: it is right, and the term is not."""
SEVEN_FOR_FIVE = ["other_value"], ["output"]


@pytest.mark.parametrize("index", [None, 1, 2, 9])
def test_the_narrative_that_an_output_was_made_from_judges_it(desk: Desk, index: int | None) -> None:
    desk.batch("a", dosed(FIVE), index=1)
    desk.batch("b", dosed(SEVEN), index=2)
    desk.report(entry(SEVEN, SEVEN, batch_index=index))
    assert judged(desk) == SEVEN_OF_ITS_OWN


def test_so_does_the_second_narrative_of_a_file_that_has_a_test_id_twice(desk: Desk) -> None:
    desk.batch("a", dosed(FIVE), dosed(SEVEN))
    desk.report(entry(SEVEN, SEVEN))
    assert judged(desk) == SEVEN_OF_ITS_OWN


def test_so_does_that_of_a_batch_that_is_answered_though_it_is_not_selected(desk: Desk) -> None:
    desk.batch("a", dosed(FIVE), index=1)
    desk.batch("b", dosed(SEVEN), index=2)
    desk.report(entry(SEVEN, SEVEN, batch_index=2))
    assert judged(desk, pattern="a") == SEVEN_OF_ITS_OWN


def test_where_it_is_not_known_the_first_holders_narrative_judges(desk: Desk) -> None:
    desk.batch("a", dosed(FIVE), index=1)
    desk.batch("b", dosed(SEVEN), index=2)
    desk.report(entry(SEVEN))
    assert judged(desk) == (None, *SEVEN_FOR_FIVE)


def test_where_only_its_digest_is_known_no_other_narrative_judges(desk: Desk) -> None:
    desk.batch("a", dosed(FIVE))
    desk.batch("b", dosed(None, patient_payload_digest=digest(SEVEN)))
    desk.report(entry(SEVEN, SEVEN))
    assert judged(desk)[:2] == (True, [])


def test_a_case_of_another_concern_with_the_same_test_id_does_not_judge(desk: Desk) -> None:
    desk.batch("a", dosed(FIVE, concern_id="other"), dosed(SEVEN))
    desk.report(entry(SEVEN))
    assert judged(desk) == (None, [], ["term"])


# --- several answers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("better", "worse"), [(OWN, None), (OWN, OTHER), (None, OTHER)])
def test_the_surer_answer_goes_first_whatever_stands_where(
    desk: Desk, better: str | None, worse: str | None, order: int
) -> None:
    desk.batch("b", case(), index=1)
    desk.report(*[entry("fever", better, batch_index=7), entry("", worse, batch_index=1)][::order])
    assert desk.result("--on-duplicate", "last" if order == 1 else "first")[0] == 1.0
    assert (
        "1 output is passed over, because a different output for the same case is more likely to have come from the "
        "case's own narrative: T "
    ) in desk.told
    assert f"(raw_results[{1 if order == 1 else 0}])" in desk.told


def test_two_answers_of_the_same_standing_are_refused(desk: Desk) -> None:
    desk.batch("b", case())
    desk.report(entry("", OTHER), entry("fever", OWN), entry("", OWN))
    assert desk.score() == {}
    assert "more than one output" in desk.told
    assert desk.result("--on-duplicate", "first") == (1.0, True)
    assert desk.result("--on-duplicate", "last") == (0.0, True)


def test_two_mismatches_do_no_harm_beside_the_right_answer(desk: Desk) -> None:
    desk.batch("b", case())
    desk.report(entry("", OTHER), entry("", OTHER + OTHER), entry("fever", OWN))
    assert desk.result() == (1.0, True)
    assert "more than one output" not in desk.told


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_reports_the_right_answer_counts(desk: Desk, order: int) -> None:
    desk.batch("b", case())
    for each in [entry("fever", OWN), entry("", OTHER)][::order]:
        desk.report(each)
    assert desk.result() == (1.0, True)
    assert "1 output is passed over" in desk.told


def test_of_events_the_latest_counts_and_is_flagged(desk: Desk) -> None:
    desk.batch("b", case())
    first, last = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
    desk.events(
        {"test_id": "T", "generated_at": last, "output": {"summary": "", "raw_input": OTHER}},
        {"test_id": "T", "generated_at": first, "output": {"summary": "fever", "raw_input": OWN}},
    )
    assert desk.result() == (0.0, False)


# --- what is published ------------------------------------------------------------------------------------------------


def test_what_is_published_is_the_surer_answer_with_its_digest(desk: Desk) -> None:
    desk.batch("b", case())
    path = desk.report(entry("", OTHER), entry("fever", OWN))
    plan = plan_events([open_outputs(path)], TargetBatches.of(None, desk.cases))
    (event,) = plan
    assert json.loads(event.value)["input_digest"] == digest(OWN)
    assert OWN not in event.value.decode()
    assert plan.files[0].passed_over == ("T (raw_results[0])",)


def test_what_is_published_comes_back_as_the_same(desk: Desk) -> None:
    desk.batch("b", case())
    (event,) = plan_events([open_outputs(desk.report(entry("fever", OTHER)))], TargetBatches.of(None, desk.cases))
    read = decode(Written("input", 0, 0, None, event.value, ()), InputRules())
    assert read is not None
    assert read.narrative == digest(OTHER)


def test_an_event_with_a_malformed_digest_is_poison() -> None:
    value = json.dumps({"test_id": "T", "batch_id": "b", "input_digest": "x", "output": None}).encode()
    with pytest.raises(Poison) as caught:
        decode(Written("input", 0, 0, None, value, ()), InputRules())
    assert (caught.value.reason, caught.value.detail) == (
        "invalid_event",
        'input_digest is not "sha256:" followed by 64 lowercase hex digits',
    )
