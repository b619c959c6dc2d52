"""What an output and a narrative say of a term: each answer, their order, and the places that show them."""

from typing import Any, Literal

import pytest

from safe_core import Expectations, Output
from safe_core.diagnosis import Evidence, Miss, diagnose
from safe_core.diagnosis.answers import answer

Criterion = Literal["CR", "AC"]


def miss_of(term: str, output: Output | str, narrative: str | None = None, criterion: Criterion = "AC") -> Miss:
    expectations = Expectations((term,)) if criterion == "CR" else Expectations((), (), (term,))
    written = Output((), output) if isinstance(output, str) else output
    (miss,) = diagnose(expectations, written, narrative).misses
    return miss


def quoted(evidence: Evidence, output: Output, narrative: str | None) -> str:
    texts: dict[Any, Any] = {
        None: (narrative,),
        "summary": (output.summary,),
        "signals": output.signals,
        "followup_questions": output.followup_questions,
    }
    text: str = texts[evidence.field][evidence.element or 0]
    return text[evidence.start : evidence.end]


def quotes(miss: Miss, output: Output | str, narrative: str | None = None) -> list[tuple[str, str]]:
    written = Output((), output) if isinstance(output, str) else output
    return [(each.side, quoted(each, written, narrative)) for each in miss.evidence]


# ─── the five answers of some texts ───

