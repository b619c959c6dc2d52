"""Expectations over HTTP: what goes over the wire, what each answer means, and how gently the service is asked."""

import asyncio
import gzip
import json
import logging
import socket
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from consumer.case_sources.case_client import MAX_BODY_BYTES, HttpOptions, credentials
from consumer.case_sources.http_breaker import Breaker
from consumer.case_sources.http_source import REFUSED_SECONDS, HttpSource
from consumer.case_sources.source import ExpectationsKey, FoundExpectations
from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError, SafeError, Transient
from safe_core import digest_of_narrative
from tests.support.case_service import MODES, Asked, CaseService, Mode, response
from tests.support.cases import make_batches, write_batches

JSON = {"Content-Type": "application/json"}
BEARER = "t0ken"
NOON = 1_700_000_000.0


# --- tools ------------------------------------------------------------------------------------------------------------


class Clock:
    """A clock that moves only by what is slept on it."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


Reply = bytes | Callable[[Asked], bytes | Awaitable[bytes]]


class Wire:
    """A server of one's own on the test's loop: what it is asked for, byte for byte, and what it replies.

    Replies are taken in order, the last one for good; one that does not end with a body closes the connection.
    """

    def __init__(self, *replies: Reply) -> None:
        self.replies: list[Reply] = list(replies)
        self.asked: list[Asked] = []
        self.at_once = 0
        self.most_at_once = 0
        self.sent_bytes = 0
        self.port = 0
        self._conversations: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/base"

    @property
    def targets(self) -> list[str]:
        return [asked.target for asked in self.asked]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Wire"]:
        server = await asyncio.start_server(self._converse, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for conversation in set(self._conversations):
                conversation.cancel()
            if self._conversations:
                await asyncio.wait(self._conversations)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = asyncio.current_task()
        assert conversation is not None
        self._conversations.add(conversation)
        try:
            while not writer.is_closing():
                self.asked.append(Asked.read(await reader.readuntil(b"\r\n\r\n")))
                raw = await self._reply(self.asked[-1])
                writer.write(raw)
                await writer.drain()
                self.sent_bytes += len(raw)
                if not is_whole(raw):
                    writer.close()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            await closed(writer)
            self._conversations.discard(conversation)

    async def _reply(self, asked: Asked) -> bytes:
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, bytes):
            return reply
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            said = reply(asked)
            return said if isinstance(said, bytes) else await said
        finally:
            self.at_once -= 1


def is_whole(raw: bytes) -> bool:
    """Whether a reply says how long it is, and is as long as that."""
    head, _, body = raw.partition(b"\r\n\r\n")
    return f"content-length: {len(body)}".encode() in head.lower()


def case(test_id: str, *signals: str, **more: object) -> dict[str, object]:
    """A test case that asks for some signals."""
    wanted = {"signal_generation": {"must_find_signals": list(signals or ("wheeze",))}}
    return {"test_id": test_id, "concern_id": "K07", "expectations": wanted, **more}


def found_case(test_id: str, *signals: str, etag: str | None = None, **more: object) -> bytes:
    """A good answer."""
    headers = JSON if etag is None else {**JSON, "ETag": etag}
    return response(200, json.dumps(case(test_id, *signals, **more)).encode(), headers)


def whatever_is_asked(asked: Asked) -> bytes:
    """A good answer to any test_id of plain letters."""
    return found_case(asked.target.rpartition("/")[2].partition("?")[0])


def key(test_id: str = "T-1", batch_id: str = "asthma_1") -> ExpectationsKey:
    return ExpectationsKey(batch_id, test_id)


def keys(count: int, prefix: str = "T") -> list[ExpectationsKey]:
    return [key(f"{prefix}{number}") for number in range(count)]


def options(url: str = "", *, token: str | None = None, **changes: Any) -> HttpOptions:
    shown = credentials(url, token)
    return HttpOptions(credentials=lambda: shown, **changes)


@asynccontextmanager
async def source_at(url: str, clock: Clock | None = None, **changes: Any) -> AsyncIterator[HttpSource]:
    """A source that has started, on a clock of its own."""
    clock = clock or Clock()
    source = HttpSource(url, options(url, **changes), clock=clock, wall=lambda: NOON, sleep=clock.sleep)
    await source.start()
    try:
        yield source
    finally:
        await source.stop()


@asynccontextmanager
async def serving(
    *replies: Reply, clock: Clock | None = None, **changes: Any
) -> AsyncIterator[tuple[Wire, HttpSource]]:
    """A server with these replies and a source that asks it."""
    async with Wire(*replies).listening() as wire, source_at(wire.url, clock, **changes) as source:
        yield wire, source


def several(*cases: object) -> bytes:
    """The answer of a service that has several test cases, which differ."""
    return response(200, json.dumps({"test_cases": cases}).encode(), JSON)


async def asked(source: HttpSource, test_id: str = "T-1") -> FoundExpectations | Poison:
    return (await source.find([key(test_id)]))[key(test_id)]


async def found(source: HttpSource, test_id: str = "T-1") -> FoundExpectations:
    answer = await asked(source, test_id)
    assert isinstance(answer, FoundExpectations), answer
    return answer


async def refused(source: HttpSource, test_id: str = "T-1") -> Poison:
    answer = await asked(source, test_id)
    assert isinstance(answer, Poison), answer
    return answer


async def outage(source: HttpSource, test_id: str = "T-1") -> str:
    with pytest.raises(Transient) as caught:
        await source.find([key(test_id)])
    return str(caught.value)


def signals(answer: FoundExpectations) -> tuple[str, ...]:
    return answer.prepared.expectations.must_find_signals


async def until(claim: Callable[[], object]) -> None:
    """Let the loop turn until something holds."""
    async with asyncio.timeout(10):
        while not claim():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0.001)


async def never(_asked: Asked) -> bytes:
    return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError, asyncio.CancelledError):
        await writer.wait_closed()


@asynccontextmanager
async def talking(talk: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[int]:
    """A server that talks to whoever connects, whatever it says; gives its port."""
    conversations = []

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversations.append(asyncio.current_task())
        with suppress(ConnectionError):
            await reader.read(1)
            await talk(writer)
        await closed(writer)

    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await asyncio.gather(*(conversation for conversation in conversations if conversation is not None))


# --- what goes over the wire ------------------------------------------------------------------------------------------

ON_THE_WIRE = [
    ("T-1_a.b~c", "T-1_a.b~c"),
    ("../../etc/passwd", "..%2F..%2Fetc%2Fpasswd"),
    ("/abs", "%2Fabs"),
    ("..", "%2E%2E"),  # a segment of dots alone would be taken away on the way
    (".", "%2E"),
    ("~root", "~root"),
    ("%2e%2e%2f", "%252e%252e%252f"),  # quoted, not taken as quoted already
    ("..%5c", "..%255c"),
    ("%252e", "%25252e"),
    ("?x#y", "%3Fx%23y"),
    ("//evil/x", "%2F%2Fevil%2Fx"),
    ("@evil", "%40evil"),
    ("http://169.254.169.254/", "http%3A%2F%2F169.254.169.254%2F"),
    ("a b+c&d=e;f", "a%20b%2Bc%26d%3De%3Bf"),
    ("Ängström", "%C3%84ngstr%C3%B6m"),
    ("A\u030angstrom", "A%CC%8Angstrom"),  # not normalised
    ("👩‍⚕️", "%F0%9F%91%A9%E2%80%8D%E2%9A%95%EF%B8%8F"),
    ("\\evil\\", "%5Cevil%5C"),
    ("a\r\nHost: evil", "a%0D%0AHost%3A%20evil"),  # decode() lets none of these through; nor would this
    ("\ud800", "%ED%A0%80"),
]


@pytest.mark.parametrize(("test_id", "segment"), ON_THE_WIRE)
async def test_each_id_is_one_quoted_segment_whatever_it_looks_like(test_id: str, segment: str) -> None:
    async with serving(response(404)) as (wire, source):
        await source.find([key(test_id, batch_id="b"), key("t", batch_id=test_id)])

        assert sorted(wire.targets) == sorted(
            [f"/base/test-cases/{segment}?batch_id=b", f"/base/test-cases/t?batch_id={segment}"]
        )
        assert {asked.headers["host"] for asked in wire.asked} == {f"127.0.0.1:{wire.port}"}


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("", ""),
        ("/", ""),
        ("/v2/safe", "/v2/safe"),
        ("/v2/safe/", "/v2/safe"),
        ("/a%2Fb/%C3%A4/c%7Ed", "/a%2Fb/%C3%A4/c%7Ed"),  # as it was written
        ("/a b/ä", "/a%20b/%C3%A4"),
    ],
)
async def test_the_path_of_the_base_is_kept(path: str, kept: str) -> None:
    async with Wire(response(404)).listening() as wire:
        async with source_at(f"http://127.0.0.1:{wire.port}{path}") as source:
            await source.find([key("t", batch_id="b")])
        assert wire.targets == [f"{kept}/test-cases/t?batch_id=b"]


async def test_a_request_says_what_it_wants_and_who_it_is() -> None:
    async with serving(response(404)) as (wire, source):
        await source.find([key()])

        headers = dict(wire.asked[0].headers)
        assert headers.pop("user-agent").startswith("safe/")
        assert headers == {
            "host": f"127.0.0.1:{wire.port}",
            "accept": "application/json",
            "accept-encoding": "identity",
        }


@pytest.mark.parametrize(
    ("userinfo", "token", "sent"),
    [
        ("", "a.b-c~d_e+f/g=", "Bearer a.b-c~d_e+f/g="),
        ("anna:p%40ss%3Aw%C3%B6rd@", None, "Basic YW5uYTpwQHNzOnfDtnJk"),  # anna:p@ss:wörd
        ("anna@", None, "Basic YW5uYTo="),
        ("", None, None),
    ],
)
async def test_credentials_go_into_a_header_alone(userinfo: str, token: str | None, sent: str | None) -> None:
    async with Wire(response(404)).listening() as wire:
        async with source_at(f"http://{userinfo}127.0.0.1:{wire.port}", token=token) as source:
            await source.find([key("t", batch_id="b")])
        assert wire.asked[0].headers.get("authorization") == sent
        assert wire.targets == ["/test-cases/t?batch_id=b"]


async def test_cookies_are_not_kept() -> None:
    cookies = response(404, headers={"Set-Cookie": "session=1; Path=/"})
    async with serving(cookies) as (wire, source):
        await source.find([key("a")])
        await source.find([key("b")])

        assert len(wire.asked) == 2
        assert not [asked for asked in wire.asked if "cookie" in asked.headers]


async def test_a_proxy_of_the_environment_is_used_only_where_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Wire(response(404)).listening() as proxy, Wire(response(404)).listening() as wire:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        async with source_at(wire.url) as source:
            await source.find([key()])
        assert (len(wire.asked), len(proxy.asked)) == (1, 0)

        async with source_at(wire.url, use_proxy=True) as source:
            await source.find([key()])
        assert (len(wire.asked), len(proxy.asked)) == (1, 1)
        assert proxy.targets[0].startswith(f"http://127.0.0.1:{wire.port}/base/test-cases/")

        monkeypatch.setenv("no_proxy", "127.0.0.1")
        async with source_at(wire.url, use_proxy=True) as source:
            await source.find([key()])
        assert (len(wire.asked), len(proxy.asked)) == (2, 1)


async def test_credentials_in_netrc_are_not_ours_to_send(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login anna password p4ss\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with serving(response(404), use_proxy=True) as (wire, source):
        await source.find([key()])
        assert "authorization" not in wire.asked[0].headers


# --- what cannot be configured ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/",
        "http://",
        "http:///path",
        "http://user:canary@/path",
        "http://host:canary/",
        "http://host:99999/",
        "http://host/?canary=1",
        "http://host/#canary",
        "http://[canary/",
        "http://canary..example/",
        "http://" + "canary" * 20 + "/",  # a label of more than 63 letters
    ],
)
def test_an_address_that_cannot_be_asked_is_refused_unquoted(url: str) -> None:
    with pytest.raises(ConfigurationError, match="SAFE_V0_EXPECTATIONS is not the address of a service") as caught:
        HttpSource(url, options())
    assert "canary" not in whole_text_of(caught.value)


@pytest.mark.parametrize(
    "token", ["can\nary", "canary\r\nX: y", "canary ", "kanarienvögel", "canary\x00", "", "カナリア"]
)
def test_a_token_that_no_header_can_carry_is_refused_unquoted(token: str) -> None:
    with pytest.raises(ConfigurationError, match="SAFE_V0_EXPECTATIONS_TOKEN holds") as caught:
        credentials("http://localhost/", token)
    assert "anar" not in whole_text_of(caught.value)
    assert "カナリア" not in whole_text_of(caught.value)


def test_a_user_and_a_token_cannot_both_be_sent() -> None:
    with pytest.raises(ConfigurationError, match="remove one of the two"):
        credentials("http://anna:p4ss@localhost/", BEARER)


async def test_a_proxy_that_does_not_speak_http_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://canary@127.0.0.1:1")
    source = HttpSource("http://service.example/", options(use_proxy=True))
    with pytest.raises(ConfigurationError, match="proxy") as caught:
        await source.start()
    assert "canary" not in str(caught.value)


PLAIN = [
    ("http://service.example/", "t0ken", 1),
    ("http://anna:p4ss@10.1.2.3:8080/", None, 1),
    ("https://service.example/", "t0ken", 0),
    ("http://service.example/", None, 0),
    ("http://localhost:8080/", "t0ken", 0),
    ("http://127.3.2.1/", "t0ken", 0),
    ("http://[::1]:80/", "t0ken", 0),
]


@pytest.mark.parametrize(("url", "token", "warnings"), PLAIN)
async def test_credentials_over_plain_http_to_another_machine_are_warned_of_once(
    url: str, token: str | None, warnings: int
) -> None:
    with capture_logs() as logs:
        async with source_at(url, token=token):
            pass
    assert [entry["log_level"] for entry in logs] == ["warning"] * warnings
    assert "t0ken" not in str(logs)
    assert "p4ss" not in str(logs)


# --- what an answer means ---------------------------------------------------------------------------------------------


async def test_a_test_case_is_read_by_the_rules_of_batch_files() -> None:
    answer = found_case(
        "T-1",
        "wheeze",
        "stridor",
        archetype="Safety_Signal",
        metric_id="asthma",
        batch_id="another",
        patient_payload="…",
    )
    async with serving(answer) as (_wire, source):
        one = await found(source)

    assert signals(one) == ("wheeze", "stridor")
    assert (one.concern_id, one.archetype, one.metric_id) == ("K07", "Safety_Signal", "asthma")
    assert (one.expected_cases, one.in_batch) == (None, False)
    assert source.requests == {"found": 1, "not_found": 0, "ambiguous": 0, "invalid": 0, "transient": 0}


async def test_no_such_test_case_is_not_found_for_a_moment() -> None:
    clock = Clock()
    async with serving(response(404, b"<html>"), found_case("T-1"), clock=clock) as (wire, source):
        assert (await refused(source)).reason == "expectations_not_found"
        assert (await refused(source)).reason == "expectations_not_found"
        assert len(wire.asked) == 1

        clock.now += 2.0
        assert signals(await found(source)) == ("wheeze",)
        assert source.requests["not_found"] == 2


async def test_everybody_gets_an_error_of_his_own() -> None:
    """Each raises it: one that is shared would grow a traceback for as long as it is kept."""
    async with serving(response(404)) as (wire, source):
        together = await asyncio.gather(refused(source), refused(source))
        later = [await refused(source), await refused(source)]
        assert len({id(poison) for poison in (*together, *later)}) == 4
        assert len(wire.asked) == 1


INVALID: list[tuple[str, object]] = [
    ("another test case", case("T-2")),
    ("another test case", case("t-1")),  # compared exactly
    ("another test case", case("T-1 ")),
    ("test_id is missing", {"error": "canary"}),
    ("test_id is missing", {**case("T-1"), "test_id": None}),
    ("test_id is not a string", {**case("T-1"), "test_id": 1}),
    ("expectations are absent or null", {"test_id": "T-1"}),
    ("not an object", {"test_id": "T-1", "expectations": ["canary"]}),
    ("is not a list", {"test_id": "T-1", "expectations": {"signal_generation": {"must_find_signals": "canary"}}}),
    ("must_find_signals[1]", case("T-1", "canary", " ")),  # a blank term would match everything
    ("must_find_signals[0]", {"test_id": "T-1", "expectations": {"signal_generation": {"must_find_signals": [7]}}}),
    ("more than 10000 terms", case("T-1", *["canary"] * 10_001)),
]


@pytest.mark.parametrize(("why", "document"), INVALID)
async def test_a_whole_answer_that_cannot_be_scored_against_is_invalid(why: str, document: object) -> None:
    async with serving(response(200, json.dumps(document).encode(), JSON)) as (_wire, source):
        poison = await refused(source)

        assert poison.reason == "expectations_invalid"
        assert why in poison.detail
        assert "canary" not in poison.detail
        assert source.trouble() is None
        assert source.requests["invalid"] == 1


def whole_text_of(error: BaseException) -> str:
    """An error as a traceback would show it, causes included."""
    texts = [repr(error), str(error)]
    for other in (error.__cause__, None if error.__suppress_context__ else error.__context__):
        texts += [whole_text_of(other)] if other is not None else []
    return "\n".join(texts)


def gzipped(raw: bytes) -> bytes:
    return response(200, gzip.compress(raw), {**JSON, "Content-Encoding": "gzip"})


GOOD = json.dumps(case("T-1", "canary")).encode()
HINT = "check SAFE_V0_EXPECTATIONS_TOKEN"
# What the service sends, and what we say of it: never a dead letter.
OUTAGES: list[tuple[str, bytes]] = [
    ("answers 500", response(500, b"canary")),
    ("answers 503", response(503)),
    ("answers 429", response(429)),
    ("answers 400", response(400)),  # whoever dislikes an id must say that there is no such test case
    ("answers 410", response(410)),
    ("answers 201", response(201, GOOD)),
    ("answers 204", response(204)),
    ("answers 206", response(206, GOOD)),
    (f"refuses the credentials (401): {HINT}", response(401, b"", {"WWW-Authenticate": "Basic realm=canary"})),
    (f"refuses access (403): {HINT}", response(403, b"canary")),
    ("answers with a redirect (302)", response(302, b"", {"Location": "http://canary.example/"})),
    ("answers with a redirect (308)", response(308, b"", {"Location": "/canary"})),
    ("answers 304", response(304)),  # nobody has asked whether anything has changed
    ("is not JSON", response(200, b"<html>canary</html>", {"Content-Type": "text/html"})),
    ("is not JSON", response(200, b"")),
    ("is not JSON", response(200, GOOD[:-1], JSON)),
    ("is not JSON", response(200, GOOD + b"{}", JSON)),
    ("is not JSON", response(200, b"\xff\xfe", JSON)),
    ("is not JSON", response(200, b"[" * 100_000, JSON)),
    ("JSON that is not an object", response(200, b'["canary"]', JSON)),
    ("JSON that is not an object", response(200, b"null", JSON)),
    ("closes the connection", response(200, GOOD, JSON)[:-10]),  # less than Content-Length says
    ("closes the connection", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(GOOD), GOOD)),
    (
        "sends an invalid HTTP response",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\ncanary\r\n0\r\n\r\n",
    ),
    ("closes the connection", response(404, b"canary")[:-1]),  # as doubtful as half a test case
    ("sends a compressed answer", gzipped(GOOD)),
    ("sends a compressed answer", gzipped(b"")),
    ("closes the connection", b""),
    ("closes the connection", b"HTTP/1.1 200"),
    ("sends an invalid HTTP response", b"SSH-2.0-canary\r\n\r\n"),
    ("sends an invalid HTTP response", b"HTTP/1.1 200 OK\r\nContent-Length: canary\r\n\r\n"),
    ("sends an invalid HTTP response", b"HTTP/1.1 200 OK\r\nX: " + b"canary" * 5_000 + b"\r\n\r\n"),
    ("more than 4 MiB", b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\ncanary"),
]


@pytest.mark.parametrize(("why", "raw"), OUTAGES)
async def test_anything_else_is_an_outage(why: str, raw: bytes) -> None:
    async with serving(raw) as (_wire, source):
        with pytest.raises(Transient) as caught:
            await source.find([key()])

        text = whole_text_of(caught.value)
        assert why in text
        assert "canary" not in text
        assert "T-1" not in text
        assert source.requests["transient"] == 1
        assert why in str(source.trouble())


async def test_a_service_that_is_not_there_is_an_outage() -> None:
    async with Wire(b"").listening() as wire:
        pass
    async with source_at(wire.url) as source:
        assert await outage(source) == "the expectations service cannot be reached (Connection refused)"


async def test_a_name_that_is_not_resolved_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*_args: object, **_more: object) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    async with source_at("http://service.example/") as source:
        assert "DNS does not resolve its name" in await outage(source)


async def test_a_service_that_speaks_no_tls_is_an_outage() -> None:
    async def plainly(writer: asyncio.StreamWriter) -> None:
        writer.write(response(400))

    async with talking(plainly) as port, source_at(f"https://127.0.0.1:{port}/") as source:
        assert await outage(source) == "the expectations service cannot be reached: the TLS handshake failed"


async def test_a_redirect_leads_nowhere() -> None:
    async with Wire(found_case("T-1")).listening() as elsewhere:
        target = {"Location": f"{elsewhere.url}/test-cases/T-1?batch_id=asthma_1"}
        async with serving(response(302, b"", target), token=BEARER) as (wire, source):
            await outage(source)
            assert len(wire.asked) == 1  # nor is it asked again: somebody must do something about it
        assert not elsewhere.asked


# --- time and size ----------------------------------------------------------------------------------------------------


async def test_a_service_that_hangs_is_asked_twice_within_the_deadline() -> None:
    async with Wire(never).listening() as wire:
        source = HttpSource(wire.url, options(timeout_seconds=0.2))
        await source.start()
        assert "not answered" in await outage(source)
        await source.stop()
        assert len(wire.asked) in {1, 2}  # the second is due when the first call ends


async def test_a_body_that_trickles_in_ends_with_the_deadline() -> None:
    async def trickle(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.005)

    async with talking(trickle) as port:
        source = HttpSource(f"http://127.0.0.1:{port}", options(timeout_seconds=0.2))
        await source.start()
        assert "not answered" in await outage(source)
        await source.stop()


async def test_no_more_is_read_than_a_test_case_can_have(tmp_path: Path) -> None:
    with CaseService(tmp_path) as service:
        service.behave_as("huge")
        tracemalloc.start()
        async with source_at(service.url, timeout_seconds=30) as source:
            assert "more than 4 MiB" in await outage(source)
        _now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        tries = service.requests
        assert service.sent_bytes < tries * (MAX_BODY_BYTES + 16 * 1024**2)  # what stands in the sockets' buffers
        assert peak < 8 * MAX_BODY_BYTES


async def test_a_bomb_is_not_unpacked() -> None:
    bomb = gzipped(b" " * 200_000_000)
    tracemalloc.start()
    async with serving(bomb) as (_wire, source):
        assert "sends a compressed answer" in await outage(source)
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * MAX_BODY_BYTES


async def test_headers_without_end_are_an_outage() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while not writer.is_closing():
            writer.write(b"X-More: canary\r\n" * 1_000)
            await writer.drain()

    async with talking(endless) as port, source_at(f"http://127.0.0.1:{port}") as source:
        assert "sends an invalid HTTP response" in await outage(source)


async def test_a_large_test_case_is_read_beside_the_loop() -> None:
    terms = [f"sign {number} of an asthma attack that nobody has written down" for number in range(9_000)]
    async with serving(found_case("T-1", *terms)) as (_wire, source):
        assert signals(await found(source)) == tuple(terms)


# --- trying again -----------------------------------------------------------------------------------------------------


async def test_a_failure_that_passes_is_not_noticed() -> None:
    clock = Clock()
    async with serving(response(500), response(503), found_case("T-1"), clock=clock) as (wire, source):
        await found(source)
        assert len(wire.asked) == 3
        assert source.trouble() is None
        assert len(clock.slept) == 2
        assert 0.05 <= clock.slept[0] <= 0.1  # the later half below a ceiling that doubles
        assert 0.1 <= clock.slept[1] <= 0.2


async def test_tries_end_with_the_deadline() -> None:
    clock = Clock()
    async with serving(response(500), clock=clock, timeout_seconds=10) as (wire, source):
        assert await outage(source) == "the expectations service answers 500"
        assert len(wire.asked) > 3
        assert sum(clock.slept) < 10


@pytest.mark.parametrize("status", [401, 403, 302])
async def test_what_somebody_must_repair_is_not_tried_again(status: int) -> None:
    async with serving(response(status)) as (wire, source):
        await outage(source)
        assert len(wire.asked) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "3"},
        {"Retry-After": formatdate(NOON + 3, usegmt=True)},
        # The service's own clock counts, which here is a day ahead.
        {"Retry-After": formatdate(NOON + 86_403, usegmt=True), "Date": formatdate(NOON + 86_400, usegmt=True)},
    ],
)
async def test_the_service_says_when_to_return(headers: Mapping[str, str]) -> None:
    clock = Clock()
    async with serving(response(429, b"", headers), found_case("T-1"), clock=clock) as (wire, source):
        await found(source)
        assert len(wire.asked) == 2
        assert 3.0 <= sum(clock.slept) <= 3.2


@pytest.mark.parametrize(
    "value", ["", "soon", "-5", "1.5", "０", "Wed, 99 Foo 2026 10:00:00 GMT", formatdate(NOON - 60)]
)
async def test_a_retry_after_that_says_nothing_usable_holds_nothing_up(value: str) -> None:
    clock = Clock()
    reply = response(503, b"", {"Retry-After": value}) if value.isascii() else response(503)
    async with serving(reply, found_case("T-1"), clock=clock) as (_wire, source):
        await found(source)
        assert sum(clock.slept) <= 0.1


@pytest.mark.parametrize(("value", "seconds"), [("60", 60), ("86400", 300), ("9" * 5_000, 300)])
async def test_a_service_that_asks_for_more_than_the_deadline_is_left_alone_until_then(
    value: str, seconds: int
) -> None:
    clock = Clock()
    async with serving(
        response(429, b"", {"Retry-After": value}), whatever_is_asked, clock=clock, timeout_seconds=10
    ) as (wire, source):
        assert await outage(source) == "the expectations service answers 429"
        assert not clock.slept

        clock.now += seconds - 11
        assert "SAFE asks again in 11 s" in await outage(source, "T-2")
        assert source.trouble() is not None
        assert len(wire.asked) == 1

        clock.now += 11
        await found(source, "T-2")
        assert source.trouble() is None


# --- one request per key, and not too many ----------------------------------------------------------------------------


async def test_however_many_wait_for_a_key_it_is_asked_for_once() -> None:
    gate = asyncio.Event()

    async def later(_asked: Asked) -> bytes:
        await gate.wait()
        return found_case("T-1")

    async with serving(later) as (wire, source):
        waiting = [asyncio.create_task(found(source)) for _ in range(20)]
        await until(lambda: wire.asked)
        gate.set()
        answers = await asyncio.gather(*waiting)

        assert len(wire.asked) == 1
        assert len({id(answer) for answer in answers}) == 1
        assert source.requests["found"] == 20


async def test_whoever_is_cancelled_takes_nothing_from_the_others() -> None:
    gate = asyncio.Event()

    async def later(_asked: Asked) -> bytes:
        await gate.wait()
        return found_case("T-1")

    async with serving(later) as (wire, source):
        first, second = asyncio.create_task(found(source)), asyncio.create_task(found(source))
        await until(lambda: wire.asked)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        gate.set()

        assert signals(await second) == ("wheeze",)
        assert len(wire.asked) == 1


async def test_what_was_under_way_for_somebody_cancelled_still_serves_the_next() -> None:
    gate = asyncio.Event()

    async def later(_asked: Asked) -> bytes:
        await gate.wait()
        return found_case("T-1")

    async with serving(later) as (wire, source):
        first = asyncio.create_task(found(source))
        await until(lambda: wire.asked)
        first.cancel()
        await asyncio.wait({first})
        gate.set()

        await found(source)
        assert len(wire.asked) == 1


async def test_what_nobody_waits_for_any_more_is_not_asked() -> None:
    gate = asyncio.Event()

    async def later(asked: Asked) -> bytes:
        await gate.wait()
        return whatever_is_asked(asked)

    async with serving(later, max_requests=2) as (wire, source):
        slice_ = asyncio.create_task(source.find(keys(50)))
        await until(lambda: len(wire.asked) == 2)
        slice_.cancel()
        await asyncio.wait({slice_})
        gate.set()
        await found(source, "other")

        assert len(wire.asked) == 3


async def test_no_more_requests_are_out_at_once_than_configured() -> None:
    async def soon(asked: Asked) -> bytes:
        await asyncio.sleep(0.001)
        return whatever_is_asked(asked)

    async with serving(soon, max_requests=4) as (wire, source):
        await asyncio.gather(*(source.find(keys(25, prefix)) for prefix in "ABCD"))
        assert len(wire.asked) == 100
        assert wire.most_at_once == 4


async def test_a_slice_goes_out_together() -> None:
    gathered = asyncio.Event()
    waiting = 0

    async def when_all_are_here(asked: Asked) -> bytes:
        nonlocal waiting
        waiting += 1
        if waiting == 16:
            gathered.set()
        await gathered.wait()
        return whatever_is_asked(asked)

    async with serving(when_all_are_here, max_requests=16) as (_wire, source):
        assert len(await source.find(keys(16))) == 16


# --- the breaker ------------------------------------------------------------------------------------------------------


def highest(_low: float, high: float) -> float:
    return high


def test_a_breaker_opens_after_failures_of_different_keys_in_a_row() -> None:
    breaker = Breaker(limit=3, uniform=highest)
    for failed in ("a", "b", "a", "b"):
        breaker.failed(failed, 0.0)
    assert not breaker.cools(0.0)
    breaker.succeeded()
    for failed in ("a", "b"):
        breaker.failed(failed, 0.0)
    assert not breaker.cools(0.0)
    breaker.failed("c", 0.0)
    assert breaker.cools(0.49)
    assert not breaker.cools(0.5)


def test_a_breaker_cools_for_longer_from_time_to_time_up_to_a_limit() -> None:
    breaker = Breaker(limit=1, uniform=highest)
    now = 0.0
    for seconds in (0.5, 1.0, 2.0, 4.0, 4.0):
        breaker.failed("a", now)
        assert breaker.cools(now + seconds - 0.01)
        now += seconds
        assert not breaker.cools(now)
    breaker.succeeded()
    assert not breaker.is_open
    breaker.failed("a", now)
    assert not breaker.cools(now + 0.5)


def test_what_was_under_way_when_a_breaker_opened_does_not_prolong_it() -> None:
    breaker = Breaker(limit=1, uniform=highest)
    breaker.failed("a", 0.0)
    breaker.failed("b", 0.3)
    assert not breaker.cools(0.5)


async def opened(source: HttpSource) -> None:
    """Let five keys fail."""
    with pytest.raises(Transient):
        await source.find(keys(5, "gone"))


async def test_while_the_breaker_is_open_nothing_is_asked() -> None:
    clock = Clock()
    async with serving(response(500), clock=clock) as (wire, source):
        await opened(source)
        before = len(wire.asked)
        assert await outage(source) == "the expectations service answers 500"
        assert source.trouble() == "the expectations service answers 500"
        assert len(wire.asked) == before


async def test_one_probe_goes_out_and_the_others_follow_when_it_is_back() -> None:
    clock = Clock()
    gate = asyncio.Event()

    async def later(asked: Asked) -> bytes:
        await gate.wait()
        await asyncio.sleep(0.001)
        return whatever_is_asked(asked)

    async with serving(response(401), clock=clock) as (wire, source):
        await opened(source)
        wire.replies = [later]
        before = len(wire.asked)
        clock.now += 0.5
        slice_ = asyncio.create_task(source.find(keys(30)))
        await until(lambda: len(wire.asked) > before)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(wire.asked) == before + 1
        gate.set()

        assert len(await slice_) == 30
        assert wire.most_at_once > 5
        assert source.trouble() is None


async def test_whoever_waits_for_a_probe_beyond_his_deadline_does_not_ask_in_vain() -> None:
    clock = Clock()
    gate = asyncio.Event()

    async def later(asked: Asked) -> bytes:
        await gate.wait()
        return whatever_is_asked(asked)

    async with serving(response(401), clock=clock, timeout_seconds=10) as (wire, source):
        await opened(source)
        wire.replies = [later]
        before = len(wire.asked)
        clock.now += 0.5
        slice_ = asyncio.create_task(source.find(keys(30)))
        await until(lambda: len(wire.asked) > before)
        clock.now += 9.5
        gate.set()
        with pytest.raises(Transient):
            await slice_
        assert len(await source.find(keys(30))) == 30


async def test_a_probe_that_fails_keeps_the_others_back() -> None:
    clock = Clock()
    async with serving(response(401), clock=clock) as (wire, source):
        await opened(source)
        before = len(wire.asked)
        clock.now += 0.5
        with pytest.raises(Transient):
            await source.find(keys(30))
        assert len(wire.asked) == before + 1


async def test_a_key_that_always_fails_does_not_hold_up_the_others() -> None:
    def all_but_one(asked: Asked) -> bytes:
        return response(500) if "/bad?" in asked.target else whatever_is_asked(asked)

    clock = Clock()
    async with serving(all_but_one, clock=clock) as (wire, source):
        await outage(source, "bad")
        assert len(wire.asked) > 5
        assert len(await source.find(keys(20))) == 20


async def test_an_outage_is_told_once_and_so_is_its_end() -> None:
    clock = Clock()
    with capture_logs() as logs:
        async with serving(response(500), clock=clock) as (wire, source):
            for _ in range(3):
                await opened(source)
                clock.now += 5.0
            wire.replies = [whatever_is_asked]
            await source.find(keys(20))
    told = [(entry["log_level"], entry["event"]) for entry in logs]
    assert told == [
        ("error", "cannot look up test cases: the service is unavailable"),
        ("info", "the expectations service is back"),
    ]
    assert logs[0]["host"] == f"127.0.0.1:{wire.port}"


# --- readiness --------------------------------------------------------------------------------------------------------


async def test_readiness_returns_by_itself() -> None:
    clock = Clock()
    async with serving(response(500), clock=clock) as (wire, source):
        await opened(source)
        assert source.trouble() is not None
        wire.replies = [whatever_is_asked]
        before = len(wire.asked)

        clock.now += 5.0
        assert source.trouble() is not None  # it asks, and answers from what it knows
        assert source.trouble() is not None
        await until(lambda: source.trouble() is None)
        assert len(wire.asked) == before + 1
        assert source.requests["found"] == 0  # nobody had asked


async def test_a_service_that_goes_while_nobody_asks_is_noticed() -> None:
    clock = Clock()
    async with serving(found_case("T-1"), clock=clock) as (wire, source):
        assert source.trouble() is None
        await found(source)
        assert source.trouble() is None
        wire.replies = [response(500)]

        clock.now += 5.0
        assert source.trouble() is None
        await until(lambda: source.trouble() is not None)


async def test_a_service_is_not_asked_for_readiness_more_often_than_needed() -> None:
    clock = Clock()
    async with serving(found_case("T-1"), clock=clock) as (wire, source):
        await found(source)
        for _ in range(50):
            assert source.trouble() is None
            await asyncio.sleep(0.001)
            clock.now += 0.02
        assert len(wire.asked) == 1


async def test_before_anything_was_asked_nothing_is_wrong() -> None:
    clock = Clock()
    async with serving(response(500), clock=clock) as (wire, source):
        clock.now += 60
        assert source.trouble() is None
        await asyncio.sleep(0.01)
        assert not wire.asked


async def test_a_request_without_an_answer_is_trouble_before_its_deadline() -> None:
    clock = Clock()
    async with serving(never, clock=clock, timeout_seconds=600) as (wire, source):
        waiting = asyncio.create_task(source.find([key()]))
        await until(lambda: wire.asked)
        assert source.trouble() is None
        clock.now += 7.0
        assert source.trouble() == "the expectations service has not answered for 7 s"
        waiting.cancel()
        await asyncio.wait({waiting})


async def test_stopping_calls_everybody_back() -> None:
    async with serving(never, max_requests=1) as (wire, source):
        waiting = [asyncio.create_task(source.find(keys(3))) for _ in range(2)]
        await until(lambda: wire.asked)
        await source.stop()
        await source.stop()
        assert [type(error) for error in await asyncio.gather(*waiting, return_exceptions=True)] == [Transient] * 2
        assert source.trouble() is None


# --- the cache --------------------------------------------------------------------------------------------------------


async def test_an_answer_is_used_until_it_expires() -> None:
    clock = Clock()
    async with serving(found_case("T-1", "old"), found_case("T-1", "new"), clock=clock, cache_seconds=60) as (
        wire,
        source,
    ):
        assert signals(await found(source)) == ("old",)
        clock.now += 59.9
        assert signals(await found(source)) == ("old",)
        clock.now += 0.2
        assert signals(await found(source)) == ("new",)
        assert len(wire.asked) == 2


async def test_an_answer_from_the_cache_is_given_without_waiting() -> None:
    async with serving(whatever_is_asked) as (_wire, source):
        await source.find(keys(100))
        with pytest.raises(StopIteration) as finished:
            source.find(keys(100)).send(None)
        assert len(finished.value.value) == 100


async def test_an_expired_answer_with_an_etag_is_asked_after() -> None:
    clock = Clock()
    not_modified = response(304, headers={"ETag": 'W/"1"'})
    replies = (found_case("T-1", "old", etag='W/"1"'), not_modified, not_modified, found_case("T-1", "new", etag='"2"'))
    async with serving(*replies, clock=clock, cache_seconds=60) as (wire, source):
        for wanted in ("old", "old", "old", "new"):
            assert signals(await found(source)) == (wanted,)
            assert signals(await found(source)) == (wanted,)
            clock.now += 61
        assert [asked.headers.get("if-none-match") for asked in wire.asked] == [None, *['W/"1"'] * 3]


@pytest.mark.parametrize("etag", ["bare", '"a"b"', '"ä"', '"' + "x" * 300 + '"', '"a\tb"', ""])
async def test_an_etag_that_is_none_is_not_sent_back(etag: str) -> None:
    async with serving(found_case("T-1", etag=etag), cache_seconds=0) as (wire, source):
        await found(source)
        await found(source)
        assert [asked.headers.get("if-none-match") for asked in wire.asked] == [None, None]


async def test_an_expired_answer_is_not_used_while_the_service_is_down() -> None:
    clock = Clock()
    async with serving(found_case("T-1", etag='"1"'), response(503), clock=clock) as (_wire, source):
        await found(source)
        clock.now += 61
        assert await outage(source) == "the expectations service answers 503"


async def test_a_test_case_that_was_removed_is_not_found() -> None:
    clock = Clock()
    async with serving(found_case("T-1", etag='"1"'), response(404), clock=clock) as (wire, source):
        await found(source)
        clock.now += 61
        assert (await refused(source)).reason == "expectations_not_found"
        clock.now += 3
        assert (await refused(source)).reason == "expectations_not_found"
        assert wire.asked[-1].headers.get("if-none-match") is None


async def test_no_more_answers_are_kept_than_configured_and_the_longest_unused_goes_first() -> None:
    async with serving(whatever_is_asked, cache_size=2) as (wire, source):
        for test_id in ("a", "b", "a", "c"):
            await found(source, test_id)
        assert len(wire.asked) == 3
        await found(source, "a")
        await found(source, "c")
        assert len(wire.asked) == 3
        await found(source, "b")
        assert len(wire.asked) == 4


async def test_refusals_are_bounded_too() -> None:
    async with serving(response(404), cache_size=10) as (_wire, source):
        await source.find(keys(50))
        assert len(source._cache._refused) == 10


async def test_without_a_cache_every_call_asks() -> None:
    async with serving(found_case("T-1"), cache_seconds=0) as (wire, source):
        for _ in range(3):
            await found(source)
        assert len(wire.asked) == 3


async def test_a_call_that_failed_need_not_ask_again_for_what_it_has_got() -> None:
    def all_but_one(asked: Asked) -> bytes:
        return response(401) if "/T3?" in asked.target else whatever_is_asked(asked)

    async with serving(all_but_one, cache_seconds=0) as (wire, source):
        with pytest.raises(Transient):
            await source.find(keys(4))
        wire.replies = [whatever_is_asked]
        assert len(await source.find(keys(4))) == 4
        assert Counter(wire.targets).most_common(2)[1][1] == 1  # only T3 twice


async def test_equal_expectations_are_prepared_once() -> None:
    async with serving(whatever_is_asked) as (_wire, source):
        one, other = await found(source, "a"), await found(source, "b")
        assert one.prepared is other.prepared


# --- secrets ----------------------------------------------------------------------------------------------------------

CANARIES = ("t0ken-canary", "b0dy-canary", "id-canary", "c00kie-canary", "l0cation-canary")


@pytest.fixture
def everything_logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Every logger at DEBUG, asyncio's own too."""
    with caplog.at_level(logging.DEBUG):
        yield caplog


