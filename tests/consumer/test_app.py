"""A worker's start where the cluster is in doubt, and what its pages say of partitions without a leader."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from structlog.testing import capture_logs
from typing_extensions import override

from consumer.case_sources.folder import FolderSource
from consumer.errors import ConfigurationError, Fatal, SafeError, Transient
from consumer.kafka.cluster import Cluster, Ends, OpenTransaction, Place, TopicsSeen
from consumer.kafka.connection import Connection
from consumer.kafka.logins import Login
from consumer.kafka.reachability import TurnedAway
from consumer.kafka.refusals import Refusal
from consumer.kafka.subscription import Subscription
from consumer.kafka.topics import Verified, no_leader
from consumer.settings import load
from consumer.worker import health as health_module
from consumer.worker import main as app_module
from consumer.worker import partition_ends, startup_wait
from consumer.worker.event_waits import unless
from consumer.worker.group_state import GroupState
from consumer.worker.main import Worker
from consumer.worker.partition_loop import PartitionLoop, State
from consumer.worker.partition_troubles import PartitionTroubles
from consumer.worker.topic_watch import TopicWatch
from consumer.worker.unmarked_offsets import UnmarkedOffsets

BROKERS = {1: "a:9092", 2: "b:9092", 3: "c:9092"}
COUNTS: Mapping[Any, int] = {"input": 2, "scored": 4, "state": 4, "result": 4, "report": 4, "dead_letter": 2}
VERIFIED = Verified(COUNTS, {"dead": 8_000_000}, ("a warning",), {}, ("a note",))


class Silent(Cluster):
    """A cluster that anybody can connect to, and that counts how often somebody does."""

    def __init__(self) -> None:
        self.connected = 0

    @override
    async def connect(self) -> None:
        self.connected += 1

    @override
    async def stop(self) -> None:
        self.connected -= 1


@pytest.fixture
async def worker(tmp_path: Path) -> Worker:
    """One that has not been started, and asks again at once."""
    environment = {
        "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "SAFE_V0_EXPECTATIONS": str(tmp_path),
        "SAFE_V0_START_PATIENCE_SECONDS": "1",
        "SAFE_V0_HTTP_ADDRESS": "127.0.0.1:0",
    }
    worker = Worker(load({}, environment, tmp_path), "all")
    worker._cluster = Silent()
    return worker


@pytest.fixture
def doubts(monkeypatch: pytest.MonkeyPatch) -> deque[SafeError]:
    """What the brokers answer at the start, one by one, before all is well."""
    failures: deque[SafeError] = deque()

    async def verify_topics(*_arguments: object) -> Verified:
        return VERIFIED

    async def check_ownership(*_arguments: object) -> None:
        if failures:
            raise failures.popleft()

    async def nothing(*_arguments: object, **_named: object) -> str:
        return "earliest"

    async def no_state(*_arguments: object) -> GroupState:
        return GroupState(())

    monkeypatch.setattr(app_module, "check_brokers", nothing)
    monkeypatch.setattr(app_module, "verify_topics", verify_topics)
    monkeypatch.setattr(app_module, "check_ownership", check_ownership)
    monkeypatch.setattr(app_module, "read_group_state", no_state)
    monkeypatch.setattr(app_module, "check_input_offsets", nothing)
    monkeypatch.setattr(app_module, "input_topic", nothing)
    monkeypatch.setattr(app_module, "input_start", nothing)
    monkeypatch.setattr(UnmarkedOffsets, "look", nothing)
    monkeypatch.setattr(app_module, "_ASK_AGAIN_SECONDS", 0.001)
    return failures


async def test_a_start_through_a_broker_that_is_behind_asks_again(worker: Worker, doubts: deque[SafeError]) -> None:
    doubts.extend([Transient("no answer about state/0: OffsetOutOfRangeError")] * 3)
    with capture_logs() as logs:
        assert await worker._verify() is VERIFIED
    assert not doubts
    assert cast("Silent", worker._cluster).connected == 1
    assert [(each["log_level"], each["event"]) for each in logs] == [
        ("warning", "waiting for the brokers"),
        ("warning", "a warning"),
        ("info", "a note"),
        ("info", "the brokers answer"),
    ]


async def test_it_does_not_ask_for_ever(worker: Worker, doubts: deque[SafeError]) -> None:
    doubts.extend([Transient("no answer about state/0: OffsetOutOfRangeError")] * 10_000)
    with pytest.raises(
        ConfigurationError,
        match=r"the brokers at 127\.0\.0\.1:1 cannot be used \(no answer about state/0.*BOOTSTRAP_SERVERS",
    ):
        await worker._verify()
    assert 1 < len(doubts) < 9_999
    assert cast("Silent", worker._cluster).connected == 0


@pytest.mark.parametrize("wrong", [Fatal("grant READ on it"), ConfigurationError("safe.v0.state is missing")])
async def test_what_no_waiting_helps_is_told_at_once(
    worker: Worker, doubts: deque[SafeError], wrong: SafeError
) -> None:
    doubts.extend([wrong, Transient("no answer")])
    with pytest.raises(Fatal, match=str(wrong)):
        await worker._verify()
    assert len(doubts) == 1
    assert cast("Silent", worker._cluster).connected == 0


async def test_whoever_closes_connections_is_a_matter_of_settings_after_some_seconds(
    worker: Worker, doubts: deque[SafeError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(startup_wait, "_TURNED_AWAY_SECONDS", 0.05)
    closed = TurnedAway("127.0.0.1:1 closes the connection")
    doubts.extend([closed, Transient("not one after the other")])
    assert await worker._verify() is VERIFIED
    doubts.extend([closed] * 10_000)
    with pytest.raises(ConfigurationError, match=r"closes the connection.*security settings"):
        await worker._verify()
    assert 1 < len(doubts) < 9_999


async def test_whoever_wants_to_stop_is_not_kept_waiting(worker: Worker, doubts: deque[SafeError]) -> None:
    worker._settings = worker._settings.model_copy(update={"start_patience_seconds": 600})
    doubts.extend([Transient("no answer")] * 1_000_000)
    asyncio.get_running_loop().call_later(0.05, worker._stopping.set)
    assert await unless(worker._stopping, worker._verify()) is None
    assert cast("Silent", worker._cluster).connected == 0


class Unanswered(Silent):
    """A cluster that takes for ever to connect to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    @override
    async def connect(self) -> None:
        await super().connect()
        self.asked.set()
        await asyncio.get_running_loop().create_future()


