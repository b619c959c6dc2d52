"""Committing offsets for a group from outside.

The group's coordinator refuses `commit_without_members` while the group has members. `replace_fenced` goes through a
transaction. Before it, it starts a producer with the transactional id of every partition of the topic, and so fences
all workers, which then ask for their offsets again: so no commit of the partition's owner comes after it unseen.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import NamedTuple

from aiokafka import OffsetAndMetadata, TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import CommitFailedError
from typing_extensions import override

from consumer.errors import ConfigurationError, Fatal, SafeError, Transient, first_of
from consumer.kafka import transactional_ids
from consumer.kafka.aiokafka_internals import group_link
from consumer.kafka.cluster import Cluster
from consumer.kafka.connection import Connection
from consumer.kafka.failures import FAILURES, answered, closed, stopped, translated
from consumer.kafka.group_offsets import Committed
from consumer.kafka.protocol import NOBODY, Identity, MemberOffsetsRequest, codes_of
from consumer.kafka.reader import client
from consumer.kafka.transactions import Transactions, error_of

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


class Fence:
    """Ends what the owners of a topic's partitions write, and commits in their place.

    An owner writes with the id of any partition that it owns, so the ids of all partitions are taken from them.
    """

    def __init__(self, client: AIOKafkaClient, group: str, topic: str) -> None:
        self._transactions = Transactions(client)
        self._link = partial(group_link, client, group)
        self._group = group
        self._topic = topic

    async def take(self, partitions: Iterable[int]) -> Mapping[int, Identity]:
        """End what is open with the ids of these partitions; raises Transient or Fatal."""
        turns = asyncio.Semaphore(_FENCED_AT_ONCE)

        async def fenced(partition: int) -> Identity:
            transactional_id = transactional_ids.of_worker(self._group, self._topic, partition)
            async with turns:
                starting = self._transactions.start(transactional_id, int(_TRANSACTION_SECONDS * 1_000))
                return await answered(starting, f"the producer for {self._topic}")

        tasks = {}
        try:
            async with asyncio.TaskGroup() as fencing:
                tasks = {partition: fencing.create_task(fenced(partition)) for partition in partitions}
        except* SafeError as failures:
            raise first_of(failures) from None
        return {partition: task.result() for partition, task in tasks.items()}

    async def commit(self, producer: Identity, partition: int, after: Committed) -> None:
        """Commit one offset in a transaction of its own; raises what the client raises."""
        async with asyncio.timeout(_TRANSACTION_SECONDS):
            await self._transactions.add_offsets(producer, self._group)
            link = await self._link()
            codes = codes_of(
                await link.send(MemberOffsetsRequest(producer, self._group, NOBODY, self._topic, {partition: after}))
            )
            wrong = [code for code in codes.values() if code]
            if wrong:
                raise error_of(self._topic, wrong[0], producer.transactional_id)
            await self._transactions.end(producer, commit=True)


@asynccontextmanager
async def _fence(connection: Connection, group: str, topic: str) -> AsyncIterator[Fence]:
    client = AIOKafkaClient(**connection.client())
    try:
        await answered(client.bootstrap(), "the brokers")
        yield Fence(client, group, topic)
    finally:
        await closed(client.close(), 2.0)


async def replace_fenced(
    connection: Connection, cluster: Cluster, group: str, change: Change, partitions: Collection[int]
) -> None:
    """Replace the offset of one of a topic's `partitions`, which are all of them; workers may run meanwhile.

    The owner of a partition that waits takes it up again and again, and so fences us in turn: then we try again. Raises
    ConfigurationError if the offset is not as it was before, Transient or Fatal.
    """
    topic, partition, before, after = change
    async with _fence(connection, group, topic) as fence:
        for _ in range(_TRIES):
            producers = await fence.take(partitions)
            found = (await cluster.committed(group, topic, [partition])).get(partition)
            if found == after:
                return
            if found != before:
                raise ConfigurationError(
                    f"the offset of {topic}/{partition} has changed meanwhile: run the command again"
                )
            try:
                await fence.commit(producers[partition], partition, after)
            except FAILURES as error:
                meaning = translated(error, f"topic {topic}, group {group}")
                if isinstance(meaning, Fatal):
                    raise meaning from error
                await asyncio.sleep(_TRY_AGAIN_SECONDS)
            else:
                return
    raise Transient(f"the offset of {topic}/{partition} cannot be committed: its owner fences every attempt")


async def fence_all(connection: Connection, group: str, topic: str, partitions: Iterable[int]) -> None:
    """Fence the former owners: one that was frozen could otherwise commit after us. Raises Transient or Fatal."""
    async with _fence(connection, group, topic) as fence:
        await fence.take(partitions)


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
