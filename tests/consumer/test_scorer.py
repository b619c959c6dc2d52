"""The scorer's partition: decode → find expectations → score → publish."""

import asyncio
import gc
import hashlib
import json
import time
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from structlog.testing import capture_logs
from typing_extensions import override

from consumer.case_sources.source import ExpectationsKey, FoundExpectations
from consumer.dead_letter_reasons import Poison
from consumer.errors import Transient
from consumer.files.outputs import open_outputs
from consumer.files.selection import select
from consumer.kafka.group_offsets import Committed
from consumer.kafka.partitioner import partition_for
from consumer.kafka.subscription import Subscription
from consumer.kafka.writer import Outgoing
from consumer.offline.scoring import score_files
from consumer.telemetry.metrics import Metrics
from consumer.wire.changelog import InputTopic
from consumer.wire.headers import SCHEMA
from consumer.wire.input_event import InputRules
from consumer.wire.scored_record import ScoredBy, decode_scored, row_of
from consumer.worker import scorer as scorer_module
from consumer.worker import scoring_memory
from consumer.worker.dead_letter_limit import DeadLetterLimits
from consumer.worker.dead_letter_writing import DeadLetterTopic
from consumer.worker.scorer import ScorerPartition, ScorerSettings
from consumer.worker.topic_limits import TopicLimits
from safe_core import Expectations, JudgedBy, Policy, digest_of_narrative, judged_by, prepare
from tests.support.case_files import a_case, write_batch, write_events
from tests.support.marker import Marker
from tests.support.offsets import noted

Headers = Sequence[tuple[str, bytes | None]]
NOW = 1_795_291_200_000
GROUP = "safe-v0"
WITHIN_SECONDS = 10.0
# Overrides that tell by the label which metric_id and archetype a case was scored under.
POLICY = Policy.from_document(
    {
        "overrides": {
            "metric_id": {"lenient": {"thresholds": {"CR": {"review": 0.0, "pass": 0.0}}}},
            "archetype": {"Strict_One": {"thresholds": {"CR": {"review": 1.0, "pass": 1.0}}}},
        }
    }
)
SETTINGS = ScorerSettings(
    group=GROUP,
    version="0.1.0",
    policy=POLICY,
    input_rules=InputRules(),
    input_start=None,
    expectations_grace_seconds=0,
    scored_topic="scored",
    scored_partitions=8,
    input_topic=None,
    dead_letters=DeadLetterTopic("dead", 4, TopicLimits({"dead": 8 * 1024 * 1024}), GROUP, "0.1.0"),
    dead_letter_limits=DeadLetterLimits(),
)
FOUND = FoundExpectations(
    prepare(Expectations(("fever", "sepsis", "shock"), ("blame",), ("antibiotics",))),
    concern_id="S11",
    archetype="Delay_Finder",
    metric_id=None,
    expected_cases=5,
    in_batch=True,
)
NOT_FOUND = Poison("expectations_not_found", "no batch holds the test case")
SECRET = "Zq7Xk2Wv9Jm4"  # noqa: S105 (it is none)


@dataclass
class Fetched:
    """A record as a client hands it over."""

    value: bytes | None
    offset: int = 0
    key: bytes | None = b"any"
    headers: Headers = ()
    timestamp: int = NOW - 40
    topic: str = "input"
    partition: int = 6


@dataclass
class Written:
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes | None]


class Kept(Outgoing):
    """A slice that keeps its records where a test can see them."""

    def __init__(self) -> None:
        super().__init__(NOW)
        self.written: list[Written] = []

    @override
    def append(self, topic: str, partition: int, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        self.written.append(Written(topic, partition, key, value, dict(headers)))

    @property
    def outcomes(self) -> list[str]:
        """What each record came to, in order: a label, or the reason of its dead letter."""
        return [
            str(json.loads(each.value or b"")["result"]["label"])
            if each.topic == "scored"
            else (each.headers["safe.dlq.reason"] or b"").decode()
            for each in self.written
        ]


class FullAfter(Kept):
    """A slice that so many records fill."""

    def __init__(self, records: int) -> None:
        super().__init__()
        self.most = records

    @property
    @override
    def is_full(self) -> bool:
        return len(self.written) >= self.most


class InMemoryExpectations:
    """An ExpectationsSource of one dict: answers what stands in it, NOT_FOUND otherwise."""

    name = "memory"
    requests: Mapping[str, int] = {}
    unusable: Sequence[str] = ()

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], FoundExpectations | Poison] = {}
        self.asked: list[list[ExpectationsKey]] = []
        self.transient: Transient | None = None
        self.was_asked = asyncio.Event()
        self.answering = asyncio.Event()
        self.answering.set()
        self.given_up = 0

    async def start(self) -> None:
        """Nothing to make ready."""

    async def find(self, keys: Sequence[ExpectationsKey]) -> Mapping[ExpectationsKey, FoundExpectations | Poison]:
        self.asked.append(list(keys))
        self.was_asked.set()
        try:
            await self.answering.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if self.transient is not None:
            raise self.transient
        return {key: self.answers.get((key.batch_id, key.test_id), NOT_FOUND) for key in keys}

    def trouble(self) -> str | None:
        return None

    async def stop(self) -> None:
        """Nothing to release."""


