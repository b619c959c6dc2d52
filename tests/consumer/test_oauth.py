"""Access tokens: asked for as the standard says, used for as long as they may be, and never shown."""

import asyncio
import ssl
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port

from consumer.kafka.oauth import Client, TokenProvider, TokenRefused, TokenUnavailable
from tests.support.certificates import Authority

SECRET = "s3cret & more"  # noqa: S105 # planted, to be looked for


class Endpoint:
    """A token endpoint whose next answer the test decides; it remembers what it was asked."""

    def __init__(self) -> None:
        self.status = 200
        self.answer: Mapping[str, Any] | str = {"access_token": "one.token", "expires_in": 100}
        self.asked: list[dict[str, str]] = []
        self.logins: list[str] = []
        self.url = ""

    async def give(self, request: web.Request) -> web.Response:
        """Answer as the test has decided."""
        self.asked.append({name: str(value) for name, value in (await request.post()).items()})
        self.logins.append(b64decode(request.headers["Authorization"].removeprefix("Basic ")).decode())
        if isinstance(self.answer, str):
            return web.Response(text=self.answer, status=self.status, headers={"Location": "/elsewhere"})
        return web.json_response(dict(self.answer), status=self.status)


class Clock:
    """Monotonic seconds that only the test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    endpoint, app = Endpoint(), web.Application()
    app.router.add_post("/token", endpoint.give)
    async with TestServer(app) as server:
        endpoint.url = str(server.make_url("/token"))
        yield endpoint


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def provider(endpoint: Endpoint, clock: Clock) -> TokenProvider:
    return TokenProvider(lambda: Client(endpoint.url, "safe:scorer", SECRET, "kafka read"), clock)


async def test_it_asks_by_the_client_credentials_grant(endpoint: Endpoint, provider: TokenProvider) -> None:
    assert await provider.token() == "one.token"
    assert endpoint.asked == [{"grant_type": "client_credentials", "scope": "kafka read"}]
    assert endpoint.logins == ["safe%3Ascorer:s3cret+%26+more"]


async def test_without_a_scope_none_is_asked_for(endpoint: Endpoint) -> None:
    await TokenProvider(lambda: Client(endpoint.url, "safe", SECRET)).token()
    assert endpoint.asked == [{"grant_type": "client_credentials"}]


async def test_one_token_serves_many_connections_until_four_fifths_of_its_life_are_over(
    endpoint: Endpoint, provider: TokenProvider, clock: Clock
) -> None:
    assert set(await asyncio.gather(*(provider.token() for _ in range(20)))) == {"one.token"}
    assert len(endpoint.asked) == 1
    endpoint.answer = {"access_token": "next.token", "expires_in": "100"}
    clock.now += 79.9
    assert await provider.token() == "one.token"
    clock.now += 0.2
    assert await provider.token() == "next.token"
    clock.now += 79.9
    assert await provider.token() == "next.token"


async def test_while_no_new_one_can_be_had_the_old_one_is_used_to_its_end(
    endpoint: Endpoint, provider: TokenProvider, clock: Clock
) -> None:
    await provider.token()
    endpoint.status, endpoint.answer = 503, "maintenance"
    clock.now += 99.9
    assert await provider.token() == "one.token"
    clock.now += 0.1
    with pytest.raises(TokenUnavailable, match="answers with status 503"):
        await provider.token()


@pytest.mark.parametrize("life", [None, "soon", float("nan"), [], True])
async def test_a_life_that_is_no_number_counts_as_a_short_one(life: object, clock: Clock, endpoint: Endpoint) -> None:
    endpoint.answer = {"access_token": "one.token"} | ({} if life is None else {"expires_in": life})
    provider = TokenProvider(lambda: Client(endpoint.url, "safe", SECRET), clock)
    await provider.token()
    clock.now += 61
    await provider.token()
    assert len(endpoint.asked) == 2


REFUSALS = [
    (
        401,
        {"error": "invalid_client", "error_description": f"wrong {SECRET}"},
        "gives client safe:scorer no token (invalid_client)",
    ),
    (400, {"error": "invalid_scope"}, "gives client safe:scorer no token (invalid_scope)"),
    (403, "<h1>Forbidden</h1>", "gives client safe:scorer no token (status 403)"),
    (400, {"error": "Line\nbreaks"}, "gives client safe:scorer no token (status 400)"),
]


@pytest.mark.parametrize(("status", "answer", "told"), REFUSALS)
async def test_a_refusal_names_the_settings_and_no_secret(
    endpoint: Endpoint, provider: TokenProvider, status: int, answer: Mapping[str, Any] | str, told: str
) -> None:
    endpoint.status, endpoint.answer = status, answer
    with pytest.raises(TokenRefused) as refused:
        await provider.token()
    sentence = f"{refused.value.why}; {refused.value.remedy}"
    assert told in sentence
    assert "SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_SECRET" in sentence
    assert SECRET not in f"{sentence} {refused.value!r} {provider!r} {Client(endpoint.url, 'safe', SECRET)!r}"


NO_TOKENS: list[tuple[int, Mapping[str, Any] | str, str]] = [
    (200, "<html>Sign in</html>", "answers without a token: check SAFE_V0_KAFKA_SASL_OAUTH_TOKEN_URL"),
    (200, {"token": "x"}, "answers without a token"),
    (200, {"access_token": "two words"}, "answers without a token"),
    (200, {"access_token": None}, "answers without a token"),
    (200, '"a text"', "answers without a token"),
    (302, "elsewhere", "answers with status 302"),
    (500, {"error": "server_error"}, "answers with status 500"),
]


@pytest.mark.parametrize(("status", "answer", "told"), NO_TOKENS)
async def test_an_answer_without_a_token_is_an_outage(
    endpoint: Endpoint, provider: TokenProvider, status: int, answer: Mapping[str, Any] | str, told: str
) -> None:
    endpoint.status, endpoint.answer = status, answer
    with pytest.raises(TokenUnavailable) as raised:
        await provider.token()
    assert told in raised.value.args[0]
    assert len(endpoint.asked) == 1  # a redirection is not followed: the secret is for one address


async def test_an_endpoint_that_is_away_is_named() -> None:
    port = unused_port()
    with pytest.raises(TokenUnavailable) as raised:
        await TokenProvider(lambda: Client(f"http://127.0.0.1:{port}/token", "safe", SECRET)).token()
    assert f"the token endpoint at 127.0.0.1:{port} cannot be reached" in raised.value.args[0]


async def test_one_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumer.kafka.oauth._REQUEST_SECONDS", 0.2)
    hung_up = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        hung_up.set()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    async with silent:
        port = silent.sockets[0].getsockname()[1]
        with pytest.raises(TokenUnavailable, match="does not answer"):
            await TokenProvider(lambda: Client(f"http://127.0.0.1:{port}/token", "safe", SECRET)).token()
        await hung_up.wait()


@pytest.fixture
async def over_tls(tmp_path: Path) -> AsyncIterator[Callable[[ssl.SSLContext], TokenProvider]]:
    """Make providers that trust some authority, for an endpoint over TLS."""
    authority, endpoint, app = Authority(tmp_path), Endpoint(), web.Application()
    app.router.add_post("/token", endpoint.give)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority.certificate("server"), authority.key("server"))
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=context)
    yield lambda tls: TokenProvider(lambda: Client(str(server.make_url("/token")), "safe", SECRET, tls=tls))
    await server.close()


async def test_its_certificate_is_checked(over_tls: Callable[[ssl.SSLContext], TokenProvider], tmp_path: Path) -> None:
    with pytest.raises(TokenRefused, match=r"certificate of the token endpoint at .* is not trusted") as refused:
        await over_tls(ssl.create_default_context()).token()
    assert "SAFE_V0_KAFKA_SSL_CAFILE" in refused.value.remedy
    trusting = ssl.create_default_context(cafile=tmp_path / "ca.crt")
    assert await over_tls(trusting).token() == "one.token"


async def test_another_client_or_secret_has_a_new_token_asked_for(endpoint: Endpoint, clock: Clock) -> None:
    known = [Client(endpoint.url, "safe", SECRET)]
    provider = TokenProvider(lambda: known[-1], clock)
    assert await provider.token() == "one.token"
    known.append(Client(endpoint.url, "safe", "another"))
    endpoint.answer = {"access_token": "next.token"}
    assert [await provider.token() for _ in range(2)] == ["next.token"] * 2
    assert endpoint.logins[1:] == ["safe:another"]


async def test_while_the_endpoint_is_away_the_token_of_the_old_secret_is_used(endpoint: Endpoint, clock: Clock) -> None:
    known = [Client(endpoint.url, "safe", SECRET)]
    provider = TokenProvider(lambda: known[-1], clock)
    await provider.token()
    known.append(Client(endpoint.url, "safe", "another"))
    endpoint.status = 503
    assert await provider.token() == "one.token"


async def test_a_token_that_a_broker_refuses_is_replaced_soon_but_not_with_each_login(
    endpoint: Endpoint, provider: TokenProvider, clock: Clock
) -> None:
    provider.note_refusal()
    for _ in range(10):
        assert await provider.token() == "one.token"
        provider.note_refusal()
        clock.now += 0.9
    assert len(endpoint.asked) == 1
    clock.now += 2
    endpoint.answer = {"access_token": "next.token"}
    assert await provider.token() == "next.token"
    assert "next.token" not in repr(provider._token)
