"""One request to a service of test cases, and what its answer means (contract.md, "Look-up").

Only a whole JSON object with 200, or a 404, is an answer; anything else is an Outage. Nothing that the service sends
reaches a message: it may be anybody's page.
"""

import asyncio
import base64
import ipaddress
import os
import re
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

import aiohttp
import structlog
import yarl

from consumer import __version__
from consumer.errors import ConfigurationError, Poison, Transient
from consumer.expectations.cases import parse_document, poison
from consumer.expectations.source import Answer, ExpectationsKey, FoundExpectations
from safe_core import BadTestCase, InvalidBatch, parse_batch, prepare

MAX_BODY_BYTES = 4 * 1024 * 1024
"""More than a test case of 10 000 terms needs; a longer answer is not read to its end."""
LONGEST_RETRY_AFTER_SECONDS = 300.0
_LARGE_BYTES = 64 * 1024
"""Longer answers are read in a thread: heartbeats run on the same loop."""
_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]{0,254}"')
_TOKEN = re.compile(r"[\x21-\x7e]+")
_IN_A_PATH = "/%:@!$&'()*+,;=~"
_SUBJECT = "the expectations service"

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger("safe.expectations")


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How the service is asked; `timeout_seconds` is for one key, and for one call, with all tries."""

    token: str | None = field(default=None, repr=False)
    timeout_seconds: float = 10.0
    max_requests: int = 16
    cache_seconds: float = 60.0
    cache_size: int = 20_000
    use_proxy: bool = False


# --- what goes wrong --------------------------------------------------------------------------------------------------


class Outage(Transient):
    """The service gave no answer that the contract knows; where this `is_lasting`, asking again at once is no use."""

    def __init__(self, what: str, *, retry_after_seconds: float = 0.0, is_lasting: bool = False) -> None:
        super().__init__(f"{_SUBJECT} {what}")
        self.what = what
        self.retry_after_seconds = retry_after_seconds
        self.is_lasting = is_lasting


# The first that fits names the failure. The errors' own words are not used: they contain addresses and ids.
_FAILURES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (aiohttp.ClientConnectorDNSError, "cannot be found: its name is not resolved"),
    (aiohttp.ClientConnectorCertificateError, "has a certificate that is not trusted"),
    (aiohttp.ClientSSLError, "makes no secure connection (TLS)"),
    (aiohttp.ClientProxyConnectionError, "cannot be reached: the proxy does not answer"),
    (aiohttp.ClientHttpProxyError, "cannot be reached: the proxy refuses"),
    (aiohttp.ClientConnectorError, "cannot be reached"),
    (TimeoutError, "has not answered in time"),
    (aiohttp.ClientPayloadError, "breaks off in the middle of an answer"),
    (aiohttp.ServerDisconnectedError, "closes the connection without an answer"),
    (aiohttp.ClientResponseError, "does not answer in HTTP that can be read"),
    (Exception, "breaks the connection"),
)

_STATUSES: Final[Mapping[int, str]] = {
    401: "refuses the credentials (401): check SAFE_V0_EXPECTATIONS_TOKEN and start again",
    403: "refuses access (403): check SAFE_V0_EXPECTATIONS_TOKEN and start again",
    407: "cannot be reached: the proxy asks for credentials (407)",
}

_BUSY: Final = frozenset({408, 425, 429})


def _failure(error: Exception) -> Outage:
    what = next(words for kind, words in _FAILURES if isinstance(error, kind))
    # The number of a TLS failure is OpenSSL's own.
    number = error.errno if isinstance(error, OSError) and not isinstance(error, aiohttp.ClientSSLError) else None
    return Outage(f"{what} ({os.strerror(number)})" if number is not None and number > 0 else what)


def _refusal(status: int, headers: Mapping[str, str], wall: float) -> Outage:
    if status in _STATUSES:
        return Outage(_STATUSES[status], is_lasting=True)
    if 300 <= status < 400 and status != 304:  # a 304 here answers a request without an ETag
        what = (
            f"answers with a redirect ({status}), which is not followed: set SAFE_V0_EXPECTATIONS to the final address"
        )
        return Outage(what, is_lasting=True)
    what = f"answers {status}"
    if 400 <= status < 500 and status not in _BUSY:
        what += ": for an unknown test case it must answer 404"
    return Outage(what, retry_after_seconds=retry_after_seconds(headers, wall))


def retry_after_seconds(headers: Mapping[str, str], wall: float) -> float:
    """How long the service asks to be left alone: 0 where it says nothing usable, five minutes at most."""
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        seconds = float(value[:12])
    else:
        now = _http_date(headers.get("Date", ""), wall)  # by the service's clock, which may differ from ours
        seconds = _http_date(value, now) - now
    return min(LONGEST_RETRY_AFTER_SECONDS, max(0.0, seconds))


def _http_date(text: str, default: float) -> float:
    """Seconds since 1970 of a date as HTTP writes it, or the default for anything else."""
    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return default


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


def _credentials(parts: SplitResult, token: str | None) -> dict[str, str]:
    """The header that carries them, if there are any; raises ConfigurationError, which does not quote them."""
    if token is not None:
        if parts.username or parts.password:
            raise ConfigurationError(
                "SAFE_V0_EXPECTATIONS holds a user and SAFE_V0_EXPECTATIONS_TOKEN is set: only one of them can be sent"
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
            "the environment names a proxy that is neither http:// nor https://; SAFE supports only these"
        )
    return proxy


# --- asking -----------------------------------------------------------------------------------------------------------


class Reply(NamedTuple):
    """What the service says about a key, and the ETag by which it can be asked whether that has changed."""

    answer: Answer
    etag: str | None = None


class CaseClient:
    """Sends one request at a time for a key, over connections that are kept.

    `wall` is in seconds since 1970; `host` is host and port, as a log may name them. Raises ConfigurationError for an
    address or a token that cannot be used.
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
        self._credentials = _credentials(parts, options.token)
        self._options = options
        self._wall = wall
        self._prepare = lru_cache(options.cache_size)(prepare)
        self._proxy: str | None = None
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Make the pool of connections, without connecting yet; raises ConfigurationError."""
        origin = self._origin
        if self._credentials and origin.scheme == "http" and not _is_this_machine(origin.host or ""):
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
                **self._credentials,
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
        try:
            async with (
                asyncio.timeout(seconds),
                self._session.get(
                    self._url(key),
                    headers={"If-None-Match": etag} if etag else None,
                    allow_redirects=False,
                    proxy=self._proxy,
                ) as response,
            ):
                if response.status == 304 and known is not None and etag is not None:
                    return known
                if response.status not in {200, 404}:
                    raise _refusal(response.status, response.headers, self._wall())
                body = await _whole_body(response)
        except (aiohttp.ClientError, OSError) as error:
            raise _failure(error) from None  # its words hold the address, and the ids with it
        if response.status == 404:
            return Reply(Poison("expectations_not_found", f"{_SUBJECT} has no such test case"))
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

    def _read(self, body: bytes, key: ExpectationsKey) -> Answer:
        """Read a whole answer; raises Outage where it is no JSON object."""
        try:
            document = parse_document(body)
        except InvalidBatch:
            raise Outage("answers with something that is not JSON") from None
        if not isinstance(document, dict):
            raise Outage("answers with JSON that is not an object")
        (case,) = parse_batch({"test_cases": [document]}).cases
        if isinstance(case, BadTestCase):
            return poison("expectations_invalid", f"the test case of {_SUBJECT}: {case.problem}")
        if case.test_id != key.test_id:
            return Poison("expectations_invalid", f"{_SUBJECT} answers with another test case")
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
