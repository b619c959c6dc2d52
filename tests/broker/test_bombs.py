"""Batches that become too large when they are decompressed: their partition waits and says so, and nothing is lost."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from tests.support.cases import encoded, make_batches, make_event, write_batches
from tests.support.outside import Outgoing
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Worker

pytestmark = pytest.mark.broker

BATCHES = make_batches(46, batches=2, cases_a_batch=20)
CASES = [case for batch in BATCHES for case in batch.cases]
WITHIN_SECONDS = 30.0
LIMIT = 1024 * 1024
BOMB_BYTES = 8 * LIMIT
NARROW = {"SAFE_V0_MAX_BATCH_BYTES": str(LIMIT)}
WIDE = {"SAFE_V0_MAX_BATCH_BYTES": str(2 * BOMB_BYTES)}


def scored_input(at: int, partition: int) -> Outgoing:
    event = make_event(random.Random(at), CASES[at], quality="pass")
    return Outgoing(encoded(event), partition=partition)


def with_settings(site: Site, settings: dict[str, str]) -> Site:
    """The same installation, started again with other settings."""
    return Site(site.outside, site.folder, replace(site.installation, settings=settings), site.oracle, site.workers)


def results(site: Site) -> int:
    return len(site.outside.read(site.topics.result))


def why_not_ready(worker: Worker) -> str:
    status, text = worker.get("/readyz")
    return text if status != 200 else ""


@pytest.fixture
def site(site_over: Callable[..., Site], tmp_path: Path) -> Site:
    return site_over(write_batches(tmp_path / "cases", BATCHES), partitions=2, settings=NARROW)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_bomb_makes_its_own_partition_wait_and_no_other(site: Site, codec: str) -> None:
    """Good records stand before and behind it in its partition, and go on coming in the other one."""
    site.send([scored_input(at, partition=0) for at in range(3)], compression=codec)
    [(_, offset)] = site.send([Outgoing(b" " * BOMB_BYTES, partition=0)], compression=codec)
    site.send([scored_input(at, partition=0) for at in range(3, 6)], compression=codec)
    worker = site.spawn("narrow")
    place = f"{site.topics.input}/0 at offset {offset}: a compressed batch is larger than {LIMIT} bytes decompressed"
    wait_until(lambda: _says(worker, place), within_seconds=WITHIN_SECONDS, what="the worker says what it waits for")
    assert "SAFE_V0_MAX_BATCH_BYTES" in why_not_ready(worker)
    for at in range(6, 12):  # one by one: the bomb is met again and again between them
        site.send([scored_input(at, partition=1)], compression=codec)
        wait_until(lambda: results(site) == 3 + at - 5, within_seconds=WITHIN_SECONDS, what="the other one is served")  # noqa: B023
    assert not site.outside.read(site.topics.dead_letter)
    assert site.outside.committed(site.group, site.topics.input)[0] == offset
    assert place in why_not_ready(worker)
    assert [line["event"] for line in worker.log_lines()].count("the partition waits") == 1, "it is said once"
    assert worker.stop() == 0

    mended = with_settings(site, WIDE)
    with mended.worker(name="wide") as worker:
        mended.await_rest()
        run, problems = mended.seen()  # while the worker runs, since it may owe reports
        worker.stop()
    assert problems == []
    assert [letter.header("safe.dlq.reason") for letter in run.dead_letters] == ["too_large"]
    assert results(mended) == 12


def _says(worker: Worker, words: str) -> bool:
    try:
        return words in why_not_ready(worker)
    except OSError:
        return False


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_batch_within_the_limit_is_served_in_slices(site: Site, codec: str) -> None:
    """Many records in one compressed batch that is large, and not too large."""
    wide = with_settings(site, WIDE)
    events = [scored_input(at % len(CASES), partition=0) for at in range(3_000)]
    wide.send(events, compression=codec)
    with wide.worker() as worker:
        wide.await_rest()
        _, problems = wide.seen()
        worker.stop()
    assert problems == []
    assert results(wide) == len(events)


async def _in_one_batch(site: Site, partition: int, values: Sequence[bytes]) -> None:
    """Write records as one compressed batch of the wire format, however large it becomes when it is decompressed."""
    producer = AIOKafkaProducer(
        bootstrap_servers=site.outside.bootstrap_servers,
        compression_type="zstd",
        max_batch_size=64 * LIMIT,
        max_request_size=64 * LIMIT,
    )
    await producer.start()
    try:
        batch = producer.create_batch()
        for value in values:
            assert batch.append(key=None, value=value, timestamp=None) is not None
        batch.close()
        await (await producer.send_batch(batch, site.topics.input, partition=partition))
    finally:
        await producer.stop()


def test_a_partition_that_waits_amid_a_large_batch_shuts_no_other_out(site: Site) -> None:
    """What is left of its batch would keep the memory that the other one's batch needs."""
    limits = {"SAFE_V0_MAX_BATCH_BYTES": str(4 * LIMIT), "SAFE_V0_POISON_RUN_LIMIT": "3"}
    stopped = with_settings(site, limits)
    asyncio.run(_in_one_batch(site, 0, [b"x" * 170] * 20_000))
    worker = stopped.spawn("stopped")
    wait_until(
        lambda: _says(worker, "SAFE_V0_POISON_RUN_LIMIT"),
        within_seconds=WITHIN_SECONDS,
        what="the first partition waits",
    )
    good = [scored_input(at % len(CASES), partition=1).value or b"" for at in range(3_000)]
    asyncio.run(_in_one_batch(site, 1, good))
    wait_until(
        lambda: site.outside.committed(site.group, site.topics.input).get(1) == 3_000,
        within_seconds=WITHIN_SECONDS,
        what="the other one is served",
    )
    assert "SAFE_V0_POISON_RUN_LIMIT" in why_not_ready(worker)
    assert worker.stop() == 0
