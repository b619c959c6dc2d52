"""Scores that are remembered are those that the rule book gives, whatever was met before."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.wire.scored_record import result_of
from consumer.worker import scoring_memory
from consumer.worker.scoring_memory import ScoringMemory
from safe_core import Expectations, JudgedBy, Output, Policy, prepare, score

POLICY = Policy.from_document(
    {
        "overrides": {
            "metric_id": {"lenient": {"thresholds": {"CR": {"review": 0.0, "pass": 0.0}}}},
            "archetype": {"Strict_One": {"thresholds": {"CR": {"review": 1.0, "pass": 1.0}}}},
        }
    }
)
few = st.sampled_from(["fever", "sepsis", "no blame", "", " ", "shock?"])
texts = st.lists(few, max_size=3).map(tuple)
terms = st.lists(st.sampled_from(["fever", "sepsis", "blame"]), max_size=3).map(tuple)
judges = st.builds(
    JudgedBy,
    st.just("S11"),
    st.sampled_from(["S11", "lenient"]),
    st.sampled_from([None, "Strict_One", "Other"]),
)
cases = st.tuples(
    st.sampled_from(["T1", "T2"]),
    judges,
    st.builds(Expectations, terms, terms, terms),
    st.builds(Output, texts, few, texts),
)


@given(st.lists(cases, min_size=1, max_size=20))
def test_what_is_met_again_scores_as_it_would_by_itself(
    met: list[tuple[str, JudgedBy, Expectations, Output]],
) -> None:
    remembering = ScoringMemory(POLICY)
    for test_id, by, expectations, output in met:
        expected = prepare(expectations)
        outcome = remembering.score(test_id, by, expected, output)
        assert outcome.case == score(expected, output, POLICY.rules_for(by.metric_id, by.archetype))
        assert bytes(outcome.result) == msgspec.json.encode(result_of(test_id, by.archetype, outcome.case))


def test_an_output_that_holds_the_same_terms_is_not_worked_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    remembering = ScoringMemory(POLICY)
    expected = prepare(Expectations(("fever",), (), ()))
    first = remembering.score("T1", JudgedBy("S11", "S11", None), expected, Output(("fever",)))
    monkeypatch.delattr(scoring_memory, "score_of_hits")
    assert remembering.score("T1", JudgedBy("S11", "S11", None), expected, Output((), "a fever of 39.2")) is first


def test_a_long_result_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring_memory, "_LONGEST_REMEMBERED", 10)
    remembering = ScoringMemory(POLICY)
    outcome = remembering.score("T1", JudgedBy("S11", "S11", None), prepare(Expectations()), Output())
    assert json.loads(bytes(outcome.result))["test_id"] == "T1"
    assert not remembering._met
