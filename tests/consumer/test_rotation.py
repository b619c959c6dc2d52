"""Secrets that change while a process runs: the new ones are used, and what cannot be read takes nothing away."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from consumer.case_sources.service_access import AccessReader
from consumer.errors import ConfigurationError
from consumer.kafka.connection import Connection
from consumer.kafka.credentials import CredentialsReader
from consumer.kafka.logins import Login
from consumer.kafka.oauth import TokenUnavailable
from consumer.settings import LastGood, Loaded, load
from tests.support.certificates import Authority
from tests.support.kafka_broker import free_port
from tests.support.mounted import mount

OLD, NEW = "planted-old-4711", "planted-new-4712"
PASSWORD = "SAFE_V0_KAFKA_SASL_PASSWORD"  # noqa: S105 - its name
USER = "SAFE_V0_KAFKA_SASL_USERNAME"
SCRAM = {
    "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",
    "SAFE_V0_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
    "SAFE_V0_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
}


def loaded(folder: Path, **more: str) -> Loaded:
    return load({}, {"SAFE_V0_SECRETS_DIR": "secrets", **more}, folder)


class Opened:
    """Stands for aiokafka's own way to connect: keeps the options of each connection."""

    def __init__(self) -> None:
        self.options: list[dict[str, Any]] = []

    async def __call__(self, *_: object, **options: Any) -> "Opened":
        self.options.append(options)
        return self

    _last_action = 0.0


def login_of(settings: Loaded) -> Login:
    login = Connection.from_settings(settings.settings, settings.settings_now).login
    assert login is not None
    return login


async def shown(login: Login) -> tuple[Any, Any]:
    """Return the user name and the password that a new connection shows."""
    opened = Opened()
    await login.open(opened, "broker", 9092, {})
    [options] = opened.options
    return options["sasl_plain_username"], options["sasl_plain_password"]


# --- user and password


async def test_each_login_shows_the_user_and_the_password_that_the_files_hold_then(tmp_path: Path) -> None:
    mount(tmp_path / "secrets", {USER: "one\n", PASSWORD: f"{OLD}\n"})
    login = login_of(loaded(tmp_path, **SCRAM))
    assert await shown(login) == ("one", OLD)
    mount(tmp_path / "secrets", {USER: "two\n", PASSWORD: f"{NEW}\n"})
    assert await shown(login) == ("two", NEW)


async def test_a_file_that_is_written_in_place_counts_as_changed_whatever_its_time(tmp_path: Path) -> None:
    mount(tmp_path / "secrets", {USER: "one", PASSWORD: OLD})
    file = (tmp_path / "secrets" / PASSWORD).resolve()
    login, before = login_of(loaded(tmp_path, **SCRAM)), file.stat()
    file.write_text(NEW, encoding="utf-8")  # as long as before
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert await shown(login) == ("one", NEW)


async def test_what_the_environment_gives_stays(tmp_path: Path) -> None:
    mount(tmp_path / "secrets", {PASSWORD: OLD})
    login = login_of(loaded(tmp_path, **SCRAM, **{USER: "fixed"}))
    mount(tmp_path / "secrets", {USER: "other", PASSWORD: NEW})
    assert await shown(login) == ("fixed", NEW)


async def test_a_configuration_file_that_holds_them_is_read_again_too(tmp_path: Path) -> None:
    file = tmp_path / "safe.config.json"
    (tmp_path / "secrets").mkdir()
    file.write_text(f'{{"kafkaSaslUsername": "one", "kafkaSaslPassword": "{OLD}"}}', encoding="utf-8")
    login = login_of(loaded(tmp_path, **SCRAM))
    file.write_text(f'{{"kafkaSaslUsername": "two", "kafkaSaslPassword": "{NEW}"}}', encoding="utf-8")
    assert await shown(login) == ("two", NEW)


async def test_a_configuration_file_that_holds_no_secret_and_is_broken_takes_nothing_from_the_secrets(
    tmp_path: Path,
) -> None:
    file = tmp_path / "safe.config.json"
    mount(tmp_path / "secrets", {PASSWORD: OLD})
    file.write_text('{"kafkaSaslUsername": "one"}', encoding="utf-8")
    login = login_of(loaded(tmp_path, **SCRAM))
    mount(tmp_path / "secrets", {PASSWORD: NEW})
    file.write_text('{"kafkaSaslUsername": "two", "keyOfALaterVersion": 1}', encoding="utf-8")
    assert await shown(login) == ("one", NEW)
    file.write_text('{"kafkaSaslUsername": "two"}', encoding="utf-8")
    assert await shown(login) == ("two", NEW)


