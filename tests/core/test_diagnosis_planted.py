"""The diagnosis, tried on planted alterations, on their look-alikes, and on whatever text there may be."""

from collections import Counter
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_core import Expectations, Output, Rules, prepare, score
from safe_core.diagnosis import KINDS, AbsentWord, Diagnosis, Miss, Passage, diagnose, doubtful_hits, miss_document
from safe_core.lint_rules import longer_word
from tests.core.planted import (
    FRAMES,
    PART,
    PLACES,
    Lost,
    Sort,
    expectations_of,
    field_text,
    in_bay,
    look_alikes,
    planted,
    stands_in,
)

PLANTED = tuple(planted())
LOOK_ALIKES = tuple(look_alikes())
ALARMS = {"value", "polarity"}
SORTS: tuple[Sort, ...] = get_args(Sort)

# sort of alteration → the types that its expected words may be given; negations have no type of their own
TYPES_OF_SORT: dict[Sort, set[str]] = {
    "time": {"time"},
    "day": {"day"},
    "grade": {"grade"},
    "side": {"side"},
    "certainty": {"certainty"},
}


def only_miss(criterion: str, term: str, output: Output) -> Miss:
    """Diagnose one term, which has to be missing."""
    assert criterion in {"CR", "AC"}
    expectations = expectations_of("CR" if criterion == "CR" else "AC", term)
    (miss,) = diagnose(expectations, output, None).misses
    assert (miss.criterion, miss.term) == (criterion, term)
    return miss


def text_at(passage: Passage, output: Output) -> str:
    """Give the whole text in which a passage lies."""
    if passage.field == "summary":
        assert passage.element is None
        return output.summary
    assert passage.element is not None
    texts = output.signals if passage.field == "signals" else output.followup_questions
    assert 0 <= passage.element < len(texts)
    return texts[passage.element]


def shown(passage: Passage | None, output: Output) -> str:
    """Give what a reader would be shown of the output."""
    return text_at(passage, output)[passage.start : passage.end] if passage else "nothing"


# ─── the data themselves ───


def test_at_least_240_alterations_are_planted_and_25_of_each_sort() -> None:
    counted = Counter(case.sort for case in PLANTED)
    assert len(PLANTED) >= 240
    assert set(counted) == set(SORTS) == set(FRAMES)
    assert min(counted.values()) >= 25


def test_at_least_120_look_alikes_stand_beside_them() -> None:
    assert len(LOOK_ALIKES) >= 120


def test_every_case_has_a_name_of_its_own() -> None:
    names = [case.name for case in PLANTED] + [case.name for case in LOOK_ALIKES]
    assert len(set(names)) == len(names)


def test_a_planted_output_holds_the_altered_passage_and_the_expected_value_nowhere() -> None:
    for case in PLANTED:
        text = field_text(case.criterion, case.output)
        assert case.passage in text, case.name
        assert case.term.lower() not in text.lower(), case.name
        if case.kind == "value":
            assert not stands_in(case.expected, text), case.name
        if case.sort == "unit":
            assert not stands_in(case.expected.removesuffix("s"), text), case.name


# ─── planted alterations ───


@pytest.mark.parametrize("sort", SORTS)
def test_planted_alterations_are_recognised_wherever_they_stand(sort: Sort) -> None:
    cases = [case for shift in range(PLACES) for case in planted(shift=shift) if case.sort == sort]
    failures = []
    for case in cases:
        miss = only_miss(case.criterion, case.term, case.output)
        if miss.kind != case.kind:
            failures.append(f"{case.name}: {miss.kind}, of {case.term!r} in {shown(miss.passage, case.output)!r}")
    recall = 1 - len(failures) / len(cases)
    print(f"{sort}: recall {recall:.3f} of {len(cases)}", *failures, sep="\n")
    assert recall >= 0.98, "\n".join(failures)


def test_the_passage_of_a_planted_alteration_is_the_altered_one() -> None:
    for case in PLANTED:
        miss = only_miss(case.criterion, case.term, case.output)
        assert miss.passage is not None, case.name
        text = text_at(miss.passage, case.output)
        assert case.passage in text, case.name
        at = text.index(case.passage)
        assert miss.passage.start < at + len(case.passage), case.name
        assert miss.passage.end > at, case.name
        assert 50 <= miss.similarity <= 100, case.name


