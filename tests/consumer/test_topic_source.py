"""The compacted topic of test cases: keys and values, the look-up rule, following, and what is not decided when."""

import asyncio
import json
import tempfile
import threading
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from typing_extensions import override

from consumer.case_sources.folder import FolderSource
from consumer.case_sources.source import ExpectationsKey, ExpectationsSource, FoundExpectations
from consumer.case_sources.topic import FIRST_REST_SECONDS, NAMED_AT_ONCE, Table, TopicSource
from consumer.case_sources.topic_index import RECORD_BYTES, InvalidKey, TopicIndex, record_key
from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError, Fatal, Transient
from consumer.kafka.connection import Connection
from consumer.kafka.table_reader import TableReader
from consumer.wire.keys import batch_key, case_key
from safe_core import digest_of_narrative
from tests.support.case_files import a_case
from tests.support.tables import SUITE, InMemoryTopic, Log, StoredRecord

PATIENCE_SECONDS = 30.0
SHORT_SECONDS = 0.05
"""The patience of a test that expects it to end."""
Json = Any


def value(document: Json) -> bytes:
    return json.dumps(document).encode()


def whole(*entries: Json) -> bytes:
    """A whole batch file."""
    return value({"test_cases": entries})


def put(topic: InMemoryTopic, batch_id: str, *entries: Json, concern: str = "K07") -> None:
    """Write the record of each test case."""
    for entry in entries:
        topic.put(case_key(concern, batch_id, entry["test_id"]), value(entry))


class Clock:
    """A monotonic clock that stands still but for what is slept on it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


class HeldClock(Clock):
    """A clock on which rests are not over before they are let go; short ones are."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = asyncio.Event()

    @override
    async def sleep(self, seconds: float) -> None:
        if seconds >= FIRST_REST_SECONDS / 2:
            await self.let_go.wait()
        await super().sleep(seconds)


@asynccontextmanager
async def following(
    topic: InMemoryTopic, clock: Clock | None = None, *, patience_seconds: float = PATIENCE_SECONDS
) -> AsyncIterator[TopicSource]:
    """A source that has been started."""
    clock = clock or Clock()
    source = TopicSource("cases", topic.table(), clock=clock, sleep=clock.sleep, patience_seconds=patience_seconds)
    await source.start()
    source._patience_seconds = PATIENCE_SECONDS
    try:
        yield source
    finally:
        await source.stop()


async def waited_in_vain(source: TopicSource, batch_id: str, test_id: str, match: str) -> None:
    """Ask for a key that cannot be answered now."""
    source._patience_seconds = SHORT_SECONDS
    with pytest.raises(Transient, match=match):
        await asked(source, batch_id, test_id)
    source._patience_seconds = PATIENCE_SECONDS


async def asked(source: TopicSource, batch_id: str, test_id: str) -> FoundExpectations | Poison:
    key = ExpectationsKey(batch_id, test_id)
    return (await source.find([key]))[key]


async def found(source: TopicSource, batch_id: str, test_id: str) -> FoundExpectations:
    answer = await asked(source, batch_id, test_id)
    assert isinstance(answer, FoundExpectations), answer
    return answer


async def refused(source: TopicSource, batch_id: str, test_id: str) -> Poison:
    answer = await asked(source, batch_id, test_id)
    assert isinstance(answer, Poison), answer
    return answer


def signals(answer: FoundExpectations) -> tuple[str, ...]:
    return answer.prepared.expectations.must_find_signals


