"""The aggregator's partition: restore → fold → publish → export."""

import asyncio
import gc
import json
import random
import weakref
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from structlog.testing import capture_logs
from typing_extensions import override

from consumer.case_sources.source import FoundExpectations
from consumer.errors import Contradiction, Fatal, Transient
from consumer.kafka.brokers_clock import BrokersClock
from consumer.kafka.group_offsets import Committed
from consumer.kafka.subscription import Subscription
from consumer.kafka.writer import Outgoing
from consumer.telemetry.metrics import BatchGauges, ExportedBatch, Metrics
from consumer.wire.changelog import BatchRow, InputTopic, ProgressRow
from consumer.wire.headers import SCHEMA, own_headers, says_guarded
from consumer.wire.input_event import InputEvent
from consumer.wire.keys import PROGRESS_KEY, parts_of
from consumer.wire.record import Record
from consumer.wire.scored_record import ScoredBy, decode_scored, encode_result_of, encode_scored
from consumer.worker import aggregator as aggregator_module
from consumer.worker import forgetting as forgetting_module
from consumer.worker import report_schedule
from consumer.worker.aggregator import AggregatorPartition
from consumer.worker.aggregator_state import AggregatorSettings
from consumer.worker.dead_letter_writing import DeadLetterTopic
from consumer.worker.scorer import TopicIds, scored_record
from consumer.worker.scoring_memory import EncodedScore
from consumer.worker.topic_limits import TopicLimits
from safe_core import (
    CaseScore,
    Details,
    Expectations,
    Generation,
    Label,
    Output,
    Passed,
    Scores,
    Terms,
    Vacuous,
    build_report,
    prepare,
)
from tests.support.marker import Marker

Headers = Sequence[tuple[str, bytes | None]]
GROUP = "safe-v0"
OURS = "sha256:" + "0" * 64
OTHERS = "sha256:" + "1" * 64
NOW = 1_795_291_200_000
DAY = 86_400_000
PARTITION = 3
SETTINGS = AggregatorSettings(
    group=GROUP,
    fingerprint=OURS,
    configuration={"strictAH": False},
    exactly_once=True,
    partitions=8,
    scored_topic_id=None,
    state_topic="state",
    result_topic="result",
    report_topic="report",
    dead_letters=DeadLetterTopic("dead", 4, TopicLimits({"dead": 1_000_000}), GROUP, "0.1.0"),
    max_value_bytes=1_048_576,
    batch_ttl_seconds=7 * 86_400,
    event_time_ahead_seconds=3_600,
)
FOUND = FoundExpectations(prepare(Expectations()), None, None, None, None, in_batch=True)


@dataclass
class Fetched:
    """A record as a client hands it over."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    offset: int = 0
    timestamp: int = NOW
    topic: str = "scored"
    partition: int = PARTITION


@dataclass
class Written:
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes | None]

    @property
    def document(self) -> Any:
        assert self.value is not None
        return json.loads(self.value)


class Kept(Outgoing):
    """A slice that keeps its records where a test can see them."""

    def __init__(self, share: float = 1.0) -> None:
        super().__init__(NOW, share)
        self.written: list[Written] = []
        self.note = ""
        self.most_results = 1_000

    @override
    def append(self, topic: str, partition: int, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        self.written.append(Written(topic, partition, key, value, dict(headers)))

    @property
    @override
    def is_full(self) -> bool:
        return len(self.of("result")) >= self.most_results

    def of(self, topic: str) -> list[Written]:
        return [record for record in self.written if record.topic == topic]

    def summaries(self) -> list[tuple[int, int, int, int]]:
        """Cases, Pass, Review and Fail of each result, in order."""
        found = [record.document["summary"] for record in self.of("result")]
        return [(each["total_cases"], each["pass"], each["review"], each["fail"]) for each in found]

    def document(self, key: bytes) -> Any:
        """The row that the transaction leaves under a key."""
        return orjson.loads(self.rows()[key] or b"null")

    def rows(self) -> dict[bytes | None, bytes | None]:
        """What the changelog's keys hold at the end of the transaction."""
        return {record.key: record.value for record in self.of("state")}


class Beginning(Subscription):
    """A subscription that knows where a partition begins, and no more."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    @override
    async def beginning(self, partition: int) -> int:
        return self._offset


class Clock:
    """The clocks of this process and, in `brokers`, theirs, as a test moves them.

    It stands where the aggregator has the module `time`.
    """

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.ms = NOW
        self.brokers = BrokersClock(self.now_ms, self.monotonic)
        self.brokers.note(NOW)

    def monotonic(self) -> float:
        return self.seconds

    def now_ms(self) -> int:
        return self.ms

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        self.ms += int(seconds * 1_000)


def another_process(clock: Clock, ahead_ms: int, *, brokers_ahead_ms: int = 0) -> Clock:
    """The clocks on another machine: its own is ahead of what was right, or the brokers' are by now."""
    theirs = clock.brokers.now_ms()
    clock.ms = theirs + ahead_ms
    clock.brokers = BrokersClock(clock.now_ms, clock.monotonic)
    clock.brokers.note(theirs + brokers_ahead_ms)
    return clock


SCORES: dict[Label, Scores] = {
    "Pass": Scores(1.0, 1.0, 1.0, 1.0),
    "Review": Scores(2 / 3, 1.0, 0.5, 13 / 18),
    "Fail": Scores(0.1, 0.2, 0.3, 0.2),
}


def case_of(label: Label) -> CaseScore:
    scores = SCORES[label]
    missing = () if label == "Pass" else ("fever",)
    return CaseScore(
        scores,
        Details((), missing, (), (), ()),
        Terms(3, 2, 2),
        Passed(CR=scores.CR >= 0.8, AH=scores.AH >= 0.9, AC=scores.AC >= 0.8),
        Vacuous(CR=False, AH=False, AC=False),
        empty_output=False,
        label=label,
    )


def scored(
    test_id: str,
    label: Label = "Pass",
    *,
    at: int = 0,
    offset: int = 0,
    concern: str = "S11",
    batch: str = "B",
    run: str | None = None,
    fingerprint: str = OURS,
    expected: int | None = None,
    timestamp: int = NOW,
    group: str = GROUP,
    generation: Generation = "answered",
    topic: InputTopic | None = None,
) -> Fetched:
    """A scored record; `at` and `offset` are event time and offset of its source, and `offset` is its own too."""
    value = encode_scored(
        scored_record(
            Fetched(None, b"{}", (), offset, NOW - 250, "input", 0),
            InputEvent(test_id, batch, concern, None, None, run, at, Output()),
            concern,
            replace(FOUND, expected_cases=expected),
            EncodedScore(case_of(label), encode_result_of(test_id, None, case_of(label))),
            input_matches=None,
            generation=generation,
            scored_by=ScoredBy("0.1.0", fingerprint),
            scored_at=NOW,
            topic_ids=TopicIds.of(topic),
        )
    )
    return Fetched(f"{concern}/{batch}/{test_id}".encode(), value, own_headers(group), offset, timestamp)


