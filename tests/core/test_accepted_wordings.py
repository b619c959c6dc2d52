"""Accepted wordings: what counts as one, and what they do to a miss, which is nothing but its verdict."""

import pytest

from safe_core import Criterion, Expectations, Output
from safe_core.accepted_wordings import Accepted, is_accepted, merged
from safe_core.diagnosis import diagnose

ACCEPTED: Accepted = (("short of breath", ("SOB", "dyspnoea")), ("fever", ("febrile",)))


@pytest.mark.parametrize(
    ("criterion", "term", "output", "accepted"),
    [
        ("CR", " Short of breath", Output(("Has sob",)), True),  # by the matching rule
        ("CR", "short of breath", Output(summary="Dyspnoea at rest."), True),
        ("AC", "short of breath", Output(("SOB",), "Well."), False),  # which reads the summary alone
        ("CR", "short of breath", Output(("febrile",)), False),  # the wording of another term
        ("CR", "short of breath", Output(followup_questions=("SOB?",)), False),
        ("AH", "fever", Output(followup_questions=("Febrile?",)), False),  # never for a forbidden term
        ("CR", "cough", Output(("SOB",)), False),
    ],
)
def test_a_term_is_accepted_where_its_criterion_finds_one_of_its_wordings(
    criterion: Criterion, term: str, output: Output, *, accepted: bool
) -> None:
    assert is_accepted(ACCEPTED, criterion, term, output) is accepted


def test_an_accepted_miss_keeps_its_answers_and_asks_for_nothing() -> None:
    expectations = Expectations(("short of breath", "fever"), (), ("short of breath",))
    output = Output(("SOB at night",), "No fever.")
    plain = diagnose(expectations, output, "She is dyspnoeic.").misses
    settled, other = diagnose(expectations, output, "She is dyspnoeic.", (), ACCEPTED).misses
    assert (settled.verdict, settled.remedy, settled.row) == ("accepted", "none", "")
    assert settled.output_says == plain[0].output_says
    assert other == plain[1], "the summary, which AC reads, has no accepted wording"


def test_those_of_several_holders_are_one() -> None:
    assert merged([ACCEPTED, (("fever", ("hot", "febrile")),)]) == (ACCEPTED[0], ("fever", ("febrile", "hot")))
