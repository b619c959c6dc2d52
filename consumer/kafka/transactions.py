"""Requests about transactions: to start a producer, to add to its transaction, and to end it.

The client's own producer does this too, but it sends a request again that was not answered, and the first one may still
arrive: it then adds to the next transaction of this producer, or ends it half-way (KIP-890). Here, each request is sent
once. One that is answered with "not now" is sent again. One that is not answered raises Unanswered, and then only a
newer epoch (`start`) makes sure that it does no harm any more.
"""

import asyncio
from collections.abc import Collection, Iterable
from typing import Any

from aiokafka.client import AIOKafkaClient, CoordinationType
from aiokafka.errors import (
    KafkaError,
    ProducerFenced,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    for_code,
)
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
)

from consumer.backoff import Backoff
from consumer.kafka import aiokafka_internals
from consumer.kafka.failures import FAILURES
from consumer.kafka.protocol import Identity

_UNKNOWN_TOPIC_OR_PARTITION = 3
_TIMED_OUT = 7
LOADING, _NOT_AVAILABLE, _NOT_COORDINATOR = 14, 15, 16
_TOPIC_FORBIDDEN = 29
_FENCED = frozenset({47, 90})
"""What a producer is told after another one was started with its transactional id: InvalidProducerEpoch, since
Kafka 2.7 also ProducerFenced, whose code the client does not know.
"""

_CONCURRENT = 51
_ID_FORBIDDEN = 53
_NOT_ATTEMPTED = 55
"""Nothing is wrong with this partition, but with another one of the same request."""

_MOVED = frozenset({_NOT_AVAILABLE, _NOT_COORDINATOR})
_NOT_NOW = _MOVED | {_UNKNOWN_TOPIC_OR_PARTITION, LOADING, _CONCURRENT, _NOT_ATTEMPTED}
NOT_NOW_FOR_OFFSETS = _MOVED | {_UNKNOWN_TOPIC_OR_PARTITION, _TIMED_OUT, LOADING}
_AGAIN_SECONDS = 0.002
"""The markers of a transaction are written within milliseconds of its end; until then the next one may not begin."""

_LONGEST_PAUSE_SECONDS = 0.05
_ANSWER_SECONDS = 3.0


class Unanswered(KafkaError):  # type: ignore[misc]  # aiokafka ships no types
    """A request was sent, and no answer came: it may have had its effect, or may have it later."""


class Transactions:
    """Asks the coordinators of transactional ids, over the connections of one client.

    What it raises is the client's: KafkaError (ProducerFenced where another producer has taken the id over), OSError or
    TimeoutError. It asks again until the caller gives up, so each call needs a deadline.
    """

    def __init__(self, client: AIOKafkaClient) -> None:
        self._client = client
        self._nodes: dict[str, int] = {}

    async def start(self, transactional_id: str, timeout_ms: int) -> Identity:
        """Start a producer: end what an earlier one with this id has left open, and refuse all that it still sends."""
        request = InitProducerIdRequest(transactional_id, timeout_ms)
        while True:
            try:
                response = await self._accepted(transactional_id, request)
            except Unanswered:
                await asyncio.sleep(_LONGEST_PAUSE_SECONDS)
                continue  # another start does no harm
            return Identity(transactional_id, response.producer_id, response.producer_epoch)

    async def add_partitions(self, producer: Identity, partitions: Iterable[tuple[str, int]]) -> None:
        """Have the end of the transaction reach these partitions, which is before the producer sends to them."""
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        await self._accepted(
            producer.transactional_id, AddPartitionsToTxnRequest(*producer, topics=list(by_topic.items()))
        )

    async def add_offsets(self, producer: Identity, group: str) -> None:
        """Have the end of the transaction reach the offsets of a group, which is before they are committed."""
        await self._accepted(producer.transactional_id, AddOffsetsToTxnRequest(*producer, group_id=group))

    async def end(self, producer: Identity, *, commit: bool) -> None:
        """End the transaction; Unanswered leaves open whether it has ended, and how."""
        await self._accepted(producer.transactional_id, EndTxnRequest(*producer, transaction_result=commit))

    async def _accepted(self, transactional_id: str, request: Any) -> Any:
        """Ask until the answer is final; raises what it says."""
        pauses = _pauses()
        while True:
            response = await self._ask(transactional_id, request)
            codes = _codes(response)
            final = [(topic, code) for topic, code in codes if code not in _NOT_NOW]
            if final:
                raise error_of(*final[0], transactional_id)
            if not codes:
                return response
            if any(code in _MOVED for _, code in codes):
                self._nodes.pop(transactional_id, None)
            await asyncio.sleep(pauses.next())

    async def _ask(self, transactional_id: str, request: Any) -> Any:
        connection = await self._connection(transactional_id)
        try:
            return await _answer(connection, request)
        except FAILURES as error:
            self._nodes.pop(transactional_id, None)
            raise Unanswered from error

    async def _connection(self, transactional_id: str) -> Any:
        """A connection to the coordinator; where it cannot be reached, another node may be it by now."""
        while True:
            node = await self._node(transactional_id)  # what it raises is final
            try:
                return await aiokafka_internals.node_link(self._client, node)
            except FAILURES:
                self._nodes.pop(transactional_id, None)
                await asyncio.sleep(_LONGEST_PAUSE_SECONDS)

    async def _node(self, transactional_id: str) -> int:
        pauses = _pauses()
        while transactional_id not in self._nodes:
            code, node = await self._found(transactional_id)
            if not code:
                self._nodes[transactional_id] = node
            elif code in _NOT_NOW:
                await asyncio.sleep(pauses.next())
            else:
                raise error_of("", code, transactional_id)
        return self._nodes[transactional_id]

    async def _found(self, transactional_id: str) -> tuple[int, int]:
        """What a broker says of who the coordinator is: an error code, and the node."""
        try:
            link = await aiokafka_internals.any_node_link(self._client)
            found = await _answer(link, FindCoordinatorRequest(transactional_id, CoordinationType.TRANSACTION))
        except FAILURES:
            return _NOT_AVAILABLE, -1
        return found.error_code, found.coordinator_id


def _pauses() -> Backoff:
    return Backoff(_AGAIN_SECONDS, _LONGEST_PAUSE_SECONDS)


async def _answer(connection: Any, request: Any) -> Any:
    """Send a request; without an answer, nothing else waits behind it: the next request gets a new connection."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return await connection.send(request)
    except FAILURES:
        connection.close()
        raise


def _codes(response: Any) -> Collection[tuple[str, int]]:
    """The error codes in an answer, each with its topic, if it has one."""
    errors = getattr(response, "errors", None)
    if errors is None:
        code: int = response.error_code
        return [("", code)] if code else []
    return [(topic, code) for topic, partitions in errors for _partition, code in partitions if code]


def error_of(topic: str, code: int, transactional_id: str) -> KafkaError:
    """The error that a broker has answered; the topic is named where it must be known."""
    if code in _FENCED:
        return ProducerFenced()
    if code == _TOPIC_FORBIDDEN and topic:
        return TopicAuthorizationFailedError(topic)
    if code == _ID_FORBIDDEN:
        return TransactionalIdAuthorizationFailed(transactional_id)
    error: KafkaError = for_code(code)()
    return error
