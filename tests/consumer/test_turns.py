"""A turn: all slices that wait in one transaction, as the member that took their records; and what a failure costs.

Each of these has cost somebody data: a broker test would see it only in a bad moment, so here it is seen every time.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    KafkaError,
    MessageSizeTooLargeError,
    ProducerFenced,
    TopicAuthorizationFailedError,
)
from structlog.testing import capture_logs
from typing_extensions import override

from consumer.errors import Fatal, PartitionLost, SafeError, Transient
from consumer.kafka import aiokafka_internals, open_transaction, own_producer
from consumer.kafka import turns as turns_module
from consumer.kafka.brokers_clock import BrokersClock
from consumer.kafka.connection import Connection
from consumer.kafka.group_offsets import Committed
from consumer.kafka.protocol import Identity, Member, MemberOffsetsRequest, TxnOffsetCommitRequest_v3
from consumer.kafka.transactions import Unanswered
from consumer.kafka.turns import Turns, TurnWriter
from consumer.kafka.writer import Outgoing
from tests.support.producer import RecordingProducer

WITHIN_SECONDS = 10.0
THEIRS = 1_795_291_200_000
OURS = THEIRS - 10 * 86_400_000
HEADERS = [("safe.group", b"safe-v0")]
FIRST, SECOND = Member("me", 5), Member("me", 6)
NOT_COORDINATOR, UNKNOWN_TOPIC = 16, 3


class Cluster:
    """Coordinators, a group and producers: `steps` is what they were asked, in order."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.failures: dict[str, deque[Exception]] = {}
        self.gates: dict[str, asyncio.Event] = {}
        self.epochs: dict[str, int] = {}
        self.codes: deque[dict[int, int]] = deque()  # answers to commits of offsets; else all are accepted
        self.committed: dict[int, Committed | None] = {}
        self.owned = {0, 1, 2}
        self.assigned_as: Member | None = FIRST
        self.producers: list[Producer] = []

    async def step(self, name: str) -> None:
        self.steps.append(name)
        kind = name.split(maxsplit=1)[0]
        if kind in self.gates:
            await self.gates[kind].wait()
        await asyncio.sleep(0)
        if self.failures.get(kind):
            raise self.failures[kind].popleft()

    # --- as the coordinators of transactions

    async def start(self, transactional_id: str, _timeout_ms: int) -> Identity:
        await self.step(f"start {transactional_id}")
        self.epochs[transactional_id] = self.epochs.get(transactional_id, -1) + 1
        return Identity(transactional_id, 7, self.epochs[transactional_id])

    async def add_partitions(self, producer: Identity, partitions: Iterable[tuple[str, int]]) -> None:
        await self.step(f"partitions {named(partitions)} as {producer.transactional_id} {producer.epoch}")

    async def add_offsets(self, _producer: Identity, group: str) -> None:
        await self.step(f"offsets of {group}")

    async def end(self, producer: Identity, *, commit: bool) -> None:
        await self.step(f"{'commit' if commit else 'abort'} {producer.transactional_id} {producer.epoch}")

    # --- as the member's subscription

    @property
    def transactions(self) -> "Cluster":
        return self

    def owns(self, partition: int) -> bool:
        return partition in self.owned

    async def confirm(self, partition: int) -> None:
        await self.step(f"confirm {partition}")

    async def link(self) -> Any:
        return SimpleNamespace(ask=self.ask, distrust=lambda: self.steps.append("distrust"))

    async def ask(self, request: MemberOffsetsRequest) -> Any:
        wire: Any = request.build(TxnOffsetCommitRequest_v3)
        [(topic, partitions, _)] = wire.topics
        offsets = {at: (offset, note) for at, offset, _epoch, note, _tags in partitions}
        await self.step(f"txn-offsets {topic} {offsets} generation {wire.generation} of {wire.member_id}")
        codes = self.codes.popleft() if self.codes else dict.fromkeys(offsets, 0)
        answer = [{"partition": at, "error_code": code} for at, code in codes.items()]
        return SimpleNamespace(to_object=lambda: {"topics": [{"partitions": answer}]})

    async def committed_of(self, partition: int) -> Committed | None:
        await self.step(f"ask {partition}")
        return self.committed.get(partition)

    @property
    def kinds(self) -> list[str]:
        return [step.split(maxsplit=1)[0] for step in self.steps]


