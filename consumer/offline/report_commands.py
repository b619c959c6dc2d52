"""`safe gate`, `safe compare` and `safe verify` from beginning to end: commands that begin with a report."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from consumer.errors import ConfigurationError
from consumer.exit_codes import CODE_OF_GATE, EXIT_OK
from consumer.offline.compare import compare, decide
from consumer.offline.destinations import (
    SUFFIXES,
    Destination,
    check_writable,
    write_whole,
)
from consumer.offline.gate import Gate, check_borne_out
from consumer.offline.pages.comparison import comparison_markdown, console_lines
from consumer.offline.pages.report_content import own_rules
from consumer.offline.stored_report import checked_summary, read_report
from consumer.offline.verify import lines, verify
from consumer.text import printable
from safe_core.lint import Ceiling, InvalidCeiling


def print_remarks(remarks: Iterable[str]) -> None:
    """Print remarks for the person who asked, to standard error; that nobody can read them changes no verdict."""
    for remark in remarks:
        with suppress(OSError, ValueError):
            print(f"safe: {printable(remark)}", file=sys.stderr)


def gate_command(report: Path, gate: Gate) -> int:
    """Decide on a report that is there, print why, and give the exit code; raises ConfigurationError."""
    document = read_report(report)
    checked_summary(document, report)
    check_borne_out(document, report)
    decision = gate.decide(document, printable(str(report)))
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
        print_remarks([f"wrote {output}"])
    return EXIT_OK if decision is None else CODE_OF_GATE[decision.passed]


def verify_command(report: Path, test_dir: Path, outputs: Sequence[Path]) -> int:
    """Recompute a report, print the first differences, and give the exit code; raises ConfigurationError."""
    verification = verify(read_report(report), report, test_dir, outputs)
    print_remarks(verification.remarks)
    for line in lines(verification):
        print(line)
    return CODE_OF_GATE[not verification.differences]
