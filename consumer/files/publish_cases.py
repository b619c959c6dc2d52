"""`safe publish-cases`: fills the topic of test cases from a folder of batch files.

All files are read and checked before anything is sent: plan_cases() and changes_of() know nothing of Kafka's ways.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import orjson
from rich.console import Console
from rich.progress import Progress

from consumer.errors import ConfigurationError, Fatal, Transient
from consumer.expectations.cases import Row, TwiceDifferently, rows_of
from consumer.expectations.folder import SUFFIX
from consumer.expectations.topic import Table
from consumer.expectations.topic_index import RECORD_BYTES, InvalidKey, record_key
from consumer.files.batches import batch_names, chosen, read_document
from consumer.kafka import (
    Connection,
    TableReader,
    TableRecord,
    TopicDescription,
    partition_of_key,
    writing_table,
)
from consumer.kafka.topics import cases_topic, connected_cluster
from consumer.settings import Settings
from consumer.text import count_of, named, shown
from consumer.wire.keys import case_key
from safe_core import BadTestCase, Batch, InvalidBatch, TestCase, id_problem, parse_batch
from safe_core.expectations import PLACES

_NAMED = 10
_LONGEST_PLACE = 500
_RECORD_OVERHEAD_BYTES = 128
"""What a record takes beside its key and value: the heads of the record and of its batch."""
_SILENT_POLLS = 60
"""Half a minute without progress: the brokers are gone, or somebody's transaction is open."""


# --- the plan ---------------------------------------------------------------------------------------------------------


class PlannedCase(NamedTuple):
    """A record as it is to stand in the topic; `place` says in words which test case of which file it is."""

    key: bytes
    value: bytes
    place: str


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """The test cases of one batch file."""

    name: str
    cases: tuple[PlannedCase, ...]


@dataclass(frozen=True, slots=True)
class CasesPlan:
    """The chosen batches, checked; `held` names every batch of the folder, chosen or not."""

    batches: tuple[PlannedBatch, ...]
    held: frozenset[str]

    @property
    def count(self) -> int:
        """How many test cases there are."""
        return sum(len(batch.cases) for batch in self.batches)

    def check_sizes(self, limit_bytes: int) -> None:
        """Raise ConfigurationError unless every record fits into the topic, and may be read from it."""
        too_large = [
            case.place
            for batch in self.batches
            for case in batch.cases
            if len(case.value) > RECORD_BYTES or len(case.key) + len(case.value) + _RECORD_OVERHEAD_BYTES > limit_bytes
        ]
        if too_large:
            named_places = named(too_large, _NAMED, _LONGEST_PLACE)
            raise ConfigurationError(
                f"nothing was published. Larger than the {min(limit_bytes, RECORD_BYTES)} bytes that the topic takes: "
                f"{named_places}"
            )


def plan_cases(folder: Path, pattern: str = "*", *, with_narrative: bool = False) -> CasesPlan:
    """Read the batch files whose names match a glob; raises ConfigurationError naming each file and place at fault."""
    held = batch_names(folder)
    names = chosen(pattern, held)
    if not names:
        raise ConfigurationError(f"{shown(str(folder))} holds no batch file {shown(pattern)}{SUFFIX}")
    problems: list[str] = []
    batches = tuple(_planned(folder / (name + SUFFIX), name, problems, with_narrative) for name in names)
    if problems:
        more = f"; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
        raise ConfigurationError(f"nothing was published. {'; '.join(problems[:_NAMED])}{more}")
    return CasesPlan(batches, frozenset(held))


def _planned(path: Path, name: str, problems: list[str], with_narrative: bool) -> PlannedBatch:  # noqa: FBT001
    where = shown(str(path))
    if problem := id_problem(name):
        problems.append(f"{where}: the batch's name {problem}")
        return PlannedBatch(name, ())
    try:
        _, document = read_document(path)
        batch = parse_batch(document)
    except InvalidBatch as error:
        problems.append(f"{where}: {error}")
    else:
        entries = document["test_cases"] if isinstance(document, dict) and with_narrative else None
        return PlannedBatch(name, tuple(_cases(where, name, batch, entries, problems)))
    return PlannedBatch(name, ())