class Producer(RecordingProducer):
    """One producer of the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.cluster = cluster
        self.steps = cluster.steps

    async def start(self) -> None:
        await self.cluster.step("connect")

    @override
    async def _step(self, name: str) -> None:
        await super()._step(name)
        if self.cluster.failures.get(name):
            raise self.cluster.failures[name].popleft()


def named(places: Iterable[tuple[str, int]]) -> str:
    return ",".join(f"{topic}/{partition}" for topic, partition in sorted(places))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()

    def new_producer(_connection: Connection, **_options: Any) -> Producer:
        made.producers.append(Producer(made))
        return made.producers[-1]

    async def dispose(_producer: Any) -> None:
        made.steps.append("dispose")

    monkeypatch.setattr(own_producer, "new_producer", new_producer)
    monkeypatch.setattr(own_producer, "dispose", dispose)
    monkeypatch.setattr(aiokafka_internals, "set_identity", lambda *_: None)
    monkeypatch.setattr(aiokafka_internals, "begin", lambda *_: None)
    monkeypatch.setattr(aiokafka_internals, "end", lambda *_: None)
    monkeypatch.setattr(turns_module, "_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(turns_module, "_SIT_OUT_SECONDS", 0.05)
    monkeypatch.setattr(turns_module, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(open_transaction, "_AGAIN_SECONDS", 0.001)
    monkeypatch.setattr(turns_module, "_RETRY_SECONDS", 0.001)
    monkeypatch.setattr(turns_module, "_LONGEST_RETRY_SECONDS", 0.002)
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> BrokersClock:
    async def read_marker_time(_: Any, topic: str, partition: int, after: int) -> int:
        assert (topic, partition, after) == ("state", 1, 70)
        return THEIRS

    monkeypatch.setattr(turns_module, "read_marker_time", read_marker_time)
    return BrokersClock(own_ms=lambda: OURS)


@pytest.fixture
def turns(cluster: Cluster, clock: BrokersClock) -> Turns:
    subscription = cast("Any", cluster)
    subscription_like = _Subscription(subscription)
    return Turns(
        Connection("127.0.0.1:1", {}), cast("Any", subscription_like), clock,
        topic="input", group="safe-v0", id_of=lambda partition: f"id-{partition}", timeout_seconds=2.0,
    )  # fmt: skip


class _Subscription:
    """What a subscription offers, from the cluster: there, `committed` is what is committed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, "committed_of" if name == "committed" else name)


async def gained(turns: Turns, *partitions: int) -> list[TurnWriter]:
    writers = [turns.writer(partition) for partition in partitions]
    for writer in writers:
        await writer.start()
    return writers


def filled(writer: TurnWriter, *places: tuple[str, int]) -> Any:
    outgoing = writer.outgoing(0)
    for topic, partition in places or [("result", 1)]:
        outgoing.append(topic, partition, b"key", b"value", HEADERS)
    return outgoing


def committing(writer: TurnWriter, offset: int, *places: tuple[str, int], note: str = "") -> "asyncio.Task[None]":
    return asyncio.create_task(writer.commit(filled(writer, *places), offset, note))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_SECONDS):
        while not condition():  # noqa: ASYNC110 - the turns offer no event for it
            await asyncio.sleep(0.001)


async def all_of(tasks: Collection["asyncio.Task[None]"]) -> list[BaseException | None]:
    async with asyncio.timeout(WITHIN_SECONDS):
        return await asyncio.gather(*tasks, return_exceptions=True)


# --- a turn -----------------------------------------------------------------------------------------------------------


async def test_every_send_is_acknowledged_before_the_offsets_and_those_before_the_end(
    cluster: Cluster, turns: Turns
) -> None:
    [writer] = await gained(turns, 0)
    await writer.commit(filled(writer), 1, "")
    cluster.producers[0].acknowledge.clear()
    del cluster.steps[:]
    commit = committing(writer, 42, ("state", 1), ("result", 1), ("report", 2), ("result", 1), note="transactions=7")
    sends = ["send report/2 x1", "send result/1 x2", "send state/1 x1"]
    await until(lambda: len(cluster.steps) > 1 + len(sends))
    for _ in range(20):
        await asyncio.sleep(0)
    assert cluster.steps[0] == "partitions report/2,result/1,state/1 as id-0 0"
    assert sorted(cluster.steps[1:]) == ["offsets of safe-v0", *sends], "nothing may follow what is not acknowledged"
    cluster.producers[0].acknowledge.set()
    await commit
    acknowledged = [f"acknowledged {place}" for place in ("report/2", "result/1", "state/1")]
    assert sorted(cluster.steps[5:8]) == acknowledged
    assert cluster.steps[8:] == [
        "txn-offsets input {0: (42, 'transactions=7')} generation 5 of me",
        "commit id-0 0",
    ]


async def test_all_slices_that_wait_are_one_transaction_with_one_id_and_one_commit(
    cluster: Cluster, turns: Turns
) -> None:
    writers = await gained(turns, 2, 1, 0)
    assert await all_of([committing(writer, 10 + at) for at, writer in enumerate(writers)]) == [None] * 3
    assert cluster.kinds.count("commit") == cluster.kinds.count("connect") == 1
    assert "txn-offsets input {0: (12, ''), 1: (11, ''), 2: (10, '')} generation 5 of me" in cluster.steps
    assert "send result/1 x3" in cluster.steps, "what they write to one partition is one batch"
    assert cluster.steps[-1] == "commit id-0 0"


async def test_the_offsets_are_committed_in_the_generation_in_which_the_records_were_taken(
    cluster: Cluster, turns: Turns
) -> None:
    """A member that has joined the next one would be believed for any partition, whoever owns it."""
    [writer] = await gained(turns, 0)
    outgoing = filled(writer)
    cluster.assigned_as = SECOND
    await writer.commit(outgoing, 1, "")
    assert "generation 5 of me" in next(step for step in cluster.steps if step.startswith("txn-offsets"))


