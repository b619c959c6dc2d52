"""Missed terms chosen by both answers, and how often terms are found by how their narratives word them."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from consumer.cli.main import main
from consumer.files.outputs import open_all
from consumer.offline.answers import AnswerFilter, Wordings, wordings
from consumer.offline.explanations import counts_by_answer
from consumer.offline.review import Review
from consumer.offline.review_list import Listing
from consumer.offline.scored_run import Explanation
from consumer.offline.triage import TriageRequest
from safe_core import DEFAULT_POLICY, Expectations, Output, OutputField
from safe_core.diagnosis import NARRATIVE_SAYS, OUTPUT_SAYS, diagnose
from tests.support.case_files import a_case, answer, write_batch, write_report
from tests.support.scored_runs import Sample, scored_run

NARRATIVE = "A dry cough and a fever since Monday. Her potassium was 5.6. She denies vomiting."
# term → what the output says of it, what the narrative says
TERMS = {
    "a dry cough": ("absent", "supported"),
    "potassium of 5.6": ("contradicted", "supported"),
    "persistent vomiting": ("absent", "contradicts"),
    "a broken rib": ("absent", "silent"),
}
OUTPUT = {"signals": [], "summary": "Potassium was 3.6.", "followup_questions": ["Who is to blame?"]}


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Two cases with four misses and a forbidden term that was used, and one without a miss."""
    first = a_case("T1", ["a dry cough", "potassium of 5.6"], ["blame"], ["Potassium"], patient_payload=NARRATIVE)
    second = a_case("T2", ["persistent vomiting", "a broken rib"], (), ["Potassium"], patient_payload=NARRATIVE)
    third = a_case("T3", ["Potassium"], ["blame"], ["Potassium"], patient_payload=NARRATIVE)
    write_batch(tmp_path / "cases", "b1", first, second, third)
    run = write_report(tmp_path / "run.json", *(answer(name, OUTPUT) for name in ("T1", "T2", "T3")))
    return ["-i", str(run), "-t", str(tmp_path / "cases")]


CHOICES: list[tuple[list[str], list[str]]] = [
    ([], list(TERMS)),
    (["--output-says", "contradicted"], ["potassium of 5.6"]),
    (["--narrative-says", "silent", "--narrative-says", "contradicts"], ["persistent vomiting", "a broken rib"]),
    (["--output-says", "absent", "--narrative-says", "supported"], ["a dry cough"]),
    (["--output-says", "elsewhere"], []),
]


