"""One transaction, step by step: what a failure leaves behind depends on how far it came."""

import asyncio
import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import GroupCoordinatorNotAvailableError, KafkaConnectionError, KafkaError, NodeNotReadyError
from aiokafka.structs import RecordMetadata

from consumer.errors import PartitionLost
from consumer.kafka import aiokafka_internals
from consumer.kafka.aiokafka_internals import Batch, CoordinatorLink
from consumer.kafka.brokers_clock import BrokersClock
from consumer.kafka.failures import FAILURES
from consumer.kafka.group_offsets import Committed
from consumer.kafka.protocol import Identity, Member, MemberOffsetsRequest, codes_of
from consumer.kafka.subscription import Subscription
from consumer.kafka.transactions import LOADING, NOT_NOW_FOR_OFFSETS, error_of
from consumer.kafka.writer import Place, noted_time, send_in_order

_ANSWER_SECONDS = 3.0
_AGAIN_SECONDS = 0.02


class StartedProducer(NamedTuple):
    """A producer, and as what its transaction coordinator knows it."""

    client: AIOKafkaProducer
    identity: Identity


class OpenTransaction:
    """A transaction from begin() to end(); a step that raises is the last one.

    The steps raise the client's errors, TimeoutError, and what else they name.
    """

    def __init__(self, subscription: Subscription, clock: BrokersClock) -> None:
        self._subscription = subscription
        self._transactions = subscription.transactions
        self._clock = clock
        self._producer: StartedProducer | None = None
        self._unanswered = 0
        self._unacknowledged: set[Place] = set()
        self.begins: dict[Place, int] = {}
        """The offset of the first record that was written to each place."""
        self.end_is_out = False
        self.late: frozenset[Place] = frozenset()
        """The places whose leaders were not waited for any longer."""
        self.refused: Place | None = None
        """The place whose leader does not accept what is written there."""

    @property
    def can_be_aborted(self) -> bool:
        """Whether all that was asked has been answered: else what comes late could join the next transaction."""
        return self._producer is not None and not self._unanswered and not self.end_is_out

    @property
    def _started(self) -> StartedProducer:
        assert self._producer is not None
        return self._producer

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """A request is out; if this ends with an error, it counts as unanswered."""
        self._unanswered += 1
        yield
        self._unanswered -= 1

    async def begin(self, producer: StartedProducer, places: Collection[Place]) -> None:
        """Announce where the producer is about to write."""
        self._producer = producer
        aiokafka_internals.begin(producer.client, places)
        if places:
            with self._asking():
                await self._transactions.add_partitions(producer.identity, places)

    async def send(self, batches: Mapping[Place, Sequence[Batch]], patience: float, group: str | None) -> None:
        """Send all batches, and meanwhile announce that offsets of the group follow; returns when all is acknowledged.

        Raises PartitionLost if a broker does not accept a batch, and TimeoutError once nothing has been acknowledged
        for `patience` seconds.
        """
        asked = [self._send(*each) for each in batches.items()]
        if group is not None:
            asked.append(self._add_offsets(group))
        tasks = [asyncio.create_task(each) for each in asked]
        pending = set(tasks)
        try:
            while pending:
                done, pending = await asyncio.wait(pending, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    self.late = frozenset(self._unacknowledged)
                    raise TimeoutError
                for task in done:
                    task.result()
        finally:
            for task in tasks:
                aiokafka_internals.forget(task)

    async def _send(self, place: Place, batches: Sequence[Batch]) -> None:
        def acknowledged(written: RecordMetadata) -> None:
            noted_time(self._clock, written)
            self.begins.setdefault(place, int(written.offset))

        self._unacknowledged.add(place)
        try:
            with self._asking():
                await send_in_order(self._started.client, place, batches, acknowledged)
        except PartitionLost:
            self.refused = place
            raise
        self._unacknowledged.discard(place)

    async def _add_offsets(self, group: str) -> None:
        with self._asking():
            await self._transactions.add_offsets(self._started.identity, group)

    async def commit_offsets(self, group: str, member: Member, topic: str, offsets: Mapping[int, Committed]) -> None:
        """Have these offsets committed with the transaction, as a member that the group still has."""
        identity = self._started.identity
        request = MemberOffsetsRequest(identity, group, member, topic, offsets)
        while True:
            codes = await self._asked(request)
            if codes.keys() != offsets.keys():
                raise KafkaError("the answer does not name every partition that was committed")
            wrong = {code for code in codes.values() if code}
            if not wrong:
                return
            final = wrong - NOT_NOW_FOR_OFFSETS
            if final:
                raise error_of(topic, final.pop(), identity.transactional_id)
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _asked(self, request: MemberOffsetsRequest) -> Mapping[int, int]:
        """Ask the group's coordinator, once it is known; the code of each partition."""
        link = await self._link()
        with self._asking():
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    codes = codes_of(await link.ask(request))
            except FAILURES:
                link.distrust()
                raise
        if (set(codes.values()) & NOT_NOW_FOR_OFFSETS) - {LOADING}:
            link.distrust()
        return codes

    async def _link(self) -> CoordinatorLink:
        while True:
            try:
                return await self._subscription.link()
            except (GroupCoordinatorNotAvailableError, NodeNotReadyError, KafkaConnectionError):
                await asyncio.sleep(_AGAIN_SECONDS)

    async def end(self, *, commit: bool) -> None:
        """Commit or abort; Unanswered leaves open whether it has ended, and how."""
        self.end_is_out = True
        with self._asking():
            await self._transactions.end(self._started.identity, commit=commit)
        aiokafka_internals.end(self._started.client)
