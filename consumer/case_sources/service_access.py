"""What SAFE shows to the service of test cases, and whom it trusts; read again while it runs."""

import hashlib
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from consumer.case_sources.case_client import credentials
from consumer.errors import ConfigurationError
from consumer.settings import Settings


@dataclass(frozen=True, slots=True)
class ServiceAccess:
    """As of one reading; two are equal if the same is in the settings and in the file of certificates."""

    address: str
    credentials: Mapping[str, str] = field(repr=False)
    trusted: bytes = field(repr=False)
    tls: ssl.SSLContext | None = field(default=None, compare=False)


class AccessReader:
    """Reads it; an address of another place is refused: what is cached came from the first one."""

    def __init__(self, settings_now: Callable[[], Settings]) -> None:
        self._settings_now = settings_now
        self._last: ServiceAccess | None = None

    def __call__(self) -> ServiceAccess:
        """Read; raises ConfigurationError."""
        settings = self._settings_now()
        token = settings.expectations_token
        where = settings.expectations or ""
        shown = credentials(where, None if token is None else token.get_secret_value())
        access = ServiceAccess(_without_login(where), shown, _trusted_by_the_system())
        last = self._last
        if last is not None and access.address != last.address:
            raise ConfigurationError("SAFE_V0_EXPECTATIONS is another address now; start again to use it")
        if access == last:
            return last
        self._last = replace(access, tls=ssl.create_default_context())  # a new one: the last one forgets no authority
        return self._last


def _without_login(address: str) -> str:
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _trusted_by_the_system() -> bytes:
    """The digest of the file with the certificates that the system trusts, if it has one."""
    path = ssl.get_default_verify_paths().cafile
    try:
        return b"" if not path else hashlib.sha256(Path(path).read_bytes()).digest()
    except OSError as error:
        raise ConfigurationError(f"the system's certificates in {path} cannot be read: {error.strerror}") from error
