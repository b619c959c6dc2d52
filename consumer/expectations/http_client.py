"""One question to a service of test cases, and what its answer means (contract.md, "Look-up").

A whole JSON object with 200, or a 404, decides; anything else is an Outage. Of what the service sends nothing reaches
a message: it may be anybody's page.
"""

import asyncio
import base64
import ipaddress
import os
import re
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

import aiohttp
import yarl

from consumer import __version__
from consumer.errors import ConfigurationError, Poison, Transient
from consumer.expectations.cases import parse_document, poison
from consumer.expectations.port import ExpectationsKey, FoundExpectations
from safe_core import BadTestCase, Expectations, InvalidBatch, PreparedExpectations, TestCase, parse_batch, prepare

MAX_BODY_BYTES = 4 * 1024 * 1024
"""More than a test case of 10 000 terms needs; what is longer is not read on."""
LONGEST_RETRY_AFTER_SECONDS = 300.0
_LARGE_BYTES = 64 * 1024
"""Longer answers are read in a thread: heartbeats run on the same loop."""
_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]{0,254}"')
_TOKEN = re.compile(r"[\x21-\x7e]+")
_IN_A_PATH = "/%:@!$&'()*+,;=~"
_SUBJECT = "the expectations service"


# --- what goes wrong --------------------------------------------------------------------------------------------------


class Outage(Transient):
    """The service gave no answer of the contract; asking again at once is of no use where it `is_lasting`."""

    def __init__(self, what: str, *, retry_after_seconds: float = 0.0, is_lasting: bool = False) -> None:
        super().__init__(f"{_SUBJECT} {what}")
        self.what = what
        self.retry_after_seconds = retry_after_seconds
        self.is_lasting = is_lasting


# The first that fits names the failure: none of their own words, which hold addresses and ids.
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
    if 300 <= status < 400 and status != 304:  # nobody asked whether anything has changed
        what = f"answers with a redirect ({status}), which is not followed: let SAFE_V0_EXPECTATIONS name where it is"
        return Outage(what, is_lasting=True)
    what = f"answers {status}"
    if 400 <= status < 500 and status not in _BUSY:
        what += ": where it has no such test case it must answer 404"
    return Outage(what, retry_after_seconds=retry_after_seconds(headers, wall))


def retry_after_seconds(headers: Mapping[str, str], wall: float) -> float:
    """How long the service asks not to be asked: 0 where it says nothing usable, five minutes at most."""
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return min(LONGEST_RETRY_AFTER_SECONDS, float(value[:12]))
    moment = _http_date(value)
    if moment is None:
        return 0.0
    said_at = _http_date(headers.get("Date", ""))  # its clock may differ from ours
    return min(LONGEST_RETRY_AFTER_SECONDS, max(0.0, moment - (wall if said_at is None else said_at)))


def _http_date(text: str) -> float | None:
    """Seconds since 1970 of a date as HTTP writes it."""
    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


# --- where it is ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Address:
    """Where the service is: what a test_id is appended to, and the credentials, which are shown nowhere."""

    base: str
    origin: yarl.URL
    headers: Mapping[str, str]

    @property
    def host(self) -> str:
        """Host and port, as a log may name them."""
        return self.origin.authority

    @property
    def shows_credentials(self) -> bool:
        """Whether anyone who listens on the way can read the credentials."""
        return bool(self.headers) and self.origin.scheme == "http" and not _is_this_machine(self.origin.host or "")

    def url(self, key: ExpectationsKey) -> yarl.URL:
        """Where a test case is; nothing of an id can leave its segment."""
        path = f"{self.base}/test-cases/{_segment(key.test_id)}?batch_id={_segment(key.batch_id)}"
        return yarl.URL(path, encoded=True)


def _segment(text: str) -> str:
    if text in {".", ".."}:  # a path segment of dots alone would lead elsewhere
        return text.replace(".", "%2E")
    return quote(text, safe="", errors="surrogatepass")


def address(base_url: str, token: str | None) -> Address:
    """Take a base URL apart; raises ConfigurationError, which quotes neither the URL nor the token."""
    try:
        parts = urlsplit(base_url)
        origin = _origin(parts)
    except ValueError:  # whose words quote the URL, and with it a password
        raise ConfigurationError(
            "SAFE_V0_EXPECTATIONS names no usable service: let it be http(s)://host[:port][/path]"
        ) from None
    base = str(origin).rstrip("/") + quote(parts.path.rstrip("/"), _IN_A_PATH)
    return Address(base, origin, _credentials(parts, token))


