"""The private names of aiokafka that SAFE touches, each against the real thing: a new release fails here, not at work.

Every message says what would break. Nothing here needs a broker.
"""

import ast
import asyncio
import inspect
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.producer.message_accumulator import MessageAccumulator
from aiokafka.producer.sender import Sender
from aiokafka.protocol.metadata import MetadataRequest_v5, MetadataResponse_v5
from aiokafka.structs import TopicPartition as StructTopicPartition

from consumer.kafka import internals
from consumer.kafka.internals import (
    dispose,
    generation_of,
    is_rebalancing,
    note_lost_connections,
    position_of,
    topics_metadata,
)

NOWHERE = "127.0.0.1:1"
WHERE = TopicPartition("input", 0)
WITHIN_SECONDS = 10.0


@pytest.fixture
async def consumer() -> AsyncIterator[Any]:
    """A consumer that has not been started, with the coordinator that start() would give it."""
    made: Any = AIOKafkaConsumer(bootstrap_servers=NOWHERE, group_id="g", enable_auto_commit=False)
    made._coordinator = GroupCoordinator(
        made._client,
        made._subscription,
        group_id="g",
        assignors=(RoundRobinPartitionAssignor,),
        enable_auto_commit=False,
    )
    yield made
    await made._coordinator.close()
    made._closed = True  # it never ran: there is nothing to stop


@pytest.fixture
async def producer() -> AsyncIterator[Any]:
    made: Any = AIOKafkaProducer(bootstrap_servers=NOWHERE)
    yield made
    made._closed = True


def private_names(path: Path) -> set[str]:
    """Private attributes that a module reads or writes on objects of others."""
    return {
        node.attr
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})
    }


GUARDED = {
    "_accumulator",
    "_batches",
    "_closed",
    "_coordination_task",
    "_coordinator",
    "_do_heartbeat",
    "_drain_waiter",
    "_message_accumulator",
    "_on_connection_closed",
    "_pending_batches",
    "_rejoin_needed_fut",
    "_send_request",
    "_sender",
    "_subscription",
    "_transaction_waiter",
    "_txn_manager",
}


def test_each_private_name_that_is_used_is_guarded_here() -> None:
    used = private_names(Path(inspect.getfile(internals)))
    assert used <= GUARDED, f"no test guards {sorted(used - GUARDED)}"


def test_private_names_are_touched_in_one_module_only() -> None:
    folder = Path(inspect.getfile(internals)).parent
    others = {path.name: private_names(path) for path in folder.glob("*.py") if path.name != "internals.py"}
    own = {"_revoked", "_assigned"}  # the subscription's listener calls the subscription's own
    assert not {name: names - own for name, names in others.items() if names - own}


# --- the consumer -----------------------------------------------------------------------------------------------------


async def test_the_coordinator_tells_its_generation(consumer: Any) -> None:
    assert generation_of(consumer) == -1, "before the first join a kept partition would look unbroken"
    consumer._coordinator.generation = 7
    assert generation_of(consumer) == 7


async def test_the_subscription_tells_that_it_is_about_to_change(consumer: Any) -> None:
    assert isinstance(consumer._subscription, SubscriptionState)
    assert isinstance(SubscriptionState.reassignment_in_progress, property), "owns() would trust an old assignment"
    consumer._subscription.subscribe({"input"})
    assert is_rebalancing(consumer) is True
    consumer._subscription.assign_from_subscribed([WHERE])
    assert is_rebalancing(consumer) is False
    consumer._subscription.begin_reassignment()
    assert is_rebalancing(consumer) is True


async def test_a_position_can_be_asked_without_waiting(consumer: Any) -> None:
    assert position_of(consumer, WHERE) is None, "there is no subscription yet"
    consumer._subscription.subscribe({"input"})
    assert position_of(consumer, WHERE) is None, "there is no assignment yet"
    consumer._subscription.assign_from_subscribed([WHERE])
    assert position_of(consumer, WHERE) is None, "a partition without a position has none"
    consumer._subscription.seek(WHERE, 17)
    assert position_of(consumer, WHERE) == 17, "restores end, and slices are committed, by this position"
    assert position_of(consumer, TopicPartition("input", 1)) is None
    assert TopicPartition is StructTopicPartition


