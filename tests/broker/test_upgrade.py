"""An installation that changes its version: what the old one left is taken over, and a newer one's is never guessed at.

What a version leaves is kept in `tests/compatibility/<version>/`. To keep that of a new version, before its release:
`SAFE_TEST_UPDATE_GOLDEN=1 .venv/bin/pytest tests/broker/test_upgrade.py -k can_be_kept`
"""

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition

from consumer import __version__
from consumer.wire.headers import SCHEMA
from tests.compatibility.frozen import GROUP, HERE, NAMES, TOPICS, Frozen, load, runs, save, versions
from tests.support.cases import START, WrittenCase, encoded, event_stream, make_batches, make_event, write_batches
from tests.support.checker import check, partition_of, quoted
from tests.support.feeder import Feeder
from tests.support.golden import UPDATE
from tests.support.kafka_broker import PROJECT, KafkaBroker
from tests.support.oracle import CaseBook, Oracle
from tests.support.outside import CALL_SECONDS, Outgoing, Outside, Record
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Installation, Worker

pytestmark = pytest.mark.broker

SEED = 67
PARTITIONS = 2
BATCHES = make_batches(SEED, batches=4, cases_a_batch=4)
EXIT_UNUSABLE = 3
NOTICED_SECONDS = 30.0
QUICK = {"SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS": "3"}
# What is kept gets older than any batch's time-to-live.
FOR_EVER = {"SAFE_V0_BATCH_TTL_SECONDS": str(100 * 365 * 86_400)}
SHORT = {"SAFE_V0_BATCH_TTL_SECONDS": "1"}


def of(case: WrittenCase, quality: str, *, after: int = 0, partition: int = 0, **more: object) -> Outgoing:
    """An output for a case, `after` so many minutes."""
    moment = START + timedelta(minutes=after)
    event = make_event(random.Random(after), case, quality=quality, generated_at=moment, size=0)  # type: ignore[arg-type]
    return Outgoing(encoded(event | more), f"{case.batch_id}/{case.test_id}".encode(), partition=partition)


@contextmanager
def default_site(broker: KafkaBroker, folder: Path, cases: Path) -> Iterator[Site]:
    """An installation with the names that everybody has, whose topics keep everything."""
    with Outside(broker.bootstrap_servers) as outside:
        outside.create_contract_topics(TOPICS, partitions=PARTITIONS)
        for topic in (TOPICS.input, TOPICS.scored, TOPICS.result, TOPICS.dead_letter):
            outside.set_topic_config(topic, "retention.ms", "-1")
        installation = Installation(broker.bootstrap_servers, TOPICS, GROUP, str(cases), QUICK | FOR_EVER)
        site = Site(outside, folder, installation, Oracle(CaseBook(cases)))
        yield site
        site.discard()


def told(site: Site, **settings: str) -> Site:
    """The same installation with other settings."""
    changed = replace(site.installation, settings={**site.installation.settings, **settings})
    return Site(site.outside, site.folder, changed, site.oracle, site.workers)


# --- what this version leaves -----------------------------------------------------------------------------------------


def before_the_last_commit() -> list[Outgoing]:
    """All qualities, answers that are repeated, late or without a run, a batch of no file, a poison."""
    first, second, third, _ = (batch.cases for batch in BATCHES)
    qualities = ("pass", "review", "harm", "fail")
    answers = [
        of(case, quality, after=at, partition=at % PARTITIONS)
        for cases in (first, second, third)
        for at, (case, quality) in enumerate(zip(cases, qualities, strict=True))
    ]
    return [
        *answers[:-1],
        of(first[0], "fail", after=-5, partition=1),
        of(first[1], "pass", after=9, partition=1, run_id="r2"),
        of(second[0], "empty", after=9),
        of(third[0], "review", batch_id="any/100%"),
        Outgoing(b'{"test_id": "x", "batch_id": "b"}', b"poison", partition=1),
    ]


def behind_the_last_commit() -> list[Outgoing]:
    """Answers that the aggregator has not yet seen: new ones, winners, losers, in every batch that lives."""
    first, second, third, _ = (batch.cases for batch in BATCHES)
    return [
        of(third[3], "pass", after=20),
        of(third[2], "fail", after=21, partition=1, run_id="r2"),
        *(of(cases[at], "pass", after=22 + at, partition=at % 2) for cases in (first, second) for at in range(3)),
        of(first[3], "pass", after=-9, partition=1),
        of(third[1], "review", after=30, batch_id="any/100%"),
    ]


