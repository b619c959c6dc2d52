"""The traceparent of an input goes with its scored record and its result, and nothing else of its headers does."""

import pytest

from consumer.wire.headers import own_headers, traced
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


async def test_reports_and_state_belong_to_no_single_input() -> None:
    written = await passed_on([("traceparent", VALID)])
    others = [record for record in written if record.topic in ("state", "report")]
    assert others
    assert not [record for record in others if "traceparent" in dict(record.headers)]
