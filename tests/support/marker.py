"""A writer that does nothing but mark where the changelog ends: what a restore asks of one."""

from collections.abc import Sequence

from consumer.kafka.protocol import Identity
from consumer.kafka.writer import Outgoing

Headers = Sequence[tuple[str, bytes | None]]


class Marker:
    """A `PartitionWriter` for restores; `marks` are the topics, partitions and keys that it was asked to mark."""

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset
        self.identity: Identity | None = None
        self.marks: list[tuple[str, int, bytes]] = []
        self.headers: Headers = ()

    async def start(self) -> None:
        """Nobody is there to be fenced."""

    async def mark(self, topic: str, partition: int, key: bytes, headers: Headers) -> int:
        assert headers
        self.headers = headers
        self.marks.append((topic, partition, key))
        return self.offset

    async def learn_time(self, topic: str, partition: int, key: bytes, headers: Headers) -> None:
        self.marks.append((topic, partition, key))
        assert headers

    async def near(self) -> None:
        raise AssertionError("a restore waits for no transaction")

    def outgoing(self, now_ms: int, share: float = 1.0) -> Outgoing:
        raise AssertionError(f"a restore writes nothing else, {now_ms}, {share}")

    async def commit(self, outgoing: Outgoing, next_offset: int, note: str) -> None:
        raise AssertionError(f"a restore commits nothing, {outgoing}, {next_offset}, {note}")

    async def dispose(self) -> None:
        """Nothing to close."""
