"""Values of an output that its narrative does not have."""

import pytest

from bench.yardstick.values import MADE, OF_ANOTHER, SentencePair
from safe_core import Output
from safe_core.unsupported import count_unsupported, unsupported_values

STORY = (
    "[doctor] so agnes is a seventy four year old lady with a sore left hip . all right . she fell two months ago "
    "[patient] yes , on the third of march , around half past six in the evening . "
    "[doctor] she takes ramipril 5 milligrams once a day and apixaban two and a half milligrams twice a day , and goes "
    "to physio three days a week . her pressure was one forty two over eighty , and she waited a couple of hours . "
    "[doctor] i looked at the right wrist too . weight eighty two point five kilos , temperature 37.2 ."
)


def told(summary: str, narrative: str | None = STORY) -> list[tuple[str, str]]:
    return [(each.kind, each.text) for each in unsupported_values(Output(summary=summary), narrative)]


@pytest.mark.parametrize(
    "said",
    [
        "A 74-year-old woman.",
        "She fell 2 months ago.",
        "Fall on 3 March at 18:30.",
        "Ramipril 5 mg daily, apixaban 2.5 mg BID.",
        "Physiotherapy 3 times per week.",
        "BP 142/80 mmHg, weight 82.5 kg, T 37.2 °C.",
        "Waited 2 hours.",
        "The left hip hurts; the right wrist was seen.",
        "Ramipril 5000 mcg daily.",  # plain conversion
        # what claims nothing
        "1. Hip pain: rest.\n2. Hypertension: go on.\n(3) Falls.",
        "Seen as said in [12] and [3].",
        "Cranial nerves II-XII are intact. COVID-19 and a T9 level.",
        "One of those things, first seen today.",
        "No number at all.",
    ],
)
def test_what_the_narrative_has_in_any_wording_is_supported(said: str) -> None:
    assert told(said) == []


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("A 71-year-old woman.", "71-year-old"),
        ("She fell 2 weeks ago.", "2 weeks"),
        ("BP 138/86, as usual.", "138/86"),
        ("HR 72.", "72"),
        ("Saturation 97% on air.", "97%"),
        ("Apixaban 2.5 mg twice daily is new, then 10 mg.", "10 mg"),
        ("Fall on 4 March.", "4 March"),
        ("Fall at 19:15.", "19:15"),
        ("Ramipril four times a day.", "four times a day"),
        ("Clear lungs bilaterally, and follow up in 6 weeks.", "6 weeks"),
    ],
)
def test_what_it_has_in_no_wording_is_told(said: str, what: str) -> None:
    assert told(said) == [("nowhere", what)]


def test_a_side_that_nobody_named_is_told_and_an_agreement_names_none() -> None:
    story = "[doctor] all right , show me the left knee . that's right . right now it is fine ."
    assert told("The right knee hurts.", story) == [("nowhere", "right")]
    assert told("Edema bilaterally.", story) == [("nowhere", "bilaterally")]
    assert told("Edema of both legs, left knee fine.", story) == []


@pytest.mark.parametrize(
    "story",
    ["Balloon at 09:50. Right coronary artery stented.", "Left arm weak, right arm normal.", "[nurse] right arm ."],
)
def test_a_side_behind_a_pause_is_one(story: str) -> None:
    assert told("Her right arm.", story) == []


def test_a_side_of_something_else_is_of_another_kind() -> None:
    story = "The left knee hurts, the right elbow is fine."
    assert told("The right knee hurts.", story) == [("of_something_else", "right")]
    assert told("The right knee hurts.", "Both knees hurt.") == []


def test_a_dose_of_another_drug_is_of_another_kind() -> None:
    story = (
        "She takes metoprolol 25 mg twice a day. Much later we spoke at length about her sleep, about her garden, and "
        "then about the warfarin, which is fine as it is."
    )
    assert told("Warfarin 25 mg.", story) == [("of_something_else", "25 mg")]
    assert told("Metoprolol 25 mg.", story) == []


def test_only_values_that_are_nowhere_are_counted() -> None:
    story = "The left knee hurts, the right elbow is fine. She takes 5 mg."
    said = Output(summary="The right knee hurts. She takes 8 mg.")
    assert {each.kind for each in unsupported_values(said, story)} == {"nowhere", "of_something_else"}
    assert count_unsupported(said, story) == 1


@pytest.mark.parametrize("pair", [*MADE, *OF_ANOTHER], ids=lambda pair: f"{pair.sort}: {pair.output}")
def test_a_labelled_sentence_has_the_values_told_that_its_narrative_lacks(pair: SentencePair) -> None:
    assert pair.told == pair.expected


def test_the_nearest_value_of_the_same_sort_and_the_place_are_told() -> None:
    output = Output(("Hip pain", "Ramipril 8 mg"), "Well.", ("Is it 9 mg?",))
    (found,) = unsupported_values(output, STORY)
    assert (found.text, found.nearest) == ("8 mg", "5 milligrams")
    assert (found.passage.field, found.passage.element, found.passage.start, found.passage.end) == ("signals", 1, 9, 13)


@pytest.mark.parametrize(
    ("said", "story", "nearest"),
    [
        ("8 mg", "5 mg, and she weighs 8 kg.", "5 mg"),
        ("8 mg", "She weighs 8 kg.", None),  # no dose
        ("300 mg", "2 g, then 1000 mg.", "1000 mg"),  # of one unit before another
        ("3 days", "For 4 hours, then for 2 days.", "2 days"),
        ("9 cm", "4 mm, 5'10\" tall.", "4 mm"),
        ("4 May 2020", "Seen on 1 June 2021 and on 28 April 2020.", "28 April 2020"),
        ("18:40", "At 06:15, at 18:05 and at 23:50.", "18:05"),
        ("150/90", "120/80, later 148/92.", "148/92"),
        ("every 8 hours", "Every 6 hours.", "Every 6 hours"),
    ],
)
def test_the_nearest_value_is_of_the_same_family_of_units(said: str, story: str, nearest: str | None) -> None:
    (found,) = unsupported_values(Output(summary=said), story)
    assert found.nearest == nearest


@pytest.mark.parametrize("narrative", [None, "", " \n"])
def test_without_a_narrative_nothing_is_told(narrative: str | None) -> None:
    assert told("BP 138/86.", narrative) == []


def test_a_long_narrative_with_the_same_dose_again_and_again_supports_it() -> None:
    narrative = "She takes aspirin 81 mg daily. " * 1_000
    assert unsupported_values(Output((narrative[: len(narrative) // 4],)), narrative) == ()


@pytest.mark.parametrize(
    ("told", "claimed", "count"),
    [
        ("aspirin {0}.5 mg daily. ", "aspirin {0}.25 mg daily. ", 500),  # the first 500 are told
        ("it was {0} then. ", "aspirin {0} mg, warfarin {0} mg. ", 0),
        ("he weighs {0} lb. ", "weight {0}.4 kg. ", 500),
        ("temperature of {0}. ", "temp {0}.4 C. ", 463),
    ],
)
def test_texts_full_of_values_are_compared_whole(told: str, claimed: str, count: int) -> None:
    """One by one, that would be millions of comparisons."""
    narrative, output = ("".join(map(each.format, range(1, 1_001))) for each in (told, claimed))
    found = unsupported_values(Output((output,)), narrative)
    assert len(found) == count
