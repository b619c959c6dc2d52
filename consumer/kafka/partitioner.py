"""Which partition a key belongs to."""

from functools import lru_cache

from aiokafka.partitioner import murmur2


@lru_cache(maxsize=4_096)
def partition_for(key: str, partitions: int) -> int:
    """Java's default partitioner (contract.md, "Topics and keys"): all records of a batch share one partition."""
    return partition_of_key(key.encode(), partitions)


def partition_of_key(key: bytes | None, partitions: int) -> int:
    """The partition of a key by Java's default partitioner; a record without a key goes to the first partition."""
    return 0 if key is None else (int(murmur2(key)) & 0x7FFFFFFF) % partitions
