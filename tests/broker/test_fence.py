"""A zombie must not write: held between its poll and its `begin` while its partition moves, it goes on, and is refused.

Random kills and freezes pass without any fence too, since other guards hide it. Here two workers run in this process,
and nothing but the fence stands between the held one and a second copy of every record.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from consumer.case_sources.source import ExpectationsKey, ExpectationsSource, FoundExpectations
from consumer.dead_letter_reasons import Poison
from consumer.kafka import assignors
from consumer.kafka.protocol import Member
from consumer.settings import load
from consumer.worker import poll_loop
from consumer.worker.main import Worker
from tests.support.cases import encoded, event_stream, make_batches, write_batches
from tests.support.outside import Outgoing, Outside
from tests.support.site import Site

pytestmark = pytest.mark.broker

SEED = 5
RECORDS = 40
DEADLINE_SECONDS = 30.0
BATCHES = make_batches(SEED, batches=2, cases_a_batch=8)


class Gate:
    """A source of expectations that lets nobody pass while it is shut: behind it a slice is in hand, not yet begun."""

    def __init__(self, source: ExpectationsSource) -> None:
        self.name = source.name
        self.reached = asyncio.Event()
        self.open = asyncio.Event()
        self._source = source

    async def start(self) -> None:
        await self._source.start()

    async def find(self, keys: Sequence[ExpectationsKey]) -> Mapping[ExpectationsKey, FoundExpectations | Poison]:
        found = await self._source.find(keys)
        self.reached.set()
        await self.open.wait()
        return found

    def trouble(self) -> str | None:
        return self._source.trouble()

    async def stop(self) -> None:
        await self._source.stop()


def scorer(site: Site) -> Worker:
    """One scorer of the site's group, not yet running."""
    environ = {
        name: value for name, value in site.installation.environment().items() if name.startswith("SAFE_V0_")
    } | {"SAFE_V0_HTTP_ADDRESS": "127.0.0.1:0", "SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS": "3"}
    return Worker(load({}, environ=environ, cwd=site.folder), "scorer")


@contextlib.asynccontextmanager
async def running(worker: Worker) -> AsyncIterator[asyncio.Task[int]]:
    """Run a worker for as long as the block lasts, then drain it."""
    task = asyncio.create_task(worker.run())
    try:
        yield task
    finally:
        worker._stopping.set()
        await asyncio.wait_for(task, DEADLINE_SECONDS)


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something in this process."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110 - the product offers no event for it
            await asyncio.sleep(0.02)
    assert condition(), what


@pytest.fixture
def site(outside: Outside, tmp_path: Path) -> Site:
    """One partition of input and forty records in it."""
    cases = write_batches(tmp_path / "cases", BATCHES)
    built = Site.build(outside, tmp_path, cases, partitions=1)
    stream = [record for record in event_stream(SEED, BATCHES, RECORDS * 2, partitions=1) if record.value]
    built.send([Outgoing(record.value, partition=0) for record in stream[:RECORDS]])
    return built


def freeze_heartbeats(worker: Worker) -> asyncio.Event:
    """Let the group hear nothing of a member any more, until the event is set."""
    thawed = asyncio.Event()
    subscription = worker._health.poll_loops[0].subscription
    assert subscription is not None
    coordinator: Any = subscription._consumer._coordinator
    beat = coordinator._do_heartbeat

    async def silent() -> bool:
        await thawed.wait()
        return bool(await beat())

    coordinator._do_heartbeat = silent
    return thawed


def outcomes(site: Site) -> list[tuple[str, int]]:
    """What every committed reader sees: one entry for each scored record and each dead letter, by its source."""
    scored = [("scored", record.json()["source"]["offset"]) for record in site.outside.read(site.topics.scored)]
    dead = [
        ("dead", int(record.header("safe.dlq.offset") or -1)) for record in site.outside.read(site.topics.dead_letter)
    ]
    return sorted(scored + dead, key=lambda outcome: outcome[1])


@pytest.fixture
def gates(monkeypatch: pytest.MonkeyPatch) -> list[Gate]:
    """Before the test cases of each worker there is a gate, in the order in which they start."""
    from consumer.worker import main as app  # noqa: PLC0415 - patched below

    make_source = app.expectations_source
    made: list[Gate] = []

    def gated(*given: Any) -> Any:
        made.append(Gate(make_source(*given)))
        return made[-1]

    monkeypatch.setattr(app, "expectations_source", gated)
    return made


