"""`safe triage` from beginning to end: what it reads, prints and writes."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from consumer.case_sources.folder import SUFFIX
from consumer.errors import ConfigurationError
from consumer.exit_codes import EXIT_OK
from consumer.files.batches import LoadedBatch, batch_names, load_batches, usable_batches
from consumer.files.outputs import OutputFile, open_outputs, output_files
from consumer.files.term_edits import EditedCase, Replacement, edited
from consumer.offline.destinations import Wanted, check_outside, give
from consumer.offline.pages.triage import RENDERED, page
from consumer.offline.triage import TriageRequest, triage
from consumer.offline.whole_files import write_whole
from consumer.terminal import message_console, print_message, progress_bar
from consumer.text import count_of, named, visible
from safe_core import Policy, TestCase


def triage_command(
    policy: Policy,
    request: TriageRequest,
    outputs: Sequence[Path],
    wanted: Wanted,
    write_to: Path | None,
) -> int:
    """Triage, write what was asked for, and give the exit code; raises ConfigurationError."""
    paths = [file for path in outputs for file in output_files(path)]
    batches = (request.test_dir / f"{name}.json" for name in batch_names(request.test_dir))
    asked = wanted.destinations(RENDERED, [*paths, *batches, *filter(None, [request.opinions_file])])
    check_outside(asked, request.test_dir)
    if write_to is not None:
        _check_folder(write_to, request.test_dir)
    files = [open_outputs(path) for path in paths]
    with progress_bar(message_console(), "reading", None) as bar:
        found, remarks = triage(policy, request, files, bar)
    print_message(*remarks)
    if write_to is not None:
        written = _write_cases(write_to, request.test_dir, request.batch, found.changes, files, force=wanted.force)
        replaced = sum(map(len, found.changes.values()))
        print_message(f"wrote {count_of(len(written), 'file')} to {write_to}: {count_of(replaced, 'term')} replaced")
    give(asked, lambda each: RENDERED[each](found), page(found))
    return EXIT_OK


# --- batch files with replaced terms ----------------------------------------------------------------------------------


def _check_folder(folder: Path, test_dir: Path) -> None:
    """Raise ConfigurationError if a folder is that of the test cases themselves, or no folder."""
    if os.path.realpath(folder) == os.path.realpath(test_dir):
        raise ConfigurationError(f"--write-cases {visible(str(folder))} is the folder of the test cases; name another")
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"--write-cases {visible(str(folder))} is not a folder")


def _write_cases(
    folder: Path,
    test_dir: Path,
    pattern: str,
    changes: Mapping[EditedCase, Sequence[Replacement]],
    outputs: Sequence[OutputFile],
    *,
    force: bool,
) -> list[Path]:
    """Write the selected batch files with their terms replaced, all else byte for byte, and give their paths.

    Others of the folder are written if they hold a changed test case with equal expectations, or, unchanged, if they
    decide which case an output answers (contract.md, "Answers"). Raises ConfigurationError, before anything is written,
    if a file is there already with other content, unless it may be replaced.
    """
    texts = {
        folder / batch.path.name: edited(batch, changes)
        for batch in _batches(test_dir, pattern, changes.keys(), outputs)
    }
    names = batch_names(folder) if folder.exists() else []
    if others := [name for name in names if folder / f"{name}{SUFFIX}" not in texts]:
        raise ConfigurationError(
            f"--write-cases {visible(str(folder))} holds other batch files ({named(others, 20)}), which would be "
            "scored with the new ones; name an empty folder"
        )
    for path, content in texts.items():
        if not force and path.exists() and path.read_bytes() != content:
            raise ConfigurationError(
                f"{visible(str(path))} already exists, with different content: name another folder, or give --force"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"--write-cases {visible(str(folder))} cannot be made: {error.strerror}") from error
    for path, content in texts.items():
        write_whole(path, content)
    return list(texts)


def _batches(
    test_dir: Path, pattern: str, changed: Iterable[EditedCase], outputs: Sequence[OutputFile]
) -> Iterator[LoadedBatch]:
    names = batch_names(test_dir)
    selected = load_batches(test_dir, pattern).all
    yield from selected
    others = usable_batches(test_dir, sorted(set(names) - {batch.name for batch in selected}))
    keys = set(changed)
    held = {test_id for batch in selected for test_id in batch.rows}
    deciding = {(entry.test_id, entry.batch_index, entry.batch_id) for file in outputs for entry in file.entries()}
    for batch in others:
        rows = batch.rows.items()
        repeats = any((test_id, row.expectations) in keys for test_id, row in rows if isinstance(row, TestCase))
        decides = any(
            test_id in held and test_id in batch.rows and (index == batch.batch_index is not None or name == batch.name)
            for test_id, index, name in deciding
        )
        if repeats or decides:
            yield batch
