"""A diagnosis: one miss for each missing term, places that lie in the texts, and the document of a report."""

from collections import Counter
from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_core import Expectations, Output, Rules, prepare, score
from safe_core.diagnosis import (
    KINDS,
    NARRATIVE_SAYS,
    OUTPUT_SAYS,
    REMEDIES,
    VERDICTS,
    Diagnosis,
    Evidence,
    Miss,
    Passage,
    diagnose,
    miss_document,
)
from safe_core.diagnosis.answers import answer
from safe_core.diagnosis.languages import is_read
from safe_core.diagnosis.output_texts import READ_BY
from safe_core.diagnosis.reading import read
from safe_core.lint_rules import longer_word

MOST_QUOTED = 160


def expectations_of(criterion: Literal["CR", "AC"], term: str) -> Expectations:
    return Expectations((term,)) if criterion == "CR" else Expectations((), (), (term,))


def only_miss(criterion: Literal["CR", "AC"], term: str, output: Output, narrative: str | None = None) -> Miss:
    (miss,) = diagnose(expectations_of(criterion, term), output, narrative).misses
    assert (miss.criterion, miss.term) == (criterion, term)
    return miss


def text_at(place: Passage | Evidence, output: Output, narrative: str | None = None) -> str:
    """Give the whole text in which a place lies."""
    if place.field is None:
        assert narrative is not None
        return narrative
    if place.field == "summary":
        assert place.element is None
        return output.summary
    assert place.element is not None
    texts = output.signals if place.field == "signals" else output.followup_questions
    return texts[place.element]


# ─── narrative, occurrences, document ───


@pytest.mark.parametrize(
    ("narrative", "stands"),
    [
        (None, "no_narrative"),
        ("Her hand was PINK but Pulseless on arrival.", "yes"),  # case does not matter
        ("her hand was pink, but pulseless", "no"),  # punctuation does: it is the scorer's own rule
        ("", "no"),  # a narrative that is there and empty
        ("   ", "no"),
    ],
)
def test_whether_a_term_is_in_the_narrative_is_said_by_the_literal_rule(narrative: str | None, stands: str) -> None:
    assert only_miss("CR", " pink but pulseless ", Output(("cold hand",)), narrative).in_narrative == stands


@pytest.mark.parametrize(
    ("term", "signals", "inside"),
    [
        ("or", ("seen for review",), True),  # within "for"
        ("or", ("for the OR",), False),  # within "for", and alone
        ("or", ("taken to the OR",), False),
        ("pulse", ("pulseless hand",), True),
        ("pulse", ("pulse-less hand",), False),
        ("3 hours", ("after 13 hours",), True),
        ("3 hours", ("after 3 hours",), False),
    ],
)
def test_an_occurrence_says_whether_it_sits_inside_a_longer_word(
    term: str, signals: tuple[str, ...], inside: bool
) -> None:
    (occurrence,) = diagnose(Expectations((term,)), Output(signals), None).occurrences
    assert occurrence.inside_word is inside
    place = occurrence.passage
    assert text_at(place, Output(signals))[place.start : place.end].lower() == term


def test_an_occurrence_over_two_elements_starts_in_the_first_and_ends_with_it() -> None:
    output = Output(("a pink", "pulseless hand"), "")
    (occurrence,) = diagnose(Expectations(("pink pulseless",)), output, None).occurrences
    assert occurrence.passage == Passage("signals", 0, 2, 6)


def test_a_forbidden_term_is_shown_in_the_question_that_uses_it() -> None:
    output = Output((), "", ("What happened?", "Was it negligence?"))
    (occurrence,) = diagnose(Expectations(forbidden_terms=("Negligence", "fault")), output, None).occurrences
    assert (occurrence.criterion, occurrence.term) == ("AH", "Negligence")
    assert occurrence.passage == Passage("followup_questions", 1, 7, 17)


@pytest.mark.parametrize("term", ["前臂骨折", "38.5", "臂"])
def test_a_term_between_letters_of_an_unspaced_script_is_no_part_of_a_longer_word(term: str) -> None:
    output = Output((), "患者右侧前臂骨折入院。体温38.5度。", ())
    (found,) = diagnose(Expectations((term,)), output, None).occurrences
    assert not found.inside_word
    assert longer_word(term, output.summary) is None


