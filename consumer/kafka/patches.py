"""What SAFE changes in aiokafka itself, for all clients of a process."""

from consumer.kafka.decompression import Decompression
from consumer.kafka.internals import bound_memory, break_cycles, replace_batches
from consumer.settings import Settings


def install_patches(settings: Settings) -> None:
    """Bound what is decompressed, take any header name, free what was fetched: call it where a process starts.

    Without it, one batch may take all memory, and one odd header name stops a partition. May be called twice.
    """
    bound_memory(Decompression(settings.max_batch_bytes))
    replace_batches()
    break_cycles()