def _cases(
    where: str, name: str, batch: Batch, entries: Sequence[Mapping[str, object]] | None, problems: list[str]
) -> Iterator[PlannedCase]:
    """Give the record of each distinct test case; what is wrong with others is added to `problems`."""
    rows = rows_of(batch)
    for position, case in enumerate(batch.cases):
        place = f"{where}, test_cases[{position}]"
        row = case if case.test_id is None else rows[case.test_id]
        if problem := _problem(position, case, row):
            problems.append(f"{place}{problem}")
            continue
        if not isinstance(case, TestCase) or case is not row or case.concern_id is None:
            continue  # the same test case once more
        try:
            value = orjson.dumps(_scored(case) if entries is None else _whole(case, entries[position]))
        except orjson.JSONEncodeError:
            problems.append(f"{place} cannot be written as JSON")
            continue
        yield PlannedCase(case_key(case.concern_id, name, case.test_id).encode(), value, place)


def _problem(position: int, case: TestCase | BadTestCase, row: Row) -> str | None:
    """Why a test case cannot be published, as the rest of a sentence that begins with its place."""
    if isinstance(case, BadTestCase):
        return f": {case.problem}"
    if isinstance(row, TwiceDifferently):
        return f" has the test_id of [{row.first}] and other expectations" if position == row.second else None
    return " has no concern_id, which its key needs" if case.concern_id is None else None


def _scored(case: TestCase) -> dict[str, object]:
    """What scoring reads of a test case, and nothing else."""
    known = {
        "test_id": case.test_id,
        "concern_id": case.concern_id,
        "archetype": case.archetype,
        "metric_id": case.metric_id,
    }
    places = zip(PLACES.values(), case.expectations.lists, strict=True)
    return {name: text for name, text in known.items() if text is not None} | {
        "expectations": {section: {name: terms} for (section, name), terms in places}
    }


def _whole(case: TestCase, entry: Mapping[str, object]) -> dict[str, object]:
    """A test case as it is written, with the archetype that the batch's plan gives it."""
    return {**entry} if case.archetype is None else {**entry, "archetype": case.archetype}


# --- what changes -----------------------------------------------------------------------------------------------------

Place = tuple[int, bytes]
"""Partition and key of a record."""


@dataclass(slots=True)
class Standing:
    """What the topic holds, by batch: a digest of each record's value; keys that name no batch are left alone."""

    partitions: int
    by_batch: dict[str, dict[Place, bytes]] = field(default_factory=dict)

    def note(self, partition: int, key: bytes | None, value: bytes | None) -> None:
        """Take in one record."""
        try:
            batch_id = record_key(key).batch_id
        except InvalidKey:
            return
        places = self.by_batch.setdefault(batch_id, {})
        place = (partition, key or b"")
        if value is None:
            places.pop(place, None)
        else:
            places[place] = _digest(value)


