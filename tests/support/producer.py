"""A producer that records what is asked of it, in order, and acknowledges a batch only when the test lets it."""

import asyncio

from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import RecordMetadata, TopicPartition


class RecordingProducer:
    """Stands where a writer has its AIOKafkaProducer.

    `steps` is what was asked, `acknowledge` lets batches be acknowledged (they are at once, unless it is cleared),
    `failures` are raised by the step of that name. `append_time` is what the topics' LogAppendTime gives each record.
    """

    _txn_manager = None

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.failures: dict[str, Exception] = {}
        self.acknowledge = asyncio.Event()
        self.acknowledge.set()
        self.pace = asyncio.Event()
        self.pace.set()
        self.next_offset = 70
        self.append_time: int | None = None
        self.written: list[tuple[str, int, int, bytes | None, bytes | None]] = []
        """Topic, partition, timestamp, key and value of each record."""

    def create_batch(self) -> BatchBuilder:
        return BatchBuilder(64 * 1024, 0, is_transactional=True)

    async def begin_transaction(self) -> None:
        await self._step("begin")

    async def send_batch(self, batch: BatchBuilder, topic: str, *, partition: int) -> "asyncio.Future[RecordMetadata]":
        for record in MemoryRecords(bytes(batch._builder.build())).next_batch():
            self.written.append((topic, partition, record.timestamp, record.key, record.value))
        await self._step(f"send {topic}/{partition} x{batch.record_count()}")
        return asyncio.ensure_future(self._acknowledged(topic, partition))

    async def _acknowledged(self, topic: str, partition: int) -> RecordMetadata:
        await self.acknowledge.wait()
        await self._step(f"acknowledged {topic}/{partition}")
        self.next_offset += 1
        where = TopicPartition(topic, partition)
        at, kind = (-1, 0) if self.append_time is None else (self.append_time, 1)
        return RecordMetadata(topic, partition, where, self.next_offset - 1, at, kind, 0)

    async def commit_transaction(self) -> None:
        await self._step("commit")

    async def abort_transaction(self) -> None:
        await self._step("abort")

    async def _step(self, name: str) -> None:
        self.steps.append(name)
        await self.pace.wait()
        failure = self.failures.get(name.split(maxsplit=1)[0])
        if failure is not None:
            raise failure