FIELDS = [
    "criterion", "term", "kind", "in_narrative", "field", "element", "start", "end", "similarity",
    "verdict", "also_in", "missing_words", "in_other_words", "output_says", "narrative_says", "verbatim",
    "narrative_has_it_too", "share", "remedy", "row", "evidence",
]  # fmt: skip


def test_the_document_of_a_miss_has_the_old_fields_in_their_order_and_the_new_ones_after_them() -> None:
    output = Output(("seen at noon", "delay due to theatre availability"), "She was seen.")
    miss = only_miss("CR", "the delay was due to theatre availability", output, "A delay due to theatre availability.")
    document = miss_document(miss)
    assert list(document) == FIELDS
    assert document | {"similarity": 0, "evidence": []} == {
        "criterion": "CR",
        "term": "the delay was due to theatre availability",
        "kind": "connectives",
        "in_narrative": "no",
        "field": "signals",
        "element": 1,
        "start": 0,
        "end": 33,
        "similarity": 0,
        "verdict": "term",
        "also_in": [],
        "missing_words": [],
        "in_other_words": False,
        "output_says": "said",
        "narrative_says": "supported",
        "verbatim": False,
        "narrative_has_it_too": False,
        "share": 1000,
        "remedy": "accept_wording",
        "row": "said",
        "evidence": [],
    }
    assert {"output", "narrative"} == {each["side"] for each in document["evidence"]}
    for each in document["evidence"]:
        assert {"side", "field", "element", "start", "end"} <= set(each)


def test_the_document_of_a_miss_without_passage_says_null() -> None:
    miss = only_miss("CR", "pink pulseless hand", Output())
    document = miss_document(miss)
    assert (miss.kind, miss.passage, miss.similarity, miss.output_says, miss.share) == ("absent", None, 0, "absent", 0)
    assert [document[name] for name in ("field", "element", "start", "end")] == [None] * 4


def test_a_term_listed_twice_is_missed_twice() -> None:
    expectations = Expectations(("cold hand", "cold hand"), (), ("cold hand",))
    misses = diagnose(expectations, Output((), "seen"), None).misses
    assert [(miss.criterion, miss.term) for miss in misses] == [("CR", "cold hand")] * 2 + [("AC", "cold hand")]


def test_nothing_is_asked_of_a_field_that_the_model_was_not_asked_for() -> None:
    expectations = Expectations(("dry cough",), (), ("dry cough",))
    unasked: tuple[Literal["summary"], ...] = ("summary",)
    whole, summary = diagnose(expectations, Output(("wheeze",)), "A dry cough.", unasked).misses
    assert (whole.criterion, whole.verdict) == ("CR", "prompt")
    assert (summary.criterion, summary.verdict, summary.remedy) == ("AC", "not_asked_for", "none")


def test_a_passage_cannot_end_before_it_starts_nor_lie_in_an_element_of_the_summary() -> None:
    with pytest.raises(ValueError, match="ends before"):
        Passage("summary", None, 3, 2)
    with pytest.raises(ValueError, match="must be None"):
        Passage("summary", 0, 0, 2)


# ─── whatever text there may be ───

# What clinical text is made of, so that chance meets every rule, and what no rule expects.
_WORDS_OF_RULES = """
left right bilateral no not denied without until suspected possible signs of consistent with developing confirmed
Saturday Sunday May 08:30 20:30 8 pm am 3 13 2.5 III II grade stage mg mcg hours hour-long minutes day 2 °C 120/80
fracture fractured fractures wrist the at was in hand, pulseless (AIN) palsy 'OK' sign - – ’ “ ” . ; é İ ΑΣ ß 😀
[doctor] [patient] any fever ? yes yeah no , cancelled did n't didn't mother history of if ½ three a1c six . seven
lisinopril losartan 10 mg daily over and or but because :
"""
_PIECES = (*_WORDS_OF_RULES.split(), "\n", "\t", "\u00a0", "\u200b", "e\u0301", "\ufb01")
_clinical = st.lists(st.sampled_from(_PIECES), max_size=14).map(" ".join)
_any_text = st.one_of(_clinical, st.text(st.characters(), max_size=40))  # lone surrogates too
_terms = st.lists(st.one_of(_clinical, st.text(max_size=20)).filter(str.strip), max_size=4).map(tuple)
_expectations = st.builds(Expectations, _terms, _terms, _terms)
_texts = st.lists(_any_text, max_size=5).map(tuple)
_outputs = st.builds(Output, _texts, _any_text, _texts)
_narratives = st.one_of(st.none(), _any_text)