def left_behind(site: Site) -> Frozen:
    """Run an installation up to a moment at which its aggregator lags, and take what stands there then."""
    forgetting = told(site, **SHORT)
    forgetting.send([of(case, "pass") for case in BATCHES[3].cases[:2]])
    with forgetting.worker(name="forgetting"):
        forgetting.await_rest()
        wait_until(lambda: is_forgotten(site), within_seconds=20, what="a batch is forgotten", every_seconds=0.2)
    with site.worker(name="both"):
        for each in before_the_last_commit():
            site.send([each])
        site.await_rest()
        _, problems = site.seen()
        assert problems == []
    aggregated = site.outside.committed(f"{GROUP}.aggregator", TOPICS.scored)
    with site.worker(name="scorer", role="scorer"):
        site.send(behind_the_last_commit())
        wait_until(lambda: site.outside.lag(GROUP, TOPICS.input) == 0, within_seconds=60, what="all is scored")
    return Frozen(
        cases=Path(site.installation.expectations),
        records={name: site.outside.read(getattr(TOPICS, name)) for name in NAMES},
        ends={partition: ends.log for partition, ends in site.outside.ends(TOPICS.scored).items()},
        scorer=site.outside.committed(GROUP, TOPICS.input),
        aggregator=aggregated,
    )


def is_forgotten(site: Site) -> bool:
    return any(b'"forgotten"' in (record.value or b"") for record in site.outside.read(TOPICS.state))


def test_what_this_version_leaves_can_be_kept(own_broker: Callable[..., KafkaBroker], tmp_path: Path) -> None:
    cases = write_batches(tmp_path / "cases", BATCHES)
    with default_site(own_broker(), tmp_path, cases) as site:
        left = left_behind(site)

    assert {record.partition for record in left.records["scored"]} == set(range(PARTITIONS))
    assert all(left.ends[partition] > left.aggregator[partition] for partition in range(PARTITIONS))
    if os.environ.get(UPDATE) == "1" and not (HERE / __version__ / "offsets.json").exists():
        folder = save(left, __version__)
        pytest.fail(f"{folder.relative_to(PROJECT)} was written: read it, then run without {UPDATE}")


# --- the next version takes over --------------------------------------------------------------------------------------


def fill(site: Site, frozen: Frozen) -> None:
    """Make the topics and groups what they were, `scored` offset by offset."""
    assert site.send([outgoing(record) for record in frozen.records["input"]]) == places(frozen.records["input"])
    for name in ("state", "result", "report", "dead_letter"):
        site.outside.produce(getattr(TOPICS, name), [outgoing(record) for record in frozen.records[name]])
    for partition in range(frozen.partitions):
        refill_scored(site, frozen, partition)
    assert places(site.outside.read(TOPICS.scored)) == places(frozen.records["scored"])
    commit(site, GROUP, TOPICS.input, frozen.scorer, has_notes=has_notes(frozen))
    commit(site, f"{GROUP}.aggregator", TOPICS.scored, frozen.aggregator)


def outgoing(record: Record) -> Outgoing:
    return Outgoing(record.value, record.key, record.headers, record.timestamp, record.partition)


def places(records: Sequence[Record]) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in records]


def refill_scored(site: Site, frozen: Frozen, partition: int) -> None:
    """One commit leaves a gap of one offset, an aborted transaction one of its records and its own mark."""
    name = {"transactional.id": f"refill-{partition}"}
    producer = Producer({"bootstrap.servers": site.outside.bootstrap_servers, "log_level": 2} | name)
    producer.init_transactions(CALL_SECONDS)
    for run in runs(frozen.of("scored", partition), frozen.ends[partition]):
        records = [outgoing(record) for record in run.records]
        if run.gap == 1:
            transaction(producer, records, producer.commit_transaction)
        else:
            site.outside.produce(TOPICS.scored, records)
        if run.gap > 1:
            fillers = [Outgoing(b"never committed", partition=partition)] * (run.gap - 1)
            transaction(producer, fillers, producer.abort_transaction)
        # The coordinator writes its marks a moment after it has answered.
        end = run.records[-1].offset + 1 + run.gap
        wait_until(
            lambda end=end: site.outside.ends(TOPICS.scored)[partition].log == end,  # type: ignore[misc] # bound now
            within_seconds=CALL_SECONDS,
            what="the mark is written",
        )


