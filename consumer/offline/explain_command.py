"""`safe explain` from beginning to end: a case from files, or one record of the input topic."""

import asyncio
import difflib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, NamedTuple, Self

from typing_extensions import override

from consumer.case_sources.folder import SUFFIX, FolderIndex, list_folder
from consumer.case_sources.source import ExpectationsKey
from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError, Fatal, Transient
from consumer.exit_codes import EXIT_OK
from consumer.files.batches import Batches, batch_names, usable_batches
from consumer.files.join import Answered
from consumer.files.outputs import OnDuplicate, OutputFile, open_outputs, output_files, readable
from consumer.files.selection import (
    ANY_CONCERN,
    Selection,
    chosen_batches,
    select_batches,
    select_each_concern,
    selections,
)
from consumer.judging.opinions import read_opinions, with_opinions
from consumer.offline.answers import ANY_ANSWER, AnswerFilter, wordings
from consumer.offline.decisions import Decisions
from consumer.offline.destinations import (
    Destination,
    Format,
    Wanted,
    check_outside,
    give,
    on_stdout,
)
from consumer.offline.explanations import NO_EXPECTATIONS
from consumer.offline.pages.csv_tables import marked, unneeded_mark
from consumer.offline.pages.explanation import RENDERED, Explained, ExplainedCase, page
from consumer.offline.scored_run import Explanation, ScoredRun
from consumer.offline.scoring import judged_case, score_files
from consumer.settings import Settings
from consumer.telemetry.logs import describe
from consumer.terminal import message_console, print_message, progress_bar
from consumer.text import composed, named, visible
from consumer.wire.input_event import InputEvent, InputRules, decode
from safe_core import LABELS, MAX_ID_LENGTH, Label, Policy, TestCase, judged_by, kind_of, prepare
from safe_core.diagnosis import diagnose
from safe_core.narrative_digests import digest_of_narrative

_FROM_TOPIC_SECONDS: Final = 30.0
_NAMED: Final = 50


Which = Literal["pass", "review", "fail", "all"]
"""Which cases are explained where none is named: those of one label, or all."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How explanations are told."""

    wanted: Wanted
    verbose: bool
    include_text: bool
    bom: bool

    def destinations(self, inputs: Sequence[Path], test_dir: Path) -> Sequence[Destination]:
        """Say where each format goes; raises ConfigurationError, also where a file must not be written."""
        batches = (test_dir / f"{name}{SUFFIX}" for name in batch_names(test_dir))
        asked = self.wanted.destinations(RENDERED, [*inputs, *batches])
        check_outside(asked, test_dir)
        print_message(*unneeded_mark([each.format for each in asked], bom=self.bom))
        return asked

    def quotes(self, asked: Sequence[Destination]) -> bool:
        """Tell whether texts of outputs are shown: the console quotes them even if nobody asks for it."""
        return self.include_text or on_stdout(asked) == "console"


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """Which cases of which files are to be explained; `which` counts where no test_id is given."""

    test_ids: Sequence[str]
    which: Which
    concern: str | None
    batch: str
    outputs: Sequence[Path]
    test_dir: Path
    on_duplicate: OnDuplicate | None
    answers: AnswerFilter = ANY_ANSWER
    opinions: Path | None = None


# --- from files -------------------------------------------------------------------------------------------------------


def explain_tests(policy: Policy, request: ExplainRequest, shape: Shape) -> int:
    """Explain test cases as files answer them, one after the other; raises ConfigurationError."""
    paths = [file for path in request.outputs for file in output_files(path)]
    asked = shape.destinations([*paths, *filter(None, [request.opinions])], request.test_dir)
    whole = _scored(policy, request, [*map(open_outputs, paths)], quotes=shape.quotes(asked))
    cases = [each for run in whole for each in _explained(request.answers.narrowed(run))]
    for each in cases:
        if request.test_ids and each.case.generation is None:
            print_message(f"no output answers {each.case.test_id}: the case is explained as if its output were empty")
    every = [each for run in whole for each in _explained(run)]
    if not cases:
        is_answered = any(each.case.generation for each in every)
        print_message(_NO_CASE if not every else _NO_SUCH_MISS if is_answered else _NOT_ANSWERED)
    in_words = wordings(every).in_words
    beside = [] if in_words is None else [f"In these cases, {in_words}"]
    are_named = bool(request.test_ids)
    _give(Explained(cases, beside, shape.include_text, shape.verbose, are_named), asked, shape)
    return EXIT_OK


