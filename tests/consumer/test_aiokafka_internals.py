"""The private names of aiokafka that SAFE touches, each against the real thing: a new release fails here, not at work.

Every message says what would break. Nothing here needs a broker.
"""

import ast
import asyncio
import gc
import inspect
import sys
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka import client as client_module
from aiokafka import conn as conn_module
from aiokafka.abc import AbstractTokenProvider
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer import fetcher as fetcher_module
from aiokafka.consumer.fetcher import Fetcher, FetchResult
from aiokafka.consumer.group_coordinator import CoordinatorGroupRebalance, GroupCoordinator
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.errors import (
    CorruptRecordException,
    GroupCoordinatorNotAvailableError,
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    NodeNotReadyError,
    SaslAuthenticationFailed,
)
from aiokafka.producer.message_accumulator import MessageAccumulator
from aiokafka.producer.sender import Sender
from aiokafka.protocol.admin import ApiVersionResponse_v1
from aiokafka.protocol.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequest_v5,
    JoinGroupResponse_v5,
    SyncGroupRequest,
    SyncGroupResponse_v3,
)
from aiokafka.protocol.metadata import MetadataRequest_v5, MetadataResponse_v5
from aiokafka.protocol.offset import OffsetResponse_v3
from aiokafka.record import memory_records
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c
from aiokafka.structs import BrokerMetadata
from aiokafka.structs import TopicPartition as StructTopicPartition
from typing_extensions import override

from consumer.kafka import aiokafka_internals, assignors
from consumer.kafka.aiokafka_internals import (
    DECODING_MODULES,
    dispose,
    generation_of,
    is_rebalancing,
    metadata_of,
    position_of,
    request_versions_of,
)
from consumer.kafka.decompression import CODECS, BatchesInTheWay, BatchTooLarge, Decompression, UndecodableBatch
from consumer.kafka.protocol import DescribeProducersResponse_v0, ProducersRequest
from consumer.kafka.subscription import Subscription
from tests.support.batches import CODECS as BATCH_CODECS
from tests.support.batches import Codec, encode_batch, marker, with_codec_number
from tests.support.outside import Outgoing

NOWHERE = "127.0.0.1:1"
WHERE = TopicPartition("input", 0)
WITHIN_SECONDS = 10.0


def source_of(kind: type) -> str:
    """The text of a class's methods. For a whole class `inspect` parses its file, at which Python 3.11 may stumble."""
    return "".join(inspect.getsource(member) for member in vars(kind).values() if inspect.isfunction(member))


@pytest.fixture
async def consumer() -> AsyncIterator[Any]:
    """A consumer that has not been started, with the coordinator that start() would give it."""
    made: Any = AIOKafkaConsumer(bootstrap_servers=NOWHERE, group_id="g", enable_auto_commit=False)
    made._coordinator = GroupCoordinator(
        made._client,
        made._subscription,
        group_id="g",
        assignors=(RoundRobinPartitionAssignor,),
        enable_auto_commit=False,
    )
    yield made
    await made._coordinator.close()
    made._closed = True  # it never ran: there is nothing to stop


@pytest.fixture
async def producer() -> AsyncIterator[Any]:
    made: Any = AIOKafkaProducer(bootstrap_servers=NOWHERE)
    yield made
    made._closed = True


def private_names(path: Path) -> set[str]:
    """Private attributes that a module reads or writes on objects of others."""
    return {
        node.attr
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})
    }


GUARDED = {
    "_accumulator",
    "_assignment",
    "_backoff",
    "_batches",
    "_client",
    "_closed",
    "_conns",
    "_coordination_task",
    "_coordinator",
    "_create_fetch_waiter",
    "_do_heartbeat",
    "_drain_waiter",
    "_fetcher",
    "_get_actions_per_node",
    "_get_conn",
    "_last_action",
    "_group_protocols",
    "_lookup_assignor",
    "_message_accumulator",
    "_on_join_complete",
    "_partition_records",
    "_pending_batches",
    "_records",
    "_records_iterator",
    "_rejoin_needed_fut",
    "_send_req",
    "_send_request",
    "_sender",
    "_subscription",
    "_topic_partition",
    "_transaction_waiter",
    "_transition_to",
    "_txn_manager",
    "_txn_partitions",
    "_update_position",
}


@pytest.fixture(autouse=True)
def unpaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's own methods, whatever other tests have put in their place."""
    monkeypatch.setattr(AIOKafkaClient, "_get_conn", aiokafka_internals._connect)
    monkeypatch.setattr(AIOKafkaClient, "bootstrap", aiokafka_internals._bootstrap)
    monkeypatch.setattr(client_module, "create_conn", aiokafka_internals._create_connection)


def test_each_private_name_that_is_used_is_guarded_here() -> None:
    used = private_names(Path(inspect.getfile(aiokafka_internals)))
    assert used <= GUARDED, f"no test guards {sorted(used - GUARDED)}"


def test_private_names_are_touched_in_one_module_only() -> None:
    folder = Path(inspect.getfile(aiokafka_internals)).parent
    others = {path.name: private_names(path) for path in folder.glob("*.py") if path.name != "aiokafka_internals.py"}
    own = {"_revoked", "_assigned"}  # the subscription's listener calls the subscription's own
    assert not {name: names - own for name, names in others.items() if names - own}


# --- the consumer -----------------------------------------------------------------------------------------------------


async def test_the_coordinator_tells_its_generation(consumer: Any) -> None:
    assert generation_of(consumer) == -1, "before the first join a kept partition would look unbroken"
    consumer._coordinator.generation = 7
    assert generation_of(consumer) == 7


async def test_the_subscription_tells_that_it_is_about_to_change(consumer: Any) -> None:
    assert isinstance(consumer._subscription, SubscriptionState)
    assert isinstance(SubscriptionState.reassignment_in_progress, property), "owns() would trust an old assignment"
    consumer._subscription.subscribe({"input"})
    assert is_rebalancing(consumer) is True
    consumer._subscription.assign_from_subscribed([WHERE])
    assert is_rebalancing(consumer) is False
    consumer._subscription.begin_reassignment()
    assert is_rebalancing(consumer) is True


async def test_a_position_can_be_asked_without_waiting(consumer: Any) -> None:
    assert position_of(consumer, WHERE) is None, "there is no subscription yet"
    consumer._subscription.subscribe({"input"})
    assert position_of(consumer, WHERE) is None, "there is no assignment yet"
    consumer._subscription.assign_from_subscribed([WHERE])
    assert position_of(consumer, WHERE) is None, "a partition without a position has none"
    consumer._subscription.seek(WHERE, 17)
    assert position_of(consumer, WHERE) == 17, "restores end, and slices are committed, by this position"
    assert position_of(consumer, TopicPartition("input", 1)) is None
    assert TopicPartition is StructTopicPartition


