"""What an output says of a term, for each line of the lexicon in a sentence that is read otherwise without the line."""

from pathlib import Path
from typing import Final, NamedTuple, get_args

import pytest

from safe_core.diagnosis import OutputSays
from safe_core.diagnosis.answers import answer

FILE: Final = Path(__file__).parent / "labels" / "lexicon_sentences.tsv"
RELATIONS: Final = ("same", "perhaps", "opposite", "rival", "status", "ends", "weak", "measure", "units", "forms")


class Sentence(NamedTuple):
    """A term, a sentence of an output, and what a person says that it says."""

    relation: str
    term: str
    text: str
    says: str


def sentences() -> list[Sentence]:
    found, relation = [], ""
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("# ") and line[2:] in RELATIONS:
            relation = line[2:]
        elif line and not line.startswith("#"):
            found.append(Sentence(relation, *line.split("\t")))
    return found


WRONG_YET: Final = frozenset(
    """
He gave up tennis.
She quit coffee.
The knee replacement in March was postponed.
The cough comes while sitting.
Underweight since childhood.
He quit smoking cigars.
Aortic sclerosis.
Infertility workup.
Jaw clicking.
Muscle wasting.
Spine radiographs.
Wrist physiotherapy.
It was detected.
Lack of energy and appetite.
Bilirubin in 200 ml.
Chest: CTAB.
""".strip().splitlines()
)
"""The sentences that are not read as a person reads them. One that is read rightly must be taken off the list."""


def test_each_line_has_a_term_a_sentence_and_an_answer() -> None:
    read = sentences()
    assert {sentence.relation for sentence in read} == set(RELATIONS)
    assert {sentence.says for sentence in read} <= set(get_args(OutputSays))
    assert len({(sentence.term, sentence.text) for sentence in read}) == len(read)


@pytest.mark.parametrize("relation", RELATIONS)
def test_each_sentence_says_what_a_person_reads(relation: str) -> None:
    asked = [sentence for sentence in sentences() if sentence.relation == relation]
    wrong = {
        each.text: f"{each.term!r} in {each.text!r}: a person reads {each.says}, answered {says}"
        for each in asked
        if (says := answer(each.term, [each.text]).says) != each.says
    }
    assert not [told for text, told in wrong.items() if text not in WRONG_YET]
    assert not [each.text for each in asked if each.text in WRONG_YET and each.text not in wrong], "now right"


def test_the_list_of_what_is_read_wrongly_only_shrinks() -> None:
    assert len(WRONG_YET) <= 16
    assert {sentence.text for sentence in sentences()} >= WRONG_YET