def _scored(
    policy: Policy, request: ExplainRequest, files: Sequence[OutputFile], *, quotes: bool
) -> Sequence[ScoredRun]:
    """Score what is asked for, concern by concern, and explain the cases of the chosen labels."""
    labels = _LABELS_OF[request.which] if not request.test_ids else LABELS
    opinions = read_opinions(request.opinions)
    decisions = Decisions.to_show(request.test_dir)
    runs = []
    with progress_bar(message_console(), "reading", None) as bar:
        for selection in _selections(request):
            run, remarks = score_files(
                selection, files, policy, generated_at="", on_duplicate=request.on_duplicate,
                explain="with text" if quotes else "without text", explained_labels=labels,
                decisions=decisions, bar=bar,
            )  # fmt: skip
            runs.append(with_opinions(run, opinions))
            print_message(*remarks)
    return runs


_NO_CASE: Final = (
    "no case has the chosen label (fail, if none was chosen); --label chooses another one, --all explains every case"
)
_NOT_ANSWERED: Final = (
    "the outputs answer none of the chosen cases, so nothing is said of their terms; choose another --concern or "
    "--batch, or other outputs"
)
_NO_SUCH_MISS: Final = (
    "the chosen cases have no missed term with the answers that --output-says and --narrative-says choose; "
    "leave one of them out, or choose other cases: --label chooses another label, --all every case"
)


def _explained(run: ScoredRun) -> Iterator[ExplainedCase]:
    return (ExplainedCase(case, found) for case in run.cases if (found := run.explanation_of(case)))


def _give(found: Explained, asked: Sequence[Destination], shape: Shape) -> None:
    """Write the files, then print what goes to standard output; the console quotes texts even if nobody asks for it."""

    def text(format_: Format) -> str:
        return marked(RENDERED[format_](found), format_, bom=shape.bom)

    give(asked, text, page(replace(found, include_text=True)))


_LABELS_OF: Final[Mapping[Which, Sequence[Label]]] = {
    "fail": ("Fail",),
    "review": ("Review",),
    "pass": ("Pass",),
    "all": LABELS,
}


def _selections(request: ExplainRequest) -> list[Selection]:
    """Select what is asked for, concern by concern: the cases that are named, or all in the batches."""
    if not request.test_ids:
        return selections(request.test_dir, request.batch, request.concern)
    batches = chosen_batches(request.test_dir, request.batch)
    test_ids = dict.fromkeys(request.test_ids)
    return [selection for test_id in test_ids for selection in _of_one(test_id, batches, request)]


def _of_one(test_id: str, batches: Batches, request: ExplainRequest) -> list[Selection]:
    """Select one test case wherever it stands; of one concern, its expectations must be the same everywhere."""
    holders = batches.holders(test_id)
    if not holders:
        raise ConfigurationError(_unknown(test_id, batches, request))
    if request.concern is not None:
        return [select_batches(request.test_dir, request.concern, [batch.name for batch in holders], only=test_id)]
    rows = [batch.rows[test_id] for batch in holders]
    if all(isinstance(row, TestCase) and row.concern_id is None for row in rows):
        raise ConfigurationError(f"the test case {visible(test_id)} names no concern; give --concern")
    return select_each_concern(request.test_dir, batches, only=test_id)


def _unknown(test_id: str, batches: Batches, request: ExplainRequest) -> str:
    folded, known = test_id.casefold(), {each.casefold(): each for each in batches.test_ids}
    close = [known[each] for each in ([folded] if folded in known else difflib.get_close_matches(folded, known, n=3))]
    advice = f"; did you mean {named(close, longest=MAX_ID_LENGTH)}?" if close else ""
    of_batch = "" if request.batch == "*" else f" that match --batch {visible(request.batch)}"
    return (
        f"there is no test case {visible(test_id)} in the batches of {visible(str(request.test_dir))}{of_batch}{advice}"
    )