async def test_heartbeats_pass_through_a_method_that_can_be_replaced(consumer: Any) -> None:
    coordinator = consumer._coordinator
    assert inspect.iscoroutinefunction(coordinator._do_heartbeat), "no partition would ever be surely ours"
    assert "_do_heartbeat()" in inspect.getsource(GroupCoordinator._heartbeat_routine), (
        "the routine no longer calls the method by its name: a replaced one is never called"
    )
    assert isinstance(coordinator._rejoin_needed_fut, asyncio.Future)


@pytest.mark.parametrize(
    ("answered", "rejoin", "noted"),
    [
        (True, False, True),
        (False, False, False),  # no answer
        (True, True, False),  # answered, but by a group that deals anew
    ],
)
async def test_only_an_answered_heartbeat_of_a_settled_group_counts_from_when_it_was_sent(
    consumer: Any, *, answered: bool, rejoin: bool, noted: bool
) -> None:
    coordinator = consumer._coordinator
    sent: list[float] = []

    async def beat() -> bool:
        sent.append(time.monotonic())
        await asyncio.sleep(0)
        return answered

    if coordinator._rejoin_needed_fut.done():
        coordinator._rejoin_needed_fut = asyncio.get_running_loop().create_future()
    if rejoin:
        coordinator._rejoin_needed_fut.set_result(None)
    coordinator._do_heartbeat = beat
    heard: list[float] = []
    aiokafka_internals.note_heartbeats(consumer, heard.append)
    assert await coordinator._do_heartbeat() is answered
    assert bool(heard) is noted
    assert all(moment <= sent[0] for moment in heard)


async def test_an_assignment_counts_from_when_it_was_asked_for(consumer: Any) -> None:
    coordinator = consumer._coordinator
    assert "self._coordinator._send_req(request)" in source_of(CoordinatorGroupRebalance), (
        "joining no longer sends through the method by its name: a replaced one is never called"
    )
    sent: list[tuple[Any, float]] = []

    async def send(request: Any) -> str:
        await asyncio.sleep(0)
        sent.append((request, time.monotonic()))
        return "answer"

    coordinator._send_req = send
    heard: list[float] = []
    aiokafka_internals.note_syncs(consumer, heard.append)
    assert await coordinator._send_req(HeartbeatRequest("g", 1, "me")) == "answer"
    assert heard == []
    assert await coordinator._send_req(SyncGroupRequest("g", 1, "me", None, [])) == "answer"
    assert len(heard) == 1
    assert heard[0] <= sent[-1][1], "frozen before it reads the answer, the member would take it for fresh"


MEMBER_ID_REQUIRED = 79


class Joining:
    """A coordinator that answers each request of a join, and wants members to come with an id (KIP-394)."""

    def __init__(self, chosen: str, assignment: bytes) -> None:
        self.offers: list[list[tuple[str, bytes]]] = []
        self._chosen = chosen
        self._assignment = assignment

    async def answer(self, request: Any) -> Any:
        if isinstance(request, JoinGroupRequest):
            built = request.build(JoinGroupRequest_v5)
            self.offers.append(built.group_protocols)
            error = 0 if built.member_id else MEMBER_ID_REQUIRED
            return JoinGroupResponse_v5(0, error, 3, self._chosen, "leader", "me", [])
        return SyncGroupResponse_v3(0, 0, self._assignment) if isinstance(request, SyncGroupRequest) else None


@pytest.mark.parametrize("guarded", [True, False])
async def test_everything_is_offered_in_one_join_and_any_of_it_may_be_chosen(consumer: Any, *, guarded: bool) -> None:
    coordinator, offered = consumer._coordinator, assignors.offered("round_robin", guarded=guarded)
    group = Joining(
        offered[-1].name, offered[-1].assign(consumer._client.cluster, {"me": offered[-1].metadata([])})["me"].encode()
    )
    coordinator._send_req = group.answer
    coordinator.coordinator_id = 1
    coordinator._assignors = offered[:1]
    noted: list[tuple[str, bool]] = []
    aiokafka_internals.join_at_once(consumer, offered)
    aiokafka_internals.note_assignments(
        consumer, lambda name, encoded: noted.append((name, assignors.is_marked(encoded)))
    )
    consumer._subscription.subscribe({"input"})

    assert await coordinator._do_rejoin_group(consumer._subscription.subscription)

    once = [(each.name, each.metadata(["input"]).encode()) for each in offered]
    assert group.offers == [once, once], "the second is for the member's id alone"
    assert noted == [(offered[-1].name, True)]
    await asyncio.sleep(0)  # a task that has not begun would not notice that it is stopped
    await coordinator._stop_commit_offsets_refresh_task()


async def never_answered() -> None:
    """A stop while a broker is asked to let a member leave, and does not answer."""
    await asyncio.Event().wait()


async def goes_wrong() -> None:
    """A stop that meets an error."""
    raise KafkaConnectionError


@pytest.mark.parametrize("stop", [never_answered, goes_wrong])
async def test_a_subscription_whose_stop_is_cut_off_keeps_no_connection_and_fetches_no_more(
    consumer: Any, stop: Callable[[], Awaitable[None]]
) -> None:
    class Connection:
        closed = False

        def close(self) -> None:
            self.closed = True

    class Closes:
        closed = False

        async def close(self) -> None:
            self.closed = True

    assert not inspect.iscoroutinefunction(AIOKafkaConnection.close), "it closes at once"
    assert inspect.iscoroutinefunction(Fetcher.close)
    assert "await self._fetcher.close()" in inspect.getsource(AIOKafkaConsumer.stop), "after the coordinator"
    fetcher, transactions = Closes(), Closes()
    connections = [Connection(), Connection()]
    subscription: Any = Subscription.__new__(Subscription)
    subscription._consumer, subscription._transactions_client = consumer, transactions
    consumer.stop = stop
    consumer._fetcher = fetcher
    consumer._client._conns = dict(enumerate(connections))
    await subscription.stop(0.01)
    assert [each.closed for each in connections] == [True, True]
    assert fetcher.closed, "else it would go on fetching"
    assert transactions.closed
    consumer._fetcher = None
    consumer._client._conns = {}


