"""Who must act on a miss, rule by rule, in sentences of our own."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

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
    # a passage that spells out an acronym, or has a word in another form, says it
    ("MMSE was 22 out of 30", Output(("Mini Mental State Examination 22/30",), ""), "CR", "term"),
    ("Folic acid tablets and thiamine were given", Output(("thiamine and folic acid tablet given",), ""), "CR", "term"),
    # another claim is the output's, whichever denies
    ("No swab had been requested", Output(("swab requested",), ""), "CR", "output"),
    ("thiamine were given", Output(("thiamine withheld",), ""), "CR", "output"),
    # but not where the narrative has it too
    ("burnt her left forearm", Output(("burn of the palm",), "Her left palm was burnt."), "CR", "prompt"),
    # words of its own in the place of those that are missing are for a person
    ("deep burn of the palm", Output(("full-thickness burn of the palm",), ""), "CR", "look"),
    ("Folic acid tablets and thiamine were given", Output(("folic acid and vitamin tablets",), ""), "CR", "look"),
    # what the narrative does not say in these words is for the term
    ("a third-degree burn of the palm", Output(("burn of the palm",), ""), "CR", "term"),
]


@pytest.mark.parametrize(("term", "output", "criterion", "verdict"), VERDICTS)
def test_the_first_rule_that_holds_decides(term: str, output: Output, criterion: str, verdict: Verdict) -> None:
    lists = ((term,), (), ()) if criterion == "CR" else ((), (), (term,))
    (miss,) = diagnose(Expectations(*lists), output, NARRATIVE).misses
    assert miss.verdict == verdict, miss


# --- made misses ------------------------------------------------------------------------------------------------------

LABELS = Path(__file__).parent / "labels"
MADE = json.loads((LABELS / "made_verdicts.json").read_text(encoding="utf-8"))
"""104 misses in narratives of our own, each labelled by the one who wrote it before any was tried.

When M12 to M31 were first tried, 26 of their 40 were met. Since then all of them have been tuned on.
"""
DEVELOPED = json.loads((LABELS / "developed_verdicts.json").read_text(encoding="utf-8"))
"""1,305 further misses, labelled by the one who wrote the rules, before any was tried; some labels allow two verdicts.

The groups were tried one after the other, and the rules were changed by what one showed before the next was tried: all
but D12 and D17 have been tuned on. D01 to D05 were written before any rule was changed. D13 and D16 have a sentence or
two for each rule that set E below asked for, D18 several for each that F asked for, and all three sentences that the
rules must leave alone; D14, D15, D17 and a part of D18 are whole narratives. D19 has light paraphrases in other
specialties than those of H, most of them beside a sentence with a changed value, side, person or denial; it had reached
84 before those groups were taken out.
"""
BLIND = json.loads((LABELS / "blind_verdicts.json").read_text(encoding="utf-8"))
"""1,288 misses in thirteen sets by thirteen people, who had seen neither the rules nor each other's labels.