@pytest.mark.parametrize("sort", [sort for sort in SORTS if sort not in {"negation", "certainty"}])
def test_the_passage_holds_the_other_value(sort: Sort) -> None:
    failures = []
    cases = [case for case in PLANTED if case.sort == sort]
    for case in cases:
        miss = only_miss(case.criterion, case.term, case.output)
        if miss.kind == "value" and case.altered not in shown(miss.passage, case.output):
            failures.append(f"{case.name}: {shown(miss.passage, case.output)!r}")
    assert len(failures) <= 0.1 * len(cases), "\n".join(failures)


@pytest.mark.parametrize("sort", TYPES_OF_SORT)
def test_what_differs_is_named_and_typed(sort: Sort) -> None:
    failures = []
    cases = [case for case in PLANTED if case.sort == sort and case.expected]
    for case in cases:
        miss = only_miss(case.criterion, case.term, case.output)
        if miss.kind == case.kind and not TYPES_OF_SORT[sort] & {absent.type for absent in miss.absent_words}:
            failures.append(f"{case.name}: {miss.absent_words}")
    assert len(failures) <= 0.1 * len(cases), "\n".join(failures)


# ─── look-alikes ───


def test_a_look_alike_raises_no_alarm_and_is_called_by_a_fair_name() -> None:
    for case in LOOK_ALIKES:
        miss = only_miss(case.criterion, case.term, case.output)
        told = f"{case.name}: {shown(miss.passage, case.output)!r}"
        assert miss.kind not in ALARMS, told
        assert miss.kind in case.kinds, told


@pytest.mark.parametrize("lost", [pytest.param(lost, id=lost.term.replace(" ", "-")) for lost in PART])
def test_the_words_that_a_passage_lacks_are_named_and_typed(lost: Lost) -> None:
    absent = only_miss("CR", lost.term, in_bay(lost.passage)).absent_words
    for word, types in lost.words.items():
        named = [each for each in absent if word.lower() in each.word.lower()]
        assert named, absent
        assert {each.type for each in named} <= set(types)


@pytest.mark.parametrize("lost", [pytest.param(lost, id=lost.term.replace(" ", "-")) for lost in PART])
def test_no_word_is_called_absent_that_the_passage_holds(lost: Lost) -> None:
    absent = only_miss("CR", lost.term, in_bay(lost.passage)).absent_words
    assert not {each.word.lower() for each in absent} & set(lost.passage.lower().split())


def test_a_lost_day_is_a_lost_part_and_typed_as_a_day() -> None:
    miss = only_miss("CR", "arrived at 08:30 on Saturday", in_bay("arrived at 08:30"))
    assert miss.kind == "part"
    assert AbsentWord("Saturday", "day") in miss.absent_words


def test_a_lost_doubt_is_a_polarity_and_typed_as_certainty() -> None:
    output = in_bay("developing compartment syndrome")
    miss = only_miss("CR", "signs consistent with developing compartment syndrome", output)
    assert miss.kind == "polarity"
    assert "certainty" in {each.type for each in miss.absent_words}
    assert shown(miss.passage, output) == "developing compartment syndrome"


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
def test_whether_a_term_stands_in_the_narrative_is_said_by_the_literal_rule(narrative: str | None, stands: str) -> None:
    expectations = Expectations(must_find_signals=(" pink but pulseless ",))
    (miss,) = diagnose(expectations, in_bay("cold hand"), narrative).misses
    assert miss.in_narrative == stands


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
    (occurrence,) = diagnose(Expectations(must_find_signals=(term,)), Output(signals), None).occurrences
    assert occurrence.inside_word is inside
    assert shown(occurrence.passage, Output(signals)).lower() == term


def test_an_occurrence_over_two_elements_starts_in_the_first_and_ends_with_it() -> None:
    output = Output(("a pink", "pulseless hand"), "")
    (occurrence,) = diagnose(Expectations(must_find_signals=("pink pulseless",)), output, None).occurrences
    assert occurrence.passage == Passage("signals", 0, 2, 6)


def test_a_forbidden_term_is_shown_in_the_question_that_uses_it() -> None:
    output = Output((), "", ("What happened?", "Was it negligence?"))
    (occurrence,) = diagnose(Expectations(forbidden_terms=("Negligence", "fault")), output, None).occurrences
    assert (occurrence.criterion, occurrence.term) == ("AH", "Negligence")
    assert occurrence.passage == Passage("followup_questions", 1, 7, 17)