class Site:
    """One partition of an aggregator, its changelog, and the clocks: what a transaction wrote to `state` is kept."""

    def __init__(self, clock: Clock, rows: Sequence[Fetched] = (), **changes: Any) -> None:
        self.clock = clock
        self.state: list[Fetched] = list(rows)
        self.settings = replace(SETTINGS, **changes)
        self.metrics = Metrics("0.1.0", OURS)
        self.gauges = BatchGauges(1_000, lambda: True)
        self.next_offset = 0
        self.most_results = 1_000
        self.share = 1.0
        self.logic = self._new()

    def _new(self) -> AggregatorPartition:
        return AggregatorPartition(
            PARTITION, self.settings, self._read_state, self.gauges, self.metrics, self.clock.brokers
        )

    async def _read_state(self, partition: int, end: int) -> AsyncIterator[Sequence[Record]]:
        assert partition == PARTITION
        assert end == len(self.state) + 1  # behind the mark
        for start in range(0, len(self.state), 7):
            yield self.state[start : start + 7]

    async def restart(self) -> "Site":
        """A new owner restores."""
        self.logic.drop()
        self.logic = self._new()
        await self.logic.restore(Marker(len(self.state)))
        return self

    async def fill(self, *records: Fetched, at_end: bool = False) -> Kept:
        """Everything of a transaction but its commit."""
        outgoing = Kept(self.share)
        outgoing.most_results = self.most_results
        taken = await self.logic.process(records, outgoing)
        if taken:
            self.next_offset = records[taken - 1].offset + 1
        outgoing.note = self.logic.finish(outgoing, self.next_offset, at_end=at_end)
        return outgoing

    async def fold(self, *records: Fetched, at_end: bool = False) -> Kept:
        """One whole transaction, a moment later."""
        self.clock.advance(0.001)
        outgoing = await self.fill(*records, at_end=at_end)
        for record in outgoing.of("state"):
            self.state.append(row(record.key, record.value, offset=len(self.state)))
        self.logic.committed(self.next_offset)
        return outgoing

    def document_of(self, key: bytes) -> Any:
        """The row that the changelog has last under a key."""
        return json.loads({record.key: record.value for record in self.state}[key] or b"null")

    def exported(self) -> list[ExportedBatch]:
        return self.gauges.exported()[0]

    def count(self, name: str, **labels: str) -> float:
        families = {family.name: family for family in self.metrics.collect()}
        found = [s.value for s in families[name].samples if s.labels == labels and s.name.endswith("_total")]
        return found[0] if found else 0.0


def row(key: bytes | None, value: bytes | None, offset: int = 0, group: str = GROUP) -> Fetched:
    return Fetched(key, value, own_headers(group), offset, topic="state")


def case_row(record: Fetched) -> Fetched:
    return row(record.key, record.value)


def batch_row(
    batch: str = "B",
    *,
    cases: int = 1,
    moved: int = 1,
    reported: int = 1,
    stage: str = "live",
    at: int = NOW,
    folded_at: int | None = NOW,
) -> Fetched:
    value = BatchRow(at, cases, None, moved, reported, 0, OURS, "0.1.0", stage, folded_at and at).encode()
    return row(f"S11/{batch}".encode(), value)


def progress_row(
    next_offset: int = 9,
    partitions: int = 8,
    group: str = GROUP,
    *,
    topic_id: str | None = None,
    transactions: int | None = None,
) -> Fetched:
    progress = ProgressRow(GROUP, SCHEMA, partitions, next_offset, topic_id, transactions)
    return row(PROGRESS_KEY, progress.encode(), group=group)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(aggregator_module, "time", clock)
    monkeypatch.setattr(report_schedule, "time", clock)
    return clock


@pytest.fixture
async def site(clock: Clock) -> Site:
    return await Site(clock).restart()


# --- one slice --------------------------------------------------------------------------------------------------------


async def test_each_record_gives_a_result_with_the_summary_as_of_that_case(site: Site) -> None:
    outgoing = await site.fold(
        scored("1", "Pass", offset=0), scored("2", "Fail", offset=1), scored("3", "Review", offset=2)
    )
    assert outgoing.summaries() == [(1, 1, 0, 0), (2, 1, 0, 1), (3, 1, 1, 1)]
    assert [record.document["result"]["test_id"] for record in outgoing.of("result")] == ["1", "2", "3"]
    first = outgoing.of("result")[0]
    assert (first.partition, first.key) == (PARTITION, b"S11/B")
    assert first.headers["ce_subject"] == b"S11/B/1"
    assert first.headers["ce_source"] == b"/safe/safe-v0"


async def test_a_transaction_holds_the_rows_that_won_the_batchs_row_and_the_progress(site: Site) -> None:
    one, two = scored("1", offset=4), scored("2", offset=5, batch="C/D")
    rows = (await site.fold(one, two)).rows()
    assert rows[b"S11/B/1"] == one.value
    assert rows[b"S11/C%2FD/2"] == two.value
    assert json.loads(rows[b"S11/B"] or b"")["last_scored_at"] == NOW
    assert json.loads(rows[PROGRESS_KEY] or b"") == {
        "group": GROUP,
        "schema": SCHEMA,
        "partitions": 8,
        "next_offset": 6,
        "topic_id": None,
        "transactions": 1,
        "first_seen_at": NOW,
        "input": {"id": None, "is_in_result_ids": False, "name": "input"},
    }
    assert len(rows) == 5


async def test_an_older_output_after_a_newer_one_gets_a_result_and_moves_nothing(site: Site) -> None:
    await site.fold(scored("1", "Pass", at=20, offset=0))
    outgoing = await site.fold(scored("1", "Fail", at=10, offset=1))
    assert outgoing.summaries() == [(1, 1, 0, 0)]
    assert outgoing.of("result")[0].document["result"]["label"] == "Fail"  # the case as scored
    assert b"S11/B/1" not in outgoing.rows()


async def test_a_later_output_replaces_the_earlier_one_and_a_replay_is_counted_once(site: Site) -> None:
    await site.fold(scored("1", "Fail", at=10, offset=0))
    replay = scored("1", "Pass", at=20, offset=1)
    outgoing = await site.fold(replay, replay)
    assert outgoing.summaries() == [(1, 1, 0, 0), (1, 1, 0, 0)]
    ids = {record.headers["ce_id"] for record in outgoing.of("result")}
    assert len(ids) == 1


async def test_a_batch_is_complete_when_each_expected_case_has_a_result(site: Site) -> None:
    outgoing = await site.fold(*(scored(str(n), offset=n, expected=2) for n in range(2)))
    assert [record.document["complete"] for record in outgoing.of("result")] == [False, True]
    unknown = await site.fold(scored("1", batch="C", offset=2, expected=None))
    assert unknown.of("result")[0].document["complete"] is False


async def test_rows_of_two_runs_are_told(site: Site) -> None:
    outgoing = await site.fold(*(scored(str(n), run=f"r{n}", offset=n) for n in range(2)))
    assert [record.document["mixed_runs"] for record in outgoing.of("result")] == [False, True]
    assert outgoing.of("report")[-1].document["runs"] == {"r0": 1, "r1": 1}