SAID = [
    ("shortness of breath", "She was breathless."),  # another word
    ("left knee pain", "Pain of the left knee."),  # another order
    ("blood pressure 120/80", "BP was 120 over 80."),  # another number style
    ("denies knee pain", "She denies any pain."),  # a more general denial
    ("denies fever", "Reports no fever."),
    ("no fever", "Negative for fever."),
    ("reports no fever", "She has been afebrile."),
    ("does not smoke", "He didn't smoke."),
    ("does not smoke", "He did n't smoke ."),  # as transcripts cut it
    ("nonobstructing stone", "A non-obstructing stone."),
    ("fever", "A fever of 39.2 since Monday."),  # more exactly
    ("dry cough and swollen ankles", "She has a dry cough. The ankles are swollen."),  # two sentences
    ("dry cough", "[doctor] is it a dry cough ? [patient] yes"),
    ("denies chest pain", "[doctor] any chest pain ? [patient] no"),
    ("A1c 6.7", "his a1c now was six . seven"),
    ("patient reports nausea", "Nausea."),  # what only says that something is said
    ("left calf 38 cm", "Right calf 35 cm, left calf 38 cm."),  # each with its own side
    ("right hip replaced in 2010", "Left knee replaced in 2015, right hip in 2010."),
    ("rash after amoxicillin", "After amoxicillin, she had a rash."),
    ("the glucose fell from 11.2 to 5.4", "Glucose of 11.2, which fell to 5.4."),
]
CONTRADICTED = [
    ("potassium 5.6", "Potassium was 3.6."),  # another value
    ("lisinopril 20 mg daily", "Lisinopril 10 mg daily."),
    ("pain in the left knee", "Pain in the right knee."),  # another side
    ("metformin 500 mg twice daily", "Glipizide 500 mg twice daily."),  # another drug in its place
    ("wound is clean and closed", "The wound is clean and open."),  # the opposite
    ("had a fever", "She had no fever."),
    ("no fever", "She had a fever."),
    ("surgery was done", "Surgery was cancelled."),  # undone
    ("the transfusion was given", "The transfusion did not take place."),
    ("MRI of the knee", "No MRI of the knee."),
    ("denies chest pain", "[doctor] any chest pain ? [patient] yes"),
    ("fever", "[doctor] any fever ? [patient] no"),
    ("dizziness and blurred vision", "He is dizzy. Denies blurred vision."),  # the rest is in the sentence before
    ("fracture of the left wrist", "It was the right wrist. The x-ray showed a fracture."),  # or in the one after
    ("left ankle sprain", "Right ankle: swollen. She walks with a cane. The sprain will heal."),  # the only side
    ("furosemide 40 mg twice daily", "Furosemide was stopped."),  # of whatever dose
    ("further falls", "A fall in March. She denies additional falls."),  # the clause with more of the term
    ("dose was lowered", "I will raise the dose, okay?"),  # no question
    ("Phalen test positive", "The Phalen test is negative."),
]
CONTRADICTED += [
    ("right calf 38 cm", "Right calf 35 cm, left calf 38 cm."),  # the value is of the other side
    ("6/6 on the right, 6/24 on the left", "Vision of 6/24 on the right and 6/6 on the left."),
    ("severe mitral stenosis", "A mild mitral stenosis."),
    ("paracetamol 1 g at 08:00", "Paracetamol 1 g at 10:00, ibuprofen 400 mg at 08:00."),
]
CONTRADICTED += [
    ("no known drug allergy", "Allergic to penicillin."),  # a drug is a medication
    ("NKDA", "She is allergic to penicillin and ibuprofen."),
    (
        "denies needing steroids for her asthma",
        "She denies asthma at night. She reports needing steroids for her asthma.",
    ),
]
PART = [
    ("the rash after the amoxicillin", "Amoxicillin after the rash."),  # the other way round
    ("a headache before the fit", "A fit before the headache."),
    ("moved from the ward to the theatre", "Moved from the theatre to the ward."),
    ("tissue was sent from Leeds", "Tissue was sent to Leeds on Monday."),
    ("the left arm is weaker than the left leg", "The left leg is weaker than the left arm."),
    ("metoprolol continued for atrial fibrillation", "Metoprolol is continued."),  # a phrase is lost as a whole
    ("chest film ordered", f"A chest drain; {', '.join('abcdefghijklmn')}; film ordered."),  # too much between
    ("dry cough for two weeks", "She has a dry cough."),
    ("dry cough and swollen ankles", "She has a dry cough. She slept. The ankles are swollen."),  # too far apart
    ("cough with a fever", "She has a cough, possibly with a fever."),  # surer in the term
    ("lisinopril 10 mg", "Takes lisinopril."),
    ("lisinopril 10 mg daily", "Takes lisinopril."),  # a third is a part
    ("operation", "A procedure was done."),  # a near synonym alone
    ("raised", "It is high."),
    ("cough and fever", "A cough. The fever has resolved."),  # what is past is missing
    ("back pain and gout", "Back pain. History of gout."),
    ("denies back pain or cramps", "She denies lower back pain, neck cramps and chills."),
]
ABSENT = [
    ("dry cough", "The knee was examined."),
    ("dry cough", ""),
    ("chest pain at rest", "Return if chest pain occurs at rest."),  # hypothetical
    ("stroke of the left side", "Her mother had a stroke of her left side."),  # somebody else's
    ("knee pain", "[doctor] any knee pain ? [doctor] i will look at your hand"),  # asked and not answered
    ("pneumonia of the left lung", "Consider pneumonia of the left lung."),
    ("denies pain", "She denies knee pain."),  # a narrower denial does not say a more general one
    ("Phalen test positive on the left", "Bruise on the left, no injury."),  # a denial of something else
]
ABSENT += [
    ("no known drug allergy", "Allergic to shellfish. Takes penicillin."),
    ("no change of medication", "Takes penicillin."),
    ("no medication", "Takes penicillin."),  # which may be one that she takes no more
    ("two puffs of ciclesonide twice daily", "One puff of fluticasone once daily."),  # another thing altogether
]
SAID += [
    ("right elbow pain", "Pain of the right elbow. Pain of the right wrist."),  # which may hurt, too
]
BOTH = [
    ("potassium 5.6", "Potassium of 5.6. The potassium was 3.6."),
    ("left knee pain", "Pain of the left knee. Pain of the right knee."),
    ("denies fever", "No fever. She had a fever."),
]
FIVE = [
    *(("said", *row) for row in SAID),
    *(("contradicted", *row) for row in CONTRADICTED),
    *(("part", *row) for row in PART),
    *(("absent", *row) for row in ABSENT),
    *(("both", *row) for row in BOTH),
]


@pytest.mark.parametrize(("says", "term", "text"), FIVE)
def test_what_a_text_says_of_a_term(says: str, term: str, text: str) -> None:
    assert answer(term, [text]).says == says


def test_the_share_is_in_thousandths_of_what_the_term_tells() -> None:
    assert answer("dry cough", ["A dry cough."]).share == 1000
    assert answer("dry cough", ["A cough."]).share == 500
    assert answer("dry cough", ["A knee."]).share == 0


def test_one_text_may_say_what_another_does_not() -> None:
    assert answer("potassium 5.6", ["Potassium was 5.6.", "Potassium was 3.6."]).says == "both"
    assert answer("dry cough and swollen ankles", ["A dry cough.", "Swollen ankles."]).says == "part"