class Log(Subscription):
    """A subscription that knows where a partition begins and ends, and no more."""

    def __init__(self) -> None:
        """Nothing to connect to."""

    @override
    async def beginning(self, partition: int) -> int:
        return 5

    @override
    async def end(self, partition: int) -> int:
        return 50


class Clock:
    """Stands where the scorer has the module `time`."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def monotonic(self) -> float:
        return self.seconds

    def perf_counter(self) -> float:
        return self.seconds


class Site:
    """One partition of a scorer, and its source."""

    def __init__(self, **changes: Any) -> None:
        self.source = InMemoryExpectations()
        self.source.answers["B", "T"] = FOUND
        self.metrics = Metrics("0.1.0", POLICY.fingerprint)
        self.judged: list[Committed] = []
        self.objection: Transient | None = None
        settings = replace(SETTINGS, **changes)
        self.logic = ScorerPartition(6, settings, self.source, self.metrics, lambda: NOW, self._judge)

    async def _judge(self, partition: int, committed: Committed) -> None:
        """Judge an offset without a note."""
        assert partition == 6
        self.judged.append(committed)
        if self.objection is not None:
            raise self.objection

    async def score(self, *records: Fetched) -> Kept:
        outgoing = Kept()
        assert await self.logic.process(records, outgoing) == len(records)
        return outgoing

    def counted(self, name: str) -> dict[tuple[str, ...], float]:
        """What has been counted so far, without what is shown as 0 from the start."""
        (family,) = [family for family in self.metrics.collect() if family.name == name]
        samples = [sample for sample in family.samples if sample.name.endswith(("_total", "_count"))]
        return {tuple(sample.labels.values()): sample.value for sample in samples if sample.value}


@pytest.fixture
def site() -> Site:
    return Site()


def output(text: str = "fever, sepsis and shock; antibiotics given") -> dict[str, Any]:
    return {"signals": [], "summary": text, "followup_questions": ["when?"]}


def event(offset: int = 0, **changes: Any) -> Fetched:
    document = {"test_id": "T", "batch_id": "B", "output": output(), **changes}
    return Fetched(json.dumps(document).encode(), offset)


async def scored_document(site: Site, **changes: Any) -> Any:
    (written,) = (await site.score(event(**changes))).written
    assert written.topic == "scored", written.headers
    return json.loads(written.value or b"")


# --- what is written --------------------------------------------------------------------------------------------------


async def test_a_scored_case_goes_to_the_partition_of_its_batch(site: Site) -> None:
    record = event(offset=41, batch_id="B", concern_id="A/B", run_id="r7")
    (written,) = (await site.score(record)).written
    assert written.topic == "scored"
    assert written.partition == partition_for("A%2FB/B", 8)
    assert written.key == b"A%2FB/B/T"
    assert written.headers == {"safe.schema": str(SCHEMA).encode(), "safe.group": b"safe-v0"}
    scored = decode_scored(written.value)
    assert (scored.concern_id, scored.batch_id, scored.result.test_id, scored.expected_cases) == ("A/B", "B", "T", 5)
    assert row_of(scored).version == (True, NOW - 40, 6, 41)
    assert scored.output_digest == "sha256:" + hashlib.sha256(record.value or b"").hexdigest()
    assert scored.expectations_digest == FOUND.prepared.digest
    assert scored.scorer == ScoredBy("0.1.0", POLICY.fingerprint)
    assert scored.scored_at == NOW


# Keys and what Java's murmur2 makes of them, from the tests of Apache Kafka's own client.
MURMUR2 = [
    ("21", -973_932_308),
    ("foobar", -790_332_482),
    ("a-little-bit-long-string", -985_981_536),
    ("a-little-bit-longer-string", -1_486_304_829),
    ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
]


@pytest.mark.parametrize(("key", "hashed"), MURMUR2)
@pytest.mark.parametrize("partitions", [1, 8, 12, 1_000])
def test_a_batch_goes_where_javas_partitioner_would_send_it(key: str, hashed: int, partitions: int) -> None:
    assert partition_for(key, partitions) == (hashed & 0x7FFFFFFF) % partitions


async def test_each_record_comes_to_one_thing_in_the_order_of_the_records(site: Site) -> None:
    site.source.answers["B", "many"] = Poison("expectations_ambiguous", "held by several")
    site.source.answers["B", "bad"] = Poison("expectations_invalid", "a blank term")
    records = [
        event(0),
        Fetched(None, 1),  # ignored
        Fetched(b"{", 2),
        event(3, test_id="unknown"),
        event(4, test_id="many"),
        event(5, test_id="bad"),
        event(6, output=None),
        event(7, output=output("fever")),
    ]
    outgoing = await site.score(*records)
    assert outgoing.outcomes == [
        "Pass",
        "invalid_json",
        "expectations_not_found",
        "expectations_ambiguous",
        "expectations_invalid",
        "Fail",
        "Fail",
    ]


async def test_a_slice_asks_for_each_test_case_once_and_all_at_once(site: Site) -> None:
    await site.score(event(0), event(1), event(2, test_id="U"), Fetched(b"{", 3))
    (asked,) = site.source.asked
    assert Counter(asked) == {ExpectationsKey("B", "T"): 1, ExpectationsKey("B", "U"): 1}


OTHERS = "sha256:" + 64 * "0"


INPUT_IDS = [
    # the settings' topic, the id in the source, the id beside it
    (None, UNSET, UNSET),
    (InputTopic("one", is_in_result_ids=True), "one", UNSET),
    (InputTopic("one", is_in_result_ids=False), UNSET, "one"),
]


@pytest.mark.parametrize(("topic", "in_source", "beside"), INPUT_IDS)
async def test_a_scored_record_says_which_topic_it_came_from_and_whether_its_id_counts(
    topic: InputTopic | None, in_source: object, beside: object
) -> None:
    (written,) = (await Site(input_topic=topic).score(event(0))).written
    scored = decode_scored(written.value)
    assert (scored.source.topic_id, scored.input_topic_id) == (in_source, beside)


async def test_a_test_case_is_asked_for_with_the_narrative_of_the_output(site: Site) -> None:
    await site.score(event(0), event(1, input_digest=OTHERS), event(2, output=output("fever") | {"raw_input": "Text."}))
    (asked,) = site.source.asked
    narratives = {None, OTHERS, digest_of_narrative("Text.")}
    assert set(asked) == {ExpectationsKey("B", "T", narrative) for narrative in narratives}


async def test_a_slice_without_an_event_asks_for_nothing(site: Site) -> None:
    await site.score(Fetched(None), Fetched(b"{", 1))
    assert site.source.asked == []


async def test_no_records_come_to_nothing(site: Site) -> None:
    assert (await site.score()).written == []


# --- concern, archetype, metric_id ------------------------------------------------------------------------------------


async def test_the_concern_is_the_events_else_the_test_cases_else_the_event_is_invalid(site: Site) -> None:
    assert (await scored_document(site, concern_id="i25"))["concern_id"] == "i25"
    assert (await scored_document(site))["concern_id"] == "S11"
    site.source.answers["B", "T"] = replace(FOUND, concern_id=None)
    assert (await site.score(event())).outcomes == ["invalid_event"]
    assert (await scored_document(site, concern_id="X"))["concern_id"] == "X"


# the event's archetype, the test case's, the result's
ARCHETYPES: list[tuple[str | None, str | None, str | None]] = [
    ("Mine", "Theirs", "Mine"),
    (None, "Theirs", "Theirs"),
    ("Unknown", "Theirs", "Theirs"),  # the placeholder is none
    ("Unknown", None, None),
    (None, None, None),
    ("unknown", "Theirs", "unknown"),  # as it is spelled
]


@pytest.mark.parametrize(("in_event", "in_case", "expected"), ARCHETYPES)
async def test_the_archetype_is_the_events_else_the_test_cases(
    site: Site, in_event: str | None, in_case: str | None, expected: str | None
) -> None:
    site.source.answers["B", "T"] = replace(FOUND, archetype=in_case)
    assert (await scored_document(site, archetype=in_event))["result"]["archetype"] == expected


# what the event and the test case say, the label of an output with one of three signals
RULES: list[tuple[dict[str, str], dict[str, str], str]] = [
    ({}, {}, "Fail"),
    ({"metric_id": "lenient"}, {}, "Pass"),
    ({}, {"metric_id": "lenient"}, "Pass"),
    ({"metric_id": "other"}, {"metric_id": "lenient"}, "Fail"),  # the event's goes first
    ({"concern_id": "lenient"}, {}, "Pass"),  # metric_id defaults to the concern
    ({}, {"concern_id": "lenient"}, "Pass"),
    ({"concern_id": "lenient", "metric_id": "other"}, {}, "Fail"),
    ({"metric_id": "lenient", "archetype": "Strict_One"}, {}, "Fail"),  # archetype beats metric_id
]


@pytest.mark.parametrize(("in_event", "in_case", "label"), RULES)
async def test_a_case_is_scored_by_the_rules_of_its_metric_id_and_archetype(
    site: Site, in_event: dict[str, str], in_case: dict[str, str], label: str
) -> None:
    changes: dict[str, Any] = dict(in_case)
    site.source.answers["B", "T"] = replace(FOUND, **changes)
    document = await scored_document(site, output=output("fever; antibiotics given"), **in_event)
    assert document["result"]["label"] == label


def planted(case: Any, output: Any = None, *, concern_id: str | None = None) -> JudgedBy:  # noqa: ARG001
    return JudgedBy("K07", "lenient", "Planted")


async def test_what_judges_a_case_has_one_home_for_the_worker_and_for_files(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A change planted in judged_by() itself, under whatever names it was imported, must show on both sides."""
    said = output("fever; antibiotics given")
    case = a_case("T", ["fever", "sepsis", "shock"], ["blame"], ["antibiotics"], archetype="Delay_Finder")
    write_batch(tmp_path / "cases", "B", case)
    selection = select(tmp_path / "cases", "K07", "*")
    outputs = open_outputs(write_events(tmp_path / "run.jsonl", {"test_id": "T", "output": said}))
    site.source.answers["B", "T"] = replace(FOUND, concern_id="K07")

    async def both() -> tuple[tuple[str, str], tuple[str, str]]:
        online = (await scored_document(site, output=said))["result"]
        (offline,) = score_files(selection, [outputs], POLICY, generated_at="")[0].report["results"]
        return (online["archetype"], online["label"]), (offline["archetype"], offline["label"])

    assert await both() == (("Delay_Finder", "Fail"), ("Delay_Finder", "Fail"))
    monkeypatch.setattr(judged_by, "__code__", planted.__code__)
    assert await both() == (("Planted", "Pass"), ("Planted", "Pass"))