def test_the_document_of_a_miss_has_the_fields_of_a_report_in_their_order() -> None:
    output = in_bay("delay due to theatre availability")
    miss = only_miss("CR", "the delay was due to theatre availability", output)
    assert list(miss_document(miss)) == [
        "criterion", "term", "kind", "in_narrative", "field", "element", "start", "end", "similarity",
        "verdict", "also_in", "missing_words", "in_other_words",
    ]  # fmt: skip
    assert miss_document(miss) | {"similarity": 0} == {
        "criterion": "CR",
        "term": "the delay was due to theatre availability",
        "kind": "connectives",
        "in_narrative": "no_narrative",
        "field": "signals",
        "element": 1,
        "start": 0,
        "end": 33,
        "verdict": "term",
        "also_in": [],
        "missing_words": [],
        "in_other_words": False,
        "similarity": 0,
    }


def test_the_document_of_a_miss_without_passage_says_null() -> None:
    miss = only_miss("CR", "pink pulseless hand", Output())
    document = miss_document(miss)
    assert (miss.kind, miss.passage, miss.similarity) == ("absent", None, 0)
    assert [document[name] for name in ("field", "element", "start", "end")] == [None] * 4


def test_a_term_listed_twice_is_missed_twice() -> None:
    expectations = Expectations(("cold hand", "cold hand"), (), ("cold hand",))
    misses = diagnose(expectations, in_bay(), None).misses
    assert [(miss.criterion, miss.term) for miss in misses] == [("CR", "cold hand")] * 2 + [("AC", "cold hand")]


# ─── whatever text there may be ───

# What clinical text is made of, so that chance meets every rule, and what no rule expects.
_WORDS_OF_RULES = """
left right bilateral no not denied without until suspected possible signs of consistent with developing confirmed
Saturday Sunday May 08:30 20:30 8 pm am 3 13 2.5 III II grade stage mg mcg hours hour-long minutes day 2 °C
fracture fractured fractures wrist the at was in hand, pulseless (AIN) palsy 'OK' sign - – ’ “ ” . ; é İ ΑΣ ß 😀
"""
_PIECES = (*_WORDS_OF_RULES.split(), "\n", "\t", "\u00a0", "\u200b", "e\u0301", "\ufb01")
_clinical = st.lists(st.sampled_from(_PIECES), max_size=12).map(" ".join)
_any_text = st.one_of(_clinical, st.text(st.characters(), max_size=40))  # lone surrogates too
_terms = st.lists(st.one_of(_clinical, st.text(max_size=20)).filter(str.strip), max_size=4).map(tuple)
_expectations = st.builds(Expectations, _terms, _terms, _terms)
_texts = st.lists(_any_text, max_size=5).map(tuple)
_outputs = st.builds(Output, _texts, _any_text, _texts)
_narratives = st.one_of(st.none(), _any_text)


def _passages(diagnosis: Diagnosis) -> list[Passage]:
    found = [occurrence.passage for occurrence in diagnosis.occurrences]
    return found + [miss.passage for miss in diagnosis.misses if miss.passage]


@given(expectations=_expectations, output=_outputs, narrative=_narratives)
def test_every_offset_points_into_the_original_text(
    expectations: Expectations, output: Output, narrative: str | None
) -> None:
    for passage in _passages(diagnose(expectations, output, narrative)):
        assert 0 <= passage.start < passage.end <= len(text_at(passage, output))


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
        assert 0 <= miss.similarity <= (100 if miss.passage else 0)
        stands = narrative is not None and miss.term.lower().strip() in narrative.lower().strip()
        assert miss.in_narrative == ("no_narrative" if narrative is None else "yes" if stands else "no")
        assert miss.kind == "absent" or miss.passage is not None
        assert miss.kind != "other_field" or _unread(miss)


def _unread(miss: Miss) -> bool:
    """The passage lies in a field that the criterion does not read."""
    assert miss.passage is not None
    return miss.passage.field in {"CR": {"followup_questions"}, "AC": {"signals", "followup_questions"}}[miss.criterion]


@given(expectations=_expectations, output=_outputs, narrative=_narratives)
def test_the_same_input_gives_the_same_diagnosis(
    expectations: Expectations, output: Output, narrative: str | None
) -> None:
    assert diagnose(expectations, output, narrative) == diagnose(expectations, output, narrative)


@given(expectations=_expectations, output=_outputs)
def test_a_miss_does_not_depend_on_the_other_terms(expectations: Expectations, output: Output) -> None:
    alone: list[Miss] = []
    for term in expectations.must_find_signals:
        alone += diagnose(Expectations((term,)), output, None).misses
    for term in expectations.must_contain_phrases:
        alone += diagnose(expectations_of("AC", term), output, None).misses
    assert list(diagnose(expectations, output, None).misses) == alone


_SIGNS = st.text("+-/=?!.,:;*#<>%°~_^|()[]'\"… –—0123456789½²😀🚑\u200b\u0301İ", max_size=12)


