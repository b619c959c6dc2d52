"""What SAFE changes in aiokafka itself, for all clients of a process."""

from consumer.kafka.aiokafka_internals import (
    bound_memory,
    manage_connections,
    replace_batches,
    see_refused_tokens,
)
from consumer.kafka.decompression import Decompression
from consumer.settings import Settings


def install_patches(settings: Settings) -> None:
    """Limit what is decompressed, accept any header name, free what was fetched, pause before connecting again, leave
    no connection open, and notice that a token is refused.

    Call this where a process starts. Without it, one batch may use up all memory, one odd header name stops a
    partition, and brokers that are away are asked for connections hundreds of times a second. May be called again.
    """
    bound_memory(Decompression(settings.max_batch_bytes))
    replace_batches()
    manage_connections()
    see_refused_tokens()
