"""Where each format goes: what `--format` and `--output` ask for, what may be written there, and how it is given."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from consumer.case_sources.folder import SUFFIX
from consumer.errors import ConfigurationError
from consumer.files.outputs import is_own_report
from consumer.offline.pages import csv_tables
from consumer.offline.pages.console_layout import print_document
from consumer.offline.pages.document import Document
from consumer.offline.whole_files import shortened, unwritable, write_whole
from consumer.terminal import print_message, result_console
from consumer.text import visible

Format = Literal["json", "console", "markdown", "junit", "csv", "terms", "html"]

STDOUT: Final = "-"
SUFFIXES: Final[Mapping[str, Format]] = {
    ".json": "json", ".md": "markdown", ".xml": "junit", ".csv": "csv", ".terms.csv": "terms", ".html": "html",
    ".txt": "console",
}  # fmt: skip
_SUFFIX_OF: Final = {format_: suffix for suffix, format_ in SUFFIXES.items()}
_ALL: Final[tuple[Format, ...]] = ("console", "json", "markdown")
_TO_FOLDER: Final[frozenset[Format]] = frozenset({"markdown", "html"})
"""The formats that go to the folder of reports even if alone: nobody reads them on a terminal."""

# How a file begins that SAFE has written, and may therefore replace; JSON reports are told by is_own_report().
_PAGE: Final = "SAFE v0 (?:report|comparison|triage|history|explanation|gate|verification)"
_MARKS: Final[tuple[re.Pattern[str], ...]] = (
    re.compile(f"<!-- {_PAGE} -->"),
    re.compile(
        rf'<!doctype html>\s*<html[^>]*>\s*<head>\s*<meta charset=[^>]*>\s*<meta name="generator" content="{_PAGE}">'
    ),
    re.compile(r'<\?xml[^>]*\?>\s*<testsuites name="SAFE v0 '),
    re.compile("|".join(map(re.escape, csv_tables.FIRST_COLUMNS))),
    re.compile(r"\d+ cases? explained\n|gate(?: NOT)?(?: passed)?: |(?:NOT )?verified: \d+ "),
    re.compile(r"[╔+][═=]+[╗+]\n[║|] +SAFE v0 Scorecard - "),
    re.compile(r"[\w ;,()]{1,90}: of \d+ judged cases?, \d+ got a worse label, "),
    re.compile(r"\d+ of \d+ cases? pass(es)? now; "),
    re.compile(r"SAFE v0 history: \d+ runs?, \d+ cases?\n"),
    re.compile(r'\{\s*"safe_(?:opinions|judge_calibration)":'),
    re.compile(r'\{\s*"judged":\s*\d+,\s*"worse":\s*\['),
    re.compile(r'\{\s*"cases":\s*\d+,\s*"(?:now":\s*\{|misses":\s*\d)'),
    re.compile(r'\{\s*"(?:passed|same)":\s*(?:true|false),\s*"(?:conditions|differences)":'),
    re.compile(r'\{\s*"runs":\s*\[\s*\{\s*"name":'),
)
_MARK_WITHIN_BYTES: Final = 1024


@dataclass(frozen=True, slots=True)
class Destination:
    """One format and the file it goes to; None is standard output."""

    format: Format
    path: Path | None


def destinations(
    asked: Format | Literal["all"] | None,
    outputs: Sequence[str],
    usual: Sequence[Format],
    automatic: Path | None,
    known: Collection[Format] = tuple(SUFFIXES.values()),
) -> tuple[Destination, ...]:
    """Read `--format` and every `--output`; raises ConfigurationError where they contradict one another.

    `usual` are the formats where none is asked for, `automatic` the path without a suffix for files that nobody named;
    None: what nobody named goes to standard output.
    """
    if "" in outputs:
        raise ConfigurationError("--output is empty; name a file, or - for standard output")
    if asked == "all":
        assert automatic is not None, "only of what has an automatic path, all formats can be asked for"
        return _everything(outputs, automatic)
    suffixes = {suffix: format_ for suffix, format_ in SUFFIXES.items() if format_ in known}
    named = [_named(output, asked, suffixes) for output in outputs]
    have_files = {each.format for each in named}
    if asked is not None and asked != "console" and named and asked not in have_files:
        raise ConfigurationError(
            f"--format {asked}, but --output {visible(outputs[0])} is {named[0].format}; "
            f"give it the suffix {_SUFFIX_OF[asked]}, or leave --format out"
        )
    wanted = usual if asked is None else (asked,)
    rest = [format_ for format_ in wanted if format_ not in have_files]
    return _distinct([*_usual_places(rest, automatic, alone=len(wanted) == 1), *named])


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for: the format for standard output, files, and whether these may replace what is not SAFE's."""

    format: Format | None = None
    files: Sequence[str] = ()
    force: bool = False

    def destinations(self, known: Collection[Format], inputs: Sequence[Path]) -> tuple[Destination, ...]:
        """Say where each format goes: one to standard output, unless a file has it, the console's if none is named.

        Raises ConfigurationError also where a file must not be written.
        """
        found = destinations(self.format, self.files, ("console",), None, known)
        check_writable(found, inputs, force=self.force)
        return found


def _everything(outputs: Sequence[str], automatic: Path) -> tuple[Destination, ...]:
    if len(outputs) > 1 or STDOUT in outputs:
        raise ConfigurationError(
            "--format all takes one --output: the path of its files without a suffix, such as reports/nightly"
        )
    stem = Path(outputs[0]) if outputs else automatic
    if not stem.name or stem.is_dir():
        stem /= automatic.name
    if stem.suffix in SUFFIXES:
        stem = stem.with_suffix("")
    return _usual_places(_ALL, stem, alone=False)


