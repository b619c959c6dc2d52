"""`safe publish`: sends the outputs of files to the input topic.

Everything is checked before anything is sent: plan_events() needs no broker.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import orjson
from rich.console import Console

from consumer.case_sources.cases import agreed, cases_in
from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError
from consumer.exit_codes import EXIT_OK
from consumer.files.batches import (
    Batches,
    LoadedBatch,
    batch_names,
    beside_lines,
    has_wildcard,
    load_batches,
    no_batch,
)
from consumer.files.join import Contest, Standing, answered_by, is_failed
from consumer.files.outputs import Entry, OnDuplicate, OutputFile, unusable
from consumer.files.unused_outputs import UnreadKeys, passed_over_line
from consumer.kafka.publisher import publishing_events
from consumer.settings import Settings
from consumer.terminal import message_console, progress_bar
from consumer.text import count_of, named, visible
from consumer.wire.input_event import InputRules, decode
from consumer.wire.keys import event_key
from consumer.wire.record import KafkaHeaders
from safe_core import MAX_ID_LENGTH, BadTestCase, EngineTexts, TestCase, do_inputs_match, id_problem
from safe_core.generations import DEFAULT_ENGINE_TEXTS

_NAMED = 10
_LISTED = 50
_SENT_FIELDS = ("test_id", "batch_id", "concern_id", "archetype", "metric_id", "generated_at", "run_id")
_READ_FIELDS = ("signals", "summary", "followup_questions", "error_message")


class OutgoingEvent(NamedTuple):
    """An input event as it is sent."""

    key: bytes
    value: bytes


# --- which batch an entry belongs to ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TargetBatches:
    """Which batch an entry is sent to: the one it names, else `given`, else one in `batches` whose case it answers.

    Without batches (None) it is not known which test_ids exist, so none is refused for being unknown.
    """

    batches: Batches | None
    given: str | None = None

    @classmethod
    def of(cls, batch: str | None, test_dir: Path | None) -> "TargetBatches":
        """Read `--batch` and `--test-dir`: a glob over the folder's batches, or the name of one that it lacks."""
        if test_dir is None:
            if has_wildcard(batch or ""):
                raise ConfigurationError(
                    "--batch is a pattern, which needs a folder of batches: give --test-dir, or the name of one batch"
                )
            return cls(None, _good_id("--batch", batch))
        pattern = "*" if batch is None else batch
        chosen = load_batches(test_dir, pattern)
        if chosen.all:
            return cls(chosen)
        if has_wildcard(pattern):
            raise no_batch(test_dir, pattern, batch_names(test_dir))
        return cls(load_batches(test_dir), _good_id("--batch", batch))

    def cases(self, entry: Entry) -> tuple[LoadedBatch, ...]:
        """The batches whose case the scorer may use for an entry, in order."""
        if self.batches is None:
            return ()
        name = entry.batch_id or self.given
        return answered_by(self.batches, entry if name is None else _as_sent(entry, name))

    def narratives(self, entry: Entry) -> tuple[str, ...]:
        """The digests of the narratives that the case of an entry tells, in all batches that may hold it."""
        case = _agreed(self.cases(entry), entry)
        return () if case is None else case.narratives

    def batch_ids(self, entry: Entry) -> tuple[str, ...]:
        """The batches an entry may be sent to, in order; several only where they expect the same."""
        name = entry.batch_id or self.given
        return tuple(batch.name for batch in self.cases(entry)) if name is None else (name,)

    def refusal(self, entry: Entry) -> str | None:
        """Why an entry cannot be sent, as the end of a sentence about its test_id."""
        if self.batches is None:
            return None if self.batch_ids(entry) else "without a batch (give --batch or --test-dir)"
        batches = self.cases(entry)
        if not batches:
            return "in no batch that --batch and --test-dir select"
        if any(isinstance(batch.rows[entry.test_id], BadTestCase) for batch in batches):
            return "with a test case that is invalid"
        if _agreed(batches, entry) is None:
            return "in several batches with different expectations (choose with --batch)"
        return None

    def has_concern(self, entry: Entry, batch_id: str) -> bool:
        """Tell whether the scorer finds a concern for an entry that is sent to a batch, as far as that is known."""
        if entry.concern_id is not None or self.batches is None:
            return True
        case = _agreed(answered_by(self.batches, _as_sent(entry, batch_id)), entry)
        return case is not None and case.concern_id is not None


def _agreed(batches: Iterable[LoadedBatch], entry: Entry) -> TestCase | None:
    """The test case that the scorer finds for an entry in some batches (contract.md, "Look-up")."""
    return agreed([case for batch in batches for case in cases_in(batch.rows[entry.test_id])], entry.narrative)


def _as_sent(entry: Entry, batch_id: str) -> Entry:
    """Give an entry as the scorer sees it, which goes by the batch's name alone: it never sees a batch_index."""
    return replace(entry, batch_id=batch_id, batch_index=None)


