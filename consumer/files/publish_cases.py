"""`safe publish-cases`: fills the topic of test cases from a folder of batch files.

All files are read and checked before anything is sent: plan_cases() and changes_of() need no broker.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import orjson
from rich.console import Console

from consumer.case_sources.cases import ConflictingCases, Row, cases_at, rows_of
from consumer.case_sources.folder import SUFFIX
from consumer.case_sources.topic import Table
from consumer.case_sources.topic_index import RECORD_BYTES, InvalidKey, record_key
from consumer.errors import ConfigurationError, Fatal, Transient
from consumer.exit_codes import EXIT_OK
from consumer.files.batches import (
    batch_names,
    beside_lines,
    chosen,
    has_wildcard,
    misread_keys,
    misread_lines,
    no_batch,
    only_beside,
    read_document,
)
from consumer.files.json_text import repeated_keys, repeated_keys_lines
from consumer.kafka import transactional_ids
from consumer.kafka.connection import Connection
from consumer.kafka.partitioner import partition_of_key
from consumer.kafka.publisher import TableRecord, TableWriter, writing_table
from consumer.kafka.table_reader import TableReader
from consumer.kafka.topics import cases_topic, describe_topics
from consumer.settings import Settings
from consumer.terminal import message_console, print_message, progress_bar
from consumer.text import count_of, named, visible
from consumer.wire.keys import case_key
from consumer.wire.times import now_ms
from safe_core import BadTestCase, InvalidBatch, NoBatch, TestCase, id_problem, parse_batch
from safe_core.accepted_wordings import KEY

_NAMED = 10
_LONGEST_PLACE = 500
_RECORD_OVERHEAD_BYTES = 128
"""What a record takes besides its key and value: its own header and that of its batch."""
_SILENT_POLLS = 60
"""Half a minute without progress: the brokers are gone, or another producer's transaction is open."""


# --- the plan ---------------------------------------------------------------------------------------------------------


class PlannedCase(NamedTuple):
    """A record as the topic is to hold it; `place` says in words which test case of which file it is."""

    key: bytes
    value: bytes
    place: str


@dataclass(frozen=True, slots=True)
class CasesPlan:
    """The checked test cases of the chosen batches, by batch name; `in_folder` names all batches of the folder.

    `remarks` are for the person who publishes them.
    """

    batches: Mapping[str, Sequence[PlannedCase]]
    in_folder: frozenset[str]
    remarks: Sequence[str] = ()

    @property
    def cases(self) -> list[PlannedCase]:
        """The test cases of all batches."""
        return [case for cases in self.batches.values() for case in cases]

    def check_sizes(self, limit_bytes: int) -> None:
        """Raise ConfigurationError unless every record is small enough for the topic and for workers."""
        too_large = [
            case.place
            for case in self.cases
            if len(case.value) > RECORD_BYTES or len(case.key) + len(case.value) + _RECORD_OVERHEAD_BYTES > limit_bytes
        ]
        if too_large:
            raise ConfigurationError(
                "nothing was published. Test cases larger than the topic's limit of "
                f"{min(limit_bytes, RECORD_BYTES)} bytes: "
                f"{named(too_large, _NAMED, _LONGEST_PLACE)}"
            )


def plan_cases(folder: Path, pattern: str = "*", *, with_narrative: bool = False) -> CasesPlan:
    """Read the batch files whose names match a glob; raises ConfigurationError naming each file and place at fault."""
    in_folder = batch_names(folder)
    names = chosen(pattern, in_folder)
    if not names:
        raise no_batch(folder, pattern, in_folder)
    problems: list[str] = []
    remarks: list[str] = []
    beside: dict[str, str] = {}
    batches: dict[str, Sequence[PlannedCase]] = {}
    for name in names:
        try:
            batches[name] = [*_planned_cases(folder, name, problems, remarks, with_narrative=with_narrative)]
        except NoBatch as error:
            if has_wildcard(pattern):
                beside[name + SUFFIX] = str(error)
            else:
                problems.append(f"{visible(str(folder / (name + SUFFIX)))}: {error}")
    if beside and not batches:
        raise only_beside(folder, pattern, beside)
    remarks.extend(beside_lines([*beside]))
    if problems:
        more = f"; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
        raise ConfigurationError(f"nothing was published. {'; '.join(problems[:_NAMED])}{more}")
    return CasesPlan(batches, frozenset(in_folder), remarks)