@given(text=_any_text)
def test_every_fact_lies_in_the_text_and_reading_twice_gives_the_same(text: str) -> None:
    reading = read(text)
    assert reading == read(text)
    for clause in reading.clauses:
        assert clause.facts
        for fact in clause.facts:
            assert 0 <= clause.start <= fact.start < fact.end <= clause.end <= len(text)
            assert fact.key
            assert fact.weight >= 0
        assert [fact.start for fact in clause.facts] == sorted(fact.start for fact in clause.facts)
    assert [clause.sentence for clause in reading.clauses] == sorted(clause.sentence for clause in reading.clauses)


@given(term=_any_text, texts=_texts)
def test_every_answer_is_one_of_five_and_quotes_its_texts(term: str, texts: tuple[str, ...]) -> None:
    found = answer(term, texts)
    assert found.says in set(OUTPUT_SAYS) - {"elsewhere"}
    assert 0 <= found.share <= 1000
    for place in (found.place, found.against):
        assert place is None or 0 <= place.start < place.end <= len(texts[place.text])
    assert (found.against is not None) == (found.says in {"contradicted", "both"})
    assert found.says not in {"said", "both", "part"} or found.place is not None


@given(expectations=_expectations, output=_outputs, narrative=_narratives)
def test_every_place_lies_in_its_text(expectations: Expectations, output: Output, narrative: str | None) -> None:
    diagnosis = diagnose(expectations, output, narrative)
    for place in _places(diagnosis):
        text = text_at(place, output, narrative)
        assert 0 <= place.start < place.end <= len(text)
    for miss in diagnosis.misses:
        for each in miss.evidence:
            assert each.end - each.start <= MOST_QUOTED
            assert (each.field is None) == (each.side == "narrative")


def _places(diagnosis: Diagnosis) -> list[Passage | Evidence]:
    found: list[Passage | Evidence] = [occurrence.passage for occurrence in diagnosis.occurrences]
    for miss in diagnosis.misses:
        found += [*([miss.passage] if miss.passage else []), *miss.also_in, *miss.evidence]
    return found


@given(expectations=_expectations, output=_outputs, narrative=_narratives)
def test_the_missing_terms_of_the_scorer_have_one_miss_each_and_no_others_have_one(
    expectations: Expectations, output: Output, narrative: str | None
) -> None:
    details = score(prepare(expectations), output, Rules()).details
    diagnosis = diagnose(expectations, output, narrative)
    missing = [("CR", term) for term in details.cr_missing] + [("AC", term) for term in details.ac_missing]
    assert [(miss.criterion, miss.term) for miss in diagnosis.misses] == missing
    found = [("CR", term) for term in details.cr_found] + [("AH", term) for term in details.ah_violations]
    found += [("AC", term) for term in details.ac_found]
    assert Counter((each.criterion, each.term) for each in diagnosis.occurrences) == Counter(found)


@given(expectations=_expectations, output=_outputs, narrative=_narratives)
def test_every_miss_says_what_it_may_say(expectations: Expectations, output: Output, narrative: str | None) -> None:
    for miss in diagnose(expectations, output, narrative).misses:
        assert miss.kind in KINDS
        assert miss.output_says in OUTPUT_SAYS
        assert miss.narrative_says in NARRATIVE_SAYS
        assert (miss.verdict in VERDICTS, miss.remedy in REMEDIES) == (True, True)
        assert 0 <= miss.similarity <= (100 if miss.passage else 0)
        assert 0 <= miss.share <= 1000
        stands = narrative is not None and miss.term.lower().strip() in narrative.lower().strip()
        assert miss.in_narrative == ("no_narrative" if narrative is None else "yes" if stands else "no")
        assert (miss.narrative_says == "unknown") == (not (narrative or "").strip() or not is_read(narrative or ""))
        assert not miss.verbatim or stands
        assert not miss.narrative_has_it_too or miss.output_says == "contradicted"
        assert (miss.kind == "other_field") == (miss.output_says == "elsewhere")
        assert not miss.also_in or {each.field for each in miss.also_in}.isdisjoint(READ_BY[miss.criterion])


@given(expectations=_expectations, output=_outputs, narrative=_narratives)
def test_the_same_input_gives_the_same_diagnosis(
    expectations: Expectations, output: Output, narrative: str | None
) -> None:
    assert diagnose(expectations, output, narrative) == diagnose(expectations, output, narrative)


