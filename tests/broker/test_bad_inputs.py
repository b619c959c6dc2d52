"""Every bad input through a real worker on a real broker, wherever it stands in a batch, under every codec."""

import hashlib
import json
import re
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pytest
from confluent_kafka import Producer
from typing_extensions import override

from tests.support.bad_inputs import (
    ALIKE,
    BAD_INPUTS,
    BATCH,
    CASE,
    DECEPTIVE,
    ID_CANARY,
    IGNORED,
    NEIGHBOUR,
    OUR_TYPE,
    SCORED,
    TEXT_CANARY,
    BadInput,
    Json,
    expectations,
    write_cases,
    write_traps,
)
from tests.support.batches import CODECS, BatchWriter, Codec, encode_batch
from tests.support.checker import (
    DLQ,
    MAX_DETAIL_BYTES,
    Run,
    Source,
    canonical,
    check,
    dead_letter_source,
    result_source,
)
from tests.support.kafka_broker import PROJECT
from tests.support.oracle import CaseBook, Dead, Ignored, Oracle, Outcome, Scored
from tests.support.outside import CALL_SECONDS, Outgoing, Outside, Record
from tests.support.site import Site
from tests.support.waiting import wait_until

pytestmark = pytest.mark.broker

Position = Literal["only", "first", "middle", "last"]
# A batch with the bad input (True) where the position says, among good neighbours.
BATCHES: dict[Position, tuple[bool, ...]] = {
    "only": (True,),
    "first": (True, False, False),
    "middle": (False, True, False),
    "last": (False, False, True),
}
POSITIONS = tuple(BATCHES)
ABORTED_PARTITION = len(CODECS)
PARTITIONS = len(CODECS) + 1
# The topic must take what the worker must refuse.
INPUT_CONFIG = {"max.message.bytes": str(16 << 20)}
REST_SECONDS = 240.0
REPORT_SECONDS = 30.0

EXPORTED_BATCHES = 10
OUTCOMES = ("scored", "dead_lettered", "ignored", "foreign")

# Tests of rows that are about more than one record, or about what else reads these texts.
ELSEWHERE: dict[int, tuple[str, ...]] = {
    34: ("tests/consumer/test_http_source.py::test_each_id_is_one_quoted_segment_whatever_it_looks_like",),
    36: ("tests/consumer/test_http_source.py::test_each_id_is_one_quoted_segment_whatever_it_looks_like",),
    38: ("tests/consumer/test_csv_table.py::test_a_cell_is_never_a_formula",),
    39: (
        "tests/consumer/test_html_page.py::test_a_text_from_outside_is_shown_as_it_is_and_is_never_markup",
        "tests/consumer/test_markdown.py::test_texts_outside_of_cases_are_no_markup_either",
        "tests/consumer/test_logs.py::test_no_character_that_a_terminal_obeys_is_written",
    ),
    46: ("tests/broker/test_bombs.py::test_a_bomb_makes_its_own_partition_wait_and_no_other",),
    47: ("tests/consumer/test_decompression.py::test_a_bomb_writes_nowhere_but_into_the_buffer_it_is_given",),
    48: ("tests/broker/test_bombs.py::test_a_batch_within_the_limit_is_served_in_slices",),
    49: ("tests/broker/test_damaged_batches.py::test_an_unknown_codec_or_version_stops_the_worker_in_one_sentence",),
    50: ("tests/broker/test_damaged_batches.py::test_a_batch_that_fails_its_checksum_makes_its_own_partition_wait",),
    56: ("tests/consumer/test_scorer.py::test_within_the_grace_the_partition_waits_for_a_test_case",),
    58: ("tests/consumer/test_http_source.py::test_a_whole_answer_that_cannot_be_scored_against_is_invalid",),
    59: ("tests/broker/test_sources_under_fault.py::test_an_outage_of_the_service_costs_time_and_nothing_else",),
    60: ("tests/broker/test_bad_inputs.py::test_each_result_names_the_expectations_that_stood_when_it_was_scored",),
    # Offsets are read again whenever something fails, there and wherever a worker is killed.
    64: (
        "tests/consumer/test_poll_loop.py::test_whatever_happens_each_record_is_processed_once_and_in_order",
        "tests/broker/test_chaos.py::test_no_input_is_lost_or_counted_twice_whatever_happens_to_the_workers",
    ),
    68: ("tests/broker/test_bad_inputs.py::test_records_of_aborted_transactions_are_never_seen",),
}


