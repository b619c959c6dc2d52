"""A request about a transaction is sent once; what is answered with "not now" is asked again, silence is told."""

import asyncio
from collections import deque
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.errors import (
    InvalidTxnState,
    KafkaConnectionError,
    KafkaError,
    ProducerFenced,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)
from aiokafka.protocol.coordination import FindCoordinatorRequest

from consumer.kafka import aiokafka_internals, transactions
from consumer.kafka.protocol import Identity, Member, MemberOffsetsRequest, TxnOffsetCommitRequest_v3, codes_of
from consumer.kafka.protocol import TxnOffsetCommitResponse_v3 as Response
from consumer.kafka.transactions import Transactions, Unanswered

ME = Identity("safe-v0:input:0", 7, 3)
WITHIN_SECONDS = 10.0


class Client:
    """Two brokers: the next of `answers` comes to each request, an exception is raised, None is silence."""

    def __init__(self) -> None:
        self.answers: deque[Any] = deque()
        self.asked: list[str] = []
        self.found: deque[Any] = deque()
        self.closed: list[int] = []
        self.dead: set[int] = set()
        self.coordinator = 2

    def get_random_node(self) -> int:
        return 1

    async def _get_conn(self, node: int, *, group: int) -> Any:
        assert group == aiokafka_internals._TRANSACTIONS_CONNECTION
        if node in self.dead:
            return None
        return SimpleNamespace(send=lambda request: self.send(node, request), close=lambda: self.closed.append(node))

    async def send(self, node: int, request: Any) -> Any:
        await asyncio.sleep(0)
        if isinstance(request, FindCoordinatorRequest):
            self.asked.append("find")
            return SimpleNamespace(
                error_code=self.found.popleft() if self.found else 0, coordinator_id=self.coordinator
            )
        self.asked.append(f"{type(request).__name__.removesuffix('Request')} {node}")
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            await asyncio.get_running_loop().create_future()
        return answer


def coded(code: int = 0) -> Any:
    return SimpleNamespace(error_code=code, producer_id=7, producer_epoch=4)


def partitions(*codes: int) -> Any:
    return SimpleNamespace(errors=[("scored", list(enumerate(codes)))])


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def asking(client: Client, monkeypatch: pytest.MonkeyPatch) -> Transactions:
    monkeypatch.setattr(transactions, "_AGAIN_SECONDS", 0.001)
    monkeypatch.setattr(transactions, "_ANSWER_SECONDS", 0.05)
    return Transactions(cast("Any", client))


async def test_a_coordinator_is_looked_for_once(client: Client, asking: Transactions) -> None:
    client.answers.extend([coded(), partitions(0, 0), coded(), coded()])
    assert await asking.start("safe-v0:input:0", 8_000) == Identity("safe-v0:input:0", 7, 4)
    await asking.add_partitions(ME, [("scored", 0), ("scored", 1)])
    await asking.add_offsets(ME, "safe-v0")
    await asking.end(ME, commit=True)
    assert client.asked == ["find", "InitProducerId 2", "AddPartitionsToTxn 2", "AddOffsetsToTxn 2", "EndTxn 2"]


@pytest.mark.parametrize("code", [14, 15, 16, 51])
async def test_what_is_answered_with_not_now_is_asked_again(client: Client, asking: Transactions, code: int) -> None:
    client.answers.extend([coded(code), coded(code), coded()])
    await asking.end(ME, commit=True)
    assert client.asked.count("EndTxn 2") == 3
    assert client.asked.count("find") == (3 if code in {15, 16} else 1)


async def test_partitions_are_added_only_if_each_of_them_is(client: Client, asking: Transactions) -> None:
    client.answers.extend([partitions(0, 51), partitions(3, 55), partitions(0, 0)])
    await asking.add_partitions(ME, [("scored", 0), ("scored", 1)])
    assert client.asked.count("AddPartitionsToTxn 2") == 3


@pytest.mark.parametrize("silence", [None, KafkaConnectionError("gone"), OSError("reset")])
async def test_what_is_not_answered_is_never_sent_again(client: Client, asking: Transactions, silence: Any) -> None:
    client.answers.append(silence)
    with pytest.raises(Unanswered):
        await asking.end(ME, commit=True)
    assert client.asked == ["find", "EndTxn 2"]
    assert client.closed == [2], "the next request would wait behind it"


async def test_but_a_start_is_since_another_one_does_no_harm(client: Client, asking: Transactions) -> None:
    client.answers.extend([None, KafkaConnectionError("gone"), coded()])
    assert (await asking.start("safe-v0:input:0", 8_000)).epoch == 4
    assert client.asked.count("InitProducerId 2") == 3


async def test_a_caller_that_gives_up_leaves_the_answers_to_others_alone(client: Client, asking: Transactions) -> None:
    client.answers.append(None)
    ending = asyncio.create_task(asking.end(ME, commit=True))
    await asyncio.sleep(0.01)
    ending.cancel()
    await asyncio.wait([ending])
    assert client.closed == []


async def test_where_a_coordinator_cannot_be_reached_another_is_looked_for(
    client: Client, asking: Transactions
) -> None:
    client.answers.extend([coded(), coded()])
    await asking.end(ME, commit=True)
    client.dead, client.coordinator = {2}, 3  # its broker is gone for good
    await asyncio.wait_for(asking.end(ME, commit=True), WITHIN_SECONDS)
    assert client.asked == ["find", "EndTxn 2", "find", "EndTxn 3"]


ERRORS: list[tuple[int, type[KafkaError]]] = [
    (47, ProducerFenced),
    (90, ProducerFenced),
    (48, InvalidTxnState),
    (53, TransactionalIdAuthorizationFailed),
]


@pytest.mark.parametrize(("code", "kind"), ERRORS)
async def test_what_is_refused_is_named(
    client: Client, asking: Transactions, code: int, kind: type[KafkaError]
) -> None:
    client.answers.append(coded(code))
    with pytest.raises(kind):
        await asking.end(ME, commit=True)


async def test_a_topic_that_may_not_be_written_is_named(client: Client, asking: Transactions) -> None:
    client.answers.append(partitions(29, 55))
    with pytest.raises(TopicAuthorizationFailedError, match="scored"):
        await asking.add_partitions(ME, [("scored", 0), ("scored", 1)])


async def test_a_coordinator_is_looked_for_until_it_is_known(client: Client, asking: Transactions) -> None:
    client.found.extend([15, 14])
    client.answers.append(coded())
    async with asyncio.timeout(WITHIN_SECONDS):
        await asking.end(ME, commit=False)
    assert client.asked.count("find") == 3


def test_a_commit_of_a_member_has_its_generation_and_each_answer_its_partition() -> None:
    request: Any = MemberOffsetsRequest(ME, "safe-v0", Member("me", 5), "input", {1: (42, "a note"), 0: (7, "")})
    wire = request.prepare({28: (0, 5)})
    decoded = TxnOffsetCommitRequest_v3.decode(wire.encode())
    no_tags: dict[int, bytes] = {}
    assert (decoded.transactional_id, decoded.producer_id, decoded.producer_epoch) == ME
    assert (decoded.consumer_group, decoded.generation, decoded.member_id) == ("safe-v0", 5, "me")
    assert decoded.topics == [("input", [(0, 7, -1, "", no_tags), (1, 42, -1, "a note", no_tags)], no_tags)]
    answer = Response(0, [("input", [(0, 0, no_tags), (1, 22, no_tags)], no_tags)], no_tags)
    assert codes_of(Response.decode(answer.encode())) == {0: 0, 1: 22}