def _planned_cases(
    folder: Path, name: str, problems: list[str], remarks: list[str], *, with_narrative: bool
) -> Iterator[PlannedCase]:
    """Give the record of each distinct test case of a batch; what is wrong with others is added to `problems`.

    Raises NoBatch.
    """
    where = visible(str(folder / (name + SUFFIX)))
    if problem := id_problem(name):
        problems.append(f"{where}: the batch's name {problem}")
        return
    try:
        raw, document = read_document(folder / (name + SUFFIX))
        batch = parse_batch(document)
    except NoBatch:
        raise
    except InvalidBatch as error:
        problems.append(f"{where}: {error}")
        return
    remarks.extend(repeated_keys_lines([(folder / (name + SUFFIX), repeated_keys(raw, document))]))
    remarks.extend(misread_lines(folder / (name + SUFFIX), misread_keys(document)))
    rows = rows_of(batch)
    planned: set[str] = set()
    bad: dict[str, list[int]] = {}
    entries = document["test_cases"] if isinstance(document, dict) and with_narrative else None
    for position, case in enumerate(batch.cases):
        place = f"{where}, test_cases[{position}]"
        if problem := _problem(position, case, rows):
            bad.setdefault(problem, []).append(position)
        elif isinstance(case, TestCase) and case.concern_id is not None and case.test_id not in planned:
            planned.add(case.test_id)
            try:
                value = orjson.dumps(_scored(case) if entries is None else _whole(case, entries[position]))
            except orjson.JSONEncodeError:
                problems.append(f"{place} cannot be written as JSON")
            else:
                yield PlannedCase(case_key(case.concern_id, name, case.test_id).encode(), value, place)
    problems.extend(cases_at(where, positions) + problem for problem, positions in bad.items())


def _problem(position: int, case: TestCase | BadTestCase, rows: Mapping[str, Row]) -> str | None:
    """Why a test case cannot be published, as the rest of a sentence that begins with its place."""
    if isinstance(case, BadTestCase):
        return f": {case.problem}"
    row = rows[case.test_id]
    if isinstance(row, ConflictingCases) and row.positions is not None:
        first, second = row.positions
        return f" has the test_id of [{first}] but different expectations" if position == second else None
    return " has no concern_id, which is part of the key of its record" if case.concern_id is None else None


def _scored(case: TestCase) -> dict[str, object]:
    """What scoring reads of a test case, and the digest of its narrative, which tells what an output was made from."""
    names = ("test_id", "concern_id", "archetype", "metric_id")
    known: dict[str, object] = {name: text for name in names if (text := getattr(case, name)) is not None}
    if case.narratives:
        known["patient_payload_digest"] = case.narratives[0]
    if case.accepted_wordings:
        known[KEY] = dict(case.accepted_wordings)
    return known | {"expectations": case.expectations.document()}


def _whole(case: TestCase, entry: Mapping[str, object]) -> dict[str, object]:
    """A test case as the file has it, with the archetype that the batch's plan gives it."""
    return {**entry} if case.archetype is None else {**entry, "archetype": case.archetype}


# --- what changes -----------------------------------------------------------------------------------------------------

PartitionKey = tuple[int, bytes]
"""Partition and key of a record."""


@dataclass(slots=True)
class StoredCases:
    """What the topic holds, by batch: a digest of each record's value. A key that names no batch is left alone."""

    partitions: int
    by_batch: dict[str, dict[PartitionKey, bytes]] = field(default_factory=dict)

    def note(self, partition: int, key: bytes | None, value: bytes | None) -> None:
        """Take in one record."""
        try:
            batch_id = record_key(key).batch_id
        except InvalidKey:
            return
        stored = self.by_batch.setdefault(batch_id, {})
        if value is None:
            stored.pop((partition, key or b""), None)
        else:
            stored[partition, key or b""] = _digest(value)