async def test_a_batch_keeps_its_good_results_through_an_outage_of_the_model(site: Site) -> None:
    site.logic.show(visible=True)
    await site.fold(*(scored(str(n), at=10, offset=n) for n in range(3)))
    site.clock.advance(1)  # the next report is due
    outage = [scored(str(n), "Fail", at=20, offset=n, generation="failed") for n in range(4)]
    outgoing = await site.fold(*outage)
    assert outgoing.summaries() == [(3, 3, 0, 0)] * 3 + [(4, 3, 0, 1)]  # the last case had no answer before
    results = [record.document for record in outgoing.of("result")]
    assert [(each["generation"], each["failed_generations"]) for each in results] == [("failed", 0)] * 3 + [
        ("failed", 1)
    ]
    assert outgoing.of("report")[-1].document["failed_generations"] == 1
    cases = [key for key in outgoing.rows() if key is not None and key.startswith(b"S11/B/")]
    assert cases == [b"S11/B/3"]  # what lost is not written to the state
    (exported,) = site.exported()
    assert (exported.snapshot.failed_generations, exported.snapshot.answered_pass_ratio) == (1, 1.0)
    again = await site.fold(scored("3", "Review", at=15, offset=9))  # generated before the outage, arrived after it
    assert again.summaries() == [(4, 3, 1, 0)]
    assert again.of("result")[0].document["failed_generations"] == 0


async def test_a_row_of_an_older_version_counts_as_answered(clock: Clock) -> None:
    """It does not say whether its generation failed: it is kept until a later answer, not a failure, replaces it."""
    first = await Site(clock).restart()
    await first.fold(scored("1", "Fail", at=10, offset=0, generation="failed"))
    for record in first.state:
        record.headers = [
            (name, str(SCHEMA - 1).encode() if name == "safe.schema" else text) for name, text in record.headers
        ]
        if record.value is not None and b'"generation"' in record.value:
            document = json.loads(record.value)
            assert document.pop("generation") == "failed"
            record.value = json.dumps(document).encode()
    then = await Site(clock, first.state).restart()
    later = await then.fold(scored("1", "Fail", at=20, offset=1, generation="failed"))
    assert later.of("result")[0].document["failed_generations"] == 0
    assert (await then.fold(scored("1", "Pass", at=30, offset=2))).summaries() == [(1, 1, 0, 0)]


# --- the input topic --------------------------------------------------------------------------------------------------

BY_ID, BY_NAME = (InputTopic("one", is_in_result_ids=flag, name="input") for flag in (True, False))
UNTOLD = InputTopic(None, is_in_result_ids=False, name="input")


def remembered(outgoing: Kept) -> InputTopic | None:
    return ProgressRow.decode(outgoing.rows()[PROGRESS_KEY] or b"").input


async def test_the_progress_row_repeats_which_topic_was_scored_last_and_how(site: Site) -> None:
    assert remembered(await site.fold()) is None, "nothing was scored so far"
    assert remembered(await site.fold(scored("1", offset=1))) == UNTOLD
    assert remembered(await site.fold(scored("1", offset=4), scored("2", offset=5, topic=BY_NAME))) == BY_NAME
    assert remembered(await site.fold(scored("1", offset=6))) == BY_NAME, "an older scorer says nothing"
    assert remembered(await site.fold(scored("1", offset=7, topic=BY_ID))) == BY_ID
    await site.restart()
    await site.logic.first_offset(Beginning(0), Committed(site.next_offset, "transactions=5"))
    assert remembered(await site.fold(scored("1", offset=8))) == BY_ID


@pytest.mark.parametrize(("schema", "is_known"), [(1, True), (SCHEMA, False)])
async def test_what_an_older_version_has_scored_is_remembered_although_it_told_no_topic(
    clock: Clock, schema: int, *, is_known: bool
) -> None:
    older = ProgressRow(GROUP, schema, 8, 9)
    site = await Site(clock, [row(PROGRESS_KEY, older.encode())]).restart()
    await site.logic.first_offset(Beginning(0), None)
    assert remembered(await site.fold()) == older.last_input
    assert (older.last_input is not None) is is_known


async def test_a_result_has_the_id_that_its_scorer_decided_on(site: Site) -> None:
    outgoing = await site.fold(scored("1", offset=1, topic=BY_ID), scored("2", offset=2, topic=BY_NAME))
    shown = [(record.headers["ce_id"], record.document["source"].get("topic_id")) for record in outgoing.of("result")]
    digits = OURS.removeprefix("sha256:")[:16]
    assert shown == [(f"input@one/0/1/{digits}".encode(), "one"), (f"input/0/2/{digits}".encode(), None)]
    assert all("input_topic_id" not in record.document for record in outgoing.of("result"))


# --- event times that cannot be ---------------------------------------------------------------------------------------

HOUR = 3_600_000
IN_2062 = NOW + 36 * 365 * DAY
RECORDED = NOW - 250
"""The timestamp of the input record behind scored()."""


async def test_an_event_time_far_ahead_of_its_record_decides_nothing_for_ever(site: Site) -> None:
    await site.fold(scored("1", "Pass", at=IN_2062, offset=1))
    later = await site.fold(*(scored("1", "Fail", at=NOW + each, offset=1 + each) for each in (1, 2, 3)))
    assert later.summaries() == [(1, 0, 0, 1)] * 3
    assert site.count("safe_event_times_ahead") == 1
    assert site.count("safe_results_not_latest") == 0


async def test_the_result_says_which_event_time_counts_and_which_was_stated(site: Site) -> None:
    both = await site.fold(
        scored("1", at=IN_2062, offset=1), scored("2", at=RECORDED + HOUR, offset=2), scored("3", at=-5, offset=3)
    )
    shown = [record.document["source"] for record in both.of("result")]
    source = {"topic": "input", "partition": 0}
    assert shown == [
        {**source, "offset": 1, "event_time": RECORDED, "stated_event_time": IN_2062},
        {**source, "offset": 2, "event_time": RECORDED + HOUR},
        {**source, "offset": 3, "event_time": -5},
    ]


@pytest.mark.parametrize("schema", [SCHEMA - 1, SCHEMA])
async def test_a_row_that_was_believed_before_is_judged_when_it_is_restored(clock: Clock, schema: int) -> None:
    first = await Site(clock, event_time_ahead_seconds=10**10).restart()
    await first.fold(scored("1", "Pass", at=IN_2062, offset=1))
    lost = await first.fold(scored("1", "Fail", at=NOW + 1, offset=2))
    assert lost.summaries() == [(1, 1, 0, 0)]
    assert first.count("safe_results_not_latest") == 1
    for record in first.state:
        record.headers = [
            (name, str(schema).encode() if name == "safe.schema" else text) for name, text in record.headers
        ]
    then = await Site(clock, first.state).restart()
    won = await then.fold(scored("1", "Fail", at=NOW + 1, offset=2))
    assert won.summaries() == [(1, 0, 0, 1)]
    assert decode_scored(then.state[-3].value).source.event_time == NOW + 1
    assert then.count("safe_event_times_ahead") == 0, "what is restored was counted when it was folded"


async def test_a_row_keeps_the_time_that_was_stated(site: Site) -> None:
    """So that it is judged again when it is restored, perhaps by another setting."""
    record = scored("1", at=IN_2062, offset=1)
    assert (await site.fold(record)).rows()[record.key] == record.value


