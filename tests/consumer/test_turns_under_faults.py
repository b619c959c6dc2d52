"""Turns on a cluster that loses, delays and repeats: whatever happens, each output becomes visible once.

The cluster here is a model of what Kafka promises: transactions with epochs, a group with generations, offsets that are
pending until their transaction ends. Requests get lost, or have their effect later, after the worker has gone on.
Partitions move between two workers, and one of them may be frozen meanwhile, and goes on as if it still owned them.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import pytest
from aiokafka.errors import InvalidTxnState, KafkaError, ProducerFenced

from consumer.errors import PartitionLost, Transient
from consumer.kafka import aiokafka_internals, open_transaction, own_producer
from consumer.kafka import turns as turns_module
from consumer.kafka.brokers_clock import BrokersClock
from consumer.kafka.connection import Connection
from consumer.kafka.group_offsets import Committed, OutOfGroup
from consumer.kafka.protocol import Identity, Member, MemberOffsetsRequest, TxnOffsetCommitRequest_v3
from consumer.kafka.transactions import Unanswered
from consumer.kafka.turns import Turns
from consumer.kafka.writer import Outgoing

T = TypeVar("T")

PARTITIONS, OUTPUTS = 4, 30
WITHIN_SECONDS = 60.0
TIMEOUT_SECONDS = 0.6
ILLEGAL_GENERATION = 22


@dataclass
class Transaction:
    """What is open with a transactional id."""

    epoch: int
    began: float
    outputs: list[tuple[int, int]] = field(default_factory=list)
    offsets: dict[int, Committed] = field(default_factory=dict)


class Kafka:
    """The brokers: what is visible, what is open, and who is in the group."""

    def __init__(self, random: Random, faults: float) -> None:
        self.random = random
        self.faults = faults
        self.epochs: dict[str, int] = {}
        self.open: dict[str, Transaction] = {}
        self.committed: dict[int, Committed] = {}
        self.visible: list[tuple[int, int]] = []
        self.generation = 0
        self.members: dict[str, frozenset[int]] = {}
        self.late: set[asyncio.Task[None]] = set()
        self.fates: Counter[str] = Counter()

    async def asked(self, effect: Callable[[], T]) -> T:
        """A request: it may get lost, or its answer, or it may arrive after all when nobody waits any more."""
        await asyncio.sleep(self.random.random() * 0.002)
        is_first = self.faults > 0 and not self.fates  # so that something goes wrong in every such run
        if self.random.random() >= self.faults and not is_first:
            return effect()
        fate = self.random.choice(["lost", "answer lost", "late"])
        self.fates[fate] += 1
        if fate == "answer lost":
            with contextlib.suppress(KafkaError):
                effect()
        if fate == "late":
            self.late.add(asyncio.create_task(self._later(effect)))
        raise Unanswered(fate)

    async def _later(self, effect: Callable[[], object]) -> None:
        await asyncio.sleep(self.random.random() * 0.1)
        with contextlib.suppress(KafkaError):
            effect()

    def ongoing(self, producer: Identity, *, begins: bool = False) -> Transaction:
        """The open transaction of a producer, unless a newer one has its id."""
        if producer.epoch != self.epochs.get(producer.transactional_id):
            raise ProducerFenced
        found = self.open.get(producer.transactional_id)
        if found is None and begins:
            found = self.open[producer.transactional_id] = Transaction(producer.epoch, now())
        if found is None:
            raise InvalidTxnState
        return found

    def end_what_takes_too_long(self) -> None:
        """What a transaction's timeout does."""
        for transactional_id, transaction in list(self.open.items()):
            if now() - transaction.began > 2 * TIMEOUT_SECONDS:
                self.epochs[transactional_id] += 1
                del self.open[transactional_id]


def now() -> float:
    return asyncio.get_running_loop().time()