async def test_nothing_else_changes_while_a_process_runs(tmp_path: Path) -> None:
    mount(tmp_path / "secrets", {USER: "one", PASSWORD: OLD})
    settings = loaded(tmp_path, **SCRAM)
    mount(tmp_path / "secrets", {USER: "two", PASSWORD: NEW, "SAFE_V0_INPUT_TOPIC": "other"})
    now = settings.settings_now()
    assert now.kafka_sasl_username == "two"
    assert now.input_topic == settings.settings.input_topic


def broken_password(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")


def empty_password(path: Path) -> None:
    path.write_text("", encoding="utf-8")


BROKEN: list[Callable[[Path], None]] = [broken_password, empty_password, Path.unlink]


@pytest.mark.parametrize("break_it", BROKEN)
async def test_what_cannot_be_read_just_now_leaves_the_last_good_one_and_is_told_once(
    tmp_path: Path, break_it: Callable[[Path], None]
) -> None:
    mount(tmp_path / "secrets", {USER: "one", PASSWORD: OLD})
    login = login_of(loaded(tmp_path, **SCRAM))
    break_it((tmp_path / "secrets" / PASSWORD).resolve())
    with capture_logs() as logs:
        assert [await shown(login) for _ in range(3)] == [("one", OLD)] * 3
    assert [line["log_level"] for line in logs] == ["warning"]
    assert PASSWORD in str(login.credentials.trouble)
    mount(tmp_path / "secrets", {USER: "one", PASSWORD: NEW})
    with capture_logs() as later:
        assert await shown(login) == ("one", NEW)
    assert [line["event"] for line in later] == ["has changed, and is used from now on"]
    assert login.credentials.trouble is None
    assert not [secret for secret in (OLD, NEW) if secret in f"{logs} {later} {login.credentials.value!r}"]


def test_a_secret_that_cannot_be_read_at_first_is_an_error_at_once(tmp_path: Path) -> None:
    mount(tmp_path / "secrets", {USER: "one", PASSWORD: ""})
    with pytest.raises(ConfigurationError, match="is empty"):
        loaded(tmp_path, **SCRAM)


# --- tokens


async def test_a_token_endpoint_that_is_away_is_named_and_is_no_refusal(tmp_path: Path) -> None:
    mount(tmp_path / "secrets", {"SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_SECRET": OLD})
    by_token = {
        "SAFE_V0_KAFKA_SASL_MECHANISM": "OAUTHBEARER",
        "SAFE_V0_KAFKA_SASL_OAUTH_TOKEN_URL": f"http://127.0.0.1:{free_port()}/token",
        "SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_ID": "safe",
    }
    login = login_of(loaded(tmp_path, **(SCRAM | by_token)))

    async def connect(*_: object, **options: Any) -> Opened:
        await options["sasl_oauth_token_provider"].token()
        return Opened()

    with pytest.raises(TokenUnavailable):
        await login.open(connect, "broker", 9092, {})
    [trouble] = login.troubles()
    assert "the token endpoint at 127.0.0.1:" in trouble
    assert not login.logins.is_refused()


# --- certificates


def tls_files(authority: Authority, name: str = "worker") -> dict[str, str]:
    files = {"ca.crt": authority.cafile, "tls.crt": authority.certificate(name), "tls.key": authority.key(name)}
    return {each: file.read_text(encoding="utf-8") for each, file in files.items()}


def over_tls(folder: Path) -> Login:
    return login_of(
        load(
            {},
            {
                "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",
                "SAFE_V0_KAFKA_SECURITY_PROTOCOL": "SSL",
                "SAFE_V0_KAFKA_SSL_CAFILE": str(folder / "ca.crt"),
                "SAFE_V0_KAFKA_SSL_CERTFILE": str(folder / "tls.crt"),
                "SAFE_V0_KAFKA_SSL_KEYFILE": str(folder / "tls.key"),
            },
            folder,
        )
    )


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> list[Authority]:
    folder = tmp_path_factory.mktemp("authorities")
    return [Authority(folder / name) for name in ("first", "second")]


@asynccontextmanager
async def server_of(authority: Authority) -> AsyncIterator[int]:
    """A server that shows a certificate of the authority and asks its clients for one of the same; gives its port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.cafile)
    context.load_cert_chain(authority.certificate("server"), authority.key("server"))
    context.verify_mode = ssl.CERT_REQUIRED

    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"welcome")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def handshakes(login: Login, *ports: int) -> list[str]:
    """Connect with what the login shows now; tell what came of it."""

    async def connect(host: str, port: int, **options: Any) -> Opened:
        reader, writer = await asyncio.open_connection(host, port, ssl=options["ssl_context"])
        try:
            assert await reader.read() == b"welcome"
        finally:
            writer.close()
        return Opened()

    told = []
    for port in ports:
        try:
            await login.open(connect, "127.0.0.1", port, {})
            told.append("welcome")
        except ssl.SSLError as error:
            told.append(str(error.reason))
    return told


async def test_an_authority_that_was_taken_out_is_no_longer_trusted(
    tmp_path: Path, authorities: list[Authority]
) -> None:
    first, second = authorities
    async with AsyncExitStack() as servers:
        ports = [await servers.enter_async_context(server_of(each)) for each in authorities]
        mount(tmp_path, tls_files(first))
        login = over_tls(tmp_path)
        assert await handshakes(login, *ports) == ["welcome", "CERTIFICATE_VERIFY_FAILED"]
        mount(tmp_path, tls_files(second))
        assert await handshakes(login, *ports) == ["CERTIFICATE_VERIFY_FAILED", "welcome"]
        assert login.troubles()[0].startswith("the certificate of the brokers is not trusted")


async def test_a_new_context_is_made_only_where_something_has_changed(
    tmp_path: Path, authorities: list[Authority]
) -> None:
    mount(tmp_path, tls_files(authorities[0]))
    login = over_tls(tmp_path)
    before = login.credentials.value.tls
    assert (await login.credentials.read_again()).tls is before
    mount(tmp_path, tls_files(authorities[0], "another"))
    assert (await login.credentials.read_again()).tls is not before


@pytest.mark.parametrize("name", ["ca.crt", "tls.crt", "tls.key"])
async def test_half_a_file_of_tls_leaves_what_was_read_before(
    tmp_path: Path, authorities: list[Authority], name: str
) -> None:
    mount(tmp_path, tls_files(authorities[0]))
    login = over_tls(tmp_path)
    before = login.credentials.value
    mount(tmp_path, tls_files(authorities[1]) | {name: tls_files(authorities[1])[name][:200]})
    with capture_logs() as logs:
        assert await login.credentials.read_again() is before
    assert [line["log_level"] for line in logs] == ["warning"]
    mount(tmp_path, tls_files(authorities[1]))
    assert await login.credentials.read_again() != before


async def test_a_certificate_without_its_key_waits_for_it(tmp_path: Path, authorities: list[Authority]) -> None:
    mount(tmp_path, tls_files(authorities[0]))
    login = over_tls(tmp_path)
    new = tls_files(authorities[1])
    mount(tmp_path, new | {"tls.key": tls_files(authorities[0])["tls.key"]})
    await login.credentials.read_again()
    assert "KEY_VALUES_MISMATCH" in str(login.credentials.trouble)
    mount(tmp_path, new)
    await login.credentials.read_again()
    assert login.credentials.trouble is None


def test_the_ends_of_the_certificates_are_known_by_file(tmp_path: Path, authorities: list[Authority]) -> None:
    mount(tmp_path, tls_files(authorities[0]))
    assert sorted(over_tls(tmp_path).credentials.value.ends) == [str(tmp_path / "ca.crt"), str(tmp_path / "tls.crt")]


# --- files that change while they are read


class Changing:
    """Something that is read and is never the same twice, for a while."""

    def __init__(self, settings: Loaded, folder: Path, times: int) -> None:
        self._loaded, self._folder, self._times = settings, folder, times
        self.read = 0

    def __call__(self) -> Any:
        now = self._loaded.settings_now()
        self.read += 1
        if self.read <= self._times:
            mount(self._folder, {USER: f"user-{self.read}", PASSWORD: f"{NEW}-{self.read}"})
        return now


async def test_user_and_password_are_of_one_reading(tmp_path: Path) -> None:
    mount(tmp_path / "secrets", {USER: "one", PASSWORD: OLD})
    settings = loaded(tmp_path, **SCRAM)
    changing = Changing(settings, tmp_path / "secrets", times=2)
    login = Connection.from_settings(settings.settings, changing).login
    assert login is not None
    assert await shown(login) == ("user-2", f"{NEW}-2")


async def test_many_connections_at_once_share_a_reading_that_began_after_they_asked() -> None:
    begun: list[int] = []

    def read() -> int:
        begun.append(len(begun))
        return len(begun)

    value = LastGood("something", read)
    assert await asyncio.gather(*(value.read_again() for _ in range(100))) == [2, *[3] * 99]
    assert await value.read_again() == 4
    assert len(begun) == 4


# --- the service of test cases


SERVICE = {"SAFE_V0_EXPECTATIONS": "https://cases.example/v1"}


@pytest.fixture
def told() -> Iterator[list[MutableMapping[str, Any]]]:
    with capture_logs() as logs:
        yield logs


async def test_the_token_of_the_service_may_change(tmp_path: Path, told: list[MutableMapping[str, Any]]) -> None:
    mount(tmp_path / "secrets", {"SAFE_V0_EXPECTATIONS_TOKEN": OLD})
    access = LastGood("the login to the service", AccessReader(loaded(tmp_path, **SERVICE).settings_now))
    tls = access.value.tls
    assert access.value.credentials == {"Authorization": f"Bearer {OLD}"}
    mount(tmp_path / "secrets", {"SAFE_V0_EXPECTATIONS_TOKEN": "half a\ntoken"})
    await access.read_again()
    assert access.value.credentials == {"Authorization": f"Bearer {OLD}"}
    mount(tmp_path / "secrets", {"SAFE_V0_EXPECTATIONS_TOKEN": NEW})
    await access.read_again()
    assert access.value.credentials == {"Authorization": f"Bearer {NEW}"}
    assert access.value.tls is not tls
    assert [line["log_level"] for line in told] == ["warning", "info"]
    assert not [secret for secret in (OLD, NEW) if secret in f"{told} {access.value!r}"]


async def test_so_may_a_login_in_its_address_but_not_the_address(tmp_path: Path) -> None:
    mount(tmp_path / "secrets", {"SAFE_V0_EXPECTATIONS": f"https://anna:{OLD}@cases.example/v1"})
    access = LastGood("the login to the service", AccessReader(loaded(tmp_path).settings_now))
    before = access.value
    mount(tmp_path / "secrets", {"SAFE_V0_EXPECTATIONS": f"https://anna:{NEW}@elsewhere.example/v1"})
    assert await access.read_again() is before
    assert access.trouble == "SAFE_V0_EXPECTATIONS is another address now; start again to use it"
    mount(tmp_path / "secrets", {"SAFE_V0_EXPECTATIONS": f"https://anna:{NEW}@cases.example/v1"})
    assert (await access.read_again()).credentials != before.credentials


BY_TOKEN = {
    "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": "broker:9092",
    "SAFE_V0_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
    "SAFE_V0_KAFKA_SASL_MECHANISM": "OAUTHBEARER",
    "SAFE_V0_KAFKA_SASL_OAUTH_TOKEN_URL": "https://tokens.example/token",
    "SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_ID": "safe",
    "SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_SECRET": OLD,
}


@pytest.mark.parametrize("kept", [0, 300])
async def test_a_half_written_file_of_authorities_keeps_the_last_good_one_for_tokens_too(
    tmp_path: Path, kept: int
) -> None:
    cafile = Authority(tmp_path / "one").cafile
    whole = cafile.read_bytes()
    settings = BY_TOKEN | {"SAFE_V0_KAFKA_SSL_CAFILE": str(cafile)}
    read = CredentialsReader(load({}, settings).settings_now)
    credentials = LastGood("the login to Kafka", read)
    before = credentials.value
    cafile.write_bytes(whole[:kept])
    assert await credentials.read_again() is before
    assert credentials.trouble == f"SAFE_V0_KAFKA_SSL_CAFILE={cafile} holds no certificates in PEM form"
    with pytest.raises(ConfigurationError, match="holds no certificates in PEM form"):
        CredentialsReader(load({}, settings).settings_now)()
    cafile.write_bytes(whole)
    assert await credentials.read_again() == before
    assert credentials.trouble is None


async def test_what_the_system_trusts_is_read_again_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trusted = Authority(tmp_path / "one").cafile
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    mount(tmp_path / "secrets", {"SAFE_V0_EXPECTATIONS_TOKEN": OLD})
    access = LastGood("the login to the service", AccessReader(loaded(tmp_path, **SERVICE).settings_now))
    before = access.value.tls
    assert (await access.read_again()).tls is before
    trusted.write_bytes(Authority(tmp_path / "two").cafile.read_bytes())
    assert (await access.read_again()).tls is not before