async def test_times_that_were_not_believed_are_told_at_most_a_few_times(site: Site) -> None:
    with capture_logs() as logs:
        for offset in range(20):
            await site.fold(scored("1", at=IN_2062, offset=offset), scored("2", at=IN_2062, offset=offset))
    told = [line for line in logs if line["event"] == "event times too far ahead of their records were not believed"]
    assert 1 <= len(told) <= 5
    assert (told[0]["counts"], told[0]["partition"], told[0]["log_level"]) == ({"records": 2}, PARTITION, "warning")


# --- restore ----------------------------------------------------------------------------------------------------------

labels = st.sampled_from(sorted(SCORES))
generations = st.sampled_from(["answered", "answered", "failed"])
moments = st.tuples(st.sampled_from("abcdef"), labels, st.integers(0, 5), generations)
histories = st.lists(moments, min_size=1, max_size=25)


@settings(max_examples=150)
@given(history=histories, seed=st.integers(0, 2**16), fresh_first=st.booleans())
def test_a_fold_restored_from_its_rows_in_any_order_equals_the_fold(
    history: list[tuple[str, Label, int, Generation]], seed: int, *, fresh_first: bool
) -> None:
    records = [
        scored(name, label, at=at, offset=offset, generation=generation)
        for offset, (name, label, at, generation) in enumerate(history)
    ]
    every_row = [case_row(record) for record in records]  # the losers too: compaction has not come by yet
    random.Random(seed).shuffle(every_row)
    marks = [
        batch_row(cases=len({name for name, *_ in history}), moved=len(records), reported=len(records)),
        progress_row(len(records)),
    ]

    async def both() -> None:
        folded = await Site(Clock()).restart()
        for record in records:
            await folded.fold(record)
        restored = await Site(Clock(), every_row + marks if fresh_first else marks + every_row).restart()
        assert aggregates(restored) == aggregates(folded)
        probe = scored("probe", offset=len(records))
        one, other = await folded.fold(probe), await restored.fold(probe)
        assert [each.value for each in one.of("result")] == [each.value for each in other.of("result")]

    asyncio.run(both())


def aggregates(site: Site) -> dict[str, Any]:
    """Everything that a report would say of the one batch."""
    return build_report(
        site.logic._state.batches["S11/B"].fold,
        concern_id="S11",
        batch_id="B",
        generated_at="",
        scorer_version="",
        fingerprint=None,
        configuration=None,
        expected_cases=None,
        complete=False,
    )


async def test_a_new_owner_continues_where_the_last_one_committed(site: Site) -> None:
    await site.fold(*(scored(str(n), "Fail", offset=n) for n in range(5)))
    await site.restart()
    assert (await site.fold(scored("5", offset=5))).summaries() == [(6, 1, 0, 5)]


class Client:
    """What reads a changelog; like the real one it holds itself, and is let go only where garbage is looked for."""

    def __init__(self) -> None:
        self.itself = self


async def test_restoring_again_and_again_keeps_nothing_of_the_clients_that_read(site: Site) -> None:
    """As in a worker: only the young generations are looked through, by hand."""
    await site.fold(*(scored(str(n), offset=n) for n in range(50)))
    clients: list[weakref.ref[Client]] = []
    read = site._read_state

    async def read_by_client(partition: int, end: int) -> AsyncIterator[Sequence[Record]]:
        client = Client()
        clients.append(weakref.ref(client))
        async for records in read(partition, end):
            yield records

    site._read_state = read_by_client  # type: ignore[method-assign]
    gc.collect()
    gc.disable()
    frozen = gc.get_freeze_count()
    try:
        for _ in range(200):
            await site.restart()
        gc.collect(1)
        assert len(clients) == 200
        assert [client() for client in clients if client() is not None] == []
        assert gc.get_freeze_count() == frozen
    finally:
        gc.enable()


async def test_what_was_not_committed_was_never_there(site: Site) -> None:
    await site.fold(scored("1", offset=0))
    await site.fill(scored("2", offset=1))
    await site.restart()
    assert (await site.fold(scored("3", offset=1))).summaries() == [(2, 2, 0, 0)]


async def test_a_winner_with_a_loser_behind_it_is_written_again_once(clock: Clock) -> None:
    winner, loser = scored("1", "Pass", at=20, offset=1), scored("1", "Fail", at=10, offset=0)
    rows = [case_row(winner), case_row(loser), batch_row(), progress_row()]
    site = await Site(clock, rows).restart()
    due = site.logic.next_chore_at(at_end=False)
    assert due < inf
    assert due <= clock.monotonic()
    assert (await site.fold()).rows()[b"S11/B/1"] == winner.value
    assert b"S11/B/1" not in (await site.fold()).rows()
    assert (await site.restart()).logic.next_chore_at(at_end=False) == inf


async def test_a_winner_to_be_written_again_gives_way_to_one_that_beats_it_first(clock: Clock) -> None:
    winner, loser = scored("1", "Pass", at=20, offset=1), scored("1", "Fail", at=10, offset=0)
    site = await Site(clock, [case_row(winner), case_row(loser), batch_row(), progress_row()]).restart()
    latest = scored("1", "Review", at=30, offset=2)
    assert (await site.fold(latest)).rows()[b"S11/B/1"] == latest.value


async def test_a_loser_whose_case_was_forgotten_since_is_no_trouble(clock: Clock) -> None:
    winner, loser = scored("1", "Pass", at=20, offset=1), scored("1", "Fail", at=10, offset=0)
    gone = row(b"S11/B/1", None)
    site = await Site(clock, [case_row(winner), case_row(loser), gone, batch_row(stage="forgotten")]).restart()
    assert site.logic.next_chore_at(at_end=False) == inf


BAD_ROWS: list[tuple[str, Fetched, str]] = [
    ("another group's", row(b"S11/B/1", b"{}", group="other"), "belongs to group other, this is group safe-v0"),
    ("nobody's", Fetched(b"S11/B/1", b"{}", [], topic="state"), "belongs to group unknown"),
    (
        "a newer SAFE's",
        Fetched(b"S11/B/1", b"{}", [("safe.schema", b"9"), ("safe.group", GROUP.encode())]),
        "newer SAFE",
    ),
    ("an undecodable case", row(b"S11/B/1", b"{}", offset=17), "row 17 of state/3 cannot be read"),
    ("an undecodable batch", row(b"S11/B", b"[]"), "cannot be read"),
    ("an undecodable progress", row(PROGRESS_KEY, b"null"), "cannot be read"),
    ("a key of four parts", row(b"a/b/c/d", b"{}"), "cannot be read"),
    (
        "a header's name that is not UTF-8",
        replace(progress_row(), headers=[*own_headers(GROUP), ("\udcff", b"x")]),
        "the name of a header is not UTF-8",
    ),
    ("a key that is not UTF-8", row(b"\xff/b", b"{}"), "cannot be read"),
]


@pytest.mark.parametrize(("bad", "expected"), [each[1:] for each in BAD_ROWS], ids=[each[0] for each in BAD_ROWS])
async def test_a_row_that_cannot_be_understood_is_fatal(clock: Clock, bad: Fetched, expected: str) -> None:
    for before in ([], [case_row(scored("1", "Pass", at=20, offset=1))]):
        with pytest.raises(Fatal, match=expected):
            await Site(clock, [*before, bad, *before]).restart()


# --- take-over --------------------------------------------------------------------------------------------------------


