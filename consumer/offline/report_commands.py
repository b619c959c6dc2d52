"""`safe gate`, `safe compare` and `safe verify` from beginning to end: commands that begin with a report."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from consumer.exit_codes import CODE_OF_GATE, EXIT_OK
from consumer.files.standard_input import called
from consumer.offline.compare import Comparison, compare
from consumer.offline.compare_gate import ComparisonGate
from consumer.offline.destinations import (
    SUFFIXES,
    Destination,
    Format,
    check_writable,
    one_format,
)
from consumer.offline.gate import Gate, check_borne_out
from consumer.offline.pages.comparison import comparison_markdown, console_lines
from consumer.offline.pages.comparison_content import remarks, summary, verdict
from consumer.offline.pages.comparison_html import comparison_html
from consumer.offline.pages.comparison_json import comparison_json
from consumer.offline.pages.report_content import own_rules
from consumer.offline.stored_report import checked_summary, read_report
from consumer.offline.verify import lines, verify
from consumer.offline.whole_files import write_whole
from consumer.text import printable, quoted
from safe_core.lint import Ceiling, InvalidCeiling


def print_remarks(told: Iterable[str]) -> None:
    """Print remarks for the person who asked, to standard error; that nobody can read them changes no verdict."""
    for remark in told:
        with suppress(OSError, ValueError):
            print(f"safe: {printable(remark)}", file=sys.stderr)


def gate_command(report: Path, gate: Gate) -> int:
    """Decide on a report that is there, print why, and give the exit code; raises ConfigurationError."""
    document, name = read_report(report), called(report)
    checked_summary(document, name)
    check_borne_out(document, name)
    decision = gate.decide(document, printable(str(name)))
    print_remarks(_worth_knowing(document))
    print_remarks(beyond_copying(document, gate))
    print(decision.line)
    return CODE_OF_GATE[decision.passed]


def _worth_knowing(report: Mapping[str, Any]) -> Iterator[str]:
    """What the number that a gate goes by does not tell."""
    if report.get("complete") is False:
        yield "the batch is not complete, more results may come"
    of_all = f"of {report['summary']['total_cases']} test cases"
    if missing := report.get("missing_outputs"):
        yield f"{missing} {of_all} without an output, scored as an empty one"
    if mismatches := report.get("input_mismatches"):
        yield f"{mismatches} {of_all} with an output made from another narrative (input mismatch)"
    configuration = report.get("configuration")
    rules = own_rules(configuration) if isinstance(configuration, dict) else None
    if rules is not None:
        yield f"the report's rules are not the default ones: {rules}"


def beyond_copying(report: Mapping[str, Any], gate: Gate | None) -> Iterator[str]:
    """Say so if a gate asks for more than a copy of the narratives could reach: then the test cases need a look."""
    if gate is None or gate.min_pass_rate is None or "ceiling" not in report:
        return
    try:
        found = Ceiling.parse(report["ceiling"])
    except InvalidCeiling:
        yield "the report's ceiling cannot be read"
        return
    if found.pass_rate < gate.min_pass_rate:
        yield f"--min-pass-rate {gate.min_pass_rate} is out of reach: {found.sentence}; see safe lint"


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """What was asked for on the command line."""

    base: Path
    new: Path
    format: Format | None
    files: Sequence[str]
    gate: ComparisonGate | None
    force: bool


def compare_command(request: CompareRequest) -> int:
    """Compare two reports, write and print what changed, and give the exit code; raises ConfigurationError."""
    asked = one_format(request.format, request.files, _COMPARISON_SUFFIXES)
    check_writable(asked, [request.base, request.new], force=request.force)
    base, new = called(request.base), called(request.new)
    # Where both have the same name, their folders tell them apart.
    names = [str(path) if base.name == new.name else path.name for path in (base, new)]
    comparison = compare(read_report(request.base), read_report(request.new), *names)
    decision = None if request.gate is None else request.gate.decide(comparison)
    line = None if decision is None else decision.line
    for each in asked:
        if each.path is not None:
            write_whole(each.path, _comparison_text(comparison, each.format, line))
    _print_comparison(comparison, asked, line)
    print_remarks(f"wrote {each.path}" for each in asked if each.path is not None)
    return EXIT_OK if decision is None else CODE_OF_GATE[decision.passed]


_COMPARISON_SUFFIXES: Final[Mapping[str, Format]] = {
    suffix: format_ for suffix, format_ in SUFFIXES.items() if format_ in {"console", "json", "markdown", "html"}
}


def _print_comparison(comparison: Comparison, asked: Sequence[Destination], line: str | None) -> None:
    """Print what goes to standard output; what a reader of the console would see first goes to standard error."""
    on_stdout = next((each.format for each in asked if each.path is None), None)
    if on_stdout is not None:
        print(_comparison_text(comparison, on_stdout, line), end="")
    if on_stdout != "console":
        first = f"{verdict(comparison)}: {summary(comparison)}"
        print_remarks([first, *(each.written(quoted) for each in remarks(comparison))])
        print_remarks([] if line is None else [line])


def _comparison_text(comparison: Comparison, format_: Format, line: str | None) -> str:
    match format_:
        case "json":
            return comparison_json(comparison)
        case "markdown":
            return comparison_markdown(comparison, line)
        case "html":
            return comparison_html(comparison, line)
        case _:
            return "".join(f"{text}\n" for text in console_lines(comparison, line))


def verify_command(report: Path, test_dir: Path, outputs: Sequence[Path]) -> int:
    """Recompute a report, print the first differences, and give the exit code; raises ConfigurationError."""
    verification = verify(read_report(report), called(report), test_dir, outputs)
    print_remarks(verification.remarks)
    for line in lines(verification):
        print(line)
    return CODE_OF_GATE[not verification.differences]