def transaction(producer: Producer, records: Sequence[Outgoing], end: Callable[[float], object]) -> None:
    producer.begin_transaction()
    for record in records:
        stamp = {} if record.timestamp is None else {"timestamp": record.timestamp}
        assert record.partition is not None
        producer.produce(
            TOPICS.scored,
            record.value,
            record.key,
            record.partition,
            headers=list(record.headers),
            **stamp,  # type: ignore[arg-type] # left out, it is the client's clock
        )
    producer.flush(CALL_SECONDS)  # what is aborted unsent would leave no mark
    end(CALL_SECONDS)


def has_notes(frozen: Frozen) -> bool:
    """Whether the scorers of that version committed their offsets with notes: with schema 2, notes came."""
    return {record.header("safe.schema") for record in frozen.records["scored"]} != {"1"}


def commit(site: Site, group: str, topic: str, offsets: Mapping[int, int], *, has_notes: bool = False) -> None:
    """Commit a group's offsets until they are seen: an error of one partition is none of the call."""
    notes = {partition: f"next_offset={offset}" if has_notes else "" for partition, offset in offsets.items()}
    wanted = [TopicPartition(topic, partition, offset, notes[partition]) for partition, offset in offsets.items()]

    def is_committed() -> bool:
        asked = site.outside.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)])
        asked[group].result(CALL_SECONDS)
        return site.outside.committed(group, topic) == offsets

    wait_until(is_committed, within_seconds=CALL_SECONDS, what=f"{group} is at {offsets}")


def again(frozen: Frozen) -> list[Outgoing]:
    """What comes after the upgrade: every event once more with another output, later or earlier than all before.

    But of no batch that is forgotten: it would be opened anew.
    """
    sent = [json.loads(record.value or b"") for record in frozen.records["input"] if record.key != b"poison"]
    events = [event for event in sent if frozen.stages[event["batch_id"]] == "live"]
    outputs = [event["output"] for event in events]
    random.Random(SEED).shuffle(outputs)
    return [
        Outgoing(
            encoded(event | {"output": output, "generated_at": f"20{40 if at % 3 else 10}-01-01T00:00:00Z"}),
            partition=at % frozen.partitions,
        )
        for at, (event, output) in enumerate(zip(events, outputs, strict=True))
    ]


def without_narratives(cases: Path, folder: Path) -> Path:
    """The same test cases without their stories: the older version did not ask what an output was made from."""
    folder.mkdir()
    for file in cases.glob("*.json"):
        document = json.loads(file.read_text(encoding="utf-8"))
        for case in document["test_cases"]:
            case.pop("patient_payload", None)
        (folder / file.name).write_text(json.dumps(document), encoding="utf-8")
    return folder


@pytest.mark.parametrize("version", versions())
def test_what_an_older_version_left_is_taken_over_and_nothing_counts_twice(
    version: str, own_broker: Callable[..., KafkaBroker], tmp_path: Path
) -> None:
    frozen = load(version)
    with default_site(own_broker(), tmp_path, without_narratives(frozen.cases, tmp_path / "cases")) as site:
        fill(site, frozen)
        with site.worker(name="upgraded") as worker:
            site.await_rest()
            taken_over, problems = site.seen()
            site.send(again(frozen))
            site.await_rest()
            gone_on, later = site.seen()
            assert worker.stop() == 0
        with site.worker(name="restarted") as restarted:
            site.await_rest()
            assert accepted(restarted) == {}

    assert accepted(worker) == ({} if has_notes(frozen) else gaps(frozen))
    assert problems == later == []
    assert check(taken_over.with_(results=[*taken_over.results, taken_over.results[-1]]), site.oracle) != []
    assert len(taken_over.results) == len(frozen.records["scored"])
    assert len(gone_on.results) == len(frozen.records["scored"]) + len(again(frozen))


def accepted(worker: Worker) -> dict[int, tuple[int, int]]:
    """The offset without a note of each partition that it has accepted, and how far the partition was scored."""
    event = "an offset without a note of SAFE is accepted"
    lines = [line for line in worker.log_lines() if line.get("event") == event]
    return {line["partition"]: (line["offset"], line["scored_up_to"]) for line in lines}


def gaps(frozen: Frozen) -> dict[int, tuple[int, int]]:
    """The same, from what is kept."""
    newest: dict[int, tuple[int, int]] = {}
    for record in frozen.records["scored"]:
        source = record.json()["source"]
        at = (record.json()["scored_at"], source["offset"])
        newest[source["partition"]] = max(newest.get(source["partition"], at), at)
    return {partition: (offset, newest[partition][1] + 1) for partition, offset in frozen.scorer.items()}