async def test_a_connection_that_is_made_after_its_consumer_has_stopped_is_closed(
    consumer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Connection:
        closed = False

        def close(self) -> None:
            self.closed = True

    connection, answered = Connection(), asyncio.Event()

    async def slowly(*_: object, **__: object) -> Connection:
        await answered.wait()
        return connection

    aiokafka_internals.manage_connections()
    monkeypatch.setattr("aiokafka.client.create_conn", slowly)
    monkeypatch.setattr(consumer._client.cluster, "broker_metadata", lambda node: BrokerMetadata(node, "host", 1, None))
    asked = asyncio.ensure_future(consumer._client._get_conn(1))
    await asyncio.sleep(0)
    aiokafka_internals.drop_connections(consumer)
    answered.set()
    assert await asked is None, "nobody would close it"
    assert connection.closed
    consumer._client._conns = {}
    connection.closed = False
    assert await consumer._client._get_conn(1) is None
    assert not connection.closed, "a leftover task would connect again and again"
    consumer._client._conns = {}


async def test_a_bootstrap_that_is_cancelled_amid_its_first_question_leaves_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Connection:
        closed = False
        asked = asyncio.Event()

        async def send(self, _request: Any) -> None:
            self.asked.set()
            await asyncio.Event().wait()

        def close(self) -> None:
            self.closed = True

    connection = Connection()

    async def made(*_: object, **__: object) -> Connection:
        return connection

    monkeypatch.setattr(aiokafka_internals, "_create_connection", made)
    aiokafka_internals.manage_connections()
    client = AIOKafkaClient(bootstrap_servers=NOWHERE)
    starting = asyncio.ensure_future(client.bootstrap())
    await asyncio.wait_for(connection.asked.wait(), WITHIN_SECONDS)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert connection.closed
    assert client._conns == {}, "what close() would close"


async def test_the_link_to_the_coordinator_is_one_connection_apart_from_heartbeats(consumer: Any) -> None:
    made: list[tuple[int, int]] = []
    asked: list[Any] = []

    class Connection:
        closed = False

        async def send(self, request: Any) -> str:
            asked.append((self, request))
            return "answer"

        def close(self) -> None:
            self.closed = True

    connection = Connection()

    async def get_conn(node: int, *, group: int) -> Connection:
        made.append((node, group))
        return connection

    assert set(inspect.signature(AIOKafkaClient._get_conn).parameters) >= {"node_id", "group"}
    assert {int(each) for each in ConnectionGroup}.isdisjoint({aiokafka_internals._LINK_CONNECTION}), (
        "it would be shared"
    )
    consumer._client._get_conn = get_conn
    coordinator = consumer._coordinator
    coordinator.coordinator_id, coordinator.generation, coordinator.member_id = None, 4, "me"
    with pytest.raises(GroupCoordinatorNotAvailableError):
        await aiokafka_internals.coordinator_link(consumer)
    coordinator.coordinator_id = 2
    link = await aiokafka_internals.coordinator_link(consumer)
    coordinator.generation = 5
    assert (link.generation, link.member_id, made) == (4, "me", [(2, aiokafka_internals._LINK_CONNECTION)])
    assert [await link.ask("first"), await link.ask("second")] == ["answer", "answer"]
    assert asked == [(connection, "first"), (connection, "second")]
    link.distrust()
    assert connection.closed
    assert coordinator.coordinator_id is None, "it would be asked again"
    coordinator.coordinator_id = 1
    link.distrust()
    assert coordinator.coordinator_id == 1, "another node has been found meanwhile"
    coordinator.coordinator_id, coordinator.generation = None, -1  # nobody is there to be left


async def test_the_coordination_task_tells_that_it_has_died(consumer: Any) -> None:
    task = consumer._coordinator._coordination_task
    assert isinstance(task, asyncio.Task), "a member that never joins again would go unnoticed"
    assert aiokafka_internals.coordination_failed(consumer) is False
    task.cancel()
    await asyncio.wait({task})
    assert aiokafka_internals.coordination_failed(consumer) is True


# --- what is fetched --------------------------------------------------------------------------------------------------

LIMIT = 1024 * 1024
CODEC_NUMBERS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> Decompression:
    """What `bound_memory` replaces, replaced for the length of a test."""
    decompression = Decompression(LIMIT)
    for module in DECODING_MODULES:
        for codec in CODECS:
            if hasattr(module, f"{codec}_decode"):
                monkeypatch.setattr(module, f"{codec}_decode", getattr(module, f"{codec}_decode"))
    monkeypatch.setattr(FetchResult, "getall", FetchResult.getall)
    monkeypatch.setattr(fetcher_module, "PartitionRecords", fetcher_module.PartitionRecords)
    aiokafka_internals.bound_memory(decompression)
    return decompression


def batch_of(values: Sequence[bytes], first_offset: int = 0, codec: int = 0) -> bytes:
    """A record batch as a broker keeps it."""
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1 << 30,
    )  # fmt: skip
    for at, value in enumerate(values):
        builder.append(at, timestamp=0, key=b"k", value=value, headers=[("h", b"v")])
    built = bytes(builder.build())
    return first_offset.to_bytes(8, "big") + built[8:]  # the offset is not part of what the checksum covers


@pytest.fixture
def uncollected() -> Iterator[None]:
    """As while a worker runs: what is held in a circle may be held for ever."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def own_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's own way of reading batches, whatever other tests have put in its place."""
    monkeypatch.setattr(fetcher_module, "MemoryRecords", MemoryRecords)


@pytest.fixture
async def fetching(own_batches: None) -> AsyncIterator[Any]:  # noqa: ARG001 - it comes before what replaces it
    """A consumer of one partition, with the fetcher that start() would give it, and no broker to ask."""
    made: Any = AIOKafkaConsumer(bootstrap_servers=NOWHERE)
    made._subscription.assign_from_user([WHERE])
    made._subscription.seek(WHERE, 0)
    made._fetcher = Fetcher(made._client, made._subscription)
    yield made
    await made._fetcher.close()
    made._closed = True


def put(consumer: Any, *batches: bytes) -> None:
    """Let a fetch have brought these batches, as the fetcher itself keeps it."""
    fetcher, assignment = consumer._fetcher, consumer._subscription.subscription.assignment
    position = assignment.state_value(WHERE).position
    records = fetcher_module.PartitionRecords(
        WHERE,
        fetcher_module.MemoryRecords(b"".join(batches)),
        [],
        position,
        None,
        None,
        check_crcs=True,
        isolation_level=1,
    )
    fetcher._records[WHERE] = FetchResult(WHERE, assignment=assignment, partition_records=records, backoff=0.0)