@pytest.mark.parametrize(
    "raw",
    [
        *(raw for _why, raw in OUTAGES),
        found_case("id-canary", "b0dy-canary"),
        found_case("another", "b0dy-canary"),
        response(404, b"b0dy-canary"),
        response(200, b"b0dy-canary", {"Set-Cookie": "c00kie-canary name=1; Domain=x"}),
        response(200, b"b0dy-canary", {"Set-Cookie": "a=c00kie-canary\x01; \x02"}),
        response(302, b"", {"Location": "http://anna:l0cation-canary@evil/"}),
    ],
)
async def test_nothing_of_a_secret_an_id_or_an_answer_is_ever_told(
    raw: bytes, everything_logged: pytest.LogCaptureFixture
) -> None:
    asyncio.get_running_loop().set_debug(True)
    texts: list[str] = []
    with capture_logs() as logs:
        async with serving(raw, token=CANARIES[0]) as (_wire, source):
            for _ in range(6):
                try:
                    answers = await source.find([key("id-canary")])
                    texts += [whole_text_of(answer) for answer in answers.values() if isinstance(answer, Poison)]
                except SafeError as error:
                    texts.append(whole_text_of(error))
            texts += [str(source.trouble()), repr(source), repr(source._options), repr(source._client)]
    told = "\n".join([*texts, str(logs), everything_logged.text])
    assert not [canary for canary in CANARIES if canary in told]


