"""`safe triage` from beginning to end: what it reads, prints and writes."""

from collections.abc import Sequence
from pathlib import Path

from consumer.files.batches import batch_names
from consumer.files.outputs import open_outputs, output_files
from consumer.offline.destinations import Format, give, one_format
from consumer.offline.pages.triage import RENDERED, headline
from consumer.offline.triage import TriageRequest, triage
from consumer.offline.write_cases import check_folder, write_cases
from consumer.terminal import message_console, print_message, progress_bar
from consumer.text import count_of
from safe_core import Policy


def triage_command(
    policy: Policy,
    request: TriageRequest,
    outputs: Sequence[Path],
    format_: Format | None,
    destinations: Sequence[str],
    write_to: Path | None,
    *,
    force: bool,
) -> int:
    """Triage, write what was asked for, and give the exit code; raises ConfigurationError."""
    paths = [file for path in outputs for file in output_files(path)]
    batches = (request.test_dir / f"{name}.json" for name in batch_names(request.test_dir))
    asked = one_format(format_, destinations, RENDERED, [*paths, *batches], force=force)
    if write_to is not None:
        check_folder(write_to, request.test_dir)
    files = [open_outputs(path) for path in paths]
    with progress_bar(message_console(), "reading", None) as bar:
        found, remarks = triage(policy, request, files, bar)
    print_message(*remarks)
    if write_to is not None:
        written = write_cases(write_to, request.test_dir, request.batch, found.changes, files, force=force)
        replaced = sum(map(len, found.changes.values()))
        print_message(f"wrote {count_of(len(written), 'file')} to {write_to}: {count_of(replaced, 'term')} replaced")
    give(asked, lambda each: RENDERED[each](found), headline(found))
    return 0
