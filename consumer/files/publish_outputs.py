"""`safe publish`: the bridge from files of outputs to the input topic.

Everything is planned, and refused, before anything is sent: prepare() knows nothing of Kafka.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Protocol

import orjson
from rich.console import Console
from rich.progress import Progress

from consumer.errors import ConfigurationError, Poison
from consumer.files.batches import (
    Batches,
    LoadedBatch,
    answered_twice,
    answers_by_case,
    differ,
    has_wildcard,
    load_batches,
)
from consumer.files.outputs import Entry, OnDuplicate, OutputFile, open_all
from consumer.settings import Settings
from consumer.text import count_of, named, shown
from consumer.wire.input import InputRules, decode
from consumer.wire.keys import event_key
from safe_core import MAX_ID_LENGTH, BadTestCase, id_problem

_NAMED = 10
_SCORED_FIELDS = ("signals", "summary", "followup_questions")


class OutgoingEvent(NamedTuple):
    """An input event as it is sent."""

    key: bytes
    value: bytes


# --- which batch an entry belongs to ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Destination:
    """Where entries go: to the case of `batches` that they answer or, if a batch is `given`, to the batch of that name.

    Without batches (None) nobody can tell which test_ids there are: then nothing is asked of them.
    """

    batches: Batches | None
    given: str | None = None

    @classmethod
    def of(cls, batch: str | None, test_dir: Path | None) -> "Destination":
        """Read `--batch` and `--test-dir`: a glob over the folder's batches, or the name of one that is not there."""
        pattern = "*" if batch is None else batch
        if test_dir is None and batch is not None and has_wildcard(batch):
            raise ConfigurationError("--batch is a pattern, but over which batches? Give --test-dir")
        if test_dir is None:
            return cls(None, _good_id("--batch", batch))
        chosen = load_batches(test_dir, pattern)
        if chosen.all:
            return cls(chosen)
        if has_wildcard(pattern):
            raise ConfigurationError(f"{shown(str(test_dir))} holds no batch file {shown(pattern)}.json")
        return cls(load_batches(test_dir), _good_id("--batch", batch))

    def cases(self, entry: Entry) -> tuple[LoadedBatch, ...]:
        """The batches whose case the scorer may use for an entry, in order."""
        if self.batches is None:
            return ()
        name = entry.batch_id or self.given
        # The scorer goes by the batch's name alone: it never sees a batch_index.
        return self.batches.answered_by(entry if name is None else replace(entry, batch_id=name, batch_index=None))

    def batch_ids(self, entry: Entry) -> tuple[str, ...]:
        """The batches an entry may be sent to, in order; several only where they expect the same."""
        name = entry.batch_id or self.given
        return tuple(batch.name for batch in self.cases(entry)) if name is None else (name,)

    def refusal(self, entry: Entry) -> str | None:
        """Why an entry cannot be sent, as the end of a sentence about its test_id."""
        if self.batches is None:
            return None if self.batch_ids(entry) else HOMELESS
        rows = [batch.rows[entry.test_id] for batch in self.cases(entry)]
        if not rows:
            return UNKNOWN
        if any(isinstance(row, BadTestCase) for row in rows):
            return INVALID
        return AMBIGUOUS if differ(rows) else None


def _good_id(flag: str, text: str | None) -> str | None:
    problem = None if text is None else id_problem(text)
    if problem is not None:
        raise ConfigurationError(f"{flag} {problem}")
    return text


# --- refusals ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Refusals:
    """The test_ids, by file, for which nothing is sent at all."""

    by_kind: dict[tuple[Path, str], dict[str, None]] = field(default_factory=dict)

    def add(self, path: Path, kind: str, test_ids: Iterable[str]) -> None:
        """Note test_ids, each once."""
        refused = self.by_kind.setdefault((path, kind), {})
        refused.update(dict.fromkeys(test_ids))

    def raise_if_any(self) -> None:
        """Raise ConfigurationError naming at most ten test_ids of each kind."""
        sentences = [
            f"{shown(str(path))}: {count_of(len(test_ids), 'test_id')} {kind}: {named(test_ids, _NAMED, MAX_ID_LENGTH)}"
            for (path, kind), test_ids in self.by_kind.items()
            if test_ids
        ]
        if sentences:
            raise ConfigurationError("nothing was published. " + "; ".join(sentences))