async def test_heartbeats_pass_through_a_method_that_can_be_replaced(consumer: Any) -> None:
    coordinator = consumer._coordinator
    assert inspect.iscoroutinefunction(coordinator._do_heartbeat), "no partition would ever be surely ours"
    assert "_do_heartbeat()" in inspect.getsource(GroupCoordinator._heartbeat_routine), (
        "the routine no longer calls the method by its name: a replaced one is never called"
    )
    assert isinstance(coordinator._rejoin_needed_fut, asyncio.Future)


@pytest.mark.parametrize(
    ("answered", "rejoin", "noted"),
    [
        (True, False, True),
        (False, False, False),  # no answer
        (True, True, False),  # answered, but by a group that deals anew
    ],
)
async def test_only_an_answered_heartbeat_of_a_settled_group_counts_from_when_it_was_sent(
    consumer: Any, *, answered: bool, rejoin: bool, noted: bool
) -> None:
    coordinator = consumer._coordinator
    sent: list[float] = []

    async def beat() -> bool:
        sent.append(time.monotonic())
        await asyncio.sleep(0)
        return answered

    if coordinator._rejoin_needed_fut.done():
        coordinator._rejoin_needed_fut = asyncio.get_running_loop().create_future()
    if rejoin:
        coordinator._rejoin_needed_fut.set_result(None)
    coordinator._do_heartbeat = beat
    heard: list[float] = []
    internals.note_heartbeats(consumer, heard.append)
    assert await coordinator._do_heartbeat() is answered
    assert bool(heard) is noted
    assert all(moment <= sent[0] for moment in heard)


async def test_the_coordination_task_tells_that_it_has_died(consumer: Any) -> None:
    task = consumer._coordinator._coordination_task
    assert isinstance(task, asyncio.Task), "a member that never joins again would go unnoticed"
    assert internals.coordination_failed(consumer) is False
    task.cancel()
    await asyncio.wait({task})
    assert internals.coordination_failed(consumer) is True


# --- the producer -----------------------------------------------------------------------------------------------------


async def test_closed_connections_pass_through_a_method_that_can_be_replaced(producer: Any) -> None:
    assert list(inspect.signature(producer.client._on_connection_closed).parameters) == ["conn", "reason"]
    assert "on_close=self._on_connection_closed" in inspect.getsource(AIOKafkaClient), (
        "connections no longer report to this method: a commit in doubt would go unnoticed"
    )
    lost: list[str] = []
    closed: list[tuple[object, object]] = []
    producer.client._on_connection_closed = lambda conn, reason: closed.append((conn, reason))
    note_lost_connections(producer, lambda: lost.append("lost"))
    producer.client._on_connection_closed("connection", "reason")
    assert lost == ["lost"]
    assert closed == [("connection", "reason")], "the client must still hear of it"


async def test_a_producer_has_what_is_taken_apart_to_dispose_of_it(producer: Any) -> None:
    assert isinstance(producer._sender, Sender)
    assert producer._sender.sender_task is None, "before start() there is no task to cancel"
    assert isinstance(producer._message_accumulator, MessageAccumulator)
    assert not producer._message_accumulator._batches
    assert not producer._message_accumulator._pending_batches
    assert producer._closed is False
    assert "if self._closed" in inspect.getsource(AIOKafkaProducer.__del__), (
        "a disposed producer would warn when collected"
    )


async def test_a_producer_that_was_never_started_can_be_disposed_of_twice(producer: Any) -> None:
    async with asyncio.timeout(WITHIN_SECONDS):
        await dispose(producer)
        await dispose(producer)
    assert producer._closed is True