Second readers, who had not seen the labels of A to F, agreed with 623 of their 625; where a second verdict is allowed,
either counts. G was written to be hard: swapped findings, turned comparisons, denials and opposites in other words. H
was written as ordinary outputs, and all their misses were taken; a second reader agreed on 99 of its 100. One of these,
which is found in the summary and so is no miss, was taken out. I was written likewise, when the rules had learned from
H; a second reader agreed on 70 of its 73. The writers of G, H and I thought that CR reads the signals alone; in I, the
second reader, who knew that it reads the summary too, corrected the one label that this had made wrong. When groups of
words were taken out of the plain reading because they do not always mean the same ("premature", "preterm"), H lost
seven of the 91 that it had reached, and I one of its 55.
The writers of J to M knew how real narratives, terms and outputs look, and took every miss of their outputs. Those of
J and K reworded more than real outputs do, those of L and M about as much. Second readers agreed on all of J, K and L,
and on 81 of the 82 of M. The rules learned from I, then from J, K and L, before M was tried. A reviewer then invented
sentences that some of the new rules decided wrongly; these rules were taken out, which cost I, J and K ten.
All but D and M have been tuned on since they were first tried. Nothing has been tuned on these two: M and the 101 real
misses of test_diagnosis_real.py are the measure of today's rules.
"""
# set → its misses; met when first tried; met now; decided wrongly now: `term` or `output` where the label is another
BLIND_SETS = {
    "A": (80, 66, 78, 0),
    "B": (75, 54, 71, 1),
    "C": (147, 117, 141, 0),
    "D": (142, 119, 128, 3),
    "E": (89, 67, 85, 0),
    "F": (92, 71, 87, 0),
    "G": (128, 56, 86, 0),
    "H": (99, 61, 84, 0),
    "I": (73, 55, 59, 0),
    "J": (95, 73, 77, 0),
    "K": (104, 79, 80, 0),
    "L": (82, 70, 72, 0),
    "M": (82, 69, 69, 0),
}
# group → its misses; met by the rules before all changes (of D13 to D17, before those that E led to; of D18, before
# those that F led to; of D19, before those that H led to); met when it was first tried; met now
GROUPS = {
    "D01": (51, 39, 39, 51),
    "D02": (52, 35, 45, 48),
    "D03": (52, 31, 39, 50),
    "D04": (48, 33, 37, 43),
    "D05": (48, 30, 37, 44),
    "D06": (55, 31, 42, 52),
    "D07": (50, 26, 39, 43),
    "D08": (46, 25, 33, 36),
    "D09": (46, 34, 41, 44),
    "D10": (42, 30, 35, 39),
    "D11": (42, 29, 36, 39),
    "D12": (36, 27, 32, 32),
    "D13": (120, 52, 58, 115),
    "D14": (85, 68, 71, 79),
    "D15": (65, 47, 52, 60),
    "D16": (100, 57, 87, 93),
    "D17": (38, 31, 34, 34),
    "D18": (231, 156, 206, 214),
    "D19": (98, 39, 80, 71),
}
_DECIDED = {"term", "output"}


class Judged(NamedTuple):
    """A labelled miss: its id, the verdict on it, and those that its label allows."""

    name: str
    said: Verdict
    allowed: set[str]


def judged(cases: list[dict[str, Any]]) -> Iterator[Judged]:
    for case in cases:
        listed = {name: tuple(each["term"] for each in case["misses"] if each["criterion"] == name) for name in READ_BY}
        expectations = Expectations(listed.get("CR", ()), (), listed.get("AC", ()))
        misses = diagnose(expectations, Output.parse(case["output"]), case["narrative"]).misses
        found = {(miss.criterion, miss.term): miss.verdict for miss in misses}
        for label in case["misses"]:
            allowed = {label["verdict"], label.get("also", label["verdict"])}
            yield Judged(label["id"], found[label["criterion"], label["term"]], allowed)


@cache
def developed() -> list[Judged]:
    return [*judged(DEVELOPED)]


def wrongly_decided(verdicts: list[Judged]) -> set[str]:
    return {each.name for each in verdicts if each.said in _DECIDED and each.said not in each.allowed}


def test_the_verdicts_on_made_misses_are_those_of_their_labels() -> None:
    verdicts = [*judged(MADE)]
    assert len(verdicts) == 104
    assert sum(each.said in each.allowed for each in verdicts) >= 103
    assert not wrongly_decided(verdicts)


@pytest.mark.parametrize("name", BLIND_SETS)
def test_the_verdicts_on_misses_that_others_wrote_are_mostly_those_of_their_labels(name: str) -> None:
    verdicts = [*judged([case for case in BLIND if case["misses"][0]["id"].startswith(name)])]
    count, _, met, wrong = BLIND_SETS[name]
    assert len(verdicts) == count
    assert sum(each.said in each.allowed for each in verdicts) >= met
    assert len(wrongly_decided(verdicts)) <= wrong


@pytest.mark.parametrize("group", GROUPS)
def test_the_verdicts_on_developed_misses_are_mostly_those_of_their_labels(group: str) -> None:
    verdicts = [each for each in developed() if each.name.startswith(group)]
    count, _, _, met = GROUPS[group]
    assert len(verdicts) == count
    assert sum(each.said in each.allowed for each in verdicts) >= met


def test_few_verdicts_decide_wrongly_and_few_leave_it_to_a_person() -> None:
    verdicts = developed()
    assert wrongly_decided(verdicts) == {
        "D07-05c",  # "four weeks later" and "after four weeks": the label leaves it to a person
        "D07-12b",  # "no harm came to" and "was not harmed", likewise
        "D08-11a",  # the signals say it rightly, the summary wrongly
        "D18-168",  # "attended the sleep clinic" and "severe sleep apnoea" have one word in common, and each a date
    }
    assert sum(each.said == "look" for each in verdicts) <= 0.15 * len(verdicts)