UNKNOWN = "held by no batch that --batch and --test-dir leave"
HOMELESS = "without a batch (give --batch or --test-dir)"
INVALID = "with a test case that is invalid"
AMBIGUOUS = "held more than once with different expectations (choose by --batch)"
TWICE = "answered more than once (choose by --on-duplicate first or last)"


# --- the plan ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file's events: `addressed` reads its entries, each with its batch, as often as it is called."""

    file: OutputFile
    run_id: str
    addressed: Callable[[], Iterable[tuple[Entry, str]]]


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is to be sent, checked: iterating makes the events one by one; `count` is how many there are."""

    files: tuple[PlannedFile, ...]
    count: int
    whole_output: bool
    max_value_bytes: int

    def __iter__(self) -> Iterator[OutgoingEvent]:
        for planned in self.files:
            for entry, batch_id in planned.addressed():
                yield self._event(planned, entry, batch_id)

    def _event(self, planned: PlannedFile, entry: Entry, batch_id: str) -> OutgoingEvent:
        try:
            value = orjson.dumps(_document(entry, batch_id, planned.run_id, whole_output=self.whole_output))
            # Whatever the scorer would refuse is refused here, where someone reads why.
            decode(_Unsent(value), InputRules(max_value_bytes=self.max_value_bytes))
        except Poison as error:
            raise ConfigurationError(f"{_place(planned, entry)} can never be scored: {error.detail}") from error
        except orjson.JSONEncodeError as error:
            raise ConfigurationError(f"{_place(planned, entry)} cannot be written as JSON") from error
        return OutgoingEvent(event_key(batch_id, entry.test_id), value)


@dataclass(slots=True)
class _Unsent:
    """A value as decode() takes it."""

    value: bytes | None
    key: bytes | None = None
    topic: str = ""
    partition: int = 0
    offset: int = 0
    timestamp: int = 0
    headers: Sequence[tuple[str, bytes | None]] = ()


def _place(planned: PlannedFile, entry: Entry) -> str:
    return f"{shown(str(planned.file.path))}: {entry.place}"


def _document(entry: Entry, batch_id: str, run_id: str, *, whole_output: bool) -> dict[str, object]:
    document = {
        "test_id": entry.test_id,
        "batch_id": batch_id,
        "concern_id": entry.concern_id,
        "archetype": entry.archetype,
        "metric_id": entry.metric_id,
        "generated_at": entry.generated_at,
        "run_id": entry.run_id or run_id,
    }
    known: dict[str, object] = {name: text for name, text in document.items() if text is not None}
    return known | {"output": _sent_output(entry.engine_output, whole_output=whole_output)}


def _sent_output(engine_output: Mapping[str, object] | None, *, whole_output: bool) -> Mapping[str, object] | None:
    if engine_output is None or whole_output:
        return engine_output
    return {name: engine_output[name] for name in _SCORED_FIELDS if name in engine_output}


def plan(
    files: Sequence[OutputFile],
    destination: Destination,
    *,
    on_duplicate: OnDuplicate | None = None,
    whole_output: bool = False,
    run: str | None = None,
    max_value_bytes: int = InputRules().max_value_bytes,
) -> Plan:
    """Plan what to send of some files; raises ConfigurationError naming every test_id for which nothing is sent.

    Files of events are read twice, now to check and again while they are sent: they may be larger than memory.
    """
    _good_id("--run", run)
    refusals = Refusals()
    planned = tuple(
        PlannedFile(file, run or _default_run(file), _addressed(file, destination, on_duplicate, refusals))
        for file in files
    )
    refusals.raise_if_any()
    unchecked = Plan(planned, 0, whole_output, max_value_bytes)
    return Plan(planned, sum(1 for _event in unchecked), whole_output, max_value_bytes)


def _default_run(file: OutputFile) -> str:
    run = f"{file.path.name}-{file.sha256[:8]}"
    problem = id_problem(run)
    if problem is not None:
        raise ConfigurationError(f"{shown(str(file.path))}: the file's name {problem}, name the run with --run")
    return run


def _addressed(
    file: OutputFile, destination: Destination, on_duplicate: OnDuplicate | None, refusals: Refusals
) -> Callable[[], Iterable[tuple[Entry, str]]]:
    if file.kind == "events":
        _refuse(file, file.entries(), destination, refusals)
        return lambda: ((entry, destination.batch_ids(entry)[0]) for entry in file.entries())
    entries = list(file.entries())
    _refuse(file, entries, destination, refusals)
    answers = answers_by_case(entries, destination.batch_ids)
    if on_duplicate is None:
        refusals.add(file.path, TWICE, answered_twice(answers))
    chosen = 0 if on_duplicate == "first" else -1
    # An entry that answers a case in several batches is sent once, to the first of them.
    addressed: dict[str, tuple[Entry, str]] = {}
    for key, candidates in answers.items():
        addressed.setdefault(candidates[chosen].place, (candidates[chosen], key.batch_id))
    return addressed.values


def _refuse(file: OutputFile, entries: Iterable[Entry], destination: Destination, refusals: Refusals) -> None:
    for entry in entries:
        refusal = destination.refusal(entry)
        if refusal is not None:
            refusals.add(file.path, refusal, [entry.test_id])


# --- sending ----------------------------------------------------------------------------------------------------------


def publish_files(
    settings: Settings,
    paths: Sequence[Path],
    *,
    batch: str | None,
    test_dir: Path | None,
    on_duplicate: OnDuplicate | None,
    whole_output: bool,
    run: str | None,
) -> int:
    """Publish files of outputs as input events and return the exit code, 0; what it says goes to stderr.

    Files are read before the event loop begins, so that Ctrl-C ends it at once while nothing has been sent.

    Raises ConfigurationError, nothing having been sent, or Fatal where the broker fails.
    """
    files = open_all(paths)
    planned = plan(
        files,
        Destination.of(batch, test_dir),
        on_duplicate=on_duplicate,
        whole_output=whole_output,
        run=run,
        max_value_bytes=settings.max_value_bytes,
    )
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    try:
        asyncio.run(_send_all(planned, settings, console))
    except KeyboardInterrupt:
        console.print(
            f"safe: interrupted: some of the {planned.count} events may have been published; to publish all of them "
            "again changes no score, each output counts once"
        )
        raise
    console.print(published(planned, settings.input_topic))
    return 0


async def _send_all(planned: Plan, settings: Settings, console: Console) -> None:
    from consumer.kafka import publishing_events  # noqa: PLC0415 - planning, and its tests, need no Kafka client

    async with publishing_events(settings) as publisher:
        await send(planned, publisher, settings.input_topic, console)


class Publisher(Protocol):
    """Takes records into its buffer, in order."""

    async def publish(self, topic: str, key: bytes, value: bytes) -> None:
        """Take one record, waiting for room; raises Fatal once the broker has refused one."""
        ...


async def send(planned: Plan, publisher: Publisher, topic: str, console: Console) -> None:
    """Hand all events of a plan to a publisher, with a progress bar where the console is a terminal."""
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(f"to {topic}", total=planned.count)
        for event in planned:
            await publisher.publish(topic, event.key, event.value)
            progress.advance(task)


def published(planned: Plan, topic: str) -> str:
    """The line that says what was published."""
    events, files = count_of(planned.count, "event"), count_of(len(planned.files), "file")
    runs = dict.fromkeys(file.run_id for file in planned.files)
    return f"published {events} of {files} to {topic} (run {named(runs, longest=MAX_ID_LENGTH)})"