def _usual_places(formats: Iterable[Format], stem: Path | None, *, alone: bool) -> tuple[Destination, ...]:
    """The console's is standard output, and so is that of a format asked for alone; all else becomes a file."""
    return tuple(
        Destination(
            format_,
            None
            if stem is None or format_ == "console" or (alone and format_ not in _TO_FOLDER)
            else stem.with_name(stem.name + _SUFFIX_OF[format_]),
        )
        for format_ in formats
    )


def _named(output: str, asked: Format | None, suffixes: Mapping[str, Format]) -> Destination:
    if output == STDOUT:
        return Destination(asked or "console", None)
    path = Path(output)
    suffix = _suffix(path)
    by_suffix = suffixes.get(suffix)
    if by_suffix is not None and not (by_suffix == "console" and asked is not None):
        return Destination(by_suffix, path)
    if asked is None or suffix in SUFFIXES.keys() - suffixes.keys():
        known = ", ".join(suffixes)
        raise ConfigurationError(f"--output {visible(output)}: unknown suffix; use one of {known}, or give --format")
    return Destination(asked, path)


def _suffix(path: Path) -> str:
    last = path.suffix.lower()
    both = Path(path.stem).suffix.lower() + last
    return both if both in SUFFIXES else last


def _distinct(asked: Sequence[Destination]) -> tuple[Destination, ...]:
    seen: dict[str | None, Format] = {}
    for each in asked:
        file = None if each.path is None else os.path.realpath(each.path)
        if file in seen:
            where = "standard output" if each.path is None else visible(str(each.path))
            if seen[file] == each.format:
                raise ConfigurationError(f"--output names {where} twice; leave one of them out")
            raise ConfigurationError(f"two formats would go to {where}; give one of them an --output of its own")
        seen[file] = each.format
    return tuple(asked)


def automatic_stem(folder: Path, concern_id: str, generated_at: str) -> Path:
    """`<folder>/SAFE_v0_<concern>_<time>`: UTC, without colons, and nothing that a file system objects to."""
    concern = shortened(re.sub(r"[^\w.-]", "_", concern_id), 100)
    return folder / f"SAFE_v0_{concern}_{generated_at.replace(':', '')}"


# --- what may be written ----------------------------------------------------------------------------------------------


def check_writable(asked: Iterable[Destination], inputs: Sequence[Path], *, force: bool) -> None:
    """Raise ConfigurationError for a file that must not be replaced, or whose folder cannot be had."""
    for each in asked:
        if each.path is not None:
            _check_not_an_input(each.path, inputs)
            if not force:
                _check_own_or_new(each.path)
            _make_folder(each.path)


def _check_not_an_input(path: Path, inputs: Sequence[Path]) -> None:
    if path.exists() and any(other.exists() and path.samefile(other) for other in inputs):
        raise ConfigurationError(f"--output {visible(str(path))} is an input; name another file")


def _check_own_or_new(path: Path) -> None:
    try:
        foreign = path.exists() and not _may_be_replaced(path)
    except OSError as error:
        raise unwritable(path, error) from error
    if foreign:
        raise ConfigurationError(
            f"--output {visible(str(path))} already exists, and SAFE did not write it; "
            "did you mean --outputs? Name another file, or replace it with --force"
        )


def _may_be_replaced(path: Path) -> bool:
    if path.is_dir():
        raise IsADirectoryError(0, "it is a folder")
    if not path.is_file():  # a pipe or device holds nothing
        return True
    with path.open("rb") as file:
        head = file.read(_MARK_WITHIN_BYTES).decode("utf-8", "replace").removeprefix(csv_tables.BYTE_ORDER_MARK)
    return is_own_report(path) or any(mark.match(head) for mark in _MARKS)


def _make_folder(path: Path) -> None:
    if path.exists() and not path.is_file():  # a pipe or device is written into, no matter who owns its folder
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error
    if not os.access(path.parent, os.W_OK):
        raise ConfigurationError(f"--output {visible(str(path))} cannot be written: its folder is not writable")


def check_outside(asked: Sequence[Destination], test_dir: Path) -> None:
    """Raise ConfigurationError for a JSON file in the folder of test cases, where it would be read as one of them."""
    for each in asked:
        if each.path is None or each.path.suffix.lower() != SUFFIX:
            continue
        if os.path.realpath(each.path.parent) == os.path.realpath(test_dir):
            raise ConfigurationError(
                f"--output {visible(str(each.path))} is in the folder of the test cases, where it would be read as a "
                "batch file; name a file in another folder"
            )


# --- giving -----------------------------------------------------------------------------------------------------------


def write_files(asked: Iterable[Destination], text: Callable[[Format], str]) -> None:
    """Write each format that goes to a file."""
    for each in asked:
        if each.path is not None:
            write_whole(each.path, text(each.format))


def print_written(asked: Iterable[Destination]) -> None:
    """Say which files were written."""
    print_message(*(f"wrote {each.path}" for each in asked if each.path is not None))


def on_stdout(asked: Iterable[Destination]) -> Format | None:
    """Give the format that goes to standard output."""
    return next((each.format for each in asked if each.path is None), None)


def give(asked: Sequence[Destination], text: Callable[[Format], str], page: Document) -> None:
    """Write the files, then print what goes to standard output, or else the page's first words to standard error."""
    write_files(asked, text)
    print_written(asked)
    shown = on_stdout(asked)
    if shown is None:
        print_message(page.first_words)
    elif shown == "console":
        print_document(page, result_console())
    else:
        print(text(shown), end="")
