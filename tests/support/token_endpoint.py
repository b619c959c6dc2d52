"""A token endpoint of OAuth 2.0 that gives what a test broker accepts: JSON Web Tokens without a signature."""

import base64
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs

from typing_extensions import override


@dataclass(slots=True)
class TokenEndpoint:
    """Who is given tokens, and of which kind; a test may change it at any time."""

    client_id: str
    client_secret: str
    life_seconds: float = 300.0
    claims: Mapping[str, object] = field(default_factory=dict)
    url: str = ""
    asked: int = 0

    def answer(self, login: str, scope: str) -> tuple[int, Mapping[str, object]]:
        """Return status and body for a request."""
        self.asked += 1
        if login != f"{self.client_id}:{self.client_secret}":
            return 401, {"error": "invalid_client"}
        claims = {"sub": self.client_id, "iat": time.time(), "exp": time.time() + self.life_seconds, "scope": scope}
        token = ".".join([_encoded({"alg": "none"}), _encoded(claims | dict(self.claims)), ""])
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": self.life_seconds}


def _encoded(part: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


@contextmanager
def token_endpoint(client_id: str, client_secret: str) -> Iterator[TokenEndpoint]:
    """Serve one on this machine for as long as the block lasts."""
    endpoint = TokenEndpoint(client_id, client_secret)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Answer a request for a token."""
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            login = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
            assert form["grant_type"] == ["client_credentials"]
            status, body = endpoint.answer(login, form.get("scope", [""])[0])
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        @override
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        endpoint.url = f"http://127.0.0.1:{server.server_port}/token"
        thread = Thread(target=server.serve_forever, name="token endpoint")
        thread.start()
        try:
            yield endpoint
        finally:
            server.shutdown()
            thread.join()