async def test_a_worker_held_until_its_partition_has_moved_writes_nothing_any_more(
    site: Site, gates: list[Gate]
) -> None:
    zombie = scorer(site)
    async with running(zombie):
        await until(lambda: bool(gates) and gates[0].reached.is_set(), "the first worker has a slice in hand")
        thawed = freeze_heartbeats(zombie)
        heir = scorer(site)
        async with running(heir):
            await until(lambda: len(gates) > 1, "the second worker runs")
            gates[1].open.set()
            await asyncio.wait_for(asyncio.to_thread(_await_outcomes, site), DEADLINE_SECONDS)
            before = await asyncio.to_thread(outcomes, site)
            assert [offset for _, offset in before] == list(range(RECORDS))

            gates[0].open.set()  # the zombie goes on where it was
            runner = zombie._health.poll_loops[0].runners[0]
            await until(
                lambda: runner.troubles.trouble is not None and "being prepared again" in runner.troubles.trouble,
                "it was refused",
            )

            assert await asyncio.to_thread(outcomes, site) == before
            assert not await asyncio.to_thread(site.outside.hanging, site.topics.outputs())
            thawed.set()


ROUNDS = int(os.environ.get("SAFE_TEST_ZOMBIE_ROUNDS", "0"))
"""How often every case is repeated; 0 is some of them, once."""

PLACES = ["poll", "begin", "first send", "all sent", "offsets sent", "offsets acknowledged", "end sent"]
IDS = ["its own id", "the id of a partition that it keeps"]
CASES = [
    (place, writes_as, rejoins)
    for place in PLACES
    for writes_as in IDS
    for rejoins in (False, True)
    if ROUNDS or (writes_as != IDS[0] and (not rejoins or place in {"first send", "all sent", "offsets acknowledged"}))
]


class Hold:
    """Holds a worker at one place of its next turn, as if it were frozen there: nothing ends it but `go_on`."""

    def __init__(self, worker: Worker, place: str, *, writes_as: str, for_long: bool) -> None:
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()
        self.wrote_as = ""
        self._place = place
        make_writer: Any = worker._health.poll_loops[0]._make_writer
        self._turns: Any = make_writer.__self__
        self._turns._timeout_seconds = 2 * DEADLINE_SECONDS
        _restart(self._turns.own, writes_as, for_long=for_long)
        self._transact = self._turns._transact
        self._turns._transact = self._held

    async def _held(self, parts: Any, transaction: Any) -> None:
        """Hold the first turn, and no later one."""
        self._turns._transact = self._transact
        match self._place:
            case "poll" | "begin":
                await self._wait()
            case "first send":
                transaction.send = self._before(transaction.send)
            case "all sent":
                transaction.commit_offsets = self._before(transaction.commit_offsets)
            case "offsets sent":
                link = await transaction._link()
                link.ask = self._behind(link.ask)
                transaction._link = self._always(link)
            case "offsets acknowledged":
                transaction.end = self._before(transaction.end)
            case "end sent":
                transaction.end = self._behind(transaction.end)
        try:
            await self._transact(parts, transaction)
        finally:
            if transaction._producer is not None:
                self.wrote_as = transaction._producer.identity.transactional_id

    def _before(self, step: Any) -> Any:
        async def held(*given: Any, **named: Any) -> Any:
            await self._wait()
            return await step(*given, **named)

        return held

    def _behind(self, step: Any) -> Any:
        """The request is sent, and its answer not looked at."""

        async def held(*given: Any, **named: Any) -> Any:
            asked = asyncio.ensure_future(step(*given, **named))
            await self._wait()
            return await asked

        return held

    def _always(self, link: Any) -> Any:
        async def same() -> Any:
            return link

        return same

    async def _wait(self) -> None:
        """A frozen process does not notice, either, that it is to give up."""
        self.reached.set()
        while not self.go_on.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.go_on.wait()


def _restart(own: Any, transactional_id: str, *, for_long: bool) -> None:
    """Have the next turn written by another producer, with this id; `for_long` keeps brokers from ending it."""
    own._id_of = lambda _partition: transactional_id
    if for_long:
        own._timeout_ms = int(2_000 * DEADLINE_SECONDS)
    own._unused.clear()
    own._starts.clear()
    own._writes_for = -1


