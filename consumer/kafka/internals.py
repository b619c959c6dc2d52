"""Every private name of aiokafka that SAFE touches, in one place; test_aiokafka_internals.py guards each."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.record.default_records import DefaultRecordBatch


def generation_of(consumer: AIOKafkaConsumer) -> int:
    """Generation of the consumer group that the member last joined; -1 before the first and after an eviction."""
    coordinator: Any = consumer._coordinator
    return int(coordinator.generation)


def is_rebalancing(consumer: AIOKafkaConsumer) -> bool:
    """Whether the assignment that the consumer shows is about to be replaced."""
    return bool(consumer._subscription.reassignment_in_progress)


def position_of(consumer: AIOKafkaConsumer, partition: TopicPartition) -> int | None:
    """The next offset that the consumer will deliver: unlike `position()` without waiting."""
    subscription: Any = consumer._subscription.subscription
    if subscription is None or subscription.assignment is None:
        return None
    state = subscription.assignment.state_value(partition)
    return int(state.position) if state is not None and state.has_valid_position else None


def note_heartbeats(consumer: AIOKafkaConsumer, note: Callable[[float], None]) -> None:
    """Call `note` after each answered heartbeat with the monotonic time at which it was *sent*.

    The time of the answer would not do: a process that was frozen finds an old answer in its socket when it wakes.
    """
    coordinator: Any = consumer._coordinator
    beat: Callable[[], Awaitable[bool]] = coordinator._do_heartbeat

    async def noted_beat() -> bool:
        sent_at = time.monotonic()
        answered = await beat()
        if answered and not coordinator._rejoin_needed_fut.done():
            note(sent_at)
        return answered

    coordinator._do_heartbeat = noted_beat


async def topics_metadata(admin: AIOKafkaAdminClient, topics: Sequence[str]) -> list[Any]:
    """What the cluster knows of some topics; unlike `describe_topics()` without creating those that are missing."""
    response = await admin._send_request(MetadataRequest(list(topics), allow_auto_topic_creation=False))
    described: list[Any] = response.to_object()["topics"]
    return described


def coordination_failed(consumer: AIOKafkaConsumer) -> bool:
    """Whether the consumer's coordination task has died: it never joins again."""
    coordinator: Any = consumer._coordinator
    return bool(coordinator._coordination_task.done())


def note_lost_connections(producer: AIOKafkaProducer, note: Callable[[], None]) -> None:
    """Call `note` whenever one of the producer's connections is closed, by whomever."""
    client: Any = producer.client
    closed = client._on_connection_closed

    def noted(connection: Any, reason: Any) -> None:
        note()
        closed(connection, reason)

    client._on_connection_closed = noted


def compressed_batch(producer: AIOKafkaProducer, batch_bytes: int) -> BatchBuilder:
    """A batch like those of `producer.create_batch()`, compressed with zstd whatever the producer's own setting."""
    manager: Any = producer._txn_manager
    transactional = manager is not None and manager.transactional_id is not None
    return BatchBuilder(batch_bytes, DefaultRecordBatch.CODEC_ZSTD, is_transactional=transactional)


async def dispose(producer: AIOKafkaProducer) -> None:
    """Close a producer without flushing: `stop()` waits for ever for a batch that cannot be delivered.

    The sender is cancelled until it is done: while a request is in its hands it may swallow a cancellation.
    """
    sender: Any = producer._sender
    task: asyncio.Task[None] | None = sender.sender_task
    while task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=0.05)
    if task is not None and not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not log it a second time
    accumulator: Any = producer._message_accumulator
    waiting = [batch for batches in accumulator._batches.values() for batch in batches]
    for batch in [*waiting, *accumulator._pending_batches]:
        for future in (batch.future, batch._drain_waiter):
            _forget(future)
    if producer._txn_manager is not None and producer._txn_manager._transaction_waiter is not None:
        _forget(producer._txn_manager._transaction_waiter)
    producer._closed = True
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(producer.client.close(), timeout=1.0)


def _forget(future: "asyncio.Future[Any]") -> None:
    """Nobody will await it any more: cancel it, or take note of its exception so that asyncio does not log it."""
    if not future.done():
        future.cancel()
    elif not future.cancelled():
        future.exception()
