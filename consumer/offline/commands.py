"""`safe score`, `safe gate`, `safe verify` from beginning to end: what they read, say, write."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import orjson

from consumer.errors import ConfigurationError
from consumer.exit_codes import EXIT_FAIL, EXIT_OK, EXIT_REVIEW
from consumer.files.batches import batch_names
from consumer.files.outputs import OnDuplicate, OutputFile, open_outputs, output_files
from consumer.offline.compare import compare, decide
from consumer.offline.destinations import (
    SUFFIXES,
    Destination,
    Format,
    automatic_stem,
    check_writable,
    destinations,
    write_whole,
)
from consumer.offline.gate import Gate, check_borne_out
from consumer.offline.pages.comparison import comparison_markdown, console_lines
from consumer.offline.pages.console import print_scorecard, scorecard_text
from consumer.offline.pages.csv_table import render_csv
from consumer.offline.pages.html import render_html
from consumer.offline.pages.junit import render_junit
from consumer.offline.pages.markdown import render_markdown
from consumer.offline.pages.report_content import own_rules, why
from consumer.offline.scored_run import ScoredRun
from consumer.offline.scoring import Explain, moment, score_files
from consumer.offline.selection import select
from consumer.offline.stored_report import checked_summary, read_report
from consumer.offline.verify import lines, verify
from consumer.settings import Settings, Surroundings
from consumer.terminal import message_console, progress_bar, result_console
from consumer.text import printable
from safe_core import Label, Policy
from safe_core.lint import Ceiling, InvalidCeiling

_EXIT_CODES: Final[Mapping[Label, int]] = {"Pass": EXIT_OK, "Fail": EXIT_FAIL, "Review": EXIT_REVIEW}
_GATE_CODES: Final = {True: EXIT_OK, False: EXIT_FAIL}

_LONG_BYTES: Final = 8 * 1024 * 1024
"""From here on scoring takes more than the blink of an eye, and a person wants to see how far it is."""

_STEP_SUMMARY_BYTES: Final = 1024 * 1024
"""What GitHub shows of a step's summary at most; a larger one is not shown at all."""


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """What was asked for on the command line."""

    concern: str
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
    config_file: Path


def score_command(settings: Settings, policy: Policy, surroundings: Surroundings, request: ScoreRequest) -> int:
    """Score, write what was asked for, and give the exit code; raises ConfigurationError."""
    generated_at = moment(surroundings.source_date_epoch)
    selection = select(request.test_dir, request.concern, request.batch)
    paths = [file for path in request.outputs for file in output_files(path)]
    stem = automatic_stem(settings.report_dir, selection.concern_id, generated_at)
    asked = destinations(request.format, request.files, settings.report_formats, stem)
    # All of the folder's batches are inputs: those that were not selected tell whose case an output answers.
    batches = (request.test_dir / f"{name}.json" for name in batch_names(request.test_dir))
    check_writable(asked, [*paths, *batches, request.config_file], force=request.force)
    files = [open_outputs(path) for path in paths]
    if request.gate is not None and (needs := request.gate.needs(len(selection.cases))) is not None:
        _say([needs])
    with _progress(files) as read:
        run, remarks = score_files(
            selection,
            files,
            policy,
            generated_at=generated_at,
            on_duplicate=request.on_duplicate,
            explain=request.explain,
            read=read,
        )
    passed = None
    if request.gate is not None:
        decision = request.gate.decide(run.report["summary"])
        run, passed = replace(run, decision=decision.line), decision.passed
    _say(remarks)
    _say(_beyond_copying(run.report, request.gate))
    _write_files(run, asked, request)
    if surroundings.step_summary is not None:
        _append_step_summary(run, surroundings.step_summary)
    _print(run, asked, request)
    _say(f"wrote {each.path}" for each in asked if each.path is not None)
    return _EXIT_CODES[run.verdict] if passed is None else _GATE_CODES[passed]


def _say(remarks: Iterable[str]) -> None:
    for remark in remarks:
        with suppress(OSError, ValueError):  # a remark that nobody can read changes no verdict
            print(f"safe: {printable(remark)}", file=sys.stderr)


def _progress(files: Sequence[OutputFile]) -> AbstractContextManager[Callable[[int], None]]:
    """A bar for long inputs; its total is known of files of events alone."""
    is_short = sum(file.size for file in files) <= _LONG_BYTES
    lines = sum(file.lines for file in files) if all(file.kind == "events" for file in files) else None
    return progress_bar(message_console(), "scoring", lines, is_hidden=is_short)


# --- writing ----------------------------------------------------------------------------------------------------------