# --- everything that a service may do wrong ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def case_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CaseService, list[ExpectationsKey]]]:
    """A service of its own thread over a folder of batch files, and all of its keys."""
    batches = make_batches(7, batches=3, cases_a_batch=10)
    folder = write_batches(tmp_path_factory.mktemp("cases"), batches)
    with CaseService(folder, token=BEARER) as service:
        yield service, [ExpectationsKey(each.batch_id, each.test_id) for batch in batches for each in batch.cases]


async def recovered(
    source: HttpSource, clock: Clock, wanted: list[ExpectationsKey]
) -> Mapping[ExpectationsKey, FoundExpectations | Poison]:
    """Try again as a partition does, which may meet what still hangs."""
    async with asyncio.timeout(20):
        while True:
            clock.now += 5.0
            with suppress(Transient):
                return await source.find(wanted)


SEVERAL = [
    # they need not differ
    ([{"signals": ("x",)}, {"signals": ("x",)}], None),
    ([{"signals": ("x",)}, {"test_id": "T-2"}], "expectations_invalid"),
    ([{"signals": ("x",)}, {"signals": (" ",)}], "expectations_invalid"),
    ([{"signals": ("x",)}, {"signals": ("y",)}], "expectations_ambiguous"),
]


@pytest.mark.parametrize(("differing", "reason"), SEVERAL)
async def test_a_service_may_answer_with_all_test_cases_where_they_differ(
    differing: list[dict[str, Any]], reason: str | None
) -> None:
    cases = [case(each.get("test_id", "T-1"), *each.get("signals", ("x",))) for each in differing]
    async with serving(several(*cases)) as (_, source):
        answer = await asked(source)
    assert (answer.reason if isinstance(answer, Poison) else None) == reason