# --- a newer version, and back again ----------------------------------------------------------------------------------

NEXT = f"import consumer.wire.headers as headers\n\nheaders.SCHEMA = {SCHEMA + 1}\n"


@pytest.fixture
def site(site_over: Callable[..., Site], tmp_path: Path) -> Site:
    """Four partitions."""
    return site_over(write_batches(tmp_path / "cases", BATCHES), partitions=4, settings=QUICK)


def of_the_next_version(site: Site, folder: Path) -> Site:
    """The same installation by a SAFE that writes the next schema, and is this one in all else."""
    (folder / "next").mkdir(exist_ok=True)
    (folder / "next" / "sitecustomize.py").write_text(NEXT, encoding="utf-8")
    return told(site, PYTHONPATH=f"{folder / 'next'}{os.pathsep}{PROJECT}")


BEFORE = f"import consumer.wire.headers as headers\n\nheaders.SCHEMA = {SCHEMA - 1}\n"


def of_the_version_before(site: Site, folder: Path) -> Site:
    """The same installation by a SAFE that writes the schema before, and believes every event time."""
    (folder / "before").mkdir()
    (folder / "before" / "sitecustomize.py").write_text(BEFORE, encoding="utf-8")
    believing = {"SAFE_V0_EVENT_TIME_AHEAD_SECONDS": str(10**10)}
    return told(site, PYTHONPATH=f"{folder / 'before'}{os.pathsep}{PROJECT}", **believing)


def schemas(site: Site, topic: str) -> set[str | None]:
    return {record.header("safe.schema") for record in site.outside.read(topic)}


def partition_of_batch(site: Site, at: int) -> int:
    case = BATCHES[at].cases[0]
    return partition_of(quoted(case.concern_id, case.batch_id), site.outside.partitions(site.topics.scored))


def await_scored(site: Site) -> None:
    wait_until(
        lambda: site.outside.lag(site.group, site.topics.input) == 0,
        within_seconds=60,
        what="all is scored",
        every_seconds=0.2,
    )


def test_scorers_that_are_rolled_out_too_early_make_aggregators_wait_and_lose_nothing(
    site: Site, tmp_path: Path
) -> None:
    newer = of_the_next_version(site, tmp_path)
    waiting, going = partition_of_batch(site, 0), partition_of_batch(site, 1)
    assert waiting != going
    site.send([of(BATCHES[0].cases[0], "pass")])
    with site.worker(role="aggregator", name="old aggregator") as aggregator:
        with site.worker(role="scorer", name="old scorer"):
            site.await_rest()
        with newer.worker(role="scorer", name="new scorer"):
            site.send([of(BATCHES[0].cases[1], "pass")])
            await_scored(site)
        with site.worker(role="scorer", name="old scorer again"):
            site.send([of(BATCHES[0].cases[2], "pass"), of(BATCHES[1].cases[0], "pass")])
            await_scored(site)
        wait_until(
            lambda: aggregator.get("/readyz")[0] != 200, within_seconds=NOTICED_SECONDS, what="readiness is denied"
        )
        wait_until(lambda: results(site) == {0: 1, 1: 1}, within_seconds=NOTICED_SECONDS, what="the others go on")
        said = aggregator.get("/readyz")[1]
        assert f"partition {waiting} of {site.topics.scored}: schema {SCHEMA + 1} was written by a newer SAFE" in said
        assert "roll out aggregators first" in said
        assert f"partition {going} of {site.topics.scored}" not in said
        assert site.outside.read(site.topics.dead_letter) == []
        assert aggregator.stop() == 0
    with newer.worker(role="aggregator", name="new aggregator"):
        site.await_rest()
        run, problems = site.seen()

    assert problems == []
    assert len(run.results) == 4


def results(site: Site) -> dict[int, int]:
    """How many results each batch has, by its number."""
    names = [record.json()["batch_id"] for record in site.outside.read(site.topics.result)]
    return {at: names.count(batch.batch_id) for at, batch in enumerate(BATCHES) if batch.batch_id in names}