@pytest.mark.parametrize("number", CODEC_NUMBERS.values(), ids=CODEC_NUMBERS.keys())
@pytest.mark.parametrize(("size", "fits"), [(1000, True), (LIMIT // 2, True), (2 * LIMIT, False)])
@pytest.mark.usefixtures("bounded")
def test_every_codec_of_a_batch_is_decompressed_within_the_bound(number: int, *, size: int, fits: bool) -> None:
    batch = MemoryRecords(batch_of([b"x" * size], codec=number)).next_batch()
    if fits:
        assert [record.value for record in batch] == [b"x" * size]
    else:
        with pytest.raises(BatchTooLarge):
            list(batch)


@pytest.mark.parametrize(("magic", "number"), [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3)])  # no lz4 in the oldest
@pytest.mark.usefixtures("bounded")
def test_so_is_every_codec_of_the_old_formats(magic: int, number: int) -> None:
    for size in (1000, 2 * LIMIT):
        builder = LegacyRecordBatchBuilder(magic, number, 1 << 30)
        builder.append(0, timestamp=0, key=None, value=b"x" * size)
        batch = MemoryRecords(bytes(builder.build())).next_batch()
        if size < LIMIT:
            assert [len(record.value) for record in batch] == [size]
        else:
            with pytest.raises(BatchTooLarge):
                list(batch)


def test_a_batch_of_a_version_that_came_later_is_refused_and_the_others_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher_module, "MemoryRecords", fetcher_module.MemoryRecords)
    aiokafka_internals.replace_batches()
    known = batch_of([b"x"])
    newer = known[:16] + b"\x03" + known[17:]
    records = fetcher_module.MemoryRecords(known + newer)
    assert records.has_next()
    assert records.size_in_bytes() > 0
    assert [record.value for record in records.next_batch()] == [b"x"]
    with pytest.raises(aiokafka_internals.UnknownVersion):
        records.next_batch()
    older = LegacyRecordBatchBuilder(1, 1, 1 << 30)
    older.append(0, timestamp=0, key=None, value=b"x")
    assert fetcher_module.MemoryRecords(bytes(older.build())).next_batch().validate_crc()


# --- names that are not UTF-8 -----------------------------------------------------------------------------------------

ODD = b"caf\xe9".decode("utf-8", "surrogateescape")


def message(value: bytes, name: str = "h", key: bytes | None = b"k") -> Outgoing:
    return Outgoing(value, key, (("first", None), (name, b"v"), ("last", b"")))


def seen(records: Sequence[Any]) -> list[tuple[int, int, bytes | None, bytes | None, tuple[Any, ...]]]:
    return [(each.offset, each.timestamp, each.key, each.value, tuple(each.headers)) for each in records]


def wanted(messages: Sequence[Outgoing], first_offset: int = 0) -> list[Any]:
    return [(at, STAMP, each.key, each.value, each.headers) for at, each in enumerate(messages, first_offset)]


STAMP = 1_795_291_200_000


@pytest.fixture
def tolerant(bounded: Decompression, own_batches: None) -> Decompression:  # noqa: ARG001 - as above
    """What `replace_batches` replaces, replaced for the length of a test."""
    aiokafka_internals.replace_batches()
    return bounded


@pytest.mark.parametrize("codec", BATCH_CODECS)
@pytest.mark.usefixtures("tolerant")
async def test_a_name_that_is_not_utf_8_costs_no_record_of_its_batch(fetching: Any, codec: Codec) -> None:
    messages = [
        message(b"before"), message(b"odd", ODD), message(b"between", "na\u00efve"), message(b"", "\udcff", key=None),
        message(b"after"),
    ]  # fmt: skip
    put(fetching, encode_batch(messages, codec, now_ms=STAMP), batch_of([b"next"], first_offset=5))
    taken = await aiokafka_internals.take(fetching, WHERE)
    assert seen(taken)[:5] == wanted(messages)
    assert [each.value for each in taken[5:]] == [b"next"]
    assert position_of(fetching, WHERE) == 6


@pytest.mark.usefixtures("tolerant")
async def test_such_a_batch_can_be_read_from_its_middle_and_in_pieces(
    fetching: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aiokafka_internals, "TAKE_BYTES", 1)
    messages = [message(b"%d" % at, ODD if at in {1, 4} else "h") for at in range(6)]
    fetching._subscription.seek(WHERE, 2)
    put(fetching, encode_batch(messages, "zstd", now_ms=STAMP))
    pieces = [await aiokafka_internals.take(fetching, WHERE) for _ in range(4)]
    assert [seen(piece) for piece in pieces] == [[each] for each in wanted(messages)[2:]]


@pytest.mark.usefixtures("tolerant")
async def test_a_time_that_the_broker_has_set_holds_for_such_a_record_too(fetching: Any) -> None:
    batch = encode_batch([replace(message(b"odd", ODD), timestamp=STAMP - 5), message(b"x")], now_ms=STAMP)
    put(fetching, with_codec_number(batch, 8))  # no codec, and the bit that says so
    taken = await aiokafka_internals.take(fetching, WHERE)
    assert [each.timestamp for each in taken] == [STAMP] * 2


@pytest.mark.usefixtures("tolerant")
async def test_the_room_for_such_a_batch_is_taken_once(fetching: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of what the limit allows: twice at once would be refused."""
    wide = Decompression(4 * LIMIT)
    aiokafka_internals.bound_memory(wide)
    monkeypatch.setattr(aiokafka_internals, "TAKE_BYTES", 1)
    messages = [message(b"x" * 1_200_000), message(b"odd", ODD), message(b"y" * 1_800_000)]
    put(fetching, encode_batch(messages, "zstd", now_ms=STAMP))
    sizes = []
    for _ in messages:
        (record,) = await aiokafka_internals.take(fetching, WHERE)
        sizes.append(len(record.value or b""))
        assert wide.open_bytes < 4 * LIMIT
        del record
    assert sizes == [1_200_000, 3, 1_800_000]
    assert await aiokafka_internals.take(fetching, WHERE) == []
    assert wide.open_bytes == 0


@pytest.mark.parametrize(
    ("damage", "readable"),
    [
        (lambda body: body[:-1], [b"before"]),  # cut short
        (lambda body: body + b"\0", [b"before", b"odd"]),  # octets that belong to nobody
        (lambda body: body.replace(b"\x06odd", b"\x7eodd"), [b"before"]),  # a value longer than its record
        (lambda body: body.replace(b"\x06odd", b"\x04odd"), [b"before"]),  # a shorter one: what follows is no header
        (lambda body: body.replace(b"\x08caf", b"\x07caf"), [b"before"]),  # a name of less than no length
    ],
)
@pytest.mark.usefixtures("tolerant")
async def test_what_is_wrong_in_any_other_way_is_not_guessed(
    fetching: Any, damage: Callable[[bytes], bytes], readable: list[bytes]
) -> None:
    batch = encode_batch([message(b"before"), message(b"odd", ODD)], now_ms=STAMP)
    damaged = damage(batch[61:])
    assert damaged != batch[61:]
    checked = batch[21:61] + damaged
    length = (len(checked) + 9).to_bytes(4, "big")
    stored = batch[:8] + length + batch[12:17] + calc_crc32c(checked).to_bytes(4, "big") + checked
    put(fetching, stored)
    assert [each.value for each in await aiokafka_internals.take(fetching, WHERE)] == readable
    put(fetching, stored)
    with pytest.raises(CorruptRecordException):
        await aiokafka_internals.take(fetching, WHERE)


def test_no_module_decompresses_by_functions_that_are_not_replaced() -> None:
    named = {
        module.__name__
        for module in (*DECODING_MODULES, memory_records, fetcher_module)
        for name in vars(module)
        if name.endswith("_decode") and name != "decode"
    }
    assert named == {module.__name__ for module in DECODING_MODULES}


def test_a_large_batch_counts_as_open_until_its_last_reader_is_gone(bounded: Decompression) -> None:
    values = [bytes([65 + at % 26]) * 300_000 for at in range(3)]
    wide = Decompression(2 * LIMIT)
    aiokafka_internals.bound_memory(wide)
    batch = MemoryRecords(batch_of([*values, *values], codec=CODEC_NUMBERS["zstd"])).next_batch()
    records = iter(batch)
    first = next(records)
    assert wide.open_bytes > LIMIT
    del batch, records
    assert wide.open_bytes == 0, "a batch that nobody reads any more would keep others waiting for ever"
    assert first.value == values[0]
    assert bounded.open_bytes == 0


@pytest.mark.usefixtures("bounded")
async def test_a_take_ends_after_so_many_bytes_and_the_next_goes_on(
    fetching: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aiokafka_internals, "TAKE_BYTES", 250)
    put(fetching, batch_of([b"x" * 100] * 5), batch_of([b"y" * 100], first_offset=5))
    assert aiokafka_internals.partitions_fetched(fetching) == [WHERE]
    taken, positions = [], []
    while aiokafka_internals.partitions_fetched(fetching):
        records = await aiokafka_internals.take(fetching, WHERE)
        taken.append([record.offset for record in records])
        positions.append(position_of(fetching, WHERE))
        assert records.sizes == [aiokafka_internals.size_of(record) for record in records]
    assert taken == [[0, 1], [2, 3], [4, 5], []]
    assert positions == [2, 4, 6, 6]


async def test_a_large_record_counts_as_open_until_nobody_holds_it(
    bounded: Decompression, fetching: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aiokafka_internals, "_LARGE_RECORD_BYTES", 1_000)
    put(fetching, batch_of([b"x" * 2_000, b"y" * 800]))
    records = await aiokafka_internals.take(fetching, WHERE)
    assert bounded.open_bytes == 2_000 + 1 + 100 + 2, "value, key and header"
    records.clear()
    assert bounded.open_bytes == 0


@pytest.fixture
def two_large(fetching: Any, monkeypatch: pytest.MonkeyPatch) -> Decompression:
    """A fetch of two batches with one record each, of which only one may be open."""
    wide = Decompression(4 * LIMIT)
    aiokafka_internals.bound_memory(wide)
    monkeypatch.setattr(aiokafka_internals, "TAKE_BYTES", 1)
    monkeypatch.setattr(aiokafka_internals, "_LARGE_RECORD_BYTES", 1_000)
    zstd = CODEC_NUMBERS["zstd"]
    put(fetching, batch_of([b"x" * 3 * LIMIT], codec=zstd), batch_of([b"y" * 3 * LIMIT], first_offset=1, codec=zstd))
    return wide


@pytest.mark.usefixtures("bounded", "uncollected")
async def test_what_was_read_before_a_batch_is_let_go_of_before_it(fetching: Any, two_large: Decompression) -> None:
    for offset in (0, 1):
        assert [record.offset for record in await aiokafka_internals.take(fetching, WHERE)] == [offset]
    assert await aiokafka_internals.take(fetching, WHERE) == []
    assert two_large.open_bytes == 0


@pytest.mark.usefixtures("bounded", "uncollected")
async def test_a_batch_that_must_wait_holds_nothing(fetching: Any, two_large: Decompression) -> None:
    records = await aiokafka_internals.take(fetching, WHERE)
    failure: weakref.ref[Exception] | None = None
    try:
        await aiokafka_internals.take(fetching, WHERE)
    except BatchesInTheWay as error:
        failure = weakref.ref(error)
    assert failure is not None, "two large batches are open at once"
    assert failure() is None, "it and the frame that raised it hold each other"
    records.clear()
    assert two_large.open_bytes == 0, "it would be in its own way for as long as the garbage is not collected"


@pytest.mark.usefixtures("bounded")
async def test_what_stands_before_a_batch_that_cannot_be_read_is_delivered_and_the_position_stays_there(
    fetching: Any,
) -> None:
    bomb = batch_of([b"x" * (2 * LIMIT)], first_offset=2, codec=CODEC_NUMBERS["zstd"])
    put(fetching, batch_of([b"a", b"b"]), bomb, batch_of([b"c"], first_offset=3))
    assert [record.value for record in await aiokafka_internals.take(fetching, WHERE)] == [b"a", b"b"]
    assert position_of(fetching, WHERE) == 2
    put(fetching, bomb, batch_of([b"c"], first_offset=3))
    with pytest.raises(BatchTooLarge):
        await aiokafka_internals.take(fetching, WHERE)
    assert position_of(fetching, WHERE) == 2, "the batch would be skipped"
    assert aiokafka_internals.partitions_fetched(fetching) == [WHERE], "it would be fetched again at once, and for ever"
    assert await aiokafka_internals.take(fetching, WHERE) == []
    assert aiokafka_internals.partitions_fetched(fetching) == [], "it would never be tried again"


@pytest.mark.parametrize(
    ("spoil", "failure"),
    [
        (lambda batch: batch[:-1] + b"\0", CorruptRecordException),  # a wrong checksum
        (
            lambda batch: resealed(batch.replace(b"h\x02v", b"\xff\x02v")),
            UndecodableBatch,
        ),  # what the client trips over
    ],
)
@pytest.mark.usefixtures("bounded")
async def test_a_malformed_batch_is_its_partitions_trouble_alone(
    fetching: Any, spoil: Callable[[bytes], bytes], failure: type[Exception]
) -> None:
    put(fetching, spoil(batch_of([b"a", b"b"])))
    with pytest.raises(failure):
        await aiokafka_internals.take(fetching, WHERE)
    assert position_of(fetching, WHERE) == 0


def resealed(batch: bytes) -> bytes:
    """A batch with a checksum that is right for it."""
    checksum = int(calc_crc32c(batch[21:]))
    return batch[:17] + checksum.to_bytes(4, "big") + batch[21:]


@pytest.mark.usefixtures("bounded")
async def test_a_partition_that_has_moved_on_delivers_nothing_of_its_old_fetch(fetching: Any) -> None:
    put(fetching, batch_of([b"a", b"b"]))
    fetching._subscription.seek(WHERE, 7)
    assert await aiokafka_internals.take(fetching, WHERE) == []
    assert position_of(fetching, WHERE) == 7


async def test_the_last_marker_that_was_passed_tells_the_leaders_time(
    fetching: Any,
    bounded: Decompression,  # noqa: ARG001 - replaces what takes records
) -> None:
    assert aiokafka_internals.marker_of(fetching, WHERE) is None
    put(fetching, batch_of([b"a"]), marker(1, STAMP - 9, commits=True), batch_of([b"b"], 2), marker(3, STAMP))
    taken = fetching._fetcher._records[WHERE].getall(1)
    assert [record.value for record in taken] == [b"a"]
    assert aiokafka_internals.marker_of(fetching, WHERE) is None, "it has not come that far"
    assert [record.value for record in fetching._fetcher._records[WHERE].getall()] == [b"b"]
    assert aiokafka_internals.marker_of(fetching, WHERE) == (3, STAMP)
    put(fetching, batch_of([b"c"], 4))
    assert fetching._fetcher._records[WHERE].getall()
    assert aiokafka_internals.marker_of(fetching, WHERE) == (3, STAMP), "a record has the time of its writer"
    assert aiokafka_internals.marker_of(fetching, TopicPartition("input", 1)) is None


async def test_an_arrival_is_told_once_and_may_be_given_up(fetching: Any) -> None:
    arrival, given_up = aiokafka_internals.next_arrival(fetching), aiokafka_internals.next_arrival(fetching)
    given_up.cancel()
    for waiter in list(fetching._fetcher._fetch_waiters):
        fetching._fetcher._notify(waiter)  # as when a fetch has brought something
    async with asyncio.timeout(WITHIN_SECONDS):
        await arrival
    await asyncio.sleep(0)
    assert not fetching._fetcher._fetch_waiters


async def test_a_partition_that_is_left_alone_does_not_hold_up_the_others(fetching: Any) -> None:
    fetcher = fetching._fetcher
    fetching._client.cluster.leader_for_partition = lambda _partition: 1

    def wait() -> float:
        *_, seconds, _invalid, _resumed = fetcher._get_actions_per_node(fetching._subscription.subscription.assignment)
        return float(seconds)

    assert "backoff=self._prefetch_backoff" in source_of(Fetcher), "the wait is set elsewhere"
    put(fetching, batch_of([b"a"]))
    fetcher._records[WHERE]._backoff = fetcher._prefetch_backoff  # as the fetcher sets it
    fetcher._records[WHERE]._created = time.monotonic()
    assert wait() < fetcher._fetcher_timeout, "a fetch no longer waits for what may be taken at once"
    aiokafka_internals.let_wait(fetching, [WHERE, TopicPartition("input", 7)])
    assert wait() == fetcher._fetcher_timeout, "the others wait until the partition's records are taken"


async def test_nothing_is_fetched_before_it_is_time(fetching: Any) -> None:
    fetcher, left = fetching._fetcher, 1.5
    assert "await asyncio.wait(\n                    set(chain(" in source_of(Fetcher), (
        "it no longer waits for what may change"
    )
    assert "timeout=timeout" in source_of(Fetcher), "the wait is no longer what the look tells"
    aiokafka_internals.pace_fetches(fetching, lambda: left)
    fetching._client.cluster.leader_for_partition = lambda _partition: 1
    assignment = fetching._subscription.subscription.assignment
    assert fetcher._get_actions_per_node(assignment) == ([], {}, 1.5, False, [])
    left = 0.0
    [(node, request)], *_ = fetcher._get_actions_per_node(assignment)
    assert (node, [topic for topic, _ in request._topics]) == (1, ["input"])


# --- the producer -----------------------------------------------------------------------------------------------------


async def test_all_connections_are_made_in_two_methods_that_can_be_replaced(producer: Any) -> None:
    assert producer.client._conns == {}, "a connection that is open must be found without waiting"
    source = inspect.getsource(sys.modules[AIOKafkaClient.__module__])
    assert source.count("await create_conn(") == 2, "a connection is made elsewhere, and its attempts are not paced"
    assert "self._conns[conn_id] = await create_conn(" in source
    assert "async def _get_conn(self, node_id, *, group=ConnectionGroup.DEFAULT" in source
    assert "return None" in source.partition("async def _get_conn")[2].partition("async def ready")[0], (
        "what cannot be reached is no longer told as None"
    )
    assert 'raise KafkaConnectionError(f"Unable to bootstrap' in source


async def test_a_producer_has_what_is_taken_apart_to_dispose_of_it(producer: Any) -> None:
    assert isinstance(producer._sender, Sender)
    assert producer._sender.sender_task is None, "before start() there is no task to cancel"
    assert isinstance(producer._message_accumulator, MessageAccumulator)
    assert not producer._message_accumulator._batches
    assert not producer._message_accumulator._pending_batches
    assert producer._closed is False
    assert "if self._closed" in inspect.getsource(AIOKafkaProducer.__del__), (
        "a disposed producer would warn when collected"
    )


async def test_a_producer_that_was_never_started_can_be_disposed_of_twice(producer: Any) -> None:
    async with asyncio.timeout(WITHIN_SECONDS):
        await dispose(producer)
        await dispose(producer)
    assert producer._closed is True


async def test_disposing_cancels_a_sender_that_swallows_cancellations_and_all_that_waits(producer: Any) -> None:
    swallowed: list[str] = []

    async def stubborn() -> None:
        while len(swallowed) < 2:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                swallowed.append("cancelled")
        await asyncio.Event().wait()

    builder = producer.create_batch()
    builder.append(timestamp=0, key=None, value=b"x", headers=[])
    waiting = await producer._message_accumulator.add_batch(builder, WHERE, 1.0)
    producer._sender._sender_task = task = asyncio.create_task(stubborn())
    assert producer._sender.sender_task is task, "the sender's task is found by another name"
    await asyncio.sleep(0)
    async with asyncio.timeout(WITHIN_SECONDS):
        await dispose(producer)
    assert task.cancelled()
    assert len(swallowed) == 2
    assert waiting.cancelled(), "whoever waits for an acknowledgement would wait for ever"


async def test_batches_refuse_a_second_record_that_is_too_large_and_count_what_they_hold(producer: Any) -> None:
    builder = producer.create_batch()
    assert builder.append(timestamp=0, key=None, value=b"x" * 10_000_000, headers=[]) is not None
    assert builder.append(timestamp=0, key=None, value=b"x" * 10_000, headers=[]) is None
    assert builder.record_count() == 1


def attributes(batch: Any) -> int:
    """The attributes of a batch as the broker reads them: behind offsets, length, epoch, magic and checksum."""
    assert batch.append(timestamp=0, key=None, value=b"x" * 100_000, headers=[]) is not None
    return int.from_bytes(bytes(batch._build())[21:23], "big")


CODEC, ZSTD, TRANSACTIONAL = 0x07, 0x04, 0x10


@pytest.mark.parametrize("transactional_id", [None, "g:input:0"])
async def test_a_compressed_batch_is_one_of_the_producers_own_but_for_the_codec(transactional_id: str | None) -> None:
    made: Any = AIOKafkaProducer(bootstrap_servers=NOWHERE, transactional_id=transactional_id)
    own, compressed = (
        attributes(made.create_batch()),
        attributes(
            aiokafka_internals.new_batch(1_000, "zstd", is_transactional=aiokafka_internals.is_transactional(made))
        ),
    )
    made._closed = True
    assert compressed & CODEC == ZSTD, "large dead letters would be left out"
    assert own & CODEC == 0
    assert bool(compressed & TRANSACTIONAL) is bool(own & TRANSACTIONAL) is (transactional_id is not None), (
        "the broker would refuse the batch, or show it before its transaction ends"
    )


async def test_a_batch_and_a_transaction_have_the_futures_that_nobody_awaits_after_a_failure() -> None:
    made: Any = AIOKafkaProducer(bootstrap_servers=NOWHERE, transactional_id="t")
    manager = made._txn_manager
    aiokafka_internals.set_identity(made, 1, 0)
    aiokafka_internals.begin(made, [("input", 0)])
    batch = made._message_accumulator._append_batch(made.create_batch(), WHERE)
    assert isinstance(batch.future, asyncio.Future)
    assert isinstance(batch._drain_waiter, asyncio.Future), "a fenced producer would flood the log"
    assert isinstance(manager._transaction_waiter, asyncio.Future), "a fenced producer would flood the log"
    await dispose(made)
    assert batch.future.cancelled()
    assert batch._drain_waiter.cancelled()
    assert manager._transaction_waiter.cancelled()


async def test_a_producer_sends_in_transactions_that_others_begin_and_end() -> None:
    made: Any = AIOKafkaProducer(bootstrap_servers=NOWHERE, transactional_id="t")
    manager = made._txn_manager
    aiokafka_internals.set_identity(made, 1, 4)
    assert (manager.producer_id, manager.producer_epoch, manager.has_pid()) == (1, 4, True), "it would ask for another"
    for places in ([("result", 0), ("state", 1)], [("result", 2)]):
        aiokafka_internals.begin(made, places)
        for topic, partition in places:
            manager.maybe_add_partition_to_txn(TopicPartition(topic, partition))
        assert manager.is_in_transaction()
        assert made._sender._maybe_do_transactional_request() is None, "it would ask, too, and again without an answer"
        assert {(each.topic, each.partition) for each in manager.txn_partitions} == set(places)
        aiokafka_internals.end(made)
        assert not manager.is_in_transaction()
        assert manager.txn_partitions == set()
        assert made._sender._maybe_do_transactional_request() is None
    await dispose(made)


async def test_requests_about_transactions_have_connections_of_their_own(
    consumer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    client = consumer._client

    async def get_conn(node: int, *, group: int) -> str | None:
        asked.append((node, group))
        return None if node == 3 else f"connection {node}"

    async def lookup(kind: CoordinationType, group: str) -> int:
        assert (kind, group) == (CoordinationType.GROUP, "g")
        return 2

    monkeypatch.setattr(client, "_get_conn", get_conn)
    monkeypatch.setattr(client, "coordinator_lookup", lookup)
    monkeypatch.setattr(client, "get_random_node", lambda: 1)
    assert await aiokafka_internals.node_link(client, 2) == "connection 2"
    assert await aiokafka_internals.any_node_link(client) == "connection 1"
    assert await aiokafka_internals.group_link(client, "g") == "connection 2"
    [purpose] = {group for _, group in asked}
    assert purpose not in {*map(int, ConnectionGroup), aiokafka_internals._LINK_CONNECTION}, "a fetch would delay it"
    for node in (3, None):
        with pytest.raises(NodeNotReadyError):
            await aiokafka_internals.node_link(client, node)
    consumer._coordinator.member_id = "me"
    assert aiokafka_internals.member_id_of(consumer) == "me"
    consumer._coordinator.member_id = ""


async def test_topics_can_be_asked_for_without_making_them() -> None:
    assert inspect.iscoroutinefunction(AIOKafkaAdminClient._send_request)
    asked: list[Any] = []

    class Admin:
        async def _send_request(self, request: Any, node_id: int | None = None) -> Any:
            asked.append((request.build(MetadataRequest_v5), node_id))
            partition: tuple[Any, ...] = (5, 3, -1, [1, 2], [], [1, 2])
            return MetadataResponse_v5(
                throttle_time_ms=0,
                brokers=[(1, "a", 9092, None)],
                cluster_id="c",
                controller_id=1,
                topics=[(0, "input", False, [partition])],
            )

    metadata = await metadata_of(cast("Any", Admin()), ["input"], 2)
    [(request, node)] = asked
    assert request.allow_auto_topic_creation is False, "asking for a missing topic would make it"
    assert node == 2
    assert len(metadata["brokers"]) == 1
    [topic] = metadata["topics"]
    assert (topic["topic"], topic["error_code"]) == ("input", 0)
    assert topic["partitions"][0].items() >= {"partition": 3, "leader": -1}.items(), "readiness would not see it"


async def test_a_broker_says_which_versions_of_requests_it_knows() -> None:
    class Admin:
        async def _send_request(self, request: Any, node_id: int | None = None) -> Any:
            assert request.API_KEY == 18
            assert node_id == 2
            return ApiVersionResponse_v1(error_code=0, api_versions=[(9, 0, 7), (28, 0, 3)], throttle_time_ms=0)

    assert await request_versions_of(cast("Any", Admin()), 2) == {9: 7, 28: 3}


async def test_a_leader_is_asked_for_both_ends_of_its_partitions_the_stable_one_first() -> None:
    asked: list[tuple[Any, int | None]] = []
    ends = {1: 4, 0: 9}  # by isolation: 1 is for committed records alone

    class Admin:
        async def _send_request(self, request: Any, node_id: int | None = None) -> Any:
            built = request.prepare({2: (1, 10)})
            asked.append((built, node_id))
            offset = ends[built.isolation_level]
            return OffsetResponse_v3(0, [("input", [(0, 0, -1, offset), (3, 6, -1, -1)])])

    places = [("input", 0), ("input", 3)]
    assert await aiokafka_internals.ends_of(cast("Any", Admin()), places, 2) == {("input", 0): (4, 9)}
    assert [(request.isolation_level, request.replica_id, node) for request, node in asked] == [(1, -1, 2), (0, -1, 2)]
    assert all(request.topics == [("input", [(0, -1), (3, -1)])] for request, _node in asked), "the latest of both"


async def test_a_leader_is_asked_for_the_producers_of_a_partition_in_the_way_that_kafka_documents() -> None:
    producers: list[Any] = [(4001, 3, 17, 1_700_000_000_000, -1, 4, {}), (4002, 0, 1, 1_700_000_000_000, 2, -1, {})]
    answers: list[Any] = [
        [("input", [(0, 0, None, producers, {})], {})],
        [("input", [(0, 29, "not authorised", [], {})], {})],
    ]

    class Admin:
        async def _send_request(self, request: Any, node_id: int | None = None) -> Any:
            assert node_id == 2
            built = request.prepare({61: (0, 0)})
            # One topic of five letters with one partition: lengths are one more than they are, and no field has tags.
            assert built.encode() == b"\x02\x06input\x02\x00\x00\x00\x00\x00\x00"
            answer = DescribeProducersResponse_v0(0, answers.pop(0), {})
            return DescribeProducersResponse_v0.decode(answer.encode())

    admin = cast("Any", Admin())
    first, second = await aiokafka_internals.producers_of(admin, "input", 0, 2)
    assert (first["producer_id"], first["producer_epoch"], first["first_offset"]) == (4001, 3, 4)
    assert (second["producer_id"], second["producer_epoch"], second["first_offset"]) == (4002, 0, -1)
    assert await aiokafka_internals.producers_of(admin, "input", 0, 2) == []
    with pytest.raises(IncompatibleBrokerVersion):
        ProducersRequest("input", 0).prepare({3: (0, 12)})


async def test_the_administrative_client_tells_its_brokers() -> None:
    made: Any = AIOKafkaAdminClient(bootstrap_servers=NOWHERE)
    assert isinstance(made._client, AIOKafkaClient)
    response = MetadataResponse_v5(0, [(1, "a", 9092, None), (7, "b", 9093, None)], "c", 1, [])
    made._client.cluster.update_metadata(response)
    assert aiokafka_internals.nodes_of(made) == {1: "a:9092", 7: "b:9093"}
    parameters = inspect.signature(AIOKafkaAdminClient._send_request).parameters
    assert "node_id" in parameters, "brokers could not be asked one by one"
    assert callable(made._client.force_metadata_update)


@pytest.mark.usefixtures("bounded", "uncollected")
async def test_what_a_fetch_has_brought_is_freed_with_its_last_reference(
    fetching: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = Decompression(8 * LIMIT)
    aiokafka_internals.bound_memory(wide)
    monkeypatch.setattr(aiokafka_internals, "TAKE_BYTES", 1)
    put(fetching, batch_of([b"x" * LIMIT] * 3, codec=CODEC_NUMBERS["zstd"]))
    assert [record.offset for record in await aiokafka_internals.take(fetching, WHERE)] == [0], "it is read half"
    assert wide.open_bytes > LIMIT
    fetching._fetcher._records.clear()
    assert wide.open_bytes == 0, "the client keeps it in a cycle, and an old cycle is never collected in a worker"


async def test_a_batch_that_was_to_be_sent_again_is_dropped_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    made: Any = AIOKafkaProducer(bootstrap_servers=NOWHERE, transactional_id="t")
    made._txn_manager.set_pid_and_epoch(1, 0)
    made._txn_manager.begin_transaction()
    accumulator = made._message_accumulator
    batch = accumulator._append_batch(made.create_batch(), WHERE)
    accumulator.reenqueue(accumulator._pop_batch(WHERE))
    await dispose(made)
    await asyncio.sleep(0)  # callbacks of cancelled futures run in the next turn
    assert batch.future.cancelled()
    assert caplog.records == [], "each outage would fill the log with errors of callbacks"


# --- a login by token -------------------------------------------------------------------------------------------------


class OneToken(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka ships no types
    async def token(self) -> str:
        return "a.token"


async def test_a_connection_logs_in_with_the_authenticator_of_this_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conn_module, "OAuthAuthenticator", conn_module.OAuthAuthenticator)
    aiokafka_internals.see_refused_tokens()
    connection = conn_module.AIOKafkaConnection(
        "127.0.0.1", 9, security_protocol="SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=OneToken(),
    )  # fmt: skip
    login = connection.authenticator_oauth()
    assert await login.step(None) == (b"n,,\x01auth=Bearer a.token\x01\x01", True)
    assert await login.step(b"") is None, "the broker accepts the token"


async def test_a_broker_that_refuses_a_token_is_asked_why_once() -> None:
    login = aiokafka_internals._OAuth(sasl_oauth_token_provider=OneToken())
    await login.step(None)
    assert await login.step(b'{"status":"invalid_token"}') == (b"\x01", True)
    with pytest.raises(SaslAuthenticationFailed):
        await login.step(b'{"status":"invalid_token"}')


async def test_a_connection_remembers_when_it_was_last_answered() -> None:
    connection = AIOKafkaConnection("127.0.0.1", 1)
    assert abs(aiokafka_internals.answered_at(connection) - time.monotonic()) < WITHIN_SECONDS
    told = inspect.getsource(AIOKafkaConnection._handle_frame)
    assert "self._last_action = time.monotonic()" in told, "an answer no longer counts as a sign of life"


class Noting(aiokafka_internals.LoginOfConnections):
    """A login that makes no connection, and notes which were asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    @override
    async def open(self, connect: Callable[..., Awaitable[Any]], host: str, port: int, options: dict[str, Any]) -> Any:
        assert connect is conn_module.create_conn
        assert options["security_protocol"] == "SASL_PLAINTEXT"
        self.asked.append((host, port))
        raise SaslAuthenticationFailed


@pytest.mark.parametrize("way", ["bootstrap", "node"])
async def test_every_connection_of_a_client_is_made_by_its_login(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "create_conn", aiokafka_internals._noted_connection)
    login = Noting()
    client = AIOKafkaClient(
        bootstrap_servers=NOWHERE,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_oauth_token_provider=login,
    )
    if way == "bootstrap":
        with pytest.raises(KafkaConnectionError):
            await client.bootstrap()
    else:
        broker = BrokerMetadata(7, "127.0.0.1", 1, None)
        monkeypatch.setattr(client.cluster, "broker_metadata", lambda _node: broker)
        assert await client._get_conn(7) is None
    assert login.asked == [("127.0.0.1", 1)]
    await client.close()