# --- dead letters of the scorer's own ---------------------------------------------------------------------------------


async def test_a_dead_letter_is_the_input_with_the_stage_and_without_a_word_of_it(site: Site) -> None:
    record = event(7, test_id=SECRET)
    (letter,) = (await site.score(record)).written
    assert (letter.topic, letter.partition, letter.key, letter.value) == ("dead", 6 % 4, b"any", record.value)
    assert letter.headers["safe.dlq.stage"] == b"scorer"
    assert letter.headers["safe.dlq.offset"] == b"7"
    assert not any(SECRET.encode() in (content or b"") for content in letter.headers.values())


@pytest.mark.parametrize(
    "changes",
    [
        {"test_id": " "},  # found out while decoding
        {"test_id": "nowhere"},  # by the source
        {"output": "no object"},  # while decoding, for an error of another kind
        {"output": "x" * 100_000},  # in a thread
        {"concern_id": None, "test_id": "C"},  # while scoring
    ],
)
async def test_a_record_is_let_go_with_its_slice_whatever_was_wrong_with_it(
    site: Site, changes: dict[str, Any]
) -> None:
    """Garbage is hardly ever looked for in a worker: what an exception's traceback holds on to would stay."""
    site.source.answers["B", "C"] = replace(FOUND, concern_id=None)
    record = event(**changes)
    gone = weakref.ref(record)
    gc.disable()
    try:
        (letter,) = (await site.score(record)).written
        assert letter.topic == "dead"
        del record
        deadline = time.monotonic() + WITHIN_SECONDS
        while gone() is not None:  # a thread may be about to let it go
            assert time.monotonic() < deadline
            await asyncio.sleep(0)
    finally:
        gc.enable()


