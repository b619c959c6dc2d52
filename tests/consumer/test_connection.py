"""How to reach the brokers: TLS files that cannot be used are refused in one sentence, without a question."""

import shutil
import subprocess
from pathlib import Path

import pytest

from consumer.errors import ConfigurationError
from consumer.kafka.connection import Connection
from consumer.settings import load

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


def connection(folder: Path, key: str) -> Connection:
    environ = {
        "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",
        "SAFE_V0_KAFKA_SECURITY_PROTOCOL": "SSL",
        "SAFE_V0_KAFKA_SSL_CERTFILE": str(folder / "cert.pem"),
        "SAFE_V0_KAFKA_SSL_KEYFILE": str(folder / key),
    }
    return Connection.from_settings(load({}, environ, folder).settings)


def test_a_key_with_a_passphrase_is_refused_and_nobody_is_asked_for_it(certificate: Path) -> None:
    with pytest.raises(ConfigurationError, match="KEYFILE is encrypted: SAFE needs a key without a passphrase"):
        connection(certificate, "key.pem")


def test_a_key_without_one_is_used(certificate: Path) -> None:
    assert connection(certificate, "plain.pem").options["ssl_context"] is not None


def test_files_that_are_not_there_are_named_by_their_settings(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="check SAFE_V0_KAFKA_SSL_CAFILE, _CERTFILE and _KEYFILE"):
        connection(tmp_path, "none.pem")
