"""Who must act on a miss, rule by rule, in sentences of our own."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from safe_core import Expectations, Output
from safe_core.diagnosis import Verdict, diagnose
from safe_core.diagnosis.output_texts import READ_BY

NARRATIVE = (
    "She burnt her left forearm on a stove at noon. There was a deep burn of the palm. "
    "The MMSE was 22 out of 30. Folic acid tablets and thiamine were given. No swab had been requested."
)

VERDICTS: list[tuple[str, Output, str, Verdict]] = [
    # what stands word for word in a field that the criterion does not read is for the prompt
    ("deep burn of the palm", Output((), "", ("Was there a deep burn of the palm?",)), "CR", "prompt"),
    # another value of the same finding is the output's
    ("deep burn of the palm", Output(("superficial burn of the palm",), ""), "CR", "output"),
    ("on a stove at noon", Output((), "She burnt her forearm on a stove at 13:00."), "AC", "output"),
    # but not where the passage is about something else
    ("No swab had been requested", Output(("a swab of the palm",), ""), "CR", "prompt"),
    # the same numbers in another form, and the same words in two places, are for the term
    ("MMSE was 22 out of 30", Output(("MMSE 22/30",), ""), "CR", "term"),
    (
        "Folic acid tablets and thiamine were given",
        Output(("folic acid and thiamine given",), "Treated with folic acid tablets and thiamine."),
        "CR",
        "term",
    ),
    # what is nowhere is for the prompt
    ("Folic acid tablets and thiamine were given", Output(("folic acid given",), ""), "CR", "prompt"),
    # what the narrative does not say in these words is for the term
    ("a third-degree burn of the palm", Output(("burn of the palm",), ""), "CR", "term"),
]


@pytest.mark.parametrize(("term", "output", "criterion", "verdict"), VERDICTS)
def test_the_first_rule_that_holds_decides(term: str, output: Output, criterion: str, verdict: Verdict) -> None:
    lists = ((term,), (), ()) if criterion == "CR" else ((), (), (term,))
    (miss,) = diagnose(Expectations(*lists), output, NARRATIVE).misses
    assert miss.verdict == verdict, miss


# --- made misses ------------------------------------------------------------------------------------------------------

MADE = json.loads((Path(__file__).parent / "labels" / "made_verdicts.json").read_text(encoding="utf-8"))
"""104 misses in narratives of our own, each labelled by the one who wrote it before any was tried.

M12 to M31 came last: nothing was tuned on them, and 26 of their 40 are met. Of the others, 51 of 64 were met at first.
"""


def made_verdicts() -> Iterator[tuple[str, Verdict, set[str]]]:
    """Give the id of each miss, its verdict, and those that its label allows."""
    for case in MADE:
        listed = {name: tuple(each["term"] for each in case["misses"] if each["criterion"] == name) for name in READ_BY}
        expectations = Expectations(listed.get("CR", ()), (), listed.get("AC", ()))
        misses = diagnose(expectations, Output.parse(case["output"]), case["narrative"]).misses
        found = {(miss.criterion, miss.term): miss.verdict for miss in misses}
        for label in case["misses"]:
            allowed = {label["verdict"], label.get("also", label["verdict"])}
            yield label["id"], found[label["criterion"], label["term"]], allowed


def test_the_verdicts_on_made_misses_are_mostly_those_of_their_labels() -> None:
    verdicts = [*made_verdicts()]
    assert len(verdicts) == 104
    assert sum(said in allowed for _, said, allowed in verdicts) >= 80
    wrong = {name: said for name, said, allowed in verdicts if said in {"term", "output"} and said not in allowed}
    # Both say it in other words, on which the label does not decide.
    assert wrong == {"M02b": "term", "M48b": "term"}
