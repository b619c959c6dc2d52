"""One request to a service of test cases, and what its answer means (contract.md, "Look-up").

Only a whole JSON object with 200, or a 404, is an answer; anything else is an Outage. Nothing that the service sends
reaches a message: it may be anybody's page.
"""

import asyncio
import base64
import ipaddress
import re
import ssl
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

import aiohttp
import structlog
import yarl

from consumer import __version__
from consumer.case_sources.cases import (
    ConflictingCases,
    agreed,
    as_one,
    expect_the_same,
    parse_document,
    poison,
    undecided,
)
from consumer.case_sources.http_outages import SERVICE, Outage, failure, refusal
from consumer.case_sources.source import Answer, ExpectationsKey, FoundExpectations
from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError
from safe_core import BadTestCase, InvalidBatch, TestCase, parse_batch, prepare

MAX_BODY_BYTES = 4 * 1024 * 1024
"""More than a test case of 10 000 terms needs; a longer answer is not read to its end."""
_LARGE_BYTES = 64 * 1024
"""Longer answers are read in a thread: heartbeats run on the same loop."""
_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]{0,254}"')
_TOKEN = re.compile(r"[\x21-\x7e]+")
_IN_A_PATH = "/%:@!$&'()*+,;=~"

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger("safe.expectations")


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How the service is asked; `timeout_seconds` is for one key, and for one call, with all tries.

    `credentials` gives the header of a login as it is now, and `tls` whose certificates are trusted.
    """

    credentials: Callable[[], Mapping[str, str]] = field(default=dict, repr=False)
    tls: Callable[[], ssl.SSLContext | bool] = field(default=lambda: True, repr=False)
    timeout_seconds: float = 10.0
    max_requests: int = 16
    cache_seconds: float = 60.0
    cache_size: int = 20_000
    use_proxy: bool = False


# --- where it is ------------------------------------------------------------------------------------------------------


def _segment(text: str) -> str:
    if text in {".", ".."}:  # a path segment of dots alone would lead elsewhere
        return text.replace(".", "%2E")
    return quote(text, safe="", errors="surrogatepass")


def _origin(parts: SplitResult) -> yarl.URL:
    """Scheme, host and port; raises ValueError."""
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("no base URL")
    origin = yarl.URL.build(scheme=parts.scheme, host=parts.hostname, port=parts.port)
    (origin.raw_host or "").encode("idna")  # what cannot be encoded cannot be resolved
    return origin


def credentials(base_url: str, token: str | None) -> dict[str, str]:
    """The header that carries a token or the login in an address, if there is any; raises ConfigurationError.

    Its message does not quote them.
    """
    parts = urlsplit(base_url)
    if token is not None:
        if parts.username or parts.password:
            raise ConfigurationError(
                "the address in SAFE_V0_EXPECTATIONS contains a user name or a password, "
                "and SAFE_V0_EXPECTATIONS_TOKEN is set too: remove one of the two logins"
            )
        if not _TOKEN.fullmatch(token):
            raise ConfigurationError(
                "SAFE_V0_EXPECTATIONS_TOKEN holds spaces, line breaks or characters that are not ASCII: "
                "a bearer token has none"
            )
        return {"Authorization": f"Bearer {token}"}
    if parts.username or parts.password:
        pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
    return {}


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _proxy(origin: yarl.URL) -> str | None:
    """The proxy that the environment names for a host; raises ConfigurationError."""
    # Not aiohttp's trust_env, which would also take credentials from ~/.netrc.
    if urllib.request.proxy_bypass(origin.authority):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(origin.scheme) or proxies.get("all")
    if proxy is not None and not proxy.startswith(("http://", "https://")):
        raise ConfigurationError(
            "the proxy in HTTPS_PROXY, HTTP_PROXY or ALL_PROXY is neither http:// nor https://; "
            "SAFE supports only these"
        )
    return proxy


# --- asking -----------------------------------------------------------------------------------------------------------


Said = Answer | ConflictingCases
"""What the service says about a key; from test cases that differ, each output chooses: settled() does that."""


class Reply(NamedTuple):
    """What the service says about a key, and the ETag by which it can be asked whether that has changed."""

    answer: Said
    etag: str | None = None


class CaseClient:
    """Sends one request at a time for a key, over connections that are kept.

    `wall` is in seconds since 1970; `host` is host and port, as a log may name them. Raises ConfigurationError for an
    address that cannot be used.
    """

    def __init__(self, base_url: str, options: HttpOptions, wall: Callable[[], float] = time.time) -> None:
        try:
            parts = urlsplit(base_url)
            self._origin = _origin(parts)
        except ValueError:  # whose words quote the URL, and with it a password
            raise ConfigurationError(
                "SAFE_V0_EXPECTATIONS is not the address of a service: write http(s)://host[:port][/path]"
            ) from None
        self.host = self._origin.authority
        self._base = str(self._origin).rstrip("/") + quote(parts.path.rstrip("/"), _IN_A_PATH)
        self._options = options
        self._wall = wall
        self._prepare = lru_cache(options.cache_size)(prepare)
        self._proxy: str | None = None
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Make the pool of connections, without connecting yet; raises ConfigurationError."""
        origin = self._origin
        if self._options.credentials() and origin.scheme == "http" and not _is_this_machine(origin.host or ""):
            _log.warning(
                "credentials go over plain http:// to another machine: anyone who listens on the way can read them",
                host=self.host,
            )
        self._proxy = _proxy(origin) if self._options.use_proxy else None
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._options.max_requests),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "User-Agent": f"safe/{__version__}",
            },
            auto_decompress=False,  # we ask for plain text, so that nobody can send us a decompression bomb
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def stop(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def ask(self, key: ExpectationsKey, known: Reply | None, seconds: float) -> Reply:
        """Ask for a test case, or whether it has changed; raises Outage, after `seconds` at the latest."""
        assert self._session is not None
        etag = known.etag if known is not None else None
        headers = {**self._options.credentials(), **({"If-None-Match": etag} if etag else {})}
        try:
            async with (
                asyncio.timeout(seconds),
                self._session.get(
                    self._url(key),
                    headers=headers,
                    allow_redirects=False,
                    proxy=self._proxy,
                    ssl=self._options.tls(),
                ) as response,
            ):
                if response.status == 304 and known is not None and etag is not None:
                    return known
                if response.status not in {200, 404}:
                    raise refusal(response.status, response.headers, self._wall())
                body = await _whole_body(response)
        except (aiohttp.ClientError, OSError) as error:
            raise failure(error) from None  # its words hold the address, and the ids with it
        if response.status == 404:
            return Reply(Poison("expectations_not_found", f"{SERVICE} has no such test case"))
        if len(body) > _LARGE_BYTES:
            answer = await asyncio.to_thread(self._read, body, key)
        else:
            answer = self._read(body, key)
        sent_etag = response.headers.get("ETag", "").strip()
        return Reply(answer, sent_etag if _ETAG.fullmatch(sent_etag) else None)

    def _url(self, key: ExpectationsKey) -> yarl.URL:
        """Where a test case is; no id can leave its segment."""
        path = f"{self._base}/test-cases/{_segment(key.test_id)}?batch_id={_segment(key.batch_id)}"
        return yarl.URL(path, encoded=True)

    def _read(self, body: bytes, key: ExpectationsKey) -> Said:
        """Read a whole answer; raises Outage where it is no JSON object."""
        try:
            document = parse_document(body)
        except InvalidBatch:
            raise Outage("answers with something that is not JSON") from None
        if not isinstance(document, dict):
            raise Outage("answers with JSON that is not an object")
        entries = document.get("test_cases")
        several = entries if isinstance(entries, list) and entries and "test_id" not in document else [document]
        cases: list[TestCase] = []
        for case in parse_batch({"test_cases": several}).cases:
            if isinstance(case, BadTestCase):
                return poison("expectations_invalid", f"the test case of {SERVICE}: {case.problem}")
            if case.test_id != key.test_id:
                return Poison("expectations_invalid", f"{SERVICE} answers with another test case")
            cases.append(case)
        return self._found(as_one(cases)) if expect_the_same(cases) else ConflictingCases(tuple(cases))

    def settled(self, answer: Said, key: ExpectationsKey) -> Answer:
        """The answer for an output, whose narrative may have to choose between test cases."""
        if not isinstance(answer, ConflictingCases):
            return answer
        case = agreed(answer.cases, key.narrative)
        if case is None:
            detail = f"{SERVICE} has {len(answer.cases)} test cases, with different expectations"
            return poison("expectations_ambiguous", f"{detail}; {undecided(key.narrative)}")
        return self._found(case)

    def _found(self, case: TestCase) -> FoundExpectations:
        # The service says nothing about batches.
        return FoundExpectations.of(case, self._prepare(case.expectations), None, in_batch=False)


async def _whole_body(response: aiohttp.ClientResponse) -> bytes:
    if response.headers.get("Content-Encoding", "identity").strip().lower() not in {"identity", ""}:
        raise Outage("sends a compressed answer, which SAFE does not accept")
    try:
        if (response.content_length or 0) <= MAX_BODY_BYTES:
            await response.content.readexactly(MAX_BODY_BYTES + 1)
    except asyncio.IncompleteReadError as end:
        return end.partial
    raise Outage(f"answers with more than {MAX_BODY_BYTES // 1024**2} MiB, which no test case has")
