"""`safe gate`, `compare`, `history` and `verify` from beginning to end: commands that begin with a report."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from consumer.errors import ConfigurationError
from consumer.exit_codes import CODE_OF_GATE, EXIT_OK
from consumer.files.outputs import called, output_files
from consumer.files.unused_outputs import without_output
from consumer.offline.compare import compare
from consumer.offline.destinations import Wanted, give, on_stdout, print_written, write_files
from consumer.offline.gate import ComparisonGate, Gate, check_borne_out
from consumer.offline.history import history, report_files
from consumer.offline.history_folder import check_folder, is_folder, write_folder
from consumer.offline.pages import history as history_pages
from consumer.offline.pages.checks import GATED, VERIFIED, Gated, gate_page, verification_page
from consumer.offline.pages.comparison_content import RENDERED, page
from consumer.offline.pages.console_layout import print_document
from consumer.offline.pages.report_content import own_rules
from consumer.offline.stored_report import checked_summary, distinct_names, read_report
from consumer.offline.verify import verify
from consumer.terminal import print_message, result_console
from consumer.text import count_of, named, printable, quoted

_LONGEST_PATH: Final = 300


def gate_command(report: Path, gate: Gate, wanted: Wanted) -> int:
    """Decide on a report that is there, say why, and give the exit code; raises ConfigurationError."""
    asked = wanted.destinations(GATED, [report])
    document, name = read_report(report), called(report)
    checked_summary(document, name)
    check_borne_out(document, name)
    decision = gate.decide(document, printable(str(name)))
    found = Gated(name, decision, [*_worth_knowing(document), *gate.out_of_reach(document)])
    print_message(*found.remarks)
    give(asked, lambda each: GATED[each](found), replace(gate_page(found), warnings=()))
    return CODE_OF_GATE[decision.passed]


def _worth_knowing(report: Mapping[str, Any]) -> Iterator[str]:
    """What the number that a gate goes by does not tell."""
    if report.get("complete") is False:
        yield "the batch is not complete: more results may come"
    of_all = f"of {report['summary']['total_cases']} test cases"
    if missing := report.get("missing_outputs"):
        yield without_output(missing, report["summary"]["total_cases"])
    if failed := report.get("failed_generations"):
        yield f"failed generations, which say nothing about the prompt: {failed} {of_all}"
    if mismatches := report.get("input_mismatches"):
        yield f"outputs made from another narrative (input mismatch): {mismatches} {of_all}"
    configuration = report.get("configuration")
    rules = own_rules(configuration) if isinstance(configuration, dict) else None
    if rules is not None:
        yield f"the report's rules are not the default ones: {rules}"


def compare_command(base: Path, new: Path, gate: ComparisonGate | None, wanted: Wanted) -> int:
    """Compare two reports, write and print what changed, and give the exit code; raises ConfigurationError."""
    asked = wanted.destinations(RENDERED, [base, new])
    comparison = compare(read_report(base), read_report(new), *distinct_names([called(base), called(new)]))
    decision = None if gate is None else gate.decide(comparison)
    if decision is not None:
        comparison = replace(comparison, decision=decision.line)
    document, shown = page(comparison), on_stdout(asked)
    write_files(asked, lambda each: RENDERED[each](comparison))
    if shown == "console":
        print_document(document, result_console())
    else:  # what a reader of the console would see first
        print("" if shown is None else RENDERED[shown](comparison), end="")
        first = [document.first_words, *(each.written(quoted) for each in document.warnings), document.decision]
        print_message(*filter(None, first))
    print_written(asked)
    return EXIT_OK if decision is None else CODE_OF_GATE[decision.passed]


def verify_command(report: Path, test_dir: Path, outputs: Sequence[Path], wanted: Wanted) -> int:
    """Recompute a report, say where it differs, and give the exit code; raises ConfigurationError."""
    asked = wanted.destinations(VERIFIED, [report, *(file for path in outputs for file in output_files(path))])
    found = verify(read_report(report), called(report), test_dir, outputs)
    print_message(*found.remarks)
    give(asked, lambda each: VERIFIED[each](found), replace(verification_page(found), warnings=()))
    return CODE_OF_GATE[not found.differences]


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """What was asked of `safe history`; `outputs` are the files whose texts the page quotes, None without any."""

    reports: Sequence[Path]
    groups: Sequence[str]
    wanted: Wanted
    outputs: Sequence[Path] | None = None
    as_given: bool = False

    def __post_init__(self) -> None:
        if self.outputs is not None and not self.folders:
            raise ConfigurationError("--include-text: only a folder quotes outputs: name one with --output FOLDER")

    @property
    def folders(self) -> list[Path]:
        """Where the page is written as a folder."""
        return [Path(each) for each in self.wanted.files if is_folder(each)]


def history_command(request: HistoryRequest) -> int:
    """Show reports as the history of their cases, and give the exit code; raises ConfigurationError."""
    read = report_files(request.reports)
    files = [each for each in request.wanted.files if not is_folder(each)]
    asked = replace(request.wanted, files=files).destinations(history_pages.RENDERED, read.reports)
    for folder in request.folders:
        check_folder(folder, read.reports, force=request.wanted.force)
    found = history(read.reports, request.groups, as_given=request.as_given)
    if read.others:
        are = "it is not a report" if len(read.others) == 1 else "they are not reports"
        print_message(
            f"{count_of(len(read.others), 'file')} skipped, because {are} of safe score: "
            f"{named(map(str, read.others), 20, _LONGEST_PATH)}"
        )
    for folder in request.folders:
        write_folder(found, folder, request.outputs)
        print_message(f"wrote {folder / 'index.html'}, and a script for each run")
    give(asked, lambda each: history_pages.RENDERED[each](found), history_pages.page(found))
    return EXIT_OK