@given(term=_SIGNS.filter(str.strip), cut=st.integers(0, 4), before=_any_text, after=_any_text)
def test_a_term_without_words_is_answered_where_it_nearly_stands(term: str, cut: int, before: str, after: str) -> None:
    nearly = term[:cut] + term[cut + 1 :]
    texts = (f"{before} {nearly} {after}", f"{before}{nearly}{after}", nearly)
    output = Output(texts, " ".join(texts), texts)
    for miss in diagnose(Expectations((term,), (), (term,)), output, None).misses:
        assert miss.passage is None or shown(miss.passage, output)


_WORDS = ("pink", "pulseless", "hand", "swollen", "elbow", "fever", "rash", "cough", "bruise", "burn", "knee", "wound")
_MARKS = (", ", " - ", "; ", " – ", " — ", ". ", ": ", "  ", "\u00a0", " (", ") ", '" ', "\n", " \u2018", "\u2019 ")


@given(
    words=st.lists(st.sampled_from(_WORDS), min_size=2, max_size=6, unique=True),
    marks=st.lists(st.sampled_from(_MARKS), min_size=5, max_size=5),
    at=st.integers(0, 6),
    in_summary=st.booleans(),
)
def test_a_term_that_stands_there_but_for_punctuation_differs_in_form(
    words: list[str], marks: list[str], at: int, in_summary: bool
) -> None:
    term = " ".join(words)
    passage = words[0] + "".join(mark + word for mark, word in zip(marks, words[1:], strict=False))
    story = in_bay()
    told = Output(story.signals, f"{story.summary} Seen there {passage} indeed.") if in_summary else None
    output = told or Output((*story.signals[:at], passage, *story.signals[at:]), story.summary)
    miss = only_miss("AC" if in_summary else "CR", term, output)
    assert miss.kind == "form"
    assert shown(miss.passage, output) == passage


# ─── how far a passage reaches ───

REACH = [
    # (term, sentence, what is shown of it)
    ("a 9-day stay", "She had a 9-day course of antibiotics.", "9-day course"),
    ("an 11-hour wait", "There was an 11-hour surgical delay due to staffing.", "11-hour surgical delay"),
    ("collapsed at 14:00 in the ward", "She was admitted at 14:00 and slept.", "admitted at 14:00"),
    ("OR availability was a factor", "The delay was due to OR availability and imaging.", "OR availability"),
    ("sustained a fracture in a house accident", "He sustained a fracture and came at noon.", "sustained a fracture"),
]


@pytest.mark.parametrize(("term", "sentence", "shown"), REACH)
def test_a_passage_reaches_to_the_words_that_stand_for_what_it_lacks(term: str, sentence: str, shown: str) -> None:
    (miss,) = diagnose(Expectations((), (), (term,)), Output(summary=sentence), None).misses
    assert miss.kind == "part"
    assert miss.passage is not None
    assert sentence[miss.passage.start : miss.passage.end] == shown


# --- scripts that put no space between words --------------------------------------------------------------------------

UNSPACED = [
    # (term, summary, the passage that comes nearest, None for none)
    ("右前臂骨折", "患者右侧前臂骨折入院。体温38.5度。", "右侧前臂骨折"),
    ("右前腕の骨折", "患者は右の前腕を骨折し、土曜日に入院した。", "右の前腕を骨折"),
    ("กระดูกแขนหัก", "ผู้ป่วยแขนหักกระดูกหน้า เข้าโรงพยาบาล", "แขนหักกระดูก"),
    ("心电图正常", "患者右侧前臂骨折入院。", None),
]


@pytest.mark.parametrize(("term", "summary", "nearest"), UNSPACED)
def test_the_nearest_passage_is_found_where_no_space_separates_words(
    term: str, summary: str, nearest: str | None
) -> None:
    (miss,) = diagnose(Expectations((term,), (), ()), Output((), summary, ()), None).misses
    assert (None if miss.passage is None else summary[miss.passage.start : miss.passage.end]) == nearest
    assert miss.missing_words == (() if nearest else (term,))


@pytest.mark.parametrize("term", ["前臂骨折", "38.5", "臂"])
def test_a_term_between_letters_of_such_a_script_is_no_part_of_a_longer_word(term: str) -> None:
    expectations, output = Expectations((term,), (), ()), Output((), "患者右侧前臂骨折入院。体温38.5度。", ())
    (found,) = diagnose(expectations, output, None).occurrences
    assert not found.inside_word
    details = score(prepare(expectations), output, Rules()).details
    assert doubtful_hits(output, None, details) == ()
    assert longer_word(term, output.summary) is None
