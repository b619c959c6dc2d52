"""An endpoint that speaks OpenAI's chat completions: what it answers, and what it does wrong, is scripted."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from typing_extensions import override

Json = Any


@dataclass(frozen=True, slots=True)
class Said:
    """One answer of the endpoint: a completion with this content, or another status."""

    content: str = ""
    status: int = 200
    finish_reason: str = "stop"
    refusal: str | None = None
    delay: threading.Event | None = None
    barrier: threading.Barrier | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None


def opinion(answer: str, quote: str = "") -> Said:
    """A reply as it was asked for."""
    return Said(json.dumps({"answer": answer, "quote": quote}))


@dataclass(slots=True)
class ModelEndpoint:
    """A model by its script, which gets the question's document, and what it was asked, with paths and headers."""

    script: Callable[[Json], Said]
    url: str = ""
    requests: list[Json] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paid: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def documents(self) -> list[Json]:
        """The questions that were asked, as documents."""
        return [json.loads(request["messages"][1]["content"]) for request in self.requests]


def _completion(said: Said, request: Json) -> Json:
    message = {"role": "assistant", "content": said.content, "refusal": said.refusal}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": request.get("model", "deployed"),
        "choices": [{"index": 0, "message": message, "finish_reason": said.finish_reason, "logprobs": None}],
        "usage": {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100},
    }


@contextmanager
def model_endpoint(script: Callable[[Json], Said]) -> Iterator[ModelEndpoint]:
    """Serve one on this machine for as long as the block lasts."""
    endpoint = ModelEndpoint(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Answer a question."""
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with endpoint.lock:
                endpoint.requests.append(request)
                endpoint.paths.append(self.path)
                endpoint.headers.append(dict(self.headers))
                said = endpoint.script(json.loads(request["messages"][1]["content"]))
            if said.delay is not None:
                said.delay.wait()
            if said.barrier is not None:
                said.barrier.wait()
            body = json.dumps(_completion(said, request)).encode() if said.body is None else said.body
            with endpoint.lock:
                endpoint.paid += said.status == 200
            with suppress(OSError):  # who asked may have been killed
                self.send_response(said.status)
                for name, value in {"Content-Type": "application/json", **said.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        @override
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, name="model endpoint")
        thread.start()
        try:
            yield endpoint
        finally:
            server.shutdown()
            thread.join()
