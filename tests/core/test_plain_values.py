"""Values that are spelled out or abbreviated are read like those that are not."""

import pytest

from safe_core.diagnosis.passages import Term
from safe_core.plain_values import plain, spelled_in

SPELLINGS = [
    ("fifty-five minutes", "55 minutes"),
    ("Forty five minutes", "45 minutes"),
    ("one hundred and ten minutes", "110 minutes"),
    ("a hundred and twenty-five mg", "125 mg"),
    ("two hundred tablets", "200 tablets"),
    ("a sixty-three-year-old man", "a 63-year-old man"),
    ("one and a half hours", "90 minutes"),
    ("half an hour", "30 minutes"),
    ("half of the leaflet", "50 percent of the leaflet"),
    ("A dozen stitches", "12 stitches"),
    ("half a dozen eggs", "6 eggs"),
    ("½ tablet", "0.5 tablet"),
    ("1½ hours", "90 minutes"),
    ("5 mg b.i.d.", "5 mg twice daily"),
    ("5 mg tid", "5 mg 3 times daily"),
    ("the L arm", "the left arm"),
    ("R-sided pain", "right-sided pain"),
]
# looks like one and is none
AS_IT_IS = ["twenty five-milligram tablets", "5 L of saline", "L4-L5", "dozens", "half-hearted", "a forbidden bidet"]


@pytest.mark.parametrize(("spelled", "written"), SPELLINGS)
def test_a_spelled_value_is_the_written_one(spelled: str, written: str) -> None:
    found, expected = ([item.key for item in Term(text).items if item.value] for text in (plain(spelled), written))
    assert found == expected
    assert [*spelled_in(spelled)]


@pytest.mark.parametrize("text", AS_IT_IS)
def test_what_looks_like_a_spelled_value_stays(text: str) -> None:
    assert plain(text) == text
    assert not [*spelled_in(text)]


@pytest.mark.parametrize(
    ("spelled", "written"),
    [
        *SPELLINGS[:6],
        ("four thousand pounds", "4000 pounds"),
        ("three thousand two hundred grams", "3200 g"),
        ("a hundred and ten thousand", "110000"),
        ("5 thousand units", "5000 units"),
        ("two dozen ticks", "24 ticks"),
        ("5000 two times", "5000 2 times"),
        ("100 two hours later", "100 2 hours later"),
        ("twenty one-litre bags", "20 1-litre bags"),
    ],
)
def test_a_diagnosis_reads_a_spelled_number_as_the_written_one(spelled: str, written: str) -> None:
    found, expected = ([item.key for item in Term(text).items if item.value] for text in (spelled, written))
    assert found == expected
