"""Keys that resemble one that is read: which are told, and that no key costs much."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_core.misspelt_keys import ENTRY_KEYS, EVENT_KEYS, OUTPUT_KEYS, READ_KEYS, KeyLevel, look_alikes, resembling

HANG_SECONDS = 20.0
WHOLE = dict.fromkeys(OUTPUT_KEYS.scored, "")

# An object's keys, and the known ones that others of them resemble.
IN_OUTPUTS = [
    (["Summary"], ["summary"]),
    (["event_summary"], ["summary"]),
    (["Signals", "summary"], ["signals"]),
    (["signal", "summary", "followup_questions"], ["signals"]),
    (["SUMMARY", "SIGNALS", "FollowUp Questions"], ["summary", "signals", "followup_questions"]),
    (["followUpQuestions"], ["followup_questions"]),
    (["questions"], ["followup_questions"]),
    (["rawInput", *WHOLE], ["raw_input"]),
    (["errorMessage", *WHOLE], ["error_message"]),
    (["Summary", *WHOLE], ["summary"]),  # there, but spelt nearly the same
    (["event_summary", "key_signals", *WHOLE], []),  # what they may be meant for is there
    ([*WHOLE, "raw_input", "error_message", "model_name", "latency_ms"], []),
    (["raw_output", "error", "usage", "finish_reason", "prompt", "reasoning", "tokens", "text"], []),
    (["s" * 1_000, "summary " * 20], []),
]
IN_EVENTS = [
    (["testId", "BatchID", "Concern-Id"], ["test_id", "batch_id", "concern_id"]),
    (["generatedAt", "Output", "run id"], ["generated_at", "output", "run_id"]),
    # Whatever else an event may say of itself is near to nothing, even where the id is missing.
    (["turn_id", "trace_id", "event_id", "model_id", "unit_id", "outputs", "timestamp", "created_at", "source"], []),
]


@pytest.mark.parametrize(
    ("level", "keys", "meant"),
    [*((OUTPUT_KEYS, *row) for row in IN_OUTPUTS), *((EVENT_KEYS, *row) for row in IN_EVENTS)],
)
def test_a_key_is_told_as_the_known_one_that_it_resembles(level: KeyLevel, keys: list[str], meant: list[str]) -> None:
    for _ in range(2):  # the second time it is remembered
        assert [name for _, name in look_alikes(dict.fromkeys(keys), level)] == meant


def test_what_factory_cli_writes_resembles_nothing() -> None:
    entry = ["test_id", "concern_id", "archetype", "batch_index", "scenario_label", "structural", "semantic", "scores"]
    entry.append("engine_output")
    assert look_alikes(dict.fromkeys(entry), ENTRY_KEYS) == ()
    assert look_alikes(dict.fromkeys([*WHOLE, "raw_input", "model_name", "latency_ms"]), OUTPUT_KEYS) == ()


@given(st.lists(st.text(max_size=60), max_size=50), st.sampled_from([OUTPUT_KEYS, EVENT_KEYS, ENTRY_KEYS]))
def test_whatever_the_keys_are_only_known_ones_are_told(keys: list[str], level: KeyLevel) -> None:
    told = look_alikes(dict.fromkeys(keys), level)
    assert {name for _, name in told} <= {*READ_KEYS, *ENTRY_KEYS.read}
    assert {key for key, _ in told} <= set(keys)


def test_very_many_keys_and_very_long_ones_cost_little_and_are_not_kept() -> None:
    many = {f"summar_{n}": "" for n in range(100_000)} | {"summary" * 100_000: ""}
    OUTPUT_KEYS.remembered.clear()
    begun = time.process_time()

    look_alikes(many, OUTPUT_KEYS)
    assert look_alikes({"s" * 1_000_000: "", "Summary": ""}, OUTPUT_KEYS) == (("Summary", "summary"),)

    assert time.process_time() - begun < HANG_SECONDS
    assert not OUTPUT_KEYS.remembered


@pytest.mark.parametrize(
    ("keys", "name", "near"),
    [
        (["testId", "x"], "test_id", ["testId"]),
        (["engineOutput"], "engine_output", ["engineOutput"]),
        (["engine_outputs"], "engine_output", ["engine_outputs"]),
        (["outputs"], "output", ["outputs"]),
        (["request_id", "id"], "test_id", []),
        (["engine_error", "message"], "engine_output", []),
    ],
)
def test_a_missing_key_may_be_there_in_another_spelling(keys: list[str], name: str, near: list[str]) -> None:
    assert [*resembling(dict.fromkeys(keys), name)] == near
