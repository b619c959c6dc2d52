"""In which order a slice is written: every send acknowledged, then the offset, then the end; and what a doubt costs.

Each of these has cost somebody data: a broker test would see it only in a bad moment, so here it is seen every time.
"""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from aiokafka.errors import InvalidTimestampError, KafkaError, ProducerFenced
from structlog.testing import capture_logs

from consumer.errors import Fatal, PartitionLost, SafeError, Transient
from consumer.kafka import writer
from consumer.kafka.brokers_clock import BrokersClock
from consumer.kafka.connection import Connection
from consumer.kafka.writer import PlainWriter, ProducerEpoch, TransactionalWriter
from tests.support.producer import RecordingProducer

WITHIN_SECONDS = 10.0
THEIRS = 1_795_291_200_000
OURS = THEIRS - 10 * 86_400_000
HEADERS = [("safe.group", b"safe-v0")]


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> RecordingProducer:
    recording = RecordingProducer()

    async def dispose(given: Any) -> None:
        assert given is recording
        recording.steps.append("dispose")

    monkeypatch.setattr(writer, "dispose", dispose)
    return recording


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> BrokersClock:
    async def read_marker_time(_: Any, topic: str, partition: int, after: int) -> int:
        assert (topic, partition, after) == ("state", 1, 70)
        return THEIRS

    monkeypatch.setattr(writer, "read_marker_time", read_marker_time)
    return BrokersClock(own_ms=lambda: OURS)


@pytest.fixture
def transactional(producer: RecordingProducer, clock: BrokersClock) -> TransactionalWriter:
    made = TransactionalWriter(
        Connection("127.0.0.1:1", {}), "input", 3, clock,
        transactional_id="safe-v0:input:3", consumer_group="safe-v0", transaction_timeout_seconds=5.0,
    )  # fmt: skip
    made._producer = cast("Any", producer)
    return made


def plain(producer: RecordingProducer, clock: BrokersClock | None = None) -> PlainWriter:
    async def commit_offset(offset: int, note: str) -> None:
        producer.steps.append(f"offset {offset} {note!r}")

    made = PlainWriter(
        Connection("127.0.0.1:1", {}), "input", 3, clock or BrokersClock(),
        deadline_seconds=5.0, changelog="state", timed_topics=("scored", "state"), commit_offset=commit_offset,
    )  # fmt: skip
    made._producer = cast("Any", producer)
    return made


# the epochs before and after, and whether somebody else must have had the transactional id in between
EPOCHS = [
    ((7, 4), (7, 5), False),  # started again, nothing was open
    ((7, 4), (7, 6), False),  # ended what was open, or that was ended because it took too long
    ((7, 4), (7, 7), True),
    ((7, 4), (7, 12), True),
    ((7, 32_766), (8, 0), False),  # the epochs were used up: nobody can tell
]


@pytest.mark.parametrize(("before", "after", "another"), EPOCHS)
def test_epochs_tell_whether_another_producer_has_been_there(
    before: tuple[int, int], after: tuple[int, int], *, another: bool
) -> None:
    assert ProducerEpoch(*after).tells_of_another_since(ProducerEpoch(*before)) is another


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_SECONDS):
        while not condition():  # noqa: ASYNC110 - the writer offers no event for it
            await asyncio.sleep(0)


def filled(made: TransactionalWriter | PlainWriter) -> Any:
    """A slice with records for three partitions, the changelog's among them."""
    outgoing = made.outgoing(0)
    for topic, partition in (("state", 1), ("result", 1), ("report", 2), ("result", 1)):
        outgoing.append(topic, partition, b"key", b"value", HEADERS)
    return outgoing


