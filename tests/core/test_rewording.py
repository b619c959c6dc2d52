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
        ("a 9-hour wait", ["wait"], True),  # which the narrative does not have
        ("no infection", ["signs of infection"], False),
        ("no infection", ["no signs of infection"], True),
        ("left hand", ["hand was warm"], False),
        ("arrived at 18:00", ["arrived", "at 18:00"], True),
    ],
)
def test_what_must_be_kept(term: str, phrases: list[str], kept: bool) -> None:
    assert NARRATIVE.keeps(term, phrases) is kept


def test_brackets_are_not_torn_apart() -> None:
    found = [*NARRATIVE.rewordings("the normal film, by report", "the film was normal (by report, it says)")]
    assert all(NARRATIVE.text[at.start : at.end].count("(") == 0 for each in found for at in each)
