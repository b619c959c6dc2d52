"""Batches that a broker's disk has damaged, or that come from another age: nothing of them is skipped or guessed."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.bad_inputs import NEIGHBOUR, write_cases
from tests.support.batches import (
    CODECS,
    BatchWriter,
    Codec,
    change_batch,
    encode_batch,
    with_a_flipped_bit,
    with_codec_number,
    with_version,
)
from tests.support.checker import result_source
from tests.support.kafka_broker import KafkaBroker
from tests.support.outside import Outgoing, Outside
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Worker, why_it_ended

pytestmark = pytest.mark.broker

WITHIN_SECONDS = 60.0
A_BATCH = 3
UNTOUCHED = len(CODECS)
"""The partition behind those of the codecs, in which nothing is damaged."""
UNKNOWN_CODEC, UNKNOWN_VERSION = 5, 3


def write_batches(site: Site, batches: int, partitions: int) -> None:
    """Write the same batches of good inputs into each partition, each by its own codec."""
    now_ms = int(time.time() * 1000)
    codecs = (*CODECS, "none")
    with BatchWriter(site.outside, site.topics.input) as writer:
        for _ in range(batches):
            for partition in range(partitions):
                writer.store(encode_batch([NEIGHBOUR] * A_BATCH, codecs[partition], now_ms=now_ms), partition)


def segment(broker: KafkaBroker, topic: str, partition: int) -> Path:
    """The only segment of a partition."""
    return broker.log.parent / "data" / f"{topic}-{partition}" / f"{0:020}.log"


@pytest.fixture
def damaged_broker(own_broker: Callable[..., KafkaBroker]) -> Iterator[tuple[KafkaBroker, Outside]]:
    """A broker whose disk a test may reach, and a client of it."""
    broker = own_broker()
    with Outside(broker.bootstrap_servers) as outside:
        yield broker, outside


def test_a_batch_that_fails_its_checksum_makes_its_own_partition_wait(
    damaged_broker: tuple[KafkaBroker, Outside], tmp_path: Path
) -> None:
    broker, outside = damaged_broker
    site = Site.build(outside, tmp_path, write_cases(tmp_path), partitions=len(CODECS) + 1)
    write_batches(site, 3, len(CODECS) + 1)
    segments = [segment(broker, site.topics.input, partition) for partition in range(len(CODECS))]
    broker.stop()
    for each in segments:
        change_batch(each, 1, with_a_flipped_bit)
    broker.start()

    worker = site.spawn("stuck")
    wanted = dict.fromkeys(range(len(CODECS)), A_BATCH) | {UNTOUCHED: 3 * A_BATCH}
    wait_until(lambda: results(site) == wanted, within_seconds=WITHIN_SECONDS, what="all but the damage is scored")
    for more in range(1, 4):  # one by one: the damage is met again and again between them
        site.send([Outgoing(NEIGHBOUR.value, partition=UNTOUCHED)])
        wanted[UNTOUCHED] = 3 * A_BATCH + more
        wait_until(lambda: results(site) == wanted, within_seconds=WITHIN_SECONDS, what="the others are served")
    for partition in range(len(CODECS)):
        assert f"{site.topics.input}/{partition} at offset {A_BATCH}: a record batch fails its checksum" in health(
            worker
        )
        assert outside.committed(site.group, site.topics.input)[partition] == A_BATCH
    assert "fails its checksum" in worker.log_text()
    assert outside.read(site.topics.dead_letter) == []
    assert worker.stop() == 0

    broker.stop()
    for each in segments:
        change_batch(each, 1, with_a_flipped_bit)
    broker.start()
    with Outside(broker.bootstrap_servers) as site.outside, site.worker(name="mended") as worker:
        site.await_rest()
        run, problems = site.seen()
        assert worker.stop() == 0
    assert problems == []
    assert len({result_source(result) for result in run.results}) == len(run.results) == 6 * 3 * A_BATCH + 3


def results(site: Site) -> dict[int, int]:
    """How many results there are of each input partition."""
    counts: dict[int, int] = {}
    for result in site.outside.read(site.topics.result):
        partition = result_source(result)[1]
        counts[partition] = counts.get(partition, 0) + 1
    return counts


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "compression": lambda batch: with_codec_number(batch, UNKNOWN_CODEC),
    "format": lambda batch: with_version(batch, UNKNOWN_VERSION),
}


def test_an_unknown_codec_or_version_stops_the_worker_in_one_sentence(
    damaged_broker: tuple[KafkaBroker, Outside], tmp_path: Path
) -> None:
    broker, outside = damaged_broker
    cases = write_cases(tmp_path)
    sites = {word: Site.build(outside, tmp_path / word, cases, partitions=1) for word in DAMAGES}
    for site in sites.values():
        write_batches(site, 3, 1)
    broker.stop()
    for word, site in sites.items():
        change_batch(segment(broker, site.topics.input, 0), 1, DAMAGES[word])
    broker.start()
    for word, site in sites.items():
        worker = site.spawn(word)
        try:
            assert worker.wait(within_seconds=WITHIN_SECONDS) not in {0, 1}
        finally:
            worker.discard()
        assert site.topics.input in last_error(worker)
        assert word in last_error(worker)
        assert results(site) in ({}, {0: A_BATCH}), "what stands before it may be scored, and no more"
        assert outside.read(site.topics.dead_letter) == []


ODD_NAME = b"caf\xe9".decode("utf-8", "surrogateescape")
KEPT = (("before", b"\xff\x00"), ("after", None))


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_header_whose_name_is_not_utf_8_is_left_out_of_a_dead_letter_and_reading_goes_on(
    codec: Codec, outside: Outside, tmp_path: Path
) -> None:
    """A broker takes it, and no client of Kafka's own can write it."""
    site = Site.build(outside, tmp_path, write_cases(tmp_path), partitions=2)
    now_ms = int(time.time() * 1000)
    odd = replace(NEIGHBOUR, key=b"k", headers=(KEPT[0], (ODD_NAME, b"x"), KEPT[1]))
    tombstone = replace(odd, value=None)
    with site.worker() as worker, BatchWriter(outside, site.topics.input) as writer:
        for _ in range(2):
            writer.store(encode_batch([NEIGHBOUR, odd, NEIGHBOUR, tombstone, NEIGHBOUR], codec, now_ms=now_ms))
        writer.store(encode_batch([NEIGHBOUR], now_ms=now_ms), partition=1)
        wait_until(
            lambda: outside.lag(site.group, site.topics.input) == 0, within_seconds=WITHIN_SECONDS, what="all is read"
        )
        wait_until(lambda: results(site) == {0: 6, 1: 1}, within_seconds=WITHIN_SECONDS, what="the others are scored")
        assert worker.total("safe_dead_letters_total", reason="not_utf8") == 2
        assert worker.total("safe_records_total", outcome="ignored") == 2
        assert worker.stop() == 0
    letters = outside.read(site.topics.dead_letter)
    assert [(letter.key, letter.value) for letter in letters] == [(odd.key, odd.value)] * 2
    assert [letter.header("safe.dlq.offset") for letter in letters] == ["1", "6"]
    for letter in letters:
        told = [name for name, _ in letter.headers if name.startswith("safe.dlq.")]
        assert tuple(header for header in letter.headers if header[0] not in told) == KEPT
        assert (letter.header("safe.dlq.reason"), letter.header("safe.dlq.stage")) == ("not_utf8", "scorer")
        assert (letter.header("safe.dlq.detail") or "") == "the name of a header is not UTF-8"


def health(worker: Worker) -> str:
    """Why a worker is not ready; nothing where nobody answers yet, or it is."""
    with suppress(OSError):
        status, words = worker.get("/readyz")
        return words if status != 200 else ""
    return ""


def last_error(worker: Worker) -> str:
    """Why a worker has ended."""
    return why_it_ended(worker.log_text())