async def test_no_text_of_an_output_stands_in_what_is_written(site: Site) -> None:
    outgoing = await site.score(event(output={**output(SECRET), "signals": [SECRET], "raw_input": SECRET}))
    assert not any(SECRET.encode() in (each.value or b"") for each in outgoing.written)


@pytest.mark.parametrize(("size", "outcome"), [(100_000, "Fail"), (1_040_000, "result_too_large")])
async def test_a_scored_record_that_no_topic_would_take_is_a_dead_letter(site: Site, size: int, outcome: str) -> None:
    large = prepare(Expectations(("x" * size,), (), ()))
    site.source.answers["B", "T"] = replace(FOUND, prepared=large)
    assert (await site.score(event(), event(1, test_id="U"))).outcomes == [outcome, "expectations_not_found"]


async def test_the_limit_of_a_scored_record_leaves_room_for_what_a_result_adds() -> None:
    value = (await Site().score(event())).written[0].value or b""
    fits, over = (Site(input_rules=InputRules(len(value) + 16 * 1024 - less)) for less in (0, 1))
    assert (await fits.score(event())).outcomes == ["Pass"]
    assert (await over.score(event())).outcomes == ["result_too_large"]


async def test_a_topic_that_accepts_less_than_a_value_may_have_sets_the_limit_and_is_named() -> None:
    value = (await Site().score(event())).written[0].value or b""
    for topic in ("scored", "state", "result"):
        accepts: dict[str, int] = dict.fromkeys(("scored", "state", "result"), 1_000_000)
        limits = TopicLimits(accepts, ("scored", "state", "result"))
        site = Site(limits=limits)
        accepts[topic] = len(value) + 16 * 1024
        assert (await site.score(event())).outcomes == ["Pass"]
        accepts[topic] -= 1  # as if it were read again
        over = await site.score(event())
        assert over.outcomes == ["result_too_large"]
        detail = dict(over.written[0].headers)["safe.dlq.detail"] or b""
        assert f"{topic} accepts {accepts[topic]} (max.message.bytes)".encode() in detail


