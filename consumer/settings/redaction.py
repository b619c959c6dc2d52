"""How a setting's value is shown: without its secrets, whether printed, logged or quoted in an error."""

import json
import re
from pathlib import Path
from typing import Final

HIDDEN: Final = "********"
SECRETS: Final = frozenset(
    {"kafka_sasl_password", "kafka_sasl_oauth_client_secret", "kafka_ssl_key_password", "expectations_token"}
)


def without_secrets(name: str, value: object) -> object:
    """Convert a value to one for JSON, without passwords and tokens, even those within an address."""
    if value is None or value == "":
        return None
    if name in SECRETS:
        return HIDDEN
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str) and _is_address(name, value):
        return _address_without_secrets(value)
    return list(value) if isinstance(value, tuple) else value


def _is_address(name: str, value: str) -> bool:
    """Distinguish an address, even with a typo in its scheme, from a path, which may contain an @ too."""
    holds_user = name == "expectations" and ":" in value.partition("@")[0]
    return name in {"kafka_bootstrap_servers", "http_address"} or "://" in value or holds_user


def _address_without_secrets(address: str) -> str:
    """Hide what precedes an @, and what follows a ? or #: a token may be written there."""
    named = re.sub(r"^([a-zA-Z]+:/+)?.*@", rf"\1{HIDDEN}@", address, flags=re.DOTALL)
    return re.sub(r"([?#]).+", rf"\1{HIDDEN}", named, flags=re.DOTALL)


def quoted(name: str, value: object, *, hidden: bool = False) -> str:
    """A value as an error quotes it: on one line, not too long, and `hidden` if it may be a secret."""
    value = "" if value == "" else HIDDEN if hidden else without_secrets(name, value)
    plain = isinstance(value, str) and re.fullmatch(r"[!-~]+", value)
    text = str(value) if plain else json.dumps(value, default=lambda other: type(other).__name__)
    return text if len(text) <= 120 else text[:120] + "…"