# --- from the input topic ---------------------------------------------------------------------------------------------


class Coordinates(NamedTuple):
    """Where a record stands, as a result names it in its `source`."""

    topic: str
    partition: int
    offset: int

    @classmethod
    def read(cls, source: str) -> Self:
        """Read TOPIC/PARTITION/OFFSET; raises ConfigurationError."""
        topic, *numbers = source.split("/")
        if not topic or len(numbers) != 2 or not all(re.fullmatch("[0-9]{1,18}", number) for number in numbers):
            raise ConfigurationError(
                f"--source {visible(source)} is not TOPIC/PARTITION/OFFSET, such as factory.generation.output/0/41"
            )
        return cls(topic, int(numbers[0]), int(numbers[1]))

    @override
    def __str__(self) -> str:
        return f"{visible(self.topic)}/{self.partition}/{self.offset}"


def explain_record(settings: Settings, policy: Policy, source: Coordinates, test_dir: Path, shape: Shape) -> int:
    """Explain the one record that a result names as its source; raises ConfigurationError, or Fatal if Kafka fails."""
    asked = shape.destinations([], test_dir)
    event = asyncio.run(_event_at(settings, source))
    with readable(test_dir):
        listing = list_folder(test_dir)
    index = FolderIndex().followed_by(listing, time.time)
    try:
        found = index.find(ExpectationsKey(event.batch_id, event.test_id, event.narrative), time.time())
    except Transient as error:
        raise ConfigurationError(f"{visible(str(test_dir))}: {error}") from error
    if event.resembled:
        print_message(f"the record has keys that nothing reads, but that resemble {named(event.resembled)}")
    if isinstance(found, Poison):
        raise ConfigurationError(f"{source}, test_id {visible(event.test_id)}: {found}")
    narrative = _narrative(event, found, test_dir)
    kind = kind_of(event.output, policy.engine_texts)
    terms = NO_EXPECTATIONS if kind.generation == "failed" else found.expectations
    diagnosis = diagnose(terms, event.output, narrative, kind.not_asked_for, found.accepted_wordings)
    explanation = Explanation(diagnosis, event.output, narrative)
    # as the worker scores it
    by = judged_by(found, event, concern_id=ANY_CONCERN)
    answered = Answered(event, (event.event_time, 0, 0), found.narratives, narrative)
    case = judged_case(policy, by, found, prepare(found.expectations), answered, event.batch_id)
    cases = [ExplainedCase(case, explanation)]
    _give(Explained(cases, (), shape.include_text, verbose=True, are_named=True), asked, shape)
    return EXIT_OK


async def _event_at(settings: Settings, place: Coordinates) -> InputEvent:
    # Explaining files needs no Kafka client.
    from consumer.kafka.connection import Connection  # noqa: PLC0415
    from consumer.kafka.reader import read_record  # noqa: PLC0415

    try:
        async with asyncio.timeout(_FROM_TOPIC_SECONDS):
            record = await read_record(Connection.from_settings(settings), *place)
    except (Transient, TimeoutError) as error:
        raise Fatal(f"{place} cannot be read: {error if isinstance(error, Transient) else describe(error)}") from error
    if record is None:
        raise ConfigurationError(f"there is no record {place}: it was removed by retention, or never committed")
    try:
        event = decode(record, InputRules(max_value_bytes=settings.max_value_bytes))
    except Poison as error:
        raise ConfigurationError(f"{place} can never be scored: {error}") from error
    if event is None:
        raise ConfigurationError(f"{place} is a tombstone, which is never scored")
    return event


def _narrative(event: InputEvent, case: TestCase, test_dir: Path) -> str | None:
    """The narrative that the output was made from, if it is the case's; else that of its own batch, or of the first."""
    names = sorted(batch_names(test_dir), key=lambda name: composed(name) != composed(event.batch_id))
    batches = usable_batches(test_dir, names)
    told = (text for batch in batches for text in batch.narratives.get(event.test_id, ()))
    if event.narrative in case.narratives:
        told = (text for text in told if digest_of_narrative(text) == event.narrative)
    return next(told, None)
