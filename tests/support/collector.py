"""A collector of OpenTelemetry: takes spans over HTTP as OTLP has them, and keeps them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from typing_extensions import override


@dataclass(slots=True)
class Collector:
    """What has arrived so far: each span, and the names of the services that sent any."""

    endpoint: str
    spans: list[Span] = field(default_factory=list)
    services: set[str] = field(default_factory=set)

    def take(self, body: bytes) -> None:
        """Keep what one request brings."""
        for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
            named = {each.key: each.value.string_value for each in sent.resource.attributes}
            self.services.add(named["service.name"])
            self.spans += [span for scope in sent.scope_spans for span in scope.spans]

    def children_of(self, span_id: bytes) -> list[Span]:
        """The spans within another one, in the order of their beginning."""
        children = [span for span in list(self.spans) if span.parent_span_id == span_id]
        return sorted(children, key=lambda span: (span.start_time_unix_nano, span.end_time_unix_nano))


@contextmanager
def collecting() -> Iterator[Collector]:
    """Serve one on this machine for as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Take spans."""
            assert self.path == "/v1/traces"
            collector.take(self.rfile.read(int(self.headers["Content-Length"])))
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        @override
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        thread = Thread(target=server.serve_forever, name="collector")
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
