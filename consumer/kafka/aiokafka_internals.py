"""Every private name of aiokafka that SAFE uses, in one place; test_aiokafka_internals.py has a test for each."""

import asyncio
import contextlib
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial, partialmethod
from typing import Any, Literal, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import aiokafka.record._crecords.default_records as compiled_records
import aiokafka.record._crecords.legacy_records as compiled_legacy_records
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka import client as client_module
from aiokafka import conn as conn_module
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.conn import OAuthAuthenticator
from aiokafka.consumer import fetcher as fetcher_module
from aiokafka.consumer.fetcher import READ_COMMITTED, READ_UNCOMMITTED, FetchResult, PartitionRecords
from aiokafka.errors import (
    CorruptRecordException,
    GroupCoordinatorNotAvailableError,
    KafkaConnectionError,
    KafkaError,
    NodeNotReadyError,
    SaslAuthenticationFailed,
)
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.producer.transaction_manager import TransactionState
from aiokafka.protocol.admin import ApiVersionRequest
from aiokafka.protocol.group import JoinGroupRequest, SyncGroupRequest
from aiokafka.protocol.offset import OffsetRequest, OffsetResetStrategy
from aiokafka.record import default_records, legacy_records
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.memory_records import MemoryRecords
from msgspec import Struct
from typing_extensions import Buffer

from consumer.kafka.decompression import CODECS, Decompression, UndecodableBatch
from consumer.kafka.non_utf8_header_names import TolerantBatch
from consumer.kafka.protocol import ProducersRequest, TopicsMetadataRequest
from consumer.kafka.reconnect_pause import Reconnects
from consumer.wire.record import KafkaHeaders

T = TypeVar("T")

DECODING_MODULES = (compiled_records, compiled_legacy_records, default_records, legacy_records)

TAKE_BYTES = 2 * 1024 * 1024
"""About how much one take brings of a partition: no further record once this is reached."""

_LATEST_VERSION = 2
"""The version of the batch format (Kafka calls it magic) that this client knows."""

_BEFORE_LENGTH = 12
"""The bytes at the start of a batch that its length does not count; the last four of them are the length."""

_CODEC_NAMES = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}

_LARGE_RECORD_BYTES = 4 * 1024 * 1024
"""A record that is larger than this makes further large batches wait until it has been processed."""

_HEADER_BYTES = 100
"""About the memory that each header of a record takes up besides its text."""


class Marker(NamedTuple):
    """Where a transaction ended: the marker's offset, and the time in ms that the partition's leader gave it."""

    offset: int
    timestamp: int


def generation_of(consumer: AIOKafkaConsumer) -> int:
    """The generation of the group that the member last joined; -1 before the first one and after an eviction."""
    return int(consumer._coordinator.generation)


def is_rebalancing(consumer: AIOKafkaConsumer) -> bool:
    """Whether the consumer's current assignment is about to be replaced."""
    return bool(consumer._subscription.reassignment_in_progress)


def position_of(consumer: AIOKafkaConsumer, partition: TopicPartition) -> int | None:
    """The next offset that the consumer will deliver; unlike `position()`, this does not wait."""
    state = _state_of(consumer, partition)
    return int(state.position) if state is not None and state.has_valid_position else None


def _state_of(consumer: AIOKafkaConsumer, partition: TopicPartition) -> Any:
    subscription: Any = consumer._subscription.subscription
    if subscription is None or subscription.assignment is None:
        return None
    return subscription.assignment.state_value(partition)


def marker_of(consumer: AIOKafkaConsumer, partition: TopicPartition) -> Marker | None:
    """The last transaction marker that the consumer has passed since the partition was assigned to it."""
    marker: Marker | None = getattr(_state_of(consumer, partition), "marker", None)
    return marker


def note_heartbeats(consumer: AIOKafkaConsumer, note: Callable[[float], None]) -> None:
    """Call `note` after each answered heartbeat with the monotonic time at which it was *sent*.

    The time of the answer would be wrong: a process that was frozen finds an old answer in its socket when it wakes.
    """
    coordinator: Any = consumer._coordinator
    beat: Callable[[], Awaitable[bool]] = coordinator._do_heartbeat

    async def noted_beat() -> bool:
        sent_at = time.monotonic()
        answered = await beat()
        if answered and not coordinator._rejoin_needed_fut.done():
            note(sent_at)
        return answered

    coordinator._do_heartbeat = noted_beat


