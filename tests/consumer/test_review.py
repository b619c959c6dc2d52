"""`safe review` without a browser: who may see the page, what is kept, what is refused, what is written."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import aiohttp
import pytest

from consumer.cli.main import main
from consumer.errors import ConfigurationError
from consumer.files.outputs import open_all
from consumer.offline import review_explaining
from consumer.offline.decisions import Decisions, OutdatedError, TermDecision, decide_term
from consumer.offline.review import ChangedError, RefusedError, Review
from consumer.offline.review_list import Listing
from consumer.offline.review_server import served
from consumer.offline.triage import TriageRequest
from consumer.offline.trust import trust
from consumer.offline.whole_files import write_whole
from safe_core import DEFAULT_POLICY
from safe_core.narrative_digests import digest_of_narrative
from tests.support.case_files import a_case, answer, write_batch, write_report

NARRATIVE = "A girl arrived at the clinic at 18:00 on Sunday. The left hand was warm, and she could move it."
OUTPUT = {
    "signals": ["arrived at the clinic at 18:00 on Sunday"],
    "summary": "Her left hand is warm.",
    "followup_questions": [],
}
AT = "2026-01-02T03:04:05.678Z"


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    first = a_case("T1", ["arrived Sunday 18:00"], ["blame"], ["the left hand was warm"], patient_payload=NARRATIVE)
    write_batch(tmp_path / "cases", "b1", first, a_case("T2", patient_payload=NARRATIVE))
    write_batch(tmp_path / "cases", "golden", first)
    blaming = {**OUTPUT, "followup_questions": ["Who is to blame?"]}
    return write_report(tmp_path / "run.json", answer("T1", blaming))


@pytest.fixture
def review(outputs: Path) -> Review:
    request = TriageRequest(outputs.parent / "cases", "b1")
    return Review(DEFAULT_POLICY, request, open_all([outputs]))


def decide(review: Review, item: int, choice: Any, **more: Any) -> None:
    review.decide(0, item, choice, by="ann", at=more.pop("at", AT), seen=more.pop("seen", ""), **more)


def term_of(review: Review, text: str) -> int:
    return next(number for number, item in enumerate(review.cases[0].items) if item.term == text)


# --- decisions --------------------------------------------------------------------------------------------------------


def test_what_is_decided_is_kept_with_who_when_and_why(review: Review) -> None:
    decide(review, term_of(review, "arrived Sunday 18:00"), "accepted", comment="said so")
    decide(review, term_of(review, "the left hand was warm"), "paraphrase")
    decide(review, term_of(review, "blame"), "rejected")
    review.decide_case(0, "unsafe", by="ann", at=AT, seen="", comment="risky")
    again = Decisions.read(review.folder).of_case("T1", digest_of_narrative(NARRATIVE))
    told = {term: decision.in_words() for (_, term), decision in again.terms.items()}
    assert told == {
        "arrived Sunday 18:00": "accepted by ann, 2026-01-02: said so",
        "the left hand was warm": 'accepted as a paraphrase ("Her left hand is warm") by ann, 2026-01-02',
        "blame": "rejected by ann, 2026-01-02",
    }
    assert review.cases[0].decided == 3
    assert [tuple(row) for row in review.agreement] == [("Pass", 0, 0), ("Review", 0, 0), ("Fail", 0, 1)]
    assert review.agreeing == (1, 1)


def test_a_comment_alone_is_kept_and_leaves_what_was_decided(review: Review) -> None:
    decide(review, 0, "commented", comment="hm")
    [kept] = Decisions.read(review.folder).terms.values()
    assert kept.in_words() == "commented by ann, 2026-01-02: hm"
    assert review.cases[0].decided == 0, "a comment decides nothing"
    later, last = "2026-01-02T03:04:06.000Z", "2026-01-02T03:04:07.000Z"
    decide(review, 0, "accepted", comment="hm", at=later, seen=AT)
    review.decide(0, 0, "commented", by="bob", at=last, seen=later, comment="sure?")
    [kept] = Decisions.read(review.folder).terms.values()
    assert kept.replacement == ("arrived at the clinic at 18:00 on Sunday",)
    assert kept.in_words() == "accepted by ann, 2026-01-02: sure? (bob)"
    assert review.to_apply == 1
    decide(review, 1, "commented", comment="gone again", at=last)
    decide(review, 1, "commented", comment="", at=last, seen=last)
    assert len(Decisions.read(review.folder).terms) == 1


def test_what_was_decided_can_be_withdrawn_unless_somebody_decided_meanwhile(review: Review) -> None:
    decide(review, 0, "rejected")
    review.decide_case(0, "safe", by="ann", at=AT, seen="")
    earlier = "2025-01-01T00:00:00.000Z"
    with pytest.raises(OutdatedError):
        review.withdraw(0, 0, seen=earlier)
    with pytest.raises(OutdatedError):
        review.withdraw_case(0, seen=earlier)
    review.withdraw(0, 0, seen=AT)
    review.withdraw_case(0, seen=AT)
    kept = Decisions.read(review.folder)
    assert not kept.terms
    assert not kept.cases
    decide(review, 0, "accepted")


def test_an_edit_says_to_what(review: Review) -> None:
    decide(review, 0, "edited", replacement=["arrived", 'at "18:00"'])
    decision = review.cases[0].items[0].decision
    assert decision is not None
    assert decision.in_words() == 'edited to "arrived", "at "18:00"" by ann, 2026-01-02'
    told = review.cases[0].decision_in_words(review.cases[0].items[0])
    assert told == f'{decision.in_words()}; not in the narrative: "at "18:00""', "a person may, but is told"


def test_each_term_is_shown_once_with_what_can_be_done_about_it(tmp_path: Path) -> None:
    """Listed twice, used and doubtful at once, or to be looked at: none offers what cannot be done."""
    twice, verbatim = "arrived Sunday 18:00", "arrived at the clinic at 18:00 on Sunday"
    case = a_case("T1", [twice, twice, verbatim], ["use"], ["warm hand, left"], patient_payload=NARRATIVE)
    write_batch(tmp_path / "cases", "b1", case)
    output = {
        "signals": ["arrived at the clinic at 18:00, on Sunday"],
        "summary": "",
        "followup_questions": ["Because?"],
    }
    outputs = write_report(tmp_path / "run.json", answer("T1", output))
    review = Review(DEFAULT_POLICY, TriageRequest(tmp_path / "cases", "*"), open_all([outputs]))
    told = {
        item.term: (item.heading, "".join(sorted(each[0] for each in item.choices))) for item in review.cases[0].items
    }
    assert told == {
        twice: ("term", "cpr"),
        verbatim: ("term", "cepr"),
        "use": ("used", "acr"),
        "warm hand, left": ("prompt", "acer"),
    }
    assert len(review.cases[0].items) == 4
    for choice, why in (("accepted", "there is no proposal to accept"), ("edited", "cannot be edited here")):
        with pytest.raises(RefusedError, match=why):
            decide(review, term_of(review, twice), choice, replacement=["x"])


def test_values_that_the_narrative_lacks_are_marked_in_the_output_also_within_other_marks(tmp_path: Path) -> None:
    write_batch(tmp_path / "cases", "b1", a_case("T1", ["arrived Sunday 18:00"], (), [], patient_payload=NARRATIVE))
    said = ["aged 75 years, arrived at the clinic at 18:00 on Sunday", "Her temperature was 39.4 degrees"]
    outputs = write_report(tmp_path / "run.json", answer("T1", {**OUTPUT, "signals": said}))
    [case] = Review(DEFAULT_POLICY, TriageRequest(tmp_path / "cases", "*"), open_all([outputs])).cases
    [[first], [second]] = case.texts.signals
    marks = [(part.text.strip(), part.mark) for part in (*first, *second) if part.mark]
    assert marks == [
        ("aged", "pointed"),
        ("75 years", "unsupported"),
        (", arrived at the clinic at 18:00 on Sunday", "pointed"),
        ("39.4 degrees", "unsupported"),
    ]


def test_what_is_wrong_with_the_case_may_be_accepted_and_only_accepted_wordings_have_paraphrases(
    review: Review, outputs: Path
) -> None:
    case = a_case("T1", ["a broken rib", "hand cold"], (), ["the left hand was warm"], patient_payload=NARRATIVE)
    for name in ("b1", "golden"):
        write_batch(outputs.parent / "cases", name, case)
    review.reload()
    told = {
        item.term: ((item.miss and item.miss.remedy), "".join(sorted(each[0] for each in item.choices)))
        for item in review.cases[0].items
    }
    assert told["a broken rib"] == ("correct_case", "acer")
    assert told["the left hand was warm"] == ("accept_wording", "cepr")
    assert "p" not in told["hand cold"][1]
    with pytest.raises(RefusedError, match="no paraphrase to accept"):
        decide(review, term_of(review, "a broken rib"), "paraphrase")


def test_what_is_said_in_two_passages_is_no_paraphrase(review: Review, outputs: Path) -> None:
    """Its nearest passage alone lacks facts of the term: accepted, it would excuse outputs that lack them too."""
    story = "A girl had fever for three days. The left hand was warm."
    case = a_case("T1", ["warm left hand, fever for three days"], (), ["left hand warm"], patient_payload=story)
    for name in ("b1", "golden"):
        write_batch(outputs.parent / "cases", name, case)
    said = {"signals": ["The hand, left, is warm", "feverish for 3 days"], "summary": "The left hand is warm."}
    write_report(outputs, answer("T1", {**OUTPUT, **said}))
    review = Review(DEFAULT_POLICY, TriageRequest(review.folder, "b1"), open_all([outputs]))
    paraphrases = {item.term: item.paraphrase for item in review.cases[0].items}
    assert paraphrases == {"warm left hand, fever for three days": "", "left hand warm": "The left hand is warm"}
    with pytest.raises(RefusedError, match="does not find one passage of the output that says all of this"):
        decide(review, term_of(review, "warm left hand, fever for three days"), "paraphrase")
    assert not Decisions.read(review.folder).terms


# --- what SAFE's verdicts are worth -----------------------------------------------------------------------------------


def test_decisions_are_compared_with_what_safe_had_said(review: Review) -> None:
    assert review.trust.in_words == ""
    decide(review, term_of(review, "arrived Sunday 18:00"), "accepted")
    decide(review, term_of(review, "the left hand was warm"), "rejected")
    decide(review, term_of(review, "blame"), "rejected")  # a forbidden term is no miss
    assert review.trust.in_words == "Of 2 misses that you decided, SAFE had said the same in 1."
    assert [tuple(each) for each in review.trust.classes] == [("term", 1, 2)]
    [other] = review.trust.others
    assert (other.number, other.verdict, other.decision.term) == (0, "term", "the left hand was warm")
    review.apply(AT)
    assert review.trust.in_words.startswith("Of 2 misses"), "the term is another one now; what was decided is kept"


@pytest.mark.parametrize(
    ("choice", "verdict", "is_same"),
    [
        ("accepted", "prompt", True),
        ("accepted", "output", True),
        ("edited", "term", True),
        ("paraphrase", "term", True),
        ("rejected", "term", False),
        ("edited", "prompt", False),
        ("paraphrase", "output", False),
        ("edited", "look", None),  # left to the person
        ("rejected", "look", None),
        ("rejected", None, None),  # of a term that was found: no miss
        ("commented", "term", None),
    ],
)
def test_what_is_the_same(choice: Any, verdict: Any, is_same: bool | None) -> None:
    decision = TermDecision("T1", "CR", "a fall", None, choice, "ann", AT, verdict=verdict)
    found = trust([decision], [(("T1", None), {})])
    decided = [] if is_same is None else [(verdict, int(is_same), 1)]
    assert [tuple(each) for each in found.classes] == decided
    assert [each.decision for each in found.others] == [decision] * (is_same is False)
    assert found.left == (verdict == "look")


def test_a_decision_from_before_verdicts_were_kept_is_compared_with_the_verdict_of_now() -> None:
    decision = TermDecision("T1", "CR", "a fall", None, "accepted", "ann", AT)
    case = ("T1", None)
    assert trust([decision], [(case, {("CR", "a fall"): "prompt"})]).in_words == (
        "Of 1 miss that you decided, SAFE had said the same in 1."
    )
    assert trust([decision], [(("T2", None), {("CR", "a fall"): "prompt"})]).in_words == "", "another case"


def test_cases_are_in_the_order_in_which_people_count(tmp_path: Path) -> None:
    for number in (10, 2):
        cases = [a_case(f"B{number}-{each}", patient_payload=NARRATIVE) for each in (11, 3)]
        write_batch(tmp_path / "cases", f"batch_{number}", *cases)
    outputs = write_report(tmp_path / "run.json", answer("B2-3"))
    review = Review(DEFAULT_POLICY, TriageRequest(tmp_path / "cases", "*"), open_all([outputs]))
    assert [case.test_id for case in review.cases] == ["B2-3", "B2-11", "B10-3", "B10-11"]


def test_what_a_killed_writer_left_behind_is_removed(review: Review, outputs: Path) -> None:
    decide(review, 0, "rejected")
    left = review.folder / ".safe.decisions.json.0a1b2c3d"
    left.write_text("{", encoding="utf-8")
    again = Review(DEFAULT_POLICY, TriageRequest(outputs.parent / "cases", "b1"), open_all([outputs]))
    assert not left.exists()
    assert again.cases[0].decided == 1


def test_a_decision_belongs_to_the_narrative_it_was_made_over(review: Review, outputs: Path) -> None:
    decide(review, 0, "rejected")
    batch = outputs.parent / "cases" / "b1.json"
    batch.write_text(batch.read_text(encoding="utf-8").replace("A girl", "A boy"), encoding="utf-8")
    review.reload()
    assert review.cases[0].decided == 0


def test_nobody_overwrites_a_decision_unseen(review: Review) -> None:
    decide(review, 0, "rejected")
    with pytest.raises(OutdatedError):
        decide(review, 0, "accepted", at="2026-01-02T03:04:06.000Z")
    decide(review, 0, "accepted", at="2026-01-02T03:04:06.000Z", seen=AT)
    assert [each.choice for each in Decisions.read(review.folder).terms.values()] == ["accepted"]


def test_two_programs_lose_nothing_of_each_other(review: Review, outputs: Path) -> None:
    other = Review(DEFAULT_POLICY, TriageRequest(outputs.parent / "cases", "b1"), open_all([outputs]))
    decide(review, 0, "rejected")
    decide(other, 1, "rejected")
    assert len(Decisions.read(review.folder).terms) == 2


@pytest.mark.parametrize(
    ("choice", "more", "message"),
    [
        ("edited", {"replacement": [" ", ""]}, "write at least one term"),
        ("edited", {"replacement": ["\ud800"]}, "the terms cannot be used"),
    ],
)
def test_what_cannot_be_kept_is_refused(review: Review, choice: Any, more: Any, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        decide(review, 0, choice, **more)
    assert not (review.folder / "safe.decisions.json").exists()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ([], "the file is not an object"),
        ({"terms": []}, "safe_decisions is missing"),
        ({"safe_decisions": "1"}, "safe_decisions is not a whole number"),
        ({"safe_decisions": 1, "terms": [{"test_id": "T1"}]}, r"terms\[0\]\.criterion is missing"),
        ({"safe_decisions": 1, "terms": [{"test_id": 7}]}, r"terms\[0\]\.test_id is not a string"),
        (
            {"safe_decisions": 1, "terms": [{"test_id": "T1", "criterion": "AB"}]},
            r"terms\[0\]\.criterion is not one of CR, AH, AC",
        ),
        (
            {"safe_decisions": 1, "cases": [{"test_id": "T1", "narrative": None, "verdict": "ok"}]},
            r"cases\[0\]\.verdict is not one of the words that it may be",
        ),
    ],
)
def test_the_field_that_is_wrong_is_named(review: Review, wrong: Any, told: str) -> None:
    (review.folder / "safe.decisions.json").write_text(json.dumps(wrong), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=f"is not a file of decisions: {told}; correct it"):
        review.refresh()


def test_a_file_that_holds_something_else_is_named(review: Review) -> None:
    (review.folder / "safe.decisions.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="is not a file of decisions"):
        review.refresh()
    (review.folder / "safe.decisions.json").write_text('{"safe_decisions": 7}', encoding="utf-8")
    with pytest.raises(ConfigurationError, match="another version"):
        review.refresh()


# --- batch files ------------------------------------------------------------------------------------------------------


def test_apply_changes_every_file_that_holds_the_case_and_no_other_byte(review: Review) -> None:
    before = {path.name: path.read_bytes() for path in review.folder.iterdir()}
    decide(review, term_of(review, "arrived Sunday 18:00"), "accepted")
    assert review.to_apply == 1
    assert review.apply(AT) == ["b1.json", "golden.json"]
    for name, raw in before.items():
        after = raw.replace(b"arrived Sunday 18:00", b"arrived at the clinic at 18:00 on Sunday")
        assert (review.folder / name).read_bytes() == after
    assert review.to_apply == 0
    [decision] = Decisions.read(review.folder).terms.values()
    assert decision.applied_at == AT


def test_apply_refuses_where_a_file_changed_meanwhile(review: Review) -> None:
    decide(review, term_of(review, "arrived Sunday 18:00"), "accepted")
    golden = review.folder / "golden.json"
    golden.write_bytes(golden.read_bytes() + b"\n")
    before = (review.folder / "b1.json").read_bytes()
    with pytest.raises(ChangedError, match=r"golden\.json changed since"):
        review.apply(AT)
    assert (review.folder / "b1.json").read_bytes() == before


def test_apply_refuses_where_a_file_is_gone(review: Review) -> None:
    decide(review, term_of(review, "arrived Sunday 18:00"), "accepted")
    (review.folder / "golden.json").unlink()
    before = (review.folder / "b1.json").read_bytes()
    with pytest.raises(ChangedError, match=r"golden\.json changed since this page was opened, or no longer exists"):
        review.apply(AT)
    assert (review.folder / "b1.json").read_bytes() == before


def test_a_preview_shows_what_apply_changes_and_nothing_else_is_applied(review: Review) -> None:
    assert review.preview == {}
    decide(review, term_of(review, "arrived Sunday 18:00"), "accepted")
    decide(review, term_of(review, "blame"), "rejected")
    decide(review, term_of(review, "the left hand was warm"), "paraphrase")
    replaced = ("T1", "CR", "arrived Sunday 18:00", ("arrived at the clinic at 18:00 on Sunday",), False)
    worded = ("T1", "AC", "the left hand was warm", ("Her left hand is warm",), True)
    for file in ("b1.json", "golden.json"):
        assert sorted(map(tuple, review.preview[file])) == sorted([replaced, worded])
    seen = review.seen
    review.withdraw(0, term_of(review, "the left hand was warm"), seen=AT)
    with pytest.raises(ChangedError, match="the changes are others now"):
        review.apply(AT, seen)
    review.apply(AT, review.seen)
    assert review.preview == {}


def test_a_paraphrase_of_a_build_that_kept_no_verdict_is_decided_but_not_applied(review: Review, outputs: Path) -> None:
    decide(review, term_of(review, "the left hand was warm"), "paraphrase")
    path = review.folder / "safe.decisions.json"
    kept = json.loads(path.read_text())
    assert kept["terms"][0].pop("verdict")
    path.write_text(json.dumps(kept))
    again = Review(DEFAULT_POLICY, TriageRequest(outputs.parent / "cases", "b1"), open_all([outputs]))
    assert (again.to_apply, again.preview) == (0, {})
    assert again.cases[0].items[term_of(again, "the left hand was warm")].is_decided


def test_undo_gives_back_every_byte_and_the_accepted_change(review: Review) -> None:
    def contents() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in review.folder.glob("*[a-z0-9].json")}

    assert review.apply(AT) == [], "nothing is accepted"
    with pytest.raises(RefusedError, match="nothing was applied"):
        review.undo()
    decide(review, term_of(review, "arrived Sunday 18:00"), "accepted")
    before = contents()
    review.apply(AT)
    assert contents() != before
    assert review.undoable == ["b1.json", "golden.json"]
    assert review.undo() == ["b1.json", "golden.json"]
    assert contents() == before
    assert (review.to_apply, review.undoable) == (1, [])
    [decision] = Decisions.read(review.folder).terms.values()
    assert (decision.choice, decision.applied_at) == ("accepted", None)


def test_undo_refuses_where_a_file_changed_after_apply(review: Review) -> None:
    decide(review, term_of(review, "arrived Sunday 18:00"), "accepted")
    review.apply(AT)
    golden, other = review.folder / "golden.json", review.folder / "b1.json"
    golden.write_bytes(golden.read_bytes() + b"\n")
    before = other.read_bytes()
    with pytest.raises(ChangedError, match=r"golden\.json changed since"):
        review.undo()
    assert other.read_bytes() == before


def test_apply_that_fails_leaves_every_byte(review: Review, monkeypatch: pytest.MonkeyPatch) -> None:
    decide(review, term_of(review, "arrived Sunday 18:00"), "accepted")
    before = {path.name: path.read_bytes() for path in review.folder.iterdir()}
    for failing in ("golden.json", "safe.decisions.json"):
        with monkeypatch.context() as patched:
            fail_to_write(patched, failing)
            with pytest.raises(ConfigurationError, match="no space"):
                review.apply(AT)
        assert {path.name: path.read_bytes() for path in review.folder.iterdir()} == before
        assert (review.undoable, review.to_apply) == ([], 1)
    assert review.apply(AT) == ["b1.json", "golden.json"]


def test_what_a_failed_apply_could_not_restore_can_be_undone_and_so_can_a_failed_undo(
    review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide(review, term_of(review, "arrived Sunday 18:00"), "accepted")
    before = {path.name: path.read_bytes() for path in review.folder.iterdir()}
    with monkeypatch.context() as patched:
        fail_to_write(patched, "golden.json", and_all_later=True)
        with pytest.raises(ConfigurationError, match=r"no space\. b1\.json could not be restored"):
            review.apply(AT)
    with monkeypatch.context() as patched:
        fail_to_write(patched, "golden.json")
        with pytest.raises(ConfigurationError, match="no space"):
            review.undo()
    assert review.undo() == ["b1.json", "golden.json"]
    assert {path.name: path.read_bytes() for path in review.folder.iterdir()} == before
    assert (review.undoable, review.to_apply) == ([], 1)


def fail_to_write(monkeypatch: pytest.MonkeyPatch, name: str, *, and_all_later: bool = False) -> None:
    failed = list[Path]()

    def write(path: Path, content: str | bytes) -> None:
        if path.name == name or (failed and and_all_later):
            failed.append(path)
            raise ConfigurationError("no space")
        write_whole(path, content)

    for module in ("review", "decisions"):
        monkeypatch.setattr(f"consumer.offline.{module}.write_whole", write)


def test_a_term_that_is_one_of_those_that_replace_it_is_replaced_once(review: Review) -> None:
    number = term_of(review, "arrived Sunday 18:00")
    decide(review, number, "edited", replacement=["arrived Sunday 18:00", "a girl"])
    review.apply(AT)
    assert review.to_apply == 0


def test_what_was_accepted_is_applied_although_this_output_has_the_term(review: Review, outputs: Path) -> None:
    decide(review, term_of(review, "arrived Sunday 18:00"), "accepted")
    write_report(outputs, answer("T1", {**OUTPUT, "signals": ["arrived Sunday 18:00"]}))
    request = TriageRequest(review.folder, "b1")
    assert Review(DEFAULT_POLICY, request, open_all([outputs])).to_apply == 1


# --- many cases -------------------------------------------------------------------------------------------------------


@pytest.fixture
def many(tmp_path: Path) -> Review:
    """Four cases, of which T3 alone misses nothing; T2 and T4 have no output."""
    cases = [a_case(f"T{at}", [f"arrived Sunday {at}:00"], [], [], patient_payload=NARRATIVE) for at in range(1, 5)]
    write_batch(tmp_path / "many", "b1", *cases)
    said = {**OUTPUT, "signals": ["arrived Sunday 3:00"]}
    outputs = write_report(tmp_path / "many.json", answer("T1", OUTPUT), answer("T3", said))
    return Review(DEFAULT_POLICY, TriageRequest(tmp_path / "many", "*"), open_all([outputs]))


def listed(review: Review, query: str) -> list[str]:
    return [review.cases[number].test_id for number in Listing.of_query(parse_qsl(query)).numbers(review.cases)]


def test_nothing_is_read_or_explained_before_the_page_opens(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        pytest.fail("a text was read")

    monkeypatch.setattr("consumer.offline.scoring.beside_scores", never)
    monkeypatch.setattr("consumer.offline.scoring.unsupported_values", never)
    monkeypatch.setattr("consumer.offline.review_cases.explain", never)
    review = Review(DEFAULT_POLICY, TriageRequest(outputs.parent / "cases", "b1"), open_all([outputs]))
    assert review.labels == {"Pass": 0, "Review": 0, "Fail": 2}
    assert review.explained == 0


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["T1", "T2", "T4", "T3"]),  # those that fail come first
        ("order=files", ["T1", "T2", "T3", "T4"]),
        ("label=Pass", ["T3"]),
        ("label=loved", ["T1", "T2", "T4", "T3"]),
        ("search=t2", ["T2"]),
        ("search=+SUNDAY+4", ["T4"]),
        ("search=nothing", []),
        ("undecided=1", ["T1"]),
    ],
)
def test_the_list_can_be_ordered_filtered_and_searched(many: Review, query: str, expected: list[str]) -> None:
    for case in many.cases:
        assert case.explained
    assert listed(many, query) == expected
    again = Listing.of_query(parse_qsl(Listing.of_query(parse_qsl(query)).query[1:]))
    assert again == Listing.of_query(parse_qsl(query)), "the address says it all"


def test_totals_count_what_is_decided(many: Review) -> None:
    everything = Listing()
    assert everything.totals(many.cases) == (0, 0, 0), "none is explained yet"
    decide(many, 0, "rejected")
    many.decide_case(0, "unsafe", by="ann", at=AT, seen="")
    assert everything.totals(many.cases) == (1, 1, 1)
    assert not everything.is_open(many.cases[0])


def test_what_apply_leaves_as_it_was_is_not_explained_again(many: Review) -> None:
    decide(many, 0, "edited", replacement=["arrived at the clinic"])
    assert many.cases[2].explained
    many.apply(AT)
    assert [case.is_explained for case in many.cases] == [False, False, True, False]


@pytest.mark.parametrize("processes", ["two", "killed", "not allowed", "one of two"])
async def test_cases_are_explained_while_the_page_is_open(
    many: Review, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    def no_pool(_niceness: int) -> None:
        return None

    def killed_pool(_niceness: int) -> tuple[ThreadPoolExecutor, int]:
        pool = ThreadPoolExecutor(1)
        monkeypatch.setattr(pool, "submit", lambda *_: broken())
        return pool, 1

    def half_pool(_niceness: int) -> tuple[ThreadPoolExecutor, int]:
        """A pool whose second process cannot be started."""
        pool = ThreadPoolExecutor(1)
        submit, calls = pool.submit, count()

        def second_fails(*args: Any) -> "Future[Any]":
            if next(calls) == 1:
                raise BlockingIOError("Resource temporarily unavailable")
            return submit(*args)

        monkeypatch.setattr(pool, "submit", second_fails)
        return pool, 1

    def broken() -> "Future[Any]":
        future = Future[Any]()
        future.set_exception(BrokenProcessPool())
        return future

    monkeypatch.setattr(review_explaining, "_MANY", 2)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    if processes != "two":
        pool: Any = {"killed": killed_pool, "one of two": half_pool}.get(processes, no_pool)
        monkeypatch.setattr(review_explaining, "new_processes", pool)
    async with served(many, by="ann") as address, asyncio.timeout(60):
        while True:
            async with client.get(f"{address}explained") as response:
                if (await response.json()) == {"explained": 4, "cases": 4}:
                    break
            await asyncio.sleep(0.02)
        async with client.get(address) as response:
            assert "0 of 1 term decided" in await response.text()


async def test_n_leads_to_the_next_listed_case_with_an_undecided_term(
    many: Review, client: aiohttp.ClientSession
) -> None:
    async with served(many, by="ann") as address:
        for path, number in (("undecided", 0), ("case/0/undecided", None), ("undecided?label=Pass", None)):
            async with client.get(address + path) as response:
                assert await response.json() == {"number": number}


def test_decisions_are_never_read_as_a_batch_file(
    review: Review, outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decide(review, 0, "rejected")
    folder = str(review.folder)
    main(["score", "-c", "K07", "-b", "*", "-i", str(outputs), "-t", folder, "-f", "json"])
    named = [each["name"] for each in json.loads(capsys.readouterr().out)["inputs"]]
    assert "safe.decisions.json" not in named
    assert main(["mutate", "-t", folder, "-b", "safe*"]) == 3
    main(["lint", folder, "--format", "json"])
    files = {Path(each["file"]).name for each in json.loads(capsys.readouterr().out)["findings"]}
    assert files <= {"b1.json", "golden.json"}


# --- where decisions are shown ----------------------------------------------------------------------------------------


def test_explain_triage_lint_and_the_page_show_decisions_and_no_score_moves(
    review: Review, outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["-i", str(outputs), "-t", str(review.folder)]
    score = ["score", "-c", "K07", "-b", "b1", *common, "-f", "json"]
    main(score)
    before = json.loads(capsys.readouterr().out)["results"]
    decide(review, term_of(review, "arrived Sunday 18:00"), "rejected", comment="keep it")
    main(score)
    assert json.loads(capsys.readouterr().out)["results"] == before
    main(["explain", "--all", *common])
    assert re.search("decided +rejected by ann, 2026-01-02: keep it\n", capsys.readouterr().out)
    main(["triage", *common, "-b", "b1", "-f", "json"])
    told = {each["term"]: each["decided"] for each in json.loads(capsys.readouterr().out)["proposals"]}
    assert told["arrived Sunday 18:00"] == "rejected by ann, 2026-01-02"
    main(["lint", str(review.folder)])
    assert "decided: rejected by ann, 2026-01-02" in capsys.readouterr().out
    review.decide_case(0, "unsafe", by="bob", at=AT, seen="", comment="risky")
    for explain in (["--explain"], []):
        main(["score", "-c", "K07", "-b", "b1", *common, *explain, "-o", str(tmp_path / "page.html"), "--force"])
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert "rejected by ann, 2026-01-02" in page
        assert "unsafe by bob, 2026-01-02" in page
        assert "keep it" not in page, "a comment may quote the output"
        assert "risky" not in page


@pytest.mark.parametrize("shows_text", [False, True])
def test_each_format_of_explain_has_the_decisions_and_comments_only_with_text(
    shows_text: bool, review: Review, outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decide(review, term_of(review, "arrived Sunday 18:00"), "rejected", comment="keep it")
    review.decide_case(0, "unsafe", by="bob", at=AT, seen="", comment="risky")
    text = ["--include-text"] if shows_text else []
    told = {}
    for name in ("json", "csv", "markdown"):
        main(["explain", "--all", "-i", str(outputs), "-t", str(review.folder), "-f", name, *text])
        told[name] = capsys.readouterr().out
        assert ("keep it" in told[name]) is shows_text
        assert ("risky" in told[name]) is (shows_text and name != "csv"), "csv has a row for each term, none for cases"
    decisions = next(each["decisions"] for each in json.loads(told["json"])["results"] if each["test_id"] == "T1")
    assert decisions["verdict"] == {"verdict": "unsafe", "by": "bob", "at": AT} | (
        {"comment": "risky"} if shows_text else {}
    )
    [rejected] = decisions["terms"]
    assert (rejected["criterion"], rejected["term"], rejected["choice"]) == ("CR", "arrived Sunday 18:00", "rejected")
    [row] = [line for line in told["csv"].splitlines() if "rejected by ann, 2026-01-02" in line]
    assert "arrived Sunday 18:00" in row
    assert "judged `unsafe by bob, 2026-01-02" in told["markdown"]
    assert "- decided: `rejected by ann, 2026-01-02" in told["markdown"]


@pytest.mark.parametrize("content", ["[]", '{"safe_decisions": 7}'])
def test_where_decisions_cannot_be_used_commands_say_so_and_go_on(
    content: str, review: Review, outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["-i", str(outputs), "-t", str(review.folder)]
    commands = (
        ["lint", str(review.folder), "--fail-on", "never"],
        ["triage", *common, "-b", "b1"],
        ["explain", "--all", *common],
        ["score", "-c", "K07", "-b", "b1", *common, "--fail-on", "never", "--force", "-o", str(tmp_path / "page.html")],
    )
    shows_none = ["score", "-c", "K07", "-b", "b1", *common, "--fail-on", "never", "-f", "json"]
    told = []
    for text in (None, content):
        if text is not None:
            (review.folder / "safe.decisions.json").write_text(text, encoding="utf-8")
        for command in commands:
            assert main(command) == 0, command
            captured = capsys.readouterr()
            told.append(captured.out)
            assert captured.err.count("safe: decisions are not shown: ") == (text is not None), command
    assert main(shows_none) == 0
    assert "decisions" not in capsys.readouterr().err
    assert [re.sub("20..-.*", "", text) for text in told[:4]] == [re.sub("20..-.*", "", text) for text in told[4:]]
    assert main(["review", *common]) == 3
    assert "away" in capsys.readouterr().err


# --- the server -------------------------------------------------------------------------------------------------------


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def status(answer: Any) -> int:
    async with answer as response:
        return int(response.status)


async def test_other_hosts_origins_sites_and_tokens_are_refused(review: Review, client: aiohttp.ClientSession) -> None:
    async with served(review, by="ann") as address:
        assert await status(client.get(address)) == 200
        port = address.split(":")[2].split("/")[0]
        for headers in (
            {"Host": "evil.example"},
            {"Host": f"evil.example:{port}"},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ):
            assert await status(client.get(address, headers=headers)) == 403
        for path in ("/", "/wrong/", "/wrong/case/0", "//"):
            assert await status(client.get(f"http://127.0.0.1:{port}{path}")) == 403
        assert await status(client.get(f"{address}case/99")) == 404
        async with client.get(address) as response:
            policy = response.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert response.headers["Cache-Control"] == "no-store"
            assert response.headers["Referrer-Policy"] == "no-referrer"


async def test_a_case_with_nothing_to_check_says_so(outputs: Path, client: aiohttp.ClientSession) -> None:
    cases = outputs.parent / "cases"
    write_batch(cases, "b1", a_case("T1", [], [], []))
    review = Review(DEFAULT_POLICY, TriageRequest(cases, "b1"), open_all([outputs]))
    async with served(review, by="ann") as address, client.get(f"{address}case/0") as response:
        assert "Nothing to decide on: there is nothing to check." in await response.text()


async def test_every_answer_has_the_headers_of_the_page(review: Review, client: aiohttp.ClientSession) -> None:
    async with served(review, by="ann") as address:
        for request, expected in (
            (client.get(f"{address}nowhere"), 404),
            (client.get(f"{address}apply"), 405),
            (client.post(f"{address}apply", data=b"x" * 300_000, headers={"Content-Type": "application/json"}), 413),
            (client.get(address, headers={"Host": "evil.example"}), 403),
        ):
            async with request as response:
                assert response.status == expected
                assert response.headers["X-Content-Type-Options"] == "nosniff"
                assert response.headers["Cache-Control"] == "no-store"


async def test_a_request_without_a_host_is_refused(review: Review, caplog: pytest.LogCaptureFixture) -> None:
    async with served(review, by="ann") as address:
        port, token = address.split(":")[2].split("/")[:2]
        for first in (f"GET /{token}/ HTTP/1.0", f"GET /{token}/ HTTP/1.1"):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
            writer.write(f"{first}\r\nConnection: close\r\n\r\n".encode())
            answered = await reader.readline()
            assert answered.split()[1] in {b"400", b"403"}
            writer.close()
    assert not caplog.records


async def test_a_folder_that_is_gone_is_named(review: Review, client: aiohttp.ClientSession) -> None:
    sent = {"item": 0, "choice": "rejected", "seen": "", "test_id": "T1", "term": review.cases[0].items[0].term}
    async with served(review, by="ann") as address:
        seen = review.seen
        shutil.rmtree(review.folder)
        for path, content in (("case/0/term", sent), ("apply", {"seen": seen})):
            async with client.post(address + path, json=content) as response:
                assert response.status == 400
                assert "cases" in (await response.json())["problem"]


async def test_a_decision_and_a_verdict_are_withdrawn(review: Review, client: aiohttp.ClientSession) -> None:
    term = {"item": 0, "choice": "rejected", "seen": "", "test_id": "T1", "term": review.cases[0].items[0].term}
    verdict = {"verdict": "safe", "seen": "", "test_id": "T1"}
    async with served(review, by="ann") as address:
        for path, sent, withdrawn in (
            ("term", term, {"choice": "withdrawn"}),
            ("verdict", verdict, {"verdict": "withdrawn"}),
        ):
            async with client.post(f"{address}case/0/{path}", json=sent) as response:
                seen = (await response.json())["seen"]
            assert seen
            async with client.post(f"{address}case/0/{path}", json={**sent, **withdrawn, "seen": seen}) as response:
                said = await response.json()
                assert (said["seen"], said["words"]) == ("", "")
    assert not Decisions.read(review.folder).terms


async def test_only_whole_decisions_as_json_are_taken(review: Review, client: aiohttp.ClientSession) -> None:
    good = {"item": 0, "choice": "rejected", "seen": "", "test_id": "T1", "term": review.cases[0].items[0].term}
    async with served(review, by="ann") as address:
        place = f"{address}case/0/term"
        assert await status(client.post(place, data=good)) == 400
        for bad in (
            {**good, "choice": "loved"},
            {**good, "item": 99},
            {**good, "term": "another"},
            {**good, "test_id": "T2"},
            {**good, "comment": "x" * 10_001},
            {**good, "by": "somebody else"},
        ):
            assert await status(client.post(place, json=bad)) == 400, bad
        assert await status(client.post(place, json=good)) == 200
        assert await status(client.post(place, json=good)) == 409
        verdict = {"verdict": "safe", "seen": "", "test_id": "T1"}
        assert await status(client.post(f"{address}case/0/verdict", json=verdict)) == 200
        assert await status(client.post(f"{address}case/0/verdict", json=verdict)) == 409
    assert len(Decisions.read(review.folder).terms) == 1


async def test_texts_are_shown_as_they_are_and_never_run(tmp_path: Path, client: aiohttp.ClientSession) -> None:
    hostile = "<script>alert(1)</script> \"quoted\" & 'more'"
    write_batch(tmp_path / "cases", "b1", a_case("T1", [hostile], patient_payload=hostile))
    outputs = write_report(tmp_path / "run.json", answer("T1", {**OUTPUT, "summary": hostile[:20]}))
    review = Review(DEFAULT_POLICY, TriageRequest(tmp_path / "cases", "*"), open_all([outputs]))
    async with served(review, by="<b>ann</b>") as address:
        for path in ("", "case/0"):
            async with client.get(address + path) as response:
                assert "<script>alert" not in await response.text()


def test_the_command_serves_until_it_is_stopped(outputs: Path) -> None:
    command = [sys.executable, "-m", "safe_scorer", "review", "-i", str(outputs), "-t", str(outputs.parent / "cases")]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address) as page:  # noqa: S310 - the address was just looked at
            assert b"SAFE review" in page.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_a_port_that_is_taken_is_named(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import socket  # noqa: PLC0415

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        options = ["-i", str(outputs), "-t", str(outputs.parent / "cases"), "--port", port]
        assert main(["review", *options]) == 3
    assert f"cannot listen on --port {port}" in capsys.readouterr().err


def test_a_crash_while_writing_leaves_the_last_decisions(review: Review, monkeypatch: pytest.MonkeyPatch) -> None:
    decide(review, 0, "rejected")
    before = (review.folder / "safe.decisions.json").read_bytes()

    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", crash)
    decision = TermDecision("T1", "CR", "x", None, "rejected", "ann", AT)
    with pytest.raises(KeyboardInterrupt):
        decide_term(review.folder, decision, "")
    assert (review.folder / "safe.decisions.json").read_bytes() == before
