"""Rewordings of terms: in the narrative's words, with all that the term says and the narrative has."""

import pytest

from safe_core.rewording import Narrative

NARRATIVE = Narrative(
    "A girl arrived at the clinic at 18:00 on Sunday. Surgery was delayed until 02:00, resulting in an 8-hour wait. "
    "There were no signs of infection, and the left hand was warm. The film was normal (by report)."
)

CASES: list[tuple[str, str, list[tuple[str, ...]]]] = [
    # what the output has too comes first, then the narrative's own words
    (
        "arrived Sunday 18:00",
        "she arrived at the clinic at 18:00 on sunday.",
        [("arrived at the clinic at 18:00 on Sunday",)],
    ),
    # a fused term becomes the phrases that the output has
    (
        "surgery delayed until 02:00 with an 8-hour wait",
        "surgery was delayed until 02:00. this made an 8-hour wait.",
        [
            ("Surgery was delayed until 02:00", "8-hour wait"),
            ("Surgery was delayed until 02:00, resulting in an 8-hour wait",),
        ],
    ),
    # another value of the narrative is taken in
    ("9-hour wait", "nothing of it", [("8-hour wait",)]),
    # words that run on to a value which the term does not ask for are taken only from the output
    ("an 8-hour delay", "nothing of it", []),
    (
        "an 8-hour delay",
        "surgery was delayed until 02:00, resulting in an 8-hour wait.",
        [("delayed until 02:00, resulting in an 8-hour wait",)],
    ),
    # a denial stays
    ("there is no sign of infection", "no signs of infection were seen", [("no signs of infection",)]),
    # what the narrative does not tell cannot be said in its words
    ("severe dehydration", "dehydrated", []),
    # a term that stands in the narrative is not cut down to what the output lacks as well
    ("the left hand was warm", "nothing of it", []),
]


@pytest.mark.parametrize(("term", "read", "expected"), CASES)
def test_rewordings(term: str, read: str, expected: list[tuple[str, ...]]) -> None:
    found = [tuple(NARRATIVE.text[at.start : at.end] for at in each) for each in NARRATIVE.rewordings(term, read)]
    assert [each for number, each in enumerate(found) if each not in found[:number]] == expected


@pytest.mark.parametrize(
    ("term", "phrases", "kept"),
    [
        ("an 8-hour wait", ["wait"], False),
        ("a 9-hour wait", ["wait"], False),
        ("a 9-hour wait", ["8-hour wait"], True),  # what the narrative has in its place
        ("no infection", ["signs of infection"], False),
        ("no infection", ["no signs of infection"], True),
        ("left hand", ["hand was warm"], False),
        ("arrived at 18:00", ["arrived", "at 18:00"], True),
    ],
)
def test_what_must_be_kept(term: str, phrases: list[str], kept: bool) -> None:
    assert NARRATIVE.keeps(term, phrases) is kept


