"""What SAFE shows to the brokers and to the token endpoint, and whom it trusts; read again for each new connection."""

import hashlib
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Never

from pydantic import SecretStr

from consumer.errors import ConfigurationError
from consumer.kafka.certificates import first_end
from consumer.kafka.oauth import Client
from consumer.settings import VARIABLES, Settings

_FILES: Final = ("kafka_ssl_cafile", "kafka_ssl_certfile", "kafka_ssl_keyfile")
_MOST_READINGS: Final = 3
"""Files that change while they are read are read again at once; after this many readings, at the next occasion."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """All that a new connection needs, as of one reading.

    Two are equal if the same is in the settings and in the files, whose `digests` are by path: when a file was changed
    does not matter. `ends` says when the first certificate of each file ends, in seconds since 1970.
    """

    username: str | None
    password: SecretStr | None
    key_password: SecretStr | None
    client: Client | None
    digests: Mapping[str, bytes] = field(repr=False)
    tls: ssl.SSLContext | None = field(default=None, compare=False)
    ends: Mapping[str, float] = field(default_factory=dict, compare=False)

    def options(self) -> dict[str, Any]:
        """Arguments for aiokafka."""
        options: dict[str, Any] = {}
        if self.tls is not None:
            options["ssl_context"] = self.tls
        if self.password is not None:
            options["sasl_plain_username"] = self.username
            options["sasl_plain_password"] = self.password.get_secret_value()
        return options


class CredentialsReader:
    """Reads the credentials; TLS contexts are made only where something has changed, since that takes a while.

    They are always new ones: a context never forgets an authority that it was told to trust.
    """

    def __init__(self, settings_now: Callable[[], Settings]) -> None:
        self._settings_now = settings_now
        self._last: Credentials | None = None

    def __call__(self) -> Credentials:
        """Read; raises ConfigurationError, which names the file."""
        settings = self._settings_now()
        seen = _seen(settings)
        for _ in range(_MOST_READINGS):
            if seen == self._last:
                return self._last
            made = _with_contexts(seen, settings)
            settings, before = self._settings_now(), seen
            seen = _seen(settings)
            if seen == before:  # else the contexts may be made of files that do not belong together
                self._last = made
                return made
        raise ConfigurationError("the credentials change while they are read")


def _seen(settings: Settings) -> Credentials:
    """What there is to read, without a context."""
    contents = _contents(settings)
    shown = {str(path) for path in (settings.kafka_ssl_cafile, settings.kafka_ssl_certfile) if path is not None}
    ends = {path: end for path in sorted(shown) if (end := first_end(contents[path])) is not None}
    return Credentials(
        settings.kafka_sasl_username,
        settings.kafka_sasl_password,
        settings.kafka_ssl_key_password,
        _client(settings),
        {path: hashlib.sha256(content).digest() for path, content in contents.items()},
        ends=ends,
    )


def _contents(settings: Settings) -> dict[str, bytes]:
    """The content of each file by its path, also of the one that the system trusts, where that counts."""
    named = {VARIABLES[name]: path for name in _FILES if (path := getattr(settings, name)) is not None}
    contents = {str(path): _content(variable, path) for variable, path in named.items()}
    over_tls, by_token = "SSL" in settings.kafka_security_protocol, settings.kafka_sasl_mechanism == "OAUTHBEARER"
    trusted_by_the_system = ssl.get_default_verify_paths().cafile
    if trusted_by_the_system and (by_token or (over_tls and settings.kafka_ssl_cafile is None)):
        contents[trusted_by_the_system] = _content("the system's certificates", Path(trusted_by_the_system))
    return contents


def _content(variable: str, path: Path) -> bytes:
    """Read a file; the error names it: OpenSSL's own does not."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{variable}={path} cannot be read: {error.strerror}") from error


def _client(settings: Settings) -> Client | None:
    if settings.kafka_sasl_mechanism != "OAUTHBEARER":
        return None
    url, client_id = settings.kafka_sasl_oauth_token_url, settings.kafka_sasl_oauth_client_id
    secret = settings.kafka_sasl_oauth_client_secret
    assert url is not None, "the settings are checked for it"
    assert client_id is not None, "the settings are checked for it"
    assert secret is not None, "the settings are checked for it"
    return Client(url, client_id, secret.get_secret_value(), settings.kafka_sasl_oauth_scope)


# --- TLS --------------------------------------------------------------------------------------------------------------


def _with_contexts(seen: Credentials, settings: Settings) -> Credentials:
    client = seen.client and replace(seen.client, tls=_trusting_also(settings.kafka_ssl_cafile))
    tls = _tls(settings) if settings.kafka_security_protocol in {"SSL", "SASL_SSL"} else None
    return replace(seen, client=client, tls=tls)


def _tls(settings: Settings) -> ssl.SSLContext:
    context = _trusting(settings.kafka_ssl_cafile)
    if settings.kafka_ssl_certfile is not None:
        _show_certificate(context, settings.kafka_ssl_certfile, settings)
    return context


def _trusting(cafile: Path | None) -> ssl.SSLContext:
    """Make a context that trusts the certificates in a file, those of the system if there is none."""
    with _named(cafile):
        return ssl.create_default_context(cafile=cafile)


@contextmanager
def _named(cafile: Path | None) -> Iterator[None]:
    """Name the file in the error: OpenSSL's own does not."""
    try:
        yield
    except ssl.SSLError as error:
        raise ConfigurationError(f"SAFE_V0_KAFKA_SSL_CAFILE={cafile} holds no certificates in PEM form") from error
    except OSError as error:
        raise ConfigurationError(f"SAFE_V0_KAFKA_SSL_CAFILE={cafile} cannot be read: {error.strerror}") from error


def _trusting_also(cafile: Path | None) -> ssl.SSLContext:
    """A token endpoint may have a certificate of the brokers' authority, or one that the system trusts."""
    context = _trusting(None)
    if cafile is not None:
        with _named(cafile):
            context.load_verify_locations(cafile)
    return context


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