async def test_in_a_transaction_every_send_is_acknowledged_before_the_offset_and_that_before_the_commit(
    producer: RecordingProducer, transactional: TransactionalWriter
) -> None:
    producer.acknowledge.clear()
    committing = asyncio.create_task(transactional.commit(filled(transactional), 42, "transactions=7"))
    sends = ["send report/2 x1", "send result/1 x2", "send state/1 x1"]
    await until(lambda: len(producer.steps) > len(sends))
    assert producer.steps[0] == "begin"
    assert sorted(producer.steps[1:]) == sends
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(producer.steps) == 1 + len(sends), "nothing may follow a send that is not acknowledged"
    producer.acknowledge.set()
    await committing
    acknowledged = producer.steps[4:7]
    assert sorted(acknowledged) == ["acknowledged report/2", "acknowledged result/1", "acknowledged state/1"]
    assert producer.steps[7:] == ["offset input/3 42 'transactions=7' of safe-v0", "commit"]


@pytest.mark.parametrize("step", ["begin", "send", "acknowledged", "offset", "commit"])
async def test_after_any_failed_step_nothing_is_committed_and_the_slice_is_lost(
    producer: RecordingProducer, transactional: TransactionalWriter, step: str
) -> None:
    producer.failures[step] = KafkaError("refused")
    with pytest.raises(PartitionLost, match=r"^the outputs of input: ") as lost:
        await transactional.commit(filled(transactional), 42, "")
    assert not lost.value.fenced
    assert producer.steps[-1].startswith(step)
    assert step == "commit" or "commit" not in producer.steps


async def test_a_writer_that_was_fenced_says_so(
    producer: RecordingProducer, transactional: TransactionalWriter
) -> None:
    producer.failures["commit"] = ProducerFenced()
    with pytest.raises(PartitionLost) as lost:
        await transactional.commit(filled(transactional), 42, "")
    assert lost.value.fenced


async def test_a_commit_without_doubt_keeps_the_producer(
    producer: RecordingProducer, transactional: TransactionalWriter
) -> None:
    for offset in (1, 2):
        await transactional.commit(filled(transactional), offset, "")
    assert "dispose" not in producer.steps