class Slow(FolderSource):
    """A folder that takes for ever to be read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.begun = asyncio.Event()

    @override
    async def start(self) -> None:
        self.begun.set()
        await asyncio.get_running_loop().create_future()


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slow:
    """The test cases of the worker."""
    source = Slow(tmp_path)
    monkeypatch.setattr(app_module, "expectations_source", lambda *_: source)
    return source


@asynccontextmanager
async def ending_in_order(worker: Worker, begun: asyncio.Event) -> AsyncIterator[None]:
    """A worker that has begun something, and is then told to stop."""
    with capture_logs() as logs:
        running = asyncio.create_task(worker.run())
        async with asyncio.timeout(5.0):
            await begun.wait()
            yield
            worker._on_signal("SIGTERM")
            assert await running == 0
    assert [each["event"] for each in logs][-2:] == ["draining", "stopped"]
    assert cast("Silent", worker._cluster).connected == 0


async def test_a_worker_that_is_stopped_while_no_broker_answers_ends_in_order(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_module, "_CLUSTER_SILENT_SECONDS", -1.0)
    cluster = worker._cluster = Unanswered()
    async with ending_in_order(worker, cluster.asked):
        assert worker._health.not_ready() == ["the cluster has not answered for 0 s"]


async def test_a_worker_that_is_stopped_while_it_reads_test_cases_ends_in_order(
    worker: Worker, doubts: deque[SafeError], slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not doubts
    monkeypatch.setattr(health_module, "_CLUSTER_SILENT_SECONDS", -1.0)
    async with ending_in_order(worker, slow.begun):
        assert worker._health.not_ready() == ["starting: reading the test cases"]


async def test_a_worker_that_is_stopped_as_the_brokers_answer_begins_nothing_more(
    worker: Worker, doubts: deque[SafeError], slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not doubts

    async def input_start(*_arguments: object) -> str:
        worker._on_signal("SIGTERM")
        return "earliest"

    monkeypatch.setattr(app_module, "input_start", input_start)
    assert await asyncio.wait_for(worker.run(), 5.0) == 0
    assert not slow.begun.is_set()
    assert cast("Silent", worker._cluster).connected == 0


REFUSED = Refusal("[who] refuse[s] the login of user safe (SCRAM-SHA-512): invalid credentials", "check it")
SENTENCE = "the brokers refuse the login of user safe (SCRAM-SHA-512): invalid credentials"


@pytest.fixture
async def with_login(tmp_path: Path) -> Worker:
    """A worker whose brokers ask for a password, and whose secrets are files."""
    (tmp_path / "SAFE_V0_KAFKA_SASL_PASSWORD").write_text("planted-1", encoding="utf-8")
    environment = {
        "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "SAFE_V0_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "SAFE_V0_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
        "SAFE_V0_KAFKA_SASL_USERNAME": "safe",
        "SAFE_V0_SECRETS_DIR": str(tmp_path),
        "SAFE_V0_EXPECTATIONS": str(tmp_path),
        "SAFE_V0_HTTP_ADDRESS": "127.0.0.1:0",
    }
    worker = Worker(load({}, environment, tmp_path), "all")
    worker._cluster = Silent()
    return worker


def login_of(worker: Worker) -> Login:
    login = worker._connection.login
    assert login is not None
    return login


async def test_a_worker_whose_login_is_refused_says_so_and_ends_with_it_whatever_it_is_doing(
    with_login: Worker, doubts: deque[SafeError], slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not doubts
    monkeypatch.setattr(app_module, "_WATCH_SECONDS", 0.001)
    running = asyncio.create_task(with_login.run())
    await slow.begun.wait()
    assert with_login._health.not_ready() == ["starting: reading the test cases"]
    login_of(with_login).logins.note_refusal("127.0.0.1:1", REFUSED)
    assert with_login._health.not_ready() == [SENTENCE]
    monkeypatch.setattr("consumer.kafka.logins.REFUSED_SECONDS", 0.0)
    with pytest.raises(Fatal, match=r"the brokers refuse the login of user safe \(SCRAM-SHA-512\): invalid credent"):
        await asyncio.wait_for(running, 5.0)
    assert cast("Silent", with_login._cluster).connected == 0


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that a thread reads."""
    for _ in range(5_000):
        if holds():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never holds")


