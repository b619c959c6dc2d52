"""Whether the libraries are installed that some commands alone need: the others work without them."""

from typing import Final

from consumer.errors import ConfigurationError

LIBRARIES: Final = frozenset(("aiokafka", "cramjam", "prometheus_client"))
"""What only commands that talk to Kafka import, and requirements-offline.txt leaves out."""


def missing_library(error: ModuleNotFoundError, command: str) -> ConfigurationError | None:
    """Say what to install for a command; None if the import has failed for another reason than a missing library."""
    if error.name in LIBRARIES:
        return ConfigurationError(
            f"{command} needs a Kafka client, which is not installed: install SAFE with all that it requires "
            "(in a checkout: pip install .)"
        )
    if error.name == "openai":
        return ConfigurationError(
            f"{command} needs the client of the model's endpoint, which is not installed: install SAFE with its extra "
            "judge (in a checkout: pip install '.[judge]')"
        )
    return None