async def test_disposing_cancels_a_sender_that_swallows_cancellations_and_all_that_waits(producer: Any) -> None:
    swallowed: list[str] = []

    async def stubborn() -> None:
        while len(swallowed) < 2:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                swallowed.append("cancelled")
        await asyncio.Event().wait()

    builder = producer.create_batch()
    builder.append(timestamp=0, key=None, value=b"x", headers=[])
    waiting = await producer._message_accumulator.add_batch(builder, WHERE, 1.0)
    producer._sender._sender_task = task = asyncio.create_task(stubborn())
    assert producer._sender.sender_task is task, "the sender's task is found by another name"
    await asyncio.sleep(0)
    async with asyncio.timeout(WITHIN_SECONDS):
        await dispose(producer)
    assert task.cancelled()
    assert len(swallowed) == 2
    assert waiting.cancelled(), "whoever waits for an acknowledgement would wait for ever"


async def test_batches_refuse_a_second_record_that_is_too_large_and_count_what_they_hold(producer: Any) -> None:
    builder = producer.create_batch()
    assert builder.append(timestamp=0, key=None, value=b"x" * 10_000_000, headers=[]) is not None
    assert builder.append(timestamp=0, key=None, value=b"x" * 10_000, headers=[]) is None
    assert builder.record_count() == 1


def attributes(batch: Any) -> int:
    """The attributes of a batch as the broker reads them: behind offsets, length, epoch, magic and checksum."""
    assert batch.append(timestamp=0, key=None, value=b"x" * 100_000, headers=[]) is not None
    return int.from_bytes(bytes(batch._build())[21:23], "big")


CODEC, ZSTD, TRANSACTIONAL = 0x07, 0x04, 0x10


@pytest.mark.parametrize("transactional_id", [None, "g:input:0"])
async def test_a_compressed_batch_is_one_of_the_producers_own_but_for_the_codec(transactional_id: str | None) -> None:
    made: Any = AIOKafkaProducer(bootstrap_servers=NOWHERE, transactional_id=transactional_id)
    own, compressed = attributes(made.create_batch()), attributes(internals.compressed_batch(made, 1_000))
    made._closed = True
    assert compressed & CODEC == ZSTD, "large dead letters would be left out"
    assert own & CODEC == 0
    assert bool(compressed & TRANSACTIONAL) is bool(own & TRANSACTIONAL) is (transactional_id is not None), (
        "the broker would refuse the batch, or show it before its transaction ends"
    )


async def test_a_batch_and_a_transaction_have_the_futures_that_nobody_awaits_after_a_failure() -> None:
    made: Any = AIOKafkaProducer(bootstrap_servers=NOWHERE, transactional_id="t")
    manager = made._txn_manager
    manager.set_pid_and_epoch(1, 0)
    manager.begin_transaction()
    batch = made._message_accumulator._append_batch(made.create_batch(), WHERE)
    assert isinstance(batch.future, asyncio.Future)
    assert isinstance(batch._drain_waiter, asyncio.Future), "a fenced producer would flood the log"
    assert isinstance(manager._transaction_waiter, asyncio.Future), "a fenced producer would flood the log"
    await dispose(made)
    assert batch.future.cancelled()
    assert batch._drain_waiter.cancelled()
    assert manager._transaction_waiter.cancelled()


async def test_topics_can_be_asked_for_without_making_them() -> None:
    assert inspect.iscoroutinefunction(AIOKafkaAdminClient._send_request)
    asked: list[Any] = []

    class Admin:
        async def _send_request(self, request: Any) -> Any:
            asked.append(request.build(MetadataRequest_v5))
            return MetadataResponse_v5(throttle_time_ms=0, brokers=[], cluster_id="c", controller_id=1, topics=[])

    assert await topics_metadata(cast("Any", Admin()), ["input"]) == []
    assert asked[0].allow_auto_topic_creation is False, "asking for a missing topic would make it"