@given(expectations=_expectations, output=_outputs, narrative=_narratives)
def test_a_miss_does_not_depend_on_the_other_terms(
    expectations: Expectations, output: Output, narrative: str | None
) -> None:
    alone: list[Miss] = []
    for term in expectations.must_find_signals:
        alone += diagnose(expectations_of("CR", term), output, narrative).misses
    for term in expectations.must_contain_phrases:
        alone += diagnose(expectations_of("AC", term), output, narrative).misses
    assert list(diagnose(expectations, output, narrative).misses) == alone


@given(expectations=_expectations, output=_outputs, narrative=_narratives)
def test_what_the_output_says_does_not_depend_on_the_narrative(
    expectations: Expectations, output: Output, narrative: str | None
) -> None:
    told = diagnose(expectations, output, narrative).misses
    alone = diagnose(expectations, output, None).misses
    assert [(miss.output_says, miss.share, miss.passage) for miss in told] == [
        (miss.output_says, miss.share, miss.passage) for miss in alone
    ]


_SIGNS = st.text("+-/=?!.,:;*#<>%°~_^|()[]'\"… –—0123456789½²😀🚑\u200b\u0301İ", max_size=12)


@given(term=_SIGNS.filter(str.strip), cut=st.integers(0, 4), before=_any_text, after=_any_text)
def test_a_term_without_words_is_answered(term: str, cut: int, before: str, after: str) -> None:
    nearly = term[:cut] + term[cut + 1 :]
    texts = (f"{before} {nearly} {after}", f"{before}{nearly}{after}", nearly)
    output = Output(texts, " ".join(texts), texts)
    for miss in diagnose(Expectations((term,), (), (term,)), output, None).misses:
        assert miss.passage is None or text_at(miss.passage, output)[miss.passage.start : miss.passage.end]


_WORDS = ("pink", "pulseless", "hand", "swollen", "elbow", "fever", "rash", "cough", "bruise", "burn", "knee", "wound")
_MARKS = (", ", " - ", " – ", "  ", "\u00a0", " (", ") ", '" ', " \u2018", "\u2019 ")


@given(
    words=st.lists(st.sampled_from(_WORDS), min_size=2, max_size=6, unique=True),
    marks=st.lists(st.sampled_from(_MARKS), min_size=5, max_size=5),
    criterion=st.sampled_from(["CR", "AC"]),
)
def test_a_term_that_is_there_but_for_punctuation_is_said_and_differs_in_form(
    words: list[str], marks: list[str], criterion: Literal["CR", "AC"]
) -> None:
    passage = words[0] + "".join(mark + word for mark, word in zip(marks, words[1:], strict=False))
    output = Output(("The story was told.",), f"Seen there. {passage}. And home again.")
    if " ".join(words) in output.summary:
        return
    miss = only_miss(criterion, " ".join(words), output)
    assert (miss.output_says, miss.kind, miss.share) == ("said", "form", 1000)
    assert miss.passage is not None
    assert passage in output.summary[miss.passage.start : miss.passage.end]


def test_a_signal_more_does_not_take_away_what_was_said() -> None:
    output = Output(("pain of the left knee",), "He was seen.")
    more = replace(output, signals=(*output.signals, "no fever", "dry cough"))
    assert only_miss("CR", "left knee pain", more) == only_miss("CR", "left knee pain", output)


def test_a_term_without_a_fact_of_its_own_is_supported_where_the_narrative_has_it_word_for_word() -> None:
    [miss] = diagnose(Expectations(("cancelled",)), Output(summary="It went ahead."), "It was cancelled.").misses
    assert (miss.narrative_says, miss.verdict) == ("supported", "prompt")


def test_a_taper_that_has_the_value_of_the_term_does_not_contradict_it() -> None:
    output = Output(summary="Apixaban was given at 10 mg twice daily for a week, then 5 mg twice daily.")
    [miss] = diagnose(Expectations(("apixaban 5 mg twice a day",)), output, None).misses
    assert miss.output_says == "said"


def test_both_sides_are_bilateral_and_one_side_is_not() -> None:
    outputs = ("Wheezing over the right and the left lung.", "Wheezing over the right lung.")
    found = [diagnose(Expectations(("bilateral wheeze",)), Output(summary=each), None).misses[0] for each in outputs]
    assert [miss.output_says for miss in found] == ["part", "contradicted"]
