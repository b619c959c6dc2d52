"""A consumer whose stop is cut off, since its broker is frozen, leaves nothing behind in the process."""

import asyncio
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaConsumer

from consumer.kafka.failures import stopped
from tests.support.kafka_broker import KafkaBroker
from tests.support.outside import Outside

pytestmark = pytest.mark.broker

WITHIN_SECONDS = 20.0
PATIENCE_SECONDS = 0.5


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something in this process."""
    async with asyncio.timeout(WITHIN_SECONDS):
        while not condition():  # noqa: ASYNC110 - the client offers no event for it
            await asyncio.sleep(0.02)


async def test_no_task_and_no_connection_is_left(own_broker: Callable[..., KafkaBroker]) -> None:
    broker = own_broker()
    with Outside(broker.bootstrap_servers) as outside:
        outside.create_topic("input")
    before = asyncio.all_tasks()
    consumer = AIOKafkaConsumer("input", bootstrap_servers=broker.bootstrap_servers, group_id="g")
    await consumer.start()
    await until(lambda: bool(consumer.assignment()))
    assert asyncio.all_tasks() > before, "it has tasks of its own"
    broker.freeze()

    await stopped(consumer, PATIENCE_SECONDS)

    await until(lambda: asyncio.all_tasks() == before)
    assert not any(connection.connected() for connection in consumer._client._conns.values())
