"""Spans for each output: where its time went between the fetch and the commit (docs/how-to/operate.md, "Traces").

Records are worked on in slices, and so the spans of one slice have the same times. A span belongs to the trace that its
record's `traceparent` names; without one it begins a trace of its own. Spans are made once a slice is committed, in a
thread.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
from typing_extensions import override

from consumer.errors import ConfigurationError
from consumer.wire.record import Record
from consumer.wire.trace_headers import traced

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_MOST_SLICES_WAITING: Final = 8
_CLOSING_SECONDS: Final = 2.0
_SERVICE: Final = "safe"

_log = structlog.get_logger("safe.worker")


class SliceSpans:
    """What a partition reports about the slice in hand. This one reports nothing, and costs nothing."""

    def begin(self, records: Sequence[Record]) -> None:
        """A slice comes, perhaps again after a wait."""

    def reached(self, phase: str) -> None:
        """A phase of the slice is over, which began where the one before it ended."""

    def failed(self, record: Record, reason: str) -> None:
        """A record of the slice becomes a dead letter."""

    def committed(self, next_offset: int) -> None:
        """The records before this offset are committed."""


class Traces:
    """Where spans go. These go nowhere."""

    def of_partition(self, group: str) -> SliceSpans:
        """For one partition of a role; `group` is the role's consumer group."""
        del group
        return SliceSpans()

    def close(self) -> None:
        """Send what is left; waits for two seconds at most."""


def open_traces(kind: str, version: str) -> Traces:
    """The traces that SAFE_V0_TRACES asks for; raises ConfigurationError where they cannot be exported."""
    if kind == "off":
        return Traces()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 (an extra)
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError:
        raise ConfigurationError(
            f"SAFE_V0_TRACES={kind} needs OpenTelemetry: pip install '.[opentelemetry]', or set SAFE_V0_TRACES=off"
        ) from None
    try:
        resource = Resource.create({"service.name": _SERVICE, "service.version": version})
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    except ValueError as error:
        raise ConfigurationError(f"a variable OTEL_… cannot be used ({error}): correct it, or unset it") from error
    return _ExportedTraces(provider, version)


class _Slice(NamedTuple):
    """A committed slice; times in ns since 1970, each phase with its end."""

    group: str
    records: Sequence[Record]
    failures: Mapping[int, str]
    began_at: int
    phases: Sequence[tuple[str, int]]


class _ExportedTraces(Traces):
    """Traces that the SDK samples, collects and exports, as its variables say."""

    def __init__(self, provider: "TracerProvider", version: str) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer(_SERVICE, version)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="traces")
        self._lock = threading.Lock()
        self._waiting = 0
        self._lost = 0

    @override
    def of_partition(self, group: str) -> SliceSpans:
        return _NotedSlice(self, group)

    @override
    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        closing = threading.Thread(target=self._provider.shutdown, name="traces end", daemon=True)
        closing.start()
        closing.join(_CLOSING_SECONDS)
        if self._lost:
            _log.warning("spans were not exported: outputs came faster than spans are made", slices=self._lost)

    def export(self, done: _Slice) -> None:
        """Have the spans of a slice made; where too many slices wait for that, this one gets none."""
        with self._lock:
            if self._waiting >= _MOST_SLICES_WAITING:
                self._lost += 1
                return
            self._waiting += 1
        self._thread.submit(self._make, done)

    def _make(self, done: _Slice) -> None:
        try:
            for record in done.records:
                self._make_one(record, done)
        finally:
            with self._lock:
                self._waiting -= 1

    def _make_one(self, record: Record, done: _Slice) -> None:
        from opentelemetry import trace  # noqa: PLC0415 (an extra)
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

        carrier = {name: content.decode("ascii") for name, content in traced([], record.headers) if content}
        span = self._tracer.start_span(
            f"process {record.topic}",
            TraceContextTextMapPropagator().extract(carrier),
            trace.SpanKind.CONSUMER,
            start_time=done.began_at,
            attributes={
                "messaging.system": "kafka",
                "messaging.operation.type": "process",
                "messaging.destination.name": record.topic,
                "messaging.destination.partition.id": str(record.partition),
                "messaging.consumer.group.name": done.group,
                "messaging.kafka.offset": record.offset,
                "safe.slice.records": len(done.records),
            },
        )
        if span.is_recording():  # as the sampler has decided
            reason = done.failures.get(record.offset)
            if reason is not None:
                span.set_attribute("error.type", reason)
                span.set_status(trace.StatusCode.ERROR, "the record became a dead letter")
            within, began_at = trace.set_span_in_context(span), done.began_at
            for phase, ended_at in done.phases:
                self._tracer.start_span(phase, within, start_time=began_at).end(ended_at)
                began_at = ended_at
        span.end(done.phases[-1][1])


class _NotedSlice(SliceSpans):
    def __init__(self, traces: _ExportedTraces, group: str) -> None:
        self._traces = traces
        self._group = group
        self._records: Sequence[Record] = ()
        self._began_at = 0
        self._phases: list[tuple[str, int]] = []
        self._failures: dict[int, str] = {}

    @override
    def begin(self, records: Sequence[Record]) -> None:
        comes_again = bool(self._records) and records[0].offset == self._records[0].offset
        self._began_at = self._began_at if comes_again else time.time_ns()
        self._records = records
        self._phases = [("wait", time.time_ns())] if comes_again else []
        self._failures = {}

    @override
    def reached(self, phase: str) -> None:
        self._phases.append((phase, time.time_ns()))

    @override
    def failed(self, record: Record, reason: str) -> None:
        self._failures[record.offset] = reason

    @override
    def committed(self, next_offset: int) -> None:
        records = [record for record in self._records if record.offset < next_offset]
        self._records = ()
        if records:
            self.reached("commit")
            self._traces.export(_Slice(self._group, records, self._failures, self._began_at, self._phases))