async def until(condition: Callable[[], bool]) -> None:
    """Let the source go on until something holds."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the source's tasks need the turns
            await asyncio.sleep(0)


# --- the reader in memory is like the real one ------------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", SUITE, ids=lambda behaviour: behaviour.__name__)
async def test_the_topic_in_memory_behaves_as_the_real_one(behaviour: Callable[[Table, Log], Awaitable[None]]) -> None:
    topic = InMemoryTopic()
    await behaviour(topic.table(), topic)


def test_the_source_and_the_reader_fulfil_their_protocols() -> None:
    table: Table = TableReader(Connection("127.0.0.1:1", {}), "cases")
    source: ExpectationsSource = TopicSource("cases", table)
    assert source.name == "topic"


# --- keys -------------------------------------------------------------------------------------------------------------


@given(st.lists(st.text("aZ9 %/é25F", min_size=1).filter(lambda text: not text.isspace()), min_size=2, max_size=3))
def test_a_key_is_read_as_it_was_written(parts: list[str]) -> None:
    written = batch_key(*parts) if len(parts) == 2 else case_key(*parts)
    assert record_key(written.encode()) == (*parts, None)[:3]


BAD_KEYS: list[tuple[bytes | None, str]] = [
    (None, "neither"),  # no key at all
    (b"", "neither"),
    (b"K07", "neither"),
    (b"K07/b/t/more", "neither"),  # a slash that should have been escaped
    (b"\xff/b/t", "not UTF-8"),
    (b"/b/t", "a concern that is empty"),
    (b"K07//t", "a batch that is empty"),
    (b"K07/b/ ", "a test that is blank"),
    (b"K07/b/" + b"t" * 257, "a test that is longer than 256"),
    (b"K07/b/\x00", "control character"),
    (b"K07/50%/t", "not escaped"),  # compaction would take it for another key than K07/50%25/t
    (b"K07/a%2fb/t", "not escaped"),
]


@pytest.mark.parametrize(("key", "why"), BAD_KEYS)
async def test_a_key_that_names_nothing_is_named_and_harms_nobody(key: bytes | None, why: str) -> None:
    topic = InMemoryTopic()
    put(topic, "asthma_1", a_case("A-1"))
    topic.put(key, value(a_case("t")))
    with pytest.raises(InvalidKey, match=why):
        record_key(key)
    with capture_logs() as logs:
        async with following(topic) as source:
            assert signals(await found(source, "asthma_1", "A-1")) == ("wheeze",)
            assert len(source.unusable) == 1
    assert [entry["why"] for entry in logs if "key" in entry] != []


# --- the look-up rule -------------------------------------------------------------------------------------------------


async def test_a_test_case_is_found_by_batch_and_test_id_before_all_others() -> None:
    topic = InMemoryTopic()
    put(topic, "asthma_1", a_case("A-1", ["wheeze"]), a_case("A-2"))
    put(topic, "asthma_2", a_case("A-1", ["stridor"], archetype="Safety_Signal", metric_id="asthma"))
    async with following(topic) as source:
        first, second = await found(source, "asthma_1", "A-1"), await found(source, "asthma_2", "A-1")

    assert (signals(first), first.archetype, first.metric_id, first.expected_cases) == (("wheeze",), None, None, 2)
    assert (signals(second), second.concern_id, second.archetype) == (("stridor",), "K07", "Safety_Signal")
    assert (second.metric_id, second.expected_cases, second.in_batch) == ("asthma", 1, True)


async def test_another_batch_answers_where_all_agree_and_the_first_file_name_gives_the_archetype() -> None:
    topic = InMemoryTopic()
    put(topic, "golden", a_case("A-1", archetype="Third"))
    put(topic, "asthma", a_case("A-1", archetype="Second"))
    put(topic, "asthma-9", a_case("A-1", archetype="First"))  # "asthma-9.json" stands before "asthma.json"
    put(topic, "other", a_case("A-9"))
    async with following(topic) as source:
        unknown, known = await found(source, "nightly", "A-1"), await found(source, "other", "A-1")

    assert (unknown.archetype, unknown.expected_cases, unknown.in_batch) == ("First", None, False)
    assert (known.archetype, known.expected_cases, known.in_batch) == ("First", 1, False)


async def test_the_concern_of_a_key_serves_where_the_test_case_names_none() -> None:
    topic = InMemoryTopic()
    put(topic, "b", a_case("A-1", concern_id=None), a_case("A-2", concern_id="k08"), concern="K07")
    topic.put("K09/w", whole(a_case("A-3", concern_id=None), a_case("A-4", concern_id="K10")))
    async with following(topic) as source:
        concerns = [
            (await found(source, *key)).concern_id for key in (("b", "A-1"), ("b", "A-2"), ("w", "A-3"), ("w", "A-4"))
        ]

    assert concerns == ["K07", "k08", "K09", "K10"]


# What one batch holds of A-1, as key and entry, and what a look-up says.
TWICE: list[tuple[str, list[tuple[str, Json]], str | None, int | None]] = [
    # two concerns, the same expectations: the first concern's
    (
        "equal under two concerns",
        [("K08/b/A-1", a_case("A-1", archetype="Two")), ("K07/b/A-1", a_case("A-1", archetype="One"))],
        "One",
        1,
    ),
    # the whole file stands before its single cases
    (
        "equal in a file and by itself",
        [
            ("K07/b/A-1", a_case("A-1", archetype="Two")),
            ("K07/b", {"test_cases": [a_case("A-1", archetype="One"), a_case("A-2"), a_case("A-2"), {}]}),
        ],
        "One",
        3,
    ),
    # two concerns that expect different things
    (
        "different under two concerns",
        [("K08/b/A-1", a_case("A-1", ["x"])), ("K07/b/A-1", a_case("A-1", ["y"]))],
        "expectations_ambiguous",
        None,
    ),
    # as after a change of form: the file must be taken away first
    (
        "different in a file and by itself",
        [("K07/b/A-1", a_case("A-1", ["x"])), ("K07/b", {"test_cases": [a_case("A-1", ["y"])]})],
        "expectations_ambiguous",
        None,
    ),
    # nobody knows whether the bad one would agree
    (
        "once bad",
        [("K08/b/A-1", a_case("A-1", [" "])), ("K07/b/A-1", a_case("A-1"))],
        "expectations_invalid",
        None,
    ),
    # nobody knows what the unreadable file holds
    (
        "beside a file that cannot be read",
        [("K08/b", ["no object"]), ("K07/b/A-1", a_case("A-1"))],
        "expectations_invalid",
        None,
    ),
]


@pytest.mark.parametrize(("records", "said", "expected"), [row[1:] for row in TWICE], ids=[row[0] for row in TWICE])
async def test_what_a_batch_holds_twice_is_one_case_or_no_guess(
    records: list[tuple[str, Json]], said: str, expected: int | None
) -> None:
    for order in (records, records[::-1]):
        topic = InMemoryTopic()
        for key, document in order:
            topic.put(key, value(document))
        async with following(topic) as source:
            answer = await asked(source, "b", "A-1")
            from_elsewhere = await asked(source, "nightly", "A-1")
        if isinstance(answer, Poison):
            assert isinstance(from_elsewhere, Poison)
            assert (answer.reason, from_elsewhere.reason) == (said, said)
        else:
            assert isinstance(from_elsewhere, FoundExpectations)
            assert (answer.archetype, answer.expected_cases, from_elsewhere.archetype) == (said, expected, said)


async def test_what_records_of_a_batch_say_differently_is_decided_by_the_narrative() -> None:
    topic = InMemoryTopic()
    topic.put("K08/b/A-1", value(a_case("A-1", ["x"], patient_payload="He wheezes.")))
    topic.put(
        "K07/b", value({"test_cases": [a_case("A-1", ["y"], patient_payload="She wheezes."), a_case("A-1", ["z"])]})
    )
    async with following(topic) as source:
        for batch in ("b", "nightly"):
            keys = [
                ExpectationsKey(batch, "A-1", digest_of_narrative(text)) for text in ("He wheezes.", "They wheeze.")
            ]
            his, theirs = (await source.find(keys)).values()
            assert isinstance(his, FoundExpectations)
            assert signals(his) == ("x",)
            assert isinstance(theirs, Poison)
            assert theirs.reason == "expectations_ambiguous"


async def test_one_key_in_two_partitions_is_two_records() -> None:
    topic = InMemoryTopic([[], []])
    topic.put("K07/b/A-1", value(a_case("A-1", ["x"])), partition=0)
    topic.put("K07/b/A-1", value(a_case("A-1", ["y"])), partition=1)
    async with following(topic) as source:
        assert (await refused(source, "b", "A-1")).reason == "expectations_ambiguous"
        topic.put("K07/b/A-1", None, partition=0)
        assert signals(await found(source, "b", "A-1")) == ("y",)


# A value under K07/b/A-1, and the words for it.
UNUSABLE: list[tuple[bytes, str]] = [
    (b"", "not valid JSON"),
    (b"{", "not valid JSON (line 1, column 2)"),
    (b"\xff", "not UTF-8"),
    (b"[" * 5_000, "not JSON that can be read"),
    (b"[]", "is not an object"),
    (b"null", "is not an object"),
    (value({"expectations": {}}), "test_id is missing"),
    (value(a_case("A-2")), "test_id is not that of its key"),
    (value({"test_id": "A-1"}), "expectations are absent or null"),
    (value(a_case("A-1", [" "])), "signal_generation.must_find_signals[0] is blank"),
    (value(a_case("A-1", pad="x" * RECORD_BYTES)), f"larger than {RECORD_BYTES} bytes"),
]


@pytest.mark.parametrize(("raw", "why"), UNUSABLE, ids=[row[1] for row in UNUSABLE])
async def test_a_record_that_cannot_be_used_harms_its_own_test_case_alone_until_it_is_replaced(
    raw: bytes, why: str
) -> None:
    topic = InMemoryTopic()
    put(topic, "b", a_case("A-2"))
    topic.put("K07/b/A-1", raw)
    with capture_logs() as logs:
        async with following(topic) as source:
            poison = await refused(source, "b", "A-1")
            from_elsewhere = await refused(source, "nightly", "A-1")
            other = await found(source, "b", "A-2")
            named = source.unusable
            put(topic, "b", a_case("A-1"))
            await until(lambda: not source.unusable)
            assert (await found(source, "b", "A-1")).expected_cases == 2

    assert (poison.reason, from_elsewhere.reason) == ("expectations_invalid", "expectations_invalid")
    assert why in poison.detail
    assert (named, other.expected_cases) == (("K07/b",), 2)  # what a metric names holds no test_id
    assert [entry["key"] for entry in logs if entry["log_level"] == "warning"] == ["K07/b/A-1"]


async def test_a_whole_batch_that_cannot_be_read_makes_its_own_look_ups_invalid_also_after_a_restart() -> None:
    topic = InMemoryTopic()
    topic.put("K07/b", whole(a_case("A-1")))
    put(topic, "other", a_case("A-1"))
    async with following(topic) as source:
        await found(source, "b", "A-1")
        topic.put("K07/b", b'{"test_cases": [')
        await until(lambda: source.unusable == ("K07/b",))
        here = await refused(source, "b", "A-1")
        elsewhere = await found(source, "nightly", "A-1")
    async with following(topic) as source:
        after_a_restart = await refused(source, "b", "A-1")

    assert here.reason == after_a_restart.reason == "expectations_invalid"
    assert here.detail == after_a_restart.detail
    assert elsewhere.expected_cases is None


async def test_an_unusable_record_is_told_of_once_and_again_if_it_was_mended_in_between() -> None:
    topic = InMemoryTopic()
    put(topic, "b", a_case("A-1"))
    with capture_logs() as logs:

        def told() -> list[str]:
            return [entry["key"] for entry in logs if entry["log_level"] == "warning"]

        async with following(topic) as source:
            topic.put("K07/b/A-1", b"{")
            await until(lambda: told() == ["K07/b/A-1"])
            topic.put("K07/b/A-2", b"{")
            await until(lambda: told()[1:] == ["K07/b/A-2"])
            topic.put("K07/b/A-1", b"{")
            put(topic, "b", a_case("A-3"))
            await found(source, "b", "A-3")
            assert told() == ["K07/b/A-1", "K07/b/A-2"]
            put(topic, "b", a_case("A-1"), a_case("A-4"))
            await found(source, "b", "A-4")
            topic.put("K07/b/A-1", b"{")
            await until(lambda: told()[2:] == ["K07/b/A-1"])
            topic.put("no key", b"{}")
            await until(lambda: source.unusable == ("K07/b", "no usable key"))
            assert told()[3:] == ["no key"]


async def test_many_unusable_records_do_not_flood_the_log() -> None:
    topic = InMemoryTopic()
    for number in range(60):
        topic.put(f"K07/b/A-{number:02}", b"{")
    put(topic, "b", a_case("A-99"))
    with capture_logs() as logs:
        async with following(topic) as source:
            await found(source, "b", "A-99")

    warnings = [entry for entry in logs if entry["log_level"] == "warning"]
    assert len(warnings) == NAMED_AT_ONCE + 1
    assert warnings[-1]["records"] == 60 - NAMED_AT_ONCE


async def test_no_detail_repeats_the_key_or_a_term() -> None:
    batch_id, test_id, term = "sk-live-4242", "ghp-secret", "Frau Huber, 42"
    topic = InMemoryTopic()
    put(topic, batch_id, a_case(test_id, [term, " "]), a_case("A-1", [term]))
    put(topic, batch_id, a_case("A-1", [term, term]), concern="K08")
    topic.put("K07/w", whole(a_case("A-2", [term]), a_case("A-2")))
    topic.put(b"\xff/" + term.encode(), b"{")
    async with following(topic) as source:
        keys = [(batch_id, test_id), (batch_id, "A-1"), ("w", "A-2"), (batch_id, "A-3")]
        poisons = [await refused(source, *key) for key in keys]

    for poison in poisons:
        assert len(poison.detail.encode()) <= 512
        assert not any(secret in poison.detail for secret in (batch_id, test_id, term, "A-1", "A-2", "A-3"))


async def test_every_key_of_a_slice_is_answered_and_counted() -> None:
    topic = InMemoryTopic()
    put(topic, "a", a_case("A-1"), a_case("A-2", [" "]), a_case("A-3", ["p"]))
    put(topic, "a", a_case("A-3", ["q"]), concern="K08")
    async with following(topic) as source:
        keys = [ExpectationsKey("a", f"A-{number}") for number in (1, 2, 3, 4, 1)]
        answers = await source.find(keys)

    assert answers.keys() == set(keys)
    assert source.requests == {"found": 2, "invalid": 1, "ambiguous": 1, "not_found": 1, "transient": 0}


# --- as a folder would answer -----------------------------------------------------------------------------------------

TEST_IDS = ("A-1", "A-2", "A/3", "A%4")
BATCH_IDS = ("asthma", "asthma-9", "a/b%")
ENTRIES = st.builds(
    lambda test_id, terms, archetype, concern: a_case(
        test_id, list(terms), concern_id=concern, **({} if archetype is None else {"archetype": archetype})
    ),
    st.sampled_from(TEST_IDS),
    st.sampled_from([("wheeze",), ("stridor",), ("stridor", "wheeze"), (" ",), ()]),
    st.sampled_from([None, "Unknown", "Handover_Reviewer", "Consent_Checker"]),
    st.sampled_from(["K07", "K08"]),
)
ODD_ENTRIES = st.sampled_from([{}, "rubbish", {"test_id": "A-1"}, {"test_id": "\x00"}, a_case(" ")])


@settings(max_examples=150)
@given(
    st.dictionaries(
        st.sampled_from([name for name in BATCH_IDS if "/" not in name]),
        st.tuples(st.booleans(), st.lists(st.one_of(ENTRIES, ODD_ENTRIES), max_size=6)),
    )
)
def test_every_look_up_is_answered_as_by_a_folder_of_the_same_batches(
    batches: Mapping[str, tuple[bool, Sequence[Json]]],
) -> None:
    """Whole batch files stand for any list of entries, single records for distinct test_ids."""

    async def both() -> None:
        topic = InMemoryTopic()
        with tempfile.TemporaryDirectory() as folder:
            for name, (is_whole, entries) in batches.items():
                ids = [entry.get("test_id") if isinstance(entry, dict) else None for entry in entries]
                singly = not is_whole and set(ids) <= set(TEST_IDS) and len(set(ids)) == len(ids) > 0
                if singly:
                    put(topic, name, *entries)
                else:
                    topic.put(batch_key("K07", name), whole(*entries))
                (Path(folder) / f"{name}.json").write_bytes(whole(*entries))
            folder_source = FolderSource(folder, wall=lambda: 1e12)
            await folder_source.start()
            keys = [ExpectationsKey(batch, test) for batch in (*BATCH_IDS, "nightly") for test in (*TEST_IDS, "none")]
            expected = await folder_source.find(keys)
            async with following(topic) as source:
                answers = await source.find(keys)
        assert {key: told(answer) for key, answer in answers.items()} == {
            key: told(answer) for key, answer in expected.items()
        }

    asyncio.run(both())


def told(answer: FoundExpectations | Poison) -> object:
    return answer.reason if isinstance(answer, Poison) else answer


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["K07", "K08"]),
            st.sampled_from(BATCH_IDS),
            st.sampled_from([*TEST_IDS, None]),
            st.sampled_from(["good", "other", "bad", "tombstone"]),
        ),
        max_size=25,
    )
)
def test_an_index_that_was_followed_equals_one_that_was_read_after_compaction(
    writes: Sequence[tuple[str, str, str | None, str]],
) -> None:
    records = [_record(offset, *write) for offset, write in enumerate(writes)]
    latest = {record.key: record for record in records}
    compacted = [record for record in latest.values() if record.value is not None]

    followed, read_at_once = TopicIndex(), TopicIndex()
    for record in records:
        followed.fold([record])
    read_at_once.fold(sorted(compacted, key=lambda record: record.offset))

    keys = [ExpectationsKey(batch, test) for batch in (*BATCH_IDS, "nightly") for test in TEST_IDS]
    for key in keys:
        one, other = followed.find(key), read_at_once.find(key)
        assert (str(one) if isinstance(one, Poison) else one) == (str(other) if isinstance(other, Poison) else other)
        assert followed.expected_cases(key.batch_id) == read_at_once.expected_cases(key.batch_id)
        assert followed.holds(key) == read_at_once.holds(key)
    assert followed.survey({}).batches == read_at_once.survey({}).batches
    assert (len(followed), followed.batches) == (len(read_at_once), read_at_once.batches)


def _record(offset: int, concern: str, batch: str, test: str | None, kind: str) -> StoredRecord:
    key = batch_key(concern, batch) if test is None else case_key(concern, batch, test)
    terms = ["wheeze"] if kind == "good" else ["stridor"]
    entry = a_case(test or "A-1", terms, concern_id=concern)
    raw = value(entry) if test is not None else whole(entry, a_case("A-2"), {})
    values = {"bad": b"{", "tombstone": None}
    return StoredRecord(0, offset, key.encode(), values.get(kind, raw))


# --- following --------------------------------------------------------------------------------------------------------


async def test_a_changed_test_case_and_a_tombstone_are_followed() -> None:
    topic = InMemoryTopic()
    put(topic, "b", a_case("A-1", ["wheeze"]), a_case("A-2"))
    async with following(topic) as source:
        before = await found(source, "b", "A-1")
        put(topic, "b", a_case("A-1", ["stridor"]))
        await until(lambda: source._positions == {0: 3})
        after = await found(source, "b", "A-1")
        topic.put("K07/b/A-1", None)
        await until(lambda: source._positions == {0: 4})
        gone, left = await refused(source, "b", "A-1"), await found(source, "b", "A-2")

    assert (signals(before), signals(after)) == (("wheeze",), ("stridor",))
    assert (gone.reason, left.expected_cases) == ("expectations_not_found", 1)


async def test_what_is_not_found_is_decided_only_by_what_stood_there_after_the_call() -> None:
    topic = InMemoryTopic()
    put(topic, "b", a_case("A-1"))
    async with following(topic) as source:
        await found(source, "b", "A-1")
        put(topic, "b", a_case("A-2"))  # the source has not had a turn to read it

        assert (await found(source, "b", "A-2")).expected_cases == 2


async def test_what_another_batch_holds_is_decided_only_by_what_stood_there_after_the_call() -> None:
    topic = InMemoryTopic()
    put(topic, "golden", a_case("A-1", ["wheeze"]))
    async with following(topic) as source:
        await found(source, "golden", "A-1")
        put(topic, "nightly", a_case("A-1", ["stridor"]))

        answer = await found(source, "nightly", "A-1")
        put(topic, "another", a_case("A-1", ["stridor"]))

        assert (signals(answer), answer.in_batch) == (("stridor",), True)
        assert (await refused(source, "third", "A-1")).reason == "expectations_ambiguous"


async def test_what_another_batch_holds_is_not_kept_from_a_call_that_could_not_ask_for_the_end() -> None:
    topic = InMemoryTopic()
    put(topic, "golden", a_case("A-1"))
    async with following(topic) as source:
        topic.is_away = True
        for _ in range(2):
            with pytest.raises(Transient):
                await asked(source, "nightly", "A-1")
        topic.is_away = False
        await found(source, "nightly", "A-1")


async def test_callers_share_the_question_for_the_end_and_what_is_known_asks_none() -> None:
    topic, clock = InMemoryTopic(), Clock()
    put(topic, "b", a_case("A-1"))
    async with following(topic, clock) as source:
        asked_before = topic.asked
        await asyncio.gather(*(refused(source, "b", f"B-{number}") for number in range(50)))
        assert topic.asked - asked_before <= 2
        moment, asked_before = clock.now, topic.asked
        for number in range(5):
            await refused(source, "b", f"C-{number}")
        assert topic.asked - asked_before == 5
        assert clock.now - moment >= 4 * 0.2 - 1e-9
        await found(source, "b", "A-1")
        asked_before = topic.asked
        for _ in range(100):
            await found(source, "b", "A-1")
        assert topic.asked == asked_before


async def test_a_change_forgets_the_answers_of_its_batch_and_no_others() -> None:
    topic = InMemoryTopic()
    put(topic, "a", a_case("A-1"))
    put(topic, "b", a_case("B-1"))
    async with following(topic) as source:
        kept, dropped = await found(source, "a", "A-1"), await found(source, "b", "B-1")
        elsewhere = await found(source, "nightly", "A-1")
        put(topic, "b", a_case("B-2"))
        await until(lambda: source._positions == {0: 3})

        assert await found(source, "a", "A-1") is kept
        again = await found(source, "b", "B-1")
        assert (again is dropped, again.expected_cases) == (False, 2)
        assert await found(source, "nightly", "A-1") is not elsewhere


# --- transactions -----------------------------------------------------------------------------------------------------


async def test_a_batch_in_an_open_transaction_is_waited_for_and_then_seen_whole() -> None:
    topic = InMemoryTopic()
    put(topic, "a", a_case("A-1"))
    async with following(topic) as source:
        transaction = topic.begin()
        for number in range(10):  # more than one slice
            transaction.put(f"K07/b/B-{number}", value(a_case(f"B-{number}")))
        await waited_in_vain(source, "b", "B-0", "a transaction is open")
        assert signals(await found(source, "a", "A-1")) == ("wheeze",)
        assert source.trouble() is None
        waiting = asyncio.create_task(found(source, "b", "B-0"))
        await asyncio.sleep(0)
        transaction.commit()

        assert (await waiting).expected_cases == 10


async def test_no_part_of_a_transaction_is_ever_seen() -> None:
    topic = InMemoryTopic()
    put(topic, "b", a_case("B-0"))
    seen: set[int | None] = set()
    async with following(topic) as source:
        for size in range(1, 12):
            transaction = topic.begin()
            for number in range(size * 7):
                transaction.put(f"K07/b/B-{number}", value(a_case(f"B-{number}", [f"s{size}"])))
            transaction.commit()
            end = len(topic.partitions[0])
            while source._positions != {0: end}:
                answers = await source.find(
                    [ExpectationsKey("b", "B-0"), ExpectationsKey("b", "B-6")][: 1 + (size > 1)]
                )
                seen |= {answer.expected_cases for answer in answers.values() if isinstance(answer, FoundExpectations)}
                assert (
                    len({signals(answer) for answer in answers.values() if isinstance(answer, FoundExpectations)}) == 1
                )
                await asyncio.sleep(0)

    assert seen <= {1, *(size * 7 for size in range(1, 12))}


async def test_an_aborted_transaction_leaves_nothing_and_holds_nobody_up() -> None:
    topic = InMemoryTopic()
    put(topic, "a", a_case("A-1"))
    transaction = topic.begin()
    transaction.put("K07/b/B-1", value(a_case("B-1")))
    transaction.abort()
    async with following(topic) as source:
        assert (await refused(source, "b", "B-1")).reason == "expectations_not_found"
        assert source.trouble() is None


# --- the start --------------------------------------------------------------------------------------------------------


async def test_nothing_is_answered_until_the_topic_has_been_read_to_its_end() -> None:
    topic = InMemoryTopic()
    put(topic, "a", a_case("A-1"))
    transaction = topic.begin()
    transaction.put("K07/a/A-2", value(a_case("A-2")))
    put(topic, "a", a_case("A-3"))
    async with following(topic, patience_seconds=SHORT_SECONDS) as source:
        reading = "reading the test cases of cases: 1 records so far, held up by an open transaction"
        assert source.trouble() == reading
        await waited_in_vain(source, "a", "A-1", "records so far")
        transaction.commit()

        assert (await found(source, "a", "A-1")).expected_cases == 3
        assert source.trouble() is None
        assert source.requests["transient"] == 1


async def test_a_missing_topic_stops_the_start_with_its_name_and_the_remedy() -> None:
    topic = InMemoryTopic()
    topic.delete()

    with pytest.raises(ConfigurationError, match=r"cases is missing: `safe topics create`.*`safe publish-cases`"):
        async with following(topic):
            pass


async def test_what_no_waiting_helps_stops_the_start_and_a_running_service() -> None:
    topic = InMemoryTopic(failure=Fatal("not authorised for topic cases: grant READ"))
    with pytest.raises(Fatal, match="not authorised"):
        async with following(topic, HeldClock()):
            pass

    put(topic, "a", a_case("A-1"))
    async with following(topic, HeldClock()) as source:
        await found(source, "a", "A-1")
        topic.failure = Fatal("not authorised for topic cases: grant READ")
        await until(lambda: source._fatal is not None)
        with pytest.raises(Fatal, match="not authorised"):
            await asked(source, "a", "A-1")


async def test_brokers_that_are_away_at_the_start_are_waited_for() -> None:
    topic = InMemoryTopic(is_away=True)
    put(topic, "a", a_case("A-1"))
    async with following(topic, patience_seconds=SHORT_SECONDS) as source:
        assert source.trouble() == "the test cases of cases cannot be read: no answer about topic cases: TimeoutError"
        await waited_in_vain(source, "a", "A-1", "cannot be read")
        topic.is_away = False

        await until(lambda: source.trouble() is None)
        await found(source, "a", "A-1")


async def test_an_empty_topic_is_warned_of() -> None:
    with capture_logs() as logs:
        async with following(InMemoryTopic()) as source:
            assert (await refused(source, "a", "A-1")).reason == "expectations_not_found"

    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == ["the topic of test cases is empty"]


async def test_stopping_twice_and_before_the_start_is_fine() -> None:
    source = TopicSource("cases", InMemoryTopic().table())
    await source.stop()
    await source.start()
    await source.stop()
    await source.stop()


# --- outages ----------------------------------------------------------------------------------------------------------


async def test_while_the_brokers_are_away_what_is_known_is_answered_and_nothing_else_decided() -> None:
    topic, clock = InMemoryTopic(), Clock()
    put(topic, "a", a_case("A-1"), a_case("A-2"))
    async with following(topic, clock) as source:
        await found(source, "a", "A-1")
        topic.is_away = True
        with pytest.raises(Transient, match="no answer about topic cases"):
            await asked(source, "a", "A-3")
        assert source.trouble() == "no answer about topic cases: TimeoutError"
        assert [signals(await found(source, "a", test)) for test in ("A-1", "A-2")] == [("wheeze",), ("wheeze",)]

        put(topic, "a", a_case("A-3"))
        topic.is_away = False
        assert (await found(source, "a", "A-3")).expected_cases == 3
        assert source.trouble() is None
        assert topic.opened == 1  # nothing was read twice


async def test_readiness_alone_notices_that_the_brokers_are_away() -> None:
    topic, clock = InMemoryTopic(), Clock()
    async with following(topic, clock) as source:
        topic.is_away = True
        clock.now += 6
        source.trouble()
        await until(lambda: source.trouble() == "no answer about topic cases: TimeoutError")


async def test_a_reader_that_fails_is_begun_anew_and_nothing_is_lost() -> None:
    topic = InMemoryTopic()
    put(topic, "a", a_case("A-1"))
    async with following(topic) as source:
        await found(source, "a", "A-1")
        topic.failure = Transient("no answer about topic cases: OffsetOutOfRangeError")
        put(topic, "a", a_case("A-2"))
        topic.put("K07/a/A-1", None)
        await until(lambda: topic.opened == 2 and source.trouble() is None)

        assert (await found(source, "a", "A-2")).expected_cases == 1
        assert (await refused(source, "a", "A-1")).reason == "expectations_not_found"


async def test_between_a_failure_and_the_next_beginning_nothing_new_is_decided() -> None:
    topic, clock = InMemoryTopic(), HeldClock()
    put(topic, "a", a_case("A-1"))
    async with following(topic, clock) as source:
        topic.failure = Transient("no answer about topic cases: OffsetOutOfRangeError")
        await until(lambda: source.trouble() is not None)
        with pytest.raises(Transient, match="are being read again"):
            await asked(source, "a", "A-2")
        assert signals(await found(source, "a", "A-1")) == ("wheeze",)
        clock.let_go.set()
        await until(lambda: source.trouble() is None)

        assert (await refused(source, "a", "A-2")).reason == "expectations_not_found"


async def test_while_a_topic_is_read_anew_nothing_new_is_decided_though_the_old_one_ended_there() -> None:
    topic = InMemoryTopic()
    put(topic, "a", a_case("A-1"))
    async with following(topic) as source:
        topic.make_anew()
        put(topic, "a", a_case("A-2"))  # as long as it was
        topic.is_silent = True
        topic.failure = Transient("no answer about topic cases: OffsetOutOfRangeError")
        await until(lambda: topic.opened == 2 and source._reading is not source._index)
        with pytest.raises(Transient, match="are being read again"):
            await asked(source, "a", "A-2")
        topic.is_silent = False

        await until(lambda: source.trouble() is None)
        assert (await found(source, "a", "A-2")).expected_cases == 1


async def test_an_index_that_is_being_changed_answers_nobody() -> None:
    topic, read_on = InMemoryTopic(), threading.Event()

    class SlowRecord(StoredRecord):
        """One that takes its time to be read."""

        @override
        def __getattribute__(self, name: str) -> Any:
            if name == "value":
                read_on.wait(PATIENCE_SECONDS)
            return super().__getattribute__(name)

    put(topic, "b", a_case("A-1", ["before"]), a_case("A-2", ["before"]))
    async with following(topic) as source:
        transaction = topic.begin()
        transaction.put("K07/b/A-1", value(a_case("A-1", ["after"])))
        transaction.put("K07/b/A-2", value(a_case("A-2", ["after"])))
        log = topic.partitions[0]
        last, fate = log[-1] or pytest.fail("a marker")
        log[-1] = (SlowRecord(0, last.offset, last.key, last.value), fate)
        transaction.commit()
        await until(lambda: source._index is not None and source._index.records == 4)  # A-1 has been changed
        answering = asyncio.create_task(found(source, "b", "A-1"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not answering.done()
        read_on.set()

        assert signals(await answering) == signals(await found(source, "b", "A-2")) == ("after",)


async def test_a_topic_that_vanishes_is_an_outage_for_every_key_until_it_is_back() -> None:
    topic, clock = InMemoryTopic(), Clock()
    put(topic, "a", a_case("A-1"))
    kept = topic.partitions
    async with following(topic, clock) as source:
        await found(source, "a", "A-1")
        topic.delete()
        with pytest.raises(Transient, match="the topic cases is missing"):
            await asked(source, "a", "A-2")
        with pytest.raises(Transient, match="the topic cases is missing"):
            await asked(source, "a", "A-1")
        assert source.trouble() == "the topic cases is missing"

        topic.partitions = kept
        await until(lambda: source.trouble() is None)
        await found(source, "a", "A-1")


async def test_a_topic_that_was_made_anew_and_is_empty_is_no_reason_for_dead_letters() -> None:
    topic, clock = InMemoryTopic(), Clock()
    put(topic, "a", a_case("A-1"))
    async with following(topic, clock) as source:
        await found(source, "a", "A-1")
        topic.make_anew()
        with pytest.raises(Transient, match="it is not the topic that was read before"):
            await asked(source, "a", "A-2")
        await until(lambda: source.trouble() == "the topic cases has lost all of its test cases")
        for test_id in ("A-1", "A-2"):
            with pytest.raises(Transient, match="has lost all"):
                await asked(source, "a", test_id)

        put(topic, "a", a_case("A-1", ["stridor"]))
        await until(lambda: source.trouble() is None)
        assert signals(await found(source, "a", "A-1")) == ("stridor",)


async def test_a_topic_whose_last_test_case_is_taken_away_is_no_reason_for_dead_letters() -> None:
    topic = InMemoryTopic()
    put(topic, "a", a_case("A-1"))
    async with following(topic) as source:
        await found(source, "a", "A-1")
        topic.put("K07/a/A-1", None)
        await until(lambda: source.trouble() is not None)
        with pytest.raises(Transient, match="has lost all"):
            await asked(source, "a", "A-1")


async def test_a_partition_that_is_added_is_read_too() -> None:
    topic, clock = InMemoryTopic(), Clock()
    put(topic, "a", a_case("A-1"))
    async with following(topic, clock) as source:
        await found(source, "a", "A-1")
        topic.partitions.append([])
        topic.put("K07/a/A-2", value(a_case("A-2")), partition=1)
        with pytest.raises(Transient, match="being read again"):
            await asked(source, "a", "A-2")
        assert signals(await found(source, "a", "A-1")) == ("wheeze",)
        await until(lambda: topic.opened == 2 and source._reading is source._index)

        assert (await found(source, "a", "A-2")).expected_cases == 2


async def test_a_defect_in_reading_is_not_kept_from_whoever_asks() -> None:
    topic = InMemoryTopic()
    put(topic, "a", a_case("A-1"))
    async with following(topic) as source:
        await found(source, "a", "A-1")
        topic.failure = ZeroDivisionError("a defect")
        assert source._following is not None
        await until(source._following.done)
        with pytest.raises(ZeroDivisionError):
            await asked(source, "a", "A-1")


# --- size -------------------------------------------------------------------------------------------------------------


def test_a_test_case_costs_less_than_six_hundred_bytes_beyond_shared_terms() -> None:
    index = TopicIndex()
    tracemalloc.start()
    try:
        for batch in range(100):
            index.fold(
                StoredRecord(0, 0, key.encode(), value(a_case(f"K07-BATCH{batch:04}-{number:03}", archetype="Safety")))
                for number in range(20)
                for key in [case_key("K07", f"K07_batch_{batch}", f"K07-BATCH{batch:04}-{number:03}")]
            )
        held, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(index) == 2_000
    assert held / 2_000 < 600


def test_expectations_that_nobody_holds_any_more_are_let_go() -> None:
    index = TopicIndex()
    for version in range(3):
        index.fold(
            StoredRecord(0, 0, f"K07/b/A-{number}".encode(), value(a_case(f"A-{number}", [f"{version} {number}"])))
            for number in range(1_500)
        )

    assert len(index._shared) <= 2 * len(index) + 1_000