async def test_a_turn_is_near_a_moment_before_the_pace_lets_it_begin(
    turns: Turns, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns_module, "_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(turns_module, "_PAUSE_A_RECORD_SECONDS", 0.1)
    monkeypatch.setattr(turns_module, "_LEAD_SECONDS", 0.05)
    loop, (writer, other) = asyncio.get_running_loop(), await gained(turns, 0, 1)
    await asyncio.wait_for(writer.near(), 0.05)  # nothing was written: at once
    cluster.gates["commit"] = asyncio.Event()
    task = committing(writer, 5, ("result", 0), ("result", 1), ("result", 2))
    await until(lambda: "commit" in cluster.kinds)
    began = loop.time()
    cluster.gates["commit"].set()
    await task
    await other.near()
    assert loop.time() - began > 0.1, "the pace of a turn counts from its begin, and while it is under way"
    await committing(other, 7)
    assert cluster.kinds.count("commit") == 2


async def test_slices_of_two_generations_are_never_in_one_turn(cluster: Cluster, turns: Turns) -> None:
    one, other = await gained(turns, 0, 1)
    before = filled(one)
    cluster.assigned_as = SECOND
    commits = [asyncio.create_task(one.commit(before, 1, "")), committing(other, 2)]
    assert await all_of(commits) == [None, None]
    offsets = [step for step in cluster.steps if step.startswith("txn-offsets")]
    assert offsets == [
        "txn-offsets input {0: (1, '')} generation 5 of me",
        "txn-offsets input {1: (2, '')} generation 6 of me",
    ]


async def test_a_partition_that_comes_back_in_the_next_generation_goes_on_with_the_same_producer(
    cluster: Cluster, turns: Turns
) -> None:
    [writer] = await gained(turns, 0)
    await writer.commit(filled(writer), 1, "")
    cluster.assigned_as = None  # the group rebalances
    cluster.assigned_as = SECOND
    await writer.commit(filled(writer), 2, "")
    assert (cluster.kinds.count("start"), cluster.kinds.count("connect"), cluster.kinds.count("dispose")) == (1, 1, 0)
    assert "txn-offsets input {0: (2, '')} generation 6 of me" in cluster.steps


async def test_a_slice_in_hand_while_the_group_rebalances_ends_as_the_member_that_took_it(
    cluster: Cluster, turns: Turns
) -> None:
    """The revocation waits for it, and the group accepts it until all members have joined again."""
    [writer] = await gained(turns, 0)
    await writer.commit(filled(writer), 1, "")
    outgoing = filled(writer)
    cluster.assigned_as, cluster.owned = None, set()
    await writer.commit(outgoing, 2, "")
    assert "txn-offsets input {0: (2, '')} generation 5 of me" in cluster.steps
    assert cluster.kinds.count("start") == 1


async def test_while_partitions_may_be_assigned_to_others_no_slice_begins(cluster: Cluster, turns: Turns) -> None:
    [writer] = await gained(turns, 0)
    cluster.assigned_as = None
    with pytest.raises(PartitionLost, match="the producer is gone"):
        writer.outgoing(0)


# --- who writes as whom -----------------------------------------------------------------------------------------------


async def test_the_id_of_each_partition_is_ended_when_it_is_taken_up_and_once_in_a_generation(
    cluster: Cluster, turns: Turns
) -> None:
    writers = await gained(turns, 0, 1, 2)
    assert sorted(cluster.steps) == ["start id-0", "start id-1", "start id-2"]
    await writers[2].dispose()
    await gained(turns, 2)
    assert cluster.steps.count("start id-2") == 1
    cluster.assigned_as = SECOND  # in which another may have owned it
    await writers[2].dispose()
    await gained(turns, 2)
    assert cluster.steps.count("start id-2") == 2


async def test_if_the_partition_goes_whose_id_it_has_the_next_turn_has_that_of_another(
    cluster: Cluster, turns: Turns
) -> None:
    one, other = await gained(turns, 0, 1)
    await other.commit(filled(other), 1, "")
    await one.dispose()
    cluster.owned = {1}
    await other.commit(filled(other), 2, "")
    ends = [step for step in cluster.steps if step.startswith("commit")]
    assert ends == ["commit id-0 0", "commit id-1 0"]
    assert cluster.kinds.count("dispose") == 1


async def test_no_id_is_started_of_a_partition_that_is_not_ours(cluster: Cluster, turns: Turns) -> None:
    [writer] = await gained(turns, 0)
    cluster.owned = set()
    with pytest.raises(PartitionLost):
        await writer.commit(filled(writer), 1, "")
    assert cluster.kinds == ["start"]


async def test_with_the_last_partition_the_producer_goes(cluster: Cluster, turns: Turns) -> None:
    [writer] = await gained(turns, 0)
    await writer.commit(filled(writer), 1, "")
    await writer.dispose()
    await writer.dispose()
    assert cluster.kinds.count("dispose") == 1


async def test_an_id_that_another_writes_with_is_not_ended_under_it(cluster: Cluster, turns: Turns) -> None:
    one, other = await gained(turns, 0, 1)
    await other.commit(filled(other), 1, "")
    cluster.gates["txn-offsets"] = asyncio.Event()
    commit = committing(other, 2)
    await until(lambda: cluster.kinds.count("txn-offsets") == 2)
    await one.dispose()
    again = asyncio.create_task(one.start())
    for _ in range(20):
        await asyncio.sleep(0)
    assert cluster.steps.count("start id-0") == 1
    cluster.gates["txn-offsets"].set()
    assert await all_of([commit, again]) == [None, None]
    assert cluster.steps[-2:] == ["dispose", "start id-0"]


# --- what a failure costs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [22, 25, 27, 82])
async def test_a_turn_that_the_group_refuses_is_aborted_at_once_and_all_of_it_is_lost(
    cluster: Cluster, turns: Turns, code: int
) -> None:
    writers = await gained(turns, 0, 1)
    cluster.codes.append({0: 0, 1: code})
    failures = await all_of([committing(writer, 5) for writer in writers])
    assert [type(each) for each in failures] == [PartitionLost, PartitionLost]
    assert cluster.steps[-2:] == ["abort id-0 0", "dispose"]
    assert "commit" not in cluster.kinds


async def test_an_answer_that_leaves_a_partition_out_commits_nothing(cluster: Cluster, turns: Turns) -> None:
    writers = await gained(turns, 0, 1)
    cluster.codes.append({0: 0})
    failures = await all_of([committing(writer, 5) for writer in writers])
    assert [type(each) for each in failures] == [PartitionLost, PartitionLost]
    assert "commit" not in cluster.kinds


async def test_a_coordinator_that_has_moved_is_asked_again(cluster: Cluster, turns: Turns) -> None:
    [writer] = await gained(turns, 0)
    cluster.codes.extend([{0: NOT_COORDINATOR}, {0: UNKNOWN_TOPIC}])
    await writer.commit(filled(writer), 5, "")
    assert (cluster.kinds.count("txn-offsets"), cluster.kinds.count("distrust")) == (3, 2)


@pytest.mark.parametrize("step", ["partitions", "send", "acknowledged", "offsets", "txn-offsets"])
async def test_what_was_not_answered_is_ended_by_a_new_epoch_and_then_sent_again_as_it_is(
    cluster: Cluster, turns: Turns, step: str
) -> None:
    """An abort alone would let a late request join the next transaction of the same epoch."""
    [writer] = await gained(turns, 0)
    await writer.commit(filled(writer), 1, "")
    del cluster.steps[:]
    cluster.failures[step] = deque([Unanswered("no answer")])
    cluster.producers[0].failures = {step: Unanswered("no answer")} if step in {"send", "acknowledged"} else {}
    await writer.commit(filled(writer), 5, "note")
    failed = cluster.steps.index("dispose")
    assert "abort" not in cluster.kinds
    assert "commit" not in cluster.kinds[:failed]
    assert cluster.steps[failed + 1 : failed + 5] == [
        "confirm 0", "start id-0", "connect", "partitions result/1 as id-0 1",
    ]  # fmt: skip
    assert "txn-offsets input {0: (5, 'note')} generation 5 of me" in cluster.steps
    assert cluster.steps[-1] == "commit id-0 1"
    assert cluster.steps.count("send result/1 x1") >= 1


async def test_a_leader_that_does_not_acknowledge_holds_up_only_those_that_write_to_it(
    cluster: Cluster, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await gained(turns, 0, 1)
    silent = asyncio.Event()
    acknowledged = Producer._acknowledged

    async def held(self: Producer, topic: str, partition: int) -> Any:
        if topic == "dead":
            await silent.wait()
        return await acknowledged(self, topic, partition)

    monkeypatch.setattr(Producer, "_acknowledged", held)
    commits = [committing(one, 5, ("dead", 3)), committing(other, 6)]
    await until(commits[1].done)
    assert commits[1].exception() is None
    assert not commits[0].done()
    offsets = [step for step in cluster.steps if step.startswith("txn-offsets")]
    assert offsets == ["txn-offsets input {1: (6, '')} generation 5 of me"]
    assert await all_of([committing(other, 7)]) == [None], "nor does it hold up the next"
    silent.set()
    assert await all_of([commits[0]]) == [None]
    assert cluster.steps[-2].startswith("txn-offsets input {0: (5, '')}")


async def test_but_not_for_ever(cluster: Cluster, turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    [writer] = await gained(turns, 0)

    async def never(*_: Any) -> Any:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(Producer, "_acknowledged", never)
    monkeypatch.setattr(turns, "_timeout_seconds", 0.4)
    with pytest.raises(PartitionLost) as lost:
        await writer.commit(filled(writer, ("dead", 3)), 5, "")
    assert lost.value.timed_out
    assert "commit" not in cluster.kinds


REFUSALS: list[tuple[Exception, type[SafeError]]] = [
    (KafkaError("refused"), PartitionLost),
    (MessageSizeTooLargeError(), PartitionLost),
    (AssertionError("misuse"), PartitionLost),
    (TopicAuthorizationFailedError("result"), Fatal),
]


@pytest.mark.parametrize(("failure", "kind"), REFUSALS)
async def test_a_turn_of_which_a_broker_refuses_something_is_lost(
    cluster: Cluster, turns: Turns, failure: Exception, kind: type[SafeError]
) -> None:
    [writer] = await gained(turns, 0)
    cluster.failures["partitions"] = deque([failure])
    with pytest.raises(kind) as refused:
        await writer.commit(filled(writer), 5, "")
    assert "commit" not in cluster.kinds
    assert kind is PartitionLost or str(refused.value).startswith("topic result: not authorised")


async def test_a_batch_that_is_too_large_costs_those_alone_that_write_there(cluster: Cluster, turns: Turns) -> None:
    one, other = await gained(turns, 0, 1)
    cluster.failures["acknowledged big/0"] = deque([MessageSizeTooLargeError()])
    commits = [committing(one, 5, ("big", 0)), committing(other, 6)]
    failures = await all_of(commits)
    assert [type(each) for each in failures] == [PartitionLost, type(None)]
    assert cluster.steps[-1] == "commit id-0 1"


async def test_once_another_has_taken_our_id_all_partitions_begin_again(cluster: Cluster, turns: Turns) -> None:
    """It may have committed for any of them: `safe offsets accept` does."""
    one, other = await gained(turns, 0, 1)
    cluster.failures["partitions"] = deque([ProducerFenced()])
    with pytest.raises(PartitionLost) as lost:
        await one.commit(filled(one), 5, "")
    assert lost.value.fenced
    with pytest.raises(PartitionLost, match="another producer has taken over"):
        await other.commit(filled(other), 6, "")
    for writer in (one, other):
        await writer.dispose()
    await gained(turns, 0, 1)
    assert cluster.steps.count("start id-1") == 2


# --- whether it was committed -----------------------------------------------------------------------------------------


async def doubtful(cluster: Cluster, turns: Turns, found: Committed | None) -> list[BaseException | None]:
    """Commit 4, then a turn to 5 whose end is not answered; the group then says `found`."""
    [writer] = await gained(turns, 0)
    await writer.commit(filled(writer), 4, "four")
    del cluster.steps[:]
    cluster.failures["commit"] = deque([Unanswered("no answer")])
    cluster.committed[0] = found
    return await all_of([committing(writer, 5, note="five")])


async def test_a_doubtful_end_is_followed_by_a_new_epoch_and_then_by_the_question(
    cluster: Cluster, turns: Turns
) -> None:
    assert await doubtful(cluster, turns, Committed(5, "five")) == [None]
    assert cluster.kinds.count("commit") == 1, "it is committed: it must not be sent again"
    assert cluster.steps[-4:] == ["dispose", "confirm 0", "start id-0", "ask 0"]


async def test_one_that_was_not_committed_is_sent_again(cluster: Cluster, turns: Turns) -> None:
    assert await doubtful(cluster, turns, Committed(4, "four")) == [None]
    assert cluster.kinds.count("commit") == 2
    assert cluster.steps[-1] == "commit id-0 1"


@pytest.mark.parametrize("found", [None, Committed(5, "other"), Committed(4, ""), Committed(9, "")])
async def test_anything_else_is_lost(cluster: Cluster, turns: Turns, found: Committed | None) -> None:
    [failure] = await doubtful(cluster, turns, found)
    assert isinstance(failure, PartitionLost)
    assert cluster.kinds.count("commit") == 1


async def test_a_zombie_in_doubt_fences_nobody(cluster: Cluster, turns: Turns) -> None:
    cluster.failures["confirm"] = deque([Transient("no proof")] * 9)
    [failure] = await doubtful(cluster, turns, Committed(5, "five"))
    assert isinstance(failure, PartitionLost)
    assert "start" not in cluster.kinds


async def test_a_partition_that_leaves_in_the_middle_of_a_turn_takes_it_along(cluster: Cluster, turns: Turns) -> None:
    one, other = await gained(turns, 0, 1)
    cluster.gates["txn-offsets"] = asyncio.Event()
    commits = [committing(one, 5), committing(other, 6)]
    await until(lambda: "txn-offsets" in cluster.kinds)
    commits[0].cancel()
    leaving = asyncio.create_task(one.dispose())
    await asyncio.sleep(0)
    cluster.gates["txn-offsets"].set()
    await leaving
    [_, failure] = await all_of(commits)
    assert isinstance(failure, PartitionLost)
    assert "commit" not in cluster.kinds
    assert "abort" not in cluster.kinds, "an answer is still out"


# --- marks ------------------------------------------------------------------------------------------------------------


async def test_a_mark_is_acknowledged_and_never_committed(cluster: Cluster, turns: Turns) -> None:
    [writer] = await gained(turns, 0)
    assert await writer.mark("state", 1, b"mark", HEADERS) == 70
    assert cluster.steps[2:] == [
        "partitions state/1 as id-0 0", "send state/1 x1", "acknowledged state/1", "abort id-0 0",
    ]  # fmt: skip


async def test_marks_that_wait_share_a_transaction(cluster: Cluster, turns: Turns, clock: BrokersClock) -> None:
    clock.note(THEIRS)
    writers = await gained(turns, 0, 1, 2)
    marks = await asyncio.gather(*(writer.mark("state", at, b"m", HEADERS) for at, writer in enumerate(writers)))
    assert sorted(marks) == [70, 71, 72]
    assert cluster.kinds.count("abort") == 1


async def test_a_leader_that_acknowledges_no_mark_holds_up_no_other(
    turns: Turns, clock: BrokersClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.note(THEIRS)
    one, other = await gained(turns, 0, 1)
    acknowledged, well = Producer._acknowledged, asyncio.Event()

    async def held(self: Producer, topic: str, partition: int) -> Any:
        if topic == "dead":
            await well.wait()
        return await acknowledged(self, topic, partition)

    monkeypatch.setattr(Producer, "_acknowledged", held)
    dead = asyncio.create_task(one.mark("dead", 0, b"m", HEADERS))
    async with asyncio.timeout(WITHIN_SECONDS):
        assert await other.mark("sound", 0, b"m", HEADERS) > 0
        assert await other.mark("sound", 0, b"m", HEADERS) > 0
        assert not dead.done()
        well.set()
        assert await dead > 0
    assert not turns._sit_outs._places


async def test_a_mark_whose_leader_stays_silent_gives_its_partition_up(
    cluster: Cluster, turns: Turns, clock: BrokersClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.note(THEIRS)
    [writer] = await gained(turns, 0)

    async def never(*_: Any) -> Any:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(Producer, "_acknowledged", never)
    monkeypatch.setattr(turns, "_timeout_seconds", 0.4)
    with pytest.raises(PartitionLost, match="the leader of dead/3 does not acknowledge"):
        await writer.mark("dead", 3, b"m", HEADERS)
    assert cluster.kinds.count("partitions") > 1, "it was tried again"


async def test_a_mark_in_doubt_is_written_again_in_a_newer_epoch(
    cluster: Cluster, turns: Turns, clock: BrokersClock
) -> None:
    clock.note(THEIRS)
    [writer] = await gained(turns, 0)
    cluster.failures["abort"] = deque([Unanswered("no answer")])
    assert await writer.mark("state", 1, b"mark", HEADERS) == 70
    assert [len(each.written) for each in cluster.producers] == [1, 1]
    assert [step for step in cluster.steps if step.startswith(("abort", "confirm", "start", "ask"))] == [
        "start id-0", "abort id-0 0", "confirm 0", "start id-0", "abort id-0 1",
    ]  # fmt: skip


async def test_marks_and_slices_are_never_in_one_turn(cluster: Cluster, turns: Turns, clock: BrokersClock) -> None:
    """A mark must not be seen, and an aborted slice would be lost."""
    clock.note(THEIRS)
    one, other = await gained(turns, 0, 1)
    mark = asyncio.create_task(one.mark("state", 1, b"mark", HEADERS))
    commit = committing(other, 6)
    async with asyncio.timeout(WITHIN_SECONDS):
        await asyncio.gather(mark, commit)
    assert [step for step in cluster.steps if step.startswith(("partitions", "abort", "commit"))] == [
        "partitions state/1 as id-0 0", "abort id-0 0", "partitions result/1 as id-0 0", "commit id-0 0",
    ]  # fmt: skip


async def test_a_mark_is_no_reason_to_give_a_turn_up(cluster: Cluster, turns: Turns, clock: BrokersClock) -> None:
    """Nothing is committed for the partition that leaves: the marks of the others need not begin again."""
    clock.note(THEIRS)
    one, other = await gained(turns, 0, 1)
    cluster.gates["abort"] = asyncio.Event()
    marks = [asyncio.create_task(each.mark("state", at, b"m", HEADERS)) for at, each in enumerate((one, other))]
    await until(lambda: "abort" in cluster.kinds)
    marks[0].cancel()
    await one.dispose()
    cluster.gates["abort"].set()
    async with asyncio.timeout(WITHIN_SECONDS):
        assert await marks[1] > 0
    assert cluster.kinds.count("abort") == 1


async def test_while_the_group_rebalances_no_mark_is_written(cluster: Cluster, turns: Turns) -> None:
    [writer] = await gained(turns, 0)
    cluster.assigned_as = None
    with pytest.raises(PartitionLost, match="the producer is gone"):
        await writer.mark("state", 1, b"mark", HEADERS)
    assert cluster.kinds == ["start"]


async def test_a_mark_needs_no_clock_and_its_end_tells_the_brokers(
    cluster: Cluster, turns: Turns, clock: BrokersClock
) -> None:
    assert not clock.is_known
    [writer] = await gained(turns, 0)
    await writer.mark("state", 1, b"mark", HEADERS)
    assert cluster.producers[0].written == [("state", 1, -1, b"mark", None)], (
        "no broker refuses a record without a time"
    )
    assert 0 <= clock.now_ms() - THEIRS < 60_000


async def test_the_time_is_asked_for_once_for_all_that_begin_together(
    cluster: Cluster, turns: Turns, clock: BrokersClock
) -> None:
    [writer] = await gained(turns, 0)
    await writer.learn_time("state", 1, b"mark", HEADERS)
    assert cluster.kinds.count("abort") == 1
    await writer.learn_time("state", 1, b"mark", HEADERS)
    assert cluster.kinds.count("abort") == 1
    assert clock.is_known


@pytest.mark.parametrize("failure", [Transient("no answer"), Fatal("not authorised")])
async def test_where_the_brokers_do_not_tell_the_time_all_go_on_without_it_and_ask_once(
    turns: Turns, clock: BrokersClock, monkeypatch: pytest.MonkeyPatch, failure: SafeError
) -> None:
    asked = 0

    async def refused(*_: Any) -> int:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        raise failure

    monkeypatch.setattr(turns_module, "read_marker_time", refused)
    with capture_logs() as logs:
        marks = await asyncio.gather(*(turns.learn_time("state", 1, 70) for _ in range(9)))
        await turns.writer(0).learn_time("state", 1, b"mark", HEADERS)
    assert (len(marks), asked) == (9, 1)
    assert (clock.is_known, clock.now_ms()) == (False, OURS)
    assert [(each["event"], each["why"]) for each in logs] == [("the brokers do not tell the time", str(failure))]


# --- what a turn that fails must not leave behind ---------------------------------------------------------------------


async def test_a_producer_is_closed_also_where_its_partition_is_given_up_during_the_abort(
    cluster: Cluster, turns: Turns
) -> None:
    [writer] = await gained(turns, 0)
    cluster.codes.append({0: 22})
    cluster.gates["abort"] = asyncio.Event()
    commit = committing(writer, 5)
    await until(lambda: "abort" in cluster.kinds)
    await writer.dispose()
    await until(lambda: "dispose" in cluster.kinds)
    [failure] = await all_of([commit])
    assert isinstance(failure, PartitionLost)


async def test_a_slice_that_waited_while_our_id_was_taken_is_lost(cluster: Cluster, turns: Turns) -> None:
    one, other = await gained(turns, 0, 1)
    cluster.gates["partitions"] = asyncio.Event()
    cluster.failures["partitions"] = deque([ProducerFenced()])
    running = committing(one, 5)
    await until(lambda: "partitions" in cluster.kinds)
    queued = committing(other, 6)
    await asyncio.sleep(0)
    cluster.gates["partitions"].set()
    lost = await all_of([running, queued])
    assert all(isinstance(each, PartitionLost) for each in lost)
    assert "commit" not in cluster.kinds


async def test_a_fence_that_a_mark_meets_is_noted(cluster: Cluster, turns: Turns, clock: BrokersClock) -> None:
    clock.note(THEIRS)
    one, _ = await gained(turns, 0, 1)
    cluster.failures["partitions"] = deque([ProducerFenced()])
    with pytest.raises(PartitionLost) as lost:
        await one.mark("state", 1, b"m", HEADERS)
    assert lost.value.fenced
    assert turns.own.times_fenced == 1


async def test_an_epoch_that_another_producer_has_raised_counts_as_a_fence(cluster: Cluster, turns: Turns) -> None:
    """It may have committed for this partition while we wrote: nothing is sent again."""
    [writer] = await gained(turns, 0)
    await writer.commit(filled(writer), 4, "")
    cluster.failures["txn-offsets"] = deque([Unanswered("no answer")])
    cluster.epochs["id-0"] += 3
    with pytest.raises(PartitionLost, match="another producer has taken over"):
        await writer.commit(filled(writer), 5, "")
    assert turns.own.times_fenced == 1
    assert cluster.kinds.count("commit") == 1


async def test_what_nobody_has_foreseen_reaches_the_partition_as_it_is(cluster: Cluster, turns: Turns) -> None:
    """As a lost partition it would be tried again for ever."""
    [writer] = await gained(turns, 0)
    cluster.failures["offsets"] = deque([TypeError("a defect")])
    with pytest.raises(TypeError, match="a defect"):
        await writer.commit(filled(writer), 5, "")
    assert turns._running is not None
    [failure] = await all_of([turns._running])
    assert isinstance(failure, TypeError)


async def test_a_mark_that_was_acknowledged_once_fails_when_its_leader_falls_silent(
    turns: Turns, clock: BrokersClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.note(THEIRS)
    monkeypatch.setattr(turns, "_timeout_seconds", 0.4)
    one, other = await gained(turns, 0, 1)
    acknowledged, tries = Producer._acknowledged, {"a": 0, "b": 0}

    async def held(self: Producer, topic: str, partition: int) -> Any:
        tries[topic] += 1
        if topic == "a" or tries["b"] > 1:
            await asyncio.get_running_loop().create_future()
        return await acknowledged(self, topic, partition)

    monkeypatch.setattr(Producer, "_acknowledged", held)
    marks = [asyncio.create_task(writer.mark(topic, 0, b"m", HEADERS)) for writer, topic in ((one, "a"), (other, "b"))]
    async with asyncio.timeout(WITHIN_SECONDS):
        lost = await asyncio.gather(*marks, return_exceptions=True)
    assert all(isinstance(each, PartitionLost) for each in lost)
    assert tries["b"] > 1


async def test_leaders_that_are_silent_are_tried_by_turns_with_all_else(
    cluster: Cluster, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.owned = set(range(8))
    *sick, well = await gained(turns, *range(7))
    acknowledged = Producer._acknowledged

    async def held(self: Producer, topic: str, partition: int) -> Any:
        if topic == "dead":
            await asyncio.get_running_loop().create_future()
        return await acknowledged(self, topic, partition)

    monkeypatch.setattr(Producer, "_acknowledged", held)
    commits = [committing(writer, 5, ("dead", at)) for at, writer in enumerate(sick)]
    await until(lambda: len(turns._sit_outs._places) == len(sick))
    async with asyncio.timeout(WITHIN_SECONDS):
        for offset in range(10, 14):
            before = cluster.kinds.count("partitions")
            await well.commit(filled(well), offset, "")
            assert cluster.kinds.count("partitions") - before <= 3, "its own turn, and the trials before and behind it"
    for commit in commits:
        commit.cancel()
    await asyncio.gather(*commits, return_exceptions=True)


async def test_marks_that_sit_out_are_tried_together(
    cluster: Cluster, turns: Turns, clock: BrokersClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, many silent leaders would take nearly all the time from partitions that are well."""
    clock.note(THEIRS)
    writers = await gained(turns, 0, 1, 2)

    async def never(*_: Any) -> Any:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(Producer, "_acknowledged", never)
    marks = [asyncio.create_task(writer.mark("dead", at, b"m", HEADERS)) for at, writer in enumerate(writers)]
    await until(lambda: cluster.kinds.count("partitions") > 3)
    tried = [step.split()[1] for step in cluster.steps if step.startswith("partitions")]
    assert tried == ["dead/0,dead/1,dead/2"] * len(tried)
    for mark in marks:
        mark.cancel()
    await asyncio.gather(*marks, return_exceptions=True)


async def test_a_defect_where_a_failed_turn_is_judged_reaches_the_partition_as_it_is(
    cluster: Cluster, turns: Turns
) -> None:
    [writer] = await gained(turns, 0)
    cluster.failures["commit"] = deque([Unanswered("no answer")])
    cluster.failures["ask"] = deque([TypeError("a defect")])
    with pytest.raises(TypeError, match="a defect"):
        await writer.commit(filled(writer), 5, "")
    assert turns._running is not None
    [failure] = await all_of([turns._running])
    assert isinstance(failure, TypeError)


async def test_nothing_is_written_that_no_member_has_taken(turns: Turns) -> None:
    [writer] = await gained(turns, 0)
    with pytest.raises(AssertionError, match="the group would not check the generation"):
        await writer.commit(Outgoing(0), 5, "")


async def test_who_waits_goes_on_although_nobody_waits_for_a_turn_that_was_given_up(
    cluster: Cluster, turns: Turns
) -> None:
    one, other = await gained(turns, 0, 1)
    cluster.gates["partitions"] = asyncio.Event()
    held = committing(one, 5)
    await until(lambda: "partitions" in cluster.kinds)
    waiting = committing(other, 6)
    leaving = asyncio.create_task(one.dispose())
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    cluster.gates.clear()
    lost, done = await all_of([held, waiting])
    assert isinstance(lost, PartitionLost)
    assert done is None


async def test_a_producer_is_started_only_as_the_member_that_took_the_records(cluster: Cluster, turns: Turns) -> None:
    """Between the confirmation and the start, the partition may have gone to another member."""
    [writer] = await gained(turns, 0)
    await writer.commit(filled(writer), 1, "")
    cluster.failures["txn-offsets"] = deque([Unanswered("no answer")])
    outgoing = filled(writer)
    confirm = cluster.confirm

    async def rebalancing(partition: int) -> None:
        await confirm(partition)
        cluster.assigned_as = SECOND

    cluster.confirm = rebalancing  # type: ignore[method-assign]
    starts = cluster.kinds.count("start")
    with pytest.raises(PartitionLost):
        await writer.commit(outgoing, 2, "")
    assert cluster.kinds.count("start") == starts


# --- the ids that we have used ----------------------------------------------------------------------------------------


async def test_what_a_turn_that_was_given_up_left_open_is_ended_before_the_next(cluster: Cluster, turns: Turns) -> None:
    """The partition whose id it had has left, but nobody else has it yet."""
    one, other = await gained(turns, 0, 1)
    cluster.gates["txn-offsets"] = asyncio.Event()
    commits = [committing(one, 5), committing(other, 6)]
    await until(lambda: "txn-offsets" in cluster.kinds)
    await one.dispose()
    await all_of(commits)
    assert cluster.steps[-1] == "dispose", "never used again"
    cluster.gates.clear()
    del cluster.steps[:]
    await other.commit(filled(other), 6, "")
    assert cluster.steps[:3] == ["confirm 0", "start id-0", "connect"]
    assert cluster.steps[-1] == "commit id-1 0"


async def test_an_id_that_was_used_and_aborted_is_started_again_as_a_confirmed_member(
    cluster: Cluster, turns: Turns
) -> None:
    """Its sequence numbers begin only once; and only the confirmation says that the partition is still ours."""
    one, other = await gained(turns, 0, 1)
    cluster.codes.append({0: 22})
    cluster.gates["txn-offsets"] = asyncio.Event()
    refused = committing(one, 5)
    await until(lambda: "txn-offsets" in cluster.kinds)
    queued = committing(other, 6)
    await asyncio.sleep(0)
    cluster.gates["txn-offsets"].set()
    [lost, done] = await all_of([refused, queued])
    assert (type(lost), done) == (PartitionLost, None)
    again = cluster.steps.index("abort id-0 0")
    assert cluster.steps[again + 1 : again + 5] == ["dispose", "confirm 0", "start id-0", "connect"]


async def test_while_nobody_knows_whose_an_id_will_be_what_is_open_is_not_forgotten(
    cluster: Cluster, turns: Turns
) -> None:
    [other] = await gained(turns, 1)
    await other.commit(filled(other), 1, "")  # with the id of 1
    [one] = await gained(turns, 0)
    cluster.failures["txn-offsets"] = deque([Unanswered("no answer")])
    cluster.gates["txn-offsets"] = asyncio.Event()
    lost = committing(other, 2)
    await until(lambda: cluster.kinds.count("txn-offsets") == 2)
    cluster.assigned_as, cluster.owned = None, set()  # the group rebalances
    cluster.gates["txn-offsets"].set()
    [failure] = await all_of([lost])
    assert isinstance(failure, PartitionLost)
    assert "confirm" not in cluster.kinds
    cluster.assigned_as, cluster.owned = SECOND, {0, 1}
    del cluster.steps[:]
    await one.commit(filled(one), 3, "")
    assert cluster.steps[:2] == ["confirm 1", "start id-1"]


async def test_what_was_aborted_with_every_answer_is_not_ended_again(cluster: Cluster, turns: Turns) -> None:
    writers = await gained(turns, 0, 1)
    cluster.codes.append({0: 22, 1: 22})
    await all_of([committing(writer, 5) for writer in writers])
    assert "abort id-0 0" in cluster.steps
    await writers[1].dispose()
    await gained(turns, 1)
    assert "confirm" not in cluster.kinds
    assert cluster.steps.count("start id-0") == 1


async def test_a_coordinator_that_cannot_be_found_holds_a_turn_up_no_longer_than_a_transaction_may_take(
    cluster: Cluster, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    [writer] = await gained(turns, 0)

    async def nowhere() -> Any:
        await asyncio.sleep(0)
        raise GroupCoordinatorNotAvailableError

    monkeypatch.setattr(turns, "_timeout_seconds", 0.3)
    monkeypatch.setattr(cluster, "link", nowhere)
    with pytest.raises(PartitionLost, match=r"no answer within 0\.3 s"):
        async with asyncio.timeout(WITHIN_SECONDS):
            await writer.commit(filled(writer), 5, "")
    assert "commit" not in cluster.kinds
