"""The trace of one output, from its producer through both stages, as a collector sees it."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cases import encoded, make_batches, make_event, write_batches
from tests.support.collector import collecting
from tests.support.outside import Headers, Outgoing
from tests.support.site import Site
from tests.support.waiting import wait_until

pytestmark = pytest.mark.broker

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PRODUCER: Headers = (("traceparent", f"00-{TRACE}-{PARENT}-01".encode()), ("tracestate", b"vendor=1"))
BATCHES = make_batches(59, batches=1, cases_a_batch=3)


def test_an_output_is_followed_from_its_producer_to_its_result(site_over: Callable[..., Site], tmp_path: Path) -> None:
    with collecting() as collector:
        settings = {
            "SAFE_V0_TRACES": "otlp",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        }
        site = site_over(write_batches(tmp_path / "cases", BATCHES), partitions=1, settings=settings)
        site.send([Outgoing(encoded(make_event(random.Random(59), BATCHES[0].cases[0])), headers=PRODUCER)])
        with site.worker() as worker:
            site.await_rest()
            wait_until(
                lambda: len(collector.children_of(bytes.fromhex(PARENT))) == 2,
                within_seconds=20,
                what="both stages have sent their spans",
            )
            assert worker.stop() == 0
    scorer, aggregator = collector.children_of(bytes.fromhex(PARENT))
    topics = site.topics
    assert [scorer.name, aggregator.name] == [f"process {topics.input}", f"process {topics.scored}"]
    assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
    assert scorer.trace_state == "vendor=1"
    phases = [[span.name for span in collector.children_of(each.span_id)] for each in (scorer, aggregator)]
    assert phases == [["decode", "expectations", "score", "commit"], ["fold", "commit"]]
    assert collector.services == {"safe"}
    # A subscriber goes on with the producer's trace, whether SAFE exports spans or not.
    [result] = site.outside.read(topics.result)
    assert dict(result.headers)["traceparent"] == PRODUCER[0][1]
