"""Spans of a slice: whose they are, how long each phase took, and that nothing waits for them."""

import asyncio
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Event

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import SpanKind, StatusCode

from consumer.errors import ConfigurationError
from consumer.worker import spans as module
from consumer.worker.spans import SliceSpans, Traces, _ExportedTraces, open_traces

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


@dataclass(slots=True)
class Fetched:
    offset: int
    headers: Sequence[tuple[str, bytes | None]] = ()
    topic: str = "outputs"
    partition: int = 3
    timestamp: int = 0
    key: bytes | None = None
    value: bytes | None = field(default=b"{}", repr=False)


def of_producer(flags: str = "01") -> list[tuple[str, bytes | None]]:
    return [("traceparent", f"00-{TRACE}-{PARENT}-{flags}".encode()), ("tracestate", b"vendor=1")]


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def traces(exporter: InMemorySpanExporter) -> Iterator[_ExportedTraces]:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traces = _ExportedTraces(provider, "1.0.0")
    yield traces
    traces.close()


def a_slice(spans: SliceSpans, records: Sequence[Fetched], *, committed: int) -> None:
    spans.begin(records)
    spans.reached("decode")
    spans.reached("score")
    spans.committed(committed)


def made(traces: _ExportedTraces, exporter: InMemorySpanExporter) -> tuple[ReadableSpan, ...]:
    """What has been made once the thread has nothing left to do."""
    traces._thread.submit(lambda: None).result()
    return exporter.get_finished_spans()


def test_a_span_of_each_record_belongs_to_the_trace_of_its_producer(
    traces: _ExportedTraces, exporter: InMemorySpanExporter
) -> None:
    a_slice(traces.of_partition("safe-v0"), [Fetched(7, of_producer()), Fetched(8)], committed=9)
    spans = made(traces, exporter)
    first, second = [span for span in spans if span.kind is SpanKind.CONSUMER]
    assert first.parent is not None
    assert (f"{first.context.trace_id:032x}", f"{first.parent.span_id:016x}") == (TRACE, PARENT)
    assert first.context.trace_state.to_header() == "vendor=1"
    assert second.parent is None
    assert second.context.trace_id != first.context.trace_id
    assert first.name == "process outputs"
    assert (
        dict(first.attributes or {}).items()
        >= {
            "messaging.system": "kafka",
            "messaging.destination.name": "outputs",
            "messaging.destination.partition.id": "3",
            "messaging.kafka.offset": 7,
            "messaging.consumer.group.name": "safe-v0",
            "safe.slice.records": 2,
        }.items()
    )


def test_the_phases_follow_each_other_from_the_fetch_to_the_commit(
    traces: _ExportedTraces, exporter: InMemorySpanExporter
) -> None:
    a_slice(traces.of_partition("g"), [Fetched(7, of_producer())], committed=8)
    *phases, whole = made(traces, exporter)
    assert [span.name for span in phases] == ["decode", "score", "commit"]
    assert {span.parent.span_id for span in phases if span.parent} == {whole.context.span_id}
    times = [whole.start_time, *[time for span in phases for time in (span.start_time, span.end_time)], whole.end_time]
    assert times == sorted(time for time in times if time is not None)
    assert all(one.end_time == next_.start_time for one, next_ in pairwise(phases))


def test_only_what_is_committed_has_spans(traces: _ExportedTraces, exporter: InMemorySpanExporter) -> None:
    spans = traces.of_partition("g")
    spans.begin([Fetched(1)])
    spans.reached("decode")
    a_slice(spans, [Fetched(5), Fetched(6)], committed=6)
    offsets = [(span.attributes or {}).get("messaging.kafka.offset") for span in made(traces, exporter)]
    assert [offset for offset in offsets if offset is not None] == [5]


def test_a_commit_without_records_has_none(traces: _ExportedTraces, exporter: InMemorySpanExporter) -> None:
    spans = traces.of_partition("g")
    a_slice(spans, [Fetched(5)], committed=6)
    spans.committed(6)
    assert len(made(traces, exporter)) == 4


def test_a_slice_that_had_to_wait_says_so(traces: _ExportedTraces, exporter: InMemorySpanExporter) -> None:
    spans = traces.of_partition("g")
    spans.begin([Fetched(5)])
    a_slice(spans, [Fetched(5)], committed=6)
    assert [span.name for span in made(traces, exporter)] == ["wait", "decode", "score", "commit", "process outputs"]


def test_a_dead_letter_is_an_error_with_its_reason(traces: _ExportedTraces, exporter: InMemorySpanExporter) -> None:
    spans = traces.of_partition("g")
    bad, good = Fetched(5), Fetched(6)
    spans.begin([bad, good])
    spans.failed(bad, "invalid_json")
    spans.committed(7)
    of_bad, of_good = [span for span in made(traces, exporter) if span.kind is SpanKind.CONSUMER]
    assert (of_bad.attributes or {})["error.type"] == "invalid_json"
    assert of_bad.status.status_code is StatusCode.ERROR
    assert of_good.status.status_code is StatusCode.UNSET


def test_the_sampler_decides_and_a_producer_that_does_not_sample_is_followed(exporter: InMemorySpanExporter) -> None:
    provider = TracerProvider(sampler=ParentBased(root=ALWAYS_OFF), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traces = _ExportedTraces(provider, "1.0.0")
    records = [Fetched(1, of_producer("00")), Fetched(2, of_producer("01")), Fetched(3)]
    a_slice(traces.of_partition("g"), records, committed=4)
    offsets = [(span.attributes or {}).get("messaging.kafka.offset") for span in made(traces, exporter)]
    assert [offset for offset in offsets if offset is not None] == [2]
    traces.close()


def test_slices_that_come_faster_than_spans_are_made_are_dropped_and_told(
    traces: _ExportedTraces, exporter: InMemorySpanExporter
) -> None:
    let_go = Event()
    traces._thread.submit(let_go.wait)
    spans = traces.of_partition("g")
    for offset in range(module._MOST_SLICES_WAITING + 5):
        a_slice(spans, [Fetched(offset)], committed=offset + 1)
    let_go.set()
    assert len(made(traces, exporter)) == 4 * module._MOST_SLICES_WAITING
    traces.close()
    assert traces._lost == 5


# --- switched on and off ----------------------------------------------------------------------------------------------


def test_off_nothing_is_noted() -> None:
    assert type(open_traces("off", "1")) is Traces
    spans = open_traces("off", "1").of_partition("g")
    assert type(spans) is SliceSpans
    a_slice(spans, [Fetched(1)], committed=2)


async def test_a_collector_that_is_away_holds_up_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setattr(module, "_CLOSING_SECONDS", 0.2)
    traces = open_traces("otlp", "1.0.0")
    a_slice(traces.of_partition("g"), [Fetched(1)], committed=2)
    await asyncio.wait_for(asyncio.to_thread(traces.close), 5)
    for thread in threading.enumerate():
        if thread.name == "traces end":  # it goes on trying, with random pauses that would disturb later tests
            await asyncio.to_thread(thread.join)


def test_without_the_package_the_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ConfigurationError, match=r"needs OpenTelemetry: pip install '\.\[opentelemetry\]'"):
        open_traces("otlp", "1.0.0")


def test_a_variable_that_cannot_be_used_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")
    with pytest.raises(ConfigurationError, match="a variable OTEL_… cannot be used"):
        open_traces("otlp", "1.0.0")