async def test_a_late_row_of_a_former_owner_does_not_set_a_batch_back(clock: Clock) -> None:
    newer = BatchRow(NOW, 0, 7, 20, 20, NOW, OURS, "0.1.0", "live")
    older = structs.replace(newer, expected_cases=5, moved=10, reported=10)
    site = await Site(clock, [row(b"S11/B", newer.encode()), row(b"S11/B", older.encode())]).restart()
    assert site.logic._state.batches["S11/B"].row == newer


# exactly once, committed offset and its note, progress row and its count, where to read on (or what is said)
Row = tuple[int, int | None]
TAKE_OVERS: list[tuple[bool, Committed | None, Row | None, int | str]] = [
    (True, None, None, 5),  # neither: the earliest record
    (True, None, (9, 4), 9),  # the offsets expired: the row knows
    (True, Committed(9, "transactions=4"), (9, 4), 9),
    (True, Committed(9), (9, None), 9),  # an older SAFE wrote both
    (True, Committed(9), (9, 4), 9),  # a person has set the offset
    (True, Committed(9, "transactions=4"), (9, None), 9),  # an older SAFE went on after a newer one
    (True, Committed(9, "by hand"), (9, 4), 9),
    (True, Committed(0), None, r"committed up to 0, but state has no progress row"),
    (True, Committed(7), None, r"committed up to 7, but state has no progress row.*Restore it from a copy, or start"),
    (True, Committed(7), (9, 4), r"committed up to 7 \(no metadata\), .* up to 9 \(transactions=4\).* Set it to 9"),
    (True, Committed(9, "transactions=3"), (9, 4), r"up to 9 \(transactions=3\), .* was set back. Set it to 9"),
    (
        True,
        Committed(11),
        (9, None),
        r"up to 11 .* up to 9 .*: state is older than the offset, .* set the group's offset to 9",
    ),
    (True, Committed(9, "transactions=5"), (9, 4), r"transactions=5\), but .*transactions=4\): state is older than"),
    (False, None, None, 5),
    (False, None, (9, 4), 9),
    (False, Committed(7, "transactions=3"), (9, 4), 7),  # what follows is folded again, and moves nothing
    (False, Committed(7), None, r"committed up to 7, but state has no progress row"),
]


@pytest.mark.parametrize(("exactly_once", "committed", "progress", "expected"), TAKE_OVERS)
async def test_taking_over_reads_on_from_where_offset_and_state_agree(
    clock: Clock, *, exactly_once: bool, committed: Committed | None, progress: Row | None, expected: int | str
) -> None:
    rows = [] if progress is None else [progress_row(progress[0], transactions=progress[1])]
    site = await Site(clock, rows, exactly_once=exactly_once).restart()
    if isinstance(expected, int):
        assert await site.logic.first_offset(Beginning(5), committed) == expected
    else:
        with pytest.raises(Fatal if progress is None else Contradiction, match=expected):
            await site.logic.first_offset(Beginning(5), committed)


async def test_the_note_of_an_offset_counts_the_transactions_as_the_row_of_its_transaction_does(site: Site) -> None:
    await site.restart()
    assert await site.logic.first_offset(Beginning(0), None) == 0
    notes = []
    for offset in range(3):
        outgoing = await site.fold(scored("1", offset=offset))
        notes.append((outgoing.note, outgoing.document(PROGRESS_KEY)["transactions"]))
    assert notes == [("transactions=1", 1), ("transactions=2", 2), ("transactions=3", 3)]
    await site.restart()
    assert await site.logic.first_offset(Beginning(0), Committed(3, "transactions=3")) == 3
    assert (await site.fold(scored("1", offset=3))).note == "transactions=4"
    await site.fill(scored("1", offset=4))  # never committed, as one that failed
    await site.restart()
    await site.logic.first_offset(Beginning(0), Committed(4, "transactions=4"))
    assert (await site.fold(scored("1", offset=4))).note == "transactions=5"


@pytest.mark.parametrize("guarded", [True, False])
async def test_the_mark_and_the_progress_row_say_whether_the_group_is_guarded(site: Site, *, guarded: bool) -> None:
    site.settings = replace(SETTINGS, guarded=guarded)
    await site.restart()
    marker = Marker(len(site.state))
    await site._new().restore(marker)
    assert says_guarded(marker.headers) is guarded
    written = (await site.fold(scored("1"))).of("state")
    assert written[-1].key == PROGRESS_KEY, "a start looks at the last records"
    assert [record.key for record in written if "safe.guard" in record.headers] == ([PROGRESS_KEY] if guarded else [])


async def test_a_restore_ends_at_a_mark_of_its_own(site: Site) -> None:
    await site.fold(scored("1"))
    marker = Marker(len(site.state))
    logic = site._new()
    await logic.restore(marker)
    assert marker.marks == [("state", PARTITION, b"mark")]


async def test_a_mark_that_was_not_aborted_means_nothing(clock: Clock) -> None:
    site = await Site(clock, [row(b"mark", None), progress_row(9), row(b"mark", None)]).restart()
    assert await site.logic.first_offset(Beginning(0), Committed(9)) == 9


# the id in the row, the id now, whether it goes on
TOPIC_IDS: list[tuple[str | None, str | None, bool]] = [
    ("one", "one", True),
    (None, "one", True),  # an older SAFE wrote the row
    ("one", None, True),  # the broker does not say
    ("one", "another", False),
]


@pytest.mark.parametrize("committed", [None, Committed(9)])
@pytest.mark.parametrize(("written", "now", "goes_on"), TOPIC_IDS)
async def test_a_topic_made_again_is_not_taken_for_the_one_that_the_state_was_written_for(
    clock: Clock, *, committed: Committed | None, written: str | None, now: str | None, goes_on: bool
) -> None:
    site = await Site(clock, [progress_row(9, topic_id=written)], scored_topic_id=now).restart()
    if goes_on:
        assert await site.logic.first_offset(Beginning(0), committed) == 9
        written_next = (await site.fold(scored("1", offset=9))).document(PROGRESS_KEY)
        assert written_next["topic_id"] == now
    else:
        with pytest.raises(Fatal, match=r"id one, .* the id another: it was deleted and created again"):
            await site.logic.first_offset(Beginning(0), committed)


@pytest.mark.parametrize("committed", [None, Committed(9)])
async def test_a_changed_number_of_partitions_is_fatal_and_names_both(
    clock: Clock, committed: Committed | None
) -> None:
    site = await Site(clock, [progress_row(9, partitions=4)]).restart()
    with pytest.raises(Fatal, match=r"written for 4 partitions .* now has 8"):
        await site.logic.first_offset(Beginning(0), committed)


# --- what does not belong here ----------------------------------------------------------------------------------------


async def test_a_record_of_another_group_is_skipped_and_counted(site: Site) -> None:
    outgoing = await site.fold(scored("1", group="other", offset=0), scored("2", offset=1))
    assert outgoing.summaries() == [(1, 1, 0, 0)]
    assert b"S11/B/1" not in outgoing.rows()
    assert site.count("safe_records", outcome="foreign") == 1


def newer(record: Fetched) -> Fetched:
    return replace(record, headers=[("safe.schema", str(SCHEMA + 1).encode()), ("safe.group", GROUP.encode())])