MIRRORS = [
    ("surgery was done", "The physiotherapy was cancelled because the surgery had been done."),
    ("left knee pain", "Pain of the left knee. The right hip is fine."),
    ("potassium 5.6", "Potassium of 5.6 and a sodium of 136."),
    ("lisinopril 10 mg", "10 mg of lisinopril, and 20 mg of atorvastatin."),
    ("has a cough", "No fever, but she coughs."),
    ("potassium 5.6", "Potassium of 5.6; last year it was 4.1."),
    ("left knee pain", "Pain in the left knee. The right knee is normal."),  # the term's own side is there, too
]


@pytest.mark.parametrize(("term", "text"), MIRRORS)
def test_what_is_denied_or_differs_may_be_something_else(term: str, text: str) -> None:
    assert answer(term, [text]).says == "said"


# ─── of an output: the order of the answers ───

OF_OUTPUTS = [
    # what is read decides: the signals are read for CR, the summary for both
    ("said", "CR", Output(("cough that was dry",), "")),
    ("said", "CR", Output((), "A cough that was dry.")),
    ("said", "AC", Output((), "A cough that was dry.")),
    ("both", "CR", Output(("cough that was dry",), "He has no dry sort of cough.")),
    # what is not read
    ("elsewhere", "AC", Output(("dry cough",), "The knee was examined.")),  # word for word
    ("elsewhere", "AC", Output(("cough that was dry",), "The knee was examined.")),  # in other words
    ("elsewhere", "AC", Output((), "The knee was examined.", ("Since when the dry cough?",))),
    ("absent", "AC", Output((), "The knee was examined.", ("Is the cough a dry one?",))),  # questions claim nothing
    ("elsewhere", "AC", Output(("dry cough",), "She has a cough.")),  # before a part
    # a contradiction in a field that is read is never set aside by one that is not
    ("contradicted", "AC", Output(("dry cough",), "She had no cough that was dry.")),
    ("contradicted", "AC", Output((), "She had no cough that was dry.", ("Since when the dry cough?",))),
    ("absent", "AC", Output(("no cough that was dry",), "The knee was examined.")),  # nor does one add one
    ("part", "AC", Output((), "She has a cough.")),
    ("absent", "AC", Output((), "The knee was examined.")),
    ("absent", "CR", Output()),
]


@pytest.mark.parametrize(("says", "criterion", "output"), OF_OUTPUTS)
def test_what_an_output_says_is_the_first_that_holds(says: str, criterion: Criterion, output: Output) -> None:
    assert miss_of("dry cough", output, None, criterion).output_says == says


OVER_ELEMENTS = [
    ("said", Output(("a dry cough", "swollen ankles"), "")),
    ("said", Output(("Seen on Monday. A dry cough.", "Swollen ankles. No fever."), "")),
    ("part", Output(("a dry cough", "a fever", "swollen ankles"), "")),  # not neighbours
    ("part", Output(("a dry cough",), "Swollen ankles.")),  # of two fields
]


@pytest.mark.parametrize(("says", "output"), OVER_ELEMENTS)
def test_neighbouring_elements_are_neighbouring_sentences(says: str, output: Output) -> None:
    assert miss_of("dry cough and swollen ankles", output, None, "CR").output_says == says


def test_what_is_said_over_two_elements_is_quoted_from_both() -> None:
    output = Output(("fever", "a dry cough", "", "the swollen ankles"), "")
    miss = miss_of("dry cough and swollen ankles", output, None, "CR")
    assert quotes(miss, output) == [("output", "a dry cough"), ("output", "the swollen ankles")]
    assert [(each.field, each.element) for each in miss.evidence] == [("signals", 1), ("signals", 3)]
    assert (miss.kind, miss.passage) == ("split", miss.evidence[0].passage)


def test_an_element_ends_even_behind_what_is_often_shortened() -> None:
    output = Output(("Fever: no.", "Dry sort of cough."), "")
    assert miss_of("has a dry cough", output, None, "CR").output_says == "said"


def test_the_share_is_that_of_the_place_that_says_it() -> None:
    assert miss_of("dry cough", Output(("dry cough",), "The knee was examined.")).share == 1000
    assert miss_of("dry cough", Output(("cough that was dry",), "The knee was examined.")).share == 1000


MANY = " ".join(f"finding{number}" for number in range(129))
NEARLY = " ".join(f"finding{number}" for number in range(128))


def test_a_term_that_is_too_long_is_not_read() -> None:
    miss = miss_of(MANY, f"{NEARLY}.", NEARLY)
    assert (miss.output_says, miss.narrative_says, miss.verdict) == ("not_read", "unknown", "look")
    assert miss_of(MANY, Output((MANY,), "The knee was examined."), MANY).output_says == "elsewhere"
    assert miss_of(MANY, "The knee was examined.", MANY).narrative_says == "supported"