async def test_a_defect_of_ours_stops_no_partition(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def defective(*_: object) -> None:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr(scoring_memory, "hits_in", defective)
    outgoing = await site.score(event(), Fetched(b"", 1))
    assert outgoing.outcomes == ["scorer_error", "empty_value"]
    detail = outgoing.written[0].headers["safe.dlq.detail"] or b""
    assert b"ZeroDivisionError" in detail
    assert SECRET.encode() not in detail


# --- waiting ----------------------------------------------------------------------------------------------------------


async def test_while_the_source_cannot_be_asked_nothing_is_decided(site: Site) -> None:
    site.source.transient = Transient("the folder is away")
    outgoing = Kept()
    with pytest.raises(Transient, match="the folder is away"):
        await site.logic.process([event(), Fetched(b"{", 1)], outgoing)
    assert outgoing.written == []
    site.source.transient = None
    assert (await site.score(event())).outcomes == ["Pass"]
    assert (await site.score(event(), Fetched(b"{", 1))).outcomes == ["Pass", "invalid_json"]


async def test_after_each_failed_look_up_a_smaller_slice_is_tried_and_after_each_good_one_a_larger(site: Site) -> None:
    records = [event(offset, test_id=f"T{offset}") for offset in range(8)]
    site.source.transient = Transient("slow")
    for _ in range(5):
        with pytest.raises(Transient):
            await site.logic.process(records, Kept())
    assert [len(keys) for keys in site.source.asked] == [8, 4, 2, 1, 1]
    site.source.transient = None
    assert [await site.logic.process(records, Kept()) for _ in range(5)] == [1, 2, 4, 8, 8]


async def test_after_an_outage_nothing_of_the_slice_is_held(site: Site) -> None:
    record, outgoing = event(), Kept()
    held: list[weakref.ref[Any]] = [weakref.ref(record), weakref.ref(outgoing)]
    site.source.transient = Transient("the service is away")
    gc.collect()
    gc.disable()
    try:
        is_away = False
        try:
            await site.logic.process([record], outgoing)
        except Transient:
            is_away = True
        del record, outgoing
        site.source.asked.clear()
        await asyncio.sleep(0)
        assert is_away
        assert [each() for each in held] == [None, None], "in a circle, it would be held for ever"
    finally:
        gc.enable()


async def test_slices_grow_again_also_where_nothing_is_looked_up(site: Site) -> None:
    await site.logic.process([event(offset) for offset in range(8)], FullAfter(1))
    rubbish = [Fetched(b"{", offset) for offset in range(8)]
    assert [await site.logic.process(rubbish, Kept()) for _ in range(5)] == [1, 2, 4, 8, 8]


async def test_a_slice_ends_where_its_outputs_are_enough_for_one_transaction(site: Site) -> None:
    records = [event(test_id=f"t{i}") for i in range(40)]
    slices = [FullAfter(5), FullAfter(100), FullAfter(100)]
    assert [await site.logic.process(records, each) for each in slices] == [5, 5, 10]
    assert [len(each.written) for each in slices] == [5, 5, 10]
    assert [len(asked) for asked in site.source.asked] == [40, 5, 10]


async def test_a_partition_that_may_be_taken_away_waits_for_no_look_up(site: Site) -> None:
    site.source.answering.clear()
    scoring = asyncio.create_task(site.logic.process([event()], Kept()))
    await site.source.was_asked.wait()
    site.logic.show(visible=False)
    with pytest.raises(Transient, match="another worker may get the partition"):
        await scoring
    assert site.source.given_up == 1
    site.source.answering.set()
    site.logic.show(visible=True)
    assert (await site.score(event())).outcomes == ["Pass"]


RUBBISH = Fetched(b"{")


async def process(site: Site, records: Sequence[Fetched]) -> int:
    """Score and commit what is taken of a slice."""
    taken = await site.logic.process(records, Kept())
    site.logic.committed(0)
    return taken


async def test_a_run_of_poison_stops_at_its_limit_and_goes_on_once_the_cause_is_mended() -> None:
    site = Site(dead_letter_limits=DeadLetterLimits(run=3))
    late = event(test_id="late")
    assert await process(site, [RUBBISH, RUBBISH, event(), RUBBISH]) == 4  # an accepted record ends a run
    assert await process(site, [RUBBISH, RUBBISH, late, late]) == 2
    for _ in range(2):  # however often it is tried
        with pytest.raises(Transient, match=r"3 dead letters in a row.*expectations_not_found"):
            await process(site, [late, late])
    site.source.answers["B", "late"] = FOUND
    assert await process(site, [late, late]) == 2
    assert site.counted("safe_dead_letters") == {("invalid_json",): 5}


async def test_a_share_of_poison_stops_once_there_are_enough_records_to_tell() -> None:
    site = Site(dead_letter_limits=DeadLetterLimits(share=0.5))
    assert await process(site, [RUBBISH] * 99) == 99
    assert await process(site, [event()] * 100) == 100
    assert await process(site, [RUBBISH] * 10) == 2  # 99 and 2 of 201 are more than half; one less is not
    with pytest.raises(Transient, match=r"101 of the last 201 records .* SAFE_V0_POISON_SHARE_LIMIT \(0\.5\)"):
        await process(site, [RUBBISH])
    assert await process(site, [event(), RUBBISH]) == 2


async def test_what_was_never_committed_counts_for_no_limit() -> None:
    site = Site(dead_letter_limits=DeadLetterLimits(run=2))
    for _ in range(3):
        assert await site.logic.process([RUBBISH, RUBBISH], Kept()) == 2
    assert await process(site, [RUBBISH, RUBBISH]) == 2


async def test_what_is_ignored_neither_ends_a_run_nor_lengthens_it() -> None:
    site = Site(dead_letter_limits=DeadLetterLimits(run=2))
    assert await process(site, [RUBBISH, Fetched(None), Fetched(None), RUBBISH, Fetched(None), RUBBISH]) == 5


async def test_within_the_grace_the_partition_waits_for_a_test_case(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(scorer_module, "time", clock)
    site = Site(expectations_grace_seconds=60)
    records = [event(0), event(1, test_id="late")]
    for seconds in (0, 30, 29.9):
        clock.seconds += seconds
        with pytest.raises(Transient, match="not there yet"):
            await site.score(*records)
    site.source.answers["B", "late"] = FOUND
    assert (await site.score(*records)).outcomes == ["Pass", "Pass"]


async def test_after_the_grace_the_test_case_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(scorer_module, "time", clock)
    site = Site(expectations_grace_seconds=60)
    with pytest.raises(Transient):
        await site.score(event(test_id="never"))
    clock.seconds += 60
    assert (await site.score(event(test_id="never"))).outcomes == ["expectations_not_found"]


async def test_the_grace_is_for_what_is_missing_and_for_nothing_else() -> None:
    site = Site(expectations_grace_seconds=60)
    site.source.answers["B", "T"] = Poison("expectations_invalid", "a blank term")
    assert (await site.score(event())).outcomes == ["expectations_invalid"]


# --- where to begin, and what is counted ------------------------------------------------------------------------------

# SAFE_V0_INPUT_START, committed offset, where to read on
STARTS: list[tuple[str | None, int | None, int]] = [
    (None, None, 5),
    ("earliest", None, 5),
    ("latest", None, 50),
    (None, 17, 17),
    ("latest", 17, 17),  # it is for a group without offsets
    ("earliest", 0, 0),
]


@pytest.mark.parametrize(("start", "committed", "expected"), STARTS)
async def test_reading_begins_at_the_committed_offset_else_as_told(
    start: str | None, committed: int | None, expected: int
) -> None:
    answer = None if committed is None else noted(committed)
    site = Site(input_start=start)
    assert await site.logic.first_offset(Log(), answer) == expected
    assert site.judged == []


NOT_SAFES = [
    Committed(17),
    Committed(17, "next_offset=16"),  # copied from another offset
    Committed(17, "next_offset=017"),
    Committed(17, "transactions=17"),
]


@pytest.mark.parametrize("committed", NOT_SAFES)
async def test_an_offset_that_safe_did_not_commit_is_judged(site: Site, committed: Committed) -> None:
    assert await site.logic.first_offset(Log(), committed) == 17
    site.objection = Transient("who was that?")
    with pytest.raises(Transient, match="who was that"):
        await site.logic.first_offset(Log(), committed)
    assert site.judged == [committed, committed]


@pytest.mark.parametrize(("start", "committed"), [("latest", None), (None, Committed(17))])
async def test_where_reading_begins_is_committed_before_any_record_is_read(
    start: str | None, committed: Committed | None
) -> None:
    site, outgoing = Site(input_start=start), Kept()
    await site.logic.first_offset(Log(), committed)
    assert site.logic.next_chore_at(at_end=False) <= time.monotonic()
    assert await site.logic.process([event(18)], outgoing) == 0
    assert outgoing.written == []
    site.logic.committed(18)
    assert site.logic.next_chore_at(at_end=False) == inf
    assert (await site.score(event(18))).outcomes == ["Pass"]


async def test_counters_move_after_the_commit_alone(site: Site) -> None:
    records = [event(0), event(1, output=None), Fetched(None, 2), Fetched(b"{", 3), event(4, test_id="U")]
    await site.score(*records)
    assert site.counted("safe_records") == {}
    assert site.counted("safe_cases") == site.counted("safe_dead_letters") == {}
    site.logic.committed(5)
    assert site.counted("safe_records") == {("scored",): 2, ("dead_lettered",): 2, ("ignored",): 1}
    assert site.counted("safe_cases") == {("S11", "Pass"): 1, ("S11", "Fail"): 1}
    assert site.counted("safe_dead_letters") == {("invalid_json",): 1, ("expectations_not_found",): 1}
    assert site.counted("safe_empty_outputs") == {("S11",): 1}
    assert site.counted("safe_scoring_seconds") == {(): 2}


async def test_keys_that_resemble_known_ones_are_counted_and_told_by_the_known_ones_alone(site: Site) -> None:
    other = {"Summary": SECRET, "event_signals": [SECRET], f"summary {SECRET}": "", f"{SECRET}_id": SECRET}
    with capture_logs() as logs:
        await site.score(
            event(0, output=other, generatedAt=SECRET), event(1, output={**other, "summary": ""}), event(2)
        )
        assert not any(site.counted("safe_misspelt_keys").values()), "not before the commit"
        site.logic.committed(3)

    assert +Counter(site.counted("safe_misspelt_keys")) == {("summary",): 2, ("signals",): 2, ("generated_at",): 1}
    (told,) = logs
    assert (told["log_level"], told["event"]) == (
        "warning",
        "scored events have keys that nothing reads, but that resemble keys that are read",
    )
    assert told["counts"] == {"summary": 2, "signals": 2, "generated_at": 1}
    assert SECRET not in str(logs)


async def test_an_output_of_another_patient_is_flagged_and_counted() -> None:
    own, other = ("sha256:" + digit * 64 for digit in "01")
    site = Site()
    site.source.answers["B", "T"] = replace(FOUND, narratives=(own,))
    taken = await site.score(event(0, input_digest=own), event(1, input_digest=other), event(2))
    assert [scored.input_matches for scored in (decode_scored(each.value) for each in taken.written)] == [
        True,
        False,
        None,
    ]
    site.logic.committed(3)
    assert site.counted("safe_input_mismatches") == {("S11",): 1}


async def test_a_failed_generation_is_scored_as_an_empty_output_and_counts_apart() -> None:
    site = Site()
    site.source.answers["B", "T"] = replace(FOUND, narratives=("sha256:" + "0" * 64,))
    error = {"summary": "ENGINE_ERROR", "error_message": "429", "signals": ["fever", "sepsis", "shock"]}
    digest = {"input_digest": "sha256:" + "1" * 64}  # another patient's, but no model read it
    taken = await site.score(event(0, output=error, **digest), event(1, output=None))
    failed, empty = (decode_scored(each.value) for each in taken.written)
    assert (failed.generation, empty.generation) == ("failed", "answered")
    assert failed.result == empty.result
    assert failed.result.label == "Fail"
    assert (failed.empty_output, failed.input_matches) == (False, None)
    assert row_of(failed).version[0] is False
    site.logic.committed(2)
    assert site.counted("safe_failed_generations") == {("S11",): 1}
    assert site.counted("safe_cases") == {("S11", "Fail"): 2}
    assert site.counted("safe_empty_outputs") == {("S11",): 1}
    assert site.counted("safe_input_mismatches") == {}


async def test_forbidden_terms_in_another_form_are_counted_by_concern_and_change_no_score() -> None:
    site = Site()
    expected = Expectations(forbidden_terms=("at fault", "standard of care"))
    site.source.answers["B", "T"] = replace(FOUND, prepared=prepare(expected))
    evading = {"followup_questions": ["Who was at\u00a0fault?", "Was the standard-of-care met?"]}
    using = {"followup_questions": ["Who was at fault?"]}
    failed = {**evading, "summary": "ENGINE_ERROR", "error_message": "429"}
    taken = await site.score(event(0, output=evading), event(1, output=using), event(2, output=failed))
    assert [decode_scored(each.value).result.scores.AH for each in taken.written[:2]] == [1.0, 0.5]
    site.logic.committed(3)
    assert site.counted("safe_near_violations") == {("S11",): 2}


async def test_a_slice_that_was_never_committed_is_never_counted(site: Site) -> None:
    await site.score(event(0), Fetched(b"{", 1))
    await site.score(event(0))
    site.logic.committed(1)
    site.logic.committed(1)
    assert site.counted("safe_records") == {("scored",): 1}
    assert site.counted("safe_dead_letters") == {}


async def test_it_learns_what_time_it_is_before_it_writes_but_not_while_it_waits_for_its_offset(site: Site) -> None:
    marker = Marker()
    await site.logic.restore(marker)
    site.objection = Transient("who was that?")
    with pytest.raises(Transient):
        await site.logic.first_offset(Log(), Committed(17))
    assert marker.marks == [], "it is taken up again and again, and each mark would stay"
    site.objection = None
    await site.logic.first_offset(Log(), Committed(17))
    assert [topic for topic, _, _ in marker.marks] == ["scored"]


async def test_a_scorer_has_no_chores_and_no_state(site: Site) -> None:
    outgoing = Kept()
    marker = Marker()
    await site.logic.restore(marker)
    assert site.logic.finish(outgoing, 7, at_end=True) == noted(7).note
    site.logic.show(visible=True)
    site.logic.drop()
    assert outgoing.written == []
    assert site.logic.next_chore_at(at_end=True) == inf
