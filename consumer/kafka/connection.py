"""How to connect to the brokers: the options that every client shares."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Never

from consumer.errors import ConfigurationError
from consumer.kafka.oauth import Client, TokenProvider
from consumer.settings import VARIABLES, Settings

_CLIENT_ID = "safe"
_REQUEST_TIMEOUT_MS = 10_000
_METADATA_MAX_AGE_MS = 30_000
_RETRY_BACKOFF_MS = 20
"""The pause between attempts, within transactions too: the client's default of 100 ms costs most of the throughput."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the brokers are and how to connect to them; one per process, shared by all clients."""

    bootstrap_servers: str
    options: dict[str, Any]

    @classmethod
    def from_settings(cls, settings: Settings) -> "Connection":
        """Read the Kafka settings, which are complete; raises ConfigurationError for a file that cannot be used."""
        assert settings.kafka_bootstrap_servers, "a command that connects has required it"
        protocol = settings.kafka_security_protocol
        options: dict[str, Any] = {"security_protocol": protocol}
        if protocol in ("SSL", "SASL_SSL"):
            options["ssl_context"] = _ssl_context(settings)
        if protocol in ("SASL_PLAINTEXT", "SASL_SSL"):
            options |= _sasl_options(settings)
        return cls(settings.kafka_bootstrap_servers, options)

    def client(self, **more: Any) -> dict[str, Any]:
        """Arguments for one aiokafka client."""
        return {
            "bootstrap_servers": self.bootstrap_servers,
            "client_id": _CLIENT_ID,
            "request_timeout_ms": _REQUEST_TIMEOUT_MS,
            "metadata_max_age_ms": _METADATA_MAX_AGE_MS,
            "retry_backoff_ms": _RETRY_BACKOFF_MS,
            **self.options,
            **more,
        }


def _ssl_context(settings: Settings) -> ssl.SSLContext:
    for name in ("kafka_ssl_cafile", "kafka_ssl_certfile", "kafka_ssl_keyfile"):
        _check_readable(VARIABLES[name], getattr(settings, name))
    context = _trusting(settings.kafka_ssl_cafile)
    if settings.kafka_ssl_certfile is not None:
        _show_certificate(context, settings.kafka_ssl_certfile, settings)
    return context


def _check_readable(variable: str, path: Path | None) -> None:
    """Raise an error that names the file: OpenSSL's own does not."""
    try:
        if path is not None:
            path.open("rb").close()
    except OSError as error:
        raise ConfigurationError(f"{variable}={path} cannot be read: {error.strerror}") from error


def _trusting(cafile: Path | None) -> ssl.SSLContext:
    """Make a context that trusts the certificates in a file, those of the system if there is none."""
    try:
        return ssl.create_default_context(cafile=cafile)
    except ssl.SSLError as error:
        raise ConfigurationError(f"SAFE_V0_KAFKA_SSL_CAFILE={cafile} holds no certificates in PEM form") from error


def _show_certificate(context: ssl.SSLContext, certfile: Path, settings: Settings) -> None:
    keyfile, password = settings.kafka_ssl_keyfile, settings.kafka_ssl_key_password
    try:
        # Without a function, OpenSSL would ask for a passphrase at the terminal, where nobody may be.
        context.load_cert_chain(certfile, keyfile, password.get_secret_value if password else _refuse_encrypted)
    except (OSError, ValueError) as error:  # an SSLError is an OSError; a ValueError is a passphrase that is too long
        key = f"SAFE_V0_KAFKA_SSL_KEYFILE={keyfile}" if keyfile else f"SAFE_V0_KAFKA_SSL_CERTFILE={certfile}"
        if password is not None and getattr(error, "reason", None) != "KEY_VALUES_MISMATCH":
            raise ConfigurationError(
                f"{key} holds no private key in PEM form that SAFE_V0_KAFKA_SSL_KEY_PASSWORD opens"
            ) from error
        raise ConfigurationError(
            f"the key in {key} and the certificate in SAFE_V0_KAFKA_SSL_CERTFILE={certfile} cannot be used together "
            f"({getattr(error, 'reason', None) or 'not PEM'}): check that both are PEM and belong to each other"
        ) from error


def _refuse_encrypted() -> Never:
    raise ConfigurationError(
        "the private key is encrypted: set SAFE_V0_KAFKA_SSL_KEY_PASSWORD, better as a file of that name in "
        "SAFE_V0_SECRETS_DIR"
    )


def _sasl_options(settings: Settings) -> dict[str, Any]:
    if settings.kafka_sasl_mechanism == "OAUTHBEARER":
        return {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": _token_provider(settings)}
    password = settings.kafka_sasl_password
    assert password is not None, "the settings are checked for it"
    return {
        "sasl_mechanism": settings.kafka_sasl_mechanism,
        "sasl_plain_username": settings.kafka_sasl_username,
        "sasl_plain_password": password.get_secret_value(),
    }


def _token_provider(settings: Settings) -> TokenProvider:
    url, client_id = settings.kafka_sasl_oauth_token_url, settings.kafka_sasl_oauth_client_id
    secret = settings.kafka_sasl_oauth_client_secret
    assert url is not None, "the settings are checked for it"
    assert client_id is not None, "the settings are checked for it"
    assert secret is not None, "the settings are checked for it"
    client = Client(url, client_id, secret.get_secret_value(), settings.kafka_sasl_oauth_scope)
    return TokenProvider(client, _trusting_also(settings.kafka_ssl_cafile))


def _trusting_also(cafile: Path | None) -> ssl.SSLContext:
    """A token endpoint may have a certificate of the brokers' authority, or one that the system trusts."""
    context = _trusting(None)
    if cafile is not None:
        context.load_verify_locations(cafile)
    return context
