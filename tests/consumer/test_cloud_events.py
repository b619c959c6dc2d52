"""An independent decoder of CloudEvents reads what SAFE writes."""

import json
from datetime import UTC, datetime

import pytest
from cloudevents.core.exceptions import CloudEventValidationError

from tests.support.cases import event_stream, make_batches
from tests.support.chain import GROUP, NOW, Chain, Written, inputs_of
from tests.support.cloud_events import decoded

BATCHES = make_batches(5, batches=3, cases_a_batch=4)


@pytest.fixture
async def records() -> list[Written]:
    """What a small worker writes."""
    return await Chain(BATCHES).run(inputs_of(list(event_stream(5, BATCHES, 30, partitions=1, poison=0.0))))


@pytest.mark.parametrize("topic", ["result", "report"])
def test_an_event_is_read_with_all_its_attributes(records: list[Written], topic: str) -> None:
    events = [record for record in records if record.topic == topic]
    assert events
    for record in events:
        event = decoded(record.key, record.value, record.headers)
        assert event.id == (dict(record.headers)["ce_id"] or b"").decode()
        assert event.type == f"safe:v0:{topic}"
        assert event.source == f"/safe/{GROUP}"
        assert event.time == datetime.fromtimestamp(NOW / 1_000, UTC)
        assert event.content_type == "application/json"
        assert event.payload == json.loads(record.value or b"")
        key = f"{event.payload['concern_id']}/{event.payload['batch_id']}"
        assert event.partition_key == key
        assert event.subject == (f"{key}/{event.payload['result']['test_id']}" if topic == "result" else key)


def test_no_two_events_have_the_same_id(records: list[Written]) -> None:
    events = [decoded(each.key, each.value, each.headers) for each in records if each.topic in ("result", "report")]
    assert len({(event.source, event.id) for event in events}) == len(events)


@pytest.mark.parametrize("header", ["ce_source", "ce_type"])
def test_an_event_without_its_attributes_would_be_refused(records: list[Written], header: str) -> None:
    result = next(record for record in records if record.topic == "result")
    headers = [each for each in result.headers if each[0] != header]
    with pytest.raises(CloudEventValidationError):
        decoded(result.key, result.value, headers)