def note_syncs(consumer: AIOKafkaConsumer, note: Callable[[float], None]) -> None:
    """Call `note` with the monotonic time at which each request for an assignment (SyncGroup) is sent.

    The time of the answer would be wrong here, too: the process may be frozen before it reads the answer.
    """
    coordinator: Any = consumer._coordinator
    send: Callable[[Any], Awaitable[Any]] = coordinator._send_req

    async def noted_send(request: Any) -> Any:
        if isinstance(request, SyncGroupRequest):
            note(time.monotonic())
        return await send(request)

    coordinator._send_req = noted_send


_NO_REPLICA = -1
"""A request with this replica id is a client's."""


def join_at_once(consumer: AIOKafkaConsumer, assignors: Sequence[Any]) -> None:
    """Make a consumer offer all of these assignors in each JoinGroup; it was made with the first one alone.

    Made with several, the client would send one JoinGroup for each, with one more in every next one: the group would
    rebalance as often, and refuse the first where its members know only the last.
    """
    coordinator: Any = consumer._coordinator
    send: Callable[[Any], Awaitable[Any]] = coordinator._send_req
    by_name = {assignor.name: assignor for assignor in assignors}

    async def sent_at_once(request: Any) -> Any:
        if isinstance(request, JoinGroupRequest):
            topics = consumer._subscription.topics
            request._group_protocols = [(name, each.metadata(topics).encode()) for name, each in by_name.items()]
        return await send(request)

    coordinator._send_req = sent_at_once
    coordinator._lookup_assignor = by_name.get


def note_assignments(consumer: AIOKafkaConsumer, note: Callable[[str, bytes], None]) -> None:
    """Call `note` with the name of the assignor and the encoded assignment, before each assignment takes effect."""
    coordinator: Any = consumer._coordinator
    complete: Callable[..., Awaitable[None]] = coordinator._on_join_complete

    async def noted(generation: int, member_id: str, protocol: str, assignment: bytes) -> None:
        note(protocol, assignment)
        await complete(generation, member_id, protocol, assignment)

    coordinator._on_join_complete = noted


_LINK_CONNECTION = 2
"""The client has a connection for each node and purpose: 0 is for records, 1 for heartbeats and joins, 2 is SAFE's.

A broker answers the requests of a connection in order; on one of its own, our requests do not delay heartbeats.
"""


class CoordinatorLink:
    """One connection to the node that a consumer takes for its group's coordinator.

    `generation` and `member_id` are what the member had when the link was opened.
    """

    def __init__(self, coordinator: Any, connection: Any) -> None:
        self.generation = int(coordinator.generation)
        self.member_id = str(coordinator.member_id)
        self.node = coordinator.coordinator_id
        self._coordinator = coordinator
        self._connection = connection

    async def ask(self, request: Any) -> Any:
        """Send a request on this one connection; raises KafkaError, OSError or TimeoutError once it is broken."""
        return await self._connection.send(request)

    def distrust(self) -> None:
        """Close the connection, and look for the coordinator again before the next one is opened."""
        self._connection.close()
        if self._coordinator.coordinator_id == self.node:
            self._coordinator.coordinator_dead()


async def coordinator_link(consumer: AIOKafkaConsumer) -> CoordinatorLink:
    """Open or reuse a connection to the node that the consumer takes for its coordinator; raises KafkaError."""
    coordinator: Any = consumer._coordinator
    node = coordinator.coordinator_id
    if node is None:
        raise GroupCoordinatorNotAvailableError
    connection = await consumer._client._get_conn(node, group=_LINK_CONNECTION)
    if connection is None or coordinator.coordinator_id != node:
        raise GroupCoordinatorNotAvailableError
    return CoordinatorLink(coordinator, connection)


_TRANSACTIONS_CONNECTION = 3
"""The connections for requests about transactions, one for each broker: a fetch that waits for records delays none."""


async def any_node_link(client: AIOKafkaClient) -> Any:
    """A connection to any broker, for the question which of them is a coordinator; raises KafkaError."""
    return await node_link(client, client.get_random_node())