class Worker:
    """One member: its view of the group, which is out of date while it is frozen, and its turns."""

    def __init__(self, kafka: Kafka, name: str) -> None:
        self.kafka = kafka
        self.name = name
        self.assigned_as: Member | None = None
        self.owned: frozenset[int] = frozenset()
        self.transactions = self
        self.lives: dict[int, asyncio.Task[None]] = {}
        self.turns = Turns(
            Connection("127.0.0.1:1", {}), cast("Any", self), BrokersClock(),
            topic="input", group="g", id_of=lambda partition: f"id-{partition}", timeout_seconds=TIMEOUT_SECONDS,
        )  # fmt: skip

    # --- as the coordinators of transactions

    async def start(self, transactional_id: str, _timeout_ms: int) -> Identity:
        await asyncio.sleep(self.kafka.random.random() * 0.002)
        self.kafka.open.pop(transactional_id, None)
        self.kafka.epochs[transactional_id] = self.kafka.epochs.get(transactional_id, -1) + 1
        return Identity(transactional_id, 7, self.kafka.epochs[transactional_id])

    async def add_partitions(self, producer: Identity, _partitions: Iterable[tuple[str, int]]) -> None:
        await self.kafka.asked(lambda: self.kafka.ongoing(producer, begins=True))

    async def add_offsets(self, producer: Identity, _group: str) -> None:
        await self.kafka.asked(lambda: self.kafka.ongoing(producer, begins=True))

    async def end(self, producer: Identity, *, commit: bool) -> None:
        def ended() -> None:
            transaction = self.kafka.ongoing(producer)
            del self.kafka.open[producer.transactional_id]
            if commit:
                self.kafka.visible.extend(transaction.outputs)
                self.kafka.committed.update(transaction.offsets)

        await self.kafka.asked(ended)

    async def produce(self, producer: Identity, outputs: Sequence[tuple[int, int]]) -> None:
        """Without a check that the partition was added: before KIP-890, brokers had none."""
        await self.kafka.asked(lambda: self.kafka.ongoing(producer, begins=True).outputs.extend(outputs))

    # --- as the group's coordinator, of which no outdated one exists here

    def _check(self, member: Member) -> None:
        if member.generation != self.kafka.generation or member.member_id not in self.kafka.members:
            raise OutOfGroup("another generation")

    async def link(self) -> Any:
        return SimpleNamespace(ask=self.ask, distrust=lambda: None)

    async def ask(self, request: MemberOffsetsRequest) -> Any:
        wire: Any = request.build(TxnOffsetCommitRequest_v3)
        [(_topic, partitions, _)] = wire.topics
        producer = Identity(wire.transactional_id, wire.producer_id, wire.producer_epoch)

        def committed() -> int:
            try:
                self._check(request.member)
            except OutOfGroup:
                return ILLEGAL_GENERATION
            offsets = {at: Committed(offset, note) for at, offset, _epoch, note, _tags in partitions}
            self.kafka.ongoing(producer, begins=True).offsets.update(offsets)
            return 0

        code = await self.kafka.asked(committed)
        answer = [{"partition": at, "error_code": code} for at, *_ in partitions]
        return SimpleNamespace(to_object=lambda: {"topics": [{"partitions": answer}]})

    def owns(self, partition: int) -> bool:
        return partition in self.owned

    async def confirm(self, _partition: int) -> None:
        await asyncio.sleep(0.001)
        if self.assigned_as is None:
            raise OutOfGroup("rebalancing")
        self._check(self.assigned_as)

    async def committed(self, partition: int) -> Committed | None:
        """A stable offset, with proof."""
        await self.confirm(partition)
        async with asyncio.timeout(WITHIN_SECONDS):
            while any(partition in each.offsets for each in self.kafka.open.values()):  # noqa: ASYNC110 - as a broker
                await asyncio.sleep(0.005)
        await self.confirm(partition)
        return self.kafka.committed.get(partition)

    # --- as the loops of partitions

    async def live(self, partition: int) -> None:
        """Take a partition up, serve it, and begin again after each failure."""
        while True:
            writer = self.turns.writer(partition)
            try:
                await self.confirm(partition)
                await writer.start()
                found = await self.committed(partition)
                await self._serve(partition, 0 if found is None else found.offset)
            except (PartitionLost, Transient):
                await writer.dispose()
                await asyncio.sleep(self.kafka.random.random() * 0.01)
            except asyncio.CancelledError:
                await writer.dispose()
                raise

    async def _serve(self, partition: int, position: int) -> None:
        writer = self.turns.writer(partition)
        writer._times_fenced = self.turns.own.times_fenced
        while True:
            await asyncio.sleep(self.kafka.random.random() * 0.004)
            taken = range(position, min(OUTPUTS, position + self.kafka.random.randint(1, 3)))
            if not taken:
                continue
            outgoing = writer.outgoing(0)
            for at in taken:
                outgoing.append("result", self.kafka.random.randrange(3), b"%d" % partition, b"%d" % at, [])
            await writer.commit(outgoing, taken.stop, f"{partition}@{taken.stop}")
            position = taken.stop

    async def revoked(self) -> None:
        """Finish what is in hand, for a while."""
        self.assigned_as = None
        await asyncio.sleep(self.kafka.random.random() * 0.03)

    def assigned(self, partitions: frozenset[int], *, unbroken: bool) -> None:
        for partition in list(self.lives):
            if not unbroken or partition not in partitions:
                self.lives.pop(partition).cancel()
        self.assigned_as, self.owned = Member(self.name, self.kafka.generation), partitions
        for partition in partitions - self.lives.keys():
            self.lives[partition] = asyncio.create_task(self.live(partition))


