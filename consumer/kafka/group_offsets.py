"""What a group has committed, with proof that no outdated coordinator has answered.

Why an answer alone proves nothing: after a broker was killed, the next coordinator answers for up to a second from what
it had replicated, which may lag behind what the dead one had acknowledged. A broker that is cut off from the other
brokers but not from its clients, or that wakes from a long pause, believes that it is still the coordinator, and gives
outdated answers for as long as it is asked. A worker that continues from such an offset publishes everything after it
twice.

What proves it: a commit is acknowledged only once it is replicated, and only by the coordinator that the other brokers
follow; an outdated coordinator never gets that far. And a commit by a member that is no longer in the group is refused.
So the member first commits for a partition that its group never reads (the witness). In `exactly_once` it does so in a
transaction that it aborts: where a group has commits of both kinds, brokers before Kafka 4.0 log a warning at each of
them. Once the commit is acknowledged:

- the member was in the group, in this generation, after the question was asked: it may fence other writers;
- the node at the other end of this connection has applied every commit that was acknowledged before. What it answers
  next, on the same connection, is at least as new.

Before that, the former owner's transaction must have ended: starting its producer again (the fence) waits for that.
The end of a transaction may not have reached the offset yet: the node is asked for stable offsets, so that it says so
(see protocol.py).

This relies on `__consumer_offsets` being replicated to three brokers with `min.insync.replicas` 2 and without unclean
leader election: then no outdated broker can acknowledge anything alone.

The witness is committed as "no offset" (-1) and expires at once, so that it never shows up as lag.

Some brokers accept the transactional commit of a member without looking at its generation. So each new coordinator is
first given one of a generation that there cannot be, which it has to refuse.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from aiokafka import TopicPartition
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    GroupLoadInProgressError,
    IllegalGenerationError,
    KafkaError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    UnknownTopicOrPartitionError,
    for_code,
)
from aiokafka.protocol.commit import OffsetCommitRequest

from consumer.errors import Fatal, Transient
from consumer.kafka.aiokafka_internals import CoordinatorLink
from consumer.kafka.broker_errors import meaning_of, words_of
from consumer.kafka.failures import FAILURES, translated
from consumer.kafka.protocol import (
    UNSTABLE_OFFSET_COMMIT,
    Identity,
    Member,
    MemberOffsetsRequest,
    StableOffsetsRequest,
    UnstableOffset,
    codes_of,
)
from consumer.kafka.transactions import Transactions

_NO_MEMBER = frozenset({22, 25, 27})
"""IllegalGeneration, UnknownMemberId, RebalanceInProgress."""

_NO_OFFSET = -1
_TRANSACTION_MS = 10_000
_GENERATIONS_AHEAD = 1_000_000
_EXPIRES_AT_ONCE_MS = 1
_ANSWER_SECONDS = 6.0
"""A broker gives up replicating a commit after 5 s (offsets.commit.timeout.ms), and then reports that."""

_END_SECONDS = 2.0
_WITHIN_SECONDS = 10.0
_AGAIN_SECONDS = 0.05


class Committed(NamedTuple):
    """An offset that a group has committed (the next one to read), and the note (its metadata) committed with it."""

    offset: int
    note: str = ""


class OutOfGroup(Transient):
    """The member is no longer in the group, or the group is about to rebalance: it has to join first."""


_FORBIDDEN = (TopicAuthorizationFailedError, GroupAuthorizationFailedError, TransactionalIdAuthorizationFailed)


class Proof(Protocol):
    """What only the true coordinator can acknowledge, given over the connection on which offsets are asked next."""

    async def begin(self) -> None:
        """Prepare what does not concern the group's coordinator; raises KafkaError, OSError or TimeoutError."""

    async def give(self, link: CoordinatorLink) -> int:
        """Commit for the witness; returns the code that the coordinator answers."""

    async def end(self) -> None:
        """Leave nothing of it; raises nothing."""


class PlainProof:
    """A commit outside of a transaction, as those of `at_least_once` are."""

    def __init__(self, group: str, witness: TopicPartition) -> None:
        self._group = group
        self._witness = witness

    async def begin(self) -> None:
        """There is nothing to prepare."""

    async def give(self, link: CoordinatorLink) -> int:
        entry = (self._witness.partition, _NO_OFFSET, "")
        response = await link.ask(
            OffsetCommitRequest(
                self._group, link.generation, link.member_id, _EXPIRES_AT_ONCE_MS, [(self._witness.topic, [entry])]
            )
        )
        return _only([code for _topic, partitions in response.topics for _partition, code in partitions])

    async def end(self) -> None:
        """The entry expires by itself."""


