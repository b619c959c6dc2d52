"""The one transactional producer of a role: with which partition's id it writes, and which ids we have ended.

Each partition has a transactional id. To start an id ends what is open with it, waits until that has ended, and makes
brokers refuse what its former producer still sends. So it is done

- for each partition that we gain, once in a generation: its former owner may have left a transaction open;
- after a failed transaction, for the id that it had, unless it was aborted with every answer in hand: a late request
  could join the next transaction, or leave one that hangs (KIP-890);
- before we write with an id. A start that nobody has written with counts; it is used only once, since the sequence
  numbers of a producer begin only once.

An id is started only for a partition that is ours, as the member that the group has just confirmed: else it would end
what its rightful owner writes.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import NamedTuple

from consumer.errors import Transient
from consumer.kafka import aiokafka_internals
from consumer.kafka.aiokafka_internals import dispose
from consumer.kafka.connection import Connection
from consumer.kafka.failures import FAILURES
from consumer.kafka.group_offsets import OutOfGroup
from consumer.kafka.open_transaction import StartedProducer
from consumer.kafka.protocol import Identity, Member
from consumer.kafka.subscription import Subscription
from consumer.kafka.writer import new_producer

_ABORT_SECONDS = 1.0


class _Start(NamedTuple):
    """The latest start of an id, and as which member we made it."""

    identity: Identity
    member: Member


class OwnProducer:
    """The producer of a role and the ids of its partitions, from joining the group until it has to join again."""

    def __init__(
        self,
        connection: Connection,
        subscription: Subscription,
        *,
        id_of: Callable[[int], str],
        timeout_seconds: float,
    ) -> None:
        self._connection = connection
        self._subscription = subscription
        self._transactions = subscription.transactions
        self._id_of = id_of
        self._timeout_ms = int(timeout_seconds * 1_000)
        self._starts: dict[int, _Start] = {}
        self._unused: set[int] = set()
        """The partitions with whose latest start nobody has written."""
        self._writing: StartedProducer | None = None
        self._writes_for = -1
        """The partition whose id the producer has."""
        self._open: int | None = None
        """The partition with whose id a transaction may be open, or a request on its way."""
        self._ending = asyncio.Lock()
        self.gained: set[int] = set()
        """The partitions that we write for."""
        self.in_use = asyncio.Lock()
        """Held by who writes with the producer."""
        self.times_fenced = 0
        """How often others have taken our ids: a writer that began before must ask again what is committed."""

    def identity_of(self, partition: int) -> Identity | None:
        """How the transaction coordinator knows the latest producer that we have started with the partition's id."""
        known = self._starts.get(partition)
        return None if known is None else known.identity

    async def gain(self, partition: int) -> None:
        """End what a former owner may have left open with the partition's id; raises Transient or a KafkaError."""
        member = self._subscription.assigned_as
        if member is None:
            raise Transient("the consumer group is rebalancing")
        if self._writing is not None and self._writes_for == partition:
            async with self.in_use:  # given up a moment ago: others may write with its id to the end of a turn
                await self.retire()
        await self.end_open(member)
        if partition not in self._unused or self._starts[partition].member != member:
            await self._start(partition, member)
        self.gained.add(partition)

    async def started(self, member: Member) -> StartedProducer:
        """The producer, with the id of a partition that we own; raises Transient or a KafkaError."""
        if self._writes_for not in self.gained:
            await self.retire()
        if self._writing is not None:
            return self._writing
        await self.end_open(member)
        partition = min((each for each in self.gained if self._subscription.owns(each)), default=None)
        if partition is None:
            raise OutOfGroup("the consumer group is rebalancing")
        if partition not in self._unused:
            await self._confirmed_start(partition, member)
        self._unused.discard(partition)
        identity = self._starts[partition].identity
        client = new_producer(
            self._connection, transactional_id=identity.transactional_id, transaction_timeout_ms=self._timeout_ms
        )
        self._writing, self._writes_for = StartedProducer(client, identity), partition
        aiokafka_internals.set_identity(client, identity.producer_id, identity.epoch)
        await client.start()
        return self._writing

    async def give_up(self, *, abort: bool) -> None:
        """Never use this producer again; `abort` ends its transaction, else the next start of its id does."""
        writing, self._writing = self._writing, None
        if writing is None:
            return
        self._open = self._writes_for
        try:
            if abort:
                with contextlib.suppress(*FAILURES):
                    async with asyncio.timeout(_ABORT_SECONDS):
                        await self._transactions.end(writing.identity, commit=False)
                        self._open = None
        finally:
            await asyncio.shield(asyncio.create_task(dispose(writing.client)))

    async def end_open(self, member: Member) -> None:
        """End what one of our own failed turns may have left open; if its id is not ours any more, its owner does."""
        async with self._ending:
            partition = self._open
            if partition is None:
                return
            if self._subscription.assigned_as != member:  # nobody knows yet whose it will be
                raise OutOfGroup("the consumer group is rebalancing")
            if self._subscription.owns(partition):
                await self._confirmed_start(partition, member)
            self._open = None

    async def retire(self) -> None:
        """Close a producer that has nothing open."""
        writing, self._writing = self._writing, None
        if writing is not None:
            await asyncio.shield(asyncio.create_task(dispose(writing.client)))

    def note_fence(self) -> None:
        """Another has taken an id of ours, and perhaps all of them."""
        self.times_fenced += 1
        self._unused.clear()

    async def _confirmed_start(self, partition: int, member: Member) -> None:
        await self._subscription.confirm(partition)
        if self._subscription.assigned_as != member:
            raise OutOfGroup("the consumer group is rebalancing")
        await self._start(partition, member)

    async def _start(self, partition: int, member: Member) -> None:
        identity = await self._transactions.start(self._id_of(partition), self._timeout_ms)
        known = self._starts.get(partition)
        # In an earlier generation, another owner has started it rightfully.
        if known and known.member == member and identity.tells_of_another_since(known.identity):
            self.note_fence()
        self._starts[partition] = _Start(identity, member)
        self._unused.add(partition)