@dataclass(frozen=True, slots=True)
class Placed:
    """A record where it came to stand; `bad` is None for a good neighbour."""

    bad: BadInput | None
    codec: Codec
    position: Position
    record: Record

    @override
    def __str__(self) -> str:
        return f"{self.bad}, {self.position} of a batch, {self.codec}, at {self.record.partition}/{self.record.offset}"


@dataclass(frozen=True, slots=True)
class TableOracle(Oracle):
    """Tells what must become of each record as the table has it; scores come from the oracle itself."""

    told: dict[Source, Outcome] = field(default_factory=dict)
    known: dict[int, Outcome] = field(default_factory=dict)

    @override
    def outcome(self, record: Record) -> Outcome:
        return self.told[record.source]

    def tell(self, placed: Placed) -> None:
        """Note what must become of a record."""
        name = id(placed.bad)
        if name not in self.known:
            self.known[name] = self._wanted(placed)
        self.told[placed.record.source] = replace(self.known[name], source=placed.record.source)

    def _wanted(self, placed: Placed) -> Outcome:
        bad, record = placed.bad, placed.record
        if bad is None:
            return Oracle.outcome(self, record)
        if bad.verdict == {IGNORED}:
            return Ignored(record.source)
        if bad.verdict != {SCORED}:
            return Dead(record.source, bad.verdict)
        scored = Oracle.outcome(self, replace(record, value=bad.value))
        assert isinstance(scored, Scored), f"{bad}: the oracle would not score it: {scored}"
        assert bad.scores in {None, scored.scores[:3]}, f"{bad}: the oracle scores {scored.scores}"
        return replace(scored, output_digest="sha256:" + hashlib.sha256(bad.record.value or b"").hexdigest())


