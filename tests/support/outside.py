"""A foreign client's view of the topics: librdkafka, and nothing of the product."""

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.support.waiting import wait_until

Isolation = Literal["read_committed", "read_uncommitted"]
Headers = tuple[tuple[str, bytes | None], ...]
Place = tuple[str, int]  # a topic and a partition of it
CALL_SECONDS = 30.0
NO_LEADER_YET = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
)
NO_COORDINATOR_YET = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._WAIT_COORD,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
)
# What a commit may take on a busy machine.
DECIDED_SECONDS = 15.0
# What a reader is told whose leader has just changed, or whose broker was away: it looks for the new one by itself.
RECOVERS = {
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TRANSPORT,
}
# A fetch is asked for this many records, which spreads the cost of a call. It waits this long for all of them.
RECORDS_A_CALL = 5000
CALL_WAITS_SECONDS = 0.03

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "52428800",
    "min.cleanable.dirty.ratio": "0.2",
    "min.compaction.lag.ms": "600000",
    "delete.retention.ms": "86400000",
}


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it stands in a topic; `timestamp` in ms, -1 where it has none."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int

    @property
    def source(self) -> tuple[str, int, int]:
        """Topic, partition and offset."""
        return (self.topic, self.partition, self.offset)

    def header(self, name: str) -> str | None:
        """Return the last value of a header as text, or None."""
        found = [value for key, value in self.headers if key == name and value is not None]
        return found[-1].decode("utf-8") if found else None

    def json(self) -> Any:
        """Return the decoded value; a missing one is a failure of the test."""
        assert self.value is not None, f"{self.source} has no value"
        return json.loads(self.value)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to be written; `partition` None leaves the choice to the client, `timestamp` None to the clock."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int | None = None
    partition: int | None = None


class Ends(NamedTuple):
    """Where a partition begins, what a committed reader may read up to, and where the log ends."""

    first: int
    stable: int
    log: int


@dataclass(frozen=True, slots=True)
class Topics:
    """The six topics of one installation."""

    input: str
    scored: str
    state: str
    result: str
    report: str
    dead_letter: str

    @classmethod
    def named(cls, prefix: str) -> Self:
        """Name all six after a prefix."""
        return cls(**{each.name: f"{prefix}.{each.name.replace('_', '-')}" for each in fields(cls)})

    @classmethod
    def fresh(cls) -> Self:
        """Name all six so that no other test has them."""
        return cls.named(f"t{uuid.uuid4().hex[:10]}")

    def environment(self) -> dict[str, str]:
        """Return the variables that tell the product these names."""
        return {f"SAFE_V0_{each.name.upper()}_TOPIC": getattr(self, each.name) for each in fields(self)}

    def outputs(self) -> tuple[str, ...]:
        """All but the input."""
        return (self.scored, self.state, self.result, self.report, self.dead_letter)


