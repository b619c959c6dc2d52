"""What an HTTP status or a failed connection says about a service of test cases (contract.md, "Look-up")."""

import os
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp

from consumer.errors import Transient

LONGEST_RETRY_AFTER_SECONDS = 300.0
SERVICE = "the expectations service"


class Outage(Transient):
    """The service gave no answer that the contract knows; where this `is_lasting`, asking again at once is no use."""

    def __init__(self, what: str, *, retry_after_seconds: float = 0.0, is_lasting: bool = False) -> None:
        super().__init__(f"{SERVICE} {what}")
        self.what = what
        self.retry_after_seconds = retry_after_seconds
        self.is_lasting = is_lasting


# The first that fits names the failure. The errors' own words are not used: they contain addresses and ids.
_FAILURES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (aiohttp.ClientConnectorDNSError, "cannot be found: DNS does not resolve its name"),
    (aiohttp.ClientConnectorCertificateError, "has a certificate that is not trusted"),
    (aiohttp.ClientSSLError, "cannot be reached: the TLS handshake failed"),
    (aiohttp.ClientProxyConnectionError, "cannot be reached: the proxy does not answer"),
    (aiohttp.ClientHttpProxyError, "cannot be reached: the proxy refuses"),
    (aiohttp.ClientConnectorError, "cannot be reached"),
    (TimeoutError, "has not answered in time"),
    (aiohttp.ClientPayloadError, "closes the connection in the middle of a response"),
    (aiohttp.ServerDisconnectedError, "closes the connection without an answer"),
    (aiohttp.ClientResponseError, "sends an invalid HTTP response"),
    (Exception, "breaks the connection"),
)

_STATUSES: Final[Mapping[int, str]] = {
    401: "refuses the credentials (401): check SAFE_V0_EXPECTATIONS_TOKEN",
    403: "refuses access (403): check SAFE_V0_EXPECTATIONS_TOKEN",
    407: "cannot be reached: the proxy asks for credentials (407)",
}

_BUSY: Final = frozenset({408, 425, 429})


def failure(error: Exception) -> Outage:
    """The outage that an error of the connection means."""
    what = next(words for kind, words in _FAILURES if isinstance(error, kind))
    # The number of a TLS failure is OpenSSL's own.
    number = error.errno if isinstance(error, OSError) and not isinstance(error, aiohttp.ClientSSLError) else None
    return Outage(f"{what} ({os.strerror(number)})" if number is not None and number > 0 else what)


def refusal(status: int, headers: Mapping[str, str], wall: float) -> Outage:
    """The outage that a status other than 200, 304 and 404 means; `wall` is in seconds since 1970."""
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