def _json_text(run: ScoredRun) -> str:
    return orjson.dumps(run.report, option=orjson.OPT_INDENT_2).decode() + "\n"


def _write_files(run: ScoredRun, asked: Sequence[Destination], request: ScoreRequest) -> None:
    for each in asked:
        if each.path is not None:
            write_whole(each.path, _text(run, each.format, request))


def _print(run: ScoredRun, asked: Sequence[Destination], request: ScoreRequest) -> None:
    """Print what goes to standard output; after everything else, since a reader may close the pipe at any line."""
    on_stdout = next((each.format for each in asked if each.path is None), None)
    if on_stdout == "console":
        print_scorecard(run, result_console(), verbose=request.verbose)
        return
    if on_stdout is not None:
        print(_text(run, on_stdout, request), end="")
    _say([f"{run.verdict.upper()}: {why(run)}", *([] if run.decision is None else [run.decision])])


def _text(run: ScoredRun, format_: Format, request: ScoreRequest) -> str:
    match format_:
        case "json":
            return _json_text(run)
        case "markdown":
            return render_markdown(run)
        case "junit":
            return render_junit(run, review_fails=request.gate is not None and request.gate.fail_on == "review")
        case "csv":
            return render_csv(run)
        case "html":
            return render_html(run)
        case "console":
            return scorecard_text(run, verbose=request.verbose)


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
        _say([f"the step summary could not be written: {reason}"])


# --- the gate ---------------------------------------------------------------------------------------------------------


def gate_command(report: Path, gate: Gate) -> int:
    """Decide on a report that is there, print why, and give the exit code; raises ConfigurationError."""
    document = read_report(report)
    summary = checked_summary(document, report)
    check_borne_out(document, report)
    decision = gate.decide(summary)
    _say(_worth_knowing(document))
    _say(_beyond_copying(document, gate))
    print(decision.line)
    return _GATE_CODES[decision.passed]


def _worth_knowing(report: Mapping[str, Any]) -> Iterator[str]:
    """What the number that a gate goes by does not tell."""
    if report.get("complete") is False:
        yield "the batch is not complete, more results may come"
    if missing := report.get("missing_outputs"):
        yield f"{missing} of {report['summary']['total_cases']} test cases without an output, scored as an empty one"
    configuration = report.get("configuration")
    rules = own_rules(configuration) if isinstance(configuration, dict) else None
    if rules is not None:
        yield f"the report's rules are not the default ones: {rules}"


def _beyond_copying(report: Mapping[str, Any], gate: Gate | None) -> Iterator[str]:
    """Where a gate asks for more than a copy of the narratives could reach, the test cases are to be looked at."""
    if gate is None or gate.min_pass_rate is None or "ceiling" not in report:
        return
    try:
        found = Ceiling.parse(report["ceiling"])
    except InvalidCeiling:
        yield "the report's ceiling cannot be read"
        return
    if found.pass_rate < gate.min_pass_rate:
        yield f"--min-pass-rate {gate.min_pass_rate} is out of reach: {found.sentence}; see safe lint"


# --- two runs ---------------------------------------------------------------------------------------------------------


def compare_command(base: Path, new: Path, output: Path | None, max_regressions: int | None, *, force: bool) -> int:
    """Compare two reports, print and write what changed, and give the exit code; raises ConfigurationError.

    Without `max_regressions` nothing is decided.
    """
    if output is not None:
        if SUFFIXES.get(output.suffix.lower(), "markdown") != "markdown":
            raise ConfigurationError(f"--output {printable(str(output))}: a comparison is written as Markdown, .md")
        check_writable([Destination("markdown", output)], [base, new], force=force)
    # Where both have the same name, their folders tell them apart.
    names = [str(path) if base.name == new.name else path.name for path in (base, new)]
    comparison = compare(read_report(base), read_report(new), *names)
    decision = None if max_regressions is None else decide(comparison, max_regressions)
    line = None if decision is None else decision.line
    if output is not None:
        write_whole(output, comparison_markdown(comparison, line))
    for text in console_lines(comparison, line):
        print(text)
    if output is not None:
        _say([f"wrote {output}"])
    return EXIT_OK if decision is None else _GATE_CODES[decision.passed]


# --- the recomputation ------------------------------------------------------------------------------------------------


def verify_command(report: Path, test_dir: Path, outputs: Sequence[Path]) -> int:
    """Recompute a report, print the first differences, and give the exit code; raises ConfigurationError."""
    verification = verify(read_report(report), report, test_dir, outputs)
    _say(verification.remarks)
    for line in lines(verification):
        print(line)
    return EXIT_FAIL if verification.differences else EXIT_OK