@dataclass(slots=True)
class Deliveries:
    """Where each record of a call has come to stand, in the order of the call."""

    places: list[tuple[int, int | None] | None] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def note(self, index: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        self.places[index] = (_known(message.partition()), message.offset())

    def all_places(self) -> list[tuple[int, int]]:
        """Every place; an acknowledgement that came by a retry names no offset, which is then its neighbour's."""
        assert None not in self.places, "some records were never acknowledged"
        named = [place for place in self.places if place is not None]
        forwards = _with_neighbours(named, 1)
        backwards = _with_neighbours(forwards[::-1], -1)
        places = [(partition, _known(offset)) for partition, offset in backwards[::-1]]
        assert len(set(places)) == len(places), "two records were told the same offset: one of them is lost"
        assert all(offset >= 0 for _, offset in places), "a record was acknowledged that stands nowhere"
        return places


def _with_neighbours(places: Sequence[tuple[int, int | None]], step: int) -> list[tuple[int, int | None]]:
    """Give each unknown offset the one that follows, by `step`, from the place before it in its partition."""
    last: dict[int, int] = {}
    found: list[tuple[int, int | None]] = []
    for partition, offset in places:
        known = last[partition] + step if offset is None and partition in last else offset
        if known is not None:
            last[partition] = known
        found.append((partition, known))
    return found


def _known(number: int | None) -> int:
    assert number is not None
    return number


class Outside:
    """One foreign client: creates topics, writes, reads to the end, asks for offsets."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._common: dict[str, str | int | float] = {
            "bootstrap.servers": bootstrap_servers,
            "log_level": 2,
            "reconnect.backoff.max.ms": 500,
        }
        self.admin = AdminClient(dict(self._common))
        # Kept, since a new client takes half a second to introduce itself: lent to one caller at a time.
        self._producers: dict[str, Producer] = {}
        self._readers: dict[Isolation, list[Consumer]] = {"read_committed": [], "read_uncommitted": []}
        self._members: list[tuple[str, Consumer]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for kept in (*self._readers.values(), [member for _, member in self._members]):
            for consumer in kept:
                consumer.close()
        self._readers.clear()
        self._members.clear()
        self._producers.clear()
        del self.admin

    def create_topic(self, name: str, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Make one topic and wait until its leaders are known."""
        self._create([NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(config or {}))])

    def create_contract_topics(
        self,
        topics: Topics,
        *,
        partitions: int = 8,
        replication_factor: int = 1,
        without_input: bool = False,
        input_config: Mapping[str, str] | None = None,
    ) -> None:
        """Make the six topics as the contract wants them."""
        durable = {"min.insync.replicas": str(max(1, replication_factor - 1))}
        compacted = durable | COMPACTED
        wanted = {
            topics.input: durable | dict(input_config or {}),
            topics.scored: durable | {"retention.ms": "604800000"},
            topics.state: compacted,
            topics.result: durable,
            topics.report: compacted,
            topics.dead_letter: durable | {"max.message.bytes": str(8 * 1024 * 1024), "compression.type": "zstd"},
        }
        self._create(
            [
                NewTopic(name, num_partitions=partitions, replication_factor=replication_factor, config=dict(config))
                for name, config in wanted.items()
                if not (without_input and name == topics.input)
            ]
        )

    def _create(self, wanted: list[NewTopic]) -> None:
        for future in self.admin.create_topics(wanted, operation_timeout=CALL_SECONDS).values():
            future.result(CALL_SECONDS)
        for each in wanted:
            self._await_partitions(each.topic, each.num_partitions)

    def _await_partitions(self, topic: str, count: int) -> None:
        wait_until(
            lambda: self.partitions(topic) == count,
            within_seconds=CALL_SECONDS,
            what=f"the brokers know the topic {topic} with {count} partitions",
        )

    def partitions(self, topic: str) -> int:
        """Return how many partitions with a leader a topic has, 0 where there is no such topic."""
        found = self.admin.list_topics(topic, timeout=CALL_SECONDS).topics[topic]
        return 0 if found.error else sum(1 for each in found.partitions.values() if each.leader >= 0)

    def topic_id(self, topic: str) -> str:
        """Return the id that tells a topic from a later one of the same name."""
        described = self.admin.describe_topics(TopicCollection([topic]))[topic].result(CALL_SECONDS)
        return str(described.topic_id).replace("+", "-").replace("/", "_")  # as Kafka's own tools spell it

    def add_partitions(self, topic: str, total: int) -> None:
        """Give a topic more partitions."""
        for future in self.admin.create_partitions([NewPartitions(topic, total)]).values():
            future.result(CALL_SECONDS)

    def delete_topic(self, topic: str) -> None:
        """Take a topic away, and wait until the brokers know: for a moment they still answer as if it were there."""
        for future in self.admin.delete_topics([topic]).values():
            future.result(CALL_SECONDS)
        self._await_partitions(topic, 0)

    def set_topic_config(self, topic: str, name: str, value: str) -> None:
        """Change one setting of a topic, and wait until the brokers know."""
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        for future in self.admin.incremental_alter_configs([resource]).values():
            future.result(CALL_SECONDS)
        wait_until(
            lambda: self.topic_config(topic)[name] == value,
            within_seconds=CALL_SECONDS,
            what=f"{topic} has {name}={value}",
        )

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Delete the records of a partition before an offset.

        A broker answers with a topic's new settings a moment before its log has them, and refuses until then.
        """

        def deleted() -> bool:
            try:
                for future in self.admin.delete_records([TopicPartition(topic, partition, before)]).values():
                    future.result(CALL_SECONDS)
            except KafkaException as error:
                if error.args[0].code() == KafkaError.POLICY_VIOLATION:
                    return False
                raise
            return True

        wait_until(
            deleted,
            within_seconds=CALL_SECONDS,
            what=f"{topic}/{partition} lets go, as its policy may forbid, of the records before {before}",
        )

    def topic_config(self, topic: str) -> dict[str, str]:
        """Return a topic's effective settings."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = self.admin.describe_configs([resource])[resource].result(CALL_SECONDS)
        return {name: str(entry.value) for name, entry in entries.items()}

    def produce(self, topic: str, records: Iterable[Outgoing], *, compression: str = "none") -> list[tuple[int, int]]:
        """Write records in order, wait for every acknowledgement, and return each one's partition and offset."""
        producer = self._producer(compression)
        deliveries = Deliveries()
        for index, record in enumerate(records):
            deliveries.places.append(None)
            self._send(producer, topic, record, index, deliveries)
        producer.flush(CALL_SECONDS * 4)
        assert not deliveries.failures, deliveries.failures[:3]
        return deliveries.all_places()

    def _producer(self, compression: str) -> Producer:
        if compression not in self._producers:
            choices: dict[str, str | int] = {
                "compression.type": compression,
                "enable.idempotence": True,
                # A leader that does not know yet that it leads a new topic refuses a request, and may take the next
                # one: then it takes the first, when it comes again, for one that it has, and a record is lost.
                "max.in.flight.requests.per.connection": 1,
                "linger.ms": 5,
                "message.max.bytes": 16_000_000,
            }
            self._producers[compression] = Producer(self._common | choices)
        return self._producers[compression]

    def _send(self, producer: Producer, topic: str, record: Outgoing, index: int, deliveries: Deliveries) -> None:
        chosen: dict[str, Any] = {}
        if record.partition is not None:
            chosen["partition"] = record.partition
        if record.timestamp is not None:
            chosen["timestamp"] = record.timestamp
        while True:
            try:
                producer.produce(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    on_delivery=lambda error, message: deliveries.note(index, error, message),
                    **chosen,
                )
            except BufferError:
                producer.poll(0.1)
                continue
            producer.poll(0)
            return

    def read(
        self, topic: str, *, isolation: Isolation = "read_committed", within_seconds: float = 60.0
    ) -> list[Record]:
        """Read a topic from its first record to its end, as the isolation shows it; ordered by partition and offset.

        `read_committed` ends at the last stable offset of the moment: behind an open transaction nothing is seen.
        """
        with self._reader(isolation) as reader:
            return self._read_to_end(reader, topic, within_seconds)

    @contextmanager
    def _reader(self, isolation: Isolation) -> Iterator[Consumer]:
        """Lend a consumer that reads what it is assigned; one that fails is not lent again."""
        idle = self._readers[isolation]
        reader = idle.pop() if idle else self._new_reader(isolation)
        try:
            yield reader
            reader.unassign()
        except BaseException:  # also an interrupt: what it reads next would belong to another topic
            reader.close()
            raise
        idle.append(reader)

    def _new_reader(self, isolation: Isolation) -> Consumer:
        return Consumer(
            self._common
            | {
                "group.id": "outside",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 20,
                "check.crcs": True,
            }
        )

    def _read_to_end(self, reader: Consumer, topic: str, within_seconds: float) -> list[Record]:
        # Asked by the reader itself: one that does not know the leaders yet waits half a second for them.
        unfinished = set(reader.list_topics(topic, timeout=CALL_SECONDS).topics[topic].partitions)
        assert unfinished, f"there is no topic {topic}"
        reader.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in sorted(unfinished)])
        records: list[Record] = []
        deadline = time.monotonic() + within_seconds
        trouble = None
        while unfinished:
            assert time.monotonic() < deadline, f"{topic} is not read to its end: {sorted(unfinished)} go on; {trouble}"
            for message in reader.consume(num_messages=RECORDS_A_CALL, timeout=CALL_WAITS_SECONDS):
                error = message.error()
                if error is None:
                    records.append(_record(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    unfinished.discard(_known(message.partition()))
                elif error.code() in RECOVERS:
                    trouble = error
                else:
                    raise KafkaException(error)
        return sorted(records, key=lambda record: (record.partition, record.offset))

    def ends(self, topic: str) -> dict[int, Ends]:
        """Return each partition's first offset, last stable offset and log end."""
        partitions = [TopicPartition(topic, partition) for partition in range(self.partitions(topic))]
        earliest, latest = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call] # untyped factories
        first = self._offsets(partitions, earliest, IsolationLevel.READ_UNCOMMITTED)
        # The log's end is asked for first: what is written between the two questions must not look undecided.
        log = self._offsets(partitions, latest, IsolationLevel.READ_UNCOMMITTED)
        stable = self._offsets(partitions, latest, IsolationLevel.READ_COMMITTED)
        return {at: Ends(first[at], min(stable[at], log[at]), log[at]) for at in first}

    def _offsets(
        self, partitions: Sequence[TopicPartition], spec: OffsetSpec, isolation: IsolationLevel
    ) -> dict[int, int]:
        def answered() -> dict[int, int] | None:
            asked = self.admin.list_offsets(dict.fromkeys(partitions, spec), isolation_level=isolation)
            try:
                return {partition.partition: future.result(CALL_SECONDS).offset for partition, future in asked.items()}
            except KafkaException as error:
                # A leader that has just been elected may not know it yet; the client does not call that retriable.
                if error.args[0].retriable() or error.args[0].code() in NO_LEADER_YET:
                    return None
                raise

        return wait_until(answered, within_seconds=CALL_SECONDS, what="the leaders tell where their partitions end")

    def undecided(self, topics: Iterable[str]) -> dict[Place, Ends]:
        """Return the ends of every partition in which a transaction is open at this moment."""
        return {
            (topic, partition): ends
            for topic in topics
            for partition, ends in self.ends(topic).items()
            if ends.stable < ends.log
        }

    def await_decided(self, topics: Iterable[str], *, within_seconds: float = DECIDED_SECONDS) -> None:
        """Wait until every transaction that is open now has ended."""
        left = self._left_open(self.undecided(topics), within_seconds)
        assert not left, f"not within {within_seconds:g} s: open transactions end: {left}"

    def hanging(self, topics: Iterable[str], *, within_seconds: float = DECIDED_SECONDS) -> list[str]:
        """Name every partition with a transaction that is open now and is not committed within this time.

        A worker at rest still writes reports, and forgets: each is a transaction that is open for some milliseconds.
        One that hangs is aborted by the broker after its timeout, so an abort is named too.
        """
        found = self.undecided(topics)
        left = self._left_open(found, within_seconds)
        aborted = {place: ends for place, ends in found.items() if place not in left and not self._shows(place, ends)}
        return [
            f"{topic}/{partition}: stable {ends.stable}, log end {ends.log}{then}"
            for places, then in ((left, ""), (aborted, ", then aborted"))
            for (topic, partition), ends in places.items()
        ]

    def _left_open(self, found: Mapping[Place, Ends], within_seconds: float) -> dict[Place, Ends]:
        left = dict(found)

        def none_left() -> bool:
            for topic, partition in list(left):
                if self.ends(topic)[partition].stable >= found[topic, partition].log:
                    del left[topic, partition]
            return not left

        with suppress(AssertionError):
            wait_until(none_left, within_seconds=within_seconds, what="every transaction has ended")
        return left

    def _shows(self, place: Place, ends: Ends) -> bool:
        """Whether the first record that was undecided has become visible."""
        return any(record.source == (*place, ends.stable) for record in self.read(place[0]))

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Return a group's committed offsets, without the partitions that have none."""
        known = self.admin.list_topics(topic, timeout=CALL_SECONDS).topics[topic].partitions
        asked = [TopicPartition(topic, partition) for partition in sorted(known)]

        def answered() -> list[TopicPartition] | None:
            try:
                return self._answer_of(group, asked)
            except KafkaException as error:  # the kept member may have asked a coordinator that has moved
                if error.args[0].code() in NO_COORDINATOR_YET:
                    return None
                raise

        answer = wait_until(answered, within_seconds=CALL_SECONDS, what=f"a coordinator tells the offsets of {group}")
        return {each.partition: each.offset for each in answer if each.offset >= 0}

    def _answer_of(self, group: str, asked: list[TopicPartition]) -> list[TopicPartition]:
        with self._member(group) as member:
            return member.committed(asked, timeout=CALL_SECONDS)

    @contextmanager
    def _member(self, group: str) -> Iterator[Consumer]:
        """Lend a consumer of a group that never joins; the one of the last group is kept.

        The administrative client crashes where the coordinator has just moved.
        """
        kept, self._members = self._members, []
        member = next((member for name, member in kept if name == group), None)
        for _, other in kept:
            if other is not member:
                other.close()
        if member is None:
            choices = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_uncommitted"}
            member = Consumer(self._common | choices)
        try:
            yield member
        except BaseException:  # also an interrupt: its answer may still be on its way
            member.close()
            raise
        self._members.append((group, member))

    def lag(self, group: str, topic: str) -> int:
        """Return how many offsets of a topic a group has not yet passed."""
        committed = self.committed(group, topic)
        return sum(ends.log - committed.get(partition, ends.first) for partition, ends in self.ends(topic).items())

    def members(self, group: str) -> dict[str, tuple[int, ...]]:
        """Return the group's members with the partitions that each holds."""
        found = self.admin.describe_consumer_groups([group])[group].result(CALL_SECONDS)
        return {
            each.member_id: tuple(sorted(place.partition for place in each.assignment.topic_partitions))
            for each in found.members
        }


def _record(message: Message) -> Record:
    kind, stamp = message.timestamp()
    return Record(
        topic=str(message.topic()),
        partition=_known(message.partition()),
        offset=_known(message.offset()),
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        headers=tuple((name, _bytes(value)) for name, value in _pairs(message)),
        timestamp=-1 if kind == TIMESTAMP_NOT_AVAILABLE else stamp,
    )


def _pairs(message: Message) -> Sequence[tuple[str, object]]:
    # The client types headers as whatever it accepts; what it returns is a list of pairs.
    return cast("Sequence[tuple[str, object]]", message.headers() or ())


def _bytes(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return str(value).encode()
