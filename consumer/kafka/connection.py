"""How to connect to the brokers: the options that every client shares."""

import ssl
from dataclasses import dataclass
from typing import Any

from aiokafka.helpers import create_ssl_context

from consumer.errors import ConfigurationError
from consumer.settings import Settings

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
        """Read the Kafka settings; raises ConfigurationError if one is missing or cannot be used."""
        if not settings.kafka_bootstrap_servers:
            raise ConfigurationError(
                "no brokers are configured: set SAFE_V0_KAFKA_BOOTSTRAP_SERVERS to host:port, separated by commas"
            )
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
    try:
        context: ssl.SSLContext = create_ssl_context(
            cafile=settings.kafka_ssl_cafile,
            certfile=settings.kafka_ssl_certfile,
            keyfile=settings.kafka_ssl_keyfile,
            password=_refuse_passphrase,
        )
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"the TLS files cannot be used ({type(error).__name__}): "
            "check SAFE_V0_KAFKA_SSL_CAFILE, _CERTFILE and _KEYFILE"
        ) from error
    return context


def _refuse_passphrase() -> str:
    """Refuse an encrypted key: OpenSSL would ask for its passphrase at the terminal, where nobody may be."""
    raise ConfigurationError(
        "SAFE_V0_KAFKA_SSL_KEYFILE is encrypted: SAFE needs a key without a passphrase, protected by file permissions "
        "(openssl pkey -in key.pem -out plain.pem)"
    )


def _sasl_options(settings: Settings) -> dict[str, Any]:
    password = settings.kafka_sasl_password
    if not settings.kafka_sasl_username or password is None:
        raise ConfigurationError(
            f"SAFE_V0_KAFKA_SECURITY_PROTOCOL is {settings.kafka_security_protocol}: "
            "set SAFE_V0_KAFKA_SASL_USERNAME and SAFE_V0_KAFKA_SASL_PASSWORD (or a file of that name in "
            "SAFE_V0_SECRETS_DIR)"
        )
    return {
        "sasl_mechanism": settings.kafka_sasl_mechanism or "PLAIN",
        "sasl_plain_username": settings.kafka_sasl_username,
        "sasl_plain_password": password.get_secret_value(),
    }
