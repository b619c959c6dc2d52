"""`safe triage` from beginning to end: what it reads, prints and writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from consumer.files.batches import batch_names
from consumer.files.outputs import open_outputs, output_files
from consumer.offline.destinations import Format
from consumer.offline.pages.triage import RENDERED, headline
from consumer.offline.rendering import rendering
from consumer.offline.report_commands import print_remarks
from consumer.offline.triage import TriageRequest, triage
from consumer.offline.write_cases import check_folder, write_cases
from consumer.terminal import message_console, progress_bar
from consumer.text import count_of
from safe_core import Policy


@dataclass(frozen=True, slots=True)
class TriageCommand:
    """What was asked for on the command line."""

    request: TriageRequest
    outputs: Sequence[Path]
    format: Format | None
    files: Sequence[str]
    write_to: Path | None
    force: bool


def triage_command(policy: Policy, command: TriageCommand) -> int:
    """Triage, write what was asked for, and give the exit code; raises ConfigurationError."""
    request = command.request
    paths = [file for path in command.outputs for file in output_files(path)]
    batches = (request.test_dir / f"{name}.json" for name in batch_names(request.test_dir))
    pages = rendering(RENDERED, command.format, command.files, [*paths, *batches], force=command.force)
    if command.write_to is not None:
        check_folder(command.write_to, request.test_dir)
    files = [open_outputs(path) for path in paths]
    with progress_bar(message_console(), "reading", None) as bar:
        found, remarks = triage(policy, request, files, bar, bar.explaining)
    print_remarks(remarks)
    if command.write_to is not None:
        written = write_cases(
            command.write_to, request.test_dir, request.batch, found.changes, files, force=command.force
        )
        replaced = sum(map(len, found.changes.values()))
        print_remarks(
            [f"wrote {count_of(len(written), 'file')} to {command.write_to}: {count_of(replaced, 'term')} replaced"]
        )
    pages.give(found, headline(found))
    return 0