# ─── in another language ───

GERMAN = """Die Patientin stellte sich am Montag mit seit drei Tagen bestehender Atemnot in der Notaufnahme vor.
Sie hatte kein Fieber, im Röntgenbild zeigte sich ein Infiltrat im linken Unterlappen."""
CHINESE = "患者周一因咳嗽三天来院，无发热，胸片示左下肺炎，给予阿莫西林治疗，周五出院。"


@pytest.mark.parametrize("output", [GERMAN, CHINESE])
@pytest.mark.parametrize("narrative", [None, "A dry cough since Monday.", "Her knee is painful.", "No dry cough."])
def test_what_is_not_read_is_left_to_a_person(output: str, narrative: str | None) -> None:
    miss = miss_of("dry cough", output, narrative)
    assert (miss.output_says, miss.verdict, miss.remedy, miss.row) == ("not_read", "look", "read", "not read")
    assert (miss.share, miss.passage, miss.kind) == (0, None, "absent")
    assert all(each.side == "narrative" for each in miss.evidence)


@pytest.mark.parametrize(
    ("says", "term", "criterion", "output"),
    [
        ("not_read", "dry cough", "CR", Output(("fever",), GERMAN)),  # one field of those that are read is enough
        ("absent", "dry cough", "AC", Output((GERMAN,), "The knee was examined.")),  # the signals are not read for AC
        ("elsewhere", "dry cough", "AC", Output(("cough that was dry",), GERMAN)),
        ("said", "amoxicillin 500 mg", "AC", Output((), f"{GERMAN} Therapie: Amoxicillin (500 mg).")),
        ("part", "amoxicillin and fluids", "AC", Output((), f"{GERMAN} Therapie: Amoxicillin.")),
        ("absent", "dry cough", "AC", Output((), "Fieber seit drei Tagen.")),  # too short to tell
    ],
)
def test_what_is_found_in_another_language_counts(says: str, term: str, criterion: Criterion, output: Output) -> None:
    assert miss_of(term, output, None, criterion).output_says == says


@pytest.mark.parametrize("narrative", [GERMAN, CHINESE])
def test_of_a_narrative_that_is_not_read_nothing_is_known(narrative: str) -> None:
    miss = miss_of("dry cough", "The knee was examined.", narrative)
    assert (miss.narrative_says, miss.verdict, miss.remedy) == ("unknown", "prompt", "ask")


# ─── of a narrative ───

OF_NARRATIVES = [
    ("unknown", None),
    ("unknown", ""),
    ("unknown", " \n"),
    ("supported", "A dry cough since Monday."),
    ("supported", "The cough is dry."),
    ("supported", "[doctor] is the cough dry ? [patient] yes"),
    ("partly", "A cough since Monday."),
    ("silent", "Her knee has been painful since Monday."),
    ("supported", "A dry cough on Monday. She has no dry cough."),  # both
    ("contradicts", "She has no dry cough."),
    ("contradicts", "[doctor] a dry cough ? [patient] no"),
    ("contradicts", "The cough is wet."),
]


@pytest.mark.parametrize(("says", "narrative"), OF_NARRATIVES)
def test_what_a_narrative_says(says: str, narrative: str | None) -> None:
    assert miss_of("dry cough", "The knee was examined.", narrative).narrative_says == says


@pytest.mark.parametrize(
    ("verbatim", "narrative"),
    [
        (True, "A dry cough since Monday."),
        (True, "[doctor] any dry cough ? [patient] yes"),
        (False, "The cough is dry."),
        (False, "She denies a dry cough."),  # denied
        (False, "[doctor] any dry cough ? [patient] no"),
        (False, None),
    ],
)
def test_a_term_is_verbatim_only_where_it_is_neither_denied_nor_asked(verbatim: bool, narrative: str | None) -> None:
    assert miss_of("dry cough", "The knee was examined.", narrative).verbatim is verbatim


def test_a_narrative_that_says_both_settles_nothing() -> None:
    output = "Pain in the right knee."
    one = miss_of("pain in the left knee", output, "Pain in the left knee.")
    assert (one.output_says, one.narrative_has_it_too, one.verdict) == ("contradicted", False, "output")
    both = miss_of("pain in the left knee", output, "Pain in the left knee. Later pain in the right knee as well.")
    assert (both.output_says, both.narrative_has_it_too, both.verdict) == ("contradicted", True, "look")


