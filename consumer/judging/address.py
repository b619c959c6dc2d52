"""Where a model is asked, and whether the user has allowed texts to be sent there (contract.md, "Opinions")."""

import re
from typing import Final, NamedTuple

from consumer.errors import ConfigurationError
from consumer.terminal import print_message
from consumer.text import visible

# Only what everybody reads alike: another host may stand behind a login, a backslash or a letter that is not ASCII.
_URL: Final = re.compile(
    r"(https?)://(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::([0-9]{1,5}))?(?:/[!-~]*)?", re.IGNORECASE | re.ASCII
)
_NOT_IN_A_PATH: Final = frozenset("?#@\\")
_LAST_PORT: Final = 65_535


class Address(NamedTuple):
    """Where a model is asked; with `api_version` as Azure OpenAI wants it, where `model` names the deployment."""

    base_url: str
    model: str
    api_version: str | None
    timeout: float

    def check_consent(self, sent_to: str | None) -> None:
        """Raise ConfigurationError unless the user named the host of the endpoint, loopback too."""
        match = _URL.fullmatch(self.base_url)
        if match is None or _NOT_IN_A_PATH & {*self.base_url} or int(match[4] or 0) > _LAST_PORT:
            raise ConfigurationError(
                "--base-url is not an address such as https://host/v1, without login and query; of a name with letters "
                "beyond ASCII, give the form that begins with xn--"
            )
        if not f"{self.model}{self.api_version or ''}".isprintable():
            raise ConfigurationError("--model or --api-version has a character that cannot be sent; write it again")
        host = (match[2] or match[3]).lower()
        if sent_to is None:
            raise ConfigurationError(
                f"texts of outputs and narratives would be sent to {host}; if they may leave this machine, say so with "
                f"--send-texts-to {host} (--dry-run shows what would be sent)"
            )
        if sent_to.lower() != host:
            raise ConfigurationError(f"--send-texts-to names {visible(sent_to)}, but --base-url leads to {host}")
        if match[1].lower() == "http" and host not in {"localhost", "127.0.0.1", "::1"}:
            print_message(f"texts and key go to {host} unencrypted; give an address with https if there is one")