def _good_id(flag: str, text: str | None) -> str | None:
    if text is not None and (problem := id_problem(text)):
        raise ConfigurationError(f"{flag} {problem}")
    return text


# --- the plan ---------------------------------------------------------------------------------------------------------

_NO_CONCERN: Final = "without a concern (neither the output nor its test case has a concern_id)"

Refusals = defaultdict[tuple[Path, str], dict[str, None]]
"""The test_ids for which nothing is sent, by file and reason; each once, in their order."""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file's events: `addressed` reads its entries, each with its batch, as often as it is called.

    `passed_over` names the entries that are not sent because another is surer to be made from the case's narrative,
    `failed` the test_ids for which nothing but a failed generation is sent.
    """

    file: OutputFile
    run_id: str
    addressed: Callable[[], Iterable[tuple[Entry, str]]]
    passed_over: Sequence[str] = ()
    failed: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class EventsPlan:
    """All that is to be sent, checked: iterating makes the events one by one; `count` is how many there are.

    `remarks` are for the person who publishes them.
    """

    files: tuple[PlannedFile, ...]
    count: int
    whole_output: bool
    max_value_bytes: int
    remarks: Sequence[str] = ()

    def __iter__(self) -> Iterator[OutgoingEvent]:
        for planned in self.files:
            for entry, batch_id in planned.addressed():
                yield self._event(planned, entry, batch_id)

    def _event(self, planned: PlannedFile, entry: Entry, batch_id: str) -> OutgoingEvent:
        sent = replace(entry, batch_id=batch_id, run_id=entry.run_id or planned.run_id)
        known = {name: text for name in _SENT_FIELDS if (text := getattr(sent, name)) is not None}
        if entry.narrative is not None:
            known["input_digest"] = entry.narrative
        output = entry.engine_output
        if output is not None and not self.whole_output:
            output = {name: output[name] for name in _READ_FIELDS if name in output}
        if entry.error is not None:  # what the report says beside the output, where an event can say it
            output = {**(output or {}), "error_message": entry.error}
        try:
            value = orjson.dumps(known | {"output": output})
            # What the scorer would refuse is refused here, where the user sees why.
            decode(_UnsentRecord(value), InputRules(max_value_bytes=self.max_value_bytes))
        except Poison as error:
            raise unusable(planned.file.path, f"{entry.place} can never be scored: {error.detail}") from error
        except orjson.JSONEncodeError as error:
            raise unusable(planned.file.path, f"{entry.place} cannot be written as JSON") from error
        return OutgoingEvent(event_key(batch_id, entry.test_id), value)


@dataclass(slots=True)
class _UnsentRecord:
    """A record that exists only to be checked by decode()."""

    value: bytes | None
    key: bytes | None = None
    topic: str = ""
    partition: int = 0
    offset: int = 0
    timestamp: int = 0
    headers: KafkaHeaders = ()


def plan_events(
    files: Sequence[OutputFile],
    target: TargetBatches,
    *,
    on_duplicate: OnDuplicate | None = None,
    whole_output: bool = False,
    run: str | None = None,
    max_value_bytes: int = InputRules().max_value_bytes,
    texts: EngineTexts = DEFAULT_ENGINE_TEXTS,
) -> EventsPlan:
    """Plan what to send of some files; raises ConfigurationError naming every test_id for which nothing is sent.

    Files of events are read twice, now to check and again while they are sent: they may be larger than memory.
    """
    _good_id("--run", run)
    refusals: Refusals = defaultdict(dict)
    keys = UnreadKeys()
    planned = tuple(
        PlannedFile(file, run or _default_run(file), *_addressed(file, target, on_duplicate, refusals, keys, texts))
        for file in files
    )
    if refusals:
        sentences = [
            f"{visible(str(path))}: {count_of(len(ids), 'test_id')} {reason}: {named(ids, _NAMED, MAX_ID_LENGTH)}"
            for (path, reason), ids in refusals.items()
        ]
        raise ConfigurationError("nothing was published. " + "; ".join(sentences))
    keys.refuse()
    beside = () if target.batches is None else target.batches.beside
    unchecked = EventsPlan(planned, 0, whole_output, max_value_bytes, [*beside_lines(beside), *keys.remarks()])
    return replace(unchecked, count=sum(1 for _event in unchecked))


def _default_run(file: OutputFile) -> str:
    run = f"{file.path.name}-{file.sha256[:8]}"
    if problem := id_problem(run):
        raise unusable(file.path, f"the file's name {problem}: name the run with --run")
    return run


_Addressed = Iterable[tuple[Entry, str]]
"""Entries, each with the batch that it is sent to."""


def _addressed(
    file: OutputFile,
    target: TargetBatches,
    on_duplicate: OnDuplicate | None,
    refusals: Refusals,
    keys: UnreadKeys,
    texts: EngineTexts,
) -> tuple[Callable[[], _Addressed], Sequence[str], Sequence[str]]:
    if file.kind == "events":
        for entry in file.entries():
            keys.note(entry)
            if reason := target.refusal(entry):
                refusals[file.path, reason][entry.test_id] = None
            else:
                _check_concern(file, [(entry, target.batch_ids(entry)[0])], target, refusals)
        return lambda: ((entry, target.batch_ids(entry)[0]) for entry in file.entries()), (), ()
    entries = [*file.entries()]
    for entry in entries:
        keys.note(entry)
    for entry in entries:
        if reason := target.refusal(entry):
            refusals[file.path, reason][entry.test_id] = None
    addressed, passed_over = _of_report(file, entries, target, on_duplicate, refusals, texts)
    _check_concern(file, addressed, target, refusals)
    failed = dict.fromkeys(entry.test_id for entry, _ in addressed if is_failed(entry, texts))
    return (lambda: addressed), passed_over, tuple(failed)


def _check_concern(file: OutputFile, addressed: _Addressed, target: TargetBatches, refusals: Refusals) -> None:
    """Refuse what the scorer could only make a dead letter of (contract.md, "Input")."""
    for entry, batch_id in addressed:
        if target.refusal(entry) is None and not target.has_concern(entry, batch_id):
            refusals[file.path, _NO_CONCERN][entry.test_id] = None


def _of_report(
    file: OutputFile,
    entries: Iterable[Entry],
    target: TargetBatches,
    on_duplicate: OnDuplicate | None,
    refusals: Refusals,
    texts: EngineTexts,
) -> tuple[Sequence[tuple[Entry, str]], Sequence[str]]:
    """Give what is sent of a report, and the entries that are passed over."""
    contest: Contest[tuple[str, str]] = Contest(on_duplicate)  # for each case, by batch_id and test_id
    chosen: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        matches = do_inputs_match(entry.narrative, target.narratives(entry))
        standing = Standing(is_failed(entry, texts), matches, 0, None, f"{entry.test_id} ({entry.place})")
        for key in ((batch_id, entry.test_id) for batch_id in target.batch_ids(entry)):
            if contest.enter(key, standing):
                chosen[key] = entry
    if on_duplicate is None and (twice := contest.twice):
        refused = refusals[file.path, "answered more than once (choose with --on-duplicate first or last)"]
        refused.update(dict.fromkeys(test_id for _, test_id in twice))
    # An entry that answers a case in several batches is sent once, to the first of them.
    addressed: dict[str, tuple[Entry, str]] = {}
    for (batch_id, _), entry in chosen.items():
        addressed.setdefault(entry.place, (entry, batch_id))
    return [*addressed.values()], tuple(contest.passed_over)


# --- sending ----------------------------------------------------------------------------------------------------------


def publish_events(settings: Settings, planned: EventsPlan) -> int:
    """Publish the events of a plan and return the exit code, 0; messages go to standard error.

    The plan is made before the event loop begins, so that Ctrl-C ends it at once while nothing has been sent.

    Raises Fatal if the broker fails, or ConfigurationError if a file has changed since it was planned.
    """
    console = message_console()
    for line in planned.remarks:
        console.print(f"safe: {line}")
    if passed_over := [each for file in planned.files for each in file.passed_over]:
        console.print(f"safe: {passed_over_line(passed_over)}")
    if failed := [test_id for file in planned.files for test_id in file.failed]:
        console.print(f"safe: {failed_line(failed)}")
    try:
        asyncio.run(send(planned, settings, console))
    except KeyboardInterrupt:
        console.print(
            f"safe: interrupted: some of the {planned.count} events may have been published; publishing all of them "
            "again changes no score, because each output counts once"
        )
        raise
    console.print(summary_line(planned, settings.input_topic))
    return EXIT_OK


def failed_line(test_ids: Sequence[str]) -> str:
    """Say for which test cases nothing but a failed generation is published."""
    has = "1 test_id has" if len(test_ids) == 1 else f"{len(test_ids)} test_ids have"
    listed = named(test_ids, _LISTED, MAX_ID_LENGTH)
    return f"{has} no answer, because the call of the model failed; that is what is published for: {listed}"


async def send(planned: EventsPlan, settings: Settings, console: Console) -> None:
    """Send all events of a plan, with a progress bar if the console is a terminal."""
    topic = settings.input_topic
    async with publishing_events(settings) as publisher:
        with progress_bar(console, f"to {topic}", planned.count) as advance:
            for event in planned:
                await publisher.publish(topic, *event)
                advance(1)


def summary_line(planned: EventsPlan, topic: str) -> str:
    """The line that says what was published."""
    events, files = count_of(planned.count, "event"), count_of(len(planned.files), "file")
    runs = dict.fromkeys(file.run_id for file in planned.files)
    return f"published {events} from {files} to {topic} (run {named(runs, longest=MAX_ID_LENGTH)})"