def give_all_to(heir: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever members there are, this one keeps the partition."""
    assign = assignors._OwnRoundRobin.assign

    def favouring(cluster: Any, members: Any) -> Any:
        given = assign(cluster, members)
        [holder] = [member for member, each in given.items() if any(partitions for _, partitions in each.assignment)]
        favourite = generation_of(heir).member_id
        given[holder], given[favourite] = given[favourite], given[holder]
        return given

    monkeypatch.setattr(assignors._OwnRoundRobin, "assign", staticmethod(favouring))


def generation_of(worker: Worker) -> Member:
    """As which member it has its partitions, or had them before the rebalance."""
    subscription = worker._health.poll_loops[0].subscription
    assert subscription is not None
    coordinator: Any = subscription._consumer._coordinator
    return subscription.assigned_as or Member(coordinator.member_id, -1)


@pytest.mark.parametrize("_round", range(ROUNDS or 1))
@pytest.mark.parametrize(("place", "writes_as", "rejoins"), CASES)
async def test_a_worker_held_anywhere_in_a_transaction_doubles_nothing(
    site: Site, gates: list[Gate], monkeypatch: pytest.MonkeyPatch, place: str, writes_as: str, *,
    rejoins: bool, _round: int,
) -> None:  # fmt: skip
    """With the id of another partition, which nobody ends, only the group's generation keeps it from committing.

    With its own, only its heir can end what it has open: the brokers would take a minute.
    It is let go while it is in no group, or when it has joined a later generation, in which it has no partition.
    """
    monkeypatch.setattr(poll_loop, "_REVOKE_SECONDS", 0.5)  # for so long it would wait for what is held
    zombie = scorer(site)
    async with running(zombie):
        await until(lambda: bool(gates) and gates[0].reached.is_set(), "the first worker has a slice in hand")
        is_own = writes_as == IDS[0]
        name = f"{site.group}:{site.topics.input}:{0 if is_own else 99}"
        # Nobody ends the other id, and once offsets were sent with it, the heir waits until the brokers do.
        hold = Hold(zombie, place, writes_as=name, for_long=is_own or place in {"first send", "all sent"})
        if place != "poll":
            gates[0].open.set()
            await asyncio.wait_for(hold.reached.wait(), DEADLINE_SECONDS)
        thawed = freeze_heartbeats(zombie)
        heir = scorer(site)
        async with running(heir):
            await until(lambda: len(gates) > 1, "the second worker runs")
            gates[1].open.set()
            loops = heir._health
            await until(lambda: bool(loops.poll_loops and loops.poll_loops[0].runners), "it has got the partition")
            [runner] = heir._health.poll_loops[0].runners.values()
            await until(lambda: runner._held is not None and runner._held.writer.identity is not None, "it has fenced")
            if is_own or place in {"poll", "begin", "end sent"}:  # else what is open holds up what it writes
                await asyncio.wait_for(asyncio.to_thread(_await_outcomes, site), DEADLINE_SECONDS)
            if rejoins:
                give_all_to(heir, monkeypatch)
                later = generation_of(heir).generation
                thawed.set()
                await until(lambda: generation_of(zombie).generation > later, "the first one has joined again")
            gates[0].open.set()
            hold.go_on.set()
            await asyncio.wait_for(asyncio.to_thread(_await_outcomes, site), DEADLINE_SECONDS)
            await until(lambda: not getattr(hold._turns, "_in_turn", ()), "the first one has ended its turn")

            assert [offset for _, offset in await asyncio.to_thread(outcomes, site)] == list(range(RECORDS))
            assert not await asyncio.to_thread(site.outside.hanging, site.topics.outputs())
            assert hold.wrote_as == (name if place not in {"poll", "begin"} else "")
            thawed.set()


def _await_outcomes(site: Site) -> None:
    while site.outside.lag(site.group, site.topics.input) > 0:
        pass
    site.outside.await_decided(site.topics.outputs())


def test_the_input_of_this_test_holds_no_two_equal_records(site: Site) -> None:
    """Otherwise the comparison by source above would prove less than it says."""
    values = [record.value for record in site.outside.read(site.topics.input)]
    assert len(values) == RECORDS
    assert all(encoded({}) != value for value in values)