async def node_link(client: AIOKafkaClient, node: int | None) -> Any:
    """A connection to one broker for requests about transactions; raises KafkaError if there is none."""
    connection = None if node is None else await client._get_conn(node, group=_TRANSACTIONS_CONNECTION)
    if connection is None:
        raise NodeNotReadyError(f"no connection to broker {node}")
    return connection


async def group_link(client: AIOKafkaClient, group: str) -> Any:
    """A connection to the coordinator of a group that the client is not in; raises KafkaError."""
    return await node_link(client, await client.coordinator_lookup(CoordinationType.GROUP, group))


def member_id_of(consumer: AIOKafkaConsumer) -> str:
    """The id that the group has given the consumer as its member."""
    return str(consumer._coordinator.member_id)


def bound_memory(decompression: Decompression) -> None:
    """Limit what every client of this process decompresses, hand over fetched records in parts, and free them with the
    last reference to them.

    The client's own functions decompress anything, and hand over all records of a fetch at once.
    """
    for module in DECODING_MODULES:
        for codec in CODECS:
            name = f"{codec}_decode"
            if hasattr(module, name):
                setattr(module, name, partial(decompression.decompress, codec))
    fetcher_module.PartitionRecords = _Fetch
    FetchResult.getall = partialmethod(_take, decompression)


class UnknownVersion(KafkaError):  # type: ignore[misc]  # aiokafka ships no types
    """A batch has a newer format than this client knows; the client would read it as if it had the known one."""


class _Batches:
    """Replaces the client's MemoryRecords: the batches that a fetch has brought of a partition, one by one."""

    def __init__(self, fetched: Buffer) -> None:
        self._inner = MemoryRecords(fetched)
        self._content = memoryview(fetched)
        self._at = 0
        self.has_next = self._inner.has_next
        self.size_in_bytes = self._inner.size_in_bytes

    def next_batch(self) -> Any:
        batch = self._inner.next_batch()
        start, self._at = self._at, _end_of_batch(self._content, self._at)
        if not isinstance(batch, DefaultRecordBatch) or batch.is_control_batch:
            return batch
        if batch.magic > _LATEST_VERSION:
            raise UnknownVersion(f"a batch of version {batch.magic}")
        return TolerantBatch(batch, self._content[start : self._at], _decompress)


def _end_of_batch(content: memoryview, start: int) -> int:
    return start + _BEFORE_LENGTH + int.from_bytes(content[start + 8 : start + _BEFORE_LENGTH], "big")


def _decompress(codec: int, packed: memoryview) -> Buffer:
    """Decompress as the client's own parser does: by the function that `bound_memory` has installed."""
    decode: Callable[[memoryview], Buffer] = getattr(default_records, f"{_CODEC_NAMES[codec]}_decode")
    return decode(packed)