@dataclass(slots=True, repr=False)
class Finished:
    """What a foreign client and an operator saw of the whole table; a failing test would print gigabytes of it."""

    site: Site
    placed: list[Placed]
    oracle: TableOracle
    run: Run
    problems: list[str]
    counted: Mapping[str, float]
    reasons: Mapping[str, float]
    said: Mapping[str, str]
    results: dict[Source, list[Record]] = field(default_factory=lambda: defaultdict(list))
    letters: dict[Source, list[Record]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for record in self.run.results:
            self.results[result_source(record)].append(record)
        for record in self.run.dead_letters:
            self.letters[dead_letter_source(record)].append(record)

    def complaints(self, placed: Placed) -> Iterator[str]:
        """Say how an input's outcome differs from what the table wants."""
        assert placed.bad is not None
        source = placed.record.source
        results, letters = self.results[source], self.letters[source]
        reasons = [str(letter.header(DLQ + "reason")) for letter in letters]
        seen = [SCORED] * len(results) + reasons or [IGNORED]
        if len(seen) != 1 or seen[0] not in placed.bad.verdict:
            yield f"{placed}: {' and '.join(seen)}, wanted {' or '.join(sorted(placed.bad.verdict))}"
            return
        for result in results:
            yield from (f"{placed}: {problem}" for problem in _wrong_in_result(result, self.oracle.told[source]))
        for letter in letters:
            yield from (f"{placed}: {problem}" for problem in _wrong_in_letter(letter, placed.record))


def _wrong_in_result(result: Record, wanted: Outcome) -> Iterator[str]:
    assert isinstance(wanted, Scored)
    shown = result.json()
    if canonical(shown["result"]) != canonical(wanted.document):
        yield f"scored {canonical(shown['result'])[:500]}, wanted {canonical(wanted.document)[:500]}"
    ids = {"concern_id": wanted.concern_id, "batch_id": wanted.batch_id, "run_id": wanted.run_id}
    if {name: shown[name] for name in ids} != ids:
        yield f"its ids differ from {ids}"
    if shown["source"]["event_time"] != wanted.event_time:
        yield f"event time {shown['source']['event_time']}, wanted {wanted.event_time}"


def _wrong_in_letter(letter: Record, original: Record) -> Iterator[str]:
    came = [header for header in original.headers if not header[0].startswith(DLQ)]
    kept = [header for header in letter.headers if not header[0].startswith(DLQ)]
    if (letter.key, kept) != (original.key, came):
        yield "key or headers differ"
    if letter.value != original.value:
        yield "the value differs"
    names = [name for name, _ in letter.headers if name.startswith(DLQ)]
    if len(names) != len(set(names)) or DLQ + "made_up" in names:
        yield f"its headers are {names}"
    detail = letter.header(DLQ + "detail") or ""
    if not 0 < len(detail.encode()) <= MAX_DETAIL_BYTES:
        yield f"its detail has {len(detail.encode())} bytes"
    for name in names:
        if TEXT_CANARY in (letter.header(name) or "") or ID_CANARY in (letter.header(name) or ""):
            yield f"{name} repeats the input"


# ------------------------------------------------------------------------------------------------------- one great run


@pytest.fixture(scope="module")
def finished(outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """One worker has read the whole table, every input at each position under each codec, and has stopped in order."""
    folder = tmp_path_factory.mktemp("bad-inputs")
    cases = write_cases(folder)
    settings = {
        "SAFE_V0_INPUT_TYPES": OUR_TYPE,
        "SAFE_V0_LOG_LEVEL": "debug",
        "SAFE_V0_MAX_EXPORTED_BATCHES": str(EXPORTED_BATCHES),
    }
    site = Site.build(outside, folder, cases, partitions=PARTITIONS, settings=settings, input_config=INPUT_CONFIG)
    oracle = TableOracle(CaseBook(cases))
    write_traps(cases)
    placed = write_table(site, oracle, int(time.time() * 1000))
    write_aborted(site)
    with site.worker() as worker:
        site.await_rest(within_seconds=REST_SECONDS)
        run, problems = _settled(site, oracle, placed)
        counted = {outcome: worker.total("safe_records_total", outcome=outcome) for outcome in OUTCOMES}
        reasons = {dict(labels)["reason"]: n for labels, n in worker.series("safe_dead_letters_total").items() if n}
        said = {path: worker.get(path)[1] for path in ("/metrics", "/readyz", "/livez")}
        assert worker.stop() == 0
    return Finished(site, placed, oracle, run, problems, counted, reasons, {**said, "log": worker.log_text()})


def write_table(site: Site, oracle: TableOracle, now_ms: int) -> list[Placed]:
    """Write every bad input under every codec, which each has a partition, and at every position."""
    plans = [(bad, _positions(number)) for number, bad in enumerate(BAD_INPUTS)]
    placed: list[Placed] = []
    with BatchWriter(site.outside, site.topics.input) as writer:
        stored = writer.store_all(_batches(bad, positions, now_ms) for bad, positions in plans)
        for (bad, positions), offsets in zip(plans, stored, strict=True):
            for partition, offset in offsets.items():
                for delta, is_bad in enumerate(BATCHES[positions[partition]]):
                    record = bad.record if is_bad else NEIGHBOUR
                    seen = _seen(site.topics.input, partition, offset + delta, record, now_ms)
                    placed.append(Placed(bad if is_bad else None, CODECS[partition], positions[partition], seen))
    for each in placed:
        oracle.tell(each)
    return placed


def _positions(number: int) -> list[Position]:
    """Where a bad input is in the batch of each codec: there are more codecs than positions, so it is at all of them.

    The next input is one position further: each codec has bad inputs at each position.
    """
    return [POSITIONS[(number + partition) % len(POSITIONS)] for partition in range(len(CODECS))]


def _batches(bad: BadInput, positions: Sequence[Position], now_ms: int) -> dict[int, bytes]:
    return {
        partition: encode_batch(
            [bad.record if is_bad else NEIGHBOUR for is_bad in BATCHES[positions[partition]]], codec, now_ms=now_ms
        )
        for partition, codec in enumerate(CODECS)
    }


def _seen(topic: str, partition: int, offset: int, record: Outgoing, now_ms: int) -> Record:
    timestamp = now_ms if record.timestamp is None else record.timestamp
    return Record(topic, partition, offset, record.key, record.value, record.headers, timestamp)


def write_aborted(site: Site) -> None:
    """Write, in a partition of its own, one aborted transaction for each codec, good and bad records in it."""
    for codec in CODECS:
        producer = Producer(
            {
                "bootstrap.servers": site.outside.bootstrap_servers,
                "transactional.id": uuid.uuid4().hex,
                "compression.type": codec,
                "log_level": 2,
            }
        )
        producer.init_transactions(CALL_SECONDS)
        producer.begin_transaction()
        for value in (NEIGHBOUR.value, f"[{TEXT_CANARY}]".encode(), None, b""):
            producer.produce(site.topics.input, value=value, key=b"aborted", partition=ABORTED_PARTITION)
        producer.flush(CALL_SECONDS)
        producer.abort_transaction(CALL_SECONDS)


def _settled(site: Site, oracle: TableOracle, placed: Sequence[Placed]) -> tuple[Run, list[str]]:
    """The run at rest and what the checker finds wrong with it; reports are given time to be published."""
    values = {each.record.source: each.record.value for each in placed}
    outside, topics = site.outside, site.topics
    letters = [_sharing(letter, values.get(dead_letter_source(letter))) for letter in outside.read(topics.dead_letter)]
    run = Run(
        group=site.group,
        topics=topics,
        inputs=[each.record for each in placed],
        results=outside.read(topics.result),
        dead_letters=letters,
        reports=[],
        committed=outside.committed(site.group, topics.input),
        result_partitions=PARTITIONS,
        dead_letter_partitions=outside.partitions(topics.dead_letter),
        hanging=outside.hanging(topics.outputs()),
        input_id=outside.topic_id(topics.input),
    )
    found: list[tuple[Run, list[str]]] = []

    def reported() -> bool:
        seen = run.with_(reports=outside.read(topics.report))
        found[:] = [(seen, check(seen, oracle))]
        return not any(problem.startswith("report") for problem in found[0][1])

    with suppress(AssertionError):  # the problems say what the reports lack
        wait_until(reported, within_seconds=REPORT_SECONDS, what="the reports are published", every_seconds=1.0)
    return found[0]


def _sharing(letter: Record, value: bytes | None) -> Record:
    """The same, holding the input's value where it is equal: copies of them all would fill the memory."""
    return replace(letter, value=value) if letter.value == value else letter


# ------------------------------------------------------------------------------------------------------ what it came to

ROWS = sorted({bad.row for bad in BAD_INPUTS})


@pytest.mark.parametrize("row", ROWS)
def test_each_input_of_a_row_comes_to_what_it_must(row: int, finished: Finished) -> None:
    of_row = [placed for placed in finished.placed if placed.bad is not None and placed.bad.row == row]
    assert len(of_row) == len({placed.bad for placed in of_row}) * len(CODECS)
    assert {placed.position for placed in of_row} == BATCHES.keys()
    complaints = [complaint for placed in of_row for complaint in finished.complaints(placed)]
    assert not complaints, f"{len(complaints)} of {len(of_row)} went wrong:\n" + "\n".join(complaints[:20])


def test_every_row_is_in_the_table_or_is_tested_elsewhere() -> None:
    assert sorted({*ROWS, *ELSEWHERE}) == list(range(1, 73))


@pytest.mark.parametrize("place", sorted({place for places in ELSEWHERE.values() for place in places}))
def test_what_is_tested_elsewhere_is_there(place: str) -> None:
    path, _, name = place.partition("::")
    assert f"def {name}(" in (PROJECT / path).read_text(encoding="utf-8")


def test_no_invariant_is_broken_and_good_neighbours_are_scored(finished: Finished) -> None:
    assert finished.problems[:20] == []


def test_every_input_is_counted_once_by_its_outcome_and_its_reason(finished: Finished) -> None:
    wanted = Counter(_word(finished.oracle.told[placed.record.source]) for placed in finished.placed)
    assert finished.counted == {outcome: wanted[outcome] for outcome in OUTCOMES}
    letters = Counter(str(letter.header(DLQ + "reason")) for letter in finished.run.dead_letters)
    assert {reason: count for reason, count in finished.reasons.items() if count} == letters


def _word(outcome: Outcome) -> str:
    return {Scored: "scored", Dead: "dead_lettered", Ignored: "ignored"}[type(outcome)]


@pytest.mark.parametrize("canary", [TEXT_CANARY, ID_CANARY])
def test_nothing_of_an_input_is_said_in_logs_metrics_and_health(canary: str, finished: Finished) -> None:
    assert [where for where, text in finished.said.items() if canary in text] == []


def test_no_text_of_an_output_stands_in_what_the_worker_writes_but_in_dead_letters(finished: Finished) -> None:
    topics = finished.site.topics
    for topic in (topics.scored, topics.state, topics.result, topics.report):
        for record in finished.site.outside.read(topic):
            assert TEXT_CANARY not in repr((record.key, record.value, record.headers)), record.source


def test_ids_that_only_look_alike_have_reports_of_their_own(finished: Finished) -> None:
    batches = {record.json()["batch_id"] for record in finished.run.reports}
    assert {BATCH, *ALIKE, *DECEPTIVE} <= batches


def test_the_log_is_lines_of_plain_json_without_a_traceback(finished: Finished) -> None:
    lines = finished.said["log"].splitlines()
    assert all(isinstance(json.loads(line), dict) for line in lines)
    assert finished.said["log"].replace("\n", "").isprintable()
    assert [line for line in lines if "exception" in json.loads(line) or "Traceback" in line] == []


def test_only_so_many_batches_have_metrics_as_are_allowed(finished: Finished) -> None:
    shown = re.findall(r"^safe_batch_pass_ratio\{", finished.said["/metrics"], re.MULTILINE)
    assert len(shown) == EXPORTED_BATCHES
    [hidden] = re.findall(r"^safe_batches_not_exported\{[^}]*\} ([0-9.e+]+)$", finished.said["/metrics"], re.MULTILINE)
    assert float(hidden) == len({record.key for record in finished.run.results}) - EXPORTED_BATCHES


def test_records_of_aborted_transactions_are_never_seen(finished: Finished) -> None:
    assert finished.site.outside.ends(finished.site.topics.input)[ABORTED_PARTITION].log > 4 * len(CODECS)
    sources = [*finished.results, *finished.letters]
    assert [source for source in sources if source[1] == ABORTED_PARTITION] == []
    # They are passed over, and were counted as nothing (see the counters above).
    assert finished.site.outside.lag(finished.site.group, finished.site.topics.input) == 0


# ----------------------------------------------------------------------------------------- row 60, which needs a change


def test_each_result_names_the_expectations_that_stood_when_it_was_scored(
    site_over: Callable[..., Site], tmp_path: Path
) -> None:
    """The folder is swapped between two deliveries of one output; both results can be told apart for ever."""
    cases = write_cases(tmp_path)
    site = site_over(cases, partitions=1)
    before = CaseBook(cases)
    with site.worker() as worker:
        first = scored_again(site)
        change_expectations(cases)
        after = CaseBook(cases)
        wanted = Oracle(after).outcome(_seen(site.topics.input, 0, 0, AGAIN.record, 0))
        assert isinstance(wanted, Scored)
        last = wait_until(
            lambda: _if_named(scored_again(site), wanted.expectations_digest),
            within_seconds=REPORT_SECONDS,
            what="an output is scored by the expectations of now",
        )
        assert worker.stop() == 0
    assert first["expectations_digest"] == _digest(before) != _digest(after) == last["expectations_digest"]
    assert canonical(last["result"]) == canonical(wanted.document)
    assert first["result"]["scores"] != last["result"]["scores"]
    shown = {result.json()["expectations_digest"] for result in site.outside.read(site.topics.result)}
    assert shown == {_digest(before), _digest(after)}


[AGAIN] = [bad for bad in BAD_INPUTS if bad.name == "binary of our type"]


def scored_again(site: Site) -> Json:
    """The result of one more delivery of an output."""
    [(_, offset)] = site.send([AGAIN.record])

    def shown() -> Json:
        results = [record.json() for record in site.outside.read(site.topics.result)]
        return next((result for result in results if result["source"]["offset"] == offset), None)

    return wait_until(shown, within_seconds=REPORT_SECONDS, what="the output is scored")


def change_expectations(cases: Path) -> None:
    """Swap a batch file for one in which every term is another."""
    document = json.loads((cases / f"{BATCH}.json").read_text(encoding="ascii"))
    for entry in document["test_cases"]:
        entry["expectations"] = expectations(["stridor"], ["blame"], ["adrenaline"])
    (cases / "unfinished").write_text(json.dumps(document), encoding="ascii")
    (cases / "unfinished").rename(cases / f"{BATCH}.json")


def _digest(book: CaseBook) -> str:
    found = book.find(BATCH, CASE)
    assert not isinstance(found, str)
    return found[0].digest


def _if_named(result: Json, digest: str) -> Json:
    return result if result["expectations_digest"] == digest else None