async def test_a_record_of_a_newer_safe_makes_the_partition_wait_after_what_came_before_it(site: Site) -> None:
    records = [scored("1", offset=0), newer(scored("2", offset=1)), scored("3", offset=2)]
    outgoing = Kept()
    assert await site.logic.process(records, outgoing) == 1
    assert outgoing.summaries() == [(1, 1, 0, 0)]
    site.logic.finish(outgoing, 1, at_end=False)
    site.logic.committed(1)
    nothing = Kept()
    with pytest.raises(Transient, match=r"written by a newer SAFE.*: roll out aggregators first"):
        await site.logic.process(records[1:], nothing)
    assert not nothing.written


async def test_a_slice_ends_where_its_outputs_are_enough_for_one_transaction(site: Site) -> None:
    outgoing = Kept()
    outgoing.most_results = 2
    assert await site.logic.process([scored(f"t{i}", offset=i) for i in range(5)], outgoing) == 2
    assert outgoing.summaries() == [(1, 1, 0, 0), (2, 2, 0, 0)]


UNDECODABLE: list[tuple[str, Fetched]] = [
    ("rubbish", replace(scored("1"), value=b"\xffpatient")),
    ("a tombstone", replace(scored("1"), value=None)),
    ("no schema", replace(scored("1"), headers=[])),
    ("too old a schema", replace(scored("1"), headers=[("safe.schema", b"-1"), ("safe.group", GROUP.encode())])),
    ("a name that is not UTF-8", replace(scored("1"), headers=[*own_headers(GROUP), ("patient\udcff", b"x")])),
    ("a forged score", replace(scored("1"), value=(scored("1").value or b"").replace(b'"CR":1.0', b'"CR":"x"'))),
]


@pytest.mark.parametrize("bad", [each[1] for each in UNDECODABLE], ids=[each[0] for each in UNDECODABLE])
async def test_a_record_that_cannot_be_decoded_is_a_dead_letter_of_the_aggregator(site: Site, bad: Fetched) -> None:
    outgoing = await site.fill(bad, scored("2", offset=1))
    (letter,) = outgoing.of("dead")
    assert (letter.partition, letter.key, letter.value) == (PARTITION % 4, bad.key, bad.value)
    assert letter.headers["safe.dlq.stage"] == b"aggregator"
    assert letter.headers["safe.dlq.reason"] == b"invalid_event"
    assert b"patient" not in (letter.headers["safe.dlq.detail"] or b"")
    assert outgoing.summaries() == [(1, 1, 0, 0)]
    assert site.count("safe_dead_letters", reason="invalid_event") == 0
    site.logic.committed(2)
    assert site.count("safe_dead_letters", reason="invalid_event") == 1
    assert site.count("safe_records", outcome="dead_lettered") == 1


async def test_a_record_whose_result_would_not_fit_is_a_dead_letter_of_the_aggregator_and_not_folded(
    clock: Clock,
) -> None:
    large = scored("1")
    limits = {"state": 1_000_000, "result": len(large.value or b"") + 16 * 1024}
    site = Site(clock, limits=TopicLimits(limits, ("state", "result")))
    assert (await site.fill(large)).summaries() == [(1, 1, 0, 0)]

    limits["result"] -= 1  # as if it were read again
    site = Site(clock, limits=TopicLimits(limits, ("state", "result")))
    outgoing = await site.fill(large)
    (letter,) = outgoing.of("dead")
    assert letter.headers["safe.dlq.reason"] == b"result_too_large"
    assert f"result accepts {limits['result']} (max.message.bytes)".encode() in (
        letter.headers["safe.dlq.detail"] or b""
    )
    assert outgoing.of("result") == []


# --- reports ----------------------------------------------------------------------------------------------------------


async def test_a_report_stands_in_the_transaction_of_what_it_reports(site: Site) -> None:
    outgoing = await site.fold(scored("1", offset=6), scored("2", "Fail", offset=7, run="r"))
    (report,) = outgoing.of("report")
    assert (report.partition, report.key) == (PARTITION, b"S11/B")
    assert report.headers["ce_id"] == b"S11/B@3/8"
    assert report.headers["ce_type"] == b"safe:v0:report"
    document = report.document
    assert document["summary"]["total_cases"] == 2
    assert document["configuration"] == {"strictAH": False}
    assert document["runs"] == {"": 1, "r": 1}
    assert "results" not in document


async def test_a_batch_is_reported_at_most_once_a_second_and_once_more_when_it_rests(site: Site) -> None:
    reported = []
    for n in range(40):
        site.clock.advance(0.1)
        outgoing = await site.fold(scored(str(n), offset=n))
        reported += [(site.clock.seconds, record) for record in outgoing.of("report")]
    moments = [moment for moment, _ in reported]
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(moments))
    assert len(moments) in {4, 5}
    due = site.logic.next_chore_at(at_end=False)
    assert due < inf
    assert due - moments[-1] == pytest.approx(1.0, abs=0.01)
    site.clock.advance(due - site.clock.seconds)
    (last,) = (await site.fold()).of("report")
    assert last.document["summary"]["total_cases"] == 40
    assert site.logic.next_chore_at(at_end=False) == inf
    site.clock.advance(60)
    assert not (await site.fold()).of("report")


async def test_reports_wait_while_there_are_results_and_the_longest_owed_comes_first(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_schedule, "_BUSY_REPORT_SHARE", 0.0)  # nothing to spare
    for offset, name in enumerate("CAB"):
        assert not (await site.fold(scored("1", batch=name, offset=offset))).of("report")
    idle = await site.fold()
    assert [report.key for report in idle.of("report")] == [b"S11/C", b"S11/A", b"S11/B"]


@pytest.mark.parametrize(("most_results", "share"), [(0, 1.0), (1_000, 0.5)], ids=["full", "slow"])
async def test_where_a_slice_is_full_or_commits_are_slow_each_transaction_has_one_report(
    site: Site, monkeypatch: pytest.MonkeyPatch, most_results: int, share: float
) -> None:
    monkeypatch.setattr(report_schedule, "_BUSY_REPORT_SHARE", 0.0)
    for offset, name in enumerate("CAB"):
        await site.fold(scored("1", batch=name, offset=offset))
    site.most_results, site.share = most_results, share
    reported = [[report.key for report in (await site.fold()).of("report")] for _ in range(3)]
    assert reported == [[b"S11/C"], [b"S11/A"], [b"S11/B"]]


async def test_a_record_that_moves_nothing_owes_no_report(site: Site) -> None:
    await site.fold(scored("1", at=20, offset=0))
    site.clock.advance(5)
    assert not (await site.fold(scored("1", "Fail", at=10, offset=1))).of("report")
    assert site.logic.next_chore_at(at_end=False) == inf


async def test_whoever_takes_over_publishes_the_report_that_is_owed_and_no_other(clock: Clock) -> None:
    rows = [
        case_row(scored("1", offset=3)),
        batch_row(moved=4, reported=2),
        batch_row("C", cases=0, moved=5, reported=5),
    ]
    site = await Site(clock, [*rows, progress_row(6)]).restart()
    due = site.logic.next_chore_at(at_end=False)
    assert due < inf
    assert due <= clock.monotonic()
    outgoing = await site.fold()
    assert [(report.key, report.headers["ce_id"]) for report in outgoing.of("report")] == [(b"S11/B", b"S11/B@3/4")]
    assert json.loads(outgoing.rows()[b"S11/B"] or b"")["reported"] == 4
    assert (await site.restart()).logic.next_chore_at(at_end=False) == inf