class FetchedRecord(Struct, gc=False):
    """A record as clients hand it over: the client's own ConsumerRecord takes several times as long to make.

    Nothing in it can refer to it, so that the garbage collector need not look at thousands of them again and again.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: KafkaHeaders


class _LargeRecord(FetchedRecord, gc=True, weakref=True):
    """A record so large that it counts until its last reference is gone."""


class Taken(list[FetchedRecord]):
    """Records, and about how many bytes each of them takes up."""

    __slots__ = ("sizes",)

    def __init__(self) -> None:
        self.sizes: list[int] = []


class _Fetch(PartitionRecords):  # type: ignore[misc]  # aiokafka ships no types
    """Replaces the client's own: what a fetch has brought of a partition, from which records are taken in parts.

    The client's is in a reference cycle with its iterator. An unfinished batch in such a cycle, once in the oldest
    generation, would never be collected, and count as open. This one has no iterator but that of the current batch.
    """

    next_fetch_offset: int

    def _unpack_records(self) -> None:
        self._batch: Any = None
        self._unread: Iterator[Any] = iter(())
        self._last_headers: KafkaHeaders = ()
        self.marker: Marker | None = None

    def take(self, taken: Taken, max_records: int | None, decompression: Decompression) -> bool:
        """Add the next records, until they are as many or as large as is allowed; False if there are no more.

        This is done for each record of both roles: hence one loop, and nothing called in it that can be spared.
        """
        topic, partition = self._tp
        left, most = TAKE_BYTES, max_records or sys.maxsize
        headers = self._last_headers
        while left > 0 and len(taken) < most:
            record = next(self._unread, None)
            if record is None:
                if not self._go_to_next_batch():
                    return False
                continue
            offset = record.offset
            if offset < self.next_fetch_offset:
                continue  # a batch also holds records before the position
            key, value = record.key, record.value
            if record.headers != headers:  # mostly those of the record before, which are then kept once
                headers = self._last_headers = record.headers or ()
            size = _size(key, value, headers)
            if size > _LARGE_RECORD_BYTES:
                large = _LargeRecord(topic, partition, offset, record.timestamp, key, value, headers)
                decompression.note_open(large, size)
                taken.append(large)
            else:
                taken.append(FetchedRecord(topic, partition, offset, record.timestamp, key, value, headers))
            taken.sizes.append(size)
            left -= size
            self.next_fetch_offset = offset + 1
        return True

    def _go_to_next_batch(self) -> bool:
        """Begin the next batch whose records are to be delivered; False if there is none."""
        self._leave_batch()
        while self._records.has_next():
            batch = self._records.next_batch()
            if self._check_crcs and not batch.validate_crc():
                raise CorruptRecordException(f"a batch of {self._tp.topic}/{self._tp.partition} fails its checksum")
            self._batch = batch
            if self._is_delivered(batch):
                self._unread = iter(batch)
                return True
            if batch.is_control_batch:
                self.marker = Marker(batch.base_offset, batch.max_timestamp)
            self._leave_batch()
        return False

    def _leave_batch(self) -> None:
        """Continue behind the batch, which after a compaction may be further than behind its last record."""
        if self._batch is not None:
            self.next_fetch_offset = self._batch.next_offset
            self._batch, self._unread = None, iter(())

    def _is_delivered(self, batch: Any) -> bool:
        """Whether a reader may see the records of a batch: they are neither markers nor of an aborted transaction."""
        if self._isolation_level == READ_COMMITTED and batch.producer_id is not None:
            self._consume_aborted_up_to(batch.base_offset)
            if batch.is_control_batch and self._contains_abort_marker(batch):
                self._aborted_producers.discard(batch.producer_id)
            if batch.is_transactional and batch.producer_id in self._aborted_producers:
                return False
        return not batch.is_control_batch


def replace_batches() -> None:
    """Make every client of this process refuse batches of an unknown version, and accept any header name."""
    fetcher_module.MemoryRecords = _Batches


_connect: Callable[..., Awaitable[Any]] = AIOKafkaClient._get_conn
_bootstrap: Callable[..., Awaitable[None]] = AIOKafkaClient.bootstrap
_create_connection: Callable[..., Awaitable[Any]] = client_module.create_conn
_stopped_clients: WeakSet[AIOKafkaClient] = WeakSet()
_first_connections: ContextVar[list[Any]] = ContextVar("the connections that the bootstrap under way has made")


class LoginOfConnections(ABC):
    """Opens connections with the credentials of that moment; a client hands it on as its provider of tokens.

    The client itself would show each broker the credentials that it was given when it was made.
    """

    @abstractmethod
    async def open(self, connect: Callable[..., Awaitable[Any]], host: str, port: int, options: dict[str, Any]) -> Any:
        """Connect, with other options where they have changed; raises what `connect` raises."""


async def open_connection(host: str, port: int, **options: Any) -> Any:
    """Connect to a broker and log in, as every client does; raises KafkaError, OSError or TimeoutError."""
    login = options.get("sasl_oauth_token_provider")
    if isinstance(login, LoginOfConnections):
        return await login.open(_create_connection, host, port, options)
    return await _create_connection(host, port, **options)


def answered_at(connection: Any) -> float:
    """When a connection last brought an answer (monotonic); when it was made, if it has not yet."""
    return float(connection._last_action)


async def _noted_connection(host: str, port: int, **options: Any) -> Any:
    connection = await open_connection(host, port, **options)
    _first_connections.get([]).append(connection)
    return connection


async def _bootstrap_whole(client: AIOKafkaClient) -> None:
    """Bootstrap; where that is cancelled amid its first question, close the connection, which nobody else knows."""
    made: list[Any] = []
    before = _first_connections.set(made)
    try:
        await _bootstrap(client)
    except asyncio.CancelledError:
        for connection in made:
            connection.close()
        raise
    finally:
        _first_connections.reset(before)


async def _unless_stopped(client: AIOKafkaClient, connect: Callable[[], Awaitable[Any]]) -> Any:
    """Connect, but leave nothing to a client whose consumer has stopped: nobody would close it."""
    if client in _stopped_clients:
        return None
    made = await connect()
    if made is not None and client in _stopped_clients:
        made.close()
        return None
    return made


def manage_connections() -> None:
    """Make all clients of this process pause after an attempt to connect that failed, and leave no connection open.

    Nobody would close one that is made for a client whose consumer has stopped (see `drop_connections`), nor that of a
    bootstrap that is cancelled amid its first question.
    """
    by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Reconnects] = WeakKeyDictionary()

    async def attempt(where: Hashable, connect: Callable[[], Awaitable[T | None]]) -> T | None:
        return await by_loop.setdefault(asyncio.get_running_loop(), Reconnects()).attempt(where, connect)

    async def connected(client: Any, node_id: Any, **options: Any) -> Any:
        connection = client._conns.get((node_id, options.get("group", ConnectionGroup.DEFAULT)))
        if connection is not None and connection.connected():
            return connection
        broker = client.cluster.broker_metadata(node_id)
        if broker is None:
            return await _connect(client, node_id, **options)
        where = (broker.host, broker.port)
        return await _unless_stopped(client, lambda: attempt(where, lambda: _connect(client, node_id, **options)))

    async def bootstrapped(client: Any) -> None:
        async def connect() -> bool | None:
            try:
                await _bootstrap_whole(client)
            except KafkaConnectionError:
                return None
            return True

        if await attempt(tuple(client.hosts), connect) is None:
            raise KafkaConnectionError(f"Unable to bootstrap from {client.hosts}")

    AIOKafkaClient._get_conn = connected
    AIOKafkaClient.bootstrap = bootstrapped
    client_module.create_conn = _noted_connection


class _OAuth(OAuthAuthenticator):  # type: ignore[misc]  # aiokafka ships no types
    """Asks a broker that refuses a token why (RFC 7628, section 3.2.3); the client takes the refusal for a login."""

    async def step(self, payload: bytes | None) -> tuple[bytes, bool] | None:
        """Give what is to be sent next, None at the end."""
        if not payload:
            next_step: tuple[bytes, bool] | None = await super().step(payload)
            return next_step
        if getattr(self, "_asked_why", False):
            raise SaslAuthenticationFailed("the token is refused")
        self._asked_why = True
        return b"\x01", True


def see_refused_tokens() -> None:
    """Make all clients of this process notice that a broker refuses an access token."""
    conn_module.OAuthAuthenticator = _OAuth


def _take(result: Any, decompression: Decompression, max_records: int | None = None) -> Taken:
    """The next records of a partition's fetch, also those before a batch that cannot be read.

    Replaces FetchResult.getall(), which would lose those, with the position already after them.
    """
    taken = Taken()
    if not result.has_more() or not result.check_assignment(result._topic_partition):
        return taken
    fetch: _Fetch = result._partition_records
    failure: KafkaError | None = None
    is_over = True
    try:
        is_over = not fetch.take(taken, max_records, decompression)
    except KafkaError as error:
        # Its frames, and those of its causes, refer to records, and to batches that are half read.
        error.__context__ = error.__cause__ = None
        failure = error.with_traceback(None)
    except Exception as error:  # noqa: BLE001 - a batch may be malformed in any way, and only its partition must wait
        failure = UndecodableBatch(f"a batch cannot be read ({type(error).__name__})")
    result._update_position()
    if fetch.marker is not None:
        result._assignment.state_value(result._topic_partition).marker = fetch.marker
    if is_over:
        result._partition_records = None
    if failure is not None and not taken:
        try:
            raise failure
        finally:
            del failure  # else this frame and the failure would refer to each other
    return taken


def size_of(record: Any) -> int:
    """About how many bytes a record takes up: key, value and headers."""
    return _size(record.key, record.value, record.headers)


def _size(key: bytes | None, value: bytes | None, headers: KafkaHeaders) -> int:
    size = len(value or b"") + len(key or b"")
    for name, content in headers:  # three times as fast as sum(), and this is done for each record
        size += _HEADER_BYTES + len(name) + len(content or b"")
    return size


def let_wait(consumer: AIOKafkaConsumer, partitions: Iterable[TopicPartition]) -> None:
    """Go on fetching other partitions while fetched records of these are not taken.

    Otherwise the client would wait up to 100 ms for them to be taken before each fetch, to ask for all at once.
    """
    for partition in partitions:
        fetched = consumer._fetcher._records.get(partition)
        if fetched is not None:
            fetched._backoff = 0.0


def partitions_fetched(consumer: AIOKafkaConsumer) -> list[TopicPartition]:
    """The partitions of which records, or an error, have been fetched and not been taken."""
    return list(consumer._fetcher._records)


async def take(consumer: AIOKafkaConsumer, partition: TopicPartition) -> Taken:
    """What has been fetched of a partition, without waiting; raises what went wrong while reading it.

    `getmany()` would do the same, but counts polls wrong after a failure.
    """
    taken: dict[TopicPartition, Taken] = await consumer._fetcher.fetched_records((partition,))
    return taken.get(partition) or Taken()


def next_arrival(consumer: AIOKafkaConsumer) -> "asyncio.Future[None]":
    """A future that is done when more has been fetched, or fetching has failed; cancel it if it is not awaited."""
    arrival: asyncio.Future[None] = consumer._fetcher._create_fetch_waiter()
    return arrival


def pace_fetches(consumer: AIOKafkaConsumer, seconds_left: Callable[[], float]) -> None:
    """Ask no broker for anything as long as `seconds_left` is above zero: what arrives meanwhile is in one answer."""
    fetcher = consumer._fetcher
    look = fetcher._get_actions_per_node

    def looked_when_due(assignment: Any) -> Any:
        left = seconds_left()
        return look(assignment) if left <= 0 else ([], {}, left, False, [])

    fetcher._get_actions_per_node = looked_when_due


def nodes_of(admin: AIOKafkaAdminClient) -> dict[int, str]:
    """The brokers that the client knows: address by id."""
    return {broker.nodeId: f"{broker.host}:{broker.port}" for broker in admin._client.cluster.brokers()}


async def metadata_of(admin: AIOKafkaAdminClient, topics: Sequence[str], node: int) -> dict[str, Any]:
    """What one broker knows about some topics; unlike `describe_topics()`, this does not create missing ones."""
    response = await admin._send_request(TopicsMetadataRequest(list(topics)), node)
    metadata: dict[str, Any] = response.to_object()
    return metadata


async def request_versions_of(admin: AIOKafkaAdminClient, node: int) -> dict[int, int]:
    """The latest version of each request that one broker knows, by the request's number."""
    response = await admin._send_request(ApiVersionRequest(), node)
    return {key: latest for key, _earliest, latest in response.api_versions}