def _digest(value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be written for one batch, all at once, and how many of its records are new, changed and so on."""

    records: tuple[TableRecord, ...]
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0


def changes_of(plan: CasesPlan, stored: StoredCases, *, prune: bool) -> list[Changes]:
    """What is to be written, batch by batch: what is new or different, and null for what is gone."""
    removed = sorted(stored.by_batch.keys() - plan.in_folder) if prune else []
    wanted = {**plan.batches, **dict.fromkeys(removed, ())}
    return [_changes(cases, stored.by_batch.get(name, {}), stored.partitions) for name, cases in wanted.items()]


def _changes(cases: Sequence[PlannedCase], stored: Mapping[PartitionKey, bytes], partitions: int) -> Changes:
    wanted = {(partition_of_key(case.key, partitions), case.key): case.value for case in cases}
    removed = stored.keys() - wanted.keys()
    written = [where for where, value in wanted.items() if stored.get(where) != _digest(value)]
    new = sum(where not in stored for where in written)
    records = [TableRecord(*where, wanted[where]) for where in written]
    records += [TableRecord(*where, None) for where in sorted(removed)]
    return Changes(tuple(records), new, len(written) - new, len(wanted) - len(written), len(removed))


async def stored_cases(table: Table, topic: str) -> StoredCases:
    """Read what a topic holds; raises ConfigurationError if there is none, Fatal if its end cannot be reached."""
    ends = await table.open()
    if not ends:
        raise _missing(topic)
    stored = StoredCases(len(ends))
    reached: Mapping[int, int] = {}
    silent_polls = 0
    while any(reached.get(partition, 0) < end for partition, end in ends.items()):
        read = await table.poll()
        for record in read.records:
            stored.note(record.partition, record.key, record.value)
        silent_polls = silent_polls + 1 if read.positions == reached else 0
        reached = read.positions
        if silent_polls == _SILENT_POLLS:
            raise Fatal(f"{topic} cannot be read to its end: a transaction is open, or no broker answers; try later")
    return stored


def _missing(topic: str) -> ConfigurationError:
    return ConfigurationError(
        f"there is no topic {topic}: create it with `SAFE_V0_EXPECTATIONS=topic:{topic} safe topics create`"
    )


# --- sending ----------------------------------------------------------------------------------------------------------


async def publish_cases(
    settings: Settings, folder: Path, *, batch: str, with_narrative: bool, prune: bool, dry_run: bool
) -> int:
    """Publish a folder's test cases and return the exit code, 0; messages go to standard error.

    Raises ConfigurationError before anything is sent, or Fatal if the brokers fail: some batches may be there then,
    each one whole, and running it again publishes the rest.
    """
    spec = cases_topic(settings)
    if spec is None:
        raise ConfigurationError("no topic was named: give --topic, or set SAFE_V0_EXPECTATIONS to topic:NAME")
    plan = plan_cases(folder, batch, with_narrative=with_narrative)
    print_message(*plan.remarks)
    connection = Connection.from_settings(settings)
    try:
        described = await describe_topics(settings, [spec.name])
        if spec.name not in described:
            raise _missing(spec.name)
        limit_bytes = described[spec.name].max_message_bytes
        plan.check_sizes(limit_bytes)
        async with AsyncExitStack() as cleanup:
            writer = None
            if not dry_run:
                # First: it ends a transaction that an earlier run left open, and what that run committed is read below.
                transactional_id = (
                    transactional_ids.of_publish_cases(spec.name) if settings.delivery == "exactly_once" else None
                )
                writing = writing_table(connection, spec.name, transactional_id, max_batch_bytes=limit_bytes)
                writer = await cleanup.enter_async_context(writing)
            table = TableReader(connection, spec.name)
            cleanup.push_async_callback(table.close)
            changes = changes_of(plan, await stored_cases(table, spec.name), prune=prune)
            if writer is not None:
                await send_changes(changes, writer, message_console(), spec.name, now_ms)
    except Transient as error:
        raise Fatal(f"cannot publish to {spec.name}: {error}") from error
    message_console().print(summary_line(plan, changes, spec.name, dry_run=dry_run))
    return EXIT_OK


async def send_changes(
    changes: Sequence[Changes], writer: TableWriter, console: Console, topic: str, clock_ms: Callable[[], int]
) -> None:
    """Write each batch's changes at once, with a progress bar if the console is a terminal."""
    with progress_bar(console, f"to {topic}", sum(len(batch.records) for batch in changes)) as advance:
        for batch in changes:
            if batch.records:
                await writer.write(batch.records, clock_ms())
                advance(len(batch.records))


def summary_line(plan: CasesPlan, changes: Sequence[Changes], topic: str, *, dry_run: bool) -> str:
    """The line that says what was published, or would have been."""
    published = f"{count_of(len(plan.cases), 'test case')} of {count_of(len(plan.batches), 'batch', 'es')}"
    if not any(batch.new or batch.changed or batch.removed for batch in changes):
        return f"{topic} is up to date: {published}"
    counts = ", ".join(
        f"{sum(getattr(batch, kind) for batch in changes)} {kind}"
        for kind in ("new", "changed", "unchanged", "removed")
    )
    return f"{'would publish' if dry_run else 'published'} {published} to {topic}: {counts}"
