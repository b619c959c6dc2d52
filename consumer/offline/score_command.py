"""`safe score` from beginning to end: what it reads, prints and writes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from consumer.exit_codes import CODE_OF_GATE, CODE_OF_LABEL
from consumer.files.batches import batch_names
from consumer.files.json_text import json_text
from consumer.files.outputs import OnDuplicate, OutputFile, open_outputs, output_files
from consumer.files.selection import select
from consumer.judging.opinions import read_opinions, with_opinions
from consumer.offline.decisions import Decisions
from consumer.offline.destinations import (
    Destination,
    Format,
    automatic_stem,
    check_writable,
    destinations,
    on_stdout,
    print_written,
    write_files,
)
from consumer.offline.gate import Gate
from consumer.offline.pages.console import print_scorecard, scorecard_text
from consumer.offline.pages.csv_tables import marked, render_csv, render_terms, unneeded_mark
from consumer.offline.pages.html import render_html
from consumer.offline.pages.junit import render_junit
from consumer.offline.pages.report_content import why
from consumer.offline.pages.report_page import render_markdown
from consumer.offline.scored_run import ScoredRun
from consumer.offline.scoring import Explain, moment, score_files
from consumer.settings import Settings, surroundings
from consumer.settings.file import FILE_NAME
from consumer.terminal import Bar, message_console, print_message, progress_bar, result_console
from safe_core import Policy

_LONG_BYTES: Final = 8 * 1024 * 1024
"""From here on scoring takes more than the blink of an eye, and a person wants to see how far it is."""

_STEP_SUMMARY_BYTES: Final = 1024 * 1024
"""What GitHub shows of a step's summary at most; a larger one is not shown at all."""


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """What was asked for on the command line."""

    concern: str | None
    batch: str
    outputs: Sequence[Path]
    test_dir: Path
    files: Sequence[str]
    format: Format | Literal["all"] | None
    on_duplicate: OnDuplicate | None
    gate: Gate | None
    explain: Explain | None
    verbose: bool
    force: bool
    allow_empty: bool
    config_file: Path | None
    bom: bool = False
    opinions: Path | None = None


def score_command(settings: Settings, policy: Policy, request: ScoreRequest) -> int:
    """Score, write what was asked for, and give the exit code; raises ConfigurationError."""
    around = surroundings()
    generated_at = moment(around.source_date_epoch)
    selection = select(request.test_dir, request.concern, request.batch)
    paths = [file for path in request.outputs for file in output_files(path)]
    stem = automatic_stem(settings.report_dir, selection.concern_id, generated_at)
    asked = _destinations(settings, request, stem, paths)
    files = [open_outputs(path) for path in paths]
    if request.gate is not None and (needs := request.gate.needs(len(selection.cases))) is not None:
        print_message(needs)
    decisions = Decisions.to_show(request.test_dir) if any(each.format == "html" for each in asked) else None
    opinions = read_opinions(request.opinions)
    with _progress(files) as bar:
        run, remarks = score_files(
            selection, files, policy, generated_at=generated_at, on_duplicate=request.on_duplicate,
            explain=request.explain, allow_empty=request.allow_empty, decisions=decisions, bar=bar,
        )  # fmt: skip
    run = with_opinions(run, opinions)
    unneeded = unneeded_mark([each.format for each in asked], bom=request.bom)
    print_message(*remarks, *_without_text(run, asked), *unneeded)
    passed = None
    if request.gate is not None:
        decision = request.gate.decide(run.report)
        run, passed = replace(run, decision=decision.line), decision.passed
        print_message(*request.gate.out_of_reach(run.report))
    write_files(asked, lambda each: _text(run, each, request))
    if around.step_summary is not None:
        _append_step_summary(run, around.step_summary)
    _print(run, asked, request)
    print_written(asked)
    return CODE_OF_LABEL[run.verdict] if passed is None else CODE_OF_GATE[passed]


def _destinations(
    settings: Settings, request: ScoreRequest, stem: Path, paths: Sequence[Path]
) -> Sequence[Destination]:
    """Say where each format goes; raises ConfigurationError, also where a file must not be written."""
    asked = destinations(request.format, request.files, settings.report_formats, stem)
    # All of the folder's batches are inputs: those that were not selected tell whose case an output answers.
    batches = (request.test_dir / f"{name}.json" for name in batch_names(request.test_dir))
    configuration = request.config_file or Path(FILE_NAME)
    check_writable(asked, [*paths, *batches, configuration, *filter(None, [request.opinions])], force=request.force)
    return asked


_QUOTING: Final[frozenset[Format]] = frozenset({"json", "html"})


def _without_text(run: ScoredRun, asked: Sequence[Destination]) -> Iterator[str]:
    """Say which formats do not quote outputs, though --include-text asks for it."""
    formats = {each.format for each in asked}
    silent = formats - _QUOTING - ({"console"} if formats & _QUOTING else set())
    if run.shows_text and silent:
        yield f"--include-text changes nothing in {', '.join(sorted(silent))}: only json and html quote outputs"


def _progress(files: Sequence[OutputFile]) -> AbstractContextManager[Bar]:
    """A bar for long inputs; its total is known of files of events alone."""
    is_short = sum(file.size for file in files) <= _LONG_BYTES
    lines = sum(file.lines for file in files) if all(file.kind == "events" for file in files) else None
    return progress_bar(message_console(), "scoring", lines, is_hidden=is_short)


# --- writing ----------------------------------------------------------------------------------------------------------


def _print(run: ScoredRun, asked: Sequence[Destination], request: ScoreRequest) -> None:
    """Print what goes to standard output; after everything else, since a reader may close the pipe at any line."""
    shown = on_stdout(asked)
    if shown == "console":
        print_scorecard(run, result_console(), verbose=request.verbose)
        return
    if shown is not None:
        print(_text(run, shown, request), end="")
    print_message(f"{run.verdict.upper()}: {why(run)}", *([] if run.decision is None else [run.decision]))


_PAGES: Final[Mapping[Format, Callable[[ScoredRun], str]]] = {
    "json": lambda run: json_text(run.report),
    "markdown": render_markdown,
    "csv": render_csv,
    "terms": render_terms,
    "html": render_html,
}


def _text(run: ScoredRun, format_: Format, request: ScoreRequest) -> str:
    if format_ == "junit":
        return render_junit(run, review_fails=request.gate is not None and request.gate.fail_on == "review")
    if format_ == "console":
        return scorecard_text(run, verbose=request.verbose)
    return marked(_PAGES[format_](run), format_, bom=request.bom)


def _append_step_summary(run: ScoredRun, path: Path) -> None:
    """Show the report on the page of a GitHub Actions run; that this fails is no reason to fail the run."""
    try:
        there = path.stat().st_size if path.exists() else 0
        room = _STEP_SUMMARY_BYTES - there - 1
        page = render_markdown(run, max_bytes=room)
        if page:
            with path.open("a", encoding="utf-8") as file:
                file.write("\n" * bool(there) + page)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        print_message(f"the step summary could not be written: {reason}")