def _digest(value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be written for one batch, all at once, and how many of its records are what."""

    records: tuple[TableRecord, ...]
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0


def changes_of(plan: CasesPlan, standing: Standing, *, prune: bool) -> list[Changes]:
    """What is to be written, batch by batch: what is new or other, and null for what no longer is."""
    changes = [_changes(batch.cases, standing.by_batch.get(batch.name, {}), standing) for batch in plan.batches]
    if prune:
        gone = sorted(standing.by_batch.keys() - plan.held)
        changes += [_changes((), standing.by_batch[name], standing) for name in gone]
    return changes


def _changes(cases: Iterable[PlannedCase], stands: Mapping[Place, bytes], standing: Standing) -> Changes:
    wanted = {(partition_of_key(case.key, standing.partitions), case.key): case.value for case in cases}
    removed = stands.keys() - wanted.keys()
    written = [place for place, value in wanted.items() if stands.get(place) != _digest(value)]
    new = sum(place not in stands for place in written)
    records = [TableRecord(*place, wanted[place]) for place in written]
    records += [TableRecord(*place, None) for place in sorted(removed)]
    return Changes(tuple(records), new, len(written) - new, len(wanted) - len(written), len(removed))


async def standing_in(table: Table, topic: str) -> Standing:
    """Read what a topic holds; raises ConfigurationError if there is none, Fatal if its end cannot be reached."""
    ends = await table.open()
    if not ends:
        raise ConfigurationError(missing(topic))
    standing = Standing(len(ends))
    reached: Mapping[int, int] = {}
    silent = 0
    while any(reached.get(partition, 0) < end for partition, end in ends.items()):
        read = await table.poll()
        for record in read.records:
            standing.note(record.partition, record.key, record.value)
        silent = silent + 1 if read.positions == reached else 0
        reached = read.positions
        if silent == _SILENT_POLLS:
            raise Fatal(f"{topic} cannot be read to its end: a transaction is open, or no broker answers; try later")
    return standing


def missing(topic: str) -> str:
    """The sentence for a topic that is not there."""
    return f"there is no topic {topic}: SAFE_V0_EXPECTATIONS=topic:{topic} and `safe topics create` make it"


# --- sending ----------------------------------------------------------------------------------------------------------


async def publish_cases(
    settings: Settings, folder: Path, *, batch: str, with_narrative: bool, prune: bool, dry_run: bool
) -> int:
    """Publish a folder's test cases and return the exit code, 0; what it says goes to stderr.

    Raises ConfigurationError, nothing having been sent, or Fatal where the brokers fail; then whole batches may be
    there, and running it again goes on.
    """
    spec = cases_topic(settings)
    if spec is None:
        raise ConfigurationError("to which topic? Give --topic, or SAFE_V0_EXPECTATIONS as topic:NAME")
    plan = plan_cases(folder, batch, with_narrative=with_narrative)
    connection = Connection.from_settings(settings)
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    try:
        limit = (await _described(settings, spec.name)).max_message_bytes
        plan.check_sizes(limit)
        async with AsyncExitStack() as cleanup:
            writer = None
            if not dry_run:
                # First of all: it ends what a former run has left open, and what that has committed is read below.
                own_id = f"safe-publish-cases:{spec.name}" if settings.delivery == "exactly_once" else None
                writing = writing_table(connection, spec.name, own_id, max_batch_bytes=limit)
                writer = await cleanup.enter_async_context(writing)
            table = TableReader(connection, spec.name)
            cleanup.push_async_callback(table.close)
            changes = changes_of(plan, await standing_in(table, spec.name), prune=prune)
            if writer is not None:
                await send_changes(changes, writer, console, spec.name, _now_ms)
    except Transient as error:
        raise Fatal(f"{spec.name} cannot be published to: {error}") from error
    console.print(said(plan, changes, spec.name, dry_run=dry_run))
    return 0


async def _described(settings: Settings, topic: str) -> TopicDescription:
    async with connected_cluster(settings) as cluster:
        described = await cluster.describe([topic])
    if topic not in described:
        raise ConfigurationError(missing(topic))
    return described[topic]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Writer(Protocol):
    """Writes records that are to be seen at once."""

    async def write(self, records: Iterable[TableRecord], now_ms: int) -> None:
        """Write some records and wait for their acknowledgement; raises Fatal."""
        ...


async def send_changes(
    changes: Sequence[Changes], writer: Writer, console: Console, topic: str, now_ms: Callable[[], int]
) -> None:
    """Write each batch's changes at once, with a progress bar where the console is a terminal."""
    total = sum(len(batch.records) for batch in changes)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(f"to {topic}", total=total)
        for batch in changes:
            if batch.records:
                await writer.write(batch.records, now_ms())
                progress.advance(task, len(batch.records))


def said(plan: CasesPlan, changes: Sequence[Changes], topic: str, *, dry_run: bool) -> str:
    """The line that says what was published, or would have been."""
    cases, batches = count_of(plan.count, "test case"), count_of(len(plan.batches), "batch", "es")
    counts = ", ".join(
        f"{sum(getattr(batch, what) for batch in changes)} {what}"
        for what in ("new", "changed", "unchanged", "removed")
    )
    if not any(batch.new or batch.changed or batch.removed for batch in changes):
        return f"{topic} is up to date: {cases} of {batches}"
    return f"{'would have published' if dry_run else 'published'} {cases} of {batches} to {topic}: {counts}"
