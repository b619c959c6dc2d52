"""What a plain reading makes one, and what it must leave apart."""

from collections.abc import Iterator
from itertools import chain

import pytest

from safe_core import Expectations, Output
from safe_core.diagnosis import Passage, diagnose
from safe_core.diagnosis.plain_reading import plainly
from safe_core.diagnosis.sentences import sentences
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.word_lists.meaning_groups import MEANING_GROUPS
from safe_core.diagnosis.words import words

ALIKE = [
    ("gave up smoking", "stopped smoking"),  # a phrase and a word
    ("acts out her dreams", "dream enactment"),  # over a word such as "her"
    ("no history of falls", "no episodes of falls"),  # what was there or not
    ("exit site looked clean", "exit site clean"),  # words that add nothing
    ("known asthma", "asthma"),  # what is known is so
    ("advised against surgery", "not recommended surgery"),
    ("last opened bowels five days ago", "no bowel movement five days"),  # how long ago, and for how long not
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_means_the_same_is_read_as_the_same(one: str, other: str) -> None:
    assert keys(plainly(cut(one))) == keys(plainly(cut(other)))


LEFT = [
    "history of falls",  # they may be over
    "looked for stones",  # looking is what was done
    "bleeding stopped",  # without a time after which
    "bleeding had not stopped after two hours",  # what did not stop went on
    "mother said no",  # nothing that is written says it
    "no known cause",  # there may be some
    "it is not known",
    "not his known hernia",  # it denies that it is this one
    "no history",  # of nothing in particular
    "no history of tuberculosis",  # what may be over is no event of which there was none
    "he is not on no anorexia",  # two denials are none
]


@pytest.mark.parametrize("text", LEFT)
def test_what_tells_something_is_left(text: str) -> None:
    assert plainly(cut(text)) == cut(text)


APART = [
    ("antibiotics not prescribed", "antibiotics bought over-the-counter"),
    ("HBV DNA rising", "HBV missed rising"),  # an acronym of two senses, and so are the next two
    ("salt restricted", "speech therapist restricted"),
    ("LOC fluctuating", "unconscious fluctuating"),
    ("aspirin dose cut to 75 mg", "aspirin dose laceration 75 mg"),
    ("drug meant for another patient", "drug meant for the wrong patient"),
    ("nurse unaware of allergies", "no known allergies"),
    ("swollen glands", "lymph nodes"),
    ("overweight", "obese"),  # degrees
    ("carcinoma of the arm", "malignancy of the arm"),  # kinds
    ("scald of the palm", "burn of the palm"),
    ("on blood thinners", "on anticoagulation"),
    ("creatinine increased", "rose-coloured urine, creatinine"),  # words of two senses, and so are all below
    ("feels unwell", "feels ill-fitting"),
    ("the patient expired", "the patient out of date"),
    ("drug stopped", "drug came off"),
    ("deliberate self-harm", "harmed himself"),
    ("eyelid swollen", "lid swollen"),
    ("labour pains", "contractions"),
    ("improved on CT", "better on CT"),
    ("uses a walking frame", "uses a walker"),
    ("breathing tube", "ETT"),
]


@pytest.mark.parametrize(("one", "other"), APART)
def test_what_a_clinician_tells_apart_is_not_read_as_the_same(one: str, other: str) -> None:
    assert keys(plainly(cut(one))) != keys(plainly(cut(other)))


def test_what_is_read_otherwise_stands_where_it_was_written() -> None:
    text = "she gave up smoking, felt well"
    read = plainly(cut(text))
    assert [text[item.start : item.end] for item in read] == ["she", "gave up", "smoking", "well"]
    assert [item.pause for item in read] == [False, False, False, True]


def test_no_phrase_is_in_two_groups_and_each_has_a_word_that_tells_something() -> None:
    phrases = [tuple(keys(cut(phrase))) for group in MEANING_GROUPS for phrase in group.split(" | ")]
    assert len(phrases) == len({*phrases})
    for phrase in chain.from_iterable(group.split(" | ") for group in MEANING_GROUPS):
        assert any(item.role in {"content", "lead-in", "certainty", "value"} for item in cut(phrase)), phrase


def test_another_value_among_words_of_the_same_meaning_is_not_the_term() -> None:
    narrative = "He quit smoking four months ago and was informed about the 12 mm nodule on the left."
    for term, signal in (
        ("quit smoking four months ago", "stopped smoking five months ago"),
        ("informed about the 12 mm nodule", "told about the 21 mm nodule"),
        ("nodule on the left", "lump on the right"),
        ("was informed about the 12 mm nodule", "not told about the 12 mm nodule"),
    ):
        (miss,) = diagnose(Expectations((term,), (), ()), Output((signal,), ""), narrative).misses
        assert miss.verdict != "term", miss


NEVER_SAID = [
    ("bleeding had not stopped after two hours", "Bleeding stopped after two hours."),
    ("bleeding stopped after two hours", "Bleeding had not stopped after two hours."),
    ("contractions did not stop after 20 minutes", "Contractions stopped after 20 minutes."),
    ("antibiotics not stopped after five days", "Antibiotics stopped after five days."),
    ("no appetite", "No nausea, vomiting, diarrhoea or loss of appetite."),
    ("no appetite", "There is no weight loss, fever, or anorexia."),
    ("patient was informed", "The patient was alert."),
    ("patient was alert and orientated", "The patient was told and orientated."),
    ("preterm rupture of membranes at 31 weeks", "Premature rupture of membranes at 31 weeks."),
    ("deliberate self-harm", "He harmed himself accidentally."),
    ("no allergies", "NKDA, severe peanut allergy."),
    ("transferred to the NICU", "Transferred to the special care baby unit."),
    ("lives in a nursing home", "Lives in a residential home."),
    ("went home", "Discharged to a nursing home."),
    ("not aware of the weakness", "Not told of the weakness."),
    ("oral intake refused", "Oral intake declined."),
    ("involuntary admission", "Unintended admission."),
    ("unresponsive", "There was no response to antibiotics."),
    ("low mood", "Depressed skull fracture."),
    ("bleeding stopped", "He came off his bike, bleeding."),
    ("loss of appetite", "Known anorexia nervosa."),
    ("gave birth", "Delivery of oxygen."),
    ("reduction of the hip", "The hip pain decreased."),
    ("took too many tablets", "Overdosed by the nurse."),
    ("breathing tube", "Exercise test (ETT) normal."),
    ("delayed", "Her late husband was a smoker."),
    ("fast ventricular response", "The rapid response team attended."),
    ("lump", "Body mass index 31."),
    ("walking frame", "Mr Walker was seen."),
    ("creatinine increased", "Rose-coloured urine, creatinine 90."),
    ("patient expired", "The patient's drug was out of date."),
    ("pulses absent", "Pulseless VT."),
    ("redness", "Red eye."),
    ("rash", "Tooth eruption."),
    ("spectacles", "Drank two glasses of wine."),
    ("plaster cast", "Urine showed granular casts."),
    ("venflon", "Nasal cannula oxygen."),
    ("eyelid swollen", "The lid of the box was swollen."),
    ("dislodged", "The book fell out."),
    ("no history of stroke", "No stroke on CT."),
    ("no known allergies", "No allergies known except penicillin."),
    ("aspirin before the test", "The test before aspirin."),
    ("not weight-bearing", "He is bearing weight without pain."),
    ("no loss of consciousness", "He passed out."),
    ("stopped smoking two years ago", "Smoking cessation advice two years ago."),
    ("no antibiotics for 5 days", "antibiotics stopped after 5 days"),
    ("CPR stopped after 40 minutes", "no CPR for 40 minutes"),
    ("no oxygen for two hours", "oxygen stopped after two hours"),
    ("haemoglobin dropped to 70 g/L", "Hb dropped from 70 g/L"),
    ("weight reduced by 10 kg", "weight reduced to 10 kg"),
    ("dose was reduced by 5 mg", "dose lowered to 5 mg"),
    ("creatinine rose by 120", "creatinine increased to 120"),
    ("drop of 2 g/dL in haemoglobin", "haemoglobin reduced to 2 g/dL"),
    ("low sodium diet", "hyponatraemia due to diet"),
    ("high potassium diet", "hyperkalaemia from the diet"),
    ("low glucose drinks given", "drinks given for hypoglycaemia"),
    ("drinking a lot of alcohol", "polydipsia, alcohol"),
    ("no history of fractures", "X-ray showed no fractures"),
    ("no history of seizures", "no seizures overnight on the ward"),
    ("no history of tumours", "no tumours on CT"),
    ("no history of gallstones", "no gallstones on ultrasound"),
    ("family history of breast cancer (mother)", "history of breast cancer, mother has diabetes"),
    ("biopsy came back as melanoma", "biopsy: recurrent melanoma"),
    ("scan came back with a clot", "recurrent clot on scan"),
    ("tooth knocked out in the fall", "unconscious in the fall, tooth broken"),
    ("wound opened in theatre for washout", "wound dehiscence, washout in theatre"),
    ("missed fracture", "fracture not attended"),
    ("brain atrophy on MRI", "muscle wasting on MRI of the brain"),
    ("post-void dribbling", "post-void drooling"),
    ("likely to need dialysis", "suspected dialysis need"),
    ("given another patient's insulin", "patient given additional insulin"),
    ("family was consulted about resuscitation", "family asked about resuscitation"),
    ("breathing had slowed to 8", "respiratory rate recovered to 8"),
    ("attended the surgery on Monday", "attended for an operation on Monday"),
    ("operation was moved to Friday", "she was transferred on Friday"),
    ("mother was told to ring again", "mother told that the ward would call back"),
    ("not been listed for a transplant", "transplant not documented"),
    ("tube position was confirmed", "tube position was found to be wrong"),
    ("lesion in liver segment 4", "4 liver lesions"),
    ("bed on ICU was allocated", "in an ICU bed"),
    ("wound was cut from broken glass", "wound reduced, broken glass"),
    ("device recalled by the manufacturer", "device remembered by the manufacturer"),
]
"""A term, and an output with words like its own that says something else, which the narrative does not."""


@pytest.mark.parametrize(("term", "signal"), NEVER_SAID)
def test_a_term_is_not_said_by_words_of_another_meaning(term: str, signal: str) -> None:
    (miss,) = diagnose(Expectations((term,), (), ()), Output((signal,), ""), f"{term}.").misses
    assert miss.verdict != "term", miss


def test_a_group_of_words_alone_is_not_the_term() -> None:
    (miss,) = diagnose(Expectations(("reduced",), (), ()), Output(("lowered",), ""), "It was reduced.").misses
    assert miss.verdict == "look"


def test_the_place_is_that_of_the_other_words_and_not_of_what_looks_most_like_the_term() -> None:
    output = Output(("informed about the scan", "told about the nodule"), "")
    term = "was informed about the nodule"
    (miss,) = diagnose(Expectations((term,), (), ()), output, f"{term}.").misses
    assert (miss.verdict, miss.in_other_words) == ("term", True)
    assert miss.passage == Passage("signals", 1, 0, len("told about the nodule"))


def cut(text: str) -> list[Item]:
    return [*in_sentences(text)]


def in_sentences(text: str) -> Iterator[Item]:
    return chain.from_iterable(sentences(text, words(text, 100)))


def keys(items: list[Item]) -> list[str]:
    return [item.key for item in items]
