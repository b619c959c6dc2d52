"""Access tokens for SASL OAUTHBEARER, from the token endpoint that the settings name."""

import asyncio
import json
import math
import re
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote_plus, urlsplit

import aiohttp
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import AuthenticationFailedError, KafkaConnectionError
from typing_extensions import override

from consumer.text import visible

_REQUEST_SECONDS: Final = 4.0
"""Less than a try to reach a broker may take, which includes it."""
_SHARE_OF_LIFE: Final = 0.8
"""How much of its life a token is used for, before the next one is asked for."""
_LIFE_UNTOLD_SECONDS: Final = 60.0
_REFUSED_SECONDS: Final = 10.0
"""A token that a broker refuses is used for this long before another one is asked for."""
_MOST_BYTES: Final = 256 * 1024
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750, section 2.1
_ERROR_CODE: Final = re.compile(r"[a-z_]{1,40}")
_REFUSALS: Final = frozenset({400, 401, 403})


class TokenRefused(AuthenticationFailedError):  # type: ignore[misc]  # aiokafka ships no types
    """The token endpoint gives this client no token; the message says so."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy


class TokenUnavailable(KafkaConnectionError):  # type: ignore[misc]  # aiokafka ships no types
    """The token endpoint does not answer, or not with a token; the message says which."""


@dataclass(frozen=True, slots=True)
class Client:
    """What the token endpoint is asked with, and over which TLS."""

    token_url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    tls: ssl.SSLContext | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class _Token:
    """A token and whose it is; times are monotonic, in seconds."""

    client: Client
    text: str = field(repr=False)
    given_at: float
    renew_at: float
    expires_at: float


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka ships no types
    """Tokens by the client-credentials grant (RFC 6749, section 4.4), one for all connections of the process.

    A token is used for four fifths of its life; if the endpoint does not answer then, until its end. `client` gives the
    client as it is known now: if it or its secret has changed, a new token is asked for at once.
    """

    def __init__(self, client: Callable[[], Client], clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._token: _Token | None = None
        self._renewing = asyncio.Lock()

    @override
    async def token(self) -> str:
        """Give a token that has not expired; raises TokenRefused or TokenUnavailable."""
        async with self._renewing:
            now, held, client = self._clock(), self._token, self._client()
            if held is None or now >= held.renew_at or held.client != client:
                try:
                    held = self._token = await _renewed(client, now)
                except TokenUnavailable:
                    if held is None or now >= held.expires_at:
                        raise
            return held.text

    def note_refusal(self) -> None:
        """A broker has refused the token: another one is asked for soon, but not with each login."""
        held = self._token
        if held is not None:
            self._token = replace(held, renew_at=min(held.renew_at, held.given_at + _REFUSED_SECONDS))


async def _renewed(client: Client, now: float) -> _Token:
    where = urlsplit(client.token_url).netloc
    status, body = await _asked(client, where)
    answer = _object(body)
    if status in _REFUSALS:
        code = str(answer.get("error", ""))  # nothing else of an answer is repeated: it may be any page
        raise TokenRefused(
            f"{where} gives client {visible(client.client_id)} no token "
            f"({code if _ERROR_CODE.fullmatch(code) else f'status {status}'})",
            "check SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_ID, SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_SECRET and "
            "SAFE_V0_KAFKA_SASL_OAUTH_SCOPE",
        )
    text, life = answer.get("access_token"), answer.get("expires_in", _LIFE_UNTOLD_SECONDS)
    if status != 200:
        raise TokenUnavailable(f"the token endpoint at {where} answers with status {status}")
    if not isinstance(text, str) or not _TOKEN.fullmatch(text):
        raise TokenUnavailable(
            f"the token endpoint at {where} answers without a token: check SAFE_V0_KAFKA_SASL_OAUTH_TOKEN_URL"
        )
    seconds = _seconds(life)
    return _Token(client, text, now, now + _SHARE_OF_LIFE * seconds, now + seconds)


async def _asked(client: Client, where: str) -> tuple[int, bytes]:
    form = {"grant_type": "client_credentials", **({"scope": client.scope} if client.scope else {})}
    # Both are form-encoded before they are joined (RFC 6749, section 2.3.1).
    login = b64encode(f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}".encode()).decode()
    headers = {"Authorization": f"Basic {login}", "Accept": "application/json"}
    timeout = aiohttp.ClientTimeout(total=_REQUEST_SECONDS)
    connector = aiohttp.TCPConnector(ssl=client.tls or True)
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            session.post(
                client.token_url,
                data=form,
                headers=headers,
                allow_redirects=False,  # the secret is for this address alone
            ) as reply,
        ):
            return reply.status, await _beginning(reply.content)
    except aiohttp.ClientConnectorCertificateError as error:
        raise TokenRefused(
            f"the certificate of the token endpoint at {where} is not trusted "
            f"({getattr(error.certificate_error, 'verify_message', 'no reason given')})",
            "check SAFE_V0_KAFKA_SASL_OAUTH_TOKEN_URL and SAFE_V0_KAFKA_SSL_CAFILE",
        ) from None
    except TimeoutError as error:
        raise TokenUnavailable(f"the token endpoint at {where} does not answer") from error
    except (aiohttp.ClientError, OSError) as error:
        raise TokenUnavailable(f"the token endpoint at {where} cannot be reached ({_why(error)})") from error


async def _beginning(content: aiohttp.StreamReader) -> bytes:
    try:
        return await content.readexactly(_MOST_BYTES)
    except asyncio.IncompleteReadError as end:
        return end.partial


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _seconds(life: object) -> float:
    """How long a token lives; some endpoints write the number as a string."""
    try:
        seconds = float(life)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError):
        seconds = math.nan
    return max(seconds, 1.0) if math.isfinite(seconds) else _LIFE_UNTOLD_SECONDS


def _why(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or type(error).__name__)
