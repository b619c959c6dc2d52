"""What a released version left behind is taken over: its state is restored, what it scored is folded and told right.

The expected comes from the oracle, over the inputs and test cases that stand beside the records.
"""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from typing_extensions import override

from consumer.errors import Fatal
from consumer.kafka.brokers_clock import BrokersClock
from consumer.kafka.group_offsets import Committed
from consumer.kafka.subscription import Subscription
from consumer.kafka.writer import Outgoing
from consumer.telemetry.metrics import BatchGauges, Metrics
from consumer.wire.headers import SCHEMA
from consumer.worker import aggregator as aggregator_module
from consumer.worker import report_schedule
from consumer.worker.aggregator import AggregatorPartition
from consumer.worker.aggregator_state import AggregatorSettings
from consumer.worker.dead_letter_writing import DeadLetterTopic
from consumer.worker.topic_limits import TopicLimits
from tests.compatibility.frozen import GROUP, TOPICS, Frozen, load, versions
from tests.support.checker import Run, check
from tests.support.marker import Marker
from tests.support.oracle import CaseBook, Oracle, Scored
from tests.support.outside import Record

Headers = Sequence[tuple[str, bytes | None]]
SETTINGS = AggregatorSettings(
    group=GROUP,
    fingerprint="sha256:" + "0" * 64,
    configuration={},
    exactly_once=True,
    partitions=1,
    scored_topic_id=None,
    state_topic=TOPICS.state,
    result_topic=TOPICS.result,
    report_topic=TOPICS.report,
    dead_letters=DeadLetterTopic(
        TOPICS.dead_letter, 1, TopicLimits({TOPICS.dead_letter: 1_000_000}), GROUP, "of today"
    ),
    max_value_bytes=1_048_576,
    batch_ttl_seconds=7 * 86_400,
    event_time_ahead_seconds=3_600,
)
VERSIONS = versions()
Written = list[Record]


class Clock:
    """Both clocks, in the minute after the records were written; stands where the aggregator has the module `time`."""

    def __init__(self, ms: int) -> None:
        self.ms = ms
        self.seconds = 1_000.0
        self.brokers = BrokersClock(self.now_ms, self.monotonic)
        self.brokers.note(ms)

    def monotonic(self) -> float:
        return self.seconds

    def now_ms(self) -> int:
        return self.ms

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        self.ms += int(seconds * 1_000)


