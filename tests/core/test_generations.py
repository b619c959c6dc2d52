"""What an output is: answered or failed, and the fields that were not asked for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_core import (
    DEFAULT_POLICY,
    EMPTY_OUTPUT,
    EngineTexts,
    Expectations,
    InvalidPolicy,
    Output,
    Policy,
    Rules,
    hits_of_failure,
    kind_of,
    prepare,
    score,
    score_of_hits,
)

DEFAULT = EngineTexts()
LEAN, SIGNAL_TASK = "Summary skipped in lean mode", "N/A - Signal Task"

# What the engine wrote, and whether a model answered.
GENERATIONS: list[tuple[dict[str, Any], str]] = [
    ({"summary": "ENGINE_ERROR", "error_message": "429", "signals": [], "followup_questions": []}, "failed"),
    ({"summary": "ENGINE_ERROR"}, "failed"),  # the text alone
    ({"summary": "A fall.", "error_message": "429"}, "failed"),  # the message alone
    ({"summary": "A fall.", "signals": ["fall"], "error_message": "cut off"}, "failed"),  # whatever else it holds
    ({"error_message": {"code": 429}}, "failed"),  # an error that is no text is one
    ({"error_message": True}, "failed"),
    ({"summary": "A fall.", "error_message": None}, "answered"),
    ({"summary": "A fall.", "error_message": " \n"}, "answered"),
    ({"summary": "A fall.", "error_message": False}, "answered"),
    ({"summary": "A fall.", "error_message": {}}, "answered"),
    ({"summary": "The log says ENGINE_ERROR."}, "answered"),  # exactly, not somewhere
    ({"summary": "engine_error"}, "answered"),
    ({"summary": "ENGINE_ERROR "}, "answered"),
    ({"signals": ["ENGINE_ERROR"]}, "answered"),  # only the summary says so
    ({"errors": "429"}, "answered"),
    ({}, "answered"),  # an empty output is an answer
]


@pytest.mark.parametrize(("written", "generation"), GENERATIONS)
def test_an_error_message_or_an_error_text_makes_a_failed_generation(written: dict[str, Any], generation: str) -> None:
    assert kind_of(Output.parse(written), DEFAULT).generation == generation


# What the engine wrote, and the fields that the model was not asked for.
ASKED: list[tuple[dict[str, Any], set[str]]] = [
    ({"summary": LEAN, "signals": ["fall"]}, {"summary"}),
    ({"summary": SIGNAL_TASK, "followup_questions": [SIGNAL_TASK]}, {"summary", "followup_questions"}),
    ({"signals": [LEAN, SIGNAL_TASK]}, {"signals"}),
    ({"signals": [SIGNAL_TASK, "fall"]}, set()),  # a list that holds more was asked for
    ({"summary": f"{LEAN}."}, set()),
    ({"summary": "", "signals": [], "followup_questions": []}, set()),  # what is empty may have been asked for
    ({"summary": LEAN, "error_message": "429"}, set()),  # of a failed one, nothing is known
]


@pytest.mark.parametrize(("written", "fields"), ASKED)
def test_a_field_with_nothing_but_placeholders_was_not_asked_for(written: dict[str, Any], fields: set[str]) -> None:
    assert kind_of(Output.parse(written), DEFAULT).not_asked_for == fields


def test_the_texts_are_configured() -> None:
    policy = Policy.from_document({"errorTexts": ["QUOTA"], "placeholderTexts": ["-"]})
    kinds = [kind_of(Output(summary=text), policy.engine_texts) for text in ("QUOTA", "-", "ENGINE_ERROR", LEAN)]
    assert [kind.generation for kind in kinds] == ["failed", "answered", "answered", "answered"]
    assert [bool(kind.not_asked_for) for kind in kinds] == [False, True, False, False]
    assert Policy.from_document(policy.configuration()) == policy


@pytest.mark.parametrize("key", ["errorTexts", "placeholderTexts"])
@pytest.mark.parametrize("texts", ["ENGINE_ERROR", [""], [" "], [1], {"a": 1}])
def test_what_is_no_list_of_texts_is_refused(key: str, texts: object) -> None:
    with pytest.raises(InvalidPolicy, match=f"{key} is not a list of texts that are not blank"):
        Policy.from_document({key: texts})


def test_a_blank_text_would_be_every_empty_output() -> None:
    with pytest.raises(ValueError, match="blank"):
        EngineTexts(errors=frozenset({""}))


def test_error_texts_can_change_a_score_and_placeholders_cannot() -> None:
    documents: list[dict[str, list[str]]] = [
        {},
        {"errorTexts": ["ENGINE_ERROR"]},
        {"placeholderTexts": []},
        {"errorTexts": ["A", "ENGINE_ERROR"]},
        {"errorTexts": ["ENGINE_ERROR", "A", "A"]},
        {"errorTexts": []},
    ]
    default, spelled, placeholders, more, same, none = (Policy.from_document(each).fingerprint for each in documents)
    # The fingerprint of the default rules before there were such texts: results keep their ids.
    assert default == "sha256:427aae20354d3d6a39a92cd2ddbad26f4ea611dd0e7ccc238579e998e2ee0e6e"
    assert default == spelled == placeholders == DEFAULT_POLICY.fingerprint
    assert more == same
    assert len({default, more, none}) == 3


terms = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3).map(tuple)


@given(terms, terms, terms, st.booleans())
def test_a_failed_generation_scores_as_an_empty_output_but_is_not_counted_as_one(
    cr: tuple[str, ...], ah: tuple[str, ...], ac: tuple[str, ...], strict: bool
) -> None:
    expected, rules = prepare(Expectations(cr, ah, ac)), Rules(strict_ah=strict)
    failed = score_of_hits(expected, hits_of_failure(expected), rules)
    assert not failed.empty_output
    assert failed._replace(empty_output=True) == score(expected, EMPTY_OUTPUT, rules)
