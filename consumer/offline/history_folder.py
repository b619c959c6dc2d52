"""`safe history -o FOLDER`: the page over many runs as files that open from a disk, one script for each run.

A page that is opened from a disk may not fetch anything, but it may load a script.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from consumer.errors import ConfigurationError
from consumer.files.outputs import OutputFile, open_all
from consumer.offline.destinations import Destination, check_writable
from consumer.offline.history import History, Run
from consumer.offline.pages.history import history_html
from consumer.offline.pages.history_data import SCRIPT_MARK, run_script
from consumer.offline.whole_files import unwritable, write_whole
from consumer.terminal import message_console, print_message, progress_bar
from consumer.text import named, visible
from safe_core import Output

_PAGE: Final = "index.html"
_RUNS: Final = "runs"


def is_folder(output: str) -> bool:
    """Tell whether an `--output` names a folder: one that is there, or a name without a suffix."""
    return output not in {"", "-"} and (Path(output).is_dir() or not Path(output).suffix)


def check_folder(folder: Path, inputs: Sequence[Path], *, force: bool) -> None:
    """Raise ConfigurationError unless a folder can be written that is new, empty, or has (a part of) such a page."""
    page = folder / _PAGE
    try:
        is_foreign = folder.exists() and not page.exists() and not _is_unfinished(folder)
    except OSError as error:
        raise unwritable(folder, error) from error
    if is_foreign and not force:
        raise ConfigurationError(
            f"--output {visible(str(folder))} holds something else; name a new folder, or use this one with --force"
        )
    check_writable([Destination("html", page), Destination("html", folder / _RUNS / _PAGE)], inputs, force=force)


def write_folder(history: History, folder: Path, outputs: Sequence[Path] | None) -> None:
    """Write the page and its scripts; `outputs` are the files whose texts are shown, None without --include-text."""
    files = None if outputs is None else open_all(outputs)
    names = [f"run-{number}.js" for number in range(1, len(history.runs) + 1)]
    unknown = []
    with progress_bar(message_console(), "writing runs", len(names)) as advance:
        for number, (name, run) in enumerate(zip(names, history.runs, strict=True)):
            texts = None if files is None else _texts_of(run, files)
            if texts == {}:
                unknown.append(run.name)
            write_whole(folder / _RUNS / name, run_script(history, number, texts))
            advance(1)
    write_whole(folder / _PAGE, history_html(history, has_scripts=True, shows_text=files is not None))
    for path in _left_over(folder / _RUNS, names):
        path.unlink()
    if unknown:
        print_message(
            f"none of the --outputs is what these runs were scored from, so they have no texts: {named(unknown)}"
        )


def _texts_of(run: Run, files: Sequence[OutputFile]) -> Mapping[str, list[Output]]:
    """Give the outputs of the files that a run was scored from, by test_id."""
    texts: defaultdict[str, list[Output]] = defaultdict(list)
    for file in files:
        if file.sha256 in run.inputs:
            for entry in file.entries():
                texts[entry.test_id].append(entry.output)
    return texts


def _left_over(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Find the scripts of an earlier page with more runs, or of one that was killed: they may hold unwanted texts."""
    found = (*folder.glob("run-*.js"), *folder.glob(".run-*.js.*"))
    return (path for path in found if path.name not in names and _is_script(path))


def _is_unfinished(folder: Path) -> bool:
    """Tell whether a folder holds nothing but what is left of a page that was never written to its end."""
    held = [*folder.iterdir()]
    return not held or (held == [folder / _RUNS] and all(map(_is_script, held[0].iterdir())))


def _is_script(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(len(SCRIPT_MARK)) == SCRIPT_MARK
