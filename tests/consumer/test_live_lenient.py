"""Lenient recall and coverage on the worker's path: where they are asked for, and what they leave as it is."""

import json
from typing import Any

import pytest

from consumer.wire.scored_record import decode_scored
from consumer.worker import scorer
from safe_core import DEFAULT_POLICY, Expectations, Output, prepare, score
from safe_core.lenient import beside_scores
from safe_core.unsupported import count_unsupported
from tests.support import chain
from tests.support.cases import encoded, event_stream, make_batches
from tests.support.chain import Chain, Written, inputs_of
from tests.support.outside import Outgoing

BATCHES = make_batches(11, batches=2, cases_a_batch=5)
STREAM = inputs_of([*event_stream(11, BATCHES, 40, partitions=1, repeated=0.3)])


def of(topic: str, records: list[Written]) -> list[Any]:
    return [json.loads(record.value or b"") for record in records if record.topic == topic]


def without(document: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in names}


BESIDE = ("mean_lenient", "mean_coverage", "lenient_cases")


async def test_results_and_reports_have_them_where_they_are_asked_for_and_nothing_else_changes() -> None:
    plain, lenient = await Chain(BATCHES).run(STREAM), await Chain(BATCHES, lenient=True).run(STREAM)
    results = of("result", lenient)
    assert of("result", plain) == [without(each, "lenient", "coverage") for each in results]
    assert of("report", plain) == [without(each, *BESIDE) for each in of("report", lenient)]
    for each in results:
        scores = each["result"]["scores"]
        assert each["lenient"]["CR"] >= scores["CR"]
        assert each["lenient"]["AC"] >= scores["AC"]
        assert all(1000 * share == int(1000 * share) for share in each["coverage"].values())
    latest = of("report", lenient)[-1]
    assert latest["lenient_cases"] == latest["total_cases"]
    assert latest["mean_lenient"]["CR"] >= latest["mean_scores"]["CR"]


async def test_they_are_those_of_a_command_on_files_that_knows_no_narrative() -> None:
    case = BATCHES[0].cases[0]
    expectations = Expectations(*map(tuple, case.terms))
    signals, phrases = expectations.must_find_signals, expectations.must_contain_phrases
    output = Output((f"{signals[0].upper()} was not seen",), f"There was {phrases[0]}", ())
    event = {
        "test_id": case.test_id,
        "batch_id": case.batch_id,
        "output": {"signals": output.signals, "summary": output.summary, "followup_questions": []},
    }
    (result,) = of("result", await Chain(BATCHES, lenient=True).run(inputs_of([Outgoing(encoded(event))])))
    details = score(prepare(expectations), output, DEFAULT_POLICY.default).details
    expected = beside_scores(output, None, details).lenient.marks.document
    assert {name: result[name] for name in ("lenient", "coverage")} == expected


async def test_a_large_output_has_none_and_is_scored_all_the_same() -> None:
    case = BATCHES[0].cases[0]
    event = {"test_id": case.test_id, "batch_id": case.batch_id, "output": {"summary": "word " * 20_000}}
    written = await Chain(BATCHES, lenient=True).run(inputs_of([Outgoing(encoded(event))]))
    (result,) = of("result", written)
    assert "lenient" not in result
    assert "mean_lenient" not in of("report", written)[-1]


@pytest.mark.parametrize("misses", [True, False])
async def test_an_output_that_would_cost_much_has_none(misses: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorer, "_MOST_JUDGED_BYTES", 1_000)
    case = BATCHES[0].cases[0]
    signals, _, phrases = case.terms
    output = {"signals": ["word " * 200, *([] if misses else signals)], "summary": "" if misses else ". ".join(phrases)}
    event = {"test_id": case.test_id, "batch_id": case.batch_id, "output": output}
    (result,) = of("result", await Chain(BATCHES, lenient=True).run(inputs_of([Outgoing(encoded(event))])))
    assert ("lenient" in result) is not misses


@pytest.mark.parametrize("name", ["near_violations", "judge"])
async def test_a_defect_in_what_stands_beside_the_scores_costs_no_result(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(scorer, "near_violations", broken)
    if name == "judge":
        monkeypatch.setattr(chain, "marks_of", broken)
    written = await Chain(BATCHES, lenient=True).run(STREAM)
    assert len(of("result", written)) == len(STREAM)
    assert all(("lenient" in result) is (name != "judge") for result in of("result", written))


MADE_UP = "He is 61 years old. Blood pressure 148/92, temperature 38.4 C."


def event_of(case: Any, summary: str, **output: Any) -> Outgoing:
    told = {"raw_input": case.entry["patient_payload"], "summary": summary, **output}
    return Outgoing(encoded({"test_id": case.test_id, "batch_id": case.batch_id, "output": told}))


async def counted(events: list[Outgoing], *, unsupported: bool = True) -> dict[str, float]:
    """Score outputs, and give what was counted of their values."""
    chain = Chain(BATCHES, unsupported=unsupported)
    await chain.run(inputs_of(events))
    families = {family.name: family for family in chain.metrics.collect()}
    names = ("safe_unsupported_values", "safe_outputs_with_checked_values")
    return {
        name: sum(sample.value for sample in families[name].samples if sample.name.endswith("_total")) for name in names
    }


async def test_values_that_the_narrative_lacks_are_counted_where_it_is_known_and_they_are_asked_for() -> None:
    first, second, *_ = BATCHES[0].cases
    events = [
        event_of(first, MADE_UP),
        event_of(second, second.entry["patient_payload"]),
        event_of(first, MADE_UP, raw_input="Another patient, of 61 years."),
        event_of(first, MADE_UP, raw_input=None),
        event_of(first, MADE_UP, error_message="429"),
    ]
    expected = count_unsupported(Output((), MADE_UP, ()), first.entry["patient_payload"])
    assert expected >= 3
    told = await counted(events)
    assert told == {"safe_unsupported_values": expected, "safe_outputs_with_checked_values": 2}
    assert await counted(events, unsupported=False) == dict.fromkeys(told, 0)


@pytest.mark.parametrize("limit", ["_LARGE_BYTES", "_MOST_COMPARED"])
async def test_values_of_an_output_that_would_cost_much_are_not_compared(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scorer, limit, 100)
    told = await counted([event_of(BATCHES[0].cases[0], MADE_UP)])
    assert told == {"safe_unsupported_values": 0, "safe_outputs_with_checked_values": 0}


async def test_a_record_without_them_is_the_same_as_before() -> None:
    plain = await Chain(BATCHES).run(STREAM)
    scored = [record.value or b"" for record in plain if record.topic == "scored"]
    assert scored
    assert not any(b"marks" in value or b"lenient" in value for value in scored)
    lenient = [record.value for record in await Chain(BATCHES, lenient=True).run(STREAM) if record.topic == "scored"]
    assert all(b'"marks":{' in (value or b"") for value in lenient)
    assert [decode_scored(value).result for value in lenient] == [decode_scored(value).result for value in scored]