@pytest.mark.parametrize(("options", "terms"), CHOICES)
def test_explain_shows_the_terms_with_the_answers_that_are_chosen(
    options: list[str], terms: list[str], files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "--all", *files, *options, "-f", "json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    misses = [miss for result in document["results"] for miss in result["misses"]]
    assert [miss["term"] for miss in misses] == terms
    assert [(miss["output_says"], miss["narrative_says"]) for miss in misses] == [TERMS[term] for term in terms]
    assert document["misses"] == sum(document["miss_output_says"].values()) == len(terms)
    assert sum(document["miss_narrative_says"].values()) == len(terms)
    assert ("no missed term with the answers" in printed.err) is (not terms)
    if options:
        assert all(result["misses"] for result in document["results"]), "other cases are left out"
        assert not any(result["violations"] for result in document["results"]), "and so is what is not missed"


@pytest.mark.parametrize(("options", "terms"), CHOICES)
def test_triage_proposes_for_the_terms_with_the_answers_that_are_chosen(
    options: list[str], terms: list[str], files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["triage", *files, *options, "-f", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    proposals = {each["term"]: each for each in document["proposals"]}
    assert document["cases"] == 3
    assert sorted(proposals) == sorted([*terms, *([] if options else ["blame"])])
    for term, (output, narrative) in TERMS.items():
        if term in proposals:
            assert (proposals[term]["output_says"], proposals[term]["narrative_says"]) == (output, narrative)


def test_review_lists_the_cases_with_the_answers_that_are_chosen_and_shows_these_terms(files: list[str]) -> None:
    review = Review(DEFAULT_POLICY, TriageRequest(Path(files[3]), "*"), open_all([Path(files[1])]))

    def terms(query: str) -> list[tuple[str, str]]:
        listing = Listing.of_query(parse_qsl(query))
        shown = [review.cases[number] for number in listing.numbers(review.cases)]
        return [(case.test_id, item.term) for case in shown for _, item in case.items_with(listing.answers)]

    chosen = "narrative_says=supported&narrative_says=silent"
    assert terms(chosen) == [], "the answers are not known yet"
    for case in review.cases:
        assert case.explained
    assert terms(chosen) == [("T1", "a dry cough"), ("T1", "potassium of 5.6"), ("T2", "a broken rib")]
    assert terms("output_says=elsewhere") == []
    assert terms("output_says=loved") == terms(""), "what is unknown chooses nothing"


def test_triage_says_which_cases_are_wrong(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triage", *files]) == 0
    printed = capsys.readouterr().out
    wrong = printed[printed.index("Test cases that are wrong: terms to correct (2)") :]
    assert '"persistent vomiting"' in wrong
    assert '"a broken rib"' in wrong


def test_an_unknown_answer_is_refused(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *files, "--output-says", "silent"]) == 3
    error = " ".join(capsys.readouterr().err.split())
    assert "choose from" in error
    assert main(["explain", "--source", "t/0/1", "--output-says", "said", "-t", files[-1]]) == 3
    assert "--source explains every term of one record: leave --output-says out" in capsys.readouterr().err


def test_help_names_every_answer(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("explain", "triage", "review"):
        main([command, "--help"])
        told = " ".join(capsys.readouterr().out.replace("│", " ").split())
        assert f"the output says this; can be repeated. One of {', '.join(OUTPUT_SAYS)}." in told
        assert f"the narrative says this; can be repeated. One of {', '.join(NARRATIVE_SAYS)}." in told


def test_what_was_not_asked_for_is_counted_apart() -> None:
    """A placeholder says nothing of a term, so it is not absent."""
    misses = diagnose(
        Expectations((), (), ("a rib",)), Output(("b",), "x"), None, frozenset[OutputField](("summary",))
    ).misses
    assert [miss.verdict for miss in misses] == ["not_asked_for"]
    assert not any(any(counts.values()) for counts in counts_by_answer(misses).values())
    assert not AnswerFilter(output_says=["absent"]).has(misses[0])
    assert AnswerFilter().has(misses[0])


def test_explain_says_that_the_outputs_answer_none_of_a_concern(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    other = a_case("T9", ["a dry cough"], ["blame"], ["Potassium"], patient_payload=NARRATIVE, concern_id="OTHER")
    write_batch(Path(files[3]), "b2", other)
    assert main(["explain", "-c", "OTHER", *files, "--output-says", "said"]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "the outputs answer none of the chosen cases" in told
    assert "choose another --concern" in told


def test_a_filter_that_chooses_nothing_changes_nothing() -> None:
    run = scored_run([Sample("T-1", Expectations(("a",), (), ()), Output(("b",), ""))])
    assert AnswerFilter().narrowed(run) is run


# --- how often each wording is found ----------------------------------------------------------------------------------


def counted(signals: tuple[str, ...], output: Output, narrative: str | None) -> Wordings:
    sample = Sample("T-1", Expectations(signals, (), ()), output)
    explanation = Explanation(diagnose(sample.expectations, output, narrative), output, narrative)
    return wordings([(scored_run([sample]).cases[0], explanation)])


def test_terms_are_counted_by_how_the_narrative_words_them() -> None:
    output = Output(("dry cough", "potassium of 5.6"), "")
    signals = ("dry cough", "a fever since Monday", "potassium of 5.6", "fever from Monday on", "a broken rib")
    found = counted(signals, output, NARRATIVE)
    assert found == (1, 2, 1, 2), "what the narrative does not say is worded in no way"
    untold = Output(("dry cough", "potassium of 5.6", "a broken rib"), "")
    assert counted(signals, untold, NARRATIVE) == found, "whether it is found or not"
    assert counted(signals, output, None) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((3, 40, 21, 24), "3 of 40 terms that the narrative words otherwise were found, 21 of 24 verbatim ones."),
        ((3, 9, 21, 24), None),
        ((3, 40, 9, 9), None),
    ],
)
def test_from_ten_terms_of_each_it_is_said_how_many_were_found(counts: Any, said: str | None) -> None:
    told = Wordings(*counts).in_words
    assert told is None if said is None else (told or "").startswith(said)


def test_the_advice_is_given_only_where_verbatim_terms_are_found_more_often() -> None:
    advice = "To have such terms found more often, write them in the narrative's words."
    assert (Wordings(3, 40, 21, 24).in_words or "").endswith(advice)
    assert advice not in (Wordings(20, 20, 21, 24).in_words or "")