def test_without_a_contradiction_nothing_is_said_instead() -> None:
    assert not miss_of("dry cough", "A wheeze.", "A wheeze and a dry cough.").narrative_has_it_too


# ─── evidence ───


def test_what_is_said_is_quoted_from_both_sides() -> None:
    output, narrative = "Seen on Monday. She was breathless on the stairs.", "Short of breath on the stairs for a week."
    miss = miss_of("shortness of breath on stairs", output, narrative)
    assert quotes(miss, output, narrative) == [
        ("output", "She was breathless on the stairs"),
        ("narrative", "Short of breath on the stairs for a week"),
    ]


def test_both_places_of_an_output_are_quoted_where_they_differ() -> None:
    output = "Potassium of 5.6. The potassium was 3.6."
    miss = miss_of("potassium 5.6", output)
    assert quotes(miss, output) == [("output", "Potassium of 5.6"), ("output", "The potassium was 3.6")]


def test_a_contradiction_is_quoted_with_what_it_says_instead() -> None:
    output, narrative = "The knee is fine. Potassium was 3.6.", "Her potassium was 5.6 on Monday."
    miss = miss_of("potassium 5.6", output, narrative)
    assert ("output", "Potassium was 3.6") in quotes(miss, output, narrative)
    assert quotes(miss, output, narrative)[-1][0] == "narrative"


def test_what_is_elsewhere_is_quoted_from_there() -> None:
    output = Output(("fever", "had a dry cough"), "The knee was examined.")
    miss = miss_of("dry cough", output, None)
    assert quotes(miss, output) == [("output", "dry cough")]  # word for word: nothing around it
    assert (miss.evidence[0].field, miss.evidence[0].element) == ("signals", 1)


def test_nothing_is_quoted_where_nothing_is_said() -> None:
    assert miss_of("dry cough", "The knee was examined.").evidence == ()


LONG = "which was very long ago and nobody had asked about it, "
FAR = [
    ("A1c 9.1 and wound check", f"Her A1c was, {LONG * 4} 9.1. Wound check."),
    ("A1c 9.1 and wound check", f"A wound check, {LONG * 2} and for the A1c, {LONG * 2} it was 9.1."),
    *((f"A1c 9.1 and wound check {'x' * n}", f"wound {'a' * n} {LONG * 2} the A1c check A1c 9.1") for n in range(12)),
    ("dry cough", f"A cough that is{' ' * 200}dry."),
    ("dry cough", f"A cough, {'y' * 300} dry."),
]


@pytest.mark.parametrize(("term", "text"), FAR)
def test_a_quotation_is_short_and_cut_between_words(term: str, text: str) -> None:
    for output, narrative in ((text, text), ("Nothing.", text)):
        miss = miss_of(term, output, narrative)
        assert miss.evidence
        for each in miss.evidence:
            assert each.end - each.start <= 160
            before, after = text[each.start - 1 : each.start + 1], text[each.end - 1 : each.end + 1]
            assert not (len(before) == 2 and before.isalnum()), before
            assert not (len(after) == 2 and after.isalnum()), quotes(miss, output, narrative)


@pytest.mark.parametrize(
    ("term", "output", "shown"),
    [
        ("surgery was done", "The surgery was cancelled.", "surgery was cancelled"),
        ("dry cough", "She denies a dry sort of cough.", "denies a dry sort of cough"),
        ("no fever", "She never had any fever.", "never had any fever"),
        ("takes aspirin", "Stopped: aspirin and ibuprofen.", "Stopped: aspirin"),
        ("takes aspirin", "Her aspirin, which was stopped.", "aspirin, which was stopped"),
        ("takes aspirin", "Aspirin: stopped on Monday.", "Aspirin: stopped"),
        ("takes aspirin", "[doctor] do you take aspirin ? [patient] no , not now", "aspirin ? [patient] no"),
        ("denies chest pain", "[doctor] any chest pain ? [patient] yes", "chest pain ? [patient] yes"),
    ],
)
def test_a_quotation_shows_what_denies_or_undoes(term: str, output: str, shown: str) -> None:
    assert any(shown in text for _, text in quotes(miss_of(term, output), output))


def test_what_is_elsewhere_in_other_words_is_quoted_from_there() -> None:
    output = Output(("cough that was dry",), "The knee was examined.")
    assert quotes(miss_of("dry cough", output), output) == [("output", "cough that was dry")]


def test_a_general_denial_says_a_narrower_one_though_no_telling_word_of_it_is_there() -> None:
    assert answer("denies any shoulder problems", ["She denies any problems, and sleeps well at night."]).says == "said"