class Producer:
    """What a turn has of a producer."""

    identity: Identity

    async def start(self) -> None:
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def modelled(monkeypatch: pytest.MonkeyPatch) -> None:
    def set_identity(producer: Producer, producer_id: int, epoch: int) -> None:
        producer.identity = Identity(producer.identity.transactional_id, producer_id, epoch)

    def new_producer(_connection: Connection, *, transactional_id: str, **_: Any) -> Producer:
        made = Producer()
        made.identity = Identity(transactional_id, -1, -1)
        return made

    async def batches_of(outgoings: Sequence[Outgoing], **_: Any) -> Mapping[Any, Any]:
        joined: dict[Any, list[tuple[int, int]]] = {}
        for outgoing in outgoings:
            for place, records in outgoing.records.items():
                joined.setdefault(place, []).extend((int(each[1] or b""), int(each[2] or b"")) for each in records)
        return joined

    async def dispose(_producer: Producer) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(own_producer, "new_producer", new_producer)
    monkeypatch.setattr(own_producer, "dispose", dispose)
    monkeypatch.setattr(turns_module, "batches_of", batches_of)
    monkeypatch.setattr(aiokafka_internals, "set_identity", set_identity)
    monkeypatch.setattr(aiokafka_internals, "begin", lambda *_: None)
    monkeypatch.setattr(aiokafka_internals, "end", lambda *_: None)
    monkeypatch.setattr(open_transaction, "_AGAIN_SECONDS", 0.001)
    for name, seconds in {
        "_PAUSE_SECONDS": 0.002, "_PATIENCE_SECONDS": 0.2, "_SIT_OUT_SECONDS": 0.01,
        "_RETRY_SECONDS": 0.001, "_LONGEST_RETRY_SECONDS": 0.005,
    }.items():  # fmt: skip
        monkeypatch.setattr(turns_module, name, seconds)


@contextlib.asynccontextmanager
async def cluster(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Worker]]:
    workers = [Worker(kafka, name) for name in ("a", "b")]

    async def send_in_order(producer: Producer, _place: Any, outputs: Any, _acknowledged: Any) -> None:
        await workers[0].produce(producer.identity, outputs)

    monkeypatch.setattr(open_transaction, "send_in_order", send_in_order)
    try:
        yield workers
    finally:
        tasks = [task for worker in workers for task in worker.lives.values()] + list(kafka.late)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def rebalance(kafka: Kafka, workers: Sequence[Worker]) -> None:
    """Deal the partitions among the workers that take part; one that is frozen goes on with what it had."""
    before = dict(kafka.members)
    frozen = kafka.random.choice([None, None, *workers])
    taking_part = [worker for worker in workers if worker is not frozen]
    await asyncio.gather(*(worker.revoked() for worker in taking_part))
    kafka.generation += 1
    dealt = list(range(PARTITIONS))
    kafka.random.shuffle(dealt)
    kafka.members = {
        worker.name: frozenset(dealt[at :: len(taking_part)]) for at, worker in enumerate(taking_part)
    }  # fmt: skip
    for worker in taking_part:
        worker.assigned(kafka.members[worker.name], unbroken=worker.name in before)


@pytest.mark.parametrize("faults", [0.0, 0.02, 0.1], ids=["sound", "some faults", "many faults"])
@pytest.mark.parametrize("seed", range(6))
async def test_every_output_becomes_visible_once_and_its_offset_with_it(
    monkeypatch: pytest.MonkeyPatch, seed: int, faults: float
) -> None:
    kafka = Kafka(Random(f"{seed} {faults}"), faults)
    async with asyncio.timeout(WITHIN_SECONDS), cluster(kafka, monkeypatch) as workers:
        await rebalance(kafka, workers)
        while {at: kafka.committed.get(at, (0,))[0] for at in range(PARTITIONS)} != dict.fromkeys(
            range(PARTITIONS), OUTPUTS
        ):
            await asyncio.sleep(0.1 + kafka.random.random() * 0.2)
            kafka.end_what_takes_too_long()
            kafka.faults = faults if kafka.generation < 12 else 0.0
            if kafka.generation < 12:
                await rebalance(kafka, workers)
        await asyncio.gather(*kafka.late)
        kafka.end_what_takes_too_long()
    every = [(partition, at) for partition in range(PARTITIONS) for at in range(OUTPUTS)]
    assert sorted(kafka.visible) == every
    assert not faults or kafka.fates, "nothing went wrong: nothing was tried"