async def test_a_secret_that_changes_is_read_while_nobody_logs_in(
    with_login: Worker, doubts: deque[SafeError], slow: Slow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not doubts
    monkeypatch.setattr(app_module, "_WATCH_SECONDS", 0.001)
    login = login_of(with_login)
    async with ending_in_order(with_login, slow.begun):
        before = login.credentials.value
        (tmp_path / "SAFE_V0_KAFKA_SASL_PASSWORD").write_text("planted-2", encoding="utf-8")
        await until(lambda: login.credentials.value is not before)
        login.logins.note_refusal("127.0.0.1:1", REFUSED)
        (tmp_path / "SAFE_V0_KAFKA_SASL_PASSWORD").unlink()
        await until(lambda: login.credentials.trouble is not None)
        assert with_login._health.not_ready() == [
            SENTENCE,
            f"the login cannot be read again: {login.credentials.trouble}",
        ]


def test_two_signals_at_once_are_one_and_a_later_one_ends_it(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    exits: list[int] = []
    monkeypatch.setattr(os, "_exit", exits.append)
    worker._on_signal("SIGTERM")
    worker._on_signal("SIGINT")
    assert exits == []
    worker._first_signal_at -= 0.5
    worker._on_signal("SIGTERM")
    assert exits == [1]


# --- partitions without a leader --------------------------------------------------------------------------------------

# what has no leader, and what of it concerns a worker that has partition 0 of the input and 1 of what is scored
CONCERNED: list[tuple[dict[str, set[int]], dict[str, set[int]]]] = [
    ({"input": {0}}, {"input": {0}}),
    ({"input": {1}}, {}),  # another's
    ({"scored": {3}}, {"scored": {3}}),  # a scorer writes to all of them
    ({"scored": {1, 2}}, {"scored": {1, 2}}),
    ({"state": {1}, "report": {1, 3}}, {"state": {1}, "report": {1}}),
    ({"state": {0, 2, 3}}, {}),
    ({"dead_letter": {1}}, {"dead_letter": {1}}),
]


@pytest.mark.parametrize(("leaderless", "concerned"), CONCERNED)
async def test_a_worker_is_not_ready_where_what_it_needs_has_no_leader(
    worker: Worker, leaderless: dict[str, set[int]], concerned: dict[str, set[int]]
) -> None:
    names = {name: getattr(worker._settings, f"{name}_topic") for name in COUNTS}
    counts = {names[name]: count for name, count in COUNTS.items()}
    places = {names[name]: frozenset(partitions) for name, partitions in leaderless.items()}
    serve(worker)
    assert worker._health.not_ready() == []
    worker._health.topics = TopicWatch(counts)
    for _ in range(2):
        worker._health.topics.note(TopicsSeen(counts, places, frozenset(), BROKERS))
    assert worker._health.not_ready() == [no_leader(names[name], partitions) for name, partitions in concerned.items()]


async def test_a_missing_broker_comes_before_what_follows_from_it_and_alone_is_no_trouble(worker: Worker) -> None:
    input_topic = worker._settings.input_topic
    leaderless = {input_topic: frozenset({0})}
    serve(worker)
    worker._health.topics = TopicWatch({input_topic: 2})
    seen = TopicsSeen({input_topic: 2}, {}, frozenset(), {1: "a:9092"}, frozenset({1, 2}))
    for _ in range(2):
        worker._health.topics.note(seen)
    assert worker._health.not_ready() == []
    for _ in range(2):
        worker._health.topics.note(replace(seen, leaderless=leaderless))
    assert worker._health.not_ready() == ["broker 2 is missing from the cluster", no_leader(input_topic, {0})]


class Torn(Cluster):
    """A cluster in which one partition has no leader, as long as `is_torn`; every other look gets no answer."""

    def __init__(self, topic: str, counts: Mapping[str, int]) -> None:
        self.is_torn = True
        self.looks = 0
        self._looked = asyncio.Condition()
        self._topic = topic
        self._counts = counts

    @override
    async def look(self, topics: Sequence[str], timeout_seconds: float = 1.0) -> TopicsSeen:
        self.looks += 1
        async with self._looked:
            self._looked.notify_all()
        if self.looks % 2:
            raise Transient("no answer about the topics: TimeoutError")
        torn = {self._topic: frozenset({0})} if self.is_torn else {}
        return TopicsSeen({topic: self._counts[topic] for topic in topics}, torn, frozenset(), BROKERS)

    async def looked_at(self, times: int) -> None:
        """Wait until so many looks have been taken in: until the next one comes."""
        async with self._looked, asyncio.timeout(10):
            await self._looked.wait_for(lambda: self.looks > times)


async def test_the_watch_tells_the_role_that_reads_it(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "_WATCH_SECONDS", 0.001)
    names = {name: getattr(worker._settings, f"{name}_topic") for name in COUNTS}
    cluster = worker._cluster = Torn(names["input"], {names[name]: count for name, count in COUNTS.items()})
    serve(worker)
    scorer, aggregator = worker._health.poll_loops
    watching = asyncio.create_task(worker._watch_cluster(VERIFIED))
    try:
        await cluster.looked_at(4)
        assert scorer.leaderless == {0}
        assert not aggregator.leaderless
        assert worker._health.not_ready() == [no_leader(names["input"], {0})]
        cluster.is_torn = False
        await cluster.looked_at(8)
        assert not scorer.leaderless
        assert worker._health.not_ready() == []
    finally:
        watching.cancel()
        await asyncio.wait({watching})


class OfThePast(Torn):
    """A client that knows only brokers that are gone, until it starts again; the first servers to answer are late."""

    def __init__(self, topic: str, counts: Mapping[str, int]) -> None:
        super().__init__(topic, counts)
        self.starts = 0

    @override
    async def start_again(self) -> None:
        self.starts += 1
        if self.starts == 1:
            raise Transient("no answer about the cluster: KafkaConnectionError")

    @override
    async def look(self, topics: Sequence[str], timeout_seconds: float = 1.0) -> TopicsSeen:
        self.looks = 2 * self.starts - 1 if self.starts > 1 else 0
        return await super().look(topics, timeout_seconds)


async def test_a_client_whose_brokers_are_all_gone_starts_again(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "_WATCH_SECONDS", 0.001)
    monkeypatch.setattr(health_module, "_CLUSTER_SILENT_SECONDS", 0.05)
    names = {name: getattr(worker._settings, f"{name}_topic") for name in COUNTS}
    cluster = worker._cluster = OfThePast(names["input"], {names[name]: count for name, count in COUNTS.items()})
    watching = asyncio.create_task(worker._watch_cluster(VERIFIED))
    try:
        await cluster.looked_at(2)
        assert cluster.starts >= 2
    finally:
        watching.cancel()
        await asyncio.wait({watching})


# --- partitions that an open transaction holds up ---------------------------------------------------------------------


class Ending(Cluster):
    """A cluster whose leaders tell where partitions end; it is made by the worker, and answers every other time."""

    answers: ClassVar[dict[Place, Ends]] = {}
    made: ClassVar[list["Ending"]] = []

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.connected = self.asked = 0
        self.about: list[Place] = []
        self._asked = asyncio.Condition()
        self.made.append(self)

    @override
    async def start(self) -> None:
        self.connected += 1

    @override
    async def stop(self) -> None:
        """Nothing was started."""

    @override
    async def ends(self, topics: Sequence[str], is_wanted: Callable[[Place], bool]) -> Mapping[Place, Ends]:
        self.asked += 1
        async with self._asked:
            self._asked.notify_all()
        if self.asked % 2:
            raise Transient("no answer about the topics: TimeoutError")
        return {place: ends for place, ends in self.answers.items() if place[0] in topics and is_wanted(place)}

    @override
    async def open_transaction(self, place: Place, first_offset: int) -> OpenTransaction | None:
        self.about.append(place)
        return OpenTransaction(4001, 0, first_offset)

    async def asked_for(self, times: int) -> None:
        """Wait until so many questions have been answered, and what was answered is taken in."""
        wanted = self.asked + times
        async with self._asked, asyncio.timeout(10):
            await self._asked.wait_for(lambda: self.asked > wanted)


async def test_the_watch_of_ends_names_what_holds_up_what_this_worker_reads(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "_WATCH_SECONDS", 0.001)
    monkeypatch.setattr(app_module, "Cluster", Ending)
    monkeypatch.setattr(partition_ends, "_HELD_UP_SECONDS", 1e-9)
    monkeypatch.setattr(Ending, "made", [])
    settings, health = worker._settings, worker._health
    mine, scored = (settings.input_topic, 0), (settings.scored_topic, 1)
    state, cases = (settings.state_topic, 1), ("cases", 0)
    others = [(settings.input_topic, 1), (settings.state_topic, 0), (settings.result_topic, 1)]
    open_ones = dict.fromkeys([mine, state, cases, *others], Ends(3, 9))
    monkeypatch.setattr(Ending, "answers", {**open_ones, scored: Ends(4, 4)})
    serve(worker)
    health.cases_topic = "cases"
    scorer, aggregator = health.poll_loops
    watching = asyncio.create_task(worker._watch_ends())
    try:
        await asyncio.sleep(0)
        [cluster] = Ending.made
        await cluster.asked_for(6)
        assert sorted(cluster.about) == sorted([mine, state, cases]), "each is asked about once"
        assert (scorer.held_up, aggregator.held_up) == (frozenset({0}), frozenset())
        assert (scorer.runners[0].log_end, aggregator.runners[1].log_end) == (9, 4)
        assert cluster.connected > 1, "after no answer, it connects again"
        by = "by an open transaction of producer 4001, which is not this worker's"
        assert health.not_ready() == [
            f"partition 0 of cases is held up at offset 3 {by}",
            f"partition 0 of {mine[0]} is held up at offset 3 {by}",
        ]
    finally:
        watching.cancel()
        await asyncio.wait({watching})


class Serving(PartitionLoop):
    """A partition that is served."""

    def __init__(self) -> None:
        self._held = None
        self._state = State.SERVING
        self.troubles = PartitionTroubles("scorer", "input", 0)
        self.troubles.trouble = None


class Joined(Subscription):
    def __init__(self) -> None:
        """A member whose group answers."""

    @override
    def heartbeat_is_fresh(self) -> bool:
        return True


def serve(worker: Worker) -> None:
    """Give a worker its two roles, partition 0 of the input and partition 1 of what is scored."""
    worker._health.source = worker._make_source()
    worker._health.poll_loops = worker._make_poll_loops(VERIFIED)
    for stage, partition in zip(worker._health.poll_loops, (0, 1), strict=True):
        stage.runners[partition] = Serving()
        stage._generation = 1
        stage.subscription = Joined()
