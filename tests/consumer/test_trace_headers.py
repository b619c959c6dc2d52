"""The trace of an input and its id go with its scored record and its result, and nothing else of its headers does."""

import json
from dataclasses import replace

import pytest

from consumer.wire.event_schemas import event_schema
from consumer.wire.headers import own_headers
from consumer.wire.trace_headers import traced
from tests.support.cases import event_stream, make_batches
from tests.support.chain import Chain, Headers, Written, inputs_of, with_headers

VALID = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
BATCHES = make_batches(3, batches=1, cases_a_batch=3)

CARRIED: list[tuple[Headers, bytes | None]] = [
    ([("traceparent", VALID)], VALID),
    ([("x", None), ("traceparent", VALID), ("traceparent", OTHER)], OTHER),  # the last one counts
    ([("traceparent", b"cc" + VALID[2:])], b"cc" + VALID[2:]),  # a later version that looks the same
    ([], None),
    ([("traceparent", None)], None),
    ([("traceparent", b"")], None),
    ([("traceparent", b"rubbish")], None),
    ([("traceparent", VALID), ("traceparent", b"rubbish")], None),
    ([("traceparent", b"\xff" * 55)], None),
    ([("traceparent", b"0" * 1_000_000)], None),
    ([("traceparent", VALID.upper())], None),  # hex digits are small
    ([("traceparent", VALID + b"\n")], None),
    ([("traceparent", VALID + b"-more")], None),  # what a later version may add is not known
    ([("traceparent", b"ff" + VALID[2:])], None),  # no version
    ([("traceparent", b"00-" + b"0" * 32 + VALID[35:])], None),  # no trace
    ([("traceparent", VALID[:36] + b"0" * 16 + b"-01")], None),  # no parent
    ([("Traceparent", VALID)], None),  # the name is exact
    ([("ce_traceparent", VALID)], None),  # an attribute of the event, not of its way
    ([("tracestate", b"a=1")], None),
]


@pytest.mark.parametrize(("headers", "carried"), CARRIED)
def test_one_valid_traceparent_is_carried(headers: Headers, carried: bytes | None) -> None:
    ours = own_headers("g")
    assert traced(ours, headers) == ([*ours, ("traceparent", carried)] if carried else ours)
    assert ours == own_headers("g"), "the headers that all records share stay as they are"


async def passed_on(*headers: Headers) -> list[Written]:
    """What comes of inputs with these headers."""
    inputs = inputs_of(list(event_stream(3, BATCHES, len(headers), partitions=1, poison=0.0)))
    return await Chain(BATCHES).run([with_headers(*each) for each in zip(inputs, headers, strict=True)])


@pytest.mark.parametrize("topic", ["scored", "result"])
async def test_each_record_has_the_trace_of_its_own_input(topic: str) -> None:
    written = await passed_on([("traceparent", VALID)], (), [("traceparent", b"\xff"), ("tracestate", b"a=1")])
    traces = [dict(record.headers).get("traceparent") for record in written if record.topic == topic]
    assert traces == [VALID, None, None]
    assert not [record for record in written if "tracestate" in dict(record.headers)]


STATES: list[tuple[bytes | None, bool]] = [
    (b"congo=t61rcWkgMzE", True),
    (b"rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", True),
    (b"tenant@vendor=a b , other=x", True),
    (b",".join(b"k%d=v" % number for number in range(32)), True),
    (b",".join(b"k%d=v" % number for number in range(33)), False),
    (b"k=" + b"v" * 256, True),
    (b"k=" + b"v" * 257, False),
    (b"a=" + b"v" * 256 + b",b=" + b"v" * 256, False),  # more than 512 bytes in all
    (b"Congo=1", False),
    (b"congo", False),
    (b"congo=", False),
    (b"congo=a=b", False),
    (b"congo=\xff", False),
    (b"", False),
    (None, False),
]


@pytest.mark.parametrize(("state", "is_carried"), STATES)
def test_a_valid_state_is_carried_beside_its_parent(state: bytes | None, is_carried: bool) -> None:
    with_both = [("tracestate", state), ("traceparent", VALID)]
    expected = [("traceparent", VALID)] + ([("tracestate", state)] if is_carried else [])
    assert traced((), with_both) == expected
    assert traced((), [("tracestate", state), ("traceparent", b"rubbish")]) == ()


def cloud_event(identity: bytes) -> Headers:
    return [("ce_specversion", b"1.0"), ("ce_type", b"x"), ("ce_id", identity), ("ce_causationid", b"of the input")]


CAUSES: list[tuple[Headers, bytes | None]] = [
    (cloud_event(b"a-7"), b"a-7"),
    (cloud_event("Prüfung 1".encode()), "Prüfung 1".encode()),
    (cloud_event(b""), None),
    (cloud_event(b"x" * 257), None),
    (cloud_event(b"two\nlines"), None),
    ([("ce_id", b"a-7")], None),  # no CloudEvent
    ([], None),
]


@pytest.mark.parametrize(("headers", "cause"), CAUSES)
async def test_a_result_names_the_event_that_caused_it(headers: Headers, cause: bytes | None) -> None:
    written = await passed_on(headers)
    causes = {record.topic: dict(record.headers).get("ce_causationid") for record in written}
    assert causes["scored"] == causes["result"] == cause
    assert causes["state"] is causes["report"] is None


async def test_the_id_of_a_structured_event_is_its_cause_too() -> None:
    (plain,) = inputs_of(list(event_stream(3, BATCHES, 1, partitions=1, poison=0.0)))
    assert plain.value is not None
    event = {"specversion": "1.0", "type": "x", "id": "s-1", "source": "/y", "data": json.loads(plain.value)}
    structured = replace(
        plain, value=json.dumps(event).encode(), headers=(("content-type", b"application/cloudevents+json"),)
    )
    written = await Chain(BATCHES).run([structured])
    assert [dict(record.headers).get("ce_causationid") for record in written if record.topic == "result"] == [b"s-1"]


@pytest.mark.parametrize(("topic", "schema"), [("result", "result"), ("report", "report")])
async def test_an_event_names_the_schema_of_its_data(topic: str, schema: str) -> None:
    written = await passed_on(())
    named = {dict(record.headers)["ce_dataschema"] for record in written if record.topic == topic}
    assert named == {event_schema(schema)["$id"].encode()}


async def test_reports_and_state_belong_to_no_single_input() -> None:
    written = await passed_on([("traceparent", VALID)])
    others = [record for record in written if record.topic in ("state", "report")]
    assert others
    assert not [record for record in others if "traceparent" in dict(record.headers)]