class Kept(Outgoing):
    """A transaction whose records a test can see."""

    def __init__(self, clock: Clock, written: Written) -> None:
        super().__init__(clock.ms)
        self._clock = clock
        self._written = written

    @override
    def append(self, topic: str, partition: int, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        offset = 1_000_000 + len(self._written)  # behind all that stands there
        self._written.append(Record(topic, partition, offset, key, value, tuple(headers), self._clock.ms))


class Empty(Subscription):
    """A subscription that nobody asks for anything: the state says where to read on."""

    def __init__(self) -> None:
        """Join nothing."""


async def taken_over(frozen: Frozen, partition: int, clock: Clock) -> Written:
    """Restore a partition and fold what was scored after its state was written; returns all that this writes."""
    rows, written = frozen.of("state", partition), list[Record]()

    async def read_state(asked: int, _end: int) -> AsyncIterator[Sequence[Any]]:
        assert asked == partition
        for row in rows:
            yield [row]

    settings = replace(SETTINGS, partitions=frozen.partitions)
    logic = AggregatorPartition(
        partition, settings, read_state, BatchGauges(1_000, lambda: True), Metrics("", ""), clock.brokers
    )
    await logic.restore(Marker())
    start = await logic.first_offset(Empty(), Committed(frozen.aggregator[partition]))
    assert start == frozen.aggregator[partition]
    records: Sequence[Any] = [record for record in frozen.of("scored", partition) if record.offset >= start]
    while records or logic.next_chore_at(at_end=False) < inf:
        clock.advance(1.0)
        outgoing = Kept(clock, written)
        taken = await logic.process(records, outgoing)
        logic.finish(outgoing, frozen.ends[partition], at_end=False)
        logic.committed(frozen.ends[partition])
        records = records[taken:]
    return written


def as_schema(frozen: Frozen, schema: int) -> Frozen:
    """The same, with another number in the header of everything internal."""

    def marked(record: Record) -> Record:
        number = ("safe.schema", str(schema).encode())
        return replace(record, headers=tuple(number if pair[0] == number[0] else pair for pair in record.headers))

    internal = {name: [marked(record) for record in frozen.records[name]] for name in ("scored", "state")}
    return replace(frozen, records={**frozen.records, **internal})


@pytest.fixture(params=VERSIONS)
def frozen(request: pytest.FixtureRequest) -> Frozen:
    """What one released version left behind."""
    return load(request.param)


@pytest.fixture
def clock(frozen: Frozen, monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock(max(record.timestamp for each in frozen.records.values() for record in each) + 1_000)
    monkeypatch.setattr(aggregator_module, "time", clock)
    monkeypatch.setattr(report_schedule, "time", clock)
    return clock


def finished(frozen: Frozen, written: Sequence[Record]) -> Run:
    """The run of the old version as today's has ended it."""

    def of(name: str) -> list[Record]:
        more = [record for record in written if record.topic == getattr(TOPICS, name)]
        return sorted([*frozen.records[name], *more], key=lambda record: (record.partition, record.offset))

    return Run(
        group=GROUP,
        topics=TOPICS,
        inputs=frozen.records["input"],
        results=of("result"),
        dead_letters=of("dead_letter"),
        reports=of("report"),
        committed=frozen.scorer,
        result_partitions=frozen.partitions,
        dead_letter_partitions=frozen.partitions,
    )


@pytest.mark.parametrize("schema", [SCHEMA, SCHEMA - 1])
async def test_every_result_and_report_is_what_the_oracle_says(schema: int, frozen: Frozen, clock: Clock) -> None:
    marked = as_schema(frozen, schema)
    written = [record for at in range(frozen.partitions) for record in await taken_over(marked, at, clock)]

    assert check(finished(frozen, written), Oracle(CaseBook(frozen.cases, narrated=False))) == []
    assert len([record for record in written if record.topic == TOPICS.result]) >= frozen.partitions


async def test_rows_of_a_newer_schema_end_the_worker_with_the_remedy(frozen: Frozen, clock: Clock) -> None:
    with pytest.raises(Fatal, match=r"written by a newer SAFE.*run the version of SAFE that wrote it"):
        await taken_over(as_schema(frozen, SCHEMA + 1), 0, clock)


async def test_a_state_that_lacks_a_row_is_refused(frozen: Frozen, clock: Clock) -> None:
    cases = [record for record in frozen.of("state", 0) if (record.key or b"").count(b"/") == 2 and record.value]
    last = {record.key: record for record in cases}
    gone = next(key for key, record in last.items() if frozen.stages[record.json()["batch_id"]] == "live")
    rows = [record for record in frozen.records["state"] if record.partition or record.key != gone]
    with pytest.raises(Fatal, match="the state topic was emptied or recreated"):
        await taken_over(replace(frozen, records={**frozen.records, "state": rows}), 0, clock)


def test_what_is_kept_has_all_that_may_be_read_differently(frozen: Frozen) -> None:
    """Else it would prove little: each kind of row, and results of each kind before and behind the state's end."""
    rows: list[tuple[bytes, Any]] = [
        (record.key or b"", None if record.value is None else json.loads(record.value))
        for record in frozen.records["state"]
    ]
    outcomes = list(map(Oracle(CaseBook(frozen.cases)).outcome, frozen.records["input"]))
    scored = [outcome for outcome in outcomes if isinstance(outcome, Scored)]
    behind = [record for record in frozen.records["scored"] if record.offset >= frozen.aggregator[record.partition]]

    assert {row["stage"] for key, row in rows if key.count(b"/") == 1 and row} == {"live", "forgetting", "forgotten"}
    assert any(row is None for _, row in rows)
    assert {key.count(b"/") for key, _ in rows} == {0, 1, 2}
    assert {outcome.label for outcome in scored} == {"Pass", "Review", "Fail"}
    assert {outcome.in_batch for outcome in scored} == {True, False}
    assert None in {outcome.run_id for outcome in scored}
    assert len(frozen.records["dead_letter"]) == len(outcomes) - len(scored) > 0
    assert {record.partition for record in behind} == set(range(frozen.partitions))
    assert no_more_than_once(scored) < len(scored)
    assert any(b"%2F" in (record.key or b"") for record in frozen.records["scored"])


def no_more_than_once(scored: Sequence[Scored]) -> int:
    """How many test cases there are, however often each was answered."""
    return len({(outcome.concern_id, outcome.batch_id, outcome.test_id) for outcome in scored})


def test_the_last_release_is_kept() -> None:
    assert "0.1.0" in VERSIONS


def test_headers_name_the_schema_and_the_group(frozen: Frozen) -> None:
    """By which whoever comes later knows what it reads."""
    seen = {
        (record.header("safe.group"), record.header("safe.schema"))
        for name in ("scored", "state")
        for record in frozen.records[name]
    }
    assert {group for group, _ in seen} == {GROUP}
    assert len(seen) == 1
