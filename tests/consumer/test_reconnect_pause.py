"""A broker that is away is asked for a connection ever more rarely, and by one client at a time."""

import asyncio
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from aiokafka import client as client_module
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaConnectionError

from consumer.kafka.aiokafka_internals import manage_connections
from consumer.kafka.reconnect_pause import Reconnects
from tests.support.kafka_broker import free_port


class Place:
    """Somewhere to connect to, in a time of its own."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.is_up = False
        self.attempts: list[float] = []
        self.reconnects = Reconnects(lambda: self.now, self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.now += max(0.0, seconds)
        await asyncio.sleep(0)

    async def _connect(self) -> str | None:
        self.attempts.append(self.now)
        await asyncio.sleep(0)
        return "connected" if self.is_up else None

    async def attempt(self) -> str | None:
        return await self.reconnects.attempt("here", self._connect)


async def test_the_pauses_grow_to_seconds_and_have_jitter() -> None:
    place = Place()
    for _ in range(40):
        assert await place.attempt() is None
    pauses = [after - before for before, after in pairwise(place.attempts)]
    assert 0.02 <= pauses[0] <= 0.05
    assert all(1.0 <= pause <= 2.0 for pause in pauses[8:])
    assert len(set(pauses[8:])) > 20


async def test_a_place_that_can_be_reached_is_never_waited_for() -> None:
    place = Place()
    place.is_up = True
    assert [await place.attempt() for _ in range(3)] == ["connected"] * 3
    assert place.now == 1_000.0


async def test_after_a_success_the_pauses_begin_again() -> None:
    place = Place()
    for _ in range(10):
        await place.attempt()
    place.is_up = True
    assert await place.attempt() == "connected"
    place.is_up, before = False, place.now
    await place.attempt()
    await place.attempt()
    assert place.now - before <= 0.05


async def test_of_many_that_wait_one_makes_the_attempt() -> None:
    place = Place()
    await place.attempt()
    assert await asyncio.gather(*(place.attempt() for _ in range(50))) == [None] * 50
    assert len(place.attempts) == 2


async def test_all_that_wait_connect_once_one_has_succeeded() -> None:
    place = Place()
    await place.attempt()
    place.is_up = True
    assert await asyncio.gather(*(place.attempt() for _ in range(5))) == ["connected"] * 5


async def test_failures_that_began_together_count_as_one() -> None:
    place = Place()
    await asyncio.gather(*(place.attempt() for _ in range(50)))
    before = place.now
    await place.attempt()
    assert place.now - before <= 0.05


async def test_who_is_cancelled_while_waiting_keeps_nobody_from_connecting() -> None:
    place = Place()
    await place.attempt()
    waiting = [asyncio.ensure_future(place.attempt()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    place.is_up = True
    assert await asyncio.gather(*waiting[1:]) == ["connected"] * 2


@pytest.fixture
def paced() -> Iterator[None]:
    """The client as a worker patches it."""
    before = AIOKafkaClient._get_conn, AIOKafkaClient.bootstrap, client_module.create_conn
    manage_connections()
    yield
    AIOKafkaClient._get_conn, AIOKafkaClient.bootstrap, client_module.create_conn = before


@pytest.mark.usefixtures("paced")
async def test_clients_without_a_broker_share_their_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[float] = []

    async def refused(*_: object, **__: object) -> None:
        attempts.append(time.monotonic())
        raise ConnectionRefusedError

    monkeypatch.setattr("aiokafka.client.create_conn", refused)
    servers = f"127.0.0.1:{free_port()}"
    clients = [AIOKafkaClient(bootstrap_servers=servers) for _ in range(20)]
    for _ in range(4):
        answers = await asyncio.gather(*(client.bootstrap() for client in clients), return_exceptions=True)
        assert all(isinstance(answer, KafkaConnectionError) for answer in answers)
    assert len(attempts) == 1 + 4  # the very first, and one for each round
    for client in clients:
        await client.close()