async def ends_of(
    admin: AIOKafkaAdminClient, partitions: Collection[tuple[str, int]], node: int
) -> dict[tuple[str, int], tuple[int, int]]:
    """The last stable offset and the end of partitions, as their leader says; left out where it does not know."""
    stable = await _ends_for(READ_COMMITTED, admin, partitions, node)
    log = await _ends_for(READ_UNCOMMITTED, admin, partitions, node)  # asked later, so never the smaller one
    return {place: (stable[place], log[place]) for place in stable.keys() & log.keys()}


async def _ends_for(
    isolation: int, admin: AIOKafkaAdminClient, partitions: Collection[tuple[str, int]], node: int
) -> dict[tuple[str, int], int]:
    by_topic: dict[str, list[tuple[int, int]]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append((partition, OffsetResetStrategy.LATEST))
    response = await admin._send_request(OffsetRequest(_NO_REPLICA, isolation, list(by_topic.items())), node)
    return {
        (topic, partition): offset
        for topic, answers in response.topics
        for partition, error, _timestamp, offset in answers
        if not error
    }


async def producers_of(admin: AIOKafkaAdminClient, topic: str, partition: int, node: int) -> list[dict[str, Any]]:
    """The producers that the leader of a partition remembers; none if it may not say. Raises KafkaError before 3.0."""
    response = await admin._send_request(ProducersRequest(topic, partition), node)
    found: dict[str, Any] = response.to_object()
    return [producer for each in found["topics"] for at in each["partitions"] for producer in at["producers"] or ()]


async def refresh_metadata(client: AIOKafkaConsumer | AIOKafkaAdminClient) -> None:
    """Make a client ask which brokers there are and what each of them leads, and wait for the answer."""
    await client._client.force_metadata_update()


def coordination_failed(consumer: AIOKafkaConsumer) -> bool:
    """Whether the consumer's coordination task has ended: then it will never join a group again."""
    return bool(consumer._coordinator._coordination_task.done())


async def let_go(consumer: AIOKafkaConsumer) -> None:
    """Do what `stop()` does last, where it was cut off before: it waits for the group's coordinator first."""
    if consumer._fetcher is not None:
        await consumer._fetcher.close()
    await consumer._client.close()


def drop_connections(consumer: AIOKafkaConsumer) -> None:
    """Close the connections that a stopped consumer still has, and one that is being made as soon as it is made."""
    _stopped_clients.add(consumer._client)
    for connection in list(consumer._client._conns.values()):
        connection.close()


class Batch(BatchBuilder):  # type: ignore[misc]  # aiokafka ships no types
    """A batch of records to be sent; `add` does what the client's `append` does, in half the time."""

    _closed: bool

    def add(
        self, timestamp: int, key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
    ) -> bool:
        """Add a record with a timestamp in ms; False if the batch is full, which ends it."""
        if self._closed or self._builder.append(self._relative_offset, timestamp, key, value, headers) is None:
            self._closed = True
            return False
        self._relative_offset += 1
        return True


Codec = Literal["none", "lz4", "zstd"]
_CODEC_NUMBERS: Mapping[Codec, int] = {
    "none": DefaultRecordBatch.CODEC_NONE,
    "lz4": DefaultRecordBatch.CODEC_LZ4,
    "zstd": DefaultRecordBatch.CODEC_ZSTD,
}


def is_transactional(producer: AIOKafkaProducer) -> bool:
    """Whether what the producer sends belongs in transactions."""
    manager: Any = producer._txn_manager
    return manager is not None and manager.transactional_id is not None


def new_batch(batch_bytes: int, codec: Codec = "none", *, is_transactional: bool = False) -> Batch:
    """A batch like those of `producer.create_batch()`, of any size and codec."""
    return Batch(batch_bytes, _CODEC_NUMBERS[codec], is_transactional=is_transactional)


def set_identity(producer: AIOKafkaProducer, producer_id: int, epoch: int) -> None:
    """Give a transactional producer, before its start, the id and epoch that it would ask for."""
    manager: Any = producer._txn_manager
    manager.set_pid_and_epoch(producer_id, epoch)


def begin(producer: AIOKafkaProducer, partitions: Iterable[tuple[str, int]]) -> None:
    """Let a producer send to partitions that have been added to a transaction: it asks its coordinator for nothing."""
    manager: Any = producer._txn_manager
    manager.begin_transaction()
    manager._txn_partitions.update(TopicPartition(*partition) for partition in partitions)


def end(producer: AIOKafkaProducer) -> None:
    """Let a producer know that its transaction has ended."""
    manager: Any = producer._txn_manager
    manager._transition_to(TransactionState.COMMITTING_TRANSACTION)
    manager.complete_transaction()


async def dispose(producer: AIOKafkaProducer) -> None:
    """Close a producer without flushing; `stop()` would wait for ever for a batch that cannot be delivered.

    The sender is cancelled until it is done: while it sends a request, it may ignore a cancellation.
    """
    sender: Any = producer._sender
    task: asyncio.Task[None] | None = sender.sender_task
    if task is not None:
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=0.05)
        forget(task)
    accumulator: Any = producer._message_accumulator
    waiting = [batch for batches in accumulator._batches.values() for batch in batches]
    accumulator._pending_batches.update(waiting)  # the callback of a batch that was to be sent again looks for it there
    for batch in list(accumulator._pending_batches):
        for future in (batch.future, batch._drain_waiter):
            forget(future)
    if producer._txn_manager is not None and producer._txn_manager._transaction_waiter is not None:
        forget(producer._txn_manager._transaction_waiter)
    producer._closed = True
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(producer.client.close(), timeout=1.0)


def forget(future: "asyncio.Future[Any]") -> None:
    """Cancel a future that nobody will await, or retrieve its exception, so that asyncio does not log it."""
    if not future.done():
        future.cancel()
    elif not future.cancelled():
        future.exception()
