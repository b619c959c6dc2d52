"""Why a server is no broker of ours: told apart by what a socket does, without any broker."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaConnectionError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from consumer.errors import Fatal, Transient
from consumer.kafka import reachability as module
from consumer.kafka.cluster import Cluster
from consumer.kafka.connection import Connection
from consumer.kafka.reachability import TurnedAway, reach
from consumer.kafka.table_reader import TableReader
from tests.support.kafka_broker import free_port

Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close at once, as a broker does that is spoken to in the wrong way."""
    writer.close()


async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Listen to whatever comes, as a broker does that is frozen."""
    while await reader.read(1024):
        pass
    writer.close()


# What a broker says that knows ApiVersions and Metadata 0, and has no peers.
_VERSIONS = b"\x00\x00" + b"\x00\x00\x00\x01" + b"\x00\x03\x00\x00\x00\x00"
_NOBODY = b"\x00\x00\x00\x00" + b"\x00\x00\x00\x00"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the two requests that a client begins with."""
    try:
        for body in (_VERSIONS, _NOBODY):
            request = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            answered = request[4:8] + body
            writer.write(len(answered).to_bytes(4, "big") + answered)
        await reader.read()
    except asyncio.IncompleteReadError:
        pass
    writer.close()


@asynccontextmanager
async def serving(conversation: Conversation, **more: Any) -> AsyncIterator[str]:
    server = await asyncio.start_server(conversation, "127.0.0.1", 0, **more)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.fixture