def _origin(parts: SplitResult) -> yarl.URL:
    """Scheme, host and port; raises ValueError."""
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("no base URL")
    origin = yarl.URL.build(scheme=parts.scheme, host=parts.hostname, port=parts.port)
    (origin.raw_host or "").encode("idna")  # what cannot be encoded cannot be resolved
    return origin


def _credentials(parts: SplitResult, token: str | None) -> dict[str, str]:
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
    """Give the proxy that the environment names for a host; raises ConfigurationError."""
    # Not aiohttp's trust_env, which would also take credentials from ~/.netrc.
    if urllib.request.proxy_bypass(origin.authority):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(origin.scheme) or proxies.get("all")
    if proxy is not None and not proxy.startswith(("http://", "https://")):
        raise ConfigurationError("the environment names a proxy that is not http(s)://: only such can be used")
    return proxy


# --- asking -----------------------------------------------------------------------------------------------------------


class Said(NamedTuple):
    """What the service says of a key; None: what was known under the ETag still holds."""

    verdict: FoundExpectations | Poison | None
    etag: str | None = None


class CaseClient:
    """Asks one question at a time of the service, over connections that are kept; `wall` is seconds since 1970."""

    def __init__(
        self,
        where: Address,
        *,
        max_requests: int,
        use_proxy: bool,
        most_prepared: int,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._where = where
        self._max_requests = max_requests
        self._use_proxy = use_proxy
        self._wall = wall
        self._prepare = lru_cache(most_prepared)(prepare)
        self._proxy: str | None = None
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Make the pool of connections, without making one; raises ConfigurationError."""
        self._proxy = _proxy(self._where.origin) if self._use_proxy else None
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._max_requests),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "User-Agent": f"safe/{__version__}",
                **self._where.headers,
            },
            auto_decompress=False,  # what is asked for is plain, so a bomb cannot go off
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def stop(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def ask(self, key: ExpectationsKey, etag: str | None, seconds: float) -> Said:
        """Ask for a test case; raises Outage, after `seconds` at the latest."""
        assert self._session is not None
        try:
            async with (
                asyncio.timeout(seconds),
                self._session.get(
                    self._where.url(key),
                    headers={"If-None-Match": etag} if etag else None,
                    allow_redirects=False,
                    proxy=self._proxy,
                ) as response,
            ):
                body = await self._decisive(response, etag)
        except (aiohttp.ClientError, OSError) as error:
            raise _failure(error) from None  # its words hold the address, and the ids with it
        if body is None:
            return Said(None, etag)
        if response.status == 404:
            return Said(Poison("expectations_not_found", f"{_SUBJECT} has no such test case"))
        etag = _usable_etag(response)
        if len(body) > _LARGE_BYTES:
            return Said(await asyncio.to_thread(read_case, body, key, self._prepare), etag)
        return Said(read_case(body, key, self._prepare), etag)

    async def _decisive(self, response: aiohttp.ClientResponse, etag: str | None) -> bytes | None:
        """Read the body of an answer that decides; None if it says that nothing has changed since we asked."""
        if response.status == 304 and etag is not None:
            return None
        if response.status not in {200, 404}:
            raise _refusal(response.status, response.headers, self._wall())
        if response.headers.get("Content-Encoding", "identity").strip().lower() not in {"identity", ""}:
            raise Outage("answers compressed, which it was not asked for")
        return await _whole(response)


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    if (response.content_length or 0) > MAX_BODY_BYTES:
        raise _too_long()
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise _too_long()
    return bytes(body)


def _too_long() -> Outage:
    return Outage(f"answers with more than {MAX_BODY_BYTES // 1024**2} MiB, which no test case has")


def _usable_etag(response: aiohttp.ClientResponse) -> str | None:
    etag = response.headers.get("ETag", "").strip()
    return etag if _ETAG.fullmatch(etag) else None


# --- reading ----------------------------------------------------------------------------------------------------------


def read_case(
    body: bytes, key: ExpectationsKey, prepare: Callable[[Expectations], PreparedExpectations]
) -> FoundExpectations | Poison:
    """Read a whole answer; raises Outage where it is no JSON object."""
    row = _row(body)
    if isinstance(row, BadTestCase):
        return poison("expectations_invalid", f"the test case of {_SUBJECT}: {row.problem}")
    if row.test_id != key.test_id:
        return Poison("expectations_invalid", f"{_SUBJECT} answers with another test case")
    return FoundExpectations.of(row, prepare(row.expectations))  # the service does not tell of batches


def _row(body: bytes) -> TestCase | BadTestCase:
    try:
        document = parse_document(body)
    except InvalidBatch:
        raise Outage("answers with something that is not JSON") from None
    if not isinstance(document, dict):
        raise Outage("answers with JSON that is not an object")
    return parse_batch({"test_cases": [document]}).cases[0]
