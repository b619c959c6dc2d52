"""What whoever scores may rely on, whichever source the test cases come from: one suite that all of them pass."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from consumer.case_sources.case_client import HttpOptions
from consumer.case_sources.folder import FolderSource
from consumer.case_sources.http_source import HttpSource
from consumer.case_sources.source import ExpectationsKey, ExpectationsSource, FoundExpectations
from consumer.case_sources.topic import TopicSource
from consumer.dead_letter_reasons import Poison
from consumer.errors import Transient
from consumer.wire.keys import case_key
from safe_core import Expectations, digest_of_narrative
from tests.support.case_files import a_case, write_batch
from tests.support.case_service import CaseService
from tests.support.cases import make_batches, write_batches
from tests.support.tables import InMemoryTopic

ANSWERED_SECONDS = 20.0
Json = Any


class Store(Protocol):
    """Where a team keeps test cases, and what happens to it."""

    counts_batches: bool

    def source(self) -> ExpectationsSource:
        """A source over it, not yet started."""
        ...

    def write(self, batch_id: str, *cases: Json) -> None:
        """Make these the test cases of a batch."""
        ...

    def lose(self) -> None:
        """From now on it cannot be asked."""
        ...

    def recover(self) -> None:
        """It is back, as it was."""
        ...

    def close(self) -> None:
        """The test is over."""
        ...


class Folder:
    counts_batches = True

    def __init__(self, path: Path) -> None:
        self._path = path / "cases"
        self._path.mkdir()

    def source(self) -> ExpectationsSource:
        return FolderSource(self._path)

    def write(self, batch_id: str, *cases: Json) -> None:
        fresh = write_batch(self._path.parent / "fresh", batch_id, *cases)
        fresh.replace(self._path / fresh.name)

    def lose(self) -> None:
        self._path.rename(self._path.with_name("away"))

    def recover(self) -> None:
        self._path.with_name("away").rename(self._path)

    def close(self) -> None:
        """It goes with the test's folder."""


class Service:
    counts_batches = False

    def __init__(self, path: Path) -> None:
        self._folder = path / "cases"
        self._folder.mkdir()
        self._service = CaseService(self._folder).start()

    def source(self) -> ExpectationsSource:
        return HttpSource(self._service.url, HttpOptions(timeout_seconds=2, cache_seconds=0))

    def write(self, batch_id: str, *cases: Json) -> None:
        write_batch(self._folder, batch_id, *cases)
        self._service.read_again()

    def lose(self) -> None:
        self._service.behave_as("off")

    def recover(self) -> None:
        self._service.behave_as("normal")

    def close(self) -> None:
        self._service.stop()


class Topic:
    counts_batches = True

    def __init__(self, _path: Path) -> None:
        self._topic = InMemoryTopic()
        self._held: dict[str, set[str]] = {}

    def source(self) -> ExpectationsSource:
        return TopicSource("cases", self._topic.table(), patience_seconds=2.0)

    def write(self, batch_id: str, *cases: Json) -> None:
        written = {case_key("K07", batch_id, case["test_id"]): json.dumps(case).encode() for case in cases}
        for key in self._held.get(batch_id, set()) - written.keys():
            self._topic.put(key, None)
        for key, value in written.items():
            self._topic.put(key, value)
        self._held[batch_id] = set(written)

    def lose(self) -> None:
        self._topic.is_away = True

    def recover(self) -> None:
        self._topic.is_away = False

    def close(self) -> None:
        """It was only memory."""