async def test_a_report_that_was_not_committed_is_still_owed(site: Site) -> None:
    site.clock.advance(1)
    assert (await site.fill(scored("1", offset=0))).of("report")
    await site.restart()
    assert (await site.fold(scored("1", offset=0))).of("report")


async def test_cases_of_two_configurations_are_counted_and_the_newest_is_named(site: Site) -> None:
    outgoing = await site.fold(scored("1", offset=0), scored("2", offset=1, fingerprint=OTHERS))
    document = outgoing.of("report")[-1].document
    assert document["fingerprints"] == {OURS: 1, OTHERS: 1}
    assert document["scorer"]["fingerprint"] == OTHERS
    assert document["configuration"] is None  # this process can tell its own alone


# --- forgetting -------------------------------------------------------------------------------------------------------


async def live_batch(site: Site, cases: int = 3) -> None:
    await site.fold(*(scored(str(n), offset=n) for n in range(cases)))
    site.clock.advance(2)
    await site.fold()


async def rest(site: Site, transactions: int = 10) -> list[Kept]:
    """Transactions without records at the end of the partition, until nothing more is due."""
    done = []
    for _ in range(transactions):
        due = site.logic.next_chore_at(at_end=True)
        if due > site.clock.seconds + 1:
            break
        site.clock.advance(max(0.0, due - site.clock.seconds))
        done.append(await site.fold(at_end=True))
    return done


def cases_left(site: Site) -> set[bytes]:
    """The case rows that compaction would leave."""
    last = {record.key or b"": record.value for record in site.state}
    return {key for key, value in last.items() if value is not None and len(parts_of(key)) == 3}


def stage_of(site: Site, key: bytes = b"S11/B") -> str | None:
    last = {record.key: record.value for record in site.state}.get(key)
    return None if last is None else str(json.loads(last)["stage"])


async def test_an_idle_batch_is_marked_first_and_its_rows_go_in_later_transactions(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting_module, "_FORGET_RECORDS", 2)
    await live_batch(site, cases=5)
    site.clock.advance(7 * 86_400)
    marked = await site.fold(at_end=True)
    assert stage_of(site) == "forgetting"
    assert len(cases_left(site)) == 5
    assert not marked.of("report")
    buried = await rest(site)
    assert len(buried) >= 3
    assert all(len(each.of("state")) <= 2 + 2 for each in buried)  # its rows, the batch's and the progress
    assert cases_left(site) == set()
    assert stage_of(site) == "forgotten"
    assert not any(each.of("report") or each.of("result") for each in buried)


async def test_where_commits_are_slow_fewer_rows_go_at_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting_module, "_FORGET_RECORDS", 8)
    await live_batch(site, cases=5)
    site.clock.advance(7 * 86_400)
    await site.fold(at_end=True)
    site.share = 1 / 4
    buried = await rest(site)
    assert [len(each.of("state")) for each in buried][:3] == [2 + 2, 2 + 2, 1 + 2]  # rows, the batch's and the progress
    assert cases_left(site) == set()


async def test_a_live_batch_never_loses_a_row(site: Site) -> None:
    await live_batch(site)
    site.clock.advance(7 * 86_400 - 10)
    await site.fold(at_end=True)
    assert stage_of(site) == "live"
    site.clock.advance(20)
    await site.fold(at_end=False)  # there may be a record behind that keeps it alive
    assert stage_of(site) == "live"
    last = scored("0", "Fail", at=-1, offset=9, timestamp=site.clock.ms)
    await site.fold(last, at_end=True)  # a loser shows that the batch is alive
    assert stage_of(site) == "live"
    assert len(cases_left(site)) == 3


async def test_the_chore_comes_when_the_time_to_live_is_over(site: Site) -> None:
    await live_batch(site)
    due = site.logic.next_chore_at(at_end=True)
    assert due < inf
    assert due - site.clock.seconds == pytest.approx(7 * 86_400 - 2, abs=1)
    assert site.logic.next_chore_at(at_end=False) == inf


async def test_a_batch_half_forgotten_is_not_shown_and_is_forgotten_by_whoever_restores_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting_module, "_FORGET_RECORDS", 2)
    await live_batch(site, cases=5)
    site.clock.advance(7 * 86_400)
    await site.fold(at_end=True)
    site.clock.advance(1)
    await site.fold(at_end=True)
    assert 0 < len(cases_left(site)) < 5
    await site.restart()
    site.logic.show(visible=True)
    assert site.exported() == []
    await rest(site)
    assert cases_left(site) == set()
    assert stage_of(site) == "forgotten"


@pytest.mark.parametrize("transactions", [1, 2, 9])
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_late_record_opens_a_forgotten_batch_anew_alone(
    site: Site, monkeypatch: pytest.MonkeyPatch, transactions: int, *, restarted: bool
) -> None:
    monkeypatch.setattr(forgetting_module, "_FORGET_RECORDS", 2)
    await live_batch(site, cases=5)
    site.clock.advance(7 * 86_400)
    for _ in range(transactions):
        site.clock.advance(1)
        await site.fold(at_end=True)
    if restarted:
        await site.restart()
    late = scored("0", "Fail", at=-5, offset=9, timestamp=site.clock.ms)  # older than what was forgotten: it stands
    outgoing = await site.fold(late)
    while not outgoing.summaries():  # what is left of the old batch is buried first, two rows a transaction
        assert len(outgoing.of("state")) <= 2 + len([b"S11/B", PROGRESS_KEY])
        outgoing = await site.fold(late)
    assert outgoing.summaries() == [(1, 0, 0, 1)]
    assert cases_left(site) == {b"S11/B/0"}
    assert stage_of(site) == "live"
    assert site.count("safe_batches_reopened") == 1
    await site.restart()
    assert (await site.fold(scored("9", offset=10))).summaries() == [(2, 1, 0, 1)]
    assert site.count("safe_batches_reopened") == 1


async def test_the_mark_of_a_forgotten_batch_goes_after_another_time_to_live(site: Site) -> None:
    await live_batch(site)
    site.clock.advance(7 * 86_400)
    await rest(site)
    await site.restart()
    due = site.logic.next_chore_at(at_end=True)
    assert due < inf
    site.clock.advance(due - site.clock.seconds + 1)
    await site.fold(at_end=True)
    assert {record.key: record.value for record in site.state}[b"S11/B"] is None
    assert site.logic.next_chore_at(at_end=True) == inf
    await site.fold(scored("1", offset=9))
    assert site.count("safe_batches_reopened") == 0


async def look(site: Site, *, times: int = 4) -> str | None:
    """Give the partition the chance to forget, and return what has become of the batch."""
    for _ in range(times):
        await site.fold(at_end=True)
    return stage_of(site)


@pytest.mark.parametrize("ahead_ms", [10 * DAY, 400 * DAY, -10 * DAY])
async def test_a_clock_that_is_wrong_forgets_nothing(site: Site, ahead_ms: int) -> None:
    await live_batch(site)
    site.clock.ms += ahead_ms
    assert await look(site) == "live"
    site.clock = another_process(site.clock, ahead_ms)
    await site.restart()
    assert await look(site) == "live"
    site.clock.advance(6 * 86_400)
    assert await look(site) == "live"