def test_aggregators_are_rolled_out_before_scorers_and_nothing_stops(site: Site, tmp_path: Path) -> None:
    newer = of_the_next_version(site, tmp_path)
    stream = list(event_stream(SEED, BATCHES, 90, partitions=4, repeated=0.5))
    with site.worker(role="scorer", name="old scorer") as scorer:
        with site.worker(role="aggregator", name="old aggregator"):
            site.send(stream[:30])
            site.await_rest()
        with newer.worker(role="aggregator", name="new aggregator"):
            site.send(stream[30:60])
            site.await_rest()
            assert scorer.stop() == 0
            with newer.worker(role="scorer", name="new scorer"):
                site.send(stream[60:])
                site.await_rest()
                run, problems = site.seen()

    assert problems == []
    assert len(run.inputs) == len(stream)
    assert schemas(site, site.topics.scored) == schemas(site, site.topics.state) == {str(SCHEMA), str(SCHEMA + 1)}


def are_two(site: Site) -> bool:
    """Whether two aggregators share the partitions."""
    members = site.outside.members(f"{site.group}.aggregator")
    return [len(partitions) for partitions in members.values()] == [2, 2]


def test_workers_of_both_roles_are_exchanged_one_by_one_under_load(site: Site, tmp_path: Path) -> None:
    newer = of_the_next_version(site, tmp_path)
    stream = list(event_stream(SEED, BATCHES, 2_000, partitions=4, repeated=0.5))
    old = [site.spawn(f"old {number}").await_ready() for number in (1, 2)]
    with Feeder(site.outside, site.topics.input, stream, records_a_second=100) as feeder:
        for number, worker in enumerate(old, start=1):
            assert worker.stop() == 0
            newer.spawn(f"new {number}")
            wait_until(lambda: are_two(site), within_seconds=60, what="the new one has joined", every_seconds=0.2)
        wait_until(lambda: feeder.is_done, within_seconds=60, what="all inputs are written")
        site.await_rest()
        run, problems = site.seen()
    for worker in site.workers[-2:]:
        worker.await_ready()

    assert problems == []
    assert len(run.inputs) == len(stream)


def test_a_state_that_a_newer_version_wrote_ends_an_older_one_with_the_remedy(site: Site, tmp_path: Path) -> None:
    newer = of_the_next_version(site, tmp_path)
    site.send([of(BATCHES[0].cases[0], "pass")])
    with newer.worker(name="new"):
        site.await_rest()
    site.send([of(BATCHES[0].cases[1], "pass")])
    old = site.spawn("old")
    assert old.wait() == EXIT_UNUSABLE
    sentence = last_line(old)
    with newer.worker(name="new again"):  # which is the remedy
        site.await_rest()
        run, problems = site.seen()

    first = {row.partition: row.offset for row in reversed(site.outside.read(site.topics.state))}
    sentences = [f"row {offset} of {site.topics.state}/{at} cannot be read" for at, offset in first.items()]
    assert any(each in sentence for each in sentences), "it says so of the first partition that it takes up"
    assert "written by a newer SAFE" in sentence
    assert "run the version of SAFE that wrote it" in sentence
    assert "Traceback" not in old.log_text()
    assert problems == []
    assert len(run.results) == 2


def test_an_event_time_that_an_older_version_believed_decides_nothing_any_more(site: Site, tmp_path: Path) -> None:
    """Aggregators first: they judge an old scorer's records, and the row of 2062 when they restore it."""
    older = of_the_version_before(site, tmp_path)
    case = BATCHES[0].cases[0]
    key = quoted(case.concern_id, case.batch_id, case.test_id).encode()

    def counted(*runs: str) -> str:
        """Send an output of each run; whose is the one that counts then."""
        for run in runs:
            is_wrong = run == "wrong clock"
            moment = "2062-01-01T00:00:00Z" if is_wrong else datetime.now(UTC).isoformat()
            site.send([of(case, "pass", generated_at=moment, run_id=run)])
        site.await_rest()
        *_, row = (row for row in site.outside.read(site.topics.state) if row.key == key)
        run_id: str = row.json()["run_id"]
        return run_id

    with older.worker(role="scorer", name="old scorer"):
        with older.worker(role="aggregator", name="old aggregator"):
            assert counted("wrong clock", "1") == "wrong clock"
        with site.worker(role="aggregator", name="new aggregator"):
            assert counted("2") == "2"
            assert counted("wrong clock", "3") == "3"
    assert schemas(site, site.topics.scored) == {str(SCHEMA - 1)}
    with site.worker(name="new"):
        assert counted("wrong clock", "4") == "4"
    assert schemas(site, site.topics.scored) == {str(SCHEMA - 1), str(SCHEMA)}


def last_line(worker: Worker) -> str:
    return worker.log_text().splitlines()[-1]