def lose_a_connection(made: TransactionalWriter, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - as below
    made._note_lost_connection()


def take_long(made: TransactionalWriter, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - as above
    monkeypatch.setattr(writer, "DOUBTFUL_COMMIT_SECONDS", 0.0)


Doubt = Callable[[TransactionalWriter, pytest.MonkeyPatch], None]
DOUBTS: list[Doubt] = [lose_a_connection, take_long]


@pytest.mark.parametrize("doubt", DOUBTS)
async def test_a_commit_in_doubt_is_the_last_of_its_producer(
    producer: RecordingProducer, transactional: TransactionalWriter, monkeypatch: pytest.MonkeyPatch, doubt: Doubt
) -> None:
    producer.pace.clear()
    committing = asyncio.create_task(transactional.commit(filled(transactional), 42, ""))
    await until(lambda: bool(producer.steps))
    doubt(transactional, monkeypatch)
    producer.pace.set()
    await committing
    assert producer.steps[-2:] == ["commit", "dispose"], "a second EndTxn may end the next transaction half-way"
    with pytest.raises(PartitionLost, match="the producer is gone"):
        transactional.outgoing(0)


async def test_a_mark_is_acknowledged_and_never_committed(
    producer: RecordingProducer, transactional: TransactionalWriter
) -> None:
    assert await transactional.mark("state", 1, b"mark", HEADERS) == 70
    assert producer.steps == ["begin", "send state/1 b'mark' None", "acknowledged state/1", "abort"]


async def test_a_mark_needs_no_clock_and_its_end_tells_the_brokers(
    transactional: TransactionalWriter, producer: RecordingProducer, clock: BrokersClock
) -> None:
    assert not clock.is_known
    await transactional.mark("state", 1, b"mark", HEADERS)
    assert producer.timestamps == [-1], "no broker refuses a record without a time"
    assert 0 <= clock.now_ms() - THEIRS < 60_000


async def test_the_time_is_asked_for_once_for_all_that_begin_together(
    transactional: TransactionalWriter, producer: RecordingProducer, clock: BrokersClock
) -> None:
    await transactional.learn_time("state", 1, b"mark", HEADERS)
    assert producer.steps.count("abort") == 1
    await transactional.learn_time("state", 1, b"mark", HEADERS)
    assert producer.steps.count("abort") == 1
    assert clock.is_known


@pytest.mark.parametrize("failure", [Transient("no answer"), Fatal("not authorised")])
async def test_where_the_brokers_do_not_tell_the_time_all_go_on_without_it_and_ask_once(
    transactional: TransactionalWriter, producer: RecordingProducer, clock: BrokersClock,
    monkeypatch: pytest.MonkeyPatch, failure: SafeError,
) -> None:  # fmt: skip
    asked = 0

    async def refused(*_: Any) -> int:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        raise failure

    monkeypatch.setattr(writer, "read_marker_time", refused)
    with capture_logs() as logs:
        marks = await asyncio.gather(*(transactional._learn_from_end("state", 1, 70) for _ in range(9)))
        await transactional.learn_time("state", 1, b"mark", HEADERS)
    assert (len(marks), asked, producer.steps) == (9, 1, [])
    assert (clock.is_known, clock.now_ms()) == (False, OURS)
    assert [(each["event"], each["why"]) for each in logs] == [("the brokers do not tell the time", str(failure))]


@pytest.mark.parametrize("append_time", [None, THEIRS])
async def test_without_transactions_an_acknowledgement_tells_the_time_if_the_topic_has_the_brokers(
    producer: RecordingProducer, clock: BrokersClock, append_time: int | None
) -> None:
    made = plain(producer, clock)
    producer.append_time = append_time
    await made.learn_time("scored", 1, b"mark", HEADERS)
    assert producer.steps == [], "a mark would be seen"
    await made.commit(filled(made), 42, "")
    assert clock.is_known is (append_time is not None)
    assert clock.now_ms() // 60_000 == (append_time or OURS) // 60_000


async def test_a_time_that_the_brokers_refuse_is_named(
    producer: RecordingProducer, transactional: TransactionalWriter
) -> None:
    producer.failures["acknowledged"] = InvalidTimestampError()
    with pytest.raises(PartitionLost, match="the brokers refuse the time of the records"):
        await transactional.commit(filled(transactional), 42, "")


@pytest.mark.parametrize("doubt", DOUBTS)
async def test_a_mark_in_doubt_gives_the_partition_up(
    producer: RecordingProducer, transactional: TransactionalWriter, monkeypatch: pytest.MonkeyPatch, doubt: Doubt
) -> None:
    producer.pace.clear()
    marking = asyncio.create_task(transactional.mark("state", 1, b"mark", HEADERS))
    await until(lambda: bool(producer.steps))
    doubt(transactional, monkeypatch)
    producer.pace.set()
    with pytest.raises(PartitionLost, match="may have been sent twice"):
        await marking


async def test_without_transactions_outputs_come_first_then_the_changelog_then_the_offset(
    producer: RecordingProducer,
) -> None:
    made = plain(producer)
    producer.acknowledge.clear()
    committing = asyncio.create_task(made.commit(filled(made), 42, "transactions=7"))
    await until(lambda: len(producer.steps) == 2)
    for _ in range(20):
        await asyncio.sleep(0)
    assert sorted(producer.steps) == ["send report/2 x1", "send result/1 x2"]
    producer.acknowledge.set()
    await committing
    assert producer.steps[4:] == ["send state/1 x1", "acknowledged state/1", "offset 42 'transactions=7'"]


@pytest.mark.parametrize("step", ["send", "acknowledged"])
async def test_without_transactions_too_no_offset_follows_a_failed_send(producer: RecordingProducer, step: str) -> None:
    made = plain(producer)
    producer.failures[step] = KafkaError("refused")
    with pytest.raises(PartitionLost):
        await made.commit(filled(made), 42, "")
    assert not [each for each in producer.steps if each.startswith(("offset", "send state"))]


async def test_without_transactions_a_mark_is_a_plain_record(producer: RecordingProducer) -> None:
    assert await plain(producer).mark("state", 1, b"mark", HEADERS) == 70
    assert producer.steps == ["send state/1 b'mark' None", "acknowledged state/1"]