class AbortedProof:
    """A commit in a transaction that is aborted, with a transactional id that no other process uses."""

    def __init__(self, transactions: Transactions, transactional_id: str, group: str, witness: TopicPartition) -> None:
        self._transactions = transactions
        self._id = transactional_id
        self._group = group
        self._witness = witness
        self._producer: Identity | None = None
        self._is_open = False
        self._is_unanswered = False
        """Whether a commit may still be on its way: after an abort it would open another transaction (KIP-890)."""
        self._checked: int | None = None

    async def begin(self) -> None:
        if self._producer is None or self._is_open:  # what an earlier one may have left open ends with a new start
            self._producer = None
            self._producer = await self._transactions.start(self._id, _TRANSACTION_MS)
        self._is_open = True
        self._is_unanswered = False
        await self._transactions.add_offsets(self._producer, self._group)

    async def give(self, link: CoordinatorLink) -> int:
        if link.node != self._checked:
            await self._check_that_generations_count(link)
            self._checked = link.node
        return await self._committed(link, link.generation)

    async def _committed(self, link: CoordinatorLink, generation: int) -> int:
        assert self._producer is not None
        member = Member(link.member_id, generation)
        offsets = {self._witness.partition: (_NO_OFFSET, "")}
        self._is_unanswered = True
        response = await link.ask(
            MemberOffsetsRequest(self._producer, self._group, member, self._witness.topic, offsets)
        )
        self._is_unanswered = False
        return _only(list(codes_of(response).values()))

    async def _check_that_generations_count(self, link: CoordinatorLink) -> None:
        code = await self._committed(link, link.generation + _GENERATIONS_AHEAD)
        if not code:
            raise Fatal(
                f"the brokers accept a transactional commit for group {self._group} of a generation that does not "
                "exist, so nothing would keep a worker that has lost its partitions from writing results twice: with "
                "these brokers, set SAFE_V0_DELIVERY=at_least_once"
            )
        if code != IllegalGenerationError.errno:
            _raise_for(code, self._group, self._witness.topic)

    async def end(self) -> None:
        if self._producer is None or not self._is_open or self._is_unanswered:
            return  # a new start ends what is open, and makes brokers refuse what comes late
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._transactions.end(self._producer, commit=False)
        except FAILURES:
            return  # a new start ends it, or its timeout
        self._is_open = False


def _only(codes: Sequence[int]) -> int:
    if len(codes) != 1:
        raise UnknownTopicOrPartitionError("the answer does not name the partition that was committed")
    return codes[0]


class GroupOffsets:
    """Asks a group's coordinator for the committed offsets of one topic, with proof.

    `link` opens a connection to the node that the member takes for its coordinator. Callers that wait at the same time
    share a question, so that many partitions cost two questions at most.
    """

    def __init__(self, link: Callable[[], Any], group: str, topic: str, witness: TopicPartition, proof: Proof) -> None:
        self.proven_at = float("-inf")
        self._link = link
        self._group = group
        self._topic = topic
        self._witness = witness
        self._proof = proof
        self._answer: Mapping[int, Committed | None] = {}
        self._one_at_a_time = asyncio.Lock()

    async def of(self, partitions: Iterable[int]) -> Mapping[int, Committed | None]:
        """What is committed for these partitions, None for one without an offset; asked after this call began.

        For no partitions it is only a proof, which does not wait for offsets that somebody has not committed yet.
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
                if meaning_of(error).is_permanent:
                    raise translated(error, f"topic {self._topic}, group {self._group}") from error
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
        async with asyncio.timeout(_ANSWER_SECONDS):
            await self._proof.begin()
        try:
            return await self._answer_behind_proof(await self._link(), wanted)
        finally:
            await self._proof.end()

    async def _answer_behind_proof(
        self, link: CoordinatorLink, wanted: frozenset[int]
    ) -> Mapping[int, Committed | None]:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                _raise_for(await self._proof.give(link), self._group, self._witness.topic)
                return await self._fetch(link, wanted)
        except (GroupLoadInProgressError, UnstableOffset, *_FORBIDDEN):
            raise  # the node is the coordinator, or will never allow it
        except FAILURES:
            link.distrust()
            raise

    async def _fetch(self, link: CoordinatorLink, wanted: frozenset[int]) -> Mapping[int, Committed | None]:
        """What this very node has; a partition that is not in its answer does not count as one without an offset."""
        if not wanted:
            return {}
        response = await link.ask(StableOffsetsRequest(self._group, self._topic, sorted(wanted)))
        _raise_for(response.error_code, self._group, self._topic)
        answer: dict[int, Committed | None] = {}
        for topic in response.to_object()["topics"]:
            for found in topic["partitions"]:
                _raise_for(found["error_code"], self._group, self._topic)
                if topic["topic"] == self._topic:
                    offset, note = found["offset"], found["metadata"] or ""
                    answer[found["partition"]] = None if offset < 0 else Committed(offset, note)
        if not wanted <= answer.keys():
            raise UnknownTopicOrPartitionError("the answer does not have every partition")
        return answer


def _raise_for(code: int, group: str, topic: str) -> None:
    """Raise what a node has answered; names the group and the topic that were asked about."""
    if code in _NO_MEMBER:
        raise OutOfGroup(f"group {group} is rebalancing")
    if code == UNSTABLE_OFFSET_COMMIT:
        raise UnstableOffset
    if code:
        error: KafkaError = for_code(code)(topic)
        raise error
