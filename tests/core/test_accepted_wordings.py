"""Accepted wordings: what counts as one, and what they do to a miss, which is nothing but its verdict."""

import pytest

from safe_core import DEFAULT_POLICY, Criterion, Expectations, Output, prepare, score
from safe_core.accepted_wordings import Accepted, is_accepted, merged
from safe_core.diagnosis import diagnose
from safe_core.lenient import beside_scores
from safe_core.lenient_scores import Recall

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
    assert is_accepted(ACCEPTED, criterion, term, output, lambda _: False) is accepted
    assert not is_accepted(ACCEPTED, criterion, term, output, lambda _: True)


@pytest.mark.parametrize(
    ("wording", "text", "accepted"),
    [
        ("MI", "Mild pain, then an MI.", True),
        ("MI", "Mild pain.", False),
        ("MI", "Admitted with pain; amiodarone.", False),
        ("5 mg", "Takes 2.5 mg.", False),
        ("5 mg", "Takes 5 mg.", True),
        ("5 mg", "Takes 5 mg/day.", True),
        ("at 12", "At 12:45.", False),
        ("follow up", "Follow upright posture.", False),
        ("(SOB)", "Dyspnoea(SOB)now.", True),  # it has its edges itself
        ("発熱", "患者は発熱あり", True),  # no spaces between words
    ],
)
def test_a_wording_counts_only_between_edges_of_words(wording: str, text: str, *, accepted: bool) -> None:
    found = is_accepted((("term", (wording,)),), "CR", "term", Output(summary=text), lambda _: False)
    assert found is accepted


def test_an_accepted_miss_keeps_its_answers_and_asks_for_nothing() -> None:
    expectations = Expectations(("short of breath", "fever"), (), ("short of breath",))
    output = Output(("SOB at night",), "No fever.")
    plain = diagnose(expectations, output, "She is dyspnoeic.").misses
    settled, other = diagnose(expectations, output, "She is dyspnoeic.", (), ACCEPTED).misses
    assert (settled.verdict, settled.remedy, settled.row) == ("accepted", "none", "")
    assert settled.output_says == plain[0].output_says
    assert other == plain[1], "the summary, which AC reads, has no accepted wording"


@pytest.mark.parametrize("text", ["Patient denies SOB.", "No SOB or fever.", "Her SOB was ruled out."])
def test_a_wording_that_is_denied_is_not_accepted(text: str) -> None:
    accepted: Accepted = (("short of breath", ("SOB",)),)
    (miss,) = diagnose(Expectations(("short of breath",), (), ()), Output((text,)), None, (), accepted).misses
    assert (miss.output_says, miss.remedy) == ("contradicted", "read")
    details = score(
        prepare(Expectations(("short of breath",), (), ())), Output((text,)), DEFAULT_POLICY.default
    ).details
    assert beside_scores(Output((text,)), None, details, accepted).lenient.CR == Recall(1, 0, 0, 0, 0, 0)


def test_those_of_several_holders_are_one() -> None:
    assert merged([ACCEPTED, (("fever", ("hot", "febrile")),)]) == (ACCEPTED[0], ("fever", ("febrile", "hot")))