async def someone() -> AsyncIterator[Callable[..., Awaitable[str]]]:
    """Make servers that behave in some way; each is an address."""
    async with AsyncExitStack() as servers:

        async def begin(conversation: Conversation, **more: Any) -> str:
            return await servers.enter_async_context(serving(conversation, **more))

        yield begin


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is waited for long."""
    monkeypatch.setattr(module, "_SERVER_SECONDS", 0.5)


def plain(*servers: str) -> dict[str, Any]:
    return {"bootstrap_servers": ",".join(servers), "client_id": "safe", "security_protocol": "PLAINTEXT"}


def over_tls(*servers: str) -> dict[str, Any]:
    return plain(*servers) | {"security_protocol": "SSL", "ssl_context": ssl.create_default_context()}


async def test_one_that_answers_is_enough(someone: Callable[..., Awaitable[str]]) -> None:
    await reach(plain(f"127.0.0.1:{free_port()}", await someone(say_nothing), await someone(answer)))


async def test_where_nobody_answers_each_server_is_told_with_its_reason(
    someone: Callable[..., Awaitable[str]],
) -> None:
    away, mute, unknown = f"127.0.0.1:{free_port()}", await someone(say_nothing), "broker.invalid:9092"
    with pytest.raises(Transient) as raised:
        await reach(plain(away, mute, unknown))
    assert not isinstance(raised.value, TurnedAway)
    words = str(raised.value)
    assert f"{away} refuses connections" in words
    assert f"{mute} does not answer" in words
    assert f"{unknown}: " in words


async def test_the_reasons_come_in_the_order_of_the_servers_whoever_fails_first(
    someone: Callable[..., Awaitable[str]],
) -> None:
    mute, away = await someone(say_nothing), f"127.0.0.1:{free_port()}"
    for servers in ([mute, away], [away, mute]):
        with pytest.raises(Transient) as raised:
            await reach(plain(*servers))
        assert sorted(servers, key=str(raised.value).index) == servers


async def test_one_that_hangs_up_does_not_speak_for_those_that_are_away(
    someone: Callable[..., Awaitable[str]],
) -> None:
    closing, away = await someone(hang_up), f"127.0.0.1:{free_port()}"
    with pytest.raises(TurnedAway, match=f"^{closing} closes the connection$"):
        await reach(plain(closing))
    with pytest.raises(Transient, match=f"{closing} closes the connection") as raised:
        await reach(plain(away, closing))
    assert not isinstance(raised.value, TurnedAway)


@pytest.mark.parametrize("host", ["a..b", "a" * 64])
async def test_what_can_be_no_host_is_fatal(host: str) -> None:
    with pytest.raises(Fatal, match=f"^{host}:9092 is not a valid host name.*SAFE_V0_KAFKA_BOOTSTRAP_SERVERS"):
        await reach(plain(f"{host}:9092"))


async def test_one_that_speaks_no_tls_hangs_up(someone: Callable[..., Awaitable[str]]) -> None:
    with pytest.raises(TurnedAway):
        await reach(over_tls(await someone(hang_up)))


@pytest.fixture
def own_certificate(tmp_path: Path) -> Path:
    """The folder of a key and of a certificate that nobody else has signed."""
    openssl = shutil.which("openssl")
    assert openssl is not None, "openssl makes the keys of this test"
    names = ("-keyout", "key.pem", "-out", "cert.pem", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1")
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", *names], cwd=tmp_path, check=True, capture_output=True
    )
    return tmp_path


async def test_a_certificate_of_an_unknown_authority_is_fatal(
    someone: Callable[..., Awaitable[str]], own_certificate: Path
) -> None:
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(own_certificate / "cert.pem", own_certificate / "key.pem")
    server = await someone(hang_up, ssl=theirs)
    with pytest.raises(Fatal, match=f"^the certificate of {server} is not trusted.*SAFE_V0_KAFKA_SSL_CAFILE"):
        await reach(over_tls(server))


async def test_a_refusal_ends_a_first_start_and_whoever_runs_already_waits(
    someone: Callable[..., Awaitable[str]], own_certificate: Path
) -> None:
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(own_certificate / "cert.pem", own_certificate / "key.pem")
    server = await someone(hang_up, ssl=theirs)
    options = over_tls(server)
    connection = Connection(server, {name: options[name] for name in ("security_protocol", "ssl_context")})
    with pytest.raises(Fatal, match="is not trusted"):
        await Cluster(connection).connect()
    table = TableReader(connection, "cases")
    for _ in range(2):
        with pytest.raises(Transient):
            await table.open()
    await table.close()


def saying(words: bytes) -> Conversation:
    """Answer the first that comes with these words, and close."""

    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1024)
        writer.write(words)
        await writer.drain()
        writer.close()

    return conversation


def tls_alert(level: int, description: int) -> bytes:
    return bytes((21, 3, 3, 0, 2, level, description))


WARNING, FATAL = 1, 2
CLOSE_NOTIFY, HANDSHAKE_FAILURE, UNKNOWN_CA, INTERNAL_ERROR = 0, 40, 48, 80
# What a server says to a greeting by TLS, and what that comes to.
SAID: dict[str, tuple[bytes, type[Exception]]] = {
    "internal error": (tls_alert(FATAL, INTERNAL_ERROR), TurnedAway),
    "close notify": (tls_alert(WARNING, CLOSE_NOTIFY), TurnedAway),
    "nothing": (b"", TurnedAway),
    "handshake failure": (tls_alert(FATAL, HANDSHAKE_FAILURE), Fatal),
    "unknown authority": (tls_alert(FATAL, UNKNOWN_CA), Fatal),
    "words of another protocol": (b"HTTP/1.1 400 Bad Request\r\n\r\n", Fatal),
}


@pytest.mark.parametrize("said", SAID)
async def test_an_alert_tells_a_server_in_trouble_from_one_that_wants_other_settings(
    said: str, someone: Callable[..., Awaitable[str]]
) -> None:
    words, kind = SAID[said]
    server = await someone(saying(words))
    with pytest.raises(kind, match=server) as raised:
        await reach(over_tls(server))
    assert type(raised.value) is kind


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Exception], None]:
    """Have a server end each connection with an error."""
    errors: dict[str, Exception] = {}
    connect = AIOKafkaConnection.connect

    async def connected(connection: AIOKafkaConnection) -> None:
        if (error := errors.get(f"127.0.0.1:{connection.port}")) is not None:
            raise error
        await connect(connection)

    monkeypatch.setattr(AIOKafkaConnection, "connect", connected)
    return errors.__setitem__


REFUSING = "127.0.0.1:7"
REFUSALS: dict[str, tuple[Callable[[], Exception], str]] = {
    "a wrong password": (
        lambda: SaslAuthenticationFailed("Authentication failed for the password 4711"),
        (
            f"{REFUSING} refuses the login of user {{safe}} (SCRAM-SHA-512): invalid credentials; "
            "check SAFE_V0_KAFKA_SASL_USERNAME, SAFE_V0_KAFKA_SASL_PASSWORD and SAFE_V0_KAFKA_SASL_MECHANISM"
        ),
    ),
    "a mechanism that is not enabled": (
        UnsupportedSaslMechanismError,
        (
            f"{REFUSING} refuses this kind of login (SCRAM-SHA-512); "
            "check SAFE_V0_KAFKA_SASL_MECHANISM and SAFE_V0_KAFKA_SECURITY_PROTOCOL"
        ),
    ),
    "no login": (
        IllegalSaslStateError,
        (
            f"{REFUSING} refuses this kind of login (SCRAM-SHA-512); "
            "check SAFE_V0_KAFKA_SASL_MECHANISM and SAFE_V0_KAFKA_SECURITY_PROTOCOL"
        ),
    ),
    "no TLS": (
        lambda: ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"),
        (
            f"no TLS connection to {REFUSING} (SSLError); "
            "check SAFE_V0_KAFKA_SECURITY_PROTOCOL, SAFE_V0_KAFKA_SSL_CERTFILE and _KEYFILE"
        ),
    ),
    "a certificate of another authority": (
        lambda: closed_after(alert(ssl.SSLError, "SSLV3_ALERT_CERTIFICATE_UNKNOWN")),
        (
            f"{REFUSING} refuses the client's certificate, or asks for one (SSLV3_ALERT_CERTIFICATE_UNKNOWN); "
            "check SAFE_V0_KAFKA_SSL_CERTFILE and _KEYFILE, and that the brokers trust its authority"
        ),
    ),
}


def closed_after(cause: Exception) -> KafkaConnectionError:
    """What a client says of a connection that was made and then ended with an alert, as TLS 1.3 has it."""
    closed = KafkaConnectionError("closed")
    closed.__cause__ = cause
    return closed


@pytest.mark.parametrize("case", REFUSALS)
async def test_a_refused_login_is_fatal(case: str, refused: Callable[[str, Exception], None]) -> None:
    error, sentence = REFUSALS[case]
    refused(REFUSING, error())
    login = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_username": "{safe}", "sasl_plain_password": "4711"}
    with pytest.raises(Fatal) as raised:
        await reach(plain(REFUSING) | login)
    assert str(raised.value) == sentence


def alert(kind: type[ssl.SSLError], reason: str) -> ssl.SSLError:
    error = kind(1, reason)
    error.reason = reason
    return error


@pytest.mark.parametrize(
    "error",
    [
        alert(ssl.SSLZeroReturnError, "close_notify"),
        alert(ssl.SSLEOFError, "UNEXPECTED_EOF_WHILE_READING"),
        alert(ssl.SSLError, "TLSV1_ALERT_INTERNAL_ERROR"),
        alert(ssl.SSLError, "SSLV3_ALERT_CLOSE_NOTIFY"),
    ],
)
async def test_a_peer_that_ends_a_handshake_may_be_on_its_way_down(
    error: ssl.SSLError, refused: Callable[[str, Exception], None]
) -> None:
    refused("127.0.0.1:7", error)
    with pytest.raises(TurnedAway, match=r"^127\.0\.0\.1:7 closes the connection$"):
        await reach(plain("127.0.0.1:7"))


REFUSED, CLOSED, AWAY = SaslAuthenticationFailed("no"), ConnectionResetError(), ConnectionRefusedError()
# How each of several servers fails, and what that comes to: Fatal ends a start, TurnedAway does after a while.
# A server that is away says nothing against a refusal; one that closes the connection may be the one that is right.
TOGETHER: list[tuple[list[Exception], type[Exception]]] = [
    ([REFUSED], Fatal),
    ([REFUSED, REFUSED], Fatal),
    ([REFUSED, AWAY], Fatal),
    ([REFUSED, CLOSED], TurnedAway),
    ([CLOSED], TurnedAway),
    ([CLOSED, CLOSED], TurnedAway),
    ([REFUSED, CLOSED, AWAY], Transient),
    ([CLOSED, AWAY], Transient),
    ([AWAY], Transient),
    ([AWAY, AWAY], Transient),
]


@pytest.mark.parametrize(("errors", "kind"), TOGETHER)
async def test_a_start_ends_where_all_that_answer_refuse_and_waits_where_one_may_come_back(
    errors: list[Exception], kind: type[Exception], refused: Callable[[str, Exception], None]
) -> None:
    servers = [f"127.0.0.1:{port}" for port in range(7, 7 + len(errors))]
    for server, error in zip(servers, errors, strict=True):
        refused(server, error)
    with pytest.raises(kind) as raised:
        await reach(plain(*servers))
    assert type(raised.value) is kind
    assert all(server in str(raised.value) for server in servers)
