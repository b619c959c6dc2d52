"""How to reach the brokers: TLS files that cannot be used are refused in one sentence, without a question."""

import shutil
import subprocess
from pathlib import Path

import pytest

from consumer.errors import ConfigurationError
from consumer.kafka.connection import Connection
from consumer.kafka.logins import Login
from consumer.settings import load
from tests.support.certificates import Authority

PASSPHRASE = "planted-4711"  # noqa: S105 (of a key that lives as long as its test)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A folder with a certificate and its key, encrypted."""
    openssl = shutil.which("openssl")
    assert openssl is not None, "openssl makes the keys of this test"
    more = ["-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=safe", "-passout", f"pass:{PASSPHRASE}"]
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", *more], cwd=tmp_path, check=True, capture_output=True
    )
    subprocess.run(
        [openssl, "pkey", "-in", "key.pem", "-out", "plain.pem", "-passin", f"pass:{PASSPHRASE}"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    return tmp_path


def connection(folder: Path, key: str, **more: str) -> Connection:
    environ = {
        "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",
        "SAFE_V0_KAFKA_SECURITY_PROTOCOL": "SSL",
        "SAFE_V0_KAFKA_SSL_CERTFILE": str(folder / "cert.pem"),
        "SAFE_V0_KAFKA_SSL_KEYFILE": str(folder / key),
    } | more
    return Connection.from_settings(load({}, environ, folder).settings)


def test_without_its_passphrase_an_encrypted_key_is_refused_and_nobody_is_asked_for_it(certificate: Path) -> None:
    with pytest.raises(ConfigurationError, match="is encrypted: set SAFE_V0_KAFKA_SSL_KEY_PASSWORD"):
        connection(certificate, "key.pem")


def test_with_its_passphrase_it_is_used(certificate: Path) -> None:
    assert connection(certificate, "key.pem", SAFE_V0_KAFKA_SSL_KEY_PASSWORD=PASSPHRASE).options["ssl_context"]


def test_a_wrong_passphrase_is_told_and_not_shown(certificate: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        connection(certificate, "key.pem", SAFE_V0_KAFKA_SSL_KEY_PASSWORD="planted-wrong")  # noqa: S106
    key = certificate / "key.pem"
    assert str(refused.value) == (
        f"SAFE_V0_KAFKA_SSL_KEYFILE={key} holds no private key in PEM form that SAFE_V0_KAFKA_SSL_KEY_PASSWORD opens"
    )


def test_a_key_without_one_is_used(certificate: Path) -> None:
    assert connection(certificate, "plain.pem").options["ssl_context"] is not None


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "cert.pem"
    with pytest.raises(ConfigurationError) as refused:
        connection(tmp_path, "none.pem")
    assert str(refused.value) == f"SAFE_V0_KAFKA_SSL_CERTFILE={missing} cannot be read: No such file or directory"


def test_files_that_hold_something_else_are_named(certificate: Path) -> None:
    text = certificate / "notes.txt"
    text.write_text("not PEM\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=f"SAFE_V0_KAFKA_SSL_CAFILE={text} holds no certificates in PEM form"):
        connection(certificate, "plain.pem", SAFE_V0_KAFKA_SSL_CAFILE=str(text))
    with pytest.raises(ConfigurationError, match=r"cannot be used together .* check that both are PEM"):
        connection(certificate, "notes.txt")


def test_a_key_of_another_certificate_is_refused(certificate: Path, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other").key("other")
    with pytest.raises(ConfigurationError, match=r"KEY_VALUES_MISMATCH.*belong to each other"):
        connection(certificate, str(other))


def test_a_login_by_token_shares_one_provider(tmp_path: Path) -> None:
    given = {
        "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",
        "SAFE_V0_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "SAFE_V0_KAFKA_SASL_MECHANISM": "OAUTHBEARER",
        "SAFE_V0_KAFKA_SASL_OAUTH_TOKEN_URL": "https://login.example/token",
        "SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_ID": "safe",
        "SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_SECRET": PASSPHRASE,
    }
    made = Connection.from_settings(load({}, given, tmp_path).settings)
    assert isinstance(made.options["sasl_oauth_token_provider"], Login)
    assert made.client()["sasl_oauth_token_provider"] is made.client()["sasl_oauth_token_provider"]
    assert "sasl_plain_password" not in made.options
