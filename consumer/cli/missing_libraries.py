"""Whether the libraries of the commands that talk to Kafka are installed: commands on files work without them."""

from typing import Final

from consumer.errors import ConfigurationError

LIBRARIES: Final = frozenset(("aiokafka", "cramjam", "prometheus_client"))
"""What only these commands import, and requirements-offline.txt leaves out."""


class NoKafkaClient(ConfigurationError):
    """A command needs one of these libraries, and it is not installed."""

    def __init__(self, command: str) -> None:
        super().__init__(
            f"{command} needs a Kafka client, which is not installed: install SAFE with all that it requires "
            "(in a checkout: pip install .)"
        )


def is_missing(error: ModuleNotFoundError) -> bool:
    """Tell whether an import has failed because one of the libraries is not installed, not a part of it."""
    return error.name in LIBRARIES
