"""What a text says of each thing that it names: denied, undone, unsure, asked, supposed, past, somebody else's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_core.diagnosis.reading import Reading, read
from tests.support.growth import grows_as_the_length_does

# Sentences, and what is said of their words: "-" is denied, "x" undone, "?" asked, "~" unsure, "if" supposed.
SIGNS = {"denied": "-", "undone": "x", "asked": "?", "unsure": "~", "supposed": "if"}


def said_of(reading: Reading, word: str) -> str:
    """Give the signs of the statuses of the facts at the last place of a word."""
    start = reading.text.lower().rindex(word)
    facts = [fact for clause in reading.clauses for fact in clause.facts if fact.start <= start < fact.end]
    assert facts, f"{word!r} is no fact of {reading.text!r}"
    statuses = sorted({status for fact in facts for status in fact.statuses})
    return " ".join(SIGNS.get(status, status) for status in statuses)


DENIED = [
    # a denial takes what follows it, and the members of a list
    ("No rash, vertigo, earache.", {"rash": "-", "vertigo": "-", "earache": "-"}),
    ("no hoarseness, stridor, or drooling at night", {"hoarseness": "-", "stridor": "-", "drooling": "-"}),
    ("No rash / itching", {"rash": "-", "itching": "-"}),
    ("He had neither gout nor psoriasis.", {"gout": "-", "psoriasis": "-"}),
    ("Feet w/o ulcers", {"ulcers": "-"}),
    ("Smear -ve for parasites", {"parasites": "-"}),
    ("negative: mumps, measles", {"mumps": "-", "measles": "-"}),
    ("No known history of rickets", {"rickets": "- past"}),
    ("No known history of epilepsy", {"epilepsy": "-"}),  # it lasts
    ("a 3-week history of vertigo", {"vertigo": ""}),
    ("She had vertigo, which resolved", {"vertigo": ""}),
    ("no further signs of ischemia", {"ischemia": "-"}),
    ("The film would not support a fracture", {"fracture": "-"}),
    ("She never developed jaundice", {"jaundice": "-"}),
    ("The patient was n't given heparin", {"heparin": "-"}),
    ("The patient wasn't given heparin", {"heparin": "-"}),
    # or what is before it, where nothing follows
    ("DVT ruled out.", {"dvt": "-"}),
    ("Meningitis was ruled out by lumbar puncture", {"meningitis": "-", "puncture": ""}),
    ("Seizures did not occur", {"seizures": "-"}),
    ("Effusion was not seen on the film", {"effusion": "-"}),
    ("Gout and psoriasis were denied", {"gout": "-", "psoriasis": "-"}),
    ("Mumps, measles and rubella were absent.", {"mumps": "-", "measles": "-", "rubella": "-"}),
    ("Vertigo: none", {"vertigo": "-"}),
    ("Vertigo: denies", {"vertigo": "-"}),
    # a heading says no more than what follows it
    ("Vertigo: He denies vertigo", {"vertigo": "-"}),
    ("Non-smoker with asthma", {"asthma": ""}),
]
NOT_DENIED = [
    ("No jaundice, sclera clear", {"jaundice": "-", "sclera": "", "clear": ""}),
    (
        "no pain to percussion, reduced abduction and atrophy of the deltoid",
        {"pain": "-", "abduction": "", "atrophy": ""},
    ),
    ("denies vertigo but reports tinnitus", {"vertigo": "-", "tinnitus": ""}),
    ("He denies vertigo, reports tinnitus", {"vertigo": "-", "tinnitus": ""}),
    ("No gout and a psoriasis of the scalp", {"gout": "-", "psoriasis": ""}),
    ("No vertigo, pulse 88", {"vertigo": "-", "pulse": ""}),
    ("Despite no gout, psoriasis continued", {"gout": "-", "psoriasis": ""}),
    ("walking without difficulty and sleeping well", {"walking": "", "sleeping": ""}),
    ("not only vertigo but also tinnitus", {"vertigo": "", "tinnitus": ""}),
    ("The nurse did not overlook a pressure ulcer", {"nurse": "", "ulcer": ""}),
    ("The nurse noted an ulcer", {"ulcer": ""}),
    ("She says the rash was red, but she does not feel unwell", {"rash": ""}),
    ("The rash was there for quite some time", {"rash": "", "time": ""}),
    ("She had a biopsy, but has not had any problems since", {"biopsy": "", "problems": "-"}),
    ("no i take heparin every day", {"heparin": ""}),
]
TWICE = [
    ("He does not deny vertigo", {"vertigo": ""}),
    ("Meningitis cannot be excluded", {"meningitis": "~"}),
    ("The scan does not exclude meningitis", {"meningitis": "~"}),
    ("The scan was not cancelled", {"scan": ""}),
    ("The dressing was not without blood", {"blood": ""}),
    ("He takes heparin and denies missing doses", {"heparin": "", "doses": ""}),
    ("The ulcer has not healed", {"ulcer": "", "healed": "-"}),
]
UNDONE = [
    ("The scan was declined due to claustrophobia", {"scan": "x", "claustrophobia": ""}),
    ("Scan not done, claustrophobia", {"scan": "-", "claustrophobia": ""}),
    ("a scan, which was cancelled", {"scan": "x"}),
    ("The scan was planned but it was cancelled", {"scan": "x"}),
    ("The scan was cancelled because the biopsy had been done", {"scan": "x", "biopsy": ""}),
    ("The biopsy, unlike the scan, which was cancelled, had been done", {"scan": "x", "biopsy": ""}),
    ("Biopsy done; scan postponed.", {"biopsy": "", "scan": "x"}),
    ("The scan failed to take place", {"scan": "x"}),
    ("He stopped heparin and started warfarin", {"heparin": "x", "warfarin": ""}),
]
OTHERWISE = [
    ("If vertigo develops, call", {"vertigo": "if"}),
    ("If no bleeding is seen, go home", {"bleeding": "- if"}),
    ("Watch for vertigo or tinnitus", {"vertigo": "if", "tinnitus": "if"}),
    ("possible meningitis without rash", {"meningitis": "~", "rash": "-"}),
    ("His mother has gout, no psoriasis", {"gout": "theirs", "psoriasis": "-"}),
]
DIALOGUES = [
    ("any vertigo ? [patient] no", {"vertigo": "-"}),
    ("any vertigo ? [patient] uh , no", {"vertigo": "-"}),
    ("Any vertigo? No.", {"vertigo": "-"}),
    ("[doctor] any vertigo ? [patient] yeah , a little", {"vertigo": ""}),
    ("[doctor] any vertigo ? [patient] my ears ring", {"vertigo": "?"}),
    ("[doctor] any vertigo ?", {"vertigo": "?"}),
    ("[doctor] any vertigo ? any tinnitus ? [patient] no", {"vertigo": "-", "tinnitus": "-"}),
    ("[doctor] vertigo or tinnitus ? [patient] i have n't had any", {"vertigo": "-", "tinnitus": "-"}),
    ("[doctor] did you take the heparin ? [patient] i did", {"heparin": ""}),
    ("[doctor] does it itch ? [patient] it does n't", {"itch": "-"}),
    ("[doctor] no vertigo ? [patient] right", {"vertigo": "-"}),
    ("[doctor] do you have any vertigo [patient] no not really [doctor] okay", {"vertigo": "-"}),
    ("[doctor] do you have any vertigo [patient] yeah a little [doctor] okay", {"vertigo": ""}),
    ("[doctor] any vertigo [patient] nope [doctor] okay", {"vertigo": "-"}),
    ("[doctor] the rash is gone do you have any vertigo [patient] no", {"rash": "", "vertigo": "-"}),
]


@pytest.mark.parametrize(
    ("sentence", "said"),
    [*DENIED, *NOT_DENIED, *TWICE, *UNDONE, *OTHERWISE, *DIALOGUES],
    ids=lambda each: str(each)[:60],
)
def test_a_sentence_says_of_each_word_what_a_reader_takes_from_it(sentence: str, said: dict[str, str]) -> None:
    reading = read(sentence)
    assert {word: said_of(reading, word) for word in said} == said


def test_a_heading_is_denied_with_what_follows_it() -> None:
    heading, following = read("Vertigo: He denies vertigo").clauses
    assert [fact.statuses for fact in heading.facts] == [fact.statuses for fact in following.facts] == [{"denied"}]


def test_what_stands_behind_a_preposition_is_known_as_such() -> None:
    facts = {fact.key: fact.is_context for clause in read("No rash on the scalp").clauses for fact in clause.facts}
    assert facts == {"rash": False, "scalp": True}


def test_clauses_have_the_number_of_their_sentence() -> None:
    clauses = read("Gout began, but psoriasis did not. Heparin was given.").clauses
    assert [clause.sentence for clause in clauses] == [0, 0, 1]


WORDS = st.sampled_from(
    "no not n't and or , . ; : ? [doctor] [patient] rash denies was cancelled which if 5 mg yes i".split()  # noqa: SIM905
)


@given(st.text(max_size=80) | st.lists(WORDS, max_size=30).map(" ".join))
def test_facts_are_in_order_and_inside_their_clauses(text: str) -> None:
    clauses = read(text).clauses
    facts = [fact for clause in clauses for fact in clause.facts]
    assert [fact.start for fact in facts] == sorted(fact.start for fact in facts)
    assert all(0 <= fact.start < fact.end <= len(text) for fact in facts)
    assert all(clause.start <= fact.start and fact.end <= clause.end for clause in clauses for fact in clause.facts)
    assert [clause.sentence for clause in clauses] == sorted(clause.sentence for clause in clauses)


@pytest.mark.parametrize(
    "piece", ["no rash, ", "no rash or ", "rash ", "was denied ", "any rash ? [patient] no ", "5 mg "]
)
def test_time_does_not_grow_faster_than_the_text(piece: str) -> None:
    assert grows_as_the_length_does(read, piece)


def test_no_number_is_read_behind_the_last_word_that_is_read() -> None:
    text = "fever 39 C, pulse 88, potassium 5.6"
    assert read(text, 0).clauses == ()
    assert {fact.key for clause in read(text, 1).clauses for fact in clause.facts} == {"fever"}
