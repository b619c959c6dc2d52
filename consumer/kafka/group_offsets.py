"""What a group has committed, with proof that no outdated coordinator has answered.

Why an answer alone proves nothing: after a broker was killed, the next coordinator answers for up to a second from what
it had replicated, which may lag behind what the dead one had acknowledged. A broker that is cut off from the other
brokers but not from its clients, or that wakes from a long pause, believes that it is still the coordinator, and gives
outdated answers for as long as it is asked. A worker that continues from such an offset publishes everything after it
twice.

What proves it: a commit is acknowledged only once it is replicated, and only by the coordinator that the other brokers
follow; an outdated coordinator never gets that far. And a commit by a member that is no longer in the group is refused.
So the member first commits for a partition that its group never reads (the witness). Once that is acknowledged:

- the member was in the group, in this generation, after the question was asked: it may fence other writers;
- the node at the other end of this connection has applied every commit that was acknowledged before. What it answers
  next, on the same connection, is at least as new.

Before that, the former owner's transaction must have ended: starting its producer again (the fence) waits for that.
The end of a transaction may not have reached the offset yet: the node is asked for stable offsets, so that it says so
(see protocol.py).

This relies on `__consumer_offsets` being replicated to three brokers with `min.insync.replicas` 2 and without unclean
leader election: then no outdated broker can acknowledge anything alone.

The witness is committed as "no offset" (-1) and expires at once, so that it never shows up as lag.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from aiokafka import TopicPartition
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    GroupLoadInProgressError,
    IllegalGenerationError,
    KafkaError,
    RebalanceInProgressError,
    TopicAuthorizationFailedError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
    for_code,
)
from aiokafka.protocol.commit import OffsetCommitRequest

from consumer.errors import Transient
from consumer.kafka.aiokafka_internals import CoordinatorLink
from consumer.kafka.broker_errors import words_of
from consumer.kafka.failures import FAILURES, translated
from consumer.kafka.protocol import UNSTABLE_OFFSET_COMMIT, StableOffsetsRequest, UnstableOffset

_NO_OFFSET = -1
_EXPIRES_AT_ONCE_MS = 1
_ANSWER_SECONDS = 6.0
"""A broker gives up replicating a commit after 5 s (offsets.commit.timeout.ms), and then reports that."""

_WITHIN_SECONDS = 10.0
_AGAIN_SECONDS = 0.05


class Committed(NamedTuple):
    """An offset that a group has committed (the next one to read), and the note (its metadata) committed with it."""

    offset: int
    note: str = ""


class OutOfGroup(Transient):
    """The member is no longer in the group, or the group is about to rebalance: it has to join first."""


_OUT_OF_GROUP = (IllegalGenerationError, UnknownMemberIdError, RebalanceInProgressError)
_FORBIDDEN = (TopicAuthorizationFailedError, GroupAuthorizationFailedError)


class GroupOffsets:
    """Asks a group's coordinator for the committed offsets of one topic, with proof.

    `link` opens a connection to the node that the member takes for its coordinator. Callers that wait at the same time
    share a question, so that many partitions cost two questions at most.
    """

    def __init__(self, link: Callable[[], Any], group: str, topic: str, witness: TopicPartition) -> None:
        self.proven_at = float("-inf")
        self._link = link
        self._group = group
        self._topic = topic
        self._witness = witness
        self._answer: Mapping[int, Committed | None] = {}
        self._one_at_a_time = asyncio.Lock()

    async def of(self, partitions: Iterable[int]) -> Mapping[int, Committed | None]:
        """What is committed for these partitions, None for one without an offset; asked after this call began.

        Raises Transient if no coordinator proves itself in time, OutOfGroup if it refuses the member, or Fatal.
        """
        wanted = frozenset(partitions)
        called_at = time.monotonic()
        async with self._one_at_a_time:
            if self.proven_at <= called_at or not wanted <= self._answer.keys():
                await self._ask(wanted)
            return self._answer

    async def _ask(self, wanted: frozenset[int]) -> None:
        deadline = time.monotonic() + _WITHIN_SECONDS
        while True:
            asked_at = time.monotonic()
            try:
                self._answer = await self._proven_answer(wanted)
            except _FORBIDDEN as error:
                names_topic = isinstance(error, TopicAuthorizationFailedError) and error.args
                topic = error.args[0] if names_topic else self._topic
                raise translated(error, f"topic {topic}, group {self._group}") from error
            except FAILURES as error:
                if time.monotonic() > deadline:
                    raise Transient(
                        f"no coordinator of group {self._group} can prove that it knows the latest offsets "
                        f"({words_of(error)})"
                    ) from error
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                self.proven_at = asked_at
                return

    async def _proven_answer(self, wanted: frozenset[int]) -> Mapping[int, Committed | None]:
        link: CoordinatorLink = await self._link()
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self._prove(link)
                return await self._fetch(link, wanted)
        except _OUT_OF_GROUP as error:
            raise OutOfGroup(f"group {self._group} is rebalancing") from error
        except (GroupLoadInProgressError, UnstableOffset, *_FORBIDDEN):
            raise  # the node is the coordinator, or will never allow it
        except FAILURES:
            link.distrust()
            raise

    async def _prove(self, link: CoordinatorLink) -> None:
        """Commit for the witness; raises the KafkaError that the coordinator answers."""
        entry = (self._witness.partition, _NO_OFFSET, "")
        response = await link.ask(
            OffsetCommitRequest(
                self._group, link.generation, link.member_id, _EXPIRES_AT_ONCE_MS, [(self._witness.topic, [entry])]
            )
        )
        codes = [code for _topic, partitions in response.topics for _partition, code in partitions]
        if len(codes) != 1:
            raise UnknownTopicOrPartitionError("the answer does not name the partition that was committed")
        _raise_for(codes[0], self._witness.topic)

    async def _fetch(self, link: CoordinatorLink, wanted: frozenset[int]) -> Mapping[int, Committed | None]:
        """What this very node has; a partition that is not in its answer does not count as one without an offset."""
        response = await link.ask(StableOffsetsRequest(self._group, self._topic, sorted(wanted)))
        _raise_for(response.error_code, self._topic)
        answer: dict[int, Committed | None] = {}
        for topic in response.to_object()["topics"]:
            for found in topic["partitions"]:
                _raise_for(found["error_code"], self._topic)
                if topic["topic"] == self._topic:
                    offset, note = found["offset"], found["metadata"] or ""
                    answer[found["partition"]] = None if offset < 0 else Committed(offset, note)
        if not wanted <= answer.keys():
            raise UnknownTopicOrPartitionError("the answer does not have every partition")
        return answer


def _raise_for(code: int, topic: str) -> None:
    """Raise what a node has answered, with the topic that was asked about."""
    if code == UNSTABLE_OFFSET_COMMIT:
        raise UnstableOffset
    if code:
        error: KafkaError = for_code(code)(topic)
        raise error