async def test_what_was_idle_before_a_restart_counts_by_the_brokers_time(site: Site) -> None:
    await live_batch(site)
    site.clock.advance(5 * 86_400)
    site.clock = another_process(site.clock, 10 * DAY)
    await site.restart()
    assert await look(site) == "live"
    site.clock.advance(2 * 86_400)
    assert await look(site) == "forgotten"


async def test_our_own_clock_may_object(site: Site) -> None:
    await live_batch(site)
    site.clock = another_process(site.clock, 0, brokers_ahead_ms=10 * DAY)
    await site.restart()
    assert await look(site) == "live"


async def test_where_the_brokers_time_is_not_known_only_what_this_process_has_seen_counts(clock: Clock) -> None:
    clock.brokers = BrokersClock(clock.now_ms, clock.monotonic)
    site = await Site(clock, exactly_once=False).restart()
    await live_batch(site)
    assert site.document_of(b"S11/B")["folded_at"] is None
    site.clock.advance(6 * 86_400)
    await site.restart()
    site.clock.advance(6 * 86_400)
    assert await look(site) == "live"
    site.clock.advance(86_400)
    assert await look(site) == "forgotten"


async def test_a_row_of_an_older_version_is_idle_from_when_it_was_first_seen(clock: Clock) -> None:
    rows = [case_row(scored("1", offset=3)), batch_row(moved=4, reported=4, at=NOW - 99 * DAY, folded_at=None)]
    site = await Site(clock, [*rows, progress_row(6)]).restart()
    for _ in range(6):  # a restart each day does not start the count again
        assert await look(site) == "live"
        clock.advance(86_400)
        await site.restart()
    assert site.document_of(PROGRESS_KEY)["first_seen_at"] == NOW
    clock.advance(86_400)
    assert await look(site) == "forgotten"


async def test_many_that_are_forgotten_together_are_one_line(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[tuple[str, Any]] = []

    class Log:
        def info(self, event: str, **fields: Any) -> None:
            lines.append((event, fields.get("count", fields.get("batch_id"))))

    monkeypatch.setattr(forgetting_module, "_log", Log())
    monkeypatch.setattr(forgetting_module, "_FORGET_RECORDS", 100)
    site = await Site(clock).restart()
    await site.fold(*(scored("1", batch=f"B{at}", offset=at) for at in range(300)))
    await site.fold(scored("1", batch="last", offset=300))
    await rest(site, 50)
    clock.advance(7 * 86_400)
    await rest(site, 50)
    assert lines == [("batches forgotten", 301)]
    site.clock.advance(60)
    await site.fold(scored("1", batch="again", offset=301))
    await rest(site, 50)
    clock.advance(7 * 86_400)
    await rest(site, 50)
    assert lines[1:] == [("batch forgotten", "again")]


async def test_a_report_that_is_owed_comes_before_its_batch_is_forgotten(clock: Clock) -> None:
    rows = [case_row(scored("1", offset=3)), batch_row(moved=4, reported=2, at=NOW - 8 * DAY), progress_row(6)]
    site = await Site(clock, rows).restart()
    done = await rest(site)
    assert [bool(each.of("report")) for each in done[:2]] == [True, False]
    assert stage_of(site) == "forgotten"


async def test_a_batch_that_may_not_be_reported_yet_may_not_be_forgotten_yet(clock: Clock) -> None:
    site = await Site(clock, batch_ttl_seconds=0.5).restart()
    assert (await site.fold(scored("1", offset=0))).of("report")
    last = scored("2", offset=1, timestamp=site.clock.ms)
    assert not (await site.fold(last)).of("report")
    site.clock.advance(0.7)  # idle for its time-to-live, within a second of the last report
    assert not (await site.fold(at_end=True)).of("report")
    assert stage_of(site) == "live"
    site.clock.advance(0.5)
    assert (await site.fold(at_end=True)).of("report")
    await rest(site)
    assert stage_of(site) in {"forgotten", None}


async def test_a_changelog_that_has_lost_rows_is_refused(clock: Clock) -> None:
    rows = [case_row(scored("1", offset=0)), batch_row(cases=2), progress_row()]
    with pytest.raises(Fatal, match="the state of batch S11/B has only 1 of its 2 rows"):
        await Site(clock, rows).restart()


async def test_two_owners_at_once_may_leave_rows_that_neither_has_counted(clock: Clock) -> None:
    rows = [case_row(scored("1", offset=0)), batch_row(cases=2), progress_row()]
    assert aggregates(await Site(clock, rows, exactly_once=False).restart())["total_cases"] == 1


# --- gauges and counters ----------------------------------------------------------------------------------------------


async def test_gauges_follow_the_commit_and_not_the_work(site: Site) -> None:
    site.logic.show(visible=True)
    await site.fill(scored("1", offset=0))
    assert site.exported() == []
    site.logic.committed(1)
    (shown,) = site.exported()
    assert (shown.concern_id, shown.batch_id, shown.snapshot.total_cases, shown.last_scored_at) == ("S11", "B", 1, NOW)
    await site.fill(scored("2", offset=1))
    assert [each.snapshot.total_cases for each in site.exported()] == [1]
    site.logic.committed(2)
    assert [each.snapshot.total_cases for each in site.exported()] == [2]


async def test_a_restored_partition_shows_its_batches_and_a_hidden_or_dropped_one_none(site: Site) -> None:
    await site.fold(scored("1", offset=0), scored("1", batch="C", offset=1))
    await site.restart()
    assert site.exported() == []
    site.logic.show(visible=True)
    assert {each.batch_id for each in site.exported()} == {"B", "C"}
    site.logic.show(visible=False)
    assert site.exported() == []
    site.logic.show(visible=True)
    assert len(site.exported()) == 2
    site.logic.drop()
    assert site.exported() == []


async def test_a_batch_that_is_being_forgotten_is_shown_no_more(site: Site) -> None:
    site.logic.show(visible=True)
    await live_batch(site)
    assert len(site.exported()) == 1
    site.clock.advance(7 * 86_400)
    await site.fold(at_end=True)
    assert site.exported() == []


async def test_the_way_from_input_to_result_is_measured_at_the_commit(site: Site) -> None:
    await site.fill(scored("1", offset=0))
    site.clock.advance(0.5)
    site.logic.committed(1)
    families = {family.name: family for family in site.metrics.collect()}
    measured = {s.name: s.value for s in families["safe_end_to_end_seconds"].samples if not s.labels}
    assert measured == {"safe_end_to_end_seconds_count": 1, "safe_end_to_end_seconds_sum": pytest.approx(0.75)}


async def test_a_restore_that_fails_is_counted_and_tried_again_by_whoever_asked_for_it(site: Site) -> None:
    await site.fold(scored("1"))

    async def unreachable(_partition: int, _end: int) -> AsyncIterator[Sequence[Record]]:
        yield site.state[:1]
        raise Transient("the leader is gone")

    logic = AggregatorPartition(PARTITION, site.settings, unreachable, site.gauges, site.metrics, site.clock.brokers)
    for attempt in (1, 2):
        with pytest.raises(Transient):
            await logic.restore(Marker())
        assert site.count("safe_restore_failures") == attempt
    await site.restart()
    assert site.count("safe_restore_failures") == 2