async def test_the_outputs_of_all_narratives_share_one_request_and_its_answer_is_soon_asked_for_again() -> None:
    clock = Clock()
    his, hers = (f"{who} wheezes." for who in ("He", "She"))
    both = [case("T-1", "x", patient_payload=his), case("T-1", "y", patient_payload=hers)]
    keys = [ExpectationsKey("asthma_1", "T-1", digest_of_narrative(text)) for text in (his, hers, "They wheeze.")]
    async with serving(several(*both), clock=clock) as (wire, source):
        for _ in range(2):
            answers = await source.find(keys)
            signals = [
                answer.prepared.expectations.must_find_signals if isinstance(answer, FoundExpectations) else None
                for answer in answers.values()
            ]
            assert signals == [("x",), ("y",), None]
        assert len(wire.asked) == 1
        clock.now += REFUSED_SECONDS + 1
        await source.find(keys)
        assert len(wire.asked) == 2


async def test_a_new_token_is_sent_with_the_next_request_and_ends_the_outage(
    case_service: tuple[CaseService, list[ExpectationsKey]],
) -> None:
    service, wanted = case_service
    shown, clock = [credentials("", "a-wrong-one")], Clock()
    source = HttpSource(service.url, HttpOptions(credentials=lambda: shown[-1]), clock=clock, sleep=clock.sleep)
    await source.start()
    with pytest.raises(Transient, match=r"refuses the credentials \(401\): check SAFE_V0_EXPECTATIONS_TOKEN$"):
        await source.find(wanted[:1])
    shown.append(credentials("", BEARER))
    answers = await recovered(source, clock, wanted[:1])
    await source.stop()
    assert all(isinstance(answer, FoundExpectations) for answer in answers.values())


HARMLESS: dict[Mode, set[str]] = {"normal": {"found"}, "other_test_id": {"invalid"}, "flapping": {"found"}}


@pytest.mark.parametrize("mode", MODES)
async def test_whatever_the_service_does_it_is_an_outage_from_which_look_ups_recover(
    mode: Mode, case_service: tuple[CaseService, list[ExpectationsKey]]
) -> None:
    service, wanted = case_service
    strayed = service.strayed
    clock = Clock()
    async with source_at(
        service.url, clock, token=BEARER, timeout_seconds=0.5 if mode in {"slow", "hang"} else 10
    ) as source:
        service.behave_as(mode)
        with suppress(Transient):
            await source.find(wanted)
        seen = {outcome for outcome, count in source.requests.items() if count}
        assert seen <= HARMLESS.get(mode, set()) | {"transient"}
        assert seen == HARMLESS.get(mode, {"transient"}) or mode == "flapping"

        service.behave_as("normal")
        answers = await recovered(source, clock, wanted)
        assert all(isinstance(answer, FoundExpectations) for answer in answers.values())
        assert len(answers) == len(wanted)
        assert source.trouble() is None
    assert service.strayed == strayed