@pytest.fixture(params=[Folder, Service, Topic], ids=["folder", "http", "topic"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store = request.param(tmp_path)
    yield made
    await asyncio.to_thread(made.close)


@asynccontextmanager
async def started(store: Store) -> AsyncIterator[ExpectationsSource]:
    source = store.source()
    await source.start()
    try:
        yield source
    finally:
        await source.stop()


async def asked(
    source: ExpectationsSource, batch_id: str, test_id: str, narrative: str | None = None
) -> FoundExpectations | Poison:
    key = ExpectationsKey(batch_id, test_id, narrative)
    return (await source.find([key]))[key]


async def found(
    source: ExpectationsSource, batch_id: str, test_id: str, narrative: str | None = None
) -> FoundExpectations:
    answer = await asked(source, batch_id, test_id, narrative)
    assert isinstance(answer, FoundExpectations), answer
    return answer


async def refused(source: ExpectationsSource, batch_id: str, test_id: str, narrative: str | None = None) -> Poison:
    answer = await asked(source, batch_id, test_id, narrative)
    assert isinstance(answer, Poison), answer
    return answer


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(ANSWERED_SECONDS):
        while not condition():  # noqa: ASYNC110 - what is awaited goes on in a source that tells nobody
            await asyncio.sleep(0.02)


# --- answers ----------------------------------------------------------------------------------------------------------


async def test_a_test_case_comes_with_all_that_scoring_reads_of_it(store: Store) -> None:
    store.write("asthma_1", a_case("A-1", archetype="Safety_Signal", metric_id="asthma"), a_case("A-2"))
    async with started(store) as source:
        answer = await found(source, "asthma_1", "A-1")
    expectations = Expectations(("wheeze",), ("blame",), ("salbutamol",))
    assert (answer.prepared.expectations, answer.prepared.digest) == (expectations, expectations.digest)
    assert (answer.concern_id, answer.archetype, answer.metric_id) == ("K07", "Safety_Signal", "asthma")
    assert answer.expected_cases == (2 if store.counts_batches else None)


async def test_every_source_gives_the_same_digests_for_the_same_cases(store: Store, tmp_path: Path) -> None:
    batches = make_batches(5, batches=3, cases_a_batch=4)
    for batch in batches:
        store.write(batch.batch_id, *(case.entry for case in batch.cases))
    folder = FolderSource(write_batches(tmp_path / "plain", batches))
    keys = [ExpectationsKey(case.batch_id, case.test_id) for batch in batches for case in batch.cases]
    async with started(store) as source:
        answers = await source.find(keys)
    await folder.start()
    plain = await folder.find(keys)
    await folder.stop()
    assert digests(answers.values()) == digests(plain.values())
    assert len(answers) == 12
    assert len(digests(answers.values())) == 24, "each tells a narrative"


async def test_a_case_may_hold_the_digest_of_its_narrative_instead(store: Store) -> None:
    digest = "sha256:" + "0" * 64
    store.write("asthma_1", a_case("A-1", patient_payload_digest=digest), a_case("A-2"))
    async with started(store) as source:
        assert (await found(source, "asthma_1", "A-1")).narratives == (digest,)
        assert (await found(source, "asthma_1", "A-2")).narratives == ()


def digests(answers: Any) -> list[str]:
    """What decides scores and matches: the expectations and the narratives."""
    found = [answer for answer in answers if isinstance(answer, FoundExpectations)]
    return [digest for answer in found for digest in (answer.prepared.digest, *answer.narratives)]


async def test_a_case_that_its_batch_does_not_hold_is_taken_from_another_where_all_agree(store: Store) -> None:
    store.write("asthma_1", a_case("A-1"))
    store.write("asthma_2", a_case("A-1"))
    async with started(store) as source:
        assert (await found(source, "nightly", "A-1")).prepared.expectations.must_find_signals == ("wheeze",)


async def test_where_holders_differ_nobody_guesses(store: Store) -> None:
    store.write("asthma_1", a_case("A-1"))
    store.write("asthma_2", a_case("A-1", ["stridor"]))
    async with started(store) as source:
        poison = await refused(source, "nightly", "A-1")
        own = await found(source, "asthma_2", "A-1")
        assert source.requests["ambiguous"] == 1
    assert poison.reason == "expectations_ambiguous"
    assert poison.detail.endswith("; the output's narrative is not known (input_digest)")
    assert own.prepared.expectations.must_find_signals == ("stridor",)


HER, HIS, NOBODYS = (digest_of_narrative(text) for text in ("She wheezes.", "He wheezes.", "They wheeze."))


async def test_where_holders_differ_the_narrative_of_the_output_decides(store: Store) -> None:
    store.write("asthma_1", a_case("A-1", patient_payload="She  wheezes."))
    store.write("asthma_2", a_case("A-1", ["stridor"], patient_payload="He wheezes.", archetype="His"))
    store.write("asthma_3", a_case("A-1", ["stridor"], patient_payload_digest=HIS))
    async with started(store) as source:
        hers, his = await found(source, "nightly", "A-1", HER), await found(source, "nightly", "A-1", HIS)
        keys = [ExpectationsKey("nightly", "A-1", narrative) for narrative in (HER, HIS, NOBODYS, None)]
        together = await source.find(keys)
        own = await found(source, "asthma_1", "A-1", HIS)
    assert hers.prepared.expectations.must_find_signals == ("wheeze",)
    assert (his.prepared.expectations.must_find_signals, his.archetype) == (("stridor",), "His")
    assert (hers.narratives, his.narratives, his.in_batch) == ((HER,), (HIS,), False)
    said = [answer.reason if isinstance(answer, Poison) else answer.narratives for answer in together.values()]
    assert said == [(HER,), (HIS,), "expectations_ambiguous", "expectations_ambiguous"]
    assert own.narratives == (HER,), "the batch that the output names decides first, and the mismatch is told"


@pytest.mark.real_cases
async def test_real_outputs_of_two_sets_with_the_same_ids_each_find_their_own_test_case(
    store: Store, real_cases: Path
) -> None:
    """The last ten of these outputs answer other scenarios under test_ids that the batches use as well."""
    entries = json.loads((real_cases / "outputs_refinery_v9.json").read_bytes())["raw_results"]
    for file in (real_cases / "testcases").glob("*.json"):
        store.write(file.stem, *json.loads(file.read_bytes())["test_cases"])
    told = {entry["test_id"]: entry["engine_output"]["raw_input"] for entry in entries[12:]}
    store.write("others", *(a_case(test_id, patient_payload=narrative) for test_id, narrative in told.items()))
    narratives = [digest_of_narrative(entry["engine_output"]["raw_input"]) for entry in entries]
    keys = [
        ExpectationsKey("nightly", entry["test_id"], narrative)
        for entry, narrative in zip(entries, narratives, strict=True)
    ]
    async with started(store) as source:
        answers = await source.find(keys)
    found = [answer for key in keys if isinstance(answer := answers[key], FoundExpectations)]
    assert [answer.narratives for answer in found] == [(narrative,) for narrative in narratives]
    is_of_others = [answer.prepared.expectations.must_find_signals == ("wheeze",) for answer in found]
    assert is_of_others == [False] * 12 + [True] * 10


async def test_a_narrative_that_holders_tell_who_differ_decides_nothing(store: Store) -> None:
    store.write("asthma_1", a_case("A-1", patient_payload="She wheezes."))
    store.write("asthma_2", a_case("A-1", ["stridor"], patient_payload="She wheezes."))
    async with started(store) as source:
        poison = await refused(source, "nightly", "A-1", HER)
    assert poison.reason == "expectations_ambiguous"
    assert poison.detail.endswith("; the output's narrative does not decide either")


async def test_a_holder_that_comes_to_tell_the_narrative_is_found_at_once(store: Store) -> None:
    store.write("asthma_1", a_case("A-1", patient_payload="She wheezes."))
    async with started(store) as source:
        await found(source, "nightly", "A-1", HER)
        store.write("asthma_2", a_case("A-1", ["stridor"], patient_payload="He wheezes."))
        async with asyncio.timeout(ANSWERED_SECONDS):
            while (answer := await found(source, "nightly", "A-1", HIS)).narratives != (HIS,):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
    assert answer.prepared.expectations.must_find_signals == ("stridor",)


STRANGE = (
    "../../etc/passwd",
    "/etc/passwd",
    "..",
    ".",
    "~root",
    "%2e%2e%2f",
    "..%5c",
    "?x#y",
    "//evil/x",
    "@evil",
    "é‍👩‍⚕️",
)


@pytest.mark.parametrize("test_id", STRANGE)
async def test_what_nobody_holds_is_not_found_whatever_it_looks_like(store: Store, test_id: str) -> None:
    store.write("asthma_1", a_case("A-1"))
    async with started(store) as source:
        poison = await refused(source, "asthma_1", test_id)
        other = await refused(source, test_id, "A-9")
    assert (poison.reason, other.reason) == ("expectations_not_found", "expectations_not_found")


@pytest.mark.parametrize("test_id", STRANGE)
async def test_a_strange_id_that_somebody_holds_is_found(store: Store, test_id: str) -> None:
    store.write("asthma_1", a_case(test_id))
    async with started(store) as source:
        await found(source, "asthma_1", test_id)


BAD: Sequence[Json] = (
    {"expectations": None},
    {"expectations": {"signal_generation": {"must_find_signals": "wheeze"}}},
    {"expectations": {"signal_generation": {"must_find_signals": ["  "]}}},
    {"expectations": {"event_summary": {"must_contain_phrases": [7]}}},
    {"expectations": {"followup_questions": []}},
)


@pytest.mark.parametrize("wrong", BAD, ids=range(len(BAD)))
async def test_a_case_that_nothing_can_be_scored_against_is_invalid_and_harms_no_other(
    store: Store, wrong: Json
) -> None:
    store.write("asthma_1", a_case("A-1") | wrong, a_case("A-2"))
    async with started(store) as source:
        poison = await refused(source, "asthma_1", "A-1")
        await found(source, "asthma_1", "A-2")
    assert poison.reason == "expectations_invalid"
    assert len(poison.detail.encode()) <= 512


async def test_a_slice_is_answered_key_by_key_and_counted_by_outcome(store: Store) -> None:
    store.write("asthma_1", a_case("A-1"), a_case("A-2"), a_case("A-3") | BAD[0])
    keys = [ExpectationsKey("asthma_1", test_id) for test_id in ("A-1", "A-2", "A-3", "A-4")]
    async with started(store) as source:
        answers = await source.find(keys)
        assert await source.find([]) == {}
        counted = {outcome: count for outcome, count in source.requests.items() if count}
    assert set(answers) == set(keys)
    assert counted == {"found": 2, "invalid": 1, "not_found": 1}


async def test_no_detail_repeats_what_was_asked_for(store: Store) -> None:
    store.write("asthma_1", a_case("A-1"))
    async with started(store) as source:
        poison = await refused(source, "Zq7Xk2Wv", "Kp4Rt8Ym")
    assert "Zq7Xk2Wv" not in poison.detail
    assert "Kp4Rt8Ym" not in poison.detail


# --- changes ----------------------------------------------------------------------------------------------------------


async def test_a_changed_case_a_new_one_and_a_removed_one_show(store: Store) -> None:
    store.write("asthma_1", a_case("A-1"), a_case("A-2"))
    async with started(store) as source:
        old = (await found(source, "asthma_1", "A-1")).prepared.digest
        store.write("asthma_1", a_case("A-1", ["stridor"]), a_case("A-3"))
        await found(source, "asthma_1", "A-3")
        async with asyncio.timeout(ANSWERED_SECONDS):
            while (after := await found(source, "asthma_1", "A-1")).prepared.digest == old:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
        assert (await refused(source, "asthma_1", "A-2")).reason == "expectations_not_found"
    assert after.prepared.expectations.must_find_signals == ("stridor",)


# --- trouble ----------------------------------------------------------------------------------------------------------


async def test_while_the_store_is_away_nothing_is_decided_and_once_it_is_back_all_is(store: Store) -> None:
    store.write("asthma_1", a_case("A-1"))
    async with started(store) as source:
        await found(source, "asthma_1", "A-1")
        assert source.trouble() is None
        await asyncio.to_thread(store.lose)
        with pytest.raises(Transient):
            await asked(source, "asthma_1", "A-2")
        await eventually(lambda: source.trouble() is not None)
        assert source.requests["transient"] > 0
        await asyncio.to_thread(store.recover)
        await eventually(lambda: source.trouble() is None)  # readiness asks, and nobody else
        assert (await refused(source, "asthma_1", "A-2")).reason == "expectations_not_found"
        await found(source, "asthma_1", "A-1")


async def test_a_caller_that_is_cancelled_takes_nothing_from_the_others(store: Store) -> None:
    store.write("asthma_1", a_case("A-1"))
    async with started(store) as source:
        callers = [asyncio.create_task(asked(source, "asthma_1", "A-1")) for _ in range(5)]
        await asyncio.sleep(0)
        for caller in callers[::2]:
            caller.cancel()
        answers = await asyncio.gather(*callers, return_exceptions=True)
    assert all(isinstance(answer, FoundExpectations) for answer in answers[1::2])


async def test_it_may_be_stopped_twice_and_leaves_no_task_behind(store: Store) -> None:
    store.write("asthma_1", a_case("A-1"))
    before = asyncio.all_tasks()
    async with started(store) as source:
        await found(source, "asthma_1", "A-1")
    await source.stop()
    assert asyncio.all_tasks() == before
