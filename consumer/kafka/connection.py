"""How to connect to the brokers: the options that every client shares."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from consumer.kafka.logins import Login
from consumer.settings import Settings

_CLIENT_ID = "safe"
_REQUEST_TIMEOUT_MS = 10_000
_METADATA_MAX_AGE_MS = 30_000
_RETRY_BACKOFF_MS = 20
"""The pause between attempts, within transactions too: the client's default of 100 ms costs most of the throughput."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the brokers are and how to connect to them; one per process, shared by all clients.

    `login` is None where the brokers ask for none.
    """

    bootstrap_servers: str
    options: dict[str, Any]
    login: Login | None = None

    @classmethod
    def from_settings(cls, settings: Settings, settings_now: Callable[[], Settings] | None = None) -> "Connection":
        """Read the Kafka settings, which are complete; raises ConfigurationError for a file that cannot be used.

        `settings_now` reads the secrets again. Without it, only the files of the certificates are read again.
        """
        assert settings.kafka_bootstrap_servers, "a command that connects has required it"
        protocol, mechanism = settings.kafka_security_protocol, settings.kafka_sasl_mechanism
        if protocol == "PLAINTEXT":
            return cls(settings.kafka_bootstrap_servers, {"security_protocol": protocol})
        login = Login(settings_now or (lambda: settings), by_token=mechanism == "OAUTHBEARER")
        # A client asks for credentials when it is made; each of its connections gets those of the login.
        options = login.credentials.value.options() | {"sasl_oauth_token_provider": login}
        if mechanism is not None:
            options["sasl_mechanism"] = mechanism
        return cls(settings.kafka_bootstrap_servers, {"security_protocol": protocol, **options}, login)

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