# narrative, term, and what may replace it: the first choice where the output copies the narrative; "" for nothing
CLAIMS: list[tuple[str, str, str]] = [
    # what the term denies, ends, withholds, refuses or doubts is denied in the phrase, too
    ("She is free of pain and walks well.", "no pain and walks well", "free of pain and walks well"),
    ("He failed to move the leg and fell.", "did not move the leg", "failed to move the leg"),
    ("He could not move the leg and fell.", "unable to move the leg", "could not move the leg"),
    ("He refused the transfusion at noon.", "transfusion not given at noon", "refused the transfusion at noon"),
    ("The nurse forgot to give the aspirin.", "aspirin not given by nurse", "nurse forgot to give the aspirin"),
    ("He avoided alcohol at home.", "no alcohol at home", "avoided alcohol at home"),
    ("She stopped taking aspirin at home.", "not taking aspirin at home", "stopped taking aspirin at home"),
    ("He is no longer on aspirin at home.", "stopped aspirin at home", "no longer on aspirin at home"),
    ("The abdomen is nontender today.", "abdomen not tender", "abdomen is nontender"),
    ("The ulcer healed without treatment.", "ulcer healed without any treatment", "ulcer healed without treatment"),
    ("The scan excluded fracture of the wrist.", "no fracture of wrist", "excluded fracture of the wrist"),
    ("There was no loss of consciousness.", "did not lose consciousness", "no loss of consciousness"),
    ("A fall, suspected to be a faint.", "suspected faint, a fall", "fall, suspected to be a faint"),
    ("He is afebrile with intact pulses.", "no fever, pulses intact", "afebrile with intact pulses"),
    # and nothing replaces it where it is not, or where something else is denied
    ("It is doubtful that he fell at home.", "did not fall at home", ""),
    ("He had dyspnea but no chest pain.", "no dyspnea, chest pain", ""),
    ("The CT did not exclude a bleed.", "no bleed on CT", ""),
    ("A fracture of the wrist was found.", "suspected fracture of wrist", ""),
    ("The discharge was complicated at noon.", "uncomplicated discharge at noon", ""),
    # no phrase is cut out of a denial that the term knows nothing of
    ("He refused surgery on Monday and consented on Tuesday.", "surgery consented Monday", ""),
    ("The ulcer healed after a week.", "ulcer healed untreated", ""),
    ("He may have fallen at home.", "he fell at home", "may have fallen at home"),
    ("Family history of stroke in May.", "family history of a stroke", "Family history of stroke"),
    ("Family history of stroke in May.", "history of a stroke in May", ""),
    # each value is kept, in whatever spelling, or the one that the narrative has in its place
    ("Needle time was fifty-five minutes.", "needle time of 55 minutes", "Needle time was fifty-five minutes"),
    ("Needle time was 55 minutes.", "needle time fifty-five minutes", "Needle time was 55 minutes"),
    ("The wait was one hundred and ten minutes.", "wait of 110 minutes", "wait was one hundred and ten minutes"),
    ("Her L arm was weak on exam.", "left arm weak on exam", "L arm was weak on exam"),
    ("Her left arm was weak on exam.", "L arm weak on exam", "left arm was weak on exam"),
    ("The left arm was weak.", "right arm weak", "left arm was weak"),
    ("The left arm was weak. The right arm was strong.", "weak right arm", ""),
    ("Pain in the left hip and the right knee.", "right hip pain, left knee pain", ""),
    ("A dozen stitches were placed.", "12 stitches placed", "A dozen stitches were placed"),
    ("Warfarin 5 mg twice daily.", "warfarin 5 mg b.i.d.", "Warfarin 5 mg twice daily"),
    ("Warfarin 5 mg daily.", "warfarin 5 mg b.i.d.", "Warfarin 5 mg daily"),
    ("Grade II injury of the right hand.", "grade 2 injury of hand", "Grade II injury of the right hand"),
    ("A 28-year-old woman fell down.", "27-year-old woman who fell", "28-year-old woman fell"),
    ("Her temperature was 42 °C with flu.", "temperature 43 °C with flu", "temperature was 42 °C with flu"),
    ("Creatinine was 1.2 on Monday and 2.4 on Friday.", "creatinine 1.2 on Friday", ""),
    ("It took more than 90 minutes to bleed.", "over 90 minutes to a bleed", "more than 90 minutes to bleed"),
    ("Two of five swabs were positive.", "5 swabs were positive", ""),
    ("The fever was high.", "fever of 39 °C was high", ""),
    # a phrase ends neither before its noun nor within a quotation
    ("An exam revealing normal tone.", "normal exam", "exam revealing normal tone"),
    ("He could not make the 'OK sign' at all.", "unable to make the OK sign", "could not make the 'OK sign'"),
    ("Anterior nerve (AIN) palsy of the arm.", "AIN palsy, arm", ""),
    ("Compartment syndrome of the calf.", "calf compartment seen", "Compartment syndrome of the calf"),
]  # fmt: skip


@pytest.mark.parametrize(("narrative", "term", "expected"), CLAIMS)
def test_what_replaces_a_term_claims_the_same(narrative: str, term: str, expected: str) -> None:
    told = Narrative(narrative)
    found = next(told.rewordings(term, narrative.lower()), ())
    assert " | ".join(told.phrases(found)) == expected


def test_single_words_which_any_output_has_replace_no_phrase() -> None:
    told = Narrative("The documentation of the transfer has discrepancies.")
    found = told.rewordings("discrepancies in the documentation noted", "discrepancies. documentation.")
    assert [told.phrases(each) for each in found] == [("documentation of the transfer has discrepancies",)]


@pytest.mark.parametrize(
    ("narrative", "phrase", "told"),
    [
        ("He has no fever today.", "no fever", True),
        ("He has a fever today.", "a fever", True),
        ("He has no fever today.", "fever", False),  # it is denied
        ("A feverish child.", "fever", False),  # not as a whole word
        ("He fell. He fell twice.", "fell twice", True),
    ],
)
def test_another_narrative_tells_a_phrase_only_if_it_does_not_deny_it(narrative: str, phrase: str, told: bool) -> None:
    assert Narrative(narrative).tells(phrase) is told


def test_brackets_are_not_torn_apart() -> None:
    found = [*NARRATIVE.rewordings("the normal film, by report", "the film was normal (by report, it says)")]
    assert all(NARRATIVE.text[at.start : at.end].count("(") == 0 for each in found for at in each)


DELAYED = "Surgical intervention was delayed until 00:00 Saturday after a 9-hour wait for a bed."


@pytest.mark.parametrize(
    ("narrative", "term", "read", "expected"),
    [
        *(
            (DELAYED, "surgery Saturday 00:00", read, ("intervention was delayed until 00:00 Saturday",))
            for read in ("delayed until 00:00 saturday", "surgical intervention was delayed until 00:00 saturday")
        ),
        (
            "Surgery was at 00:00 on Saturday.",
            "operation Saturday 00:00",
            "00:00 on saturday",
            ("Surgery was at 00:00 on Saturday",),
        ),
    ],
)
def test_a_phrase_still_says_what_happened(narrative: str, term: str, read: str, expected: tuple[str, ...]) -> None:
    told = Narrative(narrative)
    assert told.phrases(next(told.rewordings(term, read), ())) == expected
