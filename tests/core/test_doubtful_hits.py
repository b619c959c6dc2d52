"""Found terms that are doubtful: tried on planted sentences, on every criterion, and on whatever text there may be."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.diagnosis import real_cases
from safe_core import Expectations, Output, Rules, prepare, score
from safe_core.diagnosis import DOUBTFUL_KINDS, DoubtfulHit, Passage, doubtful_document, doubtful_hits
from tests.core.planted_doubtful import Half, planted_hits, said
from tests.support.growth import grows_as_the_length_does
from tests.support.real_cases import REAL, real_cases_only

PLANTED = tuple(planted_hits())


def in_summary(term: str, summary: str, narrative: str | None = None) -> tuple[DoubtfulHit, ...]:
    return said(Expectations(must_contain_phrases=(term,)), Output(summary=summary), narrative)


# ─── equal values ───

EQUAL = [
    ("38.4 °C", "101.1 °F"),
    ("37", "98.6 °F"),
    ("70 kg", "154 lb"),
    ("5'10\"", "178 cm"),
    ("1 L", "1,000 mL"),
    ("for 18 months", "for 1.5 years"),
    ("for 3/52", "for 3 weeks"),
    ("one month", "four weeks"),
    ("on 12/03/2020", "on 12 March 2020"),
    ("on 12/03/2020", "on 03/12/2020"),
    ("14", "14/15"),
    ("0.4", "40%"),
    ("two thirds", "67%"),
    ("9 mm x 7 mm", "7 x 9 mm"),
    ("at least 90", "over 90"),
    ("three times a day", "8-hourly"),
]
OTHER = [
    ("38.4 °C", "102.1 °F"),
    ("70 kg", "164 lb"),
    ("for 18 months", "for 2.5 years"),
    ("for 3/52", "for 4 weeks"),
    ("one month", "five weeks"),
    ("on 12/03/2020", "on 13 March 2020"),
    ("0.4", "50%"),
    ("9 mm x 7 mm", "8 x 9 mm"),
    ("at least 90", "over 80"),
    ("at least 90", "at most 90"),
]


@pytest.mark.parametrize(("one", "other"), [*EQUAL, *(pair[::-1] for pair in EQUAL)])
def test_an_equal_value_is_no_other_one(one: str, other: str) -> None:
    assert in_summary("fever", f"Seen with fever {one} today.", f"Seen with fever {other} today.") == ()


@pytest.mark.parametrize(("one", "other"), [*OTHER, *(pair[::-1] for pair in OTHER)])
def test_a_value_that_is_not_equal_in_another_unit_is_another_one(one: str, other: str) -> None:
    (hit,) = in_summary("fever", f"Seen with fever {one} today.", f"Seen with fever {other} today.")
    assert hit.kind == "other_value"


# ─── planted sentences ───


def test_at_least_240_sentences_are_planted_and_two_in_five_are_look_alikes() -> None:
    kinds = Counter(hit.kind for hit in PLANTED)
    assert len({(hit.term, hit.text, hit.narrative) for hit in PLANTED}) == len(PLANTED) >= 240
    assert kinds[None] / len(PLANTED) >= 0.4
    assert min(kinds[kind] for kind in DOUBTFUL_KINDS) >= 25
    families = Counter(hit.family for hit in PLANTED)
    assert families["negated"] >= 150
    assert families["inside_word"] >= 40
    assert families["other_value"] >= 50


def test_a_planted_term_is_found() -> None:
    assert [hit for hit in PLANTED if hit.term.lower() not in hit.text.lower()] == []


@pytest.mark.parametrize("half", ["tune", "final"])
def test_planted_sentences_are_told_apart(half: Half) -> None:
    hits = [hit for hit in PLANTED if hit.half == half]
    wrong = [(hit, said_of) for hit in hits if (said_of := hit.kind_said()) != hit.kind]
    assert len(hits) >= 120
    assert 1 - len(wrong) / len(hits) >= 0.97, wrong


# ─── criteria, order, places ───

EVERYWHERE = Output(
    signals=("No fever", "12-hour delay"),
    summary="There was no fever. She waited for a drunken driver.",
    followup_questions=("Was the driver not drunk?", "Is this a default?"),
)


def test_each_criterion_is_asked_of_its_own_fields_in_the_order_of_its_list() -> None:
    expectations = Expectations(
        must_find_signals=("2-hour", "fever", "fever"),
        forbidden_terms=("drunk", "fault"),
        must_contain_phrases=("or", "fever", "driver"),
    )
    assert said(expectations, EVERYWHERE, None) == (
        DoubtfulHit("CR", "2-hour", "inside_word", Passage("signals", 1, 1, 7)),
        DoubtfulHit("CR", "fever", "negated", Passage("signals", 0, 3, 8)),
        DoubtfulHit("CR", "fever", "negated", Passage("signals", 0, 3, 8)),
        DoubtfulHit("AH", "fault", "inside_word", Passage("followup_questions", 1, 12, 17)),
        DoubtfulHit("AC", "or", "inside_word", Passage("summary", None, 32, 34)),
        DoubtfulHit("AC", "fever", "negated", Passage("summary", None, 13, 18)),
    )


def test_a_document_gives_the_place_and_no_text() -> None:
    (hit,) = in_summary("fever", "No fever.")
    assert doubtful_document(hit) == {
        "criterion": "AC",
        "term": "fever",
        "kind": "negated",
        "field": "summary",
        "element": None,
        "start": 3,
        "end": 8,
    }


def test_a_used_term_that_is_denied_still_biases() -> None:
    output = Output(followup_questions=("Was there no negligence?", "Negligence was ruled out."))
    assert not said(Expectations(forbidden_terms=("negligence",)), output, "The negligence was plain.")


def test_a_term_over_two_elements_is_denied_where_it_begins_or_ends() -> None:
    output = Output(signals=("She has no chest", "pain at rest"), summary="Seen twice")
    (hit,) = said(Expectations(must_find_signals=("chest pain",)), output, None)
    assert (hit.kind, hit.passage) == ("negated", Passage("signals", 0, 11, 16))


def test_a_denial_does_not_reach_the_next_element() -> None:
    assert not said(Expectations(must_find_signals=("rash",)), Output(signals=("No fever or", "rash")), None)


def test_places_are_those_of_the_original_text() -> None:
    (hit,) = in_summary("fever", "İİ without FEVER")
    assert (hit.passage.start, hit.passage.end) == (11, 16)


@pytest.mark.parametrize("narrative", ["No fever was seen.", "Fever was denied.", "Was without fever."])
def test_what_the_narrative_denies_too_is_not_doubtful(narrative: str) -> None:
    assert in_summary("fever", "No fever.", "Fever began.")
    assert not in_summary("fever", "No fever.", narrative)


def test_what_the_narrative_denies_in_another_order_is_not_doubtful() -> None:
    assert not in_summary("severe headache", "She denies severe headache.", "No headache that was severe.")


def test_a_doubtful_term_counts_as_found() -> None:
    expectations = prepare(Expectations(must_contain_phrases=("fever",)))
    assert score(expectations, Output(summary="No fever."), Rules()).scores.AC == 1.0


# Readings of real sentences that were false once, in other words and with narratives of their own.
@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("post-surgery", "no infections noted post-surgery"),
        ("post-surgical", "She had no post-surgical infections."),
        ("serious concerns", "The lack of blood flow raised serious concerns."),
        ("nerve palsy", "The notes failed to state the presence of the nerve palsy."),
        ("all pulses", "Normal exam with no cyanosis and all pulses intact"),
        ("fingers", "There was no warmth in the fingers, and the motor exam was not able to be done."),
        ("mother", "The mother denied that the child had been hit."),
    ],
)
def test_a_real_sentence_is_read_as_a_person_reads_it(term: str, text: str) -> None:
    assert not in_summary(term, text)


def test_a_value_far_from_the_term_is_about_something_else() -> None:
    narrative = (
        "A 10-hour delay followed. The urgency was not told to anyone in time, leading to a failure of the 18-hour aim."
    )
    assert not in_summary(
        "the urgency", "A 10-hour delay due to calls that were too late regarding the urgency", narrative
    )


# ─── any text ───

SPOKEN = (
    "no not without denies fever pain rash fracture fractures left right mild 5 five 14:45 2:45 PM 120/80 , . or and "
    "nor but was were ruled out absent unlikely of the 3 hours İ ß ﬁ - if"
)
WORDS = st.sampled_from(SPOKEN.split())
SENTENCES = st.lists(WORDS, max_size=25).map(" ".join)
TEXTS = st.text(max_size=60) | SENTENCES
TERMS = st.lists(st.text(min_size=1, max_size=4).filter(str.strip) | WORDS, max_size=4).map(tuple)


def is_fair(terms: tuple[str, ...]) -> bool:
    return all(term.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in term) for term in terms)


@given(TERMS.filter(is_fair), TEXTS, TEXTS, st.none() | TEXTS)
def test_every_place_is_valid_whatever_the_texts(
    terms: tuple[str, ...], text: str, summary: str, narrative: str | None
) -> None:
    output = Output((text, summary), summary, (text,))
    hits = said(Expectations(terms, terms, terms), output, narrative)
    fields = {"signals": output.signals, "summary": (summary,), "followup_questions": output.followup_questions}
    for hit in hits:
        place = hit.passage
        assert 0 <= place.start <= place.end <= len(fields[place.field][place.element or 0])
        assert hit.kind in DOUBTFUL_KINDS
        assert hit.kind == "inside_word" or hit.criterion != "AH"
        assert narrative is not None or hit.kind != "other_value"


@given(TERMS.filter(is_fair), TEXTS)
def test_a_narrative_as_output_neither_denies_nor_changes_anything(terms: tuple[str, ...], narrative: str) -> None:
    hits = said(Expectations((), (), terms), Output(summary=narrative), narrative)
    assert {hit.kind for hit in hits} <= {"inside_word"}


# a text of one sentence, of many, of one list and of one word
REPEATED = ["no fever and pain, ", "No fever was seen. ", "fever, ", "fever 5 left ", "fever", "no ", "İ fever "]


@pytest.mark.parametrize("piece", REPEATED)
def test_time_does_not_grow_faster_than_the_text(piece: str) -> None:
    terms = ("fever", "pain", "no", "5", "rash", "left", "e")
    expectations = Expectations(terms, (), terms)

    def work(text: str) -> None:
        output = Output((text,), text)
        details = score(prepare(expectations), output, Rules()).details
        doubtful_hits(output, f"rash {text}", details)

    assert grows_as_the_length_does(work, piece)


# ─── real outputs ───


@pytest.mark.real_cases
@real_cases_only[1]
def test_no_found_term_of_a_real_output_is_doubtful() -> None:
    """None of them is denied, inside a word, or there with another value."""
    cases = real_cases(REAL) + real_cases(REAL, REAL / "outputs_I25_report.json")
    assert not [hit for case in cases for hit in said(case.expectations, case.output, case.narrative)]
