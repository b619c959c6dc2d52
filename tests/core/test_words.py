"""How a text is cut into words, and what two spellings or forms of a word have in common."""

import pytest

from safe_core.diagnosis.words import fold, run_together, stem, words


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Pink, pulseless HAND.", ["pink", "pulseless", "hand"]),
        ("13-hour", ["13", "hour"]),  # a hyphen parts words
        ("8:30pm", ["8:30", "pm"]),  # digits and letters are parted
        ("8 p.m.", ["8", "pm"]),
        ("the patient's arm, the patients’ arms", ["the", "patient", "arm", "the", "patients", "arms"]),
        ("don't", ["dont"]),
        ("1,500 ml or 1.5 l", ["1500", "ml", "or", "1.5", "l"]),
        ("1,5", ["1.5"]),  # a decimal comma
        ("1,2,3", ["1", "2", "3"]),  # a list
        ("1, 5", ["1", "5"]),
        ("1,500", ["1500"]),
        (".5 mg", ["0.5", "mg"]),
        ("120/80", ["120/80"]),
        ("2024-03-12", ["2024-03-12"]),
        ("\ufb01bula caf\u00e9 cafe\u0301", ["fibula", "cafe", "cafe"]),  # ligature, composed, decomposed
        ("com\u00adpartment", ["compartment"]),  # soft hyphen
        ("38 °C, 91%", ["38", "degree", "c", "91", "percent"]),
        ("... !? —", []),
        ("", []),
    ],
)
def test_a_text_is_cut_into_folded_words(text: str, folded: list[str]) -> None:
    assert [word.folded for word in words(text, 100)] == folded


@pytest.mark.parametrize("text", ["Straße ﬁbula", "İİ x", "a\u0301 b", "8 p.m. today"])
def test_every_word_knows_its_place_in_the_original(text: str) -> None:
    for word in words(text, 100):
        assert fold(text[word.start : word.end]) == word.folded


def test_no_more_words_are_cut_than_asked_for() -> None:
    assert len(words("a " * 100, 7)) == 7


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("fracture", "fractures"),
        ("fracture", "fractured"),
        ("delay", "delayed"),
        ("delay", "delays"),
        ("injury", "injuries"),
        ("fall", "fell"),
        ("arrive", "arrival"),
        ("arrived", "arriving"),
        ("evaluate", "evaluation"),
        ("examined", "examination"),
        ("assess", "assessment"),
        ("refer", "referred"),
        ("swell", "swelling"),
        ("pulseless", "pulselessness"),
        ("unavailable", "unavailability"),
        ("visible", "visibility"),
        ("child", "children"),
        ("ruled", "rules"),  # their ends are no endings of RUL
        ("SOB".lower(), "sobs"),
    ],
)
def test_inflections_of_a_word_have_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("hypotension", "hypertension"),
        ("sob", "sobbing"),  # an abbreviation
        ("rul", "ruled"),
        ("abduction", "adduction"),
        ("pulse", "pulseless"),
        ("ulna", "ulnar"),
        ("left", "leave"),
        ("stable", "unstable"),
    ],
)
def test_other_words_have_other_stems(one: str, other: str) -> None:
    assert stem(one) != stem(other)


def test_words_are_run_together_but_two_numbers_never_become_one() -> None:
    assert run_together(words("pulse-less hand", 9)) == "pulselesshand"
    assert run_together(words("2-3 hours", 9)) == "2|3hours"


def test_no_odd_letter_is_lost_or_refused() -> None:
    for text in ("İİ", "ß", "\u0301", "٣", "²", "ﬁ", "😀", "\ud800"):
        assert [*map(len, words(text, 9))] in ([], [3])
        assert isinstance(fold(text), str)
