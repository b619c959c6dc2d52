"""Committing offsets for a group from outside.

The group's coordinator refuses `commit_without_members` while the group has members. `replace_fenced` goes through a
transaction with the transactional id of one partition: it fences the worker that owns the partition, which then asks
for the offset again. So no commit of that worker comes after it unseen.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from aiokafka import OffsetAndMetadata, TopicPartition
from aiokafka.errors import CommitFailedError
from typing_extensions import override

from consumer.errors import ConfigurationError, PartitionLost, SafeError, Transient, first_of
from consumer.kafka import transactional_ids
from consumer.kafka.brokers_clock import BrokersClock
from consumer.kafka.cluster import Cluster
from consumer.kafka.connection import Connection
from consumer.kafka.failures import answered, stopped
from consumer.kafka.group_offsets import Committed
from consumer.kafka.reader import client
from consumer.kafka.writer import TransactionalWriter

_TRANSACTION_SECONDS = 10.0
_TRIES = 10
_TRY_AGAIN_SECONDS = 0.2
_FENCED_AT_ONCE = 50


class Change(NamedTuple):
    """An offset of a group that is replaced, or gets another note."""

    topic: str
    partition: int
    before: Committed | None
    after: Committed

    @override
    def __str__(self) -> str:
        before = "none" if self.before is None else self.before.offset
        return f"{self.topic}/{self.partition}: {before} -> {self.after.offset}"


def _writer(connection: Connection, group: str, topic: str, partition: int) -> TransactionalWriter:
    return TransactionalWriter(
        connection, topic, partition, BrokersClock(),  # it writes no record
        transactional_id=transactional_ids.of_worker(group, topic, partition),
        consumer_group=group,
        transaction_timeout_seconds=_TRANSACTION_SECONDS,
    )  # fmt: skip


@asynccontextmanager
async def fenced(connection: Connection, group: str, topic: str, partition: int) -> AsyncIterator[TransactionalWriter]:
    """Take the right to commit for a partition from its owner, and end what it left open; raises Transient or Fatal."""
    writer = _writer(connection, group, topic, partition)
    try:
        await writer.start()
        yield writer
    finally:
        await writer.dispose()


async def replace_fenced(connection: Connection, cluster: Cluster, group: str, change: Change) -> None:
    """Replace the offset of one partition; workers may run meanwhile.

    The owner of a partition that waits takes it up again and again, and so fences us in turn: then we try again. Raises
    ConfigurationError if the offset is not as it was before, Transient or Fatal.
    """
    topic, partition, before, after = change
    for _ in range(_TRIES):
        async with fenced(connection, group, topic, partition) as writer:
            found = (await cluster.committed(group, topic, [partition])).get(partition)
            if found == after:
                return
            if found != before:
                raise ConfigurationError(
                    f"the offset of {topic}/{partition} has changed meanwhile: run the command again"
                )
            try:
                await writer.commit(writer.outgoing(0), after.offset, after.note)
            except PartitionLost:
                await asyncio.sleep(_TRY_AGAIN_SECONDS)
            else:
                return
    raise Transient(f"the offset of {topic}/{partition} cannot be committed: its owner fences every attempt")


async def fence_all(connection: Connection, group: str, topic: str, partitions: Iterable[int]) -> None:
    """Fence the former owners: one that was frozen could otherwise commit after us. Raises Transient or Fatal."""
    turns = asyncio.Semaphore(_FENCED_AT_ONCE)

    async def fence(partition: int) -> None:
        async with turns, fenced(connection, group, topic, partition):
            pass

    try:
        async with asyncio.TaskGroup() as fencing:
            for partition in partitions:
                fencing.create_task(fence(partition))
    except* SafeError as failures:
        raise first_of(failures) from None


async def commit_without_members(
    connection: Connection, group: str, topic: str, offsets: Mapping[int, Committed]
) -> None:
    """Commit for a group that has no members, all at once; raises ConfigurationError if it has some."""
    where = {TopicPartition(topic, partition): OffsetAndMetadata(*each) for partition, each in offsets.items()}
    about = f"group {group}"
    async with AsyncExitStack() as cleanup:
        consumer = client(connection, group_id=group)
        cleanup.push_async_callback(stopped, consumer, 2.0)
        await answered(consumer.start(), about)
        consumer.assign(list(where))
        try:
            await answered(consumer.commit(where), about)
        except Transient as error:
            if isinstance(error.__cause__, CommitFailedError):
                raise has_members(group) from error
            raise


def has_members(group: str) -> ConfigurationError:
    """The sentence for a group that still has some."""
    return ConfigurationError(
        f"group {group} has members, so its offsets cannot be changed: stop all of its workers, and wait until they "
        "have left it"
    )
